/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The driver of the reductions. There are two ways through memory:
 *
 * - inner: the elements of one output are contiguous (or gathered into a buffer, block by block);
 * - outer: a kept dimension is contiguous, so whole rows are added to a row of accumulators.
 *
 * Either way, the reduced elements of an output are divided into blocks of a fixed size. A work item is one
 * block of one output (inner) or of one tile of outputs (outer); items are distributed over the threads,
 * and the blocks' results are combined pairwise at the end. */

#include "config.h"

#include <string.h>

#include "cpu/gtorch-cpu-cast.h"
#include "cpu/gtorch-cpu-iter.h"
#include "cpu/ops/gtorch-cpu-reduce.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"
#include "device/gtorch-scratch-private.h"

#define TILE      512  /* columns of an outer reduction that are processed together */
#define OUTPUTS   64   /* outputs of an inner reduction that are finished together */
#define CONVERTED 2048 /* elements of one output that are reduced at once if they are converted */
#define NARROW    32   /* fewer columns are widened: several rows count as one */

typedef const GTorchReduceLoop *const (*ReduceTable)[GTORCH_N_DTYPES];

#define DECLARE_TABLE(isa) \
  extern const GTorchReduceLoop *const gtorch_reduce_table_##isa[][GTORCH_N_DTYPES];
DECLARE_TABLE (baseline)
#ifdef GTORCH_HAVE_ISA_V3
DECLARE_TABLE (v3)
#endif
#ifdef GTORCH_HAVE_ISA_V4
DECLARE_TABLE (v4)
#endif

const GTorchReduceLoop *
gtorch_cpu_reduce_loop (const GTorchOpClass *op, guint dtype)
{
  ReduceTable table = GTORCH_ISA_CALL (gtorch_reduce_table);

  return table[op->loop][dtype];
}

typedef struct
{
  guint n;
  gint64 shape[GTORCH_MAX_DIMS];
  gint64 strides[GTORCH_MAX_DIMS];     /* strides of the input, in elements */
  gint64 out_strides[GTORCH_MAX_DIMS]; /* strides of the output; kept dimensions only */
  gint64 numel;
} Dims;

typedef struct
{
  const GTorchReduceLoop *loop;
  GTorchCast load;  /* converts to the compute dtype */
  GTorchCast store; /* converts from the compute dtype */
  gboolean direct;  /* the input has the compute dtype */
  gsize in_size, size, out_size;
  const char *input;
  char *output;
  Dims kept, reduced; /* the last dimension is the innermost */
  gint64 n_blocks, block;
  gint64 n_columns, column_stride, n_tiles; /* outer reductions only */
  char *partials;                           /* [n_blocks][n_out], if n_blocks > 1 */
  gint64 n_out;
} Reduce;

static void
dims_add (Dims *dims, gint64 shape, gint64 stride, gint64 out_stride)
{
  guint last = dims->n - 1;

  dims->numel *= shape;
  if (shape == 1)
    return;
  if (dims->n > 0 && dims->strides[last] == stride * shape
      && dims->out_strides[last] == out_stride * shape)
    {
      dims->shape[last] *= shape;
      dims->strides[last] = stride;
      dims->out_strides[last] = out_stride;
      return;
    }
  dims->shape[dims->n] = shape;
  dims->strides[dims->n] = stride;
  dims->out_strides[dims->n++] = out_stride;
}

static gint64
dims_offset (const Dims *dims, gint64 index, gint64 *out)
{
  gint64 offset = 0;
  guint i;

  *out = 0;
  for (i = dims->n; i-- > 0 && index > 0;)
    {
      gint64 k = index % dims->shape[i];

      index /= dims->shape[i];
      offset += k * dims->strides[i];
      *out += k * dims->out_strides[i];
    }
  return offset;
}

/* Stores the accumulators of outputs [out, out + n out_stride) as partial or final results. */
static void
put (const Reduce *r, gint64 block, char *acc, gint64 out, gint64 out_stride, gint64 n)
{
  if (r->n_blocks > 1)
    {
      char *to = r->partials + (block * r->n_out + out) * (gint64) r->size;
      gint64 i;

      if (out_stride == 1 || n == 1)
        memcpy (to, acc, n * r->size);
      else
        for (i = 0; i < n; i++)
          memcpy (to + i * out_stride * (gint64) r->size, acc + i * r->size, r->size);
      return;
    }
  r->loop->finish (acc, n, r->reduced.numel);
  r->store (r->output + out * (gint64) r->out_size, out_stride * (gint64) r->out_size, acc, r->size,
            n);
}

static void
inner_items (gint64 begin, gint64 end, gpointer user_data)
{
  const Reduce *r = user_data;
  char buffer[GTORCH_REDUCE_BLOCK * 16] __attribute__ ((aligned (64))); /* for gathered ones, too */
  const Dims *reduced = &r->reduced;
  gint64 run = reduced->n > 0 ? reduced->shape[reduced->n - 1] : 1;
  gint64 step = reduced->n > 0 ? reduced->strides[reduced->n - 1] : 1;
  gboolean direct = r->direct && reduced->n <= 1 && step == 1;
  char accs[OUTPUTS * 16] __attribute__ ((aligned (16)));
  gint64 item, n_accs = 0;

  for (item = begin; item < end; item++)
    {
      gint64 output = r->n_blocks == 1 ? item : item / r->n_blocks;
      gint64 block = r->n_blocks == 1 ? 0 : item % r->n_blocks;
      gint64 first = block * r->block;
      gint64 n = MIN (r->block, reduced->numel - first);
      gint64 out, ignored, done;
      char *acc = accs + n_accs * (gint64) r->size;
      const char *base = r->input + dims_offset (&r->kept, output, &out) * (gint64) r->in_size;

      if (direct)
        r->loop->inner (base + first * (gint64) r->size, n, acc);
      else
        {
          for (done = 0; done < n;)
            {
              gint64 at = (first + done) % run;
              gint64 m = MIN (run - at, n - done);
              const char *from =
                  base + dims_offset (reduced, first + done, &ignored) * (gint64) r->in_size;

              r->load (buffer + done * r->size, r->size, from, step * (gint64) r->in_size, m);
              done += m;
            }
          r->loop->inner (buffer, n, acc);
        }
      /* outputs are numbered in memory order, so several can be finished together */
      if (r->n_blocks > 1)
        put (r, block, acc, out, 1, 1);
      else if (++n_accs == OUTPUTS || item + 1 == end)
        {
          put (r, 0, accs, output + 1 - n_accs, 1, n_accs);
          n_accs = 0;
        }
    }
}

/* Adds rows of n columns to acc. */
static void
add_rows (const Reduce *r, const char *from, gint64 stride, gint64 rows, gint64 n, char *acc,
          char *buffer)
{
  gint64 i, j;

  if (!r->direct)
    {
      for (i = 0; i < rows; i += 4)
        {
          for (j = i; j < MIN (i + 4, rows); j++)
            r->load (buffer + (j - i) * n * r->size, r->size,
                     from + j * stride * (gint64) r->in_size, r->in_size, n);
          r->loop->outer (buffer, n, MIN (4, rows - i), n, acc);
        }
      return;
    }
  if (stride == n && n < NARROW && rows >= 2 * NARROW / n)
    {
      gint64 group = NARROW / n;
      char *wide = buffer;

      r->loop->init (wide, group * n);
      r->loop->outer (from, group * n, rows / group, group * n, wide);
      for (i = 0; i < group; i++)
        r->loop->combine (acc, wide + i * n * r->size, n);
      from += rows / group * group * n * r->size;
      rows %= group;
    }
  r->loop->outer (from, stride, rows, n, acc);
}

static void
outer_items (gint64 begin, gint64 end, gpointer user_data)
{
  const Reduce *r = user_data;
  const Dims *reduced = &r->reduced;
  gint64 run = reduced->n > 0 ? reduced->shape[reduced->n - 1] : 1;
  gint64 step = reduced->n > 0 ? reduced->strides[reduced->n - 1] : 0;
  char acc[TILE * 16] __attribute__ ((aligned (64)));
  char buffer[4 * TILE * 16] __attribute__ ((aligned (64)));
  gint64 item;

  for (item = begin; item < end; item++)
    {
      gint64 tile = item % r->n_tiles * TILE;
      gint64 block = item / r->n_tiles % r->n_blocks;
      gint64 n = MIN (TILE, r->n_columns - tile);
      gint64 first = block * r->block;
      gint64 n_rows = MIN (r->block, reduced->numel - first);
      gint64 out, ignored, done;
      const char *base = r->input
                         + (tile + dims_offset (&r->kept, item / r->n_tiles / r->n_blocks, &out))
                               * (gint64) r->in_size;

      r->loop->init (acc, n);
      for (done = 0; done < n_rows;)
        {
          gint64 m = MIN (run - (first + done) % run, n_rows - done);

          add_rows (r, base + dims_offset (reduced, first + done, &ignored) * (gint64) r->in_size,
                    step, m, n, acc, buffer);
          done += m;
        }
      put (r, block, acc, out + tile * r->column_stride, r->column_stride, n);
    }
}

/* Returns the kept dimension that is contiguous and long enough to be a row, or -1. */
static gint
column_dim (const Reduce *r)
{
  guint i;

  if (r->reduced.n > 0 && r->reduced.strides[r->reduced.n - 1] == 1
      && r->reduced.shape[r->reduced.n - 1] > 4)
    return -1;
  for (i = 0; i < r->kept.n; i++)
    if (r->kept.strides[i] == 1)
      return i;
  return -1;
}

static void
take_column_dim (Reduce *r, guint column)
{
  guint i;

  r->n_columns = r->kept.shape[column];
  r->column_stride = r->kept.out_strides[column];
  r->kept.n--;
  for (i = column; i < r->kept.n; i++)
    {
      r->kept.shape[i] = r->kept.shape[i + 1];
      r->kept.strides[i] = r->kept.strides[i + 1];
      r->kept.out_strides[i] = r->kept.out_strides[i + 1];
    }
  r->n_tiles = (r->n_columns + TILE - 1) / TILE;
}

gboolean
gtorch_cpu_reduce_run (const GTorchReduceLoop *loop, guint dtype, const GTorchImpl *input,
                       guint64 mask, GTorchImpl *output, GError **error)
{
  Reduce r = { .loop = loop, .n_out = output->numel };
  gint64 out_stride = output->numel;
  gint64 n_items, grain, width;
  g_autofree char *partials = NULL;
  gint column;
  guint i;

  if (output->numel == 0)
    return TRUE;
  r.load = gtorch_cpu_cast (dtype, input->dtype);
  r.store = gtorch_cpu_cast (output->dtype, dtype);
  r.direct = input->dtype == dtype;
  r.in_size = gtorch_dtype_size (input->dtype);
  r.size = gtorch_dtype_size (dtype);
  r.out_size = gtorch_dtype_size (output->dtype);
  r.input = gtorch_impl_data (input);
  r.output = gtorch_impl_data (output);
  r.kept.numel = r.reduced.numel = 1;
  for (i = 0; i < input->n_dims; i++)
    if (mask & (G_GUINT64_CONSTANT (1) << i))
      dims_add (&r.reduced, input->shape[i], input->strides[i], 0);
    else
      {
        out_stride /= input->shape[i];
        dims_add (&r.kept, input->shape[i], input->strides[i], out_stride);
      }

  if (r.reduced.numel == 0)
    {
      double acc[2];

      loop->init (acc, 1);
      loop->finish (acc, 1, 0);
      r.store (r.output, r.out_size, (char *) acc, 0, output->numel);
      return TRUE;
    }

  column = column_dim (&r);
  if (column >= 0)
    {
      take_column_dim (&r, column);
      r.block = GTORCH_REDUCE_ROWS * MAX (1, NARROW / r.n_columns);
      width = MIN (TILE, r.n_columns);
    }
  else
    {
      r.n_tiles = 1;
      r.block = r.direct ? GTORCH_REDUCE_BLOCK : CONVERTED;
      width = 1;
    }
  r.n_blocks = (r.reduced.numel + r.block - 1) / r.block;
  if (r.n_blocks > 1)
    {
      gint64 n_partials;

      if (__builtin_mul_overflow (r.n_blocks, r.n_out, &n_partials))
        n_partials = G_MAXINT64;
      partials = gtorch_scratch_new (n_partials, r.size, error);
      if (partials == NULL)
        return FALSE;
      r.partials = partials;
    }

  n_items = column >= 0 ? r.n_out / r.n_columns * r.n_tiles * r.n_blocks : r.n_out * r.n_blocks;
  grain = GTORCH_CPU_GRAIN / MAX (1, MIN (r.block, r.reduced.numel) * width);
  gtorch_parallel_for (n_items, MAX (grain, 1), column >= 0 ? outer_items : inner_items, &r);

  if (r.n_blocks > 1)
    {
      gint64 n, half, row = r.n_out * (gint64) r.size;

      for (n = r.n_blocks; n > 1; n = half)
        {
          half = (n + 1) / 2;
          loop->combine (partials, partials + half * row, (n - half) * r.n_out);
        }
      loop->finish (partials, r.n_out, r.reduced.numel);
      r.store (r.output, r.out_size, partials, r.size, r.n_out);
    }
  return TRUE;
}

/* Returns the dtype to accumulate in. Pairwise addition keeps the rounding error of sums small; in a
 * product the errors of all factors accumulate, so products use twice the width. */
static guint
accumulated_in (const GTorchOpCall *call)
{
  guint dtype = gtorch_dtype_infos[call->compute].compute;

  if (call->op->id != GTORCH_OP_PROD)
    return dtype;
  if (dtype == GTORCH_DTYPE_FLOAT32)
    return GTORCH_DTYPE_FLOAT64;
  return dtype == GTORCH_DTYPE_COMPLEX64 ? GTORCH_DTYPE_COMPLEX128 : dtype;
}

gboolean
gtorch_cpu_reduce (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  guint dtype = accumulated_in (call);
  gboolean keepdim;
  guint64 mask;
  guint ignored;

  return gtorch_reduce_parse (call, &mask, &keepdim, &ignored, error)
         && gtorch_cpu_reduce_run (gtorch_cpu_reduce_loop (call->op, dtype), dtype, call->inputs[0],
                                   mask, call->outputs[0], error);
}
