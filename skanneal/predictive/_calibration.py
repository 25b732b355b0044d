"""What share of rows has scores as high as these."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

ORDINARY = 0.9  # of the rows: what is beyond may be outliers, and says nothing of ordinary rows
HALF = 0.5  # of the rows: between these and the ordinary ones is the tail that is known
FALL = np.log((1.0 - HALF) / (1.0 - ORDINARY))  # of the log of the share of rows in this tail


class Calibration:
    """Minus the log of the share of rows whose scores are as high, by the scores of some.

    Up to the score that `sure` of the rows reach it is their share. Beyond, the share falls
    exponentially: as fast as it falls between the scores that HALF and ORDINARY of the rows reach,
    but no faster than exp(-score), as scores are themselves minus the logs of shares.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Finite, in any order; n is at least 1.
    sure : float, default=ORDINARY
        By default outliers among the rows do not hide each other: the share of those beyond is that
        of ordinary rows. 1 says that outliers are rows as others are.
    """

    def __init__(self, scores, sure=ORDINARY):
        n, half, most = len(scores), *np.quantile(scores, [HALF, ORDINARY])
        places, counts = np.unique(scores, return_counts=True)
        reaching = np.cumsum(counts[::-1])[::-1]
        self.end = np.quantile(scores, sure)
        self.rate = FALL / max(most - half, FALL)
        self.scores, self.log_shares = places, -np.log((reaching + 0.5) / (n + 1.0))

    def __call__(self, scores):
        """Of other scores: ndarray of the same shape, at least 0, rising with the score."""
        within = np.interp(np.minimum(scores, self.end), self.scores, self.log_shares)
        return within + self.rate * np.maximum(scores - self.end, 0.0)
