"""Which properties an allocation has; if one fails, by how many tasks, with a witness.

Each module of `fairopt.analysis.properties` defines one property and its violation. Every violation is in tasks, and has a witness that can
be checked by hand. Where a verdict rests on a *search* (for a lie that pays), the verdict says so.

>>> import fairopt as fo
>>> instance = fo.Instance(
...     [[9, 12, 100], [12, 12, 0]], [[1, 2, 10], [1, 2, 1], [1, 2, 0]], weights=[1, 1, 2],
...     users=["a", "b", "c"], resources=["cpu", "memory", "bandwidth"])
>>> verdict = audit(fo.solve(instance, "tsf"), ["bottleneck-fairness"])["bottleneck-fairness"]
>>> verdict.holds, round(verdict.violation, 6)
(False, 1.0)
>>> print(verdict.witness.text)
"a" has a use of memory by weight of 4 and can have 6: 3 tasks instead of 2; those who lose are "c" 8 to 6.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from fairopt.allocation import Allocation
from fairopt.allocation.records import question_of
from fairopt.analysis.measures import Violation
from fairopt.analysis.properties import (
    BY_WEIGHTS_ALONE,
    CHECKS,
    OF_EQUAL_TASKS,
    OF_FLAT_LISTS,
    OF_SERVERS_ALONE,
    OF_TREES,
    OF_WHOLE_TASKS,
    OF_WHOLE_TASKS_ALONE,
    Case,
    Verdict,
)
from fairopt.analysis.properties.case import quietly
from fairopt.analysis.properties.stated_rules import with_rules_of_program
from fairopt.analysis.properties.verdict import does_not_apply
from fairopt.errors import InvalidInstance, Unsupported
from fairopt.instance.by_server import differences
from fairopt.models import Property
from fairopt.processes.crew import Crew
from fairopt.results import plain, result
from fairopt.show.drawing import ShowsItself
from fairopt.show.equality import ComparesItself
from fairopt.specs import asked
from fairopt.validation import check_time_limit, check_whole_number
from fairopt.wording import brief, did_you_mean, joined, plural

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Audit", "audit"]

_ABOUT_FLAT_LISTS = (
    "Does not apply: it compares every user with every other by weight alone, and here users are in queues, or have guarantees."
)


@dataclass(frozen=True, eq=False, repr=False)
class Audit(ComparesItself, ShowsItself, Mapping[str, Verdict]):
    """The verdicts on one allocation, by property.

    Attributes
    ----------
    allocation : Allocation
    verdicts : dict
    violations : tuple of Violation
        Limits that the allocation exceeds.
    """

    allocation: Allocation
    verdicts: dict[str, Verdict]
    violations: tuple[Violation, ...]
    question: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __getitem__(self, name: str) -> Verdict:
        key = name.value if isinstance(name, Property) else name
        if key not in self.verdicts:
            raise KeyError(f'there is no property "{key}"{did_you_mean(str(key), self.verdicts)}; there are {", ".join(self.verdicts)}')
        return self.verdicts[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.verdicts)

    def __len__(self) -> int:
        return len(self.verdicts)

    @property
    def violated(self) -> list[str]:
        """The properties that are violated."""
        return [name for name, verdict in self.verdicts.items() if verdict.holds is False]

    def grouped(self) -> list[tuple[tuple[str, ...], Verdict]]:
        """Return the verdicts for a reader: properties that do not apply for the same reason together, in the place of the first.

        >>> import fairopt as fo
        >>> tree = fo.Instance([[8], [8]], [[1]], queues=[fo.Queue("q")], queue_of=["q"])
        >>> found = audit(fo.solve(tree, "drfh"), ["pareto", "psdsf", "max-min"])
        >>> [(names, verdict.outcome) for names, verdict in found.grouped()]
        [(('pareto',), 'holds'), (('psdsf', 'max-min'), '-')]
        """
        together: dict[str, list[str]] = {}
        for name, verdict in self.verdicts.items():
            together.setdefault(verdict.statement if verdict.holds is None else name, []).append(name)
        return [(tuple(names), self.verdicts[names[0]]) for names in together.values()]

    def to_frame(self) -> pd.DataFrame:
        """Return one row per property: holds, violation (tasks), promised, searched, statement, witness (its sentences)."""
        import pandas as pd

        rows = [
            {
                "holds": verdict.holds,
                "violation": verdict.violation,
                "promised": verdict.promised,
                "searched": verdict.searched,
                "statement": verdict.statement,
                "witness": "" if verdict.witness is None else verdict.witness.text,
            }
            for verdict in self.verdicts.values()
        ]
        index = pd.Index(list(self.verdicts), name="property")
        return pd.DataFrame(rows, index=index, columns=["holds", "violation", "promised", "searched", "statement", "witness"])

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON; None stands for a missing number."""
        found = {
            "notion": self.allocation.notion,
            "solver": self.allocation.solver,
            "sharing": self.allocation.sharing,
            "violated": self.violated,
            "violations": [violation.to_dict() for violation in self.violations],
            "properties": [verdict.to_dict() for verdict in self.verdicts.values()],
        }
        return result("audit", self.question, self.allocation.instance.units, found)

    def __repr__(self) -> str:
        instance = self.allocation.instance
        width = max(map(len, self.verdicts), default=0)
        wide = max((len(verdict.outcome) for verdict in self.verdicts.values()), default=0)
        lines = [
            f"Audit of {asked(self.allocation)} by {self.allocation.solver}: {plural(instance.n_users, 'user')}, "
            f"{plural(instance.counts.sum(), 'server')}, sharing {self.allocation.sharing}"
        ]
        for name, verdict in self.verdicts.items():
            size = plural(verdict.amount, "task", digits=4) if verdict.holds is False else ""
            lines.append(f"{name:<{width}}  {verdict.outcome:<{max(wide, 8)}}  {size:<14}  {verdict.statement}".rstrip())
            if verdict.witness is not None:
                lines.append(f"{'':<{width}}  {verdict.witness.text}")
        if self.violations:
            lines.append(f"The allocation exceeds {joined([str(violation) for violation in self.violations], 3)}.")
        return "\n".join(lines)


def audit(
    allocation: Allocation,
    properties: str | Property | Sequence[str | Property] | None = None,
    *,
    effort: int = 200,
    seed: int = 0,
    workers: int = 1,
    backend: str = "loky",
    address: str | None = None,
    jobs: int | None = None,
    time_limit: float | None = None,
    done: Callable[[str], object] | None = None,
) -> Audit:
    """Test which properties an allocation has, and by how many tasks the others fail.

    In a tree of queues, sharing incentive and envy are asked among the children of each queue, which are users and queues; queues lie
    as well as users; and Pareto optimality is asked within the limits of queues. With named limits or rules, properties that compare
    users by weights alone do not apply; the others are asked within the limits and the rules. A rule does not apply where somebody whom it
    names is left out.

    Where demands or speeds differ by server, users compare work, and violations are in work: that of one task where the speed is 1.

    Parameters
    ----------
    allocation : Allocation
        The result of `solve` or `schedule`, or your own tasks (``fairopt.analysis.rerun.given``). An allocation that exceeds a limit is
        audited too, and the audit names the limit.
    properties : sequence of str or Property, optional
        Keys of ``fairopt.analysis.properties.CHECKS``; the default is all of them, "guarantees" only where there is a tree of
        queues or a guarantee, and "ef1", "efx" and "maximin-share" only of whole tasks.
    effort : int
        The largest number of lies to try, and of users to remove. Each of them is one solve.
    seed : int
        Seed of the lies. The same seed gives the same verdict with any number of workers, unless a search reaches ``time_limit``.
    workers, backend, address
        Workers of both searches, as `fairopt.study` takes them; the default is this process alone.
    jobs : int, optional
        The former name of ``workers``.
    time_limit : float, optional
        Seconds for each property. By default, each search (lies, users who leave, whole tasks) ends after a fixed number of steps, about a
        minute, so that its verdict is the same on every machine; the rest has no limit. A search that asks a solver other than "highs" for
        whole tasks ends after a minute, because that solver counts no steps.
    done : function, optional
        Called with the name of each property once its verdict is known.

    Raises
    ------
    InvalidInstance, Unsupported
        If ``allocation`` is no Allocation, a property is unknown, or an option is out of range.

    Examples
    --------
    >>> import fairopt as fo
    >>> pool = fo.Instance([[9, 18]], [[1, 4], [3, 1]], users=["A", "B"])
    >>> audit(fo.solve(pool, "efficiency"), ["pareto", "strategy-proofness"]).violated
    ['strategy-proofness']
    """
    if not isinstance(allocation, Allocation):
        raise InvalidInstance(
            f"allocation is {type(allocation).__name__}; give an Allocation, as fairopt.solve and fairopt.schedule return it "
            "(fairopt.analysis.rerun.given makes one of an array of tasks)"
        )
    asked = question_of(allocation)
    allocation = with_rules_of_program(allocation, "no property of an audit knows it")
    check_whole_number("effort", effort, 1)
    check_whole_number("seed", seed, 0)
    workers = workers if jobs is None else jobs
    check_time_limit(time_limit)
    crew = Crew(workers, backend, address)
    case = Case.of(allocation, int(effort), int(seed), crew, time_limit)
    verdicts = {}
    tree = allocation.instance.is_tree
    for name in _names(properties, tree=tree, whole=allocation.certificate.whole_tasks):
        if tree and name in OF_FLAT_LISTS:
            verdicts[name] = does_not_apply(name, _ABOUT_FLAT_LISTS)
        elif name in BY_WEIGHTS_ALONE and (limits := allocation.instance.limits):
            named_here = joined([f'"{limit.name}"' for limit in limits], 3)
            verdicts[name] = does_not_apply(
                name, f"Does not apply: it compares users by weights alone, and there are limits: {named_here}."
            )
        elif name in BY_WEIGHTS_ALONE and (rules := allocation.instance.rules):
            named_here = joined([f'"{brief(rule.text)}"' for rule in rules], 3)
            verdicts[name] = does_not_apply(name, f"Does not apply: it compares users by weights alone, and there are rules: {named_here}.")
        elif name in OF_EQUAL_TASKS and allocation.instance.differs_by_server:
            verdicts[name] = does_not_apply(
                name, f"Does not apply: it is about tasks that are the same everywhere, and {differences(allocation.instance)}."
            )
        elif name in OF_SERVERS_ALONE and case.own_rows:
            verdicts[name] = does_not_apply(name, f"Does not apply: it knows of no limit but those of servers, and there is {_rows(case)}.")
        else:
            with quietly(), crew:
                verdicts[name] = dataclasses.replace(_judged(case, name), promised=_promise(case, name))
        if done is not None:
            done(name)
    question = {
        "allocation": asked, "properties": list(verdicts), "effort": effort, "seed": seed, "time_limit_s": time_limit
    }  # fmt: skip
    return Audit(allocation, verdicts, tuple(case.limits_exceeded), plain(question))


def _rows(case: Case) -> str:
    return f'"{case.own_rows[0].name}"' + (f" and {len(case.own_rows) - 1} more" if len(case.own_rows) > 1 else "")


def _judged(case: Case, name: str) -> Verdict:
    """Return the verdict on a property; the violation is a Fraction where the case is in fractions and all of the check is."""
    if case.radius is None:
        return CHECKS[name](case)
    found = CHECKS[name](case)
    if case.whole and name in OF_WHOLE_TASKS and case.members.size:
        return found  # its statement says if it rests on floats
    return dataclasses.replace(found, exact=Fraction(0)) if found.holds and not case.radius else found


def _names(properties: str | Property | Sequence[str | Property] | None, *, tree: bool, whole: bool) -> list[str]:
    """Return the properties asked for, in the order of `CHECKS`; by default all that are about such instances."""
    if properties is None:
        silent = (*(() if tree else OF_TREES), *(() if whole else OF_WHOLE_TASKS_ALONE))
        return [name for name in CHECKS if name not in silent]
    wanted = [properties] if isinstance(properties, str | Property) else list(properties)
    names = [each.value if isinstance(each, Property) else each for each in wanted]
    for name in names:
        if name not in CHECKS:
            raise Unsupported(f'there is no property "{name}"{did_you_mean(str(name), CHECKS)}; there are {", ".join(CHECKS)}')
    if not names:
        raise Unsupported(f"there is nothing to audit; give one property at least, of {', '.join(CHECKS)}")
    return [name for name in CHECKS if name in names]


def _promise(case: Case, name: str) -> str | None:
    """Return the source that proves the property for this notion and instance; only for exact allocations of divisible tasks."""
    if case.notion is None or not case.exact or case.instance.is_tree or case.instance.rules:
        return None  # the theorems are about users with weights alone
    known = {prop.value: prop for prop in Property}
    return case.notion.promise(known[name], case.in_floats.instance, case.sharing) if name in known else None
