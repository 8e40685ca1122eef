/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <math.h>

#include "base/gtorch-error-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-formula-private.h"

static gboolean
shape_softmax (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *self = call->inputs[0];
  guint dtype, wanted = call->op->n_attrs > 1 ? call->attrs[1].i : GTORCH_DTYPE_NONE;
  guint dim;

  if (!gtorch_normalize_dim (call->op->name, call->attrs[0].i, self->n_dims, &dim, error))
    return FALSE;
  if (wanted != GTORCH_DTYPE_NONE)
    {
      call->compute = wanted;
      return gtorch_call_check_dtype (call, wanted, error)
             && gtorch_call_set_output (call, 0, wanted, self->shape, self->n_dims, error);
    }
  return gtorch_call_promote (call, 0, 1, &dtype, error)
         && gtorch_call_set_output (call, 0, dtype, self->shape, self->n_dims, error);
}

gboolean
gtorch_shape_softmax (GTorchOpCall *call, GError **error)
{
  return shape_softmax (call, error);
}

gboolean
gtorch_shape_log_softmax (GTorchOpCall *call, GError **error)
{
  return shape_softmax (call, error);
}

gboolean
gtorch_shape_softmax_backward (GTorchOpCall *call, GError **error)
{
  return shape_softmax (call, error);
}

gboolean
gtorch_shape_log_softmax_backward (GTorchOpCall *call, GError **error)
{
  return shape_softmax (call, error);
}

gboolean
gtorch_shape_logsumexp (GTorchOpCall *call, GError **error)
{
  return gtorch_shape_reduce (call, error);
}

/* Returns the greatest real parts, which are taken out of the sums, or 0 where they are not finite. */
static GTorchImpl *
greatest_parts (GTorchFormula *f, GTorchImpl *self, const gint64 *dim, gsize n_dim)
{
  GTorchImpl *greatest, *is_finite, *zero = gtorch_formula_number (f, 0);

  greatest = gtorch_formula_keep (f, gtorch_impl_alias (self));
  greatest = GTORCH_FORMULA_OP (f, real, greatest);
  greatest = GTORCH_FORMULA_OP (f, amax, greatest, dim, n_dim, TRUE);
  is_finite = GTORCH_FORMULA_OP (f, isfinite, greatest);
  return GTORCH_FORMULA_OP (f, where, is_finite, greatest, zero);
}

static GTorchImpl *
complex_logsumexp (GTorchImpl *self, const gint64 *dim, gsize n_dim, gboolean keepdim,
                   GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *greatest, *sum = self;

  if (self->numel > 0)
    {
      greatest = greatest_parts (&f, self, dim, n_dim);
      sum = GTORCH_FORMULA_OP (&f, sub, self, greatest, 1);
      sum = GTORCH_FORMULA_OP (&f, exp, sum);
    }
  else /* the logarithm of 0, which has no derivative */
    greatest = gtorch_formula_number (&f, -INFINITY);
  sum = GTORCH_FORMULA_OP (&f, sum, sum, dim, n_dim, keepdim, GTORCH_DTYPE_NONE);
  if (self->numel > 0)
    {
      sum = GTORCH_FORMULA_OP (&f, log, sum);
      if (!f.failed)
        greatest = GTORCH_FORMULA_OP (&f, reshape, greatest, sum->shape, sum->n_dims);
    }
  return gtorch_formula_take (&f, GTORCH_FORMULA_OP (&f, add, sum, greatest, 1));
}

GTorchImpl *
gtorch_op_logsumexp (GTorchImpl *self, const gint64 *dim, gsize n_dim, gboolean keepdim,
                     GError **error)
{
  GTorchImpl *result = gtorch_dtype_kind (self->dtype) == GTORCH_KIND_COMPLEX
                           ? complex_logsumexp (self, dim, n_dim, keepdim, error)
                           : gtorch_op_real_logsumexp (self, dim, n_dim, keepdim, error);

  if (result == NULL)
    gtorch_error_set_op (error, "logsumexp");
  return result;
}
