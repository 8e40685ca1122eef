/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Minimum and maximum with their positions: views the input as [outer, n, inner], and chooses a kernel that
 * suits it. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "cuda/driver/gtorch-cuda-private.h"
#include "gtorch-ops-private.h"

#define THREADS   256
#define SHORT_ROW 16384 /* the maximum bytes of a row that one warp reduces */
#define PART      65536 /* minimum bytes of a row per block */
#define FEW       2048  /* minimum elements of a tile of columns per block */
#define AT_ONCE   5     /* resident blocks per multiprocessor: with more, a few would run last */

enum
{
  ROWS,
  COLUMNS,
  ITEMS,
  PARTS,
  N_FORMS
};

static GTorchCudaKernel kernels[N_FORMS][GTORCH_N_DTYPES];

static gboolean
launch (guint form, guint dtype, GTorchCudaLane *lane, guint64 blocks, guint splits,
        const GtExtreme *p, GError **error)
{
  static const gchar *const forms[] = { "rows", "columns", "items", "parts" };
  const GTorchCudaLaunch shape = { .grid = { blocks, splits }, .block = { THREADS } };
  GTorchCudaKernel *kernel = &kernels[form][dtype];
  gchar name[64];

  if (G_UNLIKELY (g_atomic_pointer_get (&kernel->kernel) == NULL))
    {
      g_snprintf (name, sizeof name, "gt_extreme_%s_%s", forms[form],
                  gtorch_cuda_dtype_suffixes[dtype]);
      if (!gtorch_cuda_kernel_get (kernel, &gtorch_cuda_family_argreduce, name, error))
        return FALSE;
    }
  return gtorch_cuda_kernel_launch (kernel, lane, &shape, p, error);
}

static void
choose_flip (guint dtype, GtExtreme *p)
{
  gboolean floating = gtorch_dtype_kind (dtype) == GTORCH_KIND_FLOAT;

  p->flip[0] = p->flip[1] = G_MAXUINT32;
  if (!floating)
    return;
  p->flip[0] = p->flip[1] = gtorch_dtype_size (dtype) == 2 ? 0x80008000u : 0x80000000u;
  if (gtorch_dtype_size (dtype) == 8)
    p->flip[0] = 0;
}

/* Splits n so that there are about `wanted` blocks, whose parts have at least `least` elements each. */
static void
split (GtExtreme *p, guint64 blocks, guint64 wanted, guint64 least)
{
  guint64 splits = CLAMP (wanted / MAX (blocks, 1), 1, MAX (p->n / least, 1));

  splits = MIN (splits, 4096);
  p->part = ((p->n + splits - 1) / splits + 63) / 64 * 64;
  p->n_splits = (p->n + p->part - 1) / p->part;
}

static gboolean
run (const GTorchImpl *x, GtExtreme *p, GTorchCudaLane *lane, GError **error)
{
  GTorchDevice *device = x->storage->device;
  guint64 size = gtorch_dtype_size (x->dtype), multis, blocks;
  guint dtype = x->dtype == GTORCH_DTYPE_BOOL ? GTORCH_DTYPE_UINT8 : x->dtype;
  guint v = size == 1 ? 8 : 16 / size; /* columns per vector */
  g_autoptr (GTorchImpl) partial = NULL;
  g_autoptr (GTorchImpl) partial_at = NULL;

  multis = GTORCH_CUDA_DEVICE (device)->n_multiprocessors;
  p->n_splits = 1;
  p->part = p->n;
  if (p->inner == 1
      && (p->n * size <= 512 || (p->n * size <= SHORT_ROW && p->outer / 8 >= 2 * multis)))
    {
      p->n_splits = 0;
      p->width = gtorch_cuda_power_of_two ((p->n * size + 31) / 32, 32);
      return launch (ROWS, dtype, lane, (p->outer * p->width + THREADS - 1) / THREADS, 1, p, error);
    }
  p->width = gtorch_cuda_power_of_two ((p->inner + v - 1) / v, 32);
  if (p->inner > 1 && p->n * MIN (p->inner, p->width * v) <= FEW)
    return launch (ITEMS, dtype, lane, (p->outer * p->inner + THREADS - 1) / THREADS, 1, p, error);

  if (p->inner == 1)
    {
      blocks = p->outer;
      split (p, blocks, AT_ONCE * multis, PART / size);
    }
  else
    {
      p->vectors = p->inner % v == 0 && ((guintptr) p->src & 15) == 0;
      blocks = p->outer * ((p->inner + p->width * v - 1) / (p->width * v));
      split (p, blocks, AT_ONCE * multis, 32 * THREADS / p->width);
    }
  if (p->part >= G_MAXINT32)
    split (p, 1, 4096, 1);
  if (p->n_splits > 1)
    {
      const gint64 n = p->n_splits * p->outer * p->inner;

      partial = gtorch_impl_new (device, GTORCH_DTYPE_FLOAT64, &n, 1, error);
      partial_at =
          partial != NULL ? gtorch_impl_new (device, GTORCH_DTYPE_INT32, &n, 1, error) : NULL;
      if (partial_at == NULL)
        return FALSE;
      p->partial = gtorch_impl_data (partial);
      p->partial_at = gtorch_impl_data (partial_at);
    }
  if (!launch (p->inner == 1 ? ROWS : COLUMNS, dtype, lane,
               p->inner == 1 ? blocks * p->n_splits : blocks, p->inner == 1 ? 1 : p->n_splits, p,
               error))
    return FALSE;
  if (p->n_splits == 1)
    return TRUE;
  blocks = p->outer * p->inner;
  p->width = gtorch_cuda_power_of_two (MAX (4 * THREADS / p->n_splits, 1), THREADS);
  p->width = MIN (p->width, gtorch_cuda_power_of_two (blocks, THREADS));
  return launch (PARTS, dtype, lane, (blocks + p->width - 1) / p->width, 1, p, error);
}

/* Finds the extremes along dim, or over all elements if dim is negative. */
static gboolean
extreme (GTorchOpCall *call, GTorchCudaLane *lane, gint dim, GTorchImpl *values,
         GTorchImpl *indices, gboolean least, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  g_autoptr (GTorchImpl) x = NULL;
  GTorchRows rows = { 1, self->numel, 1 };
  GtExtreme p = { NULL };

  if (indices->numel == 0)
    return TRUE;
  x = gtorch_cuda_pack (self, self->dtype, lane, error);
  if (x == NULL)
    return FALSE;
  p.src = gtorch_impl_data (x);
  p.values = values != NULL ? gtorch_impl_data (values) : NULL;
  p.indices = gtorch_impl_data (indices);
  if (dim >= 0)
    rows = gtorch_rows_along (self->shape, self->n_dims, dim);
  p.outer = rows.outer;
  p.n = rows.n;
  p.inner = rows.inner;
  if (least)
    choose_flip (self->dtype, &p);
  return run (x, &p, lane, error);
}

static gboolean
with_values (GTorchOpCall *call, GTorchCudaLane *lane, gboolean least, GError **error)
{
  guint dim;

  return gtorch_normalize_dim (call->op->name, call->attrs[0].i, call->inputs[0]->n_dims, &dim,
                               error)
         && extreme (call, lane, dim, call->outputs[0], call->outputs[1], least, error);
}

static gboolean
only_where (GTorchOpCall *call, GTorchCudaLane *lane, gboolean least, GError **error)
{
  guint dim;

  if (call->attrs[0].list.n == 0)
    return extreme (call, lane, -1, NULL, call->outputs[0], least, error);
  return gtorch_normalize_dim (call->op->name, call->attrs[0].list.data[0], call->inputs[0]->n_dims,
                               &dim, error)
         && extreme (call, lane, dim, NULL, call->outputs[0], least, error);
}

gboolean
gtorch_cuda_max_dim (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return with_values (call, lane, FALSE, error);
}

gboolean
gtorch_cuda_min_dim (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return with_values (call, lane, TRUE, error);
}

gboolean
gtorch_cuda_argmax (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return only_where (call, lane, FALSE, error);
}

gboolean
gtorch_cuda_argmin (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return only_where (call, lane, TRUE, error);
}
