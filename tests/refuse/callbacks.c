/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Functions to pass to functions. */

#include "config.h"

#include "refuse.h"

static gboolean
object_func (gpointer object, gpointer user_data, GError **error)
{
  return refuse_called_back (error);
}

static gboolean
autocast_func (gpointer user_data, GError **error)
{
  return refuse_called_back (error);
}

static GTorchTensor *
gradcheck_func (GTorchTensor **inputs, gsize n_inputs, gpointer user_data, GError **error)
{
  return refuse_called_back (error) && n_inputs > 0
             ? gtorch_tensor_mul (inputs[0], inputs[0], error)
             : NULL;
}

static GTorchTensor *
distance_func (GTorchTensor *x1, GTorchTensor *x2, gpointer user_data, GError **error)
{
  return refuse_called_back (error) ? gtorch_tensor_sub (x1, x2, 1, error) : NULL;
}

static GTorchTensor *
closure_func (gpointer user_data, GError **error)
{
  return refuse_called_back (error) ? gtorch_ones (GTORCH_SHAPE (1), GTORCH_DTYPE_NONE, NULL, error)
                                    : NULL;
}

static GBytes *
save_func (GTorchTrainer *trainer, gpointer data, GError **error)
{
  return refuse_called_back (error) ? g_bytes_new (NULL, 0) : NULL;
}

static gboolean
load_func (GTorchTrainer *trainer, GBytes *state, gpointer data, GError **error)
{
  return refuse_called_back (error);
}

static GTorchTensor *
step_func (GTorchTrainer *trainer, GTorchSample *batch, gpointer user_data, GError **error)
{
  return closure_func (user_data, error);
}

static GTorchTensor *
average_func (GTorchAveragedModel *self, GTorchTensor *averaged, GTorchTensor *current,
              GTorchTensor *n_averaged, gpointer user_data, GError **error)
{
  return refuse_called_back (error) ? g_object_ref (current) : NULL;
}

static gboolean
multi_average_func (GTorchAveragedModel *self, GTorchTensor **averaged, gsize n_tensors,
                    GTorchTensor **current, gsize n_current, GTorchTensor *n_averaged,
                    gpointer user_data, GError **error)
{
  return refuse_called_back (error);
}

/* There is no batch. */
static GTorchTensor *
batch_func (gpointer user_data, GError **error)
{
  refuse_called_back (error);
  return NULL;
}

static GTorchSample *
collate_func (GTorchSample **samples, gsize n_samples, gpointer user_data, GError **error)
{
  return refuse_called_back (error) ? gtorch_sample_ref (samples[0]) : NULL;
}

static GTorchTensor *
map_func (GTorchTensor *tensor, gpointer user_data, GError **error)
{
  return refuse_called_back (error) ? g_object_ref (tensor) : NULL;
}

static GTorchTensor *
alloc_func (GTorchDType dtype, const gint64 *shape, gsize n_dims, gpointer user_data,
            GError **error)
{
  return refuse_called_back (error)
             ? gtorch_empty (shape, n_dims, dtype, gtorch_device_cpu (), error)
             : NULL;
}

static gboolean
worker_func (guint worker, gpointer user_data, GError **error)
{
  return refuse_called_back (error);
}

static GPtrArray *
graphed_func (GTorchTensor **inputs, gsize n_inputs, gpointer user_data, GError **error)
{
  GPtrArray *outputs = g_ptr_array_new_with_free_func (g_object_unref);

  if (!refuse_called_back (error))
    g_clear_pointer (&outputs, g_ptr_array_unref);
  else if (n_inputs > 0)
    g_ptr_array_add (outputs, gtorch_tensor_mul (inputs[0], inputs[0], error));
  return outputs;
}

static GObject *
pack_func (GTorchTensor *tensor, gpointer user_data, GError **error)
{
  return refuse_called_back (error) ? g_object_ref (G_OBJECT (tensor)) : NULL;
}

static GTorchTensor *
unpack_func (GObject *packed, gpointer user_data, GError **error)
{
  return refuse_called_back (error) ? g_object_ref (GTORCH_TENSOR (packed)) : NULL;
}

static gboolean
recompute_func (GTorchTensor **inputs, gsize n_inputs, gpointer user_data, GError **error)
{
  return refuse_called_back (error);
}

static GTorchTensor *
tensor_hook (GTorchTensor *grad, gpointer user_data, GError **error)
{
  return NULL;
}

static GTorchTensor *
comm_hook (GTorchGradBucket *bucket, gpointer user_data, GError **error)
{
  return refuse_called_back (error) ? gtorch_grad_bucket_average (bucket, GTORCH_DTYPE_NONE, error)
                                    : NULL;
}

static gchar *
place_func (gpointer user_data, GError **error)
{
  return NULL;
}

static gboolean
quiet_func (gpointer object, gpointer user_data, GError **error)
{
  return TRUE;
}

static GPtrArray *
module_pre_hook (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs, gpointer user_data,
                 GError **error)
{
  return NULL;
}

static GPtrArray *
backward_pre_hook (GTorchModule *module, GTorchTensor **grads, gsize n, gpointer user_data,
                   GError **error)
{
  return NULL;
}

static GPtrArray *
backward_hook (GTorchModule *module, GTorchTensor **grads, gsize n, GTorchTensor **of_outputs,
               gsize n_outputs, gpointer user_data, GError **error)
{
  return NULL;
}

static GPtrArray *
node_pre_hook (GTorchGradNode *node, GTorchTensor **grads, gsize n, gpointer user_data,
               GError **error)
{
  return NULL;
}

static GPtrArray *
node_hook (GTorchGradNode *node, GTorchTensor **grads, gsize n, GTorchTensor **of_outputs,
           gsize n_outputs, gpointer user_data, GError **error)
{
  return NULL;
}

static GTorchTensor *
module_hook (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs, GTorchTensor *output,
             gpointer user_data, GError **error)
{
  return NULL;
}

static GTorchProfilerAction
schedule_func (guint64 step, gpointer user_data, GError **error)
{
  return GTORCH_PROFILER_ACTION_NONE;
}

static gchar *
stack_func (gpointer user_data, GError **error)
{
  return NULL;
}

static void
references_func (gpointer value, gpointer user_data)
{
}

static void
progress_func (goffset done, goffset total, gpointer user_data)
{
}

static void
destroy_func (gpointer data)
{
}

static const struct
{
  const gchar *type;
  GCallback func;
} funcs[] = {
  { "GAsyncReadyCallback", NULL }, /* test-refuse.c has its own */
  { "GDestroyNotify", G_CALLBACK (destroy_func) },
  { "GFileProgressCallback", G_CALLBACK (progress_func) },
  { "GTorchAccumulatedHook", G_CALLBACK (quiet_func) },
  { "GTorchPlaceFunc", G_CALLBACK (place_func) },
  { "GTorchAutocastFunc", G_CALLBACK (autocast_func) },
  { "GTorchAverageFunc", G_CALLBACK (average_func) },
  { "GTorchBackwardHook", G_CALLBACK (backward_hook) },
  { "GTorchBackwardPreHook", G_CALLBACK (backward_pre_hook) },
  { "GTorchBatchFunc", G_CALLBACK (batch_func) },
  { "GTorchCheckpointFunc", G_CALLBACK (graphed_func) },
  { "GTorchCollateFunc", G_CALLBACK (collate_func) },
  { "GTorchCommHook", G_CALLBACK (comm_hook) },
  { "GTorchDeviceFunc", G_CALLBACK (object_func) },
  { "GTorchDistanceFunc", G_CALLBACK (distance_func) },
  { "GTorchForwardHook", G_CALLBACK (module_hook) },
  { "GTorchForwardPreHook", G_CALLBACK (module_pre_hook) },
  { "GTorchFunctionalFunc", G_CALLBACK (graphed_func) },
  { "GTorchGradNodeHook", G_CALLBACK (node_hook) },
  { "GTorchGradNodePreHook", G_CALLBACK (node_pre_hook) },
  { "GTorchGradcheckFunc", G_CALLBACK (gradcheck_func) },
  { "GTorchGraphedFunc", G_CALLBACK (graphed_func) },
  { "GTorchMemoryPoolFunc", G_CALLBACK (object_func) },
  { "GTorchModuleFunc", G_CALLBACK (quiet_func) },
  { "GTorchMultiAverageFunc", G_CALLBACK (multi_average_func) },
  { "GTorchOptimizerClosure", G_CALLBACK (closure_func) },
  { "GTorchTrainerLoadFunc", G_CALLBACK (load_func) },
  { "GTorchTrainerSaveFunc", G_CALLBACK (save_func) },
  { "GTorchTrainerStepFunc", G_CALLBACK (step_func) },
  { "GTorchPackFunc", G_CALLBACK (pack_func) },
  { "GTorchProfileFunc", G_CALLBACK (autocast_func) },
  { "GTorchProfilerScheduleFunc", G_CALLBACK (schedule_func) },
  { "GTorchProfilerStackFunc", G_CALLBACK (stack_func) },
  { "GTorchRecomputeFunc", G_CALLBACK (recompute_func) },
  { "GTorchReferencesExtraFunc", G_CALLBACK (references_func) },
  { "GTorchReferencesFunc", G_CALLBACK (references_func) },
  { "GTorchReferencesProxyFunc", G_CALLBACK (refuse_no_proxy) },
  { "GTorchSampleAllocFunc", G_CALLBACK (alloc_func) },
  { "GTorchSampleMapFunc", G_CALLBACK (map_func) },
  { "GTorchStreamFunc", G_CALLBACK (object_func) },
  { "GTorchLRFunc", G_CALLBACK (refuse_keep_rate) },
  { "GTorchTensorHook", G_CALLBACK (tensor_hook) },
  { "GTorchUnpackFunc", G_CALLBACK (unpack_func) },
  { "GTorchWorkerInitFunc", G_CALLBACK (worker_func) },
};

gpointer
refuse_func (const Param *param)
{
  guint i;

  for (i = 0; i < G_N_ELEMENTS (funcs); i++)
    if (g_str_equal (funcs[i].type, param->type))
      return (gpointer) funcs[i].func;
  g_error ("objects.c has no %s for “%s”", param->type, param->name);
}
