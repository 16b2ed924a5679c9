"""What Kueue's AdmissionChecks and Topologies say of where work runs.

A ClusterQueue with a check of MultiKueue sends its Workloads to other clusters: they hold nothing of this one. A ResourceFlavor with a
``topologyName`` has only nodes with a label of each level of that Topology.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairopt.clusters.account import Account
from fairopt.clusters.json_export import Part
from fairopt.wording import plural

__all__ = ["levels_of", "sending_away"]

_MULTI_KUEUE = "kueue.x-k8s.io/multikueue"


def sending_away(queues: Mapping[str, Part], checks: Sequence[Part], account: Account) -> set[str]:
    """Return the ClusterQueues whose work runs on other clusters, and note those with other checks."""
    remote = {part["metadata"]["name"].text() for part in checks if part["spec"].get("controllerName").text("") == _MULTI_KUEUE}
    found, checked = set(), 0
    for name, part in queues.items():
        listed = [each.text() for each in part["spec"].get("admissionChecks").items()]
        strategy = part["spec"].get("admissionChecksStrategy").get("admissionChecks").items()
        own = {*listed, *(each["name"].text() for each in strategy)}
        if remote & own:
            found.add(name)
        checked += bool(own - remote)
    if checked:
        account.note(
            f"{plural(checked, 'ClusterQueue has', 'ClusterQueues have')} admission checks, which must agree before a Workload is admitted "
            "(MultiKueue sends it to other clusters, which its AdmissionCheck says): here they do not count"
        )
    return found


def levels_of(topologies: Sequence[Part]) -> dict[str, tuple[str, ...]]:
    """Return the labels of the levels of each Topology."""
    return {
        part["metadata"]["name"].text(): tuple(each["nodeLabel"].text() for each in part["spec"].get("levels").items())
        for part in topologies
    }
