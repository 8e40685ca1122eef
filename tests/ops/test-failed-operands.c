/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Every operation with each of its operands in turn as the skipped result of a failed stream: the
 * operation is refused, or its result cannot be read, unless it overwrites the whole operand without
 * reading it. */

#include "config.h"

#include <string.h>

#include "op-values.h"

#define MAX_TENSORS 16

/* Operands of which only the shape or dtype is read. */
static const gchar *const unread[] = {
  "cauchy.0",
  "empty_like.0",
  "expand_as.1",
  "geometric.0",
  "log_normal.0",
  "multi_head_attention_forward.1",
  "multi_head_attention_forward.2", /* given static_k, static_v */
  "new_empty.0",
  "new_empty_strided.0",
  "reshape_as.1",
  "type_as.1",
  "view_as.1",
  NULL,
};

static gboolean
fail (gpointer data, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX, "gather: index 7 is out of range");
  return FALSE;
}

static void
spoil (GTorchImpl *impl)
{
  static GTorchStream *stream;
  guint64 seq;

  if (stream == NULL)
    stream = gtorch_stream_new (gtorch_device_cpu (), 0, NULL);
  seq = GTORCH_STREAM_GET_CLASS (stream)->enqueue (stream, fail, NULL, NULL);
  g_assert_false (gtorch_stream_synchronize (stream, NULL, NULL));
  gtorch_storage_set_writer (impl->storage, stream->timeline, seq);
}

static guint
main_dtype (const GTorchOpClass *op)
{
  return op->dtypes & GTORCH_DTYPES (FLOAT32) ? GTORCH_DTYPE_FLOAT32
                                              : g_bit_nth_lsf (op->dtypes, -1);
}

static void
inputs_new (const GTorchOpSample *sample, guint32 seed, GTorchImpl **inputs)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
  guint i;

  for (i = 0; i < sample->n_tensors; i++)
    {
      const guint dtype = sample->tensors[i].dtype;

      inputs[i] =
          input_new (&sample->tensors[i],
                     dtype != GTORCH_DTYPE_NONE ? dtype : main_dtype (&gtorch_ops[sample->op]),
                     LAYOUT_CONTIGUOUS, sample->low, sample->high, rand);
    }
}

static gboolean
invoke (const GTorchOpSample *sample, gboolean in_place, GTorchImpl *const *inputs,
        GPtrArray *results, GError **error)
{
  const GTorchInvoker invoker =
      in_place ? gtorch_op_in_place_invokers[sample->op] : gtorch_op_invokers[sample->op];

  gtorch_manual_seed (1);
  return invoker (inputs, sample->n_tensors, sample->attrs, results, error);
}

static gboolean
overwrites (const GTorchOpSample *sample, gboolean in_place, guint i)
{
  return in_place && i == 0 && (gtorch_ops[sample->op].flags & GTORCH_OP_FLAG_OVERWRITES);
}

/* Returns TRUE if an existing result refuses to be read. */
static gboolean
is_refused (GPtrArray *results)
{
  guint i;

  for (i = 0; i < results->len; i++)
    {
      g_autoptr (GError) error = NULL;

      if (results->pdata[i] != NULL && !gtorch_impl_sync (results->pdata[i], &error))
        {
          g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
          return TRUE;
        }
    }
  return FALSE;
}

static void
check_operand (const GTorchOpSample *sample, gboolean in_place, guint i, GTorchStream *stream)
{
  GTorchImpl *inputs[MAX_TENSORS] = { NULL };
  g_autoptr (GPtrArray) results =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  g_autoptr (GError) error = NULL;
  g_autofree gchar *name = g_strdup_printf ("%s.%u", gtorch_ops[sample->op].name, i);
  const gchar *form = in_place ? "in place" : "";
  gboolean result;

  inputs_new (sample, 1, inputs);
  if (inputs[i] == NULL || (in_place && gtorch_op_in_place_invokers[sample->op] == NULL))
    goto out;
  spoil (inputs[i]);
  if (stream != NULL)
    {
      g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);

      result = invoke (sample, in_place, inputs, results, &error);
      /* independent parts of a composite may have been computed */
      gtorch_stream_synchronize (stream, NULL, NULL);
    }
  else
    result = invoke (sample, in_place, inputs, results, &error);
  if (overwrites (sample, in_place, i))
    {
      g_assert_no_error (error);
      g_assert_true (gtorch_impl_sync (inputs[i], &error));
    }
  else if (result && !g_strv_contains (unread, name) && !is_refused (results)
           && !(in_place && !gtorch_impl_sync (inputs[0], NULL)))
    {
      g_test_message ("%s %s is taken", name, form);
      g_test_fail ();
    }
  else if (!result && !g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE)
           && strstr (error->message, "index 7") == NULL)
    {
      g_test_message ("%s %s: %s", name, form, error->message);
      g_test_fail ();
    }
out:
  gtorch_impl_clear (inputs, sample->n_tensors);
}

static void
refuses (gconstpointer data)
{
  const GTorchOpSample *sample = data;
  g_autoptr (GTorchStream) stream = gtorch_stream_new (gtorch_device_cpu (), 0, NULL);
  guint i, form;

  g_assert_cmpuint (sample->n_tensors, <=, MAX_TENSORS);
  for (i = 0; i < sample->n_tensors; i++)
    for (form = 0; form < 4; form++)
      check_operand (sample, form & 1, i, form & 2 ? stream : NULL);
}

/* Checks that the result does not depend on the operand's values. */
static void
ignores_the_values (gconstpointer data)
{
  const GTorchOpSample *sample = data;
  g_autofree gpointer bytes = NULL;
  guint32 seed;

  for (seed = 0; seed < 2; seed++)
    {
      GTorchImpl *inputs[MAX_TENSORS] = { NULL };
      g_autoptr (GPtrArray) results =
          g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
      g_autoptr (GError) error = NULL;
      gsize n_bytes;

      inputs_new (sample, 1, inputs);
      n_bytes = gtorch_impl_n_bytes (inputs[0]);
      memset (gtorch_impl_data (inputs[0]), seed == 0 ? 0 : 0xff, n_bytes); /* zeros, and NaN */
      g_assert_true (invoke (sample, TRUE, inputs, results, &error));
      if (seed == 0)
        bytes = g_memdup2 (gtorch_impl_data (inputs[0]), n_bytes);
      else
        g_assert_cmpmem (bytes, n_bytes, gtorch_impl_data (inputs[0]), n_bytes);
      gtorch_impl_clear (inputs, sample->n_tensors);
    }
}

int
main (int argc, char *argv[])
{
  guint i;

  g_test_init (&argc, &argv, NULL);
  for (i = 0; i < gtorch_n_op_samples; i++)
    {
      const GTorchOpSample *sample = &gtorch_op_samples[i];
      const GTorchOpClass *op = &gtorch_ops[sample->op];
      g_autofree gchar *path =
          g_strdup_printf ("/GTorch/failed-operands/%s/%u", op->name, sample->index);
      g_autofree gchar *blind =
          g_strdup_printf ("/GTorch/overwrites/%s/%u", op->name, sample->index);

      if (sample->n_tensors == 0)
        continue;
      g_test_add_data_func (path, sample, refuses);
      if (op->flags & GTORCH_OP_FLAG_OVERWRITES)
        g_test_add_data_func (blind, sample, ignores_the_values);
    }
  return g_test_run ();
}
