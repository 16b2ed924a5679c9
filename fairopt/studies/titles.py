"""What tables for readers call the entries and instances of a study: titles in the place of identifiers.

>>> entry_title("drfh"), entry_title("proportional:alpha=2"), entry_title("drfh:best-fit:metric=l2"), entry_title("drfh, whole tasks")
('DRFH', 'Proportional (alpha = 2)', 'DRFH, best-fit (metric = l2)', 'DRFH, whole tasks')
>>> instance_title("google:users=50:servers=100"), instance_title("gpu-lab")
('google, 50 users, 100 servers', 'gpu-lab')
"""

from __future__ import annotations

import re

from fairopt.generators import GENERATORS
from fairopt.models import NOTIONS
from fairopt.wording import plural

__all__ = ["entry_title", "instance_title", "long_title"]

_SHORT = {
    **{name: name.upper() for name in ("drf", "drfh", "cdrf", "tsf", "bbf", "fds", "gfj")},
    **{name: name.capitalize() for name in ("asset", "max-min", "finish-time", "uniform", "proportional", "efficiency")},
    **{"psdsf": "PS-DSF", "rpsdsf": "rPS-DSF", "per-server-drf": "DRF per server"},
}
_COUNTS = ("users", "servers", "queues", "resources")


def entry_title(entry: str) -> str:
    """Return the title of a notion or schedule."""
    spec, comma, rest = entry.partition(", ")
    word, *parts = spec.split(":")
    chosen = [part for part in parts if "=" not in part]
    options = [part.replace("=", " = ") for part in parts if "=" in part]
    return ", ".join([_SHORT.get(word, word), *chosen]) + (f" ({', '.join(options)})" if options else "") + comma + rest


def long_title(entry: str) -> str:
    """Return the full title of the notion of an entry; "" if its short title is all that there is.

    >>> long_title("tsf:best-fit"), long_title("mine.py:fair")
    ('Task share fairness', '')
    """
    word = re.split("[:,]", entry, maxsplit=1)[0]
    return NOTIONS[word].title if word in NOTIONS and _SHORT.get(word) != word.capitalize() else ""


def instance_title(name: str) -> str:
    """Return the title of an instance: that of a generator with its numbers, else its name."""
    word, *parts = name.split(":")
    if word not in GENERATORS or not all("=" in part for part in parts):
        return name
    pairs = [part.split("=", 1) for part in parts]
    return ", ".join([word, *(_pair(key, value) for key, value in pairs)])


def _pair(key: str, value: str) -> str:
    return plural(int(value), key.removesuffix("s")) if key in _COUNTS and value.isdecimal() else f"{key} = {value}"
