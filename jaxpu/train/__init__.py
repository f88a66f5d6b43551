"""The whole training of one seed as one pure function: ``train(key, data, config, hyper) -> Run``.

    key ──► init ──► scan over epochs ┬► batch plan, λ drawn up front
                                      ├► scan over steps: forward, mixed forward, risk + penalty, Adam
                                      ├► evaluation on the device: metrics, proxies, probes
                                      └► selection rules: best so far, patience, stop

Where runs go (one after the other, side by side, on which devices) is decided elsewhere; a run depends on its
key, data and numbers alone. What is static stands in :class:`Config`, what is traced in
:class:`~jaxpu.methods.objective.Hyper`; changing the latter recompiles nothing.
"""

from jaxpu.train.evaluation import evaluate
from jaxpu.train.inputs import Config, Data, History, ProbeInput, features
from jaxpu.train.loop import INIT, LAMBDA, SHUFFLE, STEPS, Run, State, advance, finished, init, key_of, train
from jaxpu.train.step import update

__all__ = [
    "INIT",
    "LAMBDA",
    "SHUFFLE",
    "STEPS",
    "Config",
    "Data",
    "History",
    "ProbeInput",
    "Run",
    "State",
    "advance",
    "evaluate",
    "features",
    "finished",
    "init",
    "key_of",
    "train",
    "update",
]
