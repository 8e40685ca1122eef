/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Asynchronous copies and reads of tensors for programs with a main loop.
 *
 * Work that a GPU or a stream of the CPU can do by itself is enqueued in the call, so that it is ordered
 * with the other work of the stream, and the task ends with a fence behind it. If the host has to do
 * something itself (copy from pageable memory or for a device that does not copy alone, or wait for
 * results of other streams) a thread does it,
 * with the caller's stream of the GPU as its own, after the caller's stream of the CPU has reached that
 * point. */

#include "config.h"

#include "elements/gtorch-tensor-async.h"
#include "tensor/gtorch-uninitialized-private.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "stream/gtorch-capturing-private.h"
#include "memory/gtorch-guard.h"
#include "tensor/gtorch-hold-private.h"
#include "gtorch-ops-private.h"
#include "device/gtorch-scratch-private.h"
#include "stream/gtorch-stream-private.h"
#include "elements/gtorch-tensor-bytes.h"
#include "tensor/gtorch-tensor-private.h"
#include "memory/gtorch-pinned-private.h"
#include "base/gtorch-task-private.h"

typedef struct
{
  GTorchImpl *dst, *src; /* dst NULL: to be allocated */
  GTorchDevice *device;
  GTorchStream *stream; /* the caller's stream of the GPU; NULL: the default one */
  GTorchImpl *result;   /* the result of the task */
  gboolean is_item;     /* src may be overwritten before the end and is not the result */
} Copy;

static void
copy_free (gpointer data)
{
  Copy *copy = data;

  g_clear_pointer (&copy->dst, gtorch_impl_unref);
  g_clear_pointer (&copy->src, gtorch_impl_unref);
  g_clear_pointer (&copy->result, gtorch_impl_unref);
  g_clear_object (&copy->stream);
  g_free (copy);
}

static gboolean
is_on_cpu (const GTorchImpl *impl)
{
  return gtorch_device_is_host (gtorch_impl_device (impl));
}

/* Returns the device of the two that is not the CPU; the CPU if both are. */
static GTorchDevice *
find_gpu (const Copy *copy)
{
  return !gtorch_device_is_host (copy->device) ? copy->device : gtorch_impl_device (copy->src);
}

static GTorchStream *
stream_of (GTorchDevice *device)
{
  GTorchStream *stream = gtorch_current_stream (device);

  return stream != NULL ? stream : gtorch_device_get_default_stream (device);
}

/* Returns TRUE if only the caller's own stream computes it. */
static gboolean
is_in_order (const GTorchImpl *impl)
{
  GTorchStream *stream = gtorch_current_stream (gtorch_impl_device (impl));
  GTorchTimeline *writer = __atomic_load_n (&impl->storage->writer, __ATOMIC_ACQUIRE);

  return impl->storage->free_func == NULL
         && (writer == NULL || (stream != NULL && writer == stream->timeline));
}

static GTorchImpl *
take_or_copy (Copy *copy, GError **error)
{
  return copy->is_item ? gtorch_op_clone (copy->src, error) : gtorch_impl_ref (copy->src);
}

static void
return_result (GTask *task)
{
  Copy *copy = g_task_get_task_data (task);

  g_task_return_pointer (task, gtorch_tensor_wrap (g_steal_pointer (&copy->result)),
                         g_object_unref);
}

/* --- on a thread --- */

static gboolean
copy_here (Copy *copy, GCancellable *cancellable, GError **error)
{
  GTorchDevice *gpu = find_gpu (copy);
  GTorchFence *fence;
  gboolean result;

  if (copy->dst == NULL && gtorch_impl_device (copy->src) == copy->device)
    {
      if (gtorch_impl_sync (copy->src, error))
        copy->result = take_or_copy (copy, error);
      return copy->result != NULL;
    }
  if (copy->dst == NULL)
    copy->result = gtorch_op_to_device (copy->src, copy->device, FALSE, error);
  else if (gtorch_op_copy_inplace (copy->dst, copy->src, FALSE, error))
    copy->result = gtorch_impl_ref (copy->dst);
  if (copy->result == NULL)
    return FALSE;
  fence = gtorch_stream_record_fence (stream_of (gpu), GTORCH_EVENT_NONE, error);
  if (fence == NULL)
    return FALSE;
  result = gtorch_fence_wait (fence, cancellable, error);
  gtorch_fence_unref (fence);
  return result && gtorch_stream_check (stream_of (gpu), error);
}

static void
copy_in_thread (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  Copy *copy = data;
  GTorchDevice *gpu = find_gpu (copy);
  GTorchChange change;
  GError *error = NULL;
  gboolean done;

  if (copy->stream != NULL)
    gtorch_change_to_stream (&change, gpu, copy->stream);
  done = copy_here (copy, cancellable, &error);
  if (copy->stream != NULL)
    gtorch_change_end (&change);
  if (done)
    return_result (task);
  else
    g_task_return_error (task, error);
}

/* --- behind enqueued work --- */

static void
fence_passed (GObject *object, GAsyncResult *result, gpointer data)
{
  g_autoptr (GTask) task = data;
  Copy *copy = g_task_get_task_data (task);
  GError *error = NULL;

  if (!g_task_propagate_boolean (G_TASK (result), &error))
    g_task_return_error (task, error);
  else if (copy->dst != NULL && copy->dst != copy->result)
    { /* copies from the pinned memory to the destination */
      gtorch_impl_unref (copy->src);
      copy->src = g_steal_pointer (&copy->result);
      gtorch_task_run_in_thread (task, copy_in_thread);
    }
  else
    return_result (task);
}

static void
go_on_behind (GTask *task, GTorchStream *stream, GAsyncReadyCallback go_on)
{
  GTask *wait = g_task_new (g_task_get_source_object (task), g_task_get_cancellable (task), go_on,
                            g_object_ref (task));
  GError *error = NULL;
  GTorchFence *fence = gtorch_stream_record_fence (stream, GTORCH_EVENT_NONE, &error);

  if (fence != NULL)
    gtorch_fence_return_task (fence, wait, stream->timeline);
  else
    g_task_return_error (wait, error);
  g_clear_pointer (&fence, gtorch_fence_unref);
  g_object_unref (wait);
}

/* Returns TRUE if a GPU can do the whole copy by itself. */
static gboolean
runs_by_itself (const GTorchImpl *dst, const GTorchImpl *src)
{
  const GTorchImpl *host = is_on_cpu (dst) ? dst : src;

  return !is_on_cpu (host)
         || (gtorch_storage_is_pinned (host->storage)
             && gtorch_current_stream (gtorch_device_cpu ()) == NULL && dst->is_contiguous
             && src->is_contiguous && dst->dtype == src->dtype
             && gtorch_impl_same_shape (dst, src));
}

/* Returns FALSE with an error, or without one if a thread must do it. */
static gboolean
enqueue (Copy *copy, GError **error)
{
  GTorchImpl *src = copy->src, *dst = copy->dst;
  gboolean to_cpu = gtorch_device_is_host (copy->device);

  if (is_on_cpu (src) && to_cpu)
    return FALSE;
  if ((is_on_cpu (src) || to_cpu) && !find_gpu (copy)->backend->copies_alone)
    {
      if (!is_on_cpu (src)) /* which later calls may overwrite */
        {
          copy->src = gtorch_op_clone (src, error);
          gtorch_impl_unref (src);
        }
      return FALSE;
    }
  if (!is_on_cpu (src) && to_cpu && (dst == NULL || !runs_by_itself (dst, src)))
    copy->result = gtorch_impl_new_pinned (src->dtype, src->shape, src->n_dims, error);
  else if (dst != NULL && runs_by_itself (dst, src))
    copy->result = gtorch_impl_ref (dst);
  else if (dst == NULL
           && (!is_on_cpu (src)
               || (gtorch_storage_is_pinned (src->storage) && src->is_contiguous
                   && gtorch_current_stream (gtorch_device_cpu ()) == NULL)))
    copy->result = gtorch_impl_new (copy->device, src->dtype, src->shape, src->n_dims, error);
  if (copy->result == NULL)
    {
      gtorch_error_name_op (error, "to_device");
      return FALSE;
    }
  return gtorch_op_copy_inplace (copy->result, src, TRUE, error);
}

static void
cpu_stream_passed (GObject *object, GAsyncResult *result, gpointer data)
{
  g_autoptr (GTask) task = data;
  GError *error = NULL;

  if (g_task_propagate_boolean (G_TASK (result), &error))
    gtorch_task_run_in_thread (task, copy_in_thread);
  else
    g_task_return_error (task, error);
}

/* Returns a tensor that is already on the device. */
static gboolean
return_in_order (GTask *task, GTorchStream *stream)
{
  Copy *copy = g_task_get_task_data (task);
  GError *error = NULL;

  if (is_on_cpu (copy->src) && !is_in_order (copy->src))
    return FALSE;
  copy->result = take_or_copy (copy, &error);
  if (copy->result == NULL)
    g_task_return_error (task, error);
  else if (is_on_cpu (copy->src) && gtorch_stream_is_default (stream))
    return_result (task);
  else
    go_on_behind (task, stream, fence_passed);
  return TRUE;
}

static void
start (GTask *task, GTorchImpl *dst, GTorchImpl *src, GTorchDevice *device, gboolean is_item)
{
  Copy *copy = g_new0 (Copy, 1);
  GTorchDevice *gpu;
  GTorchStream *stream, *cpu_stream = stream_of (gtorch_device_cpu ());
  GError *error = NULL;

  g_task_set_task_data (task, copy, copy_free);
  if (g_task_return_error_if_cancelled (task))
    return;
  /* aliases: release () does not affect them, and no gradient flows */
  copy->src = src->storage != NULL ? gtorch_impl_alias (src) : NULL;
  copy->dst = dst != NULL && dst->storage != NULL ? gtorch_impl_alias (dst) : NULL;
  if (copy->dst != NULL)
    copy->dst->inference = 0; /* checked below; another thread may write */
  copy->device = device;
  copy->is_item = is_item;
  if (!gtorch_impl_check_memory (src, "copy", &error)
      || (dst != NULL
          && (!gtorch_impl_check_memory (dst, "copy", &error)
              || !gtorch_impl_check_write (dst, "copy", &error))))
    {
      g_task_return_error (task, error);
      return;
    }
  gpu = find_gpu (copy);
  stream = stream_of (gpu);
  if (gtorch_stream_is_capturing (stream) || gtorch_stream_is_capturing (cpu_stream)
      || !gtorch_impl_allow_sync (src, &error))
    {
      if (error == NULL)
        g_set_error (&error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                     _ ("copy: the stream captures a graph, and nothing is copied before the "
                        "graph is replayed"));
      g_task_return_error (task, error);
      return;
    }
  if (dst == NULL && gtorch_impl_device (src) == device)
    {
      if (!is_item)
        {
          gtorch_impl_unref (copy->src);
          copy->src = gtorch_impl_ref (src); /* the tensor itself */
        }
      if (return_in_order (task, stream))
        return;
    }
  else if (enqueue (copy, &error))
    {
      go_on_behind (task, stream, fence_passed);
      return;
    }
  if (error != NULL)
    {
      g_task_return_error (task, error);
      return;
    }
  if (!gtorch_device_is_host (gpu))
    g_set_object (&copy->stream, gtorch_current_stream (gpu));
  if (gtorch_stream_is_default (cpu_stream))
    gtorch_task_run_in_thread (task, copy_in_thread);
  else
    go_on_behind (task, cpu_stream, cpu_stream_passed);
}

/* --- tensors --- */

/**
 * gtorch_tensor_to_device_async:
 * @self: a tensor
 * @device: the destination
 * @cancellable: (nullable): cancels the wait, not the copy
 * @callback: (nullable) (scope async) (closure user_data): called when the elements have arrived
 * @user_data: data for @callback
 *
 * Copies the elements to another device without blocking the main loop.
 *
 * The copy is ordered with the other work of the current stream: it sees the results of earlier calls. A
 * source on the CPU must not be written to before the end, as a thread may still read it. A copy from a
 * GPU is in pinned memory, which may be limited ([property@HostAllocator:limit]). Gradients do not flow
 * through it.
 *
 * Since: 0.1
 */
void
gtorch_tensor_to_device_async (GTorchTensor *self, GTorchDevice *device, GCancellable *cancellable,
                               GAsyncReadyCallback callback, gpointer user_data)
{
  GTORCH_HOLD_TENSOR (self);
  g_autoptr (GTask) task = NULL;

  g_return_if_fail (GTORCH_IS_TENSOR (self));
  g_return_if_fail (GTORCH_IS_DEVICE (device));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (self, gtorch_tensor_to_device_async, cancellable, callback, user_data);
  start (task, NULL, gtorch_tensor_unwrap (self), gtorch_device_resolved (device), FALSE);
}

/**
 * gtorch_tensor_to_device_finish:
 * @self: a tensor
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Finishes [method@Tensor.to_device_async]. Reading the result does not wait any more, unless the current
 * stream of the CPU has a worker with pending work.
 *
 * Returns: (transfer full): the tensor on the device, @self if it was already there; %NULL with
 *   %GTORCH_ERROR_RELEASED, %GTORCH_ERROR_OUT_OF_MEMORY, %GTORCH_ERROR_CAPTURE, %G_IO_ERROR_CANCELLED or
 *   the error of the work
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_to_device_finish (GTorchTensor *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, self, gtorch_tensor_to_device_async, error))
    return NULL;
  return g_task_propagate_pointer (G_TASK (result), error);
}

/**
 * gtorch_tensor_copy_inplace_async:
 * @self: a tensor
 * @src: a tensor whose shape can be broadcast to that of @self
 * @cancellable: (nullable): cancels the wait, not the copy
 * @callback: (nullable) (scope async) (closure user_data): called when the elements have arrived
 * @user_data: data for @callback
 *
 * Copies the elements of @src, converted to the dtype of @self, into @self, without blocking the main
 * loop.
 *
 * Until the end, neither tensor may be written to, and @self may not be read. Nothing is recorded for
 * gradients, as with [func@set_grad_enabled] off.
 *
 * Since: 0.1
 */
void
gtorch_tensor_copy_inplace_async (GTorchTensor *self, GTorchTensor *src, GCancellable *cancellable,
                                  GAsyncReadyCallback callback, gpointer user_data)
{
  GTORCH_HOLD_TENSOR (self);
  GTORCH_HOLD_TENSOR (src);
  g_autoptr (GTask) task = NULL;
  GTorchImpl *impl;

  g_return_if_fail (GTORCH_IS_TENSOR (self));
  g_return_if_fail (GTORCH_IS_TENSOR (src));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (self, gtorch_tensor_copy_inplace_async, cancellable, callback, user_data);
  impl = gtorch_tensor_unwrap (self);
  start (task, impl, gtorch_tensor_unwrap (src),
         impl->storage != NULL ? gtorch_impl_device (impl) : gtorch_device_cpu (), FALSE);
}

/**
 * gtorch_tensor_copy_inplace_finish:
 * @self: a tensor
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Finishes [method@Tensor.copy_inplace_async].
 *
 * Returns: %TRUE on success; %FALSE with the errors of [method@Tensor.copy_inplace] and of
 *   [method@Tensor.to_device_finish]
 *
 * Since: 0.1
 */
gboolean
gtorch_tensor_copy_inplace_finish (GTorchTensor *self, GAsyncResult *result, GError **error)
{
  g_autoptr (GTorchTensor) written = NULL;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), FALSE);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  if (!gtorch_task_take (result, self, gtorch_tensor_copy_inplace_async, error))
    return FALSE;
  written = g_task_propagate_pointer (G_TASK (result), error);
  return written != NULL;
}

/* --- reads --- */

static void
start_item (GTask *task, GTorchImpl *impl)
{
  if (impl->numel != 1)
    g_task_return_new_error (task, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                             _ ("item: a tensor of shape %s has %" PRId64 " elements, not one"),
                             gtorch_impl_shape_str (impl), impl->numel);
  else
    start (task, NULL, impl, gtorch_device_cpu (), TRUE);
}

/* Takes the task, whose result is a tensor on the CPU. */
static void
start_read (GTask *task, GTorchTensor *self, gboolean is_item)
{
  GTORCH_HOLD_TENSOR (self);
  g_autoptr (GTask) owned = task;

  if (is_item)
    start_item (task, gtorch_tensor_unwrap (self));
  else
    start (task, NULL, gtorch_tensor_unwrap (self), gtorch_device_cpu (), TRUE);
}

/* That tensor. */
#define FINISH_READ(self, result, async, error)            \
  (gtorch_task_take (result, self, async, error)           \
       ? g_task_propagate_pointer (G_TASK (result), error) \
       : NULL)

/* The elements have arrived; later work on the caller's stream of the CPU need not be waited for. */
static GTorchStreamGuard *
leave_cpu_stream (void)
{
  return gtorch_stream_guard_new (gtorch_device_get_default_stream (gtorch_device_cpu ()));
}

/* --- one element --- */

/**
 * gtorch_tensor_item_double_async:
 * @self: a tensor with one element
 * @cancellable: (nullable): cancels the wait
 * @callback: (nullable) (scope async) (closure user_data): called when the element has arrived
 * @user_data: data for @callback
 *
 * Gets the only element as a number, without blocking the main loop.
 *
 * The read is ordered with the other work of the current stream: work that is enqueued after the call,
 * such as an in-place operation on @self, is neither seen nor waited for.
 *
 * Since: 0.1
 */
void
gtorch_tensor_item_double_async (GTorchTensor *self, GCancellable *cancellable,
                                 GAsyncReadyCallback callback, gpointer user_data)
{
  g_return_if_fail (GTORCH_IS_TENSOR (self));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  start_read (gtorch_task_new (self, gtorch_tensor_item_double_async, cancellable, callback,
                               user_data),
              self, TRUE);
}

/**
 * gtorch_tensor_item_double_finish:
 * @self: a tensor
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Finishes [method@Tensor.item_double_async].
 *
 * Returns: the same as [method@Tensor.item_double]
 *
 * Since: 0.1
 */
gdouble
gtorch_tensor_item_double_finish (GTorchTensor *self, GAsyncResult *result, GError **error)
{
  g_autoptr (GTorchTensor) host = NULL;
  g_autoptr (GTorchStreamGuard) guard = NULL;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), 0);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), 0);
  host = FINISH_READ (self, result, gtorch_tensor_item_double_async, error);
  guard = leave_cpu_stream ();
  return host != NULL ? gtorch_tensor_item_double (host, error) : 0;
}

/**
 * gtorch_tensor_item_int_async:
 * @self: a tensor with one element
 * @cancellable: (nullable): cancels the wait
 * @callback: (nullable) (scope async) (closure user_data): called when the element has arrived
 * @user_data: data for @callback
 *
 * Gets the only element as an integer, without blocking the main loop. The read is ordered as in
 * [method@Tensor.item_double_async].
 *
 * Since: 0.1
 */
void
gtorch_tensor_item_int_async (GTorchTensor *self, GCancellable *cancellable,
                              GAsyncReadyCallback callback, gpointer user_data)
{
  g_return_if_fail (GTORCH_IS_TENSOR (self));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  start_read (gtorch_task_new (self, gtorch_tensor_item_int_async, cancellable, callback,
                               user_data),
              self, TRUE);
}

/**
 * gtorch_tensor_item_int_finish:
 * @self: a tensor
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Finishes [method@Tensor.item_int_async].
 *
 * Returns: the same as [method@Tensor.item_int]
 *
 * Since: 0.1
 */
gint64
gtorch_tensor_item_int_finish (GTorchTensor *self, GAsyncResult *result, GError **error)
{
  g_autoptr (GTorchTensor) host = NULL;
  g_autoptr (GTorchStreamGuard) guard = NULL;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), 0);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), 0);
  host = FINISH_READ (self, result, gtorch_tensor_item_int_async, error);
  guard = leave_cpu_stream ();
  return host != NULL ? gtorch_tensor_item_int (host, error) : 0;
}

/* --- all elements --- */

/**
 * gtorch_tensor_get_bytes_async:
 * @self: a tensor
 * @cancellable: (nullable): cancels the wait
 * @callback: (nullable) (scope async) (closure user_data): called when the elements have arrived
 * @user_data: data for @callback
 *
 * Gets the elements as bytes, in C order and the machine's byte order, without blocking the main loop.
 *
 * The read is ordered as in [method@Tensor.item_double_async]: the elements are those that the tensor has at
 * the call.
 *
 * Since: 0.1
 */
void
gtorch_tensor_get_bytes_async (GTorchTensor *self, GCancellable *cancellable,
                               GAsyncReadyCallback callback, gpointer user_data)
{
  g_return_if_fail (GTORCH_IS_TENSOR (self));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  start_read (gtorch_task_new (self, gtorch_tensor_get_bytes_async, cancellable, callback,
                               user_data),
              self, FALSE);
}

/**
 * gtorch_tensor_get_bytes_finish:
 * @self: a tensor
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Finishes [method@Tensor.get_bytes_async].
 *
 * Returns: (transfer full): a copy of the elements, or %NULL with the errors of
 *   [method@Tensor.to_device_finish]
 *
 * Since: 0.1
 */
GBytes *
gtorch_tensor_get_bytes_finish (GTorchTensor *self, GAsyncResult *result, GError **error)
{
  g_autoptr (GTorchTensor) host = NULL;
  g_autoptr (GTorchStreamGuard) guard = NULL;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), NULL);
  host = FINISH_READ (self, result, gtorch_tensor_get_bytes_async, error);
  guard = leave_cpu_stream ();
  return host != NULL ? gtorch_tensor_get_bytes (host, error) : NULL;
}

/**
 * gtorch_tensor_to_doubles_async:
 * @self: a tensor
 * @cancellable: (nullable): cancels the wait
 * @callback: (nullable) (scope async) (closure user_data): called when the elements have arrived
 * @user_data: data for @callback
 *
 * Gets all elements as floating-point numbers, in C order, without blocking the main loop.
 *
 * The read is ordered as in [method@Tensor.item_double_async]: the elements are those that the tensor has at
 * the call.
 *
 * Since: 0.1
 */
void
gtorch_tensor_to_doubles_async (GTorchTensor *self, GCancellable *cancellable,
                                GAsyncReadyCallback callback, gpointer user_data)
{
  g_return_if_fail (GTORCH_IS_TENSOR (self));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  start_read (gtorch_task_new (self, gtorch_tensor_to_doubles_async, cancellable, callback,
                               user_data),
              self, FALSE);
}

/**
 * gtorch_tensor_to_doubles_finish:
 * @self: a tensor
 * @result: the result that the callback got
 * @n_values: (out): the number of values
 * @error: return location for an error
 *
 * Finishes [method@Tensor.to_doubles_async].
 *
 * Returns: (transfer full) (array length=n_values): the values, as of [method@Tensor.to_doubles], or %NULL
 *   with the errors of that and of [method@Tensor.to_device_finish]
 *
 * Since: 0.1
 */
gdouble *
gtorch_tensor_to_doubles_finish (GTorchTensor *self, GAsyncResult *result, gsize *n_values,
                                 GError **error)
{
  g_autoptr (GTorchTensor) host = NULL;
  g_autoptr (GTorchStreamGuard) guard = NULL;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), NULL);
  g_return_val_if_fail (n_values != NULL, NULL);
  host = FINISH_READ (self, result, gtorch_tensor_to_doubles_async, error);
  guard = leave_cpu_stream ();
  return host != NULL ? gtorch_tensor_to_doubles (host, n_values, error) : NULL;
}

/**
 * gtorch_tensor_to_ints_async:
 * @self: a tensor
 * @cancellable: (nullable): cancels the wait
 * @callback: (nullable) (scope async) (closure user_data): called when the elements have arrived
 * @user_data: data for @callback
 *
 * Gets all elements as integers, in C order, without blocking the main loop.
 *
 * The read is ordered as in [method@Tensor.item_double_async]: the elements are those that the tensor has at
 * the call.
 *
 * Since: 0.1
 */
void
gtorch_tensor_to_ints_async (GTorchTensor *self, GCancellable *cancellable,
                             GAsyncReadyCallback callback, gpointer user_data)
{
  g_return_if_fail (GTORCH_IS_TENSOR (self));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  start_read (gtorch_task_new (self, gtorch_tensor_to_ints_async, cancellable, callback, user_data),
              self, FALSE);
}

/**
 * gtorch_tensor_to_ints_finish:
 * @self: a tensor
 * @result: the result that the callback got
 * @n_values: (out): the number of values
 * @error: return location for an error
 *
 * Finishes [method@Tensor.to_ints_async].
 *
 * Returns: (transfer full) (array length=n_values): the values, as of [method@Tensor.to_ints], or %NULL with
 *   the errors of that and of [method@Tensor.to_device_finish]
 *
 * Since: 0.1
 */
gint64 *
gtorch_tensor_to_ints_finish (GTorchTensor *self, GAsyncResult *result, gsize *n_values,
                              GError **error)
{
  g_autoptr (GTorchTensor) host = NULL;
  g_autoptr (GTorchStreamGuard) guard = NULL;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), NULL);
  g_return_val_if_fail (n_values != NULL, NULL);
  host = FINISH_READ (self, result, gtorch_tensor_to_ints_async, error);
  guard = leave_cpu_stream ();
  return host != NULL ? gtorch_tensor_to_ints (host, n_values, error) : NULL;
}
