/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "device/gtorch-device-private.h"
#include "tensor/gtorch-uninitialized-private.h"
#include "gtorch-ops-private.h"
#include "base/gtorch-observer-private.h"
#include "stream/gtorch-stream-private.h"
#include "memory/gtorch-pinned-private.h"

GTorchImpl *
gtorch_copy_to_device (GTorchImpl *src, GTorchDevice *device, gboolean non_blocking,
                       GTorchImpl *into, GError **error)
{
  g_autoptr (GTorchImpl) plain = NULL;
  g_autoptr (GTorchImpl) moved = NULL;
  GTorchDevice *from = src->storage->device;
  GTorchDevice *active = gtorch_device_is_host (device) ? from : device;
  GTorchStream *stream = gtorch_current_stream (active);

  if (stream != NULL && !gtorch_stream_check_cancellable (stream, "copy", error))
    return NULL;
  if (src->is_contiguous)
    plain = gtorch_impl_ref (src);
  else
    {
      g_autoptr (GTorchImpl) alias = gtorch_impl_alias (src); /* without autograd */

      plain = gtorch_op_clone (alias, error);
    }
  if (plain == NULL)
    return NULL;
  moved = into != NULL ? gtorch_impl_ref (into)
                       : gtorch_impl_new (device, src->dtype, src->shape, src->n_dims, error);
  if (moved == NULL || !gtorch_auto_sync (device, error) || !gtorch_auto_sync (from, error)
      || !gtorch_observe_copy (moved, plain, error)
      || !GTORCH_DEVICE_GET_CLASS (active)->copy (active, moved, plain, non_blocking, error))
    return NULL;
  return g_steal_pointer (&moved);
}

GTorchImpl *
gtorch_op_to_device (GTorchImpl *self, GTorchDevice *device, gboolean non_blocking, GError **error)
{
  g_autoptr (GTorchImpl) moved = NULL;

  if (!gtorch_impl_check_memory (self, "to_device", error))
    return NULL;
  if (device == NULL || device == self->storage->device)
    return gtorch_impl_ref (self);
  /* A GPU copies asynchronously to pinned memory only. Without pinned memory the copy is synchronous. */
  if (non_blocking && gtorch_device_is_host (device)
      && gtorch_impl_device (self)->backend->copies_alone)
    moved = gtorch_impl_new_pinned (self->dtype, self->shape, self->n_dims, NULL);
  if (moved == NULL)
    moved = gtorch_op_empty (self->shape, self->n_dims, self->dtype, device, error);
  if (moved == NULL || !gtorch_op_copy_inplace (moved, self, non_blocking, error))
    return NULL;
  return g_steal_pointer (&moved);
}

GTorchImpl *
gtorch_op_to (GTorchImpl *self, GTorchDType dtype, GTorchDevice *device, gboolean non_blocking,
              gboolean copy, GError **error)
{
  g_autoptr (GTorchImpl) moved = NULL;

  if (!gtorch_impl_check_memory (self, "to", error))
    return NULL;
  /* The conversion comes first, on the device: converting on the host would have to wait for the copy. */
  if (non_blocking && device != NULL && gtorch_device_is_host (device) && dtype != GTORCH_DTYPE_NONE
      && (guint) dtype != self->dtype)
    {
      g_autoptr (GTorchImpl) converted = gtorch_op_to_dtype (self, dtype, error);

      return converted != NULL ? gtorch_op_to_device (converted, device, TRUE, error) : NULL;
    }
  moved = gtorch_op_to_device (self, device, non_blocking, error);
  if (moved == NULL)
    return NULL;
  if (dtype != GTORCH_DTYPE_NONE && (guint) dtype != moved->dtype)
    return gtorch_op_to_dtype (moved, dtype, error);
  if (copy && moved == self)
    return gtorch_op_clone (self, error);
  return g_steal_pointer (&moved);
}

GTorchImpl *
gtorch_op_type_as (GTorchImpl *self, GTorchImpl *other, GError **error)
{
  return gtorch_impl_check_memory (other, "type_as", error)
             ? gtorch_op_to (self, other->dtype, other->storage->device, FALSE, FALSE, error)
             : NULL;
}
