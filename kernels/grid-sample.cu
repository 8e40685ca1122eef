/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Sampling images at positions. A thread has a sample of several channels, for which it finds the taps once:
 * up to four elements along each dimension and their weights. */

#include "gtorch-grid-sample-params.h"
#include "gtorch-plain.cuh"

template <typename C> struct Line
{
  int64_t places[4]; /* -1 beyond the borders */
  C weights[4], slopes[4];
};

/* Limits a position to the borders; a factor of 0 says that it is there or beyond. */
template <typename C>
GT_DEVICE C
clip (C at, int64_t size, C *factor)
{
  const C last = (C) (size - 1);

  if (at > 0 && at < last)
    return at;
  *factor = 0;
  return at >= last ? last : 0;
}

/* Mirrors a position at the borders: at the centers of the elements there, or half an element beyond. */
template <typename C>
GT_DEVICE C
reflect (C at, int64_t size, bool align_corners, C *factor)
{
  const C low = align_corners ? (C) 0 : (C) -0.5;
  const C span = align_corners ? (C) (size - 1) : (C) size;

  if (span == 0)
    {
      *factor = 0;
      return 0;
    }
  at -= low;
  if (at < 0)
    {
      at = -at;
      *factor = -*factor;
    }

  const C rest = fmod (at, span), turns = floor (at / span);

  if (fmod (turns, (C) 2) == 0)
    return rest + low;
  *factor = -*factor;
  return span - rest + low;
}

template <typename C>
GT_DEVICE C
pad (const GtGridSample &p, C at, int64_t size, C *factor)
{
  if (p.padding == GT_GRID_ZEROS)
    return at;
  if (p.padding == GT_GRID_REFLECTION)
    at = reflect<C> (at, size, p.align_corners, factor);
  return clip<C> (at, size, factor);
}

template <typename C>
GT_DEVICE int64_t
place (C at, int64_t size)
{
  return at > -1 && at < (C) size ? (int64_t) at : -1;
}

template <int LINE, typename C>
GT_DEVICE void
find_line (const GtGridSample &p, int64_t size, C x, Line<C> *line)
{
  C at = p.align_corners ? (x + 1) / 2 * (C) (size - 1) : ((x + 1) * (C) size - 1) / 2;
  C factor = (C) (p.align_corners ? size - 1 : size) / 2;

  if (LINE == 4)
    {
      const C a = (C) -0.75, base = floor (at), t = at - base;
      C ignored = 1;

#pragma unroll
      for (int i = 0; i < 4; i++)
        {
          const C u = i == 0 ? 1 + t : i == 1 ? t : i == 2 ? 1 - t : 2 - t;
          const C sign = i < 2 ? factor : -factor;

          line->places[i] = place<C> (pad<C> (p, base - 1 + (C) i, size, &ignored), size);
          if (i == 1 || i == 2)
            {
              line->weights[i] = ((a + 2) * u - (a + 3)) * u * u + 1;
              line->slopes[i] = sign * ((3 * (a + 2) * u - 2 * (a + 3)) * u);
            }
          else
            {
              line->weights[i] = ((a * u - 5 * a) * u + 8 * a) * u - 4 * a;
              line->slopes[i] = sign * ((3 * a * u - 10 * a) * u + 8 * a);
            }
        }
      return;
    }
  at = pad<C> (p, at, size, &factor);
  if (!(at > -2 && at < (C) size + 1)) /* or NaN */
    {
#pragma unroll
      for (int i = 0; i < LINE; i++)
        {
          line->places[i] = -1;
          line->weights[i] = line->slopes[i] = 0;
        }
      return;
    }
  if (LINE == 1)
    {
      line->places[0] = place<C> (rint (at), size);
      line->weights[0] = 1;
      line->slopes[0] = 0;
      return;
    }

  const C base = floor (at);

  line->places[0] = place<C> (base, size);
  line->places[1] = place<C> (base + 1, size);
  line->weights[0] = 1 - (at - base);
  line->weights[1] = at - base;
  line->slopes[0] = -factor;
  line->slopes[1] = factor;
}

/* Finds the taps of sample i, which counts those of all images, along the dimensions. */
template <int LINE, typename T, typename C>
GT_DEVICE void
find_lines (const GtGridSample &p, int64_t i, Line<C> *lines)
{
  const int64_t at = i * p.dims;

  find_line<LINE, C> (p, p.size[2], gt_get<C, T> (p.grid, at), &lines[2]);
  find_line<LINE, C> (p, p.size[1], gt_get<C, T> (p.grid, at + 1), &lines[1]);
  if (p.dims == 3)
    find_line<LINE, C> (p, p.size[0], gt_get<C, T> (p.grid, at + 2), &lines[0]);
  else
    {
      lines[0].places[0] = 0;
      lines[0].weights[0] = 1;
      lines[0].slopes[0] = 0;
    }
}

/* Returns the offset of a tap within an image, -1 beyond the borders. */
template <typename C>
GT_DEVICE int64_t
tap_offset (const GtGridSample &p, const Line<C> *lines, int z, int y, int x)
{
  const int64_t a = lines[0].places[z], b = lines[1].places[y], c = lines[2].places[x];

  return (a | b | c) < 0 ? -1 : (a * p.size[1] + b) * p.size[2] + c;
}

/* DEEP is the number of taps along the depth. */
#define FOR_EACH_TAP                                    \
  _Pragma ("unroll") for (int z = 0; z < DEEP; z++)     \
      _Pragma ("unroll") for (int y = 0; y < LINE; y++) \
          _Pragma ("unroll") for (int x = 0; x < LINE; x++)

template <int LINE, int DEEP, typename T, typename C>
GT_DEVICE void
sample (const GtGridSample &p)
{
  const int64_t chunks = (p.n_channels + p.chunk - 1) / p.chunk;

  for (GT_LOOP (w, p.n_images * chunks * p.n_out))
    {
      int64_t m, chunk;
      const int64_t image = gt_split (gt_split (w, p.n_out, &m), chunks, &chunk);
      const int64_t end = min ((chunk + 1) * p.chunk, p.n_channels);
      Line<C> lines[3];

      find_lines<LINE, T, C> (p, image * p.n_out + m, lines);
      for (int64_t c = chunk * p.chunk; c < end; c++)
        {
          const int64_t plane = image * p.n_channels + c;
          C sum = 0;

          FOR_EACH_TAP
          {
            const int64_t at = tap_offset<C> (p, lines, z, y, x);
            const C value = at < 0 ? (C) 0 : gt_get<C, T> (p.images, plane * p.n_in + at);

            sum += lines[0].weights[z] * lines[1].weights[y] * lines[2].weights[x] * value;
          }
          gt_put<T> (p.output, plane * p.n_out + m, sum);
        }
    }
}

/* The gradient of the positions. */
template <int LINE, int DEEP, typename T, typename C>
GT_DEVICE void
sample_grid (const GtGridSample &p)
{
  for (GT_LOOP (w, p.n_images * p.n_out))
    {
      int64_t m;
      const int64_t image = gt_split (w, p.n_out, &m);
      Line<C> lines[3];
      C sums[3] = { 0, 0, 0 };

      find_lines<LINE, T, C> (p, w, lines);
      for (int64_t c = 0; c < p.n_channels; c++)
        {
          const int64_t plane = image * p.n_channels + c;
          const C upper = gt_get<C, T> (p.upper, plane * p.n_out + m);

          FOR_EACH_TAP
          {
            const int64_t at = tap_offset<C> (p, lines, z, y, x);
            const C value = at < 0 ? (C) 0 : upper * gt_get<C, T> (p.images, plane * p.n_in + at);

            sums[0] += lines[0].slopes[z] * lines[1].weights[y] * lines[2].weights[x] * value;
            sums[1] += lines[0].weights[z] * lines[1].slopes[y] * lines[2].weights[x] * value;
            sums[2] += lines[0].weights[z] * lines[1].weights[y] * lines[2].slopes[x] * value;
          }
        }
      gt_put<T> (p.output, w * p.dims, sums[2]);
      gt_put<T> (p.output, w * p.dims + 1, sums[1]);
      if (p.dims == 3)
        gt_put<T> (p.output, w * p.dims + 2, sums[0]);
    }
}

/* The parts of the gradient of the images. What is beyond the borders belongs to an element behind all. */
template <int LINE, int DEEP, typename T, typename C>
GT_DEVICE void
sample_products (const GtGridSample &p)
{
  const int64_t chunks = (p.n_channels + p.chunk - 1) / p.chunk;

  for (GT_LOOP (w, p.n_images * p.n_out * chunks))
    {
      int64_t chunk, m, tap = 0;
      const int64_t i = gt_split (w, chunks, &chunk), image = gt_split (i, p.n_out, &m);
      const int64_t end = min ((chunk + 1) * p.chunk, p.n_channels);
      Line<C> lines[3];

      find_lines<LINE, T, C> (p, i, lines);
      FOR_EACH_TAP
      {
        const int64_t at = tap_offset<C> (p, lines, z, y, x);
        const int64_t row = i * (DEEP * LINE * LINE) + tap++;
        const C weight = lines[0].weights[z] * lines[1].weights[y] * lines[2].weights[x];

        if (chunk == 0)
          p.slots[row] = at < 0 ? p.n_images * p.n_in : image * p.n_in + at;
        for (int64_t c = chunk * p.chunk; c < end; c++)
          gt_put<C> (p.products, row * p.n_channels + c,
                     at < 0 ? (C) 0 : weight * gt_get<C, T> (p.upper, i * p.n_channels + c));
      }
    }
}

/* Defines name<T, C>, which calls F<taps of a line, taps along the depth> for the mode and the number of
 * dimensions. */
#define BY_MODE(name, F)                                              \
  template <typename T, typename C>                                   \
  static __device__ __forceinline__ void name (const GtGridSample &p) \
  {                                                                   \
    if (p.mode == GT_GRID_NEAREST)                                    \
      F<1, 1, T, C> (p);                                              \
    else if (p.mode == GT_GRID_BICUBIC)                               \
      F<4, 1, T, C> (p);                                              \
    else if (p.dims == 2)                                             \
      F<2, 1, T, C> (p);                                              \
    else                                                              \
      F<2, 2, T, C> (p);                                              \
  }
BY_MODE (grid_sample, sample)
BY_MODE (grid_sample_grid, sample_grid)
BY_MODE (grid_sample_products, sample_products)

#define EACH(dtype, T, C)                                                                    \
  GT_KERNEL (gt_grid_sample_##dtype, GtGridSample, 256) { grid_sample<T, C> (p); }           \
  GT_KERNEL (gt_grid_sample_grid_##dtype, GtGridSample, 256) { grid_sample_grid<T, C> (p); } \
  GT_KERNEL (gt_grid_sample_products_##dtype, GtGridSample, 256) { grid_sample_products<T, C> (p); }
GT_EACH_FLOAT (EACH)
