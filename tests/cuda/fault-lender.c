/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The program that shares tensors with another process, whose driver does not fail. */

#include "config.h"

#include "fault-programs.h"

#include <gtorch/elements/gtorch-loan-private.h>

#include "cuda-test.h"
#include "handle-messages.h"

#define SOCKET  3 /* of the other process */
#define PATIENT (G_USEC_PER_SEC / 2)

int
fault_lend (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x =
      gtorch_full (GTORCH_SHAPE (10), 3, GTORCH_DTYPE_FLOAT64, gpu (0), &error);
  g_autoptr (GTorchTensorHandle) handle = NULL;
  Message message;

  g_assert_no_error (error);
  handle = gtorch_tensor_handle_new (x, &error);
  g_assert_no_error (error);
  put_handle (SOCKET, 'o', handle);
  while (get (SOCKET, &message))
    close_fds (&message);
  return 0;
}

static gboolean
read_element (GTorchTensor *x, gdouble *result, GError **error)
{
  gsize n;
  g_autofree gdouble *values = gtorch_tensor_to_doubles (x, &n, error);

  if (values != NULL)
    *result = values[0];
  return values != NULL;
}

static gboolean
share_own (gdouble *result, GError **error)
{
  GTorchDevice *device = gtorch_device_cuda (0, error);
  g_autoptr (GTorchTensor) x = NULL;
  g_autoptr (GTorchTensorHandle) handle = NULL;

  if (device == NULL)
    return FALSE;
  x = gtorch_full (GTORCH_SHAPE (10), 5, GTORCH_DTYPE_FLOAT64, device, error);
  handle = x != NULL ? gtorch_tensor_handle_new (x, error) : NULL;
  return handle != NULL && read_element (x, result, error);
}

static guint
count_closings (void)
{
  return fake_cuda_get_calls ("cuIpcCloseMemHandle") + fake_cuda_get_calls ("cuMemAddressFree");
}

static gboolean
open_other (gint socket, gdouble *result, GError **error)
{
  g_autoptr (GTorchTensorHandle) handle = NULL;
  g_autoptr (GTorchTensor) x = NULL;
  gboolean done;
  Message message;
  gint64 end;
  guint n;

  g_assert_true (get (socket, &message));
  handle = handle_of (&message, error);
  x = handle != NULL ? gtorch_tensor_handle_open (handle, error) : NULL;
  if (x == NULL)
    return FALSE;
  done = read_element (x, result, error);
  n = count_closings ();
  g_clear_object (&x);
  /* a thread closes the memory; there may be none if the driver fails */
  for (end = g_get_monotonic_time () + PATIENT;
       count_closings () == n && g_get_monotonic_time () < end; g_usleep (1000))
    let_gpus_work ();
  return done;
}

gboolean
fault_borrow (gdouble *result, GError **error)
{
  g_autoptr (GSubprocessLauncher) launcher = g_subprocess_launcher_new (G_SUBPROCESS_FLAGS_NONE);
  g_autoptr (GSubprocess) process = NULL;
  gdouble own = 0, other = 0;
  gboolean done;
  gint ends[2];
  gint64 end;

  done = share_own (&own, error);
  for (end = g_get_monotonic_time () + PATIENT;
       gtorch_loans_count () > 0 && g_get_monotonic_time () < end; g_usleep (1000))
    let_gpus_work ();
  if (!done)
    return FALSE;
  g_assert_cmpint (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), ==, 0);
  g_subprocess_launcher_take_fd (launcher, ends[1], SOCKET);
  process = g_subprocess_launcher_spawn (launcher, NULL, "/proc/self/exe", "--lend", NULL);
  g_assert_nonnull (process);
  g_clear_object (&launcher); /* and its end of the socket */
  done = open_other (ends[0], &other, error);
  close (ends[0]);
  g_assert_true (g_subprocess_wait_check (process, NULL, NULL));
  *result = own + other;
  return done;
}
