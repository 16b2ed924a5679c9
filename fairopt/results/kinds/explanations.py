"""Results about one instance that say why, and what to do: audits, explanations, priorities, plans."""

from __future__ import annotations

from fairopt.results.declaring import (
    Schema,
    anything,
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
    EXACT,
    MADE,
    NAME,
    SEED,
    SHARING,
    TIME_LIMIT,
    VIOLATION,
    kind,
    question,
)

__all__ = ["KINDS"]

_OLD_USER = old(nullable(text("")), "name")
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
}
