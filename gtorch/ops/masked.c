/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <complex.h>
#include <glib/gi18n-lib.h>
#include <string.h>

#include "cpu/gtorch-cpu-cast.h"
#include "cpu/ops/gtorch-cpu-index.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "device/gtorch-device-private.h"
#include "gtorch-ops-private.h"

static gboolean
is_mask (const GTorchImpl *mask)
{
  return mask->dtype == GTORCH_DTYPE_BOOL || mask->dtype == GTORCH_DTYPE_UINT8;
}

static void
not_a_mask (const gchar *op, const GTorchImpl *mask, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE, _ ("%s: the mask must be bool, it is %s"),
               op, gtorch_dtype_get_name (mask->dtype));
}

gboolean
gtorch_shape_masked_fill (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0], *mask = call->inputs[1], *value = call->inputs[2];
  gint64 shape[GTORCH_MAX_DIMS];
  guint n_dims;

  if (!is_mask (mask))
    {
      not_a_mask (call->op->name, mask, error);
      return FALSE;
    }
  if (!gtorch_call_check_scalar (call, 2, self->dtype, error))
    return FALSE;
  if (value->n_dims > 0)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("the value of shape %s must have no dimensions"),
                         gtorch_impl_shape_str (value));
      return FALSE;
    }
  if (gtorch_dtype_kind (value->dtype) > gtorch_dtype_kind (self->dtype)
      && gtorch_dtype_kind (self->dtype) != GTORCH_KIND_BOOL)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_DTYPE,
                         _ ("a value of %s cannot be written to a tensor of %s"),
                         gtorch_dtype_get_name (value->dtype), gtorch_dtype_get_name (self->dtype));
      return FALSE;
    }
  return gtorch_broadcast_shapes (call->op->name, self->shape, self->n_dims, mask->shape,
                                  mask->n_dims, shape, &n_dims, error)
         && gtorch_shape_check (call->op->name, shape, n_dims, self->dtype, error)
         && gtorch_call_set_output (call, 0, self->dtype, shape, n_dims, error);
}

typedef struct
{
  char value[16];
  gsize size;
} Fill;

#define FILL(T)                                                                        \
  {                                                                                    \
    T value;                                                                           \
                                                                                       \
    memcpy (&value, fill->value, sizeof (T));                                          \
    if (strides[0] == sizeof (T) && strides[1] == 1 && strides[2] == sizeof (T))       \
      {                                                                                \
        T *o = (T *) data[0];                                                          \
        const guint8 *m = (const guint8 *) data[1];                                    \
        const T *a = (const T *) data[2];                                              \
        _Pragma ("omp simd") for (i = 0; i < n; i++) o[i] = m[i] ? value : a[i];       \
      }                                                                                \
    else                                                                               \
      for (i = 0; i < n; i++)                                                          \
        *(T *) (data[0] + i * strides[0]) =                                            \
            data[1][i * strides[1]] ? value : *(const T *) (data[2] + i * strides[2]); \
  }

static void
fill_masked (char *const *data, const gint64 *strides, gint64 n, gpointer user_data)
{
  const Fill *fill = user_data;
  gint64 i;

  switch (fill->size)
    {
    case 1:
      FILL (guint8)
      break;
    case 2:
      FILL (guint16)
      break;
    case 4:
      FILL (guint32)
      break;
    case 8:
      FILL (guint64)
      break;
    default:
      FILL (double _Complex)
    }
}

gboolean
gtorch_cpu_masked_fill (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0], *value = call->inputs[2];
  GTorchImpl *operands[] = { output, call->inputs[1], call->inputs[0] };
  Fill fill = { .size = gtorch_dtype_size (output->dtype) };
  GTorchIter iter;

  if (output->numel == 0)
    return TRUE;
  gtorch_cpu_cast (output->dtype, value->dtype) (fill.value, 0, gtorch_impl_data (value), 0, 1);
  gtorch_iter_init (&iter, operands, 3, output->shape, output->n_dims);
  gtorch_iter_run (&iter, GTORCH_CPU_GRAIN, fill_masked, &fill);
  return TRUE;
}

/* --- nonzero --- */

/* Returns the elements as contiguous bytes, 0 or 1. */
static GTorchImpl *
as_flags (GTorchImpl *self, GError **error)
{
  return gtorch_cpu_contiguous (self, GTORCH_DTYPE_BOOL, error);
}

static gint64
count_flags (const guint8 *flags, gint64 n)
{
  gint64 i, count = 0;

  for (i = 0; i < n; i++)
    count += flags[i] != 0;
  return count;
}

gboolean
gtorch_shape_nonzero (GTorchOpCall *call, GError **error)
{
  g_autoptr (GTorchImpl) flags = NULL;
  gint64 shape[2] = { 0, call->inputs[0]->n_dims };

  if (call->device->type == GTORCH_DEVICE_TYPE_CUDA)
    {
      if (!gtorch_cuda_count_true (call, call->inputs[0], &shape[0], error))
        return FALSE;
    }
  else
    {
      flags = as_flags (call->inputs[0], error);
      if (flags == NULL)
        return FALSE;
      shape[0] = count_flags (gtorch_impl_data (flags), flags->numel);
    }
  return gtorch_shape_check (call->op->name, shape, 2, GTORCH_DTYPE_INT64, error)
         && gtorch_call_set_output (call, 0, GTORCH_DTYPE_INT64, shape, 2, error);
}

gboolean
gtorch_cpu_nonzero (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  g_autoptr (GTorchImpl) flags = as_flags (self, error);
  gint64 *out = gtorch_impl_data (call->outputs[0]);
  gint64 *end = out + call->outputs[0]->numel;
  const guint8 *data;
  gint64 i, rest;
  guint d;

  if (flags == NULL)
    return FALSE;
  data = gtorch_impl_data (flags);
  for (i = 0; i < flags->numel && out < end; i++)
    if (data[i])
      {
        for (d = self->n_dims, rest = i; d-- > 0; rest /= self->shape[d])
          out[d] = rest % self->shape[d];
        out += self->n_dims;
      }
  /* another thread has written to the input in between, so there are fewer than the shape function counted */
  if (out < end)
    memset (out, 0, (end - out) * sizeof (gint64));
  return TRUE;
}

/* Returns the flat positions at which mask, broadcast to shape, is true. */
static GTorchImpl *
positions (GTorchImpl *mask, const gint64 *shape, guint n_dims, GError **error)
{
  g_autoptr (GTorchImpl) whole = gtorch_op_expand (mask, shape, n_dims, error);
  g_autoptr (GTorchImpl) row =
      whole != NULL ? gtorch_op_reshape (whole, (const gint64[]){ -1 }, 1, error) : NULL;
  g_autoptr (GTorchImpl) found = row != NULL ? gtorch_op_nonzero (row, error) : NULL;

  return found != NULL ? gtorch_op_select (found, 1, 0, error) : NULL;
}

GTorchImpl *
gtorch_op_masked_select (GTorchImpl *self, GTorchImpl *mask, GError **error)
{
  g_autoptr (GTorchImpl) whole = NULL;
  g_autoptr (GTorchImpl) index = NULL;
  gint64 shape[GTORCH_MAX_DIMS];
  guint n_dims;

  if (!is_mask (mask))
    {
      not_a_mask ("masked_select", mask, error);
      return NULL;
    }
  if (!gtorch_broadcast_shapes ("masked_select", self->shape, self->n_dims, mask->shape,
                                mask->n_dims, shape, &n_dims, error))
    return NULL;
  whole = gtorch_op_expand (self, shape, n_dims, error);
  if (whole == NULL)
    return NULL;
  if (whole->numel == 0)
    return gtorch_op_reshape (whole, (const gint64[]){ 0 }, 1, error);
  index = positions (mask, shape, n_dims, error);
  return index != NULL ? gtorch_op_take (whole, index, error) : NULL;
}

GTorchImpl *
gtorch_op_masked_scatter (GTorchImpl *self, GTorchImpl *mask, GTorchImpl *source, GError **error)
{
  g_autoptr (GTorchImpl) whole = NULL;
  g_autoptr (GTorchImpl) index = NULL;
  g_autoptr (GTorchImpl) row = NULL;
  g_autoptr (GTorchImpl) used = NULL;
  gint64 shape[GTORCH_MAX_DIMS];
  guint n_dims;

  if (!is_mask (mask))
    {
      not_a_mask ("masked_scatter", mask, error);
      return NULL;
    }
  if (!gtorch_broadcast_shapes ("masked_scatter", self->shape, self->n_dims, mask->shape,
                                mask->n_dims, shape, &n_dims, error))
    return NULL;
  whole = gtorch_op_expand (self, shape, n_dims, error);
  if (whole == NULL)
    return NULL;
  if (whole->numel == 0)
    return gtorch_op_clone (whole, error);
  index = positions (mask, shape, n_dims, error);
  if (index == NULL)
    return NULL;
  row = gtorch_op_reshape (source, (const gint64[]){ -1 }, 1, error);
  if (row == NULL)
    return NULL;
  if (row->numel < index->numel)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("masked_scatter: source of shape %s has fewer than the %" G_GINT64_FORMAT
                      " elements that the mask asks for"),
                   gtorch_impl_shape_str (source), index->numel);
      return NULL;
    }
  used = gtorch_op_slice (row, 0, 0, index->numel, 1, error);
  return used != NULL ? gtorch_op_put (whole, index, used, FALSE, error) : NULL;
}
