/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/data/gtorch-data-loader-iter.h>
#include <gtorch/graph/gtorch-cuda-graph.h>
#include <gtorch/optim/gtorch-grad-scaler.h>
#include <gtorch/stream/gtorch-event.h>
#include <gtorch/train/gtorch-progress-bar.h>
#include <gtorch/train/gtorch-trainer-parts.h>

G_BEGIN_DECLS

/* What programs set. A run has a copy, so that a change while it goes on counts for the next one only. */
typedef struct
{
  GTorchDataLoader *validation_loader;
  GTorchGradScaler *scaler;
  GTorchProgressBar *progress_bar;
  GFile *checkpoint_folder;
  gchar *monitor;
  gint64 n_epochs, max_steps, accumulate_steps, evaluate_every, log_every, patience,
      checkpoint_every, keep_checkpoints, max_ahead;
  gdouble clip_norm, min_delta;
  gint autocast, monitor_mode;
  gboolean graph, save_best, threaded;
} GTorchTrainerSettings;

/* What a checkpoint has beside the states of the parts. */
typedef struct
{
  gint64 epoch, step, n_evaluations, n_bad;
  gdouble best, loss, epoch_sum;
  gint64 epoch_count;
  gboolean is_stopped_early;
} GTorchTrainerCounters;

typedef struct
{
  gchar *name;
  GTorchMetric *metric;
} GTorchTrainerMetric;

typedef struct
{
  GTorchLRScheduler *scheduler;
  GTorchTrainerInterval interval;
} GTorchTrainerSchedule;

typedef struct
{
  GCallback func; /* of the type that belongs to its use */
  gpointer data;
  GDestroyNotify destroy;
} GTorchTrainerFunc;

typedef struct _GTorchTrainerRun GTorchTrainerRun;

typedef struct
{
  GTorchModule *module, *loss;
  GTorchDataLoader *loader;
  GTorchOptimizer *optimizer;
  GTorchTrainerSettings settings;
  GPtrArray *schedules, *metrics, *logs;
  GTorchTrainerFunc training, validation, save, load;
  /* The state of the loader where the next run goes on in the middle of an epoch; NULL: at its beginning. */
  GVariant *loader_state;

  GMutex lock; /* of what follows: other threads read it while a run goes on */
  GTorchTrainerCounters counters;
  gdouble throughput, progress;
  GVariant *results;     /* of the last evaluation that the program was told of: a(sd) */
  GTorchTrainerRun *run; /* NULL: none */
  /* A run that has ended while its last signals are emitted, whose handlers may yet fail it; NULL: none. */
  GTorchTrainerRun *telling;
  const gchar *busy; /* the asynchronous function that has not ended; NULL: none */
} GTorchTrainerPrivate;

GTorchTrainerPrivate *gtorch_trainer_get_private (GTorchTrainer *self);
void gtorch_trainer_settings_copy (GTorchTrainerSettings *to, const GTorchTrainerSettings *from);
void gtorch_trainer_settings_clear (GTorchTrainerSettings *settings);

/* FALSE with an error while a run, or an asynchronous function, goes on; the second with the lock held. */
gboolean gtorch_trainer_check_idle (GTorchTrainer *self, const gchar *op, GError **error);
gboolean gtorch_trainer_is_idle (GTorchTrainer *self, const gchar *op, GError **error);

/* Told of each run before it begins, if it is not NULL: export/ sets it when the library is loaded. */
extern void (*gtorch_trainer_begins) (GTorchTrainer *self);

/* --- a run --- */

/* A point in the stream that the run has not waited for yet. */
typedef struct
{
  GTorchEvent *event;
  GTorchTensor *loss; /* on the CPU; NULL: of no step */
  gint64 step, epoch, n_samples;
  gdouble learning_rate;
} GTorchTrainerPoint;

typedef enum
{
  GTORCH_TRAINER_PHASE_EPOCH,
  GTORCH_TRAINER_PHASE_BATCH,
  GTORCH_TRAINER_PHASE_EPOCH_END,
  GTORCH_TRAINER_PHASE_BETWEEN, /* evaluations and checkpoints that are due */
  GTORCH_TRAINER_PHASE_EVALUATION,
  GTORCH_TRAINER_PHASE_EVALUATION_END,
  GTORCH_TRAINER_PHASE_CHECKPOINT,
  GTORCH_TRAINER_PHASE_END,
  GTORCH_TRAINER_PHASE_DONE,
} GTorchTrainerPhase;

typedef struct _GTorchTrainerDelivery GTorchTrainerDelivery;
typedef struct _GTorchTrainerGraph GTorchTrainerGraph;

struct _GTorchTrainerRun
{
  GTorchTrainer *trainer; /* whoever drives the run has a reference */
  GTorchTrainerPrivate *priv;
  GTorchTrainerSettings settings;
  GCancellable *cancellable;
  gint is_stopped; /* accessed atomically */
  /* Under the lock of the trainer: */
  gboolean is_failed; /* by the program, or otherwise */
  GError *failure;    /* the program's, until the run ends with it; NULL: none */
  GTorchDevice *device;
  GTorchStream *stream; /* NULL: the thread's own */
  GTorchTrainerDelivery *delivery;
  GTorchTrainerGraph *graph;

  GTorchTrainerPhase phase, next_phase; /* the second: behind BETWEEN */
  gboolean wants_evaluation, wants_checkpoint, must_drain;
  gboolean is_resumed; /* in the middle of the epoch */
  GTorchDataLoaderIter *iter, *validation_iter;
  GQueue points;

  /* of the step that is being accumulated */
  gint64 n_accumulated, n_samples;
  GTorchTensor *loss;

  gint64 step, epoch; /* those of the counters, which other threads read */
  gint64 epoch_steps; /* of an epoch; 0: not known */
  gint64 epoch_base;  /* the step at the beginning of the epoch */
  gint64 saved_step;  /* of the last checkpoint; -1: none in this run */
  gint64 rate_time, rate_samples;

  /* of an evaluation */
  GArray *modes; /* of the modules, in training or not */
  GTorchMetric *validation_loss;
  gint64 n_validated; /* batches */
};

GTorchTrainerRun *gtorch_trainer_run_new (GTorchTrainer *self, GCancellable *cancellable,
                                          gboolean is_async, gboolean is_threaded, GError **error);
void gtorch_trainer_run_free (GTorchTrainerRun *run);
/* Does a part of the work; run->phase tells how far it is. */
gboolean gtorch_trainer_run_advance (GTorchTrainerRun *run, GError **error);
/* The point that must be reached before the next part; NULL: none. */
GTorchTrainerPoint *gtorch_trainer_run_awaited (GTorchTrainerRun *run);
/* How many signals may wait for their handlers before the next part. */
gint64 gtorch_trainer_run_ahead (GTorchTrainerRun *run);
/* Takes what was computed before the points that are reached. */
gboolean gtorch_trainer_run_harvest (GTorchTrainerRun *run, GError **error);
/* Works until the end in this thread. */
void gtorch_trainer_run_to_end (GTorchTrainerRun *run, GError **error);
/* Fails: the loader, or the validation_loader, has no batches. */
gboolean gtorch_trainer_fail_empty (const gchar *loader, GError **error);
/* Sets the error that the program has failed the run with, if there is one that was not taken. */
gboolean gtorch_trainer_run_take_failure (GTorchTrainerRun *run, GError **error);
/* Behind its last signal: the program cannot fail it any longer. */
gboolean gtorch_trainer_run_end_telling (GTorchTrainerRun *run, GError **error);
/* Ends the run, after an error too: what comes next goes on from there. */
void gtorch_trainer_run_end (GTorchTrainerRun *run, GError **error);

/* One batch: forward, loss, backward; then, where the step is complete, the optimizer's. */
gboolean gtorch_trainer_run_batch (GTorchTrainerRun *run, GTorchSample *batch, GError **error);
gboolean gtorch_trainer_run_step (GTorchTrainerRun *run, GError **error);
gboolean gtorch_trainer_run_add_point (GTorchTrainerRun *run, GTorchTensor *loss, GError **error);
GTorchSample *gtorch_trainer_run_move (GTorchTrainerRun *run, GTorchSample *batch, GError **error);
gint64 gtorch_trainer_count_samples (GTorchSample *batch);
void gtorch_trainer_graph_free (GTorchTrainerGraph *graph);

gboolean gtorch_trainer_run_begin_evaluation (GTorchTrainerRun *run, GError **error);
gboolean gtorch_trainer_run_evaluate (GTorchTrainerRun *run, GTorchSample *batch, GError **error);
gboolean gtorch_trainer_run_end_evaluation (GTorchTrainerRun *run, GError **error);
void gtorch_trainer_run_leave_evaluation (GTorchTrainerRun *run);
/* Fails if processes have parts of the module: the checkpoint of one would lack the others. */
gboolean gtorch_trainer_check_whole (GTorchTrainer *self, const gchar *op, GError **error);
gboolean gtorch_trainer_run_checkpoint (GTorchTrainerRun *run, GError **error);
/* Makes the folder, too. */
gboolean gtorch_trainer_write_checkpoint (GTorchTrainerRun *run, GFile *file, GError **error);
gboolean gtorch_trainer_write_logs (GTorchTrainerRun *run, gint64 step, const gchar *const *names,
                                    const gdouble *values, gsize n, GError **error);

/* Another thread, or the main context of the program, does the work of the run, which it takes. */
void gtorch_trainer_drive_thread (GTorchTrainerRun *run, GTask *task);
void gtorch_trainer_drive_context (GTorchTrainerRun *run, GTask *task);

/* --- signals --- */

typedef enum
{
  GTORCH_TRAINER_STEP_DONE,
  GTORCH_TRAINER_EPOCH_DONE,
  GTORCH_TRAINER_EVALUATED,
  GTORCH_TRAINER_FAILED,
  GTORCH_TRAINER_N_SIGNALS
} GTorchTrainerSignal;

void gtorch_trainer_emit (GTorchTrainer *self, GTorchTrainerSignal signal, gint64 number,
                          gdouble value, const GError *failure);
void gtorch_trainer_publish (GTorchTrainer *self, GVariant *results);
gboolean gtorch_trainer_is_heard (GTorchTrainer *self, GTorchTrainerSignal signal);

/* context NULL: at once, in this thread. */
GTorchTrainerDelivery *gtorch_trainer_delivery_new (GTorchTrainer *trainer, GMainContext *context);
void gtorch_trainer_delivery_add (GTorchTrainerDelivery *self, GTorchTrainerSignal signal,
                                  gint64 number, gdouble value, const GError *failure);
/* The results of an evaluation are those that programs get, from when they are told on. Takes a floating
 * reference. */
void gtorch_trainer_delivery_add_results (GTorchTrainerDelivery *self, gint64 step, gdouble loss,
                                          GVariant *results);
/* Sleeps while more than so many signals wait for the main loop or for their handlers, until the run is
 * stopped or cancelled. */
void gtorch_trainer_delivery_wait (GTorchTrainerDelivery *self, gint64 n_ahead,
                                   GCancellable *cancellable, gint *is_stopped);
/* In the context, where the run works in it: emits what waits. */
void gtorch_trainer_delivery_serve (GTorchTrainerDelivery *self);
void gtorch_trainer_delivery_wake (GTorchTrainerDelivery *self);
/* In the context: emits everything that waits. */
void gtorch_trainer_delivery_flush (GTorchTrainerDelivery *self);
/* In the context, when nothing is emitted any longer. */
void gtorch_trainer_delivery_end (GTorchTrainerDelivery *self);
void gtorch_trainer_delivery_unref (GTorchTrainerDelivery *self);

G_END_DECLS
