"""Read specifications of notions, schedules and generators: "proportional:alpha=2", "drfh:best-fit:metric=cosine", tuples and mappings."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fairopt.allocation import GIVEN, Allocation
from fairopt.errors import Unsupported
from fairopt.instance import Instance
from fairopt.models import Notion, weights_text
from fairopt.registry import is_reference, load_object, options_in, words
from fairopt.solving import notion_of

if TYPE_CHECKING:
    from fairopt.generators import Generator
    from fairopt.solvers import Chooser, Placement

__all__ = [
    "NotionSpec",
    "OwnScheduler",
    "ScheduleSpec",
    "asked",
    "divides_tasks",
    "kind_of",
    "options_of",
    "own_scheduler",
    "read_generator",
    "read_notion",
    "read_placement",
    "read_schedule",
    "written",
]

NotionSpec: TypeAlias = str | Notion | type[Notion] | tuple[str, Mapping[str, Any]]
ScheduleSpec: TypeAlias = str | tuple[str, str] | Mapping[str, Any] | Allocation | Callable[[Instance], Any]


@dataclass(frozen=True, slots=True)
class OwnScheduler:
    """A scheduler of one's own: a function of an Instance that returns an Allocation, or tasks (users, servers).

    Attributes
    ----------
    name : str
    function : function
    options : mapping
        Keyword arguments of the function.
    kind : str
        "own"; "approximate" of a baseline, which a simulation asks as it asks a function.
    """

    name: str
    function: Callable[..., Any]
    options: Mapping[str, Any]
    kind: str = "own"

    def __call__(self, instance: Instance) -> Any:
        """Return what the function does."""
        return self.function(instance, **self.options)

    def seeded(self, seed: int) -> OwnScheduler:
        """Return it with this seed, if the function takes one that is not chosen yet."""
        if "seed" in self.options or "seed" not in inspect.signature(self.function).parameters:
            return self
        return OwnScheduler(self.name, self.function, {**self.options, "seed": seed}, self.kind)


def own_scheduler(spec: Any) -> OwnScheduler | None:
    """Return the scheduler that a function is, or a name such as "mine.py:in_turn"; None for anything else.

    >>> def in_turn(instance): ...
    >>> own_scheduler(in_turn).name, own_scheduler("drfh:best-fit")
    ('in_turn', None)
    """
    if isinstance(spec, OwnScheduler):
        return spec
    if isinstance(spec, str) and is_reference(words(spec)[0]):
        name, *rest = words(spec)
        function = load_object(name)
        if not isinstance(function, type) and callable(function):
            return OwnScheduler(spec, function, options_in(rest, spec))
        return None
    if callable(spec) and not isinstance(spec, type | Notion):
        return OwnScheduler(getattr(spec, "__name__", type(spec).__name__), spec, {})
    return None


def read_notion(spec: NotionSpec) -> tuple[str, Notion]:
    """Return the name of a specification, for a row of a table, and its notion."""
    if isinstance(spec, str):
        return spec, notion_of(spec)
    if isinstance(spec, tuple):
        if len(spec) != 2 or not isinstance(spec[1], Mapping):
            raise Unsupported(f'a notion is {spec!r}; give "drfh", or with its options ("proportional", {{"alpha": 2}})')
        chosen = notion_of(spec[0], **spec[1])
        return _name([chosen.name], spec[1]), chosen
    chosen = notion_of(spec)
    return chosen.name, chosen


def options_of(spec: Any) -> tuple[str, str, dict[str, Any]]:
    """Return the name, the identifier and the options of "psdsf:period=1" or ("psdsf", {"period": 1}); all empty for anything else.

    >>> options_of("psdsf:period=1")
    ('psdsf:period=1', 'psdsf', {'period': 1})
    """
    if isinstance(spec, str):
        word, *rest = words(spec)
        return spec, word, options_in(rest, spec) if all("=" in part for part in rest) else {}
    if isinstance(spec, tuple) and len(spec) == 2 and isinstance(spec[0], str) and isinstance(spec[1], Mapping):
        return _name([spec[0]], spec[1]), spec[0], dict(spec[1])
    return "", "", {}


def read_schedule(spec: ScheduleSpec) -> tuple[str, Mapping[str, Any] | Allocation | OwnScheduler]:
    """Return the name of a specification, for a row of a table, and the arguments of `schedule`.

    For an allocation it is the allocation itself; for a function of an instance, `OwnScheduler`. Options may stand before or after the
    placement.

    >>> read_schedule("drfh:only=gpu:best-fit") == read_schedule("drfh:best-fit:only=gpu")
    True
    """
    from fairopt.scheduling import plan_of, planned

    if (own := own_scheduler(spec)) is not None:
        return own.name, own
    if isinstance(spec, Allocation):
        return f"{spec.notion}:{spec.solver.rpartition(':')[2]}", spec
    plan: dict[str, Any]
    if isinstance(spec, str):
        plan = {"criterion": spec}
    elif isinstance(spec, tuple) and len(spec) == 2:
        plan = {"criterion": spec[0], "placement": spec[1]}
    elif isinstance(spec, Mapping):
        plan = {"criterion": "drfh"} | dict(spec)
    else:
        raise Unsupported(f'a schedule is {spec!r}; give "drfh:best-fit", or a mapping of the arguments of fairopt.schedule')
    if isinstance(plan["criterion"], str):
        plan = plan | plan_of(plan["criterion"])
    if "sharing" in plan:
        raise Unsupported("sharing is the same for all rows; give it to compare, not to a schedule")
    planned(**plan)  # refuses misspelt options before anything is computed
    criterion, placement = plan["criterion"], plan.get("placement", "first-fit")
    names = [word if isinstance(word, str) else getattr(word, "name", getattr(word, "__name__", "own")) for word in (criterion, placement)]
    return _name(names, {key: value for key, value in plan.items() if key not in ("criterion", "placement")}), plan


def kind_of(plan: Mapping[str, Any] | Allocation | OwnScheduler) -> str:
    """Return the kind of a row of a table: "greedy", "approximate" of a baseline, "given" of a scheduler of one's own or an exact answer.

    >>> [kind_of(read_schedule(spec)[1]) for spec in ("drfh:best-fit", "drfh:pop")]
    ['greedy', 'approximate']
    """
    from fairopt.scheduling.baselines import baseline_of

    if isinstance(plan, Allocation):
        return plan.certificate.qualifier or GIVEN
    if isinstance(plan, OwnScheduler):
        return GIVEN
    return "greedy" if baseline_of(plan.get("placement"), {})[0] is None else "approximate"


def divides_tasks(plan: Mapping[str, Any]) -> bool:
    """Return whether these arguments of `schedule` are of a baseline that answers in fractions of tasks.

    >>> [divides_tasks(read_schedule(spec)[1]) for spec in ("drfh:pop", "drfh:pooled", "drfh:best-fit")]
    [True, False, False]
    """
    from fairopt.scheduling.baselines import baseline_of

    own = baseline_of(plan.get("placement"), {})[0]
    return own is not None and not own.whole and not plan.get("integral", False)


def read_placement(spec: str | Placement) -> tuple[str, Placement | Chooser]:
    """Return the name and the placement of a specification such as "best-fit:metric=l2".

    >>> read_placement("best-fit:metrik=l2")
    Traceback (most recent call last):
    fairopt.errors.Unsupported: "best-fit" takes no option "metrik"
    """
    from fairopt.scheduling import placement_of

    if not isinstance(spec, str):
        return spec.name, spec
    word, *rest = words(spec)
    placement, _, unknown = placement_of(word, options_in(rest, spec))
    if unknown:
        raise Unsupported(f'"{word}" takes no option "{min(unknown)}"')
    return spec, placement


def read_generator(spec: str) -> Generator:
    """Return the generator of a specification such as "google:users=50:servers=100"."""
    from fairopt.generators import generator

    word, *rest = spec.split(":")
    return generator(word, **options_in(rest, spec))


def written(notion: Notion) -> str:
    """Return a notion as a specification: its name, and the options that are not the default; rows of one's own have no part in it.

    >>> [written(read_notion(spec)[1]) for spec in ("drfh", "proportional:alpha=2.0", "tsf:guarantees=clamp")]
    ['drfh', 'proportional:alpha=2', 'tsf:guarantees=clamp']
    >>> written(notion_of("drfh", resource_weights={"gpu": 4, "cpu": 0}))
    'drfh:resource_weights=gpu=4+cpu=0'
    """
    notion = notion.without_rows
    fields: tuple[dataclasses.Field[Any], ...] = dataclasses.fields(notion) if dataclasses.is_dataclass(notion) else ()
    needed = {field.name: notion.options[field.name] for field in fields if field.default is dataclasses.MISSING and field.init}
    usual = type(notion)(**needed).options
    plain = {name for name, value in usual.items() if np.ndim(value) == np.ndim(notion.options[name]) == 0 and name not in needed}
    silent = {name for name in plain if usual[name] == notion.options[name]}
    given: dict[str, Any] = {name: value for name, value in notion.options.items() if name not in silent}
    return _name([notion.name], {word: int(it) if isinstance(it, float) and it.is_integer() else it for word, it in given.items()})


def asked(allocation: Allocation) -> str:
    """Return the notion of an allocation as a specification, with the options that are not the default; of others their name.

    >>> import fairopt as fo
    >>> lab = fo.Instance([[2, 2]], [[1, 1]], resources=["cpu", "gpu"])
    >>> asked(fo.solve(lab, "drfh:only=gpu")), asked(fo.schedule(lab, "drfh"))
    ('drfh:only=gpu', 'drfh')
    """
    notion = None if allocation.question is None else allocation.question.notion
    return written(notion) if isinstance(notion, Notion) and notion.name == allocation.notion else allocation.notion


def _name(names: Sequence[str], options: Mapping[str, Any]) -> str:
    written = [f"{key}={_text(value)}" if np.ndim(value) == 0 else key for key, value in options.items()]
    return ":".join([*names, *written])


def _text(value: Any) -> str:
    return weights_text(value) if isinstance(value, Mapping) else str(value)
