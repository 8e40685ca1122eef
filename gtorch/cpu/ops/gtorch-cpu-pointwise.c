/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Runs the loop of a pointwise operation over its operands. Operands whose dtype differs from the loop's
 * (16-bit floats, small integers, mixed inputs) go through small buffers, block by block, so operations
 * need neither loops for those dtypes nor temporary tensors. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "cpu/gtorch-cpu-cast.h"
#include "cpu/gtorch-cpu-iter.h"
#include "gtorch-ops-private.h"

#define BLOCK 512

typedef struct
{
  GTorchLoop loop;
  const GTorchAttr *attrs;
  guint n_operands;
  guint8 sizes[GTORCH_ITER_MAX_OPERANDS]; /* element sizes in the loop's dtype */
  GTorchCast
      /* converts inputs to the loop's dtype and the output from it; or NULL */
      casts[GTORCH_ITER_MAX_OPERANDS];
} Pointwise;

typedef struct
{
  gint64 size;
  GTorchCast load;
  gint *found;
} Search;

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

static void
find_zero (char *const *data, const gint64 *strides, gint64 n, gpointer user_data)
{
  const Search *search = user_data;
  gint64 i, k;

  for (i = 0; i < n; i++)
    {
      const char *at = data[0] + i * strides[0];
      guint8 bits = 0;

      for (k = 0; k < search->size; k++)
        bits |= at[k];
      if (bits == 0)
        {
          g_atomic_int_set (search->found, 1);
          return;
        }
    }
}

static void
find_improbable (char *const *data, const gint64 *strides, gint64 n, gpointer user_data)
{
  const Search *search = user_data;
  double values[BLOCK];
  gint64 i, m;
  gboolean good = TRUE;

  for (; n > 0; n -= m)
    {
      const char *at = data[0] + (n - MIN (n, BLOCK)) * strides[0];

      m = MIN (n, BLOCK);
      search->load ((char *) values, sizeof *values, at, strides[0], m);
      for (i = 0; i < m; i++)
        good &= values[i] >= 0 && values[i] <= 1;
    }
  if (!good)
    g_atomic_int_set (search->found, 1);
}

static gboolean
finds (GTorchImpl *input, GTorchIterFunc func)
{
  gint found = 0;
  Search search = { gtorch_dtype_size (input->dtype),
                    gtorch_cpu_cast (GTORCH_DTYPE_FLOAT64, input->dtype), &found };
  GTorchIter iter;

  if (input->numel == 0)
    return FALSE;
  gtorch_iter_init (&iter, &input, 1, input->shape, input->n_dims);
  gtorch_iter_run (&iter, GTORCH_CPU_GRAIN, func, &search);
  return found;
}

/* Checks values that the loops cannot handle: integer divisors of zero, probabilities outside [0, 1]. */
static gboolean
check_values (GTorchOpCall *call, GError **error)
{
  const gchar *problem = NULL;

  if ((call->op->flags & GTORCH_OP_FLAG_DIVIDES) != 0)
    {
      if (gtorch_dtype_kind (call->compute) == GTORCH_KIND_INT
          && finds (call->inputs[1], find_zero))
        problem = N_ ("integers cannot be divided by zero");
    }
  else if (finds (call->inputs[0], find_improbable))
    problem = N_ ("the probabilities must be between 0 and 1");
  else if (finds (call->inputs[1], find_improbable))
    problem = N_ ("the target must be between 0 and 1");
  if (G_LIKELY (problem == NULL))
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_INVALID, "%s", _ (problem));
  return FALSE;
}

gboolean
gtorch_cpu_pointwise (GTorchOpCall *call, GTorchQueue *queue, GError **error)
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
  if (G_UNLIKELY (call->op->flags & (GTORCH_OP_FLAG_DIVIDES | GTORCH_OP_FLAG_PROBABILITY))
      && !check_values (call, error))
    return FALSE;
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

  /* convert a single number only once */
  for (k = 1; k < op.n_operands; k++)
    if (op.casts[k] != NULL && operands[k]->numel == 1)
      {
        op.casts[k](scalars[k], 16, iter.data[k], 16, 1);
        iter.data[k] = scalars[k];
        if (iter.n_dims == 1 && output->numel == 1)
          iter.strides[0][k] = op.sizes[k];
        op.casts[k] = NULL;
      }

  iter.any_order = TRUE;
  gtorch_iter_run (&iter, GTORCH_CPU_GRAIN, buffered ? run_buffered : run_direct, &op);
  return TRUE;
}
