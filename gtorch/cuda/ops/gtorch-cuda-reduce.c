/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Reductions: views the input as [outer, n, inner], and launches the kernels. */

#include "config.h"

#include "cpu/gtorch-cpu-pack.h"
#include "cpu/ops/gtorch-cpu-reduce.h"
#include "cuda/driver/gtorch-cuda-private.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"
#include "kernels/gtorch-kernel-params.h"

#define THREADS    256
#define SHORT_ROW  1024  /* the maximum elements of a row that one warp reduces */
#define PART       16384 /* minimum elements of a row per block */
#define MAX_SPLITS 2048
#define AT_ONCE    6 /* resident blocks per multiprocessor: with more, a few would run last */

enum
{
  ROWS,
  COLUMNS,
  PARTS,
  N_FORMS
};

G_STATIC_ASSERT (N_FORMS == GTORCH_CUDA_N_LOOP_FORMS);

static gboolean
launch (GTorchOpCall *call, GTorchCudaLane *lane, guint dtype, guint form, guint64 blocks,
        guint splits, const GtReduce *p, GError **error)
{
  static const gchar *const ends[] = { "rows", "columns", "parts" };
  const GTorchCudaLoop *op = &gtorch_cuda_reduce_kernels[call->op->loop];
  GTorchCudaKernel *kernel = &gtorch_cuda_reduce_loaded[call->op->loop][dtype][form];
  const GTorchCudaLaunch shape = { .grid = { blocks, splits }, .block = { THREADS } };
  gchar name[64];

  if (G_UNLIKELY (g_atomic_pointer_get (&kernel->kernel) == NULL))
    {
      g_snprintf (name, sizeof name, "gt_%s_%s_%s", op->name, gtorch_cuda_dtype_suffixes[dtype],
                  ends[form]);
      if (!gtorch_cuda_kernel_get (kernel, op->family, name, error))
        return FALSE;
    }
  return gtorch_cuda_kernel_launch (kernel, lane, &shape, p, error);
}

/* Returns whether the reduced dimensions are adjacent, contiguous together with those after them, and
 * equally far apart along those before them. Fills in the sizes in p. */
static gboolean
as_block (const GTorchImpl *x, guint64 mask, GtReduce *p)
{
  gint64 step = 1;
  guint i = 0, first, k;

  p->outer = p->n = p->inner = 1;
  while (i < x->n_dims && !(mask & (G_GUINT64_CONSTANT (1) << i)))
    p->outer *= x->shape[i++];
  for (first = i; i < x->n_dims && ((mask & (G_GUINT64_CONSTANT (1) << i)) || x->shape[i] == 1);
       i++)
    p->n *= x->shape[i];
  for (; i < x->n_dims; i++)
    {
      if ((mask & (G_GUINT64_CONSTANT (1) << i)) && x->shape[i] != 1)
        return FALSE;
      p->inner *= x->shape[i];
    }
  p->pitch = p->n * p->inner;
  if (x->is_contiguous)
    return TRUE;
  for (i = x->n_dims, k = 0; i-- > 0;)
    if (x->shape[i] != 1)
      {
        if (i < first && k++ == 0)
          step = p->pitch = x->strides[i];
        else if (x->strides[i] != step)
          return FALSE;
        step *= x->shape[i];
      }
  return TRUE;
}

static guint
choose_splits (const GtReduce *p, GTorchDevice *device)
{
  gboolean is_rows = p->inner == 1;
  guint64 wanted = (is_rows ? AT_ONCE : 4) * GTORCH_CUDA_DEVICE (device)->n_multiprocessors;
  guint64 blocks = is_rows ? p->outer : p->outer * ((p->inner + 31) / 32);
  guint64 most = is_rows ? (p->n + PART - 1) / PART : (p->n + 255) / 256;

  /* blocks of columns are small, so rather have more of them */
  if (!is_rows)
    wanted += blocks - 1;
  return CLAMP (wanted / MAX (blocks, 1), 1, CLAMP (most, 1, MAX_SPLITS));
}

gboolean
gtorch_cuda_reduce (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *x = call->inputs[0], *output = call->outputs[0];
  guint compute = gtorch_dtype_infos[call->compute].compute;
  guint stored = call->op->promote == GTORCH_PROMOTE_BOOL ? GTORCH_DTYPE_BOOL : call->compute;
  g_autoptr (GTorchImpl) ready = NULL;
  g_autoptr (GTorchImpl) partial = NULL;
  g_autoptr (GTorchImpl) result = NULL;
  GtReduce p = { NULL };
  gboolean keepdim;
  guint64 mask, blocks;
  guint ignored, splits;

  if (!gtorch_reduce_parse (call, &mask, &keepdim, &ignored, error))
    return FALSE;
  if (output->numel == 0)
    return TRUE;

  /* The kernels read call->compute, and accumulate in it or in a wider dtype. */
  if (x->dtype == call->compute && as_block (x, mask, &p))
    ready = gtorch_impl_ref (x);
  else
    {
      g_autoptr (GTorchImpl) moved = gtorch_cpu_move_last (x, mask);

      ready = gtorch_cuda_pack (moved, call->compute, lane, error);
      p.outer = output->numel;
      p.n = p.pitch = x->numel / output->numel;
      p.inner = 1;
    }
  if (ready == NULL)
    return FALSE;
  result = gtorch_cuda_pack_output (output, stored, error);
  if (result == NULL)
    return FALSE;
  p.src = gtorch_impl_data (ready);
  p.dst = gtorch_impl_data (result);
  p.n_total = p.n;

  splits = choose_splits (&p, output->storage->device);
  if (p.inner == 1 && p.n <= SHORT_ROW)
    splits = 0;
  if (splits > 1)
    {
      const gint64 n_bytes = (gint64) (splits * p.outer * p.inner) * gtorch_dtype_size (compute);

      partial = gtorch_impl_new (output->storage->device, GTORCH_DTYPE_UINT8, &n_bytes, 1, error);
      if (partial == NULL)
        return FALSE;
      p.partial = gtorch_impl_data (partial);
    }
  p.n_splits = splits;
  if (p.inner == 1)
    {
      blocks = splits == 0 ? (p.outer + 7) / 8 : p.outer * splits;
      if (!launch (call, lane, call->compute, ROWS, blocks, 1, &p, error))
        return FALSE;
    }
  else
    {
      blocks = p.outer * ((p.inner + 31) / 32);
      if (!launch (call, lane, call->compute, COLUMNS, blocks, splits, &p, error))
        return FALSE;
    }
  if (splits > 1)
    {
      p.inner *= p.outer;
      p.n = splits;
      p.width = 1;
      while (p.width < THREADS && p.width < p.inner && p.width * splits < 4 * THREADS)
        p.width *= 2;
      if (!launch (call, lane, call->compute, PARTS, (p.inner + p.width - 1) / p.width, 1, &p,
                   error))
        return FALSE;
    }
  return gtorch_cuda_unpack (result, output, lane, error);
}
