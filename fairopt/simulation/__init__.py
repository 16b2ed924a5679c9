"""What happens over time on a cluster: streams of alike tasks, whole tasks by progressive filling, the fluid optimum, and what came of it.

================  ======================================================================================================
``streams``       a trace on a cluster, as the arrays that are simulated
``whole_tasks``   greedy: progressive filling goes on whenever something ends or comes
``fluid``         exact: the optimum of divisible tasks, computed anew whenever something ends or comes
``asynchronous``  PS-DSF by servers that act by themselves every T seconds, beside the exact allocation
``situation``     which jobs are unfinished, who is there and how many servers, from one moment to the next
``series``        what runs and waits, sampled
``result``        `Simulation`
================  ======================================================================================================

`fairopt.simulate.simulate` puts them together.
"""

from __future__ import annotations

from fairopt.simulation.result import Simulation

__all__ = ["Simulation"]
