/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Searching in sorted sequences, counting, and finding unique values. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "dispatch/gtorch-run-private.h"
#include "gtorch-ops-private.h"

gboolean
gtorch_shape_searchsorted (GTorchOpCall *call, GError **error)
{
  GTorchImpl *sequence = call->inputs[0], *self = call->inputs[1];

  if (!gtorch_call_check_dtype (call, sequence->dtype, error)
      || !gtorch_call_check_dtype (call, self->dtype, error))
    return FALSE;
  if (sequence->n_dims != 1
      && (sequence->n_dims == 0 || sequence->n_dims != self->n_dims
          || memcmp (sequence->shape, self->shape, (self->n_dims - 1) * sizeof (gint64)) != 0))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("sorted_sequence of shape %s must have one dimension, or differ from "
                            "self of shape %s in the last one only"),
                         gtorch_impl_shape_str (sequence), gtorch_impl_shape_str (self));
      return FALSE;
    }
  return gtorch_call_set_output (call, 0, GTORCH_DTYPE_INT64, self->shape, self->n_dims, error);
}

/* Returns the elements of a sequence in the order that indices of the same shape say. */
static GTorchImpl *
put_in_order (GTorchImpl *sequence, GTorchImpl *sorter, GError **error)
{
  if (sorter->dtype == GTORCH_DTYPE_INT64 && gtorch_impl_same_shape (sequence, sorter))
    return gtorch_op_take_along_dim (sequence, sorter, -1, error);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("searchsorted: sorter of shape %s and dtype %s must be of int64 and of the shape "
                  "of sorted_sequence, %s"),
               gtorch_impl_shape_str (sorter), gtorch_dtype_get_name (sorter->dtype),
               gtorch_impl_shape_str (sequence));
  return NULL;
}

GTorchImpl *
gtorch_op_searchsorted (GTorchImpl *sorted_sequence, GTorchImpl *self, gboolean right,
                        gboolean out_int32, GTorchImpl *sorter, GError **error)
{
  g_autoptr (GTorchImpl) sequence = NULL;
  g_autoptr (GTorchImpl) places = NULL;
  const guint n = sorted_sequence->n_dims;

  if (out_int32 && n > 0 && sorted_sequence->shape[n - 1] > G_MAXINT32)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("searchsorted: int32 has no positions in a sequence of %" PRId64),
                   sorted_sequence->shape[n - 1]);
      return NULL;
    }
  sequence = sorter != NULL ? put_in_order (sorted_sequence, sorter, error)
                            : gtorch_impl_ref (sorted_sequence);
  places = sequence != NULL ? gtorch_op_search_places (sequence, self, right, error) : NULL;
  if (places == NULL || !out_int32)
    return g_steal_pointer (&places);
  return gtorch_op_to_dtype (places, GTORCH_DTYPE_INT32, error);
}

GTorchImpl *
gtorch_op_bucketize (GTorchImpl *self, GTorchImpl *boundaries, gboolean right, gboolean out_int32,
                     GError **error)
{
  if (boundaries->n_dims == 1)
    return gtorch_op_searchsorted (boundaries, self, right, out_int32, NULL, error);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("bucketize: boundaries of shape %s must have one dimension"),
               gtorch_impl_shape_str (boundaries));
  return NULL;
}

/* --- counting --- */

gboolean
gtorch_shape_bincount (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0], *weights = call->inputs[1];
  gint64 n = call->attrs[0].i, bounds[2];
  guint dtype;

  if (gtorch_dtype_kind (self->dtype) != GTORCH_KIND_INT)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_DTYPE, _ ("not defined for dtype %s"),
                         gtorch_dtype_get_name (self->dtype));
      return FALSE;
    }
  if (self->n_dims != 1 || n < 0)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("values of one dimension and a minlength of at least 0 are needed, not "
                            "shape %s and %" PRId64),
                         gtorch_impl_shape_str (self), n);
      return FALSE;
    }
  if (weights != NULL
      && (!gtorch_impl_same_shape (self, weights)
          || gtorch_dtype_kind (weights->dtype) == GTORCH_KIND_COMPLEX))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("weights of shape %s and dtype %s do not fit values of shape %s"),
                         gtorch_impl_shape_str (weights), gtorch_dtype_get_name (weights->dtype),
                         gtorch_impl_shape_str (self));
      return FALSE;
    }
  if (!gtorch_call_query (call, bounds, error))
    return FALSE;
  if (bounds[1] < 0)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INDEX, _ ("the value %" PRId64 " is negative"),
                         bounds[1]);
      return FALSE;
    }
  n = MAX (n, bounds[0]);
  dtype = weights == NULL                          ? GTORCH_DTYPE_INT64
          : weights->dtype == GTORCH_DTYPE_FLOAT32 ? GTORCH_DTYPE_FLOAT32
                                                   : GTORCH_DTYPE_FLOAT64;
  return gtorch_shape_check (call->op->name, &n, 1, dtype, error)
         && gtorch_call_set_output (call, 0, dtype, &n, 1, error);
}

/* --- unique values --- */

gboolean
gtorch_shape_unique (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  gint64 n = 0;

  if (!gtorch_call_check_dtype (call, self->dtype, error) || !gtorch_call_query (call, &n, error))
    return FALSE;
  if (call->outputs[0] != NULL) /* the device has found the values, too */
    return TRUE;
  return gtorch_call_set_output (call, 0, self->dtype, &n, 1, error)
         && gtorch_call_set_output (call, 1, GTORCH_DTYPE_INT64, self->shape, self->n_dims, error)
         && gtorch_call_set_output (call, 2, GTORCH_DTYPE_INT64, &n, 1, error);
}
