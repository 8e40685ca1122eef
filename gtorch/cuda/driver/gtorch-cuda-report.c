/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Reports of indices that kernels find out of range. The kernel skips them; the first is noted in
 * host-visible memory, and the next wait for the device returns an error that names the operation. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>

#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "cuda/driver/gtorch-cuda-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

GTorchDevice *
gtorch_cuda_lane_device (GTorchCudaLane *lane)
{
  return (GTorchDevice *) lane->device;
}

gpointer
gtorch_cuda_report (GTorchCudaLane *lane, GError **error)
{
  GTorchCudaDevice *device = lane->device;
  gpointer report = g_atomic_pointer_get (&device->report);

  if (G_LIKELY (report != NULL))
    return report;
  if (!gtorch_cuda_device_activate (device, error))
    return NULL;
  g_mutex_lock (&device->lock);
  report = device->report;
  if (report == NULL
      && gtorch_cuda_check (gtorch_cuda.cuMemHostAlloc (&report, sizeof (GtReport),
                                                        CU_MEMHOSTALLOC_PORTABLE
                                                            | CU_MEMHOSTALLOC_DEVICEMAP),
                            "cuMemHostAlloc", error))
    {
      *(GtReport *) report = (GtReport){ 0 };
      g_atomic_pointer_set (&device->report, report);
    }
  g_mutex_unlock (&device->lock);
  return report;
}

gboolean
gtorch_cuda_check_report (GTorchCudaDevice *device, GError **error)
{
  GtReport *report = g_atomic_pointer_get (&device->report);
  const gchar *name;
  GtReport found;

  if (G_LIKELY (report == NULL || __atomic_load_n (&report->state, __ATOMIC_ACQUIRE) != 2))
    return TRUE;
  found = *report;
  if (!gtorch_thread.keeps_errors)
    __atomic_store_n (&report->state, 0, __ATOMIC_RELEASE);
  name = gtorch_ops[MIN (found.op & 0xffff, gtorch_n_ops - 1)].name;
  if (found.size == GT_REPORT_WEIGHTS)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: row %" PRId64 " has an element that is negative or not finite, or "
                    "too few above 0 to draw from, found on %s"),
                 name, found.value, gtorch_device_name ((GTorchDevice *) device));
  else if (found.size == GT_REPORT_PROBABILITY)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: element %" PRId64 " is not a probability from 0 to 1, found on %s"), name,
                 found.value, gtorch_device_name ((GTorchDevice *) device));
  else if ((found.op & 0xffff) == GTORCH_OP_QUANTILE
           || (found.op & 0xffff) == GTORCH_OP_NANQUANTILE)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: q contains %g: each number must be between 0 and 1, found on %s"), name,
                 found.value >= (gint64) GTORCH_QUANTILE_NAN
                     ? NAN
                     : (gdouble) found.value / GTORCH_QUANTILE_SCALE,
                 gtorch_device_name ((GTorchDevice *) device));
  else if (found.op >> 16 != 0)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX,
                 _ ("%s: index %" PRId64 " is out of range for dimension %u of size %" PRId64
                    ", found on %s"),
                 name, found.value, (found.op >> 16) - 1, found.size,
                 gtorch_device_name ((GTorchDevice *) device));
  else
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX,
                 _ ("%s: index %" PRId64 " is out of range for size %" PRId64 ", found on %s"),
                 name, found.value, found.size, gtorch_device_name ((GTorchDevice *) device));
  return FALSE;
}
