/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Look-ups of rows: norms and gradients that are scaled, and bags of rows. */

#include "config.h"

#include <math.h>
#include <string.h>

#include "test-device.h"

/* Returns the table [[1, 2], [3, 4], [5, 6], [7, 8]]. */
static GTorchTensor *
table_new (guint dtype)
{
  const gdouble values[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
  GTorchTensor *table =
      gtorch_tensor_new_from_doubles (values, 8, GTORCH_SHAPE (4, 2), dtype, NULL, NULL);

  g_assert_true (gtorch_tensor_set_requires_grad (table, TRUE, NULL));
  return table;
}

static GTorchTensor *
integers (const gint64 *values, gint64 n)
{
  return gtorch_tensor_new_from_ints (values, n, &n, 1, GTORCH_DTYPE_INT64, NULL, NULL);
}
#define INTEGERS(...)                        \
  integers ((const gint64[]){ __VA_ARGS__ }, \
            sizeof ((const gint64[]){ __VA_ARGS__ }) / sizeof (gint64))

static void
assert_elements (GTorchTensor *tensor, const gdouble *values, gint64 n)
{
  g_assert_cmpint (gtorch_tensor_get_numel (tensor), ==, n);
  for (gint64 i = 0; i < n; i++)
    g_assert_cmpfloat_with_epsilon (test_element (tensor, i), values[i], 1e-6);
}
#define ASSERT_ELEMENTS(tensor, ...)                         \
  assert_elements (tensor, (const gdouble[]){ __VA_ARGS__ }, \
                   sizeof ((const gdouble[]){ __VA_ARGS__ }) / sizeof (gdouble))

static void
assert_grad (GTorchTensor *tensor, const gdouble *values, gsize n)
{
  g_autoptr (GTorchTensor) grad = gtorch_tensor_get_grad (tensor);

  assert_elements (grad, values, n);
}
#define ASSERT_GRAD(tensor, ...)                         \
  assert_grad (tensor, (const gdouble[]){ __VA_ARGS__ }, \
               sizeof ((const gdouble[]){ __VA_ARGS__ }) / sizeof (gdouble))

static GTorchTensor *
bag (GTorchTensor *table, GTorchTensor *indices, GTorchTensor *offsets, GTorchBagMode mode,
     GTorchTensor *factors, gint64 padding_idx, GError **error)
{
  return gtorch_embedding_bag (table, indices, offsets, FALSE, mode, factors, FALSE, padding_idx,
                               GTORCH_NONE_DOUBLE, 2, error);
}

static void
backward (GTorchTensor *output)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) ones = NULL;

  g_assert_nonnull (output);
  ones = gtorch_tensor_ones_like (output, GTORCH_DTYPE_NONE, NULL);
  gtorch_tensor_backward (output, ones, FALSE, FALSE, &error);
  g_assert_no_error (error);
}

static void
rows_are_scaled_to_a_norm (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) table = table_new (GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchTensor) indices = INTEGERS (1, 0, 1);
  g_autoptr (GTorchTensor) rows =
      gtorch_embedding (table, indices, GTORCH_NONE, FALSE, 2.5, 2, &error);

  g_assert_no_error (error);
  ASSERT_ELEMENTS (rows, 1.5, 2, 1, 2, 1.5, 2);
  /* those that are not looked up stay */
  ASSERT_ELEMENTS (table, 1, 2, 1.5, 2, 5, 6, 7, 8);
  backward (rows);
  ASSERT_GRAD (table, 1, 1, 2, 2, 0, 0, 0, 0);
}

static void
a_norm_may_be_left_out_but_not_be_nan (void)
{
  g_autoptr (GTorchTensor) table = table_new (GTORCH_DTYPE_FLOAT32);
  g_autoptr (GTorchTensor) indices = INTEGERS (1, 0);
  g_autoptr (GTorchTensor) offsets = INTEGERS (0);
  const gdouble norms[] = { GTORCH_NONE_DOUBLE, INFINITY, NAN, -1 };

  for (guint i = 0; i < G_N_ELEMENTS (norms); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GError) fault = NULL;
      g_autoptr (GTorchTensor) rows =
          gtorch_embedding (table, indices, GTORCH_NONE, FALSE, norms[i], 2, &error);
      g_autoptr (GTorchTensor) sum =
          gtorch_embedding_bag (table, indices, offsets, FALSE, GTORCH_BAG_MODE_SUM, NULL, FALSE,
                                GTORCH_NONE, norms[i], 2, &fault);

      ASSERT_ELEMENTS (table, 1, 2, 3, 4, 5, 6, 7, 8);
      if (i < 2)
        {
          ASSERT_ELEMENTS (rows, 3, 4, 1, 2);
          ASSERT_ELEMENTS (sum, 4, 6);
          continue;
        }
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      g_assert_error (fault, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      g_assert_true (g_str_has_prefix (error->message, "embedding: max_norm is "));
      g_assert_true (g_str_has_prefix (fault->message, "embedding_bag: max_norm is "));
    }
}

static void
frequent_rows_have_smaller_gradients (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) table = table_new (GTORCH_DTYPE_FLOAT32);
  g_autoptr (GTorchTensor) indices = INTEGERS (1, 3, 1, 0);
  g_autoptr (GTorchTensor) rows =
      gtorch_embedding (table, indices, 0, TRUE, GTORCH_NONE_DOUBLE, 2, &error);

  g_assert_no_error (error);
  backward (rows);
  ASSERT_GRAD (table, 0, 0, 1, 1, 0, 0, 1, 1);
}

static void
bags_begin_at_offsets (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) indices = INTEGERS (2, 0, 1, 3);
  g_autoptr (GTorchTensor) offsets = INTEGERS (0, 3, 3);

  for (guint mode = 0; mode <= GTORCH_BAG_MODE_MAX; mode++)
    {
      g_autoptr (GTorchTensor) table = table_new (GTORCH_DTYPE_FLOAT32);
      g_autoptr (GTorchTensor) made =
          bag (table, indices, offsets, mode, NULL, GTORCH_NONE, &error);

      g_assert_no_error (error);
      backward (made);
      if (mode == GTORCH_BAG_MODE_SUM)
        {
          ASSERT_ELEMENTS (made, 9, 12, 0, 0, 7, 8);
          ASSERT_GRAD (table, 1, 1, 1, 1, 1, 1, 1, 1);
        }
      else if (mode == GTORCH_BAG_MODE_MEAN)
        {
          ASSERT_ELEMENTS (made, 3, 4, 0, 0, 7, 8);
          ASSERT_GRAD (table, 1. / 3, 1. / 3, 1. / 3, 1. / 3, 1. / 3, 1. / 3, 1, 1);
        }
      else
        {
          ASSERT_ELEMENTS (made, 5, 6, 0, 0, 7, 8);
          ASSERT_GRAD (table, 0, 0, 0, 0, 1, 1, 1, 1);
        }
    }
}

static void
the_last_offset_may_be_an_end (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) table = table_new (GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchTensor) indices = INTEGERS (2, 0, 1, 3);
  g_autoptr (GTorchTensor) offsets = INTEGERS (0, 1, 3);
  g_autoptr (GTorchTensor) made =
      gtorch_embedding_bag (table, indices, offsets, FALSE, GTORCH_BAG_MODE_SUM, NULL, TRUE,
                            GTORCH_NONE, GTORCH_NONE_DOUBLE, 2, &error);

  g_assert_no_error (error);
  ASSERT_ELEMENTS (made, 5, 6, 4, 6);
  backward (made);
  ASSERT_GRAD (table, 1, 1, 1, 1, 1, 1, 0, 0);
}

static void
rows_may_have_factors (void)
{
  const gdouble values[] = { 2, -1, 0.5 };
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) table = table_new (GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchTensor) indices = INTEGERS (2, 0, 1);
  g_autoptr (GTorchTensor) offsets = INTEGERS (0, 2);
  g_autoptr (GTorchTensor) factors =
      gtorch_tensor_new_from_doubles (values, 3, GTORCH_SHAPE (3), GTORCH_DTYPE_FLOAT64, NULL,
                                      NULL);
  g_autoptr (GTorchTensor) made = NULL;

  g_assert_true (gtorch_tensor_set_requires_grad (factors, TRUE, NULL));
  made = bag (table, indices, offsets, GTORCH_BAG_MODE_SUM, factors, 1, &error);
  g_assert_no_error (error);
  ASSERT_ELEMENTS (made, 9, 10, 0, 0);
  backward (made);
  ASSERT_GRAD (table, -1, -1, 0, 0, 2, 2, 0, 0);
  ASSERT_GRAD (factors, 11, 3, 0);
}

static void
there_may_be_no_bag (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) table = table_new (GTORCH_DTYPE_FLOAT32);
  g_autoptr (GTorchTensor) nothing = integers (NULL, 0);
  g_autoptr (GTorchTensor) made =
      bag (table, nothing, nothing, GTORCH_BAG_MODE_MEAN, NULL, GTORCH_NONE, &error);

  g_assert_no_error (error);
  g_assert_cmpint (gtorch_tensor_get_size (made, 0, NULL), ==, 0);
  g_assert_cmpint (gtorch_tensor_get_size (made, 1, NULL), ==, 2);
  backward (made);
  ASSERT_GRAD (table, 0, 0, 0, 0, 0, 0, 0, 0);
}

#define REFUSED(call, code, text)                 \
  G_STMT_START                                    \
  {                                               \
    g_autoptr (GError) error = NULL;              \
    g_autoptr (GTorchTensor) made = (call);       \
                                                  \
    g_assert_null (made);                         \
    g_assert_error (error, GTORCH_ERROR, code);   \
    g_assert_cmpstr (error->message, ==, (text)); \
  }                                               \
  G_STMT_END

static void
wrong_arguments_are_refused (void)
{
  const GTorchBagMode sum = GTORCH_BAG_MODE_SUM, mean = GTORCH_BAG_MODE_MEAN;
  g_autoptr (GTorchTensor) table = table_new (GTORCH_DTYPE_FLOAT32);
  g_autoptr (GTorchTensor) indices = INTEGERS (1, 2, 3);
  g_autoptr (GTorchTensor) two = INTEGERS (0, 2);
  g_autoptr (GTorchTensor) factors =
      gtorch_ones (GTORCH_SHAPE (2), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) wide = gtorch_ones (GTORCH_SHAPE (3), GTORCH_DTYPE_FLOAT64, NULL, NULL);
  g_autoptr (GTorchTensor) whole = gtorch_tensor_to_dtype (table, GTORCH_DTYPE_INT64, NULL);

  REFUSED (bag (table, indices, NULL, sum, NULL, GTORCH_NONE, &error), GTORCH_ERROR_SHAPE,
           "embedding_bag: indices of shape [3] without offsets: they must be [B, N]");
  REFUSED (bag (table, indices, table, sum, NULL, GTORCH_NONE, &error), GTORCH_ERROR_SHAPE,
           "embedding_bag: indices of shape [3] and offsets of shape [4, 2]: both must have one "
           "dimension");
  REFUSED (bag (table, indices, factors, sum, NULL, GTORCH_NONE, &error), GTORCH_ERROR_DTYPE,
           "embedding_bag: offsets must be integers, they are float32");
  REFUSED (bag (table, indices, two, mean, wide, GTORCH_NONE, &error), GTORCH_ERROR_INVALID,
           "embedding_bag: per_sample_weights are for sums only");
  REFUSED (bag (table, indices, two, sum, factors, GTORCH_NONE, &error), GTORCH_ERROR_SHAPE,
           "embedding_bag: per_sample_weights of shape [2] must have that of the indices, [3]");
  REFUSED (bag (table, indices, two, sum, wide, GTORCH_NONE, &error), GTORCH_ERROR_DTYPE,
           "embedding_bag: per_sample_weights are of float64 and the weight of float32: both must "
           "be equal");
  REFUSED (bag (table, indices, two, sum, NULL, 4, &error), GTORCH_ERROR_INDEX,
           "embedding_bag: padding_idx 4 is out of range for 4 rows");
  REFUSED (gtorch_embedding_bag (table, indices, two, TRUE, GTORCH_BAG_MODE_MAX, NULL, FALSE,
                                 GTORCH_NONE, GTORCH_NONE_DOUBLE, 2, &error),
           GTORCH_ERROR_INVALID, "embedding_bag: scale_grad_by_freq is not for maxima");
  REFUSED (gtorch_embedding (whole, indices, GTORCH_NONE, FALSE, 1, 2, &error), GTORCH_ERROR_DTYPE,
           "embedding: max_norm is for weights of floating-point dtypes, not of int64");
}

/* A GPU finds these, and says so later. */
static void
wrong_values_are_refused (void)
{
  static const struct
  {
    gint64 indices[3], offsets[2];
    const gchar *text; /* what the CPU says */
  } wrong[] = {
    { { 1, 4, 2 }, { 0, 2 }, "embedding_bag: index 4 is out of range for 4 rows" },
    { { 1, -1, 2 }, { 0, 2 }, "embedding_bag: index -1 is out of range for 4 rows" },
    { { 1, 3, 2 },
      { 1, 2 },
      "embedding_bag: offset 1 is out of range for 3 indices: number 0 must be from 0 to 0" },
    { { 1, 3, 2 },
      { 0, 4 },
      "embedding_bag: offset 4 is out of range for 3 indices: number 1 must be from 0 to 3" },
    { { 1, 3, 2 },
      { 0, -1 },
      "embedding_bag: offset -1 is out of range for 3 indices: number 1 must be from 0 to 3" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) table = table_new (GTORCH_DTYPE_FLOAT32);
      g_autoptr (GTorchTensor) indices = integers (wrong[i].indices, 3);
      g_autoptr (GTorchTensor) offsets = integers (wrong[i].offsets, 2);

      g_assert_true (
          test_fails (bag (table, indices, offsets, GTORCH_BAG_MODE_SUM, NULL, GTORCH_NONE, &error),
                      &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
      if (test_computes_on_host ())
        g_assert_cmpstr (error->message, ==, wrong[i].text);
      else
        g_assert_nonnull (strstr (error->message, "embedding_bag"));
    }
}

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/GTorch/embedding/" #name, name)
  ADD (rows_are_scaled_to_a_norm);
  ADD (a_norm_may_be_left_out_but_not_be_nan);
  ADD (frequent_rows_have_smaller_gradients);
  ADD (bags_begin_at_offsets);
  ADD (the_last_offset_may_be_an_end);
  ADD (rows_may_have_factors);
  ADD (there_may_be_no_bag);
  ADD (wrong_arguments_are_refused);
  ADD (wrong_values_are_refused);
  return g_test_run ();
}
