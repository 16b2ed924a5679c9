"""A level of which many users may run on the same servers, from groups of them.

Users who may run on the same servers, use the same resources and are alike on the course (all rise, or all are settled) are groups of
similar shape. The members of a group have their levels in the same proportions on all servers. So a group is one user, and its pair with a
server takes what the pairs of its members take together. That restricts the program, but not its optimum, if the pairs that are the
cheapest for the group are the cheapest for each of its members (`fairopt.solvers.large.groups`). It is so where one resource is short on
all servers at the same price, as at the last levels of users who may run nearly everywhere: there a few groups are enough.

Nothing is assumed of that: the prices of the groups are tried on all pairs (`LevelGroups.spread`), and prove the level of all users or do
not. A pair of a group that is not used stays open to those of its members whom it costs no more than their cheapest ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fairopt.instance import BoolArray, FloatArray, IntArray
from fairopt.solvers.interior_point.finish import Sets
from fairopt.solvers.interior_point.path import Face, LevelPath, LevelResult
from fairopt.solvers.interior_point.steps import Point
from fairopt.solvers.large.groups import finer
from fairopt.solvers.large.settings import SETTINGS
from fairopt.solvers.structure.scaling import ScaledProgram

__all__ = ["LevelGroups"]


@dataclass(frozen=True, slots=True, eq=False)
class LevelGroups:
    """Groups of the users of a part, each in the place of its first member; users by themselves are groups of one.

    Attributes
    ----------
    part : ScaledProgram
        Of all users.
    face : Face
        The same.
    program : ScaledProgram
        Of the groups.
    face_of_groups : Face
    group : int array (users,)
    pair : int array (pairs,)
        The pair of the group of each pair.
    size : array (users,)
        By how much a user rises, or its level if it is settled, relative to the first of its group.
    parts : array (pairs,)
        x of each pair, where that of the pair of its group is 1.
    """

    part: ScaledProgram
    face: Face
    program: ScaledProgram
    face_of_groups: Face
    group: IntArray
    pair: IntArray
    size: FloatArray
    parts: FloatArray

    @classmethod
    def of(cls, part: ScaledProgram, face: Face, before: IntArray) -> LevelGroups | None:
        """Return the groups of a part, None where they are not much fewer than the users.

        ``before``, (users,), numbers the groups of an earlier level, -1 for users by themselves: only these are split further.
        """
        if part.across.shape[0]:
            return None
        kind = _kinds(part, face, before)
        while True:
            alike = np.flatnonzero(kind >= 0)
            theirs = np.count_nonzero(kind[part.user] >= 0)
            if theirs < max(SETTINGS.pairs_of_level_groups, SETTINGS.part_in_level_groups * part.n_pairs):
                return None
            first = part.first[alike]
            shape = (part.A[:, first] / part.W[first]).T * _course_size(face)[alike, None]
            label = np.arange(part.n_users) + part.n_users
            label[alike] = finer(kind[alike], shape, SETTINGS.level_groups)
            if (label[alike].max() + 1) * SETTINGS.users_of_level_group > alike.size:
                return None
            groups = cls._of_labels(part, face, label)
            # Settled users with equations for their levels have to begin in the same proportions: full limits are equations, too.
            off = np.abs(groups.parts * groups.face_of_groups.x[groups.pair] - face.x)
            moved = face.tight & (kind >= 0) & (np.maximum.reduceat(off, part.first) > SETTINGS.moved_of_level_group)
            if not moved.any():
                return groups
            kind = np.where(moved, -1, kind)

    @classmethod
    def _of_labels(cls, part: ScaledProgram, face: Face, label: IntArray) -> LevelGroups:
        user = part.user
        leader = np.unique(label, return_index=True)[1]  # first members
        order = np.argsort(leader)
        leader = leader[order]
        place = np.empty(leader.size, np.int64)
        place[order] = np.arange(leader.size)
        group = place[np.unique(label, return_inverse=True)[1]]
        kept = np.zeros(part.n_users, bool)
        kept[leader] = True
        own = np.flatnonzero(kept[user])  # pairs of the first members
        small = part.part(own)
        pair = small.first[group][user] + np.arange(user.size) - part.first[user]  # members have the same servers as the first
        size = _course_size(face)
        size = size / size[leader][group]
        parts = size[user] * small.W[pair] / part.W
        A = np.array([np.bincount(pair, weights=row * parts, minlength=own.size) for row in part.A])
        unit = A.max(axis=0)
        gives = np.bincount(pair, weights=part.W * face.x, minlength=own.size) / np.bincount(group, weights=size)[small.user]
        small = replace(small, A=A / unit, W=small.W / unit)
        course = face.course.of(leader)
        of_groups = replace(face, course=course, tight=face.tight[leader], x=gives / small.W)
        return cls(part, face, small, of_groups, group, pair, size, parts / unit[pair])

    @property
    def is_together(self) -> BoolArray:
        """Say of each user whether it is in a group with others, (users,)."""
        return (np.bincount(self.group) > 1)[self.group]

    def spread(self, whole: LevelPath, end: LevelResult, all_users: LevelPath) -> LevelResult:
        """Return what the end of a path of the groups shows and proves of all users.

        Parameters
        ----------
        whole : LevelPath
            Of the groups, before some of them are settled at caps.
        end : LevelResult
            Where it ended.
        all_users : LevelPath
        """
        path = all_users.without((whole.rising & ~end.path.rising)[self.group])
        if not path.rising.any():
            return LevelResult(path, end.reached, end.steps)
        ended = end.path.ended(end.reached)
        sets, few, pairs = ended.sets, end.path.pairs, path.pairs
        assert sets is not None
        x, s, v = few.parts(ended.point.primal)
        _, p, m = few.parts(ended.point.dual)
        price = np.where(self.is_together, pairs.cheapest(p, m[:0]), m[self.group])
        x = pairs.eligible(pairs.lay(few.numbers(x)[self.pair] * self.parts), 1.0)
        cost = pairs.cost(p)
        z = cost - pairs.along_rows(price)
        used = pairs.lay(few.numbers(sets.used)[self.pair].astype(np.float64)) > 0
        used |= z <= SETTINGS.dear_of_level_group * np.abs(cost)
        point = Point(pairs.point(x, s, v[self.group] * self.size), pairs.point(z, p, price), ended.point.t)
        proved = path.proved(point)
        return LevelResult(path, replace(proved, sets=Sets(used, sets.full, sets.stopped[self.group], sets.ambiguity)), end.steps)


def _course_size(face: Face) -> FloatArray:
    """Return by how much each user rises, or the level of those who are settled, (users,)."""
    return np.where(face.course.rising, face.course.rate, face.course.start)


def _kinds(part: ScaledProgram, face: Face, before: IntArray) -> IntArray:
    """Number the kinds of users that groups are made of, -1 for all others, (users,).

    These are users with many servers, without a cap if they rise.
    """
    rising, many = face.course.rising, np.bincount(part.user) >= SETTINGS.servers_of_level_group * part.n_servers
    may = many & (_course_size(face) > 0) & np.where(rising, np.isinf(part.cap) & (face.course.start == 0), True)
    kind = np.full(part.n_users, -1)
    if not may.any():
        return kind
    users = np.flatnonzero(may)
    place = np.full(part.n_users, -1)
    place[users] = np.arange(users.size)
    pairs = np.flatnonzero(may[part.user])
    there = np.zeros((users.size, part.n_servers), bool)
    there[place[part.user[pairs]], part.server[pairs]] = True
    uses = (part.A[:, part.first[users]] > 0).T
    rows = np.hstack([np.packbits(there, axis=1), uses, rising[users, None], face.tight[users, None]])
    same = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    kind[users] = np.unique(np.stack([same, before[users]]), axis=1, return_inverse=True)[1].ravel()
    return kind
