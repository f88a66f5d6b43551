"""The page engine: one Markdown text and its figures as one HTML file that needs neither network nor script.

What stands before the first section is the answer; the contents follow it. :mod:`jaxpu.report.markup` says what the
Markdown may hold.
"""

import itertools
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, NamedTuple

from jinja2 import Environment, StrictUndefined, TemplateError, TemplateSyntaxError
from markdown_it.token import Token

from jaxpu.plots.figure import Picture
from jaxpu.report.markup import PageError, environment, html, opens_section, parser, words
from jaxpu.report.text import Markdown, plain, slug

LARGEST = 3_000_000
"""Bytes that a page may have."""


class Entry(NamedTuple):
    """A section in the contents."""

    id: str
    text: str


def page(text: str, figures: Sequence[Picture] = ()) -> str:
    """Render a text as a page.

    Args:
        text: Markdown; its first heading is the title. ``![](figure:name)`` on a line of its own places a figure, and
            ``[](figure:name)`` refers to it by its number.
        figures: all of them appear, in their order: those that the text does not place at the end of their section.

    Returns:
        The page; the same input gives the same bytes.

    Raises:
        PageError: a figure, a section or a link leads nowhere, or a formula is none.

    >>> print(page("# A & B" + chr(10) * 2 + "Yes.").partition("<header>")[2].partition("<main>")[0])
    <BLANKLINE>
    <h1 id="a-b">A &amp; B</h1>
    <p>Yes.</p>
    </header>
    <BLANKLINE>
    """
    known = {figure.name: figure for figure in figures}
    tokens = parser().parse(text, {})
    ids = _headings(tokens)
    tokens = _with_all_figures(tokens, figures, ids)
    placed = [token.meta["figure"] for token in tokens if token.type == "figure"]
    _check_figures(placed, known)
    env = {"figures": known, "numbers": {name: k + 1 for k, name in enumerate(placed)}, "ids": ids}
    first = next((k for k, token in enumerate(tokens) if token.type == "heading_open" and token.tag == "h2"), None)
    lead, body = (tokens, []) if first is None else (tokens[:first], tokens[first:])
    rendered = (
        environment()
        .get_template("page.html")
        .render(
            title=next((words(t) for k, t in enumerate(tokens) if k and tokens[k - 1].tag == "h1"), "jaxpu"),
            style=resources.files("jaxpu.report").joinpath("page.css").read_text(encoding="utf-8"),
            lead=html(lead, env),
            contents=[Entry(str(t.attrs["id"]), words(body[k + 1])) for k, t in enumerate(body) if opens_section(t)],
            body=html(body, env) + ("</section>\n" if body else ""),
        )
    )
    if len(rendered.encode()) > LARGEST:
        raise PageError(
            f"the page has {len(rendered.encode()):,} bytes, more than {LARGEST:,}: show fewer figures or rows"
        )
    return rendered


def fill(source: str, values: Mapping[str, Any], where: str) -> Markdown:
    r"""Fill the placeholders of a Markdown text; what is no :class:`Markdown` is escaped.

    Args:
        source: with Jinja2's ``{{ value }}`` and ``{% if %}``; comments are ``<!-- -->``.
        values: what may stand in a placeholder. where: the file, for messages.

    Raises:
        PageError: a placeholder names nothing, with its name.

    >>> fill("# {{ title }}", {"title": "a*b"}, "here")
    '# a\\*b'
    >>> fill("{{ titel }}", {}, "here")
    Traceback (most recent call last):
    jaxpu.report.markup.PageError: here: 'titel' is undefined
    """
    jinja = Environment(
        undefined=StrictUndefined,
        finalize=plain,
        trim_blocks=True,
        comment_start_string="<!--",
        comment_end_string="-->",
    )
    try:
        return Markdown(jinja.from_string(source).render(values))
    except TemplateError as error:
        line = f", line {error.lineno}" if isinstance(error, TemplateSyntaxError) else ""
        raise PageError(f"{where}{line}: {error}") from None


def _headings(tokens: list[Token]) -> set[str]:
    """Give every heading an id, and return all."""
    ids: set[str] = {"contents"}
    for opening, inline in itertools.pairwise(tokens):
        if opening.type == "heading_open":
            base = str(opening.attrs.get("id") or slug(words(inline)))
            name, k = base, 1
            while name in ids:
                name, k = f"{base}-{k + 1}", k + 1
            opening.attrs["id"] = name
            ids.add(name)
    return ids


def _with_all_figures(tokens: list[Token], figures: Sequence[Picture], ids: set[str]) -> list[Token]:
    """Put the figures that the text does not place at the ends of their sections."""
    placed = {token.meta["figure"] for token in tokens if token.type == "figure"}
    waiting = [figure for figure in figures if figure.name not in placed]
    lost = [figure for figure in waiting if figure.section not in ids]
    if lost:
        raise PageError(
            f"figure {lost[0].name!r} belongs to section {lost[0].section!r}, which the page lacks; "
            f"sections are {', '.join(sorted(ids))}"
        )
    found, section = [], ""
    for token in [*tokens, None]:
        if token is None or (token.type == "heading_open" and token.tag in ("h1", "h2")):
            found += [_block(figure.name) for figure in waiting if figure.section == section and section]
            section = str(token.attrs["id"]) if token else ""
        found += [token] if token else []
    return found


def _block(name: str) -> Token:
    return Token("figure", "", 0, meta={"figure": name}, block=True)


def _check_figures(placed: list[str], known: Mapping[str, Picture]) -> None:
    for name in placed:
        if name not in known:
            raise PageError(f"no figure {name!r}; there are {', '.join(known) or 'none'}")
        if placed.count(name) > 1:
            raise PageError(f"figure {name!r} is placed {placed.count(name)} times, expected once")
