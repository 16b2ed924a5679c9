"""A page of HTML, read."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any


class Page(HTMLParser):
    """What a browser would see: elements with their attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.inside: list[str] = []
        self.script = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the element."""
        self.elements.append((tag, dict(attrs)))
        self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Leave it."""
        if tag in self.inside:
            while self.inside.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        """Keep text that can be read, and the data block."""
        if self.inside[-1:] == ["script"]:
            self.script = data if self.elements[-1][1].get("id") == "data" else self.script
        elif self.inside[-1:] != ["style"]:
            self.texts.append(data)

    @property
    def text(self) -> str:
        """All that can be read, on one line."""
        return " ".join(" ".join(self.texts).split())

    @property
    def data(self) -> Any:
        """The block of data."""
        return json.loads(self.script)
