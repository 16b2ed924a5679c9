"""Why a user gets what it gets, and what would help: what `fairopt.explain` returns."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Blocker", "Explanation", "Gain"]


@dataclass(frozen=True, slots=True)
class Blocker:
    """A resource that leaves no room for another task of the user on a server row where it may run.

    Attributes
    ----------
    server, resource : str
        "time" under time division.
    capacity, used, own : float
        Of the whole row: what there is, what is in use, and what the user holds itself; time in parts of the row's.
    bottleneck : bool
        Is it this that stops the user there? Nobody who holds some of it has a larger share; or it has a price, where the goal is a sum.
        What leaves no room otherwise is held by users who would have to make way. True where nothing tells (schedules, whole tasks).
    holders : tuple of (str, float)
        Other users who hold most of it, the largest first, and how much.
    """

    server: str
    resource: str
    capacity: float
    used: float
    own: float
    bottleneck: bool
    holders: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Gain:
    """What a change would give the user, in tasks; None where it is not known.

    Where a task is worth more on some servers than on others (``utility``), the notion decides on what all tasks are worth together, not
    on their number: then this is one of several.

    Attributes
    ----------
    change : str
        In words: "+1 gpu on one server of rack", "weight 2 instead of 1", "may run on rack".
    kind : str
        "capacity", "server" (one more of the row), "weight", "parallelism" or "placement".
    by_price : float or None
        What the prices of the user's level say: how far they let the level rise, with the shares of a task as the change makes them and
        everybody at a lower level with the tasks that he has. An upper bound of the rise of that level, and the rise itself for small
        changes where the prices are unique. Only leximins have such prices.
    by_solving : float or None
        What the same notion or schedule gives it after the change, less what it has. (Of psdsf, which has several answers, the one that
        the same turns of servers find.)
    note : str
        Why it was not solved.
    """

    change: str
    kind: str
    by_price: float | None = None
    by_solving: float | None = None
    note: str = ""

    @property
    def best_known(self) -> float:
        """The solved gain, else the one by price; minus infinity for neither."""
        known = self.by_price if self.by_solving is None else self.by_solving
        return float("-inf") if known is None else known


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Explanation:
    """The explanation of one user's allocation; printed, it is the sentences.

    Attributes
    ----------
    user : str
    against : str or None
        The user that it is compared with.
    tasks : float
        What the user has.
    sentences : tuple of str
    blockers : tuple of Blocker
        Bottlenecks first, then in the order of what the user runs there; at most 1,000.
    gains : tuple of Gain
        The largest first; those that were not solved by what prices say.
    """

    user: str
    against: str | None
    tasks: float
    sentences: tuple[str, ...]
    blockers: tuple[Blocker, ...]
    gains: tuple[Gain, ...]

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each change: kind, and the tasks that it would give by price and by solving."""
        import pandas as pd

        rows = [dataclasses.asdict(gain) for gain in self.gains]
        frame = pd.DataFrame(rows, columns=[field.name for field in dataclasses.fields(Gain)]).set_index("change")
        return frame.astype({"by_price": float, "by_solving": float})

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON: None where there is no number."""
        blockers = [
            dataclasses.asdict(each) | {"holders": [{"user": user, "amount": amount} for user, amount in each.holders]}
            for each in self.blockers
        ]
        return {
            "user": self.user,
            "against": self.against,
            "tasks": self.tasks,
            "sentences": list(self.sentences),
            "blockers": blockers,
            "gains": [dataclasses.asdict(gain) for gain in self.gains],
        }

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    __repr__ = __str__
