"""Schedulers of jobs as clusters run them, to compare with exact allocations over time.

===================  ===================================================================================================================
``options``          "fairtree:half_life=7d" as data
``pool``             the free amounts of every server, and the accounts of the limits of queues
``bounds``           limits across servers while jobs run: of queues, what queues keep, and named limits
``usage``            usage that fades with a half-life
``windows``          usage in windows that count less the older they are: the fairshare of Maui and Moab
``siblings``         the children of a node: their parts of its weights and of its usage
``fair_tree``        the ranks of users in Slurm's fair tree
``passes``           which waiting jobs start now: in order, with EASY backfill, or in spins of a pie as HTCondor does
``backfill_kernel``  EASY backfill where nothing but servers limits tasks, compiled when there is much of it
``job_kernel``       all moments of "fifo" and "backfill" there, compiled in the same way
``running``          the table of running tasks
``quotas``           the guarantees of queues as HTCondor's group quotas
``events``           the loop over events: tasks end, jobs are submitted, users and servers come and go
===================  ===================================================================================================================
"""
