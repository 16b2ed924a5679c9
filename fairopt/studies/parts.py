"""Parts of a study: each task of a job array computes its part into a file of its own, and the files become one.

Part k of n has every n-th cell of the grid, from the k-th on; cells are counted seed by seed, so that more seeds leave every cell in its
part. The file of a part says which part it is, and what the whole grid is, so `fairopt.studies.merging` can tell what is missing.

>>> part_of("3/40"), part_of((1, 2)), part_of(None)
((3, 40), (1, 2), None)
>>> [runs_of([0, 1, 2, 7]), list(numbers_of([[0, 2], [7, 7]]))]
[[[0, 2], [7, 7]], [0, 1, 2, 7]]
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from fairopt.errors import Unsupported
from fairopt.studies.cell import Key
from fairopt.wording import plural, written

__all__ = ["Part", "PartLike", "cells_of", "name_of", "numbers_of", "part_of", "runs_of"]

Part: TypeAlias = tuple[int, int]
PartLike: TypeAlias = str | Part | None

_PART = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")


def part_of(part: PartLike) -> Part | None:
    """Return a part as two numbers.

    Raises
    ------
    Unsupported
        It is none.
    """
    if part is None:
        return None
    found = _PART.fullmatch(part) if isinstance(part, str) else None
    pair = (int(found[1]), int(found[2])) if found else part
    if isinstance(pair, tuple | list) and len(pair) == 2 and all(type(each) is int for each in pair) and 1 <= pair[0] <= pair[1]:
        return (pair[0], pair[1])
    raise Unsupported(f"part is {written(part)}; give K/N, the K-th of N parts with 1 <= K <= N, as in 3/40")


def name_of(part: Sequence[int] | None) -> str:
    """Say which part this is.

    >>> name_of((3, 40)), name_of(None)
    ('part 3/40', 'a whole study')
    """
    return "a whole study" if part is None else f"part {part[0]}/{part[1]}"


def cells_of(names: Sequence[str], seeds: Sequence[int], part: Part | None) -> list[Key]:
    """Return the keys of the cells of a part, or of all, in the order of the table.

    Raises
    ------
    Unsupported
        There are more parts than cells.
    """
    if part is None:
        return [(name, seed) for name in names for seed in seeds]
    number, of = part
    if of > len(names) * len(seeds):
        raise Unsupported(f"part is {number}/{of}, and the study has {plural(len(names) * len(seeds), 'cell')}; give fewer parts")
    return [(name, seed) for j, name in enumerate(names) for k, seed in enumerate(seeds) if (k * len(names) + j) % of == number - 1]


def runs_of(numbers: Iterable[int]) -> list[list[int]]:
    """Return whole numbers as runs, from the first to the last of each."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return runs


def numbers_of(runs: Iterable[Sequence[int]]) -> Iterator[int]:
    """Return the numbers of runs."""
    for first, last in runs:
        yield from range(first, last + 1)
