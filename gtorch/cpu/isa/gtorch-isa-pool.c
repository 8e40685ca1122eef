/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The greatest elements of windows, without their places. */

#include "config.h"

#include "cpu/ops/gtorch-cpu-pool.h"

/* Sets o to the greater one of v and w. A NaN is greater than all numbers. Each choice is a vector
 * instruction of its own: one of both conditions would be a branch. */
#define GREATER(T, o, v, w)                   \
  {                                           \
    const T greater_ = (v) > (w) ? (v) : (w); \
                                              \
    o = (v) != (v) ? (v) : greater_;          \
  }

#define PASS(T, STEP)                                 \
  _Pragma ("omp simd") for (gint64 k = 0; k < n; k++) \
  {                                                   \
    const T v = x[k * (STEP)], former = best[k];      \
                                                      \
    GREATER (T, best[k], v, former)                   \
  }

#define POOL_MAX(name, T)                                                                      \
  void GTORCH_ISA_SYMBOL (gtorch_pool_max_##name) (const void *from, gint64 step, gint64 n,    \
                                                   void *to)                                   \
  {                                                                                            \
    const T *x = from;                                                                         \
    T *best = to;                                                                              \
                                                                                               \
    if (step == 1)                                                                             \
      PASS (T, 1)                                                                              \
    else if (step == 2)                                                                        \
      PASS (T, 2)                                                                              \
    else                                                                                       \
      PASS (T, step)                                                                           \
  }                                                                                            \
                                                                                               \
  void GTORCH_ISA_SYMBOL (gtorch_pool_max_pairs_##name) (const void *from, gint64 n, void *to) \
  {                                                                                            \
    const T *x = from;                                                                         \
    T *best = to;                                                                              \
                                                                                               \
    _Pragma ("omp simd") for (gint64 k = 0; k < n; k++)                                        \
    {                                                                                          \
      const T left = x[2 * k], right = x[2 * k + 1], former = best[k];                         \
      T v;                                                                                     \
                                                                                               \
      GREATER (T, v, right, left)                                                              \
      GREATER (T, best[k], v, former)                                                          \
    }                                                                                          \
  }

POOL_MAX (f32, float)
POOL_MAX (f64, double)
POOL_MAX (i32, gint32)
POOL_MAX (i64, gint64)
