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

All components are seen relative to that of no rows, which takes out units, gaps and terms of a row
alone. Its numbers have a centre, too: a row there would seem to be far from all others. So every
row counts as if it were at the centre of the component of no rows.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..encoding import Schema
from ._patterns import distinct, patterns
from ._surprisal_laws import ViewTails
from ._view import View

_MOST = 30.0  # of e / 2h: farther out all rows are as if at the same distance


def scores_by_distance(view, table):
    """Log densities of rows, with tails that show the distance: (n_rows, K + 1).

    That of the component of no rows, which is the last, is as if each row were at its centre.

    Parameters
    ----------
    view : View
    table : Table
    """
    schema = Schema.of_table(table)
    tails = ViewTails(view, lambda columns: _rows(table, columns), schema)
    masks, pattern = patterns(table)
    out = np.zeros((table.n_rows, len(view.slots)))
    for block in view.mixture.blocks:
        scores = np.zeros((table.n_rows, int(view.slots.max()) + 1))
        block.score_rows(table, scores, 0, table.n_rows)
        scores = scores[:, view.slots]
        out += scores
        if not block.joint:
            added = np.zeros((table.n_rows, view.mixture.n_slots))
            block.add_surprisals(table, added)
            out[:, :-1] -= added[:, view.slots[:-1]]
            none = block.spare(1)
            for f in range(len(block.columns)):
                if block.tail_exponent(f) is not None:
                    out[:, -1] += _excess(none, f, table, schema)
            continue
        if block.tail_exponent(1) is None:
            continue
        own, of_mask = distinct(masks[:, block.columns])
        surprisals = -scores
        for i in range(len(block.columns)):
            slopes = View.log_slope(block, i, table, 0, table.n_rows)
            surprisals += np.reshape(slopes, (-1, 1))
        for which, least in enumerate(tails.leasts_of_rows(block, own)):
            exponent = block.tail_exponent(int(own[which].sum()))
            rows = np.flatnonzero(of_mask[pattern] == which)
            excess = np.maximum(surprisals[rows] - least, 0.0)
            twice = 2.0 * (exponent[view.slots] if np.ndim(exponent) else exponent)
            far = twice * np.expm1(np.minimum(excess / twice, _MOST))
            far[:, -1] = 0.0
            out[rows] -= far - excess
    return out


def _excess(none, f, table, schema):
    """The surprisal of a column's cells above that of the centre, under the block of a component of
    no rows; 0 where there is a gap: (n_rows,)."""
    j, centre = int(none.columns[f]), schema.missing_cells(1)
    centre[j] = none.predictive_mean(f)[:1].astype(centre[j].dtype)
    cells, least = (_surprisals(none, f, rows) for rows in (table, _rows(table, centre)))
    return np.where(np.isnan(table.column(j)), 0.0, np.maximum(cells - least, 0.0))


def _surprisals(none, f, table):
    scores = np.zeros((table.n_rows, 1))
    none.score_feature(f, table, scores, 0, table.n_rows)
    return View.log_slope(none, f, table, 0, table.n_rows) - scores[:, 0]


def _rows(table, columns):
    """A table of the same columns with these cells."""
    rows = table.empty_like()
    rows.append(columns)
    return rows
