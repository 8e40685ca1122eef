/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <gtorch/gtorch.h>

/* Matrices that are symmetric or Hermitian, but not positive-definite. */
static GTorchTensor *
make (const gint64 *shape, gsize n_dims, GTorchDType dtype, gboolean hermitian)
{
  g_autoptr (GTorchTensor) real =
      gtorch_randn (shape, n_dims, GTORCH_DTYPE_FLOAT64, NULL, NULL, NULL);
  g_autoptr (GTorchTensor) imaginary =
      gtorch_randn (shape, n_dims, GTORCH_DTYPE_FLOAT64, NULL, NULL, NULL);
  g_autoptr (GTorchTensor) both = gtorch_complex (real, imaginary, NULL);
  const gboolean is_complex = dtype == GTORCH_DTYPE_COMPLEX64 || dtype == GTORCH_DTYPE_COMPLEX128;
  g_autoptr (GTorchTensor) a = gtorch_tensor_to_dtype (is_complex ? both : real, dtype, NULL);
  g_autoptr (GTorchTensor) other = gtorch_tensor_transpose (a, -1, -2, NULL);
  g_autoptr (GTorchTensor) conj = gtorch_tensor_conj (other, NULL);

  return gtorch_tensor_add (a, hermitian ? conj : other, 1, NULL);
}

static gdouble
greatest_difference (GTorchTensor *a, GTorchTensor *b)
{
  g_autoptr (GTorchTensor) difference = gtorch_tensor_sub (a, b, 1, NULL);
  g_autoptr (GTorchTensor) absolute = gtorch_tensor_abs (difference, NULL);
  g_autoptr (GTorchTensor) greatest = gtorch_tensor_max (absolute, NULL);

  return gtorch_tensor_item_double (greatest, NULL);
}

static void
solutions_fulfil_the_equations (void)
{
  static const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64,
                                        GTORCH_DTYPE_COMPLEX64, GTORCH_DTYPE_COMPLEX128 };

  gtorch_manual_seed (7);
  /* GPUs factor large symmetric matrices themselves */
  for (guint i = 0; i < 2 * G_N_ELEMENTS (dtypes); i++)
    for (gint hermitian = 0; hermitian < 2; hermitian++)
      {
        const GTorchDType dtype = dtypes[i / 2];
        const gint64 n = i % 2 == 0 ? 17 : 270;
        const gdouble tolerance = (i / 2 % 2 == 0 ? 2e-3 : 1e-10) * (i % 2 == 0 ? 1 : 10);
        g_autoptr (GTorchTensor) a = make (GTORCH_SHAPE (2, n, n), dtype, hermitian);
        g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (2, n, 2), dtype, NULL, NULL);
        g_autoptr (GTorchTensor) b = gtorch_tensor_matmul (a, x, NULL);
        g_autoptr (GTorchTensor) ld = NULL;
        g_autoptr (GTorchTensor) pivots = NULL;
        g_autoptr (GTorchTensor) found = NULL;
        g_autoptr (GTorchTensor) again = NULL;
        GError *error = NULL;

        g_assert_true (gtorch_linalg_ldl_factor (a, hermitian, &ld, &pivots, &error));
        g_assert_no_error (error);
        found = gtorch_linalg_ldl_solve (ld, pivots, b, hermitian, &error);
        g_assert_no_error (error);
        again = gtorch_tensor_matmul (a, found, NULL);
        g_assert_cmpfloat (greatest_difference (again, b), <, tolerance);
      }
}

static void
blocks_of_two_rows_have_negative_pivots (void)
{
  const gdouble values[] = { 0, 9, 2, 0 };
  g_autoptr (GTorchTensor) a = gtorch_tensor_new_from_doubles (values, 4, GTORCH_SHAPE (2, 2),
                                                               GTORCH_DTYPE_FLOAT64, NULL, NULL);
  g_autoptr (GTorchTensor) ld = NULL;
  g_autoptr (GTorchTensor) pivots = NULL;
  g_autoptr (GTorchTensor) info = NULL;
  g_autofree gdouble *factors = NULL;
  g_autofree gdouble *numbers = NULL;
  GError *error = NULL;
  gsize n;

  g_assert_true (gtorch_linalg_ldl_factor_ex (a, FALSE, TRUE, &ld, &pivots, &info, &error));
  g_assert_no_error (error);
  factors = gtorch_tensor_to_doubles (ld, &n, NULL);
  g_assert_cmpfloat (factors[0], ==, 0);
  g_assert_cmpfloat (factors[1], ==, 0); /* the 9 is above the diagonal */
  g_assert_cmpfloat (factors[2], ==, 2);
  numbers = gtorch_tensor_to_doubles (pivots, &n, NULL);
  g_assert_cmpuint (n, ==, 2);
  g_assert_cmpfloat (numbers[0], ==, -2);
  g_assert_cmpfloat (numbers[1], ==, -2);
  g_assert_cmpint (gtorch_tensor_item_int (info, NULL), ==, 0);
}

static void
singular_matrices_are_an_error (void)
{
  g_autoptr (GTorchTensor) a =
      gtorch_zeros (GTORCH_SHAPE (2, 3, 3), GTORCH_DTYPE_FLOAT64, NULL, NULL);
  g_autoptr (GTorchTensor) flat =
      gtorch_ones (GTORCH_SHAPE (2, 3), GTORCH_DTYPE_FLOAT64, NULL, NULL);
  GTorchTensor *ld = NULL, *pivots = NULL, *info = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_linalg_ldl_factor (a, FALSE, &ld, &pivots, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "linalg_ldl_factor: the matrix at [0] of the batch is singular: block 1 of its "
                   "factor D is 0");
  g_assert_null (ld);
  g_assert_null (pivots);
  g_clear_error (&error);
  g_assert_false (gtorch_linalg_ldl_factor (flat, FALSE, &ld, &pivots, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_clear_error (&error);
  g_assert_true (gtorch_linalg_ldl_factor_ex (a, FALSE, FALSE, &ld, &pivots, &info, &error));
  g_assert_no_error (error);
  g_clear_object (&ld);
  g_clear_object (&pivots);
  g_clear_object (&info);
}

static void
pivots_that_lead_elsewhere_are_named (void)
{
  static const struct
  {
    gint64 pivots[2];
    const gchar *message;
  } cases[] = {
    { { 1, 3 }, "linalg_ldl_solve: pivot 1 is 3, it must be a row from 1 to 2, or its negative" },
    { { 0, 1 }, "linalg_ldl_solve: pivot 0 is 0, it must be a row from 1 to 2, or its negative" },
    { { 1, -2 }, "linalg_ldl_solve: pivot 1 is -2, and the next one must be so, too" },
    { { -1, -2 }, "linalg_ldl_solve: pivot 0 is -1, and the next one must be so, too" },
  };
  g_autoptr (GTorchTensor) ld = gtorch_ones (GTORCH_SHAPE (2, 2), GTORCH_DTYPE_FLOAT64, NULL, NULL);
  g_autoptr (GTorchTensor) half =
      gtorch_ones (GTORCH_SHAPE (2, 2), GTORCH_DTYPE_FLOAT32, NULL, NULL);

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GTorchTensor) pivots =
          gtorch_tensor_new_from_ints (cases[i].pivots, 2, GTORCH_SHAPE (2), GTORCH_DTYPE_INT64,
                                       NULL, NULL);
      g_autoptr (GError) error = NULL;

      g_assert_null (gtorch_linalg_ldl_solve (ld, pivots, ld, FALSE, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
      g_assert_cmpstr (error->message, ==, cases[i].message);
      g_clear_error (&error);
      g_assert_null (gtorch_linalg_ldl_solve (ld, pivots, half, FALSE, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE);
    }
}

#define ADD(name) g_test_add_func ("/GTorch/Ldl/" #name, name)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (solutions_fulfil_the_equations);
  ADD (blocks_of_two_rows_have_negative_pivots);
  ADD (singular_matrices_are_an_error);
  ADD (pivots_that_lead_elsewhere_are_named);
  return g_test_run ();
}
