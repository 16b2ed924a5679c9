"""Registries: mappings from names to notions, criteria, placements and engines, which a file or an installed package can add to.

A name is looked up among the entries of fairopt and of ``fo.NOTIONS["mine"] = Mine``. A name such as ``mine.py:PowerShare`` is read from
the file. Any other is looked for among the entry points of installed packages (groups ``fairopt.notions``, ``fairopt.placements`` and
``fairopt.solvers``), which are read when a name is missing or all are listed, and imported when they are used.

>>> colours = Registry("colour", "example.colours", {"red": 1}, lambda value: "" if isinstance(value, int) else "a colour is a number")
>>> colours["red"], "blue" in colours, colours.source("red")
(1, False, 'fairopt')
>>> words("drfh:my/mine.py:emptiest:metric=l2")
['drfh', 'my/mine.py:emptiest', 'metric=l2']
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import pickle
import re
import sys
import traceback
import uuid
from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from fairopt.errors import Unsupported
from fairopt.wording import did_you_mean, joined

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["FILES", "Carried", "Registry", "carried", "contents", "is_reference", "line_at_fault", "load_object", "options_in", "words"]

T = TypeVar("T")
log = logging.getLogger(__name__)

FILES = r".*_[0-9a-f]{8}"  # the names of modules that are users' files

_MISCALLED = re.compile(r"([\w.]+)\(\) (takes|missing|got) ")  # what Python says of a call with the wrong arguments
_REGISTRIES: dict[str, Registry[Any]] = {}
_FILES: dict[Path, dict[str, Any]] = {}  # what the files define
_FOLDERS: list[str] = []  # of these files
_PROCESS = uuid.uuid4().hex


class Registry(dict[str, T]):
    """A mapping from names to entries.

    Parameters
    ----------
    kind : str
        What an entry is, for messages.
    group : str
        The group of entry points; empty: none.
    entries : mapping
        The entries of fairopt.
    wrong : function
        What an entry must be, if it is not; else the empty string.
    """

    def __init__(self, kind: str, group: str, entries: Mapping[str, T], wrong: Callable[[object], str]) -> None:
        super().__init__(entries)
        self.kind = kind
        self._group = group
        self._own = dict(entries)
        self._wrong = wrong
        self._sources: dict[str, str] = {}
        self._installed: set[str] = set()  # names that another process finds by itself
        self._offered: dict[str, EntryPoint] | None = None
        _REGISTRIES[kind] = self

    def source(self, name: str) -> str:
        """Return where an entry comes from: "fairopt", a file, a package with its version, or "this program"."""
        if name in self._own and self[name] is self._own[name]:
            return "fairopt"
        return self._sources.get(name, "this program")

    def __missing__(self, name: str) -> T:
        if is_reference(name):
            return self._keep(name, load_object(name), name.rpartition(":")[0])
        if name in self._entry_points():
            return self._imported(name)
        raise KeyError(name)

    def __setitem__(self, name: str, value: T) -> None:
        """Add an entry, which must be of the right kind."""
        self._refuse(name, value)
        super().__setitem__(name, value)

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (isinstance(name, str) and (is_reference(name) or name in self._entry_points()))

    def get(self, name: str, default: Any = None) -> Any:
        """Return an entry, or the default where there is none."""
        try:
            return self[name]
        except KeyError:
            return default

    def __iter__(self) -> Iterator[str]:
        self._import_all()
        return super().__iter__()

    def __len__(self) -> int:
        self._import_all()
        return super().__len__()

    def keys(self) -> KeysView[str]:  # type: ignore[override]  # of a dict, they are views of their own type
        """Return all names."""
        self._import_all()
        return super().keys()

    def values(self) -> ValuesView[T]:  # type: ignore[override]
        """Return all entries."""
        self._import_all()
        return super().values()

    def items(self) -> ItemsView[str, T]:  # type: ignore[override]
        """Return all names and entries."""
        self._import_all()
        return super().items()

    def _entry_points(self) -> dict[str, EntryPoint]:
        """Return the entry points that are not imported yet."""
        if self._offered is None:
            self._offered = {}
            for point in _installed_points(self._group, tuple(sys.path)):
                if super().__contains__(point.name):
                    log.warning('the %s "%s" of %s is left out: there is one of that name', self.kind, point.name, _package(point))
                else:
                    self._offered[point.name] = point
        return self._offered

    def _import_all(self) -> None:
        for name in list(self._entry_points()):
            try:
                self._imported(name)
            except Unsupported as error:
                log.warning("%s; it is left out", error)

    def _imported(self, name: str) -> T:
        point = self._entry_points().pop(name)
        try:
            value = point.load()
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise Unsupported(f'the {self.kind} "{name}" of {_package(point)} cannot be imported: {reason}') from error
        kept = self._keep(name, value, _package(point))
        self._installed |= {each for each in dict.keys(self) if dict.__getitem__(self, each) is kept}
        return kept

    def _keep(self, name: str, value: Any, source: str) -> T:
        """Add an entry from elsewhere; also under the name that it has itself, by which allocations name it."""
        self._refuse(name, value)
        own = getattr(value, "name", None)
        if isinstance(own, str) and own != name:
            if super().__contains__(own) and dict.__getitem__(self, own) is not value:
                raise Unsupported(f'"{name}" has the name "{own}", as another {self.kind} has; give it a name of its own')
            self[own], self._sources[own] = value, source
        self[name], self._sources[name] = value, source
        found: T = value
        return found

    def _refuse(self, name: str, value: object) -> None:
        if wrong := self._wrong(value):
            raise Unsupported(f'"{name}" is no {self.kind}: {wrong}')

    def _added(self) -> dict[str, T]:
        """Return the entries that another process cannot find by itself."""
        return {name: value for name, value in dict.items(self) if self._own.get(name) is not value and name not in self._installed}


# Files ---------------------------------------------------------------------------------------------------------------------------


def is_reference(name: object) -> bool:
    """Return whether a name is a file and something in it: mine.py:PowerShare."""
    if not isinstance(name, str):
        return False
    file, _, inside = name.rpartition(":")
    return file.endswith(".py") and inside.isidentifier()


def words(spec: str) -> list[str]:
    """Return the parts of a specification, which stand between colons; a file and what is meant in it are one part.

    >>> words("proportional:alpha=2"), words("mine.py:Share:mine.py:emptiest")
    (['proportional', 'alpha=2'], ['mine.py:Share', 'mine.py:emptiest'])
    """
    parts: list[str] = []
    for part in spec.split(":"):
        if parts and parts[-1].endswith(".py") and part.isidentifier():
            parts[-1] = f"{parts[-1]}:{part}"
        else:
            parts.append(part)
    return parts


def options_in(parts: Sequence[str], spec: str) -> dict[str, Any]:
    """Return the options ``["alpha=2", "order=random"]`` as a mapping. Values are integers or floats if they look so, else strings.

    Raises
    ------
    Unsupported
        A part is no option, or an option is there twice.

    >>> options_in(["alpha=2", "order=random"], "")
    {'alpha': 2, 'order': 'random'}
    """
    options: dict[str, Any] = {}
    for part in parts:
        word, sign, text = part.partition("=")
        if not (word and sign and text):
            raise Unsupported(f'"{spec}": "{part}" is no option; write option=value, as in "proportional:alpha=2"')
        if word in options:
            raise Unsupported(f'"{spec}": "{word}" is there twice; give it once')
        value: Any = text
        for kind in (float, int):
            try:
                value = kind(text)
            except ValueError:
                break
        options[word] = value
    return options


def contents(spec: str) -> str:
    """Return a short hash of the files that a specification names; empty if it names none."""
    files = [Path(word.rpartition(":")[0]).read_bytes() for word in words(spec) if is_reference(word)]
    return hashlib.sha256(b"".join(files)).hexdigest()[:16] if files else ""


def load_object(reference: str) -> Any:
    """Return what a file defines: a class or a function.

    Raises
    ------
    Unsupported
        If there is no such file, it fails, or it defines no such thing.
    """
    file, _, name = reference.rpartition(":")
    path = Path(os.path.realpath(file))
    if path not in _FILES:
        _FILES[path] = _run(file, path)
    defined = _FILES[path]
    if name not in defined:
        own = [each for each, value in defined.items() if getattr(value, "__module__", None) == defined["__name__"]]
        there = f"; it defines {joined(own, 8)}" if own else "; it defines nothing"
        raise Unsupported(f'{file} defines no "{name}"{did_you_mean(name, own) or there}')
    return defined[name]


def line_at_fault(error: BaseException) -> str:
    """Return the last line of a plugged-in file that an error came through: mine.py, line 3, in share_per_task; empty if there is none.

    Of a call that does not suit the function, which Python refuses before its first line, it is the line of the function.
    """
    plugged_in = {str(path): path for path in _FILES}
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if (path := plugged_in.get(frame.filename)) is not None:
            return _line(path, frame.lineno, frame.name)
    called = _MISCALLED.match(str(error)) if isinstance(error, TypeError) else None
    first, *rest = called[1].split(".") if called else [""]
    for path, defined in reversed(_FILES.items()):  # of two functions of one name, the one that was loaded last
        code = getattr(functools.reduce(lambda inner, word: getattr(inner, word, None), rest, defined.get(first)), "__code__", None)
        if code is not None and code.co_filename == str(path):
            return _line(path, code.co_firstlineno, code.co_name)
    return ""


def _line(path: Path, number: int | None, name: str) -> str:
    here = Path.cwd()
    return f"{path.relative_to(here) if path.is_relative_to(here) else path}, line {number}, in {name}"


def _run(file: str, path: Path) -> dict[str, Any]:
    """Run a file and return what it defines.

    Its module is not kept in ``sys.modules``, so that what it defines goes to other processes by value, not by a name that they lack.
    """
    if not path.is_file():
        raise Unsupported(f"there is no file {file}; give the path of a Python file, as in mine.py:PowerShare")
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"  # FILES
    module = ModuleType(name)
    module.__file__ = str(path)
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.append(folder)  # the file may import what stands beside it
    if folder not in _FOLDERS:
        _FOLDERS.append(folder)
    sys.modules[name] = module  # dataclasses look there for what annotations mean
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
        advice = "; write @dataclass(frozen=True)" if "non-frozen dataclass from a frozen one" in str(error) else ""
        raise Unsupported(f"{file}{'' if line is None else f', line {line}'}: {type(error).__name__}: {error}{advice}") from error
    finally:
        del sys.modules[name]
    return module.__dict__


def _installed_points(group: str, path: tuple[str, ...]) -> Sequence[EntryPoint]:
    """Return the entry points of a group that installed packages have.

    Importing ``importlib.metadata`` takes longer than solving most programs. So it is asked only where a package names the group, or where
    that cannot be seen: in archives, and with finders of other kinds.
    """
    if not group:
        return ()
    written = _written_by_packages(path)
    unseen = written is None or any(hasattr(each, "find_distributions") and each is not PathFinder for each in sys.meta_path)
    if unseen or re.search(rf"^\s*\[\s*{re.escape(group)}\s*\]", written or "", re.MULTILINE):
        from importlib.metadata import entry_points

        return tuple(entry_points(group=group))
    return ()


@cache
def _written_by_packages(path: tuple[str, ...]) -> str | None:
    """Return what packages installed in these folders write of their entry points; None where one of them is an archive.

    Cached, since each registry asks and it reads files of all packages.
    """
    texts = []
    for folder in path:
        if os.path.isfile(folder):
            return None
        with contextlib.suppress(OSError):  # of a folder that is not there, or that nobody may read
            about = [each for each in os.listdir(folder or os.curdir) if each.lower().endswith((".dist-info", "egg-info"))]
            files = [Path(folder, each, "entry_points.txt") for each in about]
            texts += [file.read_text("utf-8", errors="replace") for file in files if file.is_file()]
    return "\n".join(texts)


def _package(point: EntryPoint) -> str:
    """Return the package of an entry point, with its version."""
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value


# Other processes -----------------------------------------------------------------------------------------------------------------


class Carried:
    """A function that takes along to another process what this one has added to the registries; it is called like the function."""

    def __init__(self, function: Callable[..., Any], added: dict[str, dict[str, Any]], process: str = _PROCESS) -> None:
        self._function, self._added, self._process = function, added, process

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Call the function."""
        if self._process != _PROCESS:
            for kind, entries in self._added.items():
                if kind in _REGISTRIES:
                    _REGISTRIES[kind].update(entries)
        return self._function(*arguments, **options)

    def __reduce__(self) -> tuple[Any, ...]:
        from joblib.externals.loky.backend.reduction import dumps

        return _unpacked, (_FOLDERS, bytes(dumps((self._function, self._added, self._process))))


def _unpacked(folders: list[str], content: bytes) -> Carried:
    """Return what was taken along. The folders come first: what files define may need what stands beside them."""
    sys.path.extend(folder for folder in folders if folder not in sys.path)
    return Carried(*pickle.loads(content))


def carried(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for other processes: with what this one has added to the registries, where there is anything."""
    added = {kind: own for kind, registry in _REGISTRIES.items() if (own := registry._added())}
    return Carried(function, added) if added or _FOLDERS else function
