"""What explanations say of queues: the path, the limit that stops a user, and a queue itself."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from support.command_line import EXAMPLES, flat, run

import fairopt as fo
from fairopt.analysis.explanation.queues import Stop, in_words, stops_of
from fairopt.analysis.rerun import given

QUEUES = EXAMPLES / "research-queues.yaml"
LAB = [
    fo.Queue("lab", guarantee={"gpu": 4}, weight=2),
    fo.Queue("students", "lab", limit={"gpu": 2}),
    fo.Queue("guests", tier=-1),
]


def lab(queues: list[fo.Queue] = LAB, **changes: Any) -> fo.Allocation:
    """Ten GPUs: sam is a student of the lab, ann beside him in the lab, gus a guest, and one user in the root."""
    instance = fo.Instance(
        [[10]],
        np.ones((4, 1)),
        users=["sam", "ann", "gus", "ray"],
        servers=["node"],
        resources=["gpu"],
        queues=queues,
        queue_of=["students", "lab", "guests", None],
        **changes,
    )
    return fo.solve(instance, "drfh")


def test_a_limit_of_a_queue_is_what_stops_a_user() -> None:
    """sam has the 2 GPUs of students. One more in its limit is one more for him; more weight is nothing."""
    told = fo.explain(lab(), "sam")
    assert "It is in the queue lab > students, alone." in told.sentences
    assert "Bottleneck: the limit of students, 2 gpu, is reached." in told.sentences
    assert not told.blockers
    gains = {gain.change: gain.by_solving for gain in told.gains}
    assert gains["a limit of 3 gpu instead of 2 for students"] == pytest.approx(1)
    assert gains["weight 2 instead of 1 of the queue students"] == gains["weight 3 instead of 2 of the queue lab"] == 0


def test_a_limit_on_some_servers_stops_there() -> None:
    """Two on new by the quota; on old the node is full."""
    queues = [fo.Queue("a", quotas=[fo.Quota(["new"], limit={"gpu": 2}, name="model = A100")]), fo.Queue("b")]
    instance = fo.Instance(
        [[4], [4]], np.ones((2, 1)), users=["ann", "ben"], servers=["new", "old"], resources=["gpu"], queues=queues, queue_of=["a", "b"]
    )
    told = fo.explain(given(instance, np.array([[2.0, 2.0], [2.0, 2.0]]), "rdm"), "ann")
    assert "Bottleneck: the limit of a, 2 gpu on model = A100, is reached." in told.sentences
    assert "Elsewhere gpu on old has no room for another task." in told.sentences
    assert [each.server for each in told.blockers] == ["old"]
    room = fo.explain(given(instance, np.array([[2.0, 1.0], [2.0, 2.0]]), "rdm"), "ann")
    assert "On old enough is left for another task, if it is not spread over several servers." in room.sentences
    assert not [sentence for sentence in room.sentences if sentence.startswith("Elsewhere")]


def test_what_a_queue_keeps_stops_the_others() -> None:
    """b lends 1 of its 6 GPUs: 5 stay idle, and ann has the other 5."""
    queues = [fo.Queue("a"), fo.Queue("b", guarantee={"gpu": 6}, lending_limit={"gpu": 1})]
    instance = fo.Instance(
        [[10]], np.ones((2, 1)), tasks=[np.inf, 0], users=["ann", "ben"], resources=["gpu"], queues=queues, queue_of=["a", "b"]
    )
    allocation = fo.solve(instance, "drfh")
    assert allocation.tasks_per_user == pytest.approx([5, 0])
    (stop,) = stops_of(allocation, 0)[0]
    assert isinstance(stop, Stop)
    assert (stop.queue, stop.keeps) == ("b", True)
    assert "Bottleneck: b keeps 5 gpu of its guarantee to itself, and the others hold all 5 gpu that it leaves." in str(
        fo.explain(allocation, "ann", resolves=0)
    )


def test_what_several_queues_keep_stops_the_others() -> None:
    """b keeps 3 of 10 GPUs and uses 1, c keeps 2 and uses none: ann has 5. Each of the two lending limits would help."""
    keeps: list[Any] = [{"guarantee": {"gpu": 4}, "lending_limit": {"gpu": 1}}, {"guarantee": {"gpu": 2}, "lending_limit": {"gpu": 0}}]
    queues = [fo.Queue("a"), fo.Queue("b", **keeps[0]), fo.Queue("c", **keeps[1])]
    instance = fo.Instance(
        [[10]], np.ones((2, 1)), tasks=[np.inf, 1], users=["ann", "ben"], resources=["gpu"], queues=queues, queue_of=["a", "b"]
    )
    for exact in (False, True):
        allocation = fo.solve(instance, "drfh", exact=exact)
        assert allocation.tasks_per_user == pytest.approx([5, 1])
        told = fo.explain(allocation, "ann")
        assert (
            "Bottleneck: b and c keep 3 and 2 gpu of their guarantees to themselves, and the others hold all 5 gpu that they leave."
        ) in told.sentences
        gains = {gain.change: gain.by_solving for gain in told.gains if "lent" in gain.change}
        assert gains == {"2 gpu lent instead of 1 by b": pytest.approx(1), "1 gpu lent instead of 0 by c": pytest.approx(1)}
        (rest,) = [each for each in fo.explain(allocation, queue="b", resolves=0).sentences if "guaranteed" in each]
        assert rest.endswith("all that its users ask for; it keeps 2 of the rest to itself, and others may use the other 1.")
    whole = fo.explain(fo.solve(instance, "drfh", integral=True), "ann", resolves=0)
    assert any("b and c keep 3 and 2 gpu" in sentence for sentence in whole.sentences)


def test_of_what_queues_keep_the_least_that_is_left_is_said_once() -> None:
    """a and b keep 54 and 36 of 90, all of it. a uses 9 cpu and b none: for c nothing is left, and the 36 beside a say no more."""
    keeps: list[dict[str, Any]] = [{"guarantee": {"cpu": each}, "lending_limit": {"cpu": 0}} for each in (54, 36)]
    instance = fo.Instance(
        [[90]],
        np.ones((3, 1)),
        tasks=[9, 36, np.inf],
        users=["ann", "ben", "cem"],
        resources=["cpu"],
        queues=[fo.Queue("a", **keeps[0]), fo.Queue("b", **keeps[1]), fo.Queue("c")],
        queue_of=["a", "b", "c"],
    )
    stop = "a and b keep 54 and 36 cpu of their guarantees to themselves and leave nothing to others"
    for ben in (36 - 1e-8, 0.0):
        allocation = given(instance, np.array([[9.0], [ben], [0.0]]), "rdm")
        (only,) = stops_of(allocation, 2)[0]
        assert only.words(instance) == stop
    told = fo.explain(given(instance, np.array([[9.0], [36 - 1e-8], [0.0]]), "rdm"), "cem", resolves=0)
    assert f"Bottleneck: {stop}." in told.sentences
    assert in_words([only, only], instance) == f"{stop}; {stop}"


def test_users_of_other_queues_are_not_compared_by_weight() -> None:
    """The default is a user of the same queue; nobody else is in students. Of a lower tier the user's is said."""
    assert fo.explain(lab(), "sam").against is None
    told = str(fo.explain(lab(), "sam", against="ann", resolves=0))
    assert "It is in another queue, so their weights do not compare them." in told
    assert "Its tier is -1: 3 users of higher tiers are served first." in str(fo.explain(lab(), "gus", resolves=0))


def test_a_queue_is_explained() -> None:
    """lab has 2 and 4 2/3 GPUs beside 3 1/3 of ray: 2.67 beyond its guarantee; students 2, their limit; guests nothing."""
    allocation = lab()
    own = allocation.queue_holdings()[1].used["gpu"]
    told = fo.explain(allocation, queue="lab")
    assert (told.user, told.queue) == (None, "lab")
    assert told.tasks == pytest.approx(own)
    text = str(told)
    assert text.startswith("The queue lab holds ")
    assert f"It is guaranteed 4 gpu, which it has; it borrows {own - 4:.3g} beyond that." in text
    assert "sam is stopped: the limit of students, 2 gpu, is reached." in text
    assert "ann is stopped: gpu is full where it may run." in text
    assert "guests nothing (weight 1, in tier -1)" in text
    students = str(fo.explain(allocation, queue="students"))
    assert students.startswith("The queue students, in lab, holds 2 gpu (20 %) of the cluster: 2 tasks of 1 user.\n")
    assert "Its limit of 2 gpu is reached." in students


def test_what_would_help_a_queue() -> None:
    """Each change solved again: students of the lab are stopped by their limit alone, whose price is a tenth of the cluster."""
    told = fo.explain(lab(), queue="students")
    gains = {gain.change: gain.by_solving for gain in told.gains}
    assert gains == pytest.approx({"a limit of 3 gpu instead of 2 for students": 1, "weight 2 instead of 1": 0, "+1 gpu on node": 0})
    assert "its price" in next(sentence for sentence in told.sentences if sentence.startswith("Its limit of 2 gpu is reached"))
    assert "What would help: a limit of 3 gpu instead of 2 for students would give it 1 task more (+50 %)." in told.sentences
    assert "More weight would give it nothing." in told.sentences
    of_lab = {gain.change: gain.by_solving for gain in fo.explain(lab(), queue="lab").gains}
    after = lab([fo.Queue("lab", guarantee={"gpu": 5}, weight=2), *LAB[1:]]).tasks_per_user[:2].sum()
    assert of_lab["a guarantee of 5 gpu instead of 4"] == pytest.approx(after - lab().tasks_per_user[:2].sum())
    after = lab([fo.Queue("lab", guarantee={"gpu": 4}, weight=3), *LAB[1:]]).tasks_per_user[:2].sum()
    assert of_lab["weight 3 instead of 2"] == pytest.approx(after - lab().tasks_per_user[:2].sum())
    assert fo.explain(lab(), queue="lab", resolves=0).gains == ()
    assert len(fo.explain(lab(), queue="lab", resolves=2).gains) == 2
    late = fo.explain(lab(), queue="lab", time_limit=1e-9)
    assert any("not solved: the time limit has passed" in sentence for sentence in late.sentences)


def test_what_others_keep_and_limits_on_servers_are_changes_too() -> None:
    """b lends 1 of its 6 GPUs, of which it uses none; with 2 lent a has one more. On new a's quota is what stops it."""
    queues = [fo.Queue("a"), fo.Queue("b", guarantee={"gpu": 6}, lending_limit={"gpu": 1})]
    instance = fo.Instance(
        [[10]], np.ones((2, 1)), tasks=[np.inf, 0], users=["ann", "ben"], resources=["gpu"], queues=queues, queue_of=["a", "b"]
    )
    gains = {gain.change: gain.by_solving for gain in fo.explain(fo.solve(instance, "drfh"), queue="a").gains}
    assert gains["2 gpu lent instead of 1 by b"] == pytest.approx(1)
    queues = [fo.Queue("a", quotas=[fo.Quota(["new"], limit={"gpu": 2}, name="model = A100")]), fo.Queue("b")]
    instance = fo.Instance(
        *([[4], [4]], np.ones((2, 1))),
        eligibility=[[1, 0], [0, 1]],
        servers=["new", "old"],
        resources=["gpu"],
        queues=queues,
        queue_of=["a", "b"],
    )
    gains = {gain.change: gain.by_solving for gain in fo.explain(fo.solve(instance, "drfh"), queue="a").gains}
    assert gains["a limit of 3 gpu instead of 2 for a on model = A100"] == pytest.approx(1)


def test_limits_on_servers_and_lent_amounts_help_a_user_too() -> None:
    """As they help its queue: a's quota on new, and what b lends."""
    queues = [fo.Queue("a", quotas=[fo.Quota(["new"], limit={"gpu": 2}, name="model = A100")]), fo.Queue("b")]
    instance = fo.Instance(
        *([[4], [4]], np.ones((2, 1))),
        eligibility=[[1, 0], [0, 1]],
        users=["ann", "ben"],
        servers=["new", "old"],
        resources=["gpu"],
        queues=queues,
        queue_of=["a", "b"],
    )
    told = fo.explain(fo.solve(instance, "drfh"), "ann")
    assert {gain.change: gain.by_solving for gain in told.gains}["a limit of 3 gpu instead of 2 for a on model = A100"] == pytest.approx(1)
    queues = [fo.Queue("a"), fo.Queue("b", guarantee={"gpu": 6}, lending_limit={"gpu": 1})]
    kept = fo.Instance(
        [[10]], np.ones((2, 1)), tasks=[np.inf, 0], users=["ann", "ben"], resources=["gpu"], queues=queues, queue_of=["a", "b"]
    )
    told = fo.explain(fo.solve(kept, "drfh"), "ann")
    assert {gain.change: gain.by_solving for gain in told.gains}["2 gpu lent instead of 1 by b"] == pytest.approx(1)


def test_many_servers_with_a_quota_are_merged() -> None:
    """60 rows of two kinds: quotas name the merged rows then."""
    servers = [f"s{i}" for i in range(60)]
    queues = [fo.Queue("a", quotas=[fo.Quota(servers[:30], limit={"gpu": 10}, name="model = A100")]), fo.Queue("b")]
    eligibility = np.array([[1] * 30 + [0] * 30, [1] * 60])
    instance = fo.Instance(
        *(np.full((60, 1), 2.0), [[1], [1]]),
        *(None, eligibility),
        users=["ann", "ben"],
        resources=["gpu"],
        servers=servers,
        queues=queues,
        queue_of=["a", "b"],
    )
    told = fo.explain(fo.solve(instance, "drfh"), "ann", resolves=2)
    assert "Bottleneck: the limit of a, 10 gpu on model = A100, is reached." in told.sentences
    assert {gain.change: gain.by_solving for gain in told.gains}["a limit of 11 gpu instead of 10 for a on model = A100"] == pytest.approx(
        1
    )


def test_nothing_would_help_a_queue_that_has_all() -> None:
    """Its users have their tasks, or nothing says how the allocation was made."""
    allocation = lab(tasks=[1, 1, 1, 1])
    assert fo.explain(allocation, queue="lab").gains == ()
    assert fo.explain(given(allocation.instance.replace(tasks=None), allocation.tasks, "rdm"), queue="lab").gains == ()


def test_a_guarantee_that_is_missing_is_said_with_who_holds_more() -> None:
    """4 GPUs are guaranteed to a, which has 2.5; b holds 7.5 without a guarantee."""
    instance = fo.Instance(
        [[10]], np.ones((2, 1)), resources=["gpu"], queues=[fo.Queue("a", guarantee={"gpu": 4}), fo.Queue("b")], queue_of=["a", "b"]
    )
    text = str(fo.explain(given(instance, np.array([[2.5], [7.5]]), "rdm"), queue="a"))
    assert "It is guaranteed 4 gpu, and 1.5 are missing although its users ask for them. Held there beyond guarantees: 7.5 by b." in text


def test_the_name_of_a_queue_finds_the_queue() -> None:
    """Given as a user, as an owner of several kinds of task is; a user of that name comes first."""
    allocation = lab()
    assert fo.explain(allocation, "students").queue == "students"
    with pytest.raises(fo.InvalidInstance, match=r'there is no queue "labs" \(did you mean "lab"\?\)'):
        fo.explain(allocation, queue="labs")
    with pytest.raises(fo.InvalidInstance, match='there is no user "nobody"'):
        fo.explain(allocation, "nobody")
    with pytest.raises(
        fo.InvalidInstance, match=r'there is no user "student" \(did you mean "students"\?\); there are .*, and the queues '
    ):
        fo.explain(allocation, "student")
    with pytest.raises(fo.InvalidInstance, match='there is no user "students", but a queue; users in it are '):
        fo.explain(allocation, allocation.instance.users[0], against="students")
    for user, queue in ((None, None), ("sam", "lab")):
        with pytest.raises(fo.InvalidInstance, match="give the name of a user, or queue= the name of a queue, and not both"):
            fo.explain(allocation, user, queue=queue)
    with pytest.raises(fo.InvalidInstance, match="only users are compared"):
        fo.explain(allocation, queue="lab", against="sam")


def test_on_the_command_line() -> None:
    """--queue, and --user with the name of a queue; JSON names the queue."""
    first = run("explain", QUEUES, "--queue", "vision").stdout
    assert first == run("explain", QUEUES, "--user", "vision").stdout
    assert "The queue vision, in research, holds" in flat(first)
    data = json.loads(run("explain", QUEUES, "--queue", "vision", "--resolves", 0, "--json").stdout)
    assert (data["queue"], data["user"], data["gains"]) == ("vision", None, [])
    assert "there is no queue" in run("explain", QUEUES, "--queue", "visions", status=2).stderr
    assert "--user: name what to explain, as in --user vision; --queue names a queue" in flat(run("explain", QUEUES, status=2).stderr)


def test_a_queue_in_an_allocation_of_ones_own() -> None:
    """What stops whole tasks, where there is room for more, and what the exact allocation would give the queue."""
    instance = fo.Instance(
        [[4, 0], [2, 2]],
        [[3, 0], [1, 1], [1, 0]],
        counts=[2, 1],
        users=["big", "both", "rest"],
        servers=["plain", "gpu"],
        resources=["cpu", "gpu"],
        queues=[fo.Queue("a"), fo.Queue("b"), fo.Queue("c")],
        queue_of=["a", "b", "c"],
    )
    held = given(instance, np.array([[0, 0], [0, 1], [6, 1]]), "rdm")
    told = fo.explain(held, queue="a").sentences
    assert "big is stopped: cpu has no room for another task where it may run." in told
    assert told[-1].startswith("The exact allocation of drfh, of divisible tasks, would give it 1.")
    assert told[-1].endswith(" instead of 0.")
    assert "both is stopped: cpu has no room for another task where it may run." in fo.explain(held, queue="b").sentences
    assert (
        "rest could run more: there is room for a task on plain, the servers of a row taken together."
        in fo.explain(held, queue="c").sentences
    )
    assert not any("exact allocation of" in sentence for sentence in fo.explain(fo.solve(instance, "drfh"), queue="a").sentences)
