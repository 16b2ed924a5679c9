"""What is implausible in files: it is logged once when a file is read, printed by every command on stderr, and not said of good files."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import fairopt as fo
from fairopt.cli import app

EXAMPLES = Path(__file__).parents[2] / "examples"
SERVERS = "name,gpu,cpu,memory,count,model\ndgx,8,128,1024,4,A100\nrack,4,48,256,16,V100\npizza,2,32,128,10,T4\n"
USERS = "name,gpu,cpu,memory,requires\nvision,2,16,64,\nnlp,8,64,512,model = A100\nchem,0,16,96,\n"
LARGE = "no server holds a whole task of b: gpu 8 of at most 4; are the units the same? Exact allocations divide such a task"
TOO_BIG = """
servers:
- {name: s, capacity: {gpu: 4, memory: 256}, count: 4}
users:
- {name: a, demand: {gpu: 1, memory: 64}}
- {name: b, demand: {gpu: 8, memory: 64}}
"""

needs_examples = pytest.mark.skipif(not EXAMPLES.is_dir(), reason="the examples are in the repository")


def doubted(caplog: pytest.LogCaptureFixture, path: Path, *changes: str) -> list[str]:
    """Return the warnings that reading gives."""
    caplog.clear()
    with caplog.at_level(logging.WARNING, "fairopt"):
        fo.load(path, changes=changes)
    return [record.getMessage() for record in caplog.records]


def folder(path: Path, servers: str = SERVERS, users: str = USERS) -> Path:
    """Write the tables of a folder."""
    path.mkdir(exist_ok=True)
    (path / "servers.csv").write_text(servers)
    (path / "users.csv").write_text(users)
    return path


@needs_examples
@pytest.mark.parametrize("path", sorted([*EXAMPLES.glob("*.yaml"), EXAMPLES / "gpu-lab"]), ids=lambda path: path.name)
def test_nothing_is_said_of_the_examples(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """They are plausible."""
    assert doubted(caplog, path) == []


def test_nothing_is_said_of_good_tables(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Attributes that are text, or numbers that a user asks for."""
    assert doubted(caplog, folder(tmp_path / "lab")) == []
    servers = (
        SERVERS.replace("model\n", "model,year\n")
        .replace("A100\n", "A100,2021\n")
        .replace("V100\n", "V100,2019\n")
        .replace("T4\n", "T4,\n")
    )
    users = USERS.replace("model = A100", "year >= 2020")
    assert doubted(caplog, folder(tmp_path / "lab", servers, users)) == []


# Tables -------------------------------------------------------------------------------------------------------------------------


def test_numbers_that_nobody_demands(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A column of users that was forgotten; several in one sentence; quantities are numbers; also in changed files and in workbooks."""
    users = "name,gpu,cpu\nvision,2,16\n"
    lab = folder(tmp_path / "lab", users=users)
    memory = f"{lab}/servers.csv: memory is a number and no user demands it: read as an attribute"
    assert doubted(caplog, lab) == [memory]
    assert doubted(caplog, lab, "users.vision.weight=1") == [memory]
    folder(lab, SERVERS.replace(",128,1024", ",128,1TiB").replace("dgx,8,128", "dgx,8,128"), "name,gpu\nvision,2\n")
    assert doubted(caplog, lab) == [f"{lab}/servers.csv: cpu and memory are numbers and no user demands them: read as attributes"]
    pytest.importorskip("openpyxl")
    with pd.ExcelWriter(tmp_path / "lab.xlsx") as book:
        for name in ("servers", "users"):
            pd.read_csv((folder(lab, users=users)) / f"{name}.csv").to_excel(book, sheet_name=name, index=False)
    (sentence,) = doubted(caplog, tmp_path / "lab.xlsx")
    assert sentence.endswith("memory is a number and no user demands it: read as an attribute")


def test_frames_are_doubted_as_files_are(caplog: pytest.LogCaptureFixture) -> None:
    """`Instance.from_frame` reads as `load` does."""
    with caplog.at_level(logging.WARNING, "fairopt"):
        fo.Instance.from_frame(pd.DataFrame({"gpu": [8]}, index=["b"]), pd.DataFrame({"gpu": [4]}, index=["s"]))
    assert [record.getMessage() for record in caplog.records] == [LARGE]


@pytest.mark.parametrize("row", ["all,116,1600,9472,30,", "all,14,208,1408,,", "cluster,116,1600,9472,1,", "cluster,14,208,1408,1,"])
def test_a_last_row_of_sums(row: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """4 x 8 + 16 x 4 + 10 x 2 = 116 GPUs, 4 x 128 + 16 x 48 + 10 x 32 = 1600 cores, 9472 GB; or 14, 208 and 1408 without counts."""
    lab = folder(tmp_path / "lab", f"{SERVERS}{row}\n")
    assert doubted(caplog, lab) == [
        f"{lab}/servers.csv, line 5: the last of the servers, {row.partition(',')[0]}, has the sums of the others; "
        "is it a total? Remove it then"
    ]


def test_a_last_user_of_sums_and_rows_that_are_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Users: 10, 96 and 672. One resource alone, 1 + 2 = 3, is chance; so is a second server like the first, unless it is named a total."""
    lab = folder(tmp_path / "lab", users=f"{USERS}all,10,96,672,\n")
    assert any("the last of the users, all, has the sums of the others" in sentence for sentence in doubted(caplog, lab))
    ones = "name,gpu\na,1\nb,2\nc,3\n"
    assert doubted(caplog, folder(lab, ones, "name,gpu\nu,1\n")) == []
    assert doubted(caplog, folder(lab, "name,gpu,cpu\na,1,2\nb,1,2\n", "name,gpu,cpu\nu,1,1\n")) == []
    assert len(doubted(caplog, folder(lab, "name,gpu,cpu\na,1,2\noverall,1,2\n", "name,gpu,cpu\nu,1,1\n"))) == 1
    assert doubted(caplog, folder(lab, f"{SERVERS}more,116,1600,9000,1,\n")) == []


@pytest.mark.parametrize("row", ["Total,512,1,3,12,", "SUMME:,,,x,,", "Average,4,69,469,10,", "Gesamtsumme,14,208,1408,,", "Subtotal,,,,,"])
def test_a_last_row_called_a_total_is_refused(row: str, tmp_path: Path) -> None:
    """Also where it is no exact sum: it would be one more server. Nothing else is said of its cells."""
    lab, name = folder(tmp_path / "lab", f"{SERVERS}{row}\n"), row.partition(",")[0]
    said = f'line 5, column "name": the last of the servers is called {name}: is it a total? Delete the row, or rename the server'
    with pytest.raises(fo.InvalidInstance) as caught:
        fo.load(lab)
    assert str(caught.value).replace('"SUMME:"', "SUMME:") == f"{lab}/servers.csv, {said}"


def test_totals_of_users_and_queues_and_names_that_are_none(tmp_path: Path) -> None:
    """All of them at once; a server between others, or alone, may be called so, and so may one in YAML."""
    lab = folder(tmp_path / "lab", users="name,gpu,queue\na,1,q\nb,1,q\nMean,1,\nSum,2,\n")
    (lab / "queues.csv").write_text("name,weight\nq,1\ntotal,2\n")
    with pytest.raises(
        fo.InvalidInstance, match=r"^3 mistakes:\n.*called Mean.*\n.*called Sum.*\n.*the last of the queues is called total"
    ):
        fo.load(lab)
    (lab / "queues.csv").unlink()
    folder(lab, "name,gpu\nTotal,4\nb,2\n", "name,gpu\nsum,1\n")
    assert fo.load(lab).servers == ("Total", "b")
    instance = fo.Instance([[1, 2], [5, 4]], [[1, 1]], servers=["a", "Total"], users=["u"], resources=["gpu", "cpu"])
    with pytest.raises(fo.InvalidInstance, match=r'the last server, "Total", would be taken for a total; save as \.yaml'):
        fo.save(instance, tmp_path / "again")
    fo.save(instance, tmp_path / "again.yaml")
    assert fo.load(tmp_path / "again.yaml").servers == ("a", "Total")


@pytest.mark.parametrize(
    "servers",
    [
        "name,gpu,cpu,count\nr1,4,64,10\nr2,4,64,30\nr3,4,64,2\n",  # 2 x 4 = 4 + 4
        "name,gpu,cpu,count\na,4,32,1\nb,4,32,1\nbig,8,64,1\n",
        "name,gpu,cpu,count\ns,1,4,1\nm,2,8,1\nl,3,12,1\n",
    ],
)
def test_multiples_of_one_shape_are_no_sums(servers: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Racks of one kind of node, and nodes of one, two and three parts."""
    assert doubted(caplog, folder(tmp_path / "lab", servers, "name,gpu,cpu\nu,1,4\n")) == []


# Requirements -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("requires", "sentence"),
    [
        ("model = A10O", "no server has model A10O, which nlp requires; there are A100, V100 and T4"),
        ("model = A100 or V100", 'no server has model "A100 or V100", which nlp requires; there are A100, V100 and T4'),
        ("model in a|b", "no server has model a or b, which nlp requires; there are A100, V100 and T4"),
        ("count2 >= 64; model = A100", "no server has count2 >= 64, which nlp requires; there are 4, 16 and 10"),
        ("model = A100; count2 = 16", 'no server meets all of "model = A100; count2 = 16", which nlp requires'),
        ("model not in A100|V100|T4", "no server has model other than A100 or V100 or T4, which nlp requires; there are A100, V100 and T4"),
    ],
)
def test_what_no_server_meets(requires: str, sentence: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With the values that there are."""
    servers = (
        SERVERS.replace("model\n", "model,count2\n").replace("A100\n", "A100,4\n").replace("V100\n", "V100,16\n").replace("T4\n", "T4,10\n")
    )
    found = doubted(caplog, folder(tmp_path / "lab", servers, USERS.replace("model = A100", requires)))
    assert [each for each in found if "no server" in each] == [sentence]


def test_many_requirements_that_no_server_meets(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Users with one requirement are named together; three requirements are explained."""
    rows = "".join(f"u{k},1,1,1,model = X{k // 2}\n" for k in range(10))
    found = doubted(caplog, folder(tmp_path / "lab", users=USERS + rows))
    assert found == [
        *(f"no server has model X{k}, which u{2 * k} and u{2 * k + 1} require; there are A100, V100 and T4" for k in range(3)),
        "no server meets 2 more requirements of users",
    ]


# Commands -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        ["solve", "FILE", "--json"],
        ["schedule", "FILE", "--json"],
        ["compare", "FILE", "--notions", "drfh", "--json"],
        ["compare", "FILE", "FILE", "--notions", "drfh", "--json"],
        ["audit", "FILE", "--properties", "pareto", "--json"],
        ["explain", "FILE", "--user", "a", "--json"],
        ["frontier", "FILE", "--json"],
        ["export", "slurm", "FILE", "--json"],
        ["arrivals", "FILE", "--resource", "gpu", "--seeds", "1", "--json", "--set", "users.a.tasks=4", "--set", "users.b.tasks=1"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_commands_say_it_once_on_stderr(command: list[str], tmp_path: Path) -> None:
    """And stdout is JSON."""
    file = tmp_path / "lab.yaml"
    file.write_text(TOO_BIG)
    result = CliRunner().invoke(app, [str(file) if word == "FILE" else word for word in command])
    assert result.stderr.count(LARGE) == 1, result.stderr
    assert json.loads(result.stdout)


def test_a_report_says_it_and_does_not_print_it(tmp_path: Path) -> None:
    """The page is not stdout."""
    pytest.importorskip("altair")
    file = tmp_path / "lab.yaml"
    file.write_text(TOO_BIG)
    result = CliRunner().invoke(app, ["report", str(file), "--notions", "drfh", "-o", str(tmp_path / "page.html")])
    assert (result.stderr.count(LARGE), LARGE in result.stdout) == (1, False)


def test_a_simulation_says_it_of_its_cluster(tmp_path: Path) -> None:
    """The trace has its own tasks; the names of the cluster are doubted."""
    (tmp_path / "cluster.yaml").write_text(TOO_BIG.replace("name: b", 'name: "b "').replace("gpu: 8", "gpu: 1"))
    (tmp_path / "jobs.csv").write_text("job,user,submit_s,tasks,run_s,gpu,memory\n1,a,0,2,10,1,64\n")
    result = CliRunner().invoke(app, ["simulate", str(tmp_path / "jobs.csv"), "--cluster", str(tmp_path / "cluster.yaml"), "--json"])
    assert result.stderr.count('a space begins or ends the name of the user "b "; remove it') == 1, result.stderr
    assert json.loads(result.stdout)


def test_the_next_command_says_it_again(tmp_path: Path) -> None:
    """Once for each command, not for each process."""
    (tmp_path / "lab.yaml").write_text(TOO_BIG)
    for _ in range(2):
        assert LARGE in CliRunner().invoke(app, ["solve", str(tmp_path / "lab.yaml")]).stderr


def test_completion_says_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A warning would stand in the middle of what somebody types."""
    from fairopt.commands.completion import _instance  # as completers call it

    class Context:
        params: dict[str, object]
        args: list[str]

    (tmp_path / "lab.yaml").write_text(TOO_BIG)
    context = Context()
    context.params, context.args = {"file": tmp_path / "lab.yaml"}, []
    found = _instance(context)  # type: ignore[arg-type]
    assert found is not None
    assert found.users == ("a", "b")
    assert caplog.records == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("servers.s.count=+2", "=+2 would set 2; write servers.s.count+=2 to add, or servers.s.count=2 to set"),
        ("users.a.weight= + 1/2", "=+ 1/2 would set 1/2; write users.a.weight+=1/2 to add, or users.a.weight=1/2 to set"),
        ("servers.s.capacity.memory=+64GiB", "write servers.s.capacity.memory+=64GiB to add"),
    ],
)
def test_a_signed_number_is_no_change(change: str, message: str, tmp_path: Path) -> None:
    """``=+2`` is most often meant as ``+=2``."""
    (tmp_path / "lab.yaml").write_text(TOO_BIG)
    with pytest.raises(fo.InvalidInstance) as refused:
        fo.load(tmp_path / "lab.yaml", changes=[change])
    assert message in str(refused.value)


def test_text_with_a_plus_is_data(tmp_path: Path) -> None:
    """Only numbers are refused, and += adds."""
    (tmp_path / "lab.yaml").write_text(TOO_BIG)
    fo.load(tmp_path / "lab.yaml", changes=["title=+more", "users.b.demand.gpu=1"])
    assert fo.load(tmp_path / "lab.yaml", changes=["servers.s.count+=2"]).counts.tolist() == [6]


def test_a_tier_of_0_below_another(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is said of the file that writes it, and not of what is saved, where it is left out."""
    file = tmp_path / "lab.yaml"
    file.write_text(
        "servers: [{name: s, capacity: {gpu: 4}}]\n"
        "queues: [{name: top, tier: 1}, {name: low, parent: top, tier: 0}, {name: b, parent: top}, {name: c, tier: 0}]\n"
        "users: [{name: u, queue: low, demand: {gpu: 1}}, {name: v, queue: b, demand: {gpu: 1}}, {name: w, queue: c, demand: {gpu: 1}}]\n"
    )
    (said,) = doubted(caplog, file)
    assert said.startswith("the tier 0 of low counts for nothing: below a queue of the tier 1 it means 1;")
    for name in ("again.yaml", "again.json", "again"):
        fo.save(fo.load(file), tmp_path / name)
        assert doubted(caplog, tmp_path / name) == []
