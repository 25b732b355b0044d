"""Link the views of draws that chains have kept."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..moves import move_linked_rows
from ..states import Subsample, draw_arrays, state_from_arrays
from ..states._links import chosen_links, kept_labels, link_arrays

N_SWEEPS = 2  # before a draw is kept again


def link_draws(table, draws, seed, limit, stop):
    """Draws of a CrossCat with links between their views, after a few sweeps of the rows by these.

    The draws for which there is no time stay as they are: their views are independent.

    Parameters
    ----------
    table : Table
        The training rows.
    draws : list of dict of arrays
        As a chain keeps them.
    seed : numpy.random.SeedSequence
    limit : TimeLimit
    stop : StopFlag

    Returns
    -------
    draws : list of dict of arrays
    """
    subsample, bit_generator, out = Subsample(table.n_rows), np.random.PCG64(seed), list(draws)
    subsample.fill()
    for i, arrays in enumerate(draws):
        if stop.is_set() or limit.is_over:
            break
        kept = kept_labels(arrays)
        links = chosen_links(*kept)
        if not len(links[0]):
            out[i] = arrays | link_arrays(*kept, *links)
            continue
        state = state_from_arrays(arrays, table, subsample, trusted=True)
        move_linked_rows(state, N_SWEEPS, bit_generator, links)
        out[i] = draw_arrays(state, linked=True)
    return out
