/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Layers, optimizers, files, capsules, indexing, printing, streams and graphs: programs that run while
 * something fails. */

#include "config.h"

#include "programs.h"

#include <gio/gio.h>
#include <unistd.h>

#include "test-device.h"

void
state_clear (State *state)
{
  g_clear_pointer (&state->results, g_ptr_array_unref);
  g_clear_pointer (&state->objects, g_hash_table_unref);
}

static gpointer
get (State *state, const gchar *name)
{
  gpointer object = g_hash_table_lookup (state->objects, name);

  g_assert_nonnull (object);
  return object;
}

static void
set (State *state, const gchar *name, gpointer object)
{
  g_assert_nonnull (object);
  g_hash_table_insert (state->objects, (gpointer) name, object);
}

/* Takes the tensor. Returns FALSE if it is NULL. */
static gboolean
give (State *state, gpointer tensor)
{
  if (tensor != NULL)
    g_ptr_array_add (state->results, tensor);
  return tensor != NULL;
}

static GTorchTensor *
waves (GTorchDType dtype, const gint64 *shape, gsize n_dims)
{
  g_autoptr (GError) error = NULL;
  gint64 n = 1;
  g_autofree gdouble *values = NULL;
  GTorchTensor *tensor;
  gsize i;

  for (i = 0; i < n_dims; i++)
    n *= shape[i];
  values = g_new (gdouble, n);
  for (i = 0; i < n; i++)
    values[i] = (gdouble) ((i * 37 + 11) % 64) / 32 - 1;
  tensor = gtorch_tensor_new_from_doubles (values, n, shape, n_dims, dtype, NULL, &error);
  g_assert_no_error (error);
  return tensor;
}

static void
set_waves (State *state, const gchar *name, const gint64 *shape, gsize n_dims)
{
  set (state, name, waves (GTORCH_DTYPE_FLOAT32, shape, n_dims));
}

/* --- layers --- */

static void
prepare_layer (State *state, gpointer layer, const gint64 *shape, gsize n_dims)
{
  set (state, "layer", layer);
  set_waves (state, "input", shape, n_dims);
  gtorch_tensor_set_requires_grad (get (state, "input"), TRUE, NULL);
}

/* Computes the layer's output, and the gradients of its sum. */
static gboolean
run_layer (State *state, GError **error)
{
  GTorchModule *layer = get (state, "layer");
  g_autoptr (GListModel) parameters = gtorch_module_get_parameters (layer, TRUE);
  g_autoptr (GTorchTensor) sum = NULL;
  g_autoptr (GPtrArray) inputs = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GPtrArray) grads = NULL;
  GTorchTensor *output = gtorch_module_forward (layer, get (state, "input"), error);
  GTorchTensor *root;
  guint i;

  if (!give (state, output))
    return FALSE;
  sum = gtorch_tensor_sum (output, NULL, 0, FALSE, GTORCH_DTYPE_NONE, error);
  if (sum == NULL)
    return FALSE;
  g_ptr_array_add (inputs, g_object_ref (get (state, "input")));
  for (i = 0; i < g_list_model_get_n_items (parameters); i++)
    g_ptr_array_add (inputs, g_list_model_get_item (parameters, i));
  root = sum;
  grads = gtorch_autograd_grad (&root, 1, (GTorchTensor **) inputs->pdata, inputs->len, NULL, 0,
                                FALSE, FALSE, TRUE, error);
  for (i = 0; grads != NULL && i < grads->len; i++)
    if (grads->pdata[i] != NULL)
      give (state, g_object_ref (grads->pdata[i]));
  return grads != NULL;
}

static gboolean
run_forward (State *state, GError **error)
{
  return give (state, gtorch_module_forward (get (state, "layer"), get (state, "input"), error));
}

#define LAYER(name, layer, ...)                                \
  static void prepare_##name (State *state)                    \
  {                                                            \
    const gint64 shape[] = { __VA_ARGS__ };                    \
                                                               \
    prepare_layer (state, layer, shape, G_N_ELEMENTS (shape)); \
  }

LAYER (linear, gtorch_linear_new (3, 4, NULL), 2, 3)
LAYER (conv2d,
       gtorch_module_new (GTORCH_TYPE_CONV2D, NULL, "in-channels", (gint64) 2, "out-channels",
                          (gint64) 3, "kernel-size", GTORCH_SIZE (3), "padding", GTORCH_SIZE (1),
                          NULL),
       2, 2, 5, 4)
LAYER (max_pool2d, gtorch_max_pool2d_new (GTORCH_SHAPE (2), NULL), 1, 2, 4, 6)
LAYER (avg_pool2d, gtorch_avg_pool2d_new (GTORCH_SHAPE (2), NULL), 1, 2, 4, 6)
LAYER (adaptive_avg_pool2d, gtorch_adaptive_avg_pool2d_new (GTORCH_SHAPE (2), NULL), 1, 2, 5, 7)
LAYER (batch_norm1d, gtorch_batch_norm1d_new (3, NULL), 4, 3)
LAYER (batch_norm2d, gtorch_batch_norm2d_new (3, NULL), 2, 3, 2, 2)
LAYER (layer_norm, gtorch_layer_norm_new (GTORCH_SHAPE (3, 4), NULL), 2, 3, 4)
LAYER (dropout, gtorch_dropout_new (0.5, NULL), 4, 5)
LAYER (gelu, gtorch_gelu_new (), 2, 3)
LAYER (leaky_relu, g_object_new (GTORCH_TYPE_LEAKY_RELU, "negative-slope", 0.2, NULL), 2, 3)
LAYER (softmax, gtorch_softmax_new (1), 2, 3)
LAYER (log_softmax, gtorch_log_softmax_new (0), 2, 3)
LAYER (silu, gtorch_silu_new (), 2, 3)

static void
prepare_embedding (State *state)
{
  const gint64 indices[] = { 1, 0, 4, 1 };

  set (state, "layer",
       gtorch_module_new (GTORCH_TYPE_EMBEDDING, NULL, "num-embeddings", (gint64) 5,
                          "embedding-dim", (gint64) 3, "padding-idx", (gint64) 1, NULL));
  set (state, "input",
       gtorch_tensor_new_from_ints (indices, 4, GTORCH_SHAPE (4), GTORCH_DTYPE_INT64, NULL, NULL));
}

static void
prepare_loss (State *state, gpointer loss, gboolean has_classes)
{
  const gint64 classes[] = { 2, 0 };

  set (state, "loss", loss);
  set_waves (state, "input", GTORCH_SHAPE (2, 3));
  gtorch_tensor_set_requires_grad (get (state, "input"), TRUE, NULL);
  if (has_classes)
    set (state, "target",
         gtorch_tensor_new_from_ints (classes, 2, GTORCH_SHAPE (2), GTORCH_DTYPE_INT64, NULL,
                                      NULL));
  else
    set (state, "target", gtorch_zeros (GTORCH_SHAPE (2, 3), 0, NULL, NULL));
}

#define LOSS(name, loss, has_classes) \
  static void prepare_##name (State *state) { prepare_loss (state, (loss), (has_classes)); }

LOSS (cross_entropy, gtorch_cross_entropy_loss_new (), TRUE)
LOSS (nll, g_object_new (GTORCH_TYPE_NLL_LOSS, "reduction", GTORCH_REDUCTION_SUM, NULL), TRUE)
LOSS (bce_with_logits, gtorch_bce_with_logits_loss_new (), FALSE)
LOSS (mse, gtorch_mse_loss_new (), FALSE)
LOSS (l1, g_object_new (GTORCH_TYPE_L1_LOSS, "reduction", GTORCH_REDUCTION_SUM, NULL), FALSE)

static gboolean
run_loss (State *state, GError **error)
{
  GTorchTensor *input = get (state, "input");
  g_autoptr (GTorchTensor) loss =
      gtorch_loss_forward (get (state, "loss"), input, get (state, "target"), error);
  g_autoptr (GPtrArray) grads =
      loss != NULL ? gtorch_autograd_grad (&loss, 1, &input, 1, NULL, 0, FALSE, FALSE, FALSE, error)
                   : NULL;

  return grads != NULL && give (state, g_object_ref (loss))
         && give (state, g_object_ref (grads->pdata[0]));
}

/* Constructs layers with their parameters. */
static gboolean
make_layers (State *state, GError **error)
{
  g_autoptr (GTorchLinear) linear = gtorch_linear_new (3, 4, error);
  g_autoptr (GTorchConv2d) conv = NULL;
  g_autoptr (GTorchBatchNorm2d) norm = NULL;
  g_autoptr (GTorchEmbedding) embedding = NULL;
  g_autoptr (GTorchLayerNorm) layer_norm = NULL;

  if (linear == NULL)
    return FALSE;
  conv = gtorch_module_new (GTORCH_TYPE_CONV2D, error, "in-channels", (gint64) 2, "out-channels",
                            (gint64) 3, "kernel-size", GTORCH_SIZE (3), "padding", GTORCH_SIZE (1),
                            NULL);
  if (conv == NULL)
    return FALSE;
  norm = gtorch_batch_norm2d_new (3, error);
  if (norm == NULL)
    return FALSE;
  embedding = gtorch_module_new (GTORCH_TYPE_EMBEDDING, error, "num-embeddings", (gint64) 5,
                                 "embedding-dim", (gint64) 3, "padding-idx", (gint64) 1, NULL);
  if (embedding == NULL)
    return FALSE;
  layer_norm = gtorch_layer_norm_new (GTORCH_SHAPE (3, 4), error);
  return layer_norm != NULL;
}

static gboolean
move_layer (State *state, GError **error)
{
  return gtorch_module_to (get (state, "layer"), NULL, GTORCH_DTYPE_FLOAT64, error);
}

/* --- optimizers --- */

static void
prepare_optimizer (State *state, guint n_steps, gpointer (*optimizer_new) (GListModel *, GError **))
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchSequential) model = gtorch_sequential_new ();
  g_autoptr (GTorchLinear) first = NULL;
  g_autoptr (GTorchLinear) second = NULL;
  g_autoptr (GListModel) parameters = NULL;
  g_autoptr (GTorchTensor) input = waves (GTORCH_DTYPE_FLOAT32, GTORCH_SHAPE (4, 3));
  GTorchOptimizer *optimizer;
  guint i;

  gtorch_manual_seed (5);
  first = gtorch_linear_new (3, 5, NULL);
  second = gtorch_linear_new (5, 2, NULL);
  gtorch_sequential_append (model, GTORCH_MODULE (first), NULL);
  gtorch_sequential_append (model, GTORCH_MODULE (second), NULL);
  parameters = gtorch_module_get_parameters (GTORCH_MODULE (model), TRUE);
  optimizer = optimizer_new (parameters, &error);
  g_assert_no_error (error);
  for (i = 0; i <= n_steps; i++) /* run () makes the last step */
    {
      g_autoptr (GTorchTensor) output =
          gtorch_module_forward (GTORCH_MODULE (model), input, &error);
      g_autoptr (GTorchTensor) sum =
          gtorch_tensor_sum (output, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);

      gtorch_tensor_backward (sum, NULL, FALSE, FALSE, &error);
      g_assert_no_error (error);
      if (i < n_steps)
        gtorch_optimizer_step (optimizer, &error);
      g_assert_no_error (error);
    }
  set (state, "optimizer", optimizer);
  set (state, "input", g_steal_pointer (&input));
  set (state, "model", g_steal_pointer (&model));
}

static gpointer
sgd_new (GListModel *parameters, GError **error)
{
  return gtorch_sgd_new (parameters, 0.1, 0.9, error);
}

static gpointer
adam_new (GListModel *parameters, GError **error)
{
  gpointer adam = gtorch_adam_new (parameters, 0.1, error);

  g_object_set (adam, "amsgrad", TRUE, NULL);
  return adam;
}

static gpointer
adam_w_new (GListModel *parameters, GError **error)
{
  return gtorch_adam_w_new (parameters, 0.1, 0.3, error);
}

static void
prepare_sgd (State *state)
{
  prepare_optimizer (state, 1, sgd_new);
}

static void
prepare_adam (State *state)
{
  prepare_optimizer (state, 1, adam_new);
}

static void
prepare_adam_w (State *state)
{
  prepare_optimizer (state, 1, adam_w_new);
}

static void
prepare_first_sgd (State *state)
{
  prepare_optimizer (state, 0, sgd_new);
}

static void
prepare_first_adam (State *state)
{
  prepare_optimizer (state, 0, adam_new);
}

static void
prepare_capturable (State *state)
{
  prepare_optimizer (state, 1, adam_new);
  gtorch_optimizer_set_capturable (get (state, "optimizer"), TRUE);
}

static gboolean
step (State *state, GError **error)
{
  return gtorch_optimizer_step (get (state, "optimizer"), error);
}

static gboolean
zero_grad (State *state, GError **error)
{
  return gtorch_optimizer_zero_grad (get (state, "optimizer"), FALSE, error);
}

/* Stores a copy of the state, which later steps do not change. */
static void
set_copy (State *state, const gchar *name, GHashTable *table)
{
  GHashTable *copy = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_object_unref);
  g_autoptr (GError) error = NULL;
  GHashTableIter iter;
  gpointer key, value;

  g_hash_table_iter_init (&iter, table);
  while (g_hash_table_iter_next (&iter, &key, &value))
    g_hash_table_insert (copy, g_strdup (key), gtorch_tensor_clone (value, &error));
  g_assert_no_error (error);
  g_hash_table_unref (table);
  g_object_set_data_full (get (state, "optimizer"), name, copy,
                          (GDestroyNotify) g_hash_table_unref);
}

/* The loaded values differ from the present ones, so that a partial load would show. */
static void
prepare_load (State *state)
{
  g_autoptr (GError) error = NULL;

  prepare_adam (state);
  set_copy (state, "states", gtorch_optimizer_state_dict (get (state, "optimizer")));
  set_copy (state, "parameters", gtorch_module_state_dict (get (state, "model")));
  gtorch_optimizer_step (get (state, "optimizer"), &error);
  g_assert_no_error (error);
}

static gboolean
load_optimizer (State *state, GError **error)
{
  GTorchOptimizer *optimizer = get (state, "optimizer");

  return gtorch_optimizer_load_state_dict (optimizer,
                                           g_object_get_data (G_OBJECT (optimizer), "states"),
                                           error);
}

static gboolean
load_module (State *state, GError **error)
{
  return gtorch_module_load_state_dict (get (state, "model"),
                                        g_object_get_data (get (state, "optimizer"), "parameters"),
                                        TRUE, error);
}

/* Runs a whole training step. */
static gboolean
train (State *state, GError **error)
{
  g_autoptr (GTorchLoss) measure = GTORCH_LOSS (gtorch_mse_loss_new ());
  GTorchModule *model = get (state, "model");
  GTorchTensor *input = get (state, "input");
  g_autoptr (GTorchTensor) target = NULL;
  g_autoptr (GTorchTensor) output = NULL;
  g_autoptr (GTorchTensor) loss = NULL;

  if (!gtorch_module_zero_grad (model, TRUE, error))
    return FALSE;
  output = gtorch_module_forward (model, input, error);
  target = output != NULL ? gtorch_zeros (GTORCH_SHAPE (4, 2), 0, NULL, error) : NULL;
  loss = target != NULL ? gtorch_loss_forward (measure, output, target, error) : NULL;
  return loss != NULL && gtorch_tensor_backward (loss, NULL, FALSE, FALSE, error)
         && gtorch_optimizer_step (get (state, "optimizer"), error);
}

static gboolean
keep_scaler (State *state, GError **error)
{
  g_autoptr (GTorchGradScaler) other = gtorch_grad_scaler_new ();
  g_autoptr (GHashTable) states = gtorch_grad_scaler_state_dict (get (state, "scaler"), error);

  if (states == NULL || !gtorch_grad_scaler_load_state_dict (other, states, error))
    return FALSE;
  return give (state, gtorch_grad_scaler_scale (other, get (state, "input"), error));
}

static gboolean
scale (State *state, GError **error)
{
  g_autoptr (GTorchGradScaler) scaler = gtorch_grad_scaler_new ();

  return give (state, gtorch_grad_scaler_scale (scaler, get (state, "input"), error));
}

static void
prepare_scaler (State *state)
{
  g_autoptr (GTorchTensor) scaled = NULL;

  prepare_first_sgd (state);
  set (state, "scaler", gtorch_grad_scaler_new ());
  scaled = gtorch_grad_scaler_scale (get (state, "scaler"), get (state, "input"), NULL);
}

static gboolean
scaled_step (State *state, GError **error)
{
  return gtorch_grad_scaler_step (get (state, "scaler"), get (state, "optimizer"), error);
}

static void
prepare_update (State *state)
{
  g_autoptr (GError) error = NULL;

  prepare_scaler (state);
  scaled_step (state, &error);
  g_assert_no_error (error);
}

static gboolean
update (State *state, GError **error)
{
  return gtorch_grad_scaler_update (get (state, "scaler"), NULL, error);
}

/* --- conversions --- */

static void
prepare_matrix (State *state)
{
  g_autoptr (GTorchTensor) plain = waves (GTORCH_DTYPE_FLOAT32, GTORCH_SHAPE (5, 7));

  set (state, "matrix", gtorch_tensor_transpose (plain, 0, 1, NULL));
  set_waves (state, "column", GTORCH_SHAPE (7, 1));
}

static gboolean
save_and_load (State *state, GError **error)
{
  g_autoptr (GHashTable) tensors = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GOutputStream) memory = g_memory_output_stream_new_resizable ();
  g_autoptr (GInputStream) stream = NULL;
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (GHashTable) loaded = NULL;

  g_hash_table_insert (tensors, (gpointer) "matrix", get (state, "matrix"));
  if (!gtorch_safetensors_save (tensors, NULL, memory, NULL, NULL, NULL, error)
      || !g_output_stream_close (memory, NULL, error))
    return FALSE;
  bytes = g_memory_output_stream_steal_as_bytes (G_MEMORY_OUTPUT_STREAM (memory));
  stream = g_memory_input_stream_new_from_bytes (bytes);
  loaded = gtorch_safetensors_load (stream, test_device (), NULL, NULL, NULL, NULL, error);
  if (loaded == NULL || !give (state, g_object_ref (g_hash_table_lookup (loaded, "matrix"))))
    return FALSE;
  g_clear_pointer (&loaded, g_hash_table_unref);
  loaded = gtorch_safetensors_load_bytes (bytes, NULL, error);
  return loaded != NULL && give (state, g_object_ref (g_hash_table_lookup (loaded, "matrix")));
}

static gboolean
save_and_load_file (State *state, GError **error)
{
  g_autoptr (GHashTable) tensors = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GHashTable) read = NULL;
  g_autoptr (GHashTable) mapped = NULL;
  g_autofree gchar *path =
      g_strdup_printf ("%s/gtorch-faults-%d.safetensors", g_get_tmp_dir (), (gint) getpid ());
  g_autoptr (GFile) file = g_file_new_for_path (path);

  g_hash_table_insert (tensors, (gpointer) "matrix", get (state, "matrix"));
  if (gtorch_safetensors_save_file (tensors, NULL, file, NULL, NULL, NULL, error))
    read =
        gtorch_safetensors_load_file (file, FALSE, test_device (), NULL, NULL, NULL, NULL, error);
  if (read != NULL)
    mapped =
        gtorch_safetensors_load_file (file, TRUE, test_device (), NULL, NULL, NULL, NULL, error);
  g_file_delete (file, NULL, NULL);
  return mapped != NULL && give (state, g_object_ref (g_hash_table_lookup (read, "matrix")))
         && give (state, g_object_ref (g_hash_table_lookup (mapped, "matrix")));
}

static gboolean
exchange (State *state, GError **error)
{
  gsize address = gtorch_tensor_export_dlpack (get (state, "matrix"), TRUE, TRUE, NULL, error);
  GTorchTensor *tensor;

  if (address == 0)
    return FALSE;
  tensor = gtorch_tensor_import_dlpack (address, TRUE, error);
  if (tensor == NULL)
    gtorch_dlpack_delete (address, TRUE);
  return give (state, tensor);
}

static gboolean
convert (State *state, GError **error)
{
  GTorchTensor *matrix = get (state, "matrix");
  g_autofree gdouble *doubles = NULL;
  g_autofree gint64 *ints = NULL;
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (GTorchTensor) shown = NULL;
  gsize n_doubles, n_ints;

  doubles = gtorch_tensor_to_doubles (matrix, &n_doubles, error);
  ints = doubles != NULL ? gtorch_tensor_to_ints (matrix, &n_ints, error) : NULL;
  bytes = ints != NULL ? gtorch_tensor_get_bytes (matrix, error) : NULL;
  if (bytes == NULL)
    return FALSE;
  shown = gtorch_tensor_new_from_bytes (bytes, GTORCH_DTYPE_FLOAT32, GTORCH_SHAPE (7, 5), error);
  return shown != NULL && give (state, gtorch_tensor_clone (shown, error))
         && give (state, gtorch_tensor_new_from_doubles (doubles, n_doubles, GTORCH_SHAPE (35),
                                                         GTORCH_DTYPE_FLOAT16, NULL, error))
         && give (state, gtorch_tensor_new_from_ints (ints, n_ints, GTORCH_SHAPE (35),
                                                      GTORCH_DTYPE_INT8, NULL, error));
}

/* Printing cannot report an error: the text has no elements then. */
static gboolean
print (State *state, GError **error)
{
  g_autofree gchar *text = gtorch_tensor_to_string (get (state, "matrix"));

  g_assert_nonnull (text);
  return TRUE;
}

static gboolean
index_some (State *state, GError **error)
{
  GTorchTensor *matrix = get (state, "matrix");
  g_autoptr (GTorchTensor) rows =
      gtorch_tensor_new_from_ints ((const gint64[]){ 2, 0 }, 2, GTORCH_SHAPE (2),
                                   GTORCH_DTYPE_INT64, NULL, error);
  GTorchTensor *list[] = { rows };
  const gint64 items[] = { GTORCH_INDEX_TENSOR, 0, 0, 0 };

  return rows != NULL && give (state, gtorch_tensor_get (matrix, "1:5:2, ..., 0", error))
         && give (state, gtorch_tensor_index (matrix, items, 4, list, 1, error))
         && give (state, gtorch_tensor_index_select (matrix, 0, rows, error));
}

static gboolean
put_some (State *state, GError **error)
{
  return gtorch_tensor_set (get (state, "matrix"), "..., 1:3", get (state, "column"), error)
         != NULL;
}

static gboolean
go_to_host (State *state, GError **error)
{
  g_autoptr (GTorchTensor) there =
      gtorch_tensor_to_device (get (state, "matrix"), gtorch_device_cpu (), TRUE, error);
  g_autoptr (GTorchTensor) more = NULL;
  g_autoptr (GTorchTensor) back = NULL;

  if (there == NULL || !gtorch_device_synchronize (test_device (), NULL, error))
    return FALSE;
  more = gtorch_tensor_add (there, there, 1, error);
  back = more != NULL ? gtorch_tensor_to_device (more, test_device (), FALSE, error) : NULL;
  return back != NULL && give (state, g_steal_pointer (&back));
}

static gboolean
square_in_pool (GTorchMemoryPool *pool, gpointer data, GError **error)
{
  State *state = data;

  return give (state, gtorch_tensor_mul (get (state, "matrix"), get (state, "matrix"), error));
}

static gboolean
use_pool (State *state, GError **error)
{
  g_autoptr (GTorchMemoryPool) pool = gtorch_memory_pool_new (test_device ());

  return gtorch_memory_pool_run (pool, square_in_pool, state, error);
}

static gboolean
differentiate_twice (State *state, GError **error)
{
  g_autoptr (GTorchTensor) x = gtorch_tensor_clone (get (state, "matrix"), error);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) z = NULL;
  g_autoptr (GPtrArray) grads = NULL;
  g_autoptr (GPtrArray) seconds = NULL;

  if (x == NULL || !gtorch_tensor_set_requires_grad (x, TRUE, error))
    return FALSE;
  y = gtorch_tensor_tanh (x, error);
  z = y != NULL ? gtorch_tensor_sum (y, NULL, 0, FALSE, GTORCH_DTYPE_NONE, error) : NULL;
  grads = z != NULL ? gtorch_autograd_grad (&z, 1, &x, 1, NULL, 0, TRUE, TRUE, FALSE, error) : NULL;
  g_clear_object (&z);
  if (grads != NULL)
    z = gtorch_tensor_sum (grads->pdata[0], NULL, 0, FALSE, GTORCH_DTYPE_NONE, error);
  if (z != NULL)
    seconds = gtorch_autograd_grad (&z, 1, &x, 1, NULL, 0, FALSE, FALSE, FALSE, error);
  return seconds != NULL && give (state, g_object_ref (seconds->pdata[0]));
}

/* --- streams and graphs --- */

static void
prepare_stream (State *state)
{
  prepare_matrix (state);
  set (state, "stream", gtorch_stream_new (test_device (), 0, NULL));
}

static gboolean
sort_on_stream (State *state, GError **error)
{
  GTorchStream *stream = get (state, "stream");
  GTorchTensor *matrix = get (state, "matrix");
  GTorchTensor *values = NULL;

  gtorch_stream_wait_stream (stream, gtorch_stream_get_current (test_device ()), NULL);
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

    if (!gtorch_tensor_sort (matrix, 0, FALSE, FALSE, &values, NULL, error) || !give (state, values)
        || !give (state, gtorch_tensor_cumsum (values, 1, GTORCH_DTYPE_NONE, error)))
      {
        gtorch_stream_synchronize (stream, NULL, NULL);
        return FALSE;
      }
  }
  return gtorch_stream_synchronize (stream, NULL, error);
}

static gboolean
body (GTorchStream *stream, gpointer data, GError **error)
{
  State *state = data;
  GTorchTensor *matrix = get (state, "matrix");
  g_autoptr (GTorchTensor) twice = gtorch_tensor_add (matrix, matrix, 1, error);
  g_autoptr (GTorchTensor) product =
      twice != NULL ? gtorch_tensor_mul (twice, matrix, error) : NULL;

  g_ptr_array_set_size (state->results, 0); /* results of the warm-up */
  return product != NULL
         && give (state, gtorch_tensor_softmax (product, 0, GTORCH_DTYPE_NONE, error));
}

static gboolean
capture (State *state, GError **error)
{
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) result = NULL;
  GTorchStream *stream = get (state, "stream");

  if (!gtorch_cuda_graph_capture (graph, stream, NULL, body, state, error)
      || !gtorch_cuda_graph_replay (graph, error)
      || !gtorch_stream_synchronize (gtorch_stream_get_current (test_device ()), NULL, error))
    return FALSE;
  result = g_object_ref (state->results->pdata[0]);
  g_ptr_array_set_size (state->results, 0);
  return give (state, gtorch_tensor_clone (result, error));
}

static void
prepare_graphed (State *state)
{
  prepare_linear (state);
}

static gboolean
run_graphed (State *state, GError **error)
{
  GTorchTensor *input = get (state, "input");
  g_autoptr (GTorchGraphedModule) graphed =
      gtorch_graphed_module_new (get (state, "layer"), &input, 1, error);
  g_autoptr (GPtrArray) outputs = NULL;

  if (graphed == NULL || !gtorch_make_graphed_callables (&graphed, 1, NULL, error))
    return FALSE;
  outputs = gtorch_graphed_module_run (graphed, &input, 1, error);
  return outputs != NULL && give (state, gtorch_tensor_clone (outputs->pdata[0], error));
}

static gboolean
can_capture (void)
{
  return test_can_capture ();
}

/* --- lower precision --- */

static gboolean
cast_and_run (gpointer data, GError **error)
{
  return run_layer (data, error);
}

static gboolean
run_autocast (State *state, GError **error)
{
  return gtorch_autocast_run (GTORCH_DEVICE_TYPE_CPU, GTORCH_DTYPE_BFLOAT16, TRUE, TRUE,
                              cast_and_run, state, error);
}

/* clang-format off */
const Program programs[] = {
  { "linear", prepare_linear, run_layer },
  { "conv2d", prepare_conv2d, run_layer },
  { "max_pool2d", prepare_max_pool2d, run_layer },
  { "avg_pool2d", prepare_avg_pool2d, run_layer },
  { "adaptive_avg_pool2d", prepare_adaptive_avg_pool2d, run_layer },
  { "batch_norm1d", prepare_batch_norm1d, run_layer, "buffers" },
  { "batch_norm2d", prepare_batch_norm2d, run_layer, "buffers" },
  { "batch_norm1d_forward", prepare_batch_norm1d, run_forward, .is_parted = TRUE },
  { "batch_norm2d_forward", prepare_batch_norm2d, run_forward, .is_parted = TRUE },
  { "embedding", prepare_embedding, run_forward },
  { "cross_entropy", prepare_cross_entropy, run_loss },
  { "nll", prepare_nll, run_loss },
  { "bce_with_logits", prepare_bce_with_logits, run_loss },
  { "mse", prepare_mse, run_loss },
  { "l1", prepare_l1, run_loss },
  { "layer_norm", prepare_layer_norm, run_layer },
  { "dropout", prepare_dropout, run_layer },
  { "gelu", prepare_gelu, run_layer },
  { "leaky_relu", prepare_leaky_relu, run_layer },
  { "softmax", prepare_softmax, run_layer },
  { "log_softmax", prepare_log_softmax, run_layer },
  { "silu", prepare_silu, run_layer },
  { "layers", prepare_matrix, make_layers },
  { "module_to", prepare_conv2d, move_layer },
  { "sgd", prepare_sgd, step },
  { "adam", prepare_adam, step, .is_parted = TRUE },
  { "adam_w", prepare_adam_w, step, .is_parted = TRUE },
  { "first_sgd", prepare_first_sgd, step },
  { "first_adam", prepare_first_adam, step, .is_parted = TRUE },
  { "capturable", prepare_capturable, step, .is_parted = TRUE },
  { "train", prepare_sgd, train, "gradients" },
  { "zero_grad", prepare_sgd, zero_grad, .is_parted = TRUE },
  { "load_optimizer", prepare_load, load_optimizer, .is_parted = TRUE },
  { "load_module", prepare_load, load_module, .is_parted = TRUE },
  { "keep_scaler", prepare_scaler, keep_scaler },
  { "scale", prepare_sgd, scale },
  { "scaled_step", prepare_scaler, scaled_step, "gradients", .is_parted = TRUE },
  { "update", prepare_update, update },
  { "safetensors", prepare_matrix, save_and_load },
  { "file", prepare_matrix, save_and_load_file },
  { "dlpack", prepare_matrix, exchange },
  { "conversions", prepare_matrix, convert },
  { "to_string", prepare_matrix, print },
  { "index", prepare_matrix, index_some },
  { "index_put", prepare_matrix, put_some },
  { "copies", prepare_matrix, go_to_host },
  { "pool", prepare_matrix, use_pool },
  { "grad_of_grad", prepare_matrix, differentiate_twice },
  { "stream", prepare_stream, sort_on_stream },
  { "graph", prepare_stream, capture, .is_possible = can_capture },
  { "graphed_module", prepare_graphed, run_graphed, .is_possible = can_capture },
  { "autocast", prepare_linear, run_autocast },
};
/* clang-format on */

const guint n_programs = G_N_ELEMENTS (programs);
