"""What `fairopt.simulate` takes as a scheduler, in a list: ``fairopt schedulers`` prints it, and a misspelt scheduler is answered from it.

>>> [(each.id, each.kind) for each in schedulers()][2:6]
[('fairtree', 'cluster'), ('priority', 'cluster'), ('maui', 'cluster'), ('CRITERION:PLACEMENT', 'greedy')]
>>> no_scheduler("fiffo").partition(";")[0]
'there is no scheduler "fiffo" (did you mean "fifo"?)'
"""

from __future__ import annotations

from dataclasses import dataclass

from fairopt.models import NOTIONS
from fairopt.scheduling import BASELINES
from fairopt.simulation.baselines.options import BASELINES as OF_CLUSTERS
from fairopt.wording import did_you_mean

__all__ = ["KINDS", "Scheduler", "no_scheduler", "schedulers"]

KINDS = {
    "cluster": "How clusters schedule: whole tasks, and gangs, whose tasks start together.",
    "greedy": "Whole tasks, one at a time; none is stopped.",
    "approximate": "A baseline of a paper, asked at every event; tasks are divisible and move at no cost.",
    "exact": "The exact allocation at every event; tasks are divisible and move at no cost.",
    "memory": "Exact, with a memory: a user who has received much of late receives less. Tasks are divisible.",
    "decentralised": "Each server reallocates by itself. Tasks are divisible.",
    "own": "A function in a file of yours, asked at every event.",
}
"""Kinds of schedulers."""
_EXAMPLES = {"fairtree": "fairtree:half_life=7d", "priority": "priority:half_life=1d", "maui": "maui:decay=0.8"}


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A scheduler, or a pattern of schedulers.

    Attributes
    ----------
    id : str
        What is written, with capital words for what there is a choice of.
    kind : str
        One of `KINDS`.
    title : str
        What it does, in a line.
    example : str
    """

    id: str
    kind: str
    title: str
    example: str


def schedulers() -> list[Scheduler]:
    """Return all of them; notions also those of installed packages."""
    return [
        *(Scheduler(name, "cluster", what, _EXAMPLES.get(name, name)) for name, what in OF_CLUSTERS.items()),
        Scheduler(
            "CRITERION:PLACEMENT",
            "greedy",
            "the user with the smallest share of the criterion is next; the placement chooses its server (fairopt placements)",
            "drfh:best-fit",
        ),
        *(
            Scheduler(f"NOTION:{name}", "approximate", baseline.title, f"{baseline.example}")
            for name, baseline in BASELINES.items()
            if not baseline.whole
        ),
        *(Scheduler(name, "exact", getattr(notion, "title", ""), name) for name, notion in NOTIONS.items()),
        Scheduler(
            "NOTION:half_life=TIME",
            "memory",
            "a max-min notion whose shares are the same on every server, applied to present and past use; use fades by half in TIME",
            "drfh:half_life=1h",
        ),
        Scheduler(
            "NOTION:follow=K",
            "memory",
            "KAI: weights follow the usage, max(0, W + K (W - usage)), W a part of the weights; with half_life=TIME use fades, with "
            "usage=resource each resource has its own",
            "drfh:follow=0.5",
        ),
        Scheduler(
            "karma",
            "memory",
            "Karma: credits for what is lent; alpha is the guaranteed part of a fair share; one resource",
            "karma:alpha=0.5",
        ),
        Scheduler(
            "psdsf:period=SECONDS",
            "decentralised",
            "per-server dominant-share fairness by servers that act alone, one after another or at once (phases=random, sweep or at-once)",
            "psdsf:period=1",
        ),
        Scheduler(
            "FILE.py:FUNCTION", "own", "a function of an Instance that returns an Allocation, or tasks (users, servers)", "mine.py:in_turn"
        ),
    ]


def no_scheduler(word: str) -> str:
    """Return the message for a word that names no scheduler."""
    names = [each.id for each in schedulers() if each.id.islower() and ":" not in each.id]
    return (
        f'there is no scheduler "{word}"{did_you_mean(word, names)}; there are {", ".join(names)}, and greedy schedules such as '
        "drfh:best-fit; see: fairopt schedulers"
    )
