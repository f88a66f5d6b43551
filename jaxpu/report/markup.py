"""The Markdown of pages: sections with ids, figures by name, formulas as MathML, verdicts set apart.

CommonMark with tables, formulas between dollar signs, parts to unfold (``::::: fold Title``) and headings with an id of
their own (``## Title {#id}``). Raw HTML is text.
"""

import base64
import functools
import re
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from latex2mathml.converter import convert
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from mdit_py_plugins.container import container_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin

from jaxpu.plots.figure import Picture
from jaxpu.report.words import LOOKS


class PageError(ValueError):
    """A text asks for what the page does not have; the message names it."""


@functools.cache
def environment() -> Environment:
    """What fills the HTML templates of this room."""
    loader = PackageLoader("jaxpu.report", "")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


@functools.cache
def parser() -> MarkdownIt:
    """What reads the Markdown of pages, and renders it."""
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


def html(tokens: list[Token], env: dict[str, Any]) -> str:
    """Tokens as HTML; ``env`` has the figures by name, their numbers, and the ids of the page."""
    return parser().renderer.render(tokens, parser().options, env)


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
        raise PageError(f"expected ![](figure:name) on a line of its own, got an image {source!r}: name a figure")
    tokens[k - 1].type = tokens[k + 1].type = "nothing"
    tokens[k].type, tokens[k].meta["figure"] = "figure", source.removeprefix("figure:")


def words(inline: Token) -> str:
    """The words of a heading, without their looks."""
    return "".join(
        child.content for child in inline.children or [] if child.type in ("text", "code_inline", "math_inline")
    )


# Rendering


def opens_section(token: Token) -> bool:
    """Whether a token is the heading of a section."""
    return token.type == "heading_open" and token.tag == "h2"


def _heading_open(renderer: Any, tokens: list[Token], k: int, options: Any, env: dict[str, Any]) -> str:
    if not opens_section(tokens[k]):
        return renderer.renderToken(tokens, k, options, env)
    close = "" if k == 0 else "</section>\n"
    return f'{close}<section id="{tokens[k].attrs["id"]}">\n<h2>'


def _figure(renderer: Any, tokens: list[Token], k: int, options: Any, env: dict[str, Any]) -> str:
    name = tokens[k].meta["figure"]
    picture: Picture = env["figures"][name]
    kind = "png" if picture.suffix == "png" else "svg+xml"
    source = f"data:image/{kind};base64,{base64.b64encode(picture.image).decode()}"
    template = environment().from_string(
        '<figure id="figure-{{ p.name }}"><div class="scroll">'
        '<img src="{{ source }}" alt="{{ p.alternative }}"></div>\n'
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
    title = parser().renderInline(tokens[k].info.strip().removeprefix("fold").strip())
    return f"<details>\n<summary>{title}</summary>\n"


def _formula(latex: str, options: dict[str, Any]) -> str:
    try:
        formula = convert(latex, display="block" if options.get("display_mode") else "inline")
    except Exception as error:
        raise PageError(f"${latex}$ is no formula: {type(error).__name__} {error}") from None
    if "\\" in formula or latex.count("{") != latex.count("}"):
        raise PageError(f"${latex}$ is no formula: a command in it is not known, or a brace is missing")
    return formula
