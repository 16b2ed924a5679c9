"""Every command with --json, on small examples: one object, as `fairopt schema result` declares it."""

from __future__ import annotations

import json
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from support.command_line import EXAMPLES
from typer.testing import CliRunner

import fairopt as fo
from fairopt.cli import _PANELS, _load, app
from fairopt.formats import schema as instance_schema
from fairopt.results.schema import KINDS, schema

EXPORTS = Path(__file__).parents[1] / "clusters" / "exports"
LAB, PAPER, QUEUES = EXAMPLES / "gpu-lab", EXAMPLES / "kesidis.yaml", EXAMPLES / "research-queues.yaml"
DRF = EXAMPLES / "drf.yaml"
JOBS, LOG = LAB / "jobs.csv", LAB / "log.csv"
VALIDATOR = jsonschema.Draft202012Validator(schema(instance_schema()))

CASES: dict[str, list[tuple[Any, ...]]] = {  # command: arguments of some calls
    "solve": [
        (LAB,),
        (QUEUES,),
        (QUEUES, "--exact"),
        (LAB, "--notion", "psdsf", "--exact"),
        (DRF, "--notion", "proportional", "--exact"),
        (DRF, "--integral"),
    ],
    "schedule": [(PAPER,), (PAPER, "--exact")],
    "compare": [
        (PAPER, "--notions", "drfh,psdsf", "--schedules", "drfh:best-fit,psdsf:joint", "--integral"),
        (QUEUES, "--schedules", "drfh:best-fit", "--by", "owner"),
        (PAPER, "--exact", "--schedules", "drfh:best-fit"),
        (QUEUES, "--notions", "bbf"),
    ],
    "what-if": [(LAB, "--set", "servers.dgx.count+=1", "--set", "users.vision.weight=4")],
    "audit": [(DRF, "--notion", "efficiency"), (DRF, "--exact"), (QUEUES, "--schedule", "drfh:best-fit", "--effort", 2)],
    "explain": [
        (LAB, "--user", "vision", "--against", "language", "--resolves", 2),
        (DRF, "--user", "A", "--exact", "--resolves", 1),
        (QUEUES, "--queue", "vision", "--resolves", 1),
    ],
    "frontier": [(PAPER, "--fds", "2:-1", "--schedules", "drfh:best-fit")],
    "report": [(DRF, "--notions", "drf", "--effort", 1, "-o", "page.html")],
    "history": [
        (LOG, "--cluster", LAB, "--moments", 5),
        (LOG, "--cluster", LAB, "--moments", 5, "--every", "12h"),
        ("seconds.csv", "--cluster", DRF),
    ],
    "simulate": [
        (JOBS, "--cluster", LAB, "--regret", 2),
        (JOBS, "--cluster", LAB, "--scheduler", "drfh"),
        (JOBS, "--cluster", LAB, "--scheduler", "drfh:follow=1:period=20000"),
        (JOBS, "--cluster", LAB, "--scheduler", "drfh:best-fit", "--scheduler", "fairtree:half_life=1d", "--step", 3000),
    ],
    "arrivals": [("pool.yaml", "--resource", "gpu", "--seeds", 2)],
    "study": [(DRF, "--generate", "google:users=3:servers=2", "--notions", "drfh,bbf", "--schedules", "drfh:best-fit", "--seeds", 2)],
    "worst-case": [
        ("drfh:first-fit", "--servers", 1, "--users", 2, "--tries", 5),
        ("drfh:first-fit", "--servers", 1, "--users", 2, "--tries", 5, "--exact"),
    ],
    "reproduce": [("drf", "--exact"), ("drf",)],
    "generate": [(), ("google:users=3:servers=2", "-o", "drawn.yaml")],
    "import": [
        ("kubernetes", "--nodes", EXPORTS / "kubernetes_nodes.json", "--pods", EXPORTS / "kubernetes_pods.json"),
        (
            *("slurm", "--nodes", EXPORTS / "slurm_nodes.json", "--jobs", EXPORTS / "slurm_jobs.json"),
            *("--associations", EXPORTS / "slurm_associations.json"),
        ),
        ("pbs", "--nodes", EXPORTS / "pbs_nodes.json", "--jobs", EXPORTS / "pbs_jobs.json"),
        ("htcondor", "--nodes", EXPORTS / "htcondor_slots.json", "--jobs", EXPORTS / "htcondor_jobs.json"),
        ("yarn", "--nodes", EXPORTS / "yarn_nodes.json", "--apps", EXPORTS / "yarn_apps.json"),
        ("ray", "--nodes", EXPORTS / "ray_nodes.json", "--tasks", EXPORTS / "ray_tasks.json"),
        ("openb", "--nodes", EXPORTS / "openb_nodes.csv", "--pods", EXPORTS / "openb_pods.csv"),
        ("google2011", "--machines", EXPORTS / "google_machines.csv", "--tasks", EXPORTS / "google_tasks.csv"),
        ("swf", EXPORTS / "log.swf", "--memory", 4),
        ("gavel", "gavel.csv", "--gpus", "k80=1", "--gpus", "v100=2"),
    ],
    "formulate": [
        (LAB,),
        (QUEUES,),
        (DRF, "--notion", "proportional", "--integral", "-o", "model.nl"),
        (DRF, "--notion", "bbf:prefer=utilization", "--set", "users.A.tasks=3", "--set", "users.B.tasks=2"),
    ],
    "plan": [(DRF, "--allocation", "held.csv"), (DRF, "--allocation", "held.csv", "--budget", 1)],
    "export": [(kind, DRF) for kind in ("slurm", "kueue", "volcano", "kai", "yunikorn", "yarn", "resourcequota")],
    "notions": [()],
    "solvers": [()],
    "placements": [()],
    "schedulers": [()],
}
WITHOUT = {
    "schema": "prints a schema, which is no result",
    "explore": "serves a page until it is ended",
    "study-merge": "prints the result of fairopt study: test_the_parts_of_a_study_are_joined",
}
ELSEWHERE = {
    "given": "a result in Python only",
    "regret": "a result in Python only",
    "generators": "fairopt generate without SPEC",
    "study-over-time": "fairopt study --simulate: test_a_grid_of_simulations",
    "worst-case-bound": "fairopt worst-case --cluster: tests/commands/test_worst_cases.py",
    "explain-priority": "fairopt explain --scheduler: tests/simulation/test_priorities.py",
}


def validate(found: Any) -> dict[str, Any]:
    """Check a result against the declaration of its command, which says more of an error than the choice among all does."""
    assert set(found) >= {"schema", "version", "command", "question", "units"}
    assert found["schema"] == 1
    declared = {"$ref": f"#/$defs/{found['command']}", "$defs": VALIDATOR.schema["$defs"]}
    jsonschema.Draft202012Validator(declared).validate(found)
    assert VALIDATOR.is_valid(found)
    return dict(found)


def call(*arguments: Any) -> dict[str, Any]:
    """Return what a command prints with --json."""
    done = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert done.exit_code in (0, 1, 3), done.output
    return validate(json.loads(done.stdout, parse_constant=refuse))


def refuse(word: str) -> None:
    """NaN and Infinity are no JSON."""
    raise AssertionError(word)


def test_no_command_is_missed() -> None:
    """Each command has a case or a reason for having none, and each declaration a command."""
    commands = {name for commands in _PANELS.values() for name in commands}
    assert commands - set(CASES) == set(WITHOUT)
    assert {*KINDS} - {*ELSEWHERE} == set(CASES)


def test_the_parts_of_a_study_are_joined(tmp_path: Path) -> None:
    """The result is declared as that of the study."""
    parts = [tmp_path / f"part-{k}" for k in (1, 2)]
    for k, part in enumerate(parts, start=1):
        call("study", DRF, PAPER, "--notions", "drfh", "--part", f"{k}/2", "--resume", part)
    assert call("study-merge", *parts, "-o", tmp_path / "all")["command"] == "study"


def test_a_grid_of_simulations() -> None:
    """Of schedulers of which one fails."""
    found = call("study", "--simulate", JOBS, "--cluster", LAB, "--schedulers", "fifo,karma", "--workers", 1)
    assert found["command"] == "study-over-time"
    assert [(row["name"], row["message"] == "", row["wait_s"] is None) for row in found["rows"]] == [
        ("fifo", True, False),
        ("karma", False, True),
    ]


@pytest.mark.parametrize("group", ["import", "export"])
def test_no_kind_of_cluster_is_missed(group: str) -> None:
    """Each importer and each exporter has a case."""
    assert {str(arguments[0]) for arguments in CASES[group]} == {*_load(group).commands}


@pytest.mark.parametrize("path", [(), ("question",), ("users", 0), ("certificate",)], ids=str)
def test_what_is_not_declared_is_refused(path: tuple[str | int, ...]) -> None:
    """In the result and in its parts: the schema is closed. Nor may a declared key be missing."""
    found = fo.solve(fo.load(DRF), "drfh").to_dict()
    part = found
    for step in path:
        part = part[step]  # type: ignore[index]
    validate(found)
    part["surprise"] = 1
    with pytest.raises(jsonschema.ValidationError, match="surprise"):
        validate(found)
    del part["surprise"], found["users"][0]["name"]
    with pytest.raises(jsonschema.ValidationError, match="'name' is a required property"):
        validate(found)


def test_the_schema_is_a_schema() -> None:
    """Of the dialect that it names; all references lead somewhere; and the command prints it."""
    declared = schema(instance_schema())
    jsonschema.Draft202012Validator.check_schema(declared)
    names = {part.rpartition("/")[2] for part in references(declared)}
    assert names <= set(declared["$defs"])
    assert json.loads(CliRunner().invoke(app, ["schema", "result"]).stdout) == declared
    assert json.loads(CliRunner().invoke(app, ["schema"]).stdout) == instance_schema()


def references(part: Any) -> list[str]:
    """Return all references of a schema."""
    if isinstance(part, dict):
        return [*([part["$ref"]] if "$ref" in part else []), *(each for value in part.values() for each in references(value))]
    return [each for value in part for each in references(value)] if isinstance(part, list) else []


def objects(part: Any, path: str = "") -> list[tuple[str, dict[str, Any]]]:
    """Return the declared keys of a schema with their places."""
    found = []
    if isinstance(part, dict):
        if "properties" in part and part.get("type") == "object" and "additionalProperties" in part:
            found += [(f"{path}.{name}", key) for name, key in part["properties"].items()]
        found += [each for name, value in part.items() for each in objects(value, f"{path}.{name}")]
    elif isinstance(part, list):
        found += [each for value in part for each in objects(value, path)]
    return found


def types_of(key: dict[str, Any]) -> set[str]:
    """Return the types of a key."""
    kinds = key.get("type", [])
    return {kinds} if isinstance(kinds, str) else {*kinds}


def test_every_key_has_words_and_every_number_a_unit() -> None:
    """The declaration is the documentation."""
    keys = objects(KINDS)
    assert len(keys) > 300
    assert [path for path, key in keys if not key.get("description")] == []
    assert [path for path, key in keys if {"number", "integer"} & types_of(key) and not key.get("x-unit")] == []
    assert [path for path, key in keys if " " in path.rpartition(".")[2]] == []


@pytest.mark.parametrize(
    ("command", "arguments"), [(command, arguments) for command, calls in CASES.items() for arguments in calls], ids=str
)
def test_a_command_prints_one_object_as_declared(
    command: str, arguments: tuple[Any, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No key is missing, and none is undeclared."""
    if command == "report":
        pytest.importorskip("altair")
    monkeypatch.chdir(tmp_path)
    fo.save(fo.Instance([[4, 9]], [[1, 2], [2, 1]], counts=[3], tasks=[4, 3], resources=["gpu", "cpu"]), "pool.yaml")
    Path("held.csv").write_text("user,server,tasks\nA,server,4\n")
    Path("seconds.csv").write_text("user,submit,start,end,cpu,memory\nA,0,0,90,1,4\nB,0,5,60,3,1\nB,9,,,99,1\n")
    Path("gavel.csv").write_text("job_type,scale,worker,thr\nlstm,1,k80,4\nlstm,1,v100,8\n")
    found = call(command, *arguments)
    assert found["command"] == ("generators" if (command, arguments) == ("generate", ()) else command)


def test_the_page_has_every_key() -> None:
    """docs/reference/results.md is written from the declarations."""
    path = Path(__file__).parents[2] / "docs" / "_ext" / "result_schema.py"
    if not path.exists():
        pytest.skip("about the repository, and this is a copy of the tests")
    spec = spec_from_file_location("docs_result_schema", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    page = module.markdown()
    declared = {place.rpartition(".")[2] for place, _ in objects(schema({})["$defs"])}
    assert declared - {row.split("`")[1].rpartition(".")[2] for row in page.splitlines() if row.startswith("| `")} == set()
    assert all(f"**`{name}`: " in page for name in KINDS)


def test_results_in_python_are_what_the_command_prints(tmp_path: Path) -> None:
    """The same object, up to the time it took."""
    instance = fo.load(DRF)
    jobs = fo.load_trace(JOBS, cluster=(lab := fo.load(LAB)))
    pairs: list[tuple[Any, tuple[Any, ...]]] = [
        (fo.solve(instance, "drf"), ("solve", DRF, "--notion", "drf")),
        (fo.schedule(instance, "drfh", placement="best-fit"), ("schedule", DRF, "--schedule", "drfh:best-fit")),
        (fo.compare(instance), ("compare", DRF)),
        (fo.audit(fo.solve(instance, "drfh")), ("audit", DRF)),
        (fo.explain(fo.solve(instance, "drfh"), "A"), ("explain", DRF, "--user", "A")),
        (fo.frontier(instance), ("frontier", DRF)),
        (fo.simulate(jobs, lab, "drfh:best-fit"), ("simulate", JOBS, "--cluster", LAB)),
    ]
    for found, arguments in pairs:
        assert without_times(validate(found.to_dict())) == without_times(call(*arguments)), arguments
    for alone in (fo.regret(fo.schedule(instance)), fo.compare(instance, allocations={"mine": [[1], [1]]})["mine"].allocation):
        assert alone is not None
        validate(alone.to_dict())
    fo.solve(instance, "drf").to_frame().assign(name="kept").to_csv(tmp_path / "held.csv")
    assert fo.compare(instance, allocations={"held": tmp_path / "held.csv"})["held"].tasks == pytest.approx(5)


def without_times(part: Any) -> Any:
    """Return plain data without what a clock says, and with tuples as lists."""
    if isinstance(part, dict):
        return {name: without_times(value) for name, value in part.items() if name not in ("time_s", "phases_s", "seconds")}
    return [without_times(value) for value in part] if isinstance(part, list | tuple) else part
