"""A page as its elements, read by the standard library's parser."""

from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Element:
    def __init__(self, tag, attributes):
        self.tag, self.attributes, self.children = tag, attributes, []

    @property
    def text(self):
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def has(self, kind):
        return kind in (self.attributes.get("class") or "").split()

    def all(self, tag=None, kind=None, **attributes):
        """Every element below with this tag, class and attributes, in the order of the page."""
        for child in self.children:
            if isinstance(child, str):
                continue
            named = {key.replace("_", "-"): str(value) for key, value in attributes.items()}
            if (
                tag in (None, child.tag)
                and (kind is None or child.has(kind))
                and named.items() <= child.attributes.items()
            ):
                yield child
            yield from child.all(tag, kind, **attributes)

    def one(self, tag=None, kind=None, **attributes):
        (found,) = self.all(tag, kind, **attributes)
        return found

    def rows(self):
        """Cells of a table: by row, by column, the exact value where there is one."""
        columns = [head.text for head in self.one("thead").all("th")]
        return [
            {
                name: float(cell.attributes["data-value"]) if "data-value" in cell.attributes else cell.text
                for name, cell in zip(columns, row.all("td"), strict=True)
            }
            for row in self.one("tbody").all("tr")
        ]


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open = [Element("document", {})]

    def handle_starttag(self, tag, attrs):
        element = Element(tag, dict(attrs))
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attrs):
        self.open[-1].children.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data):
        self.open[-1].children.append(data)


def read(path):
    return parsed(path.read_text(encoding="utf-8"))


def parsed(text):
    reader = _Reader()
    reader.feed(text)
    assert len(reader.open) == 1, f"<{reader.open[-1].tag}> is not closed"
    return reader.open[0]
