"""The contract of a partition prior: an exchangeable law of Gibbs type (Gnedin and Pitman 2006).

Row n + 1 joins a cluster of n_k rows with weight n_k - s and opens one beside K others with weight
open(K). The weights add up to total(n), whatever the partition, so that

    p(partition) = prod_{i=1..K-1} open(i) / prod_{i=1..n-1} total(i) prod_k (1 - s)_{n_k - 1}.

A prior sets `reduction` (s, which is negative where large clusters attract less than their share)
and writes what is marked below; everything else is inherited and may be overridden where a prior
knows a faster way. Its constructor takes a point of the grid, whose coordinates are named in
`coordinates`, and `point` is that point. A prior at whose points there may be only so many clusters
says `bounded = True` and writes `holding`.
"""

from libc.stdint cimport int64_t


cdef class PartitionPrior:
    cdef readonly double reduction
    cdef public double log_weight       # of its point among those of a grid; 0 if it is given
    # written by the prior
    cdef double open(self, int64_t n_clusters) noexcept nogil
    cdef double total(self, int64_t n) noexcept nogil
    cpdef double log_total(self, int64_t n)     # log of the product of total(i), i = 1 .. n - 1
    # .. and, in Python: draw(n, bit_generator), expected_clusters(points, n) and grid(n, ...)
    cdef double log_join(self, int64_t n_k) noexcept nogil
    cdef double log_open(self, int64_t n_clusters) noexcept nogil
    cdef double log_size(self, int64_t size) noexcept nogil
