"""Slurm: what it writes and what it reads, because what one side writes the other must read.

==================  ===========================================================================================
``importing``       `import_slurm`: nodes, jobs and associations as an instance
``reading``         exports as records: JSON of every version, and text
``text``            the text of ``scontrol``, ``sacctmgr`` and ``sshare`` as records with the names of the JSON
``job_text``        ``scontrol show jobs`` as records with the names of ``squeue --json``
``syntax``          the small languages in exports: numbers, TRES, generic resources, features
``fields``          the fields of exports: read, noted or ignored, and why
``doubts``          signs that exports do not say all: unknown states, hidden jobs, missing columns
``nodes``           what a node offers, which nodes a partition has, and where a job may run
``reservations``    which nodes are open to which jobs
``policies``        partitions that give whole nodes, limit the CPUs of a node, or share CPUs
``tiers``           jobs that come first, by their QOS or by the ``PriorityTier`` of their partition
``jobs``            whose a job is, what it asks for, what it was given, and where it may run
``sizes``           how many tasks a job is, and what one task demands
``pieces``          shards and MPS: pieces of GPUs, counted in GPUs
``shards``          the jobs of a cluster that have pieces of GPUs
``licenses``        how many licences there are, and how many a job takes
``associations``    associations, with shares and limits
``queues``          the tree of accounts and users: shares are weights, ``GrpTRES`` are limits
``usage``           past usage, from ``sshare``
``qos``             the limits of each QOS
``named_limits``    limits of QOS and of numbers of jobs, as named limits
``own_limits``      jobs that break a limit by themselves and never start
``exporting``       `export_slurm`: an allocation as ``GrpTRES`` of accounts, users and partitions
``accounts``        which account and user of Slurm a label means
``limits``          what each account and user may hold in an export
``license_limits``  licences that accounts and users hold, as ``GrpTRES=license/NAME``
``qos_limits``      what the jobs of each QOS may hold in an export
``scripts``         scripts of ``sacctmgr`` that set these limits and take them back
``sacct``           the table of ``sacct -P``: a row for each job, or for each run of it
``sacct_json``      ``sacct --json`` and slurmdbd's jobs, as the columns of that table
``sacct_fields``    these columns: read, noted or ignored, and why
``sacct_window``    what jobs held on average over a window of time
``sacct_log``       a history of jobs
``past``            the cluster of such a history, from its nodes and associations
``decks``           the cards on which the jobs of a history were, in pieces
==================  ===========================================================================================
"""
