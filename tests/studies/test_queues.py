"""Studies of instances with queues."""

from __future__ import annotations

from pathlib import Path

import fairopt as fo
from fairopt.studies.cell import fingerprint

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_study_of_a_tree() -> None:
    """An instance of a file and a generator; the rows are those of compare."""
    research = fo.load(EXAMPLES / "research-queues.yaml")
    rows = fo.study({"research": research, "drawn": "gpus:users=6:queues=3"}, schedules=["drfh:best-fit"], workers=1)
    assert rows["message"].eq("").all()
    comparison = fo.compare(research, schedules=["drfh:best-fit"])
    assert rows[rows["instance"] == "research"]["tasks"].tolist() == [row.tasks for row in comparison]


def test_other_queues_are_another_instance() -> None:
    """A weight, a limit or a parent of a queue, and the queue of a user."""
    research = fo.load(EXAMPLES / "research-queues.yaml")
    changed = [
        research,
        research.replace(queues={"research": {"weight": 2}}),
        research.replace(queues={"teaching": {"limit": {"gpu": 12}}}),
        research.replace(queues={"interns": {"parent": "research"}}),
        research.replace(queue_of={"bob": "language"}),
    ]
    assert len({fingerprint(instance) for instance in changed}) == len(changed)
    assert fingerprint(research) == fingerprint(fo.load(EXAMPLES / "research-queues.yaml"))
