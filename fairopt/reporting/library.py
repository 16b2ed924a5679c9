"""Vega, Vega-Lite and Vega-Embed as one script, which a page holds.

vl-convert takes seconds to put the script together, and it depends on nothing but its version. So it is kept in the user's folder of
caches, one file a version: the SHA-256 digest of the script, then the script. A file that is cut short or was changed is not used. Where
the folder cannot be written, each process puts the script together.
"""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from fairopt.files import write_files

__all__ = ["cache_folder", "library"]


@cache
def library() -> str:
    """Return the script, such that it can stand in a ``<script>`` element."""
    folder = cache_folder()
    file = None if folder is None else folder / f"vega-{version('vl-convert-python')}.js"
    kept = None if file is None else _read(file)
    if kept is not None:
        return kept
    import vl_convert

    made: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # its stub asks for a snippet, its code does not
    script = made.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    if file is not None:
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            write_files({file: f"{_digest(script)}\n{script}"})
    return script


def cache_folder() -> Path | None:
    """Return the folder in which fairopt may keep files that it can make again, None if the system names none.

    It is ``fairopt`` in ``$XDG_CACHE_HOME``, by default ``~/.cache``; on Windows and macOS in their folders of caches.
    """
    named = os.environ.get("XDG_CACHE_HOME" if sys.platform != "win32" else "LOCALAPPDATA", "")
    if named and Path(named).is_absolute():
        return Path(named, "fairopt")
    try:
        home = Path.home()
    except RuntimeError:
        return None
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "fairopt"


def _read(file: Path) -> str | None:
    """Return the script that a file holds; None if there is none, or not the one that was written."""
    try:
        digest, _, script = file.read_bytes().decode().partition("\n")
    except (OSError, ValueError):
        return None
    return script if digest == _digest(script) else None


def _digest(script: str) -> str:
    return hashlib.sha256(script.encode()).hexdigest()
