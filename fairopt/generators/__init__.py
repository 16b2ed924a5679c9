"""Random instances, flow networks and traces: `GENERATORS` maps the name of each distribution of instances to its function."""

from __future__ import annotations

from fairopt.generators.instances import (
    GENERATORS,
    Generator,
    Seed,
    constrained,
    correlated,
    generate,
    generator,
    google,
    google_servers,
    gpus,
    kesidis,
    uniform,
)
from fairopt.generators.networks import grid, random_graph
from fairopt.generators.traces import generate_trace

__all__ = [
    "GENERATORS",
    "Generator",
    "Seed",
    "constrained",
    "correlated",
    "generate",
    "generate_trace",
    "generator",
    "google",
    "google_servers",
    "gpus",
    "grid",
    "kesidis",
    "random_graph",
    "uniform",
]
