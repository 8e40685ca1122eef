/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Functions of one number where they overflow, underflow or are undefined, and where rounding errors are
 * largest: compared with long double; the treatment of NaN; and the number of dimensions that operations
 * accept. */

#include "config.h"

#include <math.h>
#include <string.h>

#include "gtorch-ops-private.h"
#include "op-calls.h"

/* --- extreme arguments --- */

static long double
ref_sigmoid (long double x)
{
  return 1 / (1 + expl (-x));
}

static long double
ref_softplus (long double x)
{
  return x > 0 ? x + log1pl (expl (-x)) : log1pl (expl (x));
}

static long double
ref_logsigmoid (long double x)
{
  return -ref_softplus (-x);
}

/* The limit at -infinity is 0, but 0 times infinity is NaN, here and in PyTorch. */
static long double
ref_silu (long double x)
{
  return x == -INFINITY ? NAN : x * ref_sigmoid (x);
}

static long double
ref_mish (long double x)
{
  return x == -INFINITY ? NAN : x * tanhl (ref_softplus (x));
}

static long double
ref_threshold_softplus (long double x)
{
  return x > 20 ? x : ref_softplus (x);
}

static long double
ref_softsign (long double x)
{
  return isinf (x) ? NAN : x / (1 + fabsl (x));
}

static long double
ref_elu (long double x)
{
  return x > 0 ? x : expm1l (x);
}

static long double
ref_hardsigmoid (long double x)
{
  return x <= -3 ? 0 : (x >= 3 ? 1 : (x + 3) / 6);
}

static long double
ref_hardswish (long double x)
{
  return x == -INFINITY ? NAN : x * ref_hardsigmoid (x);
}

static long double
ref_rsqrt (long double x)
{
  return 1 / sqrtl (x);
}

static long double
ref_reciprocal (long double x)
{
  return 1 / x;
}

static long double
ref_square (long double x)
{
  return x * x;
}

static long double
ref_sign (long double x)
{
  return (x > 0) - (x < 0);
}

static long double
ref_relu (long double x)
{
  return x < 0 ? 0 : x;
}

static long double
ref_leaky_relu (long double x)
{
  return x > 0 ? x : 0.01L * x;
}

/* clang-format off */
static const struct
{
  const gchar *name;
  long double (*func) (long double x);
  guint ulps; /* error of the function on vectors; errors of compositions add up */
  gboolean times_x;
} functions[] = {
  { "sigmoid", ref_sigmoid, 8 },           { "logsigmoid", ref_logsigmoid, 8 },
  { "silu", ref_silu, 8, TRUE },           { "mish", ref_mish, 16, TRUE },
  { "softplus", ref_threshold_softplus, 8 }, { "softsign", ref_softsign, 4 },
  { "elu", ref_elu, 4 },                   { "hardsigmoid", ref_hardsigmoid, 4 },
  { "hardswish", ref_hardswish, 4 },       { "relu", ref_relu, 0 },
  { "leaky_relu", ref_leaky_relu, 2 },     { "sign", ref_sign, 0 },
  { "sgn", ref_sign, 0 },                  { "exp", expl, 4 },
  { "exp2", exp2l, 4 },                    { "expm1", expm1l, 4 },
  { "log", logl, 4 },                      { "log2", log2l, 4 },
  { "log10", log10l, 4 },                  { "log1p", log1pl, 4 },
  { "sinh", sinhl, 4 },                    { "cosh", coshl, 4 },
  { "tanh", tanhl, 4 },                    { "asinh", asinhl, 4 },
  { "acosh", acoshl, 4 },                  { "atanh", atanhl, 4 },
  { "asin", asinl, 4 },                    { "acos", acosl, 4 },
  { "atan", atanl, 4 },                    { "erf", erfl, 4 },
  { "erfc", erfcl, 4 },                    { "sqrt", sqrtl, 1 },
  { "rsqrt", ref_rsqrt, 2 },               { "reciprocal", ref_reciprocal, 1 },
  { "square", ref_square, 1 },             { "floor", floorl, 0 },
  { "ceil", ceill, 0 },                    { "trunc", truncl, 0 },
  { "round", rintl, 0 },                   { "abs", fabsl, 0 },
};

static const gdouble arguments[] = {
  0, 0.5, 1, 2, 3, 5, 10, 20, 21, 50, 80, 87.3, 88, 88.7, 88.8, 89, 95, 100, 103, 104, 110, 500, 700, 709.7,
  709.8, 710, 744, 745, 746, 1e4, 6e4, 1e10, 1e30, 3e38, 1e300, 1e-3, 6e-5, 6e-8, 1e-10, 1e-30, 1e-38, 1e-40,
  1.4e-45, 1e-300, 1e-310, 5e-324, 0.999, 0.9999999, 1.0000001, 2.5, 3.5, 0.49999997, 8388607.5, INFINITY, NAN,
};
/* clang-format on */

static const GTorchDType floats[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64,
                                      GTORCH_DTYPE_FLOAT16, GTORCH_DTYPE_BFLOAT16 };

static GTorchImpl *
call_one (const GTorchOpClass *op, GTorchImpl *input, GError **error)
{
  g_autoptr (GPtrArray) results =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  guint i;

  for (i = 0; gtorch_op_samples[i].op != op->id;)
    i++;
  if (!gtorch_op_invokers[op->id](&input, 1, gtorch_op_samples[i].attrs, results, error))
    return NULL;
  return gtorch_impl_ref (results->pdata[0]);
}

static gdouble
least_normal (guint dtype)
{
  return dtype == GTORCH_DTYPE_FLOAT64 ? 0x1p-1022
                                       : (dtype == GTORCH_DTYPE_FLOAT16 ? 0x1p-14 : 0x1p-126);
}

/* Returns NULL, or a description of the error. */
static gchar *
compare (guint dtype, gdouble x, gdouble value, long double expected, guint ulps, long double least)
{
  const GTorchDTypeInfo *info = &gtorch_dtype_infos[dtype];
  const long double ulp = MAX (fabsl (expected), least) * info->eps;
  const gdouble compute_eps = gtorch_dtype_infos[info->compute].eps;
  /* 16-bit floats are computed in float32 and rounded once */
  const long double margin = ulps == 0 ? 0
                             : compute_eps < info->eps
                                 ? ulp / 2 + ulps * ulp * (compute_eps / info->eps)
                                 : ulps * ulp;

  if (isnan (expected) ? isnan (value) : fabsl (value - expected) <= margin)
    return NULL;
  if (isinf (expected) && value == expected)
    return NULL;
  /* beyond the largest number, or rounded to it */
  if (fabsl (expected) * (1 + (ulps + 1) * (long double) info->eps) >= info->max
      && fabs (value) >= info->max && (value > 0) == (expected > 0))
    return NULL;
  return g_strdup_printf ("%s at %.17g: %.17g, expected %.17Lg", info->name, x, value, expected);
}

/* Sets the defaults of the row, except for elu and softplus, whose samples have others. */
static gboolean
set_defaults (const GTorchOpClass *op, GTorchAttr *attrs)
{
  if (op->id == GTORCH_OP_ELU)
    attrs[0].d = 1;
  else if (op->id == GTORCH_OP_SOFTPLUS)
    {
      attrs[0].d = 1;
      attrs[1].d = 20;
    }
  else if (op->id == GTORCH_OP_LEAKY_RELU)
    attrs[0].d = 0.01;
  else
    return FALSE;
  return TRUE;
}

static void
extreme_arguments_are_right (gconstpointer data)
{
  const guint f = GPOINTER_TO_UINT (data);
  const gint64 n = 2 * G_N_ELEMENTS (arguments);
  const GTorchOpClass *op = gtorch_op_find (functions[f].name);
  guint d, i;

  g_assert_nonnull (op);
  for (d = 0; d < G_N_ELEMENTS (floats); d++)
    {
      g_autoptr (GTorchImpl) x = gtorch_impl_new (gtorch_device_cpu (), floats[d], &n, 1, NULL);
      g_autoptr (GTorchImpl) there = NULL;
      g_autoptr (GTorchImpl) result = NULL;
      g_autoptr (GTorchImpl) host = NULL;
      g_autoptr (GPtrArray) results =
          g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
      g_autoptr (GError) error = NULL;
      GTorchAttr attrs[4] = { { .i = 0 } };

      for (i = 0; i < n; i++)
        element_set (x, i, i % 2 == 0 ? arguments[i / 2] : -arguments[i / 2]);
      there = impl_to_test_device (x);
      if (set_defaults (op, attrs))
        {
          gtorch_op_invokers[op->id](&there, 1, attrs, results, &error);
          result = error == NULL ? gtorch_impl_ref (results->pdata[0]) : NULL;
        }
      else
        result = call_one (op, there, &error);
      if (error != NULL && is_lacking (error))
        return;
      g_assert_no_error (error);
      host = impl_to_host (result);
      for (i = 0; i < n; i++)
        {
          const gdouble at = creal (element_get (x, i));
          /* the other factor of a product with the argument may be subnormal */
          const long double least =
              least_normal (floats[d]) * (functions[f].times_x ? fmaxl (1, fabsl (at)) : 1);
          g_autofree gchar *text = compare (floats[d], at, creal (element_get (host, i)),
                                            functions[f].func (at), functions[f].ulps, least);

          if (text == NULL)
            continue;
          g_test_message ("%s, %s", op->name, text);
          g_test_fail ();
        }
    }
}

/* --- dimensions --- */

/* clang-format off */
static const struct
{
  const gchar *name;
  guint8 input, least, most; /* the dimensions that the input may have */
} rules[] = {
  { "trace", 0, 2, 2 },          { "diag", 0, 1, 2 },          { "tril", 0, 2, 9 },
  { "triu", 0, 2, 9 },           { "diag_embed", 0, 1, 9 },    { "diagonal", 0, 2, 9 },
  { "mm", 0, 2, 2 },             { "mm", 1, 2, 2 },            { "bmm", 0, 3, 3 },
  { "bmm", 1, 3, 3 },            { "mv", 0, 2, 2 },            { "mv", 1, 1, 1 },
  { "dot", 0, 1, 1 },            { "dot", 1, 1, 1 },           { "outer", 0, 1, 1 },
  { "outer", 1, 1, 1 },          { "matmul", 0, 1, 9 },        { "matmul", 1, 1, 9 },
  { "addmm", 0, 0, 2 },          { "addmm", 1, 2, 2 },         { "addmm", 2, 2, 2 },
  { "baddbmm", 0, 0, 3 },        { "baddbmm", 1, 3, 3 },       { "baddbmm", 2, 3, 3 },
  { "linear", 0, 1, 9 },         { "linear", 1, 2, 2 },        { "linear", 2, 0, 1 },
  { "t", 0, 0, 2 },              { "mt", 0, 2, 9 },            { "cdist", 0, 2, 9 },
  { "cdist", 1, 2, 9 },          { "bincount", 0, 1, 1 },      { "multinomial", 0, 1, 2 },
  { "conv1d", 0, 2, 3 },         { "conv1d", 1, 3, 3 },        { "conv2d", 0, 3, 4 },
  { "conv2d", 1, 4, 4 },         { "max_pool2d", 0, 3, 4 },    { "avg_pool2d", 0, 3, 4 },
  { "adaptive_avg_pool2d", 0, 3, 4 },                          { "batch_norm", 0, 2, 9 },
  { "batch_norm", 1, 1, 1 },     { "embedding", 0, 2, 2 },     { "index_select", 1, 0, 1 },
  { "index_add", 1, 0, 1 },      { "index_copy", 1, 0, 1 },    { "index_fill", 1, 0, 1 },
  { "index_fill", 2, 0, 0 },     { "select", 0, 1, 9 },        { "narrow", 0, 1, 9 },
  { "unbind", 0, 1, 9 },         { "split", 0, 1, 9 },         { "chunk", 0, 1, 9 },
  { "cross_entropy", 0, 1, 9 },  { "nll_loss", 0, 1, 9 },      { "view_as_complex", 0, 1, 9 },
  { "fft_fft", 0, 1, 9 },        { "fft_rfft", 0, 1, 9 },      { "fft_fft2", 0, 2, 9 },
  { "fft_rfft2", 0, 2, 9 },      { "layer_norm", 0, 1, 9 },    { "cat", 0, 1, 9 },
  { "take_along_dim", 0, 1, 9 },
};
/* clang-format on */

/* Gives the input the sizes of the sample, with additional leading ones or without the first ones. */
static void
set_dims (GTorchSampleTensor *tensor, gint n_dims)
{
  const GTorchSampleTensor old = *tensor;
  gint k;

  for (k = 1; k <= n_dims; k++)
    tensor->shape[n_dims - k] = k <= old.n_dims ? old.shape[old.n_dims - k] : 2;
  tensor->n_dims = n_dims;
}

static void
other_dimensions_are_errors (gconstpointer data)
{
  const guint r = GPOINTER_TO_UINT (data);
  const GTorchOpClass *op = gtorch_op_find (rules[r].name);
  guint i, dtype, n_checked = 0;
  gint n_dims;

  g_assert_nonnull (op);
  dtype = op->dtypes & GTORCH_DTYPES (FLOAT32) ? GTORCH_DTYPE_FLOAT32 : GTORCH_DTYPE_INT64;
  for (i = 0; i < gtorch_n_op_samples; i++)
    for (n_dims = 0; gtorch_op_samples[i].op == op->id && n_dims <= 5; n_dims++)
      {
        GTorchOpSample sample = gtorch_op_samples[i];
        g_autofree GTorchSampleTensor *tensors =
            g_memdup2 (sample.tensors, sample.n_tensors * sizeof *tensors);
        g_auto (Inputs) inputs = { { NULL }, 0 };
        g_autoptr (GPtrArray) results = NULL;
        g_autoptr (GError) error = NULL;

        if (rules[r].input >= sample.n_tensors || tensors[rules[r].input].n_dims < 0
            || (n_dims >= rules[r].least && n_dims <= rules[r].most))
          continue;
        set_dims (&tensors[rules[r].input], n_dims);
        sample.tensors = tensors;
        inputs_make (&inputs, &sample, dtype, LAYOUT_CONTIGUOUS);
        inputs_move (&inputs);
        results = invoke (&sample, &inputs, &error);
        n_checked++;
        /* a composite may return the error of its parts */
        if (results == NULL && error->domain == GTORCH_ERROR
            && (!op_computes (op) || g_str_has_prefix (error->message, op->name)))
          continue;
        g_test_message ("%s, sample %u, input %u of %d dimensions: %s", op->name, sample.index,
                        rules[r].input, n_dims, error != NULL ? error->message : "is no error");
        g_test_fail ();
      }
  g_assert_cmpuint (n_checked, >, 0);
}

int
main (int argc, char *argv[])
{
  guint i;

  g_test_init (&argc, &argv, NULL);
  for (i = 0; i < G_N_ELEMENTS (functions); i++)
    {
      g_autofree gchar *path =
          g_strdup_printf ("/GTorch/extremes/%s/arguments_are_right", functions[i].name);

      g_test_add_data_func (path, GUINT_TO_POINTER (i), extreme_arguments_are_right);
    }
  for (i = 0; i < G_N_ELEMENTS (rules); i++)
    {
      g_autofree gchar *path =
          g_strdup_printf ("/GTorch/extremes/%s/other_dimensions_are_errors/%u", rules[i].name,
                           rules[i].input);

      g_test_add_data_func (path, GUINT_TO_POINTER (i), other_dimensions_are_errors);
    }
  return g_test_run ();
}
