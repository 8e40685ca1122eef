/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What functions of the program give back, and arguments of functions that work on modules and gradients:
 * what does not fit is an error that names the function. */

#include "config.h"

#include <math.h>
#include <string.h>

#include "test-device.h"

#define TEST_TYPE_STRANGE (test_strange_get_type ())
G_DECLARE_FINAL_TYPE (TestStrange, test_strange, TEST, STRANGE, GTorchModule)

/* Its forward gives an object that is no tensor. */
struct _TestStrange
{
  GTorchModule parent_instance;
};

G_DEFINE_TYPE (TestStrange, test_strange, GTORCH_TYPE_MODULE)

static GTorchTensor *
stranger (void)
{
  return g_object_new (G_TYPE_OBJECT, NULL);
}

static GTorchTensor *
test_strange_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  return stranger ();
}

static void
test_strange_class_init (TestStrangeClass *klass)
{
  GTORCH_MODULE_CLASS (klass)->forward = test_strange_forward;
}

static void
test_strange_init (TestStrange *self)
{
}

static void
assert_fails (gconstpointer result, GError **error, GTorchError code, const gchar *message)
{
  g_assert_null (result);
  g_assert_error (*error, GTORCH_ERROR, code);
  g_assert_cmpstr ((*error)->message, ==, message);
  g_clear_error (error);
}

static GTorchTensor *
ones (gboolean requires_grad)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *tensor = gtorch_ones (GTORCH_SHAPE (2), GTORCH_DTYPE_FLOAT32, NULL, &error);

  g_assert_no_error (error);
  if (requires_grad)
    g_assert_true (gtorch_tensor_set_requires_grad (tensor, TRUE, &error));
  return tensor;
}

static GTorchTensor *
strange_hook (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs, GTorchTensor *output,
              gpointer data, GError **error)
{
  return stranger ();
}

static GTorchTensor *
strange_tensor_hook (GTorchTensor *grad, gpointer data, GError **error)
{
  return stranger ();
}

static GTorchTensor *
strange_closure (gpointer data, GError **error)
{
  return stranger ();
}

static GTorchTensor *
strange_distance (GTorchTensor *a, GTorchTensor *b, gpointer data, GError **error)
{
  return stranger ();
}

static GTorchTensor *
strange_function (GTorchTensor **inputs, gsize n_inputs, gpointer data, GError **error)
{
  return stranger ();
}

static void
modules_give_tensors (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = ones (FALSE);
  g_autoptr (GTorchModule) strange = g_object_new (TEST_TYPE_STRANGE, NULL);
  g_autoptr (GTorchModule) plain = GTORCH_MODULE (gtorch_relu_new ());

  assert_fails (gtorch_module_forward (strange, x, &error), &error, GTORCH_ERROR_FAILED,
                "TestStrange: forward gave a GObject, which is no GTorchTensor");
  gtorch_module_register_forward_hook (plain, strange_hook, NULL, NULL);
  assert_fails (gtorch_module_forward (plain, x, &error), &error, GTORCH_ERROR_FAILED,
                "ReLU: a forward hook gave a GObject, which is no GTorchTensor");
}

static void
functions_give_tensors (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = ones (TRUE);
  g_autoptr (GTorchTensor) wide = gtorch_ones (GTORCH_SHAPE (2), GTORCH_DTYPE_FLOAT64, NULL, NULL);
  g_autoptr (GTorchTensor) y = gtorch_tensor_sum (x, NULL, 0, FALSE, 0, NULL);
  g_autoptr (GListStore) params = g_list_store_new (GTORCH_TYPE_TENSOR);
  g_autoptr (GTorchOptimizer) optimizer = NULL;

  g_list_store_append (params, x);
  optimizer = (GTorchOptimizer *) gtorch_sgd_new (G_LIST_MODEL (params), 0.1, 0, &error);
  g_assert_no_error (error);
  assert_fails (gtorch_optimizer_step_closure (optimizer, strange_closure, NULL, &error), &error,
                GTORCH_ERROR_FAILED, "step: the closure gave a GObject, which is no GTorchTensor");
  assert_fails (gtorch_triplet_margin_with_distance_loss (x, x, x, strange_distance, NULL, 1, FALSE,
                                                          GTORCH_REDUCTION_MEAN, &error),
                &error, GTORCH_ERROR_FAILED,
                "triplet_margin_with_distance_loss: the function gave a GObject, which is no "
                "GTorchTensor");
  g_assert_true (gtorch_tensor_set_requires_grad (wide, TRUE, NULL));
  g_assert_false (gtorch_gradcheck (strange_function, NULL, &wide, 1, 1e-6, 1e-5, 1e-3, &error));
  assert_fails (NULL, &error, GTORCH_ERROR_FAILED,
                "gradcheck: the function gave a GObject, which is no GTorchTensor");
  g_assert_cmpuint (gtorch_tensor_register_hook (x, strange_tensor_hook, NULL, NULL, &error), !=,
                    0);
  g_assert_false (gtorch_tensor_backward (y, NULL, FALSE, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
  g_assert_nonnull (
      strstr (error->message,
              "register_hook: the function gave a GObject, which is no GTorchTensor"));
}

static gboolean
never (gpointer data, GError **error)
{
  g_assert_not_reached ();
}

static void
types_of_devices_are_checked (void)
{
  const GTorchDeviceType none = (GTorchDeviceType) 77;
  g_autoptr (GError) error = NULL;

  assert_fails (gtorch_device_get_current (none, &error), &error, GTORCH_ERROR_INVALID,
                "get_current: 77 is no GTorchDeviceType");
  assert_fails (gtorch_autocast_guard_new (none, GTORCH_DTYPE_NONE, TRUE, TRUE, &error), &error,
                GTORCH_ERROR_INVALID, "autocast: 77 is no GTorchDeviceType");
  g_assert_false (gtorch_autocast_run (none, GTORCH_DTYPE_NONE, TRUE, TRUE, never, NULL, &error));
  assert_fails (NULL, &error, GTORCH_ERROR_INVALID, "autocast: 77 is no GTorchDeviceType");
}

static void
released_tensors_want_no_gradients (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = ones (FALSE);
  g_autoptr (GTorchTensor) y = ones (TRUE);

  gtorch_tensor_release (x);
  gtorch_tensor_release (y);
  g_assert_false (gtorch_tensor_set_requires_grad (x, TRUE, &error));
  assert_fails (NULL, &error, GTORCH_ERROR_RELEASED,
                "requires_grad: the tensor of shape [2] was released");
  assert_fails (gtorch_tensor_requires_grad_inplace (x, TRUE, &error), &error,
                GTORCH_ERROR_RELEASED, "requires_grad: the tensor of shape [2] was released");
  g_assert_false (gtorch_tensor_retain_grad (y, &error));
  assert_fails (NULL, &error, GTORCH_ERROR_RELEASED,
                "retain_grad: the tensor of shape [2] was released");
  g_assert_false (gtorch_tensor_get_requires_grad (x));
}

static void
norms_are_of_a_degree (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = ones (TRUE);
  g_autoptr (GTorchTensor) y = gtorch_tensor_sum (x, NULL, 0, FALSE, 0, NULL);
  g_autoptr (GTorchTensor) two = ones (FALSE);
  g_autoptr (GTorchTensor) grad = NULL;

  g_assert_true (gtorch_tensor_backward (y, NULL, FALSE, FALSE, &error));
  assert_fails (gtorch_clip_grad_norm (&x, 1, 1, (gdouble) NAN, FALSE, &error), &error,
                GTORCH_ERROR_INVALID,
                "clip_grad_norm: norm_type is nan, it must be a number or infinite");
  assert_fails (gtorch_clip_grad_norm (&x, 1, GTORCH_NONE_DOUBLE, 2, FALSE, &error), &error,
                GTORCH_ERROR_INVALID,
                "clip_grad_norm: max_norm is 6.18034e+301, which is NONE_DOUBLE, and it has no "
                "default");
  assert_fails (gtorch_get_total_norm (&x, 1, GTORCH_NONE_DOUBLE, FALSE, &error), &error,
                GTORCH_ERROR_INVALID,
                "get_total_norm: norm_type is 6.18034e+301, it must be a number or infinite");
  g_assert_false (gtorch_clip_grads_with_norm (&x, 1, 1, two, &error));
  assert_fails (NULL, &error, GTORCH_ERROR_SHAPE,
                "clip_grads_with_norm: total_norm must be one real number, it is a float32 of "
                "shape [2]");
  grad = gtorch_tensor_get_grad (x);
  g_assert_cmpfloat (test_element (grad, 0), ==, 1);
  gtorch_tensor_fill_inplace (grad, INFINITY, NULL);
  assert_fails (gtorch_clip_grad_norm (&x, 1, 1, 2, TRUE, &error), &error, GTORCH_ERROR_INVALID,
                "clip_grad_norm: the norm of degree 2 is inf, it must be finite");
}

static void
members_leave_the_names_of_properties (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = ones (FALSE);
  g_autoptr (GTorchModule) module = GTORCH_MODULE (gtorch_relu_new ());

  g_assert_false (gtorch_module_register_buffer (module, "training", x, TRUE, &error));
  assert_fails (NULL, &error, GTORCH_ERROR_INVALID,
                "ReLU: 'training' is a property of all modules, and no member can have its name");
  g_assert_true (gtorch_module_register_buffer (module, "absent", NULL, TRUE, &error));
  assert_fails (gtorch_module_get_buffer (module, "absent", &error), &error, GTORCH_ERROR_NOT_FOUND,
                "ReLU: the buffer 'absent' is absent: it was registered as none");
}

static void
indices_of_packed_sequences_are_a_permutation (void)
{
  const gint64 sizes[] = { 3, 2 }, wrong[][3] = { { 9, 2, 1 }, { 0, 0, 0 }, { 2, 0, 1 } };
  const gchar *const messages[] = {
    "PackedSequence: sorted_indices has 9 at 0: each of the numbers from 0 to 2 must be there once",
    "PackedSequence: sorted_indices has 0 at 1: each of the numbers from 0 to 2 must be there once",
    "PackedSequence: unsorted_indices has 2 at 2, where the inverse of sorted_indices has 0",
  };
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) data = gtorch_ones (GTORCH_SHAPE (5, 1), 0, NULL, NULL);
  g_autoptr (GTorchTensor) batch_sizes =
      gtorch_tensor_new_from_ints (sizes, 2, GTORCH_SHAPE (2), GTORCH_DTYPE_INT64,
                                   gtorch_device_cpu (), NULL);
  g_autoptr (GTorchTensor) same = gtorch_arange_int (0, 3, 1, GTORCH_DTYPE_INT64, NULL, NULL);
  g_autoptr (GTorchPackedSequence) packed = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++)
    {
      g_autoptr (GTorchTensor) indices =
          gtorch_tensor_new_from_ints (wrong[i], 3, GTORCH_SHAPE (3), GTORCH_DTYPE_INT64, NULL,
                                       NULL);

      assert_fails (gtorch_packed_sequence_new (data, batch_sizes, indices, i == 2 ? same : NULL,
                                                &error),
                    &error, GTORCH_ERROR_SHAPE, messages[i]);
    }
  packed = gtorch_packed_sequence_new (data, batch_sizes, same, same, &error);
  g_assert_no_error (error);
  g_assert_null (gtorch_pad_packed_sequence (packed, TRUE, 0, G_MAXINT64 / 2, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_true (g_str_has_prefix (error->message, "pad_packed_sequence: "));
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
#define TEST(name) g_test_add_func ("/GTorch/given/" #name, name)
  TEST (modules_give_tensors);
  TEST (functions_give_tensors);
  TEST (types_of_devices_are_checked);
  TEST (released_tensors_want_no_gradients);
  TEST (norms_are_of_a_degree);
  TEST (members_leave_the_names_of_properties);
  TEST (indices_of_packed_sequences_are_a_permutation);
  return g_test_run ();
}
