/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <string.h>

#include "test-device.h"

/* 0 / 0 in the gradient of the root. */
static GTorchTensor *
compute_root_of_zero (void)
{
  g_autoptr (GTorchTensor) zero = gtorch_zeros (NULL, 0, GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GTorchTensor) root = NULL;

  g_assert_true (gtorch_tensor_set_requires_grad (zero, TRUE, NULL));
  root = gtorch_tensor_sqrt (zero, NULL);
  return gtorch_tensor_mul (root, zero, NULL);
}

static void
test_off_at_first (void)
{
  g_autoptr (GTorchTensor) product = compute_root_of_zero ();
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_is_anomaly_enabled ());
  g_assert_true (gtorch_is_anomaly_check_nan_enabled ());
  g_assert_true (gtorch_tensor_backward (product, NULL, FALSE, FALSE, &error));
  g_assert_no_error (error);
}

static void
test_nan_names_the_operation_and_its_place (void)
{
  const gchar *const wanted = "backward of sqrt: its gradient of input 0, of dtype float32 and "
                              "shape [], has NaN; the operation was called by ";
  g_autoptr (GTorchTensor) product = NULL;
  g_autoptr (GError) error = NULL;

  gtorch_set_detect_anomaly (TRUE, TRUE);
  product = compute_root_of_zero ();
  g_assert_false (gtorch_tensor_backward (product, NULL, FALSE, FALSE, &error));
  gtorch_set_detect_anomaly (FALSE, TRUE);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  g_assert_true (g_str_has_prefix (error->message, wanted));
  g_assert_nonnull (strstr (error->message, "(test-anomaly+0x"));
}

static gchar *
tell (gpointer user_data, GError **error)
{
  const gchar *text = user_data;

  if (text == NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, "it is not known");
  return g_strdup (text);
}

static void
count (gpointer data)
{
  *(guint *) data += 1;
}

static gchar *
say_nothing (gpointer user_data, GError **error)
{
  return NULL;
}

static gchar *
find_place (void)
{
  g_autoptr (GTorchTensor) product = NULL;
  g_autoptr (GError) error = NULL;
  const gchar *place;

  gtorch_set_detect_anomaly (TRUE, TRUE);
  product = compute_root_of_zero ();
  g_assert_false (gtorch_tensor_backward (product, NULL, FALSE, FALSE, &error));
  gtorch_set_detect_anomaly (FALSE, TRUE);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  place = strstr (error->message, "was called by ");
  g_assert_nonnull (place);
  return g_strdup (place + strlen ("was called by "));
}

static void
test_a_function_tells_the_place (void)
{
  g_autofree gchar *place = NULL;
  guint n_ended = 0;

  gtorch_set_place_func (TRUE, tell, "line 5", NULL);
  place = find_place ();
  g_assert_cmpstr (place, ==, "line 5");
  gtorch_set_place_func (TRUE, tell, NULL, NULL);
  g_free (place);
  place = find_place ();
  g_assert_cmpstr (place, ==, "? (it is not known)");
  gtorch_set_place_func (TRUE, say_nothing, &n_ended, count);
  g_free (place);
  place = find_place ();
  g_assert_nonnull (strstr (place, "test-anomaly"));
  g_assert_cmpuint (n_ended, ==, 0);
  gtorch_set_place_func (TRUE, NULL, NULL, NULL);
  g_assert_cmpuint (n_ended, ==, 1);
}

static void
test_without_a_site_only_the_operation_is_named (void)
{
  g_autoptr (GTorchTensor) product = compute_root_of_zero ();
  g_autoptr (GError) error = NULL;

  gtorch_set_detect_anomaly (TRUE, TRUE);
  g_assert_false (gtorch_tensor_backward (product, NULL, FALSE, FALSE, &error));
  gtorch_set_detect_anomaly (FALSE, TRUE);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  g_assert_cmpstr (error->message, ==,
                   "backward of sqrt: its gradient of input 0, of dtype float32 and shape [], has "
                   "NaN");
}

static void
test_nan_is_allowed_without_the_check (void)
{
  g_autoptr (GTorchTensor) product = NULL;
  g_autoptr (GError) error = NULL;

  gtorch_set_detect_anomaly (TRUE, FALSE);
  g_assert_true (gtorch_is_anomaly_enabled ());
  g_assert_false (gtorch_is_anomaly_check_nan_enabled ());
  product = compute_root_of_zero ();
  g_assert_true (gtorch_tensor_backward (product, NULL, FALSE, FALSE, &error));
  g_assert_no_error (error);
  gtorch_set_detect_anomaly (FALSE, FALSE);
  g_assert_false (gtorch_is_anomaly_check_nan_enabled ());
  gtorch_set_detect_anomaly (FALSE, TRUE);
}

static void
test_other_errors_name_the_place_too (void)
{
  g_autoptr (GTorchTensor) product = NULL;
  g_autoptr (GError) error = NULL;

  gtorch_set_detect_anomaly (TRUE, FALSE);
  product = compute_root_of_zero ();
  g_assert_true (gtorch_tensor_backward (product, NULL, FALSE, FALSE, NULL));
  g_assert_false (gtorch_tensor_backward (product, NULL, FALSE, FALSE, &error));
  gtorch_set_detect_anomaly (FALSE, TRUE);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  g_assert_true (g_str_has_prefix (error->message, "backward of mul: "));
  g_assert_nonnull (strstr (error->message, "was freed by an earlier backward"));
  g_assert_nonnull (strstr (error->message, "; the operation was called by "));
}

static void
test_gradients_without_nan_are_as_before (void)
{
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (2), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GTorchTensor) twice = NULL;
  g_autoptr (GTorchTensor) sum = NULL;
  g_autoptr (GTorchTensor) grad = NULL;
  g_autoptr (GTorchTensor) first = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_tensor_set_requires_grad (x, TRUE, NULL));
  gtorch_set_detect_anomaly (TRUE, TRUE);
  twice = gtorch_tensor_mul_scalar (x, 2, NULL);
  sum = gtorch_tensor_sum (twice, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL);
  g_assert_true (gtorch_tensor_backward (sum, NULL, FALSE, FALSE, &error));
  gtorch_set_detect_anomaly (FALSE, TRUE);
  g_assert_no_error (error);
  grad = gtorch_tensor_get_grad (x);
  first = gtorch_tensor_sum (grad, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL);
  g_assert_cmpfloat (gtorch_tensor_item_double (first, NULL), ==, 4);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/anomaly/off_at_first", test_off_at_first);
  g_test_add_func ("/GTorch/anomaly/nan_names_the_operation_and_its_place",
                   test_nan_names_the_operation_and_its_place);
  g_test_add_func ("/GTorch/anomaly/a_function_tells_the_place", test_a_function_tells_the_place);
  g_test_add_func ("/GTorch/anomaly/without_a_site_only_the_operation_is_named",
                   test_without_a_site_only_the_operation_is_named);
  g_test_add_func ("/GTorch/anomaly/nan_is_allowed_without_the_check",
                   test_nan_is_allowed_without_the_check);
  g_test_add_func ("/GTorch/anomaly/other_errors_name_the_place_too",
                   test_other_errors_name_the_place_too);
  g_test_add_func ("/GTorch/anomaly/gradients_without_nan_are_as_before",
                   test_gradients_without_nan_are_as_before);
  return g_test_run ();
}
