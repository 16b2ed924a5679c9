"""Levels and totals on arrays that are not NumPy's: what the standard lacks, answers against HiGHS, what is refused, and what memory is too
small for."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from instances import spread_instance

import fairopt as fo
from fairopt.certificate import certify
from fairopt.instance import FloatArray
from fairopt.program import Equalize, Leximin, Program, Solution, Total
from fairopt.solvers.backend import Deadline
from fairopt.solvers.interior_point import paths
from fairopt.solvers.interior_point.levels import solve_levels
from fairopt.solvers.interior_point.total import solve_total
from fairopt.solvers.structure.arrays import NUMPY, Arrays, array_namespace, is_out_of_memory
from fairopt.solvers.structure.layouts import PairLists, PairTable, lay_out
from fairopt.solvers.structure.scaling import ScaledProgram

NEVER = Deadline(None)
NAMES = ["numpy", "strict", "torch"]


class OnDevice(Arrays):
    """Arrays of array-api-strict on a device of its own that only pretends: they go with no array of another one."""

    def numpy(self, array: Any) -> Any:
        """Bring an array back."""
        return super().numpy(array.to_device(self.xp.Device("CPU_DEVICE")) if hasattr(array, "to_device") else array)


def arrays_named(name: str) -> Arrays:
    """Return arrays by name; "strict" has nothing but the standard, PyTorch's live on the processor here. Skip what is not installed."""
    if name == "strict":
        strict: Any = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
        return OnDevice(strict, strict.Device("device1"))
    if name == "torch":
        for needed in (name, "array_api_compat"):
            pytest.importorskip(needed, reason=f"{needed} is not installed")
    return array_namespace(name)


def by_path(program: Program, arrays: Arrays) -> Solution:
    """Solve by the path alone, without HiGHS behind it."""
    goal = program.goal
    assert isinstance(goal, Leximin | Equalize | Total)
    with np.errstate(all="ignore"):
        if isinstance(goal, Total):
            solution = solve_total(program, 1e-8, NEVER, arrays)
        else:
            solution = solve_levels(program, goal, 1e-8, NEVER, arrays)
    assert solution is not None
    return solution


def by_highs(program: Program) -> Solution:
    """Solve by HiGHS."""
    return fo.SOLVERS["highs"]().solve(program, tolerance=1e-8, deadline=NEVER)


def levels(program: Program, solution: Solution) -> FloatArray:
    """Return U[n], (users,)."""
    return program.per_user(program.utilities * solution.x)


# What the standard lacks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_sums_diagonals_and_factors(name: str) -> None:
    """Against plain NumPy."""
    arrays, rng = arrays_named(name), np.random.default_rng(0)
    tables, rows, columns = rng.random((3, 5, 4)), rng.random((5, 4)), rng.random((3, 4))
    floats, numpy = arrays.floats, arrays.numpy
    np.testing.assert_allclose(numpy(arrays.sum_rows(floats(tables), floats(rows))), (tables * rows).sum(axis=1), rtol=1e-14)
    sums = (tables * columns[:, None, :]).sum(axis=0)
    np.testing.assert_allclose(numpy(arrays.sum_tables(floats(tables), floats(columns))), sums, rtol=1e-14)

    half = rng.normal(size=(6, 6))
    matrix = half @ half.T
    on_device = floats(matrix.copy())
    arrays.add_to_diagonal(on_device, 2.0)
    arrays.add_to_diagonal(on_device, floats([1.0, 3.0]), 1, 3)
    expected = matrix + 2 * np.eye(6)
    expected[1, 3] += 1
    expected[2, 4] += 3
    np.testing.assert_array_equal(numpy(on_device), expected)

    right = rng.normal(size=6)
    np.testing.assert_allclose(matrix @ numpy(arrays.factorised(floats(matrix))(floats(right))), right, rtol=1e-8, atol=1e-9)
    with pytest.raises(np.linalg.LinAlgError):
        arrays.factorised(floats(-matrix))


# Answers -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_what_must_not_be_written_to_is_copied(name: str) -> None:
    """PyTorch would share the memory of a NumPy array that is read-only, as one that was broadcast is."""
    arrays = arrays_named(name)
    frozen = np.broadcast_to(np.ones(3), (1, 3))
    theirs = arrays.floats(frozen)
    theirs[0, 0] = 2.0
    assert (frozen == 1).all()
    assert (arrays.numpy(theirs) == [[2, 1, 1]]).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("users", "servers"), [(40, 5), (12, 20)])
@pytest.mark.parametrize(("part", "limited"), [(1.0, 0), (1.0, 10), (0.6, 0), (0.6, 10)])
def test_leximin_as_by_highs(name: str, users: int, servers: int, part: float, limited: int) -> None:
    """Both sides of the elimination; all pairs and some; users who run all their tasks are settled on the way."""
    program = fo.formulate(spread_instance(users, servers, seed=users, part=part, limited=limited), "drfh")
    solution = by_path(program, arrays_named(name))
    np.testing.assert_allclose(levels(program, solution), levels(program, by_highs(program)), rtol=1e-7)
    assert certify(program, solution).worst <= 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_several_levels_as_by_highs(name: str) -> None:
    """Each user on a few servers: the path goes on from level to level."""
    program = fo.formulate(spread_instance(25, 6, seed=2, part=0.1), "drfh")
    solution = by_path(program, arrays_named(name))
    assert len(solution.stages) > 2
    np.testing.assert_allclose(levels(program, solution), levels(program, by_highs(program)), rtol=1e-7)
    assert certify(program, solution).worst <= 1e-9


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("part", [0.6, 1.0])
@pytest.mark.parametrize("limited", [0, 3])
def test_equal_level_as_by_highs(name: str, part: float, limited: int) -> None:
    """One level for all, with limits on tasks as rows."""
    instance = spread_instance(30, 5, seed=1, part=part)
    tasks = np.where(np.arange(30) < limited, 20.0, np.inf)
    program = fo.formulate(instance.replace(tasks=tasks), "drfh", formulation="equalize")
    solution, expected = by_path(program, arrays_named(name)), by_highs(program)
    assert solution.stages[0].value == pytest.approx(expected.stages[0].value, rel=1e-8)
    assert certify(program, solution).worst <= 1e-9


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("part", [0.6, 1.0])
@pytest.mark.parametrize("limited", [0, 10, 30])
def test_total_as_by_highs(name: str, part: float, limited: int) -> None:
    """Without rows of users at all, with some, and with all of them."""
    program = fo.formulate(spread_instance(30, 5, seed=2, part=part, limited=limited), "efficiency")
    assert isinstance(program.goal, Total)
    solution, weights = by_path(program, arrays_named(name)), program.goal.weights
    expected = float(weights @ levels(program, by_highs(program)))
    assert float(weights @ levels(program, solution)) == pytest.approx(expected, rel=1e-8)
    assert certify(program, solution).worst <= 1e-9


@pytest.mark.parametrize("notion", ["drfh", "efficiency", "proportional"])
def test_by_name(notion: str) -> None:
    """As users ask for it."""
    arrays_named("torch")
    instance = spread_instance(20, 4, seed=0)
    ours, theirs = (fo.solve(instance, notion, solver=f"interior-point:{name}") for name in ("numpy", "torch"))
    assert "finished_by" not in theirs.details
    np.testing.assert_allclose(theirs.tasks_per_user, ours.tasks_per_user, rtol=1e-7)


# Layouts -------------------------------------------------------------------------------------------------------------------------


def test_layout_by_density() -> None:
    """NumPy has lists of few pairs, other arrays tables of all but the emptiest programs, which they refuse."""

    def scaled(part: float) -> ScaledProgram:
        return ScaledProgram.of(fo.formulate(spread_instance(60, 40, seed=0, part=part), "drfh"))

    assert isinstance(lay_out(scaled(0.9), NUMPY), PairTable)
    assert isinstance(lay_out(scaled(0.3), NUMPY), PairLists)
    strict = arrays_named("strict")
    assert isinstance(lay_out(scaled(0.3), strict), PairTable)
    with pytest.raises(fo.Unsupported, match=r'only 3\.3% of all pairs.*use "interior-point:numpy"'):
        lay_out(scaled(0.0), strict)


def test_what_has_no_tables_is_refused() -> None:
    """Trade-offs, alpha-fair goals with limits on tasks that are worth more on one server; slices as without other arrays."""
    instance = spread_instance(5, 2, seed=0)
    worth: dict[str, Any] = {"utility": np.arange(1.0, 11).reshape(5, 2)}
    for notion, which, options in (("fds", instance, {}), ("proportional", instance.replace(tasks=np.ones(5)), worth)):
        with pytest.raises(fo.Unsupported, match=r'is for levels, totals, and alpha-fair goals.*leave ":numpy" out'):
            fo.solve(which, notion, solver="interior-point:numpy", **options)
    with pytest.raises(fo.Unsupported, match=r"slices of servers.*use highs"):
        fo.solve(instance, "uniform", solver="interior-point:numpy")


# Memory --------------------------------------------------------------------------------------------------------------------------


class OutOfMemoryError(RuntimeError):
    """What PyTorch raises of a device."""


def path_that_raises(error: Exception) -> Any:
    """Return a path which cannot have the arrays that it wants."""

    def path(*_: object) -> Solution:
        raise error

    return path


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 7.28 TiB"),
        MemoryError(),
        OutOfMemoryError("CUDA out of memory. Tried to allocate 7.28 TiB.\nGPU 0 has 80 GiB."),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ],
)
@pytest.mark.parametrize(
    ("notion", "path"), [("drfh", "solve_levels"), ("efficiency", "solve_total"), ("proportional", "solve_alpha_fair")]
)
def test_what_to_do_where_memory_runs_out(monkeypatch: pytest.MonkeyPatch, error: Exception, notion: str, path: str) -> None:
    """The package's own words, in the first line of an error of fairopt's, and what fits; it holds on to no array."""
    monkeypatch.setattr(paths, path, path_that_raises(error))
    said = str(error).split("\n")[0] or "MemoryError"
    with pytest.raises(fo.NoSolution, match=rf"on 10 pairs of users and servers \({re.escape(said)}\); ask about fewer pairs") as raised:
        fo.solve(spread_instance(5, 2, seed=0), notion, solver="interior-point")
    assert raised.value.__context__ is None


def test_numpy_is_the_way_out_of_the_memory_of_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named where other arrays were asked for."""
    arrays_named("torch")
    monkeypatch.setattr(paths, "solve_levels", path_that_raises(OutOfMemoryError("CUDA out of memory.")))
    with pytest.raises(fo.NoSolution, match=r'"interior-point:torch" ran out of memory.*try solver="interior-point"'):
        fo.solve(spread_instance(5, 2, seed=0), "drfh", solver="interior-point:torch")


def test_the_memory_of_the_processor() -> None:
    """PyTorch's and NumPy's own errors, of more than any machine has."""
    torch = arrays_named("torch")
    for arrays in (NUMPY, torch):
        with pytest.raises((MemoryError, RuntimeError)) as raised:
            arrays.xp.empty(2**50, dtype=arrays.xp.float64)
        assert is_out_of_memory(raised.value)


def test_other_errors_are_no_want_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake of ours is not hidden."""
    monkeypatch.setattr(paths, "solve_levels", path_that_raises(RuntimeError("shapes differ")))
    with pytest.raises(RuntimeError, match="shapes differ"):
        fo.solve(spread_instance(5, 2, seed=0), "drfh", solver="interior-point")
