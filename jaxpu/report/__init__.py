"""From recorded numbers to what people read: ``table.md``, figures and a self-contained ``report.html``.

One engine renders all pages: a Markdown text with placeholders, and the figures that belong to it. :func:`publish` does
all for an experiment, :func:`write_study` for a study.
"""

from jaxpu.report.experiment import check_figures, frames_of, publish, write
from jaxpu.report.own import own_answer, own_page
from jaxpu.report.page import PageError, page
from jaxpu.report.study import Results, write_study
from jaxpu.report.terminal import console

__all__ = [
    "PageError",
    "Results",
    "check_figures",
    "console",
    "frames_of",
    "own_answer",
    "own_page",
    "page",
    "publish",
    "write",
    "write_study",
]
