/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Resampling, one dimension after the other. Images are views of [outer, n, inner] in each pass; the gradient
 * is computed by the passes in the opposite order, each transposed. */

#include "config.h"

#include <string.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-pack.h"
#include "device/gtorch-scratch-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

/* The elements that the results along a dimension are made of. */
typedef struct
{
  gint64 *first;
  guint *counts;
  gdouble *weights; /* max_taps for each result */
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

static void
forward_pass (guint dtype, const Taps *taps, const char *x, char *y, gint64 outer, gint64 n_in,
              gint64 n_out, gint64 inner)
{
  gint64 a, j, i;
  guint k;

  if (inner == 1 && taps->max_taps > 1
      && (dtype == GTORCH_DTYPE_FLOAT32 || dtype == GTORCH_DTYPE_FLOAT64))
    {
      if (dtype == GTORCH_DTYPE_FLOAT32)
        FORWARD_ROWS (gfloat)
      else
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
resample_image (const Resample *self, const char *x, char *y, char *const *between)
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
        forward_pass (self->dtype, &self->taps[d], x, to, outer, g->in[d], g->out[d], inner);
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
  char *between[2];

  if (first != NULL && self->geometry.n > 2)
    second = gtorch_scratch_new (n_between, size, NULL);
  if (first == NULL || (self->geometry.n > 2 && second == NULL))
    {
      g_atomic_int_set (&self->failed, TRUE);
      return;
    }
  between[0] = first;
  between[1] = second;
  for (; begin < end; begin++)
    resample_image (self, self->x + begin * n_x * size, self->y + begin * n_y * size, between);
}

static void
taps_clear (Taps *taps)
{
  for (guint d = 0; d < 3; d++)
    {
      g_free (taps[d].first);
      g_free (taps[d].counts);
      g_free (taps[d].weights);
    }
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
    }
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
