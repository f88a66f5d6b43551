"""The figures of an experiment: drawn, written beside its tables with an index, and read again."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jaxpu import plots
from jaxpu.plots.figure import Frames, Picture
from jaxpu.plots.frames import NothingToShow
from jaxpu.plots.kinds import DEFAULTS
from jaxpu.report import tables
from jaxpu.report.text import slug
from jaxpu.runs import atomic_write, write_text

INDEX = "figures.json"


class Drawing(NamedTuple):
    """What an experiment's figures came to: pictures, and sentences in place of those that were asked for in vain."""

    pictures: list[Picture]
    sentences: dict[str, list[str]]


def drawn(frames: Frames, resolved: Mapping[str, Any]) -> Drawing:
    """Draw the figures that a configuration asks for, or those of its kind that have something to show."""
    asked = resolved.get("figures") or ()
    kind = tables.kind_of(resolved, frames.summary)
    pictures, sentences = [], {}
    for figure in plots.figures_of(asked or DEFAULTS[kind], frames):
        try:
            pictures.append(plots.draw(figure._replace(section=slug(figure.section))))
        except NothingToShow as reason:
            if asked:
                sentences.setdefault(slug(figure.section), []).append(str(reason))
    return Drawing(pictures, sentences)


def write_pictures(folder: Path, pictures: Sequence[Picture]) -> None:
    """Write pictures into a folder with an index, and remove those of the last index that are no longer there."""
    files = {f"{picture.name}.{picture.suffix}": picture for picture in pictures}
    for entry in _index(folder):
        if entry["file"] not in files:
            (folder / Path(entry["file"]).name).unlink(missing_ok=True)
    for name, picture in files.items():
        atomic_write(folder / name, lambda path, image=picture.image: path.write_bytes(image))
    index = [
        {"file": name, "section": p.section, "caption": p.caption, "alternative": p.alternative}
        for name, p in files.items()
    ]
    if index or folder.exists():
        write_text(folder / INDEX, json.dumps(index, indent=1, ensure_ascii=False) + "\n")


def read_pictures(folder: Path) -> list[Picture]:
    """The pictures that :func:`write_pictures` left; files that are no image in that folder are not read."""
    found = []
    for entry in _index(folder):
        path = folder / entry["file"]
        if path.name == entry["file"] and path.is_file() and not path.is_symlink():
            image = path.read_bytes()
            if image.startswith((b"\x89PNG", b"<?xml", b"<svg")):
                found.append(Picture(path.stem, entry["section"], image, entry["caption"], entry["alternative"]))
    return found


def _index(folder: Path) -> list[dict[str, str]]:
    try:
        return json.loads((folder / INDEX).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
