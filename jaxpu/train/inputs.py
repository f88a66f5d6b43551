"""What a run is made of: its arrays, the static part of its program, and what probes may look at."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.sharding import PartitionSpec, Sharding
from jaxtyping import Float, Int, UInt8

from jaxpu import models
from jaxpu.config import ModelConfig
from jaxpu.methods.objective import Hyper, Objective
from jaxpu.selection import RULES, RuleChoice
from jaxpu.train.optimizers import USUAL, Choice
from jaxpu.types import Rows, Scalar

History = dict[str, Array]


class Data(NamedTuple):
    """The arrays of one run. ``x`` and ``y`` are shared by all runs, the rest are row numbers into them.

    Attributes:
        x: all features. y: all true labels, 1 = positive, or class numbers; training reads them only for ``pn`` and for
            metrics. Where nobody knows them (``Config.truth``) they are 0, and nothing reads them.
        train: rows of the training set, the labeled positives first, then U (a row may stand in both), then padding.
        val, test: rows of the held-out sets. val_pu: positions within ``val`` of its P, then its U, then padding.
        mean, sd: standardisation, from the training rows alone.
        n_labeled, n_train: how many of ``train`` are labeled positives, and how many are no padding.
        n_val_labeled, n_val_pu: the same of ``val_pu``.
        outside: rows that come from elsewhere and have no label; there may be none.
        levels: where x holds bytes, the feature that each of the 256 stands for; None where it holds features.
    """

    x: Float[Array, "rows ..."] | UInt8[Array, "rows ..."]
    y: Int[Array, " rows"]
    train: Rows
    val: Rows
    val_pu: Int[Array, " m"]
    test: Rows
    mean: Float[Array, "..."]
    sd: Float[Array, "..."]
    n_labeled: Int[Array, ""]
    n_train: Int[Array, ""]
    n_val_labeled: Int[Array, ""]
    n_val_pu: Int[Array, ""]
    outside: Int[Array, " o"]
    levels: Float[Array, " 256"] | None = None

    @property
    def labeled(self) -> Float[Array, " n"]:
        """1 where a row of ``train`` is a labeled positive."""
        return (jnp.arange(self.train.shape[0]) < self.n_labeled).astype(jnp.float32)

    @property
    def counts(self) -> Float[Array, " n"]:
        """1 where a row of ``train`` is one, 0 on padding."""
        return (jnp.arange(self.train.shape[0]) < self.n_train).astype(jnp.float32)


@dataclasses.dataclass(frozen=True)
class Config:
    """The static part of a run: choices and sizes that shape the compiled program.

    Attributes:
        model: the network. outputs: its logits a row, 1, or one a class where there are many.
        epochs, batch_size: as they say. optimizer: it and its schedule.
        val_sizes: (column prefix, rows) of every nested validation set; the largest is all of ``Data.val``.
        objective: the risks and penalties to choose from, and whether there is a mixed forward pass.
        batching: ``mixed`` or ``separate``.
        lam_per: λ a ``batch`` or a ``row``. evaluate_every: epochs from one evaluation to the next.
        rules: selection rules followed during training. patience, min_delta: theirs.
        stop: end when all rules have met their patience. keep_best: rule whose best parameters are kept.
        probes: (name, function of :class:`ProbeInput`) recorded each epoch as ``probe_<name>``.
        row_sharding: how the rows of one step are split over devices; None = not.
        truth: whether true labels are known; without, metrics that need them are left out.
        directional: whether there is a directional penalty.

    Raises:
        ValueError: a rule needs true labels, and they are not known; with those that need none.
    """

    model: ModelConfig
    epochs: int
    batch_size: int
    val_sizes: tuple[tuple[str, int], ...]
    objective: Objective
    batching: str = "mixed"
    lam_per: str = "batch"
    evaluate_every: int = 1
    rules: tuple[RuleChoice, ...] = (RuleChoice("last"),)
    patience: int = 10
    min_delta: float = 0.0
    stop: bool = False
    keep_best: RuleChoice | None = None
    probes: tuple[tuple[str, "Callable[[ProbeInput], Array]"], ...] = ()
    row_sharding: Sharding | PartitionSpec | None = None
    outputs: int = 1
    optimizer: Choice = USUAL
    truth: bool = True
    directional: bool = False

    def __post_init__(self) -> None:
        for rule in () if self.truth else self.rules:
            if not rule.entry.label_free:
                choices = ", ".join(name for name, rule in RULES.items() if rule.label_free)
                raise ValueError(
                    f"selection rule {rule.name!r} needs true labels, and only observed ones are known; "
                    f"choose from {choices}"
                )


class ProbeInput(NamedTuple):
    """What a probe may look at after an epoch: the network, the data, the numbers of the epoch, and the static part.

    In the training set P comes first; ``data.counts`` is 1 on its rows and 0 on the padding behind them. Labels are
    None where nobody knows them.
    """

    variables: models.Variables
    model: models.Model
    data: Data
    hyper: Hyper
    objective: Objective
    truth: bool = True

    @property
    def x_train(self) -> Array:
        """Inputs of the training set."""
        return features(self.data, self.data.train)

    @property
    def y_train(self) -> Array | None:
        """True labels of the training set."""
        return self.data.y[self.data.train] if self.truth else None

    @property
    def x_test(self) -> Array:
        """Inputs of the test set."""
        return features(self.data, self.data.test)

    @property
    def y_test(self) -> Array | None:
        """True labels of the test set."""
        return self.data.y[self.data.test] if self.truth else None

    def logits(self, x: Array, params: models.Params | None = None) -> Array:
        """Logits of rows, with other parameters if there are some (to differentiate in them)."""
        return self.model.logits(self.variables if params is None else self.variables._replace(params=params), x)


class Seen(NamedTuple):
    """What :func:`jaxpu.train.step.update` shows to ``weigh`` of a batch whose rows and labels are mixed.

    Attributes:
        x: the mixed inputs, as the network gets them. y: the labels of the rows, (n,), of the partners ``y[partner]``.
        partner: (n,). lam: λ, the share of the row itself, one for the batch or one a row.
        mask: (n,) 0 = padding. rows: (n,) places in the training set.
        variables: the network before the update, of ``model``. logits: from inputs to its logits, outside of training.
        key: for draws of one's own. progress: the share of the epochs that is done.
    """

    x: Array
    y: Array
    partner: Array
    lam: Array
    mask: Array
    rows: Array
    model: models.Model
    variables: models.Variables
    logits: Callable[[Array], Array]
    key: Array
    progress: Scalar


Weigh = Callable[[Seen], Array | tuple[Array, dict[str, Scalar]]]
"""How much each mixed row counts, (n,) in [0, 1], a constant; numbers beside it are recorded as ``train_<name>``."""


def features(data: Data, rows: Array) -> Array:
    """Standardised inputs of the given rows.

    >>> none = Data(*[jnp.zeros(1)] * 13)._replace(sd=jnp.ones(1))
    >>> images = none._replace(x=jnp.uint8([[0], [255]]), levels=jnp.linspace(-1, 1, 256))
    >>> features(images, jnp.int32([1, 0])).tolist()
    [[1.0], [-1.0]]
    """
    x = data.x[rows] if data.levels is None else data.levels[data.x[rows]]
    return (x - data.mean[None]) / data.sd[None]


def updates(data: Data, config: Config) -> Int[Array, ""]:
    """Updates of an epoch if none is skipped; steps of mere padding are none."""
    rows = data.n_train - data.n_labeled if config.batching == "separate" else data.n_train
    return (rows + config.batch_size - 1) // config.batch_size
