"""The draws of the chains that count."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np


def weighted_draws(fitted):
    """Return the draws of the chains that count, from a fit's attributes, and the weight of each,
    at most 1."""
    chains = fitted["draws_"]
    weights = fitted.get("chain_weights_", np.ones(len(chains)))
    of_draws = np.repeat(weights / weights.max(), [len(chain) for chain in chains])
    draws = [draw for chain in chains for draw in chain]
    return [draw for draw, weight in zip(draws, of_draws) if weight], of_draws[of_draws > 0]
