/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Differences, integrals by the trapezoidal rule and estimates of derivatives. The small functions at the
 * top take their operands' references, and give NULL if one of these is NULL, so that they can be nested. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/gtorch-error-private.h"
#include "base/gtorch-none-private.h"
#include "base/gtorch-text-private.h"
#include "gtorch-ops-private.h"

typedef GTorchImpl *(*Binary) (GTorchImpl *, GTorchImpl *, GError **);

static GTorchImpl *
apply (Binary function, GTorchImpl *a, GTorchImpl *b, GError **error)
{
  GTorchImpl *result = a != NULL && b != NULL ? function (a, b, error) : NULL;

  g_clear_pointer (&a, gtorch_impl_unref);
  g_clear_pointer (&b, gtorch_impl_unref);
  return result;
}

static GTorchImpl *
plain_add (GTorchImpl *a, GTorchImpl *b, GError **error)
{
  return gtorch_op_add (a, b, 1, error);
}

static GTorchImpl *
plain_sub (GTorchImpl *a, GTorchImpl *b, GError **error)
{
  return gtorch_op_sub (a, b, 1, error);
}

/* The second operand is computed only if the first one was: C leaves the order of arguments open. Calls are
 * nested, so that the names must differ. */
#define APPLY(function, a, b)       APPLY_AS (__COUNTER__, function, a, b)
#define APPLY_AS(n, function, a, b) APPLY_NAMED (n, function, a, b)
#define APPLY_NAMED(n, function, a, b)              \
  ({                                                \
    GTorchImpl *_a##n = (a);                        \
    GTorchImpl *_b##n = _a##n != NULL ? (b) : NULL; \
    apply (function, _a##n, _b##n, error);          \
  })
#define ADD(a, b) APPLY (plain_add, a, b)
#define SUB(a, b) APPLY (plain_sub, a, b)
#define MUL(a, b) APPLY (gtorch_op_mul, a, b)
#define DIV(a, b) APPLY (gtorch_op_div, a, b)
#define REF(a)    gtorch_impl_ref (a)
#define NUMBER(x) gtorch_impl_new_number (x)

/* --- diff --- */

static GTorchImpl *
joined (GTorchImpl *self, GTorchImpl *prepend, GTorchImpl *append, guint dim, GError **error)
{
  GTorchImpl *parts[3];
  guint n = 0;

  if (prepend != NULL)
    parts[n++] = prepend;
  parts[n++] = self;
  if (append != NULL)
    parts[n++] = append;
  return n > 1 ? gtorch_op_cat (parts, n, dim, error) : REF (self);
}

/* Returns the parts from start to the end but the last ones. */
static GTorchImpl *
inner_part (GTorchImpl *self, guint dim, gint64 start, gint64 last, GError **error)
{
  return gtorch_op_slice (self, dim, start, MAX (self->shape[dim] - last, 0), 1, error);
}

static GTorchImpl *
difference (GTorchImpl *self, guint dim, GError **error)
{
  return APPLY (self->dtype == GTORCH_DTYPE_BOOL ? gtorch_op_logical_xor : plain_sub,
                inner_part (self, dim, 1, 0, error), inner_part (self, dim, 0, 1, error));
}

GTorchImpl *
gtorch_op_diff (GTorchImpl *self, gint64 n, gint64 wanted, GTorchImpl *prepend, GTorchImpl *append,
                GError **error)
{
  g_autoptr (GTorchImpl) rest = NULL;
  guint dim;

  if (self->n_dims == 0 || n < 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("diff: order %" PRId64
                      " of shape %s: there must be a dimension, and no negative order"),
                   n, gtorch_impl_shape_str (self));
      return NULL;
    }
  if (!gtorch_normalize_dim ("diff", wanted, self->n_dims, &dim, error))
    return NULL;
  if (n == 0)
    return gtorch_op_clone (self, error);
  rest = joined (self, prepend, append, dim, error);
  if (rest == NULL)
    {
      gtorch_error_set_op (error, "diff");
      return NULL;
    }
  for (n = MIN (n, MAX (rest->shape[dim], 1)); n > 0; n--)
    {
      GTorchImpl *next = difference (rest, dim, error);

      gtorch_impl_unref (rest);
      rest = next;
      if (rest == NULL)
        return NULL;
    }
  return g_steal_pointer (&rest);
}

/* --- the trapezoidal rule --- */

/* Returns the widths of the intervals of x in a form that broadcasts with the intervals of y. */
static GTorchImpl *
widths (const gchar *op, GTorchImpl *y, GTorchImpl *x, guint dim, GError **error)
{
  gint64 shape[GTORCH_MAX_DIMS];
  g_autoptr (GTorchImpl) aligned = NULL;
  guint i, lead;

  if (x->n_dims == 0 || x->n_dims > y->n_dims || (x->n_dims == 1 && x->shape[0] != y->shape[dim]))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: x of shape %s must be a row of as many places as y of shape %s has "
                      "along dim %u, or have its shape"),
                   op, gtorch_impl_shape_str (x), gtorch_impl_shape_str (y), dim);
      return NULL;
    }
  lead = y->n_dims - x->n_dims;
  for (i = 0; i < y->n_dims; i++)
    if (x->n_dims == 1)
      shape[i] = i == dim ? x->shape[0] : 1;
    else
      shape[i] = i < lead ? 1 : x->shape[i - lead];
  aligned = gtorch_op_reshape (x, shape, y->n_dims, error);
  return aligned != NULL ? difference (aligned, dim, error) : NULL;
}

static gboolean
check_trapezoids (const gchar *op, GTorchImpl *y, GTorchImpl *x, gdouble dx, gint64 wanted,
                  guint *dim, GError **error)
{
  if (x != NULL && !gtorch_is_none_double (dx))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: x and a dx of %g are given: only one of them may be"), op, dx);
      return FALSE;
    }
  if (y->n_dims == 0 || y->dtype == GTORCH_DTYPE_BOOL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: y of shape %s and dtype %s must have a dimension, and not be bool"), op,
                   gtorch_impl_shape_str (y), gtorch_dtype_get_name (y->dtype));
      return FALSE;
    }
  return gtorch_normalize_dim (op, wanted, y->n_dims, dim, error);
}

/* Returns the areas of the trapezoids along the dimension. */
static GTorchImpl *
areas (const gchar *op, GTorchImpl *y, GTorchImpl *x, gdouble dx, guint dim, GError **error)
{
  GTorchImpl *width, *result;

  width = x != NULL ? widths (op, y, x, dim, error) : NUMBER (gtorch_is_none_double (dx) ? 1 : dx);
  result =
      MUL (MUL (width, ADD (inner_part (y, dim, 1, 0, error), inner_part (y, dim, 0, 1, error))),
           NUMBER (0.5));
  if (result == NULL)
    gtorch_error_set_op (error, op);
  return result;
}

/* Between places that are equally far apart, each element counts twice except for the first and the last
 * one. */
static GTorchImpl *
even_trapezoids (GTorchImpl *y, gdouble dx, guint dim, GError **error)
{
  const gint64 along = dim;
  g_autoptr (GTorchImpl) inside = gtorch_op_slice (y, dim, 1, y->shape[dim] - 1, 1, error);
  GTorchImpl *sum =
      inside != NULL ? gtorch_op_sum (inside, &along, 1, FALSE, GTORCH_DTYPE_NONE, error) : NULL;

  sum = ADD (sum,
             MUL (ADD (gtorch_op_select (y, dim, 0, error), gtorch_op_select (y, dim, -1, error)),
                  NUMBER (0.5)));
  if (!gtorch_is_none_double (dx) && dx != 1)
    sum = MUL (sum, NUMBER (dx));
  if (sum == NULL)
    gtorch_error_set_op (error, "trapezoid");
  return sum;
}

GTorchImpl *
gtorch_op_trapezoid (GTorchImpl *y, GTorchImpl *x, gdouble dx, gint64 wanted, GError **error)
{
  g_autoptr (GTorchImpl) parts = NULL;
  gint64 along;
  guint dim;

  if (!check_trapezoids ("trapezoid", y, x, dx, wanted, &dim, error))
    return NULL;
  if (x == NULL && y->shape[dim] > 2 && gtorch_dtype_kind (y->dtype) != GTORCH_KIND_INT)
    return even_trapezoids (y, dx, dim, error);
  along = dim;
  parts = areas ("trapezoid", y, x, dx, dim, error);
  return parts != NULL ? gtorch_op_sum (parts, &along, 1, FALSE, GTORCH_DTYPE_NONE, error) : NULL;
}

GTorchImpl *
gtorch_op_cumulative_trapezoid (GTorchImpl *y, GTorchImpl *x, gdouble dx, gint64 wanted,
                                GError **error)
{
  g_autoptr (GTorchImpl) parts = NULL;
  guint dim;

  if (!check_trapezoids ("cumulative_trapezoid", y, x, dx, wanted, &dim, error))
    return NULL;
  parts = areas ("cumulative_trapezoid", y, x, dx, dim, error);
  return parts != NULL ? gtorch_op_cumsum (parts, dim, GTORCH_DTYPE_NONE, error) : NULL;
}

/* --- gradient --- */

/* Returns the parts from begin up to before end; negative positions count from the end. */
static GTorchImpl *
part (GTorchImpl *self, guint dim, gint64 begin, gint64 end, GError **error)
{
  gint64 size = self->shape[dim];

  return gtorch_op_slice (self, dim, begin < 0 ? begin + size : begin, end <= 0 ? end + size : end,
                          1, error);
}

/* Returns the slope at an end from the element there and the two after it, which are steps apart: the
 * derivative of the parabola through them. */
static GTorchImpl *
slope_of_parabola (GTorchImpl *self, guint dim, gboolean at_end, GTorchImpl *one, GTorchImpl *two,
                   GError **error)
{
  gint64 f[3] = { at_end ? -1 : 0, at_end ? -2 : 1, at_end ? -3 : 2 };
  GTorchImpl *near, *far, *result;

  /* the slopes of the lines through the end and the middle, and through the middle and the other end */
  near =
      DIV (SUB (part (self, dim, f[1], f[1] + 1, error), part (self, dim, f[0], f[0] + 1, error)),
           REF (one));
  far = near != NULL ? DIV (SUB (part (self, dim, f[2], f[2] + 1, error),
                                 part (self, dim, f[1], f[1] + 1, error)),
                            REF (two))
                     : NULL;
  if (far == NULL)
    {
      g_clear_pointer (&near, gtorch_impl_unref);
      return NULL;
    }
  result = SUB (REF (near),
                MUL (SUB (REF (far), REF (near)), DIV (REF (one), ADD (REF (one), REF (two)))));
  gtorch_impl_unref (near);
  gtorch_impl_unref (far);
  if (result != NULL && at_end)
    {
      GTorchImpl *negative = gtorch_op_neg (result, error);

      gtorch_impl_unref (result);
      result = negative;
    }
  return result;
}

static GTorchImpl *
slope_at_end (GTorchImpl *self, guint dim, gboolean at_end, GTorchImpl *steps, gint64 order,
              GError **error)
{
  g_autoptr (GTorchImpl) one = NULL;
  g_autoptr (GTorchImpl) two = NULL;
  gboolean uniform = steps->n_dims == 0;

  one = uniform ? REF (steps) : part (steps, dim, at_end ? -1 : 0, at_end ? 0 : 1, error);
  if (one == NULL)
    return NULL;
  if (order == 1)
    return DIV (at_end ? SUB (part (self, dim, -1, 0, error), part (self, dim, -2, -1, error))
                       : SUB (part (self, dim, 1, 2, error), part (self, dim, 0, 1, error)),
                REF (one));
  two = uniform ? REF (steps) : part (steps, dim, at_end ? -2 : 1, at_end ? -1 : 2, error);
  return two != NULL ? slope_of_parabola (self, dim, at_end, one, two, error) : NULL;
}

/* Returns the slopes between the ends: of neighbours that are steps h and k away,
 * (h / k (f+ - f) + k / h (f - f-)) / (h + k), which is (f+ - f-) / 2 h if both are h. */
static GTorchImpl *
slopes_between (GTorchImpl *self, guint dim, GTorchImpl *steps, GError **error)
{
  g_autoptr (GTorchImpl) h = NULL;
  g_autoptr (GTorchImpl) k = NULL;

  if (steps->n_dims == 0)
    return DIV (SUB (part (self, dim, 2, 0, error), part (self, dim, 0, -2, error)),
                MUL (REF (steps), NUMBER (2)));
  h = part (steps, dim, 0, -1, error);
  k = h != NULL ? part (steps, dim, 1, 0, error) : NULL;
  if (k == NULL)
    return NULL;
  return DIV (ADD (MUL (DIV (REF (h), REF (k)),
                        SUB (part (self, dim, 2, 0, error), part (self, dim, 1, -1, error))),
                   MUL (DIV (REF (k), REF (h)),
                        SUB (part (self, dim, 1, -1, error), part (self, dim, 0, -2, error)))),
              ADD (REF (h), REF (k)));
}

/* steps: a number, or the distances of neighbours in a shape that broadcasts */
static GTorchImpl *
derivative (GTorchImpl *self, guint dim, GTorchImpl *steps, gint64 order, GError **error)
{
  GTorchImpl *parts[3] = { NULL }, *result = NULL;

  parts[0] = slope_at_end (self, dim, FALSE, steps, order, error);
  if (parts[0] != NULL && self->shape[dim] > 2)
    parts[1] = slopes_between (self, dim, steps, error);
  else if (parts[0] != NULL)
    parts[1] = gtorch_op_slice (parts[0], dim, 0, 0, 1, error);
  if (parts[1] != NULL)
    parts[2] = slope_at_end (self, dim, TRUE, steps, order, error);
  if (parts[2] != NULL)
    result = gtorch_op_cat (parts, 3, dim, error);
  gtorch_impl_clear (parts, 3);
  return result;
}

/* Returns the number or the distances that the derivative takes for the spacing; self has one of it. */
static GTorchImpl *
steps_of (GTorchImpl *self, guint dim, GTorchImpl *spacing, GError **error)
{
  if (spacing == NULL)
    return NUMBER (1);
  if (spacing->n_dims == 0)
    return REF (spacing);
  if (spacing->n_dims == 1 && spacing->shape[0] == self->shape[dim])
    return widths ("gradient", self, spacing, dim, error);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("gradient: the spacing of shape %s must be a number, or a row of the coordinates "
                  "along dim %u of shape %s"),
               gtorch_impl_shape_str (spacing), dim, gtorch_impl_shape_str (self));
  return NULL;
}

static gboolean
check_gradient (GTorchImpl *self, GTorchImpl *const *spacing, gsize n_spacing, guint n,
                gint64 order, guint64 mask, GError **error)
{
  gboolean is_one = n_spacing == 1 && spacing[0]->n_dims == 0;
  guint i;

  if ((n_spacing != 0 && !is_one && n_spacing != n) || order < 1 || order > 2)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("gradient: spacings: %zu, edge_order: %" PRId64
                      ": there must be one number, or a spacing for each of %u dimensions, and the "
                      "order must be 1 or 2"),
                   n_spacing, order, n);
      return FALSE;
    }
  for (i = 0; i < self->n_dims; i++)
    if ((mask >> i & 1) && self->shape[i] < order + 1)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                     _ ("gradient: dim %u of shape %s must have more than %" PRId64 " elements"), i,
                     gtorch_impl_shape_str (self), order);
        return FALSE;
      }
  return TRUE;
}

GPtrArray *
gtorch_op_gradient (GTorchImpl *self, GTorchImpl *const *spacing, gsize n_spacing,
                    const gint64 *dims, gsize n_dims, gint64 edge_order, GError **error)
{
  g_autoptr (GPtrArray) list = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  guint i, dim, n = n_dims > 0 ? n_dims : self->n_dims;
  guint64 mask;

  if (!gtorch_normalize_dims ("gradient", dims, n_dims, self->n_dims, &mask, error)
      || !check_gradient (self, spacing, n_spacing, n, edge_order, mask, error))
    return NULL;
  for (i = 0; i < n; i++)
    {
      g_autoptr (GTorchImpl) steps = NULL;
      GTorchImpl *slopes = NULL;

      dim = i;
      if (n_dims > 0 && !gtorch_normalize_dim ("gradient", dims[i], self->n_dims, &dim, error))
        return NULL;
      steps = steps_of (self, dim, n_spacing == 0 ? NULL : spacing[n_spacing == 1 ? 0 : i], error);
      if (steps != NULL)
        slopes = derivative (self, dim, steps, edge_order, error);
      if (slopes == NULL)
        {
          gtorch_error_set_op (error, "gradient");
          return NULL;
        }
      g_ptr_array_add (list, slopes);
    }
  return g_steal_pointer (&list);
}
