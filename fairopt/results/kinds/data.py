"""Results of research and of data: studies, worst cases, published results; imports, exports, files; lists of choices."""

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
from fairopt.results.kinds.parts import MADE, NAME, NOTIONS, REGRET, SCHEDULES, SEED, SHARING, SPEC, TIME_LIMIT, kind, question, time

__all__ = ["KINDS"]

_MEASURES = {
    "tasks": ("Number of tasks", "tasks"),
    "efficiency": ("Weighted number of tasks, of the most possible", "fraction"),
    "price_of_fairness": ("Tasks lost, of the most possible", "fraction"),
    "smallest_share": ("Smallest weighted dominant share", "fraction"),
    "jain": ("Jain's index of the weighted dominant shares", "fraction"),
    "envy": ("The largest envy", "tasks"),
    "regret_level": ("Relative shortfall of the smallest share", "fraction"),
    "regret_worst": ("The regret in one number", "fraction"),
    "time_s": ("How long it took", "s"),
}
_GRID = items(items({"type": "number"}, ""), "Tasks (users, servers).")
_NO_QUESTION = question("Nothing is asked.", {})
_ENTRY = {"name": NAME, "id": old(text(""), "name"), "title": text("What it is, in one line."), "from": text("The package that has it.")}


def _listing(command: str, words: str, keys: dict[str, Schema]) -> Schema:
    """A list of choices."""
    return kind(command, words, _NO_QUESTION, {command: items(record("An entry.", keys), words)})


KINDS: dict[str, Schema] = {
    "study": kind(
        "study",
        "Means and standard errors over seeds, of notions and schedules on instances.",
        question(
            "All arguments of fairopt.study.",
            {
                "instances": texts("The instances: files and generators."),
                "notions": NOTIONS,
                "schedules": SCHEDULES,
                "seeds": items({"type": "integer"}, "The seeds."),
                "integral": flag("Also whole tasks."),
                "sharing": nullable(SHARING),
                "time_limit_s": TIME_LIMIT,
            },
        ),
        {
            "rows": items(
                record(
                    "A notion or schedule on an instance.",
                    {
                        "name": text("The notion or schedule."),
                        "instance": text("The instance."),
                        "entry": old(text(""), "name"),
                        "kind": text("exact, greedy, ...; of all seeds."),
                        "seeds": whole("Seeds with an allocation.", "seeds"),
                        "failed": whole("Seeds without one.", "seeds"),
                        **{name: nullable(number(f"{words}: the mean.", unit)) for name, (words, unit) in _MEASURES.items()},
                        **{
                            f"{name}_error": nullable(number(f"{words}: the standard error of the mean.", unit))
                            for name, (words, unit) in _MEASURES.items()
                        },
                        "use": mapping({"type": ["number", "null"]}, "Mean fraction of the capacity in use, by resource."),
                        "use_error": mapping({"type": ["number", "null"]}, "Standard error of the same."),
                    },
                ),
                "Each notion and schedule on each instance.",
            ),
            "failed": items(
                record(
                    "A cell without an allocation.",
                    {
                        "name": text("The notion or schedule."),
                        "instance": text("The instance."),
                        "seed": SEED,
                        "message": text("Why."),
                    },
                ),
                "What has no allocation, and why.",
            ),
        },
    ),
    "worst-case": kind(
        "worst-case",
        "The instance on which a schedule is worst, of those that were tried.",
        question(
            "All arguments of fairopt.worst_case.",
            {
                "schedule": text("The schedule."),
                "notion": {**SPEC, "description": "The notion that it is measured against."},
                "users": whole("Users of the instances.", "users"),
                "servers": whole("Rows of servers.", "servers"),
                "resources": whole("Resources.", "resources"),
                "capacities": items({"type": "integer"}, "Smallest and largest capacity that is drawn."),
                "demands": items({"type": "integer"}, "Smallest and largest demand that is drawn."),
                "vary": texts("What else is drawn."),
                "measure": text("The measure of regret."),
                "integral": nullable(flag("Is the reference of whole tasks?")),
                "seed": SEED,
                "tries": whole("Instances to try.", "instances"),
                "time_limit_s": TIME_LIMIT,
                "keep_regret": number("Part of the regret that shrinking keeps.", "fraction"),
                "local": flag("With local search?"),
                "exact": flag("Is the regret proved in fractions?"),
            },
        ),
        {
            "name": text("The schedule."),
            "schedule": old(text(""), "name"),
            "notion": text("The notion that it is measured against."),
            "measure": text("The measure of regret."),
            "value": number("The regret of this instance.", "fraction"),
            "exact": optional(text("The same as a fraction, proved.")),
            "regret": REGRET,
            "instance": reference("instance", "The instance, after shrinking."),
            "tasks": record(
                "Both allocations.",
                {
                    "schedule": _GRID,
                    "exact": _GRID,
                    "in_fractions": optional(free("Both as fractions.")),
                },
            ),
            "found": record(
                "What was found before shrinking.",
                {"value": number("Its regret.", "fraction"), "instance": reference("instance", "The instance.")},
            ),
            "tries": whole("Instances that were tried.", "instances"),
            "failed": whole("Instances that were not solved.", "instances"),
            "seed": SEED,
            "stopped": text("What ended the search early: time limit, or interrupted; else empty."),
            **time("How long the search took."),
        },
    ),
    "worst-case-bound": kind(
        "worst-case-bound",
        "The worst instance found of those with the topology of a cluster, and a bound on all within the ranges.",
        question(
            "All arguments of fairopt.worst_case with a cluster.",
            {
                "schedule": text("The heuristic."),
                "notion": {**SPEC, "description": "The notion that it is measured against."},
                "vary": mapping(anything(""), "The ranges: for each name the smallest and the largest numbers."),
                "where": texts("Rules on the numbers that vary."),
                "measure": text("The measure of regret."),
                "bound": flag("Is a bound asked for?"),
                "gap": number("How far apart both ends may stay.", "fraction"),
                "integral": nullable(flag("Is the reference of whole tasks?")),
                "seed": SEED,
                "tries": whole("Instances to try, without a bound.", "instances"),
                "time_limit_s": TIME_LIMIT,
                "exact": flag("Is the regret proved in fractions?"),
            },
        ),
        {
            "name": text("The heuristic."),
            "notion": text("The notion that it is measured against."),
            "measure": text("The measure of regret."),
            "value": number("The regret of the instance.", "fraction"),
            "bound": nullable(number("No instance has a larger regret; null of a search without a bound.", "fraction")),
            "gap": nullable(number("How far apart both ends are.", "fraction")),
            "exact": optional(text("The value as a fraction, proved.")),
            "regret": REGRET,
            "instance": reference("instance", "The worst instance found."),
            "tasks": record("Both allocations.", {"own": _GRID, "exact": _GRID}),
            "nodes": whole("Parts that were bounded; without a bound, instances that were tried.", "parts"),
            "open_parts": whole("Parts that were not bounded yet.", "parts"),
            "stopped": text("What ended the search early: time limit, or interrupted; else empty."),
            "proof": text("How the bound is proved."),
            "time_s": nullable(number("How long the search took.", "s")),
        },
    ),
    "reproduce": kind(
        "reproduce",
        "Published results beside our own.",
        question(
            "What is reproduced.",
            {
                "experiments": texts("Which; empty: all."),
                "quick": flag("With fewer trials?"),
                "exact": flag("In fractions?"),
                "data": nullable(text("Folder of public traces.")),
            },
        ),
        {
            "quick": old(flag(""), "question"),
            "unexpected": whole("Results that differ without a known reason.", "results"),
            "experiments": items(
                record(
                    "An experiment.",
                    {
                        "name": NAME,
                        "id": old(text(""), "name"),
                        "title": text("What it is."),
                        "source": text("The paper."),
                        "results": items(
                            record(
                                "A result.",
                                {
                                    "name": NAME,
                                    "id": old(text(""), "name"),
                                    "what": text("What it is."),
                                    "citation": text("Where it is printed."),
                                    "published": nullable(items({}, "Numbers as printed; null: the paper prints none.")),
                                    "ours": items({}, "Our numbers."),
                                    "tolerance": nullable(number("How far they may differ.", "as printed")),
                                    "mean": flag("Is it a mean of random trials?"),
                                    "verdict": text("Do they agree?"),
                                    "note": text("The reason of a difference."),
                                    "kind": text(
                                        "What ours claims: exact, greedy, approximate, cluster, memory, decentralised, or nothing."
                                    ),
                                    "residual": nullable(number("The largest relative error of the certificate of ours.", "fraction")),
                                },
                            ),
                            "Its results.",
                        ),
                    },
                ),
                "The experiments.",
            ),
            **time(),
        },
    ),
    "report": kind(
        "report",
        "A report that was written.",
        question(
            "All arguments of fairopt.report.",
            {
                "notions": NOTIONS,
                "schedules": SCHEDULES,
                "allocations": texts("Your own allocations, by name."),
                "explain": texts("Users that are explained."),
                "sharing": SHARING,
                "effort": whole("Lies to try in audits, at most.", "solves"),
                "seed": SEED,
                "time_limit_s": TIME_LIMIT,
                "title": text("Title of the page."),
                "date": text("What the page is dated, as 2026-11-26."),
                "one_page": flag("Is it only who gets what, on one page for print?"),
            },
        ),
        {
            "file": text("The page."),
            "bytes": whole("Its size.", "bytes"),
            "solved": texts("Notions that were solved."),
            "unsolved": texts("Notions that were not."),
        },
    ),
    "generate": kind(
        "generate",
        "A random instance that was written.",
        question("What was drawn.", {"spec": text("The generator with its parameters."), "seed": SEED}),
        {
            "file": text("The file or folder."),
            "users": whole("Users of the instance.", "users"),
            "servers": whole("Its servers.", "servers"),
            "server_rows": whole("Its rows of identical servers.", "rows"),
            "resources": texts("Its resources."),
            "queues": whole("Its queues.", "queues"),
        },
    ),
    "import": kind(
        "import",
        "What was read of a real cluster.",
        {**free("All arguments of the import: files, and how they are read."), "additionalProperties": True},
        {
            "kind": text("kubernetes, slurm, pbs, htcondor, yarn, ray, openb, google2011, swf or gavel."),
            "summary": free("What was read: numbers by kind of record."),
            "users": whole("Users of the instance.", "users"),
            "servers": whole("Its servers.", "servers"),
            "server_rows": whole("Its rows of identical servers.", "rows"),
            "resources": mapping(
                record(
                    "A resource.",
                    {
                        "unit": text("Its unit, empty where it is unknown."),
                        "capacity": number("What there is.", "amount"),
                        "asked": number("What all tasks ask for.", "amount"),
                        "held": number("What running tasks hold.", "amount"),
                    },
                ),
                "The resources, by name.",
            ),
            "owners": items(
                record(
                    "An owner of tasks.",
                    {
                        "name": NAME,
                        "owner": old(text(""), "name"),
                        "weight": number("Its weight.", "1"),
                        "users": whole("Its users: shapes of its tasks.", "users"),
                        "tasks": nullable(number("Its tasks; null: without limit.", "tasks")),
                        "running": number("Tasks that run.", "tasks"),
                        "asks": number("The largest part of a resource of the cluster that it asks for.", "fraction"),
                        "holds": number("The largest part that it holds.", "fraction"),
                    },
                ),
                "The owners of tasks.",
            ),
            "options": free("What a guarantee means in this system, and what counts: options of fairopt.solve."),
            "notion": text("The notion that measures shares as this system does."),
            "current": flag("Do the exports say where tasks run?"),
            "left_out": items(
                record(
                    "Records that were left out for one reason.",
                    {
                        "what": text("Kind of record."),
                        "why": text("Why."),
                        "number": number("How many.", "records"),
                        "first": text("The first of them: file, place and name."),
                    },
                ),
                "What was left out, and why.",
            ),
            "notes": texts("Where the instance is an approximation of the cluster."),
        },
    ),
    "export": kind(
        "export",
        "An allocation as limits or quotas of a real scheduler.",
        record("All arguments of the export.", {"allocation": optional(MADE)}) | {"additionalProperties": True},
        {
            "kind": text("slurm, kueue, volcano, kai, yunikorn, yarn or resourcequota."),
            "notion": text("The notion of the allocation."),
            "users": items(
                record(
                    "A user.",
                    {
                        "name": NAME,
                        "tasks": number("Tasks of the allocation.", "tasks"),
                        "whole": whole("Whole tasks that are exported.", "tasks"),
                        "placed": mapping({"type": "integer"}, "The same on each group of servers."),
                    },
                ),
                "The users.",
            ),
            "groups": items(record("A group of servers.", {"name": NAME, "servers": texts("Its rows.")}), "Groups of servers."),
            "names": mapping({"type": "string"}, "Names in the files, by label."),
            "notes": texts("What was rounded, renamed, or cannot be expressed."),
            "less": texts("Who would have less than was exported, if the files are read back and solved again."),
            "files": mapping({"type": "string"}, "The texts, by what they are."),
        },
    ),
    "notions": _listing(
        "notions",
        "The notions of fairness.",
        _ENTRY
        | {
            "satisfies": mapping({"type": "string"}, "Properties that are proved of it, and where."),
            "conditions": texts("What the proofs assume."),
            "source": text("Where it is published."),
        },
    ),
    "solvers": _listing(
        "solvers",
        "The engines.",
        _ENTRY
        | {
            "features": texts("What programs that it solves may have."),
            "installed": flag("Is it installed?"),
            "install": text("What to install where it is not."),
        },
    ),
    "placements": _listing(
        "placements",
        "The placements of schedules, the criteria that are not notions, and the baselines.",
        _ENTRY | {"kind": text("placement, criterion or baseline."), "source": text("Where it is published.")},
    ),
    "schedulers": _listing(
        "schedulers",
        "The schedulers that fairopt simulate follows.",
        {
            "name": NAME,
            "kind": text("How it schedules."),
            "title": text("What it is, in one line."),
            "example": text("How it is written, with options."),
        },
    ),
    "generators": _listing(
        "generators",
        "The generators of random instances; fairopt generate without SPEC prints them.",
        {
            "name": NAME,
            "title": text("What it draws."),
            "parameters": mapping(anything("The default; null: none."), "Its parameters."),
            "passes_on": flag("Does it take the parameters of another generator, too?"),
        },
    ),
}
