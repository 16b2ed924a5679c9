"""The notion that an import recommends is taken, as it is written, by every command that takes a notion."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import NamedTuple

import pytest
from commands.test_importing import KINDS, PLACED, QUEUES
from kubernetes.test_queues import GPU, node, of_gpus, pod, write
from support.command_line import run

import fairopt as fo

PLANNED = ("yarn", "swf", "yarn queues", "kai")  # of the others no engine finds whole tasks in the tree
SYSTEM = {"slurm": "slurm", "yarn": "yarn", "yarn queues": "yarn", "kubernetes queues": "kueue"}  # what exports them; else KAI
IMPORTS = [*KINDS, *(f"{kind} queues" for kind in QUEUES), "kai"]


class Imported(NamedTuple):
    """An import: its files, the notion that it recommends, and a log and a trace of two jobs."""

    name: str
    notion: str
    cluster: Path
    held: Path
    log: Path
    trace: Path
    user: str


@pytest.fixture(scope="module", params=IMPORTS)
def imported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Imported:
    """Import the files of one system."""
    folder = tmp_path_factory.mktemp(request.param.replace(" ", "-"))
    kind = "kubernetes" if request.param == "kai" else request.param.removesuffix(" queues")
    options = _kai(folder) if request.param == "kai" else QUEUES[kind] if request.param.endswith(" queues") else KINDS[kind]
    cluster, held = folder / "cluster.yaml", folder / "held.csv"
    current = ["--current", held] if kind in PLACED else []
    text = run("import", kind, *options, "-o", cluster, *current, "--json").stdout
    instance = fo.load(cluster)
    for name, head in (("log", ["user", "submit", "start", "end"]), ("trace", ["user", "submit_s", "run_s"])):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow([*head, *instance.resources])
            for user, demand in zip(instance.users[:2], instance.demands[:2], strict=False):
                rows.writerow([user, *([0, 0, 10] if name == "log" else [0, 10]), *demand])
    notion = json.loads(text)["notion"]
    return Imported(request.param, notion, cluster, held, folder / "log.csv", folder / "trace.csv", instance.users[0])


def _kai(folder: Path) -> list[object]:
    """Write two queues of KAI that divide GPUs alone, and return the options of their import."""
    pods = []
    for number in range(8):
        each = pod(f"p{number}", f"lab-{number % 2}", {"kai.scheduler/queue": "ab"[number % 2]})
        each["spec"]["containers"] = [{"resources": {"requests": {GPU: "1", "cpu": "1"}}}]
        if number % 2:
            each["spec"]["nodeName"] = "n"
        pods.append(each)
    write(folder, nodes=[node("n", 4)], pods=pods)
    (folder / "queues.yaml").write_text(of_gpus("a", 1) + of_gpus("b", 1))
    return ["--nodes", folder / "nodes.json", "--pods", folder / "pods.json", "--queues", folder / "queues.yaml"]


def test_it_is_the_one_that_options_describe(imported: Imported) -> None:
    """``solve --notion`` gives what the options of the same import give; where others are unlimited, GPUs count alone."""
    options = dict(part.split("=") for part in imported.notion.split(":")[1:])
    found = json.loads(run("solve", imported.cluster, "--notion", imported.notion, "--json").stdout)
    wanted = fo.solve(fo.load(imported.cluster), "drfh", **options)  # type: ignore[arg-type]  # text
    assert [user["tasks"] for user in found["users"]] == pytest.approx(wanted.tasks_per_user.tolist())
    assert (imported.notion == f"drfh:guarantees=surplus:only={GPU}") == (imported.name == "kai")


def test_what_judges_takes_it(imported: Imported) -> None:
    """``compare``, ``audit``, ``explain`` and ``history`` name it as it is written."""
    compared = json.loads(run("compare", imported.cluster, "--notions", imported.notion, "--json").stdout)
    assert [row["name"] for row in compared["rows"]] == [imported.notion]
    audited = json.loads(run("audit", imported.cluster, "--notion", imported.notion, "--properties", "pareto", "--json").stdout)
    assert audited["properties"][0]["holds"] is True
    run("explain", imported.cluster, "--user", imported.user, "--notion", imported.notion, "--json")
    judged = json.loads(run("history", imported.log, "--cluster", imported.cluster, "--notion", imported.notion, "--json").stdout)
    assert judged["notion"] == imported.notion


def test_what_acts_takes_it(imported: Imported, tmp_path: Path) -> None:
    """``simulate``, ``what-if``, ``export`` and ``plan``."""
    run("simulate", imported.trace, "--cluster", imported.cluster, "--scheduler", imported.notion, "--json")
    run("simulate", imported.trace, "--cluster", imported.cluster, "--scheduler", f"{imported.notion}:best-fit", "--json")
    run("what-if", imported.cluster, imported.cluster, "--notions", imported.notion, "--json")
    run("export", SYSTEM.get(imported.name, "kai"), imported.cluster, "--notion", imported.notion, "-o", tmp_path / "out.yaml")
    if imported.name in PLANNED:
        run("plan", imported.cluster, "--allocation", imported.held, "--notion", imported.notion, "--json")
