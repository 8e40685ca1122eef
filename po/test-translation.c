/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Messages reach the user in en@test, where each stands in double brackets, and in German. Arguments: the
 * catalogues of both. */

#include "config.h"
#include "gtorch-build-config.h"

#include <glib/gstdio.h>
#include <gtorch/gtorch.h>
#include <libintl.h>
#include <locale.h>
#include <string.h>
#include <unistd.h>

typedef struct
{
  const gchar *language;
  const gchar *catalogue;
  /* what the library says of a shape, and of an index: a number whose format differs between machines */
  const gchar *shape, *index;
} Language;

static Language test_language = {
  "en@test",
  NULL,
  "zeros: [[shape [-1] has a negative dimension]]",
  "select: [[index 7 is out of range for dimension 0 of shape [2]]]",
};

static Language german = {
  "de",
  NULL,
  "zeros: die Form [-1] hat eine negative Dimension",
  "select: Index 7 liegt außerhalb des Bereichs der Dimension 0 der Form [2]",
};

/* A path like /tmp/…/de/LC_MESSAGES holds the catalogue where gettext looks for it. */
static void
install_catalogue (const Language *self, const gchar *folder)
{
  g_autofree gchar *messages = g_build_filename (folder, self->language, "LC_MESSAGES", NULL);
  g_autofree gchar *target = g_build_filename (messages, GETTEXT_PACKAGE ".mo", NULL);
  g_autofree gchar *contents = NULL;
  g_autoptr (GError) error = NULL;
  gsize length;

  g_assert_cmpint (g_mkdir_with_parents (messages, 0700), ==, 0);
  g_file_get_contents (self->catalogue, &contents, &length, &error);
  g_assert_no_error (error);
  g_file_set_contents (target, contents, (gssize) length, &error);
  g_assert_no_error (error);
}

static void
remove_catalogue (const Language *self, const gchar *folder)
{
  g_autofree gchar *language = g_build_filename (folder, self->language, NULL);
  g_autofree gchar *messages = g_build_filename (language, "LC_MESSAGES", NULL);
  g_autofree gchar *target = g_build_filename (messages, GETTEXT_PACKAGE ".mo", NULL);

  g_remove (target);
  g_rmdir (messages);
  g_rmdir (language);
  g_rmdir (folder);
}

static void
test_translation_errors_are_translated (gconstpointer data)
{
  static const gint64 negative[] = { -1 }, two[] = { 2 };
  const Language *self = data;
  g_autofree gchar *folder = g_dir_make_tmp ("gtorch-po-XXXXXX", NULL);
  g_autoptr (GTorchTensor) tensor = NULL;
  GTorchTensor *failed[2];
  GError *errors[2] = { NULL };

  g_assert_nonnull (folder);
  tensor = gtorch_zeros (two, 1, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  install_catalogue (self, folder);
  g_setenv ("LANGUAGE", self->language, TRUE);
  bindtextdomain (GETTEXT_PACKAGE, folder);

  failed[0] = gtorch_zeros (negative, 1, GTORCH_DTYPE_FLOAT32, NULL, &errors[0]);
  failed[1] = gtorch_tensor_select (tensor, 0, 7, &errors[1]);
  remove_catalogue (self, folder);

  g_assert_null (failed[0]);
  g_assert_error (errors[0], GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_cmpstr (errors[0]->message, ==, self->shape);
  g_assert_null (failed[1]);
  g_assert_error (errors[1], GTORCH_ERROR, GTORCH_ERROR_INDEX);
  g_assert_cmpstr (errors[1]->message, ==, self->index);
  g_error_free (errors[0]);
  g_error_free (errors[1]);
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
  g_assert_cmpint (argc, ==, 3);
  test_language.catalogue = argv[1];
  german.catalogue = argv[2];

  g_test_add_func ("/GTorch/Translation/folder_is_bound_on_loading",
                   test_translation_folder_is_bound_on_loading);
  g_test_add_data_func ("/GTorch/Translation/errors_are_translated", &test_language,
                        test_translation_errors_are_translated);
  g_test_add_data_func ("/GTorch/Translation/errors_are_translated_into_german", &german,
                        test_translation_errors_are_translated);
  return g_test_run ();
}
