/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What a gradient scaler computes. On a GPU each of these functions is a row of small kernels; one kernel
 * over all gradients, and one for the new scale, would take their places here. */

#include "config.h"

#include "gtorch-grad-scaler-private.h"

#include <glib/gi18n-lib.h>

#include "gtorch-ops-private.h"

/* Without a history. */
static gboolean
multiply (GTorchImpl *grad, GTorchImpl *factor, GError **error)
{
  g_autoptr (GTorchImpl) plain = gtorch_impl_alias (grad);
  g_autoptr (GTorchImpl) wide = NULL;

  if (gtorch_dtype_size (grad->dtype) >= 4)
    return gtorch_op_mul_inplace (plain, factor, error);
  /* the factor would be rounded to the gradient's dtype */
  wide = gtorch_op_to_dtype (plain, GTORCH_DTYPE_FLOAT32, error);
  return wide != NULL && gtorch_op_mul_inplace (wide, factor, error)
         && gtorch_op_copy_inplace (plain, wide, FALSE, error);
}

static GTorchImpl *
all_finite (GTorchImpl *impl, GError **error)
{
  g_autoptr (GTorchImpl) plain = gtorch_impl_alias (impl);
  g_autoptr (GTorchImpl) finite = gtorch_op_isfinite (plain, error);

  return finite != NULL ? gtorch_op_all (finite, NULL, 0, FALSE, error) : NULL;
}

GTorchImpl *
gtorch_amp_unscale (GTorchImpl *const *grads, guint n_grads, GTorchImpl *inv_scale, GError **error)
{
  g_autofree GTorchImpl **finite = g_new0 (GTorchImpl *, n_grads);
  g_autoptr (GTorchImpl) together = NULL;
  g_autoptr (GTorchImpl) all = NULL;
  g_autoptr (GTorchImpl) not_all = NULL;
  gboolean success = TRUE;
  guint i;

  for (i = 0; success && i < n_grads; i++)
    {
      if (grads[i]->dtype == GTORCH_DTYPE_FLOAT16)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                       _ ("unscale: a gradient of shape %s is of float16, which has no room for "
                          "unscaled gradients: keep parameters in float32"),
                       gtorch_impl_shape_str (grads[i]));
          success = FALSE;
        }
      else
        success = (finite[i] = all_finite (grads[i], error)) != NULL
                  && multiply (grads[i], inv_scale, error);
    }
  if (success)
    together = gtorch_op_stack (finite, n_grads, 0, error);
  gtorch_impl_clear (finite, n_grads);
  all = together != NULL ? gtorch_op_all (together, NULL, 0, FALSE, error) : NULL;
  not_all = all != NULL ? gtorch_op_logical_not (all, error) : NULL;
  return not_all != NULL ? gtorch_op_to_dtype (not_all, GTORCH_DTYPE_FLOAT32, error) : NULL;
}

/* scale * factor, rounded once. */
static GTorchImpl *
scaled (GTorchImpl *scale, gdouble factor, GError **error)
{
  g_autoptr (GTorchImpl) number = gtorch_impl_new_number (factor);
  g_autoptr (GTorchImpl) wide = NULL;
  g_autoptr (GTorchImpl) product = NULL;

  if ((gdouble) (gfloat) factor == factor)
    return gtorch_op_mul (scale, number, error);
  wide = gtorch_op_to_dtype (scale, GTORCH_DTYPE_FLOAT64, error);
  product = wide != NULL ? gtorch_op_mul (wide, number, error) : NULL;
  return product != NULL ? gtorch_op_to_dtype (product, GTORCH_DTYPE_FLOAT32, error) : NULL;
}

gboolean
gtorch_amp_update_scale (GTorchImpl *scale, GTorchImpl *growth_tracker, GTorchImpl *found_inf,
                         gdouble growth, gdouble backoff, gint interval, GError **error)
{
  g_autoptr (GTorchImpl) zero = gtorch_impl_new_int (0);
  g_autoptr (GTorchImpl) one = gtorch_impl_new_int (1);
  g_autoptr (GTorchImpl) end = gtorch_impl_new_int (interval);
  g_autoptr (GTorchImpl) less = scaled (scale, backoff, error);
  g_autoptr (GTorchImpl) more = less != NULL ? scaled (scale, growth, error) : NULL;
  g_autoptr (GTorchImpl) has_room = more != NULL ? gtorch_op_isfinite (more, error) : NULL;
  g_autoptr (GTorchImpl) inf = has_room != NULL ? gtorch_op_ne (found_inf, zero, error) : NULL;
  g_autoptr (GTorchImpl) count = inf != NULL ? gtorch_op_add (growth_tracker, one, 1, error) : NULL;
  g_autoptr (GTorchImpl) full = count != NULL ? gtorch_op_eq (count, end, error) : NULL;
  g_autoptr (GTorchImpl) grows =
      full != NULL ? gtorch_op_logical_and (full, has_room, error) : NULL;
  g_autoptr (GTorchImpl) good = grows != NULL ? gtorch_op_where (grows, more, scale, error) : NULL;
  g_autoptr (GTorchImpl) next = good != NULL ? gtorch_op_where (inf, less, good, error) : NULL;
  g_autoptr (GTorchImpl) restarts = next != NULL ? gtorch_op_logical_or (inf, full, error) : NULL;
  g_autoptr (GTorchImpl) tracked =
      restarts != NULL ? gtorch_op_where (restarts, zero, count, error) : NULL;

  return tracked != NULL && gtorch_op_copy_inplace (scale, next, FALSE, error)
         && gtorch_op_copy_inplace (growth_tracker, tracked, FALSE, error);
}

GTorchImpl *
gtorch_amp_inv_scale (GTorchImpl *scale, GError **error)
{
  g_autoptr (GTorchImpl) wide = gtorch_op_to_dtype (scale, GTORCH_DTYPE_FLOAT64, error);
  g_autoptr (GTorchImpl) inverse = wide != NULL ? gtorch_op_reciprocal (wide, error) : NULL;

  return inverse != NULL ? gtorch_op_to_dtype (inverse, GTORCH_DTYPE_FLOAT32, error) : NULL;
}
