"""Slurm: what it writes and what it reads, because what one side writes the other must read.

===========================================  ======================================================================================
``importing``                                `import_slurm`: nodes, jobs and associations as an instance
``reading``, ``text``, ``syntax``            exports as records: JSON of every version, text, and the small languages in them
``nodes``, ``jobs``, ``sizes``               records as servers and as demands of tasks
``queues``                                   the tree of accounts, with shares and limits
``sacct_window``, ``sacct_log``              ``sacct``: what jobs held on average over a window, and a history of jobs
``exporting``, ``accounts``, ``limits``      `export_slurm`: an allocation as ``GrpTRES`` of accounts, users and partitions
``associations``, ``scripts``                the limits that are there now, and scripts of ``sacctmgr`` that set and take back others
===========================================  ======================================================================================
"""
