"""Effective sample size of several chains, from the autocovariances of their halves.

The estimator is that of Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), section 3.2, and
its values are ArviZ's. ArviZ goes from lag to lag, which took seconds for chains of 10^4 draws that
hardly move: too long after an interrupt. Here all lags are computed at once.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri
from scipy.stats import rankdata


def halves(draws):
    """First and last half of each chain, as chains; of an odd number the middle draw is left out.

    >>> halves(np.arange(5)[None]).tolist()
    [[0, 1], [3, 4]]
    """
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def normal_scores(draws):
    """Standard normal quantiles at the ranks of the draws among those of all chains."""
    ranks = rankdata(draws, method="average").reshape(draws.shape)
    return ndtri((ranks - 0.375) / (draws.size + 0.25))


def effective_size(chains):
    """How many independent draws would determine the mean as well as these chains do.

    Parameters
    ----------
    chains : ndarray of shape (n_chains, n_draws)
        At least 2 chains of at least 2 draws.

    Returns
    -------
    size : float
        Of chains with one value throughout, the number of draws.
    """
    chains = np.asarray(chains, dtype=np.float64)
    n_draws = chains.shape[1]
    if np.ptp(chains) < np.finfo(float).resolution:
        return float(chains.size)
    autocovariance = autocovariances(chains).mean(axis=0)
    within = autocovariance[0] * n_draws / (n_draws - 1)
    variance = autocovariance[0] + chains.mean(axis=1).var(ddof=1)
    correlation = 1.0 - (within - autocovariance) / variance
    correlation[0] = 1.0
    # Geyer's initial sequence: correlations are summed in pairs of lags for as long as the sums of
    # pairs are positive, and no sum may exceed the one before.
    even, odd = correlation[:-1:2], correlation[1::2]
    n_pairs = max(1, (n_draws - 1) // 2)  # of the longest lags nothing is known
    pairs = even[:n_pairs] + odd[:n_pairs]
    last = int(np.argmax(pairs <= 0.0)) if (pairs <= 0.0).any() else n_pairs - 1
    tail = even[last] if pairs[last] >= 0.0 else max(even[last], 0.0)
    time = 2.0 * np.minimum.accumulate(pairs[:last]).sum() + tail - 1.0
    return chains.size / max(time, 1.0 / np.log10(chains.size))


def autocovariances(chains):
    """Of each chain at lags 0 to n_draws - 1, divided by n_draws at every lag."""
    n_draws = chains.shape[1]
    length = next_fast_len(2 * n_draws, real=True)
    power = np.abs(rfft(chains - chains.mean(axis=1, keepdims=True), length)) ** 2
    return irfft(power, length)[:, :n_draws] / n_draws
