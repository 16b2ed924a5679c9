"""Writes ``google-cluster.yaml``: the published servers of a Google cluster, and 900 synthetic users.

::

    python examples/make_google_users.py

The servers are Table I of the DRFH paper. The users are synthetic and drawn from one seed, and so are the attributes of the servers
that some users require. They are meant to be plausible: demands are 0.005 to 0.25 of the largest machine (mostly CPU, mostly memory, or
both alike), weights are 1, 2 and 4, three users in twenty can use only a part of the cluster, and three in ten have finitely many tasks.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

# CPU and memory relative to the largest machine, number of servers; platform and kind are synthetic.
SERVERS = [
    (0.50, 0.50, 6732, "B", "standard"),
    (0.50, 0.25, 3863, "B", "lean"),
    (0.50, 0.75, 1001, "B", "rich"),
    (1.00, 1.00, 795, "C", "standard"),
    (0.25, 0.25, 126, "A", "standard"),
    (0.50, 0.12, 52, "D", "lean"),
    (0.50, 0.03, 5, "D", "lean"),
    (0.50, 0.97, 5, "D", "rich"),
    (1.00, 0.50, 3, "D", "lean"),
    (0.50, 0.06, 1, "D", "lean"),
]
# Requirements, and which part of the constrained users has each. Platforms A and D are small, so their users compete for less.
WISHES = {
    "platform = A": 0.2,
    "platform = D": 0.1,
    "platform = D; kind = lean": 0.1,
    "platform = C": 0.2,
    "kind = rich": 0.1,
    "kind != lean": 0.2,
    "platform = B; kind in standard|rich": 0.1,
}
USERS = 900
HEAD = """\
title: A Google cluster of 12,583 servers, with 900 synthetic users
description: >-
  The servers are those of Table I in Wang, Li and Liang, "Dominant Resource Fairness in Cloud Computing Systems with Heterogeneous
  Servers": capacities relative to the largest machine, and the number of each. The users and the servers' attributes
  "platform" and "kind" are NOT data of that cluster: they are synthetic, and make_google_users.py says how it draws them.
resources: [cpu, memory]
"""


def document() -> str:
    """Return the text of the file."""
    rng = np.random.default_rng(2014)
    lines = [HEAD, "servers:\n"]
    for j, (cpu, memory, count, platform, kind) in enumerate(SERVERS):
        capacity = f"capacity: {{cpu: {cpu:g}, memory: {memory:g}}}"
        lines.append(f"  - {{name: class-{j + 1:02}, {capacity}, count: {count}, attributes: {{platform: {platform}, kind: {kind}}}}}\n")
    lines.append("users:\n")
    for n in range(USERS):
        # The dominant demand is around 0.03 of the largest machine; the other is a third of it, or nearly the same.
        large = float(np.clip(rng.lognormal(np.log(0.03), 0.8), 0.005, 0.25))
        shape = str(rng.choice(["cpu", "memory", "balanced"], p=[0.35, 0.3, 0.35]))
        small = large * float(rng.uniform(0.7, 1.0) if shape == "balanced" else rng.uniform(0.15, 0.6))
        cpu, memory = (small, large) if shape == "memory" else (large, small)
        parts = [f"name: {shape}-{n + 1:03}", f"demand: {{cpu: {cpu:.4f}, memory: {memory:.4f}}}"]
        weight = int(rng.choice([1, 2, 4], p=[0.7, 0.2, 0.1]))
        if weight > 1:
            parts.append(f"weight: {weight}")
        if rng.random() < 0.3:
            parts.append(f"tasks: {round(float(np.exp(rng.uniform(np.log(5), np.log(2000)))))}")
        if rng.random() < 0.15:
            wish = str(rng.choice(list(WISHES), p=list(WISHES.values())))
            parts.append(f"requires: {wish!r}")
        lines.append(f"  - {{{', '.join(parts)}}}\n")
    return "".join(lines)


if __name__ == "__main__":
    target = Path(__file__).with_name("google-cluster.yaml")
    target.write_text(document(), encoding="utf-8", newline="\n")
    print(f"{target.name}: {target.stat().st_size:,} bytes")
