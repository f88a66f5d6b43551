"""The ratings of an experiment, as arrays of the host: drawn, from real classifiers, or the scores of other runs."""

import functools
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array
from jax import numpy as jnp

from jaxpu import data
from jaxpu.config import ConfigError
from jaxpu.config.ensemble import RatingsConfig
from jaxpu.ensemble.synthetic import synthetic_ratings

START, FACTORS, LABELED = 0, 1, 2
"""What the random numbers of a seed are for."""

DEFAULT_RATE = 0.1
"""Share of positives among drawn instances, where none is asked for."""


class Problem(NamedTuple):
    """Ratings (m, n), labels (n,) and which of them are known (n,)."""

    ratings: Any
    labels: Any
    labeled: Any


@functools.lru_cache(maxsize=1024)
def problem(config: RatingsConfig, seed: int, precision: str) -> Problem:
    """The ratings of one seed, drawn or from real classifiers; remembered, for all methods that combine them.

    Raises:
        ConfigError: more positives are asked for than there are.

    >>> made = problem(RatingsConfig(n=50, classifiers=4), 0, "float64")
    >>> made.ratings.shape, made.ratings.dtype.name, int(made.labeled.sum())
    ((4, 50), 'float64', 25)
    """
    with jax.enable_x64(precision == "float64"):
        if config.source == "synthetic":
            rate = DEFAULT_RATE if config.rate is None else config.rate
            drawn = _draw(seed, rate, config.quality, config.labeled, n=config.n, m=config.classifiers)
            return Problem(*map(np.asarray, drawn))
    ratings, labels, labeled = classifiers(config, seed)
    return Problem(ratings.astype(precision), labels.astype(int), labeled)


@functools.partial(jax.jit, static_argnames=("n", "m"))
def _draw(seed: Array, rate: Array, quality: Array, share: Array, *, n: int, m: int) -> Problem:
    of_seed = jax.random.fold_in(jax.random.key(0), seed)
    drawn = synthetic_ratings(jax.random.fold_in(of_seed, START), n=n, m=m, rate=rate, quality=quality)
    labeled = draw_labeled(jax.random.fold_in(of_seed, LABELED), drawn.labels, share)
    return Problem(drawn.ratings, drawn.labels, labeled)


def draw_labeled(key: Array, labels: Array, share: Array | float) -> Array:
    """Which labels are known: round(share n) instances, with the share of each class that the whole has.

    Of two or more instances of a class at least one is known and one is not.

    >>> y = jnp.array([1, 1, 0, 0, 0, 0, 0, 0])
    >>> known = draw_labeled(jax.random.key(0), y, 0.5)
    >>> int(known.sum()), int((known & (y > 0)).sum())
    (4, 1)
    """
    n = labels.shape[0]
    n_positive = labels.sum()
    of_positives = jnp.clip(jnp.round(share * n_positive), 1, jnp.maximum(n_positive - 1, 1))
    of_negatives = jnp.clip(jnp.round(share * n) - of_positives, 1, jnp.maximum(n - n_positive - 1, 1))
    noise = jax.random.uniform(key, (n,))
    positive = labels > 0
    place = jnp.argsort(jnp.argsort(noise + 2.0 * ~positive))
    of_class = jnp.where(positive, place, place - n_positive)
    return of_class < jnp.where(positive, of_positives, of_negatives)


def classifiers(config: RatingsConfig, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities of ten kinds of classifiers, none of which has seen a label that is not known.

    Of labeled rows they are out of fold (five folds), of the others from a fit on all labeled rows, so that the
    ensemble meets in training what it will meet in use.
    """
    from sklearn.base import clone
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from threadpoolctl import threadpool_limits

    source = data.load(config.dataset)
    rng = np.random.default_rng([seed, 0])
    rows = thinned(source.truth, config.rate, rng)
    x, y = source.features(rows).reshape(rows.size, -1), source.truth[rows].astype(int)
    labeled = _stratified(y, config.labeled, rng)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    ratings = np.empty((len(KINDS), rows.size))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the network stops after a fixed number of passes
        for u, (kind, model) in enumerate(zip(KINDS, _models(seed), strict=True)):
            # boosting's threads wait for each other at every split: forty times as long where other processes compute
            with threadpool_limits(1 if kind == "gradient boosting" else None, user_api="openmp"):
                out = cross_val_predict(clone(model), x[labeled], y[labeled], cv=folds, method="predict_proba")
                ratings[u, labeled] = np.asarray(out)[:, 1]
                ratings[u, ~labeled] = model.fit(x[labeled], y[labeled]).predict_proba(x[~labeled])[:, 1]
    return ratings, y, labeled


def of_scores(
    config: RatingsConfig, seed: int, precision: str, scores: Sequence[np.ndarray], labels: np.ndarray
) -> Problem:
    """Probabilities that other runs give to the rows of their dataset: a base classifier a run.

    Those runs saw the labels of their own labeled positives and nothing else of y. Rows are thinned to the rate asked
    for and labeled for the ensemble by this seed.

    Args:
        config: rate and labeled share. seed: of the thinning and the labels. precision: of the ratings.
        scores: of each run its logits of all rows. labels: true labels of all rows.
    """
    rng = np.random.default_rng([seed, 1])
    rows = thinned(labels, config.rate, rng)
    ratings = np.stack([1 / (1 + np.exp(-np.asarray(z[rows], float))) for z in scores])
    labeled = _stratified(labels[rows], config.labeled, rng)
    return Problem(ratings.astype(precision), labels[rows].astype(int), labeled)


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
    """Which rows are labeled: the same share of both classes."""
    labeled = np.zeros(labels.size, bool)
    for value in (0, 1):
        rows = np.flatnonzero(labels == value)
        labeled[rng.choice(rows, round(share * rows.size), replace=False)] = True
    return labeled


KINDS = (
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
    """One classifier of each of ``KINDS``, scaled where it needs that."""
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
