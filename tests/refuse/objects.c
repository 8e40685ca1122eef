/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Objects to pass to functions: valid ones, and unusual ones. */

#include "config.h"

#include <gio/gio.h>
#include <string.h>

#include "refuse.h"
#include "test-device.h"

CallbackMode callback_mode;

#define SHAPE GTORCH_SHAPE (2, 3)

/* --- subclasses --- */
typedef struct
{
  GTorchFunction parent_instance;
} RefusedFunction;
typedef GTorchFunctionClass RefusedFunctionClass;

GType refused_function_get_type (void);
G_DEFINE_TYPE (RefusedFunction, refused_function, GTORCH_TYPE_FUNCTION)

static GTorchFunctionContext *last_context;

gboolean
refuse_called_back (GError **error)
{
  if (callback_mode == CALLBACK_FAILS)
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_FAILED, "the callback does not want to");
  return callback_mode == CALLBACK_WORKS;
}

static GPtrArray *
refused_function_forward (GTorchFunction *self, GTorchFunctionContext *context,
                          GTorchTensor **inputs, gsize n_inputs, GError **error)
{
  GPtrArray *outputs;

  g_set_object (&last_context, context);
  if (!refuse_called_back (error))
    return NULL;
  outputs = g_ptr_array_new_with_free_func (g_object_unref);
  if (n_inputs > 0)
    g_ptr_array_add (outputs, gtorch_tensor_mul (inputs[0], inputs[0], error));
  return outputs;
}

static GPtrArray *
refused_function_backward (GTorchFunction *self, GTorchFunctionContext *context,
                           GTorchTensor **grads, gsize n_grads, GError **error)
{
  return refused_function_forward (self, context, grads, n_grads, error);
}

static void
refused_function_class_init (RefusedFunctionClass *klass)
{
  klass->forward = refused_function_forward;
  klass->backward = refused_function_backward;
}

static void
refused_function_init (RefusedFunction *self)
{
}

typedef struct
{
  GTorchMemorySource parent_instance;
} RefusedSource;
typedef GTorchMemorySourceClass RefusedSourceClass;

GType refused_source_get_type (void);
G_DEFINE_TYPE (RefusedSource, refused_source, GTORCH_TYPE_MEMORY_SOURCE)

static guint64
refused_source_allocate (GTorchMemorySource *self, GTorchDevice *device, guint64 n_bytes,
                         guint64 stream, GError **error)
{
  refuse_called_back (error);
  return 0;
}

static void
refused_source_release (GTorchMemorySource *self, GTorchDevice *device, guint64 address,
                        guint64 n_bytes, guint64 stream)
{
}

static void
refused_source_class_init (RefusedSourceClass *klass)
{
  klass->allocate = refused_source_allocate;
  klass->release = refused_source_release;
}

static void
refused_source_init (RefusedSource *self)
{
}

/* --- valid objects --- */
static gpointer
make_tensor (void)
{
  return gtorch_ones (SHAPE, GTORCH_DTYPE_FLOAT32, NULL, NULL);
}

static gpointer
make_grad_node (void)
{
  g_autoptr (GTorchTensor) x = make_tensor ();
  g_autoptr (GTorchTensor) y = NULL;

  gtorch_tensor_set_requires_grad (x, TRUE, NULL);
  y = gtorch_tensor_neg (x, NULL);
  return gtorch_tensor_dup_grad_node (y);
}

static gpointer
make_tensor_iter (void)
{
  g_autoptr (GTorchTensor) tensor = make_tensor ();

  return gtorch_tensor_iter_new (tensor);
}

static gpointer
make_size (void)
{
  return gtorch_size_new (SHAPE);
}

static gpointer
make_factors (void)
{
  return gtorch_factors_new ((const gdouble[]){ 2, 1.5 }, 2);
}

static gpointer
make_parameter (void)
{
  g_autoptr (GTorchTensor) data = make_tensor ();

  return gtorch_parameter_new (data, TRUE, NULL);
}

static GListModel *
list_of (GType type, gpointer item)
{
  GListStore *list = g_list_store_new (type);

  if (item != NULL)
    g_list_store_append (list, item);
  g_clear_object (&item);
  return G_LIST_MODEL (list);
}

static gpointer
make_parameters (void)
{
  return list_of (GTORCH_TYPE_PARAMETER, make_parameter ());
}

static gpointer
make_device (void)
{
  return g_object_ref (test_device ());
}

static gpointer
make_stream (void)
{
  return gtorch_stream_new (test_device (), 0, NULL);
}

static gpointer
make_event (void)
{
  return gtorch_event_new (0);
}

static gpointer
make_pool (void)
{
  return gtorch_memory_pool_new (test_device ());
}

static gpointer
make_allocator (void)
{
  return g_object_ref (gtorch_device_get_allocator (test_device ()));
}

static gpointer
make_host_allocator (void)
{
  return g_object_ref (gtorch_host_allocator_get_default ());
}

static gpointer
make_manager (void)
{
  return g_object_ref (gtorch_device_manager_get_default ());
}

static gpointer
make_block (void)
{
  return gtorch_allocator_alloc (gtorch_device_get_allocator (test_device ()), 64, NULL, NULL);
}

static gpointer
make_plan_cache (void)
{
  return g_object_ref (gtorch_device_get_fft_plan_cache (test_device ()));
}

static gpointer
make_function (void)
{
  return g_object_new (refused_function_get_type (), NULL);
}

static gpointer
make_context (void)
{
  g_autoptr (GTorchFunction) function = make_function ();
  g_autoptr (GTorchTensor) input = make_tensor ();
  g_autoptr (GPtrArray) outputs = NULL;

  callback_mode = CALLBACK_WORKS;
  outputs = gtorch_function_apply (function, &input, 1, NULL);
  return g_steal_pointer (&last_context);
}

static gpointer
make_module (void)
{
  return gtorch_linear_new (3, 4, NULL);
}

static gpointer
make_network (void)
{
  return gtorch_lstm_layer_new (3, 4, NULL);
}

static gpointer
make_bilinear (void)
{
  return gtorch_bilinear_new (3, 3, 2, NULL);
}

static gpointer
make_packed_sequence (void)
{
  const gint64 lengths[] = { 2, 1 };
  g_autoptr (GTorchTensor) x =
      gtorch_ones (GTORCH_SHAPE (2, 2, 3), GTORCH_DTYPE_FLOAT32, NULL, NULL);

  return gtorch_pack_padded_sequence (x, lengths, 2, FALSE, FALSE, NULL);
}

static gpointer
make_member_model (void)
{
  g_autoptr (GTorchModule) module = make_module ();

  return gtorch_member_model_new (module, GTORCH_MEMBER_KIND_PARAMETER, TRUE);
}

static gpointer
make_graphed_module (void)
{
  g_autoptr (GTorchModule) module = make_module ();
  g_autoptr (GTorchTensor) sample = make_tensor ();

  return gtorch_graphed_module_new (module, &sample, 1, NULL);
}

static gpointer
make_conv_transpose (void)
{
  const gint64 size = 2;

  return gtorch_conv_transpose2d_new (1, 1, &size, 1, NULL);
}

static gpointer
make_loss (void)
{
  return gtorch_mse_loss_new ();
}

static gpointer
make_attention (void)
{
  return gtorch_multihead_attention_new (4, 2, NULL);
}

static gpointer
make_adaptive (void)
{
  g_autoptr (GTorchSize) cutoffs = gtorch_size_new ((const gint64[]){ 1 }, 1);

  return gtorch_adaptive_log_softmax_with_loss_new (4, 2, cutoffs, NULL);
}

static gpointer
make_triplet (void)
{
  return gtorch_triplet_margin_with_distance_loss_new (NULL, NULL);
}

static gpointer
make_encoder_layer (void)
{
  return gtorch_transformer_encoder_layer_new (4, 2, NULL);
}

static gpointer
make_decoder_layer (void)
{
  return gtorch_transformer_decoder_layer_new (4, 2, NULL);
}

static gpointer
make_encoder (void)
{
  g_autoptr (GTorchEncoder) layer = make_encoder_layer ();

  return gtorch_transformer_encoder_new (layer, 1, NULL, NULL);
}

static gpointer
make_decoder (void)
{
  g_autoptr (GTorchDecoder) layer = make_decoder_layer ();

  return gtorch_transformer_decoder_new (layer, 1, NULL, NULL);
}

static gpointer
make_transformer (void)
{
  return gtorch_module_new (GTORCH_TYPE_TRANSFORMER, NULL, "d-model", (gint64) 4, "nhead",
                            (gint64) 2, "num-encoder-layers", (gint64) 1, "num-decoder-layers",
                            (gint64) 1, NULL);
}

static gpointer
make_sequential (void)
{
  g_autoptr (GTorchModule) module = make_module ();
  GTorchSequential *self = gtorch_sequential_new ();

  gtorch_sequential_append (self, module, NULL);
  return self;
}

static gpointer
make_parametrization_list (void)
{
  g_autoptr (GTorchModule) module = make_module ();
  g_autoptr (GTorchWeightNorm) norm = gtorch_weight_norm_new (0);

  gtorch_module_register_parametrization (module, "weight", GTORCH_MODULE (norm), TRUE, NULL);
  return gtorch_module_get_module (module, "parametrizations.weight", NULL);
}

static gpointer
make_optimizer (void)
{
  g_autoptr (GListModel) params = make_parameters ();

  return gtorch_sgd_new (params, 0.1, 0.9, NULL);
}

static gpointer
make_scheduler (void)
{
  g_autoptr (GTorchOptimizer) optimizer = make_optimizer ();

  return gtorch_step_lr_new (optimizer, 2, 0.5, NULL);
}

static gpointer
make_adafactor (void)
{
  g_autoptr (GListModel) params = make_parameters ();

  return gtorch_adafactor_new (params, 0.1, NULL);
}

static gpointer
make_averaged_model (void)
{
  g_autoptr (GTorchModule) model = make_module ();

  return gtorch_averaged_model_new (model, NULL, FALSE, NULL);
}

static gpointer
make_lbfgs (void)
{
  g_autoptr (GListModel) params = make_parameters ();

  return gtorch_lbfgs_new (params, 0.1, NULL);
}

static gpointer
make_muon (void)
{
  g_autoptr (GTorchTensor) matrix =
      gtorch_ones (GTORCH_SHAPE (2, 3), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GListModel) params =
      list_of (GTORCH_TYPE_PARAMETER, gtorch_parameter_new (matrix, TRUE, NULL));

  return gtorch_muon_new (params, 0.1, 0, NULL);
}

gboolean
refuse_keep_rate (GTorchLRScheduler *scheduler, gint64 n, guint group, gdouble *factor,
                  gpointer data, GError **error)
{
  *factor = 1;
  return TRUE;
}

static gpointer
make_lambda (void)
{
  g_autoptr (GTorchOptimizer) optimizer = make_optimizer ();

  return gtorch_lambda_lr_new (optimizer, refuse_keep_rate, NULL, NULL, NULL);
}

static gpointer
make_multiplicative (void)
{
  g_autoptr (GTorchOptimizer) optimizer = make_optimizer ();

  return gtorch_multiplicative_lr_new (optimizer, refuse_keep_rate, NULL, NULL, NULL);
}

static gpointer
make_cyclic (void)
{
  g_autoptr (GTorchOptimizer) optimizer = make_optimizer ();

  return gtorch_cyclic_lr_new (optimizer, (const gdouble[]){ 0.1 }, 1, (const gdouble[]){ 1 }, 1, 2,
                               GTORCH_CYCLIC_MODE_TRIANGULAR, TRUE, NULL);
}

static gpointer
make_one_cycle (void)
{
  g_autoptr (GTorchOptimizer) optimizer = make_optimizer ();

  return gtorch_one_cycle_lr_new (optimizer, (const gdouble[]){ 1 }, 1, 10, TRUE, NULL);
}

static gpointer
make_plateau (void)
{
  g_autoptr (GTorchOptimizer) optimizer = make_optimizer ();

  return gtorch_reduce_lr_on_plateau_new (optimizer, GTORCH_PLATEAU_MODE_MIN, 0.5, 1, NULL);
}

static gpointer
make_swalr (void)
{
  g_autoptr (GTorchOptimizer) optimizer = make_optimizer ();

  return gtorch_swalr_new (optimizer, (const gdouble[]){ 0.1 }, 1, 10, GTORCH_ANNEAL_STRATEGY_COS,
                           NULL);
}

static GListModel *
make_schedulers (void)
{
  g_autoptr (GTorchLRScheduler) scheduler = make_scheduler ();
  GListStore *list = g_list_store_new (GTORCH_TYPE_LR_SCHEDULER);

  g_list_store_append (list, scheduler);
  return G_LIST_MODEL (list);
}

static gpointer
make_chained (void)
{
  g_autoptr (GListModel) list = make_schedulers ();
  g_autoptr (GTorchLRScheduler) first = g_list_model_get_item (list, 0);

  return gtorch_chained_scheduler_new (list, gtorch_lr_scheduler_get_optimizer (first), NULL);
}

static gpointer
make_sequence (void)
{
  g_autoptr (GListModel) list = make_schedulers ();
  g_autoptr (GTorchLRScheduler) first = g_list_model_get_item (list, 0);
  g_autoptr (GTorchSize) milestones = gtorch_size_new (NULL, 0);

  return gtorch_sequential_lr_new (gtorch_lr_scheduler_get_optimizer (first), list, milestones,
                                   NULL);
}

static gpointer
make_group (void)
{
  g_autoptr (GListModel) params = make_parameters ();

  return gtorch_param_group_new (params, 0.1, 0.0, NULL);
}

static gpointer
make_timer (void)
{
  return gtorch_timer_new (NULL);
}

static gpointer
make_source (void)
{
  return g_object_new (refused_source_get_type (), NULL);
}

static gpointer
make_capture (void)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchStream) stream = make_stream ();

  return gtorch_graph_capture_new (graph, stream, NULL, GTORCH_CAPTURE_MODE_THREAD_LOCAL, NULL);
}

static gpointer
make_autocast_guard (void)
{
  return gtorch_autocast_guard_new (GTORCH_DEVICE_TYPE_CPU, GTORCH_DTYPE_BFLOAT16, TRUE, TRUE,
                                    NULL);
}

gpointer
refuse_no_proxy (GObject *object)
{
  return NULL;
}

static gpointer
make_references (void)
{
  return gtorch_references_new (refuse_no_proxy, NULL, NULL);
}

static gpointer
make_saved_tensors_guard (void)
{
  return gtorch_save_on_cpu (FALSE, NULL);
}

static gpointer
make_device_guard (void)
{
  return gtorch_device_guard_new (test_device (), NULL);
}

static gpointer
make_default_device_guard (void)
{
  return gtorch_default_device_guard_new (gtorch_device_cpu ());
}

static gpointer
make_stream_guard (void)
{
  g_autoptr (GTorchStream) stream = make_stream ();

  return gtorch_stream_guard_new (stream);
}

static gpointer
make_pool_guard (void)
{
  g_autoptr (GTorchMemoryPool) pool = make_pool ();

  return gtorch_memory_pool_guard_new (pool);
}

static gpointer
make_monitor (void)
{
  GTorchDevice *device = gtorch_device_cuda (0, NULL);

  return device != NULL ? gtorch_device_monitor_new (device, NULL) : NULL;
}

static gpointer
make_table (void)
{
  GHashTable *table = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_object_unref);

  g_hash_table_insert (table, g_strdup ("weight"), make_tensor ());
  return table;
}

static gpointer
make_bytes (void)
{
  return g_bytes_new_static ("It has twenty-four bytes", 24);
}

static gpointer
make_error (void)
{
  return g_error_new_literal (GTORCH_ERROR, GTORCH_ERROR_FAILED, "of a test");
}

static gpointer
make_result (void)
{
  return g_task_new (NULL, NULL, NULL, NULL);
}

static gpointer
make_input (void)
{
  return g_memory_input_stream_new_from_data ("It has twenty-four bytes", 24, NULL);
}

static gpointer
make_output (void)
{
  return g_memory_output_stream_new_resizable ();
}

static gpointer
make_nothing (void)
{
  return NULL;
}

static const struct
{
  const gchar *type;
  gpointer (*make) (void);
} makers[] = {
  { "GAsyncResult", make_result },
  { "GBytes", make_bytes },
  { "GCancellable", make_nothing },
  { "GError", make_error },
  { "GHashTable", make_table },
  { "GInputStream", make_input },
  { "GListModel", make_parameters },
  { "GObject", (gpointer (*) (void)) make_tensor },
  { "GOutputStream", make_output },
  { "GTorchAdafactor", make_adafactor },
  { "GTorchAllocator", make_allocator },
  { "GTorchAdaptiveLogSoftmaxWithLoss", make_adaptive },
  { "GTorchAttention", make_attention },
  { "GTorchAutocastGuard", make_autocast_guard },
  { "GTorchAveragedModel", make_averaged_model },
  { "GTorchBilinear", make_bilinear },
  { "GTorchCUDAGraph", (gpointer (*) (void)) gtorch_cuda_graph_new },
  { "GTorchChainedScheduler", make_chained },
  { "GTorchCyclicLR", make_cyclic },
  { "GTorchConvTranspose", make_conv_transpose },
  { "GTorchDevice", make_device },
  { "GTorchDecoder", make_decoder },
  { "GTorchDefaultDeviceGuard", make_default_device_guard },
  { "GTorchDeviceGuard", make_device_guard },
  { "GTorchDeviceManager", make_manager },
  { "GTorchDeviceMonitor", make_monitor },
  { "GTorchDeviceProcess", make_nothing }, /* only the monitor of a GPU creates these */
  { "GTorchEncoder", make_encoder },
  { "GTorchEvent", make_event },
  { "GTorchFFTPlanCache", make_plan_cache },
  { "GTorchFunction", make_function },
  { "GTorchFunctionContext", make_context },
  { "GTorchGenerator", (gpointer (*) (void)) gtorch_generator_new },
  { "GTorchGradGuard", (gpointer (*) (void)) gtorch_no_grad },
  { "GTorchGradScaler", (gpointer (*) (void)) gtorch_grad_scaler_new },
  { "GTorchGraphCapture", make_capture },
  { "GTorchGraphedModule", make_graphed_module },
  { "GTorchHostAllocator", make_host_allocator },
  { "GTorchLRScheduler", make_scheduler },
  { "GTorchLambdaLR", make_lambda },
  { "GTorchLoss", make_loss },
  { "GTorchMemberModel", make_member_model },
  { "GTorchMemoryBlock", make_block },
  { "GTorchMemoryPool", make_pool },
  { "GTorchMemoryPoolGuard", make_pool_guard },
  { "GTorchMemorySource", make_source },
  { "GTorchModule", make_module },
  { "GTorchMultiplicativeLR", make_multiplicative },
  { "GTorchLBFGS", make_lbfgs },
  { "GTorchMuon", make_muon },
  { "GTorchOneCycleLR", make_one_cycle },
  { "GTorchMultiheadAttention", make_attention },
  { "GTorchOptimizer", make_optimizer },
  { "GTorchPackedSequence", make_packed_sequence },
  { "GTorchParamGroup", make_group },
  { "GTorchParameter", make_parameter },
  { "GTorchParametrizationList", make_parametrization_list },
  { "GTorchReduceLROnPlateau", make_plateau },
  { "GTorchRNNBase", make_network },
  { "GTorchReferences", make_references },
  { "GTorchSWALR", make_swalr },
  { "GTorchSavedTensorsGuard", make_saved_tensors_guard },
  { "GTorchScope", (gpointer (*) (void)) gtorch_scope_new },
  { "GTorchSequential", make_sequential },
  { "GTorchSequentialLR", make_sequence },
  { "GTorchGradNode", make_grad_node },
  { "GTorchAccuracy", refuse_make_accuracy },
  { "GTorchCSVLog", refuse_make_csv_log },
  { "GTorchClassScore", refuse_make_f1_score },
  { "GTorchConfusionMatrix", refuse_make_confusion_matrix },
  { "GTorchEventWriter", refuse_make_event_writer },
  { "GTorchExporter", refuse_make_exporter },
  { "GTorchF1Score", refuse_make_f1_score },
  { "GTorchJSONLog", refuse_make_json_log },
  { "GTorchLog", refuse_make_json_log },
  { "GTorchMeanMetric", (gpointer (*) (void)) gtorch_mean_metric_new },
  { "GTorchMeanSquaredError", refuse_make_mean_squared_error },
  { "GTorchMetric", refuse_make_accuracy },
  { "GTorchPerplexity", (gpointer (*) (void)) gtorch_perplexity_new },
  { "GTorchPrecisionScore", refuse_make_precision_score },
  { "GTorchProgressBar", (gpointer (*) (void)) gtorch_progress_bar_new },
  { "GTorchRecallScore", refuse_make_recall_score },
  { "GTorchTrainer", refuse_make_trainer },
  { "GTorchProfileList", refuse_make_profile_list },
  { "GTorchProfileRange", refuse_make_profile_range },
  { "GTorchProfileRow", refuse_make_profile_row },
  { "GTorchProfiler", (gpointer (*) (void)) gtorch_profiler_new },
  { "GTorchSize", make_size },
  { "GTorchFactors", make_factors },
  { "GTorchStream", make_stream },
  { "GTorchStreamGuard", make_stream_guard },
  { "GTorchTensor", make_tensor },
  { "GTorchTensorIter", make_tensor_iter },
  { "GTorchTimer", make_timer },
  { "GTorchTransformer", make_transformer },
  { "GTorchTransformerDecoder", make_decoder },
  { "GTorchTripletMarginWithDistanceLoss", make_triplet },
  { "GTorchTransformerDecoderLayer", make_decoder_layer },
  { "GTorchTransformerEncoder", make_encoder },
  { "GTorchTransformerEncoderLayer", make_encoder_layer },
};

/* Tables of strings cannot be told from other tables. */
static gboolean
is_metadata (const Param *param)
{
  return g_str_equal (param->name, "metadata");
}

static gpointer
make_metadata (const gchar *value)
{
  GHashTable *table = g_hash_table_new (g_str_hash, g_str_equal);

  g_hash_table_insert (table, (gpointer) "author", (gpointer) value);
  return table;
}

gpointer
refuse_make (const Param *param)
{
  gpointer made = refuse_make_data (param->type);

  guint i;

  if (made == NULL)
    made = refuse_make_file_object (param->type);
  if (made == NULL)
    made = refuse_make_text_object (param->type);
  if (made == NULL)
    made = refuse_make_distributed (param->type);
  if (made == NULL && refuse_library.make != NULL)
    made = refuse_library.make (param->type);

  if (made != NULL)
    return made;
  if (is_metadata (param))
    return make_metadata ("somebody");
  for (i = 0; i < G_N_ELEMENTS (makers); i++)
    if (g_str_equal (makers[i].type, param->type))
      return makers[i].make ();
  /* other layers need no arguments */
  if (param->get_type != NULL && g_type_is_a (param->get_type (), GTORCH_TYPE_MODULE))
    return g_object_new (param->get_type (), NULL);
  g_error ("objects.c does not know how to make a %s for “%s”", param->type, param->name);
}

void
refuse_drop (const Param *param, gpointer object)
{
  if (object == NULL)
    return;
  if (g_str_equal (param->type, "GBytes"))
    g_bytes_unref (object);
  else if (g_str_equal (param->type, "GError"))
    g_error_free (object);
  else if (g_str_equal (param->type, "GHashTable"))
    g_hash_table_unref (object);
  else if (g_str_equal (param->type, "GTorchReferences"))
    gtorch_references_free (object);
  else if (g_str_equal (param->type, "GVariant"))
    g_variant_unref (object);
  else if (g_str_equal (param->type, "GValue"))
    g_free (object); /* an integer */
  else if (g_str_equal (param->type, "cairo_t"))
    refuse_library.drop_context (object);
  else if (param->get_type != NULL && !G_TYPE_IS_OBJECT (param->get_type ()))
    g_boxed_free (param->get_type (), object);
  else
    g_object_unref (object);
}

/* --- unusual objects --- */
static gpointer
make_odd_tensor (guint m, const gchar **what)
{
  g_autoptr (GTorchTensor) x = NULL;
  GTorchTensor *tensor;

  switch (m)
    {
    case 0:
      *what = "is released";
      tensor = make_tensor ();
      gtorch_tensor_release (tensor);
      return tensor;
    case 1:
      *what = "has no elements";
      return gtorch_zeros (GTORCH_SHAPE (0, 3), GTORCH_DTYPE_FLOAT32, NULL, NULL);
    case 2:
      *what = "has no dimensions";
      return gtorch_zeros (NULL, 0, GTORCH_DTYPE_FLOAT64, NULL, NULL);
    case 3:
      *what = "is int64";
      return gtorch_ones (SHAPE, GTORCH_DTYPE_INT64, NULL, NULL);
    case 4:
      *what = "is complex64";
      return gtorch_ones (SHAPE, GTORCH_DTYPE_COMPLEX64, NULL, NULL);
    case 5:
      *what = "is a leaf that wants a gradient";
      tensor = make_tensor ();
      gtorch_tensor_set_requires_grad (tensor, TRUE, NULL);
      return tensor;
    case 6:
      *what = "shows one element many times";
      x = gtorch_ones (GTORCH_SHAPE (1), GTORCH_DTYPE_FLOAT32, NULL, NULL);
      return gtorch_tensor_expand (x, SHAPE, NULL);
    default:
      return NULL;
    }
}

static gpointer
make_odd_list (guint m, const gchar **what)
{
  GTorchTensor *released;

  switch (m)
    {
    case 0:
      *what = "is empty";
      return list_of (GTORCH_TYPE_PARAMETER, NULL);
    case 1:
      *what = "has strangers";
      return list_of (G_TYPE_OBJECT, g_object_ref (refuse_stranger ()));
    case 2:
      *what = "has a tensor that wants no gradient";
      return list_of (GTORCH_TYPE_TENSOR, make_tensor ());
    case 3:
      *what = "has a released parameter";
      released = make_parameter ();
      gtorch_tensor_release (released);
      return list_of (GTORCH_TYPE_TENSOR, released);
    default:
      return NULL;
    }
}

static gpointer
make_odd_table (guint m, const gchar **what)
{
  GHashTable *table = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_object_unref);

  switch (m)
    {
    case 0:
      *what = "is empty";
      return table;
    case 1:
      *what = "has strangers";
      g_hash_table_insert (table, g_strdup ("weight"), g_object_ref (refuse_stranger ()));
      return table;
    case 2:
      *what = "has a released tensor";
      g_hash_table_insert (table, g_strdup (""), make_odd_tensor (0, what));
      return table;
    case 3:
      *what = "has a name of bad UTF-8";
      g_hash_table_insert (table, g_strdup ("\xff\xfe.0"), make_tensor ());
      return table;
    case 4:
      *what = "has NULL";
      g_hash_table_destroy (table);
      table = g_hash_table_new (g_str_hash, g_str_equal);
      g_hash_table_insert (table, (gpointer) "weight", NULL);
      return table;
    default:
      g_hash_table_unref (table);
      return NULL;
    }
}

static gpointer
make_odd_stream (guint m, const gchar **what, gpointer stream)
{
  if (m > 0)
    {
      g_object_unref (stream);
      return NULL;
    }
  *what = "is closed";
  if (G_IS_INPUT_STREAM (stream))
    g_input_stream_close (stream, NULL, NULL);
  else
    g_output_stream_close (stream, NULL, NULL);
  return stream;
}

static gpointer
make_odd_device (guint m, const gchar **what)
{
  if (m > 0)
    return NULL;
  *what = "is another";
  return g_object_ref (gtorch_device_cuda (0, NULL) != NULL ? gtorch_device_cuda (0, NULL)
                                                            : test_device ());
}

gpointer
refuse_make_odd (const Param *param, guint m, const gchar **what)
{
  GCancellable *cancellable;

  if (param->get_type != NULL && G_TYPE_IS_OBJECT (param->get_type ())
      && !G_TYPE_IS_ABSTRACT (param->get_type ()))
    {
      *what = "is bare";
      if (m == 0)
        {
          gpointer bare = g_object_new (param->get_type (), NULL);

          return g_object_is_floating (bare) ? g_object_ref_sink (bare) : bare;
        }
      m--;
    }
  if (g_str_equal (param->type, "GTorchTensor"))
    return make_odd_tensor (m, what);
  if (g_str_equal (param->type, "GTorchDevice"))
    return make_odd_device (m, what);
  if (g_str_equal (param->type, "GListModel"))
    return make_odd_list (m, what);
  if (is_metadata (param))
    {
      *what = m == 0 ? "has NULL" : "has bad UTF-8";
      return m < 2 ? make_metadata (m == 0 ? NULL : "\xff") : NULL;
    }
  if (g_str_equal (param->type, "GHashTable"))
    return make_odd_table (m, what);
  if (g_str_equal (param->type, "GInputStream"))
    return make_odd_stream (m, what, make_input ());
  if (g_str_equal (param->type, "GOutputStream"))
    return make_odd_stream (m, what, make_output ());
  *what = "is empty";
  if (g_str_equal (param->type, "GBytes") && m == 0)
    return g_bytes_new (NULL, 0);
  *what = "is cancelled";
  if (g_str_equal (param->type, "GCancellable") && m == 0)
    {
      cancellable = g_cancellable_new ();
      g_cancellable_cancel (cancellable);
      return cancellable;
    }
  return NULL;
}
