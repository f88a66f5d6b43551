"""The page engine: sections, figures, formulas, tables and links of any text, and what it refuses."""

import base64

import pytest
from pages import Page

from jaxpu.plots import Picture
from jaxpu.report import PageError, page
from jaxpu.report.page import fill
from jaxpu.report.text import Markdown, fold, table

ONE, TWO, THREE = (
    Picture(name, section, b"<svg>" + name.encode() + b"</svg>", f"Caption of {name} <b>.", f'"{name}" shows & tells')
    for name, section in (("one", "second"), ("two", "first"), ("three", "second"))
)
TEXT = """\
# A & B

The answer.

## First {#first}

See [](figure:three), [the second](#second) and [the web](https://example.org/).

## Second part {#second}

![](figure:three)

### Below

## First

End.
"""


def test_sections_have_ids_and_stand_in_the_contents_behind_the_answer():
    read = Page(page(TEXT, [ONE, TWO, THREE]))
    assert [name for name in read.ids if not name.startswith("figure-")] == [
        "a-b", "contents", "first", "second", "below", "first-2",
    ]  # fmt: skip
    assert read.text.index("The answer.") < read.text.index("Contents") < read.text.index("See ")
    assert [link for link in read.links if link in ("#first", "#second", "#first-2")][:3] == [
        "#first",
        "#second",
        "#first-2",
    ]
    assert page(TEXT, [ONE, TWO, THREE]).count("<title>A &amp; B</title>") == 1


def test_every_figure_appears_once_numbered_as_it_stands_and_placed_where_asked():
    whole = page(TEXT, [ONE, TWO, THREE])
    read = Page(whole)
    assert [base64.b64decode(source.partition("base64,")[2]) for source in read.images] == [
        TWO.image, THREE.image, ONE.image,
    ]  # fmt: skip
    assert read.captions == [f"Figure {k}. Caption of {p.name} <b>." for k, p in enumerate((TWO, THREE, ONE), 1)]
    assert read.alts == [p.alternative for p in (TWO, THREE, ONE)]
    assert '<a href="#figure-three">Figure 2</a>' in whole
    assert {"figure-one", "figure-two", "figure-three"} <= {*read.ids}


def test_formulas_are_mathml_and_tables_scroll_with_heads():
    cells = table(["a", "b"], [["x_y", Markdown("$\\frac{1}{2}$")]])
    text = f"# t\n\n$\\pi < 1$ and\n\n$$\\sum_i x_i$$\n\n{cells}\n\n{fold('More *words*', 'Inside $5')}\n"
    whole = page(text)
    read = Page(whole)
    assert read.tags.count("math") == 3
    assert 'display="block"' in whole
    assert "mfrac" in read.tags
    assert {"section"}.isdisjoint(read.tags), "there is no section"
    assert '<div class="scroll" role="region" aria-label="Table" tabindex="0"><table>' in whole
    assert whole.count('scope="col"') == 2
    assert '<th scope="row">x_y</th>' in whole
    assert '<td class="n">' in whole
    assert "<summary>More *words*</summary>" in whole, "words from outside are no markup"
    assert "Inside $5" in read.text


def test_verdicts_stand_apart():
    whole = page("# t\n\n**supported**, **selection artefact**, **bold**\n")
    assert '<span class="verdict healthy">supported</span>' in whole
    assert '<span class="verdict">selection artefact</span>' in whole
    assert "<strong>bold</strong>" in whole


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("![](figure:four)", "no figure 'four'; there are one"),
        ("![](figure:one)\n\n![](figure:one)", "'one' is placed 2 times"),
        ("text ![](figure:one)", "on a line of its own"),
        ("![x](/etc/passwd)", "got an image '/etc/passwd'"),
        ("![x](https://example.org/x.png)", "got an image"),
        ("[x](#nowhere)", "no section '#nowhere' to link to; sections are contents"),
        ("[](figure:four)", "no figure 'four' to refer to"),
        ("[x](report.md)", "got 'report.md': a page stands alone"),
        ("[x](../other/report.html)", "a page stands alone"),
        ("$\\nosuchcommand{x}$", "is no formula|not known"),
        ("$\\frac{1$", "is no formula|not known"),
    ],
)
def test_what_leads_nowhere_is_an_error_that_names_it(text, words):
    with pytest.raises(PageError, match=words):
        page(f"# t\n\n## second\n\n{text}\n", [ONE])


def test_a_figure_of_a_section_that_is_not_there_is_an_error():
    with pytest.raises(
        PageError, match="figure 'two' belongs to section 'first', which the page lacks; sections are cont"
    ):
        page("# t\n\n## second\n", [ONE, TWO])


def test_a_page_that_is_too_large_is_refused():
    large = ONE._replace(image=b"<svg>" + b"x" * 3_000_000)
    with pytest.raises(PageError, match=r"more than 3,000,000: show fewer"):
        page("# t\n\n## second\n", [large])


def test_raw_html_is_text():
    read = Page(page("# t\n\n<script>x</script> <b>y</b>\n\n<iframe src=z></iframe>\n"))
    assert not {"script", "b", "iframe"} & {*read.tags}
    assert "<script>x</script> <b>y</b>" in read.text


def test_placeholders_are_escaped_unless_they_are_markdown_and_must_be_there():
    assert fill("{{ a }} {{ b }}<!-- note -->", {"a": "x*y|z", "b": Markdown("**z**")}, "here") == "x\\*y\\|z **z**"
    with pytest.raises(PageError, match="here: 'c' is undefined"):
        fill("{{ c }}", {}, "here")
    with pytest.raises(PageError, match="here, line 2: "):
        fill("\n{% if %}", {}, "here")


def test_the_page_reads_at_400_pixels_and_in_the_dark():
    whole = page("# t\n\nx\n")
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in whole
    assert "@media (prefers-color-scheme: dark)" in whole
    assert ".scroll { overflow-x: auto" in whole
    assert "white-space: nowrap" in whole.partition(".n {")[2].partition("}")[0]
