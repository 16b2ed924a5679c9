"""``fairopt solve``: what it prints for people and for programs, how it refuses, and what it leaves on the disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from support.command_line import EXAMPLES, PAPER, flat, run

import fairopt as fo
from fairopt.plots import save_figure
from fairopt.program import Solution
from fairopt.solvers.interior_point import paths
from fairopt.solvers.via_highs import whole_tasks


def test_json_is_the_allocation_with_the_time_to_read() -> None:
    """The fields that the contract names, and the numbers of the paper."""
    data = json.loads(run("solve", PAPER, "--json").stdout)
    assert {"notion", "solver", "users", "servers", "certificate", "seconds"} <= set(data)
    assert (data["notion"], data["solver"], data["sharing"]) == ("drfh", "highs", "rdm")
    assert [round(user["tasks"], 3) for user in data["users"]] == [2.609, 3.130, 6.261]
    assert all({"name", "tasks", "share"} <= set(user) for user in data["users"])
    assert list(data["seconds"]) == ["read", "formulate", "solve", "certify"]
    assert data["certificate"]["worst"] <= 1e-9


def test_csv_has_a_row_for_each_user(three: Path) -> None:
    """The frame of the allocation, labels untouched."""
    lines = run("solve", three, "--csv").stdout.splitlines()
    assert lines[0].startswith("user,tasks,share,level,dominant_resource,weight,tasks @ big[blue]")
    assert [line.split(",")[0] for line in lines[1:]] == ["[red]alice[/red]", "[/]", "carol"]


def test_options_reach_solve(three: Path) -> None:
    """Notion, engine, sharing, whole tasks and the options of a notion."""
    assert json.loads(run("solve", three, "--integral", "--json").stdout)["certificate"]["whole_tasks"]
    assert json.loads(run("solve", three, "--sharing", "tdm", "--notion", "tsf", "--json").stdout)["sharing"] == "tdm"
    one_level = json.loads(run("solve", PAPER, "--formulation", "equalize", "--solver", "highs", "--json").stdout)
    assert len({round(user["share"], 9) for user in one_level["users"]}) == 1


def test_options_of_psdsf_reach_solve() -> None:
    """Turns, seed and delay make the record of the servers; the market has its engines."""
    options = ("--order", "asynchronous", "--seed", 3, "--delay", 4)
    data = json.loads(run("solve", PAPER, "--notion", "psdsf", *options, "--json").stdout)
    assert [user["tasks"] for user in data["users"]] == pytest.approx([3, 3, 6])
    direct = fo.solve(fo.load(PAPER), "psdsf", order="asynchronous", seed=3, delay=4)
    assert data["details"]["iterations"] == direct.details["iterations"]
    market = ("--sharing", "tdm", "--formulation", "market", "--solver", "trajectory")
    assert json.loads(run("solve", PAPER, "--notion", "psdsf", *market, "--json").stdout)["solver"] == "trajectory"


def test_a_notion_may_bring_its_options() -> None:
    """As in compare, audit and explain; an option besides is refused, not lost."""
    spec, option = (
        json.loads(run("solve", PAPER, "--json", "--notion", *words).stdout)["users"]
        for words in (("proportional:alpha=2",), ("proportional", "--alpha", 2))
    )
    assert spec == option
    assert "alpha" in run("solve", PAPER, "--notion", "proportional:alpha=2", "--alpha", 3, status=2).stderr


def test_prefer_chooses_among_fair_allocations(tmp_path: Path) -> None:
    """The ends of the fair set of bottleneck-based fairness, section 5.5: z from 0.5 to 0.7."""
    pool = fo.Instance([[1, 1]], [[1, 1], [0, 1], [1, 0]], weights=[0.5, 0.3, 0.2], users=["a", "b", "c"])
    fo.save(pool, tmp_path / "pool.yaml")
    for sign, expected in ((1, 0.7), (-1, 0.5)):
        (tmp_path / "want.csv").write_text(f"user,weight\na,{sign}\nb,0\nc,0\n")
        result = run("solve", tmp_path / "pool.yaml", "--notion", "bbf", "--prefer", tmp_path / "want.csv", "--json")
        assert json.loads(result.stdout)["users"][0]["tasks"] == pytest.approx(expected)
    assert "takes no option" in flat(run("solve", tmp_path / "pool.yaml", "--notion", "drf", "--alpha", "2", status=2).stderr)


def test_three_users_are_shown_one_by_one(three: Path) -> None:
    """Every user and server, markup left alone, within 80 columns."""
    result = run("solve", three)
    text = result.stdout
    assert result.stderr == ""
    assert text.startswith("Dominant resource fairness, heterogeneous servers (drfh, by highs)\n")
    assert "[red]alice[/red] " in text
    assert "\n[/] " in text
    assert "big[blue]      2  █" in text
    assert "weight" not in text
    carol = next(line for line in text.splitlines() if line.startswith("carol"))
    assert carol.split() == ["carol", "2.00000", "0.100000", "cpu", "all", "tasks"]
    assert "Certified exact: relative error " in text
    assert [word for word in ("read", "formulate", "solve", "certify") if word in text.splitlines()[-1]] == [
        "read",
        "formulate",
        "solve",
        "certify",
    ]
    assert max(map(len, text.splitlines())) <= 80


def test_weights_appear_when_they_differ() -> None:
    """Figure 1 of the PS-DSF paper has weights 1, 1, 2."""
    text = run("solve", PAPER).stdout
    assert "weight" in text
    row = next(line for line in text.splitlines() if line.startswith("user-3"))
    assert row.split() == ["user-3", "2", "6.26087", "0.26087", "memory", "1"]


def test_a_share_that_is_the_number_of_tasks_is_not_shown_twice() -> None:
    """In a sum that counts tasks; with weights of a max-min goal the two differ."""
    assert "share" not in run("solve", PAPER, "--notion", "efficiency").stdout.splitlines()[2]
    assert "share" in run("solve", PAPER, "--notion", "max-min").stdout.splitlines()[2]


def test_what_was_certified_is_said_exactly() -> None:
    """With prices, from the answer, or as the best that branch and cut found."""
    assert "recomputed from answer and prices" in run("solve", PAPER, "--notion", "proportional").stdout
    assert "recomputed from the answer\n" in run("solve", PAPER, "--notion", "psdsf").stdout
    best = run("solve", EXAMPLES / "bbf-section-5.yaml", "--notion", "bbf", "--prefer", "utilization").stdout
    assert "Fairness recomputed; the best of all fair allocations by branch and cut" in best


def test_time_is_what_is_shown_under_time_division(three: Path) -> None:
    """One bar for each server."""
    text = run("solve", three, "--sharing", "tdm").stdout
    assert "time" in text
    assert "memory " not in text.split("server", maxsplit=2)[2]


def test_many_users_are_summarised(many: Path) -> None:
    """Quartiles, the lowest shares, who has all tasks; and --all shows everybody."""
    text = run("solve", many).stdout
    for part in (
        "500 users",
        "min  quartile 1",
        "median  quartile 3",
        "Lowest share among users who want more",
        "100 users run all their tasks: user-1, user-6",
        "30 servers",
    ):
        assert part in text
    assert "and 95 more. --all shows every user." in flat(text)
    assert len(text.splitlines()) < 40
    assert max(map(len, text.splitlines())) <= 80
    everything = run("solve", many, "--all").stdout
    assert all(f"\nuser-{n} " in everything for n in range(1, 501))
    assert all(f"\nserver-{i} " in everything for i in range(1, 31))


def test_users_who_cannot_run_are_named_once(many: Path) -> None:
    """On stderr, so that the JSON can be piped."""
    result = run("solve", many, "--json")
    assert result.stderr.count("user-4") == 1
    assert result.stderr.startswith("warning: no server is eligible for user-4")
    assert json.loads(result.stdout)["unservable"] == ["user-4"]


def test_what_the_cluster_has_none_of_is_named(tmp_path: Path) -> None:
    """Then it is not the servers that keep the tasks away."""
    path = tmp_path / "lab.yaml"
    path.write_text("servers: [{name: s, capacity: {cpu: 9}}]\nshared: {ansys: 9}\nusers: [{name: L, demand: {cpu: 1, ansys: 1}}]\n")
    message = flat(run("solve", path, "--set", "shared.ansys=0").stderr)
    assert (
        "no server is eligible for L (the cluster has no ansys); users without a server get no tasks and are left out of the goal"
        in message
    )


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    """A label may hold an escape sequence; it is shown as its escape."""
    fo.save(fo.Instance([[1.0]], [[1.0]], users=["eve\x1b[31m\r"]), tmp_path / "eve.json")
    text = run("solve", tmp_path / "eve.json").stdout
    assert "\x1b" not in text
    assert r"eve\x1b[31m\r" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.yaml"], "error: there is no file nowhere.yaml"),
        ([PAPER, "--notion", "tfs"], 'error: there is no notion "tfs" (did you mean "tsf"?)'),
        ([PAPER, "--notion", "drf"], 'error: "drf" is defined on one server and the instance has 2; use "drfh"'),
        ([PAPER, "--solver", "hihgs"], 'error: there is no solver "hihgs" (did you mean "highs"?)'),
        ([PAPER, "--solver", "water-filling"], 'error: "water-filling" cannot solve "drfh" here'),
        ([PAPER, "--sharing", "both"], 'error: --sharing: there is no "both"; use rdm or tdm'),
        ([PAPER, "--formulation", "both"], 'error: drfh has no formulation "both"'),
        ([PAPER, "--notion", "tsf", "--formulation", "equalize"], 'error: the notion "tsf" takes no option "formulation"'),
        ([PAPER, "--order", "random"], 'error: the notion "drfh" takes no option "order"; it takes formulation'),
        ([PAPER, "--order", "random"], "; leave --order out, or choose a notion that takes it: psdsf"),
        ([PAPER, "--beta", "3"], "; leave --beta out, or choose a notion that takes it: fds, gfj"),
        (
            [PAPER, "--notion", "tsf", "--seed", "1"],
            'error: the notion "tsf" takes no option "seed"; it takes guarantees, queue_share, tree',
        ),
        ([PAPER, "--notion", "bbf", "--delay", "1"], 'error: the notion "bbf" takes no option "delay"; it takes prefer'),
        (
            [PAPER, "--notion", "psdsf", "--order", "backwards"],
            'error: --order: there is no "backwards"; use sequential, random or asynchronous',
        ),
        ([PAPER, "--notion", "psdsf", "--order", "random", "--seed", "-1"], "error: the seed of psdsf is -1; give a whole number >= 0"),
        ([PAPER, "--notion", "psdsf", "--order", "asynchronous", "--delay", str(2**63)], "the delay of psdsf is 9223372036854775808; give"),
        (
            [PAPER, "--notion", "psdsf", "--prefer", "utilization", "--order", "random"],
            "without turns of servers; leave --order and --seed out",
        ),
        ([PAPER, "--notion", "psdsf", "--delay", "2"], "have a delay; use --order asynchronous"),
        ([PAPER, "--notion", "psdsf", "--formulation", "market"], "resource division has none; use --sharing tdm"),
        ([PAPER, "--tolerance", "0"], "error: --tolerance is 0"),
        ([PAPER, "--time-limit", "-1"], "error: --time-limit is -1"),
        ([PAPER, "--plot", "picture.bmp"], 'error: cannot tell the format of the picture "picture.bmp"'),
        ([PAPER, "--plot", "nowhere/picture.svg"], "there is no folder nowhere"),
        ([PAPER, "--output", "nowhere/answer.json"], "there is no folder nowhere"),
        ([PAPER, "--json", "--csv"], "choose one of --json and --csv"),
        ([PAPER, "--nonsense"], "No such option"),
        ([], "Missing argument"),
    ],
)
def test_bad_input_is_status_2_and_one_message(arguments: list[object], message: str) -> None:
    """On stderr, and nothing on stdout."""
    result = run("solve", *arguments, status=2)
    assert message.lower() in flat(result.stderr).lower()
    assert result.stdout == ""


@pytest.mark.parametrize(("name", "start"), [("a.json", "{"), ("a.csv", "user,"), ("a.txt", "Dominant"), ("a", "Dominant")])
def test_the_name_of_the_file_says_what_is_written(name: str, start: str, tmp_path: Path) -> None:
    """As with the option of that name."""
    run("solve", PAPER, "-o", tmp_path / name)
    assert (tmp_path / name).read_text().startswith(start)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    """Said before anything is computed."""
    for option in ("--output", "--plot"):
        assert "is a folder; give the name of a file" in flat(run("solve", PAPER, option, tmp_path, status=2).stderr)


def test_no_solution_is_status_3(many: Path) -> None:
    """A time limit that nobody can keep."""
    assert run("solve", many, "--time-limit", "1e-6", status=3).stderr.splitlines()[-1].startswith("error: no answer within the time limit")


def test_memory_that_runs_out_is_status_3(three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One message, which says what to do."""

    def too_much(*_: object) -> Solution:
        raise MemoryError("Unable to allocate 7.28 TiB")

    monkeypatch.setattr(paths, "solve_levels", too_much)
    said = flat(run("solve", three, "--notion", "drfh", "--solver", "interior-point", status=3).stderr)
    assert said.startswith('error: "interior-point" ran out of memory on ')
    assert "(Unable to allocate 7.28 TiB); ask about fewer pairs" in said


def test_the_time_limit_of_cvxpy_is_status_3(many: Path) -> None:
    """It is told to the solver inside."""
    arguments = ("--notion", "proportional", "--solver", "cvxpy", "--alpha", "2", "--time-limit", "0.01")
    assert "no answer within the time limit of 0.01 s" in run("solve", many, *arguments, status=3).stderr


def test_a_failed_certificate_is_status_3(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever solve raises is a message, never a traceback."""

    def refuse(*arguments: object, **options: object) -> None:
        raise fo.CertificateError("the answer fails its check")

    monkeypatch.setattr(fo, "solve", refuse)
    assert run("solve", PAPER, status=3).stderr == "error: the answer fails its check\n"


def test_a_full_disk_is_a_message(three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OSError on output."""

    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fairopt.commands.delivering.print_blocks", full)
    assert run("solve", three, status=2).stderr == "error: stdout: No space left on device\n"


def test_a_utility_keeps_fractions(three: Path, tmp_path: Path) -> None:
    """1/3 is a third, not the decimal of its float."""
    utility = tmp_path / "u.csv"
    utility.write_text("user,small,big[blue]\ncarol,1/3,1\n[/],1/3,1\n[red]alice[/red],1/3,1\n")
    data = json.loads(run("solve", three, "--notion", "max-min", "--utility", utility, "--exact", "--json").stdout)
    thirds = fo.solve(fo.load(three), "max-min", utility=[[1, Fraction(1, 3)]] * 3, exact=True).exact
    assert thirds is not None
    assert [user["exact"]["share"] for user in data["users"]] == [str(share) for share in thirds.shares]


def test_audits_in_fractions(three: Path, tmp_path: Path) -> None:
    """Of the exact allocation, of a schedule and of one's own tasks; a scheduler of one's own has no fractions."""
    for source in (["--notion", "tsf"], ["--schedule", "drfh:best-fit"]):
        data = json.loads(run("audit", three, *source, "--exact", "--properties", "envy-freeness", "--json").stdout)
        assert Fraction(data["properties"][0]["exact"]) >= 0
    own = tmp_path / "own.csv"
    own.write_text("user,server,tasks\ncarol,small,1/3\n")
    data = json.loads(run("audit", three, "--allocation", own, "--exact", "--properties", "sharing-incentive", "--json").stdout)
    assert "/" in data["properties"][0]["exact"]


def test_utility_is_aligned_by_label(three: Path, tmp_path: Path) -> None:
    """Rows and columns in any order; worth 2 on the small server halves what a share costs there."""
    utility = tmp_path / "u.csv"
    utility.write_text("user,small,big[blue]\ncarol,2,1\n[/],2,1\n[red]alice[/red],2,1\n")
    data = json.loads(run("solve", three, "--notion", "max-min", "--utility", utility, "--json").stdout)
    direct = fo.solve(fo.load(three), "max-min", utility=[[1, 2]] * 3)
    assert [user["share"] for user in data["users"]] == pytest.approx(direct.shares.tolist())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("user,small\ncarol,1\n", 'there is no column for "big[blue]"'),
        ("user,smal,big[blue]\ncarol,1,1\n", 'there is no "smal" (did you mean "small"?)'),
        ("user,small,big[blue]\ncarol,1,1\n", 'there is no row for user "[red]alice[/red]"'),
        ("user,small,big[blue]\ncarol,1,1\ncarol,1,1\n", 'line 3: user "carol" has a row already'),
        ("user,small,big[blue]\ncarol,1,one\n[/],1,1\n[red]alice[/red],1,1\n", 'line 2, column "big[blue]": expected a number'),
        ("user,small,big[blue]\ncarol,1,0\n[/],1,1\n[red]alice[/red],1,1\n", 'the utility of "carol" for "big[blue]" is 0; it must be'),
    ],
)
def test_a_wrong_utility_is_refused(three: Path, tmp_path: Path, text: str, message: str) -> None:
    """With the place."""
    (tmp_path / "u.csv").write_text(text)
    assert message in flat(run("solve", three, "--notion", "max-min", "--utility", tmp_path / "u.csv", status=2).stderr)


@pytest.mark.parametrize(("option", "check"), [("--json", json.loads), ("--csv", str.splitlines), ("--all", str.splitlines)])
def test_output_goes_to_a_file(three: Path, tmp_path: Path, option: str, check: Callable[[str], object]) -> None:
    """Complete, and nothing on stdout or left beside it."""
    target = tmp_path / "out" / "answer"
    target.parent.mkdir()
    target.write_text("old")
    assert run("solve", three, option, "--output", target, "--force").stdout == ""
    assert check(target.read_text())
    assert [path.name for path in target.parent.iterdir()] == ["answer"]


def test_what_was_there_stays_when_solving_fails(three: Path, tmp_path: Path) -> None:
    """A file is replaced only by a complete one."""
    target = tmp_path / "answer.json"
    target.write_text("old")
    run("solve", three, "--json", "--output", target, "--notion", "drf", status=2)
    assert target.read_text() == "old"


def test_plot_is_written_beside_the_answer(three: Path, tmp_path: Path) -> None:
    """As a picture of the kind that the name says."""
    run("solve", three, "--plot", tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_the_path_of_the_trajectory_is_drawn(tmp_path: Path) -> None:
    """A picture of its own beside that of the allocation; the same that Python draws."""
    pictures = [tmp_path / name for name in ("answer.svg", "path.svg", "python.svg")]
    arguments = ["--notion", "proportional", "--solver", "trajectory"]
    run("solve", PAPER, *arguments, "--plot", pictures[0], "--plot-path", pictures[1])
    save_figure(fo.solve(fo.load(PAPER), "proportional", solver="trajectory").trace.plot(), pictures[2])
    answer, path, python = (picture.read_bytes() for picture in pictures)
    assert path == python != answer


def test_no_path_where_there_is_none(tmp_path: Path) -> None:
    """Another engine, another suffix, no room for anybody."""
    target = tmp_path / "path.svg"
    assert "add --solver trajectory" in flat(run("solve", PAPER, "--notion", "proportional", "--plot-path", target, status=2).stderr)
    assert "add --solver trajectory" in flat(run("solve", PAPER, "--notion", "psdsf", "--plot-polytope", target, status=2).stderr)
    market = ("--notion", "psdsf", "--formulation", "market", "--sharing", "tdm", "--plot-path", target)
    assert "does not record how it reaches its answer" in flat(run("solve", PAPER, *market, status=2).stderr)
    assert "end its name in" in flat(run("solve", PAPER, "--solver", "trajectory", "--plot-path", "path.bmp", status=2).stderr)
    fo.save(fo.Instance([[1]], [[1]], tasks=[0]), tmp_path / "nothing.yaml")
    for rest, status in ((["--plot-path", target], 2), ([], 0)):
        done = run("solve", tmp_path / "nothing.yaml", "--notion", "proportional", "--solver", "trajectory", *rest, status=status)
        assert ("no path to draw" in flat(done.stderr)) == (status == 2)
    assert not target.exists()


def test_the_sweeps_of_psdsf_are_drawn(tmp_path: Path) -> None:
    """The same picture as in Python."""
    run("solve", PAPER, "--notion", "psdsf", "--plot-path", tmp_path / "sweeps.svg")
    save_figure(fo.solve(fo.load(PAPER), "psdsf").trace.plot(), tmp_path / "python.svg")
    assert (tmp_path / "sweeps.svg").read_bytes() == (tmp_path / "python.svg").read_bytes()


def test_who_asks_for_sweeps_gets_the_engine_that_makes_them(tmp_path: Path) -> None:
    """A large market, which another engine solves without turns where nobody asks for them."""
    instance = fo.generate("uniform", users=200, servers=50, resources=2, seed=0)
    fo.save(instance, tmp_path / "many.json")
    assert fo.solve(instance, "psdsf", sharing="tdm").solver == "interior-point"
    run("solve", tmp_path / "many.json", "--notion", "psdsf", "--sharing", "tdm", "--plot-path", tmp_path / "sweeps.svg")
    assert (tmp_path / "sweeps.svg").exists()


def test_the_path_in_its_polytope_is_drawn_beside_drf(tmp_path: Path) -> None:
    """Where two or three users share one pool; for more there is a message."""
    example = EXAMPLES / "bbf-section-4.yaml"
    run("solve", example, "--notion", "bbf", "--solver", "trajectory", "--plot-polytope", tmp_path / "polytope.svg")
    trace = fo.solve(fo.load(example), "bbf", solver="trajectory").trace
    save_figure(trace.plot_polytope({"DRF": [2 / 3, 2 / 3]}), tmp_path / "paper.svg")  # section 4 of Dolev et al. prints this point
    ours, paper = ((tmp_path / name).read_text() for name in ("polytope.svg", "paper.svg"))
    assert ours == paper
    ring = ("--notion", "bbf", "--solver", "trajectory", "--plot-polytope", tmp_path / "ring.svg")
    assert "this path moves 4" in flat(run("solve", EXAMPLES / "bbf-ring.yaml", *ring, status=2).stderr)


def test_digits_on_the_command_line(tmp_path: Path) -> None:
    """--digits prints the digits that are proved, and JSON has the radius beside them."""
    path = tmp_path / "c.yaml"
    path.write_text("servers:\n- {name: A, capacity: {cpu: 9}}\nusers:\n- {name: a, demand: {cpu: 1}}\n- {name: b, demand: {cpu: 3}}\n")
    options = ("--notion", "proportional", "--alpha", "2", "--exact", "--digits", "20")
    page = flat(run("solve", path, *options).stdout)
    assert "3.2942286340599478208" in page  # 9 (sqrt(3) - 1) / 2
    assert "relative" in page
    plain = json.loads(run("solve", path, *options, "--json").stdout)
    assert 0 < plain["certificate"]["radius"] <= 1e-20
    assert plain["users"][0]["exact"]["tasks"].startswith("3.2942286340599478208")
    run("solve", path, "--digits", "20", status=2)


def test_fractions_on_the_command_line(tmp_path: Path) -> None:
    """--exact prints fractions, marks those that are rounded, and has all digits as JSON."""
    path = tmp_path / "c.yaml"
    path.write_text(
        "servers:\n- {name: A, capacity: {cpu: 20/3, memory: 30}}\n"
        "users:\n- {name: a, demand: {cpu: 1}}\n- {name: b, demand: {cpu: 1, memory: 0.1234567890123456789}, tasks: 1/3}\n"
    )
    page = run("solve", path, "--exact")
    assert "19/3" in flat(page.stdout)
    assert "1/3" in flat(page.stdout)
    assert "Proved exact in rational arithmetic" in flat(page.stdout)
    plain = json.loads(run("solve", path, "--exact", "--json").stdout)
    assert [user["exact"]["tasks"] for user in plain["users"]] == ["19/3", "1/3"]
    assert plain["users"][0]["exact"]["servers"] == {"A": "19/3"}
    assert plain["certificate"]["exact"] is True
    assert plain["levels"][0]["exact"] == "1/20"
    assert "2/7" in flat(run("solve", path, "--exact", "--set", "users.b.weight=2/7").stdout)  # in the column of weights
    path.write_text(path.read_text().replace("20/3", "6.66666666666666666667"))
    rounded = flat(run("solve", path, "--exact").stdout)
    assert "~6.3333" in rounded
    assert "~ a decimal in place of a long fraction" in rounded
    run("solve", path, "--exact", "--integral", status=2)


@pytest.mark.parametrize("form", ["page", "json"])
def test_the_time_limit_leaves_the_best_whole_tasks(three: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    """They are shown with their bound and gap, not said to be an optimum; the status is that of no solution."""

    def time_is_up(search: whole_tasks.LevelsOfTotals, _: int) -> float:
        raise search.deadline.passed(search.known())

    monkeypatch.setattr(whole_tasks.LevelsOfTotals, "_highest_level", time_is_up)
    options = ["--json"] if form == "json" else []
    found = run("solve", three, "--integral", "--time-limit", "60", *options, status=3)
    assert "no answer within the time limit of 60 s" in flat(found.stderr)
    if form == "json":
        data = json.loads(found.stdout)
        assert data["certificate"]["best_found"]
        assert data["certificate"]["optimality"] is None
        assert all(user["tasks"] == round(user["tasks"]) for user in data["users"])
        shares = [user["share"] for user in data["users"]]
        assert data["details"]["value"] == pytest.approx(min(shares))
        assert min(shares) > 0
        best = min(user["share"] for user in json.loads(run("solve", three, "--json").stdout)["users"])
        assert min(shares) <= data["details"]["bound"] <= best * (1 + 1e-9)
    else:
        assert "best found by highs" in flat(found.stdout)
        assert "Best found, so not an optimum. Limits recomputed: all kept; it reaches" in flat(found.stdout)
        assert "and no allocation more than" in flat(found.stdout)


def test_digits_that_cannot_be_proved_are_no_solution(tmp_path: Path) -> None:
    """One message and status 3: floats do not show the active sets at so large an alpha."""
    path = tmp_path / "lab.yaml"
    path.write_text(
        "servers: [{name: s, capacity: {cpu: 9, gpu: 18}}]\nrules: ['x[a] >= 2 * x[b]']\n"
        "users: [{name: a, demand: {cpu: 1, gpu: 4}}, {name: b, demand: {cpu: 3, gpu: 1}}, {name: c, demand: {cpu: 2, gpu: 2}}]\n"
    )
    message = flat(run("solve", path, "--notion", "proportional", "--alpha", "10000", "--exact", status=3).stderr)
    assert "no digits of it can be proved; use a smaller alpha" in message


def test_a_gap_that_is_allowed_is_an_answer(three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gap is (bound - value) / bound: exit status 0 from there on, and 3 below it; the answer says that it is not proved."""

    def time_is_up(search: whole_tasks.LevelsOfTotals, _: int) -> float:
        search.bound = 2 * float(search.reached()[0])  # a gap of a half
        raise search.deadline.passed(search.known())

    monkeypatch.setattr(whole_tasks.LevelsOfTotals, "_highest_level", time_is_up)
    options = ["solve", three, "--integral", "--time-limit", "60", "--json", "--allow-gap"]
    run(*options, "0.499", status=3)
    accepted = run(*options, "0.5")
    assert json.loads(accepted.stdout)["details"]["gap"] == pytest.approx(0.5)
    assert json.loads(accepted.stdout)["certificate"]["best_found"]
    assert "the answer is the best that was found, with a gap of 0.5, and not proved" in flat(accepted.stderr)
    assert "give a number from 0 to 1" in flat(run(*options, "2", status=2).stderr)
    assert "at a time limit" in flat(run("solve", three, "--allow-gap", "1", status=2).stderr)


def test_a_user_named_twice_is_one_row() -> None:
    """And the others are counted once."""
    once, twice = (run("solve", EXAMPLES / "gpu-lab", *["--show", "vision"] * number).stdout for number in (1, 2))
    assert [line for line in once.splitlines() if not line.startswith("Time")] == [
        line for line in twice.splitlines() if not line.startswith("Time")
    ]


def test_the_time_in_json_counts_reading() -> None:
    """Of all phases."""
    data = json.loads(run("solve", EXAMPLES / "drf.yaml", "--json").stdout)
    assert data["phases_s"] == data["seconds"]
    assert "read" in data["phases_s"]
    assert data["time_s"] == pytest.approx(sum(data["phases_s"].values()))


def test_options_of_a_solver() -> None:
    """They reach it; what is no option, or one that it does not know, is bad input."""
    plain = json.loads(run("solve", PAPER, "--json").stdout)["users"]
    options = ("--solver", "highs", "--solver-option", "threads=1", "--solver-option", "presolve=off")
    assert [user["tasks"] for user in json.loads(run("solve", PAPER, *options, "--json").stdout)["users"]] == pytest.approx(
        [user["tasks"] for user in plain]
    )
    for given, words in (
        (("--solver", "highs", "--solver-option", "thread=1"), 'error: "highs" takes no option "thread" (did you mean "threads"?)'),
        (
            ("--solver", "highs", "--solver-option", "threads"),
            'error: --solver-option: "threads" is no option of a solver; write',
        ),
        (("--solver", "highs", "--solver-option", "threads=1", "--solver-option", "threads=2"), "threads is given twice, 1 and 2"),
        (("--solver-option", "threads=1"), "error: options of a solver, as threads is, need its name"),
    ):
        found = run("solve", PAPER, *given, status=2)
        assert words in flat(found.stderr)
        assert found.stdout == ""
