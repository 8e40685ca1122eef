/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What all stores do alike: each test runs with each of them. */

#include "config.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <gtorch/gtorch.h>
#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct
{
  GTorchStore *store;
  GTorchStore *other; /* the same keys, as another process has them */
  gchar *folder;
} Fixture;

typedef void (*Maker) (Fixture *fixture);

static void
make_hash (Fixture *fixture)
{
  fixture->store = GTORCH_STORE (gtorch_hash_store_new ());
  fixture->other = g_object_ref (fixture->store);
}

static void
make_prefix (Fixture *fixture)
{
  g_autoptr (GTorchHashStore) inner = gtorch_hash_store_new ();

  fixture->store = GTORCH_STORE (gtorch_prefix_store_new ("part", GTORCH_STORE (inner)));
  fixture->other = GTORCH_STORE (gtorch_prefix_store_new ("part", GTORCH_STORE (inner)));
}

static GTorchStore *
open_file (Fixture *fixture)
{
  g_autofree gchar *path = g_build_filename (fixture->folder, "store", NULL);
  g_autoptr (GError) error = NULL;
  GTorchFileStore *store = gtorch_file_store_new (path, &error);

  g_assert_no_error (error);
  return GTORCH_STORE (store);
}

static void
make_file (Fixture *fixture)
{
  fixture->folder = g_dir_make_tmp ("gtorch-store-XXXXXX", NULL);
  fixture->store = open_file (fixture);
  fixture->other = open_file (fixture);
}

static void
make_tcp (Fixture *fixture)
{
  g_autoptr (GError) error = NULL;
  GTorchTcpStore *server =
      gtorch_tcp_store_new ("localhost", 0, 0, TRUE, 60, FALSE, "token", NULL, &error);

  g_assert_no_error (error);
  fixture->store = GTORCH_STORE (server);
  fixture->other =
      GTORCH_STORE (gtorch_tcp_store_new ("127.0.0.1", gtorch_tcp_store_get_port (server), 0, FALSE,
                                          60, FALSE, "token", NULL, &error));
  g_assert_no_error (error);
}

static void
set_up (Fixture *fixture, gconstpointer data)
{
  ((Maker) data) (fixture);
}

static void
tear_down (Fixture *fixture, gconstpointer data)
{
  g_clear_object (&fixture->other);
  g_assert_finalize_object (fixture->store);
  if (fixture->folder != NULL)
    {
      g_autofree gchar *path = g_build_filename (fixture->folder, "store", NULL);

      g_assert_cmpint (g_unlink (path), ==, 0);
      g_assert_cmpint (g_rmdir (fixture->folder), ==, 0);
      g_free (fixture->folder);
    }
}

static void
set_text (GTorchStore *store, const gchar *key, const gchar *text)
{
  g_autoptr (GBytes) bytes = g_bytes_new (text, strlen (text));
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_store_set (store, key, bytes, NULL, &error));
  g_assert_no_error (error);
}

static void
assert_text (GTorchStore *store, const gchar *key, const gchar *text)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = gtorch_store_get (store, key, NULL, &error);

  g_assert_no_error (error);
  g_assert_cmpmem (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes), text, strlen (text));
}

static void
values_are_shared (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) large = g_bytes_new_take (g_malloc0 (3000000), 3000000);
  g_autoptr (GBytes) back = NULL;
  const gchar *const keys[] = { "a", "b", NULL };
  gboolean flag;
  gint64 n;

  set_text (fixture->store, "a", "one");
  set_text (fixture->store, "a", "two");
  assert_text (fixture->other, "a", "two");
  set_text (fixture->other, "empty", "");
  assert_text (fixture->store, "empty", "");
  g_assert_true (gtorch_store_check (fixture->other, keys, &flag, NULL, &error));
  g_assert_false (flag);
  g_assert_true (gtorch_store_set (fixture->other, "b", large, NULL, &error));
  g_assert_true (gtorch_store_check (fixture->store, keys, &flag, NULL, &error));
  g_assert_true (flag);
  back = gtorch_store_get (fixture->store, "b", NULL, &error);
  g_assert_true (g_bytes_equal (back, large));
  g_assert_true (gtorch_store_count_keys (fixture->store, &n, NULL, &error));
  g_assert_cmpint (n, ==, 3);
  g_assert_true (gtorch_store_delete_key (fixture->store, "b", &flag, NULL, &error));
  g_assert_true (flag);
  g_assert_true (gtorch_store_delete_key (fixture->other, "b", &flag, NULL, &error));
  g_assert_false (flag);
  g_assert_true (gtorch_store_append (fixture->store, "a", back, NULL, &error));
  g_assert_true (gtorch_store_append (fixture->store, "new", back, NULL, &error));
  g_clear_pointer (&back, g_bytes_unref);
  back = gtorch_store_get (fixture->other, "a", NULL, &error);
  g_assert_cmpuint (g_bytes_get_size (back), ==, 3000003);
  g_assert_no_error (error);
}

static void
numbers_are_added (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  gint64 sum = 77;

  g_assert_true (gtorch_store_add (fixture->store, "n", 5, &sum, NULL, &error));
  g_assert_cmpint (sum, ==, 5);
  g_assert_true (gtorch_store_add (fixture->other, "n", -7, &sum, NULL, &error));
  g_assert_cmpint (sum, ==, -2);
  assert_text (fixture->store, "n", "-2");
  g_assert_false (gtorch_store_add (fixture->store, "n", G_MININT64, &sum, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "does not fit into 64 bits"));
  g_assert_cmpint (sum, ==, -2);
  g_clear_error (&error);
  set_text (fixture->store, "text", "12x");
  g_assert_false (gtorch_store_add (fixture->other, "text", 1, &sum, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  /* the failures have changed nothing, for nobody */
  assert_text (fixture->other, "text", "12x");
  assert_text (fixture->other, "n", "-2");
}

static void
compare (Fixture *fixture, const gchar *expected, const gchar *desired, const gchar *result)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) old = expected == NULL ? NULL : g_bytes_new (expected, strlen (expected));
  g_autoptr (GBytes) new = g_bytes_new (desired, strlen (desired));
  g_autoptr (GBytes) got = gtorch_store_compare_set (fixture->store, "c", old, new, NULL, &error);

  g_assert_no_error (error);
  g_assert_cmpmem (g_bytes_get_data (got, NULL), g_bytes_get_size (got), result, strlen (result));
}

static void
values_are_compared_and_set (Fixture *fixture, gconstpointer data)
{
  compare (fixture, "something", "x", "something");
  compare (fixture, NULL, "first", "first");
  compare (fixture, NULL, "second", "first");
  compare (fixture, "wrong", "second", "first");
  compare (fixture, "first", "second", "second");
  assert_text (fixture->other, "c", "second");
}

static gpointer
set_later (gpointer data)
{
  g_usleep (20000);
  set_text (data, "first", "1");
  g_usleep (20000);
  set_text (data, "second", "2");
  return NULL;
}

static void
a_call_waits_for_a_key (Fixture *fixture, gconstpointer data)
{
  const gchar *const keys[] = { "first", "second", NULL };
  g_autoptr (GError) error = NULL;
  GThread *thread = g_thread_new ("setter", set_later, fixture->other);

  assert_text (fixture->store, "first", "1");
  g_assert_true (gtorch_store_wait (fixture->store, keys, -1, NULL, &error));
  g_assert_no_error (error);
  assert_text (fixture->store, "second", "2");
  g_thread_join (thread);
}

static void
waiting_ends_in_time (Fixture *fixture, gconstpointer data)
{
  const gchar *const keys[] = { "there", "missing", NULL };
  g_autoptr (GError) error = NULL;
  gint64 start = g_get_monotonic_time ();

  set_text (fixture->store, "there", "");
  g_assert_false (gtorch_store_wait (fixture->store, keys, 0.05, NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT);
  g_assert_nonnull (strstr (error->message,
                            "store_wait: the time is over, and of 2 keys “missing” is not there"));
  g_clear_error (&error);
  g_assert_cmpint (g_get_monotonic_time () - start, >=, 45000);
  g_assert_false (gtorch_store_wait (fixture->store, keys, 0, NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT);
  g_clear_error (&error);
  g_assert_true (gtorch_store_set_timeout (fixture->store, 0.01, NULL));
  g_assert_null (gtorch_store_get (fixture->store, "missing", NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT);
  g_clear_error (&error);
  g_assert_true (gtorch_store_set_timeout (fixture->store, (gdouble) INFINITY, NULL));
  g_assert_false (gtorch_store_set_timeout (fixture->store, -1, &error));
  assert_text (fixture->store, "there", "");
}

static gpointer
cancel_later (gpointer data)
{
  g_usleep (20000);
  g_cancellable_cancel (data);
  return NULL;
}

static void
waiting_can_be_cancelled (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  GThread *thread = g_thread_new ("canceller", cancel_later, cancellable);

  g_assert_null (gtorch_store_get (fixture->store, "missing", cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_thread_join (thread);
  g_clear_error (&error);
  g_assert_null (gtorch_store_get (fixture->store, "missing", cancellable, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  set_text (fixture->store, "goes on", "yes");
  assert_text (fixture->other, "goes on", "yes");
}

#define N_THREADS 6
#define N_ADDS    50

static gpointer
add_often (gpointer data)
{
  g_autoptr (GError) error = NULL;
  guint i;

  for (i = 0; i < N_ADDS; i++)
    g_assert_true (gtorch_store_add (data, "shared", 1, NULL, NULL, &error));
  assert_text (data, "all are here", "yes");
  return NULL;
}

static void
threads_share_a_store (Fixture *fixture, gconstpointer data)
{
  GThread *threads[N_THREADS];
  gint64 sum = 0;
  guint i;

  for (i = 0; i < N_THREADS; i++)
    threads[i] = g_thread_new ("adder", add_often, i % 2 ? fixture->store : fixture->other);
  while (sum < N_THREADS * N_ADDS)
    g_assert_true (gtorch_store_add (fixture->store, "shared", 0, &sum, NULL, NULL));
  set_text (fixture->store, "all are here", "yes");
  for (i = 0; i < N_THREADS; i++)
    g_thread_join (threads[i]);
  g_assert_cmpint (sum, ==, N_THREADS * N_ADDS);
}

static void
on_result (GObject *object, GAsyncResult *result, gpointer data)
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
calls_do_not_block_the_main_loop (Fixture *fixture, gconstpointer data)
{
  const gchar *const keys[] = { "k", "n", NULL };
  g_autoptr (GAsyncResult) waited = NULL, got = NULL, set = NULL, added = NULL;
  g_autoptr (GBytes) bytes = g_bytes_new_static ("v", 1), value = NULL;
  g_autoptr (GError) error = NULL;
  const guint n_own = fixture->store == fixture->other ? 2 : 1;
  gint64 sum = 0;
  guint i;

  gtorch_store_wait_async (fixture->store, keys, -1, NULL, on_result, &waited);
  gtorch_store_get_async (fixture->store, "k", NULL, on_result, &got);
  gtorch_store_set_async (fixture->other, "k", bytes, NULL, on_result, &set);
  g_assert_true (gtorch_store_set_finish (fixture->other, wait_for (&set), &error));
  value = gtorch_store_get_finish (fixture->store, wait_for (&got), &error);
  g_assert_true (g_bytes_equal (value, bytes));
  gtorch_store_add_async (fixture->other, "n", 9, NULL, on_result, &added);
  g_assert_true (gtorch_store_add_finish (fixture->other, wait_for (&added), &sum, &error));
  g_assert_cmpint (sum, ==, 9);
  g_assert_true (gtorch_store_wait_finish (fixture->store, wait_for (&waited), &error));
  g_assert_no_error (error);
  g_assert_false (gtorch_store_wait_finish (fixture->store, got, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_object (&waited);
  g_clear_object (&got);
  g_clear_object (&set);
  g_clear_object (&added);
  /* the threads of the tasks drop their references to the stores a moment later */
  for (i = 0; i < 5000 && G_OBJECT (fixture->store)->ref_count > n_own; i++)
    {
      g_main_context_iteration (NULL, FALSE);
      g_usleep (1000);
    }
}

/* The other calls. */
static void
no_call_blocks_the_main_loop (Fixture *fixture, gconstpointer data)
{
  const gchar *const keys[] = { "k", NULL };
  g_autoptr (GAsyncResult) appended = NULL, compared = NULL, checked = NULL, gone = NULL,
                           counted = NULL, ended = NULL, refused = NULL;
  g_autoptr (GBytes) bytes = g_bytes_new_static ("v", 1), other = g_bytes_new_static ("w", 1);
  g_autoptr (GBytes) value = NULL;
  g_autoptr (GCancellable) cancelled = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  const guint n_own = fixture->store == fixture->other ? 2 : 1;
  gboolean is_there = FALSE;
  gint64 before, n = 0;
  guint i;

  g_assert_true (gtorch_store_count_keys (fixture->store, &before, NULL, &error));
  gtorch_store_append_async (fixture->store, "k", bytes, NULL, on_result, &appended);
  g_assert_true (gtorch_store_append_finish (fixture->store, wait_for (&appended), &error));
  gtorch_store_compare_set_async (fixture->store, "k", bytes, other, NULL, on_result, &compared);
  value = gtorch_store_compare_set_finish (fixture->store, wait_for (&compared), &error);
  g_assert_no_error (error);
  g_assert_true (g_bytes_equal (value, other));
  gtorch_store_check_async (fixture->other, keys, NULL, on_result, &checked);
  g_assert_true (
      gtorch_store_check_finish (fixture->other, wait_for (&checked), &is_there, &error));
  g_assert_true (is_there);
  gtorch_store_count_keys_async (fixture->store, NULL, on_result, &counted);
  g_assert_true (gtorch_store_count_keys_finish (fixture->store, wait_for (&counted), &n, &error));
  g_assert_cmpint (n, ==, before + 1);
  gtorch_store_delete_key_async (fixture->store, "k", NULL, on_result, &gone);
  g_assert_true (
      gtorch_store_delete_key_finish (fixture->store, wait_for (&gone), &is_there, &error));
  g_assert_true (is_there);
  g_assert_true (gtorch_store_check (fixture->store, keys, &is_there, NULL, &error));
  g_assert_false (is_there);
  g_assert_no_error (error);
  /* errors, which leave the results untouched */
  g_cancellable_cancel (cancelled);
  gtorch_store_count_keys_async (fixture->store, cancelled, on_result, &ended);
  g_assert_false (gtorch_store_count_keys_finish (fixture->store, wait_for (&ended), &n, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_assert_cmpint (n, ==, before + 1);
  g_clear_error (&error);
  gtorch_store_append_async (fixture->store, "\xff", bytes, NULL, on_result, &refused);
  g_assert_false (gtorch_store_append_finish (fixture->store, wait_for (&refused), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_false (gtorch_store_check_finish (fixture->store, gone, &is_there, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_object (&appended);
  g_clear_object (&compared);
  g_clear_object (&checked);
  g_clear_object (&gone);
  g_clear_object (&counted);
  g_clear_object (&ended);
  g_clear_object (&refused);
  /* the threads of the tasks drop their references to the stores a moment later */
  for (i = 0; i < 5000 && G_OBJECT (fixture->store)->ref_count > n_own; i++)
    {
      g_main_context_iteration (NULL, FALSE);
      g_usleep (1000);
    }
}

static void
large_keys_and_values_are_refused (Fixture *fixture, gconstpointer data)
{
  g_autofree gchar *key = g_strnfill (4097, 'k');
  g_autoptr (GBytes) large =
      g_bytes_new_take (g_malloc0 (64 * 1024 * 1024 + 1), 64 * 1024 * 1024 + 1);
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) value = g_bytes_new_static ("v", 1);

  g_assert_false (gtorch_store_set (fixture->store, key, value, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_false (gtorch_store_set (fixture->store, "\xff", value, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_false (gtorch_store_set (fixture->store, "k", large, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
}

static void
processes_share_a_file (Fixture *fixture, gconstpointer data)
{
  gint64 sum = 0;
  guint i;

  for (i = 0; i < 4; i++)
    {
      pid_t child = fork ();

      g_assert_cmpint (child, >=, 0);
      if (child == 0)
        {
          GTorchStore *mine = open_file (fixture);
          guint k;

          for (k = 0; k < N_ADDS; k++)
            if (!gtorch_store_add (mine, "n", 1, NULL, NULL, NULL))
              _exit (1);
          _exit (0);
        }
    }
  for (i = 0; i < 4; i++)
    {
      int status;

      g_assert_cmpint (wait (&status), >, 0);
      g_assert_cmpint (status, ==, 0);
    }
  g_assert_true (gtorch_store_add (fixture->store, "n", 0, &sum, NULL, NULL));
  g_assert_cmpint (sum, ==, 4 * N_ADDS);
}

/* A process that was killed in the middle of a change leaves a part of it. */
static void
a_cut_file_is_read_up_to_the_cut (Fixture *fixture, gconstpointer data)
{
  g_autofree gchar *path = g_build_filename (fixture->folder, "store", NULL);
  struct stat before, after;

  set_text (fixture->store, "a", "1");
  g_assert_cmpint (g_stat (path, &before), ==, 0);
  set_text (fixture->store, "b", "2");
  g_assert_cmpint (g_stat (path, &after), ==, 0);
  for (off_t size = before.st_size + 1; size < after.st_size; size++)
    {
      g_autoptr (GTorchStore) reader = NULL;
      const gchar *const keys[] = { "b", NULL };
      gboolean flag = TRUE;

      g_assert_cmpint (truncate (path, size), ==, 0);
      reader = open_file (fixture);
      assert_text (reader, "a", "1");
      g_assert_true (gtorch_store_check (reader, keys, &flag, NULL, NULL));
      g_assert_false (flag);
      set_text (reader, "b", "2");
      g_assert_cmpint (g_stat (path, &after), ==, 0);
    }
}

static void
a_file_that_is_none_is_an_error (Fixture *fixture, gconstpointer data)
{
  g_autofree gchar *path = g_build_filename (fixture->folder, "store", NULL);
  g_autoptr (GTorchStore) reader = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_true (g_file_set_contents (path, "\x05\0\0\0abcdefg", 11, NULL));
  reader = open_file (fixture);
  g_assert_null (gtorch_store_get (reader, "a", NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
  g_assert_nonnull (strstr (error->message, path));
  g_clear_error (&error);
  g_assert_true (g_file_set_contents (path, "hello world, this is none", -1, NULL));
  g_clear_object (&reader);
  reader = open_file (fixture);
  g_assert_null (gtorch_store_get (reader, "a", NULL, &error));
  g_assert_nonnull (strstr (error->message, path));
  g_clear_error (&error);
  g_assert_null (gtorch_file_store_new ("/nonexistent/folder/store", &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND);
}

static void
prefixes_part_the_keys (void)
{
  g_autoptr (GTorchHashStore) inner = gtorch_hash_store_new ();
  g_autoptr (GTorchPrefixStore) a = gtorch_prefix_store_new ("a", GTORCH_STORE (inner));
  g_autoptr (GTorchPrefixStore) b = gtorch_prefix_store_new ("b", GTORCH_STORE (a));

  set_text (GTORCH_STORE (a), "k", "1");
  set_text (GTORCH_STORE (b), "k", "2");
  assert_text (GTORCH_STORE (inner), "a/k", "1");
  assert_text (GTORCH_STORE (inner), "a/b/k", "2");
  g_assert_cmpstr (gtorch_prefix_store_get_prefix (b), ==, "b");
  g_assert_true (gtorch_prefix_store_get_store (b) == GTORCH_STORE (a));
}

static void
incomplete_stores_are_refused (void)
{
  GType types[] = { GTORCH_TYPE_FILE_STORE, GTORCH_TYPE_PREFIX_STORE, GTORCH_TYPE_TCP_STORE };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (types); i++)
    {
      g_autoptr (GTorchStore) store = g_object_new (types[i], NULL);
      g_autoptr (GError) error = NULL;

      g_assert_null (gtorch_store_get (store, "k", NULL, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
    }
}

#define ADD(name, maker, test) \
  g_test_add ("/GTorch/store/" name "/" #test, Fixture, maker, set_up, test, tear_down)

#define ADD_ALL(name, maker)                           \
  ADD (name, maker, values_are_shared);                \
  ADD (name, maker, numbers_are_added);                \
  ADD (name, maker, values_are_compared_and_set);      \
  ADD (name, maker, a_call_waits_for_a_key);           \
  ADD (name, maker, waiting_ends_in_time);             \
  ADD (name, maker, waiting_can_be_cancelled);         \
  ADD (name, maker, threads_share_a_store);            \
  ADD (name, maker, calls_do_not_block_the_main_loop); \
  ADD (name, maker, no_call_blocks_the_main_loop);     \
  ADD (name, maker, large_keys_and_values_are_refused)

int
main (int argc, char **argv)
{
  int status;

  g_test_init (&argc, &argv, NULL);
  ADD ("file", make_file, processes_share_a_file); /* forks before there are threads */
  ADD ("file", make_file, a_cut_file_is_read_up_to_the_cut);
  ADD ("file", make_file, a_file_that_is_none_is_an_error);
  ADD_ALL ("hash", make_hash);
  ADD_ALL ("prefix", make_prefix);
  ADD_ALL ("file", make_file);
  ADD_ALL ("tcp", make_tcp);
  g_test_add_func ("/GTorch/store/prefixes_part_the_keys", prefixes_part_the_keys);
  g_test_add_func ("/GTorch/store/incomplete_stores_are_refused", incomplete_stores_are_refused);
  status = g_test_run ();
  /* a thread of GLib's pool that is about to rest would count as a leak */
  g_thread_pool_stop_unused_threads ();
  g_usleep (50000);
  return status;
}
