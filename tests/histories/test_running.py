"""What was due and what was received: numbers worked out by hand, a slow loop, and what holds of every log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.history import slow_loop

import fairopt as fo
from fairopt.errors import InvalidInstance, NoSolution

POOL = fo.Instance([[8, 32]], [[1, 1]], resources=["cpu", "memory"])
WORDS = ["entitled", "received", "shortfall", "surplus"]


def log(*rows: tuple[Any, ...]) -> pd.DataFrame:
    """Return a log of rows of user, submit, start, end (hours), tasks, cpu and memory."""
    frame = pd.DataFrame(list(rows), columns=["user", "submit", "start", "end", "tasks", "cpu", "memory"])
    return frame.assign(**{name: frame[name] * 3600.0 for name in ("submit", "start", "end")})


# A holds all 8 CPUs from 0 to 4 h. B asks for 8 from 1 h, and gets them from 4 to 6 h. C asks for 2 from 2 to 3 h, when it leaves.
#   0-1 h  nobody waits: A 1 is due and held.
#   1-2 h  A and B are due 1/2 each: A +1/2, B -1/2.
#   2-3 h  C asks for 1/4, less than a third: C 1/4, A and B 3/8: A +5/8, B -3/8, C -1/4.
#   3-4 h  as from 1 to 2 h.        4-6 h  nobody waits.
BY_HAND = log(("A", 0, 0, 4, 8, 1, 1), ("B", 1, 4, 6, 8, 1, 1), ("C", 2, None, 3, 2, 1, 4))


def test_three_owners_by_hand() -> None:
    """Shares and tasks; B and C envy A for what they lack of an equal part."""
    found = fo.history(BY_HAND, POOL)
    table = found.to_frame()
    assert table[WORDS].to_numpy() == pytest.approx(
        np.array([[1 + 1 / 2 + 3 / 8 + 1 / 2, 4, 0, 13 / 8], [1 / 2 + 3 / 8 + 1 / 2 + 2, 2, 11 / 8, 0], [1 / 4, 0, 1 / 4, 0]])
    )
    assert table["shortfall_tasks"].tolist() == pytest.approx([0, 11, 2])
    assert table["waiting"].tolist() == pytest.approx([0, 3, 1 / 4])
    # With all that A holds, B could run 8 tasks, and C its 2.
    assert table["envy"].tolist() == pytest.approx([0, 3, 1 / 4])
    assert found.is_exact
    assert found.to_dict()["contended_hours"] == pytest.approx(3)


def test_a_log_in_which_nothing_ever_ran() -> None:
    """A asks for the half of the CPUs for two hours, and leaves: it was due one share-hour."""
    table = fo.history(log(("A", 0, None, 2, 4, 1, 1)), POOL).to_frame()
    assert table[WORDS].to_numpy() == pytest.approx(np.array([[1, 0, 1, 0]]))


def test_averages_over_time_are_allocations() -> None:
    """What ran on average, and what was due, go to compare and audit; the cluster is that of the log."""
    found = fo.history(BY_HAND, POOL)
    assert found.instance.users == ("A", "B", "C")
    assert found.instance.tasks.tolist() == pytest.approx([8 * 4 / 6, 8 * 5 / 6, 2 / 6])
    assert found.held.tasks_per_user.tolist() == pytest.approx([8 * 4 / 6, 8 * 2 / 6, 0])
    assert found.due.tasks_per_user.tolist() == pytest.approx([8 * (2.375) / 6, 8 * (3.375) / 6, 2 / 6])
    rows = fo.compare(found.instance, allocations={"held": found.held, "due": found.due})
    assert [row.name for row in rows] == ["drfh", "held", "due"]
    assert fo.audit(found.held, effort=2)["pareto"] is not None


def test_an_hour_of_the_day_and_the_worst_time_by_hand() -> None:
    """From 2 to 3 h, most is lacking: 3/8 + 1/4."""
    found = fo.history(BY_HAND, POOL)
    hours = found.to_frame("hour")
    assert hours["shortfall"].tolist() == pytest.approx([0, 1 / 2, 5 / 8, 1 / 2, 0, 0])
    assert hours["received"].tolist() == pytest.approx([1] * 6)
    worst = found.worst(1)[0]
    assert (worst.start, worst.end) == (7200, 7320)
    assert dict(worst.lacked) == pytest.approx({"B": 3 / 8, "C": 1 / 4})
    assert dict(worst.beyond) == pytest.approx({"A": 5 / 8})


def test_queues_by_hand() -> None:
    """Two queues of weights 1 and 3; what one owner of a queue lacks and another has beyond its due is even for the queue."""
    cluster = fo.Instance(
        [[8, 8]],
        [[1, 1]] * 3,
        queues=[fo.Queue("lab"), fo.Queue("firm", weight=3)],
        queue_of=["lab", "firm", "firm"],
        users=["a", "b", "c"],
        resources=["cpu", "memory"],
    )
    # Due: a 1/4, b and c 3/8 each. Held for an hour: a 1/4, b 3/4.
    found = fo.history(
        log(("a", 0, 0, 1, 2, 1, 1), ("a", 0, None, 1, 8, 1, 1), ("b", 0, 0, 1, 6, 1, 1), ("c", 0, None, 1, 6, 1, 1)), cluster
    )
    assert found.to_frame()[WORDS].to_numpy() == pytest.approx(
        np.array([[1 / 4, 1 / 4, 0, 0], [3 / 8, 3 / 4, 0, 3 / 8], [3 / 8, 0, 3 / 8, 0]])
    )
    assert found.to_frame("queue")[WORDS].to_numpy() == pytest.approx(np.array([[1 / 4, 1 / 4, 0, 0], [3 / 4, 3 / 4, 0, 0]]))
    assert found.to_frame()["envy"].tolist() == pytest.approx([0, 0, 3 / 4])  # c of b, and a of nobody


def test_an_owner_of_several_shapes_has_one_share() -> None:
    """A with two shapes and B with one are due half each."""
    found = fo.history(log(("A", 0, None, 1, 8, 1, 1), ("A", 0, None, 1, 8, 2, 2), ("B", 0, 0, 1, 8, 1, 1)), POOL)
    assert found.to_frame()["entitled"].tolist() == pytest.approx([1 / 2, 1 / 2])


# A slow loop ------------------------------------------------------------------------------------------------------------------------

CLUSTER = fo.Instance(
    [[8, 16, 0], [4, 32, 2]],
    [[1, 1, 0]] * 3,
    counts=[2, 1],
    weights=[2, 1, 1],
    users=["A", "B", "C"],
    servers=["thin", "fat"],
    resources=["cpu", "memory", "gpu"],
)
SHAPES = {"A": [1, 2, 0], "B": [1, 8, 0], "C": [1, 1, 1]}


def jobs_of(draws: list[tuple[int, int, int, int, int]]) -> pd.DataFrame:
    """Return a log in which each job fits on its server when it starts; draws are owner, submission, wait, run time and tasks."""
    rows, used = [], {"thin": np.zeros((400, 3)), "fat": np.zeros((400, 3))}
    for n, (owner, submit, wait, run, tasks) in enumerate(draws):
        user = "ABC"[owner]
        demand = np.array(SHAPES[user], float) * tasks
        for server, capacity in (("thin", [16, 32, 0]), ("fat", [4, 32, 2])):
            here = slice(submit + wait, submit + wait + run)
            if (used[server][here] + demand <= capacity).all():
                used[server][here] += demand
                rows.append((f"j{n}", user, submit, submit + wait, submit + wait + run, tasks, server, *SHAPES[user]))
                break
        else:
            rows.append((f"j{n}", user, submit, np.nan, submit + wait, tasks, "", *SHAPES[user]))
    return pd.DataFrame(rows, columns=["job", "user", "submit", "start", "end", "tasks", "server", "cpu", "memory", "gpu"])


DRAWS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(0, 30), st.integers(1, 40), st.integers(1, 4)), min_size=1, max_size=12
)


@settings(max_examples=15, deadline=None)
@given(DRAWS)
def test_agrees_with_a_slow_loop(draws: list[tuple[int, int, int, int, int]]) -> None:
    """Every change solved anew, in plain Python."""
    frame = jobs_of(draws)
    found, expected = fo.history(frame, CLUSTER, moments="all").to_frame(), slow_loop(frame, CLUSTER, SHAPES)
    for name, sums in expected.items():
        assert found.loc[name, WORDS].to_numpy().tolist() == pytest.approx(sums.tolist(), rel=1e-9, abs=1e-12)


@settings(max_examples=10, deadline=None)
@given(DRAWS, st.randoms(use_true_random=False), st.integers(1, 30))
def test_what_holds_of_every_log(draws: list[tuple[int, int, int, int, int]], random: Any, cut: int) -> None:
    """Received is entitled less shortfall plus surplus; rows in another order, and windows that add up, change nothing."""
    frame = jobs_of(draws)
    found = fo.history(frame, CLUSTER, moments="all")
    table = found.to_frame()
    assert (table["entitled"] - table["shortfall"] + table["surplus"]).tolist() == pytest.approx(table["received"].tolist(), abs=1e-12)
    mixed = frame.sample(frac=1.0, random_state=random.randint(0, 1000))
    assert fo.history(mixed, CLUSTER, moments="all").to_frame()[WORDS].to_numpy() == pytest.approx(table[WORDS].to_numpy(), abs=1e-12)
    cut_up = fo.history(frame, CLUSTER, moments="all", every=cut)
    assert cut_up.to_frame()[WORDS].to_numpy() == pytest.approx(table[WORDS].to_numpy(), abs=1e-12)
    assert cut_up.to_frame("window")[WORDS].sum().tolist() == pytest.approx(table[WORDS].sum().tolist(), abs=1e-12)
    times = cut_up.to_frame("time")
    assert len(times)
    assert (times["received"] >= -1e-12).all()


def many_jobs() -> pd.DataFrame:
    """Return a log with a few hundred changes while work waits."""
    rng = np.random.default_rng(0)
    draws = np.column_stack([rng.integers(0, 3, 150), rng.integers(0, 250, 150), rng.integers(0, 40, 150), rng.integers(1, 50, 150)])
    return jobs_of([(int(a), int(b), int(c), int(d), 2) for a, b, c, d in draws])


def test_random_moments_estimate_and_what_is_received_is_exact() -> None:
    """The estimates of many seeds lie around the exact value, as far as their standard errors say."""
    frame = many_jobs()
    exact = fo.history(frame, CLUSTER, moments="all")
    truth = float(exact.to_frame()["shortfall"].sum())
    runs = [fo.history(frame, CLUSTER, moments=40, seed=seed).to_dict() for seed in range(8)]
    assert not any(run["exact"] for run in runs)
    assert [run["received"] for run in runs] == pytest.approx([exact.to_dict()["received"]] * 8)
    error = float(np.sqrt(np.mean([run["shortfall_error"] ** 2 for run in runs])))
    assert 0 < error < 0.2 * truth
    assert abs(np.mean([run["shortfall"] for run in runs]) - truth) < 4 * error / np.sqrt(8)


def test_a_run_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second run computes only what the first has not kept, and says the same as one run."""
    monkeypatch.setattr("fairopt.histories.judging.PART", 20)
    frame, asked = many_jobs(), [0]

    def stopped() -> bool:
        asked[0] += 1
        return asked[0] > 50

    with pytest.raises(NoSolution, match=r"stopped after 40 of \d+ moments, at .*; the same again continues from there"):
        fo.history(frame, CLUSTER, moments="all", resume=tmp_path / "kept", stopped=stopped)
    assert len(list((tmp_path / "kept").glob("[!.]*"))) == 2
    judged: list[int] = []
    found = fo.history(frame, CLUSTER, moments="all", resume=tmp_path / "kept", done=lambda now, total: judged.append(now))
    assert judged[:2] == [20, 40]
    whole = fo.history(frame, CLUSTER, moments="all")
    pd.testing.assert_frame_equal(found.to_frame(), whole.to_frame())
    (tmp_path / "kept" / min(path.name for path in (tmp_path / "kept").glob("[!.]*"))).write_bytes(b"half")
    pd.testing.assert_frame_equal(fo.history(frame, CLUSTER, moments="all", resume=tmp_path / "kept").to_frame(), whole.to_frame())


@pytest.mark.parametrize("kept", [False, True])
def test_workers_judge_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool) -> None:
    """Every moment once; what a part begins with is computed afresh, which is the same to rounding. A stopped run goes on."""
    monkeypatch.setattr("fairopt.histories.judging.PART", 20)
    frame = many_jobs()
    whole = fo.history(frame, CLUSTER, moments="all")
    judged: list[int] = []
    ask: dict[str, Any] = {"moments": "all", "workers": 2, "backend": "threading", "resume": tmp_path if kept else None}
    with pytest.raises(NoSolution, match=r"stopped after \d+ of \d+ moments"):
        fo.history(frame, CLUSTER, **ask, stopped=lambda: len(judged) > 2, done=lambda now, total: judged.append(now))
    found = fo.history(frame, CLUSTER, **ask | {"backend": "loky"})
    assert found.to_frame()[WORDS].to_numpy() == pytest.approx(whole.to_frame()[WORDS].to_numpy(), rel=1e-9, abs=1e-12)
    assert found.to_dict()["moments"] == whole.to_dict()["moments"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"windows": [(0, 10), (5, 20)]}, r"the window from 5 s overlaps the one that ends at 10 s"),
        ({"windows": [(10, 5)]}, r"a window ends at 5 s, which is not after its start, 10 s"),
        ({"windows": [(1e6, 2e6)]}, r"no job is in the log from 1000000 s to 2000000 s"),
        ({"windows": [("2026-01-01", "2026-02-01")]}, r'"2026-01-01" is not a time of this log, such as 3600'),
        ({"every": "1 month"}, r'every is "1 month"; give a length such as 1h'),
        ({"every": 1e-3}, r"more than 10,000"),
        ({"changes": ["users.A.weight=2"]}, r"changes are for the file of a cluster, and there is an instance; change it before"),
        ({"moments": 1}, r'moments is 1; give a whole number >= 2, or "all"'),
    ],
)
def test_windows_and_options_that_cannot_be(options: dict[str, Any], message: str) -> None:
    """One sentence: what, and what to do."""
    with pytest.raises((InvalidInstance, fo.Unsupported), match=message):
        fo.history(BY_HAND, POOL, **options)


def test_a_log_of_one_moment_says_nothing() -> None:
    """Nothing can be integrated."""
    with pytest.raises(InvalidInstance, match=r"the log covers no time: all its times are 3600 s; export a longer period"):
        fo.history(log(("A", 1, 1, 1, 8, 1, 1)), POOL)


def test_more_held_than_the_cluster_has() -> None:
    """Named with the moment and the server; lenient: counted as it is."""
    two = log(("A", 0, 0, 4, 8, 1, 1), ("B", 1, 2, 6, 8, 1, 1))
    with pytest.raises(InvalidInstance, match=r"the log: at 7200 s jobs hold 16 cpu of the cluster, which has 8; describe the servers"):
        fo.history(two, POOL)
    found = fo.history(two, POOL, lenient=True)
    assert "jobs hold 16 cpu" in found.notes[0]
    on_one = jobs_of([(0, 0, 0, 9, 4), (0, 0, 0, 9, 4)]).assign(server="fat")
    with pytest.raises(InvalidInstance, match=r'jobs hold 8 cpu of "fat", which has 4'):
        fo.history(on_one, CLUSTER)


def test_owners_of_the_log_and_of_the_cluster() -> None:
    """All are known, or none; an owner is found by its name or by the queue of its job."""
    one = jobs_of([(0, 0, 0, 5, 1)])
    with pytest.raises(
        InvalidInstance, match=r'the table, row 2: the cluster does not know the owner "D"; there are A, B and C: name it there'
    ):
        fo.history(pd.concat([one, one.assign(job="x", user="D", submit=9, start=9, end=10)]), CLUSTER)
    found = fo.history(pd.concat([one, one.assign(job="x", user="D", submit=9, start=9, end=10)]), CLUSTER, lenient=True)
    assert found.owners == ("A",)
    assert found.setting.log.unjudged[0].first == 'the table, row 2: owner "D"'
    two = [one.assign(job=name, user=name, submit=9, start=9, end=10) for name in ("y", "x", "D")]
    with pytest.raises(InvalidInstance, match=r'row 4: .* the owner "D", and 2 other owners, such as "x" and "y"; .*: name them there'):
        fo.history(pd.concat([one, *two]), CLUSTER)
    assert [(each.why, each.jobs) for each in found.setting.log.unjudged] == [("its owner is not in the cluster", 1)]
    strangers = fo.history(one.assign(user="D"), CLUSTER)
    assert strangers.setting.weights.tolist() == [1.0]
    tree = fo.Instance([[8, 16, 0]], [[1, 1, 0]], queues=[fo.Queue("lab", weight=2)], resources=["cpu", "memory", "gpu"])
    placed = fo.history(one.assign(queue="lab", server=""), tree)
    assert placed.setting.queue_of == ("lab",)


def test_jobs_are_credited_to_the_servers_on_which_they_ran(tmp_path: Path) -> None:
    """By the import of a cluster whose nodes of two kinds alternate: cn2 is in the second row, whatever "cn1 +2" looks like.

    In two hours, chem holds cn2 all the time, vision all four GPUs of cn1 all the time, and those of cn3 half of it: a task has 4 of 4.
    """
    nodes = [
        f"NodeName=cn{i} CPUTot=16\n   RealMemory=65536 State=IDLE {'Gres=gpu:4 ' if i % 2 else ''}Partitions=all" for i in range(1, 6)
    ]
    (tmp_path / "nodes.txt").write_text("\n".join(nodes))
    asked = [("1", "chem", "cpu=16,mem=16G,node=1"), ("2", "vision", "cpu=4,mem=8G,node=1,gres/gpu=1")]
    names = ("job_id", "account", "tres_req_str")
    jobs = [dict(zip(names, job, strict=True)) | {"user_name": "u", "partition": "all", "job_state": ["PENDING"]} for job in asked]
    (tmp_path / "jobs.json").write_text(json.dumps({"jobs": jobs}))
    rows = ["JobID|Account|User|Partition|State|Submit|Eligible|Start|End|Reason|AllocTRES|ReqTRES|NodeList|Constraints"]
    for job, who, start, tres, node in (
        ("11", "chem", "00", "cpu=16,mem=16G,node=1", "cn2"),
        ("12", "vision", "00", "cpu=16,mem=32G,node=1,gres/gpu=4", "cn1"),
        ("13", "vision", "01", "cpu=16,mem=32G,node=1,gres/gpu=4", "cn3"),
    ):
        midnight, began, ended = (f"2026-11-01T{hour}:00:00" for hour in ("00", start, "02"))
        rows.append(f"{job}|{who}|u|all|COMPLETED|{midnight}|{midnight}|{began}|{ended}|None|{tres}|{tres}|{node}|")
    (tmp_path / "log.txt").write_text("\n".join(rows))
    fo.save(fo.import_slurm(tmp_path / "nodes.txt", tmp_path / "jobs.json").instance, tmp_path / "cluster.yaml")
    found = fo.history(tmp_path / "log.txt", tmp_path / "cluster.yaml", users="account")
    assert found.instance.servers == ("cn1 +2", "cn2 +1")
    assert found.instance.users == ("chem", "vision")
    assert found.held.tasks.tolist() == pytest.approx(np.array([[0, 1], [1.5, 0]]))


def test_an_owner_of_users_in_one_queue_is_found() -> None:
    """With the sum of their weights, and where any of them with this demand may run; owners with a slash are two owners."""
    cluster = fo.Instance(
        [[8], [8]],
        [[1], [2], [1]],
        weights=[1, 2, 4],
        eligibility=[[1, 0], [0, 1], [1, 1]],
        resources=["cpu"],
        users=["small", "large", "other"],
        owners=["lab/vision", "lab/vision", "lab/speech"],
    )
    frame = pd.DataFrame({"user": ["lab/vision", "lab/speech"], "submit": 0, "start": [0, 5], "end": 9, "cpu": 1})
    setting = fo.history(frame, cluster).setting
    assert dict(zip(setting.owners, setting.weights.tolist(), strict=True)) == {"lab/speech": 4, "lab/vision": 3}
    assert setting.eligibility.tolist() == [[True, True], [True, False]]
    apart = cluster.replace(queues=[fo.Queue("q")], queue_of=["q", None, None])
    with pytest.raises(InvalidInstance, match="the cluster does not know the owner"):
        fo.history(frame, apart)


def test_tables_and_plain_data(tmp_path: Path) -> None:
    """Each table has a form; files are written by their endings."""
    found = fo.history(BY_HAND, POOL)
    for by in ("owner", "queue", "hour", "window", "time", "worst"):
        assert len(found.to_frame(by)) or by == "queue"
    found.save(tmp_path / "owners.parquet")
    assert pd.read_parquet(tmp_path / "owners.parquet")["owner"].tolist() == ["A", "B", "C"]
    with pytest.raises(fo.Unsupported, match=r'there is no table by "owners" \(did you mean "owner"\?\)'):
        found.to_frame("owners")  # type: ignore[arg-type]
    data = found.to_dict()
    assert data["received"] == pytest.approx(6)
    assert data["owners"][1]["shortfall"] == pytest.approx(11 / 8)


@pytest.mark.parametrize("notion", ["tsf", "proportional", "psdsf", "drfh:formulation=equalize"])
def test_other_notions(notion: str) -> None:
    """Whatever takes the instance of a moment can say what is due; one notion divides the weight of an owner among its shapes."""
    frame = log(("A", 0, 0, 1, 8, 1, 1), ("B", 0, None, 1, 8, 1, 1), ("B", 0, None, 1, 2, 2, 1))
    table = fo.history(frame, POOL, notion).to_frame()
    assert table["received"].tolist() == pytest.approx([1, 0])
    assert table["entitled"].sum() == pytest.approx(1)


def test_moments_are_shared_among_windows() -> None:
    """As many as were asked for; a change that reaches over the end of a window is one change; of many windows each has two at least."""
    frame = jobs_of([(n % 3, 0, 2 * n, 2 * n + 2, 1) for n in range(60)])
    whole = fo.history(frame, CLUSTER)
    parts = fo.history(frame, CLUSTER, every=25)
    assert parts.contended_changes == whole.contended_changes
    some = fo.history(frame, CLUSTER, every=40, moments=20)
    assert some.moments <= 20
    assert not any("asked for" in note for note in some.notes)
    many = fo.history(frame, CLUSTER, every=10, moments=3)
    assert many.moments > 3
    assert any(f"3 moments were asked for; each of {len(many.windows)} windows is judged at two at least" in note for note in many.notes)
