"""Pitman-Yor prior over partitions; the Dirichlet process is discount 0.

With concentration alpha > -d and discount 0 <= d < 1, row n + 1 joins cluster k with weight
n_k - d and opens a new one with alpha + d K (Pitman and Yor 1997), so that

    p(partition) = prod_{i=1..K-1} (alpha + i d) / (alpha + 1)_{n-1} prod_k (1 - d)_{n_k - 1}.
"""

from libc.math cimport log
from libc.stdint cimport int64_t
from numpy.random cimport bitgen_t

import numpy as np
from scipy.special import gammaincc, gammaln, gammasgn, psi

from .._native._math cimport log_rising
from .._native._random cimport bitgen, uniform
from ._base cimport PartitionPrior
from ._base import sorted_sizes

from numbers import Real

from ._expected_clusters import check_expected_clusters, gamma_of
from ._grid import PriorGrid, concentrations

HIGHEST = 1e9   # concentration, at which log-gamma functions still resolve one more row
DISCOUNTS = np.linspace(0.0, 0.9, 10)
STEP = 10 ** 0.05   # half a step of the grid of concentrations
LEAST_WEIGHT = 1e-100


cdef class PitmanYor(PartitionPrior):
    """Pitman-Yor partition prior.

    Parameters
    ----------
    concentration : float
        alpha >= -discount; at this value no second cluster ever opens.
    discount : float, default=0.0
        0 <= d < 1.

    Examples
    --------
    >>> from skanneal.partition_priors import PitmanYor
    >>> round(PitmanYor(1.0, 0.0).log_probability([2, 1]), 6)   # two of the six orders: log(1/6)
    -1.791759
    """

    name = "pitman_yor"

    def __init__(self, concentration, discount=0.0):
        if not 0.0 <= discount < 1.0:
            raise ValueError(f"discount must be in [0, 1), got {discount!r}")
        if not concentration >= -discount:
            raise ValueError(
                f"concentration must be at least -discount = {-discount}, got {concentration!r}"
            )
        self.concentration, self.discount = concentration, discount
        self.reduction = discount

    cdef double open(self, int64_t n_clusters) noexcept nogil:
        return self.concentration + self.discount * n_clusters

    cdef double total(self, int64_t n) noexcept nogil:
        return n + self.concentration

    cpdef double log_total(self, int64_t n):
        return log_rising(self.concentration + 1.0, n - 1.0)

    def holding(self, n_clusters):
        if n_clusters == 1 or self.concentration + self.discount > 0.0:
            return self
        other = PitmanYor(1.0, self.discount)
        other.log_weight = self.log_weight
        return other

    def stick_breaking(self):
        """Beta(1 - discount, concentration + k discount) is the share of the k-th stick."""
        return self.concentration, self.discount

    @staticmethod
    def expected_clusters(points, n):
        """The mean, exactly: float64 (n_points,)."""
        alpha, d = np.asarray(points, dtype=np.float64).T
        with np.errstate(divide="ignore", invalid="ignore"):
            growth = gammasgn(alpha) * np.exp(
                gammaln(alpha + d + n) - gammaln(alpha + d) - gammaln(alpha + n) + gammaln(alpha)
            )
            mean = np.where(
                d > 0, alpha / d * (growth - 1.0), alpha * (psi(alpha + n) - psi(alpha))
            )
        return np.where(alpha + d > 0, mean, 1.0)

    @staticmethod
    def grid(n, concentration="infer", discount="infer", expected_clusters=None, null=False,
             of=""):
        """The expected number of clusters minus one has a gamma prior (`gamma_of`), the discount an
        independent uniform one, restricted together to the pairs of the grid: a discount that
        forces many clusters keeps less of its share."""
        _check(n, concentration, discount, expected_clusters, of)
        discounts = DISCOUNTS if discount == "infer" else np.array([float(discount)])
        if concentration != "infer":
            points = np.array([(float(concentration), d) for d in discounts])
            return PriorGrid(points)
        n = max(n, 2)   # with one row all points are equivalent
        alphas, gamma = concentrations(n), gamma_of(expected_clusters, n)
        points = np.array([(a, d) for d in discounts for a in alphas])
        weights = np.concatenate([_weights(alphas, d, n, *gamma) for d in discounts])
        kept = weights > LEAST_WEIGHT
        if not kept.any():   # truncated so far out, all of the prior is at the nearest point
            off = np.abs(PitmanYor.expected_clusters(points, n) - 1.0 - gamma[0] * gamma[1])
            kept = off == off.min()
            weights = kept.astype(np.float64)
        points, weights = points[kept], weights[kept] / weights[kept].sum()
        if null:
            points = np.r_[[(0.0, 0.0)], points]
            weights = np.r_[0.5, 0.5 * weights]
        return PriorGrid(points, np.log(weights))

    def grid_scores(self, sizes, points):
        """Log probability of a partition at each (concentration, discount): (n_points,)."""
        cdef const int64_t[::1] size = sorted_sizes(sizes)
        cdef const double[:, ::1] pair = np.ascontiguousarray(points, dtype=np.float64)
        cdef double[::1] out = np.zeros(len(pair))
        cdef int64_t n = 0, n_clusters = size.shape[0], i
        cdef Py_ssize_t g, start = 0, j = 0
        cdef double alpha, d, product, of_one = 0.0, of_sizes = 0.0, last = -1.0
        cdef double[::1] of_alpha = np.empty(len(pair))
        for i in range(n_clusters):
            n += size[i]
        if n == 0:
            return np.asarray(out)
        with nogil:
            for g in range(pair.shape[0]):
                alpha, d = pair[g, 0], pair[g, 1]
                if d != last:   # grids go through the discounts one by one
                    of_sizes, last, j, start = 0.0, d, start, g
                    for i in range(n_clusters):
                        if i == 0 or size[i] != size[i - 1]:
                            of_one = log_rising(1.0 - d, size[i] - 1.0)
                        of_sizes += of_one
                # ... and for each through mostly the same concentrations, which ascend
                while j < start and pair[j, 0] < alpha:
                    j += 1
                if j < start and pair[j, 0] == alpha:
                    of_alpha[g] = of_alpha[j]
                else:
                    of_alpha[g] = log_rising(alpha + 1.0, n - 1.0)
                out[g] = of_sizes - of_alpha[g]
                product = 1.0
                for i in range(1, n_clusters):
                    product *= alpha + i * d
                    if product > 1e250 or product < 1e-250:
                        out[g] += log(product)
                        product = 1.0
                out[g] += log(product)
        return np.asarray(out)

    def draw(self, n, bit_generator):
        """Labels of n rows drawn from the prior, contiguous in order of appearance: int64 (n,)."""
        # a row follows a uniformly chosen earlier one, which costs O(1) for any K: row i has weight
        # 1 for its cluster, or 1 - d if it is the cluster's first
        cdef bitgen_t *rng = bitgen(bit_generator)
        cdef int64_t[::1] labels = np.empty(n, dtype=np.int64)
        cdef unsigned char[::1] is_first = np.zeros(n, dtype=np.uint8)
        cdef int64_t i, j, n_clusters = 0
        cdef double u, opening
        with nogil:
            for i in range(labels.shape[0]):
                opening = self.concentration + self.discount * n_clusters
                u = uniform(rng) * (i + self.concentration)
                if i == 0 or u < opening:
                    labels[i] = n_clusters
                    is_first[i] = 1
                    n_clusters += 1
                    continue
                while True:
                    j = <int64_t> (uniform(rng) * i)
                    j = j if j < i else i - 1
                    if not is_first[j] or uniform(rng) >= self.discount:
                        break
                labels[i] = labels[j]
        return np.asarray(labels)


def _check(n, concentration, discount, expected_clusters, of):
    """Raise a ValueError that names the parameter at fault."""
    for name, value in (("concentration", concentration), ("discount", discount)):
        if value != "infer" and not (isinstance(value, Real) and abs(value) <= HIGHEST):
            raise ValueError(
                f"{of}{name} must be 'infer' or a number, of at most {HIGHEST:g}, got {value!r}"
            )
    least = 0.0 if discount == "infer" else discount
    if not 0.0 <= least < 1.0:
        raise ValueError(f"{of}discount must be in [0, 1), got {discount!r}")
    if concentration != "infer" and concentration <= -least:
        raise ValueError(
            f"{of}concentration must be above minus the discount, got {concentration!r} with "
            f"{of}discount={discount!r}"
        )
    check_expected_clusters(expected_clusters, n, of)
    what = "expected_views" if of else "expected_clusters"
    if expected_clusters is not None and concentration != "infer":
        raise ValueError(
            f"{what}={expected_clusters!r} is a prior of the {of}concentration, which is fixed at "
            f"{concentration!r}: leave one of the two out"
        )


def _weights(alphas, d, n, shape, scale):
    """Probability of each concentration given the discount, before truncation."""
    edges = np.append(alphas / STEP, alphas.max() * STEP)
    more = PitmanYor.expected_clusters(np.column_stack([edges, np.full(len(edges), d)]), n) - 1.0
    if d == 0.0:
        more[0] = 0.0   # the least concentration represents all below it
    return -np.diff(gammaincc(shape, np.maximum(more, 0.0) / scale))
