"""A page, read by a parser: what a browser would make of it."""

from html.parser import HTMLParser

VOID = {"area", "br", "circle", "hr", "img", "input", "line", "link", "meta", "path", "rect"}


class Page(HTMLParser):
    """Elements with their attributes, the text, and whether each element is closed in its turn."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.words, self.scripts, self._open = [], [], [], []
        self.feed(text)
        self.close()
        assert self._open == [], f"not closed: {self._open}"

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs), f"an attribute twice: {tag} {attrs}"
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open and self._open[-1] in ("script", "style"):
            self.scripts.append(data)
        else:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]
