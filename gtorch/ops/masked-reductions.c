/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The operations of torch.masked. Elements where the mask is false are replaced by the identity of the
 * operation, which changes no result; means and variances divide by the number of the others. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "base/gtorch-dtype-private.h"
#include "base/gtorch-error-private.h"
#include "base/gtorch-none.h"
#include "ops/gtorch-formula-private.h"
#include "ops/gtorch-host-private.h"

#define OP(name, ...) GTORCH_FORMULA_OP (&m->f, name, __VA_ARGS__)

/* An operation under a mask. */
typedef struct
{
  GTorchFormula f;
  const gchar *op;
  GTorchImpl *x;    /* the input in the dtype in which it is computed */
  GTorchImpl *mask; /* of dtype bool, or NULL */
} Masked;

static inline void
masked_clear (Masked *m)
{
  gtorch_formula_clear (&m->f);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Masked, masked_clear)

#define MASKED_INIT(name, location)                                          \
  {                                                                          \
    .f = GTORCH_FORMULA_INIT (location), .op = name, .x = NULL, .mask = NULL \
  }

static void
masked_fail (Masked *m, GTorchError code, const gchar *what)
{
  g_set_error (m->f.error, GTORCH_ERROR, code, "%s: %s", m->op, what);
  m->f.failed = TRUE;
}

/* Converts the input to the dtype and the mask to bool, and checks their shapes. */
static gboolean
masked_begin (Masked *m, GTorchImpl *input, GTorchDType dtype, GTorchImpl *mask)
{
  gint64 shape[GTORCH_MAX_DIMS];
  guint n_dims;

  m->x = input;
  m->mask = mask;
  if (dtype != GTORCH_DTYPE_NONE && dtype != input->dtype)
    m->x = OP (to_dtype, input, dtype);
  if (mask == NULL || m->f.failed)
    return !m->f.failed;
  if (mask->n_dims > input->n_dims
      || !gtorch_broadcast_shapes (m->op, mask->shape, mask->n_dims, input->shape, input->n_dims,
                                   shape, &n_dims, NULL)
      || !gtorch_same_shape (shape, n_dims, input->shape, input->n_dims))
    {
      g_set_error (m->f.error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: a mask of shape %s cannot be expanded to the shape %s"), m->op,
                   gtorch_impl_shape_str (mask), gtorch_impl_shape_str (input));
      m->f.failed = TRUE;
      return FALSE;
    }
  if (mask->dtype != GTORCH_DTYPE_BOOL)
    m->mask = OP (to_dtype, mask, GTORCH_DTYPE_BOOL);
  return !m->f.failed;
}

/* Returns x with a number where the mask is false. */
static GTorchImpl *
masked_fill (Masked *m, GTorchImpl *x, GTorchImpl *taken)
{
  GTorchImpl *number = gtorch_formula_keep (&m->f, taken);

  return m->mask != NULL ? OP (where, m->mask, x, number) : x;
}

/* Returns the input with the number or, if it consists of integers, the least or the greatest of them. */
static GTorchImpl *
masked_fill_bound (Masked *m, gdouble bound)
{
  const guint dtype = m->x->dtype;

  if (gtorch_dtype_kind (dtype) == GTORCH_KIND_INT)
    {
      const guint bits = (guint) gtorch_dtype_size (dtype) * 8;
      gint64 least = bits == 64 ? G_MININT64 : -(G_GINT64_CONSTANT (1) << (bits - 1));
      gint64 greatest = -(least + 1);

      if (dtype == GTORCH_DTYPE_UINT8)
        {
          least = 0;
          greatest = G_MAXUINT8;
        }
      return masked_fill (m, m->x, gtorch_impl_new_int (bound < 0 ? least : greatest));
    }
  return masked_fill (m, m->x, gtorch_impl_new_number (bound));
}

/* Returns how many elements count, along the dimensions. */
static GTorchImpl *
masked_count (Masked *m, const gint64 *dim, gsize n_dim, gboolean keepdim)
{
  GTorchImpl *whole = OP (expand, m->mask, m->x->shape, m->x->n_dims);

  return OP (sum, whole, dim, n_dim, keepdim, GTORCH_DTYPE_NONE);
}

static GTorchImpl *
masked_end (Masked *m, GTorchImpl *result)
{
  if (m->f.failed)
    gtorch_error_set_op (m->f.error, m->op);
  return gtorch_formula_take (&m->f, result);
}

/* Refuses complex numbers, which have no order, or integers, which have no NaN. */
static gboolean
masked_check_kind (Masked *m, guint least, guint greatest)
{
  const guint kind = gtorch_dtype_kind (m->x->dtype);

  if (kind >= least && kind <= greatest)
    return TRUE;
  g_set_error (m->f.error, GTORCH_ERROR, GTORCH_ERROR_DTYPE, _ ("%s: not defined for dtype %s"),
               m->op, gtorch_dtype_get_name (m->x->dtype));
  m->f.failed = TRUE;
  return FALSE;
}

/* --- reductions with an identity --- */

#define BEGIN(name, input, dtype, mask)             \
  g_auto (Masked) made = MASKED_INIT (name, error); \
  Masked *m = &made;                                \
                                                    \
  if (!masked_begin (m, input, dtype, mask))        \
  return masked_end (m, NULL)

GTorchImpl *
gtorch_op_masked_sum (GTorchImpl *input, const gint64 *dim, gsize n_dim, gboolean keepdim,
                      GTorchDType dtype, GTorchImpl *mask, GError **error)
{
  GTorchImpl *filled;

  BEGIN ("masked_sum", input, dtype, mask);
  filled = masked_fill (m, m->x, gtorch_impl_new_int (0));
  return masked_end (m, OP (sum, filled, dim, n_dim, keepdim, dtype));
}

GTorchImpl *
gtorch_op_masked_prod (GTorchImpl *input, const gint64 *dim, gsize n_dim, gboolean keepdim,
                       GTorchDType dtype, GTorchImpl *mask, GError **error)
{
  GTorchImpl *filled;

  BEGIN ("masked_prod", input, dtype, mask);
  filled = masked_fill (m, m->x, gtorch_impl_new_int (1));
  return masked_end (m, OP (prod, filled, dim, n_dim, keepdim, dtype));
}

GTorchImpl *
gtorch_op_masked_amax (GTorchImpl *input, const gint64 *dim, gsize n_dim, gboolean keepdim,
                       GTorchDType dtype, GTorchImpl *mask, GError **error)
{
  GTorchImpl *filled;

  BEGIN ("masked_amax", input, dtype, mask);
  if (!masked_check_kind (m, GTORCH_KIND_INT, GTORCH_KIND_FLOAT))
    return NULL;
  filled = masked_fill_bound (m, -INFINITY);
  return masked_end (m, OP (amax, filled, dim, n_dim, keepdim));
}

GTorchImpl *
gtorch_op_masked_amin (GTorchImpl *input, const gint64 *dim, gsize n_dim, gboolean keepdim,
                       GTorchDType dtype, GTorchImpl *mask, GError **error)
{
  GTorchImpl *filled;

  BEGIN ("masked_amin", input, dtype, mask);
  if (!masked_check_kind (m, GTORCH_KIND_INT, GTORCH_KIND_FLOAT))
    return NULL;
  filled = masked_fill_bound (m, INFINITY);
  return masked_end (m, OP (amin, filled, dim, n_dim, keepdim));
}

GTorchImpl *
gtorch_op_masked_argmax (GTorchImpl *input, gint64 dim, gboolean keepdim, GTorchDType dtype,
                         GTorchImpl *mask, GError **error)
{
  GTorchImpl *filled;

  BEGIN ("masked_argmax", input, dtype, mask);
  if (!masked_check_kind (m, GTORCH_KIND_INT, GTORCH_KIND_FLOAT))
    return NULL;
  filled = masked_fill_bound (m, -INFINITY);
  return masked_end (m, OP (argmax, filled, &dim, dim != GTORCH_NONE ? 1 : 0, keepdim));
}

GTorchImpl *
gtorch_op_masked_argmin (GTorchImpl *input, gint64 dim, gboolean keepdim, GTorchDType dtype,
                         GTorchImpl *mask, GError **error)
{
  GTorchImpl *filled;

  BEGIN ("masked_argmin", input, dtype, mask);
  if (!masked_check_kind (m, GTORCH_KIND_INT, GTORCH_KIND_FLOAT))
    return NULL;
  filled = masked_fill_bound (m, INFINITY);
  return masked_end (m, OP (argmin, filled, &dim, dim != GTORCH_NONE ? 1 : 0, keepdim));
}

GTorchImpl *
gtorch_op_masked_logsumexp (GTorchImpl *input, const gint64 *dim, gsize n_dim, gboolean keepdim,
                            GTorchDType dtype, GTorchImpl *mask, GError **error)
{
  GTorchImpl *filled;

  BEGIN ("masked_logsumexp", input, dtype, mask);
  filled = masked_fill (m, m->x, gtorch_impl_new_number (-INFINITY));
  return masked_end (m, OP (logsumexp, filled, dim, n_dim, keepdim));
}

/* A negative power of an element that does not count is 0 if that element is infinite. */
static GTorchImpl *
masked_norm (Masked *m, gdouble ord, const gint64 *dim, gsize n_dim, gboolean keepdim)
{
  GTorchImpl *filled = masked_fill (m, m->x, gtorch_impl_new_number (ord < 0 ? INFINITY : 0));

  return OP (linalg_vector_norm, filled, ord, dim, n_dim, keepdim, GTORCH_DTYPE_NONE);
}

GTorchImpl *
gtorch_op_masked_norm (GTorchImpl *input, gdouble ord, const gint64 *dim, gsize n_dim,
                       gboolean keepdim, GTorchDType dtype, GTorchImpl *mask, GError **error)
{
  BEGIN ("masked_norm", input, dtype, mask);
  if (!masked_check_kind (m, GTORCH_KIND_FLOAT, GTORCH_KIND_COMPLEX))
    return NULL;
  return masked_end (m, masked_norm (m, ord, dim, n_dim, keepdim));
}

/* --- what depends on the number of elements --- */

static GTorchImpl *
masked_mean (Masked *m, const gint64 *dim, gsize n_dim, gboolean keepdim)
{
  GTorchImpl *filled, *sum, *count;

  if (m->mask == NULL)
    return OP (mean, m->x, dim, n_dim, keepdim, GTORCH_DTYPE_NONE);
  filled = masked_fill (m, m->x, gtorch_impl_new_int (0));
  sum = OP (sum, filled, dim, n_dim, keepdim, GTORCH_DTYPE_NONE);
  count = masked_count (m, dim, n_dim, keepdim);
  return OP (div, sum, count);
}

GTorchImpl *
gtorch_op_masked_mean (GTorchImpl *input, const gint64 *dim, gsize n_dim, gboolean keepdim,
                       GTorchDType dtype, GTorchImpl *mask, GError **error)
{
  BEGIN ("masked_mean", input, dtype, mask);
  if (!masked_check_kind (m, GTORCH_KIND_FLOAT, GTORCH_KIND_COMPLEX))
    return NULL;
  return masked_end (m, masked_mean (m, dim, n_dim, keepdim));
}

static GTorchImpl *
masked_var (Masked *m, const gint64 *dim, gsize n_dim, gdouble correction, gboolean keepdim)
{
  GTorchImpl *mean, *distance, *square, *sum, *count, *less;

  if (gtorch_dtype_kind (m->x->dtype) < GTORCH_KIND_FLOAT)
    m->x = OP (to_dtype, m->x, gtorch_get_default_dtype ());
  if (m->f.failed)
    return NULL;
  if (m->mask == NULL && gtorch_dtype_kind (m->x->dtype) == GTORCH_KIND_COMPLEX)
    m->mask = OP (ones_like, m->x, GTORCH_DTYPE_BOOL);
  if (m->mask == NULL)
    return OP (var, m->x, dim, n_dim, correction, keepdim);
  mean = masked_mean (m, dim, n_dim, TRUE);
  distance = OP (sub, m->x, mean, 1);
  distance = masked_fill (m, distance, gtorch_impl_new_int (0));
  if (gtorch_dtype_kind (m->x->dtype) == GTORCH_KIND_COMPLEX)
    {
      square = OP (conj, distance);
      square = OP (mul, square, distance);
      square = OP (real, square);
    }
  else
    square = OP (mul, distance, distance);
  sum = OP (sum, square, dim, n_dim, keepdim, GTORCH_DTYPE_NONE);
  count = masked_count (m, dim, n_dim, keepdim);
  less = gtorch_formula_number (&m->f, correction);
  count = m->f.failed ? NULL : OP (to_dtype, count, sum->dtype);
  count = OP (sub, count, less, 1);
  count = OP (clamp, count, 0, INFINITY);
  return OP (div, sum, count);
}

GTorchImpl *
gtorch_op_masked_var (GTorchImpl *input, const gint64 *dim, gsize n_dim, gdouble correction,
                      gboolean keepdim, GTorchDType dtype, GTorchImpl *mask, GError **error)
{
  BEGIN ("masked_var", input, dtype, mask);
  return masked_end (m, masked_var (m, dim, n_dim, correction, keepdim));
}

GTorchImpl *
gtorch_op_masked_std (GTorchImpl *input, const gint64 *dim, gsize n_dim, gdouble correction,
                      gboolean keepdim, GTorchDType dtype, GTorchImpl *mask, GError **error)
{
  GTorchImpl *var;

  BEGIN ("masked_std", input, dtype, mask);
  var = masked_var (m, dim, n_dim, correction, keepdim);
  return masked_end (m, OP (sqrt, var));
}

/* Waits for the device, and refuses lines without an element. */
static gboolean
masked_check_lines (Masked *m, GTorchImpl *count)
{
  GTorchImpl *least = count->numel > 0 ? OP (min, count) : NULL;
  g_autoptr (GTorchImpl) host = NULL;
  gint64 value = 1;

  if (count->numel == 0)
    return TRUE;
  host = m->f.failed ? NULL : gtorch_impl_to_host (m->op, least, m->f.error);
  if (host == NULL)
    {
      m->f.failed = TRUE;
      return FALSE;
    }
  gtorch_impl_read (host, GTORCH_DTYPE_INT64, &value);
  if (value > 0)
    return TRUE;
  masked_fail (m, GTORCH_ERROR_INVALID,
               _ ("the mask leaves a line of integers without an element, which has no median"));
  return FALSE;
}

/* Integers that do not count are sorted behind the others, of which the middle one is taken. */
static GTorchImpl *
masked_median_of_integers (Masked *m, gint64 dim, gboolean keepdim)
{
  GTorchImpl *count = masked_count (m, &dim, 1, TRUE), *filled, *values = NULL, *place, *number;

  if (m->f.failed || !masked_check_lines (m, count))
    return NULL;
  filled = masked_fill_bound (m, INFINITY);
  if (m->f.failed || !gtorch_op_sort (filled, dim, FALSE, TRUE, &values, NULL, m->f.error))
    {
      m->f.failed = TRUE;
      return NULL;
    }
  values = gtorch_formula_keep (&m->f, values);
  number = gtorch_formula_keep (&m->f, gtorch_impl_new_int (1));
  place = OP (sub, count, number, 1);
  number = gtorch_formula_keep (&m->f, gtorch_impl_new_int (2));
  place = OP (floor_divide, place, number);
  values = OP (gather, values, dim, place);
  return keepdim ? values : OP (squeeze, values, &dim, 1);
}

GTorchImpl *
gtorch_op_masked_median (GTorchImpl *input, gint64 dim, gboolean keepdim, GTorchDType dtype,
                         GTorchImpl *mask, GError **error)
{
  GTorchImpl *filled, *values = NULL;

  BEGIN ("masked_median", input, dtype, mask);
  if (!masked_check_kind (m, GTORCH_KIND_INT, GTORCH_KIND_FLOAT))
    return NULL;
  if (m->mask != NULL && gtorch_dtype_kind (m->x->dtype) == GTORCH_KIND_INT)
    return masked_end (m, masked_median_of_integers (m, dim, keepdim));
  filled = masked_fill (m, m->x, gtorch_impl_new_number (NAN));
  if (!m->f.failed
      && !(m->mask != NULL ? gtorch_op_nanmedian_dim (filled, dim, keepdim, &values, NULL, error)
                           : gtorch_op_median_dim (filled, dim, keepdim, &values, NULL, error)))
    m->f.failed = TRUE;
  return masked_end (m, m->f.failed ? NULL : gtorch_formula_keep (&m->f, values));
}

/* --- along a dimension --- */

/* Sums and products keep the dtype, as PyTorch's do. */
#define SCAN(name, identity)                                                             \
  GTorchImpl *gtorch_op_masked_##name (GTorchImpl *input, gint64 dim, GTorchDType dtype, \
                                       GTorchImpl *mask, GError **error)                 \
  {                                                                                      \
    GTorchImpl *filled;                                                                  \
                                                                                         \
    BEGIN ("masked_" #name, input, dtype, mask);                                         \
    if (!masked_check_kind (m, GTORCH_KIND_INT, GTORCH_KIND_COMPLEX))                    \
      return NULL;                                                                       \
    filled = masked_fill (m, m->x, gtorch_impl_new_int (identity));                      \
    return masked_end (m, OP (name, filled, dim, m->x->dtype));                          \
  }

SCAN (cumsum, 0)
SCAN (cumprod, 1)

#define SHARE(name, identity)                                                            \
  GTorchImpl *gtorch_op_masked_##name (GTorchImpl *input, gint64 dim, GTorchDType dtype, \
                                       GTorchImpl *mask, GError **error)                 \
  {                                                                                      \
    GTorchImpl *filled;                                                                  \
                                                                                         \
    BEGIN ("masked_" #name, input, dtype, mask);                                         \
    if (!masked_check_kind (m, GTORCH_KIND_FLOAT, GTORCH_KIND_FLOAT))                    \
      return NULL;                                                                       \
    filled = masked_fill (m, m->x, gtorch_impl_new_number (identity));                   \
    return masked_end (m, OP (name, filled, dim, GTORCH_DTYPE_NONE));                    \
  }

SHARE (softmax, -INFINITY)
SHARE (log_softmax, -INFINITY)
SHARE (softmin, INFINITY)

GTorchImpl *
gtorch_op_masked_normalize (GTorchImpl *input, gdouble ord, gint64 dim, gdouble eps,
                            GTorchDType dtype, GTorchImpl *mask, GError **error)
{
  GTorchImpl *norm, *filled;

  BEGIN ("masked_normalize", input, dtype, mask);
  if (!masked_check_kind (m, GTORCH_KIND_FLOAT, GTORCH_KIND_COMPLEX))
    return NULL;
  norm = masked_norm (m, ord, &dim, 1, TRUE);
  norm = OP (clamp, norm, eps, INFINITY);
  filled = masked_fill (m, m->x, gtorch_impl_new_int (0));
  return masked_end (m, OP (div, filled, norm));
}

/* --- of two tensors --- */

GTorchImpl *
gtorch_op_masked_logaddexp (GTorchImpl *input, GTorchImpl *other, GTorchDType dtype,
                            GTorchImpl *input_mask, GTorchImpl *other_mask, GError **error)
{
  GTorchImpl *one, *two;

  BEGIN ("masked_logaddexp", input, dtype, input_mask);
  one = masked_fill (m, m->x, gtorch_impl_new_number (-INFINITY));
  if (m->f.failed || !masked_begin (m, other, dtype, other_mask))
    return masked_end (m, NULL);
  two = masked_fill (m, m->x, gtorch_impl_new_number (-INFINITY));
  return masked_end (m, OP (logaddexp, one, two));
}
