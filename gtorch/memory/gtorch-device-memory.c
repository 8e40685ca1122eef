/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The memory of devices: their allocators, and when programs are asked to drop tensors. */

#include "config.h"

#include "base/gtorch-observer-private.h"
#include "device/gtorch-device-private.h"
#include "memory/gtorch-allocator-private.h"
#include "memory/gtorch-memory-pool-private.h"
#include "memory/gtorch-memory-report-private.h"

static void
add_allocator (GTorchDevice *device)
{
  device->allocator = g_object_new (GTORCH_TYPE_ALLOCATOR, "device", device, NULL);
  gtorch_memory_report_add (device->allocator);
}

/* Earlier than constructors of programs that link the library statically, which may use it. */
static void __attribute__ ((constructor (200))) set_add_allocator (void)
{
  gtorch_device_set_add_allocator (add_allocator);
}

/* Kept out of line, so that nothing is left to do after the call of the backend. */
static G_GNUC_NO_INLINE GTorchStorage *
alloc_observed (GTorchDevice *device, gsize n_bytes, GError **error)
{
  GTorchPool *pool = gtorch_thread.pools[device->slot];
  GTorchStorage *storage = pool != NULL
                               ? gtorch_pool_alloc (pool, n_bytes, 0, error)
                               : GTORCH_DEVICE_GET_CLASS (device)->alloc (device, n_bytes, error);

  if (storage != NULL)
    gtorch_observe_storage_new (storage);
  return storage;
}

GTorchStorage *
gtorch_device_alloc (GTorchDevice *device, gsize n_bytes, GError **error)
{
  GTorchPool *pool = gtorch_thread.pools[device->slot];

  if (gtorch_is_observed ())
    return alloc_observed (device, n_bytes, error);
  if (G_UNLIKELY (pool != NULL))
    return gtorch_pool_alloc (pool, n_bytes, 0, error);
  return GTORCH_DEVICE_GET_CLASS (device)->alloc (device, n_bytes, error);
}

void
gtorch_device_free (GTorchDevice *device, GTorchStorage *storage)
{
  GTORCH_DEVICE_GET_CLASS (device)->free (device, storage);
}

/* --- statistics --- */

/**
 * gtorch_device_get_allocator:
 * @self: a device
 *
 * Gets the allocator of the device's memory, with its statistics.
 *
 * Returns: (transfer none): the allocator
 *
 * Since: 0.1
 */
GTorchAllocator *
gtorch_device_get_allocator (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), NULL);
  self = gtorch_device_resolved (self);
  return self->allocator;
}

/**
 * gtorch_device_get_memory_allocated:
 * @self: a device
 *
 * Gets the memory that tensors hold, rounded up as the allocator rounds.
 *
 * Returns: the number of bytes
 *
 * Since: 0.1
 */
guint64
gtorch_device_get_memory_allocated (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), 0);
  self = gtorch_device_resolved (self);
  return gtorch_allocator_get_allocated (self->allocator);
}

/**
 * gtorch_device_get_peak_memory_allocated:
 * @self: a device
 *
 * Gets the maximum of memory that tensors held since [method@Device.reset_peak_memory]. On the CPU it is
 * exact to 64 KiB per thread.
 *
 * Returns: the number of bytes
 *
 * Since: 0.1
 */
guint64
gtorch_device_get_peak_memory_allocated (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), 0);
  self = gtorch_device_resolved (self);
  return gtorch_allocator_get_peak_allocated (self->allocator);
}

/**
 * gtorch_device_get_memory_reserved:
 * @self: a device
 *
 * Gets the memory that the allocator has reserved: what tensors hold, and what it caches for later
 * allocations.
 *
 * Returns: the number of bytes
 *
 * Since: 0.1
 */
guint64
gtorch_device_get_memory_reserved (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), 0);
  self = gtorch_device_resolved (self);
  return gtorch_allocator_get_reserved (self->allocator);
}

/**
 * gtorch_device_get_peak_memory_reserved:
 * @self: a device
 *
 * Gets the maximum of memory that the allocator had reserved since [method@Device.reset_peak_memory].
 *
 * Returns: the number of bytes
 *
 * Since: 0.1
 */
guint64
gtorch_device_get_peak_memory_reserved (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), 0);
  self = gtorch_device_resolved (self);
  return gtorch_allocator_get_peak_reserved (self->allocator);
}

/**
 * gtorch_device_reset_peak_memory:
 * @self: a device
 *
 * Resets the peaks to the current values; short for [method@Allocator.reset_peak].
 *
 * Since: 0.1
 */
void
gtorch_device_reset_peak_memory (GTorchDevice *self)
{
  g_return_if_fail (GTORCH_IS_DEVICE (self));
  self = gtorch_device_resolved (self);
  gtorch_allocator_reset_peak (self->allocator);
}

/* --- memory pressure --- */

/**
 * gtorch_device_get_pressure_threshold:
 * @self: a device
 *
 * Gets how much memory must be allocated before [signal@Device::memory-pressure] is emitted again.
 *
 * Returns: the number of bytes
 *
 * Since: 0.1
 */
guint64
gtorch_device_get_pressure_threshold (GTorchDevice *self)
{
  g_return_val_if_fail (GTORCH_IS_DEVICE (self), 0);
  self = gtorch_device_resolved (self);
  return __atomic_load_n (&self->pressure_threshold, __ATOMIC_RELAXED);
}

/**
 * gtorch_device_set_pressure_threshold:
 * @self: a device
 * @n_bytes: a number of bytes
 *
 * Sets how much memory must be allocated before [signal@Device::memory-pressure] is emitted again; 512 MiB
 * by default.
 *
 * Since: 0.1
 */
void
gtorch_device_set_pressure_threshold (GTorchDevice *self, guint64 n_bytes)
{
  guint64 allocated;

  g_return_if_fail (GTORCH_IS_DEVICE (self));
  self = gtorch_device_resolved (self);
  allocated = gtorch_allocator_get_allocated (self->allocator);
  __atomic_store_n (&self->pressure_threshold, n_bytes, __ATOMIC_RELAXED);
  __atomic_store_n (&self->pressure_mark,
                    n_bytes > G_MAXUINT64 - allocated ? G_MAXUINT64 : allocated + n_bytes,
                    __ATOMIC_RELAXED);
}

gboolean
gtorch_device_memory_pressure (GTorchDevice *device, guint64 n_bytes)
{
  static GPrivate asking;
  gboolean has_asked;

  if (g_private_get (&asking) != NULL || device->owner != g_thread_self ())
    return FALSE;
  g_private_set (&asking, device);
  has_asked = gtorch_device_emit_memory_pressure (device, n_bytes);
  if (has_asked)
    gtorch_device_set_pressure_threshold (device, gtorch_device_get_pressure_threshold (device));
  g_private_set (&asking, NULL);
  return has_asked;
}
