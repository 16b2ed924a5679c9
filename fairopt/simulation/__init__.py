"""Simulation of a cluster over time: a trace of jobs runs under a scheduler.

=================  ======================================================================================================
``streams``        a trace on a cluster, as the arrays that are simulated
``stream_limits``  named limits over the streams, and how full each was
``whole_tasks``    greedy: progressive filling continues at every event
``baselines``      as clusters schedule: FIFO, EASY backfill, Slurm's fair tree, HTCondor's user priorities (a package)
``fluid``          exact: the optimum of divisible tasks, recomputed at every event
``memory``         the leximin of cumulative shares, which fade with a half-life
``karma``          credits for what users lend and borrow, in rounds
``asynchronous``   PS-DSF by servers that each act alone every T seconds, compared with the exact allocation
``situation``      the unfinished jobs, the present users and the number of servers at one moment
``series``         samples of the running and waiting tasks
``whole_period``   the best that any policy could have done over a period, as one program
``result``         `Simulation`
``side_by_side``   several schedulers on one trace: waiting, slowdown, shortfall, envy
=================  ======================================================================================================

`fairopt.simulation.simulating.simulate` puts them together.
"""

from __future__ import annotations

from fairopt.simulation.result import Simulation

__all__ = ["Simulation"]
