/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Copies and values of tensors for programs with a main loop.
 *
 * What a GPU can do by itself is enqueued where the call is made, so that it has its place among the work
 * of the stream, and the task ends with a fence behind it. Where the host has to do something itself (it
 * copies from pageable memory, or waits for a stream of the CPU) a thread does, with the caller's streams
 * as its own. */

#include "config.h"

#include "gtorch-tensor-async.h"

#include <glib/gi18n-lib.h>

#include "gtorch-capture-private.h"
#include "gtorch-ops-private.h"
#include "gtorch-stream-private.h"
#include "gtorch-tensor-bytes.h"
#include "gtorch-tensor-private.h"

typedef struct
{
  GTorchImpl *dst, *src; /* dst NULL: to be made */
  GTorchDevice *device;
  GTorchStream *streams[2]; /* the caller's, of the CPU and of the GPU; NULL: the default one */
  GTorchImpl *result;       /* what the task returns once its work is done */
} Copy;

static void
copy_free (gpointer data)
{
  Copy *copy = data;

  g_clear_pointer (&copy->dst, gtorch_impl_unref);
  g_clear_pointer (&copy->src, gtorch_impl_unref);
  g_clear_pointer (&copy->result, gtorch_impl_unref);
  g_clear_object (&copy->streams[0]);
  g_clear_object (&copy->streams[1]);
  g_free (copy);
}

static gboolean
is_on_cpu (const GTorchImpl *impl)
{
  return gtorch_impl_device (impl)->type == GTORCH_DEVICE_TYPE_CPU;
}

/* The one of the two that is not the CPU; the CPU if both are. */
static GTorchDevice *
find_gpu (const Copy *copy)
{
  return copy->device->type != GTORCH_DEVICE_TYPE_CPU ? copy->device
                                                      : gtorch_impl_device (copy->src);
}

static GTorchStream *
stream_of (GTorchDevice *device)
{
  GTorchStream *stream = gtorch_current_stream (device);

  return stream != NULL ? stream : gtorch_device_get_default_stream (device);
}

/* Nothing computes it any more, or will before another call. */
static gboolean
is_ready (const GTorchImpl *impl)
{
  return gtorch_current_stream (gtorch_impl_device (impl)) == NULL
         && impl->storage->free_func == NULL
         && __atomic_load_n (&impl->storage->writer, __ATOMIC_ACQUIRE) == NULL;
}

static void
return_result (GTask *task)
{
  Copy *copy = g_task_get_task_data (task);

  g_task_return_pointer (task, gtorch_tensor_wrap (g_steal_pointer (&copy->result)),
                         g_object_unref);
}

/* --- in a thread --- */

static gboolean
copy_here (Copy *copy, GCancellable *cancellable, GError **error)
{
  GTorchDevice *gpu = find_gpu (copy);
  GTorchFence *fence;
  gboolean result;

  if (copy->dst == NULL && gtorch_impl_device (copy->src) == copy->device)
    {
      copy->result = gtorch_impl_ref (copy->src);
      return gtorch_impl_sync (copy->src, error);
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
  GTorchDevice *devices[] = { gtorch_device_cpu (), find_gpu (copy) };
  guint n = devices[1] == devices[0] ? 1 : 2, i;
  GTorchStream *own[2] = { NULL, NULL };
  GError *error = NULL;
  gboolean done;

  for (i = 0; i < n; i++)
    own[i] = gtorch_stream_swap (devices[i], copy->streams[i]);
  done = copy_here (copy, cancellable, &error);
  for (i = 0; i < n; i++)
    {
      g_autoptr (GTorchStream) used = gtorch_stream_swap (devices[i], own[i]);

      g_clear_object (&own[i]);
    }
  if (done)
    return_result (task);
  else
    g_task_return_error (task, error);
}

static void
start_thread (GTask *task)
{
  g_task_set_return_on_cancel (task, TRUE);
  g_task_run_in_thread (task, copy_in_thread);
}

/* --- behind work that is enqueued --- */

static void
fence_passed (GObject *object, GAsyncResult *result, gpointer data)
{
  g_autoptr (GTask) task = data;
  Copy *copy = g_task_get_task_data (task);
  GError *error = NULL;

  if (!g_task_propagate_boolean (G_TASK (result), &error))
    g_task_return_error (task, error);
  else if (copy->dst != NULL && copy->dst != copy->result)
    { /* from the pinned memory to where it is wanted */
      gtorch_impl_unref (copy->src);
      copy->src = g_steal_pointer (&copy->result);
      start_thread (task);
    }
  else
    return_result (task);
}

static void
return_behind (GTask *task, GTorchStream *stream)
{
  GTask *wait = g_task_new (g_task_get_source_object (task), g_task_get_cancellable (task),
                            fence_passed, g_object_ref (task));
  GError *error = NULL;
  GTorchFence *fence = gtorch_stream_record_fence (stream, GTORCH_EVENT_NONE, &error);

  if (fence != NULL)
    gtorch_fence_return_task (fence, wait, stream->timeline);
  else
    g_task_return_error (wait, error);
  g_clear_pointer (&fence, gtorch_fence_unref);
  g_object_unref (wait);
}

/* Can a GPU do all of it by itself, from and to these? */
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

/* FALSE with an error, or without one if a thread must do it. */
static gboolean
enqueue (Copy *copy, GError **error)
{
  GTorchImpl *src = copy->src, *dst = copy->dst;
  gboolean to_cpu = copy->device->type == GTORCH_DEVICE_TYPE_CPU;

  if (is_on_cpu (src) && to_cpu)
    return FALSE;
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
    return FALSE;
  return gtorch_op_copy_inplace (copy->result, src, TRUE, error);
}

static void
start (GTask *task, GTorchImpl *dst, GTorchImpl *src, GTorchDevice *device)
{
  Copy *copy = g_new0 (Copy, 1);
  GTorchDevice *gpu;
  GTorchStream *stream;
  GError *error = NULL;

  g_task_set_task_data (task, copy, copy_free);
  /* Aliases: release () does not reach them, and no gradient flows. */
  copy->src = src->storage != NULL ? gtorch_impl_alias (src) : NULL;
  copy->dst = dst != NULL && dst->storage != NULL ? gtorch_impl_alias (dst) : NULL;
  copy->device = device;
  if (copy->src == NULL || (dst != NULL && copy->dst == NULL))
    {
      g_task_return_new_error (task, GTORCH_ERROR, GTORCH_ERROR_RELEASED,
                               _ ("copy: the tensor of shape %s was released"),
                               gtorch_impl_shape_str (copy->src == NULL ? src : dst));
      return;
    }
  gpu = find_gpu (copy);
  stream = stream_of (gpu);
  if (gtorch_stream_is_capturing (stream) || !gtorch_capture_allow_sync (src, &error))
    {
      if (error == NULL)
        g_set_error (&error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                     _ ("copy: the stream captures a graph: what is to be waited for is not done "
                        "before it is replayed"));
      g_task_return_error (task, error);
      return;
    }
  if (dst == NULL && gtorch_impl_device (src) == device)
    {
      copy->result = gtorch_impl_ref (src); /* the tensor itself */
      if (!is_on_cpu (src))
        return_behind (task, stream);
      else if (is_ready (src))
        return_result (task);
      else
        {
          gtorch_impl_unref (copy->src);
          copy->src = g_steal_pointer (&copy->result);
          goto thread;
        }
      return;
    }
  if (enqueue (copy, &error))
    {
      return_behind (task, stream);
      return;
    }
  if (error != NULL)
    {
      g_task_return_error (task, error);
      return;
    }
thread:
  g_set_object (&copy->streams[0], gtorch_current_stream (gtorch_device_cpu ()));
  if (gpu->type != GTORCH_DEVICE_TYPE_CPU)
    g_set_object (&copy->streams[1], gtorch_current_stream (gpu));
  start_thread (task);
}

/* --- tensors --- */

/**
 * gtorch_tensor_to_device_async:
 * @self: a tensor
 * @device: where it is to be
 * @cancellable: (nullable): stops the waiting, not the copy
 * @callback: (nullable) (scope async) (closure user_data): called when the elements are there
 * @user_data: given to @callback
 *
 * Gets the elements on another device without blocking the main loop.
 *
 * The copy has its place among the work of the current stream: it has what was computed before the call. What
 * is on the CPU must not be written to before the end, as a thread may still read it. A copy from a GPU
 * is in pinned memory, of which there may be a limit ([property@HostAllocator:limit]).
 * Gradients do not flow through it.
 *
 * Since: 0.1
 */
void
gtorch_tensor_to_device_async (GTorchTensor *self, GTorchDevice *device, GCancellable *cancellable,
                               GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = NULL;

  g_return_if_fail (GTORCH_IS_TENSOR (self));
  g_return_if_fail (GTORCH_IS_DEVICE (device));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = g_task_new (self, cancellable, callback, user_data);
  g_task_set_source_tag (task, gtorch_tensor_to_device_async);
  start (task, NULL, gtorch_tensor_unwrap (self), device);
}

/**
 * gtorch_tensor_to_device_finish:
 * @self: a tensor
 * @result: what the callback got
 * @error: return location for an error
 *
 * Ends [method@Tensor.to_device_async]. Reading the result does not wait any more.
 *
 * Returns: (transfer full): the tensor on the device, @self if it was there; %NULL with
 *   %GTORCH_ERROR_RELEASED, %GTORCH_ERROR_OUT_OF_MEMORY, %GTORCH_ERROR_CAPTURE, %G_IO_ERROR_CANCELLED
 *   or the error of the work
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_to_device_finish (GTorchTensor *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  g_return_val_if_fail (g_task_is_valid (result, self), NULL);
  return g_task_propagate_pointer (G_TASK (result), error);
}

/**
 * gtorch_tensor_copy_inplace_async:
 * @self: a tensor
 * @src: a tensor whose shape can be broadcast to that of @self
 * @cancellable: (nullable): stops the waiting, not the copy
 * @callback: (nullable) (scope async) (closure user_data): called when the elements are there
 * @user_data: given to @callback
 *
 * Writes the elements of @src, converted to the dtype of @self, into @self, without blocking the main
 * loop.
 *
 * Neither tensor must be written to before the end, and @self not be read. Nothing is recorded for
 * gradients, as within [func@set_grad_enabled].
 *
 * Since: 0.1
 */
void
gtorch_tensor_copy_inplace_async (GTorchTensor *self, GTorchTensor *src, GCancellable *cancellable,
                                  GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = NULL;
  GTorchImpl *impl;

  g_return_if_fail (GTORCH_IS_TENSOR (self));
  g_return_if_fail (GTORCH_IS_TENSOR (src));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = g_task_new (self, cancellable, callback, user_data);
  g_task_set_source_tag (task, gtorch_tensor_copy_inplace_async);
  impl = gtorch_tensor_unwrap (self);
  start (task, impl, gtorch_tensor_unwrap (src),
         impl->storage != NULL ? gtorch_impl_device (impl) : gtorch_device_cpu ());
}

/**
 * gtorch_tensor_copy_inplace_finish:
 * @self: a tensor
 * @result: what the callback got
 * @error: return location for an error
 *
 * Ends [method@Tensor.copy_inplace_async].
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
  g_return_val_if_fail (g_task_is_valid (result, self), FALSE);
  written = g_task_propagate_pointer (G_TASK (result), error);
  return written != NULL;
}

/* --- one element --- */

static void
start_item (GTorchTensor *self, gpointer tag, GCancellable *cancellable,
            GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = g_task_new (self, cancellable, callback, user_data);
  GTorchImpl *impl = gtorch_tensor_unwrap (self);

  g_task_set_source_tag (task, tag);
  if (impl->numel != 1)
    g_task_return_new_error (task, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                             _ ("item: a tensor of shape %s has %" G_GINT64_FORMAT
                                " elements, not one"),
                             gtorch_impl_shape_str (impl), impl->numel);
  else
    start (task, NULL, impl, gtorch_device_cpu ());
}

/**
 * gtorch_tensor_item_double_async:
 * @self: a tensor with one element
 * @cancellable: (nullable): stops the waiting
 * @callback: (nullable) (scope async) (closure user_data): called when the element is known
 * @user_data: given to @callback
 *
 * Gets the only element as a number, without blocking the main loop.
 *
 * Since: 0.1
 */
void
gtorch_tensor_item_double_async (GTorchTensor *self, GCancellable *cancellable,
                                 GAsyncReadyCallback callback, gpointer user_data)
{
  g_return_if_fail (GTORCH_IS_TENSOR (self));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  start_item (self, gtorch_tensor_item_double_async, cancellable, callback, user_data);
}

/**
 * gtorch_tensor_item_double_finish:
 * @self: a tensor
 * @result: what the callback got
 * @error: return location for an error
 *
 * Ends [method@Tensor.item_double_async].
 *
 * Returns: as [method@Tensor.item_double]
 *
 * Since: 0.1
 */
gdouble
gtorch_tensor_item_double_finish (GTorchTensor *self, GAsyncResult *result, GError **error)
{
  g_autoptr (GTorchTensor) host = NULL;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), 0);
  g_return_val_if_fail (g_task_is_valid (result, self), 0);
  host = g_task_propagate_pointer (G_TASK (result), error);
  return host != NULL ? gtorch_tensor_item_double (host, error) : 0;
}

/**
 * gtorch_tensor_item_int_async:
 * @self: a tensor with one element
 * @cancellable: (nullable): stops the waiting
 * @callback: (nullable) (scope async) (closure user_data): called when the element is known
 * @user_data: given to @callback
 *
 * Gets the only element as an integer, without blocking the main loop.
 *
 * Since: 0.1
 */
void
gtorch_tensor_item_int_async (GTorchTensor *self, GCancellable *cancellable,
                              GAsyncReadyCallback callback, gpointer user_data)
{
  g_return_if_fail (GTORCH_IS_TENSOR (self));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  start_item (self, gtorch_tensor_item_int_async, cancellable, callback, user_data);
}

/**
 * gtorch_tensor_item_int_finish:
 * @self: a tensor
 * @result: what the callback got
 * @error: return location for an error
 *
 * Ends [method@Tensor.item_int_async].
 *
 * Returns: as [method@Tensor.item_int]
 *
 * Since: 0.1
 */
gint64
gtorch_tensor_item_int_finish (GTorchTensor *self, GAsyncResult *result, GError **error)
{
  g_autoptr (GTorchTensor) host = NULL;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), 0);
  g_return_val_if_fail (g_task_is_valid (result, self), 0);
  host = g_task_propagate_pointer (G_TASK (result), error);
  return host != NULL ? gtorch_tensor_item_int (host, error) : 0;
}
