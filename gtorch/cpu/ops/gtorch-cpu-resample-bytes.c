/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Resampling of images of bytes by integers. A weight is an integer of 16 bits, in units of 2^-precision of
 * its dimension; sums are rounded and clamped to bytes behind each dimension. */

#include "config.h"

#include <math.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/ops/gtorch-cpu-resample.h"
#include "device/gtorch-scratch-private.h"

#define ROWS          8  /* that are resampled along their elements at a time */
#define MAX_PRECISION 22 /* so that a sum of bytes fits into 32 bits */

/* The elements that the results along a dimension are made of. Their number is even, where a weight may be
 * 0, so that products are added up in pairs. */
typedef struct
{
  gint64 *first;
  guint *pairs;
  gint16 *weights; /* 2 * max_pairs for each result */
  guint max_pairs, precision;
} Taps;

typedef struct
{
  const GTorchResample *geometry;
  Taps across, along; /* columns and rows */
  const guint8 *x;
  guint8 *y;
  gint64 n_beside; /* how many images have their elements beside each other, as channels */
  gint failed;     /* the allocation of memory has failed; atomic */
} Job;

static void
taps_clear (Taps *self)
{
  g_free (self->first);
  g_free (self->pairs);
  g_free (self->weights);
}

/* Finds the greatest precision in which all weights have 16 bits. */
static guint
find_precision (const gdouble *weights, gint64 n)
{
  gdouble most = 0;
  guint precision = 0;
  gint64 i;

  for (i = 0; i < n; i++)
    most = MAX (most, weights[i]);
  while (precision < MAX_PRECISION && (gint) (0.5 + most * (1 << (precision + 1))) < 1 << 15)
    precision++;
  return precision;
}

static gboolean
taps_init (Taps *self, const GTorchResample *geometry, guint d, GError **error)
{
  const gint64 n_out = geometry->out[d];
  const guint most = gtorch_resample_max_taps (geometry, d);
  g_autofree gdouble *weights = gtorch_scratch_new0 (n_out, most * sizeof (gdouble), error);
  gint64 o;
  guint k;

  self->max_pairs = (most + 1) / 2;
  self->first = weights != NULL ? gtorch_scratch_new (n_out, sizeof (gint64), error) : NULL;
  self->pairs = self->first != NULL ? gtorch_scratch_new (n_out, sizeof (guint), error) : NULL;
  self->weights = self->pairs != NULL
                      ? gtorch_scratch_new0 (n_out, 2 * self->max_pairs * sizeof (gint16), error)
                      : NULL;
  if (self->weights == NULL)
    return FALSE;
  for (o = 0; o < n_out; o++)
    self->pairs[o] =
        (gtorch_resample_taps (geometry, d, FALSE, o, &self->first[o], weights + o * most) + 1) / 2;
  self->precision = find_precision (weights, n_out * most);
  for (o = 0; o < n_out; o++)
    for (k = 0; k < most; k++)
      self->weights[o * 2 * self->max_pairs + k] =
          (gint16) round (weights[o * most + k] * (1 << self->precision));
  return TRUE;
}

static inline guint8
to_byte (gint sum, guint precision)
{
  return (guint8) CLAMP (sum >> precision, 0, 255);
}

#ifdef __SSE2__
/* Transposes eight rows of eight bytes: out has two columns in each item. */
static inline void
transpose_eight (const __m128i *in, __m128i *out)
{
  __m128i pairs[4], fours[4];
  guint r;

  for (r = 0; r < 4; r++) /* rows 2 r and 2 r + 1 */
    pairs[r] = _mm_unpacklo_epi8 (in[2 * r], in[2 * r + 1]);
  for (r = 0; r < 2; r++) /* four rows, the first and the second four columns */
    {
      fours[2 * r] = _mm_unpacklo_epi16 (pairs[2 * r], pairs[2 * r + 1]);
      fours[2 * r + 1] = _mm_unpackhi_epi16 (pairs[2 * r], pairs[2 * r + 1]);
    }
  for (r = 0; r < 2; r++)
    {
      out[2 * r] = _mm_unpacklo_epi32 (fours[r], fours[2 + r]);
      out[2 * r + 1] = _mm_unpackhi_epi32 (fours[r], fours[2 + r]);
    }
}

static inline __m128i
load_pair (const gint16 *weights)
{
  gint32 both;

  memcpy (&both, weights, sizeof both);
  return _mm_set1_epi32 (both);
}
#endif

/* --- along rows --- */

/* Gets ROWS rows as columns of 16-bit numbers, with `more` of zeros behind the last one, which may belong to
 * the second element of a pair. */
static void
turn_rows (const guint8 *const *rows, gint64 n, gint64 more, gint16 *columns)
{
  gint64 j = 0;
  guint r;

#ifdef __SSE2__
  for (; j + 8 <= n; j += 8)
    {
      const __m128i zero = _mm_setzero_si128 ();
      __m128i in[ROWS], out[4];

      for (r = 0; r < ROWS; r++)
        in[r] = _mm_loadl_epi64 ((const __m128i *) (rows[r] + j));
      transpose_eight (in, out);
      for (r = 0; r < 4; r++)
        {
          __m128i *to = (__m128i *) (columns + (j + 2 * r) * ROWS);

          _mm_storeu_si128 (to, _mm_unpacklo_epi8 (out[r], zero));
          _mm_storeu_si128 (to + 1, _mm_unpackhi_epi8 (out[r], zero));
        }
    }
#endif
  for (; j < n; j++)
    for (r = 0; r < ROWS; r++)
      columns[j * ROWS + r] = rows[r][j];
  memset (columns + n * ROWS, 0, more * ROWS * sizeof (gint16));
}

/* The bytes of a result of ROWS rows; step: between two elements of a row. */
static inline void
sum_columns (const gint16 *columns, gint64 step, const gint16 *weights, guint n_pairs,
             guint precision, guint8 *to)
{
  guint k;
#ifdef __SSE2__
  const __m128i half = _mm_set1_epi32 (1 << (precision - 1));
  __m128i low = half, high = half, words;

  for (k = 0; k < n_pairs; k++, columns += 2 * step, weights += 2)
    {
      const __m128i first = _mm_loadu_si128 ((const __m128i *) columns);
      const __m128i second = _mm_loadu_si128 ((const __m128i *) (columns + step));
      const __m128i factors = load_pair (weights);

      low = _mm_add_epi32 (low, _mm_madd_epi16 (_mm_unpacklo_epi16 (first, second), factors));
      high = _mm_add_epi32 (high, _mm_madd_epi16 (_mm_unpackhi_epi16 (first, second), factors));
    }
  words = _mm_packs_epi32 (_mm_srai_epi32 (low, precision), _mm_srai_epi32 (high, precision));
  _mm_storel_epi64 ((__m128i *) to, _mm_packus_epi16 (words, words));
#else
  guint r;

  for (r = 0; r < ROWS; r++)
    {
      gint sum = 1 << (precision - 1);

      for (k = 0; k < 2 * n_pairs; k++)
        sum += weights[k] * columns[k * step + r];
      to[r] = to_byte (sum, precision);
    }
#endif
}

/* bytes: n columns of ROWS rows, of which n_rows are wanted */
static void
turn_back (const guint8 *bytes, gint64 n, guint8 *y, gint64 n_rows)
{
  gint64 j = 0, r;

#ifdef __SSE2__
  for (; j + 8 <= n && n_rows == ROWS; j += 8)
    {
      __m128i in[8], out[4];

      for (r = 0; r < 8; r++)
        in[r] = _mm_loadl_epi64 ((const __m128i *) (bytes + (j + r) * ROWS));
      transpose_eight (in, out);
      for (r = 0; r < 4; r++)
        {
          _mm_storel_epi64 ((__m128i *) (y + 2 * r * n + j), out[r]);
          _mm_storel_epi64 ((__m128i *) (y + (2 * r + 1) * n + j),
                            _mm_unpackhi_epi64 (out[r], out[r]));
        }
    }
#endif
  for (r = 0; r < n_rows; r++)
    for (gint64 i = j; i < n; i++)
      y[r * n + i] = bytes[i * ROWS + r];
}

/* Memory of a thread */
typedef struct
{
  gint16 *columns; /* ROWS rows, turned */
  guint8 *bytes;   /* ROWS results of each column */
  guint8 *between; /* what is resampled along rows */
} Scratch;

/* Resamples the rows of an image with n_channels elements beside each other, and takes them apart. */
static void
resample_rows (const Job *job, const guint8 *x, const Scratch *scratch)
{
  const GTorchResample *g = job->geometry;
  const Taps *taps = &job->across;
  const gint64 n_channels = job->n_beside, n_in = g->in[2] * n_channels, n_out = g->out[2];
  gint64 a, c, j, r;

  for (a = 0; a < g->in[1]; a += ROWS)
    {
      const gint64 n_rows = MIN (ROWS, g->in[1] - a);
      const guint8 *rows[ROWS];

      for (r = 0; r < ROWS; r++)
        rows[r] = x + (a + MIN (r, n_rows - 1)) * n_in;
      turn_rows (rows, n_in, n_channels, scratch->columns);
      for (c = 0; c < n_channels; c++)
        {
          for (j = 0; j < n_out; j++)
            sum_columns (scratch->columns + (taps->first[j] * n_channels + c) * ROWS,
                         n_channels * ROWS, taps->weights + j * 2 * taps->max_pairs, taps->pairs[j],
                         taps->precision, scratch->bytes + j * ROWS);
          turn_back (scratch->bytes, n_out, scratch->between + (c * g->in[1] + a) * n_out, n_rows);
        }
    }
}

/* --- along columns --- */

static void
resample_columns (const Taps *taps, const guint8 *x, guint8 *y, gint64 n_in, gint64 n_out,
                  gint64 width)
{
  const guint precision = taps->precision;
  gint64 o, i;
  guint k;

  for (o = 0; o < n_out; o++, y += width)
    {
      const gint16 *weights = taps->weights + o * 2 * taps->max_pairs;
      const guint8 *from = x + taps->first[o] * width;
      const guint n_pairs = taps->pairs[o];
      /* the second row of the last pair may lie behind the last row, where its weight is 0 */
      const gint64 n_rows = n_in - taps->first[o];

      i = 0;
#ifdef __SSE2__
      for (; i + 16 <= width; i += 16)
        {
          const __m128i zero = _mm_setzero_si128 ();
          __m128i sums[4], words[2];

          for (k = 0; k < 4; k++)
            sums[k] = _mm_set1_epi32 (1 << (precision - 1));
          for (k = 0; k < n_pairs; k++)
            {
              const guint8 *row = from + 2 * k * width + i;
              const __m128i factors = load_pair (weights + 2 * k);
              const __m128i first = _mm_loadu_si128 ((const __m128i *) row);
              const __m128i second =
                  2 * k + 1 < n_rows ? _mm_loadu_si128 ((const __m128i *) (row + width)) : zero;
              const __m128i low = _mm_unpacklo_epi8 (first, second);
              const __m128i high = _mm_unpackhi_epi8 (first, second);

              sums[0] =
                  _mm_add_epi32 (sums[0], _mm_madd_epi16 (_mm_unpacklo_epi8 (low, zero), factors));
              sums[1] =
                  _mm_add_epi32 (sums[1], _mm_madd_epi16 (_mm_unpackhi_epi8 (low, zero), factors));
              sums[2] =
                  _mm_add_epi32 (sums[2], _mm_madd_epi16 (_mm_unpacklo_epi8 (high, zero), factors));
              sums[3] =
                  _mm_add_epi32 (sums[3], _mm_madd_epi16 (_mm_unpackhi_epi8 (high, zero), factors));
            }
          for (k = 0; k < 4; k++)
            sums[k] = _mm_srai_epi32 (sums[k], precision);
          words[0] = _mm_packs_epi32 (sums[0], sums[1]);
          words[1] = _mm_packs_epi32 (sums[2], sums[3]);
          _mm_storeu_si128 ((__m128i *) (y + i), _mm_packus_epi16 (words[0], words[1]));
        }
#endif
      for (; i < width; i++)
        {
          gint sum = 1 << (precision - 1);

          for (k = 0; k < 2 * n_pairs && k < n_rows; k++)
            sum += weights[k] * from[k * width + i];
          y[i] = to_byte (sum, precision);
        }
    }
}

/* --- images --- */

static void
resample_images (gint64 begin, gint64 end, gpointer user_data)
{
  Job *job = user_data;
  const GTorchResample *g = job->geometry;
  const gint64 n = job->n_beside;
  g_autofree gint16 *columns = gtorch_scratch_new (g->in[2] + 1, n * ROWS * sizeof (gint16), NULL);
  g_autofree guint8 *bytes = gtorch_scratch_new (g->out[2], ROWS, NULL);
  g_autofree guint8 *between = gtorch_scratch_new (g->in[1], n * g->out[2], NULL);
  const Scratch scratch = { columns, bytes, between };
  gint64 c;

  if (columns == NULL || bytes == NULL || between == NULL)
    {
      g_atomic_int_set (&job->failed, TRUE);
      return;
    }
  for (; begin < end; begin++)
    {
      resample_rows (job, job->x + begin * n * g->n_in, &scratch);
      for (c = 0; c < n; c++)
        resample_columns (&job->along, between + c * g->in[1] * g->out[2],
                          job->y + (begin * n + c) * g->n_out, g->in[1], g->out[1], g->out[2]);
    }
}

gboolean
gtorch_cpu_resample_bytes (const GTorchResample *geometry, const guint8 *x, guint8 *y, gint64 n,
                           gint64 n_beside, GError **error)
{
  Job job = { .geometry = geometry, .x = x, .y = y, .n_beside = n_beside };
  gboolean result =
      taps_init (&job.across, geometry, 2, error) && taps_init (&job.along, geometry, 1, error);

  if (result)
    gtorch_parallel_for (n / n_beside, 1 + GTORCH_CPU_GRAIN / (geometry->n_in + geometry->n_out),
                         resample_images, &job);
  taps_clear (&job.across);
  taps_clear (&job.along);
  if (!job.failed)
    return result;
  gtorch_scratch_set_error (geometry->in[1], geometry->out[2], error);
  return FALSE;
}
