"""The steps of progressive filling: the choice of the user, the choice of the server, and the placement of one task.

A placement changes one server, and only reduces its free resources. This makes filling fast: a user whose task fits on no server is
finished, and searches go on where they ended. Memory is linear in users, servers, and the users x rows of the instance.

====================  ===============================================================================
``servers``           where a task fits, and which server it gets
``users``             whose turn it is, and the placement
``fill``              both in turn: of one instance
``events``            tasks that start and end, users and servers that come and go
``over_time``         both in turn at each moment of a simulation
``accounts``          what users of queues hold of guarantees, limits, and what queues keep
``queues``            both in turn with a tree of queues
``queues_over_time``  the same at each moment of a simulation
``codes``             rules, measures and events as plain numbers
====================  ===============================================================================

All steps are one kernel (`fairopt.solvers.compiled`): they are compiled together, and anew when one of these files changes.
"""

from __future__ import annotations

from fairopt.solvers.filling.kernel.accounts import bar, record, resize, settle
from fairopt.solvers.filling.kernel.events import apply_event, close_absent, end_task, pop, start_task
from fairopt.solvers.filling.kernel.filling import fill, fill_by_server
from fairopt.solvers.filling.kernel.over_time import advance, drop_those_without, gather, next_stream
from fairopt.solvers.filling.kernel.queues import (
    choose_in_tree,
    fill_tree,
    fill_tree_by_server,
    fitting_in_tree,
    next_in_tree,
    place_in_tree,
)
from fairopt.solvers.filling.kernel.queues_over_time import advance_in_tree, next_stream_in_tree
from fairopt.solvers.filling.kernel.servers import fitting
from fairopt.solvers.filling.kernel.users import next_user, place

__all__ = [
    "advance",
    "advance_in_tree",
    "apply_event",
    "bar",
    "choose_in_tree",
    "close_absent",
    "drop_those_without",
    "end_task",
    "fill",
    "fill_by_server",
    "fill_tree",
    "fill_tree_by_server",
    "fitting",
    "fitting_in_tree",
    "gather",
    "next_in_tree",
    "next_stream",
    "next_stream_in_tree",
    "next_user",
    "place",
    "place_in_tree",
    "pop",
    "record",
    "resize",
    "settle",
    "start_task",
]

OPTIONS = {"_nrt": False}  # no step allocates an array, so none counts references within: a third less to compile
