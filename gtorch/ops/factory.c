/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>

#include "base/gtorch-none.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

static gboolean
new_output (GTorchOpCall *call, gint64 dtype, const gint64 *shape, gsize n_dims, GError **error)
{
  if (dtype == GTORCH_DTYPE_NONE)
    dtype = gtorch_get_default_dtype ();
  if (dtype < 0 || dtype >= GTORCH_N_DTYPES)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_DTYPE, _ ("%d is not a dtype"), (gint) dtype);
      return FALSE;
    }
  return gtorch_call_check_dtype (call, dtype, error)
         && gtorch_shape_check (call->op->name, shape, n_dims, dtype, error)
         && gtorch_call_set_output (call, 0, dtype, shape, n_dims, error);
}

gboolean
gtorch_shape_factory (GTorchOpCall *call, GError **error)
{
  return new_output (call, call->attrs[1].i, call->attrs[0].list.data, call->attrs[0].list.n,
                     error);
}

static gboolean
like (GTorchOpCall *call, gint64 dtype, GError **error)
{
  GTorchImpl *self = call->inputs[0];

  return new_output (call, dtype != GTORCH_DTYPE_NONE ? dtype : self->dtype, self->shape,
                     self->n_dims, error);
}

gboolean
gtorch_shape_factory_like (GTorchOpCall *call, GError **error)
{
  return like (call, call->attrs[0].i, error);
}

/* Checks that the output's dtype can represent attribute i. */
static gboolean
takes_number (GTorchOpCall *call, guint i, GError **error)
{
  return gtorch_call_check_value (call, i, call->outputs[0]->dtype, error);
}

/* Chooses int64 for integers if no dtype is given. */
static gint64
dtype_for (gint64 dtype, const GTorchAttr *number)
{
  return dtype == GTORCH_DTYPE_NONE && number->number.is_int ? GTORCH_DTYPE_INT64 : dtype;
}

gboolean
gtorch_shape_full_like (GTorchOpCall *call, GError **error)
{
  return like (call, call->attrs[1].i, error) && takes_number (call, 0, error);
}

gboolean
gtorch_shape_fill (GTorchOpCall *call, GError **error)
{
  return gtorch_shape_same (call, error) && takes_number (call, 0, error);
}

gboolean
gtorch_shape_full (GTorchOpCall *call, GError **error)
{
  return new_output (call, dtype_for (call->attrs[2].i, &call->attrs[1]), call->attrs[0].list.data,
                     call->attrs[0].list.n, error)
         && takes_number (call, 1, error);
}

gboolean
gtorch_shape_factory_new (GTorchOpCall *call, GError **error)
{
  gint64 dtype = call->attrs[1].i;

  return new_output (call, dtype != GTORCH_DTYPE_NONE ? dtype : call->inputs[0]->dtype,
                     call->attrs[0].list.data, call->attrs[0].list.n, error);
}

gboolean
gtorch_shape_new_full (GTorchOpCall *call, GError **error)
{
  gint64 dtype = call->attrs[2].i;

  return new_output (call, dtype != GTORCH_DTYPE_NONE ? dtype : call->inputs[0]->dtype,
                     call->attrs[0].list.data, call->attrs[0].list.n, error)
         && takes_number (call, 1, error);
}

gboolean
gtorch_shape_scalar_tensor (GTorchOpCall *call, GError **error)
{
  return new_output (call, call->attrs[1].i, NULL, 0, error) && takes_number (call, 0, error);
}

/* Returns the number of integers from start to before end, or -1 if step does not lead from start to end. */
static gint64
count_integers (gint64 start, gint64 end, gint64 step)
{
  const guint64 distance = step > 0 ? (guint64) end - start : (guint64) start - end;

  if (start == end)
    return 0;
  if ((step > 0) != (start < end) || step == 0)
    return -1;
  return (gint64) MIN ((distance - 1) / (step > 0 ? (guint64) step : 0 - (guint64) step) + 1,
                       G_MAXINT64);
}

/* Checks that the dtype can represent both ends, and so all numbers in between. */
static gboolean
check_ends (GTorchOpCall *call, gdouble first, gdouble last, GError **error)
{
  const guint dtype = call->outputs[0]->dtype;
  const gdouble *bad = !gtorch_dtype_has (dtype, first)  ? &first
                       : !gtorch_dtype_has (dtype, last) ? &last
                                                         : NULL;

  if (bad == NULL)
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                     _ ("the numbers include %.17g, which is no %s"), *bad,
                     gtorch_dtype_get_name (dtype));
  return FALSE;
}

gdouble
gtorch_progression_number (const GTorchOpCall *call, guint i)
{
  gboolean is_whole = gtorch_dtype_kind (call->outputs[0]->dtype) < GTORCH_KIND_FLOAT;

  return is_whole ? trunc (call->attrs[i].d) : call->attrs[i].d;
}

gboolean
gtorch_shape_arange (GTorchOpCall *call, GError **error)
{
  gdouble start = call->attrs[0].d, end = call->attrs[1].d, step = call->attrs[2].d;
  gdouble count = ceil ((end - start) / step);
  gboolean is_whole = gtorch_call_has_ints (call, 3);
  gint64 n = is_whole ? count_integers (call->attrs[0].number.i, call->attrs[1].number.i,
                                        call->attrs[2].number.i)
                      : 0;

  if (!(step != 0) || !isfinite (count) || count < 0 || count >= 0x1p62 || n < 0)
    {
      if (is_whole)
        gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                           _ ("there is no finite range from %" PRId64 " to %" PRId64
                              " in steps of %" PRId64),
                           call->attrs[0].number.i, call->attrs[1].number.i,
                           call->attrs[2].number.i);
      else
        gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                           _ ("there is no finite range from %g to %g in steps of %g"), start, end,
                           step);
      return FALSE;
    }
  if (!is_whole)
    n = (gint64) count;
  if (!new_output (call,
                   is_whole ? dtype_for (call->attrs[3].i, &call->attrs[0]) : call->attrs[3].i, &n,
                   1, error))
    return FALSE;
  /* integers need no check in 8 bytes: count_integers () has found the range valid */
  return n == 0 || (is_whole && gtorch_dtype_size (call->outputs[0]->dtype) == 8)
         || check_ends (call, gtorch_progression_number (call, 0),
                        gtorch_progression_number (call, 0)
                            + (gdouble) (n - 1) * gtorch_progression_number (call, 2),
                        error);
}

gboolean
gtorch_shape_linspace (GTorchOpCall *call, GError **error)
{
  return new_output (call, call->attrs[3].i, &call->attrs[2].i, 1, error)
         && gtorch_call_check_double (call, 0, call->outputs[0]->dtype, error)
         && gtorch_call_check_double (call, 1, call->outputs[0]->dtype, error);
}

gboolean
gtorch_shape_eye (GTorchOpCall *call, GError **error)
{
  const gint64 shape[] = { call->attrs[0].i,
                           call->attrs[1].i == GTORCH_NONE ? call->attrs[0].i : call->attrs[1].i };

  return new_output (call, call->attrs[2].i, shape, 2, error);
}

gboolean
gtorch_shape_logspace (GTorchOpCall *call, GError **error)
{
  gdouble start, end, base = call->attrs[3].d, first, last;
  gint64 n;

  if (!new_output (call, call->attrs[4].i, &call->attrs[2].i, 1, error))
    return FALSE;
  n = call->outputs[0]->numel;
  if (n == 0)
    return TRUE;
  start = gtorch_progression_number (call, 0);
  end = n > 1 ? gtorch_progression_number (call, 1) : start;
  first = pow (base, start);
  last = pow (base, end);
  if (isfinite (start) && isfinite (end) && isfinite (base) && base != 0
      && (isinf (first) || isinf (last)))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                         _ ("the numbers include %g to the power of %g, which is no %s"), base,
                         isinf (first) ? start : end,
                         gtorch_dtype_get_name (call->outputs[0]->dtype));
      return FALSE;
    }
  if (base < 0 && n > 1 && gtorch_dtype_kind (call->outputs[0]->dtype) < GTORCH_KIND_FLOAT
      && fmod (end - start, (gdouble) (n - 1)) != 0)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                         _ ("%g has no real powers of the fractions from %g to %g"), base, start,
                         end);
      return FALSE;
    }
  /* all are between these two, and their negatives */
  return check_ends (call, first, last, error);
}

void
gtorch_triangle_row (const GTorchOpCall *call, gint64 row, gint64 *begin, gint64 *end)
{
  gint64 columns = call->attrs[1].i, offset = call->attrs[2].i;
  gint64 diagonal = offset > columns - row ? columns : MAX (row + offset, -1);

  *begin = call->op->id == GTORCH_OP_TRIL_INDICES ? 0 : MAX (diagonal, 0);
  *end = call->op->id == GTORCH_OP_TRIL_INDICES ? MIN (diagonal + 1, columns) : columns;
}

gboolean
gtorch_shape_triangle_indices (GTorchOpCall *call, GError **error)
{
  const gint64 matrix[] = { call->attrs[0].i, call->attrs[1].i };
  gint64 shape[] = { 2, 0 };
  gint64 row, begin, end;

  if (!gtorch_shape_check (call->op->name, matrix, 2, GTORCH_DTYPE_INT64, error))
    return FALSE;
  if (MAX (matrix[0], matrix[1]) > G_MAXINT32)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE, _ ("a matrix of shape %s is too large"),
                         gtorch_shape_str (matrix, 2));
      return FALSE;
    }
  for (row = 0; row < matrix[0]; row++)
    {
      gtorch_triangle_row (call, row, &begin, &end);
      shape[1] += MAX (end - begin, 0);
    }
  return gtorch_shape_check (call->op->name, shape, 2, GTORCH_DTYPE_INT64, error)
         && gtorch_call_set_output (call, 0, GTORCH_DTYPE_INT64, shape, 2, error);
}
