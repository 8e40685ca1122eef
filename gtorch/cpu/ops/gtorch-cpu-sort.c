/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* sort, topk, kthvalue and the median without NaN: each line along one dimension is turned into items that
 * are sorted. */

#include "config.h"

#include <string.h>

#include "cpu/gtorch-cpu-cast.h"
#include "cpu/ops/gtorch-cpu-index.h"
#include "cpu/ops/gtorch-cpu-order.h"
#include "device/gtorch-device-manager.h"
#include "gtorch-ops-private.h"
#include "device/gtorch-scratch-private.h"

typedef enum
{
  SORT,
  FIRST_K, /* the first k in sorted order */
  ONLY_KTH,
  MIDDLE, /* that of the elements that are not NaN */
} What;

#define BITS      12 /* by which the items of a long line are counted */
#define LONG_LINE 4096

typedef struct
{
  GTorchIter iter; /* over the lines; operands: self, values, indices */
  What what;
  guint dtype;
  gsize size;
  gboolean descending, wide, by_halves, has_nan;
  gint64 n, k, base;
  gint64 stride, values, indices; /* byte strides along a line */
  gint64 room;                    /* items in a thread's buffer */
  gsize item;                     /* bytes of an item */
  gint failed;                    /* atomic */
} Order;

/* The buffers of a thread. */
typedef struct
{
  const Order *order;
  gpointer items, spare;
} Line;

static void
write_one (const Order *order, char *const *data, gint64 to, gint64 from)
{
  memcpy (data[1] + to * order->values, data[0] + from * order->stride, order->size);
  *(gint64 *) (data[2] + to * order->indices) = from;
}

#define WRITE_ALL(T)                       \
  for (i = 0; i < n; i++)                  \
    *(T *) (data[1] + i * order->values) = \
        *(const T *) (data[0] + *(const gint64 *) (data[2] + i * order->indices) * order->stride);

/* Writes the values of the positions that have been written to the indices. */
static void
write_values (const Order *order, char *const *data, gint64 n)
{
  gint64 i;

  switch (order->size)
    {
    case 1:
      WRITE_ALL (guint8)
      break;
    case 2:
      WRITE_ALL (guint16)
      break;
    case 4:
      WRITE_ALL (guint32)
      break;
    default:
      WRITE_ALL (guint64)
    }
}

#define LONG_GATHER 32768 /* elements of a line that does not fit the cache */

/* Returns whether the values follow from the keys of items, but for NaN and zeros. */
static gboolean
has_values_in_keys (const Order *order, gint64 n)
{
  return n >= LONG_GATHER && !order->wide
         && (order->dtype == GTORCH_DTYPE_FLOAT32 || order->dtype == GTORCH_DTYPE_INT32);
}

/* Writes the values of sorted items without reading all of the elements, which are far apart. */
static void
write_keys (const Order *order, char *const *data, const guint64 *items, gint64 n)
{
  const guint32 flip = order->descending ? G_MAXUINT32 : 0, zero = 0x80000000u;
  const gint64 stride = order->values, from = order->stride;
  const gboolean is_float = order->dtype == GTORCH_DTYPE_FLOAT32;
  const char *elements = data[0];
  char *to = data[1];
  gint64 i;

  for (i = 0; i < n; i++, to += stride)
    {
      const guint32 key = (guint32) (items[i] >> 32) ^ flip;

      if (is_float && (key == zero || key == G_MAXUINT32))
        *(guint32 *) to = *(const guint32 *) (elements + (gint64) (guint32) items[i] * from);
      else if (is_float)
        *(guint32 *) to = key ^ (key & zero ? zero : G_MAXUINT32);
      else
        *(guint32 *) to = key ^ zero;
    }
}

#define DEFINE_LINES(suffix, U, MASK)                                                             \
  typedef struct                                                                                  \
  {                                                                                               \
    U *items, *spare;                                                                             \
    gint64 n;                                                                                     \
  } Halves_##suffix;                                                                              \
                                                                                                  \
  static void sort_half_##suffix (gint64 begin, gint64 end, gpointer user_data)                   \
  {                                                                                               \
    const Halves_##suffix *h = user_data;                                                         \
    const gint64 half = h->n / 2;                                                                 \
                                                                                                  \
    for (; begin < end; begin++)                                                                  \
      gtorch_order_sort_##suffix (h->items + begin * half, h->spare + begin * half,               \
                                  begin == 0 ? half : h->n - half, TRUE);                         \
  }                                                                                               \
                                                                                                  \
  /* Merges halves: one thread merges from the front, the other from the back. */                 \
  static void merge_half_##suffix (gint64 begin, gint64 end, gpointer user_data)                  \
  {                                                                                               \
    const Halves_##suffix *h = user_data;                                                         \
    const U *items = h->items;                                                                    \
    U *to = h->spare;                                                                             \
    const gint64 half = h->n / 2;                                                                 \
    gint64 o;                                                                                     \
                                                                                                  \
    if (begin == 0)                                                                               \
      {                                                                                           \
        gint64 a = 0, b = half;                                                                   \
                                                                                                  \
        for (o = 0; o < half; o++)                                                                \
          {                                                                                       \
            gboolean first = b == h->n || items[a] < items[b];                                    \
                                                                                                  \
            to[o] = first ? items[a] : items[b];                                                  \
            a += first;                                                                           \
            b += !first;                                                                          \
          }                                                                                       \
      }                                                                                           \
    if (end == 2)                                                                                 \
      {                                                                                           \
        gint64 a = half - 1, b = h->n - 1;                                                        \
                                                                                                  \
        for (o = h->n - 1; o >= half; o--)                                                        \
          {                                                                                       \
            gboolean second = a < 0 || (b >= half && items[b] > items[a]);                        \
                                                                                                  \
            to[o] = second ? items[b] : items[a];                                                 \
            b -= second;                                                                          \
            a -= !second;                                                                         \
          }                                                                                       \
      }                                                                                           \
  }                                                                                               \
                                                                                                  \
  /* Keeps up to 2 k items and throws the larger half away whenever they are full. */             \
  static void keep_first_##suffix (const Order *order, const char *data, U *items)                \
  {                                                                                               \
    const gint64 k = order->k, room = 2 * k + 64;                                                 \
    gint64 begin, i, m, kept = 0;                                                                 \
    U bound = ~(U) 0, some[64];                                                                   \
                                                                                                  \
    for (begin = 0; begin < order->n; begin += m)                                                 \
      {                                                                                           \
        m = MIN (64, order->n - begin);                                                           \
        gtorch_order_items_##suffix (order->dtype, data + begin * order->stride, order->stride,   \
                                     begin, m, order->descending, order->base, some);             \
        for (i = 0; i < m; i++)                                                                   \
          {                                                                                       \
            items[kept] = some[i];                                                                \
            kept += some[i] < bound;                                                              \
          }                                                                                       \
        if (kept > room - 64)                                                                     \
          {                                                                                       \
            gtorch_order_select_##suffix (items, kept, k);                                        \
            bound = items[k - 1];                                                                 \
            kept = k;                                                                             \
          }                                                                                       \
      }                                                                                           \
    gtorch_order_select_##suffix (items, kept, k);                                                \
  }                                                                                               \
                                                                                                  \
  static gint64 middle_##suffix (const Order *order, gint64 n_nan)                                \
  {                                                                                               \
    return order->what == MIDDLE ? (MAX (order->n - n_nan, 1) + 1) / 2 : order->k;                \
  }                                                                                               \
                                                                                                  \
  static gint64 count_nan_##suffix (const Order *order, const U *items, gint64 n)                 \
  {                                                                                               \
    gint64 n_nan = 0, i;                                                                          \
                                                                                                  \
    for (i = 0; order->has_nan && i < n; i++)                                                     \
      n_nan += (items[i] | MASK) == ~(U) 0;                                                       \
    return n_nan;                                                                                 \
  }                                                                                               \
                                                                                                  \
  /* Counts the items by their first bits, and sorts out those that have the bits of the k-th. */ \
  static U kth_of_long_##suffix (const Order *order, const char *data, U *items)                  \
  {                                                                                               \
    const guint shift = 8 * sizeof (U) - BITS;                                                    \
    gint64 counts[2][1 << BITS], begin, i, k, m, kept = 0, n_nan = 0;                             \
    guint wanted = 0;                                                                             \
    U some[64];                                                                                   \
                                                                                                  \
    memset (counts, 0, sizeof counts);                                                            \
    for (begin = 0; begin < order->n; begin += m)                                                 \
      {                                                                                           \
        m = MIN (64, order->n - begin);                                                           \
        gtorch_order_items_##suffix (order->dtype, data + begin * order->stride, order->stride,   \
                                     begin, m, FALSE, order->base, some);                         \
        n_nan += count_nan_##suffix (order, some, m);                                             \
        for (i = 0; i < m; i++)                                                                   \
          counts[i % 2][some[i] >> shift]++;                                                      \
      }                                                                                           \
    k = middle_##suffix (order, n_nan);                                                           \
    for (; counts[0][wanted] + counts[1][wanted] < k; wanted++)                                   \
      k -= counts[0][wanted] + counts[1][wanted];                                                 \
    for (begin = 0; begin < order->n; begin += m)                                                 \
      {                                                                                           \
        m = MIN (64, order->n - begin);                                                           \
        gtorch_order_items_##suffix (order->dtype, data + begin * order->stride, order->stride,   \
                                     begin, m, FALSE, order->base, some);                         \
        for (i = 0; i < m; i++)                                                                   \
          {                                                                                       \
            items[kept] = some[i];                                                                \
            kept += some[i] >> shift == wanted;                                                   \
          }                                                                                       \
      }                                                                                           \
    gtorch_order_select_##suffix (items, kept, k);                                                \
    return items[k - 1];                                                                          \
  }                                                                                               \
                                                                                                  \
  static U kth_##suffix (const Order *order, const char *data, U *items)                          \
  {                                                                                               \
    gint64 k;                                                                                     \
                                                                                                  \
    if (order->n >= LONG_LINE)                                                                    \
      return kth_of_long_##suffix (order, data, items);                                           \
    gtorch_order_items_##suffix (order->dtype, data, order->stride, 0, order->n, FALSE,           \
                                 order->base, items);                                             \
    k = middle_##suffix (order, count_nan_##suffix (order, items, order->n));                     \
    gtorch_order_select_##suffix (items, order->n, k);                                            \
    return items[k - 1];                                                                          \
  }                                                                                               \
                                                                                                  \
  static void order_line_##suffix (const Line *line, char *const *data)                           \
  {                                                                                               \
    const Order *order = line->order;                                                             \
    U *items = line->items, *spare = line->spare;                                                 \
    gint64 i, n = order->what == SORT ? order->n : order->k;                                      \
                                                                                                  \
    if (order->what >= ONLY_KTH)                                                                  \
      {                                                                                           \
        write_one (order, data, 0, (gint64) (kth_##suffix (order, data[0], items) & MASK));       \
        return;                                                                                   \
      }                                                                                           \
    if (order->what == FIRST_K && order->k < order->n / 4)                                        \
      keep_first_##suffix (order, data[0], items);                                                \
    else                                                                                          \
      {                                                                                           \
        gtorch_order_items_##suffix (order->dtype, data[0], order->stride, 0, order->n,           \
                                     order->descending, order->base, items);                      \
        if (order->what != SORT)                                                                  \
          gtorch_order_select_##suffix (items, order->n, order->k);                               \
      }                                                                                           \
    if (order->by_halves)                                                                         \
      {                                                                                           \
        Halves_##suffix halves = { items, spare, n };                                             \
                                                                                                  \
        gtorch_parallel_for (2, 1, sort_half_##suffix, &halves);                                  \
        gtorch_parallel_for (2, 1, merge_half_##suffix, &halves);                                 \
        items = spare;                                                                            \
      }                                                                                           \
    else                                                                                          \
      gtorch_order_sort_##suffix (items, spare, n, order->what == SORT);                          \
    for (i = 0; i < n; i++)                                                                       \
      *(gint64 *) (data[2] + i * order->indices) = (gint64) (items[i] & MASK);                    \
    if (has_values_in_keys (order, n))                                                            \
      write_keys (order, data, (const guint64 *) items, n);                                       \
    else                                                                                          \
      write_values (order, data, n);                                                              \
  }

DEFINE_LINES (32, guint64, (guint64) G_MAXUINT32)
DEFINE_LINES (64, GTorchWideItem, G_MAXUINT64)

static void
order_lines (char *const *data, const gint64 *strides, gint64 n, gpointer user_data)
{
  const Line *line = user_data;
  gint64 i;

  for (i = 0; i < n; i++)
    {
      char *at[] = { data[0] + i * strides[0], data[1] + i * strides[1], data[2] + i * strides[2] };

      if (line->order->wide)
        order_line_64 (line, at);
      else
        order_line_32 (line, at);
    }
}

static void
order_part (gint64 begin, gint64 end, gpointer user_data)
{
  Order *order = user_data;
  Line line = { order, gtorch_scratch_new (order->room, order->item, NULL),
                gtorch_scratch_new (order->room, order->item, NULL) };

  if (line.items != NULL && line.spare != NULL)
    gtorch_iter_range (&order->iter, begin, end, order_lines, &line);
  else
    g_atomic_int_set (&order->failed, TRUE);
  g_free (line.items);
  g_free (line.spare);
}

/* Returns a new tensor of the shape and dtype whose lines along the dimension are contiguous. */
static GTorchImpl *
new_with_near_lines (GTorchImpl *like, guint dim, GError **error)
{
  gint64 shape[GTORCH_MAX_DIMS], strides[GTORCH_MAX_DIMS];
  g_autoptr (GTorchImpl) turned = NULL;
  guint i, n = 0;

  for (i = 0; i < like->n_dims; i++)
    if (i != dim)
      shape[n++] = like->shape[i];
  shape[n] = like->shape[dim];
  turned = gtorch_impl_new (gtorch_impl_device (like), like->dtype, shape, like->n_dims, error);
  if (turned == NULL)
    return NULL;
  for (i = 0, n = 0; i < like->n_dims; i++)
    strides[i] = i != dim ? turned->strides[n++] : turned->strides[like->n_dims - 1];
  return gtorch_impl_new_view (turned, turned->offset, like->shape, strides, like->n_dims);
}

/* Returns the tensor, or another one, into which lines are to be read or written, if its lines are as far
 * apart as their elements, which would miss the cache. */
static GTorchImpl *
with_near_lines (GTorchImpl *self, guint dim, GError **error)
{
  if (self->n_dims < 2 || self->strides[dim] <= 1)
    return gtorch_impl_ref (self);
  return new_with_near_lines (self, dim, error);
}

gboolean
gtorch_cpu_order (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  static const gint64 zeros[GTORCH_MAX_DIMS];
  GTorchImpl *self = call->inputs[0];
  const gboolean is_sort = call->op->id == GTORCH_OP_SORT;
  const gboolean is_kth = call->op->id == GTORCH_OP_KTHVALUE;
  const gboolean is_middle = call->op->id == GTORCH_OP_NAN_MIDDLE;
  g_autoptr (GTorchImpl) near = NULL;
  GTorchImpl *near_outputs[2] = { NULL };
  gboolean success = FALSE;
  gint64 shape[GTORCH_MAX_DIMS], strides[2][GTORCH_MAX_DIMS];
  const gint64 *rows[3];
  char *data[3];
  gsize sizes[3];
  Order order = { .dtype = self->dtype };
  guint dim, i, k, d;

  if (call->outputs[0]->numel == 0)
    return TRUE;
  order.what = is_sort ? SORT : (is_kth ? ONLY_KTH : (is_middle ? MIDDLE : FIRST_K));
  order.has_nan = gtorch_dtype_kind (self->dtype) == GTORCH_KIND_FLOAT;
  gtorch_normalize_dim (call->op->name, call->attrs[is_sort || is_middle ? 0 : 1].i, self->n_dims,
                        &dim, NULL);
  near = with_near_lines (self, dim, error);
  if (near == NULL)
    return FALSE;
  if (near != self)
    gtorch_cpu_copy (near, self);
  order.descending = order.what >= ONLY_KTH ? FALSE : call->attrs[is_sort ? 1 : 2].i != 0;
  order.size = gtorch_dtype_size (self->dtype);
  order.n = self->n_dims > 0 ? self->shape[dim] : 1;
  order.k = is_sort || is_middle ? order.n : call->attrs[0].i;
  order.wide = order.size == 8 || order.n > G_MAXUINT32;
  if (self->dtype == GTORCH_DTYPE_INT64 && near->is_contiguous && order.n <= G_MAXUINT32
      && gtorch_order_fits_32 (gtorch_impl_data (near), near->numel, &order.base))
    order.wide = FALSE;
  order.stride = self->n_dims > 0 ? near->strides[dim] * (gint64) order.size : 0;

  memcpy (shape, self->shape, self->n_dims * sizeof (gint64));
  if (self->n_dims > 0)
    shape[dim] = 1;
  for (k = 0; k < 2; k++)
    {
      GTorchImpl *output;
      gint64 *stride = k == 0 ? &order.values : &order.indices;

      near_outputs[k] = order.what >= ONLY_KTH ? gtorch_impl_ref (call->outputs[k])
                                               : with_near_lines (call->outputs[k], dim, error);
      output = near_outputs[k];
      if (output == NULL)
        goto done;
      *stride = 0;
      for (i = 0, d = 0; i < self->n_dims; i++)
        if (i == dim && output->n_dims < self->n_dims)
          strides[k][i] = 0;
        else
          strides[k][i] = output->strides[d++];
      if (self->n_dims > 0)
        *stride = strides[k][dim] * (gint64) gtorch_dtype_size (output->dtype);
      rows[k + 1] = strides[k];
      data[k + 1] = gtorch_impl_data (output);
      sizes[k + 1] = gtorch_dtype_size (output->dtype);
    }
  rows[0] = near->n_dims > 0 ? near->strides : zeros;
  data[0] = gtorch_impl_data (near);
  sizes[0] = order.size;
  gtorch_iter_init_raw (&order.iter, data, rows, sizes, 3, shape, self->n_dims);
  order.by_halves = order.what == SORT && order.iter.numel == 1 && order.n >= 2 * GTORCH_CPU_GRAIN
                    && gtorch_get_num_threads () > 1;
  order.room = 64 + (order.what == FIRST_K && order.k < order.n / 4 ? 2 * order.k + 64 : order.n);
  order.item = order.wide ? sizeof (GTorchWideItem) : sizeof (guint64);
  gtorch_parallel_for (order.iter.numel, MAX (GTORCH_CPU_GRAIN / 8 / order.n, 1), order_part,
                       &order);
  for (k = 0; k < 2 && !order.failed; k++)
    if (near_outputs[k] != call->outputs[k])
      gtorch_cpu_copy (call->outputs[k], near_outputs[k]);
  success = !order.failed;
  if (!success)
    gtorch_scratch_set_error (order.room, order.item, error);
done:
  gtorch_impl_clear (near_outputs, 2);
  return success;
}

gboolean
gtorch_cpu_nan_middle (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return gtorch_cpu_order (call, queue, error);
}
