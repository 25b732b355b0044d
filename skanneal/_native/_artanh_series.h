/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The series behind the logarithms of this project:  log((1 + s) / (1 - s)) = 2 artanh s.
 *
 * These are macros, so that a loop over them becomes vectors of whatever instruction set it is
 * compiled for.
 */
#ifndef SKANNEAL_ARTANH_SERIES_H
#define SKANNEAL_ARTANH_SERIES_H

/* Makes p = (artanh s - s) / s^3 = 1/3 + z/5 + z^2/7 + ..., z = s^2. On entry p is the sum from the
 * coefficient 1/17 on: what it holds says how many terms are taken. */
#define ARTANH_SERIES(p, z)     \
    do {                        \
        p = p * z + 1.0 / 15.0; \
        p = p * z + 1.0 / 13.0; \
        p = p * z + 1.0 / 11.0; \
        p = p * z + 1.0 / 9.0;  \
        p = p * z + 1.0 / 7.0;  \
        p = p * z + 1.0 / 5.0;  \
        p = p * z + 1.0 / 3.0;  \
    } while (0)

/* Makes out = log(1 + t) - t of a small t, without the difference: with r = t / (2 + t) it is
 * 2 (r + r^3 / 3 + ...) - t = r (2 (r^2 / 3 + ...) - t). The terms end with 1/17, or with 1/19 if
 * `more` is 1. */
#define LOG1P_LESS_SERIES(out, t, more)                                         \
    do {                                                                        \
        const double r_ = (t) / (2.0 + (t)), y_ = r_ * r_;                      \
        double p_ = (more) ? 1.0 / 19.0 * y_ + 1.0 / 17.0 : 1.0 / 17.0;         \
        ARTANH_SERIES(p_, y_);                                                  \
        out = r_ * (2.0 * y_ * p_ - (t));                                       \
    } while (0)
#endif
