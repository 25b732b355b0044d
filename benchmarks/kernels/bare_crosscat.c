/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The row step of all views of a crosscat, and the statistics of all features under the partitions
 * of all views, as bare C loops: the yardsticks of crosscat_row_step.py.
 *
 * Row step: each view is a State of bare_row_step.c, made from the view's own columns and then
 * pointed at rows that hold the columns of all views and at labels (n_rows, n_views). Given the
 * features the views are independent, so each runs over a chunk of rows before the next does: its
 * caches stay in the first level, and the rows in the second.
 *
 * Structure pass: for each row, feature and view one cell is added to the statistics of the view's
 * cluster, counts of levels or sums and sums of squares; nothing is computed from them.
 */
#include "bare_row_step.c"

/* Points a view's state at the rows and labels of all views; offset is its first column. */
void bare_join(State *s, const void *rows, int offset, int32_t *labels)
{
    if (s->cells)
        s->cells = (const float *)rows + offset;
    else
        s->codes = (const uint8_t *)rows + offset;
    s->labels = labels;
}

INLINE void prefetch_bytes(const char *start, int64_t size)
{
    for (int64_t i = 0; i < size; i += 64)
        __builtin_prefetch(start + i);
    __builtin_prefetch(start + size - 1);
}

/* As loop of bare_row_step.c; `first` fetches the rows that the other views then find. */
INLINE int view_loop(State *s, int64_t stride, int n_views, int first, const int32_t *order,
                     int64_t n_steps, const int normal, const int n_slots)
{
    const int64_t row_bytes = stride * (normal ? sizeof(float) : 1);
    const char *rows = normal ? (const char *)s->cells : (const char *)s->codes;
    for (int64_t i = 0; i < n_steps; i++) {
        const int64_t row = order[i];
        int32_t *label = s->labels + row * n_views;
        const float *x = s->cells + row * stride;
        const uint8_t *codes = s->codes + row * stride;
        int k = *label;
        if (first && i + AHEAD < n_steps) {
            prefetch_bytes(rows + order[i + AHEAD] * row_bytes, row_bytes);
            __builtin_prefetch(s->labels + (int64_t)order[i + AHEAD] * n_views, 1);
        }
        slot_left(s, k);
        if (normal) {
            normal_update(s, x, k, s->n[k], -1, n_slots);
            normal_score(s, x, n_slots);
        } else {
            categorical_update(s, codes, k, -1, n_slots);
            categorical_score(s, codes, n_slots);
        }
        k = draw_slot(s, n_slots);
        if (slot_joined(s, k))
            return -1;
        if (normal)
            normal_update(s, x, k, s->n[k], 1, n_slots);
        else
            categorical_update(s, codes, k, 1, n_slots);
        *label = k;
    }
    return 0;
}

static int view_steps(State *s, int64_t stride, int n_views, int first, const int32_t *order,
                      int64_t n_steps)
{
#define VIEW_LOOP(normal, n_slots) \
    view_loop(s, stride, n_views, first, order, n_steps, normal, n_slots)
    DISPATCH(VIEW_LOOP)
}

/* Row steps of all views for rows order[0], ..., order[n_steps - 1] of `stride` cells, a chunk of
 * rows at a time.  Returns -1 if the slots do not suffice. */
int bare_views(State **views, int n_views, int64_t stride, const int32_t *order, int64_t n_steps,
               int64_t chunk)
{
    for (int64_t i = 0; i < n_steps; i += chunk) {
        const int64_t n = n_steps - i < chunk ? n_steps - i : chunk;
        for (int v = 0; v < n_views; v++)
            if (view_steps(views[v], stride, n_views, v == 0, order + i, n))
                return -1;
    }
    return 0;
}

/* counts (n_views, n_slots, n_features, LEVELS) += the rows' levels; labels (n_views, n_rows). */
void bare_scatter_codes(const uint8_t *rows, const int32_t *order, int64_t n_rows, int n_features,
                        const int32_t *labels, int n_views, int n_slots, int64_t chunk,
                        uint32_t *counts)
{
    const size_t slot_size = (size_t)n_features * LEVELS;
    for (int64_t start = 0; start < n_rows; start += chunk) {
        const int64_t stop = n_rows - start < chunk ? n_rows : start + chunk;
        for (int v = 0; v < n_views; v++)
            for (int64_t i = start; i < stop; i++) {
                const uint8_t *x = rows + (int64_t)order[i] * n_features;
                uint32_t *c =
                    counts + ((size_t)v * n_slots + labels[v * n_rows + i]) * slot_size;
                if (v == 0 && i + AHEAD < n_rows)
                    prefetch_bytes((const char *)(rows + (int64_t)order[i + AHEAD] * n_features),
                                   n_features);
                for (int f = 0; f < n_features; f++)
                    c[f * LEVELS + x[f]]++;
            }
    }
}

/* sums (n_views, n_slots, 2, n_features) += the rows' numbers and squares. */
void bare_scatter_numbers(const float *rows, const int32_t *order, int64_t n_rows, int n_features,
                          const int32_t *labels, int n_views, int n_slots, int64_t chunk,
                          double *sums)
{
    for (int64_t start = 0; start < n_rows; start += chunk) {
        const int64_t stop = n_rows - start < chunk ? n_rows : start + chunk;
        for (int v = 0; v < n_views; v++)
            for (int64_t i = start; i < stop; i++) {
                const float *restrict x = rows + (int64_t)order[i] * n_features;
                double *restrict sum =
                    sums + ((size_t)v * n_slots + labels[v * n_rows + i]) * 2 * n_features;
                double *restrict square = sum + n_features;
                if (v == 0 && i + AHEAD < n_rows)
                    prefetch_bytes((const char *)(rows + (int64_t)order[i + AHEAD] * n_features),
                                   4 * (int64_t)n_features);
                for (int f = 0; f < n_features; f++) {
                    const double cell = x[f];
                    sum[f] += cell;
                    square[f] += cell * cell;
                }
            }
    }
}
