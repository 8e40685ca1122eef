/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* All matrix and vector products. Each operation treats its operands as batches of matrices. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

gboolean
gtorch_matmul_check_dims (GTorchOpCall *call, guint i, guint n_dims, GError **error)
{
  const GTorchImpl *input = call->inputs[i];

  if (input->n_dims == n_dims)
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                     _ ("%s must have %u dimensions, its shape is %s"), call->op->args[i].name,
                     n_dims, gtorch_impl_shape_str (input));
  return FALSE;
}

static gboolean
fail_inner (GTorchOpCall *call, const GTorchImpl *a, const GTorchImpl *b, gint64 first,
            gint64 second, GError **error)
{
  gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                     _ ("shapes %s and %s cannot be multiplied: %" PRId64 " columns meet %" PRId64
                        " rows"),
                     gtorch_impl_shape_str (a), gtorch_impl_shape_str (b), first, second);
  return FALSE;
}

gboolean
gtorch_matmul_check_dtypes (GTorchOpCall *call, GError **error)
{
  guint dtype = call->inputs[0]->dtype;
  guint i;

  for (i = 1; i < call->n_inputs; i++)
    if (call->inputs[i] != NULL && call->inputs[i]->dtype != dtype)
      {
        gtorch_call_error (call, error, GTORCH_ERROR_DTYPE,
                           _ ("%s has dtype %s and %s has %s: products need one dtype"),
                           call->op->args[0].name, gtorch_dtype_get_name (dtype),
                           call->op->args[i].name, gtorch_dtype_get_name (call->inputs[i]->dtype));
        return FALSE;
      }
  call->compute = dtype;
  return gtorch_call_check_dtype (call, dtype, error);
}

static gboolean
set_output (GTorchOpCall *call, const gint64 *shape, guint n_dims, GError **error)
{
  return gtorch_shape_check (call->op->name, shape, n_dims, call->compute, error)
         && gtorch_call_set_output (call, 0, call->compute, shape, n_dims, error);
}

/* Views a vector as a matrix of one row or one column. */
static GTorchImpl *
as_matrix (GTorchImpl *impl, gboolean column)
{
  gint64 shape[2] = { 1, 1 }, strides[2] = { 0, 0 };

  if (impl->n_dims >= 2)
    return gtorch_impl_ref (impl);
  if (impl->n_dims == 1)
    {
      shape[column ? 0 : 1] = impl->shape[0];
      strides[column ? 0 : 1] = impl->strides[0];
      strides[column ? 1 : 0] = MAX (1, impl->shape[0]);
    }
  return gtorch_impl_new_view (impl, impl->offset, shape, strides, 2);
}

/* Views the output as matrices by inserting the dimensions that vectors lack. */
static GTorchImpl *
result_as_matrix (GTorchImpl *output, gboolean row_vector, gboolean column_vector)
{
  gint64 shape[GTORCH_MAX_DIMS + 2], strides[GTORCH_MAX_DIMS + 2];
  guint n = output->n_dims;

  if (!row_vector && !column_vector)
    return gtorch_impl_ref (output);
  memcpy (shape, output->shape, n * sizeof (gint64));
  memcpy (strides, output->strides, n * sizeof (gint64));
  if (row_vector && !column_vector)
    {
      shape[n] = shape[n - 1];
      strides[n] = strides[n - 1];
      shape[n - 1] = 1;
      strides[n - 1] = MAX (1, shape[n]);
      n++;
    }
  else
    for (; n < output->n_dims + (row_vector ? 2 : 1); n++)
      shape[n] = strides[n] = 1;
  return gtorch_impl_new_view (output, output->offset, shape, strides, n);
}

void
gtorch_product_init (GTorchProduct *self, const GTorchOpCall *call)
{
  GTorchImpl *const *inputs = call->inputs;

  self->alpha = 1;
  self->beta = 0;
  if (call->op->id == GTORCH_OP_ADDMM || call->op->id == GTORCH_OP_BADDBMM)
    {
      inputs++;
      self->beta = call->attrs[0].d;
      self->alpha = call->attrs[1].d;
    }
  self->a = as_matrix (inputs[0], FALSE);
  self->b = as_matrix (inputs[1], TRUE);
  self->c = result_as_matrix (call->outputs[0], inputs[0]->n_dims == 1, inputs[1]->n_dims == 1);
  if (self->a->shape[self->a->n_dims - 1] == 0)
    self->alpha = 0; /* the sums are empty, so even a NaN must not be multiplied with them */
}

void
gtorch_product_clear (GTorchProduct *self)
{
  g_clear_pointer (&self->a, gtorch_impl_unref);
  g_clear_pointer (&self->b, gtorch_impl_unref);
  g_clear_pointer (&self->c, gtorch_impl_unref);
}

/* --- mm, bmm, mv, dot, matmul --- */

static gboolean
shape_matrices (GTorchOpCall *call, guint first, guint n_dims, GError **error)
{
  const GTorchImpl *a = call->inputs[first], *b = call->inputs[first + 1];
  gint64 shape[3];

  if (!gtorch_matmul_check_dims (call, first, n_dims, error)
      || !gtorch_matmul_check_dims (call, first + 1, n_dims, error)
      || !gtorch_matmul_check_dtypes (call, error))
    return FALSE;
  if (a->shape[n_dims - 1] != b->shape[n_dims - 2])
    return fail_inner (call, a, b, a->shape[n_dims - 1], b->shape[n_dims - 2], error);
  if (n_dims == 3 && a->shape[0] != b->shape[0])
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("shapes %s and %s have different batch sizes"),
                         gtorch_impl_shape_str (a), gtorch_impl_shape_str (b));
      return FALSE;
    }
  shape[0] = a->shape[0];
  shape[n_dims - 2] = a->shape[n_dims - 2];
  shape[n_dims - 1] = b->shape[n_dims - 1];
  return set_output (call, shape, n_dims, error);
}

gboolean
gtorch_shape_mm (GTorchOpCall *call, GError **error)
{
  return shape_matrices (call, 0, 2, error);
}

gboolean
gtorch_shape_bmm (GTorchOpCall *call, GError **error)
{
  return shape_matrices (call, 0, 3, error);
}

gboolean
gtorch_shape_mv (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *a = call->inputs[0], *b = call->inputs[1];

  if (!gtorch_matmul_check_dims (call, 0, 2, error) || !gtorch_matmul_check_dims (call, 1, 1, error)
      || !gtorch_matmul_check_dtypes (call, error))
    return FALSE;
  if (a->shape[1] != b->shape[0])
    return fail_inner (call, a, b, a->shape[1], b->shape[0], error);
  return set_output (call, a->shape, 1, error);
}

gboolean
gtorch_shape_dot (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *a = call->inputs[0], *b = call->inputs[1];

  if (!gtorch_matmul_check_dims (call, 0, 1, error) || !gtorch_matmul_check_dims (call, 1, 1, error)
      || !gtorch_matmul_check_dtypes (call, error))
    return FALSE;
  if (a->shape[0] != b->shape[0])
    return fail_inner (call, a, b, a->shape[0], b->shape[0], error);
  return set_output (call, NULL, 0, error);
}

gboolean
gtorch_shape_matmul (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *a = call->inputs[0], *b = call->inputs[1];
  gint64 shape[GTORCH_MAX_DIMS], rows;
  guint a_batches = a->n_dims > 2 ? a->n_dims - 2 : 0,
        b_batches = b->n_dims > 2 ? b->n_dims - 2 : 0;
  guint n;

  if (a->n_dims == 0 || b->n_dims == 0)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("shapes %s and %s: both need at least one dimension"),
                         gtorch_impl_shape_str (a), gtorch_impl_shape_str (b));
      return FALSE;
    }
  rows = b->shape[b->n_dims == 1 ? 0 : b->n_dims - 2];
  if (!gtorch_matmul_check_dtypes (call, error))
    return FALSE;
  if (a->shape[a->n_dims - 1] != rows)
    return fail_inner (call, a, b, a->shape[a->n_dims - 1], rows, error);
  if (!gtorch_broadcast_shapes (call->op->name, a->shape, a_batches, b->shape, b_batches, shape, &n,
                                error))
    return FALSE;
  if (a->n_dims >= 2)
    shape[n++] = a->shape[a->n_dims - 2];
  if (b->n_dims >= 2)
    shape[n++] = b->shape[b->n_dims - 1];
  return set_output (call, shape, n, error);
}

/* --- addmm, baddbmm --- */

static gboolean
shape_add (GTorchOpCall *call, guint n_dims, GError **error)
{
  const GTorchImpl *self = call->inputs[0];
  gint64 shape[GTORCH_MAX_DIMS];
  guint n;

  if (!shape_matrices (call, 1, n_dims, error))
    return FALSE;
  if (!gtorch_broadcast_shapes (call->op->name, self->shape, self->n_dims, call->outputs[0]->shape,
                                n_dims, shape, &n, error))
    return FALSE;
  if (gtorch_same_shape (shape, n, call->outputs[0]->shape, n_dims))
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                     _ ("shape %s cannot be expanded to the product's %s"),
                     gtorch_impl_shape_str (self), gtorch_impl_shape_str (call->outputs[0]));
  return FALSE;
}

gboolean
gtorch_shape_addmm (GTorchOpCall *call, GError **error)
{
  return shape_add (call, 2, error);
}

gboolean
gtorch_shape_baddbmm (GTorchOpCall *call, GError **error)
{
  return shape_add (call, 3, error);
}
