"""The process that fairopt runs in, and those that it starts.

================  ====================================================================================================
``streams``       stdout and stderr of a command, kept free of what libraries print
``surroundings``  libraries imported without the settings of the current folder
``workers``       worker processes that end with the process that started them, and import nothing from the current folder
================  ====================================================================================================
"""
