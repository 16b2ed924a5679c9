"""Retired spellings of the command line: they work until 1.0, say on stderr what is written now, and change nothing on stdout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import typer
from support.command_line import EXAMPLES, flat, run

from fairopt.cli import app
from fairopt.commands.retired import RETIRED, REWRITTEN

LAB = EXAMPLES / "gpu-lab"
DRF = EXAMPLES / "drf.yaml"
BBF = EXAMPLES / "bbf-section-5.yaml"
TASKS = ("--set", "users.A.tasks=4", "--set", "users.B.tasks=4")
LEAVES = [(command, old, new) for command, names in RETIRED.items() for old, new in names.items()]


def leaf(name: str) -> Any:
    """Return a command, or a command of a group."""
    group: Any = typer.main.get_command(app)
    for word in name.split():
        group = group.resolve_command(typer.Context(group), [word])[1]
    return group


@pytest.mark.parametrize(("command", "old", "new"), LEAVES, ids=" ".join)
def test_every_retired_option_is_todays_option(command: str, old: str, new: str) -> None:
    """The value arrives under today's name, before and after an equals sign; today's spelling says nothing."""
    part = next(part for part in leaf(command).params if new in part.opts)
    required = {"N": "1", "PART": "0.5", "SECONDS": "1"}.get(part.metavar, "drf")
    words = ["--help", old, required]  # --help ends the command after its line has been understood
    assert f"warning: {old} is now {new}; it goes away in 1.0" in flat(run(*command.split(), *words).stderr)
    assert f"{old} is now" not in run(*command.split(), "--help", new, required).stderr
    if old.startswith("--"):
        assert f"{old} is now {new}" in flat(run(*command.split(), "--help", f"{old}={required}").stderr)


@pytest.mark.parametrize(("command", "old", "new"), LEAVES, ids=" ".join)
def test_help_does_not_show_retired_options(command: str, old: str, new: str) -> None:
    """Help and completion are for today's spellings."""
    shown = [word for part in leaf(command).params if not part.hidden for word in part.opts]
    assert old not in shown
    assert new in shown


def test_values_stay_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A retired word behind another option is its value."""
    found = run(
        "worst-case", "drfh:first-fit", "--tries", 2, "--users", 2, "--servers", 1, "--instance", tmp_path / "--jobs.yaml", "--jobs", 1
    )
    assert flat(found.stderr) == "warning: --jobs is now --workers; it goes away in 1.0"
    assert (tmp_path / "--jobs.yaml").exists()


@pytest.mark.parametrize(
    ("base", "old", "new"),
    [
        (["worst-case", "drfh:first-fit", "--tries", 3, "--users", 2, "--json"], ["--keep", 1], ["--keep-regret", 1]),
        (["arrivals", DRF, "--resource", "cpu", *TASKS, "--csv"], ["--step", 0.5, "--jobs", 1], ["--load-step", 0.5, "--workers", 1]),
        (
            ["export", "slurm", DRF, "--level", "account-user", "--placement-time-limit", 1000],
            ["--user", "A=ann"],
            ["--user-of", "A=ann"],
        ),
        (["export", "yarn", DRF, "--placement-time-limit", 1000], ["--scheduler", "fair"], ["--yarn-scheduler", "fair"]),
    ],
    ids=["worst-case", "arrivals", "slurm", "yarn"],
)
def test_the_answer_is_the_same(base: list[object], old: list[object], new: list[object]) -> None:
    """On stdout, apart from the seconds."""
    one, two = (run(*base, *words).stdout.partition('"time_s"')[0] for words in (old, new))
    assert one == two


def test_criterion_and_placement() -> None:
    """Two options were one schedule."""
    old = run("schedule", DRF, "--criterion", "drf", "--placement", "best-fit", "--csv")
    assert flat(old.stderr) == "warning: --criterion and --placement are now --schedule drf:best-fit; they go away in 1.0"
    assert old.stdout == run("schedule", DRF, "--schedule", "drf:best-fit", "--csv").stdout
    assert "give --schedule only" in flat(run("schedule", DRF, "--criterion", "drf", "--schedule", "drf", status=2).stderr)


def test_prefer_takes_a_file() -> None:
    """The word is an option of the notion."""
    old = run("solve", BBF, "--notion", "bbf", "--prefer", "utilization", "--csv")
    assert flat(old.stderr) == "warning: --prefer utilization is now --notion bbf:prefer=utilization; it goes away in 1.0"
    assert old.stdout == run("solve", BBF, "--notion", "bbf:prefer=utilization", "--csv").stdout


def test_billing_takes_weights(tmp_path: Path) -> None:
    """A file of partitions has an option of its own, as in ``import slurm``; b is billed its GPU as nine cores."""
    (tmp_path / "jobs.csv").write_text("user,submit_s,run_s,tasks,cpu,gpu\na,0,10,40,1,0\nb,0,10,40,1,1\n")
    (tmp_path / "usage.csv").write_text("name,usage\na,100\n")
    users = "users: [{name: a, demand: {cpu: 1}}, {name: b, demand: {cpu: 1}}]"
    (tmp_path / "c.yaml").write_text(f"servers: [{{name: s, capacity: {{cpu: 4, gpu: 4}}}}]\n{users}\n")
    (tmp_path / "partitions.txt").write_text("PartitionName=p\n   TRESBillingWeights=CPU=1.0,GRES/gpu=8\n\n")
    base = ["simulate", tmp_path / "jobs.csv", "--cluster", tmp_path / "c.yaml", "--usage", tmp_path / "usage.csv"]
    base += ["--scheduler", "fairtree"]
    new = run(*base, "--partitions", tmp_path / "partitions.txt", "--csv")
    old = run(*base, "--billing", tmp_path / "partitions.txt", "--csv")
    assert "partitions.txt; it goes away in 1.0" in flat(old.stderr)
    assert "1.0" not in flat(new.stderr)
    assert old.stdout == new.stdout == run(*base, "--billing", "cpu=1,gpu=8", "--csv").stdout
    assert new.stdout != run(*base, "--billing", "cpu=1", "--csv").stdout
    both = run(*base, "--partitions", tmp_path / "partitions.txt", "--billing", "cpu=1", status=2)
    assert "--partitions: --billing states it already; give one of them" in flat(both.stderr)


def test_compare_what_if() -> None:
    """A command of its own."""
    old = run("compare", LAB, "--what-if", "users.vision.weight=3", "--csv")
    assert "compare --what-if PATH=VALUE is now what-if FILE --set PATH=VALUE" in flat(old.stderr)
    assert old.stdout == run("what-if", LAB, "--set", "users.vision.weight=3", "--csv").stdout
    old = run("compare", LAB, LAB, "--set", "users.vision.weight=3")
    assert "compare FILE OTHER is now what-if FILE OTHER" in flat(old.stderr)
    assert old.stdout == run("what-if", LAB, LAB, "--given", "users.vision.weight=3").stdout
    assert "--by: it is about one instance" in flat(run("compare", LAB, LAB, "--by", "owner", status=2).stderr)


def test_the_kind_of_rows_of_a_simulation(tmp_path: Path) -> None:
    """An option says what a row is; the ending of the file says the format. Until 1.0, Parquet without --by has samples."""
    base = ["simulate", LAB / "jobs.csv", "--cluster", LAB, "--until", 40000]
    found: dict[str, pd.DataFrame] = {}
    for by in ("job", "user", "time"):
        run(*base, "--by", by, "-o", tmp_path / f"{by}.parquet")
        run(*base, "--by", by, "-o", tmp_path / f"{by}.csv")
        found[by] = pd.read_parquet(tmp_path / f"{by}.parquet")
        assert len(found[by]) == len(pd.read_csv(tmp_path / f"{by}.csv")) > 0
    assert list(found["time"]) == ["time_s", "quantity", "of", "value"]
    old = run(*base, "-o", tmp_path / "old.parquet")
    assert "simulate -o FILE.parquet is now simulate --by time -o FILE.parquet" in flat(old.stderr)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "old.parquet"), found["time"])
    assert "has no queues" in flat(run(*base, "--by", "queue", status=2).stderr)
    several = run(*base, "--scheduler", "fifo", "--scheduler", "backfill", "--by", "job", status=2)
    assert "--by: leave it out" in flat(several.stderr)


def test_a_window_of_two_words() -> None:
    """START END is START/END."""
    command = ["import", "slurm", "--nodes", "no-nodes.json", "--jobs", "no-jobs.json", "--sacct", "no-sacct.txt"]
    old = run(*command, "--window", "2026-11-22T15:00", "2026-11-22T16:00", status=2)
    assert "--window START END is now --window START/END" in flat(old.stderr)
    assert "there is no file no-nodes.json" in flat(old.stderr)
    new = run(*command, "--window", "2026-11-22T15:00/2026-11-22T16:00", status=2)
    assert "is now" not in new.stderr
    assert "is no period; give START/END" in flat(run(*command, "--window=2026", status=2).stderr)


def test_an_option_behind_a_start_is_no_end(tmp_path: Path) -> None:
    """A START alone is refused, whatever option follows it; no file named like the option's value appears."""
    command = ["import", "slurm", "--nodes", "no-nodes.json", "--jobs", "no-jobs.json", "--window", "2026-11-22T15:00"]
    for more in (["-o", tmp_path / "cluster.yaml"], ["--current", tmp_path / "held.csv"], []):
        refused = flat(run(*command, *more, status=2).stderr)
        assert '"2026-11-22T15:00" is no period; give START/END' in refused
        assert "is now" not in refused


def test_a_value_attached_to_a_short_option(tmp_path: Path) -> None:
    """-oFOLDER of study is --resume FOLDER, as -o FOLDER is; -o of other commands stays."""
    study = ["study", DRF, "--workers", 1]
    assert "-o is now --resume" in flat(run(*study, f"-o{tmp_path / 'one.parquet'}").stderr)
    assert (tmp_path / "one.parquet").exists()
    run("solve", DRF, f"-o{tmp_path / 'two.json'}")
    assert (tmp_path / "two.json").exists()


def test_what_is_rewritten_is_in_the_reference() -> None:
    """Every row of the table names today's commands."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert all(new.split()[0] in commands for new in REWRITTEN.values())
