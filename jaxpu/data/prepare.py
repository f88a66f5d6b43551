"""The data of one run: which arrays it shares with others, and the row numbers that are its seed's own.

    Dataset ──► Arrays, shared by all runs
       └─ seed ──► split ──► long tail ──► labeled / unlabeled ──► Rows, Prepared

Where labels are observed nothing is drawn: P is the rows with s = 1, and U those with s = 0. In a single set U is what
is left of the sample, in case-control a sample of its own: the rows are the same, and the prior is the share of
positives among those of U in both. ``single_set_overlap`` puts the labeled rows into U as well. All parts are
stratified by s, so that the same rows come out whether the true labels are known or not.
"""

from typing import NamedTuple

import numpy as np

from jaxpu.config import ConfigError, DataConfig, digest
from jaxpu.data import sampling
from jaxpu.data.content import arrays, identity, labels_of
from jaxpu.data.dataset import Dataset
from jaxpu.data.loading import keep
from jaxpu.data.shifts import resampled


class Rows(NamedTuple):
    """What of :class:`jaxpu.train.Data` is a seed's own; equal in shape for all seeds of a data configuration."""

    train: np.ndarray
    val: np.ndarray
    val_pu: np.ndarray
    test: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    n_labeled: np.int32
    n_train: np.int32
    n_val_labeled: np.int32
    n_val_pu: np.int32
    outside: np.ndarray

    def padded(self, train: int, val_pu: int) -> "Rows":
        """The same with ``train`` and ``val_pu`` rows in all: padding lets label frequencies share a program."""
        longer = {"train": np.pad(self.train, (0, train - len(self.train)))}
        return self._replace(**longer, val_pu=np.pad(self.val_pu, (0, val_pu - len(self.val_pu))))


class Prepared(NamedTuple):
    """One seed of one data configuration: rows, sizes, and what methods are given: the prior, rows of every class.

    Where no true label is known the classes are unlabeled and labeled.
    """

    rows: Rows
    val_sizes: tuple[tuple[str, int], ...]
    prior: float
    class_counts: tuple[int, ...]


def prepare(config: DataConfig, dataset: Dataset, seed: int) -> Prepared:
    """Split, label and standardise one seed; the same for every method.

    Raises:
        ConfigError: for shares that leave a part empty, or settings that the labels do not allow.

    >>> from jaxpu.data import load
    >>> config = DataConfig(name="gaussians", options={"n": 60})
    >>> prepared = prepare(config, load(config), 0)
    >>> len(prepared.rows.train), int(prepared.rows.n_labeled)
    (44, 1)
    """
    key = (digest(*identity(config, dataset)), seed)
    if key not in _PREPARED:
        found = _prepare(config, dataset, seed)
        held = sum(np.asarray(part).nbytes for part in found.rows)
        keep(_PREPARED, key, found, most=max(MOST_BYTES // held, 16))
    return _PREPARED[key]


MOST_BYTES = 200_000_000
"""What is kept of prepared seeds, for the other methods and jobs that train them; the oldest are forgotten."""

_PREPARED: dict[tuple[str, int], Prepared] = {}


def _prepare(c: DataConfig, dataset: Dataset, seed: int) -> Prepared:
    labels = labels_of(c, dataset)
    _check(c, dataset)
    try:
        by = labels if dataset.s is None or c.task != "pu" else dataset.s
        split = _split(c, by, seed, dataset.test_rows)
        if c.imbalance > 1:
            split = split._replace(train=sampling.long_tail(labels, split.train, seed, ratio=c.imbalance))
        labeled = _labeled(c, dataset, split, seed)
    except ValueError as error:
        raise ConfigError(f"data: {error}") from None
    if dataset.y is not None and not len(split.test):
        raise ConfigError("data.test: 0 leaves no row to measure on, expected a share in (0, 1) where labels are known")
    if c.task == "pu" and not 0 < labeled.prior < 1:
        raise ConfigError(
            f"data.prior_scale: the class prior given to methods must lie in (0, 1), got {labeled.prior:.3f}"
        )
    mean, sd = np.zeros(dataset.x.shape[1:], np.float32), np.ones(dataset.x.shape[1:], np.float32)
    if dataset.standardize:
        seen = dataset.features(split.train)
        mean, sd = sampling.standardization(seen, np.arange(len(seen)))
    outside = arrays(c, dataset).outside
    rows = _rows(split, labeled, mean, sd, outside)
    counts = np.bincount(labels[rows.train], minlength=int(labels.max(initial=1)) + 1)
    return Prepared(rows, _val_sizes(c, split.validation_sizes), labeled.prior, tuple(counts.tolist()))


def _split(c: DataConfig, labels: np.ndarray, seed: int, test_rows: np.ndarray | None) -> sampling.Split:
    """Training, validation and test rows, the first two resampled if a share of positives is asked for."""
    if c.train_prior is None:
        return sampling.split(labels, seed, test=c.test, validation=c.validation, test_rows=test_rows)
    whole = sampling.split(labels, seed, test=c.test, validation=(), test_rows=test_rows)
    rows = np.concatenate([resampled(labels, whole.train, seed, c.train_prior), whole.test])
    of_test = np.arange(len(rows) - len(whole.test), len(rows))
    part = sampling.split(labels[rows], seed, validation=c.validation, test_rows=of_test)
    return part._replace(
        train=np.sort(rows[part.train]), validation=rows[part.validation], test=np.sort(rows[part.test])
    )


def _check(c: DataConfig, dataset: Dataset) -> None:
    """What labels that are observed leave no room for, and what needs true ones where nobody knows them."""
    if dataset.s is not None and (c.noise or c.train_prior is not None):
        name = "noise" if c.noise else "train_prior"
        raise ConfigError(f"data.{name}: labels of {dataset.name} are observed, not drawn; leave it out")
    if dataset.y is not None or c.task != "pu":
        return
    if c.prior in ("unlabeled", "all"):
        raise ConfigError(
            f"data.prior: {c.prior!r} counts true labels, and {dataset.name} has observed ones only: "
            "expected a number, the share of positives among the unlabeled rows, or estimate"
        )
    if c.imbalance > 1:
        raise ConfigError(f"data.imbalance: thinning classes out needs true labels, and {dataset.name} has none")


def _estimated(x: np.ndarray, labeled: np.ndarray, unlabeled: np.ndarray, seed: int) -> float:
    """The share of positives in U by BBE on cross-fitted scores, half a row away from 0 and 1.

    Args:
        x: training rows. labeled, unlabeled: places of P and U among them, which may overlap.
    """
    from jaxpu import prior  # scikit-learn takes a while to import

    alone = np.setdiff1d(unlabeled, labeled)
    rows = np.concatenate([labeled, alone])
    of_p = np.arange(len(rows)) < len(labeled)
    flat = x[rows].reshape(len(rows), -1).astype(float)
    found = prior.cross_fit(flat, of_p, prior.folds(of_p, 5, seed), prior.default_candidates(seed))
    both = len(unlabeled) - len(alone)
    share = (both + prior.bbe(found.z, of_p) * len(alone)) / len(unlabeled)
    return float(np.clip(share, 0.5 / len(unlabeled), 1 - 0.5 / len(unlabeled)))


class _Labeled(NamedTuple):
    """Places in the training and the validation set, those with a label first, and the prior that methods are given."""

    train: np.ndarray
    n_labeled: int
    val_pu: np.ndarray
    n_val_labeled: int
    prior: float


def _labeled(c: DataConfig, dataset: Dataset, split: sampling.Split, seed: int) -> _Labeled:
    if c.task != "pu":
        return _Labeled(np.arange(len(split.train)), len(split.train), np.arange(0), 0, float("nan"))
    parts = ((split.train, seed), (split.validation, (seed, 1)))
    score = None if dataset.s is not None or c.mechanism == "scar" else _score(dataset, split.train)
    sampled = [_sample(c, dataset, rows, key, score) for rows, key in parts]
    (labeled, unlabeled, priors), (val_labeled, val_unlabeled, _) = sampled
    if c.prior == "estimate":
        priors = {c.prior: _estimated(dataset.features(split.train), labeled, unlabeled, seed)}
    prior = (priors[c.prior] if isinstance(c.prior, str) else c.prior) * c.prior_scale
    both, val_both = np.concatenate([labeled, unlabeled]), np.concatenate([val_labeled, val_unlabeled])
    return _Labeled(both, len(labeled), val_both, len(val_labeled), prior)


def _sample(
    c: DataConfig, dataset: Dataset, rows: np.ndarray, key: sampling.Key, score: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    """Places of P and of U among some rows, drawn or as observed, and the priors that true labels tell."""
    y = None if dataset.y is None else dataset.y[rows]
    if dataset.s is None:
        assert y is not None  # a Dataset has one of them
        q = None if score is None else score[rows]
        drawn = sampling.pu_sample(y, key, scenario=c.scenario, c=c.c, mechanism=c.mechanism, score=q, noise=c.noise)
        return drawn.labeled, drawn.unlabeled, {"unlabeled": drawn.prior, "all": drawn.prior_all}
    s = dataset.s[rows]
    labeled = np.flatnonzero(s == 1)
    unlabeled = np.arange(len(s)) if c.scenario == "single_set_overlap" else np.flatnonzero(s == 0)
    if not len(labeled) or not len(unlabeled):
        which = "labeled" if not len(labeled) else "unlabeled"
        raise ValueError(
            f"no {which} row among {len(s)} of a part; make validation larger, or test and validation smaller"
        )
    if y is None:
        return labeled, unlabeled, {}
    known = {"unlabeled": y[unlabeled], "all": y[np.concatenate([labeled, unlabeled])]}
    return labeled, unlabeled, {name: float(part.mean()) for name, part in known.items()}


def _rows(split: sampling.Split, labeled: _Labeled, mean: np.ndarray, sd: np.ndarray, outside: np.ndarray) -> Rows:
    return Rows(
        train=split.train[labeled.train].astype(np.int32),
        val=split.validation.astype(np.int32),
        val_pu=labeled.val_pu.astype(np.int32),
        test=split.test.astype(np.int32),
        mean=mean,
        sd=sd,
        n_labeled=np.int32(labeled.n_labeled),
        n_train=np.int32(len(labeled.train)),
        n_val_labeled=np.int32(labeled.n_val_labeled),
        n_val_pu=np.int32(len(labeled.val_pu)),
        outside=outside,
    )


def _val_sizes(config: DataConfig, sizes: tuple[int, ...]) -> tuple[tuple[str, int], ...]:
    """Column prefixes: ``val`` for the first share, which rules read, ``val@share`` for every nested one."""
    nested = [(f"val@{share:g}", size) for share, size in zip(config.validation, sizes, strict=True)]
    return (("val", sizes[0]), *(nested if len(nested) > 1 else ()))


_SCORES: dict[str, np.ndarray] = {}


def _score(dataset: Dataset, train: np.ndarray) -> np.ndarray:
    """The propensity score of all rows, fitted on the training rows; computed once for all label frequencies."""
    key = digest(dataset.content, train.tolist())
    if key not in _SCORES:
        keep(_SCORES, key, sampling.propensity_score(dataset.features(), dataset.truth, train), most=64)
    return _SCORES[key]
