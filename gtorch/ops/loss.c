/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Losses, composed of a pointwise part and a reduction. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

GTorchImpl *
gtorch_loss_reduce (GTorchImpl *loss, GTorchReduction reduction, GError **error)
{
  g_autoptr (GTorchImpl) owned = loss;

  if (loss == NULL || reduction == GTORCH_REDUCTION_NONE)
    return g_steal_pointer (&owned);
  if (reduction == GTORCH_REDUCTION_SUM)
    return gtorch_op_sum (loss, NULL, 0, FALSE, GTORCH_DTYPE_NONE, error);
  return gtorch_op_mean (loss, NULL, 0, FALSE, GTORCH_DTYPE_NONE, error);
}

/* Multiplies a loss by the weights. Takes the reference on loss. */
static GTorchImpl *
weigh (GTorchImpl *loss, GTorchImpl *weight, GError **error)
{
  g_autoptr (GTorchImpl) owned = loss;

  if (loss == NULL || weight == NULL)
    return g_steal_pointer (&owned);
  return gtorch_op_mul (loss, weight, error);
}

gboolean
gtorch_loss_check_reduction (const gchar *op, GTorchReduction reduction, GError **error)
{
  if ((guint) reduction <= GTORCH_REDUCTION_SUM)
    return TRUE;
  if (reduction == GTORCH_REDUCTION_BATCHMEAN)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: the reduction batchmean is for kl_div only"), op);
      return FALSE;
    }
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: %d is no reduction"), op,
               (int) reduction);
  return FALSE;
}

static gboolean
check_same_shape (const gchar *op, GTorchImpl *self, GTorchImpl *target, GError **error)
{
  if (gtorch_impl_same_shape (self, target))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("%s: the target's shape %s must be the input's, %s"), op,
               gtorch_impl_shape_str (target), gtorch_impl_shape_str (self));
  return FALSE;
}

GTorchImpl *
gtorch_composite_mse_loss (GTorchImpl *self, GTorchImpl *target, GTorchReduction reduction,
                           GError **error)
{
  if (!gtorch_loss_check_reduction ("mse_loss", reduction, error))
    return NULL;
  return gtorch_loss_reduce (gtorch_op_squared_error (self, target, error), reduction, error);
}

GTorchImpl *
gtorch_composite_l1_loss (GTorchImpl *self, GTorchImpl *target, GTorchReduction reduction,
                          GError **error)
{
  g_autoptr (GTorchImpl) difference = NULL;

  if (!gtorch_loss_check_reduction ("l1_loss", reduction, error))
    return NULL;
  difference = gtorch_op_sub (self, target, 1, error);
  return difference != NULL
             ? gtorch_loss_reduce (gtorch_op_abs (difference, error), reduction, error)
             : NULL;
}

GTorchImpl *
gtorch_composite_smooth_l1_loss (GTorchImpl *self, GTorchImpl *target, GTorchReduction reduction,
                                 gdouble beta, GError **error)
{
  g_autoptr (GTorchImpl) loss = NULL;
  g_autoptr (GTorchImpl) factor = NULL;

  if (beta == 0)
    return gtorch_op_l1_loss (self, target, reduction, error);
  if (!gtorch_loss_check_reduction ("smooth_l1_loss", reduction, error))
    return NULL;
  loss = gtorch_loss_reduce (gtorch_op_huber (self, target, beta, error), reduction, error);
  factor = gtorch_impl_new_number (1 / beta);
  return loss != NULL ? gtorch_op_mul (loss, factor, error) : NULL;
}

GTorchImpl *
gtorch_composite_huber_loss (GTorchImpl *self, GTorchImpl *target, GTorchReduction reduction,
                             gdouble delta, GError **error)
{
  if (!gtorch_loss_check_reduction ("huber_loss", reduction, error))
    return NULL;
  return gtorch_loss_reduce (gtorch_op_huber (self, target, delta, error), reduction, error);
}

GTorchImpl *
gtorch_composite_binary_cross_entropy (GTorchImpl *self, GTorchImpl *target, GTorchImpl *weight,
                                       GTorchReduction reduction, GError **error)
{
  if (!gtorch_loss_check_reduction ("binary_cross_entropy", reduction, error)
      || !check_same_shape ("binary_cross_entropy", self, target, error))
    return NULL;
  return gtorch_loss_reduce (weigh (gtorch_op_bce (self, target, error), weight, error), reduction,
                             error);
}

GTorchImpl *
gtorch_composite_binary_cross_entropy_with_logits (GTorchImpl *self, GTorchImpl *target,
                                                   GTorchImpl *weight, GTorchImpl *pos_weight,
                                                   GTorchReduction reduction, GError **error)
{
  g_autoptr (GTorchImpl) loss = NULL;
  g_autoptr (GTorchImpl) one = gtorch_impl_new_number (1);

  if (!gtorch_loss_check_reduction ("binary_cross_entropy_with_logits", reduction, error)
      || !check_same_shape ("binary_cross_entropy_with_logits", self, target, error))
    return NULL;
  loss = gtorch_op_bce_with_logits (self, target, error);
  if (loss != NULL && pos_weight != NULL)
    {
      /* the positive part, target * softplus (-self), is multiplied by pos_weight */
      g_autoptr (GTorchImpl) less = gtorch_op_sub (pos_weight, one, 1, error);
      g_autoptr (GTorchImpl) factor = less != NULL ? gtorch_op_mul (less, target, error) : NULL;
      g_autoptr (GTorchImpl) minus = factor != NULL ? gtorch_op_neg (self, error) : NULL;
      g_autoptr (GTorchImpl) soft =
          minus != NULL ? gtorch_op_softplus (minus, 1, INFINITY, error) : NULL;
      g_autoptr (GTorchImpl) extra = soft != NULL ? gtorch_op_mul (factor, soft, error) : NULL;
      GTorchImpl *sum = extra != NULL ? gtorch_op_add (loss, extra, 1, error) : NULL;

      gtorch_impl_unref (loss);
      loss = sum;
    }
  return gtorch_loss_reduce (weigh (g_steal_pointer (&loss), weight, error), reduction, error);
}

/* Sums the losses over the batch and divides by its size. Takes the reference on loss. */
static GTorchImpl *
reduce_batch (GTorchImpl *loss, gint64 size, GError **error)
{
  g_autoptr (GTorchImpl) sum = gtorch_loss_reduce (loss, GTORCH_REDUCTION_SUM, error);
  g_autoptr (GTorchImpl) number = gtorch_impl_new_int (size);

  return sum != NULL ? gtorch_op_div (sum, number, error) : NULL;
}

GTorchImpl *
gtorch_composite_kl_div (GTorchImpl *self, GTorchImpl *target, GTorchReduction reduction,
                         gboolean log_target, GError **error)
{
  g_autoptr (GTorchImpl) probability = NULL;
  g_autoptr (GTorchImpl) first = NULL;
  g_autoptr (GTorchImpl) second = NULL;
  const gboolean by_batch = reduction == GTORCH_REDUCTION_BATCHMEAN;
  GTorchImpl *loss;

  if (!by_batch && !gtorch_loss_check_reduction ("kl_div", reduction, error))
    return NULL;
  if (by_batch && self->n_dims == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("kl_div: the reduction batchmean needs a dimension, not shape %s"),
                   gtorch_impl_shape_str (self));
      return NULL;
    }
  if (log_target)
    {
      first = gtorch_op_sub (target, self, 1, error);
      probability = first != NULL ? gtorch_op_exp (target, error) : NULL;
      loss = probability != NULL ? gtorch_op_mul (probability, first, error) : NULL;
    }
  else
    {
      first = gtorch_op_xlogy (target, target, error);
      second = first != NULL ? gtorch_op_mul (target, self, error) : NULL;
      loss = second != NULL ? gtorch_op_sub (first, second, 1, error) : NULL;
    }
  if (loss == NULL)
    return NULL;
  return by_batch ? reduce_batch (loss, self->shape[0], error)
                  : gtorch_loss_reduce (loss, reduction, error);
}

/* --- cross entropy --- */

GTorchImpl *
gtorch_composite_cross_entropy_of_probabilities (GTorchImpl *self, GTorchImpl *target,
                                                 GTorchImpl *weight, GTorchReduction reduction,
                                                 gdouble smoothing, GError **error)
{
  const gint64 dim = self->n_dims > 1 ? 1 : 0;
  const gint64 n_classes = self->shape[dim];
  g_autoptr (GTorchImpl) scores = NULL;
  g_autoptr (GTorchImpl) smooth = NULL;
  g_autoptr (GTorchImpl) product = NULL;
  g_autoptr (GTorchImpl) weighted = NULL;
  g_autoptr (GTorchImpl) loss = NULL;
  g_autoptr (GTorchImpl) factor = NULL;

  scores = gtorch_op_log_softmax (self, dim, GTORCH_DTYPE_NONE, error);
  if (scores == NULL)
    return NULL;
  if (smoothing > 0)
    {
      g_autoptr (GTorchImpl) share = gtorch_impl_new_number (smoothing / (gdouble) n_classes);
      g_autoptr (GTorchImpl) rest = gtorch_impl_new_number (1 - smoothing);
      g_autoptr (GTorchImpl) less = gtorch_op_mul (target, rest, error);

      smooth = less != NULL ? gtorch_op_add (less, share, 1, error) : NULL;
      if (smooth == NULL)
        return NULL;
      target = smooth;
    }
  product = gtorch_op_mul (scores, target, error);
  if (product == NULL)
    return NULL;
  if (weight != NULL)
    {
      g_autoptr (GTorchImpl) shaped = NULL;
      gint64 shape[GTORCH_MAX_DIMS];
      guint i;

      for (i = 0; i < scores->n_dims; i++)
        shape[i] = i == dim ? n_classes : 1;
      shaped = gtorch_op_reshape (weight, shape, scores->n_dims, error);
      weighted = shaped != NULL ? gtorch_op_mul (product, shaped, error) : NULL;
      if (weighted == NULL)
        return NULL;
    }
  else
    weighted = gtorch_impl_ref (product);
  /* the mean is over the examples, not over the classes */
  factor = gtorch_impl_new_number (
      reduction == GTORCH_REDUCTION_MEAN ? -(gdouble) n_classes / (gdouble) scores->numel : -1);
  if (reduction == GTORCH_REDUCTION_NONE)
    loss = gtorch_op_sum (weighted, &dim, 1, FALSE, GTORCH_DTYPE_NONE, error);
  else
    loss = gtorch_op_sum (weighted, NULL, 0, FALSE, GTORCH_DTYPE_NONE, error);
  return loss != NULL ? gtorch_op_mul (loss, factor, error) : NULL;
}

GTorchImpl *
gtorch_composite_cross_entropy (GTorchImpl *self, GTorchImpl *target, GTorchImpl *weight,
                                GTorchReduction reduction, gint64 ignore_index,
                                gdouble label_smoothing, GError **error)
{
  GTorchImpl *loss = NULL;
  gint64 dim = self->n_dims > 1 ? 1 : 0;

  if (!gtorch_loss_check_reduction ("cross_entropy", reduction, error))
    return NULL;
  if (self->n_dims == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("cross_entropy: the input has no dimension of classes: its shape is []"));
      return NULL;
    }
  if (gtorch_dtype_kind (target->dtype) == GTORCH_KIND_FLOAT)
    {
      if (!check_same_shape ("cross_entropy", self, target, error))
        return NULL;
      if (weight != NULL && (weight->n_dims != 1 || weight->shape[0] != self->shape[dim]))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("cross_entropy: the weight %s must have one element for each class of "
                          "%s"),
                       gtorch_impl_shape_str (weight), gtorch_impl_shape_str (self));
          return NULL;
        }
      return gtorch_op_cross_entropy_of_probabilities (self, target, weight, reduction,
                                                       label_smoothing, error);
    }
  gtorch_op_native_cross_entropy (self, target, weight, reduction, ignore_index, label_smoothing,
                                  GTORCH_DTYPE_NONE, &loss, NULL, NULL, error);
  return loss;
}
