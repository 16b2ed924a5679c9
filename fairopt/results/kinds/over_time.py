"""Results over time: simulations, histories, arrivals."""

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
    number_or_inf,
    old,
    optional,
    record,
    text,
    texts,
    whole,
)
from fairopt.results.kinds.parts import NAME, SEED, SPEC, kind, question, time

__all__ = ["KINDS"]

_RATIOS = {
    "finish_ratio_largest": nullable(
        number("Largest finish-time ratio of the jobs: time from submission to end over the same alone.", "1")
    ),
    "finish_ratio_median": nullable(number("Median of the same.", "1")),
    "finish_ratio_p90": nullable(number("Its 90th percentile.", "1")),
    "finish_ratio_above_1": whole("Jobs that ended later than alone, with the slice of the weight of their user.", "jobs"),
}
_USERS = {
    "jobs": whole("Number of jobs.", "jobs"),
    "jobs_ended": whole("Jobs that ended.", "jobs"),
    "tasks": nullable(number("Number of tasks.", "tasks")),
    "tasks_ended": nullable(number("Tasks that ended; of a fluid simulation, parts of tasks count.", "tasks")),
    "completion_ratio": nullable(number("Part of the tasks that ended.", "fraction")),
    "mean_completion_s": nullable(number("Mean time from submission to end of the jobs that ended.", "s")),
    **_RATIOS,
}
_OLD_COUNTS = {"finished": old(whole("", "jobs"), "jobs_ended"), "ended": old(number("", "1"), "jobs_ended or tasks_ended")}

_SCHEDULED = {
    "wait_s": nullable(number("Mean time from submission to start of the jobs that started.", "s")),
    "slowdown": nullable(number("Mean time in the system over the time to run, of the jobs that ended.", "1")),
    "bounded_slowdown": nullable(number("The same, where no job counts as shorter than 10 s.", "1")),
    "makespan_s": nullable(number("When the last job ended.", "s")),
    "utilization": nullable(number("Mean part in use of the resource that is used most.", "fraction")),
    "shortfall_h": nullable(number("What waiting users lacked of the exact simulation.", "share-hours")),
    "regret": nullable(number("The same, of what users received there.", "fraction")),
    "envy_h": nullable(number("What waiting users would have had more with the share of another.", "share-hours")),
    "jain": nullable(number("Mean of Jain's index over the windows.", "fraction")),
}
_HALF_LIFE = nullable(number_or_inf("Half-life of its memory; inf: it never fades. Null: it has no memory.", "s"))
_SIMULATED = {
    "complete": flag("Did every scheduler run to its end?"),
    "not_begun": texts("Schedulers that had not begun when the work was stopped."),
    "reference": nullable(text("The exact simulation that shortfalls are measured against; null: one scheduler alone.")),
    "exact": old(nullable(text("")), "reference"),
    "window_s": nullable(number("Length of a window of Jain's index.", "s")),
    "schedulers": items(
        record(
            "A scheduler; null is what is not measured, or not of one scheduler alone.",
            {
                "name": NAME,
                "scheduler": old(text(""), "name"),
                "kind": text("greedy: whole tasks. Others are fluid: divided tasks."),
                "half_life_s": _HALF_LIFE,
                "jobs": whole("Number of jobs.", "jobs"),
                "started": whole("Jobs that started.", "jobs"),
                "jobs_ended": whole("Jobs that ended.", "jobs"),
                "ended": old(whole("", "jobs"), "jobs_ended"),
                "tasks": whole("Number of tasks.", "tasks"),
                "tasks_ended": nullable(number("Tasks that ended.", "tasks")),
                "fits_nowhere": nullable(texts("Jobs that are never started, since no server can hold one of their tasks.")),
                "wait_s": _SCHEDULED["wait_s"],
                "slowdown": _SCHEDULED["slowdown"],
                "bounded_slowdown": _SCHEDULED["bounded_slowdown"],
                "mean_completion_s": nullable(number("Mean time from submission to end of the jobs that ended.", "s")),
                "median_completion_s": nullable(number("Median of the same.", "s")),
                "makespan_s": _SCHEDULED["makespan_s"],
                "utilization": _SCHEDULED["utilization"],
                "utilization_of": mapping({"type": ["number", "null"]}, "Mean part in use of each resource."),
                "limit_use": mapping(
                    {"type": "number"}, "Mean part of each named limit in use; of one with rows for each, the fullest row."
                ),
                "limit_most": mapping({"type": "number"}, "The largest part of each at any sample."),
                "shortfall_h": _SCHEDULED["shortfall_h"],
                "regret": _SCHEDULED["regret"],
                "envy_h": _SCHEDULED["envy_h"],
                "jain": _SCHEDULED["jain"],
                **_RATIOS,
                "until_s": nullable(number("Time up to which it ran; null: until nothing more could happen.", "s")),
                "complete": flag("Did it run to its end?"),
                "details": free("What else the simulation says: programs solved, worst residual, options of the scheduler."),
            },
        ),
        "The schedulers.",
    ),
    "users": items(
        record(
            "A user under a scheduler; null is what is not measured, or not of one scheduler alone.",
            {
                "name": NAME,
                "user": old(text(""), "name"),
                "scheduler": text("The scheduler."),
                "queue": optional(nullable(text("The queue that it is in; null: the root."))),
                "weight": number("Its weight.", "1"),
                **_USERS,
                **_OLD_COUNTS,
                "wait_s": nullable(number("Mean time from submission to start of its jobs that started.", "s")),
                "bounded_slowdown": nullable(number("Mean bounded slowdown of its jobs that ended.", "1")),
                "share_h": nullable(number("Integral of its dominant share.", "share-hours")),
                "shortfall_h": nullable(number("What it lacked of the exact simulation while it waited.", "share-hours")),
                "envy_h": nullable(number("What it would have had more with the share of another.", "share-hours")),
            },
        ),
        "Each user under each scheduler.",
    ),
    "queues": items(
        record(
            "A queue, with all users below it.",
            {
                "name": NAME,
                "queue": old(text(""), "name"),
                "parent": nullable(text("The queue that it is in; null: it is the whole cluster.")),
                **_USERS,
                **_OLD_COUNTS,
            },
        ),
        "Of one scheduler on a cluster with queues: the whole cluster, then each queue, followed by those below it.",
    ),
    "regret_over_time": nullable(
        items(
            {"type": "object", "additionalProperties": {"type": ["number", "null"]}},
            "Of one scheduler: distance from the exact allocation at some moments; time_s and relative measures.",
        )
    ),
    "settling": nullable(
        items(
            {"type": "object", "additionalProperties": {"type": ["number", "null"]}},
            "Asynchronous servers: how many periods after a change of the exact allocation they come close to it.",
        )
    ),
    **time(),
    "scheduler": old(text(""), "schedulers"),
    "kind": old(text(""), "schedulers"),
    "until": old(nullable(number("", "s")), "until_s of schedulers"),
    "jobs": old(whole("", "jobs"), "schedulers"),
    "jobs_finished": old(whole("", "jobs"), "ended of schedulers"),
    "tasks": old(whole("", "tasks"), "schedulers"),
    "tasks_ended": old(number("", "tasks"), "schedulers"),
    "fits_nowhere": old(texts(""), "schedulers"),
    "makespan": old(nullable(number("", "s")), "makespan_s of schedulers"),
    "completion_mean": old(nullable(number("", "s")), "mean_completion_s of schedulers"),
    "completion_median": old(nullable(number("", "s")), "median_completion_s of schedulers"),
    "utilization": old(mapping({"type": ["number", "null"]}, ""), "utilization_of of schedulers"),
    "regret": old(nullable(items({"type": "object"}, "")), "regret_over_time"),
    **{
        name: old(anything(""), "details of schedulers")
        for name in ("solved", "residual", "half_life", "follow", "period", "alpha", "phases", "seed", "sharing", "actions")
    },
}

_SHARE_HOURS = {
    "entitled": number("What the exact allocation would have given.", "share-hours"),
    "received": number("What was received.", "share-hours"),
    "shortfall": number("What was received less than that, while it was less.", "share-hours"),
    "surplus": number("What was received more than that, while it was more.", "share-hours"),
}
_SHARES = {
    "entitled": nullable(number("Mean share that the exact allocation would have given.", "fraction")),
    "received": nullable(number("Mean share that was received.", "fraction")),
    "shortfall": nullable(number("Mean shortfall.", "fraction")),
    "surplus": nullable(number("Mean surplus.", "fraction")),
}
_ERRORS = {
    "shortfall_error": number("Standard error of the shortfall, where moments were sampled.", "share-hours"),
    "surplus_error": number("Standard error of the surplus.", "share-hours"),
}
_DURATION = {"duration_s": number("How long it is.", "s"), "hours": old(number("", "h"), "duration_s")}
_CONTENDED = {"contended_s": number("Time in which work waited.", "s"), "contended_hours": old(number("", "h"), "contended_s")}


def _moment(words: str) -> Schema:
    """A time of a log."""
    return {"type": ["string", "number"], "description": f"{words}: ISO 8601; of a log without dates, its seconds.", "x-unit": "s"}


_START, _END = _moment("Its start"), _moment("Its end")

_HISTORY = {
    "notion": text("The notion that is compared with."),
    "start": _moment("Start of the first window"),
    "end": _moment("End of the last window"),
    **_DURATION,
    **_CONTENDED,
    "jobs": whole("Jobs in the log.", "jobs"),
    "exact": flag("Was every change judged? Else random moments."),
    "contended_changes": whole("Changes while work waited.", "changes"),
    "moments": whole("Moments that were judged.", "moments"),
    "solved": whole("Exact allocations that were computed.", "solves"),
    "residual": number("Worst residual of their certificates.", "fraction"),
    **_SHARE_HOURS,
    **_ERRORS,
    **_RATIOS,
    "owners": items(
        record(
            "An owner of tasks.",
            {
                "name": NAME,
                "owner": old(text(""), "name"),
                "queue": optional(nullable(text("Its queue."))),
                "weight": number("Its weight.", "1"),
                **_SHARE_HOURS,
                "entitled_tasks": number("Tasks that the exact allocation would have run.", "task-hours"),
                "received_tasks": number("Tasks that ran.", "task-hours"),
                "shortfall_tasks": number("Shortfall in tasks.", "task-hours"),
                "surplus_tasks": number("Surplus in tasks.", "task-hours"),
                "envy": nullable(number("Envy of other owners; null: the log does not say where jobs ran.", "task-hours")),
                "waiting": number("Tasks that waited.", "task-hours"),
                **{name: optional(key) for name, key in _ERRORS.items()},
                **_RATIOS,
            },
        ),
        "The owners.",
    ),
    "queues": items(
        record(
            "A queue: what its owners have together.",
            {"name": NAME, "queue": old(text(""), "name"), "owners": number("Its owners.", "owners"), **_SHARE_HOURS},
        ),
        "The queues.",
    ),
    "limits": items(
        record(
            "A resource of the cluster, or a named limit; of one with a row for each owner, queue or server, the fullest row.",
            {
                "kind": text("shared: a resource of the cluster. limit: a named limit."),
                "name": text("Its name."),
                "bound": number("Its amount, or its bound.", "amount"),
                "mean_use": number("Mean part of it in use.", "fraction"),
                "most_use": number("Largest part of it in use.", "fraction"),
            },
        ),
        "Resources of the cluster and named limits.",
    ),
    "by_hour": items(
        record("An hour of the day.", {"hour": whole("Which, from 0 to 23.", "h"), **_DURATION, **_SHARES}),
        "Means by hour of the day, of all owners together.",
    ),
    "windows": items(
        record(
            "A window.",
            {
                "start": _START,
                "end": _END,
                **_DURATION,
                **_CONTENDED,
                **_SHARE_HOURS,
                "exact": flag("Was every change judged?"),
                **_ERRORS,
            },
        ),
        "The windows that were judged.",
    ),
    "worst": items(
        record(
            "A part of the time.",
            {
                "start": _START,
                "end": _END,
                "shortfall": number("Its shortfall.", "share-hours"),
                "lacked": mapping({"type": "number"}, "Mean share that owners lacked."),
                "beyond": mapping({"type": "number"}, "Mean share that owners had beyond theirs."),
            },
        ),
        "The parts of the time with the largest shortfall.",
    ),
    "unjudged": items(
        record(
            "Jobs that were not judged.",
            {
                "why": text("Why."),
                "jobs": whole("How many.", "jobs"),
                "task_hours": nullable(number("How much they ran.", "task-hours")),
                "first": text("The first of them."),
            },
        ),
        "Jobs that were not judged.",
    ),
    "notes": texts("What must be said."),
    **time(),
}

_QUANTILES = {"type": "array", "items": {"type": "number"}}

KINDS: dict[str, Schema] = {
    "simulate": kind(
        "simulate",
        "Schedulers on a trace of jobs over time: one, or several side by side.",
        question(
            "Arguments of fairopt.simulate and fairopt.compare_over_time.",
            {
                "schedulers": items(SPEC, "The schedulers."),
                "reference": text("The exact simulation that shortfalls are measured against."),
                "until_s": nullable(number("End of the simulation; null: when nothing more can happen.", "s")),
                "step_s": nullable(number("Time between samples.", "s")),
                "window_s": number("Length of a window of Jain's index.", "s"),
                "regret": whole("At how many moments the running tasks are compared with the exact allocation.", "moments"),
            },
        ),
        _SIMULATED,
    ),
    "study-over-time": kind(
        "study-over-time",
        "Traces on clusters under schedulers, with seeds.",
        question(
            "All arguments of fairopt.study_over_time.",
            {
                "simulations": texts("The simulations: each a trace on a cluster."),
                "schedulers": texts("The schedulers."),
                "seeds": items({"type": "integer"}, "The seeds."),
                "reference": text("The exact simulation that shortfalls are measured against."),
                "until_s": nullable(number("End of the simulations; null: when nothing more can happen.", "s")),
            },
        ),
        {
            "rows": items(
                record(
                    "A cell; null is what is not measured, or all that a cell that failed has not.",
                    {
                        "name": text("The scheduler."),
                        "simulation": text("The trace on its cluster."),
                        "seed": SEED,
                        "kind": nullable(text("greedy: whole tasks. Others are fluid: divided tasks.")),
                        "half_life_s": _HALF_LIFE,
                        **{
                            name: nullable(number(words, "jobs"))
                            for name, words in (("jobs", "Jobs."), ("started", "Jobs that started."), ("jobs_ended", "Jobs that ended."))
                        },
                        **_SCHEDULED,
                        "bounded_slowdown_largest": nullable(number("The largest bounded slowdown of a job that ended.", "1")),
                        **{name: nullable(number(ratio["description"], "1")) for name, ratio in _RATIOS.items()},
                        "message": text("Why it failed; empty: it did not."),
                    },
                ),
                "Each simulation with each seed under each scheduler.",
            )
        },
    ),
    "history": kind(
        "history",
        "What owners received in the log of a cluster, and what the exact allocation would have given them.",
        question(
            "All arguments of fairopt.history.",
            {
                "notion": {**SPEC, "description": "The notion."},
                "windows": items(items(_moment("A start or an end"), "Start and end."), "Periods that are judged."),
                "every": anything("Length of a window."),
                "moments": anything("Moments that are judged at most; all: every change."),
                "users": nullable(text("What an owner is in the log.")),
                "timezone": nullable(text("Time zone of the log.")),
                "changes": anything("Changes to the file of the cluster."),
                "rules": texts("Limits on tasks beside those of the cluster."),
                "seed": SEED,
                "lenient": flag("Are bad records left out?"),
            },
        ),
        _HISTORY,
    ),
    "arrivals": kind(
        "arrivals",
        "How much of a resource each placement allocates, as tasks arrive in random order.",
        question(
            "All arguments of fairopt.arrivals.",
            {
                "resource": text("The resource."),
                "placements": texts("The placements."),
                "cards": nullable(text("The resource that comes in cards.")),
                "load": number("Demand that arrives, of the capacity.", "fraction"),
                "load_step": number("Distance between two points, of the capacity.", "fraction"),
                "until": old(number("", "fraction"), "load"),
                "step": old(number("", "fraction"), "load_step"),
                "seeds": items({"type": "integer"}, "Seeds of the orders of arrival."),
            },
        ),
        {
            "resource": text("The resource that is measured."),
            "cards": nullable(text("The resource that comes in cards.")),
            "seeds": items({"type": "integer"}, "Seeds of the orders of arrival."),
            "points": {**items({"type": "number"}, "Demand that has arrived, of the capacity."), "x-unit": "fraction"},
            "curves": items(
                record(
                    "A placement, or the bound.",
                    {
                        "name": NAME,
                        "kind": text("greedy, or fluid bound, a relaxation."),
                        "quantiles": mapping(_QUANTILES, "Quantiles over the seeds of the allocated part, at each point."),
                        "leaves_bound": optional(
                            items({"type": ["number", "null"]}, "For each seed: the point at which it is 1 % below the bound.")
                        ),
                    },
                ),
                "The placements, and the bound on every allocation.",
            ),
            "residual": number("Worst residual of the certificates of the bound.", "fraction"),
            **time(),
        },
    ),
}
