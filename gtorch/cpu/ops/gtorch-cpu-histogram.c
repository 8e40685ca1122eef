/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The counts of histograms. Each thread has its own, which are added at the end of its range. */

#include "config.h"

#include <string.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-pack.h"
#include "device/gtorch-scratch-private.h"
#include "gtorch-ops-private.h"

typedef struct
{
  gconstpointer x;
  guint dtype;
  gint64 *counts, bins;
  gdouble min, max;
  gint failed; /* the allocation of counts has failed; atomic */
} Count;

/* The last interval has both its ends. */
#define COUNT_UNIFORM(T)                                                                    \
  {                                                                                         \
    const T *x = self->x;                                                                   \
    const T low = (T) self->min, high = (T) self->max, width = (T) (self->max - self->min); \
    const T bins = (T) self->bins;                                                          \
                                                                                            \
    for (; begin < end; begin++)                                                            \
      if (x[begin] >= low && x[begin] <= high)                                              \
        {                                                                                   \
          const T place = (x[begin] - low) * bins / width;                                  \
                                                                                            \
          own[place < bins ? MIN ((gint64) place, self->bins - 1) : self->bins - 1]++;      \
        }                                                                                   \
  }

static void
count (gint64 begin, gint64 end, gpointer user_data)
{
  Count *self = user_data;
  g_autofree gint64 *own = gtorch_scratch_new0 (self->bins, sizeof (gint64), NULL);
  gint64 i;

  if (own == NULL)
    {
      g_atomic_int_set (&self->failed, TRUE);
      return;
    }
  if (self->dtype == GTORCH_DTYPE_FLOAT32)
    COUNT_UNIFORM (gfloat)
  else if (self->dtype == GTORCH_DTYPE_FLOAT64)
    COUNT_UNIFORM (gdouble)
  else
    {
      const gint64 *x = self->x;

      for (; begin < end; begin++)
        if (x[begin] >= 0 && x[begin] < self->bins)
          own[x[begin]]++;
    }
  for (i = 0; i < self->bins; i++)
    if (own[i] != 0)
      __atomic_fetch_add (&self->counts[i], own[i], __ATOMIC_RELAXED);
}

static gboolean
run (GTorchOpCall *call, Count *self, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  g_autoptr (GTorchImpl) x = gtorch_cpu_pack (call->inputs[0], self->dtype, error);

  if (x == NULL)
    return FALSE;
  self->x = gtorch_impl_data (x);
  self->counts = gtorch_impl_data (output);
  self->bins = output->numel;
  memset (self->counts, 0, gtorch_impl_n_bytes (output));
  gtorch_parallel_for (x->numel, MAX (GTORCH_CPU_GRAIN, self->bins), count, self);
  if (self->failed)
    gtorch_scratch_set_error (self->bins, sizeof (gint64), error);
  return !self->failed;
}

gboolean
gtorch_cpu_uniform_counts (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  Count self = { .dtype = gtorch_dtype_infos[call->compute].compute,
                 .min = call->attrs[1].d,
                 .max = call->attrs[2].d };

  return run (call, &self, error);
}

gboolean
gtorch_cpu_number_counts (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  Count self = { .dtype = GTORCH_DTYPE_INT64 };

  return run (call, &self, error);
}
