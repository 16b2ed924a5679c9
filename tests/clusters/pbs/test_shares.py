"""The fairshare tree of PBS as queues: what each owner gets is worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.pbs_records import import_records, job, vnode

import fairopt as fo

TREE = """\
# name  id  parent  shares
physics 10  root    60
chem    20  root    20
ann     11  physics 10
ben     12  physics 20
carl    21  chem    5
gone    22  chem    100
"""


def test_shares_are_weights_in_a_tree(tmp_path: Path) -> None:
    """Of 18 CPUs: physics 12 (ann 4, ben 8), chemistry 4, and dora, whom the tree lacks, 2 as unknown; gone asks for nothing."""
    (tmp_path / "resource_group").write_text(TREE)
    counts = {"array": "True", "array_state_count": "Queued:50 Running:0 Exiting:0 Expired:0 "}
    jobs = [job(f"{k}[]", "1:ncpus=1", user, "B", **counts) for k, user in enumerate(("ann", "ben", "carl", "dora"))]
    found = import_records(tmp_path, [vnode("a", 18)], jobs, shares=tmp_path / "resource_group")
    tasks = fo.solve(found.instance, "drfh").tasks_per_user
    assert dict(zip(found.owners, tasks.round(9).tolist(), strict=True)) == {"ann": 4, "ben": 8, "carl": 4, "dora": 2}
    assert {queue.name: queue.parent for queue in found.instance.queues} == {
        "physics": None, "chem": None, "unknown": None, "ann": "physics", "ben": "physics", "carl": "chem", "dora": "unknown"
    }  # fmt: skip
    assert "dora: not in the fairshare tree, and so beside each other in the queue unknown" in found.notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ann 11 root", r"resource_group, line 1: .*is not NAME ID PARENT SHARES"),
        ("ann 11 root 5\nann 12 root 5", r'line 2: "ann" is listed twice'),
        ("ann 11 physics 5", r'line 1: "ann" is in "physics", which is not listed before it'),
        ("ann 11 root 5\nben 12 ann 5", r"ann has entities in it, and is an owner of jobs"),
    ],
)
def test_trees_that_are_wrong(tmp_path: Path, text: str, message: str) -> None:
    """With the file and the line."""
    (tmp_path / "resource_group").write_text(text)
    with pytest.raises(fo.InvalidInstance, match=message):
        import_records(tmp_path, [vnode("a")], [job(1)], shares=tmp_path / "resource_group")
