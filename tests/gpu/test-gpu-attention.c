/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Attention on a GPU, with cuDNN and with products; values and gradients are compared with float64 on the
 * CPU. */

#include "config.h"

#include <math.h>

#include "gpu-test.h"

typedef struct
{
  gint64 batch, heads, rows, columns, depth, width;
  gboolean is_causal, heads_behind_rows;
  guint mask;
  gint64 group; /* query heads for each head of key and value, 0 for 1 */
} Case;

enum
{
  NO_MASK,
  BOOL_MASK,    /* [rows, columns], one row is masked entirely */
  PADDING_MASK, /* [batch, 1, 1, columns], bool */
  ADDED_MASK,   /* [batch, 1, rows, columns], of the query's dtype, with -infinity */
  WIDE_MASK,    /* [heads, 1, columns], float32 */
};

static const Case cases[] = {
  { 2, 3, 128, 128, 64, 64 },
  { 2, 3, 128, 128, 64, 64, TRUE },
  { 1, 2, 300, 200, 128, 128, TRUE, TRUE },
  { 1, 2, 77, 130, 64, 32, FALSE, TRUE },
  { 2, 2, 33, 5, 8, 16 },
  { 1, 1, 200, 70, 72, 40, TRUE },
  { 1, 2, 64, 64, 20, 12 },
  { 1, 1, 1, 1, 16, 16, TRUE },
  { 2, 2, 65, 50, 64, 64, .mask = BOOL_MASK },
  { 2, 3, 128, 128, 64, 64, .mask = BOOL_MASK },
  { 1, 2, 300, 260, 128, 128, .mask = BOOL_MASK, .heads_behind_rows = TRUE },
  { 3, 2, 70, 77, 64, 32, .mask = PADDING_MASK },
  { 2, 4, 128, 256, 128, 128, .mask = PADDING_MASK },
  { 2, 2, 129, 64, 64, 64, .mask = ADDED_MASK },
  { 2, 4, 200, 100, 128, 128, .mask = ADDED_MASK },
  { 2, 4, 64, 136, 64, 64, .mask = WIDE_MASK },
  { 2, 4, 1, 500, 128, 128, .mask = PADDING_MASK },
  { 2, 6, 128, 128, 64, 64, .group = 3 },
  { 2, 4, 300, 200, 128, 128, TRUE, TRUE, .group = 2 },
  { 1, 4, 77, 130, 64, 32, .group = 4 },
  { 2, 4, 130, 90, 64, 64, .mask = ADDED_MASK, .group = 2 },
  { 2, 4, 1, 333, 128, 128, .mask = PADDING_MASK, .group = 4 },
};

static GTorchTensor *
draw (const Case *c, gint64 heads, gint64 rows, gint64 elements, GTorchDType dtype)
{
  const gint64 shape[] = { c->batch, c->heads_behind_rows ? rows : heads,
                           c->heads_behind_rows ? heads : rows, elements };
  g_autoptr (GTorchTensor) all =
      TRY (gtorch_randn (shape, 4, GTORCH_DTYPE_FLOAT64, NULL, NULL, &error));
  g_autoptr (GTorchTensor) turned =
      c->heads_behind_rows ? TRY (gtorch_tensor_transpose (all, 1, 2, &error)) : g_object_ref (all);

  return as (turned, dtype);
}

static void
learn (GTorchTensor *x)
{
  GError *error = NULL;

  gtorch_tensor_set_requires_grad (x, TRUE, &error);
  g_assert_no_error (error);
}

/* Returns the mask on the CPU, or NULL if the case has none. */
static GTorchTensor *
make_mask (const Case *c, GTorchDType dtype)
{
  const gint64 shapes[][4] = {
    [BOOL_MASK] = { c->rows, c->columns },
    [PADDING_MASK] = { c->batch, 1, 1, c->columns },
    [ADDED_MASK] = { c->batch, 1, c->rows, c->columns },
    [WIDE_MASK] = { c->heads, 1, c->columns },
  };
  const guint n_dims[] = { [BOOL_MASK] = 2, [PADDING_MASK] = 4, [ADDED_MASK] = 4, [WIDE_MASK] = 3 };
  gint64 n = 1, i;
  g_autofree gdouble *values = NULL;
  gboolean is_bool = c->mask == BOOL_MASK || c->mask == PADDING_MASK;

  if (c->mask == NO_MASK)
    return NULL;
  for (i = 0; i < n_dims[c->mask]; i++)
    n *= shapes[c->mask][i];
  values = g_new (gdouble, n);
  for (i = 0; i < n; i++)
    {
      gboolean open = c->mask == PADDING_MASK ? i % c->columns <= c->columns / 2 + i / c->columns
                                              : (i * 7 + i / c->columns) % 4 != 0;

      if (c->mask == BOOL_MASK || c->mask == ADDED_MASK)
        open = open && i / c->columns % c->rows != 3;
      values[i] = is_bool ? open : (open || c->mask == WIDE_MASK ? sin (i) : -INFINITY);
    }
  return TRY (gtorch_tensor_new_from_doubles (values, n, shapes[c->mask], n_dims[c->mask],
                                              is_bool ? GTORCH_DTYPE_BOOL
                                                      : (c->mask == WIDE_MASK ? GTORCH_DTYPE_FLOAT32
                                                                              : dtype),
                                              NULL, &error));
}

/* Returns the result; the operands get their gradients. */
static GTorchTensor *
attend (const Case *c, GTorchTensor **operands, GTorchTensor *mask, gdouble dropout_p,
        GTorchTensor *upper)
{
  GTorchTensor *result;
  GError *problem = NULL;
  guint i;

  for (i = 0; i < 3; i++)
    learn (operands[i]);
  result = TRY (gtorch_scaled_dot_product_attention (operands[0], operands[1], operands[2], mask,
                                                     dropout_p, c->is_causal, GTORCH_NONE_DOUBLE,
                                                     c->group > 1, &error));
  gtorch_tensor_backward (result, upper, FALSE, FALSE, &problem);
  g_assert_no_error (problem);
  return result;
}

static gdouble
limit (GTorchDType dtype)
{
  return dtype == GTORCH_DTYPE_BFLOAT16 ? 4e-2 : 2 * tolerance_of (dtype);
}

static void
values_and_gradients_agree (gconstpointer data)
{
  static const GTorchDType dtypes[] = { GTORCH_DTYPE_BFLOAT16, GTORCH_DTYPE_FLOAT16,
                                        GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64 };
  const Case *c = data;
  guint d, i;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    {
      gint64 shared = c->heads / MAX (c->group, 1);
      GTorchTensor *host[] = { draw (c, c->heads, c->rows, c->depth, dtypes[d]),
                               draw (c, shared, c->columns, c->depth, dtypes[d]),
                               draw (c, shared, c->columns, c->width, dtypes[d]) };
      GTorchTensor *there[3], *wide[3];
      g_autoptr (GTorchTensor) upper = draw (c, c->heads, c->rows, c->width, dtypes[d]);
      g_autoptr (GTorchTensor) there_upper = on (upper, gpu);
      g_autoptr (GTorchTensor) wide_upper = as (upper, GTORCH_DTYPE_FLOAT64);
      g_autoptr (GTorchTensor) mask = make_mask (c, dtypes[d]);
      g_autoptr (GTorchTensor) there_mask = mask != NULL ? on (mask, gpu) : NULL;
      g_autoptr (GTorchTensor) wide_mask =
          mask == NULL || gtorch_tensor_get_dtype (mask) == GTORCH_DTYPE_BOOL
              ? g_steal_pointer (&mask)
              : as (mask, GTORCH_DTYPE_FLOAT64);
      g_autoptr (GTorchTensor) result = NULL;
      g_autoptr (GTorchTensor) expected = NULL;

      for (i = 0; i < 3; i++)
        {
          wide[i] = as (host[i], GTORCH_DTYPE_FLOAT64);
          if (c->heads_behind_rows)
            {
              g_autoptr (GTorchTensor) back = TRY (gtorch_tensor_transpose (host[i], 1, 2, &error));
              g_autoptr (GTorchTensor) copy = on (back, gpu);

              there[i] = TRY (gtorch_tensor_transpose (copy, 1, 2, &error));
            }
          else
            there[i] = on (host[i], gpu);
        }
      result = attend (c, there, there_mask, 0, there_upper);
      expected = attend (c, wide, wide_mask, 0, wide_upper);
      agree ("attention", result, expected, limit (dtypes[d]));
      {
        g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
        g_autoptr (GTorchTensor) alone =
            TRY (gtorch_scaled_dot_product_attention (there[0], there[1], there[2], there_mask, 0,
                                                      c->is_causal, GTORCH_NONE_DOUBLE,
                                                      c->group > 1, &error));

        agree ("attention without gradients", alone, expected, limit (dtypes[d]));
      }
      for (i = 0; i < 3; i++)
        {
          static const gchar *const names[] = { "gradient of query", "gradient of key",
                                                "gradient of value" };

          agree_in_gradients (names[i], there[i], wide[i], 2 * limit (dtypes[d]));
          g_object_unref (host[i]);
          g_object_unref (there[i]);
          g_object_unref (wide[i]);
        }
    }
}

/* Each matrix of weights would have 4 GiB. */
static void
weights_are_not_kept (void)
{
  static const Case ways[] = {
    { .is_causal = TRUE },
    { .mask = PADDING_MASK },
    { .group = 4 },
    { .heads = 32 },
  };
  static const gdouble dropped[] = { 0, 0, 0, 0.1 };
  const gint64 length = is_under_sanitizer () ? 256 : 8192;
  guint w, i;

  for (w = 0; w < G_N_ELEMENTS (ways); w++)
    {
      const gint64 shape[] = { 1, 32, length, 64 };
      const gint64 shared[] = { 1, 32 / MAX (ways[w].group, 1), length, 64 };
      g_autoptr (GTorchTensor) mask = NULL;
      g_autoptr (GTorchTensor) upper = NULL;
      g_autoptr (GTorchTensor) result = NULL;
      GTorchTensor *operands[3];
      guint64 before;

      for (i = 0; i < 3; i++)
        operands[i] = TRY (
            gtorch_randn (i == 0 ? shape : shared, 4, GTORCH_DTYPE_BFLOAT16, gpu, NULL, &error));
      upper = TRY (gtorch_randn (shape, 4, GTORCH_DTYPE_BFLOAT16, gpu, NULL, &error));
      if (ways[w].mask != NO_MASK)
        mask = TRY (gtorch_ones (GTORCH_SHAPE (1, 1, 1, length), GTORCH_DTYPE_BOOL, gpu, &error));
      before = gtorch_device_get_memory_allocated (gpu);
      gtorch_device_reset_peak_memory (gpu);
      result = attend (&ways[w], operands, mask, dropped[w], upper);
      g_test_message ("at most %" G_GUINT64_FORMAT " MiB",
                      (gtorch_device_get_peak_memory_allocated (gpu) - before) >> 20);
      g_assert_cmpuint (gtorch_device_get_peak_memory_allocated (gpu), <,
                        before + (G_GUINT64_CONSTANT (1) << 30));
      for (i = 0; i < 3; i++)
        g_object_unref (operands[i]);
    }
}

/* Computes attention with p = 0.25, seeded. */
static GTorchTensor *
drop (GTorchTensor *const *operands)
{
  GError *problem = NULL;

  gtorch_generator_set_seed (gtorch_device_get_default_generator (gpu), 42);
  g_assert_no_error (problem);
  return TRY (gtorch_scaled_dot_product_attention (operands[0], operands[1], operands[2], NULL,
                                                   0.25, FALSE, GTORCH_NONE_DOUBLE, FALSE, &error));
}

/* The dropped weights are visible if the values are the identity and all weights are equal; with them the
 * CPU computes the reference. */
static void
backward_drops_the_same_weights (void)
{
  const gint64 n = 128, shape[] = { 2, 3, n, n };
  g_autoptr (GTorchTensor) zeros =
      TRY (gtorch_zeros (shape, 4, GTORCH_DTYPE_BFLOAT16, gpu, &error));
  g_autoptr (GTorchTensor) eye = TRY (gtorch_eye (n, n, GTORCH_DTYPE_BFLOAT16, gpu, &error));
  g_autoptr (GTorchTensor) eyes = TRY (gtorch_tensor_expand (eye, shape, 4, &error));
  g_autoptr (GTorchTensor) all_eyes = TRY (gtorch_tensor_clone (eyes, &error));
  g_autoptr (GTorchTensor) weights = drop ((GTorchTensor *[]){ zeros, zeros, all_eyes });
  g_autoptr (GTorchTensor) again = drop ((GTorchTensor *[]){ zeros, zeros, all_eyes });
  g_autoptr (GTorchTensor) scaled = TRY (gtorch_tensor_mul_scalar (weights, n, &error));
  g_autoptr (GTorchTensor) wide_factors = as (scaled, GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchTensor) factors = on (wide_factors, gtorch_device_cpu ());
  g_autoptr (GTorchTensor) same = as (again, GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchTensor) wide_weights = as (weights, GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchTensor) host_weights = on (wide_weights, gtorch_device_cpu ());
  GTorchTensor *there[3], *wide[3], *upper, *wide_upper;
  GError *problem = NULL;
  gsize n_all, i, n_dropped = 0;
  g_autofree gdouble *values = gtorch_tensor_to_doubles (factors, &n_all, NULL);

  for (i = 0; i < n_all; i++)
    {
      g_assert_true (values[i] == 0 || fabs (values[i] - 1 / 0.75) < 0.02);
      n_dropped += values[i] == 0;
    }
  g_test_message ("%.4f of the weights are dropped", n_dropped / (gdouble) n_all);
  g_assert_cmpfloat (fabs (n_dropped / (gdouble) n_all - 0.25), <, 0.01);
  agree ("the same seed", same, host_weights, 0);

  upper = TRY (gtorch_randn (shape, 4, GTORCH_DTYPE_BFLOAT16, gpu, NULL, &error));
  for (i = 0; i < 3; i++)
    {
      g_autoptr (GTorchTensor) host = NULL;

      there[i] = TRY (gtorch_randn (shape, 4, GTORCH_DTYPE_BFLOAT16, gpu, NULL, &error));
      host = on (there[i], gtorch_device_cpu ());
      wide[i] = as (host, GTORCH_DTYPE_FLOAT64);
      learn (there[i]);
      learn (wide[i]);
    }
  {
    g_autoptr (GTorchTensor) host_upper = on (upper, gtorch_device_cpu ());
    g_autoptr (GTorchTensor) result = drop (there);
    g_autoptr (GTorchTensor) turned = TRY (gtorch_tensor_transpose (wide[1], -1, -2, &error));
    g_autoptr (GTorchTensor) products = TRY (gtorch_tensor_matmul (wide[0], turned, &error));
    g_autoptr (GTorchTensor) x = TRY (gtorch_tensor_mul_scalar (products, 1 / sqrt (n), &error));
    g_autoptr (GTorchTensor) p = TRY (gtorch_tensor_softmax (x, -1, GTORCH_DTYPE_NONE, &error));
    g_autoptr (GTorchTensor) dropped = TRY (gtorch_tensor_mul (p, factors, &error));
    g_autoptr (GTorchTensor) expected = TRY (gtorch_tensor_matmul (dropped, wide[2], &error));

    wide_upper = as (host_upper, GTORCH_DTYPE_FLOAT64);
    gtorch_tensor_backward (result, upper, FALSE, FALSE, &problem);
    g_assert_no_error (problem);
    gtorch_tensor_backward (expected, wide_upper, FALSE, FALSE, &problem);
    g_assert_no_error (problem);
    agree ("attention that drops", result, expected, limit (GTORCH_DTYPE_BFLOAT16));
  }
  for (i = 0; i < 3; i++)
    {
      agree_in_gradients ("its gradient", there[i], wide[i], 2 * limit (GTORCH_DTYPE_BFLOAT16));
      g_object_unref (there[i]);
      g_object_unref (wide[i]);
    }
  g_object_unref (upper);
  g_object_unref (wide_upper);
}

static void
gradients_are_deterministic_on_request (void)
{
  const Case c = { 4, 8, 1000, 1000, 64, 64 };
  const GTorchDType dtype = GTORCH_DTYPE_BFLOAT16;
  g_autoptr (GTorchTensor) upper = draw (&c, c.heads, c.rows, c.width, dtype);
  g_autoptr (GTorchTensor) there_upper = on (upper, gpu);
  g_autoptr (GTorchTensor) host = draw (&c, c.heads, c.rows, c.depth, dtype);
  g_autoptr (GBytes) first = NULL;
  guint turn, i;

  gtorch_device_set_deterministic (gpu, TRUE);
  for (turn = 0; turn < 10; turn++)
    {
      GTorchTensor *operands[3];
      g_autoptr (GTorchTensor) result = NULL;
      g_autoptr (GTorchTensor) there = NULL;
      g_autoptr (GTorchTensor) grad = NULL;
      g_autoptr (GBytes) bytes = NULL;

      for (i = 0; i < 3; i++)
        operands[i] = on (host, gpu);
      result = attend (&c, operands, NULL, 0, there_upper);
      there = gtorch_tensor_get_grad (operands[0]);
      grad = on (there, gtorch_device_cpu ());
      bytes = gtorch_tensor_get_bytes (grad, NULL);
      if (first == NULL)
        first = g_bytes_ref (bytes);
      g_assert_true (g_bytes_equal (bytes, first));
      for (i = 0; i < 3; i++)
        g_object_unref (operands[i]);
    }
  gtorch_device_set_deterministic (gpu, FALSE);
}

#define TEST(name) g_test_add_func ("/gpu/attention/" #name, name)

int
main (int argc, char *argv[])
{
  guint i;

  g_test_init (&argc, &argv, NULL);
  if (!find_gpu ())
    return 0;
  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree gchar *path = g_strdup_printf ("/gpu/attention/values_and_gradients_agree/%u", i);

      g_test_add_data_func (path, &cases[i], values_and_gradients_agree);
    }
  TEST (weights_are_not_kept);
  TEST (backward_drops_the_same_weights);
  TEST (gradients_are_deterministic_on_request);
  return g_test_run ();
}
