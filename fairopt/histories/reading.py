"""A log of any format, with the cluster on which its jobs ran."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairopt.errors import InvalidInstance
from fairopt.files import missing_file
from fairopt.formats import load
from fairopt.histories.job_log import JobLog
from fairopt.histories.log_formats import FORMATS, Described, Exports, Reading, kind_of
from fairopt.instance import Instance, require_instance
from fairopt.instance.packing_rules import REWRITE, as_limits

if TYPE_CHECKING:
    import pandas as pd

    from fairopt.slurm.sacct_log import Places

__all__ = ["associated", "cluster_of_log", "read_cluster", "read_log_file"]


def read_cluster(
    cluster: Instance | str | os.PathLike[str], changes: Mapping[str, Any] | Sequence[str] = (), rules: Sequence[str] = ()
) -> Instance:
    """Return a cluster, of an instance or of the path of its file, with changes to the file and rules beside its own, as limits."""
    if isinstance(cluster, str | os.PathLike):
        cluster = load(cluster, changes=changes)
    elif changes:
        raise InvalidInstance("changes are for the file of a cluster, and there is an instance; change it before, with Instance.replace")
    require_instance(cluster)
    if rules:
        cluster = cluster.replace(rules=[*cluster.rules, *rules])
    return as_limits(cluster, "a history", instead=REWRITE, tasks_of_others=True)


def cluster_of_log(log: object, exports: Exports) -> Described:
    """Return the cluster of a log without an instance file, where jobs may run if that is known, and notes.

    It is described by exports of Slurm, PBS or HTCondor, or by the header of a log (.swf).

    Raises
    ------
    InvalidInstance
        There is no such file, the log is of another kind, or the nodes are missing.
    """
    if isinstance(log, list | tuple) and log:
        log = log[0]
    if not isinstance(log, str | os.PathLike):
        raise InvalidInstance("a history of this log needs a cluster: give an instance or its file (--cluster)")
    path = Path(log)
    if not path.exists():
        raise missing_file(path)
    describe = FORMATS[kind_of(path)].describe
    found = None if describe is None else describe(path, exports)
    if found is None:
        raise InvalidInstance(
            f"{path}: a history of this log needs a cluster: give an instance or its file (--cluster); nodes are of Slurm, PBS or "
            "HTCondor, associations of Slurm"
        )
    return found


def associated(log: object, cluster: Instance, associations: str | os.PathLike[str], users: str | None) -> tuple[Instance, tuple[str, ...]]:
    """Return a cluster with the accounts and users of a log of ``sacct`` that it does not list, as the associations have them, and notes.

    Raises
    ------
    InvalidInstance
        The log is of another kind.
    """
    if not isinstance(log, str | os.PathLike) or kind_of(Path(log)) != "sacct":
        raise InvalidInstance("associations are of Slurm: they go with a log of sacct; leave them out (--associations)")
    from fairopt.slurm.past import with_associations
    from fairopt.slurm.sacct import read_sacct
    from fairopt.slurm.sacct_log import NEEDED

    return with_associations(cluster, read_sacct(Path(log), NEEDED), associations, users=users or "user")


def read_log_file(
    log: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | pd.DataFrame | JobLog,
    cluster: Instance,
    *,
    users: str | None = None,
    timezone: str | None = None,
    lenient: bool = False,
    places: Places | None = None,
) -> JobLog:
    """Read a log of any format, or take one; ``places`` says where jobs of ``sacct`` may run.

    Raises
    ------
    InvalidInstance
        With the file and the place in it: what is wrong, and what to do.
    """
    if isinstance(log, JobLog):
        return log
    if not isinstance(log, str | os.PathLike | list | tuple):
        frame: Any = log
        if not hasattr(frame, "columns"):
            raise InvalidInstance(f"the log is {type(log).__name__}; give the path of a file, a pandas frame, or a JobLog")
        return JobLog.from_frame(frame, cluster, timezone=timezone, lenient=lenient)
    paths = [Path(each) for each in ([log] if isinstance(log, str | os.PathLike) else log)]
    if not paths:
        raise InvalidInstance("there is no log; give the path of one")
    log_format = FORMATS[kind_of(paths[0])]
    if len(paths) > 1 and not log_format.several:
        raise InvalidInstance(
            f"{paths[1]}: only pods of Kubernetes, records of PBS and ads of HTCondor come in several files; join the others into one"
        )
    how = Reading(cluster, log_format.owner_of(users, paths[0]), timezone, lenient, places)
    return JobLog.of(log_format.read(paths, how), cluster)
