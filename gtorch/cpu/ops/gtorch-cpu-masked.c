/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Filling by a mask, and the positions of elements that are not zero. */

#include "config.h"

#include <complex.h>
#include <string.h>

#include "cpu/gtorch-cpu-cast.h"
#include "cpu/gtorch-cpu-threads.h"
#include "cpu/ops/gtorch-cpu-index.h"
#include "device/gtorch-scratch-private.h"
#include "gtorch-ops-private.h"

typedef struct
{
  char value[16];
  gsize size;
} Fill;

#define FILL(T)                                                                        \
  {                                                                                    \
    T value;                                                                           \
                                                                                       \
    memcpy (&value, fill->value, sizeof (T));                                          \
    if (strides[0] == sizeof (T) && strides[1] == 1 && strides[2] == sizeof (T))       \
      {                                                                                \
        T *o = (T *) data[0];                                                          \
        const guint8 *m = (const guint8 *) data[1];                                    \
        const T *a = (const T *) data[2];                                              \
        _Pragma ("omp simd") for (i = 0; i < n; i++) o[i] = m[i] ? value : a[i];       \
      }                                                                                \
    else                                                                               \
      for (i = 0; i < n; i++)                                                          \
        *(T *) (data[0] + i * strides[0]) =                                            \
            data[1][i * strides[1]] ? value : *(const T *) (data[2] + i * strides[2]); \
  }

static void
fill_masked (char *const *data, const gint64 *strides, gint64 n, gpointer user_data)
{
  const Fill *fill = user_data;
  gint64 i;

  switch (fill->size)
    {
    case 1:
      FILL (guint8)
      break;
    case 2:
      FILL (guint16)
      break;
    case 4:
      FILL (guint32)
      break;
    case 8:
      FILL (guint64)
      break;
    default:
      FILL (double _Complex)
    }
}

gboolean
gtorch_cpu_masked_fill (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0], *value = call->inputs[2];
  GTorchImpl *operands[] = { output, call->inputs[1], call->inputs[0] };
  Fill fill = { .size = gtorch_dtype_size (output->dtype) };
  GTorchIter iter;

  if (output->numel == 0)
    return TRUE;
  gtorch_cpu_cast (output->dtype, value->dtype) (fill.value, 0, gtorch_impl_data (value), 0, 1);
  gtorch_iter_init (&iter, operands, 3, output->shape, output->n_dims);
  iter.any_order = TRUE;
  gtorch_iter_run (&iter, GTORCH_CPU_GRAIN, fill_masked, &fill);
  return TRUE;
}

/* --- nonzero --- */

/* The elements are divided into parts of a fixed length, which are first counted and then written. */
#define PART (1 << 15)

typedef struct
{
  GTorchImpl *self;
  const guint8 *flags;
  gint64 *counts; /* of each part; then how many there are before it */
  gint64 *out, limit;
} Nonzero;

static gint64
count_flags (const guint8 *flags, gint64 n)
{
  gint64 count = 0, i;

  while (n > 0)
    {
      const gint64 part = MIN (n, 255 * 16);
      guint8 lanes[16] = { 0 };

      for (i = 0; i + 16 <= part; i += 16)
        _Pragma ("omp simd") for (int l = 0; l < 16; l++) lanes[l] += flags[i + l] != 0;
      for (; i < part; i++)
        count += flags[i] != 0;
      for (i = 0; i < 16; i++)
        count += lanes[i];
      flags += part;
      n -= part;
    }
  return count;
}

static void
count_parts (gint64 begin, gint64 end, gpointer user_data)
{
  const Nonzero *self = user_data;

  for (; begin < end; begin++)
    self->counts[begin] =
        count_flags (self->flags + begin * PART, MIN (PART, self->self->numel - begin * PART));
}

/* Returns the number of elements that are not zero. */
static gint64
count_all (Nonzero *self)
{
  const gint64 n_parts = (self->self->numel + PART - 1) / PART;
  gint64 total = 0, i;

  gtorch_parallel_for (n_parts, 2, count_parts, self);
  for (i = 0; i < n_parts; i++)
    {
      const gint64 count = self->counts[i];

      self->counts[i] = total;
      total += count;
    }
  return self->counts[n_parts] = total;
}

/* Counts the elements that are not zero. */
gboolean
gtorch_cpu_query_nonzero (GTorchOpCall *call, gint64 *answers, GError **error)
{
  g_autoptr (GTorchImpl) flags = gtorch_call_read (call, 0, GTORCH_DTYPE_BOOL, error);
  g_autofree gint64 *counts =
      flags != NULL ? gtorch_scratch_new (flags->numel / PART + 2, sizeof (gint64), error) : NULL;
  Nonzero nonzero = { .self = flags, .counts = counts };

  if (counts == NULL)
    return FALSE;
  nonzero.flags = gtorch_impl_data (flags);
  *answers = count_all (&nonzero);
  return TRUE;
}

/* Writes the places of one part. Another thread may have written to the input since the parts were counted,
 * so there may be more or less than that. */
static void
write_part (const Nonzero *self, gint64 part)
{
  const gint64 *shape = self->self->shape;
  const guint last = self->self->n_dims - 1;
  gint64 *out = self->out + MIN (self->counts[part], self->limit) * (last + 1);
  gint64 *end = self->out + MIN (self->counts[part + 1], self->limit) * (last + 1);
  gint64 i = part * PART, stop = MIN (i + PART, self->self->numel), rest = i,
         place[GTORCH_MAX_DIMS];
  guint d;

  for (d = last + 1; d-- > 0; rest /= shape[d])
    place[d] = rest % shape[d];
  while (i < stop && out < end)
    {
      const gint64 n = MIN (stop - i, shape[last] - place[last]);
      gint64 j;

      for (j = 0; j < n && out < end; j++)
        if (self->flags[i + j])
          {
            for (d = 0; d < last; d++)
              out[d] = place[d];
            out[last] = place[last] + j;
            out += last + 1;
          }
      i += n;
      place[last] = 0;
      for (d = last; d-- > 0 && ++place[d] == shape[d];)
        place[d] = 0;
    }
  if (out < end)
    memset (out, 0, (end - out) * sizeof (gint64));
}

static void
write_parts (gint64 begin, gint64 end, gpointer user_data)
{
  for (; begin < end; begin++)
    write_part (user_data, begin);
}

gboolean
gtorch_cpu_nonzero (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *self = call->inputs[0], *output = call->outputs[0];
  g_autoptr (GTorchImpl) flags = NULL;
  g_autofree gint64 *counts = NULL;
  Nonzero nonzero = { .self = self };
  gint64 total;

  if (output->numel == 0)
    return TRUE;
  flags = gtorch_cpu_contiguous (self, GTORCH_DTYPE_BOOL, error);
  counts =
      flags != NULL ? gtorch_scratch_new (flags->numel / PART + 2, sizeof (gint64), error) : NULL;
  if (counts == NULL)
    return FALSE;
  nonzero.flags = gtorch_impl_data (flags);
  nonzero.counts = counts;
  nonzero.out = gtorch_impl_data (output);
  nonzero.limit = output->shape[0];
  total = count_all (&nonzero);
  gtorch_parallel_for ((self->numel + PART - 1) / PART, 1, write_parts, &nonzero);
  if (total < nonzero.limit)
    memset (nonzero.out + total * self->n_dims, 0,
            (nonzero.limit - total) * self->n_dims * sizeof (gint64));
  return TRUE;
}
