/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "test-device.h"

static GTorchTensor *
leaf (void)
{
  GTorchTensor *made = gtorch_ones ((const gint64[]){ 2 }, 1, GTORCH_DTYPE_NONE, NULL, NULL);

  g_assert_true (gtorch_tensor_set_requires_grad (made, TRUE, NULL));
  return made;
}

static void
test_leads_to_the_leaves (void)
{
  g_autoptr (GTorchTensor) x = leaf ();
  g_autoptr (GTorchTensor) y =
      gtorch_ones ((const gint64[]){ 2 }, 1, GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GTorchTensor) product = gtorch_tensor_mul (x, y, NULL);
  g_autoptr (GTorchTensor) sum =
      gtorch_tensor_sum (product, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL);
  g_autoptr (GTorchGradNode) last = gtorch_tensor_dup_grad_node (sum);
  g_autoptr (GTorchGradNode) first = NULL;
  g_autoptr (GTorchGradNode) same = gtorch_tensor_dup_grad_node (product);
  g_autoptr (GTorchTensor) found = NULL;

  g_assert_cmpstr (gtorch_grad_node_get_name (last), ==, "sum");
  g_assert_cmpuint (gtorch_grad_node_get_n_inputs (last), ==, 1);
  g_assert_null (gtorch_grad_node_dup_leaf (last, 0));
  g_assert_cmpuint (gtorch_grad_node_get_output_of_input (last, 0), ==, 0);
  first = gtorch_grad_node_dup_input (last, 0);
  g_assert_true (gtorch_grad_node_equal (first, same));
  g_assert_false (gtorch_grad_node_equal (first, last));
  g_assert_cmpstr (gtorch_grad_node_get_name (first), ==, "mul");
  g_assert_null (gtorch_grad_node_dup_input (first, 0));
  found = gtorch_grad_node_dup_leaf (first, 0);
  g_assert_true (found == x);
  g_assert_null (gtorch_grad_node_dup_leaf (first, 1));
}

static void
test_knows_no_further_inputs (void)
{
  g_autoptr (GTorchTensor) x = leaf ();
  g_autoptr (GTorchTensor) y = gtorch_tensor_neg (x, NULL);
  g_autoptr (GTorchGradNode) node = gtorch_tensor_dup_grad_node (y);

  g_assert_null (gtorch_tensor_dup_grad_node (x));
  g_assert_null (gtorch_grad_node_dup_input (node, 7));
  g_assert_null (gtorch_grad_node_dup_leaf (node, 7));
  g_assert_cmpuint (gtorch_grad_node_get_output_of_input (node, 7), ==, 0);
}

static void
test_outlives_its_tensor (void)
{
  g_autoptr (GTorchTensor) x = leaf ();
  GTorchTensor *y = gtorch_tensor_neg (x, NULL);
  GTorchGradNode *node = gtorch_tensor_dup_grad_node (y);
  GTorchGradNode *copy = g_boxed_copy (GTORCH_TYPE_GRAD_NODE, node);

  g_assert_true (copy == node);
  gtorch_tensor_unref (y);
  g_assert_cmpstr (gtorch_grad_node_get_name (node), ==, "neg");
  g_boxed_free (GTORCH_TYPE_GRAD_NODE, copy);
  gtorch_grad_node_unref (node);
}

/* What hooks see, and the factor by which they replace it. */
typedef struct
{
  guint n_before, n_after, n_freed;
  gsize n_inputs, n_outputs;
  gboolean fails, wrong;
} Seen;

static gdouble
first_of (GTorchTensor *x)
{
  g_autoptr (GTorchTensor) one = gtorch_tensor_get (x, "0", NULL);

  return gtorch_tensor_item_double (one, NULL);
}

static gdouble
first_of_grad (GTorchTensor *x)
{
  g_autoptr (GTorchTensor) grad = gtorch_tensor_get_grad (x);

  return first_of (grad);
}

static GPtrArray *
times (GTorchTensor **grads, gsize n, gint64 factor, GError **error)
{
  GPtrArray *list = g_ptr_array_new ();
  gsize i;

  for (i = 0; i < n; i++)
    g_ptr_array_add (list,
                     grads[i] != NULL ? gtorch_tensor_mul_int (grads[i], factor, error) : NULL);
  return list;
}

static GPtrArray *
before (GTorchGradNode *node, GTorchTensor **grads, gsize n, gpointer data, GError **error)
{
  Seen *seen = data;

  seen->n_before++;
  g_assert_cmpstr (gtorch_grad_node_get_name (node), ==, "mul");
  if (seen->fails)
    {
      g_set_error_literal (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, "the hook does not want to");
      return NULL;
    }
  if (!seen->wrong)
    return times (grads, n, 2, error);
  {
    GPtrArray *list = g_ptr_array_new ();

    g_ptr_array_add (list, gtorch_ones ((const gint64[]){ 3 }, 1, GTORCH_DTYPE_NONE, NULL, error));
    return list;
  }
}

static GPtrArray *
after (GTorchGradNode *node, GTorchTensor **grads, gsize n, GTorchTensor **of_outputs,
       gsize n_outputs, gpointer data, GError **error)
{
  Seen *seen = data;

  seen->n_after++;
  seen->n_inputs = n;
  seen->n_outputs = n_outputs;
  g_assert_null (grads[1]);
  g_assert_cmpfloat (first_of (of_outputs[0]), ==, 2);
  return times (grads, n, 5, error);
}

static void
freed (gpointer data)
{
  ((Seen *) data)->n_freed++;
}

static void
test_hooks_replace_gradients (void)
{
  Seen seen = { 0 };
  g_autoptr (GTorchTensor) x = leaf ();
  g_autoptr (GTorchTensor) y =
      gtorch_ones ((const gint64[]){ 2 }, 1, GTORCH_DTYPE_NONE, NULL, NULL);
  GTorchTensor *product = gtorch_tensor_mul (x, y, NULL);
  GTorchTensor *sum = gtorch_tensor_sum (product, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL);
  GTorchGradNode *node = gtorch_tensor_dup_grad_node (product);
  guint64 first, id;

  first = gtorch_grad_node_register_prehook (node, before, &seen, freed);
  id = gtorch_grad_node_register_hook (node, after, &seen, freed);
  g_assert_cmpuint (first, !=, 0);
  g_assert_cmpuint (id, !=, first);
  g_assert_true (gtorch_tensor_backward (sum, NULL, TRUE, FALSE, NULL));
  g_assert_cmpuint (seen.n_before, ==, 1);
  g_assert_cmpuint (seen.n_after, ==, 1);
  g_assert_cmpuint (seen.n_inputs, ==, 2);
  g_assert_cmpuint (seen.n_outputs, ==, 1);
  g_assert_cmpfloat (first_of_grad (x), ==, 10);

  g_assert_true (gtorch_grad_node_remove_hook (node, id));
  g_assert_false (gtorch_grad_node_remove_hook (node, id));
  g_assert_cmpuint (seen.n_freed, ==, 1);
  g_assert_true (gtorch_tensor_backward (sum, NULL, FALSE, FALSE, NULL));
  g_assert_cmpfloat (first_of_grad (x), ==, 12);
  gtorch_grad_node_unref (node);
  gtorch_tensor_unref (product);
  g_assert_cmpuint (seen.n_freed, ==, 1);
  gtorch_tensor_unref (sum);
  g_assert_cmpuint (seen.n_freed, ==, 2);
}

static void
test_errors_of_hooks_end_the_pass (void)
{
  Seen seen = { .fails = TRUE };
  g_autoptr (GTorchTensor) x = leaf ();
  g_autoptr (GTorchTensor) product = gtorch_tensor_mul_int (x, 3, NULL);
  g_autoptr (GTorchTensor) sum =
      gtorch_tensor_sum (product, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL);
  g_autoptr (GTorchGradNode) node = gtorch_tensor_dup_grad_node (product);
  g_autoptr (GError) error = NULL;

  gtorch_grad_node_register_prehook (node, before, &seen, NULL);
  g_assert_false (gtorch_tensor_backward (sum, NULL, TRUE, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
  g_assert_cmpstr (error->message, ==, "the hook does not want to");
  g_clear_error (&error);
  seen.fails = FALSE;
  seen.wrong = TRUE;
  g_assert_false (gtorch_tensor_backward (sum, NULL, TRUE, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  g_assert_cmpstr (error->message, ==,
                   "mul: a hook gave gradient 0 of the outputs of dtype float32 and shape [3] for "
                   "one "
                   "of dtype float32 and shape [2]: dtype, shape and device must stay, and there "
                   "must "
                   "be one");
  g_assert_null (gtorch_tensor_get_grad (x));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/GradNode/leads_to_the_leaves", test_leads_to_the_leaves);
  g_test_add_func ("/GTorch/GradNode/knows_no_further_inputs", test_knows_no_further_inputs);
  g_test_add_func ("/GTorch/GradNode/outlives_its_tensor", test_outlives_its_tensor);
  g_test_add_func ("/GTorch/GradNode/hooks_replace_gradients", test_hooks_replace_gradients);
  g_test_add_func ("/GTorch/GradNode/errors_of_hooks_end_the_pass",
                   test_errors_of_hooks_end_the_pass);
  return g_test_run ();
}
