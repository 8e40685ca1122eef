/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Optimizer steps in graphs: training by replays gives the same bits as training by calls. */

#include "config.h"

#include <string.h>

#include "step-samples.h"
#include "test-device.h"

#define N_STEPS (is_under_sanitizer () ? 6 : 20)
#define MODE    GTORCH_CAPTURE_MODE_THREAD_LOCAL

/* A network of two layers with its optimizer. */
typedef struct
{
  GTorchModule *net;
  GTorchOptimizer *optimizer;
  GTorchMSELoss *loss;
  GTorchTensor *input, *target;
  GTorchTensor *result; /* of the last training step */
} Trainer;

static GTorchTensor *
drawn (guint64 seed, gint64 rows, gint64 columns)
{
  gtorch_manual_seed (seed);
  return gtorch_randn (GTORCH_SHAPE (rows, columns), GTORCH_DTYPE_FLOAT32, NULL, NULL, NULL);
}

static void
append (GTorchModule *net, GTorchModule *module)
{
  g_assert_true (gtorch_sequential_append (GTORCH_SEQUENTIAL (net), module, NULL));
  g_object_unref (module);
}

static void
trainer_init (Trainer *self, guint sample)
{
  g_autoptr (GListModel) params = NULL;

  gtorch_manual_seed (7);
  self->net = GTORCH_MODULE (gtorch_sequential_new ());
  append (self->net, GTORCH_MODULE (gtorch_linear_new (4, 8, NULL)));
  append (self->net, GTORCH_MODULE (gtorch_relu_new ()));
  append (self->net, GTORCH_MODULE (gtorch_linear_new (8, 2, NULL)));
  params = gtorch_module_get_parameters (self->net, TRUE);
  self->optimizer = step_sample_new (sample, params, 0.05);
  self->loss = gtorch_mse_loss_new ();
  self->input = gtorch_zeros (GTORCH_SHAPE (16, 4), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  self->target = gtorch_zeros (GTORCH_SHAPE (16, 2), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  self->result = NULL;
}

static void
trainer_clear (Trainer *self)
{
  g_clear_object (&self->net);
  g_clear_object (&self->optimizer);
  g_clear_object (&self->loss);
  g_clear_object (&self->input);
  g_clear_object (&self->target);
  g_clear_object (&self->result);
}

static gboolean
train (Trainer *self, GError **error)
{
  g_autoptr (GTorchTensor) output = NULL;

  g_clear_object (&self->result);
  if (!gtorch_optimizer_zero_grad (self->optimizer, TRUE, error))
    return FALSE;
  output = gtorch_module_forward (self->net, self->input, error);
  if (output == NULL)
    return FALSE;
  self->result = gtorch_loss_forward (GTORCH_LOSS (self->loss), output, self->target, error);
  return self->result != NULL && gtorch_tensor_backward (self->result, NULL, FALSE, FALSE, error)
         && gtorch_optimizer_step (self->optimizer, error);
}

static void
set_batch (Trainer *self, guint step)
{
  g_autoptr (GTorchTensor) input = drawn (100 + step, 16, 4);
  g_autoptr (GTorchTensor) target = drawn (200 + step, 16, 2);

  g_assert_nonnull (gtorch_tensor_copy_inplace (self->input, input, FALSE, NULL));
  g_assert_nonnull (gtorch_tensor_copy_inplace (self->target, target, FALSE, NULL));
}

static void
assert_same_bits (GTorchTensor *a, GTorchTensor *b)
{
  gsize n, m;
  g_autofree gpointer x = test_dup_elements (a, &n);
  g_autofree gpointer y = test_dup_elements (b, &m);

  g_assert_cmpmem (x, n, y, m);
}

static void
assert_same_params (Trainer *a, Trainer *b)
{
  g_autoptr (GListModel) mine = gtorch_module_get_parameters (a->net, TRUE);
  g_autoptr (GListModel) others = gtorch_module_get_parameters (b->net, TRUE);
  guint i;

  g_assert_cmpuint (g_list_model_get_n_items (mine), ==, 4);
  for (i = 0; i < 4; i++)
    {
      g_autoptr (GTorchTensor) x = g_list_model_get_item (mine, i);
      g_autoptr (GTorchTensor) y = g_list_model_get_item (others, i);

      assert_same_bits (x, y);
    }
}

static GTorchCUDAGraph *
capture_training (Trainer *self)
{
  GTorchCUDAGraph *graph = gtorch_cuda_graph_new ();
  g_autoptr (GError) error = NULL;
  GTorchGraphCapture *capture = gtorch_graph_capture_new (graph, NULL, NULL, MODE, &error);

  g_assert_no_error (error);
  train (self, &error);
  g_assert_no_error (error);
  gtorch_graph_capture_end (capture, &error);
  g_assert_no_error (error);
  gtorch_graph_capture_unref (capture);
  return graph;
}

/* Changes the learning rate during training. */
static void
change_rate (Trainer *self, guint step)
{
  if (step == 7)
    gtorch_optimizer_set_learning_rate (self->optimizer, 0.02);
  else if (step == 13)
    g_object_set (self->optimizer, "learning-rate", 0.05, NULL);
}

/* Those that PyTorch captures without a setting need none here. */
static gboolean
becomes_capturable (guint kind)
{
  const gchar *name = gtorch_step_samples[kind].name;

  return g_str_has_prefix (name, "SGD/") || g_str_has_prefix (name, "Adagrad/");
}

/* `warm`: the number of steps before the capture. */
static void
replays_train_as_calls_do (guint kind, guint warm)
{
  g_autoptr (GTorchCUDAGraph) graph = NULL;
  Trainer eager, captured;
  guint i;

  trainer_init (&eager, kind);
  trainer_init (&captured, kind);
  gtorch_optimizer_set_capturable (captured.optimizer, !becomes_capturable (kind));
  assert_same_params (&eager, &captured);
  for (i = 0; i < N_STEPS; i++)
    {
      g_autoptr (GError) error = NULL;

      if (i == warm)
        {
          graph = capture_training (&captured);
          g_assert_true (gtorch_optimizer_get_capturable (captured.optimizer));
          assert_same_params (&eager, &captured); /* a capture computes nothing */
        }
      set_batch (&eager, i);
      set_batch (&captured, i);
      change_rate (&eager, i);
      change_rate (&captured, i);
      train (&eager, &error);
      g_assert_no_error (error);
      if (graph != NULL)
        gtorch_cuda_graph_replay (graph, &error);
      else
        train (&captured, &error);
      g_assert_no_error (error);
      assert_same_bits (eager.result, captured.result);
      assert_same_params (&eager, &captured);
    }
  g_clear_object (&graph);
  trainer_clear (&eager);
  trainer_clear (&captured);
}

static void
a_network_is_trained_by_replays (gconstpointer data)
{
  replays_train_as_calls_do (GPOINTER_TO_UINT (data), 0);
  replays_train_as_calls_do (GPOINTER_TO_UINT (data), 3);
}

/* Steps outside of graphs and replays may alternate. */
static void
calls_go_on_where_replays_end (gconstpointer data)
{
  g_autoptr (GTorchCUDAGraph) graph = NULL;
  Trainer eager, captured;
  guint i;

  trainer_init (&eager, GPOINTER_TO_UINT (data));
  trainer_init (&captured, GPOINTER_TO_UINT (data));
  gtorch_optimizer_set_capturable (captured.optimizer, TRUE);
  graph = capture_training (&captured);
  for (i = 0; i < N_STEPS; i++)
    {
      if (i == N_STEPS / 2)
        gtorch_optimizer_set_capturable (captured.optimizer, FALSE);
      set_batch (&eager, i);
      set_batch (&captured, i);
      g_assert_true (train (&eager, NULL));
      if (i % 2)
        g_assert_true (train (&captured, NULL));
      else
        g_assert_true (gtorch_cuda_graph_replay (graph, NULL));
      assert_same_params (&eager, &captured);
    }
  g_clear_object (&graph);
  trainer_clear (&eager);
  trainer_clear (&captured);
}

static void
a_loaded_state_counts_in_replays (gconstpointer data)
{
  g_autoptr (GTorchCUDAGraph) graph = NULL;
  g_autoptr (GHashTable) state = NULL;
  g_autoptr (GHashTable) weights = NULL;
  Trainer eager, captured;
  guint i;

  trainer_init (&eager, GPOINTER_TO_UINT (data));
  trainer_init (&captured, GPOINTER_TO_UINT (data));
  gtorch_optimizer_set_capturable (captured.optimizer, TRUE);
  set_batch (&captured, 50);
  graph = capture_training (&captured);
  g_assert_true (gtorch_cuda_graph_replay (graph, NULL));
  for (i = 0; i < 5; i++)
    {
      set_batch (&eager, i);
      g_assert_true (train (&eager, NULL));
    }
  state = gtorch_optimizer_state_dict (eager.optimizer);
  g_assert_true (gtorch_optimizer_load_state_dict (captured.optimizer, state, NULL));
  weights = gtorch_module_state_dict (eager.net);
  g_assert_true (gtorch_module_load_state_dict (captured.net, weights, TRUE, NULL));
  for (i = 5; i < 10; i++)
    {
      set_batch (&eager, i);
      set_batch (&captured, i);
      g_assert_true (train (&eager, NULL));
      g_assert_true (gtorch_cuda_graph_replay (graph, NULL));
      assert_same_params (&eager, &captured);
    }
  g_clear_object (&graph);
  trainer_clear (&eager);
  trainer_clear (&captured);
}

/* --- values that a capture would freeze --- */

static void
a_step_that_is_not_capturable_is_refused (void)
{
  static const gchar *const names[] = { "GTorchRMSprop", "GTorchAdam", "GTorchAdamW" };
  static const gchar *const samples[] = { "RMSprop/0", "Adam/0", "AdamW/0" };
  guint k;

  for (k = 0; k < G_N_ELEMENTS (samples); k++)
    {
      g_autofree gchar *expected =
          g_strdup_printf ("step: %s is not capturable: its learning-rate, 0.05, would stay",
                           names[k]);
      g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
      GTorchGraphCapture *capture;
      g_autoptr (GError) error = NULL;
      Trainer trainer;

      trainer_init (&trainer, step_sample_find (samples[k]));
      capture = gtorch_graph_capture_new (graph, NULL, NULL, MODE, &error);
      g_assert_no_error (error);
      g_assert_false (train (&trainer, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE);
      g_assert_true (g_str_has_prefix (error->message, expected));
      g_clear_error (&error);
      gtorch_optimizer_set_capturable (trainer.optimizer, TRUE);
      g_assert_true (gtorch_optimizer_step (trainer.optimizer, &error)); /* the capture continues */
      g_assert_no_error (error);
      g_assert_true (gtorch_graph_capture_end (capture, NULL));
      gtorch_graph_capture_unref (capture);
      trainer_clear (&trainer);
    }
}

static void
changes_that_replays_do_not_see_are_warned_about (void)
{
  g_autoptr (GTorchCUDAGraph) graph = NULL;
  g_autoptr (GTorchParamGroup) group = NULL;
  Trainer trainer;

  trainer_init (&trainer, step_sample_find ("Adam/0"));
  gtorch_optimizer_set_capturable (trainer.optimizer, TRUE);
  g_object_set (trainer.optimizer, "beta1", 0.8, NULL); /* nothing was captured */
  graph = capture_training (&trainer);
  group = g_list_model_get_item (gtorch_optimizer_get_param_groups (trainer.optimizer), 0);
  g_test_expect_message ("GTorch", G_LOG_LEVEL_WARNING, "GTorchAdam: *former beta1*");
  g_object_set (trainer.optimizer, "beta1", 0.9, NULL);
  g_test_assert_expected_messages ();
  g_test_expect_message ("GTorch", G_LOG_LEVEL_WARNING, "*former weight-decay*");
  gtorch_param_group_set_weight_decay (group, 0.5);
  g_test_assert_expected_messages ();
  gtorch_optimizer_set_learning_rate (trainer.optimizer, 0.5); /* replays read this one */
  trainer_clear (&trainer);
}

static guint n_notified;

static void
count (void)
{
  n_notified++;
}

static void
the_property_notifies (void)
{
  Trainer trainer;
  gboolean value;

  trainer_init (&trainer, step_sample_find ("SGD/0"));
  g_signal_connect (trainer.optimizer, "notify::capturable", count, NULL);
  g_object_get (trainer.optimizer, "capturable", &value, NULL);
  g_assert_false (value);
  g_object_set (trainer.optimizer, "capturable", TRUE, NULL);
  g_object_set (trainer.optimizer, "capturable", TRUE, NULL);
  g_assert_cmpuint (n_notified, ==, 1);
  g_assert_true (gtorch_optimizer_get_capturable (trainer.optimizer));
  trainer_clear (&trainer);
}

gint
main (gint argc, gchar **argv)
{
  guint i;

  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/GTorchOptimizer/" #name, name)
#define ADD_SAMPLE(function, i)                                                            \
  do                                                                                       \
    {                                                                                      \
      g_autofree gchar *path =                                                             \
          g_strdup_printf ("/GTorchOptimizer/%s/" #function, gtorch_step_samples[i].name); \
                                                                                           \
      g_test_add_data_func (path, GUINT_TO_POINTER (i), function);                         \
    }                                                                                      \
  while (0)
  for (i = 0; i < N_STEP_SAMPLES; i++)
    {
      ADD_SAMPLE (a_network_is_trained_by_replays, i);
      ADD_SAMPLE (calls_go_on_where_replays_end, i);
      ADD_SAMPLE (a_loaded_state_counts_in_replays, i);
    }
  ADD (a_step_that_is_not_capturable_is_refused);
  ADD (changes_that_replays_do_not_see_are_warned_about);
  ADD (the_property_notifies);
#undef ADD
  return g_test_run ();
}
