/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-dtype-private.h>
#include <gtorch/base/gtorch-error.h>
#include <gtorch/base/gtorch-inner-types-private.h>
#include <gtorch/base/gtorch-text-private.h>
#include <gtorch/memory/gtorch-storage-private.h>

G_BEGIN_DECLS

/* The inner tensor. Operations, autograd, optimizers and graphs work on GTorchImpl: a small
 * reference-counted description of strided elements in a storage. A GTorchTensor (a GObject) is created
 * around it only where a tensor crosses the public API. Its geometry never changes after it was
 * published, except by set_data, resize and release, which must own it exclusively. */

struct _GTorchImpl
{
  gint ref_count;
  guint8 dtype;
  guint8 n_dims;
  guint8 is_contiguous : 1; /* C-contiguous; TRUE for numel <= 1 */
  guint8 is_number : 1;     /* a scalar argument: takes part in type promotion by its kind only */
  /* a view created with the grad mode off: its base does not know of it */
  guint8 is_silent_view : 1;
  /* accessed atomically: storage is NULL, or will be when no call holds it */
  guint8 is_released;
  gint object_lock;
  /* GTORCH_INFERENCE: made in inference mode, or a view of such a tensor, and nothing may record what becomes
   * of it; or 0. Operations give views that of their base when they are recorded. */
  guint8 inference;
  /* NULL once released; does not change during a hold (gtorch-hold-private.h) */
  GTorchStorage *storage;
  GTorchDevice *device; /* that of the storage, even after release */
  gint64 offset;        /* in elements, from the start of the storage */
  gint64 numel;
  gint64 *shape;
  gint64 *strides;          /* in elements */
  GTorchAutograd *autograd; /* NULL if it needs no gradient */
  GTorchTensor *object;     /* weak, protected by object_lock */
  gint64 inline_dims[2 * GTORCH_INLINE_DIMS];
};

/* --- making impls --- */
/* The strides of a contiguous tensor and the number of its elements. FALSE if a dimension is negative, or if
 * those that are not 0 make more bytes than 63 bits can count: so a product of some dimensions of a tensor
 * always fits. The error tells which. */
gboolean gtorch_shape_measure (const gint64 *shape, guint n_dims, guint dtype, gint64 *strides,
                               gint64 *numel);
void gtorch_shape_set_error (const gint64 *shape, guint n_dims, GError **error);
/* Checks the number of dimensions as well; `op` is named in the message. */
gboolean gtorch_shape_check (const gchar *op, const gint64 *shape, gsize n_dims, guint dtype,
                             GError **error);
/* Returns a contiguous, uninitialised tensor. Fails with SHAPE if the size overflows, or OUT_OF_MEMORY;
 * the caller prefixes the error with the name of the operation. */
GTorchImpl *gtorch_impl_new (GTorchDevice *device, guint dtype, const gint64 *shape, guint n_dims,
                             GError **error);
/* References the storage; strides NULL for contiguous. Does not check bounds; a shape with more elements
 * than the base tensor must have passed gtorch_shape_check (). */
GTorchImpl *gtorch_impl_new_strided (GTorchStorage *storage, guint dtype, gint64 offset,
                                     const gint64 *shape, const gint64 *strides, guint n_dims);
/* Returns a view of the same storage and dtype, without autograd. In inference mode it is an inference
 * tensor, whatever the base is. */
GTorchImpl *gtorch_impl_new_view (GTorchImpl *base, gint64 offset, const gint64 *shape,
                                  const gint64 *strides, guint n_dims);
/* Returns a new impl of the same elements without autograd (as for detach ()). */
GTorchImpl *gtorch_impl_alias (GTorchImpl *impl);
/* Scalar arguments: 0-d on the CPU, with is_number set. These functions never fail. */
GTorchImpl *gtorch_impl_new_number (gdouble value);
GTorchImpl *gtorch_impl_new_int (gint64 value);
GTorchImpl *gtorch_impl_new_bool (gboolean value);

/* Copies the geometry, the dtype and the device of another tensor; the storage is the caller's. */
void gtorch_impl_set_geometry (GTorchImpl *impl, const GTorchImpl *from);

GTorchImpl *gtorch_impl_ref (GTorchImpl *impl);
void gtorch_impl_unref (GTorchImpl *impl);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchImpl, gtorch_impl_unref)
void gtorch_impl_clear (GTorchImpl **impls, guint n);

/* --- queries --- */
static inline GTorchDevice *
gtorch_impl_device (const GTorchImpl *impl)
{
  return impl->device;
}

/* A tensor that is released while a call holds it keeps its storage until that call ends. */
static inline gboolean
gtorch_impl_is_released (const GTorchImpl *impl)
{
  return __atomic_load_n (&impl->is_released, __ATOMIC_RELAXED);
}

/* A negative dim counts from the end; the error names op, dim and the range. A 0-d tensor has the dims 0
 * and -1. */
gboolean gtorch_normalize_dim (const gchar *op, gint64 dim, guint n_dims, guint *result,
                               GError **error);
/* Converts several dims to a bit mask; an empty list means all. Duplicates are an error. */
gboolean gtorch_normalize_dims (const gchar *op, const gint64 *dims, gsize n, guint n_dims,
                                guint64 *mask, GError **error);

static inline gboolean
gtorch_same_shape (const gint64 *a, guint n_a, const gint64 *b, guint n_b)
{
  if (n_a != n_b)
    return FALSE;
  while (n_a-- > 0) /* few numbers: faster than a call of memcmp */
    if (a[n_a] != b[n_a])
      return FALSE;
  return TRUE;
}

static inline gboolean
gtorch_impl_same_shape (const GTorchImpl *a, const GTorchImpl *b)
{
  return gtorch_same_shape (a->shape, a->n_dims, b->shape, b->n_dims);
}

/* Returns TRUE if some elements of the geometry share memory. */
gboolean gtorch_strides_overlap (const gint64 *shape, const gint64 *strides, guint n_dims);
/* Returns TRUE if some elements share memory (as in an expanded tensor): it must not be written. */
gboolean gtorch_impl_overlaps_itself (const GTorchImpl *impl);
/* Returns TRUE if both have the same elements in the same order: a write to one changes the other element
 * by element. */
gboolean gtorch_impl_is_same_place (const GTorchImpl *a, const GTorchImpl *b);
/* Returns TRUE if a write to an element of a may change another element of b. May err towards TRUE. */
gboolean gtorch_impl_overlaps (const GTorchImpl *a, const GTorchImpl *b);
/* Returns the extent of a geometry, in elements from the start of the storage; 0 if it has no elements. */
gint64 gtorch_strides_extent (gint64 offset, const gint64 *shape, const gint64 *strides,
                              guint n_dims);
/* Fails for an inference tensor outside of inference mode. */
gboolean gtorch_impl_check_write (const GTorchImpl *impl, const gchar *op, GError **error);
/* Returns a view reversed along the dimensions of the mask; impl must not be empty. */
GTorchImpl *gtorch_impl_new_mirrored (GTorchImpl *impl, guint64 mask);
/* The tensor's shape as gtorch_shape_str () writes it. */
const gchar *gtorch_impl_shape_str (const GTorchImpl *impl);
void gtorch_contiguous_strides (const gint64 *shape, guint n_dims, gint64 *strides);
/* Writes the broadcast of a and b to shape. Returns FALSE with an error naming op and both shapes. */
gboolean gtorch_broadcast_shapes (const gchar *op, const gint64 *a, guint a_dims, const gint64 *b,
                                  guint b_dims, gint64 *shape, guint *n_dims, GError **error);

/* Must be called before the host reads elements: waits for the current stream and for the last writer.
 * Fails in a capture, for a released tensor, and with the error of that work. */
gboolean gtorch_impl_sync (GTorchImpl *impl, GError **error);
/* Does no capture forbid the host to read the tensor now? */
gboolean gtorch_impl_allow_sync (GTorchImpl *impl, GError **error);

static inline gpointer
gtorch_impl_data (const GTorchImpl *impl)
{
  return (char *) impl->storage->data + impl->offset * (gint64) gtorch_dtype_size (impl->dtype);
}

static inline gsize
gtorch_impl_n_bytes (const GTorchImpl *impl)
{
  return (gsize) impl->numel * gtorch_dtype_size (impl->dtype);
}

/* --- the outer tensor --- */
/* Takes ownership of impl and returns its object: the existing one, or a new one. NULL for NULL. */
GTorchTensor *gtorch_tensor_wrap (GTorchImpl *impl) G_GNUC_WARN_UNUSED_RESULT;
/* Borrowed. */
GTorchImpl *gtorch_tensor_get_impl (GTorchTensor *tensor);
/* Returns a new contiguous, uninitialised tensor in pinned memory; fails if the limit is exceeded. */
GTorchImpl *gtorch_impl_new_pinned (guint dtype, const gint64 *shape, guint n_dims, GError **error);

G_END_DECLS
