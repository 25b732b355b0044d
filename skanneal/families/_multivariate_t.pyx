"""Rows with heavy tails: Student's t by weights of rows, normal-inverse-Wishart prior.

Model, per row of d cells: x ~ N(mu, Sigma / w), w ~ Gamma(h, h), 2 h the degrees of freedom of all
components; mu and Sigma as in the multivariate normal. Integrated over w, x is a multivariate t.

The weights of the rows are part of the state, as fills of gaps are: given them the marginal
likelihood is closed, that of _multivariate_normal.pyx with weighted means and scatters,

    kappa = kappa0 + sum w, nu = nu0 + n,

and each row gives w^(d/2) Gamma(w; h, h). A row step integrates the row's weight out: given w the
predictive has the rate w kappa/(w + kappa), and the integral over w, which is not elementary, is a
sum over a lattice in log w (_multivariate_t_kernels.h). The weight is then drawn given the
component, from a lattice whose offset is uniform: the draw is as exact as the sum is independent of
the offset. The relative error of the sums is e^-15 in row steps and e^-25 in queries. Of complete
rows only some distances are summed over and the others interpolated, to 1e-7.

Given the weights, the degrees of freedom hardly move. They are drawn together with all weights,
given mu and Sigma of each component, which are drawn for this and discarded (`draw_weights`).
"""

from libc.math cimport atan2, log, log1p, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset
from numpy.random cimport bitgen_t

import numpy as np
from scipy.special import fdtri, gammaln

from .._native._math cimport log_gamma
from .._native._random cimport bitgen, standard_gamma, standard_normal, uniform
from ._multivariate_normal cimport MultivariateNormal
from ._number_rows cimport NumberRows
from ._slots cimport TILE, aligned_zeros
from ._table cimport Table

from ._normal import LEAST_DEGREES
from ._slots import SLOTS

# Points of the degrees of freedom lie closer where the law changes more from one to the next.
# Beyond the last one most tables hardly distinguish a t from a normal; below the first one rows
# have no variance, but a user may give such a number.
DEGREES_OF_FREEDOM = np.array([2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 14.0, 20.0, 40.0])
DEGREES_OF_FREEDOM.setflags(write=False)
BEGIN = 7.0     # degrees of freedom before the first draw

cdef double LOG_PI = 1.1447298858494002
cdef double TURN = 6.283185307179586
cdef double LEAST, MOST     # of a weight, which sums of float64 hold beside others
LEAST, MOST = 1e-12, 1e6
cdef double LEAST_HALF = 0.5 * LEAST_DEGREES
cdef float NAN = float("nan")

cdef extern from "_multivariate_t.h" nogil:
    enum: MVT_NODES, MVT_POINTS
    ctypedef struct MvtLattice:
        double half, constant, tail
        double *step
        double *stirling
        double *weight
        double *mass
    int skanneal_level()
    double (*mvt_integrate_v[3])(const MvtLattice *, int64_t, double, double, double, double,
                                 int64_t *) noexcept
    void (*mvt_interpolate_v[3])(const MvtLattice *, int64_t, double, double, double *, int64_t,
                                 double *) noexcept
    double (*mvt_laplace_v[3])(const MvtLattice *, int64_t, double, double, double) noexcept
    void (*mvt_add_proposals_v[3])(const MvtLattice *, int64_t, int64_t, const float *,
                                   const float *, const float *, const float *, int64_t,
                                   float *) noexcept
    void (*mvt_add_given_v[3])(int64_t, const float *, const float *, const float *, const float *,
                               float, int64_t, float *) noexcept
    double (*mvt_square_v[3])(int64_t, int64_t, const char *, const int32_t *, const double *,
                              const double *, double *) noexcept


cdef double decay(double alpha, double tail, double first) noexcept nogil:
    """Where |Gamma(alpha + i t)| has fallen to e^-tail Gamma(alpha), by Stirling's formula: from
    `first` by Newton's steps. The logarithm falls ever faster, so that from the second step on they
    come down to the root from above, where lattices are finer than they must be."""
    cdef double t = first, square, angle, value, slope, of_gamma = log_gamma(alpha)
    cdef int _i
    for _i in range(6):
        square, angle = alpha * alpha + t * t, atan2(t, alpha)
        value = (0.5 * (alpha - 0.5) * log(square) - t * angle - alpha + 0.92
                 + alpha / (12.0 * square) - of_gamma + 0.7 + tail)
        slope = -0.5 * t / square - angle - alpha * t / (6.0 * square * square)
        t = max(1.0, t - value / slope)
        if abs(value) < 1e-9:
            break
    return t


cdef class MultivariateT(MultivariateNormal):
    """Rows of numbers with heavy tails: mu0, kappa0, nu0, scale0, degrees."""

    family = "multivariate_t"
    weighted = True
    proposes = True
    division = None     # a row's weight is one for all of its columns
    coordinate_names = (*MultivariateNormal.coordinate_names, "degrees")
    forms = (*MultivariateNormal.forms, "positive")
    derived = ()

    cdef MvtLattice coarse, fine        # of row steps, of queries
    cdef double tau                     # weight that the law of missing cells is given
    cdef bint averaged                  # or is it averaged over?
    cdef double[::1] logs               # (n_slots,) sum of log weights
    cdef float[::1] law                 # (n_tiles, 2, 16) score cache: see _multivariate_t.h
    cdef float[::1] distance, constant  # (n_slots,) scratch
    cdef object lattices                # keep the arrays alive

    @staticmethod
    def default_hyper(table, columns):
        """Hyperparameters for columns of mean 0 and variance 1."""
        return np.append(MultivariateNormal.default_hyper(table, columns), BEGIN)

    @staticmethod
    def grids(table, columns):
        """Grids in cell units: those of the multivariate normal, and the degrees of freedom."""
        return [*MultivariateNormal.grids(table, columns), DEGREES_OF_FREEDOM]

    def _set_up(self, table, hyper):
        cdef double[:, ::1] steps
        cdef double[:, ::1] nodes
        MultivariateNormal._set_up(self, table, hyper)
        self.tau, self.averaged = 1.0, False
        steps, nodes = np.zeros((3, self.d + 1)), aligned_zeros((3, MVT_NODES), np.float64)
        self.lattices = steps, nodes
        self.coarse.stirling = self.fine.stirling = &steps[2, 0]
        self.coarse.tail, self.fine.tail = 15.0, 25.0
        self.coarse.step, self.fine.step = &steps[0, 0], &steps[1, 0]
        self.coarse.weight = self.fine.weight = &nodes[0, 0]
        self.coarse.mass = self.fine.mass = &nodes[1, 0]
        self._set_degrees()

    cdef void _set_degrees(self) noexcept nogil:
        """The lattices of the degrees of freedom as they are."""
        cdef double half = 0.5 * self.hyper[self.hyper.shape[0] - 1], alpha
        cdef double coarse = half + self.coarse.tail, fine = half + self.fine.tail
        cdef Py_ssize_t n
        self.coarse.half = self.fine.half = half
        self.coarse.constant = self.fine.constant = half * log(half) - log_gamma(half)
        for n in range(self.d + 1):
            alpha = half + 0.5 * n
            self.coarse.stirling[n] = log_gamma(alpha) - (alpha - 0.5) * log(alpha) + alpha
            # a sum over a lattice adds terms |Gamma(alpha + i t)|, t the multiples of 2 pi / step
            coarse = decay(alpha, self.coarse.tail, coarse)
            fine = decay(alpha, self.fine.tail, fine)
            self.coarse.step[n], self.fine.step[n] = TURN / coarse, TURN / fine

    def _layout(self):
        return MultivariateNormal._layout(self) | {"logs": (np.float64, (SLOTS,))}

    def _hold(self, n_slots, *arrays):
        *inherited, self.logs = arrays
        self.law = aligned_zeros((2 * n_slots,), np.float32)
        self.distance = aligned_zeros((n_slots,), np.float32)
        self.constant = aligned_zeros((n_slots,), np.float32)
        MultivariateNormal._hold(self, n_slots, *inherited)

    # ---- the integral over a row's weight -------------------------------------------------------

    cdef double integral(self, const MvtLattice *lattice, Py_ssize_t k, Py_ssize_t n, double q,
                         double offset, int64_t *n_nodes) noexcept nogil:
        """Log of what the weights between them make of rate^(n/2) (1 + rate q)^-(degrees/2)."""
        return mvt_integrate_v[self.level](
            lattice, n, 0.5 * self.degrees(k, n), self.block.kappa0[0] + self.total[k], q, offset,
            n_nodes)

    cdef void draw_weight(self, Py_ssize_t k, Py_ssize_t n, double q, bitgen_t *rng) noexcept nogil:
        """Draw the weight of a row whose n cells are at q in slot k without it; rng NULL: its
        mean."""
        cdef int64_t n_nodes, j = 0
        cdef double total = 0.0, mean = 0.0, left
        self.integral(&self.coarse, k, n, q, uniform(rng) if rng != NULL else 0.5, &n_nodes)
        for j in range(n_nodes):
            total += self.coarse.mass[j]
            mean += self.coarse.mass[j] * self.coarse.weight[j]
        self.tau = mean / total
        if rng != NULL:
            left, j = total * uniform(rng), 0
            while j < n_nodes - 1 and left >= self.coarse.mass[j]:
                left -= self.coarse.mass[j]
                j += 1
            self.tau = self.coarse.weight[j]
        self.tau = max(LEAST, min(MOST, self.tau))

    cdef double weight_of(self, const char *row) noexcept nogil:
        cdef const float *weight = self.table.weight(row)
        return weight[0] if weight != NULL else 1.0

    cdef void add_scores(self, const char *row, Py_ssize_t n_tiles, float *out) noexcept nogil:
        """Of a row with a weight, given it; of a row as the user gave it, whatever its weight."""
        cdef const float *weight = self.table.weight(row)
        cdef Py_ssize_t k
        cdef float vacant = NAN     # what all empty slots score
        if weight != NULL:
            self.distances(row, n_tiles, &self.distance[0], &self.constant[0])
            mvt_add_given_v[self.level](self.d, &self.distance[0], &self.constant[0],
                                        self.block.student, &self.law[0], weight[0], n_tiles, out)
            return
        self.read(row, &self.offset[0])
        for k in range(n_tiles * TILE):
            if self.size[k] > 0:
                out[k] += <float> self.log_observed(k)
            else:
                if vacant != vacant:
                    vacant = <float> self.log_observed(k)
                out[k] += vacant

    cdef void add_proposals(self, const char *row, Py_ssize_t n_tiles, float *out) noexcept nogil:
        self.distances(row, n_tiles, &self.distance[0], &self.constant[0])
        if self.n_gaps < self.d:
            mvt_add_proposals_v[self.level](&self.coarse, self.d - self.n_gaps, self.d,
                                            &self.distance[0], &self.constant[0],
                                            self.block.student, &self.law[0], n_tiles, out)

    cdef float proposal_without(self, const char *observed, const char *row,
                                Py_ssize_t k) noexcept nogil:
        cdef double log_det, q = self.distance_without(observed, row, k, &log_det)
        cdef Py_ssize_t n = self.d - self.n_gaps
        cdef double half = 0.5 * (self.degrees(k, n) - 1.0)
        if n == 0:
            return 0.0
        return <float> (self.log_ratio(k, n, 1.0) + log_det + self.laplace(
            n, half, self.block.kappa0[0] + self.total[k] - self.weight_of(row), q))

    cdef double correction(self, const char *observed, const char *row, Py_ssize_t k,
                           bint held) noexcept nogil:
        cdef double log_det, q, kappa = self.block.kappa0[0] + self.total[k], half
        cdef Py_ssize_t n
        cdef int64_t n_nodes
        if held:
            kappa -= self.weight_of(row)
            q = self.distance_without(observed, row, k, &log_det)
        else:
            self.read(observed, &self.offset[0])
            q = self.condition(k)
        n = self.d - self.n_gaps
        half = 0.5 * (self.degrees(k, n) - held)
        if n == 0:
            return 0.0
        return (mvt_integrate_v[self.level](&self.coarse, n, half, kappa, q, 0.5, &n_nodes)
                - self.laplace(n, half, kappa, q))

    cdef double laplace(self, Py_ssize_t n, double half, double kappa, double q) noexcept nogil:
        return mvt_laplace_v[self.level](&self.coarse, n, half, kappa, q)

    cdef float score_without(self, const char *row, Py_ssize_t k) noexcept nogil:
        """Given the row's weight."""
        cdef double weight = self.weight_of(row), kappa0 = self.block.kappa0[0]
        cdef double rest = kappa0 + (self.total[k] - weight if self.size[k] > 1 else 0.0)
        return (MultivariateNormal.score_without(self, row, k)
                + <float> self.log_rates(weight, rest, self.size[k] - 1))

    cdef double log_rates(self, double weight, double kappa, int64_t n) noexcept nogil:
        """What exchanges the rate of weights 1, in a slot of n rows, for that of their weights."""
        cdef double unit = self.block.kappa0[0] + n
        return 0.5 * self.d * log(weight * kappa / (weight + kappa) * ((unit + 1.0) / unit))

    cdef void fill(self, const char *row, Py_ssize_t k, char *filled,
                   bitgen_t *rng) noexcept nogil:
        if self.misses(row):
            NumberRows.fill(self, row, k, filled, rng)
        else:
            self.read(row, &self.offset[0])
            self.draw_weight(k, self.d, self._solve(k, NULL), rng)
        self.table.weight(filled)[0] = <float> self.tau

    cdef void draw(self, Py_ssize_t k, double q, bitgen_t *rng) noexcept nogil:
        """The row's weight, and then its missing cells given it."""
        self.draw_weight(k, self.d - self.n_gaps, q, rng)
        NumberRows.draw(self, k, q, rng)

    # ---- statistics -----------------------------------------------------------------------------

    cdef void update(self, const char *row, Py_ssize_t k, int sign) noexcept nogil:
        MultivariateNormal.update(self, row, k, sign)
        self.logs[k] = self.logs[k] + sign * log(self.weight_of(row)) if self.size[k] > 0 else 0.0
        self.refresh_law(k)

    cdef void weigh(self, const char *row, float *out) noexcept nogil:
        cdef Py_ssize_t k
        MultivariateNormal.weigh(self, row, out)
        for k in range(2):
            out[k] += <float> self.log_rates(self.weight_of(row), self.block.kappa0[0]
                                             + self.total[k], self.size[k])

    cdef void join(self, const char *row, Py_ssize_t k) noexcept nogil:
        MultivariateNormal.join(self, row, k)
        self.logs[k] += log(self.weight_of(row))

    cdef void enter(self, const char *row, Py_ssize_t k) noexcept nogil:
        MultivariateNormal.enter(self, row, k)
        self.logs[k] += log(self.weight_of(row))

    cdef void refresh(self, Py_ssize_t k) noexcept nogil:
        MultivariateNormal.refresh(self, k)
        self.refresh_law(k)

    cdef void refresh_law(self, Py_ssize_t k) noexcept nogil:
        cdef float *law = &self.law[k // TILE * 2 * TILE + k % TILE]
        law[0] = <float> (1.0 / (self.block.kappa0[0] + self.total[k]))
        law[TILE] = <float> (0.5 * log1p(1.0 / (self.block.kappa0[0] + self.size[k])))

    cdef void merge(self, Py_ssize_t i, Py_ssize_t k) noexcept nogil:
        self.logs[i] += self.logs[k]
        MultivariateNormal.merge(self, i, k)

    # ---- marginal likelihoods and hyperparameters -----------------------------------------------

    cdef double log_weights(self, Py_ssize_t k, double half) noexcept nogil:
        """Log density of the weights of slot k's rows."""
        return (self.size[k] * (half * log(half) - log_gamma(half)) + (half - 1.0) * self.logs[k]
                - half * self.total[k])

    cdef double log_marginal_feature(self, Py_ssize_t f, Py_ssize_t k) noexcept nogil:
        """Of the rows and their weights."""
        if self.size[k] == 0:
            return 0.0
        return (self.marginal(k) + 0.5 * self.d * self.logs[k]
                + self.log_weights(k, self.coarse.half))

    cdef void score_grid(self, Py_ssize_t f, Py_ssize_t h, const double *grid, Py_ssize_t n_grid,
                         double *out) noexcept nogil:
        cdef Py_ssize_t g, k
        if h < self.hyper.shape[0] - 1:
            MultivariateNormal.score_grid(self, f, h, grid, n_grid, out)
            return
        for g in range(n_grid):
            out[g] = 0.0
            for k in range(self.n_slots):
                if self.size[k] > 0:
                    out[g] += self.log_weights(k, 0.5 * grid[g])

    cdef void set_coordinate(self, Py_ssize_t f, Py_ssize_t h, double value) noexcept nogil:
        if h < self.hyper.shape[0] - 1:
            MultivariateNormal.set_coordinate(self, f, h, value)
        else:
            self.hyper[h] = value
            self._set_degrees()

    def _take_hyper(self, other):
        MultivariateNormal._take_hyper(self, other)
        self._set_degrees()

    def draw_weights(self, rows, labels, const double[::1] grid, double beta, bit_generator):
        """Exchange the weights of all rows, together with the degrees of freedom.

        Given mu and Sigma of each component, which are drawn from their posterior first, rows are
        independent Student's t: their weights are integrated out of the probabilities of the
        degrees, and then drawn. With another point of the grid all Sigma are multiplied so that the
        radius that holds half of a component's mass stays as it is; else other points are
        improbable.

        Parameters
        ----------
        rows, labels : int array of shape (n,)
            All rows that the slots hold, and their slots.
        grid : float64 array of shape (n_points,)
            Degrees of freedom; with fewer than two they stay.
        beta : float
            Exponent of the likelihood.
        bit_generator : numpy.random.BitGenerator
        """
        cdef bitgen_t *rng = bitgen(bit_generator)
        cdef const int64_t[::1] row = np.ascontiguousarray(rows, dtype=np.int64)
        cdef const int64_t[::1] slot = np.ascontiguousarray(labels, dtype=np.int64)
        cdef Py_ssize_t i, k, last = self.hyper.shape[0] - 1, n_used = 0
        cdef double degrees, prior = 0.0
        cdef double[::1] square = np.empty(len(row)), scratch = np.empty(self.stride)
        cdef double[:, ::1] centre = np.zeros((self.n_slots, self.d))
        cdef double[:, ::1] bartlett = np.zeros((self.d, self.d))
        cdef double[:, :, ::1] whiten = np.zeros((self.n_slots, self.d, self.stride))
        if self.stale:
            self.refresh_all()
        with nogil:
            for k in range(self.n_slots):
                if self.size[k] > 0:
                    n_used += 1
                    self._draw_bartlett(k, bartlett, rng)
                    self._draw_mean(k, bartlett, &centre[k, 0], rng)
                    self._whiten_by(k, bartlett, whiten[k])
                    prior += self._prior_exponent(&centre[k, 0], whiten[k], &scratch[0])
            for i in range(row.shape[0]):
                k = slot[i]
                square[i] = mvt_square_v[self.level](
                    self.d, self.stride, self.table.row(row[i]), &self.offset[0], &centre[k, 0],
                    &whiten[k, 0, 0], &scratch[0])
        squares = np.asarray(square)
        if len(grid) > 1:
            points = np.asarray(grid)
            changes = self._radius(self.hyper[last]) / self._radius(points)
            logs = -0.5 * (prior / changes
                           + n_used * self.d * (self.block.nu0[0] + 1.0) * np.log(changes))
            for i, (nu, change) in enumerate(zip(points, changes)):
                logs[i] += beta * self._log_student(squares / change, nu, change)
            chances = np.cumsum(np.exp(logs - logs.max()))
            i = min(int(np.searchsorted(chances, uniform(rng) * chances[len(chances) - 1])),
                    len(points) - 1)
            if points[i] != self.hyper[last]:
                self.set_coordinate(0, last, points[i])
            squares /= changes[i]
        degrees = self.hyper[last]
        with nogil:
            for i in range(row.shape[0]):
                self.tau = (standard_gamma(rng, 0.5 * (degrees + self.d))
                            / (0.5 * (degrees + square[i])))
                self.tau = max(LEAST, min(MOST, self.tau))
                self.table.weight(self.table.row(row[i]))[0] = <float> self.tau
            self._enter_anew(row, slot)
        self.version += 1

    cdef void _enter_anew(self, const int64_t[::1] row, const int64_t[::1] slot) noexcept nogil:
        """Statistics of all rows after their weights changed; factors once, from the scatters."""
        cdef Py_ssize_t i, k
        cdef bint held
        for k in range(self.n_slots):
            held = self.size[k] > 0
            self.size[k], self.total[k], self.logs[k] = 0, 0.0, 0.0
            if held:
                memset(&self.mean[k, 0], 0, self.stride * sizeof(double))
                memset(&self.scatter[k, 0, 0], 0, self.d * self.stride * sizeof(double))
        for i in range(row.shape[0]):
            self.enter(self.table.row(row[i]), slot[i])
        for k in range(self.n_slots):
            if self.size[k] > 0:
                self.settle(k)

    def _radius(self, degrees):
        """The square of the radius that holds half of a component's mass, if Sigma is 1."""
        return self.d * fdtri(self.d, degrees, 0.5)

    def _log_student(self, squares, nu, change):
        """Log density of rows at these squared distances, up to terms without the degrees."""
        half = 0.5 * (nu + self.d)
        each = gammaln(half) - gammaln(0.5 * nu) - 0.5 * self.d * np.log(nu * change)
        return len(squares) * each - half * np.log1p(squares / nu).sum()

    cdef void _draw_bartlett(self, Py_ssize_t k, double[:, ::1] a, bitgen_t *rng) noexcept nogil:
        """Draw A, A A' standard Wishart (Bartlett); the inverse of Sigma is B'B, B = A'W."""
        cdef Py_ssize_t i, j
        for i in range(self.d):
            for j in range(i):
                a[i, j] = standard_normal(rng)
            a[i, i] = sqrt(max(1e-300, 2.0 * standard_gamma(
                rng, 0.5 * (self.block.nu0[0] + self.size[k] - i))))

    cdef void _draw_mean(self, Py_ssize_t k, const double[:, ::1] a, double *place,
                         bitgen_t *rng) noexcept nogil:
        """Draw mu given B: B (mu - mu_n) is standard normal but for its scale."""
        cdef double root = sqrt(self.block.kappa0[0] + self.total[k])
        cdef Py_ssize_t i, j
        for i in range(self.d):
            place[i] = standard_normal(rng)
        for i in range(self.d - 1, -1, -1):   # A' from its last row
            for j in range(i + 1, self.d):
                place[i] -= a[j, i] * place[j]
            place[i] /= a[i, i]
        for i in range(self.d):               # W from its first
            for j in range(i):
                place[i] -= self.factor[k, i, j] * place[j]
            place[i] /= self.factor[k, i, i]
        for i in range(self.d):
            place[i] = self.location(k, i) + place[i] / root

    cdef void _whiten_by(self, Py_ssize_t k, const double[:, ::1] a,
                         double[:, ::1] column) noexcept nogil:
        """The columns of B = A'W."""
        cdef Py_ssize_t i, j, l
        for l in range(self.d):
            for j in range(l + 1):
                for i in range(l + 1):
                    column[j, i] += a[l, i] * self.factor[k, l, j]

    cdef double _prior_exponent(self, const double *place, const double[:, ::1] column,
                                double *moved) noexcept nogil:
        """-2 times the exponents in the prior densities of mu and Sigma: kappa0 |B (mu - mu0)|^2
        and the trace of B scale0 B'."""
        cdef double out = 0.0, part
        cdef Py_ssize_t i, j, l, packed = 0
        for i in range(self.d):
            moved[i] = 0.0
        for j in range(self.d):
            for i in range(self.d):
                moved[i] += column[j, i] * (place[j] - self.hyper[j])
            for l in range(j + 1):
                if self.block.scale0[packed] != 0.0:
                    part = 0.0
                    for i in range(self.d):
                        part += column[j, i] * column[l, i]
                    out += (1.0 if l == j else 2.0) * self.block.scale0[packed] * part
                packed += 1
        for i in range(self.d):
            out += self.block.kappa0[0] * moved[i] * moved[i]
        return out

    # ---- queries --------------------------------------------------------------------------------

    cdef double rate(self, Py_ssize_t k) noexcept nogil:
        """Given the weight tau."""
        cdef double kappa = self.block.kappa0[0] + self.total[k]
        return self.tau * kappa / (self.tau + kappa)

    cdef double square(self, Py_ssize_t k, Py_ssize_t n, double q) noexcept nogil:
        if self.averaged:
            self.tau = self.harmonic_mean(k, n, q)
        return MultivariateNormal.square(self, k, n, q)

    cdef double harmonic_mean(self, Py_ssize_t k, Py_ssize_t n, double q) noexcept nogil:
        """Harmonic mean of the weight given n cells; without cells, for at least LEAST_DEGREES."""
        cdef int64_t n_nodes, j
        cdef double total = 0.0, inverse = 0.0
        if n == 0:
            return 1.0 - 1.0 / max(self.fine.half, LEAST_HALF)
        self.integral(&self.fine, k, n, q, 0.5, &n_nodes)
        for j in range(n_nodes):
            total += self.fine.mass[j]
            inverse += self.fine.mass[j] / self.fine.weight[j]
        return total / inverse

    cdef double log_ratio(self, Py_ssize_t k, Py_ssize_t n, double rows) noexcept nogil:
        """What the numbers of rows and cells alone say, of slot k without so many rows."""
        return (log_gamma(0.5 * (self.degrees(k, n) - rows))
                - log_gamma(0.5 * (self.degrees(k, 0) - rows)) - 0.5 * n * LOG_PI)

    cdef double log_constant(self, Py_ssize_t k, Py_ssize_t n) noexcept nogil:
        return self.log_ratio(k, n, 0.0) + self.log_det[k]

    cdef double log_kernel(self, Py_ssize_t k, Py_ssize_t n, double q) noexcept nogil:
        cdef int64_t n_nodes
        return self.integral(&self.fine, k, n, q, 0.5, &n_nodes)

    def score_rows(self, Table table, out, start=0, stop=None):
        """Add the log density of each row's observed cells, in the user's units, to out."""
        cdef double[:, ::1] scores = out
        cdef Py_ssize_t first = start, last = table.n_rows if stop is None else stop, i, k
        cdef int32_t[::1] position = np.ascontiguousarray(table.positions[self.columns], np.int32)
        cdef double shift = np.log(table.scales[self.columns]).sum(), constant
        cdef double[:, ::1] q = np.full((scores.shape[1], max(last - first, 1)), np.nan)
        cdef double[:, ::1] points = np.empty((MVT_POINTS, 2))
        with nogil:
            for i in range(first, last):
                if self.read(table.observed(i), &position[0]) == 0:
                    for k in range(scores.shape[1]):
                        q[k, i - first] = self._solve(k, NULL)
            for k in range(scores.shape[1]):
                constant = self.log_constant(k, self.d) - shift
                mvt_interpolate_v[self.level](
                    &self.fine, self.d, 0.5 * self.degrees(k, self.d),
                    self.block.kappa0[0] + self.total[k], &q[k, 0], last - first, &points[0, 0])
                for i in range(last - first):
                    if q[k, i] == q[k, i]:
                        scores[i, k] += constant + q[k, i]
        self._score_gaps(table, out, start)

    def score_feature(self, Py_ssize_t i, Table table, out, Py_ssize_t start, Py_ssize_t stop):
        """Add the log density of the i-th column's cell given the row's others, to out."""
        self._score_gaps(table, out, start, i, whole=True)

    def conditionals(self, Py_ssize_t i, Table table, rows, Py_ssize_t n_slots):
        """The law of the i-th column's missing cell given the row's observed ones, in each slot.

        Over the row's weight it is a mixture of Student's t of one centre and one number of degrees
        of freedom: what is returned is the t that has its mean and its variance."""
        self.averaged = True
        laws = MultivariateNormal.conditionals(self, i, table, rows, n_slots)
        self.averaged = False
        return laws

    def excess_law(self, Py_ssize_t n_cells):
        """The law of a cell's surprisal is not known."""
        return None

    def tail_exponent(self, Py_ssize_t n_cells):
        """That of Student's t: the limit for many rows."""
        return 0.5 * (self.hyper[len(self.hyper) - 1] + n_cells)

    def sample_rows(self, slots, bit_generator):
        """One predictive row for each of `slots`: float64 (n, n_columns), in cell units."""
        cdef bitgen_t *rng = bitgen(bit_generator)
        cdef const int64_t[::1] slot = np.ascontiguousarray(slots, dtype=np.int64)
        cdef double[:, ::1] out = MultivariateNormal.sample_rows(self, slots, bit_generator)
        cdef Py_ssize_t i, j, k
        cdef double kappa, spread, place
        with nogil:
            for i in range(slot.shape[0]):   # of weight 1 until now
                k = slot[i]
                kappa = self.block.kappa0[0] + self.total[k]
                self.tau = max(LEAST, standard_gamma(rng, self.fine.half) / self.fine.half)
                spread = sqrt(kappa / (kappa + 1.0) / self.rate(k))
                for j in range(self.d):
                    place = self.location(k, j)
                    out[i, j] = place + spread * (out[i, j] - place)
        return np.asarray(out)
