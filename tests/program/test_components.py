"""Components of graphs are those that SciPy finds."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from fairopt.program.components import components


@given(
    st.integers(1, 30).flatmap(
        lambda size: st.tuples(st.just(size), st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), max_size=40))
    )
)
def test_what_is_linked_is_one_component(graph: tuple[int, list[tuple[int, int]]]) -> None:
    """SciPy finds the same components."""
    size, links = graph
    one, other = np.array(links, np.int64).reshape(-1, 2).T
    number, wanted = sp.csgraph.connected_components(sp.coo_array((np.ones(one.size), (one, other)), (size, size)), directed=False)
    part = components(one, other, size)
    assert np.unique(part).size == number
    assert np.unique(np.stack([part, wanted]), axis=1).shape[1] == number
