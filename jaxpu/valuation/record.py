"""What is recorded of a teacher or a student: one row, with its verdict, and its way as columns of lists."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from jax import Array
from jax import numpy as jnp

from jaxpu import collapse, metrics
from jaxpu.config.base import END
from jaxpu.config.guided import SCORES
from jaxpu.runs.job import Run
from jaxpu.train import ProbeInput

PATH = ("accuracy", "auc", "log_loss", "kept")
"""What is recorded of every epoch."""

TWO_CLASSES = "two_classes"
"""Name of the probe that measures two classes as such."""

PLAIN = ("f1", "f1_best", "auc", "average_precision", "ece", "brier", "log_loss", "accuracy")
PLAIN += ("predicted_positive", "score_mean", "score_sd", "prevalence")
"""What :func:`two_classes` measures, in its order."""

_ORACLE = ("f1", "f1_best", "auc")


def two_classes(seen: ProbeInput) -> Array:
    """:data:`PLAIN` metrics of the test rows by the difference of the two logits; they have a threshold and a rate."""
    z = seen.logits(seen.x_test)
    found = metrics.plain_metrics(z[:, 1] - z[:, 0], seen.data.y[seen.data.test])
    return jnp.stack([found[name] for name in PLAIN])


def record(run: Run, history: Mapping[str, np.ndarray]) -> pl.DataFrame:
    """One row: the last epoch, its verdict, and the way there.

    Two classes are measured and judged as such, more by means over them. A filter starves a student if it keeps next to
    nothing: what it keeps is the driver of :func:`jaxpu.collapse.diagnose_run`.
    """
    test = {name.removeprefix("test_"): np.asarray(v, float) for name, v in history.items() if name.startswith("test_")}
    known = {name.removeprefix("oracle_"): values for name, values in test.items()}
    if (two := history.get(f"probe_{TWO_CLASSES}")) is not None:
        known |= {name: np.asarray(two, float)[:, place] for place, name in enumerate(PLAIN)}
        test = {f"oracle_{name}" if name in _ORACLE else name: known[name] for name in PLAIN}
    known["kept"] = np.asarray(history["train_kept"], float)
    trajectory = test | {"loss": np.asarray(history["train_loss"], float)}
    found = collapse.diagnose_run(trajectory, -1, driver=known["kept"], driver_reference=1.0)
    row: dict[str, Any] = {"selection": END, "verdict": str(found.verdict)}
    row |= {name: float(known[name][-1]) for name in (*SCORES, "kept") if name in known}
    row |= {name: float(values[-1]) for name, values in history.items() if _number(name, values)}
    epochs = len(known["kept"])
    path = {"path_epoch": list(range(1, epochs + 1))} | {f"path_{name}": known[name].tolist() for name in PATH}
    return pl.DataFrame([row | path])


def _number(name: str, values: np.ndarray) -> bool:
    return name.startswith(("probe_", "train_loss", "train_relative_risk")) and np.ndim(values) == 1
