/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-inner-types-private.h>

G_BEGIN_DECLS

/* What the folders below graph/ know of a capture: streams that take part hand it their work. */
typedef struct
{
  /* Adds a call of the stream. */
  gboolean (*add) (GTorchCapture *capture, GTorchStream *stream, GTorchOpCall *call,
                   GError **error);
  /* Puts the fence behind what the stream has added. */
  gboolean (*record) (GTorchCapture *capture, GTorchStream *stream, GTorchFence *fence,
                      GError **error);
  /* The stream takes part from now on, if it does not yet, and comes after the fence. */
  gboolean (*join) (GTorchCapture *capture, GTorchStream *stream, GTorchFence *fence,
                    GError **error);
  void (*free) (GTorchCapture *capture);
} GTorchCaptureClass;

/* The beginning of each capture. */
typedef struct
{
  const GTorchCaptureClass *klass;
  gint ref_count;
  gboolean is_relaxed; /* other threads may do what they like */
  GTorchPool *pool;    /* of what is allocated */
} GTorchCaptureBase;

#define GTORCH_CAPTURE_BASE(capture) ((GTorchCaptureBase *) (capture))

GTorchCapture *gtorch_capture_ref (GTorchCapture *capture);
void gtorch_capture_unref (GTorchCapture *capture);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchCapture, gtorch_capture_unref)
/* What the stream (may be NULL) takes part in, with a reference, or NULL. */
GTorchCapture *gtorch_stream_dup_capture (GTorchStream *stream);
/* The stream takes part in the capture, or in none. */
void gtorch_stream_set_capture (GTorchStream *stream, GTorchCapture *capture);

/* How many captures there are in this process, and how many of them forbid other threads to wait;
 * atomically. */
extern gint gtorch_n_captures;
extern gint gtorch_n_global_captures;

static inline gboolean
gtorch_captures_exist (void)
{
  return G_UNLIKELY (__atomic_load_n (&gtorch_n_captures, __ATOMIC_RELAXED) != 0);
}

G_END_DECLS
