/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Tensors in several files with an index, by one process; those of groups are tested in Python. */

#include "config.h"

#include <glib/gstdio.h>
#include <gtorch/gtorch.h>
#include <string.h>

static GFile *
make_index (gchar **folder)
{
  g_autofree gchar *path = NULL;

  *folder = g_dir_make_tmp ("gtorch-XXXXXX", NULL);
  g_assert_nonnull (*folder);
  path = g_build_filename (*folder, "model.safetensors.index.json", NULL);
  return g_file_new_for_path (path);
}

static guint
remove_all (const gchar *folder)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  const gchar *name;
  guint n = 0;

  while ((name = g_dir_read_name (dir)) != NULL)
    {
      g_autofree gchar *path = g_build_filename (folder, name, NULL);

      g_assert_cmpint (g_unlink (path), ==, 0);
      n++;
    }
  g_assert_cmpint (g_rmdir (folder), ==, 0);
  return n;
}

static GTorchTensor *
numbers (gint64 n)
{
  return gtorch_ones (&n, 1, GTORCH_DTYPE_FLOAT32, NULL, NULL);
}

static const gchar *const names[] = { "a", "b", "c", NULL };
static const gchar *const metadata[] = { "who", "“x”", NULL };

static void
save (GFile *index, gint64 n)
{
  g_autoptr (GTorchTensor) a = numbers (n), b = numbers (n + 1), c = numbers (1);
  GTorchTensor *tensors[] = { a, b, c };
  g_autoptr (GError) error = NULL;

  g_assert_true (
      gtorch_safetensors_save_index (index, names, tensors, 3, metadata, 16, NULL, NULL, &error));
  g_assert_no_error (error);
}

static void
test_sharded_file_tensors_come_back (void)
{
  g_autofree gchar *folder = NULL;
  g_autoptr (GFile) index = make_index (&folder);
  g_autoptr (GPtrArray) tensors = NULL, some = NULL;
  g_auto (GStrv) found = NULL;
  g_auto (GStrv) texts = NULL;
  g_autoptr (GError) error = NULL;
  guint i;

  save (index, 2);
  save (index, 3); /* in place of the first */
  tensors = gtorch_safetensors_load_index (index, NULL, FALSE, NULL, &found, &texts, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (tensors->len, ==, 3);
  for (i = 0; i < 3; i++)
    g_assert_cmpint (gtorch_tensor_get_numel (tensors->pdata[i]), ==,
                     found[i][0] == 'a'   ? 3
                     : found[i][0] == 'b' ? 4
                                          : 1);
  g_assert_cmpuint (g_strv_length (texts), ==, 4);
  some = gtorch_safetensors_load_index (index, &names[2], TRUE, NULL, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (some->len, ==, 1);
  g_clear_pointer (&tensors, g_ptr_array_unref);
  g_clear_pointer (&some, g_ptr_array_unref);
  g_assert_cmpuint (remove_all (folder), ==, 4); /* the index and three files: none of the first */
}

static void
test_sharded_file_what_is_missing_is_named (void)
{
  const gchar *const wanted[] = { "a", "z", NULL };
  g_autofree gchar *folder = NULL;
  g_autoptr (GFile) index = make_index (&folder);
  g_autoptr (GTorchTensor) a = numbers (1);
  g_autoptr (GError) error = NULL;

  save (index, 2);
  g_assert_null (
      gtorch_safetensors_load_index (index, wanted, FALSE, NULL, NULL, NULL, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "safetensors_index: there is no tensor “z” in the index");
  g_clear_error (&error);
  g_assert_false (
      gtorch_safetensors_save_index (index, names, &a, 1, NULL, 16, NULL, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "safetensors_index: there are 3 names for 1 tensors");
  remove_all (folder);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/sharded-file/tensors_come_back", test_sharded_file_tensors_come_back);
  g_test_add_func ("/GTorch/sharded-file/what_is_missing_is_named",
                   test_sharded_file_what_is_missing_is_named);
  return g_test_run ();
}
