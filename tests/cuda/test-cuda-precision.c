/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The effect of the precision settings of a device on matrix products. */

#include "config.h"

#include <tests/fake-cuda/fake-cublaslt.h>

#include "cuda-test.h"

#define COMPUTE_32F           68
#define COMPUTE_64F           70
#define COMPUTE_32F_FAST_16BF 75
#define COMPUTE_32F_FAST_TF32 77

/* Returns the compute type that was requested from cublasLt. */
static gint
compute_of (GTorchDevice *device, guint dtype)
{
  const gint64 shape[] = { 8, 8 };
  g_autoptr (GTorchImpl) x = gtorch_impl_new (device, dtype, shape, 2, NULL);
  g_autoptr (GTorchImpl) y = NULL;
  g_autoptr (GError) error = NULL;
  guint n = fake_cublaslt.n_products;

  y = gtorch_op_mm (x, x, &error);
  g_assert_null (y);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_assert_cmpuint (fake_cublaslt.n_products, ==, n + 1);
  return fake_cublaslt.compute;
}

static void
ieee_is_the_default (void)
{
  g_assert_cmpint (compute_of (gpu (0), GTORCH_DTYPE_FLOAT32), ==, COMPUTE_32F);
  g_assert_cmpint (compute_of (gpu (0), GTORCH_DTYPE_COMPLEX64), ==, COMPUTE_32F);
  g_assert_cmpint (compute_of (gpu (0), GTORCH_DTYPE_FLOAT64), ==, COMPUTE_64F);
  g_assert_cmpint (compute_of (gpu (0), GTORCH_DTYPE_BFLOAT16), ==, COMPUTE_32F);
}

static void
tf32_is_for_float32_of_one_device (void)
{
  gtorch_device_set_matmul_precision (gpu (0), GTORCH_PRECISION_TF32);
  g_assert_cmpint (compute_of (gpu (0), GTORCH_DTYPE_FLOAT32), ==, COMPUTE_32F_FAST_TF32);
  g_assert_cmpint (compute_of (gpu (0), GTORCH_DTYPE_COMPLEX64), ==, COMPUTE_32F_FAST_TF32);
  g_assert_cmpint (compute_of (gpu (0), GTORCH_DTYPE_FLOAT64), ==, COMPUTE_64F);
  g_assert_cmpint (compute_of (gpu (0), GTORCH_DTYPE_COMPLEX128), ==, COMPUTE_64F);
  g_assert_cmpint (compute_of (gpu (0), GTORCH_DTYPE_FLOAT16), ==, COMPUTE_32F);
  g_assert_cmpint (compute_of (gpu (1), GTORCH_DTYPE_FLOAT32), ==, COMPUTE_32F);
  gtorch_device_set_matmul_precision (gpu (0), GTORCH_PRECISION_IEEE);
  g_assert_cmpint (compute_of (gpu (0), GTORCH_DTYPE_FLOAT32), ==, COMPUTE_32F);
}

static void
bf16_is_for_float32_too (void)
{
  gtorch_device_set_matmul_precision (gpu (0), GTORCH_PRECISION_BF16);
  g_assert_cmpint (compute_of (gpu (0), GTORCH_DTYPE_FLOAT32), ==, COMPUTE_32F_FAST_16BF);
  g_assert_cmpint (compute_of (gpu (0), GTORCH_DTYPE_COMPLEX64), ==, COMPUTE_32F_FAST_16BF);
  g_assert_cmpint (compute_of (gpu (0), GTORCH_DTYPE_FLOAT64), ==, COMPUTE_64F);
  g_assert_cmpint (compute_of (gpu (0), GTORCH_DTYPE_BFLOAT16), ==, COMPUTE_32F);
  gtorch_device_set_matmul_precision (gpu (0), GTORCH_PRECISION_IEEE);
}

/* Gradients are matrix products, too. */
static void
gradients_have_the_precision_of_products (void)
{
  const gint64 shape[] = { 8, 8 };
  g_autoptr (GTorchImpl) x = gtorch_impl_new (gpu (0), GTORCH_DTYPE_FLOAT32, shape, 2, NULL);
  g_autoptr (GTorchImpl) y = NULL;
  g_autoptr (GError) error = NULL;

  gtorch_device_set_matmul_precision (gpu (0), GTORCH_PRECISION_TF32);
  y = gtorch_op_linear_grad_weight (x, x, &error);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_assert_cmpint (fake_cublaslt.compute, ==, COMPUTE_32F_FAST_TF32);
  gtorch_device_set_matmul_precision (gpu (0), GTORCH_PRECISION_IEEE);
}

static void
pytorchs_words_set_all_devices (void)
{
  g_autoptr (GError) error = NULL;
  guint i;

  g_assert_cmpstr (gtorch_get_float32_matmul_precision (), ==, "highest");
  g_assert_true (gtorch_set_float32_matmul_precision ("high", &error));
  for (i = 0; i < 2; i++)
    g_assert_cmpint (gtorch_device_get_matmul_precision (gpu (i)), ==, GTORCH_PRECISION_TF32);
  g_assert_cmpint (gtorch_device_get_conv_precision (gpu (0)), ==, GTORCH_PRECISION_IEEE);
  g_assert_true (gtorch_set_float32_matmul_precision ("medium", &error));
  g_assert_cmpint (gtorch_device_get_matmul_precision (gpu (1)), ==, GTORCH_PRECISION_BF16);
  g_assert_cmpstr (gtorch_get_float32_matmul_precision (), ==, "medium");
  g_assert_false (gtorch_set_float32_matmul_precision ("low", &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "set_float32_matmul_precision: “low” is not highest, high or medium");
  g_assert_true (gtorch_set_float32_matmul_precision ("highest", NULL));
  g_assert_cmpint (gtorch_device_get_matmul_precision (gtorch_device_cpu ()), ==,
                   GTORCH_PRECISION_IEEE);
}

static void
convolutions_have_their_own_precision (void)
{
  gtorch_device_set_conv_precision (gpu (0), GTORCH_PRECISION_TF32);
  g_assert_cmpint (gtorch_device_get_matmul_precision (gpu (0)), ==, GTORCH_PRECISION_IEEE);
  g_assert_cmpint (compute_of (gpu (0), GTORCH_DTYPE_FLOAT32), ==, COMPUTE_32F);
  gtorch_device_set_conv_precision (gpu (0), GTORCH_PRECISION_IEEE);
}

static void
each_precision_is_planned_once (void)
{
  guint n = 0, i;

  for (i = 0; i < 6; i++)
    {
      if (i == 2)
        n = fake_cublaslt.n_plans;
      gtorch_device_set_matmul_precision (gpu (0),
                                          i & 1 ? GTORCH_PRECISION_TF32 : GTORCH_PRECISION_IEEE);
      g_assert_cmpint (compute_of (gpu (0), GTORCH_DTYPE_FLOAT32), ==,
                       i & 1 ? COMPUTE_32F_FAST_TF32 : COMPUTE_32F);
    }
  g_assert_cmpuint (fake_cublaslt.n_plans, ==, n);
  g_assert_cmpuint (fake_cublaslt.n_present, ==, n);
}

/* All streams of a device have their own workspaces; the second only requests its workspace. */
static void
workspace_is_made_once (void)
{
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (1), 0, NULL);
  g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);
  guint64 before = gtorch_device_get_memory_allocated (gpu (1)), with;

  compute_of (gpu (1), GTORCH_DTYPE_FLOAT32);
  with = gtorch_device_get_memory_allocated (gpu (1));
  g_assert_cmpuint (with, >=, before + (32 << 20));
  compute_of (gpu (1), GTORCH_DTYPE_FLOAT64);
  g_assert_cmpuint (gtorch_device_get_memory_allocated (gpu (1)), ==, with);
}

#define TEST(name) g_test_add_func ("/GTorchCudaPrecision/" #name, name)

gint
main (gint argc, gchar **argv)
{
  gint result;

  g_test_init (&argc, &argv, NULL);
  TEST (ieee_is_the_default);
  TEST (tf32_is_for_float32_of_one_device);
  TEST (bf16_is_for_float32_too);
  TEST (gradients_have_the_precision_of_products);
  TEST (pytorchs_words_set_all_devices);
  TEST (convolutions_have_their_own_precision);
  TEST (each_precision_is_planned_once);
  TEST (workspace_is_made_once);
  result = g_test_run ();
  assert_no_misuse ();
  return result;
}
