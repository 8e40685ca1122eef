/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Properties that the rows of element-wise operations cannot express: promotion of numbers, in-place
 * rules, 16-bit floats. */

#include "config.h"

#include "gtorch-ops-private.h"
#include <math.h>
#include <string.h>

#include "gtorch/cpu/gtorch-cpu-half.h"
#include "test-device.h"

static GTorchTensor *
zeros (GTorchDType dtype)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *tensor = gtorch_zeros (GTORCH_SHAPE (2, 3), dtype, NULL, &error);

  g_assert_no_error (error);
  return tensor;
}

static void
numbers_promote_by_kind_only (void)
{
  g_autoptr (GTorchTensor) bytes = zeros (GTORCH_DTYPE_UINT8);
  g_autoptr (GTorchTensor) halves = zeros (GTORCH_DTYPE_FLOAT16);
  g_autoptr (GTorchTensor) a = gtorch_tensor_add_int (bytes, 300, 1, NULL);
  g_autoptr (GTorchTensor) b = gtorch_tensor_add_scalar (bytes, 0.5, 1, NULL);
  g_autoptr (GTorchTensor) c = gtorch_tensor_add_scalar (halves, 0.5, 1, NULL);
  g_autoptr (GTorchTensor) d = gtorch_tensor_div (bytes, bytes, NULL);

  g_assert_cmpint (gtorch_tensor_get_dtype (a), ==, GTORCH_DTYPE_UINT8);
  g_assert_cmpint ((gint) test_element (a, 5), ==, 300 - 256);
  g_assert_cmpint (gtorch_tensor_get_dtype (b), ==, GTORCH_DTYPE_FLOAT32);
  g_assert_cmpint (gtorch_tensor_get_dtype (c), ==, GTORCH_DTYPE_FLOAT16);
  g_assert_cmpfloat (test_element (c, 3), ==, 0.5);
  g_assert_cmpint (gtorch_tensor_get_dtype (d), ==, GTORCH_DTYPE_FLOAT32);
}

static void
in_place_keeps_dtype_and_counts_versions (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) ints = zeros (GTORCH_DTYPE_INT32);

  g_assert_null (gtorch_tensor_add_scalar_inplace (ints, 0.5, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE);
  g_assert_cmpstr (error->message, ==,
                   "add: a result of dtype float32 cannot be written to a tensor of dtype int32");
  g_assert_cmpuint (gtorch_tensor_get_version (ints), ==, 0);
  g_assert_true (gtorch_tensor_add_int_inplace (ints, 7, 1, NULL) == ints);
  g_assert_cmpuint (gtorch_tensor_get_version (ints), ==, 1);
  g_assert_cmpint ((gint) test_element (ints, 5), ==, 7);
}

/* The operands have one shape and are contiguous, but differ otherwise. */
static void
differing_operands_are_not_treated_as_alike (void)
{
  const gint64 wide[] = { 2, 3 }, tall[] = { 3, 2 }, row[] = { 1, 3 };
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = gtorch_ones (wide, 2, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) y = gtorch_full (wide, 2, 1.5, GTORCH_DTYPE_FLOAT64, NULL, NULL);
  g_autoptr (GTorchTensor) n = gtorch_full (wide, 2, 2, GTORCH_DTYPE_INT64, NULL, NULL);
  g_autoptr (GTorchTensor) turned = gtorch_ones (tall, 2, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) one = gtorch_ones (row, 2, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) same = gtorch_tensor_expand (one, wide, 2, NULL);
  g_autoptr (GTorchTensor) a = gtorch_tensor_add (x, y, 1, NULL);
  g_autoptr (GTorchTensor) b = gtorch_tensor_add (n, x, 1, NULL);
  g_autoptr (GTorchTensor) c = gtorch_tensor_exp (n, NULL);
  g_autoptr (GTorchTensor) d = gtorch_tensor_lt (x, x, NULL);

  g_assert_cmpint (gtorch_tensor_get_dtype (a), ==, GTORCH_DTYPE_FLOAT64);
  g_assert_cmpfloat (test_element (a, 5), ==, 2.5);
  g_assert_cmpint (gtorch_tensor_get_dtype (b), ==, GTORCH_DTYPE_FLOAT32);
  g_assert_cmpfloat (test_element (b, 5), ==, 3);
  g_assert_cmpint (gtorch_tensor_get_dtype (c), ==, GTORCH_DTYPE_FLOAT32);
  g_assert_cmpint (gtorch_tensor_get_dtype (d), ==, GTORCH_DTYPE_BOOL);
  g_assert_true (gtorch_tensor_add_inplace (x, y, 1, NULL) == x);
  g_assert_cmpint (gtorch_tensor_get_dtype (x), ==, GTORCH_DTYPE_FLOAT32);
  g_assert_cmpfloat (test_element (x, 5), ==, 2.5);

  g_assert_null (gtorch_tensor_add_inplace (n, x, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE);
  g_clear_error (&error);
  g_assert_null (gtorch_tensor_add (x, turned, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_clear_error (&error);
  g_assert_null (gtorch_tensor_relu_inplace (same, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "share one memory location"));
}

static void
errors_name_op_values_and_rule (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) a = zeros (GTORCH_DTYPE_FLOAT32);
  g_autoptr (GTorchTensor) b = gtorch_zeros (GTORCH_SHAPE (4), GTORCH_DTYPE_FLOAT32, NULL, NULL);

  g_assert_null (gtorch_tensor_mul (a, b, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_cmpstr (error->message, ==,
                   "mul: shapes [2, 3] and [4] cannot be broadcast: dimension -1 is 3 and 4");
  g_clear_error (&error);
  g_assert_null (gtorch_tensor_bitwise_and (a, a, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE);
  g_assert_cmpstr (error->message, ==, "bitwise_and: not defined for dtype float32");
}

/* Impossible operations are refused before anything is computed. */
static void
multipliers_of_integers_are_integers (void)
{
  static const struct
  {
    GTorchDType dtype;
    gdouble value;
    const gchar *what; /* the word in the message; NULL if the operation succeeds */
  } cases[] = {
    { GTORCH_DTYPE_INT64, 0.5, "is 0.5, which is no int64" },
    { GTORCH_DTYPE_INT64, 0x1p63, "is 9.22337e+18, which is no int64" },
    { GTORCH_DTYPE_INT32, NAN, "which is no int32" },
    { GTORCH_DTYPE_INT32, -INFINITY, "is -inf, which is no int32" },
    { GTORCH_DTYPE_INT32, -0x1p31, NULL },
    { GTORCH_DTYPE_INT8, 128, "is 128, which is no int8" },
    { GTORCH_DTYPE_UINT8, -255, NULL },
    { GTORCH_DTYPE_UINT8, 256, "is 256, which is no uint8" },
    { GTORCH_DTYPE_FLOAT32, 0.5, NULL },
  };
  guint i, j;

  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    for (j = 0; j < 7; j++)
      {
        const gdouble value = cases[i].value;
        g_autoptr (GTorchTensor) x = zeros (cases[i].dtype);
        g_autoptr (GTorchTensor) square =
            gtorch_ones (GTORCH_SHAPE (3, 3), cases[i].dtype, NULL, NULL);
        g_autoptr (GTorchTensor) three = gtorch_tensor_unsqueeze (square, 0, NULL);
        g_autoptr (GTorchTensor) index =
            gtorch_zeros (GTORCH_SHAPE (2), GTORCH_DTYPE_INT64, NULL, NULL);
        g_autoptr (GTorchTensor) result = NULL;
        g_autoptr (GError) error = NULL;

        if (j == 0)
          result = gtorch_tensor_add (x, x, value, &error);
        else if (j == 1)
          result = gtorch_tensor_sub (x, x, value, &error);
        else if (j == 2)
          result = gtorch_tensor_addmm (x, x, square, value, 1, &error);
        else if (j == 3)
          result = gtorch_tensor_addmm (x, x, square, 1, value, &error);
        else if (j == 4)
          result = gtorch_tensor_baddbmm (three, three, three, 1, value, &error);
        else if (j == 5)
          result = gtorch_tensor_index_add (x, 0, index, x, value, &error);
        else if (gtorch_tensor_add_inplace (x, x, value, &error) != NULL)
          result = g_object_ref (x);
        if (cases[i].what == NULL)
          {
            g_assert_no_error (error);
            continue;
          }
        g_assert_null (result);
        g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
        if (strstr (error->message, cases[i].what) == NULL)
          g_error ("%s", error->message);
        g_assert_cmpuint (gtorch_tensor_get_version (x), ==, 0);
      }
}

static void
halves_round_to_nearest_even (void)
{
  guint i;

  for (i = 0; i < 0x10000; i++)
    {
      float f = gt_half_to_float (i);

      if (f != f)
        g_assert_true ((gt_half_from_float (f) & 0x7fff) > 0x7c00);
      else
        g_assert_cmpuint (gt_half_from_float (f), ==, i);
      f = gt_bfloat16_to_float (i);
      if (f == f)
        g_assert_cmpuint (gt_bfloat16_from_float (f), ==, i);
    }
  g_assert_cmpuint (gt_half_from_float (1 + 0x1p-11f), ==, 0x3c00);
  g_assert_cmpuint (gt_half_from_float (1 + 0x1.8p-10f), ==, 0x3c02);
  g_assert_cmpuint (gt_half_from_float (65519.9f), ==, 0x7bff);
  g_assert_cmpuint (gt_half_from_float (65520.0f), ==, 0x7c00);
  g_assert_cmpuint (gt_half_from_float (0x1p-25f), ==, 0);
  g_assert_cmpuint (gt_half_from_float (0x1.8p-25f), ==, 1);
}

/* Copies the result to the host, wherever the operands are. */
static GTorchImpl *
run_on_host (const GTorchOpClass *op, GTorchImpl *x, GTorchImpl *y)
{
  GTorchImpl *inputs[] = { x, y };
  g_autoptr (GTorchImpl) output = NULL;
  GError *error = NULL;

  gtorch_op_run (op, inputs, op->n_inputs, NULL, &output, &error);
  g_assert_no_error (error);
  return impl_to_host (output);
}

/* A value has the same bits wherever its element is: inside a vector, in the rest after the last one, or
 * alone. */
static void
results_do_not_depend_on_position (void)
{
  static const guint dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64,
                                  GTORCH_DTYPE_BFLOAT16 };
  const gint64 n = 83;
  guint id, d;
  gint64 i;

  for (id = 0; id < gtorch_n_ops; id++)
    for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
      {
        const GTorchOpClass *op = &gtorch_ops[id];
        g_autoptr (GTorchImpl) plain = NULL;
        g_autoptr (GTorchImpl) x = NULL;
        g_autoptr (GTorchImpl) whole = NULL;

        if (op->loop < 0 || op->shape != gtorch_shape_pointwise || op->n_attrs > 0
            || op->n_inputs > 2 || !(op->dtypes & (1u << dtypes[d])))
          continue;
        plain = gtorch_op_linspace (0.01, 0.99, n, GTORCH_DTYPE_FLOAT64, NULL, NULL);
        x = gtorch_op_to_dtype (plain, dtypes[d], NULL);
        whole = run_on_host (op, x, x);
        for (i = 0; i < n; i += test_step ())
          {
            const gint64 one = 1, some = (n - i + 2) / 3, stride = 3;
            gsize size = gtorch_dtype_size (whole->dtype);
            g_autoptr (GTorchImpl) at = gtorch_impl_new_view (x, i, &one, NULL, 1);
            g_autoptr (GTorchImpl) spread = gtorch_impl_new_view (x, i, &some, &stride, 1);
            g_autoptr (GTorchImpl) alone = run_on_host (op, at, at);
            g_autoptr (GTorchImpl) strided = run_on_host (op, spread, spread);
            const char *expected = (const char *) gtorch_impl_data (whole) + (gsize) i * size;

            if (memcmp (gtorch_impl_data (alone), expected, size) != 0
                || memcmp (gtorch_impl_data (strided), expected, size) != 0)
              g_error ("%s of %s: element %d differs", op->name, gtorch_dtype_get_name (dtypes[d]),
                       (int) i);
          }
      }
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/pointwise/numbers_promote_by_kind_only", numbers_promote_by_kind_only);
  g_test_add_func ("/GTorch/pointwise/in_place_keeps_dtype_and_counts_versions",
                   in_place_keeps_dtype_and_counts_versions);
  g_test_add_func ("/GTorch/pointwise/differing_operands_are_not_treated_as_alike",
                   differing_operands_are_not_treated_as_alike);
  g_test_add_func ("/GTorch/pointwise/errors_name_op_values_and_rule",
                   errors_name_op_values_and_rule);
  g_test_add_func ("/GTorch/pointwise/multipliers_of_integers_are_integers",
                   multipliers_of_integers_are_integers);
  g_test_add_func ("/GTorch/pointwise/halves_round_to_nearest_even", halves_round_to_nearest_even);
  g_test_add_func ("/GTorch/pointwise/results_do_not_depend_on_position",
                   results_do_not_depend_on_position);
  return g_test_run ();
}
