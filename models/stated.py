r"""A notion with rows of one's own beside those of its program: what `fairopt.solve` solves when it is given a program.

    the goal and the limits of the notion,        sum of a[n,i] x[n,i] <= b   for each row that was stated

The rows are held by labels (`fairopt.program.stated_rows`), so the notion can be asked about another instance, as an audit asks that lets a
user leave: what a row says of users and servers that are not there is left out.

>>> import fairopt as fo
>>> lab = fo.Instance([[8], [8]], [[1], [1]], users=["a", "b"], servers=["new", "old"], resources=["gpu"])
>>> program = fo.formulate(lab, "drfh").with_limit("a on new", {("a", "new"): 1}, 1).with_limit("a on old", {("a", "old"): 1}, 2)
>>> allocation = fo.solve(program)
>>> allocation.tasks_per_user.round(9)
array([ 3., 13.])
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import FloatArray, Instance, IntArray
from fairopt.instance.aggregation import expand
from fairopt.instance.fractions import ExactArray
from fairopt.models.notion import Notion, Property, Sharing
from fairopt.program import Program
from fairopt.program.exact import ExactProgram
from fairopt.program.filling import Criterion
from fairopt.program.stated_rows import StatedRow, with_rows

__all__ = ["Stated"]


class Stated(Notion):
    """A notion with rows of one's own. It is not symmetric: rows may tell users and servers apart.

    Parameters
    ----------
    notion : Notion
        Whose goal and limits it has, and whose name.
    rows : tuple of StatedRow
    instance : Instance
        That the rows were stated for.
    program : Program, optional
        Where more was changed than rows were added, such as its goal: the program as it is. It holds for ``instance`` alone.
    """

    def __init__(self, notion: Notion, rows: tuple[StatedRow, ...], instance: Instance, program: Program | None = None) -> None:
        self.notion, self.rows, self.instance, self.program = notion, rows, instance, program
        self.kept: tuple[IntArray | None, IntArray | None] = (None, None)  # its users and servers by position; None: all, by their names
        for name in ("name", "title", "source", "references", "weights_per_resource", "divides_requests", "share_is_part"):
            setattr(self, name, getattr(notion, name))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "notion":
            raise AttributeError(name)
        return getattr(self.notion, name)  # such as ``share_per_task`` and ``goal``

    @property
    def exact_utility(self) -> ExactArray | None:
        """That of the notion."""
        return self.notion.exact_utility

    @property
    def without_rows(self) -> Notion:
        """The notion whose goal and limits it has."""
        return self.notion

    @property
    def options(self) -> dict[str, Any]:
        """The options of the notion, and the rows by name with their bounds."""
        return self.notion.options | {"limits": {row.name: row.bound for row in self.rows}}

    @property
    def chosen_options(self) -> dict[str, Any]:
        """Those of the notion, and the rows."""
        return self.notion.chosen_options | {"limits": self.options["limits"]}

    def promise(self, wanted: Property, instance: Instance, sharing: Sharing) -> str | None:
        """Return the citation of a proof of Pareto optimality, which holds for any limits; proofs of other properties know of no rows."""
        return self.notion.promise(wanted, instance, sharing) if wanted is Property.PARETO else None

    @property
    def utility(self) -> FloatArray | None:  # type: ignore[override]
        """That of the notion."""
        return self.notion.utility

    def changed(self, **values: object) -> Stated:
        """Return a copy with other values of some attributes, of its own or of the notion."""
        own = {name: value for name, value in values.items() if name in vars(self)}
        inner = {name: value for name, value in values.items() if name not in vars(self)}
        changed = copy.copy(self)
        vars(changed).update(own)
        if inner:
            changed.notion = self.notion.changed(**inner)
        return changed

    def restricted(self, users: IntArray | None = None, servers: IntArray | None = None) -> Stated:
        """Return the notion and its rows for the users and servers at these positions."""
        inner = self.notion.restricted(users, servers)
        kept = tuple(_composed(*each) for each in zip(self.kept, (users, servers), self._sizes, strict=True))
        if inner is self.notion and all(now is before for now, before in zip(kept, self.kept, strict=True)):
            return self
        return self.changed(kept=kept).changed(notion=inner)

    @property
    def _sizes(self) -> tuple[int, int]:
        sizes = (self.instance.n_users, self.instance.n_servers)
        return tuple(size if rows is None else rows.size for size, rows in zip(sizes, self.kept, strict=True))  # type: ignore[return-value]

    def check(self, instance: Instance, sharing: Sharing) -> None:
        """Refuse what the notion refuses, and another instance where the program was changed by hand."""
        self.notion.check(instance, sharing)
        if self.program is not None and instance != self.instance:
            raise Unsupported(
                f'the program "{self.name}" was changed by more than added limits, so it holds for its own instance alone; formulate it '
                "anew for another one, or write a notion of your own whose formulate makes these changes"
            )

    def check_queues(self, instance: Instance) -> None:
        """Refuse the queues that the notion refuses."""
        self.notion.check_queues(instance)

    def formulate(self, instance: Instance, *, sharing: Sharing, integral: bool) -> Program:
        """Return the program of the notion with the rows."""
        if self.program is not None:
            return replace(self.program, integral=integral or self.program.integral)
        return with_rows(self.notion.formulate(instance, sharing=sharing, integral=integral), self.rows_for(instance))

    def with_bound(self, name: str, bound: Any) -> Stated:
        """Return the notion with another bound of the row of this name."""
        return self.changed(rows=tuple(replace(row, bound=bound) if row.name == name else row for row in self.rows))

    def rows_for(self, instance: Instance) -> tuple[StatedRow, ...]:
        """Return the rows for an instance: a row of servers that was expanded to single servers has its coefficients on each of them."""
        users, servers = self.kept
        if servers is None and instance.servers != self.instance.servers:
            single, row = expand(self.instance)
            servers = row if instance.servers == single.servers else None
        if users is None and servers is None:
            return self.rows
        labels = (self.instance.users if users is None else instance.users, self.instance.servers if servers is None else instance.servers)
        return tuple(each.on(users, servers, labels) for each in self.rows)

    def in_fractions(self, instance: Instance, program: Program) -> ExactProgram:
        """Return that of the notion, which takes the numbers of the rows as they were given."""
        return self.notion.in_fractions(instance, program)

    def shares(self, instance: Instance, tasks: FloatArray) -> FloatArray | None:
        """Return those of the notion."""
        return self.notion.shares(instance, tasks)

    def describe_measure(self, instance: Instance, user: int) -> str:
        """Return that of the notion."""
        return self.notion.describe_measure(instance, user)

    def criterion(self, instance: Instance) -> Criterion:
        """Return that of the notion: a schedule knows of no rows."""
        return self.notion.criterion(instance)


def _composed(before: IntArray | None, chosen: IntArray | None, size: int) -> IntArray | None:
    """Return the positions of some of the rows at these positions; ``before`` where all of them are chosen in their order."""
    if chosen is None or np.array_equal(chosen, np.arange(size)):
        return before
    return np.asarray(chosen) if before is None else before[chosen]
