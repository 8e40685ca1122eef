/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <gtorch/gtorch.h>

static void
values_are_copied (void)
{
  gint64 values[] = { 3, -2, G_MAXINT64 };
  g_autoptr (GTorchSize) size = gtorch_size_new (values, 3);
  const gint64 *kept;
  gsize n;

  values[0] = 7;
  kept = gtorch_size_get_values (size, &n);
  g_assert_cmpuint (n, ==, 3);
  g_assert_cmpuint (gtorch_size_get_length (size), ==, 3);
  g_assert_cmpint (kept[0], ==, 3);
  g_assert_cmpint (kept[1], ==, -2);
  g_assert_cmpint (kept[2], ==, G_MAXINT64);
}

static void
texts_are_tuples (void)
{
  g_autoptr (GTorchSize) none = gtorch_size_new (NULL, 0);
  g_autofree gchar *empty = gtorch_size_to_string (none);
  g_autofree gchar *one = gtorch_size_to_string (GTORCH_SIZE (3));
  g_autofree gchar *two = gtorch_size_to_string (GTORCH_SIZE (3, -2));

  g_assert_cmpstr (empty, ==, "()");
  g_assert_cmpstr (one, ==, "(3,)");
  g_assert_cmpstr (two, ==, "(3, -2)");
}

static void
equal_ones_have_the_same_numbers (void)
{
  g_autoptr (GTorchSize) size = gtorch_size_new (GTORCH_SHAPE (3, 2));

  g_assert_true (gtorch_size_equal (size, GTORCH_SIZE (3, 2)));
  g_assert_true (gtorch_size_equal (GTORCH_SIZE (3, 2), size));
  g_assert_false (gtorch_size_equal (size, GTORCH_SIZE (2, 3)));
  g_assert_false (gtorch_size_equal (size, GTORCH_SIZE (3, 2, 1)));
  g_assert_false (gtorch_size_equal (size, GTORCH_SIZE (3)));
}

/* The size of the macro lives on the stack: objects that keep it have a copy. */
static void
references_outlive_the_macro (void)
{
  GTorchSize *kept = NULL, *again;
  GTorchSize *copy;

  {
    GTorchSize *literal = GTORCH_SIZE (4, 5);

    kept = gtorch_size_ref (literal);
    g_assert_true (kept != literal);
    gtorch_size_unref (literal); /* has no effect */
    g_assert_true (gtorch_size_equal (kept, literal));
  }
  again = gtorch_size_ref (kept);
  g_assert_true (again == kept);
  gtorch_size_unref (kept);
  g_assert_true (gtorch_size_equal (again, GTORCH_SIZE (4, 5)));
  copy = g_boxed_copy (GTORCH_TYPE_SIZE, again);
  gtorch_size_unref (again);
  g_assert_true (gtorch_size_equal (copy, GTORCH_SIZE (4, 5)));
  g_boxed_free (GTORCH_TYPE_SIZE, copy);
}

#define ADD(name) g_test_add_func ("/GTorch/Size/" #name, name)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (values_are_copied);
  ADD (texts_are_tuples);
  ADD (equal_ones_have_the_same_numbers);
  ADD (references_outlive_the_macro);
  return g_test_run ();
}
