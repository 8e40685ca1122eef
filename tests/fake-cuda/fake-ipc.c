/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Events that are shared by processes. The number of recordings, and of those that have completed, is in
 * shared memory; the handle says where another process finds it. */

#include "config.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake-cuda-private.h"

#define MAGIC G_GUINT64_CONSTANT (0x46616b6545766e74)

typedef struct
{
  guint64 magic;
  gint32 process, fd;
} Handle;

guint fake_n_shared;

static FakeShared *
shared_new (int fd)
{
  FakeShared *shared;
  gpointer cell = mmap (NULL, sizeof *shared->cell, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

  if (cell == MAP_FAILED)
    {
      close (fd);
      return NULL;
    }
  shared = g_new0 (FakeShared, 1);
  shared->refs = 1;
  shared->fd = fd;
  shared->cell = cell;
  fake_n_shared++;
  return shared;
}

void
fake_shared_unref (FakeShared *shared)
{
  if (shared == NULL || --shared->refs > 0)
    return;
  munmap (shared->cell, sizeof *shared->cell);
  close (shared->fd);
  g_free (shared);
  fake_n_shared--;
}

FakeShared *
fake_shared_new (void)
{
  int fd = memfd_create ("fake-event", MFD_CLOEXEC);

  if (fd < 0 || ftruncate (fd, sizeof (FakeCell)) < 0)
    {
      if (fd >= 0)
        close (fd);
      return NULL;
    }
  return shared_new (fd);
}

CUresult
cuIpcGetEventHandle (CUipcEventHandle *handle, CUevent event)
{
  Handle own = { MAGIC, getpid (), 0 };

  ENTER (cuIpcGetEventHandle);
  if (event == NULL || !(event->flags & CU_EVENT_INTERPROCESS) || event->is_imported)
    LEAVE (CUDA_ERROR_INVALID_HANDLE);
  own.fd = event->shared->fd;
  memset (handle, 0, sizeof *handle);
  memcpy (handle, &own, sizeof own);
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuIpcOpenEventHandle (CUevent *event, CUipcEventHandle handle)
{
  g_autofree gchar *path = NULL;
  FakeShared *shared = NULL;
  FakeDevice *device;
  Handle other;
  int fd;

  ENTER_CURRENT (cuIpcOpenEventHandle, device);
  memcpy (&other, &handle, sizeof other);
  if (other.magic != MAGIC)
    LEAVE (CUDA_ERROR_INVALID_HANDLE);
  if (other.process == getpid ()) /* the real driver refuses that, too */
    LEAVE (CUDA_ERROR_INVALID_CONTEXT);
  path = g_strdup_printf ("/proc/%d/fd/%d", other.process, other.fd);
  fd = open (path, O_RDWR | O_CLOEXEC);
  if (fd >= 0)
    shared = shared_new (fd);
  if (shared == NULL)
    LEAVE (CUDA_ERROR_INVALID_HANDLE);
  *event = g_new0 (struct CUevent_st, 1);
  (*event)->device = device;
  (*event)->flags = CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  (*event)->shared = shared;
  (*event)->is_imported = TRUE;
  fake_accounts.events++;
  LEAVE (CUDA_SUCCESS);
}
