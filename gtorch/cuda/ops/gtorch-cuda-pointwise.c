/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Chooses and launches the kernel of an element-wise operation: for contiguous operands, for inputs that
 * are constant along rows or columns, or for any strides. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "cpu/gtorch-cpu-cast.h"
#include "cpu/gtorch-cpu-iter.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "cuda/driver/gtorch-cuda-private.h"
#include "gtorch-ops-private.h"
#include "kernels/gtorch-kernel-params.h"

enum
{
  CONTIGUOUS,
  ROWS,
  STRIDED,
  N_FORMS
};

/* d must be a constant, so that no division is needed */
#define DIVIDED_UP(n, d) (((n) + (d) -1) / (d))

G_STATIC_ASSERT (N_FORMS == GTORCH_CUDA_N_LOOP_FORMS);

const gchar *const gtorch_cuda_dtype_suffixes[GTORCH_N_DTYPES] = {
  [GTORCH_DTYPE_NONE] = "",           [GTORCH_DTYPE_FLOAT32] = "f32",
  [GTORCH_DTYPE_FLOAT64] = "f64",     [GTORCH_DTYPE_FLOAT16] = "f16",
  [GTORCH_DTYPE_BFLOAT16] = "bf16",   [GTORCH_DTYPE_INT8] = "i8",
  [GTORCH_DTYPE_UINT8] = "u8",        [GTORCH_DTYPE_INT16] = "i16",
  [GTORCH_DTYPE_INT32] = "i32",       [GTORCH_DTYPE_INT64] = "i64",
  [GTORCH_DTYPE_BOOL] = "bool",       [GTORCH_DTYPE_COMPLEX64] = "c64",
  [GTORCH_DTYPE_COMPLEX128] = "c128",
};

/* Launches the kernel for n vectors. */
static gboolean
launch (GTorchOpCall *call, GTorchCudaLane *lane, guint dtype, guint form, guint64 n,
        gconstpointer parameters, GError **error)
{
  const GTorchCudaLoop *op = &gtorch_cuda_pointwise_kernels[call->op->loop];
  GTorchCudaKernel *kernel = &gtorch_cuda_pointwise_loaded[call->op->loop][dtype][form];
  guint64 blocks = DIVIDED_UP (n, GT_THREADS * GT_VECTORS);
  gchar name[64];

  if (G_UNLIKELY (g_atomic_pointer_get (&kernel->kernel) == NULL))
    g_snprintf (name, sizeof name, "gt_%s_%s%s", op->name, gtorch_cuda_dtype_suffixes[dtype],
                form == ROWS ? "_r" : "");
  return gtorch_cuda_kernel_run (kernel, op->family, name, lane, MAX (blocks, 1), GT_THREADS,
                                 parameters, error);
}

static gboolean
launch_strided (GTorchOpCall *call, GTorchCudaLane *lane, guint dtype, const GTorchIter *iter,
                GtStrided *p, GError **error)
{
  const GTorchCudaLoop *op = &gtorch_cuda_pointwise_kernels[call->op->loop];
  GTorchCudaKernel *kernel = &gtorch_cuda_pointwise_loaded[call->op->loop][dtype][STRIDED];
  gchar name[64];

  if (G_UNLIKELY (g_atomic_pointer_get (&kernel->kernel) == NULL))
    g_snprintf (name, sizeof name, "gt_%s_%s_s", op->name, gtorch_cuda_dtype_suffixes[dtype]);
  return gtorch_cuda_run_strided (op->family, kernel, name, iter, p, lane, error);
}

static gboolean
is_aligned (gconstpointer data)
{
  return ((guintptr) data & 15) == 0;
}

gboolean
gtorch_cuda_as_rows (const GTorchIter *iter, const guint *sizes, guint vector, GtRows *p)
{
  const guint64 inner = iter->shape[0], outer = iter->n_dims == 2 ? iter->shape[1] : 1;
  guint k;

  if (iter->n_dims > 2 || inner % vector != 0 || inner / vector * outer >= G_MAXINT32
      || iter->strides[0][0] != sizes[0]
      || (outer > 1 && iter->strides[1][0] != (gint64) inner * sizes[0]))
    return FALSE;
  for (k = 0; k < iter->n_operands; k++)
    {
      const gint64 column = iter->strides[0][k], row = iter->n_dims == 2 ? iter->strides[1][k] : 0;
      const guint width = sizes[k] * vector;

      if (p->base.numbers & (1u << k))
        continue;
      if ((column != 0 && column != sizes[k]) || row < 0 || row / sizes[k] > G_MAXUINT32)
        return FALSE;
      if (column != 0 && (row % width != 0 || (guintptr) iter->data[k] % width != 0))
        return FALSE;
      p->column_strides[k] = column != 0;
      p->row_strides[k] = row / (column != 0 ? width : sizes[k]);
    }
  p->base.n = inner / vector * outer;
  p->inner = gt_divider (inner / vector);
  return TRUE;
}

/* Returns whether all operands have their elements beside each other in one order, which need not be that of
 * their dimensions. */
static gboolean
is_dense (const GTorchIter *iter, const guint *sizes, guint numbers)
{
  guint k;

  for (k = 0; k < iter->n_operands; k++)
    if ((numbers & (1u << k)) == 0
        && (iter->n_dims != 1 || iter->strides[0][k] != sizes[k] || !is_aligned (iter->data[k])))
      return FALSE;
  return TRUE;
}

static void
fill_in_attrs (const GTorchOpCall *call, GtContiguous *p)
{
  guint i;

  p->numbers = 0;
  for (i = 0; i < call->op->n_attrs; i++)
    p->attrs[i].i = call->attrs[i].i;
  /* The attributes of these operations are numbers, which are integers if the dtype is one of integers. */
  if (G_UNLIKELY (call->op->promote == GTORCH_PROMOTE_BOUNDS)
      && gtorch_dtype_kind (call->compute) == GTORCH_KIND_INT)
    for (i = 0; i < call->op->n_attrs; i++)
      p->attrs[i].i = call->attrs[i].number.i;
}

static G_GNUC_NO_INLINE gboolean
run_any (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  guint compute = gtorch_dtype_infos[call->compute].compute;
  guint stored = call->compute;
  GTorchImpl *output = call->outputs[0];
  GTorchImpl *operands[GTORCH_ITER_MAX_OPERANDS] = { output };
  gboolean same = TRUE, contiguous = output->is_contiguous;
  guint size = gtorch_dtype_size (call->compute), sizes[GTORCH_ITER_MAX_OPERANDS], log_vector, k;
  guint n_operands = call->n_inputs + 1;
  union
  {
    GtContiguous contiguous;
    GtRows rows;
    GtStrided strided;
  } p;
  GtContiguous *base = &p.contiguous;
  GTorchIter iter;

  if (output->numel == 0)
    return TRUE;
  if (call->op->promote == GTORCH_PROMOTE_BOOL)
    stored = GTORCH_DTYPE_BOOL;
  else if (call->op->promote == GTORCH_PROMOTE_REAL)
    stored = gtorch_dtype_infos[call->compute].real;
  same = output->dtype == stored;

  fill_in_attrs (call, base);
  base->data[0] = gtorch_impl_data (output);
  contiguous &= is_aligned (base->data[0]);
  for (k = 1; k < n_operands; k++)
    {
      GTorchImpl *input = call->inputs[k - 1];

      operands[k] = input;
      base->data[k] = gtorch_impl_data (input);
      if (input->storage->device->type == GTORCH_DEVICE_TYPE_CPU)
        {
          base->numbers |= 1u << k;
          gtorch_cpu_cast (compute, input->dtype) ((char *) &base->number[k - 1], 16, base->data[k],
                                                   16, 1);
          continue;
        }
      same &= input->dtype == call->compute;
      contiguous &= input->is_contiguous && is_aligned (base->data[k])
                    && gtorch_impl_same_shape (input, output);
    }

  log_vector = 4 - __builtin_ctz (MAX (size, gtorch_dtype_size (stored)));
  if (same && contiguous)
    {
      base->n = output->numel;
      return launch (call, lane, call->compute, CONTIGUOUS, base->n >> log_vector, &p, error);
    }

  gtorch_iter_init (&iter, operands, n_operands, output->shape, output->n_dims);
  for (k = 0; k < n_operands; k++)
    base->data[k] = iter.data[k];
  sizes[0] = gtorch_dtype_size (stored);
  for (k = 1; k < n_operands; k++)
    sizes[k] = size;
  if (same && is_dense (&iter, sizes, base->numbers))
    {
      base->n = output->numel;
      return launch (call, lane, call->compute, CONTIGUOUS, base->n >> log_vector, &p, error);
    }
  if (same && n_operands > 2 && gtorch_cuda_as_rows (&iter, sizes, 1u << log_vector, &p.rows))
    return launch (call, lane, call->compute, ROWS, base->n, &p, error);
  for (k = 0; k < n_operands; k++)
    p.strided.dtypes[k] = operands[k]->dtype;
  return launch_strided (call, lane, compute, &iter, &p.strided, error);
}

gboolean
gtorch_cuda_pointwise (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  const gint64 size = gtorch_dtype_size (call->compute);
  const GTorchImpl *output = call->outputs[0];
  guintptr bits;
  GtContiguous p;
  guint k;

  if (!call->is_plain || output->numel == 0)
    return run_any (call, lane, error);
  p.data[0] = (char *) output->storage->data + output->offset * size;
  bits = (guintptr) p.data[0];
  for (k = 0; k < call->n_inputs; k++)
    {
      p.data[k + 1] = (char *) call->inputs[k]->storage->data + call->inputs[k]->offset * size;
      bits |= (guintptr) p.data[k + 1];
    }
  if (G_UNLIKELY (!is_aligned ((gconstpointer) bits)))
    return run_any (call, lane, error);
  fill_in_attrs (call, &p);
  p.n = output->numel;
  return launch (call, lane, call->compute, CONTIGUOUS, p.n >> (4 - __builtin_ctz (size)), &p,
                 error);
}
