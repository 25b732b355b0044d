"""The draw of a row's slot among several tiles of them, against the law by its formula.

A chi-square test of draws with a fixed seed, one try: a right draw alarms once in 10,000. Beside
it stand wrong laws that the same test must reject.
"""

from functools import cache

import numpy as np
import pytest

from oracles.enumeration import check_counts, count_p_value
from oracles.slot_draws import CONCENTRATION, DISCOUNT, FREE, N_LEVELS, PSEUDO_COUNT, draws, rows

REJECT = 1e-6


@cache
def law(with_sizes=True, with_levels=True):
    """P(slot) of the last row, by the formula."""
    labels, levels = rows()
    *others, own = levels
    members = {}
    for label, row in zip(labels.tolist(), others, strict=True):
        members.setdefault(label, []).append(row)
    weights = {min(FREE): CONCENTRATION + DISCOUNT * len(members)}
    for slot, inside in members.items():
        weights[slot] = len(inside) - DISCOUNT if with_sizes else 1.0
    for slot in weights:
        inside = members.get(slot, [])
        for f in range(2) if with_levels else ():
            same = sum(row[f] == own[f] for row in inside)
            weights[slot] *= (same + PSEUDO_COUNT) / (len(inside) + N_LEVELS * PSEUDO_COUNT)
    total = sum(weights.values())
    return {slot: weight / total for slot, weight in weights.items()}


def test_slots_of_several_tiles():
    check_counts(draws(), law())


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(lambda: law(with_sizes=False), id="sizes left out"),
        pytest.param(lambda: law(with_levels=False), id="levels left out"),
        pytest.param(
            lambda: dict(zip(law(), np.roll(list(law().values()), 16), strict=True)),
            id="weights of another tile",
        ),
        pytest.param(
            lambda: dict(zip(law(), np.roll(list(law().values()), 1), strict=True)),
            id="weights of the next slot",
        ),
    ],
)
def test_wrong_laws_fail(wrong):
    assert count_p_value(draws(), wrong()) < REJECT
