"""Joining two groups of components, row by row: what `_cluster_tree.py` does after each choice."""

# SPDX-License-Identifier: BSD-3-Clause

from libc.math cimport INFINITY, exp, log1p
from libc.stdint cimport int64_t

import numpy as np

cdef double NOTHING = -40.0  # nats: what is so much less probable adds nothing to a sum


def join_groups(double[::1, :] joints, int64_t[::1] labels, int64_t[::1] second,
                double[::1] of_second, const unsigned char[::1] alive, Py_ssize_t a, Py_ssize_t b):
    """Add group b to group a, and find again which group is each row's most probable, and which
    its second. That is sought among all groups only for rows of which a and b were the two.

    Parameters
    ----------
    joints : float64 array of shape (n_rows, n_groups), columns contiguous
        Log joint densities; b's become -inf.
    labels, second : int64 array of shape (n_rows,)
        Changed in place.
    of_second : float64 array of shape (n_rows,)
        Joint densities of the second groups; changed in place.
    alive : bool array of shape (n_groups,), as bytes
        Groups that are left, b not among them. If it is a alone, `second` stays.
    """
    cdef Py_ssize_t n_rows = joints.shape[0], n_own = 0, i, j, k
    cdef int64_t[::1] own = np.empty(n_rows, dtype=np.int64)
    cdef double higher, lower
    with nogil:
        for i in range(n_rows):
            higher, lower = max(joints[i, a], joints[i, b]), min(joints[i, a], joints[i, b])
            if lower - higher > NOTHING:
                higher += log1p(exp(lower - higher))
            joints[i, a], joints[i, b] = higher, -INFINITY
            if labels[i] == a or labels[i] == b:
                labels[i] = a
                if second[i] == a or second[i] == b:
                    own[n_own] = i
                    n_own += 1
                    of_second[i] = -INFINITY
            elif second[i] == a or second[i] == b or higher > of_second[i]:
                second[i], of_second[i] = a, higher
        for k in range(joints.shape[1]):
            if not alive[k] or k == a:
                continue
            for j in range(n_own):
                i = own[j]
                if joints[i, k] > of_second[i]:
                    second[i], of_second[i] = k, joints[i, k]
