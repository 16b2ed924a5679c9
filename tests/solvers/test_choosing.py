"""Which engines are tried, and in what order."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

import fairopt as fo
from fairopt.program import Feature, Program, Solution
from fairopt.solvers.backend import Backend, Deadline
from fairopt.solvers.choosing import SOLVERS, candidates, choose
from fairopt.solvers.interior_point.engine import InteriorPoint
from fairopt.solvers.via_highs.engine import HiGHS

TWO_SERVERS = fo.Instance([[4, 2], [2, 4]], [[1, 1], [2, 1]])


def program_of(notion: str) -> Program:
    """Return a program of two users on two servers."""
    return fo.formulate(TWO_SERVERS, notion)


@pytest.mark.parametrize("notion", ["drfh", "proportional", "psdsf", "efficiency"])
def test_candidates_are_all_that_can_solve_it_in_the_order_of_the_registry(notion: str) -> None:
    """But the one that is the fastest for the program comes first."""
    program = program_of(notion)
    capable = [name for name, engine in SOLVERS.items() if not engine.lacks(program) and engine.available() and engine.suits(program)]
    first, *others = [engine.name for engine in candidates(program, None)]
    assert sorted([first, *others]) == sorted(capable)
    assert others == [name for name in capable if name != first]
    assert choose(program, None).name == first


def test_an_engine_that_is_the_fastest_for_a_program_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that would take too long for its size is left out, unless it is the only one."""
    program = program_of("drfh")
    last = [engine.name for engine in candidates(program, None)][-1]
    monkeypatch.setattr(SOLVERS[last], "wins", classmethod(lambda *_: True))
    assert choose(program, None).name == last
    monkeypatch.setattr(HiGHS, "most_pairs", program.n_pairs - 1)
    assert "highs" not in [engine.name for engine in candidates(program, None)]
    assert choose(program, "highs").name == "highs"


def test_an_engine_that_cannot_says_which_can() -> None:
    """So does one that is not there."""
    with pytest.raises(fo.Unsupported, match=r'"highs" cannot solve "proportional" here: the program has .*; use .*cvxpy'):
        choose(program_of("proportional"), "highs")
    with pytest.raises(fo.Unsupported, match='there is no solver "higs" \\(did you mean "highs"\\?\\)'):
        choose(program_of("drfh"), "higs")


def test_an_engine_of_rules_is_one_of_least_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is offered alpha-fair programs under either; an engine of least tasks alone is not offered those under other rules."""

    class OfRules(Backend):
        name = "of-rules"
        title = "made for a test"
        features = frozenset({Feature.ALPHA_FAIR, Feature.SEVERAL_SERVERS, Feature.RULES})

        def solve(self, program: Program, *, tolerance: float, deadline: Deadline) -> Solution:
            raise NotImplementedError

    monkeypatch.setitem(SOLVERS, "of-rules", OfRules)
    floor, ratio = (
        fo.formulate(TWO_SERVERS.replace(rules=[rule]), "proportional") for rule in ("x['user-1'] >= 1", "x['user-1'] >= x['user-2']")
    )
    assert (Feature.FLOORS in floor.features(), Feature.RULES in floor.features()) == (True, False)
    assert Feature.RULES in ratio.features()
    for program in (floor, ratio):
        assert not OfRules.lacks(program)
        assert choose(program, "of-rules").name == "of-rules"
        assert "of-rules" in [engine.name for engine in candidates(program, None)]
    assert not InteriorPoint.lacks(floor)
    assert InteriorPoint.lacks(ratio) == {Feature.RULES}


def test_an_engine_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for by name; without a name, an engine that is there is taken."""
    monkeypatch.setattr(HiGHS, "available", classmethod(lambda _: False))
    with pytest.raises(fo.SolverUnavailable, match='the solver "highs" is not installed; install it with: '):
        choose(program_of("drfh"), "highs")
    assert choose(program_of("drfh"), None).name != "highs"
    for engine in SOLVERS.values():
        monkeypatch.setattr(engine, "available", classmethod(lambda _: False))
    with pytest.raises(fo.SolverUnavailable, match="no engine for this program is installed; install it with: "):
        choose(program_of("drfh"), None)


def test_a_solver_that_other_engines_reach_is_named_with_them() -> None:
    """In any case of letters, whether it is installed or not."""
    with pytest.raises(fo.Unsupported, match=r"cvxpy:GUROBI, pyomo:gurobi"):
        fo.solve(fo.Instance([[1]], [[1]]), solver="gurobi")
    with pytest.raises(fo.Unsupported, match=r"cvxpy:XPRESS, pyomo:xpress"):
        fo.solve(fo.Instance([[1]], [[1]]), solver="Xpress")


def test_options_of_a_solver_need_a_solver_that_takes_them() -> None:
    """None is dropped in silence."""
    pool = fo.Instance([[9, 18]], [[1, 4], [3, 1]])
    with pytest.raises(fo.Unsupported, match="need its name"):
        fo.solve(pool, solver_options={"threads": 1})
    with pytest.raises(fo.Unsupported, match='"interior-point" takes no options of a solver, as threads is'):
        fo.solve(pool, solver="interior-point", solver_options={"threads": 1})
    with pytest.raises(fo.InvalidInstance, match="give a mapping"):
        fo.solve(pool, solver="highs", solver_options=["threads"])  # type: ignore[arg-type]
    with pytest.raises(fo.Unsupported, match="no options of a solver"):
        fo.solve(pool, exact=True, solver_options={"threads": 1})


def test_an_answer_is_made_again_with_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """An audit solves other instances as the user has asked."""
    from fairopt.solvers import highs_options

    heard: list[dict[str, object]] = []
    check = highs_options.check_options

    def hear(options: Mapping[str, object]) -> None:
        heard.append(dict(options))
        check(options)

    monkeypatch.setattr(highs_options, "check_options", hear)
    allocation = fo.solve(fo.Instance([[9, 18]], [[1, 4], [3, 1]]), solver="highs", solver_options={"threads": 1})
    before = len(heard)
    fo.audit(allocation, ["strategy-proofness"], effort=1)
    assert len(heard) > before > 0
    assert all(options == {"threads": 1} for options in heard)


def test_a_closed_form_comes_before_every_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also before those that say that they are faster."""
    pool = fo.formulate(fo.Instance([[4, 2]], [[1, 1], [2, 1]]), "drfh")
    for engine in SOLVERS.values():
        monkeypatch.setattr(engine, "wins", classmethod(lambda *_: True))
    assert choose(pool, None).name == "water-filling"


def test_pyomo_is_asked_unasked_only_for_what_no_other_engine_solves() -> None:
    """It would hand the same linear programs to HiGHS once more."""
    assert "pyomo" not in [engine.name for engine in candidates(program_of("drfh"), None)]
    assert choose(program_of("drfh"), "pyomo").name == "pyomo"
    preferred = fo.formulate(TWO_SERVERS, "psdsf", prefer=[1.0, 2.0])
    assert [engine.name for engine in candidates(preferred, None)] == ["pyomo"]


def test_highs_is_first_where_the_lightest_users_weigh_too_little_for_a_gap_of_rounding() -> None:
    """The same leximin with weights over three and over six orders of magnitude."""
    even = fo.generate("uniform", users=60, servers=60, resources=3, seed=0)
    first = [choose(fo.formulate(even.replace(weights=np.logspace(0, orders, 60)), "drfh"), None).name for orders in (3, 6)]
    assert first == ["interior-point", "highs"]


def test_networks_of_some_size_are_for_cvxpy() -> None:
    """A network is a server of many limits, of which each user takes few. Trade-offs are for the interior point, of whatever size."""
    rng = np.random.default_rng(0)
    for users, notion in ((40, "gfj"), (400, "gfj"), (400, "proportional")):
        pool = fo.generate("uniform", users=users, servers=3, resources=2, seed=0)
        assert choose(fo.formulate(pool, notion), None).name == "interior-point"
    for links, paths, expected in ((100, 0.05, "cvxpy"), (100, 0.5, "interior-point"), (50, 0.05, "interior-point")):
        takes = np.where(rng.random((600, links)) < paths, 1.0, 0.0)
        takes[:, 0] = 1.0
        network = fo.formulate(fo.Instance(np.full((1, links), 9.0), takes), "proportional")
        assert choose(network, None).name == expected
