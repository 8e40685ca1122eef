/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Batch normalisation by the statistics of several processes. The mean is found first, and then the sum of
 * the squares of what is left: the difference of large numbers would be inexact. */

#include "config.h"

#include "nn/gtorch-sync-norm-private.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "dispatch/gtorch-grad-mode.h"
#include "gtorch-ops-private.h"
#include "nn/gtorch-layer-private.h"
#include "tensor/gtorch-tensor-private.h"

const GTorchSync *gtorch_sync;

typedef struct
{
  gpointer processes;
  GTorchImpl *input; /* float32 or float64 */
  gint64 n_channels;
  gint64 shape[GTORCH_MAX_DIMS]; /* of one number for each channel, beside the input */
  GTorchImpl *count;             /* of elements of a channel in all processes */
  GTorchImpl *mean, *var;        /* of each channel */
} Norm;

static void
norm_clear (Norm *self)
{
  g_clear_pointer (&self->input, gtorch_impl_unref);
  g_clear_pointer (&self->count, gtorch_impl_unref);
  g_clear_pointer (&self->mean, gtorch_impl_unref);
  g_clear_pointer (&self->var, gtorch_impl_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Norm, norm_clear)

/* The sum of each channel. */
static GTorchImpl *
sum_channels (const Norm *self, GTorchImpl *x, GError **error)
{
  gint64 dims[GTORCH_MAX_DIMS];
  guint n = 0, i;

  for (i = 0; i < x->n_dims; i++)
    if (i != 1)
      dims[n++] = i;
  return gtorch_op_sum (x, dims, n, FALSE, GTORCH_DTYPE_NONE, error);
}

static GTorchImpl *
beside (const Norm *self, GTorchImpl *channels, GError **error)
{
  return gtorch_op_reshape (channels, self->shape, self->input->n_dims, error);
}

static gboolean
find_mean (Norm *self, GError **error)
{
  const gint64 one = 1, n = self->n_channels;
  const gint64 own = n > 0 ? self->input->numel / n : 0;
  g_autoptr (GTorchImpl) sum = sum_channels (self, self->input, error);
  g_autoptr (GTorchImpl) count = gtorch_op_full (&one, 1, (gdouble) own, self->input->dtype,
                                                 gtorch_impl_device (self->input), error);
  GTorchImpl *both[] = { sum, count };
  g_autoptr (GTorchImpl) own_stats = NULL, all = NULL, sums = NULL, counts = NULL;

  if (sum == NULL || count == NULL)
    return FALSE;
  own_stats = gtorch_op_cat (both, 2, 0, error);
  all = own_stats == NULL ? NULL : gtorch_sync->sum (self->processes, own_stats, error);
  sums = all == NULL ? NULL : gtorch_op_narrow (all, 0, 0, n, error);
  counts = sums == NULL ? NULL : gtorch_op_narrow (all, 0, n, 1, error);
  self->count = counts == NULL ? NULL : gtorch_impl_alias (counts);
  self->mean = self->count == NULL ? NULL : gtorch_op_div (sums, self->count, error);
  return self->mean != NULL;
}

/* Returns the input less the mean. */
static GTorchImpl *
find_var (Norm *self, GError **error)
{
  g_autoptr (GTorchImpl) mean = beside (self, self->mean, error);
  g_autoptr (GTorchImpl) rest = mean == NULL ? NULL : gtorch_op_sub (self->input, mean, 1, error);
  g_autoptr (GTorchImpl) square = rest == NULL ? NULL : gtorch_op_square (rest, error);
  g_autoptr (GTorchImpl) sum = square == NULL ? NULL : sum_channels (self, square, error);
  g_autoptr (GTorchImpl) all = sum == NULL ? NULL : gtorch_sync->sum (self->processes, sum, error);

  self->var = all == NULL ? NULL : gtorch_op_div (all, self->count, error);
  return self->var == NULL ? NULL : g_steal_pointer (&rest);
}

static GTorchImpl *
scale (const Norm *self, GTorchImpl *rest, GTorchImpl *weight, GTorchImpl *bias, gdouble eps,
       GError **error)
{
  g_autoptr (GTorchImpl) little = gtorch_impl_new_number (eps);
  g_autoptr (GTorchImpl) wide = gtorch_op_add (self->var, little, 1, error);
  g_autoptr (GTorchImpl) root = wide == NULL ? NULL : gtorch_op_rsqrt (wide, error);
  g_autoptr (GTorchImpl) factor = NULL, factors = NULL, product = NULL, summand = NULL;

  if (root == NULL)
    return NULL;
  factor = weight == NULL ? gtorch_impl_ref (root) : gtorch_op_mul (root, weight, error);
  factors = factor == NULL ? NULL : beside (self, factor, error);
  product = factors == NULL ? NULL : gtorch_op_mul (rest, factors, error);
  if (product == NULL || bias == NULL)
    return g_steal_pointer (&product);
  summand = beside (self, bias, error);
  return summand == NULL ? NULL : gtorch_op_add (product, summand, 1, error);
}

/* Moves a running value towards that of all batches. */
static gboolean
move (GTorchImpl *running, GTorchImpl *value, gdouble momentum, GError **error)
{
  g_autoptr (GTorchImpl) near = gtorch_op_to_dtype (value, running->dtype, error);

  return near != NULL && gtorch_op_lerp_inplace (running, near, momentum, error);
}

static gboolean
update (const Norm *self, GTorchImpl *mean, GTorchImpl *var, gdouble momentum, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  g_autoptr (GTorchImpl) one = gtorch_impl_new_number (1);
  g_autoptr (GTorchImpl) less = gtorch_op_sub (self->count, one, 1, error);
  g_autoptr (GTorchImpl) total =
      less == NULL ? NULL : gtorch_op_mul (self->var, self->count, error);
  g_autoptr (GTorchImpl) unbiased = total == NULL ? NULL : gtorch_op_div (total, less, error);

  return unbiased != NULL && move (mean, self->mean, momentum, error)
         && move (var, unbiased, momentum, error);
}

static GTorchImpl *
normalise (Norm *norm, GTorchImpl *impl, GTorchImpl *weight, GTorchImpl *bias, gdouble eps,
           GError **error)
{
  g_autoptr (GTorchImpl) rest = NULL, output = NULL;
  guint i;

  norm->n_channels = impl->shape[1];
  for (i = 0; i < impl->n_dims; i++)
    norm->shape[i] = i == 1 ? impl->shape[1] : 1;
  norm->input = gtorch_op_to_dtype (impl,
                                    impl->dtype == GTORCH_DTYPE_FLOAT64 ? GTORCH_DTYPE_FLOAT64
                                                                        : GTORCH_DTYPE_FLOAT32,
                                    error);
  if (norm->input == NULL || !find_mean (norm, error))
    return NULL;
  rest = find_var (norm, error);
  output = rest == NULL ? NULL : scale (norm, rest, weight, bias, eps, error);
  return output == NULL ? NULL : gtorch_op_to_dtype (output, impl->dtype, error);
}

GTorchTensor *
gtorch_layer_sync_batch_norm (GTorchModule *self, GTorchTensor *input, gint64 num_features,
                              gdouble momentum, gdouble eps, GError **error)
{
  GTorchImpl *impl = gtorch_tensor_unwrap (input);
  g_auto (Norm) norm = { NULL };
  g_autoptr (GTorchImpl) mean = NULL, var = NULL, weight = NULL, bias = NULL, output = NULL;

  if (gtorch_module_get_training (self) && gtorch_sync != NULL
      && !gtorch_sync->find (self, &norm.processes, error))
    return NULL;
  if (norm.processes == NULL || impl->n_dims < 2 || impl->shape[1] != num_features
      || gtorch_dtype_kind (impl->dtype) != GTORCH_KIND_FLOAT)
    return gtorch_layer_batch_norm (self, input, num_features, momentum, eps, 2, GTORCH_MAX_DIMS,
                                    "[N, C, …]", error);
  mean = gtorch_module_dup_buffer_impl (self, 0);
  var = gtorch_module_dup_buffer_impl (self, 1);
  if (!gtorch_module_take_parameter (self, 0, &weight, error)
      || !gtorch_module_take_parameter (self, 1, &bias, error)
      || (mean != NULL && !gtorch_layer_share_of_batch (self, &momentum, error)))
    return NULL;
  output = normalise (&norm, impl, weight, bias, eps, error);
  if (output == NULL)
    return NULL;
  if (mean != NULL && var != NULL
      && (!update (&norm, mean, var, momentum, error) || !gtorch_layer_count_batch (self, error)))
    return NULL;
  return gtorch_tensor_wrap (g_steal_pointer (&output));
}
