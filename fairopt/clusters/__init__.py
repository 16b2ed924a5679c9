"""Other clusters and published traces, and what the imports and exports of all schedulers share.

=====================  ===========================================================================================
``pbs``                `import_pbs`, histories of its accounting records (a package)
``htcondor``           `import_htcondor`, histories of ``condor_history`` (a package)
``yarn``               `import_yarn`, `export_yarn`: REST answers, and the files of its two schedulers (a package)
``ray``                `import_ray`: a Ray cluster from listings of its state API
``ray_records``        nodes, tasks, actors and placement groups of Ray as records
``ray_fields``         the fields of these listings: read, noted or ignored, and why
``swf``                `import_swf`: one moment of a log in the Standard Workload Format
``swf_format``         the header and the lines of such a log
``swf_fields``         its fields: read, noted or ignored, and why
``swf_log``            a history of the jobs of such a log
``openb``              `import_openb`: tables of the Alibaba GPU cluster of 2023
``google2011``         `import_google2011`: tables of the Google cluster of 2011
``gavel``              `import_gavel`: jobs with a measured speed on each kind of accelerator
``gavel_json``         the JSON of Gavel's repository as the table that it also publishes
``gavel_trace``        jobs of Gavel over time, for a simulation
``asked``              the arguments of an import or an export, kept in its result
``account``            what an import read, and what it left out and why
``fields``             declarations of the fields that an import reads, notes or ignores
``json_export``        JSON of other programs, part by part, with the place of each part for messages
``table_rows``         tables of other programs as columns of numbers; bad rows are refused or left out
``assembly``           nodes become rows of servers, tasks become users
``shapes``             tasks grouped by queue, demand and constraints
``parts``              a part of a GPU, and what it leaves unused on its card
``speeds``             speeds of nodes that an administrator gives beside an import
``queue_tree``         the queues of an export become the tree of an instance
``kind_limits``        limits that follow no tree of queues, as named limits
``imported``           the result of an import
``running``            what runs, by name: the rows from which `fairopt.plan` says what stops
``quotas``             what a scheduler promises each queue, used or not
``rounding``           the whole tasks of an allocation, on groups of identical servers
``packing``            whole tasks on identical single servers
``apart``              a user whose tasks differ by server, as one user for each kind of server
``holdings``           the queues of an instance as the tree of a scheduler, and what each queue holds
``nested_guarantees``  guarantees that exceed the guarantee of the queue above
``amounts``            amounts as whole numbers of a scheduler's smallest unit
``names``              a name that the scheduler allows for each label
``exported``           the result of an export
``read_back``          what everybody would get under an export, as a check
``log_records``        the records of a log before they are checked
``log_cluster``        the cluster of a log, from its hosts alone
``clock``              times of a log: seconds, or dates
=====================  ===========================================================================================
"""
