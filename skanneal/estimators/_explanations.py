"""Which rows are odd, and which of their cells are to blame.

A row that is odd may well have a component of its own, in which nothing about it is odd. So a
training row's cells are compared with draws from which the row has been taken out.
"""

# SPDX-License-Identifier: BSD-3-Clause

from numbers import Integral

import numpy as np
from sklearn.utils._optional_dependencies import check_pandas_support
from sklearn.utils.validation import check_is_fitted

from ..encoding import open_table
from ..families import FAMILIES

COLUMNS = ["score", "column", "value", "expected", "excess"]


def explain(estimator, X, n, n_cells, reference, scored_by=None):
    """The frame that `explain_outliers` returns.

    scored_by : the fitted MixtureOutlierDetector around the estimator, whose scores say which rows
        are odd; None: the estimator's own.
    """
    pandas = check_pandas_support("explain_outliers")
    check_is_fitted(estimator)
    for name, value in (("n", n), ("n_cells", n_cells)):
        if not isinstance(value, Integral) or value < 1:
            raise ValueError(f"{name} must be a positive integer, got {value!r}.")
    table = open_table(X, "X", sparse=True)
    if reference is None and table.shape[0] == 1:
        raise ValueError(
            "X has one row, and cells are compared with those of other rows: give reference, such "
            "as the training data."
        )

    def encoded(rows):
        known = scored_by is None
        return estimator._encoded(rows) if known else estimator._encoder.encode(scored_by, rows)

    columns, queries = encoded(X), estimator._queries()
    usual = columns if reference is None else encoded(reference)
    usual = _medians(queries.column_surprisal(usual))
    training = estimator._training_table(X, columns)
    if training is not None:
        scores = (scored_by or estimator).outlier_scores_
    else:
        scores = -scored_by._scores(X) if scored_by else estimator.score_outliers(X)
    rows = np.argsort(-scores, kind="stable")[:n]
    asked = [queries] * len(rows) if training is None else queries.without(training, rows)
    names = range(table.shape[1]) if table.names is None else table.names
    lines, at = [], []
    for i, of_row in zip(rows, asked):
        cells = [None if c is None else c[[i]] for c in columns]
        excess = of_row.column_surprisal(cells)[0] - usual
        guilty = [int(j) for j in np.argsort(-excess)[:n_cells] if excess[j] > 0]
        expected = _expected(of_row, cells, guilty, pandas)
        for j in guilty:
            lines.append((scores[i], names[j], table.cell(i, j), expected.get(j), excess[j]))
        if not guilty:
            lines.append((scores[i], None, None, None, np.nan))
        at += [i] * max(len(guilty), 1)
    lines = pandas.DataFrame(lines, columns=COLUMNS, dtype=object)
    frame = lines.infer_objects()
    if lines["column"].isna().any():
        frame["column"] = lines["column"]  # a None among names stays one
    labels = X.index if hasattr(X, "iloc") else pandas.RangeIndex(table.shape[0], name="row")
    return frame.set_axis(labels[at])


def _medians(surprisal):
    """The median of each column's finite cells; nan where there is none."""
    known = (column[np.isfinite(column)] for column in surprisal.T)
    return np.array([np.median(column) if len(column) else np.nan for column in known])


def _expected(queries, cells, guilty, pandas):
    """What would fill a row's cell in each of these columns, given its others: by column. Those of
    families of whole rows are left out, and those of which nothing is known."""
    encoder = queries.encoder
    families = {j: FAMILIES.get(encoder.codecs[j].family) for j in guilty}
    asked = [j for j, family in families.items() if family is None or family.takes_gaps]
    if not asked:
        return {}
    same = np.zeros(len(asked), dtype=np.int64)  # a row for each cell that is asked for
    columns = [None if c is None else c[same] for c in cells]
    gap = encoder.missing_columns(1)
    for row, j in enumerate(asked):
        for place in (j, *encoder.parts_of([j])):
            columns[place][row] = gap[place][0]
    values, _, missing = queries.fill(columns)
    values = [of if j in asked else np.empty(0) for j, of in enumerate(values)]
    return {  # a cell that is to blame was there, so each of these columns has one gap
        j: pandas.Series(of)[0] if of.dtype.kind in "mM" else of.tolist()[0]
        for j, _, of in encoder.replacements(values, missing)
    }
