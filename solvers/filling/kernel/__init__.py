"""The steps of progressive filling: the choice of the user, the choice of the server, and the placement of one task.

A placement changes one server, and only reduces its free resources. This makes filling fast: a user whose task fits on no server is
finished, and searches go on where they ended. Memory is linear in users, servers, and the users x rows of the instance.

====================  ===============================================================================
``servers``           where a task fits, and which server it gets
``users``             whose turn it is, and the placement
``accounts``          what users of queues hold of guarantees, limits, and what queues keep
``queues``            whose turn it is, and the placement, with a tree of queues
``filling``           both in turn: of one instance
``events``            tasks that start and end, users and servers that come and go
``over_time``         whose turn it is at a moment of a simulation, and where a task fits then
``queues_over_time``  the same with a tree of queues
``moments``           both in turn: moment by moment
``codes``             rules, measures and events as plain numbers
====================  ===============================================================================

All steps are one kernel (`fairopt.solvers.compiled`): they are compiled together, and anew when one of these files changes.
"""

from __future__ import annotations

from fairopt.solvers.filling.kernel.accounts import bar, record, resize, settle
from fairopt.solvers.filling.kernel.events import close_absent, start_task
from fairopt.solvers.filling.kernel.filling import fill, fill_by_server
from fairopt.solvers.filling.kernel.moments import advance, begin_moment, end_moment, next_moment
from fairopt.solvers.filling.kernel.over_time import drop_those_without, next_stream
from fairopt.solvers.filling.kernel.queues import fitting_in_tree, next_in_tree, place_in_tree
from fairopt.solvers.filling.kernel.queues_over_time import next_stream_in_tree
from fairopt.solvers.filling.kernel.servers import fitting
from fairopt.solvers.filling.kernel.users import next_user, place

__all__ = [
    "advance",
    "advance_in_tree",
    "bar",
    "begin_moment",
    "close_absent",
    "drop_those_without",
    "end_moment",
    "fill",
    "fill_by_server",
    "fill_tree",
    "fill_tree_by_server",
    "fitting",
    "fitting_in_tree",
    "next_in_tree",
    "next_moment",
    "next_stream",
    "next_stream_in_tree",
    "next_user",
    "place",
    "place_in_tree",
    "record",
    "resize",
    "settle",
    "start_task",
]

# With queues, the steps that need minutes are other steps: they are compiled, and kept on disk, apart from those without.
fill_tree, fill_tree_by_server, advance_in_tree = fill, fill_by_server, advance

OPTIONS = {"_nrt": False}  # no step allocates an array, so none counts references within: a third less to compile
