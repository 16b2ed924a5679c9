"""Replace files atomically.

A file is written under a temporary name in the same folder, flushed to the disk, and then renamed, so a reader never sees half of it, and
neither does one after the power has failed. Of several files, all are written before the first is renamed. A file that is replaced keeps
its mode, from the first byte on. A pipe or a device is written to, and never replaced.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from fairopt.errors import InvalidInstance
from fairopt.files.reading import reason
from fairopt.processes.streams import is_stream, write_device

__all__ = ["is_device", "refuse_existing", "refuse_read", "write_files"]


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
        why = reason(error) if path.parent.is_dir() else f"there is no folder {path.parent}; make it first"
        raise InvalidInstance(f"{path} cannot be written: {why}") from error
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
