/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Views share memory and gradients; lists of views, joins, factories and copies; errors. */

#include "config.h"

#include <gtorch/tensor/gtorch-tensor-private.h>
#include <gtorch/gtorch.h>

#include "op-values.h"

static gdouble
at (GTorchTensor *tensor, gint64 i)
{
  return creal (element_get (tensor->impl, i));
}

static GTorchTensor *
zeros (gint64 rows, gint64 columns)
{
  return gtorch_zeros (GTORCH_SHAPE (rows, columns), GTORCH_DTYPE_FLOAT32, NULL, NULL);
}

static void
assert_message (gpointer result, GError **error, GTorchError code, const gchar *message)
{
  g_assert_null (result);
  g_assert_error (*error, GTORCH_ERROR, code);
  g_assert_cmpstr ((*error)->message, ==, message);
  g_clear_error (error);
}

static void
parts_share_memory (void)
{
  g_autoptr (GTorchTensor) x = zeros (5, 2);
  g_autoptr (GPtrArray) chunks = gtorch_tensor_chunk (x, 3, 0, NULL);
  g_autoptr (GPtrArray) rows = gtorch_tensor_unbind (x, 0, NULL);
  g_autoptr (GTorchTensor) strided =
      gtorch_tensor_as_strided (x, GTORCH_SHAPE (4), GTORCH_SHAPE (3), 0, NULL);

  g_assert_cmpuint (chunks->len, ==, 3);
  g_assert_cmpint (((GTorchTensor *) chunks->pdata[2])->impl->shape[0], ==, 1);
  g_assert_cmpuint (rows->len, ==, 5);
  gtorch_tensor_fill_inplace (rows->pdata[4], 7, NULL);
  g_assert_cmpfloat (at (x, 9), ==, 7);
  g_assert_cmpfloat (at (chunks->pdata[2], 0), ==, 7);
  g_assert_cmpfloat (at (strided, 3), ==, 7);
  g_assert_cmpuint (gtorch_tensor_get_version (x), ==, 1);
}

/* A number of parts makes a list that is no longer than the dimension, or than 65536 if some are empty. */
static void
lists_of_parts_are_bounded (void)
{
  static const gint64 wrong[] = {
    0, -1, G_MININT64, 65537, G_GINT64_CONSTANT (1) << 40, G_MAXINT64
  };
  g_autoptr (GTorchTensor) none =
      gtorch_zeros (GTORCH_SHAPE (0, 0, 0), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) two = zeros (2, 0);
  g_autoptr (GTorchTensor) many = zeros (70000, 1);
  g_autoptr (GPtrArray) all = gtorch_tensor_tensor_split (many, 70000, 0, NULL);
  g_autoptr (GPtrArray) most = gtorch_tensor_tensor_split (two, 65536, 0, NULL);
  g_autoptr (GPtrArray) empty = gtorch_tensor_chunk (none, 65536, 0, NULL);
  g_autoptr (GPtrArray) halves = gtorch_tensor_chunk (two, G_MAXINT64, 0, NULL);
  g_autoptr (GPtrArray) columns = gtorch_tensor_hsplit (none, 3, NULL);
  guint i, k;

  g_assert_cmpuint (all->len, ==, 70000);
  g_assert_cmpuint (most->len, ==, 65536);
  g_assert_cmpint (gtorch_tensor_get_numel (most->pdata[65535]), ==, 0);
  g_assert_cmpuint (empty->len, ==, 65536);
  g_assert_cmpuint (halves->len, ==, 2);
  g_assert_cmpuint (columns->len, ==, 3);
  for (i = 0; i < G_N_ELEMENTS (wrong); i++)
    {
      GError *errors[6] = { NULL };

      g_assert_null (gtorch_tensor_tensor_split (two, wrong[i], 0, &errors[0]));
      g_assert_null (gtorch_tensor_chunk (none, wrong[i], 0, &errors[1]));
      g_assert_null (gtorch_tensor_unsafe_chunk (none, wrong[i], 0, &errors[2]));
      g_assert_null (gtorch_tensor_hsplit (none, wrong[i], &errors[3]));
      g_assert_null (gtorch_tensor_vsplit (none, wrong[i], &errors[4]));
      g_assert_null (gtorch_tensor_dsplit (none, wrong[i], &errors[5]));
      for (k = 0; k < G_N_ELEMENTS (errors); k++)
        {
          g_assert_error (errors[k], GTORCH_ERROR, GTORCH_ERROR_INVALID);
          g_clear_error (&errors[k]);
        }
    }
}

static void
unneeded_copies_return_the_tensor (void)
{
  g_autoptr (GTorchTensor) x = zeros (2, 3);
  g_autoptr (GTorchTensor) a = gtorch_tensor_contiguous (x, NULL);
  g_autoptr (GTorchTensor) b = gtorch_tensor_to (x, GTORCH_DTYPE_FLOAT32, NULL, FALSE, FALSE, NULL);
  g_autoptr (GTorchTensor) c = gtorch_tensor_to (x, GTORCH_DTYPE_NONE, NULL, FALSE, TRUE, NULL);
  g_autoptr (GTorchTensor) d = gtorch_tensor_to_device (x, test_device (), FALSE, NULL);

  g_assert_true (a == x && b == x && d == x);
  g_assert_false (c == x || gtorch_tensor_shares_storage (c, x));
}

static void
shapes_that_do_not_fit_are_errors (void)
{
  g_autoptr (GTorchTensor) x = zeros (2, 3);
  g_autoptr (GTorchTensor) y = zeros (3, 3);
  g_autoptr (GTorchTensor) scalar = gtorch_scalar_tensor (1, 0, NULL, NULL);
  GTorchTensor *both[] = { x, y }, *scalars[] = { scalar };
  g_autoptr (GError) error = NULL;

  assert_message (gtorch_cat (both, 2, 1, &error), &error, GTORCH_ERROR_SHAPE,
                  "cat: tensor 1 of shape [3, 3] does not fit one of shape [2, 3]: all dimensions "
                  "but dim 1 must be the same");
  assert_message (gtorch_cat (scalars, 1, 0, &error), &error, GTORCH_ERROR_SHAPE,
                  "cat: tensor 0 has no dimensions and cannot be joined: use stack");
  assert_message (gtorch_cat (NULL, 0, 0, &error), &error, GTORCH_ERROR_INVALID,
                  "cat: the list of tensors is empty");
  assert_message (gtorch_stack (both, 2, 0, &error), &error, GTORCH_ERROR_SHAPE,
                  "stack: tensor 1 has shape [3, 3], the first one [2, 3]: all must be the same");
  assert_message (gtorch_tensor_split_with_sizes (x, GTORCH_SHAPE (1, 3), 0, &error), &error,
                  GTORCH_ERROR_INVALID,
                  "split_with_sizes: sizes [1, 3] do not make up dimension 0 of shape [2, 3]");
  assert_message (gtorch_tensor_as_strided (x, GTORCH_SHAPE (4), GTORCH_SHAPE (2), 0, &error),
                  &error, GTORCH_ERROR_INDEX,
                  "as_strided: size [4], stride [2] and offset 0 reach beyond the storage of 6 "
                  "elements");
  assert_message (gtorch_tensor_as_strided (x, GTORCH_SHAPE (2), GTORCH_SHAPE (G_MAXINT64), 1,
                                            &error),
                  &error, GTORCH_ERROR_INDEX,
                  "as_strided: size [2], stride [9223372036854775807] and offset 1 reach "
                  "beyond the storage of 6 elements");
  assert_message (gtorch_tensor_repeat (x, GTORCH_SHAPE (G_MAXINT64, 1), &error), &error,
                  GTORCH_ERROR_SHAPE,
                  "repeat: repeats [9223372036854775807, 1] of shape [2, 3] are negative or too "
                  "many");
}

static void
impossible_new_tensors_are_errors (void)
{
  g_autoptr (GError) error = NULL;

  assert_message (gtorch_zeros (GTORCH_SHAPE (2, -1), 0, NULL, &error), &error, GTORCH_ERROR_SHAPE,
                  "zeros: shape [2, -1] has a negative dimension");
  assert_message (gtorch_ones (GTORCH_SHAPE (G_MAXINT64, 4), 0, NULL, &error), &error,
                  GTORCH_ERROR_SHAPE,
                  "ones: the size of shape [9223372036854775807, 4] overflows 64 bits");
  assert_message (gtorch_arange (0, 1, 0, 0, NULL, &error), &error, GTORCH_ERROR_INVALID,
                  "arange: there is no finite range from 0 to 1 in steps of 0");
  assert_message (gtorch_empty (GTORCH_SHAPE (2), 77, NULL, &error), &error, GTORCH_ERROR_DTYPE,
                  "empty: 77 is not a dtype");
  assert_message (gtorch_tril_indices (G_MAXINT64 / 8, 1, 0, NULL, &error), &error,
                  GTORCH_ERROR_SHAPE,
                  "tril_indices: a matrix of shape [1152921504606846975, 1] is "
                  "too large");
}

static void
copies_convert_and_broadcast (void)
{
  g_autoptr (GTorchTensor) x = gtorch_zeros (GTORCH_SHAPE (2, 3), GTORCH_DTYPE_INT8, NULL, NULL);
  g_autoptr (GTorchTensor) columns = gtorch_tensor_t (x, NULL);
  g_autoptr (GTorchTensor) row = gtorch_linspace (-1.5, 2.5, 2, GTORCH_DTYPE_FLOAT64, NULL, NULL);
  g_autoptr (GTorchTensor) exact = gtorch_full_int (NULL, 0, G_MAXINT64, 0, NULL, NULL);
  g_autoptr (GError) error = NULL;
  guint i;

  g_assert_true (gtorch_tensor_copy_inplace (columns, row, FALSE, &error) == columns);
  g_assert_no_error (error);
  for (i = 0; i < 6; i++)
    g_assert_cmpfloat (at (x, i), ==, i < 3 ? -1 : 2);
  g_assert_cmpint (gtorch_tensor_item_int (exact, NULL), ==, G_MAXINT64);
  g_assert_null (gtorch_tensor_copy_inplace (x, row, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
}

/* Covers every path of the copy: rows, tiles, converted and broadcast operands of sizes that are no
 * multiples. */
static void
large_copies_agree_with_elements (void)
{
  static const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_UINT8,
                                        GTORCH_DTYPE_FLOAT16, GTORCH_DTYPE_COMPLEX128 };
  static const gint64 orders[][3] = { { 0, 1, 2 }, { 1, 0, 2 }, { 0, 2, 1 },
                                      { 2, 1, 0 }, { 2, 0, 1 }, { 1, 2, 0 } };
  guint d, o;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    for (o = 0; o < G_N_ELEMENTS (orders); o++)
      {
        g_autoptr (GTorchTensor) host =
            gtorch_empty (GTORCH_SHAPE (5, 67, 131), dtypes[d], gtorch_device_cpu (), NULL);
        g_autoptr (GTorchTensor) x = NULL;
        g_autoptr (GTorchTensor) view = NULL;
        g_autoptr (GTorchTensor) copy = NULL;
        gint64 i;

        for (i = 0; i < host->impl->numel; i++)
          element_set (host->impl, i, i % 251);
        x = gtorch_tensor_to_device (host, test_device (), FALSE, NULL);
        view = gtorch_tensor_permute (x, orders[o], 3, NULL);
        copy = gtorch_tensor_clone (view, NULL);
        for (i = 0; i < x->impl->numel; i++)
          if (element_get (copy->impl, i) != element_get (view->impl, i))
            g_error ("element %" G_GINT64_FORMAT " of order %u, dtype %u", i, o, dtypes[d]);
      }
}

/* Random blocks of one tensor with equal strides: blocks without shared elements may be added, others
 * only if they are identical. */
static void
disjoint_views_may_be_operands (void)
{
  g_autoptr (GTorchTensor) x =
      gtorch_zeros (GTORCH_SHAPE (6, 8, 9), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GRand) rand = g_rand_new_with_seed (5);
  guint round, n_apart = 0, n_met = 0;

  for (round = 0; round < 4000; round++)
    {
      GTorchTensor *sides[2] = { g_object_ref (x), g_object_ref (x) };
      g_autoptr (GError) error = NULL;
      gint64 begin[2][3], size[3], step[3];
      gboolean meet = TRUE, same = TRUE;
      guint side, dim;

      for (dim = 0; dim < 3; dim++)
        {
          gint64 length = x->impl->shape[dim];

          step[dim] = g_rand_int_range (rand, 1, 4);
          size[dim] = g_rand_int_range (rand, 1, (length - 1) / step[dim] + 2);
          for (side = 0; side < 2; side++)
            {
              GTorchTensor *part;
              gint64 last = length - (size[dim] - 1) * step[dim];

              begin[side][dim] = g_rand_int_range (rand, 0, last);
              part = gtorch_tensor_slice (sides[side], dim, begin[side][dim],
                                          begin[side][dim] + (size[dim] - 1) * step[dim] + 1,
                                          step[dim], NULL);
              g_object_unref (sides[side]);
              sides[side] = part;
            }
        }
      for (dim = 0; dim < 3; dim++)
        {
          gint64 apart = ABS (begin[0][dim] - begin[1][dim]);

          same = same && apart == 0;
          meet = meet && apart % step[dim] == 0 && apart / step[dim] < size[dim];
        }
      n_apart += !meet;
      n_met += meet && !same;
      gtorch_tensor_add_inplace (sides[0], sides[1], 1, &error);
      if (meet && !same)
        {
          g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
          g_assert_nonnull (strstr (error->message, "overlaps the input"));
        }
      else
        g_assert_no_error (error);
      g_object_unref (sides[0]);
      g_object_unref (sides[1]);
    }
  g_assert_cmpuint (n_apart, >, 500);
  g_assert_cmpuint (n_met, >, 200);
}

static void
every_second_element_may_be_written_from_the_others (void)
{
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (4, 10), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) even = gtorch_tensor_slice (x, 1, 0, 10, 2, NULL);
  g_autoptr (GTorchTensor) odd = gtorch_tensor_slice (x, 1, 1, 10, 2, NULL);
  g_autoptr (GTorchTensor) column = gtorch_tensor_slice (x, 1, 9, 10, 1, NULL);
  g_autoptr (GTorchTensor) repeated = gtorch_tensor_expand (column, GTORCH_SHAPE (4, 4), NULL);
  g_autoptr (GTorchTensor) square = gtorch_tensor_slice (x, 1, 0, 4, 1, NULL);
  g_autoptr (GTorchTensor) mirrored = gtorch_tensor_transpose (square, 0, 1, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_nonnull (gtorch_tensor_add_inplace (even, odd, 2, &error));
  g_assert_cmpfloat (at (x, 0), ==, 3);
  g_assert_cmpfloat (at (x, 1), ==, 1);
  g_assert_nonnull (gtorch_tensor_add_inplace (square, column, 1, &error)); /* broadcast */
  g_assert_cmpfloat (at (x, 0), ==, 4);
  g_assert_cmpfloat (at (x, 1), ==, 2);
  g_assert_nonnull (gtorch_tensor_add_inplace (square, repeated, 1, &error));
  g_assert_cmpfloat (at (x, 0), ==, 5);
  g_assert_null (gtorch_tensor_add_inplace (square, mirrored, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/view/parts_share_memory", parts_share_memory);
  g_test_add_func ("/GTorch/view/lists_of_parts_are_bounded", lists_of_parts_are_bounded);
  g_test_add_func ("/GTorch/view/unneeded_copies_return_the_tensor",
                   unneeded_copies_return_the_tensor);
  g_test_add_func ("/GTorch/view/shapes_that_do_not_fit_are_errors",
                   shapes_that_do_not_fit_are_errors);
  g_test_add_func ("/GTorch/view/impossible_new_tensors_are_errors",
                   impossible_new_tensors_are_errors);
  g_test_add_func ("/GTorch/view/copies_convert_and_broadcast", copies_convert_and_broadcast);
  g_test_add_func ("/GTorch/view/large_copies_agree_with_elements",
                   large_copies_agree_with_elements);
  g_test_add_func ("/GTorch/view/disjoint_views_may_be_operands", disjoint_views_may_be_operands);
  g_test_add_func ("/GTorch/view/every_second_element_may_be_written_from_the_others",
                   every_second_element_may_be_written_from_the_others);
  return g_test_run ();
}
