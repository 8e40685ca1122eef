/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "distributed/gtorch-work.h"
#include "stream/gtorch-fence-private.h"

G_BEGIN_DECLS

typedef struct _GTorchWorkState GTorchWorkState;

/* The functions of an engine whose operations are work of a GPU. */
typedef struct
{
  /* Completes the work if it is over. */
  void (*poll) (GTorchWorkState *state);
  /* Lets the current stream wait for it; if it has to wait itself before, until the deadline at most, after
   * which it returns TRUE, as it does if it is cancelled. */
  gboolean (*join) (GTorchWorkState *state, gint64 deadline, GCancellable *cancellable,
                    GError **error);
  /* Whether a wait without a time limit is one of the host. */
  gboolean (*blocks) (GTorchWorkState *state);
  void (*free) (gpointer data);
} GTorchWorkBackend;

/* What a thread that carries out an operation has of its work. No reference to the object: the last one
 * would be dropped in that thread, for which bindings take their interpreter's lock, and a thread that has
 * it may be waiting for this one. */
struct _GTorchWorkState
{
  gint ref_count;
  const GTorchWorkBackend *backend; /* NULL: whoever carries it out completes it */
  gpointer data;                    /* of the backend */
  GTorchFence *fence;               /* without a backend: behind it, on the stream that does it */
  const gchar *operation;           /* a static string, "all_reduce"; NULL: there is none */
  guint64 sequence;
  gint rank; /* of this process in the group */
  gint
      source; /* atomic; the rank that has sent what was received, or will, -1 if that is not known */
  GMutex lock;
  GCond changed;
  gboolean is_done; /* atomic */
  GError *error;
  GPtrArray *tasks; /* GTask, of wait_async () */
};

GTorchWork *gtorch_work_new (const gchar *operation, guint64 sequence);
/* Borrowed. */
GTorchWorkState *gtorch_work_get_state (GTorchWork *self);
GTorchWorkState *gtorch_work_state_ref (GTorchWorkState *state);
void gtorch_work_state_unref (GTorchWorkState *state);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchWorkState, gtorch_work_state_unref)
/* Ends the work, once; further calls do nothing. Takes the error, NULL for success. In any thread. */
void gtorch_work_state_complete (GTorchWorkState *state, GError *error);

G_END_DECLS
