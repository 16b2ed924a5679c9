"""Other clusters and published traces, and what the imports and exports of all schedulers share.

=============================================  ====================================================================================
``pbs``                                        `import_pbs`, histories of its accounting records
``htcondor``                                   `import_htcondor`, histories of ``condor_history``
``yarn``                                       `import_yarn`, `export_yarn`: REST answers, and the files of its two schedulers
``ray``, ``ray_records``                       `import_ray`: listings of Ray's state API
``swf``, ``swf_format``, ``swf_log``           the Standard Workload Format: a moment, the jobs over time, a history
``openb``, ``google2011``, ``gavel``           tables of the Alibaba GPU cluster, of the Google cluster, of Gavel
``asked``                                      the arguments of an import or an export, kept in its result
``account``                                    what was read, and what was left out and why
``json_export``, ``table_rows``                JSON and tables whose messages name the file and the place in it
``assembly``, ``shapes``, ``queue_tree``       owners, shapes of tasks and queues become users; nodes become rows of servers
``imported``                                   the result of an import
``kind_limits``                                limits that follow no tree of queues, as named limits
``rounding``, ``packing``                      whole tasks near an allocation, and where they run
``holdings``, ``amounts``, ``names``           what each queue holds in whole units, under names that the scheduler allows
``exported``                                   the result of an export
``log_cluster``the cluster of a log from its hosts alone
``log_records``, ``clock``                     jobs of a log as arrays, and their times
=============================================  ====================================================================================
"""
