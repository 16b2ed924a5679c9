"""Parts of a grid of simulations: each task of a job array simulates its part, and the folders become one.

Part k of n has every n-th simulation of the grid, from the k-th on. The folder of a part holds the states of its simulations, and a file
``part-k-of-n.json``: what was asked of the whole grid, and which of its simulations have ended. Parts may also share one folder. What all
of them have simulated is measured by the same study without a part.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairopt.errors import InvalidInstance, Unsupported
from fairopt.files.reading import read_text
from fairopt.files.stores import Pace, Store
from fairopt.studies.parts import Part
from fairopt.wording import joined, plural

__all__ = ["PartFile", "folder_of_parts", "join_folders", "of_part"]

_LEAST, _EFFORT, _LOST, _MOST = 1.0, 20.0, 0.02, 8.0  # as a study writes its rows
_SHOWN = 5  # parts or simulations
_GO_ON = "run the part again and join again, or run the study without a part on the joined folder"
_FORM = {"fairopt": str, "request": dict, "part": list, "number": int, "ended": list}


def of_part(tasks: Sequence[Any], part: Part) -> list[Any]:
    """Return the simulations of a part.

    >>> of_part("abcde", (2, 3))
    ['b', 'e']

    Raises
    ------
    Unsupported
        There are more parts than simulations.
    """
    number, of = part
    if of > len(tasks):
        raise Unsupported(f"part is {number}/{of}, and the study has {plural(len(tasks), 'simulation')}; give fewer parts")
    return list(tasks[number - 1 :: of])


class PartFile:
    """The file of a part, which is written from time to time, and at the end.

    Parameters
    ----------
    folder : path
    part : pair of int
    request : mapping
        What was asked of the whole grid: plain data.
    number : int
        Simulations of the part.
    """

    def __init__(self, folder: str | os.PathLike[str], part: Part, request: Mapping[str, Any], number: int) -> None:
        self._store, self._name = Store(folder), f"part-{part[0]}-of-{part[1]}.json"
        self._said = {"fairopt": sys.modules["fairopt"].__version__, "request": dict(request), "part": list(part), "number": number}
        self._ended: list[str] = []
        self._pace = Pace(_LEAST, _EFFORT, _LOST, _MOST)
        self.write()

    def add(self, simulation: str) -> None:
        """Take the name of a simulation that has ended."""
        self._ended.append(simulation)
        if self._pace.is_due:
            self.write()

    def write(self) -> None:
        """Write the file."""
        with self._pace.write():
            self._store.write(self._name, json.dumps(self._said | {"ended": self._ended}, ensure_ascii=False).encode())


@dataclass(frozen=True, slots=True)
class _Part:
    path: Path
    fairopt: str
    request: dict[str, Any]
    part: list[int]
    number: int
    ended: list[str]


def folder_of_parts(path: str | os.PathLike[str]) -> bool:
    """Say whether a path is a folder that parts of a grid of simulations have written to."""
    return any(Path(path).glob("part-*-of-*.json"))


def join_folders(folders: Sequence[str | os.PathLike[str]], output: str | os.PathLike[str]) -> tuple[int, list[str]]:
    """Copy the simulations of all parts into one folder, from which the study without a part goes on.

    Parameters
    ----------
    folders : sequence of paths
    output : path
        A folder, which is made if it is not there.

    Returns
    -------
    int
        How many simulations have ended.
    list of str
        Sentences about what is missing.

    Raises
    ------
    InvalidInstance
        A folder is of no part; two parts are of different studies, or the same; a file cannot be copied.
    """
    parts = [each for folder in dict.fromkeys(map(Path, folders)) for each in _read(folder)]
    first = parts[0]
    for other in parts[1:]:
        words = [word for word in first.request if other.request.get(word) != first.request[word]]
        words += ["the number of parts"] * (other.part[1] != first.part[1]) + ["the version of fairopt"] * (other.fairopt != first.fairopt)
        if words or other.request.keys() != first.request.keys():
            raise InvalidInstance(f"{first.path} and {other.path} are not of one study: they differ in {joined(words, _SHOWN)}")
    by_part: dict[int, _Part] = {}
    for each in parts:
        if (twice := by_part.setdefault(each.part[0], each)) is not each:
            raise InvalidInstance(f"{twice.path} and {each.path} are the same part; leave one of them out")
    target = Store(output).folder
    for folder in dict.fromkeys(each.path.parent for each in parts):
        for file in sorted(folder.rglob("*")):
            if file.is_file() and not file.name.startswith(".") and folder.resolve() != target.resolve():
                _copy(file, target / file.relative_to(folder))
    return sum(len(each.ended) for each in parts), list(_holes(by_part, first.part[1]))


def _copy(file: Path, there: Path) -> None:
    """Copy a file, completely or not at all."""
    half = there.with_name(f".{there.name}.tmp")
    try:
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, half)
        half.replace(there)
    except OSError as error:
        raise InvalidInstance(f"{file} cannot be copied to {there}: {error.strerror or error}") from error


def _read(folder: Path) -> list[_Part]:
    """Return the parts whose files are in a folder."""
    found = sorted(folder.glob("part-*-of-*.json"))
    if not found:
        raise InvalidInstance(f"{folder} holds no part of a grid of simulations; give the folders of fairopt study --simulate --part")
    parts = []
    for path in found:
        try:
            said = json.loads(read_text(path))
            good = isinstance(said, dict) and all(isinstance(said.get(word), kind) for word, kind in _FORM.items())
            good = (
                good
                and len(said["part"]) == 2
                and all(type(each) is int for each in said["part"])
                and 1 <= said["part"][0] <= said["part"][1]
            )
        except (ValueError, RecursionError):
            good = False
        if not good:
            raise InvalidInstance(f"{path} is no file of a part; delete it, and run that part again")
        parts.append(_Part(path, *(said[word] for word in _FORM)))
    return parts


def _holes(parts: Mapping[int, _Part], of: int) -> list[str]:
    """Say which parts are missing, and which have not ended."""
    holes = []
    absent = [f"{number}/{of}" for number in range(1, of + 1) if number not in parts]
    if absent:
        holes.append(
            f"{plural(len(absent), 'part')} of {of} {'is' if len(absent) == 1 else 'are'} missing: {joined(absent, _SHOWN)}; {_GO_ON}"
        )
    for each in parts.values():
        if len(each.ended) < each.number:
            holes.append(f"{each.path} has {len(each.ended)} of {plural(each.number, 'simulation')}; {_GO_ON}")
    return holes
