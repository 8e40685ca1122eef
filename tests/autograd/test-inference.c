/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Inference mode, and what becomes of the tensors that are made in it. */

#include "config.h"

#include <string.h>

#include "test-device.h"

static GTorchTensor *
ones (gint64 n)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *result = gtorch_ones (GTORCH_SHAPE (n), GTORCH_DTYPE_FLOAT32, NULL, &error);

  g_assert_no_error (error);
  return result;
}

/* Returns a tensor that was made in inference mode. */
static GTorchTensor *
ones_for_inference (gint64 n)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_inference_mode (TRUE);

  return ones (n);
}

static void
assert_refused (gboolean success, GError **error, const gchar *op, const gchar *what)
{
  g_assert_false (success);
  g_assert_error (*error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  g_assert_true (g_str_has_prefix ((*error)->message, op));
  g_assert_nonnull (strstr ((*error)->message, "was made in inference mode and cannot "));
  g_assert_nonnull (strstr ((*error)->message, what));
  g_clear_error (error);
}

static void
guards_nest (void)
{
  g_autoptr (GTorchGradGuard) outer = NULL;
  g_autoptr (GTorchGradGuard) inner = NULL;

  g_assert_false (gtorch_is_inference_mode_enabled ());
  outer = gtorch_inference_mode (TRUE);
  g_assert_true (gtorch_is_inference_mode_enabled ());
  g_assert_false (gtorch_is_grad_enabled ());
  inner = gtorch_enable_grad ();
  g_assert_true (gtorch_is_inference_mode_enabled ());
  g_assert_false (gtorch_is_grad_enabled ());
  gtorch_grad_guard_end (inner);
  g_clear_pointer (&inner, gtorch_grad_guard_unref);
  g_assert_false (gtorch_set_grad_enabled (TRUE));
  g_assert_false (gtorch_is_grad_enabled ());
  inner = gtorch_inference_mode (FALSE);
  g_assert_false (gtorch_is_inference_mode_enabled ());
  g_assert_true (gtorch_is_grad_enabled ());
  gtorch_grad_guard_end (outer); /* the younger one decides */
  g_assert_false (gtorch_is_inference_mode_enabled ());
  gtorch_grad_guard_end (inner);
  g_assert_false (gtorch_is_inference_mode_enabled ());
  g_assert_true (gtorch_is_grad_enabled ());
}

static gpointer
make_in_thread (gpointer data)
{
  return ones (2);
}

static void
mode_belongs_to_thread (void)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_inference_mode (TRUE);
  g_autoptr (GTorchTensor) other = g_thread_join (g_thread_new ("other", make_in_thread, NULL));
  g_autoptr (GTorchTensor) own = ones (2);

  g_assert_false (gtorch_tensor_is_inference (other));
  g_assert_true (gtorch_tensor_is_inference (own));
}

static void
views_are_of_the_kind_of_their_base (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) normal = ones (6);
  g_autoptr (GTorchTensor) x = ones_for_inference (6);
  g_autoptr (GTorchTensor) outside = gtorch_tensor_view (x, GTORCH_SHAPE (2, 3), &error);
  g_autoptr (GTorchTensor) bits = gtorch_tensor_view_dtype (x, GTORCH_DTYPE_INT32, &error);
  g_autoptr (GTorchTensor) detached = gtorch_tensor_detach (x, &error);
  g_autoptr (GTorchTensor) sum = gtorch_tensor_add (x, x, 1, &error);
  g_autoptr (GTorchTensor) clone = gtorch_tensor_clone (x, &error);
  g_autoptr (GTorchGradGuard) guard = gtorch_inference_mode (TRUE);
  g_autoptr (GTorchTensor) inside = gtorch_tensor_view (normal, GTORCH_SHAPE (2, 3), &error);

  g_assert_no_error (error);
  g_assert_true (gtorch_tensor_is_inference (outside));
  g_assert_true (gtorch_tensor_is_inference (bits));
  g_assert_true (gtorch_tensor_is_inference (detached));
  g_assert_false (gtorch_tensor_is_inference (sum));
  g_assert_false (gtorch_tensor_is_inference (clone));
  g_assert_false (gtorch_tensor_is_inference (inside));
}

static void
changes_in_place_are_refused_outside (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) normal = ones (4);
  g_autoptr (GTorchTensor) x = ones_for_inference (4);
  g_autoptr (GTorchTensor) view = gtorch_tensor_view (x, GTORCH_SHAPE (2, 2), &error);
  g_autoptr (GTorchGradGuard) guard = NULL;

  assert_refused (gtorch_tensor_add_inplace (x, normal, 1, &error) != NULL, &error,
                  "add: ", "be changed in place outside of it: clone it before");
  assert_refused (gtorch_tensor_relu_inplace (x, &error) != NULL, &error, "relu: ", "[4]");
  assert_refused (gtorch_tensor_zero_inplace (view, &error) != NULL, &error, "zero: ", "[2, 2]");
  guard = gtorch_no_grad ();
  assert_refused (gtorch_tensor_copy_inplace (x, normal, FALSE, &error) != NULL, &error,
                  "copy: ", "outside of it");
  gtorch_grad_guard_end (guard);
  g_clear_pointer (&guard, gtorch_grad_guard_unref);
  g_assert_cmpfloat (test_element (x, 0), ==, 1);
  g_assert_nonnull (gtorch_tensor_add_inplace (normal, x, 1, &error));
  guard = gtorch_inference_mode (TRUE);
  g_assert_nonnull (gtorch_tensor_add_inplace (x, normal, 1, &error));
  g_assert_nonnull (gtorch_tensor_relu_inplace (view, &error));
  g_assert_no_error (error);
  g_assert_cmpfloat (test_element (x, 3), ==, 3);
}

static void
nothing_is_saved_for_backward (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = ones_for_inference (3);
  g_autoptr (GTorchTensor) weight = ones (3);
  g_autoptr (GTorchTensor) product = NULL;
  g_autoptr (GTorchTensor) sum = NULL;

  g_assert_true (gtorch_tensor_set_requires_grad (weight, TRUE, &error));
  product = gtorch_tensor_mul (x, weight, &error);
  assert_refused (product != NULL, &error, "mul: ", "be saved for a backward pass");
  sum = gtorch_tensor_add (x, weight, 1, &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_tensor_get_requires_grad (sum));
}

static void
none_requires_grad_outside (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = ones_for_inference (3);
  g_autoptr (GTorchParameter) parameter = NULL;
  g_autoptr (GTorchGradGuard) guard = NULL;

  assert_refused (gtorch_tensor_set_requires_grad (x, TRUE, &error), &error,
                  "requires_grad: ", "require grad outside of it");
  parameter = gtorch_parameter_new (x, TRUE, &error);
  assert_refused (parameter != NULL, &error, "requires_grad: ", "[3]");
  g_assert_true (gtorch_tensor_set_requires_grad (x, FALSE, &error));
  guard = gtorch_inference_mode (TRUE);
  g_assert_true (gtorch_tensor_set_requires_grad (x, TRUE, &error));
  g_assert_no_error (error);
}

static void
ordinary_tensors_stay_ordinary (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = ones (3);
  g_autoptr (GTorchTensor) weight = ones (3);
  g_autoptr (GTorchTensor) product = NULL;
  g_autoptr (GTorchTensor) total = NULL;
  g_autoptr (GTorchGradGuard) guard = NULL;

  g_assert_true (gtorch_tensor_set_requires_grad (weight, TRUE, &error));
  product = gtorch_tensor_mul (x, weight, &error);
  total = gtorch_tensor_sum (product, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  guard = gtorch_inference_mode (TRUE);
  g_assert_nonnull (gtorch_tensor_add_inplace (x, x, 1, &error));
  g_assert_false (gtorch_tensor_is_inference (x));
  g_assert_cmpuint (gtorch_tensor_get_version (x), ==, 1);
  gtorch_grad_guard_end (guard);
  g_assert_no_error (error);
  g_assert_false (gtorch_tensor_backward (total, NULL, FALSE, FALSE, &error)); /* x was saved */
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
}

static void
streams_write_to_them (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchStream) stream = gtorch_stream_new (NULL, 0, &error);
  g_autoptr (GTorchStreamGuard) within = gtorch_stream_guard_new (stream);
  g_autoptr (GTorchGradGuard) guard = gtorch_inference_mode (TRUE);
  g_autoptr (GTorchTensor) x = ones (4);
  g_autoptr (GTorchTensor) product = NULL;

  g_assert_nonnull (gtorch_tensor_add_inplace (x, x, 1, &error));
  product = gtorch_tensor_mul (x, x, &error);
  g_assert_no_error (error);
  gtorch_grad_guard_end (guard);
  g_assert_true (gtorch_stream_synchronize (stream, NULL, &error));
  g_assert_true (gtorch_tensor_is_inference (product));
  g_assert_cmpfloat (test_element (product, 3), ==, 4);
}

#define TEST(name) g_test_add_func ("/GTorch/Inference/" #name, name)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  TEST (guards_nest);
  TEST (mode_belongs_to_thread);
  TEST (views_are_of_the_kind_of_their_base);
  TEST (changes_in_place_are_refused_outside);
  TEST (nothing_is_saved_for_backward);
  TEST (none_requires_grad_outside);
  TEST (ordinary_tensors_stay_ordinary);
  TEST (streams_write_to_them);
  return g_test_run ();
}
