/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Convolutions, by cuDNN or by kernels of the library. For cuDNN, converts images to a layout that is fast
 * there, contiguous or channels last; splits batches that have more elements than cuDNN can count; adds the
 * bias. */

#include "config.h"

#include <string.h>

#include "cuda/ops/gtorch-cuda-conv-private.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "cuda/driver/gtorch-cuda-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

#define ALIGNMENT    16
#define MAX_ELEMENTS G_MAXINT32

void
gtorch_cuda_image_strides (const gint64 *shape, guint n_dims, gboolean channels_last,
                           gint64 *strides)
{
  gint64 stride = shape[1];
  guint i;

  if (!channels_last)
    {
      gtorch_contiguous_strides (shape, n_dims, strides);
      return;
    }
  strides[1] = 1;
  for (i = n_dims; i-- > 2; stride *= shape[i])
    strides[i] = stride;
  strides[0] = stride;
}

static gboolean
is_laid_out (const GTorchImpl *impl, gboolean channels_last)
{
  gint64 strides[5];
  guint i;

  gtorch_cuda_image_strides (impl->shape, impl->n_dims, channels_last, strides);
  for (i = 0; i < impl->n_dims; i++)
    if (impl->shape[i] != 1 && impl->strides[i] != strides[i])
      return FALSE;
  return TRUE;
}

static GTorchImpl *
new_image (GTorchImpl *like, guint dtype, gboolean channels_last, GTorchCudaLane *lane,
           GError **error)
{
  g_autoptr (GTorchImpl) plain =
      gtorch_impl_new (gtorch_cuda_lane_device (lane), dtype, like->shape, like->n_dims, error);
  gint64 strides[5];

  if (plain == NULL || !channels_last)
    return g_steal_pointer (&plain);
  gtorch_cuda_image_strides (like->shape, like->n_dims, TRUE, strides);
  return gtorch_impl_new_strided (plain->storage, dtype, 0, like->shape, strides, like->n_dims);
}

/* Returns the tensor in a layout and dtype for cuDNN: itself if it has them already, else a copy. */
static GTorchImpl *
lay_out (GTorchImpl *impl, guint dtype, gboolean channels_last, gboolean with_values,
         GTorchCudaLane *lane, GError **error)
{
  g_autoptr (GTorchImpl) copy = NULL;

  if (impl->dtype == dtype && is_laid_out (impl, channels_last)
      && (guintptr) gtorch_impl_data (impl) % ALIGNMENT == 0)
    return gtorch_impl_ref (impl);
  copy = new_image (impl, dtype, channels_last, lane, error);
  if (copy == NULL || (with_values && !gtorch_cuda_copy_here (copy, impl, lane, error)))
    return NULL;
  return g_steal_pointer (&copy);
}

/* Returns the index of the computed tensor among x, w, y. */
static guint
wanted_place (const GTorchCudaConv *conv)
{
  return conv->kind == GTORCH_CUDNN_FORWARD ? 2 : (conv->kind == GTORCH_CUDNN_INPUT ? 0 : 1);
}

/* Returns whether channels last is the better layout. Tensor cores require it, and converting takes less
 * time than other engines would lose. */
static gboolean
prefers_channels_last (const GTorchCudaConv *conv, gboolean tf32)
{
  const GTorchImpl *given[] = { conv->x, conv->w, conv->y };
  guint i;

  if ((tf32 || gtorch_dtype_size (conv->dtype) == 2) && conv->w->shape[1] % 8 == 0
      && conv->w->shape[0] % 8 == 0)
    return TRUE;
  for (i = 0; i < G_N_ELEMENTS (given); i++)
    if (i != wanted_place (conv) && is_laid_out (given[i], TRUE) && !is_laid_out (given[i], FALSE))
      return TRUE;
  return FALSE;
}

/* --- running --- */

/* Returns the number of elements of one channel. */
static gint64
count_pixels (const GTorchImpl *image)
{
  return image->numel / (image->shape[0] * image->shape[1]);
}

static gboolean
add_bias (GTorchImpl *y, GTorchImpl *bias, gboolean channels_last, GTorchCudaLane *lane,
          GError **error)
{
  gint64 vector = 16 / (gint64) gtorch_dtype_size (y->dtype);
  const GtBias p = {
    .bias = gtorch_impl_data (bias),
    .y = gtorch_impl_data (y),
    .n = y->numel,
    .pixels = channels_last ? 1 : count_pixels (y),
    .channels = y->shape[1],
  };

  return gtorch_cuda_run (&gtorch_kernels_convolve_bias, y->dtype, lane,
                          (y->numel + vector - 1) / vector, &p, error);
}

/* Converts from channels last to contiguous, and adds the bias at the same time. */
static gboolean
turn (GTorchImpl *to, GTorchImpl *from, GTorchImpl *bias, GTorchCudaLane *lane, GError **error)
{
  gint64 pixels = count_pixels (to), channels = to->shape[1];
  gint64 tiles = to->shape[0] * ((pixels + 63) / 64) * ((channels + 63) / 64);
  const GtTurn p = {
    .x = gtorch_impl_data (from),
    .bias = gtorch_impl_data (bias),
    .y = gtorch_impl_data (to),
    .images = to->shape[0],
    .pixels = pixels,
    .channels = channels,
  };

  return gtorch_cuda_run (&gtorch_kernels_convolve_turn, to->dtype, lane, tiles * 256, &p, error);
}

/* Runs the convolution in the form's layout, for which cuDNN must have an engine. */
static gboolean
run_form (const GTorchCudaConv *conv, const GTorchCudnnConv *form, GTorchCudaLane *lane,
          gboolean *done, GError **error)
{
  GTorchImpl *given[] = { conv->x, conv->w, conv->y };
  GTorchImpl *images[3] = { NULL };
  guint wanted = wanted_place (conv), i;
  gboolean last = form->channels_last, ok = TRUE;

  for (i = 0; i < 3 && ok; i++)
    {
      images[i] =
          lay_out (given[i], conv->dtype, last, i != wanted || form->accumulate, lane, error);
      ok = images[i] != NULL;
    }
  ok = ok
       && gtorch_cuda_cudnn_convolve (form, lane, gtorch_impl_data (images[0]),
                                      gtorch_impl_data (images[1]), gtorch_impl_data (images[2]),
                                      done, error);
  if (ok && *done)
    {
      if (conv->bias != NULL && last && images[wanted] != given[wanted]
          && given[wanted]->is_contiguous && given[wanted]->dtype == conv->dtype)
        ok = turn (given[wanted], images[wanted], conv->bias, lane, error);
      else
        ok = (conv->bias == NULL || add_bias (images[wanted], conv->bias, last, lane, error))
             && (images[wanted] == given[wanted]
                 || gtorch_cuda_copy_here (given[wanted], images[wanted], lane, error));
    }
  gtorch_impl_clear (images, 3);
  return ok;
}

static gboolean
run_one (const GTorchCudaConv *conv, gboolean accumulate, GTorchCudaLane *lane, gboolean *done,
         GError **error)
{
  GTorchDevice *device = &lane->device->parent_instance;
  gboolean tf32 = conv->dtype == GTORCH_DTYPE_FLOAT32
                  && g_atomic_int_get (&device->conv_precision) != GTORCH_PRECISION_IEEE;
  gboolean last = prefers_channels_last (conv, tf32);
  /* Do not time engines if the result is added to the output, as it would be added several times. */
  gboolean timed = !accumulate && g_atomic_int_get (&device->benchmark);
  g_autoptr (GError) local = NULL;
  GTorchCudnnConv form = {
    .kind = conv->kind,
    .dtype = conv->dtype,
    .n_dims = conv->x->n_dims,
    .accumulate = accumulate,
    .tf32 = tf32,
  };
  const guint n_dims = conv->x->n_dims;
  guint attempt, i;

  for (i = 0; i < n_dims; i++)
    {
      form.x[i] = conv->x->shape[i];
      form.w[i] = conv->w->shape[i];
      form.y[i] = conv->y->shape[i];
    }
  for (i = 0; i < n_dims - 2; i++)
    {
      form.stride[i] = conv->stride[5 - n_dims + i];
      form.padding[i] = conv->padding[5 - n_dims + i];
      form.dilation[i] = conv->dilation[5 - n_dims + i];
    }

  /* Try the preferred layout, then the other one; then, if memory is short, both without workspace. */
  *done = FALSE;
  for (attempt = 0; attempt < 4 && !*done && (attempt < 2 || local != NULL); attempt++)
    {
      form.channels_last = last ^ (attempt & 1);
      form.frugal = attempt >= 2;
      form.timed = timed && !form.frugal;
      form.unordered = form.timed && !g_atomic_int_get (&device->deterministic);
      if (!gtorch_cuda_cudnn_has (&form, lane))
        continue;
      g_clear_error (&local);
      if (!run_form (conv, &form, lane, done, &local)
          && !g_error_matches (local, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY))
        break;
    }
  if (local == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&local));
  return FALSE;
}

static GTorchImpl *
some_images (GTorchImpl *all, gint64 first, gint64 n)
{
  gint64 shape[5] = { n };

  memcpy (shape + 1, all->shape + 1, (all->n_dims - 1) * sizeof (gint64));
  return gtorch_impl_new_view (all, all->offset + first * all->strides[0], shape, all->strides,
                               all->n_dims);
}

gboolean
gtorch_cuda_conv_run (const GTorchCudaConv *conv, GTorchCudaLane *lane, gboolean *done,
                      GError **error)
{
  gint64 largest = MAX (conv->x->numel, conv->y->numel), batch = conv->x->shape[0], step, i;
  gboolean ok = TRUE;

  *done = FALSE;
  if (!gtorch_cuda_device_activate (lane->device, error))
    return FALSE;
  if (largest <= MAX_ELEMENTS)
    return run_one (conv, FALSE, lane, done, error);

  /* cuDNN counts elements in 32 bits, so split the batch. */
  step = MAX_ELEMENTS / (largest / batch);
  if (step == 0)
    return TRUE;
  for (i = 0, *done = TRUE; i < batch && ok && *done; i += step)
    {
      gint64 n = MIN (step, batch - i);
      g_autoptr (GTorchImpl) x = some_images (conv->x, i, n);
      g_autoptr (GTorchImpl) y = some_images (conv->y, i, n);
      GTorchCudaConv part = *conv;

      part.x = x;
      part.y = y;
      ok = run_one (&part, conv->kind == GTORCH_CUDNN_WEIGHT && i > 0, lane, done, error);
    }
  return ok;
}

/* Runs the direct kernels, without cuDNN, on contiguous operands. */
static gboolean
cuda_run_plain (GTorchOpCall *call, GTorchCudaLane *lane, const GTorchConv *conv,
                GTorchCudnnKind kind, GTorchImpl *bias, GError **error)
{
  static const GtConvolveKernels *const kernels[] = { &gtorch_kernels_convolve,
                                                      &gtorch_kernels_convolve_input,
                                                      &gtorch_kernels_convolve_weight };
  guint dtype = call->compute;
  g_autoptr (GTorchImpl) a = gtorch_cuda_pack (call->inputs[0], dtype, lane, error);
  g_autoptr (GTorchImpl) b = NULL;
  g_autoptr (GTorchImpl) out = NULL;
  GtConvolve p = {
    .batch = conv->batch,
    .groups = conv->groups,
    .channels = conv->in_channels,
    .filters = conv->out_channels,
  };
  gboolean ok;

  memcpy (p.in, conv->in, sizeof p.in);
  memcpy (p.kernel, conv->kernel, sizeof p.kernel);
  memcpy (p.out, conv->out, sizeof p.out);
  memcpy (p.stride, conv->stride, sizeof p.stride);
  memcpy (p.padding, conv->padding, sizeof p.padding);
  memcpy (p.dilation, conv->dilation, sizeof p.dilation);

  b = a != NULL ? gtorch_cuda_pack (call->inputs[1], dtype, lane, error) : NULL;
  out = b != NULL ? gtorch_cuda_pack_output (call->outputs[0], dtype, error) : NULL;
  if (out == NULL)
    return FALSE;
  p.a = gtorch_impl_data (a);
  p.b = gtorch_impl_data (b);
  p.bias = bias != NULL ? gtorch_impl_data (bias) : NULL;
  p.y = gtorch_impl_data (out);
  if (kind == GTORCH_CUDNN_WEIGHT)
    ok = gtorch_cuda_run_blocks (kernels[kind], dtype, lane, out->numel, &p, error);
  else
    ok = gtorch_cuda_run (kernels[kind], dtype, lane, out->numel, &p, error);
  return ok && gtorch_cuda_unpack (out, call->outputs[0], lane, error);
}

static gboolean
cuda_run (GTorchOpCall *call, GTorchCudaLane *lane, const gint64 *input, const gint64 *weight,
          guint n_dims, GTorchCudnnKind kind, GError **error)
{
  GTorchImpl *x = kind == GTORCH_CUDNN_FORWARD ? call->inputs[0] : call->inputs[1];
  g_autoptr (GTorchImpl) bias = NULL;
  gboolean done = FALSE;
  GTorchCudaConv cuda;
  GTorchConv conv;

  if (!gtorch_conv_init (&conv, call, input, n_dims, weight, n_dims, error))
    return FALSE;
  if (call->outputs[0]->numel == 0)
    return TRUE;
  if (kind != GTORCH_CUDNN_WEIGHT && call->inputs[2] != NULL)
    {
      bias = gtorch_cuda_pack (call->inputs[2], call->compute, lane, error);
      if (bias == NULL)
        return FALSE;
    }
  if (conv.batch == 0 || conv.in_channels == 0 || conv.out_channels == 0)
    return bias == NULL ? gtorch_cuda_clear (call->outputs[0], lane, error)
                        : cuda_run_plain (call, lane, &conv, kind, bias, error);
  cuda = (GTorchCudaConv){
    .kind = kind,
    .dtype = call->compute,
    .x = kind == GTORCH_CUDNN_INPUT ? call->outputs[0] : x,
    .w = kind == GTORCH_CUDNN_WEIGHT ? call->outputs[0] : call->inputs[1],
    .y = kind == GTORCH_CUDNN_FORWARD ? call->outputs[0] : call->inputs[0],
    .bias = bias,
  };
  memcpy (cuda.stride, conv.stride, sizeof cuda.stride);
  memcpy (cuda.padding, conv.padding, sizeof cuda.padding);
  memcpy (cuda.dilation, conv.dilation, sizeof cuda.dilation);
  if (cuda.x->numel > 0 && gtorch_dtype_kind (call->compute) == GTORCH_KIND_FLOAT
      && !gtorch_cuda_conv_run (&cuda, lane, &done, error))
    return FALSE;
  return done || cuda_run_plain (call, lane, &conv, kind, bias, error);
}

gboolean
gtorch_cuda_convolve (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return cuda_run (call, lane, call->inputs[0]->shape, call->inputs[1]->shape,
                   call->inputs[0]->n_dims, GTORCH_CUDNN_FORWARD, error);
}

gboolean
gtorch_cuda_convolve_input (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return cuda_run (call, lane, call->attrs[0].list.data, call->inputs[1]->shape,
                   call->inputs[1]->n_dims, GTORCH_CUDNN_INPUT, error);
}

gboolean
gtorch_cuda_convolve_weight (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return cuda_run (call, lane, call->inputs[1]->shape, call->attrs[0].list.data,
                   call->inputs[1]->n_dims, GTORCH_CUDNN_WEIGHT, error);
}
