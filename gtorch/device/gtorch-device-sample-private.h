/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/device/gtorch-device-monitor.h>

G_BEGIN_DECLS

typedef struct
{
  guint pid;
  guint64 memory_used;
} GTorchProcessSample;

/* What a device is doing; -1 is not known. */
typedef struct _GTorchDeviceSample
{
  gint utilization, memory_utilization; /* percent */
  gint temperature;                     /* degrees C */
  gint sm_clock, memory_clock;          /* MHz */
  gdouble power;                        /* W */
  guint64 memory_used;
  GArray *processes; /* GTorchProcessSample, by pid; may be NULL */
} GTorchDeviceSample;

void gtorch_device_sample_clear (GTorchDeviceSample *sample);

/* --- the thread that asks the devices (gtorch-device-sampler.c) --- */

/* Ten times a second and no more, however many ask. */
#define GTORCH_SAMPLE_INTERVAL_MIN 100
#define GTORCH_SAMPLE_INTERVAL_MAX (3600 * 1000)

typedef struct _GTorchWatch GTorchWatch;

/* In the watch's context; the error is non-NULL for the last one. Takes neither. */
typedef void (*GTorchWatchFunc) (GObject *object, GTorchDeviceSample *sample, const GError *error);

/* Asks the device every `interval` ms, and at once too if `now`, and gives the answers to the object, in the
 * context. The object is not kept alive. */
GTorchWatch *gtorch_watch_new (GTorchDevice *device, guint interval, gboolean now,
                               GMainContext *context, GObject *object, GTorchWatchFunc func);
void gtorch_watch_set_interval (GTorchWatch *watch, guint interval);
/* No answer comes after this, if it is called in the context. */
void gtorch_watch_stop (GTorchWatch *watch);

/* Asks the device now, in this thread, or gives an answer that is younger than the least interval. */
gboolean gtorch_device_take_sample (GTorchDevice *device, GTorchDeviceSample *sample,
                                    GError **error);

G_END_DECLS
