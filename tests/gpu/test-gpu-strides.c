/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Operands of any strides: those whose offsets need more than 32 bits, which are processed in parts, and
 * slices whose rows do not begin at aligned addresses. They are compared with the CPU's float64. */

#include "config.h"

#include "gpu-test.h"

static const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64,
                                      GTORCH_DTYPE_FLOAT16, GTORCH_DTYPE_BFLOAT16 };

#define FAR G_GINT64_CONSTANT (5000000000) /* bytes */

static GTorchTensor *
large (void)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *base = gtorch_empty (&(gint64){ FAR }, 1, GTORCH_DTYPE_UINT8, gpu, &error);

  if (base == NULL)
    g_test_skip (error->message);
  return base;
}

static void
operands_far_apart (void)
{
  const gint64 shape[] = { 4, 3, 50 }, strides[] = { 1200000000, 1000, 7 },
               skewed[] = { 7, 1, 1600000000 };
  g_autoptr (GTorchTensor) base = large ();
  g_autoptr (GTorchTensor) numbers = NULL;
  g_autoptr (GTorchTensor) view = NULL;
  g_autoptr (GTorchTensor) other = NULL;
  g_autoptr (GTorchTensor) small = NULL;
  g_autoptr (GTorchTensor) sum = NULL;
  g_autoptr (GTorchTensor) more = NULL;
  g_autoptr (GTorchTensor) chosen = NULL;
  g_autoptr (GTorchTensor) expected = NULL;
  g_autoptr (GTorchTensor) wide = NULL;
  g_autoptr (GTorchTensor) part = NULL;
  g_autoptr (GTorchTensor) less = NULL;
  g_autoptr (GTorchTensor) device = NULL;

  if (base == NULL)
    return;
  numbers = TRY (gtorch_randint (0, 100, shape, 3, GTORCH_DTYPE_UINT8, NULL, NULL, &error));
  device = on (numbers, gpu);
  view = TRY (gtorch_tensor_as_strided (base, shape, 3, strides, 3, 5, &error));
  g_assert_nonnull (gtorch_tensor_copy_inplace (view, device, FALSE, NULL));
  wide = as (numbers, GTORCH_DTYPE_FLOAT64);
  agree ("a copy", view, wide, 0);
  sum = TRY (gtorch_tensor_add (view, device, 1, &error));
  expected = TRY (gtorch_tensor_add (wide, wide, 1, &error));
  agree ("a sum", sum, expected, 0);

  /* each operand far along another dimension */
  other = TRY (gtorch_tensor_as_strided (base, GTORCH_SHAPE (4, 3, 3), skewed, 3, 900, &error));
  g_assert_nonnull (gtorch_tensor_fill_inplace (other, 3, NULL));
  part = TRY (gtorch_tensor_narrow (view, 2, 10, 3, &error));
  small = TRY (gtorch_tensor_narrow (wide, 2, 10, 3, &error));
  more = TRY (gtorch_tensor_add (part, other, 1, &error));
  g_clear_object (&expected);
  expected = TRY (gtorch_tensor_add_scalar (small, 3, 1, &error));
  agree ("another sum", more, expected, 0);
  less = TRY (gtorch_tensor_lt (part, other, &error));
  chosen = TRY (gtorch_where (less, part, other, &error));
  g_clear_object (&expected);
  expected = TRY (gtorch_tensor_clamp (small, -1, 3, &error));
  agree ("a choice", chosen, expected, 0);
}

static void
more_elements_than_one_launch (void)
{
  const gint64 rows = 3, columns = 1600000000;
  g_autoptr (GTorchTensor) base = large ();
  g_autoptr (GTorchTensor) table = NULL;
  g_autoptr (GTorchTensor) part = NULL;
  g_autoptr (GTorchTensor) count = NULL;

  if (base == NULL)
    return;
  g_assert_nonnull (gtorch_tensor_zero_inplace (base, NULL));
  table = TRY (gtorch_tensor_as_strided (base, GTORCH_SHAPE (rows, columns),
                                         GTORCH_SHAPE (columns, 1), 0, &error));
  part = TRY (gtorch_tensor_narrow (table, 1, 1, columns - 3, &error));
  g_assert_nonnull (gtorch_tensor_fill_inplace (part, 1, NULL));
  count = TRY (gtorch_tensor_sum (base, NULL, 0, FALSE, GTORCH_DTYPE_INT64, &error));
  g_assert_cmpint (gtorch_tensor_item_int (count, NULL), ==, rows * (columns - 3));
}

/* Sums and extremes of parts of x, along each dimension and along two. */
static void
check_reductions (const gchar *what, GTorchTensor *x, GTorchTensor *y, gdouble tolerance)
{
  static const gint64 dims[][2] = { { 0, 0 }, { 1, 0 }, { 2, 0 }, { 1, 2 }, { 0, 1 } };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (dims); i++)
    {
      const gsize n = i < 3 ? 1 : 2;
      g_autoptr (GTorchTensor) expected =
          TRY (gtorch_tensor_mean (x, dims[i], n, FALSE, GTORCH_DTYPE_NONE, &error));
      g_autoptr (GTorchTensor) got =
          TRY (gtorch_tensor_mean (y, dims[i], n, FALSE, GTORCH_DTYPE_NONE, &error));
      g_autoptr (GTorchTensor) highest = TRY (gtorch_tensor_amax (x, dims[i], n, FALSE, &error));
      g_autoptr (GTorchTensor) got_highest =
          TRY (gtorch_tensor_amax (y, dims[i], n, FALSE, &error));

      agree (what, got, expected, tolerance);
      agree (what, got_highest, highest, tolerance);
    }
}

static void
reductions_of_slices (void)
{
  static const gint64 shapes[][3] = {
    { 3, 5, 40 }, { 2, 700, 33 }, { 5, 3, 2000 }, { 2, 3, 70001 }, { 40000, 3, 5 }
  };
  guint t, k;
  gint64 cut;

  for (t = 0; t < G_N_ELEMENTS (dtypes); t++)
    for (k = 0; k < G_N_ELEMENTS (shapes); k++)
      {
        g_autoptr (GTorchTensor) x =
            TRY (gtorch_randn (shapes[k], 3, dtypes[t], NULL, NULL, &error));
        g_autoptr (GTorchTensor) host = as (x, GTORCH_DTYPE_FLOAT64);
        g_autoptr (GTorchTensor) device = on (x, gpu);

        if (is_one_too_many (t, G_N_ELEMENTS (dtypes), k))
          continue;
        for (cut = 0; cut < 6; cut++)
          {
            const guint dim = cut < 4 ? 2 : 1;
            const gint64 from = cut < 4 ? cut : 1, n = shapes[k][dim] - from - (cut % 2);
            g_autofree gchar *what =
                g_strdup_printf ("%s, shape %u, cut %d", gtorch_dtype_get_name (dtypes[t]), k,
                                 (int) cut);
            g_autoptr (GTorchTensor) a = TRY (gtorch_tensor_narrow (host, dim, from, n, &error));
            g_autoptr (GTorchTensor) b = TRY (gtorch_tensor_narrow (device, dim, from, n, &error));

            check_reductions (what, a, b, tolerance_of (dtypes[t]));
          }
      }
}

/* Long rows are read once, in vectors if they are aligned; a great mean must not take the digits. */
static void
variances_of_long_rows (void)
{
  static const gint64 lengths[] = { 70000, 524288, 3000001 };
  guint t, k;
  gint64 cut;

  for (t = 0; t < G_N_ELEMENTS (dtypes); t++)
    for (k = 0; k < G_N_ELEMENTS (lengths); k++)
      {
        g_autoptr (GTorchTensor) normal =
            TRY (gtorch_randn (&lengths[k], 1, dtypes[t], NULL, NULL, &error));
        g_autoptr (GTorchTensor) x =
            TRY (gtorch_tensor_add_scalar (normal, t < 2 ? 100 : 1, 1, &error));
        g_autoptr (GTorchTensor) host = as (x, GTORCH_DTYPE_FLOAT64);
        g_autoptr (GTorchTensor) device = on (x, gpu);

        if (is_one_too_many (t, G_N_ELEMENTS (dtypes), k))
          continue;
        for (cut = 0; cut < 3; cut++)
          {
            g_autoptr (GTorchTensor) a =
                TRY (gtorch_tensor_narrow (host, 0, cut, lengths[k] - 2 * cut, &error));
            g_autoptr (GTorchTensor) b =
                TRY (gtorch_tensor_narrow (device, 0, cut, lengths[k] - 2 * cut, &error));
            g_autoptr (GTorchTensor) expected =
                TRY (gtorch_tensor_var (a, NULL, 0, 1, FALSE, &error));
            g_autoptr (GTorchTensor) got = TRY (gtorch_tensor_var (b, NULL, 0, 1, FALSE, &error));

            agree ("a variance", got, expected, tolerance_of (dtypes[t]));
          }
      }
}

static void
complex_numbers_of_angles (void)
{
  gint64 n;
  guint t;

  for (t = 0; t < 2; t++)
    for (n = 0; n < 12; n++)
      {
        const gint64 size = n < 10 ? n : n * 1000 + 1;
        g_autoptr (GTorchTensor) r = TRY (gtorch_randn (&size, 1, dtypes[t], NULL, NULL, &error));
        g_autoptr (GTorchTensor) angle = TRY (gtorch_tensor_mul_scalar (r, 40, &error));
        g_autoptr (GTorchTensor) r_device = on (r, gpu);
        g_autoptr (GTorchTensor) angle_device = on (angle, gpu);
        g_autoptr (GTorchTensor) column = TRY (gtorch_tensor_unsqueeze (angle_device, 1, &error));
        g_autoptr (GTorchTensor) wide_r = as (r, GTORCH_DTYPE_FLOAT64);
        g_autoptr (GTorchTensor) wide_angle = as (angle, GTORCH_DTYPE_FLOAT64);
        g_autoptr (GTorchTensor) expected = TRY (gtorch_polar (wide_r, wide_angle, &error));
        g_autoptr (GTorchTensor) z = TRY (gtorch_polar (r_device, angle_device, &error));
        g_autoptr (GTorchTensor) pairs = TRY (gtorch_tensor_view_as_real (z, &error));
        g_autoptr (GTorchTensor) expected_pairs =
            TRY (gtorch_tensor_view_as_real (expected, &error));

        agree ("a complex number", pairs, expected_pairs, tolerance_of (dtypes[t]));
        if (n > 0 && n < 10)
          {
            g_autoptr (GTorchTensor) table = TRY (gtorch_polar (r_device, column, &error));
            g_autoptr (GTorchTensor) across = TRY (gtorch_tensor_diagonal (table, 0, 0, 1, &error));
            g_autoptr (GTorchTensor) across_pairs =
                TRY (gtorch_tensor_view_as_real (across, &error));

            agree ("a complex number of a table", across_pairs, expected_pairs,
                   tolerance_of (dtypes[t]));
          }
      }
}

int
main (int argc, char *argv[])
{
  if (!find_gpu ())
    return 0;
  g_test_init (&argc, &argv, NULL);
  gtorch_manual_seed (1);
#define ADD(name) g_test_add_func ("/GTorch/gpu/" #name, name)
  ADD (operands_far_apart);
  ADD (more_elements_than_one_launch);
  ADD (reductions_of_slices);
  ADD (variances_of_long_rows);
  ADD (complex_numbers_of_angles);
  return g_test_run ();
}
