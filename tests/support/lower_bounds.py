"""The lower bounds of pyproject.toml as constraints for pip, so that the oldest versions that fairopt allows can be installed.

A requirement without a lower bound has no constraint. Of several bounds of one package, the last one whose marker holds for this Python
counts. Packages that fairopt does not name have no constraint either: pip takes their newest versions that fit.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

__all__ = ["constraints", "requirements"]

_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*(?:>=\s*([0-9.]+)\s*)?(?:;\s*python_version\s*>=\s*'3\.([0-9]+)')?")


def constraints(requirements: Iterable[str], minor: int = sys.version_info.minor) -> list[str]:
    """Return ``NAME==BOUND`` for every package with a lower bound on Python 3.``minor``, by name.

    Raises
    ------
    ValueError
        For a requirement that says more than a name, extras, a lower bound and a marker ``python_version>='3.N'``.

    >>> constraints(["numpy>=2.1", "numpy>=2.3.2; python_version>='3.14'", "furo"], minor=13)
    ['numpy==2.1']
    >>> constraints(["numpy>=2.1", "numpy>=2.3.2; python_version>='3.14'", "furo"], minor=14)
    ['numpy==2.3.2']
    """
    bounds: dict[str, str] = {}
    for requirement in requirements:
        match = _REQUIREMENT.fullmatch(requirement)
        if match is None:
            raise ValueError(f"\"{requirement}\" is not NAME>=BOUND; python_version>='3.N'; write it so, or extend this script")
        name, bound, least = match.groups()
        if bound and int(least or 0) <= minor:
            bounds[name] = bound
    return [f"{name}=={bound}" for name, bound in sorted(bounds.items(), key=lambda item: item[0].lower())]


def requirements() -> list[str]:
    """Return all requirements of pyproject.toml, those of extras too."""
    project = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
