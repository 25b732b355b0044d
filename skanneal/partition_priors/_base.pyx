"""What partition priors share; the contract and its formulas are in `_base.pxd`."""

from libc.math cimport log
from libc.stdint cimport int64_t

import numpy as np
from scipy.special import gammaln, logsumexp

from .._native._math cimport log_rising

UNNAMED = "pitman_yor"      # stored without its name, since it was once the only prior


cdef class PartitionPrior:
    """Base of the partition priors."""

    name = ""           # in PARTITION_PRIORS
    coordinates = ("concentration", "discount")     # of a point of the grid
    bounded = False     # whether a point of the grid limits the number of clusters

    cdef double open(self, int64_t n_clusters) noexcept nogil:
        """Weight of opening a cluster beside n_clusters."""
        return 0.0

    cdef double total(self, int64_t n) noexcept nogil:
        """Sum of the weights of all clusters of n rows and of a new one."""
        return 0.0

    cpdef double log_total(self, int64_t n):
        """log of total(1) .. total(n - 1)."""
        raise NotImplementedError

    def draw(self, n, bit_generator):
        """Labels of n rows drawn from the prior, contiguous in order of appearance: int64 (n,)."""
        raise NotImplementedError

    @staticmethod
    def expected_clusters(points, n):
        """About how many clusters n rows have at each point: float64 (n_points,)."""
        raise NotImplementedError

    @staticmethod
    def grid(n, concentration="infer", discount="infer", expected_clusters=None, null=False,
             of=""):
        """The points that the prior's parameters are inferred from, with their hyperprior.

        Parameters
        ----------
        n : int
            Number of rows.
        concentration, discount : "infer" or float
            A number is kept.
        expected_clusters : (float, float) or None
            Low and high: 80 % of the hyperprior for the number of clusters are between them.
        null : bool
            Whether half of the hyperprior is one cluster of all rows.
        of : str
            What error messages put before the names of the parameters.

        Returns
        -------
        grid : PriorGrid

        Raises
        ------
        ValueError
            Names the parameter that this prior does not accept.
        """
        raise NotImplementedError

    def stick_breaking(self):
        """(concentration, discount) of the stick-breaking weights, for algorithms that instantiate
        the weights of infinitely many clusters."""
        raise ValueError(f"the partition prior {self.name!r} has no weights by stick breaking, "
                         f"which this algorithm instantiates")

    # ---- inherited ------------------------------------------------------------------------------

    cdef double log_join(self, int64_t n_k) noexcept nogil:
        """Log weight of joining a cluster of n_k rows."""
        return log(n_k - self.reduction)

    cdef double log_open(self, int64_t n_clusters) noexcept nogil:
        """Log weight of opening a cluster beside n_clusters; the first row always does."""
        return log(self.open(n_clusters)) if n_clusters else 0.0

    cdef double log_size(self, int64_t size) noexcept nogil:
        """log of B(c), the factor of a cluster of `size` rows."""
        return log_rising(1.0 - self.reduction, size - 1.0)

    def holding(self, n_clusters):
        """The prior itself or, if it allows fewer clusters, one of its kind that allows as many."""
        return self

    @property
    def point(self):
        """The prior's place on a grid: a float for each of `coordinates`."""
        return tuple(getattr(self, coordinate) for coordinate in self.coordinates)

    def scalars(self):
        """What a trace records: dict of str to float."""
        return dict(zip(self.coordinates, self.point))

    def to_arrays(self, of=""):
        """A flat dict of arrays, their names beginning with `of`, from which `prior_from_arrays`
        makes the prior."""
        arrays = {of + name: np.array(value) for name, value in self.scalars().items()}
        arrays[of + "log_weight"] = np.array(self.log_weight)
        if self.name != UNNAMED:
            arrays[of + "prior"] = np.array(self.name)
        return arrays

    def open_weight(self, n_clusters):
        """Weight of opening a cluster beside n_clusters; the first row always does."""
        return self.open(n_clusters)

    def total_weight(self, n):
        """Sum of the weights of all clusters of n rows and of a new one."""
        return self.total(n)

    def log_size_weight(self, size):
        """log of the factor of a cluster of `size` rows."""
        return self.log_size(size)

    def log_weights(self, sizes):
        """Log probability of each cluster and of a new one for the next row: (K + 1,)."""
        n = sizes.sum()
        if n == 0:
            return np.zeros(1)
        weights = np.empty(len(sizes) + 1)
        weights[:len(sizes)], weights[len(sizes)] = sizes - self.reduction, self.open(len(sizes))
        return _log(weights / self.total(n))

    def log_number(self, n_clusters, n):
        """A(K): the factor of the number of clusters K, for n rows."""
        cdef double total = 0.0
        cdef int64_t i
        if n == 0:
            return 0.0
        for i in range(1, n_clusters):
            total += log(self.open(i))
        return total - self.log_total(n)

    def log_probability(self, sizes):
        """Log probability of a partition with the given cluster sizes."""
        cdef const int64_t[::1] size = sorted_sizes(sizes)
        cdef int64_t n = 0
        cdef Py_ssize_t k
        cdef double of_one = 0.0, of_sizes = 0.0
        for k in range(size.shape[0]):
            if k == 0 or size[k] != size[k - 1]:
                of_one = self.log_size(size[k])
            of_sizes += of_one
            n += size[k]
        return self.log_number(size.shape[0], n) + of_sizes

    def log_split(self, n_clusters, a, b):
        """Log probability of a partition with clusters of a and b rows, over that with them as
        one, which has n_clusters clusters; b may be an array."""
        s = self.reduction
        sizes = gammaln(a - s) + gammaln(b - s) - gammaln(a + b - s) - gammaln(1.0 - s)
        return _log(self.open(n_clusters)) + sizes

    def log_openings(self, n):
        """log of open(1) * ... * open(K - 1), the weight of K clusters, for K = 0 .. n + 1."""
        cdef double[::1] weight = np.empty(n)
        cdef int64_t i
        for i in range(n):
            weight[i] = self.open(i + 1)
        return np.concatenate([[0.0, 0.0], np.cumsum(_log(weight))])

    def log_openings_over(self, grid, n):
        """log of the mean of A(K), up to a constant, for K = 0 .. n + 1. The mean is over the
        points that n rows choose from and whose weights of cluster sizes are those of this
        prior."""
        priors = (grid.prior(i, type(self)) for i in grid.within(n))
        return logsumexp([
            prior.log_weight + prior.log_openings(n) - prior.log_total(n)
            for prior in priors if prior.reduction == self.reduction
        ], axis=0)

    def log_opening_over(self, grid, n_clusters, n):
        """log of the weight of opening a cluster beside n_clusters, averaged over the points that n
        rows choose from and whose weights of cluster sizes are those of this prior; -inf if none of
        them has so many."""
        priors = [grid.prior(i, type(self)) for i in grid.within(n)]
        priors = [prior for prior in priors if prior.reduction == self.reduction]
        before, after = (
            logsumexp([prior.log_weight + prior.log_number(k, n) for prior in priors])
            for k in (n_clusters, n_clusters + 1)
        )
        return after - before if after > -np.inf else after

    def grid_scores(self, sizes, points):
        """Log probability of a partition at each of several points: (n_points,)."""
        return np.array([type(self)(*point).log_probability(sizes) for point in points])


def sorted_sizes(sizes):
    """Those above 0 in order, equal ones side by side: int64 (K,)."""
    sizes = np.asarray(sizes, dtype=np.int64)
    sizes = sizes[sizes > 0]
    sizes.sort()
    return sizes


def _log(weights):
    """Logarithms; -inf of a weight of 0, that of a cluster which cannot be opened."""
    with np.errstate(divide="ignore"):
        return np.log(weights)
