"""The associations of a Slurm cluster as they are now: the table of ``sacctmgr -P show assoc``, or slurmrestd's answer."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from fairopt.errors import InvalidInstance
from fairopt.files import read_text
from fairopt.slurm.reading import read_records
from fairopt.slurm.syntax import finite, tres, words
from fairopt.wording import did_you_mean, joined

__all__ = ["Associations", "read_associations"]

_COMMAND = "sacctmgr -P show assoc > associations.txt"
_NEEDED = ("Account", "User", "Partition", "GrpTRES")
_MOST = 5
_Listed: TypeAlias = dict[tuple[str, str, str], dict[str, int]]  # account, user ("": of the account itself), partition ("": of all)


@dataclass(frozen=True, slots=True)
class Associations:
    """Limits by account, user ("": of the account itself) and partition ("": of all), and the cluster ("" if the table has none)."""

    path: Path
    listed: _Listed
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


def read_associations(path: str | os.PathLike[str]) -> Associations:
    """Read the table, or the answer.

    Raises
    ------
    InvalidInstance
        With the file, and the line or the field.
    """
    path = Path(path)
    text = read_text(path)
    listed, clusters = _of_answer(path) if text.lstrip().startswith("{") else _of_table(path, text.splitlines())
    if len(clusters) > 1:
        raise InvalidInstance(
            f"{path}: there are associations of the clusters {joined(sorted(clusters), _MOST)}; export one: "
            "sacctmgr -P show assoc cluster=NAME > associations.txt"
        )
    return Associations(path, listed, clusters.pop() if clusters else "")


def _of_answer(path: Path) -> tuple[_Listed, set[str]]:
    """Return the limits by association, and the clusters that are named, from slurmrestd's answer."""
    listed: _Listed = {}
    clusters = set()
    for part in read_records(path, "associations"):
        if "DELETED" in words(part.get("flags")):
            continue
        clusters.add(part.get("cluster").text(""))
        limits = {}
        for each in part.get("max").get("tres").get("total").items():
            kind, name = each["type"].text(), each.get("name").text("")
            if each["count"].value != -1:  # no limit
                limits[f"{kind}/{name}" if name else kind] = round(finite(each["count"]))
        listed[part["account"].text(), part.get("user").text(""), part.get("partition").text("")] = limits
    return listed, clusters


def _of_table(path: Path, lines: list[str]) -> tuple[_Listed, set[str]]:
    """Return the same from the table."""
    columns = lines[0].split("|") if lines else []
    if missing := [name for name in _NEEDED if name not in columns]:
        raise InvalidInstance(f"{path}, line 1: there is no column {missing[0]}; export the associations again: {_COMMAND}")
    listed: _Listed = {}
    clusters = set()
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        cells = line.split("|")
        if len(cells) != len(columns):
            raise InvalidInstance(f"{path}, line {number}: expected {len(columns)} cells, found {len(cells)}; export it again: {_COMMAND}")
        row = dict(zip(columns, cells, strict=True))
        clusters.add(row.get("Cluster", ""))
        try:
            limits = {key: round(value) for key, value in tres(row["GrpTRES"]).items()}
        except ValueError as error:
            raise InvalidInstance(f"{path}, line {number}, column GrpTRES: {error}") from None
        listed[row["Account"].strip(), row["User"], row["Partition"]] = limits
    return listed, clusters
