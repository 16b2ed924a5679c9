"""How long an import of 5,000 nodes and 50,000 pods takes, and how much memory, beside reading the same files with ``json`` alone.

    python benchmarks/imports.py [CASE ...]

The exports are synthetic, drawn with a fixed seed, in the form of ``kubectl get ... -o json``. Every measurement is a process of its own,
which reads the first objects of each file before; processor time and the peak of the whole process. Writes benchmarks/results/imports.md
and imports.json.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measuring import Row, in_own_process, machine, warm_up, write

import fairopt as fo

RESULTS = Path(__file__).resolve().parent / "results"
NODES, PODS = 5_000, 50_000
KINDS = (("a", 64, 256, 0), ("b", 96, 384, 4), ("c", 128, 1024, 8), ("d", 32, 128, 0))  # cores, GiB, GPUs
ZONES = 3
FEW = 40  # objects of each file of a small import
LIMIT = 300.0  # seconds
GPU, HOST = "nvidia.com/gpu", "kubernetes.io/hostname"

Object = dict[str, Any]


def node(i: int, cores: float, taints: list[Object]) -> Object:
    """Return a node of one of four kinds, in one of three zones."""
    kind, _, memory, gpus = KINDS[i % len(KINDS)]
    has = {"cpu": f"{cores:g}", "memory": f"{memory}Gi", GPU: str(gpus), "pods": "110"}
    return {
        "kind": "Node",
        "metadata": {"name": f"n{i}", "labels": {HOST: f"n{i}", "kind": kind, "zone": f"z{i % ZONES}"}},
        "spec": {"taints": taints} if taints else {},
        "status": {"allocatable": has, "capacity": has, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def pod(i: int, namespace: str, rng: np.random.Generator, **spec: Any) -> Object:
    """Return a pod that runs, of one of 25 sizes; a fifth selects its zone."""
    cores, memory = int(rng.choice([100, 250, 500, 1000, 2000])), int(rng.choice([128, 256, 512, 1024, 4096]))
    container = {"name": "c", "resources": {"requests": {"cpu": f"{cores}m", "memory": f"{memory}Mi"}}}
    if rng.random() < 0.2:
        spec["nodeSelector"] = spec.get("nodeSelector", {}) | {"zone": f"z{i % NODES % ZONES}"}
    return {
        "kind": "Pod",
        "metadata": {"name": f"p{i}", "namespace": namespace, "uid": f"u{i}"},
        "spec": {"nodeName": f"n{i % NODES}", "containers": [container], **spec},
        "status": {"phase": "Running"},
    }


def four_kinds() -> list[list[Object]]:
    """4 kinds of nodes, 200 namespaces."""
    rng = np.random.default_rng(0)
    pods = [pod(i, f"ns{rng.integers(0, 200)}", rng) for i in range(PODS)]
    return [[node(i, KINDS[i % len(KINDS)][1], []) for i in range(NODES)], pods]


def all_different() -> list[list[Object]]:
    """5,000 different nodes, 200 namespaces."""
    nodes, pods = four_kinds()
    return [[node(i, KINDS[i % len(KINDS)][1] + i / 1000, []) for i in range(len(nodes))], pods]


def constrained() -> list[list[Object]]:
    """Taints, pods that select their host, affinity to fields, 500 ClusterQueues of 4 flavors in 20 cohorts."""
    rng = np.random.default_rng(1)
    taints = [{"key": GPU, "value": "present", "effect": "NoSchedule"}], [{"key": "team", "value": "x", "effect": "NoExecute"}]
    nodes = [node(i, KINDS[i % len(KINDS)][1], taints[i % len(taints)] if i % 10 < 4 else []) for i in range(NODES)]
    tolerations = [{"operator": "Exists", "key": GPU}, {"key": "team", "value": "x"}]
    pods = []
    for i in range(PODS):
        spec: Object = {"tolerations": tolerations}
        if i % 10 == 0:
            spec["nodeSelector"] = {HOST: f"n{i % NODES}"}
        elif i % 10 == 1:
            terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [f"n{i % NODES}"]}]}]
            spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
        pods.append(pod(i, f"ns{rng.integers(0, 500)}", rng, **spec))
        pods[-1]["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "main"}
    return [nodes, pods, [each for j in range(500) for each in _queues(j)]]


def _queues(j: int) -> list[Object]:
    """Return a ClusterQueue of Kueue and the LocalQueue of its namespace."""
    resources = [{"name": name, "nominalQuota": amount} for name, amount in (("cpu", "200"), ("memory", "800Gi"))]
    groups = [{"coveredResources": ["cpu", "memory"], "flavors": [{"name": kind[0], "resources": resources} for kind in KINDS]}]
    queue, local = {"cohort": f"c{j % 20}", "resourceGroups": groups}, {"clusterQueue": f"cq{j}"}
    made = [("ClusterQueue", {"name": f"cq{j}"}, queue), ("LocalQueue", {"name": "main", "namespace": f"ns{j}"}, local)]
    if j == 0:
        made += [("ResourceFlavor", {"name": kind[0]}, {"nodeLabels": {"kind": kind[0]}}) for kind in KINDS]
    return [{"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": kind, "metadata": name, "spec": spec} for kind, name, spec in made]


CASES: dict[str, tuple[Callable[[], list[list[Object]]], str]] = {
    "four kinds": (four_kinds, "json"),
    "all different": (all_different, "json"),
    "constrained": (constrained, "json"),
    "four kinds, YAML": (four_kinds, "yaml"),
}


def export(made: list[list[Object]], form: str, folder: Path) -> list[str]:
    """Write the files of a case, nodes, pods and queues, and return their paths."""
    folder.mkdir(exist_ok=True)
    paths = []
    for kind, items in zip(("nodes", "pods", "queues"), made, strict=False):
        paths.append(folder / f"{kind}.{form}")
        listed = {"apiVersion": "v1", "kind": "List", "items": items}
        with paths[-1].open("w", encoding="utf-8") as file:
            if form == "json":
                json.dump(listed, file)
            else:
                import yaml

                yaml.dump(listed, file, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper))
    return list(map(str, paths))


def few(folder: Path) -> Path:
    """Return the folder of the small files beside those of a case."""
    return folder / "few"


def read(how: str, paths: list[str]) -> Any:
    """Import the files by fairopt, or only read them."""
    if how == "fairopt":
        return fo.import_kubernetes(paths[0], paths[1], queues=paths[2:])
    if paths[0].endswith("json"):
        return [json.loads(Path(path).read_text(encoding="utf-8")) for path in paths]
    import yaml

    return [yaml.load(Path(path).read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) for path in paths]


def measure(how: str, paths: list[str]) -> Row:
    """Read the files, in this process."""
    warm_up(lambda: read(how, [str(few(Path(path).parent) / Path(path).name) for path in paths]))
    clock = time.process_time()
    found = read(how, paths)
    seconds = time.process_time() - clock
    del found
    return {"processor": seconds, "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


def main() -> None:
    """Measure the cases and write the table."""
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(sys.argv[2], sys.argv[3:])))
        return
    rows = []
    for name in sys.argv[1:] or CASES:
        with tempfile.TemporaryDirectory() as folder:
            make, form = CASES[name]
            made = make()
            export([items[:FEW] for items in made], form, few(Path(folder)))
            paths = export(made, form, Path(folder))
            size = sum(Path(path).stat().st_size for path in paths) / 1e6
            found = {how: in_own_process(__file__, ["--measure", how, *paths], LIMIT) for how in ("fairopt", "plain")}
        rows.append({"case": name, "megabytes": size, **found})
        print(rows[-1])
    lines = [
        "# Benchmarks of imports",
        "",
        f"{machine()}; one run of `benchmarks/imports.py`, {time.strftime('%Y-%m-%d')}. {NODES:,} nodes, {PODS:,} pods. "
        "Seconds of processor time; peak of the process, GiB. "
        "Plain: `json.loads`, or PyYAML's loader (with libyaml where it is there), and nothing more.",
        "",
        "| case | MB | fairopt, s | peak | plain, s | peak |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [
            str(own["failed"]) + " | " if "failed" in own else f"{own['processor']:.1f} | {own['peak_gib']:.2f}"
            for own in (row["fairopt"], row["plain"])
        ]
        make, form = CASES[row["case"]]
        lines.append(f"| {(make.__doc__ or '').rstrip('.')} ({form}) | {row['megabytes']:.0f} | {' | '.join(cells)} |")
    print("\n".join(lines))
    if len(rows) == len(CASES):
        write(RESULTS / "imports.md", "\n".join(lines) + "\n")
        write(RESULTS / "imports.json", json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
