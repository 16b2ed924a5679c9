"""The page: one file that holds its data, its charts and the library that draws them, and asks nobody for anything.

Text goes through Jinja2 with autoescape, data through a JSON block in which no tag can end or begin, and a content security policy lets only
the scripts run whose hashes it names: a label is text wherever it stands.
"""

from __future__ import annotations

import base64
import hashlib
import platform
import shlex
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from fairopt.errors import SolverUnavailable
from fairopt.formats.syntax import to_yaml
from fairopt.report.findings import Findings
from fairopt.report.tables import Table, number, percent, server_table, user_table
from fairopt.report.words import about_instance, about_notion, summary

__all__ = ["require", "write_page"]

_NEEDS = ("altair", "jinja2", "vl_convert")
_VERSIONS = ("fairopt", "numpy", "scipy", "highspy", "altair", "vl-convert-python", "jinja2")


def require() -> None:
    """Say what to install, before anything is computed.

    Raises
    ------
    SolverUnavailable
    """
    from importlib.util import find_spec

    missing = [name.replace("vl_convert", "vl-convert-python") for name in _NEEDS if find_spec(name) is None]
    if missing:
        raise SolverUnavailable(f"a report needs {' and '.join(missing)}; pip install 'fairopt[report]'")
