/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Copies blocks of elements named by index tensors to and from a dense tensor, or adds a dense tensor to
 * them. */

#include "config.h"

#include <string.h>

#include "cpu/gtorch-cpu-cast.h"
#include "cpu/ops/gtorch-cpu-index.h"
#include "device/gtorch-device-manager.h"
#include "gtorch-ops-private.h"
#include "device/gtorch-scratch-private.h"

typedef struct
{
  const GTorchBlocks *blocks;
  char *dense;
  GTorchBlocksMode mode;
  GTorchAdd add;
  GTorchIter inner; /* operands: dense, indexed */
  gint64 n_parts;
  const GTorchCrowds *crowds;
  double *sums;    /* the sums (or products) of the crowds */
  gint64 n_sums;   /* the number of sums per crowd */
  guint real;      /* the dtype of the elements, or of their real parts */
  GTorchIter wide; /* operands: sums, indexed */
  gboolean store;
} Run;

static void
inner_copy (char *const *data, const gint64 *strides, gint64 n, gpointer user_data)
{
  const Run *run = user_data;
  GTorchImpl *indexed = run->blocks->indexed;

  if (run->mode == GTORCH_BLOCKS_ADD || run->mode == GTORCH_BLOCKS_MUL)
    run->add (data[1], strides[1], data[0], strides[0], n);
  else if (run->mode == GTORCH_BLOCKS_PUT)
    gtorch_cpu_cast (indexed->dtype, indexed->dtype) (data[1], strides[1], data[0], strides[0], n);
  else
    gtorch_cpu_cast (indexed->dtype, indexed->dtype) (data[0], strides[0], data[1], strides[1], n);
}

static char *
pre_base (const GTorchBlocks *blocks, gint64 pre)
{
  char *base = gtorch_impl_data (blocks->indexed);
  guint i;

  for (i = blocks->n_pre_dims; i-- > 0;)
    {
      base += pre % blocks->pre_shape[i] * blocks->pre_strides[i];
      pre /= blocks->pre_shape[i];
    }
  return base;
}

/* Blocks are only aligned like their elements. Everything is in locals, since the stores may alias the
 * structures. */
#define EACH(SIZE)                                               \
  {                                                              \
    const gint64 *offsets = blocks->offsets;                     \
    char *dense = run->dense + (pre * blocks->n_index) * (SIZE); \
                                                                 \
    for (; b < b_end; b++)                                       \
      memcpy (dense + b * (SIZE), base + offsets[b], (SIZE));    \
  }

/* How many bytes of the next blocks the processor is told of. It sees by itself that a block is read in
 * order once it has waited for the first lines: rows of 4 kB in random order take 1.5 times as long without
 * this. */
#define AHEAD 512
#define LINE  64

/* Copies blocks, those that follow each other together. */
static void
get_blocks (char *dense, const char *base, const gint64 *offsets, gint64 n, gsize block)
{
  const gint64 distance = MAX (AHEAD / (gint64) block, 1);
  gint64 b, i;
  gsize at;

  for (b = 0; b < n; b += i)
    {
      for (i = 1; b + i < n && offsets[b + i] == offsets[b] + i * (gint64) block; i++)
        continue;
      if (b + i - 1 + distance < n)
        for (at = 0; at < MIN (block, AHEAD); at += LINE)
          __builtin_prefetch (base + offsets[b + i - 1 + distance] + at);
      memcpy (dense + (gsize) b * block, base + offsets[b], (gsize) i * block);
    }
}

/* Copies the blocks [b, b_end) of one position of the leading dimensions. */
static void
get_range (const Run *run, gint64 pre, gint64 b, gint64 b_end)
{
  const GTorchBlocks *blocks = run->blocks;
  const char *base = pre_base (blocks, pre);
  gsize block = (gsize) blocks->inner * blocks->size;

  if (blocks->inner_contiguous)
    switch (block)
      {
      case 1:
        EACH (1)
        return;
      case 2:
        EACH (2)
        return;
      case 4:
        EACH (4)
        return;
      case 8:
        EACH (8)
        return;
      case 16:
        EACH (16)
        return;
      default:
        get_blocks (run->dense + (gsize) (pre * blocks->n_index + b) * block, base,
                    blocks->offsets + b, b_end - b, block);
        return;
      }
  else
    {
      GTorchIter iter = run->inner;

      for (; b < b_end; b++)
        {
          iter.data[0] = run->dense + (gsize) (pre * blocks->n_index + b) * block;
          iter.data[1] = (char *) base + blocks->offsets[b];
          gtorch_iter_range (&iter, 0, iter.numel, inner_copy, (gpointer) run);
        }
    }
}

static void
get_part (gint64 begin, gint64 end, gpointer user_data)
{
  const Run *run = user_data;
  gint64 n = run->blocks->n_index;

  while (begin < end)
    {
      gint64 b = begin % n, m = MIN (end - begin, n - b);

      get_range (run, begin / n, b, b + m);
      begin += m;
    }
}

/* Copies between the target and the accumulators of a crowd, which have twice the width. */
static void
wide_copy (char *const *data, const gint64 *strides, gint64 n, gpointer user_data)
{
  const Run *run = user_data;
  guint dtype = run->blocks->indexed->dtype;
  guint wide = dtype == GTORCH_DTYPE_COMPLEX64 ? GTORCH_DTYPE_COMPLEX128 : GTORCH_DTYPE_FLOAT64;

  if (run->store)
    gtorch_cpu_cast (dtype, wide) (data[1], strides[1], data[0], strides[0], n);
  else
    gtorch_cpu_cast (wide, dtype) (data[0], strides[0], data[1], strides[1], n);
}

static void
move_crowds (const Run *run, char *base, gint64 low, gint64 high, gboolean store)
{
  const GTorchCrowds *crowds = run->crowds;
  Run moving = *run;
  gint64 i;

  moving.store = store;
  for (i = 0; i < crowds->n_slots; i++)
    if (crowds->places[i] >= low && crowds->places[i] < high)
      {
        moving.wide.data[0] = (char *) (run->sums + i * run->n_sums);
        moving.wide.data[1] = base + crowds->places[i];
        gtorch_iter_range (&moving.wide, 0, moving.wide.numel, wide_copy, &moving);
      }
}

static void
join_crowd (const Run *run, double *sums, const char *from)
{
  const gint64 size = gtorch_dtype_size (run->real);
  GTorchCast load = gtorch_cpu_cast (GTORCH_DTYPE_FLOAT64, run->real);
  double wide[64];
  gint64 n = run->n_sums, m, i;

  if (run->mode == GTORCH_BLOCKS_ADD && run->real == GTORCH_DTYPE_FLOAT32)
    {
      const float *x = (const float *) (gconstpointer) from;

#pragma omp simd
      for (i = 0; i < n; i++)
        sums[i] += x[i];
      return;
    }
  for (; n > 0; n -= m, sums += m, from += m * size)
    {
      m = MIN (n, 64);
      load ((char *) wide, sizeof *wide, from, size, m);
      if (run->mode == GTORCH_BLOCKS_MUL)
        for (i = 0; i < m; i++)
          sums[i] *= wide[i];
      else
        for (i = 0; i < m; i++)
          sums[i] += wide[i];
    }
}

/* Adds blocks of a single float32 without a function call for each of them. */
static void
add_singles (const Run *run, char *base, const float *x, gint64 low, gint64 high)
{
  const gint64 *offsets = run->blocks->offsets;
  const guint32 *slots = run->crowds->slots;
  const gint64 n = run->blocks->n_index;
  double *sums = run->sums;
  gint64 b;

  for (b = 0; b < n; b++)
    if (offsets[b] < low || offsets[b] >= high)
      continue;
    else if (slots == NULL || slots[b] == GTORCH_NO_CROWD)
      *(float *) (gpointer) (base + offsets[b]) += x[b];
    else
      sums[slots[b]] += x[b];
}

/* Writes the blocks of a range of parts. Each part owns a range of offsets, so that equal indices are
 * handled by one thread and in order. */
static void
write_part (gint64 begin, gint64 end, gpointer user_data)
{
  const Run *run = user_data;
  const GTorchBlocks *blocks = run->blocks;
  const guint32 *slots = run->crowds->slots;
  gboolean singles = blocks->inner == 1 && blocks->inner_contiguous
                     && run->mode == GTORCH_BLOCKS_ADD
                     && blocks->indexed->dtype == GTORCH_DTYPE_FLOAT32;
  gsize block = (gsize) blocks->inner * blocks->size;
  gint64 span = blocks->extent / run->n_parts + 1;
  gint64 low = begin * span, high = end * span;
  GTorchIter iter = run->inner;
  gint64 pre, b;

  for (pre = 0; pre < blocks->n_pre; pre++)
    {
      char *base = pre_base (blocks, pre);
      char *dense = run->dense + (gsize) (pre * blocks->n_index) * block;

      if (slots != NULL)
        move_crowds (run, base, low, high, FALSE);
      if (singles)
        add_singles (run, base, (const float *) (gconstpointer) dense, low, high);
      for (b = 0; b < blocks->n_index && !singles; b++, dense += block)
        {
          gint64 offset = blocks->offsets[b];

          if (offset < low || offset >= high)
            continue;
          if (slots != NULL && slots[b] != GTORCH_NO_CROWD)
            join_crowd (run, run->sums + slots[b] * run->n_sums, dense);
          else if (!blocks->inner_contiguous)
            {
              iter.data[0] = dense;
              iter.data[1] = base + offset;
              gtorch_iter_range (&iter, 0, iter.numel, inner_copy, (gpointer) run);
            }
          else if (run->add != NULL)
            run->add (base + offset, blocks->size, dense, blocks->size, blocks->inner);
          else
            memcpy (base + offset, dense, block);
        }
      if (slots != NULL)
        move_crowds (run, base, low, high, TRUE);
    }
}

/* Prepares an iterator over one block: contiguous elements of `size` bytes, and the block of the target. */
static void
inner_iter_init (GTorchIter *iter, const GTorchBlocks *blocks, char *dense, gsize size)
{
  gint64 strides[GTORCH_MAX_DIMS];
  const gint64 *rows[] = { strides, blocks->inner_strides };
  char *data[] = { dense, gtorch_impl_data (blocks->indexed) };
  const gsize sizes[] = { size, blocks->size };

  gtorch_contiguous_strides (blocks->inner_shape, blocks->n_inner_dims, strides);
  gtorch_iter_init_raw (iter, data, rows, sizes, 2, blocks->inner_shape, blocks->n_inner_dims);
}

gboolean
gtorch_blocks_run (const GTorchBlocks *blocks, char *dense, GTorchBlocksMode mode, GTorchImpl *from,
                   GError **error)
{
  g_auto (GTorchCrowds) crowds = { NULL };
  g_autofree double *sums = NULL;
  guint dtype = blocks->indexed->dtype;
  gboolean is_complex = gtorch_dtype_kind (dtype) == GTORCH_KIND_COMPLEX;
  gint64 total = blocks->n_pre * blocks->n_index;
  Run run = { .blocks = blocks, .dense = dense, .mode = mode, .crowds = &crowds };

  if (mode == GTORCH_BLOCKS_ADD)
    run.add = gtorch_cpu_add (dtype);
  else if (mode == GTORCH_BLOCKS_MUL)
    run.add = gtorch_cpu_fold (dtype, GTORCH_INDEX_REDUCTION_PROD);
  if (run.add != NULL && total > 0 && blocks->inner > 0
      && !gtorch_crowds_init (&crowds, blocks->offsets, blocks->n_index, MAX (blocks->unit, 1),
                              blocks->extent, dtype, error))
    return FALSE;
  if (crowds.slots != NULL)
    {
      run.real = is_complex ? GTORCH_DTYPE_FLOAT32 : dtype;
      run.n_sums = blocks->inner * (is_complex ? 2 : 1);
      run.sums = sums = gtorch_scratch_new (crowds.n_slots, run.n_sums * sizeof *sums, error);
      if (sums == NULL)
        return FALSE;
      inner_iter_init (&run.wide, blocks, (char *) sums, is_complex ? 16 : 8);
    }
  if (from != NULL)
    gtorch_cpu_copy (blocks->indexed, from);
  if (total == 0 || blocks->inner == 0)
    return TRUE;
  if (!blocks->inner_contiguous)
    inner_iter_init (&run.inner, blocks, dense, blocks->size);
  if (mode == GTORCH_BLOCKS_GET)
    gtorch_parallel_for (total, MAX (GTORCH_CPU_GRAIN / blocks->inner, 1), get_part, &run);
  else
    {
      run.n_parts = total * blocks->inner < 2 * GTORCH_CPU_GRAIN ? 1 : gtorch_get_num_threads ();
      gtorch_parallel_for (run.n_parts, 1, write_part, &run);
    }
  return TRUE;
}
