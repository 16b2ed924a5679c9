"""What libraries would take from the current folder: settings that nobody has named.

fairopt runs where its files are, and others may write there. Some libraries read a file of settings in the current folder, and such a file
can name a program, a library or a cache that is then run. So a library is imported `without_settings`, and an engine that starts a program
which reads such a file refuses it (`refuse_settings`). Environment variables and the settings in the user's own folders count as ever, and
so does the file where a program has imported the library before fairopt does.

>>> with without_settings():
...     import matplotlib
>>> from pathlib import Path
>>> Path(matplotlib.matplotlib_fname()).is_absolute()
True
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from fairopt.errors import Unsupported

__all__ = ["refuse_settings", "without_settings"]

_SETTINGS = (".numba_config.yaml", "matplotlibrc")  # which numba and matplotlib look for as they are imported
_OPTIONS = ("ipopt.opt", "bonmin.opt", "couenne.opt", "scip.set", "gurobi.env")  # which solvers read as they start
_guard = threading.RLock()


@contextmanager
def without_settings() -> Iterator[None]:
    """Have what is imported inside find no settings in the current folder.

    The libraries ask ``os.path.exists`` for the bare name of their file. Changing the current folder meanwhile would also change where
    other threads read and write.
    """
    with _guard:
        exists = os.path.exists
        os.path.exists = lambda path: path not in _SETTINGS and exists(path)
        try:
            yield
        finally:
            os.path.exists = exists


def refuse_settings(what: str) -> None:
    """Refuse to start a solver where a file may be its settings: such a file of Ipopt names a library that is loaded.

    Parameters
    ----------
    what : str
        Which solver it is, for the message.

    Raises
    ------
    Unsupported
    """
    for name in _OPTIONS:
        if os.path.lexists(name):
            raise Unsupported(f"{what} may read its settings from {name} in the current folder; run fairopt in another folder, or move it")
