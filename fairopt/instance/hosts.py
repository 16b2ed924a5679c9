"""Names of hosts in the way of clusters: ranges in brackets, ``cn[001-003,010],login1``.

`folded` writes what `unfolded` reads, and keeps the order. A host has a name without spaces, commas, brackets and ``|``.

>>> unfolded("cn[001-003,010],login1")
['cn001', 'cn002', 'cn003', 'cn010', 'login1']
>>> folded(["cn1", "cn3", "cn5"]), folded(["r1n08-ib", "r1n09-ib", "r1n10-ib", "r2n08-ib", "r2n09-ib", "r2n10-ib"])
('cn[1,3,5]', 'r[1-2]n[08-10]-ib')

The language is that of ``scontrol show hostnames`` and of ClusterShell's node sets, without steps.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from fairopt.errors import InvalidInstance
from fairopt.instance.labelled import rows_of
from fairopt.validation import FloatArray
from fairopt.wording import brief, exactly, written

__all__ = ["Hosts", "folded", "hosts_of", "is_host", "misplaced", "named_by", "unfolded"]

Hosts: TypeAlias = tuple[tuple[str, ...], ...]
"""The names of the hosts of each row of servers; none where they are not known."""

_FEW = 100  # hosts that a message may name
MOST = 1_000_000  # hosts of an instance, and of a list
_LONGEST = 255  # characters, the limit of domain names
_NOT_IN_NAMES = re.compile(r"[\s,|\[\]\x00-\x1f\x7f]")
_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?", re.ASCII)  # first, last
_NUMBER = re.compile(r"(?<!\d)(\d{1,18})(?!\d)", re.ASCII)


def is_host(name: str) -> bool:
    """Return whether a name can be that of a host.

    >>> is_host("ip-10-0-0-7.ec2.internal"), is_host("two words"), is_host("a,b")
    (True, False, False)
    """
    return _are_hosts((name,))


def unfolded(text: str, before: int = 0) -> list[str]:
    """Return the hosts of a list with ranges in brackets; ``before`` hosts are there already.

    Raises
    ------
    ValueError
        The text is not such a list. Ranges that name too many hosts are refused before the first name is written.
    """
    if text.count("[") != text.count("]"):
        raise ValueError(f'"{text[:60]}" has brackets that do not close')
    names: list[str] = []
    for entry in re.findall(r"(?:[^,\[\]]|\[[^\]]*\])+", text):
        texts = re.split(r"\[([^\]]*)\]", entry.strip())  # plain, ranges, plain, ranges, ..., plain
        ranges = [_ranges(each, entry) for each in texts[1::2]]
        # Two short ranges can name millions of hosts: count the hosts before writing the first of them.
        if before + len(names) + math.prod(sum(len(values) for values, _ in each) for each in ranges) > MOST:
            others = " with those before them" if before else ""
            raise ValueError(f'the ranges of "{text[:60]}" name more than {MOST:,} hosts{others}')
        parts = [[each] for each in texts]
        parts[1::2] = [[f"{value:0{width}d}" for values, width in each for value in values] for each in ranges]
        if sum(max(map(len, part)) for part in parts) > _LONGEST:
            raise ValueError(f'"{entry[:60]}" names a host of more than {_LONGEST} characters')
        names += filter(None, map("".join, itertools.product(*parts)))
    return names


def _ranges(text: str, entry: str) -> list[tuple[range, int]]:
    """Return the values of each range in brackets, and the number of digits that its values have at least."""
    found = []
    for each in text.split(","):
        bounds = _RANGE.fullmatch(each.strip())
        if bounds is None or int(bounds[2] or bounds[1]) < int(bounds[1]):
            raise ValueError(f'"{each[:60]}" in "{entry[:60]}" is not a range such as 001-080')
        found.append((range(int(bounds[1]), int(bounds[2] or bounds[1]) + 1), len(bounds[1])))
    return found


def folded(names: Iterable[str]) -> str:
    """Return hosts as a list with ranges in brackets, in their order; `unfolded` is the inverse.

    Neighbours that differ in their numbers alone share an entry, as far as their order is that of such an entry: the last number runs
    fastest.

    >>> folded(["n9", "n10", "n011", "n012", "gpu", "n1"])
    'n[9-10,011-012],gpu,n1'
    """
    parts = []
    for texts, block in itertools.groupby((_NUMBER.split(name) for name in names), lambda split: split[::2]):
        for box in _boxes([split[1::2] for split in block]):
            parts.append("".join(itertools.chain(*zip(texts, [*map(_bracket, box), ""], strict=True))))
    return ",".join(parts)


def _boxes(numbers: Iterable[Sequence[str]]) -> list[list[list[str]]]:
    """Return lists of values for each number of a name, whose products are these numbers, one list after the other."""
    boxes = [[[digits] for digits in each] for each in numbers]
    for j in reversed(range(len(boxes[0]))):
        joined: list[list[list[str]]] = []
        for box in boxes:
            if joined and joined[-1][:j] == box[:j] and joined[-1][j + 1 :] == box[j + 1 :]:
                joined[-1][j] += box[j]
            else:
                joined.append(box)
        boxes = joined
    return boxes


def _bracket(values: Sequence[str]) -> str:
    """Return values as ranges in brackets; a single one without them."""
    ranges = [(values[0], values[0])]
    for digits in values[1:]:
        first, last = ranges[-1]
        if digits == f"{int(last) + 1:0{len(first)}d}":
            ranges[-1] = (first, digits)
        else:
            ranges.append((digits, digits))
    text = ",".join(first if first == last else f"{first}-{last}" for first, last in ranges)
    return text if len(values) == 1 else f"[{text}]"


# Of an instance ------------------------------------------------------------------------------------------------------------------


def named_by(given: Any, before: int = 0) -> tuple[str, ...]:
    """Return the hosts of a row: of a folded list, or of a sequence of names or of folded lists; of nothing, none.

    Raises
    ------
    ValueError
        What is given is neither, or names what no host is called.
    """
    if given is None or (isinstance(given, float) and given != given):
        return ()
    texts = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) and not isinstance(given, Mapping) else None
    if texts is None or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"the hosts are {written(given)}; give names such as cn[1,3,5], or a list of names")
    names = tuple(texts)
    if not _are_hosts(names):
        found: list[str] = []
        for text in texts:
            found += unfolded(text, before + len(found))
        names = tuple(found)
        if not _are_hosts(names):
            wrong = next(name for name in names if not is_host(name))
            raise ValueError(f'"{brief(wrong)}" is no name of a host: it has a space, a bracket, | or more than {_LONGEST} characters')
    if before + len(names) > MOST:
        raise ValueError(f"an instance names at most {MOST:,} hosts")
    return names


def _are_hosts(names: tuple[str, ...]) -> bool:
    sizes = [len(name) for name in names]
    return not names or (min(sizes) > 0 and max(sizes) <= _LONGEST and not _NOT_IN_NAMES.search("".join(names)))


def misplaced(hosts: Hosts, counts: Sequence[float] | FloatArray, servers: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield rows of servers whose hosts cannot be, and why: their number is not the count, or a host is in two rows.

    >>> for row, why in misplaced((("a", "b"), ("b",), ()), [3, 1, 7], ["old", "new", "rest"]):
    ...     print(row, why)
    0 2 hosts are named (a,b), but the count is 3; name all of them or none, or correct the count
    1 the host "b" is in the row "old", too; a host is in one row, once
    """
    for i, names in enumerate(hosts):
        if names and len(names) != counts[i]:
            verb = "host is" if len(names) == 1 else "hosts are"
            few = folded(names[:_FEW]) + (",..." if len(names) > _FEW else "")
            yield (
                i,
                f"{len(names):,} {verb} named ({brief(few)}), but the count is {exactly(float(counts[i]))}; "
                "name all of them or none, or correct the count",
            )
    if sum(map(len, hosts)) == len(set(itertools.chain.from_iterable(hosts))):
        return
    row_of: dict[str, int] = {}
    for i, names in enumerate(hosts):
        for name in names:
            if row_of.setdefault(name, i) != i:
                yield i, f'the host "{brief(name)}" is in the row "{brief(servers[row_of[name]])}", too; a host is in one row, once'
                return
        if len(set(names)) < len(names):
            twice = next(name for name, number in Counter(names).items() if number > 1)
            yield i, f'the host "{brief(twice)}" is named twice; a host is in one row, once'
            return


def hosts_of(given: Any, counts: FloatArray, servers: Sequence[str]) -> Hosts:
    """Return the hosts of each row of servers, checked: of a sequence with an entry for each row, or of a mapping by label.

    Raises
    ------
    InvalidInstance
    """
    if given is None:
        return ((),) * len(servers)
    rows = rows_of("hosts", given, servers, "server")
    found: list[tuple[str, ...]] = []
    if all(type(row) is tuple for row in rows):  # as another instance has them: then they are checked together
        names = tuple(itertools.chain.from_iterable(rows))
        found = rows if len(names) <= MOST and all(type(name) is str for name in names) and _are_hosts(names) else []
    before = 0
    for server, row in () if found else zip(servers, rows, strict=True):
        try:
            found.append(named_by(row, before))
        except ValueError as error:
            raise InvalidInstance(f'server "{server}": {error}') from None
        before += len(found[-1])
    for i, why in misplaced(tuple(found), counts, servers):
        raise InvalidInstance(f'server "{servers[i]}": {why}')
    return tuple(found)
