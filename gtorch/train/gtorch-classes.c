/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What the metrics of classification have in common: the predicted and the true classes of a batch. */

#include "config.h"

#include "train/gtorch-metric-private.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-none.h"
#include "ops/gtorch-formula-private.h"

#define OP(name, ...) GTORCH_FORMULA_OP (&f, name, __VA_ARGS__)

void
gtorch_classes_clear (GTorchClasses *classes)
{
  g_clear_pointer (&classes->predicted, gtorch_impl_unref);
  g_clear_pointer (&classes->target, gtorch_impl_unref);
  g_clear_pointer (&classes->hits, gtorch_impl_unref);
  g_clear_pointer (&classes->counted, gtorch_impl_unref);
  g_clear_pointer (&classes->is_nan, gtorch_impl_unref);
}

/* Are these scores, with the dimension of the classes behind that of the batch? For no batch it is the only
 * one. */
static gboolean
are_scores (const GTorchImpl *output, const GTorchImpl *target, guint *dim)
{
  *dim = target->n_dims > 0;
  return output->n_dims == target->n_dims + 1
         && memcmp (output->shape, target->shape, *dim * sizeof (gint64)) == 0
         && memcmp (output->shape + *dim + 1, target->shape + *dim,
                    (target->n_dims - *dim) * sizeof (gint64))
                == 0;
}

static gboolean
is_whole (const GTorchImpl *impl)
{
  return !gtorch_dtype_is_floating_point (impl->dtype) && !gtorch_dtype_is_complex (impl->dtype);
}

static gboolean
check (const gchar *op, const GTorchImpl *output, const GTorchImpl *target, gint64 n_classes,
       gint64 top_k, gboolean *scores, guint *dim, GError **error)
{
  g_autofree gchar *shape = g_strdup (gtorch_impl_shape_str (output));

  if (!gtorch_metric_check_devices (op, output, target, error))
    return FALSE;
  if (!is_whole (target))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("%s: targets must be classes, of an integer dtype, not %s"), op,
                   gtorch_dtype_get_name (target->dtype));
      return FALSE;
    }
  *scores = are_scores (output, target, dim);
  if (!*scores && !gtorch_impl_same_shape (output, target))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: outputs of shape %s do not fit targets of shape %s: scores have one "
                      "more dimension, the classes, behind the first, and classes have the same "
                      "shape"),
                   op, shape, gtorch_impl_shape_str (target));
      return FALSE;
    }
  if (*scores)
    {
      const gint64 found = output->shape[*dim];

      if (n_classes > 0 && found != n_classes)
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                     _ ("%s: outputs of shape %s have scores for %" PRId64
                        " classes, and there are %" PRId64),
                     op, shape, found, n_classes);
      else if (found < MAX (top_k, 1))
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                     _ ("%s: outputs of shape %s have scores for %" PRId64
                        " classes, fewer than the best %" PRId64),
                     op, shape, found, MAX (top_k, 1));
      else
        return TRUE;
      return FALSE;
    }
  if (top_k > 1)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("%s: the best %" PRId64 " need scores, and outputs of shape %s are as "
                    "many as targets"),
                 op, top_k, shape);
  else if (!is_whole (output))
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                 _ ("%s: outputs of the shape of the targets, %s, must be classes, of an integer "
                    "dtype, not %s"),
                 op, shape, gtorch_dtype_get_name (output->dtype));
  else
    return TRUE;
  return FALSE;
}

gboolean
gtorch_classes_find (GTorchClasses *classes, const gchar *op, GTorchImpl *output,
                     GTorchImpl *target, gint64 n_classes, gint64 top_k, gint64 ignore_index,
                     GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  const gint64 flat = -1;
  GTorchImpl *best, *wide, *hits, *whole, *counted = NULL, *greatest = NULL, *is_nan = NULL;
  gint64 at;
  gboolean scores;
  guint dim;

  if (!check (op, output, target, n_classes, top_k, &scores, &dim, error))
    return FALSE;
  at = dim;
  if (scores && top_k > 1)
    {
      GTorchImpl *values, *indices;

      if (!gtorch_op_topk (output, top_k, at, TRUE, FALSE, &values, &indices, error))
        return FALSE;
      greatest = gtorch_formula_keep (&f, values);
      greatest = OP (narrow, greatest, at, 0, 1);
      best = gtorch_formula_keep (&f, indices);
      wide = OP (unsqueeze, target, at);
      hits = OP (eq, best, wide);
      hits = OP (any, hits, &at, 1, FALSE);
    }
  else
    {
      best = output;
      if (scores && !gtorch_op_max_dim (output, at, FALSE, &greatest, &best, error))
        return FALSE;
      if (scores)
        {
          gtorch_formula_keep (&f, greatest);
          gtorch_formula_keep (&f, best);
        }
      hits = OP (eq, best, target);
      best = OP (to_dtype, best, GTORCH_DTYPE_INT64);
      best = OP (reshape, best, &flat, 1);
    }
  hits = OP (reshape, hits, &flat, 1);
  if (greatest != NULL && gtorch_dtype_is_floating_point (greatest->dtype))
    {
      is_nan = OP (isnan, greatest); /* where any score is NaN, the greatest is */
      is_nan = OP (reshape, is_nan, &flat, 1);
    }
  whole = OP (to_dtype, target, GTORCH_DTYPE_INT64);
  whole = OP (reshape, whole, &flat, 1);
  if (ignore_index != GTORCH_NONE)
    {
      GTorchImpl *ignored = gtorch_formula_keep (&f, gtorch_impl_new_int (ignore_index));

      counted = OP (ne, whole, ignored);
      hits = OP (logical_and, hits, counted);
    }
  if (f.failed)
    return FALSE;
  *classes = (GTorchClasses){
    scores && top_k > 1 ? NULL : gtorch_impl_ref (best),
    gtorch_impl_ref (whole),
    gtorch_impl_ref (hits),
    counted != NULL ? gtorch_impl_ref (counted) : NULL,
    is_nan != NULL ? gtorch_impl_ref (is_nan) : NULL,
    scores ? output->shape[dim] : n_classes,
  };
  return TRUE;
}

static GTorchImpl *
find_outside (GTorchFormula *f, GTorchImpl *classes, gint64 n)
{
  GTorchImpl *zero = gtorch_formula_keep (f, gtorch_impl_new_int (0));
  GTorchImpl *end = gtorch_formula_keep (f, gtorch_impl_new_int (n));
  GTorchImpl *below = GTORCH_FORMULA_OP (f, lt, classes, zero);
  GTorchImpl *beyond = GTORCH_FORMULA_OP (f, ge, classes, end);

  return GTORCH_FORMULA_OP (f, logical_or, below, beyond);
}

/* Takes cell 1 of one cell where a flag holds: an index that is out of range is what every device reports,
 * without a wait of the host. */
static gboolean
refuse_any (GTorchImpl *flags, GTorchImpl *counted, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  const gint64 one = 1;
  GTorchImpl *cell = gtorch_formula_keep (&f, gtorch_op_full (&one, 1, 0, GTORCH_DTYPE_BOOL,
                                                              gtorch_impl_device (flags), f.error));
  GTorchImpl *places;

  if (counted != NULL)
    flags = OP (logical_and, flags, counted);
  places = OP (to_dtype, flags, GTORCH_DTYPE_INT64);
  OP (index_select, cell, 0, places);
  return !f.failed;
}

gboolean
gtorch_classes_check (const GTorchClasses *classes, const gchar *op, GError **error)
{
  GError *local = NULL;
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (&local);
  gint code = GTORCH_ERROR_INVALID;

  if (classes->is_nan != NULL)
    refuse_any (classes->is_nan, classes->counted, &local);
  if (local == NULL && classes->n > 0)
    {
      GTorchImpl *outside = find_outside (&f, classes->target, classes->n);

      code = GTORCH_ERROR_INDEX;
      if (!f.failed)
        refuse_any (outside, classes->counted, &local);
    }
  if (local == NULL)
    return TRUE;
  if (g_error_matches (local, GTORCH_ERROR, GTORCH_ERROR_INDEX))
    {
      g_clear_error (&local);
      if (code == GTORCH_ERROR_INVALID)
        g_set_error (&local, GTORCH_ERROR, code,
                     _ ("%s: scores are NaN, which have no greatest one"), op);
      else
        g_set_error (&local, GTORCH_ERROR, code,
                     _ ("%s: a class is none of the %" PRId64 ", which begin with 0"), op,
                     classes->n);
    }
  g_propagate_error (error, local);
  return FALSE;
}

GTorchImpl *
gtorch_classes_inside (GTorchImpl *classes, gint64 n, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *zero = gtorch_formula_keep (&f, gtorch_impl_new_int (0));
  GTorchImpl *end = gtorch_formula_keep (&f, gtorch_impl_new_int (n));
  GTorchImpl *outside = gtorch_formula_keep (&f, gtorch_impl_new_int (-n * n - n));
  GTorchImpl *not_below = OP (ge, classes, zero);
  GTorchImpl *below = OP (lt, classes, end);
  GTorchImpl *is_inside = OP (logical_and, not_below, below);

  return gtorch_formula_take (&f, OP (where, is_inside, classes, outside));
}

gboolean
gtorch_classes_count (GTorchImpl *state, GTorchImpl *places, GTorchImpl *counted, GTorchImpl *hits,
                      const gchar *op, gint64 n_classes, GError **error)
{
  GError *local = NULL;
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (&local);
  GTorchImpl *ones;

  if (counted != NULL)
    {
      GTorchImpl *zero = gtorch_formula_keep (&f, gtorch_impl_new_int (0));

      places = OP (where, counted, places, zero);
    }
  if (counted != NULL && hits != NULL)
    hits = OP (logical_and, hits, counted);
  else if (hits == NULL)
    hits = counted;
  ones = hits != NULL ? OP (to_dtype, hits, GTORCH_DTYPE_INT64)
                      : OP (ones_like, places, GTORCH_DTYPE_INT64);
  if (!f.failed && gtorch_op_scatter_add_inplace (state, 0, places, ones, &local))
    return TRUE;
  if (g_error_matches (local, GTORCH_ERROR, GTORCH_ERROR_INDEX))
    {
      g_clear_error (&local);
      g_set_error (&local, GTORCH_ERROR, GTORCH_ERROR_INDEX,
                   _ ("%s: a class is none of the %" PRId64 ", which begin with 0"), op, n_classes);
    }
  g_propagate_error (error, local);
  return FALSE;
}

gboolean
gtorch_metric_check_classes (const gchar *op, gint64 n_classes, GError **error)
{
  if (n_classes >= 1 && n_classes <= G_MAXINT32)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: num_classes is %" PRId64 ", it must be from 1 to %d"), op, n_classes,
               G_MAXINT32);
  return FALSE;
}
