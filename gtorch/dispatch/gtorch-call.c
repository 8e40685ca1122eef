/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Functions for shape functions: they set outputs, promote dtypes and check arguments. Also the shape
 * functions that families of operations share. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "device/gtorch-device-private.h"
#include "dispatch/gtorch-op-none-private.h"
#include "gtorch-ops-private.h"
#include "memory/gtorch-allocator-private.h"
#include "stream/gtorch-stream-private.h"

/* --- errors --- */

void
gtorch_call_error (GTorchOpCall *call, GError **error, GTorchError code, const gchar *format, ...)
{
  g_autofree gchar *text = NULL;
  va_list args;

  if (error == NULL)
    return;
  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (error, GTORCH_ERROR, code, "%s: %s", gtorch_call_named_op (call)->name, text);
}

void
gtorch_call_name_error (const GTorchOpCall *call, GError **error)
{
  gtorch_error_name_op (error, gtorch_call_named_op (call)->name);
}

void
gtorch_op_refuse_number (guint op, const gchar *name, gdouble value, gdouble low, gdouble high,
                         gboolean is_open, GError **error)
{
  gtorch_check_range (gtorch_ops[op].name, name, value, low, high, is_open, error);
}

void
gtorch_op_refuse_none (guint op, const gchar *name, GError **error)
{
  const GTorchOpClass *klass = &gtorch_ops[op];
  guint i = 0;

  while (!g_str_equal (klass->args[i].name, name))
    i++;
  if (klass->args[i].kind == GTORCH_ARG_INT)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: %s is %" PRId64 ", which is NONE, and it has no default"), klass->name,
                 name, (gint64) GTORCH_NONE);
  else
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("%s: %s is %g, which is NONE_DOUBLE, and it has no default"), klass->name, name,
                 GTORCH_NONE_DOUBLE);
}

/* --- outputs and dtypes --- */

gboolean
gtorch_call_set_output (GTorchOpCall *call, guint i, guint dtype, const gint64 *shape, guint n_dims,
                        GError **error)
{
  GTorchImpl *preset = call->outputs[i];

  if (G_LIKELY (preset == NULL))
    {
      call->outputs[i] = G_LIKELY (gtorch_current_stream (call->device) == NULL
                                   && !__atomic_load_n (&gtorch_memory_wants_ops, __ATOMIC_RELAXED))
                             ? gtorch_impl_new (call->device, dtype, shape, n_dims, error)
                             : gtorch_launch_new_output (call, dtype, shape, n_dims, error);
      if (G_UNLIKELY (call->outputs[i] == NULL))
        {
          g_prefix_error (error, "%s: ", gtorch_call_named_op (call)->name);
          return FALSE;
        }
      return TRUE;
    }

  if (!gtorch_same_shape (preset->shape, preset->n_dims, shape, n_dims))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("the result has shape %s, the tensor to be written to %s"),
                         gtorch_shape_str (shape, n_dims), gtorch_impl_shape_str (preset));
      return FALSE;
    }
  if (gtorch_dtype_kind (dtype) > gtorch_dtype_kind (preset->dtype))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_DTYPE,
                         _ ("a result of dtype %s cannot be written to a tensor of dtype %s"),
                         gtorch_dtype_get_name (dtype), gtorch_dtype_get_name (preset->dtype));
      return FALSE;
    }
  return TRUE;
}

guint
gtorch_call_common_dtype (GTorchOpCall *call, guint first, guint n)
{
  /* PyTorch's promotion: tensors with dimensions come first, then 0-d tensors, then numbers. A later class
   * counts only if its kind is higher than that of the earlier classes. */
  guint dtypes[3] = { GTORCH_DTYPE_NONE, GTORCH_DTYPE_NONE, GTORCH_DTYPE_NONE };
  guint raw = GTORCH_DTYPE_NONE;
  guint result, i;

  for (i = first; i < first + n; i++)
    {
      const GTorchImpl *input = call->inputs[i];
      guint rank, dtype;

      if (input == NULL)
        continue;
      rank = input->is_number ? 2 : (input->n_dims == 0 ? 1 : 0);
      dtype = input->dtype;
      if (rank == 2)
        raw = gtorch_dtype_promote (raw, dtype);
      if (rank == 2 && dtype == GTORCH_DTYPE_FLOAT64)
        dtype = gtorch_get_default_dtype ();
      dtypes[rank] = dtypes[rank] == dtype ? dtype : gtorch_dtype_promote (dtypes[rank], dtype);
    }
  if (dtypes[0] == GTORCH_DTYPE_NONE && dtypes[1] == GTORCH_DTYPE_NONE)
    return raw; /* numbers alone keep their precision */
  result = dtypes[0];
  for (i = 1; i < 3; i++)
    if (dtypes[i] != GTORCH_DTYPE_NONE
        && gtorch_dtype_kind (dtypes[i]) > gtorch_dtype_kind (result))
      /* a complex scalar with float64 parts keeps their precision */
      result = gtorch_dtype_kind (dtypes[i]) == GTORCH_KIND_COMPLEX
                   ? gtorch_dtype_promote (result, dtypes[i])
                   : dtypes[i];
  return result;
}

gboolean
gtorch_call_is_dtype (GTorchOpCall *call, guint dtype, GError **error)
{
  if (G_LIKELY (dtype > GTORCH_DTYPE_NONE && dtype < GTORCH_N_DTYPES))
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_DTYPE, _ ("%d is not a dtype"), (gint) dtype);
  return FALSE;
}

/* A double of this size or more may be an integer that was rounded. */
#define MAX_EXACT 0x1p53

static gboolean
may_be_rounded (GTorchOpCall *call, guint i, guint dtype, GError **error)
{
  if (gtorch_dtype_kind (dtype) != GTORCH_KIND_INT || fabs (call->attrs[i].d) < MAX_EXACT)
    return FALSE;
  gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                     _ ("%s is %.17g, and integers from 2^53 on would be rounded here"),
                     gtorch_op_find_arg (call->op, FALSE, i)->name, call->attrs[i].d);
  return TRUE;
}

gboolean
gtorch_call_check_double (GTorchOpCall *call, guint i, guint dtype, GError **error)
{
  if (G_UNLIKELY (!gtorch_dtype_has (dtype, call->attrs[i].d)))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID, _ ("%s is %g, which is no %s"),
                         gtorch_op_find_arg (call->op, FALSE, i)->name, call->attrs[i].d,
                         gtorch_dtype_get_name (dtype));
      return FALSE;
    }
  return !may_be_rounded (call, i, dtype, error);
}

/* Checks that the compute dtype can represent all doubles among the attributes. */
static gboolean
check_factors (GTorchOpCall *call, guint dtype, GError **error)
{
  const gboolean is_int = gtorch_dtype_kind (dtype) == GTORCH_KIND_INT;
  guint i;

  for (i = 0; i < call->op->n_attrs; i++)
    {
      const GTorchArgSpec *arg = gtorch_op_find_arg (call->op, FALSE, i);
      const gdouble value = call->attrs[i].d;

      if (arg->kind != GTORCH_ARG_DOUBLE)
        continue;
      if (!is_int || value == trunc (value))
        {
          if (!gtorch_call_check_double (call, i,
                                         is_int ? dtype : gtorch_dtype_infos[dtype].compute, error))
            return FALSE;
          continue;
        }
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID, _ ("%s is %g, which is no %s"),
                         arg->name, value, gtorch_dtype_get_name (dtype));
      return FALSE;
    }
  return TRUE;
}

gboolean
gtorch_call_check_value (GTorchOpCall *call, guint i, guint dtype, GError **error)
{
  const GTorchAttr *attr = &call->attrs[i];

  if (G_LIKELY (gtorch_dtype_has (dtype, attr->d)
                || (attr->number.is_int && gtorch_dtype_infos[dtype].size == 8)))
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_INVALID, _ ("%s is %.17g, which is no %s"),
                     gtorch_op_find_arg (call->op, FALSE, i)->name, attr->d,
                     gtorch_dtype_get_name (dtype));
  return FALSE;
}

gboolean
gtorch_call_check_scalar (GTorchOpCall *call, guint i, guint dtype, GError **error)
{
  const GTorchImpl *input = call->inputs[i];
  gdouble value;

  if (G_UNLIKELY (gtorch_dtype_kind (input->dtype) == GTORCH_KIND_COMPLEX
                  && gtorch_dtype_kind (dtype) != GTORCH_KIND_COMPLEX))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_DTYPE, _ ("%s is of %s, which is no %s"),
                         gtorch_op_find_arg (call->op, TRUE, i)->name,
                         gtorch_dtype_get_name (input->dtype), gtorch_dtype_get_name (dtype));
      return FALSE;
    }
  if (!input->is_number)
    return TRUE;
  if (input->dtype == GTORCH_DTYPE_INT64 && gtorch_dtype_size (dtype) < 8)
    value = (gdouble) * (const gint64 *) gtorch_impl_data (input);
  else if (input->dtype == GTORCH_DTYPE_FLOAT64)
    value = *(const gdouble *) gtorch_impl_data (input);
  else
    return TRUE;
  if (G_LIKELY (gtorch_dtype_has (dtype, value)))
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_INVALID, _ ("%s is %.17g, which is no %s"),
                     gtorch_op_find_arg (call->op, TRUE, i)->name, value,
                     gtorch_dtype_get_name (dtype));
  return FALSE;
}

gboolean
gtorch_call_check_number (GTorchOpCall *call, const GTorchImpl *impl, guint dtype,
                          const gchar *what, GError **error)
{
  if (impl == NULL || (impl->dtype == dtype && impl->numel == 1))
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                     _ ("%s must be one %s, it is a %s of shape %s"), _ (what),
                     gtorch_dtype_get_name (dtype), gtorch_dtype_get_name (impl->dtype),
                     gtorch_impl_shape_str (impl));
  return FALSE;
}

gboolean
gtorch_call_check_dtype (GTorchOpCall *call, guint dtype, GError **error)
{
  if (G_UNLIKELY (!gtorch_call_is_dtype (call, dtype, error)))
    return FALSE;
  if (G_UNLIKELY (!(call->op->dtypes & (1u << dtype))))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_DTYPE, _ ("not defined for dtype %s"),
                         gtorch_dtype_get_name (dtype));
      return FALSE;
    }
  return !(call->op->flags & GTORCH_OP_FLAG_FACTORS)
         || G_LIKELY (gtorch_dtype_kind (dtype) != GTORCH_KIND_INT
                      && gtorch_call_has_small_numbers (call))
         || check_factors (call, dtype, error);
}

static gboolean
has_fraction (GTorchOpCall *call)
{
  guint i;

  for (i = 0; i < call->op->n_attrs; i++)
    if (!isinf (call->attrs[i].d) && call->attrs[i].d != trunc (call->attrs[i].d))
      return TRUE;
  return FALSE;
}

/* Checks the bounds of clamp; infinite ones are no bounds. */
static gboolean
check_bounds (GTorchOpCall *call, guint dtype, GError **error)
{
  guint i;

  for (i = 0; i < call->op->n_attrs; i++)
    if (!isinf (call->attrs[i].d) && !gtorch_call_check_value (call, i, dtype, error))
      return FALSE;
  return TRUE;
}

gboolean
gtorch_call_promote (GTorchOpCall *call, guint first, guint n, guint *dtype, GError **error)
{
  guint common = call->inputs[first]->dtype;
  guint i;

  for (i = first; i < first + n; i++)
    if (call->inputs[i] != NULL && (call->inputs[i]->dtype != common || call->inputs[i]->is_number))
      {
        common = gtorch_call_common_dtype (call, first, n);
        break;
      }
  if (call->op->promote == GTORCH_PROMOTE_FLOAT && gtorch_dtype_kind (common) < GTORCH_KIND_FLOAT)
    common = gtorch_get_default_dtype ();
  else if (call->op->promote == GTORCH_PROMOTE_SUM
           && gtorch_dtype_kind (common) < GTORCH_KIND_FLOAT)
    common = GTORCH_DTYPE_INT64;
  else if (call->op->promote == GTORCH_PROMOTE_BOUNDS
           && gtorch_dtype_kind (common) < GTORCH_KIND_FLOAT && has_fraction (call))
    common = gtorch_get_default_dtype ();
  else if (common == GTORCH_DTYPE_BOOL
           && (call->op->promote == GTORCH_PROMOTE_INT
               || call->op->promote == GTORCH_PROMOTE_BOUNDS))
    common = GTORCH_DTYPE_INT64;

  if (G_UNLIKELY (call->op->promote == GTORCH_PROMOTE_BOUNDS)
      && !check_bounds (call, common, error))
    return FALSE;
  call->compute = common;
  *dtype = common;
  if (call->op->promote == GTORCH_PROMOTE_BOOL)
    {
      *dtype = GTORCH_DTYPE_BOOL;
      for (i = first; i < first + n; i++)
        if (call->inputs[i] != NULL && G_UNLIKELY (call->inputs[i]->is_number)
            && gtorch_dtype_kind (common) == GTORCH_KIND_INT
            && !gtorch_call_check_scalar (call, i, common, error))
          return FALSE;
    }
  else if (call->op->promote == GTORCH_PROMOTE_REAL)
    *dtype = gtorch_dtype_infos[common].real;
  return gtorch_call_check_dtype (call, common, error);
}

gboolean
gtorch_shape_same (GTorchOpCall *call, GError **error)
{
  guint dtype;

  return gtorch_call_promote (call, 0, 1, &dtype, error)
         && gtorch_call_set_output (call, 0, dtype, call->inputs[0]->shape, call->inputs[0]->n_dims,
                                    error);
}

/* Checks operands that are numbers. Sums, products and bitwise operations are correct modulo 2^bits, even
 * if a number wraps. Quotients, powers, minima and maxima are not: their numbers must be representable in
 * the dtype. */
static gboolean
check_operands (GTorchOpCall *call, GError **error)
{
  const GTorchDTypeInfo *info = &gtorch_dtype_infos[call->compute];
  guint i;

  for (i = 0; i < call->n_inputs && (call->op->flags & GTORCH_OP_FLAG_CHOOSES); i++)
    if (!gtorch_call_check_scalar (call, i, call->compute, error))
      return FALSE;
  for (i = 0; i < call->n_inputs && info->kind == GTORCH_KIND_INT && info->size < 8; i++)
    {
      const GTorchImpl *input = call->inputs[i];
      gint64 value;

      if (!input->is_number || input->dtype != GTORCH_DTYPE_INT64)
        continue;
      value = *(const gint64 *) gtorch_impl_data (input);
      if ((gdouble) value >= info->min && (gdouble) value <= info->max)
        continue;
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID, _ ("%s is %" PRId64 ", which is no %s"),
                         gtorch_op_find_arg (call->op, TRUE, i)->name, value,
                         gtorch_dtype_get_name (call->compute));
      return FALSE;
    }
  return TRUE;
}

/* Rejects negative numbers as exponents of integers. Integer tensors may contain negative exponents, whose
 * powers are 0, 1 or -1; a negative number is a mistake. */
static gboolean
check_exponent (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *exponent = call->inputs[1];

  if (!exponent->is_number || exponent->dtype != GTORCH_DTYPE_INT64
      || gtorch_dtype_kind (call->compute) != GTORCH_KIND_INT
      || *(const gint64 *) gtorch_impl_data (exponent) >= 0)
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                     _ ("integers have no integer powers of %" PRId64
                        ": the exponent must not be negative"),
                     *(const gint64 *) gtorch_impl_data (exponent));
  return FALSE;
}

/* The first operand of the result's shape decides in which order the result is. */
static G_GNUC_NO_INLINE gboolean
set_ordered (GTorchOpCall *call, guint dtype, const gint64 *shape, guint n_dims, GError **error)
{
  guint i;

  for (i = 0; i < call->n_inputs; i++)
    if (gtorch_same_shape (call->inputs[i]->shape, call->inputs[i]->n_dims, shape, n_dims))
      return gtorch_call_set_images (call, 0, dtype, shape, n_dims,
                                     gtorch_impl_is_channels_last (call->inputs[i]), error);
  return gtorch_call_set_output (call, 0, dtype, shape, n_dims, error);
}

gboolean
gtorch_shape_pointwise (GTorchOpCall *call, GError **error)
{
  gint64 shape[GTORCH_MAX_DIMS];
  const GTorchImpl *self = call->inputs[0];
  guint n_dims = self->n_dims;
  guint dtype, i;

  if (G_UNLIKELY (!gtorch_call_promote (call, 0, call->n_inputs, &dtype, error)))
    return FALSE;
  if (G_UNLIKELY (call->op->flags & GTORCH_OP_FLAG_POWERS) && !check_exponent (call, error))
    return FALSE;
  if (G_UNLIKELY (call->op->flags
                  & (GTORCH_OP_FLAG_POWERS | GTORCH_OP_FLAG_DIVIDES | GTORCH_OP_FLAG_CHOOSES))
      && !check_operands (call, error))
    return FALSE;
  for (i = 1; i < call->n_inputs; i++)
    if (call->inputs[i]->n_dims != 0 && !gtorch_impl_same_shape (self, call->inputs[i]))
      break;
  if (G_LIKELY (i == call->n_inputs))
    return G_LIKELY (self->is_contiguous)
               ? gtorch_call_set_output (call, 0, dtype, self->shape, n_dims, error)
               : set_ordered (call, dtype, self->shape, n_dims, error);

  memcpy (shape, self->shape, n_dims * sizeof (gint64));
  for (i = 1; i < call->n_inputs; i++)
    if (!gtorch_broadcast_shapes (call->op->name, shape, n_dims, call->inputs[i]->shape,
                                  call->inputs[i]->n_dims, shape, &n_dims, error))
      return FALSE;
  return gtorch_shape_check (call->op->name, shape, n_dims, dtype, error)
         && set_ordered (call, dtype, shape, n_dims, error);
}
