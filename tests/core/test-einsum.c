/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The equations of einsum; values and gradients of the operation are those of its row's samples. */

#include "config.h"

#include <gtorch/gtorch.h>

static GTorchTensor *
ramp (const gint64 *shape, gsize n_dims)
{
  gint64 n = 1;
  g_autoptr (GTorchTensor) row = NULL;

  for (gsize i = 0; i < n_dims; i++)
    n *= shape[i];
  row = gtorch_arange (1, (gdouble) n + 1, 1, GTORCH_DTYPE_FLOAT64, NULL, NULL);
  return gtorch_tensor_reshape (row, shape, n_dims, NULL);
}

static void
assert_same (GTorchTensor *tensor, GTorchTensor *expected)
{
  g_autoptr (GTorchTensor) same = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_nonnull (tensor);
  same = gtorch_tensor_equal (tensor, expected, &error);
  g_assert_no_error (error);
  g_assert_cmpint (gtorch_tensor_item_int (same, NULL), ==, 1);
}

static void
equations_are_products_of_matrices (void)
{
  static const gchar *const equations[] = { "ij,jk->ik", "ij,jk", " i j , j k -> i k ",
                                            "...j,jk->...k", "aB,Bc->ac" };
  g_autoptr (GTorchTensor) a = ramp (GTORCH_SHAPE (2, 3));
  g_autoptr (GTorchTensor) b = ramp (GTORCH_SHAPE (3, 4));
  g_autoptr (GTorchTensor) expected = gtorch_tensor_mm (a, b, NULL);
  GTorchTensor *operands[] = { a, b };

  for (guint i = 0; i < G_N_ELEMENTS (equations); i++)
    {
      g_autoptr (GTorchTensor) product = gtorch_einsum (equations[i], operands, 2, NULL);

      assert_same (product, expected);
    }
}

/* Without an arrow capitals come first, and what occurs twice is summed. */
static void
results_are_implied (void)
{
  g_autoptr (GTorchTensor) x = ramp (GTORCH_SHAPE (2, 3));
  g_autoptr (GTorchTensor) square = ramp (GTORCH_SHAPE (3, 3));
  g_autoptr (GTorchTensor) turned = gtorch_einsum ("bA", &x, 1, NULL);
  g_autoptr (GTorchTensor) trace = gtorch_einsum ("ii", &square, 1, NULL);
  g_autoptr (GTorchTensor) diagonal = gtorch_einsum ("ii->i", &square, 1, NULL);
  g_autoptr (GTorchTensor) expected = gtorch_tensor_t (x, NULL);
  g_autoptr (GTorchTensor) expected_diagonal = gtorch_tensor_diagonal (square, 0, 0, 1, NULL);

  assert_same (turned, expected);
  assert_same (diagonal, expected_diagonal);
  g_assert_cmpfloat (gtorch_tensor_item_double (trace, NULL), ==, 15);
}

/* The order of several operands does not change the result, whether it is found or known already. */
static void
several_operands_are_multiplied_in_any_order (void)
{
  g_autoptr (GTorchTensor) a = ramp (GTORCH_SHAPE (2, 9));
  g_autoptr (GTorchTensor) b = ramp (GTORCH_SHAPE (9, 3));
  g_autoptr (GTorchTensor) c = ramp (GTORCH_SHAPE (3, 8));
  g_autoptr (GTorchTensor) d = ramp (GTORCH_SHAPE (8, 1));
  g_autoptr (GTorchTensor) cd = gtorch_tensor_mm (c, d, NULL);
  g_autoptr (GTorchTensor) bcd = gtorch_tensor_mm (b, cd, NULL);
  g_autoptr (GTorchTensor) expected = gtorch_tensor_mm (a, bcd, NULL);
  GTorchTensor *operands[] = { a, b, c, d };

  for (guint i = 0; i < 3; i++)
    {
      g_autoptr (GTorchTensor) product = gtorch_einsum ("ij,jk,kl,lm->im", operands, 4, NULL);

      assert_same (product, expected);
    }
}

static void
mistakes_are_named (void)
{
  static const struct
  {
    const gchar *equation;
    guint n;
    gint code;
    const gchar *message;
  } mistakes[] = {
    { "i1,jk", 2, GTORCH_ERROR_INVALID,
      "einsum: character 1 of the equation “i1,jk” is not a letter, “,”, “...” or the only “->”" },
    { "ij->i->j", 1, GTORCH_ERROR_INVALID,
      "einsum: character 5 of the equation “ij->i->j” is not a letter, “,”, “...” or the only "
      "“->”" },
    { "..ij", 1, GTORCH_ERROR_INVALID,
      "einsum: character 0 of the equation “..ij” is not a letter, “,”, “...” or the only “->”" },
    { "ij,jk", 1, GTORCH_ERROR_INVALID,
      "einsum: the equation “ij,jk” has labels for 2 operands, there are 1" },
    { "ij->k", 1, GTORCH_ERROR_INVALID, "einsum: the output has a label that no operand has" },
    { "ij->ii", 1, GTORCH_ERROR_INVALID, "einsum: the output has a label twice" },
    { "......", 1, GTORCH_ERROR_INVALID, "einsum: an operand has two ellipses" },
    { "i", 1, GTORCH_ERROR_SHAPE,
      "einsum: operand 0 of shape [2, 3] has 2 dimensions, and 1 labels for them" },
    { "ii", 1, GTORCH_ERROR_SHAPE,
      "einsum: dimension 1 of operand 0 with shape [2, 3] does not match the size 2 that its label "
      "has elsewhere" },
    { "ij,ji", 2, GTORCH_ERROR_SHAPE,
      "einsum: dimension 0 of operand 1 with shape [2, 3] does not match the size 3 that its label "
      "has elsewhere" },
  };
  g_autoptr (GTorchTensor) x = ramp (GTORCH_SHAPE (2, 3));
  GTorchTensor *operands[] = { x, x };

  for (guint i = 0; i < G_N_ELEMENTS (mistakes); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) product =
          gtorch_einsum (mistakes[i].equation, operands, mistakes[i].n, &error);

      g_assert_null (product);
      g_assert_error (error, GTORCH_ERROR, mistakes[i].code);
      g_assert_cmpstr (error->message, ==, mistakes[i].message);
    }
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/einsum/equations_are_products_of_matrices",
                   equations_are_products_of_matrices);
  g_test_add_func ("/GTorch/einsum/results_are_implied", results_are_implied);
  g_test_add_func ("/GTorch/einsum/several_operands_are_multiplied_in_any_order",
                   several_operands_are_multiplied_in_any_order);
  g_test_add_func ("/GTorch/einsum/mistakes_are_named", mistakes_are_named);
  return g_test_run ();
}
