/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Copies to, from, on and between GPUs. */

#include "config.h"

#include "cuda-test.h"

#define N_SEEDS 30

static void
there_and_back_in_every_dtype (void)
{
  static const gint64 sizes[] = { 0, 1, 3, 1000, 70000 };
  guint dtype, i;

  for (dtype = 1; dtype < GTORCH_N_DTYPES; dtype++)
    for (i = 0; i < G_N_ELEMENTS (sizes); i++)
      {
        g_autoptr (GTorchImpl) expected = ramp_1d (gtorch_device_cpu (), dtype, sizes[i]);
        g_autoptr (GTorchImpl) x = gtorch_op_to_device (expected, gpu (0), FALSE, NULL);
        g_autoptr (GTorchImpl) back = gtorch_op_to_device (x, gtorch_device_cpu (), FALSE, NULL);

        g_assert_true (gtorch_impl_device (x) == gpu (0));
        g_assert_cmpmem (gtorch_impl_data (back), sizes[i] * gtorch_dtype_size (dtype),
                         gtorch_impl_data (expected), sizes[i] * gtorch_dtype_size (dtype));
      }
}

/* Checks that x is the transpose of the [rows, columns] matrix 0, 1, 2, … */
static void
check_transposed (GTorchImpl *x, gint64 rows, gint64 columns)
{
  g_autofree gdouble *values = read_doubles (x);
  gint64 i, j;

  g_assert_cmpint (x->shape[0], ==, columns);
  for (i = 0; i < columns; i++)
    for (j = 0; j < rows; j++)
      g_assert_cmpfloat (values[i * rows + j], ==, j * columns + i);
}

static void
layouts_stay_right_across_devices (void)
{
  const gint64 shape[] = { 40, 33 }, turned[] = { 33, 40 };
  g_autoptr (GTorchImpl) host = ramp (gtorch_device_cpu (), GTORCH_DTYPE_FLOAT32, shape, 2);
  g_autoptr (GTorchImpl) host_t = gtorch_op_transpose (host, 0, 1, NULL);
  g_autoptr (GTorchImpl) x = gtorch_op_to_device (host_t, gpu (0), FALSE, NULL);
  g_autoptr (GTorchImpl) y = gtorch_op_to_device (host, gpu (0), FALSE, NULL);
  g_autoptr (GTorchImpl) y_t = gtorch_op_transpose (y, 0, 1, NULL);
  g_autoptr (GTorchImpl) z = gtorch_op_empty (shape, 2, GTORCH_DTYPE_FLOAT32, gpu (0), NULL);
  g_autoptr (GTorchImpl) z_t = gtorch_op_transpose (z, 0, 1, NULL);
  g_autoptr (GTorchImpl) w = gtorch_op_empty (turned, 2, GTORCH_DTYPE_INT16, gpu (0), NULL);

  check_transposed (x, 40, 33);
  check_transposed (y_t, 40, 33);
  g_assert_true (gtorch_op_copy_inplace (z_t, host_t, FALSE, NULL)); /* both are not contiguous */
  check_transposed (z_t, 40, 33);
  g_assert_true (gtorch_op_copy_inplace (w, y_t, FALSE, NULL)); /* and with a conversion */
  check_transposed (w, 40, 33);
}

static void
every_dtype_converts_to_every_other (void)
{
  guint from, to, layout;

  for (layout = 0; layout < 2; layout++)
    for (from = 1; from < GTORCH_N_DTYPES; from++)
      for (to = 1; to < GTORCH_N_DTYPES; to++)
        {
          g_autoptr (GTorchImpl) x = ramp_1d (gpu (0), from, 100);
          g_autoptr (GTorchImpl) view =
              layout == 0 ? gtorch_impl_ref (x) : gtorch_op_slice (x, 0, 1, 100, 3, NULL);
          g_autoptr (GTorchImpl) y = gtorch_op_to_dtype (view, to, NULL);
          g_autoptr (GTorchImpl) host =
              gtorch_op_to_device (view, gtorch_device_cpu (), FALSE, NULL);
          g_autoptr (GTorchImpl) expected = gtorch_op_to_dtype (host, to, NULL);
          g_autoptr (GTorchImpl) back = gtorch_op_to_device (y, gtorch_device_cpu (), FALSE, NULL);

          g_assert_cmpmem (gtorch_impl_data (back), gtorch_impl_n_bytes (back),
                           gtorch_impl_data (expected), gtorch_impl_n_bytes (expected));
        }
}

static void
the_host_may_change_what_it_copied (void)
{
  guint seed;

  for (seed = 1; seed <= N_SEEDS; seed++)
    {
      g_autoptr (GTorchImpl) host = ramp_1d (gtorch_device_cpu (), GTORCH_DTYPE_FLOAT32, 100);
      g_autoptr (GTorchImpl) x = NULL;
      g_autofree gdouble *values = NULL;

      fake_cuda_set_seed (seed);
      x = gtorch_op_to_device (host, gpu (0), FALSE, NULL);
      memset (gtorch_impl_data (host), 0, 400);
      values = read_doubles (x);
      g_assert_cmpfloat (values[99], ==, 99);
    }
}

static void
peers_are_in_order (void)
{
  guint seed;

  for (seed = 1; seed <= N_SEEDS; seed++)
    {
      g_autoptr (GTorchImpl) x = NULL;
      g_autoptr (GTorchImpl) twice = NULL;
      g_autoptr (GTorchImpl) moved = NULL;
      g_autoptr (GTorchImpl) sum = NULL;
      g_autoptr (GTorchImpl) back = NULL;
      g_autofree gdouble *values = NULL;

      fake_cuda_set_seed (seed);
      x = ramp_1d (gpu (0), GTORCH_DTYPE_FLOAT32, 1000);
      twice = gtorch_op_add (x, x, 1, NULL);
      moved = gtorch_op_to_device (twice, gpu (1), FALSE, NULL);
      g_clear_pointer (&twice, gtorch_impl_unref); /* its memory is reused at once */
      twice = gtorch_op_mul (x, x, NULL);
      sum = gtorch_op_add (moved, moved, 1, NULL);
      g_clear_pointer (&moved, gtorch_impl_unref);
      moved = gtorch_op_mul (sum, sum, NULL);
      back = gtorch_op_to_device (sum, gpu (0), FALSE, NULL);
      values = read_doubles (back);
      g_assert_cmpfloat (values[999], ==, 999 * 4);
    }
}

static void
peers_of_any_layout (void)
{
  const gint64 shape[] = { 40, 33 };
  g_autoptr (GTorchImpl) x = ramp (gpu (0), GTORCH_DTYPE_FLOAT64, shape, 2);
  g_autoptr (GTorchImpl) x_t = gtorch_op_transpose (x, 0, 1, NULL);
  g_autoptr (GTorchImpl) y = gtorch_op_to_device (x_t, gpu (1), FALSE, NULL);
  g_autoptr (GTorchImpl) z = gtorch_op_empty (shape, 2, GTORCH_DTYPE_INT32, gpu (1), NULL);
  g_autoptr (GTorchImpl) z_t = gtorch_op_transpose (z, 0, 1, NULL);

  check_transposed (y, 40, 33);
  g_assert_true (gtorch_op_copy_inplace (z_t, x_t, FALSE, NULL));
  check_transposed (z_t, 40, 33);
}

static void
filling_works_in_every_dtype (void)
{
  const gint64 shape[] = { 5, 7 };
  guint dtype;

  for (dtype = 1; dtype < GTORCH_N_DTYPES; dtype++)
    {
      g_autoptr (GTorchImpl) x = gtorch_op_full (shape, 2, 1, dtype, gpu (0), NULL);
      g_autoptr (GTorchImpl) part = gtorch_op_slice (x, 1, 2, 7, 2, NULL);
      g_autoptr (GTorchImpl) host = NULL;
      g_autoptr (GTorchImpl) wide = NULL;
      const gdouble *values;

      g_assert_true (gtorch_op_fill_inplace (part, 0, NULL));
      host = gtorch_op_to_device (x, gtorch_device_cpu (), FALSE, NULL);
      wide = gtorch_op_to_dtype (host, GTORCH_DTYPE_FLOAT64, NULL);
      values = gtorch_impl_data (wide);
      g_assert_cmpfloat (values[7], ==, 1);
      g_assert_cmpfloat (values[8], ==, 1);
      g_assert_cmpfloat (values[9], ==, 0);
      g_assert_cmpfloat (values[11], ==, 0);
      g_assert_cmpfloat (values[12], ==, 1);
    }
}

static void
fresh_memory_is_not_zero (void)
{
  const gint64 shape[] = { 16 << 20 };
  g_autoptr (GTorchImpl) x = gtorch_op_empty (shape, 1, GTORCH_DTYPE_UINT8, gpu (0), NULL);
  guint8 byte = 0;

  g_assert_true (fake_cuda_peek ((guint8 *) gtorch_impl_data (x) + shape[0] - 1, &byte, 1));
  g_assert_cmpuint (byte, ==, 0xcd);
}

#define TEST(name) g_test_add_func ("/GTorchCudaCopy/" #name, name)

gint
main (gint argc, gchar **argv)
{
  gint result;

  g_test_init (&argc, &argv, NULL);
  TEST (fresh_memory_is_not_zero);
  TEST (there_and_back_in_every_dtype);
  TEST (layouts_stay_right_across_devices);
  TEST (every_dtype_converts_to_every_other);
  TEST (the_host_may_change_what_it_copied);
  TEST (peers_are_in_order);
  TEST (peers_of_any_layout);
  TEST (filling_works_in_every_dtype);
  result = g_test_run ();
  assert_no_misuse ();
  return result;
}
