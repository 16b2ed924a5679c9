"""Throughputs as rates: Gavel's own programs, written down once more as they stand in the paper, and solved by scipy."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from reference.gavel import Array, gavel_finish_time, gavel_max_min
from scipy.optimize import LinearConstraint, minimize
from support.real_data import DATA, needs
from typer.testing import CliRunner

import fairopt as fo
from fairopt.cli import app

TABLE = """job_type,scale,worker,thr
lstm,1,k80,4
lstm,1,v100,8
lstm,2,k80,6
lstm,2,v100,12
translator,1,k80,1
translator,1,v100,8
translator,1,a100,90
"""


def check_limits(allocation: fo.Allocation, throughput: Array, scale: Array, workers: Array) -> None:
    """X = x / R keeps to Gavel's limits."""
    part = np.divide(allocation.tasks, throughput, out=np.zeros_like(throughput), where=throughput > 0)
    assert (part.sum(axis=1) <= 1 + 1e-9).all()
    assert (scale @ part <= workers * (1 + 1e-9)).all()


def write(folder: Path, jobs: int, kinds: int, seed: int) -> tuple[fo.Instance, Array, Array, Array, Array]:
    """Write random tables, import them, and return the instance with what is in them."""
    rng = np.random.default_rng(seed)
    workers = rng.integers(2, 9, kinds).astype(float)
    scale = rng.choice([1.0, 1.0, 2.0], jobs)
    weight = rng.choice([0.5, 1.0, 3.0], jobs)
    throughput = rng.uniform(1, 4, (jobs, 1)) * 10 ** rng.uniform(-0.7, 0.7, (jobs, kinds))
    rows = [f"job {m},{scale[m]:g},kind {j},{throughput[m, j]!r}" for m in range(jobs) for j in range(kinds)]
    (folder / "t.csv").write_text("\n".join(["job_type,scale,worker,thr", *rows]).replace("np.float64(", "").replace(")", "") + "\n")
    listed = [f"job {m},{scale[m]:g},{weight[m]:g}" for m in range(jobs)]
    (folder / "j.csv").write_text("\n".join(["job_type,scale_factor,priority_weight", *listed]) + "\n")
    imported = fo.import_gavel(folder / "t.csv", {f"kind {j}": int(workers[j]) for j in range(kinds)}, folder / "j.csv")
    return imported.instance, throughput, scale, weight, workers


@pytest.mark.parametrize("seed", range(12))
def test_tsf_is_gavels_max_min(tmp_path: Path, seed: int) -> None:
    """The smallest share of tsf, times the number of accelerators, is the optimum of Gavel's program, with scales and weights.

    Also where accelerators are divided, and a task is the part of time.
    """
    jobs, kinds = (3, 2) if seed < 4 else (20, 3)
    instance, throughput, scale, weight, workers = write(tmp_path, jobs, kinds, seed)
    allocation = fo.solve(instance, "tsf")
    best = gavel_max_min(throughput, scale, weight, workers)
    assert allocation.shares.min() * workers.sum() == pytest.approx(best, rel=1e-8)
    check_limits(allocation, throughput, scale, workers)
    numbers = {f"kind {j}": int(workers[j]) for j in range(kinds)}
    divided = fo.solve(fo.import_gavel(tmp_path / "t.csv", numbers, tmp_path / "j.csv", sharing="rdm").instance, "tsf")
    assert divided.shares.min() * workers.sum() == pytest.approx(best, rel=1e-8)
    np.testing.assert_allclose(divided.work, allocation.tasks_per_user, rtol=1e-7)
    assert (divided.tasks.sum(axis=1) <= 1 + 1e-9).all()
    assert (scale @ divided.tasks <= workers * (1 + 1e-9)).all()


def test_300_jobs_of_gavels_own_test(tmp_path: Path) -> None:
    """As its test of water filling draws them: 64 accelerators of each kind, sorted throughputs U[0, 1], scales 1, 2, 4, weights 1 to 5.

    The smallest share is the optimum of Gavel's program, and all shares are the same whether time or accelerators are divided.
    """
    rng = np.random.default_rng(0)
    throughput: Array = np.sort(rng.random((300, 3)), axis=1)
    scale, weight = rng.choice([1.0, 2.0, 4.0], 300), rng.integers(1, 6, 300).astype(float)
    workers = np.full(3, 64.0)
    divided = fo.Instance(workers[:, None], scale[:, None], weight, speeds=throughput, tasks=np.ones(300))
    timed = fo.Instance(np.ones((3, 1)), np.ones((300, 1)), weight, counts=workers, rates=throughput / scale[:, None], parallelism=scale)
    best = gavel_max_min(throughput, scale, weight, workers)
    first, second = (fo.solve(instance, "tsf") for instance in (divided, timed))
    assert first.certificate.worst < 1e-8
    assert first.shares.min() * workers.sum() == pytest.approx(best, rel=1e-8)
    np.testing.assert_allclose(first.shares, second.shares, rtol=1e-7)


GAVEL_JSON = {
    "v100": {
        "('lstm', 1)": {"null": 8, "('lstm', 1)": [5.0, 5.0], "('translator', 1)": [6.0, 2.0]},
        "('translator', 1)": {"null": 8.0, "('lstm', 1)": [2.0, 6.0]},
        '("Moore\'s law", 2)': {"null": 3},
    },
    "k80": {"('lstm', 1)": {"null": 4}, "('translator', 1)": {"null": 1}},
}


def test_the_json_of_the_repository(tmp_path: Path) -> None:
    """It is read as the table; pairs of jobs on one accelerator are left out and counted, each once."""
    (tmp_path / "t.json").write_text(json.dumps(GAVEL_JSON))
    imported = fo.import_gavel(tmp_path / "t.json", {"k80": 1, "v100": 2})
    rows = [f"{name!r},{scale},{worker},{thr}" for name, scale, worker, thr in (("lstm", 1, "v100", 8), ("translator", 1, "v100", 8))]
    rows += ["Moore's law,2,v100,3", "lstm,1,k80,4", "translator,1,k80,1"]
    (tmp_path / "t.csv").write_text(
        "\n".join(["job_type,scale,worker,thr", *rows]).replace("'lstm'", "lstm").replace("'translator'", "translator")
    )
    assert imported.instance == fo.import_gavel(tmp_path / "t.csv", {"k80": 1, "v100": 2}).instance
    assert [(each.what, each.where.rpartition("/")[2], each.number) for each in imported.left_out] == [
        ("co-located pair", "t.json: v100", 2)
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace('\'lstm\', 1)": {"null": 4', 'lstm)": {"null": 4'), r"t.json: k80.*expected a job as"),
        (lambda text: text.replace('"null": 4', '"nul": 4'), r"t.json: k80.*null: this field is missing"),
        (lambda text: text.replace('"null": 4', '"null": -4'), r"t.json: k80.*expected a number >= 0"),
        (lambda text: text.replace('"k80"', '"k-80"'), r'no row has the worker "k80" \(did you mean'),
        (lambda text: text.replace('\'translator\', 1)": {"null": 1', '\'lstm\',  1)": {"null": 1'), r"expected a job as"),
        (lambda text: text[:-1], r"ends too early"),
        (lambda text: "{}", r"there must be at least one"),
    ],
)
def test_bad_json(tmp_path: Path, change: Callable[[str], str], message: str) -> None:
    """The message names the place."""
    text = json.dumps(GAVEL_JSON)
    assert change(text) != text
    (tmp_path / "t.json").write_text(change(text))
    with pytest.raises(fo.InvalidInstance, match=message):
        fo.import_gavel(tmp_path / "t.json", {"k80": 1, "v100": 2})


def test_the_limit_of_one_place_at_once_matters(tmp_path: Path) -> None:
    """In some of these instances the optimum without sum_j X[m,j] <= 1 is larger: the test above would fail without that row."""
    differ = 0
    for seed in range(12):
        instance = write(tmp_path, 3, 2, seed)[0]
        free = fo.solve(instance.replace(parallelism=None), "tsf")
        differ += free.shares.min() > fo.solve(instance, "tsf").shares.min() * (1 + 1e-6)
    assert differ >= 3


@pytest.mark.parametrize("seed", range(5))
def test_proportional(tmp_path: Path, seed: int) -> None:
    """max sum_m w_m log thr(m, X) with Gavel's limits, by sequential quadratic programs over X."""
    instance, throughput, scale, weight, workers = write(tmp_path, 4, 2, seed)
    shape = throughput.shape

    def loss(flat: Array) -> float:
        return float(-weight @ np.log((throughput * flat.reshape(shape)).sum(axis=1)))

    def slope(flat: Array) -> Array:
        total = (throughput * flat.reshape(shape)).sum(axis=1)
        return np.asarray(-(weight / total)[:, None] * throughput).ravel()

    reference = minimize(
        loss,
        np.full(throughput.size, 0.2),
        jac=slope,
        bounds=[(0, 1)] * throughput.size,
        constraints=[
            LinearConstraint(np.kron(np.eye(shape[0]), np.ones(shape[1])), ub=1.0),
            LinearConstraint(np.kron(scale, np.eye(shape[1])), ub=workers),
        ],
        options={"maxiter": 500, "ftol": 1e-14},
    )
    allocation = fo.solve(instance, "proportional")
    check_limits(allocation, throughput, scale, workers)
    expected = (throughput * reference.x.reshape(shape)).sum(axis=1)
    np.testing.assert_allclose(allocation.tasks_per_user, expected, rtol=1e-4)
    assert weight @ np.log(allocation.tasks_per_user) >= -reference.fun - 1e-9


def test_what_is_read(tmp_path: Path) -> None:
    """Rates of one accelerator, scales as parallelism; kinds that are not there are not used, and too few of one are none."""
    path = tmp_path / "t.csv"
    path.write_text(TABLE)
    imported = fo.import_gavel(path, {"k80": 1, "v100": 2}, weights={"lstm": 3})
    instance = imported.instance
    assert instance.users == ("lstm x 1", "lstm x 2", "translator x 1")
    assert instance.rates_per_server is not None
    assert instance.rates_per_server.tolist() == [[4, 8], [0, 6], [1, 8]]
    assert instance.parallelism.tolist() == [1, 2, 1]
    assert instance.weights.tolist() == [3, 3, 1]
    assert imported.owners == imported.instance.owners == ("lstm", "lstm", "translator")
    assert not any(imported.instance.hosts)
    assert len(imported.notes) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("8\n", "fast\n", 1), r"t.csv, line 3.*fast"),
        (lambda text: text.replace("lstm,1,v100,8", "lstm,1,v100,-8"), r"t.csv, line 3.*negative"),
        (lambda text: text.replace("lstm,2", "lstm,1.5", 1), r"t.csv, line 4.*whole number"),
        (lambda text: text + "lstm,1,k80,5\n", r"t.csv, line 9.*has a row above"),
        (lambda text: text.replace("v100", "V-100"), r'no row has the worker "v100" \(did you mean'),
        (lambda text: text.replace("thr", "speed"), r'no column "thr"'),
    ],
)
def test_bad_tables(tmp_path: Path, change: Callable[[str], str], message: str) -> None:
    """The message names file and line."""
    (tmp_path / "t.csv").write_text(change(TABLE))
    with pytest.raises(fo.InvalidInstance, match=message):
        fo.import_gavel(tmp_path / "t.csv", {"k80": 1, "v100": 2})


def test_bad_jobs_and_numbers(tmp_path: Path) -> None:
    """A job without a throughput is refused or left out, and numbers are whole."""
    (tmp_path / "t.csv").write_text(TABLE)
    (tmp_path / "j.csv").write_text("job_type,scale_factor\nlstm,1\nlstm,4\n")
    with pytest.raises(fo.InvalidInstance, match=r"j.csv, line 3.*no throughput of this job type and scale"):
        fo.import_gavel(tmp_path / "t.csv", {"v100": 2}, tmp_path / "j.csv")
    imported = fo.import_gavel(tmp_path / "t.csv", {"v100": 2}, tmp_path / "j.csv", lenient=True)
    assert imported.instance.users == ("1: lstm x 1",)
    assert len(imported.left_out) == 1
    (tmp_path / "j.csv").write_text("job_type,scale_factor,priority_wait\nlstm,1,2\n")
    with pytest.raises(fo.InvalidInstance, match=r'no column "priority_weight" \(did you mean "priority_wait"\?\)'):
        fo.import_gavel(tmp_path / "t.csv", {"v100": 2}, tmp_path / "j.csv")
    for number in (0, 1.5, True, np.inf, np.nan):
        with pytest.raises(fo.InvalidInstance, match="give a whole number >= 1"):
            fo.import_gavel(tmp_path / "t.csv", {"v100": number})  # type: ignore[dict-item]
    for weights, message in (
        ({"lstn": 2.0}, r'"lstn", but there is no such owner \(did you mean "lstm"\?\)'),
        ({"lstm": 0.0}, "finite and > 0"),
    ):
        with pytest.raises(fo.InvalidInstance, match=message):
            fo.import_gavel(tmp_path / "t.csv", {"v100": 1}, weights=weights)


def test_command_line(tmp_path: Path) -> None:
    """The file that it writes is the instance, and bad options end with status 2."""
    (tmp_path / "t.csv").write_text(TABLE)
    run = CliRunner().invoke
    command = ["import", "gavel", str(tmp_path / "t.csv"), "--gpus", "k80=1", "--gpus", "v100=2"]
    done = run(app, [*command, "-o", str(tmp_path / "c.yaml"), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["servers"] == 3
    assert fo.load(tmp_path / "c.yaml") == fo.import_gavel(tmp_path / "t.csv", {"k80": 1, "v100": 2}).instance
    for bad in ("v100", "v100=1.5", "v100=1e400", "k80=2"):
        refused = run(app, [*command[:-1], bad])
        assert (refused.exit_code, type(refused.exception)) == (2, SystemExit)


def test_jobs_without_limit_ask_for_no_part(tmp_path: Path) -> None:
    """The account of them has no columns of what is asked for and held, which would be zeros."""
    (tmp_path / "t.csv").write_text(TABLE)
    shown = CliRunner().invoke(app, ["import", "gavel", str(tmp_path / "t.csv"), "--gpus", "v100=2"]).output
    assert "no limit" in shown
    assert not {"asked", "held", "asks", "holds", "running", "%"} & set(shown.split())


STEPS = "job_type,scale,total_steps,arrival_time,trace\nlstm,2,120,5,b\nlstm,1,40,9,a\ntranslator,1,8,3,a\n"


def test_jobs_over_time(tmp_path: Path) -> None:
    """In order of arrival; alone on the V100 a job runs for its steps divided by its throughput there; the command reads the table too."""
    (tmp_path / "t.csv").write_text(TABLE)
    (tmp_path / "s.csv").write_text(STEPS)
    with pytest.raises(fo.InvalidInstance, match=r"s.csv: the table holds 2 traces; choose one, such as trace='b'"):
        fo.trace_gavel(tmp_path / "s.csv")
    with pytest.raises(fo.InvalidInstance, match="there is no trace c"):
        fo.trace_gavel(tmp_path / "s.csv", "c")
    trace = fo.trace_gavel(tmp_path / "s.csv", "a")
    assert (trace.users, trace.submit.tolist(), trace.durations.tolist()) == (("translator x 1", "lstm x 1"), [3, 9], [8, 40])
    cluster = fo.import_gavel(tmp_path / "t.csv", {"v100": 2}, sharing="rdm").instance
    for scheduler in ("tsf", "tsf:first-fit"):
        assert fo.simulate(trace, cluster, scheduler).finished.tolist() == pytest.approx([3 + 8 / 8, 9 + 40 / 8])
    fo.save(cluster, tmp_path / "c.yaml")
    (tmp_path / "s.csv").write_text(STEPS.replace("lstm,2,120,5,b\n", ""))
    command = ["simulate", str(tmp_path / "s.csv"), "--cluster", str(tmp_path / "c.yaml"), "--scheduler", "tsf", "--by", "job", "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    refused = CliRunner().invoke(app, [*command, "--events", str(tmp_path / "s.csv")])
    assert refused.exit_code == 2
    (tmp_path / "s.csv").write_text(STEPS.replace("lstm,1,40", "lstm,1,-40"))
    with pytest.raises(fo.InvalidInstance, match=r"s.csv, line 3.*negative"):
        fo.trace_gavel(tmp_path / "s.csv", "a")
    assert len(fo.trace_gavel(tmp_path / "s.csv", "a", lenient=True).left_out) == 1


@needs("gavel")
def test_the_real_trace_is_simulated(tmp_path: Path) -> None:
    """All jobs of a small trace end, none sooner than on its fastest accelerators alone."""
    folder = DATA / "gavel"
    cluster = fo.import_gavel(folder / "gavel_isolated_throughputs_simulation.csv", {"k80": 4, "v100": 4}, sharing="rdm").instance
    trace = fo.trace_gavel(folder / "gavel_traces_seed0_and_physical.csv.gz", "physical_cluster/debug.trace")
    result = fo.simulate(trace, cluster, "tsf")
    speed = cluster.speeds[[cluster.users.index(trace.users[n]) for n in trace.user]].max(axis=1)
    assert (result.finished - trace.submit >= trace.durations / speed * (1 - 1e-9)).all()


@needs("gavel")
def test_300_jobs_of_the_real_trace(tmp_path: Path) -> None:
    """The first jobs of the trace on 36 accelerators of each kind: Gavel's optimum, however divided."""
    table = DATA / "gavel" / "gavel_isolated_throughputs_simulation.csv"
    trace = DATA / "gavel" / "gavel_traces_seed0_and_physical.csv.gz"
    with gzip.open(trace, "rt") as lines:
        rows = [line.split(",") for _, line in zip(range(381), lines, strict=False)]
    (tmp_path / "j.csv").write_text("".join(",".join(row[1:5]) + "\n" for row in rows))
    numbers = dict.fromkeys(("k80", "p100", "v100"), 36)
    divided = fo.import_gavel(table, numbers, tmp_path / "j.csv", sharing="rdm", lenient=True).instance
    assert divided.n_users >= 300
    allocation = fo.solve(divided, "tsf")
    scale = divided.demands[:, 0]
    expected = gavel_max_min(divided.speeds, scale, divided.weights, np.full(3, 36.0))
    assert allocation.shares.min() * 108 == pytest.approx(expected, rel=1e-8)
    timed = fo.import_gavel(table, numbers, tmp_path / "j.csv", lenient=True).instance
    np.testing.assert_allclose(fo.solve(timed, "tsf").tasks_per_user, allocation.work, rtol=1e-6)


def check_finish_times(instance: fo.Instance, number: float, seed: int) -> None:
    """The largest ratio of `finish-time` is the least that Gavel's policy reaches, for jobs at odd points of their work."""
    rng = np.random.default_rng(seed)
    n, scale, workers = instance.n_users, instance.demands_by_kind[:, 0, 0], np.full(instance.n_servers, number)
    isolated = (instance.speeds * workers / n / scale[:, None]).sum(axis=1)
    times = {"left": isolated * rng.uniform(600, 36_000, n), "elapsed": rng.uniform(0, 36_000, n)}
    times["alone"] = times["elapsed"] * rng.uniform(0.1, 1.2, n)
    found = fo.solve(instance, "finish-time", **times)
    assert found.certificate.worst < 1e-8
    assert 1 / found.shares.min() == pytest.approx(gavel_finish_time(instance.speeds, scale, workers, **times), rel=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_finish_time_is_gavels(seed: int) -> None:
    """On random throughputs of a dozen jobs, on three kinds of which there are three accelerators each."""
    rng = np.random.default_rng(seed)
    speeds = rng.uniform(1, 4, (12, 1)) * 10 ** rng.uniform(-0.7, 0.7, (12, 3))
    instance = fo.Instance(np.full((3, 1), 3.0), rng.choice([1.0, 1.0, 2.0], (12, 1)), speeds=speeds, tasks=np.ones(12))
    check_finish_times(instance, 3.0, seed)


@needs("gavel")
def test_finish_time_is_gavels_on_its_table() -> None:
    """83 jobs, one of each type and scale, on 26 K80, 26 P100 and 26 V100."""
    path = DATA / "gavel" / "gavel_isolated_throughputs_simulation.csv"
    instance = fo.import_gavel(path, dict.fromkeys(("k80", "p100", "v100"), 26), sharing="rdm").instance
    check_finish_times(instance, 26.0, 7)


@needs("gavel")
@pytest.mark.parametrize("number", [4, 8, 36])
def test_the_real_table(number: int) -> None:
    """83 jobs, one of each type and scale, on K80, P100 and V100: the same optimum, with jobs of up to 8 cards."""
    path = DATA / "gavel" / "gavel_isolated_throughputs_simulation.csv"
    kinds = ("k80", "p100", "v100")
    imported = fo.import_gavel(path, dict.fromkeys(kinds, number))
    instance = imported.instance
    assert instance.n_users == 83 if number >= 8 else len(instance.unservable) == 19
    kept = np.flatnonzero(instance.servable)
    assert instance.rates_per_server is not None
    scale = instance.parallelism[kept]
    throughput = instance.rates_per_server[kept] * scale[:, None]
    workers = np.full(3, float(number))
    allocation = fo.solve(instance, "tsf")
    expected = gavel_max_min(throughput, scale, np.ones(kept.size), workers)
    assert allocation.shares[kept].min() * workers.sum() == pytest.approx(expected, rel=1e-8)
    for notion in ("tsf", "proportional"):
        tasks = fo.solve(instance, notion).tasks[kept]
        part = np.divide(tasks, throughput, out=np.zeros_like(tasks), where=throughput > 0)
        assert (part.sum(axis=1) <= 1 + 1e-9).all()
        assert (scale @ part <= workers * (1 + 1e-9)).all()
