/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The list of backends, and the assignment of slots to devices. */

#include "config.h"

#include "device/gtorch-backend-private.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-fork-private.h"
#include "base/gtorch-text-private.h"
#include "device/gtorch-device-private.h"

static GMutex lock; /* protects n_slots */
GTORCH_FORK_LOCK (lock);
static guint n_slots = 1; /* slot 0 is the CPU's */

void
gtorch_backend_add (const GTorchBackend *backend)
{
  g_assert (backend->type == GTORCH_DEVICE_TYPE_PRIVATE && gtorch_backends[backend->type] == NULL);
  gtorch_backends[backend->type] = backend;
}

gboolean
gtorch_device_set_backend (GTorchDevice *device, const GTorchBackend *backend, guint index,
                           GError **error)
{
  gboolean has_room = TRUE;

  device->backend = backend;
  device->type = backend->type;
  device->runs = backend->runs;
  device->in_caller = backend->in_caller;
  device->index = index;
  if (backend->type == GTORCH_DEVICE_TYPE_CPU)
    {
      device->string = backend->prefix;
      device->slot = 0;
      return TRUE;
    }
  device->string = g_strdup_printf ("%s:%u", backend->prefix, index);
  g_mutex_lock (&lock);
  has_room = n_slots < GTORCH_MAX_DEVICES;
  if (has_room)
    device->slot = n_slots++;
  g_mutex_unlock (&lock);
  if (!has_room)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE,
                 _ ("device: a process can use at most %d devices"), GTORCH_MAX_DEVICES);
  return has_room;
}

GTorchDevice *
gtorch_backend_find (const GTorchBackend *backend, guint64 index, const gchar *name, GError **error)
{
  const gchar *reason = NULL;
  guint n = backend->count (&reason);

  if (index < n)
    return backend->get (index, error);
  if (n == 0)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE, _ ("device: no “%s”: %s"),
                 gtorch_name_str (name), reason);
  else
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE,
                 _ ("device: no “%s”: the numbers of %s devices end at %u"), gtorch_name_str (name),
                 backend->prefix, n - 1);
  return NULL;
}

/**
 * gtorch_device_cpu:
 *
 * Gets the CPU.
 *
 * Returns: (transfer none): the device
 *
 * Since: 0.1
 */
GTorchDevice *
gtorch_device_cpu (void)
{
  static GTorchDevice *cpu;

  if (g_once_init_enter (&cpu))
    g_once_init_leave (&cpu, gtorch_backends[GTORCH_DEVICE_TYPE_CPU]->get (0, NULL));
  return cpu;
}
