/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A run of a trainer, as parts that follow one another: batches, the end of an epoch, an evaluation, a
 * checkpoint. Whoever drives the run (gtorch-trainer-drive.c) asks for one part after the other, so that the
 * same code works in a thread and in a main loop.
 *
 * The host is at most AHEAD steps before the device. Behind each step there is a point in the stream; what
 * the step has computed, its loss, is read when the point is reached, so that nothing waits for it. Before
 * what needs everything that was computed (the mean loss of an epoch, the results of an evaluation, a
 * checkpoint), all points are waited for. Where somebody hears of each step, the host is ahead of them by
 * "max-ahead" steps, and the device with it: a handler that ends the run ends it with the step that it was
 * told of. */

#include "config.h"

#include "train/gtorch-trainer-private.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>

#include "data/gtorch-batch-sampler.h"
#include "device/gtorch-device-private.h"
#include "elements/gtorch-tensor-bytes.h"
#include "nn/gtorch-module-members.h"

#define AHEAD         2
#define RATE_INTERVAL (G_TIME_SPAN_SECOND / 2)

/* --- beginning and end --- */

static GTorchDevice *
find_device (GTorchModule *module)
{
  g_autoptr (GListModel) parameters = gtorch_module_get_parameters (module, TRUE);
  g_autoptr (GTorchTensor) first = g_list_model_get_item (parameters, 0);

  return first != NULL ? gtorch_tensor_get_device (first) : gtorch_device_cpu ();
}

/* A thread computes on the CPU by itself. Elsewhere there is a stream of the run's own, which begins behind
 * what the program has enqueued. */
static gboolean
make_stream (GTorchTrainerRun *run, gboolean is_async, gboolean is_threaded, GError **error)
{
  GTorchStream *current = gtorch_stream_get_current (run->device);

  if (gtorch_device_is_host (run->device) && !run->settings.graph && (!is_async || is_threaded))
    return TRUE;
  run->stream = gtorch_stream_new (run->device, 0, error);
  return run->stream != NULL
         && (current == NULL || gtorch_stream_wait_stream (run->stream, current, error));
}

gboolean
gtorch_trainer_fail_empty (const gchar *loader, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("trainer: the %s has no batches"),
               loader);
  return FALSE;
}

/* A loader of unknown length is found to be empty at the end of its epoch. */
static gboolean
check_length (GTorchDataLoader *loader, const gchar *name, GError **error)
{
  return loader == NULL || gtorch_data_loader_get_length (loader, NULL) != 0
         || gtorch_trainer_fail_empty (name, error);
}

static void
count_steps (GTorchTrainerRun *run)
{
  const gint64 length = gtorch_data_loader_get_length (run->priv->loader, NULL),
               n = run->settings.accumulate_steps;

  run->epoch_steps = length > 0 ? (length + n - 1) / n : 0;
}

void (*gtorch_trainer_begins) (GTorchTrainer *self);

GTorchTrainerRun *
gtorch_trainer_run_new (GTorchTrainer *self, GCancellable *cancellable, gboolean is_async,
                        gboolean is_threaded, GError **error)
{
  GTorchTrainerPrivate *priv = gtorch_trainer_get_private (self);
  g_autoptr (GMainContext) context = is_async ? g_main_context_ref_thread_default () : NULL;
  GTorchTrainerRun *run;
  gboolean is_free;

  if (!gtorch_trainer_check (self, error) || !check_length (priv->loader, "loader", error)
      || !check_length (priv->settings.validation_loader, "validation_loader", error)
      || g_cancellable_set_error_if_cancelled (cancellable, error))
    return NULL;
  if (gtorch_trainer_begins != NULL)
    gtorch_trainer_begins (self);
  run = g_new0 (GTorchTrainerRun, 1);
  run->trainer = g_object_ref (self);
  run->priv = priv;
  run->cancellable = cancellable != NULL ? g_object_ref (cancellable) : NULL;
  run->delivery = gtorch_trainer_delivery_new (self, context);
  g_queue_init (&run->points);
  run->saved_step = -1;
  gtorch_trainer_settings_copy (&run->settings, &priv->settings);
  run->device = find_device (priv->module);
  if (!make_stream (run, is_async, is_threaded, error))
    {
      gtorch_trainer_run_free (run);
      return NULL;
    }
  g_mutex_lock (&priv->lock);
  is_free = gtorch_trainer_is_idle (self, "trainer_run", error);
  if (is_free)
    {
      priv->run = run;
      run->step = priv->counters.step;
      run->epoch = priv->counters.epoch;
      priv->counters.is_stopped_early = FALSE;
      priv->throughput = 0;
    }
  g_mutex_unlock (&priv->lock);
  if (!is_free)
    {
      gtorch_trainer_run_free (run);
      return NULL;
    }
  /* As a loop begins with train(). Where the module itself is in training, those inside it that a program has
   * set to evaluation, as frozen norms, stay there. */
  if (!gtorch_module_get_training (priv->module))
    gtorch_module_train (priv->module, TRUE);
  if (run->settings.graph && !gtorch_optimizer_get_capturable (priv->optimizer))
    gtorch_optimizer_set_capturable (priv->optimizer, TRUE);
  if (run->settings.graph && run->settings.scaler != NULL)
    g_object_set (run->settings.scaler, "capturable", TRUE, NULL);
  count_steps (run);
  return run;
}

static void
point_free (gpointer data)
{
  GTorchTrainerPoint *point = data;

  g_object_unref (point->event);
  g_clear_object (&point->loss);
  g_free (point);
}

void
gtorch_trainer_run_free (GTorchTrainerRun *run)
{
  gtorch_trainer_run_end_telling (run, NULL);
  g_queue_clear_full (&run->points, point_free);
  g_clear_object (&run->iter);
  g_clear_object (&run->validation_iter);
  g_clear_object (&run->loss);
  g_clear_object (&run->validation_loss);
  g_clear_pointer (&run->modes, g_array_unref);
  g_clear_pointer (&run->graph, gtorch_trainer_graph_free);
  g_clear_object (&run->stream);
  g_clear_object (&run->cancellable);
  gtorch_trainer_settings_clear (&run->settings);
  gtorch_trainer_delivery_end (run->delivery);
  gtorch_trainer_delivery_unref (run->delivery);
  g_object_unref (run->trainer);
  g_free (run);
}

void
gtorch_trainer_run_end (GTorchTrainerRun *run, GError **error)
{
  GTorchTrainerPrivate *priv = run->priv;
  GError *local = NULL;

  gtorch_trainer_run_leave_evaluation (run);
  if (run->validation_iter != NULL)
    gtorch_data_loader_iter_close (run->validation_iter);
  if (run->iter != NULL)
    {
      /* The next run goes on behind the last batch. */
      g_clear_pointer (&priv->loader_state, g_variant_unref);
      priv->loader_state = gtorch_data_loader_get_state (priv->loader, &local);
      if (*error == NULL)
        *error = g_steal_pointer (&local);
      g_clear_error (&local);
      gtorch_data_loader_iter_close (run->iter);
    }
  if (run->settings.progress_bar != NULL)
    gtorch_progress_bar_end (run->settings.progress_bar);
  for (guint i = 0; i < priv->logs->len; i++)
    gtorch_log_flush (priv->logs->pdata[i], NULL);
  g_mutex_lock (&priv->lock);
  priv->run = NULL;
  priv->telling = run;
  g_mutex_unlock (&priv->lock);
}

/* --- what the program fails it with --- */

gboolean
gtorch_trainer_run_take_failure (GTorchTrainerRun *run, GError **error)
{
  GError *failure;

  g_mutex_lock (&run->priv->lock);
  failure = g_steal_pointer (&run->failure);
  g_mutex_unlock (&run->priv->lock);
  if (failure == NULL)
    return FALSE;
  g_propagate_error (error, failure);
  return TRUE;
}

gboolean
gtorch_trainer_run_end_telling (GTorchTrainerRun *run, GError **error)
{
  g_mutex_lock (&run->priv->lock);
  if (run->priv->telling == run)
    run->priv->telling = NULL;
  g_mutex_unlock (&run->priv->lock);
  return gtorch_trainer_run_take_failure (run, error);
}

/**
 * gtorch_trainer_fail:
 * @self: a trainer
 * @reason: what went wrong
 *
 * Ends a run with an error of the program's, which is then that of [method@Trainer.run] or
 * [method@Trainer.run_finish], and of [signal@Trainer::failed]. It is for handlers of signals, which
 * have no other way to tell of an error.
 *
 * The run ends behind its present step, without what is due at its end: no evaluation, and no
 * checkpoint. The first error of a run counts. Callable from any thread, also while the last signals
 * of a run are emitted.
 *
 * ```c
 * if (!write_loss (step, loss, &error))
 *   gtorch_trainer_fail (trainer, error);
 * ```
 *
 * Returns: %TRUE if a run ends with the error; %FALSE if no run goes on, or it ends with another one
 *
 * Since: 0.1
 */
gboolean
gtorch_trainer_fail (GTorchTrainer *self, const GError *reason)
{
  GTorchTrainerPrivate *priv;
  GTorchTrainerRun *run;
  gboolean is_first;

  g_return_val_if_fail (GTORCH_IS_TRAINER (self), FALSE);
  g_return_val_if_fail (reason != NULL, FALSE);
  priv = gtorch_trainer_get_private (self);
  g_mutex_lock (&priv->lock);
  run = priv->run != NULL ? priv->run : priv->telling;
  is_first = run != NULL && !run->is_failed;
  if (is_first)
    {
      run->is_failed = TRUE;
      run->failure = g_error_copy (reason);
      g_atomic_int_set (&run->is_stopped, TRUE);
      gtorch_trainer_delivery_wake (run->delivery);
    }
  g_mutex_unlock (&priv->lock);
  return is_first;
}

/* --- what the device has done --- */

GTorchTrainerPoint *
gtorch_trainer_run_awaited (GTorchTrainerRun *run)
{
  gint64 limit = AHEAD;

  if (run->must_drain)
    limit = 1;
  else if (run->settings.max_ahead + 1 < AHEAD
           && gtorch_trainer_is_heard (run->trainer, GTORCH_TRAINER_STEP_DONE))
    limit = run->settings.max_ahead + 1;
  return run->points.length < limit ? NULL : g_queue_peek_head (&run->points);
}

gint64
gtorch_trainer_run_ahead (GTorchTrainerRun *run)
{
  return MAX (run->settings.max_ahead - (gint64) run->points.length, 0);
}

static void
measure_rate (GTorchTrainerRun *run, const GTorchTrainerPoint *point)
{
  const gint64 now = g_get_monotonic_time ();

  if (run->rate_time == 0)
    {
      run->rate_time = now;
      return;
    }
  run->rate_samples += point->n_samples;
  if (now - run->rate_time < RATE_INTERVAL && run->priv->throughput > 0)
    return;
  if (now > run->rate_time)
    run->priv->throughput = run->rate_samples * (gdouble) G_USEC_PER_SEC / (now - run->rate_time);
  if (now - run->rate_time >= RATE_INTERVAL)
    {
      run->rate_time = now;
      run->rate_samples = 0;
    }
}

static gdouble
find_progress (const GTorchTrainerRun *run, gint64 step)
{
  const gint64 max = run->settings.max_steps;
  gint64 total = run->epoch_steps * run->settings.n_epochs;

  if (max > 0 && (total == 0 || max < total))
    total = max;
  return total > 0 ? MIN ((gdouble) step / total, 1) : 0;
}

static gboolean
log_step (GTorchTrainerRun *run, const GTorchTrainerPoint *point, gdouble loss, gdouble rate,
          GError **error)
{
  const gchar *const names[] = { "epoch", "train/loss", "train/learning_rate",
                                 "train/samples_per_second", NULL };
  const gdouble values[] = { point->epoch, loss, point->learning_rate, rate };

  return point->step % run->settings.log_every != 0
         || gtorch_trainer_write_logs (run, point->step, names, values, G_N_ELEMENTS (values),
                                       error);
}

static gboolean
take_step (GTorchTrainerRun *run, const GTorchTrainerPoint *point, GError **error)
{
  GTorchTrainerPrivate *priv = run->priv;
  GError *local = NULL;
  const gdouble loss = gtorch_tensor_item_double (point->loss, &local);
  gdouble rate;

  if (local != NULL)
    {
      g_propagate_error (error, local);
      return FALSE;
    }
  g_mutex_lock (&priv->lock);
  priv->counters.loss = loss;
  priv->counters.step = point->step;
  priv->counters.epoch_sum += loss;
  priv->counters.epoch_count++;
  priv->progress = find_progress (run, point->step);
  measure_rate (run, point);
  rate = priv->throughput;
  g_mutex_unlock (&priv->lock);
  gtorch_trainer_delivery_add (run->delivery, GTORCH_TRAINER_STEP_DONE, point->step, loss, NULL);
  if (run->settings.progress_bar != NULL)
    {
      g_autofree gchar *text = g_strdup_printf ("loss %.4g", loss);

      gtorch_progress_bar_update (run->settings.progress_bar, point->step - run->epoch_base, text);
    }
  return log_step (run, point, loss, rate, error);
}

gboolean
gtorch_trainer_run_harvest (GTorchTrainerRun *run, GError **error)
{
  GTorchTrainerPoint *point;
  gboolean result = TRUE;

  while (result && (point = g_queue_peek_head (&run->points)) != NULL
         && gtorch_event_query (point->event))
    {
      g_queue_pop_head (&run->points);
      result = gtorch_event_synchronize (point->event, NULL, error) /* tells what went wrong */
               && (point->loss == NULL || take_step (run, point, error));
      point_free (point);
    }
  if (run->points.length == 0)
    run->must_drain = FALSE;
  return result;
}

gboolean
gtorch_trainer_write_logs (GTorchTrainerRun *run, gint64 step, const gchar *const *names,
                           const gdouble *values, gsize n, GError **error)
{
  GPtrArray *logs = run->priv->logs;

  for (guint i = 0; i < logs->len; i++)
    if (!gtorch_log_write (logs->pdata[i], step, names, values, n, error))
      return FALSE;
  return TRUE;
}

/* --- parts --- */

/* What comes next needs all that was computed. */
static void
go_drained (GTorchTrainerRun *run, GTorchTrainerPhase phase)
{
  run->phase = phase;
  run->must_drain = TRUE;
}

static gboolean
is_enough (GTorchTrainerRun *run)
{
  return g_atomic_int_get (&run->is_stopped) || run->priv->counters.is_stopped_early
         || run->epoch >= run->settings.n_epochs
         || (run->settings.max_steps > 0 && run->step >= run->settings.max_steps);
}

/* Tells a sampler that divides the samples among processes which epoch begins, so that each has an order of
 * its own. */
static void
tell_epoch (GTorchTrainerRun *run)
{
  g_autoptr (GTorchSampler) sampler = NULL;

  g_object_get (run->priv->loader, "sampler", &sampler, NULL);
  if (sampler != NULL && GTORCH_IS_DISTRIBUTED_SAMPLER (sampler))
    gtorch_distributed_sampler_set_epoch (GTORCH_DISTRIBUTED_SAMPLER (sampler), run->epoch);
}

static gboolean
begin_epoch (GTorchTrainerRun *run, GError **error)
{
  GTorchTrainerPrivate *priv = run->priv;
  g_autoptr (GVariant) state = g_steal_pointer (&priv->loader_state);

  if (is_enough (run))
    {
      priv->loader_state = g_steal_pointer (&state);
      go_drained (run, GTORCH_TRAINER_PHASE_END);
      return TRUE;
    }
  tell_epoch (run);
  if (state != NULL && !gtorch_data_loader_set_state (priv->loader, state, error))
    return FALSE;
  run->is_resumed = state != NULL;
  run->iter = gtorch_data_loader_iterate (priv->loader, error);
  if (run->iter == NULL)
    return FALSE;
  run->epoch_base =
      run->step - gtorch_data_loader_iter_get_position (run->iter) / run->settings.accumulate_steps;
  if (run->settings.progress_bar != NULL)
    {
      g_autofree gchar *title = g_strdup_printf (_ ("epoch %" PRId64 "/%" PRId64), run->epoch + 1,
                                                 run->settings.n_epochs);

      gtorch_progress_bar_begin (run->settings.progress_bar, title, run->epoch_steps);
    }
  run->phase = GTORCH_TRAINER_PHASE_BATCH;
  return TRUE;
}

static gboolean
is_due (gint64 step, gint64 every)
{
  return every > 0 && step % every == 0;
}

static gboolean
end_step (GTorchTrainerRun *run, GTorchTrainerPhase next, GError **error)
{
  const GTorchTrainerSettings *settings = &run->settings;

  if (!gtorch_trainer_run_step (run, error))
    return FALSE;
  if (settings->validation_loader != NULL && is_due (run->step, settings->evaluate_every))
    run->wants_evaluation = TRUE;
  if (settings->checkpoint_folder != NULL && is_due (run->step, settings->checkpoint_every))
    run->wants_checkpoint = TRUE;
  run->next_phase = next;
  if (settings->max_steps > 0 && run->step >= settings->max_steps)
    run->next_phase = GTORCH_TRAINER_PHASE_END;
  if (run->wants_evaluation || run->wants_checkpoint || run->next_phase != next)
    run->phase = GTORCH_TRAINER_PHASE_BETWEEN;
  else
    run->phase = next;
  return TRUE;
}

static GTorchSample *
next_batch (GTorchDataLoaderIter *iter, GTorchTrainerRun *run, gboolean *is_end, GError **error)
{
  GError *local = NULL;
  GTorchSample *batch = gtorch_data_loader_iter_next (iter, run->cancellable, &local);

  *is_end = batch == NULL && local == NULL;
  if (local != NULL)
    g_propagate_error (error, local);
  return batch;
}

static gboolean
train_batch (GTorchTrainerRun *run, GError **error)
{
  g_autoptr (GTorchSample) batch = NULL;
  gboolean is_end;

  if (run->n_accumulated == 0 && is_enough (run))
    {
      go_drained (run, GTORCH_TRAINER_PHASE_END);
      return TRUE;
    }
  batch = next_batch (run->iter, run, &is_end, error);
  if (is_end)
    {
      g_clear_object (&run->iter);
      run->must_drain = TRUE;
      run->phase = GTORCH_TRAINER_PHASE_EPOCH_END;
      if (run->n_accumulated > 0 && !end_step (run, GTORCH_TRAINER_PHASE_EPOCH_END, error))
        return FALSE;
      /* An epoch that is over ends before what is due at its last step, and before the run does. */
      go_drained (run, GTORCH_TRAINER_PHASE_EPOCH_END);
      return TRUE;
    }
  if (batch == NULL || !gtorch_trainer_run_batch (run, batch, error))
    return FALSE;
  return run->n_accumulated < run->settings.accumulate_steps
         || end_step (run, GTORCH_TRAINER_PHASE_BATCH, error);
}

static gboolean
step_schedules (GTorchTrainerRun *run, GError **error)
{
  GPtrArray *schedules = run->priv->schedules;

  for (guint i = 0; i < schedules->len; i++)
    {
      const GTorchTrainerSchedule *one = schedules->pdata[i];

      if (one->interval == GTORCH_TRAINER_INTERVAL_EPOCH
          && !gtorch_lr_scheduler_step (one->scheduler, error))
        return FALSE;
    }
  return TRUE;
}

static gboolean
end_epoch (GTorchTrainerRun *run, GError **error)
{
  GTorchTrainerPrivate *priv = run->priv;
  const gchar *const names[] = { "epoch", "train/epoch_loss", NULL };
  gdouble values[2];

  /* A run that was cancelled at an epoch's last batch leaves none of it for the next one. */
  if (priv->counters.epoch_count == 0 && !run->is_resumed)
    return gtorch_trainer_fail_empty ("loader", error);
  run->is_resumed = FALSE;
  g_mutex_lock (&priv->lock);
  values[1] = priv->counters.epoch_sum / MAX (priv->counters.epoch_count, 1);
  priv->counters.epoch_sum = priv->counters.epoch_count = 0;
  priv->counters.epoch = ++run->epoch;
  g_mutex_unlock (&priv->lock);
  values[0] = run->epoch;
  if (!step_schedules (run, error)
      || !gtorch_trainer_write_logs (run, run->step, names, values, 2, error))
    return FALSE;
  gtorch_trainer_delivery_add (run->delivery, GTORCH_TRAINER_EPOCH_DONE, run->epoch, values[1],
                               NULL);
  if (run->settings.progress_bar != NULL)
    gtorch_progress_bar_end (run->settings.progress_bar);
  if (run->settings.validation_loader != NULL && run->settings.evaluate_every == 0)
    run->wants_evaluation = TRUE;
  if (run->settings.checkpoint_folder != NULL && run->settings.checkpoint_every == 0)
    run->wants_checkpoint = TRUE;
  run->next_phase = GTORCH_TRAINER_PHASE_EPOCH;
  run->phase = GTORCH_TRAINER_PHASE_BETWEEN;
  return TRUE;
}

static gboolean
go_on (GTorchTrainerRun *run, GError **error)
{
  if (run->wants_evaluation)
    {
      run->wants_evaluation = FALSE;
      run->validation_iter = gtorch_data_loader_iterate (run->settings.validation_loader, error);
      run->phase = GTORCH_TRAINER_PHASE_EVALUATION;
      return run->validation_iter != NULL && gtorch_trainer_run_begin_evaluation (run, error);
    }
  if (run->wants_checkpoint)
    {
      run->wants_checkpoint = FALSE;
      go_drained (run, GTORCH_TRAINER_PHASE_CHECKPOINT);
      return TRUE;
    }
  run->phase = run->next_phase;
  run->must_drain = run->phase == GTORCH_TRAINER_PHASE_END;
  return TRUE;
}

static gboolean
evaluate_batch (GTorchTrainerRun *run, GError **error)
{
  g_autoptr (GTorchSample) batch = NULL;
  gboolean is_end;

  batch = next_batch (run->validation_iter, run, &is_end, error);
  if (is_end)
    {
      g_clear_object (&run->validation_iter);
      go_drained (run, GTORCH_TRAINER_PHASE_EVALUATION_END);
      return gtorch_trainer_run_add_point (run, NULL, error);
    }
  return batch != NULL && gtorch_trainer_run_evaluate (run, batch, error);
}

static gboolean
end_run (GTorchTrainerRun *run)
{
  /* What would be lost is saved, too. */
  if (run->settings.checkpoint_folder != NULL && run->saved_step != run->step)
    {
      run->next_phase = GTORCH_TRAINER_PHASE_END;
      go_drained (run, GTORCH_TRAINER_PHASE_CHECKPOINT);
      return TRUE;
    }
  run->phase = GTORCH_TRAINER_PHASE_DONE;
  return TRUE;
}

gboolean
gtorch_trainer_run_advance (GTorchTrainerRun *run, GError **error)
{
  if (gtorch_trainer_run_take_failure (run, error)
      || g_cancellable_set_error_if_cancelled (run->cancellable, error))
    return FALSE;
  switch (run->phase)
    {
    case GTORCH_TRAINER_PHASE_EPOCH:
      return begin_epoch (run, error);
    case GTORCH_TRAINER_PHASE_BATCH:
      return train_batch (run, error);
    case GTORCH_TRAINER_PHASE_EPOCH_END:
      return end_epoch (run, error);
    case GTORCH_TRAINER_PHASE_BETWEEN:
      return go_on (run, error);
    case GTORCH_TRAINER_PHASE_EVALUATION:
      return evaluate_batch (run, error);
    case GTORCH_TRAINER_PHASE_EVALUATION_END:
      run->phase = GTORCH_TRAINER_PHASE_BETWEEN;
      return gtorch_trainer_run_end_evaluation (run, error);
    case GTORCH_TRAINER_PHASE_CHECKPOINT:
      run->phase = GTORCH_TRAINER_PHASE_BETWEEN;
      return gtorch_trainer_run_checkpoint (run, error);
    case GTORCH_TRAINER_PHASE_END:
      return end_run (run);
    case GTORCH_TRAINER_PHASE_DONE:
      break;
    }
  return TRUE;
}
