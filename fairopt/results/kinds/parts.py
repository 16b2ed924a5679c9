"""What several results contain: questions, users, queues, regrets."""

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
    text,
    texts,
    whole,
)

__all__ = ["CERTIFICATE", "DEFS", "EXACT", "QUEUE", "REGRET", "VIOLATION", "kind", "question", "time"]

NAME = text("Its name.")
SHARING = choice("How servers are shared: rdm divides resources, tdm divides time.", "rdm", "tdm")
EXACT = optional(free("The same numbers as fractions in text, such as 20/3: of an answer in fractions."))
TIME_LIMIT = nullable(number("Time limit of each solve.", "s"))
SPEC: Schema = {"anyOf": [{"type": "string"}, {"type": "object"}]}
NOTIONS = items(SPEC, "Notions: names, names with options as in proportional:alpha=2, or objects with a name and options.")
SCHEDULES = items(SPEC, "Greedy schedules and baselines, such as drfh:best-fit and drfh:pop.")
SEED = whole("Seed of what is random.", "1")

OF_COMMAND = {
    "changes": texts("Changes to the file, as --set has them. Missing where there are none."),
    "rules": texts("Rules beside those of the file, as --rule has them. Missing where there are none."),
}

DEFS: dict[str, Schema] = {}


def define(name: str, declared: Schema) -> Schema:
    """Put a part under a name, and return the reference to it."""
    DEFS[name] = declared
    return {"$ref": f"#/$defs/{name}", "description": declared["description"]}


def question(words: str, keys: dict[str, Schema]) -> Schema:
    """The question of a result: options that were given or are defaults, and what the command line changed of the file."""
    return record(words, {name: optional(key) for name, key in (OF_COMMAND | keys).items()})


def time(words: str = "How long the computation took.") -> dict[str, Schema]:
    """The time that something took."""
    return {"time_s": nullable(number(words, "s")), "seconds": old(nullable(number("", "s")), "time_s")}


def kind(command: str, words: str, asked: Schema, keys: dict[str, Schema]) -> Schema:
    """The result of a command: its head and its keys."""
    head: dict[str, Schema] = {
        "schema": {"const": 1, "description": "Number of the schema."},
        "version": text("The version of fairopt that computed it."),
        "command": {"const": command, "description": "What this result is: the command that prints it."},
        "question": asked,
        "units": mapping({"type": "string"}, "The unit of each resource of which it is known."),
    }
    return record(words, head | keys)


_OPTIONS = {
    "options": free("Options of the notion or criterion: formulation, guarantees, queue_share, tree, alpha, ... as it declares them."),
    "sharing": SHARING,
    "exact": flag("In fractions."),
}
OF_SOLVE = {
    "notion": text("The notion of fairness."),
    **_OPTIONS,
    "solver": nullable(text("The engine that was asked for; null: the first that can.")),
    "integral": flag("Whole tasks only."),
    "tolerance": number("Largest relative error that the certificate may have.", "fraction"),
    "digits": nullable(whole("Digits of irrational answers.", "1")),
    "solver_options": free("Options of the solver by name, as it spells them."),
    "time_limit_s": TIME_LIMIT,
}
OF_SCHEDULE = {
    "criterion": text("Who is next."),
    "placement": anything("The server of the next task: a name, or an object with a name and options."),
    **_OPTIONS,
    "ties": text("Who is next of equals."),
    "seed": SEED,
    "stop": text("When it stops."),
    "baseline": anything("A baseline: its name, or an object with its name and options."),
    "integral": flag("Whole tasks only."),
}
OF_GIVEN = {"notion": text("The notion that measures it."), "options": _OPTIONS["options"], "sharing": SHARING}
MADE = define("made", question("How an allocation was made: all arguments of fairopt.solve or fairopt.schedule.", OF_SOLVE | OF_SCHEDULE))

CERTIFICATE = define(
    "certificate",
    record(
        "The proof of an allocation, recomputed from it and from its prices; all numbers are relative residuals.",
        {
            "feasibility": number("By how much limits are exceeded.", "fraction"),
            "optimality": nullable(number("Distance from the optimum; null if the answer is not claimed to be one.", "fraction")),
            "fairness": nullable(number("Violation of what defines the notion.", "fraction")),
            "worst": nullable(number("The largest of these.", "fraction")),
            "whole_tasks": flag("Are all tasks whole?"),
            "greedy": flag("Is it a greedy schedule, which is not an optimum?"),
            "approximate": flag("Is it approximate by design?"),
            "best_found": flag("Is it the best found within the time limit, and not proved?"),
            "reported_gap": optional(flag("Is optimality the gap that branch and cut reports, and not recomputed?")),
            "exact": optional(flag("Is it proved in fractions?")),
            "radius": optional(number("Of an irrational answer in fractions: how far the optimum may be.", "fraction")),
            "distance": optional(nullable(number("How far the tasks of a single user may be from the optimum.", "fraction"))),
            "doubt": optional(number("The same, estimated where rounding hides prices or worths; not in worst.", "fraction")),
        },
    ),
)

USED = mapping({"type": "number"}, "Amount in use of each resource, in its unit.")
_PROMISE = {
    "resource": text("The resource."),
    "on": nullable(text("The group of servers; null: all servers.")),
    "amount": number("The amount that is promised, or allowed.", "amount"),
    "held": number("What the queue holds.", "amount"),
}
QUEUE = {
    "name": NAME,
    "parent": nullable(text("The queue that it is in; null: the root.")),
    "users": whole("Number of users below it.", "users"),
    "tasks": number("Tasks of all users below it.", "tasks"),
    "work": optional(number("The work that they do, where speeds are given.", "1")),
    "share": nullable(number("Sum of the shares of these users.", "fraction")),
    "dominant_share": number("The largest part of the cluster's capacity of a resource that it holds.", "fraction"),
    "dominant_resource": text("That resource."),
    "weight": number("Its weight.", "1"),
    "tier": whole("Its tier.", "1"),
    "order": optional(choice("How what is in it is served: by shares, or one after the other.", "fair", "listed")),
    "used": USED,
    "guarantees": items(
        record(
            "A guarantee.",
            _PROMISE
            | {
                "met": flag("Is it met?"),
                "missing": number("What is missing of it.", "amount"),
                "borrowed": number("What the queue holds beyond it.", "amount"),
                "exact": EXACT,
            },
        ),
        "Its guarantees.",
    ),
    "limits": items(
        record(
            "A limit.",
            _PROMISE
            | {
                "reached": flag("Is it reached?"),
                "price": nullable(number("Its dual price.", "1")),
                "exact": EXACT,
            },
        ),
        "Its limits.",
    ),
    "exact": EXACT,
}

VIOLATION = define(
    "violation",
    record(
        "A limit that an allocation exceeds.",
        {
            "limit": text("Which limit, such as cpu @ server-1."),
            "used": number("What is used.", "amount"),
            "allowed": number("What is allowed.", "amount"),
            "exact": EXACT,
        },
    ),
)

_SHORT = {
    "members": whole("How many shares are compared.", "shares"),
    "level": nullable(number("Relative shortfall of the smallest share.", "fraction")),
    "leximin": nullable(number("Both share lists sorted: the relative gap at the first difference.", "fraction")),
    "position": nullable(whole("Position of that difference, from 1.", "1")),
    "largest": nullable(number("The largest relative shortfall of a share.", "fraction")),
    "goal": nullable(number("Relative shortfall of the power mean, if the goal is a sum.", "fraction")),
    "total": number("Relative shortfall of the number of tasks, of any sign.", "fraction"),
}
REGRET_KEYS = _SHORT | {
    "notion": text("The notion of the exact allocation that is compared with."),
    "whole": flag("Is that allocation of whole tasks?"),
    "condition": nullable(number("Largest violation of the theorem, if the goal is an equilibrium.", "fraction")),
    "gap": number("How far the reference may lie below the optimum of whole tasks.", "fraction"),
    "best_found": flag("Is the reference the best found within the time limit, and not proved?"),
    "queue": nullable(number("Largest relative shortfall of the share of a queue.", "fraction")),
    "worst_queue": nullable(text("The queue that falls short by this.")),
    "worst_user": nullable(text("The user whose share falls short most.")),
    "tiny": texts("Users who have less than one task of the divisible optimum, and none here."),
    "others": nullable(record("The regret without these users.", _SHORT)),
    "worst": nullable(number("One number for any goal: largest, goal or condition.", "fraction")),
    "exact": EXACT,
}
REGRET = define("regret_numbers", record("How far an allocation is from the exact one.", REGRET_KEYS))
