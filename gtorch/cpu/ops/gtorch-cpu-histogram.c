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

#define BLOCK 256
#define MANY  (1 << 24) /* bins; float32 has all numbers up to this */

/* The last interval has both its ends. The places of a block are found first; that of an element beyond the
 * range is behind the others. */
#define COUNT_UNIFORM(T)                                                                    \
  {                                                                                         \
    const T *x = self->x;                                                                   \
    const T low = (T) self->min, high = (T) self->max, width = (T) (self->max - self->min); \
    const T bins = (T) self->bins;                                                          \
    gint32 places[BLOCK];                                                                   \
                                                                                            \
    for (; self->bins < MANY && begin < end; begin += n)                                    \
      {                                                                                     \
        n = MIN (BLOCK, end - begin);                                                       \
        _Pragma ("omp simd") for (i = 0; i < n; i++)                                        \
        {                                                                                   \
          const T v = x[begin + i], place = (v - low) * bins / width;                       \
          const gint32 inside = (gint32) (place < bins && place >= 0 ? place : bins - 1);   \
                                                                                            \
          places[i] = (v >= low) & (v <= high) ? inside : (gint32) self->bins;              \
        }                                                                                   \
        for (i = 0; i < n; i++)                                                             \
          own[i % TABLES * (self->bins + 1) + places[i]]++;                                 \
      }                                                                                     \
    for (; begin < end; begin++)                                                            \
      if (x[begin] >= low && x[begin] <= high)                                              \
        {                                                                                   \
          const T place = (x[begin] - low) * bins / width;                                  \
                                                                                            \
          own[place < bins ? MIN ((gint64) place, self->bins - 1) : self->bins - 1]++;      \
        }                                                                                   \
  }

/* Tables of each thread, since a count that was just written is slow to read. */
#define TABLES 4

static void
count (gint64 begin, gint64 end, gpointer user_data)
{
  Count *self = user_data;
  g_autofree gint64 *own = gtorch_scratch_new0 (TABLES * (self->bins + 1), sizeof (gint64), NULL);
  gint64 i, n;

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
    {
      gint64 sum = 0;

      for (n = 0; n < TABLES; n++)
        sum += own[n * (self->bins + 1) + i];
      if (sum != 0)
        __atomic_fetch_add (&self->counts[i], sum, __ATOMIC_RELAXED);
    }
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
