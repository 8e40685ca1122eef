/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* gather and scatter: element-wise indexing along one dimension. */

#include "config.h"

#include <complex.h>
#include <glib/gi18n-lib.h>
#include <string.h>

#include "cpu/gtorch-cpu-cast.h"
#include "cpu/ops/gtorch-cpu-index.h"
#include "gtorch-ops-private.h"

/* A pass over lines along one dimension. The operands of the iterator are the indexed tensor, the index,
 * and the tensor of the index's shape. */
typedef struct
{
  GTorchIter iter;
  gint64 length;                /* elements of a line */
  gint64 indexed, index, plain; /* byte strides along a line */
  gsize size;
  gboolean read;
  gboolean across; /* the elements of a line are far apart: the inner loop runs across the lines */
  GTorchAdd add;
  gint64
      n_indexed; /* for reading: the size that indices are checked against, line by line, while cached */
  gint *bad;
} Lines;

static void
lines_init (Lines *lines, GTorchImpl *indexed, GTorchImpl *index, GTorchImpl *plain, guint dim)
{
  static const gint64 zeros[GTORCH_MAX_DIMS];
  gint64 shape[GTORCH_MAX_DIMS];
  GTorchImpl *operands[] = { indexed, index, plain };
  const gint64 *strides[3];
  char *data[3];
  gsize sizes[3];
  guint i;

  for (i = 0; i < 3; i++)
    {
      strides[i] = operands[i]->n_dims > 0 ? operands[i]->strides : zeros;
      data[i] = gtorch_impl_data (operands[i]);
      sizes[i] = gtorch_dtype_size (operands[i]->dtype);
    }
  memcpy (shape, index->shape, index->n_dims * sizeof (gint64));
  lines->length = index->n_dims > 0 ? shape[dim] : 1;
  shape[dim] = 1;
  lines->indexed = strides[0][dim] * (gint64) sizes[0];
  lines->index = strides[1][dim] * (gint64) sizes[1];
  lines->plain = strides[2][dim] * (gint64) sizes[2];
  lines->size = sizes[0];
  gtorch_iter_init_raw (&lines->iter, data, strides, sizes, 3, shape, index->n_dims);
  lines->across = lines->iter.strides[0][1] < lines->index && lines->iter.shape[0] > 1;
}

#define PIECE 256 /* indices copied at a time */

/* Copies n indices, at most PIECE, to memory that no other thread writes to, and tells whether all are
 * in [0, size). */
static inline gboolean
take_indices (gint64 *taken, const char *at, gint64 stride, gint64 n, gint64 size)
{
  gint64 signs = 0, last = size - 1, i;

  if (stride == sizeof (gint64))
    memcpy (taken, at, n * sizeof (gint64));
  else
    for (i = 0; i < n; i++)
      taken[i] = *(const gint64 *) (gconstpointer) (at + i * stride);
  /* This barrier keeps the compiler from loading the indices again: the original may have changed. */
  __asm__ volatile("" : : "r"(taken) : "memory");
#pragma omp simd reduction(| : signs)
  for (i = 0; i < n; i++)
    signs |= taken[i] | (last - taken[i]);
  return signs >= 0;
}

/* Reads or writes lines. When reading, the index may be changed by other threads, so it is copied piece
 * by piece. */
#define LINES(T)                                                                          \
  {                                                                                       \
    const gint64 outer = l->across ? l->length : n, inner = l->across ? n : l->length;    \
    const gint64 so = l->across ? l->indexed : strides[0];                                \
    const gint64 io = l->across ? l->index : strides[1];                                  \
    const gint64 po = l->across ? l->plain : strides[2];                                  \
    const gint64 si = l->across ? strides[0] : 0, ii = l->across ? strides[1] : l->index; \
    const gint64 pi = l->across ? strides[2] : l->plain;                                  \
    const gint64 scale = l->indexed, base = l->across ? 0 : so;                           \
    const gboolean simple = !l->across && scale == sizeof (T) && pi == sizeof (T);        \
                                                                                          \
    for (i = 0; i < outer; i++)                                                           \
      {                                                                                   \
        const char *at = data[1] + i * io;                                                \
        char *p = data[2] + i * po, *q = data[0] + i * base;                              \
                                                                                          \
        if (l->read)                                                                      \
          for (k = 0; k < inner; k += m, at += m * ii, p += m * pi, q += m * si)          \
            {                                                                             \
              m = MIN (inner - k, PIECE);                                                 \
              if (!take_indices (taken, at, ii, m, l->n_indexed))                         \
                {                                                                         \
                  g_atomic_int_set (l->bad, 1);                                           \
                  return;                                                                 \
                }                                                                         \
              if (simple)                                                                 \
                for (j = 0; j < m; j++)                                                   \
                  ((T *) p)[j] = ((const T *) q)[taken[j]];                               \
              else                                                                        \
                for (j = 0; j < m; j++)                                                   \
                  *(T *) (p + j * pi) = *(const T *) (q + j * si + taken[j] * scale);     \
            }                                                                             \
        else if (simple && ii == 8)                                                       \
          for (j = 0; j < inner; j++)                                                     \
            ((T *) q)[((const gint64 *) at)[j]] = ((const T *) p)[j];                     \
        else                                                                              \
          for (j = 0; j < inner; j++)                                                     \
            *(T *) (q + j * si + *(const gint64 *) (at + j * ii) * scale) =               \
                *(const T *) (p + j * pi);                                                \
      }                                                                                   \
  }

static void
move_lines (char *const *data, const gint64 *strides, gint64 n, gpointer user_data)
{
  const Lines *l = user_data;
  gint64 taken[PIECE];
  gint64 i, j, k, m;

  switch (l->size)
    {
    case 1:
      LINES (guint8)
      break;
    case 2:
      LINES (guint16)
      break;
    case 4:
      LINES (guint32)
      break;
    case 8:
      LINES (guint64)
      break;
    default:
      LINES (double _Complex)
    }
}

static void
add_lines (char *const *data, const gint64 *strides, gint64 n, gpointer user_data)
{
  const Lines *l = user_data;
  gint64 line, i;

#define ADD_LINES(T)                                                                             \
  {                                                                                              \
    const gint64 length = l->length, scale = l->indexed, ii = l->index, pi = l->plain;           \
    const gint64 sq = strides[0], sa = strides[1], sp = strides[2];                              \
    char *const q0 = data[0];                                                                    \
    const char *const at0 = data[1], *const p0 = data[2];                                        \
                                                                                                 \
    if (l->across)                                                                               \
      for (i = 0; i < length; i++)                                                               \
        for (line = 0; line < n; line++)                                                         \
          *(T *) (q0 + line * sq + *(const gint64 *) (at0 + line * sa + i * ii) * scale) +=      \
              *(const T *) (p0 + line * sp + i * pi);                                            \
    else                                                                                         \
      for (line = 0; line < n; line++)                                                           \
        {                                                                                        \
          char *q = q0 + line * sq;                                                              \
          const char *at = at0 + line * sa, *p = p0 + line * sp;                                 \
                                                                                                 \
          if (scale == sizeof (T) && ii == 8 && pi == sizeof (T))                                \
            for (i = 0; i < length; i++)                                                         \
              ((T *) q)[((const gint64 *) at)[i]] += ((const T *) p)[i];                         \
          else                                                                                   \
            for (i = 0; i < length; i++)                                                         \
              *(T *) (q + *(const gint64 *) (at + i * ii) * scale) += *(const T *) (p + i * pi); \
        }                                                                                        \
  }

  if (l->add == gtorch_cpu_add (GTORCH_DTYPE_FLOAT32))
    ADD_LINES (float)
  else if (l->add == gtorch_cpu_add (GTORCH_DTYPE_FLOAT64))
    ADD_LINES (double)
  else
    for (line = 0; line < n; line++)
      for (i = 0; i < l->length; i++)
        l->add (data[0] + line * strides[0]
                    + *(const gint64 *) (data[1] + line * strides[1] + i * l->index) * l->indexed,
                0, data[2] + line * strides[2] + i * l->plain, 0, 1);
}

static void
lines_run (Lines *lines, GTorchIterFunc func)
{
  gtorch_iter_run (&lines->iter, MAX (GTORCH_CPU_GRAIN / MAX (lines->length, 1), 1), func, lines);
}

static void
gather_part (gint64 begin, gint64 end, gpointer user_data)
{
  Lines part = *(Lines *) user_data;

  part.length = end - begin;
  part.iter.data[1] += begin * part.index;
  part.iter.data[2] += begin * part.plain;
  gtorch_iter_range (&part.iter, 0, part.iter.numel, move_lines, &part);
}

gboolean
gtorch_cpu_gather (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *self = call->inputs[0], *output = call->outputs[0];
  g_autoptr (GTorchImpl) index = NULL;
  gint bad = 0;
  Lines lines = { .read = TRUE, .bad = &bad };
  guint dim;

  gtorch_normalize_dim ("gather", call->attrs[0].i, self->n_dims, &dim, NULL);
  lines.n_indexed = self->n_dims > 0 ? self->shape[dim] : 1;
  index = gtorch_cpu_contiguous (call->inputs[1], GTORCH_DTYPE_INT64, error);
  if (index == NULL)
    return FALSE;
  if (index->numel == 0)
    return TRUE;
  lines_init (&lines, self, index, output, dim);
  if (lines.iter.numel < 16) /* the lines are few and long: split each of them among the threads */
    gtorch_parallel_for (lines.length, GTORCH_CPU_GRAIN / lines.iter.numel, gather_part, &lines);
  else
    lines_run (&lines, move_lines);
  if (G_UNLIKELY (bad))
    {
      g_autoptr (GTorchImpl) checked =
          gtorch_cpu_indices (call, index, lines.n_indexed, dim, error);

      if (checked != NULL) /* another thread has corrected the index in the meantime */
        gtorch_call_error (call, error, GTORCH_ERROR_INDEX,
                           _ ("another thread writes to the index of shape %s meanwhile"),
                           gtorch_impl_shape_str (index));
      return FALSE;
    }
  return TRUE;
}

/* Scatters the elements as blocks of one element, for which crowds are summed in wide accumulators.
 * `index` must be a private copy: its elements are replaced by byte offsets. */
static gboolean
scatter_crowds (GTorchOpCall *call, GTorchImpl *index, GTorchImpl *src, guint dim,
                GTorchBlocksMode mode, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  const gint64 size = gtorch_dtype_size (output->dtype);
  gint64 *offsets = gtorch_impl_data (index);
  g_autoptr (GTorchImpl) used = NULL;
  g_autoptr (GTorchImpl) dense = NULL;
  gint64 at[GTORCH_MAX_DIMS] = { 0 };
  GTorchBlocks blocks = {
    .indexed = output,
    .offsets = offsets,
    .n_index = index->numel,
    .n_pre = 1,
    .inner = 1,
    .unit = size,
    .size = size,
    .inner_contiguous = TRUE,
  };
  const gint n_dims = output->n_dims > 0 ? index->n_dims : 0;
  const gint64 length = n_dims > 0 ? index->shape[n_dims - 1] : index->numel;
  const gint64 scale = n_dims > 0 ? output->strides[dim] * size : 0;
  const gint64 step =
      n_dims > 0 && (gint) dim != n_dims - 1 ? output->strides[n_dims - 1] * size : 0;
  gint64 other = 0, i, j;
  gint k;

  used = gtorch_impl_new_view (src, src->offset, index->shape, src->strides, index->n_dims);
  dense = gtorch_cpu_contiguous (used, output->dtype, error);
  if (dense == NULL)
    return FALSE;
  for (k = 0; k < (gint) output->n_dims; k++)
    blocks.extent += (output->shape[k] - 1) * output->strides[k] * size;
  /* Runs along the last dimension of the index, then goes to its next line. */
  for (i = 0; i < index->numel; i += length)
    {
      for (j = 0; j < length; j++)
        offsets[i + j] = offsets[i + j] * scale + other + j * step;
      for (k = n_dims - 1; k-- > 0;)
        {
          const gint64 stride = k == (gint) dim ? 0 : output->strides[k] * size;

          other += stride;
          if (++at[k] < index->shape[k])
            break;
          other -= stride * at[k];
          at[k] = 0;
        }
    }
  return gtorch_blocks_run (&blocks, gtorch_impl_data (dense), mode,
                            call->in_place ? NULL : call->inputs[0], error);
}

gboolean
gtorch_cpu_scatter (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  g_autoptr (GTorchImpl) index = NULL;
  g_autoptr (GTorchImpl) src = NULL;
  GTorchBlocksMode mode = GTORCH_BLOCKS_PUT;
  Lines lines = { .add = NULL };
  gboolean crowded = FALSE;
  gint64 size;
  guint dim;

  if (call->op->id == GTORCH_OP_SCATTER_ADD)
    {
      lines.add = gtorch_cpu_add (output->dtype);
      mode = GTORCH_BLOCKS_ADD;
    }
  else if (call->op->id == GTORCH_OP_SCATTER_FOLD)
    {
      lines.add = gtorch_cpu_fold (output->dtype, call->attrs[1].i);
      if (call->attrs[1].i == GTORCH_INDEX_REDUCTION_PROD)
        mode = GTORCH_BLOCKS_MUL;
    }

  gtorch_normalize_dim (call->op->name, call->attrs[0].i, output->n_dims, &dim, NULL);
  size = output->n_dims > 0 ? output->shape[dim] : 1;
  index = gtorch_cpu_indices (call, call->inputs[1], size, dim, error);
  src = call->inputs[2]->dtype == output->dtype
            ? gtorch_impl_ref (call->inputs[2])
            : gtorch_cpu_contiguous (call->inputs[2], output->dtype, error);
  if (index == NULL || src == NULL)
    return FALSE;
  if (index->numel > 0 && mode != GTORCH_BLOCKS_PUT
      && !gtorch_crowds_find (index, dim, size, output->dtype, &crowded, error))
    return FALSE;
  if (crowded)
    return scatter_crowds (call, index, src, dim, mode, error);
  if (!call->in_place)
    gtorch_cpu_copy (output, call->inputs[0]);
  if (index->numel == 0)
    return TRUE;
  lines_init (&lines, output, index, src, dim);
  lines_run (&lines, lines.add != NULL ? add_lines : move_lines);
  return TRUE;
}
