"""What commands write: nothing that the same command reads, and no file that exists, unless ``--force`` says so.

The type of an option whose file is written carries a mark, as in ``Annotated[Path | None, typer.Option(...), Written()]``. A command with
such options is `guarded`: it also takes ``--force``, and ``--no-title`` if it draws with ``--plot``. Before anything is read or computed it
refuses

* a file that exists, without ``--force``;
* a file that another argument names, by whatever path or link, a table in a folder that one names, and a file that is given twice;
* ``-``, which other programs take for stdout, and which would be a file of that name.

>>> def draw(file: Path, plot: Annotated[Path | None, typer.Option(), Written()] = None) -> None:
...     '''Draw a file.'''
>>> list(inspect.signature(guarded(draw)).parameters)
['file', 'plot', 'no_title', 'force']
"""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from fairopt.errors import InvalidInstance
from fairopt.files import refuse_existing, refuse_read

__all__ = ["UNTITLED", "Written", "forced", "guarded"]

Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
NoTitle = Annotated[bool, typer.Option("--no-title", help="Draw pictures without their titles, for a paper.")]
UNTITLED = ContextVar("untitled", default=False)
"""Whether the command draws pictures without titles."""
_FORCED = ContextVar("forced", default=False)  # see `forced`
_APART = re.compile("[,:=]")  # what stands between the parts of an argument, of which one may be a file, as in drfh:mine.py:emptiest


@dataclass(frozen=True, slots=True)
class Written:
    """The mark of an option whose file is written.

    Attributes
    ----------
    tables : bool
        It is an instance: in a folder, its tables are written.
    own : bool
        It is a store, or a folder of one: the command itself knows what of it may be replaced.
    pictures : mapping
        It is a folder, in which these pictures of experiments are written: their names without .png, by experiment.
    """

    tables: bool = False
    own: bool = False
    pictures: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def files(self, path: Path, given: Mapping[str, Any]) -> list[Path]:
        """Return the files that may be written."""
        if self.pictures:
            return [path / f"{name}.png" for id, names in self.pictures.items() if id in (given["ids"] or self.pictures) for name in names]
        return _tables(path) if self.tables and path.is_dir() else [path]


def forced() -> bool:
    """Return whether the command that runs was given ``--force``."""
    return _FORCED.get()


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that refuses outputs before it does anything; the command itself if it has no outputs."""
    hints = get_type_hints(command, include_extras=True)
    marks = {name: mark for name, hint in hints.items() for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, Written)}
    if not marks:
        return command
    signature = inspect.signature(command)

    @functools.wraps(command)
    def run(*, force: bool, no_title: bool = False, **given: Any) -> None:
        _check(given, marks, force=force)
        before, unforced = UNTITLED.set(no_title), _FORCED.set(force)
        try:
            command(**given)
        finally:
            UNTITLED.reset(before)
            _FORCED.reset(unforced)

    more = {"no_title": NoTitle} if "plot" in marks else {}
    more |= {"force": Force}
    parameters = [each.replace(annotation=hints[name]) for name, each in signature.parameters.items()]
    added = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind) for name, kind in more.items()]
    run.__signature__ = signature.replace(parameters=[*parameters, *added])  # type: ignore[attr-defined]
    run.__annotations__ = {**hints, **more}
    return run


def _check(given: Mapping[str, Any], marks: Mapping[str, Written], *, force: bool) -> None:
    outputs = {name: given[name] for name in marks if given.get(name) is not None}
    inputs = [path for name, value in given.items() if name not in marks for path in _named(value)]
    inputs += [table for path in inputs if path.is_dir() for table in _tables(path)]
    written: dict[str, Path] = {}
    for name, output in outputs.items():
        if str(output) == "-":
            raise InvalidInstance('"-" does not stand for stdout; leave the option out to print the result, or give the name of a file')
        for path in marks[name].files(output, given):
            refuse_read(path, inputs)
            if not marks[name].own:
                refuse_existing(path, force=force)
            twin = written.setdefault(os.path.realpath(path), path)
            if twin is not path:
                raise InvalidInstance(f"two outputs cannot go to one file, {path}; give each its own")


def _named(value: Any) -> Iterator[Path]:
    """Yield the paths that an argument may name: itself, and each of its parts."""
    if isinstance(value, Path):
        yield value
    elif isinstance(value, str):
        yield from (Path(part) for part in {value, *_APART.split(value)} if part and "\0" not in part)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _named(each)


def _tables(folder: Path) -> list[Path]:
    from fairopt.formats.tables import tables_in

    return [path for paths in tables_in(folder).values() for path in paths]
