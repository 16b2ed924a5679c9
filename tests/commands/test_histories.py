"""``fairopt history``: the page, its forms, files for other commands, and messages."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import fairopt as fo
from fairopt.cli import app
from fairopt.formats import syntax

ROWS = "user,submit,start,end,tasks,cpu,memory\nA,0,0,14400,8,1,1\nB,3600,14400,21600,8,1,1\n[bold],7200,,10800,2,1,4\n"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Return the arguments that name a log and its cluster."""
    (tmp_path / "jobs.csv").write_text(ROWS)
    fo.save(fo.Instance([[8, 32]], [[1, 1]], resources=["cpu", "memory"], users=["nobody"]), tmp_path / "cluster.yaml")
    return ["history", str(tmp_path / "jobs.csv"), "--cluster", str(tmp_path / "cluster.yaml")]


def run(*words: object, status: int = 0) -> str:
    """Run a command; return what it prints, and its messages on one line."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == status, result.output
    return result.stdout if status == 0 else " ".join(result.output.split())


def test_the_page_fits_the_terminal(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Totals, owners, the worst times; names are no markup."""
    monkeypatch.setenv("COLUMNS", "80")
    page = run(*files, "--every", "2h")
    assert max(map(len, page.splitlines())) <= 80
    for words in ("shortfall       1.62 share-hours", "work waited in  50 % of the time", "[bold]", "worst times", "window"):
        assert words in page
    assert "B " not in run(*files, "--show", "A").partition("worst")[0].partition("owner")[2]
    assert run(*files, "--top", "1", "--sort", "received").count("and 2 owners more") == 1


def test_the_cluster_is_read_once(files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By history and by simulate, although the jobs require attributes of its servers."""
    base = fo.Instance([[8, 32]], [[1, 1]], resources=["cpu", "memory"], users=["nobody"], attributes=[{"zone": "a"}])
    fo.save(base, tmp_path / "cluster.yaml")
    table = pd.read_csv(tmp_path / "jobs.csv").assign(requires="zone = a")
    table.to_csv(tmp_path / "jobs.csv", index=False)
    trace = table.rename(columns={"submit": "submit_s"}).drop(columns=["start", "end"]).assign(run_s=60)
    trace.to_csv(tmp_path / "trace.csv", index=False)
    read: list[Path] = []
    once = syntax.read

    def counted(path: Path) -> syntax.Parsed:
        read.append(path)
        return once(path)

    monkeypatch.setattr(syntax, "read", counted)
    run(*files, "--json")
    run("simulate", tmp_path / "trace.csv", "--cluster", tmp_path / "cluster.yaml", "--json")
    assert read == [tmp_path / "cluster.yaml"] * 2


def test_forms(files: list[str], tmp_path: Path) -> None:
    """JSON, CSV, Parquet and pictures."""
    data = json.loads(run(*files, "--json"))
    assert data["shortfall"] == pytest.approx(13 / 8)
    assert [owner["owner"] for owner in data["owners"]] == ["A", "B", "[bold]"]
    assert run(*files, "--csv", "--by", "window").startswith("start,end,hours")
    run(*files, "--by", "time", "-o", tmp_path / "time.parquet", "--plot", tmp_path / "time.svg", "--report", tmp_path / "month.html")
    assert set(pd.read_parquet(tmp_path / "time.parquet")["owner"]) == {"A", "B", "[bold]"}
    assert "<svg" in (tmp_path / "time.svg").read_text()
    page = (tmp_path / "month.html").read_text()
    assert "Not judged" not in page
    assert page.count("<table>") == 4
    assert "<bdi>lacked</bdi>" in page
    assert "<bdi>shortfall</bdi>" in page
    assert "Shortfall of all owners" in page
    assert "may exceed 100 %" in page
    assert "<dt>waiting</dt><dd>work that waited.</dd>" in page
    assert "<bdi>finish-time ratio, by owner</bdi>" in page
    assert page.count("<bdi>median</bdi>") == 1  # beside the others, not in the table of owners, which it would make too wide


def test_averages_go_to_other_commands(files: list[str], tmp_path: Path) -> None:
    """What ran and what was due, as allocations of the averaged instance."""
    names = [tmp_path / name for name in ("mean.yaml", "held.csv", "due.csv")]
    run(*files, "--instance", names[0], "--held", names[1], "--due", names[2])
    rows = json.loads(run("compare", names[0], "--allocation", names[1], "--allocation", names[2], "--json"))["rows"]
    assert [row["name"] for row in rows] == ["drfh", "held", "due"]
    assert "pareto" in run("audit", names[0], "--allocation", names[1], "--effort", "1")


def test_a_folder_keeps_results(files: list[str], tmp_path: Path) -> None:
    """The second run says the same."""
    first, second = (json.loads(run(*files, "--resume", tmp_path / "kept", "--json")) for _ in range(2))
    for each in (first, second):
        del each["seconds"], each["time_s"]
    assert first == second
    assert list((tmp_path / "kept").iterdir())


def test_a_log_of_a_scheduler_is_not_simulated(files: list[str], tmp_path: Path) -> None:
    """What sacct printed is judged by history; simulate says so."""
    (tmp_path / "sacct.txt").write_text("JobID|User|Start|End|AllocTRES\n1|a|2026-01-01T00:00:00|2026-01-01T01:00:00|cpu=1\n")
    said = run("simulate", tmp_path / "sacct.txt", "--cluster", files[3], status=2)
    assert "which fairopt history judges" in said.replace("│ ", "")


def test_a_queue_that_is_an_owner_is_shown_once(files: list[str], tmp_path: Path) -> None:
    """In the table of owners; a queue of several owners has its own row."""
    queues = [fo.Queue("lab"), fo.Queue("A", "lab"), fo.Queue("B", "lab"), fo.Queue("[bold]", "lab")]
    fo.save(fo.Instance([[8, 32]], [[1, 1]], resources=["cpu", "memory"], users=["nobody"], queues=queues), tmp_path / "cluster.yaml")
    run(*files, "--report", tmp_path / "month.html")
    page = run(*files).partition("worst times")[0]
    assert [line.split()[0] for line in page.splitlines() if line.startswith(("lab ", "A ", "B "))] == ["lab", "B", "A"]
    written = (tmp_path / "month.html").read_text()
    assert written.count("<bdi>A</bdi>") == 3  # its name and its queue, in the table of owners, and its ratios


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--window", "0/3600", "--window", "1800/7200"], "the window from 1800 s overlaps the one that ends at 3600 s"),
        (["--window", "0"], '"0" is no period; give START/END'),
        (["--moments", "few"], 'few is neither a whole number nor "all"'),
        (["--show", "D"], 'there is no owner "D"'),
        (["--notion", "tfs"], 'there is no notion "tfs" (did you mean "tsf"?)'),
        (["--report", "month.pdf"], "month.pdf would be a web page"),
        (["--timezone", "Mars"], 'there is no time zone "Mars"'),
    ],
)
def test_bad_input_is_one_message_and_status_2(files: list[str], words: list[str], message: str) -> None:
    """What is wrong, and what to do; --timezone is of logs with dates."""
    if words[0] == "--timezone":
        path = Path(files[1])
        path.write_text("user,submit,start,end,cpu\nA,2026-01-01,2026-01-01,2026-01-02,1\n")
    boxed = run(*files, *words, status=2).replace("│ ", "").replace(" │", "")
    assert message in boxed


def test_named_limits_and_how_full_they_were(files: list[str], tmp_path: Path) -> None:
    """Two tasks are due while work waits; 10 ran at most, of a limit that the log did not know. Without it all is as before."""
    before = json.loads(run(*files, "--json"))
    base = fo.load(files[3])
    fo.save(base.replace(limits=[fo.Limit("few", 2)]), files[3])
    data = json.loads(run(*files, "--json"))
    assert [(each["kind"], each["name"], each["bound"]) for each in data["limits"]] == [("limit", "few", 2)]
    assert data["limits"][0]["most_use"] == pytest.approx(8 / 2)
    assert "few" in run(*files)
    run(*files, "--report", tmp_path / "page.html")
    assert "named limits" in (tmp_path / "page.html").read_text()
    assert json.loads(run(*files, "--set", "limits.few=", "--json"))["owners"] == before["owners"]


def test_a_rule_that_is_a_limit_holds_and_others_are_refused(files: list[str]) -> None:
    """A rule of A is a limit of A's tasks, as in the file; without a cluster there is nobody whom it could name."""
    fo.save(fo.Instance([[8, 32]], [[1, 1]] * 3, resources=["cpu", "memory"], users=["A", "B", "[bold]"]), files[3])
    ruled = json.loads(run(*files, "--rule", "x[A] <= 2", "--json"))
    fo.save(fo.load(files[3]).replace(limits=[fo.Limit("two", 2, users=["A"])]), files[3])
    assert ruled["owners"] == json.loads(run(*files, "--json"))["owners"]
    refused = " ".join(run(*files, "--rule", "x[A] >= 2", status=2).split())
    assert "a history keeps only rules that are limits, such as x[a] + 2 * x[b] <= 8; write such a rule, or leave this one out" in refused
    assert "--rule: it is about the users of --cluster" in run(*files[:2], "--rule", "x[A] <= 2", status=2).replace("│ ", "")


def test_the_question_has_the_changes_and_the_rules(files: list[str]) -> None:
    """Together as alone: what was judged can be asked again."""
    fo.save(fo.Instance([[8, 32]], [[1, 1]] * 3, resources=["cpu", "memory"], users=["A", "B", "[bold]"]), files[3])
    change, rule = ["--set", "users.A.weight=3"], ["--rule", "x[A] <= 2"]
    asked = [json.loads(run(*files, *words, "--json"))["question"] for words in (change, rule, change + rule)]
    assert [(each["changes"], each["rules"]) for each in asked] == [(change[1:], []), ([], rule[1:]), (change[1:], rule[1:])]
