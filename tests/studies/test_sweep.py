"""Studies: rows are right, do not depend on who computed them, and outlive whatever kills the run."""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from scipy.optimize import linprog
from strategies import instances
from support.processes import process
from typer.testing import CliRunner, Result

import fairopt as fo
from fairopt.cli import app
from fairopt.processes.crew import run as work_on
from fairopt.studies.store import Store
from fairopt.studies.sweep import summary

EXAMPLES = Path(__file__).parents[2] / "examples"
PATIENCE = 300  # seconds until something that will happen must have happened, on however slow a machine
QUICK: dict[str, Any] = {"notions": ["drfh"], "schedules": ["drfh:first-fit"], "workers": 1}


def drawn(seed: int) -> fo.Instance:
    """Three users on two servers."""
    return fo.generate("uniform", users=3, servers=2, size=10, seed=seed)


def same(one: pd.DataFrame, two: pd.DataFrame) -> None:
    """All but the seconds is the same, to the last bit."""
    pd.testing.assert_frame_equal(one.drop(columns="seconds"), two.drop(columns="seconds"), check_exact=True)


def run(*arguments: object, status: int = 0, columns: int = 80) -> Result:
    """Run the command in this process and check its exit status."""
    result = CliRunner().invoke(app, ["study", *map(str, arguments)], env={"COLUMNS": str(columns)})
    assert result.exit_code == status, result.output
    assert "Traceback" not in result.output
    return result


# Rows ----------------------------------------------------------------------------------------------------------------------------


def test_numbers_are_those_of_their_definitions() -> None:
    """Recomputed here from x[n,i]; the largest weighted total by a linear program of SciPy."""
    frame = fo.study({"drawn": "uniform:users=4:servers=3:size=10:weights=3"}, **QUICK, seeds=[5])
    instance = fo.generate("uniform", users=4, servers=3, size=10, weights=3, seed=5)
    n, k = 4, 3
    limits = [[instance.demands[j // k, r] * (j % k == i) for j in range(n * k)] for i in range(k) for r in range(2)]
    best = linprog(-np.repeat(instance.weights, k), A_ub=limits, b_ub=instance.capacities.ravel())
    assert best.fun is not None
    most = -best.fun
    exact = fo.solve(instance, "drfh")
    for entry, allocation in {"drfh": exact, "drfh:first-fit": fo.schedule(instance, "drfh")}.items():
        row = frame[frame["entry"] == entry].iloc[0]
        x = allocation.tasks_per_user
        shares = x * (instance.demands / instance.capacities.sum(axis=0)).max(axis=1) / instance.weights
        use = x @ instance.demands / instance.capacities.sum(axis=0)
        assert row["tasks"] == pytest.approx(x.sum())
        assert row["efficiency"] == pytest.approx(instance.weights @ x / most, rel=1e-7)
        assert row["price of fairness"] == pytest.approx(1 - instance.weights @ x / most, rel=1e-6)
        assert row["smallest_share"] == pytest.approx(shares.min())
        assert row["jain"] == pytest.approx(shares.sum() ** 2 / (n * (shares**2).sum()))
        assert [row["use of resource-1"], row["use of resource-2"]] == pytest.approx(use.tolist())
        assert row["message"] == ""
        if entry == "drfh":
            assert (row["kind"], row["against"]) == ("exact", "")
            assert np.isnan(row["regret level"])
        else:
            assert (row["kind"], row["against"]) == ("greedy", "drfh")
            assert row["regret level"] == pytest.approx(1 - shares.min() / exact.shares.min())
            assert row["regret worst"] >= row["regret level"] > 0


@given(instances())
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
def test_a_cell_is_a_comparison(instance: fo.Instance) -> None:
    """The same numbers, with constraints, zero demands, users who cannot run and few tasks."""
    frame = fo.study({"x": instance}, notions=["drfh", "tsf"], schedules=["drfh:best-fit"], workers=1).set_index("entry")
    rows = fo.compare(instance, notions=["drfh", "tsf"], schedules=["drfh:best-fit"])
    for row in rows:
        assert frame.loc[row.name, "tasks"] == row.tasks
        np.testing.assert_equal(frame.loc[row.name, "efficiency"], row.efficiency)
        np.testing.assert_equal(frame.loc[row.name, "regret worst"], np.nan if row.regret is None else row.regret.worst)


def test_rows_are_in_the_order_of_what_was_asked() -> None:
    """Instances, then seeds, then entries, each as given; what one does not have is missing."""
    given = fo.load(EXAMPLES / "kesidis.yaml").replace(resources=["a", "b"])
    frame = fo.study({"z": drawn, "a": given}, notions=["tsf", "drfh"], schedules=["drfh:best-fit"], seeds=[7, 3], integral=True, workers=1)
    entries = ["tsf", "tsf, whole tasks", "drfh", "drfh, whole tasks", "drfh:best-fit"]
    asked = [(name, seed, entry) for name in "za" for seed in (7, 3) for entry in entries]
    assert list(zip(frame["instance"], frame["seed"], frame["entry"], strict=True)) == asked
    assert frame[frame["instance"] == "z"]["use of a"].isna().all()
    assert frame[frame["instance"] == "a"]["use of a"].notna().all()
    assert set(frame["kind"]) == {"exact", "exact, whole tasks", "greedy"}
    assert frame.index.equals(pd.RangeIndex(len(asked)))


def test_the_table_does_not_depend_on_the_workers() -> None:
    """One, two processes, two threads; with instances and schedules that are random."""
    what: dict[str, Any] = {"notions": ["drfh"], "schedules": ["drfh:random", "drfh:first-fit:ties=random"], "seeds": range(4)}
    sources: dict[str, Any] = {
        "lambda": lambda seed: drawn(seed + 1),
        "spec": "constrained:of=google:users=6:servers=12",
        "given": drawn(0),
    }
    one = fo.study(sources, **what, workers=1)
    same(one, fo.study(sources, **what, workers=2))
    same(one, fo.study(sources, **what, workers=2, backend="threading"))


def test_the_seed_is_that_of_schedules_without_one() -> None:
    """Of a given instance, schedules differ by seed, unless they name their own."""
    instance = fo.generate("google", users=8, servers=20, seed=1)
    frame = fo.study({"x": instance}, notions=[], schedules=["drfh:random", "drfh:random:seed=3"], seeds=range(4), workers=1)
    tasks = frame["tasks"].to_numpy().reshape(4, 2)  # seeds, entries
    own = [fo.schedule(instance, "drfh", placement="random", seed=seed).tasks.sum() for seed in range(4)]
    assert tasks[:, 0].tolist() == own
    assert len(set(own)) > 1
    assert tasks[:, 1].tolist() == [own[3]] * 4


def test_what_fails_says_why_and_stops_nothing() -> None:
    """A notion that is not defined there, and a generator that fails on one seed."""

    def weak(seed: int) -> fo.Instance:
        if seed == 1:
            raise ZeroDivisionError("no luck")
        return drawn(seed).replace(capacities=[[np.nan, 1], [1, 1]]) if seed == 2 else drawn(seed)

    frame = fo.study({"weak": weak}, notions=["drf", "drfh"], schedules=["drfh:first-fit"], seeds=range(4), workers=1).set_index(
        ["seed", "entry"]
    )
    assert frame["tasks"].isna().groupby(level="seed").sum().tolist() == [1, 3, 3, 1]
    assert "one server" in str(frame.loc[(0, "drf"), "message"])
    assert frame.loc[(1, "drfh"), "message"] == "ZeroDivisionError: no luck"
    assert "is nan" in str(frame.loc[(2, "drfh:first-fit"), "message"])
    assert frame.loc[(1, "drfh:first-fit"), "kind"] == "greedy"
    means = summary(frame.reset_index()).loc["weak"]
    assert means[["seeds", "failed"]].to_numpy().tolist() == [[0, 4], [2, 2], [2, 2]]


def test_the_summary_is_the_mean_and_its_standard_error() -> None:
    """s / sqrt(n), s with n - 1; of one seed there is none."""
    frame = fo.study({"x": drawn}, **QUICK, seeds=range(5))
    means = summary(frame)
    values = frame[frame["entry"] == "drfh:first-fit"]["efficiency"].to_numpy()
    assert means.loc[("x", "drfh:first-fit"), "efficiency"] == pytest.approx(values.mean())
    assert means.loc[("x", "drfh:first-fit"), "efficiency error"] == pytest.approx(values.std(ddof=1) / np.sqrt(5))
    assert summary(frame[frame["seed"] == 0])["efficiency error"].isna().all()
    frame.loc[frame["entry"].eq("drfh") & frame["seed"].eq(3), "kind"] = "whole tasks, best found"
    assert summary(frame)["kind"].tolist() == ["exact or whole tasks, best found", "greedy"]  # what is not exact at times is not called so


# What is kept --------------------------------------------------------------------------------------------------------------------


def test_a_study_is_kept_and_extended(tmp_path: Path) -> None:
    """More seeds, more instances of other resources: only what is missing is computed, and the end is that of one run."""
    made: list[int] = []

    def counted(seed: int) -> fo.Instance:
        made.append(seed)
        return drawn(seed)

    told: list[tuple[int, int]] = []
    other = fo.load(EXAMPLES / "kesidis.yaml").replace(resources=["a", "b"])
    first = fo.study({"x": counted}, **QUICK, seeds=[1, 0], resume=tmp_path / "new")
    assert pd.read_parquet(tmp_path / "new").equals(first.sort_values("seed", kind="stable", ignore_index=True))
    made.clear()
    both = fo.study({"a": other, "x": counted}, **QUICK, seeds=range(3), resume=tmp_path / "new", done=lambda *n: told.append(n))
    assert made == [1, 1, 2]  # twice the first seed of the first run, to see that it is the same generator; then what is missing
    assert told == [(2, 6), (3, 6), (4, 6), (5, 6), (6, 6)]
    same(both, fo.study({"a": other, "x": drawn}, **QUICK, seeds=range(3)))
    kept = pd.read_parquet(tmp_path / "new" / "study.parquet")
    assert list(kept.columns[-2:]) == ["seconds", "message"]
    assert sorted(kept.columns) == sorted(both.columns)
    again = fo.study({"x": counted}, **QUICK, seeds=[2], resume=tmp_path / "new")  # a part of it
    same(again[list(first.columns)], both[(both["instance"] == "x") & (both["seed"] == 2)][list(first.columns)].reset_index(drop=True))
    assert len(pd.read_parquet(tmp_path / "new")) == 12
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [".study.parquet.lock", "study.parquet"]


def changed_notion(arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Another entry."""
    arguments["notions"] = ["tsf"]


def changed_option(arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The same name, another notion."""
    arguments["notions"] = [fo.NOTIONS["drfh"](formulation="equalize")]  # type: ignore[call-arg]


def changed_limit(arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Another limit."""
    arguments["time_limit"] = 60.0


def changed_instance(arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A last digit."""
    arguments["instances"] = arguments["instances"] | {"given": drawn(1).replace(tasks=[4, np.inf, np.inf])}


def changed_generator(arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Another draw from the same seed."""
    arguments["instances"] = arguments["instances"] | {"drawn": "uniform:users=3:servers=2"}


def changed_version(arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Another fairopt."""
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "99.0")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed_notion, "notions and schedules were drfh, drfh:first-fit and are drfh:first-fit, tsf|are tsf, drfh:first-fit"),
        (changed_option, "the options of drfh have changed"),
        (changed_limit, "time limit was None and is 60"),
        (changed_instance, '"given" is another instance'),
        (changed_generator, '"drawn" is another instance'),
        (changed_version, "version was '0.1.0' and is '99.0'"),
    ],
)
def test_another_question_is_refused(
    change: Callable[[dict[str, Any], pytest.MonkeyPatch], None], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What differs, and what to do; nothing is lost."""
    arguments: dict[str, Any] = {"instances": {"given": drawn(1), "drawn": drawn}, **QUICK, "output": tmp_path / "x.parquet"}
    kept = fo.study(**arguments)
    change(arguments, monkeypatch)
    with pytest.raises(fo.InvalidInstance, match=message) as refusal:
        fo.study(**arguments)
    assert "give another output" in str(refusal.value)
    assert pd.read_parquet(tmp_path / "x.parquet").equals(kept)


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    """While one runs; not after an error ended it."""
    refused: list[str] = []

    def second(finished: int, total: int) -> None:
        with pytest.raises(fo.InvalidInstance, match="another study is writing") as refusal:
            fo.study({"x": drawn}, **QUICK, resume=tmp_path)
        refused.append(str(refusal.value))
        if finished:
            raise LookupError("of the caller's own")

    with pytest.raises(LookupError):
        fo.study({"x": drawn}, **QUICK, resume=tmp_path, seeds=range(3), done=second)
    assert len(refused) == 2
    assert fo.study({"x": drawn}, **QUICK, resume=tmp_path, seeds=range(3))["tasks"].notna().all()


@pytest.mark.parametrize("cells", [1, 3])
def test_a_study_that_is_stopped_keeps_what_is_there(cells: int, tmp_path: Path) -> None:
    """And says how to go on; rows of before and after are those of one run."""
    finished = 0

    def tell(number: int, total: int) -> None:
        nonlocal finished
        finished = number

    arguments: dict[str, Any] = {"instances": {"x": drawn}, **QUICK, "seeds": range(5), "output": tmp_path / "x.parquet"}
    with pytest.raises(KeyboardInterrupt, match=f"^{cells} of 5 cells are in .*x.parquet; run the same study again to compute the rest$"):
        fo.study(**arguments, done=tell, stop=lambda: finished == cells)
    assert pd.read_parquet(tmp_path / "x.parquet")["seed"].nunique() == cells
    (tmp_path / ".x.parquet.0a1b2c3d.tmp").write_bytes(b"half a file")  # as of a run that was killed while it wrote
    (tmp_path / ".y.parquet.0a1b2c3d.tmp").write_bytes(b"of another study")
    whole = fo.study(**arguments)
    same(whole, fo.study(**{**arguments, "output": None}))
    assert pd.read_parquet(tmp_path / "x.parquet").equals(whole)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".x.parquet.lock", ".y.parquet.0a1b2c3d.tmp", "x.parquet"]


def test_what_is_finished_is_written_although_the_next_cell_takes_long(tmp_path: Path) -> None:
    """Two cells at once, the second is not written with the first; nor need it wait for the third."""
    with Store(tmp_path / "x.parquet") as store:
        store.ask({}, ["a"], {})
        for seed in range(2):
            store.add(("a", seed), [{"instance": "a", "seed": seed, "entry": "drfh", "seconds": 0.0}])
        assert until(lambda: len(snapshot(tmp_path / "x.parquet")) == 2)


def snapshot(path: Path) -> pd.DataFrame:
    """Return a table that a program may replace at any moment: PyArrow opens a path more than once, and reads two files as one."""
    return pd.read_parquet(io.BytesIO(path.read_bytes()))


def until(is_so: Callable[[], bool]) -> bool:
    """Wait until it is so."""
    limit = time.monotonic() + PATIENCE
    while time.monotonic() < limit:
        with contextlib.suppress(FileNotFoundError):
            if is_so():
                return True
        time.sleep(0.02)
    return False


# What kills it -------------------------------------------------------------------------------------------------------------------

PROGRAM = """
import sys, time
from pathlib import Path
import fairopt as fo

def gated(seed):  # from the third on, they wait until somebody opens
    while seed >= 3 and not Path("open").exists():
        time.sleep(0.01)
    return fo.generate("uniform", users=3, servers=2, size=10, seed=seed)

if __name__ == "__main__":
    frame = fo.study(
        {"gated": gated}, notions=["drfh", "tsf"], seeds=range(6), resume="out", workers=int(sys.argv[1]),
        done=lambda finished, total: print(finished, total, flush=True))
    frame.to_pickle("frame.pkl")
"""


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    """SIGKILL with three of six cells on disk: the same program then computes the other three, and the table is that of one run."""
    (tmp_path / "program.py").write_text(PROGRAM)
    with process(sys.executable, "program.py", "2", folder=tmp_path) as program:
        there = tmp_path / "out" / "study.parquet"
        assert until(lambda: program.poll() is not None or sorted(set(snapshot(there)["seed"])) == [0, 1, 2])
        assert program.poll() is None, program.communicate()
        program.kill()
        assert program.wait(PATIENCE) == -signal.SIGKILL
        (tmp_path / "open").touch()
        with process(sys.executable, "program.py", "1", folder=tmp_path) as second:
            output, errors = second.communicate(timeout=PATIENCE)
        assert second.returncode == 0, errors
        assert output.splitlines() == ["3 6", "4 6", "5 6", "6 6"]
    frame = pd.read_pickle(tmp_path / "frame.pkl")
    spec = "uniform:users=3:servers=2:size=10"
    same(frame, fo.study({"gated": spec}, notions=["drfh", "tsf"], seeds=range(6), workers=1))
    assert pd.read_parquet(there).equals(frame)


def test_a_cell_that_ends_its_worker_is_a_row_with_a_message(tmp_path: Path) -> None:
    """It is tried once more, alone; the other cells have the rows that they have without it."""
    ours, spec, folder = os.getpid(), "uniform:users=3:servers=2", str(tmp_path)

    def fatal(seed: int) -> fo.Instance:  # a closure: it travels by value
        import os
        import signal
        from pathlib import Path

        from fairopt.specs import read_generator

        if seed == 4 and os.getpid() != ours:
            Path(folder, f"tried-by-{os.getpid()}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return read_generator(spec)(seed)

    options: dict[str, Any] = {"notions": ["drfh", "tsf"], "seeds": range(8)}
    frame = fo.study({"x": fatal}, **options, resume=tmp_path / "x.parquet", workers=2)
    assert len(list(tmp_path.glob("tried-by-*"))) == 2
    failed = frame["seed"] == 4
    assert frame[failed]["tasks"].isna().all()
    assert frame[failed]["kind"].tolist() == ["exact", "exact"]
    said = r'computing "x" with seed 4 \(drfh, tsf\) ended its worker twice, the second time alone: the process ended with SIGKILL'
    assert all(re.match(said, text) for text in frame[failed]["message"])
    alone = fo.study({"x": spec}, **options, workers=1)
    same(frame[~failed].reset_index(drop=True), alone[alone["seed"] != 4].reset_index(drop=True))
    assert pd.read_parquet(tmp_path / "x.parquet").equals(frame)


ENDLESS = """
import time
from fairopt.cli import main
import fairopt as fo

class Generate:  # a generator that takes long from the third seed on
    def __call__(self, users=3, *, seed=0):
        while seed >= 3:
            time.sleep(0.01)
        return fo.generate("uniform", users=users, servers=2, seed=seed)

def slow(users=3, *, seed=0):
    return Generate()(users, seed=seed)

fo.GENERATORS["slow"] = slow
main()
"""


def test_ctrl_c_keeps_what_is_there(tmp_path: Path) -> None:
    """One line that says how much, and how to go on; status 130; what was finished is in the file."""
    command = (
        sys.executable,
        "-c",
        ENDLESS,
        "study",
        "--generate",
        "slow",
        "--seeds",
        "6",
        "--workers",
        "2",
        "--backend",
        "threading",
        "--resume",
        "out",
    )
    with process(*command, folder=tmp_path) as program:
        there = tmp_path / "out" / "study.parquet"
        (tmp_path / "out").mkdir()
        assert until(lambda: program.poll() is not None or len(snapshot(there)) == 3)
        os.killpg(program.pid, signal.SIGINT)
        for line in program.stderr or ():
            if "press Ctrl-C again" in line:
                break
        os.killpg(program.pid, signal.SIGINT)  # threads that do not end are not waited for
        _, errors = program.communicate(timeout=PATIENCE)
    assert program.returncode == 130, errors
    assert "Traceback" not in errors
    assert len(pd.read_parquet(there)) == 3


def test_ctrl_c_leaves_no_word_of_joblib() -> None:
    """It warns of work that is left when what asked for it ends; who presses Ctrl-C knows. (A warning is an error here.)"""
    found = work_on(time.sleep, [0, 1, 1], workers=2, backend="threading")
    next(found)
    found.close()


def test_ctrl_c_once_ends_it_with_a_message(tmp_path: Path) -> None:
    """Workers are processes, and hear it too."""
    command = [sys.executable, "-m", "fairopt", "study", "--generate", "google:users=40:servers=30", "--notions", "drfh,tsf"]
    command += ["--seeds", "100000", "--workers", "2", "--resume", "x.parquet"]
    with process(*command, folder=tmp_path) as program:
        assert until(lambda: program.poll() is not None or len(snapshot(tmp_path / "x.parquet")) > 0)
        os.killpg(program.pid, signal.SIGINT)
        _, errors = program.communicate(timeout=PATIENCE)
    assert program.returncode == 130, errors
    (number,) = re.findall(
        r"^interrupted: ([0-9,]+) of 100,000 cells are in x.parquet; run the same study again to compute the rest$", errors, re.MULTILINE
    )
    assert "Traceback" not in errors
    kept = pd.read_parquet(tmp_path / "x.parquet")
    assert len(kept) == 2 * int(number.replace(",", "")) > 0
    assert not kept.duplicated(["instance", "seed", "entry"]).any()


ORPHANS = """
import os, sys, time
from pathlib import Path
import fairopt as fo

ASKED = os.getpid()

def endless(seed):
    if os.environ["ASKED"] != str(os.getpid()):  # in a worker
        Path(f"worker-{os.getpid()}").touch()
        while True:
            time.sleep(0.01)
    return fo.generate("uniform", users=3, servers=2, size=10, seed=seed)

if __name__ == "__main__":
    os.environ["ASKED"] = str(os.getpid())
    fo.study({"endless": endless}, notions=["drfh"], seeds=range(2), workers=3)
"""


def runs(number: int) -> bool:
    """Return whether there is such a process; one that ended, and was not yet taken note of, is none."""
    try:
        os.kill(number, 0)
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="about processes as Linux shows them")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_a_killed_study(tmp_path: Path, how: signal.Signals) -> None:
    """Those in the middle of a cell, and those that have none: nobody is left to give them one."""
    (tmp_path / "orphans.py").write_text(ORPHANS)
    with process(sys.executable, "orphans.py", folder=tmp_path) as program:
        assert until(lambda: program.poll() is not None or len(list(tmp_path.glob("worker-*"))) == 2)
        listed = "".join(path.read_text() for path in Path(f"/proc/{program.pid}/task").glob("*/children"))
        children = {int(number) for number in listed.split()}
        busy = {int(path.name.removeprefix("worker-")) for path in tmp_path.glob("worker-*")}
        assert busy < children
        program.send_signal(how)  # to it alone
        assert program.wait(PATIENCE) == -how
        assert until(lambda: not any(map(runs, children)))


# Bad input -----------------------------------------------------------------------------------------------------------------------


def not_repeatable(seed: int) -> fo.Instance:
    """Draws from nowhere."""
    return fo.generate("uniform", seed=np.random.default_rng())


def broken(seed: int) -> fo.Instance:
    """Fails."""
    raise LookupError("no such trace")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"instances": {}}, "there are no instances"),
        ({"instances": drawn(0)}, "give a mapping of names"),
        ({"instances": {"x": 3}}, 'the instance "x" is int; give an Instance'),
        ({"instances": {"": drawn}}, "the name of an instance is ''"),
        ({"instances": {"x": "gogle"}}, 'no generator "gogle" .did you mean "google"'),
        ({"instances": {"x": "google:users=0"}}, 'instance "x", seed 0: users is 0'),
        ({"instances": {"x": not_repeatable}}, 'the generator of "x" draws another instance from the same seed'),
        ({"instances": {"x": broken}}, 'the generator of "x" failed on seed 0: LookupError: no such trace'),
        ({"instances": {"x": lambda seed: None}}, 'instance "x", seed 0: the generator returned NoneType'),
        ({"notions": [], "schedules": []}, "there is nothing to compute"),
        ({"notions": ["drhf"]}, 'no notion "drhf"'),
        ({"notions": ["drfh", "drfh"]}, '"drfh" is there twice'),
        ({"schedules": ["drfh:bestfit"]}, 'no placement "bestfit"'),
        ({"schedules": [fo.schedule(drawn(0))]}, "an allocation of one instance"),
        ({"seeds": []}, "seeds are none at all; give at least one"),
        ({"seeds": 20}, r"seeds is 20; give several, such as range\(20\)"),
        ({"seeds": [1, 1]}, "seeds are 1 and 1; give at least one, and each once"),
        ({"seeds": [-1]}, "a seed is -1"),
        ({"seeds": [0.5]}, r"a seed is 0\.5"),
        ({"workers": 0}, "workers is 0"),
        ({"workers": 1.5}, r"workers is 1\.5"),
        ({"backend": "lokky"}, 'no backend "lokky" .did you mean "loky"'),
        ({"address": "tcp://127.0.0.1:1"}, "has no address"),
        ({"backend": "dask", "address": 7}, "address is 7; give a text"),
        ({"time_limit": 0}, "time_limit is 0"),
        ({"sharing": "rmd"}, "sharing is 'rmd'"),
    ],
)
def test_bad_input_says_what_to_do(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    """Before anything is computed or written."""
    with pytest.raises(fo.FairoptError, match=message):
        fo.study(**{"instances": {"x": drawn}, **QUICK, "output": tmp_path / "x.parquet", **changes})
    assert not (tmp_path / "x.parquet").exists()


def a_text(folder: Path) -> Path:
    """A file of another kind with the right name."""
    (folder / "x.parquet").write_text("user,tasks\n")
    return folder / "x.parquet"


def half_a_file(folder: Path) -> Path:
    """Bytes are missing at the end, as after a disk was full."""
    fo.study({"x": drawn}, **QUICK, resume=folder / "x.parquet")
    (folder / "x.parquet").write_bytes((folder / "x.parquet").read_bytes()[:-100])
    return folder / "x.parquet"


def another_table(folder: Path) -> Path:
    """Parquet, but not of a study."""
    pd.DataFrame({"a": [1]}).to_parquet(folder / "x.parquet")
    return folder / "x.parquet"


def a_folder_inside(folder: Path) -> Path:
    """A folder where the file should be."""
    (folder / "study.parquet").mkdir()
    return folder


def below_a_file(folder: Path) -> Path:
    """A file is not a folder."""
    (folder / "file").touch()
    return folder / "file" / "x"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (a_text, "x.parquet is not a Parquet file, or is damaged"),
        (half_a_file, "x.parquet is not a Parquet file, or is damaged"),
        (another_table, "is a Parquet file, but not of a study"),
        (a_folder_inside, "study.parquet is a folder, where the file should be"),
        (below_a_file, "cannot be made"),
        (lambda folder: folder / "x.csv", "a study writes Parquet; give a name that ends in .parquet, or a folder"),
        (lambda folder: folder / "nowhere" / "x.parquet", "there is no folder .*nowhere; make it first"),
        (lambda folder: folder / "nowhere" / "x", "cannot be made"),
    ],
)
def test_an_output_that_cannot_be_is_refused(make: Callable[[Path], Path], message: str, tmp_path: Path) -> None:
    """In Python and on the command line; what was there is as it was."""
    path = make(tmp_path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(fo.InvalidInstance, match=message):
        fo.study({"x": drawn}, **QUICK, resume=path)
    assert re.search(message, run(EXAMPLES / "kesidis.yaml", "--workers", 1, "--resume", path, status=2).stderr)
    assert (path.read_bytes() if path.is_file() else b"") == before


@pytest.mark.parametrize("backend", ["dask", "ray"])
def test_a_missing_package_is_named(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to install."""
    monkeypatch.setitem(sys.modules, "distributed" if backend == "dask" else "ray", None)
    with pytest.raises(fo.SolverUnavailable, match=rf"pip install '\.\[{backend}\]' in the checkout of fairopt"):
        fo.study({"x": drawn}, **QUICK | {"backend": backend})


# The command ---------------------------------------------------------------------------------------------------------------------


def test_the_command_prints_and_writes(tmp_path: Path) -> None:
    """Means and standard errors, of files and of what is generated; the numbers are those of Python."""
    arguments = (
        EXAMPLES / "kesidis.yaml",
        "--generate",
        "kesidis:users=4",
        "--schedules",
        "drfh:best-fit,drfh:random",
        "--seeds",
        3,
        "--workers",
        1,
    )
    text = run(*arguments, "--resume", tmp_path).stdout
    assert "kesidis, 3 seeds" in text
    assert f"18 rows in {tmp_path / 'study.parquet'}" in text.replace("\n", "")
    assert max(map(len, text.splitlines()[:-1])) <= 80
    frame = pd.read_parquet(tmp_path / "study.parquet")
    assert len(frame) == 18
    means = summary(frame)
    printed = pd.read_csv(io.StringIO(run(*arguments, "--resume", tmp_path, "--csv").stdout), index_col=[0, 1])
    assert list(printed.pop("name")) == ["drfh", "drfh:best-fit", "drfh:random"] * 2
    pd.testing.assert_frame_equal(printed, means, check_dtype=False)
    drawn_last = means.to_dict("index")["kesidis:users=4", "drfh:random"]
    mean, error = drawn_last["efficiency"], drawn_last["efficiency error"]
    digits = 1 - int(np.floor(np.log10(100 * error)))
    assert f"{round(100 * mean, digits):.{max(digits, 0)}f} ± {100 * error:.2g}" in text
    data = json.loads(run(*arguments, "--resume", tmp_path, "--json").stdout)["rows"]
    assert [entry["name"] for entry in data] == ["drfh", "drfh:best-fit", "drfh:random"] * 2
    assert data[4]["efficiency"] == pytest.approx(means.iloc[4]["efficiency"])
    assert data[0]["regret_level"] is None


def test_nothing_that_can_be_solved_is_status_3(tmp_path: Path) -> None:
    """With the reason."""
    result = run(EXAMPLES / "kesidis.yaml", "--notions", "drf", "--workers", 1, status=3)
    assert "one server" in result.stdout
    assert "1 row of 1 without an allocation" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "there are no instances; give files, --generate SPEC, or both"),
        ((EXAMPLES / "kesidis.yaml", "--seeds", 0), "give a number of seeds >= 1"),
        ((EXAMPLES / "kesidis.yaml", "--notions", ""), "there is nothing to compute"),
        ((EXAMPLES / "kesidis.yaml", "--csv", "--json"), "choose one of --json and --csv"),
        (("nowhere.yaml",), "there is no file nowhere.yaml"),
        (("--generate", "google:seed=3"), "the seed is given apart"),
    ],
)
def test_bad_options_are_status_2(arguments: tuple[object, ...], message: str) -> None:
    """One message, no traceback."""
    assert message in " ".join(run(*arguments, status=2).stderr.replace("│", " ").split())


def test_named_limits_are_kept_and_are_part_of_the_study(tmp_path: Path) -> None:
    """A study with another bound is another study."""
    lab = fo.Instance([[8]], [[1], [2]], users=["ann", "bob"], resources=["gpu"], limits=[fo.Limit("few", 2, users=["ann"])])
    frame = fo.study({"lab": lab}, notions=["drfh"], resume=tmp_path, workers=1)
    assert frame["tasks"].tolist() == pytest.approx([5])  # ann runs 2, and bob (8 - 2) / 2
    with pytest.raises(fo.InvalidInstance, match='"lab" is another instance'):
        fo.study({"lab": lab.replace(limits={"few": {"bound": 3}})}, notions=["drfh"], resume=tmp_path, workers=1)


def test_a_study_obeys_rules() -> None:
    """Those of an instance; a schedule has a row without an allocation."""
    lab = fo.Instance([[8]], [[1], [1]], users=["ann", "ben"], rules=["x[ann] >= 6"])
    frame = fo.study({"lab": lab}, notions=["drfh"], schedules=["drfh:first-fit"], workers=1)
    rows = frame.set_index("entry") if "entry" in frame else frame
    assert len(rows) == 2
    assert frame["smallest_share"].dropna().tolist() == pytest.approx([0.25])


def test_a_study_of_speeds_goes_on(tmp_path: Path) -> None:
    """Its file has a column for work, which other instances lack; columns do not depend on what was there before."""
    fast = fo.Instance([[4], [4]], [[1], [2]], speeds=[[1, 2], [1, 1]], resources=["gpu"])
    sources: dict[str, Any] = {"lab": drawn(0), "fast": fast}
    whole = fo.study(sources, **QUICK, seeds=range(2))
    fo.study({"fast": fast}, **QUICK, seeds=range(1), resume=tmp_path)
    again = fo.study(sources, **QUICK, seeds=range(2), resume=tmp_path)
    same(again, whole)
    assert again["work"].notna().tolist() == [name == "fast" for name in again["instance"]]
