/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <string.h>

#include <gtorch/gtorch.h>

static void
names_are_found_again (void)
{
  GTorchDType dtype;

  for (dtype = GTORCH_DTYPE_FLOAT32; dtype <= GTORCH_DTYPE_COMPLEX128; dtype++)
    {
      g_autoptr (GError) error = NULL;

      g_assert_cmpint (gtorch_dtype_from_name (gtorch_dtype_get_name (dtype), &error), ==, dtype);
      g_assert_no_error (error);
      g_assert_cmpuint (gtorch_dtype_get_size (dtype), >, 0);
    }
}

static void
unknown_name_is_an_error (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_cmpint (gtorch_dtype_from_name ("float7", &error), ==, GTORCH_DTYPE_NONE);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
  g_assert_nonnull (strstr (error->message, "float7"));
}

/* PyTorch's table, row by row in the order of the enum. */
static void
promotion_follows_pytorch (void)
{
  static const guint8 table[12][12] = {
    { 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 11, 12 },
    { 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 12, 12 },
    { 1, 2, 3, 1, 3, 3, 3, 3, 3, 3, 11, 12 },
    { 1, 2, 1, 4, 4, 4, 4, 4, 4, 4, 11, 12 },
    { 1, 2, 3, 4, 5, 7, 7, 8, 9, 5, 11, 12 },
    { 1, 2, 3, 4, 7, 6, 7, 8, 9, 6, 11, 12 },
    { 1, 2, 3, 4, 7, 7, 7, 8, 9, 7, 11, 12 },
    { 1, 2, 3, 4, 8, 8, 8, 8, 9, 8, 11, 12 },
    { 1, 2, 3, 4, 9, 9, 9, 9, 9, 9, 11, 12 },
    { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 },
    { 11, 12, 11, 11, 11, 11, 11, 11, 11, 11, 11, 12 },
    { 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12 },
  };
  guint i, j;

  for (i = 0; i < 12; i++)
    for (j = 0; j < 12; j++)
      g_assert_cmpint (gtorch_dtype_promote (i + 1, j + 1), ==, table[i][j]);
}

/* Messages are valid UTF-8, whatever bytes were passed and wherever they were truncated. */
static void
long_and_broken_names_are_shown_as_text (void)
{
  guint i;

  for (i = 50; i < 70; i++)
    {
      g_autofree gchar *before = g_strnfill (i, 'x');
      g_autofree gchar *wide = g_strconcat (before, "äöü€𝄞", NULL);
      g_autofree gchar *broken = g_strconcat (before, "\xe4\xbf\xbf\xbf\xbf\xbf\xbf", NULL);
      const gchar *names[] = { wide, broken };
      guint j;

      for (j = 0; j < G_N_ELEMENTS (names); j++)
        {
          g_autoptr (GError) error = NULL;

          gtorch_dtype_from_name (names[j], &error);
          g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
          g_assert_true (g_utf8_validate (error->message, -1, NULL));
          g_assert_cmpuint (strlen (error->message), <, 120);
          g_assert_true (i + j > 60 || strstr (error->message, before) != NULL);
          g_assert_true ((strstr (error->message, "…") != NULL) == (strlen (names[j]) > 60));
        }
    }
}

static void
default_dtype_must_be_floating_point (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_set_default_dtype (GTORCH_DTYPE_INT32, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE);
  g_assert_true (gtorch_set_default_dtype (GTORCH_DTYPE_FLOAT64, NULL));
  g_assert_cmpint (gtorch_get_default_dtype (), ==, GTORCH_DTYPE_FLOAT64);
  g_assert_true (gtorch_set_default_dtype (GTORCH_DTYPE_FLOAT32, NULL));
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/dtype/names_are_found_again", names_are_found_again);
  g_test_add_func ("/GTorch/dtype/unknown_name_is_an_error", unknown_name_is_an_error);
  g_test_add_func ("/GTorch/dtype/long_and_broken_names_are_shown_as_text",
                   long_and_broken_names_are_shown_as_text);
  g_test_add_func ("/GTorch/dtype/promotion_follows_pytorch", promotion_follows_pytorch);
  g_test_add_func ("/GTorch/dtype/default_must_be_floating_point",
                   default_dtype_must_be_floating_point);
  return g_test_run ();
}
