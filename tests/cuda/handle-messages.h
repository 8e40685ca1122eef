/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Messages between processes, with file descriptors: commands, and handles of tensors. */

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cuda-test.h"

G_BEGIN_DECLS

typedef struct
{
  guint8 data[4096];
  gssize n;
  gint fds[64];
  gsize n_fds;
} Message;

static inline void
put (gint socket, gconstpointer data, gsize n, const gint *fds, gsize n_fds)
{
  struct iovec part = { (gpointer) data, n };
  gchar control[CMSG_SPACE (64 * sizeof (gint))] = { 0 };
  struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };

  g_assert_cmpuint (n_fds, <=, 64);
  if (n_fds > 0)
    {
      struct cmsghdr *rights;

      header.msg_control = control;
      header.msg_controllen = CMSG_SPACE (n_fds * sizeof (gint));
      rights = CMSG_FIRSTHDR (&header);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN (n_fds * sizeof (gint));
      memcpy (CMSG_DATA (rights), fds, n_fds * sizeof (gint));
    }
  g_assert_cmpint (sendmsg (socket, &header, MSG_NOSIGNAL), ==, (gssize) n);
}

/* The fake GPUs of a process work only while it calls them. */
static inline void
let_gpus_work (void)
{
  guint i, n = gtorch_device_manager_get_device_count (gtorch_device_manager_get_default ());

  for (i = 0; i < n; i++)
    if (gtorch_cuda_device_activate (GTORCH_CUDA_DEVICE (gpu (i)), NULL))
      gtorch_cuda.cuStreamQuery (NULL);
}

static inline void
await_input (gint socket)
{
  struct pollfd ready = { socket, POLLIN, 0 };

  while (poll (&ready, 1, 1) == 0)
    let_gpus_work ();
}

static inline gboolean
get (gint socket, Message *message)
{
  struct iovec part = { message->data, sizeof message->data - 1 };
  gchar control[CMSG_SPACE (64 * sizeof (gint))] = { 0 };
  struct msghdr header = {
    .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control
  };
  struct cmsghdr *rights;

  await_input (socket);
  message->n_fds = 0;
  message->n = recvmsg (socket, &header, MSG_CMSG_CLOEXEC);
  if (message->n <= 0)
    return FALSE;
  message->data[message->n] = 0;
  rights = CMSG_FIRSTHDR (&header);
  if (rights != NULL)
    {
      message->n_fds = (rights->cmsg_len - CMSG_LEN (0)) / sizeof (gint);
      memcpy (message->fds, CMSG_DATA (rights), message->n_fds * sizeof (gint));
    }
  return TRUE;
}

static inline void
close_fds (Message *message)
{
  gsize i;

  for (i = 0; i < message->n_fds; i++)
    close (message->fds[i]);
  message->n_fds = 0;
}

static inline void
put_handle (gint socket, gchar command, GTorchTensorHandle *handle)
{
  g_autoptr (GByteArray) all = g_byte_array_new ();
  GBytes *bytes = gtorch_tensor_handle_get_bytes (handle);
  const gint *fds;
  gsize n_fds;

  fds = gtorch_tensor_handle_get_fds (handle, &n_fds);
  g_byte_array_append (all, (const guint8 *) &command, 1);
  g_byte_array_append (all, g_bytes_get_data (bytes, NULL), (guint) g_bytes_get_size (bytes));
  put (socket, all->data, all->len, fds, n_fds);
}

/* The handle of a message, or NULL; closes the message's file descriptors. */
static inline GTorchTensorHandle *
handle_of (Message *message, GError **error)
{
  g_autoptr (GBytes) bytes = g_bytes_new (message->data + 1, (gsize) message->n - 1);
  GTorchTensorHandle *handle =
      gtorch_tensor_handle_new_from_bytes (bytes, message->fds, message->n_fds, error);

  close_fds (message);
  return handle;
}

G_END_DECLS
