/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "fault.h"

#include <gtorch/cuda/driver/gtorch-cuda-abi-private.h>

#include "fail-driver.h"
#include "fail-memory.h"

static void
refuse_call (guint nth)
{
  fail_driver_at (nth, CUDA_ERROR_OUT_OF_MEMORY);
}

static void
lose_device (guint nth)
{
  fail_driver_at (nth, CUDA_ERROR_LAUNCH_FAILED);
}

const Fault faults[] = {
  { "allocation", fail_memory_at, fail_memory_stop, NULL, TRUE, FALSE },
  { "call", refuse_call, fail_driver_stop, fail_driver_can, FALSE, FALSE },
  { "loss", lose_device, fail_driver_stop, fail_driver_can, FALSE, TRUE },
};
const guint n_faults = G_N_ELEMENTS (faults);

gboolean
fault_can (const Fault *fault)
{
  return fault->can == NULL || fault->can ();
}
