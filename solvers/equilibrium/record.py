"""The record of a best response: the change of each sweep, and the violation of the condition of the equilibrium after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fairopt.instance import FloatArray
from fairopt.instance.tolerances import TINY
from fairopt.show.drawing import draw
from fairopt.solvers.equilibrium.layout import Layout, State
from fairopt.solvers.equilibrium.settings import SETTINGS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Record", "Sweeps"]


@dataclass(frozen=True, slots=True, eq=False)
class Sweeps:
    """The record of a best response: a row for each sweep (asynchronously: for as many actions as there are servers).

    Attributes
    ----------
    changes : array (sweeps,)
        Largest change of an x[n,i], relative to the x[n] of its user. The last entry is the change from the last sweep to the answer.
    violations : array (sweeps,)
        Largest relative violation of the equilibrium's condition after each sweep; nan where it was not computed.
    tasks : array (recorded sweeps, users)
        x[n] after each sweep, of the merged rows that were solved; if there are very many sweeps, of the first ones.
    users : tuple of str
        Names of these rows.
    """

    changes: FloatArray
    violations: FloatArray
    tasks: FloatArray
    users: tuple[str, ...]

    def plot(self, *, ax: Sequence[Axes] | None = None, figsize: tuple[float, float] | None = None, title: str | None = None) -> Figure:
        """Draw change and violation over the sweeps, on a logarithmic axis, and the tasks; returns a matplotlib figure.

        ``ax``: two axes to draw into. ``figsize``: size of a new figure, in inches. ``title``: replaces the default ("": none).

        >>> import fairopt as fo
        >>> instance = fo.Instance([[9, 12, 100], [12, 12, 0]], [[1.5, 1, 10], [1, 2, 10], [.5, 1, 0], [1, .5, 0]])
        >>> [axes.get_xlabel() for axes in fo.solve(instance, "psdsf").trace.plot().axes]
        ['sweeps of all servers', 'sweeps of all servers']
        """
        return draw("convergence", self, ax=ax, figsize=figsize, title=title)


@dataclass(slots=True, eq=False)
class Record:
    """The rows of the record so far, and the tasks after the last sweeps."""

    layout: Layout
    changes: list[float] = field(default_factory=list)
    violations: list[float] = field(default_factory=list)
    tasks: list[FloatArray] = field(default_factory=list)
    recent: list[FloatArray] = field(default_factory=list)  # x before the last sweeps, three at most, and x now

    def __post_init__(self) -> None:
        self.recent = [np.zeros(self.layout.user.size)]

    def add(self, change: float, state: State) -> None:
        """Add a sweep."""
        self._add_row(change, np.nan, state.total)
        self.recent = [*self.recent[-3:], state.x.copy()]

    def forget_changes(self, state: State) -> None:
        """Forget the last changes, because a proposed point replaced the state."""
        self.recent = [state.x.copy()]

    def finished(self, state: State, x: FloatArray, violation: float) -> Sweeps:
        """Return the record, with a last row for the change from the last sweep to the answer x."""
        program = self.layout.program
        now, before = program.per_user(x), state.total[program.pair_users]
        change = np.abs(x - self.layout.by_pair(state.x)) / np.maximum(np.maximum(now[program.pair_users], before), TINY)
        self._add_row(float(change.max(initial=0.0)), violation, now)
        tasks = np.array(self.tasks).reshape(-1, now.size)
        return Sweeps(np.array(self.changes), np.array(self.violations), tasks, program.users)

    def _add_row(self, change: float, violation: float, total: FloatArray) -> None:
        self.changes.append(change)
        self.violations.append(violation)
        if (len(self.tasks) + 1) * total.size <= SETTINGS.most_numbers:
            self.tasks.append(total.copy())
