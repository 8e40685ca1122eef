/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Matrix products and convolutions in benchmark mode: values compared with float64 on the CPU, and the
 * cost and gain of the search. */

#include "config.h"

#include "gpu-test.h"

static const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT64, GTORCH_DTYPE_FLOAT32,
                                      GTORCH_DTYPE_FLOAT16, GTORCH_DTYPE_BFLOAT16 };

/* Draws numbers on the CPU that are small enough for long sums in 16 bits. */
static GTorchTensor *
draw (const gint64 *shape, gsize n_dims, GTorchDType dtype)
{
  g_autoptr (GTorchTensor) wide =
      TRY (gtorch_randn (shape, n_dims, GTORCH_DTYPE_FLOAT64, NULL, NULL, &error));
  g_autoptr (GTorchTensor) small = TRY (gtorch_tensor_mul_scalar (wide, 0.1, &error));

  return as (small, dtype);
}

static void
products_agree (gconstpointer data)
{
  static const gint64 sizes[][3] = { { 256, 256, 256 }, { 100, 333, 57 },  { 1, 512, 64 },
                                     { 64, 64, 1 },     { 2048, 64, 128 }, { 7, 5, 3 },
                                     { 128, 4096, 128 } };
  const GTorchDType dtype = *(const GTorchDType *) data;
  guint i, turn;

  gtorch_device_set_benchmark (gpu, TRUE);
  for (i = 0; i < G_N_ELEMENTS (sizes); i++)
    {
      g_autoptr (GTorchTensor) a = draw (GTORCH_SHAPE (sizes[i][0], sizes[i][1]), dtype);
      g_autoptr (GTorchTensor) b = draw (GTORCH_SHAPE (sizes[i][2], sizes[i][1]), dtype);
      g_autoptr (GTorchTensor) bias = draw (GTORCH_SHAPE (sizes[i][2]), dtype);
      g_autoptr (GTorchTensor) there_a = on (a, gpu);
      g_autoptr (GTorchTensor) there_b = on (b, gpu);
      g_autoptr (GTorchTensor) there_bias = on (bias, gpu);
      g_autoptr (GTorchTensor) wide_a = as (a, GTORCH_DTYPE_FLOAT64);
      g_autoptr (GTorchTensor) wide_b = as (b, GTORCH_DTYPE_FLOAT64);
      g_autoptr (GTorchTensor) wide_bias = as (bias, GTORCH_DTYPE_FLOAT64);
      g_autoptr (GTorchTensor) turned = TRY (gtorch_tensor_transpose (there_b, 0, 1, &error));
      g_autoptr (GTorchTensor) wide_turned = TRY (gtorch_tensor_transpose (wide_b, 0, 1, &error));
      g_autoptr (GTorchTensor) product = TRY (gtorch_tensor_mm (wide_a, wide_turned, &error));
      g_autoptr (GTorchTensor) sum =
          TRY (gtorch_tensor_addmm (wide_bias, wide_a, wide_turned, 1, 1, &error));

      for (turn = 0; turn < 2; turn++)
        {
          g_autoptr (GTorchTensor) x = TRY (gtorch_tensor_mm (there_a, turned, &error));
          g_autoptr (GTorchTensor) y = TRY (gtorch_linear (there_a, there_b, there_bias, &error));
          g_autoptr (GTorchTensor) z =
              TRY (gtorch_tensor_addmm (there_bias, there_a, turned, 1, 1, &error));

          agree ("mm", x, product, tolerance_of (dtype));
          agree ("linear", y, sum, tolerance_of (dtype));
          agree ("addmm", z, sum, tolerance_of (dtype));
        }
    }
  gtorch_device_set_benchmark (gpu, FALSE);
}

/* Returns a new tensor in any case: each has its own gradient. */
static GTorchTensor *
copy (GTorchTensor *x, GTorchDType dtype, GTorchDevice *device)
{
  g_autoptr (GTorchTensor) cast = as (x, dtype);
  g_autoptr (GTorchTensor) there = on (cast, device);

  return TRY (gtorch_tensor_clone (there, &error));
}

/* The gradients of the parameters come from one product. */
static void
linear_gradients_agree (gconstpointer data)
{
  static const gint64 sizes[][3] = {
    { 64, 32, 16 }, { 1000, 512, 256 }, { 33, 7, 5 }, { 1, 64, 64 }
  };
  static const gchar *const names[] = { "gradient of input", "gradient of weight",
                                        "gradient of bias" };
  const GTorchDType dtype = *(const GTorchDType *) data;
  guint i, k, turn;

  for (i = 0; i < G_N_ELEMENTS (sizes); i++)
    for (turn = 0; turn < 3; turn++) /* first cuBLASLt's choice, then timed, then the fastest */
      {
        const gint64 *n = sizes[i];
        GTorchTensor *host[] = { draw (GTORCH_SHAPE (2, n[0], n[1]), dtype),
                                 draw (GTORCH_SHAPE (n[2], n[1]), dtype),
                                 draw (GTORCH_SHAPE (n[2]), dtype) };
        g_autoptr (GTorchTensor) upper = draw (GTORCH_SHAPE (2, n[0], n[2]), dtype);
        GTorchTensor *leaves[2][3];
        guint where;

        gtorch_device_set_benchmark (gpu, turn > 0);
        for (where = 0; where < 2; where++)
          {
            GTorchDevice *device = where == 0 ? gpu : gtorch_device_cpu ();
            GTorchDType own = where == 0 ? dtype : GTORCH_DTYPE_FLOAT64;
            g_autoptr (GTorchTensor) own_upper = copy (upper, own, device);
            g_autoptr (GTorchTensor) y = NULL;
            GError *problem = NULL;

            for (k = 0; k < 3; k++)
              {
                leaves[where][k] = copy (host[k], own, device);
                gtorch_tensor_set_requires_grad (leaves[where][k], TRUE, &problem);
                g_assert_no_error (problem);
              }
            y = TRY (gtorch_linear (leaves[where][0], leaves[where][1], leaves[where][2], &error));
            gtorch_tensor_backward (y, own_upper, FALSE, FALSE, &problem);
            g_assert_no_error (problem);
          }
        for (k = 0; k < 3; k++)
          {
            agree_in_gradients (names[k], leaves[0][k], leaves[1][k], 2 * tolerance_of (dtype));
            g_object_unref (leaves[0][k]);
            g_object_unref (leaves[1][k]);
            g_object_unref (host[k]);
          }
      }
  gtorch_device_set_benchmark (gpu, FALSE);
}

static GTorchTensor *
convolve (GTorchTensor *x, GTorchTensor *w, GTorchTensor *bias, GTorchTensor *upper, gint64 stride)
{
  GError *problem = NULL;
  GTorchTensor *y;

  gtorch_tensor_set_requires_grad (x, TRUE, &problem);
  gtorch_tensor_set_requires_grad (w, TRUE, &problem);
  g_assert_no_error (problem);
  y = TRY (gtorch_conv2d (x, w, bias, GTORCH_SHAPE (stride), GTORCH_SHAPE (1), GTORCH_SHAPE (1), 1,
                          &error));
  gtorch_tensor_backward (y, upper, FALSE, FALSE, &problem);
  g_assert_no_error (problem);
  return y;
}

static void
convolutions_agree (gconstpointer data)
{
  static const struct
  {
    gint64 n, c, size, k, stride;
    gboolean channels_last, deterministic;
  } cases[] = {
    { 4, 16, 20, 32, 1, FALSE, FALSE },
    { 4, 16, 20, 32, 1, TRUE, FALSE },
    { 3, 5, 17, 7, 2, FALSE, FALSE },
    { 2, 64, 28, 64, 1, TRUE, TRUE },
  };
  const GTorchDType dtype = *(const GTorchDType *) data;
  guint i, turn;

  gtorch_device_set_benchmark (gpu, TRUE);
  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      const gint64 out = (cases[i].size - 1) / cases[i].stride + 1;
      g_autoptr (GTorchTensor) x =
          draw (GTORCH_SHAPE (cases[i].n, cases[i].c, cases[i].size, cases[i].size), dtype);
      g_autoptr (GTorchTensor) w = draw (GTORCH_SHAPE (cases[i].k, cases[i].c, 3, 3), dtype);
      g_autoptr (GTorchTensor) bias = draw (GTORCH_SHAPE (cases[i].k), dtype);
      g_autoptr (GTorchTensor) upper =
          draw (GTORCH_SHAPE (cases[i].n, cases[i].k, out, out), dtype);
      g_autoptr (GTorchTensor) wide_x = copy (x, GTORCH_DTYPE_FLOAT64, gtorch_device_cpu ());
      g_autoptr (GTorchTensor) wide_w = copy (w, GTORCH_DTYPE_FLOAT64, gtorch_device_cpu ());
      g_autoptr (GTorchTensor) wide_bias = as (bias, GTORCH_DTYPE_FLOAT64);
      g_autoptr (GTorchTensor) wide_upper = as (upper, GTORCH_DTYPE_FLOAT64);
      g_autoptr (GTorchTensor) expected =
          convolve (wide_x, wide_w, wide_bias, wide_upper, cases[i].stride);

      gtorch_device_set_deterministic (gpu, cases[i].deterministic);
      for (turn = 0; turn < 2; turn++)
        {
          g_autoptr (GTorchTensor) there_x = NULL;
          g_autoptr (GTorchTensor) there_w = copy (w, dtype, gpu);
          g_autoptr (GTorchTensor) there_bias = on (bias, gpu);
          g_autoptr (GTorchTensor) there_upper = on (upper, gpu);
          g_autoptr (GTorchTensor) y = NULL;

          if (cases[i].channels_last)
            {
              g_autoptr (GTorchTensor) last =
                  TRY (gtorch_tensor_permute (x, GTORCH_SHAPE (0, 2, 3, 1), &error));
              g_autoptr (GTorchTensor) plain = TRY (gtorch_tensor_contiguous (last, &error));
              g_autoptr (GTorchTensor) there = on (plain, gpu);

              there_x = TRY (gtorch_tensor_permute (there, GTORCH_SHAPE (0, 3, 1, 2), &error));
            }
          else
            there_x = copy (x, dtype, gpu);
          y = convolve (there_x, there_w, there_bias, there_upper, cases[i].stride);
          agree ("conv2d", y, expected, tolerance_of (dtype));
          agree_in_gradients ("gradient of input", there_x, wide_x, 2 * tolerance_of (dtype));
          agree_in_gradients ("gradient of weight", there_w, wide_w, 4 * tolerance_of (dtype));
        }
    }
  gtorch_device_set_deterministic (gpu, FALSE);
  gtorch_device_set_benchmark (gpu, FALSE);
}

/* The second call is faster than the first, which times the candidates. */
static void
the_choice_is_made_once (void)
{
  g_autoptr (GTorchTensor) x =
      TRY (gtorch_randn (GTORCH_SHAPE (1792, 1792), GTORCH_DTYPE_BFLOAT16, gpu, NULL, &error));
  gdouble seconds[2];
  guint i;

  gtorch_device_set_benchmark (gpu, TRUE);
  for (i = 0; i < 2; i++)
    {
      gint64 begin = g_get_monotonic_time ();
      g_autoptr (GTorchTensor) y = TRY (gtorch_tensor_mm (x, x, &error));
      GError *problem = NULL;

      gtorch_device_synchronize (gpu, NULL, &problem);
      g_assert_no_error (problem);
      seconds[i] = (g_get_monotonic_time () - begin) * 1e-6;
    }
  g_test_message ("%.3g s with the choice, %.3g s without", seconds[0], seconds[1]);
  g_assert_cmpfloat (seconds[1], <, seconds[0]);
  gtorch_device_set_benchmark (gpu, FALSE);
}

/* Registers the test for each dtype. */
static void
add (const gchar *name, GTestDataFunc test)
{
  guint i;

  for (i = 0; i < G_N_ELEMENTS (dtypes); i++)
    {
      g_autofree gchar *path =
          g_strdup_printf ("/gpu/benchmark/%s/%s", name, gtorch_dtype_get_name (dtypes[i]));

      g_test_add_data_func (path, &dtypes[i], test);
    }
}

#define TEST(name) add (#name, name)

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  if (!find_gpu ())
    return 0;
  TEST (products_agree);
  TEST (linear_gradients_agree);
  TEST (convolutions_agree);
  g_test_add_func ("/gpu/benchmark/the_choice_is_made_once", the_choice_is_made_once);
  return g_test_run ();
}
