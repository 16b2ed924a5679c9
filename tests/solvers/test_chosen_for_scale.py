"""The engine for scale is used by whatever solves programs: each of these reaches it without naming it, on a program large enough."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificate import certify
from fairopt.program import Program, Solution
from fairopt.solvers.backend import Method
from fairopt.solvers.interior_point import market, paths
from fairopt.solvers.interior_point.engine import InteriorPoint
from fairopt.solving import policy

SIZE = 60  # users and servers: 60 x 60 pairs times 180 limits are just enough
LARGE = fo.generate("uniform", users=SIZE, servers=SIZE, resources=3, weights=5, seed=0)
MANY = fo.generate("uniform", users=2000, servers=5, resources=3, weights=5, seed=0)


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the programs that the engine has solved to the end."""
    names: list[str] = []
    methods = InteriorPoint.methods

    def recorded(self: InteriorPoint, program: Program, tolerance: float) -> list[Method]:
        def record(method: Method) -> Method:
            def solve(program: Program, *rest: Any) -> Solution | None:
                solution = method.solve(program, *rest)
                if solution is not None:
                    names.append(program.name)
                return solution

            return replace(method, solve=solve)

        return [record(method) for method in methods(self, program, tolerance)]

    monkeypatch.setattr(InteriorPoint, "methods", recorded)
    return names


def test_by_frontier(reached: list[str]) -> None:
    """Its points; the vertices of the frontier itself are a hundred neighbouring programs, each a few pivots from the last."""
    frontier = fo.frontier(LARGE, alphas=[1.0, np.inf], notions=["drfh"])
    assert reached == ["proportional", "max-min", "drfh"]
    assert [point.allocation.solver for point in frontier if point.allocation is not None] == ["interior-point"] * 3


def test_by_simulate(reached: list[str]) -> None:
    """Fluid: at each moment tasks end, and users of few tasks get all of them."""
    zeros, tasks = np.zeros(SIZE), np.full(SIZE, 50)
    trace = fo.Trace(list(LARGE.users), zeros, tasks, LARGE.demands, zeros + 1.0, resources=list(LARGE.resources))
    fo.simulate(trace, LARGE, "drfh", until=0.5)
    assert reached == ["drfh"]


def test_by_study(reached: list[str]) -> None:
    """And by all that asks many instances."""
    frame = fo.study({"large": LARGE}, notions=["drfh", "tsf"], workers=1)
    assert reached == ["drfh", "tsf"]
    assert frame["message"].eq("").all()


def test_by_psdsf_of_divided_time(reached: list[str]) -> None:
    """As a market: the same x[n] as by best response, checked by the condition of the equilibrium."""
    allocation = fo.solve(MANY, "psdsf", sharing="tdm")
    assert allocation.solver == "interior-point"
    assert reached == ["psdsf"]
    assert allocation.certificate.worst <= 1e-9
    by_turns = fo.solve(MANY, "psdsf", sharing="tdm", solver="best-response")
    np.testing.assert_allclose(allocation.tasks_per_user, by_turns.tasks_per_user, rtol=1e-8)


def test_psdsf_takes_turns_where_it_is_no_market() -> None:
    """Resources are divided, tasks end, or somebody asked for turns: best response; nor can the interior point be asked for it."""
    for options in ({"sharing": "rdm"}, {"sharing": "tdm", "order": "random"}):
        assert not market.is_large(fo.formulate(MANY, "psdsf", **options))  # type: ignore[arg-type]
        with pytest.raises(fo.Unsupported, match="use best-response"):
            fo.solve(MANY, "psdsf", solver="interior-point", **options)  # type: ignore[arg-type]
    assert not market.is_large(fo.formulate(MANY.replace(tasks=np.full(2000, 3.0)), "psdsf", sharing="tdm"))
    few = fo.generate("uniform", users=6, servers=3, resources=2, seed=0)
    assert not market.is_large(fo.formulate(few, "psdsf", sharing="tdm"))


def test_a_market_whose_path_is_lost_is_finished_in_logarithms(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer says who found it."""
    monkeypatch.setattr(paths, "solve_alpha_fair", lambda *_: None)
    small = fo.generate("uniform", users=6, servers=3, resources=2, seed=0)
    found = fo.solve(small, "psdsf", sharing="tdm", solver="interior-point")
    assert found.details["finished_by"] == "path in logarithms"


def test_a_market_that_is_not_exact_enough_ends_at_best_response(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer says so, and is best response's."""
    small = fo.generate("uniform", users=6, servers=3, resources=2, seed=0)
    program = fo.formulate(small, "psdsf", sharing="tdm")
    exact = fo.solve(small, "psdsf", sharing="tdm", solver="interior-point")
    assert "finished_by" not in exact.details
    expected = exact.tasks[program.pair_users, program.pair_servers]
    assert certify(program, Solution(expected)).worst <= 1e-9

    rough = Method("rough", lambda program, *_: Solution(expected * (1 - 1e-7)))  # time is left over
    monkeypatch.setattr(InteriorPoint, "methods", lambda *_: (rough,))
    monkeypatch.setattr(InteriorPoint, "wins", lambda *_: True)
    polished = fo.solve(small, "psdsf", sharing="tdm")
    assert polished.details["finished_by"] == "active sets"
    assert polished.certificate.worst <= 1e-9
    monkeypatch.setattr(policy, "polishes", lambda *_: ())
    found = fo.solve(small, "psdsf", sharing="tdm")
    assert found.solver == found.details["finished_by"] == "best-response"
    assert found.details["engines"] == ("interior-point", "best-response")
    with pytest.raises(fo.CertificateError, match='solver="best-response"'):
        fo.solve(small, "psdsf", sharing="tdm", solver="interior-point")
