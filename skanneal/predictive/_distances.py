"""Log densities that fall as the distance from a component's centre grows.

A component of numbers, its parameters integrated out, has Student's t for its density, or is a t:
at the distance delta from the centre its surprisal is h log(1 + c delta^2) above the least. So it
levels off: rows of a long cluster, which are at all distances from a small component at its end,
are nearly all equally surprising there. They pile up at one value, as if there were a valley in
between. The excess e counts as

    2 h (sqrt(1 + c delta^2) - 1) = 2 h (exp(e / 2h) - 1)

instead: the same near the centre, and in proportion to delta far from it, so that rows that are
evenly spread along a cluster stay so. A normal density's delta^2 would spread them farther than
they are, and all the more where few rows say what the component's shape is. Other families, whose
tails are not so heavy, stay as they are.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..encoding import Schema
from ._patterns import distinct, patterns
from ._surprisal_laws import ViewTails, row_scores

_MOST = 30.0  # of e / 2h: farther out all rows are as if at the same distance


def added_surprisals(view, table):
    """By how much rows are more surprising where tails show the distance: (n_rows, K + 1).

    Parameters
    ----------
    view : View
    table : Table
    """
    schema = Schema.of_table(table)
    tails = ViewTails(view, lambda columns: _rows(table, columns), schema)
    masks, pattern = patterns(table)
    added = np.zeros((table.n_rows, len(view.slots)))
    for block in view.mixture.blocks:
        if not block.joint:
            of_block = np.zeros((table.n_rows, view.mixture.n_slots))
            block.add_surprisals(table, of_block)
            added += of_block[:, view.slots]
            continue
        if block.tail_exponent(1) is None:
            continue
        scores, (own, of_mask) = row_scores(block, table), distinct(masks[:, block.columns])
        for which, least in enumerate(tails.leasts_of_rows(block, own)):
            exponent = block.tail_exponent(int(own[which].sum()))
            rows = np.flatnonzero(of_mask[pattern] == which)
            added[rows] += _added(view, scores[rows][:, view.slots], least, exponent)
    return added


def _added(view, scores, least, exponent):
    """The same of a block's part of the rows, from its log densities."""
    twice = 2.0 * (exponent[view.slots] if np.ndim(exponent) else exponent)
    excess = np.maximum(-scores - least, 0.0)
    return twice * np.expm1(np.minimum(excess / twice, _MOST)) - excess


def _rows(table, columns):
    """A table of the same columns with these cells."""
    rows = table.empty_like()
    rows.append(columns)
    return rows
