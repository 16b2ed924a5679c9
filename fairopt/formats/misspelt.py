"""What a change most likely misspells: a new resource of the cluster that nobody demands.

>>> data = {"shared": {"ansys": 10, "ansis": 4}, "users": [{"name": "L", "demand": {"ansys": 1}}]}
>>> [hint for _, hint in undemanded({"shared": {"ansys": 10}}, data, [("shared.ansis=4", ("shared", "ansis"))])]
['nobody demands the new shared resource "ansis" (did you mean "ansys"?); give a demand for it, too, as in users.NAME.demand.ansis=1']
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fairopt.wording import brief, did_you_mean

__all__ = ["undemanded"]


def undemanded(before: Any, data: Mapping[str, Any], changes: Iterable[tuple[str, tuple[str, ...]]]) -> Iterator[tuple[str, str]]:
    """Yield the text of each change, of these texts and paths, that adds a shared resource which is in no demand; and what to say of it."""
    known, now = (each.get("shared") if isinstance(each, Mapping) else None for each in (before, data))
    known, now = (each if isinstance(each, Mapping) else {} for each in (known, now))
    demanded = [name for user in data.get("users", ()) for name in _demanded(user)]
    for text, path in changes:
        name = path[-1]
        if path[:1] == ("shared",) and name in now and name not in known and name not in demanded:
            hint = did_you_mean(name, [brief(each) for each in dict.fromkeys([*known, *demanded])])
            yield (
                text,
                f'nobody demands the new shared resource "{brief(name)}"{hint}; '
                f"give a demand for it, too, as in users.NAME.demand.{brief(name)}=1",
            )


def _demanded(user: Mapping[str, Any]) -> Iterator[str]:
    entries = user.get("on")
    for each in (user, *(entries if isinstance(entries, list) else ())):
        demand = each.get("demand") if isinstance(each, Mapping) else None
        yield from demand if isinstance(demand, Mapping) else ()
