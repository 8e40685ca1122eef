/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Lazy layers before, at and after their first use. */

#include "config.h"

#include <string.h>

#include <gtorch/gtorch.h>

#include "members.h"

static GTorchModule *
lazy_linear (void)
{
  g_autoptr (GError) error = NULL;
  GTorchLazyLinear *layer = gtorch_lazy_linear_new (4, &error);

  g_assert_no_error (error);
  return GTORCH_MODULE (layer);
}

static GTorchTensor *
ones (const gint64 *shape, gsize n_dims)
{
  return gtorch_ones (shape, n_dims, GTORCH_DTYPE_NONE, NULL, NULL);
}

static void
assert_same (GTorchTensor *one, GTorchTensor *other)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) same = gtorch_tensor_equal (one, other, &error);

  g_assert_no_error (error);
  g_assert_cmpint (gtorch_tensor_item_int (same, NULL), ==, 1);
}

static void
first_input_tells_the_size (void)
{
  g_autoptr (GTorchModule) layer = lazy_linear ();
  g_autoptr (GTorchTensor) x = ones (GTORCH_SHAPE (2, 3));
  g_autoptr (GTorchTensor) other = ones (GTORCH_SHAPE (2, 5));
  g_autoptr (GTorchParameter) before = gtorch_module_get_parameter (layer, "weight", NULL);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree gchar *waiting = gtorch_module_to_string (layer), *used = NULL;
  const gint64 *shape;
  gint64 size;
  gsize n_dims;

  g_assert_true (gtorch_module_has_uninitialized_params (layer));
  g_assert_true (gtorch_is_lazy (GTORCH_TENSOR (before)));
  g_assert_false (gtorch_tensor_is_released (GTORCH_TENSOR (before)));
  g_assert_true (gtorch_tensor_get_requires_grad (GTORCH_TENSOR (before)));
  g_assert_cmpint (gtorch_module_count_parameters (layer, FALSE), ==, 0);
  g_assert_cmpstr (waiting, ==, "LazyLinear(in_features=0, out_features=4, bias=True)");
  y = gtorch_module_forward (layer, x, &error);
  g_assert_no_error (error);
  g_assert_false (gtorch_module_has_uninitialized_params (layer));
  g_assert_false (gtorch_is_lazy (GTORCH_TENSOR (before)));
  g_assert_true ((gpointer) before == test_parameter (layer, "weight"));
  shape = gtorch_tensor_get_shape (GTORCH_TENSOR (before), &n_dims);
  g_assert_cmpuint (n_dims, ==, 2);
  g_assert_cmpint (shape[0], ==, 4);
  g_assert_cmpint (shape[1], ==, 3);
  g_object_get (layer, "in-features", &size, NULL);
  g_assert_cmpint (size, ==, 3);
  used = gtorch_module_to_string (layer);
  g_assert_cmpstr (used, ==, "Linear(in_features=3, out_features=4, bias=True)");
  g_assert_null (gtorch_module_forward (layer, other, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
}

/* The same random numbers are drawn, in the same order. */
static void
values_are_those_of_an_ordinary_layer (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchModule) lazy =
      gtorch_module_new (GTORCH_TYPE_LAZY_CONV2D, &error, "out-channels", (gint64) 3, "kernel-size",
                         GTORCH_SIZE (2), NULL);
  g_autoptr (GTorchModule) plain = NULL;
  g_autoptr (GTorchTensor) x = ones (GTORCH_SHAPE (2, 5, 5));
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) z = NULL;

  g_assert_no_error (error);
  gtorch_manual_seed (5);
  y = gtorch_module_forward (lazy, x, &error);
  g_assert_no_error (error);
  gtorch_manual_seed (5);
  plain = gtorch_module_new (GTORCH_TYPE_CONV2D, &error, "in-channels", (gint64) 2, "out-channels",
                             (gint64) 3, "kernel-size", GTORCH_SIZE (2), NULL);
  z = gtorch_module_forward (plain, x, &error);
  g_assert_no_error (error);
  assert_same (y, z);
}

static void
waiting_parameters_are_refused (void)
{
  g_autoptr (GTorchModule) layer = lazy_linear ();
  g_autoptr (GListModel) parameters = gtorch_module_get_parameters (layer, TRUE);
  GTorchTensor *weight = test_parameter (layer, "weight");
  g_autoptr (GTorchSGD) sgd = gtorch_sgd_new (parameters, 0.1, 0, NULL);
  g_autoptr (GHashTable) state = gtorch_module_state_dict (layer);
  g_autoptr (GOutputStream) stream = g_memory_output_stream_new_resizable ();
  g_autoptr (GError) error = NULL;

  g_assert_null (sgd);
  g_assert_null (gtorch_sgd_new (parameters, 0.1, 0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "add_param_group: parameter 0 has no elements yet: the first forward pass of "
                   "its "
                   "lazy layer creates them");
  g_clear_error (&error);
  g_assert_null (gtorch_tensor_add_scalar (weight, 1, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED);
  g_assert_cmpstr (error->message, ==,
                   "add: tensor 0, of shape [0], has no elements yet: the first forward pass of "
                   "its lazy layer creates them");
  g_clear_error (&error);
  g_assert_false (gtorch_safetensors_save (state, NULL, stream, NULL, NULL, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED);
  g_assert_nonnull (strstr (error->message, "has no elements yet"));
}

static void
bad_first_inputs_change_nothing (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchModule) layer =
      gtorch_module_new (GTORCH_TYPE_LAZY_CONV1D, &error, "out-channels", (gint64) 4, "kernel-size",
                         GTORCH_SIZE (2), "groups", (gint64) 2, NULL);
  g_autoptr (GTorchTensor) flat = ones (GTORCH_SHAPE (6));
  g_autoptr (GTorchTensor) odd = ones (GTORCH_SHAPE (3, 6));
  g_autoptr (GTorchTensor) none = ones (GTORCH_SHAPE (0, 6));
  g_autoptr (GTorchTensor) gone = ones (GTORCH_SHAPE (4, 6));
  g_autoptr (GTorchTensor) x = ones (GTORCH_SHAPE (4, 6));
  g_autoptr (GTorchTensor) y = NULL;

  g_assert_no_error (error);
  gtorch_tensor_release (gone);
  g_assert_null (gtorch_module_forward (layer, flat, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_cmpstr (error->message, ==,
                   "LazyConv1d: the first input, which tells in-channels, must have 2 to 3 "
                   "dimensions; it has shape [6]");
  g_clear_error (&error);
  g_assert_null (gtorch_module_forward (layer, odd, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "LazyConv1d: in_channels must be divisible by groups, 3 is not by 2");
  g_clear_error (&error);
  g_assert_null (gtorch_module_forward (layer, none, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_null (gtorch_module_forward (layer, gone, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED);
  g_clear_error (&error);
  g_assert_null (gtorch_module_forward_many (layer, NULL, 0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_clear_error (&error);
  g_assert_true (gtorch_module_has_uninitialized_params (layer));
  y = gtorch_module_forward (layer, x, &error);
  g_assert_no_error (error);
}

static void
bad_arguments_are_named (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_lazy_linear_new (0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "LazyLinear: out_features must be at least 1, it is 0");
  g_clear_error (&error);
  g_assert_null (gtorch_lazy_conv2d_new (2, (const gint64[]){ 0 }, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_true (g_str_has_prefix (error->message, "LazyConv2d: kernel_size"));
}

/* What is moved first has the dtype of the move later. */
static void
waiting_layers_can_be_moved (void)
{
  g_autoptr (GTorchModule) layer = lazy_linear ();
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (2, 3), GTORCH_DTYPE_FLOAT64, NULL, NULL);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GError) error = NULL;
  GTorchDType dtype;

  g_assert_true (gtorch_module_to (layer, NULL, GTORCH_DTYPE_FLOAT64, &error));
  g_assert_true (gtorch_module_has_uninitialized_params (layer));
  g_object_get (layer, "dtype", &dtype, NULL);
  g_assert_cmpint (dtype, ==, GTORCH_DTYPE_FLOAT64);
  y = gtorch_module_forward (layer, x, &error);
  g_assert_no_error (error);
  g_assert_cmpint (gtorch_tensor_get_dtype (y), ==, GTORCH_DTYPE_FLOAT64);
}

static void
states_tell_the_size (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchModule) plain =
      gtorch_module_new (GTORCH_TYPE_CONV2D, &error, "in-channels", (gint64) 6, "out-channels",
                         (gint64) 4, "kernel-size", GTORCH_SIZE (3), "groups", (gint64) 2, NULL);
  g_autoptr (GTorchModule) lazy =
      gtorch_module_new (GTORCH_TYPE_LAZY_CONV2D, &error, "out-channels", (gint64) 4, "kernel-size",
                         GTORCH_SIZE (3), "groups", (gint64) 2, NULL);
  g_autoptr (GTorchModule) narrow =
      gtorch_module_new (GTORCH_TYPE_LAZY_CONV2D, &error, "out-channels", (gint64) 4, "kernel-size",
                         GTORCH_SIZE (2), "groups", (gint64) 2, NULL);
  g_autoptr (GHashTable) state = gtorch_module_state_dict (plain);
  g_autoptr (GHashTable) waiting = gtorch_module_state_dict (lazy);
  gint64 size;

  g_assert_no_error (error);
  g_assert_true (gtorch_module_load_state_dict (narrow, waiting, TRUE, &error));
  g_assert_no_error (error);
  g_assert_false (gtorch_module_load_state_dict (narrow, state, TRUE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_true (gtorch_module_has_uninitialized_params (narrow));
  g_clear_error (&error);
  g_assert_true (gtorch_module_load_state_dict (lazy, state, TRUE, &error));
  g_assert_no_error (error);
  g_assert_false (gtorch_module_has_uninitialized_params (lazy));
  g_object_get (lazy, "in-channels", &size, NULL);
  g_assert_cmpint (size, ==, 6);
  assert_same (test_parameter (plain, "weight"), test_parameter (lazy, "weight"));
  g_assert_false (gtorch_module_load_state_dict (plain, waiting, TRUE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_nonnull (strstr (error->message, "weight has no elements yet"));
}

/* A part of a state leaves the other values as a new layer has them. */
static void
parts_of_states_tell_the_size (void)
{
  g_autoptr (GTorchModule) lazy = lazy_linear ();
  g_autoptr (GTorchTensor) weight = ones (GTORCH_SHAPE (4, 7));
  g_autoptr (GHashTable) state = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GError) error = NULL;

  g_hash_table_insert (state, (gpointer) "weight", weight);
  g_assert_false (gtorch_module_load_state_dict (lazy, state, TRUE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
  g_assert_true (gtorch_module_has_uninitialized_params (lazy));
  g_clear_error (&error);
  g_assert_true (gtorch_module_load_state_dict (lazy, state, FALSE, &error));
  g_assert_no_error (error);
  g_assert_false (gtorch_module_has_uninitialized_params (lazy));
  g_assert_cmpint (gtorch_tensor_get_numel (test_parameter (lazy, "bias")), ==, 4);
}

static void
lazy_parts_of_networks_wait_each_for_its_input (void)
{
  g_autoptr (GTorchSequential) net = gtorch_sequential_new ();
  g_autoptr (GTorchModule) first = lazy_linear ();
  g_autoptr (GTorchModule) norm = GTORCH_MODULE (gtorch_lazy_batch_norm1d_new (NULL));
  g_autoptr (GTorchModule) last = lazy_linear ();
  g_autoptr (GTorchTensor) x = ones (GTORCH_SHAPE (2, 3));
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GListModel) parameters = NULL;
  g_autoptr (GTorchSGD) sgd = NULL;
  g_autoptr (GError) error = NULL;
  gint64 size;

  g_assert_true (gtorch_sequential_append (net, first, NULL));
  g_assert_true (gtorch_sequential_append (net, norm, NULL));
  g_assert_true (gtorch_sequential_append (net, last, NULL));
  y = gtorch_module_forward (GTORCH_MODULE (net), x, &error);
  g_assert_no_error (error);
  g_object_get (norm, "num-features", &size, NULL);
  g_assert_cmpint (size, ==, 4);
  g_object_get (last, "in-features", &size, NULL);
  g_assert_cmpint (size, ==, 4);
  g_assert_cmpint (gtorch_tensor_item_int (test_buffer (norm, "num_batches_tracked"), NULL), ==, 1);
  parameters = gtorch_module_get_parameters (GTORCH_MODULE (net), TRUE);
  sgd = gtorch_sgd_new (parameters, 0.1, 0, &error);
  g_assert_no_error (error);
}

#define ADD(name) g_test_add_func ("/GTorch/Lazy/" #name, name)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (first_input_tells_the_size);
  ADD (values_are_those_of_an_ordinary_layer);
  ADD (waiting_parameters_are_refused);
  ADD (bad_first_inputs_change_nothing);
  ADD (bad_arguments_are_named);
  ADD (waiting_layers_can_be_moved);
  ADD (states_tell_the_size);
  ADD (parts_of_states_tell_the_size);
  ADD (lazy_parts_of_networks_wait_each_for_its_input);
  return g_test_run ();
}
