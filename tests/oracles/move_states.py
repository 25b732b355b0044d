"""A mixture of a few rows as a state of its law, and how often chains are in each."""

from collections import Counter

import numpy as np

from oracles.enumeration import (
    canonical,
    hyper_grid,
)
from oracles.mixtures import (
    hyper_vector,
)
from oracles.reference import EXAMPLES
from skanneal.families import FAMILIES
from skanneal.families._negative_binomial import SIZES

N = 5
REJECT = 1e-6  # what a control's p-value must be below


def column(family, start=0, missing=()):
    """Five values of a family's example, some missing."""
    values, hyper = EXAMPLES[family]
    values = [*values, *values][start : start + N]
    return family, [None if i in missing else v for i, v in enumerate(values)], hyper


def draw_states(law, n, seed):
    """n independent draws of a law, as a list."""
    states = list(law)
    rng = np.random.default_rng([seed, 1])  # not the stream that the moves take from PCG64(seed)
    return [states[i] for i in rng.choice(len(states), n, p=list(law.values()))]


HYPER_GRIDS = {
    "normal": {"mu0": [-1.0, 0.4], "kappa0": [0.1, 1.0], "nu0": [1.0, 5.0], "sigma2_0": [0.2, 2.0]},
    "bernoulli": {"b": [0.3, 3.0], "a": [0.4, 2.5]},
    "poisson": {"shape": [0.5, 4.0], "rate": [0.2, 1.5]},
}
HYPER_GRIDS["gamma_exponential"] = {"a": [0.5, 4.0], "b": [0.2, 1.5]}
HYPER_GRIDS["log_normal"] = HYPER_GRIDS["normal"]
HYPER_GRIDS["negative_binomial"] = {"r": SIZES[[2, 7]], "a": [1.0, 6.0], "b": [0.5, 3.0]}
HYPER_GRIDS["semi_continuous"] = {
    **{name: [value] for name, value in EXAMPLES["semi_continuous"][1].items()},
    "sigma2_0": [0.2, 2.0],
    "a": [0.3, 3.0],
    "b": [0.4, 2.5],
}
HYPER_GRIDS["semi_continuous_log_normal"] = HYPER_GRIDS["semi_continuous"]
PRIOR_GRID = np.array([(a, d) for d in (0.0, 0.4) for a in (0.3, 2.0)])


def hyper_options(family):
    """(grids per coordinate, list of mappings) of a family's column."""
    if family == "categorical":
        grid = [0.2, 1.5]
        mappings = [{"pseudo_counts": [x, y, z]} for x in grid for y in grid for z in grid]
        return [np.array(grid)] * 3, mappings
    grids = HYPER_GRIDS[family]
    assert tuple(grids) == FAMILIES[family].coordinate_names
    return [np.array(grid) for grid in grids.values()], hyper_grid(**grids)


def set_hypers(mixture, oracle, indices):
    """Every column's hyperparameters as the state says."""
    for block in mixture.blocks:
        for f, j in enumerate(block.columns):
            family, _, mappings = oracle[j]
            for h, value in enumerate(hyper_vector(family, mappings[indices[j]])):
                block.set_hyper(f, h, value)
        block.refresh_all()


def state_of(mixture, oracle):
    """The state as a key of the joint law."""
    indices = {}
    for block in mixture.blocks:
        for f, j in enumerate(block.columns):
            family, _, mappings = oracle[j]
            now = tuple(block.get_hyper(f))
            indices[j] = [tuple(hyper_vector(family, m)) for m in mappings].index(now)
    prior = mixture.prior
    labels = canonical(mixture.get_labels().tolist())
    in_order = tuple(indices[j] for j in sorted(indices))
    return labels, prior.concentration, prior.discount, in_order


def summed(counts, *positions):
    """Counts of some positions of the state."""
    out = Counter()
    for key, count in counts.items():
        kept = tuple(key[position] for position in positions)
        out[kept[0] if len(kept) == 1 else kept] += count
    return out
