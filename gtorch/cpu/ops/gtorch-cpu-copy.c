/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Copies between layouts and dtypes. */

#include "config.h"

#include <string.h>

#include "cpu/gtorch-cpu-cast.h"
#include "cpu/gtorch-cpu-iter.h"
#include "cpu/ops/gtorch-cpu-pool.h"
#include "device/gtorch-device-private.h"
#include "gtorch-ops-private.h"
#include "stream/gtorch-stream-private.h"

static void
run_cast (char *const *data, const gint64 *strides, gint64 n, gpointer user_data)
{
  GTorchCast cast = *(GTorchCast *) user_data;

  cast (data[0], strides[0], data[1], strides[1], n);
}

#define REVERSE(T)                                                 \
  {                                                                \
    T *to = (T *) data[0];                                         \
    const T *from = (const T *) data[1];                           \
                                                                   \
    _Pragma ("omp simd") for (i = 0; i < n; i++) to[i] = from[-i]; \
  }

/* Copies elements of equal dtypes, reading the source backwards. */
static void
run_reverse (char *const *data, const gint64 *strides, gint64 n, gpointer user_data)
{
  gint64 i;

  switch (strides[0])
    {
    case 1:
      REVERSE (guint8)
      break;
    case 2:
      REVERSE (guint16)
      break;
    case 4:
      REVERSE (guint32)
      break;
    default:
      REVERSE (guint64)
    }
}

#define INTERLEAVE(T)                    \
  {                                      \
    T *to = (T *) data[0];               \
    const T *from = (const T *) data[1]; \
                                         \
    if (lines->n == 2)                   \
      INTERLEAVE_LINES (2)               \
    else if (lines->n == 3)              \
      INTERLEAVE_LINES (3)               \
    else if (lines->n == 4)              \
      INTERLEAVE_LINES (4)               \
    else                                 \
      INTERLEAVE_LINES (lines->n)        \
  }
#define INTERLEAVE_LINES(N)   \
  for (i = 0; i < n; i++)     \
    for (k = 0; k < (N); k++) \
      to[i * (N) + k] = from[i + k * distance];

typedef struct
{
  gint64 n, distance; /* the number of lines, and of bytes from one to the next */
  gsize size;
} Interleaved;

/* Copies the elements of a few lines in turns. */
static GTORCH_VECTORIZED void
run_interleave (char *const *data, const gint64 *strides, gint64 n, gpointer user_data)
{
  const Interleaved *lines = user_data;
  const gint64 distance = lines->distance / (gint64) lines->size;
  gint64 i, k;

  switch (lines->size)
    {
    case 1:
      INTERLEAVE (guint8)
      break;
    case 2:
      INTERLEAVE (guint16)
      break;
    case 4:
      INTERLEAVE (guint32)
      break;
    default:
      INTERLEAVE (guint64)
    }
}

/* A transposed copy goes through tiles whose side is one cache line, kept in a small buffer. Each cache
 * line of the source is read once and each of the destination written once, whatever the strides. (With
 * powers of two, the cache lines of a column would otherwise evict each other.) */
#define LINE 64

typedef struct
{
  char *dst;
  const char *src;
  gint64 rows, columns; /* rows run along the contiguous dimension of src */
  gint64 dst_row;       /* byte strides; the two others equal size */
  gint64 src_column;
  gint64 tile, row_tiles, tiles;
  gsize size;
  guint n_dims; /* the batch dimensions, over which the transposed copy is repeated */
  gint64 shape[GTORCH_MAX_DIMS], strides[GTORCH_MAX_DIMS][2];
} Tiled;

#define COPY_TILE(T)                                                                        \
  {                                                                                         \
    T buffer[LINE / sizeof (T)][LINE / sizeof (T)];                                         \
                                                                                            \
    for (c = 0; c < n_columns; c++)                                                         \
      {                                                                                     \
        const T *from = (const T *) (src + (c0 + c) * t->src_column) + r0;                  \
                                                                                            \
        for (r = 0; r < n_rows; r++)                                                        \
          buffer[r][c] = from[r];                                                           \
      }                                                                                     \
    for (r = 0; r < n_rows; r++)                                                            \
      memcpy ((T *) (dst + (r0 + r) * t->dst_row) + c0, buffer[r], n_columns * sizeof (T)); \
  }

typedef guint32 Four __attribute__ ((vector_size (16), aligned (4), may_alias));

#define LOW(a, b)  __builtin_shufflevector (a, b, 0, 4, 1, 5)
#define HIGH(a, b) __builtin_shufflevector (a, b, 2, 6, 3, 7)

/* Copies a whole tile of elements of four bytes, in registers of four by four. */
static void
copy_whole_tile (const Tiled *t, char *dst, const char *src)
{
  guint32 buffer[16][16];
  gint64 c, r;

  for (c = 0; c < 16; c += 4)
    {
      const char *from = src + c * t->src_column;

      for (r = 0; r < 16; r += 4, from += 16)
        {
          const Four x0 = *(const Four *) from, x1 = *(const Four *) (from + t->src_column);
          const Four x2 = *(const Four *) (from + 2 * t->src_column);
          const Four x3 = *(const Four *) (from + 3 * t->src_column);
          const Four a = LOW (x0, x2), b = LOW (x1, x3), e = HIGH (x0, x2), f = HIGH (x1, x3);

          *(Four *) &buffer[r][c] = LOW (a, b);
          *(Four *) &buffer[r + 1][c] = HIGH (a, b);
          *(Four *) &buffer[r + 2][c] = LOW (e, f);
          *(Four *) &buffer[r + 3][c] = HIGH (e, f);
        }
    }
  for (r = 0; r < 16; r++)
    memcpy (dst + r * t->dst_row, buffer[r], 64);
}

static void
run_tiles (gint64 begin, gint64 end, gpointer user_data)
{
  const Tiled *t = user_data;
  gint64 task, r, c;

  for (task = begin; task < end; task++)
    {
      gint64 tile = task % t->tiles, batch = task / t->tiles;
      char *dst = t->dst;
      const char *src = t->src;
      guint d;
      gint64 c0 = tile / t->row_tiles * t->tile, n_columns = MIN (t->tile, t->columns - c0);
      gint64 r0 = tile % t->row_tiles * t->tile, n_rows = MIN (t->tile, t->rows - r0);

      for (d = 0; d < t->n_dims; batch /= t->shape[d++])
        {
          dst += batch % t->shape[d] * t->strides[d][0];
          src += batch % t->shape[d] * t->strides[d][1];
        }
      switch (t->size)
        {
        case 1:
          COPY_TILE (guint8)
          break;
        case 2:
          COPY_TILE (guint16)
          break;
        case 4:
          if (n_rows == 16 && n_columns == 16)
            copy_whole_tile (t, dst + r0 * t->dst_row + c0 * 4, src + c0 * t->src_column + r0 * 4);
          else
            COPY_TILE (guint32)
          break;
        default:
          COPY_TILE (guint64)
        }
    }
}

/* Returns the dimension along which the source is contiguous, or is so backwards, if the destination is so
 * along the inner one, else 0. */
static guint
transposed_dim (const GTorchIter *iter, gsize size)
{
  guint i;

  if (size > 8 || iter->strides[0][0] != (gint64) size || iter->strides[0][1] == (gint64) size
      || iter->strides[0][1] == 0)
    return 0;
  for (i = 1; i < iter->n_dims; i++)
    if (ABS (iter->strides[i][1]) == (gint64) size)
      return i;
  return 0;
}

static void
copy_tiled (const GTorchIter *iter, guint row_dim, gsize size)
{
  gint64 tile = LINE / (gint64) size, n_batches = 1;
  Tiled tiled = {
    .dst = iter->data[0],
    .src = iter->data[1],
    .rows = iter->shape[row_dim],
    .columns = iter->shape[0],
    .dst_row = iter->strides[row_dim][0],
    .src_column = iter->strides[0][1],
    .tile = tile,
    .row_tiles = (iter->shape[row_dim] + tile - 1) / tile,
    .size = size,
  };
  guint i;

  if (iter->strides[row_dim][1] < 0) /* takes the rows from the last to the first */
    {
      tiled.src += (tiled.rows - 1) * iter->strides[row_dim][1];
      tiled.dst += (tiled.rows - 1) * tiled.dst_row;
      tiled.dst_row = -tiled.dst_row;
    }
  tiled.tiles = tiled.row_tiles * ((tiled.columns + tile - 1) / tile);
  for (i = 1; i < iter->n_dims; i++)
    if (i != row_dim)
      {
        tiled.shape[tiled.n_dims] = iter->shape[i];
        tiled.strides[tiled.n_dims][0] = iter->strides[i][0];
        tiled.strides[tiled.n_dims++][1] = iter->strides[i][1];
        n_batches *= iter->shape[i];
      }
  gtorch_parallel_for (n_batches * tiled.tiles, GTORCH_CPU_GRAIN / (tile * tile), run_tiles,
                       &tiled);
}

/* Returns whether few lines of the source, whose dimension is the inner one, are copied in turns to a line of
 * the destination; that dimension is then removed. */
static gboolean
is_interleaved (GTorchIter *iter, gsize size, Interleaved *lines)
{
  const gint64 n = iter->shape[0], distance = iter->strides[0][1];
  guint i;

  if (size > 8 || iter->n_dims < 2 || n > 8 || iter->strides[0][0] != (gint64) size
      || iter->strides[1][0] != n * (gint64) size || iter->strides[1][1] != (gint64) size
      || distance % (gint64) size != 0)
    return FALSE;
  *lines = (Interleaved){ n, distance, size };
  for (i = 1; i < iter->n_dims; i++)
    {
      iter->shape[i - 1] = iter->shape[i];
      memcpy (iter->strides[i - 1], iter->strides[i], sizeof iter->strides[0]);
    }
  iter->n_dims--;
  iter->numel /= n;
  return TRUE;
}

void
gtorch_cpu_copy (GTorchImpl *dst, GTorchImpl *src)
{
  GTorchImpl *operands[] = { dst, src };
  GTorchCast cast = gtorch_cpu_cast (dst->dtype, src->dtype);
  gsize size = gtorch_dtype_size (dst->dtype);
  GTorchIter iter;
  Interleaved lines;
  guint row_dim;

  if (dst->numel == 0)
    return;
  gtorch_iter_init (&iter, operands, 2, dst->shape, dst->n_dims);
  row_dim = dst->dtype == src->dtype ? transposed_dim (&iter, size) : 0;
  if (row_dim > 0 && iter.shape[0] >= 8 && iter.shape[row_dim] >= 8)
    copy_tiled (&iter, row_dim, size);
  else if (dst->dtype == src->dtype && size <= 8 && iter.strides[0][0] == (gint64) size
           && iter.strides[0][1] == -(gint64) size)
    gtorch_iter_run (&iter, GTORCH_CPU_GRAIN, run_reverse, NULL);
  else if (dst->dtype == src->dtype && is_interleaved (&iter, size, &lines))
    gtorch_iter_run (&iter, GTORCH_CPU_GRAIN / 4, run_interleave, &lines);
  else
    {
      iter.any_order = TRUE;
      gtorch_iter_run (&iter, GTORCH_CPU_GRAIN, run_cast, &cast);
    }
}

gboolean
gtorch_cpu_clone (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  gtorch_cpu_copy (call->outputs[0], call->inputs[0]);
  return TRUE;
}

gboolean
gtorch_cpu_to_dtype (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  return gtorch_cpu_clone (call, queue, error);
}

gboolean
gtorch_cpu_copy_op (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *dst = call->outputs[0], *src = call->inputs[1];
  g_autoptr (GTorchImpl) moved = NULL;

  if (src->storage->device != dst->storage->device)
    {
      gboolean direct =
          dst->is_contiguous && dst->dtype == src->dtype && gtorch_impl_same_shape (dst, src);
      gboolean non_blocking = direct && call->attrs[0].i && !gtorch_thread.must_finish;

      moved = gtorch_copy_to_device (src, dst->storage->device, non_blocking, direct ? dst : NULL,
                                     error);
      if (moved == NULL || moved == dst)
        return moved != NULL;
      src = moved;
    }
  if (!gtorch_storage_wait_copies (dst->storage, error)
      || !gtorch_storage_wait_copies (src->storage, error))
    return FALSE;
  gtorch_cpu_copy (dst, src);
  return TRUE;
}
