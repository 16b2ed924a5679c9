"""XML as elements with lines; what may expand without end is refused."""

from __future__ import annotations

import pytest

import fairopt as fo
from fairopt.formats.xml_elements import parse_xml


def test_elements_have_their_lines_and_texts() -> None:
    """Text of an element is its own, without that of the elements in it; comments are no text."""
    root = parse_xml('<?xml version="1.0"?>\n<!-- x -->\n<a k="1&amp;2">\n  x<!-- y -->y<b/>z\n</a>', "f.xml")
    assert (root.name, root.attributes, root.line, root.text.split()) == ("a", {"k": "1&2"}, 3, ["xyz"])
    assert [(child.name, child.line) for child in root.children] == [("b", 4)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<a>\n<b></a>", "f.xml, line 2: this is not XML .mismatched tag."),
        ("", "f.xml, line 1: this is not XML .no element found."),
        ('<!DOCTYPE a [<!ENTITY x "y">]>\n<a>&x;</a>', "f.xml, line 1: the file declares a document type .DOCTYPE."),
        ('\n<!DOCTYPE a SYSTEM "file:///secret"><a/>', "f.xml, line 2: the file declares a document type"),
        ("<a>&x;</a>", "f.xml, line 1: this is not XML .undefined entity."),
    ],
)
def test_what_is_no_plain_xml_is_refused(text: str, message: str) -> None:
    """With the line."""
    with pytest.raises(fo.InvalidInstance, match=message):
        parse_xml(text, "f.xml")


def test_elements_have_a_limit_and_may_be_deep() -> None:
    """A hundred thousand levels are read without recursion."""
    depth = 100_000
    assert parse_xml("<a>" * depth + "</a>" * depth, "f.xml").name == "a"
    with fo.reading_limit(max_bytes=40_000), pytest.raises(fo.InvalidInstance, match="holds more than"):
        parse_xml("<a>" + "<b/>" * 2_000 + "</a>", "f.xml")
