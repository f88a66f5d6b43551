"""The ratings of an experiment: drawn, from real classifiers, or from the runs of a sweep."""

import functools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from jaxpu import data
from jaxpu.config import ConfigError, parse
from jaxpu.config.ensemble import RatingsConfig
from jaxpu.ensemble import synthetic_ratings
from jaxpu.results import ResultsError, read_folder, read_parameters
from jaxpu.study import programs
from jaxpu.study.programs import Problem


@functools.lru_cache(maxsize=1)
def problems(config: RatingsConfig, seeds: tuple[int, ...], precision: str) -> Problem:
    """Ratings, labels and labelled masks, with a leading axis of seeds; the last ones are remembered.

    Args:
        config: where they come from. seeds: the seeds. precision: dtype of real ratings; drawn ones have jax's own.

    Raises:
        ConfigError: more positives are asked for than there are. ResultsError: a folder without kept parameters.
    """
    if config.source == "synthetic":
        draw = programs.draw_synthetic(config.n, config.classifiers)
        rate = 0.1 if config.rate is None else config.rate
        return draw(np.array(seeds), rate, config.quality, config.labeled)
    made = [SOURCES[config.source](config, seed) for seed in seeds]
    ratings, labels, labeled = (np.stack(column) for column in zip(*made, strict=True))
    return Problem(ratings.astype(precision), labels.astype(int), labeled)


def classifiers(config: RatingsConfig, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities of ten kinds of classifiers, none of which has seen a label that is not known.

    Of labelled rows they are out of fold (five folds), of the others from a fit on all labelled rows, so that the
    ensemble meets in training what it will meet in use.
    """
    from sklearn.base import clone
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    source = data.load(config.dataset)
    rng = np.random.default_rng([seed, 0])
    rows = thinned(source.y, config.rate, rng)
    x, y = source.x[rows].reshape(rows.size, -1), source.y[rows].astype(int)
    labeled = _stratified(y, config.labeled, rng)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    ratings = np.empty((len(_KINDS), rows.size))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the network stops after a fixed number of passes
        for u, model in enumerate(_models(seed)):
            out = cross_val_predict(clone(model), x[labeled], y[labeled], cv=folds, method="predict_proba")
            ratings[u, labeled] = np.asarray(out)[:, 1]
            ratings[u, ~labeled] = model.fit(x[labeled], y[labeled]).predict_proba(x[~labeled])[:, 1]
    return ratings, y, labeled


def sweep_runs(config: RatingsConfig, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities that the seeds of a sweep give to the rows of their dataset: a base classifier a run.

    The runs saw the labels of their own labelled positives and nothing else of y. Rows are thinned to the rate asked
    for and labelled for the ensemble by this seed.
    """
    ratings, labels = _scores(config.folder, config.method)
    rng = np.random.default_rng([seed, 1])
    rows = thinned(labels, config.rate, rng)
    return ratings[:, rows], labels[rows], _stratified(labels[rows], config.labeled, rng)


def thinned(labels: np.ndarray, rate: float | None, rng: np.random.Generator) -> np.ndarray:
    """Row numbers with positives left out at random until their share is ``rate``; all rows for None.

    Raises:
        ConfigError: the share is above what the data have.

    >>> y = np.array([1, 1, 1, 1, 0, 0, 0, 0])
    >>> y[thinned(y, 0.2, np.random.default_rng(0))].tolist()
    [1, 0, 0, 0, 0]
    """
    positives, negatives = np.flatnonzero(labels == 1), np.flatnonzero(labels != 1)
    if rate is None:
        return np.arange(labels.size)
    keep = round(rate / (1 - rate) * negatives.size)
    if keep > positives.size:
        raise ConfigError(
            f"ratings.rate is {rate}, but only {labels.mean():.3f} of the rows are positive: ask for less"
        )
    return np.sort(np.concatenate([rng.choice(positives, keep, replace=False), negatives]))


def _stratified(labels: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Which rows are labelled: the same share of both classes."""
    labeled = np.zeros(labels.size, bool)
    for value in (0, 1):
        rows = np.flatnonzero(labels == value)
        labeled[rng.choice(rows, round(share * rows.size), replace=False)] = True
    return labeled


_KINDS = (
    "logistic regression",
    "linear discriminant",
    "naive Bayes",
    "9 nearest neighbours",
    "25 nearest neighbours",
    "decision tree",
    "random forest",
    "extra trees",
    "gradient boosting",
    "one hidden layer",
)


def _models(seed: int) -> list[Any]:
    """One classifier of each of ``_KINDS``, scaled where it needs that."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    def scaled(model: Any) -> Any:
        return make_pipeline(StandardScaler(), model)

    return [
        scaled(LogisticRegression(max_iter=2000)),
        scaled(LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")),
        scaled(GaussianNB(var_smoothing=1e-3)),
        scaled(KNeighborsClassifier(9)),
        scaled(KNeighborsClassifier(25)),
        DecisionTreeClassifier(min_samples_leaf=5, random_state=seed),
        RandomForestClassifier(60, random_state=seed),
        ExtraTreesClassifier(60, random_state=seed),
        HistGradientBoostingClassifier(max_iter=50, random_state=seed),
        # early stopping holds out rows of both classes only where there are enough of them
        scaled(MLPClassifier((16,), alpha=1e-2, max_iter=60, solver="adam", tol=0.0, random_state=seed)),
    ]


@functools.lru_cache(maxsize=8)
def _scores(folder: str, method: str) -> tuple[np.ndarray, np.ndarray]:
    """P of every run of a method on all rows of its dataset (runs, rows), and the true labels."""
    from jaxpu import models, sweep
    from jaxpu.sweep.rows import dataset

    resolved, _, _ = read_folder(Path(folder))
    experiment = parse(resolved, where=f"{folder}/config.yaml")
    runs = [r for r in sweep.runs_of(experiment) if method in ("", r.cell.method_name)]
    if len(runs) < 2:
        raise ResultsError(f"{folder} has {len(runs)} runs of method {method!r}; an ensemble needs two or more")
    if len({r.cell.data.name for r in runs}) > 1:
        raise ResultsError(f"the runs of {folder} are on several datasets; an ensemble needs one")
    source = dataset(runs[0].cell.data.name, tuple(sorted(runs[0].cell.data.options.items())))
    scores = []
    for run in runs:
        rows = sweep.prepare(run.cell.data, run.seed).rows
        x = jnp.asarray((source.x - rows.mean) / rows.sd, jnp.float32)
        kept = jax.tree.map(jnp.asarray, read_parameters(Path(folder), run.run_id))
        variables = models.Variables(kept["params"], kept.get("state", {}))
        logits = models.build(run.cell.model, x.shape[1:]).logits(variables, x)
        scores.append(np.asarray(jax.nn.sigmoid(logits), float))
    return np.stack(scores), np.asarray(source.y, int)


SOURCES: dict[str, Callable[..., tuple[Any, Any, Any]]] = {
    "synthetic": synthetic_ratings,
    "classifiers": classifiers,
    "sweep": sweep_runs,
}
"""The sources by name. Synthetic ratings are drawn by a program for all seeds, the others made seed by seed."""
