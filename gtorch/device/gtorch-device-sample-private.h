/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/device/gtorch-device-monitor.h>

G_BEGIN_DECLS

#define GTORCH_PROCESS_NAME_MAX 64

typedef struct
{
  guint pid;
  guint64 memory_used;
  gchar name[GTORCH_PROCESS_NAME_MAX]; /* UTF-8; empty: not known */
} GTorchProcessSample;

/* Fills in the name, from the system's table of processes. */
void gtorch_process_sample_find_name (GTorchProcessSample *process);

/* A sample of a device's load; -1 in a field means not known. */
typedef struct _GTorchDeviceSample
{
  gint utilization, memory_utilization; /* percent */
  gint temperature;                     /* degrees C */
  gint sm_clock, memory_clock;          /* MHz */
  gint fan_speed;                       /* percent */
  gdouble power, power_limit;           /* W */
  guint64 memory_used;
  GArray *processes; /* GTorchProcessSample, by pid; may be NULL */
} GTorchDeviceSample;

void gtorch_device_sample_clear (GTorchDeviceSample *sample);

/* --- the thread that samples the devices (gtorch-device-sampler.c) --- */

/* Limits of the interval in ms: a device is sampled at most ten times a second, for all watches
 * together. */
#define GTORCH_SAMPLE_INTERVAL_MIN 100
#define GTORCH_SAMPLE_INTERVAL_MAX (3600 * 1000)

typedef struct _GTorchWatch GTorchWatch;

/* Called in the watch's context; error is non-NULL in the last call. The callee owns neither argument. */
typedef void (*GTorchWatchFunc) (GObject *object, GTorchDeviceSample *sample, const GError *error);

/* Samples the device every `interval` ms, and at once if `now` is set, and passes the samples to func with
 * the object, in the context. Holds no strong reference to the object. */
GTorchWatch *gtorch_watch_new (GTorchDevice *device, guint interval, gboolean now,
                               GMainContext *context, GObject *object, GTorchWatchFunc func);
void gtorch_watch_set_interval (GTorchWatch *watch, guint interval);
/* Stops the watch; if called in the watch's context, func is not called any more. */
void gtorch_watch_stop (GTorchWatch *watch);

/* Samples the device in this thread, or returns a sample that is younger than the minimum interval. */
gboolean gtorch_device_take_sample (GTorchDevice *device, GTorchDeviceSample *sample,
                                    GError **error);

G_END_DECLS
