/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "profiler/gtorch-profile-row.h"

#include "base/gtorch-field-private.h"
#include "device/gtorch-device.h"
#include "profiler/gtorch-profile-list-private.h"

/**
 * GTorchProfileRow:
 *
 * One event of a profile, or what the events of one name add up to.
 *
 * Times are microseconds, those of devices what their kernels and copies took. “Total” includes what
 * happened inside of the event, “self” does not. Memory is the number of bytes that storages got, less
 * those that they gave back. Rows of kernels and copies have [property@ProfileRow:device-type] `CUDA` and
 * no times of the CPU.
 *
 * Since: 0.1
 */
struct _GTorchProfileRow
{
  GObject parent_instance;
  GObject *owner; /* the list, which owns the texts and the trace */
  GTorchProfileData data;
};

G_DEFINE_TYPE (GTorchProfileRow, gtorch_profile_row, G_TYPE_OBJECT)

typedef GTorchProfileRow Self;

static const GTorchField fields[] = {
  /**
   * GTorchProfileRow:key:
   *
   * The name of the operation, the range, the node of a backward pass or the kernel.
   *
   * Since: 0.1
   */
  { "key", GTORCH_PROPERTY_STRING (gtorch_profile_row_get_key, NULL) },
  /**
   * GTorchProfileRow:count:
   *
   * How many events there are.
   *
   * Since: 0.1
   */
  { "count", GTORCH_PROPERTY_UINT64 (gtorch_profile_row_get_count, NULL) },
  /**
   * GTorchProfileRow:cpu-time:
   *
   * The mean time of the host, with what happened inside.
   *
   * Since: 0.1
   */
  { "cpu-time", GTORCH_PROPERTY_DOUBLE (gtorch_profile_row_get_cpu_time, NULL) },
  /**
   * GTorchProfileRow:cpu-time-total:
   *
   * The time of the host, with what happened inside.
   *
   * Since: 0.1
   */
  { "cpu-time-total", GTORCH_PROPERTY_DOUBLE (gtorch_profile_row_get_cpu_time_total, NULL) },
  /**
   * GTorchProfileRow:self-cpu-time-total:
   *
   * The time of the host, without what happened inside.
   *
   * Since: 0.1
   */
  { "self-cpu-time-total",
    GTORCH_PROPERTY_DOUBLE (gtorch_profile_row_get_self_cpu_time_total, NULL) },
  /**
   * GTorchProfileRow:device-time:
   *
   * The mean time of the device, with what was launched inside.
   *
   * Since: 0.1
   */
  { "device-time", GTORCH_PROPERTY_DOUBLE (gtorch_profile_row_get_device_time, NULL) },
  /**
   * GTorchProfileRow:device-time-total:
   *
   * The time of the device, with what was launched inside.
   *
   * Since: 0.1
   */
  { "device-time-total", GTORCH_PROPERTY_DOUBLE (gtorch_profile_row_get_device_time_total, NULL) },
  /**
   * GTorchProfileRow:self-device-time-total:
   *
   * The time of the device, without what was launched inside.
   *
   * Since: 0.1
   */
  { "self-device-time-total",
    GTORCH_PROPERTY_DOUBLE (gtorch_profile_row_get_self_device_time_total, NULL) },
  /**
   * GTorchProfileRow:cpu-memory-usage:
   *
   * Bytes of the CPU's memory, with what happened inside.
   *
   * Since: 0.1
   */
  { "cpu-memory-usage", GTORCH_PROPERTY_INT64 (gtorch_profile_row_get_cpu_memory_usage, NULL) },
  /**
   * GTorchProfileRow:self-cpu-memory-usage:
   *
   * Bytes of the CPU's memory, without what happened inside.
   *
   * Since: 0.1
   */
  { "self-cpu-memory-usage",
    GTORCH_PROPERTY_INT64 (gtorch_profile_row_get_self_cpu_memory_usage, NULL) },
  /**
   * GTorchProfileRow:device-memory-usage:
   *
   * Bytes of memory of devices, with what happened inside.
   *
   * Since: 0.1
   */
  { "device-memory-usage",
    GTORCH_PROPERTY_INT64 (gtorch_profile_row_get_device_memory_usage, NULL) },
  /**
   * GTorchProfileRow:self-device-memory-usage:
   *
   * Bytes of memory of devices, without what happened inside.
   *
   * Since: 0.1
   */
  { "self-device-memory-usage",
    GTORCH_PROPERTY_INT64 (gtorch_profile_row_get_self_device_memory_usage, NULL) },
  /**
   * GTorchProfileRow:flops:
   *
   * The number of floating-point operations; 0 if it is not known.
   *
   * Since: 0.1
   */
  { "flops", GTORCH_PROPERTY_UINT64 (gtorch_profile_row_get_flops, NULL) },
  /**
   * GTorchProfileRow:input-shapes:
   *
   * The shapes of the operands, such as `[[2, 3], [3]]`; empty if they were not recorded or not asked for.
   *
   * Since: 0.1
   */
  { "input-shapes", GTORCH_PROPERTY_STRING (gtorch_profile_row_get_input_shapes, NULL) },
  /**
   * GTorchProfileRow:stack:
   *
   * The frames of the program, the innermost first, one a line; empty if they were not recorded or not
   * asked for.
   *
   * Since: 0.1
   */
  { "stack", GTORCH_PROPERTY_STRING (gtorch_profile_row_get_stack, NULL) },
  /**
   * GTorchProfileRow:device-type:
   *
   * Where the event was: that of kernels and copies is that of their device, all others are of the CPU.
   *
   * Since: 0.1
   */
  { "device-type", GTORCH_PROPERTY_ENUM (GTorchDeviceType, gtorch_device_type_get_type,
                                         gtorch_profile_row_get_device_type, NULL) },
  /**
   * GTorchProfileRow:is-user-annotation:
   *
   * Whether it is a range that the program has named, a step, or what a library does for a collective.
   *
   * Since: 0.1
   */
  { "is-user-annotation", GTORCH_PROPERTY_BOOL (gtorch_profile_row_get_is_user_annotation, NULL) },
  /**
   * GTorchProfileRow:start:
   *
   * When the event began, or the first one, counted from the beginning of the profile.
   *
   * Since: 0.1
   */
  { "start", GTORCH_PROPERTY_DOUBLE (gtorch_profile_row_get_start, NULL) },
  /**
   * GTorchProfileRow:end:
   *
   * When the event ended, or the first one, counted from the beginning of the profile.
   *
   * Since: 0.1
   */
  { "end", GTORCH_PROPERTY_DOUBLE (gtorch_profile_row_get_end, NULL) },
  /**
   * GTorchProfileRow:thread:
   *
   * The system's number of the thread of the event, or of the first one; of kernels and copies 0.
   *
   * Since: 0.1
   */
  { "thread", GTORCH_PROPERTY_UINT64 (gtorch_profile_row_get_thread, NULL) },
  /**
   * GTorchProfileRow:sequence-nr:
   *
   * The number that an operation has in common with its node in the backward pass; -1 if there is none.
   *
   * Since: 0.1
   */
  { "sequence-nr", GTORCH_PROPERTY_INT64 (gtorch_profile_row_get_sequence_nr, NULL) },
  /**
   * GTorchProfileRow:trace-name:
   *
   * The name of the event, or of the first one, in traces: steps have their numbers there.
   *
   * Since: 0.1
   */
  { "trace-name", GTORCH_PROPERTY_STRING (gtorch_profile_row_get_trace_name, NULL) },
  /**
   * GTorchProfileRow:kind:
   *
   * What the event is, or the first one.
   *
   * Since: 0.1
   */
  { "kind", GTORCH_PROPERTY_ENUM (GTorchProfileKind, gtorch_profile_kind_get_type,
                                  gtorch_profile_row_get_kind, NULL) },
  /**
   * GTorchProfileRow:id:
   *
   * The number of the event, or of the first one, as traces have it: of kernels, copies and calls of the
   * driver that of the launch, which they have in common; 0 if there is none.
   *
   * Since: 0.1
   */
  { "id", GTORCH_PROPERTY_UINT64 (gtorch_profile_row_get_id, NULL) },
  /**
   * GTorchProfileRow:position:
   *
   * Where the event, or the first one, is in the list of all events; -1 if it is in none.
   *
   * Since: 0.1
   */
  { "position", GTORCH_PROPERTY_INT64 (gtorch_profile_row_get_position, NULL) },
  /**
   * GTorchProfileRow:parent-position:
   *
   * The [property@ProfileRow:position] of the event that this one is inside of, or that has launched it;
   * -1 if there is none.
   *
   * Since: 0.1
   */
  { "parent-position", GTORCH_PROPERTY_INT64 (gtorch_profile_row_get_parent_position, NULL) },
  /**
   * GTorchProfileRow:forward-thread:
   *
   * Of a node of a backward pass, the system's number of the thread of its operation; 0 if it is not known.
   *
   * Since: 0.1
   */
  { "forward-thread", GTORCH_PROPERTY_UINT64 (gtorch_profile_row_get_forward_thread, NULL) },
  /**
   * GTorchProfileRow:device-index:
   *
   * The number of the device of a kernel or copy; of all others 0.
   *
   * Since: 0.1
   */
  { "device-index", GTORCH_PROPERTY_INT64 (gtorch_profile_row_get_device_index, NULL) },
  /**
   * GTorchProfileRow:stream:
   *
   * The driver's number of the stream of a kernel or copy; of all others 0.
   *
   * Since: 0.1
   */
  { "stream", GTORCH_PROPERTY_UINT64 (gtorch_profile_row_get_stream, NULL) },
  /**
   * GTorchProfileRow:is-asynchronous:
   *
   * Whether the event goes on beside the work of the program's threads, such as what MPI does for a
   * collective. It has no time of its own in [property@ProfileRow:self-cpu-time-total].
   *
   * Since: 0.1
   */
  { "is-asynchronous", GTORCH_PROPERTY_BOOL (gtorch_profile_row_get_is_asynchronous, NULL) },
  /**
   * GTorchProfileRow:module-path:
   *
   * Of a call of a module, the names of members that lead from the outermost module to it, such as
   * “encoder.0”; empty for the outermost one; %NULL for all other events.
   *
   * Since: 0.1
   */
  { "module-path", GTORCH_PROPERTY_STRING (gtorch_profile_row_get_module_path, NULL) },
};

static void
gtorch_profile_row_finalize (GObject *object)
{
  GTorchProfileRow *self = GTORCH_PROFILE_ROW (object);

  g_clear_object (&self->owner);
  G_OBJECT_CLASS (gtorch_profile_row_parent_class)->finalize (object);
}

static void
gtorch_profile_row_class_init (GTorchProfileRowClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_profile_row_finalize;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_profile_row_init (GTorchProfileRow *self)
{
  self->data = GTORCH_PROFILE_DATA_NONE ("");
}

GTorchProfileRow *
gtorch_profile_row_new (const GTorchProfileData *data, gpointer owner)
{
  GTorchProfileRow *self = g_object_new (GTORCH_TYPE_PROFILE_ROW, NULL);

  self->owner = g_object_ref (owner);
  self->data = *data;
  return self;
}

const GTorchProfileData *
gtorch_profile_row_get_data (GTorchProfileRow *self)
{
  return &self->data;
}

GObject *
gtorch_profile_row_get_owner (GTorchProfileRow *self)
{
  return self->owner;
}

const GTorchRecord *
gtorch_profile_row_get_record (GTorchProfileRow *self)
{
  guint n;

  return self->data.record >= 0
             ? &gtorch_trace_get_records (self->data.trace, &n)[self->data.record]
             : NULL;
}

/**
 * gtorch_profile_row_get_key:
 * @self: a row
 *
 * Gets the name.
 *
 * Returns: the name
 *
 * Since: 0.1
 */
const gchar *
gtorch_profile_row_get_key (GTorchProfileRow *self)
{
  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), NULL);
  return self->data.key;
}

/**
 * gtorch_profile_row_get_count:
 * @self: a row
 *
 * Gets how many events there are.
 *
 * Returns: the number
 *
 * Since: 0.1
 */
guint64
gtorch_profile_row_get_count (GTorchProfileRow *self)
{
  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), 0);
  return self->data.count;
}

/**
 * gtorch_profile_row_get_cpu_time:
 * @self: a row
 *
 * Gets the mean time of the host.
 *
 * Returns: microseconds
 *
 * Since: 0.1
 */
gdouble
gtorch_profile_row_get_cpu_time (GTorchProfileRow *self)
{
  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), 0);
  return (gdouble) self->data.cpu_total / MAX (self->data.count, 1) / 1e3;
}

/**
 * gtorch_profile_row_get_cpu_time_total:
 * @self: a row
 *
 * Gets the time of the host, with what happened inside.
 *
 * Returns: microseconds
 *
 * Since: 0.1
 */
gdouble
gtorch_profile_row_get_cpu_time_total (GTorchProfileRow *self)
{
  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), 0);
  return self->data.cpu_total / 1e3;
}

/**
 * gtorch_profile_row_get_self_cpu_time_total:
 * @self: a row
 *
 * Gets the time of the host, without what happened inside.
 *
 * Returns: microseconds
 *
 * Since: 0.1
 */
gdouble
gtorch_profile_row_get_self_cpu_time_total (GTorchProfileRow *self)
{
  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), 0);
  return self->data.self_cpu / 1e3;
}

/**
 * gtorch_profile_row_get_device_time:
 * @self: a row
 *
 * Gets the mean time of the device.
 *
 * Returns: microseconds
 *
 * Since: 0.1
 */
gdouble
gtorch_profile_row_get_device_time (GTorchProfileRow *self)
{
  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), 0);
  return (gdouble) self->data.device_total / MAX (self->data.count, 1) / 1e3;
}

/**
 * gtorch_profile_row_get_device_time_total:
 * @self: a row
 *
 * Gets the time of the device, with what was launched inside.
 *
 * Returns: microseconds
 *
 * Since: 0.1
 */
gdouble
gtorch_profile_row_get_device_time_total (GTorchProfileRow *self)
{
  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), 0);
  return self->data.device_total / 1e3;
}

/**
 * gtorch_profile_row_get_self_device_time_total:
 * @self: a row
 *
 * Gets the time of the device, without what was launched inside.
 *
 * Returns: microseconds
 *
 * Since: 0.1
 */
gdouble
gtorch_profile_row_get_self_device_time_total (GTorchProfileRow *self)
{
  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), 0);
  return self->data.self_device / 1e3;
}

/**
 * gtorch_profile_row_get_cpu_memory_usage:
 * @self: a row
 *
 * Gets the bytes of the CPU's memory, with what happened inside.
 *
 * Returns: the number of bytes, negative if more was given back
 *
 * Since: 0.1
 */
gint64
gtorch_profile_row_get_cpu_memory_usage (GTorchProfileRow *self)
{
  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), 0);
  return self->data.cpu_memory;
}

/**
 * gtorch_profile_row_get_self_cpu_memory_usage:
 * @self: a row
 *
 * Gets the bytes of the CPU's memory, without what happened inside.
 *
 * Returns: the number of bytes, negative if more was given back
 *
 * Since: 0.1
 */
gint64
gtorch_profile_row_get_self_cpu_memory_usage (GTorchProfileRow *self)
{
  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), 0);
  return self->data.self_cpu_memory;
}

/**
 * gtorch_profile_row_get_device_memory_usage:
 * @self: a row
 *
 * Gets the bytes of memory of devices, with what happened inside.
 *
 * Returns: the number of bytes, negative if more was given back
 *
 * Since: 0.1
 */
gint64
gtorch_profile_row_get_device_memory_usage (GTorchProfileRow *self)
{
  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), 0);
  return self->data.device_memory;
}

/**
 * gtorch_profile_row_get_self_device_memory_usage:
 * @self: a row
 *
 * Gets the bytes of memory of devices, without what happened inside.
 *
 * Returns: the number of bytes, negative if more was given back
 *
 * Since: 0.1
 */
gint64
gtorch_profile_row_get_self_device_memory_usage (GTorchProfileRow *self)
{
  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), 0);
  return self->data.self_device_memory;
}

/**
 * gtorch_profile_row_get_flops:
 * @self: a row
 *
 * Gets the number of floating-point operations.
 *
 * Returns: the number, 0 if it is not known
 *
 * Since: 0.1
 */
guint64
gtorch_profile_row_get_flops (GTorchProfileRow *self)
{
  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), 0);
  return self->data.flops;
}

/**
 * gtorch_profile_row_get_input_shapes:
 * @self: a row
 *
 * Gets the shapes of the operands.
 *
 * Returns: the shapes, or an empty text
 *
 * Since: 0.1
 */
const gchar *
gtorch_profile_row_get_input_shapes (GTorchProfileRow *self)
{
  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), NULL);
  return self->data.shapes;
}

/**
 * gtorch_profile_row_get_stack:
 * @self: a row
 *
 * Gets the frames of the program, the innermost first.
 *
 * Returns: the frames, one a line, or an empty text
 *
 * Since: 0.1
 */
const gchar *
gtorch_profile_row_get_stack (GTorchProfileRow *self)
{
  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), NULL);
  return self->data.stack;
}

/**
 * gtorch_profile_row_get_device_type:
 * @self: a row
 *
 * Gets where the event was.
 *
 * Returns: the type
 *
 * Since: 0.1
 */
GTorchDeviceType
gtorch_profile_row_get_device_type (GTorchProfileRow *self)
{
  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), GTORCH_DEVICE_TYPE_CPU);
  return self->data.is_of_device ? gtorch_gpu_tracer->device_type : GTORCH_DEVICE_TYPE_CPU;
}

/**
 * gtorch_profile_row_get_is_user_annotation:
 * @self: a row
 *
 * Tells whether it is a range that the program has named, a step, or what a library does for a collective.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_profile_row_get_is_user_annotation (GTorchProfileRow *self)
{
  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), FALSE);
  return self->data.is_annotation;
}

/**
 * gtorch_profile_row_get_start:
 * @self: a row
 *
 * Gets when the event began, or the first one.
 *
 * Returns: microseconds from the beginning of the profile
 *
 * Since: 0.1
 */
gdouble
gtorch_profile_row_get_start (GTorchProfileRow *self)
{
  const GTorchRecord *record;

  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), 0);
  record = gtorch_profile_row_get_record (self);
  return record != NULL ? (record->start - self->data.origin) / 1e3 : 0;
}

/**
 * gtorch_profile_row_get_end:
 * @self: a row
 *
 * Gets when the event ended, or the first one.
 *
 * Returns: microseconds from the beginning of the profile
 *
 * Since: 0.1
 */
gdouble
gtorch_profile_row_get_end (GTorchProfileRow *self)
{
  const GTorchRecord *record;

  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), 0);
  record = gtorch_profile_row_get_record (self);
  return record != NULL ? (record->end - self->data.origin) / 1e3 : 0;
}

/**
 * gtorch_profile_row_get_thread:
 * @self: a row
 *
 * Gets the thread of the event, or of the first one.
 *
 * Returns: the system's number, 0 for kernels and copies
 *
 * Since: 0.1
 */
guint64
gtorch_profile_row_get_thread (GTorchProfileRow *self)
{
  const GTorchRecord *record;

  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), 0);
  record = gtorch_profile_row_get_record (self);
  if (record == NULL || record->thread < 0)
    return 0;
  return gtorch_trace_get_threads (self->data.trace, &(guint){ 0 })[record->thread].id;
}

/**
 * gtorch_profile_row_get_sequence_nr:
 * @self: a row
 *
 * Gets the number that an operation has in common with its node in the backward pass.
 *
 * Returns: the number, -1 if there is none
 *
 * Since: 0.1
 */
gint64
gtorch_profile_row_get_sequence_nr (GTorchProfileRow *self)
{
  const GTorchRecord *record;

  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), -1);
  record = gtorch_profile_row_get_record (self);
  return record != NULL && record->sequence != 0 ? (gint64) record->sequence : -1;
}
