/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Attention, softmax (q k' scale + mask) v, computed for blocks of rows of q. The matrix of weights has
 * an element for each pair of a row of q and a row of k; only a block of its rows is in memory at a
 * time. The backward pass computes the weights again. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>
#include <string.h>

#include "cpu/ops/gtorch-cpu-gemm.h"
#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-pack.h"
#include "cpu/ops/gtorch-cpu-rows.h"
#include "dispatch/gtorch-attention-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"
#include "device/gtorch-scratch-private.h"

#define MAX_ROWS  64        /* rows of q per block */
#define MAX_BLOCK (1 << 18) /* weights per block, unless a single row is longer */

gboolean
gtorch_cpu_query_attention (GTorchOpCall *call, gint64 *answers, GError **error)
{
  answers[GTORCH_ATTENTION_FITS] = call->attrs[2].d == 0;
  answers[GTORCH_ATTENTION_BIAS] = GTORCH_DTYPE_NONE;
  return TRUE;
}

/* Fails if dropout is wanted: scaled_dot_product_attention () composes it of other operations on the CPU. */
static gboolean
drops_nothing (GTorchOpCall *call, GError **error)
{
  if (call->attrs[2].d == 0)
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_NOT_SUPPORTED,
                     _ ("dropout_p is %g, it must be 0 on the CPU"), call->attrs[2].d);
  return FALSE;
}

typedef struct
{
  guint dtype; /* float32 or float64 */
  gsize size;
  gint64 batch, rows, columns, depth, width; /* rows, columns, depth, width: L, S, E, Ev */
  gint64 group;                              /* batches of q that share a batch of k and v */
  gboolean is_causal;
  gdouble scale;
  const char *q, *k, *v, *upper;
  char *output, *stats, *grad_q, *grad_k, *grad_v;
  gint64 block, n_blocks; /* rows per block */
  gint failed;            /* atomic */

  const char *mask; /* bool, or of dtype; or NULL */
  gboolean mask_is_bool;
  guint n_batch_dims;
  const gint64 *batch_shape;
  gint64 mask_batch[GTORCH_MAX_DIMS], mask_row, mask_column; /* strides in elements */
} Attention;

typedef struct
{
  GTorchImpl *packed[7], *outputs[3];
} Operands;

static void
operands_clear (Operands *operands)
{
  gtorch_impl_clear (operands->packed, G_N_ELEMENTS (operands->packed));
  gtorch_impl_clear (operands->outputs, G_N_ELEMENTS (operands->outputs));
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Operands, operands_clear)

static void
attention_init (Attention *a, GTorchOpCall *call, guint first)
{
  const GTorchImpl *q = call->inputs[first], *k = call->inputs[first + 1];
  guint n = q->n_dims, i;

  memset (a, 0, sizeof *a);
  a->dtype = gtorch_dtype_infos[call->compute].compute;
  a->size = gtorch_dtype_size (a->dtype);
  a->n_batch_dims = n - 2;
  a->batch_shape = q->shape;
  a->batch = 1;
  for (i = 0; i + 2 < n; i++)
    a->batch *= q->shape[i];
  a->group = n > 2 && k->shape[n - 3] > 0 ? q->shape[n - 3] / k->shape[n - 3] : 1;
  a->rows = q->shape[n - 2];
  a->depth = q->shape[n - 1];
  a->columns = k->shape[n - 2];
  a->width = call->inputs[first + 2]->shape[n - 1];
  a->is_causal = call->attrs[0].i;
  a->scale = call->attrs[1].d;
  a->block = CLAMP (MAX_BLOCK / MAX (a->columns, 1), 1, MAX_ROWS);
  a->n_blocks = (a->rows + a->block - 1) / a->block;
}

/* Packs the first n inputs except those that are NULL, prepares the outputs, and takes the strides of
 * the mask, which is input number `mask`. */
static gboolean
pack (Attention *a, Operands *operands, GTorchOpCall *call, guint n, guint mask, GError **error)
{
  guint i, j;

  for (i = 0; i < n; i++)
    {
      GTorchImpl *input = call->inputs[i];
      guint dtype = a->dtype;

      if (input == NULL)
        continue;
      if (i == mask && input->dtype == GTORCH_DTYPE_BOOL)
        dtype = GTORCH_DTYPE_BOOL;
      operands->packed[i] = gtorch_cpu_pack (input, dtype, error);
      if (operands->packed[i] == NULL)
        return FALSE;
    }
  for (i = 0; i < call->n_outputs; i++)
    {
      guint dtype =
          call->op->id == GTORCH_OP_ATTENTION && i == 1 ? call->outputs[1]->dtype : a->dtype;

      operands->outputs[i] = gtorch_cpu_pack_output (call->outputs[i], dtype, error);
      if (operands->outputs[i] == NULL)
        return FALSE;
    }
  if (operands->packed[mask] != NULL)
    {
      const GTorchImpl *m = operands->packed[mask];
      guint full = a->n_batch_dims + 2;

      a->mask = gtorch_impl_data (m);
      a->mask_is_bool = m->dtype == GTORCH_DTYPE_BOOL;
      for (i = 0; i < m->n_dims; i++)
        {
          gint64 stride = m->shape[i] == 1 ? 0 : m->strides[i];

          j = full - m->n_dims + i;
          if (j == full - 1)
            a->mask_column = stride;
          else if (j == full - 2)
            a->mask_row = stride;
          else
            a->mask_batch[j] = stride;
        }
    }
  return TRUE;
}

/* Applies the mask to n products and returns the position of the greatest, -1 if all are masked. */
#define MASK_ROW(T)                                                                                 \
  static gint64 mask_row_##T (T *x, gint64 n, const Attention *a, gint64 offset)                    \
  {                                                                                                 \
    gint64 j, best = -1;                                                                            \
    T max = -INFINITY;                                                                              \
                                                                                                    \
    if (a->mask != NULL && a->mask_is_bool)                                                         \
      {                                                                                             \
        const guint8 *mask = (const guint8 *) a->mask + offset;                                     \
                                                                                                    \
        for (j = 0; j < n; j++)                                                                     \
          x[j] = mask[j * a->mask_column] ? x[j] : -INFINITY;                                       \
      }                                                                                             \
    else if (a->mask != NULL)                                                                       \
      {                                                                                             \
        const T *mask = (const T *) a->mask + offset;                                               \
                                                                                                    \
        for (j = 0; j < n; j++)                                                                     \
          x[j] += mask[j * a->mask_column];                                                         \
      }                                                                                             \
    for (j = 0; j < n; j++)                                                                         \
      if (!(x[j] <= max))                                                                           \
        {                                                                                           \
          max = x[j];                                                                               \
          best = j;                                                                                 \
        }                                                                                           \
    return best;                                                                                    \
  }                                                                                                 \
                                                                                                    \
  /* Turns the products of one row into weights in place; the elements from n to `all` become 0. */ \
  static void weigh_row_##T (T *x, gint64 n, gint64 all, const Attention *a, gint64 offset,         \
                             T *stat)                                                               \
  {                                                                                                 \
    gint64 best = mask_row_##T (x, n, a, offset);                                                   \
    T max = best >= 0 ? x[best] : (T) -INFINITY;                                                    \
                                                                                                    \
    if (best < 0)                                                                                   \
      n = 0;                                                                                        \
    if (n > 0)                                                                                      \
      GTORCH_ROWS_CALL (a->dtype, softmax_rows, (gconstpointer) x, (gpointer) x, 1, n, FALSE);      \
    memset (x + n, 0, (all - n) * sizeof (T));                                                      \
    if (stat != NULL)                                                                               \
      *stat = best >= 0 ? max - log (x[best]) : (T) -INFINITY;                                      \
  }

MASK_ROW (float)
MASK_ROW (double)

/* Computes the weights of n_rows rows into x, row after row, and returns the number of columns: with a
 * causal mask, columns that no row can see are left out. */
static gint64
weigh (const Attention *a, gint64 b, gint64 first, gint64 n_rows, char *x)
{
  gint64 columns = a->is_causal ? MIN (a->columns, first + n_rows) : a->columns;
  gint64 offset = 0, rest = b, i;
  GTorchGemm g = {
    .m = n_rows,
    .n = columns,
    .k = a->depth,
    .a = a->q + (b * a->rows + first) * a->depth * (gint64) a->size,
    .a_row = a->depth,
    .a_col = 1,
    .b = a->k + b / a->group * a->columns * a->depth * (gint64) a->size,
    .b_row = 1,
    .b_col = a->depth,
    .c = x,
    .ldc = columns,
    .alpha = a->scale,
  };

  if (columns == 0)
    return 0;
  if (a->depth > 0)
    gtorch_cpu_gemm (a->dtype, &g);
  else
    memset (x, 0, n_rows * columns * a->size);
  for (i = (gint64) a->n_batch_dims - 1; i >= 0; i--)
    {
      offset += rest % a->batch_shape[i] * a->mask_batch[i];
      rest /= a->batch_shape[i];
    }
  for (i = 0; i < n_rows; i++)
    {
      gint64 row = first + i, n = a->is_causal ? MIN (columns, row + 1) : columns;
      gint64 at = offset + row * a->mask_row;
      char *stat = a->stats != NULL ? a->stats + (b * a->rows + row) * (gint64) a->size : NULL;

      if (a->dtype == GTORCH_DTYPE_FLOAT32)
        weigh_row_float ((float *) x + i * columns, n, columns, a, at, (float *) stat);
      else
        weigh_row_double ((double *) x + i * columns, n, columns, a, at, (double *) stat);
    }
  return columns;
}

static void
forward_blocks (gint64 begin, gint64 end, gpointer user_data)
{
  Attention *a = user_data;
  char *x = gtorch_scratch_new (a->block * a->columns, a->size, NULL);

  if (x == NULL)
    g_atomic_int_set (&a->failed, TRUE);
  for (; x != NULL && begin < end; begin++)
    {
      gint64 b = begin / a->n_blocks, first = begin % a->n_blocks * a->block;
      gint64 n_rows = MIN (a->block, a->rows - first);
      gint64 columns = weigh (a, b, first, n_rows, x);
      char *output = a->output + (b * a->rows + first) * a->width * (gint64) a->size;
      GTorchGemm g = {
        .m = n_rows,
        .n = a->width,
        .k = columns,
        .a = x,
        .a_row = columns,
        .a_col = 1,
        .b = a->v + b / a->group * a->columns * a->width * (gint64) a->size,
        .b_row = a->width,
        .b_col = 1,
        .c = output,
        .ldc = a->width,
        .alpha = 1,
      };

      if (columns > 0)
        gtorch_cpu_gemm (a->dtype, &g);
      else
        {
          gint64 i, at = b * a->rows + first;

          memset (output, 0, n_rows * a->width * a->size);
          for (i = 0; i < n_rows; i++)
            if (a->dtype == GTORCH_DTYPE_FLOAT32)
              ((float *) a->stats)[at + i] = -INFINITY;
            else
              ((double *) a->stats)[at + i] = -INFINITY;
        }
    }
  g_free (x);
}

static gboolean
finish (const Attention *a, Operands *operands, GTorchOpCall *call, GError **error)
{
  guint i;

  if (a->failed)
    {
      gtorch_scratch_set_error (a->block * a->columns, a->size, error);
      return FALSE;
    }
  for (i = 0; i < call->n_outputs; i++)
    gtorch_cpu_unpack (operands->outputs[i], call->outputs[i]);
  return TRUE;
}

gboolean
gtorch_cpu_attention (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  g_auto (Operands) operands = { { NULL } };
  Attention a;

  attention_init (&a, call, 0);
  if (!drops_nothing (call, error) || !pack (&a, &operands, call, 4, 3, error))
    return FALSE;
  a.q = gtorch_impl_data (operands.packed[0]);
  a.k = gtorch_impl_data (operands.packed[1]);
  a.v = gtorch_impl_data (operands.packed[2]);
  a.output = gtorch_impl_data (operands.outputs[0]);
  a.stats = gtorch_impl_data (operands.outputs[1]);
  gtorch_parallel_for (a.batch * a.n_blocks, 1, forward_blocks, &a);
  return finish (&a, &operands, call, error);
}

/* Computes the gradient of q for one block of rows and adds the block's part to the gradients of k and v. */
static void
backward_block (const Attention *a, gint64 b, gint64 first, char *x, char *y)
{
  gint64 n_rows = MIN (a->block, a->rows - first), columns = weigh (a, b, first, n_rows, x);
  gint64 k_at = b / a->group * a->columns * a->depth * (gint64) a->size;
  gint64 v_at = b / a->group * a->columns * a->width * (gint64) a->size;
  const char *q = a->q + (b * a->rows + first) * a->depth * (gint64) a->size;
  const char *upper = a->upper + (b * a->rows + first) * a->width * (gint64) a->size;
  char *grad_q = a->grad_q + (b * a->rows + first) * a->depth * (gint64) a->size;
  /* clang-format off */
  GTorchGemm of_value = { columns, a->width, n_rows, x, 1, columns, upper, a->width, 1,
                          a->grad_v + v_at, a->width, 1, 1 };
  GTorchGemm of_weights = { n_rows, columns, a->width, upper, a->width, 1, a->v + v_at, 1, a->width,
                            y, columns, 1, 0 };
  GTorchGemm of_query = { n_rows, a->depth, columns, y, columns, 1, a->k + k_at, a->depth, 1,
                          grad_q, a->depth, a->scale, 0 };
  GTorchGemm of_key = { columns, a->depth, n_rows, y, 1, columns, q, a->depth, 1,
                        a->grad_k + k_at, a->depth, a->scale, 1 };
  /* clang-format on */

  if (columns == 0)
    {
      memset (grad_q, 0, n_rows * a->depth * a->size);
      return;
    }
  gtorch_cpu_gemm (a->dtype, &of_value);
  if (a->width > 0)
    gtorch_cpu_gemm (a->dtype, &of_weights);
  else
    memset (y, 0, n_rows * columns * a->size);
  GTORCH_ROWS_CALL (a->dtype, softmax_grad_rows, (gconstpointer) y, (gconstpointer) x, (gpointer) y,
                    n_rows, columns, FALSE);
  gtorch_cpu_gemm (a->dtype, &of_query);
  gtorch_cpu_gemm (a->dtype, &of_key);
}

static void
backward_batches (gint64 begin, gint64 end, gpointer user_data)
{
  Attention *a = user_data;
  char *x = gtorch_scratch_new (a->block * a->columns, a->size, NULL);
  char *y = gtorch_scratch_new (a->block * a->columns, a->size, NULL);

  if (x == NULL || y == NULL)
    {
      g_atomic_int_set (&a->failed, TRUE);
      end = begin;
    }
  for (; begin < end; begin++)
    {
      gsize of_key = a->columns * a->depth * a->size, of_value = a->columns * a->width * a->size;
      gint64 b, first;

      if (of_key > 0) /* the pointer is NULL if there are no elements */
        memset (a->grad_k + begin * (gint64) of_key, 0, of_key);
      if (of_value > 0)
        memset (a->grad_v + begin * (gint64) of_value, 0, of_value);
      for (b = begin * a->group; b < (begin + 1) * a->group; b++)
        for (first = 0; first < a->rows; first += a->block)
          backward_block (a, b, first, x, y);
    }
  g_free (x);
  g_free (y);
}

gboolean
gtorch_cpu_attention_backward (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  g_auto (Operands) operands = { { NULL } };
  Attention a;

  attention_init (&a, call, 1);
  if (!drops_nothing (call, error) || !pack (&a, &operands, call, 7, 6, error))
    return FALSE;
  a.upper = gtorch_impl_data (operands.packed[0]);
  a.q = gtorch_impl_data (operands.packed[1]);
  a.k = gtorch_impl_data (operands.packed[2]);
  a.v = gtorch_impl_data (operands.packed[3]);
  a.grad_q = gtorch_impl_data (operands.outputs[0]);
  a.grad_k = gtorch_impl_data (operands.outputs[1]);
  a.grad_v = gtorch_impl_data (operands.outputs[2]);
  gtorch_parallel_for (a.batch / a.group, 1, backward_batches, &a);
  return finish (&a, &operands, call, error);
}
