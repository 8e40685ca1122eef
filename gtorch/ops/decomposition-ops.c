/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The public decompositions: QR, eigenvalues and singular values. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "dispatch/gtorch-grad-mode.h"
#include "base/gtorch-error-private.h"
#include "device/gtorch-device-private.h"
#include "ops/gtorch-linalg-private.h"
#include "tensor/gtorch-recorder-private.h"

#define OP(name, ...) GTORCH_FORMULA_OP (&f, name, __VA_ARGS__)

#define NOT_CONVERGED                                                               \
  _ ("not decomposed: the algorithm did not converge (status %d), as for a matrix " \
     "with NaN or infinity")

/* Returns unit matrices for the batch of `like`. */
static GTorchImpl *
identities (GTorchFormula *formula, const GTorchImpl *like, gint64 n)
{
  GTorchImpl *one = GTORCH_FORMULA_OP (formula, eye, n, n, like->dtype, gtorch_impl_device (like));

  one = formula->failed ? NULL : gtorch_matrices_expand (formula, one, 2, like);
  return GTORCH_FORMULA_OP (formula, clone, one);
}

/* Whether vectors are wanted for the gradient. */
static gboolean
is_recorded (GTorchImpl *a)
{
  return gtorch_autograd_wanted (&a, 1);
}

static gboolean
check_info (GTorchFormula *formula, const gchar *op, GTorchImpl *info)
{
  if (!formula->failed && !gtorch_matrices_check_info (op, info, NOT_CONVERGED, formula->error))
    formula->failed = TRUE;
  return !formula->failed;
}

static gboolean
check_square (GTorchFormula *formula, const gchar *op, const GTorchImpl *a)
{
  if (!formula->failed && !gtorch_matrices_check_square (op, a, formula->error))
    formula->failed = TRUE;
  return !formula->failed;
}

static gboolean
check_choice (const gchar *op, const gchar *what, guint choice, guint n, GError **error)
{
  if (choice < n)
    return TRUE;
  gtorch_matrices_fail (error, op, GTORCH_ERROR_INVALID, _ ("%u is no %s"), choice, what);
  return FALSE;
}

/* Hands over the results of a formula, or names the operation in its error. */
static gboolean
give (GTorchFormula *formula, const gchar *op, GTorchImpl **to[], GTorchImpl *const results[],
      guint n)
{
  guint i;

  if (formula->failed)
    {
      gtorch_error_set_op (formula->error, op);
      return FALSE;
    }
  for (i = 0; i < n; i++)
    gtorch_matrices_give (to[i], gtorch_impl_ref (results[i]));
  return TRUE;
}

/* --- QR --- */

GTorchImpl *
gtorch_matrices_qr (GTorchFormula *formula, const gchar *op, GTorchImpl *a, gboolean complete,
                    GTorchImpl **r)
{
  GTorchImpl *q = NULL, *its_r = NULL;
  guint n;

  if (formula->failed || !gtorch_matrices_check (op, a, formula->error))
    {
      formula->failed = TRUE;
      return NULL;
    }
  n = a->n_dims;
  if (complete && a->shape[n - 1] == 0)
    {
      *r = a;
      return identities (formula, a, a->shape[n - 2]);
    }
  if (!gtorch_op_qr_parts (a, complete, &q, &its_r, formula->error))
    formula->failed = TRUE;
  q = gtorch_formula_keep (formula, q);
  its_r = gtorch_formula_keep (formula, its_r);
  *r = GTORCH_FORMULA_OP (formula, triu, its_r, 0);
  return q;
}

static gboolean
qr (const gchar *op, GTorchImpl *a, guint mode, GTorchImpl **q, GTorchImpl **r, GError **error)
{
  static const gint64 nothing = 0;
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *results[2] = { 0 };

  if (!check_choice (op, "GTorchQrMode", mode, 3, error))
    return FALSE;
  results[0] = gtorch_matrices_qr (&f, op, a, mode == GTORCH_QR_MODE_COMPLETE, &results[1]);
  if (mode == GTORCH_QR_MODE_R && !f.failed)
    results[0] = OP (new_zeros, a, &nothing, 1, GTORCH_DTYPE_NONE);
  return give (&f, op, (GTorchImpl * *[]){ q, r }, results, 2);
}

gboolean
gtorch_op_linalg_qr (GTorchImpl *a, GTorchQrMode mode, GTorchImpl **q, GTorchImpl **r,
                     GError **error)
{
  return qr ("linalg_qr", a, mode, q, r, error);
}

gboolean
gtorch_op_qr (GTorchImpl *self, gboolean some, GTorchImpl **q, GTorchImpl **r, GError **error)
{
  return qr ("qr", self, some ? GTORCH_QR_MODE_REDUCED : GTORCH_QR_MODE_COMPLETE, q, r, error);
}

/* --- Hermitian matrices --- */

GTorchImpl *
gtorch_matrices_eigh (GTorchFormula *formula, const gchar *op, GTorchImpl *a, gboolean upper,
                      GTorchImpl **v)
{
  GTorchImpl *l = NULL, *its_v = NULL, *info = NULL;

  if (!check_square (formula, op, a))
    return NULL;
  if (!gtorch_op_eigh_parts (a, upper, v != NULL || is_recorded (a), &l, &its_v, &info,
                             formula->error))
    formula->failed = TRUE;
  l = gtorch_formula_keep (formula, l);
  its_v = gtorch_formula_keep (formula, its_v);
  info = gtorch_formula_keep (formula, info);
  if (!check_info (formula, op, info))
    return NULL;
  if (v != NULL)
    *v = its_v;
  return l;
}

gboolean
gtorch_op_linalg_eigh (GTorchImpl *a, GTorchUplo uplo, GTorchImpl **l, GTorchImpl **v,
                       GError **error)
{
  static const gchar *op = "linalg_eigh";
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *results[2] = { 0 };

  if (!check_choice (op, "GTorchUplo", uplo, 2, error))
    return FALSE;
  results[0] = gtorch_matrices_eigh (&f, op, a, uplo == GTORCH_UPLO_U, &results[1]);
  return give (&f, op, (GTorchImpl * *[]){ l, v }, results, 2);
}

GTorchImpl *
gtorch_op_linalg_eigvalsh (GTorchImpl *a, GTorchUplo uplo, GError **error)
{
  static const gchar *op = "linalg_eigvalsh";
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);

  if (!check_choice (op, "GTorchUplo", uplo, 2, error))
    return NULL;
  return gtorch_matrices_take (&f, op,
                               gtorch_matrices_eigh (&f, op, a, uplo == GTORCH_UPLO_U, NULL));
}

/* --- general matrices --- */

/* Computes on the CPU, where LAPACK is. The results are copies on every device: what the gradient needs can
 * not be changed. */
static GTorchImpl *
eig (GTorchFormula *formula, const gchar *op, GTorchImpl *a, GTorchImpl **v)
{
  GTorchDevice *device = gtorch_impl_device (a), *cpu = gtorch_device_cpu ();
  GTorchImpl *here, *l = NULL, *its_v = NULL, *info = NULL;

  if (!check_square (formula, op, a))
    return NULL;
  here = GTORCH_FORMULA_OP (formula, to, a, GTORCH_DTYPE_NONE, cpu, FALSE, FALSE);
  if (formula->failed
      || !gtorch_op_eig_parts (here, v != NULL || is_recorded (here), &l, &its_v, &info,
                               formula->error))
    formula->failed = TRUE;
  l = gtorch_formula_keep (formula, l);
  its_v = gtorch_formula_keep (formula, its_v);
  info = gtorch_formula_keep (formula, info);
  if (!check_info (formula, op, info))
    return NULL;
  if (v != NULL)
    *v = GTORCH_FORMULA_OP (formula, to, its_v, GTORCH_DTYPE_NONE, device, FALSE, TRUE);
  return GTORCH_FORMULA_OP (formula, to, l, GTORCH_DTYPE_NONE, device, FALSE, TRUE);
}

gboolean
gtorch_op_linalg_eig (GTorchImpl *a, GTorchImpl **l, GTorchImpl **v, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *results[2] = { 0 };

  results[0] = eig (&f, "linalg_eig", a, &results[1]);
  return give (&f, "linalg_eig", (GTorchImpl * *[]){ l, v }, results, 2);
}

GTorchImpl *
gtorch_op_linalg_eigvals (GTorchImpl *a, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);

  return gtorch_matrices_take (&f, "linalg_eigvals", eig (&f, "linalg_eigvals", a, NULL));
}

/* --- singular values --- */

GTorchImpl *
gtorch_matrices_svd (GTorchFormula *formula, const gchar *op, GTorchImpl *a, gboolean full,
                     GTorchImpl **u, GTorchImpl **vh)
{
  GTorchImpl *its_u = NULL, *s = NULL, *its_vh = NULL, *info = NULL;
  guint n;

  if (formula->failed || !gtorch_matrices_check (op, a, formula->error))
    {
      formula->failed = TRUE;
      return NULL;
    }
  if (!gtorch_op_svd_parts (a, full && a->numel > 0, u != NULL || is_recorded (a), &its_u, &s,
                            &its_vh, &info, formula->error))
    formula->failed = TRUE;
  its_u = gtorch_formula_keep (formula, its_u);
  s = gtorch_formula_keep (formula, s);
  its_vh = gtorch_formula_keep (formula, its_vh);
  info = gtorch_formula_keep (formula, info);
  if (!check_info (formula, op, info))
    return NULL;
  n = a->n_dims;
  if (full && u != NULL && a->numel == 0)
    {
      its_u = identities (formula, a, a->shape[n - 2]);
      its_vh = identities (formula, a, a->shape[n - 1]);
    }
  if (u != NULL)
    {
      *u = its_u;
      *vh = its_vh;
    }
  return s;
}

static gboolean
check_driver (const gchar *op, guint driver, GError **error)
{
  if (!check_choice (op, "GTorchSvdDriver", driver, 4, error))
    return FALSE;
  if (driver == GTORCH_SVD_DRIVER_AUTOMATIC)
    return TRUE;
  gtorch_matrices_fail (error, op, GTORCH_ERROR_NOT_SUPPORTED,
                        _ ("each device has one algorithm, and driver must not be given"));
  return FALSE;
}

gboolean
gtorch_op_linalg_svd (GTorchImpl *a, gboolean full_matrices, GTorchSvdDriver driver, GTorchImpl **u,
                      GTorchImpl **s, GTorchImpl **vh, GError **error)
{
  static const gchar *op = "linalg_svd";
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *results[3] = { 0 };

  if (!check_driver (op, driver, error))
    return FALSE;
  results[1] = gtorch_matrices_svd (&f, op, a, full_matrices, &results[0], &results[2]);
  return give (&f, op, (GTorchImpl * *[]){ u, s, vh }, results, 3);
}

GTorchImpl *
gtorch_op_linalg_svdvals (GTorchImpl *a, GTorchSvdDriver driver, GError **error)
{
  static const gchar *op = "linalg_svdvals";
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);

  if (!check_driver (op, driver, error))
    return NULL;
  return gtorch_matrices_take (&f, op, gtorch_matrices_svd (&f, op, a, FALSE, NULL, NULL));
}

gboolean
gtorch_op_svd (GTorchImpl *self, gboolean some, gboolean compute_uv, GTorchImpl **u, GTorchImpl **s,
               GTorchImpl **v, GError **error)
{
  static const gchar *op = "svd";
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *results[3] = { 0 }, *vh = NULL;
  gint64 shape[GTORCH_MAX_DIMS];
  const guint n = self->n_dims;

  results[1] = compute_uv ? gtorch_matrices_svd (&f, op, self, !some, &results[0], &vh)
                          : gtorch_matrices_svd (&f, op, self, FALSE, NULL, NULL);
  if (!f.failed && compute_uv)
    results[2] = gtorch_formula_adjoint (&f, vh);
  else if (!f.failed)
    {
      memcpy (shape, self->shape, n * sizeof (gint64));
      shape[n - 1] = shape[n - 2];
      results[0] = OP (new_zeros, self, shape, n, GTORCH_DTYPE_NONE);
      shape[n - 1] = shape[n - 2] = self->shape[n - 1];
      results[2] = OP (new_zeros, self, shape, n, GTORCH_DTYPE_NONE);
    }
  return give (&f, op, (GTorchImpl * *[]){ u, s, v }, results, 3);
}
