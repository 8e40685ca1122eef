/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Where an operation leaves the host: run here, put into a queue or recorded in a graph. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "memory/gtorch-allocator-private.h"
#include "graph/gtorch-capture-private.h"
#include "stream/gtorch-choice-private.h"
#include "base/gtorch-environment-private.h"
#include "device/gtorch-generator-private.h"
#include "check/gtorch-graph-audit-private.h"
#include "gtorch-ops-private.h"
#include "check/gtorch-race-private.h"
#include "stream/gtorch-stream-private.h"

static gint launch_blocking = -1; /* atomically; -1: ask the environment */

/**
 * gtorch_get_launch_blocking:
 *
 * Tells whether each operation is waited for; see [func@set_launch_blocking].
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_get_launch_blocking (void)
{
  gint value = g_atomic_int_get (&launch_blocking);

  if (G_UNLIKELY (value < 0))
    {
      value = gtorch_env_flag ("GTORCH_LAUNCH_BLOCKING", gtorch_env_is_on ("CUDA_LAUNCH_BLOCKING"));
      g_atomic_int_set (&launch_blocking, value);
    }
  return value;
}

/**
 * gtorch_set_launch_blocking:
 * @blocking: whether to wait
 *
 * Makes every operation on a stream wait until it was computed, so that an error is reported by
 * the call that caused it. For debugging: nothing overlaps any more. The environment variables
 * `GTORCH_LAUNCH_BLOCKING=1` and `CUDA_LAUNCH_BLOCKING=1` do the same.
 *
 * Since: 0.1
 */
void
gtorch_set_launch_blocking (gboolean blocking)
{
  g_atomic_int_set (&launch_blocking, blocking != FALSE);
}

/* --- calls that outlive their caller --- */

GTorchSavedCall *
gtorch_saved_call_new (const GTorchOpCall *call, GTorchAliasFunc alias, gpointer data)
{
  GTorchSavedCall *saved = g_new0 (GTorchSavedCall, 1);
  const GTorchOpClass *op = call->op;
  guint i, j, attr;

  saved->call = *call;
  saved->call.is_plain = FALSE; /* an alias may be laid out otherwise */
  saved->inputs = g_new0 (GTorchImpl *, MAX (call->n_inputs, 1));
  for (i = 0; i < call->n_inputs; i++)
    if (call->inputs[i] != NULL)
      saved->inputs[i] =
          alias != NULL ? alias (call->inputs[i], data) : gtorch_impl_alias (call->inputs[i]);
  for (i = 0; i < call->n_outputs; i++)
    {
      saved->call.outputs[i] = NULL;
      if (call->outputs[i] == NULL)
        continue;
      for (j = 0; j < call->n_inputs; j++) /* in place: the same operand stays the same */
        if (saved->call.outputs[i] == NULL && call->outputs[i] == call->inputs[j])
          saved->call.outputs[i] = gtorch_impl_ref (saved->inputs[j]);
      if (saved->call.outputs[i] == NULL)
        saved->call.outputs[i] =
            alias != NULL ? alias (call->outputs[i], data) : gtorch_impl_alias (call->outputs[i]);
    }

  saved->attrs = g_new0 (GTorchAttr, MAX (op->n_attrs, 1));
  for (i = 0, attr = 0; i < op->n_args; i++)
    {
      if (op->args[i].kind <= GTORCH_ARG_TENSORS)
        continue;
      saved->attrs[attr] = call->attrs[attr];
      if (op->args[i].kind == GTORCH_ARG_INTS)
        saved->attrs[attr].list.data =
            g_memdup2 (call->attrs[attr].list.data, call->attrs[attr].list.n * sizeof (gint64));
      else if (op->args[i].kind == GTORCH_ARG_GENERATOR && call->attrs[attr].p != NULL)
        g_object_ref (saved->attrs[attr].p);
      attr++;
    }
  saved->call.inputs = saved->inputs;
  saved->call.attrs = saved->attrs;
  return saved;
}

void
gtorch_saved_call_free (GTorchSavedCall *saved)
{
  const GTorchOpClass *op = saved->call.op;
  guint i, attr;

  gtorch_impl_clear (saved->inputs, saved->call.n_inputs);
  gtorch_impl_clear (saved->call.outputs, saved->call.n_outputs);
  for (i = 0, attr = 0; i < op->n_args; i++)
    {
      if (op->args[i].kind <= GTORCH_ARG_TENSORS)
        continue;
      if (op->args[i].kind == GTORCH_ARG_INTS)
        g_free ((gpointer) saved->attrs[attr].list.data);
      else if (op->args[i].kind == GTORCH_ARG_GENERATOR)
        g_clear_object (&saved->attrs[attr].p);
      attr++;
    }
  g_free (saved->inputs);
  g_free (saved->attrs);
  g_free (saved);
}

gboolean
gtorch_saved_call_run (GTorchSavedCall *saved, GError **error)
{
  GTorchDevice *device = saved->call.device;
  const GTorchStream *former = gtorch_thread.streams[device->slot];
  GTorchChange change;
  gboolean result;

  if (former != NULL)
    gtorch_change_to_stream (&change, device, NULL);
  gtorch_thread.must_finish = TRUE;
  result = saved->call.op->cpu (&saved->call, error);
  gtorch_thread.must_finish = FALSE;
  if (former != NULL)
    gtorch_change_end (&change);
  if (!result)
    gtorch_call_name_error (&saved->call, error);
  return result;
}

/* --- reading what others wrote --- */

void
gtorch_storage_set_writer (GTorchStorage *storage, GTorchTimeline *timeline, guint64 seq)
{
  __atomic_store_n (&storage->write_seq, seq, __ATOMIC_RELAXED);
  __atomic_store_n (&storage->writer, timeline, __ATOMIC_RELEASE);
}

static gboolean
wait_for_writer (GTorchStorage *storage, GError **error)
{
  GTorchTimeline *writer = __atomic_load_n (&storage->writer, __ATOMIC_ACQUIRE);

  if (writer == NULL)
    return TRUE;
  if (gtorch_timeline_is_of_copies (writer))
    {
      if (!writer->wait (writer, __atomic_load_n (&storage->write_seq, __ATOMIC_RELAXED), NULL,
                         error))
        return FALSE;
      __atomic_store_n (&storage->writer, NULL, __ATOMIC_RELAXED);
      return TRUE;
    }
  if (!gtorch_timeline_wait (writer, __atomic_load_n (&storage->write_seq, __ATOMIC_RELAXED), NULL,
                             error))
    return FALSE;
  if (gtorch_is_checking (GTORCH_CHECK_STREAMS))
    gtorch_race_storage_waited (storage, writer);
  if (!gtorch_timeline_report_work (writer, __atomic_load_n (&storage->write_seq, __ATOMIC_RELAXED),
                                    error))
    return FALSE; /* and the next one who asks */
  __atomic_store_n (&storage->writer, NULL, __ATOMIC_RELAXED);
  return TRUE;
}

gboolean
gtorch_storage_wait (GTorchStorage *storage, GError **error)
{
  return wait_for_writer (storage, error);
}

gboolean
gtorch_stream_check_operand (GTorchStream *stream, GTorchStorage *storage, GError **error)
{
  GTorchTimeline *writer = __atomic_load_n (&storage->writer, __ATOMIC_ACQUIRE);

  return writer == NULL || (writer == stream->timeline && g_atomic_int_get (&writer->is_failed))
         || gtorch_timeline_check_work (writer,
                                        __atomic_load_n (&storage->write_seq, __ATOMIC_RELAXED),
                                        error);
}

gboolean
gtorch_call_overwrites (const GTorchOpCall *call, guint i)
{
  const GTorchImpl *impl = call->inputs[i];

  return i == 0 && call->in_place && (call->op->flags & GTORCH_OP_FLAG_OVERWRITES)
         && impl->is_contiguous
         && (gsize) impl->numel * gtorch_dtype_size (impl->dtype) == impl->storage->n_bytes;
}

gboolean
gtorch_storage_wait_copies (GTorchStorage *storage, GError **error)
{
  GTorchTimeline *writer = __atomic_load_n (&storage->writer, __ATOMIC_ACQUIRE);

  return writer == NULL || !gtorch_timeline_is_of_copies (writer)
         || wait_for_writer (storage, error);
}

typedef struct
{
  GTorchTimeline *timeline;
  guint64 seq;
} Copies;

static gboolean
await_copies (gpointer data, GError **error)
{
  const Copies *copies = data;

  return !gtorch_timeline_is_of_copies (copies->timeline)
         || copies->timeline->wait (copies->timeline, copies->seq, NULL, error);
}

void
gtorch_stream_enqueue_copies (GTorchStream *stream, GTorchStorage *storage)
{
  GTorchTimeline *writer = __atomic_load_n (&storage->writer, __ATOMIC_ACQUIRE);
  Copies *copies;

  if (writer == NULL || !gtorch_timeline_is_of_copies (writer))
    return;
  copies = g_new (Copies, 1);
  copies->timeline = writer;
  copies->seq = __atomic_load_n (&storage->write_seq, __ATOMIC_RELAXED);
  GTORCH_STREAM_GET_CLASS (stream)->enqueue (stream, await_copies, copies, g_free);
}

gboolean
gtorch_impl_sync (GTorchImpl *impl, GError **error)
{
  GTorchStorage *storage = impl->storage;
  GTorchStream *stream;

  if (G_UNLIKELY (storage == NULL))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED,
                   _ ("a tensor of shape %s was released and cannot be read"),
                   gtorch_impl_shape_str (impl));
      return FALSE;
    }
  stream = gtorch_current_stream (storage->device);
  if (G_LIKELY (stream == NULL && storage->free_func == NULL
                && __atomic_load_n (&storage->writer, __ATOMIC_RELAXED) == NULL
                && !gtorch_captures_exist () && !gtorch_promises_exist ()))
    return TRUE;
  if (gtorch_storage_get_stale (storage) != NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED,
                   _ ("a tensor of shape %s came from a graph, and a later replay of %s has "
                      "overwritten it: clone it before that"),
                   gtorch_impl_shape_str (impl), gtorch_storage_get_stale (storage));
      return FALSE;
    }
  if (gtorch_thread.worker != NULL)
    return TRUE;
  if (!gtorch_capture_allow_sync (impl, error))
    return FALSE;
  if (stream != NULL && stream->timeline != NULL
      && __atomic_load_n (&stream->capture, __ATOMIC_RELAXED) == NULL)
    {
      if (!gtorch_timeline_wait (stream->timeline, G_MAXUINT64, NULL, error)
          || !gtorch_timeline_report (stream->timeline, error))
        return FALSE;
    }
  return wait_for_writer (storage, error) && gtorch_pool_sync (storage, error);
}

gboolean
gtorch_launch_sync_inputs (GTorchOpCall *call, GError **error)
{
  guint i;

  for (i = 0; i < call->n_inputs; i++)
    if (call->inputs[i] != NULL && !call->inputs[i]->is_number
        && !gtorch_impl_sync (call->inputs[i], error))
      {
        g_prefix_error (error, "%s: ", gtorch_call_named_op (call)->name);
        return FALSE;
      }
  return TRUE;
}

GTorchImpl *
gtorch_launch_new_output (GTorchOpCall *call, guint dtype, const gint64 *shape, guint n_dims,
                          GError **error)
{
  g_autoptr (GTorchCapture) capture =
      gtorch_stream_dup_capture (gtorch_current_stream (call->device));
  gint64 strides[GTORCH_MAX_DIMS], numel;
  GTorchStorage *storage;
  GTorchImpl *output;

  if (capture == NULL)
    {
      gtorch_memory_site_op = call->op->name;
      output = gtorch_impl_new (call->device, dtype, shape, n_dims, error);
      gtorch_memory_site_op = NULL;
      return output;
    }
  if (!gtorch_shape_measure (shape, n_dims, dtype, strides, &numel))
    {
      gtorch_shape_set_error (shape, n_dims, error);
      return NULL;
    }
  storage = gtorch_pool_alloc (gtorch_capture_get_pool (capture),
                               (gsize) numel * gtorch_dtype_size (dtype),
                               gtorch_capture_get_number (capture), error);
  if (storage == NULL)
    return NULL;
  output = gtorch_impl_new_strided (storage, dtype, 0, shape, NULL, n_dims);
  gtorch_storage_unref (storage);
  return output;
}

/* --- launching --- */

static inline gboolean
launch_on_device (GTorchStream *stream, GTorchOpCall *call, GError **error)
{
  GTorchDevice *device = call->device;

  return call->op->cpu == gtorch_cpu_empty /* nothing is written, so no queue needs to know */
         || GTORCH_DEVICE_GET_CLASS (device)->launch (device, stream, call, error);
}

static G_GNUC_NO_INLINE gboolean
launch_on_stream (GTorchStream *stream, GTorchOpCall *call, GError **error)
{
  g_autoptr (GTorchCapture) capture = gtorch_stream_dup_capture (stream);

  if (capture != NULL)
    {
      gtorch_audit_captured (capture, call);
      return gtorch_capture_add (capture, stream, call, error);
    }
  if (!launch_on_device (stream, call, error))
    return FALSE;
  if (stream->timeline != NULL && call->op->cpu != gtorch_cpu_empty
      && gtorch_get_launch_blocking ())
    {
      return gtorch_timeline_wait (stream->timeline, G_MAXUINT64, NULL, error)
             && gtorch_timeline_report (stream->timeline, error);
    }
  return TRUE;
}

/* On the CPU's default stream, which is in order with the others as far as its operands go. */
static G_GNUC_NO_INLINE gboolean
launch_behind_writers (GTorchOpCall *call, GError **error)
{
  GTorchStorage *written = NULL;
  guint i;

  for (i = 0; i < call->n_inputs; i++)
    {
      GTorchStorage *storage = call->inputs[i] != NULL ? call->inputs[i]->storage : NULL;
      GTorchTimeline *writer =
          storage != NULL ? __atomic_load_n (&storage->writer, __ATOMIC_ACQUIRE) : NULL;

      if (writer == NULL
          || ((call->op->flags & GTORCH_OP_FLAG_DEVICES) /* copies do it by themselves */
              && gtorch_timeline_is_of_copies (writer)))
        continue;
      if (!gtorch_timeline_is_of_copies (writer) && gtorch_call_overwrites (call, i))
        {
          if (!gtorch_timeline_wait (writer,
                                     __atomic_load_n (&storage->write_seq, __ATOMIC_RELAXED), NULL,
                                     error))
            return FALSE;
          written = storage; /* what was not computed is not looked at */
        }
      else if (!wait_for_writer (storage, error))
        return FALSE;
    }
  if (!call->op->cpu (call, error))
    return FALSE;
  if (written != NULL)
    __atomic_store_n (&written->writer, NULL, __ATOMIC_RELAXED);
  return TRUE;
}

/* Outside of captures, what a graph will compute is not there before its first replay. Writing over all of it
 * is no mistake, and what a replay launches itself is in order. */
static G_GNUC_NO_INLINE gboolean
check_promised (GTorchOpCall *call, GError **error)
{
  guint i;

  if (gtorch_thread.worker != NULL || gtorch_thread.is_apart || !gtorch_call_takes_values (call))
    return TRUE;
  for (i = 0; i < call->n_inputs; i++)
    {
      const GTorchImpl *input = call->inputs[i];

      if (input == NULL || input->is_number || !gtorch_pool_is_promised (input->storage)
          || gtorch_call_overwrites (call, i))
        continue;
      gtorch_call_error (call, error, GTORCH_ERROR_CAPTURE,
                         _ ("tensor %u, of shape %s, was not computed: the graph that computes it "
                            "was never replayed"),
                         i, gtorch_impl_shape_str (input));
      return FALSE;
    }
  return TRUE;
}

gboolean
gtorch_launch (GTorchOpCall *call, GError **error)
{
  GTorchStream *stream = gtorch_current_stream (call->device);
  guint i;

  if (!gtorch_auto_sync (call->device, error))
    return FALSE;
  if (gtorch_captures_exist ()
      && (stream == NULL || __atomic_load_n (&stream->capture, __ATOMIC_RELAXED) == NULL)
      && !gtorch_audit_launch (stream, call, error))
    return FALSE;
  if (gtorch_promises_exist ()
      && (stream == NULL || __atomic_load_n (&stream->capture, __ATOMIC_RELAXED) == NULL)
      && !check_promised (call, error))
    return FALSE;
  if (gtorch_is_checking (GTORCH_CHECK_STREAMS) && !gtorch_race_note_call (stream, call, error))
    return FALSE;
  if (G_UNLIKELY (stream != NULL))
    return launch_on_stream (stream, call, error);
  if (call->device->type != GTORCH_DEVICE_TYPE_CPU)
    return launch_on_device (NULL, call, error);

  for (i = 0; i < call->n_inputs; i++)
    if (call->inputs[i] != NULL
        && G_UNLIKELY (__atomic_load_n (&call->inputs[i]->storage->writer, __ATOMIC_RELAXED)
                       != NULL)
        && gtorch_thread.worker == NULL)
      return launch_behind_writers (call, error);
  return call->op->cpu (call, error);
}
