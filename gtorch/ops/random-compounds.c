/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Distributions that are functions of uniform and normal numbers, and forms of dropout. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "base/gtorch-dtype-private.h"
#include "ops/gtorch-formula-private.h"
#include "ops/gtorch-host-private.h"
#include "ops/gtorch-op-parts-private.h"

/* Returns a tensor of the shape of self and of the dtype in which its numbers are computed. */
static GTorchImpl *
working_copy (GTorchImpl *self, GError **error)
{
  gboolean is_real = gtorch_dtype_kind (self->dtype) == GTORCH_KIND_FLOAT;

  return gtorch_op_empty_like (self,
                               is_real ? gtorch_dtype_infos[self->dtype].compute
                                       : GTORCH_DTYPE_FLOAT64,
                               error);
}

/* Fails if the result could not hold the numbers; a check for all distributions here. */
static gboolean
check_floating (const gchar *op, GTorchImpl *self, GError **error)
{
  if (gtorch_dtype_kind (self->dtype) == GTORCH_KIND_FLOAT)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
               _ ("%s: dtype %s is not one of floating-point numbers"), op,
               gtorch_dtype_get_name (self->dtype));
  return FALSE;
}

/* Returns numbers from [0, 1). */
static GTorchImpl *
uniform_for (GTorchImpl *self, GTorchGenerator *generator, GError **error)
{
  g_autoptr (GTorchImpl) made = working_copy (self, error);

  if (made == NULL || !gtorch_op_uniform_inplace (made, 0, 1, generator, error))
    return NULL;
  return g_steal_pointer (&made);
}

/* Returns numbers from (0, 1]. */
static GTorchImpl *
positive_uniform (GTorchImpl *self, GTorchGenerator *generator, GError **error)
{
  g_autoptr (GTorchImpl) made = uniform_for (self, generator, error);
  g_autoptr (GTorchImpl) one = gtorch_impl_new_number (1);

  if (made == NULL || !gtorch_op_neg_inplace (made, error)
      || !gtorch_op_add_inplace (made, one, 1, error))
    return NULL;
  return g_steal_pointer (&made);
}

GTorchImpl *
gtorch_composite_geometric (GTorchImpl *self, gdouble p, GTorchGenerator *generator, GError **error)
{
  g_autoptr (GTorchImpl) made = NULL;

  if (p == 1)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("geometric: p is 1, and must be less"));
      return NULL;
    }
  if ((gtorch_dtype_kind (self->dtype) != GTORCH_KIND_INT
       && !check_floating ("geometric", self, error))
      || (made = uniform_for (self, generator, error)) == NULL
      || !gtorch_op_geometric_of_inplace (made, 1 / log1p (-p), error))
    return NULL;
  return gtorch_op_to_dtype (made, self->dtype, error);
}

/* The tangent of an angle between -pi / 2 and pi / 2. */
GTorchImpl *
gtorch_composite_cauchy (GTorchImpl *self, gdouble median, gdouble sigma,
                         GTorchGenerator *generator, GError **error)
{
  g_autoptr (GTorchImpl) made = NULL;

  if (!check_floating ("cauchy", self, error)
      || (made = uniform_for (self, generator, error)) == NULL
      || !gtorch_op_cauchy_of_inplace (made, median, sigma, error))
    return NULL;
  return gtorch_op_to_dtype (made, self->dtype, error);
}

/* Returns the numbers in double, in which the distributions of counts are computed: those of float would make
 * counts of large means, and rare ones, wrong. */
static GTorchImpl *
in_double (const gchar *op, const gchar *what, GTorchImpl *self, GError **error)
{
  if (!check_floating (op, self, error)
      || !gtorch_impl_check_not_negative (op, what, self, FALSE, error))
    return NULL;
  return gtorch_op_to_dtype (self, GTORCH_DTYPE_FLOAT64, error);
}

GTorchImpl *
gtorch_op_poisson (GTorchImpl *self, GTorchGenerator *generator, GError **error)
{
  g_autoptr (GTorchImpl) rate = in_double ("poisson", N_ ("means"), self, error);
  g_autoptr (GTorchImpl) uniform = rate != NULL ? uniform_for (rate, generator, error) : NULL;
  g_autoptr (GTorchImpl) made =
      uniform != NULL ? gtorch_op_poisson_of (rate, uniform, error) : NULL;

  return made != NULL ? gtorch_op_to_dtype (made, self->dtype, error) : NULL;
}

GTorchImpl *
gtorch_op_binomial (GTorchImpl *count, GTorchImpl *prob, GTorchGenerator *generator, GError **error)
{
  g_autoptr (GTorchImpl) counts = NULL;
  g_autoptr (GTorchImpl) probs = NULL;
  g_autoptr (GTorchImpl) both = NULL;
  g_autoptr (GTorchImpl) uniform = NULL;
  g_autoptr (GTorchImpl) made = NULL;

  if (count->dtype != prob->dtype)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("binomial: counts of %s and probabilities of %s: both must have one dtype"),
                   gtorch_dtype_get_name (count->dtype), gtorch_dtype_get_name (prob->dtype));
      return NULL;
    }
  counts = in_double ("binomial", N_ ("counts"), count, error);
  probs = counts != NULL ? in_double ("binomial", N_ ("probabilities"), prob, error) : NULL;
  both = probs != NULL ? gtorch_op_add (counts, probs, 1, error) : NULL;
  uniform = both != NULL ? uniform_for (both, generator, error) : NULL;
  made = uniform != NULL ? gtorch_op_binomial_of (counts, probs, uniform, error) : NULL;
  return made != NULL ? gtorch_op_to_dtype (made, count->dtype, error) : NULL;
}

GTorchImpl *
gtorch_composite_log_normal (GTorchImpl *self, gdouble mean, gdouble std,
                             GTorchGenerator *generator, GError **error)
{
  g_autoptr (GTorchImpl) made = NULL;

  if (!check_floating ("log_normal", self, error) || (made = working_copy (self, error)) == NULL
      || !gtorch_op_normal_inplace (made, mean, std, generator, error)
      || !gtorch_op_exp_inplace (made, error))
    return NULL;
  return gtorch_op_to_dtype (made, self->dtype, error);
}

/* Writes a drawn tensor, which is consumed, to self. */
static gboolean
write_to (GTorchImpl *self, GTorchImpl *drawn, GError **error)
{
  g_autoptr (GTorchImpl) made = drawn;

  return made != NULL && gtorch_op_copy_inplace (self, made, FALSE, error);
}

gboolean
gtorch_op_geometric_inplace (GTorchImpl *self, gdouble p, GTorchGenerator *generator,
                             GError **error)
{
  return write_to (self, gtorch_op_geometric (self, p, generator, error), error);
}

gboolean
gtorch_op_cauchy_inplace (GTorchImpl *self, gdouble median, gdouble sigma,
                          GTorchGenerator *generator, GError **error)
{
  return write_to (self, gtorch_op_cauchy (self, median, sigma, generator, error), error);
}

gboolean
gtorch_op_log_normal_inplace (GTorchImpl *self, gdouble mean, gdouble std,
                              GTorchGenerator *generator, GError **error)
{
  return write_to (self, gtorch_op_log_normal (self, mean, std, generator, error), error);
}

/* --- dropout --- */

static gboolean
check_droppable (const gchar *op, GTorchImpl *self, GError **error)
{
  return gtorch_dtype_kind (self->dtype) == GTORCH_KIND_COMPLEX || check_floating (op, self, error);
}

/* Draws 1 with probability 1 - p, else 0: for each element, or for each index of the first n dimensions.
 * Complex numbers have real masks. */
static GTorchImpl *
draw_mask (GTorchImpl *self, guint n, gdouble p, GTorchGenerator *generator, GError **error)
{
  gint64 shape[GTORCH_MAX_DIMS];
  g_autoptr (GTorchImpl) mask = NULL;
  guint i;

  for (i = 0; i < self->n_dims; i++)
    shape[i] = i < n ? self->shape[i] : 1;
  mask = gtorch_op_empty (shape, self->n_dims, gtorch_dtype_infos[self->dtype].real,
                          gtorch_impl_device (self), error);
  if (mask == NULL || !gtorch_op_bernoulli_p_inplace (mask, 1 - p, generator, error))
    return NULL;
  return g_steal_pointer (&mask);
}

/* Sets channels to 0. There are n_batch dimensions before that of the channels. */
static GTorchImpl *
drop_channels (const gchar *op, GTorchImpl *self, guint n_batch, gdouble p, gboolean training,
               GTorchGenerator *generator, GError **error)
{
  g_autoptr (GTorchImpl) mask = NULL;
  g_autoptr (GTorchImpl) scale = gtorch_impl_new_number (p < 1 ? 1 / (1 - p) : 0);

  if (!training || p == 0)
    return gtorch_impl_itself (self, error);
  if (!check_droppable (op, self, error))
    return NULL;
  if ((mask = draw_mask (self, n_batch + 1, p, generator, error)) == NULL
      || !gtorch_op_mul_inplace (mask, scale, error))
    return NULL;
  return gtorch_op_mul (self, mask, error);
}

static gboolean
check_dims (const gchar *op, GTorchImpl *self, guint least, GError **error)
{
  if (self->n_dims == least || self->n_dims == least + 1)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("%s: an input of shape %s must have %u or %u dimensions"), op,
               gtorch_impl_shape_str (self), least, least + 1);
  return FALSE;
}

GTorchImpl *
gtorch_composite_dropout1d (GTorchImpl *self, gdouble p, gboolean training,
                            GTorchGenerator *generator, GError **error)
{
  return check_dims ("dropout1d", self, 2, error)
             ? drop_channels ("dropout1d", self, self->n_dims - 2, p, training, generator, error)
             : NULL;
}

/* As in PyTorch, three dimensions are a batch of channels with one dimension. */
GTorchImpl *
gtorch_composite_dropout2d (GTorchImpl *self, gdouble p, gboolean training,
                            GTorchGenerator *generator, GError **error)
{
  return check_dims ("dropout2d", self, 3, error)
             ? drop_channels ("dropout2d", self, 1, p, training, generator, error)
             : NULL;
}

GTorchImpl *
gtorch_composite_dropout3d (GTorchImpl *self, gdouble p, gboolean training,
                            GTorchGenerator *generator, GError **error)
{
  return check_dims ("dropout3d", self, 4, error)
             ? drop_channels ("dropout3d", self, self->n_dims - 4, p, training, generator, error)
             : NULL;
}

/* With the mask m, of mean 1 - p, the result is a (x m + limit (1 - m) - limit p), where the limit is that
 * of selu for -inf; it has the mean and the variance of x if these are 0 and 1. */
static GTorchImpl *
drop_alpha (const gchar *op, GTorchImpl *self, guint n, gdouble p, gboolean training,
            GTorchGenerator *generator, GError **error)
{
  const gdouble limit = -1.7580993408473768600;
  const gdouble a = p < 1 ? 1 / sqrt ((limit * limit * p + 1) * (1 - p)) : 0;
  g_autoptr (GTorchImpl) mask = NULL;
  g_autoptr (GTorchImpl) shift = NULL;
  g_autoptr (GTorchImpl) factor = gtorch_impl_new_number (a);
  g_autoptr (GTorchImpl) slope = gtorch_impl_new_number (-limit * a);
  g_autoptr (GTorchImpl) offset = gtorch_impl_new_number (limit * a * (1 - p));
  g_autoptr (GTorchImpl) kept = NULL;

  if (!training || p == 0)
    return gtorch_impl_itself (self, error);
  if (!check_droppable (op, self, error))
    return NULL;
  if ((mask = draw_mask (self, n, p, generator, error)) == NULL
      || (shift = gtorch_op_mul (mask, slope, error)) == NULL
      || !gtorch_op_add_inplace (shift, offset, 1, error)
      || !gtorch_op_mul_inplace (mask, factor, error)
      || (kept = gtorch_op_mul (self, mask, error)) == NULL)
    return NULL;
  return gtorch_op_add (kept, shift, 1, error);
}

GTorchImpl *
gtorch_composite_alpha_dropout (GTorchImpl *self, gdouble p, gboolean training,
                                GTorchGenerator *generator, GError **error)
{
  return drop_alpha ("alpha_dropout", self, self->n_dims, p, training, generator, error);
}

GTorchImpl *
gtorch_composite_feature_alpha_dropout (GTorchImpl *self, gdouble p, gboolean training,
                                        GTorchGenerator *generator, GError **error)
{
  if (!training || p == 0)
    return gtorch_impl_itself (self, error);
  return self->n_dims >= 2
             ? drop_alpha ("feature_alpha_dropout", self, 2, p, training, generator, error)
             : (check_dims ("feature_alpha_dropout", self, 2, error), NULL);
}

/* Replaces what is one-hot for the softmax, whose gradient it keeps. */
static GTorchImpl *
harden (GTorchImpl *soft, gint64 dim, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *plain = gtorch_formula_keep (&f, gtorch_impl_alias (soft)), *places, *hard, *one;

  places = GTORCH_FORMULA_OP (&f, argmax, plain, &dim, 1, TRUE);
  hard = GTORCH_FORMULA_OP (&f, zeros_like, plain, GTORCH_DTYPE_NONE);
  one = GTORCH_FORMULA_OP (&f, ones_like, plain, GTORCH_DTYPE_NONE);
  if (f.failed || !gtorch_op_scatter_inplace (hard, dim, places, one, error))
    return NULL;
  hard = GTORCH_FORMULA_OP (&f, sub, hard, plain, 1);
  return gtorch_formula_take (&f, GTORCH_FORMULA_OP (&f, add, hard, soft, 1));
}

/* -log (e) of exponential numbers e are from the Gumbel distribution. */
GTorchImpl *
gtorch_composite_gumbel_softmax (GTorchImpl *logits, gdouble tau, gboolean hard, gdouble eps,
                                 gint64 dim, GTorchGenerator *generator, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *drawn, *temperature = gtorch_formula_number (&f, tau), *sum;

  if (eps != 1e-10)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("gumbel_softmax: eps is %g, and has no effect: only 1e-10 is accepted"), eps);
      return NULL;
    }
  if (!check_floating ("gumbel_softmax", logits, error))
    return NULL;
  drawn = gtorch_formula_keep (&f, positive_uniform (logits, generator, error));
  if (f.failed || !gtorch_op_log_inplace (drawn, error) || !gtorch_op_neg_inplace (drawn, error)
      || !gtorch_op_clamp_inplace (drawn, 1e-30, 1e30, error)
      || !gtorch_op_log_inplace (drawn, error) || !gtorch_op_neg_inplace (drawn, error))
    return NULL;
  drawn = GTORCH_FORMULA_OP (&f, to_dtype, drawn, logits->dtype);
  sum = GTORCH_FORMULA_OP (&f, add, logits, drawn, 1);
  sum = GTORCH_FORMULA_OP (&f, div, sum, temperature);
  sum = GTORCH_FORMULA_OP (&f, softmax, sum, dim, GTORCH_DTYPE_NONE);
  return f.failed || !hard ? gtorch_formula_take (&f, sum) : harden (sum, dim, error);
}
