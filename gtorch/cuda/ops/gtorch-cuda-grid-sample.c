/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Sampling images at positions, and its gradients. For that of the images, the parts of several images at a
 * time are computed, and added in a fixed order by index_add. */

#include "config.h"

#include "cuda/driver/gtorch-cuda-private.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "dispatch/gtorch-run-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

#define ENOUGH_THREADS (1 << 18)
#define MOST_PRODUCTS  (1 << 27) /* elements, unless one image has more */

G_STATIC_ASSERT ((int) GT_GRID_NEAREST == (int) GTORCH_GRID_MODE_NEAREST
                 && (int) GT_GRID_BICUBIC == (int) GTORCH_GRID_MODE_BICUBIC
                 && (int) GT_GRID_BORDER == (int) GTORCH_GRID_PADDING_BORDER
                 && (int) GT_GRID_REFLECTION == (int) GTORCH_GRID_PADDING_REFLECTION);

static void
parameters_init (GtGridSample *p, const GTorchGridSampling *g)
{
  gint64 groups;
  guint i;

  *p = (GtGridSample){ .n_images = g->n_images,
                       .n_channels = g->n_channels,
                       .n_in = g->n_in,
                       .n_out = g->n_out,
                       .dims = g->dims,
                       .mode = g->mode,
                       .padding = g->padding,
                       .align_corners = g->align_corners };
  for (i = 0; i < 3; i++)
    p->size[i] = g->size[i];
  /* channels are divided among threads only if there are few samples */
  groups = ENOUGH_THREADS / MAX (g->n_images * g->n_out, 1) + 1;
  p->chunk = (g->n_channels + groups - 1) / groups;
}

gboolean
gtorch_cuda_native_grid_sample (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  g_autoptr (GTorchImpl) images = NULL;
  g_autoptr (GTorchImpl) grid = NULL;
  g_autoptr (GTorchImpl) made = NULL;
  GTorchGridSampling geometry;
  GtGridSample p;

  if (output->numel == 0)
    return TRUE;
  gtorch_grid_sampling_init (&geometry, call->inputs[0]->shape, call->inputs[1], call->attrs);
  parameters_init (&p, &geometry);
  if ((images = gtorch_cuda_pack (call->inputs[0], call->compute, lane, error)) == NULL
      || (grid = gtorch_cuda_pack (call->inputs[1], call->compute, lane, error)) == NULL
      || (made = gtorch_cuda_pack_output (output, call->compute, error)) == NULL)
    return FALSE;
  p.images = gtorch_impl_data (images);
  p.grid = gtorch_impl_data (grid);
  p.output = gtorch_impl_data (made);
  return gtorch_cuda_run (&gtorch_kernels_grid_sample, call->compute, lane,
                          output->numel / p.n_channels * ((p.n_channels - 1) / p.chunk + 1), &p,
                          error)
         && gtorch_cuda_unpack (made, output, lane, error);
}

gboolean
gtorch_cuda_grid_sample_grid_grad (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  g_autoptr (GTorchImpl) upper = NULL;
  g_autoptr (GTorchImpl) images = NULL;
  g_autoptr (GTorchImpl) grid = NULL;
  g_autoptr (GTorchImpl) made = NULL;
  GTorchGridSampling geometry;
  GtGridSample p;

  if (output->numel == 0)
    return TRUE;
  gtorch_grid_sampling_init (&geometry, call->inputs[1]->shape, call->inputs[2], call->attrs);
  parameters_init (&p, &geometry);
  if ((upper = gtorch_cuda_pack (call->inputs[0], call->compute, lane, error)) == NULL
      || (images = gtorch_cuda_pack (call->inputs[1], call->compute, lane, error)) == NULL
      || (grid = gtorch_cuda_pack (call->inputs[2], call->compute, lane, error)) == NULL
      || (made = gtorch_cuda_pack_output (output, call->compute, error)) == NULL)
    return FALSE;
  p.upper = gtorch_impl_data (upper);
  p.images = gtorch_impl_data (images);
  p.grid = gtorch_impl_data (grid);
  p.output = gtorch_impl_data (made);
  return gtorch_cuda_run (&gtorch_kernels_grid_sample_grid, call->compute, lane,
                          output->numel / p.dims, &p, error)
         && gtorch_cuda_unpack (made, output, lane, error);
}

/* --- the gradient of the images --- */

/* Returns a view [images, elements, channels] of images [images, channels, elements…]. */
static GTorchImpl *
channels_last (GTorchImpl *images, gint64 n_channels, gint64 n)
{
  const gint64 shape[] = { images->shape[0], n, n_channels };
  const gint64 strides[] = { n_channels * n, 1, n };

  return gtorch_impl_new_view (images, images->offset, shape, strides, 3);
}

/* Adds the products to the rows of `sums` that the slots name. */
static gboolean
add_rows (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *sums, GTorchImpl *slots,
          GTorchImpl *products, GError **error)
{
  const GTorchAttr attrs[] = { { .i = 0 }, { .d = 1 } };
  GTorchImpl *inputs[] = { sums, slots, products };
  GTorchOpCall add = {
    .op = &gtorch_ops[GTORCH_OP_INDEX_ADD],
    .inputs = inputs,
    .n_inputs = 3,
    .attrs = attrs,
    .outputs = { sums },
    .n_outputs = 1,
    .in_place = TRUE,
    .device = call->device,
    .compute = sums->dtype,
  };

  return gtorch_call_run (&add, lane, error);
}

/* Writes the gradients of p->n_images images from `first` on to the rows of `sums`, which has one more for
 * what is beyond the borders. */
static gboolean
sum_products (GTorchOpCall *call, GTorchCudaLane *lane, const GtGridSample *all, guint n_taps,
              gint64 first, GTorchImpl *sums, GError **error)
{
  GtGridSample p = *all;
  const gsize size = gtorch_dtype_size (call->compute);
  const gint64 rows = p.n_images * p.n_in + 1;
  const gint64 n_slots = p.n_images * p.n_out * n_taps;
  const gint64 shape[] = { n_slots, p.n_channels };
  const gint64 part[] = { rows, p.n_channels }, strides[] = { p.n_channels, 1 };
  g_autoptr (GTorchImpl) products = gtorch_impl_new (call->device, sums->dtype, shape, 2, error);
  g_autoptr (GTorchImpl) slots =
      products != NULL ? gtorch_impl_new (call->device, GTORCH_DTYPE_INT64, &n_slots, 1, error)
                       : NULL;
  g_autoptr (GTorchImpl) rows_of_part = NULL;

  if (slots == NULL)
    return FALSE;
  p.products = gtorch_impl_data (products);
  p.slots = gtorch_impl_data (slots);
  p.grid = (const char *) p.grid + first * p.n_out * p.dims * size;
  p.upper = (const char *) p.upper + first * p.n_out * p.n_channels * size;
  rows_of_part =
      gtorch_impl_new_view (sums, sums->offset + first * p.n_in * p.n_channels, part, strides, 2);
  return gtorch_cuda_run (&gtorch_kernels_grid_sample_products, call->compute, lane,
                          p.n_images * p.n_out * ((p.n_channels - 1) / p.chunk + 1), &p, error)
         && add_rows (call, lane, rows_of_part, slots, products, error);
}

gboolean
gtorch_cuda_grid_sample_input_grad (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  g_autoptr (GTorchImpl) plain = NULL;
  g_autoptr (GTorchImpl) turned = NULL;
  g_autoptr (GTorchImpl) upper = NULL;
  g_autoptr (GTorchImpl) grid = NULL;
  g_autoptr (GTorchImpl) sums = NULL;
  g_autoptr (GTorchImpl) view = NULL;
  GTorchGridSampling g;
  GtGridSample p;
  gint64 rows[2], shape[5], strides[5], step, first, most;
  guint d;

  if (output->numel == 0)
    return TRUE;
  gtorch_grid_sampling_init (&g, call->attrs[3].list.data, call->inputs[1], call->attrs);
  parameters_init (&p, &g);
  rows[0] = g.n_images * g.n_in + 1;
  rows[1] = g.n_channels;
  sums = gtorch_impl_new (call->device, gtorch_dtype_infos[call->compute].compute, rows, 2, error);
  if (sums == NULL || !gtorch_cuda_clear (sums, lane, error))
    return FALSE;
  if (g.n_out > 0)
    {
      if ((plain = gtorch_cuda_pack (call->inputs[0], call->compute, lane, error)) == NULL)
        return FALSE;
      turned = channels_last (plain, g.n_channels, g.n_out);
      if ((upper = gtorch_cuda_pack (turned, call->compute, lane, error)) == NULL
          || (grid = gtorch_cuda_pack (call->inputs[1], call->compute, lane, error)) == NULL)
        return FALSE;
      p.upper = gtorch_impl_data (upper);
      p.grid = gtorch_impl_data (grid);
      most = MAX (MOST_PRODUCTS / g.n_taps / g.n_channels / g.n_out, 1);
      for (first = 0; first < g.n_images; first += most)
        {
          p.n_images = MIN (most, g.n_images - first);
          if (!sum_products (call, lane, &p, g.n_taps, first, sums, error))
            return FALSE;
        }
    }
  shape[0] = g.n_images;
  shape[1] = g.n_channels;
  strides[0] = g.n_in * g.n_channels;
  strides[1] = 1;
  for (d = g.dims + 1, step = g.n_channels; d >= 2; d--)
    {
      shape[d] = output->shape[d];
      strides[d] = step;
      step *= shape[d];
    }
  view = gtorch_impl_new_view (sums, sums->offset, shape, strides, g.dims + 2);
  return gtorch_cuda_copy_here (output, view, lane, error);
}
