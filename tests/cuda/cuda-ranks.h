/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Groups whose ranks are threads of one process, each with a GPU of its own, on the fake driver and the fake
 * NCCL. What they compute is compared with one module that has the whole batch, on the CPU. */

#include <math.h>
#include <unistd.h>

#include "cuda-test.h"

#include <gtorch/optim/gtorch-optimizer-private.h>
#include <gtorch/tensor/gtorch-tensor-private.h>

#define MAX_RANKS 4
#define BATCH     8 /* of all ranks */
#define N_STEPS   3

typedef struct
{
  gint rank, size;
  GTorchStore *store;
  GTorchProcessGroup *group;
  void (*func) (void);
} Rank;

static __thread Rank *self;

/* --- tensors and modules --- */

/* Numbers that follow from `first`, between -1 and 1, on the device. */
static inline GTorchTensor *
numbers (const gint64 *shape, guint n_dims, gint first, GTorchDevice *device)
{
  g_autofree gdouble *values = NULL;
  g_autoptr (GTorchTensor) host = NULL;
  g_autoptr (GError) error = NULL;
  GTorchTensor *result;
  gint64 n = 1, i;

  for (i = 0; i < n_dims; i++)
    n *= shape[i];
  values = g_new (gdouble, MAX (n, 1));
  for (i = 0; i < n; i++)
    values[i] = sin (1.7 * (double) (first + i));
  host =
      gtorch_tensor_new_from_doubles (values, n, shape, n_dims, GTORCH_DTYPE_FLOAT32, NULL, &error);
  g_assert_no_error (error);
  result = gtorch_tensor_to_device (host, device, FALSE, &error);
  g_assert_no_error (error);
  return result;
}

static inline void
fill (GTorchModule *module)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  g_autoptr (GListModel) params = gtorch_module_get_parameters (module, TRUE);
  guint i;

  for (i = 0; i < g_list_model_get_n_items (params); i++)
    {
      g_autoptr (GTorchTensor) param = g_list_model_get_item (params, i);
      const GTorchImpl *impl = gtorch_tensor_unwrap (param);
      g_autoptr (GTorchTensor) values =
          numbers (impl->shape, impl->n_dims, 10 * (gint) i, gtorch_device_cpu ());

      g_assert_nonnull (gtorch_tensor_copy_inplace (param, values, FALSE, NULL));
    }
}

/* Three layers with sizes that no number of ranks divides. */
static inline GTorchSequential *
make_model (GTorchDevice *device)
{
  static const gint64 sizes[] = { 5, 7, 6, 3 };
  GTorchSequential *model = gtorch_sequential_new ();
  g_autoptr (GError) error = NULL;
  guint i;

  for (i = 0; i + 1 < G_N_ELEMENTS (sizes); i++)
    {
      g_autoptr (GTorchLinear) layer = gtorch_linear_new (sizes[i], sizes[i + 1], &error);

      g_assert_no_error (error);
      g_assert_true (gtorch_sequential_append (model, GTORCH_MODULE (layer), &error));
    }
  fill (GTORCH_MODULE (model));
  g_assert_true (gtorch_module_to (GTORCH_MODULE (model), device, GTORCH_DTYPE_NONE, &error));
  g_assert_no_error (error);
  return model;
}

static inline GTorchModule *
layer_of (GTorchSequential *model, guint i)
{
  g_autofree gchar *name = g_strdup_printf ("%u", i);
  g_autoptr (GError) error = NULL;
  GTorchModule *layer = gtorch_module_get_module (GTORCH_MODULE (model), name, &error);

  g_assert_no_error (error);
  return layer;
}

/* The batch of a step: all of it, or the rows of a rank. */
static inline GTorchTensor *
batch (gint step, gint rank, gint size, GTorchDevice *device)
{
  const gint64 shape[] = { BATCH, 5 };
  g_autoptr (GTorchTensor) all = numbers (shape, 2, 100 * step, device);
  g_autoptr (GTorchTensor) rows =
      gtorch_tensor_narrow (all, 0, (gint64) BATCH / size * rank, BATCH / size, NULL);

  return gtorch_tensor_contiguous (rows, NULL);
}

static inline void
backward (GTorchModule *model, GTorchTensor *input, GTorchGradScaler *scaler)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) output = gtorch_module_forward (model, input, &error);
  g_autoptr (GTorchTensor) square = NULL, loss = NULL, scaled = NULL;

  g_assert_no_error (error);
  square = gtorch_tensor_mul (output, output, &error);
  loss = gtorch_tensor_mean (square, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  g_assert_no_error (error);
  scaled = scaler == NULL ? g_object_ref (loss) : gtorch_grad_scaler_scale (scaler, loss, &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_tensor_backward (scaled, NULL, FALSE, FALSE, &error));
  g_assert_no_error (error);
}

/* Steps of SGD tell gradients that are too large by some factor, which those of Adam do not. */
static inline GTorchOptimizer *
make_optimizer (GTorchModule *model, gboolean is_adam)
{
  g_autoptr (GListModel) params = gtorch_module_get_parameters (model, TRUE);
  g_autoptr (GError) error = NULL;
  GTorchOptimizer *made = is_adam ? GTORCH_OPTIMIZER (gtorch_adam_new (params, 0.01, &error))
                                  : GTORCH_OPTIMIZER (gtorch_sgd_new (params, 0.01, 0.9, &error));

  g_assert_no_error (error);
  return made;
}

static inline void
step (GTorchModule *model, GTorchOptimizer *optimizer, GTorchTensor *input)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_optimizer_zero_grad (optimizer, TRUE, &error));
  g_assert_no_error (error);
  backward (model, input, NULL);
  g_assert_true (gtorch_optimizer_step (optimizer, &error));
  g_assert_no_error (error);
}

/* The same with one module and the whole batch. */
static inline GTorchSequential *
train_alone (gboolean is_adam)
{
  GTorchSequential *model = make_model (gtorch_device_cpu ());
  g_autoptr (GTorchOptimizer) optimizer = make_optimizer (GTORCH_MODULE (model), is_adam);
  gint i;

  for (i = 0; i < N_STEPS; i++)
    {
      g_autoptr (GTorchTensor) input = batch (i, 0, 1, gtorch_device_cpu ());

      step (GTORCH_MODULE (model), optimizer, input);
    }
  return model;
}

static inline void
assert_close (GTorchTensor *a, GTorchTensor *b)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) one = gtorch_tensor_to_device (a, gtorch_device_cpu (), FALSE, &error);
  g_autoptr (GTorchTensor) other = gtorch_tensor_to_device (b, gtorch_device_cpu (), FALSE, &error);
  g_autofree gdouble *x = NULL, *y = NULL;
  gsize n, m, i;

  g_assert_no_error (error);
  x = read_doubles (gtorch_tensor_unwrap (one));
  y = read_doubles (gtorch_tensor_unwrap (other));
  n = gtorch_tensor_get_numel (one);
  m = gtorch_tensor_get_numel (other);
  g_assert_cmpuint (n, ==, m);
  for (i = 0; i < n; i++)
    g_assert_cmpfloat_with_epsilon (x[i], y[i], 2e-5 * (1 + fabs (y[i])));
}

/* Compares parameters, or what is gathered of them. */
static inline void
assert_same (GTorchModule *model, GTorchModule *alone)
{
  g_autoptr (GListModel) params = gtorch_module_get_parameters (model, TRUE);
  g_autoptr (GListModel) others = gtorch_module_get_parameters (alone, TRUE);
  guint i;

  g_assert_cmpuint (g_list_model_get_n_items (params), ==, g_list_model_get_n_items (others));
  for (i = 0; i < g_list_model_get_n_items (params); i++)
    {
      g_autoptr (GTorchTensor) param = g_list_model_get_item (params, i);
      g_autoptr (GTorchTensor) other = g_list_model_get_item (others, i);
      GTorchModuleShards *shards = gtorch_module_shards_find (param);
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) full = shards == NULL
                                          ? g_object_ref (param)
                                          : gtorch_module_shards_gather (shards, param, &error);

      g_assert_no_error (error);
      assert_close (full, other);
    }
}

/* --- running them --- */

static inline gpointer
run_rank (gpointer data)
{
  g_autoptr (GError) error = NULL;
  GTorchDeviceGuard *device;

  self = data;
  device = gtorch_device_guard_new (gpu (self->rank), &error);
  g_assert_no_error (error);
  self->group =
      gtorch_process_group_new ("nccl", self->store, self->rank, self->size, 60, NULL, &error);
  g_assert_no_error (error);
  self->func ();
  g_assert_true (gtorch_device_synchronize (gpu (self->rank), NULL, &error));
  g_assert_no_error (error);
  g_clear_object (&self->group);
  gtorch_device_guard_end (device);
  gtorch_device_guard_unref (device);
  return NULL;
}

typedef struct
{
  const gchar *name;
  gint size;
  void (*func) (void);
} RankCase;

/* Runs the function in each of the ranks. */
static inline void
run_case (gconstpointer data)
{
  const RankCase *which = data;
  g_autoptr (GTorchStore) store = GTORCH_STORE (gtorch_hash_store_new ());
  GThread *threads[MAX_RANKS];
  Rank ranks[MAX_RANKS];
  gint i;

#ifdef __SANITIZE_THREAD__
  g_test_skip ("the fake driver's and NCCL's threads are not seen");
  return;
#endif
  for (i = 0; i < which->size; i++)
    {
      ranks[i] = (Rank){ i, which->size, store, NULL, which->func };
      threads[i] = g_thread_new ("rank", run_rank, &ranks[i]);
    }
  for (i = 0; i < which->size; i++)
    g_thread_join (threads[i]);
  while (g_main_context_iteration (NULL, FALSE))
    ;
}

static inline void
add_cases (const RankCase *cases, guint n)
{
  guint i;

  for (i = 0; i < n; i++)
    {
      g_autofree gchar *path = g_strconcat ("/GTorch/ranks/", cases[i].name, NULL);

      g_test_add_data_func (path, &cases[i], run_case);
    }
}
