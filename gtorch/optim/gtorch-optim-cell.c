/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Memory that optimizers and graphs have in common. */

#include "config.h"

#include "gtorch-ops-private.h"
#include "gtorch-optimizer-private.h"
#include "gtorch-stream-private.h"
#include "gtorch-tensor-ops.h"
#include "gtorch-tensor-private.h"

/* Out of the capture of the current stream, if there is one. */
static gboolean
leave (GTorchDevice *device, GTorchStream **former)
{
  GTorchStream *current = gtorch_current_stream (device);

  if (current == NULL || !gtorch_stream_is_capturing (current))
    return FALSE;
  *former = gtorch_stream_swap (device, NULL);
  gtorch_thread.is_apart = TRUE;
  return TRUE;
}

/* A replay may be on any stream. */
static gboolean
come_back (GTorchDevice *device, GTorchStream *former, GError **error)
{
  GTorchStream *own = gtorch_stream_swap (device, former);

  gtorch_thread.is_apart = FALSE;
  g_clear_object (&own);
  g_clear_object (&former);
  return gtorch_stream_synchronize (gtorch_device_get_default_stream (device), NULL, error);
}

GTorchTensor *
gtorch_optim_new_filled (GTorchTensor *like, GTorchDevice *device, gdouble value, GError **error)
{
  g_autoptr (GTorchTensor) tensor = NULL;
  GTorchStream *former = NULL;
  gboolean left = leave (device, &former);

  if (like != NULL)
    tensor = gtorch_tensor_full_like (like, value, GTORCH_DTYPE_NONE, error);
  else
    tensor = gtorch_full (NULL, 0, value, GTORCH_DTYPE_FLOAT64, device, error);
  if (left && !come_back (device, former, tensor != NULL ? error : NULL))
    return NULL;
  return g_steal_pointer (&tensor);
}

gboolean
gtorch_optim_fill (GTorchTensor *tensor, gdouble value, GError **error)
{
  GTorchDevice *device = gtorch_tensor_get_device (tensor);
  GTorchStream *former = NULL;
  gboolean left = leave (device, &former);
  gboolean result = gtorch_op_fill_inplace (gtorch_tensor_unwrap (tensor), value, error);

  if (left)
    result = come_back (device, former, result ? error : NULL) && result;
  return result;
}
