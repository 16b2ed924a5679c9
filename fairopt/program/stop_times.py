r"""The filling of a tree as a leximin of stop times, which whole tasks need.

Let Delta[n] be the gain of user n in a part of a filling, in shares. The gains determine the course of the part: users rise at the rates
of the tree, each stops when it has its gain, and the rates of the others change then. The *stop time* T[n] is the time at which user n
stops. Where the share of a queue is the sum of its users' shares, stop times have a closed form. Let n be in the queues v[1], ...,
v[m], from the innermost, w its weight, and S[c] the sum of the gains below a child c:

    l[1] = Delta[n] / w[n],       s[j] = sum over children c of v[j] of min(S[c], w[c] l[j]),       l[j+1] = s[j] / w[v[j]],

and T[n] = l[m+1]; of a user in the root, l[1]. In a queue of the order "listed" the children before that of n have all their gains by then
and those after it nothing, so s[j] is the sum of S[c] over the children before it, plus s[j-1] (plus Delta[n], where n is the child).
(Where guarantees are met, it ends at the guaranteed node, with its rate in place of a weight.) T is concave in the gains, as sums and
minima of such functions are.

*The filling is the leximin of the stop times.* The smallest T is largest at the first level, the fewest users stop there, and so on, by the
same reasoning as in `fairopt.solvers.leximin.levels`. In a list without queues T is the share by weight.

With *whole tasks* that is the definition: the sorted stop times are as large as can be, in lexicographic order, first those of the first
part, then those of the second, with the gains of all parts chosen together. No rising user could have one more task unless another user had
less: with one more task for n, the course is the same until the time at which n stopped; n stops later, and so do all who stop after that.

*Where there is no closed form.* The definition holds for every rule of rates. But with ``queue_share="dominant"`` and users of one queue
who have different dominant resources, T is the integral of a maximum, which is not concave; and where children wait for each other, under
``guarantees="clamp"`` with guarantees, it is not concave either. If all users below each queue share one dominant resource, both shares of
a queue are the same.
"""

from __future__ import annotations

import numpy as np

from fairopt.instance import BoolArray, FloatArray
from fairopt.program.tree_filling import Part, TreeFilling

__all__ = ["no_stop_times", "stop_times"]


def no_stop_times(goal: TreeFilling) -> str:
    """Return why stop times have no closed form, and what to do, as the end of a sentence; "" where they have one."""
    return goal.no_whole_tasks


def stop_times(goal: TreeFilling, part: Part, rising: BoolArray, gains: FloatArray) -> FloatArray:
    """Return the time at which each user who rises in a part stops, (users,); 0 for the others.

    Parameters
    ----------
    rising : bool array (users,)
    gains : array (users,)
        What each of them gains in the part.
    """
    tree, weights = goal.tree, goal.weights
    own = np.where(rising, gains, 0.0)
    sums = np.bincount(tree.user_node, weights=own, minlength=tree.n_nodes).astype(np.float64)
    active = goal.active(rising)
    for v in tree.order:
        sums[tree.parent[v]] += sums[v]
    times = np.zeros(rising.size)
    for n in np.flatnonzero(rising):
        if part.user_rates is not None and part.user_rates[n] > 0:
            times[n] = own[n] / part.user_rates[n]
            continue
        level, node = own[n] / weights[n], int(tree.user_node[n])
        held, child = float(own[n]), -1
        while node:
            users = tree.users_of(node)
            users = users[rising[users]]
            queues = tree.children(node)
            queues = queues[active[queues]]
            if tree.listed[node]:
                held += float(own[users[users < n]].sum() + sums[queues[queues < child]].sum())
            else:
                held = float(
                    np.minimum(own[users], weights[users] * level).sum() + np.minimum(sums[queues], tree.weights[queues] * level).sum()
                )
            if part.node_rates is not None and part.node_rates[node] > 0:
                level = held / float(part.node_rates[node])
                break
            child, level, node = node, held / float(tree.weights[node]), int(tree.parent[node])
        times[n] = level
    return times
