"""The fields of PBS's answers: which the import reads, which it notes, which it ignores, and why.

>>> JOB.of("noted")["depend"]
'jobs that it waits for'
"""

from __future__ import annotations

from fairopt.clusters.fields import Fields, declared

__all__ = ["DECLARED", "JOB", "NODE", "QUEUE", "SERVER"]

NODE = declared(
    "vnode",
    """
    read | state, resources_available, Mom | what it offers, on which host, and whether it accepts work
    read | queue, partition, sharing | whose jobs it takes, and whether these have it for themselves
    read | resv | the reservations that keep it for their jobs
    noted | reservation | a reservation, which keeps it for its jobs
    noted | current_aoe, current_eoe | an operating system or a power profile that is set up
    noted | max_running, max_user_run, max_group_run | how many jobs may run on it
    ignored | jobs, resources_assigned | jobs say where they run, and what they hold
    ignored | Port, pbs_version, ntype, pcpus, license, license_info, hpcbp_enable, topology_info, vnode_pool | what it is
    ignored | resv_enable, priority, Priority, in_multivnode_host, no_multinode_jobs, provision_enable | how it is chosen
    ignored | power_provisioning, poweroff_eligible, lictype, maintenance_jobs, hpcbp_user_name | how it is run
    ignored | last_state_change_time, last_used_time, comment, hpcbp_stage_protocol, hpcbp_webservice_address | times, and remarks
    """,
)

JOB = declared(
    "job",
    """
    read | job_state, array, array_id, array_state_count, array_indices_remaining, array_indices_submitted | what it does now
    read | max_run_subjobs | how many subjobs of an array run at once
    read | Job_Owner, euser, egroup, group_list, project, Account_Name, queue | whose it is
    read | Resource_List, schedselect | what it asks for, and where
    read | exec_vnode | what it was given, and where
    noted | depend | jobs that it waits for
    noted | topjob_ineligible, preempt_targets, release_nodes_on_stageout | how it is preempted, or given up in part
    noted | block_sched, runone | at most one of several jobs runs
    ignored | Hold_Types, substate, Exit_status, stageout_status, Stageout_status, run_count, run_version, hop_count | its state says it
    ignored | resources_released, resource_released_list, resources_used | what a suspended job gave back: all; and its past
    ignored | exec_host, exec_host2, estimated, array_index, forced_queue, queue_rank, queue_type, tolerate_node_failures | in the others
    ignored | Priority, sched_preempted, accrue_type, eligible_time, Execution_Time, job_sort_formula | the order of jobs that wait
    ignored | ctime, qtime, etime, stime, mtime, obittime, history_timestamp, pcap_accelerator, pcap_node, pgov | times, and power
    ignored | Job_Name, Checkpoint, Error_Path, Output_Path, Join_Path, Keep_Files, Mail_Points, Mail_Users, Rerunable | what it is
    ignored | Variable_List, Submit_arguments, Submit_Host, submit_host, Shell_Path_List, User_List, server, comment, umask | what it is
    ignored | interactive, executable, argument_list, session_id, jobdir, sandbox, stagein, stageout, Remove_Files, X11_cookie | what it is
    ignored | forward_x11_cookie, forward_x11_port, credential_id, credential_validity, create_resv_from_job, pset, cred | what it is
    ignored | hashname, jobset, no_stdio_sockets, alt_id, session, resource_used_avail, security_context, site, jobobit | what it is
    """,
)

QUEUE = declared(
    "queue",
    """
    read | queue_type, started | whether its jobs can start
    read | max_run, max_running, max_user_run, max_group_run | how many jobs run at once
    read | max_run_res, max_user_res, max_group_res, resources_available | what jobs hold at once
    read | default_chunk, partition | what a chunk has that does not state it, and the vnodes of its jobs
    noted | max_run_soft, max_run_res_soft, max_user_run_soft, max_group_run_soft | limits beyond which jobs may be preempted
    noted | max_user_res_soft, max_group_res_soft | limits beyond which jobs may be preempted
    noted | node_group_key, require_cred, backfill_depth, Priority | where jobs lie, and which go first or preempt others
    ignored | resources_max, resources_min, max_group_res_max, checkpoint_min, kill_delay | of one job, checked as it enters the queue
    ignored | max_queued, max_queued_res, max_queuable, max_array_size, queued_jobs_threshold, queued_jobs_threshold_res | who may wait
    ignored | acl_user_enable, acl_users, acl_group_enable, acl_groups, acl_host_enable, acl_hosts, enabled, from_route_only | who may wait
    ignored | resources_default, resources_assigned, total_jobs, state_count, hasnodes, est_start_time_freq | what jobs say, and counts
    ignored | route_destinations, route_held_jobs, route_lifetime, route_retry_time, route_waiting_jobs, alt_router, comment | routes
    """,
)

SERVER = declared(
    "server",
    """
    read | max_run, max_running, max_user_run, max_group_run | how many jobs run at once
    read | max_run_res, max_user_res, max_group_res, resources_available | what jobs hold at once
    read | default_chunk | what a chunk has that does not state it
    noted | max_run_soft, max_run_res_soft, max_user_run_soft, max_group_run_soft | limits beyond which jobs may be preempted
    noted | max_user_res_soft, max_group_res_soft | limits beyond which jobs may be preempted
    noted | node_group_enable, node_group_key | chunks of a job on hosts that are alike
    ignored | server_state, server_host, scheduling, total_jobs, state_count, pbs_version, license_count, managers, operators | what it is
    ignored | default_queue, log_events, mail_from, mailer, query_other_jobs, resources_default, resources_assigned, comment | what it is
    ignored | resources_max, resources_min, max_queued, max_queued_res, queued_jobs_threshold, queued_jobs_threshold_res | of one job
    ignored | max_array_size, max_job_sequence_id, job_sort_formula, job_sort_formula_threshold, eligible_time_enable | order, and sizes
    ignored | scheduler_iteration, backfill_depth, flatuid, FLicenses, pbs_license_info, pbs_license_min, pbs_license_max | how it runs
    ignored | pbs_license_linger_time, resv_enable, node_fail_requeue, resend_term_delay, max_concurrent_provision | how it runs
    ignored | power_provisioning, job_history_enable, job_history_duration, acl_roots, acl_host_enable, acl_hosts, acl_users | how it runs
    ignored | acl_user_enable, acl_resv_hosts, acl_resv_groups, acl_resv_users, rpp_retry, rpp_highwater, rpp_max_pkt_check | how it runs
    ignored | node_pack, default_node, default_qdel_arguments, default_qsub_arguments, est_start_time_freq, sync_mom_hookfiles | how it runs
    ignored | python_restart_max_hooks, python_restart_max_objects, python_restart_min_interval, restrict_res_to_release_on_suspend | how
    ignored | max_group_res_max, job_requeue_timeout, reserve_retry_time, reserve_retry_cutoff, reserve_retry_init, jobscript_max_size | how
    ignored | webapi_enable, webapi_auth_issuers, webapi_oidc_clientid, webapi_oidc_provider_url, elig_time_enable, alt_router | how it runs
    """,
)

DECLARED: tuple[Fields, ...] = (NODE, JOB, QUEUE, SERVER)
"""All of them, in the order in which the documentation shows them."""
