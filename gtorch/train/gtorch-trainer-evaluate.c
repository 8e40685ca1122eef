/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The evaluations of a run, and what follows from their results: early stopping, schedules. */

#include "config.h"

#include "train/gtorch-trainer-private.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "dispatch/gtorch-autocast.h"
#include "dispatch/gtorch-grad-mode.h"
#include "elements/gtorch-tensor-bytes.h"
#include "gtorch-ops-private.h"
#include "nn/gtorch-module-members.h"
#include "optim/gtorch-lr-choices.h"
#include "optim/gtorch-reduce-lr-on-plateau.h"
#include "tensor/gtorch-tensor-private.h"
#include "train/gtorch-mean-metric.h"

/* --- the modes of the modules --- */

static void
enter_evaluation (GTorchTrainerRun *run)
{
  g_autoptr (GListModel) modules = gtorch_module_get_modules (run->priv->module);
  const guint n = g_list_model_get_n_items (modules);

  run->modes = g_array_sized_new (FALSE, FALSE, sizeof (gboolean), n);
  for (guint i = 0; i < n; i++)
    {
      g_autoptr (GTorchModule) module = g_list_model_get_item (modules, i);
      const gboolean training = gtorch_module_get_training (module);

      g_array_append_val (run->modes, training);
    }
  gtorch_module_eval (run->priv->module);
}

/* A program may have set some modules to evaluation for good. */
void
gtorch_trainer_run_leave_evaluation (GTorchTrainerRun *run)
{
  g_autoptr (GArray) modes = g_steal_pointer (&run->modes);
  g_autoptr (GListModel) modules = NULL;

  if (modes == NULL)
    return;
  modules = gtorch_module_get_modules (run->priv->module);
  for (guint i = 0; i < MIN (modes->len, g_list_model_get_n_items (modules)); i++)
    {
      g_autoptr (GTorchModule) module = g_list_model_get_item (modules, i);

      gtorch_module_set_training (module, g_array_index (modes, gboolean, i));
    }
}

/* --- batches --- */

gboolean
gtorch_trainer_run_begin_evaluation (GTorchTrainerRun *run, GError **error)
{
  GPtrArray *metrics = run->priv->metrics;

  for (guint i = 0; i < metrics->len; i++)
    if (!gtorch_metric_reset (((GTorchTrainerMetric *) metrics->pdata[i])->metric, error))
      return FALSE;
  run->n_validated = 0;
  g_clear_object (&run->validation_loss);
  run->validation_loss = GTORCH_METRIC (gtorch_mean_metric_new ());
  enter_evaluation (run);
  return TRUE;
}

static GTorchTensor *
compute_loss (GTorchTrainerRun *run, GTorchSample *batch, GError **error)
{
  g_autoptr (GTorchAutocastGuard) autocast = NULL;

  if (run->settings.autocast != GTORCH_DTYPE_NONE)
    {
      autocast = gtorch_autocast_guard_new (gtorch_device_get_device_type (run->device),
                                            run->settings.autocast, TRUE, TRUE, error);
      if (autocast == NULL)
        return NULL;
    }
  return gtorch_trainer_validation_step (run->trainer, batch, error);
}

gboolean
gtorch_trainer_run_evaluate (GTorchTrainerRun *run, GTorchSample *batch, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  g_autoptr (GTorchSample) here = gtorch_trainer_run_move (run, batch, error);
  g_autoptr (GTorchTensor) loss = here != NULL ? compute_loss (run, here, error) : NULL;
  g_autoptr (GTorchTensor) weight = NULL;

  if (loss == NULL)
    return FALSE;
  if (gtorch_tensor_get_numel (loss) != 1)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("validation_step: the loss has the shape %s, and must be one number"),
                   gtorch_impl_shape_str (gtorch_tensor_unwrap (loss)));
      return FALSE;
    }
  weight = gtorch_tensor_wrap (gtorch_op_full (NULL, 0, gtorch_trainer_count_samples (here),
                                               GTORCH_DTYPE_FLOAT64,
                                               gtorch_tensor_get_device (loss), error));
  run->n_samples = 0;
  run->n_validated++;
  return weight != NULL && gtorch_metric_update (run->validation_loss, loss, weight, error)
         && gtorch_trainer_run_add_point (run, NULL, error);
}

/* --- results --- */

typedef struct
{
  GPtrArray *names;
  GArray *values;
} Results;

static void
results_add (Results *results, const gchar *name, gdouble value)
{
  g_ptr_array_add (results->names, g_strdup (name));
  g_array_append_val (results->values, value);
}

static gboolean
compute_results (GTorchTrainerRun *run, Results *results, GError **error)
{
  GPtrArray *metrics = run->priv->metrics;
  GError *local = NULL;

  results_add (results, "loss", gtorch_metric_compute_value (run->validation_loss, &local));
  for (guint i = 0; i < metrics->len && local == NULL; i++)
    {
      const GTorchTrainerMetric *one = metrics->pdata[i];
      g_autoptr (GTorchTensor) value = gtorch_metric_compute (one->metric, &local);

      if (value != NULL && gtorch_tensor_get_numel (value) == 1)
        results_add (results, one->name, gtorch_tensor_item_double (value, &local));
    }
  if (local == NULL)
    return TRUE;
  g_propagate_error (error, local);
  return FALSE;
}

static GVariant *
pack (const Results *results)
{
  GVariantBuilder builder;

  g_variant_builder_init (&builder, G_VARIANT_TYPE ("a(sd)"));
  for (guint i = 0; i < results->values->len; i++)
    g_variant_builder_add (&builder, "(sd)", results->names->pdata[i],
                           g_array_index (results->values, gdouble, i));
  return g_variant_builder_end (&builder);
}

static gboolean
write_results (GTorchTrainerRun *run, const Results *results, GError **error)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();
  g_auto (GStrv) names = NULL;

  for (guint i = 0; i < results->names->len; i++)
    {
      g_autofree gchar *name =
          g_strconcat ("validation/", (const gchar *) results->names->pdata[i], NULL);

      g_strv_builder_add (builder, name);
    }
  names = g_strv_builder_end (builder);
  return gtorch_trainer_write_logs (run, run->step, (const gchar *const *) names,
                                    (const gdouble *) results->values->data, results->values->len,
                                    error);
}

static gboolean
find_monitored (GTorchTrainerRun *run, const Results *results, gdouble *value, GError **error)
{
  const gchar *wanted = run->settings.monitor != NULL ? run->settings.monitor : "loss";
  g_autofree gchar *names = NULL;

  for (guint i = 0; i < results->names->len; i++)
    if (g_str_equal (results->names->pdata[i], wanted))
      {
        *value = g_array_index (results->values, gdouble, i);
        return TRUE;
      }
  g_ptr_array_add (results->names, NULL);
  names = g_strjoinv (", ", (gchar **) results->names->pdata);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND,
               _ ("trainer: evaluations have no result “%s” to monitor: there are %s"), wanted,
               names);
  return FALSE;
}

/* Whether it is the best so far. */
static gboolean
note_result (GTorchTrainerRun *run, gdouble value)
{
  const gdouble delta = run->settings.min_delta;
  GTorchTrainerCounters *counters = &run->priv->counters;
  gboolean is_better;

  g_mutex_lock (&run->priv->lock);
  if (run->settings.monitor_mode == GTORCH_PLATEAU_MODE_MIN)
    is_better = value < counters->best - delta;
  else
    is_better = value > counters->best + delta;
  if (counters->n_evaluations++ == 0 || isnan (counters->best))
    is_better = !isnan (value);
  if (is_better)
    {
      counters->best = value;
      counters->n_bad = 0;
    }
  else
    counters->n_bad++;
  if (run->settings.patience > 0 && counters->n_bad >= run->settings.patience)
    counters->is_stopped_early = TRUE;
  g_mutex_unlock (&run->priv->lock);
  return is_better;
}

static gboolean
step_schedules (GTorchTrainerRun *run, gdouble value, GError **error)
{
  GPtrArray *schedules = run->priv->schedules;

  for (guint i = 0; i < schedules->len; i++)
    {
      const GTorchTrainerSchedule *one = schedules->pdata[i];

      if (one->interval != GTORCH_TRAINER_INTERVAL_EVALUATION)
        continue;
      if (GTORCH_IS_REDUCE_LR_ON_PLATEAU (one->scheduler)
              ? !gtorch_reduce_lr_on_plateau_step_metric (GTORCH_REDUCE_LR_ON_PLATEAU (
                                                              one->scheduler),
                                                          value, error)
              : !gtorch_lr_scheduler_step (one->scheduler, error))
        return FALSE;
    }
  return TRUE;
}

static gboolean
save_best (GTorchTrainerRun *run, GError **error)
{
  g_autoptr (GFile) file = g_file_get_child (run->settings.checkpoint_folder, "best.safetensors");

  return gtorch_trainer_write_checkpoint (run, file, error);
}

gboolean
gtorch_trainer_run_end_evaluation (GTorchTrainerRun *run, GError **error)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GArray) values = g_array_new (FALSE, FALSE, sizeof (gdouble));
  Results results = { names, values };
  gdouble monitored;
  gboolean is_better;

  gtorch_trainer_run_leave_evaluation (run);
  if (run->n_validated == 0)
    return gtorch_trainer_fail_empty ("validation_loader", error);
  if (!compute_results (run, &results, error))
    return FALSE;
  if (!find_monitored (run, &results, &monitored, error))
    return FALSE;
  is_better = note_result (run, monitored);
  if (!write_results (run, &results, error) || !step_schedules (run, monitored, error)
      || (is_better && run->settings.save_best && !save_best (run, error)))
    return FALSE;
  gtorch_trainer_delivery_add_results (run->delivery, run->step, g_array_index (values, gdouble, 0),
                                       pack (&results));
  return TRUE;
}
