"""Which data an experiment is about, and how positive and unlabeled rows are drawn from them."""

from pathlib import PurePath
from typing import Any, Literal

from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass

from jaxpu.settings import STRICT, Share, with_defaults


@dataclass(frozen=True, config=STRICT)
class DataConfig:
    """The dataset, and how positive and unlabeled rows are drawn from it.

    Attributes:
        name: a registered dataset (``jaxpu list``); with ``file`` only what it is called, the file's name if not given.
        options: arguments of a registered dataset, of the synthetic ones above all.
        file: your own data: a CSV, Parquet or npz file. All columns but those named next are features, and must be
            numbers (an npz holds them as ``x``). A path is no pattern; a leading ``~`` is the home folder.
        label: its column of true labels, of two values. positive: the one that means positive; not needed for 0/1,
            -1/1, 1/2 and booleans.
        observed: its column of observed labels: labeled positive, or unlabeled, which may be blank. P is the labeled
            rows, U the others, nothing is drawn. labeled: the value that means labeled; not needed for 1/0 and the
            like, or beside unlabeled or a blank. With ``observed`` alone no true label is known: all that needs them is
            left out or refused, ``prior`` must be a number or ``estimate``, and ``test`` is 0 unless given.
        task: what the kind of the experiment says, which sets it.
        scenario: ``case_control``, ``single_set`` (labeled rows leave U) or ``single_set_overlap``.
        mechanism: which positives get labeled: ``scar``, ``sar_lbe_a``, ``sar_lbe_b``, ``sar_pusb``.
        c: label frequency; floor(c n_P) training positives are labeled.
        noise: share of the labeled rows that are negative: so many positives lose their label to random negatives.
        train_prior: resample the rows that are not of the test set until this share of them is positive, by leaving out
            rows of the other class; None leaves them as they are.
        imbalance: thin the training rows out until the largest class has so many times the rows of the smallest
            (a long tail, Cui et al. 2019), the later the class the fewer; 1 leaves them as they are.
        outside: another dataset with rows of the same shape, of which a thousand are looked at after every epoch: how
            sure is the network of what it was never shown? Empty = none.
        test: share of all rows held out (ignored where the dataset has an official split); 0 only where no true label
            is known, and there is nothing to measure.
        validation: nested shares of the training part held out; the first is the one that rules read.
        prior: the π that methods are given: ``unlabeled`` = share of positives in U, ``all`` = in P and U
            together (as in some published code), ``estimate`` = that of U, estimated for each seed from P and U of its
            training rows (:func:`jaxpu.prior.bbe`), or a number. prior_scale multiplies it.
    """

    name: str = "spambase"
    options: dict[str, float | int | str] = Field(default_factory=dict)
    file: str = ""
    label: str = ""
    positive: str | int | float | bool | None = None
    observed: str = ""
    labeled: str | int | float | bool | None = None
    task: Literal["pu", "multiclass"] = "pu"
    imbalance: float = Field(default=1.0, ge=1)
    outside: str = ""
    scenario: Literal["case_control", "single_set", "single_set_overlap"] = "case_control"
    mechanism: Literal["scar", "sar_lbe_a", "sar_lbe_b", "sar_pusb"] = "scar"
    c: float = Field(default=0.1, gt=0, le=1)
    noise: float = Field(default=0.0, ge=0, lt=1)
    train_prior: Share | None = None
    test: float = Field(default=0.2, ge=0, lt=1)
    validation: tuple[Share, ...] = Field(default=(0.1,), min_length=1)
    prior: Literal["unlabeled", "all", "estimate"] | Share = "unlabeled"
    prior_scale: float = Field(default=1.0, gt=0)

    @property
    def truth(self) -> bool:
        """Whether true labels are known, as far as the settings tell."""
        return not self.observed or bool(self.label)

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_own_data(cls, given: Any) -> Any:
        def add(raw: dict[str, Any]) -> dict[str, Any]:
            if not isinstance(raw.get("file"), str) or not raw["file"]:
                return raw
            stem = PurePath(raw["file"]).name.removesuffix(".gz").rpartition(".")[0]
            only_observed = raw.get("observed") and not raw.get("label")
            return {"name": stem or "own", **({"test": 0.0} if only_observed else {}), **raw}

        return with_defaults(given, add)

    @model_validator(mode="after")
    def _own_data_fits(self) -> "DataConfig":
        columns = {name: getattr(self, name) for name in ("label", "positive", "observed", "labeled")}
        given = [name for name, value in columns.items() if value not in ("", None)]
        if not self.file:
            if given:
                raise ValueError(f"{given[0]} names a column or value of data.file, and there is no file; name it")
            return self
        if not (self.label or self.observed):
            raise ValueError("file needs label (its column of true labels) or observed (labeled or unlabeled)")
        for value, column in (("positive", "label"), ("labeled", "observed")):
            if value in given and column not in given:
                raise ValueError(f"{value} is a value of the column that {column} names; name that column")
        if self.options:
            raise ValueError("options are arguments of a registered dataset, and have no effect on a file; remove them")
        if self.observed and (self.c, self.mechanism, self.noise) != (0.1, "scar", 0.0):
            raise ValueError(
                "c, mechanism and noise say which rows get labeled, and observed says so already; remove them"
            )
        if self.observed and self.train_prior is not None:
            raise ValueError("train_prior leaves out rows by their true label, and labels are observed here; remove it")
        if not self.truth and self.prior in ("unlabeled", "all"):
            raise ValueError(
                f"prior is {self.prior!r}, which counts true labels, and there is no label: expected a number, the "
                "share of positives among the unlabeled rows, or estimate"
            )
        return self
