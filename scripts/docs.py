"""Write the API pages, from the docstrings, and the guide's pages beside them; a warning is an error.

python scripts/docs.py [FOLDER]     # build/docs if not given; open FOLDER/index.html
"""

import pkgutil
import re
import sys
import tempfile
import warnings
from pathlib import Path

import pdoc
from pdoc import render

import jaxpu

GUIDE = Path(jaxpu.__file__).parent / "guide"
COMMANDS = ("__main__", "cli")
"""What is called by the command; its help says how."""
FOREIGN = ("PydanticDataclass", "ArrayTree")
"""Types of pydantic and optax that those name without importing them; what a warning says of others is ours to mend."""
ORDER = ("first_sweep", "own_loss", "your_csv", "unknown_prior", "which_method", "verdicts", "adding_method", "scale")


def guide(where: Path) -> None:
    """Write the guide as a package ``guide`` whose modules have a page each as their docstring."""
    pages = {path.stem: path.read_text(encoding="utf-8") for path in GUIDE.glob("*.md")}
    assert set(pages) == set(ORDER), f"a page has no place in the guide's order: {sorted(set(pages) ^ set(ORDER))}"
    where.mkdir()
    links = []
    for name in ORDER:
        title, _, body = pages[name].partition("\n")
        links.append(f"- [{title.lstrip('# ')}](guide/{name}.html)")
        body = re.sub(r"\]\((\w+)\.md(#\w+)?\)", r"](\1.html\2)", body)
        (where / f"{name}.py").write_text(f"{pages[name][: len(title)] + body!r}\n", encoding="utf-8")
    head = f"# The guide\n\n{chr(10).join(links)}\n\nWhat each function takes and gives: `jaxpu`."
    (where / "__init__.py").write_text(f"{head!r}\n", encoding="utf-8")


def main(folder: Path) -> int:
    for name in jaxpu.__all__:  # which are imported when they are asked for
        setattr(jaxpu, name, getattr(jaxpu, name))
    rooms = [f"jaxpu.{found.name}" for found in pkgutil.iter_modules(jaxpu.__path__) if found.name not in COMMANDS]
    render.configure(docformat="google", show_source=False, footer_text=f"jaxpu {jaxpu.__version__}")
    with tempfile.TemporaryDirectory() as below, warnings.catch_warnings(record=True) as caught:
        guide(Path(below) / "guide")
        sys.path.insert(0, below)
        pdoc.pdoc("guide", "jaxpu", *rooms, output_directory=folder)
    ours = [str(one.message) for one in caught if not any(name in str(one.message) for name in FOREIGN)]
    for warning in ours:
        print(warning, file=sys.stderr)
    print(f"{len(list(folder.rglob('*.html')))} pages: {folder / 'index.html'}")
    return int(bool(ours))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if sys.argv[1:] else Path("build/docs")))
