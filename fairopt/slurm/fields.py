"""The fields of Slurm's exports: which the import reads, which it notes, which it ignores, and why. Names of JSON, then of text.

>>> JOB.of("noted")["contiguous"]
'its nodes are side by side'
"""

from __future__ import annotations

from collections.abc import Mapping

from fairopt.clusters.fields import Fields, Seen, declared
from fairopt.clusters.json_export import Part
from fairopt.slurm.text import Record

__all__ = ["ASSOCIATION", "DECLARED", "JOB", "LICENSE", "NODE", "PARTITION", "QOS", "RESERVATION", "seeing"]

JOB = declared(
    "job",
    """
    read | job_id, array_job_id, array_task_id, array_task_string, array_max_tasks | its number, its array, and what it is a component of
    read | het_job_id, het_job_offset | its number, its array, and what it is a component of
    read | JobId, ArrayJobId, ArrayTaskId, ArrayTaskThrottle, HetJobId, HetJobOffset | the same
    read | account, user_name, cluster, Account, UserId | whose it is
    read | job_state, state_reason, JobState, Reason | whether it holds something, waits, or cannot start
    read | partition, Partition, features, Features, required_nodes, ReqNodeList, excluded_nodes, ExcNodeList, resv_name | where it may run
    read | Reservation | where it may run
    read | nodes, NodeList, job_resources | where it runs
    read | tres_req_str, TRES, ReqTRES, cpus, NumCPUs, node_count, NumNodes, tasks, NumTasks, tasks_per_node | what it asks for
    read | NtasksPerN:B:S:C, max_nodes | what it asks for
    read | tres_per_job, TresPerJob, tres_per_node, TresPerNode, tres_per_task, TresPerTask | generic resources that it asks for
    read | cpus_per_tres, CpusPerTres | generic resources that it asks for
    read | memory_per_node, MinMemoryNode, memory_per_cpu, MinMemoryCPU, memory_per_tres, MemPerTres | its memory
    read | threads_per_core, ReqB:S:C:T, shared, exclusive, OverSubscribe, flags | whole nodes, threads of cores
    read | tres_alloc_str, AllocTRES | what it was given
    read | licenses, licenses_allocated, Licenses | its licences
    read | qos, QOS, time_limit, TimeLimit | its QOS, and its time limit, which a QOS may restrict
    noted | contiguous, Contiguous | its nodes are side by side
    noted | core_spec, CoreSpec, ThreadSpec | cores that are kept for the system
    noted | minimum_tmp_disk_per_node, MinTmpDiskNode | disk of a node
    noted | burst_buffer, BurstBuffer | a burst buffer
    noted | tres_per_socket, TresPerSocket | generic resources of a socket
    noted | network, Network | resources of the network
    noted | mcs_label, MCS_label | a label of users who share nodes
    noted | required_switches, Switches, segment_size | nodes of one switch
    noted | time_minimum, TimeMin | the shortest time that it would take
    ignored | minimum_switches, maximum_switch_wait_time, scheduled_nodes, SchedNodeList, prefer, Prefer | wishes, and plans
    ignored | cpus_per_task, CPUs/Task, minimum_cpus_per_node, MinCPUsNode, max_cpus | in what it asks for, or was given, in all
    ignored | node_count_max, billable_tres, gres_detail, job_size_str | in what it asks for, or was given, in all
    ignored | cores_per_socket, sockets_per_node, sockets_per_board, tasks_per_core, tasks_per_socket | how its tasks lie on sockets
    ignored | Socks/Node, tasks_per_board, tasks_per_tres, thread_spec, CoresPerSocket, NtasksPerTRES | how its tasks lie on sockets
    ignored | priority, Priority, nice, Nice, priority_by_partition | the order of jobs that wait, which divides nothing in the long run
    ignored | association_id, deadline, Deadline, delay_boot, DelayBoot | the order of jobs that wait, which divides nothing in the long run
    ignored | dependency, Dependency, hold, cron | the reason says that it waits for another job, or is held
    ignored | accrue_time, AccrueTime, eligible_time, EligibleTime, submit_time, SubmitTime, start_time, StartTime, end_time | times
    ignored | EndTime, last_sched_evaluation, LastSchedEval, Scheduler | times
    ignored | suspend_time, SuspendTime, pre_sus_time, PreSusTime, SecsPreSuspend, preempt_time, PreemptTime, preemptable_time | times
    ignored | PreemptEligibleTime, resize_time, ResizeTime, RunTime | times
    ignored | admin_comment, AdminComment, comment, Comment, system_comment, SystemComment, extra, Extra, container | remarks, and names
    ignored | Container, container_id, wckey, WCKey | remarks, and names
    ignored | allocating_node, AllocNode:Sid, batch_host, BatchHost, batch_flag, batch_features, command | what runs, and from where
    ignored | Command, current_working_directory, WorkDir, submit_line, SubmitLine | what runs, and from where
    ignored | standard_error, standard_input, standard_output, stderr_expanded, stdin_expanded, stdout_expanded | its files, and mail
    ignored | StdErr, StdIn, StdOut, mail_type, mail_user, MailUser, MailType | its files, and mail
    ignored | user_id, group_id, group_name, GroupId, name, JobName, step_id, het_job_id_set | names, and how it runs on its cores
    ignored | HetJobIdSet, selinux_context, tres_bind, TresBind, tres_freq, TresFreq | names, and how it runs on its cores
    ignored | cpu_frequency_minimum, cpu_frequency_maximum, cpu_frequency_governor, CpuFreqMin, power, Power, profile, requeue | how it runs
    ignored | Requeue, reboot, Reboot, restart_cnt, Restarts | how it runs
    ignored | BatchFlag, exit_code, ExitCode, derived_exit_code, DerivedExitCode, state_description | results, and how it was listed
    ignored | failed_node, FailedNode, show_flags, burst_buffer_state, cluster_features, oversubscribe | results, and how it was listed
    ignored | federation_origin, federation_siblings_active, federation_siblings_viable, FedOrigin, FedSiblings | other clusters
    ignored | FedViableSiblings | other clusters
    """,
)

NODE = declared(
    "node",
    """
    read | name, NodeName, state, state_flags, State, reservation, reservation_name | its name, and whether it accepts work, and whose
    read | ReservationName | its name, and whether it accepts work, and whose
    read | cpus, CPUTot, effective_cpus, CPUEfctv, threads, ThreadsPerCore | its CPUs, less those kept for the system
    read | alloc_cpus, CPUAlloc | how many of its CPUs are in use: more than jobs hold, if jobs are hidden
    read | real_memory, RealMemory, specialized_memory, MemSpecLimit | its memory, less what is kept for the system
    read | gres, Gres | its generic resources
    read | partitions, Partitions, features, AvailableFeatures, active_features, ActiveFeatures | where jobs may run
    noted | gres_drained | generic resources that are drained
    noted | owner, Owner | the only user who may use it now
    noted | res_cores_per_gpu, RestrictedCoresPerGPU | cores that only jobs with a GPU may use
    noted | mcs_label, MCS_label | a label of users who share it
    ignored | alloc_idle_cpus, idle_cpus, alloc_memory, free_mem, free_memory, gres_used | what is in use: jobs say it
    ignored | tres_used, tres_weighted, AllocMem, FreeMem, AllocTRES, GresUsed, cpu_load, CPULoad | what is in use: jobs say it
    ignored | tres, CfgTRES, cores, CoresPerSocket, boards, Boards, sockets, Sockets, specialized_cores, CoreSpecCount | in its CPUs
    ignored | specialized_cpus, CPUSpecList, cpu_binding, gpu_spec | in its CPUs
    ignored | weight, Weight, temporary_disk, TmpDisk | the order in which nodes are filled; disk, of which jobs that ask are noted
    ignored | topology | the order in which nodes are filled; disk, of which jobs that ask are noted
    ignored | address, hostname, port, NodeAddr, NodeHostName, Port, architecture, Arch, operating_system, OS, version, Version | what it is
    read | cluster_name | the cluster whose jobs count
    ignored | slurmd_version, instance_id, instance_type | what it is
    ignored | boot_time, BootTime, slurmd_start_time, SlurmdStartTime, last_busy, LastBusyTime, resume_after | times, and remarks
    ignored | ResumeAfterTime, reason, Reason, reason_changed_at, reason_set_by_user | times, and remarks
    ignored | comment, Comment, extra, Extra, burstbuffer_network_address, cert_flags, tls_cert_last_renewal | remarks
    ignored | next_state_after_reboot, next_state_after_reboot_flags | remarks
    ignored | energy, external_sensors, power, CapWatts, CurrentWatts, AveWatts, ExtSensorsJoules, ExtSensorsWatts, ExtSensorsTemp | energy
    """,
)

PARTITION = declared(
    "partition",
    """
    read | name, PartitionName, nodes, Nodes, qos, QoS | its nodes, and the QOS that limits its jobs
    read | defaults, default_memory_per_cpu, DefMemPerCPU, default_memory_per_node, DefMemPerNode | the memory of jobs that name none
    read | maximum_cpus_per_node, MaxCPUsPerNode | CPUs of a node that its jobs may have together
    read | OverSubscribe, Shared, maximums | whether its jobs have whole nodes; CPUs that several have at once are counted in a note
    read | priority, priority_tier, PriorityTier, preemption_mode, PreemptMode | the order of partitions: tiers where they share nodes
    noted | maximums.cpus_per_socket, MaxCPUsPerSocket | CPUs of a socket that its jobs may have together
    noted | maximum_memory_per_cpu, MaxMemPerCPU, maximum_memory_per_node, MaxMemPerNode | the most memory of a job
    noted | ExclusiveUser, ExclusiveTopo | nodes that a job or a user has alone
    ignored | minimums, maximum_nodes_per_job, MaxNodes | limits of single jobs: the reason of a job that breaks one says so
    ignored | min nodes per job, MinNodes, max_time_limit, MaxTime | limits of single jobs: the reason of a job that breaks one says so
    ignored | default_time_limit, DefaultTime, over_time_limit | limits of single jobs: the reason of a job that breaks one says so
    ignored | OverTimeLimit, time_limit | limits of single jobs: the reason of a job that breaks one says so
    ignored | accounts, allowed_accounts, denied_accounts, AllowAccounts | who may submit: the reason of a job that may not says so
    ignored | DenyAccounts, groups, allowed_groups, AllowGroups, allowed_qos | who may submit: the reason of a job that may not says so
    ignored | denied_qos, AllowQos, DenyQos, RootOnly, ReqResv | who may submit: the reason of a job that may not says so
    ignored | priority_job_factor, PriorityJobFactor | the order of jobs that wait
    ignored | preemption_grace_time, grace_time, GraceTime | the order of jobs that wait
    ignored | partition, state, State, flags, Default, Hidden, alternate | how it is used: the reason of a job that waits for it says so
    ignored | alternative, Alternate, DisableRootJobs, LLN | how it is used: the reason of a job that waits for it says so
    ignored | allowed_allocation_nodes, AllocNodes, node_sets, NodeSets | how it is used: the reason of a job that waits for it says so
    ignored | cluster, SelectTypeParameters, select_type | how it is used: the reason of a job that waits for it says so
    ignored | cpus, total_cpus, TotalCPUs, total_nodes, TotalNodes, tres, TRES, billing_weights | sums over its nodes, and power
    ignored | TRESBillingWeights, JobDefaults, suspend_time, timeouts, topology, ResumeTimeout | sums over its nodes, and power
    ignored | SuspendTimeout, SuspendTime, PowerDownOnIdle | sums over its nodes, and power
    """,
)

QOS = declared(
    "QOS",
    """
    read | Name, name, Priority, priority, Preempt, preempt, Flags, flags | its name and its flags
    read | GrpTRES, GrpJobs, MaxTRESPU, MaxTRESPerUser, MaxJobsPU, MaxJobsPerUser, MaxTRESPA | limits of what its jobs hold at once
    read | MaxTRESPerAccount, MaxJobsPA, MaxJobsPerAccount, limits | limits of what its jobs hold at once
    read | MaxTRES, MaxTRESPJ, MaxTRESPerJob, MaxTRESPerNode, MaxTRESPN, MinTRES, MinTRESPJ, MaxWall | limits of one job
    read | GrpTRESMins, GrpTRESRunMins, GrpWall, MaxTRESMins, MaxTRESRunMinsPU, MaxTRESRunMinsPA | budgets over time, which are noted
    read | UsageThres | budgets over time, which are noted
    ignored | GrpSubmit, MaxSubmitPU, MaxSubmitPA, MinPrioThres | how many jobs may wait
    ignored | GraceTime, PreemptMode, PreemptExemptTime, UsageFactor, LimitFactor, Descr, description | how jobs are preempted and billed
    ignored | id, usage_factor, usage_threshold | how jobs are preempted and billed
    """,
)

ASSOCIATION = declared(
    "association",
    """
    read | Cluster, cluster, Account, account, User, user, Partition, partition, Par Name, ParentName | whose it is, and in which account
    read | parent_account, flags | whose it is, and in which account
    read | Share, RawShares, shares_raw | its weight
    read | GrpTRES, max, GrpJobs, MaxJobs | limits of what runs at once
    read | GrpTRESMins, GrpTRESRunMins, GrpWall, MaxTRESMins | budgets over time, which are noted
    read | MaxTRES, MaxTRESPJ, MaxTRESPerJob, MaxTRESPerNode, MaxTRESPN, MaxWall, MaxWallDurationPerJob | limits of one job
    ignored | MaxTRESMinsPJ | a budget of one job: the reason of a job that breaks it says so
    ignored | GrpSubmit, MaxSubmit, MaxJobsAccrue, GrpJobsAccrue, min, MinPrioThres | how many jobs may wait
    ignored | NormShares, RawUsage, NormUsage, EffectvUsage, FairShare, LevelFS, TRESRunMins, usage | usage, which orders jobs that wait
    ignored | Priority, priority, QOS, qos, Def QOS, default, is_default, ID, id, LFT, RGT, lineage, accounting | names, and defaults
    ignored | comment, Comment, Descr, Org | names, and defaults
    """,
)

LICENSE = declared(
    "licence",
    """
    read | LicenseName, Total, Reserved, LastDeficit | how many there are to share
    ignored | Used, Free, Remote, LastConsumed, LastUpdate | what is in use: jobs say it
    """,
)

RESERVATION = declared(
    "reservation",
    """
    read | name, ReservationName, node_list, Nodes, State, flags, Flags, users | its nodes or CPUs, whether it is active, and whose it is
    read | Users, accounts, Accounts, tres, TRES | its nodes or CPUs, whether it is active, and whose it is
    noted | groups, Groups | the groups of Unix whose users may run in it
    ignored | StartTime, start_time, EndTime, end_time | its times, and sums: licences that are reserved are in scontrol show licenses
    ignored | Duration, NodeCnt, node_count, CoreCnt | its times, and sums: licences that are reserved are in scontrol show licenses
    ignored | core_count, core_specializations, partition | its times, and sums: licences that are reserved are in scontrol show licenses
    ignored | PartitionName, features, Features, Licenses | its times, and sums: licences that are reserved are in scontrol show licenses
    ignored | licenses | its times, and sums: licences that are reserved are in scontrol show licenses
    ignored | BurstBuffer, burst_buffer, Watts, watts, MaxStartDelay, max_start_delay, PurgeCompleted, purge_completed | how it is kept
    ignored | TRESPerNode, AllowedPartitions, allowed_partitions, QOS | how it is kept
    """,
)

DECLARED: tuple[Fields, ...] = (NODE, JOB, PARTITION, ASSOCIATION, QOS, LICENSE, RESERVATION)
"""All of them, in the order in which the documentation shows them."""


def seeing(records: list[Part], fields: Fields, seen: Seen) -> list[Part]:
    """Return the records, and count their fields."""
    for part in records:
        if isinstance(part, Record):
            known = {name: part.value[key] for key, name in part.names.items() if key != "depth" and part.value.get(key) is not None}
            seen.see(fields, known | dict(part.others))
        elif isinstance(part.value, Mapping):
            seen.see(fields, part.value)
    return records
