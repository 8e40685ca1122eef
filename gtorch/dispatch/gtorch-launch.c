/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The launcher: runs an operation here, enqueues it, or records it in a graph. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "dispatch/gtorch-run-private.h"
#include "memory/gtorch-allocator-private.h"
#include "stream/gtorch-capturing-private.h"
#include "base/gtorch-environment-private.h"
#include "device/gtorch-generator-private.h"
#include "memory/gtorch-memory-pool-private.h"
#include "base/gtorch-observer-private.h"
#include "gtorch-ops-private.h"
#include "stream/gtorch-stream-private.h"
#include "tensor/gtorch-uninitialized-private.h"

static gint launch_blocking = -1; /* atomic; -1: not yet read from the environment */

/**
 * gtorch_get_launch_blocking:
 *
 * Tells whether each operation waits for its result; see [func@set_launch_blocking].
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
 * Makes every operation on a stream wait until it has been computed, so that an error is reported by the
 * call that caused it. This is for debugging: nothing overlaps any more. The environment variables
 * `GTORCH_LAUNCH_BLOCKING=1` and `CUDA_LAUNCH_BLOCKING=1` do the same.
 *
 * Since: 0.1
 */
void
gtorch_set_launch_blocking (gboolean blocking)
{
  g_atomic_int_set (&launch_blocking, blocking != FALSE);
}

/* --- waiting for writers --- */

gboolean
gtorch_call_overwrites (const GTorchOpCall *call, guint i)
{
  const GTorchImpl *impl = call->inputs[i];

  return i == 0 && call->in_place && (call->op->flags & GTORCH_OP_FLAG_OVERWRITES)
         && impl->is_contiguous
         && (gsize) impl->numel * gtorch_dtype_size (impl->dtype) == impl->storage->n_bytes;
}

gboolean
gtorch_impl_allow_sync (GTorchImpl *impl, GError **error)
{
  GTorchStream *stream = gtorch_current_stream (impl->storage->device);
  GTorchPool *pool = gtorch_pool_of (impl->storage);
  g_autoptr (GTorchCapture) capture = gtorch_stream_dup_capture (stream);
  const gchar *reason;

  if (pool != NULL && gtorch_pool_is_capturing (pool))
    reason = _ ("it is not computed before the graph is replayed");
  else if (!gtorch_thread.is_apart && gtorch_pool_is_promised (impl->storage))
    reason = _ ("the graph that computes it was never replayed");
  else if (capture != NULL && !GTORCH_CAPTURE_BASE (capture)->is_relaxed)
    reason = _ ("the current stream captures a graph");
  else if (g_atomic_int_get (&gtorch_n_global_captures) != 0)
    reason = _ ("a graph is captured in global mode");
  else
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
               _ ("the elements of a tensor of shape %s cannot be read on the host: %s"),
               gtorch_impl_shape_str (impl), reason);
  return FALSE;
}

gboolean
gtorch_impl_sync (GTorchImpl *impl, GError **error)
{
  GTorchStorage *storage = impl->storage;
  GTorchStream *stream;

  if (G_UNLIKELY (storage == NULL))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED,
                   _ ("a tensor of shape %s %s, and cannot be read"), gtorch_impl_shape_str (impl),
                   gtorch_impl_loss (impl));
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
  if (!gtorch_impl_allow_sync (impl, error))
    return FALSE;
  if (stream != NULL && stream->timeline != NULL
      && __atomic_load_n (&stream->capture, __ATOMIC_RELAXED) == NULL)
    {
      if (!gtorch_timeline_wait (stream->timeline, G_MAXUINT64, NULL, error)
          || !gtorch_timeline_report (stream->timeline, error))
        return FALSE;
    }
  return gtorch_storage_wait (storage, error) && gtorch_pool_sync (storage, error);
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
  const GTorchCapturePlace *place;
  gint64 strides[GTORCH_MAX_DIMS], numel;
  GTorchStorage *storage;
  GTorchImpl *output;

  gtorch_observe_prepare (call);
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
  place = gtorch_capture_get_place (capture, call->device);
  storage = gtorch_pool_alloc (place->pool, (gsize) numel * gtorch_dtype_size (dtype),
                               place->number, error);
  if (storage == NULL)
    return NULL;
  gtorch_observe_storage_new (storage);
  output = gtorch_impl_new_strided (storage, dtype, 0, shape, NULL, n_dims);
  gtorch_storage_unref (storage);
  return output;
}

/* --- launching --- */

/* Returns the generator that the call was given, or NULL. */
static GTorchGenerator *
find_generator (const GTorchOpCall *call)
{
  const GTorchOpClass *op = call->op;
  GTorchGenerator *generator = NULL;
  guint i, attr;

  for (i = 0, attr = 0; i < op->n_args; i++)
    if (op->args[i].kind > GTORCH_ARG_TENSORS)
      {
        if (op->args[i].kind == GTORCH_ARG_GENERATOR)
          generator = call->attrs[attr].p;
        attr++;
      }
  return generator;
}

gboolean
gtorch_random_check (GTorchOpCall *call, GError **error)
{
  GTorchGenerator *generator = find_generator (call);
  GTorchDevice *device = generator != NULL ? gtorch_generator_get_device (generator) : NULL;

  if (device == NULL || device == call->device)
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_DEVICE_MISMATCH,
                     _ ("the generator is one of %s, and the numbers are wanted on %s"),
                     gtorch_device_name (device), gtorch_device_name (call->device));
  return FALSE;
}

void
gtorch_random_reserve (GTorchOpCall *call)
{
  GTorchStream *stream = gtorch_current_stream (call->device);
  GTorchGenerator *generator;

  if (stream != NULL && __atomic_load_n (&stream->capture, __ATOMIC_RELAXED) != NULL)
    {
      gtorch_thread.n_captured++;
      return;
    }
  generator = find_generator (call);
  if (generator == NULL)
    generator = gtorch_device_get_default_generator (call->device);
  gtorch_generator_reserve (generator, &call->seed, &call->counter);
}

static inline gboolean
launch_on_device (GTorchStream *stream, GTorchOpCall *call, GError **error)
{
  GTorchDevice *device = call->device;

  return (call->op->flags & GTORCH_OP_FLAG_UNSET) /* nothing is written, so no queue is involved */
         || GTORCH_DEVICE_GET_CLASS (device)->launch (device, stream, call, error);
}

static G_GNUC_NO_INLINE gboolean
launch_on_stream (GTorchStream *stream, GTorchOpCall *call, GError **error)
{
  g_autoptr (GTorchCapture) capture = NULL;

  if (!gtorch_stream_check_cancellable (stream, gtorch_call_named_op (call)->name, error))
    return FALSE;
  capture = gtorch_stream_dup_capture (stream);
  if (capture != NULL)
    return GTORCH_CAPTURE_BASE (capture)->klass->add (capture, stream, call, error);
  if (!launch_on_device (stream, call, error))
    return FALSE;
  if (stream->timeline != NULL && !(call->op->flags & GTORCH_OP_FLAG_UNSET)
      && gtorch_get_launch_blocking ())
    {
      return gtorch_timeline_wait (stream->timeline, G_MAXUINT64, NULL, error)
             && gtorch_timeline_report (stream->timeline, error);
    }
  return TRUE;
}

/* Runs a call on the CPU's default stream, after waiting for the other streams that write to its
 * operands. */
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
          || ((call->op->flags & GTORCH_OP_FLAG_DEVICES) /* copies wait themselves */
              && gtorch_timeline_is_of_copies (writer)))
        continue;
      if (!gtorch_timeline_is_of_copies (writer) && gtorch_call_overwrites (call, i))
        {
          if (!gtorch_timeline_wait (writer,
                                     __atomic_load_n (&storage->write_seq, __ATOMIC_RELAXED), NULL,
                                     error))
            return FALSE;
          written = storage; /* overwritten, so errors of the former writer do not matter */
        }
      else if (!gtorch_storage_wait (storage, error))
        return FALSE;
    }
  if (!gtorch_call_run (call, NULL, error))
    return FALSE;
  if (written != NULL)
    __atomic_store_n (&written->writer, NULL, __ATOMIC_RELAXED);
  return TRUE;
}

/* Fails if an operand was computed in a capture whose graph has never been replayed. Overwriting all of it
 * is allowed, and so are calls launched by a replay itself. */
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

/* Launches the call; stream NULL is the default stream. */
static inline gboolean
launch (GTorchStream *stream, GTorchOpCall *call, GError **error)
{
  guint i;

  if (G_UNLIKELY (stream != NULL))
    return launch_on_stream (stream, call, error);
  if (!call->device->in_caller)
    return launch_on_device (NULL, call, error);

  for (i = 0; i < call->n_inputs; i++)
    if (call->inputs[i] != NULL
        && G_UNLIKELY (__atomic_load_n (&call->inputs[i]->storage->writer, __ATOMIC_RELAXED)
                       != NULL)
        && gtorch_thread.worker == NULL)
      return launch_behind_writers (call, error);
  return gtorch_call_run (call, NULL, error);
}

static inline gboolean
launch_here (GTorchOpCall *call, GError **error)
{
  GTorchStream *stream = gtorch_current_stream (call->device);

  if (!gtorch_auto_sync (call->device, error))
    return FALSE;
  if (gtorch_promises_exist ()
      && (stream == NULL || __atomic_load_n (&stream->capture, __ATOMIC_RELAXED) == NULL)
      && !check_promised (call, error))
    return FALSE;
  return gtorch_observe_call (stream, call, launch, error);
}

static G_GNUC_NO_INLINE gboolean
launch_rarely (GTorchOpCall *call, GError **error)
{
  return launch_here (call, error);
}

/* Copies between two streams of one capture, which are in order with each other before the copy and after it
 * as they are without a capture. The copy is work of the second one, so that its source is made contiguous
 * first, on its own device. The first wait would be needless, but where the last one will not be possible,
 * as in a branch, it fails before anything is captured. */
static gboolean
launch_between (GTorchOpCall *call, GTorchStream *from, GTorchStream *to, GError **error)
{
  GTorchImpl *inputs[] = { call->inputs[0], call->inputs[1] };
  g_autoptr (GTorchImpl) plain = NULL;
  GTorchOpCall own = *call;

  if (!gtorch_stream_wait_stream (from, to, error))
    return FALSE;
  if (!inputs[1]->is_contiguous)
    {
      g_autoptr (GTorchImpl) alias = gtorch_impl_alias (inputs[1]); /* without autograd */

      plain = gtorch_op_clone (alias, error);
      if (plain == NULL)
        return FALSE;
      inputs[1] = plain;
      own.inputs = inputs;
    }
  return gtorch_stream_wait_stream (to, from, error) && launch_rarely (&own, error)
         && gtorch_stream_wait_stream (from, to, error);
}

/* Where the device that has the source captures a graph and the other one does not, a copy is work of the
 * former, and part of the graph. */
static G_GNUC_NO_INLINE gboolean
launch_copy (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *src = call->inputs[1];
  GTorchStream *to = gtorch_current_stream (call->device), *from;
  g_autoptr (GTorchCapture) capture = NULL;
  g_autoptr (GTorchCapture) sources = NULL;

  if (src == NULL || src->is_number || src->device == call->device
      || GTORCH_DEVICE_GET_CLASS (src->device)->graphs == NULL)
    return launch_rarely (call, error);
  from = gtorch_current_stream (src->device);
  sources = gtorch_stream_dup_capture (from);
  capture = gtorch_stream_dup_capture (to);
  if (sources != NULL && sources == capture)
    return launch_between (call, from, to, error);
  if (sources != NULL && capture == NULL)
    call->device = src->device;
  return launch_rarely (call, error);
}

gboolean
gtorch_launch (GTorchOpCall *call, GError **error)
{
  if (G_UNLIKELY (gtorch_captures_exist ()) && call->in_place
      && (call->op->flags & GTORCH_OP_FLAG_DEVICES))
    return launch_copy (call, error);
  return launch_here (call, error);
}
