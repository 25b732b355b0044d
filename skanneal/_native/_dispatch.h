/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Compiles the file named by KERNELS, relative to this folder, once per instruction set, and
 * defines skanneal_level(),
 * which says which one to call: 2 = x86-64-v4 (AVX-512), 1 = x86-64-v3 (AVX2 and FMA), 0 = the
 * compiler's baseline (on arm64 that already has NEON and fused multiply-adds).
 *
 * KERNELS writes every function as  NAME(function)  and computes on the blocks of 16 lanes of
 * _lanes.h, with explicit fused multiply-adds and a fixed order of summation. With
 * -ffp-contract=off the levels therefore give the same bits, and SKANNEAL_SIMD=0 (or 1) in the
 * environment, which forces a lower level, shows it.
 *
 * Clang has no "#pragma GCC target": it gets the baseline alone.
 */
#include <stdlib.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3") /* the kernels alone: the rest of a module compiles faster without */
#endif

#undef NAME
#define LEVEL 0
#define NAME(f) f##_0
#include KERNELS
#undef NAME
#undef LEVEL

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
#define SKANNEAL_LEVELS 3

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
#define LEVEL 1
#define NAME(f) f##_1
#include KERNELS
#undef NAME
#undef LEVEL
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,prefer-vector-width=512")
#define LEVEL 2
#define NAME(f) f##_2
#include KERNELS
#undef NAME
#undef LEVEL
#pragma GCC pop_options

#define VARIANTS(f) {f##_0, f##_1, f##_2}
#else
#define SKANNEAL_LEVELS 1
#define VARIANTS(f) {f##_0}
#endif

/* Defines f_v, the table of a function's variants, indexed by level. */
#define DISPATCH(f) static __typeof__(&f##_0) const f##_v[] = VARIANTS(f)

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

#ifndef SKANNEAL_DISPATCH_H
#define SKANNEAL_DISPATCH_H
static inline int skanneal_level(void)
{
    int level = 0;
#if SKANNEAL_LEVELS == 3
    __builtin_cpu_init();
    if (__builtin_cpu_supports("x86-64-v3")) level = 1;
    if (__builtin_cpu_supports("x86-64-v4")) level = 2;
    const char *forced = getenv("SKANNEAL_SIMD");
    if (forced != NULL && forced[0] >= '0' && forced[0] - '0' < level) level = forced[0] - '0';
#endif
    return level;
}
#endif
