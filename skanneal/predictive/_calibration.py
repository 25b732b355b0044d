"""What share of rows has scores as high as these."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

ORDINARY = 0.9  # of the rows: what is beyond may be outliers, and says nothing of ordinary rows


class Calibration:
    """Minus the log of the share of rows whose scores are as high, from a sample of scores.

    Up to the largest score of the sample it is that of the sample. Beyond, the share falls
    exponentially: as it falls by half among the tenth of the rows whose scores are highest, but no
    faster than exp(-score), as scores are themselves minus the logs of shares.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Finite, in any order; n is at least 1.
    """

    def __init__(self, scores):
        scores = np.sort(scores)
        self.scores, first = np.unique(scores, return_index=True)
        n = len(scores)
        self.log_shares = -np.log((n - first + 0.5) / (n + 1.0))
        ordinary = np.quantile(scores, ORDINARY)
        beyond = scores[scores > ordinary] - ordinary
        self.rate = np.log(2.0) / max(np.median(beyond), np.log(2.0)) if len(beyond) else 1.0

    def __call__(self, scores):
        """Of other scores: ndarray of the same shape, at least 0, rising with the score."""
        within = np.interp(scores, self.scores, self.log_shares)
        return within + self.rate * np.maximum(scores - self.scores[-1], 0.0)
