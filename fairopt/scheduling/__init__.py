"""Greedy schedules of whole tasks, by progressive filling, and the baselines of papers.

================  =========================================================
``greedy``        `schedule`, and the record of its placements
``arguments``     criterion, placement and their options, checked
``arrays``        the input of progressive filling for an instance
``queues``        its queues
``in_fractions``  the same schedules in fractions, and their check
``baselines``     the approximations that papers compare with, one a file
``precomputed``   precomputed DRF, and the rounds of DRF of divisible tasks
================  =========================================================
"""

from __future__ import annotations

from fairopt.scheduling.arguments import check_single_servers, placement_of, plan_of, planned
from fairopt.scheduling.arrays import filling_of
from fairopt.scheduling.baselines import BASELINES, Baseline
from fairopt.scheduling.greedy import Record, schedule
from fairopt.scheduling.queues import queues_of, server_limits

__all__ = [
    "BASELINES",
    "Baseline",
    "Record",
    "check_single_servers",
    "filling_of",
    "placement_of",
    "plan_of",
    "planned",
    "queues_of",
    "schedule",
    "server_limits",
]
