/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Random choice among indices, by sorting random keys. */

#include "config.h"

#include <float.h>
#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "cpu/gtorch-cpu-cast.h"
#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-philox.h"
#include "cpu/ops/gtorch-cpu-order.h"
#include "gtorch-ops-private.h"
#include "device/gtorch-scratch-private.h"

static guint64
word_64 (const GTorchOpCall *call, guint64 i)
{
  guint32 words[4];

  gtorch_philox (call->seed, call->counter, i / 2, words);
  return ((guint64) words[2 * (i % 2) + 1] << 32) | words[2 * (i % 2)];
}

/* Returns a uniform number in (0, 1]. */
static gdouble
uniform (const GTorchOpCall *call, guint64 i)
{
  return ((gdouble) (word_64 (call, i) >> 11) + 1) * 0x1p-53;
}

typedef struct
{
  guint64 key;
  guint32 index;
} Keyed;

static int
compare_keys (const void *a, const void *b)
{
  const Keyed *x = a, *y = b;

  return x->key != y->key ? (x->key > y->key) - (x->key < y->key)
                          : (x->index > y->index) - (x->index < y->index);
}

/* Puts n indices whose keys have the same upper half into the order of their keys. */
static void
order_equals (const GTorchOpCall *call, guint64 *items, gint64 n)
{
  g_autofree Keyed *keys = g_new (Keyed, n);
  gint64 i;

  for (i = 0; i < n; i++)
    keys[i] = (Keyed){ word_64 (call, (guint32) items[i]), (guint32) items[i] };
  qsort (keys, n, sizeof (Keyed), compare_keys);
  for (i = 0; i < n; i++)
    items[i] = keys[i].index;
}

/* The order of random keys of 64 bits. It is found by their upper halves, of which only few are equal. */
gboolean
gtorch_cpu_randperm (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  const gint64 n = output->numel;
  g_autofree guint64 *items = NULL;
  g_autofree guint64 *spare = NULL;
  gint64 i, end;

  if (n > G_MAXUINT32)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_NOT_SUPPORTED,
                         _ ("%" PRId64 " numbers are more than %u, as many as can be ordered"), n,
                         G_MAXUINT32);
      return FALSE;
    }
  items = gtorch_scratch_new (n, sizeof (guint64), error);
  spare = items != NULL ? gtorch_scratch_new (n, sizeof (guint64), error) : NULL;
  if (spare == NULL)
    return FALSE;
  for (i = 0; i < n; i += 2)
    {
      guint32 words[4];

      gtorch_philox (call->seed, call->counter, i / 2, words);
      items[i] = ((guint64) words[1] << 32) | (guint64) i;
      if (i + 1 < n)
        items[i + 1] = ((guint64) words[3] << 32) | (guint64) (i + 1);
    }
  gtorch_order_sort_32 (items, spare, n, TRUE);
  for (i = 0; i < n; i = end)
    {
      const guint64 key = items[i] >> 32;

      for (end = i + 1; end < n && items[end] >> 32 == key; end++)
        continue;
      if (end > i + 1)
        order_equals (call, items + i, end - i);
      else
        items[i] = (guint32) items[i];
    }
  gtorch_cpu_cast (output->dtype, GTORCH_DTYPE_INT64) (gtorch_impl_data (output),
                                                       gtorch_dtype_size (output->dtype),
                                                       (const char *) items, sizeof *items, n);
  return TRUE;
}

typedef struct
{
  gdouble key;
  gint64 index;
} Weighted;

static int
compare_weighted (const void *a, const void *b)
{
  const Weighted *x = a, *y = b;

  return x->key != y->key ? (x->key > y->key) - (x->key < y->key)
                          : (x->index > y->index) - (x->index < y->index);
}

/* Returns the first index whose cumulative sum exceeds x. */
static gint64
find_sum (const gdouble *sums, gint64 n, gdouble x)
{
  gint64 low = 0, high = n - 1;

  while (low < high)
    {
      gint64 middle = low + (high - low) / 2;

      if (sums[middle] > x)
        high = middle;
      else
        low = middle + 1;
    }
  return low;
}

/* Returns the number of keys that are kept before those that are not among the first are thrown away. */
static gint64
room_for_keys (gint64 n, gint64 n_samples)
{
  return MIN (n, 2 * n_samples + 64);
}

/* A key is the time until the clock of an index first rings; its rate is the weight (Efraimidis and Spirakis,
 * 2006). Times that overflow become DBL_MAX, which sorts before those of clocks that never ring. Only keys
 * that are below the last one of the first n_samples so far are kept. -log (u) is at least 1 - u, so most
 * logarithms need not be computed. */
static void
draw_without_replacement (const GTorchOpCall *call, gint64 row, gint64 n, const gdouble *weights,
                          Weighted *keys, gint64 *result)
{
  const gint64 n_samples = call->attrs[0].i, room = room_for_keys (n, n_samples);
  gdouble bound = INFINITY;
  gint64 kept = 0, i;

  for (i = 0; i < n; i++)
    {
      gdouble u, key;

      if (!(weights[i] > 0))
        continue;
      u = uniform (call, row * n + i);
      if ((1 - u) * 0.999999 > bound * weights[i])
        continue;
      key = MIN (-log (u) / weights[i], DBL_MAX);
      if (key > bound)
        continue;
      keys[kept++] = (Weighted){ key, i };
      if (kept == room && i + 1 < n)
        {
          qsort (keys, kept, sizeof (Weighted), compare_weighted);
          kept = MIN (kept, n_samples);
          if (kept == n_samples)
            bound = kept > 0 ? keys[kept - 1].key : 0;
        }
    }
  qsort (keys, kept, sizeof (Weighted), compare_weighted);
  for (i = 0; i < n_samples; i++)
    result[i] = keys[i].index;
}

static gboolean
draw_row (GTorchOpCall *call, gint64 row, gint64 n, gdouble *weights, Weighted *keys,
          gint64 *result, GError **error)
{
  gint64 n_samples = call->attrs[0].i, n_positive = 0, last = 0, i;
  gdouble sum = 0;

  for (i = 0; i < n; i++)
    {
      if (!(weights[i] >= 0) || !isfinite (weights[i]))
        {
          gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                             _ ("element %" PRId64 " of row %" PRId64
                                " is %g: it must be finite and at least 0"),
                             i, row, weights[i]);
          return FALSE;
        }
      sum += weights[i];
      if (weights[i] > 0)
        {
          n_positive++;
          last = i;
        }
    }
  if (!(sum > 0) || !isfinite (sum) || (!call->attrs[1].i && n_positive < n_samples))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                         _ ("row %" PRId64 " has %" PRId64
                            " elements above 0, too few to draw %" PRId64),
                         row, n_positive, n_samples);
      return FALSE;
    }
  if (call->attrs[1].i)
    {
      for (i = 1; i < n; i++)
        weights[i] += weights[i - 1];
      for (i = 0; i < n_samples; i++)
        result[i] =
            MIN (last, find_sum (weights, n,
                                 (uniform (call, row * n_samples + i) - 0x1p-53) * weights[n - 1]));
      return TRUE;
    }
  draw_without_replacement (call, row, n, weights, keys, result);
  return TRUE;
}

typedef struct
{
  GTorchOpCall *call;
  gint failed; /* atomic */
} Draw;

static gboolean
draw_rows (GTorchOpCall *call, gint64 begin, gint64 end, GError **error)
{
  const GTorchImpl *self = call->inputs[0];
  const gint64 n = self->shape[self->n_dims - 1], n_samples = call->attrs[0].i;
  const gint64 size = (gint64) gtorch_dtype_size (self->dtype);
  const GTorchCast load = gtorch_cpu_cast (GTORCH_DTYPE_FLOAT64, self->dtype);
  g_autofree gdouble *weights = gtorch_scratch_new (n, sizeof (gdouble), error);
  g_autofree Weighted *keys =
      weights != NULL ? gtorch_scratch_new (room_for_keys (n, n_samples), sizeof (Weighted), error)
                      : NULL;
  gboolean result = keys != NULL;

  for (gint64 row = begin; row < end && result; row++)
    {
      const char *data = gtorch_impl_data (self);

      if (self->n_dims == 2)
        data += row * self->strides[0] * size;
      load ((char *) weights, sizeof (gdouble), data, self->strides[self->n_dims - 1] * size, n);
      result = draw_row (call, row, n, weights, keys,
                         (gint64 *) gtorch_impl_data (call->outputs[0]) + row * n_samples, error);
    }
  return result;
}

static void
draw_part (gint64 begin, gint64 end, gpointer user_data)
{
  Draw *draw = user_data;

  if (!draw_rows (draw->call, begin, end, NULL))
    g_atomic_int_set (&draw->failed, TRUE);
}

gboolean
gtorch_cpu_multinomial (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  const GTorchImpl *self = call->inputs[0];
  const gint64 n_rows = self->n_dims == 2 ? self->shape[0] : 1;
  Draw draw = { .call = call };

  if (n_rows == 1)
    return draw_rows (call, 0, 1, error);
  gtorch_parallel_for (n_rows, 1 + GTORCH_CPU_GRAIN / 8 / (1 + self->shape[self->n_dims - 1]),
                       draw_part, &draw);
  /* the error is that of the first row that has one */
  return !draw.failed || draw_rows (call, 0, n_rows, error);
}
