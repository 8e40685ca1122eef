/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <fcntl.h>
#include <gtorch/gtorch.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static GTorchSharedMemory *
memory_new (gsize n_bytes)
{
  g_autoptr (GError) error = NULL;
  GTorchSharedMemory *memory = gtorch_shared_memory_new (n_bytes, &error);

  g_assert_no_error (error);
  return memory;
}

static GTorchSharedMemory *
other_owner (GTorchSharedMemory *memory)
{
  g_autoptr (GError) error = NULL;
  GTorchSharedMemory *other =
      gtorch_shared_memory_new_from_fd (gtorch_shared_memory_get_fd (memory), &error);

  g_assert_no_error (error);
  return other;
}

static GTorchTensor *
tensor_at (GTorchSharedMemory *memory, gsize offset)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *tensor = gtorch_shared_memory_make_tensor (memory, offset, GTORCH_DTYPE_INT32,
                                                           GTORCH_SHAPE (4), &error);

  g_assert_no_error (error);
  return tensor;
}

static gint64
first_of (GTorchTensor *tensor)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) first = gtorch_tensor_select (tensor, 0, 0, &error);
  gint64 value;

  g_assert_no_error (error);
  value = gtorch_tensor_item_int (first, &error);
  g_assert_no_error (error);
  return value;
}

static void
fill (GTorchTensor *tensor, gint64 value)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_tensor_fill_int_inplace (tensor, value, &error));
  g_assert_no_error (error);
}

static void
both_owners_see_what_one_writes (void)
{
  g_autoptr (GTorchSharedMemory) memory = memory_new (4096);
  g_autoptr (GTorchSharedMemory) other = other_owner (memory);
  g_autoptr (GTorchTensor) mine = tensor_at (memory, 64);
  g_autoptr (GTorchTensor) theirs = tensor_at (other, 64);

  g_assert_cmpuint (gtorch_shared_memory_get_n_bytes (other), ==, 4096);
  g_assert_cmpint (gtorch_shared_memory_get_fd (other), ==, -1);
  g_assert_cmpuint (gtorch_tensor_get_data_ptr (mine), ==,
                    gtorch_shared_memory_get_address (memory) + 64);
  g_assert_cmpint (first_of (theirs), ==, 0);
  fill (mine, 7);
  g_assert_cmpint (first_of (theirs), ==, 7);
  fill (theirs, 8);
  g_assert_cmpint (first_of (mine), ==, 8);
}

static void
tensors_keep_the_memory (void)
{
  GTorchSharedMemory *memory = memory_new (64);
  g_autoptr (GTorchSharedMemory) other = other_owner (memory);
  GTorchTensor *mine = tensor_at (memory, 0), *theirs = tensor_at (other, 0);
  GTorchSharedMemory *seen = memory;

  fill (mine, 3);
  g_object_add_weak_pointer (G_OBJECT (memory), (gpointer *) &seen);
  g_object_unref (memory);
  g_assert_nonnull (seen);
  gtorch_tensor_unref (mine);
  g_assert_null (seen);
  g_assert_cmpint (first_of (theirs), ==, 3);
  gtorch_tensor_unref (theirs);
}

static void
memory_is_used_until_the_last_tensor_is_gone (void)
{
  g_autoptr (GTorchSharedMemory) memory = memory_new (64);
  g_autoptr (GTorchSharedMemory) other = other_owner (memory);
  GTorchTensor *one, *two;

  g_assert_false (gtorch_shared_memory_is_used (memory));
  one = tensor_at (memory, 0);
  g_assert_true (gtorch_shared_memory_is_used (memory));
  gtorch_shared_memory_lend (memory);
  gtorch_tensor_unref (one);
  g_assert_true (gtorch_shared_memory_is_used (memory)); /* its maker does not clear it */
  gtorch_shared_memory_hold (other);
  one = tensor_at (other, 0);
  gtorch_tensor_unref (one);
  g_assert_true (gtorch_shared_memory_is_used (memory));
  one = tensor_at (other, 0);
  two = tensor_at (other, 16);
  gtorch_shared_memory_release (other);
  gtorch_tensor_unref (one);
  g_assert_true (gtorch_shared_memory_is_used (memory));
  gtorch_tensor_unref (two);
  g_assert_false (gtorch_shared_memory_is_used (memory));
}

static void
a_fork_keeps_what_it_reads (void)
{
  g_autoptr (GTorchSharedMemory) memory = memory_new (64);
  g_autoptr (GTorchSharedMemory) other = other_owner (memory);
  GTorchTensor *theirs = tensor_at (other, 0);
  gint status = 0;
  pid_t child;

  gtorch_shared_memory_lend (memory);
  child = fork ();
  if (child == 0)
    {
      gtorch_tensor_unref (theirs);
      _exit (gtorch_shared_memory_is_used (memory) ? 0 : 1);
    }
  g_assert_cmpint (child, >, 0);
  g_assert_cmpint (waitpid (child, &status, 0), ==, child);
  g_assert_true (WIFEXITED (status));
  g_assert_cmpint (WEXITSTATUS (status), ==, 0);
  g_assert_true (gtorch_shared_memory_is_used (memory));
  gtorch_tensor_unref (theirs); /* the child may still read it */
  g_assert_true (gtorch_shared_memory_is_used (memory));
}

static void
the_size_cannot_be_changed (void)
{
  g_autoptr (GTorchSharedMemory) memory = memory_new (64);

  g_assert_cmpint (ftruncate (gtorch_shared_memory_get_fd (memory), 10), ==, -1);
  g_assert_cmpint (ftruncate (gtorch_shared_memory_get_fd (memory), 1 << 20), ==, -1);
}

static void
other_files_are_refused (void)
{
  const gint fds[] = { -1, 0, memfd_create ("test", MFD_CLOEXEC), open ("/dev/zero", O_RDWR) };
  gsize i;

  for (i = 0; i < G_N_ELEMENTS (fds); i++)
    {
      g_autoptr (GError) error = NULL;

      g_assert_null (gtorch_shared_memory_new_from_fd (fds[i], &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
      g_assert_true (g_str_has_prefix (error->message, "shared_memory: file descriptor "));
    }
  close (fds[2]);
  close (fds[3]);
}

static void
sizes_are_checked (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_shared_memory_new (0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_null (gtorch_shared_memory_new (G_MAXSIZE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
}

static void
refuse (GTorchSharedMemory *memory, gsize offset, GTorchDType dtype, gint64 n, gint code,
        const gchar *message)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_shared_memory_make_tensor (memory, offset, dtype, &n, 1, &error));
  g_assert_error (error, GTORCH_ERROR, code);
  if (message != NULL)
    g_assert_cmpstr (error->message, ==, message);
  g_assert_false (gtorch_shared_memory_is_used (memory));
}

static void
places_are_checked (void)
{
  g_autoptr (GTorchSharedMemory) memory = memory_new (64);
  g_autoptr (GTorchSharedMemory) bare = g_object_new (GTORCH_TYPE_SHARED_MEMORY, NULL);
  GTorchTensor *bytes;

  refuse (memory, 0, GTORCH_DTYPE_INT32, 17, GTORCH_ERROR_INDEX,
          "shared_memory: 68 bytes at 0 are out of range for 64");
  refuse (memory, 64, GTORCH_DTYPE_INT32, 1, GTORCH_ERROR_INDEX, NULL);
  refuse (memory, G_MAXSIZE, GTORCH_DTYPE_INT32, 1, GTORCH_ERROR_INDEX, NULL);
  refuse (memory, 2, GTORCH_DTYPE_INT32, 1, GTORCH_ERROR_INVALID,
          "shared_memory: 2 is no multiple of the size of int32");
  refuse (memory, 0, GTORCH_DTYPE_INT32, -1, GTORCH_ERROR_SHAPE, NULL);
  refuse (memory, 0, GTORCH_DTYPE_INT32, G_MAXINT64, GTORCH_ERROR_SHAPE, NULL);
  refuse (memory, 0, GTORCH_DTYPE_NONE, 1, GTORCH_ERROR_DTYPE, NULL);
  refuse (bare, 0, GTORCH_DTYPE_INT32, 1, GTORCH_ERROR_INDEX, NULL);
  bytes = tensor_at (memory, 0);
  fill (bytes, 2);
  gtorch_tensor_unref (bytes);
  refuse (memory, 0, GTORCH_DTYPE_BOOL, 8, GTORCH_ERROR_FORMAT,
          "shared_memory: byte 2 at 0 is not a bool, which is 0 or 1");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/GTorch/SharedMemory/" #name, name)
  ADD (both_owners_see_what_one_writes);
  ADD (tensors_keep_the_memory);
  ADD (memory_is_used_until_the_last_tensor_is_gone);
  ADD (a_fork_keeps_what_it_reads);
  ADD (the_size_cannot_be_changed);
  ADD (other_files_are_refused);
  ADD (sizes_are_checked);
  ADD (places_are_checked);
  return g_test_run ();
}
