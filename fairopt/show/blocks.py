"""What a result says: tables, sentences and facts, one below the other, without a word on where they are printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from fairopt.show.table import Style, Table

__all__ = ["GAP", "Block", "Facts", "Note"]

GAP = ""  # an empty line of a terminal; on a page, blocks keep their distance anyway


@dataclass(frozen=True, slots=True)
class Note:
    """Sentences.

    Attributes
    ----------
    text : str
        Its lines stay lines.
    lead : str
        What stands before it and stands out.
    style : str
        Of the text.
    warns : bool
        The lead is red.
    whole : bool
        Where no terminal is, it stays on one line, for programs that look for it.
    """

    text: str
    lead: str = ""
    style: Style = ""
    warns: bool = False
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """Words, each with what it is."""

    pairs: tuple[tuple[str, str], ...]


Block: TypeAlias = Table | Note | Facts | str
"""A string is a sentence; `GAP` is an empty line."""
