"""Explanations where demands and speeds differ by server: what a task takes and does there, and gains in work."""

import pytest
from conformance.test_by_server import drawn

import fairopt as fo
from fairopt.analysis.explanation.by_server import by_server
from fairopt.analysis.rerun import given

LAB = fo.Instance(
    [[8], [8]],
    [[[1], [2]], [[1], [1]]],
    speeds=[[1.0, 0.9], [1.0, 1.0]],
    users=["train", "infer"],
    servers=["rack-a100", "rack-v100"],
    resources=["gpu"],
)


def test_what_a_task_takes_and_does_there() -> None:
    """The servers where it does most come first; who notices no difference gets no sentence."""
    allocation = fo.solve(LAB, "cdrf")
    assert by_server(allocation, 0) == [
        "On rack-a100 its task takes 1 gpu, on rack-v100 its task takes 2 gpu and does 0.9 of the work.",
        "Its tasks do the work of 6.72 tasks.",  # 16 (8 + 0.9 * 4) / (8 + 16 + 0.9 * 4)
    ]
    assert by_server(allocation, 1) == []
    told = str(fo.explain(allocation, "train", resolves=1))
    assert "measured by the work of 11.6 tasks that it could run alone" in told
    assert "With what infer holds, train could run the work of 4.88 tasks, less than its 6.72: nothing to envy." in told
    assert fo.explain(allocation, "train", resolves=0).to_dict()["work"] == pytest.approx(16 * 11.6 / 27.6)


def test_tasks_on_slow_servers_are_stopped_by_what_is_full_on_the_fast_ones() -> None:
    """All tasks run, and would do more elsewhere; it is the work that a change gives."""
    lab = fo.Instance([[4], [4]], [[1], [1]], speeds=[[10, 1], [1, 1]], tasks=[4, 4], users=["a", "b"], servers=["fast", "slow"])
    explanation = fo.explain(given(lab, [[0, 4], [4, 0]], "rdm"), "a")
    told = str(explanation)
    assert "All its tasks run; on other servers they would do more." in told
    assert "Bottleneck there: resource-1 on fast has no room for another task." in told
    assert [(each.server, each.holders) for each in explanation.blockers] == [("fast", (("b", 4.0),))]
    content = fo.explain(given(lab, [[4, 0], [0, 4]], "rdm"), "a")
    assert "It has all the tasks that it asks for, so nothing stops it." in content.sentences


@pytest.mark.parametrize("exact", [False, True])
def test_prices_bound_what_solving_again_gives(exact: bool) -> None:
    """Of work, in floats and in fractions; and limits that stop users have names that the program has."""
    for seed in (1, 2, 6):
        instance = drawn(seed, limited=False)
        allocation = fo.solve(instance, "cdrf", exact=exact)
        names = {fo.formulate(instance, "cdrf").limit_name(row) for row in range(len(fo.formulate(instance, "cdrf").limits))}
        for stopped in allocation.stopped_by:
            assert names.issuperset(name for each in stopped.values() for name in each)
        user = allocation.levels[0].users[0]
        if allocation.complete[instance.index(user)]:
            continue
        for gain in fo.explain(allocation, user, resolves=2).gains:
            if gain.by_solving is not None and gain.by_price is not None and gain.kind == "capacity" and len(allocation.levels) == 1:
                assert float(gain.by_solving) <= float(gain.by_price) * (1 + 1e-6) + 1e-9


def test_more_servers_than_names() -> None:
    """Many equal rows are one row of an explanation, with its demands and speeds."""
    many = fo.Instance(
        [[8]] * 60,
        [[[1]] * 30 + [[2]] * 30, [[1]] * 60],
        speeds=[[1.0] * 30 + [0.5] * 30, [1.0] * 60],
        counts=[2] * 60,
        resources=["gpu"],
    )
    told = str(fo.explain(fo.solve(many, "max-min"), "user-1", resolves=1))
    assert (
        'On "server-1 and 29 like it" its task takes 1 gpu, on "server-31 and 29 like it" its task takes 2 gpu and does 0.5 of the work.'
        in told
    )
