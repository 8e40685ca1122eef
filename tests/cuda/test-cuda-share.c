/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Tensors on GPUs for other processes. The other process is this program, too, with a fake driver of its
 * own: it does what messages over a socket say. */

#include "config.h"

#include <gtorch/elements/gtorch-loan-private.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda-test.h"
#include "handle-messages.h"

#define SOCKET  3 /* of the other process */
#define PATIENT (10 * G_USEC_PER_SEC)

static const gchar *program;

static gdouble
sum_of (GTorchTensor *x)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) host = gtorch_tensor_to_device (x, gtorch_device_cpu (), FALSE, &error);
  g_autoptr (GTorchTensor) sum = NULL;

  g_assert_no_error (error);
  sum = gtorch_tensor_sum (host, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  g_assert_no_error (error);
  return gtorch_tensor_item_double (sum, &error);
}

static GTorchTensor *
filled (guint device, gint64 n, gdouble value)
{
  GError *error = NULL;
  GTorchTensor *x = gtorch_full (&n, 1, value, GTORCH_DTYPE_FLOAT32, gpu (device), &error);

  g_assert_no_error (error);
  return x;
}

/* --- the other process --- */

static void answer (const gchar *format, ...) G_GNUC_PRINTF (1, 2);

static void
answer (const gchar *format, ...)
{
  g_autofree gchar *text = NULL;
  va_list args;

  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  put (SOCKET, text, strlen (text), NULL, 0);
}

static void
serve_one (Message *message, GPtrArray *tensors)
{
  g_autoptr (GTorchTensorHandle) handle = NULL;
  g_autoptr (GTorchTensor) x = NULL;
  g_autoptr (GError) error = NULL;
  GTorchTensor *last = tensors->len > 0 ? tensors->pdata[tensors->len - 1] : NULL;
  FakeCudaAccounts accounts;

  switch (message->data[0])
    {
    case 'o': /* opens a tensor */
      handle = handle_of (message, &error);
      x = handle != NULL ? gtorch_tensor_handle_open (handle, &error) : NULL;
      if (x != NULL)
        {
          answer ("open on %s", gtorch_device_name (gtorch_tensor_get_device (x)));
          g_ptr_array_add (tensors, g_steal_pointer (&x));
        }
      else
        answer ("%s", error->message);
      break;
    case 's':
      answer ("%g", sum_of (last));
      break;
    case 'f': /* fills the last one */
      gtorch_tensor_fill_inplace (last, message->data[1] - '0', &error);
      gtorch_device_synchronize (gtorch_tensor_get_device (last), NULL, &error);
      answer ("%s", error == NULL ? "filled" : error->message);
      break;
    case 'c': /* drops the last one */
      g_ptr_array_set_size (tensors, (gint) tensors->len - 1);
      answer ("closed");
      break;
    case 'a':
      answer ("%d", tensors->len > 1
                        && gtorch_tensor_get_data_ptr (tensors->pdata[0])
                               == gtorch_tensor_get_data_ptr (tensors->pdata[1]));
      break;
    case 'r': /* shares the last one again */
      handle = gtorch_tensor_handle_new (last, &error);
      answer ("%s", error != NULL ? error->message : "shared");
      break;
    case 'x': /* shares one of its own */
      x = filled (0, 1000, 3);
      handle = gtorch_tensor_handle_new (x, &error);
      g_assert_no_error (error);
      put_handle (SOCKET, 'o', handle);
      g_ptr_array_add (tensors, g_steal_pointer (&x));
      break;
    case 'l':
      answer ("%u", gtorch_loans_count ());
      break;
    default:
      fake_cuda_get_accounts (&accounts);
      answer ("%u %u %u %u", accounts.handles, accounts.mappings, accounts.reservations,
              accounts.misuses);
    }
}

static int
serve (void)
{
  g_autoptr (GPtrArray) tensors = g_ptr_array_new_with_free_func (g_object_unref);
  Message message;

  while (get (SOCKET, &message))
    serve_one (&message, tensors);
  assert_no_misuse ();
  return 0;
}

typedef struct
{
  GSubprocess *process;
  gint socket;
} Other;

static Other
start_other (const gchar *visible)
{
  g_autoptr (GSubprocessLauncher) launcher = g_subprocess_launcher_new (G_SUBPROCESS_FLAGS_NONE);
  GError *error = NULL;
  gint ends[2];
  Other other;

  g_assert_cmpint (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), ==, 0);
  g_subprocess_launcher_take_fd (launcher, ends[1], SOCKET);
  if (visible != NULL)
    g_subprocess_launcher_setenv (launcher, "CUDA_VISIBLE_DEVICES", visible, TRUE);
  other.socket = ends[0];
  other.process = g_subprocess_launcher_spawn (launcher, &error, program, "--serve", NULL);
  g_assert_no_error (error);
  return other;
}

static void
tell (Other *other, const gchar *command)
{
  put (other->socket, command, strlen (command), NULL, 0);
}

static void
expect (Other *other, const gchar *text)
{
  Message message;

  g_assert_true (get (other->socket, &message));
  g_assert_cmpstr ((const gchar *) message.data, ==, text);
}

static void
ask (Other *other, const gchar *command, const gchar *text)
{
  tell (other, command);
  expect (other, text);
}

static void
stop_other (Other *other)
{
  close (other->socket);
  g_assert_true (g_subprocess_wait_check (other->process, NULL, NULL));
  g_object_unref (other->process);
}

/* Shares the tensor, and drops the handle as soon as it is sent. */
static void
send_tensor (Other *other, GTorchTensor *x)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensorHandle) handle = gtorch_tensor_handle_new (x, &error);

  g_assert_no_error (error);
  put_handle (other->socket, 'o', handle);
}

static GTorchTensorHandle *
receive (Other *other)
{
  g_autoptr (GError) error = NULL;
  GTorchTensorHandle *handle;
  Message message;

  tell (other, "x");
  g_assert_true (get (other->socket, &message));
  handle = handle_of (&message, &error);
  g_assert_no_error (error);
  return handle;
}

/* Waits until the other processes have given all memory back. */
static void
await_return (void)
{
  const gint64 end = g_get_monotonic_time () + PATIENT;

  while (gtorch_loans_count () > 0)
    {
      g_assert_cmpint (g_get_monotonic_time (), <, end);
      let_gpus_work ();
      g_usleep (1000);
    }
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

/* --- tests --- */

static void
both_processes_have_the_same_memory (void)
{
  Other other = start_other (NULL);
  g_autoptr (GTorchTensor) x = filled (0, 1000, 2);

  g_assert_true (gtorch_tensor_is_shared (x));
  send_tensor (&other, x);
  expect (&other, "open on cuda:0");
  ask (&other, "s", "2000");
  ask (&other, "f7", "filled");
  g_assert_cmpfloat (sum_of (x), ==, 7000);
  gtorch_tensor_fill_inplace (x, 1, NULL);
  gtorch_device_synchronize (gpu (0), NULL, NULL);
  ask (&other, "s", "1000");
  stop_other (&other);
  await_return ();
}

static void
views_and_large_tensors_arrive (void)
{
  Other other = start_other (NULL);
  g_autoptr (GTorchTensor) large = filled (0, 11 * MIB, 0); /* 44 MiB: more than a page */
  g_autoptr (GTorchTensor) part = gtorch_tensor_narrow (large, 0, 10 * MIB, 5, NULL);
  g_autoptr (GTorchTensor) wide = gtorch_tensor_narrow (large, 0, 9 * MIB, 2 * MIB, NULL);
  g_autoptr (GTorchTensor) table = gtorch_tensor_view (wide, GTORCH_SHAPE (2, 1048576), NULL);
  g_autoptr (GTorchTensor) turned = gtorch_tensor_transpose (table, 0, 1, NULL);
  g_autoptr (GTorchTensor) nothing = filled (0, 0, 0);

  g_assert_true (gtorch_tensor_fill_inplace (part, 2, NULL));
  send_tensor (&other, large);
  expect (&other, "open on cuda:0");
  ask (&other, "s", "10");
  send_tensor (&other, part);
  expect (&other, "open on cuda:0");
  ask (&other, "s", "10");
  ask (&other, "f3", "filled");
  send_tensor (&other, turned);
  expect (&other, "open on cuda:0");
  ask (&other, "s", "15");
  g_assert_cmpfloat (sum_of (large), ==, 15);
  send_tensor (&other, nothing);
  expect (&other, "open on cuda:0");
  ask (&other, "s", "0");
  stop_other (&other);
  await_return ();
}

static void
the_other_process_waits_for_the_work (void)
{
  Other other = start_other (NULL);
  g_autoptr (GTorchTensor) x = filled (0, 1000, 2);
  struct pollfd ready = { other.socket, POLLIN, 0 };

  gtorch_device_synchronize (gpu (0), NULL, NULL);
  fake_cuda_hold (TRUE);
  g_assert_true (gtorch_tensor_fill_inplace (x, 5, NULL));
  send_tensor (&other, x);
  expect (&other, "open on cuda:0");
  tell (&other, "s");
  g_assert_cmpint (poll (&ready, 1, 200), ==, 0);
  fake_cuda_hold (FALSE);
  gtorch_device_synchronize (gpu (0), NULL, NULL);
  expect (&other, "5000");
  stop_other (&other);
  await_return ();
}

static void
memory_is_kept_for_the_other_process (void)
{
  Other other = start_other (NULL);
  const gint64 before = gpu_stat (0, "allocated_bytes.all.current");
  GTorchTensor *x = filled (0, 100000, 2);
  g_autoptr (GTorchTensor) next = NULL;

  send_tensor (&other, x);
  expect (&other, "open on cuda:0");
  gtorch_tensor_unref (x);
  g_assert_cmpint (gpu_stat (0, "allocated_bytes.all.current"), >=, before + 400000);
  next = filled (0, 100000, 9);
  gtorch_device_synchronize (gpu (0), NULL, NULL);
  ask (&other, "s", "200000");
  ask (&other, "c", "closed");
  await_return ();
  g_clear_object (&next);
  gtorch_device_synchronize (gpu (0), NULL, NULL);
  g_assert_cmpint (gpu_stat (0, "allocated_bytes.all.current"), ==, before);
  stop_other (&other);
}

static void
a_process_that_is_killed_gives_memory_back (void)
{
  Other other = start_other (NULL);
  g_autoptr (GTorchTensor) x = filled (0, 1000, 2);

  send_tensor (&other, x);
  expect (&other, "open on cuda:0");
  send_tensor (&other, x); /* and one that it does not open any more */
  g_assert_cmpuint (gtorch_loans_count (), ==, 1);
  g_subprocess_force_exit (other.process);
  g_assert_true (g_subprocess_wait (other.process, NULL, NULL));
  close (other.socket);
  g_object_unref (other.process);
  await_return ();
}

static void
this_process_gets_its_own_memory (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = filled (0, 1000, 2);
  g_autoptr (GTorchTensorHandle) handle = gtorch_tensor_handle_new (x, &error);
  g_autoptr (GTorchTensorHandle) again = NULL;
  g_autoptr (GTorchTensor) same = NULL;
  const gint *fds;
  gsize n;

  g_assert_no_error (error);
  fds = gtorch_tensor_handle_get_fds (handle, &n);
  again =
      gtorch_tensor_handle_new_from_bytes (gtorch_tensor_handle_get_bytes (handle), fds, n, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (gtorch_loans_count (), ==, 1);
  g_clear_object (&handle);
  same = gtorch_tensor_handle_open (again, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (gtorch_tensor_get_data_ptr (same), ==, gtorch_tensor_get_data_ptr (x));
  g_clear_object (&again);
  await_return ();
}

static void
a_tensor_is_opened_twice (void)
{
  Other other = start_other (NULL);
  g_autoptr (GTorchTensor) x = filled (0, 1000, 2);

  send_tensor (&other, x);
  expect (&other, "open on cuda:0");
  send_tensor (&other, x);
  expect (&other, "open on cuda:0");
  ask (&other, "a", "1");
  ask (&other, "c", "closed");
  ask (&other, "f4", "filled");
  g_assert_cmpfloat (sum_of (x), ==, 4000);
  ask (&other, "c", "closed");
  await_return ();
  send_tensor (&other, x); /* after it was closed */
  expect (&other, "open on cuda:0");
  ask (&other, "s", "4000");
  stop_other (&other);
  await_return ();
}

static void
the_device_is_that_of_the_other_process (void)
{
  Other other = start_other ("1,0");
  g_autoptr (GTorchTensor) x = filled (1, 10, 1);

  send_tensor (&other, x);
  expect (&other, "open on cuda:0");
  ask (&other, "s", "10");
  stop_other (&other);
  other = start_other ("1");
  g_clear_object (&x);
  x = filled (0, 10, 1);
  {
    g_autofree gchar *text =
        g_strdup_printf ("share: the tensor is on the device %s, which this process does not see",
                         gtorch_device_get_uuid (gpu (0)));

    send_tensor (&other, x);
    expect (&other, text);
  }
  stop_other (&other);
  await_return ();
}

static void
a_thousand_sends_leave_nothing_behind (void)
{
  Other other = start_other (NULL);
  g_autoptr (GTorchTensor) x = filled (0, 1000, 2);
  FakeCudaAccounts before, after;
  g_autofree gchar *text = NULL;
  guint i, n_fds = 0;
  Message message;

  for (i = 0; i < 1001; i++)
    {
      send_tensor (&other, x);
      expect (&other, "open on cuda:0");
      ask (&other, "c", "closed");
      if (i > 0)
        continue;
      await_return ();
      tell (&other, "n");
      g_assert_true (get (other.socket, &message));
      text = g_strdup ((const gchar *) message.data);
      n_fds = count_fds ();
      fake_cuda_get_accounts (&before);
    }
  await_return ();
  ask (&other, "n", text);
  ask (&other, "l", "0");
  fake_cuda_get_accounts (&after);
  g_assert_cmpuint (after.handles, ==, before.handles);
  g_assert_cmpuint (after.events, <=, before.events + 2);
  g_assert_cmpuint (count_fds (), ==, n_fds);
  stop_other (&other);
}

/* --- errors --- */

static void
assert_refused (GBytes *bytes, const gint *fds, gsize n, GTorchError code, const gchar *text)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensorHandle) handle =
      gtorch_tensor_handle_new_from_bytes (bytes, fds, n, &error);

  if (handle != NULL)
    g_assert_null (gtorch_tensor_handle_open (handle, &error));
  g_assert_error (error, GTORCH_ERROR, code);
  if (strstr (error->message, text) == NULL)
    g_error ("“%s” is not in “%s”", text, error->message);
}

static void
wrong_handles_are_errors (void)
{
  Other other = start_other (NULL);
  g_autoptr (GTorchTensorHandle) handle = receive (&other);
  GBytes *bytes = gtorch_tensor_handle_get_bytes (handle);
  gint fds[8];
  gsize n, size, i;
  const gint *given = gtorch_tensor_handle_get_fds (handle, &n);
  const guint8 *data = g_bytes_get_data (bytes, &size);
  g_autoptr (GBytes) short_one = g_bytes_new (data, size - 1);
  g_autoptr (GBytes) nothing = g_bytes_new (NULL, 0);
  gint file = memfd_create ("other", MFD_CLOEXEC);

  memcpy (fds, given, n * sizeof (gint));
  assert_refused (nothing, NULL, 0, GTORCH_ERROR_FORMAT, "0 bytes with 0 file descriptors");
  assert_refused (short_one, fds, n, GTORCH_ERROR_FORMAT, "not a handle of a tensor");
  assert_refused (bytes, fds, n - 1, GTORCH_ERROR_FORMAT, "file descriptors are not a handle");
  fds[n - 1] = file;
  assert_refused (bytes, fds, n, GTORCH_ERROR_FORMAT, "is not that of a shared tensor");
  fds[n - 1] = -1;
  assert_refused (bytes, fds, n, GTORCH_ERROR_FAILED, "file descriptor -1");
  fds[n - 1] = given[n - 1];
  if (n > 1) /* pages */
    {
      fds[0] = file;
      assert_refused (bytes, fds, n, GTORCH_ERROR_CUDA, "cuMemImportFromShareableHandle");
      fds[0] = given[0];
    }
  /* No byte that is changed crashes or opens more than there is. */
  for (i = 0; i < size; i++)
    {
      g_autofree guint8 *copy = g_memdup2 (data, size);
      g_autoptr (GTorchTensorHandle) changed = NULL;
      g_autoptr (GTorchTensor) x = NULL;
      g_autoptr (GBytes) all = NULL;

      copy[i] ^= (guint8) (1u << (i % 8));
      all = g_bytes_new (copy, size);
      changed = gtorch_tensor_handle_new_from_bytes (all, given, n, NULL);
      if (changed != NULL)
        x = gtorch_tensor_handle_open (changed, NULL);
      if (x != NULL)
        g_assert_true (
            fake_cuda_can_access (0, (gconstpointer) gtorch_tensor_get_data_ptr (x),
                                  (gsize) gtorch_tensor_get_numel (x)
                                      * gtorch_dtype_size (gtorch_tensor_get_dtype (x))));
    }
  close (file);
  g_clear_object (&handle);
  ask (&other, "c", "closed");
  stop_other (&other);
}

static void
handles_of_dead_processes_are_errors (void)
{
  Other other = start_other (NULL);
  g_autoptr (GTorchTensorHandle) handle = receive (&other);
  g_autoptr (GError) error = NULL;

  stop_other (&other);
  g_assert_null (gtorch_tensor_handle_open (handle, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
  g_assert_cmpstr (error->message, ==, "share: the process that has shared the tensor has ended");
}

static void
what_cannot_be_shared_is_an_error (void)
{
  Other other = start_other (NULL);
  g_autoptr (GTorchTensor) x = filled (0, 10, 1);
  g_autoptr (GTorchTensor) y = filled (0, 10, 1);
  g_autoptr (GTorchTensorHandle) bare = g_object_new (GTORCH_TYPE_TENSOR_HANDLE, NULL);
  g_autoptr (GError) error = NULL;
  gpointer managed;
  g_autoptr (GTorchTensor) foreign = NULL;

  gtorch_tensor_set_requires_grad (x, TRUE, NULL);
  g_assert_null (gtorch_tensor_handle_new (x, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  g_clear_error (&error);
  send_tensor (&other, y);
  expect (&other, "open on cuda:0");
  ask (&other, "r",
       "share: the memory on cuda:0 is of another library or of another process: copy the tensor");
  managed = gtorch_tensor_to_dlpack (y, FALSE, FALSE, NULL, &error);
  g_assert_no_error (error);
  foreign = gtorch_tensor_new_from_dlpack (managed, FALSE, &error);
  g_assert_no_error (error);
  g_assert_null (gtorch_tensor_handle_new (foreign, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_clear_error (&error);
  g_assert_null (gtorch_tensor_handle_open (bare, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  gtorch_tensor_release (y);
  g_assert_null (gtorch_tensor_handle_new (y, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED);
  stop_other (&other);
  await_return ();
}

static void
each_call_of_the_driver_may_fail (void)
{
  static const gchar *const sharing[] = { "cuMemExportToShareableHandle", "cuIpcGetMemHandle" };
  static const gchar *const opening[] = {
    "cuMemAddressReserve",
    "cuMemImportFromShareableHandle",
    "cuMemMap",
    "cuMemSetAccess",
    "cuIpcOpenMemHandle",
    "cuMemGetAddressRange",
    "cuPointerGetAttributes",
    "cuIpcOpenEventHandle",
  };
  Other other = start_other (NULL);
  g_autoptr (GTorchTensor) x = filled (0, 10, 1);
  g_autoptr (GTorchTensorHandle) handle = receive (&other);
  FakeCudaAccounts before, after;
  guint i, n_hit = 0;

  fake_cuda_get_accounts (&before);
  for (i = 0; i < G_N_ELEMENTS (opening); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) y = NULL;

      fake_cuda_fail (opening[i], 1, CUDA_ERROR_NOT_PERMITTED);
      y = gtorch_tensor_handle_open (handle, &error);
      if (fake_cuda_clear_faults ())
        {
          n_hit++;
          g_assert_null (y);
          g_assert_nonnull (error);
        }
      else
        g_assert_no_error (error);
      g_clear_object (&y);
      do /* the thread that waits for work on dropped memory closes it */
        {
          let_gpus_work ();
          fake_cuda_get_accounts (&after);
        }
      while (after.handles != before.handles || after.mappings != before.mappings);
    }
  g_assert_cmpuint (n_hit, >=, 4);
  for (i = 0; i < G_N_ELEMENTS (sharing); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensorHandle) made = NULL;

      fake_cuda_fail (sharing[i], 1, CUDA_ERROR_NOT_PERMITTED);
      made = gtorch_tensor_handle_new (x, &error);
      g_assert_true (fake_cuda_clear_faults () == (made == NULL));
      g_assert_true ((made == NULL) == (error != NULL));
    }
  fake_cuda_get_accounts (&after);
  g_assert_cmpuint (after.handles, ==, before.handles);
  g_assert_cmpuint (after.mappings, ==, before.mappings);
  g_assert_cmpuint (after.reservations, ==, before.reservations);
  { /* without events the process waits for its stream */
    g_autoptr (GTorchTensor) y = filled (0, 10, 1);

    fake_cuda_fail ("cuIpcGetEventHandle", 1, CUDA_ERROR_NOT_PERMITTED);
    send_tensor (&other, y);
    g_assert_true (fake_cuda_clear_faults ());
    expect (&other, "open on cuda:0");
    ask (&other, "s", "10");
  }
  stop_other (&other);
  await_return ();
}

static void
a_forked_child_keeps_nothing (void)
{
  g_autoptr (GTorchTensor) x = filled (0, 10, 1);
  g_autoptr (GTorchTensorHandle) handle = gtorch_tensor_handle_new (x, NULL);
  gint ends[2], status;
  gchar byte;
  pid_t child;

  g_assert_cmpint (pipe (ends), ==, 0);
  child = fork ();
  if (child == 0)
    {
      close (ends[1]);
      _exit (read (ends[0], &byte, 1) == 0 ? 0 : 1);
    }
  close (ends[0]);
  g_clear_object (&handle);
  await_return ();
  close (ends[1]);
  g_assert_cmpint (waitpid (child, &status, 0), ==, child);
  g_assert_cmpint (status, ==, 0);
}

#define TEST(name) g_test_add_func ("/GTorchCudaShare/" #name, name)

gint
main (gint argc, gchar **argv)
{
  gint result;

  program = argv[0];
  if (argc == 2 && strcmp (argv[1], "--serve") == 0)
    return serve ();
#ifdef __SANITIZE_THREAD__
  g_print ("1..0 # SKIP what other processes do is not seen\n");
  return 0;
#endif
  g_test_init (&argc, &argv, NULL);
  TEST (both_processes_have_the_same_memory);
  TEST (views_and_large_tensors_arrive);
  TEST (the_other_process_waits_for_the_work);
  TEST (memory_is_kept_for_the_other_process);
  TEST (a_process_that_is_killed_gives_memory_back);
  TEST (this_process_gets_its_own_memory);
  TEST (a_tensor_is_opened_twice);
  TEST (the_device_is_that_of_the_other_process);
  TEST (a_thousand_sends_leave_nothing_behind);
  TEST (wrong_handles_are_errors);
  TEST (handles_of_dead_processes_are_errors);
  TEST (what_cannot_be_shared_is_an_error);
  TEST (each_call_of_the_driver_may_fail);
  TEST (a_forked_child_keeps_nothing);
  result = g_test_run ();
  assert_no_misuse ();
  return result;
}
