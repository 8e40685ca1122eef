/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/data/gtorch-data-loader-iter.h>
#include <gtorch/data/gtorch-fetcher-private.h>
#include <gtorch/data/gtorch-sampler-private.h>

G_BEGIN_DECLS

/* --- getting batches --- */

/* A function of the program; counts its references, since a worker may outlive its loader. */
typedef struct
{
  GTorchWorkerInitFunc init; /* one of both */
  GTorchCollateFunc collate;
  gpointer user_data;
  GDestroyNotify destroy;
} GTorchLoaderFunc;

GTorchLoaderFunc *gtorch_loader_func_new (GTorchWorkerInitFunc init, GTorchCollateFunc collate,
                                          gpointer user_data, GDestroyNotify destroy);
void gtorch_loader_func_unref (gpointer self);

/* How batches are made: fixed when workers are started. */
typedef struct
{
  GTorchFetcher *fetcher;
  GTorchLoaderFunc *init; /* may be NULL */
  GTorchDevice *device;   /* where batches are copied; NULL: nowhere */
  GTorchStream *stream;   /* of the copies; NULL with the CPU */
  gint64 n_samples;       /* of a batch of an iterable data set; 0: samples are not collated */
  gboolean drop_last;
  gboolean pin;
} GTorchBatchPlan;

void gtorch_batch_plan_clear (GTorchBatchPlan *self);

typedef struct
{
  guint64 number; /* of the batch in its pass */
  guint worker;
  gboolean is_end; /* no batch: the source of this worker is at its end */
  GTorchSample *sample;
  GTorchDevice *device; /* not owned: devices live as long as the process */
  GTorchEvent *copied;  /* when the sample is on the device; NULL: at once */
  GError *error;
} GTorchBatch;

void gtorch_batch_free (GTorchBatch *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchBatch, gtorch_batch_free)
/* Makes a batch: of the indices, or for NULL of the worker's source. */
GTorchBatch *gtorch_batch_make (const GTorchBatchPlan *plan, guint worker, GTorchSize *indices,
                                GCancellable *cancellable);
/* Takes the batch: returns its sample, for which the caller's stream waits. */
GTorchSample *gtorch_batch_take (GTorchBatch *self, GError **error);

/* --- workers --- */

#define GTORCH_ANY_WORKER G_MAXUINT

typedef struct _GTorchWorkers GTorchWorkers;
typedef struct _GTorchPass GTorchPass;

/* Starts n threads. Takes what the plan refers to, also on failure. */
GTorchWorkers *gtorch_workers_new (guint n, GTorchBatchPlan *plan, GError **error);
const GTorchBatchPlan *gtorch_workers_get_plan (GTorchWorkers *self);
/* Whether a pass is being read. */
gboolean gtorch_workers_are_busy (GTorchWorkers *self);
/* Ends the threads, and waits for them for a limited time; drops the reference. */
void gtorch_workers_close (GTorchWorkers *self);

GTorchPass *gtorch_pass_new (GTorchWorkers *workers, guint64 seed, gboolean in_order);
/* Gives the workers the work of one batch. worker: who does it. */
void gtorch_pass_push (GTorchPass *self, guint64 number, guint worker, GTorchSize *indices);
/* Returns the batch with this number, or without an order any, if it is there; otherwise NULL, and `wake`
 * (may be NULL) gets the ready time 0 when there is something new. */
GTorchBatch *gtorch_pass_poll (GTorchPass *self, guint64 number, GSource *wake);
/* No source is woken any longer. */
void gtorch_pass_forget (GTorchPass *self);
/* Waits for a batch; seconds: for how long, 0 without a limit. */
GTorchBatch *gtorch_pass_wait (GTorchPass *self, guint64 number, gdouble seconds,
                               GCancellable *cancellable, GError **error);
/* Cancels the work, and waits for a limited time until no worker is at it; drops the reference. */
/* Ends a wait in another thread without a batch and without an error, now or later. */
void gtorch_pass_interrupt (GTorchPass *self);
void gtorch_pass_close (GTorchPass *self);

/* --- the loader --- */

/* What a pass begins with. */
typedef struct
{
  guint64 serial; /* of the passes of the loader */
  guint64 epoch;
  guint64 seed;
  GTorchIndexSource *source; /* NULL: the data set is iterable */
  gint64 length;             /* batches; -1: unknown */
  guint64 n_skipped;         /* batches at the beginning that were handed out before */
  GArray *skipped;           /* numbers of further ones; may be NULL */
  gboolean is_dataset_set;   /* the data set itself leaves out what was handed out before */
  GTorchBatchPlan plan;
  GTorchWorkers *workers; /* NULL: without workers, or those of the pass alone */
} GTorchPassStart;

struct _GTorchDataLoader
{
  GObject parent_instance;
  GTorchDataset *dataset;
  GTorchSampler *sampler, *batch_sampler;
  GTorchFetcher *fetcher;
  GTorchGenerator *generator;
  GTorchDevice *device;
  gint64 batch_size;
  gint num_workers, prefetch_factor;
  gdouble timeout;
  gboolean shuffle, drop_last, pin_memory, persistent_workers, in_order;

  GTorchLoaderFunc *collate, *init; /* may be NULL */
  GTorchFetcher *made_fetcher;      /* if none was given */
  GTorchStream *stream;             /* of copies to the device */
  GTorchWorkers *workers;           /* persistent ones */

  /* The last pass, for the state. */
  guint64 serial, epoch, seed;
  gboolean is_done;
  gint64 position, length; /* position: batches that were handed out */
  guint64 n_first;         /* how many of them came without a gap */
  GArray *later;           /* numbers of the others, ascending */
  GVariant *pass_state;    /* from the source of indices; may be NULL */
  GVariant *resume;        /* set by the program for the next pass */
  gboolean is_dataset_set; /* the data set goes on from a state in the next pass */
  gint n_making;           /* batches that threads make without workers, or that nobody has taken */
};

void gtorch_pass_start_clear (GTorchPassStart *self);
/* Fills start, which is to be cleared in any case. */
gboolean gtorch_data_loader_begin (GTorchDataLoader *self, GTorchPassStart *start, GError **error);
/* Counts a batch that the pass with this serial handed out. */
void gtorch_data_loader_count (GTorchDataLoader *self, guint64 serial, guint64 number);
void gtorch_data_loader_notify (GTorchDataLoader *self, gboolean is_new_epoch);
void gtorch_data_loader_finish_pass (GTorchDataLoader *self, guint64 serial);
/* The sampler of batches, or of samples without batches; NULL without an error if the data set is
 * iterable. */
GTorchSampler *gtorch_data_loader_make_sampler (GTorchDataLoader *self, GError **error);
/* Takes what start has. */
GTorchDataLoaderIter *gtorch_data_loader_iter_new (GTorchDataLoader *loader, GTorchPassStart *start,
                                                   GError **error);

G_END_DECLS
