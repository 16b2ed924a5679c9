"""Join the files of the parts of a study: they must answer the same question, and what is missing is named."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairopt.errors import InvalidInstance, Unsupported
from fairopt.files import refuse_existing, refuse_read
from fairopt.studies.cell import Key
from fairopt.studies.grid import difference
from fairopt.studies.parts import cells_of, name_of, numbers_of, runs_of
from fairopt.studies.rows import Rows
from fairopt.studies.store import Study, output_file, read_study, write_study
from fairopt.wording import joined, plural

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["merge_studies", "merged"]

log = logging.getLogger(__name__)

_OF_GRID = ("part", "instances", "order", "seeds")  # of a request; the other words are notions, schedules, options and versions
_SHOWN = 5  # parts or cells
_GO_ON = "run the part again and join again, or run the study without a part on the joined file"


def merge_studies(
    parts: Sequence[str | os.PathLike[str]], output: str | os.PathLike[str] | None = None, *, force: bool = False
) -> pd.DataFrame:
    """Join the files of the parts of a study.

    Parameters
    ----------
    parts : sequence of paths
        Files that `fairopt.study` has written (``resume=``), or their folders: parts of one study, or studies of other seeds or instances
        with the same notions, schedules and options.
    output : path, optional
        Where to write all rows, as `fairopt.study` does; the same study without ``part`` goes on from there.
    force : bool
        Whether to replace the output if it exists.

    Returns
    -------
    DataFrame
        All rows, in the order of the table of the whole study. A warning names the cells that are missing.

    Raises
    ------
    InvalidInstance
        A file is not of a study, or damaged; two files answer different questions, or have the same cell.

    Examples
    --------
    >>> import tempfile, fairopt as fo
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = [f"{folder}/{k}.parquet" for k in (1, 2)]
    ...     for k, file in enumerate(files, 1):
    ...         part = fo.study({"pairs": "kesidis:users=4"}, seeds=range(4), workers=1, part=(k, 2), resume=file)
    ...     whole = merge_studies(files)
    >>> part["seed"].tolist(), whole["seed"].tolist()
    ([1, 3], [0, 1, 2, 3])
    """
    frame, missing = merged(parts, output, force=force)
    for each in missing:
        log.warning("%s", each)
    return frame


def merged(
    parts: Sequence[str | os.PathLike[str]], output: str | os.PathLike[str] | None, *, force: bool
) -> tuple[pd.DataFrame, list[str]]:
    """Return what `merge_studies` returns, and sentences about what is missing."""
    if isinstance(parts, str | os.PathLike) or not parts:
        raise Unsupported("parts is one path or none; give a list of the files that fairopt study has written")
    files = [_file(Path(part)) for part in parts]
    target = None if output is None else output_file(Path(output), create=False)
    if target is not None:
        refuse_read(target, files)
        refuse_existing(target, force=force)
    studies = [read_study(file) for file in files]
    request = _together(studies)
    owner: dict[Key, Study] = {}
    rows = Rows()
    for study in studies:
        if study.entries != studies[0].entries:
            raise InvalidInstance(f"{study.path} and {studies[0].path} have other rows for each cell; join parts of one study")
        for key in study.rows:
            if key in owner:
                raise InvalidInstance(f"{owner[key].path} and {study.path} both have {key[0]}, seed {key[1]}; leave one of them out")
            owner[key] = study
        rows.take(study.rows.table(request["order"]))
    missing = list(_holes(studies, rows))
    if target is not None:
        write_study(target, rows, request, request["order"])
    return rows.frame(request["order"], list(numbers_of(request["seeds"])), studies[0].entries), missing


def _file(path: Path) -> Path:
    """Return the file of a part."""
    if not path.exists():
        raise InvalidInstance(f"there is no file or folder {path}; give the files or folders that fairopt study has written with --resume")
    file = output_file(path)
    if not file.exists():  # the folder is made before the first cells are written
        raise InvalidInstance(f"{path} has no rows yet: {file.name} is missing there; run this part again, or leave it out")
    return file


def _together(studies: Sequence[Study]) -> dict[str, Any]:
    """Return the request that all files answer together."""
    first = studies[0]
    whole = dict(first.request)
    of = _number_of_parts(first.request)
    for study in studies[1:]:
        other = study.request
        words = [word for word in dict.fromkeys((*first.request, *other)) if word not in _OF_GRID]
        differences = [
            difference(word, first.request.get(word), other.get(word)) for word in words if first.request.get(word) != other.get(word)
        ]
        if _number_of_parts(other) != of:
            differences.append(f"one is {name_of(first.request['part'])} and the other {name_of(other['part'])}")
        if of is not None:
            of_grid = {"order": "the names of the instances or their order", "seeds": "the seeds"}
            differences += [f"{what} differ" for word, what in of_grid.items() if other[word] != first.request[word]]
        differences += [
            f'"{name}" is another instance'
            for name, drawn in other["instances"].items()
            if (known := whole["instances"].get(name, drawn)) != drawn and known["drawn"] == drawn["drawn"]
        ]
        if differences:
            raise InvalidInstance(f"{first.path} and {study.path} are not of one study: {'; '.join(differences)}")
        whole["instances"] = {**other["instances"], **whole["instances"]}
        whole["order"] = list(dict.fromkeys([*whole["order"], *other["order"]]))
    seeds = sorted({seed for study in studies for seed in numbers_of(study.request["seeds"])})
    return whole | {"part": None, "seeds": first.request["seeds"] if of is not None else runs_of(seeds)}


def _number_of_parts(request: Mapping[str, Any]) -> int | None:
    return None if request["part"] is None else int(request["part"][1])


def _holes(studies: Sequence[Study], rows: Rows) -> Iterator[str]:
    """Say what is missing: parts, and cells of parts."""
    of = _number_of_parts(studies[0].request)
    if of is not None:
        there = {study.request["part"][0] for study in studies}
        absent = [f"{number}/{of}" for number in range(1, of + 1) if number not in there]
        if absent:
            yield f"{plural(len(absent), 'part')} of {of} {'is' if len(absent) == 1 else 'are'} missing: {joined(absent, _SHOWN)}; {_GO_ON}"
    for study in studies:
        request = study.request
        part = None if request["part"] is None else (request["part"][0], request["part"][1])
        missing = [key for key in cells_of(request["order"], list(numbers_of(request["seeds"])), part) if key not in rows]
        if missing:
            named = joined([f"{name}, seed {seed}" for name, seed in missing], _SHOWN)
            yield f"{study.path} lacks {plural(len(missing), 'cell')}: {named}; {_GO_ON}"
