/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* NVML without a GPU, for tests; found through GTORCH_CUDA_LIBRARY_PATH. It has the devices that
 * GTORCH_FAKE_CUDA gives the driver, unless "nvml-devices=3" or "mig=1" there says otherwise. With
 * "nvml-busy=1", each answer differs from the one before it, and this process is one that uses the GPUs. */

#include <glib.h>

G_BEGIN_DECLS

#define FAKE_NVML_API           __attribute__ ((visibility ("default")))
#define FAKE_NVML_MAX_PROCESSES 100

typedef struct
{
  guint utilization, memory_utilization, temperature, milliwatts, sm_clock, memory_clock;
  guint64 memory_used;
  guint n_processes;
  struct
  {
    guint pid;
    guint64 memory;
  } processes[FAKE_NVML_MAX_PROCESSES];
  gint result;       /* the result of all calls */
  gint power_result; /* the result of the call for the power */
  guint milliwatts_limit, fan_speed;
} FakeNvml;

FAKE_NVML_API void fake_nvml_set (guint device, const FakeNvml *values);
/* Returns how often the memory of the device was queried. */
FAKE_NVML_API guint fake_nvml_get_asked (guint device);
/* Returns the thread of the last query. */
FAKE_NVML_API GThread *fake_nvml_get_thread (void);
/* Suspends the answers: queries wait. */
FAKE_NVML_API void fake_nvml_hold (gboolean hold);

G_END_DECLS
