/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Tensors for other processes. What the other process gets was written by a process that it need not
 * trust: all numbers are checked before they are used. */

#include "config.h"

#include "elements/gtorch-tensor-handle.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n-lib.h>
#include <string.h>
#include <unistd.h>

#include "autograd/gtorch-autograd-private.h"
#include "device/gtorch-device-info.h"
#include "device/gtorch-device-private.h"
#include "elements/gtorch-loan-private.h"
#include "elements/gtorch-shared-memory-private.h"
#include "memory/gtorch-memory-pool-private.h"
#include "memory/gtorch-share-private.h"
#include "ops/gtorch-host-private.h"
#include "stream/gtorch-stream-private.h"
#include "tensor/gtorch-hold-private.h"
#include "tensor/gtorch-tensor-private.h"

/**
 * GTorchTensorHandle:
 *
 * Names the memory of a tensor to another process.
 *
 * The process that has the tensor makes a handle and sends its bytes and file descriptors, for example in
 * a message over a Unix socket or D-Bus. The other process makes a handle of them and opens it: its tensor
 * has the same memory, so that each process sees what the other one writes.
 *
 * ```c
 * g_autoptr (GTorchTensorHandle) handle = gtorch_tensor_handle_new (tensor, &error);
 * GBytes *bytes = gtorch_tensor_handle_get_bytes (handle);
 * const gint *fds = gtorch_tensor_handle_get_fds (handle, &n_fds);
 * …
 * g_autoptr (GTorchTensorHandle) theirs =
 *     gtorch_tensor_handle_new_from_bytes (bytes, fds, n_fds, &error);
 * g_autoptr (GTorchTensor) same = gtorch_tensor_handle_open (theirs, &error);
 * ```
 *
 * Memory of the CPU is kept by whoever has it, and moves to shared memory if it is not there yet
 * ([method@Tensor.share_memory]). Memory of a GPU belongs to the process that has allocated it. That
 * process keeps it as long as handles in any process have file descriptors of it, and tensors that were
 * opened by them exist; it has to live as long as they are used. A tensor that was opened cannot be handed
 * on to a third process: copy it.
 *
 * The current stream of the process that opens the tensor waits for what the current stream of the other
 * one had to do for it when the handle was made. Later work of the processes is not ordered: use an event
 * with %GTORCH_EVENT_INTERPROCESS for that.
 *
 * Since: 0.1
 */

#define MAGIC  "gtorch-tensor-1"
#define FORMAT "(sssxaxaxtayttayv)"

struct _GTorchTensorHandle
{
  GObject parent_instance;
  GBytes *bytes;          /* NULL in an object that g_object_new () gives */
  GArray *fds;            /* gint */
  GTorchLoan *loan;       /* of a handle that was made of a tensor on another device than the CPU */
  gboolean has_loaned_fd; /* the last file descriptor belongs to the loan */
};

/* What the bytes say. The strings and arrays are those of the variant. */
typedef struct
{
  GVariant *variant, *shape_variant, *strides_variant, *process_variant, *event, *memory;
  const gchar *magic, *device, *dtype_name;
  guint dtype;
  gint64 offset;
  const gint64 *shape, *strides;
  gsize n_dims, n_strides;
  guint64 n_bytes, loan, n_fds;
  const guint8 *process;
  gsize n_process;
} Described;

G_DEFINE_TYPE (GTorchTensorHandle, gtorch_tensor_handle, G_TYPE_OBJECT)

static void
gtorch_tensor_handle_finalize (GObject *object)
{
  GTorchTensorHandle *self = GTORCH_TENSOR_HANDLE (object);
  guint i;

  for (i = 0; i < self->fds->len - (self->has_loaned_fd ? 1 : 0); i++)
    close (g_array_index (self->fds, gint, i));
  g_clear_pointer (&self->bytes, g_bytes_unref);
  g_array_unref (self->fds);
  g_clear_pointer (&self->loan, gtorch_loan_unref);
  G_OBJECT_CLASS (gtorch_tensor_handle_parent_class)->finalize (object);
}

static void
gtorch_tensor_handle_class_init (GTorchTensorHandleClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_tensor_handle_finalize;
}

static void
gtorch_tensor_handle_init (GTorchTensorHandle *self)
{
  self->fds = g_array_new (FALSE, FALSE, sizeof (gint));
}

/* --- memory of the host --- */

/* Is the memory one that other processes may have for as long as they like? */
static GTorchSharedMemory *
find_lasting (const GTorchStorage *storage)
{
  GTorchSharedMemory *memory = gtorch_shared_memory_find (storage);

  return memory != NULL && gtorch_shared_memory_is_lasting (memory) ? memory : NULL;
}

static gboolean
check_movable (GTorchImpl *impl, GError **error)
{
  const GTorchDeviceClass *klass = GTORCH_DEVICE_GET_CLASS (impl->device);
  const gchar *why = NULL;

  if (klass->shares == NULL || klass->shares->move == NULL)
    why = N_ ("the device cannot share memory with other processes");
  else if (impl->storage->free_func != NULL)
    why = N_ ("the memory is pinned, or not the library's own, and others would not see it move: "
              "clone the tensor");
  if (why == NULL)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
               _ ("share_memory: tensor of shape %s on %s: %s"), gtorch_impl_shape_str (impl),
               gtorch_device_name (impl->device), _ (why));
  return FALSE;
}

/* Moves the memory unless it is shared already. */
static gboolean
share_host_memory (GTorchImpl *impl, GError **error)
{
  const struct _GTorchShareBackend *shares = GTORCH_DEVICE_GET_CLASS (impl->device)->shares;

  if (shares != NULL && shares->move != NULL
      && (impl->storage->n_bytes == 0 || gtorch_shared_memory_find (impl->storage) != NULL))
    return TRUE;
  return check_movable (impl, error) && gtorch_impl_wait ("share_memory", impl, error)
         && gtorch_shared_memory_move (impl->storage, error);
}

/**
 * gtorch_tensor_share_memory:
 * @self: a tensor
 * @error: return location for an error
 *
 * Moves the memory of a tensor on the CPU to memory that other processes can have, too, with what is in it.
 *
 * All tensors that have the same memory, such as views, move along; no other thread may use them
 * meanwhile. Processes that are forked afterwards, and those that get the tensor by a
 * [class@TensorHandle], have the same elements. Nothing happens if the memory is shared already, or is
 * that of a GPU, which other processes can open where it is.
 *
 * ```c
 * gtorch_tensor_share_memory (weights, &error);
 * ```
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID while another library has the
 *   memory, by DLPack or as bytes, with %GTORCH_ERROR_NOT_SUPPORTED for pinned memory and memory of other
 *   libraries, %GTORCH_ERROR_RELEASED for a tensor without memory, %GTORCH_ERROR_CAPTURE in a capture, or
 *   %GTORCH_ERROR_OUT_OF_MEMORY
 *
 * Since: 0.1
 */
gboolean
gtorch_tensor_share_memory (GTorchTensor *self, GError **error)
{
  GTORCH_HOLD_TENSOR (self);
  GTorchImpl *impl;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), FALSE);
  impl = gtorch_tensor_unwrap (self);
  if (gtorch_impl_is_released (impl))
    return gtorch_impl_wait ("share_memory", impl, error);
  if (GTORCH_DEVICE_GET_CLASS (impl->device)->shares != NULL
      && GTORCH_DEVICE_GET_CLASS (impl->device)->shares->describe != NULL)
    return TRUE;
  return share_host_memory (impl, error);
}

/**
 * gtorch_tensor_is_shared:
 * @self: a tensor
 *
 * Tells whether other processes can have the memory of the tensor as it is: whether it is memory of a GPU,
 * or shared memory of the CPU.
 *
 * Returns: %TRUE if the memory need not move to be shared
 *
 * Since: 0.1
 */
gboolean
gtorch_tensor_is_shared (GTorchTensor *self)
{
  GTORCH_HOLD_TENSOR (self);
  GTorchImpl *impl;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), FALSE);
  impl = gtorch_tensor_unwrap (self);
  if (impl->device->type != GTORCH_DEVICE_TYPE_CPU)
    return GTORCH_DEVICE_GET_CLASS (impl->device)->shares != NULL;
  return impl->storage != NULL && gtorch_shared_memory_find (impl->storage) != NULL;
}

/* --- making a handle --- */

static const guint8 *
own_process (void)
{
  static guint8 process[16];
  static gsize done;
  guint i;

  if (g_once_init_enter (&done))
    {
      for (i = 0; i < sizeof process; i++)
        process[i] = (guint8) g_random_int ();
      g_once_init_leave (&done, 1);
    }
  return process;
}

static GVariant *
bytes_variant (gconstpointer data, gsize n)
{
  return g_variant_new_fixed_array (G_VARIANT_TYPE_BYTE, data, n, 1);
}

/* Describes the tensor; memory and event are floating references. */
static void
describe (GTorchTensorHandle *self, GTorchImpl *impl, GVariant *event, GVariant *memory)
{
  const gboolean is_host = impl->device->type == GTORCH_DEVICE_TYPE_CPU;
  g_autoptr (GVariant) variant = g_variant_ref_sink (
      g_variant_new ("(sssx@ax@axt@aytt@ayv)", MAGIC,
                     is_host ? "cpu" : gtorch_device_get_uuid (impl->device),
                     gtorch_dtype_get_name (impl->dtype), impl->offset,
                     g_variant_new_fixed_array (G_VARIANT_TYPE_INT64, impl->shape, impl->n_dims, 8),
                     g_variant_new_fixed_array (G_VARIANT_TYPE_INT64, impl->strides, impl->n_dims,
                                                8),
                     (guint64) impl->storage->n_bytes, bytes_variant (own_process (), 16),
                     self->loan != NULL ? gtorch_loan_get_number (self->loan) : 0,
                     (guint64) self->fds->len, event, memory));

  self->bytes = g_variant_get_data_as_bytes (variant);
}

static gboolean
add_host (GTorchTensorHandle *self, GTorchImpl *impl, GError **error)
{
  GTorchSharedMemory *memory;
  gint fd;

  if (!share_host_memory (impl, error) || !gtorch_impl_wait ("share", impl, error))
    return FALSE;
  if (impl->storage->n_bytes > 0)
    {
      memory = find_lasting (impl->storage);
      if (memory == NULL)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                       _ ("share: the memory of the tensor of shape %s is used for other tensors "
                          "later: clone the tensor"),
                       gtorch_impl_shape_str (impl));
          return FALSE;
        }
      fd = fcntl (gtorch_shared_memory_get_fd (memory), F_DUPFD_CLOEXEC, 0);
      if (fd < 0)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, _ ("share: %s: %s"),
                       "F_DUPFD_CLOEXEC", g_strerror (errno));
          return FALSE;
        }
      g_array_append_val (self->fds, fd);
    }
  describe (self, impl, bytes_variant (NULL, 0), g_variant_new_boolean (FALSE));
  return TRUE;
}

/* Orders what is to be done for the tensor before the stream's event. */
static GBytes *
record (GTorchTensorHandle *self, GTorchImpl *impl, GError **error)
{
  GTorchStream *stream = gtorch_stream_get_current (impl->device);

  if (gtorch_stream_is_capturing (stream) || gtorch_pool_is_promised (impl->storage))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                   _ ("share: the tensor of shape %s was not computed: its graph is being captured "
                      "or was never replayed"),
                   gtorch_impl_shape_str (impl));
      return NULL;
    }
  return gtorch_stream_order_storage (stream, impl->device, impl->storage, error)
             ? gtorch_loan_record (self->loan, stream, error)
             : NULL;
}

static gboolean
add_device (GTorchTensorHandle *self, GTorchImpl *impl, GError **error)
{
  const struct _GTorchShareBackend *shares = GTORCH_DEVICE_GET_CLASS (impl->device)->shares;
  g_autoptr (GVariant) memory = NULL;
  g_autoptr (GBytes) event = NULL;
  GVariant *floating;
  gint fd;

  if (impl->storage->n_bytes == 0)
    {
      describe (self, impl, bytes_variant (NULL, 0), g_variant_new_boolean (FALSE));
      return TRUE;
    }
  floating = shares->describe (impl->device, impl->storage, self->fds, error);
  if (floating == NULL)
    return FALSE;
  memory = g_variant_ref_sink (floating);
  self->loan = gtorch_loan_new (impl->storage, error);
  if (self->loan == NULL)
    return FALSE;
  fd = gtorch_loan_get_fd (self->loan);
  g_array_append_val (self->fds, fd);
  self->has_loaned_fd = TRUE;
  event = record (self, impl, error);
  if (event == NULL)
    return FALSE;
  describe (self, impl, bytes_variant (g_bytes_get_data (event, NULL), g_bytes_get_size (event)),
            memory);
  return TRUE;
}

/**
 * gtorch_tensor_handle_new:
 * @tensor: a tensor
 * @error: return location for an error
 *
 * Makes a handle by which another process opens the tensor. Memory of the CPU that is not shared yet
 * moves, as [method@Tensor.share_memory] says.
 *
 * Returns: (transfer full): the handle, or %NULL with %GTORCH_ERROR_AUTOGRAD if the tensor requires a
 *   gradient (use the result of [method@Tensor.detach]), %GTORCH_ERROR_NOT_SUPPORTED for pinned memory,
 *   memory of other libraries and, on GPUs, of other processes, %GTORCH_ERROR_CAPTURE if the tensor was
 *   not computed yet, or the driver's error
 *
 * Since: 0.1
 */
GTorchTensorHandle *
gtorch_tensor_handle_new (GTorchTensor *tensor, GError **error)
{
  GTORCH_HOLD_TENSOR (tensor);
  g_autoptr (GTorchTensorHandle) self = NULL;
  const struct _GTorchShareBackend *shares;
  GTorchImpl *impl;

  g_return_val_if_fail (GTORCH_IS_TENSOR (tensor), NULL);
  impl = gtorch_tensor_unwrap (tensor);
  if (gtorch_impl_is_released (impl) && !gtorch_impl_wait ("share", impl, error))
    return NULL;
  if (gtorch_impl_requires_grad (impl))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("share: a tensor of shape %s that requires a gradient would lose it: detach "
                      "it first"),
                   gtorch_impl_shape_str (impl));
      return NULL;
    }
  self = g_object_new (GTORCH_TYPE_TENSOR_HANDLE, NULL);
  shares = GTORCH_DEVICE_GET_CLASS (impl->device)->shares;
  if (shares != NULL && shares->describe != NULL ? !add_device (self, impl, error)
                                                 : !add_host (self, impl, error))
    return NULL;
  return g_steal_pointer (&self);
}

/* --- opening --- */

static void
described_clear (Described *self)
{
  g_clear_pointer (&self->shape_variant, g_variant_unref);
  g_clear_pointer (&self->strides_variant, g_variant_unref);
  g_clear_pointer (&self->process_variant, g_variant_unref);
  g_clear_pointer (&self->event, g_variant_unref);
  g_clear_pointer (&self->memory, g_variant_unref);
  g_clear_pointer (&self->variant, g_variant_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Described, described_clear)

/* Do all elements lie within the memory? */
static gboolean
check_extent (const Described *self)
{
  const gint64 size = (gint64) gtorch_dtype_size (self->dtype);
  gint64 low = self->offset, high = self->offset, end;
  gsize i;

  for (i = 0; i < self->n_dims; i++)
    if (self->shape[i] == 0)
      return TRUE;
  for (i = 0; i < self->n_dims; i++)
    {
      gint64 step, *bound;

      if (__builtin_mul_overflow (self->strides[i], self->shape[i] - 1, &step))
        return FALSE;
      bound = step < 0 ? &low : &high;
      if (__builtin_add_overflow (*bound, step, bound))
        return FALSE;
    }
  return low >= 0 && !__builtin_add_overflow (high, 1, &end)
         && !__builtin_mul_overflow (end, size, &end) && (guint64) end <= self->n_bytes;
}

static gboolean
read_bytes (GBytes *bytes, gsize n_fds, Described *self, GError **error)
{
  self->variant =
      g_variant_ref_sink (g_variant_new_from_bytes (G_VARIANT_TYPE (FORMAT), bytes, FALSE));
  if (g_variant_is_normal_form (self->variant))
    {
      g_variant_get (self->variant, "(&s&s&sx@ax@axt@aytt@ayv)", &self->magic, &self->device,
                     &self->dtype_name, &self->offset, &self->shape_variant, &self->strides_variant,
                     &self->n_bytes, &self->process_variant, &self->loan, &self->n_fds,
                     &self->event, &self->memory);
      self->dtype = gtorch_dtype_from_name (self->dtype_name, NULL);
      self->shape = g_variant_get_fixed_array (self->shape_variant, &self->n_dims, 8);
      self->strides = g_variant_get_fixed_array (self->strides_variant, &self->n_strides, 8);
      self->process = g_variant_get_fixed_array (self->process_variant, &self->n_process, 1);
      if (strcmp (self->magic, MAGIC) == 0 && self->dtype != GTORCH_DTYPE_NONE
          && self->n_dims == self->n_strides && self->n_process == 16 && self->offset >= 0
          && self->n_fds == n_fds && self->n_bytes <= G_MAXINT64
          && gtorch_shape_check ("share", self->shape, self->n_dims, self->dtype, NULL)
          && check_extent (self))
        return TRUE;
    }
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
               _ ("share: %zu bytes with %zu file descriptors are not a handle of a tensor"),
               g_bytes_get_size (bytes), n_fds);
  return FALSE;
}

static GTorchDevice *
find_device (const gchar *name, GError **error)
{
  const gchar *reason = NULL;
  guint type, i, n;

  if (strcmp (name, "cpu") == 0)
    return gtorch_device_cpu ();
  for (type = 0; type < GTORCH_N_DEVICE_TYPES; type++)
    {
      const GTorchBackend *backend = gtorch_backends[type];

      n = backend != NULL && backend->type != GTORCH_DEVICE_TYPE_CPU ? backend->count (&reason) : 0;
      for (i = 0; i < n; i++)
        {
          GTorchDevice *device = gtorch_backend_find (backend, i, name, error);

          if (device == NULL)
            return NULL;
          if (g_strcmp0 (gtorch_device_get_uuid (device), name) == 0)
            return device;
        }
    }
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH,
               _ ("share: the tensor is on the device %s, which this process does not see"), name);
  return NULL;
}

/**
 * gtorch_tensor_handle_new_from_bytes:
 * @bytes: what [method@TensorHandle.get_bytes] gave in the other process
 * @fds: (array length=n_fds): the file descriptors of [method@TensorHandle.get_fds], as this process has
 *   received them, in the same order; they remain the caller's and may be closed afterwards
 * @n_fds: the number of file descriptors
 * @error: return location for an error
 *
 * Makes a handle of what another process has sent.
 *
 * Returns: (transfer full): the handle, or %NULL with %GTORCH_ERROR_FORMAT if @bytes and @fds are not
 *   those of a handle, and %GTORCH_ERROR_FAILED if a file descriptor cannot be duplicated
 *
 * Since: 0.1
 */
GTorchTensorHandle *
gtorch_tensor_handle_new_from_bytes (GBytes *bytes, const gint *fds, gsize n_fds, GError **error)
{
  g_autoptr (GTorchTensorHandle) self = NULL;
  g_auto (Described) described = { NULL };
  gsize i;

  g_return_val_if_fail (bytes != NULL, NULL);
  g_return_val_if_fail (fds != NULL || n_fds == 0, NULL);
  if (!read_bytes (bytes, n_fds, &described, error))
    return NULL;
  self = g_object_new (GTORCH_TYPE_TENSOR_HANDLE, NULL);
  self->bytes = g_bytes_ref (bytes);
  for (i = 0; i < n_fds; i++)
    {
      const gint fd = fcntl (fds[i], F_DUPFD_CLOEXEC, 0);

      if (fd < 0)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                       _ ("share: file descriptor %d: %s"), fds[i], g_strerror (errno));
          return NULL;
        }
      g_array_append_val (self->fds, fd);
    }
  return g_steal_pointer (&self);
}

/**
 * gtorch_tensor_handle_get_bytes:
 * @self: a handle
 *
 * Gets the bytes for the other process.
 *
 * Returns: (transfer none) (nullable): the bytes; %NULL for an object that was made without a tensor
 *
 * Since: 0.1
 */
GBytes *
gtorch_tensor_handle_get_bytes (GTorchTensorHandle *self)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR_HANDLE (self), NULL);
  return self->bytes;
}

/**
 * gtorch_tensor_handle_get_fds:
 * @self: a handle
 * @n_fds: (out): the number of file descriptors
 *
 * Gets the file descriptors for the other process, to be sent in this order. They belong to @self: send
 * them, or duplicates of them, before it is dropped.
 *
 * Returns: (transfer none) (array length=n_fds): the file descriptors, which may be none
 *
 * Since: 0.1
 */
const gint *
gtorch_tensor_handle_get_fds (GTorchTensorHandle *self, gsize *n_fds)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR_HANDLE (self), NULL);
  g_return_val_if_fail (n_fds != NULL, NULL);
  *n_fds = self->fds->len;
  return (const gint *) self->fds->data;
}

static GTorchStorage *
open_host (GTorchTensorHandle *self, const Described *described, GError **error)
{
  g_autoptr (GTorchSharedMemory) memory = NULL;

  if (self->fds->len == 1)
    memory = gtorch_shared_memory_open_lasting (g_array_index (self->fds, gint, 0), error);
  if (self->fds->len == 1 && memory == NULL)
    return NULL;
  if (memory != NULL && described->n_bytes <= gtorch_shared_memory_get_n_bytes (memory))
    return gtorch_shared_memory_make_storage (memory, described->n_bytes);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
               _ ("share: the handle does not describe memory of %zu bytes with %zu file "
                  "descriptors"),
               (gsize) described->n_bytes, (gsize) self->fds->len);
  return NULL;
}

/* Makes the stream wait for the event of the other process. */
static gboolean
wait_for (GTorchStream *stream, GVariant *variant, GError **error)
{
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (GTorchEvent) event = NULL;
  gconstpointer data;
  gsize n;

  data = g_variant_get_fixed_array (variant, &n, 1);
  if (n == 0) /* the other process has waited for its stream */
    return TRUE;
  bytes = g_bytes_new (data, n);
  event = gtorch_event_new_from_ipc_handle (stream->device, bytes, error);
  return event != NULL && gtorch_stream_wait_event (stream, event, error);
}

static GTorchStorage *
open_device (GTorchTensorHandle *self, const Described *described, GTorchDevice *device,
             GError **error)
{
  const struct _GTorchShareBackend *shares = GTORCH_DEVICE_GET_CLASS (device)->shares;
  const gint *fds = (const gint *) self->fds->data;
  const guint n = self->fds->len;
  GTorchStorage *storage = NULL;
  GTorchStream *stream;
  gpointer taken;

  if (n == 0 || shares == NULL || shares->open == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("share: the handle is not one of a tensor on %s"),
                   gtorch_device_name (device));
      return NULL;
    }
  if (!gtorch_device_works (device, error))
    return NULL;
  stream = gtorch_stream_get_current (device);
  if (gtorch_stream_is_capturing (stream))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                   _ ("share: a tensor of another process cannot be opened in a capture: open it "
                      "before"));
      return NULL;
    }
  if (memcmp (described->process, own_process (), 16) == 0)
    return gtorch_loan_find (described->loan, stream, error);
  taken = gtorch_loan_take (fds[n - 1], error);
  if (taken == NULL)
    return NULL;
  storage = shares->open (device, described->memory, fds, n - 1, described->n_bytes,
                          gtorch_loan_return, taken, error);
  if (storage == NULL)
    gtorch_loan_return (taken);
  else if (!wait_for (stream, described->event, error)
           || !gtorch_stream_order_storage (stream, device, storage, error))
    g_clear_pointer (&storage, gtorch_storage_unref);
  return storage;
}

/**
 * gtorch_tensor_handle_open:
 * @self: a handle
 * @error: return location for an error
 *
 * Opens the tensor: makes one that has the same memory as that of the other process.
 *
 * A handle may be opened several times. In the process that has made it, it gives a tensor of the same
 * memory as well. The device is that of the other process, whatever its number is here.
 *
 * Returns: (transfer full): the tensor, or %NULL with %GTORCH_ERROR_FORMAT if the handle is damaged,
 *   %GTORCH_ERROR_DEVICE_MISMATCH if this process does not see the device, %GTORCH_ERROR_FAILED if the
 *   process that has made it has ended, %GTORCH_ERROR_INVALID if it is a handle of this process whose
 *   memory is gone, %GTORCH_ERROR_CAPTURE in a capture, or the driver's error
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_handle_open (GTorchTensorHandle *self, GError **error)
{
  g_auto (Described) described = { NULL };
  GTorchStorage *storage;
  GTorchDevice *device;
  GTorchImpl *impl;

  g_return_val_if_fail (GTORCH_IS_TENSOR_HANDLE (self), NULL);
  if (self->bytes == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("share: the handle was made without a tensor"));
      return NULL;
    }
  if (!read_bytes (self->bytes, self->fds->len, &described, error))
    return NULL;
  device = find_device (described.device, error);
  if (device == NULL)
    return NULL;
  if (described.n_bytes == 0)
    return gtorch_tensor_wrap (gtorch_impl_new (device, described.dtype, described.shape,
                                                (guint) described.n_dims, error));
  storage = device->type == GTORCH_DEVICE_TYPE_CPU ? open_host (self, &described, error)
                                                   : open_device (self, &described, device, error);
  if (storage == NULL)
    return NULL;
  impl = gtorch_impl_new_strided (storage, described.dtype, described.offset, described.shape,
                                  described.strides, (guint) described.n_dims);
  gtorch_storage_unref (storage);
  return gtorch_tensor_wrap (impl);
}
