/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Sums, means and maxima of rows of a table. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "cpu/gtorch-cpu-pack.h"
#include "cpu/ops/gtorch-cpu-index.h"
#include "gtorch-ops-private.h"

typedef struct
{
  guint mode;
  gint64 n, bags, rows, columns, padding;
  const gint64 *indices;
  const gint64 *offsets; /* one more than bags */
  gconstpointer weight, factors;
  gpointer output;
  gint64 *numbers, *sizes, *places;
} Bags;

#define BAGS_OF(T, name)                                                                  \
  static void name (gint64 begin, gint64 end, gpointer user_data)                         \
  {                                                                                       \
    const Bags *bags = user_data;                                                         \
    const gint64 columns = bags->columns;                                                 \
                                                                                          \
    for (gint64 b = begin; b < end; b++)                                                  \
      {                                                                                   \
        T *out = (T *) bags->output + b * columns;                                        \
        gint64 n = 0;                                                                     \
                                                                                          \
        for (gint64 j = 0; j < columns; j++)                                              \
          out[j] = 0;                                                                     \
        for (gint64 i = bags->offsets[b]; i < bags->offsets[b + 1]; i++)                  \
          {                                                                               \
            const gint64 index = bags->indices[i];                                        \
            const T *row = (const T *) bags->weight + index * columns;                    \
                                                                                          \
            if (index == bags->padding)                                                   \
              continue;                                                                   \
            bags->numbers[i] = b;                                                         \
            n++;                                                                          \
            if (bags->mode == GTORCH_BAG_MODE_MAX)                                        \
              {                                                                           \
                for (gint64 j = 0; j < columns; j++)                                      \
                  if (n == 1 || row[j] > out[j])                                          \
                    {                                                                     \
                      out[j] = row[j];                                                    \
                      bags->places[b * columns + j] = index;                              \
                    }                                                                     \
              }                                                                           \
            else if (bags->factors != NULL)                                               \
              {                                                                           \
                const T factor = ((const T *) bags->factors)[i];                          \
                                                                                          \
                _Pragma ("omp simd") for (gint64 j = 0; j < columns; j++) out[j] +=       \
                    factor * row[j];                                                      \
              }                                                                           \
            else                                                                          \
              _Pragma ("omp simd") for (gint64 j = 0; j < columns; j++) out[j] += row[j]; \
          }                                                                               \
        bags->sizes[b] = n;                                                               \
        if (bags->mode == GTORCH_BAG_MODE_MEAN && n > 1)                                  \
          for (gint64 j = 0; j < columns; j++)                                            \
            out[j] /= (T) n;                                                              \
      }                                                                                   \
  }

BAGS_OF (gfloat, bags_f32)
BAGS_OF (gdouble, bags_f64)

static gboolean
check_indices (GTorchOpCall *call, const Bags *bags, GError **error)
{
  for (gint64 i = 0; i < bags->n; i++)
    if (bags->indices[i] < 0 || bags->indices[i] >= bags->rows)
      {
        gtorch_call_error (call, error, GTORCH_ERROR_INDEX,
                           _ ("index %" PRId64 " is out of range for %" PRId64 " rows"),
                           bags->indices[i], bags->rows);
        return FALSE;
      }
  return TRUE;
}

/* Copies the offsets, and adds the end if it is not among them. */
static GTorchImpl *
pack_offsets (GTorchOpCall *call, const Bags *bags, GError **error)
{
  const gint64 n = bags->bags + 1;
  g_autoptr (GTorchImpl) given =
      gtorch_cpu_private_copy (call->inputs[2], GTORCH_DTYPE_INT64, error);
  g_autoptr (GTorchImpl) offsets = NULL;
  gint64 *offset;

  if (given == NULL)
    return NULL;
  offsets = gtorch_impl_new (gtorch_device_cpu (), GTORCH_DTYPE_INT64, &n, 1, error);
  if (offsets == NULL)
    return NULL;
  offset = gtorch_impl_data (offsets);
  offset[n - 1] = bags->n;
  memcpy (offset, gtorch_impl_data (given), MIN (given->numel, n) * sizeof (gint64));
  for (gint64 b = 0; b < n; b++)
    {
      const gint64 least = b > 0 ? offset[b - 1] : 0, most = b > 0 ? bags->n : 0;

      if (offset[b] >= least && offset[b] <= most)
        continue;
      gtorch_call_error (call, error, GTORCH_ERROR_INDEX,
                         _ ("offset %" PRId64 " is out of range for %" PRId64
                            " indices: number %" PRId64 " must be from %" PRId64 " to %" PRId64),
                         offset[b], bags->n, b, least, most);
      return NULL;
    }
  return g_steal_pointer (&offsets);
}

static void
fill (gint64 *numbers, gint64 n)
{
  for (gint64 i = 0; i < n; i++)
    numbers[i] = -1;
}

gboolean
gtorch_cpu_native_embedding_bag (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  const guint dtype = gtorch_dtype_infos[call->compute].compute;
  Bags bags = { .mode = call->attrs[0].i,
                .bags = call->attrs[1].i,
                .padding = call->attrs[2].i,
                .n = call->inputs[1]->numel,
                .rows = call->inputs[0]->shape[0],
                .columns = call->inputs[0]->shape[1],
                .numbers = gtorch_impl_data (call->outputs[1]),
                .sizes = gtorch_impl_data (call->outputs[2]),
                .places = gtorch_impl_data (call->outputs[3]) };
  g_autoptr (GTorchImpl) weight = gtorch_cpu_pack (call->inputs[0], dtype, error);
  g_autoptr (GTorchImpl) indices =
      weight != NULL ? gtorch_cpu_private_copy (call->inputs[1], GTORCH_DTYPE_INT64, error) : NULL;
  g_autoptr (GTorchImpl) offsets = indices != NULL ? pack_offsets (call, &bags, error) : NULL;
  g_autoptr (GTorchImpl) factors = NULL;
  g_autoptr (GTorchImpl) output = NULL;
  gint64 work;

  if (offsets == NULL)
    return FALSE;
  if (call->inputs[3] != NULL)
    {
      factors = gtorch_cpu_pack (call->inputs[3], dtype, error);
      if (factors == NULL)
        return FALSE;
      bags.factors = gtorch_impl_data (factors);
    }
  bags.indices = gtorch_impl_data (indices);
  output = gtorch_cpu_pack_output (call->outputs[0], dtype, error);
  if (output == NULL || !check_indices (call, &bags, error))
    return FALSE;
  bags.weight = gtorch_impl_data (weight);
  bags.offsets = gtorch_impl_data (offsets);
  bags.output = gtorch_impl_data (output);
  fill (bags.numbers, bags.n);
  fill (bags.places, call->outputs[3]->numel);
  work = 1 + bags.columns * (1 + bags.n / MAX (bags.bags, 1));
  gtorch_parallel_for (bags.bags, 1 + GTORCH_CPU_GRAIN / work,
                       dtype == GTORCH_DTYPE_FLOAT32 ? bags_f32 : bags_f64, &bags);
  gtorch_cpu_unpack (output, call->outputs[0]);
  return TRUE;
}
