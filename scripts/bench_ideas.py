"""What each idea about the speed of a step is worth: the same steps with it and without, in one process.

    python scripts/bench_ideas.py [--rounds 9] [--out results/bench/ideas.md]

Workload W1 of scripts/bench.py, one seed, steps alone without evaluation. CPU time of one core, so that neighbours
cost little; rounds are interleaved, ratios are taken within a round, median [quartiles]. A row takes one idea back, or
leaves a part out, which bounds what ideas about it can give. All rows but those bounds train the same numbers.

Not rows, since they would train other numbers or gained nothing: four decisions of 8 bits a random word and a counter
hashed by murmur3 in place of Threefry (another generator would have to pass a battery of tests first), XLA's flags for
vectors of 512 bits, fast math and fusion emitters.
"""

import argparse
import contextlib
import dataclasses
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import bench  # pins the process to one core, before jax is loaded
import jax
import numpy as np
from bench_scale import made_by
from jax import numpy as jnp

from jaxpu import config, models
from jaxpu.models import layers, presets
from jaxpu.train import job, loop, step

EPOCHS = 4


def bits(key: Any, rows: int, width: int) -> Any:
    return jax.random.bits(key, ((rows + 1) // 2, width), "uint32")


def where_used(key: Any, rows: int, width: int) -> Any:
    half = (rows + 1) // 2
    return layers._threefry(key, jnp.uint32(0), half * width).reshape(half, width)


def apart(z: Any, words: Any, rate: float) -> Any:
    return layers.dropout(words, jax.nn.relu(z), rate)


def chosen(usable: Any, moved: Callable[[], Any], stayed: Callable[[], Any]) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(usable, a, b), moved(), stayed())


IDEAS: dict[str, tuple[tuple[Any, str, Any], ...]] = {
    "as it is": (),
    "words of jax.random.bits": ((presets, "dropout_words", bits),),
    "words computed where they are used": ((presets, "dropout_words", where_used),),
    "ReLU and dropout apart": ((presets, "relu_dropout", apart),),
    "the update chosen afterwards": ((step, "lax", types.SimpleNamespace(**{**vars(jax.lax), "cond": chosen})),),
}
BOUNDS: dict[str, dict[str, Any]] = {
    "no dropout": {"model": {"dropout": ()}},
    "SGD with momentum": {"training": {"optimizer": "sgd"}},
}
"""What is left out, as settings."""


class Steps:
    """A few epochs of steps, compiled; ``run()`` trains them."""

    def __init__(self, name: str) -> None:
        asked = bench.experiment(1, "map")
        for part, settings in BOUNDS.get(name, {}).items():
            asked = dataclasses.replace(asked, **{part: dataclasses.replace(getattr(asked, part), **settings)})
        [cell] = config.expand(asked)
        key, data, static, hyper = job.inputs(cell, 0)
        self.steps = EPOCHS * -(-int(data.n_train) // static.batch_size)

        def trained(state: Any) -> Any:
            def one(state: Any, _: None) -> Any:
                return loop._trained(key, state, data=data, config=static, hyper=hyper, update=step.update)

            return jax.lax.scan(one, state, length=EPOCHS)

        with taken_back(name):
            models.build.cache_clear()  # or it holds the functions of the row before
            self._start = loop.init(key, data, static, hyper)
            self._run = jax.jit(trained).lower(self._start).compile()
        models.build.cache_clear()

    def run(self) -> float:
        """CPU milliseconds a step."""
        began = time.process_time()
        jax.block_until_ready(self._run(self._start))
        return 1e3 * (time.process_time() - began) / self.steps


@contextlib.contextmanager
def taken_back(name: str) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for module, attribute, value in IDEAS.get(name, ()):
            stack.enter_context(mock.patch.object(module, attribute, value))
        yield


def table(found: dict[str, list[float]]) -> str:
    base = np.array(found["as it is"])
    lines = ["| steps of W1 | CPU ms a step | times the step as it is |", "|---|--:|--:|"]
    for name, times in found.items():
        low, middle, high = np.percentile(np.array(times) / base, [25, 50, 75])
        lines.append(f"| {name} | {np.median(times):.2f} | {middle:.3f} [{low:.3f}, {high:.3f}] |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    began = time.monotonic()
    made = {name: Steps(name) for name in (*IDEAS, *BOUNDS)}
    for one in made.values():
        one.run()
    found: dict[str, list[float]] = {name: [] for name in made}
    for start in range(given.rounds):
        names = list(made)
        for name in names[start % len(names) :] + names[: start % len(names)]:
            found[name].append(made[name].run())
    text = f"# What ideas about a step are worth\n\n`python scripts/bench_ideas.py`; {given.rounds} rounds of "
    text += f"{made['as it is'].steps} steps, {time.monotonic() - began:.0f} s, {made_by()}, one CPU core.\n\n"
    text += table(found)
    print(text)
    if given.out:
        given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
