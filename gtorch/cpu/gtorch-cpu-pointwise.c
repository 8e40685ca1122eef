/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Runs the loop of a pointwise operation over its operands. Operands that do not have the dtype that the
 * loop computes in (16-bit floats, small integers, mixed inputs) go through small buffers, block
 * by block,
 * so no operation needs a loop for them and no temporary tensor is made. */

#include "config.h"

#include "cpu/gtorch-cpu-cast.h"
#include "cpu/gtorch-cpu-iter.h"
#include "gtorch-ops-private.h"

#define BLOCK 512

typedef struct
{
  GTorchLoop loop;
  const GTorchAttr *attrs;
  guint n_operands;
  guint8 sizes[GTORCH_ITER_MAX_OPERANDS]; /* of an element in the loop's dtype */
  GTorchCast
      casts[GTORCH_ITER_MAX_OPERANDS]; /* of inputs into it, of the output out of it; or NULL */
} Pointwise;

static void
run_direct (char *const *data, const gint64 *strides, gint64 n, gpointer user_data)
{
  const Pointwise *op = user_data;

  op->loop (data, strides, n, op->attrs);
}

static void
run_buffered (char *const *data, const gint64 *strides, gint64 n, gpointer user_data)
{
  const Pointwise *op = user_data;
  char buffers[GTORCH_ITER_MAX_OPERANDS][BLOCK * 16] __attribute__ ((aligned (64)));
  char *block_data[GTORCH_ITER_MAX_OPERANDS];
  gint64 block_strides[GTORCH_ITER_MAX_OPERANDS];
  gint64 i;
  guint k;

  for (i = 0; i < n; i += BLOCK)
    {
      gint64 m = MIN (n - i, BLOCK);

      for (k = 0; k < op->n_operands; k++)
        {
          block_data[k] = data[k] + i * strides[k];
          block_strides[k] = strides[k];
          if (op->casts[k] == NULL)
            continue;
          if (k > 0)
            op->casts[k](buffers[k], op->sizes[k], block_data[k], strides[k],
                         strides[k] == 0 ? 1 : m);
          block_data[k] = buffers[k];
          block_strides[k] = k > 0 && strides[k] == 0 ? 0 : op->sizes[k];
        }
      op->loop (block_data, block_strides, m, op->attrs);
      if (op->casts[0] != NULL)
        op->casts[0](data[0] + i * strides[0], strides[0], buffers[0], op->sizes[0], m);
    }
}

gboolean
gtorch_cpu_pointwise (GTorchOpCall *call, GError **error)
{
  guint dtype = gtorch_dtype_infos[call->compute].compute;
  guint out_dtype = dtype;
  GTorchImpl *output = call->outputs[0];
  GTorchImpl *operands[GTORCH_ITER_MAX_OPERANDS] = { output };
  Pointwise op = { gtorch_cpu_loop (call->op->loop, dtype), call->attrs, call->n_inputs + 1 };
  char scalars[GTORCH_ITER_MAX_OPERANDS][16] __attribute__ ((aligned (16)));
  gboolean buffered = FALSE, contiguous = output->is_contiguous;
  GTorchIter iter;
  guint k;

  g_assert (op.loop != NULL);
  if (output->numel == 0)
    return TRUE;
  if (call->op->promote == GTORCH_PROMOTE_BOOL)
    out_dtype = GTORCH_DTYPE_BOOL;
  else if (call->op->promote == GTORCH_PROMOTE_REAL)
    out_dtype = gtorch_dtype_infos[dtype].real;

  op.sizes[0] = gtorch_dtype_size (out_dtype);
  if (output->dtype != out_dtype)
    {
      op.casts[0] = gtorch_cpu_cast (output->dtype, out_dtype);
      buffered = TRUE;
    }
  for (k = 1; k < op.n_operands; k++)
    {
      GTorchImpl *input = call->inputs[k - 1];

      operands[k] = input;
      op.sizes[k] = gtorch_dtype_size (dtype);
      contiguous &=
          input->numel == 1 || (input->is_contiguous && gtorch_impl_same_shape (input, output));
      if (input->dtype == dtype)
        continue;
      op.casts[k] = gtorch_cpu_cast (dtype, input->dtype);
      if (input->numel != 1)
        buffered = TRUE;
    }

  if (contiguous)
    {
      iter.n_operands = op.n_operands;
      iter.n_dims = 1;
      iter.numel = iter.shape[0] = output->numel;
      for (k = 0; k < op.n_operands; k++)
        {
          iter.data[k] = gtorch_impl_data (operands[k]);
          iter.strides[0][k] = k > 0 && operands[k]->numel == 1 && output->numel != 1
                                   ? 0
                                   : gtorch_dtype_size (operands[k]->dtype);
        }
    }
  else
    gtorch_iter_init (&iter, operands, op.n_operands, output->shape, output->n_dims);

  /* a single number is converted once */
  for (k = 1; k < op.n_operands; k++)
    if (op.casts[k] != NULL && operands[k]->numel == 1)
      {
        op.casts[k](scalars[k], 16, iter.data[k], 16, 1);
        iter.data[k] = scalars[k];
        if (iter.n_dims == 1 && output->numel == 1)
          iter.strides[0][k] = op.sizes[k];
        op.casts[k] = NULL;
      }

  gtorch_iter_run (&iter, GTORCH_CPU_GRAIN, buffered ? run_buffered : run_direct, &op);
  return TRUE;
}
