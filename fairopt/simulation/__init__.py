"""Simulation of a cluster over time: a trace of jobs runs under a scheduler.

===================  ====================================================================================================
``simulating``       `simulate`: a trace of jobs on a cluster under a scheduler
``schedulers``       the list of schedulers, for ``fairopt schedulers`` and for hints
``plans``            a scheduler's specification, such as ``fairtree:half_life=1h``, as what it asks for
``streams``          a trace on a cluster, as the arrays that are simulated
``by_server``        what a task takes, and how fast it runs, where servers differ
``stream_limits``    named limits over the streams, and how full each was
``billing``          what a task is billed each second
``past_usage``       what owners had used before the simulation begins
``situation``        the unfinished jobs, the present users and the number of servers at one moment
``whole_tasks``      greedy: progressive filling continues at every event
``baselines``        as clusters schedule: FIFO, EASY backfill, Slurm's fair tree, HTCondor's user priorities (a package)
``fluid``            exact: the optimum of divisible tasks, recomputed at every event
``flow_state``       the state of a fluid simulation as plain arrays
``flow_samples``     samples of a fluid simulation, by steps or by events
``repeated``         exact allocations at one moment after another: for simulations and histories
``memory``           the leximin of cumulative shares, which fade with a half-life
``memory_in_trees``  the same in a tree of queues, node by node
``following``        exact allocations whose weights follow the usage: KAI's fairness over time
``karma``            credits for what users lend and borrow, in rounds
``finish_times``     the exact scheduler of the notion `finish-time`
``asynchronous``     PS-DSF by servers that each act alone every T seconds, compared with the exact allocation
``window_ranks``     the order of users by windows (Maui, Moab), and when it changes
``priorities``       why a user has its priority, who is next, and when that changes
``whole_period``     the best that any policy could have done over a period, as one program
``result``           `Simulation`: jobs, users and samples
``series``           samples over time, as step functions
``records``          a simulation as plain data for JSON
``moments``          the regret of what ran, at some moments
``running_alone``    the jobs of one owner, alone with its slice of the cluster
``finish_ratios``    how much later each job ended than alone
``completion``       the part of each user's tasks that ended, and completion times by job size
``courses``          what one trace became under each scheduler: waiting, slowdown, shortfall, envy
``side_by_side``     several schedulers on one trace, kept in a folder as they finish
``studying``         a grid of traces, clusters, schedulers and seeds, as one table
``study_parts``      a part of such a grid for each task of a job array, and the parts together
``keeping``          the state of a simulation in a file, to continue a stopped one
``arriving_tasks``   how much of a resource is allocated as tasks arrive
``arrival_curves``   the result of `fairopt.arrivals`
===================  ====================================================================================================

`fairopt.simulation.simulating.simulate` puts them together.
"""

from __future__ import annotations

from fairopt.simulation.result import Simulation

__all__ = ["Simulation"]
