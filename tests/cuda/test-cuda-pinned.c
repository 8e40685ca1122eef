/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Pinned memory, and asynchronous copies from and to it. */

#include "config.h"

#include <gio/gio.h>

#include "cuda-test.h"

#define N       1000
#define N_SEEDS 20

static GTorchHostAllocator *
allocator (void)
{
  return gtorch_host_allocator_get_default ();
}

static GTorchTensor *
pinned_full (gint64 n, gdouble value)
{
  GError *error = NULL;
  g_autoptr (GTorchTensor) x =
      gtorch_full (GTORCH_SHAPE (n), value, GTORCH_DTYPE_FLOAT64, gtorch_device_cpu (), &error);
  GTorchTensor *result = gtorch_tensor_pin_memory (x, &error);

  g_assert_no_error (error);
  g_assert_true (result != x && gtorch_tensor_is_pinned (result) && !gtorch_tensor_is_pinned (x));
  return result;
}

static GTorchTensor *
gpu_ramp (gint64 n)
{
  return gtorch_tensor_wrap (ramp_1d (gpu (0), GTORCH_DTYPE_FLOAT64, n));
}

static void
copy (GTorchTensor *to, GTorchTensor *from)
{
  GError *error = NULL;

  gtorch_tensor_copy_inplace (to, from, TRUE, &error);
  g_assert_no_error (error);
}

static gdouble
raw (GTorchTensor *x, gint64 i)
{
  return ((gdouble *) gtorch_impl_data (gtorch_tensor_get_impl (x)))[i];
}

static void
assert_is (GTorchTensor *x, gint64 i, gdouble value)
{
  GError *error = NULL;
  gsize n;
  g_autofree gdouble *values = gtorch_tensor_to_doubles (x, &n, &error);

  g_assert_no_error (error);
  g_assert_cmpint (i, <, (gint64) n);
  g_assert_cmpfloat (values[i], ==, value);
}

static void
settle (void)
{
  GError *error = NULL;

  fake_cuda_hold (FALSE);
  gtorch_device_synchronize (gpu (0), NULL, &error);
  g_assert_no_error (error);
  gtorch_host_allocator_trim (allocator ());
}

static gpointer
let_go (gpointer data)
{
  g_usleep (G_USEC_PER_SEC / 20);
  fake_cuda_hold (FALSE);
  return NULL;
}

/* --- from a GPU --- */

static void
a_copy_to_it_returns_at_once (void)
{
  g_autoptr (GTorchTensor) x = gpu_ramp (N);
  g_autoptr (GTorchTensor) host = pinned_full (N, -1);
  g_autoptr (GThread) thread = NULL;

  settle ();
  fake_cuda_hold (TRUE);
  copy (host, x);
  g_assert_cmpuint (fake_cuda_get_pending (), >, 0);
  g_assert_cmpfloat (raw (host, N - 1), ==, -1);
  thread = g_thread_new ("let-go", let_go, NULL);
  assert_is (host, N - 1, N - 1); /* this waits */
  g_thread_join (g_steal_pointer (&thread));
  assert_no_misuse ();
}

typedef gdouble (*Read) (GTorchTensor *host, GError **error);

static gdouble
read_item (GTorchTensor *host, GError **error)
{
  g_autoptr (GTorchTensor) last = gtorch_tensor_slice (host, 0, N - 1, N, 1, error);

  return gtorch_tensor_item_double (last, error);
}

static gdouble
read_bytes (GTorchTensor *host, GError **error)
{
  g_autoptr (GBytes) bytes = gtorch_tensor_get_bytes (host, error);

  return ((const gdouble *) g_bytes_get_data (bytes, NULL))[N - 1];
}

static gdouble
read_text (GTorchTensor *host, GError **error)
{
  g_autoptr (GTorchTensor) last = gtorch_tensor_slice (host, 0, N - 1, N, 1, error);
  g_autofree gchar *text = gtorch_tensor_to_string (last);

  return strstr (text, "999") != NULL ? N - 1 : -1;
}

static gdouble
read_dlpack (GTorchTensor *host, GError **error)
{
  gpointer exported = gtorch_tensor_to_dlpack (host, FALSE, FALSE, NULL, error);
  g_autoptr (GTorchTensor) imported = gtorch_tensor_new_from_dlpack (exported, FALSE, error);

  return raw (imported, N - 1);
}

static gdouble
read_by_operation (GTorchTensor *host, GError **error)
{
  g_autoptr (GTorchTensor) sum = gtorch_tensor_add (host, host, 1, error);

  return raw (sum, N - 1) / 2;
}

static gdouble
read_by_copy (GTorchTensor *host, GError **error)
{
  g_autoptr (GTorchTensor) clone = gtorch_tensor_empty_like (host, GTORCH_DTYPE_NONE, error);

  gtorch_tensor_copy_inplace (clone, host, TRUE, error);
  return raw (clone, N - 1);
}

static gdouble
read_on_a_stream (GTorchTensor *host, GError **error)
{
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gtorch_device_cpu (), 0, error);
  g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);
  g_autoptr (GTorchTensor) sum = gtorch_tensor_add (host, host, 1, error);

  g_assert_true (gtorch_stream_synchronize (stream, NULL, error));
  return raw (sum, N - 1) / 2;
}

static gdouble
read_after_writing (GTorchTensor *host, GError **error)
{
  gtorch_tensor_add_inplace (host, host, 1, error);
  return raw (host, N - 1) / 2;
}

static gdouble
read_back_on_the_gpu (GTorchTensor *host, GError **error)
{
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gpu (0), 0, error);
  g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);
  g_autoptr (GTorchTensor) y =
      gtorch_empty (GTORCH_SHAPE (N), GTORCH_DTYPE_FLOAT64, gpu (0), error);
  g_autoptr (GTorchTensor) plain = NULL;

  gtorch_tensor_copy_inplace (y, host, TRUE, error);
  plain = gtorch_tensor_to_device (y, gtorch_device_cpu (), FALSE, error);
  return raw (plain, N - 1);
}

static void
early_reads_wait (void)
{
  static const Read reads[] = { read_item,        read_bytes,         read_text,
                                read_dlpack,      read_by_operation,  read_by_copy,
                                read_on_a_stream, read_after_writing, read_back_on_the_gpu };
  guint seed, i;

  for (i = 0; i < G_N_ELEMENTS (reads); i++)
    for (seed = 1; seed <= N_SEEDS; seed++)
      {
        g_autoptr (GTorchTensor) x = gpu_ramp (N);
        g_autoptr (GTorchTensor) host = pinned_full (N, -1);
        g_autoptr (GThread) thread = NULL;
        GError *error = NULL;

        fake_cuda_set_seed (seed);
        if (seed == N_SEEDS)
          {
            settle ();
            fake_cuda_hold (TRUE);
            thread = g_thread_new ("let-go", let_go, NULL);
          }
        copy (host, x);
        g_clear_object (&x);
        g_assert_cmpfloat (reads[i](host, &error), ==, N - 1);
        g_assert_no_error (error);
        if (thread != NULL)
          g_thread_join (g_steal_pointer (&thread));
      }
  settle ();
  assert_no_misuse ();
}

static void
copies_to_parts_do_not_wait_for_each_other (void)
{
  g_autoptr (GTorchTensor) x = gpu_ramp (N);
  g_autoptr (GTorchTensor) host = pinned_full (2 * N, -1);
  g_autoptr (GTorchTensor) first = gtorch_tensor_slice (host, 0, 0, N, 1, NULL);
  g_autoptr (GTorchTensor) second = gtorch_tensor_slice (host, 0, N, 2 * N, 1, NULL);

  settle ();
  fake_cuda_hold (TRUE);
  copy (first, x);
  copy (second, x);
  fake_cuda_hold (FALSE);
  assert_is (host, N - 1, N - 1);
  assert_is (host, 2 * N - 1, N - 1);
}

static void
non_blocking_moves_do_not_wait (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = gpu_ramp (N);
  g_autoptr (GTorchTensor) host = pinned_full (N, 3);
  g_autoptr (GTorchTensor) same = NULL;
  g_autoptr (GTorchTensor) other = NULL;
  g_autoptr (GTorchTensor) there = NULL;
  g_autoptr (GTorchTensor) plain = NULL;
  guint64 limit = gtorch_host_allocator_get_limit (allocator ());

  settle ();
  fake_cuda_hold (TRUE);
  same = gtorch_tensor_to_device (x, gtorch_device_cpu (), TRUE, &error);
  g_assert_no_error (error);
  other = gtorch_tensor_to (x, GTORCH_DTYPE_INT32, gtorch_device_cpu (), TRUE, FALSE, &error);
  g_assert_no_error (error);
  there = gtorch_tensor_to_device (host, gpu (0), TRUE, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (fake_cuda_get_pending (), >=, 3);
  fake_cuda_hold (FALSE);
  g_assert_true (gtorch_tensor_is_pinned (same) && gtorch_tensor_is_pinned (other));
  g_assert_cmpint (gtorch_tensor_get_dtype (other), ==, GTORCH_DTYPE_INT32);
  assert_is (same, N - 1, N - 1);
  assert_is (other, N - 1, N - 1);
  assert_is (there, N - 1, 3);

  /* where there is no pinned memory left */
  gtorch_host_allocator_set_limit (allocator (), 1);
  plain = gtorch_tensor_to_device (x, gtorch_device_cpu (), TRUE, &error);
  gtorch_host_allocator_set_limit (allocator (), limit);
  g_assert_no_error (error);
  g_assert_false (gtorch_tensor_is_pinned (plain));
  g_assert_cmpfloat (raw (plain, N - 1), ==, N - 1);
}

/* Neither of another dtype nor with gaps: the copy is done when it returns. */
static void
other_copies_wait (void)
{
  g_autoptr (GTorchTensor) x = gpu_ramp (N);
  g_autoptr (GTorchTensor) host = pinned_full (2 * N, -1);
  g_autoptr (GTorchTensor) gaps = gtorch_tensor_slice (host, 0, 0, 2 * N, 2, NULL);

  copy (gaps, x);
  g_assert_cmpfloat (raw (host, 2 * N - 2), ==, N - 1);
  g_assert_cmpfloat (raw (host, 2 * N - 1), ==, -1);
  gtorch_tensor_copy_inplace (gaps, x, FALSE, NULL);
  g_assert_cmpuint (fake_cuda_get_pending (), ==, 0);
}

/* --- to a GPU --- */

static void
memory_is_not_reused_before_it_was_read (void)
{
  g_autoptr (GTorchTensor) y = gtorch_empty (GTORCH_SHAPE (N), GTORCH_DTYPE_FLOAT64, gpu (0), NULL);
  g_autoptr (GTorchTensor) host = NULL;
  g_autoptr (GTorchTensor) other = NULL;
  g_autoptr (GTorchTensor) third = NULL;
  guint64 before;
  gpointer data;

  settle ();
  host = pinned_full (N, 3);
  data = gtorch_impl_data (gtorch_tensor_get_impl (host));
  before = gtorch_host_allocator_get_num_allocs (allocator ());
  fake_cuda_hold (TRUE);
  copy (y, host);
  g_assert_cmpuint (fake_cuda_get_pending (), >, 0);
  g_clear_object (&host);
  other = pinned_full (N, 5);
  g_assert_cmpuint (gtorch_host_allocator_get_num_allocs (allocator ()), ==, before + 1);
  gtorch_host_allocator_trim (allocator ()); /* does not free it either */
  fake_cuda_hold (FALSE);
  assert_is (y, N - 1, 3);

  third = pinned_full (N, 7); /* now it does */
  g_assert_cmpuint (gtorch_host_allocator_get_num_allocs (allocator ()), ==, before + 1);
  g_assert_true (gtorch_impl_data (gtorch_tensor_get_impl (third)) == data);
  assert_is (other, N - 1, 5);
  assert_no_misuse ();
}

static void
operations_do_not_change_what_is_being_copied (void)
{
  guint seed;

  for (seed = 1; seed <= N_SEEDS; seed++)
    {
      g_autoptr (GTorchTensor) y =
          gtorch_empty (GTORCH_SHAPE (N), GTORCH_DTYPE_FLOAT64, gpu (0), NULL);
      g_autoptr (GTorchTensor) host = pinned_full (N, 3);

      fake_cuda_set_seed (seed);
      copy (y, host);
      gtorch_tensor_fill_inplace (host, 9, NULL);
      assert_is (y, N - 1, 3);
      gtorch_tensor_copy_inplace (y, host, FALSE, NULL);
      memset (gtorch_impl_data (gtorch_tensor_get_impl (host)), 0, N * sizeof (gdouble));
      assert_is (y, N - 1, 9);
    }
}

/* --- the allocator --- */

static void
the_limit_holds (void)
{
  g_autoptr (GTorchTensor) x = gtorch_zeros (GTORCH_SHAPE (512), GTORCH_DTYPE_FLOAT64, NULL, NULL);
  g_autoptr (GTorchTensor) first = NULL;
  g_autoptr (GTorchTensor) second = NULL;
  g_autoptr (GError) error = NULL;
  guint notified = 0;

  settle ();
  g_assert_cmpuint (gtorch_host_allocator_get_reserved (allocator ()), ==, 0);
  g_signal_connect_swapped (allocator (), "notify::limit", G_CALLBACK (g_atomic_int_inc),
                            &notified);
  g_object_set (allocator (), "limit", G_GUINT64_CONSTANT (10000), NULL);
  g_assert_cmpuint (notified, ==, 1);
  first = pinned_full (512, 1);
  second = pinned_full (10, 1);
  g_assert_cmpuint (gtorch_host_allocator_get_allocated (allocator ()), ==, 8192);
  g_assert_null (gtorch_tensor_pin_memory (x, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
  g_assert_cmpstr (error->message, ==,
                   "pin_memory: 4096 bytes of pinned memory cannot be allocated: the “limit” of "
                   "the host "
                   "allocator is 10000, and 8192 are reserved, 8192 of them by tensors");
  g_clear_error (&error);
  g_clear_object (&first);
  g_clear_object (&second);
  g_assert_cmpuint (gtorch_host_allocator_get_allocated (allocator ()), ==, 0);
  g_assert_cmpuint (gtorch_host_allocator_get_reserved (allocator ()), ==, 8192);
  first = pinned_full (1024, 1); /* cached blocks are freed to make room */
  g_assert_cmpuint (gtorch_host_allocator_get_reserved (allocator ()), ==, 8192);
  g_clear_object (&first);
  gtorch_host_allocator_set_limit (allocator (), 100);
  g_assert_null (gtorch_tensor_pin_memory (x, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
  gtorch_host_allocator_set_limit (allocator (), 0);
  g_signal_handlers_disconnect_by_data (allocator (), &notified);
  settle ();
  g_assert_cmpuint (gtorch_host_allocator_get_reserved (allocator ()), ==, 0);
}

/* "pinned_use_cuda_host_register" */
static void
memory_of_the_system_can_be_shown_to_the_driver (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) small = NULL;
  g_autoptr (GTorchTensor) large = NULL;
  g_autoptr (GTorchTensor) x = gpu_ramp (1 << 18);
  FakeCudaAccounts before, after;

  gtorch_host_allocator_trim (allocator ());
  fake_cuda_get_accounts (&before);
  fake_cuda_reset_calls ();
  g_assert_true (gtorch_allocator_configure (gpu_allocator (),
                                             "pinned_use_cuda_host_register:True,pinned_num_"
                                             "register_threads:8",
                                             &error));
  small = pinned_full (10, 3); /* fewer pages than threads */
  large = pinned_full (1 << 18, 3);
  g_assert_cmpuint (fake_cuda_get_calls ("cuMemHostRegister"), ==, 2);
  g_assert_cmpuint (fake_cuda_get_calls ("cuMemHostAlloc"), ==, 0);
  assert_is (small, 9, 3);
  copy (large, x);
  assert_is (large, (1 << 18) - 1, (1 << 18) - 1);

  fake_cuda_fail ("cuMemHostRegister", 1, CUDA_ERROR_NOT_SUPPORTED);
  g_clear_object (&x);
  x = gtorch_zeros (GTORCH_SHAPE (1 << 20), GTORCH_DTYPE_FLOAT64, gtorch_device_cpu (), NULL);
  g_assert_null (gtorch_tensor_pin_memory (x, &error));
  g_assert_nonnull (strstr (error->message, "cuMemHostRegister"));
  g_assert_true (fake_cuda_clear_faults ());

  /* memory is unpinned in the way in which it was pinned */
  g_assert_true (
      gtorch_allocator_configure (gpu_allocator (), "pinned_use_cuda_host_register:False", NULL));
  g_clear_object (&small);
  g_clear_object (&large);
  gtorch_host_allocator_trim (allocator ());
  fake_cuda_get_accounts (&after);
  g_assert_cmpuint (after.pinned, ==, before.pinned);
  g_assert_cmpuint (after.misuses, ==, before.misuses);
}

static void
low_memory_trims (void)
{
  g_autoptr (GMemoryMonitor) monitor = g_memory_monitor_dup_default ();
  gint i;

  g_object_unref (pinned_full (N, 1));
  g_assert_cmpuint (gtorch_host_allocator_get_reserved (allocator ()), >, 0);
  for (i = 0; i < 1000 && gtorch_host_allocator_get_reserved (allocator ()) > 0; i++)
    {
      g_signal_emit_by_name (monitor, "low-memory-warning", G_MEMORY_MONITOR_WARNING_LEVEL_LOW);
      g_usleep (10000);
    }
  g_assert_cmpuint (gtorch_host_allocator_get_reserved (allocator ()), ==, 0);
}

/* --- pinning --- */

static void
pinned_tensors_are_returned_unchanged (void)
{
  const gint64 shape[] = { 20, 30 };
  g_autoptr (GTorchTensor) x =
      gtorch_tensor_wrap (ramp (gtorch_device_cpu (), GTORCH_DTYPE_FLOAT64, shape, 2));
  g_autoptr (GTorchTensor) turned = gtorch_tensor_transpose (x, 0, 1, NULL);
  g_autoptr (GTorchTensor) host = gtorch_tensor_pin_memory (turned, NULL);
  g_autoptr (GTorchTensor) again = gtorch_tensor_pin_memory (host, NULL);
  g_autoptr (GTorchTensor) row = gtorch_tensor_select (host, 0, 1, NULL);
  g_autoptr (GTorchTensor) sum = gtorch_tensor_add (host, host, 1, NULL);
  g_autoptr (GTorchTensor) loss = NULL;
  g_autoptr (GTorchTensor) grad = NULL;
  gboolean pinned = FALSE;

  g_assert_true (again == host);
  g_object_get (row, "pinned", &pinned, NULL);
  g_assert_true (pinned);
  g_assert_false (gtorch_tensor_is_pinned (sum));
  g_assert_true (gtorch_tensor_is_contiguous (host));
  assert_is (host, 1, 30);

  g_assert_true (gtorch_tensor_set_requires_grad (x, TRUE, NULL));
  g_clear_object (&host);
  host = gtorch_tensor_pin_memory (x, NULL);
  loss = gtorch_tensor_sum (host, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL);
  g_assert_true (gtorch_tensor_backward (loss, NULL, FALSE, FALSE, NULL));
  grad = gtorch_tensor_get_grad (x);
  assert_is (grad, 599, 1);
}

static void
impossible_pinning_is_an_error (void)
{
  g_autoptr (GTorchTensor) x = gpu_ramp (3);
  g_autoptr (GTorchTensor) gone = pinned_full (3, 1);
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_tensor_pin_memory (x, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE);
  g_assert_nonnull (strstr (error->message, "pin_memory: the tensor of shape [3] is on cuda:0"));
  g_clear_error (&error);
  g_assert_false (gtorch_tensor_is_pinned (x));
  gtorch_tensor_release (gone);
  g_assert_null (gtorch_tensor_pin_memory (gone, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED);
  g_assert_false (gtorch_tensor_is_pinned (gone));
}

static void
without_a_driver_pinning_is_an_error (void)
{
  g_autoptr (GTorchTensor) x = NULL;
  g_autoptr (GError) error = NULL;

  if (!g_test_subprocess ())
    {
      g_autofree gchar *driver = g_strdup (g_getenv ("GTORCH_CUDA_DRIVER"));

      g_setenv ("GTORCH_CUDA_DRIVER", "/nowhere/libcuda.so.1", TRUE);
      g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
      g_setenv ("GTORCH_CUDA_DRIVER", driver, TRUE);
      g_test_trap_assert_passed ();
      return;
    }
  x = gtorch_zeros (GTORCH_SHAPE (3), GTORCH_DTYPE_FLOAT64, gtorch_device_cpu (), NULL);
  g_assert_null (gtorch_tensor_pin_memory (x, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE);
  g_assert_true (g_str_has_prefix (error->message, "pin_memory: "));
  g_assert_nonnull (strstr (error->message, "/nowhere/libcuda.so.1"));
  g_assert_cmpuint (gtorch_host_allocator_get_reserved (allocator ()), ==, 0);
}

/* --- faults --- */

static gboolean
go_there_and_back (GError **error)
{
  g_autoptr (GTorchTensor) x =
      gtorch_full (GTORCH_SHAPE (N), 3, GTORCH_DTYPE_FLOAT64, gtorch_device_cpu (), error);
  g_autoptr (GTorchTensor) host = gtorch_tensor_pin_memory (x, error);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) back = NULL;
  gsize n;
  g_autofree gdouble *values = NULL;

  if (host == NULL)
    return FALSE;
  y = gtorch_empty (GTORCH_SHAPE (N), GTORCH_DTYPE_FLOAT64, gpu (0), error);
  if (y == NULL || !gtorch_tensor_copy_inplace (y, host, TRUE, error))
    return FALSE;
  g_clear_object (&host);
  back = gtorch_tensor_pin_memory (x, error);
  if (back == NULL || !gtorch_tensor_copy_inplace (back, y, TRUE, error))
    return FALSE;
  values = gtorch_tensor_to_doubles (back, &n, error);
  if (values == NULL)
    return FALSE;
  g_assert_cmpfloat (values[0], ==, 3);
  g_assert_cmpfloat (values[N - 1], ==, 3);
  return TRUE;
}

static void
any_call_may_fail (void)
{
  FakeCudaAccounts accounts;
  guint nth, n_faults = 0, before;
  gboolean came_up = TRUE;

  settle ();
  fake_cuda_get_accounts (&accounts);
  before = accounts.pinned;
  for (nth = 1; came_up; nth++)
    {
      g_autoptr (GError) error = NULL;
      gboolean result;

      fake_cuda_set_seed (nth);
      fake_cuda_fail (NULL, nth, CUDA_ERROR_OUT_OF_MEMORY);
      result = go_there_and_back (&error);
      g_assert_cmpint (result, ==, error == NULL);
      gtorch_host_allocator_trim (allocator ());
      came_up = fake_cuda_clear_faults ();
      n_faults += !result;
      g_clear_error (&error);
      settle ();
      g_assert_true (go_there_and_back (&error));
      settle ();
    }
  g_test_message ("%u calls, %u errors", nth, n_faults);
  g_assert_cmpuint (n_faults, >=, 3);
  g_assert_cmpuint (gtorch_host_allocator_get_allocated (allocator ()), ==, 0);
  g_assert_cmpuint (gtorch_host_allocator_get_reserved (allocator ()), ==, 0);
  fake_cuda_get_accounts (&accounts);
  g_assert_cmpuint (accounts.pinned, ==, before);
  assert_no_misuse ();
}

static void
a_copy_that_failed_is_never_read (void)
{
  g_autoptr (GTorchTensor) x = gpu_ramp (N);
  g_autoptr (GTorchTensor) host = pinned_full (N, -1);
  g_autoptr (GError) error = NULL;
  guint i;

  settle ();
  fake_cuda_set_seed (3);
  fake_cuda_break (0, 1, CUDA_ERROR_ILLEGAL_ADDRESS);
  fake_cuda_hold (TRUE);
  copy (host, x);
  fake_cuda_hold (FALSE);
  for (i = 0; i < 3; i++)
    {
      gsize n;
      g_autofree gdouble *values = gtorch_tensor_to_doubles (host, &n, &error);

      g_assert_null (values);
      g_assert_nonnull (error);
      g_clear_error (&error);
    }
  g_clear_object (&host);
  g_clear_object (&x);
  fake_cuda_clear_faults ();
  gtorch_device_forget_failure (gpu (0));
  gtorch_device_synchronize (gpu (0), NULL, NULL);
  settle ();
}

/* --- threads --- */

static gpointer
copy_over_and_over (gpointer data)
{
  guint i;

  for (i = 0; i < 200; i++)
    {
      g_autoptr (GError) error = NULL;

      g_assert_true (go_there_and_back (&error));
    }
  return NULL;
}

static void
threads_share_the_allocator (void)
{
  GThread *threads[4];
  guint i;

  fake_cuda_set_seed (5);
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("copies", copy_over_and_over, NULL);
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
  settle ();
  g_assert_cmpuint (gtorch_host_allocator_get_reserved (allocator ()), ==, 0);
  assert_no_misuse ();
}

#define TEST(name) g_test_add_func ("/GTorchCudaPinned/" #name, name)

gint
main (gint argc, gchar **argv)
{
  gint result;

  g_test_init (&argc, &argv, NULL);
  TEST (a_copy_to_it_returns_at_once);
  TEST (early_reads_wait);
  TEST (copies_to_parts_do_not_wait_for_each_other);
  TEST (non_blocking_moves_do_not_wait);
  TEST (other_copies_wait);
  TEST (memory_is_not_reused_before_it_was_read);
  TEST (operations_do_not_change_what_is_being_copied);
  TEST (the_limit_holds);
  TEST (memory_of_the_system_can_be_shown_to_the_driver);
  TEST (low_memory_trims);
  TEST (pinned_tensors_are_returned_unchanged);
  TEST (impossible_pinning_is_an_error);
  TEST (without_a_driver_pinning_is_an_error);
  TEST (threads_share_the_allocator);
  TEST (any_call_may_fail);
  TEST (a_copy_that_failed_is_never_read);
  result = g_test_run ();
  fake_cuda_hold (FALSE);
  return result;
}
