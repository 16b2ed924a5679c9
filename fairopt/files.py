"""Read text files with clear error messages, and replace files atomically.

A file is written under a temporary name in the same folder, flushed to the disk, and then renamed, so a reader never sees half of it, and
neither does one after the power has failed. Of several files, all are written before the first is renamed. A file that is replaced keeps
its mode, from the first byte on. A pipe or a device is written to, and never replaced.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     write_files({Path(folder, "a.txt"): "one\\n"})
...     read_text(Path(folder, "a.txt"))
'one\\n'
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import logging
import os
import re
import secrets
import stat
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO

from fairopt.errors import InvalidInstance
from fairopt.limits import check_bytes, check_values, limits, size
from fairopt.streams import is_stream, write_device
from fairopt.wording import did_you_mean

__all__ = [
    "first_line",
    "is_device",
    "missing_file",
    "read_bytes",
    "read_old_text",
    "read_text",
    "refuse_existing",
    "refuse_read",
    "write_files",
]

_PART = 1 << 20  # bytes that are read at once
_FOUR, _TWO = re.compile(b"[\xf0-\xff]"), re.compile(b"[\xc4-\xef]")  # where a text has such bytes, each of its characters takes as many
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_OF_UTF_8 = re.compile(b"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_SHOWN = 60  # characters of a line
_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"  # as str.splitlines takes them

log = logging.getLogger("fairopt.files")


def read_bytes(path: Path) -> bytes:
    """Return what a file holds; ``*.gz`` is unpacked.

    Raises
    ------
    InvalidInstance
        If the file is missing, a folder, or not readable, or holds more than :mod:`fairopt.limits` allows.
    """
    try:
        with path.open("rb") as file:
            if path.suffix.lower() != ".gz":
                check_bytes(str(path), os.fstat(file.fileno()).st_size)  # 0 of a pipe or a device
                return _at_most(file, path)
            with gzip.GzipFile(fileobj=file) as unpacked:
                return _at_most(unpacked, path)
    except FileNotFoundError:
        raise missing_file(path) from None
    except IsADirectoryError:
        raise InvalidInstance(f"{path} is a folder, not a file; give the path of a file in it") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InvalidInstance(f"{path} cannot be unpacked: {error}; copy or compress it again") from None
    except InvalidInstance:
        raise
    except (OSError, ValueError) as error:
        raise InvalidInstance(f"{path} cannot be read: {_reason(error)}") from error


def missing_file(path: Path) -> InvalidInstance:
    """Return the error about a file that is not there, with the name of one that is."""
    try:
        neighbours = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
    except OSError:  # a folder that nobody may list
        neighbours = []
    return InvalidInstance(f"there is no file {path}{did_you_mean(path.name, neighbours)}")


def first_line(path: Path, most: int = 100_000) -> bytes:
    """Return the beginning of a file, up to its first line end; nothing of what is no file or cannot be read.

    A pipe is not touched: what is read from it is gone.
    """
    if not path.is_file():
        return b""
    try:
        with path.open("rb") as file:
            if path.suffix.lower() != ".gz":
                return file.readline(most)
            with gzip.GzipFile(fileobj=file) as unpacked:
                return unpacked.readline(most)
    except (OSError, ValueError, EOFError, zlib.error):
        return b""


def _at_most(file: IO[bytes] | gzip.GzipFile, path: Path) -> bytes:
    """Return the rest of an open file, which is refused as soon as it is too long."""
    held = io.BytesIO()
    try:
        while part := file.read(_PART):
            held.write(part)
            check_bytes(str(path), held.tell())
        return held.getvalue()
    except MemoryError:
        raise InvalidInstance(f"{path} does not fit into memory: it holds more than {size(held.tell())}; give it in parts") from None


def read_text(path: Path) -> str:
    """Return the UTF-8 text of a file. ``*.gz`` is unpacked, a byte order mark is dropped, and line ends stay as they are.

    Raises
    ------
    InvalidInstance
        If the file is missing, a folder, not readable, too large, not text, or not UTF-8.
    """
    return _decoded(path, read_bytes(path))


def read_old_text(path: Path) -> str:
    """Return the text of a file as spreadsheet programs write it: UTF-8, UTF-16 with a byte order mark, or Windows-1252, which is logged.

    Raises
    ------
    InvalidInstance
        As `read_text`.
    """
    data = read_bytes(path)
    if data.startswith(_UTF_16):
        with contextlib.suppress(UnicodeDecodeError):
            check_bytes(f"{path}, as characters of 2 bytes,", 2 * len(data))
            return data.decode("utf-16")
    if not data.isascii() and b"\0" not in data:
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            if not _OF_UTF_8.search(data):  # a broken file of UTF-8 has some characters in whole
                with contextlib.suppress(UnicodeDecodeError):
                    text = data.decode("cp1252")
                    at = data.rfind(b"\n", 0, error.start) + 1
                    line = text[at : at + _SHOWN].splitlines()[0]
                    log.warning('%s is not UTF-8; it is read as Windows-1252, "%s"; save it as UTF-8 if that is wrong', path, line)
                    return text
    return _decoded(path, data)


def _decoded(path: Path, data: bytes) -> str:
    if data.startswith(_UTF_16):
        raise InvalidInstance(f"{path} is written in UTF-16; save it as UTF-8")
    if b"\0" in data:
        raise InvalidInstance(f"{path} is a binary file, not text; give a YAML, JSON or CSV file")
    width = 1 if data.isascii() else 4 if _FOUR.search(data) else 2 if _TWO.search(data) else 1
    check_bytes(f"{path}, as characters of {width} bytes,", width * len(data))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidInstance(f"{path}, line {line}: byte 0x{data[error.start]:02x} is not UTF-8 text; save the file as UTF-8") from None
    except MemoryError:
        raise InvalidInstance(f"{path} does not fit into memory: it holds {size(len(data))}; give it in parts") from None
    if len(text) > limits().values:  # a line is an object in memory, if only an empty one
        check_values(str(path), sum(map(text.count, _LINE_ENDS)))
    return text


def write_files(contents: Mapping[Path, str | bytes]) -> None:
    """Write every text (as UTF-8) or bytes to its file. Existing files are replaced only after all have been written.

    Raises
    ------
    InvalidInstance
        If a folder is missing, or a file cannot be written.
    """
    written: dict[Path, tuple[Path, Path]] = {}
    data = {path: content.encode() if isinstance(content, str) else content for path, content in contents.items()}
    devices = [path for path in contents if is_device(path)]
    path = Path()
    try:
        for path in contents:
            if path in devices:
                continue
            target = Path(os.path.realpath(path))  # replace the target of a link, not the link
            if target.is_symlink():
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
            written[path] = (temporary, target)
            _write(temporary, data[path], stat.S_IMODE(target.stat().st_mode) if target.exists() else None)
        for path in devices:
            write_device(path, data[path])
        for path in written:
            temporary, target = written[path]
            temporary.replace(target)
        for folder in {target.parent for _, target in written.values()}:
            _flush(folder)
    except BrokenPipeError:  # nobody reads the pipe any more
        raise
    except (OSError, ValueError) as error:
        reason = _reason(error) if path.parent.is_dir() else f"there is no folder {path.parent}; make it first"
        raise InvalidInstance(f"{path} cannot be written: {reason}") from error
    finally:
        for temporary, _ in written.values():
            with contextlib.suppress(OSError):  # renamed before, unless something failed
                temporary.unlink()


def _write(path: Path, content: bytes, mode: int | None) -> None:
    """Write a new file with a mode (None: that of new files), and wait until it is on the disk."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags, 0o666 if mode is None else mode & 0o600), "wb") as file:
        if mode is not None:
            path.chmod(mode)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _flush(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, where the system can."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def is_device(path: Path) -> bool:
    """Return whether the path is a pipe or a device, which a file cannot replace; ``/dev/stdout`` also where it is a file."""
    return path.exists() and not path.is_dir() and (not path.is_file() or is_stream(path))


def refuse_existing(path: Path, *, force: bool) -> None:
    """Refuse to replace a file unless that is asked for.

    Raises
    ------
    InvalidInstance
    """
    if path.is_dir():
        raise InvalidInstance(f"{path} is a folder; give the name of a file")
    if path.exists() and not is_device(path) and not force:
        raise InvalidInstance(f"{path} exists; give another name, or replace it with --force")


def refuse_read(path: Path, inputs: Iterable[Path]) -> None:
    """Refuse to write a file that is one of those that are read, by this name, by another, or by a link; and links in a circle.

    Raises
    ------
    InvalidInstance
    """
    if os.path.islink(os.path.realpath(path)):
        raise InvalidInstance(f"{path} is a link that leads in a circle; remove it, or give another name")
    if not is_device(path) and any(_is_same(path, each) for each in inputs):
        raise InvalidInstance(f"{path} is read here, and would be replaced; give another name for what is written")


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except (OSError, ValueError):  # there is none
        return False


def _reason(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)
