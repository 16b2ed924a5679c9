"""The sources of notions as BibTeX: ``references.bib``, one entry for each source that a notion names by its key.

>>> print(bibtex(["MoWalrand2000"]).splitlines()[0])
@article{MoWalrand2000,
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

__all__ = ["bibtex", "entries"]


@cache
def entries() -> dict[str, str]:
    """Return the entries by their keys, in the order of the file."""
    text = files("fairopt.papers").joinpath("references.bib").read_text(encoding="utf-8")
    return {found[1]: found[0] for found in re.finditer(r"^@\w+\{(\w+),\n.*?^\}\n", text, re.MULTILINE | re.DOTALL)}


def bibtex(keys: Iterable[str]) -> str:
    """Return the entries with these keys, each once, in the order of the file."""
    wanted = set(keys)
    return "\n".join(entry for key, entry in entries().items() if key in wanted)
