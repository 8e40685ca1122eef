/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Searching in sorted sequences, counting, and finding unique values. */

#include "config.h"

#include <string.h>

#include "cpu/ops/gtorch-cpu-index.h"
#include "cpu/ops/gtorch-cpu-order.h"
#include "cpu/gtorch-cpu-pack.h"
#include "cpu/gtorch-cpu-threads.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"
#include "device/gtorch-scratch-private.h"

typedef struct
{
  gconstpointer sequence, values;
  gint64 *out;
  gint64 n, per_line; /* n: the length of a sequence; per_line: values for each sequence */
  guint dtype;
  gboolean right;
} Search;

#define AT_ONCE 16

/* Values are searched for in groups, step by step, so that the processor need not wait for each element, nor
 * guess the way. A search of no more elements stays where it is. */
#define SEARCH(T)                                                                      \
  for (i = begin; i < end; i += count)                                                 \
    {                                                                                  \
      const T *line = (const T *) s->sequence + i / s->per_line * s->n;                \
      const T *value = (const T *) s->values + i;                                      \
      gint64 low[AT_ONCE] = { 0 }, size[AT_ONCE];                                      \
                                                                                       \
      count = MIN (MIN (AT_ONCE, end - i), s->per_line - i % s->per_line);             \
      for (k = 0; k < count; k++)                                                      \
        size[k] = s->n;                                                                \
      for (rest = s->n; rest > 0; rest /= 2)                                           \
        for (k = 0; k < count; k++)                                                    \
          {                                                                            \
            const gint64 half = size[k] / 2, middle = low[k] + half;                   \
            const T element = line[MIN (middle, s->n - 1)];                            \
            const gint64 beyond =                                                      \
                -(gint64) ((s->right ? !(element > value[k]) : !(element >= value[k])) \
                           & (size[k] > 0));                                           \
                                                                                       \
            low[k] += beyond & (half + 1);                                             \
            size[k] = half - (beyond & (2 * half + 1 - size[k]));                      \
          }                                                                            \
      for (k = 0; k < count; k++)                                                      \
        s->out[i + k] = low[k];                                                        \
    }

static void
search_part (gint64 begin, gint64 end, gpointer user_data)
{
  const Search *s = user_data;
  gint64 i, k, count, rest;

  switch (s->dtype)
    {
    case GTORCH_DTYPE_INT64:
      SEARCH (gint64)
      break;
    case GTORCH_DTYPE_FLOAT32:
      SEARCH (gfloat)
      break;
    default:
      SEARCH (gdouble)
    }
}

gboolean
gtorch_cpu_searchsorted (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  gboolean whole = gtorch_dtype_kind (call->inputs[0]->dtype) < GTORCH_KIND_FLOAT
                   && gtorch_dtype_kind (call->inputs[1]->dtype) < GTORCH_KIND_FLOAT;
  gboolean narrow = call->inputs[0]->dtype == GTORCH_DTYPE_FLOAT32
                    && call->inputs[1]->dtype == GTORCH_DTYPE_FLOAT32;
  guint dtype = whole ? GTORCH_DTYPE_INT64 : narrow ? GTORCH_DTYPE_FLOAT32 : GTORCH_DTYPE_FLOAT64;
  g_autoptr (GTorchImpl) sequence = gtorch_cpu_contiguous (call->inputs[0], dtype, error);
  g_autoptr (GTorchImpl) values = NULL;
  Search search = { .right = call->attrs[0].i != 0, .dtype = dtype };

  values = sequence != NULL ? gtorch_cpu_contiguous (call->inputs[1], dtype, error) : NULL;
  if (values == NULL)
    return FALSE;
  if (output->numel == 0)
    return TRUE;
  search.sequence = gtorch_impl_data (sequence);
  search.values = gtorch_impl_data (values);
  search.out = gtorch_impl_data (output);
  search.n = sequence->shape[sequence->n_dims - 1];
  search.per_line = sequence->n_dims == 1 ? output->numel : output->shape[output->n_dims - 1];
  gtorch_parallel_for (output->numel, GTORCH_CPU_GRAIN / 16, search_part, &search);
  return TRUE;
}

/* --- counting --- */

typedef struct
{
  const gint64 *values;
  gint64 *counts;
  gint64 n_counts;
  gint64 largest, least;
  GMutex lock; /* protects counts, largest and least */
  gint bad;    /* a value is out of range; atomic */
} Count;

static void
bounds_of_part (gint64 begin, gint64 end, gpointer user_data)
{
  Count *self = user_data;
  gint64 largest = -1, least = 0, i;

  for (i = begin; i < end; i++)
    {
      const gint64 value = self->values[i];

      largest = value > largest ? value : largest;
      least = value < least ? value : least;
    }
  g_mutex_lock (&self->lock);
  self->largest = MAX (self->largest, largest);
  self->least = MIN (self->least, least);
  g_mutex_unlock (&self->lock);
}

/* Finds the number of places that the values need, and the least value if that is negative, else 0. */
gboolean
gtorch_cpu_query_bounds (GTorchOpCall *call, gint64 *answers, GError **error)
{
  g_autoptr (GTorchImpl) plain = gtorch_call_read (call, 0, GTORCH_DTYPE_INT64, error);
  Count self = { .largest = -1 };

  if (plain == NULL)
    return FALSE;
  self.values = gtorch_impl_data (plain);
  g_mutex_init (&self.lock);
  gtorch_parallel_for (plain->numel, GTORCH_CPU_GRAIN, bounds_of_part, &self);
  g_mutex_clear (&self.lock);
  answers[0] = self.largest < G_MAXINT64 ? self.largest + 1 : G_MAXINT64;
  answers[1] = self.least;
  return TRUE;
}

#define FEW    1024 /* counts that a thread has a table of its own for */
#define TABLES 4    /* since a count that was just written is slow to read */

static void
count_part (gint64 begin, gint64 end, gpointer user_data)
{
  Count *self = user_data;
  gint64 tables[TABLES][FEW], i, k;
  gboolean bad = FALSE;

  for (k = 0; k < TABLES; k++)
    memset (tables[k], 0, self->n_counts * sizeof (gint64));
  for (i = begin; i < end; i++)
    {
      const gint64 value = self->values[i];

      if (G_LIKELY ((guint64) value < (guint64) self->n_counts))
        tables[i % TABLES][value]++;
      else
        bad = TRUE;
    }
  if (bad)
    g_atomic_int_set (&self->bad, TRUE);
  g_mutex_lock (&self->lock);
  for (k = 0; k < TABLES; k++)
    for (i = 0; i < self->n_counts; i++)
      self->counts[i] += tables[k][i];
  g_mutex_unlock (&self->lock);
}

/* Counts few different values, each of which is checked as it is read. */
static gboolean
count_few (GTorchImpl *values, GTorchImpl *output)
{
  Count self = { .values = gtorch_impl_data (values),
                 .counts = gtorch_impl_data (output),
                 .n_counts = output->numel };

  memset (self.counts, 0, gtorch_impl_n_bytes (output));
  g_mutex_init (&self.lock);
  gtorch_parallel_for (values->numel, GTORCH_CPU_GRAIN, count_part, &self);
  g_mutex_clear (&self.lock);
  return !self.bad;
}

gboolean
gtorch_cpu_bincount (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  g_autoptr (GTorchImpl) values = NULL;
  g_autoptr (GTorchImpl) weights = NULL;
  g_autoptr (GTorchImpl) sums = NULL;
  const gint64 *data;
  const gdouble *weight;
  gdouble *sum;
  gint64 i;

  if (call->inputs[1] == NULL && call->inputs[0]->is_contiguous
      && call->inputs[0]->dtype == GTORCH_DTYPE_INT64 && output->numel <= FEW
      && count_few (call->inputs[0], output))
    return TRUE;
  values = gtorch_cpu_indices (call, call->inputs[0], output->numel, 0, error);
  if (values == NULL)
    return FALSE;
  data = gtorch_impl_data (values);
  memset (gtorch_impl_data (output), 0, gtorch_impl_n_bytes (output));
  if (call->inputs[1] == NULL)
    {
      gint64 *counts = gtorch_impl_data (output);

      for (i = 0; i < values->numel; i++)
        counts[data[i]]++;
      return TRUE;
    }
  /* float32 is too coarse to add up millions of weights for one place */
  weights = gtorch_cpu_contiguous (call->inputs[1], GTORCH_DTYPE_FLOAT64, error);
  sums = weights != NULL ? gtorch_cpu_pack_output (output, GTORCH_DTYPE_FLOAT64, error) : NULL;
  if (sums == NULL)
    return FALSE;
  weight = gtorch_impl_data (weights);
  sum = gtorch_impl_data (sums);
  memset (sum, 0, gtorch_impl_n_bytes (sums));
  for (i = 0; i < values->numel; i++)
    sum[data[i]] += weight[i];
  gtorch_cpu_unpack (sums, output);
  return TRUE;
}

/* --- unique values --- */

/* The sorted elements, as small items if possible, else as wide ones. */
typedef struct
{
  guint64 *small;
  GTorchWideItem *wide;
  gint64 n;
  guint64 nan; /* the key of NaN, or 0 */
} Ordered;

static void
ordered_clear (Ordered *self)
{
  g_clear_pointer (&self->small, g_free);
  g_clear_pointer (&self->wide, g_free);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Ordered, ordered_clear)

static gboolean
ordered_init (Ordered *self, GTorchOpCall *call, GTorchImpl *plain, GError **error)
{
  gsize n = plain->numel, size = gtorch_dtype_size (plain->dtype);
  gboolean wide = size == 8 || n > G_MAXUINT32;
  g_autofree gpointer spare = NULL;
  gpointer items;
  gint64 base = 0;

  if (plain->dtype == GTORCH_DTYPE_INT64 && n <= G_MAXUINT32
      && gtorch_order_fits_32 (gtorch_impl_data (plain), n, &base))
    wide = FALSE;
  items = gtorch_scratch_new (n + 1, wide ? sizeof (GTorchWideItem) : sizeof (guint64), error);
  if (items == NULL)
    return FALSE;
  spare = gtorch_scratch_new (n + 1, wide ? sizeof (GTorchWideItem) : sizeof (guint64), error);
  if (spare == NULL)
    {
      g_free (items);
      return FALSE;
    }
  self->n = n;
  if (gtorch_dtype_kind (plain->dtype) == GTORCH_KIND_FLOAT)
    self->nan = size == 8 ? G_MAXUINT64 : G_MAXUINT32;
  if (wide)
    {
      self->wide = items;
      gtorch_order_items_64 (plain->dtype, gtorch_impl_data (plain), size, 0, n, FALSE, base,
                             self->wide);
      gtorch_order_sort_64 (self->wide, spare, n, TRUE);
    }
  else
    {
      self->small = items;
      gtorch_order_items_32 (plain->dtype, gtorch_impl_data (plain), size, 0, n, FALSE, base,
                             self->small);
      gtorch_order_sort_32 (self->small, spare, n, TRUE);
    }
  return TRUE;
}

static inline guint64
ordered_key (const Ordered *self, gint64 i)
{
  return self->small != NULL ? self->small[i] >> 32 : (guint64) (self->wide[i] >> 64);
}

static inline gint64
ordered_position (const Ordered *self, gint64 i)
{
  return self->small != NULL ? (gint64) (guint32) self->small[i] : (gint64) (guint64) self->wide[i];
}

/* Tells whether element i differs from the one before; NaNs all differ from each other. */
static inline gboolean
ordered_begins (const Ordered *self, gint64 i)
{
  return i == 0 || ordered_key (self, i) != ordered_key (self, i - 1)
         || (self->nan != 0 && ordered_key (self, i) == self->nan);
}

/* Counts the different values. */
gboolean
gtorch_cpu_query_unique (GTorchOpCall *call, gint64 *answers, GError **error)
{
  g_autoptr (GTorchImpl) plain = gtorch_call_read (call, 0, call->inputs[0]->dtype, error);
  g_auto (Ordered) ordered = { NULL };
  gint64 i, n = 0;

  if (plain == NULL || !ordered_init (&ordered, call, plain, error))
    return FALSE;
  for (i = 0; i < ordered.n; i++)
    n += ordered_begins (&ordered, i);
  *answers = n;
  return TRUE;
}

gboolean
gtorch_cpu_unique (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  g_autoptr (GTorchImpl) plain = gtorch_cpu_contiguous (self, self->dtype, error);
  g_auto (Ordered) ordered = { NULL };
  gint64 size = gtorch_dtype_size (self->dtype);
  char *values = gtorch_impl_data (call->outputs[0]);
  gint64 *inverse = gtorch_impl_data (call->outputs[1]);
  gint64 *counts = gtorch_impl_data (call->outputs[2]);
  const gint64 n_values = call->outputs[0]->numel;
  gint64 i, n = -1;

  if (plain == NULL || !ordered_init (&ordered, call, plain, error))
    return FALSE;
  for (i = 0; i < ordered.n && n_values > 0; i++)
    {
      gint64 at = ordered_position (&ordered, i);

      /* The outputs have the sizes that the shape function found. If another thread writes to the input
       * in between, only the values are wrong. */
      if (ordered_begins (&ordered, i) && n + 1 < n_values)
        {
          memcpy (values + ++n * size, (char *) gtorch_impl_data (plain) + at * size, size);
          counts[n] = 0;
        }
      counts[n]++;
      inverse[at] = n;
    }
  if (n + 1 < n_values)
    {
      memset (values + (n + 1) * size, 0, (n_values - n - 1) * size);
      memset (counts + n + 1, 0, (n_values - n - 1) * sizeof (gint64));
    }
  return TRUE;
}
