/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Gathering and scattering by indices within images: the second derivative of max_pool2d, and its
 * gradient. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "cpu/ops/gtorch-cpu-index.h"
#include "cpu/gtorch-cpu-pack.h"
#include "gtorch-ops-private.h"

#define MOVE(T)                                                                                    \
  for (i = 0; i < indices->numel; i++)                                                             \
    {                                                                                              \
      gint64 image = i / small_plane * big_plane;                                                  \
      if (index[i] < 0 || index[i] >= big_plane)                                                   \
        {                                                                                          \
          gtorch_call_error (call, error, GTORCH_ERROR_INDEX,                                      \
                             _ ("index %" G_GINT64_FORMAT " is out of range for %" G_GINT64_FORMAT \
                                " elements"),                                                      \
                             index[i], big_plane);                                                 \
          return FALSE;                                                                            \
        }                                                                                          \
      if (place)                                                                                   \
        ((T *) to)[image + index[i]] += ((const T *) from)[i];                                     \
      else                                                                                         \
        ((T *) to)[i] = ((const T *) from)[image + index[i]];                                      \
    }

static gboolean
move (GTorchOpCall *call, gboolean place, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  GTorchImpl *big = place ? output : call->inputs[0];
  guint dtype = gtorch_dtype_infos[call->compute].compute;
  g_autoptr (GTorchImpl) indices =
      gtorch_cpu_private_copy (call->inputs[1], GTORCH_DTYPE_INT64, error);
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  gint64 big_plane = big->shape[big->n_dims - 1] * big->shape[big->n_dims - 2], small_plane, i;
  const gint64 *index;
  gconstpointer from;
  gpointer to;

  x = indices != NULL ? gtorch_cpu_pack (call->inputs[0], dtype, error) : NULL;
  y = x != NULL ? gtorch_cpu_pack_output (output, dtype, error) : NULL;
  if (y == NULL)
    return FALSE;
  small_plane = indices->shape[indices->n_dims - 1] * indices->shape[indices->n_dims - 2];
  index = gtorch_impl_data (indices);
  from = gtorch_impl_data (x);
  to = gtorch_impl_data (y);
  if (place)
    memset (to, 0, gtorch_impl_n_bytes (y));
  if (dtype == GTORCH_DTYPE_FLOAT32)
    MOVE (float)
  else
    MOVE (double)
  gtorch_cpu_unpack (y, output);
  return TRUE;
}

gboolean
gtorch_cpu_max_pool2d_place (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return move (call, TRUE, error);
}

gboolean
gtorch_cpu_max_pool2d_take (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return move (call, FALSE, error);
}
