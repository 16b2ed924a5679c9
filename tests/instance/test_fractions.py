"""Numbers as they are written: an instance keeps fractions beside its floats, through all that is done with it."""

# mypy: disable-error-code="arg-type, dict-item"
# (fractions where the types say floats, and answers that are known to be in fractions)

from __future__ import annotations

import copy
import pickle
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import fairopt as fo
from fairopt.errors import InvalidInstance
from fairopt.instance.exact_merging import merge_exactly
from fairopt.instance.fractions import Written, fraction_of, fractions_of, plain, written
from fairopt.simulation.keeping import digest_of
from fairopt.studies.cell import fingerprint

THIRD, HAIR = Fraction(1, 3), Fraction(1, 10**30)
LAB = fo.Instance(
    [[THIRD, 0.1], [2, 10**17 + 1]],
    [[0.3, THIRD], [1, Decimal("0.1000000000000000000001")]],
    weights=[THIRD, 1],
    tasks=[np.inf, Fraction(7, 3)],
    guarantees=[THIRD, 0],
    queues=[fo.Queue("lab", weight=THIRD, guarantee={"cpu": THIRD}, quotas=[fo.Quota(["B"], limit={"gpu": Fraction(20, 3)})])],
    queue_of=["lab", None],
    users=["a", "b"],
    servers=["A", "B"],
    resources=["cpu", "gpu"],
)
AS_FLOATS = fo.Instance(
    LAB.capacities, LAB.demands, weights=LAB.weights, tasks=LAB.tasks, guarantees=LAB.guarantees, users=["a", "b"], servers=["A", "B"]
)


def test_numbers_are_taken_as_they_are_given() -> None:
    """Ints, Fractions and Decimals as they are, floats by their shortest decimal; no limit stays inf."""
    exact = LAB.exact
    assert exact.capacities.tolist() == [[THIRD, Fraction(1, 10)], [Fraction(2), Fraction(10**17 + 1)]]
    assert exact.demands[1, 1] == Fraction("0.1000000000000000000001")
    assert exact.tasks.tolist() == [float("inf"), Fraction(7, 3)]
    assert exact.weights.tolist() == [THIRD, 1]
    assert exact.tree.weights.tolist() == [1, THIRD]
    assert exact.queues[0].quotas[0].limit["gpu"] == Fraction(20, 3)
    assert exact.exact is exact
    assert LAB.capacities.dtype == np.float64
    assert LAB.in_fractions


@pytest.mark.parametrize(
    "same", [copy.deepcopy, lambda lab: pickle.loads(pickle.dumps(lab)), lambda lab: lab.replace(weights=lab.given("weights"))]
)
def test_copies_have_the_same_fractions(same: object) -> None:
    """Deep copies, pickles, and instances with an argument replaced by itself."""
    assert callable(same)
    copied = same(LAB)
    assert copied == LAB
    assert copied.exact.demands.tolist() == LAB.exact.demands.tolist()
    assert copied.queues[0].exact.weight == THIRD
    assert fingerprint(copied) == fingerprint(LAB)


def test_a_hair_makes_another_instance() -> None:
    """Fractions that differ by 10^-30 have the same floats, and are not the same instance."""
    pairs = [
        (fo.Instance([[1]], [[1]]), fo.Instance([[1 + HAIR]], [[1]])),
        (LAB, LAB.replace(weights={"a": THIRD + HAIR})),
        (LAB, LAB.replace(queues={"lab": {"weight": THIRD + HAIR}})),
        (LAB, LAB.replace(queues={"lab": {"weight": float(THIRD)}})),
    ]
    for one, other in pairs:
        assert one != other
        assert fingerprint(one) != fingerprint(other)
        assert one.weights.tolist() == other.weights.tolist()


def test_fractions_that_floats_mean_leave_no_trace() -> None:
    """1/4 and 0.25 are the same instance; so is 1/10 and 0.1."""
    one, other = fo.Instance([[Fraction(1, 4)]], [[Fraction(1, 10)]]), fo.Instance([[0.25]], [[0.1]])
    assert one == other
    assert not one.in_fractions
    assert fingerprint(one) == fingerprint(other)


def test_units_make_no_other_study_or_simulation() -> None:
    """No answer depends on units: what was kept before they were given goes on."""
    one = fo.Instance([[8]], [[1]], resources=["memory"])
    other = one.replace(units={"memory": "GiB"})
    assert fingerprint(one) == fingerprint(other)
    assert digest_of(one) == digest_of(other)
    assert digest_of(one) != digest_of(one.replace(weights=[2]))


def test_what_is_changed_is_changed_and_the_rest_is_kept() -> None:
    """By label and as a whole, to fractions and back to floats."""
    changed = LAB.replace(weights={"b": Fraction(2, 7)}, tasks=[1, 2])
    assert changed.exact.weights.tolist() == [THIRD, Fraction(2, 7)]
    assert changed.exact.tasks.tolist() == [1, 2]
    assert changed.exact.capacities.tolist() == LAB.exact.capacities.tolist()
    assert LAB.replace(weights={"a": 0.5}).exact.weights.tolist() == [Fraction(1, 2), 1]
    assert fo.Instance([[1, 1]], [[1, 2]], weights={"user-1": THIRD}).exact.weights.tolist() == [THIRD]


def test_one_pool_adds_fractions() -> None:
    """Capacities add up as fractions."""
    assert LAB.pooled().exact.capacities.tolist() == [[THIRD + 2, Fraction(1, 10) + 10**17 + 1]]
    assert LAB.pooled().queues[0].exact.guarantee["cpu"] == THIRD


def test_rows_merge_where_fractions_are_equal() -> None:
    """Not where only their floats are; parts of merged rows are fractions."""
    instance = fo.Instance([[1, 2], [1, 2], [1, 2 + HAIR]], [[1, 1]] * 3, weights=[1, 2, THIRD])
    merging = merge_exactly(instance)
    assert merging.instance.capacities.shape == (2, 2)
    assert merging.user_part.tolist() == [Fraction(3, 10), Fraction(6, 10), Fraction(1, 10)]
    tasks = merging.spread(fractions_of([[1, 1]]))
    assert tasks[0].tolist() == [Fraction(3, 20), Fraction(3, 20), Fraction(3, 10)]
    assert merge_exactly(instance, by_weight=False).instance.n_users == 3


def test_data_has_fractions_as_text() -> None:
    """What is no short decimal is text, in queues too."""
    data = LAB.to_dict()
    assert data["servers"][0]["capacity"] == {"cpu": "1/3", "gpu": 0.1}
    assert data["queues"][0]["weight"] == "1/3"
    assert data["queues"][0]["quotas"][0]["limit"] == {"gpu": "20/3"}
    assert data["users"][1]["tasks"] == "7/3"
    assert all("/" not in str(value) for user in AS_FLOATS.to_dict()["users"] for value in user.values())


def test_what_floats_cannot_hold_is_refused() -> None:
    """Too small to be told from 0, and not a number."""
    with pytest.raises(InvalidInstance, match="below 1e-300"):
        fo.Instance([[Fraction(1, 10**400)]], [[1]])
    with pytest.raises(InvalidInstance, match="not a real number"):
        fo.Instance([["1/3"]], [[1]])
    with pytest.raises(InvalidInstance, match="beyond 1e308"):
        fo.Instance([[Fraction(10**400)]], [[1]])


def test_written_decimals() -> None:
    """Decimals that are longer than their float keep all digits; pickles keep them too."""
    long = written("0.12345678901234567890123")
    assert isinstance(long, Written)
    assert pickle.loads(pickle.dumps(long)).fraction == fraction_of(long) == Fraction("0.12345678901234567890123")
    assert written("0.30000000000000000000") == 0.3
    assert not isinstance(written("0.30000000000000000000"), Written)
    assert 0 < written("1e-99999999999999999999") < 1e-300  # which no check takes for 0
    assert written("0e-99999999999999999999") == 0.0
    assert plain(fraction_of(np.float64(1e23))) == 1e23


def test_queues_take_decimals() -> None:
    """As instances do."""
    queue = fo.Queue("lab", weight=Decimal("0.1000000000000000000001"), limit={"cpu": Decimal("0.3")})
    assert queue.weight == 0.1
    assert queue.exact.weight == Fraction("0.1000000000000000000001")
    assert queue.exact.limit["cpu"] == Fraction(3, 10)
    for number in ("NaN", "sNaN", "Infinity", "-1"):
        with pytest.raises(InvalidInstance, match='queue "lab": its weight must be finite and >= 0'):
            fo.Queue("lab", weight=Decimal(number))


def test_what_is_no_number_is_refused_by_name() -> None:
    """A NaN of Decimal, and a NaN beside a fraction, in instances and in utilities."""
    for number in ("NaN", "sNaN"):
        with pytest.raises(InvalidInstance, match=f"the demands hold {number} in row 1, which is no number"):
            fo.Instance([[1]], [[Decimal(number)]])
    with pytest.raises(InvalidInstance, match='the utility of "user-2" for "server-1" is nan'):
        fo.solve(fo.Instance([[1]], [[1], [1]]), "max-min", utility=[[THIRD], [float("nan")]])


def test_counts_are_whole_in_fractions_too() -> None:
    """What is whole as a float need not be whole."""
    for count in (1 + HAIR, Fraction(2**60 + 1, 2)):
        with pytest.raises(InvalidInstance, match=f'the count of "server-1" is {count}; it must be a whole number >= 0'):
            fo.Instance([[1]], [[1]], counts=[count])


def test_a_fraction_smaller_than_every_float_is_not_zero(tmp_path: Path) -> None:
    """It is out of the range of numbers, in files and in queues."""
    (tmp_path / "cluster.yaml").write_text(
        "resources: [cpu]\n"
        "servers: [{name: A, capacity: {cpu: 1}}]\n"
        f"users: [{{name: a, demand: {{cpu: 1}}, weight: 1/1{400 * '0'}}}, {{name: b, demand: {{cpu: 1}}}}]\n"
    )
    with pytest.raises(InvalidInstance, match=r"weight.* is 4.94066e-324; it must be 0 or between 1e-60 and 1e\+60"):
        fo.load(tmp_path / "cluster.yaml")
    with pytest.raises(InvalidInstance, match=r'queue "lab": its weight is 4\.94066e-324; it must be 0 or between'):
        fo.Queue("lab", weight=Fraction(1, 10**400))
    assert written(Fraction(0)) == 0


def test_a_guarantee_above_the_tasks_by_a_hair_is_refused() -> None:
    """10^-30 of a task more than there are: the floats are equal, the fractions are not."""
    more = Fraction(5) + Fraction(1, 10**30)
    with pytest.raises(InvalidInstance, match=r'user "a" is 5\.000000000000000000000000000001, .* tasks, 5'):
        fo.Instance([[9]], [[1]], tasks=[5], guarantees=[more], users=["a"])
    assert fo.Instance([[9]], [[1]], tasks=[more], guarantees=[more]).exact.guarantees[0] == more
