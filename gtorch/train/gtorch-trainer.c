/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "train/gtorch-trainer-private.h"

#include <glib/gi18n-lib.h>
#include <math.h>
#include <string.h>

#include "base/gtorch-callback-private.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-property-private.h"
#include "base/gtorch-references-private.h"
#include "base/gtorch-task-private.h"
#include "dispatch/gtorch-autocast.h"
#include "optim/gtorch-lr-choices.h"

/**
 * GTorchTrainer:
 *
 * Trains a module: takes batches from a loader, computes the loss and its gradients, and makes the steps of
 * the optimizer, with schedules, mixed precision, accumulation, clipping, evaluations, early stopping, logs
 * and checkpoints as its properties and parts say.
 *
 * [method@Trainer.run_async] trains in a thread of its own on a stream of its own: the main loop goes on, and
 * gets signals. [method@Trainer.run] trains in the calling thread. Either can be cancelled, and
 * [method@Trainer.stop] ends a run after the step. The run after that goes on where the last one has ended,
 * until [property@Trainer:n-epochs] or [property@Trainer:max-steps]. While a run goes on, the program must
 * not change the module, the optimizer, the loader, schedules and metrics.
 *
 * By default a batch is a tensor or a tuple of tensors: the last one is the target, the others are the inputs
 * of the module. The loss gets the output and the target. Without a loss, the module gets all tensors and
 * returns the loss. A subclass, in any language, overrides `training_step` for anything else, or a program
 * sets functions ([method@Trainer.set_training_step]).
 *
 * A property that is set during a run counts for the next one.
 *
 * ```c
 * g_autoptr (GTorchTrainer) trainer = gtorch_trainer_new (model, loader, GTORCH_MODULE (loss), optimizer);
 *
 * g_object_set (trainer, "n-epochs", (gint64) 10, NULL);
 * gtorch_trainer_run_async (trainer, NULL, on_trained, NULL);
 * ```
 *
 * Since: 0.1
 */

G_DEFINE_TYPE_WITH_PRIVATE (GTorchTrainer, gtorch_trainer, G_TYPE_OBJECT)

#define PRIVATE(self) \
  ((GTorchTrainerPrivate *) gtorch_trainer_get_instance_private (GTORCH_TRAINER (self)))

static guint signals[GTORCH_TRAINER_N_SIGNALS];

GTorchTrainerPrivate *
gtorch_trainer_get_private (GTorchTrainer *self)
{
  return PRIVATE (self);
}

void
gtorch_trainer_emit (GTorchTrainer *self, GTorchTrainerSignal signal, gint64 number, gdouble value,
                     const GError *failure)
{
  if (signal == GTORCH_TRAINER_FAILED)
    g_signal_emit (self, signals[signal], 0, failure);
  else
    g_signal_emit (self, signals[signal], 0, number, value);
}

void
gtorch_trainer_publish (GTorchTrainer *self, GVariant *results)
{
  GTorchTrainerPrivate *priv = PRIVATE (self);

  g_mutex_lock (&priv->lock);
  g_clear_pointer (&priv->results, g_variant_unref);
  priv->results = g_variant_ref (results);
  g_mutex_unlock (&priv->lock);
}

gboolean
gtorch_trainer_is_heard (GTorchTrainer *self, GTorchTrainerSignal signal)
{
  return g_signal_has_handler_pending (self, signals[signal], 0, FALSE);
}

/* --- settings --- */

#define OBJECTS(x) x (validation_loader) x (scaler) x (progress_bar) x (checkpoint_folder)

void
gtorch_trainer_settings_copy (GTorchTrainerSettings *to, const GTorchTrainerSettings *from)
{
  *to = *from;
#define REF(name)       \
  if (to->name != NULL) \
    g_object_ref (to->name);
  OBJECTS (REF)
#undef REF
  to->monitor = g_strdup (from->monitor);
}

void
gtorch_trainer_settings_clear (GTorchTrainerSettings *settings)
{
#define CLEAR(name) g_clear_object (&settings->name);
  OBJECTS (CLEAR)
#undef CLEAR
  g_clear_pointer (&settings->monitor, g_free);
}

static void
get_setting (gpointer object, const GTorchField *field, GValue *value)
{
  gconstpointer place = G_STRUCT_MEMBER_P (PRIVATE (object), field->offset);

  switch (field->kind)
    {
    case GTORCH_FIELD_BOOL:
      g_value_set_boolean (value, *(const gboolean *) place);
      break;
    case GTORCH_FIELD_ENUM:
      g_value_set_enum (value, *(const gint *) place);
      break;
    case GTORCH_FIELD_INT64:
      g_value_set_int64 (value, *(const gint64 *) place);
      break;
    case GTORCH_FIELD_DOUBLE:
      g_value_set_double (value, *(const gdouble *) place);
      break;
    case GTORCH_FIELD_STRING:
      g_value_set_string (value, *(gchar *const *) place);
      break;
    default:
      g_value_set_object (value, *(const gpointer *) place);
      break;
    }
}

static gboolean
set_setting (gpointer object, const GTorchField *field, const GValue *value)
{
  gpointer place = G_STRUCT_MEMBER_P (PRIVATE (object), field->offset);

#define SET(Type, what)                                                     \
  G_STMT_START                                                              \
  {                                                                         \
    const gboolean changed = *(Type *) place != g_value_get_##what (value); \
                                                                            \
    *(Type *) place = g_value_get_##what (value);                           \
    return changed;                                                         \
  }                                                                         \
  G_STMT_END

  switch (field->kind)
    {
    case GTORCH_FIELD_BOOL:
      SET (gboolean, boolean);
    case GTORCH_FIELD_ENUM:
      SET (gint, enum);
    case GTORCH_FIELD_INT64:
      SET (gint64, int64);
    case GTORCH_FIELD_DOUBLE:
      return gtorch_property_set_double (place, g_value_get_double (value));
    case GTORCH_FIELD_STRING:
      if (g_strcmp0 (*(gchar **) place, g_value_get_string (value)) == 0)
        return FALSE;
      g_free (*(gchar **) place);
      *(gchar **) place = g_value_dup_string (value);
      return TRUE;
    default:
      return g_set_object ((GObject **) place, g_value_get_object (value));
    }
#undef SET
}

typedef GTorchTrainer Self;

#define PART(member)                                                                     \
  .offset = G_STRUCT_OFFSET (GTorchTrainerPrivate, member), .flags = GTORCH_FIELD_FIXED, \
  .get_value = get_setting, .set_value = set_setting
#define SETTING(member)                                              \
  .offset = G_STRUCT_OFFSET (GTorchTrainerPrivate, settings.member), \
  .flags = GTORCH_FIELD_SETTING, .get_value = get_setting, .set_value = set_setting

/* clang-format off */
static const GTorchField fields[] = {
  /**
   * GTorchTrainer:module:
   *
   * The module that is trained.
   *
   * Since: 0.1
   */
  { "module", GTORCH_FIELD_OBJECT, .type = gtorch_module_get_type, PART (module) },
  /**
   * GTorchTrainer:loader:
   *
   * The loader of the batches.
   *
   * Since: 0.1
   */
  { "loader", GTORCH_FIELD_OBJECT, .type = gtorch_data_loader_get_type, PART (loader) },
  /**
   * GTorchTrainer:loss-module:
   *
   * The module that computes the loss from the output and the target, such as a [class@Loss].
   *
   * Since: 0.1
   */
  { "loss-module", GTORCH_FIELD_OBJECT, .type = gtorch_module_get_type, PART (loss) },
  /**
   * GTorchTrainer:optimizer:
   *
   * The optimizer.
   *
   * Since: 0.1
   */
  { "optimizer", GTORCH_FIELD_OBJECT, .type = gtorch_optimizer_get_type, PART (optimizer) },
  /**
   * GTorchTrainer:validation-loader:
   *
   * The loader of the batches of evaluations.
   *
   * Since: 0.1
   */
  { "validation-loader", GTORCH_FIELD_OBJECT, .type = gtorch_data_loader_get_type, SETTING (validation_loader) },
  /**
   * GTorchTrainer:scaler:
   *
   * The scaler of the gradients, for float16.
   *
   * Since: 0.1
   */
  { "scaler", GTORCH_FIELD_OBJECT, .type = gtorch_grad_scaler_get_type, SETTING (scaler) },
  /**
   * GTorchTrainer:progress-bar:
   *
   * The progress bar in which runs show how far they are.
   *
   * Since: 0.1
   */
  { "progress-bar", GTORCH_FIELD_OBJECT, .type = gtorch_progress_bar_get_type, SETTING (progress_bar) },
  /**
   * GTorchTrainer:n-epochs:
   *
   * How often the data are gone through, in all runs together.
   *
   * Since: 0.1
   */
  { "n-epochs", GTORCH_FIELD_INT64, .value = 1, SETTING (n_epochs) },
  /**
   * GTorchTrainer:max-steps:
   *
   * The number of steps, in all runs together, after which training ends before the last epoch has; 0: no
   * such limit.
   *
   * Since: 0.1
   */
  { "max-steps", GTORCH_FIELD_INT64, .value = 0, SETTING (max_steps) },
  /**
   * GTorchTrainer:accumulate-steps:
   *
   * Of how many batches a step has the mean gradients. The last step of an epoch may have fewer: it has the
   * mean gradients of those.
   *
   * Since: 0.1
   */
  { "accumulate-steps", GTORCH_FIELD_INT64, .value = 1, SETTING (accumulate_steps) },
  /**
   * GTorchTrainer:clip-norm:
   *
   * The greatest norm of all gradients together, to which they are scaled down; 0: they are not.
   *
   * Since: 0.1
   */
  { "clip-norm", GTORCH_FIELD_DOUBLE, .value = 0, SETTING (clip_norm) },
  /**
   * GTorchTrainer:autocast:
   *
   * The dtype of mixed precision in forward passes and losses, or %GTORCH_DTYPE_NONE for none.
   *
   * Since: 0.1
   */
  { "autocast", GTORCH_FIELD_ENUM, .value = GTORCH_DTYPE_NONE, .type = gtorch_dtype_get_type, SETTING (autocast) },
  /**
   * GTorchTrainer:graph:
   *
   * Whether whole steps are captured in a [class@CUDAGraph] after a few, and replayed. With
   * [property@Trainer:accumulate-steps] the passes of a batch are one graph, and what the optimizer does
   * another. Batches of another shape, such as the last one of an epoch, are computed without it. The
   * optimizer becomes [property@Optimizer:capturable] and the scaler [property@GradScaler:capturable], whose
   * [signal@GradScaler::overflow] is not emitted by replays.
   *
   * Since: 0.1
   */
  { "graph", GTORCH_FIELD_BOOL, .value = FALSE, SETTING (graph) },
  /**
   * GTorchTrainer:evaluate-every:
   *
   * The number of steps between evaluations, if there is a [property@Trainer:validation-loader]; 0: at the
   * end of each epoch.
   *
   * Since: 0.1
   */
  { "evaluate-every", GTORCH_FIELD_INT64, .value = 0, SETTING (evaluate_every) },
  /**
   * GTorchTrainer:log-every:
   *
   * The number of steps between records in the logs.
   *
   * Since: 0.1
   */
  { "log-every", GTORCH_FIELD_INT64, .value = 10, SETTING (log_every) },
  /**
   * GTorchTrainer:patience:
   *
   * The number of evaluations without an improvement after which training ends; 0: it does not end early.
   *
   * Since: 0.1
   */
  { "patience", GTORCH_FIELD_INT64, .value = 0, SETTING (patience) },
  /**
   * GTorchTrainer:monitor:
   *
   * The name of the result of evaluations that is looked at for early stopping, the best checkpoint and
   * schedules: that of a metric, or `loss`.
   *
   * Since: 0.1
   */
  { "monitor", GTORCH_FIELD_STRING, SETTING (monitor) },
  /**
   * GTorchTrainer:monitor-mode:
   *
   * Which of two results is better.
   *
   * Since: 0.1
   */
  { "monitor-mode", GTORCH_FIELD_ENUM, .value = GTORCH_PLATEAU_MODE_MIN, .type = gtorch_plateau_mode_get_type, SETTING (monitor_mode) },
  /**
   * GTorchTrainer:min-delta:
   *
   * By how much a result must be better than the best one to be an improvement.
   *
   * Since: 0.1
   */
  { "min-delta", GTORCH_FIELD_DOUBLE, .value = 0, SETTING (min_delta) },
  /**
   * GTorchTrainer:checkpoint-folder:
   *
   * The folder, which is made, of the checkpoints, `step-0000000120.safetensors`. At the end of a run, one is
   * written, too.
   *
   * Since: 0.1
   */
  { "checkpoint-folder", GTORCH_FIELD_OBJECT, .type = g_file_get_type, SETTING (checkpoint_folder) },
  /**
   * GTorchTrainer:checkpoint-every:
   *
   * The number of steps between checkpoints; 0: at the end of each epoch.
   *
   * Since: 0.1
   */
  { "checkpoint-every", GTORCH_FIELD_INT64, .value = 0, SETTING (checkpoint_every) },
  /**
   * GTorchTrainer:keep-checkpoints:
   *
   * How many of the last checkpoints are kept; 0: all. The others are deleted when one is written: files in
   * [property@Trainer:checkpoint-folder] that have the name which a trainer gives, `step-` and ten digits or
   * more with `.safetensors`, of steps before that one. So the folder should be of one training.
   *
   * Since: 0.1
   */
  { "keep-checkpoints", GTORCH_FIELD_INT64, .value = 0, SETTING (keep_checkpoints) },
  /**
   * GTorchTrainer:save-best:
   *
   * Whether a checkpoint `best.safetensors` is written after each evaluation with the best result so far.
   *
   * Since: 0.1
   */
  { "save-best", GTORCH_FIELD_BOOL, .value = FALSE, SETTING (save_best) },
  /**
   * GTorchTrainer:threaded:
   *
   * Whether [method@Trainer.run_async] works in a thread of its own. If not, it works in the main context of
   * the caller, a step at a time, on a stream of its own, so that the main loop can go on in between.
   * Functions of JavaScript can be called in no other thread: there it is %FALSE unless the program sets it,
   * and a run that has it set and a class, a function or a hook of the program's is refused.
   *
   * Since: 0.1
   */
  { "threaded", GTORCH_FIELD_BOOL, .value = TRUE, SETTING (threaded) },
  /**
   * GTorchTrainer:max-ahead:
   *
   * How many of the signals [signal@Trainer::step-done], [signal@Trainer::epoch-done] and
   * [signal@Trainer::evaluated] may wait for their handlers while [method@Trainer.run_async] goes on.
   *
   * With 0 the next step begins when the handlers of the last one have returned: a handler that calls
   * [method@Trainer.stop] or cancels ends the run with the step that it was told of. With n, up to n steps
   * more are made. That keeps a GPU busy while handlers run and the main loop draws; 2 is enough for that.
   * Signals without handlers are not waited for.
   *
   * Since: 0.1
   */
  { "max-ahead", GTORCH_FIELD_INT64, .value = 0, SETTING (max_ahead) },
  /**
   * GTorchTrainer:epoch: (getter get_epoch)
   *
   * How often the data have been gone through.
   *
   * Since: 0.1
   */
  { "epoch", GTORCH_PROPERTY_INT64 (gtorch_trainer_get_epoch, NULL) },
  /**
   * GTorchTrainer:step: (getter get_step)
   *
   * The number of steps of the optimizer that are done.
   *
   * Since: 0.1
   */
  { "step", GTORCH_PROPERTY_INT64 (gtorch_trainer_get_step, NULL) },
  /**
   * GTorchTrainer:loss: (getter get_loss)
   *
   * The loss of the last step that is done, NaN before the first.
   *
   * Since: 0.1
   */
  { "loss", GTORCH_PROPERTY_DOUBLE (gtorch_trainer_get_loss, NULL) },
  /**
   * GTorchTrainer:progress: (getter get_progress)
   *
   * How much of all steps is done, from 0 to 1; 0 if the length of an epoch is not known.
   *
   * Since: 0.1
   */
  { "progress", GTORCH_PROPERTY_DOUBLE (gtorch_trainer_get_progress, NULL) },
  /**
   * GTorchTrainer:throughput: (getter get_throughput)
   *
   * The number of samples in a second, lately; 0 before it is known.
   *
   * Since: 0.1
   */
  { "throughput", GTORCH_PROPERTY_DOUBLE (gtorch_trainer_get_throughput, NULL) },
  /**
   * GTorchTrainer:best: (getter get_best)
   *
   * The best result of the evaluations, NaN before the first.
   *
   * Since: 0.1
   */
  { "best", GTORCH_PROPERTY_DOUBLE (gtorch_trainer_get_best, NULL) },
};
/* clang-format on */

/* --- default steps --- */

/* Takes the tensors of a batch apart: all but the last, which is the target, if there is a loss. */
static gboolean
split_batch (GTorchTrainer *self, GTorchSample *batch, GPtrArray *inputs, GTorchTensor **target,
             GError **error)
{
  const gboolean is_tuple = gtorch_sample_get_kind (batch) == GTORCH_SAMPLE_TUPLE;
  const guint n = is_tuple ? gtorch_sample_get_n_children (batch) : 1;
  const gboolean has_target = PRIVATE (self)->loss != NULL;
  g_autofree gchar *text = NULL;

  *target = NULL;
  for (guint i = 0; i < n; i++)
    {
      GTorchSample *child = is_tuple ? gtorch_sample_get_child (batch, i, NULL) : batch;

      if (gtorch_sample_get_kind (child) != GTORCH_SAMPLE_TENSOR)
        break;
      if (has_target && n > 1 && i == n - 1)
        *target = gtorch_sample_get_tensor (child);
      else
        g_ptr_array_add (inputs, gtorch_sample_get_tensor (child));
    }
  if (inputs->len > 0 && (has_target ? *target != NULL : inputs->len == n))
    return TRUE;
  text = gtorch_sample_to_string (batch);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
               has_target
                   ? _ ("training_step: the batch is %s, and not a tuple of tensors, of which "
                        "the last is the target: override training_step")
                   : _ ("training_step: the batch is %s, and not a tensor or a tuple of "
                        "tensors: override training_step"),
               text);
  return FALSE;
}

static GTorchTensor *
compute_loss (GTorchTrainer *self, GTorchSample *batch, GTorchTensor **output,
              GTorchTensor **target, GError **error)
{
  GTorchTrainerPrivate *priv = PRIVATE (self);
  g_autoptr (GPtrArray) inputs = g_ptr_array_new ();
  GTorchTensor *given[2];

  if (!split_batch (self, batch, inputs, target, error))
    return NULL;
  *output = inputs->len == 1
                ? gtorch_module_forward (priv->module, inputs->pdata[0], error)
                : gtorch_module_forward_many (priv->module, (GTorchTensor **) inputs->pdata,
                                              inputs->len, error);
  if (*output == NULL)
    return NULL;
  if (priv->loss == NULL)
    return g_object_ref (*output);
  given[0] = *output;
  given[1] = *target;
  return gtorch_module_forward_many (priv->loss, given, 2, error);
}

static GTorchTensor *
gtorch_trainer_real_training_step (GTorchTrainer *self, GTorchSample *batch, GError **error)
{
  const GTorchTrainerFunc *training = &PRIVATE (self)->training;
  g_autoptr (GTorchTensor) output = NULL;
  GTorchTensor *target;

  if (training->func != NULL)
    return ((GTorchTrainerStepFunc) training->func) (self, batch, training->data, error);
  return compute_loss (self, batch, &output, &target, error);
}

static GTorchTensor *
gtorch_trainer_real_validation_step (GTorchTrainer *self, GTorchSample *batch, GError **error)
{
  const GTorchTrainerFunc *validation = &PRIVATE (self)->validation;
  g_autoptr (GTorchTensor) output = NULL;
  g_autoptr (GTorchTensor) loss = NULL;
  GTorchTensor *target;

  if (validation->func != NULL)
    return ((GTorchTrainerStepFunc) validation->func) (self, batch, validation->data, error);
  loss = compute_loss (self, batch, &output, &target, error);
  if (loss == NULL
      || (target != NULL && !gtorch_trainer_update_metrics (self, output, target, error)))
    return NULL;
  return g_steal_pointer (&loss);
}

/* --- the class --- */

static void
clear_func (GTorchTrainerFunc *func)
{
  if (func->destroy != NULL)
    func->destroy (func->data);
  *func = (GTorchTrainerFunc){ NULL };
}

static void
gtorch_trainer_finalize (GObject *object)
{
  GTorchTrainerPrivate *priv = PRIVATE (object);

  clear_func (&priv->training);
  clear_func (&priv->validation);
  clear_func (&priv->save);
  clear_func (&priv->load);
  g_clear_object (&priv->module);
  g_clear_object (&priv->loss);
  g_clear_object (&priv->loader);
  g_clear_object (&priv->optimizer);
  gtorch_trainer_settings_clear (&priv->settings);
  g_ptr_array_unref (priv->schedules);
  g_ptr_array_unref (priv->metrics);
  g_ptr_array_unref (priv->logs);
  g_clear_pointer (&priv->loader_state, g_variant_unref);
  g_clear_pointer (&priv->results, g_variant_unref);
  g_mutex_clear (&priv->lock);
  G_OBJECT_CLASS (gtorch_trainer_parent_class)->finalize (object);
}

static void
gtorch_trainer_add_references (gpointer trainer, GTorchReferences *references)
{
  GTorchTrainerPrivate *priv = PRIVATE (trainer);
  gpointer objects[] = { priv->module, priv->loss, priv->optimizer };
  const GTorchTrainerFunc *funcs[] = { &priv->training, &priv->validation, &priv->save,
                                       &priv->load };

  for (guint i = 0; i < G_N_ELEMENTS (objects); i++)
    if (objects[i] != NULL)
      gtorch_references_add_object (references, objects[i]);
  for (guint i = 0; i < priv->schedules->len; i++)
    gtorch_references_add_object (references,
                                  ((GTorchTrainerSchedule *) priv->schedules->pdata[i])->scheduler);
  for (guint i = 0; i < G_N_ELEMENTS (funcs); i++)
    if (funcs[i]->func != NULL)
      gtorch_references_add_data (references, funcs[i]->data, funcs[i]->destroy);
}

static GTorchReferencesType references_type = { .look = gtorch_trainer_add_references };

static void
gtorch_trainer_class_init (GTorchTrainerClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_trainer_finalize;
  klass->training_step = gtorch_trainer_real_training_step;
  klass->validation_step = gtorch_trainer_real_validation_step;
  GTORCH_FIELDS (klass, fields);

  /**
   * GTorchTrainer::step-done:
   * @self: the trainer
   * @step: the number of steps that are done
   * @loss: the loss of the step
   *
   * A step is done, on the device, too. Emitted for each step, in order, in the main context that was the
   * thread's default when the run began; [method@Trainer.run] emits it in its thread. The run waits for the
   * handlers, see [property@Trainer:max-ahead]; what shows the last step only may be told of it by
   * `notify::step`, for which nothing waits.
   *
   * Since: 0.1
   */
  signals[GTORCH_TRAINER_STEP_DONE] =
      g_signal_new ("step-done", GTORCH_TYPE_TRAINER, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                    G_TYPE_NONE, 2, G_TYPE_INT64, G_TYPE_DOUBLE);
  /**
   * GTorchTrainer::epoch-done:
   * @self: the trainer
   * @epoch: the number of epochs that are done
   * @loss: the mean loss of the steps of the epoch
   *
   * An epoch is done.
   *
   * Since: 0.1
   */
  signals[GTORCH_TRAINER_EPOCH_DONE] =
      g_signal_new ("epoch-done", GTORCH_TYPE_TRAINER, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                    G_TYPE_NONE, 2, G_TYPE_INT64, G_TYPE_DOUBLE);
  /**
   * GTorchTrainer::evaluated:
   * @self: the trainer
   * @step: the number of steps that are done
   * @loss: the mean loss of the evaluation
   *
   * An evaluation is done; [method@Trainer.get_result] has its results.
   *
   * Since: 0.1
   */
  signals[GTORCH_TRAINER_EVALUATED] =
      g_signal_new ("evaluated", GTORCH_TYPE_TRAINER, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                    G_TYPE_NONE, 2, G_TYPE_INT64, G_TYPE_DOUBLE);
  /**
   * GTorchTrainer::failed:
   * @self: the trainer
   * @error: what went wrong
   *
   * A run has ended with an error, which is that of its end, too. Not emitted for a run that was cancelled.
   *
   * Since: 0.1
   */
  signals[GTORCH_TRAINER_FAILED] = g_signal_new ("failed", GTORCH_TYPE_TRAINER, G_SIGNAL_RUN_LAST,
                                                 0, NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_ERROR);
  references_type.type = GTORCH_TYPE_TRAINER;
  gtorch_references_add_type (&references_type);
}

static void
schedule_free (gpointer data)
{
  g_object_unref (((GTorchTrainerSchedule *) data)->scheduler);
  g_free (data);
}

static void
metric_free (gpointer data)
{
  GTorchTrainerMetric *metric = data;

  g_free (metric->name);
  g_object_unref (metric->metric);
  g_free (metric);
}

static void
gtorch_trainer_init (GTorchTrainer *self)
{
  GTorchTrainerPrivate *priv = PRIVATE (self);

  g_mutex_init (&priv->lock);
  priv->schedules = g_ptr_array_new_with_free_func (schedule_free);
  priv->metrics = g_ptr_array_new_with_free_func (metric_free);
  priv->logs = g_ptr_array_new_with_free_func (g_object_unref);
  priv->counters.loss = priv->counters.best = NAN;
}

/**
 * gtorch_trainer_new:
 * @module: the module that is trained
 * @loader: the loader of the batches
 * @loss: (nullable): the module that computes the loss from the output and the target; %NULL if @module
 *   returns the loss, or `training_step` is overridden
 * @optimizer: the optimizer
 *
 * Creates a trainer. Settings are properties.
 *
 * Returns: (transfer full): the trainer
 *
 * Since: 0.1
 */
GTorchTrainer *
gtorch_trainer_new (GTorchModule *module, GTorchDataLoader *loader, GTorchModule *loss,
                    GTorchOptimizer *optimizer)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (module), NULL);
  g_return_val_if_fail (GTORCH_IS_DATA_LOADER (loader), NULL);
  g_return_val_if_fail (loss == NULL || GTORCH_IS_MODULE (loss), NULL);
  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (optimizer), NULL);
  return g_object_new (GTORCH_TYPE_TRAINER, "module", module, "loader", loader, "loss-module", loss,
                       "optimizer", optimizer, NULL);
}

/**
 * gtorch_trainer_get_module: (get-property module)
 * @self: a trainer
 *
 * Gets the module that is trained.
 *
 * Returns: (transfer none) (nullable): the module; %NULL if none was given
 *
 * Since: 0.1
 */
GTorchModule *
gtorch_trainer_get_module (GTorchTrainer *self)
{
  g_return_val_if_fail (GTORCH_IS_TRAINER (self), NULL);
  return PRIVATE (self)->module;
}

/**
 * gtorch_trainer_get_optimizer: (get-property optimizer)
 * @self: a trainer
 *
 * Gets the optimizer.
 *
 * Returns: (transfer none) (nullable): the optimizer; %NULL if none was given
 *
 * Since: 0.1
 */
GTorchOptimizer *
gtorch_trainer_get_optimizer (GTorchTrainer *self)
{
  g_return_val_if_fail (GTORCH_IS_TRAINER (self), NULL);
  return PRIVATE (self)->optimizer;
}

/* --- runs --- */

/**
 * gtorch_trainer_run:
 * @self: a trainer
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Trains in this thread, until all epochs or steps are done, the evaluations do not improve any longer,
 * [method@Trainer.stop] is called or @cancellable is cancelled. Signals are emitted in this thread.
 *
 * A module in evaluation mode is set to training first, with all that are inside it. One in training mode
 * stays as it is: modules inside it that the program has set to evaluation do not train. Evaluations of a
 * run leave the modes as they were.
 *
 * A run that was cancelled has kept what its steps have learnt, and so has one that failed on the default
 * stream of the CPU; the batches of a step that was not made are lost. On any other stream, that of
 * [method@Trainer.run_async] in a main loop included, the update of the parameters may be enqueued when an
 * operation before it fails: it is skipped then, and who reads the parameters gets the error of that step.
 * The state of a checkpoint, once it is loaded, takes their place.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID for settings that [method@Trainer.check] refuses or if
 *   a run goes on, with `G_IO_ERROR_CANCELLED`, or with the error of the module, the loader, the optimizer, a
 *   function of the program, a log or a checkpoint
 *
 * Since: 0.1
 */
gboolean
gtorch_trainer_run (GTorchTrainer *self, GCancellable *cancellable, GError **error)
{
  g_autoptr (GTorchTrainer) owned = NULL;
  GTorchTrainerRun *run;
  GError *local = NULL;

  g_return_val_if_fail (GTORCH_IS_TRAINER (self), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  owned = g_object_ref (self);
  run = gtorch_trainer_run_new (self, cancellable, FALSE, TRUE, error);
  if (run == NULL)
    return FALSE;
  gtorch_trainer_run_to_end (run, &local);
  gtorch_trainer_run_free (run);
  if (local == NULL)
    return TRUE;
  g_propagate_error (error, local);
  return FALSE;
}

/**
 * gtorch_trainer_run_async:
 * @self: a trainer
 * @cancellable: (nullable): a cancellable
 * @callback: (nullable) (scope async) (closure user_data): called when the run has ended
 * @user_data: data for @callback
 *
 * Trains without blocking the main loop; see [method@Trainer.run], and [property@Trainer:threaded] for where
 * it works. Signals are emitted in the main context that is the thread's default now, all of them before
 * @callback is called.
 *
 * Since: 0.1
 */
void
gtorch_trainer_run_async (GTorchTrainer *self, GCancellable *cancellable,
                          GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = NULL;
  GTorchTrainerRun *run;
  GError *error = NULL;
  gboolean threaded;

  g_return_if_fail (GTORCH_IS_TRAINER (self));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (self, gtorch_trainer_run_async, cancellable, callback, user_data);
  /* The run tells itself that it was cancelled, after it has ended. */
  g_task_set_check_cancellable (task, FALSE);
  threaded = PRIVATE (self)->settings.threaded;
  run = gtorch_trainer_run_new (self, cancellable, TRUE, threaded, &error);
  if (run == NULL)
    g_task_return_error (task, error);
  else if (threaded)
    gtorch_trainer_drive_thread (run, g_steal_pointer (&task));
  else
    gtorch_trainer_drive_context (run, g_steal_pointer (&task));
}

/**
 * gtorch_trainer_run_finish:
 * @self: a trainer
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Gets the result of [method@Trainer.run_async].
 *
 * Returns: the same as [method@Trainer.run]
 *
 * Since: 0.1
 */
gboolean
gtorch_trainer_run_finish (GTorchTrainer *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_TRAINER (self), FALSE);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  return gtorch_task_take (result, self, gtorch_trainer_run_async, error)
         && g_task_propagate_boolean (G_TASK (result), error);
}

/**
 * gtorch_trainer_stop:
 * @self: a trainer
 *
 * Ends a run after its present step, or evaluation, with success. Callable from any thread; without a run it
 * does nothing. In a handler of [signal@Trainer::step-done] the present step is the one of the signal, unless
 * [property@Trainer:max-ahead] lets the run be ahead of it.
 *
 * Since: 0.1
 */
void
gtorch_trainer_stop (GTorchTrainer *self)
{
  GTorchTrainerPrivate *priv;

  g_return_if_fail (GTORCH_IS_TRAINER (self));
  priv = PRIVATE (self);
  g_mutex_lock (&priv->lock);
  if (priv->run != NULL)
    {
      g_atomic_int_set (&priv->run->is_stopped, TRUE);
      gtorch_trainer_delivery_wake (priv->run->delivery);
    }
  g_mutex_unlock (&priv->lock);
}

gboolean
gtorch_trainer_is_idle (GTorchTrainer *self, const gchar *op, GError **error)
{
  const GTorchTrainerPrivate *priv = PRIVATE (self);

  if (priv->run != NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: a run of this trainer goes on"),
                 op);
  else if (priv->busy != NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: %s () of this trainer has not ended"), op, priv->busy);
  return priv->run == NULL && priv->busy == NULL;
}

gboolean
gtorch_trainer_check_idle (GTorchTrainer *self, const gchar *op, GError **error)
{
  GTorchTrainerPrivate *priv = PRIVATE (self);
  gboolean result;

  g_mutex_lock (&priv->lock);
  result = gtorch_trainer_is_idle (self, op, error);
  g_mutex_unlock (&priv->lock);
  return result;
}

/**
 * gtorch_trainer_is_running:
 * @self: a trainer
 *
 * Tells whether a run goes on.
 *
 * Returns: %TRUE if one does
 *
 * Since: 0.1
 */
gboolean
gtorch_trainer_is_running (GTorchTrainer *self)
{
  GTorchTrainerPrivate *priv;
  gboolean result;

  g_return_val_if_fail (GTORCH_IS_TRAINER (self), FALSE);
  priv = PRIVATE (self);
  g_mutex_lock (&priv->lock);
  result = priv->run != NULL;
  g_mutex_unlock (&priv->lock);
  return result;
}

static GTorchTensor *
call_step (GTorchTrainer *self, const gchar *op,
           GTorchTensor *(*step) (GTorchTrainer *, GTorchSample *, GError **), GTorchSample *batch,
           GError **error)
{
  GError *local = NULL;
  g_autoptr (GTorchTensor) loss = step (self, batch, &local);

  if (!gtorch_callback_gave (op, loss, local, error)
      || !gtorch_callback_check (op, op, &loss, GTORCH_TYPE_TENSOR, error))
    return NULL;
  return g_steal_pointer (&loss);
}

/**
 * gtorch_trainer_training_step:
 * @self: a trainer
 * @batch: a batch
 * @error: return location for an error
 *
 * Computes the loss of a batch, as runs do.
 *
 * Returns: (transfer full): the loss, or %NULL with %GTORCH_ERROR_NOT_SUPPORTED if the batch is none of those
 *   that the trainer takes by default, or with the error of the module, the loss or the program's function
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_trainer_training_step (GTorchTrainer *self, GTorchSample *batch, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_TRAINER (self), NULL);
  g_return_val_if_fail (batch != NULL, NULL);
  if (PRIVATE (self)->module == NULL && !gtorch_trainer_check (self, error))
    return NULL;
  return call_step (self, "training_step", GTORCH_TRAINER_GET_CLASS (self)->training_step, batch,
                    error);
}

/**
 * gtorch_trainer_validation_step:
 * @self: a trainer
 * @batch: a batch
 * @error: return location for an error
 *
 * Computes the loss of a batch, and updates the metrics, as evaluations do.
 *
 * Returns: (transfer full): the loss, or %NULL with an error as of [method@Trainer.training_step]
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_trainer_validation_step (GTorchTrainer *self, GTorchSample *batch, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_TRAINER (self), NULL);
  g_return_val_if_fail (batch != NULL, NULL);
  if (PRIVATE (self)->module == NULL && !gtorch_trainer_check (self, error))
    return NULL;
  return call_step (self, "validation_step", GTORCH_TRAINER_GET_CLASS (self)->validation_step,
                    batch, error);
}
