/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Tensors on the CPU for other processes. tests/cuda/test-cuda-share.c has those on GPUs. */

#include "config.h"

#include <gtorch/gtorch.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static GTorchTensor *
filled (gint64 n, gdouble value)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *x = gtorch_full (&n, 1, value, GTORCH_DTYPE_FLOAT32, gtorch_device_cpu (), &error);

  g_assert_no_error (error);
  return x;
}

static gdouble
sum_of (GTorchTensor *x)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) sum = gtorch_tensor_sum (x, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);

  g_assert_no_error (error);
  return gtorch_tensor_item_double (sum, &error);
}

/* A handle as another process gets it: of bytes and file descriptors of its own. */
static GTorchTensorHandle *
handed_over (GTorchTensor *x)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensorHandle) handle = gtorch_tensor_handle_new (x, &error);
  GTorchTensorHandle *other;
  const gint *fds;
  gsize n;

  g_assert_no_error (error);
  fds = gtorch_tensor_handle_get_fds (handle, &n);
  other =
      gtorch_tensor_handle_new_from_bytes (gtorch_tensor_handle_get_bytes (handle), fds, n, &error);
  g_assert_no_error (error);
  return other;
}

static GTorchTensor *
opened (GTorchTensorHandle *handle)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *x = gtorch_tensor_handle_open (handle, &error);

  g_assert_no_error (error);
  return x;
}

static void
share (GTorchTensor *x)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_tensor_share_memory (x, &error));
  g_assert_no_error (error);
  g_assert_true (gtorch_tensor_is_shared (x));
}

/* Writes 9 in a forked child. */
static void
write_in_child (GTorchTensor *x)
{
  gint status;
  pid_t child = fork ();

  if (child == 0)
    _exit (gtorch_tensor_fill_inplace (x, 9, NULL) ? 0 : 1);
  g_assert_cmpint (waitpid (child, &status, 0), ==, child);
  g_assert_cmpint (status, ==, 0);
}

static void
a_forked_child_writes_to_shared_memory (void)
{
  static const gint64 sizes[] = { 1, 1000, 300000, 3000000 }; /* also of whole pages */
  guint i;

  for (i = 0; i < G_N_ELEMENTS (sizes); i++)
    {
      g_autoptr (GTorchTensor) x = filled (sizes[i], 2);
      g_autoptr (GTorchTensor) own = filled (sizes[i], 2);

      g_assert_false (gtorch_tensor_is_shared (x));
      share (x);
      g_assert_cmpfloat (sum_of (x), ==, 2 * (gdouble) sizes[i]);
      write_in_child (x);
      write_in_child (own);
      g_assert_cmpfloat (sum_of (x), ==, 9 * (gdouble) sizes[i]);
      g_assert_cmpfloat (sum_of (own), ==, 2 * (gdouble) sizes[i]);
      share (x); /* nothing happens */
    }
}

static void
views_move_along (void)
{
  g_autoptr (GTorchTensor) x = filled (10, 1);
  g_autoptr (GTorchTensor) part = gtorch_tensor_narrow (x, 0, 2, 3, NULL);

  share (part);
  g_assert_true (gtorch_tensor_is_shared (x));
  g_assert_true (gtorch_tensor_fill_inplace (part, 5, NULL));
  g_assert_cmpfloat (sum_of (x), ==, 22);
  write_in_child (part);
  g_assert_cmpfloat (sum_of (x), ==, 34);
}

static void
a_handle_gives_the_same_memory (void)
{
  g_autoptr (GTorchTensor) x = filled (12, 1);
  g_autoptr (GTorchTensor) table = gtorch_tensor_view (x, GTORCH_SHAPE (3, 4), NULL);
  g_autoptr (GTorchTensor) turned = gtorch_tensor_transpose (table, 0, 1, NULL);
  g_autoptr (GTorchTensor) column = gtorch_tensor_select (turned, 0, 1, NULL);
  g_autoptr (GTorchTensorHandle) handle = handed_over (column);
  g_autoptr (GTorchTensor) other = opened (handle);
  g_autoptr (GTorchTensor) again = opened (handle);
  g_autoptr (GTorchTensorHandle) further = NULL;
  g_autoptr (GTorchTensor) third = NULL;

  g_assert_cmpint (gtorch_tensor_get_numel (other), ==, 3);
  g_assert_false (gtorch_tensor_is_contiguous (other));
  g_assert_true (gtorch_tensor_fill_inplace (other, 3, NULL));
  g_assert_cmpfloat (sum_of (x), ==, 18);
  g_assert_cmpuint (gtorch_tensor_get_data_ptr (other), ==, gtorch_tensor_get_data_ptr (again));
  g_clear_object (&x);
  g_clear_object (&table);
  g_clear_object (&turned);
  g_clear_object (&column);
  g_assert_cmpfloat (sum_of (other), ==, 9); /* whoever has it keeps it */
  further = handed_over (other);
  third = opened (further);
  g_assert_true (gtorch_tensor_fill_inplace (third, 4, NULL));
  g_assert_cmpfloat (sum_of (again), ==, 12);
}

static void
tensors_without_elements_have_handles (void)
{
  g_autoptr (GTorchTensor) x = filled (0, 1);
  g_autoptr (GTorchTensorHandle) handle = handed_over (x);
  g_autoptr (GTorchTensor) other = opened (handle);

  g_assert_cmpint (gtorch_tensor_get_numel (other), ==, 0);
  g_assert_true (gtorch_tensor_share_memory (x, NULL));
}

static guint
count_fds (void)
{
  g_autoptr (GDir) folder = g_dir_open ("/proc/self/fd", 0, NULL);
  guint n = 0;

  while (g_dir_read_name (folder) != NULL)
    n++;
  return n;
}

static void
nothing_is_left_open (void)
{
  const guint before = count_fds ();
  guint i;

  for (i = 0; i < 1000; i++)
    {
      g_autoptr (GTorchTensor) x = filled (100 + 3000 * (i % 2), 1);
      g_autoptr (GTorchTensorHandle) handle = handed_over (x);
      g_autoptr (GTorchTensor) other = opened (handle);

      g_assert_cmpint (gtorch_tensor_get_numel (other), ==, gtorch_tensor_get_numel (x));
    }
  g_assert_cmpuint (count_fds (), ==, before);
}

/* --- errors --- */

static void
assert_refused (GTorchTensor *x, GTorchError code, const gchar *text)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_tensor_handle_new (x, &error));
  g_assert_error (error, GTORCH_ERROR, code);
  if (strstr (error->message, text) == NULL)
    g_error ("“%s” is not in “%s”", text, error->message);
}

static void
what_cannot_be_shared_is_an_error (void)
{
  g_autoptr (GTorchTensor) x = filled (2, 1);
  g_autoptr (GTorchTensor) foreign = NULL;
  g_autoptr (GTorchTensor) lent = NULL;
  g_autoptr (GTorchSharedMemory) memory = gtorch_shared_memory_new (64, NULL);
  gpointer managed = gtorch_tensor_to_dlpack (x, FALSE, FALSE, NULL, NULL);
  g_autoptr (GError) error = NULL;

  foreign = gtorch_tensor_new_from_dlpack (managed, FALSE, &error);
  g_assert_no_error (error);
  g_assert_false (gtorch_tensor_share_memory (foreign, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_assert_cmpstr (error->message, ==,
                   "share_memory: tensor of shape [2] on cpu: the memory is pinned, or not the "
                   "library's own, and others would not see it move: clone the tensor");
  assert_refused (foreign, GTORCH_ERROR_NOT_SUPPORTED, "clone the tensor");
  lent = gtorch_shared_memory_make_tensor (memory, 0, GTORCH_DTYPE_INT8, GTORCH_SHAPE (4), NULL);
  g_assert_true (gtorch_tensor_is_shared (lent));
  assert_refused (lent, GTORCH_ERROR_NOT_SUPPORTED, "is used for other tensors later");
  gtorch_tensor_set_requires_grad (x, TRUE, NULL);
  assert_refused (x, GTORCH_ERROR_AUTOGRAD, "would lose it");
  g_clear_object (&foreign);
  gtorch_tensor_release (x);
  assert_refused (x, GTORCH_ERROR_RELEASED, "released");
}

static void
damaged_handles_are_errors (void)
{
  g_autoptr (GTorchTensor) x = filled (100, 1);
  g_autoptr (GTorchTensorHandle) handle = gtorch_tensor_handle_new (x, NULL);
  gsize n, size, i;
  const gint *fds = gtorch_tensor_handle_get_fds (handle, &n);
  const guint8 *data = g_bytes_get_data (gtorch_tensor_handle_get_bytes (handle), &size);
  gint file = memfd_create ("other", MFD_CLOEXEC);
  g_autoptr (GTorchTensorHandle) wrong = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_cmpuint (n, ==, 1);
  g_assert_null (gtorch_tensor_handle_new_from_bytes (gtorch_tensor_handle_get_bytes (handle), NULL,
                                                      0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
  g_clear_error (&error);
  wrong = gtorch_tensor_handle_new_from_bytes (gtorch_tensor_handle_get_bytes (handle), &file, 1,
                                               &error);
  g_assert_no_error (error);
  g_assert_null (gtorch_tensor_handle_open (wrong, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
  close (file);
  for (i = 0; i < 8 * size; i++)
    {
      g_autofree guint8 *copy = g_memdup2 (data, size);
      g_autoptr (GBytes) bytes = NULL;
      g_autoptr (GTorchTensorHandle) changed = NULL;
      g_autoptr (GTorchTensor) y = NULL;

      copy[i / 8] ^= (guint8) (1u << (i % 8));
      bytes = g_bytes_new (copy, size);
      changed = gtorch_tensor_handle_new_from_bytes (bytes, fds, n, NULL);
      y = changed != NULL ? gtorch_tensor_handle_open (changed, NULL) : NULL;
      if (y != NULL && gtorch_dtype_is_floating_point (gtorch_tensor_get_dtype (y)))
        sum_of (y); /* reads all elements */
    }
}

static void
bare_handles_are_errors (void)
{
  g_autoptr (GTorchTensorHandle) bare = g_object_new (GTORCH_TYPE_TENSOR_HANDLE, NULL);
  g_autoptr (GError) error = NULL;
  gsize n = 1;

  g_assert_null (gtorch_tensor_handle_get_bytes (bare));
  g_assert_null (gtorch_tensor_handle_get_fds (bare, &n));
  g_assert_cmpuint (n, ==, 0);
  g_assert_null (gtorch_tensor_handle_open (bare, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
}

#define TEST(name) g_test_add_func ("/GTorch/TensorHandle/" #name, name)

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  TEST (a_forked_child_writes_to_shared_memory);
  TEST (views_move_along);
  TEST (a_handle_gives_the_same_memory);
  TEST (tensors_without_elements_have_handles);
  TEST (nothing_is_left_open);
  TEST (what_cannot_be_shared_is_an_error);
  TEST (damaged_handles_are_errors);
  TEST (bare_handles_are_errors);
  return g_test_run ();
}
