/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Matrix products with a factor 0 or an empty inner dimension. */

#include "config.h"

#include <math.h>

#include "gtorch-ops-private.h"
#include "op-values.h"

#define ROWS    3
#define COLUMNS 37 /* several vectors and a remainder */

/* Vectors, empty matrices, and sizes for each of the CPU's algorithms. */
static const gint64 inner_sizes[] = { 0, 1, 5, 70, 300 };

static GTorchImpl *
filled (guint dtype, const gint64 *shape, guint n_dims, gdouble value)
{
  g_autoptr (GTorchImpl) impl = NULL;
  GError *error = NULL;

  impl = gtorch_op_full (shape, n_dims, value, dtype, test_device (), &error);
  g_assert_no_error (error);
  return g_steal_pointer (&impl);
}

/* Compares beta * self + alpha * (a @ b) with a number, for constant matrices. */
static void
check (guint dtype, gboolean batched, gint64 inner, gdouble self, gdouble a, gdouble b,
       gdouble beta, gdouble alpha, gdouble expected)
{
  const gint64 left[] = { 2, ROWS, inner }, right[] = { 2, inner, COLUMNS };
  const gint64 shape[] = { 2, ROWS, COLUMNS };
  const guint n_dims = batched ? 3 : 2, first = 3 - n_dims;
  g_autoptr (GTorchImpl) added = filled (dtype, shape + first, n_dims, self);
  g_autoptr (GTorchImpl) mat1 = filled (dtype, left + first, n_dims, a);
  g_autoptr (GTorchImpl) mat2 = filled (dtype, right + first, n_dims, b);
  g_autoptr (GTorchImpl) result = NULL;
  g_autoptr (GTorchImpl) host = NULL;
  g_autoptr (GTorchImpl) wanted = NULL;
  g_autofree gchar *text = NULL;
  GError *error = NULL;

  result = batched ? gtorch_op_baddbmm (added, mat1, mat2, beta, alpha, &error)
                   : gtorch_op_addmm (added, mat1, mat2, beta, alpha, &error);
  g_assert_no_error (error);
  host = impl_to_host (result);
  wanted = gtorch_op_full (shape + first, n_dims, expected, dtype, gtorch_device_cpu (), &error);
  g_assert_no_error (error);
  text = difference (host, wanted, dtype_tolerance (dtype));
  if (text == NULL)
    return;
  g_test_message ("%s, %s, inner size %" G_GINT64_FORMAT ", beta %g, alpha %g: %s",
                  batched ? "baddbmm" : "addmm", gtorch_dtype_get_name (dtype), inner, beta, alpha,
                  text);
  g_test_fail ();
}

static void
check_all (gdouble self, gdouble factor, gdouble beta, gdouble alpha, gdouble expected)
{
  guint dtype, batched, i;

  for (dtype = 1; dtype < GTORCH_N_DTYPES; dtype++)
    for (batched = 0; batched < 2; batched++)
      for (i = 0; i < G_N_ELEMENTS (inner_sizes); i++)
        if ((gtorch_ops[GTORCH_OP_ADDMM].dtypes & (1u << dtype)) != 0
            && (gtorch_dtype_kind (dtype) >= GTORCH_KIND_FLOAT
                || (isfinite (self) && isfinite (factor))))
          check (dtype, batched, inner_sizes[i], self, factor, factor, beta, alpha, expected);
}

static void
beta_of_0_ignores_self (void)
{
  guint i;

  for (i = 0; i < G_N_ELEMENTS (inner_sizes); i++)
    {
      check (GTORCH_DTYPE_FLOAT32, FALSE, inner_sizes[i], NAN, 1, 1, 0, 1, inner_sizes[i]);
      check (GTORCH_DTYPE_FLOAT64, TRUE, inner_sizes[i], INFINITY, 1, 1, 0, 1, inner_sizes[i]);
      check (GTORCH_DTYPE_FLOAT16, FALSE, inner_sizes[i], NAN, 1, 1, 0, 1, inner_sizes[i]);
      check (GTORCH_DTYPE_COMPLEX64, TRUE, inner_sizes[i], NAN, 1, 1, 0, 1, inner_sizes[i]);
    }
  check_all (NAN, 0, 0, 1, 0);
  check_all (7, 0, 0, 1, 0);
}

static void
alpha_of_0_ignores_products (void)
{
  check_all (3, NAN, 2, 0, 6);
  check_all (3, INFINITY, 1, 0, 3);
  check_all (3, 5, 2, 0, 6);
  check_all (NAN, NAN, 0, 0, 0);
}

static void
products_of_nothing_are_0 (void)
{
  guint dtype, batched;

  for (dtype = 1; dtype < GTORCH_N_DTYPES; dtype++)
    for (batched = 0; batched < 2; batched++)
      if ((gtorch_ops[GTORCH_OP_ADDMM].dtypes & (1u << dtype)) != 0)
        {
          check (dtype, batched, 0, 3, 1, 1, 1, 1, 3);
          check (dtype, batched, 0, 3, 1, 1, 2, 1, 6);
          check (dtype, batched, 0, 3, 1, 1, 3, 5, 9);
        }
}

/* Checks self * beta + inner * alpha, with beta and alpha other than 0 and 1. */
static void
factors_are_applied (void)
{
  guint i;

  for (i = 0; i < G_N_ELEMENTS (inner_sizes); i++)
    {
      check (GTORCH_DTYPE_FLOAT32, FALSE, inner_sizes[i], 3, 1, 2, 2, 3, 6 + 6. * inner_sizes[i]);
      check (GTORCH_DTYPE_FLOAT64, TRUE, inner_sizes[i], 3, 1, 2, -1, 3, 6. * inner_sizes[i] - 3);
      check (GTORCH_DTYPE_INT64, FALSE, inner_sizes[i], 3, 1, 2, 2, 3, 6 + 6. * inner_sizes[i]);
    }
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/products/beta_of_0_ignores_self", beta_of_0_ignores_self);
  g_test_add_func ("/GTorch/products/alpha_of_0_ignores_products", alpha_of_0_ignores_products);
  g_test_add_func ("/GTorch/products/products_of_nothing_are_0", products_of_nothing_are_0);
  g_test_add_func ("/GTorch/products/factors_are_applied", factors_are_applied);
  return g_test_run ();
}
