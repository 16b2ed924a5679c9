"""Random instances: everybody can be served, a seed says all, and the numbers have the distributions that are promised."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest, spearmanr
from typer.testing import CliRunner

import fairopt as fo
from fairopt.cli import app
from fairopt.generators import generator
from fairopt.papers import read
from fairopt.specs import read_generator

GOOGLE = fo.load(Path(__file__).parents[2] / "examples" / "google-cluster.yaml")


@st.composite
def options(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A generator and parameters that it takes."""
    kind = draw(st.sampled_from(sorted(fo.GENERATORS)))
    base = draw(st.sampled_from(sorted(set(fo.GENERATORS) - {"constrained"}))) if kind == "constrained" else kind
    pairs = 2 if base == "kesidis" else 1
    chosen: dict[str, Any] = {"users": pairs * draw(st.integers(1, 6)), "servers": pairs * draw(st.integers(1, 5))}
    chosen["weights"] = draw(st.sampled_from([1.0, 4.0]))
    if base == "correlated":
        chosen |= {"resources": draw(st.integers(2, 4)), "rho": draw(st.floats(-0.25, 1.0))}
    if base == "gpus":
        chosen |= {"load": draw(st.floats(0.1, 3.0)), "kinds": draw(st.sampled_from([None, 1, 2, 5]))}
    if kind == "constrained":
        chosen |= {"of": base, "rate": draw(st.floats(0, 1))}
    return kind, chosen


# What holds of all of them -------------------------------------------------------------------------------------------------------


@given(options(), st.integers(0, 2**40))
@settings(max_examples=60)
def test_every_draw_is_sound_and_repeatable(what: tuple[str, dict[str, Any]], seed: int) -> None:
    """The sizes asked for, a server for everybody, weights within bounds, the same from the same seed."""
    kind, chosen = what
    instance = fo.generate(kind, seed=seed, **chosen)
    assert (instance.n_users, instance.n_servers) == (chosen["users"], chosen["servers"])
    assert instance.servable.all()
    assert (instance.demands > 0).all()
    assert (instance.rates[instance.eligibility] > 0).all()
    assert instance.weights.min() >= 1
    assert instance.weights.max() <= chosen["weights"]
    assert instance == generator(kind, **chosen)(seed) == fo.generate(kind, seed=np.random.default_rng(seed), **chosen)
    assert instance != fo.generate(kind, seed=seed + 1, **chosen) or chosen.get("of", kind) == "kesidis"


@pytest.mark.parametrize("kind", fo.GENERATORS)
def test_defaults_are_solved(kind: str) -> None:
    """Each has an exact allocation in which nobody is left out."""
    assert fo.solve(fo.generate(kind, seed=5), "drfh").tasks_per_user.min() > 0


# Distributions -------------------------------------------------------------------------------------------------------------------


def test_uniform_numbers_are_uniform() -> None:
    """c ~ U[1, 10], d ~ 3 U[0.01, 0.1], phi ~ U[1, 5], by Kolmogorov and Smirnov."""
    instance = fo.generate("uniform", users=4000, servers=2000, size=3, weights=5, seed=1)
    for values, low, high in ((instance.capacities, 1, 10), (instance.demands, 0.03, 0.3), (instance.weights, 1, 5)):
        assert kstest(values.ravel(), "uniform", (low, high - low)).pvalue > 1e-3


@pytest.mark.parametrize(("resources", "rho"), [(2, -1), (2, -0.6), (2, 0), (2, 0.8), (2, 1), (3, -0.48), (4, 0.5)])
def test_demands_have_the_rank_correlation(resources: int, rho: float) -> None:
    """Spearman's rho of 20,000 users is within 0.03 (four standard errors of at most 1 / sqrt(n - 1)); each demand is U[0.01, 0.1]."""
    demands = fo.generate("correlated", users=20_000, servers=1, resources=resources, rho=rho, seed=2).demands
    found = np.atleast_2d(spearmanr(demands).statistic)
    between = found[np.triu_indices(len(found), 1)] if len(found) > 1 else found.ravel()
    np.testing.assert_allclose(between, rho, atol=0.03)
    assert kstest(demands[:, -1], "uniform", (0.01, 0.09)).pvalue > 1e-3


def test_google_servers_are_those_of_the_table() -> None:
    """All of them are the example's; 40,000 drawn ones have its proportions (chi-square)."""
    whole = fo.generate("google", users=2)
    np.testing.assert_array_equal(whole.capacities, GOOGLE.capacities)
    np.testing.assert_array_equal(whole.counts, GOOGLE.counts)
    drawn = fo.generate("google", users=2, servers=40_000, seed=3).capacities
    kinds = np.array([(drawn == row).all(axis=1).sum() for row in GOOGLE.capacities])
    assert kinds.sum() == 40_000
    often = GOOGLE.counts > 100
    parts = GOOGLE.counts / GOOGLE.counts.sum() * 40_000
    seen, expected = np.append(kinds[often], kinds[~often].sum()), np.append(parts[often], parts[~often].sum())
    assert chisquare(seen, expected).pvalue > 1e-3


def test_google_users_are_as_described() -> None:
    """The larger demand is U[0.02, 0.2], of either resource; the ratio U[0.8, 1] of a third, else U[0.1, 0.5]."""
    demands = fo.generate("google", users=20_000, seed=4).demands
    ratio = demands.min(axis=1) / demands.max(axis=1)
    assert kstest(demands.max(axis=1), "uniform", (0.02, 0.18)).pvalue > 1e-3
    assert (demands[:, 0] > demands[:, 1]).mean() == pytest.approx(0.5, abs=0.015)
    assert (ratio >= 0.8).mean() == pytest.approx(1 / 3, abs=0.015)
    assert kstest(ratio[ratio < 0.8], "uniform", (0.1, 0.4)).pvalue > 1e-3
    assert kstest(ratio[ratio >= 0.8], "uniform", (0.8, 0.2)).pvalue > 1e-3


def test_gpus_are_as_described() -> None:
    """How often there are so many GPUs, on a server and in a task (chi-square); parts, cores and memory; demand as loaded."""
    instance = fo.generate("gpus", users=20_000, servers=4_000, load=40, seed=9)
    of_server, of_task = instance.capacities[:, 0], instance.demands[:, 0]
    np.testing.assert_array_equal(instance.capacities, np.outer(of_server, [1, 12, 96]))
    assert chisquare([(of_server == g).sum() for g in (2, 4, 8)], [1_200, 1_200, 1_600]).pvalue > 1e-3
    seen = [(of_task < 1).sum(), *((of_task == g).sum() for g in (1, 2, 4, 8))]
    assert chisquare(seen, [10_000, 6_000, 2_000, 1_200, 800]).pvalue > 1e-3
    parts, often = np.unique(of_task[of_task < 1].round(12), return_counts=True)
    np.testing.assert_allclose(parts, np.arange(5, 20) / 20)
    assert chisquare(often).pvalue > 1e-3
    cores, gibibytes = instance.demands[:, 1] / of_task, instance.demands[:, 2] / of_task
    for values, low, high, there in ((cores, 4, 16, 12), (gibibytes, 16, 128, 96)):
        assert values.max() == pytest.approx(there)
        below = values[values < there * (1 - 1e-9)]
        assert below.size / values.size == pytest.approx((there - low) / (high - low), abs=0.015)
        assert kstest(below, "uniform", (low, there - low)).pvalue > 1e-3
    assert instance.tasks @ of_task == pytest.approx(40 * of_server.sum(), rel=0.01)


def test_kinds_of_gpus_are_as_described() -> None:
    """Kinds are equally likely, each is there, and a user is f times as fast on the next kind, ln f ~ U[0, ln 4]; the rest is the same."""
    instance, plain = (fo.generate("gpus", users=3_000, servers=900, kinds=kinds, weights=2, seed=4) for kinds in (3, None))
    models = np.array([row["model"] for row in instance.attributes])
    assert chisquare([(models == f"gpu-{k}").sum() for k in (1, 2, 3)]).pvalue > 1e-3
    first = [int(np.argmax(models == f"gpu-{k}")) for k in (1, 2, 3)]
    assert (instance.speeds == instance.speeds[:, first][:, [int(model[-1]) - 1 for model in models]]).all()
    assert (instance.speeds.max(axis=1) == 1).all()
    faster = np.diff(np.log(instance.speeds[:, first]), axis=1)
    assert kstest(faster.ravel(), "uniform", (0, np.log(4))).pvalue > 1e-3
    assert instance.replace(speeds=None, attributes=None) == plain
    assert {row["model"] for row in fo.generate("gpus", servers=4, kinds=4, seed=1).attributes} == {f"gpu-{k}" for k in (1, 2, 3, 4)}


THROUGHPUTS = "job_type,scale,worker,thr\nlstm,1,k80,4\nlstm,1,v100,8\nlstm,16,k80,9\nbert,2,v100,6\nbert,2,k80,0\nbert,2,a100,9\n"


def test_speeds_of_gpus_from_a_table(tmp_path: Path) -> None:
    """Users are jobs of the table that fit: GPUs and speeds are those of its rows; the first kinds are used, or all."""
    path = tmp_path / "t.csv"
    path.write_text(THROUGHPUTS)
    instance = read_generator(f"gpus:users=200:servers=40:kinds=2:table={path}")(3)
    models = [row["model"] for row in instance.attributes]
    assert set(models) == {"k80", "v100"}
    expected = {1.0: {"k80": 0.5, "v100": 1.0}, 2.0: {"k80": 0.0, "v100": 1.0}}
    for n, cards in enumerate(instance.demands[:, 0].tolist()):
        assert instance.speeds[n].tolist() == [expected[cards][str(model)] for model in models]
    assert 60 < (instance.demands[:, 0] == 2).sum() < 140
    assert fo.solve(fo.generate("gpus", users=4, servers=6, table=path, seed=1), "cdrf").work.min() > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kinds": 4}, "kinds is 4, and .* has 3 workers: k80, v100, a100; give at most 3"),
        ({"kinds": 0}, "kinds"),
        ({"kinds": 1, "table": "t.json"}, "a table is expected here"),
        ({"table": "bad.csv"}, "bad.csv, line 2.*negative"),
        ({"table": "large.csv"}, "every job takes more than the 8 GPUs"),
    ],
)
def test_tables_of_gpus_that_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    """With what to do."""
    for name, text in (("t.csv", THROUGHPUTS), ("t.json", "{}"), ("bad.csv", THROUGHPUTS.replace("4", "-4", 1))):
        (tmp_path / name).write_text(text)
    (tmp_path / "large.csv").write_text("job_type,scale,worker,thr\nlstm,16,k80,9\n")
    with pytest.raises(fo.FairoptError, match=message):
        fo.generate("gpus", seed=1, **{**options, "table": tmp_path / options.get("table", "t.csv")})


@pytest.mark.parametrize(("rate", "servers"), [(0.0, 5), (0.3, 5), (0.7, 3), (1.0, 4), (0.5, 1)])
def test_constraints_have_the_rate(rate: float, servers: int) -> None:
    """Of K rows everybody loses rate - rate^K / K in the mean, and nobody all; the rest of the draw is that without constraints."""
    bare = fo.generate("uniform", users=8000, servers=servers, seed=5)
    instance = fo.generate("constrained", users=8000, servers=servers, rate=rate, seed=5)
    assert instance == bare.replace(eligibility=instance.eligibility)
    lost = 1 - instance.eligibility.mean()
    assert lost == pytest.approx(rate - rate**servers / servers, abs=0.015)
    assert instance.eligibility.mean(axis=0) == pytest.approx(1 - lost, abs=0.03)  # no server is preferred


def test_pairs_are_complementary() -> None:
    """Without spread those of the paper; else each second row is the first backwards, within the spread of it."""
    assert fo.generate("kesidis", spread=0) == read("kesidis").instances["kesidis"]
    instance = fo.generate("kesidis", users=200, servers=400, spread=0.3, seed=6)
    for values, centre in ((instance.capacities, (100, 30)), (instance.demands, (5, 1))):
        np.testing.assert_array_equal(values[::2], values[1::2, ::-1])
        factors = values[::2] / centre
        assert 0.7 <= factors.min() < 0.75
        assert 1.25 < factors.max() <= 1.3


# What is asked for ---------------------------------------------------------------------------------------------------------------


def test_a_spec_is_read_and_written() -> None:
    """The same function of the seed as from keywords."""
    spec = "constrained:of=google:users=12:servers=30:rate=0.25"
    draw = read_generator(spec)
    assert str(draw) == spec
    assert draw(9) == fo.generate("constrained", of="google", users=12, servers=30, rate=0.25, seed=9)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("gogle", 'no generator "gogle" (did you mean "google"?)'),
        ("google:user=3", 'takes no parameter "user" (did you mean "users"?); it takes users, servers, weights'),
        ("google:seed=3", "the seed is given apart"),
        ("constrained:of=google:resources=3", 'the generator "google" takes no parameter "resources"'),
        ("constrained:seed=3", "the seed is given apart"),
        ("constrained:of=constrained", "the generator that draws the instance without constraints"),
        ("constrained:rate=1.5", "rate is 1.5; give a number from 0 to 1"),
        ("constrained:rate=much", "rate is 'much'"),
        ("uniform:users=0", "users is 0; give a whole number >= 1"),
        ("uniform:servers=2.5", "servers is 2.5"),
        ("uniform:size=0", "size is 0; give a number > 0"),
        ("uniform:size=nan", "size is nan"),
        ("uniform:weights=0.5", "the largest weight, >= 1"),
        ("correlated:rho=2", "a rank correlation, from -1 to 1"),
        ("correlated:resources=3:rho=-0.5", "of 3 resources any two, the rank correlation is at least -0.482"),
        ("correlated:resources=1", "give 2 or more"),
        ("kesidis:users=3", "kesidis draws pairs; give an even number"),
        ("kesidis:spread=1", "spread is 1; give a number >= 0 and < 1"),
        ("google:users", '"users" is no option'),
    ],
)
def test_bad_parameters_say_what_to_do(spec: str, message: str) -> None:
    """When the generator is named, or at the first draw; in Python and on the command line."""
    with pytest.raises(fo.Unsupported, match=re.escape(message)):
        read_generator(spec)(0)
    result = CliRunner().invoke(app, ["generate", spec, "-o", "never.yaml"])
    assert result.exit_code == 2
    assert message in result.stderr
    assert not Path("never.yaml").exists()


def test_a_generator_of_your_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any function with a seed, once it is registered."""
    monkeypatch.setitem(fo.GENERATORS, "flat", lambda users=2, *, seed=0: fo.Instance([[1.0]], np.ones((users, 1))))
    assert read_generator("flat:users=3")(1).n_users == 3


def test_the_command_writes_an_instance(tmp_path: Path) -> None:
    """The one of the seed; without a spec it lists what there is."""
    result = CliRunner().invoke(app, ["generate", "google:users=7", "--seed", "3", "-o", str(tmp_path / "cluster.yaml")])
    assert result.exit_code == 0, result.output
    assert fo.load(tmp_path / "cluster.yaml") == fo.generate("google", users=7, seed=3)
    listed = CliRunner().invoke(app, ["generate"], env={"COLUMNS": "80"})
    assert max(map(len, listed.stdout.splitlines())) <= 80
    assert [line.split()[0] for line in listed.stdout.splitlines() if line[:1].isalpha()][1 : len(fo.GENERATORS) + 1] == list(fo.GENERATORS)
    for arguments, message in ((["google"], "say where to write it"), (["google", "-o", "nowhere/x.yaml"], "there is no folder")):
        refused = CliRunner().invoke(app, ["generate", *arguments])
        assert refused.exit_code == 2
        assert message in " ".join(refused.stderr.replace("│", " ").split())


def test_an_option_that_is_given_twice_is_refused() -> None:
    """Which of the two is meant, nobody knows."""
    with pytest.raises(fo.Unsupported, match='"uniform:users=3:users=4": "users" is there twice'):
        read_generator("uniform:users=3:users=4")
