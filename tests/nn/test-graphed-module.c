/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <string.h>

#include "graph-test.h"
#include "members.h"

static GTorchTensor *
random_tensor (gint64 rows, gint64 columns, gboolean requires_grad)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *x =
      gtorch_randn (GTORCH_SHAPE (rows, columns), GTORCH_DTYPE_FLOAT32, NULL, NULL, &error);

  g_assert_no_error (error);
  if (requires_grad)
    g_assert_true (gtorch_tensor_set_requires_grad (x, TRUE, NULL));
  return x;
}

static GTorchModule *
linear (gint64 n_in, gint64 n_out)
{
  g_autoptr (GError) error = NULL;
  GTorchLinear *module = gtorch_linear_new (n_in, n_out, &error);

  g_assert_no_error (error);
  return GTORCH_MODULE (module);
}

/* Returns Linear, Dropout and, in evaluation mode, no Dropout. */
static GTorchModule *
dropping (gint64 n_in, gint64 n_out)
{
  GTorchSequential *module = gtorch_sequential_new ();
  g_autoptr (GTorchModule) first = linear (n_in, n_out);
  g_autoptr (GTorchDropout) second = gtorch_dropout_new (0.3, NULL);

  g_assert_true (gtorch_sequential_append (module, first, NULL));
  g_assert_true (gtorch_sequential_append (module, GTORCH_MODULE (second), NULL));
  return GTORCH_MODULE (module);
}

/* Copies the values of another module. */
static void
take_values (GTorchModule *to, GTorchModule *from)
{
  g_autoptr (GHashTable) state = gtorch_module_state_dict (from);
  g_autoptr (GError) error = NULL;

  gtorch_module_load_state_dict (to, state, TRUE, &error);
  g_assert_no_error (error);
}

static GTorchGraphedModule *
graphed_new (GTorchModule *module, GTorchTensor *sample)
{
  g_autoptr (GError) error = NULL;
  GTorchGraphedModule *graphed = gtorch_graphed_module_new (module, &sample, 1, &error);

  g_assert_no_error (error);
  return graphed;
}

static void
make (GTorchGraphedModule **callables, gsize n)
{
  g_autoptr (GError) error = NULL;

  gtorch_make_graphed_callables (callables, n, NULL, &error);
  g_assert_no_error (error);
}

static GTorchModule *
make_one (GTorchModule *module, GTorchTensor *sample)
{
  GTorchGraphedModule *graphed = graphed_new (module, sample);

  make (&graphed, 1);
  return GTORCH_MODULE (graphed);
}

static GTorchTensor *
call (gpointer module, GTorchTensor *x)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *y = gtorch_module_forward (module, x, &error);

  g_assert_no_error (error);
  return y;
}

static GTorchTensor *
sum (GTorchTensor *x)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) square = gtorch_tensor_mul (x, x, &error);
  GTorchTensor *result = gtorch_tensor_sum (square, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);

  g_assert_no_error (error);
  return result;
}

static void
backward (GTorchTensor *loss)
{
  g_autoptr (GError) error = NULL;

  gtorch_tensor_backward (loss, NULL, FALSE, FALSE, &error);
  g_assert_no_error (error);
}

static void
step (gpointer module, GTorchTensor *x)
{
  g_autoptr (GTorchTensor) y = call (module, x);
  g_autoptr (GTorchTensor) loss = sum (y);

  backward (loss);
}

static void
assert_same (GTorchTensor *a, GTorchTensor *b)
{
  gsize n_a, n_b;
  g_autofree gpointer left = test_dup_elements (a, &n_a);
  g_autofree gpointer right = test_dup_elements (b, &n_b);

  g_assert_cmpmem (left, n_a, right, n_b);
}

static void
assert_same_parameters (gpointer a, gpointer b, gboolean grads)
{
  g_autoptr (GListModel) left = gtorch_module_get_parameters (a, TRUE);
  g_autoptr (GListModel) right = gtorch_module_get_parameters (b, TRUE);
  guint i;

  g_assert_cmpuint (g_list_model_get_n_items (left), ==, g_list_model_get_n_items (right));
  for (i = 0; i < g_list_model_get_n_items (left); i++)
    {
      g_autoptr (GTorchTensor) x = g_list_model_get_item (left, i);
      g_autoptr (GTorchTensor) y = g_list_model_get_item (right, i);
      g_autoptr (GTorchTensor) x_grad = grads ? gtorch_tensor_get_grad (x) : NULL;
      g_autoptr (GTorchTensor) y_grad = grads ? gtorch_tensor_get_grad (y) : NULL;

      assert_same (grads ? x_grad : x, grads ? y_grad : y);
    }
}

/* --- values --- */

/* Runs the first part and, depending on its values, the second or the third. */
static gdouble
branching_step (GTorchModule *const *parts, GTorchOptimizer *optimizer, GTorchTensor *x)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) h = NULL;
  g_autoptr (GTorchTensor) total = NULL;
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) loss = NULL;

  gtorch_optimizer_zero_grad (optimizer, TRUE, &error);
  g_assert_no_error (error);
  h = call (parts[0], x);
  total = gtorch_tensor_sum (h, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  g_assert_no_error (error);
  y = call (parts[test_element (total, 0) > 0 ? 1 : 2], h);
  loss = sum (y);
  backward (loss);
  gtorch_optimizer_step (optimizer, &error);
  g_assert_no_error (error);
  return test_element (loss, 0);
}

static GTorchOptimizer *
optimizer_for (GTorchModule *const *parts)
{
  g_autoptr (GListStore) parameters = g_list_store_new (GTORCH_TYPE_PARAMETER);
  guint i, j;

  for (i = 0; i < 3; i++)
    {
      g_autoptr (GListModel) own = gtorch_module_get_parameters (parts[i], TRUE);

      for (j = 0; j < g_list_model_get_n_items (own); j++)
        {
          g_autoptr (GObject) parameter = g_list_model_get_item (own, j);

          g_list_store_append (parameters, parameter);
        }
    }
  return GTORCH_OPTIMIZER (gtorch_sgd_new (G_LIST_MODEL (parameters), 0.01, 0.9, NULL));
}

static void
parts_of_a_network_train_as_without_graphs (void)
{
  GTorchModule *plain[3], *copies[3], *parts[3];
  GTorchGraphedModule *graphed[3];
  g_autoptr (GTorchTensor) x = random_tensor (6, 8, FALSE);
  g_autoptr (GTorchTensor) h = random_tensor (6, 5, TRUE);
  g_autoptr (GTorchOptimizer) first = NULL;
  g_autoptr (GTorchOptimizer) second = NULL;
  g_autoptr (GPtrArray) data = g_ptr_array_new_with_free_func (g_object_unref);
  gdouble losses[12];
  guint i;

  gtorch_manual_seed (3);
  for (i = 0; i < 3; i++)
    {
      plain[i] = dropping (i == 0 ? 8 : 5, i == 0 ? 5 : 4);
      copies[i] = dropping (i == 0 ? 8 : 5, i == 0 ? 5 : 4);
      take_values (copies[i], plain[i]);
      graphed[i] = graphed_new (copies[i], i == 0 ? x : h);
      parts[i] = GTORCH_MODULE (graphed[i]);
    }
  for (i = 0; i < G_N_ELEMENTS (losses); i++)
    g_ptr_array_add (data, random_tensor (6, 8, FALSE));
  make (graphed, 3);
  first = optimizer_for (plain);
  second = optimizer_for (parts); /* they have the parameters under the same names */
  gtorch_manual_seed (4);
  for (i = 0; i < G_N_ELEMENTS (losses); i++)
    losses[i] = branching_step (plain, first, data->pdata[i]);
  gtorch_manual_seed (4);
  for (i = 0; i < G_N_ELEMENTS (losses); i++)
    g_assert_cmpfloat (branching_step (parts, second, data->pdata[i]), ==, losses[i]);
  for (i = 0; i < 3; i++)
    {
      assert_same_parameters (plain[i], copies[i], FALSE);
      assert_same_parameters (plain[i], parts[i], FALSE);
      g_object_unref (graphed[i]);
      g_object_unref (copies[i]);
      g_object_unref (plain[i]);
    }
}

static void
gradients_are_added (void)
{
  g_autoptr (GTorchModule) plain = linear (4, 3);
  g_autoptr (GTorchModule) copy = linear (4, 3);
  g_autoptr (GTorchTensor) sample = random_tensor (2, 4, FALSE);
  g_autoptr (GTorchModule) graphed = NULL;
  g_autoptr (GTorchParameter) weight = gtorch_module_get_parameter (copy, "weight", NULL);
  g_autoptr (GTorchTensor) kept = NULL;
  guint i;

  take_values (copy, plain);
  graphed = make_one (copy, sample);
  for (i = 0; i < 3; i++)
    {
      g_autoptr (GTorchTensor) x = random_tensor (2, 4, FALSE);
      g_autoptr (GTorchTensor) grad = NULL;

      step (plain, x);
      step (graphed, x);
      assert_same_parameters (plain, graphed, TRUE);
      grad = gtorch_tensor_get_grad (GTORCH_TENSOR (weight));
      if (i > 0)
        g_assert_true (kept == grad); /* the grad is the same tensor, with the new gradient added */
      g_set_object (&kept, grad);
    }
}

static void
gradient_reaches_the_input (void)
{
  g_autoptr (GTorchModule) module = linear (4, 3);
  g_autoptr (GTorchTensor) x = random_tensor (2, 4, TRUE);
  g_autoptr (GTorchTensor) same = gtorch_tensor_detach (x, NULL);
  g_autoptr (GTorchModule) graphed = make_one (module, x);
  g_autoptr (GTorchTensor) expected = NULL;
  g_autoptr (GTorchTensor) actual = NULL;
  guint i;

  gtorch_tensor_set_requires_grad (same, TRUE, NULL);
  for (i = 0; i < 2; i++)
    {
      step (module, same);
      step (graphed, x);
    }
  expected = gtorch_tensor_get_grad (same);
  actual = gtorch_tensor_get_grad (x);
  assert_same (expected, actual);
}

static void
modes_have_their_own_graphs (void)
{
  g_autoptr (GTorchModule) module = dropping (4, 3);
  g_autoptr (GTorchTensor) x = random_tensor (2, 4, FALSE);
  GTorchGraphedModule *graphed = graphed_new (module, x);
  g_autoptr (GTorchTensor) training = NULL;
  g_autoptr (GTorchTensor) loss = NULL;
  guint round;

  g_assert_true (gtorch_module_get_training (GTORCH_MODULE (graphed)));
  for (round = 0; round < 2; round++) /* first without graphs in the other mode, then with them */
    {
      g_autoptr (GTorchTensor) expected = NULL;
      g_autoptr (GTorchTensor) used = NULL;

      gtorch_graphed_module_set_both_modes (graphed, round == 1);
      make (&graphed, 1);
      g_assert_true (gtorch_graphed_module_is_captured (graphed));
      g_assert_true (gtorch_module_get_training (module));
      g_clear_object (&loss);
      g_clear_object (&training);
      training = call (graphed, x);
      loss = sum (training);
      gtorch_module_eval (GTORCH_MODULE (graphed));
      g_assert_false (gtorch_module_get_training (module));
      expected = call (module, x);
      used = call (graphed, x);
      assert_same (expected, used);
      gtorch_module_train (GTORCH_MODULE (graphed), TRUE);
      backward (loss); /* inference in between has not overwritten the values saved by training */
    }
  g_object_unref (graphed);
}

static void
warming_up_leaves_no_traces (void)
{
  g_autoptr (GTorchBatchNorm1d) norm = gtorch_batch_norm1d_new (4, NULL);
  g_autoptr (GTorchModule) module = g_object_ref (GTORCH_MODULE (norm));
  g_autoptr (GTorchTensor) x = random_tensor (8, 4, FALSE);
  g_autoptr (GTorchGenerator) generator =
      g_object_ref (gtorch_device_get_default_generator (test_device ()));
  g_autoptr (GTorchTensor) mean = gtorch_tensor_clone (test_buffer (module, "running_mean"), NULL);
  g_autoptr (GBytes) before = gtorch_generator_get_state (generator);
  g_autoptr (GBytes) after = NULL;
  g_autoptr (GTorchModule) graphed = make_one (module, x);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchParameter) weight = gtorch_module_get_parameter (module, "weight", NULL);

  after = gtorch_generator_get_state (generator);
  g_assert_true (g_bytes_equal (before, after));
  assert_same (mean, test_buffer (module, "running_mean"));
  g_assert_null (gtorch_tensor_get_grad (GTORCH_TENSOR (weight)));
  y = call (graphed, x);
  g_assert_cmpfloat (test_element (test_buffer (module, "running_mean"), 0), !=, 0);
}

static GPtrArray *
two_outputs (GTorchTensor **inputs, gsize n_inputs, gpointer user_data, GError **error)
{
  GPtrArray *outputs = g_ptr_array_new_with_free_func (g_object_unref);

  g_assert_cmpuint (n_inputs, ==, 2);
  g_ptr_array_add (outputs, gtorch_tensor_mul (inputs[0], user_data, error));
  g_ptr_array_add (outputs, gtorch_tensor_add (inputs[0], inputs[1], 1, error));
  return outputs;
}

static void
functions_have_several_outputs_and_bring_parameters (void)
{
  GTorchTensor *samples[2] = { random_tensor (2, 3, TRUE), random_tensor (2, 3, FALSE) };
  GTorchTensor *inputs[2] = { random_tensor (2, 3, TRUE), random_tensor (2, 3, FALSE) };
  g_autoptr (GTorchTensor) scale = random_tensor (2, 3, TRUE);
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) outputs = NULL;
  g_autoptr (GTorchTensor) grad = NULL;
  g_autoptr (GTorchTensor) product = gtorch_tensor_mul (inputs[0], scale, NULL);
  g_autoptr (GTorchTensor) loss = NULL;
  GTorchGraphedModule *graphed =
      gtorch_graphed_module_new_for_func (two_outputs, g_object_ref (scale), g_object_unref,
                                          samples, 2, &error);

  g_assert_no_error (error);
  make (&graphed, 1);
  outputs = gtorch_graphed_module_run (graphed, inputs, 2, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (outputs->len, ==, 2);
  assert_same (outputs->pdata[0], product);
  loss = gtorch_tensor_sum (outputs->pdata[0], NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL);
  backward (loss); /* the second output gets no gradient */
  grad = gtorch_tensor_get_grad (scale);
  assert_same (grad, inputs[0]);
  g_clear_object (&grad);
  grad = gtorch_tensor_get_grad (inputs[0]);
  assert_same (grad, scale);
  FAILS (gtorch_module_forward_many (GTORCH_MODULE (graphed), inputs, 2, &fault),
         GTORCH_ERROR_NOT_SUPPORTED, "it has 2 outputs");
  FAILS (gtorch_graphed_module_run (graphed, inputs, 1, &fault), GTORCH_ERROR_INVALID,
         "GraphedModule(function): 1 inputs were given, in the capture there were 2");
  g_object_unref (graphed);
  g_clear_object (&samples[0]);
  g_clear_object (&samples[1]);
  g_clear_object (&inputs[0]);
  g_clear_object (&inputs[1]);
}

static void
inputs_may_be_written_in_place (void)
{
  g_autoptr (GTorchModule) module = linear (4, 3);
  g_autoptr (GTorchTensor) x = random_tensor (2, 4, FALSE);
  g_autoptr (GTorchModule) graphed = make_one (module, x);
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) inputs =
      gtorch_graphed_module_get_inputs (GTORCH_GRAPHED_MODULE (graphed), &error);
  g_autoptr (GTorchTensor) expected = NULL;
  g_autoptr (GTorchTensor) actual = NULL;

  g_assert_no_error (error);
  gtorch_tensor_fill_inplace (inputs->pdata[0], 2, NULL);
  actual = call (graphed, inputs->pdata[0]);
  expected = call (module, inputs->pdata[0]);
  assert_same (expected, actual);
}

static void
inference_has_no_backward (void)
{
  g_autoptr (GTorchModule) module = linear (4, 3);
  g_autoptr (GTorchTensor) x = random_tensor (2, 4, FALSE);
  g_autoptr (GTorchModule) graphed = NULL;

  {
    g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
    g_autoptr (GTorchTensor) y = NULL;
    g_autoptr (GTorchTensor) expected = call (module, x);

    graphed = make_one (module, x);
    y = call (graphed, x);
    g_assert_false (gtorch_tensor_get_requires_grad (y));
    assert_same (expected, y);
  }
  FAILS (gtorch_module_forward (graphed, x, &fault), GTORCH_ERROR_AUTOGRAD,
         "captured with the grad mode off");
}

static void
calls_on_several_streams_are_in_order (void)
{
  g_autoptr (GTorchModule) module = linear (64, 64);
  g_autoptr (GTorchTensor) x = random_tensor (64, 64, FALSE);
  g_autoptr (GTorchModule) graphed = make_one (module, x);
  GTorchStream *streams[2] = { gtorch_stream_new (test_device (), 0, NULL),
                               gtorch_stream_new (test_device (), 0, NULL) };
  guint i;

  for (i = 0; i < 20; i++)
    {
      g_autoptr (GTorchTensor) expected = NULL;
      g_autoptr (GTorchTensor) kept = NULL;

      {
        g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (streams[i % 2]);
        g_autoptr (GTorchTensor) value = random_tensor (64, 64, FALSE);
        g_autoptr (GTorchTensor) y = call (graphed, value);

        kept = gtorch_tensor_clone (y, NULL);
        expected = call (module, value);
        assert_same (expected, kept);
      }
    }
  g_object_unref (streams[0]);
  g_object_unref (streams[1]);
}

static void
store (GObject *object, GAsyncResult *result, gpointer data)
{
  g_autoptr (GError) error = NULL;

  *(GTorchTensor **) data = gtorch_module_forward_finish (GTORCH_MODULE (object), result, &error);
  g_assert_no_error (error);
}

static void
works_without_blocking (void)
{
  g_autoptr (GTorchModule) module = linear (16, 8);
  g_autoptr (GTorchTensor) x = random_tensor (4, 16, FALSE);
  g_autoptr (GTorchModule) graphed = make_one (module, x);
  g_autoptr (GTorchTensor) expected = call (module, x);
  guint i;

  for (i = 0; i < 3; i++)
    {
      g_autoptr (GTorchTensor) y = NULL;

      gtorch_module_forward_async (graphed, x, NULL, store, &y);
      while (y == NULL)
        g_main_context_iteration (NULL, TRUE);
      assert_same (expected, y);
    }
}

/* --- errors --- */

static void
outputs_of_earlier_calls_are_stale (void)
{
  g_autoptr (GTorchModule) module = linear (4, 3);
  g_autoptr (GTorchTensor) x = random_tensor (2, 4, FALSE);
  g_autoptr (GTorchModule) graphed = make_one (module, x);
  g_autoptr (GTorchTensor) first = call (graphed, x);
  g_autoptr (GTorchTensor) view = gtorch_tensor_t (first, NULL);
  g_autoptr (GTorchTensor) loss = sum (first);
  g_autoptr (GTorchTensor) kept = gtorch_tensor_clone (first, NULL);
  g_autoptr (GTorchTensor) second = call (graphed, x);
  gsize n;

  FAILS (gtorch_tensor_add (first, x, 1, &fault), GTORCH_ERROR_RELEASED,
         "add: tensor 0, of shape [2, 3], came from a graph, and a later replay of "
         "GraphedModule(Linear) has overwritten it");
  FAILS (gtorch_tensor_exp (view, &fault), GTORCH_ERROR_RELEASED, "exp: tensor 0, of shape [3, 2]");
  FAILS (gtorch_tensor_to_doubles (first, &n, &fault), GTORCH_ERROR_RELEASED, "overwritten");
  FAILS (gtorch_tensor_backward (loss, NULL, FALSE, FALSE, &fault), GTORCH_ERROR_AUTOGRAD, "mul");
  assert_same (kept, second);
}

static void
saved_values_are_used_once (void)
{
  g_autoptr (GTorchModule) module = linear (4, 3);
  g_autoptr (GTorchModule) next = linear (3, 3);
  g_autoptr (GTorchTensor) x = random_tensor (2, 4, FALSE);
  g_autoptr (GTorchTensor) h = random_tensor (2, 3, TRUE);
  GTorchGraphedModule *graphed[2] = { graphed_new (module, x), graphed_new (next, h) };
  g_autoptr (GTorchTensor) ones =
      gtorch_ones (GTORCH_SHAPE (2, 3), GTORCH_DTYPE_FLOAT32, NULL, NULL);

  make (graphed, 2);
  {
    g_autoptr (GTorchTensor) y = call (graphed[0], x);

    g_assert_true (gtorch_tensor_backward (y, ones, TRUE, FALSE, NULL));
    FAILS (gtorch_tensor_backward (y, ones, TRUE, FALSE, &fault), GTORCH_ERROR_AUTOGRAD,
           "backward of GraphedModule(Linear): what its call had saved was overwritten");
  }
  {
    g_autoptr (GTorchTensor) y = call (graphed[0], x);
    g_autoptr (GTorchTensor) detached = gtorch_tensor_clone (y, NULL);
    g_autoptr (GTorchTensor) z = NULL;
    g_autoptr (GTorchTensor) later = NULL;

    z = call (graphed[1], detached);
    later = call (graphed[0], x); /* before the backward pass of the second */
    FAILS (gtorch_tensor_backward (z, ones, FALSE, FALSE, &fault), GTORCH_ERROR_AUTOGRAD,
           "a later replay of GraphedModule(Linear)");
  }
  {
    g_autoptr (GTorchTensor) y = call (graphed[0], x);

    g_assert_true (gtorch_tensor_backward (y, ones, FALSE, FALSE, NULL));
    FAILS (gtorch_tensor_backward (y, ones, FALSE, FALSE, &fault), GTORCH_ERROR_AUTOGRAD,
           "retain_graph");
  }
  g_object_unref (graphed[0]);
  g_object_unref (graphed[1]);
}

static void
parameters_stay_where_they_are (void)
{
  g_autoptr (GTorchModule) module = linear (4, 3);
  g_autoptr (GTorchTensor) x = random_tensor (2, 4, FALSE);
  g_autoptr (GTorchModule) graphed = make_one (module, x);
  g_autoptr (GTorchParameter) weight = gtorch_module_get_parameter (module, "weight", NULL);
  g_autoptr (GTorchTensor) values = random_tensor (3, 4, FALSE);
  g_autoptr (GTorchParameter) other = gtorch_parameter_new (values, TRUE, NULL);
  g_autoptr (GTorchTensor) expected = NULL;
  g_autoptr (GTorchTensor) actual = NULL;

  {
    g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();

    g_assert_nonnull (gtorch_tensor_copy_inplace (GTORCH_TENSOR (weight), values, FALSE, NULL));
  }
  expected = call (module, x);
  actual = call (graphed, x); /* changing it in place is allowed */
  assert_same (expected, actual);
  {
    g_autoptr (GTorchTensor) loss = sum (actual);
    g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();

    gtorch_tensor_zero_inplace (GTORCH_TENSOR (weight), NULL);
    FAILS (gtorch_tensor_backward (loss, NULL, FALSE, FALSE, &fault), GTORCH_ERROR_AUTOGRAD,
           "parameter weight was changed in place since the call");
  }

  g_assert_true (gtorch_module_register_parameter (module, "weight", other, NULL));
  FAILS (gtorch_module_forward (graphed, x, &fault), GTORCH_ERROR_INVALID,
         "GraphedModule(Linear): a parameter or buffer was replaced since the capture");
  g_assert_true (gtorch_module_register_parameter (module, "weight", weight, NULL));
  g_clear_object (&actual);
  actual = call (graphed, x);

  g_assert_true (gtorch_module_to (module, NULL, GTORCH_DTYPE_FLOAT64, NULL));
  FAILS (gtorch_module_forward (graphed, x, &fault), GTORCH_ERROR_INVALID,
         "a parameter or buffer of shape [3, 4] was moved or released since the capture");
}

static void
inputs_must_be_like_the_samples (void)
{
  g_autoptr (GTorchModule) module = linear (4, 4);
  g_autoptr (GTorchTensor) x = random_tensor (4, 4, FALSE);
  g_autoptr (GTorchModule) graphed = make_one (module, x);
  g_autoptr (GTorchTensor) shape = random_tensor (3, 4, FALSE);
  g_autoptr (GTorchTensor) grad = random_tensor (4, 4, TRUE);
  g_autoptr (GTorchTensor) dtype = gtorch_tensor_to_dtype (x, GTORCH_DTYPE_FLOAT64, NULL);
  g_autoptr (GTorchTensor) strides = gtorch_tensor_t (x, NULL);
  g_autoptr (GTorchTensor) released = random_tensor (4, 4, FALSE);

  gtorch_tensor_release (released);
  FAILS (gtorch_module_forward (graphed, shape, &fault), GTORCH_ERROR_SHAPE,
         "GraphedModule(Linear): input 0 has shape [3, 4], in the capture it had [4, 4]");
  FAILS (gtorch_module_forward (graphed, dtype, &fault), GTORCH_ERROR_DTYPE,
         "input 0 has dtype float64, in the capture it had float32");
  FAILS (gtorch_module_forward (graphed, strides, &fault), GTORCH_ERROR_INVALID,
         "input 0 has strides [1, 4], in the capture it had [4, 1]");
  FAILS (gtorch_module_forward (graphed, grad, &fault), GTORCH_ERROR_AUTOGRAD,
         "input 0 requires grad, in the capture it did not");
  FAILS (gtorch_module_forward (graphed, released, &fault), GTORCH_ERROR_RELEASED,
         "input 0, of shape [4, 4], was released");
  if (test_device () != gtorch_device_cpu ())
    {
      g_autoptr (GTorchTensor) host =
          gtorch_tensor_to_device (x, gtorch_device_cpu (), FALSE, NULL);

      FAILS (gtorch_module_forward (graphed, host, &fault), GTORCH_ERROR_DEVICE_MISMATCH,
             "input 0 is on cpu");
    }
}

static GPtrArray *
no_change (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs, gpointer data,
           GError **error)
{
  return NULL;
}

static void
hooks_are_refused (void)
{
  g_autoptr (GTorchModule) module = dropping (4, 3);
  GTorchModule *inner = test_module (module, "0");
  g_autoptr (GTorchTensor) x = random_tensor (2, 4, FALSE);
  g_autoptr (GTorchModule) graphed = NULL;
  guint64 id = gtorch_module_register_forward_pre_hook (inner, no_change, NULL, NULL);

  FAILS (gtorch_graphed_module_new (module, &x, 1, &fault), GTORCH_ERROR_NOT_SUPPORTED,
         "GraphedModule(Sequential): Linear has hooks");
  gtorch_module_remove_hook (inner, id);
  graphed = make_one (module, x);
  gtorch_module_register_forward_pre_hook (inner, no_change, NULL, NULL);
  FAILS (gtorch_module_forward (graphed, x, &fault), GTORCH_ERROR_NOT_SUPPORTED,
         "Linear has hooks");
}

static void
gradients_of_gradients_are_refused (void)
{
  g_autoptr (GTorchModule) module = linear (4, 3);
  g_autoptr (GTorchTensor) x = random_tensor (2, 4, TRUE);
  g_autoptr (GTorchModule) graphed = make_one (module, x);
  g_autoptr (GTorchTensor) y = call (graphed, x);
  g_autoptr (GTorchTensor) loss = sum (y);

  FAILS (gtorch_tensor_backward (loss, NULL, FALSE, TRUE, &fault), GTORCH_ERROR_NOT_SUPPORTED,
         "backward of GraphedModule(Linear): a captured backward has no gradient of its own");
}

static GPtrArray *
first_of_two (GTorchTensor **inputs, gsize n_inputs, gpointer user_data, GError **error)
{
  GPtrArray *outputs = g_ptr_array_new_with_free_func (g_object_unref);

  g_ptr_array_add (outputs, gtorch_tensor_mul_scalar (inputs[0], 2, error));
  return outputs;
}

static void
unused_inputs_are_named (void)
{
  GTorchTensor *samples[2] = { random_tensor (2, 3, TRUE), random_tensor (3, 2, TRUE) };
  GTorchGraphedModule *graphed =
      gtorch_graphed_module_new_for_func (first_of_two, NULL, NULL, samples, 2, NULL);
  g_autoptr (GPtrArray) outputs = NULL;
  g_autoptr (GTorchTensor) loss = NULL;
  g_autoptr (GError) error = NULL;

  FAILS (gtorch_make_graphed_callables (&graphed, 1, NULL, &fault), GTORCH_ERROR_AUTOGRAD,
         "GraphedModule(function): input 1, of shape [3, 2], requires grad and does not "
         "contribute");
  g_assert_false (gtorch_graphed_module_is_captured (graphed));
  gtorch_graphed_module_set_allow_unused (graphed, TRUE);
  make (&graphed, 1);
  outputs = gtorch_graphed_module_run (graphed, samples, 2, &error);
  g_assert_no_error (error);
  loss = sum (outputs->pdata[0]);
  backward (loss);
  g_assert_null (gtorch_tensor_get_grad (samples[1]));
  g_object_unref (graphed);
  g_clear_object (&samples[0]);
  g_clear_object (&samples[1]);
}

static GPtrArray *
read_an_element (GTorchTensor **inputs, gsize n_inputs, gpointer user_data, GError **error)
{
  GPtrArray *outputs = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GTorchTensor) total =
      gtorch_tensor_sum (inputs[0], NULL, 0, FALSE, GTORCH_DTYPE_NONE, error);
  GError *local = NULL;
  gdouble value = gtorch_tensor_item_double (total, &local);

  if (local != NULL)
    {
      g_propagate_error (error, local);
      g_ptr_array_unref (outputs);
      return NULL;
    }
  g_ptr_array_add (outputs, gtorch_tensor_mul_scalar (inputs[0], value, error));
  return outputs;
}

static GPtrArray *
use_history (GTorchTensor **inputs, gsize n_inputs, gpointer user_data, GError **error)
{
  GPtrArray *outputs = g_ptr_array_new_with_free_func (g_object_unref);

  g_ptr_array_add (outputs, gtorch_tensor_mul (inputs[0], user_data, error));
  return outputs;
}

static GPtrArray *
give_nothing (GTorchTensor **inputs, gsize n_inputs, gpointer user_data, GError **error)
{
  return NULL;
}

static void
uncapturable_operations_are_named (void)
{
  g_autoptr (GTorchTensor) x = random_tensor (2, 3, FALSE);
  g_autoptr (GTorchTensor) leaf = random_tensor (2, 3, TRUE);
  g_autoptr (GTorchTensor) result = gtorch_tensor_exp (leaf, NULL);
  const struct
  {
    GTorchGraphedFunc func;
    GTorchError code;
    const gchar *text;
  } cases[] = {
    { read_an_element, GTORCH_ERROR_CAPTURE, "GraphedModule(function): capture of forward: " },
    { use_history, GTORCH_ERROR_AUTOGRAD, "it uses a result of exp that was computed before" },
    { give_nothing, GTORCH_ERROR_FAILED, "gave nothing" },
  };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      GTorchGraphedModule *graphed =
          gtorch_graphed_module_new_for_func (cases[i].func, result, NULL, &x, 1, NULL);

      FAILS (gtorch_make_graphed_callables (&graphed, 1, NULL, &fault), (gint) cases[i].code,
             cases[i].text);
      FAILS (gtorch_graphed_module_run (graphed, &x, 1, &fault), GTORCH_ERROR_INVALID,
             "it was not captured");
      g_assert_true (gtorch_stream_is_default (gtorch_stream_get_current (test_device ())));
      g_object_unref (graphed);
    }
}

static void
an_enclosing_capture_is_refused (void)
{
  g_autoptr (GTorchModule) module = linear (4, 3);
  g_autoptr (GTorchTensor) x = random_tensor (2, 4, FALSE);
  GTorchGraphedModule *graphed = graphed_new (module, x);
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchGraphCapture) capture = NULL;

  make (&graphed, 1);
  capture = gtorch_graph_capture_new (graph, NULL, NULL, GTORCH_CAPTURE_MODE_THREAD_LOCAL, NULL);
  FAILS (gtorch_module_forward (GTORCH_MODULE (graphed), x, &fault), GTORCH_ERROR_CAPTURE,
         "capture the module itself");
  FAILS (gtorch_make_graphed_callables (&graphed, 1, NULL, &fault), GTORCH_ERROR_CAPTURE,
         "no other can be captured in it");
  g_clear_pointer (&capture, gtorch_graph_capture_unref);
  FAILS (gtorch_make_graphed_callables ((GTorchGraphedModule *[]){ graphed, graphed }, 2, NULL,
                                        &fault),
         GTORCH_ERROR_INVALID, "0 and 1 are the same");
  g_object_unref (graphed);
}

static void
memory_is_freed (void)
{
  GTorchAllocator *allocator = gtorch_device_get_allocator (test_device ());
  guint64 before;

  gtorch_allocator_trim (allocator); /* frees the workspaces of earlier products, too */
  before = gtorch_device_get_memory_allocated (test_device ());
  {
    g_autoptr (GTorchModule) module = dropping (40, 30);
    g_autoptr (GTorchTensor) x = random_tensor (20, 40, FALSE);
    g_autoptr (GTorchTensor) y = NULL;

    {
      g_autoptr (GTorchModule) graphed = make_one (module, x);

      g_clear_object (&y);
      y = call (graphed, x);
    }
    step (module, x);
    {
      g_autoptr (GTorchTensor) loss = sum (y); /* the module that computed it was freed */

      backward (loss);
    }
  }
  gtorch_allocator_trim (allocator); /* waits for the device */
  g_assert_cmpuint (gtorch_device_get_memory_allocated (test_device ()), ==, before);
}

#define TEST(name) g_test_add_func ("/GTorch/GraphedModule/" #name, name)

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  if (!test_can_capture ())
    return 0;
  TEST (parts_of_a_network_train_as_without_graphs);
  TEST (gradients_are_added);
  TEST (gradient_reaches_the_input);
  TEST (modes_have_their_own_graphs);
  TEST (warming_up_leaves_no_traces);
  TEST (functions_have_several_outputs_and_bring_parameters);
  TEST (inputs_may_be_written_in_place);
  TEST (inference_has_no_backward);
  TEST (calls_on_several_streams_are_in_order);
  TEST (works_without_blocking);
  TEST (outputs_of_earlier_calls_are_stale);
  TEST (saved_values_are_used_once);
  TEST (parameters_stay_where_they_are);
  TEST (inputs_must_be_like_the_samples);
  TEST (hooks_are_refused);
  TEST (gradients_of_gradients_are_refused);
  TEST (unused_inputs_are_named);
  TEST (uncapturable_operations_are_named);
  TEST (an_enclosing_capture_is_refused);
  TEST (memory_is_freed);
  return g_test_run ();
}
