/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Memory that optimizers share with graphs. */

#include "config.h"

#include "gtorch-ops-private.h"
#include "optim/gtorch-optimizer-private.h"
#include "stream/gtorch-stream-private.h"
#include "gtorch-tensor-ops.h"
#include "tensor/gtorch-tensor-private.h"

/* Leaves the capture of the current stream, if there is one. */
static gboolean
leave (GTorchDevice *device, GTorchChange *change)
{
  GTorchStream *current = gtorch_current_stream (device);

  if (current == NULL || !gtorch_stream_is_capturing (current))
    return FALSE;
  gtorch_change_to_stream (change, device, NULL);
  gtorch_thread.is_apart = TRUE;
  return TRUE;
}

/* Returns to the capture, and waits for the work outside it, since replays may run on any stream. */
static gboolean
come_back (GTorchDevice *device, GTorchChange *change, GError **error)
{
  gtorch_change_end (change);
  gtorch_thread.is_apart = FALSE;
  return gtorch_stream_synchronize (gtorch_device_get_default_stream (device), NULL, error);
}

GTorchTensor *
gtorch_optim_new_filled (GTorchTensor *like, GTorchDevice *device, gdouble value, GError **error)
{
  g_autoptr (GTorchTensor) tensor = NULL;
  GTorchChange change;
  gboolean left = leave (device, &change);

  if (like != NULL)
    tensor = gtorch_tensor_full_like (like, value, GTORCH_DTYPE_NONE, error);
  else
    tensor = gtorch_full (NULL, 0, value, GTORCH_DTYPE_FLOAT64, device, error);
  if (left && !come_back (device, &change, tensor != NULL ? error : NULL))
    return NULL;
  return g_steal_pointer (&tensor);
}

gboolean
gtorch_optim_fill (GTorchTensor *tensor, gdouble value, GError **error)
{
  GTorchDevice *device = gtorch_tensor_get_device (tensor);
  GTorchChange change;
  gboolean left = leave (device, &change);
  gboolean result = gtorch_op_fill_inplace (gtorch_tensor_unwrap (tensor), value, error);

  if (left)
    result = come_back (device, &change, result ? error : NULL) && result;
  return result;
}
