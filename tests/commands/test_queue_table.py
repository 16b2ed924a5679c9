"""The tree of queues as ``fairopt solve`` prints it, and the rules that options choose."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.command_line import EXAMPLES, flat, run

import fairopt as fo
from fairopt.commands.shares import Shares

QUEUES = EXAMPLES / "research-queues.yaml"


def tree_of(text: str) -> list[str]:
    """Return the first words of the rows of the tree, with their indentation."""
    lines = text.split("queue, user")[1].split("\n\n")[0].splitlines()[2:]
    return [line[: len(line) - len(line.lstrip())] + line.split()[0] for line in lines if line.strip() and not line[:9].isspace()]


def row(text: str, name: str) -> str:
    """Return the row of a queue or a user."""
    return next(line for line in text.splitlines() if line.split()[:1] == [name])


def on_new() -> float:
    """Return the GPUs of the new servers that users of vision hold: a matter of the placement, which is not unique."""
    allocation = fo.solve(fo.load(QUEUES), "drfh")
    gpus = allocation.tasks[:, 0] * allocation.instance.demands[:, 0]
    return float(sum(gpus[allocation.instance.index(name)] for name in ("alice", "bob", "ines")))


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """160 columns, so that no cell is folded."""
    monkeypatch.setenv("COLUMNS", "160")


@pytest.mark.usefixtures("wide")
def test_each_queue_is_followed_by_what_is_below_it() -> None:
    """Queues first, then users, two spaces deeper at each level; the cluster as the last row."""
    assert tree_of(run("solve", QUEUES).stdout) == [
        *("research", "  vision", "    interns", "      ines", "    alice", "    bob", "  language", "    carol", "    dan"),
        *("teaching", "  course-1", "  course-2", "guests", "  visitor", "all"),
    ]


@pytest.mark.usefixtures("wide")
def test_a_row_says_what_is_guaranteed_limited_and_borrowed() -> None:
    """Of queues in amounts, of users in tasks."""
    text = run("solve", QUEUES).stdout
    held = on_new()
    assert f"8 gpu on model = A100, met  24 gpu on model = A100, {held:.3g} held  {held - 8:.3g} gpu on model = A100" in row(text, "vision")
    assert "4 gpu, reached, price 0.141" in row(text, "interns")
    assert "12 gpu, met" in row(text, "language")
    assert row(text, "language").rstrip().endswith("7.85 gpu")
    assert "1 task, met" in row(text, "carol")
    assert row(text, "ines").rstrip().endswith("20 tasks")
    assert "cpu 100.0 %" in row(text, "all")
    assert "borrowed: held beyond the guarantee." in flat(text)
    assert "Levels of the guarantees of stage 3: " in text


@pytest.mark.usefixtures("wide")
def test_what_is_missing_and_what_is_not_asked_for(tmp_path: Path) -> None:
    """9 and 6 of 10 GPUs are guaranteed to two queues: both lack some. A third asks for 1 of its 2."""
    queues = [fo.Queue("a", guarantee={"gpu": 9}), fo.Queue("b", guarantee={"gpu": 6}), fo.Queue("c", guarantee={"cpu": 2})]
    instance = fo.Instance(
        [[10, 4]],
        [[1, 0], [1, 0], [0, 1], [0, 1]],
        tasks=[np.inf, np.inf, 1, 3],
        resources=["gpu", "cpu"],
        queues=queues,
        queue_of=["a", "b", "c", None],
        users=["ann", "ben", "cat", "dan"],
    )
    fo.save(instance, tmp_path / "tree.yaml")
    text = run("solve", tmp_path / "tree.yaml").stdout
    assert "9 gpu, 3 missing" in row(text, "a")
    assert "6 gpu, 2 missing" in row(text, "b")
    assert "2 cpu, uses 1" in row(text, "c")
    assert "3 tasks, all run" in row(text, "dan")
    assert row(text, "dan").startswith("dan")  # in the root


def test_at_80_columns_no_word_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guarantees and limits are a table of their own, a row for each resource; each row of both tables is one line."""
    monkeypatch.setenv("COLUMNS", "80")
    text, held = run("solve", QUEUES).stdout, on_new()
    assert max(map(len, text.splitlines())) <= 80
    names = ["research", "vision", "interns", "ines", "alice", "bob", "language", "carol", "dan"]
    names += ["teaching", "course-1", "course-2", "guests", "visitor", "all"]
    assert [name.strip() for name in tree_of(text)] == names
    assert len(text.split("queue, user")[1].split("\n\n")[0].splitlines()) == 2 + len(names)
    bounds = text.split("Guarantees and limits")[1].split("\n\n")[0].splitlines()[3:]
    assert [" ".join(line.split()) for line in bounds] == [
        "research gpu 32 44 met, +12",
        f"vision gpu on model = A100 8 24 {held:.3g} met, +{held - 8:.3g}",
        "interns gpu 4 4 0.141 reached",
        "ines tasks 20 4",
        "language gpu 12 19.8 met, +7.85",
        "carol tasks 1 4.96 met",
        "teaching gpu 8 16 12 met, +4",
        "course-1 tasks 60 12",
        "course-2 tasks 12 6",
    ]
    assert "+: borrowed, held beyond the guarantee." in flat(text)
    assert "price (dual): upper bound on the gain" in flat(text)


def test_a_narrow_table_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """9 of 10 GPUs are guaranteed to a, 6 to b; c uses 1 of its 2 cores, which is all that its user has tasks for."""
    monkeypatch.setenv("COLUMNS", "60")
    queues = [fo.Queue("a", guarantee={"gpu": 9}), fo.Queue("b", guarantee={"gpu": 6}), fo.Queue("c", guarantee={"cpu": 2})]
    instance = fo.Instance(
        *([[10, 4]], [[1, 0], [1, 0], [0, 1]]),
        tasks=[np.inf, np.inf, 1],
        resources=["gpu", "cpu"],
        queues=queues,
        queue_of=["a", "b", "c"],
    )
    fo.save(instance, tmp_path / "tree.yaml")
    bounds = run("solve", tmp_path / "tree.yaml").stdout.split("Guarantees and limits")[1].split("\n\n")[0]
    assert row(bounds, "a").split() == ["a", "gpu", "9", "6", "3", "missing"]
    assert row(bounds, "c").split() == ["c", "cpu", "2", "1", "uses", "1"]
    assert row(bounds, "user-3").split() == ["user-3", "tasks", "1", "1", "all", "run"]


def test_a_page_of_100_columns_is_not_wider(tmp_path: Path) -> None:
    """Cells are folded, numbers are not."""
    run("solve", QUEUES, "-o", tmp_path / "page.txt")
    text = (tmp_path / "page.txt").read_text()
    assert max(map(len, text.splitlines())) <= 100
    assert "50.0769" in row(text, "research")


@pytest.mark.parametrize("columns", ["80", "140"])
def test_a_queue_and_its_only_user_of_the_same_name_are_one_row(columns: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As importers name them: limits of the queue and tasks of the user stand together. A second user, a guarantee of its own: two rows."""
    monkeypatch.setenv("COLUMNS", columns)
    queues = [fo.Queue("lab"), fo.Queue("lab/ann", "lab", limit={"gpu": 3}), fo.Queue("lab/bob", "lab"), fo.Queue("cyd"), fo.Queue("dan")]
    users = ["lab/ann", "lab/bob", "lab/bob, too", "cyd", "dan"]
    queue_of = ["lab/ann", "lab/bob", "lab/bob", "cyd", "dan"]
    tasks, guarantees = [7, np.inf, np.inf, np.inf, np.inf], [0, 0, 0, 1, 0]
    instance = fo.Instance(
        [[16]], [[1]] * 5, users=users, resources=["gpu"], tasks=tasks, guarantees=guarantees, queues=queues, queue_of=queue_of
    )
    fo.save(instance, tmp_path / "tree.yaml")
    text = run("solve", tmp_path / "tree.yaml").stdout
    names = [line.split("  ")[0] for line in map(str.strip, text.split("queue, user")[1].split("\n\n")[0].splitlines()[2:]) if line]
    assert [name for name in names if name[0] in "abcdl"] == [
        "lab",
        "lab/ann",
        "lab/bob",
        "lab/bob",
        "lab/bob, too",
        "cyd",
        "cyd",
        "dan",
        "all",
    ]
    if columns == "140":
        assert "3 gpu, 2.5 held" in row(text, "lab/ann")
    bounds = [" ".join(line.split()) for line in text.splitlines() if "tasks" in line]
    assert ("tasks 7 2.5" if columns == "80" else "7 tasks") in " ".join(bounds)


def test_many_users_and_queues_are_left_out_until_all_is_asked_for(tmp_path: Path) -> None:
    """60 queues of one user each in 3 queues: the three remain."""
    queues = [fo.Queue(f"top-{k}") for k in range(3)] + [fo.Queue(f"q-{k}", f"top-{k % 3}") for k in range(60)]
    instance = fo.Instance([[100]], np.ones((60, 1)), queues=queues, queue_of=[f"q-{k}" for k in range(60)])
    fo.save(instance, tmp_path / "tree.json")
    text = run("solve", tmp_path / "tree.json").stdout
    assert tree_of(text) == ["top-0", "top-1", "top-2", "all"]
    assert "Not shown: 60 users and 60 queues below level 1; --all shows everything." in flat(text)
    everything = run("solve", tmp_path / "tree.json", "--all").stdout
    assert len(tree_of(everything)) == 3 + 60 + 60 + 1
    assert "Not shown" not in everything


def test_json_and_csv_have_queues() -> None:
    """A list of queues, and the queue of each user."""
    data = json.loads(run("solve", QUEUES, "--json").stdout)
    assert [queue["name"] for queue in data["queues"]] == ["research", "vision", "interns", "language", "teaching", "guests"]
    assert data["users"][0]["queue"] == "vision"
    assert run("solve", QUEUES, "--csv").stdout.startswith("user,queue,tasks,share")


@pytest.fixture
def thirds(tmp_path: Path) -> Path:
    """Seven cores for queues of weights 1/3 and 2/3, the first with a limit of 1/3 of a core, and a queue of nobody."""
    path = tmp_path / "thirds.yaml"
    path.write_text(
        "servers:\n- {name: one, capacity: {cpu: 5}}\n- {name: two, capacity: {cpu: 2}}\n"
        "queues:\n- {name: a, weight: 1/3, limit: {cpu: 1/3}}\n- {name: b, weight: 2/3, guarantee: {cpu: 7/3}}\n- {name: none}\n"
        "users:\n- {name: ann, queue: a, demand: {cpu: 1}}\n- {name: ben, queue: b, demand: {cpu: 1}}\n"
        "- {name: cyd, queue: b, demand: {cpu: 1}, tasks: 1/7}\n"
    )
    return path


def price_in(path: Path) -> str:
    """Return the dual price of the limit of a."""
    exact = fo.solve(fo.load(path), "drfh", exact=True).exact
    assert exact is not None
    return str(exact.queue_prices["cpu of a"])


@pytest.mark.parametrize("columns", ["80", "140"])
def test_an_allocation_in_fractions_has_a_tree_in_fractions(thirds: Path, columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """b holds the 20/3 that the limit of a leaves, 13/3 more than its guarantee."""
    monkeypatch.setenv("COLUMNS", columns)
    price = price_in(thirds)
    text = run("solve", thirds, "--exact").stdout
    assert row(text, "a").split()[:4] == ["a", "1/3", "1/3", "1/21"]
    assert row(text, "ben").split()[:4] == ["ben", "1", "137/21", "137/147"]
    assert row(text, "none").split()[:4] == ["none", "1", "0", "0"]
    assert row(text, "all").split()[:3] == ["all", "7", "1"]
    if columns == "140":
        assert f"1/3 cpu, reached, price {price}" in row(text, "a")
        assert "7/3 cpu, met" in row(text, "b")
        assert row(text, "b").rstrip().endswith("13/3 cpu")
        assert "1/7 of a task, all run" in row(text, "cyd")
    else:
        bounds = text.split("Guarantees and limits")[1].split("\n\n")[0]
        assert row(bounds, "a").split() == ["a", "cpu", "1/3", "1/3", price, "reached"]
        assert row(bounds, "b").split() == ["b", "cpu", "7/3", "20/3", "met,", "+13/3"]
    assert "~" not in text


def test_a_long_fraction_in_the_tree_is_marked(thirds: Path) -> None:
    """Its decimal has the sign of rounded numbers, and a line says what the sign means."""
    thirds.write_text(thirds.read_text().replace("limit: {cpu: 1/3}", "limit: {cpu: 0.33333333333333333333}"))
    text = run("solve", thirds, "--exact").stdout
    assert row(text, "a").split()[:3] == ["a", "1/3", "~0.333333"]
    assert "~ a decimal in place of a long fraction" in flat(text)


def test_json_has_queues_in_fractions_beside_their_floats(thirds: Path) -> None:
    """Of solve and of compare, whose table has fractions, too. Without --exact there are floats alone."""
    a, b, none = queues = json.loads(run("solve", thirds, "--exact", "--json").stdout)["queues"]
    assert b["exact"] == {"tasks": "20/3", "share": "20/21", "dominant_share": "20/21", "weight": "2/3", "used": {"cpu": "20/3"}}
    assert (b["tasks"], b["used"]) == (20 / 3, {"cpu": 20 / 3})
    assert a["limits"][0]["exact"] == {"amount": "1/3", "held": "1/3", "price": price_in(thirds)}
    assert b["guarantees"][0]["exact"] == {"amount": "7/3", "held": "20/3", "missing": "0", "borrowed": "13/3"}
    assert none["exact"]["used"] == {"cpu": "0"}
    compared = json.loads(run("compare", thirds, "--exact", "--json").stdout)["rows"][0]["queues"]
    assert [queue["exact"] for queue in compared] == [queue["exact"] for queue in queues]
    assert row(run("compare", thirds, "--exact", "--by", "queue").stdout.split("queues")[1], "b").split() == ["b", "20/3", "95.2", "%"]
    assert "exact" not in run("solve", thirds, "--json").stdout.split('"queues"')[1].split('"servers"')[0]


@pytest.mark.parametrize("spec", ["drfh:guarantees=clamp:queue_share=sum", "drfh:queue_share=sum", "drfh"])
def test_rules_come_as_options_or_with_the_notion(spec: str) -> None:
    """Or some this way and some the other."""
    expected = fo.solve(fo.load(QUEUES), "drfh", guarantees="clamp", queue_share="sum").tasks_per_user
    options = [] if "clamp" in spec else ["--guarantees", "clamp"]
    options += [] if "sum" in spec else ["--queue-share", "sum"]
    users = json.loads(run("solve", QUEUES, "--notion", spec, *options, "--json").stdout)["users"]
    assert [user["tasks"] for user in users] == pytest.approx(expected)
    assert "(--guarantees clamp); queues are compared by the sums of their users' shares (--queue-share sum)" in flat(
        run("solve", QUEUES, "--notion", spec, *options).stdout
    )


def test_rules_reach_every_command_that_solves() -> None:
    """compare, audit, explain: what they compute is that of the rule."""
    expected = fo.solve(fo.load(QUEUES), "drfh", guarantees="clamp")
    bob = expected.tasks_per_user[1]
    told = json.loads(run("explain", QUEUES, "--user", "bob", "--guarantees", "clamp", "--resolves", 0, "--json").stdout)
    assert told["tasks"] == pytest.approx(bob)


def test_rules_are_refused_by_name() -> None:
    """A meaning that does not exist; a rule that is given twice; a notion without rules."""
    assert '--guarantees: there is no "clmp" (did you mean "clamp"?); use surplus or clamp' in flat(
        run("solve", QUEUES, "--guarantees", "clmp", status=2).stderr
    )
    twice = run("solve", QUEUES, "--notion", "drfh:guarantees=clamp", "--guarantees", "surplus", status=2)
    assert '"guarantees" is there twice' in flat(twice.stderr)
    assert 'takes no option "guarantees"' in flat(
        run("solve", EXAMPLES / "drf.yaml", "--notion", "bbf", "--guarantees", "clamp", status=2).stderr
    )


def test_rules_go_to_the_notions_that_take_them() -> None:
    """Of several notions those without rules stay as they are; where none takes them, each says so."""
    assert Shares(guarantees="clamp", queue_share="sum").of_all(["drfh", "bbf"]) == ["drfh:guarantees=clamp:queue_share=sum", "bbf"]
    assert Shares(guarantees="clamp").of_all(["bbf"]) == ["bbf:guarantees=clamp"]
    assert Shares().of_all(["drfh"]) == ["drfh"]


def test_guarantees_of_users_are_shown_without_queues(tmp_path: Path) -> None:
    """ann is guaranteed 4 tasks, which is more than half of 6."""
    instance = fo.Instance([[6]], [[1], [1]], guarantees=[4, 0], users=["ann", "ben"])
    fo.save(instance, tmp_path / "two.yaml")
    text = run("solve", tmp_path / "two.yaml").stdout
    assert "4 tasks, met" in row(text, "ann")
    assert "guarantee" in text.splitlines()[2]
    assert "guarantee" not in run("solve", EXAMPLES / "drf.yaml").stdout


def test_the_picture_of_queues(tmp_path: Path) -> None:
    """Written where there are queues, refused where there are none."""
    run("solve", QUEUES, "--plot-queues", tmp_path / "tree.svg")
    assert "What each queue holds of gpu" in (tmp_path / "tree.svg").read_text()
    refused = run("solve", EXAMPLES / "drf.yaml", "--plot-queues", tmp_path / "none.svg", status=2)
    assert "has no queues to draw" in flat(refused.stderr)
    assert not (tmp_path / "none.svg").exists()


def test_the_legend_does_not_contradict_the_rule() -> None:
    """The column has what is compared: the dominant share of what a queue holds, which is no sum of its users' shares."""
    text = flat(run("solve", QUEUES).stdout)
    assert (
        "share: of a queue, the dominant share of everything its users hold. dominant: the largest part of the cluster that it holds."
        in text
    )
    assert "queues are compared by their dominant shares (--queue-share dominant)" in text
    assert "the share of a queue" not in text
