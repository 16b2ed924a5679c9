"""Parts of GPUs in annotations of KAI and in requests of HAMi, against cards that are filled by hand and by trying."""

from __future__ import annotations

import contextlib
import itertools
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kubernetes.test_importing import imported, node, pod

import fairopt as fo

GPU = "nvidia.com/gpu"


def gpu_node(name: str, cards: int, memory: int | str | None = None, **annotations: str) -> dict[str, Any]:
    """Make a node with GPUs, whose memory is a label."""
    made = node(name, "64", "256Gi", {} if memory is None else {f"{GPU}.memory": str(memory)})
    made["status"]["allocatable"][GPU] = str(cards)
    made["metadata"]["annotations"] = annotations
    return made


def part(name: str, owner: str = "lab", on: str = "", **annotations: str) -> dict[str, Any]:
    """Make a pod with annotations of KAI."""
    made = pod(name, on=on)
    made["metadata"] |= {"namespace": owner, "annotations": {key.replace("_", "-"): text for key, text in annotations.items()}}
    return made


def whole(name: str, owner: str = "whole", number: int = 1, on: str = "") -> dict[str, Any]:
    """Make a pod that asks for whole GPUs."""
    made = pod(name, on=on, containers=[{"resources": {"requests": {"cpu": "1"}, "limits": {GPU: str(number)}}}])
    made["metadata"]["namespace"] = owner
    return made


def tasks(found: fo.Import) -> dict[str, float]:
    """Solve for the largest shares, and return the tasks of each user."""
    answer = fo.solve(found.instance, "drfh", **found.options)
    return dict(zip(found.instance.users, np.round(answer.tasks_per_user, 9).tolist(), strict=True))


def demands(found: fo.Import) -> dict[str, float]:
    """Return the GPUs that one task of each user takes, which do not differ by node."""
    column = found.instance.resources.index(GPU)
    return dict(zip(found.instance.users, found.instance.demands[:, column].tolist(), strict=True))


# KAI -----------------------------------------------------------------------------------------------------------------------------


def test_a_fraction_takes_what_it_leaves_unused_on_its_card() -> None:
    """Of 0.4 two fit on a card, of 0.6 one: two cards hold 4 of the first, or 2 of the second."""
    nodes = [gpu_node("g", 2)]
    four = imported(nodes, [part(f"p{n}", gpu_fraction="0.4") for n in range(9)])
    assert demands(four) == {"lab": 0.5}
    assert tasks(four) == {"lab": 4}
    assert (
        "a part of a GPU lies on one card: 0.4 takes an effective 1/2, as 2 fit on a card (9 pods); shares and quotas count what it takes"
        in four.notes
    )
    assert tasks(imported(nodes, [part(f"p{n}", gpu_fraction="0.6") for n in range(9)])) == {"lab": 2}
    exact = imported(nodes, [part(f"p{n}", gpu_fraction="0.25") for n in range(9)])
    assert tasks(exact) == {"lab": 8}
    assert not any("card" in note for note in exact.notes)


def test_memory_is_a_part_of_the_cards_of_the_node() -> None:
    """20 GiB are a half of a card of 40 GiB, a quarter of one of 80 GiB; 48 GiB fit on the second only."""
    nodes = [gpu_node("small", 1, 40960), gpu_node("large", 1, 81920)]
    found = imported(nodes, [part(f"p{n}", gpu_memory="20480") for n in range(9)])
    column = found.instance.resources.index(GPU)
    amounts = dict(zip(found.instance.servers, found.instance.demands_by_row(0)[:, column].tolist(), strict=True))
    assert amounts == {"small": 0.5, "large": 0.25}
    assert tasks(found) == {"lab": 6}
    big = imported(nodes, [part(f"p{n}", gpu_memory="49152") for n in range(9)])
    assert np.array(big.instance.servers)[big.instance.eligibility[0]].tolist() == ["large"]
    assert tasks(big) == {"lab": 1}


def test_what_runs_is_where_it_runs_with_what_it_takes_there() -> None:
    """A half of the small card, a quarter of the large one, and one that waits, which counts with the least."""
    nodes = [gpu_node("small", 1, 40960), gpu_node("large", 1, 81920)]
    pods = [part("a", on="small", gpu_memory="20480"), part("b", on="large", gpu_memory="20480")]
    found = imported(nodes, [*pods, part("c", gpu_memory="20480")])
    assert found.current is not None
    used = dict(zip(found.instance.servers, found.current.usage[:, found.instance.resources.index(GPU)].tolist(), strict=True))
    assert used == {"small": 0.5, "large": 0.25}
    owner = found.to_frame().loc["lab"]
    assert owner["holds"] == pytest.approx(0.75 / 2)
    assert owner["asks"] == pytest.approx(0.75 / 2)
    assert found.to_dict()["resources"][GPU]["held"] == 0.75


def test_nodes_of_one_kind_stay_one_row() -> None:
    """Where all cards are alike, demands do not differ by node, and nodes are merged."""
    found = imported([gpu_node("a", 2, 40960), gpu_node("b", 2, 40960)], [part("p", gpu_memory="4096")])
    assert found.instance.servers == ("a +1",)
    assert demands(found) == {"lab": 0.1}


def test_memory_of_cards_that_nothing_states_is_named() -> None:
    """A whole card is taken there; a label in bytes is one, too."""
    found = imported([gpu_node("a", 2), gpu_node("b", 2)], [part("p", gpu_memory="4096")])
    assert demands(found) == {"lab": 1}
    assert any(note.startswith("2 nodes with GPUs, such as a, without a label nvidia.com/gpu.memory") for note in found.notes)
    assert demands(imported([gpu_node("a", 2, 40960 << 20)], [part("p", gpu_memory="4096")])) == {"lab": 0.1}


def test_parts_of_several_cards_need_so_many_cards_on_a_node() -> None:
    """Half of each of 4 cards are 2 cards in all, and no node with 2 cards has 4 of them side by side."""
    nodes = [gpu_node("two", 2), gpu_node("four", 4)]
    found = imported(nodes, [part(f"p{n}", gpu_fraction="0.5", gpu_fraction_num_devices="4") for n in range(5)])
    assert demands(found) == {"lab": 2}
    assert tasks(found) == {"lab": 2}
    assert np.array(found.instance.servers)[found.instance.eligibility[0]].tolist() == ["four"]


def test_pods_that_hold_a_shared_card_are_nobodys() -> None:
    """Their GPU counts with the parts; their CPU is taken off the node; one that waits holds nothing."""
    pods = [part("p", gpu_fraction="0.5", on="g"), whole("gpu-reservation-g-1", "kai-resource-reservation", on="g")]
    pods += [whole("gpu-reservation-2", "runai-reservation", on="g"), whole("scaling-pod", "kai-scale-adjust")]
    elsewhere = whole("gpu-reservation-3", "own-space", on="g")
    elsewhere["metadata"]["labels"] = {"app": "kai-resource-reservation"}
    found = imported([gpu_node("g", 4)], [*pods, elsewhere], daemonsets="tasks")
    assert found.owners == ("lab",)
    total = dict(zip(found.instance.resources, found.instance.total_capacity.tolist(), strict=True))
    assert total == {"cpu": 61, "memory": 256, "pods": 107, GPU: 4}
    assert sum(each.number for each in found.left_out if "KAI's own" in each.why) == 4


def test_whole_gpus_and_a_part_of_one_pod() -> None:
    """The whole ones count, as the annotation says nothing to the scheduler of whole GPUs; a note names it."""
    odd = whole("w", number=2)
    odd["metadata"]["annotations"] = {"gpu-fraction": "0.5"}
    found = imported([gpu_node("g", 4)], [odd])
    assert demands(found) == {"whole": 2}
    assert "1 pod asks for whole GPUs and for a part in an annotation: the whole ones count" in found.notes


def test_parts_on_a_node_that_lists_no_gpu_now_stay() -> None:
    """The device plugin failed: what runs holds what the node lists."""
    found = imported([gpu_node("g", 0), gpu_node("h", 1)], [part("p", gpu_fraction="0.5", on="g")])
    assert found.held.tolist() == [1]
    assert any("with less nvidia.com/gpu than requested" in note for note in found.notes)


def test_gpus_of_another_maker() -> None:
    """Where all GPUs are AMD's, a part is one of theirs."""
    made = node("a", labels={"amd.com/gpu.memory": "65536"})
    made["status"]["allocatable"]["amd.com/gpu"] = "2"
    found = imported([made], [part("p", gpu_memory="16384")])
    assert found.instance.demands[0, found.instance.resources.index("amd.com/gpu")] == 0.25


@pytest.mark.parametrize(
    ("annotations", "wrong"),
    [
        ({"gpu_fraction": "half"}, 'expected a decimal number such as 0.5, found "half"'),
        ({"gpu_fraction": "1.5"}, "expected a part of one GPU, above 0 and at most 1"),
        ({"gpu_fraction": "0"}, "expected a part of one GPU, above 0 and at most 1"),
        ({"gpu_fraction": "1e999999999"}, "expected a decimal number such as 0.5"),
        ({"gpu_memory": "2.5"}, "expected MiB of a card, such as 4096"),
        ({"gpu_fraction": "0.5", "gpu_fraction_num_devices": "0"}, "expected a number of cards such as 2"),
        ({"gpu_fraction": "0.5", "gpu_fraction_num_devices": "two"}, "expected a decimal number"),
    ],
)
def test_bad_annotations_are_refused_with_their_place(annotations: dict[str, str], wrong: str) -> None:
    """Or left out."""
    pods = [part("p", **annotations), whole("w")]
    with pytest.raises(fo.InvalidInstance, match=r"items\[0\].metadata.annotations.*: " + wrong):
        imported([gpu_node("g", 2)], pods)
    assert imported([gpu_node("g", 2)], pods, lenient=True).owners == ("whole",)


# HAMi ----------------------------------------------------------------------------------------------------------------------------

REGISTER = "hami.io/node-nvidia-register"


def cards(*memory: int, count: int = 10, **more: Any) -> str:
    """Write the cards of a node as HAMi does."""
    return json.dumps(
        [
            {
                "id": f"GPU-{n}",
                "count": count,
                "devmem": each,
                "devcore": 100,
                "type": "NVIDIA-T4",
                "mode": "hami-core",
                "health": True,
                **more,
            }
            for n, each in enumerate(memory)
        ]
    )


def shared(name: str, limits: dict[str, str], more: int = 1) -> dict[str, Any]:
    """Make a pod of ``more`` containers with limits of HAMi."""
    container = {"resources": {"limits": {f"nvidia.com/{key.replace('_', '-')}": text for key, text in limits.items()}}}
    made = pod(name, containers=[container] * more)
    made["metadata"]["namespace"] = "lab"
    return made


def test_hami_lists_cards_and_its_allocatable_counts_sharers() -> None:
    """Two cards of 16,384 MiB, listed as 20: 5,000 MiB take an effective third, so 6 pods run."""
    nodes = [gpu_node("g", 20, **{REGISTER: cards(16384, 16384)})]
    found = imported(nodes, [shared(f"p{n}", {"gpu": "1", "gpumem": "5000"}) for n in range(20)])
    assert found.instance.total_capacity[found.instance.resources.index(GPU)] == 2
    assert "nvidia.com/gpumem" not in found.instance.resources
    assert tasks(found) == {"lab": 6}
    old = "GPU-0,10,16384,100,NVIDIA-Tesla V100-PCIE-32GB,0,true:GPU-1,10,16384,100,NVIDIA-Tesla V100-PCIE-32GB,0,true:"
    assert tasks(imported([gpu_node("g", 20, **{REGISTER: old})], [shared(f"p{n}", {"gpumem": "5000"}) for n in range(20)])) == {"lab": 6}


@pytest.mark.parametrize(
    ("limits", "taken"),
    [
        ({"gpu": "1"}, 1),  # no memory: the whole card's
        ({"gpu": "1", "gpucores": "30"}, 1),
        ({"gpu": "1", "gpumem": "1000", "gpucores": "30"}, Fraction(1, 3)),  # the larger part
        ({"gpu": "2", "gpumem_percentage": "50"}, 1),  # a half of each of two
        ({"gpu": "1", "gpumem_percentage": "40"}, Fraction(1, 2)),
        ({"gpumem": "16"}, Fraction(1, 10)),  # at most 10 pods share a card
        ({"gpumem": "8192", "gpumem_percentage": "10"}, Fraction(1, 2)),  # memory says more than a percentage
    ],
)
def test_what_a_container_of_hami_takes(limits: dict[str, str], taken: Fraction) -> None:
    """In parts of cards of 16,384 MiB; two containers take twice as much."""
    nodes = [gpu_node("g", 40, **{REGISTER: cards(*[16384] * 4)})]
    assert demands(imported(nodes, [shared("p", limits)])) == {"lab": float(taken)}
    assert demands(imported(nodes, [shared("p", limits, 2)])) == {"lab": float(2 * taken)}


def test_a_pod_that_asks_hami_and_kai() -> None:
    """Its requests count, as two schedulers would read it differently; a note says so."""
    made = shared("p", {"gpu": "1", "gpumem": "8192"})
    made["metadata"]["annotations"] = {"gpu-fraction": "0.25"}
    found = imported([gpu_node("g", 10, **{REGISTER: cards(16384)})], [made])
    assert demands(found) == {"lab": 0.5}
    assert sum(note.startswith("1 pod asks for parts of GPUs by requests, which HAMi") for note in found.notes) == 1


def test_cards_that_are_not_healthy_count_for_nothing() -> None:
    """Three are listed, one is broken; where all are, the node offers no GPU."""
    listed = json.loads(cards(16384, 16384, 16384))
    listed[1]["health"] = False
    nodes = [gpu_node("g", 30, **{REGISTER: json.dumps(listed)}), gpu_node("h", 10, **{REGISTER: cards(16384, health=False)})]
    found = imported(nodes, [shared("p", {"gpumem": "8192"})])
    assert found.instance.total_capacity[found.instance.resources.index(GPU)] == 2
    assert "2 GPUs are not healthy by HAMi's list, such as of g: they do not count" in found.notes


def test_cards_of_one_node_that_are_unlike_count_as_the_smallest() -> None:
    """Cards of 40,960 and 81,920 MiB: 20,480 MiB are a half of either; 60,000 MiB fit nowhere, and a note says why."""
    nodes = [gpu_node("g", 20, **{REGISTER: cards(40960, 81920)})]
    found = imported(nodes, [shared(f"p{n}", {"gpumem": "20480"}) for n in range(9)])
    assert tasks(found) == {"lab": 4}
    assert sum(note.startswith("1 node, such as g, with GPUs of unlike memory") for note in found.notes) == 1
    assert not any("unlike" in note for note in imported(nodes, [shared("p", {"gpumem_percentage": "50"})]).notes)


def test_an_init_container_counts_where_no_other_asks_for_a_part() -> None:
    """Then the largest."""
    made = shared("p", {"gpumem": "8192"})
    made["spec"] |= {"initContainers": made["spec"]["containers"], "containers": [{"resources": {"requests": {"cpu": "1"}}}]}
    nodes = [gpu_node("g", 10, **{REGISTER: cards(16384)})]
    assert demands(imported(nodes, [made])) == {"lab": 0.5}


@pytest.mark.parametrize(
    ("resource", "queue", "said"),
    [
        ("nvidia.com/mig-2g.10gb", "scheduling.run.ai/v2", "1 pod asks for MIG devices: KAI counts those in quotas"),
        ("nvidia.com/mig-2g.10gb", "scheduling.volcano.sh/v1beta1", ""),
        ("volcano.sh/vgpu-memory", "scheduling.volcano.sh/v1beta1", "1 pod asks for Volcano's vGPUs"),
    ],
)
def test_slices_that_are_resources_of_their_own_are_said(tmp_path: Path, resource: str, queue: str, said: str) -> None:
    """KAI counts slices of MIG in its quotas of GPUs, and a vGPU of Volcano lies on one GPU."""
    node = gpu_node("g", 1)
    node["status"]["allocatable"][resource] = "4"
    asks = pod("p", containers=[{"resources": {"limits": {resource: "1"}}}])
    listed = {"apiVersion": queue, "kind": "Queue", "metadata": {"name": "q"}, "spec": {}}
    (tmp_path / "queues.json").write_text(json.dumps(listed))
    found = imported([node], [asks], queues=tmp_path / "queues.json")
    assert any(note.startswith(said) for note in found.notes if "MIG" in note or "vGPU" in note) == bool(said)
    assert resource in found.instance.resources


# Anything ------------------------------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from([Fraction(n, 100) for n in (20, 25, 30, 34, 40, 45, 50, 60, 75)]), min_size=1, max_size=2, unique=True),
    st.lists(st.integers(1, 2), min_size=1, max_size=2),
)
def test_whatever_is_solved_fits_on_the_cards(parts: list[Fraction], counts: list[int]) -> None:
    """Whole tasks of a solution are packed on real cards by trying all ways; of one part nothing more would fit."""
    pods = [part(f"p{n}-{j}", f"o{j}", gpu_fraction=str(float(each))) for j, each in enumerate(parts) for n in range(9)]
    found = imported([gpu_node(f"g{j}", each) for j, each in enumerate(counts)], pods)
    answer = fo.solve(found.instance, "drfh", integral=True)
    number = {user: round(value) for user, value in zip(found.instance.users, answer.tasks_per_user.tolist(), strict=True)}
    wanted = [each for j, each in enumerate(parts) for _ in range(number[f"o{j}"])]
    assert packed(wanted, sum(counts))
    if len(parts) == 1:
        assert not packed([*wanted, parts[0]], sum(counts)) or number["o0"] == 9


def packed(parts: list[Fraction], cards: int) -> bool:
    """Return whether parts fit on so many cards."""
    states = {(Fraction(1),) * cards}
    for each in parts:
        states = {
            tuple(sorted([*(room for k, room in enumerate(state) if k != j), state[j] - each]))
            for state, j in itertools.product(states, range(cards))
            if state[j] >= each
        }
    return bool(states)


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"]),
        st.one_of(st.text(max_size=8), st.integers(), st.none(), st.booleans(), st.lists(st.text(), max_size=1)),
    ),
    st.one_of(
        st.text(max_size=20), st.just("[{}]"), st.just("[1]"), st.just("[" * 9), st.just('[{"devmem": -1}]'), st.integers(), st.none()
    ),
    st.one_of(st.text(max_size=8), st.integers(), st.none()),
)
def test_damaged_annotations_are_refused_in_words(annotations: dict[str, Any], register: Any, label: Any) -> None:
    """Whatever stands there: an instance, or a message with a place."""
    made, broken = part("p"), gpu_node("g", 2)
    made["metadata"]["annotations"] = annotations
    broken["metadata"] |= {"annotations": {REGISTER: register}, "labels": {f"{GPU}.memory": label}}
    with contextlib.suppress(fo.InvalidInstance):
        imported([broken], [made, whole("w")])
    assert imported([broken, gpu_node("h", 1)], [made, whole("w")], lenient=True).held.sum() == 0
