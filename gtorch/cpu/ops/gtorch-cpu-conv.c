/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Convolutions as matrix products without a patch matrix (im2col). The input is copied once into a padded
 * image; each element (c, y, x) of the filter is then multiplied with the same image, shifted by a fixed
 * offset. The micro-kernel of the matrix product takes those offsets in a table. With a horizontal stride
 * s, the columns of the padded image are sorted by their remainder modulo s, so that neighbouring results
 * read neighbouring elements.
 *
 * A volume is convolved one plane of the output after the other; images are volumes of depth 1. Integers,
 * which have no micro-kernel, take the same way with a plain loop. */

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

#define PAD(T)                                                                                  \
  {                                                                                             \
    const T *from = (const T *) input;                                                          \
    T *to = image;                                                                              \
    for (c = 0; c < f->in_channels; c++)                                                        \
      for (z = 0; z < f->in[0]; z++)                                                            \
        for (y = 0; y < f->in[1]; y++, from += f->in[2])                                        \
          {                                                                                     \
            gint64 plane = f->before[0] + z, row = f->before[1] + y;                            \
            T *line = to + ((c * f->padded[0] + plane) * f->padded[1] + row) * width;           \
            if (plane < 0 || plane >= f->padded[0] || row < 0 || row >= f->padded[1]            \
                || first >= last)                                                               \
              continue;                                                                         \
            if (phases == 1)                                                                    \
              memcpy (line + MAX (f->before[2], 0), from + first, (last - first) * sizeof (T)); \
            else                                                                                \
              for (x = first; x < last; x++)                                                    \
                {                                                                               \
                  gint64 at = f->before[2] + x;                                                 \
                  line[at % phases * f->padded[2] + at / phases] = from[x];                     \
                }                                                                               \
          }                                                                                     \
  }

/* Pads the channels of one group of one image. The padding's zeros are there already. */
static void
pad (const GTorchConvForward *f, const char *input, gpointer image)
{
  gint64 phases = f->stride[2], width = phases * f->padded[2];
  gint64 first = MAX (0, -f->before[2]), last = MIN (f->in[2], width - f->before[2]);
  gint64 c, z, y, x;

  GTORCH_CONV_FOR_TYPE (f->dtype, PAD)
}

/* Does what gtorch_conv_span_f32 () does. */
#define SPAN(T)                                                               \
  for (i = 0; i < s->m; i++)                                                  \
    for (line = 0; line * s->pitch < s->n; line++)                            \
      {                                                                       \
        T *to = (T *) s->c + i * s->c_row + line * s->width;                  \
        for (q = 0; q < s->width; q++)                                        \
          to[q] = s->bias != NULL ? ((const T *) s->bias)[i] : 0;             \
        for (p = 0; p < s->k; p++)                                            \
          {                                                                   \
            const T a = ((const T *) s->a)[i * s->k + p];                     \
            const T *from = (const T *) s->b + s->table[p] + line * s->pitch; \
            for (q = 0; q < s->width; q++)                                    \
              to[q] += a * from[q];                                           \
          }                                                                   \
      }

static void
span_of_integers (guint dtype, const GTorchConvSpan *s)
{
  gint64 i, line, p, q;

  if (dtype == GTORCH_DTYPE_INT32)
    SPAN (guint32)
  else
    SPAN (guint64)
}

static void
forward_items (gint64 begin, gint64 end, gpointer user_data)
{
  GTorchConvForward *f = user_data;
  gint64 k = f->in_channels * gtorch_cpu_conv_volume (f->kernel);
  gint64 width = f->stride[2] * f->padded[2], pitch = f->stride[1] * width;
  gint64 depth = f->stride[0] * f->padded[1] * width;
  gint64 part = (f->out_channels + f->n_parts - 1) / f->n_parts;
  gint64 n_in = gtorch_cpu_conv_volume (f->in), plane = f->out[1] * f->out[2];
  gint64 n_out = f->out[0] * plane;
  /* one long row, if there is little padding between rows */
  gboolean flat = pitch < 2 * f->out[2] && f->out[2] % 16 != 0;
  gint64 last_image = -1, i, z, y;
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
      char *output = f->output + (index * f->out_channels + first) * n_out * (gint64) f->size;

      if (index != last_image)
        pad (f, f->input + index * f->in_channels * n_in * (gint64) f->size, image);
      last_image = index;
      span.m = MIN (part, f->out_channels - first);
      if (span.m <= 0)
        continue;
      span.a = f->weight + (group * f->out_channels + first) * k * (gint64) f->size;
      span.bias =
          f->bias != NULL ? f->bias + (group * f->out_channels + first) * (gint64) f->size : NULL;
      span.width = f->out[2];
      span.pitch = flat ? pitch : f->out[2];
      span.n = flat ? (f->out[1] - 1) * pitch + f->out[2] : f->out[2];
      for (z = 0; z < f->out[0]; z++)
        {
          span.b = image + z * depth * (gint64) f->size;
          span.c = output + z * plane * (gint64) f->size;
          for (y = 0; y < (flat ? 1 : f->out[1]); y++)
            {
              if (f->dtype == GTORCH_DTYPE_FLOAT32)
                GTORCH_ISA_CALL (gtorch_conv_span_f32) (&span);
              else if (f->dtype == GTORCH_DTYPE_FLOAT64)
                GTORCH_ISA_CALL (gtorch_conv_span_f64) (&span);
              else
                span_of_integers (f->dtype, &span);
              span.b = (const char *) span.b + pitch * (gint64) f->size;
              span.c = (char *) span.c + f->out[2] * (gint64) f->size;
            }
        }
    }
}

/* Computes the size of the padded image, including the slack that is read past it. */
static gboolean
image_size (GTorchConvForward *f, GError **error)
{
  gint64 width, pitch, plane, volume, all;

  if (!__builtin_mul_overflow (f->stride[2], f->padded[2], &width)
      && !__builtin_mul_overflow (f->stride[1], width, &pitch)
      && !__builtin_mul_overflow (f->padded[1], width, &plane)
      && !__builtin_mul_overflow (f->padded[0], plane, &volume)
      && !__builtin_mul_overflow (f->in_channels, volume, &all)
      && !__builtin_add_overflow (all, pitch, &all) && !__builtin_add_overflow (all, pitch, &all)
      && !__builtin_add_overflow (all, GTORCH_CONV_SLACK, &f->image))
    return TRUE;
  gtorch_scratch_set_error (G_MAXINT64, f->size, error);
  return FALSE;
}

gboolean
gtorch_cpu_conv_compute (GTorchConvForward *f, GError **error)
{
  gint64 phases = f->stride[2], work, k = 0, c, z, y, x;
  g_autofree gint64 *table = NULL;
  gint64 n_items, n_threads = gtorch_get_num_threads ();
  guint i;

  f->size = gtorch_dtype_size (f->dtype);
  for (i = 0; i < 3; i++)
    f->padded[i] = (f->out[i] - 1) * f->stride[i] + f->dilation[i] * (f->kernel[i] - 1) + 1;
  f->padded[2] = (f->padded[2] + phases - 1) / phases;
  if (!image_size (f, error))
    return FALSE;
  table = gtorch_scratch_new (f->in_channels * gtorch_cpu_conv_volume (f->kernel), sizeof (gint64),
                              error);
  if (table == NULL)
    return FALSE;
  for (c = 0; c < f->in_channels; c++)
    for (z = 0; z < f->kernel[0]; z++)
      for (y = 0; y < f->kernel[1]; y++)
        for (x = 0; x < f->kernel[2]; x++)
          {
            gint64 row =
                (c * f->padded[0] + z * f->dilation[0]) * f->padded[1] + y * f->dilation[1];

            table[k++] = (row * phases + x * f->dilation[2] % phases) * f->padded[2]
                         + x * f->dilation[2] / phases;
          }
  f->table = table;
  f->n_parts = 1;
  n_items = f->batch * f->groups;
  work = MAX (1, f->out_channels * k * gtorch_cpu_conv_volume (f->out));
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
  gint64 size = gtorch_dtype_size (conv->dtype), n = gtorch_cpu_conv_volume (conv->out);
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
  guint i;

  for (i = 0; i < 3; i++)
    if (conv->kernel[i] != 1 || conv->stride[i] != 1 || conv->padding[i] != 0)
      return FALSE;
  return conv->dtype == GTORCH_DTYPE_FLOAT32 || conv->dtype == GTORCH_DTYPE_FLOAT64;
}

gboolean
gtorch_cpu_conv_forward (const GTorchConv *conv, gconstpointer input, gconstpointer weight,
                         gconstpointer bias, gpointer output, GError **error)
{
  GTorchConvForward f = { .dtype = conv->dtype,
                          .batch = conv->batch,
                          .groups = conv->groups,
                          .in_channels = conv->in_channels,
                          .out_channels = conv->out_channels,
                          .input = input,
                          .weight = weight,
                          .bias = bias,
                          .output = output };
  Pointwise pointwise = { conv, input, weight, bias, output };
  gint64 work =
      MAX (1, conv->out_channels * conv->in_channels * gtorch_cpu_conv_volume (conv->out));

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
  return gtorch_cpu_conv_compute (&f, error);
}

typedef enum
{
  FORWARD,
  INPUT,
  WEIGHT,
} Kind;

static gboolean
run (GTorchOpCall *call, Kind kind, const gint64 *input, const gint64 *weight, guint n_dims,
     GError **error)
{
  GTorchConv conv;
  guint dtype = gtorch_dtype_infos[call->compute].compute;
  GTorchImpl *bias = kind != WEIGHT ? call->inputs[2] : NULL;
  g_autoptr (GTorchImpl) a = NULL;
  g_autoptr (GTorchImpl) b = NULL;
  g_autoptr (GTorchImpl) c = NULL;
  g_autoptr (GTorchImpl) out = NULL;
  gconstpointer first, second, third;
  gpointer to;
  gboolean ok;

  if (!gtorch_conv_init (&conv, call, input, n_dims, weight, n_dims, error))
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
  first = gtorch_impl_data (a);
  second = gtorch_impl_data (b);
  third = c != NULL ? gtorch_impl_data (c) : NULL;
  to = gtorch_impl_data (out);
  /* nothing to sum but the bias, which only the convolution itself and its transpose have */
  if (c == NULL && (conv.batch == 0 || conv.in_channels == 0 || conv.out_channels == 0))
    {
      memset (to, 0, gtorch_impl_n_bytes (out));
      ok = TRUE;
    }
  else if (kind == FORWARD)
    ok = gtorch_cpu_conv_forward (&conv, first, second, third, to, error);
  else if (kind == INPUT)
    ok = gtorch_cpu_conv_input (&conv, first, second, third, to, error);
  else
    ok = gtorch_cpu_conv_weight (&conv, first, second, to, error);
  if (ok)
    gtorch_cpu_unpack (out, call->outputs[0]);
  return ok;
}

gboolean
gtorch_cpu_convolve (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run (call, FORWARD, call->inputs[0]->shape, call->inputs[1]->shape,
              call->inputs[0]->n_dims, error);
}

gboolean
gtorch_cpu_convolve_input (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run (call, INPUT, call->attrs[0].list.data, call->inputs[1]->shape,
              call->inputs[1]->n_dims, error);
}

gboolean
gtorch_cpu_convolve_weight (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run (call, WEIGHT, call->inputs[1]->shape, call->attrs[0].list.data,
              call->inputs[1]->n_dims, error);
}
