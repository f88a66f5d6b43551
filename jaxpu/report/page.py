"""The page engine: one Markdown text and its figures as one HTML file that needs neither network nor script.

Markdown is CommonMark with tables, formulas between dollar signs, parts to unfold (``::::: fold Title``) and headings
with an id of their own (``## Title {#id}``). Raw HTML is text. What stands before the first section is the answer; the
contents follow it.
"""

import base64
import functools
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined, TemplateError, TemplateSyntaxError
from latex2mathml.converter import convert
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from mdit_py_plugins.container import container_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin

from jaxpu.plots.kinds import Picture
from jaxpu.report.text import Markdown, plain
from jaxpu.report.words import LOOKS

LARGEST = 3_000_000
"""Bytes that a page may have."""


class PageError(ValueError):
    """A text asks for what the page does not have; the message names it."""


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
    tokens = _parser().parse(text, {})
    ids = _headings(tokens)
    tokens = _with_all_figures(tokens, figures, ids)
    placed = [token.meta["figure"] for token in tokens if token.type == "figure"]
    _check_figures(placed, known)
    env = {"figures": known, "numbers": {name: k + 1 for k, name in enumerate(placed)}, "ids": ids}
    first = next((k for k, token in enumerate(tokens) if token.type == "heading_open" and token.tag == "h2"), None)
    lead, body = (tokens, []) if first is None else (tokens[:first], tokens[first:])
    rendered = (
        _environment()
        .get_template("page.html")
        .render(
            title=next((_words(t) for k, t in enumerate(tokens) if k and tokens[k - 1].tag == "h1"), "jaxpu"),
            style=resources.files("jaxpu.report").joinpath("page.css").read_text(encoding="utf-8"),
            lead=_html(lead, env),
            contents=[Entry(str(t.attrs["id"]), _words(body[k + 1])) for k, t in enumerate(body) if _opens_section(t)],
            body=_html(body, env) + ("</section>\n" if body else ""),
        )
    )
    if len(rendered.encode()) > LARGEST:
        raise PageError(
            f"the page has {len(rendered.encode()):,} bytes, more than {LARGEST:,}: show fewer figures or rows"
        )
    return rendered


def fill(source: str, values: Mapping[str, Any], where: str) -> Markdown:
    """Fill the placeholders of a Markdown text; what is no :class:`Markdown` is escaped.

    Args:
        source: with Jinja2's ``{{ value }}`` and ``{% if %}``; comments are ``<!-- -->``.
        values: what may stand in a placeholder. where: the file, for messages.

    Raises:
        PageError: a placeholder names nothing, with its name.

    >>> fill("# {{ title }}", {"title": "a*b"}, "here")
    '# a\\\\*b'
    >>> fill("{{ titel }}", {}, "here")
    Traceback (most recent call last):
    jaxpu.report.page.PageError: here: 'titel' is undefined
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


@functools.cache
def _environment() -> Environment:
    loader = PackageLoader("jaxpu.report", "")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


@functools.cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.use(dollarmath_plugin, renderer=_formula, double_inline=True).use(container_plugin, "fold", render=_fold)
    parser.core.ruler.before("inline", "own_ids", _own_ids)
    parser.core.ruler.push("look", _look)
    for name, rule in {
        "heading_open": _heading_open,
        "figure": _figure,
        "table_open": _table_open,
        "table_close": _table_close,
        "link_open": _link_open,
    }.items():
        parser.add_render_rule(name, rule)
    return parser


def _html(tokens: list[Token], env: dict[str, Any]) -> str:
    return _parser().renderer.render(tokens, _parser().options, env)


# Before rendering: ids, verdicts, figures


def _own_ids(state: StateCore) -> None:
    """Take ``{#id}`` off the headings."""
    for opening, inline in zip(state.tokens, state.tokens[1:], strict=False):
        if opening.type == "heading_open":
            match = re.search(r"(?<!\\)\{#([\w-]+)\}\s*$", inline.content)
            if match:
                inline.content = inline.content[: match.start()].rstrip()
                opening.attrs["id"] = match[1]


def _look(state: StateCore) -> None:
    """Figures become blocks, verdicts in bold stand apart, the first cell of a row is its head."""
    tokens, first = state.tokens, False
    for k, token in enumerate(tokens):
        if token.type == "inline":
            _verdicts(token.children or [])
            images = [child for child in token.children or [] if child.type == "image"]
            if images:
                _place(tokens, k, images)
        if token.type == "tr_open":
            first = True
        elif token.type in ("th_open", "td_open"):
            token.meta["scope"] = "col" if token.type == "th_open" else "row"
            if first or token.type == "th_open":
                token.attrs["scope"] = token.meta.pop("scope")
            if first and token.type == "td_open":
                token.tag = next(t for t in tokens[k:] if t.type == "td_close").tag = "th"
            if "right" in str(token.attrs.pop("style", "")):
                token.attrs["class"] = "n"
            first = False
    state.tokens = [token for token in tokens if token.type != "nothing"]


def _verdicts(children: list[Token]) -> None:
    for opening, word, closing in zip(children, children[1:], children[2:], strict=False):
        if opening.type == "strong_open" and word.content in LOOKS:
            opening.tag = closing.tag = "span"
            opening.attrs["class"] = LOOKS[word.content]


def _place(tokens: list[Token], k: int, images: list[Token]) -> None:
    """Turn a paragraph that is one ``![](figure:name)`` into a figure."""
    source = str(images[0].attrs.get("src", ""))
    alone = tokens[k - 1].type == "paragraph_open" and len(tokens[k].children or []) == 1
    if not source.startswith("figure:") or not alone:
        raise PageError(
            f"expected ![](figure:name) on a line of its own, got an image {source!r}: pages show the figures of their results"
        )
    tokens[k - 1].type = tokens[k + 1].type = "nothing"
    tokens[k].type, tokens[k].meta["figure"] = "figure", source.removeprefix("figure:")


def _headings(tokens: list[Token]) -> set[str]:
    """Give every heading an id, and return all."""
    ids: set[str] = {"contents"}
    for opening, inline in zip(tokens, tokens[1:], strict=False):
        if opening.type == "heading_open":
            base = str(opening.attrs.get("id") or slug(_words(inline)))
            name, k = base, 1
            while name in ids:
                name, k = f"{base}-{k + 1}", k + 1
            opening.attrs["id"] = name
            ids.add(name)
    return ids


def slug(text: str) -> str:
    """The id of a heading.

    >>> slug("Why Spambase, and not simple images?")
    'why-spambase-and-not-simple-images'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "section"


def _words(inline: Token) -> str:
    return "".join(
        child.content for child in inline.children or [] if child.type in ("text", "code_inline", "math_inline")
    )


def _opens_section(token: Token) -> bool:
    return token.type == "heading_open" and token.tag == "h2"


def _with_all_figures(tokens: list[Token], figures: Sequence[Picture], ids: set[str]) -> list[Token]:
    """Put the figures that the text does not place at the ends of their sections."""
    placed = {token.meta["figure"] for token in tokens if token.type == "figure"}
    waiting = [figure for figure in figures if figure.name not in placed]
    lost = [figure for figure in waiting if figure.section not in ids]
    if lost:
        raise PageError(
            f"figure {lost[0].name!r} belongs to section {lost[0].section!r}, which the page lacks; sections are {', '.join(sorted(ids))}"
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


# Rendering


def _heading_open(renderer: Any, tokens: list[Token], k: int, options: Any, env: dict[str, Any]) -> str:
    if not _opens_section(tokens[k]):
        return renderer.renderToken(tokens, k, options, env)
    close = "" if k == 0 else "</section>\n"
    return f'{close}<section id="{tokens[k].attrs["id"]}">\n<h2>'


def _figure(renderer: Any, tokens: list[Token], k: int, options: Any, env: dict[str, Any]) -> str:
    name = tokens[k].meta["figure"]
    picture: Picture = env["figures"][name]
    source = f"data:image/{'png' if picture.suffix == 'png' else 'svg+xml'};base64,{base64.b64encode(picture.image).decode()}"
    template = _environment().from_string(
        '<figure id="figure-{{ p.name }}"><div class="scroll"><img src="{{ source }}" alt="{{ p.alternative }}"></div>\n'
        "<figcaption><b>Figure {{ number }}.</b> {{ p.caption }}</figcaption></figure>\n"
    )
    return template.render(p=picture, source=source, number=env["numbers"][name])


def _table_open(renderer: Any, tokens: list[Token], k: int, options: Any, env: dict[str, Any]) -> str:
    return '<div class="scroll" role="region" aria-label="Table" tabindex="0"><table>\n'


def _table_close(renderer: Any, tokens: list[Token], k: int, options: Any, env: dict[str, Any]) -> str:
    return "</table></div>\n"


def _link_open(renderer: Any, tokens: list[Token], k: int, options: Any, env: dict[str, Any]) -> str:
    href = str(tokens[k].attrs["href"])
    if href.startswith("figure:"):
        name = href.removeprefix("figure:")
        if name not in env["numbers"]:
            raise PageError(f"no figure {name!r} to refer to; there are {', '.join(env['numbers']) or 'none'}")
        return f'<a href="#figure-{name}">Figure {env["numbers"][name]}'
    if href.startswith("#") and href[1:] not in env["ids"]:
        raise PageError(f"no section {href!r} to link to; sections are {', '.join(sorted(env['ids']))}")
    if not href.startswith(("#", "https://", "http://")):
        raise PageError(f"expected a link to a section (#id) or to the web, got {href!r}: a page stands alone")
    return renderer.renderToken(tokens, k, options, env)


def _fold(renderer: Any, tokens: list[Token], k: int, options: Any, env: dict[str, Any]) -> str:
    if tokens[k].nesting != 1:
        return "</details>\n"
    title = _parser().renderInline(tokens[k].info.strip().removeprefix("fold").strip())
    return f"<details>\n<summary>{title}</summary>\n"


def _formula(latex: str, options: dict[str, Any]) -> str:
    try:
        formula = convert(latex, display="block" if options.get("display_mode") else "inline")
    except Exception as error:
        raise PageError(f"${latex}$ is no formula: {type(error).__name__} {error}") from None
    if "\\" in formula or latex.count("{") != latex.count("}"):
        raise PageError(f"${latex}$ is no formula: a command in it is not known, or a brace is missing")
    return formula
