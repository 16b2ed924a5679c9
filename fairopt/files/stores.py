"""What a long run keeps in a folder, so that it goes on from there after it was stopped, even by ``kill -9``.

A run keeps *parts*: the state of a simulation, the sums of some moments of a history, the rows of a study. The name of a part, or what is
written in it, tells which question it belongs to, so a part of another question is never taken. A part is written completely or not at
all. One process writes a part at a time: it holds a lock of the operating system (`filelock`), which ends with the process. Nothing of a
part is believed: it may be damaged, or come from somebody else. No array holds objects, and none claims to be larger than what the file
holds of it.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     store = Store(folder)
...     with store.writing("part-1.npz"):
...         store.write("part-1.npz", {"times": np.arange(3.0)})
...     store.arrays("part-1.npz"), store.arrays("part-2.npz")
({'times': array([0., 1., 2.])}, None)
"""

from __future__ import annotations

import contextlib
import glob
import io
import math
import os
import time
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.files import read_bytes, write_files
from fairopt.files.limits import check_bytes

__all__ = ["Arrays", "Pace", "Store", "packed", "read_arrays"]

Arrays: TypeAlias = dict[str, np.ndarray[Any, Any]]


class Store:
    """A folder of parts, made if it is not there.

    Parameters
    ----------
    folder : path

    Raises
    ------
    InvalidInstance
        The folder cannot be made.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            why = "there is a file of this name" if self.folder.exists() else error.strerror or error
            raise InvalidInstance(f"the folder {self.folder} cannot be made: {why}; give another one") from error

    def path(self, part: str) -> Path:
        """Return the file of a part."""
        return self.folder / part

    @contextlib.contextmanager
    def writing(self, part: str, who: str = "run", instead: str = "give another folder") -> Iterator[None]:
        """Be the only process that writes a part, or the parts whose names begin so; what a killed one has left half written is removed.

        Raises
        ------
        InvalidInstance
            Another process is writing it. The folder cannot be written to.
        """
        from filelock import FileLock, Timeout

        path = self.path(part)
        lock = FileLock(path.with_name(f".{path.name}.lock"), timeout=0)
        try:
            lock.acquire()
        except Timeout:
            raise InvalidInstance(f"another {who} is writing {path}; wait for its end, or {instead}") from None
        except OSError as error:
            raise InvalidInstance(f"{path} cannot be written: {error.strerror or error}") from error
        try:
            for half in path.parent.glob(f".{glob.escape(path.name)}*.tmp"):
                half.unlink(missing_ok=True)
            yield
        finally:
            lock.release()

    def arrays(self, part: str) -> Arrays | None:
        """Return the arrays of a part; None if there is none.

        Raises
        ------
        InvalidInstance
            The part is damaged.
        """
        path = self.path(part)
        return read_arrays(path) if path.exists() else None

    def write(self, part: str, content: bytes | Mapping[str, Any]) -> None:
        """Write a part, of bytes or of arrays by name: completely or not at all."""
        write_files({self.path(part): content if isinstance(content, bytes) else packed(content)})

    def remove(self, part: str) -> None:
        """Forget a part."""
        self.path(part).unlink(missing_ok=True)


class Pace:
    """When to write next: neither so often that writing takes long, nor so rarely that much is lost.

    Parameters
    ----------
    least : float
        The least number of seconds between two writes.
    effort : float
        The time between two writes is at least this multiple of the time of one.
    part : float
        It is at least this fraction of the time so far.
    most : float
        After this many seconds, and that fraction of the time so far, a write is due however long it takes.
    at_once : bool
        The first write is due at once, not after ``least`` seconds.
    """

    def __init__(self, least: float, effort: float, part: float = 0.0, most: float = math.inf, *, at_once: bool = False) -> None:
        self._least, self._effort, self._part, self._most = least, effort, part, most
        self._started = time.monotonic()
        self._written = -math.inf if at_once else self._started
        self._took = 0.0

    @property
    def due(self) -> float:
        """When the next write is due, by `time.monotonic`."""
        of_all = self._part * (time.monotonic() - self._started)
        return self._written + min(max(self._least, of_all, self._effort * self._took), max(self._most, of_all))

    @property
    def is_due(self) -> bool:
        """Is it time to write?"""
        return time.monotonic() >= self.due

    @contextlib.contextmanager
    def write(self) -> Iterator[None]:
        """Take the time of a write."""
        began = time.monotonic()
        yield
        self._written = time.monotonic()
        self._took = self._written - began


def packed(arrays: Mapping[str, Any], *, compressed: bool = False) -> bytes:
    """Return arrays by name as the content of a file (.npz)."""
    buffer = io.BytesIO()
    save = np.savez_compressed if compressed else np.savez
    save(buffer, **{name: np.asarray(value) for name, value in arrays.items()})  # type: ignore[arg-type]
    return buffer.getvalue()


def read_arrays(path: Path) -> Arrays:
    """Return the arrays of a file.

    Raises
    ------
    InvalidInstance
        The file cannot be read, is no such file, or unpacks to more than `fairopt.reading_limit` allows.
    """
    content = read_bytes(path)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            check_bytes(str(path), sum(each.file_size for each in members))
            return {each.filename.removesuffix(".npy"): _array(archive.read(each)) for each in members}
    except InvalidInstance:
        raise
    except Exception as error:  # whatever zipfile, zlib and numpy raise of bytes that are none of theirs
        raise InvalidInstance(f"{path} holds no arrays: {str(error) or type(error).__name__}") from error


def _array(content: bytes) -> np.ndarray[Any, Any]:
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    head = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, kind = head(file)
    if kind.hasobject or math.prod(shape) * kind.itemsize != len(content) - file.tell():
        raise ValueError("an array is not as large as it says, or holds objects")
    return np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
