/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What of a row belongs to one event: its kind, its place, and the events around it. */

#include "config.h"

#include "profiler/gtorch-profile-row.h"

#include "device/gtorch-device.h"
#include "profiler/gtorch-profile-list-private.h"

/**
 * gtorch_profile_row_get_trace_name:
 * @self: a row
 *
 * Gets the name of the event, or of the first one, in traces.
 *
 * Returns: (nullable): the name, or %NULL if there is none
 *
 * Since: 0.1
 */
const gchar *
gtorch_profile_row_get_trace_name (GTorchProfileRow *self)
{
  const GTorchRecord *record;

  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), NULL);
  record = gtorch_profile_row_get_record (self);
  return record != NULL ? record->name : NULL;
}

/**
 * gtorch_profile_row_get_kind:
 * @self: a row
 *
 * Gets what the event is, or the first one.
 *
 * Returns: the kind
 *
 * Since: 0.1
 */
GTorchProfileKind
gtorch_profile_row_get_kind (GTorchProfileRow *self)
{
  static const GTorchProfileKind kinds[GTORCH_N_RECORD_KINDS] = {
    [GTORCH_RECORD_OP] = GTORCH_PROFILE_KIND_OPERATION,
    [GTORCH_RECORD_RANGE] = GTORCH_PROFILE_KIND_RANGE,
    [GTORCH_RECORD_STEP] = GTORCH_PROFILE_KIND_STEP,
    [GTORCH_RECORD_BACKWARD] = GTORCH_PROFILE_KIND_BACKWARD,
    [GTORCH_RECORD_MODULE] = GTORCH_PROFILE_KIND_MODULE,
    [GTORCH_RECORD_TRANSFER] = GTORCH_PROFILE_KIND_TRANSFER,
    [GTORCH_RECORD_WAIT] = GTORCH_PROFILE_KIND_RANGE,
    [GTORCH_RECORD_RUN] = GTORCH_PROFILE_KIND_OPERATION,
    [GTORCH_RECORD_REPLAY] = GTORCH_PROFILE_KIND_REPLAY,
    [GTORCH_RECORD_ALLOC] = GTORCH_PROFILE_KIND_MEMORY,
    [GTORCH_RECORD_FREE] = GTORCH_PROFILE_KIND_MEMORY,
    [GTORCH_RECORD_DRIVER] = GTORCH_PROFILE_KIND_DRIVER,
    [GTORCH_RECORD_KERNEL] = GTORCH_PROFILE_KIND_KERNEL,
    [GTORCH_RECORD_COPY] = GTORCH_PROFILE_KIND_COPY,
    [GTORCH_RECORD_FILL] = GTORCH_PROFILE_KIND_FILL,
  };
  const GTorchRecord *record;

  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), GTORCH_PROFILE_KIND_NONE);
  record = gtorch_profile_row_get_record (self);
  return record != NULL ? kinds[record->kind] : GTORCH_PROFILE_KIND_NONE;
}

/**
 * gtorch_profile_row_get_id:
 * @self: a row
 *
 * Gets the number of the event, or of the first one, as traces have it.
 *
 * Returns: the number, 0 if there is none
 *
 * Since: 0.1
 */
guint64
gtorch_profile_row_get_id (GTorchProfileRow *self)
{
  const GTorchRecord *record;

  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), 0);
  record = gtorch_profile_row_get_record (self);
  if (record == NULL)
    return 0;
  return record->id != 0 ? record->id : record->correlation;
}

/**
 * gtorch_profile_row_get_position:
 * @self: a row
 *
 * Gets where the event, or the first one, is in the list of all events.
 *
 * Returns: the position, -1 if it is in none
 *
 * Since: 0.1
 */
gint64
gtorch_profile_row_get_position (GTorchProfileRow *self)
{
  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), -1);
  return gtorch_profile_row_get_data (self)->position;
}

/**
 * gtorch_profile_row_get_parent_position:
 * @self: a row
 *
 * Gets where the event is that this one is inside of, or that has launched it.
 *
 * Returns: its position in the list of all events, -1 if there is none
 *
 * Since: 0.1
 */
gint64
gtorch_profile_row_get_parent_position (GTorchProfileRow *self)
{
  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), -1);
  return gtorch_profile_row_get_data (self)->parent;
}

/**
 * gtorch_profile_row_get_forward_thread:
 * @self: a row
 *
 * Gets the thread of the operation whose gradients a node of a backward pass computes.
 *
 * Returns: the system's number, 0 if it is not known
 *
 * Since: 0.1
 */
guint64
gtorch_profile_row_get_forward_thread (GTorchProfileRow *self)
{
  const GTorchRecord *record, *records;
  GTorchTrace *trace;
  guint n;

  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), 0);
  record = gtorch_profile_row_get_record (self);
  if (record == NULL || record->forward < 0 || record->kind != GTORCH_RECORD_BACKWARD)
    return 0;
  trace = gtorch_profile_row_get_data (self)->trace;
  records = gtorch_trace_get_records (trace, &n);
  return gtorch_trace_get_threads (trace, &n)[records[record->forward].thread].id;
}

/**
 * gtorch_profile_row_get_device_index:
 * @self: a row
 *
 * Gets the number of the device of a kernel or copy.
 *
 * Returns: the number, 0 for all other events
 *
 * Since: 0.1
 */
gint64
gtorch_profile_row_get_device_index (GTorchProfileRow *self)
{
  const GTorchRecord *record;

  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), 0);
  record = gtorch_profile_row_get_record (self);
  if (record == NULL || record->device == NULL || !gtorch_record_is_of_device (record))
    return 0;
  return MAX (gtorch_device_get_index (record->device), 0);
}

/**
 * gtorch_profile_row_get_stream:
 * @self: a row
 *
 * Gets the stream of a kernel or copy.
 *
 * Returns: the driver's number, 0 for all other events
 *
 * Since: 0.1
 */
guint64
gtorch_profile_row_get_stream (GTorchProfileRow *self)
{
  const GTorchRecord *record;

  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), 0);
  record = gtorch_profile_row_get_record (self);
  return record != NULL ? record->stream : 0;
}

/**
 * gtorch_profile_row_get_is_asynchronous:
 * @self: a row
 *
 * Tells whether the event goes on beside the work of the program's threads.
 *
 * Returns: %TRUE if it does
 *
 * Since: 0.1
 */
gboolean
gtorch_profile_row_get_is_asynchronous (GTorchProfileRow *self)
{
  const GTorchRecord *record;

  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), FALSE);
  record = gtorch_profile_row_get_record (self);
  return record != NULL && gtorch_record_is_async (record);
}

/**
 * gtorch_profile_row_get_module_path:
 * @self: a row
 *
 * Gets the names of members that lead from the outermost module to the one that is called.
 *
 * Returns: (nullable): the names, with dots between them; %NULL if it is no call of a module
 *
 * Since: 0.1
 */
const gchar *
gtorch_profile_row_get_module_path (GTorchProfileRow *self)
{
  const GTorchRecord *record;

  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), NULL);
  record = gtorch_profile_row_get_record (self);
  return record != NULL && record->kind == GTORCH_RECORD_MODULE ? record->module.path : NULL;
}

/**
 * gtorch_profile_row_dup_parent:
 * @self: a row
 *
 * Gets the event that this one, or the first of several, is inside of, in the same thread; of kernels, copies
 * and calls of the driver the one that has launched or made them.
 *
 * Returns: (transfer full) (nullable): the event, or %NULL if there is none
 *
 * Since: 0.1
 */
GTorchProfileRow *
gtorch_profile_row_dup_parent (GTorchProfileRow *self)
{
  const GTorchProfileData *data;

  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), NULL);
  data = gtorch_profile_row_get_data (self);
  return data->parent >= 0 ? gtorch_profile_list_get_event (data->events, data->parent) : NULL;
}

/**
 * gtorch_profile_row_dup_children:
 * @self: a row
 *
 * Lists the events that are directly inside of this one, or of the first of several, by the time at which
 * they began: those of its thread, and calls of the driver, but neither kernels nor copies.
 *
 * With it a list of events becomes a tree, such as that of a `GtkTreeListModel`:
 *
 * ```js
 * const tree = Gtk.TreeListModel.new(events, false, false, row => {
 *     const children = row.dup_children();
 *     return children.get_n_items() > 0 ? children : null;
 * });
 * ```
 *
 * Returns: (transfer full): a list of [class@ProfileRow], which may be empty
 *
 * Since: 0.1
 */
GTorchProfileList *
gtorch_profile_row_dup_children (GTorchProfileRow *self)
{
  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), NULL);
  return gtorch_profile_list_new_inside (gtorch_profile_row_get_data (self), FALSE);
}

/**
 * gtorch_profile_row_dup_kernels:
 * @self: a row
 *
 * Lists the kernels, copies and fills that this event has launched, or the first of several, without those of
 * events inside of it.
 *
 * Returns: (transfer full): a list of [class@ProfileRow], which may be empty
 *
 * Since: 0.1
 */
GTorchProfileList *
gtorch_profile_row_dup_kernels (GTorchProfileRow *self)
{
  g_return_val_if_fail (GTORCH_IS_PROFILE_ROW (self), NULL);
  return gtorch_profile_list_new_inside (gtorch_profile_row_get_data (self), TRUE);
}
