"""Settings of the mean field: the numbers of methods on a kind of data, as points of a grid."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from jaxpu.config import TrainingConfig
from jaxpu.methods import PENALTIES, Method, objective
from jaxpu.methods.objective import Hyper, Objective


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Setting:
    """A method's numbers, the share of labeled positives in the batches that it trains on, and, static, its risks.

    The share of positives in a batch is ``labeled_share`` + (1 - ``labeled_share``) π: π is that among the unlabeled.
    """

    hyper: Hyper
    labeled_share: Float[Array | np.ndarray, "*grid"] | np.floating
    objective: Objective = dataclasses.field(metadata={"static": True})


def beta_nodes(alpha: float, k: int = 32) -> Float[np.ndarray, " k"]:
    """Give k equally likely values of λ ~ Beta(α, α): its quantiles at (i + ½)/k. α = inf gives λ = ½.

    Raises:
        ValueError: α is not positive.

    Example:
        >>> nodes = beta_nodes(0.3)
        >>> [round(float(m), 3) for m in ((nodes * (1 - nodes)).mean(), 0.3 / (2 * (2 * 0.3 + 1)))]  # E[λ (1 - λ)]
        [0.094, 0.094]
    """
    if not alpha > 0:
        raise ValueError(f"alpha must be positive, got {alpha}: without mixup there is no λ")
    if np.isinf(alpha):
        return np.full(k, 0.5, np.float32)
    from scipy import special  # a tenth of a second, and training imports this package for its penalties

    return special.betaincinv(alpha, alpha, (np.arange(k) + 0.5) / k).astype(np.float32)


def setting(
    method: Method,
    prior: float,
    *,
    labeled_share: float = 0.04,
    lr: float = 1.0,
    class_counts: Sequence[int] = (1, 1),
    together: Objective | None = None,
) -> Setting:
    """The numbers of a method on data of a kind, as one point of a grid; those that move along epochs at their start.

    Args:
        method: any of the family. prior: the class prior π that it is given. lr: size of a step.
        labeled_share: share of labeled positives among the training rows; only supervised risks and the prior of the
            batch see it. Separate batches are half labeled, whatever it is.
        class_counts: training rows of both classes, which class weights come from.
        together: the risks and penalties of all methods of the grid; None = this one's.

    >>> from jaxpu.methods import METHODS
    >>> one = setting(METHODS["vpu_published"], 0.4)
    >>> float(one.hyper.anchor), float(one.labeled_share)
    (1.0, 0.5)
    """
    together = together or _together([method])
    hyper = objective.hyper_of(method, TrainingConfig(lr=lr), prior, class_counts, together)
    hyper = hyper._replace(weight=np.float32(method.weight if method.mixup else 0.0))
    share = 0.5 if method.batching == "separate" else labeled_share
    return Setting(jax.tree.map(jnp.asarray, objective.at(hyper, 0, 1)), jnp.float32(share), together)


def _together(methods: Sequence[Method]) -> Objective:
    """Their risks and penalties, whether they have a mixed forward pass or not: the mean field needs none."""
    used = {method.penalty for method in methods}
    penalties = tuple(name for name in PENALTIES[1:] if name in used)
    return Objective(objective.branches_of(methods), penalties, stages=max(len(method.parts) for method in methods))


def grid(
    methods: Method | Sequence[Method],
    priors: float | Sequence[float],
    *,
    labeled_share: float | Sequence[float] = 0.04,
    lr: float | Sequence[float] = 1.0,
) -> Setting:
    """A one-dimensional grid of settings; a single method or number stands for all points.

    Raises:
        ValueError: lists of different lengths.

    >>> from jaxpu.methods import METHODS
    >>> grid(METHODS["pudra"], [0.1, 0.2, 0.3]).labeled_share.shape
    (3,)
    """
    given = (methods, priors, labeled_share, lr)
    lengths = {len(values) for values in given if isinstance(values, Sequence)}
    if len(lengths) > 1:
        raise ValueError(f"lists of lengths {sorted(lengths)}, expected one length: a point needs an entry of each")
    length = max(lengths, default=1)
    columns: list[Any] = [list(values) if isinstance(values, Sequence) else [values] * length for values in given]
    together = _together(columns[0])
    points = [
        setting(method, prior, labeled_share=share, lr=rate, together=together)
        for method, prior, share, rate in zip(*columns, strict=True)
    ]
    return jax.tree.map(lambda *leaves: jnp.stack(list(map(jnp.asarray, leaves))), *points)
