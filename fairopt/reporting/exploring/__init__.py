"""A page on this machine to change weights, counts, alpha and guarantees of an instance, and to see the new allocation.

`knobs` has the numbers that can be changed, `exploration` the results of changes; neither needs a browser. `page` shows both, and `serving`
gives the page to the browsers of this machine alone.
"""
