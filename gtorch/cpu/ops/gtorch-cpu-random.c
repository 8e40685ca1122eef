/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Random numbers. They are generated in chunks of consecutive elements, in C order of the result,
 * whatever its layout and the number of threads. A chunk is always computed as a whole, so an element
 * always takes the same code path. */

#include "config.h"

#include <float.h>
#include <glib/gi18n-lib.h>
#include <math.h>
#include <string.h>

#include "cpu/gtorch-cpu-cast.h"
#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-philox.h"
#include "gtorch-ops-private.h"

#define CHUNK GTORCH_PHILOX_CHUNK

typedef enum
{
  KIND_UNIFORM,
  KIND_NORMAL,
  KIND_EXPONENTIAL,
  KIND_INTEGER,
} Kind;

typedef struct _Fill Fill;
struct _Fill
{
  const GTorchOpCall *call;
  Kind kind;
  gdouble scale, shift; /* uniform: the width of the interval, and its start */
  gdouble end;          /* uniform: the excluded end, or INFINITY */
  gfloat
      narrow_end; /* uniform: the smallest float32 that is rounded to `end` in the output's dtype */
  gint64 low;
  guint64 range;
  GTorchImpl *output;
  /* Uses the numbers [begin, begin + n); NULL if they are the result themselves. */
  void (*use) (const Fill *fill, gint64 begin, gint64 n, const gdouble *f64, const gfloat *f32);
  GTorchImpl *input;
  GTorchImpl *mask;
  gint is_bad; /* atomic */
};

static gboolean
is_double (const GTorchImpl *impl)
{
  return impl->dtype == GTORCH_DTYPE_FLOAT64;
}

/* Copies and converts between n consecutive elements of a tensor, in C order, and an array. */
static void
transfer (GTorchImpl *impl, gint64 begin, gint64 n, gpointer array, guint dtype, gboolean store)
{
  const gint64 size = gtorch_dtype_size (impl->dtype), array_size = gtorch_dtype_size (dtype);
  GTorchCast cast =
      store ? gtorch_cpu_cast (impl->dtype, dtype) : gtorch_cpu_cast (dtype, impl->dtype);
  gchar *data = gtorch_impl_data (impl), *other = array;

  while (n > 0)
    {
      gint64 rest = begin, offset = 0, run = n, stride = 1;
      guint i = impl->n_dims;

      if (impl->is_contiguous)
        offset = begin;
      else
        {
          stride = impl->strides[i - 1];
          run = MIN (n, impl->shape[i - 1] - begin % impl->shape[i - 1]);
          while (i-- > 0)
            {
              offset += rest % impl->shape[i] * impl->strides[i];
              rest /= impl->shape[i];
            }
        }
      if (store)
        cast (data + offset * size, stride * size, other, array_size, run);
      else
        cast (other, array_size, data + offset * size, stride * size, run);
      other += run * array_size;
      begin += run;
      n -= run;
    }
}

gfloat
gtorch_random_end (guint dtype, gdouble high)
{
  GTorchCast round = gtorch_cpu_cast (dtype, GTORCH_DTYPE_FLOAT32);
  GTorchCast widen = gtorch_cpu_cast (GTORCH_DTYPE_FLOAT32, dtype);
  gfloat end = (gfloat) high, below, between;
  guint16 bits, before, nearest;

  if (gtorch_dtype_size (dtype) != 2 || !isfinite (high))
    return end;
  gtorch_cpu_cast (dtype, GTORCH_DTYPE_FLOAT64) ((char *) &bits, 0, (const char *) &high, 0, 1);
  widen ((char *) &end, 0, (const char *) &bits, 0, 1);
  /* the number before `end`: numbers of one sign are in the order of their bits */
  before = end > 0 ? bits - 1 : (end == 0 ? 0x8001 : bits + 1);
  widen ((char *) &below, 0, (const char *) &before, 0, 1);
  between = (below + end) / 2;
  round ((char *) &nearest, 0, (const char *) &between, 0, 1);
  return nearest == bits || (end == 0 && nearest == 0x8000) ? between : nextafterf (between, end);
}

gdouble
gtorch_random_least (guint dtype)
{
  const GTorchDTypeInfo *info = &gtorch_dtype_infos[dtype];
  const gdouble normal =
      dtype == GTORCH_DTYPE_FLOAT16 ? 0x1p-14 : (info->size < 8 ? FLT_MIN : DBL_MIN);

  return normal * info->eps;
}

static gdouble
positive_f64 (const guint32 *words)
{
  return ((gdouble) ((((guint64) words[1] << 32) | words[0]) >> 11) + 1.0) * 0x1p-53;
}

static void
fill_f64 (const Fill *fill, const guint32 *words, gdouble *values)
{
  gint64 i;

  if (fill->kind == KIND_UNIFORM)
    {
      GTORCH_ISA_CALL (gtorch_philox_uniform_f64) (words, values);
      if (fill->scale != 1 || fill->shift != 0)
        for (i = 0; i < CHUNK; i++)
          {
            values[i] = values[i] * fill->scale + fill->shift;
            if (values[i] >= fill->end)
              values[i] = fill->shift;
          }
    }
  else if (fill->kind == KIND_EXPONENTIAL)
    for (i = 0; i < CHUNK; i++)
      values[i] = CLAMP (fill->scale * MAX (-log (positive_f64 (words + 2 * i)), 0x1p-54),
                         gtorch_random_least (GTORCH_DTYPE_FLOAT64), DBL_MAX);
  else
    for (i = 0; i < CHUNK; i += 2)
      {
        gdouble radius = sqrt (-2 * log (positive_f64 (words + 2 * i)));
        gdouble angle = 2 * G_PI * (positive_f64 (words + 2 * i + 2) - 0x1p-53);

        values[i] = radius * cos (angle) * fill->scale + fill->shift;
        values[i + 1] = radius * sin (angle) * fill->scale + fill->shift;
      }
}

static void
fill_f32 (const Fill *fill, const guint32 *words, gfloat *values)
{
  const guint dtype = fill->output->dtype;
  guint bits = 24;
  gint64 i;

  if (fill->kind == KIND_UNIFORM)
    {
      /* A result of a 16-bit dtype gets no more random bits than its significand has, since 1 - 2^-24
       * would be rounded to 1. Numbers that are compared with a probability keep all bits. */
      if (fill->use == NULL && gtorch_dtype_size (dtype) == 2
          && gtorch_dtype_kind (dtype) == GTORCH_KIND_FLOAT)
        bits = dtype == GTORCH_DTYPE_FLOAT16 ? 11 : 8;
      GTORCH_ISA_CALL (gtorch_philox_uniform_f32) (words, bits, values);
      if (fill->scale == 1 && fill->shift == 0)
        return;
      GTORCH_ISA_CALL (gtorch_philox_affine_f32) (values, fill->scale, fill->shift);
      for (i = 0; i < CHUNK; i++) /* rounding may reach the end, which is excluded */
        if (values[i] >= fill->narrow_end)
          values[i] = fill->shift;
      return;
    }
  if (fill->kind == KIND_EXPONENTIAL)
    GTORCH_ISA_CALL (gtorch_philox_exponential_f32) (words, values);
  else
    GTORCH_ISA_CALL (gtorch_philox_normal_f32) (words, values);
  if (fill->scale != 1 || fill->shift != 0)
    GTORCH_ISA_CALL (gtorch_philox_affine_f32) (values, fill->scale, fill->shift);
  if (fill->kind == KIND_EXPONENTIAL)
    {
      const gfloat least = gtorch_random_least (dtype), most = gtorch_dtype_infos[dtype].max;

      for (i = 0; i < CHUNK; i++)
        values[i] = CLAMP (values[i], least, most);
    }
}

static void
fill_chunks (gint64 first, gint64 last, gpointer data)
{
  Fill *fill = data;
  const GTorchOpCall *call = fill->call;
  const gboolean wide = fill->kind == KIND_INTEGER || is_double (fill->output);
  const guint per_block = wide ? 2 : 4;
  guint32 words[2 * CHUNK];
  union
  {
    gdouble f64[CHUNK];
    gfloat f32[CHUNK];
    gint64 i64[CHUNK];
  } values;
  gint64 chunk, i;

  for (chunk = first; chunk < last; chunk++)
    {
      gint64 begin = chunk * CHUNK;
      gint64 n = MIN (CHUNK, fill->output->numel - begin);
      guint dtype = GTORCH_DTYPE_INT64;

      GTORCH_ISA_CALL (gtorch_philox_words)
      (call->seed, call->counter, begin / per_block, CHUNK / per_block, words);
      if (fill->kind == KIND_INTEGER)
        for (i = 0; i < CHUNK; i++)
          {
            guint64 word = ((guint64) words[2 * i + 1] << 32) | words[2 * i];

            values.i64[i] = (gint64) ((guint64) fill->low
                                      + (guint64) (((unsigned __int128) word * fill->range) >> 64));
          }
      else if (wide)
        {
          fill_f64 (fill, words, values.f64);
          dtype = GTORCH_DTYPE_FLOAT64;
        }
      else
        {
          fill_f32 (fill, words, values.f32);
          dtype = GTORCH_DTYPE_FLOAT32;
        }
      if (fill->use != NULL)
        fill->use (fill, begin, n, wide ? values.f64 : NULL, wide ? NULL : values.f32);
      else
        transfer (fill->output, begin, n, &values, dtype, TRUE);
    }
}

static gboolean
run_fill (Fill *fill, const GTorchOpCall *call)
{
  fill->call = call;
  fill->output = call->outputs[0];
  gtorch_parallel_for ((fill->output->numel + CHUNK - 1) / CHUNK, 8, fill_chunks, fill);
  return TRUE;
}

gboolean
gtorch_cpu_rand (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  Fill fill = { .kind = KIND_UNIFORM, .scale = 1 };

  return run_fill (&fill, call);
}

gboolean
gtorch_cpu_randn (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  Fill fill = { .kind = KIND_NORMAL, .scale = 1 };

  return run_fill (&fill, call);
}

gboolean
gtorch_cpu_randint (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  Fill fill = {
    .kind = KIND_INTEGER,
    .low = call->attrs[0].i,
    .range = (guint64) call->attrs[1].i - (guint64) call->attrs[0].i,
  };

  return run_fill (&fill, call);
}

gboolean
gtorch_cpu_uniform (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  const gdouble low = call->attrs[0].d, high = call->attrs[1].d;
  const gdouble end = low < high ? high : INFINITY;
  Fill fill = {
    .kind = KIND_UNIFORM,
    .scale = high - low,
    .shift = low,
    .end = end,
    .narrow_end = gtorch_random_end (call->outputs[0]->dtype, end),
  };

  return run_fill (&fill, call);
}

gboolean
gtorch_cpu_normal (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  Fill fill = { .kind = KIND_NORMAL, .scale = call->attrs[1].d, .shift = call->attrs[0].d };

  return run_fill (&fill, call);
}

gboolean
gtorch_cpu_exponential (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  Fill fill = { .kind = KIND_EXPONENTIAL, .scale = 1 / call->attrs[0].d };

  return run_fill (&fill, call);
}

static inline gdouble
number_at (const gdouble *f64, const gfloat *f32, gint64 i)
{
  return f64 != NULL ? f64[i] : f32[i];
}

static void
use_below_elements (const Fill *fill, gint64 begin, gint64 n, const gdouble *f64, const gfloat *f32)
{
  gdouble p[CHUNK];
  guint8 result[CHUNK];
  gint64 i;

  transfer (fill->input, begin, n, p, GTORCH_DTYPE_FLOAT64, FALSE);
  for (i = 0; i < n; i++)
    {
      if (!(p[i] >= 0 && p[i] <= 1))
        g_atomic_int_set ((gint *) &fill->is_bad, TRUE);
      result[i] = number_at (f64, f32, i) < p[i];
    }
  transfer (fill->output, begin, n, result, GTORCH_DTYPE_BOOL, TRUE);
}

gboolean
gtorch_cpu_bernoulli (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  Fill fill = {
    .kind = KIND_UNIFORM,
    .scale = 1,
    .use = use_below_elements,
    .input = call->inputs[0],
  };

  run_fill (&fill, call);
  if (fill.is_bad)
    gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                       _ ("an element of the tensor of shape %s is not a probability from 0 to 1"),
                       gtorch_impl_shape_str (call->inputs[0]));
  return !fill.is_bad;
}

static void
use_below (const Fill *fill, gint64 begin, gint64 n, const gdouble *f64, const gfloat *f32)
{
  const gdouble p = fill->call->attrs[0].d;
  guint8 result[CHUNK];
  gint64 i;

  for (i = 0; i < n; i++)
    result[i] = number_at (f64, f32, i) < p;
  transfer (fill->output, begin, n, result, GTORCH_DTYPE_BOOL, TRUE);
}

gboolean
gtorch_cpu_bernoulli_p (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  Fill fill = { .kind = KIND_UNIFORM, .scale = 1, .use = use_below };

  return run_fill (&fill, call);
}

static void
use_dropout (const Fill *fill, gint64 begin, gint64 n, const gdouble *f64, const gfloat *f32)
{
  const gdouble p = fill->call->attrs[0].d, scale = fill->call->attrs[1].d;
  union
  {
    gdouble f64[CHUNK];
    gfloat f32[CHUNK];
  } values;
  guint32 bits[CHUNK / 32] = { 0 };
  guint8 keep[CHUNK];
  gint64 i;

  if (f64 != NULL)
    {
      transfer (fill->input, begin, n, values.f64, GTORCH_DTYPE_FLOAT64, FALSE);
      for (i = 0; i < n; i++)
        {
          keep[i] = f64[i] >= p;
          values.f64[i] = keep[i] ? values.f64[i] * scale : 0;
        }
    }
  else
    {
      transfer (fill->input, begin, n, values.f32, GTORCH_DTYPE_FLOAT32, FALSE);
      for (i = 0; i < n; i++)
        {
          keep[i] = f32[i] >= p;
          values.f32[i] = keep[i] ? values.f32[i] * (gfloat) scale : 0;
        }
    }
  for (i = 0; i < n; i++)
    bits[i / 128 * 4 + i % 4] |= (guint32) keep[i] << i / 4 % 32;
  transfer (fill->output, begin, n, &values,
            f64 != NULL ? GTORCH_DTYPE_FLOAT64 : GTORCH_DTYPE_FLOAT32, TRUE);
  memcpy ((guint32 *) gtorch_impl_data (fill->mask) + begin / 32, bits,
          MIN (CHUNK / 32, fill->mask->numel - begin / 32) * sizeof (guint32));
}

gboolean
gtorch_cpu_native_dropout (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  Fill fill = {
    .kind = KIND_UNIFORM,
    .scale = 1,
    .use = use_dropout,
    .input = call->inputs[0],
    .mask = call->outputs[1],
  };

  return run_fill (&fill, call);
}
