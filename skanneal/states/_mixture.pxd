from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t
from numpy.random cimport bitgen_t

from ..families._table cimport Table
from ..partition_priors._base cimport PartitionPrior
from ._subsample cimport Subsample

cdef class Mixture:
    cdef readonly Table table
    cdef readonly Subsample subsample   # shared with other views; not owned
    cdef readonly PartitionPrior prior
    cdef readonly tuple blocks          # FamilyBlock, one per family
    cdef dict spares                    # moves' empty copies of these blocks, by name
    cdef PyObject **pointer             # the same, borrowed, for code without the GIL
    cdef Py_ssize_t n_blocks
    cdef readonly Py_ssize_t n_slots    # capacity, a multiple of the tile
    cdef readonly Py_ssize_t n_tiles    # tiles that hold a cluster or the open slot
    cdef readonly Py_ssize_t n_clusters
    cdef readonly Py_ssize_t open_slot  # the one empty slot that may be chosen: the lowest free one
    cdef bint corrected                 # do row steps propose and correct?
    cdef int32_t[::1] labels            # (n_rows,) slot or -1
    cdef int64_t[::1] counts            # (n_slots,)
    cdef float[::1] log_prior           # (n_slots,) -inf for the free slots that are not open
    cdef float[::1] log_lik             # (n_slots,) scratch
    cdef float[::1] weight              # (n_slots + n_slots / TILE,) scratch of a draw
    cdef int64_t[::1] memo_size         # (MEMO,) direct-mapped: log_join by cluster size
    cdef float[::1] memo_value
    cdef int level

    cdef float log_join(self, int64_t n_k) noexcept nogil

    cdef int insert(self, Py_ssize_t row, Py_ssize_t k) except -1 nogil
    cdef void remove(self, Py_ssize_t row) noexcept nogil
    cdef void refill(self, Py_ssize_t k) noexcept nogil
    cdef void fill(self, Py_ssize_t row, Py_ssize_t k, bitgen_t *rng) noexcept nogil
    cdef void score_cells(self, const char *cells) noexcept nogil
    cdef void propose(self, Py_ssize_t row) noexcept nogil
    cdef double correction(self, Py_ssize_t row, Py_ssize_t k, bint held) noexcept nogil
    cdef Py_ssize_t draw(self, float beta, bitgen_t *rng) noexcept nogil
    cdef int enter(self, Py_ssize_t row, float beta, bitgen_t *rng) except -1 nogil
    cdef int gibbs_step(self, Py_ssize_t row, float beta, bitgen_t *rng) except -1 nogil
    cdef int settle_open(self) except -1 nogil
    cdef int grow(self) except -1
    cdef int weigh_slots(self) except -1 nogil
