/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Random numbers. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>

#include "gtorch-ops-private.h"

static gboolean
check_dtype (GTorchOpCall *call, gint64 dtype, GError **error)
{
  if (dtype > 0 && dtype < GTORCH_N_DTYPES)
    return gtorch_call_check_dtype (call, dtype, error);
  gtorch_call_error (call, error, GTORCH_ERROR_DTYPE, _ ("%d is not a dtype"), (gint) dtype);
  return FALSE;
}

static gboolean
new_output (GTorchOpCall *call, gint64 dtype, const gint64 *shape, gsize n_dims, GError **error)
{
  return check_dtype (call, dtype, error)
         && gtorch_shape_check (call->op->name, shape, n_dims, dtype, error)
         && gtorch_call_set_output (call, 0, dtype, shape, n_dims, error);
}

static gboolean
like_self (GTorchOpCall *call, GError **error)
{
  return new_output (call, call->inputs[0]->dtype, call->inputs[0]->shape, call->inputs[0]->n_dims,
                     error);
}

gboolean
gtorch_shape_random_factory (GTorchOpCall *call, GError **error)
{
  gint64 dtype = call->attrs[1].i;

  return new_output (call, dtype != GTORCH_DTYPE_NONE ? dtype : gtorch_get_default_dtype (),
                     call->attrs[0].list.data, call->attrs[0].list.n, error);
}

gboolean
gtorch_shape_random_like (GTorchOpCall *call, GError **error)
{
  gint64 dtype = call->attrs[0].i;

  return new_output (call, dtype != GTORCH_DTYPE_NONE ? dtype : call->inputs[0]->dtype,
                     call->inputs[0]->shape, call->inputs[0]->n_dims, error);
}

/* Checks that [low, high) is not empty and that the dtype can represent all integers in it. */
static gboolean
check_range (GTorchOpCall *call, gint64 dtype, GError **error)
{
  gint64 low = call->attrs[0].i, high = call->attrs[1].i, exact;
  const GTorchDTypeInfo *info;

  if (!check_dtype (call, dtype, error))
    return FALSE;
  if (low >= high)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                         _ ("there is no integer from %" PRId64 " on and below %" PRId64), low,
                         high);
      return FALSE;
    }
  info = &gtorch_dtype_infos[dtype];
  exact = info->kind == GTORCH_KIND_FLOAT ? (gint64) (2 / info->eps) : 0;
  if ((exact != 0 && (low < -exact || high - 1 > exact))
      || (info->kind == GTORCH_KIND_BOOL && (low < 0 || high > 2))
      || (info->kind == GTORCH_KIND_INT && info->size < 8
          && ((gdouble) low < info->min || (gdouble) (high - 1) > info->max)))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                         _ ("dtype %s cannot represent all integers from %" PRId64
                            " on and below %" PRId64),
                         info->name, low, high);
      return FALSE;
    }
  return TRUE;
}

gboolean
gtorch_shape_randint (GTorchOpCall *call, GError **error)
{
  gint64 dtype = call->attrs[3].i != GTORCH_DTYPE_NONE ? call->attrs[3].i : GTORCH_DTYPE_INT64;

  return check_range (call, dtype, error)
         && new_output (call, dtype, call->attrs[2].list.data, call->attrs[2].list.n, error);
}

gboolean
gtorch_shape_randint_like (GTorchOpCall *call, GError **error)
{
  gint64 dtype = call->attrs[2].i != GTORCH_DTYPE_NONE ? call->attrs[2].i : call->inputs[0]->dtype;

  return check_range (call, dtype, error)
         && new_output (call, dtype, call->inputs[0]->shape, call->inputs[0]->n_dims, error);
}

gboolean
gtorch_shape_random (GTorchOpCall *call, GError **error)
{
  return check_range (call, call->inputs[0]->dtype, error) && like_self (call, error);
}

gboolean
gtorch_shape_uniform (GTorchOpCall *call, GError **error)
{
  gdouble low = call->attrs[0].d, high = call->attrs[1].d;
  const GTorchDTypeInfo *info = &gtorch_dtype_infos[call->inputs[0]->dtype];

  if (!check_dtype (call, call->inputs[0]->dtype, error))
    return FALSE;
  if (!(low <= high) || !isfinite (high - low))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                         _ ("the range from %g to %g is empty or not finite"), low, high);
      return FALSE;
    }
  if (low < info->min || high > info->max || high - low > info->max)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                         _ ("the range from %g to %g is beyond that of dtype %s"), low, high,
                         info->name);
      return FALSE;
    }
  return like_self (call, error);
}

gboolean
gtorch_shape_normal (GTorchOpCall *call, GError **error)
{
  return like_self (call, error);
}

gboolean
gtorch_shape_exponential (GTorchOpCall *call, GError **error)
{
  return like_self (call, error);
}

gboolean
gtorch_shape_bernoulli (GTorchOpCall *call, GError **error)
{
  return like_self (call, error);
}

gboolean
gtorch_shape_bernoulli_p (GTorchOpCall *call, GError **error)
{
  return like_self (call, error);
}
