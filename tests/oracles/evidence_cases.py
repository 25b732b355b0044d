"""Few rows under each prior: plans of chains, and the laws that these must have."""

import numpy as np

from oracles import count_rows as counts
from oracles.evidence_enumeration import finite, process
from oracles.mixtures import hyper_vector, make_table
from oracles.reference import EXAMPLES, ROW_EXAMPLES
from skanneal.chains import ChainPlan
from skanneal.partition_priors import PriorGrid

# (PARTITION_PRIORS' name, coordinates of the grid's points, their weights, the oracle's law)
PRIORS = {
    "DP": ("pitman_yor", [(0.3, 0.0), (2.0, 0.0)], [0.4, 0.6]),
    "PY": ("pitman_yor", [(0.3, 0.0), (2.0, 0.0), (0.3, 0.4), (1.5, 0.4)], [0.3, 0.1, 0.4, 0.2]),
    "static": ("finite", [(1, 1.0), (2, 1.0), (4, 1.0)], [0.3, 0.3, 0.4]),
    "dynamic": ("finite", [(1, 1.5), (2, 0.75), (12, 0.125)], [0.3, 0.4, 0.3]),
    "null": ("pitman_yor", [(0.0, 0.0), (0.5, 0.2), (3.0, 0.0)], [0.5, 0.2, 0.3]),
}
_ROWS, _HYPER = ROW_EXAMPLES["multivariate_normal"]
_WIDE = [(3 * x, 3 * y) for x, y in _ROWS]  # where proposals are farthest from the scores
ROW_DATA = ROW_EXAMPLES | {"multivariate_t": (_WIDE, _HYPER | {"degrees": 2.0})}


def column(family, n_rows, start=0, missing=()):
    """So many values of a family's example, some missing."""
    values, hyper = (EXAMPLES | ROW_DATA)[family]
    values = [*values, *values][start : start + n_rows]
    return family, [None if i in missing else v for i, v in enumerate(values)], hyper


def law_of(prior):
    name, points, weights = PRIORS[prior]
    return (finite if name == "finite" else process)(points, weights)


def grid_of(prior):
    name, points, weights = PRIORS[prior]
    pairs = [(g * m, -g) for m, g in points] if name == "finite" else points
    return PriorGrid(pairs, np.log(weights))


def plan_of(columns, grids, prior, view_prior=None, moves=()):
    """The plan of columns whose hyperparameters are inferred where `grids` has their number."""
    families, hyper, at, of = {}, {}, 0, {}
    for j, (family, values, mapping) in enumerate(columns):
        width = len(values[0]) if family in ROW_DATA else 1
        families.setdefault(family, []).extend(range(at, at + width))
        flat = counts.flat(mapping) if family == "multinomial" else hyper_vector(family, mapping)
        hyper[at], of[j] = flat, at
        at += width
    has_counts = "multinomial" in families
    return ChainPlan(
        counts.make_table(columns)[0] if has_counts else make_table(columns),
        {family: np.array(places) for family, places in families.items()},
        hyper,
        {of[j]: grid for j, grid in grids.items()},
        grid_of(prior),
        ("gibbs", "split_merge", *moves),
        view_grid=None if view_prior is None else grid_of(view_prior),
        partition_prior=PRIORS[prior][0],
    )


def groups_of(posterior, n_groups):
    """Number of the group of each partition: groups of about equal probability."""
    masses, groups = np.zeros(n_groups), {}
    for key in sorted(posterior, key=posterior.get, reverse=True):
        groups[key] = int(masses.argmin())
        masses[groups[key]] += posterior[key]
    return groups, masses
