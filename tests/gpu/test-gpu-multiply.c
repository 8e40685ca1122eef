/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Matrix products in all sizes around those where another kernel, or a library, takes over, in all
 * layouts, compared with the CPU: integers exactly, floats in float64. */

#include "config.h"

#include "gpu-test.h"

static const gint64 sizes[] = { 1, 2, 15, 16, 17, 31, 63, 64, 65, 100, 128, 129, 255, 300 };
static const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64,
                                      GTORCH_DTYPE_FLOAT16, GTORCH_DTYPE_BFLOAT16,
                                      GTORCH_DTYPE_INT8,    GTORCH_DTYPE_UINT8,
                                      GTORCH_DTYPE_INT16,   GTORCH_DTYPE_INT32,
                                      GTORCH_DTYPE_INT64,   GTORCH_DTYPE_COMPLEX64 };

static gint64
any_size (void)
{
  return sizes[g_test_rand_int_range (0, G_N_ELEMENTS (sizes))];
}

/* Returns the rounding error of a sum of `depth` products of numbers near 1. */
static gdouble
tolerance_of_sums (GTorchDType dtype, gint64 depth)
{
  return tolerance_of (gtorch_dtype_is_complex (dtype) ? GTORCH_DTYPE_FLOAT32 : dtype)
         * MAX (1, sqrt (depth) / 4);
}

static gboolean
is_exact (GTorchDType dtype)
{
  return !gtorch_dtype_is_floating_point (dtype) && !gtorch_dtype_is_complex (dtype);
}

/* Draws integers of the whole range, so that sums overflow. */
static GTorchTensor *
draw_integers (gint64 batch, gint64 rows, gint64 columns, GTorchDType dtype)
{
  const guint n_bits = 8 * gtorch_dtype_get_size (dtype);
  /* doubling gives the other half of the range */
  const gint64 half = G_GINT64_CONSTANT (1) << (n_bits - 2);
  const gboolean has_sign = dtype != GTORCH_DTYPE_UINT8;
  g_autoptr (GTorchTensor) halves =
      TRY (gtorch_randint (has_sign ? -half : 0, has_sign ? half : 2 * half,
                           GTORCH_SHAPE (batch, rows, columns), dtype, NULL, NULL, &error));

  g_autoptr (GTorchTensor) all = TRY (gtorch_tensor_add (halves, halves, 1, &error));

  return as (all, dtype);
}

/* Returns [batch, rows, columns] on the CPU, possibly transposed or a slice; floats as float64, with
 * values that dtype can represent. */
static GTorchTensor *
draw (gint64 batch, gint64 rows, gint64 columns, GTorchDType dtype)
{
  const gboolean turned = g_test_rand_int_range (0, 2), part = g_test_rand_int_range (0, 2);
  const gint64 down = turned ? columns : rows, across = turned ? rows : columns;
  g_autoptr (GTorchTensor) whole = NULL;
  g_autoptr (GTorchTensor) fewer = NULL;
  g_autoptr (GTorchTensor) x = NULL;

  if (is_exact (dtype))
    whole = draw_integers (batch, down + 2 * part, across + 3 * part, dtype);
  else
    {
      g_autoptr (GTorchTensor) any =
          TRY (gtorch_randn (GTORCH_SHAPE (batch, down + 2 * part, across + 3 * part),
                             GTORCH_DTYPE_FLOAT64, NULL, NULL, &error));
      g_autoptr (GTorchTensor) rounded =
          as (any, gtorch_dtype_is_complex (dtype) ? GTORCH_DTYPE_FLOAT32 : dtype);

      whole = as (rounded, GTORCH_DTYPE_FLOAT64);
    }
  fewer = TRY (gtorch_tensor_slice (whole, 1, part, part + down, 1, &error));
  x = TRY (gtorch_tensor_slice (fewer, 2, part, part + across, 1, &error));
  return turned ? TRY (gtorch_tensor_transpose (x, 1, 2, &error)) : g_steal_pointer (&x);
}

/* Keeps the strides: a plain copy would have others. */
static GTorchTensor *
laid_out (GTorchTensor *x, GTorchDType dtype)
{
  gsize n;
  const gint64 *strides = gtorch_tensor_get_strides (x, &n);
  const gint64 *shape = gtorch_tensor_get_shape (x, &n);
  const gboolean turned = strides[1] == 1 && shape[1] > 1;
  g_autoptr (GTorchTensor) there = on (x, gpu);
  g_autoptr (GTorchTensor) typed = as (there, dtype);
  g_autoptr (GTorchTensor) wide = NULL;
  g_autoptr (GTorchTensor) part = NULL;

  if (turned)
    {
      g_autoptr (GTorchTensor) back = TRY (gtorch_tensor_transpose (typed, 1, 2, &error));
      g_autoptr (GTorchTensor) whole = TRY (gtorch_tensor_contiguous (back, &error));

      return TRY (gtorch_tensor_transpose (whole, 1, 2, &error));
    }
  wide = TRY (gtorch_empty (GTORCH_SHAPE (shape[0], shape[1], shape[2] + 5), dtype, gpu, &error));
  part = TRY (gtorch_tensor_slice (wide, 2, 3, 3 + shape[2], 1, &error));
  return TRY (gtorch_tensor_copy (part, typed, FALSE, &error));
}

static void
products_are_the_cpus (void)
{
  guint i;

  for (i = 0; i < 200; i++)
    {
      const GTorchDType dtype = dtypes[g_test_rand_int_range (0, G_N_ELEMENTS (dtypes))];
      const GTorchDType wide = is_exact (dtype)                  ? dtype
                               : gtorch_dtype_is_complex (dtype) ? GTORCH_DTYPE_COMPLEX128
                                                                 : GTORCH_DTYPE_FLOAT64;
      const gint64 m = any_size (), n = any_size (), k = any_size ();
      const gint64 batch = g_test_rand_int_range (1, 4);
      const gint64 a_batch = g_test_rand_int_range (0, 2) ? batch : 1; /* or one matrix for all */
      const gdouble unit = is_exact (dtype) ? 1 : 0.75;
      const gdouble alpha = g_test_rand_int_range (-2, 4) * unit;
      const gdouble beta = g_test_rand_int_range (0, 3) * unit;
      g_autofree gchar *what =
          g_strdup_printf ("%s [%d, %d, %d] by [%d, %d, %d], alpha %g, beta %g",
                           gtorch_dtype_get_name (dtype), (gint) batch, (gint) m, (gint) k,
                           (gint) batch, (gint) k, (gint) n, alpha, beta);
      g_autoptr (GTorchTensor) a = draw (a_batch, m, k, dtype);
      g_autoptr (GTorchTensor) b = draw (batch, k, n, dtype);
      g_autoptr (GTorchTensor) c = draw (batch, m, n, dtype);
      g_autoptr (GTorchTensor) a_one = as (a, wide);
      g_autoptr (GTorchTensor) a_wide =
          TRY (gtorch_tensor_expand (a_one, GTORCH_SHAPE (batch, m, k), &error));
      g_autoptr (GTorchTensor) b_wide = as (b, wide);
      g_autoptr (GTorchTensor) c_wide = as (c, wide);
      g_autoptr (GTorchTensor) a_one_there = laid_out (a, dtype);
      g_autoptr (GTorchTensor) a_there =
          TRY (gtorch_tensor_expand (a_one_there, GTORCH_SHAPE (batch, m, k), &error));
      g_autoptr (GTorchTensor) b_there = laid_out (b, dtype);
      g_autoptr (GTorchTensor) c_there = laid_out (c, dtype);
      g_autoptr (GTorchTensor) expected =
          TRY (gtorch_tensor_baddbmm (c_wide, a_wide, b_wide, beta, alpha, &error));
      g_autoptr (GTorchTensor) got =
          TRY (gtorch_tensor_baddbmm (c_there, a_there, b_there, beta, alpha, &error));
      g_autoptr (GTorchTensor) real = gtorch_dtype_is_complex (dtype)
                                          ? TRY (gtorch_tensor_real (expected, &error))
                                          : g_object_ref (expected);
      g_autoptr (GTorchTensor) got_real = gtorch_dtype_is_complex (dtype)
                                              ? TRY (gtorch_tensor_real (got, &error))
                                              : g_object_ref (got);
      g_autoptr (GTorchTensor) expected_double = as (real, GTORCH_DTYPE_FLOAT64);

      agree (what, got_real, expected_double,
             is_exact (dtype) ? 0 : tolerance_of_sums (dtype, k) * (1 + fabs (alpha)));
    }
}

/* Removes the first n dimensions, which are 1; returns a leaf. */
static GTorchTensor *
leaf (GTorchTensor *x, guint n)
{
  g_autoptr (GTorchTensor) result = g_object_ref (x);
  guint i;

  for (i = 0; i < n; i++)
    {
      g_autoptr (GTorchTensor) next = TRY (gtorch_tensor_select (result, 0, 0, &error));

      g_set_object (&result, next);
    }
  gtorch_tensor_set_requires_grad (result, TRUE, NULL);
  return g_steal_pointer (&result);
}

static GTorchTensor *
through_layer (GTorchTensor *const operands[3], GTorchTensor *upper)
{
  GTorchTensor *result = TRY (gtorch_linear (operands[0], operands[1], operands[2], &error));
  GError *error = NULL;

  gtorch_tensor_backward (result, upper, FALSE, FALSE, &error);
  g_assert_no_error (error);
  return result;
}

/* The kernel of the product also adds the bias, and sums its gradient. */
static void
layers_and_their_gradients_are_the_cpus (void)
{
  guint i, t;

  for (i = 0; i < 80; i++)
    {
      const GTorchDType dtype = dtypes[g_test_rand_int_range (0, 4)];
      const gint64 batch = any_size (), in = any_size (), out = any_size ();
      const gint64 shapes[3][2] = { { batch, in }, { out, in }, { 1, out } };
      g_autofree gchar *what =
          g_strdup_printf ("%s layer of %d to %d, %d rows", gtorch_dtype_get_name (dtype),
                           (gint) in, (gint) out, (gint) batch);
      g_autoptr (GTorchTensor) upper = draw (1, batch, out, dtype);
      g_autoptr (GTorchTensor) upper_there = laid_out (upper, dtype);
      g_autoptr (GTorchTensor) upper_flat = TRY (gtorch_tensor_select (upper, 0, 0, &error));
      g_autoptr (GTorchTensor) upper_there_flat =
          TRY (gtorch_tensor_select (upper_there, 0, 0, &error));
      g_autoptr (GTorchTensor) expected = NULL;
      g_autoptr (GTorchTensor) values = NULL;
      g_autoptr (GTorchTensor) got = NULL;
      GTorchTensor *here[3], *there[3];

      for (t = 0; t < 3; t++)
        {
          g_autoptr (GTorchTensor) x = draw (1, shapes[t][0], shapes[t][1], dtype);
          g_autoptr (GTorchTensor) moved = laid_out (x, dtype);

          here[t] = leaf (x, t == 2 ? 2 : 1);
          there[t] = leaf (moved, t == 2 ? 2 : 1);
        }
      expected = through_layer (here, upper_flat);
      got = through_layer (there, upper_there_flat);
      values = TRY (gtorch_tensor_detach (expected, &error));
      agree (what, got, values, tolerance_of_sums (dtype, in));
      for (t = 0; t < 3; t++)
        {
          agree_in_gradients (what, there[t], here[t], tolerance_of_sums (dtype, MAX (batch, out)));
          g_object_unref (here[t]);
          g_object_unref (there[t]);
        }
    }
}

/* More than one block of 64 by 64 per multiprocessor. */
static void
large_integers_are_exact (void)
{
  const GTorchDType few[] = { GTORCH_DTYPE_INT8, GTORCH_DTYPE_INT32, GTORCH_DTYPE_INT64 };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (few); i++)
    {
      g_autoptr (GTorchTensor) a = draw (1, 1000, 77, few[i]);
      g_autoptr (GTorchTensor) b = draw (1, 77, 900, few[i]);
      g_autoptr (GTorchTensor) a_there = laid_out (a, few[i]);
      g_autoptr (GTorchTensor) b_there = laid_out (b, few[i]);
      g_autoptr (GTorchTensor) expected = TRY (gtorch_tensor_bmm (a, b, &error));
      g_autoptr (GTorchTensor) expected_double = as (expected, GTORCH_DTYPE_FLOAT64);
      g_autoptr (GTorchTensor) got = TRY (gtorch_tensor_bmm (a_there, b_there, &error));

      agree (gtorch_dtype_get_name (few[i]), got, expected_double, 0);
    }
}

/* As sums are accumulated in float32, the only relevant error is that of the last rounding, half a unit
 * in the last place, even where cuBLASLt splits the depth among blocks. */
static void
products_of_16_bits_are_rounded_once (void)
{
  static const gint64 shapes[][3] = { { 15, 100, 64 }, { 300, 17, 255 },  { 100, 128, 129 },
                                      { 65, 65, 65 },  { 128, 129, 128 }, { 8, 4096, 300 } };
  guint d, i, turn;

  for (d = 2; d < 4; d++)
    for (i = 0; i < G_N_ELEMENTS (shapes); i++)
      for (turn = 0; turn < 8; turn++) /* with random layouts */
        {
          const gint64 *n = shapes[i];
          g_autoptr (GTorchTensor) a = draw (1, n[0], n[1], dtypes[d]);
          g_autoptr (GTorchTensor) b = draw (1, n[1], n[2], dtypes[d]);
          g_autoptr (GTorchTensor) a_there = laid_out (a, dtypes[d]);
          g_autoptr (GTorchTensor) b_there = laid_out (b, dtypes[d]);
          g_autoptr (GTorchTensor) expected = TRY (gtorch_tensor_bmm (a, b, &error));
          g_autoptr (GTorchTensor) got = TRY (gtorch_tensor_bmm (a_there, b_there, &error));

          agree (gtorch_dtype_get_name (dtypes[d]), got, expected,
                 (dtypes[d] == GTORCH_DTYPE_FLOAT16 ? 0x1.1p-11 : 0x1.1p-8) + n[1] * 0x1p-22);
        }
}

/* Small products allocate only their results. */
static void
small_products_have_no_workspace (void)
{
  guint i;

  for (i = 0; i < 4; i++)
    {
      g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu, 0, NULL);
      g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);
      g_autoptr (GTorchTensor) a = NULL;
      g_autoptr (GTorchTensor) product = NULL;
      guint64 before;

      a = TRY (gtorch_ones (GTORCH_SHAPE (64, 64), dtypes[i], gpu, &error));
      before = gtorch_device_get_memory_allocated (gpu);
      product = TRY (gtorch_tensor_mm (a, a, &error));
      g_assert_cmpuint (gtorch_device_get_memory_allocated (gpu) - before, <, 1 << 20);
    }
}

#define TEST(name) g_test_add_func ("/gpu/multiply/" #name, name)

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  if (!find_gpu ())
    return 0;
  TEST (products_are_the_cpus);
  TEST (layers_and_their_gradients_are_the_cpus);
  TEST (large_integers_are_exact);
  TEST (products_of_16_bits_are_rounded_once);
  TEST (small_products_have_no_workspace);
  return g_test_run ();
}
