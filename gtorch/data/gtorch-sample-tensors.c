/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What is done to all tensors of a sample. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-callback-private.h"
#include "data/gtorch-sample-private.h"
#include "device/gtorch-device-private.h"
#include "gtorch-ops-private.h"
#include "gtorch-tensor-ops.h"
#include "memory/gtorch-pinned-private.h"
#include "tensor/gtorch-hold-private.h"
#include "tensor/gtorch-tensor-private.h"

static void
add_tensors (GTorchSample *self, GPtrArray *tensors)
{
  guint i;

  if (self->kind == GTORCH_SAMPLE_TENSOR)
    g_ptr_array_add (tensors, g_object_ref (self->tensor));
  for (i = 0; i < gtorch_sample_get_n_children (self); i++)
    add_tensors (self->children[i], tensors);
}

/**
 * gtorch_sample_get_tensors:
 * @self: a sample
 *
 * Lists all tensors of a sample and of those in it, in order.
 *
 * Returns: (transfer container) (element-type GTorchTensor): the tensors
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_sample_get_tensors (GTorchSample *self)
{
  GPtrArray *tensors;

  g_return_val_if_fail (self != NULL, NULL);
  tensors = g_ptr_array_new_with_free_func (g_object_unref);
  add_tensors (self, tensors);
  return tensors;
}

static GTorchSample *
map_tensor (GTorchSample *self, GTorchSampleMapFunc func, gpointer user_data, GError **error)
{
  GError *local = NULL;
  GTorchTensor *tensor = func (self->tensor, user_data, &local);

  if (!gtorch_callback_gave ("sample_map_tensors", tensor, local, error))
    {
      g_clear_object (&tensor);
      return NULL;
    }
  if (!gtorch_callback_check ("sample_map_tensors", N_ ("the function"), &tensor,
                              GTORCH_TYPE_TENSOR, error))
    return NULL;
  if (tensor != self->tensor)
    return gtorch_sample_take_tensor (tensor);
  g_object_unref (tensor);
  return gtorch_sample_ref (self);
}

/**
 * gtorch_sample_map_tensors:
 * @self: a sample
 * @func: (scope call) (closure user_data): returns what takes the place of a tensor
 * @user_data: data for @func
 * @error: return location for an error
 *
 * Makes a sample of the same structure with other tensors.
 *
 * Returns: (transfer full): the sample, which is @self if no tensor is another one; %NULL with the error of
 *   @func
 *
 * Since: 0.1
 */
GTorchSample *
gtorch_sample_map_tensors (GTorchSample *self, GTorchSampleMapFunc func, gpointer user_data,
                           GError **error)
{
  GTorchSample **children;
  gboolean is_other = FALSE;
  guint i, n;

  g_return_val_if_fail (self != NULL, NULL);
  g_return_val_if_fail (func != NULL, NULL);
  if (self->kind == GTORCH_SAMPLE_TENSOR)
    return map_tensor (self, func, user_data, error);
  n = gtorch_sample_get_n_children (self);
  if (n == 0)
    return gtorch_sample_ref (self);
  children = g_new0 (GTorchSample *, n + 1);
  for (i = 0; i < n; i++)
    {
      children[i] = gtorch_sample_map_tensors (self->children[i], func, user_data, error);
      if (children[i] == NULL)
        break;
      is_other = is_other || children[i] != self->children[i];
    }
  if (i == n && is_other)
    return gtorch_sample_take (children, n, g_strdupv (self->keys));
  is_other = i < n;
  while (i-- > 0)
    gtorch_sample_unref (children[i]);
  g_free (children);
  return is_other ? NULL : gtorch_sample_ref (self);
}

typedef struct
{
  GTorchDevice *device;
  gboolean non_blocking;
} Target;

static GTorchTensor *
move_tensor (GTorchTensor *tensor, gpointer target, GError **error)
{
  return gtorch_tensor_to_device (tensor, ((Target *) target)->device,
                                  ((Target *) target)->non_blocking, error);
}

/**
 * gtorch_sample_to_device:
 * @self: a sample
 * @device: where to
 * @non_blocking: whether the host does not wait for copies from pinned memory
 * @error: return location for an error
 *
 * Copies the tensors of a sample to a device, as [method@Tensor.to_device] does.
 *
 * Returns: (transfer full): the sample there, which is @self if all tensors were there; %NULL with the errors
 *   of [method@Tensor.to_device]
 *
 * Since: 0.1
 */
GTorchSample *
gtorch_sample_to_device (GTorchSample *self, GTorchDevice *device, gboolean non_blocking,
                         GError **error)
{
  Target target = { device, non_blocking };

  g_return_val_if_fail (self != NULL, NULL);
  g_return_val_if_fail (GTORCH_IS_DEVICE (device), NULL);
  return gtorch_sample_map_tensors (self, move_tensor, &target, error);
}

static GTorchTensor *
pin_tensor (GTorchTensor *tensor, gpointer unused, GError **error)
{
  GTORCH_HOLD_TENSOR (tensor);
  GTorchImpl *impl = gtorch_tensor_unwrap (tensor);
  GTorchImpl *pinned;

  if (impl->storage != NULL
      && (impl->device != gtorch_device_cpu () || gtorch_storage_is_pinned (impl->storage)))
    return g_object_ref (tensor);
  pinned = gtorch_impl_new_pinned (impl->dtype, impl->shape, impl->n_dims, error);
  if (pinned == NULL)
    {
      g_prefix_error (error, "sample_pin: ");
      return NULL;
    }
  if (!gtorch_op_copy_inplace (pinned, impl, FALSE, error))
    {
      gtorch_impl_unref (pinned);
      return NULL;
    }
  return gtorch_tensor_wrap (pinned);
}

/**
 * gtorch_sample_pin:
 * @self: a sample
 * @error: return location for an error
 *
 * Copies the tensors of a sample that are on the CPU to pinned memory, from which devices copy while the host
 * does other things. Those of other devices, and those that are pinned, stay as they are.
 *
 * Returns: (transfer full): the sample, which is @self if there was nothing to copy; %NULL with
 *   %GTORCH_ERROR_DEVICE if there is no device to pin for, with %GTORCH_ERROR_OUT_OF_MEMORY or
 *   %GTORCH_ERROR_RELEASED
 *
 * Since: 0.1
 */
GTorchSample *
gtorch_sample_pin (GTorchSample *self, GError **error)
{
  g_return_val_if_fail (self != NULL, NULL);
  return gtorch_sample_map_tensors (self, pin_tensor, NULL, error);
}

/**
 * gtorch_sample_get_n_bytes:
 * @self: a sample
 *
 * Counts the bytes of the elements of all tensors of a sample.
 *
 * Returns: the number of bytes
 *
 * Since: 0.1
 */
gsize
gtorch_sample_get_n_bytes (GTorchSample *self)
{
  gsize n_bytes = 0;
  guint i;

  g_return_val_if_fail (self != NULL, 0);
  if (self->kind == GTORCH_SAMPLE_TENSOR)
    n_bytes += gtorch_impl_n_bytes (gtorch_tensor_get_impl (self->tensor));
  for (i = 0; i < gtorch_sample_get_n_children (self); i++)
    n_bytes += gtorch_sample_get_n_bytes (self->children[i]);
  return n_bytes;
}
