/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <gtorch/gtorch.h>
#include <math.h>
#include <string.h>

#define assert_fails(expression, code, text)                    \
  G_STMT_START                                                  \
  {                                                             \
    g_autoptr (GError) error_ = NULL;                           \
    GError **error = &error_;                                   \
    g_assert_null (expression);                                 \
    g_assert_error (error_, GTORCH_ERROR, GTORCH_ERROR_##code); \
    g_assert_cmpstr (error_->message, ==, text);                \
  }                                                             \
  G_STMT_END

static void
doubles_make_every_dtype (void)
{
  const gdouble values[] = { 0, 1, 2, 3, 100, 127 };
  guint dtype;
  gsize i;

  for (dtype = GTORCH_DTYPE_FLOAT32; dtype < GTORCH_DTYPE_COMPLEX64; dtype++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) x =
          gtorch_tensor_new_from_doubles (values, 6, GTORCH_SHAPE (2, 3), dtype, NULL, &error);
      g_autofree gdouble *back = NULL;
      gsize n = 0;

      g_assert_no_error (error);
      g_assert_cmpint (gtorch_tensor_get_dtype (x), ==, dtype);
      back = gtorch_tensor_to_doubles (x, &n, &error);
      g_assert_no_error (error);
      g_assert_cmpuint (n, ==, 6);
      for (i = 0; i < 6; i++)
        g_assert_cmpfloat (back[i], ==, dtype == GTORCH_DTYPE_BOOL ? values[i] != 0 : values[i]);
    }
}

static void
complex_takes_parts_in_turns (void)
{
  const gdouble values[] = { 1, -2, 3, 0.5 };
  g_autoptr (GTorchTensor) x = gtorch_tensor_new_from_doubles (values, 4, GTORCH_SHAPE (2),
                                                               GTORCH_DTYPE_COMPLEX64, NULL, NULL);
  g_autoptr (GTorchTensor) last = gtorch_tensor_select (x, 0, 1, NULL);
  g_autofree gdouble *back = NULL;
  gdouble real, imaginary;
  gsize n = 0;

  back = gtorch_tensor_to_doubles (x, &n, NULL);
  g_assert_cmpmem (back, n * sizeof (gdouble), values, sizeof values);
  g_assert_true (gtorch_tensor_item_complex (last, &real, &imaginary, NULL));
  g_assert_cmpfloat (real, ==, 3);
  g_assert_cmpfloat (imaginary, ==, 0.5);
  assert_fails (gtorch_tensor_new_from_doubles (values, 3, GTORCH_SHAPE (2), GTORCH_DTYPE_COMPLEX64,
                                                NULL, error),
                SHAPE,
                "from_doubles: 3 values do not fill shape [2], which takes 2 real and imaginary "
                "parts");
}

static void
defaults_are_pytorchs (void)
{
  const gdouble one = 1;
  const gfloat half = 0.5;
  const gint64 two = 2;
  const gboolean yes = 42;
  g_autoptr (GTorchTensor) a =
      gtorch_tensor_new_from_doubles (&one, 1, NULL, 0, GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GTorchTensor) b =
      gtorch_tensor_new_from_floats (&half, 1, NULL, 0, GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GTorchTensor) c =
      gtorch_tensor_new_from_ints (&two, 1, NULL, 0, GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GTorchTensor) d = gtorch_tensor_new_from_bools (&yes, 1, NULL, 0, NULL, NULL);
  gboolean value = FALSE;

  g_assert_cmpint (gtorch_tensor_get_dtype (a), ==, GTORCH_DTYPE_FLOAT32);
  g_assert_cmpint (gtorch_tensor_get_dtype (b), ==, GTORCH_DTYPE_FLOAT32);
  g_assert_cmpint (gtorch_tensor_get_dtype (c), ==, GTORCH_DTYPE_INT64);
  g_assert_cmpint (gtorch_tensor_get_dtype (d), ==, GTORCH_DTYPE_BOOL);
  g_assert_cmpfloat (gtorch_tensor_item_double (b, NULL), ==, 0.5);
  g_assert_cmpint (gtorch_tensor_item_int (c, NULL), ==, 2);
  g_assert_true (gtorch_tensor_item_bool (d, &value, NULL));
  g_assert_true (value);
  g_assert_cmpint (gtorch_tensor_item_int (d, NULL), ==, 1);
}

static void
empty_tensors_need_no_values (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = gtorch_tensor_new_from_doubles (NULL, 0, GTORCH_SHAPE (2, 0, 3),
                                                               GTORCH_DTYPE_NONE, NULL, &error);

  g_assert_no_error (error);
  g_assert_cmpint (gtorch_tensor_get_numel (x), ==, 0);
}

static void
wrong_counts_are_errors (void)
{
  const gdouble values[] = { 1, 2, 3, 4, 5 };

  assert_fails (gtorch_tensor_new_from_doubles (values, 5, GTORCH_SHAPE (2, 3), GTORCH_DTYPE_NONE,
                                                NULL, error),
                SHAPE, "from_doubles: 5 values do not fill shape [2, 3], which takes 6");
  assert_fails (gtorch_tensor_new_from_doubles (values, 5, NULL, 0, GTORCH_DTYPE_NONE, NULL, error),
                SHAPE, "from_doubles: 5 values do not fill shape [], which takes 1");
  assert_fails (gtorch_tensor_new_from_doubles (values, 5, NULL, 1, GTORCH_DTYPE_NONE, NULL, error),
                SHAPE, "from_doubles: no shape was given");
  assert_fails (gtorch_tensor_new_from_doubles (values, 5, GTORCH_SHAPE (-5), GTORCH_DTYPE_NONE,
                                                NULL, error),
                SHAPE, "from_doubles: shape [-5] has a negative dimension");
  assert_fails (gtorch_tensor_new_from_doubles (values, 5, GTORCH_SHAPE (5), 77, NULL, error),
                DTYPE, "from_doubles: 77 is not a dtype");
}

static void
values_out_of_range_are_errors (void)
{
  const gint64 ints[] = { -128, 127, -1, 255, 256, G_MAXINT64, G_MININT64 };
  const gdouble doubles[] = { NAN, 127.9, -128.9, 128, 0x1p63, -0x1p63 };
  g_autoptr (GError) none = NULL;
  g_autoptr (GTorchTensor) a =
      gtorch_tensor_new_from_ints (ints, 2, GTORCH_SHAPE (2), GTORCH_DTYPE_INT8, NULL, &none);
  g_autoptr (GTorchTensor) b = gtorch_tensor_new_from_doubles (doubles + 1, 2, GTORCH_SHAPE (2),
                                                               GTORCH_DTYPE_INT8, NULL, &none);
  g_autoptr (GTorchTensor) c =
      gtorch_tensor_new_from_ints (ints, 7, GTORCH_SHAPE (7), GTORCH_DTYPE_INT64, NULL, &none);
  g_autoptr (GTorchTensor) d = gtorch_tensor_new_from_doubles (doubles + 5, 1, GTORCH_SHAPE (1),
                                                               GTORCH_DTYPE_INT64, NULL, &none);
  g_autofree gint64 *back = NULL;
  gsize n = 0;

  g_assert_no_error (none);
  back = gtorch_tensor_to_ints (c, &n, NULL);
  g_assert_cmpmem (back, n * sizeof (gint64), ints, sizeof ints);
  g_assert_cmpint (gtorch_tensor_item_int (d, NULL), ==, G_MININT64);
  assert_fails (gtorch_tensor_new_from_ints (ints, 4, GTORCH_SHAPE (4), GTORCH_DTYPE_INT8, NULL,
                                             error),
                INVALID, "from_ints: value 255 at 3 does not fit into int8");
  assert_fails (gtorch_tensor_new_from_ints (ints, 4, GTORCH_SHAPE (4), GTORCH_DTYPE_UINT8, NULL,
                                             error),
                INVALID, "from_ints: value -128 at 0 does not fit into uint8");
  assert_fails (gtorch_tensor_new_from_doubles (doubles, 1, GTORCH_SHAPE (1), GTORCH_DTYPE_INT32,
                                                NULL, error),
                INVALID, "from_doubles: value nan at 0 does not fit into int32");
  assert_fails (gtorch_tensor_new_from_doubles (doubles + 3, 1, GTORCH_SHAPE (1), GTORCH_DTYPE_INT8,
                                                NULL, error),
                INVALID, "from_doubles: value 128 at 0 does not fit into int8");
  assert_fails (gtorch_tensor_new_from_doubles (doubles + 4, 1, GTORCH_SHAPE (1),
                                                GTORCH_DTYPE_INT64, NULL, error),
                INVALID, "from_doubles: value 9.22337e+18 at 0 does not fit into int64");
}

static void
bytes_are_shared_and_kept (void)
{
  gfloat *values = g_new (gfloat, 6);
  GBytes *bytes = g_bytes_new_take (values, 6 * sizeof (gfloat));
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = NULL;
  g_autoptr (GTorchTensor) y = NULL;
  guint i;

  for (i = 0; i < 6; i++)
    values[i] = i;
  x = gtorch_tensor_new_from_bytes (bytes, GTORCH_DTYPE_FLOAT32, GTORCH_SHAPE (2, 3), &error);
  g_assert_no_error (error);
  g_assert_cmpuint (gtorch_tensor_get_data_ptr (x), ==, (gsize) values);
  g_bytes_unref (bytes);
  y = gtorch_tensor_select (x, 0, 1, NULL);
  g_clear_object (&x);
  g_assert_cmpuint (gtorch_tensor_get_data_ptr (y), ==, (gsize) (values + 3));
}

static void
bytes_are_not_written_to (void)
{
  static const gint32 values[] = { 1, 2, 3 };
  g_autoptr (GBytes) bytes = g_bytes_new_static (values, sizeof values);
  g_autoptr (GTorchTensor) x =
      gtorch_tensor_new_from_bytes (bytes, GTORCH_DTYPE_INT32, GTORCH_SHAPE (3), NULL);
  g_autoptr (GTorchTensor) view = gtorch_tensor_slice (x, 0, 1, 3, 1, NULL);
  g_autoptr (GTorchTensor) copy = gtorch_tensor_clone (view, NULL);

  g_assert_true (gtorch_tensor_is_read_only (x));
  g_assert_true (gtorch_tensor_is_read_only (view));
  g_assert_false (gtorch_tensor_is_read_only (copy));
  assert_fails (gtorch_tensor_mul_inplace (x, x, error), INVALID,
                "mul: the memory of the tensor of shape [3] is read-only, since it is shared with "
                "its source: clone it before writing to it");
  assert_fails (gtorch_tensor_zero_inplace (view, error), INVALID,
                "zero: the memory of the tensor of shape [2] is read-only, since it is shared with "
                "its source: clone it before writing to it");
  g_assert_nonnull (gtorch_tensor_zero_inplace (copy, NULL));
  g_assert_cmpint (values[2], ==, 3);
}

static void
unaligned_bytes_are_copied (void)
{
  guint8 memory[17] = { 0 };
  const gdouble value = 2.5;
  g_autoptr (GBytes) whole = NULL;
  g_autoptr (GBytes) part = NULL;
  g_autoptr (GTorchTensor) x = NULL;

  memcpy (memory + 3, &value, sizeof value);
  whole = g_bytes_new (memory, sizeof memory);
  part = g_bytes_new_from_bytes (whole, 3, sizeof value);
  x = gtorch_tensor_new_from_bytes (part, GTORCH_DTYPE_FLOAT64, NULL, 0, NULL);
  g_assert_cmpuint (gtorch_tensor_get_data_ptr (x) % 8, ==, 0);
  g_assert_cmpfloat (gtorch_tensor_item_double (x, NULL), ==, 2.5);
  g_assert_false (gtorch_tensor_is_read_only (x));
}

static void
bytes_that_do_not_fit_are_errors (void)
{
  g_autoptr (GBytes) bytes = g_bytes_new_static ("\0\1\2\3\4", 5);

  assert_fails (gtorch_tensor_new_from_bytes (bytes, GTORCH_DTYPE_FLOAT32, GTORCH_SHAPE (1), error),
                SHAPE, "from_bytes: 5 bytes are not shape [1] of float32, which takes 4");
  assert_fails (gtorch_tensor_new_from_bytes (bytes, GTORCH_DTYPE_UINT8,
                                              GTORCH_SHAPE (G_MAXINT64, G_MAXINT64), error),
                SHAPE,
                "from_bytes: the size of shape [9223372036854775807, 9223372036854775807] "
                "overflows 64 bits");
  assert_fails (gtorch_tensor_new_from_bytes (bytes, GTORCH_DTYPE_BOOL, GTORCH_SHAPE (5), error),
                FORMAT, "from_bytes: byte 2 at 2 is not a bool, which is 0 or 1");
  assert_fails (gtorch_tensor_new_from_bytes (bytes, GTORCH_DTYPE_NONE, GTORCH_SHAPE (5), error),
                DTYPE, "from_bytes: 0 is not a dtype");
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
#define ADD(fact) g_test_add_func ("/GTorch/tensor-create/" #fact, fact)
  ADD (doubles_make_every_dtype);
  ADD (complex_takes_parts_in_turns);
  ADD (defaults_are_pytorchs);
  ADD (empty_tensors_need_no_values);
  ADD (wrong_counts_are_errors);
  ADD (values_out_of_range_are_errors);
  ADD (bytes_are_shared_and_kept);
  ADD (bytes_are_not_written_to);
  ADD (unaligned_bytes_are_copied);
  ADD (bytes_that_do_not_fit_are_errors);
  return g_test_run ();
}
