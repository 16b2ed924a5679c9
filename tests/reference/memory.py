"""Allocations of one resource that remember, by slow loops over moments: users, and trees of queues node by node."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import fairopt as fo

Node = tuple[float, Any]  # a weight, and the children, or the position of a user


def one_resource(trace: fo.Trace, weights: np.ndarray, capacity: float, half_life: float, period: float) -> np.ndarray:
    """Return the ends of the jobs, one a user, of the leximin of faded shares of one resource, by bisection at each moment."""
    n = trace.n_jobs
    left, had, ends, now = trace.job_work.copy(), np.zeros(n), np.full(n, math.nan), 0.0
    rate = 0.0 if math.isinf(half_life) else math.log(2) / half_life
    while np.isnan(ends).any():
        here = (trace.submit <= now + 1e-12) & np.isnan(ends)
        coming = trace.submit[trace.submit > now + 1e-12].min(initial=math.inf)
        if not here.any():
            step, x = coming - now, np.zeros(n)
        else:
            gain = period if not rate else (1 - math.exp(-rate * period)) / rate
            owed = had * math.exp(-rate * period) / gain  # in parts of the capacity
            low, high = 0.0, 1e9
            for _ in range(200):
                t = (low + high) / 2
                x = np.where(here, np.clip((weights * t - owed) * capacity, 0, trace.tasks), 0.0)
                low, high = (t, high) if x.sum() <= capacity else (low, t)
            x = np.where(here, np.clip((weights * low - owed) * capacity, 0, trace.tasks), 0.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = min(np.where(x > 1e-9, left / x, math.inf).min(), coming - now, period)
        fade = math.exp(-rate * step)
        had = had * fade + x / capacity * (step if not rate else (1 - fade) / rate)
        left, now = left - x * step, now + step
        ends[np.isnan(ends) & (left <= 1e-9 * trace.job_work)] = now
    return ends


def levelled(amount: float, past: np.ndarray, weight: np.ndarray, most: np.ndarray) -> np.ndarray:
    """Return what children get of an amount: those come first who have had least by weight."""
    low, high = 0.0, 1e6
    for _ in range(100):
        t = (low + high) / 2
        low, high = (t, high) if np.clip(weight * t - past, 0, most).sum() <= amount else (low, t)
    return np.asarray(np.clip(weight * low - past, 0, most))


def users_of(node: Node) -> list[int]:
    """Return the users below a node."""
    return [node[1]] if isinstance(node[1], int) else [user for child in node[1] for user in users_of(child)]


def divide(node: Node, amount: float, past: np.ndarray, wanted: np.ndarray, x: np.ndarray) -> None:
    """Divide an amount of one resource from a node down."""
    if isinstance(node[1], int):
        x[node[1]] = amount
        return
    below = [users_of(child) for child in node[1]]
    weight = np.array([child[0] for child in node[1]])
    had, most = (np.array([values[users].sum() for users in below]) for values in (past, wanted))
    for child, part in zip(node[1], levelled(amount, had, weight, most), strict=True):
        divide(child, float(part), past, wanted, x)


def one_resource_in_a_tree(trace: fo.Trace, root: Node, capacity: float, half_life: float, period: float) -> np.ndarray:
    """Return the ends of jobs on one server of one resource; a user's jobs run in the order of submission."""
    users, jobs = len(trace.users), trace.n_jobs
    left, had, ends, now = trace.job_work.copy(), np.zeros(users), np.full(jobs, math.nan), 0.0
    rate = 0.0 if math.isinf(half_life) else math.log(2) / half_life
    gain = period if not rate else (1 - math.exp(-rate * period)) / rate
    while np.isnan(ends).any():
        here = (trace.submit <= now + 1e-12) & np.isnan(ends)
        coming = trace.submit[trace.submit > now + 1e-12].min(initial=math.inf)
        wanted, x, speed = np.bincount(trace.user, trace.tasks * here, users), np.zeros(users), np.zeros(jobs)
        divide(root, min(capacity, wanted.sum()), had * math.exp(-rate * period) / gain * capacity, wanted, x)
        unused = x.copy()
        for j in np.flatnonzero(here):
            speed[j] = min(trace.tasks[j], unused[trace.user[j]])
            unused[trace.user[j]] -= speed[j]
        speed[speed < 1e-9] = 0
        with np.errstate(divide="ignore", invalid="ignore"):
            step = min(np.where(speed > 0, left / speed, math.inf).min(), coming - now, period if here.any() else math.inf)
        fade = math.exp(-rate * step)
        had = had * fade + x / capacity * (step if not rate else (1 - fade) / rate)
        left, now = left - speed * step, now + step
        ends[np.isnan(ends) & (left <= 1e-9 * trace.job_work)] = now
    return ends
