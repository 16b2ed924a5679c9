"""A program as text: the mathematics that ``print(program)`` shows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import singledispatch
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairopt.instance import FloatArray, IntArray, shared
from fairopt.instance.rules import Sense
from fairopt.program.goals import AlphaFair, Disjunctive, Equalize, Equilibrium, FinishTimes, Leximin, Separate, Total, Tradeoff
from fairopt.program.limits import LimitKind
from fairopt.program.nested import Nested
from fairopt.program.rule_limits import rule_of
from fairopt.program.tree_filling import TreeFilling
from fairopt.wording import plural

if TYPE_CHECKING:
    from fairopt.program import Program

__all__ = ["StatedLimit", "goal_lines", "kept_sentences", "limit_name", "lines_of", "stated_limits", "tree_rows"]


def limit_name(program: Program, row: int) -> str:
    """Name a limit: ``cpu @ server-3``, ``licences of the cluster``, ``tasks of alice``, ``time of channel-2``, ``servers of alice`` ..."""
    kind = LimitKind(program.limits.kinds[row])
    first, second = program.limits.keys[row]
    if kind is LimitKind.CAPACITY:
        return f"{program.resources[second]} @ {program.servers[first]}"
    if kind is LimitKind.TIME:
        return f"time of {program.servers[first]}"
    if kind is LimitKind.TASKS:
        return f"tasks of {program.users[first]}"
    if kind is LimitKind.PARALLELISM:
        return f"servers of {program.users[first]}"
    if kind in (LimitKind.RULE, LimitKind.QUEUE, LimitKind.LIMIT, LimitKind.NAMED):
        return str(program.queue_limits[first])
    if kind is LimitKind.SHARED:
        return shared.limit_name(program.resources[first])
    if kind is LimitKind.PAST:
        return f"past of {program.users[first]}"
    if kind is LimitKind.WITH_PAST:
        return f"tasks and past of {program.users[first]}"
    if second >= len(program.servers):
        return f"slice of {program.users[first]} of {program.resources[second - len(program.servers)]}"
    return f"slice of {program.users[first]} @ {program.servers[second]}"


class StatedLimit(NamedTuple):
    """A limit as it is read: a rule with its sense, the two rows of an equation as one."""

    name: str
    columns: IntArray
    coefficients: FloatArray
    sense: Sense
    bound: float


def stated_limits(program: Program) -> list[StatedLimit]:
    """Return the limits as they are read; the first coefficient of a rule is above 0."""
    limits, matrix, stated = program.limits, program.limits.matrix, list[StatedLimit]()
    for k in range(len(limits)):
        span = slice(matrix.indptr[k], matrix.indptr[k + 1])
        name, columns, values, bound = limit_name(program, k), matrix.indices[span].astype(np.int64), matrix.data[span], limits.bounds[k]
        sense: Sense = "<="
        if limits.kinds[k] == LimitKind.RULE:
            if name != rule_of(name) and stated[-1].name == rule_of(name):
                stated[-1] = stated[-1]._replace(sense="==")
                continue
            if values.size and values[0] < 0:
                values, bound, sense = -values, -bound + 0.0, ">="
        stated.append(StatedLimit(name, columns, values, sense, float(bound)))
    return stated


def lines_of(program: Program, lines: int | None, terms: int | None) -> Iterator[str]:
    """Yield the lines of the text, with at most ``lines`` lines in a block and ``terms`` terms in a sum (None: all)."""
    yield f"{program.name}: {program.title}"
    yield ""
    yield from goal_lines(program.goal, program, lines)
    yield "where"
    columns = np.split(np.arange(program.n_pairs), np.flatnonzero(np.diff(program.pair_users)) + 1) if program.n_pairs else []
    rows = [(f"U[{program.users[n]}]", own) for n, own in zip(program.members, columns, strict=True)]
    width = max((len(name) for name, _ in rows), default=0)
    for name, own in rows[:lines]:
        if program.goal.is_equilibrium:  # the worth of a task differs between the servers that measure it
            total = _sum_text(program, np.ones(own.size), own, terms)
            seen = ", ".join(f"{program.utilities[p]:.6g} at {program.servers[program.pair_servers[p]]}" for p in own[:terms])
            yield f"  {name:<{width}} = u ({total}), u = {seen}"
        else:
            yield f"  {name:<{width}} = {_sum_text(program, program.utilities[own], own, terms)}"
    yield from _more(len(rows), lines, "utility", "utilities")
    yield "subject to"
    limits = stated_limits(program)
    width = max((len(limit.name) for limit in limits[:lines]), default=0)
    for limit in limits[:lines]:
        left = _sum_text(program, limit.coefficients, limit.columns, terms)
        yield f"  {limit.name:<{width}} : {left} {limit.sense} {limit.bound:.6g}"
    yield from _more(len(limits), lines, "limit", "limits")
    yield from (f"  {sentence}" for sentence in kept_sentences(program, lines))
    whole = ", whole numbers" if program.integral else ""
    pairs, users = plural(program.n_pairs, "eligible pair"), plural(program.members.size, "user")
    yield f"  x >= 0{whole} for {pairs} of {users} and {plural(len(program.servers), 'server')}"


def kept_sentences(program: Program, lines: int | None) -> Iterator[str]:
    """Yield what queues keep of each resource and group of servers: the family of rows, of which the limits hold those that are needed."""
    if program.kept is None:
        return
    tree = program.kept.tree
    for keeping in program.kept.keepings:
        each = [f"{tree.name(v)} {kept:.6g}" for v, kept in zip(keeping.nodes, keeping.kept, strict=True)]
        hidden = [f"{len(each) - lines} more"] if lines is not None and len(each) > lines else []
        where = f" on {keeping.group}" if keeping.group else ""
        yield (
            f"{program.resources[keeping.resource]}{where}, where a queue that uses less than it keeps counts with what it keeps, "
            f"<= {keeping.capacity:.6g}; kept: {', '.join([*each[:lines], *hidden])}"
        )


def tree_rows(program: Program, goal: TreeFilling | Nested, lines: int | None) -> Iterator[str]:
    """Yield a row for each queue and user, indented by its depth, with its weight; at most ``lines`` of them."""
    rows = [f"{'  ' * int(depth - 1)}{line}" for depth, line in _nodes(program, goal)]
    yield from rows[:lines]
    yield from (line.strip() for line in _more(len(rows), lines, "queue or user", "queues and users"))


def _tree_rows(program: Program, goal: TreeFilling | Nested, lines: int | None) -> Iterator[str]:
    for place, row in enumerate(tree_rows(program, goal, lines)):
        yield f"  {'tree' if place == 0 else '':<9} {row}"


def _nodes(program: Program, goal: TreeFilling | Nested) -> Iterator[tuple[int, str]]:
    """Yield the depth and the text of every queue and user, depth first."""
    tree = goal.tree

    def below(node: int) -> Iterator[tuple[int, str]]:
        for child in tree.children(node):
            order = ", one after the other" if tree.listed[child] else ""
            yield int(tree.depth[child]), f"{tree.name(int(child))}, w = {tree.weights[child]:.6g}{order}"
            yield from below(int(child))
        for n in tree.users_of(node):
            yield int(tree.depth[node]) + 1, f"U[{program.users[n]}], w = {goal.weights[n]:.6g}"

    return below(0)


@singledispatch
def goal_text(goal: Any, weighted: bool) -> str:
    """Return a goal as text, without the values of its weights phi."""
    raise TypeError(f"there is no text for the goal {type(goal).__name__}")


def _level(weighted: bool) -> str:
    return "U[n] / phi[n]" if weighted else "U[n]"


def _summand(each: str, weighted: bool) -> str:
    return f"phi[n] {each}" if weighted else each


@goal_text.register
def _(goal: Leximin, weighted: bool) -> str:
    return f"leximin of {_level(weighted)}"


@goal_text.register
def _(goal: FinishTimes, weighted: bool) -> str:
    return f"leximin of z[n] / (1 + delay[n] z[n]), z[n] = {_level(weighted)}"


@goal_text.register
def _(goal: Equalize, weighted: bool) -> str:
    return f"the common value of {_level(weighted)}"


@goal_text.register
def _(goal: Separate, weighted: bool) -> str:
    return f"on each server by itself, {goal_text(goal.goal, weighted)}"


@goal_text.register
def _(goal: Equilibrium, weighted: bool) -> str:
    return f"at each server i, given the others: leximin of {_level(weighted)}"


@goal_text.register
def _(goal: Total, weighted: bool) -> str:
    return f"sum of {_summand('U[n]', weighted)}"


@goal_text.register
def _(goal: AlphaFair, weighted: bool) -> str:
    rest = 1 - goal.alpha
    return f"sum of {_summand('log U[n]' if rest == 0 else f'U[n]^{rest:g} / {rest:g}', weighted)}"


@goal_text.register
def _(goal: Tradeoff, weighted: bool) -> str:
    e, rest = goal.efficiency, 1 - goal.beta
    mean = f"log (sum of {_summand(f'U[n]^{rest:g}', weighted)})^{1 / rest:.6g}"
    return f"{1 - e:.6g} {mean} + {e:.6g} log sum of U[n]" if e else mean


@singledispatch
def goal_lines(goal: Any, program: Program, lines: int | None) -> Iterator[str]:
    """Yield the lines of a goal; of most goals one."""
    weights = goal.inner.weights[program.members]
    weighted = bool((weights != 1).any())
    listed = {"phi": weights} if weighted else {}
    if isinstance(goal.inner, FinishTimes):
        listed["delay"] = goal.inner.delay[program.members]
    yield f"maximise    {goal_text(goal, weighted)}{''.join(f', {name} = ({_some(values)})' for name, values in listed.items())}"


def _some(values: FloatArray, most: int = 8) -> str:
    return ", ".join(f"{value:.6g}" for value in values[:most]) + (", ..." if values.size > most else "")


@goal_lines.register(Disjunctive)
def _(goal: Disjunctive, program: Program, lines: int | None) -> Iterator[str]:
    choices = max((len(clause) for clause in goal.clauses), default=0)
    yield f"maximise    preference x, where of each of {len(goal.clauses)} clauses one of up to {choices} alternatives holds"


@goal_lines.register(Nested)
def _(goal: Nested, program: Program, lines: int | None) -> Iterator[str]:
    yield "maximise    depth by depth, with all sums kept: leximin of S[c] / w[c] over the children of the root,"
    yield "            then of S[c] / (w[c] S[parent]) over the queues and users of the next depth; S[v] = sum of U[n] below v"
    yield from _tree_rows(program, goal, lines)


@goal_lines.register(TreeFilling)
def _(goal: TreeFilling, program: Program, lines: int | None) -> Iterator[str]:
    yield "fill        the tree of queues, level by level: maximise t, U[n] >= S[n] + rate[n] t for all who rise, U >= S for the others"
    same = "the sum of w[c]" if goal.takes is None else "max_r of the sum of w[c] e[c,r]"
    yield f"  rate      w[c] of a child c of the root, R w[c] / m of a child c of a node of rate R, m = {same} over its rising children"
    if goal.takes is not None:
        yield "            e[n,r] = the part of resource r that a unit of U[n] takes; of a node the sum of w[c] e[c,r] / m"
    if goal.clamp:
        yield "            of the children of a node only those with the smallest share / w rise (clamp)"
    if goal.tree.listed.any():
        yield "            of the children of a queue that serves one after the other only the first that is not stopped rises"
    yield f"  parts     {'; '.join(part.title for part in goal.parts)}"
    yield from _tree_rows(program, goal, lines)
    for part in goal.parts:
        if part.extra is not None and len(part.extra):
            bounds = ", ".join(f"{name} {bound:.6g}" for name, bound in zip(part.names[:lines], part.extra.bounds[:lines], strict=False))
            yield f"  {part.title}: {bounds}"


def _sum_text(program: Program, coefficients: FloatArray, columns: IntArray, terms: int | None) -> str:
    shown = list(zip(coefficients[:terms].tolist(), columns[:terms].tolist(), strict=True))
    parts = [
        f"{'-' if value < 0 else '+'} {'' if abs(value) == 1 else f'{abs(value):.6g} '}"
        f"x[{program.users[program.pair_users[p]]}, {program.servers[program.pair_servers[p]]}]"
        for value, p in shown
    ]
    if hidden := len(columns) - len(parts):
        parts.append(f"+ ... ({plural(hidden, 'more term')})")
    text = " ".join(parts)
    return f"-{text[2:]}" if text.startswith("- ") else text.removeprefix("+ ") or "0"


def _more(total: int, shown: int | None, one: str, many: str) -> Iterator[str]:
    if shown is not None and total > shown:
        yield f"  ... and {plural(total - shown, f'more {one}', f'more {many}')}"
