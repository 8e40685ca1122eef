/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The streams of a backward pass: the order between them, and the restrictions of captures. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "autograd/gtorch-autograd-private.h"
#include "graph/gtorch-capture-private.h"
#include "stream/gtorch-stream-private.h"

/* --- the streams of a thread --- */

void
gtorch_thread_streams_take (GTorchThreadStreams *self)
{
  guint i;

  for (i = 0; i < GTORCH_MAX_DEVICES; i++)
    self->streams[i] =
        gtorch_thread.streams[i] != NULL ? g_object_ref (gtorch_thread.streams[i]) : NULL;
}

void
gtorch_thread_streams_apply (const GTorchThreadStreams *self)
{
  guint i;

  for (i = 0; i < GTORCH_MAX_DEVICES; i++)
    {
      GTorchStream *own = gtorch_thread.streams[i], *next = self->streams[i];

      if (own == next)
        continue;
      gtorch_thread.streams[i] = next != NULL ? g_object_ref (next) : NULL;
      g_clear_object (&own);
    }
}

void
gtorch_thread_streams_change_to (const GTorchThreadStreams *self, GTorchChange *change)
{
  guint i;

  gtorch_change_begin (change);
  for (i = 0; i < GTORCH_MAX_DEVICES; i++)
    gtorch_change_slot (change, i, self->streams[i]);
}

void
gtorch_thread_streams_clear (GTorchThreadStreams *self)
{
  guint i;

  for (i = 0; i < GTORCH_MAX_DEVICES; i++)
    g_clear_object (&self->streams[i]);
}

gboolean
gtorch_thread_has_streams (void)
{
  guint i;

  for (i = 0; i < GTORCH_MAX_DEVICES; i++)
    if (gtorch_thread.streams[i] != NULL)
      return TRUE;
  return FALSE;
}

/* --- the streams of a pass --- */

static GTorchStream *
stream_of (GTorchDevice *device, GTorchStream *stream)
{
  return stream != NULL ? stream : gtorch_device_get_default_stream (device);
}

static GTorchStream *
callers_stream (GTorchPassStreams *self, GTorchDevice *device)
{
  return stream_of (device, self->callers.streams[device->slot]);
}

void
gtorch_pass_streams_init (GTorchPassStreams *self, GTorchImpl *const *roots, guint n_roots)
{
  guint i;

  gtorch_thread_streams_take (&self->callers);
  self->used = g_ptr_array_new_with_free_func (g_object_unref);
  self->held = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_storage_unref);
  self->device = n_roots > 0 ? gtorch_impl_device (roots[0]) : NULL;
  for (i = 1; i < n_roots; i++)
    if (gtorch_impl_device (roots[i]) != self->device)
      self->device = NULL;
}

void
gtorch_pass_streams_clear (GTorchPassStreams *self)
{
  gtorch_pass_streams_forget_fence (self);
  gtorch_thread_streams_clear (&self->callers);
  g_clear_pointer (&self->used, g_ptr_array_unref);
  g_clear_pointer (&self->held, g_ptr_array_unref);
}

void
gtorch_pass_streams_forget_fence (GTorchPassStreams *self)
{
  g_clear_pointer (&self->fence, gtorch_fence_unref);
  self->fenced = NULL;
}

static gboolean
wait_once (GTorchStream *stream, GTorchStream *other, GError **error)
{
  GTorchFence *fence = gtorch_stream_record_fence (other, GTORCH_EVENT_NONE, error);
  gboolean result = fence != NULL && gtorch_stream_wait_fence (stream, fence, error);

  g_clear_pointer (&fence, gtorch_fence_unref);
  return result;
}

/* Adds the stream to the pass: work that is queued on it from now on belongs to the pass. */
static gboolean
use (GTorchPassStreams *self, GTorchStream *stream, GError **error)
{
  GTorchStream *caller = callers_stream (self, stream->device);

  if (stream == caller || g_ptr_array_find (self->used, stream, NULL))
    return TRUE;
  g_ptr_array_add (self->used, g_object_ref (stream));
  /* On the device of the roots all gradients originate from the caller's stream. */
  return stream->device == self->device || wait_once (stream, caller, error);
}

gboolean
gtorch_pass_streams_enter (GTorchPassStreams *self, GTorchChange *change, GTorchDevice *device,
                           GTorchStream *stream, GError **error)
{
  if (gtorch_current_stream (device) == stream)
    return TRUE;
  gtorch_change_stream (change, device, stream);
  return use (self, stream_of (device, stream), error);
}

gboolean
gtorch_pass_streams_order (GTorchPassStreams *self, GTorchImpl *grad, GTorchStream *next,
                           GError **error)
{
  GTorchDevice *device = gtorch_impl_device (grad);
  GTorchStream *current = gtorch_current_stream (device);

  if (current == next)
    return TRUE;
  current = stream_of (device, current);
  next = stream_of (device, next);
  if (current == next)
    return TRUE;
  if (!use (self, next, error))
    return FALSE;
  /* The gradient has other owners, which may read it on streams that `next` does not wait for. The
   * reference in `held` keeps it from being written to in place once they have dropped theirs. */
  if (g_atomic_int_get (&grad->ref_count) > 1 || g_atomic_int_get (&grad->storage->ref_count) > 1)
    g_ptr_array_add (self->held, gtorch_storage_ref (grad->storage));
  if (self->fenced != current)
    {
      gtorch_pass_streams_forget_fence (self);
      self->fence = gtorch_stream_record_fence (current, GTORCH_EVENT_NONE, error);
      self->fenced = current;
    }
  return self->fence != NULL && gtorch_stream_wait_fence (next, self->fence, error);
}

gboolean
gtorch_pass_streams_join (GTorchPassStreams *self, GError **error)
{
  guint i;

  for (i = 0; i < self->used->len; i++)
    {
      GTorchStream *stream = self->used->pdata[i];

      if (!wait_once (callers_stream (self, stream->device), stream, error))
        return FALSE;
    }
  return TRUE;
}

/* --- captures --- */

static gchar *
describe (GTorchStream *stream, gboolean captures, gboolean both)
{
  return g_strdup_printf (!captures ? _ ("stream %p, which captures no graph")
                          : both    ? _ ("stream %p, which captures another graph")
                                    : _ ("stream %p, which captures a graph"),
                          stream);
}

/* The capture of the caller's stream is compared, since all gradients of a device originate from it. */
gboolean
gtorch_pass_streams_check_capture (GTorchPassStreams *self, GTorchNode *node, GError **error)
{
  GTorchDevice *device = node->stream != NULL ? node->stream->device : node->output_metas[0].device;
  GTorchStream *caller = callers_stream (self, device), *own = stream_of (device, node->stream);
  g_autoptr (GTorchCapture) callers_capture = gtorch_stream_dup_capture (caller);
  g_autoptr (GTorchCapture) own_capture = gtorch_stream_dup_capture (own);
  g_autofree gchar *from = NULL;
  g_autofree gchar *to = NULL;

  if (callers_capture == own_capture)
    return TRUE;
  to = describe (own, own_capture != NULL, FALSE);
  from = describe (caller, callers_capture != NULL, own_capture != NULL);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
               _ ("backward: %s ran forward on %s, and its gradient comes from %s: capture both "
                  "passes or none of them"),
               node->name, to, from);
  return FALSE;
}
