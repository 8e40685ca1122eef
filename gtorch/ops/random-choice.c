/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Random choice among indices. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "gtorch-ops-private.h"

gboolean
gtorch_shape_randperm (GTorchOpCall *call, GError **error)
{
  gint64 n = call->attrs[0].i;
  gint64 dtype = call->attrs[1].i != GTORCH_DTYPE_NONE ? call->attrs[1].i : GTORCH_DTYPE_INT64;
  static const guint8 exact_bits[GTORCH_N_DTYPES] = {
    [GTORCH_DTYPE_FLOAT32] = 24, [GTORCH_DTYPE_FLOAT64] = 53, [GTORCH_DTYPE_FLOAT16] = 11,
    [GTORCH_DTYPE_BFLOAT16] = 8, [GTORCH_DTYPE_INT8] = 7,     [GTORCH_DTYPE_UINT8] = 8,
    [GTORCH_DTYPE_INT16] = 15,   [GTORCH_DTYPE_INT32] = 31,   [GTORCH_DTYPE_INT64] = 62,
  };

  if (n < 0)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                         _ ("n is %" PRId64 ", it must be at least 0"), n);
      return FALSE;
    }
  if (dtype < 0 || dtype >= GTORCH_N_DTYPES)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_DTYPE, _ ("%d is not a dtype"), (gint) dtype);
      return FALSE;
    }
  if (!gtorch_call_check_dtype (call, dtype, error)
      || !gtorch_shape_check (call->op->name, &n, 1, GTORCH_DTYPE_INT64, error))
    return FALSE;
  if (n > G_GINT64_CONSTANT (1) << exact_bits[dtype])
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                         _ ("dtype %s cannot represent all integers below %" PRId64),
                         gtorch_dtype_get_name (dtype), n);
      return FALSE;
    }
  return gtorch_call_set_output (call, 0, dtype, &n, 1, error);
}

gboolean
gtorch_shape_multinomial (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *self = call->inputs[0];
  gint64 n_samples = call->attrs[0].i, shape[2];
  gint64 n = self->n_dims > 0 ? self->shape[self->n_dims - 1] : 0;

  if (!gtorch_call_check_dtype (call, self->dtype, error))
    return FALSE;
  if (self->n_dims < 1 || self->n_dims > 2 || n == 0)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("shape %s is neither [n] nor [rows, n] with n > 0"),
                         gtorch_impl_shape_str (self));
      return FALSE;
    }
  if (n_samples < 1 || (!call->attrs[1].i && n_samples > n))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                         _ ("%" PRId64 " cannot be drawn from %" PRId64
                            ": at least 1 must be drawn, and without replacement not more than "
                            "there are"),
                         n_samples, n);
      return FALSE;
    }
  shape[0] = self->shape[0];
  shape[self->n_dims - 1] = n_samples;
  return gtorch_shape_check (call->op->name, shape, self->n_dims, GTORCH_DTYPE_INT64, error)
         && gtorch_call_set_output (call, 0, GTORCH_DTYPE_INT64, shape, self->n_dims, error);
}
