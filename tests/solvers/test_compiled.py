"""Plain and compiled steps do the same, and steps are compiled anew when what they call or read has changed."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from filelock import FileLock
from instances import decimal_tree, instance_in_queues, instance_of_everything, trace_in_queues, with_lenders

import fairopt as fo
from fairopt.solvers import compiled
from fairopt.solvers.equilibrium import kernel
from fairopt.solvers.filling import arrival_order
from fairopt.solvers.filling import kernel as of_schedules
from fairopt.solvers.filling.placements import BestFit, FirstFit, Random, WorstFit

# Plain, compiled, and compiled half-way: the same tasks on the same servers, and the same numbers to the last bit ----------------------


@pytest.fixture
def thrice(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], list[Any]]], None]:
    """Return a function that compares what a call gives with plain steps, with compiled ones, and with both one after the other."""

    monkeypatch.setattr(compiled, "is_being_compiled", lambda *step: False)  # wait for another process that compiles

    def compare(call: Callable[[], list[Any]]) -> None:
        answers = []
        for patience in (np.inf, -1.0, 1e-4):
            monkeypatch.setattr(compiled, "_loaded", set())
            monkeypatch.setattr(compiled, "PATIENCE", patience)
            monkeypatch.setattr(compiled, "PATIENCE_IN_ALL", np.inf)
            monkeypatch.setattr(compiled, "PATIENCE_IF_KEPT", np.inf)
            answers.append(call())
            kinds = {name: len(getattr(compiled._compiled[kernel], name).signatures) for kernel, name in compiled._loaded}
            assert {name: number for name, number in kinds.items() if number > 1} == {}  # arrays of another kind are compiled for anew
        for other in answers[1:]:
            for one, another in zip(answers[0], other, strict=True):
                np.testing.assert_array_equal(one, another)

    return compare


@pytest.mark.parametrize("placement", sorted(fo.PLACEMENTS))
def test_schedules(placement: str, thrice: Callable[[Callable[[], list[Any]]], None]) -> None:
    """Of all criteria, with ties broken in both ways."""

    def schedules() -> list[Any]:
        found = []
        for seed in range(4):
            instance = instance_of_everything(seed)
            instance = instance.replace(counts=np.ceil(instance.counts), tasks=np.minimum(np.floor(instance.tasks), 40), parallelism=None)
            options: dict[str, Any] = {"slots": 3} if placement == "slots" else {}
            for criterion in ("drfh", "tsf", "cdrf", "psdsf"):
                if placement in fo.NOTIONS or (placement == "slots" and criterion == "psdsf"):
                    continue
                plan = fo.schedule(instance, criterion, placement=placement, ties="random", seed=seed, record=True, **options)
                found += [plan.tasks, plan.trace.users, plan.trace.servers]
        return found

    thrice(schedules)


@pytest.mark.parametrize("placement", ["first-fit", "random-server"])
def test_trees(placement: str, thrice: Callable[[Callable[[], list[Any]]], None]) -> None:
    """Schedules that follow a tree of queues, and simulations."""

    def found() -> list[Any]:
        values: list[Any] = []
        for seed in range(6):
            instance = decimal_tree(with_lenders(instance_in_queues(seed), seed))
            values.append(fo.schedule(instance, "drfh", placement=placement, ties="random", seed=seed, record=True).trace.servers)
            cluster = instance.replace(tasks=None)
            ran = fo.simulate(trace_in_queues(cluster, seed), cluster, f"drfh:{placement}")
            values += [ran.task_start, ran.task_server]
        return values

    thrice(found)


@pytest.mark.parametrize("scheduler", ["drfh:best-fit", "tsf:random-server", "fifo", "backfill"])
def test_simulations(scheduler: str, thrice: Callable[[Callable[[], list[Any]]], None]) -> None:
    """Tasks that end, users and servers that come and go."""

    def found() -> list[Any]:
        values: list[Any] = []
        for seed in range(6):
            cluster = decimal_tree(instance_in_queues(seed)).replace(tasks=None, guarantees=None, queues=(), queue_of=None)
            ran = fo.simulate(trace_in_queues(cluster, seed), cluster, scheduler)
            values += [ran.task_start, ran.task_server]
        return values

    thrice(found)


def test_arrivals(thrice: Callable[[Callable[[], list[Any]]], None]) -> None:
    """Tasks placed in order of arrival, on servers with cards and without."""
    servers, demands = [[4.0, 9.0], [2.0, 7.0]], [[0.5, 1.0], [2.0, 1.0], [0.7, 0.5]]
    instance = fo.Instance(servers, demands, counts=[3, 2], eligibility=[[True, True], [True, False], [True, True]])
    turns = np.random.default_rng(0).integers(0, 3, 30)
    placements = [FirstFit(), BestFit("l1"), BestFit("cosine"), WorstFit(), Random()]
    thrice(
        lambda: [
            arrival_order.place_arrivals(instance, turns, placement, cards=cards, seed=1) for placement in placements for cards in (0, None)
        ]
    )


@pytest.mark.parametrize("order", ["sequential", "random", "asynchronous"])
def test_servers_that_divide_by_themselves(order: str, thrice: Callable[[Callable[[], list[Any]]], None]) -> None:
    """PS-DSF by best responses, which the equations of the limits shorten."""
    instances = [instance_of_everything(seed).replace(parallelism=None, rates=None) for seed in range(3)]
    thrice(lambda: [fo.solve(instance, "psdsf", order=order).tasks for instance in instances])


@pytest.mark.parametrize("phases", ["random", "at-once"])
def test_servers_that_act_over_time(phases: str, thrice: Callable[[Callable[[], list[Any]]], None]) -> None:
    """PS-DSF by servers that each act at times of their own."""
    cluster = decimal_tree(instance_in_queues(3)).replace(tasks=None, guarantees=None, queues=(), queue_of=None, weights=None)
    trace = trace_in_queues(cluster, 3)
    thrice(lambda: [fo.simulate(trace, cluster, f"psdsf:period=0.5:phases={phases}", until=30.0).completion])


def test_what_an_earlier_process_compiled_is_loaded_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps on disk need no compiler: small pieces of work wait for them a second in all, and for a compiler ten times as long."""
    instance = instance_of_everything(0).replace(parallelism=None, rates=None)
    for kept in (False, True):
        monkeypatch.setattr(compiled, "_loaded", set())
        monkeypatch.setattr(compiled, "_looked", {})
        monkeypatch.setattr(compiled, "_spent", defaultdict(float, {kernel.__name__: 2.0}))
        monkeypatch.setattr(compiled, "is_kept", lambda *step, kept=kept: kept)
        fo.solve(instance, "psdsf", order="sequential")
        assert ((kernel.__name__, "sweep") in compiled._loaded) == kept


@pytest.mark.parametrize("elsewhere", [False, True])
def test_while_another_process_compiles_plain_python_goes_on(elsewhere: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And steps are compiled where nobody holds the lock."""
    instance = instance_of_everything(0).replace(parallelism=None, rates=None)
    monkeypatch.setattr(compiled, "_loaded", set())
    monkeypatch.setattr(compiled, "_looked", {})
    monkeypatch.setattr(compiled, "_spent", defaultdict(float, {kernel.__name__: 20.0}))
    monkeypatch.setattr(compiled, "PATIENCE_IN_ALL", 10.0)
    monkeypatch.setattr(compiled, "is_kept", lambda *step: False)
    held = tmp_path / "kernel.lock"  # not the kernel's own, which another worker may hold
    monkeypatch.setattr(compiled, "_lock", lambda function, timeout=-1.0: FileLock(held, timeout=timeout))
    loaded: list[Any] = []

    def load(function: Any, *arguments: Any) -> float:
        loaded.append(function)
        return 0.0

    monkeypatch.setattr(compiled, "load", load)
    with FileLock(held) if elsewhere else nullcontext():
        assert compiled.is_being_compiled(kernel, "sweep") == elsewhere
        fo.solve(instance, "psdsf", order="sequential")
    assert bool(loaded) != elsewhere


def test_a_step_is_kept_until_its_kernel_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As numba's own cache."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path)
    source = tmp_path / "small_kernel.py"
    source.write_text("from fairopt.solvers.compiled import step\n\n\n@step()\ndef twice(x):\n    return 2 * x\n")
    small = importlib.import_module("small_kernel")
    assert not compiled.is_kept(small, "twice")
    twice = compiled.compiled(small).twice
    compiled.load(twice, 1.0)
    assert twice(2.0) == 4.0
    assert compiled.is_kept(small, "twice")
    os.utime(source, ns=(1, 1))
    assert not compiled.is_kept(small, "twice")


def test_another_function_is_compiled_in_the_place_of_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists are faster in plain Python, and arrays in compiled code; it is compiled anew when that other function changes."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path)
    source = tmp_path / "listing_kernel.py"
    source.write_text(
        "import numpy as np\nfrom fairopt.solvers.compiled import step\n\n\ndef _same(x):\n    return x\n\n\n"
        "@step(compiled_as=_same)\ndef listed(x):\n    return x.tolist()\n\n\n"
        "@step()\ndef total(x):\n    part = 0.0\n    for value in listed(x):\n        part += value\n    return part\n"
    )
    listing = importlib.import_module("listing_kernel")
    steps = compiled.compiled(listing)
    x = np.arange(4.0)
    assert listing.listed(x) == [0, 1, 2, 3]
    assert steps.listed(x) is x
    assert listing.total(x) == steps.total(x) == 6
    assert not hasattr(steps, "_same")


def test_a_kernel_of_several_files_is_compiled_anew_when_one_of_them_changes(tmp_path: Path) -> None:
    """Also the steps of the other files: numba alone would keep those that call, or read, what has changed."""
    (tmp_path / "numbers_of_it.py").write_text("PART = 2.0\n")
    (tmp_path / "lower.py").write_text("from fairopt.solvers.compiled import step\n\n\n@step()\ndef twice(x):\n    return 2 * x\n")
    (tmp_path / "small_kernel.py").write_text(
        "from fairopt.solvers.compiled import step\nfrom lower import twice\nfrom numbers_of_it import PART\n\n\n"
        "@step()\ndef four_times(x):\n    return twice(x) * PART\n"
    )
    code = """if True:
        import small_kernel
        from fairopt.solvers import compiled
        print(compiled.is_kept(small_kernel, "four_times"), end=" ")
        step = compiled.compiled(small_kernel).four_times
        compiled.load(step, 1.0)
        print(step(1.0), small_kernel.four_times(1.0), compiled.is_kept(small_kernel, "four_times"))
    """
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    run = partial(subprocess.run, [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert run().stdout == "False 4.0 4.0 True\n"
    assert run().stdout == "True 4.0 4.0 True\n"
    for name, old, new, told in (("lower", "2 * x", "3 * x", 6.0), ("numbers_of_it", "2.0", "5.0", 15.0)):
        source = tmp_path / f"{name}.py"
        source.write_text(source.read_text().replace(old, new))
        assert run().stdout == f"False {told} {told} True\n"


def test_a_kernel_knows_its_files() -> None:
    """All modules of the steps that its steps may call, and no others."""
    names = {file.__name__.rpartition("fairopt.solvers.")[2] for file in compiled._files(of_schedules)}
    of_them = ("servers", "users", "filling", "events", "over_time", "accounts", "queues", "queues_over_time", "moments")
    assert names == {"filling.kernel", *(f"filling.kernel.{name}" for name in of_them)}
    assert compiled._files(kernel) == [kernel]


def test_the_version_of_a_kernel_changes_with_a_number(tmp_path: Path) -> None:
    """Of one of its modules; what is no number, such as a folder, does not count."""
    (tmp_path / "any.py").write_text("")
    versions = []
    for more in ({}, {"A": 1.0}, {"A": 2.0}, {"A": "text"}):
        module = ModuleType("any")
        vars(module).update(more, __file__=str(tmp_path / "any.py"))
        versions.append(compiled._version(kernel, [module]))
    assert len(set(versions)) == 3
    assert versions[0] == versions[3]


def test_numba_reads_no_settings_of_the_current_folder(tmp_path: Path) -> None:
    """Neither as it is imported nor as it compiles; what is in the environment counts, and so does a numba that was there before."""
    (tmp_path / ".numba_config.yaml").write_text("opt: 1\nloop_vectorize: 0\n")
    first, ours = "from numba.core import config", "from fairopt.solvers import compiled; config = compiled._numba().core.config"
    told = "config.reload_config(); print(int(config.OPT), config.LOOP_VECTORIZE)"
    run = partial(subprocess.run, cwd=tmp_path, capture_output=True, text=True, check=True, env=os.environ | {"NUMBA_OPT": "2"})
    assert run([sys.executable, "-c", f"{ours}; {told}"]).stdout == "2 1\n"
    assert run([sys.executable, "-c", f"{first}; {ours}; {told}"]).stdout == "2 0\n"


def test_a_loop_of_schedules_keeps_nothing() -> None:
    """A compiled step counts the references to what it is given, such as a generator of random numbers."""
    code = """if True:
        import gc, sys
        import fairopt as fo
        from fairopt.solvers import compiled
        compiled.PATIENCE = compiled.PATIENCE_IN_ALL = compiled.PATIENCE_IF_KEPT = 0.0
        compiled.is_being_compiled = lambda *step: False  # wait for another process that compiles
        instance = fo.Instance([[4, 8], [8, 4]], [[1, 2], [2, 1]])
        kept = []
        for _ in range(3):
            gc.collect()
            kept.append(sys.getallocatedblocks())
            for _ in range(300):
                fo.schedule(instance)
        assert compiled._loaded
        gc.collect()
        print(sys.getallocatedblocks() - kept[-1])
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout.splitlines()[-1]) < 300  # less than one block of memory a schedule; of one generator there are 24
