r"""Flow networks as instances: a path is a server of a user, and a link is a named limit whose amounts are 1 on the paths through it.

    sum over the flows n and their paths i through link l of x[n,i] <= capacity of l            for each link l

x[n,i] is the rate of flow n on its path i. `max-min` over it is max-min fairness of flows over several paths, `proportional` is the
fairness of Kelly, Maulloo and Tan (1998), and its ``alpha`` is that of Mo and Walrand (2000).

A "server" is the first path of every flow, the second, and so on; so an instance has as many servers as a flow has paths at most. They are
no bottleneck: each has twice what all links could carry.

A linear network: one long flow over L links, and a short flow on each. Under alpha-fairness the long flow has 1 / (1 + L^(1 / alpha)).

>>> import fairopt as fo
>>> links = {"1": 1, "2": 1, "3": 1}
>>> flows = {"long": [["1", "2", "3"]], "short 1": [["1"]], "short 2": [["2"]], "short 3": [["3"]]}
>>> network = fo.Instance.from_paths(links, flows)
>>> fo.solve(network, "max-min").tasks_per_user.round(6)
array([0.5, 0.5, 0.5, 0.5])
>>> fo.solve(network, "proportional").tasks_per_user.round(6)
array([0.25, 0.75, 0.75, 0.75])
>>> fo.solve(network, "proportional", alpha=2).tasks_per_user[0].round(6) == round(1 / (1 + 3**0.5), 6)
np.True_
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fairopt.errors import InvalidInstance
from fairopt.instance.fractions import fraction_of
from fairopt.instance.limits import Limit
from fairopt.validation import is_number
from fairopt.wording import did_you_mean, joined, written

__all__ = ["arguments_of_paths"]

RESOURCE = "flow"
"""The resource of which a unit of every flow takes 1."""


def arguments_of_paths(links: Mapping[str, Any], flows: Mapping[str, Sequence[Sequence[str]]]) -> dict[str, Any]:
    """Return the arguments of the constructor for a network: users are the flows, limits the links.

    Raises
    ------
    InvalidInstance
        A link is unknown, or its capacity is not finite and >= 0; a flow has no path, or a path no link, or a link twice.
    """
    if not isinstance(links, Mapping) or not isinstance(flows, Mapping):
        raise InvalidInstance('links must be a mapping such as {"a-b": 10}, and flows one such as {"f": [["a-b", "b-c"]]}')
    if not flows:
        raise InvalidInstance("there are no flows; give each flow a list of paths, and each path a list of links")
    for link, capacity in links.items():
        if not is_number(float(capacity) if not isinstance(capacity, str) else capacity) or capacity < 0:
            raise InvalidInstance(f'the capacity of link "{link}" must be finite and >= 0, got {written(capacity)}')
    most = 0
    through: dict[str, dict[str, dict[str, int]]] = {link: {} for link in links}
    for flow, paths in flows.items():
        if isinstance(paths, str) or not isinstance(paths, Sequence) or not paths:
            raise InvalidInstance(f'flow "{flow}" must have a list of paths, each a list of links, got {written(paths)}')
        most = max(most, len(paths))
        for k, path in enumerate(paths, 1):
            if isinstance(path, str) or not isinstance(path, Sequence) or not path:
                raise InvalidInstance(f'flow "{flow}": path {k} must be a list of links, got {written(path)}')
            for link in path:
                if link not in through:
                    there = did_you_mean(str(link), [*links]) or f"; the links are {joined([*map(str, links)], 8)}"
                    raise InvalidInstance(f'flow "{flow}": path {k} takes the link "{link}", which is none{there}')
                own = through[link].setdefault(flow, {})
                if f"path {k}" in own:
                    raise InvalidInstance(f'flow "{flow}": path {k} takes the link "{link}" twice; a path takes each link once')
                own[f"path {k}"] = 1
    servers = [f"path {k}" for k in range(1, most + 1)]
    has = np.array([[k < len(paths) for k in range(most)] for paths in flows.values()])
    enough = 2 * sum(fraction_of(capacity) for capacity in links.values()) or 1
    return {
        "capacities": [[enough]] * most,
        "demands": np.ones((len(flows), 1), int),
        "eligibility": None if has.all() else has,
        "limits": [Limit(_without_dot(link, links), capacity, amounts=through[link]) for link, capacity in links.items() if through[link]],
        **{"users": list(flows), "servers": servers, "resources": [RESOURCE]},
    }


def _without_dot(link: str, links: Mapping[str, Any]) -> str:
    """Return the name of a link as the name of a limit, which has no dot; that of no other link."""
    name = str(link).replace(".", "_")
    while name != link and name in links:
        name += "_"
    return name
