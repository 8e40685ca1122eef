/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Rows about graphs and whole training steps. Each makes what it needs when it is first called. */

#include "config.h"

#include "bench-cuda.h"

#define F32    GTORCH_DTYPE_FLOAT32
#define WARMUP 3

/* --- a hundred small kernels --- */

static GTorchTensor *tiny;

static gboolean
add_hundred (GTorchStream *stream, gpointer data, GError **error)
{
  guint i;

  for (i = 0; i < 100; i++)
    if (gtorch_tensor_add_scalar_inplace (tiny, 1, 1, error) == NULL)
      return FALSE;
  return TRUE;
}

static gboolean
make_tiny (GError **error)
{
  if (tiny == NULL)
    tiny = gtorch_zeros (GTORCH_SHAPE (16), F32, bench_device, error);
  return tiny != NULL;
}

GTorchTensor *
bench_eager_tiny (GError **error)
{
  return make_tiny (error) && add_hundred (NULL, NULL, error) ? g_object_ref (tiny) : NULL;
}

GTorchTensor *
bench_replay_tiny (GError **error)
{
  static GTorchCUDAGraph *graph;

  if (graph == NULL)
    {
      g_autoptr (GTorchStream) stream = gtorch_stream_new (bench_device, 0, error);

      if (stream == NULL || bench_eager_tiny (error) == NULL
          || !gtorch_device_synchronize (bench_device, NULL, error))
        return NULL;
      graph = gtorch_cuda_graph_new ();
      if (!gtorch_cuda_graph_capture (graph, stream, NULL, add_hundred, NULL, error))
        return NULL;
    }
  return gtorch_cuda_graph_replay (graph, error) ? g_object_ref (tiny) : NULL;
}

/* --- training steps --- */

typedef struct
{
  GTorchModule *model;
  GTorchLoss *loss;
  GTorchOptimizer *optimizer;
  GTorchTensor *input, *target;
  GTorchCUDAGraph *graph;
} Training;

/* Takes the layers. */
static GTorchModule *
sequence (GTorchModule **layers, guint n, GError **error)
{
  GTorchSequential *result = gtorch_sequential_new_from_modules (layers, n, error);
  guint i;

  for (i = 0; i < n; i++)
    g_object_unref (layers[i]);
  if (result == NULL
      || !gtorch_module_to (GTORCH_MODULE (result), bench_device, GTORCH_DTYPE_NONE, error))
    return NULL;
  return GTORCH_MODULE (result);
}

/* The network of PyTorch's manual on graphs. */
static Training *
manuals_network (GError **error)
{
  Training *self = g_new0 (Training, 1);
  GTorchModule *layers[] = {
    GTORCH_MODULE (gtorch_linear_new (4096, 2048, TRUE, error)),
    GTORCH_MODULE (gtorch_dropout_new (0.2, error)),
    GTORCH_MODULE (gtorch_linear_new (2048, 1024, TRUE, error)),
    GTORCH_MODULE (gtorch_dropout_new (0.1, error)),
  };

  gtorch_device_set_matmul_precision (bench_device, GTORCH_PRECISION_TF32);
  self->model = sequence (layers, G_N_ELEMENTS (layers), error);
  if (self->model == NULL)
    return NULL;
  self->loss = GTORCH_LOSS (gtorch_mse_loss_new (GTORCH_REDUCTION_MEAN));
  self->optimizer = GTORCH_OPTIMIZER (
      gtorch_sgd_new (gtorch_module_get_parameters (self->model, TRUE), 0.1, 0, error));
  gtorch_optimizer_set_capturable (self->optimizer, TRUE);
  self->input = gtorch_randn (GTORCH_SHAPE (640, 4096), F32, bench_device, NULL, error);
  self->target = gtorch_randn (GTORCH_SHAPE (640, 1024), F32, bench_device, NULL, error);
  return self;
}

/* What keeps a host busy: fifty layers of 64 on batches of 64. */
static Training *
small_layers (GError **error)
{
  Training *self = g_new0 (Training, 1);
  GTorchModule *layers[101];
  guint i;

  for (i = 0; i < 50; i++)
    {
      layers[2 * i] = GTORCH_MODULE (gtorch_linear_new (64, 64, TRUE, error));
      layers[2 * i + 1] = GTORCH_MODULE (gtorch_relu_new ());
    }
  layers[100] = GTORCH_MODULE (gtorch_linear_new (64, 10, TRUE, error));
  self->model = sequence (layers, G_N_ELEMENTS (layers), error);
  if (self->model == NULL)
    return NULL;
  self->loss = GTORCH_LOSS (gtorch_cross_entropy_loss_new (NULL, GTORCH_REDUCTION_MEAN));
  self->optimizer = GTORCH_OPTIMIZER (
      gtorch_adam_new (gtorch_module_get_parameters (self->model, TRUE), 1e-3, error));
  gtorch_optimizer_set_capturable (self->optimizer, TRUE);
  self->input = gtorch_randn (GTORCH_SHAPE (64, 64), F32, bench_device, NULL, error);
  self->target =
      gtorch_randint (0, 10, GTORCH_SHAPE (64), GTORCH_DTYPE_INT64, bench_device, NULL, error);
  return self;
}

static gboolean
step (GTorchStream *stream, gpointer data, GError **error)
{
  Training *self = data;
  g_autoptr (GTorchGradGuard) guard = gtorch_enable_grad ();
  g_autoptr (GTorchTensor) output = NULL;
  g_autoptr (GTorchTensor) loss = NULL;

  if (!gtorch_optimizer_zero_grad (self->optimizer, TRUE, error))
    return FALSE;
  output = gtorch_module_forward (self->model, self->input, error);
  loss = output != NULL ? gtorch_loss_forward (self->loss, output, self->target, error) : NULL;
  return loss != NULL && gtorch_tensor_backward (loss, NULL, FALSE, FALSE, error)
         && gtorch_optimizer_step (self->optimizer, error);
}

static GTorchTensor *
train (Training **self, Training *(*make) (GError **error), GError **error)
{
  if (*self == NULL && (*self = make (error)) == NULL)
    return NULL;
  return step (NULL, *self, error) ? g_object_ref ((*self)->input) : NULL;
}

static GTorchTensor *
train_graph (Training **self, Training *(*make) (GError **error), GError **error)
{
  if (*self == NULL)
    {
      g_autoptr (GTorchStream) stream = gtorch_stream_new (bench_device, 0, error);
      guint i;

      if (stream == NULL || (*self = make (error)) == NULL
          || !gtorch_device_synchronize (bench_device, NULL, error))
        return NULL;
      for (i = 0; i < WARMUP; i++)
        if (!gtorch_stream_run (stream, step, *self, error))
          return NULL;
      if (!gtorch_device_synchronize (bench_device, NULL, error)
          || !gtorch_optimizer_zero_grad ((*self)->optimizer, TRUE, error))
        return NULL;
      (*self)->graph = gtorch_cuda_graph_new ();
      if (!gtorch_cuda_graph_capture ((*self)->graph, stream, NULL, step, *self, error))
        return NULL;
    }
  return gtorch_cuda_graph_replay ((*self)->graph, error) ? g_object_ref ((*self)->input) : NULL;
}

static Training *manuals, *manuals_graph, *small, *small_graph;

GTorchTensor *
bench_train_manuals (GError **error)
{
  return train (&manuals, manuals_network, error);
}

GTorchTensor *
bench_train_manuals_graph (GError **error)
{
  return train_graph (&manuals_graph, manuals_network, error);
}

GTorchTensor *
bench_train_small (GError **error)
{
  return train (&small, small_layers, error);
}

GTorchTensor *
bench_train_small_graph (GError **error)
{
  return train_graph (&small_graph, small_layers, error);
}

GTorchTensor *
bench_infer_small (GError **error)
{
  if (small == NULL && (small = small_layers (error)) == NULL)
    return NULL;
  return gtorch_module_forward (small->model, small->input, error);
}
