/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Captures in which streams of several GPUs take part: what they compute, and their memory. */

#include "config.h"

#include "graph-devices.h"

/* --- what a capture computes --- */

static void
a_stream_of_another_gpu_takes_part (void)
{
  capture_and_replay (gpu (0), gpu (1));
}

static void
the_second_gpu_may_be_the_first_one (void)
{
  capture_and_replay (gpu (1), gpu (0));
}

/* Nothing is computed before the first replay, on whichever GPU it is. */
static void
results_are_promised (void)
{
  g_auto (Pair) pair = { NULL };
  g_autoptr (GTorchTensor) x = full (gpu (0), 1);
  g_autoptr (GError) refusal = NULL;
  Results results;

  pair_init (&pair, gpu (0), gpu (1));
  pair_begin (&pair, NULL);
  results = compute (&pair, x);
  g_assert_null (gtorch_tensor_get_bytes (results.there, &refusal));
  g_assert_error (refusal, GTORCH_ERROR, GTORCH_ERROR_CAPTURE);
  g_clear_error (&refusal);
  pair_end (&pair);
  g_assert_null (gtorch_tensor_get_bytes (results.there, &refusal));
  g_assert_error (refusal, GTORCH_ERROR, GTORCH_ERROR_CAPTURE);
  g_assert_nonnull (strstr (refusal->message, "never replayed"));
  replay (&pair);
  assert_all (results.there, 4);
  results_clear (&results);
}

static void
many_replays_are_in_flight (void)
{
  g_auto (Pair) pair = { NULL };
  g_autoptr (GTorchTensor) x = full (gpu (0), 0), sum = full (gpu (1), 0), one = full (gpu (0), 1);
  g_autoptr (GTorchStream) other = TRY (gtorch_stream_new (gpu (0), 0, &error));
  g_autoptr (GTorchTensor) moved = NULL, twice = NULL;
  guint i;

  pair_init (&pair, gpu (0), gpu (1));
  pair_begin (&pair, NULL);
  TRY (gtorch_tensor_add_inplace (x, one, 1, &error));
  moved = to (x, gpu (1));
  twice = times (moved, 2);
  pair_end (&pair);
  for (i = 0; i < 30; i++)
    {
      GTorchStream *stream = i % 2 ? other : pair.s;

      fake_cuda_set_seed (i);
      TRY (gtorch_cuda_graph_replay_on (pair.graph, stream, &error));
      /* read on the current stream of the second GPU, which nobody orders by hand */
      TRY (gtorch_tensor_add_inplace (sum, twice, 1, &error));
    }
  assert_all (sum, 30 * 31);
  TRY (gtorch_stream_synchronize (other, NULL, &error));
  TRY (gtorch_stream_synchronize (pair.s, NULL, &error));
  assert_all (x, 30);
}

/* Whatever the layouts, dtypes and shapes are. */
static void
copies_give_what_they_give_without_a_graph (void)
{
  static const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64 };
  g_auto (Pair) pair = { NULL };
  g_autoptr (GTorchTensor) x =
      TRY (gtorch_randn (GTORCH_SHAPE (30, 40), GTORCH_DTYPE_FLOAT32, gpu (0), NULL, &error));
  g_autoptr (GTorchTensor) row =
      TRY (gtorch_randn (GTORCH_SHAPE (30), GTORCH_DTYPE_FLOAT32, gpu (0), NULL, &error));
  g_autoptr (GTorchTensor) turned = TRY (gtorch_tensor_transpose (x, 0, 1, &error));
  GTorchTensor *targets[2][5];
  guint i, j;

  pair_init (&pair, gpu (0), gpu (1));
  for (i = 0; i < 2; i++)
    for (j = 0; j < 4; j++)
      targets[i][j] = TRY (gtorch_zeros (GTORCH_SHAPE (40, 30), dtypes[j % 2], gpu (1), &error));
  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchTensor) view = NULL;

      if (i == 1)
        pair_begin (&pair, NULL);
      for (j = 0; j < 4; j++)
        TRY (gtorch_tensor_copy_inplace (targets[i][j], j < 2 ? turned : row, TRUE, &error));
      view = TRY (gtorch_tensor_transpose (targets[i][0], 0, 1, &error));
      targets[i][4] = to (view, gpu (0));
      if (i == 1)
        pair_end (&pair);
    }
  replay (&pair);
  for (j = 0; j < 5; j++)
    {
      assert_same (targets[1][j], targets[0][j]);
      g_object_unref (targets[0][j]);
      g_object_unref (targets[1][j]);
    }
}

/* Pinned memory of the host, on the stream of the second GPU. */
static void
copies_from_and_to_the_host_are_captured (void)
{
  g_auto (Pair) pair = { NULL };
  g_autoptr (GTorchTensor) plain = full (gtorch_device_cpu (), 0);
  g_autoptr (GTorchTensor) in = TRY (gtorch_tensor_pin_memory (plain, &error));
  g_autoptr (GTorchTensor) out = TRY (gtorch_tensor_pin_memory (plain, &error));
  g_autoptr (GTorchTensor) x = full (gpu (1), 0);
  guint i;

  pair_init (&pair, gpu (0), gpu (1));
  pair_begin (&pair, NULL);
  TRY (gtorch_tensor_copy_inplace (x, in, TRUE, &error));
  TRY (gtorch_tensor_neg_inplace (x, &error));
  TRY (gtorch_tensor_copy_inplace (out, x, TRUE, &error));
  pair_end (&pair);
  for (i = 1; i < 20; i++)
    {
      fake_cuda_set_seed (i);
      fill (in, i); /* waits for the last replay */
      replay (&pair);
      if (i % 3 == 0)
        assert_all (out, -(gdouble) i); /* waits for this one */
    }
}

static void
random_numbers_are_those_of_eager_code (void)
{
  g_auto (Pair) pair = { NULL };
  GTorchTensor *drawn[2][2];
  guint i, j;

  pair_init (&pair, gpu (0), gpu (1));
  for (i = 0; i < 2; i++)
    {
      gtorch_manual_seed (3);
      if (i == 1)
        pair_begin (&pair, NULL);
      for (j = 0; j < 2; j++)
        drawn[i][j] =
            TRY (gtorch_rand (GTORCH_SHAPE (N), GTORCH_DTYPE_FLOAT32, gpu (j), NULL, &error));
      if (i == 1)
        pair_end (&pair);
    }
  gtorch_manual_seed (3);
  replay (&pair);
  for (j = 0; j < 2; j++)
    assert_same (drawn[1][j], drawn[0][j]);
  replay (&pair); /* which draws others */
  for (j = 0; j < 2; j++)
    {
      g_autoptr (GBytes) a = TRY (gtorch_tensor_get_bytes (drawn[0][j], &error));
      g_autoptr (GBytes) b = TRY (gtorch_tensor_get_bytes (drawn[1][j], &error));

      g_assert_false (g_bytes_equal (a, b));
      g_object_unref (drawn[0][j]);
      g_object_unref (drawn[1][j]);
    }
}

/* --- a model with a half on each GPU --- */

typedef struct
{
  GTorchModule *halves[2];
  GTorchOptimizer *optimizer;
  GTorchTensor *x, *target, *loss;
} Training;

static GTorchModule *
make_half (GTorchDevice *device, guint n_inputs, guint n_outputs)
{
  GTorchModule *layers[] = {
    GTORCH_MODULE (TRY (gtorch_linear_new (n_inputs, n_outputs, &error))),
    GTORCH_MODULE (gtorch_tanh_new ()),
    GTORCH_MODULE (TRY (gtorch_dropout_new (0.2, &error))),
  };
  GTorchModule *half = GTORCH_MODULE (TRY (gtorch_sequential_new_from_modules (layers, 3, &error)));
  guint i;

  for (i = 0; i < 3; i++)
    g_object_unref (layers[i]);
  TRY (gtorch_module_to (half, device, GTORCH_DTYPE_NONE, &error));
  return half;
}

static void
training_init (Training *self)
{
  g_autoptr (GTorchModule) all = NULL;
  g_autoptr (GListModel) parameters = NULL;

  gtorch_manual_seed (11);
  self->halves[0] = make_half (gpu (0), 8, 16);
  self->halves[1] = make_half (gpu (1), 16, 4);
  all = GTORCH_MODULE (TRY (gtorch_sequential_new_from_modules (self->halves, 2, &error)));
  parameters = gtorch_module_get_parameters (all, TRUE);
  self->optimizer = GTORCH_OPTIMIZER (TRY (gtorch_adam_new (parameters, 0.01, &error)));
  gtorch_optimizer_set_capturable (self->optimizer, TRUE);
  self->x = TRY (gtorch_randn (GTORCH_SHAPE (12, 8), GTORCH_DTYPE_FLOAT32, gpu (0), NULL, &error));
  self->target =
      TRY (gtorch_randn (GTORCH_SHAPE (12, 4), GTORCH_DTYPE_FLOAT32, gpu (1), NULL, &error));
  self->loss = NULL;
}

static void
training_clear (Training *self)
{
  g_object_unref (self->halves[0]);
  g_object_unref (self->halves[1]);
  g_object_unref (self->optimizer);
  g_object_unref (self->x);
  g_object_unref (self->target);
  g_clear_object (&self->loss);
}

static void
step (Training *self)
{
  g_autoptr (GTorchTensor) middle = NULL, moved = NULL, output = NULL;

  TRY (gtorch_optimizer_zero_grad (self->optimizer, TRUE, &error));
  middle = TRY (gtorch_module_forward (self->halves[0], self->x, &error));
  moved = to (middle, gpu (1));
  output = TRY (gtorch_module_forward (self->halves[1], moved, &error));
  g_clear_object (&self->loss);
  self->loss = TRY (gtorch_tensor_mse_loss (output, self->target, GTORCH_REDUCTION_MEAN, &error));
  TRY (gtorch_tensor_backward (self->loss, NULL, FALSE, FALSE, &error));
  TRY (gtorch_optimizer_step (self->optimizer, &error));
}

static gdouble
loss_of (Training *self)
{
  g_autofree gdouble *values = read_doubles (gtorch_tensor_get_impl (self->loss));

  return values[0];
}

/* Forward pass, backward pass and the step of the optimizer are one graph, which has the numbers of eager
 * code, those of dropout included. */
static void
training_is_the_same_as_without_a_graph (void)
{
  g_auto (Pair) pair = { NULL };
  Training eager, captured;
  gdouble first = 0, last = 0;
  guint i;

  pair_init (&pair, gpu (0), gpu (1));
  training_init (&eager);
  training_init (&captured);
  gtorch_manual_seed (5);
  step (&eager);
  gtorch_manual_seed (5);
  step (&captured); /* makes what the optimizer keeps */
  pair_begin (&pair, NULL);
  step (&captured);
  pair_end (&pair);
  for (i = 0; i < 12; i++)
    {
      fake_cuda_set_seed (i);
      gtorch_manual_seed (100 + i);
      step (&eager);
      gtorch_manual_seed (100 + i);
      replay (&pair);
      last = loss_of (&eager);
      first = i == 0 ? last : first;
      g_assert_cmpfloat_with_epsilon (loss_of (&captured), last, 1e-5 * (1 + last));
    }
  g_assert_cmpfloat (last, !=, first);
  training_clear (&eager);
  training_clear (&captured);
}

/* --- memory --- */

#define BIG ((gint64) 4 << 20) /* bytes */

/* Changes the tensor on a further stream, in order with the stream on which it was made. */
static void
use_on (GTorchStream *stream, GTorchStream *own, GTorchTensor *x)
{
  TRY (gtorch_stream_wait_stream (stream, own, &error));
  {
    g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

    TRY (gtorch_tensor_neg_inplace (x, &error));
  }
  TRY (gtorch_stream_wait_stream (own, stream, &error));
}

/* On the second GPU too, memory of tensors that the capture has freed is used by later ones of it, and all of
 * it goes back to the device when the graph and its results are gone. */
static void
memory_is_reused_and_returned (void)
{
  guint64 before[2];
  guint i, j;

  empty_caches ();
  for (j = 0; j < 2; j++)
    before[j] = reserved (j);
  {
    g_auto (Pair) pair = { NULL };
    g_autoptr (GTorchTensor) x =
        TRY (gtorch_ones (GTORCH_SHAPE (BIG / 4), GTORCH_DTYPE_FLOAT32, gpu (0), &error));
    g_autoptr (GTorchTensor) moved = NULL, result = NULL;

    g_autoptr (GTorchStream) more = TRY (gtorch_stream_new (gpu (1), 0, &error));

    pair_init (&pair, gpu (0), gpu (1));
    pair_begin (&pair, NULL);
    moved = to (x, gpu (1));
    for (i = 0; i < 20; i++)
      {
        g_autoptr (GTorchTensor) sum = plus (result != NULL ? result : moved, moved);

        g_set_object (&result, sum);
      }
    {
      g_autoptr (GTorchTensor) shared = plus (moved, moved);

      use_on (more, pair.t, shared); /* kept until the capture ends */
    }
    pair_end (&pair);
    g_assert_cmpuint (reserved (1), <, before[1] + 12 * BIG);
    g_assert_true (gtorch_pool_of (gtorch_tensor_get_impl (result)->storage)
                   == gtorch_pool_find_on (gtorch_memory_pool_get_pool (
                                               gtorch_cuda_graph_get_pool (pair.graph)),
                                           gpu (1)));
    replay (&pair);
    assert_all (result, 21);
    g_clear_object (&pair.graph); /* the result keeps its memory */
    fill (moved, 0);
    assert_all (result, 21);
  }
  empty_caches ();
  for (j = 0; j < 2; j++)
    g_assert_cmpuint (reserved (j), ==, before[j]);
}

/* A copy reads memory that is used anew on one GPU while the other one is still behind, and the other way
 * round. */
static void
memory_is_not_reused_too_early (void)
{
  g_auto (Pair) pair = { NULL };
  g_autoptr (GTorchTensor) x = full (gpu (0), 1), sum = full (gpu (0), 0);
  g_autoptr (GTorchTensor) one = full (gpu (1), 1), there = full (gpu (1), 0);
  guint i;

  pair_init (&pair, gpu (0), gpu (1));
  pair_begin (&pair, NULL);
  for (i = 1; i <= 10; i++)
    {
      g_autoptr (GTorchTensor) y = times (x, i), moved = to (y, gpu (1));

      TRY (gtorch_tensor_add_inplace (there, moved, 1, &error));
    }
  for (i = 1; i <= 10; i++)
    {
      g_autoptr (GTorchTensor) y = times (one, i), moved = to (y, gpu (0));

      TRY (gtorch_tensor_add_inplace (sum, moved, 1, &error));
    }
  pair_end (&pair);
  for (i = 1; i <= 20; i++)
    {
      fake_cuda_set_seed (i);
      replay (&pair);
    }
  assert_all (there, 20 * 55);
  assert_all (sum, 20 * 55);
}

static void
graphs_share_the_memory_of_both_gpus (void)
{
  g_auto (Pair) one = { NULL }, two = { NULL };
  g_autoptr (GTorchTensor) x = full (gpu (0), 1);
  g_autoptr (GError) refusal = NULL;
  GTorchMemoryPool *pool;
  Results first, second;

  pair_init (&one, gpu (0), gpu (1));
  pair_init (&two, gpu (0), gpu (1));
  pair_begin (&one, NULL);
  first = compute (&one, x);
  pair_end (&one);
  pool = gtorch_cuda_graph_get_pool (one.graph);
  pair_begin (&two, pool);
  second = compute (&two, first.here); /* reads the result of the first graph */
  pair_end (&two);
  g_assert_true (gtorch_pool_of (gtorch_tensor_get_impl (first.there)->storage)
                 == gtorch_pool_of (gtorch_tensor_get_impl (second.there)->storage));
  g_assert_false (gtorch_cuda_graph_replay (two.graph, &refusal)); /* the first comes first */
  g_assert_error (refusal, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  replay (&one);
  replay (&two);
  assert_all (first.here, 6);
  assert_all (second.there, 14);
  assert_all (second.here, 21);
  results_clear (&first);
  results_clear (&second);
  gtorch_memory_pool_trim (pool); /* the graphs keep it */
  replay (&one);
  replay (&two);
  settle ();
}

/* --- a pipeline of three --- */

static void
three_gpus_take_part (void)
{
  GTorchDeviceManager *manager = gtorch_device_manager_get_default ();
  g_auto (Pair) pair = { NULL };
  g_autoptr (GTorchTensor) x = full (gpu (0), 1);
  g_autoptr (GTorchStream) third = NULL;
  g_autoptr (GTorchTensor) a = NULL, b = NULL, c = NULL, d = NULL;
  GTorchStreamGuard *guard;

  if (gtorch_device_manager_get_device_count (manager) < 3)
    {
      g_test_skip ("fewer than three GPUs");
      return;
    }
  third = TRY (gtorch_stream_new (gpu (2), 0, &error));
  pair_init (&pair, gpu (0), gpu (1));
  g_assert_true (gtorch_device_synchronize (gpu (2), NULL, NULL));
  guard = gtorch_stream_guard_new (third);
  pair_begin (&pair, NULL);
  a = to (x, gpu (1));
  b = times (a, 3);
  TRY (gtorch_stream_wait_stream (third, pair.t, &error)); /* through the second one */
  c = to (b, gpu (2));
  TRY (gtorch_tensor_neg_inplace (c, &error));
  d = to (c, gpu (0));
  TRY (gtorch_stream_wait_stream (pair.t, third, &error));
  pair_end (&pair);
  gtorch_stream_guard_end (guard);
  gtorch_stream_guard_unref (guard);
  fill (x, 5);
  replay (&pair);
  assert_all (c, -15);
  assert_all (d, -15);
}

/* GTORCH_CHECK=replay: the operations on both GPUs are repeated and compared. */
static void
replays_are_compared_on_both_gpus (void)
{
  gtorch_checks_set (GTORCH_CHECK_REPLAY);
  capture_and_replay (gpu (0), gpu (1));
  random_numbers_are_those_of_eager_code ();
  gtorch_checks_set (0);
}

#define TEST(name) g_test_add_func ("/GTorchGraphDevices/" #name, name)

gint
main (gint argc, gchar **argv)
{
  gint result;

  if (skips_without_two_gpus ())
    return 0;
  g_test_init (&argc, &argv, NULL);
  TEST (a_stream_of_another_gpu_takes_part);
  TEST (the_second_gpu_may_be_the_first_one);
  TEST (results_are_promised);
  TEST (many_replays_are_in_flight);
  TEST (copies_give_what_they_give_without_a_graph);
  TEST (copies_from_and_to_the_host_are_captured);
  TEST (random_numbers_are_those_of_eager_code);
  TEST (training_is_the_same_as_without_a_graph);
  TEST (memory_is_reused_and_returned);
  TEST (memory_is_not_reused_too_early);
  TEST (graphs_share_the_memory_of_both_gpus);
  TEST (replays_are_compared_on_both_gpus);
  TEST (three_gpus_take_part);
  result = g_test_run ();
#ifndef ON_A_REAL_GPU
  assert_no_misuse ();
#endif
  return result;
}
