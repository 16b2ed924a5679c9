"""Options of notions: what is equal, what is printed, what is passed on."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any, ClassVar

import numpy as np
import pytest

import fairopt as fo
from fairopt.models.drfh import DRFH
from fairopt.solving import notion_of

TREE = fo.Instance([[9, 18]], [[1, 4], [3, 1], [1, 1]], queues=[fo.Queue("q", weight=2)], queue_of=["q", "q", None])


@pytest.mark.parametrize("options", [{"tree": "nested"}, {"guarantees": "clamp"}, {"queue_share": "sum"}, {"formulation": "equalize"}])
def test_an_option_makes_another_notion(options: dict[str, Any]) -> None:
    """By name and by class, with another hash and another text, which survive a pickle and a copy."""
    plain, other = notion_of("drfh"), notion_of("drfh", **options)
    assert other == DRFH(**options) == pickle.loads(pickle.dumps(other)) == dataclasses.replace(DRFH(**options))
    assert other != plain
    assert hash(other) != hash(plain)
    assert repr(other) != repr(plain)
    assert plain.changed(**options) == other


def test_equal_options_make_equal_notions() -> None:
    """Arrays by their numbers; other classes are never equal."""
    assert notion_of("max-min", utility=[1, 2]) == notion_of("max-min", utility=np.array([1.0, 2.0]))
    assert notion_of("max-min", utility=[1, 2]) != notion_of("max-min", utility=[1, 3])
    assert notion_of("drf") == notion_of("drf") != notion_of("tsf")
    assert repr(notion_of("tsf", tree="nested")) == "TSF(tree='nested')"
    assert notion_of("proportional", alpha=2).options == {
        "utility": None,
        "alpha": 2.0,
        "guarantees": "surplus",
        "queue_share": None,
        "tree": "filling",
    }


def test_readings_of_a_tree_are_two_rows_of_a_comparison() -> None:
    """Once they were taken for one notion, and solved once."""
    filled, nested = fo.compare(TREE, notions=["drfh", "drfh:tree=nested"])
    assert filled.allocation is not None
    assert nested.allocation is not None
    assert (filled.allocation.tasks_per_user == fo.solve(TREE, "drfh").tasks_per_user).all()
    assert (nested.allocation.tasks_per_user == fo.solve(TREE, DRFH(tree="nested")).tasks_per_user).all()
    assert abs(filled.allocation.tasks_per_user - nested.allocation.tasks_per_user).max() > 0.1


def test_a_class_with_its_own_init() -> None:
    """It need not take the options of trees, and its own data count."""

    class Part(fo.ShareNotion):
        name, title = "part", "part of one resource"

        def __init__(self, resource: int = 0) -> None:
            self.resource = resource

        def share_per_task(self, instance: fo.Instance) -> Any:
            return instance.demands[:, self.resource] / 9

    assert Part(1) == Part(1) != Part(0)
    assert Part(1).changed(tree="nested") != Part(1)
    nested, filled = fo.solve(TREE, Part, tree="nested"), fo.solve(TREE, Part)
    assert nested.question is not None
    assert nested.question.notion.options["tree"] == "nested"
    assert filled.question != nested.question
    with pytest.raises(AttributeError, match='"part" has no attribute "colour"'):
        Part().changed(colour="red")
    assert Part().changed(resource_weights="cpu=4").resource_weights == {"cpu": 4}  # read as an argument of any notion is
    assert Part().changed(only=["cpu", "gpu"]).only == "cpu+gpu"
    with pytest.raises(fo.Unsupported, match="give one of them"):
        Part().changed(only="cpu", resource_weights="cpu=4")


def test_an_option_may_be_stated_by_the_class() -> None:
    """As an attribute, which an argument overrides."""

    class Summed(DRFH):
        name = "summed"
        queue_share = "sum"

    own: Any = Summed()
    assert own.queue_share == "sum"
    other: Any = Summed(queue_share="dominant")
    assert other.queue_share == "dominant"
    assert own != other
    assert DRFH().queue_share is None


def test_an_argument_overrides_what_the_class_states_also_with_the_default() -> None:
    """``tree="filling"`` of a class that states "nested" is the filling, made directly and by `fo.solve`."""

    class Nested(DRFH):
        name = "nested-drfh"
        tree = "nested"

    make: Any = Nested
    assert make().tree == "nested"
    assert make(tree="filling").tree == "filling"
    assert make(tree="filling") != make()
    assert repr(make(tree="filling")) == "Nested(formulation='leximin', tree='filling')"
    assert repr(make()) == "Nested(formulation='leximin')"
    assert fo.solve(TREE, make, tree="filling").tasks_per_user == pytest.approx(fo.solve(TREE, "drfh").tasks_per_user)
    assert fo.solve(TREE, make).tasks_per_user == pytest.approx(fo.solve(TREE, "drfh", tree="nested").tasks_per_user)

    class Summed(DRFH):
        name = "summed"
        queue_share = "sum"

    own: Any = Summed
    assert own(queue_share=None).queue_share is None
    assert DRFH.tree == "filling"


def test_a_notion_need_not_call_the_post_init_of_its_base() -> None:
    """The options of trees are there before its own ``__post_init__`` runs."""

    @dataclasses.dataclass(frozen=True)
    class Doubled(fo.ShareNotion):
        times: float = 2.0
        name: ClassVar[str] = "doubled"
        queue_share = "sum"

        def __post_init__(self) -> None:
            own: Any = self
            assert (own.tree, own.guarantees, own.queue_share) == ("filling", "surplus", "sum")

        def share_per_task(self, instance: fo.Instance) -> Any:
            return self.times * instance.demands[:, 0]

    assert Doubled(3.0).options == {"times": 3.0, "guarantees": "surplus", "queue_share": "sum", "tree": "filling"}
