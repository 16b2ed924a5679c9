"""OpenDocument spreadsheets for tests, written by hand: what other programs write is more, and means the same."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

_NAMES = " ".join(f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text"))


def cell(value: Any) -> str:
    """A cell; text that begins with ``<`` is one already."""
    if value is None or value == "":
        return "<table:table-cell/>"
    if isinstance(value, str) and value.startswith("<"):
        return value
    if isinstance(value, bool):
        return f'<table:table-cell office:value-type="boolean" office:boolean-value="{str(value).lower()}"/>'
    if isinstance(value, int | float):
        return f'<table:table-cell office:value-type="float" office:value="{value!r}"><text:p>{value:.2f}</text:p></table:table-cell>'
    return f'<table:table-cell office:value-type="string"><text:p>{escape(value)}</text:p></table:table-cell>'


def sheet(name: str, rows: Sequence[Sequence[Any] | str]) -> str:
    """A sheet; a row that is text is XML."""
    lines = [each if isinstance(each, str) else f"<table:table-row>{''.join(map(cell, each))}</table:table-row>" for each in rows]
    return f"<table:table table:name={quoteattr(name)}>{''.join(lines)}</table:table>"


def write(path: Path, sheets: Mapping[str, Sequence[Sequence[Any] | str]], head: str = "") -> Path:
    """Write a spreadsheet."""
    tables = "".join(sheet(name, rows) for name, rows in sheets.items())
    body = f"<office:body><office:spreadsheet>{tables}</office:spreadsheet></office:body>"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", f'<?xml version="1.0"?>{head}<office:document-content {_NAMES}>{body}</office:document-content>')
    return path
