/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Facts about a device, as functions and as properties of GTorchDevice. */

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
   * The major number of the compute capability: 9 for 9.0. 0 on the CPU.
   *
   * Since: 0.1
   */
  { "compute-major", GTORCH_PROPERTY_INT (gtorch_device_get_compute_major, NULL),
    .high = INFINITY },
  /**
   * GTorchDevice:compute-minor:
   *
   * The minor number of the compute capability: 0 for 9.0. 0 on the CPU.
   *
   * Since: 0.1
   */
  { "compute-minor", GTORCH_PROPERTY_INT (gtorch_device_get_compute_minor, NULL),
    .high = INFINITY },
  /**
   * GTorchDevice:total-memory:
   *
   * The memory of the device in bytes; for the CPU memory and swap space, or the limit of the container.
   *
   * Since: 0.1
   */
  { "total-memory", GTORCH_PROPERTY_UINT64 (gtorch_device_get_total_memory, NULL) },
  /**
   * GTorchDevice:n-multiprocessors:
   *
   * The number of multiprocessors of the GPU; on the CPU the number of processors that the program may use.
   *
   * Since: 0.1
   */
  { "n-multiprocessors", GTORCH_PROPERTY_UINT (gtorch_device_get_n_multiprocessors, NULL) },
  /**
   * GTorchDevice:threads-per-multiprocessor:
   *
   * The number of threads that can be resident on a multiprocessor. 1 on the CPU.
   *
   * Since: 0.1
   */
  { "threads-per-multiprocessor",
    GTORCH_PROPERTY_UINT (gtorch_device_get_threads_per_multiprocessor, NULL) },
  /**
   * GTorchDevice:warp-size:
   *
   * The number of threads in a warp, which execute together. 1 on the CPU.
   *
   * Since: 0.1
   */
  { "warp-size", GTORCH_PROPERTY_UINT (gtorch_device_get_warp_size, NULL) },
  /**
   * GTorchDevice:max-shared-memory:
   *
   * The maximum of shared memory per thread block, in bytes. 0 on the CPU.
   *
   * Since: 0.1
   */
  { "max-shared-memory", GTORCH_PROPERTY_UINT64 (gtorch_device_get_max_shared_memory, NULL) },
  /**
   * GTorchDevice:l2-size:
   *
   * The size of the second-level cache in bytes. 0 if it is not known.
   *
   * Since: 0.1
   */
  { "l2-size", GTORCH_PROPERTY_UINT64 (gtorch_device_get_l2_size, NULL) },
  /**
   * GTorchDevice:pci-id:
   *
   * The address of the GPU on the PCI bus: `0000:01:00.0`. %NULL on the CPU.
   *
   * Since: 0.1
   */
  { "pci-id", GTORCH_PROPERTY_STRING (gtorch_device_get_pci_id, NULL) },
  /**
   * GTorchDevice:uuid:
   *
   * The globally unique identifier of the GPU: `GPU-8a2b…`. %NULL on the CPU.
   *
   * Since: 0.1
   */
  { "uuid", GTORCH_PROPERTY_STRING (gtorch_device_get_uuid, NULL) },
  /**
   * GTorchDevice:integrated:
   *
   * Whether the device shares the memory of the host. %TRUE on the CPU.
   *
   * Since: 0.1
   */
  { "integrated", GTORCH_PROPERTY_BOOL (gtorch_device_get_integrated, NULL) },
  /**
   * GTorchDevice:driver-version:
   *
   * The newest version of CUDA that the installed driver supports: `13.0`. %NULL on the CPU.
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
 * @major: (out) (optional): the major number of the compute capability
 * @minor: (out) (optional): the minor number
 *
 * Gets the compute capability of a GPU, which says what kernels it can run: 9 and 0 for 9.0.
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
 * Gets the major number of the compute capability, which says what kernels the GPU can run.
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
 * Gets the minor number of the compute capability.
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
 * Gets the number of multiprocessors of the GPU, which work in parallel.
 *
 * Returns: the number; for the CPU the number of processors that the program may use
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
 * Gets the number of threads that can be resident on a multiprocessor.
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
 * Gets the number of threads in a warp, which execute together.
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
 * Gets the maximum of shared memory per thread block.
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
 * Gets the size of the second-level cache: that of the whole GPU, or of one core of the CPU.
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
 * Gets the address of the GPU on the PCI bus, in the form that lspci and nvidia-smi use: `0000:01:00.0`.
 *
 * Returns: (nullable) (transfer none): the address; %NULL for the CPU
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
 * Gets the globally unique identifier of the GPU, which does not depend on its index: `GPU-` and 32
 * hexadecimal digits in groups, as nvidia-smi prints it. The environment variable `CUDA_VISIBLE_DEVICES`
 * accepts it too.
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
 * Tells whether the device shares the memory of the host: an integrated GPU, which has no memory of its
 * own, or the CPU.
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
 * Gets the newest version of CUDA that the installed driver supports: `13.0`.
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

/* --- peer access --- */

/**
 * gtorch_device_can_access_peer:
 * @self: a device
 * @peer: another device
 *
 * Tells whether @self can be enabled to access the memory of @peer directly, without copies through the
 * host.
 *
 * Returns: %TRUE if [method@Device.enable_peer] can enable it, and if @peer is @self
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
 * @peer: the device whose memory @self shall access
 * @error: return location for an error
 *
 * Lets kernels of @self access the memory of @peer, existing tensors and later ones, and memory that other
 * libraries of this process allocate there. The other direction needs a call of its own.
 *
 * Copies between two GPUs work without this function; they enable the access themselves where possible, so
 * that they need not go through the host. The tensors of one operation must be on one device all the same.
 *
 * ```c
 * if (gtorch_device_can_access_peer (first, second)
 *     && !gtorch_device_enable_peer (first, second, &error))
 *   return FALSE;
 * ```
 *
 * Returns: %TRUE if it is enabled now or was before; %FALSE with %GTORCH_ERROR_NOT_SUPPORTED if these
 *   devices cannot access each other's memory, or with the error of the driver
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
