"""A fit that fails leaves the estimator as it was."""

# SPDX-License-Identifier: BSD-3-Clause

from contextlib import contextmanager


@contextmanager
def all_or_nothing(estimator):
    """Give an estimator the attributes it had back if the block fails or is interrupted."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
