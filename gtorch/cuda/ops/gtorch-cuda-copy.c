/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Copies on a GPU, between GPUs, and between a GPU and the host; fills. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "cpu/gtorch-cpu-cast.h"
#include "cpu/gtorch-cpu-iter.h"
#include "cuda/memory/gtorch-cuda-adopt-private.h"
#include "cuda/graph/gtorch-cuda-capture-private.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"
#include "memory/gtorch-pinned-private.h"

#define TILE 64

static GTorchCudaKernel casts[GTORCH_N_DTYPES][GTORCH_N_DTYPES];
static GTorchCudaKernel moves[5], converts[3], transposes[4], fills[5], spreads[5];

static guint64
n_blocks (guint64 n, guint per_thread)
{
  return MAX ((n + GT_THREADS * per_thread - 1) / (GT_THREADS * per_thread), 1);
}

static guint
size_index (gsize size)
{
  return g_bit_storage (size) - 1;
}

static gboolean
is_aligned (gconstpointer data)
{
  return ((guintptr) data & 15) == 0;
}

/* --- one element at a time, any layout --- */

/* Returns the dimension along which the farthest offset of an operand, or the number of elements, is
 * greatest. *fits tells whether all are small enough for one launch. */
static guint
widest_dim (const GTorchIter *iter, gboolean *fits)
{
  gint64 greatest = -1, widths[GTORCH_ITER_MAX_OPERANDS] = { 0 };
  guint d, k, widest = 0;

  *fits = iter->numel < G_MAXINT32;
  for (d = 0; d < iter->n_dims; d++)
    {
      gint64 width = iter->shape[d] - 1;

      for (k = 0; k < iter->n_operands; k++)
        {
          const gint64 own = ABS (iter->strides[d][k]) * (iter->shape[d] - 1);

          widths[k] += own;
          width = MAX (width, own);
          *fits &= widths[k] <= G_MAXINT32;
        }
      if (width > greatest)
        {
          greatest = width;
          widest = d;
        }
    }
  return widest;
}

gboolean
gtorch_cuda_run_strided (GTorchCudaFamily *family, GTorchCudaKernel *kernel, const gchar *name,
                         const GTorchIter *iter, GtStrided *p, GTorchCudaLane *lane, GError **error)
{
  gboolean fits;
  guint d, k, widest = widest_dim (iter, &fits);

  if (!fits)
    { /* as two halves */
      GTorchIter part = *iter;
      const gint64 whole = iter->shape[widest], half = whole / 2;

      part.shape[widest] = half;
      part.numel = iter->numel / whole * half;
      if (!gtorch_cuda_run_strided (family, kernel, name, &part, p, lane, error))
        return FALSE;
      for (k = 0; k < iter->n_operands; k++)
        part.data[k] += half * iter->strides[widest][k];
      part.shape[widest] = whole - half;
      part.numel = iter->numel / whole * (whole - half);
      return gtorch_cuda_run_strided (family, kernel, name, &part, p, lane, error);
    }
  p->base.n = iter->numel;
  p->n_dims = iter->n_dims;
  for (d = 0; d < iter->n_dims; d++)
    {
      p->shape[d] = gt_divider (iter->shape[d]);
      for (k = 0; k < iter->n_operands; k++)
        p->strides[d][k] = iter->strides[d][k];
    }
  for (k = 0; k < iter->n_operands; k++)
    p->base.data[k] = iter->data[k];
  return gtorch_cuda_kernel_run (kernel, family, name, lane, n_blocks (iter->numel, GT_STEPS),
                                 GT_THREADS, p, error);
}

/* --- transposed --- */

/* Returns the dimension along which the source is contiguous if the destination is contiguous along the
 * innermost one; otherwise 0. */
static guint
transposed_dim (const GTorchIter *iter, gint64 size)
{
  guint i;

  if (size > 8 || iter->strides[0][0] != size || iter->strides[0][1] == size || iter->shape[0] < 16)
    return 0;
  for (i = 1; i < iter->n_dims; i++)
    if (iter->strides[i][1] == size && iter->shape[i] >= 16)
      return i;
  return 0;
}

static gboolean
run_transpose (GTorchCudaLane *lane, const GTorchIter *iter, guint row_dim, gint64 size,
               gboolean *done, GError **error)
{
  guint64 across = (iter->shape[row_dim] + TILE - 1) / TILE;
  guint64 down = (iter->shape[0] + TILE - 1) / TILE;
  guint64 n_batches = 1;
  GtTranspose p = {
    .dst = iter->data[0],
    .src = iter->data[1],
    .rows = iter->shape[row_dim],
    .columns = iter->shape[0],
    .dst_row = iter->strides[row_dim][0] / size,
    .src_column = iter->strides[0][1] / size,
  };
  gchar name[32];
  guint i;

  *done = FALSE;
  if (iter->strides[row_dim][0] % size != 0 || iter->strides[0][1] % size != 0
      || iter->shape[0] >= G_MAXINT32 || iter->shape[row_dim] >= G_MAXINT32)
    return TRUE;
  for (i = 1; i < iter->n_dims; i++)
    if (i != row_dim)
      {
        if (iter->shape[i] >= G_MAXINT32)
          return TRUE;
        p.shape[p.n_dims] = gt_divider (iter->shape[i]);
        p.strides[p.n_dims][0] = iter->strides[i][0];
        p.strides[p.n_dims++][1] = iter->strides[i][1];
        n_batches *= iter->shape[i];
      }
  if (n_batches * across * down >= G_MAXINT32)
    return TRUE;
  p.tiles = gt_divider (across * down);
  p.tiles_across = gt_divider (across);
  *done = TRUE;
  g_snprintf (name, sizeof name, "gt_transpose_%d", (int) size);
  return gtorch_cuda_kernel_run (&transposes[size_index (size)], &gtorch_cuda_family_copy, name,
                                 lane, n_batches * across * down, 256, &p, error);
}

/* --- on one GPU --- */

gboolean
gtorch_cuda_copy_here (GTorchImpl *dst, GTorchImpl *src, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *operands[] = { dst, src };
  gsize size = gtorch_dtype_size (dst->dtype);
  gboolean same = dst->dtype == src->dtype, done = FALSE;
  GTorchCudaKernel *kernel;
  GtStrided p = { .n_dims = 0 };
  gchar name[32];
  GTorchIter iter;
  guint row_dim;

  if (dst->numel == 0)
    return TRUE;
  if (dst->is_contiguous && src->is_contiguous && gtorch_impl_same_shape (dst, src))
    {
      if (same)
        return gtorch_cuda_device_activate (lane->device, error)
               && gtorch_cuda_check (gtorch_cuda.cuMemcpyDtoDAsync ((CUdeviceptr) (guintptr)
                                                                        gtorch_impl_data (dst),
                                                                    (CUdeviceptr) (guintptr)
                                                                        gtorch_impl_data (src),
                                                                    dst->numel * size,
                                                                    lane->handle),
                                     "cuMemcpyDtoDAsync", error);
      if (is_aligned (gtorch_impl_data (dst)) && is_aligned (gtorch_impl_data (src)))
        {
          GtContiguous flat = { .data = { gtorch_impl_data (dst), gtorch_impl_data (src) },
                                .n = dst->numel };
          guint vector = 16 / MAX (size, gtorch_dtype_size (src->dtype));

          g_snprintf (name, sizeof name, "gt_cast_%s_%s", gtorch_cuda_dtype_suffixes[dst->dtype],
                      gtorch_cuda_dtype_suffixes[src->dtype]);
          return gtorch_cuda_kernel_run (&casts[dst->dtype][src->dtype], &gtorch_cuda_family_copy,
                                         name, lane, n_blocks (flat.n / vector, GT_VECTORS),
                                         GT_THREADS, &flat, error);
        }
    }

  gtorch_iter_init (&iter, operands, 2, dst->shape, dst->n_dims);
  if (same)
    {
      row_dim = transposed_dim (&iter, size);
      if (row_dim > 0 && !run_transpose (lane, &iter, row_dim, size, &done, error))
        return FALSE;
      if (done)
        return TRUE;
      kernel = &moves[size_index (size)];
      g_snprintf (name, sizeof name, "gt_move_%d", (int) size);
    }
  else
    {
      guint kind = gtorch_dtype_kind (src->dtype);
      guint which = kind == GTORCH_KIND_COMPLEX ? 2 : (kind == GTORCH_KIND_FLOAT ? 1 : 0);
      static const gchar *const names[] = { "i64", "f64", "c128" };

      kernel = &converts[which];
      g_snprintf (name, sizeof name, "gt_convert_%s", names[which]);
      p.dtypes[0] = dst->dtype;
      p.dtypes[1] = src->dtype;
    }
  return gtorch_cuda_run_strided (&gtorch_cuda_family_copy, kernel, name, &iter, &p, lane, error);
}

gboolean
gtorch_cuda_fill_with (GTorchImpl *dst, guint dtype, gconstpointer value, GTorchCudaLane *lane,
                       GError **error)
{
  gsize size = gtorch_dtype_size (dst->dtype);
  GtStrided strided = { .n_dims = 0 };
  GtContiguous *p = &strided.base;
  gchar name[32];
  GTorchIter iter;

  if (dst->numel == 0)
    return TRUE;
  gtorch_cpu_cast (dst->dtype, dtype) ((char *) &p->number[0], 16, value, 16, 1);
  if (dst->is_contiguous)
    {
      CUdeviceptr data = (CUdeviceptr) (guintptr) gtorch_impl_data (dst);

      if (p->number[0].words[0] == 0 && p->number[0].words[1] == 0)
        return gtorch_cuda_device_activate (lane->device, error)
               && gtorch_cuda_check (gtorch_cuda.cuMemsetD8Async (data, 0, dst->numel * size,
                                                                  lane->handle),
                                     "cuMemsetD8Async", error);
      if (is_aligned (gtorch_impl_data (dst)))
        {
          p->data[0] = gtorch_impl_data (dst);
          p->n = dst->numel;
          g_snprintf (name, sizeof name, "gt_fill_%d", (int) size);
          return gtorch_cuda_kernel_run (&fills[size_index (size)], &gtorch_cuda_family_copy, name,
                                         lane, n_blocks (p->n * size / 16, GT_VECTORS), GT_THREADS,
                                         p, error);
        }
    }
  gtorch_iter_init (&iter, &dst, 1, dst->shape, dst->n_dims);
  g_snprintf (name, sizeof name, "gt_spread_%d", (int) size);
  return gtorch_cuda_run_strided (&gtorch_cuda_family_copy, &spreads[size_index (size)], name,
                                  &iter, &strided, lane, error);
}

/* --- between devices --- */

static gboolean
follow (GTorchCudaLane *lane, GTorchCudaLane *other, GError **error)
{
  CUevent event;
  gboolean result;

  if (!gtorch_cuda_device_activate (other->device, error))
    return FALSE;
  event = gtorch_cuda_event_get (other->device, FALSE, error);
  result = event != NULL
           && gtorch_cuda_check (gtorch_cuda.cuEventRecord (event, other->handle), "cuEventRecord",
                                 error)
           && gtorch_cuda_device_activate (lane->device, error)
           && gtorch_cuda_check (gtorch_cuda.cuStreamWaitEvent (lane->handle, event, 0),
                                 "cuStreamWaitEvent", error);
  if (event != NULL)
    gtorch_cuda_event_put (other->device, event, FALSE);
  return result;
}

/* Refuses copies between a GPU and the host in a capture: the graph would access these addresses when it is
 * replayed. */
static gboolean
allow (GTorchCudaLane *lane, GTorchDevice *from, GTorchDevice *to, GError **error)
{
  if (G_LIKELY (gtorch_cuda_lane_capture (lane) == NULL))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
               _ ("copy: from %s to %s cannot be captured unless the memory of the host is "
                  "pinned, the tensors have the same shape and dtype, and the copy does not "
                  "block: make the copy before the capture, and copy into the same tensor "
                  "before each replay"),
               gtorch_device_name (from), gtorch_device_name (to));
  return FALSE;
}

/* Refuses a captured copy between two GPUs for which the GPU that does not capture would have to convert:
 * that would be done once, and not by replays. */
static gboolean
allow_peer (GTorchImpl *dst, GTorchImpl *src, gboolean direct, GTorchCudaLane *lane, GError **error)
{
  const GTorchDevice *own = &lane->device->parent_instance;

  if (G_LIKELY (gtorch_cuda_lane_capture (lane) == NULL) || dst->device->type != src->device->type
      || (dst->device == own ? src->is_contiguous : direct))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
               _ ("copy: from %s to %s cannot be captured unless the tensor on the device that "
                  "does "
                  "not capture is contiguous, and has the shape and the dtype of the other one"),
               gtorch_device_name (src->device), gtorch_device_name (dst->device));
  return FALSE;
}

static gboolean
enqueue_peer (GTorchImpl *dst, GTorchImpl *src, gsize n_bytes, GTorchCudaLane *lane, GError **error)
{
  const GTorchCudaDevice *to = GTORCH_CUDA_DEVICE (dst->storage->device);
  const GTorchCudaDevice *from = GTORCH_CUDA_DEVICE (src->storage->device);
  const CUdeviceptr dst_data = (CUdeviceptr) (guintptr) gtorch_impl_data (dst);
  const CUdeviceptr src_data = (CUdeviceptr) (guintptr) gtorch_impl_data (src);
  gboolean result;

  gtorch_cuda_note_begin (lane, "copy");
  if (gtorch_cuda_lane_capture (lane)
      != NULL) /* the driver does not capture cuMemcpyPeerAsync () */
    result = gtorch_cuda_check (gtorch_cuda.cuMemcpyDtoDAsync (dst_data, src_data, n_bytes,
                                                               lane->handle),
                                "cuMemcpyDtoDAsync", error);
  else
    result =
        gtorch_cuda_check (gtorch_cuda.cuMemcpyPeerAsync (dst_data, to->context, src_data,
                                                          from->context, n_bytes, lane->handle),
                           "cuMemcpyPeerAsync", error);
  return gtorch_cuda_note_end (lane, result);
}

/* Lets the GPU that captures use the memory of the other one, which each replay does. */
static gboolean
open_peer (GTorchImpl *dst, GTorchImpl *src, GTorchCudaLane *lane, GTorchCudaLane *other,
           GError **error)
{
  GTorchDevice *own = &lane->device->parent_instance, *peer = &other->device->parent_instance;
  GTORCH_CUDA_APART;

  if (gtorch_cuda_access_peer (own, peer, FALSE, NULL))
    return gtorch_cuda_access_peer (own, peer, TRUE, error);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
               _ ("copy: from %s to %s cannot be captured: %s cannot use the memory of %s"),
               gtorch_device_name (src->device), gtorch_device_name (dst->device),
               gtorch_device_name (own), gtorch_device_name (peer));
  return FALSE;
}

/* The copy becomes a node of the lane that captures. Each replay is ordered with the other device's
 * current stream (gtorch-graph-exec.c). Where both lanes are in one capture, it is one of the second lane,
 * and the launcher orders both around it. */
static gboolean
capture_from_peer (GTorchImpl *dst, GTorchImpl *src, gsize n_bytes, GTorchCudaLane *to,
                   GTorchCudaLane *from, GError **error)
{
  GTorchCudaLane *lane = gtorch_cuda_lane_capture (to) != NULL ? to : from;
  GTorchCudaLane *other = lane == to ? from : to;
  const gboolean both = gtorch_cuda_lane_capture (other) != NULL;

  if (both && gtorch_cuda_lane_capture (other) != gtorch_cuda_lane_capture (lane))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                   _ ("copy: from %s to %s cannot be captured: the current streams of both capture "
                      "graphs"),
                   gtorch_device_name (src->device), gtorch_device_name (dst->device));
      return FALSE;
    }
  if (!open_peer (dst, src, lane, other, error))
    return FALSE;
  if (lane == to || both)
    gtorch_cuda_use_storage (dst->storage, to);
  if (lane == from || both)
    gtorch_cuda_use_storage (src->storage, from);
  return gtorch_cuda_device_activate (lane->device, error)
         && enqueue_peer (dst, src, n_bytes, lane, error);
}

static gboolean
copy_from_peer (GTorchImpl *dst, GTorchImpl *src, gsize n_bytes, GError **error)
{
  GTorchCudaDevice *to = GTORCH_CUDA_DEVICE (dst->storage->device);
  GTorchCudaDevice *from = GTORCH_CUDA_DEVICE (src->storage->device);
  GTorchCudaLane *to_lane = gtorch_cuda_current_lane (dst->storage->device, error);
  GTorchCudaLane *from_lane =
      to_lane != NULL ? gtorch_cuda_current_lane (src->storage->device, error) : NULL;

  if (from_lane == NULL)
    return FALSE;
  if (G_UNLIKELY (gtorch_cuda_lane_capture (from_lane) != NULL
                  || gtorch_cuda_lane_capture (to_lane) != NULL))
    return capture_from_peer (dst, src, n_bytes, to_lane, from_lane, error);
  gtorch_cuda_try_peer (from, to);
  if (!follow (from_lane, to_lane, error) || !gtorch_cuda_device_activate (from, error))
    return FALSE;
  gtorch_cuda_use_storage (src->storage, from_lane);
  gtorch_cuda_use_storage (dst->storage, to_lane);
  return enqueue_peer (dst, src, n_bytes, from_lane, error) && follow (to_lane, from_lane, error);
}

/* Returns whether the copy can be asynchronous. In a capture it cannot, as no event reports its end. */
static gboolean
runs_by_itself (GTorchStorage *host, GTorchCudaLane *lane)
{
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

  if (!gtorch_storage_is_pinned (host) || gtorch_captures_exist ())
    return FALSE;
  gtorch_cuda.cuStreamIsCapturing (lane->handle, &status);
  if (status != CU_STREAM_CAPTURE_STATUS_NONE)
    gtorch_host_lose (host); /* the graph will refer to the address */
  return status == CU_STREAM_CAPTURE_STATUS_NONE;
}

gboolean
gtorch_cuda_come_after_host (GTorchImpl *impl, GTorchCudaLane *lane, GError **error)
{
  GTorchStorage *host = impl->storage;
  GTorchTimeline *writer = __atomic_load_n (&host->writer, __ATOMIC_ACQUIRE);

  if (gtorch_current_stream (host->device) != NULL
      || (writer != NULL && !gtorch_timeline_is_of_copies (writer)))
    return gtorch_impl_sync (impl, error);
  return gtorch_host_order (host, lane, error);
}

static gboolean
copy_by_itself (GTorchImpl *dst, GTorchImpl *src, gsize n_bytes, GTorchCudaLane *lane,
                GError **error)
{
  gboolean to_host = dst->storage->device->type == GTORCH_DEVICE_TYPE_CPU;
  GTorchImpl *host = to_host ? dst : src, *other = to_host ? src : dst;
  GTorchDevice *device = other->storage->device;
  GTorchStream *stream = gtorch_stream_peek_current (device);
  CUdeviceptr address = (CUdeviceptr) (guintptr) gtorch_impl_data (other);
  gboolean result, is_captured = gtorch_cuda_lane_capture (lane) != NULL;

  gtorch_cuda_use_storage (other->storage, lane);
  if (is_captured) /* each replay comes after the work of the host, which then waits for it */
    gtorch_cuda_lane_keep_host (lane, host);
  else if (!gtorch_cuda_come_after_host (host, lane, error))
    return FALSE;
  gtorch_cuda_note_begin (lane, "copy");
  if (to_host)
    result = gtorch_cuda_check (gtorch_cuda.cuMemcpyDtoHAsync (gtorch_impl_data (host), address,
                                                               n_bytes, lane->handle),
                                "cuMemcpyDtoHAsync", error);
  else
    result = gtorch_cuda_check (gtorch_cuda.cuMemcpyHtoDAsync (address, gtorch_impl_data (host),
                                                               n_bytes, lane->handle),
                                "cuMemcpyHtoDAsync", error);
  return gtorch_cuda_note_end (lane, result)
         && (is_captured || gtorch_host_note_copy (host->storage, stream, error));
}

gboolean
gtorch_cuda_read_tensor (GTorchDevice *device, GTorchImpl *src, gpointer to, GError **error)
{
  GTorchCudaLane *lane = gtorch_cuda_current_lane (device, error);

  if (lane == NULL)
    return FALSE;
  gtorch_cuda_use_storage (src->storage, lane);
  return gtorch_cuda_read (lane, to, gtorch_impl_data (src), gtorch_impl_n_bytes (src), error);
}

gboolean
gtorch_cuda_copy (GTorchDevice *device, GTorchImpl *dst, GTorchImpl *src, gboolean non_blocking,
                  GError **error)
{
  gsize n_bytes = dst->numel * gtorch_dtype_size (dst->dtype);
  GTorchDevice *from = src->storage->device, *to = dst->storage->device;
  GTorchCudaLane *lane;

  if (n_bytes == 0)
    return TRUE;
  if (from->type == to->type)
    return copy_from_peer (dst, src, n_bytes, error);
  lane = gtorch_cuda_current_lane (device, error);
  if (lane != NULL && G_UNLIKELY (gtorch_cuda_lane_capture (lane) != NULL) && non_blocking
      && gtorch_storage_is_pinned (from->type == GTORCH_DEVICE_TYPE_CPU ? src->storage
                                                                        : dst->storage))
    return gtorch_cuda_device_activate (GTORCH_CUDA_DEVICE (device), error)
           && copy_by_itself (dst, src, n_bytes, lane, error);
  if (lane == NULL || !allow (lane, from, to, error)
      || !gtorch_cuda_device_activate (GTORCH_CUDA_DEVICE (device), error))
    return FALSE;
  if (runs_by_itself (from->type == GTORCH_DEVICE_TYPE_CPU ? src->storage : dst->storage, lane)
      && (non_blocking || from->type == GTORCH_DEVICE_TYPE_CPU))
    return copy_by_itself (dst, src, n_bytes, lane, error)
           && (non_blocking || gtorch_cuda_lane_synchronize (lane, "copy", error));
  if (from->type == GTORCH_DEVICE_TYPE_CPU)
    {
      /* When the driver's function returns, it has read pageable memory, but perhaps not memory that other
       * libraries have pinned. */
      gboolean is_others = src->storage->free_func != NULL
                           && !gtorch_storage_is_pinned (src->storage)
                           && gtorch_cuda_is_host_memory (gtorch_impl_data (src))
                           && !gtorch_cuda_lane_is_capturing (lane);

      gtorch_cuda_use_storage (dst->storage, lane);
      if (!gtorch_impl_sync (src, error))
        return FALSE;
      gtorch_cuda_note_begin (lane, "copy");
      return gtorch_cuda_note_end (
                 lane, gtorch_cuda_check (gtorch_cuda.cuMemcpyHtoDAsync ((CUdeviceptr) (guintptr)
                                                                             gtorch_impl_data (dst),
                                                                         gtorch_impl_data (src),
                                                                         n_bytes, lane->handle),
                                          "cuMemcpyHtoDAsync", error))
             && (!is_others || gtorch_cuda_lane_synchronize (lane, "copy", error));
    }
  return gtorch_impl_sync (dst, error)
         && gtorch_cuda_read_tensor (device, src, gtorch_impl_data (dst), error);
}

/* --- operations --- */

gboolean
gtorch_cuda_clone (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return gtorch_cuda_copy_here (call->outputs[0], call->inputs[0], lane, error);
}

gboolean
gtorch_cuda_to_dtype (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  const gboolean is_last = !call->outputs[0]->is_contiguous; /* as the input is */
  g_autoptr (GTorchImpl) to = gtorch_cuda_turn (call->outputs[0], is_last);
  g_autoptr (GTorchImpl) from = gtorch_cuda_turn (call->inputs[0], is_last);

  return gtorch_cuda_copy_here (to, from, lane, error);
}

gboolean
gtorch_cuda_copy_op (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *dst = call->outputs[0], *src = call->inputs[1];
  g_autoptr (GTorchImpl) moved = NULL;
  gboolean direct;

  if (src->storage->device == dst->storage->device)
    return gtorch_cuda_copy_here (dst, src, lane, error);
  direct = dst->is_contiguous && dst->dtype == src->dtype && gtorch_impl_same_shape (dst, src);
  if (!direct
      && gtorch_device_is_host (dst->storage->device)) /* in a capture: see gtorch_launch () */
    return allow (lane, src->storage->device, dst->storage->device, error);
  if (!allow_peer (dst, src, direct, lane, error))
    return FALSE;
  moved = gtorch_copy_to_device (src, dst->storage->device, call->attrs[0].i, direct ? dst : NULL,
                                 error);
  return moved != NULL && (moved == dst || gtorch_cuda_copy_here (dst, moved, lane, error));
}

gboolean
gtorch_cuda_empty (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return TRUE;
}

static gboolean
fill (GTorchOpCall *call, GTorchCudaLane *lane, gdouble value, GError **error)
{
  return gtorch_cuda_fill_with (call->outputs[0], GTORCH_DTYPE_FLOAT64, &value, lane, error);
}

static gboolean
fill_number (GTorchOpCall *call, GTorchCudaLane *lane, const GTorchAttr *attr, GError **error)
{
  if (gtorch_dtype_kind (call->outputs[0]->dtype) == GTORCH_KIND_INT)
    return gtorch_cuda_fill_with (call->outputs[0], GTORCH_DTYPE_INT64, &attr->number.i, lane,
                                  error);
  return fill (call, lane, attr->number.d, error);
}

gboolean
gtorch_cuda_scalar_tensor (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return fill_number (call, lane, &call->attrs[0], error);
}

gboolean
gtorch_cuda_new_full (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return fill_number (call, lane, &call->attrs[1], error);
}

gboolean
gtorch_cuda_zeros (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return fill (call, lane, 0, error);
}

gboolean
gtorch_cuda_ones (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return fill (call, lane, 1, error);
}

gboolean
gtorch_cuda_full (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return fill_number (call, lane, &call->attrs[1], error);
}

gboolean
gtorch_cuda_full_like (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return fill_number (call, lane, &call->attrs[0], error);
}

gboolean
gtorch_cuda_fill (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return fill_number (call, lane, &call->attrs[0], error);
}
