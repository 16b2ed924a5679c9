"""The text of rules, and what they name."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

import fairopt as fo
from fairopt.instance.rule_rows import rule_rows

LAB = fo.Instance(
    [[8, 1], [4, 2]],
    [[1, 0], [2, 1], [1, 1]],
    users=["alice", "bob", "lab/carol"],
    servers=["new", "old"],
    resources=["cpu", "gpu"],
    attributes=[{"zone": "a"}, {"zone": "b"}],
    queues=[fo.Queue("team"), fo.Queue("bob")],
    queue_of=["team", "team", "bob"],
)


def terms(rule: fo.Rule) -> dict[str, Fraction]:
    """The left side, by its terms."""
    return {str(term): factor for term, factor in rule.terms}


@pytest.mark.parametrize(
    ("text", "left", "sense", "bound"),
    [
        ("x[alice] >= 2 * x['lab/carol']", {"x['alice']": 1, "x['lab/carol']": -2}, ">=", 0),
        ("4 <= x[alice]", {"x['alice']": -1}, "<=", -4),
        ("x[a] == 1/3", {"x['a']": 1}, "==", Fraction(1, 3)),
        ("x['a', 'zone = a'] <= 0.1 * x[a] + 1", {"x['a', 'zone = a']": 1, "x['a']": Fraction(-1, 10)}, "<=", 1),
        (
            "-(x[a] - 2*x[b]) / 4 <= amount['gpu', b]",
            {"x['a']": Fraction(-1, 4), "x['b']": Fraction(1, 2), "amount['gpu', 'b']": -1},
            "<=",
            0,
        ),
        ("work[a] + x[a] - x[a] >= 1e2", {"work['a']": 1}, ">=", 100),
    ],
)
def test_what_a_text_says(text: str, left: dict[str, Fraction], sense: str, bound: Fraction) -> None:
    """Everything but the number on the left."""
    rule = fo.Rule(text)
    assert (terms(rule), rule.sense, rule.bound, rule.text) == (left, sense, bound, text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4 <= x[a] <= 8", "is a chain of comparisons; write two rules"),
        ("x[a] = 4", 'has "=" where == belongs'),
        ("x[a] > 4", "compares by something else"),
        ("x[a]", "compares nothing"),
        ("x[a >= 4", "cannot be read at character"),
        ("x[a] >=", "cannot be read to its end"),
        ("x[queue:a] >= 1", r'^the rule "x\[queue:a\] >= 1" has a name without quotes'),
        ("x[a] >= y", r'neither a number nor x.*\(at character 9: "y"'),
        ("y[a] >= 4", r"has y\[...\].*at character 1"),
        ("x[lab-1] >= 4", r"name without quotes; write 'lab-1' in quotes \(at character 3"),
        ("x[a] * x[b] >= 4", "linear"),
        ("4 / x[a] >= 4", "linear"),
        ("x[a] / 0 >= 4", "divided by 0"),
        ("x[a] ** 2 >= 4", r"operator other than \+ - \* /"),
        ("1 >= 0", "about nobody"),
        ("x[a] - x[a] >= 0", "about nobody"),
        ("x[a] >= 1e999", "too large"),
        ("x[a, b, c] >= 1", "names nothing"),
        ("amount[gpu] >= 1", "names nothing"),
        ("x[a] >= __import__('os')", "neither a number nor"),
        ("x[a] >= 1 " + "+ 1" * 5000, "at most 10,000"),
        ("", "cannot be read"),
    ],
)
def test_what_cannot_be_read(text: str, message: str) -> None:
    """And where in the text."""
    with pytest.raises(fo.InvalidInstance, match=message):
        fo.Rule(text)


def test_python_loses_no_side() -> None:
    """A chain asks a rule for its truth."""
    x = fo.tasks(LAB)
    with pytest.raises(fo.InvalidInstance, match="write two rules"):
        assert 4 <= x["alice"] <= 8
    wrongs: tuple[Callable[[], object], ...] = (
        lambda: x["alice"] < 4,
        lambda: x["alice"] >= float("nan"),
        lambda: x["alice"] >= "4",
        lambda: x["alice"] * x["team"] >= 1,
    )
    for wrong in wrongs:
        with pytest.raises(fo.InvalidInstance):
            wrong()
    with pytest.raises(fo.InvalidInstance, match=r'no user or queue "alica".*alice'):
        x["alica"]


def test_a_rule_made_in_python_is_a_text() -> None:
    """Which says the same."""
    x = fo.tasks(LAB)
    for rule in (
        2 * x["alice"] - 3 >= x["team", "zone = a"] / 3,
        x.amount["gpu", "lab/carol", "old"] == 1,
        -x["alice"] <= 0,
        0.1 * x["alice"] + x["alice"] <= 5,
    ):
        again = fo.Rule(rule.text)
        assert (again.terms, again.sense, again.bound) == (rule.terms, rule.sense, rule.bound)


def test_names_are_users_and_queues() -> None:
    """A queue is all users below it; a name that is both says which; servers by name or requirement."""
    ruled = LAB.replace(rules=["x[team] >= x['user:bob', old]", "amount[cpu, 'queue:bob'] <= 3", "x[alice, 'zone = b'] == 1"])
    users, servers = (each.ravel() for each in np.indices((3, 2)))
    first, second, third = (row.coefficients(ruled, users, servers).reshape(3, 2).tolist() for row in rule_rows(ruled))
    assert first == [[1, 1], [1, 0], [0, 0]]
    assert second == [[0, 0], [0, 0], [1, 1]]
    assert third == [[0, 1], [0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("x[bob] >= 1", 'is a user and a queue; write "user:bob" or "queue:bob"'),
        ("x[carol] >= 1", 'there is no user or queue "carol"'),
        ("x[alice, young] >= 1", 'no server "young"'),
        ("x[alice, 'zone = c'] >= 1", "no server meets"),
        ("amount[gpus, alice] >= 1", r'no resource "gpus" \(did you mean "gpu"'),
    ],
)
def test_names_that_are_not_there(rule: str, message: str) -> None:
    """The rule is named."""
    with pytest.raises(fo.InvalidInstance, match=message) as caught:
        LAB.replace(rules=[rule])
    assert rule in str(caught.value)


def test_a_queue_of_nobody() -> None:
    """A rule over nobody is refused, and so is one over somebody who is left out."""
    with pytest.raises(fo.InvalidInstance, match="nobody is in the queue"):
        LAB.replace(queue_of=["team", "team", "team"], rules=["x['queue:bob'] >= 1"])


def test_files_keep_rules(tmp_path: object) -> None:
    """Word for word."""
    ruled = LAB.replace(rules=["x[alice] >= 1/3", "x['lab/carol'] == x[alice]"])
    fo.save(ruled, tmp_path / "lab.yaml")  # type: ignore[operator]
    assert fo.load(tmp_path / "lab.yaml") == ruled  # type: ignore[operator]
    fo.save(ruled, tmp_path / "lab")  # type: ignore[operator]
    assert fo.load(tmp_path / "lab") == ruled  # type: ignore[operator]
    text = (tmp_path / "lab.yaml").read_text().replace("x[alice] >= 1/3", "x[alice] > 1/3")  # type: ignore[operator]
    (tmp_path / "lab.yaml").write_text(text)  # type: ignore[operator]
    with pytest.raises(fo.InvalidInstance, match=r"lab.yaml, line \d+.*compares by something else"):
        fo.load(tmp_path / "lab.yaml")  # type: ignore[operator]
