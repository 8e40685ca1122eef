/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The recurrence e[0] = start, e[k] = x[k - 1] + f[k - 1] e[k - 1] along a dimension of [outer, n,
 * inner], or the same from the end to the beginning. The gradient of one direction is the other
 * direction with the conjugates of the factors f. Nothing is divided, so all that is composed of it is
 * right for zeros, in derivatives of every order. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "gtorch-ops-private.h"

gboolean
gtorch_shape_recurrence (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *self = call->inputs[0], *factor = call->inputs[1];
  guint dim, dtype;

  if (!gtorch_normalize_dim (call->op->name, call->attrs[0].i, self->n_dims, &dim, error))
    return FALSE;
  if (!gtorch_impl_same_shape (self, factor))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE, _ ("shapes %s and %s must be the same"),
                         gtorch_impl_shape_str (self), gtorch_impl_shape_str (factor));
      return FALSE;
    }
  return gtorch_call_promote (call, 0, 2, &dtype, error)
         && gtorch_call_set_output (call, 0, dtype, self->shape, self->n_dims, error);
}

/* --- gradients of products --- */

/* Returns, for each position along dim, the product of all elements before it; with reverse, of all
 * behind it. */
static GTorchImpl *
products (GTorchImpl *self, gint64 dim, gboolean reverse, GError **error)
{
  g_autoptr (GTorchImpl) zeros = gtorch_op_zeros_like (self, GTORCH_DTYPE_NONE, error);

  return zeros != NULL ? gtorch_op_recurrence (zeros, self, dim, 1, reverse, error) : NULL;
}

/* Element i is a factor of all results from i on: with t[i] = upper[i] + x[i + 1] t[i + 1], its gradient
 * is t[i] times the product of all elements before it. */
GTorchImpl *
gtorch_op_cumprod_gradient (GTorchImpl *upper, GTorchImpl *self, gint64 dim, GError **error)
{
  GTorchImpl *const sources[] = { upper, self };
  g_autoptr (GTorchImpl) factors = gtorch_op_conj (self, error);
  g_autoptr (GTorchImpl) before = NULL;
  g_autoptr (GTorchImpl) scaled = NULL;
  g_autoptr (GTorchImpl) later = NULL;
  g_autoptr (GTorchImpl) sums = NULL;

  if (factors == NULL)
    return NULL;
  if (!gtorch_autograd_wanted (sources, 2))
    return gtorch_op_cumprod_backward (upper, factors, dim, error);
  if ((before = products (factors, dim, FALSE, error)) == NULL
      || (scaled = gtorch_op_mul (upper, factors, error)) == NULL
      || (later = gtorch_op_recurrence (scaled, factors, dim, 0, TRUE, error)) == NULL
      || (sums = gtorch_op_add (upper, later, 1, error)) == NULL)
    return NULL;
  return gtorch_op_mul (before, sums, error);
}

GTorchImpl *
gtorch_op_other_products (GTorchImpl *self, const gint64 *dim, gsize n_dim, GError **error)
{
  g_autoptr (GTorchImpl) turned = NULL;
  g_autoptr (GTorchImpl) rows = NULL;
  g_autoptr (GTorchImpl) before = NULL;
  g_autoptr (GTorchImpl) behind = NULL;
  g_autoptr (GTorchImpl) product = NULL;
  g_autoptr (GTorchImpl) shaped = NULL;
  gint64 order[GTORCH_MAX_DIMS], back[GTORCH_MAX_DIMS], sizes[2] = { 1, 1 };
  guint64 mask;
  guint pass, i, n = 0;

  if (!gtorch_autograd_wanted (&self, 1))
    return gtorch_op_prod_others (self, dim, n_dim, error);
  if (!gtorch_normalize_dims ("prod", dim, n_dim, self->n_dims, &mask, error))
    return NULL;
  for (pass = 0; pass < 2; pass++)
    for (i = 0; i < self->n_dims; i++)
      if (((mask >> i) & 1) == pass)
        {
          back[i] = n;
          order[n++] = i;
          sizes[pass] *= self->shape[i];
        }
  if ((turned = gtorch_op_permute (self, order, n, error)) == NULL
      || (rows = gtorch_op_reshape (turned, sizes, 2, error)) == NULL
      || (before = products (rows, 1, FALSE, error)) == NULL
      || (behind = products (rows, 1, TRUE, error)) == NULL
      || (product = gtorch_op_mul (before, behind, error)) == NULL
      || (shaped = gtorch_op_reshape (product, turned->shape, turned->n_dims, error)) == NULL)
    return NULL;
  return gtorch_op_permute (shaped, back, n, error);
}
