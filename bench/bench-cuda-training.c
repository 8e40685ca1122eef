/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Rows for graphs, training and inference. The data of a row is created at its first call, and freed at
 * that of another. */

#include "config.h"

#include "bench-cuda.h"
#include "bench-training.h"

#define WARMUP 3

typedef enum
{
  EAGER,
  GRAPH,
  INFER,
  INFER_GRAPH,
  CAPTURE, /* the capture of a step, which is not replayed */
  TINY,    /* a hundred small kernels */
  TINY_GRAPH,
  TINY_ON_OWN, /* replayed on the stream of the capture */
} Form;

typedef struct
{
  Form form;
  BenchNetwork network;
  GTorchDType autocast; /* or NONE */
} Program;

/* The measured program. */
static struct
{
  const Program *program;
  BenchTraining *training;
  GTorchTensor *result; /* the result of a call */
  GTorchStream *stream;
  GTorchCUDAGraph *graph;
} now;

static void
drop (void)
{
  now.program = NULL;
  g_clear_object (&now.graph);
  g_clear_object (&now.result);
  g_clear_object (&now.stream);
  bench_stream = NULL;
  g_clear_pointer (&now.training, bench_training_free);
  gtorch_device_empty_cache (bench_device);
}

static gboolean
work (GTorchStream *stream, gpointer data, GError **error)
{
  guint i;

  switch (now.program->form)
    {
    case TINY:
    case TINY_GRAPH:
    case TINY_ON_OWN:
      for (i = 0; i < 100; i++)
        if (gtorch_tensor_add_scalar_inplace (now.result, 1, 1, error) == NULL)
          return FALSE;
      return TRUE;
    case INFER:
    case INFER_GRAPH:
      g_clear_object (&now.result);
      now.result = bench_training_infer (now.training, error);
      return now.result != NULL;
    default:
      return bench_training_step (now.training, error);
    }
}

static gboolean
capture (GError **error)
{
  if (now.training != NULL && !bench_training_zero_grad (now.training, error))
    return FALSE;
  g_clear_object (&now.graph);
  now.graph = gtorch_cuda_graph_new ();
  return gtorch_cuda_graph_capture (now.graph, now.stream, NULL, work, NULL, error);
}

static gboolean
prepare (const Program *program, GError **error)
{
  const Form form = program->form;
  guint i;

  now.program = program;
  if (form >= TINY)
    now.result = gtorch_zeros (GTORCH_SHAPE (16), GTORCH_DTYPE_FLOAT32, bench_device, error);
  else
    {
      now.training = bench_training_new (program->network, program->autocast,
                                         form == GRAPH || form == CAPTURE, bench_device, error);
      if (now.training != NULL)
        now.result = g_object_ref (bench_training_get_input (now.training));
    }
  if (now.result == NULL)
    return FALSE;
  if (form == EAGER || form == INFER || form == TINY)
    return TRUE;
  now.stream = gtorch_stream_new (bench_device, 0, error);
  if (now.stream == NULL || !gtorch_device_synchronize (bench_device, NULL, error))
    return FALSE;
  for (i = 0; i < WARMUP; i++)
    if (!gtorch_stream_run (now.stream, work, NULL, error))
      return FALSE;
  return gtorch_device_synchronize (bench_device, NULL, error)
         && (form == CAPTURE || capture (error));
}

static gboolean
have (const Program *program, GError **error)
{
  if (now.program == program)
    return TRUE;
  drop ();
  if (prepare (program, error))
    {
      bench_stream = program->form == TINY_ON_OWN ? now.stream : NULL;
      return TRUE;
    }
  drop ();
  return FALSE;
}

static GTorchTensor *
run (gconstpointer data, GError **error)
{
  const Program *program = data;
  gboolean success;

  if (!have (program, error))
    return NULL;
  if (program->form == CAPTURE)
    success = capture (error);
  else if (now.graph != NULL)
    success = gtorch_cuda_graph_replay (now.graph, error);
  else
    success = work (NULL, NULL, error);
  return success ? g_object_ref (now.result) : NULL;
}

static gboolean
replay (gconstpointer data, guint n, GError **error)
{
  gboolean success = have (data, error);

  if (bench_stream != NULL)
    for (; success && n > 0; n--)
      success = gtorch_cuda_graph_replay_on (now.graph, bench_stream, error);
  for (; success && n > 0; n--)
    success = gtorch_cuda_graph_replay (now.graph, error);
  return success;
}

#define NONE GTORCH_DTYPE_NONE
#define PROGRAM(...) \
  &(const Program) { __VA_ARGS__ }
#define WALL(name, ...)                         \
  {                                             \
    name, run, 0, "wall", PROGRAM (__VA_ARGS__) \
  }
#define BOTH(name, ...)                              \
  WALL ("train." name ".eager", EAGER, __VA_ARGS__), \
      WALL ("train." name ".graph", GRAPH, __VA_ARGS__)
/* GTORCH_CHECK is set to the end of the name. */
#define AUDIT(name, form)                                                   \
  {                                                                         \
    "audit." name, run, 0, "audit", PROGRAM (form, BENCH_SMALL_MLP50, NONE) \
  }

/* clang-format off */
const BenchCase bench_programs[] = {
  { "graph.replay_100_tiny.host", NULL, 0, NULL, PROGRAM (TINY_GRAPH), replay },
  { "graph.replay_100_tiny.own_stream.host", NULL, 0, NULL, PROGRAM (TINY_ON_OWN), replay },
  { "graph.replay_100_tiny", run, 0, "s", PROGRAM (TINY_GRAPH) },
  { "graph.eager_100_tiny", run, 0, "wall", PROGRAM (TINY) },
  BOTH ("seed_mlp_sgd", BENCH_SEED_MLP, NONE),
  BOTH ("small_mlp50_adam", BENCH_SMALL_MLP50, NONE),
  BOTH ("small_mlp50_adam_fused", BENCH_SMALL_MLP50, NONE),
  BOTH ("small_mlp50_adam_amp", BENCH_SMALL_MLP50, GTORCH_DTYPE_FLOAT16),
  BOTH ("small_mlp50_adam_fused_amp", BENCH_SMALL_MLP50, GTORCH_DTYPE_FLOAT16),
  BOTH ("small_mlp50_adam_bf16", BENCH_SMALL_MLP50, GTORCH_DTYPE_BFLOAT16),
  BOTH ("digits", BENCH_DIGITS, NONE),
  BOTH ("digits_fused", BENCH_DIGITS, NONE),
  BOTH ("lstm", BENCH_LSTM, NONE),
  BOTH ("lstm_ieee", BENCH_LSTM_IEEE, NONE),
  BOTH ("lstm_steps", BENCH_LSTM_STEPS, NONE),
  BOTH ("lstm_bf16", BENCH_LSTM, GTORCH_DTYPE_BFLOAT16),
  BOTH ("small_lstm", BENCH_SMALL_LSTM, NONE),
  WALL ("infer.small_mlp50.eager", INFER, BENCH_SMALL_MLP50, NONE),
  WALL ("infer.small_mlp50.graph", INFER_GRAPH, BENCH_SMALL_MLP50, NONE),
  WALL ("infer.digits.eager", INFER, BENCH_DIGITS, NONE),
  WALL ("infer.digits.graph", INFER_GRAPH, BENCH_DIGITS, NONE),
  WALL ("infer.lstm.eager", INFER, BENCH_LSTM, NONE),
  WALL ("infer.lstm.graph", INFER_GRAPH, BENCH_LSTM, NONE),
  AUDIT ("capture_mlp50.graph", CAPTURE),
  AUDIT ("capture_mlp50.replay", CAPTURE),
  AUDIT ("capture_mlp50.streams", CAPTURE),
  AUDIT ("train_mlp50.errors", EAGER),
  AUDIT ("train_mlp50.streams", EAGER),
  AUDIT ("replay_mlp50.replay", GRAPH),
  AUDIT ("replay_mlp50.streams", GRAPH),
  { NULL },
};
/* clang-format on */
