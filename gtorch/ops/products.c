/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Products composed of those of two matrices. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-dtype-private.h"
#include "base/gtorch-error-private.h"
#include "base/gtorch-none.h"
#include "base/gtorch-text-private.h"
#include "device/gtorch-scratch-private.h"
#include "dispatch/gtorch-autocast-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

/* --- sums of a tensor and a product --- */

static gboolean
is_vector (const gchar *op, const gchar *name, const GTorchImpl *self, guint n_dims, GError **error)
{
  if (self->n_dims == n_dims)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("%s: %s of shape %s must have %u dimensions"), op, _ (name),
               gtorch_impl_shape_str (self), n_dims);
  return FALSE;
}

GTorchImpl *
gtorch_op_addmv (GTorchImpl *self, GTorchImpl *mat, GTorchImpl *vec, gdouble beta, gdouble alpha,
                 GError **error)
{
  g_autoptr (GTorchImpl) column = NULL;
  g_autoptr (GTorchImpl) factor = NULL;
  g_autoptr (GTorchImpl) sum = NULL;

  if (!is_vector ("addmv", "mat", mat, 2, error) || !is_vector ("addmv", "vec", vec, 1, error))
    return NULL;
  column = gtorch_op_unsqueeze (self, -1, error);
  factor = column != NULL ? gtorch_op_unsqueeze (vec, 1, error) : NULL;
  sum = factor != NULL ? gtorch_op_addmm (column, mat, factor, beta, alpha, error) : NULL;
  if (sum == NULL)
    gtorch_error_set_op (error, "addmv");
  return sum != NULL ? gtorch_op_select (sum, 1, 0, error) : NULL;
}

/* Tells whether the sum with an outer product is one of elements, which takes one pass: regions of mixed
 * precision treat products of matrices in another way, and a factor of 0 leaves out what it multiplies. */
static gboolean
is_elementwise (GTorchImpl *self, GTorchImpl *vec1, GTorchImpl *vec2, gdouble beta, gdouble alpha)
{
  const gint64 shape[2] = { vec1->shape[0], vec2->shape[0] };
  guint i;

  if (self->n_dims > 2 || self->dtype != vec1->dtype || self->dtype != vec2->dtype || beta != 1
      || alpha == 0 || gtorch_dtype_kind (self->dtype) == GTORCH_KIND_INT
      || self->dtype == GTORCH_DTYPE_BOOL || gtorch_autocast_is_on ())
    return FALSE;
  for (i = 0; i < self->n_dims; i++)
    if (self->shape[i] != 1 && self->shape[i] != shape[2 - self->n_dims + i])
      return FALSE;
  return TRUE;
}

GTorchImpl *
gtorch_op_outer (GTorchImpl *self, GTorchImpl *vec2, GError **error)
{
  g_autoptr (GTorchImpl) column = NULL;
  g_autoptr (GTorchImpl) row = NULL;
  GTorchImpl *product;

  if (!is_vector ("outer", "self", self, 1, error) || !is_vector ("outer", "vec2", vec2, 1, error))
    return NULL;
  column = gtorch_op_unsqueeze (self, 1, error);
  row = column != NULL ? gtorch_op_unsqueeze (vec2, 0, error) : NULL;
  if (row == NULL)
    return NULL;
  /* the loops of complex products may round the elements at the ends of threads' parts in another way */
  if (self->dtype == vec2->dtype && gtorch_dtype_kind (self->dtype) == GTORCH_KIND_COMPLEX)
    product = gtorch_op_mm (column, row, error);
  else
    product = gtorch_op_mul (column, row, error);
  if (product == NULL)
    gtorch_error_set_op (error, "outer");
  return product;
}

/* Returns (beta and self) or (alpha and outer (vec1, vec2)), of bools. */
static GTorchImpl *
add_outer_of_bools (GTorchImpl *self, GTorchImpl *column, GTorchImpl *row, gdouble beta,
                    gdouble alpha, GError **error)
{
  g_autoptr (GTorchImpl) with_alpha = gtorch_impl_new_bool (alpha != 0);
  g_autoptr (GTorchImpl) with_beta = gtorch_impl_new_bool (beta != 0);
  g_autoptr (GTorchImpl) product = gtorch_op_logical_and (column, row, error);
  g_autoptr (GTorchImpl) right =
      product != NULL ? gtorch_op_logical_and (product, with_alpha, error) : NULL;
  g_autoptr (GTorchImpl) wide =
      right != NULL ? gtorch_op_expand (self, right->shape, right->n_dims, error) : NULL;
  g_autoptr (GTorchImpl) left =
      wide != NULL ? gtorch_op_logical_and (wide, with_beta, error) : NULL;

  return left != NULL ? gtorch_op_logical_or (left, right, error) : NULL;
}

GTorchImpl *
gtorch_op_addr (GTorchImpl *self, GTorchImpl *vec1, GTorchImpl *vec2, gdouble beta, gdouble alpha,
                GError **error)
{
  g_autoptr (GTorchImpl) column = NULL;
  g_autoptr (GTorchImpl) row = NULL;
  GTorchImpl *sum;

  if (!is_vector ("addr", "vec1", vec1, 1, error) || !is_vector ("addr", "vec2", vec2, 1, error))
    return NULL;
  column = gtorch_op_unsqueeze (vec1, 1, error);
  row = column != NULL ? gtorch_op_unsqueeze (vec2, 0, error) : NULL;
  if (row != NULL && is_elementwise (self, vec1, vec2, beta, alpha))
    sum = gtorch_op_addcmul (self, column, row, alpha, error);
  else if (row != NULL && self->dtype == GTORCH_DTYPE_BOOL && vec1->dtype == GTORCH_DTYPE_BOOL
           && vec2->dtype == GTORCH_DTYPE_BOOL)
    sum = add_outer_of_bools (self, column, row, beta, alpha, error);
  else
    sum = row != NULL ? gtorch_op_addmm (self, column, row, beta, alpha, error) : NULL;
  if (sum == NULL)
    gtorch_error_set_op (error, "addr");
  return sum;
}

/* The sum of the products is one product: that of the matrices of the first batch side by side and those of
 * the second one below each other. */
GTorchImpl *
gtorch_op_addbmm (GTorchImpl *self, GTorchImpl *batch1, GTorchImpl *batch2, gdouble beta,
                  gdouble alpha, GError **error)
{
  g_autoptr (GTorchImpl) turned = NULL;
  g_autoptr (GTorchImpl) wide = NULL;
  g_autoptr (GTorchImpl) tall = NULL;
  const gint64 *one = batch1->shape, *two = batch2->shape;
  GTorchImpl *sum;
  gint64 k;

  if (batch1->n_dims != 3 || batch2->n_dims != 3 || one[0] != two[0] || one[2] != two[1])
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("addbmm: shapes %s and %s must be b x n x k and b x k x m"),
                   gtorch_impl_shape_str (batch1), gtorch_impl_shape_str (batch2));
      return NULL;
    }
  k = one[0] * one[2];
  turned = gtorch_op_transpose (batch1, 0, 1, error);
  wide =
      turned != NULL ? gtorch_op_reshape (turned, (const gint64[]){ one[1], k }, 2, error) : NULL;
  tall = wide != NULL ? gtorch_op_reshape (batch2, (const gint64[]){ k, two[2] }, 2, error) : NULL;
  sum = tall != NULL ? gtorch_op_addmm (self, wide, tall, beta, alpha, error) : NULL;
  if (sum == NULL)
    gtorch_error_set_op (error, "addbmm");
  return sum;
}

/* --- products of two tensors --- */

GTorchImpl *
gtorch_op_inner (GTorchImpl *self, GTorchImpl *other, GError **error)
{
  static const gint64 last = -1;

  if (self->n_dims == 0 || other->n_dims == 0)
    return gtorch_op_mul (self, other, error);
  if (self->shape[self->n_dims - 1] != other->shape[other->n_dims - 1])
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("inner: the last dimensions of shapes %s and %s must be of one size"),
                   gtorch_impl_shape_str (self), gtorch_impl_shape_str (other));
      return NULL;
    }
  return gtorch_op_tensordot (self, other, &last, 1, &last, 1, error);
}

/* Gives each dimension of the last n of self a neighbour of size 1, behind it or, if before is set, before
 * it. */
static GTorchImpl *
spread (GTorchImpl *self, guint n, gboolean before, GError **error)
{
  gint64 shape[2 * GTORCH_MAX_DIMS];
  guint i, lead = n - self->n_dims;

  for (i = 0; i < n; i++)
    {
      shape[2 * i + before] = i < lead ? 1 : self->shape[i - lead];
      shape[2 * i + !before] = 1;
    }
  return gtorch_op_reshape (self, shape, 2 * n, error);
}

GTorchImpl *
gtorch_op_kron (GTorchImpl *self, GTorchImpl *other, GError **error)
{
  guint i, n = MAX (self->n_dims, other->n_dims);
  g_autoptr (GTorchImpl) left = NULL;
  g_autoptr (GTorchImpl) right = NULL;
  g_autoptr (GTorchImpl) blocks = NULL;
  gint64 shape[GTORCH_MAX_DIMS];

  if (2 * n > GTORCH_MAX_DIMS)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("kron: shapes %s and %s may have %d dimensions at most"),
                   gtorch_impl_shape_str (self), gtorch_impl_shape_str (other),
                   GTORCH_MAX_DIMS / 2);
      return NULL;
    }
  left = spread (self, n, FALSE, error);
  right = left != NULL ? spread (other, n, TRUE, error) : NULL;
  blocks = right != NULL ? gtorch_op_mul (left, right, error) : NULL;
  if (blocks == NULL)
    return NULL;
  for (i = 0; i < n; i++)
    shape[i] = blocks->shape[2 * i] * blocks->shape[2 * i + 1];
  return gtorch_op_reshape (blocks, shape, n, error);
}

/* --- cross products --- */

gboolean
gtorch_shape_cross_product (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *self = call->inputs[0], *other = call->inputs[1];
  guint dtype, dim;

  if (!gtorch_normalize_dim (call->op->name, call->attrs[0].i, self->n_dims, &dim, error)
      || !gtorch_call_promote (call, 0, 2, &dtype, error))
    return FALSE;
  if (self->n_dims > 0 && self->shape[dim] == 3 && gtorch_impl_same_shape (self, other))
    return gtorch_call_set_output (call, 0, dtype, self->shape, self->n_dims, error);
  gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                     _ ("shapes %s and %s must be equal, and of size 3 in dim %u"),
                     gtorch_impl_shape_str (self), gtorch_impl_shape_str (other), dim);
  return FALSE;
}

static GTorchImpl *
cross_along (const gchar *op, GTorchImpl *self, GTorchImpl *other, gint64 wanted, GError **error)
{
  g_autoptr (GTorchImpl) a = NULL;
  g_autoptr (GTorchImpl) b = NULL;
  GTorchImpl *result = NULL;
  gint64 shape[GTORCH_MAX_DIMS];
  guint dim, n_dims;

  if (!gtorch_normalize_dim (op, wanted, self->n_dims, &dim, error))
    return NULL;
  if (self->n_dims != other->n_dims || self->n_dims == 0 || self->shape[dim] != 3
      || other->shape[dim] != 3)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: shapes %s and %s must have as many dimensions, and size 3 in dim %u"),
                   op, gtorch_impl_shape_str (self), gtorch_impl_shape_str (other), dim);
      return NULL;
    }
  if (!gtorch_broadcast_shapes (op, self->shape, self->n_dims, other->shape, other->n_dims, shape,
                                &n_dims, error))
    return NULL;
  if ((a = gtorch_op_expand (self, shape, n_dims, error)) != NULL
      && (b = gtorch_op_expand (other, shape, n_dims, error)) != NULL)
    result = gtorch_op_cross_product (a, b, dim, error);
  if (result == NULL)
    gtorch_error_set_op (error, op);
  return result;
}

GTorchImpl *
gtorch_op_cross (GTorchImpl *self, GTorchImpl *other, gint64 dim, GError **error)
{
  guint i;

  if (dim == GTORCH_NONE)
    {
      for (i = 0; i < self->n_dims && self->shape[i] != 3; i++)
        ;
      if (i == self->n_dims)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("cross: shape %s has no dimension of size 3"),
                       gtorch_impl_shape_str (self));
          return NULL;
        }
      dim = i;
    }
  return cross_along ("cross", self, other, dim, error);
}

GTorchImpl *
gtorch_op_linalg_cross (GTorchImpl *self, GTorchImpl *other, gint64 dim, GError **error)
{
  return cross_along ("linalg_cross", self, other, dim, error);
}

/* --- chains --- */

/* For the part of the chain from i to j, least[i * n + j] is the number of multiplications in the best order
 * and cut[i * n + j] the last factor of its first half. Numbers are doubles: only their order counts. */
static void
plan_chain (const gint64 *sizes, guint n, gdouble *least, guint *cut)
{
  guint length, i, k;

  for (length = 1; length < n; length++)
    for (i = 0; i + length < n; i++)
      {
        guint j = i + length;

        least[i * n + j] = G_MAXDOUBLE;
        for (k = i; k < j; k++)
          {
            gdouble cost = least[i * n + k] + least[(k + 1) * n + j]
                           + (gdouble) sizes[i] * sizes[k + 1] * sizes[j + 1];

            if (cost < least[i * n + j])
              {
                least[i * n + j] = cost;
                cut[i * n + j] = k;
              }
          }
      }
}

static GTorchImpl *
multiply_chain (GTorchImpl *const *factors, guint n, guint i, guint j, const guint *cut,
                GError **error)
{
  g_autoptr (GTorchImpl) left = NULL;
  g_autoptr (GTorchImpl) right = NULL;

  if (i == j)
    return gtorch_impl_ref (factors[i]);
  left = multiply_chain (factors, n, i, cut[i * n + j], cut, error);
  right = left != NULL ? multiply_chain (factors, n, cut[i * n + j] + 1, j, cut, error) : NULL;
  return right != NULL ? gtorch_op_mm (left, right, error) : NULL;
}

static GTorchImpl *
multiply_all (const gchar *op, GTorchImpl *const *tensors, guint n, GError **error)
{
  g_autoptr (GPtrArray) factors =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  g_autofree gint64 *sizes = gtorch_scratch_new (n + 1, sizeof (gint64), error);
  g_autofree gdouble *least =
      sizes != NULL ? gtorch_scratch_new0 ((gint64) n * n, sizeof (gdouble), error) : NULL;
  g_autofree guint *cut =
      least != NULL ? gtorch_scratch_new0 ((gint64) n * n, sizeof (guint), error) : NULL;
  gint64 shape[2];
  g_autoptr (GTorchImpl) product = NULL;
  guint i, n_dims = 0;

  if (cut == NULL)
    {
      gtorch_error_set_op (error, op);
      return NULL;
    }
  for (i = 0; i < n; i++)
    {
      GTorchImpl *factor = tensors[i];
      gboolean is_vector_at_end = factor->n_dims == 1 && (i == 0 || i == n - 1);

      if (is_vector_at_end)
        factor = gtorch_op_unsqueeze (factor, i == 0 ? 0 : 1, error);
      else
        gtorch_impl_ref (factor);
      if (factor == NULL)
        return NULL;
      g_ptr_array_add (factors, factor);
      if (factor->n_dims != 2 || (i > 0 && factor->shape[0] != sizes[i]))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("%s: tensor %u of shape %s must be a matrix, or a vector at an end, and "
                          "have as many rows as the one before it has columns"),
                       op, i, gtorch_impl_shape_str (tensors[i]));
          return NULL;
        }
      sizes[i] = factor->shape[0];
      sizes[i + 1] = factor->shape[1];
    }
  plan_chain (sizes, n, least, cut);
  product = multiply_chain ((GTorchImpl **) factors->pdata, n, 0, n - 1, cut, error);
  if (product == NULL)
    {
      gtorch_error_set_op (error, op);
      return NULL;
    }
  if (tensors[0]->n_dims > 1)
    shape[n_dims++] = sizes[0];
  if (tensors[n - 1]->n_dims > 1)
    shape[n_dims++] = sizes[n];
  return n_dims < 2 ? gtorch_op_reshape (product, shape, n_dims, error)
                    : g_steal_pointer (&product);
}

#define MAX_FACTORS 4096 /* the plan takes as many numbers as the square of this */

static gboolean
check_number (const gchar *op, gsize n, gsize least, GError **error)
{
  if (n >= least && n <= MAX_FACTORS)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: there must be from %u to %u matrices, not %zu"), op, (guint) least,
               MAX_FACTORS, n);
  return FALSE;
}

GTorchImpl *
gtorch_op_linalg_multi_dot (GTorchImpl *const *tensors, gsize n, GError **error)
{
  return check_number ("linalg_multi_dot", n, 2, error)
             ? multiply_all ("linalg_multi_dot", tensors, n, error)
             : NULL;
}

GTorchImpl *
gtorch_op_chain_matmul (GTorchImpl *const *matrices, gsize n, GError **error)
{
  gsize i;

  if (!check_number ("chain_matmul", n, 1, error))
    return NULL;
  for (i = 0; i < n; i++)
    if (!is_vector ("chain_matmul", N_ ("each matrix"), matrices[i], 2, error))
      return NULL;
  return n == 1 ? gtorch_impl_itself (matrices[0], error)
                : multiply_all ("chain_matmul", matrices, n, error);
}

/* --- powers --- */

static GTorchImpl *
identity_like (GTorchImpl *self, GError **error)
{
  gint64 n = self->shape[self->n_dims - 1];
  g_autoptr (GTorchImpl) one =
      self->storage == NULL
          ? gtorch_op_view_as_is (self, error)
          : gtorch_op_eye (n, GTORCH_NONE, self->dtype, gtorch_impl_device (self), error);
  g_autoptr (GTorchImpl) all =
      one != NULL ? gtorch_op_expand (one, self->shape, self->n_dims, error) : NULL;

  return all != NULL ? gtorch_op_clone (all, error) : NULL;
}

/* Squares the power for each bit of n, and multiplies those whose bit is set. Products of other strides are
 * rounded otherwise, and each multiplication makes that more: the result shall not depend on them. */
GTorchImpl *
gtorch_op_linalg_matrix_power (GTorchImpl *self, gint64 n, GError **error)
{
  g_autoptr (GTorchImpl) power = NULL;
  g_autoptr (GTorchImpl) result = NULL;

  if (self->n_dims < 2 || self->shape[self->n_dims - 2] != self->shape[self->n_dims - 1]
      || n == G_MININT64)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("linalg_matrix_power: power %" PRId64
                      " of shape %s: matrices must be square"),
                   n, gtorch_impl_shape_str (self));
      return NULL;
    }
  if (n == 0)
    return identity_like (self, error);
  if (n == 1)
    return gtorch_op_clone (self, error);
  power = n < 0 ? gtorch_op_linalg_inv (self, error) : gtorch_op_contiguous (self, error);
  n = ABS (n);
  while (power != NULL)
    {
      GTorchImpl *next;

      if (n & 1)
        {
          next = result != NULL ? gtorch_op_matmul (result, power, error) : gtorch_impl_ref (power);
          if (next == NULL)
            return NULL;
          g_clear_pointer (&result, gtorch_impl_unref);
          result = next;
        }
      n >>= 1;
      if (n == 0)
        return g_steal_pointer (&result);
      next = gtorch_op_matmul (power, power, error);
      if (next == NULL)
        return NULL;
      gtorch_impl_unref (power);
      power = next;
    }
  return NULL;
}

/* Returns the powers 0 to n - 1 of the elements, along a new last dimension. */
static GTorchImpl *
powers (const gchar *op, GTorchImpl *x, gint64 n, GError **error)
{
  g_autoptr (GTorchImpl) column = NULL;
  g_autoptr (GTorchImpl) factors = NULL;
  g_autoptr (GTorchImpl) products = NULL;
  g_autoptr (GTorchImpl) ones = NULL;
  GTorchDType dtype =
      gtorch_dtype_kind (x->dtype) < GTORCH_KIND_FLOAT ? GTORCH_DTYPE_INT64 : x->dtype;
  gint64 shape[GTORCH_MAX_DIMS];
  GTorchImpl *result;

  memcpy (shape, x->shape, x->n_dims * sizeof (gint64));
  shape[x->n_dims] = MIN (n, 1);
  ones = gtorch_op_new_ones (x, shape, x->n_dims + 1, dtype, error);
  if (ones == NULL || n <= 1)
    return g_steal_pointer (&ones);
  shape[x->n_dims] = n - 1;
  column = gtorch_op_unsqueeze (x, x->n_dims, error);
  factors = column != NULL ? gtorch_op_expand (column, shape, x->n_dims + 1, error) : NULL;
  products = factors != NULL ? gtorch_op_cumprod (factors, -1, dtype, error) : NULL;
  result = products != NULL
               ? gtorch_op_cat ((GTorchImpl *[]){ ones, products }, 2, x->n_dims, error)
               : NULL;
  if (result == NULL)
    gtorch_error_set_op (error, op);
  return result;
}

GTorchImpl *
gtorch_op_linalg_vander (GTorchImpl *x, gint64 n, GError **error)
{
  gint64 count = n != GTORCH_NONE ? n : x->n_dims > 0 ? x->shape[x->n_dims - 1] : 1;

  g_autoptr (GTorchImpl) vector = NULL;

  if (x->n_dims == GTORCH_MAX_DIMS || (n != GTORCH_NONE ? n <= 1 : x->n_dims == 0))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("linalg_vander: %" PRId64 " powers for shape %s: there must be more "
                      "than 1, and from 1 to %d dimensions"),
                   count, gtorch_impl_shape_str (x), GTORCH_MAX_DIMS - 1);
      return NULL;
    }
  vector = x->n_dims == 0 ? gtorch_op_unsqueeze (x, 0, error) : gtorch_impl_ref (x);
  return vector != NULL ? powers ("linalg_vander", vector, count, error) : NULL;
}

GTorchImpl *
gtorch_op_vander (GTorchImpl *x, gint64 n, gboolean increasing, GError **error)
{
  g_autoptr (GTorchImpl) rising = NULL;

  if (n == GTORCH_NONE && x->n_dims == 1)
    n = x->shape[0];
  if (x->n_dims != 1 || n < 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("vander: %" PRId64
                      " powers for shape %s: there must be one dimension, and no negative number"),
                   n, gtorch_impl_shape_str (x));
      return NULL;
    }
  rising = powers ("vander", x, n, error);
  if (rising == NULL || increasing)
    return g_steal_pointer (&rising);
  return gtorch_op_flip (rising, (const gint64[]){ 1 }, 1, error);
}
