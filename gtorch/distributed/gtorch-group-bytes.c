/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Bytes that the ranks of a group tell each other. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-error.h"
#include "distributed/gtorch-engine-private.h"
#include "distributed/gtorch-group-bytes-private.h"
#include "elements/gtorch-tensor-bytes.h"
#include "elements/gtorch-tensor-create.h"
#include "gtorch-tensor-ops.h"

GTorchDevice *
gtorch_group_get_device (GTorchProcessGroup *group, GError **error)
{
  GTorchEngine *engine =
      gtorch_process_group_get_engine (group, gtorch_group_call_name ("all_gather"), error);

  return engine == NULL ? NULL : gtorch_device_get_current (engine->klass->device_type, error);
}

static gint64 *
gather_sizes (GTorchProcessGroup *group, GTorchDevice *device, gint64 own, GError **error)
{
  const gint64 one = 1, size = gtorch_process_group_get_size (group);
  g_autoptr (GTorchTensor) mine =
      gtorch_tensor_new_from_ints (&own, 1, &one, 1, GTORCH_DTYPE_INT64, device, error);
  g_autoptr (GTorchTensor) all =
      mine == NULL ? NULL : gtorch_zeros (&size, 1, GTORCH_DTYPE_INT64, device, error);
  g_autoptr (GTorchWork) work =
      all == NULL ? NULL : gtorch_process_group_all_gather_into_tensor (group, all, mine, error);
  gsize n;

  return work == NULL || !gtorch_work_wait (work, -1, NULL, error)
             ? NULL
             : gtorch_tensor_to_ints (all, &n, error);
}

GPtrArray *
gtorch_group_gather_bytes (GTorchProcessGroup *group, GTorchDevice *device, GBytes *own,
                           GError **error)
{
  const gint size = gtorch_process_group_get_size (group);
  const gsize n_own = g_bytes_get_size (own);
  g_autofree gint64 *sizes = NULL;
  g_autofree guint8 *padded = NULL;
  g_autoptr (GBytes) sent = NULL, got = NULL;
  g_autoptr (GTorchTensor) near = NULL, mine = NULL, all = NULL;
  g_autoptr (GTorchWork) work = NULL;
  g_autoptr (GPtrArray) found = g_ptr_array_new_with_free_func ((GDestroyNotify) g_bytes_unref);
  gint64 longest = 1, total;
  gint i;

  sizes = gather_sizes (group, device, (gint64) n_own, error);
  if (sizes == NULL)
    return NULL;
  for (i = 0; i < size; i++)
    longest = MAX (longest, sizes[i]);
  total = longest * size;
  padded = g_malloc0 (longest);
  if (n_own > 0)
    memcpy (padded, g_bytes_get_data (own, NULL), n_own);
  sent = g_bytes_new_take (g_steal_pointer (&padded), longest);
  near = gtorch_tensor_new_from_bytes (sent, GTORCH_DTYPE_UINT8, &longest, 1, error);
  mine =
      near == NULL ? NULL : gtorch_tensor_to (near, GTORCH_DTYPE_UINT8, device, FALSE, TRUE, error);
  all = mine == NULL ? NULL : gtorch_zeros (&total, 1, GTORCH_DTYPE_UINT8, device, error);
  work = all == NULL ? NULL : gtorch_process_group_all_gather_into_tensor (group, all, mine, error);
  if (work == NULL || !gtorch_work_wait (work, -1, NULL, error)
      || (got = gtorch_tensor_get_bytes (all, error)) == NULL)
    return NULL;
  for (i = 0; i < size; i++)
    g_ptr_array_add (found, g_bytes_new_from_bytes (got, i * longest, sizes[i]));
  return g_steal_pointer (&found);
}
