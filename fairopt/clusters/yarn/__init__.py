"""YARN: what its ResourceManager answers, and the files of its two schedulers, which are read and written.

==========================================  =======================================================================================
``importing``                               `import_yarn`: nodes and applications of the REST answers as an instance
``fields``, ``queue_fields``                which fields are read, noted and ignored
``resources``, ``queues``, ``users``        amounts of all resource types; queues with what they are promised; limits of one user
``files``, ``capacity_file``, ``fair_file`` ``capacity-scheduler.xml``, and the allocation file of the Fair Scheduler
``exporting``                               `export_yarn`: an allocation as either of these files
==========================================  =======================================================================================
"""
