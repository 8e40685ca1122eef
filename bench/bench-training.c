/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Networks and their training steps on any device. */

#include "config.h"

#include "bench-training.h"

#define F32 GTORCH_DTYPE_FLOAT32

struct _BenchTraining
{
  GTorchModule *model;
  GTorchLoss *loss;
  GTorchOptimizer *optimizer;
  GTorchGradScaler *scaler; /* for float16 only */
  GTorchDType autocast;     /* or NONE */
  GTorchDevice *device;
  GTorchTensor *input, *target;
};

/* Takes the layers and gets their parameters. */
static GListModel *
set_layers (BenchTraining *self, GTorchModule **layers, guint n, GError **error)
{
  guint i;

  self->model = GTORCH_MODULE (gtorch_sequential_new_from_modules (layers, n, error));
  for (i = 0; i < n; i++)
    g_object_unref (layers[i]);
  if (self->model == NULL
      || !gtorch_module_to (self->model, self->device, GTORCH_DTYPE_NONE, error))
    return NULL;
  return gtorch_module_get_parameters (self->model, TRUE);
}

static gboolean
set_adam (BenchTraining *self, GListModel *params, gdouble learning_rate, GError **error)
{
  self->loss = GTORCH_LOSS (gtorch_cross_entropy_loss_new ());
  self->optimizer = GTORCH_OPTIMIZER (gtorch_adam_new (params, learning_rate, error));
  return self->optimizer != NULL;
}

static gboolean
set_digits (BenchTraining *self, GError **error)
{
  self->target =
      gtorch_randint (0, 10, GTORCH_SHAPE (64), GTORCH_DTYPE_INT64, self->device, NULL, error);
  return self->target != NULL;
}

static gboolean
make_seed_mlp (BenchTraining *self, GError **error)
{
  GTorchModule *layers[] = {
    GTORCH_MODULE (gtorch_linear_new (4096, 2048, error)),
    GTORCH_MODULE (gtorch_dropout_new (0.2, error)),
    GTORCH_MODULE (gtorch_linear_new (2048, 1024, error)),
    GTORCH_MODULE (gtorch_dropout_new (0.1, error)),
  };
  g_autoptr (GListModel) params = set_layers (self, layers, G_N_ELEMENTS (layers), error);

  if (params == NULL)
    return FALSE;
  self->loss = GTORCH_LOSS (gtorch_mse_loss_new ());
  self->optimizer = GTORCH_OPTIMIZER (gtorch_sgd_new (params, 0.1, 0, error));
  if (self->optimizer == NULL)
    return FALSE;
  self->input = gtorch_randn (GTORCH_SHAPE (640, 4096), F32, self->device, NULL, error);
  if (self->input == NULL)
    return FALSE;
  self->target = gtorch_randn (GTORCH_SHAPE (640, 1024), F32, self->device, NULL, error);
  return self->target != NULL;
}

static gboolean
make_small_mlp50 (BenchTraining *self, GError **error)
{
  g_autoptr (GListModel) params = NULL;
  GTorchModule *layers[101];
  guint i;

  for (i = 0; i < 50; i++)
    {
      layers[2 * i] = GTORCH_MODULE (gtorch_linear_new (64, 64, error));
      layers[2 * i + 1] = GTORCH_MODULE (gtorch_relu_new ());
    }
  layers[100] = GTORCH_MODULE (gtorch_linear_new (64, 10, error));
  params = set_layers (self, layers, G_N_ELEMENTS (layers), error);
  if (params == NULL || !set_adam (self, params, 1e-3, error))
    return FALSE;
  self->input = gtorch_randn (GTORCH_SHAPE (64, 64), F32, self->device, NULL, error);
  return self->input != NULL && set_digits (self, error);
}

static gboolean
make_digits (BenchTraining *self, GError **error)
{
  GTorchModule *layers[] = {
    GTORCH_MODULE (gtorch_module_new (GTORCH_TYPE_CONV2D, error, "in-channels", (gint64) 1,
                                      "out-channels", (gint64) 16, "kernel-size", GTORCH_SIZE (3),
                                      "padding", GTORCH_SIZE (1), NULL)),
    GTORCH_MODULE (gtorch_relu_new ()),
    GTORCH_MODULE (gtorch_module_new (GTORCH_TYPE_CONV2D, error, "in-channels", (gint64) 16,
                                      "out-channels", (gint64) 32, "kernel-size", GTORCH_SIZE (3),
                                      "padding", GTORCH_SIZE (1), NULL)),
    GTORCH_MODULE (gtorch_relu_new ()),
    GTORCH_MODULE (gtorch_max_pool2d_new (GTORCH_SHAPE (2), error)),
    GTORCH_MODULE (gtorch_flatten_new ()),
    GTORCH_MODULE (gtorch_dropout_new (0.25, error)),
    GTORCH_MODULE (gtorch_linear_new (512, 10, error)),
  };
  g_autoptr (GListModel) params = set_layers (self, layers, G_N_ELEMENTS (layers), error);

  if (params == NULL || !set_adam (self, params, 2e-3, error))
    return FALSE;
  self->input = gtorch_rand (GTORCH_SHAPE (64, 1, 8, 8), F32, self->device, NULL, error);
  return self->input != NULL && set_digits (self, error);
}

static gboolean
make_recurrent (BenchTraining *self, gint64 size, gint64 n_layers, gint64 steps, gint64 batch,
                GError **error)
{
  GTorchModule *layers[] = {
    GTORCH_MODULE (gtorch_module_new (GTORCH_TYPE_LSTM_LAYER, error, "input-size", size,
                                      "hidden-size", size, "num-layers", n_layers, NULL)),
  };
  g_autoptr (GListModel) params = set_layers (self, layers, G_N_ELEMENTS (layers), error);

  if (params == NULL)
    return FALSE;
  self->loss = GTORCH_LOSS (gtorch_mse_loss_new ());
  self->optimizer = GTORCH_OPTIMIZER (gtorch_sgd_new (params, 0.1, 0, error));
  if (self->optimizer == NULL)
    return FALSE;
  self->input = gtorch_randn (GTORCH_SHAPE (steps, batch, size), F32, self->device, NULL, error);
  if (self->input == NULL)
    return FALSE;
  self->target = gtorch_rand (GTORCH_SHAPE (steps, batch, size), F32, self->device, NULL, error);
  return self->target != NULL;
}

static gboolean
make_lstm (BenchTraining *self, GError **error)
{
  return make_recurrent (self, 512, 2, 128, 64, error);
}

static gboolean
make_small_lstm (BenchTraining *self, GError **error)
{
  return make_recurrent (self, 128, 1, 64, 32, error);
}

BenchTraining *
bench_training_new (BenchNetwork network, GTorchDType autocast, gboolean captured,
                    GTorchDevice *device, GError **error)
{
  static gboolean (*const makers[]) (BenchTraining * self, GError * *error) = {
    [BENCH_SEED_MLP] = make_seed_mlp,     [BENCH_SMALL_MLP50] = make_small_mlp50,
    [BENCH_DIGITS] = make_digits,         [BENCH_LSTM] = make_lstm,
    [BENCH_LSTM_IEEE] = make_lstm,        [BENCH_LSTM_STEPS] = make_lstm,
    [BENCH_SMALL_LSTM] = make_small_lstm,
  };
  const gboolean rounds =
      network == BENCH_SEED_MLP || network == BENCH_LSTM || network == BENCH_LSTM_STEPS;
  g_autoptr (BenchTraining) self = g_new0 (BenchTraining, 1);

  self->device = device;
  self->autocast = autocast;
  gtorch_device_set_matmul_precision (device,
                                      rounds ? GTORCH_PRECISION_TF32 : GTORCH_PRECISION_IEEE);
  gtorch_device_set_deterministic (device, network == BENCH_LSTM_STEPS);
  if (!makers[network](self, error))
    return NULL;
  gtorch_optimizer_set_capturable (self->optimizer, captured);
  if (autocast == GTORCH_DTYPE_FLOAT16)
    self->scaler = g_object_new (GTORCH_TYPE_GRAD_SCALER, "capturable", captured, NULL);
  return g_steal_pointer (&self);
}

void
bench_training_free (BenchTraining *self)
{
  g_clear_object (&self->scaler);
  g_clear_object (&self->optimizer);
  g_clear_object (&self->loss);
  g_clear_object (&self->model);
  g_clear_object (&self->input);
  g_clear_object (&self->target);
  g_free (self);
}

/* The region of mixed precision ends before the backward pass. */
static GTorchTensor *
compute_loss (BenchTraining *self, GError **error)
{
  g_autoptr (GTorchAutocastGuard) guard = NULL;
  g_autoptr (GTorchTensor) output = NULL;

  if (self->autocast != GTORCH_DTYPE_NONE)
    {
      guard = gtorch_autocast_guard_new (gtorch_device_get_device_type (self->device),
                                         self->autocast, TRUE, TRUE, error);
      if (guard == NULL)
        return NULL;
    }
  output = gtorch_module_forward (self->model, self->input, error);
  return output != NULL ? gtorch_loss_forward (self->loss, output, self->target, error) : NULL;
}

gboolean
bench_training_step (BenchTraining *self, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_enable_grad ();
  g_autoptr (GTorchTensor) loss = NULL;
  g_autoptr (GTorchTensor) scaled = NULL;

  if (!gtorch_module_get_training (self->model))
    gtorch_module_set_training (self->model, TRUE);
  if (!bench_training_zero_grad (self, error))
    return FALSE;
  loss = compute_loss (self, error);
  if (loss == NULL)
    return FALSE;
  if (self->scaler == NULL)
    return gtorch_tensor_backward (loss, NULL, FALSE, FALSE, error)
           && gtorch_optimizer_step (self->optimizer, error);
  scaled = gtorch_grad_scaler_scale (self->scaler, loss, error);
  return scaled != NULL && gtorch_tensor_backward (scaled, NULL, FALSE, FALSE, error)
         && gtorch_grad_scaler_step (self->scaler, self->optimizer, error)
         && gtorch_grad_scaler_update (self->scaler, NULL, error);
}

gboolean
bench_training_zero_grad (BenchTraining *self, GError **error)
{
  return gtorch_optimizer_zero_grad (self->optimizer, TRUE, error);
}

GTorchTensor *
bench_training_infer (BenchTraining *self, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();

  if (gtorch_module_get_training (self->model))
    gtorch_module_eval (self->model);
  return gtorch_module_forward (self->model, self->input, error);
}

GTorchTensor *
bench_training_get_input (BenchTraining *self)
{
  return self->input;
}
