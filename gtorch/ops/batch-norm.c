/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>
#include <string.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-pack.h"
#include "cpu/ops/gtorch-cpu-rows.h"
#include "gtorch-ops-private.h"

typedef struct
{
  guint dtype;
  gsize size;
  gint64 batch, channels, inner;
  gdouble eps;
  const char *x, *g;
  const gdouble *weight, *bias; /* float64, or NULL */
  char *y;
  gdouble *mean, *var, *grad_weight, *grad_bias; /* float64 */
} BatchNorm;

static void
norm_channels (gint64 begin, gint64 end, gpointer user_data)
{
  const BatchNorm *b = user_data;
  gint64 stride = b->channels * b->inner;

  for (; begin < end; begin++)
    {
      gint64 at = begin * b->inner * (gint64) b->size;
      gdouble scale, shift;

      GTORCH_ROWS_CALL (b->dtype, channel_moments, (gconstpointer) (b->x + at), b->batch, b->inner,
                        stride, &b->mean[begin], &b->var[begin]);
      scale = (b->weight != NULL ? b->weight[begin] : 1) / sqrt (b->var[begin] + b->eps);
      shift = b->bias != NULL ? b->bias[begin] : 0;
      GTORCH_ROWS_CALL (b->dtype, channel_scale, (gconstpointer) (b->x + at),
                        (gpointer) (b->y + at), b->batch, b->inner, stride, b->mean[begin], scale,
                        shift);
    }
}

static void
grad_channels (gint64 begin, gint64 end, gpointer user_data)
{
  const BatchNorm *b = user_data;
  gint64 stride = b->channels * b->inner;
  gdouble n = (gdouble) (b->batch * b->inner);

  for (; begin < end; begin++)
    {
      gint64 at = begin * b->inner * (gint64) b->size;
      gdouble rstd = 1 / sqrt (b->var[begin] + b->eps), mean = b->mean[begin], sum, dot, scale;

      GTORCH_ROWS_CALL (b->dtype, channel_dots, (gconstpointer) (b->g + at),
                        (gconstpointer) (b->x + at), b->batch, b->inner, stride, mean, &sum, &dot);
      b->grad_weight[begin] = dot * rstd;
      b->grad_bias[begin] = sum;
      scale = rstd * (b->weight != NULL ? b->weight[begin] : 1);
      GTORCH_ROWS_CALL (b->dtype, channel_grad, (gconstpointer) (b->g + at),
                        (gconstpointer) (b->x + at), (gpointer) (b->y + at), b->batch, b->inner,
                        stride, mean, scale, -scale * rstd * rstd * dot / n, -scale * sum / n);
    }
}

/* Sets the outputs. Values per channel have the dtype of the weight; without a weight, float32 for
 * 16-bit inputs. */
static gboolean
set_outputs (GTorchOpCall *call, const GTorchImpl *input, const GTorchImpl *weight, GError **error)
{
  gint64 channels = input->shape[1];
  guint dtype = weight != NULL                         ? weight->dtype
                : gtorch_dtype_size (input->dtype) < 4 ? GTORCH_DTYPE_FLOAT32
                                                       : input->dtype;

  call->compute = input->dtype;
  return gtorch_call_check_dtype (call, input->dtype, error)
         && gtorch_call_set_output (call, 0, input->dtype, input->shape, input->n_dims, error)
         && gtorch_call_set_output (call, 1, dtype, &channels, 1, error)
         && gtorch_call_set_output (call, 2, dtype, &channels, 1, error);
}

gboolean
gtorch_shape_native_batch_norm (GTorchOpCall *call, GError **error)
{
  return set_outputs (call, call->inputs[0], call->inputs[1], error);
}

gboolean
gtorch_shape_batch_norm_backward (GTorchOpCall *call, GError **error)
{
  return set_outputs (call, call->inputs[1], call->inputs[2], error);
}

/* Packs the operands, runs the loop and unpacks: x (and g, if backward) and output 0 have the compute
 * dtype, values per channel are float64. */
static gboolean
run (GTorchOpCall *call, gboolean backward, GError **error)
{
  guint dtype = gtorch_dtype_infos[call->compute].compute;
  GTorchImpl *packed[5] = { NULL }, *out[3] = { NULL };
  BatchNorm b = { .dtype = dtype,
                  .size = gtorch_dtype_size (dtype),
                  .batch = 1,
                  .inner = 1,
                  .eps = call->attrs[0].d };
  gboolean ok = FALSE;
  guint n_big = backward ? 2 : 1, i;
  GTorchImpl *x;

  for (i = 0; i < call->n_inputs; i++)
    if (call->inputs[i] != NULL
        && (packed[i] =
                gtorch_cpu_pack (call->inputs[i], i < n_big ? dtype : GTORCH_DTYPE_FLOAT64, error))
               == NULL)
      goto done;
  for (i = 0; i < 3; i++)
    {
      out[i] =
          gtorch_cpu_pack_output (call->outputs[i], i == 0 ? dtype : GTORCH_DTYPE_FLOAT64, error);
      if (out[i] == NULL)
        goto done;
      memset (gtorch_impl_data (out[i]), 0, gtorch_impl_n_bytes (out[i]));
    }
  x = packed[backward ? 1 : 0];
  b.batch = x->shape[0];
  b.channels = x->shape[1];
  for (i = 2; i < x->n_dims; i++)
    b.inner *= x->shape[i];
  b.x = gtorch_impl_data (x);
  b.y = gtorch_impl_data (out[0]);
  b.weight = packed[n_big] != NULL ? gtorch_impl_data (packed[n_big]) : NULL;
  if (backward)
    {
      b.g = gtorch_impl_data (packed[0]);
      b.mean = gtorch_impl_data (packed[3]);
      b.var = gtorch_impl_data (packed[4]);
      b.grad_weight = gtorch_impl_data (out[1]);
      b.grad_bias = gtorch_impl_data (out[2]);
    }
  else
    {
      b.bias = packed[2] != NULL ? gtorch_impl_data (packed[2]) : NULL;
      b.mean = gtorch_impl_data (out[1]);
      b.var = gtorch_impl_data (out[2]);
    }
  if (x->numel > 0)
    gtorch_parallel_for (b.channels, 1 + GTORCH_CPU_GRAIN / (b.batch * b.inner),
                         backward ? grad_channels : norm_channels, &b);
  for (i = 0; i < 3; i++)
    gtorch_cpu_unpack (out[i], call->outputs[i]);
  ok = TRUE;
done:
  gtorch_impl_clear (packed, 5);
  gtorch_impl_clear (out, 3);
  return ok;
}

gboolean
gtorch_cpu_native_batch_norm (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run (call, FALSE, error);
}

gboolean
gtorch_cpu_batch_norm_backward (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run (call, TRUE, error);
}

/* Reshapes a parameter of the channels so that it broadcasts over [N, C, …]. */
static GTorchImpl *
per_channel (GTorchImpl *impl, guint n_dims, GError **error)
{
  gint64 shape[GTORCH_MAX_DIMS];
  guint i;

  for (i = 0; i < n_dims; i++)
    shape[i] = i == 1 ? impl->numel : 1;
  return gtorch_op_reshape (impl, shape, n_dims, error);
}

gboolean
gtorch_grad_native_batch_norm (GTorchGradContext *context, GError **error)
{
  GTorchImpl *grad = context->grads[0];
  GTorchImpl *input = context->inputs[0], *weight = context->inputs[1];
  GTorchImpl *sources[] = { grad, input, weight };
  gint64 dims[GTORCH_MAX_DIMS] = { 0 };
  gdouble eps = context->attrs[0].d;
  gsize n = input->n_dims - 1, i;

  /* the statistics only serve the backward pass and have no gradient */
  if (context->grads[1] != NULL || context->grads[2] != NULL)
    return gtorch_grad_undefined (context, error);
  if (grad == NULL)
    return TRUE;
  if (!gtorch_autograd_wanted (sources, weight != NULL ? 3 : 2))
    {
      g_autoptr (GTorchImpl) grad_weight = NULL;
      g_autoptr (GTorchImpl) grad_bias = NULL;

      if (!gtorch_op_batch_norm_backward (grad, input, weight, context->outputs[1],
                                          context->outputs[2], eps, &context->result[0],
                                          &grad_weight, &grad_bias, error))
        return FALSE;
      if (context->needs[1])
        context->result[1] = g_steal_pointer (&grad_weight);
      if (context->needs[2])
        context->result[2] = g_steal_pointer (&grad_bias);
      return TRUE;
    }
  for (i = 1; i < n; i++)
    dims[i] = i + 1;
  if (context->needs[0])
    {
      g_autoptr (GTorchImpl) shaped =
          weight != NULL ? per_channel (weight, input->n_dims, error) : NULL;
      g_autoptr (GTorchImpl) scaled = weight == NULL   ? gtorch_impl_ref (grad)
                                      : shaped != NULL ? gtorch_op_mul (grad, shaped, error)
                                                       : NULL;

      context->result[0] = scaled != NULL
                               ? gtorch_op_normalize_dims_grad (scaled, input, dims, n, eps, error)
                               : NULL;
      if (context->result[0] == NULL)
        return FALSE;
    }
  if (context->needs[1])
    {
      g_autoptr (GTorchImpl) normal = gtorch_op_normalize_dims (input, dims, n, eps, error);
      g_autoptr (GTorchImpl) product = normal != NULL ? gtorch_op_mul (grad, normal, error) : NULL;

      context->result[1] = product != NULL
                               ? gtorch_op_sum (product, dims, n, FALSE, GTORCH_DTYPE_NONE, error)
                               : NULL;
      if (context->result[1] == NULL)
        return FALSE;
    }
  if (context->needs[2])
    {
      context->result[2] = gtorch_op_sum (grad, dims, n, FALSE, GTORCH_DTYPE_NONE, error);
      return context->result[2] != NULL;
    }
  return TRUE;
}

static GTorchImpl *
scaled (GTorchImpl *value, gdouble factor, GError **error)
{
  g_autoptr (GTorchImpl) plain = gtorch_impl_alias (value);
  g_autoptr (GTorchImpl) number = gtorch_impl_new_number (factor);

  return gtorch_op_mul (plain, number, error);
}

/* Updates the running statistics. Both new values are computed before either is written, since there may
 * be no memory for the second. */
static gboolean
mix (GTorchImpl *running_mean, GTorchImpl *mean, GTorchImpl *running_var, GTorchImpl *var,
     gdouble factor, gdouble momentum, GError **error)
{
  g_autoptr (GTorchImpl) new_mean = NULL;
  g_autoptr (GTorchImpl) new_var = NULL;

  if ((running_mean != NULL && (new_mean = scaled (mean, 1, error)) == NULL)
      || (running_var != NULL && (new_var = scaled (var, factor, error)) == NULL))
    return FALSE;
  return (new_mean == NULL || gtorch_op_lerp_inplace (running_mean, new_mean, momentum, error))
         && (new_var == NULL || gtorch_op_lerp_inplace (running_var, new_var, momentum, error));
}

/* Normalises with fixed statistics: input * scale + shift, in the dtype of the input. */
static GTorchImpl *
apply (GTorchImpl *input, GTorchImpl *mean, GTorchImpl *var, GTorchImpl *weight, GTorchImpl *bias,
       gdouble eps, GError **error)
{
  g_autoptr (GTorchImpl) number = gtorch_impl_new_number (eps);
  g_autoptr (GTorchImpl) safe = gtorch_op_add (var, number, 1, error);
  g_autoptr (GTorchImpl) rstd = safe != NULL ? gtorch_op_rsqrt (safe, error) : NULL;
  g_autoptr (GTorchImpl) scale = rstd == NULL     ? NULL
                                 : weight != NULL ? gtorch_op_mul (rstd, weight, error)
                                                  : gtorch_impl_ref (rstd);
  g_autoptr (GTorchImpl) offset = scale != NULL ? gtorch_op_mul (mean, scale, error) : NULL;
  g_autoptr (GTorchImpl) shift = offset == NULL ? NULL
                                 : bias != NULL ? gtorch_op_sub (bias, offset, 1, error)
                                                : gtorch_op_neg (offset, error);
  g_autoptr (GTorchImpl) a = shift != NULL ? per_channel (scale, input->n_dims, error) : NULL;
  g_autoptr (GTorchImpl) b = a != NULL ? per_channel (shift, input->n_dims, error) : NULL;

  g_autoptr (GTorchImpl) result = b != NULL ? gtorch_op_addcmul (b, input, a, 1, error) : NULL;

  return result != NULL ? gtorch_op_to (result, input->dtype, NULL, FALSE, FALSE, error) : NULL;
}

GTorchImpl *
gtorch_composite_batch_norm (GTorchImpl *input, GTorchImpl *running_mean, GTorchImpl *running_var,
                             GTorchImpl *weight, GTorchImpl *bias, gboolean training,
                             gdouble momentum, gdouble eps, GError **error)
{
  GTorchImpl *all[] = { running_mean, running_var, weight, bias };
  static const gchar *const names[] = { "running_mean", "running_var", "weight", "bias" };
  g_autoptr (GTorchImpl) output = NULL;
  g_autoptr (GTorchImpl) mean = NULL;
  g_autoptr (GTorchImpl) var = NULL;
  gdouble n;
  guint i;

  if (input->n_dims < 2)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("batch_norm: the input %s must have at least 2 dimensions"),
                   gtorch_impl_shape_str (input));
      return NULL;
    }
  for (i = 0; i < 4; i++)
    if (all[i] != NULL && (all[i]->n_dims != 1 || all[i]->shape[0] != input->shape[1]))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                     _ ("batch_norm: %s %s must have one element for each channel of the input %s"),
                     names[i], gtorch_impl_shape_str (all[i]), gtorch_impl_shape_str (input));
        return NULL;
      }
  if (!training)
    {
      if (running_mean != NULL && running_var != NULL)
        return apply (input, running_mean, running_var, weight, bias, eps, error);
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("batch_norm: running_mean and running_var are needed when not training"));
      return NULL;
    }
  n = input->shape[1] > 0 ? (gdouble) (input->numel / input->shape[1]) : 0;
  if (n == 1)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("batch_norm: training needs more than one element for each channel, the "
                      "input is "
                      "%s"),
                   gtorch_impl_shape_str (input));
      return NULL;
    }
  if (!gtorch_op_native_batch_norm (input, weight, bias, eps, &output, &mean, &var, error))
    return NULL;
  if (!mix (running_mean, mean, running_var, var, n / (n - 1), momentum, error))
    return NULL;
  return g_steal_pointer (&output);
}
