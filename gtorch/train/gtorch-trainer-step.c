/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The batches and steps of a run: forward, loss, backward and the optimizer, one after the other or captured
 * as a graph. */

#include "config.h"

#include "train/gtorch-trainer-private.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "autograd/gtorch-tensor-autograd.h"
#include "data/gtorch-sample-collate.h"
#include "device/gtorch-device-private.h"
#include "dispatch/gtorch-autocast.h"
#include "dispatch/gtorch-grad-mode.h"
#include "gtorch-ops-private.h"
#include "nn/gtorch-clip-grad.h"
#include "optim/gtorch-optimizer-private.h"
#include "tensor/gtorch-tensor-private.h"

/* Steps before the capture, so that states of the optimizer and plans of libraries are made outside of it. */
#define WARMUP 3

/* A step of one batch is one graph. Of a step of several, the passes of the first batch are a graph, which
 * writes the gradients, those of each further one another, which adds to them, and what the optimizer does
 * with them a third. So a step may have fewer batches, or some that are computed without a graph. */
struct _GTorchTrainerGraph
{
  guint n_steps; /* before the capture */
  GTorchCUDAGraph *graph;
  GTorchCUDAGraph *further, *update; /* NULL: a step is one graph */
  GPtrArray *params, *grads;         /* with these: the parameters that have gradients, and these */
  GTorchSample *inputs;              /* what the graphs read */
  GTorchTensor *loss, *further_loss; /* what they write */
};

void
gtorch_trainer_graph_free (GTorchTrainerGraph *graph)
{
  g_clear_object (&graph->graph);
  g_clear_object (&graph->further);
  g_clear_object (&graph->update);
  g_clear_pointer (&graph->params, g_ptr_array_unref);
  g_clear_pointer (&graph->grads, g_ptr_array_unref);
  g_clear_object (&graph->further_loss);
  g_clear_pointer (&graph->inputs, gtorch_sample_unref);
  g_clear_object (&graph->loss);
  g_free (graph);
}

/* The size of the first dimension of the first tensor. */
gint64
gtorch_trainer_count_samples (GTorchSample *batch)
{
  g_autoptr (GPtrArray) tensors = gtorch_sample_get_tensors (batch);
  GTorchTensor *first = tensors->len > 0 ? tensors->pdata[0] : NULL;

  return first != NULL && gtorch_tensor_unwrap (first)->n_dims > 0
             ? gtorch_tensor_unwrap (first)->shape[0]
             : 1;
}

GTorchSample *
gtorch_trainer_run_move (GTorchTrainerRun *run, GTorchSample *batch, GError **error)
{
  return gtorch_sample_to_device (batch, run->device, TRUE, error);
}

/* --- points --- */

static gdouble
get_learning_rate (GTorchTrainerRun *run)
{
  return gtorch_optimizer_get_learning_rate (run->priv->optimizer);
}

gboolean
gtorch_trainer_run_add_point (GTorchTrainerRun *run, GTorchTensor *loss, GError **error)
{
  GTorchStream *stream =
      run->stream != NULL ? run->stream : gtorch_stream_get_current (run->device);
  g_autoptr (GTorchEvent) event = gtorch_event_new (GTORCH_EVENT_NONE);
  g_autoptr (GTorchTensor) near = NULL;
  GTorchTrainerPoint *point;

  if (loss != NULL)
    {
      g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();

      /* A copy: a graph overwrites its own. */
      near = gtorch_tensor_wrap (gtorch_op_to (gtorch_tensor_unwrap (loss), GTORCH_DTYPE_NONE,
                                               gtorch_device_cpu (), TRUE, TRUE, error));
      if (near == NULL)
        return FALSE;
    }
  if (!gtorch_event_record (event, stream, error))
    return FALSE;
  point = g_new (GTorchTrainerPoint, 1);
  *point = (GTorchTrainerPoint){
    g_steal_pointer (&event), g_steal_pointer (&near), run->step, run->epoch,
    run->n_samples,           get_learning_rate (run)
  };
  g_queue_push_tail (&run->points, point);
  return TRUE;
}

/* --- batches --- */

static GTorchTensor *
compute_loss (GTorchTrainerRun *run, GTorchSample *batch, GError **error)
{
  g_autoptr (GTorchAutocastGuard) autocast = NULL;
  g_autoptr (GTorchTensor) loss = NULL;

  if (run->settings.autocast != GTORCH_DTYPE_NONE)
    {
      autocast = gtorch_autocast_guard_new (gtorch_device_get_device_type (run->device),
                                            run->settings.autocast, TRUE, TRUE, error);
      if (autocast == NULL)
        return NULL;
    }
  loss = gtorch_trainer_training_step (run->trainer, batch, error);
  if (loss == NULL || gtorch_tensor_get_numel (loss) == 1)
    return g_steal_pointer (&loss);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("training_step: the loss has the shape %s, and must be one number"),
               gtorch_impl_shape_str (gtorch_tensor_unwrap (loss)));
  return NULL;
}

/* What backward begins with: the share of the batch in the step, scaled. */
static GTorchTensor *
scale_loss (GTorchTrainerRun *run, GTorchTensor *loss, GError **error)
{
  const gint64 n = run->settings.accumulate_steps;
  g_autoptr (GTorchTensor) share = g_object_ref (loss);

  if (n > 1)
    {
      g_autoptr (GTorchImpl) number = gtorch_impl_new_number (n);

      g_object_unref (share);
      share = gtorch_tensor_wrap (gtorch_op_div (gtorch_tensor_unwrap (loss), number, error));
    }
  if (share == NULL || run->settings.scaler == NULL)
    return g_steal_pointer (&share);
  return gtorch_grad_scaler_scale (run->settings.scaler, share, error);
}

/* Adds the loss to that of the step. */
static gboolean
add_loss (GTorchTrainerRun *run, GTorchTensor *loss, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  g_autoptr (GTorchTensor) plain = gtorch_tensor_detach (loss, error);

  if (plain != NULL && run->n_accumulated > 0)
    {
      GTorchImpl *sum =
          gtorch_op_add (gtorch_tensor_unwrap (run->loss), gtorch_tensor_unwrap (plain), 1, error);

      g_object_unref (plain);
      plain = gtorch_tensor_wrap (sum);
    }
  if (plain == NULL)
    return FALSE;
  g_set_object (&run->loss, plain);
  return TRUE;
}

/* Lets the parameters have the gradients that graphs write, whatever handlers have done meanwhile. */
static gboolean
restore_grads (GTorchTrainerGraph *graph, GError **error)
{
  for (guint i = 0; i < graph->params->len; i++)
    {
      g_autoptr (GTorchTensor) grad = gtorch_tensor_get_grad (graph->params->pdata[i]);

      if (grad != graph->grads->pdata[i]
          && !gtorch_tensor_set_grad (graph->params->pdata[i], graph->grads->pdata[i], error))
        return FALSE;
    }
  return TRUE;
}

/* Before the first batch of a step. */
static gboolean
reset_grads (GTorchTrainerRun *run, GError **error)
{
  const gboolean is_fixed = run->graph != NULL && run->graph->update != NULL;

  run->n_samples = 0;
  return (!is_fixed || restore_grads (run->graph, error))
         && gtorch_optimizer_zero_grad (run->priv->optimizer, !is_fixed, error);
}

static gboolean
go_through (GTorchTrainerRun *run, GTorchSample *batch, GError **error)
{
  g_autoptr (GTorchTensor) loss = NULL;
  g_autoptr (GTorchTensor) scaled = NULL;

  loss = compute_loss (run, batch, error);
  scaled = loss != NULL ? scale_loss (run, loss, error) : NULL;
  if (scaled == NULL || !gtorch_tensor_backward (scaled, NULL, FALSE, FALSE, error)
      || !add_loss (run, loss, error))
    return FALSE;
  run->n_accumulated++;
  run->n_samples += gtorch_trainer_count_samples (batch);
  return TRUE;
}

static gboolean
compute_batch (GTorchTrainerRun *run, GTorchSample *batch, GError **error)
{
  return (run->n_accumulated > 0 || reset_grads (run, error)) && go_through (run, batch, error);
}

/* --- steps --- */

static gboolean
clip (GTorchTrainerRun *run, GError **error)
{
  g_autoptr (GPtrArray) params = NULL;
  g_autoptr (GTorchTensor) norm = NULL;

  if (run->settings.clip_norm == 0)
    return TRUE;
  if (run->settings.scaler != NULL
      && !gtorch_grad_scaler_unscale (run->settings.scaler, run->priv->optimizer, error))
    return FALSE;
  params = gtorch_optimizer_dup_params (run->priv->optimizer);
  norm = gtorch_clip_grad_norm ((GTorchTensor **) params->pdata, params->len,
                                run->settings.clip_norm, 2, FALSE, error);
  return norm != NULL;
}

static gboolean
update (GTorchTrainerRun *run, GError **error)
{
  GTorchGradScaler *scaler = run->settings.scaler;

  if (!clip (run, error))
    return FALSE;
  if (scaler == NULL)
    return gtorch_optimizer_step (run->priv->optimizer, error);
  return gtorch_grad_scaler_step (scaler, run->priv->optimizer, error)
         && gtorch_grad_scaler_update (scaler, NULL, error);
}

/* The last step of an epoch may have fewer batches than the others: its gradients are the mean of those. */
static gboolean
complete_mean (GTorchTrainerRun *run, GError **error)
{
  const gint64 n = run->settings.accumulate_steps;
  g_autoptr (GTorchGradGuard) guard = NULL;
  g_autoptr (GTorchImpl) factor = NULL;
  g_autoptr (GPtrArray) params = NULL;

  if (run->n_accumulated >= n)
    return TRUE;
  guard = gtorch_no_grad ();
  factor = gtorch_impl_new_number ((gdouble) n / run->n_accumulated);
  params = gtorch_optimizer_dup_params (run->priv->optimizer);
  for (guint i = 0; i < params->len; i++)
    {
      g_autoptr (GTorchTensor) grad = gtorch_tensor_get_grad (params->pdata[i]);

      if (grad != NULL && !gtorch_op_mul_inplace (gtorch_tensor_unwrap (grad), factor, error))
        return FALSE;
    }
  return TRUE;
}

/* The mean loss of the batches of the step. */
static GTorchTensor *
mean_loss (GTorchTrainerRun *run, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  g_autoptr (GTorchImpl) number = gtorch_impl_new_number (run->n_accumulated);

  if (run->n_accumulated == 1)
    return g_object_ref (run->loss);
  return gtorch_tensor_wrap (gtorch_op_div (gtorch_tensor_unwrap (run->loss), number, error));
}

gboolean
gtorch_trainer_run_step (GTorchTrainerRun *run, GError **error)
{
  const GTorchTrainerGraph *graph = run->graph;
  const gboolean is_replayed = graph != NULL && run->loss == graph->loss;
  GPtrArray *schedules = run->priv->schedules;
  g_autoptr (GTorchTensor) loss = NULL;

  if (!is_replayed && !complete_mean (run, error))
    return FALSE;
  if (graph != NULL && graph->update != NULL)
    {
      if (!gtorch_cuda_graph_replay_on (graph->update, run->stream, error))
        return FALSE;
    }
  else if (!is_replayed && !update (run, error))
    return FALSE;
  loss = mean_loss (run, error);
  run->step++;
  if (loss == NULL || !gtorch_trainer_run_add_point (run, loss, error))
    return FALSE;
  run->n_accumulated = 0;
  g_clear_object (&run->loss);
  for (guint i = 0; i < schedules->len; i++)
    {
      const GTorchTrainerSchedule *one = schedules->pdata[i];

      if (one->interval == GTORCH_TRAINER_INTERVAL_STEP
          && !gtorch_lr_scheduler_step (one->scheduler, error))
        return FALSE;
    }
  return TRUE;
}

/* --- graphs --- */

static GTorchTensor *
copy_tensor (GTorchTensor *tensor, gpointer data, GError **error)
{
  return gtorch_tensor_wrap (gtorch_op_clone (gtorch_tensor_unwrap (tensor), error));
}

static gboolean
capture_step (GTorchStream *stream, gpointer data, GError **error)
{
  GTorchTrainerRun *run = data;

  return compute_batch (run, run->graph->inputs, error) && update (run, error);
}

static gboolean
capture_first (GTorchStream *stream, gpointer data, GError **error)
{
  GTorchTrainerRun *run = data;

  return compute_batch (run, run->graph->inputs, error);
}

static gboolean
capture_further (GTorchStream *stream, gpointer data, GError **error)
{
  GTorchTrainerRun *run = data;

  return go_through (run, run->graph->inputs, error);
}

static gboolean
capture_update (GTorchStream *stream, gpointer data, GError **error)
{
  return update (data, error);
}

/* Captures what computes a loss, or, with `loss` NULL, does not. */
static GTorchCUDAGraph *
capture_one (GTorchTrainerRun *run, GTorchStreamFunc func, GTorchTensor **loss, GError **error)
{
  GTorchCUDAGraph *first = run->graph->graph;
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  gboolean result;

  gtorch_cuda_graph_set_warmup_iterations (graph, 0);
  run->n_accumulated = 0;
  result = gtorch_cuda_graph_capture (graph, run->stream,
                                      first != NULL ? gtorch_cuda_graph_get_pool (first) : NULL,
                                      func, run, error);
  run->n_accumulated = 0;
  if (result && loss != NULL)
    *loss = g_steal_pointer (&run->loss);
  g_clear_object (&run->loss);
  return result ? g_steal_pointer (&graph) : NULL;
}

/* The parameters of the optimizer that have gradients, and these. */
static void
find_grads (GTorchTrainerRun *run, GPtrArray **params, GPtrArray **grads)
{
  g_autoptr (GPtrArray) all = gtorch_optimizer_dup_params (run->priv->optimizer);

  *params = g_ptr_array_new_with_free_func (g_object_unref);
  *grads = g_ptr_array_new_with_free_func (g_object_unref);
  for (guint i = 0; i < all->len; i++)
    {
      GTorchTensor *grad = gtorch_tensor_get_grad (all->pdata[i]);

      if (grad == NULL)
        continue;
      g_ptr_array_add (*params, g_object_ref (all->pdata[i]));
      g_ptr_array_add (*grads, grad);
    }
}

/* A gradient that only further batches have would be written anew by each of them. */
static gboolean
check_grads (GTorchTrainerRun *run, GError **error)
{
  const GTorchTrainerGraph *graph = run->graph;
  g_autoptr (GPtrArray) params = NULL;
  g_autoptr (GPtrArray) grads = NULL;

  find_grads (run, &params, &grads);
  for (guint i = 0; i < grads->len; i++)
    if (i >= graph->grads->len || grads->pdata[i] != graph->grads->pdata[i])
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("trainer: graph is set and accumulate_steps is %" PRId64
                        ": the first batch of a step gives the parameter of shape %s no gradient, "
                        "and the next one does: a graph computes the same for all"),
                     run->settings.accumulate_steps,
                     gtorch_impl_shape_str (gtorch_tensor_unwrap (params->pdata[i])));
        return FALSE;
      }
  return TRUE;
}

/* Before the first batch of a step. */
static gboolean
capture (GTorchTrainerRun *run, GTorchSample *batch, GError **error)
{
  const gboolean accumulates = run->settings.accumulate_steps > 1;
  GTorchTrainerGraph *graph = run->graph;

  graph->inputs = gtorch_sample_map_tensors (batch, copy_tensor, NULL, error);
  if (graph->inputs == NULL)
    return FALSE;
  graph->graph = capture_one (run, accumulates ? capture_first : capture_step, &graph->loss, error);
  if (graph->graph == NULL || !accumulates)
    return graph->graph != NULL;
  find_grads (run, &graph->params, &graph->grads);
  graph->further = capture_one (run, capture_further, &graph->further_loss, error);
  if (graph->further == NULL || !check_grads (run, error))
    return FALSE;
  graph->update = capture_one (run, capture_update, NULL, error);
  return graph->update != NULL;
}

/* Copies the batch to where the graph reads; FALSE without an error if it has another shape. */
static gboolean
fill (GTorchTrainerGraph *graph, GTorchSample *batch, gboolean *fits, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  g_autoptr (GPtrArray) to = gtorch_sample_get_tensors (graph->inputs);
  g_autoptr (GPtrArray) from = gtorch_sample_get_tensors (batch);

  *fits = to->len == from->len;
  for (guint i = 0; i < to->len && *fits; i++)
    {
      const GTorchImpl *here = gtorch_tensor_unwrap (to->pdata[i]);
      const GTorchImpl *there = gtorch_tensor_unwrap (from->pdata[i]);

      *fits = gtorch_impl_same_shape (here, there) && here->dtype == there->dtype;
    }
  for (guint i = 0; i < to->len && *fits; i++)
    if (!gtorch_op_copy_inplace (gtorch_tensor_unwrap (to->pdata[i]),
                                 gtorch_tensor_unwrap (from->pdata[i]), TRUE, error))
      return FALSE;
  return TRUE;
}

/* A batch of several, of which the next replay overwrites the loss. */
static gboolean
replay_passes (GTorchTrainerRun *run, GError **error)
{
  GTorchTrainerGraph *graph = run->graph;
  const gboolean is_first = run->n_accumulated == 0;
  g_autoptr (GTorchTensor) loss = NULL;

  if (is_first && !restore_grads (graph, error))
    return FALSE;
  if (!gtorch_cuda_graph_replay_on (is_first ? graph->graph : graph->further, run->stream, error))
    return FALSE;
  loss = copy_tensor (is_first ? graph->loss : graph->further_loss, NULL, error);
  return loss != NULL && add_loss (run, loss, error);
}

static gboolean
replay (GTorchTrainerRun *run, GTorchSample *batch, gboolean *fits, GError **error)
{
  GTorchTrainerGraph *graph = run->graph;

  if (!fill (graph, batch, fits, error) || !*fits)
    return !*fits;
  if (run->n_accumulated == 0)
    run->n_samples = 0;
  if (graph->update != NULL)
    {
      if (!replay_passes (run, error))
        return FALSE;
    }
  else
    {
      if (!gtorch_cuda_graph_replay_on (graph->graph, run->stream, error))
        return FALSE;
      g_set_object (&run->loss, graph->loss);
    }
  run->n_accumulated++;
  run->n_samples += gtorch_trainer_count_samples (batch);
  return TRUE;
}

gboolean
gtorch_trainer_run_batch (GTorchTrainerRun *run, GTorchSample *batch, GError **error)
{
  g_autoptr (GTorchSample) here = gtorch_trainer_run_move (run, batch, error);
  GTorchTrainerGraph *graph;
  gboolean fits = FALSE;

  if (here == NULL)
    return FALSE;
  if (!run->settings.graph)
    return compute_batch (run, here, error);
  if (run->graph == NULL)
    run->graph = g_new0 (GTorchTrainerGraph, 1);
  graph = run->graph;
  if (graph->graph == NULL && (run->n_accumulated > 0 || graph->n_steps++ < WARMUP))
    return compute_batch (run, here, error);
  if (graph->graph == NULL && !capture (run, here, error))
    return FALSE;
  if (!replay (run, here, &fits, error))
    return FALSE;
  return fits || compute_batch (run, here, error);
}
