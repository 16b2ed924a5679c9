"""Tables fit the terminal: numbers stay whole, words break between words, long names are shortened."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.command_line import EXAMPLES, flat, run

import fairopt as fo

LONG = "department-of-applied-sciences/training-job-of-the-night-{}"
WIDTH = 80


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    """Three resources, and names that no terminal has room for."""
    random = np.random.default_rng(0)
    path = tmp_path / "wide.yaml"
    fo.save(
        fo.Instance(
            random.integers(8, 64, (3, 3)),
            random.integers(1, 4, (4, 3)),
            weights=[1, 2, 3, 2],
            counts=[1_000, 30, 1],
            users=[LONG.format(n) for n in range(4)],
            servers=[f"rack-{i}-of-the-new-building-behind-the-library" for i in range(3)],
            resources=["nvidia.com/gpu-a100-sxm4-80gb", "ephemeral-storage-bytes", "memory"],
            tasks=[500, 700, np.inf, np.inf],
            queues=[fo.Queue("department-of-applied-sciences-and-engineering", guarantee={"memory": 9}), fo.Queue("guests")],
            queue_of=["department-of-applied-sciences-and-engineering", "guests"] * 2,
        ),
        path,
    )
    return path


@pytest.mark.parametrize(
    "command",
    [
        ("solve",),
        ("schedule", "--top", 2),
        ("compare", "--schedules", "drfh:best-fit:metric=cosine"),
        ("compare", "--schedules", "drfh:best-fit:metric=cosine", "--by", "queue"),
        ("what-if", "--set", "servers.rack-2-of-the-new-building-behind-the-library.count=9"),
        ("audit", "--properties", "pareto,guarantees,single-resource-fairness"),
        ("explain", "--user", LONG.format(2), "--resolves", 1),
    ],
    ids=lambda command: command[0],
)
def test_no_line_is_too_long(command: tuple[object, ...], wide: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On 80 columns."""
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    output = run(command[0], wide, *command[1:]).stdout
    assert max(map(len, output.splitlines())) <= WIDTH
    assert not [line for line in output.splitlines() if line.split()[:1] in (["/"], ["%"])]


@pytest.mark.parametrize(("weights", "heading"), [([2, 1], "share / weight"), ([1, 1], "share")])
def test_what_is_divided_by_the_weight_is_called_so(weights: list[float], heading: str, tmp_path: Path) -> None:
    """Of a leximin; a sum has shares that are not divided."""
    path = tmp_path / "pool.yaml"
    instance = fo.Instance([[9, 18]], [[1, 4], [3, 1]], weights=weights)
    fo.save(instance, path)
    headings = {notion: fo.solve(instance, notion).share_heading for notion in ("drfh", "fds")}
    assert headings == {"drfh": heading, "fds": "share"}
    assert (" share / weight " in run("solve", path).stdout) == (heading != "share")
    assert ("min share / weight" in run("frontier", path, "--notions", "drfh").stdout) == (heading != "share")
    assert fo.schedule(instance, "drfh").share_heading == heading


def test_sharing_goes_without_saying() -> None:
    """Resources are divided unless a title says that time is."""
    assert "sharing" not in run("solve", EXAMPLES / "psdsf-figure-1.yaml").stdout
    assert "sharing tdm" in run("solve", EXAMPLES / "psdsf-figure-4.yaml").stdout


def test_regret_without_users_whose_part_is_no_task(tmp_path: Path) -> None:
    """The table says 100 %; a line below says what it is without them, and solve says who runs nothing."""
    path = tmp_path / "pool.yaml"
    users = ["big", "a", "b"]
    fo.save(fo.Instance([[10]], [[9], [1], [1]], tasks=[1, 2, 9], users=users, servers=["pool"], resources=["cpu"]), path)
    text = flat(run("compare", path, "--integral").stdout)
    assert "drfh, whole tasks drfh 100.0 %" in text
    assert "drfh, whole tasks: 1 user has less than one of the divisible tasks of the exact allocation, and none here (big)" in text
    assert "Regret without it: level 0.0 %, largest 0.0 % and total -40.0 %." in text
    assert "1 user runs no task: big." in run("solve", path, "--integral").stdout
    assert "runs no task" not in run("solve", path).stdout
