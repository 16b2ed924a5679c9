"""Which reader a log needs: by the ending of its name, and by its first line."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairopt.errors import InvalidInstance
from fairopt.files import beginning, first_line
from fairopt.formats import load
from fairopt.histories.job_log import JobLog
from fairopt.instance import Instance, require_instance
from fairopt.instance.packing_rules import REWRITE, as_limits
from fairopt.tables import BOOKS

if TYPE_CHECKING:
    import pandas as pd

    from fairopt.slurm.sacct_log import Places

__all__ = ["USERS", "associated", "cluster_of_log", "read_cluster", "read_log_file"]

USERS = {
    "table": (),
    "sacct": ("user", "account"),
    "pbs": ("user", "group", "project", "account", "queue"),
    "htcondor": ("submitter", "user", "group"),
    "swf": ("user", "group", "queue"),
    "kubernetes": ("namespace", "priority", "label:KEY"),
}


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


def cluster_of_log(
    log: object,
    *,
    nodes: str | os.PathLike[str] | None,
    associations: str | os.PathLike[str] | None,
    licenses: str | os.PathLike[str] | None,
    users: str | None,
    lenient: bool,
) -> tuple[Instance, Places | None, tuple[str, ...]]:
    """Return the cluster of a log without an instance file, where jobs may run if that is known, and notes.

    It is described by exports of Slurm, PBS or HTCondor, or by the header of a log (.swf).

    Raises
    ------
    InvalidInstance
        The log is of another kind, or the nodes are missing.
    """
    if isinstance(log, list | tuple) and log:
        log = log[0]
    if not isinstance(log, str | os.PathLike):
        raise InvalidInstance("a history of this log needs a cluster: give an instance or its file (--cluster)")
    path = Path(log)
    kind = kind_of(path)
    if kind == "swf" and nodes is None and associations is None and licenses is None:
        from fairopt.clusters.swf_log import cluster_of_swf

        return cluster_of_swf(path, lenient=lenient), None, ()
    if kind == "pbs" and nodes is not None and associations is None and licenses is None:
        from fairopt.clusters.pbs.log import cluster_of_log as of_pbs

        cluster, notes = of_pbs(nodes, lenient=lenient)
        return cluster, None, notes
    if kind == "htcondor" and nodes is not None and associations is None and licenses is None:
        from fairopt.clusters.htcondor.log import cluster_of_log as of_htcondor

        cluster, notes = of_htcondor(nodes, lenient=lenient)
        return cluster, None, notes
    if kind != "sacct":
        raise InvalidInstance(
            f"{path}: a history of this log needs a cluster: give an instance or its file (--cluster); nodes are of Slurm, PBS or "
            "HTCondor, associations of Slurm"
        )
    if nodes is None:
        raise InvalidInstance(
            f"{path}: there is no cluster; give its nodes (scontrol show nodes > nodes.txt; --nodes), or an instance (--cluster)"
        )
    if users is not None and users not in USERS["sacct"]:
        raise InvalidInstance(f'users is "{users}"; give {" or ".join(USERS["sacct"])} for {path}')
    from fairopt.slurm.past import cluster_of_log as of_slurm
    from fairopt.slurm.sacct import read_sacct
    from fairopt.slurm.sacct_log import NEEDED

    return of_slurm(read_sacct(path, NEEDED), nodes, associations, licenses, users=users or "user", lenient=lenient)


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


def kind_of(path: Path) -> str:
    """Return the kind of a log: "table", "sacct", "pbs", "htcondor", "swf" or "kubernetes"."""
    name = path.name.lower().removesuffix(".gz")
    for ending, kind in ((".swf", "swf"), (".json", "kubernetes"), *((each, "table") for each in (".csv", ".parquet", *BOOKS))):
        if name.endswith(ending):
            return kind if kind != "kubernetes" else "sacct" if _is_of_slurm(path) else "htcondor" if _is_of_htcondor(path) else kind
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


def read_log_file(
    log: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | pd.DataFrame | JobLog,
    cluster: Instance,
    *,
    users: str | None = None,
    timezone: str | None = None,
    lenient: bool = False,
    places: Places | None = None,
) -> JobLog:
    """Read a log of any kind, or take one; ``places`` says where jobs of ``sacct`` may run.

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
    kind = kind_of(paths[0])
    if len(paths) > 1 and kind not in ("kubernetes", "pbs", "htcondor"):
        raise InvalidInstance(
            f"{paths[1]}: only pods of Kubernetes, records of PBS and ads of HTCondor come in several files; join the others into one"
        )
    allowed = USERS[kind]
    if users is not None and users not in allowed and not (kind == "kubernetes" and users.startswith("label:")):
        there = f"give {', '.join(allowed[:-1])} or {allowed[-1]} for" if allowed else "leave it out: a column user names the owners in"
        raise InvalidInstance(f'users is "{users}"; {there} {paths[0]}')
    options: dict[str, Any] = {"timezone": timezone, "lenient": lenient}
    if kind == "table":
        from fairopt.histories.from_table import read_table

        return JobLog.of(read_table(paths[0], cluster, **options), cluster)
    options["users"] = users or allowed[0]
    if kind == "swf":
        from fairopt.clusters.swf_log import read_swf_log

        return JobLog.of(read_swf_log(paths[0], cluster, **options), cluster)
    if kind == "kubernetes":
        from fairopt.kubernetes.pod_log import read_pod_log

        return JobLog.of(read_pod_log(paths, cluster, **options), cluster)
    if kind == "htcondor":
        from fairopt.clusters.htcondor.log import read_htcondor_log

        return JobLog.of(read_htcondor_log(paths, cluster, **options), cluster)
    if kind == "pbs":
        from fairopt.clusters.pbs.log import read_pbs_log

        return JobLog.of(read_pbs_log(paths, cluster, **options), cluster)
    from fairopt.slurm.sacct_log import read_sacct_log

    return JobLog.of(read_sacct_log(paths[0], cluster, places=places, **options), cluster)
