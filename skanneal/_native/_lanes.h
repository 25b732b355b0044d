/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks of 16 float lanes: one, two or four registers, by instruction set. Included once per set
 * (see _dispatch.h), so every name goes through NAME and the guard counts the sets.
 *
 * Everything is a correctly rounded IEEE operation on each lane alone, so all sets agree to the
 * bit. log, log1p and exp are polynomials fitted for this project (weighted least squares refined
 * to a near-minimax error on 1500 Chebyshev nodes); their errors stay below 2 units in the last
 * place, which is far below the rounding of the sums they enter.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define LANES 16

#undef REGISTER
#undef FMA_REGISTER
#if defined(__AVX512F__)
#include <immintrin.h>
#define REGISTER 64
#define FMA_REGISTER(a, b, c) ((NAME(reg))_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define REGISTER 32
#define FMA_REGISTER(a, b, c) ((NAME(reg))_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#else
#define REGISTER 16
#define FMA_REGISTER(a, b, c) NAME(fma_reg)(a, b, c)
#endif

#define REG NAME(reg)
#define IREG NAME(ireg)
#define LN NAME(lanes)
#define ILN NAME(ilanes)
#define INLINE static inline __attribute__((always_inline, unused))

#if (LEVEL == 0 && !defined(LANES_LEVEL_0)) || (LEVEL == 1 && !defined(LANES_LEVEL_1)) || \
    (LEVEL == 2 && !defined(LANES_LEVEL_2))
#if LEVEL == 0
#define LANES_LEVEL_0
#elif LEVEL == 1
#define LANES_LEVEL_1
#else
#define LANES_LEVEL_2
#endif

typedef float NAME(reg) __attribute__((vector_size(REGISTER), aligned(REGISTER), may_alias));
typedef int32_t NAME(ireg) __attribute__((vector_size(REGISTER), aligned(REGISTER), may_alias));
typedef struct { NAME(reg) r[64 / REGISTER]; } NAME(lanes);
typedef struct { NAME(ireg) r[64 / REGISTER]; } NAME(ilanes);


#if REGISTER == 16
INLINE REG NAME(fma_reg)(REG a, REG b, REG c)
{
    REG out;
    for (int i = 0; i < 4; i++) out[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return out;
}
#endif

/* One statement per register: LN result = f(...) is written  MAP(f's expression in [i]). */
#define MAP(type, expression)                          \
    {                                                  \
        type out_;                                     \
        PARTS_(expression)                             \
        return out_;                                   \
    }
#undef PARTS_
#if REGISTER == 64
#define PARTS_(e) { enum { i = 0 }; out_.r[0] = (e); }
#elif REGISTER == 32
#define PARTS_(e) { enum { i = 0 }; out_.r[0] = (e); } { enum { i = 1 }; out_.r[1] = (e); }
#else
#define PARTS_(e) { enum { i = 0 }; out_.r[0] = (e); } { enum { i = 1 }; out_.r[1] = (e); } \
                  { enum { i = 2 }; out_.r[2] = (e); } { enum { i = 3 }; out_.r[3] = (e); }
#endif

INLINE LN NAME(load)(const float *p) MAP(LN, ((const REG *)p)[i])
INLINE LN NAME(set1)(float x) MAP(LN, x - (REG){0})
INLINE LN NAME(add)(LN a, LN b) MAP(LN, a.r[i] + b.r[i])
INLINE LN NAME(sub)(LN a, LN b) MAP(LN, a.r[i] - b.r[i])
INLINE LN NAME(mul)(LN a, LN b) MAP(LN, a.r[i] * b.r[i])
INLINE LN NAME(fma)(LN a, LN b, LN c) MAP(LN, FMA_REGISTER(a.r[i], b.r[i], c.r[i]))
INLINE ILN NAME(greater)(LN a, LN b) MAP(ILN, (IREG)(a.r[i] > b.r[i]))
INLINE LN NAME(select)(ILN mask, LN a, LN b)
    MAP(LN, (REG)((mask.r[i] & (IREG)a.r[i]) | (~mask.r[i] & (IREG)b.r[i])))
INLINE LN NAME(max)(LN a, LN b)
    MAP(LN, (REG)(((IREG)(a.r[i] > b.r[i]) & (IREG)a.r[i]) | (~(IREG)(a.r[i] > b.r[i]) & (IREG)b.r[i])))
INLINE ILN NAME(bits)(LN a) MAP(ILN, (IREG)a.r[i])
INLINE LN NAME(floats)(ILN a) MAP(LN, (REG)a.r[i])
INLINE ILN NAME(iadd1)(ILN a, int32_t b) MAP(ILN, a.r[i] + b)
INLINE ILN NAME(iadd)(ILN a, ILN b) MAP(ILN, a.r[i] + b.r[i])
INLINE ILN NAME(isub)(ILN a, ILN b) MAP(ILN, a.r[i] - b.r[i])
INLINE ILN NAME(iand1)(ILN a, int32_t b) MAP(ILN, a.r[i] & b)
INLINE ILN NAME(shift_right)(ILN a, int n) MAP(ILN, a.r[i] >> n)
INLINE ILN NAME(shift_left)(ILN a, int n) MAP(ILN, a.r[i] << n)
INLINE LN NAME(to_float)(ILN a) MAP(LN, __builtin_convertvector(a.r[i], REG))

INLINE void NAME(store)(float *p, LN a) { memcpy(p, &a, sizeof a); }

/* Whether any lane is set. */
INLINE int NAME(any)(ILN mask)
{
    int32_t lane[LANES], all = 0;
    memcpy(lane, &mask, sizeof lane);
    for (int i = 0; i < LANES; i++) all |= lane[i];
    return all != 0;
}

/* Largest lane, and the sum of the lanes in the one order that every set uses: halves of 8, of 4,
 * of 2, of 1. Written on registers of four, which every set has. */
typedef float NAME(quad) __attribute__((vector_size(16), aligned(16), may_alias));
#define QUAD NAME(quad)

typedef int32_t NAME(quad_mask) __attribute__((vector_size(16), aligned(16), may_alias));

INLINE QUAD NAME(larger)(QUAD a, QUAD b)
{
    const NAME(quad_mask) keep = a > b;
    return (QUAD)((keep & (NAME(quad_mask))a) | (~keep & (NAME(quad_mask))b));
}

INLINE float NAME(reduce_max)(LN a)
{
    const QUAD *q = (const QUAD *)&a;
    const QUAD m = NAME(larger)(NAME(larger)(q[0], q[1]), NAME(larger)(q[2], q[3]));
    const float low = m[0] > m[2] ? m[0] : m[2], high = m[1] > m[3] ? m[1] : m[3];
    return low > high ? low : high;
}

INLINE float NAME(reduce_add)(LN a)
{
    const QUAD *q = (const QUAD *)&a;
    QUAD x = (q[0] + q[2]) + (q[1] + q[3]);
    return (x[0] + x[2]) + (x[1] + x[3]);
}

/* f - f^2/2 + f^3 P(f) + e log 2, for the logarithm of 2^e (1 + f), f in [sqrt(1/2)-1, sqrt(2)-1]. */
INLINE LN NAME(log_series)(LN f, LN e)
{
    LN p = NAME(set1)(-7.859541175e-02f);
    p = NAME(fma)(p, f, NAME(set1)(1.288162076e-01f));
    p = NAME(fma)(p, f, NAME(set1)(-1.312876860e-01f));
    p = NAME(fma)(p, f, NAME(set1)(1.418119638e-01f));
    p = NAME(fma)(p, f, NAME(set1)(-1.662455307e-01f));
    p = NAME(fma)(p, f, NAME(set1)(2.000228607e-01f));
    p = NAME(fma)(p, f, NAME(set1)(-2.500081043e-01f));
    p = NAME(fma)(p, f, NAME(set1)(3.333331673e-01f));
    LN f2 = NAME(mul)(f, f);
    LN tail = NAME(mul)(NAME(mul)(p, f), f2);
    tail = NAME(fma)(e, NAME(set1)(-2.12194440e-4f), tail); /* log 2 in two parts */
    tail = NAME(fma)(f2, NAME(set1)(-0.5f), tail);
    return NAME(fma)(e, NAME(set1)(0.693359375f), NAME(add)(f, tail));
}

/* Exponent e with x / 2^e in [sqrt(1/2), sqrt(2)), x positive and normal: 0x3f3504f3 is sqrt(1/2). */
INLINE ILN NAME(exponent)(LN x)
{
    return NAME(shift_right)(NAME(iadd1)(NAME(bits)(x), -0x3f3504f3), 23);
}

INLINE LN NAME(log)(LN x)
{
    ILN e = NAME(exponent)(x);
    LN m = NAME(floats)(NAME(isub)(NAME(bits)(x), NAME(shift_left)(e, 23)));
    return NAME(log_series)(NAME(sub)(m, NAME(set1)(1.0f)), NAME(to_float)(e));
}

/* log(1 + x), x >= 0: what 1 + x rounds away is put back, so that small x lose nothing. */
INLINE LN NAME(log1p)(LN x)
{
    LN one = NAME(set1)(1.0f);
    LN u = NAME(add)(x, one);
    ILN e = NAME(exponent)(u);
    ILN shift = NAME(shift_left)(e, 23);
    LN m = NAME(floats)(NAME(isub)(NAME(bits)(u), shift));
    LN scale = NAME(floats)(NAME(isub)(NAME(bits)(one), shift)); /* 2^-e */
    ILN small = NAME(greater)(one, x);
    LN lost = NAME(select)(small, NAME(sub)(x, NAME(sub)(u, one)), NAME(sub)(one, NAME(sub)(u, x)));
    LN f = NAME(fma)(lost, scale, NAME(sub)(m, one));
    return NAME(log_series)(f, NAME(to_float)(e));
}

/* exp(x), x <= 0; exactly zero below -87, where the weights of masked slots (-inf) lie. */
INLINE LN NAME(exp)(LN x)
{
    ILN kept = NAME(greater)(x, NAME(set1)(-87.0f));
    LN y = NAME(select)(kept, x, NAME(set1)(0.0f));
    LN magic = NAME(set1)(12582912.0f); /* 1.5 * 2^23: adding it rounds to an integer */
    LN n = NAME(sub)(NAME(fma)(y, NAME(set1)(1.44269504f), magic), magic);
    LN r = NAME(fma)(n, NAME(set1)(-0.693359375f), y);
    r = NAME(fma)(n, NAME(set1)(2.12194440e-4f), r);
    LN p = NAME(set1)(1.395171710e-03f);
    p = NAME(fma)(p, r, NAME(set1)(8.369598427e-03f));
    p = NAME(fma)(p, r, NAME(set1)(4.166618729e-02f));
    p = NAME(fma)(p, r, NAME(set1)(1.666651289e-01f));
    p = NAME(fma)(p, r, NAME(set1)(5.000000101e-01f));
    p = NAME(fma)(NAME(mul)(p, r), r, r);
    p = NAME(add)(p, NAME(set1)(1.0f));
    ILN e;
    {
        LN biased = NAME(add)(n, magic); /* the integer n stands in the low bits */
        e = NAME(shift_left)(NAME(iadd1)(NAME(bits)(biased), -0x4b400000), 23);
    }
    ILN scaled = NAME(bits)(p);
    LN out;
    {
        IREG *a = scaled.r;
        for (int i = 0; i < (int)(64 / REGISTER); i++) a[i] += e.r[i];
        out = NAME(floats)(scaled);
    }
    return NAME(select)(kept, out, NAME(set1)(0.0f));
}
#endif
