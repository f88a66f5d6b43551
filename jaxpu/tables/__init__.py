"""Tables of somebody's own: strings, dates and gaps as numbers, with a report of what was done.

file or frame ─► Table: Schema, x, labeled, identifiers ─► candidates: classifiers that take such x
                    └─► Schema.encode: later rows, whose columns are found by name
"""

from jaxpu.tables.columns import Column
from jaxpu.tables.rows import columns_of, sparse_rows
from jaxpu.tables.table import Rows, Schema, Table, of_columns, read

__all__ = ["Column", "Rows", "Schema", "Table", "columns_of", "of_columns", "read", "sparse_rows"]
