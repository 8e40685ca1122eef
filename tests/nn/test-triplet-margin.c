/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <gtorch/gtorch.h>

#define FEW(...)                                                                            \
  gtorch_tensor_new_from_doubles ((const gdouble[]){ __VA_ARGS__ }, 4, GTORCH_SHAPE (2, 2), \
                                  GTORCH_DTYPE_FLOAT64, NULL, NULL)

/* The sum of the absolute differences; `user_data` counts the calls. */
static GTorchTensor *
distance (GTorchTensor *x1, GTorchTensor *x2, gpointer user_data, GError **error)
{
  g_autoptr (GTorchTensor) difference = gtorch_tensor_sub (x1, x2, 1, error);
  g_autoptr (GTorchTensor) absolute =
      difference != NULL ? gtorch_tensor_abs (difference, error) : NULL;
  const gint64 last = 1;

  *(guint *) user_data += 1;
  return absolute != NULL ? gtorch_tensor_sum (absolute, &last, 1, FALSE, GTORCH_DTYPE_NONE, error)
                          : NULL;
}

static GTorchTensor *
refuse (GTorchTensor *x1, GTorchTensor *x2, gpointer user_data, GError **error)
{
  g_set_error_literal (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, "no distance");
  return NULL;
}

static void
assert_loss (GTorchTensor *loss, gdouble first, gdouble second)
{
  gsize n;
  g_autofree gdouble *values = gtorch_tensor_to_doubles (loss, &n, NULL);

  g_assert_cmpuint (n, ==, 2);
  g_assert_cmpfloat (values[0], ==, first);
  g_assert_cmpfloat (values[1], ==, second);
}

static void
a_function_is_the_distance (void)
{
  g_autoptr (GTorchTensor) anchor = FEW (0, 0, 4, 0);
  g_autoptr (GTorchTensor) positive = FEW (1, 2, 4, 1);
  g_autoptr (GTorchTensor) negative = FEW (2, 2, 0, 4);
  g_autoptr (GTorchTensor) plain = NULL;
  g_autoptr (GTorchTensor) swapped = NULL;
  guint n_calls = 0;
  GError *error = NULL;

  /* distances 3 and 1 from the positive, 4 and 8 from the negative examples, 1 and 7 between these */
  plain = gtorch_triplet_margin_with_distance_loss (anchor, positive, negative, distance, &n_calls,
                                                    1.5, FALSE, GTORCH_REDUCTION_NONE, &error);
  g_assert_no_error (error);
  assert_loss (plain, 0.5, 0);
  g_assert_cmpuint (n_calls, ==, 2);
  swapped =
      gtorch_triplet_margin_with_distance_loss (anchor, positive, negative, distance, &n_calls, 1.5,
                                                TRUE, GTORCH_REDUCTION_NONE, &error);
  g_assert_no_error (error);
  assert_loss (swapped, 3.5, 0);
  g_assert_cmpuint (n_calls, ==, 5);
}

static void
a_module_is_the_distance (void)
{
  g_autoptr (GTorchModule) norm =
      gtorch_module_new (GTORCH_TYPE_PAIRWISE_DISTANCE, NULL, "p", 1.0, "eps", 0.0, NULL);
  g_autoptr (GTorchModule) loss =
      gtorch_module_new (GTORCH_TYPE_TRIPLET_MARGIN_WITH_DISTANCE_LOSS, NULL, "distance-module",
                         norm, "margin", 1.5, "reduction", GTORCH_REDUCTION_NONE, NULL);
  g_autoptr (GTorchModule) child = gtorch_module_get_module (loss, "distance_function", NULL);
  g_autoptr (GTorchTensor) anchor = FEW (0, 0, 4, 0);
  g_autoptr (GTorchTensor) positive = FEW (1, 2, 4, 1);
  g_autoptr (GTorchTensor) negative = FEW (2, 2, 0, 4);
  g_autoptr (GTorchTensor) value = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_true (child == norm);
  value =
      gtorch_triplet_margin_with_distance_loss_forward (GTORCH_TRIPLET_MARGIN_WITH_DISTANCE_LOSS (
                                                            loss),
                                                        anchor, positive, negative, &error);
  g_assert_no_error (error);
  assert_loss (value, 0.5, 0);
  g_assert_null (gtorch_loss_forward (GTORCH_LOSS (loss), anchor, positive, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
}

static void
errors_of_the_distance_arrive (void)
{
  g_autoptr (GTorchTensor) x = FEW (0, 0, 4, 0);
  g_autoptr (GTorchTensor) row = gtorch_tensor_select (x, 0, 0, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_triplet_margin_with_distance_loss (x, x, x, refuse, NULL, 1, FALSE,
                                                           GTORCH_REDUCTION_MEAN, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
  g_assert_cmpstr (error->message, ==, "no distance");
  g_clear_error (&error);
  g_assert_null (gtorch_triplet_margin_with_distance_loss (x, x, x, NULL, NULL, 0, FALSE,
                                                           GTORCH_REDUCTION_MEAN, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_null (gtorch_triplet_margin_with_distance_loss (x, x, row, NULL, NULL, 1, FALSE,
                                                           GTORCH_REDUCTION_MEAN, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
}

#define ADD(name) g_test_add_func ("/GTorch/TripletMarginWithDistanceLoss/" #name, name)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (a_function_is_the_distance);
  ADD (a_module_is_the_distance);
  ADD (errors_of_the_distance_arrive);
  return g_test_run ();
}
