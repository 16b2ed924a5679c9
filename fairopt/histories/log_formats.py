"""The formats of logs that a history reads: whose jobs are in them, their readers, and what describes their clusters.

A format is one entry of `FORMATS`; `kind_of` recognises its files. The reader of a format is where its scheduler is, and is imported when a
log is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from fairopt.errors import InvalidInstance
from fairopt.files import beginning, first_line
from fairopt.instance import Instance
from fairopt.tables import BOOKS

if TYPE_CHECKING:
    from fairopt.clusters.log_records import Records
    from fairopt.slurm.sacct_log import Places

__all__ = ["FORMATS", "Described", "Exports", "LogFormat", "Reading", "kind_of"]

Described: TypeAlias = "tuple[Instance, Places | None, tuple[str, ...]]"
"""A cluster, where jobs may run if that is known, and notes."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How a log is read: for which cluster, with which owners, in which time zone; ``places`` says where jobs of sacct may run."""

    cluster: Instance
    users: str | None
    timezone: str | None
    lenient: bool
    places: Places | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The arguments that all readers of schedulers' logs take."""
        return {"users": self.users, "timezone": self.timezone, "lenient": self.lenient}


@dataclass(frozen=True, slots=True)
class Exports:
    """What describes the cluster of a log that has no instance file."""

    nodes: str | os.PathLike[str] | None
    associations: str | os.PathLike[str] | None
    licenses: str | os.PathLike[str] | None
    users: str | None
    lenient: bool

    @property
    def given(self) -> set[str]:
        """The names of the exports that are there."""
        return {word for word in ("nodes", "associations", "licenses") if getattr(self, word) is not None}


@dataclass(frozen=True, slots=True)
class LogFormat:
    """A format of logs.

    Attributes
    ----------
    read : function
        From the files, in the order of time, to their jobs.
    owners : tuple of str
        What an owner may be, the default first; of a table, none: a column names the owners.
    several : bool
        Does a log come in several files?
    describe : function, optional
        From the first file and exports to the cluster; None where these exports do not describe it.
    """

    read: Callable[[Sequence[Path], Reading], Records]
    owners: tuple[str, ...] = ()
    several: bool = False
    describe: Callable[[Path, Exports], Described | None] | None = None

    def owner_of(self, users: str | None, path: Path) -> str | None:
        """Return what an owner is: as asked, or the default.

        Raises
        ------
        InvalidInstance
            Jobs of this format have no such owner.
        """
        if users is None:
            return self.owners[0] if self.owners else None
        if users in self.owners or ("label:KEY" in self.owners and users.startswith("label:")):
            return users
        *others, last = self.owners or ("",)
        there = f"give {', '.join(others)} or {last} for" if self.owners else "leave it out: a column user names the owners in"
        raise InvalidInstance(f'users is "{users}"; {there} {path}')


# Readers -------------------------------------------------------------------------------------------------------------------------


def _table(paths: Sequence[Path], how: Reading) -> Records:
    from fairopt.histories.from_table import read_table

    return read_table(paths[0], how.cluster, timezone=how.timezone, lenient=how.lenient)


def _sacct(paths: Sequence[Path], how: Reading) -> Records:
    from fairopt.slurm.sacct_log import read_sacct_log

    return read_sacct_log(paths[0], how.cluster, places=how.places, **how.options)


def _swf(paths: Sequence[Path], how: Reading) -> Records:
    from fairopt.clusters.swf_log import read_swf_log

    return read_swf_log(paths[0], how.cluster, **how.options)


def _pods(paths: Sequence[Path], how: Reading) -> Records:
    from fairopt.kubernetes.pod_log import read_pod_log

    return read_pod_log(paths, how.cluster, **how.options)


def _pbs(paths: Sequence[Path], how: Reading) -> Records:
    from fairopt.clusters.pbs.log import read_pbs_log

    return read_pbs_log(paths, how.cluster, **how.options)


def _htcondor(paths: Sequence[Path], how: Reading) -> Records:
    from fairopt.clusters.htcondor.log import read_htcondor_log

    return read_htcondor_log(paths, how.cluster, **how.options)


# Clusters ------------------------------------------------------------------------------------------------------------------------


def _slurm_cluster(path: Path, exports: Exports) -> Described:
    if exports.nodes is None:
        raise InvalidInstance(
            f"{path}: there is no cluster; give its nodes (scontrol show nodes > nodes.txt; --nodes), or an instance (--cluster)"
        )
    owners = FORMATS["sacct"].owner_of(exports.users, path)
    from fairopt.slurm.past import cluster_of_log
    from fairopt.slurm.sacct import read_sacct
    from fairopt.slurm.sacct_log import NEEDED

    table = read_sacct(path, NEEDED)
    return cluster_of_log(table, exports.nodes, exports.associations, exports.licenses, users=owners or "", lenient=exports.lenient)


def _swf_cluster(path: Path, exports: Exports) -> Described | None:
    if exports.given:
        return None
    from fairopt.clusters.swf_log import cluster_of_swf

    return cluster_of_swf(path, lenient=exports.lenient), None, ()


def _pbs_cluster(path: Path, exports: Exports) -> Described | None:
    if exports.nodes is None or exports.given != {"nodes"}:
        return None
    from fairopt.clusters.pbs.log import cluster_of_log

    cluster, notes = cluster_of_log(exports.nodes, lenient=exports.lenient)
    return cluster, None, notes


def _htcondor_cluster(path: Path, exports: Exports) -> Described | None:
    if exports.nodes is None or exports.given != {"nodes"}:
        return None
    from fairopt.clusters.htcondor.log import cluster_of_log

    cluster, notes = cluster_of_log(exports.nodes, lenient=exports.lenient)
    return cluster, None, notes


FORMATS: Mapping[str, LogFormat] = MappingProxyType(
    {
        "table": LogFormat(_table),
        "sacct": LogFormat(_sacct, ("user", "account"), describe=_slurm_cluster),
        "pbs": LogFormat(_pbs, ("user", "group", "project", "account", "queue"), several=True, describe=_pbs_cluster),
        "htcondor": LogFormat(_htcondor, ("submitter", "user", "group"), several=True, describe=_htcondor_cluster),
        "swf": LogFormat(_swf, ("user", "group", "queue"), describe=_swf_cluster),
        "kubernetes": LogFormat(_pods, ("namespace", "priority", "label:KEY"), several=True),
    }
)


# Recognising them ----------------------------------------------------------------------------------------------------------------


def kind_of(path: Path) -> str:
    """Return the format of a log, a key of `FORMATS`: by the ending of its name, then by its first line.

    Raises
    ------
    InvalidInstance
        It is none of them.
    """
    name = path.name.lower().removesuffix(".gz")
    if name.endswith(".swf"):
        return "swf"
    if name.endswith((".csv", ".parquet", *BOOKS)):
        return "table"
    if name.endswith(".json"):
        return "sacct" if _is_of_slurm(path) else "htcondor" if _is_of_htcondor(path) else "kubernetes"
    if path.is_dir() or not path.exists():
        return "sacct"  # whose reader says what is wrong
    head = first_line(path).decode("utf-8", "replace")
    if not head:
        return "sacct"
    if ("|" in head and "jobid" in head.lower()) or (head.lstrip().startswith("{") and _is_of_slurm(path)):
        return "sacct"
    from fairopt.clusters.pbs.accounting import is_accounting

    if is_accounting(head):
        return "pbs"
    if _is_of_htcondor(path):
        return "htcondor"
    raise InvalidInstance(
        f"{path}: cannot tell what kind of log this is; end its name in .csv, .parquet, .xlsx or .ods (a table), .swf or .json (pods of "
        "Kubernetes), or give what sacct -P prints, with JobID in its first line, accounting records of PBS or ads of HTCondor"
    )


def _is_of_slurm(path: Path) -> bool:
    """Return whether JSON is what sacct --json writes, or slurmrestd answers, and not a list of Kubernetes."""
    head = beginning(path)
    return b'"apiVersion"' not in head and (b'"slurm"' in head.lower() or b'"jobs"' in head)


def _is_of_htcondor(path: Path) -> bool:
    """Return whether JSON is that of ads of jobs, and not a list of Kubernetes."""
    from fairopt.clusters.htcondor.log import is_history

    head = beginning(path)
    return b'"apiVersion"' not in head and is_history(head)
