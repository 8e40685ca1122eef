/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Running sums and products along a dimension, and the gradients of products. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "cpu/gtorch-cpu-reduce.h"
#include "cuda/gtorch-cuda-private.h"
#include "gtorch-ops-private.h"
#include "kernels/gtorch-kernel-params.h"

#define THREADS   256
#define SHORT_ROW 2048 /* bytes of a row that a warp takes */

GTORCH_CUDA_IMAGE (scan)

enum
{
  SHORT_ROWS,
  ROWS,
  ROWS_AHEAD,
  COLUMNS,
  COLUMNS_AHEAD,
  N_FORMS
};

static GTorchCudaFamily family = { .name = "scan", .image = gtorch_fatbin_scan };
static GTorchCudaKernel kernels[2][N_FORMS][GTORCH_N_DTYPES];
static GTorchCudaKernel line_kernels[2][GTORCH_N_DTYPES];

/* Of dtype and contiguous: x itself, or a copy. */
static GTorchImpl *
ready (GTorchImpl *x, guint dtype, GTorchCudaLane *lane, GError **error)
{
  g_autoptr (GTorchImpl) copy = NULL;

  if (x->is_contiguous && x->dtype == dtype)
    return gtorch_impl_ref (x);
  copy = gtorch_impl_new (x->storage->device, dtype, x->shape, x->n_dims, error);
  if (copy == NULL || !gtorch_cuda_copy_here (copy, x, lane, error))
    return NULL;
  return g_steal_pointer (&copy);
}

static gboolean
launch (gboolean product, guint form, guint dtype, GTorchCudaLane *lane, guint64 blocks,
        guint threads, const GtScan *p, GError **error)
{
  static const gchar *const forms[] = { "short_rows", "rows", "rows_ahead", "columns",
                                        "columns_ahead" };
  gchar name[64];

  g_snprintf (name, sizeof name, "gt_%s_%s_%s", product ? "product" : "sum", forms[form],
              gtorch_cuda_dtype_suffixes[dtype]);
  return gtorch_cuda_kernel_run (&kernels[product][form][dtype], &family, name, lane, blocks,
                                 threads, p, error);
}

static gboolean
scan (GtScan *p, gboolean product, guint dtype, GTorchDevice *device, GTorchCudaLane *lane,
      GError **error)
{
  guint size = gtorch_dtype_size (dtype), v = 16 / size;
  guint64 accumulator = MAX (size, 4), tile, lines, slots;
  guint multis = GTORCH_CUDA_DEVICE (device)->n_multiprocessors;
  g_autoptr (GTorchImpl) state = NULL;
  gint64 n_bytes;

  p->vectors = (((guintptr) p->src | (guintptr) p->dst) & 15) == 0
               && (p->inner == 1 ? p->n : p->inner) % v == 0;
  p->width = gtorch_cuda_power_of_two (((p->inner == 1 ? p->n : p->inner) + v - 1) / v, 32);
  if (p->inner == 1 && p->n * size <= SHORT_ROW && (p->n * size <= 1024 || p->outer >= 16 * multis))
    return launch (product, SHORT_ROWS, dtype, lane, (p->outer * p->width + THREADS - 1) / THREADS,
                   THREADS, p, error);
  if (p->inner == 1)
    {
      tile = THREADS * v * (v >= 8 ? 4 : 8);
      lines = p->outer;
    }
  else
    {
      tile = THREADS / p->width * (v >= 8 ? 4 : 8);
      lines = p->outer * ((p->inner + p->width * v - 1) / (p->width * v));
    }
  p->tiles = (p->n + tile - 1) / tile;
  while (p->group < THREADS && p->group * p->group < p->tiles)
    p->group *= 2;
  p->groups = (p->tiles + p->group - 1) / p->group;
  slots = p->outer * (p->tiles + p->groups) * p->inner;
  if (p->tiles > 1 && lines < 16 * multis && lines * p->tiles < G_MAXINT32)
    { /* too few lines for a block each */
      gsize totals = (slots * MAX (accumulator, 8) + 15) / 16 * 16;
      gsize flags = accumulator == 4 ? 0 : slots * 4, zeros = flags == 0 ? 0 : totals;

      n_bytes = totals + flags + 16;
      state = gtorch_impl_new (device, GTORCH_DTYPE_UINT8, &n_bytes, 1, error);
      if (state == NULL)
        return FALSE;
      p->totals = gtorch_impl_data (state);
      p->flags = (uint32_t *) ((char *) p->totals + totals);
      p->counter = (uint32_t *) ((char *) p->flags + flags);
      if (!gtorch_cuda_device_activate (lane->device, error)
          || !gtorch_cuda_check (gtorch_cuda.cuMemsetD8Async ((CUdeviceptr) (guintptr) p->totals
                                                                  + zeros,
                                                              0, n_bytes - zeros, lane->handle),
                                 "cuMemsetD8Async", error))
        return FALSE;
      lines *= p->tiles;
      if (p->vectors) /* blocks that go on to further tiles, as many as there is room for */
        return launch (product, p->inner == 1 ? ROWS_AHEAD : COLUMNS_AHEAD, dtype, lane,
                       MIN (lines, (p->inner == 1 ? 4 : 3) * multis), THREADS, p, error);
    }
  if (p->inner == 1)
    return launch (product, ROWS, dtype, lane, lines,
                   p->tiles > 1 ? THREADS
                                : MAX (gtorch_cuda_power_of_two ((p->n * THREADS + tile - 1) / tile,
                                                                 THREADS),
                                       32),
                   p, error);
  return launch (product, COLUMNS, dtype, lane, lines, THREADS, p, error);
}

/* The dtype that the kernels read and write for one that is computed in. */
static gboolean
has_kernel (guint dtype)
{
  switch (dtype)
    {
    case GTORCH_DTYPE_INT8:
    case GTORCH_DTYPE_UINT8:
    case GTORCH_DTYPE_INT16:
    case GTORCH_DTYPE_BOOL:
      return FALSE;
    default:
      return TRUE;
    }
}

static gboolean
run (GTorchOpCall *call, GTorchCudaLane *lane, gboolean product, gboolean reverse, GError **error)
{
  GTorchImpl *self = call->inputs[0], *output = call->outputs[0];
  GTorchDevice *device = output->storage->device;
  guint dtype = gtorch_dtype_infos[call->compute].compute;
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  GtScan p = { .inner = 1, .reverse = reverse, .group = 1 };
  guint dim, i;

  if (self->numel == 0)
    return TRUE;
  if (!gtorch_normalize_dim (call->op->name, call->attrs[0].i, self->n_dims, &dim, error))
    return FALSE;
  if (self->dtype == output->dtype && has_kernel (self->dtype))
    dtype = self->dtype;
  x = ready (self, dtype, lane, error);
  if (x == NULL)
    return FALSE;
  y = output->is_contiguous && output->dtype == dtype
          ? gtorch_impl_ref (output)
          : gtorch_impl_new (device, dtype, self->shape, self->n_dims, error);
  if (y == NULL)
    return FALSE;
  p.src = gtorch_impl_data (x);
  p.dst = gtorch_impl_data (y);
  p.n = self->n_dims == 0 ? 1 : self->shape[dim];
  for (i = dim + 1; i < self->n_dims; i++)
    p.inner *= self->shape[i];
  p.outer = self->numel / (p.n * p.inner);
  return scan (&p, product, dtype, device, lane, error)
         && (y == output || gtorch_cuda_copy_here (output, y, lane, error));
}

gboolean
gtorch_cuda_cumsum (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return run (call, lane, FALSE, FALSE, error);
}

gboolean
gtorch_cuda_cumsum_reverse (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return run (call, lane, FALSE, TRUE, error);
}

gboolean
gtorch_cuda_cumprod (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return run (call, lane, TRUE, FALSE, error);
}

/* --- gradients --- */

/* The dimensions in mask behind the others. */
static GTorchImpl *
move_last (GTorchImpl *x, guint64 mask)
{
  gint64 shape[GTORCH_MAX_DIMS], strides[GTORCH_MAX_DIMS];
  guint last, i, n = 0;

  for (last = 0; last < 2; last++)
    for (i = 0; i < x->n_dims; i++)
      if (((mask >> i) & 1) == last)
        {
          shape[n] = x->shape[i];
          strides[n++] = x->strides[i];
        }
  return gtorch_impl_new_view (x, x->offset, shape, strides, n);
}

/* Lines over the dimensions in mask: of g if there is one, and x to the output. */
static gboolean
lines (GTorchOpCall *call, GTorchCudaLane *lane, guint64 mask, GTorchImpl *g, GTorchImpl *x,
       GError **error)
{
  GTorchImpl *output = call->outputs[0];
  guint dtype = gtorch_dtype_infos[call->compute].compute;
  g_autoptr (GTorchImpl) near_x = move_last (x, mask);
  g_autoptr (GTorchImpl) near_g = g != NULL ? move_last (g, mask) : NULL;
  g_autoptr (GTorchImpl) target = move_last (output, mask);
  g_autoptr (GTorchImpl) ready_x = ready (near_x, dtype, lane, error);
  g_autoptr (GTorchImpl) ready_g = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  GtLines p = { .n = 1 };
  gchar name[64];
  guint i;

  if (ready_x == NULL || (g != NULL && (ready_g = ready (near_g, dtype, lane, error)) == NULL))
    return FALSE;
  for (i = 0; i < x->n_dims; i++)
    if ((mask >> i) & 1)
      p.n *= x->shape[i];
  y = target->is_contiguous && target->dtype == dtype && output->storage != x->storage
              && (g == NULL || output->storage != g->storage)
          ? gtorch_impl_ref (target)
          : gtorch_impl_new (output->storage->device, dtype, target->shape, target->n_dims, error);
  if (y == NULL)
    return FALSE;
  p.x = gtorch_impl_data (ready_x);
  p.g = ready_g != NULL ? gtorch_impl_data (ready_g) : NULL;
  p.y = gtorch_impl_data (y);
  g_snprintf (name, sizeof name, "gt_%s_%s", call->op->name, gtorch_cuda_dtype_suffixes[dtype]);
  return gtorch_cuda_kernel_run (&line_kernels[g != NULL][dtype], &family, name, lane,
                                 x->numel / p.n, THREADS, &p, error)
         && (y == target || gtorch_cuda_copy_here (target, y, lane, error));
}

gboolean
gtorch_cuda_cumprod_backward (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *upper = call->inputs[0], *self = call->inputs[1];
  guint dim;

  if (self->numel == 0)
    return TRUE;
  return gtorch_normalize_dim (call->op->name, call->attrs[0].i, self->n_dims, &dim, error)
         && lines (call, lane, G_GUINT64_CONSTANT (1) << dim, upper, self, error);
}

gboolean
gtorch_cuda_prod_others (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  gboolean keepdim;
  guint64 mask;
  guint ignored;

  if (call->inputs[0]->numel == 0)
    return TRUE;
  return gtorch_reduce_parse (call, &mask, &keepdim, &ignored, error)
         && lines (call, lane, mask, NULL, call->inputs[0], error);
}
