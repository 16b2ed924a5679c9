"""Clusters of hosts alone."""

from __future__ import annotations

from fairopt.clusters.log_cluster import cluster_of_hosts


def test_hosts_that_are_alike_are_a_row() -> None:
    """By what they have and by their kind, in the order of numbers in names; a resource that no host has is left out."""
    hosts = [
        ("n10", {"gpu": 1.0, "cpu": 8.0}, "a"),
        ("n2", {"cpu": 8.0, "gpu": 1.0, "disk": 0.0}, "a"),
        ("n3", {"cpu": 8.0, "gpu": 1.0}, "b"),
    ]
    cluster = cluster_of_hosts(hosts)
    assert cluster is not None
    assert (cluster.resources, cluster.hosts) == (("cpu", "gpu"), (("n2", "n10"), ("n3",)))
    assert (cluster.capacities.tolist(), cluster.counts.tolist()) == ([[8, 1], [8, 1]], [2, 1])


def test_nothing_to_share() -> None:
    """Hosts without amounts are no cluster."""
    assert cluster_of_hosts([("n1", {"cpu": 0.0}, "")]) is None
    assert cluster_of_hosts([]) is None
