"""A level of a leximin: the share at which some users stop, and the prices that prove it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from fairopt.instance import FloatArray

__all__ = ["Level"]


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """One final level of a leximin: the users whose share it is, and the dual prices that prove it.

    The levels are the distinct final values of U[n] / phi[n], the same for every engine: also of users who stop because they have all their
    tasks or fill their parallelism. Values that differ by a relative 1e-8 or less are one level. (Users without tasks, without demand
    or without a server have none.) Which prices prove a level is the choice of the engine.

    Attributes
    ----------
    value : float
        The common share U[n] / phi[n]. Of a tree of queues that is filled, the time of its
        ``part``: how far a child of the root of weight 1 has risen in it.
    users : tuple of str
    prices : array (servers, resources) or (servers, 1), or None
        Dual prices that prove the level. One more unit of a resource (or, under time division, of the time of every server of the row)
        raises the level by at most its price, and by exactly that if the prices are unique. ``interior-point`` proves levels above the
        first with the lower levels fixed (`fairopt.certificate.levels`): their prices hold only while those stay as they are, and may be
        negative for limits that these fill. None for whole tasks. Of a level at which nobody is stopped by others, because all have all
        their tasks or fill their parallelism, they are None or 0.
    part : str
        Of a tree of queues: the guarantees of a depth, or the surplus; else "".
    queue_prices : dict
        Dual prices of the limits of queues that have one, by the name of the limit ("gpu of research", "gpu of research on model = A100"),
        of what queues keep ("gpu beside what research and teaching keep"), and of shared resources ("licences of the cluster").
    floors : dict
        Guarantees that are kept, and stop the users here, by name ("guaranteed gpu of research"), with what all guarantees together leave
        of each: amounts, or tasks of a user (`fairopt.program.guarantees`).
    """

    value: float
    users: tuple[str, ...]
    prices: FloatArray | None
    part: str = ""
    queue_prices: dict[str, float] = field(default_factory=dict)
    floors: dict[str, float] = field(default_factory=dict)

    @property
    def in_floats(self) -> Level:
        """The level with the nearest floats, where its numbers are Fractions."""
        prices = None if self.prices is None else self.prices.astype(np.float64)
        queue_prices = {name: float(price) for name, price in self.queue_prices.items()}
        floors = {name: float(amount) for name, amount in self.floors.items()}
        return replace(self, value=float(self.value), prices=prices, queue_prices=queue_prices, floors=floors)
