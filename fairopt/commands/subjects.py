"""The one allocation that a command is about: of ``--notion``, of ``--schedule``, or yours of ``--allocation``.

Options that do not belong together are refused before the cluster is read, and a file or a word that is wrong before anything is solved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import typer

import fairopt as fo
from fairopt.allocation import GIVEN
from fairopt.analysis.own_schedulers import made
from fairopt.analysis.rerun import given
from fairopt.commands.shares import Shares
from fairopt.models import default_sharing
from fairopt.specs import read_notion, read_schedule

__all__ = ["Subject"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What says which allocation it is.

    Attributes
    ----------
    notion, schedule, allocation : str, str and Path, or None
        The options of these names. Without any, it is the exact allocation of drfh. With ``allocation``, ``notion`` measures it.
    measured : bool
        Does drfh measure a given allocation for which no notion is named? Otherwise it has no measure.
    integral, exact, sharing, time_limit
        The options of these names.
    shares : Shares
        How shares are counted.
    """

    notion: str | None
    schedule: str | None
    allocation: Path | None
    measured: bool
    integral: bool
    exact: bool
    sharing: Literal["rdm", "tdm"] | None
    shares: Shares
    time_limit: float | None

    def check(self) -> None:
        """Refuse options that do not belong together."""
        given_by = {"--notion": self.notion, "--schedule": self.schedule, "--allocation": self.allocation}
        sources = [option for option, value in given_by.items() if value is not None]
        if len(sources) > 1 and self.schedule is not None:
            raise typer.BadParameter("each names an allocation, and the command is about one; choose one", param_hint=" and ".join(sources))
        if self.schedule is not None:
            self.shares.refuse(
                "it is a rule of a notion, and a schedule counts guarantees as clamp does; leave it out",
                "give it in --schedule, as in drfh:best-fit:only=gpu",
            )
        if sources == ["--allocation"] and not self.measured:
            name = "name the notion that measures your allocation with --notion"
            self.shares.refuse(f"it is a rule of a notion; {name}", name)
        if self.integral and (self.schedule is not None or self.allocation is not None):
            raise typer.BadParameter("it is for an allocation that --notion computes; leave it out", param_hint="--integral")

    def maker(self, instance: fo.Instance) -> Callable[[], fo.Allocation]:
        """Return a function that makes the allocation, which may take long."""
        if self.schedule is not None:
            _, plan = read_schedule(self.schedule)
            if self.exact and not isinstance(plan, Mapping):
                raise typer.BadParameter("a scheduler of your own has no answer in fractions; leave --exact out", param_hint="--exact")
            with_digits: Any = {**plan, "exact": True} if self.exact and isinstance(plan, Mapping) else plan
            return lambda: made(instance, with_digits, self.sharing)
        _, notion = read_notion(self.shares.of(self.notion or "drfh"))
        if self.allocation is not None:
            from fairopt.formats.allocations import read

            tasks, measure = read(self.allocation, instance), notion if self.measured or self.notion is not None else GIVEN
            return lambda: given(instance, tasks, self.sharing or default_sharing(instance), measure, exact=self.exact)
        return lambda: fo.solve(
            instance, notion, sharing=self.sharing, integral=self.integral, time_limit=self.time_limit, exact=self.exact
        )

    @property
    def made_by(self) -> str:
        """What the function does, for people who wait."""
        if self.schedule is not None:
            return f"filling by {self.schedule}"
        return f"solving {self.notion or 'drfh'}" if self.allocation is None else f"reading {self.allocation}"
