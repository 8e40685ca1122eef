/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Shared by the loops that index with tensors: checked indices and the blocks that they name. */

#include "config.h"

#include <complex.h>
#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "cpu/gtorch-cpu-cast.h"
#include "cpu/ops/gtorch-cpu-index.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"
#include "ops/gtorch-host-private.h"
#include "device/gtorch-scratch-private.h"

GTorchImpl *
gtorch_cpu_private_copy (GTorchImpl *impl, guint dtype, GError **error)
{
  GTorchImpl *copy = gtorch_impl_new (impl->device, dtype, impl->shape, impl->n_dims, error);

  if (copy != NULL)
    gtorch_cpu_copy (copy, impl);
  return copy;
}

GTorchImpl *
gtorch_cpu_contiguous (GTorchImpl *impl, guint dtype, GError **error)
{
  if (impl->is_contiguous && impl->dtype == dtype)
    return gtorch_impl_ref (impl);
  return gtorch_cpu_private_copy (impl, dtype, error);
}

GTorchImpl *
gtorch_call_read (GTorchOpCall *call, guint i, guint dtype, GError **error)
{
  g_autoptr (GTorchImpl) host = gtorch_impl_to_host (call->op->name, call->inputs[i], error);

  return host != NULL ? gtorch_cpu_contiguous (host, dtype, error) : NULL;
}

#define ADD(name, T, PLUS)                                                                  \
  static void add_##name (char *dst, gint64 dst_stride, const char *src, gint64 src_stride, \
                          gint64 n)                                                         \
  {                                                                                         \
    gint64 i;                                                                               \
                                                                                            \
    if (dst_stride == sizeof (T) && src_stride == sizeof (T))                               \
      {                                                                                     \
        T *d = (T *) dst;                                                                   \
        const T *s = (const T *) src;                                                       \
                                                                                            \
        _Pragma ("omp simd") for (i = 0; i < n; i++) d[i] = (T) (d[i] PLUS s[i]);           \
      }                                                                                     \
    else                                                                                    \
      for (i = 0; i < n; i++)                                                               \
        *(T *) (dst + i * dst_stride) =                                                     \
            (T) (*(T *) (dst + i * dst_stride) PLUS * (const T *) (src + i * src_stride));  \
  }

ADD (f32, float, +)
ADD (f64, double, +)
ADD (u8, guint8, +)
ADD (i16, guint16, +)
ADD (i32, guint32, +)
ADD (i64, guint64, +)
ADD (bool, guint8, |)
ADD (c64, float _Complex, +)
ADD (c128, double _Complex, +)

static void
add_short_floats (guint dtype, char *dst, gint64 dst_stride, const char *src, gint64 src_stride,
                  gint64 n)
{
  GTorchCast load = gtorch_cpu_cast (GTORCH_DTYPE_FLOAT32, dtype);
  GTorchCast store = gtorch_cpu_cast (dtype, GTORCH_DTYPE_FLOAT32);
  float a[64], b[64];
  gint64 i, m;

  for (; n > 0; n -= m, dst += m * dst_stride, src += m * src_stride)
    {
      m = MIN (n, 64);
      load ((char *) a, 4, dst, dst_stride, m);
      load ((char *) b, 4, src, src_stride, m);
      for (i = 0; i < m; i++)
        a[i] += b[i];
      store (dst, dst_stride, (const char *) a, 4, m);
    }
}

static void
add_f16 (char *dst, gint64 dst_stride, const char *src, gint64 src_stride, gint64 n)
{
  add_short_floats (GTORCH_DTYPE_FLOAT16, dst, dst_stride, src, src_stride, n);
}

static void
add_bf16 (char *dst, gint64 dst_stride, const char *src, gint64 src_stride, gint64 n)
{
  add_short_floats (GTORCH_DTYPE_BFLOAT16, dst, dst_stride, src, src_stride, n);
}

GTorchAdd
gtorch_cpu_add (guint dtype)
{
  static const GTorchAdd adds[GTORCH_N_DTYPES] = {
    [GTORCH_DTYPE_FLOAT32] = add_f32,   [GTORCH_DTYPE_FLOAT64] = add_f64,
    [GTORCH_DTYPE_FLOAT16] = add_f16,   [GTORCH_DTYPE_BFLOAT16] = add_bf16,
    [GTORCH_DTYPE_INT8] = add_u8,       [GTORCH_DTYPE_UINT8] = add_u8,
    [GTORCH_DTYPE_INT16] = add_i16,     [GTORCH_DTYPE_INT32] = add_i32,
    [GTORCH_DTYPE_INT64] = add_i64,     [GTORCH_DTYPE_BOOL] = add_bool,
    [GTORCH_DTYPE_COMPLEX64] = add_c64, [GTORCH_DTYPE_COMPLEX128] = add_c128,
  };

  return adds[dtype];
}

static void
out_of_range (GTorchOpCall *call, gint64 index, guint dim, gint64 size, GError **error)
{
  gtorch_call_error (call, error, GTORCH_ERROR_INDEX,
                     _ ("index %" PRId64 " is out of range for dimension %u of size %" PRId64),
                     index, dim, size);
}

/* Indices that are copied at a time, and checked while they are in the cache. */
#define TAKEN 1024

typedef struct
{
  gint64 *data; /* a private copy */
  gint64 last;
  const char *from; /* the original; NULL if data holds the indices already */
  gint64 stride;
  GTorchCast take;
  gint bad;
} Check;

static void
check_part (gint64 begin, gint64 end, gpointer user_data)
{
  Check *check = user_data;
  const gint64 last = check->last;
  gint64 signs = 0, i, m;

  for (; begin < end; begin += m)
    {
      gint64 *data = check->data + begin;

      m = MIN (end - begin, TAKEN);
      if (check->from != NULL)
        check->take ((char *) data, sizeof *data, check->from + begin * check->stride,
                     check->stride, m);
#pragma omp simd reduction(| : signs)
      for (i = 0; i < m; i++)
        /* Becomes negative if an index is negative or greater than last. */
        signs |= data[i] | (last - data[i]);
    }
  if (signs < 0)
    g_atomic_int_set (&check->bad, 1);
}

GTorchImpl *
gtorch_cpu_indices (GTorchOpCall *call, GTorchImpl *index, gint64 size, guint dim, GError **error)
{
  g_autoptr (GTorchImpl) plain =
      gtorch_impl_new (index->device, GTORCH_DTYPE_INT64, index->shape, index->n_dims, error);
  Check check = { .last = size - 1 };
  const gint64 *data;
  gint64 i;

  if (plain == NULL)
    return NULL;
  data = check.data = gtorch_impl_data (plain);
  if (index->is_contiguous)
    {
      check.from = gtorch_impl_data (index);
      check.stride = gtorch_dtype_size (index->dtype);
      check.take = gtorch_cpu_cast (GTORCH_DTYPE_INT64, index->dtype);
    }
  else
    gtorch_cpu_copy (plain, index);
  gtorch_parallel_for (plain->numel, GTORCH_CPU_GRAIN, check_part, &check);
  if (G_LIKELY (plain->numel == 0 || !check.bad))
    return g_steal_pointer (&plain);
  for (i = 0; (guint64) data[i] < (guint64) size; i++)
    ;
  out_of_range (call, data[i], dim, size, error);
  return NULL;
}

/* --- blocks --- */

/* Adds the contribution of one index tensor to the offsets. */
static gboolean
add_offsets (GTorchBlocks *blocks, GTorchOpCall *call, GTorchImpl *index, const gint64 *shape,
             guint n_dims, gint64 dim, gboolean wrap, GError **error)
{
  g_autoptr (GTorchImpl) plain = NULL;
  gint64 size = blocks->indexed->shape[dim];
  gint64 stride = blocks->indexed->strides[dim] * (gint64) blocks->size;
  const gint64 *data;
  gint64 i, rest, unit;

  if (index->numel == blocks->n_index)
    plain = gtorch_cpu_contiguous (index, GTORCH_DTYPE_INT64, error);
  else
    {
      plain = gtorch_impl_new (call->device, GTORCH_DTYPE_INT64, shape, n_dims, error);
      if (plain != NULL)
        gtorch_cpu_copy (plain, index);
    }
  if (plain == NULL)
    return FALSE;
  data = gtorch_impl_data (plain);
  for (i = 0; i < blocks->n_index; i++)
    {
      /* The index is loaded once, since another thread may write to it. */
      const gint64 value = __atomic_load_n (&data[i], __ATOMIC_RELAXED);
      const gint64 at = value + (wrap && value < 0 ? size : 0);

      if (G_UNLIKELY ((guint64) at >= (guint64) size))
        {
          out_of_range (call, value, dim, size, error);
          return FALSE;
        }
      blocks->offsets[i] += at * stride;
    }
  blocks->extent += MAX (size - 1, 0) * stride;
  for (rest = stride; rest != 0; rest = unit)
    {
      unit = blocks->unit % rest;
      blocks->unit = rest;
    }
  return TRUE;
}

gboolean
gtorch_blocks_init (GTorchBlocks *blocks, GTorchOpCall *call, GTorchImpl *indexed,
                    GTorchImpl *const *indices, guint n_indices, const gint64 *dims, gboolean wrap,
                    GError **error)
{
  gint64 shape[GTORCH_MAX_DIMS];
  gint64 contiguous;
  guint n_dims = 0, n_pre = gtorch_index_is_adjacent (dims, n_indices) ? dims[0] : 0;
  guint i, k;

  memset (blocks, 0, sizeof *blocks);
  blocks->indexed = indexed;
  blocks->size = gtorch_dtype_size (indexed->dtype);
  blocks->n_index = blocks->n_pre = blocks->inner = 1;
  for (k = 0; k < n_indices; k++)
    if (!gtorch_broadcast_shapes (call->op->name, shape, n_dims, indices[k]->shape,
                                  indices[k]->n_dims, shape, &n_dims, error))
      return FALSE;
  for (i = 0; i < n_dims; i++)
    blocks->n_index *= shape[i];
  for (i = 0; i < n_pre; i++)
    {
      blocks->pre_shape[i] = indexed->shape[i];
      blocks->pre_strides[i] = indexed->strides[i] * (gint64) blocks->size;
      blocks->n_pre *= indexed->shape[i];
    }
  blocks->n_pre_dims = n_pre;
  for (i = n_pre, k = 0; i < indexed->n_dims; i++)
    if (k < n_indices && dims[k] == i)
      k++;
    else
      {
        blocks->inner_shape[blocks->n_inner_dims] = indexed->shape[i];
        blocks->inner_strides[blocks->n_inner_dims++] = indexed->strides[i];
        blocks->inner *= indexed->shape[i];
      }
  contiguous = 1;
  blocks->inner_contiguous = TRUE;
  for (i = blocks->n_inner_dims; i-- > 0; contiguous *= blocks->inner_shape[i])
    blocks->inner_contiguous &=
        blocks->inner_shape[i] == 1 || blocks->inner_strides[i] == contiguous;

  blocks->offsets = gtorch_scratch_new0 (blocks->n_index, sizeof (gint64), error);
  if (blocks->offsets == NULL)
    return FALSE;
  for (k = 0; k < n_indices; k++)
    if (!add_offsets (blocks, call, indices[k], shape, n_dims, dims[k], wrap, error))
      return FALSE;
  return TRUE;
}

void
gtorch_blocks_clear (GTorchBlocks *blocks)
{
  g_clear_pointer (&blocks->offsets, g_free);
}
