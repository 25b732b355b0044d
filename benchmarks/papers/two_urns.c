/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The two-urn samplers, and the exact law of the chain, for benchmarks/papers/two_urns.py.
 *
 * R red and B blue balls, N = R + B; each ball lies in the left urn with probability p, in the
 * right one with q = 1 - p; a ball in an urn is red with a probability that is Beta(a, a) and
 * integrated out. Balls of one colour are exchangeable, so the state is four counts: red left,
 * blue left, red right, blue right. A ball that is assigned, with same_l, same_r balls of its
 * colour and n_l, n_r balls in all on the left and right, goes left with probability
 *     w_l / (w_l + w_r),   w_l = p (a + same_l) / (2a + n_l),   w_r = q (a + same_r) / (2a + n_r);
 * the draw compares products instead of quotients, so a step divides nothing.
 *
 * Samples run LANES at a time in arrays that the compiler turns into vectors. Each sample has its
 * own xoshiro256++ stream, seeded by splitmix64 from (seed, strategy, index of the sample): it
 * depends neither on the number of threads nor on the other samples. A uniform u is used twice:
 * the integer part of n u picks one of n balls, the fractional part (37 bits or more of u's 52 for
 * n <= 2^15) picks its urn. Compile with -ffp-contract=off: then the samples do not depend on the
 * machine (those of the energy strategy to the last bit of the C library's log).
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LANES 16
#define EACH_LANE for (int l = 0; l < LANES; l++)

typedef struct {
    uint64_t s0[LANES], s1[LANES], s2[LANES], s3[LANES];
    double red_l[LANES], blue_l[LANES], red_r[LANES], blue_r[LANES];
    double u[LANES];
} Block;

/* -- random numbers ------------------------------------------------------------------------- */

static uint64_t splitmix64(uint64_t *x) {
    uint64_t z = (*x += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void seed_block(Block *k, uint64_t seed, uint64_t strategy, int64_t first) {
    EACH_LANE {
        uint64_t x = seed, y;
        y = splitmix64(&x) ^ strategy;
        x = splitmix64(&y) ^ (uint64_t)(first + l);
        k->s0[l] = splitmix64(&x);
        k->s1[l] = splitmix64(&x);
        k->s2[l] = splitmix64(&x);
        k->s3[l] = splitmix64(&x);
    }
}

/* One uniform of [0, 1) per lane, a multiple of 2^-52: the bits of 1 <= x < 2 are set and 1 taken
 * off, which needs no conversion from 64-bit integers (few vector units have one). u n < n holds
 * after rounding, too. */
static inline void uniforms(Block *k) {
    EACH_LANE {
        uint64_t s0 = k->s0[l], s1 = k->s1[l], s2 = k->s2[l], s3 = k->s3[l];
        uint64_t sum = s0 + s3, bits = ((sum << 23) | (sum >> 41)) + s0, t = s1 << 17;
        s2 ^= s0;
        s3 ^= s1;
        s1 ^= s2;
        s0 ^= s3;
        s2 ^= t;
        s3 = (s3 << 45) | (s3 >> 19);
        k->s0[l] = s0, k->s1[l] = s1, k->s2[l] = s2, k->s3[l] = s3;
        bits = (bits >> 12) | 0x3ff0000000000000u;
        double x;
        memcpy(&x, &bits, 8);
        k->u[l] = x - 1.0;
    }
}

/* exp with relative error below 4e-15 on [-700, 700] (clipped there), without branches. */
static inline double lane_exp(double x) {
    x = x < -700.0 ? -700.0 : x > 700.0 ? 700.0 : x;
    double shifted = x * 1.4426950408889634 + 6755399441055744.0; /* rounds to an integer */
    double k = shifted - 6755399441055744.0;
    double r = x - k * 0.693147180369123816490;
    r -= k * 1.90821492927058770002e-10;
    double y = 1.0 / 6227020800.0;
    y = y * r + 1.0 / 479001600.0;
    y = y * r + 1.0 / 39916800.0;
    y = y * r + 1.0 / 3628800.0;
    y = y * r + 1.0 / 362880.0;
    y = y * r + 1.0 / 40320.0;
    y = y * r + 1.0 / 5040.0;
    y = y * r + 1.0 / 720.0;
    y = y * r + 1.0 / 120.0;
    y = y * r + 1.0 / 24.0;
    y = y * r + 1.0 / 6.0;
    y = y * r + 0.5;
    y = y * r + 1.0;
    y = y * r + 1.0;
    uint64_t bits;
    memcpy(&bits, &shifted, 8);
    bits = (bits + 1023) << 52; /* the low bits of `shifted` hold k */
    double scale;
    memcpy(&scale, &bits, 8);
    return y * scale;
}

void exp_array(int64_t n, const double *x, double *out) {
    for (int64_t i = 0; i < n; i++)
        out[i] = lane_exp(x[i]);
}

/* -- steps: every one works on all lanes of a block ------------------------------------------- */

typedef struct {
    double n_red, n_blue, p, a;
} Urns;

/* Assign a uniformly chosen one of the n_out unassigned balls. */
static inline void assign(Block *k, Urns m, double n_out) {
    const double q = 1.0 - m.p, a = m.a, aa = 2.0 * m.a;
    uniforms(k);
    EACH_LANE {
        double x = k->u[l] * n_out, ball = floor(x), f = x - ball;
        double red_l = k->red_l[l], blue_l = k->blue_l[l];
        double red_r = k->red_r[l], blue_r = k->blue_r[l];
        double red = ball < m.n_red - (red_l + red_r) ? 1.0 : 0.0;
        double same_l = blue_l + red * (red_l - blue_l), same_r = blue_r + red * (red_r - blue_r);
        double w_l = m.p * (a + same_l) * (aa + red_r + blue_r);
        double w_r = q * (a + same_r) * (aa + red_l + blue_l);
        double left = f * (w_l + w_r) < w_l ? 1.0 : 0.0;
        k->red_l[l] = red_l + red * left;
        k->red_r[l] = red_r + (red - red * left);
        k->blue_l[l] = blue_l + (left - red * left);
        k->blue_r[l] = blue_r + (1.0 - red) * (1.0 - left);
    }
}

/* Remove a uniformly chosen one of the n_in assigned balls. */
static inline void remove_ball(Block *k, double n_in) {
    uniforms(k);
    EACH_LANE {
        double ball = floor(k->u[l] * n_in);
        double red_l = k->red_l[l], blue_l = k->blue_l[l], red_r = k->red_r[l];
        double below_1 = ball < red_l ? 1.0 : 0.0, below_2 = ball < red_l + blue_l ? 1.0 : 0.0;
        double below_3 = ball < red_l + blue_l + red_r ? 1.0 : 0.0;
        k->red_l[l] = red_l - below_1;
        k->blue_l[l] = blue_l - (below_2 - below_1);
        k->red_r[l] = red_r - (below_3 - below_2);
        k->blue_r[l] -= 1.0 - below_3;
    }
}

/* Full data: remove a ball and reassign it. red_r and blue_r are not kept, they follow. */
static inline void gibbs(Block *k, Urns m) {
    const double q = 1.0 - m.p, a = m.a, aa = 2.0 * m.a, n = m.n_red + m.n_blue;
    uniforms(k);
    EACH_LANE {
        double x = k->u[l] * n, ball = floor(x), f = x - ball;
        double red_l = k->red_l[l], blue_l = k->blue_l[l];
        int red = ball < m.n_red;
        double same = red ? red_l : blue_l, total = red ? m.n_red : m.n_blue;
        double left = (red ? ball : ball - m.n_red) < same ? 1.0 : 0.0;
        double same_l = same - left, n_l = red_l + blue_l - left;
        double same_r = total - 1.0 - same_l, n_r = n - 1.0 - n_l;
        double w_l = m.p * (a + same_l) * (aa + n_r), w_r = q * (a + same_r) * (aa + n_l);
        double now_l = same_l + (f * (w_l + w_r) < w_l ? 1.0 : 0.0);
        k->red_l[l] = red ? now_l : red_l;
        k->blue_l[l] = red ? blue_l : now_l;
    }
}

/* The same with likelihood^beta. odds[k] (red), odds[R + k] (blue) = log (a + k)/(a + total-1-k)
 * and size_odds[k] = log (2a + N-1-k)/(2a + k): with full data the right follows from the left. */
static inline void gibbs_energy(Block *k, Urns m, double beta, const double *odds,
                                const double *size_odds) {
    const double n = m.n_red + m.n_blue, logit = log(m.p) - log1p(-m.p);
    const int32_t n_red = (int32_t)m.n_red;
    uniforms(k);
    EACH_LANE {
        double x = k->u[l] * n, ball = floor(x), f = x - ball;
        double red_l = k->red_l[l], blue_l = k->blue_l[l];
        int red = ball < m.n_red;
        double same = red ? red_l : blue_l;
        double left = (red ? ball : ball - m.n_red) < same ? 1.0 : 0.0;
        double same_l = same - left, n_l = red_l + blue_l - left;
        int32_t at = (int32_t)same_l + (red ? 0 : n_red);
        double w = lane_exp(logit + beta * (odds[at] + size_odds[(int32_t)n_l]));
        double now_l = same_l + (f * (1.0 + w) < w ? 1.0 : 0.0);
        k->red_l[l] = red ? now_l : red_l;
        k->blue_l[l] = red ? blue_l : now_l;
    }
}

/* Full data: a handful of `size` balls of one colour out of one urn, colour and urn those of a
 * uniformly chosen ball (all there are, if fewer), is reassigned as if it were one ball of an urn
 * model with N/size balls: same_l, n_l, ... counted in handfuls, that is, a multiplied by size.
 * size = 1 is the single-ball Gibbs step; above it the posterior is not invariant, the law is that
 * of the smaller data. */
static inline void gibbs_handful(Block *k, Urns m, double size) {
    const double q = 1.0 - m.p, a = m.a * size, aa = 2.0 * a, n = m.n_red + m.n_blue;
    uniforms(k);
    EACH_LANE {
        double x = k->u[l] * n, ball = floor(x), f = x - ball;
        double red_l = k->red_l[l], blue_l = k->blue_l[l];
        int red = ball < m.n_red;
        double same = red ? red_l : blue_l, total = red ? m.n_red : m.n_blue;
        double left = (red ? ball : ball - m.n_red) < same ? 1.0 : 0.0;
        double from = left * same + (1.0 - left) * (total - same);
        double moved = from < size ? from : size;
        double same_l = same - left * moved, n_l = red_l + blue_l - left * moved;
        double same_r = total - moved - same_l, n_r = n - moved - n_l;
        double w_l = m.p * (a + same_l) * (aa + n_r), w_r = q * (a + same_r) * (aa + n_l);
        double now_l = same_l + (f * (w_l + w_r) < w_l ? moved : 0.0);
        k->red_l[l] = red ? now_l : red_l;
        k->blue_l[l] = red ? blue_l : now_l;
    }
}

/* -- strategies --------------------------------------------------------------------------------- */

static double *odds_table(Urns m) {
    const int32_t R = (int32_t)m.n_red, B = (int32_t)m.n_blue;
    double *t = malloc(sizeof(double) * (size_t)(2 * (R + B)));
    for (int32_t i = 0; i < R; i++) t[i] = log((m.a + i) / (m.a + R - 1 - i));
    for (int32_t i = 0; i < B; i++) t[R + i] = log((m.a + i) / (m.a + B - 1 - i));
    for (int32_t i = 0; i < R + B; i++)
        t[R + B + i] = log((2 * m.a + R + B - 1 - i) / (2 * m.a + i));
    return t;
}

enum { SEQUENTIAL, ANNEAL_SUBSAMPLE, ANNEAL_ENERGY, ANNEAL_STEPSIZE, ANNEAL_STEPSIZE_BALLS };

static void run_block(Block *k, Urns m, int strategy, int64_t sweeps, const double *table) {
    const int64_t N = (int64_t)(m.n_red + m.n_blue), total = sweeps * N;
    if (strategy == SEQUENTIAL) {
        for (int64_t n = 0; n < N; n++) assign(k, m, (double)(N - n));
        for (int64_t t = N; t < total; t++) gibbs(k, m);
    } else if (strategy == ANNEAL_SUBSAMPLE) {
        for (int64_t n = 1; n <= N; n++) {
            assign(k, m, (double)(N - n + 1));
            for (int64_t t = 1; t < sweeps; t++) {
                remove_ball(k, (double)n);
                assign(k, m, (double)(N - n + 1));
            }
        }
    } else if (strategy == ANNEAL_ENERGY) {
        for (int64_t t = 1; t <= total; t++)
            gibbs_energy(k, m, (double)t / (double)total, table, table + N);
    } else if (strategy == ANNEAL_STEPSIZE) {
        for (int64_t t = 1; t <= total; t++)
            gibbs_handful(k, m, floor((double)total / (double)t + 0.5)); /* 1/beta, rounded */
    } else { /* beta is linear in the balls moved: total / 2 handfuls of 1/beta balls are total */
        const double half = 0.5 * (double)total;
        for (double t = 1; t <= half; t++) gibbs_handful(k, m, floor(sqrt(half / t) + 0.5));
    }
}

/* Draw n_samples end states (red left, blue left), samples first .. first + n_samples - 1.
 * The strategies on full data start at init (NULL: the empty state, for the other two). */
void sample_strategy(int strategy, int64_t n_samples, int64_t first, uint64_t seed, int32_t n_red,
                     int32_t n_blue, double p, double a, int64_t sweeps, const int32_t *init,
                     int32_t *out) {
    Urns m = {n_red, n_blue, p, a};
    double *table = strategy == ANNEAL_ENERGY ? odds_table(m) : NULL;
    for (int64_t i = 0; i < n_samples; i += LANES) {
        Block k;
        memset(&k, 0, sizeof k);
        seed_block(&k, seed, (uint64_t)strategy, first + i);
        int used = n_samples - i < LANES ? (int)(n_samples - i) : LANES;
        for (int l = 0; init && l < used; l++) {
            k.red_l[l] = init[2 * (i + l)];
            k.blue_l[l] = init[2 * (i + l) + 1];
        }
        run_block(&k, m, strategy, sweeps, table);
        for (int l = 0; l < used; l++) {
            out[2 * (i + l)] = (int32_t)k.red_l[l];
            out[2 * (i + l) + 1] = (int32_t)k.blue_l[l];
        }
    }
    free(table);
}

/* -- the exact law ------------------------------------------------------------------------------ */

/* The chance that a ball of one colour leaves the left (to_right) or right (to_left) urn in one
 * step: out is (R+1) x (B+1), the state's row-major position. n_features > 1: every ball carries
 * that many features, all equal to its colour, each with its own Beta(a, a). */
void step_probabilities(int32_t R, int32_t B, double p, double a, int32_t n_features, double *red_out,
                        double *red_in, double *blue_out, double *blue_in) {
    const double n = (double)R + B, q = 1 - p, aa = 2 * a;
    for (int32_t r = 0; r <= R; r++)
        for (int32_t b = 0; b <= B; b++) {
            const double l = r + b, same[4] = {r - 1.0, r, b - 1.0, b};
            const double all[4] = {R, R, B, B}, drawn[4] = {r, R - r, b, B - b};
            double *out[4] = {red_out, red_in, blue_out, blue_in};
            for (int i = 0; i < 4; i++) {
                const int leaves = i % 2 == 0; /* the ball was on the left */
                const double n_l = l - leaves, n_r = n - 1 - n_l, same_r = all[i] - 1 - same[i];
                double like_l = (a + same[i]) * (aa + n_r), like_r = (a + same_r) * (aa + n_l);
                double w_l = p, w_r = q;
                for (int f = 0; f < n_features; f++) w_l *= like_l, w_r *= like_r;
                const int64_t at = (int64_t)r * (B + 1) + b;
                out[i][at] = drawn[i] > 0 ? drawn[i] / n * (leaves ? w_r : w_l) / (w_l + w_r) : 0.0;
            }
        }
}

/* One row (fixed red, all blue) of law P. Beyond the first and last row the neighbour is the row
 * itself, with weight 0, so that one loop serves all rows. */
static void row_step(const double *law, const double *ro, const double *ri, const double *bo,
                     const double *bi, int32_t r, int32_t R, int64_t width, double *restrict next) {
    const int64_t at = r * width, up = r < R ? at + width : at, down = r > 0 ? at - width : at;
    const double has_up = r < R ? 1.0 : 0.0, has_down = r > 0 ? 1.0 : 0.0;
    double *restrict y = next + at;
    for (int64_t b = 0; b < width; b++)
        y[b] = law[at + b] * (1.0 - ro[at + b] - ri[at + b] - bo[at + b] - bi[at + b]) +
               has_up * law[up + b] * ro[up + b] + has_down * law[down + b] * ri[down + b];
    for (int64_t b = 0; b < width - 1; b++) y[b] += law[at + b + 1] * bo[at + b + 1];
    for (int64_t b = 1; b < width; b++) y[b] += law[at + b - 1] * bi[at + b - 1];
}

/* law <- law P^steps for the single-ball Gibbs step; law (R+1) x (B+1), work five times that. */
void gibbs_law(double *law, int32_t R, int32_t B, double p, double a, int32_t n_features,
               int64_t steps, double *work) {
    const int64_t width = B + 1, size = (R + 1) * width;
    double *ro = work, *ri = work + size, *bo = work + 2 * size, *bi = work + 3 * size;
    double *next = work + 4 * size;
    step_probabilities(R, B, p, a, n_features, ro, ri, bo, bi);
    for (int64_t t = 0; t < steps; t++) {
        for (int32_t r = 0; r <= R; r++)
            row_step(law, ro, ri, bo, bi, r, R, width, next);
        memcpy(law, next, sizeof(double) * (size_t)size);
    }
}

/* One more ball, red or blue, is assigned: law (R+1) x (B+1) -> out (R+1+red) x (B+2-red). */
static void add_ball(const double *law, int32_t R, int32_t B, double p, double a,
                     int32_t n_features, int red, double *out) {
    const int32_t width = B + 2 - red;
    memset(out, 0, sizeof(double) * (size_t)(R + 1 + red) * (size_t)width);
    for (int32_t r = 0; r <= R; r++)
        for (int32_t b = 0; b <= B; b++) {
            const double n_l = r + b, n_r = R + B - n_l, x = law[(int64_t)r * (B + 1) + b];
            const double same_l = red ? r : b, same_r = red ? R - r : B - b;
            double w_l = p, w_r = 1 - p;
            for (int f = 0; f < n_features; f++) {
                w_l *= (a + same_l) * (2 * a + n_r);
                w_r *= (a + same_r) * (2 * a + n_l);
            }
            const double left = x * w_l / (w_l + w_r);
            double *at = out + (int64_t)r * width + b;
            at[red ? width : 1] += left;
            at[0] += x - left;
        }
}

/* The exact end law of linear annealing with `rate` assignments per ball (rate - 1 of them
 * remove/assign pairs, floor(rate n) in all up to ball n) and selection stratified by colour: of n
 * balls round(n R / N) are red. A pair then replaces a ball by one of its own colour, which is the
 * Gibbs step on the subsample, so two counts are the whole state. law (R+1) x (B+1) written. */
void anneal_law(int32_t R, int32_t B, double p, double a, int32_t n_features, double rate,
                double *law) {
    const int64_t N = (int64_t)R + B, size = (int64_t)(R + 1) * (B + 1);
    double *work = malloc(sizeof(double) * (size_t)(6 * size)), *next = work + 5 * size;
    int32_t r = 0, b = 0;
    law[0] = 1.0;
    for (int64_t n = 1; n <= N; n++) {
        const int red = (2 * n * R + N) / (2 * N) > r;
        add_ball(law, r, b, p, a, n_features, red, next);
        r += red, b += 1 - red;
        memcpy(law, next, sizeof(double) * (size_t)((r + 1) * (b + 1)));
        const int64_t pairs = (int64_t)(rate * n) - (int64_t)(rate * (n - 1)) - 1;
        gibbs_law(law, r, b, p, a, n_features, pairs, work);
    }
    free(work);
}

/* With random selection the subsample's red balls are random too: law[red][red left][blue left],
 * (R+1) x (R+1) x (B+1). A ball is drawn from the n assigned ones and taken out. */
static void law_of_removal(const double *law, int32_t R, int32_t B, int64_t n, double *out) {
    const int64_t w = B + 1, plane = w * (R + 1);
    memset(out, 0, sizeof(double) * (size_t)(plane * (R + 1)));
    for (int64_t red = n > B ? n - B : 0; red <= R && red <= n; red++)
        for (int64_t r = 0; r <= red; r++)
            for (int64_t b = 0; b <= n - red; b++) {
                const int64_t at = red * plane + r * w + b;
                const double x = law[at] / n;
                if (r > 0) out[at - plane - w] += x * r;
                if (red > r) out[at - plane] += x * (red - r);
                if (b > 0) out[at - 1] += x * b;
                if (n - red > b) out[at] += x * (n - red - b);
            }
}

/* A ball is drawn from those outside the n assigned ones and assigned. */
static void law_of_assignment(const double *law, int32_t R, int32_t B, double p, double a,
                              int32_t n_features, int64_t n, double *out) {
    const int64_t w = B + 1, plane = w * (R + 1);
    memset(out, 0, sizeof(double) * (size_t)(plane * (R + 1)));
    for (int64_t red = n > B ? n - B : 0; red <= R && red <= n; red++)
        for (int64_t r = 0; r <= red; r++)
            for (int64_t b = 0; b <= n - red; b++) {
                const int64_t at = red * plane + r * w + b;
                const double x = law[at] / ((double)(R + B) - n), n_l = r + b, n_r = n - n_l;
                const double blue = n - red, a_l = 2 * a + n_l, a_r = 2 * a + n_r;
                double red_l = p, red_r = 1 - p, blue_l = p, blue_r = 1 - p;
                for (int f = 0; f < n_features; f++) {
                    red_l *= (a + r) * a_r, red_r *= (a + red - r) * a_l;
                    blue_l *= (a + b) * a_r, blue_r *= (a + blue - b) * a_l;
                }
                const double x_red = x * (R - red), x_blue = x * (B - blue);
                const double red_left = x_red * red_l / (red_l + red_r);
                const double blue_left = x_blue * blue_l / (blue_l + blue_r);
                if (red < R) {
                    out[at + plane + w] += red_left;
                    out[at + plane] += x_red - red_left;
                }
                if (blue < B) {
                    out[at + 1] += blue_left;
                    out[at] += x_blue - blue_left;
                }
            }
}

/* As anneal_law with balls that enter and leave uniformly at random: three counts, small N. */
void random_selection_law(int32_t R, int32_t B, double p, double a, int32_t n_features, double rate,
                          double *law) {
    const int64_t N = (int64_t)R + B, plane = (int64_t)(R + 1) * (B + 1), size = plane * (R + 1);
    double *now = calloc((size_t)size, sizeof(double)), *next = malloc(sizeof(double) * (size_t)size);
    now[0] = 1.0;
    for (int64_t n = 1; n <= N; n++) {
        law_of_assignment(now, R, B, p, a, n_features, n - 1, next);
        const int64_t pairs = (int64_t)(rate * n) - (int64_t)(rate * (n - 1)) - 1;
        for (int64_t t = 0; t < pairs; t++) {
            law_of_removal(next, R, B, n, now);
            law_of_assignment(now, R, B, p, a, n_features, n - 1, next);
        }
        double *swap = now;
        now = next, next = swap;
    }
    memcpy(law, now + R * plane, sizeof(double) * (size_t)plane);
    free(now);
    free(next);
}
