/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Loops over many tensors: changes in place, and norms. */

#include "config.h"

#include <math.h>

#include "cpu/isa/gtorch-isa-steps.h"

void GTORCH_ISA_SYMBOL (gtorch_foreach_mul_loop) (char *const *, const gint64 *, gint64, gpointer);
void GTORCH_ISA_SYMBOL (gtorch_foreach_clamp_loop) (char *const *, const gint64 *, gint64,
                                                    gpointer);
gdouble GTORCH_ISA_SYMBOL (gtorch_norm_loop) (gconstpointer, gint64, guint, gdouble);

#define SAME(x)     (x)
#define MUL(x, y)   ((x) * (y))
#define LIMIT(x, y) ((x) < -(y) ? -(y) : (x) > (y) ? (y) : (x))
#define EACH(name, F)                                                          \
  CHANGE (name##_f32, F, float, float, SAME, SAME)                             \
  CHANGE (name##_f64, F, double, double, SAME, SAME)                           \
  CHANGE (name##_f16, F, guint16, float, gt_half_to_float, gt_half_from_float) \
  CHANGE (name##_bf16, F, guint16, float, gt_bfloat16_to_float, gt_bfloat16_from_float)

/* `packed` is a compile-time constant. */
#define CHANGE(name, F, S, T, LOAD, STORE)                                                        \
  static inline                                                                                   \
      __attribute__ ((always_inline)) void name##_loop (char *const *data, const gint64 *strides, \
                                                        gint64 n, T y, gboolean packed)           \
  {                                                                                               \
    GTORCH_STEP_OPERANDS (1)                                                                      \
                                                                                                  \
    _Pragma ("omp simd") for (gint64 i = 0; i < n; i++)                                           \
    {                                                                                             \
      T x = LOAD (GTORCH_STEP_AT (S, 0));                                                         \
                                                                                                  \
      GTORCH_STEP_AT (S, 0) = STORE (F (x, y));                                                   \
    }                                                                                             \
  }                                                                                               \
                                                                                                  \
  static void name (char *const *data, const gint64 *strides, gint64 n, T y)                      \
  {                                                                                               \
    if (strides[0] == sizeof (S))                                                                 \
      name##_loop (data, strides, n, y, TRUE);                                                    \
    else                                                                                          \
      name##_loop (data, strides, n, y, FALSE);                                                   \
  }

EACH (mul, MUL)
EACH (clamp, LIMIT)

#define DISPATCH(name)                           \
  const GTorchForeachStep *s = step;             \
                                                 \
  switch (s->dtype)                              \
    {                                            \
    case GTORCH_DTYPE_FLOAT64:                   \
      name##_f64 (data, strides, n, s->number);  \
      break;                                     \
    case GTORCH_DTYPE_FLOAT16:                   \
      name##_f16 (data, strides, n, s->number);  \
      break;                                     \
    case GTORCH_DTYPE_BFLOAT16:                  \
      name##_bf16 (data, strides, n, s->number); \
      break;                                     \
    default:                                     \
      name##_f32 (data, strides, n, s->number);  \
    }

void
GTORCH_ISA_SYMBOL (gtorch_foreach_mul_loop) (char *const *data, const gint64 *strides, gint64 n,
                                             gpointer step)
{
  DISPATCH (mul)
}

void
GTORCH_ISA_SYMBOL (gtorch_foreach_clamp_loop) (char *const *data, const gint64 *strides, gint64 n,
                                               gpointer step)
{
  DISPATCH (clamp)
}

/* --- norms --- */

/* The lanes make the order of the additions the same at each level of instructions. */
#define LANES 16

/* Accumulates F (acc, |x|) in float64 from `begin` on. */
#define FOLD(begin, F)                                                     \
  do                                                                       \
    {                                                                      \
      gdouble acc[LANES];                                                  \
      gint64 i = 0;                                                        \
                                                                           \
      for (guint j = 0; j < LANES; j++)                                    \
        acc[j] = begin;                                                    \
      for (; i + LANES <= n; i += LANES)                                   \
        for (guint j = 0; j < LANES; j++)                                  \
          acc[j] = F (acc[j], fabs ((gdouble) LOAD_NORM (values[i + j]))); \
      for (guint j = 0; i < n; i++, j++)                                   \
        acc[j] = F (acc[j], fabs ((gdouble) LOAD_NORM (values[i])));       \
      for (guint width = LANES / 2; width > 0; width /= 2)                 \
        for (guint j = 0; j < width; j++)                                  \
          acc[j] = JOIN_##F (acc[j], acc[j + width]);                      \
      return acc[0];                                                       \
    }                                                                      \
  while (0)

#define SUM(a, x)      ((a) + (x))
#define SQUARES(a, x)  ((a) + (x) * (x))
#define POWERS(a, x)   ((a) + pow (x, ord))
#define COUNT(a, x)    ((a) + ((x) != 0))
#define GREATEST(a, x) ((x) > (a) || (x) != (x) ? (x) : (a))
#define LEAST(a, x)    ((x) < (a) || (x) != (x) ? (x) : (a))
#define JOIN_SUM       SUM
#define JOIN_SQUARES   SUM
#define JOIN_POWERS    SUM
#define JOIN_COUNT     SUM
#define JOIN_GREATEST  GREATEST
#define JOIN_LEAST     LEAST

#define NORM(name, S)                                          \
  static gdouble name (gconstpointer x, gint64 n, gdouble ord) \
  {                                                            \
    const S *values = x;                                       \
                                                               \
    if (ord == 2)                                              \
      FOLD (0, SQUARES);                                       \
    if (ord == 1)                                              \
      FOLD (0, SUM);                                           \
    if (ord == 0)                                              \
      FOLD (0, COUNT);                                         \
    if (isinf (ord) && ord > 0)                                \
      FOLD (0, GREATEST);                                      \
    if (isinf (ord))                                           \
      FOLD (INFINITY, LEAST);                                  \
    FOLD (0, POWERS);                                          \
  }

#define LOAD_NORM SAME
NORM (norm_f32, float)
NORM (norm_f64, double)
#undef LOAD_NORM
#define LOAD_NORM gt_half_to_float
NORM (norm_f16, guint16)
#undef LOAD_NORM
#define LOAD_NORM gt_bfloat16_to_float
NORM (norm_bf16, guint16)

gdouble
GTORCH_ISA_SYMBOL (gtorch_norm_loop) (gconstpointer x, gint64 n, guint dtype, gdouble ord)
{
  switch (dtype)
    {
    case GTORCH_DTYPE_FLOAT64:
      return norm_f64 (x, n, ord);
    case GTORCH_DTYPE_FLOAT16:
      return norm_f16 (x, n, ord);
    case GTORCH_DTYPE_BFLOAT16:
      return norm_bf16 (x, n, ord);
    default:
      return norm_f32 (x, n, ord);
    }
}
