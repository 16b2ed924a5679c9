"""The scripts of ``sacctmgr`` commands that set limits of Slurm and take them back."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fairopt.instance import safe_ratio
from fairopt.slurm.limits import MOST, Limit, SlurmLimits
from fairopt.slurm.qos_limits import QosExport
from fairopt.wording import figure, joined, plural, printable

__all__ = ["SlurmScripts"]

_STEP = 10  # between weights of nodes
_LEFT = "Limits are taken back. Associations with running jobs are still there: run this again when the jobs have ended."


@dataclass(frozen=True, slots=True, eq=False)
class SlurmScripts:
    """The scripts of some limits."""

    asked: SlurmLimits
    limits: list[Limit]

    def set_limits(self) -> str:
        """Return the script that sets the limits."""
        allocation, and_licenses = self.asked.whole.allocation, " and license/NAME" if self.asked.licenses else ""
        head = [
            f"fairopt: limits of Slurm for the allocation {allocation.notion}, level {'qos' if self.asked.qos else self.asked.level}, "
            f"headroom {figure(self.asked.headroom, 6)}.",
            f"GrpTRES is enforced where AccountingStorageEnforce has limits; gres/NAME{and_licenses} must be in AccountingStorageTRES.",
            "Before: sacctmgr dump CLUSTER file=before.cfg. Afterwards: the script of --undo takes the limits back.",
        ]
        if self.asked.billing:
            weights = ",".join(text for text, _ in self.asked.weights().values())
            head += ["slurm.conf: PriorityFlags=MAX_TRES, and of every partition", f'  TRESBillingWeights="{weights}"']
        if self.asked.level == "account-partition":
            head += ["Partitions, one for each row of servers:"]
            for group in self.asked.whole.groups:
                head.append(f"  PartitionName={self.asked.partition[group.name]}  {self._servers(group.name)}")
        elif len(self.asked.whole.groups) > 1:
            head += ["Weights of nodes in slurm.conf that come near the placement (nodes of low weight are filled first):"]
            for g, weight in self._node_weights():
                head.append(f"  Weight={weight}  {self._servers(self.asked.whole.groups[g].name)}")
        new = [limit for limit in self.limits if limit.new]
        if new:
            head.append("An association that is there already cannot be added, which is no error: the script can be run again.")
        lines = [f"{_command(['add', 'user', *limit.association])} || true" for limit in new]
        lines += [_command(["modify", *limit.where, "set", f"GrpTRES={self._tres(limit.amounts)}"]) for limit in self.limits]
        if self.asked.qos is not None:
            lines += [f"{_command(['add', 'qos', name])} || true" for name in self.asked.qos.new]
            lines += self._of_qos(self.asked.qos, "amount")
            lines += [_of_one_qos(name, [f"Preempt+={other}"]) for name, other in self.asked.qos.preempt]
        return _script(head, lines)

    def take_back(self) -> str:
        """Return the script that takes the limits back."""
        head = ["fairopt: takes back what the script of limits sets. A limit of -1 is none."]
        new = [limit for limit in self.limits if limit.new]
        lines = [self._back(limit) for limit in self.limits if not limit.new]
        if (qos := self.asked.qos) is not None:
            lines += self._of_qos(qos, "before")
            lines += [_of_one_qos(name, [f"Preempt-={other}"]) for name, other in qos.preempt if name not in qos.new]
            lines += [f"{_command(['delete', 'qos', 'where', f'name={name}'])} || true" for name in qos.new]
        if new:
            head.append("sacctmgr does not delete an association while its jobs run: let them end, and run this again.")
            lines.append("left=")
        for limit in new:  # what an earlier run has deleted cannot be modified, which is no error
            lines += [
                f"if {self._back(limit)}",
                "then",
                f"  {_command(['delete', 'user', 'where', *limit.association])} || left=yes",
                "fi",
            ]
        if new:
            lines.append(f'[ -z "$left" ] || {{ echo {shlex.quote(_LEFT)} >&2; exit 1; }}')
        return _script(head, lines)

    def _of_qos(self, qos: QosExport, which: Literal["amount", "before"]) -> list[str]:
        """Return a command for each QOS; of those that are new, there is nothing to put back."""
        settings: dict[str, dict[str, dict[str, int]]] = {}
        for each in qos.settings:
            if which == "amount" or each.qos not in qos.new:
                settings.setdefault(each.qos, {}).setdefault(each.name, {})[each.key] = getattr(each, which)
        return [
            _of_one_qos(name, [f"{setting}={own[''] if '' in own else self._tres(own)}" for setting, own in of.items()])
            for name, of in settings.items()
        ]

    def _back(self, limit: Limit) -> str:
        """Return the command that puts back the limits of an association."""
        old = {key: limit.before.get(key, -1) for key in limit.amounts}
        return _command(["modify", *limit.where, "set", f"GrpTRES={self._tres(old)}"])

    def _tres(self, amounts: Mapping[str, int]) -> str:
        memory = {measure.key for measure in self.asked.holdings.measures.values() if measure.kind == "memory"}
        return ",".join(f"{key}={_megabytes(value) if key in memory else value}" for key, value in sorted(amounts.items()))

    def _servers(self, name: str) -> str:
        rows = [self.asked.whole.instance.servers[i] for group in self.asked.whole.groups if group.name == name for i in group.rows]
        count = sum(group.count for group in self.asked.whole.groups if group.name == name)
        return f"# {plural(count, 'node')}: {printable(joined(rows, MOST))}"

    def _node_weights(self) -> list[tuple[int, int]]:
        """Return the groups in the order in which to fill them, with their weights."""
        eligible = np.array([self.asked.whole.instance.eligibility[:, group.rows].any(axis=1) for group in self.asked.whole.groups], float)
        tasks = self.asked.whole.tasks.T  # (groups, users)
        share = np.asarray(safe_ratio(tasks, self.asked.whole.tasks_per_user[None, :]))
        here = np.where(self.asked.whole.tasks_per_user > 0, share, 0.0) @ eligible.T  # parts of users placed on g who may run on the other
        order = np.argsort(-(here - here.T).sum(axis=1), kind="stable")
        return [(int(g), _STEP * number) for number, g in enumerate(order, 1)]


def _megabytes(amount: int) -> str:
    """Return an amount of MiB in Slurm's letters, which are powers of 1024."""
    if amount < 0:
        return str(amount)
    return f"{amount // 1024}G" if amount % 1024 == 0 and amount else f"{amount}M"


def _of_one_qos(name: str, settings: list[str]) -> str:
    return _command(["modify", "qos", "where", f"name={name}", "set", *settings])


def _command(words: list[str]) -> str:
    return " ".join(["sacctmgr", "-i", *(shlex.quote(word) for word in words)])


def _script(head: list[str], lines: list[str]) -> str:
    """Return a script that stops at the first command that fails. Comments never hold a line end."""
    return "\n".join(["#!/bin/sh", *(f"# {printable(line)}" for line in head), "set -e", *lines, ""])
