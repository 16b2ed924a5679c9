"""Slurm: what it writes and what it reads, because what one side writes the other must read.

===========================================  ======================================================================================
``importing``                                `import_slurm`: nodes, jobs and associations as an instance
``reading``, ``text``, ``job_text``          exports as records: JSON of every version, and text
``syntax``                                   the small languages in them
``nodes``, ``jobs``, ``sizes``               records as servers and as demands of tasks
``reservations``                             which nodes are open to which jobs
``associations``, ``queues``                 associations with shares and limits, and their tree of accounts
``qos``, ``licenses``, ``named_limits``      limits of QOS, of licences and of numbers of jobs, as named limits
``sacct``, ``sacct_window``, ``sacct_log``   ``sacct``: its table, what jobs held on average over a window, and a history of jobs
``exporting``, ``accounts``, ``limits``      `export_slurm`: an allocation as ``GrpTRES`` of accounts, users and partitions
``scripts``                                  scripts of ``sacctmgr`` that set these limits and take them back
===========================================  ======================================================================================
"""
