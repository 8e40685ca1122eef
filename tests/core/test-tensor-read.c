/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Asynchronous reads of all elements. */

#include "config.h"

#include <string.h>

#include <gtorch/gtorch.h>

#include "../test-device.h"

static void
take_result (GObject *source, GAsyncResult *result, gpointer data)
{
  *(GAsyncResult **) data = g_object_ref (result);
}

static GAsyncResult *
wait_for (GAsyncResult **result)
{
  while (*result == NULL)
    g_main_context_iteration (NULL, TRUE);
  return *result;
}

static void
all_elements_arrive (void)
{
  g_autoptr (GTorchTensor) tensor = gtorch_arange_int (0, 6, 1, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GAsyncResult) doubles = NULL, ints = NULL, bytes = NULL;
  g_autofree gdouble *numbers = NULL;
  g_autofree gint64 *wholes = NULL;
  g_autoptr (GBytes) data = NULL;
  gsize n = 0, m = 0;

  gtorch_tensor_to_doubles_async (tensor, NULL, take_result, &doubles);
  gtorch_tensor_to_ints_async (tensor, NULL, take_result, &ints);
  gtorch_tensor_get_bytes_async (tensor, NULL, take_result, &bytes);
  g_assert_true (gtorch_tensor_zero_inplace (tensor, NULL)); /* is not seen */
  numbers = gtorch_tensor_to_doubles_finish (tensor, wait_for (&doubles), &n, NULL);
  wholes = gtorch_tensor_to_ints_finish (tensor, wait_for (&ints), &m, NULL);
  data = gtorch_tensor_get_bytes_finish (tensor, wait_for (&bytes), NULL);
  g_assert_cmpuint (n, ==, 6);
  g_assert_cmpuint (m, ==, 6);
  g_assert_nonnull (data);
  g_assert_cmpuint (g_bytes_get_size (data), ==, 6 * sizeof (gfloat));
  for (guint i = 0; i < 6; i++)
    {
      gfloat number;

      memcpy (&number, (const gfloat *) g_bytes_get_data (data, NULL) + i, sizeof (number));
      g_assert_cmpfloat (numbers[i], ==, i);
      g_assert_cmpint (wholes[i], ==, i);
      g_assert_cmpfloat ((gdouble) number, ==, i);
    }
}

static void
strided_elements_are_in_order (void)
{
  g_autoptr (GTorchTensor) range = gtorch_arange_int (0, 6, 1, GTORCH_DTYPE_INT64, NULL, NULL);
  g_autoptr (GTorchTensor) matrix = gtorch_tensor_reshape (range, GTORCH_SHAPE (2, 3), NULL);
  g_autoptr (GTorchTensor) turned = gtorch_tensor_transpose (matrix, 0, 1, NULL);
  const gint64 wanted[] = { 0, 3, 1, 4, 2, 5 };
  g_autoptr (GAsyncResult) result = NULL, bytes = NULL;
  g_autofree gint64 *found = NULL;
  g_autoptr (GBytes) data = NULL;
  gsize n = 0;

  gtorch_tensor_to_ints_async (turned, NULL, take_result, &result);
  gtorch_tensor_get_bytes_async (turned, NULL, take_result, &bytes);
  found = gtorch_tensor_to_ints_finish (turned, wait_for (&result), &n, NULL);
  data = gtorch_tensor_get_bytes_finish (turned, wait_for (&bytes), NULL);
  g_assert_cmpmem (found, n * sizeof (gint64), wanted, sizeof (wanted));
  g_assert_cmpmem (g_bytes_get_data (data, NULL), g_bytes_get_size (data), wanted, sizeof (wanted));
}

static void
reads_can_be_cancelled (void)
{
  g_autoptr (GTorchTensor) tensor =
      gtorch_ones (GTORCH_SHAPE (2), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GAsyncResult) result = NULL;
  g_autoptr (GError) error = NULL;

  g_cancellable_cancel (cancellable);
  gtorch_tensor_get_bytes_async (tensor, cancellable, take_result, &result);
  g_assert_null (gtorch_tensor_get_bytes_finish (tensor, wait_for (&result), &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

static void
failures_are_reported (void)
{
  g_autoptr (GTorchTensor) tensor =
      gtorch_full (GTORCH_SHAPE (1), G_MAXDOUBLE, GTORCH_DTYPE_FLOAT64, NULL, NULL);
  g_autoptr (GTorchTensor) released =
      gtorch_ones (GTORCH_SHAPE (1), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GAsyncResult) first = NULL, second = NULL, third = NULL;
  g_autoptr (GError) error = NULL;
  gsize n = 77;

  gtorch_tensor_to_ints_async (tensor, NULL, take_result, &first);
  g_assert_null (gtorch_tensor_to_ints_finish (tensor, wait_for (&first), &n, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpuint (n, ==, 77);
  g_clear_error (&error);
  gtorch_tensor_release (released);
  gtorch_tensor_get_bytes_async (released, NULL, take_result, &second);
  g_assert_null (gtorch_tensor_get_bytes_finish (released, wait_for (&second), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED);
  g_clear_error (&error);
  gtorch_tensor_to_doubles_async (tensor, NULL, take_result, &third);
  g_assert_null (
      gtorch_tensor_get_bytes_finish (tensor, wait_for (&third), &error)); /* of another function */
  g_assert_nonnull (error);
}

#define TEST(name) g_test_add_func ("/GTorch/tensor-read/" #name, name)

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  TEST (all_elements_arrive);
  TEST (strided_elements_are_in_order);
  TEST (reads_can_be_cancelled);
  TEST (failures_are_reported);
  return g_test_run ();
}
