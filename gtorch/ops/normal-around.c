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

GTorchImpl *
gtorch_op_normal_around (GTorchImpl *mean, GTorchImpl *std, GTorchGenerator *generator,
                         GError **error)
{
  g_autoptr (GTorchImpl) centre = gtorch_impl_alias (mean);
  g_autoptr (GTorchImpl) width = gtorch_impl_alias (std);
  g_autoptr (GTorchImpl) model = NULL;
  g_autoptr (GTorchImpl) result = NULL;

  if (!check_dtypes (mean, std, error)
      || !gtorch_impl_check_not_negative ("normal_around", N_ ("standard deviations"), width, FALSE,
                                          error)
      || (model = gtorch_op_add (centre, width, 1, error)) == NULL
      || (result = gtorch_op_randn_like (model, GTORCH_DTYPE_NONE, generator, error)) == NULL
      || !gtorch_op_mul_inplace (result, width, error)
      || !gtorch_op_add_inplace (result, centre, 1, error))
    return NULL;
  return g_steal_pointer (&result);
}
