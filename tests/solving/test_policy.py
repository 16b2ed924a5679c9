"""The policy with engines of our own: order, certificates, polish, what is raised, and who took part."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program import Feature, Program, Solution
from fairopt.solvers import candidates
from fairopt.solvers.backend import Backend, Deadline, Method
from fairopt.solvers.via_highs.engine import HiGHS
from fairopt.solving import policy
from fairopt.solving.policy import find

NEVER = Deadline(None)
PROGRAM = fo.formulate(fo.Instance([[2, 12], [12, 2]], [[0.2, 1], [1, 0.2]]), "drfh")
GOOD = HiGHS().solve(PROGRAM, tolerance=1e-8, deadline=NEVER)


def answer(factor: float) -> Solution:
    """Return the exact answer with tasks times ``factor``: too few."""
    return Solution(GOOD.x * factor, GOOD.stages)


def engine(called: str, *steps: Callable[[], Solution | None], **options: float) -> Backend:
    """Return an engine whose methods are these steps, named after it and numbered."""

    class Made(Backend):
        name = called
        title = "made for a test"
        features = frozenset({Feature.LEXIMIN, Feature.SEVERAL_SERVERS})

        def methods(self, program: Program, tolerance: float) -> Sequence[Method]:
            return [Method(f"{called} {k}", lambda *_, step=step: step(), **options) for k, step in enumerate(steps, 1)]

        def solve(self, program: Program, *, tolerance: float, deadline: Deadline) -> Solution:
            raise AssertionError("the policy takes the methods")

    return Made()


def fails(error: Exception) -> Callable[[], Solution]:
    """Return a step that raises."""

    def step() -> Solution:
        raise error

    return step


def never() -> Solution:
    """A step that must not be taken."""
    raise AssertionError("there was a good answer already")


@pytest.fixture(autouse=True)
def _no_polish(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "polishes", lambda *_: ())
    monkeypatch.setattr(policy, "long_polishes", lambda *_: ())


def test_a_good_answer_ends_it_and_is_certified_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither another method nor another engine is tried."""
    certified = []

    def counted(program: Program, solution: Solution) -> fo.Certificate:
        certified.append(solution)
        return certify(program, solution)

    monkeypatch.setattr(policy, "certify", counted)
    found = find(PROGRAM, [engine("one", lambda: GOOD, never), engine("two", never)], 1e-8, NEVER)
    assert found.solution is GOOD
    assert certified == [GOOD]
    assert (found.engine, found.finished_by, found.engines) == ("one", None, ("one",))


def test_the_next_way_then_the_next_engine() -> None:
    """Whoever is lost or fails its check is followed by the next one, and all are named."""
    found = find(
        PROGRAM, [engine("one", lambda: None, lambda: answer(0.9)), engine("two", lambda: GOOD), engine("three", never)], 1e-8, NEVER
    )
    assert found.solution is GOOD
    assert (found.engine, found.finished_by, found.engines) == ("two", "two 1", ("one", "two"))


def test_the_second_way_is_named_where_it_is_better() -> None:
    """The engine is the same; what finished it is its other method."""
    found = find(PROGRAM, [engine("one", lambda: answer(0.99), lambda: GOOD)], 1e-8, NEVER)
    assert (found.engine, found.finished_by, found.engines) == ("one", "one 2", ("one",))


def test_of_poor_answers_the_best_one_counts() -> None:
    """Wherever it comes from; the caller sees its residual."""
    first, second = engine("one", lambda: answer(1 - 1e-5), lambda: answer(0.5)), engine("two", lambda: answer(0.7))
    found = find(PROGRAM, [first, second], 1e-8, NEVER)
    np.testing.assert_array_equal(found.solution.x, answer(1 - 1e-5).x)
    assert found.certificate == certify(PROGRAM, found.solution)
    assert found.certificate.worst > 1e-5
    assert (found.engine, found.finished_by, found.engines) == ("one", None, ("one", "two"))


def test_within_the_tolerance_no_other_engine_is_asked() -> None:
    """A digit more is asked of the engine's own methods only."""
    found = find(PROGRAM, [engine("one", lambda: answer(1 - 1e-9), lambda: None), engine("two", never)], 1e-8, NEVER)
    assert found.engine == "one"
    assert 1e-9 < found.certificate.worst <= 1e-8


def test_an_answer_is_polished_where_it_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """And only then; the polish is named, and one that makes it worse does not count."""
    monkeypatch.setattr(policy, "polishes", lambda *_: [("worse", answer(0.5)), ("better", GOOD), ("needless", never)])
    found = find(PROGRAM, [engine("one", lambda: answer(1 - 1e-7)), engine("two", never)], 1e-8, NEVER)
    assert found.solution is GOOD
    assert (found.engine, found.finished_by, found.engines) == ("one", "better", ("one", "better"))
    assert find(PROGRAM, [engine("one", lambda: answer(1 - 1e-10))], 1e-8, NEVER).engines == ("one",)
    always = find(PROGRAM, [engine("one", lambda: answer(1 - 1e-10), polish_above=-1.0)], 1e-8, NEVER)
    assert (always.solution, always.finished_by, always.engines) == (GOOD, None, ("one", "better"))


def test_what_the_first_engine_raised_is_raised() -> None:
    """Where nobody found an answer; another engine's good answer makes up for it."""
    refuses = engine("one", fails(fo.Unsupported("user-2 gets too little")))
    assert find(PROGRAM, [refuses, engine("two", lambda: GOOD)], 1e-8, NEVER).engines == ("one", "two")
    for second in (lambda: None, lambda: answer(0.5), fails(fo.NoSolution("lost", {}))):
        with pytest.raises(fo.Unsupported, match="user-2"):
            find(PROGRAM, [refuses, engine("two", second)], 1e-8, NEVER)
    with pytest.raises(fo.NoSolution, match=r'"one" found no answer.*use .*highs'):
        find(PROGRAM, [engine("one", lambda: None)], 1e-8, NEVER)


def test_when_time_is_up_nobody_else_is_asked() -> None:
    """The error of the deadline says what is known."""
    over = Deadline(1e-9)
    with pytest.raises(fo.NoSolution, match="time limit"):
        find(PROGRAM, [engine("one", fails(over.passed({"levels": [0.5]}))), engine("two", never)], 1e-8, over)


def test_separate_goals_are_solved_server_by_server() -> None:
    """Each part has the whole policy: the second server's answer comes from another engine."""
    program = fo.formulate(fo.Instance([[2, 12], [12, 2]], [[0.2, 1], [1, 0.2]]), "per-server-drf")
    asked: list[str] = []

    class OnlyTheFirst(HiGHS):
        def solve(self, program: Program, *, tolerance: float, deadline: Deadline) -> Solution:
            asked.append(program.name)
            if len(asked) == 2:
                raise fo.NoSolution("lost", {})
            return super().solve(program, tolerance=tolerance, deadline=deadline)

    found = find(program, [OnlyTheFirst(), *candidates(program, None)], 1e-8, NEVER)
    np.testing.assert_allclose(program.per_user(found.solution.x), [6, 6], rtol=1e-9)
    assert found.engines == ("highs", "water-filling")
    assert len(asked) == 2


def test_a_named_engine_is_the_only_one() -> None:
    """It answers, or says that it failed its check and who else can."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HiGHS, "solve", lambda *_, **__: answer(0.5))
        with pytest.raises(fo.CertificateError, match=r'"highs" for "drfh" fails its check.*try solver="interior-point"'):
            fo.solve(fo.Instance([[2, 12], [12, 2]], [[0.2, 1], [1, 0.2]]), "drfh", solver="highs")
        found = fo.solve(fo.Instance([[2, 12], [12, 2]], [[0.2, 1], [1, 0.2]]), "drfh")
    assert found.solver == found.details["finished_by"] == "interior-point"
    assert found.details["engines"] == ("highs", "interior-point")


def test_a_long_polish_is_for_answers_that_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for those that are within the tolerance, though others are tried for more digits."""
    monkeypatch.setattr(policy, "long_polishes", lambda *_: [("long", GOOD)])
    assert find(PROGRAM, [engine("one", lambda: answer(1 - 1e-7))], 1e-8, NEVER).finished_by == "long"
    assert 1e-9 < certify(PROGRAM, answer(1 - 1e-9)).worst < 1e-8
    enough = find(PROGRAM, [engine("one", lambda: answer(1 - 1e-9))], 1e-8, NEVER)
    assert (enough.finished_by, enough.engines) == (None, ("one",))
