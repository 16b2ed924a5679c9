"""A page on this machine to change weights, amounts, speeds and guarantees of an instance, and to see the new allocation.

`knobs` has the numbers that can be changed, `exploration` the results of changes, and `drawn` the bars that show them. `page` puts them
into one page, and `serving` gives it to the browsers of this machine alone.
"""
