/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The door for backends, seen from a program that adds one. */

#include "config.h"

#include <gtorch/gtorch.h>

#include "plain-device.h"

static GTorchDevice *plain;

static void
device_is_found_by_its_name (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchDevice) current = gtorch_device_new_from_string ("plain", &error);
  g_autoptr (GTorchDevice) second = NULL;
  g_autofree gchar *text = gtorch_device_to_string (plain);

  g_assert_no_error (error);
  g_assert_cmpstr (text, ==, "plain:0");
  g_assert_cmpint (gtorch_device_get_device_type (plain), ==, GTORCH_DEVICE_TYPE_PRIVATE);
  g_assert_cmpint (gtorch_device_get_device_type (current), ==, GTORCH_DEVICE_TYPE_PRIVATE);
  g_assert_cmpint (gtorch_device_get_index (current), ==, -1);
  g_assert_cmpuint (gtorch_device_get_total_memory (plain), ==, (guint64) 1 << 32);
  second = gtorch_device_new_from_string ("plain:1", &error);
  g_assert_null (second);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE);
  g_assert_nonnull (strstr (error->message, "“plain:1”"));
}

static void
device_is_listed (void)
{
  GListModel *all = G_LIST_MODEL (gtorch_device_manager_get_default ());
  guint i, n = g_list_model_get_n_items (all), found = 0;

  for (i = 0; i < n; i++)
    {
      g_autoptr (GTorchDevice) device = g_list_model_get_item (all, i);

      found += device == plain;
    }
  g_assert_cmpuint (found, ==, 1);
}

static void
elements_come_back (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = gtorch_arange (0, 6, 1, GTORCH_DTYPE_FLOAT32, plain, &error);
  g_autoptr (GTorchTensor) y = gtorch_tensor_mul_scalar (x, 2, &error);
  g_autoptr (GTorchTensor) back = NULL;
  gdouble sum;

  g_assert_no_error (error);
  g_assert_true (gtorch_tensor_get_device (y) == plain);
  back = gtorch_tensor_to_device (y, gtorch_device_cpu (), FALSE, &error);
  g_assert_no_error (error);
  g_clear_object (&x);
  x = gtorch_tensor_sum (back, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  sum = gtorch_tensor_item_double (x, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (sum, ==, 30);
}

static void
missing_operation_is_named (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (3), GTORCH_DTYPE_FLOAT32, plain, &error);
  g_autoptr (GTorchTensor) y = gtorch_tensor_cumprod (x, 0, GTORCH_DTYPE_NONE, &error);

  g_assert_null (y);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_assert_true (g_str_has_prefix (error->message, "cumprod: "));
  g_assert_nonnull (strstr (error->message, "plain:0"));
}

static void
what_the_backend_leaves_out_is_refused (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchStream) external = gtorch_stream_new_external (plain, NULL, &error);
  g_autoptr (GTorchTensor) x = NULL;
  gint64 n;

  g_assert_null (external);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_clear_error (&error);
  g_assert_false (gtorch_device_can_access_peer (plain, gtorch_device_cpu ()));
  g_assert_false (gtorch_device_enable_peer (plain, gtorch_device_cpu (), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  for (n = 0; n < 2; n++) /* tensors without elements, too */
    {
      g_autoptr (GTorchTensorHandle) handle = NULL;

      g_clear_error (&error);
      g_clear_object (&x);
      x = gtorch_zeros (&n, 1, GTORCH_DTYPE_FLOAT32, plain, NULL);
      handle = gtorch_tensor_handle_new (x, &error);
      g_assert_null (handle);
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
      g_assert_nonnull (strstr (error->message, "the device cannot share memory"));
    }
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_setenv ("GTORCH_TEST_LACKS", "cumprod", TRUE);
  plain_backend_add ();
  plain = plain_backend.get (0, NULL);
  g_test_add_func ("/GTorch/backend/device_is_found_by_its_name", device_is_found_by_its_name);
  g_test_add_func ("/GTorch/backend/device_is_listed", device_is_listed);
  g_test_add_func ("/GTorch/backend/elements_come_back", elements_come_back);
  g_test_add_func ("/GTorch/backend/missing_operation_is_named", missing_operation_is_named);
  g_test_add_func ("/GTorch/backend/what_the_backend_leaves_out_is_refused",
                   what_the_backend_leaves_out_is_refused);
  return g_test_run ();
}
