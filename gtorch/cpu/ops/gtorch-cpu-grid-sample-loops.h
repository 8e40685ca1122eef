/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <string.h>

#include <gtorch/cpu/gtorch-cpu-iter.h>
#include <gtorch/cpu/gtorch-cpu-math.h>
#include <gtorch/ops/gtorch-op-parts-private.h>

#define MAX_TAPS 16
#define BLOCK    32 /* samples whose taps are found together */

typedef struct
{
  GTorchGridSampling g;
  gint64 n_blocks; /* of an image */
  gconstpointer images, grid, upper;
  gpointer output;
} GTorchGridSampleJob;

/* The loops of grid_sample for elements of type T, with the suffix S. A block of samples of one image gets
 * its taps first, which then serve all channels. */
#define GTORCH_GRID_SAMPLE_LOOPS(T, S)                                                                   \
  typedef struct                                                                                         \
  {                                                                                                      \
    guint n;                         /* samples */                                                       \
    gboolean inside;                 /* whether all taps are */                                          \
    gint64 offsets[MAX_TAPS][BLOCK]; /* within an image; -1 beyond the borders */                        \
    T weights[MAX_TAPS][BLOCK];                                                                          \
    T slopes[3][MAX_TAPS][BLOCK]; /* derivatives of the weights by the position */                       \
  } Taps##_##S;                                                                                          \
                                                                                                         \
  /* Limits a position to the borders; a factor of 0 says that it is there or beyond. */                 \
  static T clip##_##S (T at, gint64 size, T *factor)                                                     \
  {                                                                                                      \
    const T last = (T) (size - 1);                                                                       \
                                                                                                         \
    if (at > 0 && at < last)                                                                             \
      return at;                                                                                         \
    *factor = 0;                                                                                         \
    return at >= last ? last : 0;                                                                        \
  }                                                                                                      \
                                                                                                         \
  /* Mirrors a position at the borders: the centers of the elements there, or half an element beyond. */ \
  static T reflect##_##S (T at, gint64 size, gboolean align_corners, T *factor)                          \
  {                                                                                                      \
    const T low = align_corners ? 0 : (T) -0.5;                                                          \
    const T span = align_corners ? (T) (size - 1) : (T) size;                                            \
    T rest, turns;                                                                                       \
                                                                                                         \
    if (span == 0)                                                                                       \
      {                                                                                                  \
        *factor = 0;                                                                                     \
        return 0;                                                                                        \
      }                                                                                                  \
    at -= low;                                                                                           \
    if (at < 0)                                                                                          \
      {                                                                                                  \
        at = -at;                                                                                        \
        *factor = -*factor;                                                                              \
      }                                                                                                  \
    rest = fmod (at, span);                                                                              \
    turns = floor (at / span);                                                                           \
    if (fmod (turns, (T) 2) == 0)                                                                        \
      return rest + low;                                                                                 \
    *factor = -*factor;                                                                                  \
    return span - rest + low;                                                                            \
  }                                                                                                      \
                                                                                                         \
  static T pad##_##S (const GTorchGridSampling *g, T at, gint64 size, T *factor)                         \
  {                                                                                                      \
    if (g->padding == GTORCH_GRID_PADDING_ZEROS)                                                         \
      return at;                                                                                         \
    if (g->padding == GTORCH_GRID_PADDING_REFLECTION)                                                    \
      at = reflect##_##S (at, size, g->align_corners, factor);                                           \
    return clip##_##S (at, size, factor);                                                                \
  }                                                                                                      \
                                                                                                         \
  static gint64 place##_##S (T at, gint64 size)                                                          \
  {                                                                                                      \
    return at > -1 && at < (T) size ? (gint64) at : -1;                                                  \
  }                                                                                                      \
                                                                                                         \
  /* Finds the taps of cubic convolution and the derivatives of their weights by t. */                   \
  static void find_cubic##_##S (const GTorchGridSampling *g, gint64 size, T at, gint64 *places,          \
                                T *weights, T *slopes)                                                   \
  {                                                                                                      \
    const T a = (T) -0.75, base = floor (at), t = at - base;                                             \
    const T x[] = { 1 + t, t, 1 - t, 2 - t };                                                            \
    T ignored = 1;                                                                                       \
                                                                                                         \
    for (guint i = 0; i < 4; i++)                                                                        \
      {                                                                                                  \
        const gboolean is_near = i == 1 || i == 2;                                                       \
        const T slope = is_near ? (3 * (a + 2) * x[i] - 2 * (a + 3)) * x[i]                              \
                                : (3 * a * x[i] - 10 * a) * x[i] + 8 * a;                                \
                                                                                                         \
        places[i] = place##_##S (pad##_##S (g, base - 1 + (T) i, size, &ignored), size);                 \
        weights[i] = is_near ? ((a + 2) * x[i] - (a + 3)) * x[i] * x[i] + 1                              \
                             : ((a * x[i] - 5 * a) * x[i] + 8 * a) * x[i] - 4 * a;                       \
        slopes[i] = i < 2 ? slope : -slope;                                                              \
      }                                                                                                  \
  }                                                                                                      \
                                                                                                         \
  /* Finds the taps along one dimension, at the position x from -1 to 1. */                              \
  static void find_line##_##S (const GTorchGridSampling *g, guint d, T x, gint64 *places,                \
                               T *weights, T *slopes)                                                    \
  {                                                                                                      \
    const gint64 size = g->size[d];                                                                      \
    T at = g->align_corners ? (x + 1) / 2 * (T) (size - 1) : ((x + 1) * (T) size - 1) / 2;               \
    T factor = (T) (g->align_corners ? size - 1 : size) / 2;                                             \
    T base;                                                                                              \
                                                                                                         \
    if (g->mode == GTORCH_GRID_MODE_BICUBIC)                                                             \
      {                                                                                                  \
        find_cubic##_##S (g, size, at, places, weights, slopes);                                         \
        for (guint i = 0; i < 4; i++)                                                                    \
          slopes[i] *= factor;                                                                           \
        return;                                                                                          \
      }                                                                                                  \
    at = pad##_##S (g, at, size, &factor);                                                               \
    if (!(at > -2 && at < (T) size + 1)) /* or NaN */                                                    \
      {                                                                                                  \
        places[0] = places[1] = -1;                                                                      \
        weights[0] = weights[1] = slopes[0] = slopes[1] = 0;                                             \
        return;                                                                                          \
      }                                                                                                  \
    base = g->mode == GTORCH_GRID_MODE_NEAREST ? nearbyint (at) : floor (at);                            \
    places[0] = place##_##S (base, size);                                                                \
    places[1] = place##_##S (base + 1, size);                                                            \
    weights[1] = g->mode == GTORCH_GRID_MODE_NEAREST ? 0 : at - base;                                    \
    weights[0] = 1 - weights[1];                                                                         \
    slopes[1] = g->mode == GTORCH_GRID_MODE_NEAREST ? 0 : factor;                                        \
    slopes[0] = -slopes[1];                                                                              \
  }                                                                                                      \
                                                                                                         \
  /* Finds the taps of `n` samples from `first` on of an image, with slopes or without. */               \
  static void find_taps##_##S (const GTorchGridSampleJob *job, gint64 image, gint64 first,               \
                               guint n, gboolean slopes, Taps##_##S *taps)                               \
  {                                                                                                      \
    const GTorchGridSampling *g = &job->g;                                                               \
    const T *grid = (const T *) job->grid + (image * g->n_out + first) * g->dims;                        \
    const guint n_deep = g->dims == 3 ? g->n_line : 1;                                                   \
    guint i, k, d, z, y, x;                                                                              \
                                                                                                         \
    taps->n = n;                                                                                         \
    taps->inside = TRUE;                                                                                 \
    for (i = 0; i < n; i++, grid += g->dims)                                                             \
      {                                                                                                  \
        gint64 places[3][4] = { { 0 } };                                                                 \
        T w[3][4] = { { 1 } }, s[3][4] = { { 0 } };                                                      \
                                                                                                         \
        for (d = 3 - g->dims; d < 3; d++)                                                                \
          find_line##_##S (g, d, grid[2 - d], places[d], w[d], s[d]);                                    \
        for (k = 0, z = 0; z < n_deep; z++)                                                              \
          for (y = 0; y < g->n_line; y++)                                                                \
            for (x = 0; x < g->n_line; x++, k++)                                                         \
              {                                                                                          \
                const gboolean inside = (places[0][z] | places[1][y] | places[2][x]) >= 0;               \
                                                                                                         \
                taps->offsets[k][i] =                                                                    \
                    inside                                                                               \
                        ? (places[0][z] * g->size[1] + places[1][y]) * g->size[2] + places[2][x]         \
                        : -1;                                                                            \
                taps->inside &= inside;                                                                  \
                taps->weights[k][i] = w[0][z] * w[1][y] * w[2][x];                                       \
                if (!slopes)                                                                             \
                  continue;                                                                              \
                taps->slopes[0][k][i] = s[0][z] * w[1][y] * w[2][x];                                     \
                taps->slopes[1][k][i] = w[0][z] * s[1][y] * w[2][x];                                     \
                taps->slopes[2][k][i] = w[0][z] * w[1][y] * s[2][x];                                     \
              }                                                                                          \
      }                                                                                                  \
  }                                                                                                      \
                                                                                                         \
  /* Reads the elements of a tap. */                                                                     \
  static void read_tap##_##S (const Taps##_##S *taps, guint k, const T *x, T *values)                    \
  {                                                                                                      \
    const gint64 *offsets = taps->offsets[k];                                                            \
    guint i;                                                                                             \
                                                                                                         \
    if (taps->inside)                                                                                    \
      for (i = 0; i < taps->n; i++)                                                                      \
        values[i] = x[offsets[i]];                                                                       \
    else                                                                                                 \
      for (i = 0; i < taps->n; i++)                                                                      \
        values[i] = offsets[i] < 0 ? 0 : x[offsets[i]];                                                  \
  }                                                                                                      \
                                                                                                         \
  static void sample##_##S (gint64 begin, gint64 end, gpointer user_data)                                \
  {                                                                                                      \
    const GTorchGridSampleJob *job = user_data;                                                          \
    const GTorchGridSampling *g = &job->g;                                                               \
    Taps##_##S taps;                                                                                     \
    T values[BLOCK], sums[BLOCK];                                                                        \
    gint64 c;                                                                                            \
    guint i, k;                                                                                          \
                                                                                                         \
    for (; begin < end; begin++)                                                                         \
      {                                                                                                  \
        const gint64 image = begin / job->n_blocks, first = begin % job->n_blocks * BLOCK;               \
        const guint n = (guint) MIN (BLOCK, g->n_out - first);                                           \
                                                                                                         \
        find_taps##_##S (job, image, first, n, FALSE, &taps);                                            \
        for (c = image * g->n_channels; c < (image + 1) * g->n_channels; c++)                            \
          {                                                                                              \
            memset (sums, 0, sizeof sums);                                                               \
            for (k = 0; k < g->n_taps; k++)                                                              \
              {                                                                                          \
                read_tap##_##S (&taps, k, (const T *) job->images + c * g->n_in, values);                \
                for (i = 0; i < n; i++)                                                                  \
                  sums[i] += taps.weights[k][i] * values[i];                                             \
              }                                                                                          \
            memcpy ((T *) job->output + c * g->n_out + first, sums, n * sizeof (T));                     \
          }                                                                                              \
      }                                                                                                  \
  }                                                                                                      \
                                                                                                         \
  /* The gradient of the positions. */                                                                   \
  static void grid_grad##_##S (gint64 begin, gint64 end, gpointer user_data)                             \
  {                                                                                                      \
    const GTorchGridSampleJob *job = user_data;                                                          \
    const GTorchGridSampling *g = &job->g;                                                               \
    Taps##_##S taps;                                                                                     \
    T values[BLOCK], sums[3][BLOCK];                                                                     \
    gint64 c;                                                                                            \
    guint i, k, d;                                                                                       \
                                                                                                         \
    for (; begin < end; begin++)                                                                         \
      {                                                                                                  \
        const gint64 image = begin / job->n_blocks, first = begin % job->n_blocks * BLOCK;               \
        const guint n = (guint) MIN (BLOCK, g->n_out - first);                                           \
        T *output = (T *) job->output + (image * g->n_out + first) * g->dims;                            \
                                                                                                         \
        find_taps##_##S (job, image, first, n, TRUE, &taps);                                             \
        memset (sums, 0, sizeof sums);                                                                   \
        for (c = image * g->n_channels; c < (image + 1) * g->n_channels; c++)                            \
          {                                                                                              \
            const T *upper = (const T *) job->upper + c * g->n_out + first;                              \
                                                                                                         \
            for (k = 0; k < g->n_taps; k++)                                                              \
              {                                                                                          \
                read_tap##_##S (&taps, k, (const T *) job->images + c * g->n_in, values);                \
                for (i = 0; i < n; i++)                                                                  \
                  values[i] *= upper[i];                                                                 \
                for (d = 3 - g->dims; d < 3; d++)                                                        \
                  for (i = 0; i < n; i++)                                                                \
                    sums[d][i] += taps.slopes[d][k][i] * values[i];                                      \
              }                                                                                          \
          }                                                                                              \
        for (i = 0; i < n; i++)                                                                          \
          for (d = 3 - g->dims; d < 3; d++)                                                              \
            output[i * g->dims + 2 - d] = sums[d][i];                                                    \
      }                                                                                                  \
  }                                                                                                      \
                                                                                                         \
  /* The gradient of channels of images, all of whose samples are added by one thread. */                \
  static void input_grad##_##S (gint64 begin, gint64 end, gpointer user_data)                            \
  {                                                                                                      \
    const GTorchGridSampleJob *job = user_data;                                                          \
    const GTorchGridSampling *g = &job->g;                                                               \
    Taps##_##S taps;                                                                                     \
    gint64 first, c, stop;                                                                               \
    guint i, k;                                                                                          \
                                                                                                         \
    memset ((T *) job->output + begin * g->n_in, 0, (end - begin) * g->n_in * sizeof (T));               \
    for (; begin < end; begin = stop)                                                                    \
      {                                                                                                  \
        const gint64 image = begin / g->n_channels;                                                      \
                                                                                                         \
        stop = MIN (end, (image + 1) * g->n_channels);                                                   \
        for (first = 0; first < g->n_out; first += BLOCK)                                                \
          {                                                                                              \
            find_taps##_##S (job, image, first, (guint) MIN (BLOCK, g->n_out - first), FALSE,            \
                             &taps);                                                                     \
            for (c = begin; c < stop; c++)                                                               \
              {                                                                                          \
                const T *upper = (const T *) job->upper + c * g->n_out + first;                          \
                T *to = (T *) job->output + c * g->n_in;                                                 \
                                                                                                         \
                for (k = 0; k < g->n_taps; k++)                                                          \
                  for (i = 0; i < taps.n; i++)                                                           \
                    if (taps.offsets[k][i] >= 0)                                                         \
                      to[taps.offsets[k][i]] += taps.weights[k][i] * upper[i];                           \
              }                                                                                          \
          }                                                                                              \
      }                                                                                                  \
  }
