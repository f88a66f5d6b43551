"""A strict reader of pages, for tests."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """Reads a page strictly: every tag closed in order, and what it shows, loads and links to."""

    VOID = ("meta", "img", "br", "hr")

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.ids, self.links, self.images = [], [], [], [], []
        self.alts, self.captions, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        attributes = dict(attrs)
        assert not any(name.startswith("on") for name in attributes)
        assert not {"data", "srcset"} & {*attributes}
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.links += [attributes["href"]] if "href" in attributes else []
        if tag == "img":
            self.images.append(attributes["src"])
            self.alts.append(attributes["alt"])
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "figcaption":
            self.captions.append("")

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data
        if "figcaption" in self.open:
            self.captions[-1] += data
