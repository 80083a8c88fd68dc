"""Pictures of specs."""

from __future__ import annotations

from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

import constrain
from constrain.drawing import spec_page

TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "pattern": "^[a-z<&]+$"},
                "next": {"$ref": "#/$defs/node"},
            },
            "required": ["name"],
        }
    },
}
SPECS = {
    "regex": lambda: constrain.regex(r"(ab|c[^d-f]{2,5})*é?\p{L}+(?!x)[a-z]{3,}"),
    "choice": lambda: constrain.choice(["<a>", "b & c", "d " * 50]),
    "many": lambda: constrain.choice([f"option {i}" for i in range(1000)]),
    "schema": lambda: constrain.json_schema(TREE),
    "grammar": lambda: constrain.grammar(
        'start: "a" start "<b>" | NAME ~ 2..3\nNAME: /[a-z]+/\n%ignore " "\n'
    ),
    "both": lambda: constrain.regex("a") | constrain.json_schema({"maxLength": 3}),
}


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.anchors.add(value or "")
            elif name in ("href", "xlink:href"):
                self.links.add(value or "")


@pytest.mark.parametrize("name", SPECS)
def test_every_link_leads_somewhere(name: str) -> None:
    """A page is whole: its pictures are well-formed, and what is named in one is drawn in another."""
    page = spec_page(SPECS[name]())
    reader = _Page()
    reader.feed(page)
    assert reader.links and {"#" + anchor for anchor in reader.anchors} >= reader.links
    pictures = page.split("<svg")[1:]
    assert len(pictures) >= len(reader.anchors)
    for picture in pictures:
        ElementTree.fromstring(
            '<svg xmlns:xlink="http://www.w3.org/1999/xlink"' + picture.split("</svg>")[0] + "</svg>"
        )


def test_texts_of_users_are_text() -> None:
    """Nothing that a spec says becomes markup."""
    page = spec_page(constrain.choice(["<script>alert(1)</script>", "</svg>"]))
    assert "<script>" not in page and "&lt;script&gt;" in page
    page = spec_page(constrain.json_schema({"properties": {"<b>&": {"type": "string"}}}))
    assert "<b>" not in page


def test_what_is_left_out_is_counted() -> None:
    """A choice of many options says how many it doesn't show."""
    assert "800 more" in spec_page(SPECS["many"]())
