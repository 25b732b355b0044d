"""Whether two groups of components explain their rows better than one, by the formula."""

import math

import numpy as np
import pandas as pd
import pytest

from oracles.mixtures import COLUMN_FAMILIES, make_mixture, random_column, set_partition
from oracles.reference import log_predictive
from skanneal import AnnealedDPMixture
from skanneal.predictive import _clusters
from skanneal.predictive._one_or_two_groups import TwoGroups, two_groups

HALF = {"categorical": {"pseudo_counts": [0.5] * 3}, "bernoulli": {"a": 0.5, "b": 0.5}}
DISCOUNT = 0.3


def with_half_counts(column):
    """The column with the pseudo-counts that are asked with."""
    family, values, hyper = column
    own = {"a": 0.5, "b": 0.5} if family.startswith("semi_continuous") else HALF.get(family, {})
    return family, values, hyper | own


def slow(columns, labels, first, second, kept=False):
    """The formula, row by row; the fault keeps the row among those that speak of it."""
    groups = [[i for i, k in enumerate(labels) if k in side] for side in (first, second)]
    groups.append(sorted(groups[0] + groups[1]))
    total = 0.0
    for row in groups[2]:
        logs = []
        for rows in groups:
            others = [i for i in rows if kept or i != row]
            logs.append(
                math.log(len(others) - DISCOUNT)
                + sum(
                    log_predictive(family, values[row], [values[i] for i in others], hyper)
                    for family, values, hyper in columns
                )
            )
        total += np.logaddexp(*logs[:2]) - logs[2]
    return total


@pytest.mark.parametrize("family", COLUMN_FAMILIES)
def test_it_is_the_formula(family):
    """Of groups of one component, and after they were merged; levels beside, and gaps."""
    rng = np.random.default_rng(2)
    columns = [random_column(family, 24, rng, missing=0.2), random_column("categorical", 24, rng)]
    mixture, _ = make_mixture(columns, 1.1, DISCOUNT)
    labels = np.repeat([0, 1, 3, 2], [9, 6, 5, 4])
    set_partition(mixture, labels)
    factor = TwoGroups(mixture, mixture.table, 100)
    columns = [with_half_counts(of) for of in columns]
    numbers = np.unique(labels, return_inverse=True)[1]
    for first, second in ([0], [1]), ([1], [3]):
        exact = slow(columns, numbers, first, second)
        assert factor(*first, *second) == pytest.approx(exact, abs=1e-3)
        assert abs(exact - slow(columns, numbers, first, second, kept=True)) > 0.05
    factor.merge(1, 3)
    factor.merge(0, 2)
    assert factor(0, 1) == pytest.approx(slow(columns, numbers, [0, 2], [1, 3]), abs=1e-3)


def of_levels(*columns):
    """The factor for the two values of the first of these columns of 0 and 1."""
    own = [("bernoulli", x.tolist(), {"a": 1.0, "b": 1.0}) for x in np.array(columns) > 0]
    mixture, _ = make_mixture(own)
    set_partition(mixture, columns[0])
    return TwoGroups(mixture, mixture.table, 1000)(0, 1)


def test_a_level_alone_parts_nothing():
    """Two values of one column; a second that follows it in all but one row in ten, or does not."""
    rng = np.random.default_rng(0)
    level, coins = rng.integers(2, size=(2, 100))
    follows = np.where(rng.random(100) < 0.9, level, 1 - level)
    assert of_levels(level, coins) < 2.0
    assert of_levels(level, follows) > 20.0


class Drawn:
    main_view = 0

    def __init__(self, arrays):
        self.arrays = arrays


def test_it_is_asked_of_levels_and_atoms_only():
    rng = np.random.default_rng(0)
    for family, asked in ("normal", False), ("categorical", True), ("semi_continuous", True):
        mixture, _ = make_mixture([random_column(family, 12, rng)])
        set_partition(mixture, np.repeat([0, 1], 6))
        draw = Drawn(mixture.to_arrays())
        assert (two_groups(draw, mixture.table, 100) is not None) == asked


def coins(seed, n_rows, n_columns):
    flips = np.random.default_rng(seed).integers(2, size=(n_rows, n_columns))
    return pd.DataFrame(flips, columns=[f"coin {j}" for j in range(n_columns)]).astype("category")


@pytest.mark.filterwarnings("ignore:The chains")
def test_independent_coins_are_one_cluster(monkeypatch):
    """Tables of which some are cut where only dips are asked, with a sureness of nearly 1."""
    tables = [coins(seed, 30, 5) for seed in range(8)]
    fits = [AnnealedDPMixture(random_state=0).fit(table) for table in tables]
    monkeypatch.setattr(_clusters, "two_groups", lambda *given: None)
    by_dips = [AnnealedDPMixture(random_state=0).fit(table) for table in tables]
    assert sum(fit.n_clusters_ > 1 for fit in fits) <= 1
    assert max(fit.valley_sureness_.max(initial=0.0) for fit in by_dips) > 0.99
    assert sum(fit.n_clusters_ > 1 for fit in by_dips) >= 2
