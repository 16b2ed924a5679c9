"""The associations of a Slurm cluster: the table of ``sacctmgr -P show assoc`` or of ``sshare -a -l -P``, or slurmrestd's answer.

`read_associations` reads them for an import, which needs shares, and for an export, which needs the limits that are set now.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from fairopt.clusters.account import Account
from fairopt.clusters.json_export import Part
from fairopt.errors import InvalidInstance
from fairopt.slurm.jobs import Job
from fairopt.slurm.reading import read_records, tres_amounts
from fairopt.slurm.syntax import words
from fairopt.slurm.text import Record
from fairopt.wording import did_you_mean, joined

__all__ = ["ROOT", "CurrentLimits", "Key", "current_limits", "key_of", "limits_of", "of_cluster", "read_associations"]

_MOST = 5
ROOT = "root"
"""The account that is above all others."""
Key: TypeAlias = tuple[str, str, str]
"""Account, user ("": the association is of the account itself), partition ("": of all)."""


def read_associations(path: str | os.PathLike[str], needed: Sequence[str]) -> list[Part]:
    """Return the associations that are not deleted.

    Parameters
    ----------
    needed : sequence of str
        The columns of ``sacctmgr`` that a table must have, or those of the same meaning.

    Raises
    ------
    InvalidInstance
        With the file, and the line or the field.
    """
    return [part for part in read_records(path, "associations", needed) if "DELETED" not in words(part.get("flags"))]


def key_of(part: Part) -> Key:
    """Return account, user and partition of an association."""
    return part["account"].text(), part.get("user").text(""), part.get("partition").text("")


def limits_of(part: Part) -> dict[str, float]:
    """Return ``GrpTRES`` of an association by TRES, as "cpu", "mem" (MiB) or "gres/gpu:a100"."""
    if isinstance(part, Record):
        return tres_amounts(part.get("grp_tres"))
    return tres_amounts(part.get("max").get("tres").get("total"))


def of_cluster(path: str | os.PathLike[str], records: list[Part], jobs: Iterable[Job], account: Account) -> list[Part]:
    """Return the associations of the cluster of the jobs, as far as both name one."""
    clusters = {job.part.get("cluster").text("") for job in jobs} - {""}
    named = [(record, record.get("cluster").text("")) for record in records]
    others = {name for _, name in named if name}
    if clusters and others and not clusters & others:
        raise InvalidInstance(
            f"{path}: the associations are of the cluster {joined(sorted(others), 3)}, and the jobs of {joined(sorted(clusters), 3)}; "
            "export both of one cluster"
        )
    if len(others) > 1 and not clusters:
        account.note(
            f"the associations are of the clusters {joined(sorted(others), 3)}, and the jobs do not say of which they are: all count; "
            "export those of one (sacctmgr -P show assoc tree cluster=NAME)"
        )
    return [record for record, name in named if not clusters or not name or name in clusters]


@dataclass(frozen=True, slots=True)
class CurrentLimits:
    """Limits by account, user ("": of the account itself) and partition ("": of all), and the cluster ("" if the table has none)."""

    path: Path
    listed: Mapping[Key, dict[str, int]]
    cluster: str = ""

    def has(self, account: str, user: str, partition: str) -> bool:
        """Return whether there is such an association."""
        return (account, user, partition) in self.listed

    def limits(self, account: str, user: str, partition: str) -> dict[str, int]:
        """Return its limits by TRES; memory in MiB."""
        return self.listed.get((account, user, partition), {})

    def require(self, account: str, user: str, partition: str) -> None:
        """Refuse an account, or a user of it, that is not there, and a user who has associations for single partitions alone.

        Raises
        ------
        InvalidInstance
        """
        accounts = list(dict.fromkeys(account for account, _, _ in self.listed))
        if account not in accounts:
            raise InvalidInstance(
                f'{self.path} has no account "{account}"{did_you_mean(account, accounts)}; it has {joined(accounts, _MOST)}: '
                "was the file exported from another cluster?"
            )
        users = list(dict.fromkeys(u for a, u, _ in self.listed if a == account and u))
        if user and user not in users:
            raise InvalidInstance(
                f'{self.path} has no user "{user}" in the account "{account}"{did_you_mean(user, users)}; '
                f"it has {joined(users, _MOST) or 'nobody there'}"
            )
        if user and not partition and not self.has(account, user, ""):
            raise InvalidInstance(
                f'{self.path}: the user "{user}" of the account "{account}" has associations for single partitions alone; limit them at '
                "the level account-partition"
            )


def current_limits(path: str | os.PathLike[str]) -> CurrentLimits:
    """Return the limits of the associations as they are now.

    Raises
    ------
    InvalidInstance
        With the file, and the line or the field; the associations are of several clusters.
    """
    records = read_associations(path, ("Account", "User", "Partition", "GrpTRES"))
    clusters = {part.get("cluster").text("") for part in records}
    if len(clusters) > 1:
        raise InvalidInstance(
            f"{path}: there are associations of the clusters {joined(sorted(clusters), _MOST)}; export one: "
            "sacctmgr -P show assoc cluster=NAME > associations.txt"
        )
    listed = {key_of(part): {name: round(amount) for name, amount in limits_of(part).items()} for part in records}
    return CurrentLimits(Path(path), listed, clusters.pop() if clusters else "")
