/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <stdlib.h>

#include "gtorch-device-private.h"

G_DEFINE_TYPE (GTorchDevice, gtorch_device, G_TYPE_OBJECT)

static void
gtorch_device_class_init (GTorchDeviceClass *klass)
{
}

static void
gtorch_device_init (GTorchDevice *self)
{
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
    g_once_init_leave (&cpu, g_object_new (GTORCH_TYPE_DEVICE, NULL));
  return cpu;
}

/**
 * gtorch_get_default_device:
 *
 * Gets the device of new tensors when none is named.
 *
 * Returns: (transfer none): the device
 *
 * Since: 0.1
 */
GTorchDevice *
gtorch_get_default_device (void)
{
  return gtorch_device_cpu ();
}

const gchar *
gtorch_device_name (GTorchDevice *device)
{
  return "cpu";
}

GTorchStorage *
gtorch_device_alloc (GTorchDevice *device, gsize n_bytes, GError **error)
{
  GTorchStorage *storage = g_new0 (GTorchStorage, 1);

  storage->ref_count = 1;
  storage->n_bytes = n_bytes;
  storage->device = device;
  if (n_bytes > (gsize) 1 << 40 || posix_memalign (&storage->data, 64, MAX (n_bytes, 64)) != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY,
                   _ ("cpu: %" G_GSIZE_FORMAT " bytes are not to be had"), n_bytes);
      g_free (storage);
      return NULL;
    }
  return storage;
}

void
gtorch_device_free (GTorchDevice *device, GTorchStorage *storage)
{
  free (storage->data);
  g_free (storage);
}
