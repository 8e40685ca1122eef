/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Targets of a save: links, files of other users, and special files. */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <gtorch/gtorch.h>
#include <gtorch/base/gtorch-file-save-private.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "test-foreign-file.h"

#define CHUNK (4 * 1024 * 1024) /* the writer writes this many bytes at once */

typedef struct
{
  gchar *folder;
} Fixture;

static void
fixture_set_up (Fixture *fixture, gconstpointer data)
{
  fixture->folder = g_dir_make_tmp ("gtorch-save-XXXXXX", NULL);
  g_assert_nonnull (fixture->folder);
}

static void
remove_all (const gchar *folder)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  const gchar *name;

  while ((name = g_dir_read_name (dir)) != NULL)
    {
      g_autofree gchar *path = g_build_filename (folder, name, NULL);

      if (g_unlink (path) != 0)
        {
          remove_all (path);
          g_assert_cmpint (g_rmdir (path), ==, 0);
        }
    }
}

static void
fixture_tear_down (Fixture *fixture, gconstpointer data)
{
  g_chmod (fixture->folder, 0700);
  remove_all (fixture->folder);
  g_assert_cmpint (g_rmdir (fixture->folder), ==, 0);
  g_free (fixture->folder);
}

static gchar *
path_in (Fixture *fixture, const gchar *name)
{
  return g_build_filename (fixture->folder, name, NULL);
}

static guint
count_files (const gchar *folder)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  guint n = 0;

  while (g_dir_read_name (dir) != NULL)
    n++;
  return n;
}

static gchar *
write_former (Fixture *fixture, const gchar *name)
{
  gchar *path = path_in (fixture, name);

  g_assert_true (g_file_set_contents (path, "former", -1, NULL));
  return path;
}

static gboolean
save (const gchar *path, const gchar *text, GError **error)
{
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (GBytes) bytes = g_bytes_new (text, strlen (text));

  return gtorch_file_save_bytes (file, bytes, NULL, error);
}

static void
assert_content (const gchar *path, const gchar *expected)
{
  g_autofree gchar *text = NULL;

  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  g_assert_cmpstr (text, ==, expected);
}

static void
assert_saves (const gchar *path)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (save (path, "new", &error));
  g_assert_no_error (error);
  assert_content (path, "new");
}

static void
assert_refuses (const gchar *path, int code, const gchar *why)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (save (path, "new", &error));
  g_assert_error (error, G_IO_ERROR, code);
  if (why != NULL)
    g_assert_nonnull (strstr (error->message, why));
}

/* --- links --- */

static void
the_target_of_a_link_is_replaced (Fixture *fixture, gconstpointer data)
{
  g_autofree gchar *inner = path_in (fixture, "inner");
  g_autofree gchar *target = path_in (fixture, "inner/target");
  g_autofree gchar *former = write_former (fixture, "former");
  const gchar *const links[][2] = {
    { "inner/target", "relative" }, { "relative", "chain" },        { "chain", "chain2" },
    { "inner", "folder" },          { "folder/target", "through" }, { "inner/back", "there" },
  };
  g_autofree gchar *back = path_in (fixture, "inner/back");
  g_autofree gchar *absolute = path_in (fixture, "absolute");
  guint i;

  g_assert_cmpint (g_mkdir (inner, 0700), ==, 0);
  g_assert_cmpint (symlink ("../former", back), ==, 0);
  g_assert_cmpint (symlink (target, absolute), ==, 0);
  for (i = 0; i <= G_N_ELEMENTS (links); i++)
    {
      g_autofree gchar *link =
          i < G_N_ELEMENTS (links) ? path_in (fixture, links[i][1]) : g_strdup (absolute);

      if (i < G_N_ELEMENTS (links))
        g_assert_cmpint (symlink (links[i][0], link), ==, 0);
      if (strcmp (link + strlen (fixture->folder), "/folder") == 0)
        continue;
      g_assert_true (g_file_set_contents (target, "former", -1, NULL));
      assert_saves (link);
      g_assert_true (g_file_test (link, G_FILE_TEST_IS_SYMLINK));
      assert_content (strstr (link, "there") ? former : target, "new");
      g_assert_cmpuint (count_files (inner), ==, 2);
      g_assert_cmpuint (count_files (fixture->folder), ==, 3 + MIN (i + 1, G_N_ELEMENTS (links)));
    }
}

static void
dangling_links_are_refused (Fixture *fixture, gconstpointer data)
{
  const gchar *const links[][2] = {
    { "missing", "dangling" }, { "missing/target", "far" },
    { "dangling", "chain" },   { "loop", "loop" },
    { "two", "one" },          { "one", "two" },
  };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (links); i++)
    {
      g_autofree gchar *link = path_in (fixture, links[i][1]);

      g_assert_cmpint (symlink (links[i][0], link), ==, 0);
    }
  for (i = 0; i < G_N_ELEMENTS (links); i++)
    {
      g_autofree gchar *link = path_in (fixture, links[i][1]);

      assert_refuses (link, i < 3 ? G_IO_ERROR_NOT_FOUND : G_IO_ERROR_TOO_MANY_LINKS,
                      i < 3 ? "is a link to a file that does not exist" : NULL);
      g_assert_true (g_file_test (link, G_FILE_TEST_IS_SYMLINK));
    }
  g_assert_cmpuint (count_files (fixture->folder), ==, G_N_ELEMENTS (links));
}

static void
hard_links_keep_the_old_content (Fixture *fixture, gconstpointer data)
{
  g_autofree gchar *path = write_former (fixture, "target");
  g_autofree gchar *other = path_in (fixture, "other");

  g_assert_cmpint (link (path, other), ==, 0);
  assert_saves (path);
  assert_content (other, "former");
  g_assert_cmpuint (count_files (fixture->folder), ==, 2);
}

static gboolean
is_equal (GTorchTensor *tensor, GTorchTensor *expected)
{
  gsize n = gtorch_tensor_get_numel (expected) * sizeof (gfloat);

  return gtorch_tensor_get_numel (tensor) == gtorch_tensor_get_numel (expected)
         && memcmp ((gpointer) gtorch_tensor_get_data_ptr (tensor),
                    (gpointer) gtorch_tensor_get_data_ptr (expected), n)
                == 0;
}

/* Saves a mapped tensor to the file that it is mapped from, under each of its names. */
static void
a_mapped_file_is_saved_onto_itself (Fixture *fixture, gconstpointer data)
{
  const gchar *const names[] = { "target", "symbolic", "hard" };
  g_autofree gchar *path = path_in (fixture, "target");
  g_autofree gchar *symbolic = path_in (fixture, "symbolic");
  g_autofree gchar *hard = path_in (fixture, "hard");
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (GTorchTensor) values = gtorch_arange (0, 1 << 20, 1, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GHashTable) first = g_hash_table_new (g_str_hash, g_str_equal);
  guint i;

  g_hash_table_insert (first, (gpointer) "values", values);
  g_assert_true (gtorch_safetensors_save_file (first, NULL, file, NULL, NULL, NULL, NULL));
  g_assert_cmpint (symlink ("target", symbolic), ==, 0);
  g_assert_cmpint (link (path, hard), ==, 0);
  for (i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autofree gchar *name = path_in (fixture, names[i]);
      g_autoptr (GFile) link = g_file_new_for_path (name);
      g_autoptr (GError) error = NULL;
      g_autoptr (GHashTable) mapped =
          gtorch_safetensors_load_file (link, TRUE, NULL, NULL, NULL, NULL, NULL, &error);
      g_autoptr (GHashTable) again = NULL;

      g_assert_no_error (error);
      g_assert_true (gtorch_safetensors_save_file (mapped, NULL, link, NULL, NULL, NULL, &error));
      g_assert_no_error (error);
      g_assert_true (is_equal (g_hash_table_lookup (mapped, "values"), values));
      again = gtorch_safetensors_load_file (link, FALSE, NULL, NULL, NULL, NULL, NULL, &error);
      g_assert_no_error (error);
      g_assert_true (is_equal (g_hash_table_lookup (again, "values"), values));
    }
  g_assert_cmpuint (count_files (fixture->folder), ==, 3);
}

/* --- permissions --- */

static mode_t
mode_of (const gchar *path)
{
  struct stat status;

  g_assert_cmpint (stat (path, &status), ==, 0);
  return status.st_mode & 07777;
}

static void
the_mode_is_kept (Fixture *fixture, gconstpointer data)
{
  const mode_t modes[] = { 0600, 0640, 0666, 0755, 0200, 0644 };
  g_autofree gchar *path = write_former (fixture, "target");
  g_autofree gchar *fresh = path_in (fixture, "fresh");
  mode_t former = umask (027);
  guint i;

  for (i = 0; i < G_N_ELEMENTS (modes); i++)
    {
      g_autoptr (GError) error = NULL;

      g_assert_cmpint (chmod (path, modes[i]), ==, 0);
      g_assert_true (save (path, "new", &error));
      g_assert_no_error (error);
      g_assert_cmphex (mode_of (path), ==, modes[i]);
    }
  assert_saves (fresh);
  g_assert_cmphex (mode_of (fresh), ==, 0640);
  umask (former);
}

/* An ordinary user's save in a situation that only root can set up. */
#define USER  12345
#define OTHER 12346

static void
become (uid_t user)
{
  if (user != 0)
    g_assert_cmpint (setegid (user), ==, 0);
  g_assert_cmpint (seteuid (user), ==, 0);
  if (user == 0)
    g_assert_cmpint (setegid (0), ==, 0);
}

static gboolean
may_become (void)
{
  if (geteuid () == 0 && setegid (USER) == 0 && seteuid (USER) == 0)
    {
      become (0);
      return TRUE;
    }
  g_test_skip ("wants to be another user, which only the administrator can");
  return FALSE;
}

static void
owner_and_group_are_kept_as_far_as_possible (Fixture *fixture, gconstpointer data)
{
  g_autofree gchar *path = write_former (fixture, "target");
  struct stat status;

  if (!may_become ())
    return;
  g_assert_cmpint (chown (path, USER, OTHER), ==, 0);
  g_assert_cmpint (chmod (path, 0664), ==, 0);
  assert_saves (path);
  g_assert_cmpint (stat (path, &status), ==, 0);
  g_assert_cmpuint (status.st_uid, ==, USER);
  g_assert_cmpuint (status.st_gid, ==, OTHER);
  g_assert_cmphex (status.st_mode & 07777, ==, 0664);

  /* another user may write, but cannot give files away: the group gets the permissions of others */
  g_assert_cmpint (chown (fixture->folder, OTHER, OTHER), ==, 0);
  g_assert_cmpint (chown (path, USER, USER), ==, 0);
  g_assert_cmpint (chmod (path, 06676), ==, 0);
  become (OTHER);
  assert_saves (path);
  become (0);
  g_assert_cmpint (stat (path, &status), ==, 0);
  g_assert_cmpuint (status.st_uid, ==, OTHER);
  g_assert_cmpuint (status.st_gid, ==, OTHER);
  g_assert_cmphex (status.st_mode & 07777, ==, 0666);
  g_assert_cmpuint (count_files (fixture->folder), ==, 1);
}

static void
unwritable_files_are_refused (Fixture *fixture, gconstpointer data)
{
  g_autofree gchar *path = write_former (fixture, "target");
  g_autofree gchar *fresh = path_in (fixture, "fresh");
  g_autofree gchar *link = path_in (fixture, "link");

  if (!may_become ())
    return;
  g_assert_cmpint (symlink ("target", link), ==, 0);
  /* the folder would allow it, the file does not */
  g_assert_cmpint (chown (fixture->folder, USER, USER), ==, 0);
  g_assert_cmpint (chown (path, USER, USER), ==, 0);
  g_assert_cmpint (chmod (path, 0444), ==, 0);
  become (USER);
  assert_refuses (path, G_IO_ERROR_PERMISSION_DENIED, NULL);
  assert_refuses (link, G_IO_ERROR_PERMISSION_DENIED, NULL);
  become (0);
  /* the file would allow it, the folder does not */
  g_assert_cmpint (chmod (path, 0666), ==, 0);
  g_assert_cmpint (chmod (fixture->folder, 0555), ==, 0);
  become (USER);
  assert_refuses (path, G_IO_ERROR_PERMISSION_DENIED, NULL);
  assert_refuses (link, G_IO_ERROR_PERMISSION_DENIED, NULL);
  assert_refuses (fresh, G_IO_ERROR_PERMISSION_DENIED, NULL);
  become (0);
  assert_content (path, "former");
  g_assert_cmpuint (count_files (fixture->folder), ==, 2);
}

/* --- special files --- */

static void
special_files_are_refused (Fixture *fixture, gconstpointer data)
{
  const gchar *const names[] = { "pipe", "socket", "folder" };
  const gchar *const words[] = { "is a pipe", "is a socket", "is a folder" };
  g_autofree gchar *pipe = path_in (fixture, "pipe");
  g_autofree gchar *folder = path_in (fixture, "folder");
  g_autofree gchar *name = path_in (fixture, "socket");
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  int fd = socket (AF_UNIX, SOCK_STREAM, 0);
  guint i;

  g_assert_cmpint (mkfifo (pipe, 0600), ==, 0);
  g_assert_cmpint (g_mkdir (folder, 0700), ==, 0);
  g_strlcpy (address.sun_path, name, sizeof address.sun_path);
  g_assert_cmpint (bind (fd, (struct sockaddr *) &address, sizeof address), ==, 0);
  for (i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autofree gchar *path = path_in (fixture, names[i]);
      g_autofree gchar *link = g_strconcat (path, "-link", NULL);

      g_assert_cmpint (symlink (names[i], link), ==, 0);
      assert_refuses (path, i == 2 ? G_IO_ERROR_IS_DIRECTORY : G_IO_ERROR_NOT_REGULAR_FILE,
                      words[i]);
      assert_refuses (link, i == 2 ? G_IO_ERROR_IS_DIRECTORY : G_IO_ERROR_NOT_REGULAR_FILE,
                      words[i]);
    }
  assert_refuses ("/dev/null", G_IO_ERROR_NOT_REGULAR_FILE, "is a device");
  assert_refuses ("/", G_IO_ERROR_IS_DIRECTORY, "is a folder");
  close (fd);
  g_assert_cmpuint (count_files (fixture->folder), ==, 6);
}

static void
names_may_have_the_maximum_length (Fixture *fixture, gconstpointer data)
{
  glong most = pathconf (fixture->folder, _PC_NAME_MAX), length;

  g_assert_cmpint (most, >, 30);
  for (length = most - 30; length <= most + 1; length++)
    {
      g_autofree gchar *name = g_strnfill (length, 'x');
      g_autofree gchar *path = path_in (fixture, name);

      if (length > most)
        {
          assert_refuses (path, G_IO_ERROR_FILENAME_TOO_LONG, NULL);
          continue;
        }
      assert_saves (path);
      assert_saves (path);
      g_unlink (path);
    }
  g_assert_cmpuint (count_files (fixture->folder), ==, 0);
}

static void
a_missing_folder_is_an_error (Fixture *fixture, gconstpointer data)
{
  g_autofree gchar *path = path_in (fixture, "missing/target");
  g_autofree gchar *file = write_former (fixture, "file");
  g_autofree gchar *below = g_build_filename (file, "target", NULL);

  assert_refuses (path, G_IO_ERROR_NOT_FOUND, NULL);
  assert_refuses (below, G_IO_ERROR_NOT_DIRECTORY, NULL);
  assert_content (file, "former");
}

/* --- without a path --- */

static void
a_file_without_a_path_is_replaced_by_its_gvfs (void)
{
  g_autoptr (GFile) file = test_foreign_file_new ("former");
  g_autoptr (GBytes) bytes = g_bytes_new_static ("new", 3);
  g_autoptr (GFile) resource = g_file_new_for_uri ("resource:///target");
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_file_save_bytes (file, bytes, NULL, &error));
  g_assert_no_error (error);
  g_assert_cmpstr (test_foreign_file_get_content (file), ==, "new");
  /* a file system without replacement gives an error */
  g_assert_false (gtorch_file_save_bytes (resource, bytes, NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED);
}

static gboolean
write_half (GOutputStream *stream, GCancellable *cancellable, gpointer data, GError **error)
{
  g_assert_true (g_output_stream_write_all (stream, "half", 4, NULL, cancellable, error));
  g_set_error_literal (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, "half");
  return FALSE;
}

static void
a_failing_writer_keeps_the_old_file (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GFile) foreign = test_foreign_file_new ("former");
  g_autofree gchar *path = write_former (fixture, "target");
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (GError) error = NULL;

  g_assert_false (gtorch_file_save (foreign, write_half, NULL, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
  g_assert_cmpstr (test_foreign_file_get_content (foreign), ==, "former");
  g_clear_error (&error);
  g_assert_false (gtorch_file_save (file, write_half, NULL, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
  assert_content (path, "former");
  g_assert_cmpuint (count_files (fixture->folder), ==, 1);
}

/* --- safetensors --- */

typedef struct
{
  GCancellable *cancellable;
  guint n_chunks, cancelled_at;
} Chunks;

static void
cancel_at_chunk (goffset current, goffset total, gpointer data)
{
  Chunks *chunks = data;

  if (++chunks->n_chunks == chunks->cancelled_at)
    g_cancellable_cancel (chunks->cancellable);
}

static void
store_result (GObject *source, GAsyncResult *result, gpointer data)
{
  *(GAsyncResult **) data = g_object_ref (result);
}

/* A worker does not wait for the main context, which gets its progress later: there the thread that
 * writes cancels. */
static Chunks *writer;

static ssize_t
write_and_cancel (int fd, const void *data, size_t n_bytes)
{
  if (writer != NULL)
    cancel_at_chunk (0, 0, writer);
  return gtorch_file_system.write (fd, data, n_bytes);
}

static void
cancelling_at_any_chunk_keeps_the_old_file (Fixture *fixture, gconstpointer data)
{
  const gint64 lengths[] = { 3, CHUNK + 5, 0, 2 * CHUNK + 1, 7 };
  GTorchFileCalls calls = gtorch_file_system;
  g_autofree gchar *path = write_former (fixture, "target");
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (GHashTable) tensors =
      g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_object_unref);
  gboolean in_thread;
  guint i;

  calls.write = write_and_cancel;
  for (i = 0; i < G_N_ELEMENTS (lengths); i++)
    g_hash_table_insert (tensors, g_strdup_printf ("%u", i),
                         gtorch_zeros (GTORCH_SHAPE (lengths[i]), GTORCH_DTYPE_UINT8, NULL, NULL));
  for (in_thread = FALSE; in_thread <= TRUE; in_thread++)
    {
      gboolean saved = FALSE;

      for (i = 1; !saved; i++)
        {
          g_autoptr (GCancellable) cancellable = g_cancellable_new ();
          g_autoptr (GAsyncResult) result = NULL;
          g_autoptr (GError) error = NULL;
          Chunks chunks = { cancellable, 0, i };

          g_assert_true (g_file_set_contents (path, "former", -1, NULL));
          if (in_thread)
            {
              writer = &chunks;
              gtorch_file_calls = &calls;
              gtorch_safetensors_save_file_async (tensors, NULL, file, G_PRIORITY_DEFAULT,
                                                  cancellable, NULL, NULL, NULL, store_result,
                                                  &result);
              while (result == NULL)
                g_main_context_iteration (NULL, TRUE);
              saved = gtorch_safetensors_save_file_finish (result, &error);
              gtorch_file_calls = &gtorch_file_system;
              writer = NULL;
            }
          else
            saved = gtorch_safetensors_save_file (tensors, NULL, file, cancellable, cancel_at_chunk,
                                                  &chunks, &error);
          if (!saved)
            {
              g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
              assert_content (path, "former");
            }
          g_assert_cmpuint (count_files (fixture->folder), ==, 1);
          g_assert_cmpuint (i, <, 20);
        }
      g_assert_cmpuint (i, >=, 7);
    }
}

/* --- concurrency --- */

static gpointer
save_often (gpointer data)
{
  const gchar *path = data;
  guint i;

  for (i = 0; i < 50; i++)
    {
      g_autofree gchar *text = g_strnfill (1 + g_random_int_range (0, 20000), 'a' + i % 26);

      save (path, text, NULL);
    }
  return NULL;
}

static void
saves_at_the_same_time_leave_one_of_them (Fixture *fixture, gconstpointer data)
{
  g_autofree gchar *path = path_in (fixture, "target");
  GThread *threads[4];
  guint i, k;

  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("save", save_often, path);
  for (i = 0; i < 100; i++)
    {
      g_autofree gchar *text = NULL;
      gsize n;

      if (g_file_get_contents (path, &text, &n, NULL))
        for (k = 0; k < n; k++)
          g_assert_cmpint (text[k], ==, text[0]);
    }
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
  g_assert_cmpuint (count_files (fixture->folder), ==, 1);
}

#define ADD(fact) \
  g_test_add ("/GTorch/file-save/" #fact, Fixture, NULL, fixture_set_up, fact, fixture_tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (the_target_of_a_link_is_replaced);
  ADD (dangling_links_are_refused);
  ADD (hard_links_keep_the_old_content);
  ADD (a_mapped_file_is_saved_onto_itself);
  ADD (the_mode_is_kept);
  ADD (owner_and_group_are_kept_as_far_as_possible);
  ADD (unwritable_files_are_refused);
  ADD (special_files_are_refused);
  ADD (names_may_have_the_maximum_length);
  ADD (a_missing_folder_is_an_error);
  ADD (a_failing_writer_keeps_the_old_file);
  ADD (cancelling_at_any_chunk_keeps_the_old_file);
  ADD (saves_at_the_same_time_leave_one_of_them);
  g_test_add_func ("/GTorch/file-save/a_file_without_a_path_is_replaced_by_its_gvfs",
                   a_file_without_a_path_is_replaced_by_its_gvfs);
  return g_test_run ();
}
