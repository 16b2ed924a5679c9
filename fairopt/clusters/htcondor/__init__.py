"""HTCondor: ads of slots and jobs, group quotas and user priorities.

==================================  ==========================================================================
``importing``                       `import_htcondor`: slots, jobs, groups and priorities as an instance
``ads``, ``expressions``            ads in JSON, and the expressions in them
``slots``, ``jobs``                 slots as servers; whose jobs are, and what they ask for
``requirements``                    where jobs may run
``groups``, ``priorities``          quotas and factors as a tree of queues
``log``                             ads of jobs that have ended, as a history
==================================  ==========================================================================
"""
