"""The result of `fairopt.explain`: why a user gets what it gets, and what would help."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from fairopt.results import result
from fairopt.show.drawing import ShowsItself
from fairopt.show.equality import ComparesItself

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Blocker", "Explanation", "Gain", "Number", "none_helps", "number"]

Number: TypeAlias = float | Fraction


def number(value: Any) -> Any:
    """Return a Fraction as it is, and any other number as a float."""
    return value if isinstance(value, Fraction) else float(value)


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Return values with floats for Fractions, and the Fractions as text under "exact".

    >>> _plain({"name": "a", "tasks": Fraction(20, 4), "price": Fraction(1, 4)})
    {'name': 'a', 'tasks': 5.0, 'price': 0.25, 'exact': {'tasks': '5', 'price': '1/4'}}
    """
    exact = {name: str(value) for name, value in values.items() if isinstance(value, Fraction)}
    return {name: float(value) if name in exact else value for name, value in values.items()} | ({"exact": exact} if exact else {})


@dataclass(frozen=True, slots=True)
class Blocker:
    """A resource without room for another task of the user, on a server row where the user may run.

    Attributes
    ----------
    server, resource : str
        "time" under time division; a resource of the whole cluster has the server "".
    capacity, used, own : float, or Fraction
        Of the whole row: the capacity, the amount in use, and the amount that the user holds; time is a part of the time of the row.
    bottleneck : bool
        Whether this resource stops the user on this row: no user who holds some of it has a larger share, or, if the goal is a sum, it has
        a price. If False, users with larger shares hold some of it, or it has no price. Always True for schedules and whole tasks, where it
        cannot be decided.
    holders : tuple of (str, float or Fraction)
        The other users who hold most of it, the largest first, and how much they hold.
    price : float, Fraction or None
        Its dual price at the level of the user, or for a goal that is a sum: the most that one more unit (under time division, one more
        row) could raise the level or the goal. None if no prices prove the level of this user.
    """

    server: str
    resource: str
    capacity: Number
    used: Number
    own: Number
    bottleneck: bool
    holders: tuple[tuple[str, Number], ...]
    price: Number | None = None


@dataclass(frozen=True, slots=True)
class Gain:
    """What a change would give the user, in tasks, or with speeds in work; None if it is not known.

    If the worth of a task differs between servers (``utility``), the notion determines the worth of all tasks, and not their number. The
    number here is then one of several possible numbers.

    Attributes
    ----------
    change : str
        The change in words: "+1 gpu on one server of rack", "weight 2 instead of 1", "may run on rack".
    kind : str
        "capacity", "server" (one server more in the row), "weight", "weight of a queue" (around the user, or above the queue), "limit" (of
        a queue), "guarantee" (of a queue), "rule" (without it), "parallelism" or "placement".
    by_price : float, Fraction or None
        The gain by the prices of the user's level: how far the level could rise at these prices after the change, if users at lower levels
        keep their tasks. It is an upper bound on the rise of the level, and equal to the rise for small changes if the prices are unique.
        Only a leximin has such prices.
    by_solving : float, Fraction or None
        The tasks of the user if the same notion or schedule is solved after the change, less its tasks now. (psdsf has several exact
        allocations; this is the one that the same order of servers finds.)
    note : str
        Why the change was not solved.
    """

    change: str
    kind: str
    by_price: Number | None = None
    by_solving: Number | None = None
    note: str = ""

    @property
    def best_known(self) -> Number:
        """The gain by solving, else by price; minus infinity if neither is known."""
        known = self.by_price if self.by_solving is None else self.by_solving
        return float("-inf") if known is None else known


def none_helps(number: int) -> str:
    """Return the sentence on so many changes, of which none gives more.

    >>> none_helps(1), none_helps(3)
    ('The change that was tried would not give it more.', 'None of the 3 changes that were tried would give it more.')
    """
    if number == 1:
        return "The change that was tried would not give it more."
    return f"None of the {number:,} changes that were tried would give it more."


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Explanation(ComparesItself, ShowsItself):
    """The explanation of one user's allocation; ``print`` shows its sentences.

    If the allocation is in fractions (`fairopt.Allocation.exact`), all numbers are Fractions, without a tolerance.

    Attributes
    ----------
    user : str
    against : str or None
        The user whom ``user`` is compared with.
    tasks : float, or Fraction
        The tasks of the user.
    sentences : tuple of str
    blockers : tuple of Blocker
        Bottlenecks first, then by the tasks that the user runs on the row; at most 1,000.
    gains : tuple of Gain
        The largest first; a gain that was not solved is ranked by its price.
    queue : str or None
        The queue that is explained; ``user`` is None then. None where a user is explained.
    units : mapping
        The unit of each resource of which it is known.
    question : mapping
        The arguments of `fairopt.explain`, as plain data.
    brief : tuple of str
        Two of the sentences: what the user or the queue has, and what stops it.
    work : float, Fraction or None
        The work of its tasks; None where no speeds are given.
    """

    user: str | None
    against: str | None
    tasks: Number
    sentences: tuple[str, ...]
    blockers: tuple[Blocker, ...]
    gains: tuple[Gain, ...]
    queue: str | None = None
    units: Mapping[str, str] = field(default_factory=dict)
    question: Mapping[str, Any] = field(default_factory=dict)
    brief: tuple[str, ...] = ()
    work: Number | None = None

    def to_frame(self) -> pd.DataFrame:
        """Return one row per change: its kind, and its gain in tasks by price and by solving."""
        import pandas as pd

        rows = [dataclasses.asdict(gain) for gain in self.gains]
        frame = pd.DataFrame(rows, columns=[field.name for field in dataclasses.fields(Gain)]).set_index("change")
        return frame.astype({"by_price": float, "by_solving": float})

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON; None stands for a missing number. Fractions are floats, and text ("20/3") under "exact"."""
        blockers = [
            _plain(dataclasses.asdict(each))
            | {"holders": [{"name": user} | _plain({"user": user, "amount": amount}) for user, amount in each.holders]}
            for each in self.blockers
        ]
        found = {
            "name": self.user if self.queue is None else self.queue,
            "user": self.user,  # until 1.0
            **({"queue": self.queue} if self.queue is not None else {}),
            "against": self.against,
            **_plain({"tasks": self.tasks} | ({} if self.work is None else {"work": self.work})),
            "sentences": list(self.sentences),
            "blockers": blockers,
            "gains": [_plain(dataclasses.asdict(gain)) for gain in self.gains],
        }
        return result("explain", self.question, self.units, found)

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    __repr__ = __str__
