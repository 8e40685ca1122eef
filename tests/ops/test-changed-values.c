/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A result may be changed in place after the operation, as in y = a / b; y += 1, unless the gradient
 * needs its values: these operations are listed, and are the same in PyTorch. --list prints all results
 * and inputs that gradients need. */

#include "config.h"

#include <string.h>

#include "gtorch-ops-private.h"
#include "gtorch/autograd/gtorch-autograd-private.h"
#include "op-derivatives.h"

static const gchar *const needs_result[] = {
  "acosh_slope.self",
  "adaptive_max_pool1d_with_indices.self",
  "adaptive_max_pool2d_with_indices.self",
  "adaptive_max_pool3d_with_indices.self",
  "amax.self",
  "amin.self",
  "aminmax.self",
  "attention.key",
  "attention.query",
  "attention.value",
  "cauchy_of.self",
  "cdist.x1",
  "cdist.x2",
  "cholesky_inverse.self",
  "cholesky_solve.input2",
  "ctc_loss.log_probs",
  "cummax.self",
  "cummin.self",
  "dist.other",
  "dist.self",
  "erfinv.self",
  "exp.self",
  "exp2.self",
  "expm1.self",
  "float_power.exponent",
  "gumbel_softmax.logits",
  "hypot.other",
  "hypot.self",
  "index_reduce.self",
  "index_reduce.source",
  "inverse.self",
  "kthvalue.self",
  "ldexp.other",
  "linalg_eigh.A",
  "linalg_eigvalsh.A",
  "linalg_inv.A",
  "linalg_inv_ex.A",
  "linalg_lu_factor.A",
  "linalg_lu_factor_ex.A",
  "linalg_lu_solve.LU",
  "linalg_matrix_norm.A",
  "linalg_norm.A",
  "linalg_pinv.A",
  "linalg_qr.A",
  "linalg_solve.A",
  "linalg_solve_ex.A",
  "linalg_solve_triangular.self",
  "linalg_svd.A",
  "linalg_svdvals.A",
  "linalg_tensorinv.self",
  "linalg_tensorsolve.self",
  "linalg_vector_norm.x",
  "log_softmax.self",
  "logcumsumexp.self",
  "logcumsumexp_backward.self",
  "logcumsumexp_tangent.total",
  "logsumexp.self",
  "lstm_cell.b_hh",
  "lstm_cell.b_ih",
  "lstm_cell.hx",
  "lstm_cell.input",
  "lstm_cell.w_hh",
  "lstm_cell.w_ih",
  "lu_parts.A",
  "lu_solve.LU_data",
  "masked_amax.input",
  "masked_amin.input",
  "masked_log_softmax.input",
  "masked_logsumexp.input",
  "masked_norm.input",
  "masked_softmax.input",
  "masked_softmin.input",
  "masked_std.input",
  "max.self",
  "max_dim.self",
  "max_pool1d_with_indices.self",
  "max_pool2d_with_indices.self",
  "max_pool3d_with_indices.self",
  "median.self",
  "min.self",
  "min_dim.self",
  "mode.self",
  "multi_head_attention_forward.attn_mask",
  "multi_head_attention_forward.bias_k",
  "multi_head_attention_forward.bias_v",
  "multi_head_attention_forward.in_proj_bias",
  "multi_head_attention_forward.k_proj_weight",
  "multi_head_attention_forward.key",
  "multi_head_attention_forward.q_proj_weight",
  "multi_head_attention_forward.query",
  "multi_head_attention_forward.v_proj_weight",
  "multi_head_attention_forward.value",
  "nanmedian_dim.self",
  "native_batch_norm.bias",
  "native_batch_norm.input",
  "native_batch_norm.weight",
  "native_cross_entropy.self",
  "native_cross_entropy.weight",
  "native_dropout.self",
  "native_layer_norm.bias",
  "native_layer_norm.input",
  "native_layer_norm.weight",
  "norm.self",
  "norm2.self",
  "pairwise_distance.x1",
  "pairwise_distance.x2",
  "pca_lowrank.A",
  "pinverse.self",
  "pdist.self",
  "pow.exponent",
  "qr.self",
  "real_logsumexp.self",
  "real_std.self",
  "reciprocal.self",
  "recurrence.factor",
  "relu.self",
  "rnn_relu_cell.b_hh",
  "rnn_relu_cell.b_ih",
  "rnn_relu_cell.hx",
  "rnn_relu_cell.input",
  "rnn_relu_cell.w_hh",
  "rnn_relu_cell.w_ih",
  "rnn_tanh_cell.b_hh",
  "rnn_tanh_cell.b_ih",
  "rnn_tanh_cell.hx",
  "rnn_tanh_cell.input",
  "rnn_tanh_cell.w_hh",
  "rnn_tanh_cell.w_ih",
  "rsqrt.self",
  "scaled_dot_product_attention.key",
  "scaled_dot_product_attention.query",
  "scaled_dot_product_attention.value",
  "scatter_fold.self",
  "scatter_fold.src",
  "scatter_reduce.self",
  "scatter_reduce.src",
  "sgn.self",
  "sigmoid.self",
  "softmax.self",
  "softmin.self",
  "sort.self",
  "special_bessel_j1.self",
  "special_bessel_y1.self",
  "special_erfcx.self",
  "special_i0e.self",
  "special_i1.self",
  "special_i1e.self",
  "special_modified_bessel_i1.self",
  "special_modified_bessel_k1.self",
  "special_ndtri.self",
  "special_scaled_modified_bessel_k0.self",
  "special_scaled_modified_bessel_k1.self",
  "sqrt.self",
  "std.self",
  "std_mean.self",
  "svd.self",
  "svd_lowrank.A",
  "svd_lowrank.M",
  "tan.self",
  "tanh.self",
  "topk.self",
  "triangle_solve.self",
  "triangular_solve.A",
};

static gboolean prints;

static gboolean
is_listed (const gchar *op, const gchar *arg)
{
  g_autofree gchar *full = g_strdup_printf ("%s.%s", op, arg);
  guint i;

  for (i = 0; i < G_N_ELEMENTS (needs_result); i++)
    if (g_str_equal (needs_result[i], full))
      return TRUE;
  return FALSE;
}

static void
fill_inputs (GPtrArray *inputs, const GTorchOpSample *sample, guint floating)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (5);
  guint i;

  for (i = 0; i < sample->n_tensors; i++)
    {
      const GTorchSampleTensor *spec = &sample->tensors[i];
      const guint dtype = spec->dtype != GTORCH_DTYPE_NONE ? spec->dtype : floating;
      g_autoptr (GTorchImpl) host =
          input_new (spec, dtype, LAYOUT_CONTIGUOUS, sample->low, sample->high, rand);

      g_ptr_array_add (inputs, impl_to_test_device (host));
    }
}

typedef enum
{
  UNKNOWN, /* this sample cannot show it */
  NEEDED,
  NOT_NEEDED,
} Need;

/* Returns whether the gradient of input `wanted` needs result `changed`, or input `changed - 100`. */
static Need
need (const GTorchOpSample *sample, guint wanted, guint changed, guint floating)
{
  g_autoptr (GPtrArray) inputs = g_ptr_array_new ();
  g_autoptr (GPtrArray) results =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  g_autoptr (GError) error = NULL;
  GTorchBackward backward = { .n_roots = 1, .n_inputs = 1 };
  GTorchImpl *target = NULL;
  Need found = UNKNOWN;
  guint i;

  fill_inputs (inputs, sample, floating);
  backward.inputs = (GTorchImpl **) &inputs->pdata[wanted];
  if (inputs->pdata[wanted] == NULL
      || gtorch_dtype_kind (backward.inputs[0]->dtype) < GTORCH_KIND_FLOAT)
    goto out;
  gtorch_autograd_ensure (inputs->pdata[wanted])->requires_grad = TRUE;
  if (!gtorch_op_invokers[sample->op]((GTorchImpl **) inputs->pdata, inputs->len, sample->attrs,
                                      results, &error))
    {
      g_assert_true (g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE)
                     || is_lacking (error));
      goto out;
    }
  if (changed >= 100)
    target = inputs->pdata[changed - 100];
  else if (changed < results->len)
    target = results->pdata[changed];
  if (target == NULL)
    goto out;
  {
    g_autoptr (GTorchGradGuard) guard G_GNUC_UNUSED = gtorch_no_grad ();

    if (!gtorch_op_zero_inplace (target, NULL)) /* elements that share memory */
      goto out;
  }
  for (i = 0; i < results->len; i++)
    {
      g_autoptr (GTorchImpl) upper = NULL;
      g_autoptr (GTorchImpl) grad = NULL;

      if (!gtorch_impl_requires_grad (results->pdata[i]))
        continue;
      upper = gtorch_op_ones_like (results->pdata[i], GTORCH_DTYPE_NONE, &error);
      g_assert_no_error (error);
      backward.roots = (GTorchImpl **) &results->pdata[i];
      backward.grads = &upper;
      backward.results = &grad;
      backward.retain_graph = TRUE;
      if (gtorch_engine_run (&backward, &error))
        found = found == NEEDED ? NEEDED : NOT_NEEDED;
      else if (strstr (error->message, "was changed in place") != NULL)
        found = NEEDED;
      else
        g_assert_nonnull (strstr (error->message, "is not defined"));
      g_clear_error (&error);
    }
out:
  gtorch_impl_clear ((GTorchImpl **) inputs->pdata, inputs->len);
  return found;
}

static Need
need_of_samples (guint op, guint wanted, guint changed)
{
  Need found = UNKNOWN;
  guint s;

  for (s = 0; s < gtorch_n_op_samples && found != NEEDED; s++)
    if (gtorch_op_samples[s].op == op && wanted < gtorch_op_samples[s].n_tensors
        && (changed < 100 || changed - 100 < gtorch_op_samples[s].n_tensors))
      {
        const Need of_floats = need (&gtorch_op_samples[s], wanted, changed, GTORCH_DTYPE_FLOAT64);
        const Need of_complex =
            need (&gtorch_op_samples[s], wanted, changed, GTORCH_DTYPE_COMPLEX128);

        if (of_floats == NEEDED || of_complex == NEEDED)
          found = NEEDED;
        else if (of_floats == NOT_NEEDED || of_complex == NOT_NEEDED)
          found = NOT_NEEDED;
      }
  return found;
}

static gboolean
needs_a_result (const GTorchOpClass *op, guint wanted)
{
  guint k;

  for (k = 0; k < 3; k++)
    if (need_of_samples (op->id, wanted, k) == NEEDED)
      return TRUE;
  return FALSE;
}

/* Returns the sample with the most tensors. */
static const GTorchOpSample *
find_sample (const GTorchOpClass *op)
{
  const GTorchOpSample *sample = NULL;
  guint i;

  for (i = 0; i < gtorch_n_op_samples; i++)
    if (gtorch_op_samples[i].op == op->id
        && (sample == NULL || gtorch_op_samples[i].n_tensors > sample->n_tensors))
      sample = &gtorch_op_samples[i];
  return sample;
}

static void
results_may_be_changed (gconstpointer data)
{
  const GTorchOpClass *op = data;
  const GTorchOpSample *sample = find_sample (op);
  guint i, k;

  for (i = 0; i < sample->n_tensors; i++)
    {
      const gchar *arg = sample->tensors[i].name;
      const gboolean needs = needs_a_result (op, i);

      if (prints && needs)
        g_print ("# %s.%s needs a result\n", op->name, arg);
      for (k = 0; prints && k < sample->n_tensors; k++)
        if (need_of_samples (op->id, i, 100 + k) == NEEDED)
          g_print ("# %s.%s needs input %s\n", op->name, arg, sample->tensors[k].name);
      /* a GPU computes attention of float64 in steps, none of which needs the result */
      if (needs == is_listed (op->name, arg)
          || (!needs && test_device ()->type != GTORCH_DEVICE_TYPE_CPU))
        continue;
      g_test_message ("the gradient of %s needs %s result", arg, needs ? "a" : "no");
      g_test_fail ();
    }
}

/* The gradient of an input in which the operation is linear does not need that input: the weights of a
 * layer may be changed before its backward pass, if its input requires no grad. */
static void
linear_inputs_may_be_changed (void)
{
  static const guint linear[] = {
    GTORCH_OP_ADDMM,  GTORCH_OP_BADDBMM, GTORCH_OP_BMM,    GTORCH_OP_CONV1D,
    GTORCH_OP_CONV2D, GTORCH_OP_DOT,     GTORCH_OP_LINEAR, GTORCH_OP_MATMUL,
    GTORCH_OP_MM,     GTORCH_OP_MUL,     GTORCH_OP_MV,
  };
  guint i, k, n = 0;

  for (i = 0; i < G_N_ELEMENTS (linear); i++)
    for (k = 0; k < find_sample (&gtorch_ops[linear[i]])->n_tensors; k++)
      {
        const Need found = need_of_samples (linear[i], k, 100 + k);

        n += found == NOT_NEEDED;
        if (found != NEEDED)
          continue;
        g_test_message ("the gradient of %s.%s needs its value", gtorch_ops[linear[i]].name,
                        find_sample (&gtorch_ops[linear[i]])->tensors[k].name);
        g_test_fail ();
      }
  g_assert_cmpuint (n, >=, G_N_ELEMENTS (linear));
}

static void
list_names_inputs (void)
{
  guint i, k;

  for (i = 0; i < G_N_ELEMENTS (needs_result); i++)
    {
      g_auto (GStrv) parts = g_strsplit (needs_result[i], ".", 2);
      const GTorchOpClass *op = gtorch_op_find (parts[0]);
      gboolean found = FALSE;

      g_assert_nonnull (op);
      for (k = 0; k < op->n_args; k++)
        found |= g_str_equal (op->args[k].name, parts[1]);
      g_assert_true (found);
    }
}

int
main (int argc, char *argv[])
{
  guint i;

  g_test_init (&argc, &argv, NULL);
  prints = argc > 1 && g_str_equal (argv[1], "--list");
  g_test_add_func ("/GTorch/changed-values/list_names_inputs", list_names_inputs);
  g_test_add_func ("/GTorch/changed-values/linear_inputs_may_be_changed",
                   linear_inputs_may_be_changed);
  for (i = 0; i < gtorch_n_ops; i++)
    {
      g_autofree gchar *path =
          g_strdup_printf ("/GTorch/changed-values/%s/results_may_be_changed", gtorch_ops[i].name);
      const GTorchOpSample *sample = find_sample (&gtorch_ops[i]);

      if (sample != NULL && sample->n_tensors > 0)
        g_test_add_data_func (path, &gtorch_ops[i], results_may_be_changed);
    }
  return g_test_run ();
}
