"""The open model on random instances with everything at once: do the engines find what an oracle of rows finds?

``python tests/open_model.py --instances 2000`` prints a table; tests/conformance/test_open_model.py runs a fixed sample of it.

Instances: resources of the cluster, named limits of all selections, rules of any sign, trees with limits, quotas, tiers and orders,
weights over six orders of magnitude, weights of resources, finite tasks, limits at once, placement constraints, counts. Every fourth has
guarantees, too; their oracle is that of `queue_oracle`, all others that of `reference.open_rows`, which is given rows and nothing else.
Every fourth is tiny and has small whole numbers: fractions are then equal, without a tolerance.

The default is asked, and one other engine in turn. Compared are the weighted shares, relative to the larger, and absolutely below a
millionth of what the user could have alone. Where floats of oracle and engine differ, the oracle in fractions decides; where there are
floors, rounding adds up over stages, and shares are compared absolutely below a tenth then.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from queue_oracle import Oracle, constructor, random_tree, share_per_task, with_orders
from reference.linear import optimum
from reference.named_limits import with_limits
from reference.open_rows import DrawnRule, Polytope, come_last, decimal, filled, polytope_of, rates_of_tree, worth_of

import fairopt as fo

BOUND = 1e-8
EQUALISING = ("drfh", "tsf", "cdrf", "asset", "max-min")
ENGINES = ("highs", "cvxpy", "pyomo")
_FEW = 40  # pairs of which a filling with guarantees in fractions takes seconds


@dataclass(frozen=True)
class Question:
    """An instance, the rules as they were drawn, and what is asked about it."""

    seed: int
    instance: fo.Instance
    rules: tuple[DrawnRule, ...]
    notion: str
    options: dict[str, Any]

    @property
    def kind(self) -> str:
        """What is special about the instance."""
        instance = self.instance
        has = {
            "shared": bool(instance.shared),
            "limits": bool(instance.limits),
            "rules": bool(self.rules),
            "tree": bool(instance.queues),
            "tiers": any(queue.tier for queue in instance.queues),
            "orders": any(queue.order != "fair" for queue in instance.queues),
            "weights of resources": "resource_weights" in self.options,
            "guarantees": bool(instance.guarantees.any()) or any(queue.guarantee for queue in instance.queues),
        }
        return " ".join(word for word, there in has.items() if there) or "flat"


# Instances -----------------------------------------------------------------------------------------------------------------------


def _digits(values: Any, digits: int = 3) -> Any:
    return np.vectorize(lambda value: float(f"{value:.{digits}g}"), otypes=[float])(np.asarray(values, float))


def _tree(rng: np.random.Generator, users: int, servers: int, resources: tuple[str, ...], totals: Any, orders: float) -> dict[str, Any]:
    """Queues of up to three levels with weights, limits, quotas of groups and tiers."""
    queues: list[fo.Queue] = []
    tiers = rng.random() < 0.3

    def limit(part: float) -> dict[str, float]:
        return {
            name: float(_digits(rng.uniform(0.1, part) * total))
            for name, total in zip(resources, totals, strict=True)
            if rng.random() < 0.2
        }

    for k in range(int(rng.integers(1, 5))):
        above = [queue.name for queue in queues if queue.name.count("-") < 2]
        parent = None if not above or rng.random() < 0.4 else above[int(rng.integers(len(above)))]
        group = [f"s{i}" for i in range(servers) if rng.random() < 0.5]
        queues.append(
            fo.Queue(
                f"q{k}" if parent is None else f"{parent}-{k}",
                parent,
                weight=float(_digits(10 ** rng.uniform(-orders / 6, orders / 6))),  # of three below each other
                limit=limit(0.8),
                tier=int(rng.integers(-1, 3)) if tiers and rng.random() < 0.5 else 0,
                quotas=[fo.Quota(group, {}, limit(0.5))] if group and rng.random() < 0.3 else (),
            )
        )
    places = [None, *(queue.name for queue in queues)]
    return {"queues": queues, "queue_of": [places[int(rng.integers(len(places)))] for _ in range(users)]}


def _base(rng: np.random.Generator, *, whole: bool, tree: bool) -> fo.Instance:
    users, servers = int(rng.integers(2, 4 if whole else 6)), int(rng.integers(1, 3 if whole else 4))
    m, extra = int(rng.integers(1, 3)), int(rng.integers(0, 3))
    orders = 0.0 if whole else float(rng.choice([0.0, 2.0, 6.0]))
    inner = 6.0 - orders if tree and orders < 6 else 0.0
    demands = rng.uniform(0.05, 1, (users, m + extra)) if not whole else rng.integers(1, 4, (users, m + extra)).astype(float)
    demands = _digits(demands * (rng.random(demands.shape) > 0.3))
    demands[demands.sum(axis=1) == 0, 0] = 1.0
    capacities = rng.uniform(1, 10, (servers, m)) if not whole else rng.integers(3, 15, (servers, m))
    capacities = _digits(capacities * (rng.random((servers, m)) > 0.05))
    counts = rng.integers(1, 4, servers) if rng.random() < 0.3 else np.ones(servers, int)
    amounts = rng.uniform(0.3, 6, extra) if not whole else rng.integers(2, 9, extra)
    shared = {f"shared-{r}": float(_digits(amount)) * float(rng.random() > 0.04) for r, amount in enumerate(amounts)}
    resources = tuple(f"r{r}" for r in range(m))
    totals = [*(counts @ capacities), *shared.values()]
    weights = 10 ** rng.uniform(-orders / 2, orders / 2, users) if not whole else rng.integers(1, 4, users)
    drawn = rng.integers(1, 6, users) if whole else rng.uniform(0.1, 8, users)
    eligibility = rng.random((users, servers)) < 0.8
    eligibility[:, 0] |= demands[:, :m].sum(axis=1) == 0
    return fo.Instance(
        capacities,
        demands,
        weights=_digits(weights),
        eligibility=eligibility,
        counts=counts,
        tasks=_digits(np.where(rng.random(users) < 0.25, drawn, np.inf)),
        parallelism=_digits(np.where(rng.random(users) < 0.15, rng.uniform(0.3, 2, users), np.inf)),
        shared=shared,
        users=[f"u{n}" for n in range(users)],
        servers=[f"s{i}" for i in range(servers)],
        resources=[*resources, *shared],
        **(_tree(rng, users, servers, (*resources, *shared), totals, inner) if tree else {}),
    )


def _with_rules(rng: np.random.Generator, instance: fo.Instance) -> tuple[DrawnRule, ...]:
    """Rules that half of some allocation obeys."""
    polytope = polytope_of(instance)
    most = np.array(
        [_highest(polytope, (polytope.users == n).astype(float)) for n in range(instance.n_users)]
    )  # tasks of each user alone, within all limits
    able = [n for n in range(instance.n_users) if most[n] > 1e-6]
    if not able:
        return ()
    x = np.zeros(polytope.users.size)
    for n in able:  # a mix of what each could have alone
        x += _point(polytope, (polytope.users == n).astype(float)) / (2 * len(able))
    names = [*(instance.users[n] for n in able), *(queue.name for queue in instance.queues)]
    inside = {name: np.array([name in _places(instance, n) for n in polytope.users]) for name in names}
    rules: list[DrawnRule] = []

    def term() -> tuple[str, str, str, str, float]:
        name = names[int(rng.integers(len(names)))]
        measure = ("x", "x", "work", "amount")[int(rng.integers(4))]
        resource = str(rng.choice(instance.resources)) if measure == "amount" else ""
        where = "" if rng.random() < 0.6 else ["zone = a", "zone = b", *instance.servers][int(rng.integers(2 + instance.n_servers))]
        if where.startswith("zone") and where[-1] not in {dict(row).get("zone") for row in instance.attributes}:
            where = ""
        zones = np.array(
            [where in ("", instance.servers[i], f"zone = {dict(instance.attributes[i]).get('zone')}") for i in polytope.servers]
        )
        unit = polytope.speeds if measure == "work" else 1.0
        if resource:
            unit = instance.demands_of(polytope.users, polytope.servers)[:, instance.resources.index(resource)]
        return measure, name, where, resource, float((x * inside[name] * zones * unit).sum())

    for _ in range(int(rng.integers(1, 4))):
        (*first, held), (*second, other) = term(), term()
        if held <= 1e-3:
            continue
        slack = float(rng.uniform(0.5, 0.95))
        above = rng.random() < 0.6
        ratio = 0.0 if other <= 1e-3 or first[1] == second[1] or rng.random() < 0.5 else held / other
        terms: list[Any] = [(1.0, *first)]
        if ratio:
            value = float(_digits(ratio * slack if above else ratio / slack, 2)) * (0.9 if above else 1.1)
            terms.append((-float(_digits(value)), *second))
        number = 0.0 if ratio else float(_digits(held * slack * 0.98 if above else held / slack * 1.02))
        rules.append(DrawnRule(tuple(terms), ">=" if above else "<=", number))
    return tuple(rules)


def _places(instance: fo.Instance, n: int) -> set[str]:
    above = {queue.name: queue.parent for queue in instance.queues}
    found, name = {instance.users[n]}, instance.queue_of[n]
    while name is not None:
        found.add(name)
        name = above[name]
    return found


def _point(polytope: Polytope, goal: Any) -> Any:
    return optimum(goal, polytope.matrix, polytope.bounds).x


def _highest(polytope: Polytope, goal: Any) -> float:
    if not goal.any():
        return 0.0
    return optimum(goal, polytope.matrix, polytope.bounds).value


def question(seed: int) -> Question:
    """Return the question of a seed; the four kinds take turns."""
    rng = np.random.default_rng([seed, 49])
    kind = seed % 4
    notion = EQUALISING[int(rng.integers(len(EQUALISING)))]
    options: dict[str, Any] = {}
    if kind == 2:  # guarantees
        instance = _shared_tree(rng, seed)
        notion = str(rng.choice(["drfh", "tsf", "asset", "max-min"]))
        options["guarantees"] = "clamp" if seed % 3 == 1 else "surplus"
    else:
        instance = _base(rng, whole=kind == 3, tree=kind == 1)
    instance = with_limits(instance, seed, number=int(rng.integers(0, 4)), round_to=1 if kind == 3 else 1000)
    rules = _with_rules(rng, instance) if kind != 2 and rng.random() < 0.6 else ()
    if instance.queues and rng.random() < 0.25:
        options["queue_share"] = "sum"
    more = np.random.default_rng([seed, 6])
    if kind == 2 and seed % 8 == 2:
        rules = _with_rules(np.random.default_rng([seed, 7]), instance)
    if instance.queues and more.random() < 0.4:
        instance = with_orders(instance, seed)
    if kind != 2 and more.random() < 0.35:
        options |= _counting(more, instance, notion, options)
    return Question(seed, instance.replace(rules=[rule.text for rule in rules]), rules, notion, options)


def question_by_server(seed: int) -> Question:
    """Return the question of a seed with demands and speeds by server; three kinds take turns: flat, in a tree, tiny."""
    rng = np.random.default_rng([seed, 50])
    kind = (0, 1, 3)[seed % 3]
    whole = kind == 3
    instance = _base(rng, whole=whole, tree=kind == 1)
    shape = (instance.n_users, instance.n_servers)
    demands = np.repeat(instance.demands[:, None], instance.n_servers, axis=1)
    if rng.random() < 0.85:
        kinds = rng.integers(0, 3, instance.n_servers)
        factors = (
            rng.choice([1, 2, 3], (shape[0], 3, demands.shape[2])) if whole else rng.uniform(0.4, 2.5, (shape[0], 3, demands.shape[2]))
        )
        demands = _digits(demands * factors[:, kinds])
    speeds = rng.choice([1.0, 2.0, 3.0] if whole else [0.25, 0.6, 1.0, 1.7, 3.0], shape) * (rng.random(shape) > 0.08)
    instance = instance.replace(
        demands=demands,
        speeds=speeds if rng.random() < 0.85 else None,
        eligibility=instance.eligibility,
        parallelism=None if instance.shared else instance.parallelism,
    )
    instance = with_limits(instance, seed, number=int(rng.integers(0, 4)), round_to=1 if whole else 1000)
    rules = _with_rules(rng, instance) if rng.random() < 0.6 else ()
    if instance.queues and rng.random() < 0.4:
        instance = with_orders(instance, seed)
    notion = str(rng.choice(["drfh", "tsf", "cdrf", "max-min"]))
    options = _counting(rng, instance, notion, {}) if notion == "drfh" and rng.random() < 0.6 else {}
    return Question(4 * seed + 3 * whole, instance.replace(rules=[rule.text for rule in rules]), rules, notion, options)


def _counting(rng: np.random.Generator, instance: fo.Instance, notion: str, options: dict[str, Any]) -> dict[str, Any]:
    """What counts in shares of the cluster, or in those of queues."""
    weights = rng.choice([0.0, 0.0, 0.5, 1.0, 4.0], instance.n_resources)
    weights[int(rng.integers(weights.size))] = 2.0
    counts = {name: float(weight) for name, weight in zip(instance.resources, weights, strict=True) if weight != 1}
    if notion in ("drfh", "asset"):
        return {"resource_weights": counts}
    by_queues = instance.queues and "queue_share" not in options and notion != "max-min"  # whose tasks have no one share of the cluster
    return {"resource_weights": counts, "queue_share": "dominant"} if by_queues else {}


def _shared_tree(rng: np.random.Generator, seed: int) -> fo.Instance:
    """A tree of queue_oracle with two resources of the cluster beside it."""
    instance = random_tree(seed)
    demands = _digits(rng.uniform(0.05, 1, (instance.n_users, 2)) * (rng.random((instance.n_users, 2)) > 0.5))
    amounts = _digits(rng.uniform(0.5, 4, 2))
    return instance.replace(
        demands=np.hstack([instance.demands, demands]), shared=dict(zip(("ansys", "uplink"), amounts.tolist(), strict=True))
    )


# Comparison ----------------------------------------------------------------------------------------------------------------------


def expected(asked: Question, number: Any = float) -> tuple[list[Any], list[Any]]:
    """Return U of each user by the oracle, and U of a unit of work."""
    instance = asked.instance
    usual = "dominant" if asked.notion == "drfh" and not instance.differs_by_server else "sum"
    dominant = asked.options.get("queue_share", usual) == "dominant"
    if "guarantees" in asked.options:
        per_task = share_per_task(instance, asked.notion)
        exact = number is not float
        per_task = np.array(worth_of(instance, asked.notion, number), object) if exact else per_task
        how: Any = {"guarantees": asked.options["guarantees"], "queue_share": "dominant" if dominant else "sum", "rules": asked.rules}
        return list(Oracle(instance, per_task, number=number if exact else float, **how).solve()), list(per_task)
    counts = asked.options.get("resource_weights", {})
    worth = worth_of(instance, asked.notion, number, counts)
    polytope = polytope_of(instance, asked.rules, number)
    above = {queue.name: queue for queue in instance.queues}

    def tier(n: int) -> int:
        name, found = instance.queue_of[n], 0
        while name is not None and not found:
            found, name = above[name].tier, above[name].parent
        return found

    ranks = [(not last, tier(n)) for n, last in enumerate(come_last(instance, counts))]
    classes = [[n for n, own in enumerate(ranks) if own == value] for value in sorted(set(ranks), reverse=True)]
    rates = rates_of_tree(instance, worth, dominant=dominant, number=number, counts=counts)
    return filled(polytope, worth, classes, rates, number), worth


def difference(mine: Any, theirs: Any, instance: fo.Instance, worth: Any, floor: float = 1e-6) -> float:
    """Return the largest difference of U, relative to the larger, or to a small part of what the user could have alone."""
    polytope = polytope_of(instance)
    alone = np.array([_highest(polytope, np.where(polytope.users == n, polytope.speeds, 0.0)) for n in range(instance.n_users)])
    mine, theirs, worth = np.asarray(mine, float), np.asarray(theirs, float), np.asarray(worth, float)
    least = np.where(alone > 0, floor * alone * worth, 1.0)
    return float((np.abs(mine - theirs) / np.maximum(np.maximum(mine, theirs), least)).max(initial=0.0))


def _determined(asked: Question, mine: Any, theirs: Any) -> tuple[Any, Any]:
    """Return both, but what users below a weight of 0 have more under rules, which may force others to give it to them."""
    mine, theirs = np.array(mine, float), np.array(theirs, float)
    if asked.rules:
        above = {queue.name: queue for queue in asked.instance.queues}
        for n, weight in enumerate(asked.instance.weights):
            weights = [weight, *(above[name].weight for name in _places(asked.instance, n) if name in above)]
            if min(weights) == 0:
                mine[n] = min(mine[n], theirs[n])
    return mine, theirs


@dataclass
class Found:
    """What a campaign has seen."""

    asked: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    decided: int = 0
    exact: int = 0
    worst: float = 0.0
    failures: list[str] = field(default_factory=list)


def ask(asked: Question, found: Found, bound: float = BOUND) -> None:
    """Ask the engines, and compare what they say with the oracle."""
    found.asked += 1
    found.kinds[asked.kind] += 1
    try:
        theirs, worth = expected(asked)
    except ValueError:  # a later stage would depend on where the tasks of an earlier one are
        found.refused["not defined without placements"] += 1
        return
    except ArithmeticError:  # an LP of the oracle
        found.refused["no oracle"] += 1
        return
    for engine in (None, ENGINES[asked.seed // 4 % len(ENGINES)]):
        try:
            answer = fo.solve(asked.instance, asked.notion, solver=engine, **asked.options)
        except (fo.Unsupported, fo.SolverUnavailable) as error:
            if engine is None:
                found.failures.append(f"seed {asked.seed}: {type(error).__name__}: {error}")
            found.refused[f"{engine}: no such program"] += 1
            continue
        except (fo.CertificateError, fo.NoSolution) as error:
            if engine is None:
                found.failures.append(f"seed {asked.seed}: {type(error).__name__}: {error}")
            found.refused[str(engine)] += 1
            continue
        except Exception as error:  # a mistake of ours: the campaign goes on, and says so
            found.failures.append(f"seed {asked.seed} by {engine}: {type(error).__name__}: {error}")
            continue
        mine = answer.work * np.array(worth, float)
        promised = "guarantees" in asked.options  # their oracle has floats alone, with tolerances of 1e-10 of what users could have alone
        floor = 1e-2 if promised else 1e-6
        gap = difference(*_determined(asked, mine, theirs), asked.instance, worth, floor)
        if gap > bound and (not promised or asked.instance.n_users * asked.instance.n_servers <= _FEW):
            found.decided += 1
            theirs = [float(value) for value in expected(asked, Fraction if promised else decimal)[0]]
            gap = difference(*_determined(asked, mine, theirs), asked.instance, worth, 0.1 if promised else 1e-6)
        found.answers[str(engine)] += 1
        found.worst = max(found.worst, gap)
        if gap > bound:
            found.failures.append(f"seed {asked.seed}: {asked.notion} by {engine} {asked.options}: {gap:.1e}")
    if asked.seed % 4 == 3:
        ask_in_fractions(asked, found)


def ask_in_fractions(asked: Question, found: Found) -> None:
    """Ask for fractions, and compare them as such."""
    theirs, worth = expected(asked, decimal)
    try:
        exact = fo.solve(asked.instance, asked.notion, exact=True, **asked.options).exact
    except fo.FairoptError as error:
        found.failures.append(f"seed {asked.seed}: fractions: {type(error).__name__}: {error}")
        return
    assert exact is not None
    done = asked.instance.exact.work(exact.tasks)
    mine = [Fraction(work) * value for work, value in zip(done, worth, strict=True)]
    found.exact += 1
    if mine != theirs:
        found.failures.append(f"seed {asked.seed}: fractions: {list(map(str, mine))} and {list(map(str, theirs))}")


def campaign(seeds: Iterable[int], draw: Callable[[int], Question] = question) -> Found:
    """Ask the questions of these seeds."""
    found = Found()
    for seed in seeds:
        before = len(found.failures)
        ask(draw(seed), found)
        print(*found.failures[before:], sep="\n", end="\n" if len(found.failures) > before else "", file=sys.stderr, flush=True)
    return found


def main() -> int:
    """Print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the first instance")
    parser.add_argument("--step", type=int, default=1, help="between the seeds: 4 keeps the kind of --seed")
    parser.add_argument("--by-server", action="store_true", help="with demands and speeds by server")
    parser.add_argument("--show", action="store_true", help="print the instance of --seed, what the oracle says and what fairopt says")
    arguments = parser.parse_args()
    logging.getLogger("fairopt").setLevel(logging.ERROR)
    draw = question_by_server if arguments.by_server else question
    if arguments.show:
        asked = draw(arguments.seed)
        print(
            constructor(asked.instance), [rule.text for rule in asked.rules], asked.instance.limits, asked.notion, asked.options, sep="\n"
        )
        print("oracle ", expected(asked)[0])
        return 0
    started = time.process_time()
    found = campaign(range(arguments.seed, arguments.seed + arguments.instances * arguments.step, arguments.step), draw)
    for kind, number in found.kinds.most_common():
        print(f"{number:6,} {kind}")
    print(f"{found.asked:,} instances; answers: {dict(found.answers)}; refused by engines on their own: {dict(found.refused)}")
    print(f"{found.exact:,} equal as fractions or failed; {found.decided:,} decided by fractions; largest difference {found.worst:.1e}")
    print(f"{len(found.failures)} failures, {time.process_time() - started:.0f} s of CPU")
    return int(bool(found.failures))


if __name__ == "__main__":
    sys.exit(main())
