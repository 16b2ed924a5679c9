"""Read files, packed or not, with clear error messages."""

from __future__ import annotations

import contextlib
import gzip
import io
import logging
import os
import re
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO

from fairopt.errors import InvalidInstance
from fairopt.files.limits import check_bytes, check_values, limits, size
from fairopt.wording import did_you_mean

__all__ = ["beginning", "first_line", "missing_file", "read_bytes", "read_old_text", "read_stdin", "read_text", "reason"]

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
        If the file is missing, a folder, or not readable, or holds more than :mod:`fairopt.files.limits` allows.
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
        raise InvalidInstance(f"{path} cannot be read: {reason(error)}") from error


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
    return _unpacked(path, lambda file: file.readline(most))


def beginning(path: Path, most: int = 4000) -> bytes:
    """Return the first bytes of a file, as `first_line` does its first line."""
    return _unpacked(path, lambda file: file.read(most))


def _unpacked(path: Path, read: Callable[[IO[bytes] | gzip.GzipFile], bytes]) -> bytes:
    if not path.is_file():
        return b""
    try:
        with path.open("rb") as file:
            if path.suffix.lower() != ".gz":
                return read(file)
            with gzip.GzipFile(fileobj=file) as unpacked:
                return read(unpacked)
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


def read_stdin() -> str:
    """Return the UTF-8 text of the standard input, as `read_text` returns that of a file.

    Raises
    ------
    InvalidInstance
        It is too large, not text, or not UTF-8.
    """
    path = Path("standard input")
    return _decoded(path, _at_most(sys.stdin.buffer, path))


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


def reason(error: Exception) -> str:
    """Return what the system says of an error."""
    return (isinstance(error, OSError) and error.strerror) or str(error)
