/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Normal distributions whose parameters are tensors. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "gtorch-ops-private.h"
#include "ops/gtorch-host-private.h"

static gboolean
check_dtypes (GTorchImpl *mean, GTorchImpl *std, GError **error)
{
  if (gtorch_dtype_kind (mean->dtype) == GTORCH_KIND_FLOAT
      && gtorch_dtype_kind (std->dtype) == GTORCH_KIND_FLOAT)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
               _ ("normal_around: means of %s and standard deviations of %s: both must be "
                  "floating-point numbers"),
               gtorch_dtype_get_name (mean->dtype), gtorch_dtype_get_name (std->dtype));
  return FALSE;
}

/* Fails if a standard deviation is negative or NaN. The host waits for the result, as in all checks of
 * values. */
static gboolean
check_deviations (GTorchImpl *std, GError **error)
{
  g_autoptr (GTorchImpl) zero = gtorch_impl_new_int (0);
  g_autoptr (GTorchImpl) fits = gtorch_op_ge (std, zero, error);
  g_autoptr (GTorchImpl) all = fits != NULL ? gtorch_op_all (fits, NULL, 0, FALSE, error) : NULL;
  g_autoptr (GTorchImpl) host =
      all != NULL ? gtorch_impl_to_host ("normal_around", all, error) : NULL;

  if (host == NULL)
    return FALSE;
  if (*(const guint8 *) gtorch_impl_data (host))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("normal_around: standard deviations of shape %s: none may be negative or NaN"),
               gtorch_impl_shape_str (std));
  return FALSE;
}

GTorchImpl *
gtorch_op_normal_around (GTorchImpl *mean, GTorchImpl *std, GTorchGenerator *generator,
                         GError **error)
{
  g_autoptr (GTorchImpl) centre = gtorch_impl_alias (mean);
  g_autoptr (GTorchImpl) width = gtorch_impl_alias (std);
  g_autoptr (GTorchImpl) model = NULL;
  g_autoptr (GTorchImpl) result = NULL;

  if (!check_dtypes (mean, std, error) || !check_deviations (width, error)
      || (model = gtorch_op_add (centre, width, 1, error)) == NULL
      || (result = gtorch_op_randn_like (model, GTORCH_DTYPE_NONE, generator, error)) == NULL
      || !gtorch_op_mul_inplace (result, width, error)
      || !gtorch_op_add_inplace (result, centre, 1, error))
    return NULL;
  return g_steal_pointer (&result);
}
