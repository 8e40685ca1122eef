/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* sort, topk and kthvalue: lines are made contiguous, then sorted by kernels that suit their length. Also
 * unique and searchsorted. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "cpu/gtorch-cpu-pack.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "cuda/driver/gtorch-cuda-private.h"
#include "gtorch-ops-private.h"
#include "kernels/gtorch-kernel-params.h"

#define CHUNK 4096 /* number of elements per block of select_mark and unique_count */

enum
{
  HISTOGRAM,
  PASS,
  SMALL,
  LARGE,
  TINY,
  COUNT,
  MARK,
  TAKE,
  UNIQUE_COUNT,
  UNIQUE_WRITE,
  N_FORMS
};

typedef struct
{
  GTorchCudaLane *lane;
  GTorchDevice *device;
  guint size, size_index;
} Order;

/* Tensors that are released together. */
typedef struct
{
  GTorchImpl *impls[4];
} Several;

static void
several_clear (Several *self)
{
  guint i;

  for (i = 0; i < G_N_ELEMENTS (self->impls); i++)
    g_clear_pointer (&self->impls[i], gtorch_impl_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Several, several_clear)

static GTorchCudaKernel kernels[N_FORMS][4], offsets, choose, sums, unique_sums, unique_lengths,
    searches[GTORCH_N_DTYPES];

static gboolean
launch (const Order *o, guint form, guint64 across, guint64 down, guint threads, gconstpointer p,
        GError **error)
{
  static const gchar *const forms[] = {
    "histogram", "pass", "small", "large",        "tiny",
    "count",     "mark", "take",  "unique_count", "unique_write"
  };
  const GTorchCudaLaunch shape = { .grid = { across, down }, .block = { threads } };
  GTorchCudaKernel *kernel = &kernels[form][o->size_index];
  gchar name[64];

  if (G_UNLIKELY (g_atomic_pointer_get (&kernel->kernel) == NULL))
    {
      g_snprintf (name, sizeof name, "gt_order_%s_%u", forms[form], 8 * o->size);
      if (!gtorch_cuda_kernel_get (kernel, &gtorch_cuda_family_sort, name, error))
        return FALSE;
    }
  return gtorch_cuda_kernel_launch (kernel, o->lane, &shape, p, error);
}

static void
order_init (Order *self, GtOrder *p, const GTorchImpl *x, GTorchCudaLane *lane)
{
  *self = (Order){ .lane = lane, .device = x->storage->device };
  self->size = gtorch_dtype_size (x->dtype);
  self->size_index = g_bit_storage (self->size) - 1;
  p->kind = x->dtype == GTORCH_DTYPE_BOOL || x->dtype == GTORCH_DTYPE_UINT8 ? 0
            : gtorch_dtype_kind (x->dtype) == GTORCH_KIND_FLOAT             ? 2
                                                                            : 1;
  switch (x->dtype)
    {
    case GTORCH_DTYPE_FLOAT64:
      p->infinity = G_GUINT64_CONSTANT (0x7ff0000000000000);
      break;
    case GTORCH_DTYPE_FLOAT32:
      p->infinity = 0x7f800000;
      break;
    case GTORCH_DTYPE_FLOAT16:
      p->infinity = 0x7c00;
      break;
    default:
      p->infinity = 0x7f80;
    }
  p->passes = self->size;
}

static guint64
multiprocessors (const Order *o)
{
  return GTORCH_CUDA_DEVICE (o->device)->n_multiprocessors;
}

/* Computes the number of blocks along a line, and of lines at a time. */
static void
choose_grid (const Order *o, const GtOrder *p, guint64 per_block, guint64 *across, guint64 *down)
{
  *down = MIN (p->lines, 32768);
  *across = CLAMP (8 * multiprocessors (o) / *down, 1, (p->n + per_block - 1) / per_block);
}

/* Sorts lines that are longer than a block can sort. If p has no outputs, *keys and *at become the sorted
 * keys and their positions. */
static gboolean
sort_long (const Order *o, GtOrder p, GTorchImpl **keys, GTorchImpl **at, GError **error)
{
  static const guint items[] = { 16, 16, 16, 12 };
  guint64 tile = 384 * items[o->size_index], n = p.lines * p.n, across, down;
  g_auto (Several) spare = { { NULL } }; /* buffers for keys and positions: two of each */
  g_autoptr (GTorchImpl) histograms = NULL;
  g_autoptr (GTorchImpl) states = NULL;
  gpointer values = p.values;
  guint i, to = 0;

  p.tiles = (p.n + tile - 1) / tile;
  histograms = gtorch_cuda_scratch (o->lane, p.lines * p.passes * 256 * 4, error);
  if (histograms == NULL || !gtorch_cuda_clear (histograms, o->lane, error))
    return FALSE;
  states = gtorch_cuda_scratch (o->lane, p.lines * p.tiles * 256 * 8 + 16, error);
  if (states == NULL)
    return FALSE;
  for (i = 0; i < (values != NULL ? MIN (p.passes - 1, 2) : 2) * 2; i++)
    {
      spare.impls[i] = gtorch_cuda_scratch (o->lane, n * (i % 2 == 0 ? o->size : 4), error);
      if (spare.impls[i] == NULL)
        return FALSE;
    }
  p.histograms = gtorch_impl_data (histograms);
  p.states = gtorch_impl_data (states);
  p.counter = (uint32_t *) (p.states + p.lines * p.tiles * 256);

  choose_grid (o, &p, 4096, &across, &down);
  if (!launch (o, HISTOGRAM, across, down, 256, &p, error)
      || !gtorch_cuda_kernel_run (&offsets, &gtorch_cuda_family_sort, "gt_order_offsets", o->lane,
                                  p.lines * p.passes, 256, &p, error))
    return FALSE;
  for (p.pass = 0; p.pass < p.passes; p.pass++)
    {
      gboolean last = p.pass + 1 == p.passes;

      p.values = last ? values : NULL;
      if (p.values == NULL)
        {
          p.keys_out = gtorch_impl_data (spare.impls[2 * to]);
          p.at_out = gtorch_impl_data (spare.impls[2 * to + 1]);
        }
      if (!gtorch_cuda_clear (states, o->lane, error)
          || !launch (o, PASS, p.lines * p.tiles, 1, 384, &p, error))
        return FALSE;
      p.keys_in = p.keys_out;
      p.at_in = p.at_out;
      to = !to;
    }
  if (keys != NULL)
    {
      *keys = g_steal_pointer (&spare.impls[2 * !to]);
      *at = g_steal_pointer (&spare.impls[2 * !to + 1]);
    }
  return TRUE;
}

static gboolean
sort_lines (const Order *o, GtOrder *p, GError **error)
{
  guint64 most = o->size == 8 ? 4096 : 8192;

  if (p->n <= 32 && p->keys_in == NULL)
    {
      for (p->width = 1; p->width < p->n;)
        p->width *= 2;
      return launch (o, TINY, (p->lines * p->width + 255) / 256, 1, 256, p, error);
    }
  if (p->n <= 1024)
    return launch (o, SMALL, p->lines, 1, 128, p, error);
  if (p->n <= most)
    return launch (o, LARGE, p->lines, 1, 512, p, error);
  return sort_long (o, *p, NULL, NULL, error);
}

/* Selects the first k elements of each line: finds the k-th key digit by digit, then takes the elements
 * before it and as many equal ones as needed. */
static gboolean
select_first (const Order *o, GtOrder *p, gboolean only_kth, GError **error)
{
  g_autoptr (GTorchImpl) histograms = gtorch_cuda_scratch (o->lane, p->lines * 256 * 4, error);
  g_autoptr (GTorchImpl) chosen = NULL;
  g_autoptr (GTorchImpl) counts = NULL;
  g_autoptr (GTorchImpl) keys = NULL;
  g_autoptr (GTorchImpl) at = NULL;
  gpointer values = p->values;
  guint64 across, down;

  if (histograms == NULL || !gtorch_cuda_clear (histograms, o->lane, error))
    return FALSE;
  p->tiles = (p->n + CHUNK - 1) / CHUNK;
  chosen = gtorch_cuda_scratch (o->lane, p->lines * 16, error);
  counts =
      chosen != NULL ? gtorch_cuda_scratch (o->lane, p->lines * p->tiles * 8 + 16, error) : NULL;
  if (counts == NULL)
    return FALSE;
  p->histograms = gtorch_impl_data (histograms);
  p->chosen = gtorch_impl_data (chosen);
  p->counts = gtorch_impl_data (counts);
  choose_grid (o, p, 8192, &across, &down);
  for (p->pass = p->passes; p->pass-- > 0;)
    if (!launch (o, COUNT, across, down, 256, p, error)
        || !gtorch_cuda_kernel_run (&choose, &gtorch_cuda_family_sort, "gt_order_choose", o->lane,
                                    p->lines, 256, p, error))
      return FALSE;
  if (!only_kth)
    {
      keys = gtorch_cuda_scratch (o->lane, p->lines * p->k * o->size, error);
      at = keys != NULL ? gtorch_cuda_scratch (o->lane, p->lines * p->k * 4, error) : NULL;
      if (at == NULL)
        return FALSE;
      p->keys_out = gtorch_impl_data (keys);
      p->at_out = gtorch_impl_data (at);
      p->values = NULL;
    }
  if (!launch (o, MARK, p->lines * p->tiles, 1, 256, p, error)
      || !gtorch_cuda_kernel_run (&sums, &gtorch_cuda_family_sort, "gt_order_sums", o->lane,
                                  p->lines, 1024, p, error)
      || !launch (o, TAKE, p->lines * p->tiles, 1, 256, p, error))
    return FALSE;
  if (only_kth)
    return TRUE;
  p->keys_in = p->keys_out;
  p->at_in = p->at_out;
  p->n = p->k;
  p->values = values;
  return sort_lines (o, p, error);
}

/* Orders each line and stores its elements from skip to k, or to the end if k is 0. */
static gboolean
order (GTorchOpCall *call, GTorchCudaLane *lane, gint64 raw_dim, gint64 k, gint64 skip,
       gboolean descending, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  g_autoptr (GTorchImpl) turned = NULL;
  g_autoptr (GTorchImpl) x = NULL;
  g_auto (Several) targets = { { NULL } };
  g_auto (Several) outputs = { { NULL } };
  guint64 most = gtorch_dtype_size (self->dtype) == 8 ? 4096 : 8192;
  GtOrder p = { .descending = descending };
  gboolean ok;
  guint dim, i;
  Order o;

  if (call->outputs[0]->numel == 0)
    return TRUE;
  if (!gtorch_normalize_dim (call->op->name, raw_dim, self->n_dims, &dim, error))
    return FALSE;
  turned = gtorch_cpu_move_last (self, G_GUINT64_CONSTANT (1) << dim);
  x = gtorch_cuda_pack (turned, self->dtype, lane, error);
  if (x == NULL)
    return FALSE;
  for (i = 0; i < 2; i++)
    {
      GTorchImpl *output = call->outputs[i];

      targets.impls[i] = output->n_dims == self->n_dims
                             ? gtorch_cpu_move_last (output, G_GUINT64_CONSTANT (1) << dim)
                             : gtorch_impl_ref (output);
      outputs.impls[i] =
          targets.impls[i]->is_contiguous && output->storage != x->storage
              ? gtorch_impl_ref (targets.impls[i])
              : gtorch_impl_new (output->storage->device, output->dtype, targets.impls[i]->shape,
                                 targets.impls[i]->n_dims, error);
      if (outputs.impls[i] == NULL)
        return FALSE;
    }
  order_init (&o, &p, x, lane);
  p.x = gtorch_impl_data (x);
  p.n = p.row = self->n_dims > 0 ? self->shape[dim] : 1;
  p.lines = self->numel / p.n;
  p.k = k > 0 ? k : p.n;
  p.skip = skip;
  p.values = gtorch_impl_data (outputs.impls[0]);
  p.indices = gtorch_impl_data (outputs.impls[1]);
  if (p.n >= G_MAXUINT32)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_NOT_SUPPORTED,
                         _ ("lines of %" PRIu64 " elements are too long for a GPU"), p.n);
      return FALSE;
    }
  if (p.n > most && (call->op->id == GTORCH_OP_KTHVALUE || p.k <= p.n / 8))
    ok = select_first (&o, &p, call->op->id == GTORCH_OP_KTHVALUE, error);
  else
    ok = sort_lines (&o, &p, error);
  for (i = 0; ok && i < 2; i++)
    if (outputs.impls[i] != targets.impls[i])
      ok = gtorch_cuda_copy_here (targets.impls[i], outputs.impls[i], lane, error);
  return ok;
}

gboolean
gtorch_cuda_order (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  const GTorchAttr *attrs = call->attrs;

  if (call->op->id == GTORCH_OP_SORT)
    return order (call, lane, attrs[0].i, 0, 0, attrs[1].i != 0, error);
  if (call->op->id == GTORCH_OP_TOPK)
    return order (call, lane, attrs[1].i, attrs[0].i, 0, attrs[2].i != 0, error);
  return order (call, lane, attrs[1].i, attrs[0].i, attrs[0].i - 1, FALSE, error);
}

/* --- unique elements --- */

/* Computes the outputs of unique. The shape function calls this, as it needs the number of unique
 * elements. */
static gboolean
find_unique (GTorchOpCall *call, GTorchCudaLane *lane, gpointer data, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  g_autoptr (GTorchImpl) x = gtorch_cuda_pack (self, self->dtype, lane, error);
  g_autoptr (GTorchImpl) keys = NULL;
  g_autoptr (GTorchImpl) at = NULL;
  g_autoptr (GTorchImpl) before = NULL;
  g_autoptr (GTorchImpl) starts = NULL;
  GtOrder p = { .lines = 1 };
  GtUnique u = { .n = self->numel };
  gint64 n = 0;
  Order o;

  if (x == NULL)
    return FALSE;
  if (u.n >= G_MAXUINT32)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_NOT_SUPPORTED,
                         _ ("lines of %" PRIu64 " elements are too long for a GPU"), u.n);
      return FALSE;
    }
  order_init (&o, &p, x, lane);
  u.tiles = (u.n + CHUNK - 1) / CHUNK;
  if (u.n > 0)
    {
      p.x = gtorch_impl_data (x);
      p.n = p.row = p.k = u.n;
      before = gtorch_cuda_scratch (lane, (u.tiles + 1) * 8, error);
      if (before == NULL || !sort_long (&o, p, &keys, &at, error))
        return FALSE;
      u.x = p.x;
      u.keys = gtorch_impl_data (keys);
      u.at = gtorch_impl_data (at);
      u.sums = gtorch_impl_data (before);
      u.nan = p.kind == 2;
      if (!launch (&o, UNIQUE_COUNT, u.tiles, 1, 256, &u, error)
          || !gtorch_cuda_kernel_run (&unique_sums, &gtorch_cuda_family_sort,
                                      "gt_order_unique_sums", lane, 1, 1024, &u, error)
          || !gtorch_cuda_read (lane, &n, u.sums + u.tiles, 8, error))
        return FALSE;
      gtorch_cuda_note_next (lane);
    }
  if (!gtorch_call_set_output (call, 0, self->dtype, &n, 1, error)
      || !gtorch_call_set_output (call, 1, GTORCH_DTYPE_INT64, self->shape, self->n_dims, error)
      || !gtorch_call_set_output (call, 2, GTORCH_DTYPE_INT64, &n, 1, error))
    return FALSE;
  if (n == 0)
    return TRUE;
  starts = gtorch_cuda_scratch (lane, n * 8, error);
  if (starts == NULL)
    return FALSE;
  u.n_values = n;
  u.starts = gtorch_impl_data (starts);
  u.values = gtorch_impl_data (call->outputs[0]);
  u.inverse = gtorch_impl_data (call->outputs[1]);
  u.counts = gtorch_impl_data (call->outputs[2]);
  return launch (&o, UNIQUE_WRITE, u.tiles, 1, 256, &u, error)
         && gtorch_cuda_kernel_run (&unique_lengths, &gtorch_cuda_family_sort,
                                    "gt_order_unique_lengths", lane, (u.n_values + 255) / 256, 256,
                                    &u, error);
}

/* Makes the outputs, with their contents. */
gboolean
gtorch_cuda_query_unique (GTorchOpCall *call, gint64 *answers, GError **error)
{
  return gtorch_cuda_run_early (call, find_unique, NULL, error);
}

gboolean
gtorch_cuda_unique (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return TRUE;
}

/* --- searching --- */

gboolean
gtorch_cuda_searchsorted (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *sequence = call->inputs[0], *self = call->inputs[1], *output = call->outputs[0];
  gboolean whole = gtorch_dtype_kind (sequence->dtype) < GTORCH_KIND_FLOAT
                   && gtorch_dtype_kind (self->dtype) < GTORCH_KIND_FLOAT;
  guint dtype = whole ? GTORCH_DTYPE_INT64 : GTORCH_DTYPE_FLOAT64;
  g_autoptr (GTorchImpl) line = NULL;
  g_autoptr (GTorchImpl) values = NULL;
  GtSearch p = { .right = call->attrs[0].i != 0, .numel = output->numel };
  gchar name[64];

  if (output->numel == 0)
    return TRUE;
  if (sequence->dtype == self->dtype
      && (self->dtype == GTORCH_DTYPE_FLOAT32 || self->dtype == GTORCH_DTYPE_INT32))
    dtype = self->dtype;
  line = gtorch_cuda_pack (sequence, dtype, lane, error);
  values = line != NULL ? gtorch_cuda_pack (self, dtype, lane, error) : NULL;
  if (values == NULL)
    return FALSE;
  p.sequence = gtorch_impl_data (line);
  p.values = gtorch_impl_data (values);
  p.out = gtorch_impl_data (output);
  p.n = sequence->shape[sequence->n_dims - 1];
  p.per_line = sequence->n_dims == 1 ? output->numel : output->shape[output->n_dims - 1];
  g_snprintf (name, sizeof name, "gt_order_search_%s", gtorch_cuda_dtype_suffixes[dtype]);
  return gtorch_cuda_kernel_run (&searches[dtype], &gtorch_cuda_family_sort, name, lane,
                                 (p.numel + 255) / 256, 256, &p, error);
}
