"""The draw of a row's slot among several tiles of them, against the law by its formula.

A chi-square test of draws with a fixed seed, one try: a right draw alarms once in 10,000. Beside
it stand wrong laws that the same test must reject.
"""

import hashlib
from collections import Counter
from functools import cache

import numpy as np
import pytest

from enumeration import check_counts, count_p_value
from mixtures import make_mixture
from skanneal.moves._allocate import enter_rows, leave_rows

N_DRAWS = 60_000
CONCENTRATION, DISCOUNT, PSEUDO_COUNT, N_LEVELS = 1.5, 0.2, 0.7, 3
FREE = {3, 15, 16, 17, 40, 41}  # slots below 53 without rows; the lowest is the open one
REJECT = 1e-6


def rows():
    """Two columns of levels, the clusters' slots 0 to 52 but FREE; the last row has none."""
    rng = np.random.default_rng(5)
    slots = [k for k in range(53) if k not in FREE]
    labels = np.concatenate([slots, rng.choice(slots, 200)])
    levels = rng.integers(N_LEVELS, size=(len(labels) + 1, 2))
    levels[-1] = 1, 2
    return labels, levels.tolist()


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


@cache
def draws():
    labels, levels = rows()
    hyper = {"pseudo_counts": [PSEUDO_COUNT] * N_LEVELS}
    columns = [("categorical", [row[f] for row in levels], hyper) for f in range(2)]
    mixture, bit_generator = make_mixture(columns, CONCENTRATION, DISCOUNT, seed=11)
    n = len(labels)
    mixture.replace(np.arange(n), labels)
    order = np.arange(n + 1)
    counts = Counter()
    for _ in range(N_DRAWS):
        enter_rows(mixture, order, n, n + 1, 0, 1.0, bit_generator)
        counts[int(mixture.labels_of([n])[0])] += 1
        leave_rows(mixture, order, n, n + 1, 0, 1.0, bit_generator)
    return counts


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


def digest_of_draws():
    """A hash of how often each slot was drawn, see test_instruction_sets.py."""
    return hashlib.sha256(repr(sorted(draws().items())).encode()).hexdigest()
