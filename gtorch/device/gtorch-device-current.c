/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The current devices of a thread, the default device, and devices without a number. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "device/gtorch-choice-private.h"
#include "device/gtorch-device-private.h"

/* The default device of the process; atomic. NULL means the CPU, before that has been created. */
static GTorchDevice *default_device;
static gint is_chosen; /* whether the program has set default_device; atomic */

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
  self->parent_instance.slot = G_MAXUINT16; /* an invalid slot: nothing may index by it */
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

/**
 * gtorch_device_cuda:
 * @index: which GPU, from 0; -1 for whichever is current when the device is used
 * @error: return location for an error
 *
 * Gets a GPU by number.
 *
 * Returns: (transfer none): the device, or %NULL with %GTORCH_ERROR_DEVICE
 *
 * Since: 0.1
 */
GTorchDevice *
gtorch_device_cuda (gint index, GError **error)
{
  g_autofree gchar *string = NULL;

  if (index < -1)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE,
                   _ ("device: %d is not the number of a CUDA device"), index);
      return NULL;
    }
  if (index == -1)
    return gtorch_device_get_follower (GTORCH_DEVICE_TYPE_CUDA, error);
  string = g_strdup_printf ("cuda:%d", index);
  return gtorch_backend_find (gtorch_backends[GTORCH_DEVICE_TYPE_CUDA], index, string, error);
}

/* --- current and default --- */

/**
 * gtorch_device_get_current:
 * @type: a type of device
 * @error: return location for an error
 *
 * Gets the current device of a type in this thread, the one that `cuda` without a number stands for.
 *
 * Each thread begins with the first device of each type, whatever the thread that started it has set.
 *
 * ```c
 * GTorchDevice *device = gtorch_device_get_current (GTORCH_DEVICE_TYPE_CUDA, &error);
 * ```
 *
 * Returns: (transfer none): the device, or %NULL with %GTORCH_ERROR_DEVICE if there is none of this
 *   type, for which the message says why, or %GTORCH_ERROR_INVALID if @type is no type of device
 *
 * Since: 0.1
 */
GTorchDevice *
gtorch_device_get_current (GTorchDeviceType type, GError **error)
{
  GTorchDevice *device;

  if ((guint) type >= GTORCH_N_DEVICE_TYPES)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("get_current: %d is no GTorchDeviceType"), (gint) type);
      return NULL;
    }
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
 * Makes @device the current one of its type in this thread; inside a [struct@DeviceGuard] only until the
 * guard ends. Operations on existing tensors are not affected: they run where the tensors are.
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
 * Gets the device that @self stands for now: the current device of its type in this thread if @self has no
 * number, else @self.
 *
 * Programs rarely need this: every function of the library resolves the devices passed to it. A tensor is
 * always on a device with a number.
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

/* Makes the CPU the default device unless another thread has set one meanwhile. */
static G_GNUC_NO_INLINE GTorchDevice *
set_cpu (void)
{
  g_atomic_pointer_compare_and_exchange (&default_device, NULL, gtorch_device_cpu ());
  return gtorch_get_default_device ();
}

/**
 * gtorch_get_default_device:
 *
 * Gets the device of new tensors when none is named: that of this thread's innermost
 * [struct@DefaultDeviceGuard], else that of the process, which is the CPU until another one is set.
 *
 * The result always has a number: if `cuda` was set, it is the current GPU of this thread.
 * [func@Device.get_default] finds the best device of the machine.
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
 * Sets, for the whole process, the device of new tensors when none is named. A device without a number
 * stands for the current device of its type in the thread that creates a tensor.
 *
 * Use a [struct@DefaultDeviceGuard] to do this for one thread and for a limited time.
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
