/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The parts of a linear layer and its gradients that cublasLt computes together with the matrix product. */

#include "config.h"

#include <tests/fake-cuda/fake-cublaslt.h>

#include "cuda-test.h"

#define EPILOGUE_BIAS       4
#define EPILOGUE_GRADIENT_B 512

static int
multiply (void *stream, unsigned algorithm)
{
  return 0;
}

static GTorchTensor *
make (const gint64 *shape, guint n_dims, gboolean learns)
{
  GError *error = NULL;
  GTorchTensor *result = gtorch_ones (shape, n_dims, GTORCH_DTYPE_FLOAT32, gpu (0), &error);

  g_assert_no_error (error);
  gtorch_tensor_set_requires_grad (result, learns, &error);
  g_assert_no_error (error);
  return result;
}

/* Returns how many products the backward pass takes. */
static guint
go_back (gint64 rows, gboolean bias_learns, GTorchTensor **grad_bias)
{
  g_autoptr (GTorchTensor) x = make (GTORCH_SHAPE (rows, 8), FALSE);
  g_autoptr (GTorchTensor) w = make (GTORCH_SHAPE (4, 8), TRUE);
  g_autoptr (GTorchTensor) bias = make (GTORCH_SHAPE (4), bias_learns);
  g_autoptr (GTorchTensor) upper = make (GTORCH_SHAPE (rows, 4), FALSE);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) grad = NULL;
  GError *error = NULL;
  guint n;

  y = gtorch_linear (x, w, bias, &error);
  g_assert_no_error (error);
  g_assert_cmpint (fake_cublaslt.epilogue, ==, EPILOGUE_BIAS);
  n = fake_cublaslt.n_products;
  gtorch_tensor_backward (y, upper, FALSE, FALSE, &error);
  g_assert_no_error (error);
  grad = gtorch_tensor_get_grad (w);
  g_assert_nonnull (grad);
  *grad_bias = gtorch_tensor_get_grad (bias);
  g_assert_cmpint (*grad_bias != NULL, ==, bias_learns);
  return fake_cublaslt.n_products - n;
}

static void
bias_and_its_gradient_are_fused (void)
{
  g_autoptr (GTorchTensor) grad = NULL;

  g_assert_cmpuint (go_back (16, TRUE, &grad), ==, 1);
  g_assert_cmpint (fake_cublaslt.epilogue, ==, EPILOGUE_GRADIENT_B);
  g_assert_cmpint (gtorch_tensor_get_numel (grad), ==, 4);
}

static void
unneeded_gradients_are_not_computed (void)
{
  g_autoptr (GTorchTensor) grad = NULL;

  g_assert_cmpuint (go_back (24, FALSE, &grad), ==, 1);
  g_assert_cmpint (fake_cublaslt.epilogue, ==, 0);
}

static void
unsupported_bias_gradients_are_summed_separately (void)
{
  GError *error = NULL;
  guint n_plans = 0, i;
  g_autoptr (GTorchImpl) upper = ramp (gpu (0), GTORCH_DTYPE_FLOAT32, (gint64[]){ 3, 4 }, 2);
  g_autoptr (GTorchImpl) x = ramp (gpu (0), GTORCH_DTYPE_FLOAT32, (gint64[]){ 3, 8 }, 2);

  fake_cublaslt.refuses_epilogues = TRUE;
  for (i = 0; i < 4; i++)
    {
      g_autoptr (GTorchImpl) weight = NULL;
      g_autoptr (GTorchImpl) bias = NULL;
      g_autofree gdouble *values = NULL;
      guint n;

      if (i == 2)
        {
          /* the remaining product does not matter here */
          gtorch_device_set_benchmark (gpu (0), TRUE);
          gtorch_op_linear_grads (upper, x, &weight, &bias, &error);
          g_assert_no_error (error);
          g_clear_pointer (&weight, gtorch_impl_unref);
          g_clear_pointer (&bias, gtorch_impl_unref);
        }
      n = fake_cublaslt.n_products;
      gtorch_op_linear_grads (upper, x, &weight, &bias, &error);
      g_assert_no_error (error);
      g_assert_cmpuint (fake_cublaslt.n_products, ==, n + 1);
      g_assert_cmpint (fake_cublaslt.epilogue, ==, 0);
      values = read_doubles (bias);
      g_assert_cmpfloat (values[0], ==, 0 + 4 + 8);
      g_assert_cmpfloat (values[3], ==, 3 + 7 + 11);
      /* the library remembers that it is not supported */
      if (i == 0 || i == 2)
        n_plans = fake_cublaslt.n_plans;
      g_assert_cmpuint (fake_cublaslt.n_plans, ==, n_plans);
    }
  gtorch_device_set_benchmark (gpu (0), FALSE);
  fake_cublaslt.refuses_epilogues = FALSE;
}

#define TEST(name) g_test_add_func ("/GTorchCudaLinear/" #name, name)

gint
main (gint argc, gchar **argv)
{
  gint result;

  g_test_init (&argc, &argv, NULL);
  fake_cublaslt.multiply = multiply;
  TEST (bias_and_its_gradient_are_fused);
  TEST (unneeded_gradients_are_not_computed);
  TEST (unsupported_bias_gradients_are_summed_separately);
  result = g_test_run ();
  assert_no_misuse ();
  return result;
}
