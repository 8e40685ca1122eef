/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <math.h>
#include <string.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-pack.h"
#include "cpu/ops/gtorch-cpu-narrow.h"
#include "cpu/ops/gtorch-cpu-rows.h"
#include "gtorch-ops-private.h"
#include "device/gtorch-scratch-private.h"

#define PART 64 /* rows per partial sum of the gradients of weight and bias */

typedef struct
{
  guint dtype;
  gsize size;
  gint64 rows, n;
  gdouble eps;
  const char *x, *g, *weight, *bias;
  char *y, *mean, *rstd, *sums; /* sums: [parts][2][n] */
} LayerNorm;

static void
norm_rows (gint64 begin, gint64 end, gpointer user_data)
{
  const LayerNorm *l = user_data;
  gint64 at = begin * (gint64) l->size;

  if (GTORCH_IS_NARROW (l->rows, l->n))
    GTORCH_ROWS_CALL (l->dtype, narrow_norm, (gconstpointer) (l->x + at * l->n),
                      (gconstpointer) l->weight, (gconstpointer) l->bias,
                      (gpointer) (l->y + at * l->n), (gpointer) (l->mean + at),
                      (gpointer) (l->rstd + at), end - begin, l->n, l->eps);
  else
    GTORCH_ROWS_CALL (l->dtype, layer_norm_rows, (gconstpointer) (l->x + at * l->n),
                      (gconstpointer) l->weight, (gconstpointer) l->bias,
                      (gpointer) (l->y + at * l->n), (gpointer) (l->mean + at),
                      (gpointer) (l->rstd + at), end - begin, l->n, l->eps);
}

static void
grad_parts (gint64 begin, gint64 end, gpointer user_data)
{
  const LayerNorm *l = user_data;

  for (; begin < end; begin++)
    {
      gint64 rows = MIN (PART, l->rows - begin * PART), at = begin * PART * (gint64) l->size;
      char *sums = l->sums + begin * 2 * l->n * (gint64) l->size;

      memset (sums, 0, 2 * l->n * l->size);
      if (GTORCH_IS_NARROW (l->rows, l->n))
        GTORCH_ROWS_CALL (l->dtype, narrow_norm_grad, (gconstpointer) (l->g + at * l->n),
                          (gconstpointer) (l->x + at * l->n), (gconstpointer) l->weight,
                          (gconstpointer) (l->mean + at), (gconstpointer) (l->rstd + at),
                          (gpointer) (l->y + at * l->n), (gpointer) sums,
                          (gpointer) (sums + l->n * l->size), rows, l->n);
      else
        GTORCH_ROWS_CALL (l->dtype, layer_norm_grad_rows, (gconstpointer) (l->g + at * l->n),
                          (gconstpointer) (l->x + at * l->n), (gconstpointer) l->weight,
                          (gconstpointer) (l->mean + at), (gconstpointer) (l->rstd + at),
                          (gpointer) (l->y + at * l->n), (gpointer) sums,
                          (gpointer) (sums + l->n * l->size), rows, l->n);
    }
}

gboolean
gtorch_cpu_native_layer_norm (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  guint dtype = gtorch_dtype_infos[call->compute].compute;
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) weight = NULL;
  g_autoptr (GTorchImpl) bias = NULL;
  GTorchImpl *out[3] = { NULL };
  LayerNorm l = { .dtype = dtype, .size = gtorch_dtype_size (dtype), .eps = call->attrs[1].d };
  gboolean ok = FALSE;
  guint i;

  if (call->outputs[1]->numel == 0)
    return TRUE;
  x = gtorch_cpu_pack (call->inputs[0], dtype, error);
  if (x == NULL
      || (call->inputs[1] != NULL
          && (weight = gtorch_cpu_pack (call->inputs[1], dtype, error)) == NULL)
      || (call->inputs[2] != NULL
          && (bias = gtorch_cpu_pack (call->inputs[2], dtype, error)) == NULL))
    return FALSE;
  for (i = 0; i < 3; i++)
    if ((out[i] = gtorch_cpu_pack_output (call->outputs[i], dtype, error)) == NULL)
      goto done;
  l.rows = out[1]->numel;
  l.n = x->numel / l.rows;
  l.x = gtorch_impl_data (x);
  l.weight = weight != NULL ? gtorch_impl_data (weight) : NULL;
  l.bias = bias != NULL ? gtorch_impl_data (bias) : NULL;
  l.y = gtorch_impl_data (out[0]);
  l.mean = gtorch_impl_data (out[1]);
  l.rstd = gtorch_impl_data (out[2]);
  gtorch_parallel_for (l.rows, 1 + GTORCH_CPU_GRAIN / 2 / MAX (l.n, 1), norm_rows, &l);
  for (i = 0; i < 3; i++)
    gtorch_cpu_unpack (out[i], call->outputs[i]);
  ok = TRUE;
done:
  gtorch_impl_clear (out, 3);
  return ok;
}

/* Adds the parts pairwise, then the sums pairwise, and so on: the fewest successive roundings. */
#define ADD_PARTS(T)                               \
  for (step = 1; step < n_parts; step *= 2)        \
    for (i = 0; i + step < n_parts; i += 2 * step) \
      for (j = 0; j < 2 * l.n; j++)                \
        ((T *) l.sums)[i * 2 * l.n + j] += ((const T *) l.sums)[(i + step) * 2 * l.n + j];

gboolean
gtorch_cpu_layer_norm_backward (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  guint dtype = gtorch_dtype_infos[call->compute].compute;
  GTorchImpl *packed[5] = { NULL }, *out[3] = { NULL };
  LayerNorm l = { .dtype = dtype, .size = gtorch_dtype_size (dtype) };
  g_autofree char *sums = NULL;
  gboolean ok = FALSE;
  gint64 n_parts, step, i, j;

  for (i = 0; i < 5; i++)
    if (call->inputs[i] != NULL
        && (packed[i] = gtorch_cpu_pack (call->inputs[i], dtype, error)) == NULL)
      goto done;
  for (i = 0; i < 3; i++)
    {
      if ((out[i] = gtorch_cpu_pack_output (call->outputs[i], dtype, error)) == NULL)
        goto done;
      memset (gtorch_impl_data (out[i]), 0, gtorch_impl_n_bytes (out[i]));
    }
  if (packed[1]->numel > 0)
    {
      l.rows = packed[3]->numel;
      l.n = packed[1]->numel / l.rows;
      n_parts = (l.rows + PART - 1) / PART;
      sums = l.sums = gtorch_scratch_new (n_parts * 2 * l.n, l.size, error);
      if (sums == NULL)
        goto done;
      l.g = gtorch_impl_data (packed[0]);
      l.x = gtorch_impl_data (packed[1]);
      l.weight = packed[2] != NULL ? gtorch_impl_data (packed[2]) : NULL;
      l.mean = gtorch_impl_data (packed[3]);
      l.rstd = gtorch_impl_data (packed[4]);
      l.y = gtorch_impl_data (out[0]);
      gtorch_parallel_for (n_parts, 1, grad_parts, &l);
      if (dtype == GTORCH_DTYPE_FLOAT32)
        ADD_PARTS (float)
      else
        ADD_PARTS (double)
      memcpy (gtorch_impl_data (out[1]), l.sums, l.n * l.size);
      memcpy (gtorch_impl_data (out[2]), l.sums + l.n * l.size, l.n * l.size);
    }
  for (i = 0; i < 3; i++)
    gtorch_cpu_unpack (out[i], call->outputs[i]);
  ok = TRUE;
done:
  gtorch_impl_clear (packed, 5);
  gtorch_impl_clear (out, 3);
  return ok;
}

/* --- groups of channels --- */

#define SHORT_CHANNEL 32 /* elements that are too few for a pass of their own */

typedef struct
{
  guint dtype;
  gsize size;
  gint64 n_groups, n_channels, n; /* groups; channels of a group; elements of a channel */
  gdouble eps;
  const char *x, *weight,
      *bias; /* the last two have a number for each element if channels are short */
  char *y;
} Groups;

static gdouble
number (const Groups *g, const char *numbers, gint64 i, gdouble other)
{
  if (numbers == NULL)
    return other;
  return g->dtype == GTORCH_DTYPE_FLOAT32 ? ((const gfloat *) numbers)[i]
                                          : ((const gdouble *) numbers)[i];
}

static void
norm_channels (const Groups *g, gint64 group, const char *x, char *y)
{
  const gint64 n = g->n_channels * g->n;
  gdouble spread, centre;
  gfloat moments[2];

  if (g->dtype == GTORCH_DTYPE_FLOAT32)
    {
      GTORCH_ISA_CALL (gtorch_moments_rows_f32)
      ((const gfloat *) x, &moments[0], &moments[1], 1, n);
      spread = moments[0];
      centre = moments[1];
    }
  else
    GTORCH_ISA_CALL (gtorch_moments_rows_f64) ((const gdouble *) x, &spread, &centre, 1, n);
  for (gint64 c = 0; c < g->n_channels; c++)
    {
      const gint64 channel = group * g->n_channels + c, at = c * g->n * (gint64) g->size;
      const gdouble scale =
          number (g, g->weight, channel, 1) / sqrt (spread / (gdouble) n + g->eps);

      GTORCH_ROWS_CALL (g->dtype, channel_scale, (gconstpointer) (x + at), (gpointer) (y + at), 1,
                        g->n, g->n, centre, scale, number (g, g->bias, channel, 0));
    }
}

static void
norm_groups (gint64 begin, gint64 end, gpointer user_data)
{
  const Groups *g = user_data;
  const gint64 n = g->n_channels * g->n, bytes = n * (gint64) g->size;

  for (; begin < end; begin++)
    {
      const gint64 group = begin % g->n_groups;
      gdouble ignored[2];

      if (g->n >= SHORT_CHANNEL)
        norm_channels (g, group, g->x + begin * bytes, g->y + begin * bytes);
      else
        GTORCH_ROWS_CALL (g->dtype, layer_norm_rows, (gconstpointer) (g->x + begin * bytes),
                          (gconstpointer) (g->weight != NULL ? g->weight + group * bytes : NULL),
                          (gconstpointer) (g->bias != NULL ? g->bias + group * bytes : NULL),
                          (gpointer) (g->y + begin * bytes), (gpointer) &ignored[0],
                          (gpointer) &ignored[1], 1, n, g->eps);
    }
}

/* Returns the numbers of the channels, repeated for each element if these are few. */
static GTorchImpl *
channel_numbers (GTorchImpl *of, guint dtype, gint64 n, GError **error)
{
  const gint64 shape[2] = { of->shape[0], n };
  g_autoptr (GTorchImpl) spread = NULL;

  if (n >= SHORT_CHANNEL)
    return gtorch_cpu_pack (of, dtype, error);
  spread = gtorch_impl_new_view (of, of->offset, shape, (gint64[]){ of->strides[0], 0 }, 2);
  return gtorch_cpu_pack (spread, dtype, error);
}

gboolean
gtorch_cpu_native_group_norm (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  const guint dtype = gtorch_dtype_infos[call->compute].compute;
  GTorchImpl *input = call->inputs[0], *output = call->outputs[0];
  Groups g = { .dtype = dtype,
               .size = gtorch_dtype_size (dtype),
               .n_groups = call->attrs[0].i,
               .n = 1,
               .eps = call->attrs[1].d };
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) weight = NULL;
  g_autoptr (GTorchImpl) bias = NULL;
  g_autoptr (GTorchImpl) y = NULL;

  if (output->numel == 0)
    return TRUE;
  g.n_channels = input->shape[1] / g.n_groups;
  for (guint i = 2; i < input->n_dims; i++)
    g.n *= input->shape[i];
  x = gtorch_cpu_pack (input, dtype, error);
  if (x == NULL
      || (call->inputs[1] != NULL
          && (weight = channel_numbers (call->inputs[1], dtype, g.n, error)) == NULL)
      || (call->inputs[2] != NULL
          && (bias = channel_numbers (call->inputs[2], dtype, g.n, error)) == NULL)
      || (y = gtorch_cpu_pack_output (output, dtype, error)) == NULL)
    return FALSE;
  g.x = gtorch_impl_data (x);
  g.y = gtorch_impl_data (y);
  g.weight = weight != NULL ? gtorch_impl_data (weight) : NULL;
  g.bias = bias != NULL ? gtorch_impl_data (bias) : NULL;
  gtorch_parallel_for (input->shape[0] * g.n_groups,
                       1 + GTORCH_CPU_GRAIN / 2 / (g.n_channels * g.n), norm_groups, &g);
  gtorch_cpu_unpack (y, output);
  return TRUE;
}
