"""One Markdown text as one page: figures inside, verdicts set apart."""

import base64
import re
from html import escape
from importlib import resources
from pathlib import Path

from markdown_it import MarkdownIt


def markdown_page(text: str, folder: Path) -> str:
    """A Markdown text, with the figures that it names beside it, as one self-contained page.

    Args:
        text: Markdown, its first line the title. folder: where the paths of its figures start.
    """
    body = MarkdownIt("commonmark").enable("table").render(text)

    def inline(match: re.Match[str]) -> str:
        path = (folder / match[1]).resolve()
        kind = "svg+xml" if path.suffix == ".svg" else "png"
        return f'src="data:image/{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"'

    body = re.sub(r'src="([^"]+)"', inline, body)
    body = re.sub(r"<p>(<img [^>]*>)</p>", r"<figure>\1</figure>", body)
    for verdict in ("supported", "not supported", "refuted"):
        look = "verdict healthy" if verdict == "supported" else "verdict"
        body = body.replace(f"<strong>{verdict}</strong>", f'<span class="{look}">{verdict}</span>')
    style = resources.files("jaxpu.report").joinpath("page.css").read_text(encoding="utf-8")
    title = escape(text.splitlines()[0].removeprefix("# "))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )
