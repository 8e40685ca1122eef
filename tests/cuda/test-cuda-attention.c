/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* When attention uses cuDNN, and when matrix products and softmax. */

#include "config.h"

#include <math.h>

#include <tests/fake-cuda/cudnn/fake-cudnn.h>
#include <tests/fake-cuda/fake-cublaslt.h>

#include "cuda-test.h"

/* each case has its own size: the library remembers what cuDNN does not support */
static gint64 rows = 16;

static int
multiply (void *stream, unsigned algorithm)
{
  return 0;
}

typedef struct
{
  gint64 heads, key_heads;
  const gint64 *mask;
  guint n_mask_dims, mask_dtype, dtype;
  gdouble dropout_p;
  gboolean is_causal, mask_learns;
} Case;

static GTorchTensor *
make (const gint64 *shape, guint n_dims, guint dtype)
{
  GError *error = NULL;
  GTorchTensor *result = gtorch_empty (shape, n_dims, dtype, gpu (0), &error);

  g_assert_no_error (error);
  return result;
}

/* Returns how often cuDNN ran; *products: how often cublasLt ran. */
static guint
attend (const Case *c, guint *products)
{
  guint dtype = c->dtype != 0 ? c->dtype : GTORCH_DTYPE_BFLOAT16;
  g_autoptr (GTorchTensor) q = make (GTORCH_SHAPE (2, c->heads, rows, 16), dtype);
  g_autoptr (GTorchTensor) k = make (GTORCH_SHAPE (2, c->key_heads, 24, 16), dtype);
  g_autoptr (GTorchTensor) v = make (GTORCH_SHAPE (2, c->key_heads, 24, 8), dtype);
  g_autoptr (GTorchTensor) mask = NULL;
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GError) error = NULL;
  guint n = fake_cudnn.n_executed, m = fake_cublaslt.n_products;

  if (c->mask != NULL)
    mask = make (c->mask, c->n_mask_dims, c->mask_dtype);
  if (c->mask_learns)
    {
      gtorch_tensor_set_requires_grad (mask, TRUE, &error);
      g_assert_no_error (error);
    }
  y = gtorch_scaled_dot_product_attention (q, k, v, mask, c->dropout_p, c->is_causal,
                                           GTORCH_NONE_DOUBLE, c->heads != c->key_heads, &error);
  /* In the fallback, the fake driver has neither where, for rows that are masked entirely, nor softmax. */
  if (fake_cudnn.n_executed > n && mask == NULL)
    {
      g_assert_no_error (error);
      g_assert_nonnull (y);
    }
  *products = fake_cublaslt.n_products - m;
  return fake_cudnn.n_executed - n;
}

static const Case by_cudnn[] = {
  { 4, 4 },
  { 4, 4, .is_causal = TRUE },
  { 4, 4, .dropout_p = 0.25 },
  { 4, 2 },
  { 4, 1, .is_causal = TRUE, .dtype = GTORCH_DTYPE_FLOAT16 },
  { 4, 4, (gint64[]){ 24 }, 1, GTORCH_DTYPE_BOOL },
  { 4, 4, (gint64[]){ 2, 1, 1, 24 }, 4, GTORCH_DTYPE_BOOL },
  { 4, 4, (gint64[]){ 4, 1, 24 }, 3, GTORCH_DTYPE_BFLOAT16 },
  { 4, 2, (gint64[]){ 1, 24 }, 2, GTORCH_DTYPE_FLOAT32 },
};

static const Case by_products[] = {
  { 4, 4, .dtype = GTORCH_DTYPE_FLOAT32 },
  { 4, 4, .dropout_p = 1 },
  { 4, 4, (gint64[]){ 0 }, 0, GTORCH_DTYPE_BOOL },
  { 4, 4, (gint64[]){ 24 }, 1, GTORCH_DTYPE_BFLOAT16, .mask_learns = TRUE },
};

static void
cudnn_computes_supported_cases (void)
{
  guint products, i;

  fake_cudnn.n_engines = 1;
  fake_cudnn.engines[0].workspace = 1000;
  for (i = 0; i < G_N_ELEMENTS (by_cudnn); i++, rows++)
    {
      g_assert_cmpuint (attend (&by_cudnn[i], &products), ==, 1);
      g_assert_cmpuint (products, ==, 0);
      g_assert_nonnull (fake_cudnn.workspace);
    }
  fake_cudnn.n_engines = 0;
}

static void
other_cases_use_products (void)
{
  guint products, i;

  /* cuDNN has no engine at all … */
  for (i = 0; i < G_N_ELEMENTS (by_cudnn); i++, rows++)
    {
      g_assert_cmpuint (attend (&by_cudnn[i], &products), ==, 0);
      g_assert_cmpuint (products, >, 0);
    }
  /* … or not for this case */
  fake_cudnn.n_engines = 1;
  for (i = 0; i < G_N_ELEMENTS (by_products); i++, rows++)
    {
      g_assert_cmpuint (attend (&by_products[i], &products), ==, 0);
      g_assert_cmpuint (products, >, 0);
    }
  fake_cudnn.n_engines = 0;
}

#define TEST(name) g_test_add_func ("/GTorchCudaAttention/" #name, name)

gint
main (gint argc, gchar **argv)
{
  gint result;

  g_test_init (&argc, &argv, NULL);
  fake_cublaslt.multiply = multiply;
  fake_cudnn.engines[0].note = -1;
  TEST (cudnn_computes_supported_cases);
  TEST (other_cases_use_products);
  result = g_test_run ();
  assert_no_misuse ();
  return result;
}
