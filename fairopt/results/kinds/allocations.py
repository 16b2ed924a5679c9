"""Results about one instance: allocations, and what is found of them."""

from __future__ import annotations

from fairopt.results.declaring import (
    Schema,
    anything,
    choice,
    flag,
    free,
    items,
    mapping,
    nullable,
    number,
    old,
    optional,
    record,
    reference,
    text,
    texts,
    whole,
)
from fairopt.results.kinds.parts import (
    CERTIFICATE,
    EXACT,
    MADE,
    NAME,
    NOTIONS,
    OF_GIVEN,
    OF_SCHEDULE,
    OF_SOLVE,
    QUEUE,
    REGRET,
    REGRET_KEYS,
    SCHEDULES,
    SHARING,
    SPEC,
    TIME_LIMIT,
    VIOLATION,
    kind,
    question,
    time,
)

__all__ = ["KINDS"]

_SHARE = {
    "anyOf": [{"type": "number"}, {"type": "array", "items": {"type": "number"}}],
    "description": "The notion's own share; a list, where it has one share per server.",
    "x-unit": "fraction",
}
_REACHED = {
    "reached": flag("Is nothing left of it? Of a rule: are both sides equal?"),
    "price": nullable(number("Its dual price; null: none is known.", "1")),
    "exact": EXACT,
}
_ALLOCATION = {
    "notion": text("The notion of fairness, or the criterion of a schedule."),
    "solver": text("The engine that found it; given: it was not computed."),
    "sharing": SHARING,
    "users": items(
        record(
            "What a user gets.",
            {
                "name": NAME,
                "queue": optional(nullable(text("The queue that it is in; null: the root."))),
                "tasks": number("Tasks on all servers.", "tasks"),
                "work": optional(number("The work that its tasks do, where speeds are given.", "1")),
                "share": _SHARE,
                "level": nullable(whole("Number of its level, from 1.", "1")),
                "dominant_resource": text("The resource of which it holds the largest part."),
                "servers": mapping({"type": "number"}, "Tasks on each server where it has some."),
                "exact": EXACT,
            },
        ),
        "What each user gets.",
    ),
    "queues": optional(items(record("What a queue holds.", QUEUE), "What each queue holds, each followed by those below it.")),
    "servers": items(
        record(
            "What is in use of a row of identical servers.",
            {
                "name": NAME,
                "count": whole("Servers of the row.", "servers"),
                "usage": mapping({"type": "number"}, "Amount in use of each resource, in its unit."),
                "utilization": mapping({"type": "number"}, "The same as a fraction of the capacity."),
            },
        ),
        "What is in use of each row of servers.",
    ),
    "shared": optional(
        items(
            record(
                "What is in use of a resource of the whole cluster, which no server has.",
                {
                    "name": NAME,
                    "capacity": number("How much there is of it.", "amount"),
                    "usage": number("How much of it is in use.", "amount"),
                    "utilization": number("The same as a fraction of the capacity.", "fraction"),
                    **_REACHED,
                },
            ),
            "What is in use of each resource of the whole cluster.",
        )
    ),
    "limits": optional(
        items(
            record(
                "What counts in a named limit; of a limit for each user, queue or server, a record for each of them.",
                {
                    "name": NAME,
                    "resource": nullable(text("The resource that is counted; null: tasks, or amounts of its own.")),
                    "bound": number("What it allows.", "amount"),
                    "used": number("What counts in it.", "amount"),
                    **_REACHED,
                },
            ),
            "What counts in each named limit.",
        )
    ),
    "rules": optional(
        items(
            record(
                "Both sides of a rule, moved so that no term is below 0.",
                {
                    "name": text("The rule as it was given."),
                    "sense": choice("How used compares with bound.", "<=", "==", ">="),
                    "bound": number("The side that the other is compared with.", "amount"),
                    "used": number("The side that is compared.", "amount"),
                    **_REACHED,
                },
            ),
            "Both sides of each rule.",
        )
    ),
    "levels": items(
        record(
            "A level of a leximin.",
            {
                "value": number("The share of its users.", "fraction"),
                "users": texts("Its users."),
                "exact": optional(text("The share as a fraction.")),
                "part": optional(text("The part of the tree of queues that it is in.")),
                "queue_prices": optional(mapping({"type": "number"}, "Dual prices of limits of queues.")),
                "floors": optional(mapping({"type": "number"}, "Guarantees that are kept and stop its users, and how much of each.")),
            },
        ),
        "The levels of a leximin, the lowest first.",
    ),
    "certificate": CERTIFICATE,
    "unservable": texts("Users who cannot run anywhere."),
    "time_s": number("How long reading, solving and proving took.", "s"),
    "phases_s": mapping({"type": "number"}, "The same by phase: read, formulate, solve, certify."),
    "seconds": old(mapping({"type": "number"}, ""), "time_s and phases_s"),
    "details": free("What the engine says: iterations, bounds, and the like."),
}

_HELD = record(
    "A user in an allocation.",
    {
        "name": NAME,
        "tasks": number("Its tasks.", "tasks"),
        "work": optional(number("The work that they do, where speeds are given.", "1")),
        "share": _SHARE,
        "finish_ratio": optional(
            nullable(number("Its finish-time ratio, if finish-time is asked for; null: it never finishes, or could not alone.", "1"))
        ),
        "exact": EXACT,
    },
)
_FINISH_RATIOS = {
    "finish_ratio_largest": nullable(
        number("Largest finish-time ratio of the users, if finish-time is asked for; null: a user never finishes.", "1")
    ),
    "finish_ratio_median": nullable(number("Median of the same.", "1")),
    "finish_ratio_p90": nullable(number("Its 90th percentile.", "1")),
    "finish_ratio_above_1": whole("Users that finish later than alone, with the slice of their weight.", "users"),
}
_ROW = record(
    "An allocation, and its measures.",
    {
        "name": text("The notion, schedule or file."),
        "kind": text("exact, greedy, given, ..."),
        "message": text("Why there is no allocation; else empty."),
        "note": text("What must be said of the regret."),
        "tasks": nullable(number("Number of tasks.", "tasks")),
        "work": optional(number("The work that they do, where speeds are given; efficiency and envy count it.", "1")),
        "smallest_share": nullable(number("Smallest weighted dominant share.", "fraction")),
        "efficiency": nullable(number("Weighted number of tasks, of the most possible.", "fraction")),
        "jain": nullable(number("Jain's index of the weighted dominant shares; 1: all equal.", "fraction")),
        "envy": nullable(
            record(
                "The largest envy.",
                {
                    "tasks": number("How many more tasks the envious user would run.", "tasks"),
                    "user": nullable(text("Who envies.")),
                    "of": nullable(text("Whom.")),
                },
            )
        ),
        "use": mapping({"type": "number"}, "Fraction of the cluster's capacity in use, by resource."),
        **{name: optional(key) for name, key in _FINISH_RATIOS.items()},
        "regret": nullable(REGRET),
        **time(),
        "violations": items(VIOLATION, "Limits that it exceeds."),
        "users": items(_HELD, "What each user has."),
        "queues": optional(
            items(
                record("A queue.", QUEUE | {"regret": nullable(number("Relative shortfall of its share.", "fraction"))}),
                "What each queue holds.",
            )
        ),
        "owners": optional(
            items(
                record(
                    "An owner of tasks.",
                    {
                        "name": NAME,
                        "users": whole("Its users.", "users"),
                        "tasks": number("Its tasks.", "tasks"),
                        "work": optional(number("The work that they do, where speeds are given.", "1")),
                        "dominant_resource": text("The resource of which it holds the largest part."),
                        "dominant_share": number("That part.", "fraction"),
                        "finish_ratio": optional(
                            nullable(
                                number(
                                    "The largest finish-time ratio of its users, if finish-time is asked for; null: one never finishes, or "
                                    "none could alone.",
                                    "1",
                                )
                            )
                        ),
                    },
                ),
                "With --by owner: what each owner holds.",
            )
        ),
        "exact": EXACT,
    },
)
_COMPARED = {
    "notions": NOTIONS,
    "schedules": SCHEDULES,
    "allocations": texts("Your own allocations, by name."),
    "integral": flag("Also the best allocations of whole tasks."),
    "sharing": SHARING,
    "time_limit_s": TIME_LIMIT,
    "reference": nullable({**SPEC, "description": "The notion against which every regret is measured; null: each schedule's own."}),
    "exact": flag("In fractions."),
}

_CHANGE = record(
    "What changes for a user.",
    {
        "name": NAME,
        "before": nullable(number("Tasks before; null: it is new.", "tasks")),
        "after": nullable(number("Tasks after; null: it is gone.", "tasks")),
        "change": nullable(number("The difference.", "tasks")),
        "verdict": choice("What that is for the user.", "gains", "loses", "as before", "new", "gone"),
        "share_before": nullable(number("Its share before.", "fraction")),
        "share_after": nullable(number("Its share after.", "fraction")),
    },
)

KINDS: dict[str, Schema] = {
    "solve": kind("solve", "An exact allocation and its proof.", question("All arguments of fairopt.solve.", OF_SOLVE), _ALLOCATION),
    "schedule": kind(
        "schedule", "A schedule of whole tasks.", question("All arguments of fairopt.schedule.", OF_SCHEDULE | OF_GIVEN), _ALLOCATION
    ),
    "given": kind(
        "given",
        "An allocation that fairopt did not compute, or of a scheduler of your own. In Python only.",
        question("What it is measured by.", OF_GIVEN),
        _ALLOCATION,
    ),
    "compare": kind(
        "compare",
        "Several allocations of one instance, measured in the same way.",
        question("All arguments of fairopt.compare.", _COMPARED),
        {
            "sharing": SHARING,
            "largest_total": nullable(number("The largest possible weighted number of divisible tasks.", "tasks")),
            "rows": items(_ROW, "The allocations."),
        },
    ),
    "what-if": kind(
        "what-if",
        "The allocations of two instances side by side.",
        question(
            "All arguments of fairopt.what_if.",
            _COMPARED
            | {
                "names": texts("What the two instances are called."),
                "effects": flag("Also each difference alone."),
                "given": texts("Changes of both instances, as --given has them. On the command line only."),
                "changes": texts("Changes of the second instance alone, as --set has them. On the command line only."),
                "rules": texts("Rules of the second instance alone, as --rule has them. On the command line only."),
            },
        ),
        {
            "names": texts("What the two instances are called."),
            "differences": items(
                record(
                    "A difference.",
                    {
                        "path": text("Where, such as servers.new.count."),
                        "before": anything("The value before."),
                        "after": anything("The value after."),
                        "unit": optional(text("The unit of both.")),
                    },
                ),
                "What differs between the instances.",
            ),
            "rows": items(
                record(
                    "A notion or schedule on both.",
                    {
                        "name": NAME,
                        "summary": text("How many gain and lose; or why there is no allocation."),
                        "users": items(_CHANGE, "What changes for each user."),
                        "effects": items(
                            record(
                                "What one difference does alone.",
                                {
                                    "what": text("Which difference."),
                                    "message": text("Why it cannot be alone, or was not computed; else empty."),
                                    "changes": mapping({"type": "number"}, "Tasks more than before, by user."),
                                },
                            ),
                            "What each difference does alone.",
                        ),
                    },
                ),
                "Each notion and schedule.",
            ),
            "before": reference("compare", "The allocations of the first instance."),
            "after": reference("compare", "The allocations of the second instance."),
        },
    ),
    "frontier": kind(
        "frontier",
        "The exact trade-off between the total of tasks and the smallest share, and where allocations lie.",
        question(
            "All arguments of fairopt.frontier.",
            {
                "alphas": items(anything("A number, or inf."), "Alpha of the alpha-fair points."),
                "notions": NOTIONS,
                "families": free("Pairs of beta and lambda of fds and gfj."),
                "schedules": SCHEDULES,
                "of": choice("The utility of the alpha-fair points.", "tasks", "shares"),
                "sharing": SHARING,
                "time_limit_s": TIME_LIMIT,
            },
        ),
        {
            "sharing": SHARING,
            "of": choice("The utility of the alpha-fair points.", "tasks", "shares"),
            "vertices": items(
                record(
                    "A vertex.",
                    {
                        "total": number("Number of tasks.", "tasks"),
                        "smallest_share": number("Smallest weighted dominant share.", "fraction"),
                    },
                ),
                "The vertices, from the largest share to the largest total; the frontier is straight between them.",
            ),
            "gap": number("How far above it any allocation may lie.", "fraction"),
            "points": items(
                record(
                    "An allocation.",
                    {
                        "name": NAME,
                        "kind": text("alpha, notion, fds, gfj, greedy or given."),
                        "message": text("Why there is no allocation; else empty."),
                        "total": nullable(number("Number of tasks.", "tasks")),
                        "smallest_share": nullable(number("Smallest weighted dominant share.", "fraction")),
                        "price_of_fairness": nullable(number("Tasks lost, of the most possible.", "fraction")),
                        "price_of_efficiency": nullable(number("Smallest share lost, of the best possible.", "fraction")),
                        "below": nullable(number("How much the smallest share could rise without losing tasks.", "fraction")),
                        **time(),
                    },
                ),
                "The allocations.",
            ),
        },
    ),
    "regret": kind(
        "regret",
        "How far an allocation is from the exact one. In Python only; fairopt compare prints it for each allocation.",
        question(
            "All arguments of fairopt.regret.",
            {
                "allocation": MADE,
                "notion": {**SPEC, "description": "The notion that is compared with."},
                "sharing": SHARING,
                "integral": flag("Compared with whole tasks."),
                "time_limit_s": TIME_LIMIT,
            },
        ),
        REGRET_KEYS,
    ),
}
