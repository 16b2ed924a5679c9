"""Programs that a test starts, and of which nothing is left when the test ends, however it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

__all__ = ["process"]


@contextlib.contextmanager
def process(*command: str, folder: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """Start a program in a session of its own; at the end it and what it started are killed, and its pipes closed."""
    program = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"COLUMNS": "200"},
    )
    try:
        yield program
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.communicate()
