"""Names that a grammar allows, and amounts in whole units."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairopt as fo
from fairopt.clusters.amounts import kind_of, measures, whole_units
from fairopt.clusters.names import DNS_LABEL, DNS_SUBDOMAIN, SLURM, YARN, YUNIKORN, Grammar, Names, changed
from fairopt.wording import printable


@given(st.lists(st.text(max_size=80), unique=True, max_size=8), st.sampled_from([DNS_LABEL, DNS_SUBDOMAIN, SLURM, YARN, YUNIKORN]))
def test_names_are_one_to_one_and_follow_the_grammar(labels: list[str], grammar: Grammar) -> None:
    """Whatever the labels: spaces, slashes, quotes, line ends, 80 characters, letters of any script."""
    names = Names(grammar, "queue").of(labels)
    assert list(names) == labels
    assert len(set(names.values())) == len(labels)
    for label, name in names.items():
        assert grammar.pattern.fullmatch(name)
        assert len(name) <= grammar.longest
        assert Names(grammar, "queue").of([name]) == {name: name}
        if grammar.lower:
            assert len({name.lower() for name in names.values()}) == len(labels), label


def test_what_is_allowed_keeps_its_name() -> None:
    """Also where another label would come to it first; what changed is said."""
    names = Names(DNS_LABEL, "namespace").of(["Team A", "team-a", "x" * 70, "x" * 71, "é", "..."])
    assert names["team-a"] == "team-a"
    assert names["Team A"] == "team-a-2"
    assert (names["x" * 70], names["x" * 71]) == ("x" * 63, "x" * 61 + "-2")
    assert (names["é"], names["..."]) == ("e", "namespace")
    (note,) = changed(names, "names of namespaces")
    assert '"Team A" is team-a-2' in note


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=6), st.floats(0, 1))
def test_whole_units_fit(amounts: list[float], part: float) -> None:
    """Never more than there is, never less than the whole part, and up where everything fits."""
    most = sum(amounts) * (1 + part)
    rounded = whole_units(amounts, most)
    assert sum(rounded) <= most * (1 + 1e-8) + 1e-8
    assert all(value >= int(amount * (1 - 1e-8)) for value, amount in zip(rounded, amounts, strict=True))
    if sum(amounts) + len(amounts) <= most:
        assert all(value >= amount - 1e-8 * max(amount, 1) for value, amount in zip(rounded, amounts, strict=True))


def of(*resources: str, **units: str) -> fo.Instance:
    """An instance with these resources, and units of some."""
    ones = [[1.0] * len(resources)]
    return fo.Instance(ones, ones, resources=resources, units=units)


def test_units_are_those_of_the_caller() -> None:
    """GiB and cores unless it says otherwise; other resources have none."""
    resources = of("cpu", "memory", "gpu")
    smallest = {"cpu": 1, "memory": 2**20}
    found = measures(resources, lambda resource: resource, smallest)
    assert [measure.steps for measure in found.values()] == [1, 1024, 1]
    found = measures(resources, lambda resource: resource, smallest, units={"memory": "MB", "cpu": "millicores"})
    assert [measure.steps for measure in found.values()] == [0.001, 1e6 / 2**20, 1]
    assert [kind_of(name) for name in ("vcores", "hugepages-1Gi", "amd.com/gpu", "license")] == ["cpu", "memory", "gpu", ""]


@pytest.mark.parametrize(
    ("keys", "units", "message"),
    [
        ({"gpus": "x"}, {}, r'no resource "gpus" \(did you mean "gpu"\?\)'),
        ({}, {"memory": "Gib"}, r'memory has no unit "Gib" \(did you mean "GiB"\?\)'),
        ({}, {"gpu": "GiB"}, r'"gpu" is counted and has no unit'),
        ({"gpu": "cpu"}, {}, r'"cpu" and "gpu" would both be "cpu"'),
    ],
)
def test_bad_units_and_names_are_refused(keys: dict[str, str], units: dict[str, str], message: str) -> None:
    """Each with what to do."""
    with pytest.raises(fo.InvalidInstance, match=message):
        measures(of("cpu", "memory", "gpu"), lambda resource: resource, {}, keys=keys, units=units, system="Slurm")


def test_units_of_the_instance_come_before_the_default_and_after_the_caller() -> None:
    """MiB of the instance, GB of the caller, which is 10^9 bytes; in steps of MiB."""
    smallest = {"memory": 2**20}
    assert measures(of("memory", memory="MiB"), str, smallest)["memory"].steps == 1
    assert measures(of("memory", memory="B"), str, smallest)["memory"].steps == 2**-20
    assert measures(of("memory", memory="MiB"), str, smallest, units={"memory": "GB"})["memory"].steps == 1e9 / 2**20
    with pytest.raises(fo.InvalidInstance, match='memory has no unit "pages"'):
        measures(of("memory", memory="pages"), str, smallest)


# 3 nodes of 8 GPUs, 128 cores and 1024 GB; tasks of 2, 16, 64 and of 1, 8, 32: half of the GPUs each, and so 384 GB each.
MEMORY = {
    "slurm": ("mem", "GrpTRES=cpu=96,gres/gpu=12,mem=384G\n", "mem=366211M"),
    "kueue": ("memory", "name: memory\n        nominalQuota: 384Gi", "nominalQuota: 375000000Ki"),
    "volcano": ("memory", "memory: 384Gi", "memory: 375000000Ki"),
    "kai": ("memory", "quota: 412316.860416", "quota: 384000"),
    "yunikorn": ("memory", "memory: 384Gi", "memory: 375000000Ki"),
    "yarn": ("memory", "memory=393216,", "memory=366211,"),
    "resourcequota": ("memory", "requests.memory: 384Gi", "requests.memory: 375000000Ki"),
}


@pytest.mark.parametrize("system", list(MEMORY))
def test_memory_of_any_name_has_a_unit(system: str) -> None:
    """In its name, or given, or else refused: 384 GB never become 384 bytes. A GB in a name is a GiB, which a note says."""
    key, binary, decimal = MEMORY[system]
    export = getattr(fo, f"export_{system}")

    def allocation(name: str) -> fo.Allocation:
        lab = fo.Instance(
            [[8, 128, 1024]], [[2, 16, 64], [1, 8, 32]], counts=[3], users=["a", "b"], resources=["gpu", "cpu", name], servers=["node"]
        )
        return fo.solve(lab, "drfh")

    noted = export(allocation("RAM (GB)"), resources={"RAM (GB)": key})
    assert binary in noted.text
    assert any(note.startswith('the GB in the name of "RAM (GB)" is taken as GiB, a power of 1024') for note in noted.notes)
    assert binary in export(allocation("RAM (GB)")).text
    plain = export(allocation("Speicher"), resources={"Speicher": key}, units={"Speicher": "GiB"})
    assert binary in plain.text
    assert "taken as" not in str(plain.notes)
    assert decimal in export(allocation("RAM (GB)"), resources={"RAM (GB)": key}, units={"RAM (GB)": "GB"}).text
    assert decimal in export(allocation("Speicher"), resources={"Speicher": key}, units={"Speicher": "GB"}).text
    with pytest.raises(fo.InvalidInstance, match=r"nothing says in which unit Speicher is, which is mem.*--unit Speicher=GiB"):
        export(allocation("Speicher"), resources={"Speicher": key})
    assert binary in export(allocation("memory")).text


def test_storage_of_kubernetes_is_in_bytes() -> None:
    """8 GiB are not 8 bytes."""
    allocation = fo.solve(fo.Instance([[8, 8]], [[1, 1]], resources=["cpu", "storage"]), "drfh")
    with pytest.raises(fo.InvalidInstance, match="nothing says in which unit storage is"):
        fo.export_resourcequota(allocation)
    assert "requests.storage: 8Gi" in fo.export_resourcequota(allocation, units={"storage": "GiB"}).text


@pytest.mark.parametrize(
    ("export", "name"),
    [
        (fo.export_slurm, "gres/x,cpu=99"),
        (fo.export_slurm, "gres/x\ntouch y"),
        (fo.export_kueue, "a b/c"),
        (fo.export_yarn, "x]y"),
        (fo.export_kai, ""),
    ],
)
def test_a_name_of_a_resource_that_would_end_an_amount_is_refused(export: Callable[..., fo.Export], name: str) -> None:
    """Of the caller, and of the instance."""
    instance = fo.Instance([[4, 4]], [[1, 1]], resources=["cpu", "gpu"])
    allocation = fo.solve(instance, "drfh")
    if name:
        with pytest.raises(fo.InvalidInstance, match=r"cannot be the name of a resource in .*; give another: --resource-name gpu=NAME"):
            export(allocation, resources={"gpu": name})
    with pytest.raises(fo.InvalidInstance, match=r"at most 1000"):
        export(allocation, headroom=1e308)


def test_labels_of_flavors_are_labels() -> None:
    """Keys and values."""
    allocation = fo.solve(fo.Instance([[4]], [[1]], resources=["cpu"], servers=["s"]), "drfh")
    for labels in ({"model": "A 100"}, {"bad key": "x"}, {"model": "x" * 64}):
        with pytest.raises(fo.InvalidInstance, match=r'the flavor of s: ".*" is no label of a node|the flavor of s: .*x is no label'):
            fo.export_kueue(allocation, flavors={"s": labels})
    assert "model: ''" in fo.export_kueue(allocation, flavors={"s": {"model": ""}}).text


@pytest.mark.parametrize("write", [fo.export_kueue, fo.export_volcano, fo.export_yarn, fo.export_slurm])
def test_memory_in_bytes_is_not_taken_for_gib(write: Callable[..., fo.Export]) -> None:
    """A file that says 256GiB means bytes, and an export takes memory without a unit for GiB: it asks, and the answer is the same."""
    gib = fo.Instance([[64, 256]], [[1, 4]], servers=["A"], users=["a"], resources=["cpu", "memory"])
    in_bytes = gib.replace(capacities=[[64, 256 * 2**30]], demands=[[1, 4 * 2**30]])
    with pytest.raises(
        fo.InvalidInstance, match=r"^server A has 2.74878e\+11 of memory, which cannot be GiB; .* --unit memory=B for bytes$"
    ):
        write(fo.solve(in_bytes, "drfh"))
    told = write(fo.solve(in_bytes, "drfh"), units={"memory": "B"})
    assert told.files == write(fo.solve(gib, "drfh")).files


@pytest.mark.parametrize(
    ("amounts", "most", "expected"),
    [
        ([1.2, 1.7, 1.5], 6, [2, 2, 2]),  # all rounded up fit
        ([1.2, 1.7, 1.5], 5, [1, 2, 2]),  # one may not: the one with the least remainder
        ([1.2, 1.7, 1.5], 4, [1, 2, 1]),  # one may be rounded up: the one with the largest remainder
        ([1.2, 1.7, 1.5], 4.9, [1, 2, 1]),  # what is beyond 4 holds no unit
        ([1.2, 1.7, 1.5], 3, [1, 1, 1]),
        ([0.5, 0.5, 0.5], 2, [1, 1, 0]),  # equal remainders: the first ones
        ([2.0, 0.1, 0.9], 3, [2, 0, 1]),  # a whole amount stays
        ([2.0000000001, 1.5], 9, [2, 2]),  # rounding is no remainder
        ([3.0, 3.0], 4, [3, 3]),  # never less than the whole part
    ],
)
def test_the_largest_remainder(amounts: list[float], most: float, expected: list[int]) -> None:
    """Worked out by hand (Hamilton's method)."""
    assert whole_units(amounts, most) == expected


HOSTILE = [
    "; touch ran",
    "$(touch ran)",
    "`touch ran`",
    "'; touch ran; '",
    '"; touch ran; "',
    "a b",
    "\x1b[2J\n; touch ran",
    "x" * 20_000 + "'",
]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("export", [fo.export_kueue, fo.export_resourcequota, fo.export_slurm, fo.export_yarn, fo.export_yunikorn])
def test_what_is_to_be_pasted_is_one_word(name: str, export: Callable[..., fo.Export]) -> None:
    """A hint with the name of a resource: the shell takes it as one word after the option, in which nothing runs."""
    instance = fo.Instance([[4.0, 4.0]], [[1.0, 1.0]], users=["u"], resources=["cpu", name])
    allocation = fo.solve(instance, "drf", integral=True)
    try:
        export(allocation)
    except fo.InvalidInstance as error:
        words = shlex.split(str(error).partition("--resource-name ")[2])
        assert words[0].endswith(("=NAME", "...", "=example.com/NAME"))
        assert words[0].startswith(printable(name)[:100])
        assert len(words) == 1
    else:
        assert export in (fo.export_slurm, fo.export_yarn)  # which take some of these names, or leave the resource out


def test_a_gb_behind_a_number_is_said_in_gib(tmp_path: Path) -> None:
    """Whole tasks of 64 GB are fewer jobs of 64G: a note says so, unless the file says GiB, or the name of the column says GB."""
    told = {}
    for unit, column in (("GB", "memory"), ("GiB", "memory"), ("GB", "RAM (GB)")):
        (tmp_path / "servers.csv").write_text(f"name,{column}\ns,512 {unit}\n")
        (tmp_path / "users.csv").write_text(f"name,{column}\na,64 {unit}\n")
        exported = fo.export_slurm(fo.solve(fo.load(tmp_path), "drfh"))
        told[unit, column] = [note for note in exported.notes if "power of 1000: write GiB" in note], exported.text
    (note,), text = told["GB", "memory"]
    assert note == (
        "64 GB of memory is 59.6 GiB, as a GB behind a number is a power of 1000: write GiB where jobs ask Slurm for 64 GiB, or fewer of "
        "them fit"
    )
    assert "mem=488281M" in text
    for key in (("GiB", "memory"), ("GB", "RAM (GB)")):
        assert told[key][0] == []
        assert "mem=512G" in told[key][1]
