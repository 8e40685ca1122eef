/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The association of streams with captures. */

#include "config.h"

#include "stream/gtorch-capturing-private.h"

#include "base/gtorch-fork-private.h"
#include "stream/gtorch-stream-private.h"

gint gtorch_n_captures;
gint gtorch_n_global_captures;

static GMutex capture_lock; /* protects `capture` of every stream */
GTORCH_FORK_LOCK (capture_lock);

void
gtorch_stream_set_capture (GTorchStream *stream, GTorchCapture *capture)
{
  g_mutex_lock (&capture_lock);
  __atomic_store_n (&stream->capture, capture, __ATOMIC_RELEASE);
  g_mutex_unlock (&capture_lock);
}

GTorchCapture *
gtorch_stream_dup_capture (GTorchStream *stream)
{
  GTorchCapture *capture;

  if (stream == NULL || __atomic_load_n (&stream->capture, __ATOMIC_ACQUIRE) == NULL)
    return NULL;
  g_mutex_lock (&capture_lock);
  capture = stream->capture;
  if (capture != NULL)
    gtorch_capture_ref (capture);
  g_mutex_unlock (&capture_lock);
  return capture;
}

GTorchCapture *
gtorch_capture_ref (GTorchCapture *capture)
{
  g_atomic_int_inc (&GTORCH_CAPTURE_BASE (capture)->ref_count);
  return capture;
}

void
gtorch_capture_unref (GTorchCapture *capture)
{
  GTorchCaptureBase *base = GTORCH_CAPTURE_BASE (capture);

  if (g_atomic_int_dec_and_test (&base->ref_count))
    base->klass->free (capture);
}
