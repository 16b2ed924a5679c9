r"""Users with the same choice of pairs as one user (`fairopt.solvers.interior_point.by_sample`).

In the symbols of `fairopt.solvers.interior_point.sample_users`, let S = kappa[i] z be what a user takes of its own limit B if it has the
part z of limit i, r[p] its utility for one S, and P[i] = y[i] / kappa[i] the price of one S. Of users with the same choice, the left side
is in the proportions w[n] or B[n], at any prices. So they share what one user gets:

    one pair, room in the own limit          q t = w y[i]^(-1 / alpha)                              w = (phi q^(alpha - 1))^(1 / alpha)
    one pair that fills the own limit        S = B                                                  w = (phi r^(1 - alpha))^(1 / alpha)
    two pairs that fill it, a and b          S[b] + B r[a] / d = w (P[j] - P[i])^(-1 / alpha)       w = (phi d^(1 - alpha))^(1 / alpha)

with d = r[b] - r[a]. The one user has the weight (sum_n w[n])^alpha. In the first case it has one column and no limit of its own, in the
second one column and the limit sum B, in the third two columns and the limit sum B. There, with G = sum B r[a] / d, one S gives it the
utility G / (sum B) at i, and 1 more at j: together G + S[b] where its limit is full.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.instance import FloatArray, IntArray
from fairopt.solvers.interior_point.sample_columns import Columns
from fairopt.solvers.interior_point.sample_users import Bought, Users

__all__ = ["Choices"]


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """Users with the same choice taken together.

    Attributes
    ----------
    users : Users
    first, second : int arrays (others,)
        Their pairs; second: -1.
    choice : int array (others,)
        Of each.
    size : int array (choices,)
        Users of each choice.
    part : array (others,)
        What each gets of what its choice gets: w in parts of all w.
    bounds, held : arrays (others,)
        B, and B r[a] / d; 0 where the own limit has room.
    together, held_together : arrays (choices,)
        Their sums.
    columns : Columns
        One or two of each choice.
    of_first, of_second : int arrays (choices,)
        Its columns.
    """

    users: Users
    first: IntArray
    second: IntArray
    choice: IntArray
    size: IntArray
    part: FloatArray
    bounds: FloatArray
    held: FloatArray
    together: FloatArray
    held_together: FloatArray
    columns: Columns
    of_first: IntArray
    of_second: IntArray

    @classmethod
    def of(cls, users: Users, bought: Bought, others: IntArray) -> Choices:
        """Put users with the same choice together."""
        n, alpha = users.shared.size, users.alpha
        a, b = bought.first[others], bought.second[others]
        code, B = users.limit[a], np.broadcast_to(0.0, others.size)
        held = B
        if users.have_own:
            split, full = b >= 0, bought.own[others] > 0
            code = np.where(split, (2 + code) * n + users.limit[b], np.where(full, n, 0) + code)
            B = np.where(full, users.bounds[others], 0.0)
            r_a, r_b = (1 / (users.h[pair] * users.bounds[others]) for pair in (a, b))
            d = np.where(split, r_b - r_a, 1.0)
            held = np.where(split, B * r_a / d, 0.0)
            log_worth = np.log(np.where(split, d, np.where(full, r_a, 1 / users.q[a])))
        else:
            log_worth = -np.log(users.q[a])
        log_w = (users.log_phi[others] + (1 - alpha) * log_worth) / alpha
        codes, choice = _numbered(code)
        highest = np.full(codes.size, -np.inf)
        np.maximum.at(highest, choice, log_w)
        w = np.exp(log_w - highest[choice])
        total, together, held_together = (np.bincount(choice, values, codes.size).astype(np.float64) for values in (w, B, held))
        columns, of_first, of_second = _columns(users, codes, together, held_together, alpha * (np.log(total) + highest))
        part, size = w / total[choice], np.bincount(choice)
        return cls(users, a, b, choice, size, part, B, held, together, held_together, columns, of_first, of_second)

    def together_of(self, z: FloatArray) -> FloatArray:
        """Return the sums of values z of pairs, (pairs,), by column."""
        of_columns = np.zeros(self.columns.number.size)
        of_columns[self.of_first] = np.bincount(self.choice, weights=z[self.first])
        if not self.users.have_own:
            return of_columns
        mine = self.second >= 0
        of_columns += np.bincount(self.of_second[self.choice[mine]], weights=z[self.second[mine]], minlength=of_columns.size)
        return of_columns

    def share(self, z: FloatArray, found: FloatArray) -> None:
        """Set what each of them has of its limits in z, (pairs,), given what the columns have."""
        if not self.users.have_own:
            z[self.first] = self.part * found[self.of_first[self.choice]]
            return
        users, has_own, split = self.users, self.together > 0, self.of_second >= 0
        kappa = users.kappa[self.columns.limit]
        of_first = found[self.of_first] * np.where(has_own, kappa[self.of_first], 1.0)
        of_second = np.where(split, found[self.of_second] * kappa[self.of_second], 0.0)
        mine = self.second >= 0
        second = np.where(mine, np.maximum(self.part * (self.held_together + of_second)[self.choice] - self.held, 0.0), 0.0)
        filled = np.where(has_own, np.minimum((of_first + of_second) / np.where(has_own, self.together, 1.0), 1.0), 0.0)
        first = np.where(
            has_own[self.choice], np.maximum(self.bounds * filled[self.choice] - second, 0.0), self.part * of_first[self.choice]
        )
        z[self.first] = first / np.where(has_own[self.choice], users.kappa[users.limit[self.first]], 1.0)
        z[self.second[mine]] = second[mine] / users.kappa[users.limit[self.second[mine]]]


def _numbered(codes: IntArray) -> tuple[IntArray, IntArray]:
    """Return the different codes, ascending, and the position of each code among them."""
    if codes.max(initial=0) >= codes.size:
        different, position = np.unique(codes, return_inverse=True)
        return different, position
    occurs = np.bincount(codes) > 0
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[codes]


def _columns(
    users: Users, codes: IntArray, together: FloatArray, held: FloatArray, log_weights: FloatArray
) -> tuple[Columns, IntArray, IntArray]:
    """Return the columns of the users of choices, and where the first and the second one of each choice is; -1 where there is no second."""
    n, number = users.shared.size, np.arange(codes.size)
    kind, limit = codes // n, codes % n
    two, has_own = np.flatnonzero(kind >= 2), kind >= 1
    first, second = np.where(kind >= 2, kind - 2, limit), limit[two]
    each = np.where(has_own, together, 1.0)
    besides = held / each
    of_limit = np.append(first, second)
    of_first = np.where(kind >= 2, besides, 1.0) * np.where(has_own, users.kappa[first], 1.0)
    utilities = np.append(of_first, (1 + besides[two]) * users.kappa[second])
    own = np.append(np.where(has_own, users.kappa[first] / each, 0.0), users.kappa[second] / each[two])
    number = np.append(number, two)
    order = np.lexsort((users.program.limits.keys[users.shared[of_limit], 0], number))
    place = np.argsort(order)
    at_second = np.full(codes.size, -1)
    at_second[two] = place[codes.size :]
    return Columns(number[order], of_limit[order], utilities[order], own[order], log_weights), place[: codes.size], at_second
