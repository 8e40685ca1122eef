/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "memory/gtorch-memory-block.h"

#include <glib/gi18n-lib.h>

#include "memory/gtorch-allocator-private.h"
#include "base/gtorch-field-private.h"
#include "device/gtorch-scratch-private.h"
#include "stream/gtorch-stream-private.h"
#include "memory/gtorch-storage-private.h"

/**
 * GTorchMemoryBlock:
 *
 * Memory of a device without a tensor, from [method@Allocator.alloc].
 *
 * It is for work that other libraries do on a device: they get its address, and the memory is counted,
 * cached and reused like that of tensors. It is freed with the last reference or by
 * [method@MemoryBlock.release], and may then be reused by later work of the block's stream.
 *
 * ```c
 * g_autoptr (GTorchMemoryBlock) block = gtorch_allocator_alloc (allocator, 1 << 20, NULL, &error);
 *
 * if (block == NULL)
 *   return FALSE;
 * launch_something (gtorch_memory_block_get_pointer (block));
 * ```
 *
 * Since: 0.1
 */
struct _GTorchMemoryBlock
{
  GObject parent_instance;
  GTorchDevice *device;
  GTorchStream *stream;
  gsize size;
  GTorchStorage *storage; /* atomic; NULL once released */
};

G_DEFINE_TYPE (GTorchMemoryBlock, gtorch_memory_block, G_TYPE_OBJECT)

static void
gtorch_memory_block_finalize (GObject *object)
{
  GTorchMemoryBlock *self = GTORCH_MEMORY_BLOCK (object);

  gtorch_memory_block_release (self);
  g_clear_object (&self->stream);
  G_OBJECT_CLASS (gtorch_memory_block_parent_class)->finalize (object);
}

typedef GTorchMemoryBlock Self;

static const GTorchField fields[] = {
  /**
   * GTorchMemoryBlock:device: (getter get_device)
   *
   * The device of the memory.
   *
   * Since: 0.1
   */
  { "device", GTORCH_PROPERTY_OBJECT (GTorchDevice, gtorch_device_get_type,
                                      gtorch_memory_block_get_device, NULL) },
  /**
   * GTorchMemoryBlock:stream: (getter get_stream)
   *
   * The stream whose later work may reuse the memory after it is freed.
   *
   * Since: 0.1
   */
  { "stream", GTORCH_PROPERTY_OBJECT (GTorchStream, gtorch_stream_get_type,
                                      gtorch_memory_block_get_stream, NULL) },
  /**
   * GTorchMemoryBlock:size: (getter get_size)
   *
   * The number of bytes that were requested.
   *
   * Since: 0.1
   */
  { "size", GTORCH_PROPERTY_UINT64 (gtorch_memory_block_get_size, NULL) },
  /**
   * GTorchMemoryBlock:address: (getter get_address)
   *
   * The address in the device's memory; 0 after [method@MemoryBlock.release]. Changes are not notified.
   *
   * Since: 0.1
   */
  { "address", GTORCH_PROPERTY_UINT64 (gtorch_memory_block_get_address, NULL) },
};

static void
gtorch_memory_block_class_init (GTorchMemoryBlockClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->finalize = gtorch_memory_block_finalize;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_memory_block_init (GTorchMemoryBlock *self)
{
}

/**
 * gtorch_allocator_alloc:
 * @self: an allocator
 * @n_bytes: the number of bytes
 * @stream: (nullable): a stream of the allocator's device, or %NULL for the current one
 * @error: return location for an error
 *
 * Allocates memory that is not for tensors. Its contents are undefined.
 *
 * It comes from the same source as the tensors of this thread, including a [class@MemoryPool].
 *
 * Returns: (transfer full): the memory; %NULL with %GTORCH_ERROR_OUT_OF_MEMORY, or with
 *   %GTORCH_ERROR_DEVICE_MISMATCH for a stream of another device
 *
 * Since: 0.1
 */
GTorchMemoryBlock *
gtorch_allocator_alloc (GTorchAllocator *self, gsize n_bytes, GTorchStream *stream, GError **error)
{
  GTorchStorage *storage;
  GTorchMemoryBlock *block;

  g_return_val_if_fail (GTORCH_IS_ALLOCATOR (self), NULL);
  g_return_val_if_fail (stream == NULL || GTORCH_IS_STREAM (stream), NULL);
  if (stream == NULL)
    stream = gtorch_stream_get_current (self->device);
  if (stream->device != self->device)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH,
                   _ ("allocator: it allocates on %s, the stream is on %s"),
                   gtorch_device_name (self->device), gtorch_device_name (stream->device));
      return NULL;
    }
  {
    GTorchChange change;

    gtorch_change_to_stream (&change, self->device, stream);
    storage = gtorch_device_alloc (self->device, n_bytes, error);
    gtorch_change_end (&change);
  }
  if (storage == NULL)
    {
      gtorch_error_name_op (error, "allocator");
      return NULL;
    }
  block = g_object_new (GTORCH_TYPE_MEMORY_BLOCK, NULL);
  block->device = self->device;
  block->stream = g_object_ref (stream);
  block->size = n_bytes;
  block->storage = storage;
  return block;
}

/**
 * gtorch_memory_block_get_device:
 * @self: a block of memory
 *
 * Gets the device of the memory.
 *
 * Returns: (transfer none): the device
 *
 * Since: 0.1
 */
GTorchDevice *
gtorch_memory_block_get_device (GTorchMemoryBlock *self)
{
  g_return_val_if_fail (GTORCH_IS_MEMORY_BLOCK (self), NULL);
  return self->device;
}

/**
 * gtorch_memory_block_get_stream:
 * @self: a block of memory
 *
 * Gets the stream whose later work may reuse the memory after it is freed.
 *
 * Returns: (transfer none): the stream
 *
 * Since: 0.1
 */
GTorchStream *
gtorch_memory_block_get_stream (GTorchMemoryBlock *self)
{
  g_return_val_if_fail (GTORCH_IS_MEMORY_BLOCK (self), NULL);
  return self->stream;
}

/**
 * gtorch_memory_block_get_size:
 * @self: a block of memory
 *
 * Gets the number of bytes that were requested.
 *
 * Returns: the number of bytes
 *
 * Since: 0.1
 */
gsize
gtorch_memory_block_get_size (GTorchMemoryBlock *self)
{
  g_return_val_if_fail (GTORCH_IS_MEMORY_BLOCK (self), 0);
  return self->size;
}

/**
 * gtorch_memory_block_get_address:
 * @self: a block of memory
 *
 * Gets the address of the memory, for languages without pointers. The host cannot access a GPU's memory.
 *
 * Returns: the address; 0 after [method@MemoryBlock.release]
 *
 * Since: 0.1
 */
guint64
gtorch_memory_block_get_address (GTorchMemoryBlock *self)
{
  return (guintptr) gtorch_memory_block_get_pointer (self);
}

/**
 * gtorch_memory_block_get_pointer: (skip)
 * @self: a block of memory
 *
 * Gets the address of the memory. The host cannot access a GPU's memory.
 *
 * Returns: (nullable): the address; %NULL after [method@MemoryBlock.release]
 *
 * Since: 0.1
 */
gpointer
gtorch_memory_block_get_pointer (GTorchMemoryBlock *self)
{
  GTorchStorage *storage;

  g_return_val_if_fail (GTORCH_IS_MEMORY_BLOCK (self), NULL);
  storage = g_atomic_pointer_get (&self->storage);
  return storage != NULL ? storage->data : NULL;
}

/**
 * gtorch_memory_block_record_stream:
 * @self: a block of memory
 * @stream: another stream of its device that uses the memory
 * @error: return location for an error
 *
 * Keeps the memory from being reused before the work now enqueued on @stream is done. This is not needed
 * for the block's own stream.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_RELEASED, or with %GTORCH_ERROR_DEVICE_MISMATCH for
 *   a stream of another device
 *
 * Since: 0.1
 */
gboolean
gtorch_memory_block_record_stream (GTorchMemoryBlock *self, GTorchStream *stream, GError **error)
{
  GTorchDeviceClass *klass;
  GTorchStorage *storage;

  g_return_val_if_fail (GTORCH_IS_MEMORY_BLOCK (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_STREAM (stream), FALSE);
  storage = g_atomic_pointer_get (&self->storage);
  if (storage == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED,
                   _ ("record_stream: the block of %zu bytes was released"), self->size);
      return FALSE;
    }
  if (stream->device != self->device)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH,
                   _ ("record_stream: the block of %zu bytes is on %s, the stream on %s"),
                   self->size, gtorch_device_name (self->device),
                   gtorch_device_name (stream->device));
      return FALSE;
    }
  klass = GTORCH_DEVICE_GET_CLASS (self->device);
  return klass->record_stream == NULL
         || klass->record_stream (self->device, storage, stream, error);
}

/**
 * gtorch_memory_block_release:
 * @self: a block of memory
 *
 * Frees the memory now. Further calls do nothing.
 *
 * Since: 0.1
 */
void
gtorch_memory_block_release (GTorchMemoryBlock *self)
{
  GTorchStorage *storage;

  g_return_if_fail (GTORCH_IS_MEMORY_BLOCK (self));
  storage = __atomic_exchange_n (&self->storage, NULL, __ATOMIC_ACQ_REL);
  if (storage != NULL)
    gtorch_storage_unref (storage);
}
