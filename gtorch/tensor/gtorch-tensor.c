/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#include "device/gtorch-device-private.h"
#include "tensor/gtorch-hold-private.h"
#include "base/gtorch-field-private.h"
#include "tensor/gtorch-scope-private.h"
#include "stream/gtorch-stream-private.h"
#include "base/gtorch-references-private.h"
#include "memory/gtorch-pinned-private.h"
#include "tensor/gtorch-recorder-private.h"
#include "tensor/gtorch-tensor-private.h"
#include "tensor/gtorch-uninitialized-private.h"

/**
 * GTorchTensor:
 *
 * An array of numbers of one dtype with any number of dimensions, on a device.
 *
 * A tensor is a view of a storage: several tensors may share memory, like the results of
 * [method@Tensor.transpose] or [method@Tensor.select]. Operations are methods with a #GError; they do not
 * change their operands, except those with `_inplace` in their name.
 *
 * ```c
 * g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (2, 3), GTORCH_DTYPE_FLOAT32, NULL,
 * &error);
 * g_autoptr (GTorchTensor) y = gtorch_tensor_mul (x, x, &error);
 * ```
 *
 * Since: 0.1
 */

G_DEFINE_TYPE (GTorchTensor, gtorch_tensor, G_TYPE_OBJECT)

static void
object_lock (GTorchImpl *impl)
{
  while (__atomic_exchange_n (&impl->object_lock, 1, __ATOMIC_ACQUIRE) != 0)
    g_thread_yield ();
}

static void
object_unlock (GTorchImpl *impl)
{
  __atomic_store_n (&impl->object_lock, 0, __ATOMIC_RELEASE);
}

static inline gboolean
has_one_reference (GTorchTensor *self)
{
  return __atomic_load_n ((gint *) &((GObject *) self)->ref_count, __ATOMIC_ACQUIRE) == 1;
}

/* The thread that drops the last reference is ordered after all that dropped one before. ThreadSanitizer
 * cannot see that in GObject, so tests/tsan adds a release to g_object_unref (). */
static inline void
come_last (GTorchTensor *self)
{
#ifdef __SANITIZE_THREAD__
  __tsan_acquire (self);
#endif
}

/* Making and dropping a GObject costs more than all the rest of a small operation, so each thread keeps
 * some that nobody else ever knew more of than their address: no data, weak reference, toggle reference,
 * closure or signal handler was attached. Taking a reference in dispose keeps such an object alive past
 * g_object_unref(), with nothing in it. */
#define RECYCLED_MAX 32

/* A linked list through the impl fields: libraries opened with dlopen () have little space for
 * thread-local data. */
static __thread GTorchTensor *recycled;
static __thread guint n_recycled;
static __thread gboolean recycling;

/* Another thread has got the object while this one dropped the last reference. GObject accesses the
 * object once more after that, when the other thread may have freed it: a reference keeps it until later. */
static __thread GTorchTensor *resurrected;

static void
drop_recycled (gpointer data)
{
  n_recycled = RECYCLED_MAX + 1; /* this thread caches no more objects */
  g_clear_object (&resurrected);
  while (recycled != NULL)
    {
      GTorchTensor *self = recycled;

      recycled = (GTorchTensor *) self->impl;
      self->impl = NULL;
      g_object_unref (self);
    }
}

static GPrivate recycled_cleanup = G_PRIVATE_INIT (drop_recycled);
static guint notify_signal;
static GQuark data_quark, queue_quark;

typedef struct
{
  gboolean in_dispose, is_ours;
  guint n_others;
} DataCount;

static void
count_data (GQuark key, gpointer data, gpointer user_data)
{
  DataCount *count = user_data;

  if (key == data_quark)
    count->is_ours = TRUE;
  else
    count->n_others += !(count->in_dispose && key == queue_quark);
}

/* In dispose the list of data may have an entry of GObject's own, the frozen notify queue. GObject adds
 * and removes it at each last unref: a permanent entry of the library avoids reallocating the list each
 * time. */
static gboolean
is_plain (GTorchTensor *self, gboolean in_dispose)
{
  GObject *object = (GObject *) self;
  DataCount count = { .in_dispose = in_dispose };

  if (object->qdata != NULL) /* an entry, or the flag of floating references */
    {
      g_datalist_foreach (&object->qdata, count_data, &count);
      if (count.n_others > 0 || g_object_is_floating (object))
        return FALSE;
    }
  if (g_signal_handler_find (self, G_SIGNAL_MATCH_ID, notify_signal, 0, NULL, NULL, NULL) != 0)
    return FALSE;
  if (G_UNLIKELY (in_dispose && !count.is_ours))
    g_object_set_qdata (object, data_quark, &data_quark);
  return TRUE;
}

static inline void
clean_up_later (void)
{
  if (G_UNLIKELY (!recycling))
    {
      recycling = TRUE;
      g_private_set (&recycled_cleanup, &recycling); /* anything but NULL */
    }
}

/* Makes the object unreachable through its impl. Returns FALSE if it already is. */
static gboolean
hide (GTorchTensor *self)
{
  GTorchImpl *impl = self->impl;
  gboolean alone;

  object_lock (impl);
  alone = has_one_reference (self);
  if (impl->object == self)
    impl->object = NULL;
  object_unlock (impl);
  return alone;
}

static gboolean
may_recycle (GTorchTensor *self, gboolean in_dispose)
{
#ifdef __SANITIZE_ADDRESS__
  return FALSE;
#endif
  return G_LIKELY (n_recycled < RECYCLED_MAX) && G_OBJECT_TYPE (self) == GTORCH_TYPE_TENSOR
         && is_plain (self, in_dispose);
}

/* For a hidden object. Takes its last reference. */
static void
recycle (GTorchTensor *self)
{
  GTorchImpl *impl = self->impl;

  come_last (self);
  clean_up_later ();
  self->impl = (GTorchImpl *) recycled;
  recycled = self;
  n_recycled++;
  gtorch_impl_unref (impl); /* must be last: it may free, and recycle, other objects */
}

/* In dispose GObject's own entry looks like that of a program that has frozen notifications. */
static inline gboolean
is_frozen (GTorchTensor *self)
{
  return ((GObject *) self)->qdata != NULL
         && g_object_get_qdata ((GObject *) self, queue_quark) != NULL;
}

static GTorchTensor *
tensor_new (GTorchImpl *impl)
{
  GTorchTensor *self = NULL;

  while (G_LIKELY (self == NULL && n_recycled - 1 < RECYCLED_MAX))
    {
      self = recycled;
      recycled = (GTorchTensor *) self->impl;
      n_recycled--;
      self->impl = NULL;
      if (G_UNLIKELY (is_frozen (self)))
        g_clear_object (&self);
    }
  if (G_UNLIKELY (self == NULL))
    self = g_object_new (GTORCH_TYPE_TENSOR, NULL);
  self->impl = impl;
  return self;
}

static void
gtorch_tensor_dispose (GObject *object)
{
  GTorchTensor *self = (GTorchTensor *) object;

  /* from here on the impl creates a new object if one is needed; this one keeps the impl until finalize */
  if (self->impl != NULL)
    {
      if (G_LIKELY (hide (self)))
        {
          if (may_recycle (self, TRUE))
            {
              /* the cache's reference, without a locked instruction: the object is hidden */
              __atomic_store_n ((gint *) &((GObject *) self)->ref_count, 2, __ATOMIC_RELAXED);
              recycle (self);
              return;
            }
        }
      else if (resurrected == NULL)
        {
          resurrected = g_object_ref (self);
          clean_up_later ();
        }
    }
  G_OBJECT_CLASS (gtorch_tensor_parent_class)->dispose (object);
}

static void
gtorch_tensor_finalize (GObject *object)
{
  GTorchTensor *self = GTORCH_TENSOR (object);

  if (self->impl != NULL)
    gtorch_impl_unref (self->impl);
  G_OBJECT_CLASS (gtorch_tensor_parent_class)->finalize (object);
}

typedef GTorchTensor Self;

static const GTorchField fields[] = {
  /**
   * GTorchTensor:dtype:
   *
   * The type of the elements.
   *
   * Since: 0.1
   */
  { "dtype",
    GTORCH_PROPERTY_ENUM (GTorchDType, gtorch_dtype_get_type, gtorch_tensor_get_dtype, NULL),
    .value = GTORCH_DTYPE_FLOAT32 },
  /**
   * GTorchTensor:device:
   *
   * The device that holds the elements.
   *
   * Since: 0.1
   */
  { "device",
    GTORCH_PROPERTY_OBJECT (GTorchDevice, gtorch_device_get_type, gtorch_tensor_get_device, NULL) },
  /**
   * GTorchTensor:numel:
   *
   * The number of elements.
   *
   * Since: 0.1
   */
  { "numel", GTORCH_PROPERTY_INT64 (gtorch_tensor_get_numel, NULL), .high = INFINITY },
  /**
   * GTorchTensor:pinned: (getter is_pinned)
   *
   * Whether the elements are in pinned memory of the host; see [method@Tensor.pin_memory].
   *
   * Since: 0.1
   */
  { "pinned", GTORCH_PROPERTY_BOOL (gtorch_tensor_is_pinned, NULL) },
};

static void
add_references (gpointer object, GTorchReferences *references)
{
  gtorch_references_add_impl (references, GTORCH_TENSOR (object)->impl);
}

static gboolean
leads_nowhere (gpointer object, GTorchReferences *references)
{
  GTorchImpl *impl = GTORCH_TENSOR (object)->impl;

  return impl == NULL || !gtorch_references_has_graph (references)
         || __atomic_load_n (&impl->autograd, __ATOMIC_ACQUIRE) == NULL;
}

static GTorchReferencesType references_type = { .look = add_references,
                                                .leads_nowhere = leads_nowhere };

static void
gtorch_tensor_class_init (GTorchTensorClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  notify_signal = g_signal_lookup ("notify", G_TYPE_OBJECT);
  data_quark = g_quark_from_static_string ("gtorch-tensor");
  queue_quark = g_quark_from_static_string ("GObject-notify-queue");
  object_class->dispose = gtorch_tensor_dispose;
  object_class->finalize = gtorch_tensor_finalize;
  GTORCH_FIELDS (klass, fields);
  gtorch_recorder->install_properties (object_class);
  references_type.type = GTORCH_TYPE_TENSOR;
  gtorch_references_add_type (&references_type);
}

static void
gtorch_tensor_init (GTorchTensor *self)
{
}

GTorchTensor *
gtorch_tensor_wrap_as (GType type, GTorchImpl *impl)
{
  GTorchTensor *self = g_object_new (type, NULL);

  g_assert (impl->object == NULL);
  self->impl = impl;
  impl->object = self;
  return self;
}

GTorchTensor *
gtorch_tensor_wrap (GTorchImpl *impl)
{
  GTorchTensor *self, *made;

  if (impl == NULL)
    return NULL;
  if (G_UNLIKELY (resurrected != NULL))
    g_clear_object (&resurrected);

  if (G_LIKELY (g_atomic_int_get (&impl->ref_count) == 1 && impl->object == NULL))
    {
      self = tensor_new (impl);
      impl->object = self;
      if (G_UNLIKELY (gtorch_scope_current != NULL))
        gtorch_scope_add (self);
      return self;
    }

  object_lock (impl);
  self = impl->object;
  if (self != NULL)
    g_object_ref (self);
  object_unlock (impl);
  if (self != NULL)
    {
      gtorch_impl_unref (impl);
      return self;
    }

  made = g_object_new (GTORCH_TYPE_TENSOR, NULL);
  object_lock (impl);
  self = impl->object;
  if (self != NULL)
    g_object_ref (self);
  else
    {
      made->impl = impl;
      impl->object = made;
    }
  object_unlock (impl);
  if (self == NULL)
    {
      if (G_UNLIKELY (gtorch_scope_current != NULL))
        gtorch_scope_add (made);
      return made;
    }
  g_object_unref (made);
  gtorch_impl_unref (impl);
  return self;
}

/**
 * gtorch_tensor_unref: (skip)
 * @self: a tensor
 *
 * Drops a reference. It does the same as g_object_unref(), in less than half the time for the last
 * reference to an object to which nothing is attached: no data, weak reference or signal handler.
 * g_autoptr() of tensors calls it.
 *
 * ```c
 * g_clear_pointer (&x, gtorch_tensor_unref);
 * ```
 *
 * Since: 0.1
 */
void
gtorch_tensor_unref (GTorchTensor *self)
{
  GTorchImpl *impl;
  gboolean alone = FALSE;

  g_return_if_fail (GTORCH_IS_TENSOR (self));

  impl = self->impl;
  if (impl != NULL && has_one_reference (self))
    {
      /* no other thread can get a first reference from the impl meanwhile */
      object_lock (impl);
      alone = has_one_reference (self) && may_recycle (self, FALSE);
      if (alone && impl->object == self)
        impl->object = NULL;
      object_unlock (impl);
    }
  if (alone)
    recycle (self);
  else
    g_object_unref (self);
}

void
gtorch_tensor_let_go (GTorchTensor *tensor)
{
  GTorchImpl *impl = tensor->impl, *empty;

  if (impl == NULL || gtorch_impl_is_released (impl))
    return;
  /* released from the start: no other thread knows it, so none has to be checked */
  empty = gtorch_impl_new_strided (NULL, impl->dtype, impl->offset, impl->shape, impl->strides,
                                   impl->n_dims);
  empty->device = impl->device;
  empty->object = tensor;
  object_lock (impl);
  if (impl->object == tensor)
    impl->object = NULL;
  tensor->impl = empty;
  object_unlock (impl);
  gtorch_impl_unref (impl);
}

GTorchImpl *
gtorch_tensor_get_impl (GTorchTensor *tensor)
{
  if (G_UNLIKELY (tensor->impl == NULL))
    {
      /* A bare g_object_new (GTORCH_TYPE_TENSOR): an empty float32 tensor, like torch.Tensor (). */
      const gint64 shape[] = { 0 };
      GTorchDevice *cpu = gtorch_device_cpu ();
      GTorchStorage *storage = GTORCH_DEVICE_GET_CLASS (cpu)->alloc (cpu, 0, NULL);
      GTorchImpl *impl;

      g_assert (storage != NULL); /* of zero bytes */
      impl = gtorch_impl_new_strided (storage, GTORCH_DTYPE_FLOAT32, 0, shape, NULL, 1);
      gtorch_storage_unref (storage);
      impl->object = tensor;
      if (!g_atomic_pointer_compare_and_exchange (&tensor->impl, NULL, impl))
        {
          impl->object = NULL;
          gtorch_impl_unref (impl);
        }
    }
  return tensor->impl;
}

GTorchImpl **
gtorch_tensors_unwrap (GTorchTensor **tensors, gsize n)
{
  GTorchImpl **impls = g_new (GTorchImpl *, MAX (n, 1));
  gsize i;

  for (i = 0; i < n; i++)
    impls[i] = GTORCH_IS_TENSOR (tensors[i]) ? gtorch_tensor_unwrap (tensors[i]) : NULL;
  return impls;
}

static void
clear_entry (gpointer tensor)
{
  g_clear_object (&tensor);
}

/* Entries may be NULL. */
GPtrArray *
gtorch_tensors_wrap (GPtrArray *impls)
{
  GPtrArray *tensors;
  guint i;

  if (impls == NULL)
    return NULL;
  tensors = g_ptr_array_new_full (impls->len, clear_entry);
  for (i = 0; i < impls->len; i++)
    g_ptr_array_add (tensors, gtorch_tensor_wrap (impls->pdata[i]));
  g_ptr_array_set_free_func (impls, NULL); /* the tensors have taken its references */
  g_ptr_array_unref (impls);
  return tensors;
}

/**
 * gtorch_tensor_get_dtype:
 * @self: a tensor
 *
 * Gets the type of the elements.
 *
 * Returns: the dtype
 *
 * Since: 0.1
 */
GTorchDType
gtorch_tensor_get_dtype (GTorchTensor *self)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (self), GTORCH_DTYPE_NONE);
  return gtorch_tensor_unwrap (self)->dtype;
}

/**
 * gtorch_tensor_get_device:
 * @self: a tensor
 *
 * Gets the device that holds the elements.
 *
 * Returns: (transfer none): the device
 *
 * Since: 0.1
 */
GTorchDevice *
gtorch_tensor_get_device (GTorchTensor *self)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  return gtorch_impl_device (gtorch_tensor_unwrap (self));
}

/**
 * gtorch_tensor_get_device_index:
 * @self: a tensor
 *
 * Gets the index of the GPU that holds the elements.
 *
 * Returns: the [property@Device:index] of the GPU; -1 if the tensor is on the CPU
 *
 * Since: 0.1
 */
gint
gtorch_tensor_get_device_index (GTorchTensor *self)
{
  GTorchDevice *device;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), -1);
  device = gtorch_impl_device (gtorch_tensor_unwrap (self));
  return gtorch_device_is_host (device) ? -1 : (gint) device->index;
}

/**
 * gtorch_tensor_record_stream:
 * @self: a tensor
 * @stream: a stream of the tensor's device
 * @error: return location for an error
 *
 * Prevents reuse of the memory until the work that is now in the stream's queue is done.
 *
 * Operations do so themselves. This is for work that another library has enqueued
 * ([method@Stream.get_handle]): call it after that and before the tensor is dropped. It does not order
 * the work of two streams.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_RELEASED, or with %GTORCH_ERROR_DEVICE_MISMATCH if
 *   the stream is on another device
 *
 * Since: 0.1
 */
gboolean
gtorch_tensor_record_stream (GTorchTensor *self, GTorchStream *stream, GError **error)
{
  GTORCH_HOLD_TENSOR (self);
  GTorchImpl *impl;
  GTorchDevice *device;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_STREAM (stream), FALSE);
  impl = gtorch_tensor_unwrap (self);
  if (impl->storage == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED,
                   _ ("record_stream: the tensor of shape %s was released"),
                   gtorch_impl_shape_str (impl));
      return FALSE;
    }
  device = impl->storage->device;
  if (stream->device != device)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH,
                   _ ("record_stream: the tensor of shape %s is on %s, the stream on %s"),
                   gtorch_impl_shape_str (impl), gtorch_device_name (device),
                   gtorch_device_name (stream->device));
      return FALSE;
    }
  return GTORCH_DEVICE_GET_CLASS (device)->record_stream == NULL
         || GTORCH_DEVICE_GET_CLASS (device)->record_stream (device, impl->storage, stream, error);
}

/**
 * gtorch_tensor_get_n_dims:
 * @self: a tensor
 *
 * Gets the number of dimensions; 0 for a single number.
 *
 * Returns: the number of dimensions
 *
 * Since: 0.1
 */
guint
gtorch_tensor_get_n_dims (GTorchTensor *self)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (self), 0);
  return gtorch_tensor_unwrap (self)->n_dims;
}

/**
 * gtorch_tensor_get_shape:
 * @self: a tensor
 * @n_dims: (out): the number of dimensions
 *
 * Gets the sizes of the dimensions, outermost first. The array belongs to the tensor.
 *
 * Returns: (array length=n_dims) (transfer none): the sizes
 *
 * Since: 0.1
 */
const gint64 *
gtorch_tensor_get_shape (GTorchTensor *self, gsize *n_dims)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  g_return_val_if_fail (n_dims != NULL, NULL);
  *n_dims = gtorch_tensor_unwrap (self)->n_dims;
  return self->impl->shape;
}

/**
 * gtorch_tensor_get_strides:
 * @self: a tensor
 * @n_dims: (out): the number of dimensions
 *
 * Gets the distance of neighbouring elements in the storage, for each dimension. The array belongs to the
 * tensor.
 *
 * Returns: (array length=n_dims) (transfer none): the strides in elements
 *
 * Since: 0.1
 */
const gint64 *
gtorch_tensor_get_strides (GTorchTensor *self, gsize *n_dims)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  g_return_val_if_fail (n_dims != NULL, NULL);
  *n_dims = gtorch_tensor_unwrap (self)->n_dims;
  return self->impl->strides;
}

/**
 * gtorch_tensor_get_size:
 * @self: a tensor
 * @dim: a dimension; negative ones count from the end
 * @error: return location for an error
 *
 * Gets the size of one dimension.
 *
 * Returns: the size, or -1 with %GTORCH_ERROR_INDEX if there is no such dimension
 *
 * Since: 0.1
 */
gint64
gtorch_tensor_get_size (GTorchTensor *self, gint dim, GError **error)
{
  GTorchImpl *impl;
  guint index;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), -1);
  impl = gtorch_tensor_unwrap (self);
  if (impl->n_dims == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX,
                   _ ("size: dim %d of a tensor without dimensions"), dim);
      return -1;
    }
  if (!gtorch_normalize_dim ("size", dim, impl->n_dims, &index, error))
    return -1;
  return impl->shape[index];
}

/**
 * gtorch_tensor_get_numel:
 * @self: a tensor
 *
 * Gets the number of elements, the product of the shape.
 *
 * Returns: the number of elements
 *
 * Since: 0.1
 */
gint64
gtorch_tensor_get_numel (GTorchTensor *self)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (self), 0);
  return gtorch_tensor_unwrap (self)->numel;
}

/**
 * gtorch_tensor_get_storage_offset:
 * @self: a tensor
 *
 * Gets the offset of the tensor in its storage.
 *
 * Returns: the offset in elements
 *
 * Since: 0.1
 */
gint64
gtorch_tensor_get_storage_offset (GTorchTensor *self)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (self), 0);
  return gtorch_tensor_unwrap (self)->offset;
}

/**
 * gtorch_tensor_get_version:
 * @self: a tensor
 *
 * Gets the number of in-place writes to the storage. Autograd compares it to find values that changed
 * after they were saved.
 *
 * Returns: the count
 *
 * Since: 0.1
 */
guint
gtorch_tensor_get_version (GTorchTensor *self)
{
  GTORCH_HOLD_TENSOR (self);
  GTorchImpl *impl;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), 0);
  impl = gtorch_tensor_unwrap (self);
  return impl->storage != NULL ? (guint) g_atomic_int_get (&impl->storage->version) : 0;
}

/**
 * gtorch_tensor_is_inference:
 * @self: a tensor
 *
 * Tells whether the tensor was made in inference mode, or is a view of one that was; see
 * [func@inference_mode].
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_tensor_is_inference (GTorchTensor *self)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (self), FALSE);
  return gtorch_tensor_unwrap (self)->inference != 0;
}

/**
 * gtorch_tensor_is_contiguous:
 * @self: a tensor
 *
 * Tells whether the tensor is C-contiguous.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_tensor_is_contiguous (GTorchTensor *self)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (self), FALSE);
  return gtorch_tensor_unwrap (self)->is_contiguous;
}

/**
 * gtorch_tensor_is_released:
 * @self: a tensor
 *
 * Tells whether the memory was released with [method@Tensor.release]. A parameter of a lazy layer that was
 * not used yet was not released: [func@is_lazy] tells of it.
 *
 * Returns: %TRUE if the tensor can no longer be used
 *
 * Since: 0.1
 */
gboolean
gtorch_tensor_is_released (GTorchTensor *self)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (self), FALSE);
  return gtorch_impl_is_released (gtorch_tensor_unwrap (self))
         && !gtorch_impl_is_uninitialized (gtorch_tensor_unwrap (self));
}

/**
 * gtorch_tensor_shares_storage:
 * @self: a tensor
 * @other: another tensor
 *
 * Tells whether the two are views of one storage, so that a write to one may change the other. What DLPack
 * has brought back is of the storage that it came from.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_tensor_shares_storage (GTorchTensor *self, GTorchTensor *other)
{
  GTORCH_HOLD_TENSOR (self);
  GTORCH_HOLD_TENSOR (other);
  const GTorchStorage *a, *b;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (other), FALSE);
  a = gtorch_tensor_unwrap (self)->storage;
  b = gtorch_tensor_unwrap (other)->storage;
  return a != NULL && b != NULL
         && (a == b
             || (a->device == b->device && a->data != NULL && b->data != NULL
                 && (const gchar *) a->data < (const gchar *) b->data + b->n_bytes
                 && (const gchar *) b->data < (const gchar *) a->data + a->n_bytes));
}

/**
 * gtorch_tensor_is_pinned:
 * @self: a tensor
 *
 * Tells whether the elements are in pinned memory, as in results of [method@Tensor.pin_memory] and their
 * views.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_tensor_is_pinned (GTorchTensor *self)
{
  GTORCH_HOLD_TENSOR (self);
  GTorchStorage *storage;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), FALSE);
  storage = gtorch_tensor_unwrap (self)->storage;
  return storage != NULL && gtorch_storage_is_pinned (storage);
}
