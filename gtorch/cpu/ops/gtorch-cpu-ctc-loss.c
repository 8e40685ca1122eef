/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Connectionist temporal classification: see ops/ctc-loss.c. Logarithms are summed up in float64. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>

#include "cpu/gtorch-cpu-pack.h"
#include "cpu/ops/gtorch-cpu-index.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

typedef struct
{
  GTorchCtc sizes;
  gboolean is_single; /* float32 */
  gconstpointer x;
  const gint64 *targets;
  const gint64 *lengths; /* numbers of steps, numbers of labels, where these begin */
  gpointer loss, alpha;
  gconstpointer upper;
  gdouble *beta; /* two steps of each example */
  gpointer grad;
} Ctc;

/* An example: its labels, and how many steps and states it has. */
typedef struct
{
  const gint64 *labels;
  gint64 steps, states;
} Example;

static inline gdouble
get (const Ctc *ctc, gconstpointer x, gint64 i)
{
  return ctc->is_single ? (gdouble) ((const gfloat *) x)[i] : ((const gdouble *) x)[i];
}

static inline void
put (const Ctc *ctc, gpointer x, gint64 i, gdouble value)
{
  if (ctc->is_single)
    ((gfloat *) x)[i] = (gfloat) value;
  else
    ((gdouble *) x)[i] = value;
}

static Example
example_of (const Ctc *ctc, gint64 b)
{
  const gint64 n = ctc->sizes.n;

  return (Example){ .labels = ctc->targets + ctc->lengths[2 * n + b],
                    .steps = ctc->lengths[b],
                    .states = 2 * ctc->lengths[n + b] + 1 };
}

static inline gint64
class_of (const Ctc *ctc, const Example *example, gint64 s)
{
  return s % 2 == 0 ? ctc->sizes.blank : example->labels[s / 2];
}

/* Returns where the log-probabilities of a step begin. */
static inline gint64
row_of (const Ctc *ctc, gint64 t, gint64 b)
{
  return (t * ctc->sizes.n + b) * ctc->sizes.classes;
}

static inline gdouble
log_sum (gdouble a, gdouble b, gdouble c)
{
  const gdouble most = fmax (fmax (a, b), c);

  return isinf (most) ? most : most + log (exp (a - most) + exp (b - most) + exp (c - most));
}

static void
find_losses (gint64 begin, gint64 end, gpointer user_data)
{
  const Ctc *ctc = user_data;
  const gint64 width = ctc->sizes.states;

  for (gint64 b = begin; b < end; b++)
    {
      const Example example = example_of (ctc, b);
      const gint64 base = b * ctc->sizes.steps * width;
      gint64 t, s, last;
      gdouble sum;

      for (t = 0; t < ctc->sizes.steps; t++)
        for (s = 0; s < width; s++)
          {
            const gint64 at = base + t * width + s, before = at - width;
            gint64 c;

            if (t >= example.steps || s >= example.states)
              {
                put (ctc, ctc->alpha, at, -INFINITY);
                continue;
              }
            c = class_of (ctc, &example, s);
            if (t == 0)
              sum = s < 2 ? 0 : -INFINITY;
            else
              sum = log_sum (get (ctc, ctc->alpha, before),
                             s > 0 ? get (ctc, ctc->alpha, before - 1) : -INFINITY,
                             s > 1 && c != class_of (ctc, &example, s - 2)
                                 ? get (ctc, ctc->alpha, before - 2)
                                 : -INFINITY);
            put (ctc, ctc->alpha, at, sum + get (ctc, ctc->x, row_of (ctc, t, b) + c));
          }
      if (example.steps == 0)
        sum = example.states == 1 ? 0 : -INFINITY;
      else
        {
          last = base + (example.steps - 1) * width + example.states - 1;
          sum =
              log_sum (get (ctc, ctc->alpha, last),
                       example.states > 1 ? get (ctc, ctc->alpha, last - 1) : -INFINITY, -INFINITY);
        }
      put (ctc, ctc->loss, b, sum == 0 ? 0 : -sum);
    }
}

/* Computes beta of a step from that of the next one. */
static void
find_beta (const Ctc *ctc, const Example *example, gint64 t, gint64 x, const gdouble *next,
           gdouble *beta)
{
  const gint64 n = example->states;

  for (gint64 s = 0; s < n; s++)
    {
      const gint64 c = class_of (ctc, example, s);
      gdouble sum;

      if (t == example->steps - 1)
        sum = s >= n - 2 ? 0 : -INFINITY;
      else
        sum = log_sum (next[s], s + 1 < n ? next[s + 1] : -INFINITY,
                       s + 2 < n && c != class_of (ctc, example, s + 2) ? next[s + 2] : -INFINITY);
      beta[s] = sum + get (ctc, ctc->x, x + c);
    }
}

/* Sets the gradient as if the steps had no path: that of the sum over the probabilities of the classes. */
static void
fill_gradients (const Ctc *ctc, gint64 b, gint64 steps, gdouble g)
{
  const gboolean is_infinite = isinf (get (ctc, ctc->loss, b));

  for (gint64 t = 0; t < ctc->sizes.steps; t++)
    for (gint64 c = 0; c < ctc->sizes.classes; c++)
      {
        const gint64 at = row_of (ctc, t, b) + c;
        gdouble value = 0;

        if (t < steps && g != 0)
          value = is_infinite ? NAN : g * exp (get (ctc, ctc->x, at));
        put (ctc, ctc->grad, at, value);
      }
}

static void
find_gradients (gint64 begin, gint64 end, gpointer user_data)
{
  const Ctc *ctc = user_data;
  const gint64 width = ctc->sizes.states;

  for (gint64 b = begin; b < end; b++)
    {
      const Example example = example_of (ctc, b);
      const gdouble g = get (ctc, ctc->upper, b), loss = get (ctc, ctc->loss, b);
      gdouble *beta = ctc->beta + 2 * b * width, *next = beta + width;

      fill_gradients (ctc, b, example.steps, g);
      if (g == 0 || isinf (loss))
        continue;
      for (gint64 t = example.steps - 1; t >= 0; t--)
        {
          const gint64 x = row_of (ctc, t, b), alpha = (b * ctc->sizes.steps + t) * width;
          gdouble *former = next;

          find_beta (ctc, &example, t, x, next, beta);
          for (gint64 s = 0; s < example.states; s++)
            {
              const gint64 at = x + class_of (ctc, &example, s);
              const gdouble both = get (ctc, ctc->alpha, alpha + s) + beta[s];

              if (both != -INFINITY)
                put (ctc, ctc->grad, at,
                     get (ctc, ctc->grad, at) - g * exp (both - get (ctc, ctc->x, at) + loss));
            }
          next = beta;
          beta = former;
        }
    }
}

static gboolean
check_labels (GTorchOpCall *call, const Ctc *ctc, GError **error)
{
  for (gint64 b = 0; b < ctc->sizes.n; b++)
    {
      const Example example = example_of (ctc, b);

      for (gint64 i = 0; i < example.states / 2; i++)
        if (example.labels[i] < 0 || example.labels[i] >= ctc->sizes.classes)
          {
            gtorch_call_error (call, error, GTORCH_ERROR_INDEX,
                               _ ("target %" PRId64 " is out of range for %" PRId64 " classes"),
                               example.labels[i], ctc->sizes.classes);
            return FALSE;
          }
    }
  return TRUE;
}

/* The operands are x, targets and lengths, from number `first` on. */
static gboolean
ctc_init (Ctc *ctc, GTorchOpCall *call, guint first, GTorchImpl *packed[3], GError **error)
{
  gtorch_ctc_init (&ctc->sizes, call);
  ctc->is_single = call->compute == GTORCH_DTYPE_FLOAT32;
  packed[0] = gtorch_cpu_pack (call->inputs[first], call->compute, error);
  packed[1] = packed[0] != NULL
                  ? gtorch_cpu_private_copy (call->inputs[first + 1], GTORCH_DTYPE_INT64, error)
                  : NULL;
  packed[2] = packed[1] != NULL
                  ? gtorch_cpu_pack (call->inputs[first + 2], GTORCH_DTYPE_INT64, error)
                  : NULL;
  if (packed[2] == NULL)
    return FALSE;
  ctc->x = gtorch_impl_data (packed[0]);
  ctc->targets = gtorch_impl_data (packed[1]);
  ctc->lengths = gtorch_impl_data (packed[2]);
  return check_labels (call, ctc, error);
}

/* Each example takes long enough for a part of its own. */
static void
run (Ctc *ctc, void (*func) (gint64, gint64, gpointer))
{
  const gint64 work = 1 + ctc->sizes.steps * ctc->sizes.states * 16;

  gtorch_parallel_for (ctc->sizes.n, 1 + GTORCH_CPU_GRAIN / work, func, ctc);
}

static gboolean
find_losses_of (GTorchOpCall *call, GTorchImpl *packed[5], GError **error)
{
  Ctc ctc = { .is_single = FALSE };

  if (!ctc_init (&ctc, call, 0, packed, error))
    return FALSE;
  packed[3] = gtorch_cpu_pack_output (call->outputs[0], call->compute, error);
  packed[4] =
      packed[3] != NULL ? gtorch_cpu_pack_output (call->outputs[1], call->compute, error) : NULL;
  if (packed[4] == NULL)
    return FALSE;
  ctc.loss = gtorch_impl_data (packed[3]);
  ctc.alpha = gtorch_impl_data (packed[4]);
  run (&ctc, find_losses);
  gtorch_cpu_unpack (packed[3], call->outputs[0]);
  gtorch_cpu_unpack (packed[4], call->outputs[1]);
  return TRUE;
}

static gboolean
find_gradients_of (GTorchOpCall *call, GTorchImpl *packed[8], GError **error)
{
  Ctc ctc = { .is_single = FALSE };
  gint64 shape[3];

  if (!ctc_init (&ctc, call, 1, packed, error))
    return FALSE;
  shape[0] = ctc.sizes.n;
  shape[1] = 2;
  shape[2] = ctc.sizes.states;
  packed[3] = gtorch_impl_new (gtorch_device_cpu (), GTORCH_DTYPE_FLOAT64, shape, 3, error);
  packed[4] = packed[3] != NULL ? gtorch_cpu_pack (call->inputs[0], call->compute, error) : NULL;
  packed[5] = packed[4] != NULL ? gtorch_cpu_pack (call->inputs[4], call->compute, error) : NULL;
  packed[6] = packed[5] != NULL ? gtorch_cpu_pack (call->inputs[5], call->compute, error) : NULL;
  packed[7] =
      packed[6] != NULL ? gtorch_cpu_pack_output (call->outputs[0], call->compute, error) : NULL;
  if (packed[7] == NULL)
    return FALSE;
  ctc.beta = gtorch_impl_data (packed[3]);
  ctc.upper = gtorch_impl_data (packed[4]);
  ctc.loss = gtorch_impl_data (packed[5]);
  ctc.alpha = gtorch_impl_data (packed[6]);
  ctc.grad = gtorch_impl_data (packed[7]);
  run (&ctc, find_gradients);
  gtorch_cpu_unpack (packed[7], call->outputs[0]);
  return TRUE;
}

static void
clear (GTorchImpl **packed, guint n)
{
  for (guint i = 0; i < n; i++)
    g_clear_pointer (&packed[i], gtorch_impl_unref);
}

gboolean
gtorch_cpu_native_ctc_loss (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *packed[5] = { NULL };
  const gboolean done = find_losses_of (call, packed, error);

  clear (packed, G_N_ELEMENTS (packed));
  return done;
}

gboolean
gtorch_cpu_ctc_loss_backward (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *packed[8] = { NULL };
  const gboolean done = find_gradients_of (call, packed, error);

  clear (packed, G_N_ELEMENTS (packed));
  return done;
}
