/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Copies of tensors to several devices of one process, and sums and joins of those that are there. They are
 * made of operations, so that gradients go through them. */

#include "config.h"

#include "distributed/gtorch-comm.h"
#include "distributed/gtorch-comm-private.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "base/gtorch-error.h"
#include "device/gtorch-device-private.h"
#include "distributed/gtorch-engine-private.h"
#include "gtorch-tensor-ops.h"
#include "memory/gtorch-guard.h"
#include "stream/gtorch-stream.h"
#include "tensor/gtorch-tensor-private.h"

gboolean
gtorch_are_devices (GTorchDevice **devices, gsize n)
{
  gsize i;

  for (i = 0; i < n; i++)
    if (devices == NULL || !GTORCH_IS_DEVICE (devices[i]))
      return FALSE;
  return TRUE;
}

GTorchDevice **
gtorch_devices_resolve (GTorchDevice **devices, gsize n)
{
  GTorchDevice **resolved = g_new (GTorchDevice *, MAX (n, 1));
  gsize i;

  for (i = 0; i < n; i++)
    resolved[i] = gtorch_device_resolved (devices[i]);
  return resolved;
}

gboolean
gtorch_comm_check_some (const gchar *name, gsize n, const gchar *what, GError **error)
{
  if (n > 0)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: there are no %s; it takes one or more"), name, _ (what));
  return FALSE;
}

static GTorchDevice *
device_of (GTorchTensor *tensor)
{
  return gtorch_impl_device (gtorch_tensor_unwrap (tensor));
}

/* The tensor itself if it is there. */
static GTorchTensor *
bring (GTorchTensor *tensor, GTorchDevice *device, GError **error)
{
  return device_of (tensor) == device ? g_object_ref (tensor)
                                      : gtorch_tensor_to_device (tensor, device, FALSE, error);
}

static GTorchDevice *
find_destination (GTorchTensor *first, GTorchDevice *destination, GError **error)
{
  return destination != NULL
             ? gtorch_device_resolved (destination)
             : gtorch_device_get_current (gtorch_device_get_device_type (device_of (first)), error);
}

/* --- copies --- */

/**
 * gtorch_comm_broadcast:
 * @tensor: a tensor
 * @devices: (array length=n_devices): where copies are made
 * @n_devices: the number of @devices, 1 or more
 * @error: return location for an error
 *
 * Copies a tensor to several devices. On its own device it is the tensor itself. The gradient of @tensor is
 * the sum of those of the copies.
 *
 * ```python
 * copies = GTorch.comm_broadcast(x, [GTorch.Device.cuda(0), GTorch.Device.cuda(1)])
 * ```
 *
 * Returns: (transfer container) (element-type GTorchTensor): as many tensors as there are devices, or %NULL
 *   with @error set
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_comm_broadcast (GTorchTensor *tensor, GTorchDevice **devices, gsize n_devices,
                       GError **error)
{
  g_autoptr (GPtrArray) copies = NULL;
  gsize i;

  g_return_val_if_fail (GTORCH_IS_TENSOR (tensor) && gtorch_are_devices (devices, n_devices), NULL);
  if (!gtorch_comm_check_some ("comm_broadcast", n_devices, N_ ("devices"), error))
    return NULL;
  copies = g_ptr_array_new_full (n_devices, g_object_unref);
  for (i = 0; i < n_devices; i++)
    {
      GTorchTensor *copy = bring (tensor, gtorch_device_resolved (devices[i]), error);

      if (copy == NULL)
        return NULL;
      g_ptr_array_add (copies, copy);
    }
  return g_steal_pointer (&copies);
}

static gboolean
check_shape (const gchar *name, GTorchTensor *tensor, GTorchTensor *other, gsize position,
             GError **error)
{
  GTorchImpl *a = gtorch_tensor_unwrap (tensor), *b = gtorch_tensor_unwrap (other);

  if (gtorch_impl_same_shape (a, b))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("%s: the tensors have different shapes, %s and, at %zu, %s"), name,
               gtorch_impl_shape_str (a), position, gtorch_impl_shape_str (b));
  return FALSE;
}

/**
 * gtorch_comm_broadcast_out:
 * @tensor: a tensor
 * @out: (array length=n_out): tensors of its shape, which are overwritten
 * @n_out: the number of @out, 1 or more
 * @error: return location for an error
 *
 * Copies a tensor into those of several devices, as [func@comm_broadcast] makes new ones.
 *
 * Returns: %TRUE, or %FALSE with @error set: %GTORCH_ERROR_SHAPE if one has another shape; nothing was
 *   written then
 *
 * Since: 0.1
 */
gboolean
gtorch_comm_broadcast_out (GTorchTensor *tensor, GTorchTensor **out, gsize n_out, GError **error)
{
  gsize i;

  g_return_val_if_fail (GTORCH_IS_TENSOR (tensor) && gtorch_are_tensors (out, n_out), FALSE);
  if (!gtorch_comm_check_some ("comm_broadcast", n_out, N_ ("tensors"), error))
    return FALSE;
  for (i = 0; i < n_out; i++)
    if (!check_shape ("comm_broadcast", tensor, out[i], i, error))
      return FALSE;
  for (i = 0; i < n_out; i++)
    if (gtorch_tensor_copy_inplace (out[i], tensor, TRUE, error) == NULL)
      return FALSE;
  return TRUE;
}

/* --- sums --- */

/**
 * gtorch_comm_reduce_add:
 * @inputs: (array length=n_inputs): tensors of one shape, on any devices
 * @n_inputs: the number of @inputs, 1 or more
 * @destination: (nullable): where the sum is computed, or %NULL for the current device of the type of the
 *   first tensor's
 * @error: return location for an error
 *
 * Adds up tensors of several devices. The first number is that of the input that is on @destination, if there
 * is one; the others follow in their order. A single input that is there is returned itself.
 *
 * ```python
 * total = GTorch.comm_reduce_add(parts, GTorch.Device.cuda(0))
 * ```
 *
 * Returns: (transfer full): the sum, or %NULL with @error set: %GTORCH_ERROR_SHAPE if the shapes differ
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_comm_reduce_add (GTorchTensor **inputs, gsize n_inputs, GTorchDevice *destination,
                        GError **error)
{
  g_autoptr (GTorchTensor) total = NULL;
  GTorchDevice *device;
  gboolean is_own = FALSE;
  gsize first = 0, i;

  g_return_val_if_fail (gtorch_are_tensors (inputs, n_inputs), NULL);
  g_return_val_if_fail (destination == NULL || GTORCH_IS_DEVICE (destination), NULL);
  if (!gtorch_comm_check_some ("comm_reduce_add", n_inputs, N_ ("tensors"), error))
    return NULL;
  for (i = 1; i < n_inputs; i++)
    if (!check_shape ("comm_reduce_add", inputs[0], inputs[i], i, error))
      return NULL;
  device = find_destination (inputs[0], destination, error);
  if (device == NULL)
    return NULL;
  for (i = n_inputs; i-- > 0;)
    if (device_of (inputs[i]) == device)
      first = i;
  total = bring (inputs[first], device, error);
  for (i = 0; total != NULL && i < n_inputs; i++)
    {
      g_autoptr (GTorchTensor) here = NULL;

      if (i == first)
        continue;
      here = bring (inputs[i], device, error);
      if (here == NULL)
        return NULL;
      /* the first sum is a tensor of its own, to which the others are added */
      if (is_own && gtorch_tensor_add_inplace (total, here, 1, error) == NULL)
        return NULL;
      if (!is_own)
        {
          GTorchTensor *sum = gtorch_tensor_add (total, here, 1, error);

          g_object_unref (total);
          total = sum;
          is_own = TRUE;
        }
    }
  return g_steal_pointer (&total);
}

/* --- parts --- */

static gboolean
check_dim (const gchar *name, GTorchTensor *tensor, gint *dim, GError **error)
{
  const gint n_dims = (gint) gtorch_tensor_unwrap (tensor)->n_dims;

  if (n_dims == 0)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("%s: a tensor without dimensions cannot be divided"), name);
  else if (*dim < -n_dims || *dim >= n_dims)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX,
                 _ ("%s: dim %d is out of range for %d dimensions"), name, *dim, n_dims);
  else
    {
      if (*dim < 0)
        *dim += n_dims;
      return TRUE;
    }
  return FALSE;
}

static gboolean
check_sizes (const gchar *name, GTorchTensor *tensor, gint dim, const gint64 *sizes, gsize n,
             gsize n_parts, GError **error)
{
  const gint64 length = gtorch_tensor_unwrap (tensor)->shape[dim];
  g_autoptr (GString) text = NULL;
  gboolean is_right = n == n_parts;
  gint64 sum = 0;
  gsize i;

  for (i = 0; i < n; i++)
    is_right &= sizes[i] >= 0 && !__builtin_add_overflow (sum, sizes[i], &sum);
  if (is_right && sum == length)
    return TRUE;
  text = g_string_new (NULL);
  for (i = 0; i < n; i++)
    g_string_append_printf (text, "%s%" PRId64, i > 0 ? ", " : "", sizes[i]);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("%s: parts of [%s] for %zu devices do not make up dimension %d, %" PRId64), name,
               text->str, n_parts, dim, length);
  return FALSE;
}

static gboolean
check_streams (GTorchStream **streams, gsize n_streams, gsize n_parts, GError **error)
{
  if (streams == NULL || n_streams == 0 || n_streams >= n_parts)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("comm_scatter: there are %zu streams for %zu parts"), n_streams, n_parts);
  return FALSE;
}

static gboolean
are_streams (GTorchStream **streams, gsize n)
{
  gsize i;

  for (i = 0; i < n; i++)
    if (streams == NULL || !GTORCH_IS_STREAM (streams[i]))
      return FALSE;
  return TRUE;
}

/* On the stream of the part's own, if there are any. */
static GTorchTensor *
copy_part (GTorchTensor *part, GTorchDevice *device, GTorchTensor *out, GTorchStream **streams,
           gsize n_streams, gsize i, GError **error)
{
  g_autoptr (GTorchStreamGuard) guard = n_streams > 0 ? gtorch_stream_guard_new (streams[i]) : NULL;

  if (out == NULL)
    return bring (part, device, error);
  out = gtorch_tensor_copy_inplace (out, part, TRUE, error);
  return out == NULL ? NULL : g_object_ref (out);
}

/* Parts of these sizes, or equal ones but for the last, which may be fewer than there are devices. */
static GPtrArray *
divide (GTorchTensor *tensor, gint dim, const gint64 *sizes, gsize n_sizes, gsize n_parts,
        GError **error)
{
  return n_sizes == 0 ? gtorch_tensor_chunk (tensor, (gint64) n_parts, dim, error)
                      : gtorch_tensor_split_with_sizes (tensor, sizes, n_sizes, dim, error);
}

/**
 * gtorch_comm_scatter:
 * @tensor: a tensor with a dimension or more
 * @devices: (array length=n_devices): where its parts go
 * @n_devices: the number of @devices, 1 or more
 * @chunk_sizes: (array length=n_chunk_sizes) (nullable): the lengths of the parts, one for each device, or
 *   %NULL for parts of equal length but for the last
 * @n_chunk_sizes: the number of @chunk_sizes, which is that of the devices, or 0
 * @dim: the dimension along which it is divided
 * @streams: (array length=n_streams) (nullable): streams on which the copies are made, one for each part, or
 *   %NULL for the current ones
 * @n_streams: the number of @streams
 * @error: return location for an error
 *
 * Divides a tensor among devices. A part whose device is that of the tensor is a view of it. If the length is
 * less than the number of devices, or parts of equal length end before the last, there are fewer parts than
 * devices. The gradient of @tensor has those of the parts.
 *
 * ```python
 * parts = GTorch.comm_scatter(batch, [GTorch.Device.cuda(0), GTorch.Device.cuda(1)], None, 0, None)
 * ```
 *
 * Returns: (transfer container) (element-type GTorchTensor): the parts, or %NULL with @error set:
 *   %GTORCH_ERROR_SHAPE if @chunk_sizes do not make up the dimension, %GTORCH_ERROR_INDEX if there is no
 *   dimension @dim
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_comm_scatter (GTorchTensor *tensor, GTorchDevice **devices, gsize n_devices,
                     const gint64 *chunk_sizes, gsize n_chunk_sizes, gint dim,
                     GTorchStream **streams, gsize n_streams, GError **error)
{
  const gchar *const name = "comm_scatter";
  g_autoptr (GPtrArray) parts = NULL, moved = NULL;
  guint i;

  g_return_val_if_fail (GTORCH_IS_TENSOR (tensor) && gtorch_are_devices (devices, n_devices), NULL);
  g_return_val_if_fail (n_chunk_sizes == 0 || chunk_sizes != NULL, NULL);
  g_return_val_if_fail (are_streams (streams, n_streams), NULL);
  if (!gtorch_comm_check_some (name, n_devices, N_ ("devices"), error)
      || !check_dim (name, tensor, &dim, error)
      || (n_chunk_sizes > 0
          && !check_sizes (name, tensor, dim, chunk_sizes, n_chunk_sizes, n_devices, error)))
    return NULL;
  parts = divide (tensor, dim, chunk_sizes, n_chunk_sizes, n_devices, error);
  if (parts == NULL || !check_streams (streams, n_streams, parts->len, error))
    return NULL;
  moved = g_ptr_array_new_full (parts->len, g_object_unref);
  for (i = 0; i < parts->len; i++)
    {
      GTorchTensor *part = copy_part (parts->pdata[i], gtorch_device_resolved (devices[i]), NULL,
                                      streams, n_streams, i, error);

      if (part == NULL)
        return NULL;
      g_ptr_array_add (moved, part);
    }
  return g_steal_pointer (&moved);
}

/**
 * gtorch_comm_scatter_out:
 * @tensor: a tensor with a dimension or more
 * @out: (array length=n_out): where its parts go: tensors that are overwritten, and whose lengths along @dim
 *   say how the tensor is divided
 * @n_out: the number of @out, 1 or more
 * @dim: the dimension along which it is divided
 * @streams: (array length=n_streams) (nullable): streams on which the copies are made, one for each part, or
 *   %NULL for the current ones
 * @n_streams: the number of @streams
 * @error: return location for an error
 *
 * Divides a tensor among tensors of several devices, as [func@comm_scatter] makes new ones.
 *
 * Returns: %TRUE, or %FALSE with @error set: %GTORCH_ERROR_SHAPE if the shapes of @out do not make up that of
 *   @tensor; nothing was written then
 *
 * Since: 0.1
 */
gboolean
gtorch_comm_scatter_out (GTorchTensor *tensor, GTorchTensor **out, gsize n_out, gint dim,
                         GTorchStream **streams, gsize n_streams, GError **error)
{
  const gchar *const name = "comm_scatter";
  g_autoptr (GPtrArray) parts = NULL;
  g_autofree gint64 *sizes = NULL;
  gsize i;

  g_return_val_if_fail (GTORCH_IS_TENSOR (tensor) && gtorch_are_tensors (out, n_out), FALSE);
  g_return_val_if_fail (are_streams (streams, n_streams), FALSE);
  if (!gtorch_comm_check_some (name, n_out, N_ ("tensors"), error)
      || !check_dim (name, tensor, &dim, error)
      || !check_streams (streams, n_streams, n_out, error))
    return FALSE;
  sizes = g_new (gint64, n_out);
  for (i = 0; i < n_out; i++)
    {
      const GTorchImpl *impl = gtorch_tensor_unwrap (out[i]);

      sizes[i] = (guint) dim < impl->n_dims ? impl->shape[dim] : -1;
    }
  if (!check_sizes (name, tensor, dim, sizes, n_out, n_out, error))
    return FALSE;
  parts = divide (tensor, dim, sizes, n_out, n_out, error);
  for (i = 0; parts != NULL && i < n_out; i++)
    if (!check_shape (name, parts->pdata[i], out[i], i, error))
      return FALSE;
  for (i = 0; parts != NULL && i < n_out; i++)
    {
      g_autoptr (GTorchTensor) done =
          copy_part (parts->pdata[i], NULL, out[i], streams, n_streams, i, error);

      if (done == NULL)
        return FALSE;
    }
  return parts != NULL;
}

static GTorchTensor *
join (GTorchTensor **tensors, gsize n_tensors, gint dim, GTorchDevice *device, GError **error)
{
  g_autoptr (GPtrArray) here = g_ptr_array_new_full (n_tensors, g_object_unref);
  gsize i;

  for (i = 0; i < n_tensors; i++)
    {
      GTorchTensor *one = bring (tensors[i], device, error);

      if (one == NULL)
        return NULL;
      g_ptr_array_add (here, one);
    }
  return gtorch_cat ((GTorchTensor **) here->pdata, n_tensors, dim, error);
}

/**
 * gtorch_comm_gather:
 * @tensors: (array length=n_tensors): tensors of any devices, which differ along @dim only
 * @n_tensors: the number of @tensors, 1 or more
 * @dim: the dimension along which they are joined
 * @destination: (nullable): where the result is, or %NULL for the current device of the type of the first
 *   tensor's
 * @error: return location for an error
 *
 * Joins tensors of several devices. Gradients go back to each.
 *
 * ```python
 * whole = GTorch.comm_gather(parts, 0, GTorch.Device.cpu())
 * ```
 *
 * Returns: (transfer full): the joined tensor, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_comm_gather (GTorchTensor **tensors, gsize n_tensors, gint dim, GTorchDevice *destination,
                    GError **error)
{
  GTorchDevice *device;

  g_return_val_if_fail (gtorch_are_tensors (tensors, n_tensors), NULL);
  g_return_val_if_fail (destination == NULL || GTORCH_IS_DEVICE (destination), NULL);
  if (!gtorch_comm_check_some ("comm_gather", n_tensors, N_ ("tensors"), error))
    return NULL;
  device = find_destination (tensors[0], destination, error);
  return device == NULL ? NULL : join (tensors, n_tensors, dim, device, error);
}

/**
 * gtorch_comm_gather_out:
 * @tensors: (array length=n_tensors): tensors of any devices, which differ along @dim only
 * @n_tensors: the number of @tensors, 1 or more
 * @dim: the dimension along which they are joined
 * @out: a tensor of the shape of the result, which is overwritten
 * @error: return location for an error
 *
 * Joins tensors of several devices in one that is there already, as [func@comm_gather] makes a new one.
 *
 * Returns: %TRUE, or %FALSE with @error set: %GTORCH_ERROR_SHAPE if @out has another shape; nothing was
 *   written then
 *
 * Since: 0.1
 */
gboolean
gtorch_comm_gather_out (GTorchTensor **tensors, gsize n_tensors, gint dim, GTorchTensor *out,
                        GError **error)
{
  g_autoptr (GTorchTensor) joined = NULL;

  g_return_val_if_fail (gtorch_are_tensors (tensors, n_tensors), FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (out), FALSE);
  if (!gtorch_comm_check_some ("comm_gather", n_tensors, N_ ("tensors"), error))
    return FALSE;
  joined = join (tensors, n_tensors, dim, device_of (out), error);
  return joined != NULL && check_shape ("comm_gather", joined, out, 0, error)
         && gtorch_tensor_copy_inplace (out, joined, FALSE, error) != NULL;
}
