"""What associations of Slurm have used: ``sshare -a -l -P``, whose ``RawUsage`` is in seconds of billing, already faded.

The usage of an account is that of its users and accounts, and of users who are gone. What is not that of a line below stays with the
account.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import NamedTuple

from fairopt.clusters.json_export import Part
from fairopt.files import read_text
from fairopt.slurm.text import ASSOCIATIONS, table, tree

__all__ = ["Used", "is_sshare", "read_sshare"]

_COMMAND = "sshare -a -l -P > sshare.txt"
_COLUMNS = ASSOCIATIONS | {"rawusage": "raw_usage"}
_ROUNDING = 1.0  # seconds of billing that a line is rounded by


class Used(NamedTuple):
    """What one owner has used.

    Attributes
    ----------
    names : tuple of str
        What a cluster may call the owner, the likeliest first; then the accounts that it is in.
    amounts : tuple of float
        One number, or one for each window, the present one first.
    """

    names: tuple[str, ...]
    amounts: tuple[float, ...]


def is_sshare(head: str) -> bool:
    """Return whether the first line of a file is that of ``sshare``.

    >>> is_sshare("Account|User|RawShares|NormShares|RawUsage|EffectvUsage|FairShare")
    True
    """
    return {"account", "rawusage"} <= {name.strip().lower() for name in head.split("|")}


def read_sshare(path: str | os.PathLike[str]) -> list[Used]:
    """Return the usage of each association that has any.

    Raises
    ------
    InvalidInstance
        With the file, the line and the column.
    """
    records = table(read_text(Path(path)), str(path), _COMMAND, _COLUMNS, ("Account", "User", "RawUsage"))
    tree(records)
    parents = {record["account"].text(): record.get("parent_account").text("") for record in records if not record.get("user").text("")}
    below: dict[str, float] = {}
    for record in records:
        above = record["account"].text() if record.get("user").text("") else parents[record["account"].text()]
        below[above] = below.get(above, 0.0) + _usage(record)
    found = []
    for record in records:
        account, user = record["account"].text(), record.get("user").text("")
        partition, usage = record.get("partition").text(""), _usage(record)
        if not user:
            usage -= below.get(account, 0.0)
            if usage <= _ROUNDING * (1 + len(records)):
                continue
        if usage > 0:
            own = [f"{account}/{user}/{partition}"] if user and partition else []
            own += [f"{account}/{user}"] if user else []
            names = (*own, *_above(account, parents), *([user] if user else []))
            found.append(Used(names or (account,), (usage,)))  # of the root: of nobody
    return found


def _usage(record: Part) -> float:
    field = record["raw_usage"]
    try:
        usage = float(field.text())
    except ValueError:
        usage = math.nan
    if not (math.isfinite(usage) and usage >= 0):
        field.refuse(f'expected a number >= 0, found "{field.text()}"')
    return usage


def _above(account: str, parents: dict[str, str]) -> list[str]:
    """Return an account and those that it is in, without the root."""
    way: list[str] = []
    while account and account != "root" and account not in way:
        way.append(account)
        account = parents.get(account, "")
    return way
