/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Attention on sizes of more than one block, compared with products and softmax, which the library uses
 * if the mask requires grad. */

#include "config.h"

#include <math.h>
#include <string.h>

#include "test-device.h"

static GTorchTensor *
must (GTorchTensor *tensor, GError *error)
{
  g_assert_no_error (error);
  return tensor;
}

static GTorchTensor *
draw (const gint64 *shape, gsize n_dims)
{
  GError *error = NULL;

  return must (gtorch_randn (shape, n_dims, GTORCH_DTYPE_FLOAT64, NULL, NULL, &error), error);
}

static void
assert_close (GTorchTensor *a, GTorchTensor *b)
{
  gsize n, m, i;
  g_autofree gdouble *x = gtorch_tensor_to_doubles (a, &n, NULL);
  g_autofree gdouble *y = gtorch_tensor_to_doubles (b, &m, NULL);

  g_assert_cmpuint (n, ==, m);
  for (i = 0; i < n; i++)
    g_assert_cmpfloat_with_epsilon (x[i], y[i], 1e-11);
}

/* Returns the result, and in grads the gradients of its sum of squares. */
static GTorchTensor *
attend (GTorchTensor *const *operands, GTorchTensor *mask, gboolean mask_learns, gboolean is_causal,
        gboolean enable_gqa, GTorchTensor **grads)
{
  GTorchTensor *leaves[3];
  g_autoptr (GTorchTensor) own_mask = NULL;
  g_autoptr (GTorchTensor) squares = NULL;
  g_autoptr (GTorchTensor) sum = NULL;
  GTorchTensor *result;
  GError *error = NULL;
  guint i;

  for (i = 0; i < 3; i++)
    {
      leaves[i] = must (gtorch_tensor_detach (operands[i], &error), error);
      gtorch_tensor_set_requires_grad (leaves[i], TRUE, &error);
      g_assert_no_error (error);
    }
  if (mask != NULL)
    own_mask = must (gtorch_tensor_detach (mask, &error), error);
  if (mask_learns)
    gtorch_tensor_set_requires_grad (own_mask, TRUE, &error);
  g_assert_no_error (error);
  result =
      must (gtorch_scaled_dot_product_attention (leaves[0], leaves[1], leaves[2], own_mask, 0,
                                                 is_causal, GTORCH_NONE_DOUBLE, enable_gqa, &error),
            error);
  squares = must (gtorch_tensor_mul (result, result, &error), error);
  sum = must (gtorch_tensor_sum (squares, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error), error);
  gtorch_tensor_backward (sum, NULL, FALSE, FALSE, &error);
  g_assert_no_error (error);
  for (i = 0; i < 3; i++)
    {
      grads[i] = gtorch_tensor_get_grad (leaves[i]);
      g_object_unref (leaves[i]);
    }
  return result;
}

/* Returns the additive form of a bool mask or of causality, with a whole row masked unless it is causal. */
static GTorchTensor *
mask_new (gint64 rows, gint64 columns, gboolean is_causal, gboolean holes)
{
  g_autofree gdouble *values = g_new (gdouble, rows * columns);
  GError *error = NULL;
  gint64 i, j;

  for (i = 0; i < rows; i++)
    for (j = 0; j < columns; j++)
      {
        gboolean masked = is_causal ? j > i : holes && (i == 3 || (i * 7 + j * 5) % 4 == 0);

        values[i * columns + j] = masked ? -INFINITY : (holes ? sin (i + j) : 0);
      }
  return must (gtorch_tensor_new_from_doubles (values, rows * columns, GTORCH_SHAPE (rows, columns),
                                               GTORCH_DTYPE_FLOAT64, NULL, &error),
               error);
}

static void
compare (gint64 rows, gint64 columns, gint64 group, gboolean is_causal, gboolean holes)
{
  GTorchTensor *operands[] = { draw (GTORCH_SHAPE (2, 3 * group, rows, 8)),
                               draw (GTORCH_SHAPE (2, 3, columns, 8)),
                               draw (GTORCH_SHAPE (2, 3, columns, 5)) };
  g_autoptr (GTorchTensor) mask = mask_new (rows, columns, is_causal, holes);
  GTorchTensor *grads[3], *expected_grads[3];
  g_autoptr (GTorchTensor) result =
      attend (operands, holes ? mask : NULL, FALSE, is_causal, group > 1, grads);
  g_autoptr (GTorchTensor) expected =
      attend (operands, mask, TRUE, FALSE, group > 1, expected_grads);
  guint i;

  assert_close (result, expected);
  for (i = 0; i < 3; i++)
    {
      assert_close (grads[i], expected_grads[i]);
      g_object_unref (grads[i]);
      g_object_unref (expected_grads[i]);
      g_object_unref (operands[i]);
    }
}

static void
plain (void)
{
  compare (150, 200, 1, FALSE, FALSE);
}

static void
causal (void)
{
  compare (150, 200, 1, TRUE, FALSE);
  compare (200, 70, 1, TRUE, FALSE);
}

static void
masked (void)
{
  compare (130, 90, 1, FALSE, TRUE);
}

/* Several query heads share one head of key and value. */
static void
grouped (void)
{
  compare (150, 200, 2, FALSE, FALSE);
  compare (70, 90, 4, TRUE, FALSE);
  compare (130, 90, 3, FALSE, TRUE);
}

/* Tests the gradient of the gradient, which is composed of other operations. */
static void
grouped_gradients_have_gradients (void)
{
  GTorchTensor *operands[] = { draw (GTORCH_SHAPE (2, 4, 3, 2)), draw (GTORCH_SHAPE (2, 2, 5, 2)),
                               draw (GTORCH_SHAPE (2, 2, 5, 3)) };
  GTorchTensor *second[2][3];
  GError *error = NULL;
  guint how, i;

  for (i = 0; i < 3; i++)
    {
      gtorch_tensor_set_requires_grad (operands[i], TRUE, &error);
      g_assert_no_error (error);
    }
  for (how = 0; how < 2; how++)
    {
      g_autoptr (GTorchTensor) mask =
          how == 0
              ? NULL
              : must (gtorch_zeros (GTORCH_SHAPE (5), GTORCH_DTYPE_FLOAT64, NULL, &error), error);
      g_autoptr (GTorchTensor) result = NULL;
      g_autoptr (GTorchTensor) squares = NULL;
      g_autoptr (GTorchTensor) sum = NULL;
      g_autoptr (GTorchTensor) all = NULL;

      if (mask != NULL) /* products and softmax are used if the mask requires grad */
        gtorch_tensor_set_requires_grad (mask, TRUE, &error);
      result =
          must (gtorch_scaled_dot_product_attention (operands[0], operands[1], operands[2], mask, 0,
                                                     FALSE, GTORCH_NONE_DOUBLE, TRUE, &error),
                error);
      squares = must (gtorch_tensor_mul (result, result, &error), error);
      sum = must (gtorch_tensor_sum (squares, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error), error);
      gtorch_tensor_backward (sum, NULL, TRUE, TRUE, &error);
      g_assert_no_error (error);
      for (i = 0; i < 3; i++)
        {
          g_autoptr (GTorchTensor) grad = gtorch_tensor_get_grad (operands[i]);
          g_autoptr (GTorchTensor) power = must (gtorch_tensor_mul (grad, grad, &error), error);
          g_autoptr (GTorchTensor) part =
              must (gtorch_tensor_sum (power, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error), error);
          GTorchTensor *next = all == NULL ? g_object_ref (part)
                                           : must (gtorch_tensor_add (all, part, 1, &error), error);

          g_clear_object (&all);
          all = next;
          gtorch_tensor_set_grad (operands[i], NULL, &error);
          g_assert_no_error (error);
        }
      if (mask != NULL) /* its gradient has a graph, which contains the mask */
        gtorch_tensor_set_grad (mask, NULL, &error);
      gtorch_tensor_backward (all, NULL, FALSE, FALSE, &error);
      g_assert_no_error (error);
      for (i = 0; i < 3; i++)
        {
          second[how][i] = gtorch_tensor_get_grad (operands[i]);
          gtorch_tensor_set_grad (operands[i], NULL, &error);
          g_assert_no_error (error);
        }
    }
  for (i = 0; i < 3; i++)
    {
      assert_close (second[0][i], second[1][i]);
      g_object_unref (second[0][i]);
      g_object_unref (second[1][i]);
      g_object_unref (operands[i]);
    }
}

/* Without a matrix of weights, which would have 800 MB. */
static void
long_rows_need_little_memory (void)
{
  const gint64 n = 10000;
  g_autoptr (GTorchTensor) q = draw (GTORCH_SHAPE (n, 4));
  g_autoptr (GTorchTensor) result = NULL;
  GTorchDevice *cpu = gtorch_device_cpu ();
  GError *error = NULL;

  if (test_is_elsewhere ("GPUs do it so in 16 bits only"))
    return;
  gtorch_device_reset_peak_memory (cpu);
  result = must (gtorch_scaled_dot_product_attention (q, q, q, NULL, 0, TRUE, GTORCH_NONE_DOUBLE,
                                                      FALSE, &error),
                 error);
  g_assert_cmpuint (gtorch_device_get_peak_memory_allocated (cpu), <, 8 << 20);
}

static void
dropped_weights_are_scaled (void)
{
  g_autoptr (GTorchTensor) q = draw (GTORCH_SHAPE (400, 4));
  g_autoptr (GTorchTensor) v = NULL;
  g_autoptr (GTorchTensor) result = NULL;
  GError *error = NULL;
  g_autofree gdouble *values = NULL;
  gdouble mean = 0;
  gsize n, i;

  v = must (gtorch_ones (GTORCH_SHAPE (400, 1), GTORCH_DTYPE_FLOAT64, NULL, &error), error);
  result = must (gtorch_scaled_dot_product_attention (q, q, v, NULL, 0.5, FALSE, GTORCH_NONE_DOUBLE,
                                                      FALSE, &error),
                 error);
  values = gtorch_tensor_to_doubles (result, &n, NULL);
  for (i = 0; i < n; i++)
    mean += values[i] / n;
  g_assert_cmpfloat_with_epsilon (mean, 1, 0.05);
  g_assert_cmpfloat (values[0], !=, values[1]);
}

static void
refuse (GTorchTensor *q, GTorchTensor *k, GTorchTensor *v, GTorchTensor *mask, gdouble dropout_p,
        gboolean is_causal, gboolean enable_gqa, GTorchError code, const gchar *part)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_scaled_dot_product_attention (q, k, v, mask, dropout_p, is_causal,
                                                      GTORCH_NONE_DOUBLE, enable_gqa, &error));
  g_assert_error (error, GTORCH_ERROR, code);
  g_assert_true (g_str_has_prefix (error->message, "scaled_dot_product_attention: "));
  g_assert_nonnull (strstr (error->message, part));
}

static void
wrong_operands_are_errors (void)
{
  GError *error = NULL;
  g_autoptr (GTorchTensor) q = draw (GTORCH_SHAPE (2, 3, 5, 4));
  g_autoptr (GTorchTensor) k = draw (GTORCH_SHAPE (2, 3, 7, 4));
  g_autoptr (GTorchTensor) other = draw (GTORCH_SHAPE (2, 3, 7, 6));
  g_autoptr (GTorchTensor) heads = draw (GTORCH_SHAPE (2, 2, 7, 4));
  g_autoptr (GTorchTensor) vector = draw (GTORCH_SHAPE (4));
  g_autoptr (GTorchTensor) mask = draw (GTORCH_SHAPE (7, 1, 5, 7));
  g_autoptr (GTorchTensor) single =
      must (gtorch_tensor_to_dtype (k, GTORCH_DTYPE_FLOAT32, &error), error);
  g_autoptr (GTorchTensor) half =
      must (gtorch_tensor_to_dtype (mask, GTORCH_DTYPE_FLOAT16, &error), error);

  refuse (vector, k, k, NULL, 0, FALSE, FALSE, GTORCH_ERROR_SHAPE, "[4]");
  refuse (q, other, k, NULL, 0, FALSE, FALSE, GTORCH_ERROR_SHAPE, "[2, 3, 7, 6]");
  refuse (q, k, q, NULL, 0, FALSE, FALSE, GTORCH_ERROR_SHAPE, "[2, 3, 5, 4]");
  refuse (q, heads, heads, NULL, 0, FALSE, FALSE, GTORCH_ERROR_SHAPE, "2");
  refuse (q, heads, heads, NULL, 0, FALSE, TRUE, GTORCH_ERROR_SHAPE, "multiple");
  refuse (q, single, k, NULL, 0, FALSE, FALSE, GTORCH_ERROR_DTYPE, "float32");
  refuse (q, k, k, mask, 0, FALSE, FALSE, GTORCH_ERROR_SHAPE, "[7, 1, 5, 7]");
  refuse (q, k, k, mask, 0.5, FALSE, FALSE, GTORCH_ERROR_SHAPE, "[7, 1, 5, 7]");
  refuse (q, k, k, mask, 0, TRUE, FALSE, GTORCH_ERROR_INVALID, "not both");
  refuse (q, k, k, half, 0, FALSE, FALSE, GTORCH_ERROR_DTYPE, "float16");
  refuse (q, k, k, NULL, 1.5, FALSE, FALSE, GTORCH_ERROR_INVALID, "1.5");
  refuse (q, k, k, NULL, NAN, FALSE, FALSE, GTORCH_ERROR_INVALID, "dropout_p");
}

#define TEST(name) g_test_add_func ("/attention/" #name, name)

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  TEST (plain);
  TEST (causal);
  TEST (masked);
  TEST (grouped);
  TEST (grouped_gradients_have_gradients);
  TEST (long_rows_need_little_memory);
  TEST (dropped_weights_are_scaled);
  TEST (wrong_operands_are_errors);
  return g_test_run ();
}
