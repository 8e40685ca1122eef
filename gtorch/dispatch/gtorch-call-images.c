/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Images whose channels are the innermost dimension in memory. */

#include "config.h"

#include "dispatch/gtorch-op-private.h"
#include "tensor/gtorch-impl-private.h"

static void
set_strides (const gint64 *shape, guint n_dims, gint64 *strides)
{
  gint64 stride = shape[1];
  guint i;

  strides[1] = 1;
  for (i = n_dims; i-- > 2; stride *= shape[i])
    strides[i] = stride;
  strides[0] = stride;
}

gboolean
gtorch_impl_is_channels_last (const GTorchImpl *impl)
{
  gint64 strides[GTORCH_CHANNELS_LAST_MAX];
  guint i;

  if (impl->is_contiguous || impl->n_dims < 3 || impl->n_dims > GTORCH_CHANNELS_LAST_MAX)
    return FALSE;
  set_strides (impl->shape, impl->n_dims, strides);
  for (i = 0; i < impl->n_dims; i++)
    if (impl->shape[i] > 1 && impl->strides[i] != strides[i])
      return FALSE;
  return TRUE;
}

gboolean
gtorch_call_set_images (GTorchOpCall *call, guint i, guint dtype, const gint64 *shape, guint n_dims,
                        gboolean channels_last, GError **error)
{
  const gboolean is_preset = call->outputs[i] != NULL; /* whose order stays */
  gint64 strides[GTORCH_CHANNELS_LAST_MAX];
  GTorchImpl *plain;

  if (!gtorch_call_set_output (call, i, dtype, shape, n_dims, error))
    return FALSE;
  plain = call->outputs[i];
  if (!channels_last || is_preset || plain->numel == 0)
    return TRUE;
  set_strides (shape, n_dims, strides);
  call->outputs[i] =
      gtorch_impl_new_strided (plain->storage, dtype, plain->offset, shape, strides, n_dims);
  gtorch_impl_unref (plain);
  return TRUE;
}
