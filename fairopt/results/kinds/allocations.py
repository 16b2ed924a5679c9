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
    SEED,
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
                },
            ),
            "What is in use of each resource of the whole cluster.",
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

_OLD_USER = old(nullable(text("")), "name")
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

_WITNESS = record(
    "An example that proves a violation.",
    {
        "text": text("A few sentences, with the numbers."),
        "users": texts("Users of the example; the one who has too little comes first."),
        "servers": texts("Servers of the example."),
        "tasks": nullable(items({"type": "array", "items": {"type": "number"}}, "The allocation (users, servers) that proves it.")),
        "exact": optional(anything("The same as fractions.")),
        "instance": nullable(reference("instance", "The instance with the lie, or without the user who left.")),
    },
)


def _action(words: str, *, named: bool = False) -> Schema:
    keys = {
        "user": text("Whose tasks."),
        "server": text("Its host, where that is known."),
        "tasks": whole("How many.", "tasks"),
        "step": whole("A step begins when all before it are done.", "1"),
    }
    return record(words, keys | ({"names": optional(texts("What the scheduler calls them."))} if named else {}))


def _change(words: str) -> Schema:
    keys = {
        "seconds": number("From now, if what runs goes on and nothing else starts.", "s"),
        "rank": whole("The rank then.", "1"),
        "name": text("Who changes places with it."),
    }
    return record(words, keys)


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
            _COMPARED | {"names": texts("What the two instances are called."), "effects": flag("Also each difference alone.")},
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
    "plan": kind(
        "plan",
        "The way from what runs to the fair allocation of whole tasks, with the fewest stops.",
        question(
            "All arguments of fairopt.plan but what runs.",
            {
                "notion": text("The notion of the target."),
                "options": free("Its options."),
                "sharing": SHARING,
                "budget": nullable(whole("The most stops; null: as many as the target needs.", "tasks")),
                "time_limit_s": TIME_LIMIT,
            },
        ),
        {
            "notion": text("The notion of the target."),
            "stops": items(_action("Tasks that stop on a server.", named=True), "What stops, in order."),
            "starts": items(_action("Tasks that start on a server."), "What starts, in order."),
            "moved": whole("Tasks that stop on one server and start on another.", "tasks"),
            "bound": whole("No plan to this target has fewer stops.", "tasks"),
            "held": mapping({"type": "integer"}, "Tasks by user now."),
            "target": mapping({"type": "integer"}, "Tasks by user at the end."),
            "fair": mapping({"type": "integer"}, "Tasks by user of the answer without a budget."),
            "notes": texts("What must be said."),
        },
    ),
    "audit": kind(
        "audit",
        "Which properties an allocation has.",
        question(
            "All arguments of fairopt.audit.",
            {
                "allocation": MADE,
                "properties": texts("The properties that are tested."),
                "effort": whole("Lies to try, and users to remove, at most.", "solves"),
                "seed": SEED,
                "time_limit_s": TIME_LIMIT,
            },
        ),
        {
            "notion": text("The notion of the allocation."),
            "solver": text("Its engine."),
            "sharing": SHARING,
            "violated": texts("The properties that are violated."),
            "violations": items(VIOLATION, "Limits that it exceeds."),
            "properties": items(
                record(
                    "The verdict on a property.",
                    {
                        "name": NAME,
                        "property": old(text(""), "name"),
                        "holds": nullable(flag("Does it hold? null: it does not apply, or could not be decided.")),
                        "violation": nullable(number("Size of the violation.", "tasks")),
                        "exact": optional(text("The same as a fraction.")),
                        "statement": text("What was found, and how."),
                        "witness": nullable(_WITNESS),
                        "promised": nullable(text("The source that proves the property for the notion.")),
                        "searched": nullable(whole("How many lies, or users who leave, were tried.", "solves")),
                    },
                ),
                "The verdicts.",
            ),
        },
    ),
    "explain": kind(
        "explain",
        "Why a user or a queue gets what it gets, and what would give it more.",
        question(
            "All arguments of fairopt.explain.",
            {
                "allocation": MADE,
                "user": nullable(text("The user.")),
                "queue": nullable(text("The queue.")),
                "against": nullable(text("The user to compare with.")),
                "resolves": whole("How many changes are solved.", "solves"),
                "time_limit_s": TIME_LIMIT,
            },
        ),
        {
            "name": text("The user or queue."),
            "user": _OLD_USER,
            "queue": optional(text("The queue, where one is explained.")),
            "against": nullable(text("The user that it is compared with.")),
            "tasks": number("Its tasks.", "tasks"),
            "work": optional(number("Their work, where speeds are given.", "1")),
            "exact": EXACT,
            "sentences": texts("The explanation."),
            "blockers": items(
                record(
                    "A resource without room for another task.",
                    {
                        "server": text("The row of servers."),
                        "resource": text("The resource; time, where time is divided."),
                        "capacity": number("Capacity of the row.", "amount"),
                        "used": number("What is in use.", "amount"),
                        "own": number("What the user holds.", "amount"),
                        "bottleneck": flag("Does it stop the user?"),
                        "holders": items(
                            record(
                                "Who else holds some of it.",
                                {"name": NAME, "user": old(text(""), "name"), "amount": number("How much.", "amount"), "exact": EXACT},
                            ),
                            "Who else holds some of it.",
                        ),
                        "price": nullable(number("Its dual price.", "1")),
                        "exact": EXACT,
                    },
                ),
                "What has no room for another task.",
            ),
            "gains": items(
                record(
                    "What a change would give.",
                    {
                        "change": text("The change."),
                        "kind": text("What is changed."),
                        "by_price": nullable(number("The gain by its price.", "tasks")),
                        "by_solving": nullable(number("The gain by solving again.", "tasks")),
                        "note": text("What must be said of it."),
                        "exact": EXACT,
                    },
                ),
                "What would give it more, the largest gain first.",
            ),
        },
    ),
    "explain-priority": kind(
        "explain-priority",
        "Why a user or a queue is where it is in the order of a scheduler of jobs, who is next, and when that changes.",
        question(
            "All arguments of fairopt.explain_priority but what runs.",
            {
                "name": text("The user or queue."),
                "scheduler": text("The scheduler."),
                "usage": optional(anything("What owners had used: a file, or amounts by name.")),
                "billing": optional(anything("What a task is billed a second.")),
            },
        ),
        {
            "name": text("The user or queue."),
            "scheduler": text("The scheduler."),
            "rank": whole("Its rank, from 1; of a queue, that of the first of its users.", "1"),
            "ranks": whole("How many different ranks there are.", "1"),
            "next": texts("The users with tasks that wait, by rank."),
            "way": items(
                record(
                    "A child of a node, from the root down to the user.",
                    {
                        "name": NAME,
                        "above": nullable(text("The queue that it is in; null: the root.")),
                        "shares": number("Its part of the shares of all children there.", "1"),
                        "used": number("Its part of their usage.", "1"),
                        "level": nullable(number("Level fairshare, shares / used; null: nothing was used.", "1")),
                        "place": whole("Its place among them, by level.", "1"),
                        "of": whole("How many they are.", "1"),
                    },
                ),
                "Of fairtree: the way from the root to the user.",
            ),
            "priority": nullable(number("Of priority: its effective priority; the smaller, the better.", "1")),
            "best": nullable(number("Of priority: the smallest there is.", "1")),
            "part": nullable(number("Of priority: its part of free cores, if all who wait divide them.", "1")),
            "sentences": texts("The explanation."),
            "better": nullable(_change("When its rank improves; null: never, or what runs is not known.")),
            "worse": nullable(_change("When its rank worsens; null: never, or what runs is not known.")),
            "notes": texts("What is left out."),
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
