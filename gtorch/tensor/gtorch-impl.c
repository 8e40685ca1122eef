/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Lifetime and geometry of the inner tensor. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "tensor/gtorch-impl-private.h"

#include "tensor/gtorch-recorder-private.h"
#include "base/gtorch-observer-private.h"
#include "device/gtorch-device-private.h"
#include "device/gtorch-thread-private.h"
#include "memory/gtorch-pinned-private.h"
#include "tensor/gtorch-uninitialized-private.h"

/* --- impls --- */

/* Impls are created and freed with every operation: each thread caches some. */
#define POOL_SIZE 64

static __thread GTorchImpl *pool;
static __thread guint pool_length;
static __thread gboolean pool_registered;

static void
pool_drain (gpointer data)
{
  while (pool != NULL)
    {
      GTorchImpl *impl = pool;

      pool = (GTorchImpl *) impl->shape;
      g_free (impl);
    }
  pool_length = POOL_SIZE; /* impls that die later in this thread are freed immediately */
}

static GPrivate pool_cleanup = G_PRIVATE_INIT (pool_drain);

static GTorchImpl *
impl_alloc (guint n_dims)
{
  GTorchImpl *impl;

  if (G_LIKELY (pool != NULL))
    {
      impl = pool;
      pool = (GTorchImpl *) impl->shape;
      pool_length--;
    }
  else
    impl = g_malloc (sizeof (GTorchImpl));

  memset (impl, 0, G_STRUCT_OFFSET (GTorchImpl, inline_dims));
  impl->ref_count = 1;
  impl->n_dims = n_dims;
  if (G_LIKELY (n_dims <= GTORCH_INLINE_DIMS))
    {
      impl->shape = impl->inline_dims;
      impl->strides = impl->inline_dims + GTORCH_INLINE_DIMS;
    }
  else
    {
      impl->shape = g_new (gint64, 2 * n_dims);
      impl->strides = impl->shape + n_dims;
    }
  return impl;
}

static void
impl_free (GTorchImpl *impl)
{
  if (impl->autograd != NULL)
    g_clear_pointer (&impl->autograd, gtorch_recorder->destroy);
  if (impl->storage != NULL)
    gtorch_storage_unref (impl->storage);
  if (impl->shape != impl->inline_dims)
    g_free (impl->shape);
#ifndef __SANITIZE_ADDRESS__
  if (G_LIKELY (pool_length < POOL_SIZE))
    {
      if (G_UNLIKELY (!pool_registered))
        {
          pool_registered = TRUE;
          g_private_set (&pool_cleanup, &pool);
        }
      impl->shape = (gint64 *) pool;
      pool = impl;
      pool_length++;
      return;
    }
#endif
  g_free (impl);
}

void
gtorch_impl_set_geometry (GTorchImpl *impl, const GTorchImpl *from)
{
  const guint n = from->n_dims;

  if (n != impl->n_dims)
    {
      if (impl->shape != impl->inline_dims)
        g_free (impl->shape);
      if (n <= GTORCH_INLINE_DIMS)
        {
          impl->shape = impl->inline_dims;
          impl->strides = impl->inline_dims + GTORCH_INLINE_DIMS;
        }
      else
        {
          impl->shape = g_new (gint64, 2 * n);
          impl->strides = impl->shape + n;
        }
    }
  memcpy (impl->shape, from->shape, n * sizeof (gint64));
  memcpy (impl->strides, from->strides, n * sizeof (gint64));
  impl->n_dims = n;
  impl->dtype = from->dtype;
  impl->device = from->device;
  impl->offset = from->offset;
  impl->numel = from->numel;
  impl->is_contiguous = from->is_contiguous;
  impl->is_silent_view = FALSE;
  impl->inference = from->inference;
}

void
gtorch_contiguous_strides (const gint64 *shape, guint n_dims, gint64 *strides)
{
  gint64 stride = 1;
  guint i = n_dims;

  while (i-- > 0)
    {
      strides[i] = stride;
      stride *= MAX (shape[i], 1);
    }
}

/* Counts the elements and stores the geometry in one pass; strides NULL: contiguous. Returns FALSE in the
 * cases of gtorch_shape_measure (). Usually all dimensions are above 0, and nothing overflows. */
static inline gboolean
measure (const gint64 *shape, const gint64 *strides, guint n_dims, guint dtype, gint64 *to_shape,
         gint64 *to_strides, gint64 *numel, gboolean *is_contiguous)
{
  gboolean is_empty = FALSE, in_order = TRUE, overflows = FALSE;
  gint64 stride = 1, n_bytes;
  guint i = n_dims;

  while (i-- > 0)
    {
      const gint64 size = shape[i], step = strides != NULL ? strides[i] : stride;

      to_shape[i] = size;
      to_strides[i] = step;
      if (strides != NULL)
        in_order &= size == 1 || step == stride;
      if (G_UNLIKELY (size <= 0))
        {
          if (size < 0)
            {
              *numel = -1;
              return FALSE;
            }
          is_empty = TRUE;
        }
      else
        overflows |= __builtin_mul_overflow (stride, size, &stride);
    }
  *numel = is_empty ? 0 : stride;
  *is_contiguous = in_order || *numel <= 1;
  overflows |= __builtin_mul_overflow (stride, (gint64) gtorch_dtype_size (dtype), &n_bytes);
  return !overflows;
}

gboolean
gtorch_shape_measure (const gint64 *shape, guint n_dims, guint dtype, gint64 *strides,
                      gint64 *numel)
{
  gint64 same[GTORCH_MAX_DIMS];
  gboolean is_contiguous;

  return measure (shape, NULL, n_dims, dtype, same, strides, numel, &is_contiguous);
}

void
gtorch_shape_set_error (const gint64 *shape, guint n_dims, GError **error)
{
  guint i;

  for (i = 0; i < n_dims; i++)
    if (shape[i] < 0)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                     _ ("shape %s has a negative dimension"), gtorch_shape_str (shape, n_dims));
        return;
      }
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("the size of shape %s overflows 64 bits"), gtorch_shape_str (shape, n_dims));
}

GTorchImpl *
gtorch_impl_new_strided (GTorchStorage *storage, guint dtype, gint64 offset, const gint64 *shape,
                         const gint64 *strides, guint n_dims)
{
  GTorchImpl *impl = impl_alloc (n_dims);
  gboolean is_contiguous = TRUE;
  gboolean fits = measure (shape, strides, n_dims, dtype, impl->shape, impl->strides, &impl->numel,
                           &is_contiguous);

  /* the creator of a view that has more elements than its base checks the shape */
  g_assert (fits || impl->numel == 0);
  impl->dtype = dtype;
  impl->storage = storage != NULL ? gtorch_storage_ref (storage) : NULL;
  impl->device = storage != NULL ? storage->device : gtorch_device_cpu ();
  impl->is_released = storage == NULL;
  impl->offset = offset;
  impl->is_contiguous = is_contiguous;
  impl->inference = gtorch_thread.no_grad & GTORCH_INFERENCE;
  return impl;
}

GTorchImpl *
gtorch_impl_new (GTorchDevice *device, guint dtype, const gint64 *shape, guint n_dims,
                 GError **error)
{
  GTorchImpl *impl = impl_alloc (n_dims);
  gboolean is_contiguous;

  impl->dtype = dtype;
  impl->is_contiguous = TRUE;
  impl->inference = gtorch_thread.no_grad & GTORCH_INFERENCE;
  impl->device = device;
  if (G_UNLIKELY (!measure (shape, NULL, n_dims, dtype, impl->shape, impl->strides, &impl->numel,
                            &is_contiguous)))
    gtorch_shape_set_error (shape, n_dims, error);
  else
    impl->storage = gtorch_device_alloc (device, gtorch_impl_n_bytes (impl), error);
  if (G_UNLIKELY (impl->storage == NULL))
    {
      gtorch_impl_unref (impl);
      return NULL;
    }
  return impl;
}

GTorchImpl *
gtorch_impl_new_view (GTorchImpl *base, gint64 offset, const gint64 *shape, const gint64 *strides,
                      guint n_dims)
{
  return gtorch_impl_new_strided (base->storage, base->dtype, offset, shape, strides, n_dims);
}

GTorchImpl *
gtorch_impl_alias (GTorchImpl *impl)
{
  GTorchImpl *alias = gtorch_impl_new_strided (impl->storage, impl->dtype, impl->offset,
                                               impl->shape, impl->strides, impl->n_dims);

  alias->device = impl->device; /* for a released tensor, too */
  if (gtorch_impl_is_uninitialized (impl))
    alias->is_released = GTORCH_IMPL_UNINITIALIZED;
  alias->is_number = impl->is_number;
  alias->inference = impl->inference;
  return alias;
}

GTorchImpl *
gtorch_impl_new_uninitialized (GTorchDevice *device, guint dtype)
{
  const gint64 shape = 0;
  GTorchImpl *impl = gtorch_impl_new_strided (NULL, dtype, 0, &shape, NULL, 1);

  impl->device = device;
  impl->is_released = GTORCH_IMPL_UNINITIALIZED;
  return impl;
}

const gchar *
gtorch_impl_loss (const GTorchImpl *impl)
{
  if (gtorch_impl_is_uninitialized (impl))
    return _ ("has no elements yet: the first forward pass of its lazy layer creates them");
  return _ ("was released");
}

gboolean
gtorch_impl_check_memory (const GTorchImpl *impl, const gchar *op, GError **error)
{
  if (impl->storage != NULL)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED, _ ("%s: the tensor of shape %s %s"), op,
               gtorch_impl_shape_str (impl), gtorch_impl_loss (impl));
  return FALSE;
}

gboolean
gtorch_impl_check_write (const GTorchImpl *impl, const gchar *op, GError **error)
{
  if (G_LIKELY (!impl->inference) || gtorch_is_inference ())
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
               _ ("%s: the tensor of shape %s was made in inference mode and cannot be changed in "
                  "place outside of it: clone it before"),
               op, gtorch_impl_shape_str (impl));
  return FALSE;
}

static GTorchImpl *
number_new (guint dtype)
{
  GTorchDevice *cpu = gtorch_device_cpu ();
  GTorchImpl *impl = impl_alloc (0);

  impl->dtype = dtype;
  impl->numel = 1;
  impl->is_contiguous = TRUE;
  impl->is_number = TRUE;
  impl->device = cpu;
  /* A few bytes, in no pool: were they not to be had, GLib itself could not go on either. */
  impl->storage = GTORCH_DEVICE_GET_CLASS (cpu)->alloc (cpu, gtorch_dtype_size (dtype), NULL);
  g_assert (impl->storage != NULL);
  gtorch_observe_storage_new (impl->storage);
  return impl;
}

GTorchImpl *
gtorch_impl_new_number (gdouble value)
{
  GTorchImpl *impl = number_new (GTORCH_DTYPE_FLOAT64);

  *(gdouble *) gtorch_impl_data (impl) = value;
  return impl;
}

GTorchImpl *
gtorch_impl_new_int (gint64 value)
{
  GTorchImpl *impl = number_new (GTORCH_DTYPE_INT64);

  *(gint64 *) gtorch_impl_data (impl) = value;
  return impl;
}

GTorchImpl *
gtorch_impl_new_bool (gboolean value)
{
  GTorchImpl *impl = number_new (GTORCH_DTYPE_BOOL);

  *(guint8 *) gtorch_impl_data (impl) = value != FALSE;
  return impl;
}

GTorchImpl *
gtorch_impl_ref (GTorchImpl *impl)
{
  g_atomic_int_inc (&impl->ref_count);
  return impl;
}

void
gtorch_impl_unref (GTorchImpl *impl)
{
  if (gtorch_drop_reference (&impl->ref_count))
    impl_free (impl);
}

void
gtorch_impl_clear (GTorchImpl **impls, guint n)
{
  guint i;

  for (i = 0; i < n; i++)
    g_clear_pointer (&impls[i], gtorch_impl_unref);
}

/* --- queries --- */

gint64
gtorch_strides_extent (gint64 offset, const gint64 *shape, const gint64 *strides, guint n_dims)
{
  guint i;

  for (i = 0; i < n_dims; i++)
    {
      if (shape[i] == 0)
        return 0;
      if (strides[i] > 0)
        offset += (shape[i] - 1) * strides[i];
    }
  return offset + 1;
}

GTorchImpl *
gtorch_impl_new_mirrored (GTorchImpl *impl, guint64 mask)
{
  gint64 strides[GTORCH_MAX_DIMS];
  gint64 offset = impl->offset;
  guint i;

  for (i = 0; i < impl->n_dims; i++)
    {
      strides[i] = impl->strides[i];
      if (!(mask & (G_GUINT64_CONSTANT (1) << i)))
        continue;
      offset += (impl->shape[i] - 1) * strides[i];
      strides[i] = -strides[i];
    }
  return gtorch_impl_new_view (impl, offset, impl->shape, strides, impl->n_dims);
}

gboolean
gtorch_strides_overlap (const gint64 *shape, const gint64 *strides, guint n_dims)
{
  gint64 sorted[GTORCH_MAX_DIMS], sizes[GTORCH_MAX_DIMS];
  gint64 reach = 0;
  gboolean shares = FALSE;
  guint i, j, n = 0;

  for (i = 0; i < n_dims; i++)
    {
      gint64 stride = ABS (strides[i]);

      if (shape[i] == 0)
        return FALSE;
      if (shape[i] == 1)
        continue;
      shares |= stride == 0;
      for (j = n++; j > 0 && sorted[j - 1] > stride; j--)
        {
          sorted[j] = sorted[j - 1];
          sizes[j] = sizes[j - 1];
        }
      sorted[j] = stride;
      sizes[j] = shape[i];
    }
  /* each stride must exceed the extent of the smaller dimensions; rarer layouts count as overlapping */
  for (i = 0; i < n && !shares; i++)
    {
      shares = sorted[i] <= reach;
      reach += sorted[i] * (sizes[i] - 1);
    }
  return shares;
}

gboolean
gtorch_impl_overlaps_itself (const GTorchImpl *impl)
{
  return !impl->is_contiguous && impl->numel > 1
         && gtorch_strides_overlap (impl->shape, impl->strides, impl->n_dims);
}

const gchar *
gtorch_impl_shape_str (const GTorchImpl *impl)
{
  return gtorch_shape_str (impl->shape, impl->n_dims);
}

gboolean
gtorch_shape_check (const gchar *op, const gint64 *shape, gsize n_dims, guint dtype, GError **error)
{
  gint64 strides[GTORCH_MAX_DIMS], numel;

  if (n_dims > GTORCH_MAX_DIMS)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: %zu dimensions are more than the %d that a tensor can have"), op, n_dims,
                   GTORCH_MAX_DIMS);
      return FALSE;
    }
  if (G_LIKELY (gtorch_shape_measure (shape, n_dims, dtype, strides, &numel)))
    return TRUE;
  gtorch_shape_set_error (shape, n_dims, error);
  g_prefix_error (error, "%s: ", op);
  return FALSE;
}

gboolean
gtorch_normalize_dim (const gchar *op, gint64 dim, guint n_dims, guint *result, GError **error)
{
  gint64 range = MAX (n_dims, 1);

  if (dim < -range || dim >= range)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX,
                   _ ("%s: dim %" PRId64 " is out of the range [%" PRId64 ", %" PRId64
                      "] of a tensor with %u dimensions"),
                   op, dim, -range, range - 1, n_dims);
      return FALSE;
    }
  *result = dim < 0 ? dim + range : dim;
  return TRUE;
}

gboolean
gtorch_normalize_dims (const gchar *op, const gint64 *dims, gsize n, guint n_dims, guint64 *mask,
                       GError **error)
{
  gsize i;
  guint dim;

  *mask = 0;
  if (n == 0)
    *mask = n_dims == 0 ? 1 : (G_GUINT64_CONSTANT (1) << n_dims) - 1;
  for (i = 0; i < n; i++)
    {
      if (!gtorch_normalize_dim (op, dims[i], n_dims, &dim, error))
        return FALSE;
      if (*mask & (G_GUINT64_CONSTANT (1) << dim))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("%s: dim %u appears twice in %s"), op, dim, gtorch_shape_str (dims, n));
          return FALSE;
        }
      *mask |= G_GUINT64_CONSTANT (1) << dim;
    }
  return TRUE;
}

gboolean
gtorch_broadcast_shapes (const gchar *op, const gint64 *a, guint a_dims, const gint64 *b,
                         guint b_dims, gint64 *shape, guint *n_dims, GError **error)
{
  gint64 result[GTORCH_MAX_DIMS];
  guint n = MAX (a_dims, b_dims);
  guint i;

  for (i = 1; i <= n; i++)
    {
      gint64 x = i <= a_dims ? a[a_dims - i] : 1;
      gint64 y = i <= b_dims ? b[b_dims - i] : 1;

      if (x != y && x != 1 && y != 1)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("%s: shapes %s and %s cannot be broadcast: dimension -%u is "
                          "%" PRId64 " and %" PRId64),
                       op, gtorch_shape_str (a, a_dims), gtorch_shape_str (b, b_dims), i, x, y);
          return FALSE;
        }
    }
  for (i = n; i > 0; i--)
    {
      gint64 x = i <= a_dims ? a[a_dims - i] : 1;
      gint64 y = i <= b_dims ? b[b_dims - i] : 1;

      result[n - i] = x == 1 ? y : x;
    }
  memcpy (shape, result, n * sizeof (gint64)); /* shape may be a or b itself */
  *n_dims = n;
  return TRUE;
}

GTorchImpl *
gtorch_impl_new_pinned (guint dtype, const gint64 *shape, guint n_dims, GError **error)
{
  gsize n_bytes = gtorch_dtype_size (dtype);
  GTorchStorage *storage;
  GTorchImpl *impl;
  guint i;

  for (i = 0; i < n_dims; i++)
    if (!g_size_checked_mul (&n_bytes, n_bytes, shape[i]))
      n_bytes = G_MAXSIZE; /* an expanded tensor may be larger than any memory */
  storage = gtorch_pinned_memory->alloc (n_bytes, error);
  if (storage == NULL)
    return NULL;
  impl = gtorch_impl_new_strided (storage, dtype, 0, shape, NULL, n_dims);
  gtorch_storage_unref (storage);
  return impl;
}
