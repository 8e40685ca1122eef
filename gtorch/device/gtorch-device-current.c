/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Which devices are meant where none is named, or one without a number. */

#include "config.h"

#include <string.h>

#include "device/gtorch-choice-private.h"
#include "device/gtorch-device-private.h"

/* Of the process; atomically. NULL is the CPU while that has not been made. */
static GTorchDevice *default_device;
static gint is_chosen; /* by the program; atomically */

/* --- the device without a number --- */

typedef struct
{
  GTorchDevice parent_instance;
  GTorchDevice *first;
} GTorchCurrentDevice;

typedef GTorchDeviceClass GTorchCurrentDeviceClass;

GType gtorch_current_device_get_type (void);
G_DEFINE_TYPE (GTorchCurrentDevice, gtorch_current_device, GTORCH_TYPE_DEVICE)

static void
gtorch_current_device_class_init (GTorchCurrentDeviceClass *klass)
{
}

static void
gtorch_current_device_init (GTorchCurrentDevice *self)
{
  self->parent_instance.index = -1;
  self->parent_instance.slot = G_MAXUINT16; /* nobody is to look at it */
}

GTorchDevice *
gtorch_device_follow (GTorchDevice *device)
{
  GTorchDevice *current = gtorch_thread.current[device->type];

  return current != NULL ? current : ((GTorchCurrentDevice *) device)->first;
}

GTorchDevice *
gtorch_device_get_follower (GTorchDeviceType type, GError **error)
{
  static GTorchCurrentDevice *devices[GTORCH_N_DEVICE_TYPES];
  GTorchDevice *first = gtorch_device_find_first (type, error);

  if (first == NULL)
    return NULL;
  if (g_once_init_enter (&devices[type]))
    {
      GTorchCurrentDevice *self = g_object_new (gtorch_current_device_get_type (), NULL);

      self->parent_instance.type = type;
      self->parent_instance.string = g_strndup (first->string, strcspn (first->string, ":"));
      self->first = first;
      g_once_init_leave (&devices[type], self);
    }
  return (GTorchDevice *) devices[type];
}

/* --- current and default --- */

/**
 * gtorch_device_get_current:
 * @type: a type of device
 * @error: return location for an error
 *
 * Gets the current device of a type in this thread: what `cuda` without a number stands for.
 *
 * Each thread begins with the first device of each type, whatever the thread that made it has chosen.
 *
 * ```c
 * GTorchDevice *device = gtorch_device_get_current (GTORCH_DEVICE_TYPE_CUDA, &error);
 * ```
 *
 * Returns: (transfer none): the device, or %NULL with %GTORCH_ERROR_DEVICE if there is none of this
 *   type; the message says why
 *
 * Since: 0.1
 */
GTorchDevice *
gtorch_device_get_current (GTorchDeviceType type, GError **error)
{
  GTorchDevice *device;

  g_return_val_if_fail ((guint) type < GTORCH_N_DEVICE_TYPES, NULL);
  gtorch_guards_settle ();
  device = gtorch_thread.current[type];
  return device != NULL ? device : gtorch_device_find_first (type, error);
}

gboolean
gtorch_device_can_be_current (GTorchDevice *device, GError **error)
{
  return device->backend->get (device->index, error) != NULL;
}

/**
 * gtorch_device_set_current:
 * @device: a device
 * @error: return location for an error
 *
 * Makes @device the current one of its type in this thread, within a [struct@DeviceGuard] until that
 * ends. Operations on existing tensors are not affected: they are done where the tensors are.
 *
 * Returns: %TRUE on success
 *
 * Since: 0.1
 */
gboolean
gtorch_device_set_current (GTorchDevice *device, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (device), FALSE);
  gtorch_guards_settle ();
  device = gtorch_device_resolved (device);
  if (!gtorch_device_can_be_current (device, error))
    return FALSE;
  gtorch_thread.current[device->type] = device;
  gtorch_thread.device = device;
  return TRUE;
}

/**
 * gtorch_device_resolve:
 * @self: a device
 *
 * Gets the device that @self stands for now: if it has no number, the current one of its type in this
 * thread, else itself.
 *
 * No function of the library needs this, as all of them do it with the devices that they are given. A
 * tensor is always on a device with a number.
 *
 * Returns: (transfer none): the device
 *
 * Since: 0.1
 */
GTorchDevice *
gtorch_device_resolve (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), NULL);
  gtorch_guards_settle ();
  return gtorch_device_resolved (self);
}

GTorchDevice *
gtorch_device_or_current (GTorchDevice *device)
{
  if (device == NULL)
    device = gtorch_thread.device;
  return device != NULL ? gtorch_device_resolved (device) : gtorch_get_default_device ();
}

GTorchDevice *
gtorch_device_or_default (GTorchDevice *device)
{
  return device != NULL ? gtorch_device_resolved (device) : gtorch_get_default_device ();
}

GTorchDevice *
gtorch_peek_default_device (void)
{
  return g_atomic_int_get (&is_chosen) ? g_atomic_pointer_get (&default_device) : NULL;
}

/* Makes it the CPU unless another thread is quicker with another one. */
static G_GNUC_NO_INLINE GTorchDevice *
set_cpu (void)
{
  g_atomic_pointer_compare_and_exchange (&default_device, NULL, gtorch_device_cpu ());
  return gtorch_get_default_device ();
}

/**
 * gtorch_get_default_device:
 *
 * Gets the device of new tensors when none is named: the one of this thread's last
 * [struct@DefaultDeviceGuard], else that of the process, which is the CPU until another one is set.
 *
 * This always has a number: if `cuda` was set, it is the current GPU of this thread.
 * [func@Device.get_default] finds the best device that there is.
 *
 * Returns: (transfer none): the device
 *
 * Since: 0.1
 */
GTorchDevice *
gtorch_get_default_device (void)
{
  GTorchDevice *device;

  gtorch_guards_settle ();
  device = gtorch_thread.default_device;
  if (G_LIKELY (device == NULL))
    device = g_atomic_pointer_get (&default_device);
  return G_LIKELY (device != NULL) ? gtorch_device_resolved (device) : set_cpu ();
}

/**
 * gtorch_set_default_device:
 * @device: (nullable): a device, or %NULL for the CPU
 *
 * Sets, for the whole process, the device of new tensors when none is named. One without a number
 * stands for the current device of its type in the thread that makes a tensor.
 *
 * A [struct@DefaultDeviceGuard] does this for a thread, and for a while.
 *
 * Since: 0.1
 */
void
gtorch_set_default_device (GTorchDevice *device)
{
  g_return_if_fail (device == NULL || GTORCH_IS_DEVICE (device));
  g_atomic_pointer_set (&default_device, device != NULL ? device : gtorch_device_cpu ());
  g_atomic_int_set (&is_chosen, device != NULL);
}
