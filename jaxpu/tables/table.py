"""A table of somebody's own: which rows are labeled, what its columns are, and all of it as numbers.

file, frame or array ─► Table: labeled, identifiers, Schema (its columns), x (n, d) ─► Schema.encode: later rows

Nothing is left out in silence: ``notes`` says what was done, and with how many cells.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Bool, Float
from scipy.sparse import csr_array, issparse

from jaxpu.data import features, files
from jaxpu.data.cells import TableError, cut, listed
from jaxpu.data.labels import coded
from jaxpu.errors import unknown
from jaxpu.tables.columns import USED, Column, encode, learn
from jaxpu.tables.rows import columns_of, sparse_rows

if TYPE_CHECKING:  # scipy's arrays have no types
    Matrix = Any
else:
    Matrix = Float[np.ndarray, "n d"] | csr_array


class Rows(NamedTuple):
    """Rows that were read with a schema.

    Attributes:
        x: as :attr:`Table.x`. notes: what did not fit, a sentence each.
    """

    x: Matrix
    notes: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Schema:
    """The columns of a table, as they were learned.

    Attributes:
        columns: all but the labels. identifiers: names of those that are kept and never features. label: that of the
            labels. named: whether they have names of their own; else they go by their place.
    """

    columns: tuple[Column, ...]
    identifiers: tuple[str, ...] = ()
    label: str = ""
    named: bool = True

    @property
    def features(self) -> tuple[Column, ...]:
        """Columns that are features."""
        return tuple(c for c in self.columns if c.kind in USED and c.name not in self.identifiers)

    @property
    def categories(self) -> list[int]:
        """Places of the features that are categories."""
        return [k for k, column in enumerate(self.features) if column.kind == "category"]

    def encode(self, rows: Any) -> Rows:
        """Further rows as numbers, their columns found by name.

        Args:
            rows: columns by name, a data frame, or an array (m, d), sparse or not, of as many columns as learned.

        Raises:
            ValueError: no feature is there, or an array has another number of columns.
        """
        if issparse(rows):
            places = [self.columns.index(column) for column in self.features]
            return Rows(sparse_rows(rows, len(self.columns))[:, places], ())
        given = columns_of(rows, self)
        found, notes = [], []
        missing = [c.name for c in self.features if c.name not in given]
        n = len(next(iter(given.values()))) if given else 0
        if len(missing) == len(self.features):
            raise ValueError(f"has none of the columns that were learned: {listed(missing)}; it has {listed(given)}")
        if missing:
            notes.append(f"missing, and taken for gaps: {listed(missing)}")
        for column in self.features:
            if column.name in missing:
                found.append(np.full(n, np.nan))
                continue
            cells = encode(column, given[column.name])
            found.append(cells.values)
            examples = ", ".join(cells.examples)
            if cells.odd:
                notes.append(f"{cut(column.name)}: {cells.odd} of {n} cells are no {column.kind}, as {examples}: gaps")
            if cells.unseen:
                notes.append(f"{cut(column.name)}: {cells.unseen} of {n} cells hold what was never seen, as {examples}")
        if extra := sorted(set(given) - {c.name for c in self.columns} - {self.label}):
            notes.append(f"not learned from, and left out: {listed(extra)}")
        order = [name for name in given if name in {c.name for c in self.columns}]
        if self.named and order != [c.name for c in self.columns if c.name in given]:
            notes.append("the columns stand in another order, and were found by name")
        return Rows(np.stack(found, axis=1), tuple(notes))


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
    """Rows of which some are labeled positive.

    Attributes:
        schema: the columns. x: the features as numbers, NaN for gaps, codes for categories; sparse if they came so.
        labeled: where a row is of P. identifiers: the columns that are kept, as they came.
        name: of the file. notes: what was done, a sentence each.
    """

    schema: Schema
    x: Matrix = dataclasses.field(repr=False)
    labeled: Bool[np.ndarray, " n"] = dataclasses.field(repr=False)
    identifiers: pl.DataFrame = dataclasses.field(default_factory=pl.DataFrame, repr=False)
    name: str = "own"
    notes: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether all features are numbers without gaps."""
        return issparse(self.x) or (not self.schema.categories and not np.isnan(self.x).any())


def read(path: str | Path, label: str, positive: Any = None, identifiers: Sequence[str] = ()) -> Table:
    """Read a table of which a column says which rows are labeled.

    Args:
        path: a CSV, gzipped or not, or a Parquet file. label: the column; blank where a row is unlabeled, or any two
            values. positive: the value that means labeled positive, where :func:`jaxpu.data.labels.coded` cannot know.
        identifiers: columns that are kept and never features; if none are named, text that never repeats is one.

    Raises:
        TableError: one line, with what was expected, what came, and what to do.
    """
    path = files.expanded(path)
    told: list[str] = []
    if files.ending(path) in files.ARRAYS:
        raise TableError(f"{path} holds arrays and no columns with names; give a CSV or a Parquet file")
    columns = files.read_table(path, told)
    if len(columns) == 1:
        raise TableError(
            f"{path} has one column, {cut(next(iter(columns)))}; it needs one of labels and others beside it, "
            f"separated by one of: comma, semicolon, tab, bar, blank"
        )
    try:
        found = of_columns(columns, label, positive, identifiers, name=files.stem(path), first_row=1)
    except ValueError as error:
        raise TableError(str(error) if str(path) in str(error) else f"{path}: {error}") from None
    return dataclasses.replace(found, notes=(*told, *found.notes))


def of_columns(
    columns: Mapping[str, Any],
    labels: Any,
    positive: Any = None,
    identifiers: Sequence[str] = (),
    *,
    name: str = "own",
    first_row: int = 0,
    named: bool = True,
) -> Table:
    """A table of columns by name, see :func:`read`.

    Args:
        columns: Series by name. labels: a value a row, or the name of a column. first_row: its number, in messages.

    Raises:
        ValueError: no feature, no two labels, other lengths, or an unknown column.

    >>> import polars as pl
    >>> columns = {"age": pl.Series([30, 40, None]), "who": pl.Series(["a", "b", "c"]), "s": pl.Series([1, None, None])}
    >>> table = of_columns(columns, "s")
    >>> table.labeled.tolist(), [c.name for c in table.schema.features], table.schema.identifiers
    ([True, False, False], ['age'], ('who',))
    """
    columns, label = dict(columns), labels if isinstance(labels, str) else ""
    for column in (*([label] if label else []), *identifiers):
        if column not in columns:
            raise ValueError(unknown("column", column, [cut(name) for name in list(columns)[:20]]))
    if label in identifiers:
        raise ValueError(f"{label!r} is named as label and as identifier; leave one out")
    cells: Any = columns.pop(label) if label else labels
    n = len(next(iter(columns.values()))) if columns else 0
    what = f"column {cut(label)}" if label else "s"
    options: dict[str, Any] = {"column": what, "meaning": "labeled", "setting": "positive", "first_row": first_row}
    labeled = coded(features.plain(cells, n, what), one=positive, blank=True, **options) == 1
    learned = tuple(learn(key, column) for key, column in columns.items())
    kept = tuple(identifiers) or tuple(column.name for column in learned if column.kind == "text")
    schema = Schema(learned, kept, label, named)
    if not schema.features:
        said = "; ".join(f"{cut(column.name)} {column.note}" for column in learned if column.note)
        raise ValueError(f"no column is left as a feature{': ' if said else ''}{said[:600]}")
    x = np.stack([encode(column, columns[column.name]).values for column in schema.features], axis=1)
    identifying = pl.DataFrame({key: columns[key] for key in kept})
    return Table(schema, x, labeled, identifying, name, tuple(_notes(schema, x, labeled)))


def _notes(schema: Schema, x: np.ndarray, labeled: np.ndarray) -> list[str]:
    """What a reader should know of the columns."""
    notes = []
    for column in schema.columns:
        if column.name in schema.identifiers:
            notes.append(f"{cut(column.name)} is kept as an identifier, and is no feature")
        elif column.kind not in USED:
            notes.append(f"{cut(column.name)} {column.note}, and is left out")
        elif column.note:
            link = ":" if column.note[0].isdigit() else ""
            notes.append(f"{cut(column.name)}{link} {column.note}")
    for k, column in enumerate(schema.features):
        if _gives_away(x[:, k], labeled):
            notes.append(
                f"{cut(column.name)} tells labeled from unlabeled rows without a mistake: if it was made from the "
                "labels, take it out"
            )
    return notes


def _gives_away(values: np.ndarray, labeled: np.ndarray) -> bool:
    """Whether labeled and unlabeled rows share no value, and lie on two sides where there are many."""
    values = np.nan_to_num(values, nan=-1e300)
    ours, others = np.unique(values[labeled]), np.unique(values[~labeled])
    if min(labeled.sum(), (~labeled).sum()) < 5 or np.isin(ours, others).any():
        return False
    return len(ours) + len(others) <= 5 or bool(ours[0] > others[-1] or ours[-1] < others[0])
