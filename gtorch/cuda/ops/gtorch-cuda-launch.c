/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Launches operations on a GPU. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "dispatch/gtorch-run-private.h"
#include "cuda/graph/gtorch-cuda-capture-private.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"

/* Lets the fake driver perform an operation for which it has no kernel. Returns FALSE with any other
 * driver. */
static gboolean
stand_in (GTorchOpCall *call, GTorchCudaLane *lane)
{
  const gboolean is_random = (call->op->flags & GTORCH_OP_FLAG_RANDOM) != 0;
  GtRandom random;

  if (is_random)
    gtorch_cuda_random_keys (&random, call->seed, call->counter);
  return gtorch_cuda_driver_stand_in (call, lane->handle, gtorch_device_cpu (),
                                      gtorch_cuda_report (lane, NULL), is_random ? &random : NULL)
         && (!is_random
             || gtorch_cuda_note_random (lane, call->counter, sizeof (gpointer) + sizeof random,
                                         sizeof (gpointer), NULL));
}

static G_GNUC_NO_INLINE gboolean
fall_back (GTorchOpCall *call, GTorchCudaLane *lane, GError *reason, GError **error)
{
  if (g_error_matches (reason, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED) && stand_in (call, lane))
    {
      g_error_free (reason);
      return TRUE;
    }
  g_propagate_error (error, reason);
  return FALSE;
}

static inline gboolean
run (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GError *reason = NULL;
  GTORCH_CUDA_APART;

  return G_LIKELY (gtorch_call_run (call, lane, &reason)) || fall_back (call, lane, reason, error);
}

/* Prefixes the error with the operation's name: errors of the driver begin with the function or the
 * kernel. */
static G_GNUC_NO_INLINE void
name_error (const GTorchOpCall *call, GError **error)
{
  const gchar *name = gtorch_call_named_op (call)->name;

  if (error != NULL && *error != NULL
      && !(g_str_has_prefix ((*error)->message, name) && (*error)->message[strlen (name)] == ':'))
    g_prefix_error (error, "%s: ", name);
}

static void
use_inputs (GTorchOpCall *call, GTorchCudaLane *lane)
{
  guint i;

  for (i = 0; i < call->n_inputs; i++)
    if (call->inputs[i] != NULL && call->inputs[i]->storage->device == call->device)
      gtorch_cuda_use_storage (call->inputs[i]->storage, lane);
}

gboolean
gtorch_cuda_run_early (GTorchOpCall *call, GTorchCudaEarlyFunc func, gpointer data, GError **error)
{
  GTorchCudaLane *lane = gtorch_cuda_current_lane (call->device, error);
  gboolean result;
  GTORCH_CUDA_APART;

  if (lane == NULL)
    return FALSE;
  gtorch_cuda_note_begin (lane, gtorch_call_named_op (call)->name);
  result = gtorch_cuda_note_end (lane, func (call, lane, data, error));
  use_inputs (call, lane);
  if (!result)
    name_error (call, error);
  return result;
}

gboolean
gtorch_cuda_launch (GTorchDevice *device, GTorchStream *stream, GTorchOpCall *call, GError **error)
{
  GTorchCudaLane *lane = gtorch_cuda_current_lane (device, error);
  const gchar *name = gtorch_call_named_op (call)->name;
  guint i;

  if (G_UNLIKELY (lane == NULL))
    return FALSE;
  gtorch_cuda_note_begin (lane, name);
  if (G_UNLIKELY (!gtorch_cuda_note_end (lane, run (call, lane, error))))
    {
      name_error (call, error);
      return FALSE;
    }
  use_inputs (call, lane);
  for (i = call->in_place ? 1 : 0; i < call->n_outputs; i++)
    if (call->outputs[i] != NULL)
      gtorch_cuda_use_storage (call->outputs[i]->storage, lane);
  if (G_UNLIKELY (gtorch_get_launch_blocking () && gtorch_cuda_lane_capture (lane) == NULL))
    return gtorch_cuda_lane_synchronize (lane, name, error);
  return TRUE;
}
