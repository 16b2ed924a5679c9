"""The arguments of a schedule: criterion, placement and their options, checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import Instance
from fairopt.instance.shared import needs_no_server
from fairopt.models import CRITERIA, NOTIONS, Notion
from fairopt.program.filling import Filling, Measure, Rule
from fairopt.registry import options_in, words
from fairopt.scheduling.baselines import BASELINES, Baseline, baseline_of
from fairopt.solvers import PLACEMENTS, Chooser, Placement
from fairopt.solving import notion_of
from fairopt.validation import check_whole_number, check_yes_or_no
from fairopt.wording import did_you_mean, joined, plural

__all__ = ["check_first_block", "check_placeable", "check_single_servers", "placement_of", "plan_of", "planned", "written_plan"]

_MOST_SERVERS = 20_000_000


def check_single_servers(instance: Instance) -> None:
    """Refuse instances with more servers than can be filled one by one."""
    if instance.counts.sum() > _MOST_SERVERS:
        raise Unsupported(
            f"the instance has {plural(instance.counts.sum(), 'server', digits=3)}, and a schedule fills at most {_MOST_SERVERS:,}, "
            "one by one; give a part of the cluster, or use solve, which merges rows"
        )


def check_placeable(instance: Instance, placement: Placement | Chooser) -> None:
    """Refuse rules that compare servers by a demand, where somebody demands nothing of servers.

    Raises
    ------
    Unsupported
    """
    nothing = np.flatnonzero(instance.servable & ~instance.zero_demand & needs_no_server(instance))
    if nothing.size and isinstance(placement, Placement) and Rule.SMALLEST_SHARE < placement.rule != Rule.FASTEST:
        raise Unsupported(
            f'user "{instance.users[nothing[0]]}" demands nothing of servers, so this placement has nothing to compare them by; '
            'use placement="first-fit"'
        )


def planned(
    criterion: str | Notion | type[Notion] = "drfh",
    *,
    placement: str | Placement | Chooser | Baseline = "first-fit",
    ties: str = "index",
    seed: int = 0,
    stop: str = "exhausted",
    record: bool = False,
    integral: bool = False,
    **options: Any,
) -> tuple[Placement | Chooser | Baseline, str, Notion]:
    """Return placement or baseline, its name, and the notion of the arguments of `schedule`, checked as far as is possible so far.

    >>> planned("drfh", placement="best-fit", metrik="l2")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    fairopt.errors.Unsupported: "drfh" with "best-fit" takes no option "metrik" (did you mean "metric"?); ...
    >>> planned("drfh", placement="pop", part=2)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    fairopt.errors.Unsupported: "drfh" with "pop" takes no option "part" (did you mean "parts"?); it takes parts, seed, split, ...
    """
    check_yes_or_no("integral", integral)
    check_whole_number("seed", seed, 0)
    baseline, rest = baseline_of(placement, {"seed": seed, **options})
    if baseline is not None:
        for word, value, usual in (("ties", ties, "index"), ("stop", stop, "exhausted"), ("record", record, False)):
            if value != usual:
                raise Unsupported(
                    f'{word} is about tasks that are placed one by one, and "{baseline.name}" places none so; leave {word} out'
                )
        return baseline, baseline.name, _notion_of(criterion, {word: each for word, each in rest.items() if word != "seed"}, baseline)
    assert not isinstance(placement, Baseline)
    how_placed, name, rest = placement_of(placement, options)
    chosen = _criterion(criterion, rest, placement)
    for word, value, known in (("ties", ties, ("index", "largest-demand", "random")), ("stop", stop, ("exhausted", "first-block"))):
        if not isinstance(value, str) or value not in known:
            raise Unsupported(f'{word} cannot be "{value}"{did_you_mean(str(value), known)}; use {" or ".join(known)}')
    return how_placed, name, chosen


def plan_of(spec: str) -> dict[str, Any]:
    """Return the arguments of `schedule` that a specification gives: CRITERION:PLACEMENT, with options before or after the placement.

    >>> plan_of("drfh:best-fit:metric=l2") == plan_of("drfh:metric=l2:best-fit")
    True
    >>> plan_of("drfh:only=gpu")
    {'criterion': 'drfh', 'only': 'gpu'}
    """
    criterion, *rest = words(spec)
    placement = [part for part in rest if "=" not in part][:1]
    options = options_in([part for part in rest if part not in placement], spec)
    return {"criterion": criterion} | ({"placement": placement[0]} if placement else {}) | options


def written_plan(criterion: Any, placement: Any, options: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the arguments that stand in a criterion such as "drfh:best-fit:only=gpu"; None if none does.

    Raises
    ------
    Unsupported
        An argument is given beside it, too.
    """
    if not isinstance(criterion, str) or len(words(criterion)) < 2 or criterion in NOTIONS:
        return None
    plan = plan_of(criterion)
    given = {*options, *(() if placement == "first-fit" else ("placement",))}
    if twice := [word for word in plan if word in given]:
        raise Unsupported(f'"{criterion}" has {joined(twice)} already; give it once')
    return plan


def placement_of(placement: str | Placement | Chooser, options: dict[str, Any]) -> tuple[Placement | Chooser, str, dict[str, Any]]:
    """Return the placement with its options, its name, and the options that are not its own."""
    entry: Any = placement
    if isinstance(placement, str):
        if placement not in PLACEMENTS:
            hint = did_you_mean(placement, [*PLACEMENTS, *BASELINES])
            raise Unsupported(
                f'there is no placement "{placement}"{hint}; there are {", ".join(PLACEMENTS)}, and the baselines {joined([*BASELINES])}'
            )
        entry = PLACEMENTS[placement]
    if isinstance(entry, type) and issubclass(entry, Placement):
        known = _options_of(entry)
        entry = entry(**{word: value for word, value in options.items() if word in known})
        options = {word: value for word, value in options.items() if word not in known}
    if isinstance(entry, Placement):
        return entry, entry.name, options
    if not callable(entry):
        raise Unsupported(
            f"placement is {entry!r}; give one of {', '.join(PLACEMENTS)}, or a function (user, free, demand, fits) -> server"
        )
    return entry, placement if isinstance(placement, str) else getattr(entry, "__name__", type(entry).__name__), options


def _options_of(entry: Any) -> list[str]:
    """Return the names of the options of a placement or notion; none if it is an instance already."""
    fields = dataclasses.fields(entry) if isinstance(entry, type) and dataclasses.is_dataclass(entry) else ()
    return [field.name for field in sorted(fields, key=lambda each: bool(each.kw_only))]


def _criterion(criterion: str | Notion | type[Notion], options: dict[str, Any], placement: Any) -> Notion:
    if isinstance(criterion, str):
        registry = next((each for each in (NOTIONS, CRITERIA) if criterion in each), None)
        if registry is None:
            known = {**NOTIONS, **CRITERIA}
            raise Unsupported(f'there is no criterion "{criterion}"{did_you_mean(criterion, known)}; there are {", ".join(known)}')
        criterion = registry[criterion]
    for placed in PLACEMENTS.values():
        words = _options_of(placed)
        if word := next((word for word in options if word in words), None):
            raise Unsupported(f'"{word}" is an option of the placement "{placed.name}"; use that placement, or leave {word} out')  # type: ignore[union-attr]
    own = _options_of(criterion)
    if isinstance(criterion, type) and (word := next((word for word in options if word not in own), None)):
        takes = [
            *_options_of(PLACEMENTS.get(placement) if isinstance(placement, str) else placement),
            *own,
            "ties",
            "seed",
            "stop",
            "record",
        ]
        names = [f'"{getattr(thing, "name", getattr(thing, "__name__", thing))}"' for thing in (criterion, placement)]
        raise Unsupported(f'{names[0]} with {names[1]} takes no option "{word}"{did_you_mean(word, takes)}; it takes {", ".join(takes)}')
    return notion_of(criterion, **options)


def _notion_of(criterion: str | Notion | type[Notion], options: dict[str, Any], baseline: Baseline) -> Notion:
    """Return the notion that a baseline approximates, after the options that neither of them takes are refused."""
    if isinstance(criterion, str) and criterion in CRITERIA:
        raise Unsupported(f'"{criterion}" is a criterion of greedy schedules and has no optimum for "{baseline.name}" to approximate')
    kind = NOTIONS.get(criterion) if isinstance(criterion, str) else criterion
    own = _options_of(kind)
    if kind is not None and (word := next((word for word in options if isinstance(kind, type) and word not in own), None)):
        takes = [*baseline.option_names(), *own, "integral"]
        names = f'"{getattr(kind, "name", criterion)}" with "{baseline.name}"'
        raise Unsupported(f'{names} takes no option "{word}"{did_you_mean(word, takes)}; it takes {joined(takes)}')
    chosen = notion_of(criterion, **options)
    baseline.check(chosen)
    return chosen


def check_first_block(filling: Filling, chosen: Notion, placement: Placement | Chooser) -> None:
    """Refuse ``stop="first-block"`` where it has no meaning: shares differ between servers, the server is chosen first, or queues."""
    if filling.queues is not None:
        raise Unsupported(
            'stop="first-block" is an algorithm for a flat list of users, and the instance has queues, guarantees or weights of 0; '
            "leave stop out"
        )
    if filling.criterion.measure is not Measure.OWN:
        raise Unsupported(
            f'"{chosen.name}" has a user with the smallest share for each server, not one for all, so stop="first-block" has no meaning; '
            'leave stop out, or use a criterion such as "drfh"'
        )
    if isinstance(placement, Placement) and placement.server_first:
        raise Unsupported(
            f'"{placement.name}" chooses the server before the user, so stop="first-block" has no meaning; '
            'leave stop out, or use "first-fit"'
        )
