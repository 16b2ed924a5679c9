"""The associations of a Slurm cluster as they are now: the table of ``sacctmgr -P show assoc``."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from fairopt.errors import InvalidInstance
from fairopt.files import read_text
from fairopt.imports.slurm_syntax import tres
from fairopt.wording import did_you_mean, joined

__all__ = ["Associations", "read_associations"]

_COMMAND = "sacctmgr -P show assoc > associations.txt"
_NEEDED = ("Account", "User", "Partition", "GrpTRES")
_MOST = 5


@dataclass(frozen=True, slots=True)
class Associations:
    """Limits by account, user ("": of the account itself) and partition ("": of all)."""

    path: Path
    listed: dict[tuple[str, str, str], dict[str, int]]

    def has(self, account: str, user: str, partition: str) -> bool:
        """Return whether there is such an association."""
        return (account, user, partition) in self.listed

    def limits(self, account: str, user: str, partition: str) -> dict[str, int]:
        """Return its limits by TRES; memory in MiB."""
        return self.listed.get((account, user, partition), {})

    def require(self, account: str, user: str) -> None:
        """Refuse an account, or a user of it, that is not there.

        Raises
        ------
        InvalidInstance
        """
        accounts = list(dict.fromkeys(account for account, _, _ in self.listed))
        if account not in accounts:
            raise InvalidInstance(
                f'{self.path} has no account "{account}"{did_you_mean(account, accounts)}; it has {joined(accounts, _MOST)}: '
                "is it of another cluster?"
            )
        users = list(dict.fromkeys(u for a, u, _ in self.listed if a == account and u))
        if user and user not in users:
            raise InvalidInstance(
                f'{self.path} has no user "{user}" in the account "{account}"{did_you_mean(user, users)}; '
                f"it has {joined(users, _MOST) or 'nobody there'}"
            )


def read_associations(path: str | os.PathLike[str]) -> Associations:
    """Read the table.

    Raises
    ------
    InvalidInstance
        With the file and the line.
    """
    path = Path(path)
    lines = read_text(path).splitlines()
    columns = lines[0].split("|") if lines else []
    if missing := [name for name in _NEEDED if name not in columns]:
        raise InvalidInstance(f"{path}, line 1: there is no column {missing[0]}; export the associations again: {_COMMAND}")
    listed: dict[tuple[str, str, str], dict[str, int]] = {}
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
    if len(clusters) > 1:
        raise InvalidInstance(
            f"{path}: there are associations of the clusters {joined(sorted(clusters), _MOST)}; export one: "
            "sacctmgr -P show assoc cluster=NAME > associations.txt"
        )
    return Associations(path, listed)
