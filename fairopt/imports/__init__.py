"""Instances from the exports of real clusters: one format a file."""

from __future__ import annotations

from fairopt.imports.kubernetes import import_kubernetes
from fairopt.imports.result import Import, LeftOut
from fairopt.imports.slurm import import_slurm

__all__ = ["Import", "LeftOut", "import_kubernetes", "import_slurm"]
