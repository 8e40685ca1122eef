/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Attention on a GPU, by cuDNN and by products, values and gradients against float64 on the CPU. */

#include "config.h"

#include "gpu-test.h"

typedef struct
{
  gint64 batch, heads, rows, columns, depth, width;
  gboolean is_causal, heads_behind_rows, with_mask;
} Case;

static const Case cases[] = {
  { 2, 3, 128, 128, 64, 64 },
  { 2, 3, 128, 128, 64, 64, TRUE },
  { 1, 2, 300, 200, 128, 128, TRUE, TRUE },
  { 1, 2, 77, 130, 64, 32, FALSE, TRUE },
  { 2, 2, 33, 5, 8, 16 },
  { 1, 1, 200, 70, 72, 40, TRUE },
  { 1, 2, 64, 64, 20, 12 },
  { 2, 2, 65, 50, 64, 64, FALSE, FALSE, TRUE },
  { 1, 1, 1, 1, 16, 16, TRUE },
};

static GTorchTensor *
draw (const Case *c, gint64 rows, gint64 elements, GTorchDType dtype)
{
  const gint64 shape[] = { c->batch, c->heads_behind_rows ? rows : c->heads,
                           c->heads_behind_rows ? c->heads : rows, elements };
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

/* The result; operands have their gradients then. */
static GTorchTensor *
attend (const Case *c, GTorchTensor **operands, GTorchTensor *mask, GTorchTensor *upper)
{
  GTorchTensor *result;
  GError *problem = NULL;
  guint i;

  for (i = 0; i < 3; i++)
    learn (operands[i]);
  result = TRY (gtorch_scaled_dot_product_attention (operands[0], operands[1], operands[2], mask, 0,
                                                     c->is_causal, 0, FALSE, &error));
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
      GTorchTensor *host[] = { draw (c, c->rows, c->depth, dtypes[d]),
                               draw (c, c->columns, c->depth, dtypes[d]),
                               draw (c, c->columns, c->width, dtypes[d]) };
      GTorchTensor *there[3], *wide[3];
      g_autoptr (GTorchTensor) upper = draw (c, c->rows, c->width, dtypes[d]);
      g_autoptr (GTorchTensor) there_upper = on (upper, gpu);
      g_autoptr (GTorchTensor) wide_upper = as (upper, GTORCH_DTYPE_FLOAT64);
      g_autoptr (GTorchTensor) mask = NULL;
      g_autoptr (GTorchTensor) there_mask = NULL;
      g_autoptr (GTorchTensor) result = NULL;
      g_autoptr (GTorchTensor) expected = NULL;

      if (c->with_mask)
        {
          g_autoptr (GTorchTensor) numbers =
              TRY (gtorch_randn (GTORCH_SHAPE (c->rows, c->columns), GTORCH_DTYPE_FLOAT64, NULL,
                                 NULL, &error));

          mask = TRY (gtorch_tensor_gt_scalar (numbers, 0, &error));
          there_mask = on (mask, gpu);
        }
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
      result = attend (c, there, there_mask, there_upper);
      expected = attend (c, wide, mask, wide_upper);
      agree ("attention", result, expected, limit (dtypes[d]));
      for (i = 0; i < 3; i++)
        {
          static const gchar *const names[] = { "gradient of query", "gradient of key",
                                                "gradient of value" };

          agree (names[i], gtorch_tensor_get_grad (there[i]), gtorch_tensor_get_grad (wide[i]),
                 2 * limit (dtypes[d]));
          g_object_unref (host[i]);
          g_object_unref (there[i]);
          g_object_unref (wide[i]);
        }
    }
}

/* The weights would be 4 GiB. */
static void
weights_are_not_kept (void)
{
  const gint64 shape[] = { 1, 32, 8192, 64 };
  GTorchTensor *operands[3];
  g_autoptr (GTorchTensor) upper = NULL;
  g_autoptr (GTorchTensor) result = NULL;
  const Case c = { .is_causal = TRUE };
  guint64 before;
  guint i;

  for (i = 0; i < 3; i++)
    operands[i] = TRY (gtorch_randn (shape, 4, GTORCH_DTYPE_BFLOAT16, gpu, NULL, &error));
  upper = TRY (gtorch_randn (shape, 4, GTORCH_DTYPE_BFLOAT16, gpu, NULL, &error));
  before = gtorch_device_get_memory_allocated (gpu);
  gtorch_device_reset_peak_memory (gpu);
  result = attend (&c, operands, NULL, upper);
  g_test_message ("at most %" G_GUINT64_FORMAT " MiB",
                  (gtorch_device_get_peak_memory_allocated (gpu) - before) >> 20);
  g_assert_cmpuint (gtorch_device_get_peak_memory_allocated (gpu), <,
                    before + (G_GUINT64_CONSTANT (1) << 30));
  for (i = 0; i < 3; i++)
    g_object_unref (operands[i]);
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
  return g_test_run ();
}
