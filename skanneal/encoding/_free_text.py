"""Columns of free text: the model leaves them out.

The share of cells whose level occurs once estimates the probability that the next row has a level
that was not seen (Good 1953). Where it is more than half, a row's level mostly says nothing of
other rows. That is also so of codes, names and dates written as text, of which a user may have made
something else, so a column is taken for text only if its cells are also of several words: at least
LEAST_WORDS in most of those that occur once. A date names a weekday and a month at most, a person
or a place mostly two words.
"""

# SPDX-License-Identifier: BSD-3-Clause

import re

import numpy as np

from ._family_choice import MAX_AUTO_LEVELS
from ._levels import present_values

LEAST_WORDS = 3
WORD = re.compile(r"[^\W\d_]{2,}")  # two letters or more
READ = 1024  # cells that are read for their words


def is_free_text(column):
    """Whether a column holds text: see the module.

    Parameters
    ----------
    column : Column
    """
    codes = present_values(column)
    if column.levels is None or column.declared or len(codes) <= MAX_AUTO_LEVELS:
        return False
    once = np.flatnonzero(np.bincount(codes.astype(np.int64)) == 1)
    if 2 * len(once) <= len(codes):
        return False
    cells = [column.levels[level] for level in once[:READ]]
    n_words = [len(WORD.findall(cell)) if isinstance(cell, str) else 0 for cell in cells]
    return float(np.median(n_words)) >= LEAST_WORDS
