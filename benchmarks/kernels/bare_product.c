/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The product of a sparse matrix of counts and a dense one as a bare C loop: the yardstick of
 * assignment_pass.py.
 *
 * out[i][k] = sum over the entries (j, x) of row i of x weight[j][k]. The features stand in groups
 * of 16, 32 or 64, each group a matrix (columns, width) of its own; a block of rows goes over one
 * group before the next, into room for one block. Built with -O3 -ffast-math, it shares nothing
 * with the package.
 */
#include <stdint.h>

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX2__)
#define LANES 8
#else
#define LANES 4
#endif
#define INLINE static inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(4 * LANES), may_alias));

/* One row and one group of n registers, a constant where this is called. */
INLINE void row_group(const uint32_t *column, const float *count, int64_t n_entries,
                      const vec *group, const int n, vec *out)
{
    vec sum[64 / LANES], other[64 / LANES];
#pragma GCC unroll 16
    for (int r = 0; r < n; r++) sum[r] = other[r] = (vec){0};
    int64_t e = 0;
    for (; e + 1 < n_entries; e += 2) {
        const vec *v = group + (int64_t)column[e] * n, *w = group + (int64_t)column[e + 1] * n;
#pragma GCC unroll 16
        for (int r = 0; r < n; r++) {
            sum[r] += count[e] * v[r];
            other[r] += count[e + 1] * w[r];
        }
    }
    if (e < n_entries) {
        const vec *v = group + (int64_t)column[e] * n;
#pragma GCC unroll 16
        for (int r = 0; r < n; r++) sum[r] += count[e] * v[r];
    }
#pragma GCC unroll 16
    for (int r = 0; r < n; r++) out[r] = sum[r] + other[r];
}

INLINE void product(int64_t n_rows, int64_t n_columns, int64_t n_groups, const int64_t *start,
                    const uint32_t *column, const float *count, const float *weight, int64_t block,
                    const int width, float *out)
{
    for (int64_t first = 0; first < n_rows; first += block) {
        const int64_t last = first + block < n_rows ? first + block : n_rows;
        for (int64_t g = 0; g < n_groups; g++)
            for (int64_t i = first; i < last; i++)
                row_group(column + start[i], count + start[i], start[i + 1] - start[i],
                          (const vec *)(weight + g * n_columns * width), width / LANES,
                          (vec *)(out + ((i - first) * n_groups + g) * width));
    }
}

#define BARE_PRODUCT(width)                                                                     \
    void bare_product_##width(int64_t n_rows, int64_t n_columns, int64_t n_groups,              \
                              const int64_t *start, const uint32_t *column, const float *count, \
                              const float *weight, int64_t block, float *out)                   \
    {                                                                                           \
        product(n_rows, n_columns, n_groups, start, column, count, weight, block, width, out);  \
    }

BARE_PRODUCT(16)
BARE_PRODUCT(32)
BARE_PRODUCT(64)
