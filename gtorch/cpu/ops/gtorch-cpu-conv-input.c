/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The gradient of a convolution for its input, which is the transposed convolution, too. It is a convolution
 * of the output's gradient with the rotated filter. With strides it consists of several, each with the
 * elements of the filter that meet elements of the input whose positions have one remainder modulo the
 * strides; so nothing is multiplied by the zeros that strides stand for. */

#include "config.h"

#include "cpu/gtorch-cpu-threads.h"
#include "cpu/ops/gtorch-cpu-conv.h"
#include "device/gtorch-scratch-private.h"

/* The elements of the input whose positions, with the padding, have one remainder modulo the strides. Their
 * gradient is a convolution of the output's gradient, without strides, with some of the filter's elements. */
typedef struct
{
  const GTorchConv *conv;
  gint64 first[3];         /* position of the first element */
  gint64 tap[3], apart[3]; /* the first element of the filter, and the distance of the others */
  gint64 n[3];             /* how many elements there are */
  gconstpointer from;
  gpointer to;
} Phase;

static gint64
greatest_divisor (gint64 a, gint64 b)
{
  return b == 0 ? a : greatest_divisor (b, a % b);
}

/* Sets one dimension for the elements that begin at `first`. The kernel is 0 if no element of the filter
 * reaches them. */
static void
phase_init (Phase *phase, GTorchConvForward *f, guint dim, gint64 first)
{
  const GTorchConv *conv = phase->conv;
  const gint64 stride = conv->stride[dim], dilation = conv->dilation[dim];
  const gint64 kernel = conv->kernel[dim], divisor = greatest_divisor (stride, dilation);
  const gint64 whole = (first + conv->padding[dim]) / stride;
  const gint64 rest = (first + conv->padding[dim]) % stride, apart = stride / divisor;
  gint64 tap = 0;

  while (tap < MIN (kernel, apart) && tap * dilation % stride != rest)
    tap++;
  phase->first[dim] = first;
  phase->tap[dim] = tap;
  phase->apart[dim] = apart;
  phase->n[dim] = f->out[dim] = (conv->in[dim] - 1 - first) / stride + 1;
  f->in[dim] = conv->out[dim];
  f->stride[dim] = 1;
  f->dilation[dim] = dilation / divisor;
  f->kernel[dim] = tap < MIN (kernel, apart) ? (kernel - 1 - tap) / apart + 1 : 0;
  f->before[dim] =
      (tap * dilation - rest) / stride + f->dilation[dim] * (f->kernel[dim] - 1) - whole;
}

/* Makes the filters of a phase: rotated, and with the channels exchanged. */
#define TURN(T)                                                                              \
  {                                                                                          \
    T *to = turned;                                                                          \
    for (g = 0; g < conv->groups; g++)                                                       \
      for (c = 0; c < conv->in_channels; c++)                                                \
        for (o = 0; o < conv->out_channels; o++)                                             \
          {                                                                                  \
            const T *from = (const T *) weight                                               \
                            + ((g * conv->out_channels + o) * conv->in_channels + c) * taps; \
            for (z = n[0]; z-- > 0;)                                                         \
              for (y = n[1]; y-- > 0;)                                                       \
                for (x = n[2]; x-- > 0;)                                                     \
                  *to++ = from[((phase->tap[0] + z * phase->apart[0]) * conv->kernel[1]      \
                                + phase->tap[1] + y * phase->apart[1])                       \
                                   * conv->kernel[2]                                         \
                               + phase->tap[2] + x * phase->apart[2]];                       \
          }                                                                                  \
  }

static void
turn_filters (const Phase *phase, const gint64 *n, gconstpointer weight, gpointer turned)
{
  const GTorchConv *conv = phase->conv;
  gint64 taps = gtorch_cpu_conv_volume (conv->kernel), g, o, c, z, y, x;

  GTORCH_CONV_FOR_TYPE (conv->dtype, TURN)
}

#define SPREAD(T)                                                                               \
  for (; begin < end; begin++)                                                                  \
    {                                                                                           \
      const T *from = (const T *) phase->from + begin * gtorch_cpu_conv_volume (n);             \
      T *to = (T *) phase->to + begin * gtorch_cpu_conv_volume (conv->in);                      \
      for (z = 0; z < n[0]; z++)                                                                \
        for (y = 0; y < n[1]; y++)                                                              \
          {                                                                                     \
            T *row = to                                                                         \
                     + ((phase->first[0] + z * conv->stride[0]) * conv->in[1] + phase->first[1] \
                        + y * conv->stride[1])                                                  \
                           * conv->in[2]                                                        \
                     + phase->first[2];                                                         \
            for (x = 0; x < n[2]; x++)                                                          \
              row[x * conv->stride[2]] = *from++;                                               \
          }                                                                                     \
    }

/* Puts the elements of a phase, channel by channel, into their places. */
static void
spread_channels (gint64 begin, gint64 end, gpointer user_data)
{
  const Phase *phase = user_data;
  const GTorchConv *conv = phase->conv;
  const gint64 *n = phase->n;
  gint64 z, y, x;

  GTORCH_CONV_FOR_TYPE (conv->dtype, SPREAD)
}

#define FILL(T)                                                   \
  for (i = 0; i < conv->batch; i++)                               \
    for (c = 0; c < channels; c++)                                \
      {                                                           \
        const T value = bias != NULL ? ((const T *) bias)[c] : 0; \
        T *to = (T *) grad_input + (i * channels + c) * n;        \
        for (at = 0; at < n; at++)                                \
          to[at] = value;                                         \
      }

/* Sets what no phase computes. */
static void
fill_channels (const GTorchConv *conv, gconstpointer bias, gpointer grad_input)
{
  gint64 channels = conv->groups * conv->in_channels, n = gtorch_cpu_conv_volume (conv->in);
  gint64 i, c, at;

  GTORCH_CONV_FOR_TYPE (conv->dtype, FILL)
}

static gboolean
compute_phase (Phase *phase, GTorchConvForward *f, gconstpointer weight, gpointer grad_input,
               GError **error)
{
  const GTorchConv *conv = phase->conv;
  const gint64 n_channels = conv->batch * conv->groups * conv->in_channels;
  const gint64 numel = n_channels * gtorch_cpu_conv_volume (phase->n);
  const gsize size = gtorch_dtype_size (conv->dtype);
  const gboolean is_all = conv->stride[0] == 1 && conv->stride[1] == 1 && conv->stride[2] == 1;
  g_autofree gpointer turned = NULL;
  g_autofree gpointer part = NULL;

  turned = gtorch_scratch_new (conv->groups * conv->out_channels * conv->in_channels
                                   * gtorch_cpu_conv_volume (f->kernel),
                               size, error);
  if (turned == NULL || (!is_all && (part = gtorch_scratch_new (numel, size, error)) == NULL))
    return FALSE;
  turn_filters (phase, f->kernel, weight, turned);
  f->weight = turned;
  f->output = is_all ? grad_input : part;
  if (!gtorch_cpu_conv_compute (f, error))
    return FALSE;
  phase->from = part;
  phase->to = grad_input;
  if (!is_all)
    gtorch_parallel_for (n_channels, 1 + (1 << 14) / gtorch_cpu_conv_volume (phase->n),
                         spread_channels, phase);
  return TRUE;
}

gboolean
gtorch_cpu_conv_input (const GTorchConv *conv, gconstpointer upper, gconstpointer weight,
                       gconstpointer bias, gpointer grad_input, GError **error)
{
  GTorchConvForward f = { .dtype = conv->dtype,
                          .batch = conv->batch,
                          .groups = conv->groups,
                          .in_channels = conv->out_channels,
                          .out_channels = conv->in_channels,
                          .input = upper,
                          .bias = bias };
  Phase phase = { conv };
  gint64 n[3], z, y, x;
  gboolean is_covered = TRUE;
  guint i;

  for (i = 0; i < 3; i++)
    {
      n[i] = MIN (conv->stride[i], conv->in[i]);
      is_covered &= conv->stride[i] == 1
                    || (conv->kernel[i] >= conv->stride[i]
                        && greatest_divisor (conv->stride[i], conv->dilation[i]) == 1);
    }
  if (!is_covered)
    fill_channels (conv, bias, grad_input);
  for (z = 0; z < n[0]; z++)
    {
      phase_init (&phase, &f, 0, z);
      for (y = 0; y < n[1] && f.kernel[0] > 0; y++)
        {
          phase_init (&phase, &f, 1, y);
          for (x = 0; x < n[2] && f.kernel[1] > 0; x++)
            {
              phase_init (&phase, &f, 2, x);
              if (f.kernel[2] > 0 && !compute_phase (&phase, &f, weight, grad_input, error))
                return FALSE;
            }
        }
    }
  return TRUE;
}
