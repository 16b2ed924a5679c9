"""`--set`, on every command that reads instances."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from support.command_line import EXAMPLES, flat, run

import fairopt as fo
from fairopt.cli import app
from fairopt.formats import schema as of_instances
from fairopt.results.schema import schema as of_results

LAB = EXAMPLES / "gpu-lab"
MORE = ("--set", "servers.dgx.count+=2", "--set", "users.vision.weight=4")
READ = (
    "solve",
    "schedule",
    "compare",
    "what-if",
    "audit",
    "explain",
    "formulate",
    "frontier",
    "report",
    "plan",
    "simulate",
    "history",
    "arrivals",
    "study",
    "explore",
)


def commands() -> dict[str, Any]:
    """Return every command by its full name."""
    group: Any = typer.main.get_command(app)
    found = {name: group.resolve_command(None, [name])[1] for name in group.commands}
    for name in ("import", "export"):
        found |= {f"{name} {inner}": command for inner, command in found.pop(name).commands.items()}
    return found


def test_every_command_that_reads_instances_has_the_option() -> None:
    """And no other: the names of their arguments say that they read one."""
    having = {name for name, command in commands().items() if any("--set" in parameter.opts for parameter in command.params)}
    assert having == {*READ, *(name for name in commands() if name.startswith("export "))}
    reading = {name for name, command in commands().items() if {"file", "cluster"} & {parameter.name for parameter in command.params}}
    assert reading - {"worst-case"} <= having  # whose --vary says what of the cluster changes


def test_the_answer_is_that_of_the_changed_instance() -> None:
    """Two more servers and another weight."""
    changed = fo.load(LAB).replace(counts={"dgx": 4}, weights={"vision": 4})
    printed = json.loads(run("solve", LAB, *MORE, "--json").stdout)
    expected = fo.solve(changed, "drfh").tasks_per_user
    assert [user["tasks"] for user in printed["users"]] == pytest.approx(expected, rel=1e-12)
    assert expected[1] > 1.2 * fo.solve(fo.load(LAB), "drfh").tasks_per_user[1]


@pytest.mark.parametrize(
    "command", [("solve",), ("schedule",), ("compare",), ("audit",), ("explain", "--user", "vision"), ("frontier",), ("study",)]
)
def test_the_question_of_a_result_names_what_was_changed(command: tuple[str, ...]) -> None:
    """Changes and rules as they were given; the next command has none of them."""
    name, *words = command
    changed = json.loads(run(name, LAB, *words, *MORE, "--rule", "x[vision] <= 40", "--json").stdout)
    assert (changed["question"]["changes"], changed["question"]["rules"]) == ([MORE[1], MORE[3]], ["x[vision] <= 40"])
    assert Draft202012Validator(of_results(of_instances())).is_valid(changed)
    assert not {"changes", "rules"} & json.loads(run(name, LAB, *words, "--json").stdout)["question"].keys()


@pytest.mark.parametrize(
    "command",
    [
        *((name, LAB) for name in READ if name not in ("simulate", "history")),
        ("simulate", LAB / "jobs.csv", "--cluster", LAB),
        ("history", LAB / "log.csv", "--cluster", LAB),
        *(("export", kind, LAB) for kind in ("slurm", "kueue", "volcano", "kai", "yunikorn", "yarn", "resourcequota")),
    ],
)
def test_a_wrong_change_is_bad_input(command: tuple[Any, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command makes the change before anything else: exit status 2, and what was meant."""
    monkeypatch.chdir(tmp_path)
    needed = {"explain": ("--user", "vision"), "plan": ("--allocation", LAB / "log.csv"), "arrivals": ("--resource", "gpu")}.get(
        command[0], ()
    )
    message = flat(run(*command, *needed, "--set", "users.visoin.weight=4", status=2).stderr)
    assert message == f'error: {LAB} with users.visoin.weight=4: there is no user "visoin" (did you mean "vision"?)'
    assert list(tmp_path.iterdir()) == []


def test_a_weight_without_effect_is_said_once(tmp_path: Path) -> None:
    """Each user is alone in its queue, or beside weight 0: the weight of a queue counts, and another one changes no task."""
    path = tmp_path / "lab.yaml"
    path.write_text(
        "servers: [{name: s, capacity: {gpu: 10}}]\nqueues: [{name: qa, weight: 3}, {name: qb}, {name: top}, {name: in, parent: top}]\n"
        "users:\n- {name: a, queue: qa, demand: {gpu: 1}}\n- {name: b, queue: qb, demand: {gpu: 1}}\n"
        "- {name: c, queue: in, demand: {gpu: 1}}\n- {name: d, queue: in, demand: {gpu: 1}, weight: 0}\n"
    )
    before = fo.load(path)
    for name, queue, change in (("a", "qa", "users.a.weight=4"), ("b", "qb", "users.b.weight+=2"), ("c", "top", "users.c.weight=4")):
        message = flat(run("solve", path, "--set", change, "--json").stderr)
        assert message.count("has no effect") == 1
        assert f"warning: {change}: the weight of {name} has no effect in the tree, because " in message
        assert message.endswith(f"; the weight of the queue {queue} counts instead")
        after = fo.load(path, changes=[change])
        assert fo.solve(after).tasks_per_user == pytest.approx(fo.solve(before).tasks_per_user)
    message = flat(run("solve", path, "--set", "queues.in.weight=4", "--json").stderr)
    assert "the weight of the queue in has no effect in the tree, because the queue in is alone in the queue top;" in message
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("user,submit_s,run_s,gpu\na,0,10,1\nb,1,10,1\n")
    message = flat(run("simulate", jobs, "--cluster", path, "--set", "users.a.weight=4").stderr)
    assert message.count("has no effect") == 1
    for change in ("queues.qa.weight=4", "users.d.weight=4", "users.a.weight=0", "users.a.demand.gpu=2"):
        assert "has no effect" not in run("solve", path, "--set", change, "--json").stderr


def test_units_are_set_together(tmp_path: Path) -> None:
    """They are a mapping: the hint shows how it is written, and works."""
    path = tmp_path / "lab.yaml"
    path.write_text("servers: [{name: s, capacity: {memory: 8}}]\nusers: [{name: a, demand: {memory: 1}}]\n")
    assert "units are set together; write units={memory: MiB}" in flat(run("solve", path, "--set", "units.memory=MiB", status=2).stderr)
    assert fo.load(path, changes=["units={memory: MiB}"]).units == {"memory": "MiB"}


def test_a_study_changes_files_only(tmp_path: Path) -> None:
    """An instance that is generated takes options of its generator; with files beside it, these are changed."""
    path, generated = tmp_path / "lab.yaml", ("--generate", "google:users=2:servers=2")
    path.write_text("servers: [{name: s, capacity: {gpu: 8}}]\nusers: [{name: a, demand: {gpu: 1}}]\n")
    refused = flat(run("study", *generated, "--set", "users.a.demand.gpu=2", status=2).stderr)
    assert "it changes files, and there are none; give options in --generate SPEC" in refused
    rows = json.loads(run("study", path, *generated, "--set", "users.a.demand.gpu=2", "--json").stdout)["rows"]
    assert next(row["tasks"] for row in rows if row["instance"] == "lab") == pytest.approx(4)
