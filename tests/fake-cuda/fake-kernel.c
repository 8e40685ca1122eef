/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Kernels, found by name and executed with the loops of the CPU: fill, copy and conversion, element-wise
 * operations and reductions. They check their launch as strictly as a GPU: the device fails if the grid
 * is too small, pointers are misaligned for vectors, or memory is not mapped. */

#include "config.h"

#include <stdio.h>
#include <string.h>

#include "cpu/gtorch-cpu-cast.h"
#include "cpu/ops/gtorch-cpu-reduce.h"
#include "gtorch-ops-private.h"
#include "fake-cuda-private.h"
#include "kernels/gtorch-index-params.h"
#include "kernels/gtorch-linalg-params.h"
#include "kernels/gtorch-shape-ops-params.h"

#define BLOCK 256 /* elements that are buffered together */

static GHashTable *kernels; /* maps the name to the kernel */

static const gchar *const suffixes[GTORCH_N_DTYPES] = {
  [GTORCH_DTYPE_FLOAT32] = "f32",   [GTORCH_DTYPE_FLOAT64] = "f64",
  [GTORCH_DTYPE_FLOAT16] = "f16",   [GTORCH_DTYPE_BFLOAT16] = "bf16",
  [GTORCH_DTYPE_INT8] = "i8",       [GTORCH_DTYPE_UINT8] = "u8",
  [GTORCH_DTYPE_INT16] = "i16",     [GTORCH_DTYPE_INT32] = "i32",
  [GTORCH_DTYPE_INT64] = "i64",     [GTORCH_DTYPE_BOOL] = "bool",
  [GTORCH_DTYPE_COMPLEX64] = "c64", [GTORCH_DTYPE_COMPLEX128] = "c128",
};

static CUresult
refuse (const FakeKernel *kernel, const gchar *why)
{
  fprintf (stderr, "fake-cuda: %s: %s\n", kernel->name, why);
  return CUDA_ERROR_LAUNCH_FAILED;
}

static gboolean
is_covered (const FakeGrid *grid, guint64 n, guint per_thread)
{
  return grid->block[0] == GT_THREADS && grid->grid[1] == 1
         && (guint64) grid->grid[0] * GT_THREADS * per_thread >= n;
}

static gboolean
is_aligned (const GtContiguous *p, guint k)
{
  return ((guintptr) p->data[k] & 15) == 0;
}

/* --- elements in any layout --- */

typedef struct
{
  guint n_operands;
  guint64 numel;
  guint n_dims;
  gint64 shape[GT_MAX_DIMS];
  gint64 strides[GT_MAX_DIMS][GT_MAX_OPERANDS]; /* in bytes, the inner dimension first */
  char *data[GT_MAX_OPERANDS];                  /* first device addresses, then host addresses */
  guint sizes[GT_MAX_OPERANDS];
  guint32 numbers; /* bit mask of operands that are numbers on the host */
} Walk;

typedef void (*WalkFunc) (char *const *data, const gint64 *strides, gint64 n, gpointer user_data);

static CUresult
walk (Walk *w, const FakeDevice *device, WalkFunc func, gpointer user_data)
{
  gint64 outer = 1, i;
  guint d, k;

  if (w->n_dims == 0)
    {
      w->n_dims = 1;
      w->shape[0] = 1;
    }
  for (k = 0; k < w->n_operands; k++)
    {
      gint64 low = 0, high = w->sizes[k];
      char *start;

      if (w->numbers & (1u << k))
        continue;
      for (d = 0; d < w->n_dims; d++)
        *(w->strides[d][k] < 0 ? &low : &high) += (w->shape[d] - 1) * w->strides[d][k];
      start = fake_memory_at ((guintptr) w->data[k] + low, high - low, device);
      if (start == NULL)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
      w->data[k] = start - low;
    }
  for (d = 1; d < w->n_dims; d++)
    outer *= w->shape[d];
  for (i = 0; i < outer; i++)
    {
      char *data[GT_MAX_OPERANDS];
      gint64 rest = i;

      memcpy (data, w->data, sizeof data);
      for (d = 1; d < w->n_dims; d++)
        {
          for (k = 0; k < w->n_operands; k++)
            if (!(w->numbers & (1u << k)))
              data[k] += rest % w->shape[d] * w->strides[d][k];
          rest /= w->shape[d];
        }
      func (data, w->strides[0], w->shape[0], user_data);
    }
  return CUDA_SUCCESS;
}

static Walk
walk_strided (const GtStrided *p, guint n_operands)
{
  Walk w = { .n_operands = n_operands, .n_dims = p->n_dims, .numbers = p->base.numbers };
  guint d, k;

  for (d = 0; d < p->n_dims; d++)
    {
      w.shape[d] = p->shape[d].divisor;
      for (k = 0; k < n_operands; k++)
        w.strides[d][k] = p->strides[d][k];
    }
  for (k = 0; k < n_operands; k++)
    w.data[k] = p->base.data[k];
  return w;
}

/* --- element-wise --- */

typedef struct
{
  GTorchLoop loop;
  guint n_operands;
  GTorchAttr attrs[GT_MAX_ATTRS];
  GTorchCast casts[GT_MAX_OPERANDS]; /* NULL: a number in the compute dtype */
  guint sizes[GT_MAX_OPERANDS];      /* of the loop's inputs and outputs */
} Pointwise;

static void
run_elements (char *const *data, const gint64 *strides, gint64 n, gpointer user_data)
{
  const Pointwise *op = user_data;
  char buffers[GT_MAX_OPERANDS][BLOCK * 16] __attribute__ ((aligned (64)));
  gint64 i;
  guint k;

  for (i = 0; i < n; i += BLOCK)
    {
      gint64 m = MIN (n - i, BLOCK);
      char *at[GT_MAX_OPERANDS];
      gint64 steps[GT_MAX_OPERANDS];

      for (k = 0; k < op->n_operands; k++)
        {
          at[k] = buffers[k];
          steps[k] = op->sizes[k];
          if (k == 0)
            continue;
          if (op->casts[k] == NULL)
            {
              at[k] = data[k];
              steps[k] = 0;
            }
          else
            op->casts[k](buffers[k], op->sizes[k], data[k] + i * strides[k], strides[k], m);
        }
      op->loop (at, steps, m, op->attrs);
      op->casts[0](data[0] + i * strides[0], strides[0], buffers[0], op->sizes[0], m);
    }
}

/* dtypes: of the operands in memory. */
static CUresult
run_pointwise (const FakeKernel *kernel, const GtContiguous *p, const guint8 *dtypes, Walk *w,
               const FakeDevice *device)
{
  const GTorchOpClass *class = kernel->op;
  guint compute = gtorch_dtype_infos[kernel->dtype].compute, given = compute, k;
  GtNumber numbers[GT_MAX_OPERANDS] __attribute__ ((aligned (16)));
  Pointwise op = { gtorch_cpu_loop (class->loop, compute), w->n_operands };

  if (class->promote == GTORCH_PROMOTE_BOOL)
    given = GTORCH_DTYPE_BOOL;
  else if (class->promote == GTORCH_PROMOTE_REAL)
    given = gtorch_dtype_infos[compute].real;
  for (k = 0; k < class->n_attrs; k++)
    {
      op.attrs[k].i = p->attrs[k].i;
      /* the value of a number if the computation uses integers */
      op.attrs[k].number.i = p->attrs[k].i;
    }
  for (k = 0; k < w->n_operands; k++)
    {
      op.sizes[k] = gtorch_dtype_size (k > 0 ? compute : given);
      w->sizes[k] = gtorch_dtype_size (dtypes[k]);
      if (p->numbers & (1u << k))
        {
          numbers[k] = p->number[k - 1];
          w->data[k] = (char *) &numbers[k];
          continue;
        }
      op.casts[k] =
          k > 0 ? gtorch_cpu_cast (compute, dtypes[k]) : gtorch_cpu_cast (dtypes[k], given);
    }
  return walk (w, device, run_elements, &op);
}

static void
stored_dtypes (const FakeKernel *kernel, guint8 *dtypes)
{
  const GTorchOpClass *class = kernel->op;

  memset (dtypes, kernel->dtype, GT_MAX_OPERANDS);
  if (class->promote == GTORCH_PROMOTE_BOOL)
    dtypes[0] = GTORCH_DTYPE_BOOL;
  else if (class->promote == GTORCH_PROMOTE_REAL)
    dtypes[0] = gtorch_dtype_infos[kernel->dtype].real;
}

static guint
vector_of (const guint8 *dtypes)
{
  return 16 / MAX (gtorch_dtype_size (dtypes[0]), gtorch_dtype_size (dtypes[1]));
}

static CUresult
run_contiguous (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
                const FakeDevice *device)
{
  const GtContiguous *p = parameter;
  Walk w = { .n_operands = ((const GTorchOpClass *) kernel->op)->n_inputs + 1,
             .n_dims = 1,
             .shape = { p->n },
             .numbers = p->numbers };
  guint8 dtypes[GT_MAX_OPERANDS];
  guint k;

  stored_dtypes (kernel, dtypes);
  if (!is_covered (grid, p->n / vector_of (dtypes), GT_VECTORS))
    return refuse (kernel, "the grid is too small");
  for (k = 0; k < w.n_operands; k++)
    {
      w.data[k] = p->data[k];
      w.strides[0][k] = gtorch_dtype_size (dtypes[k]);
      if (!(p->numbers & (1u << k)) && !is_aligned (p, k))
        return refuse (kernel, "a pointer is not aligned");
    }
  return run_pointwise (kernel, p, dtypes, &w, device);
}

static CUresult
run_rows (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
          const FakeDevice *device)
{
  const GtRows *p = parameter;
  const GtContiguous *base = &p->base;
  guint8 dtypes[GT_MAX_OPERANDS];
  guint vector, k;
  Walk w = { .n_operands = ((const GTorchOpClass *) kernel->op)->n_inputs + 1,
             .n_dims = 2,
             .numbers = base->numbers };

  stored_dtypes (kernel, dtypes);
  vector = vector_of (dtypes);
  w.shape[0] = (gint64) p->inner.divisor * vector;
  w.shape[1] = base->n / p->inner.divisor;
  if (!is_covered (grid, base->n, GT_VECTORS) || base->n % p->inner.divisor != 0)
    return refuse (kernel, "the grid is too small, or rows are not whole");
  for (k = 0; k < w.n_operands; k++)
    {
      gint64 size = gtorch_dtype_size (dtypes[k]);

      w.data[k] = base->data[k];
      w.strides[0][k] = k == 0 || p->column_strides[k] ? size : 0;
      w.strides[1][k] = k == 0                 ? w.shape[0] * size
                        : p->column_strides[k] ? (gint64) p->row_strides[k] * vector * size
                                               : (gint64) p->row_strides[k] * size;
      if (!(base->numbers & (1u << k)) && (k == 0 || p->column_strides[k]) && !is_aligned (base, k))
        return refuse (kernel, "a pointer is not aligned");
    }
  return run_pointwise (kernel, base, dtypes, &w, device);
}

static CUresult
run_strided (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
             const FakeDevice *device)
{
  const GtStrided *p = parameter;
  Walk w = walk_strided (p, ((const GTorchOpClass *) kernel->op)->n_inputs + 1);

  if (!is_covered (grid, p->base.n, GT_STEPS))
    return refuse (kernel, "the grid is too small");
  return run_pointwise (kernel, &p->base, p->dtypes, &w, device);
}

/* --- copies and filling --- */

static CUresult
run_cast (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
          const FakeDevice *device)
{
  const GtContiguous *p = parameter;
  gsize to_size = gtorch_dtype_size (kernel->dtype), from_size = gtorch_dtype_size (kernel->from);
  char *to = fake_memory_at ((guintptr) p->data[0], p->n * to_size, device);
  char *from = fake_memory_at ((guintptr) p->data[1], p->n * from_size, device);

  if (!is_covered (grid, p->n / (16 / MAX (to_size, from_size)), GT_VECTORS))
    return refuse (kernel, "the grid is too small");
  if (!is_aligned (p, 0) || !is_aligned (p, 1))
    return refuse (kernel, "a pointer is not aligned");
  if (to == NULL || from == NULL)
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  gtorch_cpu_cast (kernel->dtype, kernel->from) (to, to_size, from, from_size, p->n);
  return CUDA_SUCCESS;
}

static void
move_elements (char *const *data, const gint64 *strides, gint64 n, gpointer user_data)
{
  gsize size = *(guint *) user_data;
  gint64 i;

  for (i = 0; i < n; i++)
    memmove (data[0] + i * strides[0], data[1] + i * strides[1], size);
}

static CUresult
run_move (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
          const FakeDevice *device)
{
  const GtStrided *p = parameter;
  Walk w = walk_strided (p, 2);
  guint size = kernel->size;

  if (!is_covered (grid, p->base.n, GT_STEPS))
    return refuse (kernel, "the grid is too small");
  w.numbers = 0;
  w.sizes[0] = w.sizes[1] = size;
  return walk (&w, device, move_elements, &size);
}

static void
convert_elements (char *const *data, const gint64 *strides, gint64 n, gpointer user_data)
{
  (*(GTorchCast *) user_data) (data[0], strides[0], data[1], strides[1], n);
}

static CUresult
run_convert (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
             const FakeDevice *device)
{
  const GtStrided *p = parameter;
  Walk w = walk_strided (p, 2);
  GTorchCast cast = gtorch_cpu_cast (p->dtypes[0], p->dtypes[1]);

  if (!is_covered (grid, p->base.n, GT_STEPS))
    return refuse (kernel, "the grid is too small");
  w.numbers = 0;
  w.sizes[0] = gtorch_dtype_size (p->dtypes[0]);
  w.sizes[1] = gtorch_dtype_size (p->dtypes[1]);
  return walk (&w, device, convert_elements, &cast);
}

typedef struct
{
  guint size;
  gconstpointer value;
} Fill;

static void
fill_elements (char *const *data, const gint64 *strides, gint64 n, gpointer user_data)
{
  const Fill *fill = user_data;
  gint64 i;

  for (i = 0; i < n; i++)
    memcpy (data[0] + i * strides[0], fill->value, fill->size);
}

static CUresult
run_fill (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
          const FakeDevice *device)
{
  const GtContiguous *p = parameter;
  Walk w = { .n_operands = 1,
             .n_dims = 1,
             .shape = { p->n },
             .strides = { { kernel->size } },
             .data = { p->data[0] },
             .sizes = { kernel->size } };

  if (!is_covered (grid, p->n * kernel->size / 16, GT_VECTORS))
    return refuse (kernel, "the grid is too small");
  if (!is_aligned (p, 0))
    return refuse (kernel, "a pointer is not aligned");
  return walk (&w, device, fill_elements, &(Fill){ kernel->size, &p->number[0] });
}

static CUresult
run_spread (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
            const FakeDevice *device)
{
  const GtStrided *p = parameter;
  Walk w = walk_strided (p, 1);

  if (!is_covered (grid, p->base.n, GT_STEPS))
    return refuse (kernel, "the grid is too small");
  w.numbers = 0;
  w.sizes[0] = kernel->size;
  return walk (&w, device, fill_elements, &(Fill){ kernel->size, &p->base.number[0] });
}

static CUresult
run_transpose (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
               const FakeDevice *device)
{
  const GtTranspose *p = parameter;
  gint64 size = kernel->size;
  guint64 n_batches = 1;
  guint copied = kernel->size, d;
  Walk w = { .n_operands = 2,
             .n_dims = p->n_dims + 2,
             .shape = { p->columns, p->rows },
             .strides = { { size, p->src_column * size }, { p->dst_row * size, size } },
             .data = { p->dst, (char *) p->src },
             .sizes = { copied, copied } };

  for (d = 0; d < p->n_dims; d++)
    {
      w.shape[d + 2] = p->shape[d].divisor;
      w.strides[d + 2][0] = p->strides[d][0];
      w.strides[d + 2][1] = p->strides[d][1];
      n_batches *= p->shape[d].divisor;
    }
  if (grid->block[0] != 256 || grid->grid[0] != n_batches * p->tiles.divisor
      || p->tiles.divisor != (guint64) ((p->rows + 63) / 64) * ((p->columns + 63) / 64)
      || p->tiles_across.divisor != (p->rows + 63) / 64)
    return refuse (kernel, "the grid does not fit");
  return walk (&w, device, move_elements, &copied);
}

/* --- reductions --- */

/* Returns a column of n elements, `stride` elements apart, in the compute dtype; free it. */
static char *
gather (const char *x, guint64 n, guint64 stride, guint dtype, guint compute)
{
  gsize size = gtorch_dtype_size (dtype), wide = gtorch_dtype_size (compute);
  char *buffer = g_aligned_alloc (1, n * wide + 64, 64);

  gtorch_cpu_cast (compute, dtype) (buffer, wide, x, stride * size, n);
  return buffer;
}

typedef struct
{
  const FakeKernel *kernel;
  const GtReduce *p;
  const GTorchReduceLoop *loop;
  guint compute, stored;
  char *src, *dst, *partial;
} Reduce;

static void
put_result (const Reduce *r, guint64 at, char *acc)
{
  gsize size = gtorch_dtype_size (r->stored);

  r->loop->finish (acc, 1, r->p->n_total);
  gtorch_cpu_cast (r->stored, r->compute) (r->dst + at * size, size, acc, 16, 1);
}

static void
reduce_part (const Reduce *r, guint64 o, guint64 i, guint split, guint64 part, guint64 partial_at)
{
  const GtReduce *p = r->p;
  guint64 begin = MIN (split * part, p->n), end = MIN (begin + part, p->n);
  gsize size = gtorch_dtype_size (r->kernel->dtype), wide = gtorch_dtype_size (r->compute);
  char acc[16] __attribute__ ((aligned (16)));
  char *x = gather (r->src + (o * p->pitch + begin * p->inner + i) * size, end - begin, p->inner,
                    r->kernel->dtype, r->compute);

  r->loop->inner (x, end - begin, acc);
  g_aligned_free (x);
  if (p->n_splits > 1)
    memcpy (r->partial + partial_at * wide, acc, wide);
  else
    put_result (r, o * p->inner + i, acc);
}

static CUresult
run_reduce (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
            const FakeDevice *device)
{
  const GtReduce *p = parameter;
  const GTorchOpClass *class = kernel->op;
  guint compute = gtorch_dtype_infos[kernel->dtype].compute;
  Reduce r = { .kernel = kernel, .p = p, .compute = compute };
  gboolean is_rows = kernel->size == 0, is_parts = kernel->size == 2;
  guint64 splits = MAX (p->n_splits, 1), n_out = p->outer * p->inner, o, i, part;
  guint split;

  r.loop = gtorch_cpu_reduce_loop (class, compute);
  r.stored = class->promote == GTORCH_PROMOTE_BOOL ? GTORCH_DTYPE_BOOL : kernel->dtype;
  if (is_parts)
    n_out = p->inner;
  if (is_parts  ? (guint64) grid->grid[0] * 256 < p->inner
      : is_rows ? (p->n_splits == 0 ? (guint64) grid->grid[0] * 8 < p->outer
                                    : grid->grid[0] != p->outer * splits)
                      || p->inner != 1
                : grid->grid[0] != p->outer * ((p->inner + 31) / 32) || grid->grid[1] != splits)
    return refuse (kernel, "the grid does not fit");

  if (is_parts || p->n_splits > 1)
    {
      r.partial =
          fake_memory_at ((guintptr) p->partial,
                          (is_parts ? p->n : splits) * n_out * gtorch_dtype_size (compute), device);
      if (r.partial == NULL)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
  if (is_parts || p->n_splits <= 1)
    {
      r.dst = fake_memory_at ((guintptr) p->dst, n_out * gtorch_dtype_size (r.stored), device);
      if (r.dst == NULL)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
  if (is_parts)
    {
      gsize wide = gtorch_dtype_size (compute);

      for (i = 0; i < p->inner; i++)
        {
          char acc[16] __attribute__ ((aligned (16))), other[16] __attribute__ ((aligned (16)));

          memcpy (acc, r.partial + i * wide, wide);
          for (o = 1; o < p->n; o++)
            {
              memcpy (other, r.partial + (o * p->inner + i) * wide, wide);
              r.loop->combine (acc, other, 1);
            }
          put_result (&r, i, acc);
        }
      return CUDA_SUCCESS;
    }

  r.src = fake_memory_at ((guintptr) p->src,
                          ((p->outer - 1) * p->pitch + p->n * p->inner)
                              * gtorch_dtype_size (kernel->dtype),
                          device);
  if (r.src == NULL && p->n > 0)
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  part = (p->n + splits - 1) / splits;
  if (is_rows && p->n_splits > 0)
    part = (part + 15) / 16 * 16;
  for (split = 0; split < splits; split++)
    for (o = 0; o < p->outer; o++)
      for (i = 0; i < p->inner; i++)
        reduce_part (&r, o, i, split, part, (split * p->outer + o) * p->inner + i);
  return CUDA_SUCCESS;
}

/* --- values that shapes depend on: the number of true elements, and the maximum --- */

static CUresult
run_count_flags (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
                 const FakeDevice *device)
{
  const GtCountFlags *p = parameter;
  gint64 n_parts = (p->n + p->part - 1) / p->part, i;
  const guint8 *flags = fake_memory_at ((guintptr) p->flags, p->n, device);
  gint64 *counts = fake_memory_at ((guintptr) p->counts, n_parts * 8, device);

  if (flags == NULL || counts == NULL)
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  memset (counts, 0, n_parts * 8);
  for (i = 0; i < p->n; i++)
    counts[i / p->part] += flags[i] != 0;
  return CUDA_SUCCESS;
}

static CUresult
run_sum_before (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
                const FakeDevice *device)
{
  const GtSumBefore *p = parameter;
  gint64 *x = fake_memory_at ((guintptr) p->x, (p->n + 1) * 8, device);
  gint64 sum = 0, i;

  if (grid->grid[0] != 1)
    return refuse (kernel, "there must be one block");
  if (x == NULL)
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  for (i = 0; i < p->n; i++)
    {
      gint64 own = x[i];

      x[i] = sum;
      sum += own;
    }
  x[i] = sum;
  return CUDA_SUCCESS;
}

static CUresult
run_bounds (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
            const FakeDevice *device)
{
  const GtBounds *p = parameter;
  const gint64 *x = fake_memory_at ((guintptr) p->x, p->n * 8, device);
  gint64 *bounds = fake_memory_at ((guintptr) p->bounds, 16, device);
  gint64 i;

  if (x == NULL || bounds == NULL)
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  for (i = 0; i < p->n; i++)
    {
      bounds[0] = MAX (bounds[0], x[i] < G_MAXINT64 ? x[i] + 1 : x[i]);
      bounds[1] = MAX (bounds[1], x[i] == G_MININT64 ? G_MAXINT64 : -x[i]);
    }
  return CUDA_SUCCESS;
}

/* --- addresses of matrices --- */

static CUresult
run_addresses (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
               const FakeDevice *device)
{
  const GtAddresses *p = parameter;
  char **addresses = fake_memory_at ((guintptr) p->addresses, p->count * 8, device);
  gint64 i;

  if (addresses == NULL)
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  for (i = 0; i < p->count; i++)
    addresses[i] = p->first + i * p->step;
  return CUDA_SUCCESS;
}

/* --- lookup by name --- */

guint
fake_kernel_find_dtype (const gchar *suffix)
{
  guint i;

  for (i = 1; i < GTORCH_N_DTYPES; i++)
    if (g_strcmp0 (suffixes[i], suffix) == 0)
      return i;
  return GTORCH_DTYPE_NONE;
}

static gboolean
parse_copy (FakeKernel *kernel, const gchar *what, const gchar *first, const gchar *second)
{
  static const struct
  {
    const gchar *name;
    CUresult (*run) (const FakeKernel *, const FakeGrid *, gconstpointer, const FakeDevice *);
    gsize n_bytes;
  } known[] = {
    { "cast", run_cast, sizeof (GtContiguous) },
    { "fill", run_fill, sizeof (GtContiguous) },
    { "move", run_move, sizeof (GtStrided) },
    { "convert", run_convert, sizeof (GtStrided) },
    { "spread", run_spread, sizeof (GtStrided) },
    { "transpose", run_transpose, sizeof (GtTranspose) },
  };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (known); i++)
    if (strcmp (known[i].name, what) == 0)
      {
        kernel->run = known[i].run;
        kernel->n_bytes = known[i].n_bytes;
        kernel->size = g_ascii_strtoull (first, NULL, 10);
        kernel->dtype = fake_kernel_find_dtype (first);
        kernel->from = second != NULL ? fake_kernel_find_dtype (second) : GTORCH_DTYPE_NONE;
        return i == 0 ? kernel->dtype != GTORCH_DTYPE_NONE && kernel->from != GTORCH_DTYPE_NONE
                      : second == NULL && (i == 3 || (kernel->size > 0 && kernel->size <= 16));
      }
  return FALSE;
}

/* Solves factor * x = product modulo 2^32 for x, with Newton's method. */
static guint32
divide (guint32 product, guint32 factor)
{
  guint32 inverse = factor;
  guint i;

  for (i = 0; i < 4; i++)
    inverse *= 2 - factor * inverse;
  return product * inverse;
}

void
fake_kernel_find_numbers (gconstpointer random, GTorchOpCall *call)
{
  const GtRandom *p = random;
  const guint32 low = p->keys[1][0] - 2 * 0x9E3779B9u, high = p->keys[1][1] - 2 * 0xBB67AE85u;

  call->seed = (guint64) high << 32 | low;
  call->counter = (guint64) divide (p->keys[0][0] ^ (low + 0x9E3779B9u), 0xCD9E8D57u) << 32
                  | divide (p->keys[0][1] ^ (high + 0xBB67AE85u), 0xD2511F53u);
}

static void
keep (GTorchStorage *storage)
{
}

/* Supports only uniform numbers of float64; computes the CPU's numbers for the same seed. */
static CUresult
run_uniform (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
             const FakeDevice *device)
{
  const GtRandom *p = parameter;
  const gint64 n = p->n;
  gpointer out = fake_memory_at ((guintptr) p->out, n * sizeof (gdouble), device);
  const GTorchAttr attrs[] = { { .d = p->wide_shift },
                               { .d = p->wide_shift + p->wide_scale },
                               { 0 } };
  GTorchOpCall call = { .op = gtorch_op_find ("uniform"),
                        .attrs = attrs,
                        .n_outputs = 1,
                        .compute = GTORCH_DTYPE_FLOAT64 };
  GTorchStorage *storage;
  gboolean done;

  if (out == NULL)
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  fake_kernel_find_numbers (p, &call);
  storage = gtorch_storage_new_foreign (NULL, out, n * sizeof (gdouble), keep, NULL);
  call.outputs[0] = gtorch_impl_new_strided (storage, GTORCH_DTYPE_FLOAT64, 0, &n, NULL, 1);
  gtorch_storage_unref (storage);
  done =
      gtorch_cpu_runs[call.op->id](&call, NULL, NULL); /* those of this library, as the tensor is */
  gtorch_impl_unref (call.outputs[0]);
  return done ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED;
}

static gboolean
parse_random (FakeKernel *kernel, const gchar *text)
{
  if (strcmp (text, "random_f64_uniform") != 0)
    return FALSE;
  kernel->run = run_uniform;
  kernel->n_bytes = sizeof (GtRandom);
  return TRUE;
}

static gboolean
parse_plain (FakeKernel *kernel, const gchar *text)
{
  static const struct
  {
    const gchar *name;
    CUresult (*run) (const FakeKernel *, const FakeGrid *, gconstpointer, const FakeDevice *);
    gsize n_bytes;
  } known[] = {
    { "count_flags_bool", run_count_flags, sizeof (GtCountFlags) },
    { "sum_before_i64", run_sum_before, sizeof (GtSumBefore) },
    { "bounds_i64", run_bounds, sizeof (GtBounds) },
    { "addresses_i64", run_addresses, sizeof (GtAddresses) },
  };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (known); i++)
    if (strcmp (known[i].name, text) == 0)
      {
        kernel->run = known[i].run;
        kernel->n_bytes = known[i].n_bytes;
      }
  return kernel->run != NULL;
}

/* Parses <op>_<dtype>, with _r, _s, _rows, _columns or _parts. */
static gboolean
parse_op (FakeKernel *kernel, gchar *text)
{
  static const struct
  {
    const gchar *name;
    CUresult (*run) (const FakeKernel *, const FakeGrid *, gconstpointer, const FakeDevice *);
    gsize n_bytes;
    guint size;
    gboolean is_reduce;
  } forms[] = {
    { "r", run_rows, sizeof (GtRows) },
    { "s", run_strided, sizeof (GtStrided) },
    { "rows", run_reduce, sizeof (GtReduce), 0, TRUE },
    { "columns", run_reduce, sizeof (GtReduce), 1, TRUE },
    { "parts", run_reduce, sizeof (GtReduce), 2, TRUE },
  };
  const GTorchOpClass *op;
  gboolean is_reduce = FALSE;
  gchar *end = strrchr (text, '_');
  guint i;

  kernel->run = run_contiguous;
  kernel->n_bytes = sizeof (GtContiguous);
  for (i = 0; end != NULL && i < G_N_ELEMENTS (forms); i++)
    if (strcmp (end + 1, forms[i].name) == 0)
      {
        kernel->run = forms[i].run;
        kernel->n_bytes = forms[i].n_bytes;
        kernel->size = forms[i].size;
        is_reduce = forms[i].is_reduce;
        *end = '\0';
        end = strrchr (text, '_');
        break;
      }
  if (end == NULL)
    return FALSE;
  kernel->dtype = fake_kernel_find_dtype (end + 1);
  *end = '\0';
  kernel->op = op = gtorch_op_find (text);
  if (op == NULL || op->loop < 0 || kernel->dtype == GTORCH_DTYPE_NONE)
    return FALSE;
  return is_reduce ? gtorch_cpu_reduce_loop (op, gtorch_dtype_infos[kernel->dtype].compute) != NULL
                   : gtorch_cpu_loop (op->loop, gtorch_dtype_infos[kernel->dtype].compute) != NULL;
}

FakeKernel *
fake_kernel_get (const gchar *name)
{
  FakeKernel *kernel;
  gchar *text;
  gchar **parts;
  gboolean is_known;

  if (kernels == NULL)
    kernels = g_hash_table_new (g_str_hash, g_str_equal);
  kernel = g_hash_table_lookup (kernels, name);
  if (kernel != NULL || !g_str_has_prefix (name, "gt_"))
    return kernel;
  kernel = g_new0 (FakeKernel, 1);
  parts = g_strsplit (name + 3, "_", 4);
  is_known = g_strv_length (parts) >= 2 && g_strv_length (parts) <= 3
             && parse_copy (kernel, parts[0], parts[1], parts[2]);
  g_strfreev (parts);
  text = g_strdup (name + 3);
  if (!is_known)
    is_known = parse_random (kernel, text) || fake_report_parse (kernel, text)
               || fake_branch_parse (kernel, text) || fake_multiply_parse (kernel, text)
               || fake_recurrent_parse (kernel, text) || fake_step_parse (kernel, text)
               || fake_foreach_parse (kernel, text) || parse_plain (kernel, text)
               || parse_op (kernel, text);
  g_free (text);
  if (!is_known)
    {
      g_free (kernel);
      return NULL;
    }
  kernel->name = g_strdup (name);
  g_hash_table_insert (kernels, kernel->name, kernel);
  return kernel;
}

void
fake_cuda_unload_kernels (void)
{
  GHashTableIter iter;
  gpointer kernel;

  g_mutex_lock (&fake_lock);
  if (kernels != NULL)
    {
      g_hash_table_iter_init (&iter, kernels);
      while (g_hash_table_iter_next (&iter, NULL, &kernel))
        ((FakeKernel *) kernel)->loaded = 0;
    }
  g_mutex_unlock (&fake_lock);
}
