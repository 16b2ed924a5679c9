"""The policy: which engines try a program, and when an answer is good enough.

    for each candidate engine, in order:
        for each of its methods:
            solve;  certify;  where a residual is left: polish, and certify again;  keep the best answer so far
        the best answer is within the tolerance: done

An engine solves, or says that it cannot; nothing of this is its business. A certificate is computed once for every answer.

Each step is a function, and leaves the rest to the next one:

======================  =====================================================================================================
`find_by_reduction`     columns and rows that are alike as one (`fairopt.program.reduction`), and the answer spread over all
`find`                  the best answer of given engines; where the goal is separate, server by server
``_with_kept_rows``     of what queues keep, a program has some rows (`fairopt.program.kept_parts`): solved again with more
``_try_engines``        the engines in order, until an answer is within the tolerance
``_improving_answers``  the methods of one engine in order, as long as they are needed
``_try_method``         one method: solve, certify, polish
======================  =====================================================================================================
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairopt.certificate import Certificate, certify
from fairopt.errors import FairoptError, NoSolution
from fairopt.instance.tolerances import EXACT
from fairopt.program import Program, Solution
from fairopt.program.kept_parts import within_kept
from fairopt.program.reduction import Reduction
from fairopt.solvers import candidates, long_polishes, polishes
from fairopt.solvers.backend import Backend, Deadline, Method
from fairopt.wording import SMALLER_RATIOS, plural

__all__ = ["Found", "find", "find_by_reduction", "other_engines"]

log = logging.getLogger(__name__)

_DIGIT = 0.1  # of the tolerance: an answer within it needs no polish, and no other method of the same engine
_FEW = 500  # pairs; of so few, a doubt is polished, too: sets that are certain lessen it


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The best answer that was found to a program.

    Attributes
    ----------
    solution : Solution
    certificate : Certificate
    engine : str
        Whose answer it is; "" of a program without a column, which needs none.
    finished_by : str or None
        What gave the answer its last digits, if not the first method of the first engine: another engine, another method, a polish.
    engines : tuple of str
        All that took part, in order: the engines that were tried, and what polished the answer.
    program : Program
        That was solved, with all rows of what queues keep that were needed.
    """

    solution: Solution
    certificate: Certificate
    engine: str
    finished_by: str | None
    engines: tuple[str, ...]
    program: Program


@dataclass(frozen=True, slots=True, eq=False)
class _Answer:
    """A certified answer of one method of an engine."""

    solution: Solution
    certificate: Certificate
    engine: str
    method: str
    polish: str | None = None
    needed_it: bool = False  # was the residual of the engine's own answer too large for the tolerance?

    @property
    def residual(self) -> float:
        return self.certificate.worst if np.isfinite(self.certificate.worst) else float("inf")

    @property
    def unsure(self) -> float:
        """The residual, or the doubt if that is larger: an engine answers for the first alone, and a polish may lessen both."""
        return max(self.residual, self.certificate.doubt)


def find(program: Program, engines: Sequence[Backend], tolerance: float, deadline: Deadline) -> Found:
    """Return the best answer of the engines to a program, certified; where its goal is separate, server by server.

    The residual of the answer may exceed the tolerance: the caller decides what then.

    Raises
    ------
    FairoptError
        What the first engine raised, or another one that finds nothing feasible, where no engine found an answer within the tolerance.
    """
    if program.n_pairs == 0:
        if (program.limits.bounds < 0).any():  # a rule asks for something where nobody can have anything
            raise NoSolution("nothing is feasible", {"infeasible": True})
        return Found(Solution(np.empty(0), programs_solved=0), Certificate.combine([]), "", None, (), program)
    if program.is_separate:
        return _server_by_server(program, engines, tolerance, deadline)
    return _with_kept_rows(program, engines, tolerance, deadline)


def _server_by_server(program: Program, engines: Sequence[Backend], tolerance: float, deadline: Deadline) -> Found:
    """Return the best answer to the goal of each server, given what earlier servers do."""
    x = np.zeros(program.n_pairs)
    parts: list[Found] = []
    for server in np.unique(program.pair_servers):
        part, columns = program.part(int(server), x)
        parts.append(_try_engines(part, engines, tolerance, deadline))
        x[columns] = parts[-1].solution.x
    iterations, programs = (sum(getattr(part.solution, name) for part in parts) for name in ("iterations", "programs_solved"))
    return Found(
        Solution(x, iterations=iterations, programs_solved=programs),
        Certificate.combine([part.certificate for part in parts]),
        parts[0].engine,
        next((part.finished_by for part in parts if part.finished_by), None),
        tuple(dict.fromkeys(name for part in parts for name in part.engines)),
        program,
    )


def find_by_reduction(
    program: Program, solver: str | None, tolerance: float, deadline: Deadline, options: Mapping[str, object] | None = None
) -> tuple[Found, list[Backend]]:
    """Return the best answer to a program of which rows and columns may be alike (`fairopt.program.reduction`), and the engines.

    The answer is spread over the whole program and certified there: every row, every share and every price.

    Raises
    ------
    FairoptError
        As `find`.
    """

    def solve(program: Program) -> tuple[tuple[Found, list[Backend], bool], Program | None]:
        found, engines, is_spread = _reduced(program, solver, tolerance, deadline, options)
        longer = program.with_broken(*found.solution.points) if is_spread else None  # `find` has seen to the points of its own
        return (found, engines, is_spread), longer

    *before, (found, engines, is_spread) = within_kept(program, solve)
    solution = found.solution.counting(*(each.solution for each, _, _ in before))
    certificate = certify(found.program, solution) if is_spread else found.certificate
    return replace(found, solution=solution, certificate=certificate), engines


def _reduced(
    program: Program, solver: str | None, tolerance: float, deadline: Deadline, options: Mapping[str, object] | None
) -> tuple[Found, list[Backend], bool]:
    """Return the answer to the reduced program, spread and not certified, where there is one; else to the program as it is.

    Also return its engines, and whether it was spread.
    """
    reduction = Reduction.of(program)
    if reduction is not None:
        engines = candidates(reduction.program, solver, options)
        log.info("%s taken together as %d", plural(program.n_pairs, "column"), reduction.program.n_pairs)
        try:
            found = find(reduction.program, engines, tolerance, deadline)
        except NoSolution as error:
            if "users" in error.known:
                error.known["users"] = reduction.members(error.known["users"])
            raise
        if found.solution.promised is None and not found.solution.raised:  # what proves these is not spread
            return replace(found, solution=reduction.spread(found.solution), program=program), engines, True
    engines = candidates(program, solver, options)
    return find(program, engines, tolerance, deadline), engines, False


def other_engines(program: Program, engines: Sequence[Backend]) -> list[str]:
    """Return the names of the other engines that can solve a program."""
    asked = {engine.name for engine in engines}
    return [engine.name for engine in candidates(program, None) if engine.name not in asked]


class _LacksRows(Exception):
    """A program lacks rows of what queues keep that the answer to it exceeds. ``longer`` is the program that has them."""

    def __init__(self, solution: Solution, longer: Program) -> None:
        super().__init__()
        self.solution, self.longer = solution, longer


def _with_kept_rows(program: Program, engines: Sequence[Backend], tolerance: float, deadline: Deadline) -> Found:
    """Solve until the answer exceeds no row of what queues keep. An answer that exceeds some is not certified."""

    def solve(program: Program) -> tuple[Found | _LacksRows, Program | None]:
        try:
            found = _try_engines(program, engines, tolerance, deadline)
        except _LacksRows as lacks:
            return lacks, lacks.longer
        except NoSolution as error:
            if "tasks" in error.known and program.broken_rows(error.known["tasks"]):
                del error.known["tasks"]  # they are no allocation
            raise
        return found, program.with_broken(*found.solution.points)  # a polish may exceed rows that the engine's own answer did not

    *before, found = within_kept(program, solve)
    assert isinstance(found, Found)  # the program of the last one lacks no row
    return replace(found, solution=found.solution.counting(*(each.solution for each in before)))


def _try_engines(program: Program, engines: Sequence[Backend], tolerance: float, deadline: Deadline) -> Found:
    """Return the best answer of the engines, which are tried in order until it is within the tolerance."""
    best: _Answer | None = None
    failure: FairoptError | None = None
    tried: list[tuple[str, str]] = []  # engines and their methods
    for engine in engines:
        of_engine: _Answer | None = None
        try:
            for answer in _improving_answers(program, engine, tolerance, deadline, tried):
                of_engine = answer
        except FairoptError as error:
            failure = error if engine is engines[0] or _finds_nothing_feasible(error) else failure
            log.info('"%s" has no answer: %s', engine.name, error)
        if of_engine is not None and (best is None or of_engine.residual < best.residual):
            best = of_engine
        if deadline.left == 0.0 or (best is not None and best.residual <= tolerance):
            break
        if of_engine is not None:
            log.info('the answer of "%s" leaves an error of %.1e', engine.name, of_engine.residual)
    if best is None:
        raise failure or _no_answer(program, engines)
    if failure is not None and not best.residual <= tolerance:
        raise failure
    finished = best.polish if best.needed_it else None if (best.engine, best.method) == tried[0] else best.method
    took_part = [*(name for name, _ in tried), *([best.polish] if best.polish else [])]
    return Found(best.solution, best.certificate, best.engine, finished, tuple(dict.fromkeys(took_part)), program)


def _finds_nothing_feasible(error: FairoptError) -> bool:
    return isinstance(error, NoSolution) and bool(error.known.get("infeasible"))


def _no_answer(program: Program, engines: Sequence[Backend]) -> NoSolution:
    names = " and ".join(f'"{engine.name}"' for engine in engines)
    others = other_engines(program, engines)
    return NoSolution(f'{names} found no answer to "{program.name}"; use {" or ".join(others) or SMALLER_RATIOS}', {})


def _improving_answers(
    program: Program, engine: Backend, tolerance: float, deadline: Deadline, tried: list[tuple[str, str]]
) -> Iterator[_Answer]:
    """Yield the first answer of an engine, and after it each better one of a further method that is needed; list what was ``tried``."""
    best: _Answer | None = None
    for method in engine.methods(program, tolerance):
        skip_below = _DIGIT * tolerance if method.skip_below is None else method.skip_below
        if best is not None and (best.residual <= skip_below or deadline.left == 0.0):
            continue
        tried.append((engine.name, method.name))
        answer = _try_method(program, engine, method, tolerance, deadline, None if best is None else best.solution)
        if answer is None:
            log.info('the %s of "%s" did not converge', method.name, engine.name)
        elif best is None or answer.residual < best.residual:
            best = answer
            yield best


def _try_method(
    program: Program, engine: Backend, method: Method, tolerance: float, deadline: Deadline, best: Solution | None
) -> _Answer | None:
    """Return the certified answer of one method, polished where that makes it better; None if the method did not converge."""
    solution = method.solve(program, tolerance, deadline, best)
    if solution is None:
        return None
    if (longer := program.with_broken(*solution.points)) is not None:
        raise _LacksRows(solution, longer)
    is_rough = len(solution.stages) >= method.rough_from
    polish, first = next(polishes(program, solution, deadline), (None, solution)) if is_rough else (None, solution)
    answer = _Answer(first, certify(program, first), engine.name, method.name, polish, polish is not None)
    usual = tolerance if program.goal.is_filling else _DIGIT * tolerance  # the polish of a tree takes as long as several levels
    polish_above = usual if method.polish_above is None else method.polish_above
    error = answer.unsure if program.n_pairs <= _FEW else answer.residual
    return _polished(program, answer, solution, polish_above, tolerance, deadline) if error > polish_above else answer


def _polished(program: Program, answer: _Answer, solution: Solution, enough: float, tolerance: float, deadline: Deadline) -> _Answer:
    """Return the best of an answer and of the polishes of the ``solution`` that it is made of, tried until one is good ``enough``.

    The long ones only where the best is not within the tolerance.
    """
    answer = _best_of(program, answer, polishes(program, solution, deadline), enough, tolerance)
    if answer.residual <= tolerance:
        return answer
    return _best_of(program, answer, long_polishes(program, solution, deadline), tolerance, tolerance)


def _best_of(program: Program, answer: _Answer, near: Iterator[tuple[str, Solution]], enough: float, tolerance: float) -> _Answer:
    """Return the best of an answer and of others ``near`` it, tried until one is good ``enough``."""
    for name, polished in near:
        certificate = certify(program, polished)
        kept = certificate.worst <= tolerance or certificate.worst < answer.residual
        if (kept and certificate.unsure < answer.unsure) or certificate.unsure <= EXACT:
            needed_it = answer.needed_it or answer.unsure > _DIGIT * tolerance
            answer = replace(answer, solution=polished, certificate=certificate, polish=name, needed_it=needed_it)
        if answer.unsure <= max(enough, EXACT):
            break
    return answer
