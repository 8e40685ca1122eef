/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Where an operation goes to a GPU. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "cuda/gtorch-cuda-private.h"

gboolean
gtorch_cuda_launch (GTorchDevice *device, GTorchStream *stream, GTorchOpCall *call, GError **error)
{
  GTorchCudaLane *lane = gtorch_cuda_current_lane (device, error);
  guint i;

  if (G_UNLIKELY (lane == NULL))
    return FALSE;
  gtorch_cuda_note_begin (lane, call->op->name);
  if (G_UNLIKELY (!gtorch_cuda_note_end (lane, call->op->cuda (call, lane, error))))
    {
      if (error != NULL && *error != NULL && !g_str_has_prefix ((*error)->message, call->op->name))
        g_prefix_error (error, "%s: ", call->op->name);
      return FALSE;
    }
  for (i = 0; i < call->n_inputs; i++)
    if (call->inputs[i] != NULL && call->inputs[i]->storage->device == device)
      gtorch_cuda_use_storage (call->inputs[i]->storage, lane);
  for (i = 0; i < call->n_outputs; i++)
    if (call->outputs[i] != NULL)
      gtorch_cuda_use_storage (call->outputs[i]->storage, lane);
  if (G_UNLIKELY (gtorch_get_launch_blocking ()))
    return gtorch_cuda_lane_synchronize (lane, call->op->name, error);
  return TRUE;
}
