/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gstdio.h>
#include <gtorch/gtorch.h>
#include <string.h>

static const gchar *const texts[] = {
  "low low low low low lower lower newest newest newest newest newest newest widest widest "
  "widest",
  "aaaa aaaaaaa bananas", NULL
};

static void
assert_token (GTorchTokenizer *tokenizer, gint64 id, const gchar *expected)
{
  g_autofree gchar *token = gtorch_tokenizer_id_to_token (tokenizer, id);

  g_assert_cmpstr (token, ==, expected);
}

/* What trainers.BpeTrainer of the package `tokenizers` finds in the same texts. */
static void
test_finds_frequent_pairs (void)
{
  static const gchar *const special[] = { "<end>", NULL };
  static const gchar *const learnt[] = { "aa", "es",  "est",  "lo",   "low",
                                         "ew", "new", "Ġlow", "Ġnew", "Ġnewest" };
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTokenizer) tokenizer =
      gtorch_tokenizer_train_bpe (texts, 267, 2, special, FALSE, NULL, &error);

  g_assert_no_error (error);
  g_assert_cmpint (gtorch_tokenizer_get_vocab_size (tokenizer), ==, 267);
  assert_token (tokenizer, 0, "<end>");
  assert_token (tokenizer, 1, "!");
  for (guint i = 0; i < G_N_ELEMENTS (learnt); i++)
    assert_token (tokenizer, 257 + i, learnt[i]);
}

static void
test_any_text_comes_back (void)
{
  static const gchar text[] = "newest\n  😀 <end>\tÜ\x01";
  static const gchar *const special[] = { "<end>", NULL };
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTokenizer) tokenizer =
      gtorch_tokenizer_train_bpe (texts, 300, 2, special, FALSE, NULL, &error);
  g_autofree gint64 *ids = NULL;
  g_autofree gchar *decoded = NULL;
  g_autofree gchar *half = NULL;
  g_autoptr (GBytes) bytes = NULL;
  gint64 zero;
  gsize n;

  g_assert_no_error (error);
  ids = gtorch_tokenizer_encode (tokenizer, text, NULL, TRUE, &n, &error);
  g_assert_no_error (error);
  decoded = gtorch_tokenizer_decode (tokenizer, ids, n, FALSE, &error);
  g_assert_cmpstr (decoded, ==, text);
  /* half a character */
  g_free (g_steal_pointer (&ids));
  ids = gtorch_tokenizer_encode (tokenizer, "😀", NULL, TRUE, &n, &error);
  g_assert_cmpuint (n, ==, 4);
  half = gtorch_tokenizer_decode (tokenizer, ids, 3, FALSE, &error);
  g_assert_cmpstr (half, ==, "\357\277\275");
  bytes = gtorch_tokenizer_decode_bytes (tokenizer, ids, 3, FALSE, &error);
  g_assert_cmpmem (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes), "\xf0\x9f\x98", 3);
  zero = gtorch_tokenizer_token_to_id (tokenizer, "Ā");
  g_assert_null (gtorch_tokenizer_decode (tokenizer, &zero, 1, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
}

static void
test_refuses (void)
{
  static const gchar *const twice[] = { "a ", "a ", NULL }, *const wrong[] = { "\xff", NULL };
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_tokenizer_train_bpe (texts, 255, 2, NULL, FALSE, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "train_bpe: vocab_size 255 is not between the number of bytes and special "
                   "tokens, 256, and 4194304");
  g_clear_error (&error);
  g_assert_null (gtorch_tokenizer_train_bpe (texts, 300, 2, twice, FALSE, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_null (gtorch_tokenizer_train_bpe (wrong, 300, 2, NULL, FALSE, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_cancellable_cancel (cancellable);
  g_assert_null (gtorch_tokenizer_train_bpe (texts, 300, 2, NULL, FALSE, cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

static void
on_done (GObject *source, GAsyncResult *result, gpointer data)
{
  *(GAsyncResult **) data = g_object_ref (result);
}

static GAsyncResult *
wait_for (GAsyncResult **result)
{
  while (*result == NULL)
    g_main_context_iteration (NULL, TRUE);
  return *result;
}

static void
test_in_other_threads (void)
{
  g_autofree gchar *folder = g_dir_make_tmp ("gtorch-XXXXXX", NULL);
  g_autofree gchar *path = g_build_filename (folder, "tokenizer.json", NULL);
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (GFile) nowhere = g_file_get_child (file, "x.json");
  g_autoptr (GCancellable) cancelled = g_cancellable_new ();
  g_autoptr (GAsyncResult) trained = NULL;
  g_autoptr (GAsyncResult) saved = NULL;
  g_autoptr (GAsyncResult) lost = NULL;
  g_autoptr (GAsyncResult) ended = NULL;
  g_autoptr (GAsyncResult) loaded = NULL;
  g_autoptr (GTorchTokenizer) tokenizer = NULL;
  g_autoptr (GTorchTokenizer) again = NULL;
  g_autoptr (GBytes) one = NULL;
  g_autoptr (GBytes) other = NULL;
  g_autoptr (GError) error = NULL;

  gtorch_tokenizer_train_bpe_async (texts, 300, 2, NULL, FALSE, NULL, on_done, &trained);
  tokenizer = gtorch_tokenizer_train_bpe_finish (wait_for (&trained), &error);
  g_assert_no_error (error);
  g_cancellable_cancel (cancelled);
  gtorch_tokenizer_save_async (tokenizer, file, G_PRIORITY_DEFAULT, cancelled, on_done, &ended);
  g_assert_false (gtorch_tokenizer_save_finish (tokenizer, wait_for (&ended), &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  g_assert_false (g_file_query_exists (file, NULL));
  gtorch_tokenizer_save_async (tokenizer, file, G_PRIORITY_DEFAULT, NULL, on_done, &saved);
  g_assert_true (gtorch_tokenizer_save_finish (tokenizer, wait_for (&saved), &error));
  g_assert_no_error (error);
  g_assert_false (gtorch_tokenizer_save_finish (tokenizer, saved, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  gtorch_tokenizer_save_async (tokenizer, nowhere, G_PRIORITY_DEFAULT, NULL, on_done, &lost);
  g_assert_false (gtorch_tokenizer_save_finish (tokenizer, wait_for (&lost), &error));
  g_assert_nonnull (error);
  g_clear_error (&error);
  gtorch_tokenizer_load_file_async (file, G_PRIORITY_DEFAULT, NULL, on_done, &loaded);
  again = gtorch_tokenizer_load_file_finish (wait_for (&loaded), &error);
  g_assert_no_error (error);
  one = gtorch_tokenizer_to_bytes (tokenizer);
  other = gtorch_tokenizer_to_bytes (again);
  g_assert_true (g_bytes_equal (one, other));
  g_unlink (path);
  g_rmdir (folder);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/Tokenizer/finds_frequent_pairs", test_finds_frequent_pairs);
  g_test_add_func ("/GTorch/Tokenizer/any_text_comes_back", test_any_text_comes_back);
  g_test_add_func ("/GTorch/Tokenizer/train_refuses", test_refuses);
  g_test_add_func ("/GTorch/Tokenizer/in_other_threads", test_in_other_threads);
  return g_test_run ();
}
