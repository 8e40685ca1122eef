/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What a device is made of, as functions and as properties of GTorchDevice. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "device/gtorch-device-info.h"

#include "device/gtorch-device-private.h"
#include "base/gtorch-field-private.h"

static const GTorchDeviceInfo *
gtorch_device_get_info (GTorchDevice *self)
{
  return GTORCH_DEVICE_GET_CLASS (self)->get_info (self);
}

typedef GTorchDevice Self;

static const GTorchField fields[] = {
  /**
   * GTorchDevice:compute-major:
   *
   * The first number of the compute capability: 9 for 9.0. 0 on the CPU.
   *
   * Since: 0.1
   */
  { "compute-major", GTORCH_PROPERTY_INT (gtorch_device_get_compute_major, NULL),
    .high = INFINITY },
  /**
   * GTorchDevice:compute-minor:
   *
   * The second number of the compute capability: 0 for 9.0. 0 on the CPU.
   *
   * Since: 0.1
   */
  { "compute-minor", GTORCH_PROPERTY_INT (gtorch_device_get_compute_minor, NULL),
    .high = INFINITY },
  /**
   * GTorchDevice:total-memory:
   *
   * How much memory the device has, in bytes; for the CPU with swap space, or what a container may use.
   *
   * Since: 0.1
   */
  { "total-memory", GTORCH_PROPERTY_UINT64 (gtorch_device_get_total_memory, NULL) },
  /**
   * GTorchDevice:n-multiprocessors:
   *
   * How many multiprocessors the GPU has; on the CPU how many processors the program may use.
   *
   * Since: 0.1
   */
  { "n-multiprocessors", GTORCH_PROPERTY_UINT (gtorch_device_get_n_multiprocessors, NULL) },
  /**
   * GTorchDevice:threads-per-multiprocessor:
   *
   * How many threads a multiprocessor holds at once. 1 on the CPU.
   *
   * Since: 0.1
   */
  { "threads-per-multiprocessor",
    GTORCH_PROPERTY_UINT (gtorch_device_get_threads_per_multiprocessor, NULL) },
  /**
   * GTorchDevice:warp-size:
   *
   * How many threads go in step. 1 on the CPU.
   *
   * Since: 0.1
   */
  { "warp-size", GTORCH_PROPERTY_UINT (gtorch_device_get_warp_size, NULL) },
  /**
   * GTorchDevice:max-shared-memory:
   *
   * The most shared memory that a block of threads may have, in bytes. 0 on the CPU.
   *
   * Since: 0.1
   */
  { "max-shared-memory", GTORCH_PROPERTY_UINT64 (gtorch_device_get_max_shared_memory, NULL) },
  /**
   * GTorchDevice:l2-size:
   *
   * The size of the second-level cache, in bytes. 0 if it is not known.
   *
   * Since: 0.1
   */
  { "l2-size", GTORCH_PROPERTY_UINT64 (gtorch_device_get_l2_size, NULL) },
  /**
   * GTorchDevice:pci-id:
   *
   * Where the GPU is on the PCI bus: `0000:01:00.0`. %NULL on the CPU.
   *
   * Since: 0.1
   */
  { "pci-id", GTORCH_PROPERTY_STRING (gtorch_device_get_pci_id, NULL) },
  /**
   * GTorchDevice:uuid:
   *
   * What tells this GPU from all others in the world: `GPU-8a2b…`. %NULL on the CPU.
   *
   * Since: 0.1
   */
  { "uuid", GTORCH_PROPERTY_STRING (gtorch_device_get_uuid, NULL) },
  /**
   * GTorchDevice:integrated:
   *
   * Whether the device computes in the memory of the host. %TRUE on the CPU.
   *
   * Since: 0.1
   */
  { "integrated", GTORCH_PROPERTY_BOOL (gtorch_device_get_integrated, NULL) },
  /**
   * GTorchDevice:driver-version:
   *
   * The newest version of CUDA that the installed driver knows: `13.0`. %NULL on the CPU.
   *
   * Since: 0.1
   */
  { "driver-version", GTORCH_PROPERTY_STRING (gtorch_device_get_driver_version, NULL) },
};

void
gtorch_device_install_info_properties (GObjectClass *klass)
{
  GTORCH_FIELDS (klass, fields);
}

/**
 * gtorch_device_get_capability:
 * @self: a device
 * @major: (out) (optional): the first number of the compute capability
 * @minor: (out) (optional): the second one
 *
 * Gets the compute capability of a GPU, which says what kernels it understands: 9 and 0 for 9.0.
 *
 * ```c
 * gtorch_device_get_capability (device, &major, &minor);
 * if (major >= 8)
 *   dtype = GTORCH_DTYPE_BFLOAT16;
 * ```
 *
 * Both are 0 for the CPU.
 *
 * Since: 0.1
 */
void
gtorch_device_get_capability (GTorchDevice *self, gint *major, gint *minor)
{
  const GTorchDeviceInfo *info;

  g_return_if_fail (GTORCH_IS_DEVICE (self));
  self = gtorch_device_resolved (self);
  info = gtorch_device_get_info (self);
  if (major != NULL)
    *major = info->major;
  if (minor != NULL)
    *minor = info->minor;
}

/**
 * gtorch_device_get_compute_major:
 * @self: a device
 *
 * Gets the first number of the compute capability, which says what kernels the GPU understands.
 *
 * Returns: the number, 9 for 9.0; 0 for the CPU
 *
 * Since: 0.1
 */
gint
gtorch_device_get_compute_major (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), 0);
  self = gtorch_device_resolved (self);
  return gtorch_device_get_info (self)->major;
}

/**
 * gtorch_device_get_compute_minor:
 * @self: a device
 *
 * Gets the second number of the compute capability.
 *
 * Returns: the number, 0 for 9.0; 0 for the CPU
 *
 * Since: 0.1
 */
gint
gtorch_device_get_compute_minor (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), 0);
  self = gtorch_device_resolved (self);
  return gtorch_device_get_info (self)->minor;
}

/**
 * gtorch_device_get_n_multiprocessors:
 * @self: a device
 *
 * Gets how many multiprocessors the GPU has: what works side by side.
 *
 * Returns: the number; for the CPU how many processors the program may use
 *
 * Since: 0.1
 */
guint
gtorch_device_get_n_multiprocessors (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), 0);
  self = gtorch_device_resolved (self);
  return gtorch_device_get_info (self)->n_multiprocessors;
}

/**
 * gtorch_device_get_threads_per_multiprocessor:
 * @self: a device
 *
 * Gets how many threads a multiprocessor holds at once.
 *
 * Returns: the number; 1 for the CPU
 *
 * Since: 0.1
 */
guint
gtorch_device_get_threads_per_multiprocessor (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), 0);
  self = gtorch_device_resolved (self);
  return gtorch_device_get_info (self)->threads_per_multiprocessor;
}

/**
 * gtorch_device_get_warp_size:
 * @self: a device
 *
 * Gets how many threads of a kernel go in step.
 *
 * Returns: the number; 1 for the CPU
 *
 * Since: 0.1
 */
guint
gtorch_device_get_warp_size (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), 0);
  self = gtorch_device_resolved (self);
  return gtorch_device_get_info (self)->warp_size;
}

/**
 * gtorch_device_get_max_shared_memory:
 * @self: a device
 *
 * Gets the most shared memory that a block of threads may have.
 *
 * Returns: the number of bytes; 0 for the CPU
 *
 * Since: 0.1
 */
gsize
gtorch_device_get_max_shared_memory (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), 0);
  self = gtorch_device_resolved (self);
  return gtorch_device_get_info (self)->max_shared_memory;
}

/**
 * gtorch_device_get_l2_size:
 * @self: a device
 *
 * Gets the size of the second-level cache: of the whole GPU, or of one core of the CPU.
 *
 * Returns: the number of bytes; 0 if it is not known
 *
 * Since: 0.1
 */
gsize
gtorch_device_get_l2_size (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), 0);
  self = gtorch_device_resolved (self);
  return gtorch_device_get_info (self)->l2_size;
}

/**
 * gtorch_device_get_pci_id:
 * @self: a device
 *
 * Gets where the GPU is on the PCI bus, in the form that lspci and nvidia-smi use: `0000:01:00.0`.
 *
 * Returns: (nullable) (transfer none): the place; %NULL for the CPU
 *
 * Since: 0.1
 */
const gchar *
gtorch_device_get_pci_id (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), NULL);
  self = gtorch_device_resolved (self);
  return gtorch_device_get_info (self)->pci_id;
}

/**
 * gtorch_device_get_uuid:
 * @self: a device
 *
 * Gets what tells this GPU from all others in the world, whatever its number is here: `GPU-` and 32
 * hexadecimal digits in groups, as nvidia-smi has it. The environment variable
 * `CUDA_VISIBLE_DEVICES` understands it too.
 *
 * Returns: (nullable) (transfer none): the identifier; %NULL for the CPU
 *
 * Since: 0.1
 */
const gchar *
gtorch_device_get_uuid (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), NULL);
  self = gtorch_device_resolved (self);
  return gtorch_device_get_info (self)->uuid;
}

/**
 * gtorch_device_get_integrated:
 * @self: a device
 *
 * Tells whether the device computes in the memory of the host: a GPU on a board without memory of
 * its own, or the CPU.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_device_get_integrated (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), FALSE);
  self = gtorch_device_resolved (self);
  return gtorch_device_get_info (self)->integrated;
}

/**
 * gtorch_device_get_driver_version:
 * @self: a device
 *
 * Gets the newest version of CUDA that the installed driver knows: `13.0`.
 *
 * Returns: (nullable) (transfer none): the version; %NULL for the CPU
 *
 * Since: 0.1
 */
const gchar *
gtorch_device_get_driver_version (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), NULL);
  self = gtorch_device_resolved (self);
  return gtorch_device_get_info (self)->driver_version;
}

/* --- the memory of other devices --- */

/**
 * gtorch_device_can_access_peer:
 * @self: a device
 * @peer: another one
 *
 * Tells whether @self could read and write the memory of @peer without help of the host.
 *
 * Returns: %TRUE if [method@Device.enable_peer] can make it so, and for @self itself
 *
 * Since: 0.1
 */
gboolean
gtorch_device_can_access_peer (GTorchDevice *self, GTorchDevice *peer)
{
  GTorchDeviceClass *klass;

  g_return_val_if_fail (GTORCH_IS_DEVICE (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_DEVICE (peer), FALSE);
  self = gtorch_device_resolved (self);
  peer = gtorch_device_resolved (peer);
  klass = GTORCH_DEVICE_GET_CLASS (self);
  return self == peer
         || (klass->access_peer != NULL && klass->access_peer (self, peer, FALSE, NULL));
}

/**
 * gtorch_device_enable_peer:
 * @self: a device
 * @peer: the device whose memory it shall use
 * @error: return location for an error
 *
 * Lets @self use the memory of @peer, what tensors have there now and what they get later: its
 * kernels may be given addresses of @peer, as those of other libraries in this process are. The
 * other direction is a call of its own.
 *
 * Copies between two GPUs are right without it and do this by themselves where it is possible,
 * since they then need not go through the host. The tensors of one operation must be on one device
 * all the same.
 *
 * ```c
 * if (gtorch_device_can_access_peer (first, second)
 *     && !gtorch_device_enable_peer (first, second, &error))
 *   return FALSE;
 * ```
 *
 * Returns: %TRUE if it is enabled, also by an earlier call; %FALSE with %GTORCH_ERROR_NOT_SUPPORTED
 *   if these devices cannot, or with what the driver says
 *
 * Since: 0.1
 */
gboolean
gtorch_device_enable_peer (GTorchDevice *self, GTorchDevice *peer, GError **error)
{
  GTorchDeviceClass *klass;

  g_return_val_if_fail (GTORCH_IS_DEVICE (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_DEVICE (peer), FALSE);
  self = gtorch_device_resolved (self);
  peer = gtorch_device_resolved (peer);
  klass = GTORCH_DEVICE_GET_CLASS (self);
  if (self == peer)
    return TRUE;
  if (klass->access_peer != NULL)
    return klass->access_peer (self, peer, TRUE, error);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
               _ ("enable_peer: %s cannot use the memory of %s"), gtorch_device_name (self),
               gtorch_device_name (peer));
  return FALSE;
}
