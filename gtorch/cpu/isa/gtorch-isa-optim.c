/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "cpu/isa/gtorch-isa-steps.h"

void GTORCH_ISA_SYMBOL (gtorch_unscale_loop) (char *const *, const gint64 *, gint64, gpointer);

#define SAME(x) (x)

/* Non-finite elements are found by x - x, which is NaN for them. `packed` is a compile-time constant. */
#define UNSCALE(name, S, T, LOAD, STORE)                                                          \
  static inline                                                                                   \
      __attribute__ ((always_inline)) void name##_loop (char *const *data, const gint64 *strides, \
                                                        gint64 n, GTorchUnscaleStep *s,           \
                                                        gboolean packed)                          \
  {                                                                                               \
    const T factor = s->factor;                                                                   \
    gint found = 0;                                                                               \
    GTORCH_STEP_OPERANDS (1)                                                                      \
                                                                                                  \
    _Pragma ("omp simd reduction(| : found)") for (gint64 i = 0; i < n; i++)                      \
    {                                                                                             \
      T g = LOAD (GTORCH_STEP_AT (S, 0));                                                         \
                                                                                                  \
      found |= !(g - g == 0);                                                                     \
      GTORCH_STEP_AT (S, 0) = STORE (g * factor);                                                 \
    }                                                                                             \
    if (found)                                                                                    \
      g_atomic_int_set (&s->found, 1);                                                            \
  }                                                                                               \
                                                                                                  \
  static void name (char *const *data, const gint64 *strides, gint64 n, gpointer step)            \
  {                                                                                               \
    if (strides[0] == sizeof (S))                                                                 \
      name##_loop (data, strides, n, step, TRUE);                                                 \
    else                                                                                          \
      name##_loop (data, strides, n, step, FALSE);                                                \
  }

UNSCALE (unscale_f32, float, float, SAME, SAME)
UNSCALE (unscale_f64, double, double, SAME, SAME)
UNSCALE (unscale_f16, guint16, float, gt_half_to_float, gt_half_from_float)
UNSCALE (unscale_bf16, guint16, float, gt_bfloat16_to_float, gt_bfloat16_from_float)

void
GTORCH_ISA_SYMBOL (gtorch_unscale_loop) (char *const *data, const gint64 *strides, gint64 n,
                                         gpointer step)
{
  switch (((const GTorchUnscaleStep *) step)->dtype)
    {
    case GTORCH_DTYPE_FLOAT64:
      unscale_f64 (data, strides, n, step);
      break;
    case GTORCH_DTYPE_FLOAT16:
      unscale_f16 (data, strides, n, step);
      break;
    case GTORCH_DTYPE_BFLOAT16:
      unscale_bf16 (data, strides, n, step);
      break;
    default:
      unscale_f32 (data, strides, n, step);
    }
}
