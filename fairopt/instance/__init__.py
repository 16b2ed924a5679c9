"""What is asked: the servers of a cluster, the users who share them, and their queues.

==================  ================================================================================
``instance``        `Instance`
``queues``          `Queue` and `Quota`
``limits``          `Limit`, a named limit
``named``           labels, queues and attributes: what limits and rules can name
``selections``      what a named limit selects, and the rows that it makes
``limit_merging``   named limits of merged and single rows
``task_limits``     named limits that say no more than `tasks`
``shared``          resources of the cluster, which no server has
``flows``           flow networks: `Instance.from_paths`
``requirements``    the language of ``requires``: ``model = A100; cores >= 4``
``rules``           `Rule`: linear conditions of any sign, and their text
``rule_rows``       what rules are about: users, servers, what each task counts
``rule_sides``      both sides of a rule at an allocation
``packing_rules``   rules that are limits: no coefficient and no bound is negative
``tree``            the tree of queues and users
``keeping``         what queues keep of their guarantees by lending limits
``kept_together``   what queues keep where their guarantees cannot be met together
``arguments``       what an instance makes of its arguments, checked
``derived``         what follows from the data: capacity, rates, who runs nowhere
``labelled``        values given by label: ``instance.replace(weights={"vision": 3})``
``by_server``       demands and speeds of a user that differ by server
``work_units``      the same instance with tasks that are units of work
``replacing``       the arguments of a changed instance
``hosts``           names of hosts, with ranges in brackets: ``cn[1,3,5]``
``attributes``      what ``requires`` asks for
``facts``           hosts, attributes and owners of an instance, and where they go with their rows
``fractions``       fractions beside floating point: numbers as they are written
``tolerances``      how near two floats are to count as equal, everywhere
``ratios``          quotients where a resource may be missing
``pooling``         all servers as one
``aggregation``     identical servers and users as one row, and the way back
``exact_merging``   the same in fractions
``records``         an instance as plain data, labelled arrays, one line
``remarks``         what a tree of queues allows but what must be said
``units``           units of resources, and amounts as text
``quantities``      numbers with a unit: ``256GiB``, ``1/3``
``numerals``        numbers as people write them
``doubts``          what is implausible: units, weights, names
``rivals``          whose weight decides what a user or a queue gets
==================  ================================================================================
"""

from __future__ import annotations

from fairopt.instance.instance import BoolArray, FloatArray, Instance, IntArray, require_instance, safe_ratio
from fairopt.instance.limits import Limit
from fairopt.instance.queues import Queue, Quota
from fairopt.instance.rules import Rule, tasks

__all__ = [
    "BoolArray",
    "FloatArray",
    "Instance",
    "IntArray",
    "Limit",
    "Queue",
    "Quota",
    "Rule",
    "require_instance",
    "safe_ratio",
    "tasks",
]
