"""A page on this machine to change weights, counts, alpha and guarantees of an instance, and to see what follows.

`knobs` says what can be changed, `exploration` what follows from the changes; neither needs a browser. `page` shows both, and `serving`
gives the page to the browsers of this machine alone.
"""
