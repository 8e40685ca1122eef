/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "dispatch/gtorch-run-private.h"
#include "gtorch-ops-private.h"

static gboolean
is_mask (const GTorchImpl *mask)
{
  return mask->dtype == GTORCH_DTYPE_BOOL || mask->dtype == GTORCH_DTYPE_UINT8;
}

static void
not_a_mask (const gchar *op, const GTorchImpl *mask, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE, _ ("%s: the mask must be bool, it is %s"),
               op, gtorch_dtype_get_name (mask->dtype));
}

gboolean
gtorch_shape_masked_fill (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0], *mask = call->inputs[1], *value = call->inputs[2];
  gint64 shape[GTORCH_MAX_DIMS];
  guint n_dims;

  if (!is_mask (mask))
    {
      not_a_mask (call->op->name, mask, error);
      return FALSE;
    }
  if (!gtorch_call_check_scalar (call, 2, self->dtype, error))
    return FALSE;
  if (value->n_dims > 0)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("the value of shape %s must have no dimensions"),
                         gtorch_impl_shape_str (value));
      return FALSE;
    }
  if (gtorch_dtype_kind (value->dtype) > gtorch_dtype_kind (self->dtype)
      && gtorch_dtype_kind (self->dtype) != GTORCH_KIND_BOOL)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_DTYPE,
                         _ ("a value of %s cannot be written to a tensor of %s"),
                         gtorch_dtype_get_name (value->dtype), gtorch_dtype_get_name (self->dtype));
      return FALSE;
    }
  return gtorch_broadcast_shapes (call->op->name, self->shape, self->n_dims, mask->shape,
                                  mask->n_dims, shape, &n_dims, error)
         && gtorch_shape_check (call->op->name, shape, n_dims, self->dtype, error)
         && gtorch_call_set_output (call, 0, self->dtype, shape, n_dims, error);
}

/* --- nonzero --- */

gboolean
gtorch_shape_nonzero (GTorchOpCall *call, GError **error)
{
  gint64 shape[2] = { 0, call->inputs[0]->n_dims };

  return gtorch_call_query (call, &shape[0], error)
         && gtorch_shape_check (call->op->name, shape, 2, GTORCH_DTYPE_INT64, error)
         && gtorch_call_set_output (call, 0, GTORCH_DTYPE_INT64, shape, 2, error);
}

/* Returns the flat positions at which mask, broadcast to shape, is true. */
static GTorchImpl *
positions (GTorchImpl *mask, const gint64 *shape, guint n_dims, GError **error)
{
  g_autoptr (GTorchImpl) whole = gtorch_op_expand (mask, shape, n_dims, error);
  g_autoptr (GTorchImpl) row =
      whole != NULL ? gtorch_op_reshape (whole, (const gint64[]){ -1 }, 1, error) : NULL;
  g_autoptr (GTorchImpl) found = row != NULL ? gtorch_op_nonzero (row, error) : NULL;

  return found != NULL ? gtorch_op_select (found, 1, 0, error) : NULL;
}

GTorchImpl *
gtorch_op_masked_select (GTorchImpl *self, GTorchImpl *mask, GError **error)
{
  g_autoptr (GTorchImpl) whole = NULL;
  g_autoptr (GTorchImpl) index = NULL;
  gint64 shape[GTORCH_MAX_DIMS];
  guint n_dims;

  if (!is_mask (mask))
    {
      not_a_mask ("masked_select", mask, error);
      return NULL;
    }
  if (!gtorch_broadcast_shapes ("masked_select", self->shape, self->n_dims, mask->shape,
                                mask->n_dims, shape, &n_dims, error))
    return NULL;
  whole = gtorch_op_expand (self, shape, n_dims, error);
  if (whole == NULL)
    return NULL;
  if (whole->numel == 0)
    return gtorch_op_reshape (whole, (const gint64[]){ 0 }, 1, error);
  index = positions (mask, shape, n_dims, error);
  return index != NULL ? gtorch_op_take (whole, index, error) : NULL;
}

GTorchImpl *
gtorch_op_masked_scatter (GTorchImpl *self, GTorchImpl *mask, GTorchImpl *source, GError **error)
{
  g_autoptr (GTorchImpl) whole = NULL;
  g_autoptr (GTorchImpl) index = NULL;
  g_autoptr (GTorchImpl) row = NULL;
  g_autoptr (GTorchImpl) used = NULL;
  gint64 shape[GTORCH_MAX_DIMS];
  guint n_dims;

  if (!is_mask (mask))
    {
      not_a_mask ("masked_scatter", mask, error);
      return NULL;
    }
  if (!gtorch_broadcast_shapes ("masked_scatter", self->shape, self->n_dims, mask->shape,
                                mask->n_dims, shape, &n_dims, error))
    return NULL;
  whole = gtorch_op_expand (self, shape, n_dims, error);
  if (whole == NULL)
    return NULL;
  if (whole->numel == 0)
    return gtorch_op_clone (whole, error);
  index = positions (mask, shape, n_dims, error);
  if (index == NULL)
    return NULL;
  row = gtorch_op_reshape (source, (const gint64[]){ -1 }, 1, error);
  if (row == NULL)
    return NULL;
  if (row->numel < index->numel)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("masked_scatter: source of shape %s has fewer than the %" PRId64
                      " elements that the mask asks for"),
                   gtorch_impl_shape_str (source), index->numel);
      return NULL;
    }
  used = gtorch_op_slice (row, 0, 0, index->numel, 1, error);
  return used != NULL ? gtorch_op_put (whole, index, used, FALSE, error) : NULL;
}
