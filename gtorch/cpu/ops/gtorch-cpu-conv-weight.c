/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The gradient of a convolution for its weight: a product of the output's gradient and the patches of the
 * input, which are made as rows, in small blocks. Where groups have few channels, as those of depthwise
 * convolutions, such products are too small, and one channel of each of several groups is processed at
 * once: pixel by pixel, each group in a lane of vectors. */

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

/* --- few channels --- */

#define LANES GTORCH_CONV_LANES

typedef struct
{
  const GTorchConv *conv;
  const char *upper, *input;
  char *sums;     /* as those of Weight */
  gint64 *table;  /* where the elements of a filter meet the padded image, from the first pixel */
  gint64 size[3]; /* of the padded image */
  gint64 per_part, n_blocks; /* images of a part, and blocks of LANES groups */
  gint failed;               /* atomic */
} Lanes;

/* Copies rows of channels, which are `apart` elements apart, to lanes. */
#define TO_LANES(T)             \
  for (l = 0; l < n_lanes; l++) \
    for (i = 0; i < n; i++)     \
      ((T *) to)[i * LANES + l] = ((const T *) from)[l * apart + i];

static void
to_lanes (guint dtype, gconstpointer from, gint64 apart, gint64 n_lanes, gint64 n, gpointer to)
{
  gint64 i, l;

  if (dtype == GTORCH_DTYPE_FLOAT32)
    TO_LANES (float)
  else
    TO_LANES (double)
}

/* Copies what the convolution reads of a channel of n_lanes groups to the padded image. The padding's zeros
 * are there already. */
static void
fill_image (const Lanes *self, const char *input, gint64 n_lanes, char *image)
{
  const GTorchConv *conv = self->conv;
  const gint64 *pad = conv->padding, size = gtorch_dtype_size (conv->dtype);
  const gint64 n_in = gtorch_cpu_conv_volume (conv->in);
  const gint64 n = MIN (conv->in[2], self->size[2] - pad[2]);
  gint64 z, y;

  for (z = 0; z < MIN (conv->in[0], self->size[0] - pad[0]); z++)
    for (y = 0; y < MIN (conv->in[1], self->size[1] - pad[1]); y++)
      {
        const gint64 row = (z + pad[0]) * self->size[1] + y + pad[1];

        to_lanes (conv->dtype, input + (z * conv->in[1] + y) * conv->in[2] * size,
                  conv->in_channels * n_in, n_lanes, n,
                  image + (row * self->size[2] + pad[2]) * LANES * size);
      }
}

/* Adds the products of a channel of the output's gradient and the padded image. */
static void
add_products (const Lanes *self, const char *upper, gint64 n_lanes, const char *image, gpointer row,
              gpointer sums)
{
  const GTorchConv *conv = self->conv;
  const gint64 taps = gtorch_cpu_conv_volume (conv->kernel), *stride = conv->stride;
  const gint64 size = gtorch_dtype_size (conv->dtype), step = stride[2] * LANES;
  const gint64 n_out = gtorch_cpu_conv_volume (conv->out);
  gint64 z, y;

  for (z = 0; z < conv->out[0]; z++)
    for (y = 0; y < conv->out[1]; y++)
      {
        const char *from =
            image + (z * stride[0] * self->size[1] + y * stride[1]) * self->size[2] * LANES * size;

        to_lanes (conv->dtype, upper, conv->out_channels * n_out, n_lanes, conv->out[2], row);
        upper += conv->out[2] * size;
        if (conv->dtype == GTORCH_DTYPE_FLOAT32)
          GTORCH_ISA_CALL (gtorch_conv_taps_f32)
        (row, (gconstpointer) from, self->table, taps, conv->out[2], step, sums);
        else GTORCH_ISA_CALL (gtorch_conv_taps_f64) (row, (gconstpointer) from, self->table, taps,
                                                     conv->out[2], step, sums);
      }
}

#define FROM_LANES(T)                \
  for (l = 0; l < n_lanes; l++)      \
    for (o = 0; o < n_of_group; o++) \
      ((T *) to)[l * n_of_group + o] = ((const T *) sums)[o * LANES + l];

static void
lane_parts (gint64 begin, gint64 end, gpointer user_data)
{
  Lanes *self = user_data;
  const GTorchConv *conv = self->conv;
  const gint64 size = gtorch_dtype_size (conv->dtype);
  const gint64 taps = gtorch_cpu_conv_volume (conv->kernel), in = conv->in_channels;
  const gint64 n_in = gtorch_cpu_conv_volume (conv->in),
               n_of_group = conv->out_channels * in * taps;
  const gint64 n_out = gtorch_cpu_conv_volume (conv->out);
  g_autofree char *image =
      gtorch_scratch_new0 (gtorch_cpu_conv_volume (self->size) * LANES, size, NULL);
  g_autofree char *row = gtorch_scratch_new0 (conv->out[2] * LANES, size, NULL);
  g_autofree char *sums = gtorch_scratch_new (n_of_group * LANES, size, NULL);

  if (image == NULL || row == NULL || sums == NULL)
    {
      g_atomic_int_set (&self->failed, TRUE);
      return;
    }
  for (; begin < end; begin++)
    {
      const gint64 part = begin / self->n_blocks, group = begin % self->n_blocks * LANES;
      const gint64 n_lanes = MIN (LANES, conv->groups - group);
      const gint64 last = MIN ((part + 1) * self->per_part, conv->batch);
      char *to = self->sums + (part * conv->groups + group) * n_of_group * size;
      gint64 i, c, o, l;

      memset (sums, 0, n_of_group * LANES * size);
      for (i = part * self->per_part; i < last; i++)
        for (c = 0; c < in; c++)
          {
            fill_image (self, self->input + ((i * conv->groups + group) * in + c) * n_in * size,
                        n_lanes, image);
            for (o = 0; o < conv->out_channels; o++)
              add_products (self,
                            self->upper
                                + ((i * conv->groups + group) * conv->out_channels + o) * n_out
                                      * size,
                            n_lanes, image, row, sums + (o * in + c) * taps * LANES * size);
          }
      if (conv->dtype == GTORCH_DTYPE_FLOAT32)
        FROM_LANES (float)
      else
        FROM_LANES (double)
    }
}

/* Computes where the elements of a filter are, and the size of the padded image, of which not more is kept
 * than the convolution reads. */
static gboolean
lanes_init (Lanes *self, GError **error)
{
  const GTorchConv *conv = self->conv;
  gint64 k = 0, z, y, x;
  guint d;

  for (d = 0; d < 3; d++)
    self->size[d] =
        (conv->out[d] - 1) * conv->stride[d] + conv->dilation[d] * (conv->kernel[d] - 1) + 1;
  self->table = gtorch_scratch_new (gtorch_cpu_conv_volume (conv->kernel), sizeof (gint64), error);
  if (self->table == NULL)
    return FALSE;
  for (z = 0; z < conv->kernel[0]; z++)
    for (y = 0; y < conv->kernel[1]; y++)
      for (x = 0; x < conv->kernel[2]; x++)
        self->table[k++] =
            ((z * conv->dilation[0] * self->size[1] + y * conv->dilation[1]) * self->size[2]
             + x * conv->dilation[2])
            * LANES;
  return TRUE;
}

/* Vectors of groups pay off if most lanes are taken, a group has few products, and the padded image is not
 * much larger than the other. */
static gboolean
uses_lanes (const GTorchConv *conv)
{
  gdouble volume = 1;
  guint d;

  for (d = 0; d < 3; d++)
    volume *= (gdouble) (conv->out[d] - 1) * (gdouble) conv->stride[d]
              + (gdouble) conv->dilation[d] * (gdouble) (conv->kernel[d] - 1) + 1;
  return conv->groups >= LANES / 2 && conv->in_channels * conv->out_channels <= LANES
         && volume <= 4 * (gdouble) gtorch_cpu_conv_volume (conv->in) + 4096;
}

#define ADD_PARTS(T)                                     \
  for (i = 0; i < one; i++)                              \
    {                                                    \
      T sum = 0;                                         \
      for (part = 0; part < n_parts; part++)             \
        sum += ((const T *) lanes.sums)[part * one + i]; \
      ((T *) grad_weight)[i] = sum;                      \
    }

static gboolean
compute_by_lanes (const GTorchConv *conv, gconstpointer upper, gconstpointer input, gint64 n_parts,
                  gint64 per_part, gpointer sums, gpointer grad_weight, GError **error)
{
  const gint64 one =
      conv->groups * conv->out_channels * conv->in_channels * gtorch_cpu_conv_volume (conv->kernel);
  Lanes lanes = { .conv = conv,
                  .upper = upper,
                  .input = input,
                  .sums = sums,
                  .per_part = per_part,
                  .n_blocks = (conv->groups + LANES - 1) / LANES };
  gint64 i, part;

  if (!lanes_init (&lanes, error))
    return FALSE;
  gtorch_parallel_for (n_parts * lanes.n_blocks, 1, lane_parts, &lanes);
  g_free (lanes.table);
  if (lanes.failed)
    {
      gtorch_scratch_set_error (gtorch_cpu_conv_volume (lanes.size) * LANES,
                                gtorch_dtype_size (conv->dtype), error);
      return FALSE;
    }
  if (conv->dtype == GTORCH_DTYPE_FLOAT32)
    ADD_PARTS (float)
  else
    ADD_PARTS (double)
  return TRUE;
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
  if (uses_lanes (conv))
    return compute_by_lanes (conv, upper, input, n_parts, per_part, sums, grad_weight, error);
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
