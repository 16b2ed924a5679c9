"""A search for worst cases that is killed goes on to the answer of a search that is not, bit for bit."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.processes import process

import fairopt as fo
from fairopt.analysis.worst_cases import course, local_search
from fairopt.analysis.worst_cases.objective import objective_of
from fairopt.analysis.worst_cases.small_instances import SmallInstances
from fairopt.files import progress
from fairopt.files.progress import of_text, text_of
from fairopt.files.stores import read_arrays
from fairopt.processes.crew import Crew

SMALL: dict[str, Any] = {"users": 2, "servers": 2, "resources": 1, "capacities": (3, 6), "demands": (1, 3), "seed": 1}
ALL: dict[str, Any] = SMALL | {"vary": ["weights", "constraints", "counts", "tasks", "demands-by-server", "speeds"]}
BOX: dict[str, Any] = {
    "notion": "drfh", "vary": {"demands": (1, 2), "weights": (1, 2)}, "where": ["weights['user-1'] <= weights['user-2']"],
    "cluster": fo.Instance([[10, 2], [2, 10]], [[1, 1], [1, 1]]), "tries": 12, "measure": "level",
}  # fmt: skip


MOMENTS = (1, 5, 9, 14, 40)


def plain(worst: fo.WorstCase | fo.WorstCaseInBox) -> dict[str, Any]:
    """The answer but for the seconds."""
    return {word: value for word, value in worst.to_dict().items() if word not in ("seconds", "time_s")}


@pytest.fixture
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds of 7 instances, of which 3 are drawn; the state is written after each."""
    for module in (local_search, course):
        monkeypatch.setattr(module, "ROUND", 7)
    monkeypatch.setattr(local_search, "DRAWS", 3)
    monkeypatch.setattr(local_search, "_SLICE", 0.0)
    for word in ("_LEAST", "_EFFORT", "_PART"):
        monkeypatch.setattr(progress, word, 0.0)


def killed_at(number: int, folder: Path, *arguments: Any, **options: Any) -> bool:
    """Begin a search, and leave it as a killed process would, when the file was written so many times; say whether it came so far."""
    left = itertools.count(1)

    def copied() -> bool:
        if next(left) == number:  # what is in the file now is what a killed process would leave
            shutil.copytree(folder, folder.with_suffix(f".{number}"))
            return True
        return False

    fo.worst_case(*arguments, **options, resume=folder, stop=copied)
    return folder.with_suffix(f".{number}").exists()


@pytest.mark.usefixtures("short_rounds")
@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (("drfh:worst-fit",), SMALL | {"tries": 11}),
        (("drfh:first-fit", "drfh"), ALL | {"tries": 8, "integral": False}),
        (("uniform",), BOX),
        (("drfh:first-fit",), SMALL | {"tries": 17, "workers": 2, "backend": "threading"}),
    ],
    ids=["whole", "all-varies", "box", "workers"],
)
def test_killed_at_any_moment(arguments: tuple[str, ...], options: dict[str, Any], tmp_path: Path) -> None:
    """In rounds and in shrinking: each file that a killed process may leave leads to the same instance and the same counts."""
    whole = plain(fo.worst_case(*arguments, **options))
    moments = 0
    for number in MOMENTS:
        folder = tmp_path / f"kept{number}"
        if not killed_at(number, folder, *arguments, **options):
            break
        moments += 1
        left = folder.with_suffix(f".{number}")
        seen: list[int] = []
        again = fo.worst_case(*arguments, **options, resume=left, done=lambda more, *_, seen=seen: seen.append(more))
        assert plain(again) == whole
        assert again.stopped == ""
    assert plain(fo.worst_case(*arguments, **options, resume=left)) == whole  # its file at the end
    assert moments > 2


@pytest.mark.usefixtures("short_rounds")
def test_more_instances_may_be_tried_later(tmp_path: Path) -> None:
    """As if they had been asked for at once, and with other workers; fewer are refused. What shrinking keeps is no part of the question."""
    options = SMALL | {"resume": tmp_path}
    fo.worst_case("drfh:worst-fit", **options, tries=10)
    more = fo.worst_case("drfh:worst-fit", **options, tries=24, workers=2, backend="threading")
    assert plain(more) == plain(fo.worst_case("drfh:worst-fit", **SMALL, tries=24))
    other = fo.worst_case("drfh:worst-fit", **options, tries=24, keep_regret=1.0)
    assert plain(other) == plain(fo.worst_case("drfh:worst-fit", **SMALL, tries=24, keep_regret=1.0))
    with pytest.raises(fo.InvalidInstance, match=r"search\.npz has tried (\d+) instances already, and tries is 3; give at least \1"):
        fo.worst_case("drfh:worst-fit", **options, tries=3)
    box = BOX | {"resume": tmp_path / "box"}
    fo.worst_case("uniform", **box)
    assert plain(fo.worst_case("uniform", **box | {"tries": 20})) == plain(fo.worst_case("uniform", **BOX | {"tries": 20}))
    with pytest.raises(fo.InvalidInstance, match=r"search\.npz has tried 20 instances already, and tries is 5; give at least 20"):
        fo.worst_case("uniform", **box | {"tries": 5})


def test_another_question_is_refused(tmp_path: Path) -> None:
    """The message names what differs. A function has no name by which it is known again."""
    fo.worst_case("drfh:worst-fit", **SMALL, tries=3, resume=tmp_path)
    for changes, message in (
        ({"seed": 2}, "seed was 1 and is 2"),
        ({"users": 3, "measure": "level"}, "users was 2 and is 3; measure was 'worst' and is 'level'"),
        ({"vary": ["tasks"]}, r"vary was \[\] and is \['tasks'\]"),
        ({"notion": "tsf"}, "notion was 'drfh' and is 'tsf'"),
        ({"integral": False}, "whole tasks was True and is False"),
    ):
        with pytest.raises(fo.InvalidInstance, match=rf"search\.npz keeps another search for a worst case: {message}; give another folder"):
            fo.worst_case("drfh:worst-fit", **SMALL | {"tries": 3} | changes, resume=tmp_path)
    with pytest.raises(fo.InvalidInstance, match="schedule was 'drfh:worst-fit' and is 'drfh:first-fit'"):
        fo.worst_case("drfh:first-fit", **SMALL, tries=3, resume=tmp_path)
    fo.worst_case("uniform", **BOX, resume=tmp_path / "box")
    with pytest.raises(fo.InvalidInstance, match=r"where was \[.+\] and is \[\]; give another folder"):
        fo.worst_case("uniform", **BOX | {"where": []}, resume=tmp_path / "box")
    with pytest.raises(fo.Unsupported, match="only if its schedule is named by a text"):
        fo.worst_case(lambda instance: fo.schedule(instance), "drfh", resume=tmp_path / "function")


def test_a_file_of_a_schedule_that_has_changed_is_another_question(tmp_path: Path) -> None:
    """The file of the scheduler belongs to the question."""
    file = tmp_path / "mine.py"
    file.write_text("import fairopt as fo\n\ndef mine(instance):\n    return fo.schedule(instance)\n")
    fo.worst_case(f"{file}:mine", "drfh", **SMALL, tries=3, resume=tmp_path / "kept")
    file.write_text(file.read_text() + "\n# changed\n")
    with pytest.raises(fo.InvalidInstance, match="another search for a worst case: schedule "):
        fo.worst_case(f"{file}:mine", "drfh", **SMALL, tries=3, resume=tmp_path / "kept")


def test_a_state_of_somebody_else_is_refused_or_does_no_harm(tmp_path: Path) -> None:
    """Each of its arrays left out or replaced, and each number of its counts: a sentence, or a result that was solved again."""
    options = SMALL | {"tries": 9, "resume": tmp_path}
    fo.worst_case("drfh:worst-fit", **options)
    file = tmp_path / "search.npz"
    arrays = read_arrays(file)
    said = json.loads(text_of(arrays["state"]))
    texts = [said | {word: value} for word in said for value in (-1, "x", 10**30, None, [], [[1]], [[0, 9, 3, 0, {}]])]
    changed = [arrays | {"state": of_text(json.dumps(text))} for text in texts]
    changed += [{name: value for name, value in arrays.items() if name != left} for left in arrays]
    changed += [arrays | {name: bad} for name in arrays for bad in (np.array("text"), np.zeros((3, 3)), np.array(np.nan))]
    messages = []
    for damaged in changed:
        np.savez(file, **damaged)  # type: ignore[arg-type]
        try:
            worst = fo.worst_case("drfh:worst-fit", **options)
        except fo.InvalidInstance as error:
            messages.append(str(error))
        else:
            own = fo.regret(fo.schedule(worst.instance, "drfh", placement="worst-fit"), "drfh", integral=True)
            assert own.worst == pytest.approx(worst.value)
    assert len(messages) > len(changed) // 2
    assert all("search.npz" in message for message in messages)


@pytest.mark.parametrize(
    ("workers", "backend"),
    [
        (1, "loky"),
        (2, "loky"),
        pytest.param(2, "dask", marks=pytest.mark.skipif(find_spec("distributed") is None, reason="needs pip install '.[dask]'")),
        pytest.param(2, "ray", marks=pytest.mark.skipif(find_spec("ray") is None, reason="needs pip install '.[ray]'")),
    ],
)
def test_kill_nine_and_the_same_command_again(workers: int, backend: str, tmp_path: Path) -> None:
    """A real process with real workers, killed when it has written a state of its own; the command then goes on from there."""
    command = (sys.executable, "-m", "fairopt", "worst-case", "drfh:worst-fit", "--users", "2", "--tries", "300", "--divisible", "--json")
    file = tmp_path / "kept" / "search.npz"
    resume = ("--workers", str(workers), "--backend", backend, "--resume", str(tmp_path / "kept"))
    with process(*command, *resume) as running:
        tried = 0
        while tried < 30:  # enough instances for a local search
            time.sleep(0.05)
            assert running.poll() is None, running.communicate()
            if file.exists():
                tried = sum(made for _, _, made, *_ in json.loads(text_of(read_arrays(file)["state"]))["rounds"])
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
    assert 0 < tried < 300
    with process(*command, *resume) as again:
        out, err = again.communicate(timeout=600)
    assert again.returncode == 0, err
    whole = fo.worst_case("drfh:worst-fit", users=2, tries=300, integral=False)
    assert {word: value for word, value in json.loads(out).items() if word not in ("seconds", "time_s")} == plain(whole)


@pytest.mark.usefixtures("short_rounds")
def test_a_lost_cluster_leaves_what_was_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says how to go on; without a folder, that nothing is kept. The same call goes on to the same answer."""
    options = SMALL | {"tries": 11, "workers": 2, "backend": "threading"}
    whole = plain(fo.worst_case("drfh:worst-fit", **options))
    work = Crew.map

    def lost_later(crew: Crew, *arguments: Any) -> list[Any]:
        if next(calls) > 2:
            raise fo.NoSolution("the scheduler is lost")
        return work(crew, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(Crew, "map", lost_later)
        calls = itertools.count()
        with pytest.raises(fo.NoSolution, match=r"^the scheduler is lost; nothing is kept without a folder to resume from"):
            fo.worst_case("drfh:worst-fit", **options)
        calls = itertools.count()
        with pytest.raises(fo.NoSolution, match=r"lost; what was tried is kept in \S+search\.npz; run the same search again to go on$"):
            fo.worst_case("drfh:worst-fit", **options, resume=tmp_path)
    seen: list[int] = []
    assert plain(fo.worst_case("drfh:worst-fit", **options, resume=tmp_path, done=lambda more, _: seen.append(more))) == whole
    assert seen[0] >= 4  # two rounds were begun, and one instance tried of each, three times


def test_a_search_that_found_the_worst_has_nothing_more_to_try(tmp_path: Path) -> None:
    """A regret of 1 ends a search; asked for more instances later, it is the same as if they had been asked for at once."""
    options: dict[str, Any] = {"users": 2, "servers": 2, "resources": 1, "capacities": (1, 4), "seed": 0}
    first = fo.worst_case("drfh:first-fit", **options, tries=50, resume=tmp_path)
    more = fo.worst_case("drfh:first-fit", **options, tries=1000, resume=tmp_path)
    assert plain(more) == plain(fo.worst_case("drfh:first-fit", **options, tries=1000))
    assert first.tries == more.tries < 50


@pytest.mark.usefixtures("short_rounds")
def test_rounds_that_several_workers_begin_count_as_tries() -> None:
    """Rounds 0 and 2 of 7 instances have tried 4 and 3: a search with fewer than 2 * 7 + 3 tries could not leave those of round 2 out."""
    size = SmallInstances(2, 2, 1, (3, 6), (1, 3), ())
    objective = objective_of(lambda instance: fo.schedule(instance, "drfh:worst-fit"), fo.NOTIONS["drfh"](), "worst", None, size)

    def searching(tries: int) -> course.Course:
        return course.Course(local_search.Rounds(objective, size, 1, True, None), tries)

    begun = searching(21)
    for number, made in ((0, 4), (2, 3)):
        for now in itertools.islice(begun.rounds.steps(local_search.Round(number, 7)), made):
            begun._take(now)
    assert begun.tried == 7
    with pytest.raises(fo.NoSolution, match=r"has tried 7 instances already, in rounds of 7 .*, and tries is 16; give at least 17"):
        searching(16).restore(begun.state())
    more = searching(17)
    more.restore(begun.state())
    with Crew(1, "loky", None) as crew:
        more.run(crew, lambda: None)
    assert more.tried == 17
