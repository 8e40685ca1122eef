/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "ops/gtorch-formula-private.h"

G_BEGIN_DECLS

/* What the public operations of linear algebra share (factor-ops.c). Errors begin with the name of the
 * operation. */

/* Hands over an output that the caller may not want. */
static inline void
gtorch_matrices_give (GTorchImpl **to, GTorchImpl *taken)
{
  if (to != NULL)
    *to = taken;
  else
    gtorch_impl_unref (taken);
}

/* Sets an error that begins with the name of the operation. */
void gtorch_matrices_fail (GError **error, const gchar *op, GTorchError code, const gchar *format,
                           ...) G_GNUC_PRINTF (4, 5);
/* Checks in a shape function that the input has matrices, or square ones, of a dtype of the operation. */
gboolean gtorch_matrices_check_call (GTorchOpCall *call, const GTorchImpl *self, gboolean square,
                                     GError **error);
/* Names the operation in an error of the formula, and returns a reference to the result. */
GTorchImpl *gtorch_matrices_take (GTorchFormula *formula, const gchar *op, GTorchImpl *result);
/* Returns whether the tensor has matrices of a dtype of linear algebra. */
gboolean gtorch_matrices_check (const gchar *op, const GTorchImpl *self, GError **error);
/* Returns the singular values in descending order; with u and vh, the singular vectors, too. */
GTorchImpl *gtorch_matrices_svd (GTorchFormula *formula, const gchar *op, GTorchImpl *a,
                                 gboolean full, GTorchImpl **u, GTorchImpl **vh);
/* Returns the eigenvalues of Hermitian matrices in ascending order; with v, the eigenvectors, too. */
GTorchImpl *gtorch_matrices_eigh (GTorchFormula *formula, const gchar *op, GTorchImpl *a,
                                  gboolean upper, GTorchImpl **v);
/* Returns Q of a reduced or complete QR factorization, and R. */
GTorchImpl *gtorch_matrices_qr (GTorchFormula *formula, const gchar *op, GTorchImpl *a,
                                gboolean complete, GTorchImpl **r);
/* Returns whether the tensor has square matrices. */
gboolean gtorch_matrices_check_square (const gchar *op, const GTorchImpl *self, GError **error);
/* Reads info on the host. Returns FALSE with an error that names the first matrix of the batch whose info
 * is not 0. `why` says what it means, and is a format of an integer: the info. */
gboolean gtorch_matrices_check_info (const gchar *op, GTorchImpl *info, const gchar *why,
                                     GError **error);
/* Expands the leading dimensions of both to their broadcast; NULL unless they can be. */
gboolean gtorch_matrices_broadcast (GTorchFormula *formula, const gchar *op, GTorchImpl **a,
                                    GTorchImpl **b);
/* Expands the leading dimensions of a tensor whose last n_own dimensions stay, to those of `like`, which
 * has two more. */
GTorchImpl *gtorch_matrices_expand (GTorchFormula *formula, GTorchImpl *x, guint n_own,
                                    const GTorchImpl *like);
/* Moves the rows of matrices to where they were before the exchanges of the pivots. */
GTorchImpl *gtorch_matrices_restore_rows (GTorchFormula *formula, GTorchImpl *x,
                                          GTorchImpl *pivots);
/* Returns whether b has vectors rather than matrices, as PyTorch decides it. */
gboolean gtorch_matrices_has_vectors (const GTorchImpl *a, const GTorchImpl *b);
/* Solves A X = B by a factorization of A, which is not recorded. Sets *info. */
GTorchImpl *gtorch_matrices_solve (GTorchFormula *formula, const gchar *op, GTorchImpl *a,
                                   GTorchImpl *b, GTorchImpl **info);

G_END_DECLS
