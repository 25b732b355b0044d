"""Partitions by a mixture of M components with weights from a symmetric Dirichlet distribution.

With parameters gamma, ..., gamma, row n + 1 joins cluster k with weight n_k + gamma and opens a new
one with gamma (M - K), by taking one of the components without rows. Given M this is the law of
Pitman and Yor with discount -gamma and concentration gamma M (Pitman 1996):

    p(partition) = M! / (M - K)! Gamma(gamma M) / Gamma(n + gamma M)
                   prod_k Gamma(n_k + gamma) / Gamma(gamma).

M is drawn on the grid, which makes this a mixture of finite mixtures (Miller and Harrison 2018).
"""

from numbers import Real

from libc.math cimport INFINITY, log, rint
from libc.stdint cimport int64_t
from numpy.random cimport bitgen_t

import numpy as np
from scipy.special import betainc, poch

from .._native._math cimport log_rising
from .._native._random cimport below, bitgen, uniform
from ._base cimport PartitionPrior
from ._base import sorted_sizes
from ._expected_clusters import check_expected_clusters, gamma_of
from ._grid import PriorGrid
from ._pitman_yor import HIGHEST

EVERY = 60          # numbers of components that are points of the grid one by one
RATIO = 1.05        # between each further number and the one before
MEAN_SIZE = 4       # rows to a component: of how many rows a further number is a point
LEAST_WEIGHT = 1e-100


cdef class Finite(PartitionPrior):
    """Partition prior of a mixture with M components.

    Parameters
    ----------
    concentration : float
        gamma M, the sum of the Dirichlet distribution's parameters.
    discount : float
        -gamma, below 0.

    Attributes
    ----------
    max_clusters : int
        M: no partition has more clusters.

    Examples
    --------
    >>> from skanneal.partition_priors import Finite
    >>> prior = Finite(2.0, -1.0)
    >>> prior.max_clusters
    2
    >>> round(prior.log_probability([2, 1]), 6)   # two choices, each 2! 1! 1! / 4!
    -1.791759
    >>> prior.log_probability([1, 1, 1])
    -inf
    """

    name = "finite"
    bounded = True

    def __init__(self, concentration, discount):
        if not -np.inf < discount < 0.0:
            raise ValueError(f"discount must be below 0, got {discount!r}")
        ratio = concentration / -discount
        if not (ratio < 2.0**53 and rint(ratio) >= 1.0 and abs(ratio - rint(ratio)) < 1e-9 * ratio):
            raise ValueError(
                f"concentration must be a multiple of {-discount}, got {concentration!r}"
            )
        self.concentration, self.discount = concentration, discount
        self.reduction = discount
        self.max_clusters = <int64_t> rint(ratio)

    cdef double open(self, int64_t n_clusters) noexcept nogil:
        # by the integer: at M clusters it is 0, which concentration + discount M may miss
        return -self.discount * max(0, self.max_clusters - n_clusters)

    cdef double total(self, int64_t n) noexcept nogil:
        return n + self.concentration

    cpdef double log_total(self, int64_t n):
        return log_rising(self.concentration + 1.0, n - 1.0)

    def log_number(self, n_clusters, n):
        """A(K): the factor of the number of clusters K, for n rows."""
        if n == 0:
            return 0.0
        if n_clusters > self.max_clusters:
            return -np.inf
        return ((n_clusters - 1) * log(-self.discount) - self.log_total(n)
                + log_rising(self.max_clusters - n_clusters + 1.0, n_clusters - 1.0))

    def holding(self, n_clusters):
        if n_clusters <= self.max_clusters:
            return self
        other = Finite(-self.discount * n_clusters, self.discount)
        other.log_weight = self.log_weight
        return other

    @staticmethod
    def expected_clusters(points, n):
        """The mean, exactly: float64 (n_points,)."""
        points = np.asarray(points, dtype=np.float64)
        concentration, gamma = points[:, 0], -points[:, 1]
        others = concentration - gamma
        others[others < 0.5 * gamma] = 0.0
        # a component has none of n rows with probability (others)_n / (concentration)_n
        return concentration / gamma * (1.0 - poch(others, gamma) / poch(others + n, gamma))

    @staticmethod
    def grid(n, concentration="infer", discount="infer", expected_clusters=None, null=False,
             of=""):
        """M is inferred. With concentration "infer" gamma is 1; a given concentration is divided
        equally between the M components."""
        _check(concentration, expected_clusters, of)
        components = _numbers(n, expected_clusters)
        mass = _masses(components, expected_clusters, n)
        if null:
            mass[0] += mass.sum()
        if concentration == "infer":
            points = np.column_stack([components, np.full(len(components), -1.0)])
        else:
            alpha = float(concentration)
            points = np.column_stack([np.full(len(components), alpha), -alpha / components])
        return PriorGrid(
            points,
            np.log(np.maximum(mass, LEAST_WEIGHT)),
            least_rows=np.where(components > EVERY, np.minimum(MEAN_SIZE * components, n), 0),
        )

    def grid_scores(self, sizes, points):
        """Log probability of a partition at each (concentration, discount): (n_points,)."""
        cdef const int64_t[::1] size = sorted_sizes(sizes)
        cdef const double[:, ::1] pair = np.ascontiguousarray(points, dtype=np.float64)
        cdef double[::1] out = np.zeros(len(pair))
        cdef int64_t n = 0, n_clusters = size.shape[0]
        cdef Py_ssize_t g, k
        cdef double concentration, gamma, n_components, of_one = 0.0, of_sizes = 0.0, last = 0.0
        for k in range(n_clusters):
            n += size[k]
        if n == 0:
            return np.asarray(out)
        with nogil:
            for g in range(pair.shape[0]):
                concentration, gamma = pair[g, 0], -pair[g, 1]
                n_components = rint(concentration / gamma)
                if n_clusters > n_components:
                    out[g] = -INFINITY
                    continue
                if gamma != last:   # often it is the same at all points
                    of_sizes, last = 0.0, gamma
                    for k in range(n_clusters):
                        if k == 0 or size[k] != size[k - 1]:
                            of_one = log_rising(1.0 + gamma, size[k] - 1.0)
                        of_sizes += of_one
                out[g] = (of_sizes - log_rising(concentration + 1.0, n - 1.0)
                          + (n_clusters - 1) * log(gamma)
                          + log_rising(n_components - n_clusters + 1.0, n_clusters - 1.0))
        return np.asarray(out)

    def draw(self, n, bit_generator):
        """Labels of n rows drawn from the prior, contiguous in order of appearance: int64 (n,)."""
        # with weight gamma M a row takes a uniform component, those with rows being the first ones;
        # else it follows a row that has a label: O(1) for any M
        cdef bitgen_t *rng = bitgen(bit_generator)
        cdef int64_t[::1] labels = np.empty(n, dtype=np.int64)
        cdef int64_t i, k, n_clusters = 0
        with nogil:
            for i in range(labels.shape[0]):
                if i == 0 or uniform(rng) * (i + self.concentration) < self.concentration:
                    k = min(below(rng, self.max_clusters), n_clusters)
                else:
                    k = labels[below(rng, i)]
                labels[i] = k
                n_clusters += k == n_clusters
        return np.asarray(labels)


def _check(concentration, expected_clusters, of):
    """Raise a ValueError that names the parameter at fault."""
    if concentration != "infer" and not (
        isinstance(concentration, Real) and 0.0 < concentration <= HIGHEST
    ):
        raise ValueError(
            f"{of}concentration must be 'infer' or, of finitely many components, a number above 0 "
            f"and of at most {HIGHEST:g}, got {concentration!r}"
        )
    check_expected_clusters(expected_clusters, 0, of)   # M may be more than the rows


def _numbers(n, expected_clusters):
    """Numbers of components on the grid: n rows have no more clusters than the last of them."""
    numbers, last = [*range(1, EVERY + 1)], EVERY
    high = 0 if expected_clusters is None else expected_clusters[1]
    while MEAN_SIZE * (further := int(np.ceil(RATIO * last))) <= n or last < high:
        numbers.append(further)
        last = further
    return np.array(numbers, dtype=np.float64)


def _masses(components, expected_clusters, n):
    """Prior probability of M from each number of components to the next on the grid."""
    others = components - 1.0
    if expected_clusters is None:   # beta-negative-binomial (1, 1, 1): P(M > m) = 1 / (m + 1)
        more = 1.0 / components
    else:
        shape, scale = gamma_of(expected_clusters, n)
        more = np.ones(len(others))
        more[1:] = betainc(others[1:], shape, scale / (1.0 + scale))
    return more - np.append(more[1:], 0.0)
