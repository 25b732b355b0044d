/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sums over rows of doubles, padded to blocks of 8: included once per instruction set (see
 * _dispatch.h). Four rows at a time, each with its own 8 lanes, added in a fixed order: all sets
 * give the same bits.
 */
typedef double NAME(rows8) __attribute__((vector_size(64), aligned(8), may_alias));

/* The sum of squares of rows - centre. */
static double NAME(gaussian_squares)(const double *rows, const double *centre, int64_t n,
                                     int64_t n_blocks)
{
    NAME(rows8) sum[4] = {{0.0}};
    const NAME(rows8) *row = (const NAME(rows8) *)rows;
    const NAME(rows8) *mean = (const NAME(rows8) *)centre;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4, row += 4 * n_blocks)
        for (int64_t b = 0; b < n_blocks; b++) {
            NAME(rows8) d0 = row[b] - mean[b];
            NAME(rows8) d1 = row[b + n_blocks] - mean[b];
            NAME(rows8) d2 = row[b + 2 * n_blocks] - mean[b];
            NAME(rows8) d3 = row[b + 3 * n_blocks] - mean[b];
            sum[0] += d0 * d0;
            sum[1] += d1 * d1;
            sum[2] += d2 * d2;
            sum[3] += d3 * d3;
        }
    for (; i < n; i++, row += n_blocks)
        for (int64_t b = 0; b < n_blocks; b++) {
            NAME(rows8) d = row[b] - mean[b];
            sum[0] += d * d;
        }
    sum[0] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    return ((sum[0][0] + sum[0][1]) + (sum[0][2] + sum[0][3])) +
           ((sum[0][4] + sum[0][5]) + (sum[0][6] + sum[0][7]));
}

/* total = the sum of the rows. */
static void NAME(gaussian_total)(const double *rows, double *total, int64_t n, int64_t n_blocks)
{
    const NAME(rows8) *row = (const NAME(rows8) *)rows;
    NAME(rows8) *out = (NAME(rows8) *)total;
    int64_t i = 0;
    for (int64_t b = 0; b < n_blocks; b++) out[b] = (NAME(rows8)){0.0};
    for (; i + 4 <= n; i += 4, row += 4 * n_blocks)
        for (int64_t b = 0; b < n_blocks; b++)
            out[b] += (row[b] + row[b + n_blocks]) + (row[b + 2 * n_blocks] + row[b + 3 * n_blocks]);
    for (; i < n; i++, row += n_blocks)
        for (int64_t b = 0; b < n_blocks; b++) out[b] += row[b];
}
