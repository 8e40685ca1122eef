/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Fourier transforms of a group of lines, one line per vector lane. Every step works on whole rows, so all
 * factors are scalars and no vector is ever shuffled; only reading and writing the lines transposes. The
 * result of a line does not depend on its lane or on the other lines. The inverse transform swaps real and
 * imaginary parts of its input and output. The file includes itself, once for each type. */

#ifndef T

#include "config.h"

#include <string.h>

#include "cpu/ops/gtorch-cpu-fft-private.h"

#if defined(__AVX512F__)
#define VECTOR 64
#elif defined(__AVX__)
#define VECTOR 32
#else
#define VECTOR 16
#endif
#define NV    (64 / VECTOR)
#define INNER 128 /* rows that fit into the L1 cache */

#define T       float
#define NAME(n) n##_f32
#include "gtorch-isa-fft.c"
#undef T
#undef NAME
#define T       double
#define NAME(n) n##_f64
#include "gtorch-isa-fft.c"

#else

#define LANES ((gint64) (64 / sizeof (T)))
#define ROW   (2 * LANES)
#define V     NAME (Vec)

typedef T NAME (Vec) __attribute__ ((vector_size (VECTOR), may_alias));

#define RE(x, row) ((V *) ((x) + (row) *ROW))[v]
#define IM(x, row) ((V *) ((x) + (row) *ROW))[v + NV]
/* (r, i) = row * w[n] */
#define TIMES(r, i, x, row, w, n)                                          \
  const V r = RE (x, row) * (w)[2 * (n)] - IM (x, row) * (w)[2 * (n) + 1]; \
  const V i = RE (x, row) * (w)[2 * (n) + 1] + IM (x, row) * (w)[2 * (n)];
/* (r, i) = row * w[n], or just the row if w is NULL */
#define TWIDDLE(r, i, x, row, w, n)                                                          \
  const V r = w == NULL ? (V) RE (x, row)                                                    \
                        : (V) (RE (x, row) * (w)[2 * (n)] - IM (x, row) * (w)[2 * (n) + 1]); \
  const V i = w == NULL ? (V) IM (x, row)                                                    \
                        : (V) (RE (x, row) * (w)[2 * (n) + 1] + IM (x, row) * (w)[2 * (n)]);

static inline __attribute__ ((always_inline)) void
NAME (butterfly_2) (T *x, gint64 m, const T *w, const T *roots)
{
  int v;

  for (v = 0; v < NV; v++)
    {
      const V ar = RE (x, 0), ai = IM (x, 0);
      TWIDDLE (br, bi, x, m, w, 0)

      RE (x, 0) = ar + br;
      IM (x, 0) = ai + bi;
      RE (x, m) = ar - br;
      IM (x, m) = ai - bi;
    }
}

static inline __attribute__ ((always_inline)) void
NAME (butterfly_4) (T *x, gint64 m, const T *w, const T *roots)
{
  int v;

  for (v = 0; v < NV; v++)
    {
      TWIDDLE (br, bi, x, m, w, 0)
      TWIDDLE (cr, ci, x, 2 * m, w, 1)
      TWIDDLE (dr, di, x, 3 * m, w, 2)
      const V ar = RE (x, 0), ai = IM (x, 0);
      const V pr = ar + cr, pi = ai + ci, qr = ar - cr, qi = ai - ci;
      const V sr = br + dr, si = bi + di, tr = br - dr, ti = bi - di;

      RE (x, 0) = pr + sr;
      IM (x, 0) = pi + si;
      RE (x, m) = qr + ti;
      IM (x, m) = qi - tr;
      RE (x, 2 * m) = pr - sr;
      IM (x, 2 * m) = pi - si;
      RE (x, 3 * m) = qr - ti;
      IM (x, 3 * m) = qi + tr;
    }
}

/* Butterfly of an odd radix p: works on sums and differences of the elements j and p - j. */
static inline __attribute__ ((always_inline)) void
NAME (butterfly_odd) (const int p, T *x, gint64 m, const T *w, const T *roots)
{
  const int h = p / 2;
  int v, j, k;

  for (v = 0; v < NV; v++)
    {
      V sr[GTORCH_FFT_MAX_RADIX / 2], si[GTORCH_FFT_MAX_RADIX / 2];
      V dr[GTORCH_FFT_MAX_RADIX / 2], di[GTORCH_FFT_MAX_RADIX / 2];
      const V ar = RE (x, 0), ai = IM (x, 0);
      V tr = ar, ti = ai;

#pragma GCC unroll 8
      for (j = 0; j < h; j++)
        {
          TWIDDLE (br, bi, x, (j + 1) * m, w, j)
          TWIDDLE (cr, ci, x, (p - 1 - j) * m, w, p - 2 - j)

          sr[j] = br + cr;
          si[j] = bi + ci;
          dr[j] = br - cr;
          di[j] = bi - ci;
          tr += sr[j];
          ti += si[j];
        }
      RE (x, 0) = tr;
      IM (x, 0) = ti;
#pragma GCC unroll 8
      for (k = 1; k <= h; k++)
        {
          V er = ar + sr[0] * roots[2 * k], ei = ai + si[0] * roots[2 * k];
          V fr = dr[0] * roots[2 * k + 1], fi = di[0] * roots[2 * k + 1];
          int at = k;

#pragma GCC unroll 8
          for (j = 1; j < h; j++)
            {
              at = at + k < p ? at + k : at + k - p;
              er += sr[j] * roots[2 * at];
              ei += si[j] * roots[2 * at];
              fr += dr[j] * roots[2 * at + 1];
              fi += di[j] * roots[2 * at + 1];
            }
          /* e + i f for k, its counterpart for p - k: the roots have the sign of the exponent */
          RE (x, k * m) = er - fi;
          IM (x, k * m) = ei + fr;
          RE (x, (p - k) * m) = er + fi;
          IM (x, (p - k) * m) = ei - fr;
        }
    }
}

static void
NAME (stage) (const GTorchFFTRows *rows, guint s, gint64 m, T *x, gint64 n)
{
  const int p = rows->radix[s];
  const T *w = rows->twiddles[s], *roots = rows->roots[s];
  gint64 block, k;

  /* all factors of the first stage are 1 */
#define EACH(name, ...)                                          \
  if (m == 1)                                                    \
    for (block = 0; block < n; block += p)                       \
      NAME (name) (__VA_ARGS__ x + block * ROW, 1, NULL, roots); \
  else                                                           \
    for (block = 0; block < n; block += p * m)                   \
      for (k = 0; k < m; k++)                                    \
        NAME (name) (__VA_ARGS__ x + (block + k) * ROW, m, w + k * 2 * (p - 1), roots);
  switch (p)
    {
    case 2:
      EACH (butterfly_2, )
      break;
    case 3:
      EACH (butterfly_odd, 3, )
      break;
    case 4:
      EACH (butterfly_4, )
      break;
    case 5:
      EACH (butterfly_odd, 5, )
      break;
    case 7:
      EACH (butterfly_odd, 7, )
      break;
    default:
      EACH (butterfly_odd, p, )
    }
#undef EACH
}

/* Runs the stages that fit into the L1 cache block by block, then the remaining stages. */
static void
NAME (transform) (const GTorchFFTRows *rows, T *x)
{
  gint64 inner = 1, m, block;
  guint n_inner = 0, s;

  while (n_inner < rows->n_stages && inner * rows->radix[n_inner] <= INNER)
    inner *= rows->radix[n_inner++];
  for (block = 0; block < rows->n; block += inner)
    for (s = 0, m = 1; s < n_inner; m *= rows->radix[s++])
      NAME (stage) (rows, s, m, x + block * ROW, inner);
  for (s = n_inner, m = inner; s < rows->n_stages; m *= rows->radix[s++])
    NAME (stage) (rows, s, m, x, rows->n);
}

/* Returns whether lanes are adjacent in memory: 1 for adjacent real numbers, 2 for adjacent complex
 * numbers, 0 if not. */
static int
NAME (neighbours) (const gint64 *offsets, gint64 delta)
{
  const gint64 distance = offsets[1] - offsets[0];
  gint64 l;

  if (distance != 1 && (distance != 2 || delta != 1))
    return 0;
  for (l = 2; l < LANES; l++)
    if (offsets[l] != offsets[0] + l * distance)
      return 0;
  return (int) distance;
}

/* Reads element i of the lines into row place[i]. Unused lanes repeat the first line. */
static void
NAME (read) (const GTorchFFTJob *job, const T *in, const gint64 *offsets, gint64 n,
             const gint32 *place, T *x)
{
  const gint64 step = job->in_step, delta = job->in_delta;
  const gint64 re = job->inverse ? LANES : 0, im = LANES - re;
  const gboolean is_real = delta == GTORCH_FFT_REAL;
  const gint64 other = is_real ? 0 : delta;
  const int together = NAME (neighbours) (offsets, delta);
  gint64 i, j, l;

  for (i = 0; together != 0 && i < n; i++)
    {
      T *row = x + (place != NULL ? place[i] : i) * ROW;
      const T *p = in + offsets[0] + i * step;

      if (together == 1)
        {
          memcpy (row + re, p, 64);
          if (!is_real)
            memcpy (row + im, p + delta, 64);
        }
      else
        for (l = 0; l < LANES; l++)
          {
            row[re + l] = p[2 * l];
            row[im + l] = p[2 * l + 1];
          }
    }
  /* one cache line of each line at a time */
  for (i = 0; together == 0 && i < n; i += 8)
    for (l = 0; l < LANES; l++)
      {
        const T *p = in + offsets[l] + i * step;
        const gint64 count = MIN (8, n - i);

        for (j = 0; j < count; j++)
          {
            T *row = x + (place != NULL ? place[i + j] : i + j) * ROW + l;

            row[re] = p[j * step];
            row[im] = p[j * step + other];
          }
      }
  for (i = 0; is_real && i < n; i++)
    memset (x + (place != NULL ? place[i] : i) * ROW + im, 0, 64);
}

static void
NAME (write) (const GTorchFFTJob *job, const T *x, T *out, const gint64 *offsets, gint64 n_lines)
{
  const gint64 step = job->out_step, delta = job->out_delta, n = job->n_out;
  const gint64 re = job->inverse ? LANES : 0, im = LANES - re;
  const T scale = (T) job->scale;
  const int together = n_lines == LANES ? NAME (neighbours) (offsets, delta) : 0;
  gint64 i, j, l;

  for (i = 0; together != 0 && i < n; i++)
    {
      const T *row = x + i * ROW;
      T *p = out + offsets[0] + i * step;

      if (together == 2)
        for (l = 0; l < LANES; l++)
          {
            p[2 * l] = row[re + l] * scale;
            p[2 * l + 1] = row[im + l] * scale;
          }
      else
        {
          for (l = 0; l < LANES; l++)
            p[l] = row[re + l] * scale;
          for (l = 0; delta != GTORCH_FFT_REAL && l < LANES; l++)
            p[delta + l] = row[im + l] * scale;
        }
    }
  for (i = 0; together == 0 && i < n; i += 8)
    for (l = 0; l < n_lines; l++)
      {
        T *p = out + offsets[l] + i * step;
        const gint64 count = MIN (8, n - i);

        if (delta != GTORCH_FFT_REAL)
          for (j = 0; j < count; j++)
            {
              const T *row = x + (i + j) * ROW + l;

              p[j * step] = row[re] * scale;
              p[j * step + delta] = row[im] * scale;
            }
        else
          for (j = 0; j < count; j++)
            p[j * step] = x[(i + j) * ROW + l + re] * scale;
      }
}

/* --- real lines of even length, transformed as n complex pairs --- */

/* Converts the transform of the pairs to the transform of the real line: n + 1 rows, in place. */
static void
NAME (unfold) (const GTorchFFTJob *job, T *x)
{
  const T *w = job->half, half = (T) 0.5;
  gint64 n = job->n, k;
  int v;

  memcpy (x + n * ROW, x, GTORCH_FFT_ROW);
  for (k = 0; k <= n - k; k++)
    for (v = 0; v < NV; v++)
      {
        const V ar = RE (x, k), ai = IM (x, k), br = RE (x, n - k), bi = IM (x, n - k);
        const V er = (ar + br) * half, ei = (ai - bi) * half;
        const V dr = (ar - br) * half, di = (ai + bi) * half;
        const T c = w[2 * k], s = w[2 * k + 1];
        const V pr = dr * s + di * c, pi = di * s - dr * c;

        RE (x, k) = er + pr;
        IM (x, k) = ei + pi;
        RE (x, n - k) = er - pr;
        IM (x, n - k) = pi - ei;
      }
}

/* Does the inverse of unfold, from n + 1 rows in y. The rows have real and imaginary parts swapped, as the
 * inverse transform expects. */
static void
NAME (fold) (const GTorchFFTJob *job, const T *y, const gint32 *place, T *x)
{
  const T *w = job->half;
  gint64 n = job->n, k;
  int v;

  for (k = 0; k < n; k++)
    for (v = 0; v < NV; v++)
      {
        const V zero = { 0 };
        const V ar = IM (y, k), ai = k == 0 ? zero : RE (y, k);
        const V br = IM (y, n - k), bi = k == 0 ? zero : RE (y, n - k);
        const V sr = ar + br, si = ai - bi, dr = ar - br, di = ai + bi;
        const T c = w[2 * k], s = w[2 * k + 1];
        const gint64 to = place[k];

        IM (x, to) = sr - (di * c - dr * s);
        RE (x, to) = si + (dr * c + di * s);
      }
}

/* Completes the line from its first half, in rows with real and imaginary parts swapped. */
static void
NAME (mirror) (const GTorchFFTJob *job, const T *y, const gint32 *place, T *x)
{
  gint64 n = job->n, k;
  int v;

  for (k = 0; k < n; k++)
    for (v = 0; v < NV; v++)
      {
        const gint64 from = MIN (k, n - k), to = place[k];
        const V zero = { 0 };

        IM (x, to) = IM (y, from);
        RE (x, to) = k == 0 ? zero : (k == from ? RE (y, from) : -RE (y, from));
      }
}

/* --- lengths with a large prime factor: convolution with a chirp --- */

static T *
NAME (convolve) (const GTorchFFTJob *job, T *x, T *y)
{
  const GTorchFFTRows *rows = job->rows;
  const T *w = job->chirp, *r = job->response;
  gint64 k, to;
  int v;

  for (k = 0; k < rows->n; k++)
    {
      to = rows->place[k];
      if (k >= job->n)
        memset (x + to * ROW, 0, GTORCH_FFT_ROW);
      else
        for (v = 0; v < NV; v++)
          {
            TIMES (zr, zi, x, to, w, k)

            RE (x, to) = zr;
            IM (x, to) = zi;
          }
    }
  NAME (transform) (rows, x);
  for (k = 0; k < rows->n; k++)
    for (v = 0; v < NV; v++)
      {
        TIMES (zr, zi, x, k, r, k)

        to = rows->place[k];
        RE (y, to) = zi;
        IM (y, to) = zr;
      }
  NAME (transform) (rows, y);
  for (k = 0; k < job->n; k++)
    for (v = 0; v < NV; v++)
      {
        const V zr = IM (y, k), zi = RE (y, k);

        RE (y, k) = zr * w[2 * k] - zi * w[2 * k + 1];
        IM (y, k) = zr * w[2 * k + 1] + zi * w[2 * k];
      }
  return y;
}

static void
NAME (multiply) (const GTorchFFTJob *job, gint64 group, T *x)
{
  const T *lanes = job->lane_factors, *f = job->group_factors;
  gint64 k;
  int v;

  for (k = 0; k < job->n; k++)
    {
      const T c = f[2 * (k * job->n_groups + group)], s = f[2 * (k * job->n_groups + group) + 1];

      for (v = 0; v < NV; v++)
        {
          const V wr = RE (lanes, k) * c - IM (lanes, k) * s;
          const V wi = RE (lanes, k) * s + IM (lanes, k) * c;
          const V xr = RE (x, k), xi = IM (x, k);

          RE (x, k) = xr * wr - xi * wi;
          IM (x, k) = xr * wi + xi * wr;
        }
    }
}

void
GTORCH_ISA_SYMBOL (NAME (gtorch_fft_lines)) (const GTorchFFTJob *job, gint64 group, gint64 n_lines,
                                             gconstpointer in, const gint64 *in_offsets,
                                             gpointer out, const gint64 *out_offsets,
                                             void *workspace)
{
  T *x = workspace, *y = x + (job->rows->n + 1) * ROW;
  const gint32 *place = job->rows->place;
  gint64 offsets[GTORCH_FFT_MAX_LANES], l;

  for (l = 0; l < LANES; l++)
    offsets[l] = in_offsets[l < n_lines ? l : 0];
  switch (job->in_layout)
    {
    case GTORCH_FFT_HALF_EVEN:
      NAME (read) (job, in, offsets, job->n + 1, NULL, y);
      NAME (fold) (job, y, place, x);
      break;
    case GTORCH_FFT_HALF_ODD:
      NAME (read) (job, in, offsets, job->n / 2 + 1, NULL, y);
      NAME (mirror) (job, y, place, x);
      break;
    default:
      NAME (read) (job, in, offsets, job->n, place, x);
    }
  if (job->chirp != NULL)
    x = NAME (convolve) (job, x, y);
  else
    NAME (transform) (job->rows, x);
  if (job->lane_factors != NULL)
    NAME (multiply) (job, group, x);
  if (job->out_layout == GTORCH_FFT_HALF_EVEN)
    NAME (unfold) (job, x);
  NAME (write) (job, x, out, out_offsets, n_lines);
}

/* --- passes over one long line --- */

void
GTORCH_ISA_SYMBOL (NAME (gtorch_fft_pass)) (const GTorchFFTPass *pass, gint64 begin, gint64 end)
{
  const T *in = pass->in, *w = pass->factors, scale = (T) pass->scale;
  const gint64 n = pass->n, in_step = pass->in_step, out_step = pass->out_step;
  const gint64 in_delta = pass->in_delta, out_delta = pass->out_delta;
  const gboolean inverse = pass->inverse;
  T *out = pass->out;
  gint64 k;

#define X(k)  in[(k) *in_step]
#define XI(k) in[(k) *in_step + in_delta]
#define Y(k)  out[(k) *out_step]
#define YI(k) out[(k) *out_step + out_delta]
  switch (pass->kind)
    {
    case GTORCH_FFT_PASS_UNFOLD:
      for (k = begin; k < end; k++)
        {
          const gint64 a = k == n ? 0 : k, b = k == 0 ? 0 : n - k;
          const T er = (X (a) + X (b)) / 2, ei = (XI (a) - XI (b)) / 2;
          const T dr = (X (a) - X (b)) / 2, di = (XI (a) + XI (b)) / 2;

          Y (k) = (er + (dr * w[2 * k + 1] + di * w[2 * k])) * scale;
          YI (k) = (ei + (di * w[2 * k + 1] - dr * w[2 * k])) * scale;
        }
      break;

    case GTORCH_FFT_PASS_FOLD:
      for (k = begin; k < end; k++)
        {
          const T ai = k == 0 ? 0 : XI (k), bi = k == 0 ? 0 : XI (n - k);
          const T sr = X (k) + X (n - k), si = ai - bi, dr = X (k) - X (n - k), di = ai + bi;

          Y (k) = sr - (di * w[2 * k] - dr * w[2 * k + 1]);
          YI (k) = si + (dr * w[2 * k] + di * w[2 * k + 1]);
        }
      break;

    case GTORCH_FFT_PASS_MIRROR:
      for (k = begin; k < end; k++)
        {
          const gint64 from = MIN (k, n - k);

          Y (k) = X (from);
          YI (k) = k == 0 ? 0 : (k == from ? XI (from) : -XI (from));
        }
      break;

    case GTORCH_FFT_PASS_COPY:
      for (k = begin; k < end; k++)
        {
          Y (k) = X (k);
          YI (k) = XI (k);
        }
      break;

    case GTORCH_FFT_PASS_CHIRP:
      for (k = begin; k < end; k++)
        {
          const T ar = X (k), ai = in_delta != GTORCH_FFT_REAL ? XI (k) : 0;
          const T br = inverse ? ai : ar, bi = inverse ? ar : ai;

          Y (k) = br * w[2 * k] - bi * w[2 * k + 1];
          YI (k) = br * w[2 * k + 1] + bi * w[2 * k];
        }
      break;

    case GTORCH_FFT_PASS_RESULT:
      for (k = begin; k < end; k++)
        {
          const T br = (X (k) * w[2 * k] - XI (k) * w[2 * k + 1]) * scale;
          const T bi = (X (k) * w[2 * k + 1] + XI (k) * w[2 * k]) * scale;

          Y (k) = inverse ? bi : br;
          if (out_delta != GTORCH_FFT_REAL)
            YI (k) = inverse ? br : bi;
        }
      break;
    }
#undef X
#undef XI
#undef Y
#undef YI
}

#undef LANES
#undef ROW
#undef V
#undef RE
#undef IM
#undef TIMES
#undef TWIDDLE

#endif
