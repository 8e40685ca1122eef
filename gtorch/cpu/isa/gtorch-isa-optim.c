/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <math.h>

#include "cpu/gtorch-cpu-optim.h"
#include "cpu/isa/gtorch-isa-half.h"

void GTORCH_ISA_SYMBOL (gtorch_sgd_loop) (char *const *, const gint64 *, gint64, gpointer);
void GTORCH_ISA_SYMBOL (gtorch_adam_loop) (char *const *, const gint64 *, gint64, gpointer);
void GTORCH_ISA_SYMBOL (gtorch_unscale_loop) (char *const *, const gint64 *, gint64, gpointer);

#define SAME(x)  (x)
#define MOST     5 /* operands */
#define AT(S, k) (*(S *) (at[k] + i * (packed ? (gint64) sizeof (S) : stride[k])))

/* Compiled once for elements that follow each other, which become vectors, and once for any strides, each
 * with and without what a step may have, since a branch in the loop would keep it from that. The last two
 * arguments are constants. */
#define LOOP(name, STEP)                                                                          \
  static inline                                                                                   \
      __attribute__ ((always_inline)) void name##_loop (char *const *data, const gint64 *strides, \
                                                        gint64 n, STEP *s, gboolean packed,       \
                                                        gboolean more)

/* Copies, of which the compiler knows that no element is among them. */
#define OPERANDS(n_operands)               \
  char *at[MOST];                          \
  gint64 stride[MOST];                     \
                                           \
  for (guint k = 0; k < (n_operands); k++) \
    {                                      \
      at[k] = data[k];                     \
      stride[k] = strides[k];              \
    }

#define FORMS(name, S, STEP, n_operands, has_more)                               \
  static void name (char *const *data, const gint64 *strides, gint64 n, STEP *s) \
  {                                                                              \
    gboolean packed = TRUE;                                                      \
                                                                                 \
    for (guint k = 0; k < ((has_more) ? (n_operands) : (n_operands) -1); k++)    \
      packed = packed && strides[k] == sizeof (S);                               \
    if (packed && (has_more))                                                    \
      name##_loop (data, strides, n, s, TRUE, TRUE);                             \
    else if (packed)                                                             \
      name##_loop (data, strides, n, s, TRUE, FALSE);                            \
    else if (has_more)                                                           \
      name##_loop (data, strides, n, s, FALSE, TRUE);                            \
    else                                                                         \
      name##_loop (data, strides, n, s, FALSE, FALSE);                           \
  }

/* more: a buffer */
#define SGD(name, S, T, LOAD, STORE, SQRT)                                         \
  LOOP (sgd_##name, const GTorchSGDStep)                                           \
  {                                                                                \
    const T sign = s->maximize ? -1 : 1, decay = s->weight_decay, lr = s->lr;      \
    const T momentum = s->momentum, rest = s->first ? 1 : 1 - s->dampening;        \
    const T keep = s->first ? 0 : s->momentum;                                     \
    const gboolean first = s->first, nesterov = s->nesterov;                       \
    OPERANDS (more ? 3 : 2)                                                        \
                                                                                   \
    _Pragma ("omp simd") for (gint64 i = 0; i < n; i++)                            \
    {                                                                              \
      T p = LOAD (AT (S, 0)), g = sign * LOAD (AT (S, 1)) + decay * p;             \
                                                                                   \
      if (more)                                                                    \
        {                                                                          \
          T former = LOAD (AT (S, 2)), b = (first ? 0 : keep * former) + rest * g; \
                                                                                   \
          AT (S, 2) = STORE (b);                                                   \
          g = nesterov ? g + momentum * b : b;                                     \
        }                                                                          \
      AT (S, 0) = STORE (p - lr * g);                                              \
    }                                                                              \
  }                                                                                \
  FORMS (sgd_##name, S, const GTorchSGDStep, 3, s->has_buffer)

/* more: the greatest means of squares */
#define ADAM(name, S, T, LOAD, STORE, SQRT)                                                     \
  LOOP (adam_##name, const GTorchAdamStep)                                                      \
  {                                                                                             \
    const T sign = s->maximize ? -1 : 1, beta1 = s->beta1, beta2 = s->beta2, eps = s->eps;      \
    const T decay = s->decoupled ? 0 : s->weight_decay;                                         \
    const T shrink = s->decoupled ? 1 - s->lr * s->weight_decay : 1;                            \
    const T rest1 = 1 - s->beta1, rest2 = 1 - s->beta2;                                         \
    const T size = s->lr / s->correction1, root = s->correction2_sqrt;                          \
    OPERANDS (more ? 5 : 4)                                                                     \
                                                                                                \
    _Pragma ("omp simd") for (gint64 i = 0; i < n; i++)                                         \
    {                                                                                           \
      T p = shrink * LOAD (AT (S, 0)), g = sign * LOAD (AT (S, 1)) + decay * p;                 \
      T m = beta1 * LOAD (AT (S, 2)) + rest1 * g, v = beta2 * LOAD (AT (S, 3)) + rest2 * g * g; \
                                                                                                \
      AT (S, 2) = STORE (m);                                                                    \
      AT (S, 3) = STORE (v);                                                                    \
      if (more)                                                                                 \
        {                                                                                       \
          T most = LOAD (AT (S, 4));                                                            \
                                                                                                \
          v = v > most ? v : most;                                                              \
          AT (S, 4) = STORE (v);                                                                \
        }                                                                                       \
      AT (S, 0) = STORE (p - size * m / (SQRT (v) / root + eps));                               \
    }                                                                                           \
  }                                                                                             \
  FORMS (adam_##name, S, const GTorchAdamStep, 5, s->amsgrad)

/* The difference of what is not finite with itself is NaN. */
#define UNSCALE(name, S, T, LOAD, STORE, SQRT)                               \
  LOOP (unscale_##name, GTorchUnscaleStep)                                   \
  {                                                                          \
    const T factor = s->factor;                                              \
    gint found = 0;                                                          \
    OPERANDS (1)                                                             \
                                                                             \
    _Pragma ("omp simd reduction(| : found)") for (gint64 i = 0; i < n; i++) \
    {                                                                        \
      T g = LOAD (AT (S, 0));                                                \
                                                                             \
      found |= !(g - g == 0);                                                \
      AT (S, 0) = STORE (g * factor);                                        \
    }                                                                        \
    if (found)                                                               \
      g_atomic_int_set (&s->found, 1);                                       \
  }                                                                          \
  FORMS (unscale_##name, S, GTorchUnscaleStep, 1, TRUE)

#define EACH(STEP)                                                        \
  STEP (f32, float, float, SAME, SAME, sqrtf)                             \
  STEP (f64, double, double, SAME, SAME, sqrt)                            \
  STEP (f16, guint16, float, gt_half_to_float, gt_half_from_float, sqrtf) \
  STEP (bf16, guint16, float, gt_bfloat16_to_float, gt_bfloat16_from_float, sqrtf)

EACH (SGD)
EACH (ADAM)
EACH (UNSCALE)

#define DISPATCH(name)                   \
  switch (s->dtype)                      \
    {                                    \
    case GTORCH_DTYPE_FLOAT64:           \
      name##_f64 (data, strides, n, s);  \
      break;                             \
    case GTORCH_DTYPE_FLOAT16:           \
      name##_f16 (data, strides, n, s);  \
      break;                             \
    case GTORCH_DTYPE_BFLOAT16:          \
      name##_bf16 (data, strides, n, s); \
      break;                             \
    default:                             \
      name##_f32 (data, strides, n, s);  \
    }

void
GTORCH_ISA_SYMBOL (gtorch_sgd_loop) (char *const *data, const gint64 *strides, gint64 n,
                                     gpointer step)
{
  const GTorchSGDStep *s = step;

  DISPATCH (sgd)
}

void
GTORCH_ISA_SYMBOL (gtorch_adam_loop) (char *const *data, const gint64 *strides, gint64 n,
                                      gpointer step)
{
  const GTorchAdamStep *s = step;

  DISPATCH (adam)
}

void
GTORCH_ISA_SYMBOL (gtorch_unscale_loop) (char *const *data, const gint64 *strides, gint64 n,
                                         gpointer step)
{
  GTorchUnscaleStep *s = step;

  DISPATCH (unscale)
}
