/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/data/gtorch-loader-private.h>

G_BEGIN_DECLS

/* A batch that a thread makes without workers. It goes on when the call that wanted the batch is cancelled,
 * and the next call takes it. The thread and the iterator have a reference each. */
typedef struct
{
  gint ref_count;
  GTorchDataLoaderIter *iter; /* owned by the task, which drops it in its context */
  GTorchSize *indices;
  GCancellable *cancellable;
  GMutex lock;
  GCond cond;
  GTorchBatch *batch; /* once is_done; NULL: the end */
  gboolean is_done;
} GTorchMaking;

struct _GTorchDataLoaderIter
{
  GObject parent_instance;
  GTorchDataLoader *loader;
  GTorchPassStart start;
  GTorchWorkers *workers; /* own ones; NULL: those of the loader, or none */
  GTorchPass *pass;       /* NULL: without workers, or closed */
  gint64 position;
  guint64 n_pushed,
      next;          /* numbers of batches: that is given to workers next, that is expected next */
  guint n_waiting;   /* batches that workers were asked for, and that were not taken */
  guint n_discarded; /* of an iterable data set: batches that were handed out before */
  gboolean *is_over; /* of an iterable data set: which workers have no more */
  GTorchSize *kept;  /* the indices of a batch whose making was cancelled; may be NULL */
  GError *order_error; /* the sampler failed: reported after the batches before it */
  gboolean is_drained; /* the sampler has no more indices */
  gboolean is_local_begun;
  gint is_closed;        /* atomic */
  gint is_pending;       /* atomic: an asynchronous call waits */
  GMainContext *context; /* of that call; NULL: none has been */
  GMutex lock;
  GThread *owner;  /* protected by the lock: the thread that is in a call; NULL: none */
  gint must_close; /* atomic: another thread has closed the iterator meanwhile */
  gint is_closing; /* atomic: so it has during an asynchronous call, whose context will close it */
  GSource *wake;   /* wakes who waits for workers; not owned */
  GTorchMaking *making; /* may be NULL */
  GTask *waiter;        /* the call that waits for it; not owned, may be NULL */
};

/* Gives the workers as much work as they may have. */
void gtorch_data_loader_iter_refill (GTorchDataLoaderIter *self);
/* The number of the batch that is expected next. */
guint64 gtorch_data_loader_iter_find_number (GTorchDataLoaderIter *self);
/* Notes that a batch has come. FALSE if it is not one to hand out. */
gboolean gtorch_data_loader_iter_note_batch (GTorchDataLoaderIter *self, GTorchBatch *batch);
void gtorch_data_loader_iter_count (GTorchDataLoaderIter *self, guint64 number);
/* The end: returns the error of the sampler, if there is one. */
void gtorch_data_loader_iter_finish (GTorchDataLoaderIter *self, GError **error);
/* Fails while another call waits. What was begun is ended by the other one, which closes the iterator if
 * another thread has asked for it. */
gboolean gtorch_data_loader_iter_begin_next (GTorchDataLoaderIter *self, GError **error);
void gtorch_data_loader_iter_end_next (GTorchDataLoaderIter *self);
/* Whether the program gets no further batch. */
gboolean gtorch_data_loader_iter_is_over (GTorchDataLoaderIter *self);
/* What profiles call a wait for a batch: PyTorch's name, by which programs for its traces find what loading
 * takes. */
const gchar *gtorch_data_loader_iter_wait_name (GTorchDataLoaderIter *self);

/* Without workers: the indices of the next batch, FALSE at the end; and the batch, NULL at the end. Indices
 * are NULL for an iterable data set. */
gboolean gtorch_data_loader_iter_prepare_local (GTorchDataLoaderIter *self, GTorchSize **indices);
GTorchBatch *gtorch_data_loader_iter_make_local (GTorchDataLoaderIter *self, GTorchSize *indices,
                                                 GCancellable *cancellable);
void gtorch_data_loader_iter_end_fetcher (GTorchDataLoaderIter *self);
/* Whether its caller did not want the batch any longer before it was made. */
gboolean gtorch_batch_was_given_up (const GTorchBatch *batch);

void gtorch_making_unref (GTorchMaking *making);
/* Takes what the thread has made, which is done. */
GTorchBatch *gtorch_data_loader_iter_take_made (GTorchDataLoaderIter *self, GTorchSize **indices);

G_END_DECLS
