/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The load of the processors, for monitors: what Linux tells in /proc and /sys. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <stdio.h>
#include <string.h>

#include "cpu/gtorch-cpu-device.h"
#include "device/gtorch-device-sample-private.h"
#include "base/gtorch-fork-private.h"

/* Time of all processors since the system started, in ticks. */
typedef struct
{
  guint64 busy, total;
} Ticks;

static GMutex lock;
GTORCH_FORK_LOCK (lock);
static Ticks former; /* of the last sample; a total of 0: there was none */

static gboolean
read_ticks (Ticks *ticks)
{
  g_autofree gchar *text = NULL;
  guint64 t[8] = { 0 }; /* user, nice, system, idle, waiting for disks, interrupts (2), stolen */
  guint i;

  if (!g_file_get_contents ("/proc/stat", &text, NULL, NULL)
      || sscanf (text,
                 "cpu %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT
                 " %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT
                 " %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT,
                 &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7])
             < 4)
    return FALSE;
  ticks->total = 0;
  for (i = 0; i < G_N_ELEMENTS (t); i++)
    ticks->total += t[i];
  ticks->busy = ticks->total - t[3] - t[4];
  return TRUE;
}

static gint
read_clock (void)
{
  g_autofree gchar *text = NULL;

  if (!g_file_get_contents ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", &text, NULL,
                            NULL))
    return -1;
  return (gint) CLAMP (g_ascii_strtoll (text, NULL, 10) / 1000, -1, G_MAXINT);
}

gboolean
gtorch_cpu_take_sample (GTorchDevice *device, GTorchDeviceSample *sample, GError **error)
{
  guint64 available = 0, total = 0;
  Ticks now;

  if (!read_ticks (&now))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("device_monitor: %s cannot be monitored: /proc/stat is missing or of "
                      "another form"),
                   gtorch_device_name (device));
      return FALSE;
    }
  g_mutex_lock (&lock);
  if (former.total != 0 && now.total > former.total && now.busy >= former.busy)
    sample->utilization =
        (gint) MIN (100 * (now.busy - former.busy) / (now.total - former.total), 100);
  former = now;
  g_mutex_unlock (&lock);
  if (gtorch_cpu_memory_info (device, &available, &total, NULL))
    sample->memory_used = total > available ? total - available : 0;
  sample->sm_clock = read_clock ();
  return TRUE;
}
