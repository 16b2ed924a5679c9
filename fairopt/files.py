"""Read text files with clear error messages, and replace files atomically.

A file is written under a temporary name in the same folder and then renamed, so a reader never sees half of it. Of several files, all are
written before the first is renamed. A pipe or a device is written to, and never replaced.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     write_files({Path(folder, "a.txt"): "one\\n"})
...     read_text(Path(folder, "a.txt"))
'one\\n'
"""

from __future__ import annotations

import contextlib
import gzip
import os
import secrets
import shutil
import zlib
from collections.abc import Mapping
from pathlib import Path

from fairopt.errors import InvalidInstance
from fairopt.streams import write_device
from fairopt.wording import did_you_mean

__all__ = ["is_device", "read_bytes", "read_text", "refuse_existing", "write_files"]


def read_bytes(path: Path) -> bytes:
    """Return what a file holds.

    Raises
    ------
    InvalidInstance
        If the file is missing, a folder, or not readable.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        neighbours = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        raise InvalidInstance(f"there is no file {path}{did_you_mean(path.name, neighbours)}") from None
    except IsADirectoryError:
        raise InvalidInstance(f"{path} is a folder, not a file; give the path of a file in it") from None
    except (OSError, ValueError) as error:
        raise InvalidInstance(f"{path} cannot be read: {_reason(error)}") from error


def read_text(path: Path) -> str:
    """Return the UTF-8 text of a file. ``*.gz`` is unpacked, a byte order mark is dropped, and line ends stay as they are.

    Raises
    ------
    InvalidInstance
        If the file is missing, a folder, not readable, not text, or not UTF-8.
    """
    data = read_bytes(path)
    try:
        if path.suffix.lower() == ".gz":
            data = gzip.decompress(data)
    except (EOFError, zlib.error, OSError) as error:
        raise InvalidInstance(f"{path} cannot be unpacked: {error}; copy or compress it again") from None
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InvalidInstance(f"{path} is written in UTF-16; save it as UTF-8")
    if b"\0" in data:
        raise InvalidInstance(f"{path} is a binary file, not text; give a YAML, JSON or CSV file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidInstance(f"{path}, line {line}: byte 0x{data[error.start]:02x} is not UTF-8 text; save the file as UTF-8") from None


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
            temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
            written[path] = (temporary, target)
            temporary.write_bytes(data[path])
            if target.exists():
                shutil.copymode(target, temporary)
        for path in devices:
            write_device(path, data[path])
        for path in written:
            temporary, target = written[path]
            temporary.replace(target)
    except (OSError, ValueError) as error:
        reason = _reason(error) if path.parent.is_dir() else f"there is no folder {path.parent}; make it first"
        raise InvalidInstance(f"{path} cannot be written: {reason}") from error
    finally:
        for temporary, _ in written.values():
            with contextlib.suppress(OSError):  # renamed before, unless something failed
                temporary.unlink()


def is_device(path: Path) -> bool:
    """Return whether the path is a pipe or a device, which a file cannot replace."""
    return path.exists() and not path.is_file() and not path.is_dir()


def refuse_existing(path: Path, *, force: bool) -> None:
    """Refuse to replace a file unless that is asked for.

    Raises
    ------
    InvalidInstance
    """
    if path.is_dir():
        raise InvalidInstance(f"{path} is a folder; give the name of a file")
    if path.exists() and path.is_file() and not force:
        raise InvalidInstance(f"{path} exists; give another name, or replace it with --force")


def _reason(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)
