/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <math.h>
#include <string.h>

#include "test-device.h"

static GTorchTensor *
range (gint64 n, GTorchDType dtype)
{
  return gtorch_arange (0, n, 1, dtype, NULL, NULL);
}

static void
contiguous_bytes_show_the_memory (void)
{
  g_autoptr (GTorchTensor) x = range (6, GTORCH_DTYPE_FLOAT32);
  g_autoptr (GTorchTensor) part = gtorch_tensor_slice (x, 0, 2, 5, 1, NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = gtorch_tensor_get_bytes (part, &error);
  const gfloat *values;
  gsize n_bytes;

  if (test_is_elsewhere ("bytes of another device are a copy"))
    return;
  g_assert_no_error (error);
  values = g_bytes_get_data (bytes, &n_bytes);
  g_assert_cmpuint (n_bytes, ==, 12);
  g_assert_cmpuint ((gsize) values, ==, gtorch_tensor_get_data_ptr (x) + 8);
  g_assert_cmpfloat (values[0], ==, 2);
  g_assert_nonnull (gtorch_tensor_add_scalar_inplace (x, 10, 1, NULL));
  g_assert_cmpfloat (values[0], ==, 12);
}

static void
bytes_outlive_the_tensor (void)
{
  GTorchTensor *x = range (1000, GTORCH_DTYPE_INT64);
  g_autoptr (GBytes) bytes = gtorch_tensor_get_bytes (x, NULL);
  guint i;

  gtorch_tensor_release (x);
  g_object_unref (x);
  for (i = 0; i < 20; i++)
    {
      g_autoptr (GTorchTensor) other =
          gtorch_ones (GTORCH_SHAPE (1000), GTORCH_DTYPE_INT64, NULL, NULL);
    }
  g_assert_cmpint (((const gint64 *) g_bytes_get_data (bytes, NULL))[999], ==, 999);
}

static void
strided_bytes_are_a_copy (void)
{
  g_autoptr (GTorchTensor) x = range (6, GTORCH_DTYPE_INT16);
  g_autoptr (GTorchTensor) matrix = gtorch_tensor_reshape (x, GTORCH_SHAPE (2, 3), NULL);
  g_autoptr (GTorchTensor) transposed = gtorch_tensor_t (matrix, NULL);
  g_autoptr (GBytes) bytes = gtorch_tensor_get_bytes (transposed, NULL);
  const gint16 expected[] = { 0, 3, 1, 4, 2, 5 };

  g_assert_cmpmem (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes), expected,
                   sizeof expected);
}

static void
empty_tensors_have_no_bytes (void)
{
  g_autoptr (GTorchTensor) x = gtorch_zeros (GTORCH_SHAPE (0, 3), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GBytes) bytes = gtorch_tensor_get_bytes (x, NULL);
  g_autofree gdouble *values = NULL;
  gsize n = 1;

  g_assert_cmpuint (g_bytes_get_size (bytes), ==, 0);
  values = gtorch_tensor_to_doubles (x, &n, NULL);
  g_assert_cmpuint (n, ==, 0);
  g_assert_cmpuint (gtorch_tensor_get_data_ptr (x), ==, 0);
}

static void
values_come_in_order (void)
{
  g_autoptr (GTorchTensor) x = range (24, GTORCH_DTYPE_BFLOAT16);
  g_autoptr (GTorchTensor) cube = gtorch_tensor_reshape (x, GTORCH_SHAPE (2, 3, 4), NULL);
  g_autoptr (GTorchTensor) permuted = gtorch_tensor_permute (cube, GTORCH_SHAPE (2, 0, 1), NULL);
  g_autofree gdouble *doubles = NULL;
  g_autofree gint64 *ints = NULL;
  gsize n = 0, i, j, k;

  doubles = gtorch_tensor_to_doubles (permuted, &n, NULL);
  g_assert_cmpuint (n, ==, 24);
  ints = gtorch_tensor_to_ints (permuted, &n, NULL);
  for (i = 0; i < 4; i++)
    for (j = 0; j < 2; j++)
      for (k = 0; k < 3; k++)
        {
          g_assert_cmpfloat (doubles[(i * 2 + j) * 3 + k], ==, j * 12 + k * 4 + i);
          g_assert_cmpint (ints[(i * 2 + j) * 3 + k], ==, (gint64) (j * 12 + k * 4 + i));
        }
}

static void
too_many_values_are_an_error (void)
{
  g_autoptr (GTorchTensor) one = gtorch_ones (NULL, 0, GTORCH_DTYPE_UINT8, NULL, NULL);
  g_autoptr (GTorchTensor) huge =
      gtorch_tensor_expand (one, GTORCH_SHAPE (G_GINT64_CONSTANT (1) << 50), NULL);
  g_autoptr (GError) error = NULL;
  gsize n;

  g_assert_nonnull (huge);
  g_assert_null (gtorch_tensor_to_doubles (huge, &n, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
  g_assert_true (g_str_has_prefix (error->message, "to_doubles: "));
  g_clear_error (&error);
  g_assert_null (gtorch_tensor_get_bytes (huge, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
}

static void
item_takes_one_element_of_any_shape (void)
{
  g_autoptr (GTorchTensor) x = range (6, GTORCH_DTYPE_FLOAT16);
  g_autoptr (GTorchTensor) last = gtorch_tensor_slice (x, 0, 5, 6, 1, NULL);
  g_autoptr (GTorchTensor) cube = gtorch_tensor_reshape (last, GTORCH_SHAPE (1, 1, 1), NULL);
  gboolean value = FALSE;

  g_assert_cmpfloat (gtorch_tensor_item_double (cube, NULL), ==, 5);
  g_assert_cmpint (gtorch_tensor_item_int (cube, NULL), ==, 5);
  g_assert_true (gtorch_tensor_item_bool (cube, &value, NULL));
  g_assert_true (value);
}

static void
item_of_many_is_an_error (void)
{
  g_autoptr (GTorchTensor) x = gtorch_zeros (GTORCH_SHAPE (2, 3), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) none = gtorch_zeros (GTORCH_SHAPE (0), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) c = gtorch_ones (NULL, 0, GTORCH_DTYPE_COMPLEX128, NULL, NULL);
  g_autoptr (GTorchTensor) nan = gtorch_full (NULL, 0, NAN, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GError) error = NULL;
  gboolean value;

  gtorch_tensor_item_double (x, &error);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_cmpstr (error->message, ==, "item: a tensor of shape [2, 3] has 6 elements, not one");
  g_clear_error (&error);
  gtorch_tensor_item_int (none, &error);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_clear_error (&error);
  g_assert_false (gtorch_tensor_item_bool (none, &value, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_clear_error (&error);
  gtorch_tensor_item_double (c, &error);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE);
  g_clear_error (&error);
  gtorch_tensor_item_int (nan, &error);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "item: nan is not an integer");
}

static void
released_tensors_are_errors (void)
{
  g_autoptr (GTorchTensor) x = gtorch_zeros (GTORCH_SHAPE (1), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GError) error = NULL;
  gsize n;

  g_assert_false (gtorch_tensor_is_released (x));
  gtorch_tensor_release (x);
  gtorch_tensor_release (x);
  g_assert_true (gtorch_tensor_is_released (x));
  g_assert_cmpint (gtorch_tensor_get_numel (x), ==, 1);
  g_assert_cmpuint (gtorch_tensor_get_data_ptr (x), ==, 0);
  g_assert_null (gtorch_tensor_get_bytes (x, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED);
  g_assert_true (g_str_has_prefix (error->message, "get_bytes: "));
  g_clear_error (&error);
  gtorch_tensor_item_double (x, &error);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED);
  g_clear_error (&error);
  g_assert_null (gtorch_tensor_to_ints (x, &n, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED);
  g_clear_error (&error);
  g_assert_null (gtorch_tensor_add (x, x, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED);
  g_assert_true (g_str_has_prefix (error->message, "add: "));
  g_clear_error (&error);
  g_assert_null (gtorch_tensor_zero_inplace (x, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED);
}

static void
release_frees_at_once (void)
{
  GTorchDevice *device = test_device ();
  guint64 before = gtorch_device_get_memory_allocated (device), with;
  g_autoptr (GTorchTensor) x =
      gtorch_zeros (GTORCH_SHAPE (1 << 20), GTORCH_DTYPE_FLOAT32, NULL, NULL);

  with = gtorch_device_get_memory_allocated (device);
  g_assert_cmpuint (with, >=, before + (4 << 20));
  gtorch_tensor_release (x);
  g_assert_cmpuint (gtorch_device_get_memory_allocated (device), <=, with - (4 << 20));
}

static void
release_leaves_views (void)
{
  g_autoptr (GTorchTensor) x = range (6, GTORCH_DTYPE_FLOAT32);
  g_autoptr (GTorchTensor) view = gtorch_tensor_slice (x, 0, 3, 6, 1, NULL);
  g_autofree gdouble *values = NULL;
  gsize n = 0;

  gtorch_tensor_release (x);
  values = gtorch_tensor_to_doubles (view, &n, NULL);
  g_assert_cmpuint (n, ==, 3);
  g_assert_cmpfloat (values[0], ==, 3);
}

static void
backward_survives_releases (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = range (3, GTORCH_DTYPE_FLOAT32);
  g_autoptr (GTorchTensor) w = gtorch_tensor_clone (x, NULL);
  g_autoptr (GTorchTensor) middle = NULL;
  g_autoptr (GTorchTensor) view = NULL;
  g_autoptr (GTorchTensor) loss = NULL;
  g_autoptr (GTorchTensor) grad = NULL;

  gtorch_tensor_set_requires_grad (x, TRUE, &error);
  gtorch_tensor_set_requires_grad (w, TRUE, &error);
  g_assert_no_error (error);
  middle = gtorch_tensor_mul (x, w, &error);
  view = gtorch_tensor_slice (middle, 0, 1, 3, 1, &error);
  gtorch_tensor_release (middle);
  g_assert_nonnull (gtorch_tensor_mul_scalar_inplace (view, 2, &error));
  loss = gtorch_tensor_sum (view, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  g_assert_no_error (error);
  gtorch_tensor_release (view);
  gtorch_tensor_backward (loss, NULL, FALSE, FALSE, &error);
  g_assert_no_error (error);
  grad = gtorch_tensor_get_grad (x);
  g_assert_nonnull (grad);
  {
    g_autofree gdouble *values = NULL;
    gsize n;

    values = gtorch_tensor_to_doubles (grad, &n, NULL);
    g_assert_cmpfloat (values[0], ==, 0);
    g_assert_cmpfloat (values[2], ==, 4);
  }
  gtorch_tensor_release (loss);
  g_assert_false (gtorch_tensor_backward (loss, NULL, FALSE, FALSE, &error));
  g_assert_nonnull (error);
}

static void
backward_keeps_what_it_needs (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = range (3, GTORCH_DTYPE_FLOAT32);
  g_autoptr (GTorchTensor) w = range (3, GTORCH_DTYPE_FLOAT32);
  g_autoptr (GTorchTensor) product = NULL;
  g_autoptr (GTorchTensor) loss = NULL;
  g_autoptr (GTorchTensor) grad = NULL;
  g_autofree gdouble *values = NULL;
  gsize n;

  gtorch_tensor_set_requires_grad (x, TRUE, NULL);
  product = gtorch_tensor_mul (x, w, NULL);
  loss = gtorch_tensor_sum (product, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL);
  gtorch_tensor_release (product);
  gtorch_tensor_release (w);
  gtorch_tensor_backward (loss, NULL, FALSE, FALSE, &error);
  g_assert_no_error (error);
  grad = gtorch_tensor_get_grad (x);
  values = gtorch_tensor_to_doubles (grad, &n, NULL);
  g_assert_cmpfloat (values[2], ==, 2);
}

static void
reading_waits_for_the_stream (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchStream) stream = gtorch_stream_new (NULL, 0, &error);
  g_autoptr (GTorchTensor) x =
      gtorch_ones (GTORCH_SHAPE (1 << 20), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) y = g_object_ref (x);
  g_autofree gdouble *values = NULL;
  gsize n;
  guint i;

  g_assert_no_error (error);
  g_assert_true (gtorch_stream_wait_stream (stream, gtorch_stream_get_current (NULL), &error));
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

    for (i = 0; i < 20; i++)
      {
        GTorchTensor *sum = gtorch_tensor_add (y, x, 1, &error);

        g_assert_no_error (error);
        g_object_unref (y);
        y = sum;
      }
  }
  values = gtorch_tensor_to_doubles (y, &n, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (values[n - 1], ==, 21);
}

static void
reading_in_a_capture_is_an_error (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchStream) stream = gtorch_stream_new (NULL, 0, NULL);
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) x = gtorch_ones (NULL, 0, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);
  g_autoptr (GTorchTensor) y = NULL;

  if (!test_can_capture ())
    return;
  gtorch_cuda_graph_capture_begin (graph, NULL, GTORCH_CAPTURE_MODE_GLOBAL, &error);
  g_assert_no_error (error);
  y = gtorch_tensor_mul (x, x, &error);
  gtorch_tensor_item_double (y, &error);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE);
  g_assert_true (g_str_has_prefix (error->message, "item: "));
  g_clear_error (&error);
  g_assert_null (gtorch_tensor_get_bytes (y, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE);
  g_clear_error (&error);
  gtorch_cuda_graph_capture_end (graph, &error);
}

static void
dtypes_of_memory_are_shown (void)
{
  g_autoptr (GTorchTensor) x =
      gtorch_ones ((const gint64[]){ 2, 4 }, 2, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) bits = gtorch_tensor_view_dtype (x, GTORCH_DTYPE_INT32, NULL);
  g_autoptr (GTorchTensor) wide = gtorch_tensor_view_dtype (x, GTORCH_DTYPE_FLOAT64, NULL);
  g_autoptr (GTorchTensor) narrow = gtorch_tensor_view_dtype (x, GTORCH_DTYPE_INT16, NULL);
  g_autoptr (GTorchTensor) back = gtorch_tensor_view_dtype (narrow, GTORCH_DTYPE_FLOAT32, NULL);
  g_autofree gint64 *values = NULL;
  const gint64 *shape;
  gsize n;

  values = gtorch_tensor_to_ints (bits, &n, NULL);
  g_assert_cmpuint (n, ==, 8);
  g_assert_cmpint (values[5], ==, 0x3f800000);
  shape = gtorch_tensor_get_shape (wide, &n);
  g_assert_true (n == 2 && shape[0] == 2 && shape[1] == 2);
  shape = gtorch_tensor_get_shape (narrow, &n);
  g_assert_true (n == 2 && shape[0] == 2 && shape[1] == 8);
  g_assert_cmpuint (gtorch_tensor_get_data_ptr (narrow), ==, gtorch_tensor_get_data_ptr (x));
  g_assert_true (gtorch_tensor_fill_inplace (back, 2, NULL) != NULL);
  g_assert_cmpuint (gtorch_tensor_get_version (x), ==, 1);
}

static void
check_refused (GTorchTensor *self, GTorchDType dtype, gint code, const gchar *text)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_tensor_view_dtype (self, dtype, &error));
  g_assert_error (error, GTORCH_ERROR, code);
  g_assert_true (g_str_has_prefix (error->message, text));
}

static void
dtypes_that_do_not_fit_are_refused (void)
{
  g_autoptr (GTorchTensor) x =
      gtorch_ones ((const gint64[]){ 2, 3 }, 2, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) turned = gtorch_tensor_transpose (x, 0, 1, NULL);
  g_autoptr (GTorchTensor) number = gtorch_ones (NULL, 0, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  const gchar *const shape = "view_dtype: shape ";

  check_refused (x, GTORCH_DTYPE_FLOAT64, GTORCH_ERROR_SHAPE, shape);
  check_refused (turned, GTORCH_DTYPE_INT16, GTORCH_ERROR_SHAPE, shape);
  check_refused (number, GTORCH_DTYPE_INT16, GTORCH_ERROR_SHAPE, shape);
  check_refused (x, GTORCH_DTYPE_BOOL, GTORCH_ERROR_INVALID, "view_dtype: memory of float32");
  check_refused (x, GTORCH_DTYPE_NONE, GTORCH_ERROR_DTYPE, "view_dtype: 0 is no dtype");
  gtorch_tensor_release (x);
  check_refused (x, GTORCH_DTYPE_INT32, GTORCH_ERROR_RELEASED,
                 "view_dtype: the tensor of shape [2, 3]");
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
#define ADD(fact) g_test_add_func ("/GTorch/tensor-bytes/" #fact, fact)
  ADD (contiguous_bytes_show_the_memory);
  ADD (bytes_outlive_the_tensor);
  ADD (strided_bytes_are_a_copy);
  ADD (empty_tensors_have_no_bytes);
  ADD (values_come_in_order);
  ADD (too_many_values_are_an_error);
  ADD (item_takes_one_element_of_any_shape);
  ADD (item_of_many_is_an_error);
  ADD (released_tensors_are_errors);
  ADD (release_frees_at_once);
  ADD (release_leaves_views);
  ADD (backward_survives_releases);
  ADD (backward_keeps_what_it_needs);
  ADD (reading_waits_for_the_stream);
  ADD (reading_in_a_capture_is_an_error);
  ADD (dtypes_of_memory_are_shown);
  ADD (dtypes_that_do_not_fit_are_refused);
  return g_test_run ();
}
