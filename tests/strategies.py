"""Hypothesis strategies: small instances with everything that an instance may have, and instances that are easy on solvers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from fairopt import Instance, Trace

HOSTS = st.from_regex(r"[a-z.é_:/#+-]{0,3}([0-9]{1,20}[a-z.-]{0,2}){0,3}[a-z0-9]", fullmatch=True) | st.sampled_from(["9", "09", "é"])
"""Names of hosts: with zeros in front, several numbers, suffixes, numbers with more digits than a range may have."""


@st.composite
def hosts(draw: st.DrawFn, *, most: int = 40) -> list[str]:
    """Different names of hosts: some by themselves, and some from ranges of numbers, in any order."""
    names = draw(st.lists(HOSTS, max_size=6))
    for _ in range(draw(st.integers(0, 3))):
        first, length, width = draw(st.integers(0, 1200)), draw(st.integers(1, 12)), draw(st.integers(1, 4))
        before, after = draw(st.sampled_from(["cn", "r1n", "r2n", "a-"])), draw(st.sampled_from(["", "-ib", ".lab", "x3"]))
        names += [f"{before}{value:0{width}d}{after}" for value in range(first, first + length)]
    different = list(dict.fromkeys(names))[:most]
    return draw(st.permutations(different)) if draw(st.booleans()) else different


@st.composite
def hosts_of_rows(draw: st.DrawFn, counts: Sequence[float] | npt.NDArray[np.float64]) -> list[list[str]]:
    """Hosts of rows of servers: all of a row or none, and none twice."""
    names, rows = draw(hosts()), []
    for count in counts:
        named = count <= len(names) and draw(st.booleans())
        rows.append(names[: int(count)] if named else [])
        names = names[int(count) :] if named else names
    return rows


@st.composite
def instances(
    draw: st.DrawFn, *, max_users: int = 5, max_servers: int = 4, max_resources: int = 3, one_server: bool = False, whole: bool = False
) -> Instance:
    """Zero demands, missing resources, constraints, counts, limits on tasks, weights over three orders of magnitude.

    ``whole`` takes small integers, with which reference solutions in fractions are exact.
    """
    n = draw(st.integers(1, max_users))
    k = 1 if one_server else draw(st.integers(1, max_servers))
    m = draw(st.integers(1, max_resources))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if whole:
        capacities = rng.integers(0, 9, (k, m)).astype(float)
        demands = rng.integers(0, 4, (n, m)).astype(float)
    else:
        capacities = rng.uniform(0.5, 10, (k, m)) * (rng.random((k, m)) > 0.15)
        demands = rng.uniform(0.05, 2, (n, m)) * (rng.random((n, m)) > 0.3)
    demands[demands.sum(axis=1) == 0, 0] = 1.0
    weights = eligibility = counts = tasks = None
    if draw(st.booleans()):
        weights = 10.0 ** rng.integers(-3, 4, n) if whole else 10 ** rng.uniform(-1.5, 1.5, n)
    if draw(st.booleans()):
        eligibility = rng.random((n, k)) < 0.7
    if draw(st.booleans()) and not one_server:
        counts = rng.integers(1, 4, k)
    if draw(st.booleans()):
        few = rng.integers(0, 5, n).astype(float) if whole else rng.uniform(0, 6, n)
        tasks = np.where(rng.random(n) < 0.4, few, np.inf)
    return Instance(capacities, demands, weights, eligibility, counts, tasks)


@st.composite
def limited_instances(
    draw: st.DrawFn, *, max_users: int = 5, max_servers: int = 4, max_resources: int = 3, whole: bool = False, rates: bool = False
) -> Instance:
    """The same with users who are limited to some servers at once: from half a server to one more than there are rows.

    ``rates`` gives half of them rates of their own, too.
    """
    instance = draw(instances(max_users=max_users, max_servers=max_servers, max_resources=max_resources, whole=whole))
    n, k = instance.n_users, instance.n_servers
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    most = rng.integers(1, 2 * k + 3, n) / 2 if whole else rng.uniform(0.2, k + 1, n)
    speeds = None
    if rates and draw(st.booleans()):
        speeds = rng.uniform(0.2, 9, (n, k)) * (rng.random((n, k)) > 0.1)
    return instance.replace(parallelism=np.where(rng.random(n) < 0.7, most, np.inf), rates=speeds)


@st.composite
def traces(draw: st.DrawFn, cluster: Instance, *, most_jobs: int = 8, events: bool = True, whole: bool = True) -> Trace:
    """Jobs of the users of a cluster at few different times, so that much happens at once; users and servers that come and go.

    ``whole`` takes demands in tenths and whole seconds, with which reference solutions in fractions are exact.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    jobs = draw(st.integers(1, most_jobs))
    user = rng.integers(0, cluster.n_users, jobs)
    tasks = rng.integers(1, 6, jobs)
    shapes = rng.integers(0, 4, (3, cluster.n_resources)) / 10 if whole else rng.uniform(0, 1, (3, cluster.n_resources))
    shapes[shapes.sum(axis=1) == 0, 0] = 0.1
    demands = shapes[rng.integers(0, 3, jobs)]
    durations = rng.integers(0, 9, int(tasks.sum()) if draw(st.booleans()) else jobs).astype(float)
    if draw(st.booleans()):
        durations[rng.random(durations.size) < 0.2] = np.inf
    eligibility = rng.random((jobs, cluster.n_servers)) < 0.7 if draw(st.booleans()) else None
    happens: list[tuple[float, str, str, int]] = []
    if events:
        there = cluster.counts.copy()
        for time in sorted(rng.integers(0, 30, draw(st.integers(0, 5))).tolist()):
            kind = ("join", "leave", "add", "remove")[int(rng.integers(4))]
            if kind in ("join", "leave"):
                happens.append((float(time), kind, cluster.users[user[int(rng.integers(jobs))]], 1))
            else:
                i = int(rng.integers(cluster.n_servers))
                number = 1 if kind == "add" else min(1, int(there[i]))
                there[i] += number if kind == "add" else -number
                if number and not any(time == other[0] for other in happens):  # at one time, what is removed goes first
                    happens.append((float(time), kind, cluster.servers[i], number))
                elif number:
                    there[i] -= number if kind == "add" else -number
    return Trace(
        [cluster.users[n] for n in user],
        np.sort(rng.integers(0, 20, jobs)),
        tasks,
        demands,
        durations,
        eligibility=eligibility,
        events=happens,
        resources=cluster.resources,
    )
