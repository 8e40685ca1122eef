/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Derivatives of functions, against formulas. */

#include "config.h"

#include <string.h>

#include <gtorch/gtorch.h>

#include "autograd-values.h"

static GPtrArray *
list_of (GTorchTensor *one)
{
  GPtrArray *list;

  if (one == NULL)
    return NULL;
  list = g_ptr_array_new_with_free_func (g_object_unref);
  g_ptr_array_add (list, one);
  return list;
}

/* x³ */
static GPtrArray *
cubes (GTorchTensor **inputs, gsize n, gpointer data, GError **error)
{
  return list_of (gtorch_tensor_pow_scalar (inputs[0], 3, error));
}

/* sum (x³) sum (y), or without y sum (x³) */
static GPtrArray *
total (GTorchTensor **inputs, gsize n, gpointer data, GError **error)
{
  g_autoptr (GTorchTensor) cube = gtorch_tensor_pow_scalar (inputs[0], 3, error);
  g_autoptr (GTorchTensor) all = cube != NULL ? sum (cube) : NULL;
  g_autoptr (GTorchTensor) other = n > 1 ? sum (inputs[1]) : NULL;

  if (all == NULL)
    return NULL;
  return list_of (n > 1 ? gtorch_tensor_mul (all, other, error) : g_steal_pointer (&all));
}

/* (x * x, the sum of the second element twice) */
static GPtrArray *
two (GTorchTensor **inputs, gsize n, gpointer data, GError **error)
{
  GPtrArray *list = list_of (gtorch_tensor_mul (inputs[0], inputs[0], error));

  g_ptr_array_add (list, gtorch_tensor_mul_scalar (inputs[1], 2, error));
  return list;
}

static GPtrArray *
constant (GTorchTensor **inputs, gsize n, gpointer data, GError **error)
{
  return list_of (leaf (1, 2, FALSE));
}

static GPtrArray *
fails (GTorchTensor **inputs, gsize n, gpointer data, GError **error)
{
  g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_BUSY, "too busy");
  return NULL;
}

static void
check_values (GTorchTensor *tensor, const gdouble *expected, guint n)
{
  guint i;

  g_assert_cmpint (gtorch_tensor_get_numel (tensor), ==, n);
  for (i = 0; i < n; i++)
    g_assert_cmpfloat_with_epsilon (test_element (tensor, i), expected[i], 1e-12);
}

static void
jacobians_have_a_block_for_each_output_and_input (void)
{
  static const gdouble squares[] = { 2, 0, 0, 4 }, none[4] = { 0 }, twice[] = { 2, 0, 0, 2 };
  g_autoptr (GTorchTensor) x = leaf (1, 2, FALSE);
  g_autoptr (GTorchTensor) y = leaf (5, 2, FALSE);
  GTorchTensor *inputs[] = { x, y };
  g_autoptr (GPtrArray) blocks = NULL;
  g_autoptr (GError) error = NULL;
  guint i;

  blocks = gtorch_autograd_jacobian (two, NULL, inputs, 2, FALSE, FALSE, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (blocks->len, ==, 4);
  check_values (blocks->pdata[0], squares, 4);
  check_values (blocks->pdata[1], none, 4);
  check_values (blocks->pdata[2], none, 4);
  check_values (blocks->pdata[3], twice, 4);
  for (i = 0; i < 4; i++)
    g_assert_false (gtorch_tensor_get_requires_grad (blocks->pdata[i]));
  g_assert_false (gtorch_tensor_get_requires_grad (x));
}

static void
jacobians_can_be_differentiated (void)
{
  static const gdouble expected[] = { 6, 12 };
  g_autoptr (GTorchTensor) x = leaf (1, 2, TRUE);
  g_autoptr (GPtrArray) blocks = NULL;
  g_autoptr (GTorchTensor) grad = NULL;
  g_autoptr (GError) error = NULL;

  blocks = gtorch_autograd_jacobian (cubes, NULL, &x, 1, TRUE, TRUE, &error);
  g_assert_no_error (error);
  backward_sum (blocks->pdata[0]); /* the sum of 3 x² on the diagonal */
  grad = gtorch_tensor_get_grad (x);
  check_values (grad, expected, 2);
}

static void
hessians_have_a_block_for_each_two_inputs (void)
{
  static const gdouble xx[] = { 6 * 11, 0, 0, 12 * 11 }, xy[] = { 3, 3, 12, 12 };
  static const gdouble yx[] = { 3, 12, 3, 12 }, yy[4] = { 0 };
  g_autoptr (GTorchTensor) x = leaf (1, 2, FALSE);
  g_autoptr (GTorchTensor) y = leaf (5, 2, FALSE);
  GTorchTensor *inputs[] = { x, y };
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) blocks =
      gtorch_autograd_hessian (total, NULL, inputs, 2, FALSE, FALSE, &error);

  g_assert_no_error (error);
  g_assert_cmpuint (blocks->len, ==, 4);
  check_values (blocks->pdata[0], xx, 4);
  check_values (blocks->pdata[1], xy, 4);
  check_values (blocks->pdata[2], yx, 4);
  check_values (blocks->pdata[3], yy, 4);
}

typedef GPtrArray *(*Product) (GTorchFunctionalFunc func, gpointer data, GTorchTensor **inputs,
                               gsize n, GTorchTensor **v, gsize n_v, gboolean create_graph,
                               gboolean strict, GPtrArray **products, GError **error);

static void
products_are_those_of_the_matrices (void)
{
  /* of x = [1, 2] and v = [3, 4] */
  static const gdouble of_cubes[] = { 3 * 3, 12 * 4 }, of_total[] = { 6 * 3, 12 * 4 };
  static const gdouble values[] = { 1, 8 }, value_of_total[] = { 9 };
  const struct
  {
    Product product;
    GTorchFunctionalFunc func;
    const gdouble *outputs, *products;
    guint n_outputs;
  } cases[] = {
    { gtorch_autograd_vjp, cubes, values, of_cubes, 2 },
    { gtorch_autograd_jvp, cubes, values, of_cubes, 2 },
    { gtorch_autograd_vhp, total, value_of_total, of_total, 1 },
    { gtorch_autograd_hvp, total, value_of_total, of_total, 1 },
  };
  guint i;

  for (i = 0; i < 2 * G_N_ELEMENTS (cases); i++)
    {
      const guint at = i % G_N_ELEMENTS (cases);
      const gboolean create_graph = i >= G_N_ELEMENTS (cases);
      g_autoptr (GTorchTensor) x = leaf (1, 2, create_graph);
      g_autoptr (GTorchTensor) v = leaf (3, 2, FALSE);
      g_autoptr (GPtrArray) products = NULL;
      g_autoptr (GPtrArray) outputs = NULL;
      g_autoptr (GError) error = NULL;

      outputs = cases[at].product (cases[at].func, NULL, &x, 1, &v, 1, create_graph, FALSE,
                                   &products, &error);
      g_assert_no_error (error);
      g_assert_cmpuint (outputs->len, ==, 1);
      g_assert_cmpuint (products->len, ==, 1);
      check_values (outputs->pdata[0], cases[at].outputs, cases[at].n_outputs);
      check_values (products->pdata[0], cases[at].products, 2);
      g_assert_true (gtorch_tensor_get_requires_grad (products->pdata[0]) == create_graph);
    }
}

static void
check_refused (GTorchFunctionalFunc func, GTorchTensor *x, GTorchTensor *v, gboolean create_graph,
               GQuark domain, gint code, const gchar *text)
{
  g_autoptr (GPtrArray) products = NULL;
  g_autoptr (GPtrArray) outputs = NULL;
  g_autoptr (GError) error = NULL;

  outputs = gtorch_autograd_vjp (func, NULL, &x, x != NULL ? 1 : 0, v != NULL ? &v : NULL,
                                 v != NULL ? 1 : 0, create_graph, TRUE, &products, &error);
  g_assert_null (outputs);
  g_assert_null (products);
  g_assert_error (error, domain, code);
  if (strstr (error->message, text) == NULL)
    g_error ("%s", error->message);
}

static void
wrong_calls_are_refused (void)
{
  g_autoptr (GTorchTensor) x = leaf (1, 2, FALSE);
  g_autoptr (GTorchTensor) three = leaf (1, 3, FALSE);
  g_autoptr (GTorchTensor) whole = gtorch_ones (GTORCH_SHAPE (2), GTORCH_DTYPE_INT64, NULL, NULL);
  g_autoptr (GPtrArray) blocks = NULL;
  g_autoptr (GError) error = NULL;

  check_refused (cubes, x, NULL, FALSE, GTORCH_ERROR, GTORCH_ERROR_INVALID, "v may be missing");
  check_refused (cubes, x, three, FALSE, GTORCH_ERROR, GTORCH_ERROR_SHAPE, "has shape [3]");
  check_refused (constant, x, x, FALSE, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD, "output 0 does not");
  check_refused (fails, x, x, FALSE, G_IO_ERROR, G_IO_ERROR_BUSY, "too busy");
  check_refused (cubes, x, x, TRUE, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD, "does not require grad");
  check_refused (cubes, NULL, x, FALSE, GTORCH_ERROR, GTORCH_ERROR_INVALID, "there are no inputs");
  check_refused (cubes, whole, x, FALSE, GTORCH_ERROR, GTORCH_ERROR_DTYPE, "input 0");
  blocks = gtorch_autograd_hessian (cubes, NULL, &x, 1, FALSE, FALSE, &error);
  g_assert_null (blocks);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "a single one of one element"));
  g_clear_error (&error);
  blocks = gtorch_autograd_jacobian (constant, NULL, &x, 1, FALSE, FALSE, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (test_element (blocks->pdata[0], 3), ==, 0);
}

static void
nothing_has_derivatives_of_no_elements (void)
{
  g_autoptr (GTorchTensor) x = gtorch_zeros (GTORCH_SHAPE (0), GTORCH_DTYPE_FLOAT64, NULL, NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) blocks =
      gtorch_autograd_jacobian (cubes, NULL, &x, 1, FALSE, FALSE, &error);

  g_assert_no_error (error);
  g_assert_cmpint (gtorch_tensor_get_n_dims (blocks->pdata[0]), ==, 2);
  g_assert_cmpint (gtorch_tensor_get_numel (blocks->pdata[0]), ==, 0);
}

#define ADD(name) g_test_add_func ("/GTorch/Functional/" #name, name)

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  ADD (jacobians_have_a_block_for_each_output_and_input);
  ADD (jacobians_can_be_differentiated);
  ADD (hessians_have_a_block_for_each_two_inputs);
  ADD (products_are_those_of_the_matrices);
  ADD (wrong_calls_are_refused);
  ADD (nothing_has_derivatives_of_no_elements);
  return g_test_run ();
}
