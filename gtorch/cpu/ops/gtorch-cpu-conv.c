/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Convolutions as matrix products without a patch matrix (im2col). The input is copied once into a padded
 * image; each element (c, y, x) of the filter is then multiplied with the same image, shifted by a fixed
 * offset. The micro-kernel of the matrix product takes those offsets in a table. With a horizontal stride
 * s, the columns of the padded image are sorted by their remainder modulo s, so that neighbouring results
 * read neighbouring elements.
 *
 * The gradient of the input is also such a convolution: of the output gradient, with zeros inserted between
 * its elements for strides, with the rotated filter. The gradient of the weight needs the patches as rows
 * and makes them in small blocks. */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/ops/gtorch-cpu-conv.h"
#include "cpu/ops/gtorch-cpu-gemm.h"
#include "cpu/gtorch-cpu-iter.h"
#include "device/gtorch-device-manager.h"
#include "device/gtorch-scratch-private.h"
#include "cpu/gtorch-cpu-pack.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

#define PATCHES   64        /* patches per block of the weight's gradient */
#define MAX_PARTS 16        /* most partial sums of the weight's gradient */
#define PARTS_MEM (1 << 25) /* most bytes for the partial sums */

typedef struct
{
  guint dtype;
  gsize size;
  gint64 batch, groups, in_channels, out_channels; /* in_channels and out_channels are per group */
  gint64 in[2], out[2], kernel[2], stride[2], dilation[2];
  gint64 before[2]; /* padding before the image; negative: cropping */
  gint64 spread[2]; /* distance of the input's elements in the padded image */
  gint64 padded[2]; /* height, and width of one of stride[1] phases */
  gint64 n_parts;   /* parts of the output channels, to have work for all threads */
  gint64 image;     /* elements of the padded image of one group, including those read past it */
  gint failed;      /* an allocation has failed; atomic */
  const gint64 *table;
  const char *input, *weight, *bias;
  char *output;
} Forward;

#define PAD(T)                                                                                \
  {                                                                                           \
    const T *from = (const T *) input;                                                        \
    T *to = image;                                                                            \
    for (c = 0; c < f->in_channels; c++)                                                      \
      for (y = 0; y < f->in[0]; y++, from += f->in[1])                                        \
        {                                                                                     \
          gint64 row = f->before[0] + y * f->spread[0];                                       \
          T *line = to + (c * f->padded[0] + row) * phases * f->padded[1];                    \
          if (row < 0 || row >= f->padded[0] || first == last)                                \
            continue;                                                                         \
          if (phases == 1 && f->spread[1] == 1)                                               \
            memcpy (line + MAX (f->before[1], 0), from + first, (last - first) * sizeof (T)); \
          else                                                                                \
            for (x = first; x < last; x++)                                                    \
              {                                                                               \
                gint64 at = f->before[1] + x * f->spread[1];                                  \
                line[at % phases * f->padded[1] + at / phases] = from[x];                     \
              }                                                                               \
        }                                                                                     \
  }

/* Pads the channels of one group of one image. The padding's zeros are there already. */
static void
pad (const Forward *f, const char *input, gpointer image)
{
  gint64 phases = f->stride[1], width = phases * f->padded[1];
  gint64 first = 0, last = f->in[1], c, y, x;

  while (first < last && f->before[1] + first * f->spread[1] < 0)
    first++;
  while (last > first && f->before[1] + (last - 1) * f->spread[1] >= width)
    last--;
  if (f->dtype == GTORCH_DTYPE_FLOAT32)
    PAD (float)
  else
    PAD (double)
}

static void
forward_items (gint64 begin, gint64 end, gpointer user_data)
{
  Forward *f = user_data;
  gint64 k = f->in_channels * f->kernel[0] * f->kernel[1];
  gint64 pitch = f->stride[0] * f->stride[1] * f->padded[1];
  gint64 part = (f->out_channels + f->n_parts - 1) / f->n_parts;
  gint64 n_out = f->out[0] * f->out[1];
  /* one long row, if there is little padding between rows */
  gboolean flat = pitch < 2 * f->out[1] && f->out[1] % 16 != 0;
  gint64 last_image = -1, i, y;
  g_autofree char *image = gtorch_scratch_new0 (f->image, f->size, NULL);
  GTorchConvSpan span = { .k = k, .table = f->table, .c_row = n_out };

  if (image == NULL)
    {
      g_atomic_int_set (&f->failed, TRUE);
      return;
    }
  for (i = begin; i < end; i++)
    {
      gint64 index = i / f->n_parts, group = index % f->groups;
      gint64 first = i % f->n_parts * part;

      if (index != last_image)
        pad (f, f->input + index * f->in_channels * f->in[0] * f->in[1] * (gint64) f->size, image);
      last_image = index;
      span.m = MIN (part, f->out_channels - first);
      if (span.m <= 0)
        continue;
      span.a = f->weight + (group * f->out_channels + first) * k * (gint64) f->size;
      span.bias =
          f->bias != NULL ? f->bias + (group * f->out_channels + first) * (gint64) f->size : NULL;
      span.c = f->output + (index * f->out_channels + first) * n_out * (gint64) f->size;
      span.b = image;
      span.width = f->out[1];
      span.pitch = flat ? pitch : f->out[1];
      span.n = flat ? (f->out[0] - 1) * pitch + f->out[1] : f->out[1];
      for (y = 0; y < (flat ? 1 : f->out[0]); y++)
        {
          if (f->dtype == GTORCH_DTYPE_FLOAT32)
            GTORCH_ISA_CALL (gtorch_conv_span_f32) (&span);
          else
            GTORCH_ISA_CALL (gtorch_conv_span_f64) (&span);
          span.b = (const char *) span.b + pitch * (gint64) f->size;
          span.c = (char *) span.c + f->out[1] * (gint64) f->size;
        }
    }
}

/* Computes the size of the padded image, including the slack that is read past it. */
static gboolean
image_size (Forward *f, GError **error)
{
  gint64 pitch, plane, all;

  if (!__builtin_mul_overflow (f->stride[0] * f->stride[1], f->padded[1], &pitch)
      && !__builtin_mul_overflow (f->padded[0] * f->stride[1], f->padded[1], &plane)
      && !__builtin_mul_overflow (f->in_channels, plane, &all)
      && !__builtin_add_overflow (all, pitch, &all) && !__builtin_add_overflow (all, pitch, &all)
      && !__builtin_add_overflow (all, GTORCH_CONV_SLACK, &f->image))
    return TRUE;
  gtorch_scratch_set_error (G_MAXINT64, f->size, error);
  return FALSE;
}

static gboolean
forward (Forward *f, GError **error)
{
  gint64 phases = f->stride[1], work, k = 0, c, y, x;
  g_autofree gint64 *table = NULL;
  gint64 n_items, n_threads = gtorch_get_num_threads ();

  f->size = gtorch_dtype_size (f->dtype);
  f->padded[0] = (f->out[0] - 1) * f->stride[0] + f->dilation[0] * (f->kernel[0] - 1) + 1;
  f->padded[1] =
      ((f->out[1] - 1) * phases + f->dilation[1] * (f->kernel[1] - 1) + 1 + phases - 1) / phases;
  if (!image_size (f, error))
    return FALSE;
  table = gtorch_scratch_new (f->in_channels * f->kernel[0] * f->kernel[1], sizeof (gint64), error);
  if (table == NULL)
    return FALSE;
  for (c = 0; c < f->in_channels; c++)
    for (y = 0; y < f->kernel[0]; y++)
      for (x = 0; x < f->kernel[1]; x++)
        table[k++] =
            ((c * f->padded[0] + y * f->dilation[0]) * phases + x * f->dilation[1] % phases)
                * f->padded[1]
            + x * f->dilation[1] / phases;
  f->table = table;
  f->n_parts = 1;
  n_items = f->batch * f->groups;
  work = MAX (1, f->out_channels * k * f->out[0] * f->out[1]);
  if (n_items < 2 * n_threads && work > (1 << 18))
    f->n_parts = CLAMP (f->out_channels / 12, 1, n_threads);
  gtorch_parallel_for (n_items * f->n_parts, 1 + (1 << 18) * f->n_parts / work, forward_items, f);
  if (!f->failed)
    return TRUE;
  gtorch_scratch_set_error (f->image, f->size, error);
  return FALSE;
}

/* --- 1 x 1 filters: a plain matrix product --- */

typedef struct
{
  const GTorchConv *conv;
  gconstpointer input, weight, bias;
  gpointer output;
} Pointwise;

static void
fill_bias (guint dtype, gpointer c, gconstpointer bias, gint64 m, gint64 n)
{
  gint64 i, j;

  for (i = 0; i < m; i++)
    for (j = 0; j < n; j++)
      if (dtype == GTORCH_DTYPE_FLOAT32)
        ((float *) c)[i * n + j] = ((const float *) bias)[i];
      else
        ((double *) c)[i * n + j] = ((const double *) bias)[i];
}

static void
pointwise_items (gint64 begin, gint64 end, gpointer user_data)
{
  const Pointwise *p = user_data;
  const GTorchConv *conv = p->conv;
  gint64 size = gtorch_dtype_size (conv->dtype), n = conv->out[0] * conv->out[1];
  gint64 m = conv->out_channels, k = conv->in_channels;

  for (; begin < end; begin++)
    {
      gint64 group = begin % conv->groups;
      GTorchGemm g = { m,
                       n,
                       k,
                       (const char *) p->weight + group * m * k * size,
                       k,
                       1,
                       (const char *) p->input + begin * k * n * size,
                       n,
                       1,
                       (char *) p->output + begin * m * n * size,
                       n,
                       1,
                       p->bias != NULL };

      if (p->bias != NULL)
        fill_bias (conv->dtype, g.c, (const char *) p->bias + group * m * size, m, n);
      if (conv->batch * conv->groups == 1)
        gtorch_cpu_gemm (conv->dtype, &g);
      else
        gtorch_cpu_gemm_serial (conv->dtype, &g);
    }
}

static gboolean
is_pointwise (const GTorchConv *conv)
{
  return conv->kernel[0] == 1 && conv->kernel[1] == 1 && conv->stride[0] == 1
         && conv->stride[1] == 1 && conv->padding[0] == 0 && conv->padding[1] == 0;
}

gboolean
gtorch_cpu_conv_forward (const GTorchConv *conv, gconstpointer input, gconstpointer weight,
                         gconstpointer bias, gpointer output, GError **error)
{
  Forward f = { .dtype = conv->dtype,
                .batch = conv->batch,
                .groups = conv->groups,
                .in_channels = conv->in_channels,
                .out_channels = conv->out_channels,
                .spread = { 1, 1 },
                .input = input,
                .weight = weight,
                .bias = bias,
                .output = output };
  Pointwise pointwise = { conv, input, weight, bias, output };
  gint64 work = MAX (1, conv->out_channels * conv->in_channels * conv->out[0] * conv->out[1]);

  if (is_pointwise (conv))
    {
      gtorch_parallel_for (conv->batch * conv->groups, 1 + (1 << 18) / work, pointwise_items,
                           &pointwise);
      return TRUE;
    }
  memcpy (f.in, conv->in, sizeof f.in);
  memcpy (f.out, conv->out, sizeof f.out);
  memcpy (f.kernel, conv->kernel, sizeof f.kernel);
  memcpy (f.stride, conv->stride, sizeof f.stride);
  memcpy (f.dilation, conv->dilation, sizeof f.dilation);
  memcpy (f.before, conv->padding, sizeof f.before);
  return forward (&f, error);
}

#define TURN(T)                                                                                   \
  for (g = 0; g < conv->groups; g++)                                                              \
    for (o = 0; o < conv->out_channels; o++)                                                      \
      for (c = 0; c < conv->in_channels; c++)                                                     \
        for (i = 0; i < taps; i++)                                                                \
          ((T *) turned)[((g * conv->in_channels + c) * conv->out_channels + o) * taps + taps - 1 \
                         - i] =                                                                   \
              ((const T *)                                                                        \
                   weight)[((g * conv->out_channels + o) * conv->in_channels + c) * taps + i];

gboolean
gtorch_cpu_conv_input (const GTorchConv *conv, gconstpointer upper, gconstpointer weight,
                       gpointer grad_input, GError **error)
{
  gint64 taps = conv->kernel[0] * conv->kernel[1];
  gint64 g, o, c, i;
  g_autofree gpointer turned =
      gtorch_scratch_new (conv->groups * conv->out_channels * conv->in_channels * taps,
                          gtorch_dtype_size (conv->dtype), error);
  Forward f = { .dtype = conv->dtype,
                .batch = conv->batch,
                .groups = conv->groups,
                .in_channels = conv->out_channels,
                .out_channels = conv->in_channels,
                .stride = { 1, 1 },
                .input = upper,
                .weight = turned,
                .output = grad_input };

  if (turned == NULL)
    return FALSE;
  if (conv->dtype == GTORCH_DTYPE_FLOAT32)
    TURN (float)
  else
    TURN (double)
  for (i = 0; i < 2; i++)
    {
      f.in[i] = conv->out[i];
      f.out[i] = conv->in[i];
      f.kernel[i] = conv->kernel[i];
      f.dilation[i] = conv->dilation[i];
      f.spread[i] = conv->stride[i];
      f.before[i] = conv->dilation[i] * (conv->kernel[i] - 1) - conv->padding[i];
    }
  return forward (&f, error);
}

/* --- gradient of the weight --- */

typedef struct
{
  const GTorchConv *conv;
  const char *upper, *input;
  char *sums; /* [n_parts][groups][out][h, w, in] */
  gint64 n_parts, per_part;
  gint failed; /* atomic */
} Weight;

/* Makes rows [first, first + n) of the patches of one group of an image: [h, w, in channels]. */
#define PATCH_ROWS(T)                                                                    \
  for (i = 0; i < n; i++)                                                                \
    {                                                                                    \
      gint64 oy = (first + i) / conv->out[1], ox = (first + i) % conv->out[1];           \
      T *to = (T *) patches + i * taps * channels;                                       \
      for (y = 0; y < conv->kernel[0]; y++)                                              \
        for (x = 0; x < conv->kernel[1]; x++, to += channels)                            \
          {                                                                              \
            gint64 iy = oy * conv->stride[0] - conv->padding[0] + y * conv->dilation[0]; \
            gint64 ix = ox * conv->stride[1] - conv->padding[1] + x * conv->dilation[1]; \
            if (iy < 0 || iy >= conv->in[0] || ix < 0 || ix >= conv->in[1])              \
              memset (to, 0, channels * sizeof (T));                                     \
            else                                                                         \
              memcpy (to, (const T *) image + (iy * conv->in[1] + ix) * channels,        \
                      channels * sizeof (T));                                            \
          }                                                                              \
    }

static void
patch_rows (const GTorchConv *conv, gconstpointer image, gint64 first, gint64 n, gpointer patches)
{
  gint64 taps = conv->kernel[0] * conv->kernel[1], channels = conv->in_channels;
  gint64 i, y, x;

  if (conv->dtype == GTORCH_DTYPE_FLOAT32)
    PATCH_ROWS (float)
  else
    PATCH_ROWS (double)
}

/* Transposes [channels][pixels] to [pixels][channels]. */
#define CHANNELS_LAST(T)                         \
  for (i = 0; i < pixels; i += 16)               \
    for (c = 0; c < channels; c++)               \
      for (j = i; j < MIN (i + 16, pixels); j++) \
        ((T *) to)[j * channels + c] = ((const T *) from)[c * pixels + j];

static void
channels_last (guint dtype, gconstpointer from, gpointer to, gint64 channels, gint64 pixels)
{
  gint64 i, j, c;

  if (dtype == GTORCH_DTYPE_FLOAT32)
    CHANNELS_LAST (float)
  else
    CHANNELS_LAST (double)
}

static void
weight_parts (gint64 begin, gint64 end, gpointer user_data)
{
  Weight *w = user_data;
  const GTorchConv *conv = w->conv;
  gint64 size = gtorch_dtype_size (conv->dtype);
  gint64 k = conv->in_channels * conv->kernel[0] * conv->kernel[1];
  gint64 pixels = conv->in[0] * conv->in[1], n_out = conv->out[0] * conv->out[1];
  gint64 one = conv->groups * conv->out_channels * k;
  g_autofree char *image = gtorch_scratch_new (pixels * conv->in_channels, size, NULL);
  g_autofree char *patches = gtorch_scratch_new (PATCHES * k, size, NULL);
  gint64 part, i, group, first;

  if (image == NULL || patches == NULL)
    {
      g_atomic_int_set (&w->failed, TRUE);
      return;
    }
  for (part = begin; part < end; part++)
    for (i = part * w->per_part; i < MIN ((part + 1) * w->per_part, conv->batch); i++)
      for (group = 0; group < conv->groups; group++)
        {
          gint64 index = i * conv->groups + group;

          channels_last (conv->dtype, w->input + index * conv->in_channels * pixels * size, image,
                         conv->in_channels, pixels);
          for (first = 0; first < n_out; first += PATCHES)
            {
              gint64 n = MIN (PATCHES, n_out - first);
              GTorchGemm g = {
                .m = conv->out_channels,
                .n = k,
                .k = n,
                .a = w->upper + (index * conv->out_channels * n_out + first) * size,
                .a_row = n_out,
                .a_col = 1,
                .b = patches,
                .b_row = k,
                .b_col = 1,
                .c = w->sums + (part * one + group * conv->out_channels * k) * size,
                .ldc = k,
                .alpha = 1,
                .beta = i == part * w->per_part && first == 0 ? 0 : 1,
              };

              patch_rows (conv, image, first, n, patches);
              if (w->n_parts == 1)
                gtorch_cpu_gemm (conv->dtype, &g);
              else
                gtorch_cpu_gemm_serial (conv->dtype, &g);
            }
        }
}

#define GATHER(T)                                                                    \
  for (o = 0; o < conv->groups * conv->out_channels; o++)                            \
    for (c = 0; c < conv->in_channels; c++)                                          \
      for (i = 0; i < taps; i++)                                                     \
        {                                                                            \
          const T *from = (const T *) sums + (o * taps + i) * conv->in_channels + c; \
          T sum = 0;                                                                 \
          for (part = 0; part < n_parts; part++)                                     \
            sum += from[part * one];                                                 \
          ((T *) grad_weight)[(o * conv->in_channels + c) * taps + i] = sum;         \
        }

gboolean
gtorch_cpu_conv_weight (const GTorchConv *conv, gconstpointer upper, gconstpointer input,
                        gpointer grad_weight, GError **error)
{
  gint64 taps = conv->kernel[0] * conv->kernel[1], size = gtorch_dtype_size (conv->dtype);
  gint64 one = conv->groups * conv->out_channels * conv->in_channels * taps;
  gint64 n_parts = CLAMP (PARTS_MEM / MAX (1, one * size), 1, MIN (MAX_PARTS, conv->batch));
  gint64 per_part = (conv->batch + n_parts - 1) / n_parts;
  g_autofree gpointer sums = NULL;
  gint64 o, c, i, part;
  Weight w;

  n_parts = (conv->batch + per_part - 1) / per_part;
  sums = gtorch_scratch_new (n_parts * one, size, error);
  if (sums == NULL)
    return FALSE;
  w = (Weight){ conv, upper, input, sums, n_parts, per_part };
  gtorch_parallel_for (n_parts, 1, weight_parts, &w);
  if (w.failed)
    {
      gtorch_scratch_set_error (conv->in_channels
                                    * MAX (conv->in[0] * conv->in[1],
                                           PATCHES * conv->kernel[0] * conv->kernel[1]),
                                size, error);
      return FALSE;
    }
  if (conv->dtype == GTORCH_DTYPE_FLOAT32)
    GATHER (float)
  else
    GATHER (double)
  return TRUE;
}

typedef gboolean (*Kernel) (const GTorchConv *conv, gconstpointer a, gconstpointer b, gpointer out,
                            GError **error);

static gboolean
forward_without_bias (const GTorchConv *conv, gconstpointer a, gconstpointer b, gpointer out,
                      GError **error)
{
  return gtorch_cpu_conv_forward (conv, a, b, NULL, out, error);
}

static gboolean
run (GTorchOpCall *call, const gint64 *input, const gint64 *weight, Kernel kernel, GError **error)
{
  GTorchConv conv;
  guint dtype = gtorch_dtype_infos[call->compute].compute;
  GTorchImpl *bias = call->n_inputs > 2 ? call->inputs[2] : NULL;
  g_autoptr (GTorchImpl) a = NULL;
  g_autoptr (GTorchImpl) b = NULL;
  g_autoptr (GTorchImpl) c = NULL;
  g_autoptr (GTorchImpl) out = NULL;
  gboolean ok;

  if (!gtorch_conv_init (&conv, call, input, 4, weight, 4, error))
    return FALSE;
  if (call->outputs[0]->numel == 0)
    return TRUE;
  a = gtorch_cpu_pack (call->inputs[0], dtype, error);
  b = a != NULL ? gtorch_cpu_pack (call->inputs[1], dtype, error) : NULL;
  out = b != NULL ? gtorch_cpu_pack_output (call->outputs[0], dtype, error) : NULL;
  if (out == NULL)
    return FALSE;
  if (bias != NULL && (c = gtorch_cpu_pack (bias, dtype, error)) == NULL)
    return FALSE;
  if (conv.batch == 0 || conv.in_channels == 0 || conv.out_channels == 0)
    {
      memset (gtorch_impl_data (out), 0, gtorch_impl_n_bytes (out));
      ok = TRUE;
    }
  else if (c != NULL)
    ok = gtorch_cpu_conv_forward (&conv, gtorch_impl_data (a), gtorch_impl_data (b),
                                  gtorch_impl_data (c), gtorch_impl_data (out), error);
  else
    ok = kernel (&conv, gtorch_impl_data (a), gtorch_impl_data (b), gtorch_impl_data (out), error);
  if (ok)
    gtorch_cpu_unpack (out, call->outputs[0]);
  return ok;
}

gboolean
gtorch_cpu_convolve2d (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run (call, call->inputs[0]->shape, call->inputs[1]->shape, forward_without_bias, error);
}

gboolean
gtorch_cpu_convolve2d_input (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run (call, call->attrs[0].list.data, call->inputs[1]->shape, gtorch_cpu_conv_input, error);
}

gboolean
gtorch_cpu_convolve2d_weight (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run (call, call->inputs[1]->shape, call->attrs[0].list.data, gtorch_cpu_conv_weight,
              error);
}
