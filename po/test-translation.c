/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Messages reach the user in en@test, where each stands in double brackets. Arguments: the catalogue. */

#include "config.h"
#include "gtorch-build-config.h"

#include <glib/gstdio.h>
#include <gtorch/gtorch.h>
#include <libintl.h>
#include <locale.h>
#include <string.h>
#include <unistd.h>

/* A path like /tmp/…/en@test/LC_MESSAGES holds the catalogue where gettext looks for it. */
static void
install_catalogue (const gchar *catalogue, const gchar *folder)
{
  g_autofree gchar *messages = g_build_filename (folder, "en@test", "LC_MESSAGES", NULL);
  g_autofree gchar *target = g_build_filename (messages, GETTEXT_PACKAGE ".mo", NULL);
  g_autofree gchar *contents = NULL;
  g_autoptr (GError) error = NULL;
  gsize length;

  g_assert_cmpint (g_mkdir_with_parents (messages, 0700), ==, 0);
  g_file_get_contents (catalogue, &contents, &length, &error);
  g_assert_no_error (error);
  g_file_set_contents (target, contents, (gssize) length, &error);
  g_assert_no_error (error);
}

static void
remove_catalogue (const gchar *folder)
{
  g_autofree gchar *language = g_build_filename (folder, "en@test", NULL);
  g_autofree gchar *messages = g_build_filename (language, "LC_MESSAGES", NULL);
  g_autofree gchar *target = g_build_filename (messages, GETTEXT_PACKAGE ".mo", NULL);

  g_remove (target);
  g_rmdir (messages);
  g_rmdir (language);
  g_rmdir (folder);
}

static void
test_translation_error_is_translated (gconstpointer catalogue)
{
  static const gint64 shape[] = { -1 };
  g_autofree gchar *folder = g_dir_make_tmp ("gtorch-po-XXXXXX", NULL);
  g_autoptr (GTorchTensor) tensor = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_nonnull (folder);
  install_catalogue (catalogue, folder);
  bindtextdomain (GETTEXT_PACKAGE, folder);

  tensor = gtorch_zeros (shape, 1, GTORCH_DTYPE_FLOAT32, NULL, &error);
  remove_catalogue (folder);

  g_assert_null (tensor);
  g_assert_nonnull (error);
  g_test_message ("%s", error->message);
  g_assert_nonnull (strstr (error->message, "[["));
  g_assert_nonnull (strstr (error->message, "]]"));
}

static void
test_translation_folder_is_bound_on_loading (void)
{
  g_assert_cmpstr (bindtextdomain (GETTEXT_PACKAGE, NULL), ==, GTORCH_LOCALEDIR);
}

/* In C and C.UTF-8 gettext translates nothing, whatever LANGUAGE says, and a small machine has no other
 * locale. With glibc, C.UTF-8 under another name will do. */
static gboolean
enter_locale (void)
{
  g_autofree gchar *folder = g_dir_make_tmp ("gtorch-locale-XXXXXX", NULL);
  g_autofree gchar *locale = g_build_filename (folder, "en_US.UTF-8", NULL);
  gboolean entered;

  g_setenv ("LANGUAGE", "en@test", TRUE);
  g_setenv ("LOCPATH", folder, TRUE);
  entered =
      symlink ("/usr/lib/locale/C.utf8", locale) == 0 && setlocale (LC_ALL, "en_US.UTF-8") != NULL;
  g_unlink (locale);
  g_rmdir (folder);
  return entered || setlocale (LC_ALL, "en_US.UTF-8") != NULL;
}

int
main (int argc, char *argv[])
{
  if (!enter_locale ())
    {
      g_print ("1..0 # SKIP no locale in which messages are translated\n");
      return 0;
    }
  g_test_init (&argc, &argv, NULL);
  g_assert_cmpint (argc, ==, 2);

  g_test_add_func ("/GTorch/Translation/folder_is_bound_on_loading",
                   test_translation_folder_is_bound_on_loading);
  g_test_add_data_func ("/GTorch/Translation/error_is_translated", argv[1],
                        test_translation_error_is_translated);
  return g_test_run ();
}
