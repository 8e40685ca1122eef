/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The graph has no reference cycles: every object of these tests is freed when the test drops it, or
 * behaves as the documentation of cycles says. */

#include "config.h"

#include "autograd-values.h"

/* A function that saves its result for backward. */
#define TEST_TYPE_SQUARE (test_square_get_type ())
G_DECLARE_FINAL_TYPE (TestSquare, test_square, TEST, SQUARE, GTorchFunction)

struct _TestSquare
{
  GTorchFunction parent_instance;
};

G_DEFINE_TYPE (TestSquare, test_square, GTORCH_TYPE_FUNCTION)

static GPtrArray *
test_square_forward (GTorchFunction *self, GTorchFunctionContext *context, GTorchTensor **inputs,
                     gsize n_inputs, GError **error)
{
  GTorchTensor *saved[] = { inputs[0], gtorch_tensor_mul (inputs[0], inputs[0], error) };
  GPtrArray *outputs = g_ptr_array_new_with_free_func (g_object_unref);

  gtorch_function_context_save_for_backward (context, saved, 2, NULL);
  g_ptr_array_add (outputs, saved[1]);
  return outputs;
}

static GPtrArray *
test_square_backward (GTorchFunction *self, GTorchFunctionContext *context,
                      GTorchTensor **grad_outputs, gsize n_grad_outputs, GError **error)
{
  g_autoptr (GPtrArray) saved = gtorch_function_context_get_saved_tensors (context, error);
  g_autoptr (GTorchTensor) twice = gtorch_tensor_mul_scalar (saved->pdata[0], 2, error);
  GPtrArray *grads = g_ptr_array_new_with_free_func (g_object_unref);

  g_ptr_array_add (grads, gtorch_tensor_mul (grad_outputs[0], twice, error));
  return grads;
}

static void
test_square_class_init (TestSquareClass *klass)
{
  GTORCH_FUNCTION_CLASS (klass)->forward = test_square_forward;
  GTORCH_FUNCTION_CLASS (klass)->backward = test_square_backward;
}

static void
test_square_init (TestSquare *self)
{
}

/* --- counting --- */

static guint n_freed;

static void
count (gpointer data)
{
  n_freed++;
}

static GTorchTensor *
pass (GTorchTensor *grad, gpointer user_data, GError **error)
{
  return NULL;
}

/* A hook is freed with its owner: a leaf, or the node that computed the tensor. */
static void
watch (GTorchTensor *tensor)
{
  g_autoptr (GError) error = NULL;

  gtorch_tensor_register_hook (tensor, pass, tensor, count, &error);
  g_assert_no_error (error);
}

/* Returns a leaf whose grad has a graph that leads to the leaf. */
static GTorchTensor *
leaf_with_graph (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) values = leaf (1, 3, FALSE);
  GTorchTensor *x = GTORCH_TENSOR (gtorch_parameter_new (values, TRUE, NULL));
  g_autoptr (GTorchTensor) cube = gtorch_tensor_pow_scalar (x, 3, NULL);
  g_autoptr (GTorchTensor) s = sum (cube);
  g_autoptr (GTorchTensor) grad = NULL;

  n_freed = 0;
  watch (x);
  gtorch_tensor_backward (s, NULL, TRUE, TRUE, &error);
  g_assert_no_error (error);
  grad = gtorch_tensor_get_grad (x);
  g_assert_true (gtorch_tensor_get_requires_grad (grad));
  return x;
}

/* --- tests --- */

static void
dropping_the_grad_frees_its_graph (void)
{
  GTorchTensor *x = leaf_with_graph ();

  g_assert_true (gtorch_tensor_set_grad (x, NULL, NULL));
  g_object_unref (x);
  g_assert_cmpuint (n_freed, ==, 1);
}

static void
releasing_frees_the_graph_of_the_grad (void)
{
  GTorchTensor *x = leaf_with_graph ();

  gtorch_tensor_release (x);
  g_object_unref (x);
  g_assert_cmpuint (n_freed, ==, 1);
}

static void
backward_without_create_graph_frees_the_graph_of_the_grad (void)
{
  GTorchTensor *x = leaf_with_graph ();
  g_autoptr (GTorchTensor) before = gtorch_tensor_get_grad (x);
  g_autoptr (GTorchTensor) square = gtorch_tensor_mul (x, x, NULL);
  g_autoptr (GTorchTensor) grad = NULL;

  backward_sum (square);
  grad = gtorch_tensor_get_grad (x);
  g_assert_false (gtorch_tensor_get_requires_grad (grad));
  g_assert_cmpfloat (value (grad, 1), ==, 16);
  g_assert_cmpfloat (value (before, 1), ==, 12);
  g_clear_object (&square);
  g_clear_object (&before);
  g_object_unref (x);
  g_assert_cmpuint (n_freed, ==, 1);
}

static void
zeroing_frees_the_graph_of_the_grad (gconstpointer data)
{
  gboolean by_optimizer = GPOINTER_TO_INT (data) & 1,
           set_to_none = (GPOINTER_TO_INT (data) & 2) != 0;
  g_autoptr (GTorchModule) module = GTORCH_MODULE (gtorch_identity_new ());
  g_autoptr (GTorchTensor) x = leaf_with_graph ();
  g_autoptr (GTorchTensor) grad = NULL;

  g_assert_true (gtorch_module_register_parameter (module, "x", GTORCH_PARAMETER (x), NULL));
  if (by_optimizer)
    {
      g_autoptr (GListModel) parameters = gtorch_module_get_parameters (module, TRUE);
      g_autoptr (GTorchSGD) optimizer = gtorch_sgd_new (parameters, 0.1, 0, NULL);

      g_assert_true (gtorch_optimizer_zero_grad (GTORCH_OPTIMIZER (optimizer), set_to_none, NULL));
    }
  else
    g_assert_true (gtorch_module_zero_grad (module, set_to_none, NULL));
  grad = gtorch_tensor_get_grad (x);
  g_assert_true ((grad == NULL) == set_to_none);
  if (grad != NULL)
    {
      g_assert_false (gtorch_tensor_get_requires_grad (grad));
      g_assert_cmpfloat (value (grad, 2), ==, 0);
    }
  g_clear_object (&grad);
  g_clear_object (&module);
  g_clear_object (&x);
  g_assert_cmpuint (n_freed, ==, 1);
}

static void
retained_gradients_make_no_cycle (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  g_autoptr (GTorchTensor) y = gtorch_tensor_mul (x, x, NULL);
  g_autoptr (GTorchTensor) z = gtorch_tensor_mul (y, y, NULL);
  g_autoptr (GTorchTensor) s = sum (z);

  n_freed = 0;
  watch (x);
  watch (y);
  g_assert_true (gtorch_tensor_retain_grad (y, NULL));
  g_assert_true (gtorch_tensor_backward (s, NULL, TRUE, TRUE, NULL));
  g_assert_true (gtorch_tensor_set_grad (x, NULL, NULL));
  g_clear_object (&s);
  g_clear_object (&z);
  g_clear_object (&y);
  g_clear_object (&x);
  g_assert_cmpuint (n_freed, ==, 2);
}

static void
functions_may_save_their_results (void)
{
  g_autoptr (GTorchFunction) function = g_object_new (TEST_TYPE_SQUARE, NULL);
  g_autoptr (GTorchTensor) x = leaf (1, 3, TRUE);
  g_autoptr (GPtrArray) outputs = gtorch_function_apply (function, &x, 1, NULL);

  n_freed = 0;
  watch (outputs->pdata[0]);
  g_clear_pointer (&outputs, g_ptr_array_unref);
  g_assert_cmpuint (n_freed, ==, 1);
}

static void
in_place_on_an_operand_makes_no_cycle (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 4, TRUE);
  g_autoptr (GTorchTensor) y = gtorch_tensor_mul_scalar (x, 1, NULL);
  g_autoptr (GTorchTensor) v = gtorch_tensor_slice (y, 0, 1, 3, 1, NULL);
  g_autoptr (GTorchTensor) d = gtorch_tensor_detach (x, NULL);

  n_freed = 0;
  g_assert_nonnull (gtorch_tensor_mul_inplace (v, v, NULL));
  g_assert_nonnull (gtorch_tensor_exp_inplace (v, NULL));
  g_assert_nonnull (gtorch_tensor_mul_inplace (y, y, NULL));
  g_assert_nonnull (gtorch_tensor_mul_inplace (d, x, NULL));
  watch (v);
  watch (y);
  watch (d);
  g_clear_object (&v);
  g_clear_object (&y);
  g_clear_object (&d);
  g_assert_cmpuint (n_freed, ==, 3);
}

static GTorchTensor *
after_module (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs, GTorchTensor *output,
              gpointer user_data, GError **error)
{
  return NULL;
}

static void
a_disposed_module_drops_its_hooks (void)
{
  GTorchModule *module = GTORCH_MODULE (gtorch_identity_new ());
  gpointer seen = module;

  g_object_add_weak_pointer (G_OBJECT (module), &seen);
  g_assert_cmpuint (gtorch_module_register_forward_hook (module, after_module,
                                                         g_object_ref (module), g_object_unref),
                    !=, 0);
  g_object_run_dispose (G_OBJECT (module));
  g_object_unref (module);
  g_assert_null (seen);
}

static GPtrArray *
compute (GTorchTensor **inputs, gsize n_inputs, gpointer user_data, GError **error)
{
  return NULL;
}

static void
a_disposed_graphed_module_drops_its_capture (void)
{
  g_autoptr (GTorchTensor) sample = leaf (1, 3, FALSE);
  g_autoptr (GError) error = NULL;
  GTorchModule *inner = GTORCH_MODULE (gtorch_identity_new ());
  GTorchGraphedModule *module, *callables[1];
  gpointer seen;

  module = gtorch_graphed_module_new_for_func (compute, inner, g_object_unref, &sample, 1, NULL);
  g_object_set_data_full (G_OBJECT (inner), "graphed", g_object_ref (module), g_object_unref);
  seen = module;
  g_object_add_weak_pointer (G_OBJECT (module), &seen);
  g_object_run_dispose (G_OBJECT (module));
  callables[0] = module;
  g_assert_false (gtorch_make_graphed_callables (callables, 1, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_object_unref (module);
  g_assert_null (seen);
}

static void
a_graphed_module_cannot_be_registered_in_its_module (void)
{
  g_autoptr (GTorchTensor) sample = leaf (1, 3, FALSE);
  g_autoptr (GTorchModule) outer = GTORCH_MODULE (gtorch_sequential_new ());
  g_autoptr (GTorchModule) inner = GTORCH_MODULE (gtorch_sequential_new ());
  g_autoptr (GTorchGraphedModule) graphed = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_module_register_module (outer, "0", inner, NULL));
  graphed = gtorch_graphed_module_new (outer, &sample, 1, NULL);
  g_assert_false (gtorch_module_register_module (outer, "1", GTORCH_MODULE (graphed), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_false (gtorch_module_register_module (inner, "1", GTORCH_MODULE (graphed), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_clear_object (&graphed);
  /* it may replace the module it was made from */
  graphed = gtorch_graphed_module_new (inner, &sample, 1, NULL);
  g_assert_true (gtorch_module_register_module (outer, "0", GTORCH_MODULE (graphed), &error));
}

int
main (int argc, char *argv[])
{
  gint i;

  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/GTorch/cycles/" #name, name)
  ADD (dropping_the_grad_frees_its_graph);
  ADD (releasing_frees_the_graph_of_the_grad);
  ADD (backward_without_create_graph_frees_the_graph_of_the_grad);
  for (i = 0; i < 4; i++)
    {
      g_autofree gchar *path =
          g_strdup_printf ("/GTorch/cycles/zeroing/%s/%s", i & 1 ? "optimizer" : "module",
                           i & 2 ? "to_none" : "to_zeros");

      g_test_add_data_func (path, GINT_TO_POINTER (i), zeroing_frees_the_graph_of_the_grad);
    }
  ADD (retained_gradients_make_no_cycle);
  ADD (functions_may_save_their_results);
  ADD (in_place_on_an_operand_makes_no_cycle);
  ADD (a_disposed_module_drops_its_hooks);
  ADD (a_disposed_graphed_module_drops_its_capture);
  ADD (a_graphed_module_cannot_be_registered_in_its_module);
  return g_test_run ();
}
