"""The fields of the listings of Ray: which the import reads, which it notes, which it ignores, and why.

>>> sorted(NODE.of("read"))
['labels', 'node_id', 'node_name', 'resources_total', 'state']
"""

from __future__ import annotations

from collections.abc import Iterable

from fairopt.clusters.fields import Seen, declared
from fairopt.clusters.json_export import Part

__all__ = ["ACTOR", "BUNDLE", "DECLARED", "GROUP", "JOB", "NODE", "TASK", "see_groups"]

NODE = declared(
    "node",
    """
    read | node_id, node_name, state | its number and its name, and whether it is alive
    read | resources_total, labels | what it offers, and what selectors ask for
    ignored | node_ip, is_head_node | its address, and whether it is the head, which offers what it lists
    ignored | state_message, start_time_ms, end_time_ms | since when, and why
    """,
)
TASK = declared(
    "task",
    """
    read | task_id, attempt_number, type, state | its number, and whether it holds or asks for something
    read | job_id | its owner, or the job whose namespace is the owner
    read | required_resources, label_selector, fallback_strategy | what it asks for, and where it may run
    read | node_id, placement_group_id | where it runs; what runs in a placement group counts with the group
    ignored | name, func_or_class_name, actor_id, parent_task_id, language, call_site | what it is
    ignored | worker_id, worker_pid, runtime_env_info, is_debugger_paused | how it runs on its node
    ignored | events, profiling_data, creation_time_ms, start_time_ms, end_time_ms, task_log_info | its past
    ignored | error_type, error_message | how it failed
    """,
)
ACTOR = declared(
    "actor",
    """
    read | actor_id, state, job_id, ray_namespace | its number, whether it holds or asks for something, and its owner
    read | required_resources, label_selector, fallback_strategy | what it asks for, and where it may run
    read | node_id, placement_group_id | where it runs; what runs in a placement group counts with the group
    ignored | class_name, name, repr_name, is_detached, call_site | what it is
    ignored | pid, serialized_runtime_env | how it runs on its node
    ignored | death_cause, num_restarts, num_restarts_due_to_lineage_reconstruction | its past
    ignored | num_restarts_due_to_node_preemption | its past
    """,
)
GROUP = declared(
    "placement group",
    """
    read | placement_group_id, state, creator_job_id, bundles | its number, whether it holds or asks for something, its job, its bundles
    read | strategy | bundles that need not lie as it says are counted in a note
    ignored | name, is_detached | what it is
    ignored | stats | how often Ray tried to place it
    """,
)
BUNDLE = declared(
    "bundle",
    """
    read | unit_resources, label_selector, fallback_strategy | what it asks for, and where it may lie
    read | node_id | where it lies
    ignored | bundle_id | its number in its group
    """,
)
JOB = declared(
    "job",
    """
    read | job_id, submission_id, metadata | its numbers, and its owner
    ignored | type, status, entrypoint, message, error_type, driver_info, driver_agent_http_address | what it is, and how it goes
    ignored | driver_node_id, driver_exit_code, runtime_env, start_time, end_time | what it is, and how it goes
    """,
)
DECLARED = (NODE, TASK, ACTOR, GROUP, BUNDLE, JOB)


def see_groups(seen: Seen, groups: Iterable[Part]) -> None:
    """Count the fields of placement groups that have not ended, and of their bundles."""
    for group in groups:
        if isinstance(group.value, dict) and group.value.get("state") != "REMOVED":
            seen.see(GROUP, group.value)
            bundles = group.value.get("bundles")
            for bundle in bundles if isinstance(bundles, list) else ():
                seen.see(BUNDLE, bundle)
