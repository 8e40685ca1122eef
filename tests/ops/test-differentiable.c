/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* No operation cuts the graph silently: each floating-point result of floating-point inputs has a
 * history, through which the backward pass gives a gradient or an error. Operations whose results do not
 * depend on the values of their inputs are listed. */

#include "config.h"

#include <string.h>

#include "gtorch-ops-private.h"
#include "gtorch/autograd/gtorch-autograd-private.h"
#include "op-derivatives.h"

/* Results that take only the shape from an input, or are random. */
static const gchar *const without_history[] = {
  "bernoulli_p",
  "cauchy",
  "empty_like",
  "exponential",
  "fractional_max_pool2d.random_samples",
  "fractional_max_pool2d_with_indices.random_samples",
  "fractional_max_pool3d.random_samples",
  "fractional_max_pool3d_with_indices.random_samples",
  "full_like",
  "geometric",
  "histc",
  "histogram.self",
  "histogram_bins.self",
  "histogramdd.range",
  "histogramdd.self",
  "histogramdd_bins.self",
  "log_normal",
  "new_empty",
  "new_empty_strided",
  "new_full",
  "new_ones",
  "new_zeros",
  "normal",
  "normal_around",
  "ones_like",
  "rand_like",
  "randint_like",
  "randn_like",
  "random",
  "uniform",
  "zeros_like",
};

/* Inputs of which only metadata is used, or whose values a sample does not read. */
static const gchar *const unused[] = {
  "expand_as.other",
  "reshape_as.other",
  "type_as.other",
  "view_as.other",
};

/* Inputs that only some of the results, or of the samples, depend on; at least one does. */
static const gchar *const partial[] = {
  "atleast_1d_list.tensors",
  "atleast_2d_list.tensors",
  "atleast_3d_list.tensors",
  "broadcast_tensors.tensors",
  "gradient.spacing",
  "histogram.weight",
  "histogram_bins.bins",
  "histogram_bins.weight",
  "histogramdd.weight",
  "histogramdd_bins.bins",
  "histogramdd_bins.weight",
  "meshgrid.tensors",
  "multi_head_attention_forward.bias_v",
  "multi_head_attention_forward.key",
  "multi_head_attention_forward.out_proj_bias",
  "multi_head_attention_forward.out_proj_weight",
  "multi_head_attention_forward.static_v",
  "multi_head_attention_forward.v_proj_weight",
  "multi_head_attention_forward.value",
  "nanquantile.q",
  "quantile.q",
};

/* Results that are parts of others: saved for the backward pass. */
static const gchar *const statistics[] = { "attention", "native_batch_norm", "native_cross_entropy",
                                           "native_layer_norm" };

/* Results that do not depend on an input: permutations, copies of another input,
 * and singular values beside a solution. */
static const struct
{
  const gchar *op, *arg;
  guint result;
} independent[] = { { "linalg_lu", "A", 0 },          { "linalg_lstsq", "A", 1 },
                    { "linalg_lstsq", "A", 3 },       { "linalg_lstsq", "B", 1 },
                    { "linalg_lstsq", "B", 3 },       { "lu_unpack", "LU_data", 0 },
                    { "triangular_solve", "self", 1 } };

static gboolean
is_independent (const gchar *op, const gchar *arg, guint result)
{
  guint i;

  for (i = 0; i < G_N_ELEMENTS (independent); i++)
    if (g_str_equal (independent[i].op, op) && g_str_equal (independent[i].arg, arg)
        && independent[i].result == result)
      return TRUE;
  return FALSE;
}

static gboolean
is_in (const gchar *const *names, guint n, const gchar *op, const gchar *arg)
{
  g_autofree gchar *full = g_strdup_printf ("%s.%s", op, arg);
  guint i;

  for (i = 0; i < n; i++)
    if (g_str_equal (names[i], op) || g_str_equal (names[i], full))
      return TRUE;
  return FALSE;
}

#define IS_IN(names, op, arg) is_in (names, G_N_ELEMENTS (names), op, arg)

static gboolean
is_floating (const GTorchImpl *impl)
{
  return gtorch_dtype_kind (impl->dtype) >= GTORCH_KIND_FLOAT;
}

/* Checks the sample with input `wanted` as the only one that requires grad. Returns the number of results
 * with a history. */
static guint
check (const GTorchOpSample *sample, guint wanted, guint floating)
{
  const gchar *op = gtorch_ops[sample->op].name, *arg = sample->tensors[wanted].name;
  g_autoptr (GRand) rand = g_rand_new_with_seed (5);
  g_autoptr (GPtrArray) inputs = g_ptr_array_new ();
  g_autoptr (GPtrArray) results =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  g_autoptr (GError) error = NULL;
  GTorchBackward backward = { .n_roots = 1 };
  guint i, n_histories = 0;

  for (i = 0; i < sample->n_tensors; i++)
    {
      const GTorchSampleTensor *spec = &sample->tensors[i];
      const guint dtype = spec->dtype != GTORCH_DTYPE_NONE ? spec->dtype : floating;
      g_autoptr (GTorchImpl) host =
          input_new (spec, dtype, LAYOUT_CONTIGUOUS, sample->low, sample->high, rand);

      g_ptr_array_add (inputs, impl_to_test_device (host));
    }
  if (inputs->pdata[wanted] == NULL || !is_floating (inputs->pdata[wanted]))
    goto out;
  gtorch_autograd_ensure (inputs->pdata[wanted])->requires_grad = TRUE;
  gtorch_op_invokers[sample->op]((GTorchImpl **) inputs->pdata, inputs->len, sample->attrs, results,
                                 &error);
  if (g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE)
      || (error != NULL && is_lacking (error)))
    goto out;
  g_assert_no_error (error);
  for (i = 0; i < results->len; i++)
    {
      GTorchImpl *result = results->pdata[i];
      g_autoptr (GTorchImpl) upper = NULL;
      g_autoptr (GTorchImpl) grad = NULL;
      gboolean has, should_be;

      if (!is_floating (result))
        continue;
      has = gtorch_impl_requires_grad (result);
      n_histories += has;
      should_be = !IS_IN (without_history, op, arg) && !is_independent (op, arg, i);
      if (IS_IN (unused, op, arg))
        should_be = FALSE;
      if (IS_IN (partial, op, arg))
        should_be = has;
      if (has != should_be)
        {
          g_test_message ("sample %u: result %u %s a history from %s", sample->index, i,
                          should_be ? "lacks" : "has", arg);
          g_test_fail ();
          continue;
        }
      if (!should_be)
        continue;
      upper = gtorch_op_ones_like (result, GTORCH_DTYPE_NONE, &error);
      g_assert_no_error (error);
      backward.roots = &result;
      backward.grads = &upper;
      backward.inputs = (GTorchImpl **) &inputs->pdata[wanted];
      backward.n_inputs = 1;
      backward.results = &grad;
      backward.retain_graph = TRUE;
      gtorch_engine_run (&backward, &error);
      if (derivative_is_undefined (sample, wanted) || (i > 0 && IS_IN (statistics, op, arg))
              ? !g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD)
                    || strstr (error->message, "is not defined") == NULL
              : error != NULL)
        {
          g_test_message ("sample %u: result %u, %s: %s", sample->index, i, arg,
                          error != NULL ? error->message : "no error");
          g_test_fail ();
        }
      g_clear_error (&error);
    }
  if (sample->op == GTORCH_OP_MESHGRID)
    g_assert_cmpuint (n_histories, ==, 1);
out:
  gtorch_impl_clear ((GTorchImpl **) inputs->pdata, inputs->len);
  return n_histories;
}

static void
keeps_the_graph (gconstpointer data)
{
  const GTorchOpClass *op = data;
  guint n_histories[G_N_ELEMENTS (partial)] = { 0 };
  guint s, i, k;

  for (s = 0; s < gtorch_n_op_samples; s++)
    for (i = 0; gtorch_op_samples[s].op == op->id && i < gtorch_op_samples[s].n_tensors; i++)
      {
        const GTorchOpSample *sample = &gtorch_op_samples[s];
        const guint n =
            check (sample, i, GTORCH_DTYPE_FLOAT64) + check (sample, i, GTORCH_DTYPE_COMPLEX128);

        for (k = 0; k < G_N_ELEMENTS (partial); k++)
          if (is_in (&partial[k], 1, op->name, sample->tensors[i].name))
            n_histories[k] += n;
      }
  for (k = 0; k < G_N_ELEMENTS (partial); k++)
    if (g_str_has_prefix (partial[k], op->name) && partial[k][strlen (op->name)] == '.'
        && n_histories[k] == 0)
      {
        g_test_message ("no result depends on %s", partial[k]);
        g_test_fail ();
      }
}

/* Finds the operation that a name of a list begins with, and its argument if there is one. */
static const GTorchOpClass *
find_named (const gchar *name)
{
  g_auto (GStrv) parts = g_strsplit (name, ".", 2);
  const GTorchOpClass *op = gtorch_op_find (parts[0]);
  guint i;

  for (i = 0; op != NULL && parts[1] != NULL && i < op->n_args; i++)
    if (g_str_equal (op->args[i].name, parts[1]))
      return op;
  return parts[1] == NULL ? op : NULL;
}

static void
lists_name_operations (void)
{
  static const struct
  {
    const gchar *const *names;
    guint n;
  } lists[] = {
    { without_history, G_N_ELEMENTS (without_history) },
    { unused, G_N_ELEMENTS (unused) },
    { partial, G_N_ELEMENTS (partial) },
    { statistics, G_N_ELEMENTS (statistics) },
  };
  guint i, k;

  for (k = 0; k < G_N_ELEMENTS (lists); k++)
    for (i = 0; i < lists[k].n; i++)
      {
        const GTorchOpClass *op = find_named (lists[k].names[i]);

        if (op == NULL || (lists[k].names == without_history && op->grad != NULL))
          {
            g_test_message ("%s: %s", lists[k].names[i],
                            op == NULL ? "there is no such operation" : "it has a gradient");
            g_test_fail ();
          }
      }
}

static void
second_derivative_that_is_not_defined_is_an_error (void)
{
  const gint64 shape[] = { 3 };
  g_autoptr (GTorchImpl) x = gtorch_op_ones (shape, 1, GTORCH_DTYPE_FLOAT64, test_device (), NULL);
  g_autoptr (GTorchImpl) values = NULL;
  g_autoptr (GTorchImpl) sum = NULL;
  g_autoptr (GError) error = NULL;
  GTorchBackward backward = { .roots = &sum, .n_roots = 1 };

  gtorch_autograd_ensure (x)->requires_grad = TRUE;
  gtorch_op_unique (x, &values, NULL, NULL, &error);
  if (error != NULL && is_lacking (error))
    return;
  g_assert_no_error (error);
  sum = gtorch_op_sum (values, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  g_assert_no_error (error);
  g_assert_false (gtorch_engine_run (&backward, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  g_assert_nonnull (strstr (error->message, "unique: its derivative is not defined"));
}

int
main (int argc, char *argv[])
{
  guint i, s;

  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/differentiable/lists_name_operations", lists_name_operations);
  g_test_add_func ("/GTorch/differentiable/undefined_is_an_error",
                   second_derivative_that_is_not_defined_is_an_error);
  for (i = 0; i < gtorch_n_ops; i++)
    {
      g_autofree gchar *path =
          g_strdup_printf ("/GTorch/differentiable/%s/keeps_the_graph", gtorch_ops[i].name);

      for (s = 0; s < gtorch_n_op_samples; s++)
        if (gtorch_op_samples[s].op == i && gtorch_op_samples[s].n_tensors > 0)
          break;
      if (s < gtorch_n_op_samples)
        g_test_add_data_func (path, &gtorch_ops[i], keeps_the_graph);
    }
  return g_test_run ();
}
