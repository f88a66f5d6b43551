"""From recorded numbers to what people read: ``table.md``, figures and a self-contained ``report.html``.

One engine renders all pages: a Markdown text with placeholders and the figures that belong to it.
"""

from jaxpu.report.experiment import frames_of, write
from jaxpu.report.page import PageError, page

__all__ = ["PageError", "frames_of", "page", "write"]
