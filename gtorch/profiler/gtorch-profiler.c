/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "profiler/gtorch-profiler.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "base/gtorch-error.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-fork-private.h"
#include "base/gtorch-json-private.h"
#include "device/gtorch-backend-private.h"
#include "device/gtorch-device-manager.h"
#include "device/gtorch-device-private.h"
#include "profiler/gtorch-profile-buffer-private.h"
#include "profiler/gtorch-profile-list-private.h"
#include "profiler/gtorch-profiler-plan-private.h"
#include "stream/gtorch-stream.h"

/**
 * GTorchProfiler:
 *
 * Records what the program does, and for how long: operations, backward passes, ranges that the program has
 * named, the memory of tensors, and kernels and copies of GPUs.
 *
 * ```c
 * g_autoptr (GTorchProfiler) profiler = gtorch_profiler_new ();
 *
 * gtorch_profiler_start (profiler, &error);
 * train (model);
 * gtorch_profiler_stop (profiler, &error);
 * averages = gtorch_profiler_key_averages (profiler, FALSE, 0, &error);
 * ```
 *
 * With [property@Profiler:active] above 0, or a function of [method@Profiler.set_schedule_func], only some
 * of the steps are recorded that the program tells of by [method@Profiler.step], and
 * [signal@Profiler::trace-ready] is emitted after each part. Otherwise everything is, from start to stop.
 *
 * Properties count from the next [method@Profiler.start] on: what they are set to while the profiler is
 * started changes nothing before.
 *
 * One profiler at a time can record in a process. It sees all threads, and threads may share it: while one
 * of them starts it, stops it or goes to the next step, others that do so wait, and what reads a profile
 * reads the one that was finished last.
 *
 * Since: 0.1
 */
struct _GTorchProfiler
{
  GObject parent_instance;
  GRecMutex turn; /* of what starts, steps and stops; handlers of the signal may do so, too */
  GTorchProfilerPlan chosen; /* the properties */
  GTorchProfilerPlan plan;   /* what they were when it was started */
  GTorchProfilerSchedule *schedule;
  gboolean is_asking; /* the schedule */
  gboolean is_started;
  guint64 n_changes;            /* of what is done: starts, steps and stops */
  GTorchProfilerAction action;  /* atomic; of the present step */
  GTorchProfilerAction present; /* what is going on; NONE while handlers of the signal run */
  guint64 step, step_range;     /* step: atomic */
  gchar *step_name;
  GTorchProfilerGpuSource gpu_source;
  const gchar *gpu_message;       /* atomic, and of all time: others may read it meanwhile */
  GTorchTrace *trace;             /* under the lock */
  GTorchProfileSettings settings; /* under the lock; of the trace */
  GPtrArray *earlier;             /* under the lock; traces that are kept */
  GHashTable *metadata;           /* under the lock; JSON by key */
};

G_DEFINE_TYPE (GTorchProfiler, gtorch_profiler, G_TYPE_OBJECT)

enum
{
  TRACE_READY,
  N_SIGNALS
};

static guint signals[N_SIGNALS];

typedef GTorchProfiler Self;

static const GTorchField fields[] = {
  /**
   * GTorchProfiler:activities:
   *
   * What is recorded.
   *
   * Without a GPU, [flags@ProfilerActivities] `CUDA` changes nothing.
   *
   * Since: 0.1
   */
  { "activities", GTORCH_FIELD_FLAGS, GTORCH_FIELD (GTorchProfiler, chosen.activities),
    GTORCH_PROFILER_CPU | GTORCH_PROFILER_CUDA, gtorch_profiler_activities_get_type,
    GTORCH_FIELD_SETTING },
  /**
   * GTorchProfiler:record-shapes:
   *
   * Whether shapes, strides and dtypes of the operands are recorded.
   *
   * Since: 0.1
   */
  { "record-shapes", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchProfiler, chosen.record_shapes),
    .flags = GTORCH_FIELD_SETTING },
  /**
   * GTorchProfiler:profile-memory:
   *
   * Whether it is recorded where storages get and give back memory.
   *
   * Since: 0.1
   */
  { "profile-memory", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchProfiler, chosen.profile_memory),
    .flags = GTORCH_FIELD_SETTING },
  /**
   * GTorchProfiler:with-stack:
   *
   * Whether it is recorded where the program calls operations: lines of Python, otherwise functions of C,
   * which JavaScript shows, too. This takes microseconds for each operation.
   *
   * Since: 0.1
   */
  { "with-stack", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchProfiler, chosen.with_stack),
    .flags = GTORCH_FIELD_SETTING },
  /**
   * GTorchProfiler:with-flops:
   *
   * Whether floating-point operations are counted, for products of matrices, convolutions, attention, sums
   * and products of elements.
   *
   * Since: 0.1
   */
  { "with-flops", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchProfiler, chosen.with_flops),
    .flags = GTORCH_FIELD_SETTING },
  /**
   * GTorchProfiler:with-modules:
   *
   * Whether calls of modules are recorded, and have rows in [method@Profiler.key_averages].
   *
   * They have PyTorch's names, such as “nn.Module: Linear_0” for the Linear that was called first in the
   * profile. With [property@Profiler:with-stack] they are recorded as well, and have no rows in averages.
   *
   * Since: 0.1
   */
  { "with-modules", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchProfiler, chosen.with_modules),
    .flags = GTORCH_FIELD_SETTING },
  /**
   * GTorchProfiler:acc-events:
   *
   * Whether events of earlier cycles of the schedule, and of earlier times from start to stop, are kept:
   * [method@Profiler.events], [method@Profiler.key_averages] and [method@Profiler.export_stacks] then have
   * those of all cycles. Otherwise, and in all other files, there are those of the last one.
   *
   * Since: 0.1
   */
  { "acc-events", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchProfiler, chosen.acc_events),
    .flags = GTORCH_FIELD_SETTING },
  /**
   * GTorchProfiler:wait:
   *
   * How many steps at the beginning of a cycle are not recorded.
   *
   * Since: 0.1
   */
  { "wait", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchProfiler, chosen.wait),
    .flags = GTORCH_FIELD_SETTING },
  /**
   * GTorchProfiler:warmup:
   *
   * How many steps after those are recorded and dropped, so that what recording needs at first is not seen.
   *
   * Since: 0.1
   */
  { "warmup", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchProfiler, chosen.warmup),
    .flags = GTORCH_FIELD_SETTING },
  /**
   * GTorchProfiler:active:
   *
   * How many steps after those are recorded; 0: there is no schedule, and everything is recorded.
   *
   * Since: 0.1
   */
  { "active", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchProfiler, chosen.active),
    .flags = GTORCH_FIELD_SETTING },
  /**
   * GTorchProfiler:repeat:
   *
   * How many cycles of waiting, warmup and recording there are; 0: any number.
   *
   * Since: 0.1
   */
  { "repeat", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchProfiler, chosen.repeat),
    .flags = GTORCH_FIELD_SETTING },
  /**
   * GTorchProfiler:skip-first:
   *
   * How many steps come before the first cycle.
   *
   * Since: 0.1
   */
  { "skip-first", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchProfiler, chosen.skip_first),
    .flags = GTORCH_FIELD_SETTING },
  /**
   * GTorchProfiler:skip-first-wait:
   *
   * Whether the first cycle begins with the warmup.
   *
   * Since: 0.1
   */
  { "skip-first-wait", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchProfiler, chosen.skip_first_wait),
    .flags = GTORCH_FIELD_SETTING },
  /**
   * GTorchProfiler:action:
   *
   * What is done in the present step.
   *
   * Since: 0.1
   */
  { "action", GTORCH_PROPERTY_ENUM (GTorchProfilerAction, gtorch_profiler_action_get_type,
                                    gtorch_profiler_get_action, NULL) },
  /**
   * GTorchProfiler:step-number:
   *
   * The number of the present step, from 0.
   *
   * Since: 0.1
   */
  { "step-number", GTORCH_PROPERTY_UINT64 (gtorch_profiler_get_step_number, NULL) },
  /**
   * GTorchProfiler:gpu-source:
   *
   * Where the times of GPUs come from in the profile that is recorded or was recorded last.
   *
   * Since: 0.1
   */
  { "gpu-source",
    GTORCH_PROPERTY_ENUM (GTorchProfilerGpuSource, gtorch_profiler_gpu_source_get_type,
                          gtorch_profiler_get_gpu_source, NULL) },
  /**
   * GTorchProfiler:gpu-message:
   *
   * Why kernels and copies are not, or not all, in the profile; %NULL if there is nothing to tell.
   *
   * Since: 0.1
   */
  { "gpu-message", GTORCH_PROPERTY_STRING (gtorch_profiler_get_gpu_message, NULL) },
};

/* --- one recording at a time --- */

static GMutex lock;
GTORCH_FORK_LOCK (lock);
static GTorchProfiler *recorder; /* under the lock; the one that records */
static gint64 begun;             /* of the one that records: when what counts began */

static gboolean
take_turn (GTorchProfiler *self, const gchar *what, GError **error)
{
  gboolean success;

  g_mutex_lock (&lock);
  success = recorder == NULL;
  if (success)
    recorder = self;
  g_mutex_unlock (&lock);
  if (!success)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: another profiler is recording, and there can be one at a time in a "
                    "process: "
                    "stop that one, or drop it"),
                 what);
  return success;
}

static gboolean
has_turn (GTorchProfiler *self)
{
  gboolean result;

  g_mutex_lock (&lock);
  result = recorder == self;
  g_mutex_unlock (&lock);
  return result;
}

static void
give_turn (void)
{
  g_mutex_lock (&lock);
  recorder = NULL;
  g_mutex_unlock (&lock);
}

static void
set_message (GTorchProfiler *self, const gchar *message)
{
  g_atomic_pointer_set (&self->gpu_message, g_intern_string (message));
}

static void
set_source (GTorchProfiler *self, GTorchProfilerGpuSource source)
{
  __atomic_store_n (&self->gpu_source, source, __ATOMIC_RELAXED);
}

/* Decides where the times of the GPU come from, and begins with it. */
static void
begin_gpu (GTorchProfiler *self)
{
  const GTorchGpuTracer *tracer = gtorch_gpu_tracer;
  g_autoptr (GError) why = NULL;
  g_autofree gchar *message = NULL;

  set_source (self, GTORCH_PROFILER_GPU_NONE);
  set_message (self, NULL);
  if ((self->plan.activities & GTORCH_PROFILER_CUDA) == 0 || tracer == NULL
      || gtorch_backends[tracer->device_type]->count (NULL) == 0)
    return;
  if (tracer->begin (&why))
    {
      set_source (self, GTORCH_PROFILER_GPU_ACTIVITIES);
      return;
    }
  set_source (self, GTORCH_PROFILER_GPU_EVENTS);
  message = g_strdup_printf (_ ("kernels and copies are not recorded, and timing events around "
                                "operations give the times of the GPU: %s"),
                             why->message);
  set_message (self, message);
}

/* Begins to record; nothing of before is in the buffers. */
static gboolean
prepare (GTorchProfiler *self, const gchar *what, GError **error)
{
  guint flags = GTORCH_TRACE_HOST;

  if (!take_turn (self, what, error))
    return FALSE;
  flags |= self->plan.record_shapes ? GTORCH_TRACE_SHAPES : 0;
  flags |= self->plan.profile_memory ? GTORCH_TRACE_MEMORY : 0;
  flags |= self->plan.with_stack ? GTORCH_TRACE_STACK : 0;
  flags |= self->plan.with_flops ? GTORCH_TRACE_FLOPS : 0;
  flags |= self->plan.with_modules || self->plan.with_stack ? GTORCH_TRACE_MODULES : 0;
  begin_gpu (self);
  gtorch_profile_buffers_take (NULL, NULL);
  gtorch_profile_buffers_set_flags (flags, self->gpu_source == GTORCH_PROFILER_GPU_ACTIVITIES,
                                    self->gpu_source == GTORCH_PROFILER_GPU_EVENTS);
  return TRUE;
}

static void
begin_trace (void)
{
  gtorch_profile_buffers_take (NULL, NULL);
  begun = gtorch_profile_now ();
}

/* Waits for the devices that worked. What they report of their work's failure is the program's to find. */
static void
wait_for_devices (void)
{
  const guint32 devices = gtorch_profile_buffers_get_devices ();
  guint type, i;

  for (type = 1; type < GTORCH_N_DEVICE_TYPES; type++)
    for (i = 0; gtorch_backends[type] != NULL && i < gtorch_backends[type]->count (NULL); i++)
      {
        GTorchDevice *device = devices != 0 ? gtorch_backends[type]->get (i, NULL) : NULL;

        if (device != NULL && (devices & (1u << device->slot)))
          gtorch_device_synchronize (device, NULL, NULL);
      }
}

/* Tells what of the GPU's work the trace lacks. */
static void
tell_losses (GTorchProfiler *self, const GTorchTrace *trace)
{
  const guint64 n_lost = gtorch_trace_get_n_lost (trace),
                n_untimed = gtorch_trace_get_n_untimed (trace);
  g_autoptr (GString) message = g_string_new (NULL);

  if (n_lost > 0)
    g_string_append_printf (message, _ ("%" PRIu64 " records of kernels and copies were lost"),
                            n_lost);
  if (n_untimed > 0)
    {
      g_string_append (message, n_lost > 0 ? "; " : "");
      g_string_append_printf (message,
                              _ ("%" PRIu64
                                 " kernels and copies are left out: their times are not known"),
                              n_untimed);
    }
  if (message->len > 0)
    set_message (self, message->str);
}

static void
end_trace (GTorchProfiler *self)
{
  GTorchTraceBuilder *builder;
  g_autoptr (GTorchTrace) former = NULL;
  g_autoptr (GPtrArray) dropped = NULL;
  g_autoptr (GTorchTrace) trace = NULL;
  guint64 n_lost = 0;
  gint64 end;

  self->present = GTORCH_PROFILER_ACTION_NONE;
  gtorch_profile_buffers_set_flags (0, FALSE, FALSE);
  end = gtorch_profile_now ();
  wait_for_devices ();
  builder = gtorch_trace_builder_new ();
  gtorch_profile_buffers_take (self->plan.activities & GTORCH_PROFILER_CPU
                                   ? gtorch_trace_builder_add_raw
                                   : NULL,
                               builder);
  if (self->gpu_source == GTORCH_PROFILER_GPU_ACTIVITIES)
    n_lost = gtorch_gpu_tracer->end (gtorch_trace_builder_add_activity, builder);
  trace = gtorch_trace_builder_end (builder, gtorch_profile_buffers_list_threads (), begun, end,
                                    self->gpu_source, n_lost);
  tell_losses (self, trace);
  g_mutex_lock (&lock);
  former = self->trace;
  self->trace = gtorch_trace_ref (trace);
  self->settings = (GTorchProfileSettings){ self->plan.record_shapes, self->plan.profile_memory,
                                            self->plan.with_stack, self->plan.with_flops,
                                            self->plan.with_modules };
  if (!self->plan.acc_events)
    dropped = g_steal_pointer (&self->earlier);
  else if (former != NULL)
    {
      if (self->earlier == NULL)
        self->earlier = gtorch_traces_new ();
      g_ptr_array_add (self->earlier, g_steal_pointer (&former));
    }
  recorder = NULL;
  g_mutex_unlock (&lock);
  gtorch_profile_sinks_tell_trace (self, trace);
}

/* Ends the recording without a trace. */
static void
drop_trace (GTorchProfiler *self)
{
  self->present = GTORCH_PROFILER_ACTION_NONE;
  gtorch_profile_buffers_set_flags (0, FALSE, FALSE);
  if (self->gpu_source == GTORCH_PROFILER_GPU_ACTIVITIES)
    gtorch_gpu_tracer->end (NULL, NULL);
  gtorch_profile_buffers_take (NULL, NULL);
  give_turn ();
}

static void
end_and_tell (GTorchProfiler *self)
{
  end_trace (self);
  g_signal_emit (self, signals[TRACE_READY], 0);
}

/* --- the schedule --- */

static gboolean
has_schedule (GTorchProfiler *self)
{
  return self->schedule != NULL || self->plan.active != 0;
}

static gboolean
find_action (GTorchProfiler *self, const GTorchProfilerPlan *plan, guint64 step,
             GTorchProfilerAction *action, const gchar *what, GError **error)
{
  gboolean success;

  self->is_asking = TRUE;
  success = gtorch_profiler_plan_find_action (plan, self->schedule, step, action, what, error);
  self->is_asking = FALSE;
  return success;
}

static void
set_action (GTorchProfiler *self, GTorchProfilerAction action)
{
  __atomic_store_n (&self->action, action, __ATOMIC_RELAXED);
}

static gboolean
records (GTorchProfilerAction action)
{
  return action >= GTORCH_PROFILER_ACTION_RECORD;
}

/* Ends what does not go on in the next action. Handlers of the signal may do anything with the profiler: stop
 * it, go on to a step of their own, or drop it. */
static void
leave_action (GTorchProfiler *self, GTorchProfilerAction next)
{
  const GTorchProfilerAction former = self->present;

  if (former == GTORCH_PROFILER_ACTION_RECORD_AND_SAVE)
    end_and_tell (self);
  else if (records (former) && !records (next)) /* a schedule that drops what it has recorded */
    end_trace (self);
  else if (former == GTORCH_PROFILER_ACTION_WARMUP && next == GTORCH_PROFILER_ACTION_NONE)
    drop_trace (self);
}

static gboolean
enter_action (GTorchProfiler *self, GTorchProfilerAction action, const gchar *what, GError **error)
{
  const GTorchProfilerAction former = self->present;

  if (former == GTORCH_PROFILER_ACTION_NONE && action != GTORCH_PROFILER_ACTION_NONE
      && !prepare (self, what, error))
    return FALSE;
  self->present = action;
  if (!records (former) && records (action))
    begin_trace ();
  return TRUE;
}

static void
begin_step (GTorchProfiler *self)
{
  if (!has_schedule (self))
    return;
  g_free (self->step_name);
  self->step_name = g_strdup_printf ("ProfilerStep#%" PRIu64, self->step);
  self->step_range =
      gtorch_trace_range_begin (GTORCH_RECORD_STEP, &(GTorchRangeText){ self->step_name }, 0);
}

static void
end_step (GTorchProfiler *self)
{
  if (self->step_name != NULL)
    gtorch_trace_range_end (self->step_range, GTORCH_RECORD_STEP,
                            &(GTorchRangeText){ self->step_name });
  g_clear_pointer (&self->step_name, g_free);
}

/* --- the class --- */

static void
gtorch_profiler_dispose (GObject *object)
{
  GTorchProfiler *self = GTORCH_PROFILER (object);

  end_step (self);
  if (has_turn (self))
    drop_trace (self);
  self->is_started = FALSE;
  G_OBJECT_CLASS (gtorch_profiler_parent_class)->dispose (object);
}

static void
gtorch_profiler_finalize (GObject *object)
{
  GTorchProfiler *self = GTORCH_PROFILER (object);

  g_clear_pointer (&self->schedule, gtorch_profiler_schedule_unref);
  g_rec_mutex_clear (&self->turn);
  g_clear_pointer (&self->trace, gtorch_trace_unref);
  g_clear_pointer (&self->earlier, g_ptr_array_unref);
  g_hash_table_unref (self->metadata);
  G_OBJECT_CLASS (gtorch_profiler_parent_class)->finalize (object);
}

static void
gtorch_profiler_class_init (GTorchProfilerClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->dispose = gtorch_profiler_dispose;
  object_class->finalize = gtorch_profiler_finalize;
  GTORCH_FIELDS (klass, fields);

  /**
   * GTorchProfiler::trace-ready:
   * @self: the profiler
   *
   * A profile is finished: after the last step of each cycle, and when the profiler is stopped while it
   * records.
   *
   * It is emitted in the thread that calls [method@Profiler.step] or [method@Profiler.stop]. The profile is
   * the profiler's until the next one is finished.
   *
   * Nothing is recorded while handlers run. They may call [method@Profiler.stop], after which nothing more is
   * recorded and the signal is not emitted again; or [method@Profiler.step], which skips the step that would
   * have begun; or drop the profiler.
   *
   * Since: 0.1
   */
  signals[TRACE_READY] = g_signal_new ("trace-ready", G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST,
                                       0, NULL, NULL, NULL, G_TYPE_NONE, 0);
}

static void
gtorch_profiler_init (GTorchProfiler *self)
{
  g_rec_mutex_init (&self->turn);
  self->metadata = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
}

/**
 * gtorch_profiler_new:
 *
 * Creates a profiler. What it records are its properties.
 *
 * Returns: (transfer full): the profiler
 *
 * Since: 0.1
 */
GTorchProfiler *
gtorch_profiler_new (void)
{
  return g_object_new (GTORCH_TYPE_PROFILER, NULL);
}

/**
 * gtorch_profiler_set_schedule_func:
 * @self: a profiler
 * @func: (scope notified) (closure user_data) (destroy destroy) (nullable): the function, or %NULL for none
 * @user_data: its data
 * @destroy: (nullable): frees the data
 *
 * Lets a function decide what is done in each step, in place of [property@Profiler:active] and the properties
 * beside it.
 *
 * It is called by [method@Profiler.start] and [method@Profiler.step], which fail with its error. It must not
 * call these or [method@Profiler.stop] of the same profiler, which fail then. Of a profiler that is started,
 * the function decides from the next step on.
 *
 * Since: 0.1
 */
void
gtorch_profiler_set_schedule_func (GTorchProfiler *self, GTorchProfilerScheduleFunc func,
                                   gpointer user_data, GDestroyNotify destroy)
{
  g_autoptr (GTorchProfilerSchedule) former = NULL; /* whose end is told without the turn */
  g_autoptr (GRecMutexLocker) locker = NULL;

  g_return_if_fail (GTORCH_IS_PROFILER (self));
  locker = g_rec_mutex_locker_new (&self->turn);
  former = self->schedule;
  self->schedule = func != NULL ? gtorch_profiler_schedule_new (func, user_data, destroy) : NULL;
}

static gboolean
check_caller (GTorchProfiler *self, const gchar *what, GError **error)
{
  if (self->is_asking)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: the function that decides what is done in a step cannot start, step or "
                    "stop its profiler"),
                 what);
  return !self->is_asking;
}

/**
 * gtorch_profiler_start:
 * @self: a profiler
 * @error: return location for an error
 *
 * Begins with the first step of the schedule, or the step at which the profiler was stopped.
 *
 * If GPUs are to be traced and the library for that, CUPTI, cannot be opened, timing events are used; see
 * [property@Profiler:gpu-source].
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID if it was started already, if another profiler
 *   records or if the schedule makes no sense; with the error of the function that decides what is done
 *
 * Since: 0.1
 */
gboolean
gtorch_profiler_start (GTorchProfiler *self, GError **error)
{
  g_autoptr (GTorchProfiler) held = NULL; /* a function of the program's may drop the last one */
  g_autoptr (GRecMutexLocker) locker = NULL;
  GTorchProfilerPlan plan;
  GTorchProfilerAction action;

  g_return_val_if_fail (GTORCH_IS_PROFILER (self), FALSE);
  held = g_object_ref (self);
  locker = g_rec_mutex_locker_new (&self->turn);
  if (!check_caller (self, "profiler_start", error))
    return FALSE;
  if (self->is_started)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: the profiler was started already, at step %" PRIu64), "profiler_start",
                   self->step);
      return FALSE;
    }
  plan = self->chosen;
  if (!gtorch_profiler_plan_check (&plan, "profiler_start", error)
      || !find_action (self, &plan, self->step, &action, "profiler_start", error))
    return FALSE;
  self->plan = plan;
  if (!enter_action (self, action, "profiler_start", error))
    return FALSE;
  self->is_started = TRUE;
  self->n_changes++;
  set_action (self, action);
  begin_step (self);
  return TRUE;
}

static gboolean
check_started (GTorchProfiler *self, const gchar *what, GError **error)
{
  if (!check_caller (self, what, error))
    return FALSE;
  if (!self->is_started)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: the profiler was not started"),
                 what);
  return self->is_started;
}

/**
 * gtorch_profiler_step:
 * @self: a profiler
 * @error: return location for an error
 *
 * Tells the profiler that a step of the program is over and the next one begins.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID if the profiler was not started, or if another
 *   one records; with the error of the function that decides what is done, and the step goes on
 *
 * Since: 0.1
 */
gboolean
gtorch_profiler_step (GTorchProfiler *self, GError **error)
{
  g_autoptr (GTorchProfiler) held = NULL;
  g_autoptr (GRecMutexLocker) locker = NULL;
  GTorchProfilerAction action;
  gboolean success = TRUE;
  guint64 n_changes;

  g_return_val_if_fail (GTORCH_IS_PROFILER (self), FALSE);
  held = g_object_ref (self);
  locker = g_rec_mutex_locker_new (&self->turn);
  if (!check_started (self, "profiler_step", error)
      || !find_action (self, &self->plan, self->step + 1, &action, "profiler_step", error))
    return FALSE;
  end_step (self);
  __atomic_store_n (&self->step, self->step + 1, __ATOMIC_RELAXED);
  set_action (self, action);
  n_changes = ++self->n_changes;
  leave_action (self, action);
  if (self->n_changes == n_changes) /* otherwise a handler has decided how it goes on */
    {
      success = enter_action (self, action, "profiler_step", error);
      if (!success)
        set_action (self, GTORCH_PROFILER_ACTION_NONE);
      begin_step (self);
    }
  g_object_notify (G_OBJECT (self), "step-number");
  return success;
}

/**
 * gtorch_profiler_stop:
 * @self: a profiler
 * @error: return location for an error
 *
 * Ends recording. If something was recorded, [signal@Profiler::trace-ready] is emitted.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID if the profiler was not started
 *
 * Since: 0.1
 */
gboolean
gtorch_profiler_stop (GTorchProfiler *self, GError **error)
{
  g_autoptr (GTorchProfiler) held = NULL;
  g_autoptr (GRecMutexLocker) locker = NULL;

  g_return_val_if_fail (GTORCH_IS_PROFILER (self), FALSE);
  held = g_object_ref (self);
  locker = g_rec_mutex_locker_new (&self->turn);
  if (!check_started (self, "profiler_stop", error))
    return FALSE;
  end_step (self);
  self->is_started = FALSE;
  self->n_changes++;
  set_action (self, GTORCH_PROFILER_ACTION_NONE);
  if (records (self->present))
    end_and_tell (self);
  else if (self->present == GTORCH_PROFILER_ACTION_WARMUP)
    drop_trace (self);
  return TRUE;
}

/**
 * gtorch_profiler_get_action:
 * @self: a profiler
 *
 * Gets what is done in the present step.
 *
 * Returns: the action
 *
 * Since: 0.1
 */
GTorchProfilerAction
gtorch_profiler_get_action (GTorchProfiler *self)
{
  g_return_val_if_fail (GTORCH_IS_PROFILER (self), GTORCH_PROFILER_ACTION_NONE);
  return __atomic_load_n (&self->action, __ATOMIC_RELAXED);
}

/**
 * gtorch_profiler_get_step_number:
 * @self: a profiler
 *
 * Gets the number of the present step.
 *
 * Returns: the number, from 0
 *
 * Since: 0.1
 */
guint64
gtorch_profiler_get_step_number (GTorchProfiler *self)
{
  g_return_val_if_fail (GTORCH_IS_PROFILER (self), 0);
  return __atomic_load_n (&self->step, __ATOMIC_RELAXED);
}

/**
 * gtorch_profiler_get_gpu_source:
 * @self: a profiler
 *
 * Gets where the times of GPUs come from.
 *
 * Returns: the source
 *
 * Since: 0.1
 */
GTorchProfilerGpuSource
gtorch_profiler_get_gpu_source (GTorchProfiler *self)
{
  g_return_val_if_fail (GTORCH_IS_PROFILER (self), GTORCH_PROFILER_GPU_NONE);
  return __atomic_load_n (&self->gpu_source, __ATOMIC_RELAXED);
}

/**
 * gtorch_profiler_get_gpu_message:
 * @self: a profiler
 *
 * Gets why kernels and copies are not, or not all, in the profile.
 *
 * Returns: (nullable): the message, or %NULL if there is nothing to tell
 *
 * Since: 0.1
 */
const gchar *
gtorch_profiler_get_gpu_message (GTorchProfiler *self)
{
  g_return_val_if_fail (GTORCH_IS_PROFILER (self), NULL);
  return g_atomic_pointer_get (&self->gpu_message);
}

GTorchTrace *
gtorch_profiler_get_trace (GTorchProfiler *self)
{
  return self->trace;
}

gchar **
gtorch_profiler_dup_metadata (GTorchProfiler *self)
{
  GPtrArray *entries = g_ptr_array_new ();
  GHashTableIter iter;
  gpointer key, value;

  g_mutex_lock (&lock);
  g_hash_table_iter_init (&iter, self->metadata);
  while (g_hash_table_iter_next (&iter, &key, &value))
    {
      g_ptr_array_add (entries, g_strdup (key));
      g_ptr_array_add (entries, g_strdup (value));
    }
  g_mutex_unlock (&lock);
  g_ptr_array_add (entries, NULL);
  return (gchar **) g_ptr_array_free (entries, FALSE);
}

void
gtorch_profiler_get_settings (GTorchProfiler *self, GTorchProfileSettings *settings)
{
  g_mutex_lock (&lock);
  *settings = self->settings;
  g_mutex_unlock (&lock);
}

GPtrArray *
gtorch_traces_new (void)
{
  return g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_trace_unref);
}

GPtrArray *
gtorch_profiler_need_traces (GTorchProfiler *self, const gchar *what, GError **error)
{
  g_autoptr (GTorchTrace) last = gtorch_profiler_need_trace (self, what, error);
  GPtrArray *traces;
  guint i;

  if (last == NULL)
    return NULL;
  traces = gtorch_traces_new ();
  g_mutex_lock (&lock);
  for (i = 0; self->earlier != NULL && i < self->earlier->len; i++)
    if (self->earlier->pdata[i] != last) /* another one may have ended meanwhile */
      g_ptr_array_add (traces, gtorch_trace_ref (self->earlier->pdata[i]));
  g_mutex_unlock (&lock);
  g_ptr_array_add (traces, g_steal_pointer (&last));
  return traces;
}

GTorchTrace *
gtorch_profiler_need_trace (GTorchProfiler *self, const gchar *what, GError **error)
{
  GTorchTrace *trace;

  g_mutex_lock (&lock);
  trace = self->trace != NULL ? gtorch_trace_ref (self->trace) : NULL;
  g_mutex_unlock (&lock);
  if (trace == NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: there is no profile yet: start and stop the profiler before"), what);
  return trace;
}

/**
 * gtorch_profiler_add_metadata_json:
 * @self: a profiler
 * @key: a name
 * @value: a value in JSON
 * @error: return location for an error
 *
 * Adds a value to the files that [method@Profiler.export_chrome_trace] writes.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID if @key is not UTF-8, with
 *   %GTORCH_ERROR_FORMAT if @value is not JSON
 *
 * Since: 0.1
 */
gboolean
gtorch_profiler_add_metadata_json (GTorchProfiler *self, const gchar *key, const gchar *value,
                                   GError **error)
{
  g_autoptr (GTorchJson) json = NULL;

  g_return_val_if_fail (GTORCH_IS_PROFILER (self), FALSE);
  g_return_val_if_fail (key != NULL, FALSE);
  g_return_val_if_fail (value != NULL, FALSE);
  if (!gtorch_name_check ("profiler_add_metadata_json", key, error))
    return FALSE;
  json = gtorch_json_parse ("profiler_add_metadata_json", value, strlen (value), error);
  if (json == NULL)
    return FALSE;
  g_mutex_lock (&lock);
  g_hash_table_insert (self->metadata, g_strdup (key), g_strdup (value));
  g_mutex_unlock (&lock);
  return TRUE;
}
