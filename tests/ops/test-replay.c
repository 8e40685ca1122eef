/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Every operation on a stream, and in a graph that is replayed with other inputs, compared with a
 * synchronous call, bit by bit. */

#include "config.h"

#include "op-values.h"

#define MAX_TENSORS 16

typedef struct
{
  GTorchImpl *tensors[MAX_TENSORS];
  guint n;
} Inputs;

static void
inputs_clear (Inputs *inputs)
{
  gtorch_impl_clear (inputs->tensors, inputs->n);
  inputs->n = 0;
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Inputs, inputs_clear)

static guint
sample_dtype (const GTorchOpClass *op)
{
  return op->dtypes & GTORCH_DTYPES (FLOAT32) ? GTORCH_DTYPE_FLOAT32
                                              : (guint) g_bit_nth_lsf (op->dtypes, -1);
}

static void
inputs_make (Inputs *inputs, const GTorchOpSample *sample, guint round)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (sample->op * 64 + sample->index + round * 65536);
  guint dtype = sample_dtype (&gtorch_ops[sample->op]);
  guint i;

  for (i = 0; i < sample->n_tensors; i++)
    {
      const GTorchSampleTensor *spec = &sample->tensors[i];
      g_autoptr (GTorchImpl) host =
          input_new (spec, spec->dtype != GTORCH_DTYPE_NONE ? spec->dtype : dtype,
                     LAYOUT_CONTIGUOUS, sample->low, sample->high, rand);

      inputs->tensors[i] = impl_to_test_device (host);
    }
  inputs->n = sample->n_tensors;
}

static void
inputs_overwrite (Inputs *inputs, const Inputs *values)
{
  guint i;
  gint64 k;

  for (i = 0; i < inputs->n; i++)
    for (k = 0; inputs->tensors[i] != NULL && k < inputs->tensors[i]->numel; k++)
      element_set (inputs->tensors[i], k, element_get (values->tensors[i], k));
}

static GPtrArray *
invoke (const GTorchOpSample *sample, const Inputs *inputs, GError **error)
{
  g_autoptr (GPtrArray) results =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);

  if (!gtorch_op_invokers[sample->op](inputs->tensors, inputs->n, sample->attrs, results, error))
    return NULL;
  return g_steal_pointer (&results);
}

static void
compare (const GTorchOpSample *sample, GPtrArray *results, GPtrArray *expected)
{
  guint i;

  g_assert_cmpuint (results->len, ==, expected->len);
  for (i = 0; i < results->len; i++)
    {
      g_autoptr (GTorchImpl) result = impl_to_host (results->pdata[i]);
      g_autoptr (GTorchImpl) wanted = impl_to_host (expected->pdata[i]);
      g_autofree gchar *text = difference (result, wanted, 0);

      if (text == NULL)
        continue;
      g_test_message ("%s, sample %u, result %u: %s", gtorch_ops[sample->op].name, sample->index, i,
                      text);
      g_test_fail ();
    }
}

static void
a_stream_gives_the_same (gconstpointer data)
{
  const GTorchOpClass *op = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchStream) stream = gtorch_stream_new (NULL, 0, &error);
  guint i;

  g_assert_no_error (error);
  for (i = 0; i < gtorch_n_op_samples; i++)
    {
      const GTorchOpSample *sample = &gtorch_op_samples[i];
      g_auto (Inputs) inputs = { { NULL }, 0 };
      g_autoptr (GPtrArray) expected = NULL;
      g_autoptr (GPtrArray) results = NULL;

      if (sample->op != op->id)
        continue;
      inputs_make (&inputs, sample, 0);
      expected = invoke (sample, &inputs, &error);
      if (error != NULL && is_lacking (error))
        return;
      g_assert_no_error (error);
      gtorch_stream_wait_stream (stream, gtorch_stream_get_current (NULL), &error);
      g_assert_no_error (error);
      {
        g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

        results = invoke (sample, &inputs, &error);
        g_assert_no_error (error);
      }
      /* From here on only the results keep the inputs alive. */
      inputs_clear (&inputs);
      gtorch_stream_synchronize (stream, NULL, &error);
      g_assert_no_error (error);
      compare (sample, results, expected);
    }
}

static void
a_replay_gives_the_same (gconstpointer data)
{
  const GTorchOpClass *op = data;
  g_autoptr (GTorchStream) stream = gtorch_stream_new (NULL, 0, NULL);
  guint i, round;

  if (!test_can_capture ())
    return;
  for (i = 0; i < gtorch_n_op_samples; i++)
    {
      const GTorchOpSample *sample = &gtorch_op_samples[i];
      g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
      g_auto (Inputs) inputs = { { NULL }, 0 };
      g_autoptr (GPtrArray) results = NULL;
      g_autoptr (GError) error = NULL;

      if (sample->op != op->id)
        continue;
      inputs_make (&inputs, sample, 0);
      {
        g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);
        g_autoptr (GError) capture_error = NULL;

        gtorch_cuda_graph_capture_begin (graph, NULL, GTORCH_CAPTURE_MODE_THREAD_LOCAL, &error);
        g_assert_no_error (error);
        results = invoke (sample, &inputs, &capture_error);
        gtorch_cuda_graph_capture_end (graph, &error);
        if (results == NULL && is_lacking (capture_error))
          return;
        if (results == NULL)
          {
            g_assert_error (capture_error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE);
            if (!(op->flags & GTORCH_OP_FLAG_SYNC))
              {
                g_test_message ("%s, sample %u: %s", op->name, sample->index,
                                capture_error->message);
                g_test_fail ();
              }
            continue;
          }
        g_assert_no_error (error);
      }
      for (round = 1; round < 3; round++)
        {
          g_auto (Inputs) values = { { NULL }, 0 };
          g_autoptr (GPtrArray) expected = NULL;

          inputs_make (&values, sample, round);
          inputs_overwrite (&inputs, &values);
          expected = invoke (sample, &values, &error);
          g_assert_no_error (error);
          gtorch_stream_wait_stream (stream, gtorch_stream_get_current (NULL), &error);
          g_assert_no_error (error);
          gtorch_cuda_graph_replay_on (graph, stream, &error);
          g_assert_no_error (error);
          gtorch_stream_synchronize (stream, NULL, &error);
          g_assert_no_error (error);
          compare (sample, results, expected);
        }
    }
}

/* Returns FALSE if the results are random, or not initialised. */
static gboolean
has_values (const GTorchOpClass *op)
{
  static const gchar *const random[] = { "dropout", NULL }; /* random because of their parts */

  return !(op->flags & (GTORCH_OP_FLAG_RANDOM | GTORCH_OP_FLAG_UNSET))
         && !g_strv_contains (random, op->name);
}

int
main (int argc, char *argv[])
{
  guint i, j;

  g_test_init (&argc, &argv, NULL);
  /* Views alone make an empty graph, about which the library warns. */
  g_log_set_always_fatal (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL);
  for (i = 0; i < gtorch_n_ops; i++)
    {
      const GTorchOpClass *op = &gtorch_ops[i];
      g_autofree gchar *first =
          g_strdup_printf ("/GTorch/ops/%s/a_stream_gives_the_same", op->name);
      g_autofree gchar *second =
          g_strdup_printf ("/GTorch/ops/%s/a_replay_gives_the_same", op->name);

      for (j = 0; j < gtorch_n_op_samples && gtorch_op_samples[j].op != i; j++)
        ;
      if (j == gtorch_n_op_samples || !has_values (op))
        continue;
      g_test_add_data_func (first, op, a_stream_gives_the_same);
      g_test_add_data_func (second, op, a_replay_gives_the_same);
    }
  return g_test_run ();
}
