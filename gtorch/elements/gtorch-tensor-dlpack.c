/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Exchanges tensors with other libraries in the process. A foreign structure is validated except for what
 * cannot be checked: that its memory exists and that its deleter can be called. */

#include "config.h"

#include "elements/gtorch-tensor-dlpack.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "autograd/gtorch-autograd-private.h"
#include "device/gtorch-device-private.h"
#include "ops/gtorch-host-private.h"
#include "tensor/gtorch-dlpack-private.h"
#include "tensor/gtorch-hold-private.h"
#include "gtorch-ops-private.h"
#include "memory/gtorch-memory-pool-private.h"
#include "stream/gtorch-stream-private.h"
#include "elements/gtorch-shared-memory-private.h"
#include "elements/gtorch-tensor-bytes-private.h"
#include "tensor/gtorch-tensor-private.h"

/* --- export --- */

typedef struct
{
  union
  {
    GTorchDLManaged managed;
    GTorchDLManagedVersioned versioned;
  };
  GTorchStorage *storage;
  gint64 dims[]; /* the shape, then the strides */
} Exported;

static void
exported_free (Exported *exported)
{
  gtorch_shared_memory_drop_address (exported->storage);
  g_free (exported);
}

static void
delete_managed (GTorchDLManaged *managed)
{
  exported_free (managed->context);
}

static void
delete_versioned (GTorchDLManagedVersioned *versioned)
{
  exported_free (versioned->context);
}

static void
dlpack_device (const GTorchImpl *impl, GTorchDLDevice *device)
{
  GTorchDevice *ours = gtorch_impl_device (impl);

  device->device_type = ours->backend->dlpack_type;
  device->device_id = MAX (gtorch_device_get_index (ours), 0);
}

static void
fill_tensor (GTorchDLTensor *tensor, Exported *exported, const GTorchImpl *impl)
{
  const GTorchDTypeInfo *info = &gtorch_dtype_infos[impl->dtype];

  memcpy (exported->dims, impl->shape, impl->n_dims * sizeof (gint64));
  memcpy (exported->dims + impl->n_dims, impl->strides, impl->n_dims * sizeof (gint64));
  *tensor = (GTorchDLTensor){
    .data = impl->numel > 0 ? gtorch_impl_data (impl) : NULL,
    .n_dims = impl->n_dims,
    .dtype = { info->dlpack_code, info->size * 8, 1 },
    .shape = exported->dims,
    .strides = exported->dims + impl->n_dims,
  };
  dlpack_device (impl, &tensor->device);
}

/* Another library may take part in a capture, but not use what no replay has computed. */
static gboolean
check_computed (GTorchImpl *impl, GTorchStream *stream, GError **error)
{
  if (!gtorch_pool_is_promised (impl->storage)
      || (stream != NULL && gtorch_stream_is_capturing (stream)))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
               _ ("to_dlpack: the tensor of shape %s was not computed: the graph that computes it "
                  "was never replayed"),
               gtorch_impl_shape_str (impl));
  return FALSE;
}

/* Orders the present writes before the stream's later work; without a stream, waits for them. */
static gboolean
hand_over (GTorchImpl *impl, GTorchStream *stream, GError **error)
{
  GTorchDevice *device = gtorch_impl_device (impl);
  GTorchDeviceClass *klass = GTORCH_DEVICE_GET_CLASS (device);
  GTorchStream *current;

  if (klass->order_storage == NULL)
    return gtorch_impl_wait ("to_dlpack", impl, error);
  current = gtorch_stream_get_current (device);
  if (stream == NULL)
    return gtorch_impl_wait ("to_dlpack", impl, error)
           && gtorch_stream_synchronize (current, NULL, error);
  return (gtorch_stream_get_queue (current) == gtorch_stream_get_queue (stream)
          || gtorch_stream_wait_stream (stream, current, error))
         && gtorch_stream_order_storage (stream, device, impl->storage, error);
}

/**
 * gtorch_tensor_to_dlpack: (skip)
 * @self: a tensor
 * @versioned: whether to return a `DLManagedTensorVersioned` (DLPack 1.x) or a `DLManagedTensor`
 * @copy: whether to copy the memory
 * @stream: (nullable): the stream of the tensor's device on which the memory will be used first, or %NULL
 *   if it is unknown
 * @error: return location for an error
 *
 * Exports the tensor to another library through DLPack, without copying its elements unless @copy is set.
 * The structure keeps the memory alive, even after [method@Tensor.release], until its deleter is called.
 *
 * Later work of @stream runs after the present work of the device; with %NULL this thread waits for that.
 * @stream's queue must exist until the deleter is called and the work that it has by then is done: only
 * then is the memory reused.
 *
 * Returns: a `DLManagedTensorVersioned *` or `DLManagedTensor *`; %NULL with %GTORCH_ERROR_AUTOGRAD if
 *   the tensor requires a gradient (export the result of [method@Tensor.detach]), %GTORCH_ERROR_INVALID
 *   if it is read-only, which the old form cannot express, %GTORCH_ERROR_DEVICE_MISMATCH if @stream is on
 *   another device, %GTORCH_ERROR_CAPTURE if the graph that computes it was never replayed, unless @stream
 *   captures a graph
 *
 * Since: 0.1
 */
gpointer
gtorch_tensor_to_dlpack (GTorchTensor *self, gboolean versioned, gboolean copy,
                         GTorchStream *stream, GError **error)
{
  GTORCH_HOLD_TENSOR (self);
  g_autoptr (GTorchImpl) impl = NULL;
  Exported *exported;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  g_return_val_if_fail (stream == NULL || GTORCH_IS_STREAM (stream), NULL);

  impl = gtorch_impl_ref (gtorch_tensor_unwrap (self));
  if (stream != NULL && stream->device != gtorch_impl_device (impl))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH,
                   _ ("to_dlpack: the tensor of shape %s is on %s, the stream on %s"),
                   gtorch_impl_shape_str (impl), gtorch_device_name (gtorch_impl_device (impl)),
                   gtorch_device_name (stream->device));
      return NULL;
    }
  if (gtorch_impl_is_released (impl) && !gtorch_impl_wait ("to_dlpack", impl, error))
    return NULL;
  if (gtorch_impl_device (impl)->backend->dlpack_type == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("to_dlpack: DLPack has no number for the devices of %s"),
                   gtorch_device_name (gtorch_impl_device (impl)));
      return NULL;
    }
  if (gtorch_impl_requires_grad (impl))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("to_dlpack: a tensor of shape %s that requires a gradient would lose it: "
                      "detach it first"),
                   gtorch_impl_shape_str (impl));
      return NULL;
    }
  if (copy)
    {
      GTorchImpl *clone = gtorch_op_clone (impl, error);

      if (clone == NULL)
        return NULL;
      gtorch_impl_unref (g_steal_pointer (&impl));
      impl = clone;
    }
  else if (!versioned && gtorch_storage_is_read_only (impl->storage))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("to_dlpack: the tensor of shape %s is read-only, which DLPack before 1.0 "
                      "cannot say: copy it"),
                   gtorch_impl_shape_str (impl));
      return NULL;
    }

  if (!check_computed (impl, stream, error) || !hand_over (impl, stream, error))
    return NULL;

  exported = g_malloc0 (sizeof (Exported) + 2 * impl->n_dims * sizeof (gint64));
  exported->storage = gtorch_shared_memory_hold_address (impl->storage);
  if (versioned)
    {
      exported->versioned.major = GTORCH_DLPACK_MAJOR;
      exported->versioned.minor = GTORCH_DLPACK_MINOR;
      exported->versioned.context = exported;
      exported->versioned.deleter = delete_versioned;
      exported->versioned.flags =
          (gtorch_storage_is_read_only (impl->storage) ? GTORCH_DL_READ_ONLY : 0)
          | (copy ? GTORCH_DL_IS_COPIED : 0);
      fill_tensor (&exported->versioned.tensor, exported, impl);
    }
  else
    {
      exported->managed.context = exported;
      exported->managed.deleter = delete_managed;
      fill_tensor (&exported->managed.tensor, exported, impl);
    }
  return exported;
}

/**
 * gtorch_tensor_export_dlpack:
 * @self: a tensor
 * @versioned: whether to return a `DLManagedTensorVersioned` (DLPack 1.x) or a `DLManagedTensor`
 * @copy: whether to copy the memory
 * @stream: (nullable): the stream of the tensor's device on which the memory will be used first, or %NULL
 *   if it is unknown
 * @error: return location for an error
 *
 * Exports the tensor to another library through DLPack, as an address for languages that have no
 * pointers:
 *
 * ```python
 * capsule = ctypes.pythonapi.PyCapsule_New (t.export_dlpack(True, False, None), b'dltensor_versioned', None)
 * ```
 *
 * Later work of @stream runs after the present work of the device; with %NULL this thread waits for that.
 *
 * The receiver of the address calls the deleter; if there is none, use [func@dlpack_delete].
 *
 * Returns: the address of the structure; 0 with @error set if it cannot be exported: because it requires
 *   a gradient (%GTORCH_ERROR_AUTOGRAD), was released (%GTORCH_ERROR_RELEASED), is read-only, which the
 *   old form cannot express (%GTORCH_ERROR_INVALID), because @stream is on another device
 *   (%GTORCH_ERROR_DEVICE_MISMATCH), or because the graph that computes it was never replayed
 *   (%GTORCH_ERROR_CAPTURE), unless @stream captures a graph
 *
 * Since: 0.1
 */
gsize
gtorch_tensor_export_dlpack (GTorchTensor *self, gboolean versioned, gboolean copy,
                             GTorchStream *stream, GError **error)
{
  GTORCH_HOLD_TENSOR (self);

  return (gsize) gtorch_tensor_to_dlpack (self, versioned, copy, stream, error);
}

/**
 * gtorch_tensor_get_dlpack_device:
 * @self: a tensor
 * @device_type: (out): the type of the device in DLPack: 1 CPU, 2 CUDA
 * @device_id: (out): the index of the device
 *
 * Gets the device of the memory, in the form of `__dlpack_device__`.
 *
 * Since: 0.1
 */
void
gtorch_tensor_get_dlpack_device (GTorchTensor *self, gint *device_type, gint *device_id)
{
  GTORCH_HOLD_TENSOR (self);
  GTorchDLDevice device;

  g_return_if_fail (GTORCH_IS_TENSOR (self));
  g_return_if_fail (device_type != NULL && device_id != NULL);

  dlpack_device (gtorch_tensor_unwrap (self), &device);
  *device_type = device.device_type;
  *device_id = device.device_id;
}

/* --- import --- */

static void
delete_foreign (gpointer structure, gboolean versioned)
{
  if (versioned)
    {
      GTorchDLManagedVersioned *managed = structure;

      if (managed->deleter != NULL)
        managed->deleter (managed);
    }
  else
    {
      GTorchDLManaged *managed = structure;

      if (managed->deleter != NULL)
        managed->deleter (managed);
    }
}

static void
delete_foreign_managed (gpointer structure)
{
  delete_foreign (structure, FALSE);
}

static void
delete_foreign_versioned (gpointer structure)
{
  delete_foreign (structure, TRUE);
}

static void
free_managed (GTorchStorage *storage)
{
  delete_foreign (storage->free_data, FALSE);
}

static void
free_versioned (GTorchStorage *storage)
{
  delete_foreign (storage->free_data, TRUE);
}

/* Returns the device of the memory; host memory belongs to the CPU even if another library has pinned it. */
static GTorchDevice *
find_device (const GTorchDLDevice *from, GError **error)
{
  g_autoptr (GError) reason = NULL;
  GTorchDevice *device = NULL;
  gboolean known = from->device_type > 0 && from->device_type <= GTORCH_DL_LAST_DEVICE;

  if (from->device_type == GTORCH_DL_CPU || from->device_type == GTORCH_DL_CUDA_HOST)
    return gtorch_device_cpu ();
  if (from->device_type == GTORCH_DL_CUDA || from->device_type == GTORCH_DL_CUDA_MANAGED)
    {
      if (from->device_id >= 0)
        device = gtorch_device_cuda (from->device_id, &reason);
      if (device == NULL)
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                     _ ("from_dlpack: memory of the GPU of number %d cannot be used: %s"),
                     from->device_id,
                     reason != NULL ? reason->message : _ ("there is no such number"));
      return device;
    }
  g_set_error (error, GTORCH_ERROR, known ? GTORCH_ERROR_NOT_SUPPORTED : GTORCH_ERROR_FORMAT,
               known ? _ ("from_dlpack: memory on a device of type %d (number %d) cannot be used")
                     : _ ("from_dlpack: there is no type %d of devices (number %d)"),
               from->device_type, from->device_id);
  return NULL;
}

static guint
find_dtype (const GTorchDLDataType *type)
{
  guint dtype;

  for (dtype = 1; dtype < GTORCH_N_DTYPES; dtype++)
    if (gtorch_dtype_infos[dtype].dlpack_code == type->code
        && gtorch_dtype_infos[dtype].size * 8 == type->bits)
      return dtype;
  return GTORCH_DTYPE_NONE;
}

static gboolean
check_kind (const GTorchDLTensor *tensor, guint *dtype, GError **error)
{
  if (tensor->dtype.lanes != 1)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("from_dlpack: elements of %u lanes: only 1 is possible"),
                   tensor->dtype.lanes);
      return FALSE;
    }
  *dtype = find_dtype (&tensor->dtype);
  if (*dtype == GTORCH_DTYPE_NONE)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("from_dlpack: there is no dtype for elements of code %u with %u bits"),
                   tensor->dtype.code, tensor->dtype.bits);
      return FALSE;
    }
  return TRUE;
}

/* Checks shape and strides; computes the extent in bytes from the first element on. */
static gboolean
check_geometry (const GTorchDLTensor *tensor, guint dtype, gint64 *strides, gsize *n_bytes,
                GError **error)
{
  gint64 size = gtorch_dtype_size (dtype);
  gint64 numel = 1, reach = size;
  gint i;

  if (tensor->n_dims < 0 || tensor->n_dims > GTORCH_MAX_DIMS)
    {
      g_set_error (error, GTORCH_ERROR,
                   tensor->n_dims < 0 ? GTORCH_ERROR_FORMAT : GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("from_dlpack: %d dimensions: there can be 0 to %d"), tensor->n_dims,
                   GTORCH_MAX_DIMS);
      return FALSE;
    }
  if (tensor->n_dims > 0 && tensor->shape == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("from_dlpack: %d dimensions without a shape"), tensor->n_dims);
      return FALSE;
    }
  if (!gtorch_shape_check ("from_dlpack", tensor->shape, tensor->n_dims, dtype, error))
    {
      if (error != NULL && *error != NULL)
        (*error)->code = GTORCH_ERROR_FORMAT;
      return FALSE;
    }
  for (i = 0; i < tensor->n_dims; i++)
    numel *= tensor->shape[i];
  gtorch_contiguous_strides (tensor->shape, tensor->n_dims, strides);
  for (i = 0; tensor->strides != NULL && i < tensor->n_dims; i++)
    {
      gint64 step;

      if (tensor->shape[i] <= 1 || numel == 0)
        continue; /* unused: the producer may have written anything there */
      strides[i] = tensor->strides[i];
      if (strides[i] < 0)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                       _ ("from_dlpack: stride %" PRId64 " of dim %d is negative"), strides[i], i);
          return FALSE;
        }
      if (__builtin_mul_overflow (strides[i], tensor->shape[i] - 1, &step)
          || __builtin_mul_overflow (step, size, &step)
          || __builtin_add_overflow (reach, step, &reach))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                       _ ("from_dlpack: stride %" PRId64 " of dim %d with size "
                          "%" PRId64 " reaches beyond 64 bits"),
                       strides[i], i, tensor->shape[i]);
          return FALSE;
        }
    }
  if (tensor->strides == NULL)
    reach = numel * size;
  *n_bytes = numel == 0 ? 0 : reach;
  return TRUE;
}

static gboolean
check_address (const GTorchDLTensor *tensor, guint dtype, gsize n_bytes, gsize *address,
               GError **error)
{
  gsize end;

  if (n_bytes == 0)
    return TRUE;
  if (tensor->data == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("from_dlpack: shape %s without memory"),
                   gtorch_shape_str (tensor->shape, tensor->n_dims));
      return FALSE;
    }
  /* No memory is larger than what differences of addresses can be. */
  if (tensor->byte_offset > G_MAXSSIZE - n_bytes
      || __builtin_add_overflow ((gsize) tensor->data, tensor->byte_offset, address)
      || __builtin_add_overflow (*address, n_bytes, &end))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("from_dlpack: byte offset %" PRIu64
                      " and %zu bytes reach beyond the address space"),
                   tensor->byte_offset, n_bytes);
      return FALSE;
    }
  if (*address % gtorch_dtype_infos[dtype].alignment != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("from_dlpack: the memory is not aligned for %s"),
                   gtorch_dtype_get_name (dtype));
      return FALSE;
    }
  return TRUE;
}

/**
 * gtorch_tensor_new_from_dlpack: (skip)
 * @managed: a `DLManagedTensorVersioned *` or `DLManagedTensor *`
 * @versioned: which of the two it is
 * @error: return location for an error
 *
 * Creates a tensor that aliases the memory of another library: of the host, pinned or not, of a GPU, or
 * managed memory of CUDA.
 *
 * Memory of a GPU must be ready for this thread's current stream of that GPU, whose handle the producer
 * needs for that ([method@Stream.get_handle]).
 *
 * On success the tensor owns @managed and calls its deleter once, in the thread that drops the memory
 * last or in one of the library's: for memory of a GPU, when the enqueued work on it is done. On failure
 * @managed still belongs to the caller. If it is marked read-only, in-place operations on the tensor
 * fail.
 *
 * Returns: (transfer full): the tensor, or %NULL with %GTORCH_ERROR_FORMAT if @managed is inconsistent,
 *   and %GTORCH_ERROR_NOT_SUPPORTED for an unsupported version, device, dtype or layout
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_new_from_dlpack (gpointer managed, gboolean versioned, GError **error)
{
  GTorchDLManagedVersioned *structure = managed;
  const GTorchDLTensor *tensor;
  gint64 strides[GTORCH_MAX_DIMS];
  GTorchDevice *device;
  GTorchStorage *storage;
  GTorchImpl *impl;
  gsize n_bytes = 0, address = 0;
  guint dtype;

  if (managed == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("from_dlpack: there is no structure"));
      return NULL;
    }
  if (versioned && structure->major != GTORCH_DLPACK_MAJOR)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("from_dlpack: version %u.%u of DLPack is not version %d"), structure->major,
                   structure->minor, GTORCH_DLPACK_MAJOR);
      return NULL;
    }
  tensor = versioned ? &structure->tensor : &((GTorchDLManaged *) managed)->tensor;
  device = find_device (&tensor->device, error);
  if (device == NULL || !check_kind (tensor, &dtype, error)
      || !check_geometry (tensor, dtype, strides, &n_bytes, error)
      || !check_address (tensor, dtype, n_bytes, &address, error))
    return NULL;

  if (GTORCH_DEVICE_GET_CLASS (device)->adopt != NULL)
    storage = GTORCH_DEVICE_GET_CLASS (device)->adopt (device, (gpointer) address, n_bytes,
                                                       tensor->device.device_type
                                                           == GTORCH_DL_CUDA_MANAGED,
                                                       versioned ? delete_foreign_versioned
                                                                 : delete_foreign_managed,
                                                       managed, error);
  else
    storage = gtorch_storage_new_foreign (device, (gpointer) address, n_bytes,
                                          versioned ? free_versioned : free_managed, managed);
  if (storage == NULL)
    return NULL;
  if (versioned && (structure->flags & GTORCH_DL_READ_ONLY) != 0)
    gtorch_storage_set_read_only (storage);
  impl = gtorch_impl_new_strided (storage, dtype, 0, tensor->shape, strides, tensor->n_dims);
  gtorch_storage_unref (storage);
  return gtorch_tensor_wrap (impl);
}

/**
 * gtorch_tensor_import_dlpack:
 * @address: the address of a `DLManagedTensorVersioned` or `DLManagedTensor`
 * @versioned: which of the two it is
 * @error: return location for an error
 *
 * Creates a tensor that aliases the memory of another library, for languages that have no pointers. On
 * success the tensor owns the structure, on failure the caller still does.
 *
 * Returns: (transfer full): the tensor, or %NULL with %GTORCH_ERROR_FORMAT if the structure is
 *   inconsistent, and %GTORCH_ERROR_NOT_SUPPORTED for an unsupported version, device, dtype or layout
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_import_dlpack (gsize address, gboolean versioned, GError **error)
{
  return gtorch_tensor_new_from_dlpack ((gpointer) address, versioned, error);
}

/**
 * gtorch_dlpack_delete:
 * @address: the address of a structure that was not consumed, or 0
 * @versioned: whether it is a `DLManagedTensorVersioned` or a `DLManagedTensor`
 *
 * Calls the deleter of a structure: for the destructor of a capsule that was not consumed.
 *
 * Since: 0.1
 */
void
gtorch_dlpack_delete (gsize address, gboolean versioned)
{
  if (address != 0)
    delete_foreign ((gpointer) address, versioned);
}

/**
 * gtorch_dlpack_get_capsule_name:
 * @versioned: whether the capsule contains a `DLManagedTensorVersioned` or a `DLManagedTensor`
 * @consumed: whether the contents were consumed
 *
 * Gets the name that a Python capsule must have: `dltensor_versioned`, `dltensor`, or the same with
 * `used_` before it.
 *
 * Returns: the name
 *
 * Since: 0.1
 */
const gchar *
gtorch_dlpack_get_capsule_name (gboolean versioned, gboolean consumed)
{
  if (versioned)
    return consumed ? "used_dltensor_versioned" : "dltensor_versioned";
  return consumed ? "used_dltensor" : "dltensor";
}
