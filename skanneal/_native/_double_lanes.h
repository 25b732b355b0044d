/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks of 8 double lanes: one, two or four registers, by instruction set. The twin of _lanes.h
 * (floats) for kernels that need all digits; included once per set through _dispatch.h.
 *
 * Everything is a correctly rounded IEEE operation on each lane alone, so all sets agree to the
 * bit. exp is a polynomial fitted for this project (Chebyshev, relative error 1e-16 before
 * rounding); its error stays below 1 unit in the last place.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define DOUBLE_LANES 8

#undef REGISTER
#undef FMA_REGISTER
#undef SQRT_REGISTER
#if defined(__AVX512F__)
#include <immintrin.h>
#define REGISTER 64
#define FMA_REGISTER(a, b, c) ((DREG)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#define SQRT_REGISTER(a) ((DREG)_mm512_sqrt_pd((__m512d)(a)))
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define REGISTER 32
#define FMA_REGISTER(a, b, c) ((DREG)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#define SQRT_REGISTER(a) ((DREG)_mm256_sqrt_pd((__m256d)(a)))
#else
#define REGISTER 16
#define FMA_REGISTER(a, b, c) NAME(fma_dreg)(a, b, c)
#define SQRT_REGISTER(a) NAME(sqrt_dreg)(a)
#endif

#define DREG NAME(dreg)
#define DIREG NAME(direg)
#define DLN NAME(dlanes)
#define DILN NAME(dilanes)
#undef INLINE
#define INLINE static inline __attribute__((always_inline, unused))

typedef double NAME(dreg) __attribute__((vector_size(REGISTER), aligned(REGISTER), may_alias));
typedef int64_t NAME(direg) __attribute__((vector_size(REGISTER), aligned(REGISTER), may_alias));
typedef struct { NAME(dreg) r[64 / REGISTER]; } NAME(dlanes);
typedef struct { NAME(direg) r[64 / REGISTER]; } NAME(dilanes);

#if REGISTER == 16
INLINE DREG NAME(fma_dreg)(DREG a, DREG b, DREG c)
{
    DREG out;
    for (int i = 0; i < 2; i++) out[i] = __builtin_fma(a[i], b[i], c[i]);
    return out;
}

INLINE DREG NAME(sqrt_dreg)(DREG a)
{
    DREG out;
    for (int i = 0; i < 2; i++) out[i] = sqrt(a[i]);
    return out;
}
#endif

/* One statement per register: a function of lanes is written  MAP(its expression in [i]). */
#undef MAP
#undef PARTS_
#define MAP(type, expression)                          \
    {                                                  \
        type out_;                                     \
        PARTS_(expression)                             \
        return out_;                                   \
    }
#if REGISTER == 64
#define PARTS_(e) { enum { i = 0 }; out_.r[0] = (e); }
#elif REGISTER == 32
#define PARTS_(e) { enum { i = 0 }; out_.r[0] = (e); } { enum { i = 1 }; out_.r[1] = (e); }
#else
#define PARTS_(e) { enum { i = 0 }; out_.r[0] = (e); } { enum { i = 1 }; out_.r[1] = (e); } \
                  { enum { i = 2 }; out_.r[2] = (e); } { enum { i = 3 }; out_.r[3] = (e); }
#endif

INLINE DLN NAME(dload)(const double *p) MAP(DLN, ((const DREG *)p)[i])
INLINE DLN NAME(dset1)(double x) MAP(DLN, x - (DREG){0})
INLINE DLN NAME(dadd)(DLN a, DLN b) MAP(DLN, a.r[i] + b.r[i])
INLINE DLN NAME(dsub)(DLN a, DLN b) MAP(DLN, a.r[i] - b.r[i])
INLINE DLN NAME(dmul)(DLN a, DLN b) MAP(DLN, a.r[i] * b.r[i])
INLINE DLN NAME(dfma)(DLN a, DLN b, DLN c) MAP(DLN, FMA_REGISTER(a.r[i], b.r[i], c.r[i]))
INLINE DLN NAME(dsqrt)(DLN a) MAP(DLN, SQRT_REGISTER(a.r[i]))
INLINE DILN NAME(dgreater)(DLN a, DLN b) MAP(DILN, (DIREG)(a.r[i] > b.r[i]))
INLINE DLN NAME(dkeep)(DILN mask, DLN a) MAP(DLN, (DREG)(mask.r[i] & (DIREG)a.r[i]))
/* a times two to the power that stands in the low bits of `biased`. */
INLINE DLN NAME(dscale)(DLN a, DLN biased) MAP(DLN, (DREG)((DIREG)a.r[i] + ((DIREG)biased.r[i] << 52)))

INLINE void NAME(dstore)(double *p, DLN a)
{
    for (int i = 0; i < (int)(64 / REGISTER); i++) ((DREG *)p)[i] = a.r[i];
}

/* exp(x), x <= 0; exactly zero below -708 and where x is not a number. */
INLINE DLN NAME(dexp)(DLN x)
{
    DILN kept = NAME(dgreater)(x, NAME(dset1)(-708.0));
    DLN y = NAME(dkeep)(kept, x);
    DLN magic = NAME(dset1)(6755399441055744.0); /* 1.5 * 2^52: adding it rounds to an integer */
    DLN biased = NAME(dfma)(y, NAME(dset1)(1.4426950408889634), magic);
    DLN n = NAME(dsub)(biased, magic);
    DLN r = NAME(dfma)(n, NAME(dset1)(-0.6931471803691238), y); /* log 2 in two parts */
    r = NAME(dfma)(n, NAME(dset1)(-1.9082149292705877e-10), r);
    DLN p = NAME(dset1)(2.510038549551032e-08);
    p = NAME(dfma)(p, r, NAME(dset1)(2.7620088445409746e-07));
    p = NAME(dfma)(p, r, NAME(dset1)(2.7557268459997064e-06));
    p = NAME(dfma)(p, r, NAME(dset1)(2.4801521295954376e-05));
    p = NAME(dfma)(p, r, NAME(dset1)(0.00019841269863053618));
    p = NAME(dfma)(p, r, NAME(dset1)(0.0013888888917213717));
    p = NAME(dfma)(p, r, NAME(dset1)(0.008333333333330062));
    p = NAME(dfma)(p, r, NAME(dset1)(0.04166666666662413));
    p = NAME(dfma)(p, r, NAME(dset1)(0.16666666666666669));
    p = NAME(dfma)(p, r, NAME(dset1)(0.5000000000000001));
    p = NAME(dfma)(NAME(dmul)(p, r), r, r);
    p = NAME(dadd)(p, NAME(dset1)(1.0));
    return NAME(dkeep)(kept, NAME(dscale)(p, biased));
}
