"""What is shown of each result: its tables and sentences (`fairopt.show`), one module for each kind of result.

A function ``..._blocks`` yields all that the command line prints; a notebook shows the same. Pages choose tables from these modules.
"""
