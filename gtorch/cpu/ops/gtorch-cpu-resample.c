/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Resampling, one dimension after the other. Images are views of [outer, n, inner] in each pass; the gradient
 * is computed by the passes in the opposite order, each transposed. */

#include "config.h"

#include <string.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-pack.h"
#include "cpu/ops/gtorch-cpu-resample.h"
#include "device/gtorch-scratch-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

/* The elements that the results along a dimension are made of. */
typedef struct
{
  gint64 *first;
  guint *counts;
  gdouble *weights; /* max_taps for each result */
  gfloat *narrow;   /* the same in float32, where that is the dtype and results have several taps */
  guint max_taps;
} Taps;

typedef struct
{
  GTorchResample geometry;
  Taps taps[3];
  guint dtype;
  gboolean backward;
  const char *x;
  char *y;
  gint64 n_between; /* the size of what is between two passes */
  gint failed;      /* the allocation of that has failed; atomic */
} Resample;

#define FORWARD_PASS(T)                                                      \
  for (a = 0; a < outer; a++)                                                \
    for (j = 0; j < n_out; j++)                                              \
      {                                                                      \
        const T *from = (const T *) x + (a * n_in + taps->first[j]) * inner; \
        T *to = (T *) y + (a * n_out + j) * inner;                           \
        const gdouble *weights = taps->weights + j * taps->max_taps;         \
                                                                             \
        if (taps->counts[j] == 1 && weights[0] == 1)                         \
          {                                                                  \
            memcpy (to, from, inner * sizeof (T));                           \
            continue;                                                        \
          }                                                                  \
        memset (to, 0, inner * sizeof (T));                                  \
        for (k = 0; k < taps->counts[j]; k++, from += inner)                 \
          for (i = 0; i < inner; i++)                                        \
            to[i] += (T) weights[k] * from[i];                               \
      }

/* Along rows: a sum stays in a register, and the weights of a result serve several rows. */
#define ROWS 4
#define FORWARD_ROWS(T)                                                \
  for (a = 0; a < outer; a += ROWS)                                    \
    {                                                                  \
      const gint64 n_rows = MIN (ROWS, outer - a);                     \
                                                                       \
      for (j = 0; j < n_out; j++)                                      \
        {                                                              \
          const T *from = (const T *) x + a * n_in + taps->first[j];   \
          T *to = (T *) y + a * n_out + j;                             \
          const gdouble *weights = taps->weights + j * taps->max_taps; \
          T sums[ROWS] = { 0 };                                        \
                                                                       \
          if (n_rows == ROWS)                                          \
            for (k = 0; k < taps->counts[j]; k++)                      \
              for (i = 0; i < ROWS; i++)                               \
                sums[i] += (T) weights[k] * from[i * n_in + k];        \
          else                                                         \
            for (k = 0; k < taps->counts[j]; k++)                      \
              for (i = 0; i < n_rows; i++)                             \
                sums[i] += (T) weights[k] * from[i * n_in + k];        \
          for (i = 0; i < n_rows; i++)                                 \
            to[i * n_out] = sums[i];                                   \
        }                                                              \
    }

/* The same in float32 by vectors; sums are added up in the same order, so that the results are the same. */
#define ALONG 8 /* rows at a time: two vectors for a tap */
typedef gfloat Four __attribute__ ((vector_size (16), aligned (4), may_alias));

#define LOW(a, b)  __builtin_shufflevector (a, b, 0, 4, 1, 5)
#define HIGH(a, b) __builtin_shufflevector (a, b, 2, 6, 3, 7)

static inline void
transpose_four (Four *v)
{
  const Four a = LOW (v[0], v[2]), b = LOW (v[1], v[3]);
  const Four c = HIGH (v[0], v[2]), d = HIGH (v[1], v[3]);

  v[0] = LOW (a, b);
  v[1] = HIGH (a, b);
  v[2] = LOW (c, d);
  v[3] = HIGH (c, d);
}

/* Gets four rows, which behind the last one are that one again, as vectors of a column, two apart. */
static void
turn_rows (const gfloat *const *rows, gint64 n, Four *to)
{
  gint64 j;

  for (j = 0; j + 4 <= n; j += 4, to += 8)
    {
      Four v[4] = { *(const Four *) (rows[0] + j), *(const Four *) (rows[1] + j),
                    *(const Four *) (rows[2] + j), *(const Four *) (rows[3] + j) };

      transpose_four (v);
      to[0] = v[0];
      to[2] = v[1];
      to[4] = v[2];
      to[6] = v[3];
    }
  for (; j < n; j++, to += 2)
    *to = (Four){ rows[0][j], rows[1][j], rows[2][j], rows[3][j] };
}

/* block: ALONG rows of the input, transposed */
static void
sum_along_rows (const Taps *taps, const gfloat *x, gfloat *y, gint64 outer, gint64 n_in,
                gint64 n_out, Four *block)
{
  gint64 a, j, i;
  guint k;

  for (a = 0; a < outer; a += ALONG)
    {
      const gint64 n_rows = MIN (ALONG, outer - a);
      const gfloat *rows[ALONG];

      for (i = 0; i < ALONG; i++)
        rows[i] = x + (a + MIN (i, n_rows - 1)) * n_in;
      turn_rows (rows, n_in, block);
      turn_rows (rows + 4, n_in, block + 1);
      for (j = 0; j < n_out; j += 4)
        {
          const gint64 n_results = MIN (4, n_out - j);
          Four low[4] = { 0 }, high[4] = { 0 };
          gfloat *to = y + a * n_out + j;

          for (i = 0; i < n_results; i++)
            {
              const gfloat *weights = taps->narrow + (j + i) * taps->max_taps;
              const Four *from = block + 2 * taps->first[j + i];
              Four first = { 0 }, second = { 0 };

              for (k = 0; k < taps->counts[j + i]; k++, from += 2)
                {
                  first += weights[k] * from[0];
                  second += weights[k] * from[1];
                }
              low[i] = first;
              high[i] = second;
            }
          transpose_four (low);
          transpose_four (high);
          for (i = 0; i < n_rows; i++, to += n_out)
            {
              const Four *result = i < 4 ? &low[i] : &high[i - 4];

              if (n_results == 4)
                *(Four *) to = *result;
              else
                memcpy (to, result, n_results * sizeof (gfloat));
            }
        }
    }
}

static void
sum_across_rows (const Taps *taps, const gfloat *x, gfloat *y, gint64 outer, gint64 n_in,
                 gint64 n_out, gint64 inner)
{
  gint64 a, j, i;
  guint k;

  for (a = 0; a < outer; a++)
    for (j = 0; j < n_out; j++, y += inner)
      {
        const gfloat *from = x + (a * n_in + taps->first[j]) * inner;
        const gfloat *weights = taps->narrow + j * taps->max_taps;

        for (i = 0; i + 8 <= inner; i += 8)
          {
            Four first = { 0 }, second = { 0 };

            for (k = 0; k < taps->counts[j]; k++)
              {
                first += weights[k] * *(const Four *) (from + k * inner + i);
                second += weights[k] * *(const Four *) (from + k * inner + i + 4);
              }
            *(Four *) (y + i) = first;
            *(Four *) (y + i + 4) = second;
          }
        for (; i < inner; i++)
          {
            gfloat sum = 0;

            for (k = 0; k < taps->counts[j]; k++)
              sum += weights[k] * from[k * inner + i];
            y[i] = sum;
          }
      }
}

static void
forward_pass (guint dtype, const Taps *taps, const char *x, char *y, gint64 outer, gint64 n_in,
              gint64 n_out, gint64 inner, gpointer block)
{
  gint64 a, j, i;
  guint k;

  if (taps->narrow != NULL)
    {
      if (inner == 1)
        sum_along_rows (taps, (const gfloat *) x, (gfloat *) y, outer, n_in, n_out, block);
      else
        sum_across_rows (taps, (const gfloat *) x, (gfloat *) y, outer, n_in, n_out, inner);
      return;
    }
  if (inner == 1 && taps->max_taps > 1 && dtype == GTORCH_DTYPE_FLOAT64)
    {
      FORWARD_ROWS (gdouble)
      return;
    }
  switch (dtype)
    {
    case GTORCH_DTYPE_FLOAT32:
      FORWARD_PASS (gfloat)
      break;
    case GTORCH_DTYPE_FLOAT64:
      FORWARD_PASS (gdouble)
      break;
    case GTORCH_DTYPE_INT32:
      FORWARD_PASS (gint32)
      break;
    default:
      FORWARD_PASS (gint64)
    }
}

#define BACKWARD_PASS(T)                                             \
  for (a = 0; a < outer; a++)                                        \
    for (j = 0; j < n_out; j++)                                      \
      {                                                              \
        const T *from = (const T *) x + (a * n_out + j) * inner;     \
        T *to = (T *) y + (a * n_in + taps->first[j]) * inner;       \
        const gdouble *weights = taps->weights + j * taps->max_taps; \
                                                                     \
        for (k = 0; k < taps->counts[j]; k++, to += inner)           \
          for (i = 0; i < inner; i++)                                \
            to[i] += (T) weights[k] * from[i];                       \
      }

static void
backward_pass (guint dtype, const Taps *taps, const char *x, char *y, gint64 outer, gint64 n_in,
               gint64 n_out, gint64 inner)
{
  gint64 a, j, i;
  guint k;

  memset (y, 0, outer * n_in * inner * gtorch_dtype_size (dtype));
  if (dtype == GTORCH_DTYPE_FLOAT32)
    BACKWARD_PASS (gfloat)
  else
    BACKWARD_PASS (gdouble)
}

/* Resamples one image. The forward passes go from the last dimension to the first one. */
static void
resample_image (const Resample *self, const char *x, char *y, char *const *between, gpointer block)
{
  const GTorchResample *g = &self->geometry;
  guint pass, d, i;

  for (pass = 0; pass < g->n; pass++)
    {
      const gboolean is_last = pass + 1 == g->n;
      char *to = is_last ? y : between[pass % 2];
      gint64 outer = 1, inner = 1;

      d = self->backward ? 3 - g->n + pass : 2 - pass;
      for (i = 0; i < d; i++)
        outer *= g->in[i];
      for (i = d + 1; i < 3; i++)
        inner *= g->out[i];
      if (self->backward)
        backward_pass (self->dtype, &self->taps[d], x, to, outer, g->in[d], g->out[d], inner);
      else
        forward_pass (self->dtype, &self->taps[d], x, to, outer, g->in[d], g->out[d], inner, block);
      x = to;
    }
}

static void
resample_images (gint64 begin, gint64 end, gpointer user_data)
{
  Resample *self = user_data;
  const gsize size = gtorch_dtype_size (self->dtype);
  const gint64 n_x = self->backward ? self->geometry.n_out : self->geometry.n_in;
  const gint64 n_y = self->backward ? self->geometry.n_in : self->geometry.n_out;
  const gint64 n_between = self->geometry.n > 1 ? self->n_between : 1;
  g_autofree char *first = gtorch_scratch_new (n_between, size, NULL);
  g_autofree char *second = NULL;
  g_autofree char *block = NULL;
  gint64 n_block =
      0; /* a pass goes along rows, too, where the dimensions behind its own have one element */
  char *between[2];
  guint d;

  if (first != NULL && self->geometry.n > 2)
    second = gtorch_scratch_new (n_between, size, NULL);
  for (d = 0; d < 3; d++)
    if (self->taps[d].narrow != NULL)
      n_block = MAX (n_block, self->geometry.in[d]);
  if (n_block > 0)
    block = gtorch_scratch_new (n_block, ALONG * sizeof (gfloat), NULL);
  if (first == NULL || (self->geometry.n > 2 && second == NULL) || (n_block > 0 && block == NULL))
    {
      g_atomic_int_set (&self->failed, TRUE);
      return;
    }
  between[0] = first;
  between[1] = second;
  for (; begin < end; begin++)
    resample_image (self, self->x + begin * n_x * size, self->y + begin * n_y * size, between,
                    block);
}

static void
taps_clear (Taps *taps)
{
  for (guint d = 0; d < 3; d++)
    {
      g_free (taps[d].first);
      g_free (taps[d].counts);
      g_free (taps[d].weights);
      g_free (taps[d].narrow);
    }
}

static gboolean
narrow_weights (Taps *taps, gint64 n, GError **error)
{
  gint64 i;
  guint k;

  taps->narrow = gtorch_scratch_new0 (n, taps->max_taps * sizeof (gfloat), error);
  if (taps->narrow == NULL)
    return FALSE;
  for (i = 0; i < n; i++)
    for (k = 0; k < taps->counts[i]; k++)
      taps->narrow[i * taps->max_taps + k] = (gfloat) taps->weights[i * taps->max_taps + k];
  return TRUE;
}

static gboolean
taps_init (Taps *taps, const GTorchResample *g, guint dtype, GError **error)
{
  guint d;
  gint64 o;

  for (d = 3 - g->n; d < 3; d++)
    {
      Taps *one = &taps[d];

      one->max_taps = gtorch_resample_max_taps (g, d);
      one->first = gtorch_scratch_new (g->out[d], sizeof (gint64), error);
      one->counts =
          one->first != NULL ? gtorch_scratch_new (g->out[d], sizeof (guint), error) : NULL;
      one->weights = one->counts != NULL
                         ? gtorch_scratch_new (g->out[d], one->max_taps * sizeof (gdouble), error)
                         : NULL;
      if (one->weights == NULL)
        return FALSE;
      for (o = 0; o < g->out[d]; o++)
        one->counts[o] = gtorch_resample_taps (g, d, dtype != GTORCH_DTYPE_FLOAT64, o,
                                               &one->first[o], one->weights + o * one->max_taps);
      if (dtype == GTORCH_DTYPE_FLOAT32 && one->max_taps > 1
          && !narrow_weights (one, g->out[d], error))
        return FALSE;
    }
  return TRUE;
}

/* Whether the channels of images [N, C, H, W] have their elements beside each other. */
static gboolean
are_beside (const GTorchImpl *x)
{
  const gint64 channels = x->shape[1], height = x->shape[2], width = x->shape[3];

  return channels > 1 && channels <= 4 && x->strides[1] == 1 && x->strides[3] == channels
         && x->strides[2] == width * channels
         && (x->shape[0] == 1 || x->strides[0] == height * width * channels);
}

static gboolean
run_bytes (GTorchOpCall *call, const GTorchResample *geometry, GError **error)
{
  GTorchImpl *input = call->inputs[0], *output = call->outputs[0];
  const gboolean is_beside = are_beside (input);
  g_autoptr (GTorchImpl) x =
      is_beside ? gtorch_impl_ref (input) : gtorch_cpu_pack (input, GTORCH_DTYPE_UINT8, error);
  g_autoptr (GTorchImpl) y =
      x != NULL ? gtorch_cpu_pack_output (output, GTORCH_DTYPE_UINT8, error) : NULL;

  if (y == NULL
      || !gtorch_cpu_resample_bytes (geometry, gtorch_impl_data (x), gtorch_impl_data (y),
                                     output->numel / geometry->n_out,
                                     is_beside ? input->shape[1] : 1, error))
    return FALSE;
  gtorch_cpu_unpack (y, output);
  return TRUE;
}

static gboolean
run (GTorchOpCall *call, gboolean backward, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  Resample self = { .dtype = gtorch_dtype_infos[call->compute].compute, .backward = backward };
  const GTorchResample *g = &self.geometry;
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  gint64 later = 0;
  gboolean result;

  if (!gtorch_resample_init (&self.geometry, call, error))
    return FALSE;
  if (output->numel == 0)
    return TRUE;
  if (call->compute == GTORCH_DTYPE_UINT8 && g->method > GTORCH_RESAMPLER_NEAREST_EXACT)
    return run_bytes (call, g, error);
  x = gtorch_cpu_pack (call->inputs[0], self.dtype, error);
  y = x != NULL ? gtorch_cpu_pack_output (output, self.dtype, error) : NULL;
  if (y == NULL)
    return FALSE;
  self.x = gtorch_impl_data (x);
  self.y = gtorch_impl_data (y);
  result = !__builtin_mul_overflow (g->in[0] * g->in[1], g->out[2], &self.n_between)
           && !__builtin_mul_overflow (g->out[1] * g->out[2], g->in[0], &later);
  self.n_between = MAX (self.n_between, later);
  if (!result)
    gtorch_scratch_set_error (g->n_out, gtorch_dtype_size (self.dtype), error);
  result = result && taps_init (self.taps, g, self.dtype, error);
  if (result)
    gtorch_parallel_for (output->numel / (backward ? g->n_in : g->n_out),
                         1 + GTORCH_CPU_GRAIN / 2 / (g->n_in + g->n_out), resample_images, &self);
  if (self.failed)
    {
      gtorch_scratch_set_error (self.n_between, gtorch_dtype_size (self.dtype), error);
      result = FALSE;
    }
  taps_clear (self.taps);
  if (result)
    gtorch_cpu_unpack (y, output);
  return result;
}

gboolean
gtorch_cpu_resample (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run (call, FALSE, error);
}

gboolean
gtorch_cpu_resample_backward (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return run (call, TRUE, error);
}
