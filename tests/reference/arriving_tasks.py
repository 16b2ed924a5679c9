"""Tasks that arrive, one decision after another, in fractions."""

from __future__ import annotations

from fractions import Fraction

from reference.named_limits import counted

import fairopt as fo


def exact(value: float) -> Fraction:
    """Return the decimal number that was meant."""
    return Fraction(value).limit_denominator(1000)


class Reference:
    """Servers as lists of fractions, tasks placed one by one as the docstrings say."""

    def __init__(self, instance: fo.Instance, placement: str, cards: int | None) -> None:
        self.instance, self.placement, self.cards = instance, placement, cards
        self.rows = [i for i in range(instance.n_servers) for _ in range(int(instance.counts[i]))]
        self.free = [[exact(c) for c in instance.capacities[i]] for i in self.rows]
        self.left = [[Fraction(1)] * (0 if cards is None else int(instance.capacities[i, cards])) for i in self.rows]
        total = [exact(c) for c in instance.total_capacity[: instance.n_server_resources]]
        self.held: dict[tuple[object, ...], Fraction] = {}  # of limits
        self.scale = [Fraction(len(self.rows)) / c if c else Fraction(1) for c in total]

    def usable(self, server: int, asked: Fraction) -> list[int]:
        """Return the cards that a task takes, or could take one of; none if it has to go elsewhere."""
        if asked >= 1:
            whole = [g for g, left in enumerate(self.left[server]) if left == 1]
            return whole[: int(asked)] if len(whole) >= asked else []
        return [g for g, left in enumerate(self.left[server]) if left >= asked]

    def score(self, server: int, demand: list[Fraction]) -> Fraction:
        """Return what is smallest where the task goes."""
        d = [x * s for x, s in zip(demand, self.scale, strict=True)]
        f = [x * s for x, s in zip(self.free[server], self.scale, strict=True)]
        p = next(r for r, x in enumerate(d) if x > 0)
        return {
            "first-fit": Fraction(server),
            "best-fit": sum((abs(x / d[p] - y / f[p]) for x, y in zip(d, f, strict=True)), Fraction(0)),
            "best-fit:metric=l2": sum(((x / d[p] - y / f[p]) ** 2 for x, y in zip(d, f, strict=True)), Fraction(0)),
            "best-fit:metric=tightest": sum(f, Fraction(0)),
            "worst-fit": -sum(f, Fraction(0)),
        }[self.placement]

    def cost(self, n: int, server: int) -> Fraction:
        """Return the part of the cluster that a unit of work takes, rounded to the steps in which scores are compared."""
        row, total = self.rows[server], [exact(c) for c in self.instance.total_capacity]
        parts = [exact(d) / c for d, c in zip(self.instance.demands_by_row(n)[row], total, strict=True) if c]
        return round(max(parts) / exact(self.instance.speeds[n, row]), 12)

    def put(self, n: int) -> int:
        """Place a task of user n, or return -1."""

        def every(i: int) -> list[Fraction]:
            return [exact(d) for d in self.instance.demands_by_row(n)[self.rows[i]]]

        def demand(i: int) -> list[Fraction]:
            return every(i)[: self.instance.n_server_resources]

        def rows(i: int) -> list[tuple[tuple[object, ...], Fraction, Fraction]]:
            queue = self.instance.queue_of[n]
            return counted(self.instance, self.instance.users[n], queue, self.rows[i], i, every(i), exact)

        def asked_on(i: int) -> Fraction:
            return Fraction(0) if self.cards is None else demand(i)[self.cards]

        fits = [
            i
            for i, row in enumerate(self.rows)
            if self.instance.eligibility[n, row]
            and all(d <= f for d, f in zip(demand(i), self.free[i], strict=True))
            and (asked_on(i) == 0 or self.usable(i, asked_on(i)))
            and all(self.held.get(key, Fraction(0)) + amount <= bound for key, amount, bound in rows(i))
        ]
        if not fits:
            return -1
        best = min(fits, key=lambda i: (self.cost(n, i) if self.placement == "fastest" else self.score(i, demand(i)), i))
        asked = asked_on(best)
        for key, amount, _ in rows(best):
            self.held[key] = self.held.get(key, Fraction(0)) + amount
        self.free[best] = [f - d for f, d in zip(self.free[best], demand(best), strict=True)]
        if asked >= 1:
            for g in self.usable(best, asked):
                self.left[best][g] = Fraction(0)
        elif asked > 0:
            cards = self.usable(best, asked)
            sign = {"first-fit": 0, "worst-fit": -1}.get(self.placement, 1)
            chosen = min(cards, key=lambda g: (sign * self.left[best][g], g))
            self.left[best][chosen] -= asked
        return best
