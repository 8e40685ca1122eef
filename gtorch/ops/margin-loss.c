/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Losses that compare distances or scores with a margin or a distribution, and cosine_similarity. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>

#include "dispatch/gtorch-constants-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-host-private.h"
#include "ops/gtorch-op-parts-private.h"

/* Returns x, but at least eps. As in PyTorch, the gradient is that of x, also where eps takes its place. */
static GTorchImpl *
at_least (GTorchImpl *x, gdouble eps, GError **error)
{
  g_autoptr (GTorchImpl) least = gtorch_impl_new_number (eps);
  g_autoptr (GTorchImpl) missing = NULL;
  {
    g_auto (GTorchChange) mode;
    g_autoptr (GTorchImpl) difference = NULL;

    gtorch_change_to_constants (&mode);
    difference = gtorch_op_sub (least, x, 1, error);
    missing = difference != NULL ? gtorch_op_relu (difference, error) : NULL;
  }
  return missing != NULL ? gtorch_op_add (x, missing, 1, error) : NULL;
}

GTorchImpl *
gtorch_composite_cosine_similarity (GTorchImpl *x1, GTorchImpl *x2, gint64 dim, gdouble eps,
                                    GError **error)
{
  GTorchImpl *given[] = { x1, x2 };
  g_autoptr (GTorchImpl) first = NULL;
  g_autoptr (GTorchImpl) second = NULL;
  g_autoptr (GTorchImpl) product = NULL;
  GTorchImpl **unit[] = { &first, &second };
  gint64 shape[GTORCH_MAX_DIMS], along;
  guint n_dims, position;

  if (!gtorch_broadcast_shapes ("cosine_similarity", x1->shape, x1->n_dims, x2->shape, x2->n_dims,
                                shape, &n_dims, error)
      || !gtorch_normalize_dim ("cosine_similarity", dim, n_dims, &position, error))
    return NULL;
  along = position;
  for (guint i = 0; i < 2; i++)
    {
      g_autoptr (GTorchImpl) x = gtorch_op_expand (given[i], shape, n_dims, error);
      g_autoptr (GTorchImpl) exact =
          x != NULL ? gtorch_op_norm (x, 2, &along, 1, TRUE, error) : NULL;
      g_autoptr (GTorchImpl) norm = exact != NULL ? at_least (exact, eps, error) : NULL;

      *unit[i] = norm != NULL ? gtorch_op_div (x, norm, error) : NULL;
      if (*unit[i] == NULL)
        return NULL;
    }
  product = gtorch_op_mul (first, second, error);
  return product != NULL ? gtorch_op_sum (product, &along, 1, FALSE, GTORCH_DTYPE_NONE, error)
                         : NULL;
}

GTorchImpl *
gtorch_composite_cosine_embedding_loss (GTorchImpl *input1, GTorchImpl *input2, GTorchImpl *target,
                                        gdouble margin, GTorchReduction reduction, GError **error)
{
  g_autoptr (GTorchImpl) cosine = NULL;

  if (!gtorch_loss_check_reduction ("cosine_embedding_loss", reduction, error))
    return NULL;
  if (target->n_dims > 1 || input1->n_dims != target->n_dims + 1
      || input2->n_dims != target->n_dims + 1)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("cosine_embedding_loss: shapes %s and %s with a target %s: the inputs must "
                      "be [N, D] for a target [N], or [D] for a target without dimensions"),
                   gtorch_impl_shape_str (input1), gtorch_impl_shape_str (input2),
                   gtorch_impl_shape_str (target));
      return NULL;
    }
  cosine = gtorch_op_cosine_of_embeddings (input1, input2, target->n_dims, error);
  return cosine != NULL
             ? gtorch_loss_reduce (gtorch_op_embedding_margin (cosine, target, margin, error),
                                   reduction, error)
             : NULL;
}

GTorchImpl *
gtorch_composite_margin_ranking_loss (GTorchImpl *input1, GTorchImpl *input2, GTorchImpl *target,
                                      gdouble margin, GTorchReduction reduction, GError **error)
{
  if (!gtorch_loss_check_reduction ("margin_ranking_loss", reduction, error))
    return NULL;
  if (input1->n_dims != target->n_dims || input2->n_dims != target->n_dims)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("margin_ranking_loss: shapes %s, %s and %s must have equally many "
                      "dimensions"),
                   gtorch_impl_shape_str (input1), gtorch_impl_shape_str (input2),
                   gtorch_impl_shape_str (target));
      return NULL;
    }
  return gtorch_loss_reduce (gtorch_op_margin_ranking (input1, input2, target, margin, error),
                             reduction, error);
}

GTorchImpl *
gtorch_composite_hinge_embedding_loss (GTorchImpl *self, GTorchImpl *target, gdouble margin,
                                       GTorchReduction reduction, GError **error)
{
  if (!gtorch_loss_check_reduction ("hinge_embedding_loss", reduction, error))
    return NULL;
  return gtorch_loss_reduce (gtorch_op_hinge_embedding (self, target, margin, error), reduction,
                             error);
}

GTorchImpl *
gtorch_composite_soft_margin_loss (GTorchImpl *self, GTorchImpl *target, GTorchReduction reduction,
                                   GError **error)
{
  if (!gtorch_loss_check_reduction ("soft_margin_loss", reduction, error))
    return NULL;
  return gtorch_loss_reduce (gtorch_op_soft_margin (self, target, error), reduction, error);
}

/* Adds b to a. Takes the reference on a, which may be NULL; b is NULL after an error. */
static GTorchImpl *
added (GTorchImpl *a, GTorchImpl *b, GError **error)
{
  g_autoptr (GTorchImpl) owned = a;

  return owned != NULL && b != NULL ? gtorch_op_add (owned, b, 1, error) : NULL;
}

GTorchImpl *
gtorch_composite_poisson_nll_loss (GTorchImpl *input, GTorchImpl *target, gboolean log_input,
                                   gboolean full, gdouble eps, GTorchReduction reduction,
                                   GError **error)
{
  GTorchImpl *loss;

  if (!gtorch_loss_check_reduction ("poisson_nll_loss", reduction, error))
    return NULL;
  loss = log_input ? gtorch_op_poisson_of_log (input, target, error)
                   : gtorch_op_poisson_of_rate (input, target, eps, error);
  if (loss != NULL && full)
    {
      g_autoptr (GTorchImpl) rest = gtorch_op_stirling (target, error);

      loss = added (loss, rest, error);
    }
  return gtorch_loss_reduce (loss, reduction, error);
}

/* Returns the variances in a shape that broadcasts to the input's. */
static GTorchImpl *
spread_variance (GTorchImpl *input, GTorchImpl *var, GError **error)
{
  const guint n = input->n_dims;

  if (var->n_dims == 0 || gtorch_impl_same_shape (input, var))
    return gtorch_impl_ref (var);
  if (n > 0 && gtorch_same_shape (input->shape, n - 1, var->shape, var->n_dims))
    return gtorch_op_unsqueeze (var, -1, error);
  if (n == var->n_dims && var->shape[n - 1] == 1
      && gtorch_same_shape (input->shape, n - 1, var->shape, n - 1))
    return gtorch_impl_ref (var);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("gaussian_nll_loss: variances of shape %s do not fit an input of shape %s"),
               gtorch_impl_shape_str (var), gtorch_impl_shape_str (input));
  return NULL;
}

GTorchImpl *
gtorch_composite_gaussian_nll_loss (GTorchImpl *input, GTorchImpl *target, GTorchImpl *var,
                                    gboolean full, gdouble eps, GTorchReduction reduction,
                                    GError **error)
{
  g_autoptr (GTorchImpl) spread = NULL;
  g_autoptr (GTorchImpl) positive = NULL;
  GTorchImpl *loss;

  if (!gtorch_loss_check_reduction ("gaussian_nll_loss", reduction, error))
    return NULL;
  if (!gtorch_impl_check_not_negative ("gaussian_nll_loss", N_ ("variances"), var, TRUE, error))
    return NULL;
  spread = spread_variance (input, var, error);
  positive = spread != NULL ? at_least (spread, eps, error) : NULL;
  if (positive == NULL)
    return NULL;
  loss = gtorch_op_gaussian_nll (input, target, positive, error);
  if (loss != NULL && full)
    {
      g_autoptr (GTorchImpl) constant = gtorch_impl_new_number (0.5 * log (2 * G_PI));

      loss = added (loss, constant, error);
    }
  return gtorch_loss_reduce (loss, reduction, error);
}

static gboolean
check_classes (GTorchImpl *self, GTorchImpl *target, GTorchImpl *weight, GError **error)
{
  const guint n = self->n_dims;
  const gboolean fits = n == 2 ? gtorch_same_shape (self->shape, 1, target->shape, target->n_dims)
                               : n == 1 && target->n_dims <= 1 && target->numel == 1;

  if (!fits || self->shape[n - 1] == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("multi_margin_loss: scores %s with targets %s: they must be [N, C] with [N], "
                      "or [C] with one, and C not 0"),
                   gtorch_impl_shape_str (self), gtorch_impl_shape_str (target));
      return FALSE;
    }
  if (weight != NULL && !gtorch_same_shape (self->shape + n - 1, 1, weight->shape, weight->n_dims))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("multi_margin_loss: weights of shape %s for %" PRId64 " classes"),
                   gtorch_impl_shape_str (weight), self->shape[n - 1]);
      return FALSE;
    }
  return TRUE;
}

GTorchImpl *
gtorch_composite_multi_margin_loss (GTorchImpl *self, GTorchImpl *target, gint64 p, gdouble margin,
                                    GTorchImpl *weight, GTorchReduction reduction, GError **error)
{
  const gint64 last = -1;
  g_autoptr (GTorchImpl) labels = NULL;
  g_autoptr (GTorchImpl) own = NULL;
  g_autoptr (GTorchImpl) classes = NULL;
  g_autoptr (GTorchImpl) others = NULL;
  g_autoptr (GTorchImpl) excess = NULL;
  g_autoptr (GTorchImpl) part = NULL;
  g_autoptr (GTorchImpl) one = gtorch_impl_new_int (1);
  g_autoptr (GTorchImpl) zero = gtorch_impl_new_int (0);
  GTorchImpl *loss;

  if (!gtorch_loss_check_reduction ("multi_margin_loss", reduction, error)
      || !check_classes (self, target, weight, error))
    return NULL;
  if (p != 1 && p != 2)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("multi_margin_loss: p is %" PRId64 ", it must be 1 or 2"), p);
      return NULL;
    }
  labels = self->n_dims == 1 ? gtorch_op_reshape (target, (const gint64[]){ 1 }, 1, error)
                             : gtorch_op_unsqueeze (target, -1, error);
  own = labels != NULL ? gtorch_op_gather (self, -1, labels, error) : NULL;
  classes = own != NULL ? gtorch_op_arange_int (0, self->shape[self->n_dims - 1], 1,
                                                GTORCH_DTYPE_INT64, self->device, error)
                        : NULL;
  others = classes != NULL ? gtorch_op_ne (classes, labels, error) : NULL;
  /* margin - 1 · (own - self), at least 0 */
  excess = others != NULL ? gtorch_op_margin_ranking (own, self, one, margin, error) : NULL;
  if (excess != NULL)
    {
      /* relu changes no value: as in PyTorch, 0 has the gradient 0 */
      GTorchImpl *power =
          p == 2 ? gtorch_op_square (excess, error) : gtorch_op_relu (excess, error);

      gtorch_impl_unref (excess);
      excess = power;
    }
  part = excess != NULL ? gtorch_op_where (others, excess, zero, error) : NULL;
  loss = part != NULL ? gtorch_op_mean (part, &last, 1, FALSE, GTORCH_DTYPE_NONE, error) : NULL;
  if (loss != NULL && weight != NULL)
    {
      g_autoptr (GTorchImpl) factor = gtorch_op_take (weight, target, error);
      g_autoptr (GTorchImpl) shaped =
          factor != NULL ? gtorch_op_reshape (factor, loss->shape, loss->n_dims, error) : NULL;
      GTorchImpl *weighed = shaped != NULL ? gtorch_op_mul (loss, shaped, error) : NULL;

      gtorch_impl_unref (loss);
      loss = weighed;
    }
  return gtorch_loss_reduce (loss, reduction, error);
}

/* Finds the labels of each example: `valid` tells which numbers of target are before the first negative one,
 * `places` has 0 for the others, and `other` tells which classes are no labels. */
static gboolean
find_labels (GTorchImpl *target, GTorchImpl **valid, GTorchImpl **places, GTorchImpl **other,
             GError **error)
{
  g_autoptr (GTorchImpl) zero = gtorch_impl_new_int (0);
  g_autoptr (GTorchImpl) least = NULL;
  g_autoptr (GTorchImpl) positions = NULL;
  g_autoptr (GTorchImpl) none = NULL;
  g_autoptr (GTorchImpl) ones = NULL;
  g_autoptr (GTorchImpl) counts = NULL;

  return gtorch_op_cummin (target, -1, &least, &positions, error)
         && (*valid = gtorch_op_ge (least, zero, error)) != NULL
         && (*places = gtorch_op_where (*valid, target, zero, error)) != NULL
         && (none = gtorch_op_zeros_like (target, GTORCH_DTYPE_INT64, error)) != NULL
         && (ones = gtorch_op_to_dtype (*valid, GTORCH_DTYPE_INT64, error)) != NULL
         && (counts = gtorch_op_scatter_add (none, -1, *places, ones, error)) != NULL
         && (*other = gtorch_op_eq (counts, zero, error)) != NULL;
}

/* Returns 1 - label + class, at least 0, for each label, a row, and each class, a column. What does not
 * count is an infinite number, from which 0 follows. */
static GTorchImpl *
label_margins (GTorchImpl *self, GTorchImpl *target, GError **error)
{
  g_autoptr (GTorchImpl) infinite = gtorch_impl_new_number (INFINITY);
  g_autoptr (GTorchImpl) lowest = gtorch_impl_new_number (-INFINITY);
  g_autoptr (GTorchImpl) valid = NULL;
  g_autoptr (GTorchImpl) places = NULL;
  g_autoptr (GTorchImpl) other = NULL;
  g_autoptr (GTorchImpl) label = NULL;
  g_autoptr (GTorchImpl) rows = NULL;
  g_autoptr (GTorchImpl) columns = NULL;
  g_autoptr (GTorchImpl) labels = NULL;
  g_autoptr (GTorchImpl) classes = NULL;

  if (!find_labels (target, &valid, &places, &other, error)
      || (label = gtorch_op_gather (self, -1, places, error)) == NULL
      || (labels = gtorch_op_where (valid, label, infinite, error)) == NULL
      || (classes = gtorch_op_where (other, self, lowest, error)) == NULL
      || (rows = gtorch_op_unsqueeze (labels, -1, error)) == NULL
      || (columns = gtorch_op_unsqueeze (classes, -2, error)) == NULL)
    return NULL;
  return gtorch_op_label_margin (columns, rows, error);
}

GTorchImpl *
gtorch_composite_multilabel_margin_loss (GTorchImpl *self, GTorchImpl *target,
                                         GTorchReduction reduction, GError **error)
{
  const gint64 pairs[] = { -2, -1 };
  g_autoptr (GTorchImpl) excess = NULL;
  g_autoptr (GTorchImpl) sum = NULL;
  g_autoptr (GTorchImpl) n_classes = NULL;

  if (!gtorch_loss_check_reduction ("multilabel_margin_loss", reduction, error))
    return NULL;
  if (self->n_dims < 1 || self->n_dims > 2 || self->shape[self->n_dims - 1] == 0
      || !gtorch_same_shape (self->shape, self->n_dims, target->shape, target->n_dims))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("multilabel_margin_loss: scores %s with targets %s: both must be [N, C], or "
                      "both [C], and C not 0"),
                   gtorch_impl_shape_str (self), gtorch_impl_shape_str (target));
      return NULL;
    }
  excess = label_margins (self, target, error);
  sum = excess != NULL ? gtorch_op_sum (excess, pairs, 2, FALSE, GTORCH_DTYPE_NONE, error) : NULL;
  n_classes = gtorch_impl_new_int (self->shape[self->n_dims - 1]);
  return sum != NULL ? gtorch_loss_reduce (gtorch_op_div (sum, n_classes, error), reduction, error)
                     : NULL;
}

GTorchImpl *
gtorch_op_multilabel_soft_margin_loss (GTorchImpl *self, GTorchImpl *target, GTorchImpl *weight,
                                       GTorchReduction reduction, GError **error)
{
  const gint64 last = -1;
  g_autoptr (GTorchImpl) weighed = NULL;

  if (!gtorch_loss_check_reduction ("multilabel_soft_margin_loss", reduction, error))
    return NULL;
  weighed = gtorch_op_bce_with_logits (self, target, error);
  if (weighed != NULL && weight != NULL)
    {
      GTorchImpl *product = gtorch_op_mul (weighed, weight, error);

      gtorch_impl_unref (weighed);
      weighed = product;
    }
  return weighed != NULL ? gtorch_loss_reduce (gtorch_op_mean (weighed, &last, 1, FALSE,
                                                               GTORCH_DTYPE_NONE, error),
                                               reduction, error)
                         : NULL;
}

GTorchImpl *
gtorch_composite_triplet_margin_loss (GTorchImpl *anchor, GTorchImpl *positive,
                                      GTorchImpl *negative, gdouble margin, gdouble p, gdouble eps,
                                      gboolean swap, GTorchReduction reduction, GError **error)
{
  g_autoptr (GTorchImpl) near = NULL;
  g_autoptr (GTorchImpl) far = NULL;
  g_autoptr (GTorchImpl) one = gtorch_impl_new_int (1);

  if (!gtorch_loss_check_reduction ("triplet_margin_loss", reduction, error))
    return NULL;
  if (anchor->n_dims != positive->n_dims || anchor->n_dims != negative->n_dims)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("triplet_margin_loss: shapes %s, %s and %s must have equally many "
                      "dimensions"),
                   gtorch_impl_shape_str (anchor), gtorch_impl_shape_str (positive),
                   gtorch_impl_shape_str (negative));
      return NULL;
    }
  near = gtorch_op_pairwise_distance (anchor, positive, p, eps, FALSE, error);
  far = near != NULL ? gtorch_op_pairwise_distance (anchor, negative, p, eps, FALSE, error) : NULL;
  if (far != NULL && swap)
    {
      g_autoptr (GTorchImpl) other =
          gtorch_op_pairwise_distance (positive, negative, p, eps, FALSE, error);
      GTorchImpl *least = other != NULL ? gtorch_op_minimum (far, other, error) : NULL;

      gtorch_impl_unref (far);
      far = least;
    }
  /* margin - 1 · (far - near), at least 0 */
  return far != NULL ? gtorch_loss_reduce (gtorch_op_margin_ranking (far, near, one, margin, error),
                                           reduction, error)
                     : NULL;
}
