"""What a column of somebody's table is, and its cells as numbers: categories as codes, dates as days, gaps as NaN.

cells ─► learn: a Column (what it is, and how it was read) ─► encode: numbers, of these and of later rows alike
"""

import dataclasses
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Float

from jaxpu.data.cells import GAPS, cut
from jaxpu.data.features import LARGEST

Kind = Literal["number", "boolean", "date", "category", "constant", "empty", "text", "other"]
USED = ("number", "boolean", "date", "category")
"""Kinds that become features."""

MOST_CATEGORIES = 250
"""Categories that are told apart; the rarer ones are one."""

ENOUGH = 0.9
"""Share of cells that must be numbers, or dates, for the others to be taken for gaps."""

DATES = (
    "%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%SZ",
    "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y/%m/%d", "%d.%m.%Y", "%d.%m.%y", "%d.%m.%Y %H:%M",
    "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M", "%d %b %Y", "%d %B %Y", "%b %d, %Y",
)  # fmt: skip
"""How dates are written; of two that read all cells the first is taken, so the day stands before the month."""


@dataclasses.dataclass(frozen=True)
class Column:
    """A column as it was learned: enough to read later rows in the same way.

    Attributes:
        name: of the column. kind: what it is. Only :data:`USED` kinds are features.
        categories: of a category, the most frequent first; a cell's code is its place here.
        form: how dates are written; "," where numbers have a decimal comma.
        gaps: cells without a value. odd: those among them that were filled with something that cannot be read.
        distinct: values. note: what a reader should know of it.
    """

    name: str
    kind: Kind
    categories: tuple[str, ...] = ()
    form: str = ""
    gaps: int = 0
    odd: int = 0
    distinct: int = 0
    note: str = ""


class Cells(NamedTuple):
    """A column as numbers.

    Attributes:
        values: a number a row, NaN for gaps; of categories their code, :data:`MOST_CATEGORIES` for a rare one and one
            more for one that was never seen.
        odd: filled cells that could not be read, and are gaps. unseen: cells with an unseen category.
        examples: of either, a few.
    """

    values: Float[np.ndarray, " n"]
    odd: int = 0
    unseen: int = 0
    examples: tuple[str, ...] = ()


def learn(name: str, cells: pl.Series) -> Column:
    """Say what a column is.

    Args:
        name: of the column. cells: of any type; text as files hold it.

    >>> learn("a", pl.Series(["1.5", "?", None, *["2"] * 20])).kind, learn("b", pl.Series(["red", "blue"] * 9)).kind
    ('number', 'category')
    >>> learn("c", pl.Series(["2024-01-31", "2023-12-01"])).form, learn("d", pl.Series(["yes", "yes"])).kind
    ('%Y-%m-%d', 'constant')
    """
    plain = _plain(cells)
    if plain is None:
        return Column(name, "other", note=f"holds {cells.dtype}, of which no number can be made")
    filled = plain.drop_nulls()
    gaps, distinct = plain.len() - filled.len(), filled.n_unique()
    if not filled.len():
        return Column(name, "empty", gaps=gaps, note="has no value")
    if distinct == 1 and not gaps:
        return Column(name, "constant", distinct=1, note=f"holds {cut(filled[0])} only")
    found = _of_values(name, plain) if plain.dtype != pl.String else _of_text(name, plain, filled)
    if found.kind not in USED:
        return dataclasses.replace(found, gaps=gaps, distinct=distinct)
    found = dataclasses.replace(found, kind="date") if cells.dtype in (pl.Date, pl.Datetime) else found
    values = encode(found, plain)
    if np.isnan(values.values).all():
        return Column(name, "empty", gaps=plain.len(), odd=values.odd, note="has no value that can be read")
    note = found.note
    if values.odd:
        count = f"{values.odd} cells" if values.odd > 1 else "1 cell"
        note = f"{count} that cannot be read as a {found.kind} ({', '.join(values.examples)}) taken for gaps"
    return dataclasses.replace(found, gaps=gaps + values.odd, odd=values.odd, distinct=distinct, note=note)


def encode(column: Column, cells: pl.Series) -> Cells:
    """The cells of a column, or of later rows, as numbers.

    Args:
        column: as learned. cells: of the type that it was learned from, or text.

    >>> encode(Column("b", "category", ("red", "blue")), pl.Series(["blue", None, "green"]))
    Cells(values=array([  1.,  nan, 251.]), odd=0, unseen=1, examples=("'green'",))
    """
    plain = _plain(cells)
    if plain is None:
        return Cells(np.full(cells.len(), np.nan), cells.len())
    if column.kind == "category":
        return _codes(column, (cells if cells.dtype.is_integer() else plain).cast(pl.String))
    if plain.dtype == pl.String:
        if column.kind == "date":
            read = _days(plain, column.form or next(_date_forms(plain.drop_nulls()), DATES[0]))
        else:
            read = _numbers(plain, column.form)
    else:
        read = plain.cast(pl.Float64)
    values = read.fill_null(float("nan")).to_numpy().astype(float)
    too_large = ~(np.abs(np.nan_to_num(values, nan=0.0, posinf=np.inf)) <= LARGEST)
    values = np.where(too_large, np.nan, values)
    odd = np.isnan(values) & plain.is_not_null().to_numpy()
    examples = dict.fromkeys(cut(cell) for cell in plain.filter(pl.Series(odd)).head(50))
    return Cells(values, int(odd.sum()), examples=tuple(examples)[:3])


def _plain(cells: pl.Series) -> pl.Series | None:
    """Cells as numbers, or as text without what means a gap; None where they are neither."""
    kind = cells.dtype
    if kind in (pl.Date, pl.Datetime):
        return cells.cast(pl.Datetime("us")).dt.epoch("us").cast(pl.Float64) / 86_400e6
    if kind in (pl.Duration, pl.Time):
        return cells.cast(pl.Duration("us")).dt.total_microseconds().cast(pl.Float64) / 86_400e6
    if kind == pl.Boolean or kind.is_numeric():
        numbers = cells.cast(pl.Float64)
        return numbers.fill_nan(None)
    if kind == pl.Null:
        return cells.cast(pl.String)
    if kind == pl.Object:
        cells = pl.Series(
            [None if cell is None or cell != cell else str(cell) for cell in cells.to_list()], dtype=pl.String
        )
    elif kind not in (pl.String, pl.Categorical, pl.Enum):
        return None
    text = cells.cast(pl.String).str.strip_chars()
    return text.set(text.str.to_lowercase().is_in(list(GAPS)), None)


def _of_values(name: str, values: pl.Series) -> Column:
    """A column that came as numbers."""
    known = set(values.drop_nulls().unique().head(3).to_list())
    return Column(name, "boolean" if known <= {0.0, 1.0} else "number", note=_counter(values))


def _of_text(name: str, text: pl.Series, filled: pl.Series) -> Column:
    lower = filled.str.to_lowercase()
    if lower.is_in(["true", "false"]).all():
        return Column(name, "boolean")
    for comma in ("", ","):
        read = _numbers(filled, comma)
        if _share_read(read) >= ENOUGH:
            number = _of_values(name, _numbers(text, comma))
            return dataclasses.replace(number, form=comma, note="has decimal commas" if comma else number.note)
    form = next(_date_forms(filled), None)
    if form is not None:
        return Column(name, "date", form=form, note=_day_first(form))
    if filled.n_unique() == filled.len() and filled.len() > 1:
        return Column(name, "text", note="is text that never repeats")
    counts = filled.value_counts(sort=True)
    counts = counts.sort(["count", counts.columns[0]], descending=[True, False])
    kept = tuple(counts[counts.columns[0]].head(MOST_CATEGORIES).to_list())
    rest = counts.height - len(kept)
    return Column(name, "category", kept, note=f"the {rest} rarest values count as one" if rest else "")


def _numbers(text: pl.Series, comma: str) -> pl.Series:
    """Text as numbers, null where it is none; true and false are 1 and 0."""
    lower = text.str.to_lowercase()
    if comma:
        text = text.set(~text.str.contains(r"^[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?$"), None)
        text = text.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
    found = text.cast(pl.Float64, strict=False)
    return found.set(lower == "true", 1.0).set(lower == "false", 0.0)


def _date_forms(filled: pl.Series) -> Iterator[str]:
    """The ways to write dates that read nearly all cells, the best first."""
    if not len(filled):
        return
    likely = [form for form in DATES if _share_read(_days(filled.head(200), form)) >= ENOUGH / 2]
    shares = {form: _share_read(_days(filled, form)) for form in likely}
    yield from sorted((form for form in likely if shares[form] >= ENOUGH), key=lambda form: -shares[form])


def _share_read(cells: pl.Series) -> float:
    return 1 - cells.null_count() / cells.len()


def _days(text: pl.Series, form: str) -> pl.Series:
    """Text as days since 1970, null where it is no date of that form."""
    return text.str.to_datetime(form, strict=False, time_unit="us").dt.epoch("us").cast(pl.Float64) / 86_400e6


def _day_first(form: str) -> str:
    return "is read with the day before the month" if form.startswith("%d/%m") else ""


def _counter(values: pl.Series) -> str:
    """What to say of a column that counts its rows."""
    numbers = values.drop_nulls().to_numpy()
    if len(numbers) < 10 or len(numbers) < len(values) or (np.abs(np.diff(numbers)) != 1).any():
        return ""
    steps = np.unique(np.diff(numbers))
    return "counts the rows, and is used as a feature: name it an identifier if it is one" if len(steps) == 1 else ""


def _codes(column: Column, text: pl.Series) -> Cells:
    places = {name: float(k) for k, name in enumerate(column.categories)}
    # a rare category is known only by not being among the frequent ones, where there were more than are told apart
    other = float(MOST_CATEGORIES) if len(column.categories) == MOST_CATEGORIES else MOST_CATEGORIES + 1.0
    found = [float("nan") if cell is None else places.get(cell, other) for cell in text.to_list()]
    values = np.array(found, float)
    strange = values == MOST_CATEGORIES + 1
    examples = dict.fromkeys(cut(cell) for cell in text.filter(pl.Series(strange)).head(50))
    return Cells(values, unseen=int(strange.sum()), examples=tuple(examples)[:3])


def as_dict(column: Column) -> dict[str, Any]:
    """A column as plain values, for JSON."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(column).items()}


def of_dict(raw: dict[str, Any]) -> Column:
    """What :func:`as_dict` wrote.

    >>> of_dict(as_dict(Column("a", "category", ("x",)))).categories
    ('x',)
    """
    values: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in raw.items()}
    return Column(**values)
