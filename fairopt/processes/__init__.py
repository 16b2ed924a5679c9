"""The process that fairopt runs in, and those that it starts.

================  ====================================================================================================
``batches``       what a worker does: some tasks of a function that was sent once, and the check of its versions
``crew``          one function for many tasks: who gets what, what to do about a worker that is lost, and about a task that ends it
``deferred``      parts of NumPy that no command uses, loaded when somebody uses them
``on_dask``       the workers of a Dask cluster
``on_loky``       processes of this machine
``on_ray``        the workers of a Ray cluster
``pools``         the interface of all workers; this process and its threads
``streams``       stdout and stderr of a command, kept free of what libraries print
``surroundings``  libraries imported without the settings of the current folder
``workers``       processes that end with the process that started them, and import nothing from the current folder
================  ====================================================================================================
"""
