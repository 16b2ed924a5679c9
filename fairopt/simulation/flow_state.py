"""The state of a fluid simulation, stored at moments at which it consists of plain arrays.

An exact scheduler starts each linear program from the basis of the last one, and the memory of a solver cannot be stored. So after
`SECTION` solves the next program starts without a basis, and a stopped simulation continues from the last such moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairopt.instance import FloatArray
from fairopt.simulation.flow_samples import Samples
from fairopt.simulation.keeping import Keeper, State, part_of, prefixed
from fairopt.simulation.situation import Situation

if TYPE_CHECKING:
    from fairopt.simulation.fluid import Optimum

__all__ = ["SECTION", "FlowKeeper"]

SECTION = 256  # solves after which a program starts without the basis of the last one
Now = tuple[float, float, float, int, FloatArray, FloatArray]  # now, ending, again, moments, rate, has


class FlowKeeper:
    """Stores the state at moments at which it consists of plain arrays."""

    def __init__(self, keeper: Keeper, optimum: Optimum) -> None:
        self._keeper, self._optimum = keeper, optimum
        self._held: State | None = None
        self._held_at = -1
        self.found = keeper.found

    def resume(self, situation: Situation, record: Samples) -> Now:
        """Go on from the state that was found."""
        found = self.found
        assert found is not None
        situation.restore(part_of(found, "situation"))
        record.restore(part_of(found, "record"))
        self._optimum.restore(part_of(found, "optimum"))
        now, ending, again, moments = found["now"].tolist()
        return now, ending, again, int(moments), found["rate"], found["has"]

    def offer(self, situation: Situation, record: Samples, now: Now) -> None:
        """Hold the present state if a simulation can continue from it, and write the held state if a write is due."""
        keeper, optimum = self._keeper, self._optimum
        if keeper.path is None:
            return
        if optimum.is_afresh and (keeper.is_due or (optimum.solved % SECTION == 0 and optimum.solved != self._held_at)):
            self._hold(situation, record, now)
        if keeper.is_due:
            self._write()

    def end(self, situation: Situation, record: Samples, now: Now) -> None:
        """Write the present state, or else the last one from which a simulation can continue."""
        if self._keeper.path is not None and self._optimum.is_afresh:
            self._hold(situation, record, now)
        self._write()

    def _hold(self, situation: Situation, record: Samples, now: Now) -> None:
        *numbers, rate, has = now
        parts = (("situation", situation.state()), ("record", record.state()), ("optimum", self._optimum.state()))
        self._held = {"now": numbers, "rate": rate, "has": has}
        for name, state in parts:
            self._held |= prefixed(name, state)
        self._held_at = self._optimum.solved

    def _write(self) -> None:
        if (held := self._held) is not None:
            self._keeper.offer(lambda: held, at_once=True)
        self._held = None  # it need not be written again
