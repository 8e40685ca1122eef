/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Systems of equations and inverses. A solution is computed by a factorization that is not
 * recorded: its gradient is another solution with the same factors. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "dispatch/gtorch-constants-private.h"
#include "base/gtorch-error-private.h"
#include "device/gtorch-choice-private.h"
#include "ops/gtorch-linalg-private.h"

#define OP(name, ...) GTORCH_FORMULA_OP (&f, name, __VA_ARGS__)

#define SINGULAR _ ("singular: diagonal element %d of its factor U is 0")

GTorchImpl *
gtorch_matrices_solve (GTorchFormula *formula, const gchar *op, GTorchImpl *a, GTorchImpl *b,
                       GTorchImpl **info)
{
  GTorchImpl *lu = NULL, *pivots = NULL, *its_info = NULL;
  GTorchChange mode;
  gboolean success;

  if (formula->failed)
    return NULL;
  gtorch_change_to_constants (&mode);
  success = gtorch_op_lu_parts (a, TRUE, &lu, &pivots, &its_info, formula->error);
  gtorch_change_end (&mode);
  if (!success)
    {
      formula->failed = TRUE;
      return NULL;
    }
  gtorch_formula_keep (formula, lu);
  gtorch_formula_keep (formula, pivots);
  *info = gtorch_formula_keep (formula, its_info);
  if (!gtorch_matrices_broadcast (formula, op, &a, &b))
    return NULL;
  lu = gtorch_matrices_expand (formula, lu, 2, a);
  pivots = gtorch_matrices_expand (formula, pivots, 1, a);
  return GTORCH_FORMULA_OP (formula, factored_solve, a, lu, pivots, b, FALSE);
}

gboolean
gtorch_matrices_has_vectors (const GTorchImpl *a, const GTorchImpl *b)
{
  return b->n_dims == 1
         || (b->n_dims + 1 == a->n_dims
             && memcmp (a->shape, b->shape, b->n_dims * sizeof (gint64)) == 0);
}

static GTorchImpl *
solve (const gchar *op, GTorchImpl *a, GTorchImpl *b, gboolean left, gboolean checks,
       GTorchImpl **info, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  static const gint64 last = -1;
  GTorchImpl *x = b, *its_info = NULL;
  gboolean is_vector;

  if (!gtorch_matrices_check_square (op, a, error))
    return NULL;
  is_vector = gtorch_matrices_has_vectors (a, b);
  if ((is_vector && !left) || b->n_dims == 0)
    {
      gtorch_matrices_fail (error, op, GTORCH_ERROR_SHAPE,
                            _ ("shapes %s and %s: B must have matrices, or vectors if left is "
                               "true"),
                            gtorch_shape_str (a->shape, a->n_dims), gtorch_impl_shape_str (b));
      return NULL;
    }
  if (is_vector)
    x = OP (unsqueeze, x, -1);
  if (!left)
    {
      a = OP (swap_matrix, a);
      x = OP (swap_matrix, x);
    }
  x = gtorch_matrices_solve (&f, op, a, x, &its_info);
  if (!left)
    x = OP (swap_matrix, x);
  if (is_vector)
    x = OP (squeeze, x, &last, 1);
  if (f.failed)
    return gtorch_matrices_take (&f, op, NULL);
  if (checks && !gtorch_matrices_check_info (op, its_info, SINGULAR, error))
    return NULL;
  if (info != NULL)
    *info = gtorch_impl_ref (its_info);
  return gtorch_formula_take (&f, x);
}

gboolean
gtorch_op_linalg_solve_ex (GTorchImpl *a, GTorchImpl *b, gboolean left, gboolean check_errors,
                           GTorchImpl **result, GTorchImpl **info, GError **error)
{
  g_autoptr (GTorchImpl) its_info = NULL;
  GTorchImpl *x = solve ("linalg_solve_ex", a, b, left, check_errors, &its_info, error);

  if (x == NULL)
    return FALSE;
  gtorch_matrices_give (result, x);
  gtorch_matrices_give (info, g_steal_pointer (&its_info));
  return TRUE;
}

GTorchImpl *
gtorch_op_linalg_solve (GTorchImpl *a, GTorchImpl *b, gboolean left, GError **error)
{
  return solve ("linalg_solve", a, b, left, TRUE, NULL, error);
}

static GTorchImpl *
invert (const gchar *op, GTorchImpl *a, gboolean checks, GTorchImpl **info, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *one, *x, *its_info = NULL;
  gint64 n;

  if (!gtorch_matrices_check_square (op, a, error))
    return NULL;
  n = a->shape[a->n_dims - 1];
  one = OP (eye, n, n, a->dtype, gtorch_impl_device (a));
  x = gtorch_matrices_solve (&f, op, a, one, &its_info);
  if (f.failed)
    return gtorch_matrices_take (&f, op, NULL);
  if (checks && !gtorch_matrices_check_info (op, its_info, SINGULAR, error))
    return NULL;
  if (info != NULL)
    *info = gtorch_impl_ref (its_info);
  return gtorch_formula_take (&f, x);
}

gboolean
gtorch_op_linalg_inv_ex (GTorchImpl *a, gboolean check_errors, GTorchImpl **inverse,
                         GTorchImpl **info, GError **error)
{
  g_autoptr (GTorchImpl) its_info = NULL;
  GTorchImpl *x = invert ("linalg_inv_ex", a, check_errors, &its_info, error);

  if (x == NULL)
    return FALSE;
  gtorch_matrices_give (inverse, x);
  gtorch_matrices_give (info, g_steal_pointer (&its_info));
  return TRUE;
}

GTorchImpl *
gtorch_op_linalg_inv (GTorchImpl *a, GError **error)
{
  return invert ("linalg_inv", a, TRUE, NULL, error);
}

/* --- tensors as maps --- */

static gint64
product (const gint64 *shape, guint n)
{
  gint64 result = 1;

  while (n > 0)
    result *= shape[--n];
  return result;
}

GTorchImpl *
gtorch_op_linalg_tensorinv (GTorchImpl *self, gint64 ind, GError **error)
{
  static const gchar *op = "linalg_tensorinv";
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  gint64 shape[GTORCH_MAX_DIMS], size[2];
  GTorchImpl *x = NULL;
  guint n = self->n_dims;

  if (ind <= 0)
    {
      gtorch_matrices_fail (error, op, GTORCH_ERROR_INVALID,
                            _ ("ind is %" PRId64 ", it must be greater than 0"), ind);
      return NULL;
    }
  size[0] = product (self->shape, MIN (ind, n));
  size[1] = ind < n ? product (self->shape + ind, n - ind) : 1;
  if (size[0] != size[1])
    {
      gtorch_matrices_fail (error, op, GTORCH_ERROR_SHAPE,
                            _ ("shape %s: the first %" PRId64
                               " dimensions and the others must have as many elements"),
                            gtorch_impl_shape_str (self), ind);
      return NULL;
    }
  memcpy (shape, self->shape + MIN (ind, n), (n - MIN (ind, n)) * sizeof (gint64));
  memcpy (shape + n - MIN (ind, n), self->shape, MIN (ind, n) * sizeof (gint64));
  x = OP (reshape, self, size, 2);
  x = gtorch_formula_keep (&f, f.failed ? NULL : invert (op, x, TRUE, NULL, error));
  return gtorch_matrices_take (&f, op, OP (reshape, x, shape, n));
}

GTorchImpl *
gtorch_op_linalg_tensorsolve (GTorchImpl *self, GTorchImpl *other, const gint64 *dims, gsize n_dims,
                              GError **error)
{
  static const gchar *op = "linalg_tensorsolve";
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  gint64 order[GTORCH_MAX_DIMS], size[2], all = -1;
  GTorchImpl *a = self, *b, *x;
  guint n = self->n_dims, kept = 0, i;
  guint64 mask = 0;

  if (n_dims > 0)
    {
      if (!gtorch_normalize_dims (op, dims, n_dims, n, &mask, error))
        return NULL;
      for (i = 0; i < n; i++)
        if ((mask >> i & 1) == 0)
          order[kept++] = i;
      for (i = 0; i < n_dims; i++)
        order[kept++] = dims[i] < 0 ? dims[i] + n : dims[i];
      a = OP (permute, self, order, n);
      if (f.failed)
        return gtorch_matrices_take (&f, op, NULL);
    }
  size[0] = other->numel;
  size[1] = n >= other->n_dims ? product (a->shape + other->n_dims, n - other->n_dims) : -1;
  if (n < other->n_dims || self->numel != size[0] * size[1] || size[0] != size[1])
    {
      gtorch_matrices_fail (error, op, GTORCH_ERROR_SHAPE,
                            _ ("shapes %s and %s: the dimensions of the first one without those of "
                               "the second must have as many elements as it"),
                            gtorch_shape_str (self->shape, n), gtorch_impl_shape_str (other));
      return NULL;
    }
  x = OP (reshape, a, size, 2);
  b = OP (reshape, other, &all, 1);
  x = gtorch_formula_keep (&f, f.failed ? NULL : solve (op, x, b, TRUE, TRUE, NULL, error));
  return gtorch_matrices_take (&f, op,
                               OP (reshape, x, a->shape + other->n_dims, n - other->n_dims));
}
