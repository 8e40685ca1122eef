/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Pooling by norms, composed of the mean of powers. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-none.h"
#include "ops/gtorch-formula-private.h"

/* The gradient of the root is infinite where the sum is 0; that of power () is 0 there. */
static GTorchImpl *
lp_pool (const gchar *op, guint dims, GTorchImpl *self, gdouble norm_type, const gint64 *kernel,
         gsize n_kernel, const gint64 *stride, gsize n_stride, gboolean ceil_mode, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  const gint64 none = 0;
  GTorchImpl *exponent, *powers, *mean, *size;
  gdouble n = 1;
  guint i;

  if (norm_type == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: norm_type must not be 0"),
                   op);
      return NULL;
    }
  exponent = gtorch_formula_number (&f, norm_type);
  powers = norm_type == 2 ? GTORCH_FORMULA_OP (&f, square, self)
                          : GTORCH_FORMULA_OP (&f, pow, self, exponent);
  /* with ceil_mode, the mean of a window that is cut off stands for all of it */
  mean = GTORCH_FORMULA_OP (&f, mean_pool, powers, dims, kernel, n_kernel, stride, n_stride, &none,
                            1, ceil_mode, TRUE, ceil_mode ? GTORCH_NONE : 1);
  for (i = 0; i < dims && !f.failed; i++)
    n *= (gdouble) kernel[n_kernel == 1 ? 0 : i];
  size = gtorch_formula_number (&f, n);
  if (ceil_mode)
    mean = GTORCH_FORMULA_OP (&f, mul, mean, size);
  if (norm_type == 2 && !gtorch_autograd_wanted (&self, 1))
    mean = GTORCH_FORMULA_OP (&f, sqrt, mean);
  else
    mean = GTORCH_FORMULA_OP (&f, power, mean, 1 / norm_type);
  return gtorch_formula_take (&f, mean);
}

GTorchImpl *
gtorch_op_lp_pool1d (GTorchImpl *self, gdouble norm_type, const gint64 *kernel_size,
                     gsize n_kernel_size, const gint64 *stride, gsize n_stride, gboolean ceil_mode,
                     GError **error)
{
  return lp_pool ("lp_pool1d", 1, self, norm_type, kernel_size, n_kernel_size, stride, n_stride,
                  ceil_mode, error);
}

GTorchImpl *
gtorch_op_lp_pool2d (GTorchImpl *self, gdouble norm_type, const gint64 *kernel_size,
                     gsize n_kernel_size, const gint64 *stride, gsize n_stride, gboolean ceil_mode,
                     GError **error)
{
  return lp_pool ("lp_pool2d", 2, self, norm_type, kernel_size, n_kernel_size, stride, n_stride,
                  ceil_mode, error);
}

GTorchImpl *
gtorch_op_lp_pool3d (GTorchImpl *self, gdouble norm_type, const gint64 *kernel_size,
                     gsize n_kernel_size, const gint64 *stride, gsize n_stride, gboolean ceil_mode,
                     GError **error)
{
  return lp_pool ("lp_pool3d", 3, self, norm_type, kernel_size, n_kernel_size, stride, n_stride,
                  ceil_mode, error);
}
