/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/device/gtorch-device-private.h>

G_BEGIN_DECLS

/* Whom each launch of a graph has to meet before: pointers, whose functions are called with all of them. */
typedef struct
{
  gboolean (*begin) (GPtrArray *parties, GError **error);
  /* After a TRUE of begin, and the launch, whatever became of that. */
  void (*end) (GPtrArray *parties);
  GCompareFunc compare; /* of pointers to two of them; 0: they are the same */
  GDestroyNotify free;
} GTorchLaunchParties;

/* The interface of a capture for the code below graph/: streams that take part in it pass it their work. */
typedef struct
{
  /* Adds a call on the stream to the graph. */
  gboolean (*add) (GTorchCapture *capture, GTorchStream *stream, GTorchOpCall *call,
                   GError **error);
  /* Records the fence after what the stream has added so far. */
  gboolean (*record) (GTorchCapture *capture, GTorchStream *stream, GTorchFence *fence,
                      GError **error);
  /* Makes the stream wait for the fence, and take part in the capture if it does not yet. */
  gboolean (*join) (GTorchCapture *capture, GTorchStream *stream, GTorchFence *fence,
                    GError **error);
  /* Work that is no operation of the library, such as a collective, is launched on the stream between begin
   * and end, which a FALSE of begin must not be followed by. */
  gboolean (*begin_work) (GTorchCapture *capture, GTorchStream *stream, GError **error);
  void (*end_work) (GTorchCapture *capture, GTorchStream *stream);
  /* Called between them: adds what was launched to the graph, which keeps the memory that it reads and
   * writes. The name is a static string. */
  gboolean (*add_work) (GTorchCapture *capture, GTorchStream *stream, const gchar *name,
                        GPtrArray *read, GPtrArray *written, GError **error);
  /* Called between them, too; takes the party. A graph has those of one class. */
  void (*add_party) (GTorchCapture *capture, const GTorchLaunchParties *klass, gpointer party);
  void (*free) (GTorchCapture *capture);
} GTorchCaptureClass;

/* Where a capture allocates on one device. */
typedef struct
{
  GTorchPool *pool; /* owned; NULL: no stream of the device takes part; atomic */
  guint number;     /* number of the capture within the pool */
} GTorchCapturePlace;

/* The common header of all captures. */
typedef struct
{
  const GTorchCaptureClass *klass;
  gint ref_count;
  gboolean is_relaxed; /* other threads are not restricted meanwhile */
  GTorchCapturePlace
      places[GTORCH_MAX_DEVICES]; /* by the devices' slots; they stay until it is freed */
} GTorchCaptureBase;

#define GTORCH_CAPTURE_BASE(capture) ((GTorchCaptureBase *) (capture))

static inline GTorchCapturePlace *
gtorch_capture_get_place (GTorchCapture *capture, const GTorchDevice *device)
{
  return &GTORCH_CAPTURE_BASE (capture)->places[device->slot];
}

/* Returns the pool from which the capture allocates on the device, or NULL if no stream of the device has
 * taken part so far. Borrowed. */
static inline GTorchPool *
gtorch_capture_get_pool (GTorchCapture *capture, const GTorchDevice *device)
{
  return __atomic_load_n (&gtorch_capture_get_place (capture, device)->pool, __ATOMIC_ACQUIRE);
}

GTorchCapture *gtorch_capture_ref (GTorchCapture *capture);
void gtorch_capture_unref (GTorchCapture *capture);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchCapture, gtorch_capture_unref)
/* Returns the capture that the stream takes part in, with a new reference, or NULL. The stream may be
 * NULL. */
GTorchCapture *gtorch_stream_dup_capture (GTorchStream *stream);
/* Makes the stream take part in the capture, or in none if it is NULL. */
void gtorch_stream_set_capture (GTorchStream *stream, GTorchCapture *capture);

/* The number of captures in this process, and how many of them forbid other threads to wait; atomic. */
extern gint gtorch_n_captures;
extern gint gtorch_n_global_captures;

static inline gboolean
gtorch_captures_exist (void)
{
  return G_UNLIKELY (__atomic_load_n (&gtorch_n_captures, __ATOMIC_RELAXED) != 0);
}

G_END_DECLS
