/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Euclidean distances by a product of matrices and by differences. */

#include "config.h"

#include <math.h>
#include <string.h>

#include "test-device.h"

#define MODE(name) GTORCH_CDIST_MODE_##name

static GTorchTensor *
distances (GTorchTensor *x1, GTorchTensor *x2, GTorchCdistMode mode)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *result = gtorch_cdist (x1, x2, 2, mode, &error);

  g_assert_no_error (error);
  return result;
}

static GTorchTensor *
random_rows (gint64 n, gint64 width)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *x =
      gtorch_randn (GTORCH_SHAPE (n, width), GTORCH_DTYPE_FLOAT64, test_device (), NULL, &error);

  g_assert_no_error (error);
  return x;
}

static gdouble
greatest_difference (GTorchTensor *a, GTorchTensor *b)
{
  g_autoptr (GTorchTensor) difference = gtorch_tensor_sub (a, b, 1, NULL);
  g_autoptr (GTorchTensor) size = gtorch_tensor_abs (difference, NULL);
  g_autoptr (GTorchTensor) greatest = gtorch_tensor_amax (size, NULL, 0, FALSE, NULL);

  return gtorch_tensor_item_double (greatest, NULL);
}

static void
products_give_the_distances (void)
{
  g_autoptr (GTorchTensor) x1 = random_rows (30, 7);
  g_autoptr (GTorchTensor) x2 = random_rows (20, 7);
  g_autoptr (GTorchTensor) exact = distances (x1, x2, MODE (DONOT_USE_MM_FOR_EUCLID_DIST));
  g_autoptr (GTorchTensor) product = distances (x1, x2, MODE (USE_MM_FOR_EUCLID_DIST));
  g_autoptr (GTorchTensor) chosen = distances (x1, x2, MODE (USE_MM_FOR_EUCLID_DIST_IF_NECESSARY));

  g_assert_cmpfloat (greatest_difference (exact, product), <, 1e-13);
  g_assert_cmpfloat (greatest_difference (chosen, product), ==, 0);
}

static void
few_rows_are_compared_exactly (void)
{
  g_autoptr (GTorchTensor) x = random_rows (25, 7);
  g_autoptr (GTorchTensor) far = gtorch_tensor_add_scalar (x, 1e9, 1, NULL);
  g_autoptr (GTorchTensor) exact = distances (far, far, MODE (DONOT_USE_MM_FOR_EUCLID_DIST));
  g_autoptr (GTorchTensor) chosen =
      distances (far, far, MODE (USE_MM_FOR_EUCLID_DIST_IF_NECESSARY));

  g_assert_cmpfloat (greatest_difference (exact, chosen), ==, 0);
}

/* Rows have the distance zero from themselves, where the root has no derivative: theirs is zero. */
static void
gradients_of_equal_rows_are_zero (void)
{
  g_autoptr (GTorchTensor) x = random_rows (9, 4);
  GTorchTensor *grads[2];
  g_autoptr (GError) error = NULL;
  const GTorchCdistMode modes[] = { MODE (DONOT_USE_MM_FOR_EUCLID_DIST),
                                    MODE (USE_MM_FOR_EUCLID_DIST) };
  guint i;

  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchTensor) leaf = gtorch_tensor_clone (x, NULL);
      g_autoptr (GTorchTensor) copy = gtorch_tensor_clone (leaf, NULL);
      g_autoptr (GTorchTensor) result = NULL;
      g_autoptr (GTorchTensor) sum = NULL;

      gtorch_tensor_set_requires_grad (leaf, TRUE, NULL);
      result = distances (leaf, copy, modes[i]);
      sum = gtorch_tensor_sum (result, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL);
      gtorch_tensor_backward (sum, NULL, FALSE, FALSE, &error);
      g_assert_no_error (error);
      grads[i] = gtorch_tensor_get_grad (leaf);
    }
  g_assert_cmpfloat (greatest_difference (grads[0], grads[1]), <, 1e-6);
  for (i = 0; i < 2; i++)
    g_object_unref (grads[i]);
}

static void
nan_stays_and_choices_are_checked (void)
{
  g_autoptr (GTorchTensor) x = random_rows (3, 2);
  g_autoptr (GTorchTensor) nan = gtorch_tensor_mul_scalar (x, NAN, NULL);
  g_autoptr (GTorchTensor) result = distances (x, nan, MODE (USE_MM_FOR_EUCLID_DIST));
  g_autoptr (GTorchTensor) sum =
      gtorch_tensor_sum (result, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_true (isnan (gtorch_tensor_item_double (sum, NULL)));
  g_assert_null (gtorch_cdist (x, x, 2, 9, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "9 is no GTorchCdistMode"));
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/distances/products_give_the_distances", products_give_the_distances);
  g_test_add_func ("/GTorch/distances/few_rows_are_compared_exactly",
                   few_rows_are_compared_exactly);
  g_test_add_func ("/GTorch/distances/gradients_of_equal_rows_are_zero",
                   gradients_of_equal_rows_are_zero);
  g_test_add_func ("/GTorch/distances/nan_stays_and_choices_are_checked",
                   nan_stays_and_choices_are_checked);
  return g_test_run ();
}
