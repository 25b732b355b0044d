"""Forests that bind the outcomes of columns within components: evidence, densities and draws.

An *outcome* of a column is its level, or of a number with atoms which atom it is, or none. What a
forest is, and where its probabilities come from, is said in `_forests.py`.
"""

# SPDX-License-Identifier: BSD-3-Clause

from libc.math cimport INFINITY, exp, log
from libc.stdint cimport int32_t, int64_t
from numpy.random cimport bitgen_t

import numpy as np

from .._native._math cimport log_rise
from .._native._random cimport bitgen, uniform


def pair_evidence(const int32_t[:, ::1] outcomes, const int32_t[::1] labels,
                  const int64_t[::1] first, const double[:, ::1] base,
                  const double[::1] strengths, const int64_t[:, ::1] pairs):
    """How much more probable pairs of columns are if they depend on each other within components,
    as log Bayes factors: (n_pairs, n_strengths).

    Parameters
    ----------
    outcomes : int32 array of shape (n, n_columns)
        Of training rows; -1 if missing.
    labels : int32 array of shape (n,)
        The component of each.
    first : int64 array of shape (n_columns + 1,)
        Where the outcomes of each column begin among those of all.
    base : float64 array of shape (n_outcomes, K)
        Probability of each outcome in each component.
    strengths : float64 array of shape (n_strengths,)
    pairs : int64 array of shape (n_pairs, 2)
    """
    cdef Py_ssize_t n = labels.shape[0], n_components = base.shape[1], most = 0
    cdef Py_ssize_t n_strengths = strengths.shape[0]
    cdef Py_ssize_t p, i, j, k, s, r, a, b, e, n_a, n_b
    cdef double c, score
    cdef int32_t x, y
    cdef int64_t whole
    cdef double[:, ::1] out = np.zeros((len(pairs), n_strengths))
    cdef int64_t[:, ::1] alone = np.zeros((len(base), n_components), np.int64)
    cdef double[:, :, ::1] rise = np.zeros((len(base), n_components, n_strengths))
    cdef int64_t[::1] count, own
    for p in range(pairs.shape[0]):
        i, j = pairs[p, 0], pairs[p, 1]
        most = max(most, (first[i + 1] - first[i]) * (first[j + 1] - first[j]))
    count, own = np.zeros(n_components * most, np.int64), np.zeros(len(base), np.int64)
    with nogil:
        for r in range(n):   # rows of each outcome by itself, and log (c p)_n of them
            for i in range(outcomes.shape[1]):
                if outcomes[r, i] >= 0:
                    alone[first[i] + outcomes[r, i], labels[r]] += 1
        for e in range(base.shape[0]):
            for k in range(n_components):
                for s in range(n_strengths):
                    rise[e, k, s] = log_rise(strengths[s] * base[e, k], alone[e, k])
        for p in range(pairs.shape[0]):
            i, j = pairs[p, 0], pairs[p, 1]
            n_a, n_b = first[i + 1] - first[i], first[j + 1] - first[j]
            count[:n_components * n_a * n_b] = 0
            for r in range(n):
                x, y = outcomes[r, i], outcomes[r, j]
                if x >= 0 and y >= 0:
                    count[(labels[r] * n_a + x) * n_b + y] += 1
            for k in range(n_components):
                own[first[i]:first[i + 1]] = 0
                own[first[j]:first[j + 1]] = 0
                whole = 0
                for a in range(n_a):
                    for b in range(n_b):
                        r = count[(k * n_a + a) * n_b + b]
                        own[first[i] + a] += r
                        own[first[j] + b] += r
                        whole += r
                if whole < 2:   # one row says nothing of a pair
                    continue
                for s in range(n_strengths):
                    c = strengths[s]
                    score = log_rise(c, whole)
                    for e in range(first[i], first[i + 1]):
                        score -= (rise[e, k, s] if own[e] == alone[e, k]
                                  else log_rise(c * base[e, k], own[e]))
                    for e in range(first[j], first[j + 1]):
                        score -= (rise[e, k, s] if own[e] == alone[e, k]
                                  else log_rise(c * base[e, k], own[e]))
                    for a in range(n_a):
                        for b in range(n_b):
                            r = count[(k * n_a + a) * n_b + b]
                            if r > 0:
                                score += log_rise(
                                    c * base[first[i] + a, k] * base[first[j] + b, k], r)
                    out[p, s] += score
    return np.asarray(out)


cdef class Forest:
    """The outcomes of columns as a forest binds them, in each component.

    Parameters
    ----------
    parents : int array of shape (n_nodes,)
        The place of each node's parent, which stands before it; -1 of a root.
    base : list of float64 arrays of shape (n_outcomes, K)
        Of each node the outcomes' probabilities where nothing binds it.
    conditionals : list of float64 arrays of shape (n_outcomes of the parent, n_outcomes, K)
        Of each node; None of a root.
    """

    cdef readonly Py_ssize_t n_components
    cdef int64_t[::1] parent, first, start   # start: of the conditionals of each node, in rows
    cdef double[:, ::1] base, conditional, log_ratio
    cdef double[:, ::1] belief               # (n_outcomes, K) scratch
    cdef char[::1] touched                   # (n_nodes,) scratch: is anything believed of a node?

    def __init__(self, parents, base, conditionals):
        self.parent = np.asarray(parents, dtype=np.int64)
        sizes = [len(of) for of in base]
        self.first = np.cumsum([0, *sizes]).astype(np.int64)
        self.base = np.ascontiguousarray(np.vstack(base))
        self.n_components = self.base.shape[1]
        bound = [of.reshape(-1, self.n_components) for of in conditionals if of is not None]
        lengths = [0 if of is None else of.shape[0] * of.shape[1] for of in conditionals]
        self.start = np.cumsum([0, *lengths]).astype(np.int64)
        own = [np.tile(of, (0 if c is None else len(c), 1)) for of, c in zip(base, conditionals)]
        self.conditional = np.ascontiguousarray(np.vstack(bound))
        self.log_ratio = np.log(np.asarray(self.conditional) / np.vstack(own))
        self.belief = np.zeros((self.first[len(sizes)], self.n_components))
        self.touched = np.zeros(len(sizes), np.int8)

    cdef void gather(self, const int32_t *outcome, Py_ssize_t low, Py_ssize_t high,
                     double *total) noexcept nogil:
        """Add to total[k - low], of the components low .. high - 1, by how much the log probability
        of the known outcomes exceeds the sum of theirs alone. Leave in `belief` the log probability
        of what is known below a missing node, given its outcome, less that alone."""
        cdef Py_ssize_t node, up, width, a, k
        cdef int64_t at
        self.touched[:] = 0
        for node in range(self.parent.shape[0] - 1, -1, -1):
            up, width = self.parent[node], self.first[node + 1] - self.first[node]
            if outcome[node] < 0 and not self.touched[node]:
                continue
            if up < 0:
                if outcome[node] < 0:
                    self.mix(node, &self.base[self.first[node], 0], low, high, total)
            elif outcome[up] >= 0:
                at = self.start[node] + outcome[up] * width
                if outcome[node] < 0:
                    self.mix(node, &self.conditional[at, 0], low, high, total)
                    continue
                for k in range(low, high):
                    total[k - low] += self.log_ratio[at + outcome[node], k]
            else:
                self.touch(up, low, high)
                for a in range(self.first[up + 1] - self.first[up]):
                    at = self.start[node] + a * width
                    if outcome[node] < 0:
                        self.mix(node, &self.conditional[at, 0], low, high,
                                 &self.belief[self.first[up] + a, low])
                        continue
                    for k in range(low, high):
                        self.belief[self.first[up] + a, k] += self.log_ratio[at + outcome[node], k]

    cdef inline void touch(self, Py_ssize_t node, Py_ssize_t low, Py_ssize_t high) noexcept nogil:
        """Log 1, if nothing has been said of a node yet."""
        cdef Py_ssize_t b, k
        if not self.touched[node]:
            self.touched[node] = True
            for b in range(self.first[node], self.first[node + 1]):
                for k in range(low, high):
                    self.belief[b, k] = 0.0

    cdef inline void mix(self, Py_ssize_t node, const double *weights, Py_ssize_t low,
                         Py_ssize_t high, double *out) noexcept nogil:
        """Add to out[k - low] the log of the mean, by weights, (n_outcomes, K), of what is believed
        of a node."""
        cdef Py_ssize_t b, k
        cdef double top, total
        for k in range(low, high):
            top, total = -INFINITY, 0.0
            for b in range(self.first[node], self.first[node + 1]):
                top = max(top, self.belief[b, k])
            for b in range(self.first[node], self.first[node + 1]):
                total += (weights[(b - self.first[node]) * self.n_components + k]
                          * exp(self.belief[b, k] - top))
            out[k - low] += top + log(total)

    def log_ratios(self, outcomes):
        """By how much the log probability of each row's known outcomes exceeds that without the
        forest, in each component: (n_rows, K).

        Parameters
        ----------
        outcomes : int32 array of shape (n_rows, n_nodes)
            -1 if missing.
        """
        cdef const int32_t[:, ::1] of = np.ascontiguousarray(outcomes, dtype=np.int32)
        cdef double[:, ::1] out = np.zeros((len(outcomes), self.n_components))
        cdef Py_ssize_t i
        for i in range(of.shape[0]):   # with the interpreter's lock: threads share the scratch
            self.gather(&of[i, 0], 0, self.n_components, &out[i, 0])
        return np.asarray(out)

    def draw(self, outcomes, components, bit_generator):
        """Rows' outcomes with the missing ones drawn given the others: int32 (n_rows, n_nodes).

        Parameters
        ----------
        outcomes : int32 array of shape (n_rows, n_nodes)
        components : int array of shape (n_rows,)
        bit_generator : numpy.random.BitGenerator
        """
        cdef bitgen_t *rng = bitgen(bit_generator)
        cdef const int64_t[::1] component = np.ascontiguousarray(components, dtype=np.int64)
        cdef int32_t[:, ::1] out = np.array(outcomes, dtype=np.int32, order="C")
        cdef Py_ssize_t i, node, up, b, k, width
        cdef int64_t at
        cdef double total, top, u
        cdef double[::1] weight = np.zeros(int(np.diff(self.first).max()))
        for i in range(out.shape[0]):
            k, total = component[i], 0.0
            self.gather(&out[i, 0], k, k + 1, &total)
            for node in range(self.parent.shape[0]):
                if out[i, node] >= 0:
                    continue
                up, width = self.parent[node], self.first[node + 1] - self.first[node]
                at = -1 if up < 0 else self.start[node] + out[i, up] * width
                top, total = -INFINITY, 0.0
                for b in range(width):
                    weight[b] = 0.0
                    if self.touched[node]:
                        weight[b] = self.belief[self.first[node] + b, k]
                    top = max(top, weight[b])
                for b in range(width):
                    weight[b] = exp(weight[b] - top) * (
                        self.base[self.first[node] + b, k] if at < 0
                        else self.conditional[at + b, k])
                    total += weight[b]
                u, out[i, node] = uniform(rng) * total, <int32_t> (width - 1)
                for b in range(width - 1):
                    u -= weight[b]
                    if u < 0.0:
                        out[i, node] = <int32_t> b
                        break
        return np.asarray(out)
