/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A row's weight w is Gamma(h, h), and given it the density of n cells at the squared distance q is
 * that of _multivariate_normal_kernels.h with rate r = w kappa/(w + kappa). In s = log w, up to
 * h log h - log Gamma(h), the product is exp g(s),
 *     g = alpha s - h w + (a - n/2) log(1 + w/kappa) - a log(1 + w/kappa + w q),
 * alpha = h + n/2 and a half of the degrees of freedom given n cells. It is analytic for
 * |Im s| < pi, so that sums over a lattice converge to the integral faster than any power of its
 * step. Ends of the lattice: w^(alpha - 1) times a falling function of w has
 *     less above than Gamma(alpha, h) has, and
 *     at most (w / w1)^alpha e^alpha of it below w, w1 = alpha / (h + n/(2 kappa) + a q).
 */
#include "../_native/_double_lanes.h"
#include "../_native/_log_wide.h"

/* The log of the integral. Nodes and masses stay in the lattice, whose first node is `offset` steps
 * from its lower end; their number. */
static double NAME(mvt_integrate)(const MvtLattice *lattice, int64_t n_cells, double a, double kappa,
                                  double q, double offset, int64_t *n_nodes)
{
    const double h = lattice->half, tail = lattice->tail, half_n = 0.5 * (double)n_cells;
    const double alpha = h + half_n, inverse = 1.0 / kappa;
    double *restrict weight = lattice->weight, *restrict mass = lattice->mass;
    q = q < 1e37 ? q : 1e37;
    const double low = log(alpha / (h + half_n * inverse + a * q)) - 1.0 - tail / alpha;
    const double high = log((alpha + tail + sqrt(2.0 * alpha * tail)) / h);
    double step = lattice->step[n_cells], largest = -INFINITY, total = 0.0;
    if (high - low > step * (MVT_NODES - 2)) step = (high - low) / (MVT_NODES - 2);
    const int64_t n = (int64_t)((high - low) / step) + 2;
    const double first = low + (offset - 1.0) * step, ratio = exp(step);
    weight[0] = exp(first);
    for (int64_t j = 1; j < n; j++) weight[j] = weight[j - 1] * ratio;
    for (int64_t j = 0; j < n; j++) {
        const double w = weight[j], share = 1.0 + w * inverse;
        mass[j] = alpha * (first + (double)j * step) - h * w +
                  (a - half_n) * NAME(log_wide)(share) - a * NAME(log_wide)(share + w * q);
    }
    for (int64_t j = 0; j < n; j++) largest = mass[j] > largest ? mass[j] : largest;
    for (int64_t j = n; j % DOUBLE_LANES; j++) mass[j] = -INFINITY;
    for (int64_t j = 0; j < n; j += DOUBLE_LANES)
        NAME(dstore)(mass + j,
                     NAME(dexp)(NAME(dsub)(NAME(dload)(mass + j), NAME(dset1)(largest))));
    for (int64_t j = 0; j < n; j++) total += mass[j];
    *n_nodes = n;
    return lattice->constant + largest + log(step * total);
}
