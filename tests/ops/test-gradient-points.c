/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Gradients at points where differences do not work: ties, kinks, zeros of norms and products, infinities
 * and NaN. The expected values follow PyTorch's convention, and are the derivative where its formulas
 * give NaN without reason. Element i of a result has the weight i + 1; the second gradient is that of the
 * sum of all first ones. */

#include "config.h"

#include <math.h>

#include "gtorch-ops-private.h"
#include "gtorch/autograd/gtorch-autograd-private.h"
#include "op-values.h"

#define MOST 4
#define INF  INFINITY

typedef GTorchImpl *(*Function) (GTorchImpl *const *x, GError **error);

typedef struct
{
  const gchar *name;
  Function function;
  guint n_inputs, length;
  gdouble x[2][MOST];
  gdouble first[2][MOST];
  gboolean has_second;
  gdouble second[2][MOST];
} Point;

#define UNARY(name, call)                                                \
  static GTorchImpl *point_##name (GTorchImpl *const *x, GError **error) \
  {                                                                      \
    return gtorch_op_##call;                                             \
  }
#define FIRST_OF_TWO(name, call)                                         \
  static GTorchImpl *point_##name (GTorchImpl *const *x, GError **error) \
  {                                                                      \
    GTorchImpl *values = NULL;                                           \
                                                                         \
    return gtorch_op_##call ? values : NULL;                             \
  }

static const gint64 zero_dim = 0;

/* clang-format off */
UNARY (abs, abs (x[0], error))
UNARY (sign, sign (x[0], error))
UNARY (sgn, sgn (x[0], error))
UNARY (floor, floor (x[0], error))
UNARY (round, round (x[0], error))
UNARY (floor_divide, floor_divide (x[0], x[1], error))
UNARY (bernoulli, bernoulli (x[0], NULL, error))
UNARY (relu, relu (x[0], error))
UNARY (relu6, relu6 (x[0], error))
UNARY (leaky_relu, leaky_relu (x[0], 0.25, error))
UNARY (hardtanh, hardtanh (x[0], -1, 1, error))
UNARY (clamp, clamp (x[0], -1, 1, error))
UNARY (clamp_min, clamp_min (x[0], x[1], error))
UNARY (clamp_max, clamp_max (x[0], x[1], error))
UNARY (hinge_embedding, hinge_embedding (x[0], x[1], 1, error))
UNARY (margin_ranking, margin_ranking (x[0], x[1], x[1], 0, error))
UNARY (elu, elu (x[0], 1, error))
UNARY (softplus, softplus (x[0], 1, 20, error))
UNARY (logsigmoid, logsigmoid (x[0], error))
UNARY (sigmoid, sigmoid (x[0], error))
UNARY (tanh, tanh (x[0], error))
UNARY (silu, silu (x[0], error))
UNARY (mish, mish (x[0], error))
UNARY (gelu, gelu (x[0], FALSE, error))
UNARY (gelu_tanh, gelu (x[0], TRUE, error))
UNARY (sqrt, sqrt (x[0], error))
UNARY (sinc, sinc (x[0], error))
UNARY (lgamma, lgamma (x[0], error))
UNARY (pow, pow (x[0], x[1], error))
UNARY (xlogy, xlogy (x[0], x[1], error))
UNARY (atan2, atan2 (x[0], x[1], error))
UNARY (hypot, hypot (x[0], x[1], error))
UNARY (maximum, maximum (x[0], x[1], error))
UNARY (minimum, minimum (x[0], x[1], error))
UNARY (fmax, fmax (x[0], x[1], error))
UNARY (fmin, fmin (x[0], x[1], error))
UNARY (max, max (x[0], error))
UNARY (min, min (x[0], error))
UNARY (amax, amax (x[0], &zero_dim, 1, FALSE, error))
UNARY (amin, amin (x[0], NULL, 0, FALSE, error))
UNARY (median, median (x[0], error))
UNARY (logsumexp, logsumexp (x[0], &zero_dim, 1, FALSE, error))
UNARY (logcumsumexp, logcumsumexp (x[0], 0, error))
UNARY (softmax, softmax (x[0], 0, GTORCH_DTYPE_NONE, error))
UNARY (log_softmax, log_softmax (x[0], 0, GTORCH_DTYPE_NONE, error))
UNARY (norm_0, norm (x[0], 0, NULL, 0, FALSE, error))
UNARY (norm_1, norm (x[0], 1, NULL, 0, FALSE, error))
UNARY (norm_1_5, norm (x[0], 1.5, NULL, 0, FALSE, error))
UNARY (norm_2, norm (x[0], 2, NULL, 0, FALSE, error))
UNARY (norm_3, norm (x[0], 3, NULL, 0, FALSE, error))
UNARY (norm_inf, norm (x[0], INFINITY, NULL, 0, FALSE, error))
UNARY (norm_minus_inf, norm (x[0], -INFINITY, NULL, 0, FALSE, error))
UNARY (std, std (x[0], NULL, 0, 1, FALSE, error))
UNARY (var, var (x[0], NULL, 0, 1, FALSE, error))
UNARY (prod, prod (x[0], NULL, 0, FALSE, GTORCH_DTYPE_NONE, error))
UNARY (cumprod, cumprod (x[0], 0, GTORCH_DTYPE_NONE, error))
UNARY (nansum, nansum (x[0], NULL, 0, FALSE, GTORCH_DTYPE_NONE, error))
FIRST_OF_TWO (max_dim, max_dim (x[0], 0, FALSE, &values, NULL, error))
FIRST_OF_TWO (min_dim, min_dim (x[0], 0, FALSE, &values, NULL, error))
FIRST_OF_TWO (median_dim, median_dim (x[0], 0, FALSE, &values, NULL, error))
FIRST_OF_TWO (kthvalue, kthvalue (x[0], 2, 0, FALSE, &values, NULL, error))
FIRST_OF_TWO (sort, sort (x[0], 0, FALSE, FALSE, &values, NULL, error))
FIRST_OF_TWO (topk, topk (x[0], 2, 0, TRUE, TRUE, &values, NULL, error))
FIRST_OF_TWO (cummax, cummax (x[0], 0, &values, NULL, error))
FIRST_OF_TWO (cummin, cummin (x[0], 0, &values, NULL, error))
/* clang-format on */

/* Sends all elements of the second input to the first element of the first one. */
static GTorchImpl *
scattered (GTorchImpl *const *x, GTorchIndexReduction reduce, GError **error)
{
  g_autoptr (GTorchImpl) zeros = gtorch_op_zeros_like (x[1], GTORCH_DTYPE_INT64, error);

  return gtorch_op_scatter_reduce (x[0], 0, zeros, x[1], reduce, TRUE, error);
}

static GTorchImpl *
point_scatter_prod (GTorchImpl *const *x, GError **error)
{
  return scattered (x, GTORCH_INDEX_REDUCTION_PROD, error);
}

static GTorchImpl *
point_scatter_amax (GTorchImpl *const *x, GError **error)
{
  return scattered (x, GTORCH_INDEX_REDUCTION_AMAX, error);
}

/* clang-format off */
static const Point points[] = {
  /* kinks and steps */
  { "abs", point_abs, 1, 3, { { 0, -2, 3 } }, { { 0, -2, 3 } }, TRUE, { { 0, 0, 0 } } },
  { "sign", point_sign, 1, 3, { { 0, -2, NAN } }, { { 0, 0, 0 } }, TRUE, { { 0 } } },
  { "sgn", point_sgn, 1, 3, { { 0, -2, INF } }, { { 0, 0, 0 } }, TRUE, { { 0 } } },
  { "floor", point_floor, 1, 2, { { 1, 1.5 } }, { { 0, 0 } }, TRUE, { { 0 } } },
  { "round", point_round, 1, 2, { { 0.5, 1.2 } }, { { 0, 0 } }, TRUE, { { 0 } } },
  { "floor_divide", point_floor_divide, 2, 2, { { 4, 5 }, { 2, 2 } }, { { 0 }, { 0 } }, TRUE, { { 0 } } },
  { "bernoulli", point_bernoulli, 1, 2, { { 0.5, 1 } }, { { 0, 0 } }, TRUE, { { 0 } } },
  { "relu", point_relu, 1, 3, { { 0, -1, NAN } }, { { 0, 0, 3 } }, TRUE, { { 0 } } },
  { "relu6", point_relu6, 1, 3, { { 0, 6, 3 } }, { { 0, 0, 3 } }, TRUE, { { 0 } } },
  { "leaky_relu", point_leaky_relu, 1, 2, { { 0, 1 } }, { { 0.25, 2 } }, TRUE, { { 0 } } },
  { "hardtanh", point_hardtanh, 1, 3, { { -1, 1, 0.5 } }, { { 0, 0, 3 } }, TRUE, { { 0 } } },
  { "clamp", point_clamp, 1, 4, { { -1, 1, 0.5, NAN } }, { { 1, 2, 3, 0 } }, TRUE, { { 0 } } },
  { "clamp_min", point_clamp_min, 2, 3, { { 0, 1, -1 }, { 0, 0, 0 } }, { { 1, 2, 0 }, { 0, 0, 3 } }, TRUE, { { 0 } } },
  { "clamp_max", point_clamp_max, 2, 3, { { 0, 1, -1 }, { 0, 0, 0 } }, { { 1, 0, 3 }, { 0, 2, 0 } }, TRUE, { { 0 } } },
  { "hinge_embedding", point_hinge_embedding, 2, 2, { { 1, 0.5 }, { -1, -1 } }, { { -1, -2 }, { 0, 0 } }, TRUE, { { 0 } } },
  { "margin_ranking", point_margin_ranking, 2, 1, { { 1 }, { 1 } }, { { -1 }, { 1 } }, TRUE, { { -1 }, { 1 } } },
  /* far from 0 */
  { "elu", point_elu, 1, 3, { { 0, 1000, -1000 } }, { { 1, 2, 0 } }, TRUE, { { 1, 0, 0 } } },
  { "softplus", point_softplus, 1, 2, { { 1000, -1000 } }, { { 1, 0 } }, TRUE, { { 0 } } },
  { "logsigmoid", point_logsigmoid, 1, 2, { { 1000, -1000 } }, { { 0, 2 } }, TRUE, { { 0 } } },
  { "sigmoid", point_sigmoid, 1, 2, { { 1000, -1000 } }, { { 0, 0 } }, TRUE, { { 0 } } },
  { "tanh", point_tanh, 1, 2, { { 1000, -1000 } }, { { 0, 0 } }, TRUE, { { 0 } } },
  { "silu", point_silu, 1, 2, { { 1000, -1000 } }, { { 1, 0 } }, TRUE, { { 0 } } },
  { "mish", point_mish, 1, 2, { { 1000, -1000 } }, { { 1, 0 } }, TRUE, { { 0 } } },
  { "gelu", point_gelu, 1, 2, { { 1000, -1000 } }, { { 1, 0 } }, TRUE, { { 0 } } },
  { "gelu_tanh", point_gelu_tanh, 1, 2, { { 1000, -1000 } }, { { 1, 0 } }, TRUE, { { 0 } } },
  /* points where a formula is undefined */
  { "sqrt", point_sqrt, 1, 2, { { 0, 4 } }, { { INF, 0.5 } }, FALSE, { { 0 } } },
  { "sinc", point_sinc, 1, 2, { { 0, 1 } }, { { 0, -2 } }, TRUE, { { -G_PI * G_PI / 3, 4 } } },
  { "lgamma", point_lgamma, 1, 3, { { 1, -0.5, 2 } }, { { -0.57721566490153286, 0.07297994795715304, 1.2683530052954014 } },
    TRUE, { { 1.6449340668482264, 17.869604401089358, 1.9348022005446793 } } },
  { "pow_of_zero", point_pow, 2, 4, { { 0, 0, 0, 0 }, { 0, 1, 2, 3 } }, { { 0, 2, 0, 0 }, { 0, 0, 0, 0 } }, FALSE, { { 0 } } },
  { "pow_of_negative", point_pow, 2, 2, { { -2, -3 }, { 3, 2 } }, { { 12, -12 }, { NAN, NAN } }, FALSE, { { 0 } } },
  { "pow_to_the_0", point_pow, 2, 1, { { 2 }, { 0 } }, { { 0 }, { G_LN2 } }, TRUE, { { 0.5 }, { 0.5 + G_LN2 * G_LN2 } } },
  { "xlogy", point_xlogy, 2, 3, { { 0, 0, 2 }, { 0, 2, 1 } }, { { 0, 2 * G_LN2, 0 }, { 0, 0, 6 } }, FALSE, { { 0 } } },
  { "atan2", point_atan2, 2, 2, { { 0, 0 }, { 0, -1 } }, { { NAN, -2 }, { NAN, 0 } }, FALSE, { { 0 } } },
  { "hypot", point_hypot, 2, 2, { { 0, 0 }, { 0, -1 } }, { { NAN, 0 }, { NAN, -2 } }, FALSE, { { 0 } } },
  /* ties */
  { "maximum", point_maximum, 2, 4, { { 1, NAN, 1, 2 }, { 1, 1, NAN, 1 } }, { { 0.5, 2, 3, 4 }, { 0.5, 2, 3, 0 } }, TRUE, { { 0 } } },
  { "minimum", point_minimum, 2, 4, { { 1, NAN, 1, 2 }, { 1, 1, NAN, 1 } }, { { 0.5, 2, 3, 0 }, { 0.5, 2, 3, 4 } }, TRUE, { { 0 } } },
  { "fmax", point_fmax, 2, 4, { { 1, NAN, 1, 2 }, { 1, 1, NAN, 3 } }, { { 1, 0, 3, 0 }, { 0, 2, 0, 4 } }, TRUE, { { 0 } } },
  { "fmin", point_fmin, 2, 4, { { 1, NAN, 1, 2 }, { 1, 1, NAN, 3 } }, { { 1, 0, 3, 4 }, { 0, 2, 0, 0 } }, TRUE, { { 0 } } },
  { "max", point_max, 1, 4, { { 2, 1, 2, 0 } }, { { 0.5, 0, 0.5, 0 } }, TRUE, { { 0 } } },
  { "min", point_min, 1, 4, { { 1, 1, 2, 1 } }, { { 1.0 / 3, 1.0 / 3, 0, 1.0 / 3 } }, TRUE, { { 0 } } },
  { "max_of_nan", point_max, 1, 3, { { 2, NAN, 2 } }, { { 0, 1, 0 } }, TRUE, { { 0 } } },
  { "min_of_nan", point_min, 1, 3, { { 2, NAN, NAN } }, { { 0, 0.5, 0.5 } }, TRUE, { { 0 } } },
  { "amax", point_amax, 1, 3, { { 2, 2, 1 } }, { { 0.5, 0.5, 0 } }, TRUE, { { 0 } } },
  { "amin", point_amin, 1, 3, { { 2, 1, 1 } }, { { 0, 0.5, 0.5 } }, TRUE, { { 0 } } },
  { "max_dim", point_max_dim, 1, 3, { { 2, 2, 1 } }, { { 1, 0, 0 } }, TRUE, { { 0 } } },
  { "min_dim", point_min_dim, 1, 3, { { 2, 1, 1 } }, { { 0, 1, 0 } }, TRUE, { { 0 } } },
  { "median", point_median, 1, 4, { { 1, 2, 2, 3 } }, { { 0, 0.5, 0.5, 0 } }, TRUE, { { 0 } } },
  { "median_of_nan", point_median, 1, 3, { { 1, NAN, 3 } }, { { 0, 1, 0 } }, TRUE, { { 0 } } },
  { "median_dim", point_median_dim, 1, 4, { { 1, 2, 2, 3 } }, { { 0, 1, 0, 0 } }, TRUE, { { 0 } } },
  { "kthvalue", point_kthvalue, 1, 3, { { 3, 1, 1 } }, { { 0, 0, 1 } }, TRUE, { { 0 } } },
  { "sort", point_sort, 1, 3, { { 1, 1, 0 } }, { { 2, 3, 1 } }, TRUE, { { 0 } } },
  { "topk", point_topk, 1, 3, { { 2, 1, 2 } }, { { 1, 0, 2 } }, TRUE, { { 0 } } },
  { "cummax", point_cummax, 1, 3, { { 1, 1, 0 } }, { { 1, 5, 0 } }, TRUE, { { 0 } } },
  { "cummin", point_cummin, 1, 3, { { 1, 1, 2 } }, { { 1, 5, 0 } }, TRUE, { { 0 } } },
  { "scatter_amax", point_scatter_amax, 2, 3, { { 2, 5, 5 }, { 2, 1, 2 } }, { { 1.0 / 3, 2, 3 }, { 1.0 / 3, 0, 1.0 / 3 } }, TRUE, { { 0 } } },
  /* infinities that do not contribute to the result */
  { "logsumexp", point_logsumexp, 1, 3, { { -INF, 0, 0 } }, { { 0, 0.5, 0.5 } }, TRUE, { { 0 } } },
  { "logcumsumexp", point_logcumsumexp, 1, 3, { { -INF, 0, -INF } }, { { 0, 5, 0 } }, TRUE, { { 0 } } },
  { "softmax", point_softmax, 1, 3, { { -INF, 0, 0 } }, { { 0, -0.25, 0.25 } }, TRUE, { { 0 } } },
  { "log_softmax", point_log_softmax, 1, 3, { { -INF, 0, 0 } }, { { 1, -1, 0 } }, TRUE, { { 0 } } },
  { "nansum", point_nansum, 1, 3, { { NAN, 0, 1 } }, { { 0, 1, 1 } }, TRUE, { { 0 } } },
  /* norms of zeros */
  { "norm_0", point_norm_0, 1, 3, { { 0, 1, NAN } }, { { 0, 0, 0 } }, TRUE, { { 0 } } },
  { "norm_1", point_norm_1, 1, 3, { { 0, -1, 2 } }, { { 0, -1, 1 } }, TRUE, { { 0 } } },
  { "norm_1_5", point_norm_1_5, 1, 2, { { 0, 0 } }, { { 0, 0 } }, TRUE, { { 0 } } },
  { "norm_1_5_with_zero", point_norm_1_5, 1, 2, { { 0, 1 } }, { { 0, 1 } }, TRUE, { { 0 } } },
  { "norm_2", point_norm_2, 1, 3, { { 0, 0, 0 } }, { { 0, 0, 0 } }, TRUE, { { 0 } } },
  { "norm_3", point_norm_3, 1, 3, { { 0, 0, 0 } }, { { 0, 0, 0 } }, TRUE, { { 0 } } },
  { "norm_inf", point_norm_inf, 1, 3, { { 0, 0, 0 } }, { { 0, 0, 0 } }, TRUE, { { 0 } } },
  { "norm_inf_of_ties", point_norm_inf, 1, 3, { { -2, 1, 2 } }, { { -0.5, 0, 0.5 } }, TRUE, { { 0 } } },
  { "norm_minus_inf", point_norm_minus_inf, 1, 3, { { -2, 1, 2 } }, { { 0, 1, 0 } }, TRUE, { { 0 } } },
  { "std", point_std, 1, 3, { { 2, 2, 2 } }, { { 0, 0, 0 } }, TRUE, { { 0 } } },
  { "var", point_var, 1, 3, { { 2, 2, 2 } }, { { 0, 0, 0 } }, TRUE, { { 0 } } },
  /* products with zeros */
  { "prod_of_one_zero", point_prod, 1, 3, { { 2, 0, 3 } }, { { 0, 6, 0 } }, TRUE, { { 3, 5, 2 } } },
  { "prod_of_two_zeros", point_prod, 1, 3, { { 0, 0, 3 } }, { { 0, 0, 0 } }, TRUE, { { 3, 3, 0 } } },
  { "prod_of_three_zeros", point_prod, 1, 4, { { 0, 0, 3, 0 } }, { { 0, 0, 0 } }, TRUE, { { 0 } } },
  { "cumprod_of_one_zero", point_cumprod, 1, 3, { { 2, 0, 3 } }, { { 1, 22, 0 } }, TRUE, { { 11, 17, 6 } } },
  { "cumprod_of_two_zeros", point_cumprod, 1, 3, { { 0, 0, 3 } }, { { 1, 0, 0 } }, TRUE, { { 11, 11, 0 } } },
  { "scatter_prod_of_one_zero", point_scatter_prod, 2, 3, { { 1, 5, 5 }, { 2, 0, 3 } }, { { 0, 2, 3 }, { 0, 6, 0 } }, TRUE,
    { { 6 }, { 3, 11, 2 } } },
  { "scatter_prod_of_two_zeros", point_scatter_prod, 2, 3, { { 1, 5, 5 }, { 0, 0, 3 } }, { { 0, 2, 3 }, { 0, 0, 0 } }, TRUE,
    { { 0 }, { 3, 3, 0 } } },
  { "scatter_prod_of_three_zeros", point_scatter_prod, 2, 3, { { 1, 5, 5 }, { 0, 0, 0 } }, { { 0, 2, 3 }, { 0, 0, 0 } }, TRUE,
    { { 0 }, { 0, 0, 0 } } },
  { "scatter_prod_to_zero", point_scatter_prod, 2, 3, { { 0, 5, 5 }, { 0, 2, 3 } }, { { 0, 2, 3 }, { 0, 0, 0 } }, TRUE,
    { { 6 }, { 6, 0, 0 } } },
};
/* clang-format on */

static GTorchImpl *
leaf_new (const gdouble *values, gint64 n)
{
  g_autoptr (GTorchImpl) host =
      gtorch_impl_new (gtorch_device_cpu (), GTORCH_DTYPE_FLOAT64, &n, 1, NULL);
  GTorchImpl *leaf;
  gint64 i;

  for (i = 0; i < n; i++)
    element_set (host, i, values[i]);
  leaf = impl_to_test_device (host);
  gtorch_autograd_ensure (leaf)->requires_grad = TRUE;
  return leaf;
}

static GTorchImpl *
upper_new (const GTorchImpl *like, gboolean is_counted)
{
  g_autoptr (GTorchImpl) host =
      gtorch_impl_new (gtorch_device_cpu (), like->dtype, like->shape, like->n_dims, NULL);
  gint64 i;

  for (i = 0; i < host->numel; i++)
    element_set (host, i, is_counted ? i + 1 : 1);
  return impl_to_test_device (host);
}

static void
compare (const gchar *what, guint input, GTorchImpl *grad, const gdouble *expected, guint n)
{
  guint i;

  for (i = 0; i < n; i++)
    {
      const gdouble value = grad != NULL ? creal (element_get (grad, i)) : 0;

      if (value == expected[i] || (isnan (value) && isnan (expected[i]))
          || fabs (value - expected[i]) <= 1e-12 * (1 + fabs (expected[i])))
        continue;
      g_test_message ("the %s gradient of input %u, element %u, is %.17g, expected %.17g", what,
                      input, i, value, expected[i]);
      g_test_fail ();
    }
}

static void
has_gradients (gconstpointer data)
{
  const Point *point = data;
  g_autoptr (GTorchImpl) x = leaf_new (point->x[0], point->length);
  g_autoptr (GTorchImpl) y = leaf_new (point->x[1], point->length);
  g_autoptr (GTorchImpl) result = NULL;
  g_autoptr (GTorchImpl) upper = NULL;
  g_autoptr (GError) error = NULL;
  GTorchImpl *inputs[] = { x, y }, *grads[2] = { NULL }, *seconds[2] = { NULL };
  GTorchImpl *roots[2], *ones[2] = { NULL };
  GTorchBackward backward = { .grads = &upper,
                              .roots = &result,
                              .n_roots = 1,
                              .inputs = inputs,
                              .n_inputs = point->n_inputs,
                              .results = grads,
                              .create_graph = TRUE };
  guint i, n = 0;

  gtorch_manual_seed (3);
  result = point->function (inputs, &error);
  if (error != NULL && is_lacking (error))
    return;
  g_assert_no_error (error);
  g_assert_true (gtorch_impl_requires_grad (result));
  upper = upper_new (result, TRUE);
  gtorch_engine_run (&backward, &error);
  g_assert_no_error (error);
  for (i = 0; i < point->n_inputs; i++)
    {
      compare ("first", i, grads[i], point->first[i], point->length);
      if (grads[i] != NULL && gtorch_impl_requires_grad (grads[i]))
        {
          roots[n] = grads[i];
          ones[n++] = upper_new (grads[i], FALSE);
        }
    }
  if (point->has_second)
    {
      backward.roots = roots;
      backward.grads = ones;
      backward.n_roots = n;
      backward.results = seconds;
      backward.create_graph = FALSE;
      if (n > 0)
        gtorch_engine_run (&backward, &error);
      g_assert_no_error (error);
      for (i = 0; i < point->n_inputs; i++)
        compare ("second", i, seconds[i], point->second[i], point->length);
    }
  gtorch_impl_clear (grads, 2);
  gtorch_impl_clear (seconds, 2);
  gtorch_impl_clear (ones, 2);
}

/* --- complex numbers --- */

typedef struct
{
  const gchar *name;
  Function function;
  Number x, first;
} ComplexPoint;

UNARY (angle, angle (x[0], error))

/* clang-format off */
static const ComplexPoint complex_points[] = {
  { "abs_of_zero", point_abs, 0, 0 },
  { "abs", point_abs, 3 + 4 * I, 0.6 + 0.8 * I },
  { "sgn_of_zero", point_sgn, 0, 0 },
  { "sgn", point_sgn, 3 + 4 * I, 0.128 - 0.096 * I },
  { "angle_of_zero", point_angle, 0, 0 },
  { "angle", point_angle, 1 + I, -0.5 + 0.5 * I },
  { "norm_2_of_zero", point_norm_2, 0, 0 },
  { "norm_3_of_zero", point_norm_3, 0, 0 },
  { "norm_inf_of_zero", point_norm_inf, 0, 0 },
  { "prod", point_prod, 2 + I, 1 },
};
/* clang-format on */

/* The second derivative must be defined, too. */
static void
has_complex_gradient (gconstpointer data)
{
  const ComplexPoint *point = data;
  const gint64 one = 1;
  g_autoptr (GTorchImpl) host =
      gtorch_impl_new (gtorch_device_cpu (), GTORCH_DTYPE_COMPLEX128, &one, 1, NULL);
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) result = NULL;
  g_autoptr (GTorchImpl) upper = NULL;
  g_autoptr (GTorchImpl) grad = NULL;
  g_autoptr (GTorchImpl) second = NULL;
  g_autoptr (GTorchImpl) ones = NULL;
  g_autoptr (GError) error = NULL;
  GTorchBackward backward = { .grads = &upper,
                              .roots = &result,
                              .n_roots = 1,
                              .inputs = &x,
                              .n_inputs = 1,
                              .results = &grad,
                              .create_graph = TRUE };

  element_set (host, 0, point->x);
  x = impl_to_test_device (host);
  gtorch_autograd_ensure (x)->requires_grad = TRUE;
  result = point->function (&x, &error);
  if (error != NULL && is_lacking (error))
    return;
  g_assert_no_error (error);
  upper = upper_new (result, TRUE);
  gtorch_engine_run (&backward, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat_with_epsilon (creal (element_get (grad, 0)), creal (point->first), 1e-14);
  g_assert_cmpfloat_with_epsilon (cimag (element_get (grad, 0)), cimag (point->first), 1e-14);
  if (!gtorch_impl_requires_grad (grad))
    return;
  ones = upper_new (grad, FALSE);
  backward.roots = &grad;
  backward.grads = &ones;
  backward.results = &second;
  backward.create_graph = FALSE;
  gtorch_engine_run (&backward, &error);
  g_assert_no_error (error);
  if (second != NULL)
    g_assert_true (isfinite (creal (element_get (second, 0)))
                   && isfinite (cimag (element_get (second, 0))));
}

int
main (int argc, char *argv[])
{
  guint i;

  g_test_init (&argc, &argv, NULL);
  for (i = 0; i < G_N_ELEMENTS (points); i++)
    {
      g_autofree gchar *path =
          g_strdup_printf ("/GTorch/gradient_points/%s/has_its_gradients", points[i].name);

      g_test_add_data_func (path, &points[i], has_gradients);
    }
  for (i = 0; i < G_N_ELEMENTS (complex_points); i++)
    {
      g_autofree gchar *path =
          g_strdup_printf ("/GTorch/gradient_points/complex/%s/has_its_gradient",
                           complex_points[i].name);

      g_test_add_data_func (path, &complex_points[i], has_complex_gradient);
    }
  return g_test_run ();
}
