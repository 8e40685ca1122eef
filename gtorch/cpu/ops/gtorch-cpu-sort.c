/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* sort, topk and kthvalue: each line along one dimension is turned into items that are sorted. */

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
} What;

typedef struct
{
  GTorchIter iter; /* over the lines; operands: self, values, indices */
  What what;
  guint dtype;
  gsize size;
  gboolean descending, wide, by_halves;
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

#define DEFINE_LINES(suffix, U, MASK)                                                           \
  typedef struct                                                                                \
  {                                                                                             \
    U *items, *spare;                                                                           \
    gint64 n;                                                                                   \
  } Halves_##suffix;                                                                            \
                                                                                                \
  static void sort_half_##suffix (gint64 begin, gint64 end, gpointer user_data)                 \
  {                                                                                             \
    const Halves_##suffix *h = user_data;                                                       \
    const gint64 half = h->n / 2;                                                               \
                                                                                                \
    for (; begin < end; begin++)                                                                \
      gtorch_order_sort_##suffix (h->items + begin * half, h->spare + begin * half,             \
                                  begin == 0 ? half : h->n - half, TRUE);                       \
  }                                                                                             \
                                                                                                \
  /* Merges halves: one thread merges from the front, the other from the back. */               \
  static void merge_half_##suffix (gint64 begin, gint64 end, gpointer user_data)                \
  {                                                                                             \
    const Halves_##suffix *h = user_data;                                                       \
    const U *items = h->items;                                                                  \
    U *to = h->spare;                                                                           \
    const gint64 half = h->n / 2;                                                               \
    gint64 o;                                                                                   \
                                                                                                \
    if (begin == 0)                                                                             \
      {                                                                                         \
        gint64 a = 0, b = half;                                                                 \
                                                                                                \
        for (o = 0; o < half; o++)                                                              \
          {                                                                                     \
            gboolean first = b == h->n || items[a] < items[b];                                  \
                                                                                                \
            to[o] = first ? items[a] : items[b];                                                \
            a += first;                                                                         \
            b += !first;                                                                        \
          }                                                                                     \
      }                                                                                         \
    if (end == 2)                                                                               \
      {                                                                                         \
        gint64 a = half - 1, b = h->n - 1;                                                      \
                                                                                                \
        for (o = h->n - 1; o >= half; o--)                                                      \
          {                                                                                     \
            gboolean second = a < 0 || (b >= half && items[b] > items[a]);                      \
                                                                                                \
            to[o] = second ? items[b] : items[a];                                               \
            b -= second;                                                                        \
            a -= !second;                                                                       \
          }                                                                                     \
      }                                                                                         \
  }                                                                                             \
                                                                                                \
  /* Keeps up to 2 k items and throws the larger half away whenever they are full. */           \
  static void keep_first_##suffix (const Order *order, const char *data, U *items)              \
  {                                                                                             \
    const gint64 k = order->k, room = 2 * k + 64;                                               \
    gint64 begin, i, m, kept = 0;                                                               \
    U bound = ~(U) 0, some[64];                                                                 \
                                                                                                \
    for (begin = 0; begin < order->n; begin += m)                                               \
      {                                                                                         \
        m = MIN (64, order->n - begin);                                                         \
        gtorch_order_items_##suffix (order->dtype, data + begin * order->stride, order->stride, \
                                     begin, m, order->descending, order->base, some);           \
        for (i = 0; i < m; i++)                                                                 \
          {                                                                                     \
            items[kept] = some[i];                                                              \
            kept += some[i] < bound;                                                            \
          }                                                                                     \
        if (kept > room - 64)                                                                   \
          {                                                                                     \
            gtorch_order_select_##suffix (items, kept, k);                                      \
            bound = items[k - 1];                                                               \
            kept = k;                                                                           \
          }                                                                                     \
      }                                                                                         \
    gtorch_order_select_##suffix (items, kept, k);                                              \
  }                                                                                             \
                                                                                                \
  static void order_line_##suffix (const Line *line, char *const *data)                         \
  {                                                                                             \
    const Order *order = line->order;                                                           \
    U *items = line->items, *spare = line->spare;                                               \
    gint64 i, n = order->what == SORT ? order->n : order->k;                                    \
                                                                                                \
    if (order->what == FIRST_K && order->k < order->n / 4)                                      \
      keep_first_##suffix (order, data[0], items);                                              \
    else                                                                                        \
      {                                                                                         \
        gtorch_order_items_##suffix (order->dtype, data[0], order->stride, 0, order->n,         \
                                     order->descending, order->base, items);                    \
        if (order->what != SORT)                                                                \
          gtorch_order_select_##suffix (items, order->n, order->k);                             \
      }                                                                                         \
    if (order->what == ONLY_KTH)                                                                \
      {                                                                                         \
        write_one (order, data, 0, (gint64) (items[n - 1] & MASK));                             \
        return;                                                                                 \
      }                                                                                         \
    if (order->by_halves)                                                                       \
      {                                                                                         \
        Halves_##suffix halves = { items, spare, n };                                           \
                                                                                                \
        gtorch_parallel_for (2, 1, sort_half_##suffix, &halves);                                \
        gtorch_parallel_for (2, 1, merge_half_##suffix, &halves);                               \
        items = spare;                                                                          \
      }                                                                                         \
    else                                                                                        \
      gtorch_order_sort_##suffix (items, spare, n, order->what == SORT);                        \
    for (i = 0; i < n; i++)                                                                     \
      *(gint64 *) (data[2] + i * order->indices) = (gint64) (items[i] & MASK);                  \
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

/* Returns self, copied if its lines are as far apart as their elements, which would miss the cache. */
static GTorchImpl *
with_near_lines (GTorchImpl *self, guint dim, GError **error)
{
  gint64 shape[GTORCH_MAX_DIMS], strides[GTORCH_MAX_DIMS], order[GTORCH_MAX_DIMS];
  g_autoptr (GTorchImpl) turned = NULL;
  g_autoptr (GTorchImpl) copy = NULL;
  guint i, n = 0;

  if (self->n_dims < 2 || self->strides[dim] <= 1)
    return gtorch_impl_ref (self);
  for (i = 0; i < self->n_dims; i++)
    if (i != dim)
      order[n++] = i;
  order[n] = dim;
  for (i = 0; i < self->n_dims; i++)
    {
      shape[i] = self->shape[order[i]];
      strides[i] = self->strides[order[i]];
    }
  turned = gtorch_impl_new_view (self, self->offset, shape, strides, self->n_dims);
  copy = gtorch_cpu_contiguous (turned, self->dtype, error);
  if (copy == NULL)
    return NULL;
  for (i = 0; i < self->n_dims; i++)
    strides[order[i]] = copy->strides[i];
  return gtorch_impl_new_view (copy, copy->offset, self->shape, strides, self->n_dims);
}

gboolean
gtorch_cpu_order (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  static const gint64 zeros[GTORCH_MAX_DIMS];
  GTorchImpl *self = call->inputs[0];
  gboolean is_sort = call->op->id == GTORCH_OP_SORT, is_kth = call->op->id == GTORCH_OP_KTHVALUE;
  g_autoptr (GTorchImpl) near = NULL;
  gint64 shape[GTORCH_MAX_DIMS], strides[2][GTORCH_MAX_DIMS];
  const gint64 *rows[3];
  char *data[3];
  gsize sizes[3];
  Order order = { .what = is_sort ? SORT : (is_kth ? ONLY_KTH : FIRST_K), .dtype = self->dtype };
  guint dim, i, k, d;

  if (call->outputs[0]->numel == 0)
    return TRUE;
  gtorch_normalize_dim (call->op->name, call->attrs[is_sort ? 0 : 1].i, self->n_dims, &dim, NULL);
  near = with_near_lines (self, dim, error);
  if (near == NULL)
    return FALSE;
  order.descending = is_kth ? FALSE : call->attrs[is_sort ? 1 : 2].i != 0;
  order.size = gtorch_dtype_size (self->dtype);
  order.n = self->n_dims > 0 ? self->shape[dim] : 1;
  order.k = is_sort ? order.n : call->attrs[0].i;
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
      GTorchImpl *output = call->outputs[k];
      gint64 *stride = k == 0 ? &order.values : &order.indices;

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
  order.room = 1 + (order.what == FIRST_K && order.k < order.n / 4 ? 2 * order.k + 64 : order.n);
  order.item = order.wide ? sizeof (GTorchWideItem) : sizeof (guint64);
  gtorch_parallel_for (order.iter.numel, MAX (GTORCH_CPU_GRAIN / 8 / order.n, 1), order_part,
                       &order);
  if (!order.failed)
    return TRUE;
  gtorch_scratch_set_error (order.room, order.item, error);
  return FALSE;
}
