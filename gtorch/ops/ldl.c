/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The factors of symmetric and Hermitian matrices that need not be positive-definite, by which systems of
 * equations are solved. What a device cannot compute is computed on the CPU, where LAPACK is. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-error-private.h"
#include "ops/gtorch-linalg-private.h"

#define OP(name, ...) GTORCH_FORMULA_OP (f, name, __VA_ARGS__)

/* --- shapes --- */

gboolean
gtorch_shape_ldl_parts (GTorchOpCall *call, GError **error)
{
  GTorchImpl *a = call->inputs[0];

  return gtorch_matrices_check_call (call, a, TRUE, error)
         && gtorch_call_set_output (call, 0, a->dtype, a->shape, a->n_dims, error)
         && gtorch_call_set_output (call, 1, GTORCH_DTYPE_INT32, a->shape, a->n_dims - 1, error)
         && gtorch_call_set_output (call, 2, GTORCH_DTYPE_INT32, a->shape, a->n_dims - 2, error);
}

gboolean
gtorch_shape_ldl_solve_parts (GTorchOpCall *call, GError **error)
{
  GTorchImpl *ld = call->inputs[0], *pivots = call->inputs[1], *b = call->inputs[2];
  const guint n = ld->n_dims;

  if (!gtorch_matrices_check_call (call, ld, TRUE, error)
      || !gtorch_matrices_check_call (call, b, FALSE, error))
    return FALSE;
  if (ld->dtype != b->dtype || pivots->dtype != GTORCH_DTYPE_INT32)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_DTYPE,
                         _ ("dtypes %s and %s must be equal, and that of pivots int32, not %s"),
                         gtorch_dtype_get_name (ld->dtype), gtorch_dtype_get_name (b->dtype),
                         gtorch_dtype_get_name (pivots->dtype));
      return FALSE;
    }
  if (b->n_dims == n && memcmp (ld->shape, b->shape, (n - 1) * sizeof (gint64)) == 0
      && gtorch_same_shape (pivots->shape, pivots->n_dims, ld->shape, n - 1))
    return gtorch_call_set_output (call, 0, b->dtype, b->shape, b->n_dims, error);
  gtorch_call_error (call, error, GTORCH_ERROR_SHAPE, _ ("shapes %s, %s and %s do not match"),
                     gtorch_impl_shape_str (ld), gtorch_impl_shape_str (pivots),
                     gtorch_impl_shape_str (b));
  return FALSE;
}

/* --- factors --- */

static GTorchImpl *
on_cpu (GTorchFormula *f, GTorchImpl *x)
{
  return OP (to, x, GTORCH_DTYPE_NONE, gtorch_device_cpu (), FALSE, FALSE);
}

static GTorchImpl *
back (GTorchFormula *f, GTorchImpl *x, GTorchImpl *like)
{
  return OP (to, x, GTORCH_DTYPE_NONE, gtorch_impl_device (like), FALSE, FALSE);
}

/* Computes the parts where the matrices are, or on the CPU if that device does not factor them. */
static void
factor_somewhere (GTorchFormula *f, GTorchImpl *a, gboolean hermitian, GTorchImpl **found,
                  GError **error)
{
  g_autoptr (GError) reason = NULL;

  if (gtorch_op_ldl_parts (a, hermitian, &found[0], &found[1], &found[2], &reason))
    return;
  if (!g_error_matches (reason, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED)
      || gtorch_device_is_host (gtorch_impl_device (a)))
    {
      g_propagate_error (error, g_steal_pointer (&reason));
      f->failed = TRUE;
      return;
    }
  a = on_cpu (f, a);
  if (!f->failed && !gtorch_op_ldl_parts (a, hermitian, &found[0], &found[1], &found[2], error))
    f->failed = TRUE;
}

/* Computes LD, the pivots and the info. */
static gboolean
factor (const gchar *op, GTorchImpl *a, gboolean hermitian, gboolean checks,
        GTorchImpl **results[3], GError **error)
{
  g_auto (GTorchFormula) formula = GTORCH_FORMULA_INIT (error);
  GTorchFormula *f = &formula;
  GTorchImpl *found[3] = { NULL };

  if (!gtorch_matrices_check_square (op, a, error))
    return FALSE;
  factor_somewhere (f, a, hermitian, found, error);
  for (guint i = 0; i < 3; i++)
    found[i] = gtorch_formula_keep (f, found[i]);
  if (!f->failed && checks
      && !gtorch_matrices_check_info (op, found[2], _ ("singular: block %d of its factor D is 0"),
                                      error))
    return FALSE;
  found[0] = OP (tril, found[0], 0);
  for (guint i = 0; i < 3; i++)
    found[i] = back (f, found[i], a);
  if (f->failed)
    {
      gtorch_error_set_op (error, op);
      return FALSE;
    }
  for (guint i = 0; i < 3; i++)
    if (results[i] != NULL)
      *results[i] = gtorch_impl_ref (found[i]);
  return TRUE;
}

gboolean
gtorch_op_linalg_ldl_factor_ex (GTorchImpl *self, gboolean hermitian, gboolean check_errors,
                                GTorchImpl **ld, GTorchImpl **pivots, GTorchImpl **info,
                                GError **error)
{
  return factor ("linalg_ldl_factor_ex", self, hermitian, check_errors,
                 (GTorchImpl * *[]){ ld, pivots, info }, error);
}

gboolean
gtorch_op_linalg_ldl_factor (GTorchImpl *self, gboolean hermitian, GTorchImpl **ld,
                             GTorchImpl **pivots, GError **error)
{
  return factor ("linalg_ldl_factor", self, hermitian, TRUE, (GTorchImpl * *[]){ ld, pivots, NULL },
                 error);
}

/* --- solutions --- */

static gboolean
check_solve (const gchar *op, const GTorchImpl *ld, const GTorchImpl *pivots, const GTorchImpl *b,
             GError **error)
{
  const guint n = ld->n_dims;

  if (!gtorch_matrices_check_square (op, ld, error) || !gtorch_matrices_check (op, b, error))
    return FALSE;
  if (gtorch_dtype_kind (pivots->dtype) != GTORCH_KIND_INT)
    {
      gtorch_matrices_fail (error, op, GTORCH_ERROR_DTYPE, _ ("pivots must be integers, not %s"),
                            gtorch_dtype_get_name (pivots->dtype));
      return FALSE;
    }
  if (ld->dtype != b->dtype)
    {
      gtorch_matrices_fail (error, op, GTORCH_ERROR_DTYPE, _ ("dtypes %s and %s must be equal"),
                            gtorch_dtype_get_name (ld->dtype), gtorch_dtype_get_name (b->dtype));
      return FALSE;
    }
  if (!gtorch_same_shape (pivots->shape, pivots->n_dims, ld->shape, n - 1)
      || b->shape[b->n_dims - 2] != ld->shape[n - 1])
    {
      gtorch_matrices_fail (error, op, GTORCH_ERROR_SHAPE, _ ("shapes %s, %s and %s do not match"),
                            gtorch_impl_shape_str (ld), gtorch_impl_shape_str (pivots),
                            gtorch_impl_shape_str (b));
      return FALSE;
    }
  return TRUE;
}

GTorchImpl *
gtorch_op_linalg_ldl_solve (GTorchImpl *ld, GTorchImpl *pivots, GTorchImpl *b, gboolean hermitian,
                            GError **error)
{
  static const gchar *op = "linalg_ldl_solve";
  g_auto (GTorchFormula) formula = GTORCH_FORMULA_INIT (error);
  GTorchFormula *f = &formula;
  GTorchImpl *a = ld, *right = b, *order, *x;

  if (!check_solve (op, ld, pivots, b, error) || !gtorch_matrices_broadcast (f, op, &a, &right))
    return NULL;
  order = gtorch_matrices_expand (f, pivots, 1, right);
  a = on_cpu (f, a);
  right = on_cpu (f, right);
  order = OP (to, order, GTORCH_DTYPE_INT32, gtorch_device_cpu (), FALSE, FALSE);
  x = OP (ldl_solve_parts, a, order, right, hermitian);
  return gtorch_matrices_take (f, op, back (f, x, b));
}
