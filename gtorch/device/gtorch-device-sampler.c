/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* One thread samples devices for all monitors, as long as there are any: a driver may take milliseconds to
 * answer, which no main loop should wait for. Monitors of one device share the samples, and no device is
 * sampled more often than every GTORCH_SAMPLE_INTERVAL_MIN. A sample that a busy main loop has not fetched
 * yet is replaced by the next one. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "device/gtorch-device-private.h"
#include "device/gtorch-device-sample-private.h"
#include "base/gtorch-fork-private.h"

struct _GTorchWatch
{
  gint ref_count; /* atomic */
  GTorchDevice *device;
  GMainContext *context;
  GWeakRef object;
  GTorchWatchFunc func;

  /* the fields below are protected by the lock */
  gboolean stopped;
  gint64 interval, due; /* us */
  GSource *source;      /* idle source attached to the context, not yet dispatched */
  GTorchDeviceSample sample;
  GError *error;
};

static GMutex lock;
GTORCH_FORK_LOCK (lock);
static GCond changed;
static GPtrArray *watches; /* active watches; NULL while there is no thread */
static gint64 asked[GTORCH_MAX_DEVICES];
static GTorchDeviceSample *answers[GTORCH_MAX_DEVICES];

void
gtorch_device_sample_clear (GTorchDeviceSample *sample)
{
  g_clear_pointer (&sample->processes, g_array_unref);
}

static void
sample_copy (GTorchDeviceSample *to, const GTorchDeviceSample *from)
{
  *to = *from;
  if (to->processes != NULL)
    g_array_ref (to->processes);
}

/* Samples the device. Called with the lock held, which is released meanwhile. */
static gboolean
ask_device (GTorchDevice *device, GTorchDeviceSample *sample, GError **error)
{
  GTorchDeviceClass *klass = GTORCH_DEVICE_GET_CLASS (device);

  GTorchDeviceSample **answer = &answers[device->slot];
  gboolean result = FALSE;

  *sample = (GTorchDeviceSample){ -1, -1, -1, -1, -1, -1, -1, -1, 0, NULL };
  asked[device->slot] = g_get_monotonic_time ();
  g_mutex_unlock (&lock);
  if (klass->take_sample != NULL)
    result = klass->take_sample (device, sample, error);
  else
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                 _ ("device_monitor: %s cannot be monitored"), gtorch_device_name (device));
  g_mutex_lock (&lock);
  if (*answer != NULL)
    gtorch_device_sample_clear (*answer);
  if (!result)
    g_clear_pointer (answer, g_free);
  else
    {
      if (*answer == NULL)
        *answer = g_new (GTorchDeviceSample, 1);
      sample_copy (*answer, sample);
    }
  return result;
}

gboolean
gtorch_device_take_sample (GTorchDevice *device, GTorchDeviceSample *sample, GError **error)
{
  gboolean result = TRUE;

  g_mutex_lock (&lock);
  if (answers[device->slot] != NULL
      && g_get_monotonic_time () < asked[device->slot] + GTORCH_SAMPLE_INTERVAL_MIN * 1000)
    sample_copy (sample, answers[device->slot]);
  else
    result = ask_device (device, sample, error);
  g_mutex_unlock (&lock);
  return result;
}

static void
watch_unref (gpointer data)
{
  GTorchWatch *watch = data;

  if (!g_atomic_int_dec_and_test (&watch->ref_count))
    return;
  g_weak_ref_clear (&watch->object);
  g_main_context_unref (watch->context);
  gtorch_device_sample_clear (&watch->sample);
  g_clear_error (&watch->error);
  g_free (watch);
}

static gboolean
deliver (gpointer data)
{
  GTorchWatch *watch = data;
  g_autoptr (GObject) object = g_weak_ref_get (&watch->object);
  g_autoptr (GError) error = NULL;
  GTorchDeviceSample sample;
  gboolean stopped;

  g_mutex_lock (&lock);
  sample = watch->sample;
  watch->sample.processes = NULL;
  error = g_steal_pointer (&watch->error);
  stopped = watch->stopped;
  g_clear_pointer (&watch->source, g_source_unref);
  g_mutex_unlock (&lock);
  if (object != NULL && !stopped)
    watch->func (object, &sample, error);
  gtorch_device_sample_clear (&sample);
  return G_SOURCE_REMOVE;
}

/* Schedules the delivery of a sample in the watch's context. Called with the lock held. */
static void
post (GTorchWatch *watch, const GTorchDeviceSample *sample, const GError *error)
{
  gtorch_device_sample_clear (&watch->sample);
  sample_copy (&watch->sample, sample);
  if (error != NULL && watch->error == NULL)
    watch->error = g_error_copy (error);
  if (watch->source != NULL)
    return;
  g_atomic_int_inc (&watch->ref_count);
  watch->source = g_idle_source_new ();
  g_source_set_priority (watch->source, G_PRIORITY_DEFAULT);
  g_source_set_static_name (watch->source, "GTorchDeviceMonitor");
  g_source_set_callback (watch->source, deliver, watch, watch_unref);
  g_source_attach (watch->source, watch->context);
}

/* Returns the device to be sampled next, and when. */
static GTorchDevice *
find_next (gint64 *when)
{
  GTorchDevice *device = NULL;
  guint i;

  for (i = 0; i < watches->len; i++)
    {
      GTorchWatch *watch = watches->pdata[i];
      gint64 due = MAX (watch->due, asked[watch->device->slot] + GTORCH_SAMPLE_INTERVAL_MIN * 1000);

      if (device == NULL || due < *when)
        {
          device = watch->device;
          *when = due;
        }
    }
  return device;
}

static void
ask (GTorchDevice *device)
{
  GTorchDeviceSample sample;
  g_autoptr (GError) error = NULL;
  gint64 now = g_get_monotonic_time ();
  guint i;

  ask_device (device, &sample, &error);
  for (i = watches->len; i > 0; i--)
    {
      GTorchWatch *watch = watches->pdata[i - 1];

      if (watch->device != device || watch->due > now)
        continue;
      watch->due = now + watch->interval;
      post (watch, &sample, error);
      if (error != NULL) /* nothing else will come for this watch */
        g_ptr_array_remove_index_fast (watches, i - 1);
    }
  gtorch_device_sample_clear (&sample);
}

static gpointer
run (gpointer data)
{
  g_mutex_lock (&lock);
  while (watches->len > 0)
    {
      gint64 when = 0;
      GTorchDevice *device = find_next (&when);

      if (when > g_get_monotonic_time ())
        g_cond_wait_until (&changed, &lock, when);
      else
        ask (device);
    }
  g_clear_pointer (&watches, g_ptr_array_unref);
  g_mutex_unlock (&lock);
  return NULL;
}

/* Runs in the child of a fork, where the thread does not exist: drops the watches. The next watch starts a
 * new thread. */
static void
forget_watches (void)
{
  watches = NULL;
}
GTORCH_FORK_CHILD (forget_watches);

GTorchWatch *
gtorch_watch_new (GTorchDevice *device, guint interval, gboolean now, GMainContext *context,
                  GObject *object, GTorchWatchFunc func)
{
  GTorchWatch *watch = g_new0 (GTorchWatch, 1);

  watch->ref_count = 2; /* the list's and the caller's */
  watch->device = device;
  watch->context = g_main_context_ref (context);
  watch->func = func;
  watch->interval = (gint64) interval * 1000;
  watch->due = g_get_monotonic_time () + (now ? 0 : watch->interval);
  g_weak_ref_init (&watch->object, object);

  g_mutex_lock (&lock);
  if (watches == NULL)
    {
      watches = g_ptr_array_new_with_free_func (watch_unref);
      g_ptr_array_add (watches, watch);
      g_thread_unref (g_thread_new ("gtorch-monitor", run, NULL));
    }
  else
    {
      g_ptr_array_add (watches, watch);
      g_cond_signal (&changed);
    }
  g_mutex_unlock (&lock);
  return watch;
}

void
gtorch_watch_set_interval (GTorchWatch *watch, guint interval)
{
  g_mutex_lock (&lock);
  watch->due += (gint64) interval * 1000 - watch->interval;
  watch->interval = (gint64) interval * 1000;
  g_cond_signal (&changed);
  g_mutex_unlock (&lock);
}

void
gtorch_watch_stop (GTorchWatch *watch)
{
  GSource *source;

  g_mutex_lock (&lock);
  watch->stopped = TRUE;
  if (watches != NULL && g_ptr_array_remove_fast (watches, watch))
    g_cond_signal (&changed);
  source = g_steal_pointer (&watch->source);
  g_mutex_unlock (&lock);
  if (source != NULL)
    g_source_destroy (source);
  g_clear_pointer (&source, g_source_unref); /* uses the context, which the watch keeps alive */
  watch_unref (watch);
}
