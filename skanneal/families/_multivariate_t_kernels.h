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
 *
 * A row step proposes from Laplace's approximation at the mode of g, in all slots at once, with
 * the exact log Gamma(alpha) in the place of Stirling's: the approximation is then the limit for
 * many rows in the slot. Of 20 rows on it is right to 0.01, of few and far away to 0.5 (measured).
 * The mode is that for kappa without bounds, a root of a square, and two of Newton's steps.
 */
#include "../_native/_double_lanes.h"
#include "../_native/_log_wide.h"
#include "_gaps_kernels.h"

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

/* The log integral at c expm1(j / MVT_FINE), and its slope by j. */
static void NAME(mvt_point)(const MvtLattice *lattice, int64_t n_cells, double a, double kappa,
                            double c, int64_t j, double *at)
{
    const double q = c * expm1((double)j / MVT_FINE), inverse = 1.0 / kappa;
    double total = 0.0, part = 0.0;
    int64_t n;
    at[0] = NAME(mvt_integrate)(lattice, n_cells, a, kappa, q, 0.5, &n);
    for (int64_t i = 0; i < n; i++) {
        const double w = lattice->weight[i];
        total += lattice->mass[i];
        part += lattice->mass[i] * w / (1.0 + w * inverse + w * q);
    }
    at[1] = -a * part / total * (q + c) / MVT_FINE;
}

/* Put log integrals in the place of squared distances q, nan for none, of many rows in one slot: by
 * cubics in log(1 + q / c), c where the integral bends. `points` is scratch, 2 MVT_POINTS. */
static void NAME(mvt_interpolate)(const MvtLattice *lattice, int64_t n_cells, double a,
                                  double kappa, double *q, int64_t n_rows, double *points)
{
    const double c = (lattice->half + 0.5 * (double)n_cells) / a;
    for (int64_t i = 0; i < n_rows; i++) {
        if (q[i] != q[i]) continue;
        q[i] = fmin(log1p(q[i] / c) * MVT_FINE, MVT_POINTS - 2.0);
        points[2 * (int64_t)q[i]] = points[2 * (int64_t)q[i] + 2] = NAN; /* not known yet */
    }
    for (int64_t i = 0; i < n_rows; i++) {
        if (q[i] != q[i]) continue;
        const int64_t j = (int64_t)q[i];
        const double u = q[i] - (double)j, v = 1.0 - u;
        double *at = points + 2 * j;
        if (at[0] != at[0]) NAME(mvt_point)(lattice, n_cells, a, kappa, c, j, at);
        if (at[2] != at[2]) NAME(mvt_point)(lattice, n_cells, a, kappa, c, j + 1, at + 2);
        const double rise = at[2] - at[0];
        q[i] = v * at[0] + u * at[2] + u * v * (v * (at[1] - rise) - u * (at[3] - rise));
    }
}

/* The log integral in 16 slots by Laplace's approximation; a and 1/kappa by slot. */
INLINE void NAME(mvt_laplace_tile)(const MvtLattice *lattice, int64_t n_cells, const float *a,
                                   const float *inverse, const float *distance, float *out)
{
    const float h = (float)lattice->half, half_n = 0.5f * (float)n_cells, alpha = h + half_n;
    float weight[LANES] __attribute__((aligned(64))), share[LANES] __attribute__((aligned(64)));
    float rise[LANES] __attribute__((aligned(64))), bend[LANES] __attribute__((aligned(64)));
    float q[LANES] __attribute__((aligned(64)));
    for (int l = 0; l < LANES; l++) {
        q[l] = distance[l] < 1e28f ? distance[l] : 1e28f;
        const float unit = q[l] > 1.0f ? q[l] : 1.0f, part = q[l] / unit;
        const float b = h / unit + (a[l] - alpha) * part;
        const float root = sqrtf(b * b + 4.0f * h * alpha * part / unit);
        const float above = 2.0f * alpha / (unit * (b + root));
        const float below = (root - b) / (2.0f * h * (part > 1e-30f ? part : 1e-30f));
        weight[l] = b > 0.0f ? above : below;
    }
#define CURVE(l)                                                                              \
    const float w = weight[l], u = w * inverse[l], p = u / (1.0f + u);                        \
    const float c = (inverse[l] + q[l]) * w, v = c / (1.0f + c);                              \
    const float own = h * w + (half_n - a[l]) * p * (1.0f - p) + a[l] * v * (1.0f - v);       \
    const float curve = own > 0.05f ? own : 0.05f;
    for (int step = 0; step < 2; step++)
        for (int l = 0; l < LANES; l++) {
            CURVE(l)
            float change = (alpha - h * w - half_n * p - a[l] * (v - p)) / curve;
            change = change < 1.5f ? change : 1.5f;
            change = change > -1.5f ? change : -1.5f;
            weight[l] = w * ((2.0f + change) / (2.0f - change)); /* close to exp */
        }
    for (int l = 0; l < LANES; l++) {
        CURVE(l)
        bend[l] = curve;
        share[l] = u;
        rise[l] = w / (1.0f + u) * q[l];
    }
#undef CURVE
    const LN w = NAME(load)(weight), first = NAME(set1)((float)(lattice->constant +
                                                               lattice->stirling[n_cells]));
    LN g = NAME(fma)(NAME(set1)(alpha), NAME(log)(w), first);
    g = NAME(sub)(g, NAME(mul)(NAME(set1)(h), w));
    g = NAME(sub)(g, NAME(mul)(NAME(set1)(half_n), NAME(log1p)(NAME(load)(share))));
    g = NAME(sub)(g, NAME(mul)(NAME(load)(a), NAME(log1p)(NAME(load)(rise))));
    g = NAME(sub)(g, NAME(mul)(NAME(set1)(0.5f), NAME(log)(NAME(load)(bend))));
    NAME(store)(out, g);
}

/* The same of one slot. */
static double NAME(mvt_laplace)(const MvtLattice *lattice, int64_t n_cells, double a, double kappa,
                                double q)
{
    float of[LANES] __attribute__((aligned(64))), inverse[LANES] __attribute__((aligned(64)));
    float distance[LANES] __attribute__((aligned(64))), out[LANES] __attribute__((aligned(64)));
    for (int l = 0; l < LANES; l++) {
        of[l] = (float)a;
        inverse[l] = (float)(1.0 / kappa);
        distance[l] = q < 1e30 ? (float)q : 1e30f;
    }
    NAME(mvt_laplace_tile)(lattice, n_cells, of, inverse, distance, out);
    return out[0];
}

/* Add proposals of a row whose n of d cells are at these distances. */
static void NAME(mvt_add_proposals)(const MvtLattice *lattice, int64_t n, int64_t d,
                                    const float *distance, const float *constant,
                                    const float *student, const float *law, int64_t n_tiles,
                                    float *out)
{
    const LN cells = NAME(set1)((float)n), missing = NAME(set1)(0.5f * (float)(d - n));
    float a[LANES] __attribute__((aligned(64))), g[LANES] __attribute__((aligned(64)));
    for (int64_t k = 0; k < n_tiles * LANES; k += LANES) {
        const float *own = law + 2 * k;
        NAME(store)(a, NAME(sub)(NAME(load)(student + 4 * k + LANES), missing));
        NAME(mvt_laplace_tile)(lattice, n, a, own, distance + k, g);
        LN score = NAME(fma)(cells, NAME(load)(own + LANES), NAME(load)(constant + k));
        score = NAME(add)(score, NAME(load)(g));
        NAME(store)(out + k, NAME(add)(NAME(load)(out + k), score));
    }
}

/* Add scores of a whole row, given its weight. */
static void NAME(mvt_add_given)(int64_t d, const float *distance, const float *constant,
                                const float *student, const float *law, float weight,
                                int64_t n_tiles, float *out)
{
    const LN cells = NAME(set1)((float)d), limit = NAME(set1)(1e37f);
    for (int64_t k = 0; k < n_tiles * LANES; k += LANES) {
        const float *own = law + 2 * k;
        LN inverse = NAME(add)(NAME(set1)(1.0f / weight), NAME(load)(own)), logs;
        LN t = NAME(div)(NAME(load)(distance + k), inverse);
        t = NAME(select)(NAME(greater)(limit, t), t, limit);
        logs = NAME(sub)(NAME(load)(own + LANES), NAME(mul)(NAME(set1)(0.5f), NAME(log)(inverse)));
        LN score = NAME(fma)(cells, logs, NAME(load)(constant + k));
        score = NAME(sub)(score, NAME(mul)(NAME(load)(student + 4 * k + LANES), NAME(log1p)(t)));
        NAME(store)(out + k, NAME(add)(NAME(load)(out + k), score));
    }
}

/* |B (x - mu)|^2 of a row. `column` has the columns of B in rows of `stride`, a multiple of 8, as
 * `sum`, which is scratch, has room for. */
static double NAME(mvt_square)(int64_t d, int64_t stride, const char *row, const int32_t *offset,
                               const double *mean, const double *restrict column,
                               double *restrict sum)
{
    double q = 0.0;
    for (int64_t i = 0; i < stride; i++) sum[i] = 0.0;
    for (int64_t j = 0; j < d; j++) {
        const double e = (double)*(const float *)(row + offset[j]) - mean[j];
        for (int64_t i = 0; i < stride; i++) sum[i] += column[j * stride + i] * e;
    }
    for (int64_t i = 0; i < d; i++) q += sum[i] * sum[i];
    return q;
}
