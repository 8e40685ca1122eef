/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Additions to elements that several indices may name, on GPUs. Integers are added in any order. Floats are
 * added in the order of the indices, which are sorted for that, so that every run gives the same bits. */

#include "config.h"

#include "dispatch/gtorch-run-private.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "cuda/driver/gtorch-cuda-private.h"
#include "gtorch-ops-private.h"

#define MIN_TILE   8
#define MAX_TILE   1024
#define MANY_TILES (1 << 20) /* number of tiles times columns that is enough to fill any GPU */

/* --- additions in a fixed order --- */

gboolean
gtorch_cuda_sort_line (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *keys,
                       GTorchImpl **sorted, GTorchImpl **at, GError **error)
{
  const GTorchAttr attrs[] = { { .i = 0 }, { .i = FALSE }, { .i = TRUE } };
  g_autoptr (GTorchImpl) values =
      gtorch_impl_new (call->device, keys->dtype, keys->shape, 1, error);
  g_autoptr (GTorchImpl) indices =
      values != NULL ? gtorch_impl_new (call->device, GTORCH_DTYPE_INT64, keys->shape, 1, error)
                     : NULL;
  GTorchOpCall sort = {
    .op = &gtorch_ops[GTORCH_OP_SORT],
    .inputs = &keys,
    .n_inputs = 1,
    .attrs = attrs,
    .outputs = { values, indices },
    .n_outputs = 2,
    .device = call->device,
    .compute = keys->dtype,
  };

  if (indices == NULL || !gtorch_call_run (&sort, lane, error))
    return FALSE;
  if (sorted != NULL)
    *sorted = g_steal_pointer (&values);
  *at = g_steal_pointer (&indices);
  return TRUE;
}

gboolean
gtorch_cuda_sort_slots (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *slots, gint64 n_slots,
                        GTorchImpl **keys, GTorchImpl **at, gboolean *wide, GError **error)
{
  const gint64 one = 1;
  GtKeys p = { .slots = gtorch_impl_data (slots), .n = slots->numel };
  g_autoptr (GTorchImpl) unsorted = NULL;

  *wide = n_slots > G_MAXINT32;
  if (*wide)
    unsorted = gtorch_impl_new_view (slots, slots->offset, &slots->numel, &one, 1);
  else
    {
      unsorted = gtorch_impl_new (call->device, GTORCH_DTYPE_INT32, &slots->numel, 1, error);
      if (unsorted == NULL)
        return FALSE;
      p.keys = gtorch_impl_data (unsorted);
      if (!gtorch_cuda_run (&gtorch_kernels_keys, GTORCH_DTYPE_INT32, lane, p.n, &p, error))
        return FALSE;
    }
  return gtorch_cuda_sort_line (call, lane, unsorted, keys, at, error);
}

gboolean
gtorch_cuda_segments_fold (GTorchOpCall *call, GTorchCudaLane *lane, const GtBlocks *blocks,
                           GTorchCudaFold fold, guint dtype, GTorchImpl *slots, gint64 n_slots,
                           GError **error)
{
  static const struct
  {
    const GtSegmentsKernels *each, *join;
  } kernels[] = {
    [GTORCH_CUDA_FOLD_SUM] = { &gtorch_kernels_segments_sum, &gtorch_kernels_segments_join_sum },
    [GTORCH_CUDA_FOLD_PROD] = { &gtorch_kernels_segments_prod, &gtorch_kernels_segments_join_prod },
    [GTORCH_CUDA_FOLD_AMAX] = { &gtorch_kernels_segments_amax, &gtorch_kernels_segments_join_amax },
    [GTORCH_CUDA_FOLD_AMIN] = { &gtorch_kernels_segments_amin, &gtorch_kernels_segments_join_amin },
  };
  GtSegments s = { .b = *blocks, .tile = MIN_TILE };
  gint64 n = blocks->n_index, columns = blocks->total / n, sum_size;
  g_autoptr (GTorchImpl) keys = NULL;
  g_autoptr (GTorchImpl) at = NULL;
  g_autoptr (GTorchImpl) sums = NULL;
  gboolean wide = TRUE;

  if (n > 1)
    {
      if (!gtorch_cuda_sort_slots (call, lane, slots, n_slots, &keys, &at, &wide, error))
        return FALSE;
    }
  else
    {
      keys = gtorch_impl_ref (slots);
      at = gtorch_cuda_scratch (lane, 8, error);
      if (at == NULL || !gtorch_cuda_clear (at, lane, error))
        return FALSE;
    }
  while (s.tile < MAX_TILE && blocks->total / s.tile > MANY_TILES)
    s.tile *= 2;
  s.tiles = (n + s.tile - 1) / s.tile;
  s.n_pre = columns / blocks->inner;
  s.keys = gtorch_impl_data (keys);
  s.at = gtorch_impl_data (at);
  s.wide = wide;
  if (s.tiles > 1)
    {
      sum_size = s.tiles * columns * gtorch_dtype_size (gtorch_dtype_infos[dtype].compute);
      sums = gtorch_cuda_scratch (lane, 2 * sum_size, error);
      if (sums == NULL)
        return FALSE;
      s.first = gtorch_impl_data (sums);
      s.last = (char *) s.first + sum_size;
    }
  return gtorch_cuda_run (kernels[fold].each, dtype, lane, s.tiles * columns, &s, error)
         && (s.tiles == 1
             || gtorch_cuda_run (kernels[fold].join, dtype, lane, s.tiles * columns, &s, error));
}

/* Adds values to the elements of a row at the given indices. */
static gboolean
add_to_row (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *row, GTorchImpl *index,
            GTorchImpl *values, GError **error)
{
  const GTorchAttr accumulate = { .i = TRUE };
  GTorchImpl *inputs[] = { row, index, values };
  GTorchOpCall put = {
    .op = &gtorch_ops[GTORCH_OP_PUT],
    .inputs = inputs,
    .n_inputs = 3,
    .attrs = &accumulate,
    .outputs = { row },
    .n_outputs = 1,
    .in_place = TRUE,
    .device = call->device,
    .compute = row->dtype,
  };

  return gtorch_call_run (&put, lane, error);
}

/* --- bincount --- */

static gboolean
find_bounds (GTorchOpCall *call, GTorchCudaLane *lane, gpointer data, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  g_autoptr (GTorchImpl) plain = gtorch_cuda_pack (self, GTORCH_DTYPE_INT64, lane, error);
  g_autoptr (GTorchImpl) found = plain != NULL ? gtorch_cuda_scratch (lane, 16, error) : NULL;
  GtBounds p = { .n = self->numel };

  if (found == NULL || !gtorch_cuda_clear (found, lane, error))
    return FALSE;
  p.x = gtorch_impl_data (plain);
  p.bounds = gtorch_impl_data (found);
  return gtorch_cuda_run_blocks (&gtorch_kernels_bounds, GTORCH_DTYPE_INT64, lane,
                                 MIN ((p.n + 255) / 256, 1024), &p, error)
         && gtorch_cuda_read (lane, data, p.bounds, 16, error);
}

/* Finds the number of places that the values need, and the least value if that is negative, else 0. */
gboolean
gtorch_cuda_query_bounds (GTorchOpCall *call, gint64 *answers, GError **error)
{
  gint64 bounds[2];

  if (!gtorch_cuda_run_early (call, find_bounds, bounds, error))
    return FALSE;
  answers[0] = bounds[0];
  answers[1] = -bounds[1];
  return TRUE;
}

gboolean
gtorch_cuda_bincount (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *output = call->outputs[0], *weights = call->inputs[1];
  g_autoptr (GTorchImpl) values = NULL;
  g_autoptr (GTorchImpl) added = NULL;
  GtCount p = { .n = call->inputs[0]->numel, .bins = output->numel };

  if (!gtorch_cuda_clear (output, lane, error))
    return FALSE;
  if (p.n == 0)
    return TRUE;
  values = gtorch_cuda_pack (call->inputs[0], GTORCH_DTYPE_INT64, lane, error);
  if (values == NULL)
    return FALSE;
  if (weights != NULL)
    {
      added = gtorch_cuda_pack (weights, output->dtype, lane, error);
      return added != NULL && add_to_row (call, lane, output, values, added, error);
    }
  p.x = gtorch_impl_data (values);
  p.counts = gtorch_impl_data (output);
  return gtorch_cuda_run_blocks (&gtorch_kernels_count, GTORCH_DTYPE_INT64, lane,
                                 MIN ((p.n + 1023) / 1024, 1024), &p, error);
}

/* --- gradients of views --- */

/* Returns whether no element occurs twice in the view: each stride must exceed the extent of all smaller
 * ones. */
static gboolean
is_distinct (const gint64 *shape, const gint64 *strides, guint n_dims)
{
  gint64 reach = 0;
  guint64 done = 0;
  guint i, k;

  for (k = 0; k < n_dims; k++)
    {
      guint next = G_MAXUINT;

      for (i = 0; i < n_dims; i++)
        if (!(done >> i & 1) && (next == G_MAXUINT || strides[i] < strides[next]))
          next = i;
      done |= G_GUINT64_CONSTANT (1) << next;
      if (shape[next] < 2)
        continue;
      if (strides[next] <= reach)
        return FALSE;
      reach += (shape[next] - 1) * strides[next];
    }
  return TRUE;
}

gboolean
gtorch_cuda_strided_view_backward (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *source = call->inputs[0], *output = call->outputs[0];
  const gint64 *stride = call->attrs[1].list.data, *base = call->attrs[3].list.data;
  gint64 offset = call->attrs[2].i, base_offset = call->attrs[4].i;
  gint64 n = MAX (gtorch_strides_extent (offset, source->shape, stride, source->n_dims),
                  gtorch_strides_extent (base_offset, output->shape, base, output->n_dims));
  g_autoptr (GTorchImpl) row = gtorch_impl_new (call->device, output->dtype, &n, 1, error);
  g_autoptr (GTorchImpl) shown = NULL;

  if (row == NULL || !gtorch_cuda_clear (row, lane, error))
    return FALSE;
  if (source->numel > 0 && is_distinct (source->shape, stride, source->n_dims))
    {
      g_autoptr (GTorchImpl) view =
          gtorch_impl_new_view (row, offset, source->shape, stride, source->n_dims);

      if (!gtorch_cuda_copy_here (view, source, lane, error))
        return FALSE;
    }
  else if (source->numel > 0)
    { /* compute the positions by viewing a ramp 0, 1, 2, … as the view views the row */
      g_autoptr (GTorchImpl) ramp =
          gtorch_impl_new (call->device, GTORCH_DTYPE_INT64, &n, 1, error);
      g_autoptr (GTorchImpl) seen = NULL;
      g_autoptr (GTorchImpl) index = NULL;
      GtProgression p = { .n = n, .step = 1 };

      if (ramp == NULL)
        return FALSE;
      p.y = gtorch_impl_data (ramp);
      seen = gtorch_impl_new_view (ramp, offset, source->shape, stride, source->n_dims);
      if (!gtorch_cuda_run (&gtorch_kernels_progression, GTORCH_DTYPE_INT64, lane, n, &p, error))
        return FALSE;
      index = gtorch_cuda_pack (seen, GTORCH_DTYPE_INT64, lane, error);
      if (index == NULL || !add_to_row (call, lane, row, index, source, error))
        return FALSE;
    }
  if (output->numel == 0)
    return TRUE;
  shown = gtorch_impl_new_view (row, base_offset, output->shape, base, output->n_dims);
  return gtorch_cuda_copy_here (output, shown, lane, error);
}
