"""Whether arrays, states and fits are equal bit for bit."""

import numpy as np


def assert_same_arrays(first, second):
    """Two flat dicts of arrays, bit for bit."""
    assert list(first) == list(second)
    for name in first:
        assert first[name].dtype == second[name].dtype, name
        assert first[name].tobytes() == second[name].tobytes(), name
        assert first[name].shape == second[name].shape, name


def all_scores(block):
    """Row scores of every row of the table, as one array."""
    return np.array([block.row_scores(i) for i in range(block.table.n_rows)])


def same_arrays(first, second):
    """Whether two flat dicts of arrays agree bit for bit."""
    return list(first) == list(second) and all(
        first[name].dtype == second[name].dtype
        and first[name].shape == second[name].shape
        and first[name].tobytes() == second[name].tobytes()
        for name in first
    )


def same_bits(one, two):
    """Whether two fits are equal bit for bit, the seconds aside."""
    draws = [(a, b) for x, y in zip(one.draws_, two.draws_) for a, b in zip(x, y)]
    return (
        [len(chain) for chain in one.draws_] == [len(chain) for chain in two.draws_]
        and all(a.arrays.keys() == b.arrays.keys() for a, b in draws)
        and all(
            np.array_equal(a.arrays[name], b.arrays[name]) for a, b in draws for name in a.arrays
        )
        and np.array_equal(one.labels_, two.labels_)
    )
