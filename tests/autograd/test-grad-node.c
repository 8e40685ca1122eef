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

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/GradNode/leads_to_the_leaves", test_leads_to_the_leaves);
  g_test_add_func ("/GTorch/GradNode/knows_no_further_inputs", test_knows_no_further_inputs);
  g_test_add_func ("/GTorch/GradNode/outlives_its_tensor", test_outlives_its_tensor);
  return g_test_run ();
}
