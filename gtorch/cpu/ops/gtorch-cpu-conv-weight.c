/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The gradient of a convolution for its weight: a product of the output's gradient and the patches of the
 * input, which are made as rows, in small blocks. */

#include "config.h"

#include <string.h>

#include "cpu/gtorch-cpu-threads.h"
#include "cpu/ops/gtorch-cpu-conv.h"
#include "cpu/ops/gtorch-cpu-gemm.h"
#include "device/gtorch-scratch-private.h"

#define PATCHES   64        /* patches per block */
#define MAX_PARTS 16        /* most partial sums */
#define PARTS_MEM (1 << 25) /* most bytes for the partial sums */

typedef struct
{
  const GTorchConv *conv;
  const char *upper, *input;
  char *sums; /* [n_parts][groups][out][d, h, w, in] */
  gint64 n_parts, per_part;
  gint failed; /* atomic */
} Weight;

/* Makes rows [first, first + n) of the patches of one group of an image: [d, h, w, in channels]. */
#define PATCH_ROWS(T)                                                                      \
  for (i = 0; i < n; i++)                                                                  \
    {                                                                                      \
      gint64 ox = (first + i) % conv->out[2], oy = (first + i) / conv->out[2];             \
      gint64 oz = oy / conv->out[1];                                                       \
      T *to = (T *) patches + i * taps * channels;                                         \
      oy %= conv->out[1];                                                                  \
      for (z = 0; z < conv->kernel[0]; z++)                                                \
        for (y = 0; y < conv->kernel[1]; y++)                                              \
          for (x = 0; x < conv->kernel[2]; x++, to += channels)                            \
            {                                                                              \
              gint64 iz = oz * conv->stride[0] - conv->padding[0] + z * conv->dilation[0]; \
              gint64 iy = oy * conv->stride[1] - conv->padding[1] + y * conv->dilation[1]; \
              gint64 ix = ox * conv->stride[2] - conv->padding[2] + x * conv->dilation[2]; \
              if (iz < 0 || iz >= conv->in[0] || iy < 0 || iy >= conv->in[1] || ix < 0     \
                  || ix >= conv->in[2])                                                    \
                memset (to, 0, channels * sizeof (T));                                     \
              else                                                                         \
                memcpy (to,                                                                \
                        (const T *) image                                                  \
                            + ((iz * conv->in[1] + iy) * conv->in[2] + ix) * channels,     \
                        channels * sizeof (T));                                            \
            }                                                                              \
    }

static void
patch_rows (const GTorchConv *conv, gconstpointer image, gint64 first, gint64 n, gpointer patches)
{
  gint64 taps = gtorch_cpu_conv_volume (conv->kernel), channels = conv->in_channels;
  gint64 i, z, y, x;

  if (conv->dtype == GTORCH_DTYPE_FLOAT32)
    PATCH_ROWS (float)
  else
    PATCH_ROWS (double)
}

/* Transposes [channels][pixels] to [pixels][channels]. */
#define CHANNELS_LAST(T)                    \
  for (i = 0; i < n; i += 16)               \
    for (c = 0; c < channels; c++)          \
      for (j = i; j < MIN (i + 16, n); j++) \
        ((T *) to)[j * channels + c] = ((const T *) from)[c * n + j];

static void
channels_last (guint dtype, gconstpointer from, gpointer to, gint64 channels, gint64 n)
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
  gint64 k = conv->in_channels * gtorch_cpu_conv_volume (conv->kernel);
  gint64 n_in = gtorch_cpu_conv_volume (conv->in), n_out = gtorch_cpu_conv_volume (conv->out);
  gint64 one = conv->groups * conv->out_channels * k;
  g_autofree char *image = gtorch_scratch_new (n_in * conv->in_channels, size, NULL);
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

          channels_last (conv->dtype, w->input + index * conv->in_channels * n_in * size, image,
                         conv->in_channels, n_in);
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
  gint64 taps = gtorch_cpu_conv_volume (conv->kernel), size = gtorch_dtype_size (conv->dtype);
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
                                    * MAX (gtorch_cpu_conv_volume (conv->in),
                                           PATCHES * gtorch_cpu_conv_volume (conv->kernel)),
                                size, error);
      return FALSE;
    }
  if (conv->dtype == GTORCH_DTYPE_FLOAT32)
    GATHER (float)
  else
    GATHER (double)
  return TRUE;
}
