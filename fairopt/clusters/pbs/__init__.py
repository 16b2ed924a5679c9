"""PBS Professional and OpenPBS: what their commands answer in JSON, and what their server writes of jobs.

==========================  =====================================================================
``importing``               `import_pbs`: vnodes, jobs, queues and the server as an instance
``reading``, ``syntax``     answers in JSON, and the small languages in them
``nodes``, ``places``       vnodes as hosts, and where chunks may lie
``jobs``                    jobs, arrays and subjobs; their chunks as tasks
``queues``, ``shares``      limits of queues and of the server; the fairshare tree
``accounting``, ``log``     accounting records as runs, and a history of them
==========================  =====================================================================
"""
