"""What scripts/own_data.py compares: estimators of the class prior and models, of jaxpu, simple ones, and of others.

Those of other packages are what a user gets: their defaults, but for what would take minutes a draw (kernel means on
300 rows of P and of U, as ours) and features that are standardised first. Where they ask for a prior, they are told
the estimate of jaxpu.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import jaxpu
from jaxpu import prior
from jaxpu.prior.candidates import log_odds
from jaxpu.tables.candidates import WeightedClassifier, encoder

POINTS, TREES, EPOCHS = 300, 100, 30


class Task:
    """Rows to learn from and rows to score.

    Attributes:
        x: features (n, d). labeled: which have a label (n,). fresh: features of other rows. y: true labels, for the
            oracle. seed: of whatever draws.
    """

    def __init__(self, x: np.ndarray, labeled: np.ndarray, seed: int, fresh: Any = None, y: Any = None):
        self.x, self.labeled, self.seed, self.fresh, self.y = x, labeled, seed, fresh, y

    @functools.cached_property
    def found(self) -> prior.CrossFit:
        """The default candidates, cross-fitted."""
        fold = prior.folds(self.labeled, 5, self.seed)
        return prior.cross_fit(self.x, self.labeled, fold, self.candidates)

    @property
    def candidates(self) -> dict[str, Any]:
        """The default candidates; where there are gaps, linear ones fill them."""
        found = prior.default_candidates(self.seed)
        if np.isnan(self.x).any():
            gaps = encoder([], self.x.shape[1])
            found = {n: make_pipeline(gaps, m) if hasattr(m, "steps") else m for n, m in found.items()}
        return found

    @functools.cached_property
    def share(self) -> float:
        """The estimate of π_U that methods are told, strictly between 0 and 1."""
        return min(max(prior.bbe(self.found.z, self.labeled), 0.01), 0.99)

    @functools.cached_property
    def scaled(self) -> tuple[np.ndarray, np.ndarray]:
        """Both rows, standardised by the first."""
        scaler = StandardScaler().fit(self.x)
        fresh = self.x if self.fresh is None else self.fresh
        return np.asarray(scaler.transform(self.x)), np.asarray(scaler.transform(fresh))


class Method(NamedTuple):
    """A method.

    Attributes:
        run: of a task, π_U or the scores of its fresh rows. others: whether it may fail, being another package's.
    """

    run: Callable[[Task], Any]
    others: bool = False


# Estimators


def ours(name: str, task: Task) -> float:
    """An estimator of jaxpu, on the scores that all share, or on features."""
    entry = prior.METHODS[name]
    if entry.on == "scores":
        return entry.estimate(task.found.z, task.labeled, None)
    if entry.on == "refit":
        return entry.estimate(task.x, task.labeled, task.found, task.candidates)[0]
    return prior.on_features(name, task.x, task.labeled, task.found.fold)


def pulearn_prior(name: str, task: Task) -> float:
    """π_U of an estimator of pulearn, which gives the share of positives among all rows."""
    import pulearn

    alpha = getattr(pulearn, name)().estimate(task.scaled[0], task.labeled.astype(int)).pi
    n_labeled, n_unlabeled = int(task.labeled.sum()), int((~task.labeled).sum())
    return max(0.0, (alpha * (n_labeled + n_unlabeled) - n_labeled) / n_unlabeled)


def toolbox_prior(name: str, task: Task) -> float:
    """π_U of an estimator of pu-toolbox."""
    import pu_toolbox

    means = pu_toolbox.KernelMeanPriorEstimator(
        variant="km2", max_samples_per_group=POINTS, standardize=True, random_state=task.seed
    )
    found = {
        "pen_l1": pu_toolbox.ClassPriorEstimator(),
        "km2": means,
        "recpe": pu_toolbox.ReCPEEstimator(base_estimator=means),
    }
    return found[name].fit(task.scaled[0], task.labeled.astype(int)).estimate()


ESTIMATORS = {name: Method(functools.partial(ours, name)) for name in prior.METHODS} | {
    "pulearn ScarEM": Method(functools.partial(pulearn_prior, "ScarEMPriorEstimator"), others=True),
    "pulearn HistogramMatch": Method(functools.partial(pulearn_prior, "HistogramMatchPriorEstimator"), others=True),
    "pu-toolbox PEN-L1": Method(functools.partial(toolbox_prior, "pen_l1"), others=True),
    "pu-toolbox KM2": Method(functools.partial(toolbox_prior, "km2"), others=True),
    "pu-toolbox ReCPE": Method(functools.partial(toolbox_prior, "recpe"), others=True),
}


# Models


def default(task: Task) -> np.ndarray:
    """What jaxpu.fit gives."""
    fitted = jaxpu.fit(task.x, task.labeled.astype(int), seeds=1, random_state=task.seed)
    return fitted.scorer.score(fitted.decision_function(task.fresh))


def naive(name: str, task: Task) -> np.ndarray:
    """A candidate, fitted to labeled against unlabeled rows."""
    return log_odds(task.candidates[name].fit(task.x, task.labeled.astype(int)), task.fresh)


def oracle(task: Task) -> np.ndarray:
    """Boosting with the true labels of all rows."""
    return log_odds(task.candidates["boosting"].fit(task.x, task.y.astype(int)), task.fresh)


def weighted(task: Task) -> np.ndarray:
    """Boosting with each unlabeled row as both, weighted by its probability (Elkan and Noto 2008)."""
    model = WeightedClassifier(task.candidates["boosting"], random_state=task.seed)
    return model.fit(task.x, task.labeled.astype(int)).decision_function(task.fresh)


def bagging(task: Task) -> np.ndarray:
    """Trees of P against as many rows of U, drawn anew for each (Mordelet and Vert 2014)."""
    rng = np.random.default_rng(task.seed)
    positive, rest = np.flatnonzero(task.labeled), np.flatnonzero(~task.labeled)
    votes = np.zeros(len(task.fresh))
    for _ in range(TREES):
        rows = np.concatenate([positive, rng.choice(rest, len(positive))])
        tree = DecisionTreeClassifier(random_state=int(rng.integers(2**31)))
        votes += np.asarray(tree.fit(task.x[rows], task.labeled[rows]).predict_proba(task.fresh))[:, 1]
    return votes


def network(task: Task) -> np.ndarray:
    """An MLP with nnPU's risk."""
    s, share = task.labeled.astype(int), task.share
    fitted = jaxpu.fit(task.x, s, method="nnpu", prior=share, seeds=1, epochs=EPOCHS, lr=1e-3)
    return fitted.scorer.score(fitted.decision_function(task.fresh))


def pulearn_model(name: str, task: Task) -> np.ndarray:
    """A classifier of pulearn."""
    import pulearn

    found = {
        "elkan_noto": lambda: pulearn.ElkanotoPuClassifier(task.candidates["boosting"], random_state=task.seed),
        "bagging": lambda: pulearn.BaggingPuClassifier(n_estimators=TREES, random_state=task.seed),
        "nnpu": lambda: pulearn.NNPUClassifier(task.share, random_state=task.seed),
    }
    x, fresh = task.scaled
    return found[name]().fit(x, task.labeled.astype(int)).predict_proba(fresh)[:, 1]


def toolbox_model(name: str, task: Task) -> np.ndarray:
    """A classifier of pu-toolbox, or the one that its pipeline chooses."""
    import pu_toolbox

    x, fresh = task.scaled
    s = task.labeled.astype(int)
    if name == "pipeline":
        return pu_toolbox.PUPipeline(random_state=task.seed).fit_evaluate(x, s).final_model.decision_function(fresh)
    found = {
        "elkan_noto": lambda: pu_toolbox.ElkanNotoClassifier(random_state=task.seed),
        "upu": lambda: pu_toolbox.UPUClassifier(task.share, random_state=task.seed),
        "nnpu": lambda: pu_toolbox.NonNegativePUClassifier(class_prior=task.share, random_state=task.seed),
    }
    return found[name]().fit(x, s).decision_function(fresh)


MODELS = {
    "jaxpu.fit": Method(default),
    "naive boosting": Method(functools.partial(naive, "boosting")),
    "naive logistic C=0.03": Method(functools.partial(naive, "logistic C=0.03")),
    "Elkan-Noto-weighted boosting": Method(weighted),
    "PU bagging": Method(bagging),
    "oracle boosting": Method(oracle),
}
OTHER_MODELS = {
    "nnPU network": Method(network),
    "pulearn ElkanotoPu": Method(functools.partial(pulearn_model, "elkan_noto"), others=True),
    "pulearn BaggingPu": Method(functools.partial(pulearn_model, "bagging"), others=True),
    "pulearn NNPU": Method(functools.partial(pulearn_model, "nnpu"), others=True),
    "pu-toolbox ElkanNoto": Method(functools.partial(toolbox_model, "elkan_noto"), others=True),
    "pu-toolbox UPU": Method(functools.partial(toolbox_model, "upu"), others=True),
    "pu-toolbox nnPU": Method(functools.partial(toolbox_model, "nnpu"), others=True),
    "pu-toolbox PUPipeline": Method(functools.partial(toolbox_model, "pipeline"), others=True),
}
