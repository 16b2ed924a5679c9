"""The notion that was asked for, checked against the instance, and its program."""

from __future__ import annotations

import dataclasses
import inspect
import logging
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairopt.errors import Unsupported
from fairopt.instance import Instance, IntArray, require_instance
from fairopt.instance.rule_rows import refuse_rules
from fairopt.models import NOTIONS, Notion, ShareNotion, Sharing, Stated, default_sharing
from fairopt.program import Feature, LimitKind, Limits, Program
from fairopt.program.rule_limits import obeying
from fairopt.registry import options_in, words
from fairopt.solvers.backend import Deadline
from fairopt.solving.kept_guarantees import refuse_whole, with_guarantees
from fairopt.solving.merged_notion import with_utility
from fairopt.solving.single_servers import columns, expanded
from fairopt.wording import did_you_mean, joined, named

__all__ = [
    "Source",
    "checked",
    "formulate",
    "notion_of",
    "question_of",
    "to_cvxpy",
    "to_pyomo",
    "with_rules",
]

log = logging.getLogger(__name__)

_OBEYING = 'a notion that does, such as "drfh", "max-min", "proportional" or "efficiency"'
_RULED = (Feature.LEXIMIN, Feature.TOTAL, Feature.TREE, Feature.NESTED, Feature.ALPHA_FAIR, Feature.TRADEOFF)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Source:
    """What a program was formulated from, and the program as it was then."""

    notion: Notion
    instance: Instance
    sharing: Sharing
    program: Program

    def asked_by(self, program: Program) -> Notion:
        """Return the notion whose program this is, formulated here and changed since."""
        if program is self.program:
            return self.notion
        return Stated(self.notion, program.stated, self.instance, None if self._only_grew(program) else program)

    def _only_grew(self, program: Program) -> bool:
        """Is the program the one that was formulated here, with its stated rows behind the others?"""
        before, after = self.program, program
        kept = ("goal", "utilities", "pair_users", "pair_servers", "kept", "users", "servers", "integral")
        if any(getattr(before, name) is not getattr(after, name) for name in kept):
            return False
        rows, entries = len(before.limits), before.limits.matrix.nnz
        more = sum(len(row.sides) for row in program.stated if row.sense is not None or row.over(program)[0].size)
        arrays = (
            (limits.bounds[:rows], limits.matrix.data[:entries], limits.matrix.indices[:entries])
            for limits in (before.limits, after.limits)
        )
        return len(after.limits) == rows + more and all(map(np.array_equal, *arrays))


def question_of(program: Program) -> tuple[Instance, Notion, Sharing]:
    """Return the instance, the notion and the sharing that a program stands for.

    Raises
    ------
    Unsupported
        `formulate` did not make it.
    """
    source = program.source
    if not isinstance(source, Source):
        raise Unsupported(
            f'the program "{program.name}" does not say which instance it is of; take it from fairopt.formulate(instance, notion), where '
            "notion may be a class of your own whose formulate returns this program"
        )
    return source.instance, source.asked_by(program), source.sharing


def notion_of(notion: str | Notion | type[Notion], **options: Any) -> Notion:
    """Return a notion by its identifier or class with its options, or the notion itself. Options may stand in the identifier.

    >>> notion_of("drfh", formulation="equalize")
    DRFH(formulation='equalize')
    >>> notion_of("drfh:guarantees=clamp:only=gpu")
    DRFH(formulation='leximin', guarantees='clamp', only='gpu')
    """
    if isinstance(notion, Notion):
        if options:
            raise Unsupported(f"options {', '.join(options)} cannot be added to a notion that is already made; pass them to its class")
        return notion
    if isinstance(notion, type) and issubclass(notion, Notion):
        return _made(notion, options)
    if isinstance(notion, str) and len(words(notion)) > 1 and notion not in NOTIONS:
        spec = notion
        notion, *rest = words(spec)
        written = options_in(rest, spec)
        if twice := next((word for word in written if word in options), None):
            raise Unsupported(f'"{spec}" has {twice} already; give it once')
        options = written | options
    if not isinstance(notion, str) or notion not in NOTIONS:
        if isinstance(notion, str) and notion.endswith(".py"):
            raise Unsupported(f'"{notion}" names no notion; add its class, as in {notion}:PowerShare')
        hint = did_you_mean(notion, NOTIONS) if isinstance(notion, str) else ""
        raise Unsupported(f'there is no notion "{notion}"{hint}; there are {", ".join(NOTIONS)}')
    return _made(NOTIONS[notion], options)


def _made(kind: type[Notion], options: dict[str, Any]) -> Notion:
    if not options:
        return kind()
    known = [*_options(kind, shared=False), *_options(kind, shared=True)]
    for word in options:
        if word not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes no options"
            others = [name for name, other in NOTIONS.items() if word in _options(other, shared=False)]
            instead = f"; leave {word} out, or choose a notion that takes it: {', '.join(others)}" if others else ""
            raise Unsupported(f'the notion "{kind.name}" takes no option "{word}"{did_you_mean(word, known)}; {takes}{instead}')
    taken = inspect.signature(kind).parameters  # a class with an __init__ of its own need not take the options of trees
    notion = kind(**{word: value for word, value in options.items() if word in taken})
    return notion.changed(**{word: value for word, value in options.items() if word not in taken})


def _options(kind: type[Notion], *, shared: bool) -> list[str]:
    """Return the options that a notion declares for itself, or those that it shares with all notions of its class."""
    return [field.name for field in dataclasses.fields(kind) if bool(field.kw_only) is shared] if dataclasses.is_dataclass(kind) else []


def formulate(
    instance: Instance, notion: str | Notion | type[Notion], *, sharing: Sharing | None = None, integral: bool = False, **options: Any
) -> Program:
    """Return the program of a notion on an instance, row for row; ``print`` it to read the mathematics.

    Parameters
    ----------
    sharing : {"rdm", "tdm"}, optional
        Whether users divide the resources of a server or its time. The default is "rdm", and "tdm" for instances with rates.
    integral : bool
        Whole tasks, on single servers: rows that stand for several servers are expanded.
    **options
        Of the notion: ``formulation`` (drfh, psdsf), ``utility`` (max-min, proportional), ``alpha`` (proportional), ``beta`` and
        ``lam`` (fds, gfj), ``prefer`` (bbf, psdsf), ``order``, ``seed`` and ``delay`` (psdsf).

    >>> print(formulate(Instance([[9, 18]], [[1, 4], [3, 1]], resources=["cpu", "memory"], users=["A", "B"], servers=["pool"]), "drf"))
    drf: Dominant resource fairness
    <BLANKLINE>
    maximise    leximin of U[n]
    where
      U[A] = 0.222222 x[A, pool]
      U[B] = 0.333333 x[B, pool]
    subject to
      cpu @ pool    : x[A, pool] + 3 x[B, pool] <= 9
      memory @ pool : 4 x[A, pool] + x[B, pool] <= 18
      x >= 0 for 2 eligible pairs of 2 users and 1 server
    <BLANKLINE>
    """
    chosen, how = checked(instance, notion, sharing, options)
    if integral:
        if (instance.counts != 1).any():
            refuse_rules(instance, "the program of whole tasks names single servers", "give each server a row, or use fairopt.solve")
        refuse_whole(instance, chosen)
        instance, row = expanded(instance)
        chosen = with_utility(chosen, None if chosen.utility is None else columns(chosen.utility, row))
    ruled, _ = with_guarantees(instance, chosen, how, integral=integral)
    program = with_rules(chosen.formulate(instance, sharing=how, integral=integral), chosen, ruled)
    object.__setattr__(program, "source", Source(chosen, instance, how, program))  # not a copy, which would have tables written out
    return program


def to_pyomo(
    instance: Instance | Program,
    notion: str | Notion | type[Notion] | None = None,
    *,
    sharing: Sharing | None = None,
    integral: bool = False,
    transformation: str | None = "bigm",
    **options: Any,
) -> Any:
    """Return the program of a notion as a Pyomo ConcreteModel, to extend, to solve and to write.

    Its variables are ``x[user,server]``, its limits ``capacity[resource @ server]``, ``time[server]`` and ``tasks[user]``. The goal of a
    leximin is its smallest level, with ``level`` and ``share[user]``: the first of the programs that find it.

    What ``model.write(path)`` can write is Pyomo's:

    * leximins, totals, and alternatives as a MILP: ``.lp``, ``.mps`` and ``.nl``;
    * alpha-fair goals (proportional with alpha > 0, bbf, psdsf as a market) and trade-offs (fds, gfj), which are not linear: ``.nl`` and
      what else may hold nonlinear terms. ``.lp`` and ``.mps`` cannot, and Pyomo says so in an error of its own;
    * disjunctions (``transformation=None``): nothing, until they are transformed. **Beware of** ``.mps``, which Pyomo writes *without*
      them and without a word: another, larger set of allocations. ``.lp`` and ``.nl`` are errors.

    Parameters
    ----------
    instance : Instance, or Program
        A program has its notion, its sharing and its options already.
    transformation : {"bigm", "hull", None}
        What turns the alternatives of a union of polytopes (bbf and psdsf with ``prefer``) into a MILP. None leaves them as disjunctions,
        for ``pyomo.environ.TransformationFactory("gdp.bigm").apply_to(model)`` or another of pyomo.gdp.

    Raises
    ------
    SolverUnavailable
        Without Pyomo.
    Unsupported
        For notions that are no single optimisation model.

    >>> model = to_pyomo(Instance([[9, 18]], [[1, 4], [3, 1]], resources=["cpu", "memory"], users=["A", "B"], servers=["pool"]), "drf")
    >>> print(model.capacity["cpu @ pool"].expr)
    x[A,pool] + 3.0*x[B,pool]  <=  9.0
    """
    from fairopt.solvers import to_model

    return to_model(_program_of(instance, notion, sharing, integral, options), transformation)


def to_cvxpy(
    instance: Instance | Program,
    notion: str | Notion | type[Notion] | None = None,
    *,
    sharing: Sharing | None = None,
    integral: bool = False,
    **options: Any,
) -> Any:
    """Return the program of a notion as a CVXPY problem with names, to extend, to change and to solve.

    ``model.problem`` is the `cvxpy.Problem`. Its parts are ``model.x[user, server]`` (all of them: ``model.x.vector``),
    ``model.utility[user]``, and ``model.limits``, one constraint of all limits, named by ``model.names``; after a solve, ``model.prices``
    has their multipliers by name.

    The goal of a leximin is its smallest level, with ``model.level``, and ``model.share``, the rows U[n] / phi[n] >= floor[n] + rises[n]
    level: the first of the programs that find it. The parameters ``model.floor`` and ``model.rises`` make the others, in a loop:

    >>> import numpy as np
    >>> pool = Instance([[8], [6]], [[1], [1], [1]], users=["a", "b", "c"], eligibility=[[1, 0], [1, 0], [0, 1]])
    >>> model = to_cvxpy(pool, "max-min")
    >>> while model.rises.value.any():
    ...     value = model.problem.solve(solver="HIGHS")
    ...     stop = (model.rises.value > 0) & (model.share.dual_value > 1e-9)  # a user whose row has a price cannot rise
    ...     model.floor.value = np.where(stop, model.level.value, model.floor.value)
    ...     model.rises.value = np.where(stop, 0.0, model.rises.value)
    >>> {user: round(float(each.value), 6) for user, each in model.utility.items()}
    {'a': 4.0, 'b': 4.0, 'c': 6.0}

    What the problem gives is not certified.

    Parameters
    ----------
    instance : Instance, or Program
        A program has its notion, its sharing and its options already.

    Raises
    ------
    SolverUnavailable
        Without CVXPY.
    Unsupported
        For notions that are no single convex program.
    """
    from fairopt.solvers import to_problem

    return to_problem(_program_of(instance, notion, sharing, integral, options))


def _program_of(
    instance: Instance | Program,
    notion: str | Notion | type[Notion] | None,
    sharing: Sharing | None,
    integral: bool,
    options: dict[str, Any],
) -> Program:
    """Return a program as it is, or that of an instance and a notion."""
    if not isinstance(instance, Program):
        if notion is None:
            raise Unsupported("give a notion with an instance, or a program alone")
        return formulate(instance, notion, sharing=sharing, integral=integral, **options)
    if notion is not None or sharing is not None or integral or options:
        raise Unsupported("a program has its notion, its sharing and its options; leave them out, or give them to fairopt.formulate")
    return instance


def checked(
    instance: Instance, notion: str | Notion | type[Notion], sharing: Sharing | None, options: dict[str, Any]
) -> tuple[Notion, Sharing]:
    """Return the notion and the sharing, after all that can be said without solving."""
    require_instance(instance)
    chosen = notion_of(notion, **options)
    how = _sharing(instance, sharing)
    chosen.check(instance, how)
    _check_rules(chosen, instance)
    return chosen, how


def with_rules(
    program: Program, notion: Notion, instance: Instance, row: IntArray | None = None, deadline: Deadline | None = None
) -> Program:
    """Return the program of a notion with the rules of the instance, after what is refused of rules of any source.

    ``row`` has the row of the instance for each server of the program, where these are expanded.

    Raises
    ------
    Unsupported
        The goal of a program with rules is none that obeys them, or its tasks are whole.
    NoSolution
        At the deadline, before it is known which users can have something under rules.
    """
    whole = isinstance(notion, Stated) and notion.program is not None  # it has them already
    program = program if whole else obeying(program, instance, row)
    if program.down_closed:
        return program
    own = notion.notion if isinstance(notion, Stated) else notion
    by_worth = program.goal.feature in (Feature.ALPHA_FAIR, Feature.TRADEOFF)
    name = program.limit_name(int(np.flatnonzero(program.limits.kinds == LimitKind.RULE)[0]))
    if program.goal.feature not in _RULED or (by_worth and not isinstance(own, ShareNotion)):
        raise Unsupported(f'the program has the rule "{name}", and "{program.name}" obeys none; use {_OBEYING}')
    if program.integral and whole:
        raise Unsupported(
            f'the program has the rule "{name}", and no engine finds whole tasks of a program of yours that obey it; leave integral out'
        )
    if program.integral and program.goal.feature is Feature.ALPHA_FAIR:  # who can have something is part of the search
        return program
    if program.integral and by_worth:
        raise Unsupported(
            f'no engine finds whole tasks of "{program.name}", whose goal is not linear; leave integral out, or use "drfh", "max-min", '
            '"proportional" or "efficiency", of which whole tasks are found, with rules, too'
        )
    return _of_able_users(program, deadline) if by_worth else program


def _of_able_users(program: Program, deadline: Deadline | None) -> Program:
    """Return the program without users who can have nothing under its rules, whose worth in the goal would be minus infinity."""
    from fairopt.solvers import able_users

    able = able_users(program, deadline)
    left_out = [name for name, there in zip(program.users, able | ~program.can_run, strict=True) if not there]
    if not left_out:
        return program
    log.warning(
        "the rules leave nothing to %s; users who can have nothing are left out of the goal", joined([named(name) for name in left_out], 5)
    )
    kept = able[program.pair_users]
    limits = program.limits
    return dataclasses.replace(
        program,
        pair_users=program.pair_users[kept],
        pair_servers=program.pair_servers[kept],
        utilities=program.utilities[kept],
        limits=Limits(sp.csr_array(limits.matrix[:, kept]), limits.bounds, limits.kinds, limits.keys),
    )


def _check_rules(notion: Notion, instance: Instance) -> None:
    """Refuse rules that a notion does not obey: its goal is no leximin of users and no sum.

    Raises
    ------
    Unsupported
    """
    if not instance.rules:
        return
    notion = notion.notion if isinstance(notion, Stated) else notion
    obeys = isinstance(notion, ShareNotion) and notion.goal(np.ones(instance.n_users)).feature in _RULED
    if not obeys:
        refuse_rules(instance, f'"{notion.name}" obeys none', f"use {_OBEYING}")


def _sharing(instance: Instance, sharing: Sharing | None) -> Sharing:
    if sharing is None:
        return default_sharing(instance)
    if sharing not in ("rdm", "tdm"):
        raise Unsupported(f'there is no sharing "{sharing}"; use "rdm" (resources are divided) or "tdm" (time is)')
    return sharing
