"""What a display asks of an estimator before it reads from it."""

# SPDX-License-Identifier: BSD-3-Clause

from sklearn.utils._optional_dependencies import check_matplotlib_support
from sklearn.utils.validation import check_is_fitted

from ..encoding import open_table


def check_drawable(display, estimator, names, owner):
    """Raise unless matplotlib is there and an estimator is fitted and has what is to be drawn.

    Parameters
    ----------
    display : type
        The display's class.
    estimator : estimator
    names : sequence of str
        Attributes and methods that it must have.
    owner : str
        What has them, for the error.

    Raises
    ------
    ImportError, NotFittedError
    ValueError
        If it is fitted, but has none.
    """
    check_matplotlib_support(f"{display.__name__}.from_estimator")
    check_is_fitted(estimator)
    missing = [name for name in names if not hasattr(estimator, name)]
    if missing:
        raise ValueError(
            f"{display.__name__} draws {owner}: this {type(estimator).__name__} has no "
            f"{' and no '.join(missing)}."
        )


def training_table(estimator, X):
    """X as a table with a row for each label of a fitted estimator; else a ValueError."""
    table, n_rows = open_table(X, "X"), len(estimator.labels_)
    if table.shape[0] != n_rows:
        raise ValueError(
            f"X must be the training data: it has {table.shape[0]} rows, labels_ {n_rows}."
        )
    return table
