"""What a specification of a scheduler asks for: a notion, arguments of `fairopt.schedule`, or a kind that only simulations know."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeGuard

import numpy as np

from fairopt.errors import Unsupported
from fairopt.instance import Instance
from fairopt.instance.rule_rows import refuse_rules
from fairopt.models import NOTIONS, Notion, Sharing
from fairopt.registry import is_reference, words
from fairopt.scheduling import schedule
from fairopt.simulation.baselines.options import Baseline, Known, baseline_of, remembers, seconds_of
from fairopt.simulation.billing import BillingLike, billing_of
from fairopt.simulation.following import Following
from fairopt.simulation.karma import Karma
from fairopt.simulation.memory import Memory
from fairopt.simulation.past_usage import UsageLike, past_usage
from fairopt.simulation.schedulers import no_scheduler
from fairopt.simulation.streams import Streams
from fairopt.solvers import Turns
from fairopt.solving import notion_of
from fairopt.specs import OwnScheduler, divides_tasks, kind_of, options_of, own_scheduler, read_notion, read_schedule
from fairopt.wording import did_you_mean

__all__ = ["Asynchronous", "knowing", "refuse_rules_of", "scheduler_of", "takes_usage"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Asynchronous:
    """Servers that act alone, at these times, and what they divide."""

    turns: Turns
    sharing: Sharing


_OPTIONS = ("period", "phases", "seed", "sharing")


Plan: TypeAlias = Notion | dict[str, Any] | Asynchronous | OwnScheduler | Baseline | Memory | Following | Karma


def refuse_rules_of(cluster: Instance, name: str, plan: Plan) -> None:
    """Refuse the rules of a cluster where a scheduler keeps not even those that are limits.

    Raises
    ------
    Unsupported
    """
    if isinstance(plan, Asynchronous | Karma):
        refuse_rules(cluster, f'"{name}" keeps none', "leave the rules out, or simulate another scheduler, such as drfh:best-fit")


def takes_usage(plan: Plan) -> TypeGuard[Memory | Following | Baseline]:
    """Return whether a scheduler counts what owners had used before."""
    return isinstance(plan, Memory | Following) or (isinstance(plan, Baseline) and remembers(plan))


def knowing(name: str, plan: Plan, streams: Streams, usage: UsageLike | None, billing: BillingLike) -> Plan:
    """Return a scheduler that knows what owners had used, and counts in billing, with a warning of what is left out.

    Raises
    ------
    InvalidInstance, Unsupported
        The scheduler has no memory.
    """
    if usage is None and billing is None:
        return plan
    if not takes_usage(plan):
        raise Unsupported(
            f'"{name}" has no memory, or none of usage; usage and billing are for fairtree, priority, maui, and notions with a half-life, '
            "such as drfh:half_life=7d: leave usage and billing out, or use one of these"
        )
    if usage is None and not isinstance(plan, Baseline):
        raise Unsupported(f'"{name}" counts shares, and billing is the unit of usage from before; give usage, too, or leave billing out')
    past = None if usage is None else past_usage(usage, streams.cluster, streams.users)
    for note in () if past is None else past.notes:
        log.warning("%s", note)
    if past is not None and past.queues.any() and isinstance(plan, Baseline) and plan.order == "priority":
        log.warning('the usage of queues is left out: "priority" orders users, each by its own')
    cores = isinstance(plan, Baseline) and plan.order in ("priority", "maui") and billing is None  # they count a unit by themselves
    return replace(plan, known=Known(past, None if cores else billing_of(billing, streams.instance)))


def scheduler_of(spec: Any) -> tuple[str, Plan]:
    """Return the name of a scheduler, and its notion, its arguments of `fairopt.schedule`, or what else describes it."""
    if (own := own_scheduler(spec)) is not None:
        return own.name, own
    if (baseline := baseline_of(spec)) is not None:
        return baseline.name, baseline
    name, word, options = options_of(spec)
    if word == "karma":
        return name, _karma_of(options)
    unknown = isinstance(spec, str) and word not in NOTIONS and not is_reference(word)
    if "follow" in options:
        if unknown:
            raise Unsupported(no_scheduler(word))
        return name, _following_of(word, options)
    if "half_life" in options:
        if unknown:
            raise Unsupported(no_scheduler(word))
        return name, _memory_of(word, options)
    if "period" in options or "phases" in options:
        return name, _asynchronous_of(word, options)
    greedy = (
        (isinstance(spec, tuple) and len(spec) == 2 and isinstance(spec[1], str))
        or (hasattr(spec, "keys") and "criterion" in spec)
        or (isinstance(spec, str) and any("=" not in part for part in words(spec)[1:]))
    )
    if not greedy:
        if unknown:
            raise Unsupported(no_scheduler(word))
        return _notion(spec, word, options)
    name, plan = read_schedule(spec)
    if kind_of(plan) == "approximate":
        return name, _fluid_baseline(name, dict(plan))  # type: ignore[arg-type]
    return name, dict(plan)  # type: ignore[arg-type]  # an allocation is no such spec


def _fluid_baseline(name: str, plan: dict[str, Any]) -> OwnScheduler:
    """Return a baseline as a scheduler that is asked at every event."""
    if not divides_tasks(plan):
        raise Unsupported(
            f'"{name}" gives whole tasks anew at every event, and would stop tasks and move them; leave integral out, or use a greedy '
            "schedule such as drfh:best-fit"
        )
    return OwnScheduler(name, schedule, plan, "approximate")


def _notion(spec: Any, word: str, options: dict[str, Any]) -> tuple[str, Notion]:
    """Return the name of a notion, and the notion; a misspelt option of a memory is recognised."""
    try:
        return read_notion(spec)
    except Unsupported:
        for option in options:
            if hint := did_you_mean(option, ("half_life", "follow", "period", "phases")):
                raise Unsupported(
                    f'"{word}" takes no option "{option}"{hint}; with a memory, write "drfh:half_life=1h", with servers that act by '
                    'themselves "psdsf:period=1"'
                ) from None
        raise


def _karma_of(options: dict[str, Any]) -> Karma:
    for option in options:
        if option not in ("alpha", "period"):
            raise Unsupported(
                f'"karma" takes no option "{option}"{did_you_mean(option, ("alpha", "period"))}; write "karma:alpha=0.5:period=60"'
            )
    return Karma(options.get("alpha", 0.5), _period_of(options))


def _period_of(options: dict[str, Any]) -> float | None:
    """Return the seconds of a round; None: the default."""
    if "period" not in options:
        return None
    period = seconds_of(options["period"], "the period")
    if np.isinf(period):
        raise Unsupported('the period of a memory is infinite; give the seconds of a round, as in "drfh:half_life=1h:period=60"')
    return period


def _memory_of(word: str, options: dict[str, Any]) -> Memory:
    rest = {option: value for option, value in options.items() if option not in ("half_life", "period")}
    return Memory.of(notion_of(word, **rest), seconds_of(options["half_life"]), _period_of(options))


def _following_of(word: str, options: dict[str, Any]) -> Following:
    rest = {option: value for option, value in options.items() if option not in ("follow", "half_life", "period", "usage")}
    usage = options.get("usage", "share")
    if usage not in ("share", "resource"):
        raise Unsupported(f'usage is "{usage}"; weights follow the usage of dominant shares, "share", or of each resource, "resource"')
    try:
        strength = float(options["follow"])
    except (TypeError, ValueError):
        strength = np.nan
    if not (np.isfinite(strength) and strength >= 0):
        raise Unsupported(f'follow is "{options["follow"]}"; say how much the past counts, a number >= 0: drfh:follow=0.5:half_life=7d')
    notion = notion_of(word, **rest)
    if usage == "resource" and not notion.weights_per_resource:
        takers = " or ".join(f'"{name}"' for name, kind in NOTIONS.items() if kind.weights_per_resource)
        raise Unsupported(
            f'"{word}" takes one weight for each user, and :usage=resource gives a user a weight for each resource; leave :usage=resource '
            f"out, or use {takers}"
        )
    return Following(notion, strength, seconds_of(options.get("half_life", "inf")), _period_of(options), usage == "resource")


def _asynchronous_of(word: str, options: dict[str, Any]) -> Asynchronous:
    if word != "psdsf":
        raise Unsupported(f'only the allocation of "psdsf" is found by servers that act by themselves; leave the period of "{word}" out')
    for option in options:
        if option not in _OPTIONS:
            known = ", ".join(_OPTIONS)
            raise Unsupported(f'asynchronous servers take no option "{option}"{did_you_mean(option, _OPTIONS)}; they take {known}')
    if "period" not in options:
        raise Unsupported('phases are those of asynchronous servers, who need a period; give it in seconds, "psdsf:period=1"')
    sharing = options.get("sharing", "rdm")
    if sharing not in ("rdm", "tdm"):
        raise Unsupported(f'sharing is "{sharing}"; servers divide their resources, "rdm", or their time, "tdm"')
    return Asynchronous(Turns(**{key: value for key, value in options.items() if key != "sharing"}), sharing)
