/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Indexing, by items and in its text form: the position of dimensions, errors and shared memory. */

#include "config.h"

#include <string.h>

#include <gtorch/tensor/gtorch-tensor-private.h>
#include <gtorch/gtorch.h>

#include "op-values.h"

#define INT(i)         GTORCH_INDEX_INT, (i), 0, 0
#define SLICE(a, b, c) GTORCH_INDEX_SLICE, (a), (b), (c)
#define ALL            SLICE (0, G_MAXINT64, 1)
#define NEW_AXIS       GTORCH_INDEX_NEW_AXIS, 0, 0, 0
#define TENSOR(i)      GTORCH_INDEX_TENSOR, (i), 0, 0

/* Returns 0, 1, 2, … in a shape. */
static GTorchTensor *
counting (GTorchDType dtype, const gint64 *shape, gsize n_dims)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) row = NULL;
  GTorchTensor *tensor;
  gint64 n = 1;
  gsize i;

  for (i = 0; i < n_dims; i++)
    n *= shape[i];
  row = gtorch_arange (0, n, 1, dtype, NULL, &error);
  g_assert_no_error (error);
  tensor = gtorch_tensor_view (row, shape, n_dims, &error);
  g_assert_no_error (error);
  return tensor;
}

static GTorchTensor *
numbers (GTorchDType dtype, const gint64 *values, gsize n)
{
  return gtorch_tensor_new_from_ints (values, n, GTORCH_SHAPE ((gint64) n), dtype, NULL, NULL);
}

static void
assert_values (GTorchTensor *tensor, const gchar *shape, const gint64 *values, gsize n)
{
  gsize i;

  g_assert_cmpstr (gtorch_impl_shape_str (tensor->impl), ==, shape);
  g_assert_cmpint (tensor->impl->numel, ==, n);
  for (i = 0; i < n; i++)
    g_assert_cmpfloat (creal (element_get (tensor->impl, i)), ==, values[i]);
}

static void
assert_error (GTorchTensor *result, GError **error, GTorchError code, const gchar *message)
{
  g_assert_true (test_fails (result, error));
  g_assert_error (*error, GTORCH_ERROR, code);
  /* GPUs append the function that reported it */
  g_assert_true (g_str_has_prefix ((*error)->message, message));
  g_clear_error (error);
}

static void
basic_items_give_views (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = counting (GTORCH_DTYPE_INT32, GTORCH_SHAPE (3, 4));
  const gint64 items[] = { SLICE (-2, G_MAXINT64, 1), NEW_AXIS, SLICE (0, 100, 3) };
  g_autoptr (GTorchTensor) y =
      gtorch_tensor_index (x, items, G_N_ELEMENTS (items), NULL, 0, &error);
  g_autoptr (GTorchTensor) z = gtorch_tensor_get (x, " -2: ,None, ::3", &error);
  g_autoptr (GTorchTensor) all = gtorch_tensor_get (x, "", &error);

  g_assert_no_error (error);
  g_assert_true (gtorch_tensor_shares_storage (x, y));
  assert_values (y, "[2, 1, 2]", GTORCH_SHAPE (4, 7, 8, 11));
  assert_values (z, "[2, 1, 2]", GTORCH_SHAPE (4, 7, 8, 11));
  g_assert_true (all != x && gtorch_tensor_shares_storage (x, all));
}

static void
index_tensors_are_placed_as_in_pytorch (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = counting (GTORCH_DTYPE_FLOAT32, GTORCH_SHAPE (2, 3, 4));
  g_autoptr (GTorchTensor) rows = numbers (GTORCH_DTYPE_INT64, GTORCH_SHAPE (1, -2));
  g_autoptr (GTorchTensor) columns = numbers (GTORCH_DTYPE_INT32, GTORCH_SHAPE (-1, 0));
  GTorchTensor *tensors[] = { rows, columns };
  const gint64 adjacent[] = { ALL, TENSOR (0), TENSOR (1) };
  const gint64 apart[] = { TENSOR (0), SLICE (1, 3, 1), TENSOR (1) };
  g_autoptr (GTorchTensor) a = gtorch_tensor_index (x, adjacent, 12, tensors, 2, &error);
  g_autoptr (GTorchTensor) b = gtorch_tensor_index (x, apart, 12, tensors, 2, &error);

  g_assert_no_error (error);
  assert_values (a, "[2, 2]", GTORCH_SHAPE (7, 4, 19, 16));
  assert_values (b, "[2, 2]", GTORCH_SHAPE (19, 23, 4, 8));
  g_assert_false (gtorch_tensor_shares_storage (x, a));
}

static void
masks_cover_several_dimensions (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = counting (GTORCH_DTYPE_INT64, GTORCH_SHAPE (2, 2, 2));
  g_autoptr (GTorchTensor) flags = numbers (GTORCH_DTYPE_BOOL, GTORCH_SHAPE (0, 1, 1, 0));
  g_autoptr (GTorchTensor) mask = gtorch_tensor_view (flags, GTORCH_SHAPE (2, 2), NULL);
  g_autoptr (GTorchTensor) row = gtorch_tensor_view (flags, GTORCH_SHAPE (1, 4), NULL);
  const gint64 items[] = { TENSOR (0) };
  const gint64 truth[] = { GTORCH_INDEX_BOOL, 0, 0, 0 };
  g_autoptr (GTorchTensor) y = gtorch_tensor_index (x, items, 4, &mask, 1, &error);
  g_autoptr (GTorchTensor) none = gtorch_tensor_index (x, truth, 4, NULL, 0, &error);

  g_assert_no_error (error);
  assert_values (y, "[2, 2]", GTORCH_SHAPE (2, 3, 4, 5));
  g_assert_cmpstr (gtorch_impl_shape_str (none->impl), ==, "[0, 2, 2, 2]");
  assert_error (gtorch_tensor_index (x, items, 4, &row, 1, &error), &error, GTORCH_ERROR_INDEX,
                "index: a mask of shape [1, 4] does not fit shape [2, 2, 2] from dimension 0 on");
}

static void
writing_reaches_the_tensor (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = counting (GTORCH_DTYPE_INT32, GTORCH_SHAPE (2, 3));
  g_autoptr (GTorchTensor) twice = numbers (GTORCH_DTYPE_INT64, GTORCH_SHAPE (2, 2, 0));
  g_autoptr (GTorchTensor) half = gtorch_full (GTORCH_SHAPE (1, 1, 3), 7.5, 0, NULL, NULL);
  g_autoptr (GTorchTensor) one = gtorch_ones (NULL, 0, GTORCH_DTYPE_INT32, NULL, NULL);
  g_autoptr (GTorchTensor) first = gtorch_tensor_get (x, ":, 0", NULL);
  const gint64 items[] = { INT (1), TENSOR (0) };

  g_assert_true (gtorch_tensor_set (x, "0", half, &error) == x);
  g_assert_true (gtorch_tensor_index_put_inplace (x, items, 8, &twice, 1, one, TRUE, &error) == x);
  g_assert_true (gtorch_tensor_set (x, "..., 1", first, &error) == x);
  g_assert_true (gtorch_tensor_set_scalar (x, "-1, 0", -3, &error) == x);
  g_assert_no_error (error);
  assert_values (x, "[2, 3]", GTORCH_SHAPE (7, 7, 7, -3, 4, 7));
}

static void
errors_leave_the_tensor_alone (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = gtorch_zeros (GTORCH_SHAPE (2, 3), 0, NULL, NULL);
  g_autoptr (GTorchTensor) bad = numbers (GTORCH_DTYPE_INT64, GTORCH_SHAPE (0, 3));
  g_autoptr (GTorchTensor) floats = gtorch_zeros (GTORCH_SHAPE (2), 0, NULL, NULL);
  g_autoptr (GTorchTensor) ones = gtorch_ones (GTORCH_SHAPE (2), 0, NULL, NULL);
  const gint64 items[] = { ALL, TENSOR (0) };
  const gint64 unknown[] = { 9, 0, 0, 0 };
  GTorchTensor *written;

  written = gtorch_tensor_index_put_inplace (x, items, 8, &bad, 1, ones, FALSE, &error);
  assert_error (written != NULL ? g_object_ref (written) : NULL, &error, GTORCH_ERROR_INDEX,
                "index_put: index 3 is out of range for dimension 1 of size 3");
  if (test_device () == gtorch_device_cpu ()) /* a GPU detects it asynchronously */
    assert_values (x, "[2, 3]", GTORCH_SHAPE (0, 0, 0, 0, 0, 0));
  assert_error (gtorch_tensor_index (x, items, 8, &floats, 1, &error), &error, GTORCH_ERROR_DTYPE,
                "index: an index tensor must be of int64 or int32, not of float32");
  assert_error (gtorch_tensor_index (x, items, 8, NULL, 0, &error), &error, GTORCH_ERROR_INVALID,
                "index: item 1 refers to tensor 0, the list has 0");
  assert_error (gtorch_tensor_index (x, items, 7, &bad, 1, &error), &error, GTORCH_ERROR_INVALID,
                "index: 7 integers were given, there can be up to 33 items of four integers each");
  assert_error (gtorch_tensor_index (x, unknown, 4, NULL, 0, &error), &error, GTORCH_ERROR_INVALID,
                "index: item 0 is of the unknown kind 9");
  assert_error (gtorch_tensor_get (x, "0, 0, 0", &error), &error, GTORCH_ERROR_INDEX,
                "get: 3 dimensions are indexed, but shape [2, 3] has only 2");
  assert_error (gtorch_tensor_get (x, "2", &error), &error, GTORCH_ERROR_INDEX,
                "get: index 2 is out of range for dimension 0 of shape [2, 3]");
  assert_error (gtorch_tensor_get (x, "..., ...", &error), &error, GTORCH_ERROR_INVALID,
                "get: there is more than one ellipsis");
}

/* Errors of a stream have the same text as synchronous ones. */
static void
errors_of_parts_name_the_whole_operation (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchStream) stream = gtorch_stream_new (test_device (), 0, &error);
  g_autoptr (GTorchTensor) x = gtorch_zeros (GTORCH_SHAPE (3), GTORCH_DTYPE_FLOAT64, NULL, &error);
  g_autoptr (GTorchTensor) ones =
      gtorch_ones (GTORCH_SHAPE (2), GTORCH_DTYPE_FLOAT64, NULL, &error);
  g_autoptr (GTorchTensor) table =
      gtorch_zeros (GTORCH_SHAPE (2, 3), GTORCH_DTYPE_FLOAT64, NULL, &error);
  g_autoptr (GTorchTensor) far = numbers (GTORCH_DTYPE_INT64, GTORCH_SHAPE (0, 9));
  static const gchar *const names[] = { "gather",       "scatter_reduce", "scatter_reduce",
                                        "index_reduce", "take_along_dim", "nll_loss",
                                        "cross_entropy" };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autofree gchar *start = g_strconcat (names[i], ": ", NULL);
      g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);
      g_autoptr (GTorchTensor) result = NULL;

      if (i == 0)
        result = gtorch_tensor_gather (x, 0, far, &error);
      else if (i <= 2)
        result = gtorch_tensor_scatter_reduce (x, 0, far, ones,
                                               i == 1 ? GTORCH_INDEX_REDUCTION_SUM
                                                      : GTORCH_INDEX_REDUCTION_AMAX,
                                               TRUE, &error);
      else if (i == 3)
        result =
            gtorch_tensor_index_reduce (x, 0, far, ones, GTORCH_INDEX_REDUCTION_PROD, TRUE, &error);
      else if (i == 4)
        result = gtorch_tensor_take_along_dim (x, far, 0, &error);
      else if (i == 5)
        result = gtorch_tensor_nll_loss (table, far, NULL, GTORCH_REDUCTION_MEAN, -100, &error);
      else
        result =
            gtorch_tensor_cross_entropy (table, far, NULL, GTORCH_REDUCTION_NONE, -100, 0, &error);
      g_assert_no_error (error);
      g_assert_false (gtorch_stream_synchronize (stream, NULL, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
      if (!g_str_has_prefix (error->message, start))
        g_error ("“%s” does not begin with “%s”", error->message, start);
      g_clear_error (&error);
    }
}

static void
text_form_is_checked (void)
{
  static const struct
  {
    const gchar *spec, *message;
  } cases[] = {
    { "0 1", "get: “0 1” cannot be read at character 3: a comma is wanted" },
    { "a", "get: “a” cannot be read at character 1: a number, a range a:b:c, “...” or “None” is "
           "wanted" },
    { "…, ::-1", "get: “…, ::-1” cannot be read at character 8: the step is not positive" },
    { "99999999999999999999", "get: “99999999999999999999” cannot be read at character 1: the "
                              "number does not fit 64 bits" },
    { "Nonesuch", "get: “Nonesuch” cannot be read at character 1: a number, a range a:b:c, “...” "
                  "or “None” is wanted" },
    { ",", "get: “,” cannot be read at character 1: a number, a range a:b:c, “...” or “None” is "
           "wanted" },
  };
  g_autoptr (GTorchTensor) x = gtorch_zeros (GTORCH_SHAPE (2, 3), 0, NULL, NULL);
  g_autoptr (GError) error = NULL;
  guint i;

  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    assert_error (gtorch_tensor_get (x, cases[i].spec, &error), &error, GTORCH_ERROR_INVALID,
                  cases[i].message);
}

/* Any text gives a tensor or an error. */
static void
text_form_survives_noise (void)
{
  static const gchar *const pieces[] = { "0",     "-1", ":",  "::", ",", "...", "None",  "True",
                                         "false", " ",  "\t", "9",  "-", "+",   "null",  "\xff",
                                         "…",     "x",  "1:", ":2", "3", ",",   "Falsey" };
  g_autoptr (GTorchTensor) x = gtorch_zeros (GTORCH_SHAPE (2, 3, 4), 0, NULL, NULL);
  guint i, k, n_good = 0;

  for (i = 0; i < 20000; i++)
    {
      g_autoptr (GString) spec = g_string_new (NULL);
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) y = NULL;

      for (k = g_test_rand_int_range (0, 12); k > 0; k--)
        g_string_append (spec, pieces[g_test_rand_int_range (0, G_N_ELEMENTS (pieces))]);
      y = gtorch_tensor_get (x, spec->str, &error);
      g_assert_true ((y == NULL) == (error != NULL));
      n_good += y != NULL;
    }
  g_assert_cmpuint (n_good, >, 100);
}

static void
many_equal_indices_are_added_in_order (void)
{
  const gint64 n = 200000;
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) table =
      gtorch_zeros (GTORCH_SHAPE (3, 2), GTORCH_DTYPE_INT64, NULL, NULL);
  g_autoptr (GTorchTensor) index = NULL;
  g_autoptr (GTorchTensor) source =
      gtorch_ones (GTORCH_SHAPE (n, 2), GTORCH_DTYPE_INT64, NULL, NULL);
  g_autofree gint64 *data = g_new (gint64, n);
  gint64 i;

  for (i = 0; i < n; i++)
    data[i] = i % 4 == 3 ? 2 : i % 4;
  index = numbers (GTORCH_DTYPE_INT64, data, n);
  g_assert_nonnull (gtorch_tensor_index_add_inplace (table, 0, index, source, 1, &error));
  g_assert_no_error (error);
  assert_values (table, "[3, 2]", GTORCH_SHAPE (n / 4, n / 4, n / 4, n / 4, n / 2, n / 2));
}

/* Threads take more ranges of the lines than there are threads. */
static void
many_lines_are_scattered_by_threads (void)
{
  const gint64 lines = 600, length = 3000, places = 1000;
  const gint n_threads = gtorch_get_num_threads ();
  g_autofree gint64 *data = g_new (gint64, length);
  gint dim, k;

  for (k = 0; k < length; k++)
    data[k] = k % places;
  g_assert_true (gtorch_set_num_threads (3, NULL));
  for (dim = 0; dim < 2; dim++)
    {
      const gint64 shape[] = { dim == 0 ? length : lines, dim == 0 ? lines : length };
      const gint64 sums_shape[] = { dim == 0 ? places : lines, dim == 0 ? lines : places };
      const gint64 line_shape[] = { dim == 0 ? length : 1, dim == 0 ? 1 : length };
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) table =
          gtorch_zeros (sums_shape, 2, GTORCH_DTYPE_FLOAT32, NULL, NULL);
      g_autoptr (GTorchTensor) source = gtorch_ones (shape, 2, GTORCH_DTYPE_FLOAT32, NULL, NULL);
      g_autoptr (GTorchTensor) folded = numbers (GTORCH_DTYPE_INT64, data, length);
      g_autoptr (GTorchTensor) line = gtorch_tensor_reshape (folded, line_shape, 2, NULL);
      g_autoptr (GTorchTensor) index = gtorch_tensor_expand (line, shape, 2, NULL);
      g_autoptr (GTorchTensor) sums = gtorch_tensor_scatter_add (table, dim, index, source, &error);
      g_autofree gdouble *values = NULL;
      gsize n, i;

      g_assert_no_error (error);
      values = gtorch_tensor_to_doubles (sums, &n, NULL);
      g_assert_cmpuint (n, ==, lines * places);
      for (i = 0; i < n; i++)
        g_assert_cmpfloat (values[i], ==, length / places);
    }
  g_assert_true (gtorch_set_num_threads (n_threads, NULL));
}

/* A write through a pointer does not change the version counter. */
static void
indices_of_maxima_are_checked (void)
{
  static const gint64 wrong[] = { -1, 16, G_MAXINT64, G_MININT64 };
  static const gint64 zero[] = { 0 }, one[] = { 1 }, two[] = { 2 };
  guint i;

  if (test_is_elsewhere ("GPUs look for the elements in the windows"))
    return;
  for (i = 0; i < G_N_ELEMENTS (wrong); i++)
    {
      g_autoptr (GTorchTensor) x = counting (GTORCH_DTYPE_FLOAT32, GTORCH_SHAPE (2, 4, 4));
      g_autoptr (GTorchTensor) values = NULL;
      g_autoptr (GTorchTensor) indices = NULL;
      g_autoptr (GTorchTensor) sum = NULL;
      g_autoptr (GError) error = NULL;
      g_autofree gchar *message =
          g_strdup_printf ("*: index %" G_GINT64_FORMAT " is out of range for 16 elements",
                           wrong[i]);

      gtorch_tensor_set_requires_grad (x, TRUE, NULL);
      g_assert_true (gtorch_tensor_max_pool2d_with_indices (x, two, 1, two, 1, zero, 1, one, 1,
                                                            FALSE, &values, &indices, &error));
      sum = gtorch_tensor_sum (values, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
      g_assert_no_error (error);
      ((gint64 *) gtorch_tensor_get_data_ptr (indices))[5] = wrong[i];
      g_assert_false (gtorch_tensor_backward (sum, NULL, FALSE, FALSE, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
      g_test_message ("%s", error->message);
      g_assert_true (g_pattern_match_simple (message, error->message));
      g_assert_null (gtorch_tensor_get_grad (x));
    }
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/index/basic_items_give_views", basic_items_give_views);
  g_test_add_func ("/GTorch/index/index_tensors_are_placed_as_in_pytorch",
                   index_tensors_are_placed_as_in_pytorch);
  g_test_add_func ("/GTorch/index/masks_cover_several_dimensions", masks_cover_several_dimensions);
  g_test_add_func ("/GTorch/index/writing_reaches_the_tensor", writing_reaches_the_tensor);
  g_test_add_func ("/GTorch/index/errors_leave_the_tensor_alone", errors_leave_the_tensor_alone);
  g_test_add_func ("/GTorch/index/errors_of_parts_name_the_whole_operation",
                   errors_of_parts_name_the_whole_operation);
  g_test_add_func ("/GTorch/index/many_lines_are_scattered_by_threads",
                   many_lines_are_scattered_by_threads);
  g_test_add_func ("/GTorch/index/indices_of_maxima_are_checked", indices_of_maxima_are_checked);
  g_test_add_func ("/GTorch/index/text_form_is_checked", text_form_is_checked);
  g_test_add_func ("/GTorch/index/text_form_survives_noise", text_form_survives_noise);
  g_test_add_func ("/GTorch/index/many_equal_indices_are_added_in_order",
                   many_equal_indices_are_added_in_order);
  return g_test_run ();
}
