/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Distances between the rows of matrices. Those of one row from all others are computed together. */

#include "config.h"

#include <string.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-pack.h"
#include "cpu/ops/gtorch-cpu-distances.h"
#include "gtorch-ops-private.h"

#define WIDTH       GTORCH_DISTANCES_WIDTH
#define FEWEST_ROWS 16 /* for which a block of others is read from memory */

typedef struct
{
  guint dtype;
  gsize size;
  gboolean later; /* only the distances from later rows of the same matrix */
  gint64 n, depth;
  gdouble p;
  const char *x, *others; /* blocks of WIDTH others, each of them transposed */
  char *distances;
} Distances;

static void
distances_of_rows (gint64 begin, gint64 end, gpointer user_data)
{
  const Distances *d = user_data;
  const gint64 size = (gint64) d->size;
  gdouble found[WIDTH];
  gint64 block, i;

  for (block = d->later ? (begin + 1) / WIDTH * WIDTH : 0; block < d->n; block += WIDTH)
    for (i = begin; i < end; i++)
      {
        const gint64 first = d->later ? MAX (i + 1, block) : block,
                     last = MIN (block + WIDTH, d->n);
        const gint64 row = d->later ? i * (2 * d->n - i - 1) / 2 - (i + 1) : i * d->n;
        const char *x = d->x + i * d->depth * size, *others = d->others + block * d->depth * size;

        if (first >= last)
          break;
        if (d->dtype == GTORCH_DTYPE_FLOAT32)
          GTORCH_ISA_CALL (gtorch_distances_f32)
        ((const gfloat *) x, (const gfloat *) others, d->depth, d->p, (gfloat *) found);
        else GTORCH_ISA_CALL (gtorch_distances_f64) ((const gdouble *) x, (const gdouble *) others,
                                                     d->depth, d->p, found);
        memcpy (d->distances + (row + first) * size, (char *) found + (first - block) * size,
                (last - first) * size);
      }
}

/* Returns blocks of WIDTH rows, each of them transposed; zeros are in the place of those that are missing. */
static GTorchImpl *
turn (GTorchImpl *matrix, GError **error)
{
  const gint64 n = matrix->shape[0], depth = matrix->shape[1], blocks = (n + WIDTH - 1) / WIDTH;
  GTorchImpl *turned = gtorch_impl_new (gtorch_impl_device (matrix), matrix->dtype,
                                        (gint64[]){ blocks, depth, WIDTH }, 3, error);
  gint64 b;

  if (turned == NULL)
    return NULL;
  memset (gtorch_impl_data (turned), 0, gtorch_impl_n_bytes (turned));
  for (b = 0; b < blocks; b++)
    {
      const gint64 shape[2] = { depth, MIN (WIDTH, n - b * WIDTH) };
      g_autoptr (GTorchImpl) from =
          gtorch_impl_new_view (matrix, matrix->offset + b * WIDTH * matrix->strides[0], shape,
                                (gint64[]){ matrix->strides[1], matrix->strides[0] }, 2);
      g_autoptr (GTorchImpl) to = gtorch_impl_new_view (turned, turned->offset + b * depth * WIDTH,
                                                        shape, (gint64[]){ WIDTH, 1 }, 2);

      gtorch_cpu_copy (to, from);
    }
  return turned;
}

gboolean
gtorch_cpu_pair_distances (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *x1 = call->inputs[0], *x2 = call->inputs[1] != NULL ? call->inputs[1] : x1;
  g_autoptr (GTorchImpl) rows = NULL;
  g_autoptr (GTorchImpl) others = NULL;
  Distances d = { .dtype = call->compute,
                  .size = gtorch_dtype_size (call->compute),
                  .later = call->inputs[1] == NULL,
                  .n = x2->shape[0],
                  .depth = x1->shape[1],
                  .p = call->attrs[0].d };

  if (call->outputs[0]->numel == 0)
    return TRUE;
  rows = gtorch_cpu_pack (x1, call->compute, error);
  others = rows != NULL ? turn (x2, error) : NULL;
  if (others == NULL)
    return FALSE;
  d.x = gtorch_impl_data (rows);
  d.others = gtorch_impl_data (others);
  d.distances = gtorch_impl_data (call->outputs[0]);
  gtorch_parallel_for (x1->shape[0], MAX (FEWEST_ROWS, GTORCH_CPU_GRAIN / (1 + d.n * d.depth)),
                       distances_of_rows, &d);
  return TRUE;
}
