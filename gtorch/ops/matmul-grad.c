/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The gradients of matmul, composed of products. */

#include "config.h"

#include "gtorch-ops-private.h"

static GTorchImpl *
unsqueeze (GTorchImpl *impl, guint dim, GError **error)
{
  gint64 size[GTORCH_MAX_DIMS + 1];
  guint i;

  for (i = 0; i <= impl->n_dims; i++)
    size[i] = i < dim ? impl->shape[i] : (i == dim ? 1 : impl->shape[i - 1]);
  return gtorch_op_expand_reduced (impl, size, impl->n_dims + 1, (const gint64[]){ dim }, 1, FALSE,
                                   error);
}

static GTorchImpl *
adjoint (GTorchImpl *matrix, GError **error)
{
  g_autoptr (GTorchImpl) swapped = gtorch_op_swap_matrix (matrix, error);

  return swapped != NULL ? gtorch_op_conj (swapped, error) : NULL;
}

/* Sums the leading dimensions of the gradient of a vector: [..., 1, k] or [..., k, 1] becomes [k]. */
static GTorchImpl *
to_vector (GTorchImpl *matrix, gboolean column, GError **error)
{
  gint64 dims[GTORCH_MAX_DIMS];
  guint i, n = 0;

  for (i = 0; i < matrix->n_dims; i++)
    if (i != matrix->n_dims - (column ? 2 : 1))
      dims[n++] = i;
  return gtorch_op_sum (matrix, dims, n, FALSE, GTORCH_DTYPE_NONE, error);
}

GTorchImpl *
gtorch_op_matmul_grad_self (GTorchImpl *upper, GTorchImpl *other, const gint64 *size, gsize n_dims,
                            GError **error)
{
  g_autoptr (GTorchImpl) g = gtorch_impl_ref (upper);
  g_autoptr (GTorchImpl) b = gtorch_impl_ref (other);
  g_autoptr (GTorchImpl) b_adjoint = NULL;
  g_autoptr (GTorchImpl) product = NULL;

  if (other->n_dims == 1)
    {
      gtorch_impl_unref (b);
      b = unsqueeze (other, 1, error);
      gtorch_impl_unref (g);
      g = b != NULL ? unsqueeze (upper, upper->n_dims, error) : NULL;
      if (g == NULL)
        return NULL;
    }
  if (n_dims == 1)
    {
      GTorchImpl *row = unsqueeze (g, g->n_dims - 1, error);

      gtorch_impl_unref (g);
      g = row;
      if (g == NULL)
        return NULL;
    }
  b_adjoint = adjoint (b, error);
  product = b_adjoint != NULL ? gtorch_op_matmul (g, b_adjoint, error) : NULL;
  if (product == NULL)
    return NULL;
  return n_dims == 1 ? to_vector (product, FALSE, error) : g_steal_pointer (&product);
}

GTorchImpl *
gtorch_op_matmul_grad_other (GTorchImpl *upper, GTorchImpl *self, const gint64 *size, gsize n_dims,
                             GError **error)
{
  g_autoptr (GTorchImpl) g = gtorch_impl_ref (upper);
  g_autoptr (GTorchImpl) a = gtorch_impl_ref (self);
  g_autoptr (GTorchImpl) a_adjoint = NULL;
  g_autoptr (GTorchImpl) product = NULL;

  if (n_dims == 1)
    {
      gtorch_impl_unref (g);
      g = unsqueeze (upper, upper->n_dims, error);
      if (g == NULL)
        return NULL;
    }
  if (self->n_dims == 1)
    {
      GTorchImpl *row;

      gtorch_impl_unref (a);
      a = unsqueeze (self, 0, error);
      row = a != NULL ? unsqueeze (g, g->n_dims - 1, error) : NULL;
      gtorch_impl_unref (g);
      g = row;
      if (g == NULL)
        return NULL;
    }
  a_adjoint = adjoint (a, error);
  product = a_adjoint != NULL ? gtorch_op_matmul (a_adjoint, g, error) : NULL;
  if (product == NULL)
    return NULL;
  return n_dims == 1 ? to_vector (product, TRUE, error) : g_steal_pointer (&product);
}
