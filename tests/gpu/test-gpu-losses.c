/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The cross entropy of classes, and layer norms: one pass over rows of any length and alignment, in float32
 * from 16 bits in regions of mixed precision. Here they are compared with the CPU's float64. */

#include "config.h"

#include "gpu-test.h"

static const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64,
                                      GTORCH_DTYPE_FLOAT16, GTORCH_DTYPE_BFLOAT16 };

/* Creates the same numbers on the CPU in float64, and on the GPU in dtype. */
static void
pair (const gint64 *shape, gsize n_dims, GTorchDType dtype, GTorchTensor **host,
      GTorchTensor **device)
{
  g_autoptr (GTorchTensor) x = TRY (gtorch_randn (shape, n_dims, dtype, NULL, NULL, &error));

  *host = as (x, GTORCH_DTYPE_FLOAT64);
  *device = on (x, gpu);
}

typedef struct
{
  gint64 shape[4];
  guint n_dims;
} Scores;

typedef struct
{
  GTorchReduction reduction;
  gdouble smoothing;
  gboolean weighted, unaligned, autocast, masked;
} Setting;

static const Setting settings[] = {
  { GTORCH_REDUCTION_MEAN, 0, FALSE, FALSE, FALSE, FALSE },
  { GTORCH_REDUCTION_MEAN, 0, TRUE, FALSE, TRUE, FALSE },
  { GTORCH_REDUCTION_SUM, 0, FALSE, FALSE, TRUE, TRUE },
  { GTORCH_REDUCTION_NONE, 0, TRUE, TRUE, TRUE, FALSE },
  { GTORCH_REDUCTION_NONE, 0, FALSE, TRUE, FALSE, TRUE },
  { GTORCH_REDUCTION_MEAN, 0.2, TRUE, FALSE, FALSE, FALSE },
  { GTORCH_REDUCTION_SUM, 0.2, FALSE, TRUE, TRUE, FALSE },
  { GTORCH_REDUCTION_NONE, 0.2, TRUE, FALSE, TRUE, FALSE },
};

/* Returns the scores, a leaf, from the flat numbers. */
static GTorchTensor *
scores_of (GTorchTensor *flat, const Scores *scores, const Setting *setting)
{
  const gint64 start = setting->unaligned, n = gtorch_tensor_get_numel (flat) - 1;
  g_autoptr (GTorchTensor) part = TRY (gtorch_tensor_narrow (flat, 0, start, n, &error));
  g_autoptr (GTorchTensor) whole =
      TRY (gtorch_tensor_reshape (part, scores->shape, scores->n_dims, &error));

  if (setting->masked)
    { /* the last class, which is no target, is impossible */
      GError *problem = NULL;
      g_autoptr (GTorchTensor) last =
          TRY (gtorch_tensor_narrow (whole, 1, scores->shape[1] - 1, 1, &error));

      g_assert_true (gtorch_tensor_fill_inplace (last, -INFINITY, &problem));
      g_assert_no_error (problem);
    }
  g_assert_true (gtorch_tensor_set_requires_grad (whole, TRUE, NULL));
  return g_steal_pointer (&whole);
}

static GTorchTensor *
loss_of (GTorchTensor *scores, GTorchTensor *target, GTorchTensor *weight, const Setting *setting)
{
  return TRY (gtorch_tensor_cross_entropy (scores, target, setting->weighted ? weight : NULL,
                                           setting->reduction, 0, setting->smoothing, &error));
}

static void
check_loss (const Scores *scores, const Setting *setting, GTorchDType dtype)
{
  const gint64 classes = scores->shape[1];
  const gboolean is_wide = setting->autocast && dtype != GTORCH_DTYPE_FLOAT64;
  const GTorchDType result = is_wide ? GTORCH_DTYPE_FLOAT32 : dtype;
  gint64 numel = 1, labels[4], n_labels = 0;
  g_autofree gchar *what = NULL;
  g_autoptr (GTorchTensor) flat_x = NULL;
  g_autoptr (GTorchTensor) flat_y = NULL;
  g_autoptr (GTorchTensor) x = NULL;
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) target_x = NULL;
  g_autoptr (GTorchTensor) target_y = NULL;
  g_autoptr (GTorchTensor) weight = NULL;
  g_autoptr (GTorchTensor) weight_y = NULL;
  g_autoptr (GTorchTensor) expected = NULL;
  g_autoptr (GTorchTensor) got = NULL;
  g_autoptr (GTorchTensor) seed = NULL;
  g_autoptr (GTorchTensor) seed_y = NULL;
  g_autoptr (GTorchTensor) grad = NULL;
  GError *problem = NULL;
  guint i;

  for (i = 0; i < scores->n_dims; i++)
    {
      numel *= scores->shape[i];
      if (i != 1)
        labels[n_labels++] = scores->shape[i];
    }
  what =
      g_strdup_printf ("%s, %d examples of %d classes, setting %d", gtorch_dtype_get_name (dtype),
                       (int) (numel / classes), (int) classes, (int) (setting - settings));
  numel++;
  pair (&numel, 1, dtype, &flat_x, &flat_y);
  x = scores_of (flat_x, scores, setting);
  y = scores_of (flat_y, scores, setting);
  /* class 0 is ignored, class 1 is always among the targets */
  target_x = TRY (gtorch_randint (0, MAX (classes - 1, 2), labels, n_labels, GTORCH_DTYPE_INT64,
                                  NULL, NULL, &error));
  {
    g_autoptr (GTorchTensor) line = TRY (gtorch_tensor_flatten (target_x, 0, -1, &error));
    g_autoptr (GTorchTensor) one = TRY (gtorch_tensor_narrow (line, 0, 0, 1, &error));

    g_assert_true (gtorch_tensor_fill_inplace (one, 1, &problem));
  }
  target_y = on (target_x, gpu);
  weight = TRY (gtorch_rand (&classes, 1, GTORCH_DTYPE_FLOAT64, NULL, NULL, &error));
  weight_y = on (weight, gpu);
  expected = loss_of (x, target_x, weight, setting);
  {
    g_autoptr (GTorchAutocastGuard) guard =
        setting->autocast ? gtorch_autocast_guard_new (gtorch_device_get_device_type (gpu),
                                                       GTORCH_DTYPE_BFLOAT16, TRUE, TRUE, &problem)
                          : NULL;

    g_assert_no_error (problem);
    got = loss_of (y, target_y, weight_y, setting);
  }
  g_assert_cmpint (gtorch_tensor_get_dtype (got), ==, result);
  {
    g_autoptr (GTorchTensor) a = TRY (gtorch_tensor_detach (got, &error));
    g_autoptr (GTorchTensor) b = TRY (gtorch_tensor_detach (expected, &error));

    agree (what, a, b, tolerance_of (result));
    seed = TRY (gtorch_tensor_rand_like (b, GTORCH_DTYPE_NONE, NULL, &error));
  }
  {
    g_autoptr (GTorchTensor) typed = as (seed, result);

    seed_y = on (typed, gpu);
    g_clear_object (&seed);
    seed = as (typed, GTORCH_DTYPE_FLOAT64);
  }
  gtorch_tensor_backward (expected, seed, FALSE, FALSE, &problem);
  g_assert_no_error (problem);
  gtorch_tensor_backward (got, seed_y, FALSE, FALSE, &problem);
  g_assert_no_error (problem);
  grad = gtorch_tensor_get_grad (y);
  g_assert_cmpint (gtorch_tensor_get_dtype (grad), ==, dtype);
  agree_in_gradients (what, y, x, dtype == GTORCH_DTYPE_FLOAT16 ? 2e-3 : tolerance_of (dtype));
}

static void
check_losses (const Scores *scores)
{
  guint t, k;

  for (t = 0; t < G_N_ELEMENTS (dtypes); t++)
    for (k = 0; k < G_N_ELEMENTS (settings); k++)
      if (!is_one_too_many (t, G_N_ELEMENTS (dtypes), k)
          && (!settings[k].masked || scores->shape[1] > 2))
        check_loss (scores, &settings[k], dtypes[t]);
}

static void
losses_of_every_width (void)
{
  static const gint64 widths[] = { 2, 5, 8, 10, 32, 33, 100, 256, 1000, 1024, 4097, 50257 };
  guint w;

  for (w = 0; w < G_N_ELEMENTS (widths); w++)
    check_losses (&(Scores){ { 13, widths[w] }, 2 });
  check_losses (&(Scores){ { 3000, 10 }, 2 });
  check_losses (&(Scores){ { 700, 1000 }, 2 });
}

static void
losses_of_images (void)
{
  check_losses (&(Scores){ { 3, 21, 5, 7 }, 4 });
  check_losses (&(Scores){ { 2, 150, 300 }, 3 });
}

/* Sums have an order that does not depend on chance. */
static void
losses_are_repeatable (void)
{
  const Setting *setting = &settings[5];
  g_autoptr (GTorchTensor) scores =
      TRY (gtorch_randn (GTORCH_SHAPE (500, 3001), GTORCH_DTYPE_FLOAT32, gpu, NULL, &error));
  g_autoptr (GTorchTensor) target =
      TRY (gtorch_randint (0, 3001, GTORCH_SHAPE (500), GTORCH_DTYPE_INT64, gpu, NULL, &error));
  g_autoptr (GTorchTensor) weight =
      TRY (gtorch_rand (GTORCH_SHAPE (3001), GTORCH_DTYPE_FLOAT32, gpu, NULL, &error));
  g_autoptr (GTorchTensor) first = loss_of (scores, target, weight, setting);
  guint i;

  for (i = 0; i < test_often (20); i++)
    {
      g_autoptr (GTorchTensor) again = loss_of (scores, target, weight, setting);
      g_autoptr (GError) error = NULL;

      g_assert_true (gtorch_tensor_equal (first, again, &error));
      g_assert_no_error (error);
    }
}

static void
check_norm (gint64 rows, gint64 columns, GTorchDType dtype)
{
  const gint64 shape[] = { rows, columns };
  g_autofree gchar *what =
      g_strdup_printf ("%s, norms of %d rows of %d", gtorch_dtype_get_name (dtype), (int) rows,
                       (int) columns);
  GTorchTensor *x[3], *y[3];
  GError *problem = NULL;
  guint i;

  for (i = 0; i < 3; i++)
    {
      pair (i == 0 ? shape : shape + 1, i == 0 ? 2 : 1, dtype, &x[i], &y[i]);
      gtorch_tensor_set_requires_grad (x[i], TRUE, NULL);
      gtorch_tensor_set_requires_grad (y[i], TRUE, NULL);
    }
  {
    g_autoptr (GTorchTensor) a =
        TRY (gtorch_layer_norm (x[0], &columns, 1, x[1], x[2], 1e-5, &error));
    g_autoptr (GTorchTensor) b =
        TRY (gtorch_layer_norm (y[0], &columns, 1, y[1], y[2], 1e-5, &error));
    g_autoptr (GTorchTensor) seed = NULL;
    g_autoptr (GTorchTensor) seed_y = NULL;

    pair (shape, 2, dtype, &seed, &seed_y);
    gtorch_tensor_backward (a, seed, FALSE, FALSE, &problem);
    g_assert_no_error (problem);
    gtorch_tensor_backward (b, seed_y, FALSE, FALSE, &problem);
    g_assert_no_error (problem);
  }
  /* those of weight and bias are sums over the rows */
  for (i = 0; i < 3; i++)
    agree_in_gradients (what, y[i], x[i],
                        tolerance_of (dtype) * (i == 0 ? 40 : 8 * sqrt ((gdouble) rows)));
  for (i = 0; i < 3; i++)
    {
      g_object_unref (x[i]);
      g_object_unref (y[i]);
    }
}

static void
gradients_of_layer_norms (void)
{
  static const gint64 shapes[][2] = { { 1, 3 },     { 5000, 3 },   { 700, 33 },  { 3000, 768 },
                                      { 40, 1000 }, { 300, 4096 }, { 300, 4100 } };
  guint t, k;

  for (t = 0; t < G_N_ELEMENTS (dtypes); t++)
    for (k = 0; k < G_N_ELEMENTS (shapes); k++)
      /* in 16 bits, few numbers may have a variance of almost 0 */
      if (!is_one_too_many (t, G_N_ELEMENTS (dtypes), k) && (t < 2 || shapes[k][1] > 3))
        check_norm (shapes[k][0], shapes[k][1], dtypes[t]);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  if (!find_gpu ())
    return 0;
  gtorch_manual_seed (4);
#define ADD(name) g_test_add_func ("/GTorch/gpu/losses/" #name, name)
  ADD (losses_of_every_width);
  ADD (losses_of_images);
  ADD (losses_are_repeatable);
  ADD (gradients_of_layer_norms);
  return g_test_run ();
}
