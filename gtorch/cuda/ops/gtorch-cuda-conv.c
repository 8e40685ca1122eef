/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Prepares convolutions for cuDNN: brings images into a layout that is fast there, contiguous or with
 * channels last; passes no more images at once than cuDNN can count; adds the bias. */

#include "config.h"

#include <string.h>

#include "cuda/ops/gtorch-cuda-conv-private.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "cuda/driver/gtorch-cuda-private.h"

#define ALIGNMENT    16
#define MAX_ELEMENTS G_MAXINT32

static void
image_strides (const gint64 *shape, gboolean channels_last, gint64 *strides)
{
  if (!channels_last)
    {
      gtorch_contiguous_strides (shape, 4, strides);
      return;
    }
  strides[1] = 1;
  strides[3] = shape[1];
  strides[2] = shape[3] * strides[3];
  strides[0] = shape[2] * strides[2];
}

static gboolean
is_laid_out (const GTorchImpl *impl, gboolean channels_last)
{
  gint64 strides[4];
  guint i;

  image_strides (impl->shape, channels_last, strides);
  for (i = 0; i < 4; i++)
    if (impl->shape[i] != 1 && impl->strides[i] != strides[i])
      return FALSE;
  return TRUE;
}

static GTorchImpl *
new_image (GTorchImpl *like, guint dtype, gboolean channels_last, GTorchCudaLane *lane,
           GError **error)
{
  g_autoptr (GTorchImpl) plain =
      gtorch_impl_new (gtorch_cuda_lane_device (lane), dtype, like->shape, 4, error);
  gint64 strides[4];

  if (plain == NULL || !channels_last)
    return g_steal_pointer (&plain);
  image_strides (like->shape, TRUE, strides);
  return gtorch_impl_new_strided (plain->storage, dtype, 0, like->shape, strides, 4);
}

/* Lays the tensor out for cuDNN; returns the tensor itself if cuDNN can take it as it is. */
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

/* Whether channels last is preferable. Tensor cores require it: converting takes less time than other
 * engines would lose. */
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

static gboolean
add_bias (GTorchImpl *y, GTorchImpl *bias, gboolean channels_last, GTorchCudaLane *lane,
          GError **error)
{
  gint64 vector = 16 / (gint64) gtorch_dtype_size (y->dtype);
  const GtBias p = {
    .bias = gtorch_impl_data (bias),
    .y = gtorch_impl_data (y),
    .n = y->numel,
    .pixels = channels_last ? 1 : y->shape[2] * y->shape[3],
    .channels = y->shape[1],
  };

  return gtorch_cuda_run (&gtorch_kernels_convolve_bias, y->dtype, lane,
                          (y->numel + vector - 1) / vector, &p, error);
}

/* Converts from channels last to contiguous and adds the bias on the way. */
static gboolean
turn (GTorchImpl *to, GTorchImpl *from, GTorchImpl *bias, GTorchCudaLane *lane, GError **error)
{
  gint64 pixels = to->shape[2] * to->shape[3], channels = to->shape[1];
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

/* Runs the convolution in the form's layout, for which cuDNN is known to have an engine. */
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
      if (conv->bias != NULL && last && images[2] != conv->y && conv->y->is_contiguous
          && conv->y->dtype == conv->dtype)
        ok = turn (conv->y, images[2], conv->bias, lane, error);
      else
        ok = (conv->bias == NULL || add_bias (images[2], conv->bias, last, lane, error))
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
  /* Timing would add to the output several times. */
  gboolean timed = !accumulate && g_atomic_int_get (&device->benchmark);
  g_autoptr (GError) local = NULL;
  GTorchCudnnConv form = {
    .kind = conv->kind,
    .dtype = conv->dtype,
    .accumulate = accumulate,
    .tf32 = tf32,
  };
  guint attempt;

  memcpy (form.x, conv->x->shape, sizeof form.x);
  memcpy (form.w, conv->w->shape, sizeof form.w);
  memcpy (form.y, conv->y->shape, sizeof form.y);
  memcpy (form.stride, conv->stride, sizeof form.stride);
  memcpy (form.padding, conv->padding, sizeof form.padding);
  memcpy (form.dilation, conv->dilation, sizeof form.dilation);

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
  const gint64 shape[] = { n, all->shape[1], all->shape[2], all->shape[3] };

  return gtorch_impl_new_view (all, all->offset + first * all->strides[0], shape, all->strides, 4);
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

  /* cuDNN's counts have 32 bits. */
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
