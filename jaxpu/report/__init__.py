"""From recorded numbers to what people read: ``table.md``, figures and a self-contained ``report.html``."""

from jaxpu.report.page import html
from jaxpu.report.tables import table_markdown, table_rich
from jaxpu.report.write import write

__all__ = ["html", "table_markdown", "table_rich", "write"]
