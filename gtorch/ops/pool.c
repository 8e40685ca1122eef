/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/ops/gtorch-cpu-index.h"
#include "cpu/gtorch-cpu-pack.h"
#include "cpu/ops/gtorch-cpu-pool.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"
#include "device/gtorch-scratch-private.h"

typedef GTorchCpuPool Pool;

static gboolean
read_pair (GTorchOpCall *call, const gchar *name, const GTorchAttr *attr, gint64 low, gint64 *pair,
           GError **error)
{
  const gint64 *list = attr->list.data;
  gsize n = attr->list.n;

  if (n != 1 && n != 2)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                         _ ("%s must hold 1 or 2 numbers, it holds %u"), name, (guint) n);
      return FALSE;
    }
  pair[0] = list[0];
  pair[1] = list[n - 1];
  if (MIN (pair[0], pair[1]) < low || MAX (pair[0], pair[1]) > G_MAXINT32)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_INVALID, _ ("%s must be at least %d, it is %s"),
                         name, (int) low, gtorch_shape_str (pair, 2));
      return FALSE;
    }
  return TRUE;
}

/* Computes the sizes of windows and results for an input shape. */
static gboolean
pool_init (Pool *pool, GTorchOpCall *call, const gint64 *shape, guint n_dims, gboolean ceil_mode,
           GError **error)
{
  guint i;

  if (n_dims != 3 && n_dims != 4)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("images of shape %s must have 3 or 4 dimensions"),
                         gtorch_shape_str (shape, n_dims));
      return FALSE;
    }
  for (i = 0; i < 2; i++)
    {
      gint64 n = pool->in[i] = shape[n_dims - 2 + i], rest;

      if (pool->adaptive)
        {
          if (n > 0)
            continue;
          gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                             _ ("images of shape %s have no elements"),
                             gtorch_shape_str (shape, n_dims));
          return FALSE;
        }
      if (pool->padding[i] > pool->kernel[i] / 2)
        {
          gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                             _ ("padding %" G_GINT64_FORMAT
                                " is more than half of the window's size %" G_GINT64_FORMAT),
                             pool->padding[i], pool->kernel[i]);
          return FALSE;
        }
      rest = n + 2 * pool->padding[i] - pool->dilation[i] * (pool->kernel[i] - 1) - 1;
      pool->out[i] = rest < 0 ? 0 : rest / pool->stride[i] + 1;
      if (ceil_mode && rest >= 0 && rest % pool->stride[i] != 0
          && pool->out[i] * pool->stride[i] < n + pool->padding[i])
        pool->out[i]++;
      if (pool->out[i] < 1)
        {
          gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                             _ ("windows of %s do not fit into images of shape %s"),
                             gtorch_shape_str (pool->kernel, 2), gtorch_shape_str (shape, n_dims));
          return FALSE;
        }
    }
  return TRUE;
}

/* Reads the attributes kernel_size, stride and padding. */
static gboolean
read_windows (Pool *pool, GTorchOpCall *call, const GTorchAttr *attrs, GError **error)
{
  pool->dilation[0] = pool->dilation[1] = 1;
  if (!read_pair (call, "kernel_size", &attrs[0], 1, pool->kernel, error)
      || !read_pair (call, "padding", &attrs[2], 0, pool->padding, error))
    return FALSE;
  if (attrs[1].list.n == 0)
    {
      memcpy (pool->stride, pool->kernel, sizeof pool->stride);
      return TRUE;
    }
  return read_pair (call, "stride", &attrs[1], 1, pool->stride, error);
}

static gboolean
pool_read (Pool *pool, GTorchOpCall *call, const GTorchAttr *attrs, const gint64 *shape,
           guint n_dims, GError **error)
{
  memset (pool, 0, sizeof *pool);
  if (call->op->id == GTORCH_OP_MAX_POOL2D_WITH_INDICES
      || call->op->id == GTORCH_OP_MAX_POOL2D_BACKWARD)
    return read_windows (pool, call, attrs, error)
           && read_pair (call, "dilation", &attrs[3], 1, pool->dilation, error)
           && pool_init (pool, call, shape, n_dims, attrs[4].i, error);
  if (call->op->id == GTORCH_OP_ADAPTIVE_AVG_POOL2D
      || call->op->id == GTORCH_OP_ADAPTIVE_AVG_POOL2D_BACKWARD)
    {
      pool->adaptive = TRUE;
      return read_pair (call, "output_size", &attrs[0], 0, pool->out, error)
             && pool_init (pool, call, shape, n_dims, FALSE, error);
    }
  pool->include_pad = attrs[4].i;
  pool->divisor = attrs[5].i;
  return read_windows (pool, call, attrs, error)
         && pool_init (pool, call, shape, n_dims, attrs[3].i, error);
}

static gboolean
set_outputs (Pool *pool, GTorchOpCall *call, GError **error)
{
  const GTorchImpl *self = call->inputs[0];
  gint64 shape[4];
  guint i;

  call->compute = self->dtype;
  memcpy (shape, self->shape, self->n_dims * sizeof (gint64));
  memcpy (shape + self->n_dims - 2, pool->out, sizeof pool->out);
  if (!gtorch_call_check_dtype (call, self->dtype, error)
      || !gtorch_shape_check (call->op->name, shape, self->n_dims, self->dtype, error))
    return FALSE;
  for (i = 0; i < call->n_outputs; i++)
    if (!gtorch_call_set_output (call, i, i == 0 ? self->dtype : GTORCH_DTYPE_INT64, shape,
                                 self->n_dims, error))
      return FALSE;
  return TRUE;
}

static gboolean
shape_forward (GTorchOpCall *call, GError **error)
{
  Pool pool;

  return pool_read (&pool, call, call->attrs, call->inputs[0]->shape, call->inputs[0]->n_dims,
                    error)
         && set_outputs (&pool, call, error);
}

static gboolean
shape_backward (GTorchOpCall *call, GError **error)
{
  const GTorchImpl *upper = call->inputs[0];
  const gint64 *shape = call->attrs[0].list.data;
  guint n_dims = call->attrs[0].list.n;
  Pool pool;

  if (!pool_read (&pool, call, call->attrs + 1, shape, n_dims, error))
    return FALSE;
  if (upper->n_dims != n_dims || memcmp (upper->shape, shape, (n_dims - 2) * sizeof (gint64)) != 0
      || memcmp (upper->shape + n_dims - 2, pool.out, sizeof pool.out) != 0
      || (call->n_inputs > 1 && !gtorch_impl_same_shape (upper, call->inputs[1])))
    {
      gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                         _ ("the gradient %s does not belong to images of shape %s"),
                         gtorch_impl_shape_str (upper), gtorch_shape_str (shape, n_dims));
      return FALSE;
    }
  call->compute = upper->dtype;
  return gtorch_call_check_dtype (call, upper->dtype, error)
         && gtorch_shape_check (call->op->name, shape, n_dims, upper->dtype, error)
         && gtorch_call_set_output (call, 0, upper->dtype, shape, n_dims, error);
}

/* --- kernels, over images --- */

#define MAX_GRADIENT(T)                                                  \
  for (; begin < end; begin++)                                           \
    for (i = 0; i < small; i++)                                          \
      ((T *) pool->y)[begin * big + pool->indices[begin * small + i]] += \
          ((const T *) pool->x)[begin * small + i];

static void
max_gradients (gint64 begin, gint64 end, gpointer user_data)
{
  const Pool *pool = user_data;
  gint64 big = pool->in[0] * pool->in[1], small = pool->out[0] * pool->out[1], i;

  if (pool->dtype == GTORCH_DTYPE_FLOAT32)
    MAX_GRADIENT (float)
  else
    MAX_GRADIENT (double)
}

/* Finds the window of one result along one dimension and returns how many elements count for the mean. */
static gint64
window (const Pool *pool, guint d, gint64 o, gint64 *first, gint64 *last)
{
  gint64 counted;

  if (pool->adaptive)
    {
      *first = o * pool->in[d] / pool->out[d];
      *last = ((o + 1) * pool->in[d] + pool->out[d] - 1) / pool->out[d];
      return *last - *first;
    }
  *first = o * pool->stride[d] - pool->padding[d];
  *last = MIN (*first + pool->kernel[d], pool->in[d] + pool->padding[d]);
  counted = *last - *first;
  *first = MAX (*first, 0);
  *last = MIN (*last, pool->in[d]);
  return pool->include_pad ? counted : *last - *first;
}

/* Windows may have millions of elements, so sums of float32 are kept in float64. */
#define MEAN_OF(T, FORWARD)                                                                      \
  for (; begin < end; begin++)                                                                   \
    {                                                                                            \
      T *small =                                                                                 \
          (T *) (FORWARD ? pool->y : (char *) pool->x) + begin * pool->out[0] * pool->out[1];    \
      T *big = (T *) (FORWARD ? (char *) pool->x : pool->y) + begin * pool->in[0] * pool->in[1]; \
      for (oy = 0; oy < pool->out[0]; oy++)                                                      \
        for (ox = 0; ox < pool->out[1]; ox++, small++)                                           \
          {                                                                                      \
            gint64 y0, y1, x0, x1;                                                               \
            gint64 n = window (pool, 0, oy, &y0, &y1) * window (pool, 1, ox, &x0, &x1);          \
            const gint64 divisor = pool->divisor != 0 ? pool->divisor : n;                       \
            const T share = FORWARD ? 0 : *small * (1 / (T) divisor);                            \
            gdouble sum = 0;                                                                     \
            for (i = y0; i < y1; i++)                                                            \
              for (j = x0; j < x1; j++)                                                          \
                if (FORWARD)                                                                     \
                  sum += big[i * pool->in[1] + j];                                               \
                else                                                                             \
                  big[i * pool->in[1] + j] += share;                                             \
            if (FORWARD)                                                                         \
              *small = (T) (sum / (gdouble) divisor);                                            \
          }                                                                                      \
    }

static void
mean_images (gint64 begin, gint64 end, gpointer user_data)
{
  const Pool *pool = user_data;
  gint64 oy, ox, i, j;

  if (pool->dtype == GTORCH_DTYPE_FLOAT32)
    MEAN_OF (float, TRUE)
  else
    MEAN_OF (double, TRUE)
}

static void
mean_gradients (gint64 begin, gint64 end, gpointer user_data)
{
  const Pool *pool = user_data;
  gint64 oy, ox, i, j;

  if (pool->dtype == GTORCH_DTYPE_FLOAT32)
    MEAN_OF (float, FALSE)
  else
    MEAN_OF (double, FALSE)
}

/* Checks that the indices are within an image: the caller may have changed them since the forward pass. */
static gboolean
are_in_images (GTorchOpCall *call, const GTorchImpl *indices, gint64 plane, GError **error)
{
  const gint64 *index = gtorch_impl_data (indices);
  gint64 i;

  for (i = 0; i < indices->numel; i++)
    if (index[i] < 0 || index[i] >= plane)
      {
        gtorch_call_error (call, error, GTORCH_ERROR_INDEX,
                           _ ("index %" G_GINT64_FORMAT " is out of range for %" G_GINT64_FORMAT
                              " elements"),
                           index[i], plane);
        return FALSE;
      }
  return TRUE;
}

static gboolean
run (GTorchOpCall *call, Pool *pool, void (*func) (gint64, gint64, gpointer), gboolean backward,
     GError **error)
{
  GTorchImpl *output = call->outputs[0];
  gint64 plane = pool->in[0] * pool->in[1];
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  g_autoptr (GTorchImpl) indices = NULL;

  if (output->numel == 0)
    return TRUE;
  pool->dtype = gtorch_dtype_infos[call->compute].compute;
  x = gtorch_cpu_pack (call->inputs[0], pool->dtype, error);
  y = x != NULL ? gtorch_cpu_pack_output (output, pool->dtype, error) : NULL;
  if (y == NULL)
    return FALSE;
  pool->x = gtorch_impl_data (x);
  pool->y = gtorch_impl_data (y);
  if (call->n_outputs > 1)
    pool->indices = gtorch_impl_data (call->outputs[1]);
  if (call->n_inputs > 1)
    {
      indices = gtorch_cpu_private_copy (call->inputs[1], GTORCH_DTYPE_INT64, error);
      if (indices == NULL || !are_in_images (call, indices, plane, error))
        return FALSE;
      pool->indices = gtorch_impl_data (indices);
    }
  if (backward)
    memset (pool->y, 0, gtorch_impl_n_bytes (y));
  gtorch_parallel_for ((backward ? y : x)->numel / plane, 1 + GTORCH_CPU_GRAIN / 2 / plane, func,
                       pool);
  if (pool->failed)
    {
      gtorch_scratch_set_error (pool->out[1], sizeof (gint64), error);
      return FALSE;
    }
  gtorch_cpu_unpack (y, output);
  return TRUE;
}

#define FORWARD(name, func)                                                                      \
  gboolean gtorch_shape_##name (GTorchOpCall *call, GError **error)                              \
  {                                                                                              \
    return shape_forward (call, error);                                                          \
  }                                                                                              \
                                                                                                 \
  gboolean gtorch_cpu_##name (GTorchOpCall *call, GTorchQueue *queue, GError **error)            \
  {                                                                                              \
    Pool pool;                                                                                   \
                                                                                                 \
    return pool_read (&pool, call, call->attrs, call->inputs[0]->shape, call->inputs[0]->n_dims, \
                      error)                                                                     \
           && run (call, &pool, func, FALSE, error);                                             \
  }

#define BACKWARD(name, func)                                                          \
  gboolean gtorch_shape_##name (GTorchOpCall *call, GError **error)                   \
  {                                                                                   \
    return shape_backward (call, error);                                              \
  }                                                                                   \
                                                                                      \
  gboolean gtorch_cpu_##name (GTorchOpCall *call, GTorchQueue *queue, GError **error) \
  {                                                                                   \
    Pool pool;                                                                        \
                                                                                      \
    return pool_read (&pool, call, call->attrs + 1, call->outputs[0]->shape,          \
                      call->outputs[0]->n_dims, error)                                \
           && run (call, &pool, func, TRUE, error);                                   \
  }

FORWARD (max_pool2d_with_indices, gtorch_cpu_max_pool)
FORWARD (avg_pool2d, mean_images)
FORWARD (adaptive_avg_pool2d, mean_images)
BACKWARD (max_pool2d_backward, max_gradients)
BACKWARD (avg_pool2d_backward, mean_gradients)
BACKWARD (adaptive_avg_pool2d_backward, mean_gradients)

GTorchImpl *
gtorch_op_max_pool2d (GTorchImpl *self, const gint64 *kernel_size, gsize n_kernel_size,
                      const gint64 *stride, gsize n_stride, const gint64 *padding, gsize n_padding,
                      const gint64 *dilation, gsize n_dilation, gboolean ceil_mode, GError **error)
{
  GTorchImpl *values = NULL;

  gtorch_op_max_pool2d_with_indices (self, kernel_size, n_kernel_size, stride, n_stride, padding,
                                     n_padding, dilation, n_dilation, ceil_mode, &values, NULL,
                                     error);
  return values;
}

/* --- on GPUs --- */

static gboolean
cuda_run (GTorchOpCall *call, GTorchCudaLane *lane, const Pool *pool, const GtPoolKernels *kernels,
          GError **error)
{
  GTorchImpl *output = call->outputs[0];
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  g_autoptr (GTorchImpl) indices = NULL;
  GtPool p = {
    .in = { pool->in[0], pool->in[1] },
    .out = { pool->out[0], pool->out[1] },
    .kernel = { pool->kernel[0], pool->kernel[1] },
    .stride = { pool->stride[0], pool->stride[1] },
    .padding = { pool->padding[0], pool->padding[1] },
    .dilation = { pool->dilation[0], pool->dilation[1] },
    .adaptive = pool->adaptive,
    .include_pad = pool->include_pad,
    .divisor = pool->divisor,
    .n = output->numel,
  };

  x = gtorch_cuda_pack (call->inputs[0], call->compute, lane, error);
  y = x != NULL ? gtorch_cuda_pack_output (output, call->compute, error) : NULL;
  if (y == NULL)
    return FALSE;
  p.x = gtorch_impl_data (x);
  p.y = gtorch_impl_data (y);
  if (call->n_inputs > 1)
    {
      indices = gtorch_cuda_pack (call->inputs[1], GTORCH_DTYPE_INT64, lane, error);
      if (indices == NULL)
        return FALSE;
      p.indices = gtorch_impl_data (indices);
    }
  if (call->n_outputs > 1)
    p.indices = gtorch_impl_data (call->outputs[1]);
  return gtorch_cuda_run (kernels, call->compute, lane, output->numel, &p, error)
         && gtorch_cuda_unpack (y, output, lane, error);
}

#define CUDA(name, kernel, attrs, images)                                                \
  gboolean gtorch_cuda_##name (GTorchOpCall *call, GTorchCudaLane *lane, GError **error) \
  {                                                                                      \
    Pool pool;                                                                           \
                                                                                         \
    return pool_read (&pool, call, attrs, (images)->shape, (images)->n_dims, error)      \
           && cuda_run (call, lane, &pool, &gtorch_kernels_##kernel, error);             \
  }

CUDA (max_pool2d_with_indices, max_pool, call->attrs, call->inputs[0])
CUDA (avg_pool2d, mean_pool, call->attrs, call->inputs[0])
CUDA (adaptive_avg_pool2d, mean_pool, call->attrs, call->inputs[0])
CUDA (max_pool2d_backward, max_pool_grad, call->attrs + 1, call->outputs[0])
CUDA (avg_pool2d_backward, mean_pool_grad, call->attrs + 1, call->outputs[0])
CUDA (adaptive_avg_pool2d_backward, mean_pool_grad, call->attrs + 1, call->outputs[0])
