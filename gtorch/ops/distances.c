/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Distances between the rows of matrices. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "dispatch/gtorch-run-private.h"
#include "ops/gtorch-formula-private.h"
#include "gtorch-ops-private.h"

#define MOST_ROWS_COMPARED 25 /* as in PyTorch: with more rows, the distances come from products */

#define FEW_OTHERS 16 /* fewer do not fill vectors */

/* Tells whether the device computes the distances from all of the others at once, without a gradient. */
static gboolean
is_direct (GTorchImpl *x1, GTorchImpl *x2, gint64 n_others)
{
  GTorchImpl *inputs[] = { x1, x2 };

  return x1->n_dims == 2 && x2->n_dims == 2 && x1->dtype == x2->dtype
         && (x1->dtype == GTORCH_DTYPE_FLOAT32 || x1->dtype == GTORCH_DTYPE_FLOAT64)
         && gtorch_impl_device (x1) == gtorch_impl_device (x2) && n_others >= FEW_OTHERS
         && gtorch_impl_has_op (x1, GTORCH_OP_PAIR_DISTANCES)
         && !gtorch_autograd_wanted (inputs, 2);
}

gboolean
gtorch_shape_pair_distances (GTorchOpCall *call, GError **error)
{
  const gint64 n = call->inputs[0]->shape[0], pairs = n / 2 * (n - 1 + n % 2);
  const gint64 shape[2] = { call->inputs[1] != NULL ? n : pairs,
                            call->inputs[1] != NULL ? call->inputs[1]->shape[0] : 1 };

  call->compute = call->inputs[0]->dtype;
  return gtorch_shape_check (call->op->name, shape, 2, call->compute, error)
         && gtorch_call_set_output (call, 0, call->compute, shape, call->inputs[1] != NULL ? 2 : 1,
                                    error);
}

static gboolean
uses_products (gint64 n_rows, gint64 n_others, gdouble p, GTorchCdistMode mode)
{
  if (p != 2 || mode == GTORCH_CDIST_MODE_DONOT_USE_MM_FOR_EUCLID_DIST)
    return FALSE;
  return mode == GTORCH_CDIST_MODE_USE_MM_FOR_EUCLID_DIST || n_rows > MOST_ROWS_COMPARED
         || n_others > MOST_ROWS_COMPARED;
}

/* |a|^2 + |b|^2 - 2 a b, which may be below zero by rounding. Where it is not above zero, the distance and
 * its derivative are zero: the root is taken of 1, and filled. */
static GTorchImpl *
distances_by_products (GTorchImpl *x1, GTorchImpl *x2, GError **error)
{
  const gint64 last = -1;
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *rows, *columns, *squares, *products, *is_zero, *zero, *one;

  rows = GTORCH_FORMULA_OP (&f, square, x1);
  rows = GTORCH_FORMULA_OP (&f, sum, rows, &last, 1, TRUE, GTORCH_DTYPE_NONE);
  columns = GTORCH_FORMULA_OP (&f, square, x2);
  columns = GTORCH_FORMULA_OP (&f, sum, columns, &last, 1, TRUE, GTORCH_DTYPE_NONE);
  columns = GTORCH_FORMULA_OP (&f, transpose, columns, -1, -2);
  squares = GTORCH_FORMULA_OP (&f, add, rows, columns, 1);
  columns = GTORCH_FORMULA_OP (&f, transpose, x2, -1, -2);
  products = GTORCH_FORMULA_OP (&f, matmul, x1, columns);
  squares = GTORCH_FORMULA_OP (&f, sub, squares, products, 2);
  zero = gtorch_formula_number (&f, 0);
  one = gtorch_formula_number (&f, 1);
  is_zero = GTORCH_FORMULA_OP (&f, le, squares, zero);
  squares = GTORCH_FORMULA_OP (&f, masked_fill, squares, is_zero, one);
  squares = GTORCH_FORMULA_OP (&f, sqrt, squares);
  squares = GTORCH_FORMULA_OP (&f, masked_fill, squares, is_zero, zero);
  return gtorch_formula_take (&f, squares);
}

static GTorchImpl *
distances_by_differences (GTorchImpl *x1, GTorchImpl *x2, gdouble p, GError **error)
{
  const gint64 last = -1;
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *rows, *others, *differences;

  rows = GTORCH_FORMULA_OP (&f, unsqueeze, x1, -2);
  others = GTORCH_FORMULA_OP (&f, unsqueeze, x2, -3);
  differences = GTORCH_FORMULA_OP (&f, sub, rows, others, 1);
  if (!f.failed && differences->shape[differences->n_dims - 1] == 0)
    p = 2; /* rows without elements have the distance 0 by any norm */
  differences = GTORCH_FORMULA_OP (&f, norm, differences, p, &last, 1, FALSE);
  return gtorch_formula_take (&f, differences);
}

GTorchImpl *
gtorch_composite_cdist (GTorchImpl *x1, GTorchImpl *x2, gdouble p, GTorchCdistMode compute_mode,
                        GError **error)
{
  if (x1->n_dims < 2 || x2->n_dims < 2 || x1->shape[x1->n_dims - 1] != x2->shape[x2->n_dims - 1])
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("cdist: shapes %s and %s must have at least two dimensions, and as many "
                      "columns"),
                   gtorch_impl_shape_str (x1), gtorch_impl_shape_str (x2));
      return NULL;
    }
  if (compute_mode > GTORCH_CDIST_MODE_DONOT_USE_MM_FOR_EUCLID_DIST)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: %u is no %s"), "cdist",
                   compute_mode, "GTorchCdistMode");
      return NULL;
    }
  if (uses_products (x1->shape[x1->n_dims - 2], x2->shape[x2->n_dims - 2], p, compute_mode))
    return distances_by_products (x1, x2, error);
  if (is_direct (x1, x2, x2->shape[x2->n_dims - 2]))
    return gtorch_op_pair_distances (x1, x2, p, error);
  return distances_by_differences (x1, x2, p, error);
}

GTorchImpl *
gtorch_composite_pdist (GTorchImpl *self, gdouble p, GError **error)
{
  const gint64 last = -1;
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *pairs, *first, *second, *distances;

  if (self->n_dims != 2)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("pdist: shape %s must have 2 dimensions"), gtorch_impl_shape_str (self));
      return NULL;
    }
  if (is_direct (self, self, self->shape[0]))
    return gtorch_op_pair_distances (self, NULL, p, error);
  pairs = GTORCH_FORMULA_OP (&f, triu_indices, self->shape[0], self->shape[0], 1,
                             gtorch_impl_device (self));
  first = GTORCH_FORMULA_OP (&f, select, pairs, 0, 0);
  second = GTORCH_FORMULA_OP (&f, select, pairs, 0, 1);
  first = GTORCH_FORMULA_OP (&f, index_select, self, 0, first);
  second = GTORCH_FORMULA_OP (&f, index_select, self, 0, second);
  distances = GTORCH_FORMULA_OP (&f, sub, first, second, 1);
  if (self->shape[1] == 0)
    p = 2; /* rows without elements have the distance 0 by any norm */
  distances = GTORCH_FORMULA_OP (&f, norm, distances, p, &last, 1, FALSE);
  return gtorch_formula_take (&f, distances);
}
