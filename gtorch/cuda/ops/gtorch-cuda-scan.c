/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Scans (running sums, products, extremes and log-sum-exps) along a dimension, and the gradients of
 * products. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "cpu/gtorch-cpu-pack.h"
#include "cpu/ops/gtorch-cpu-reduce.h"
#include "cuda/driver/gtorch-cuda-private.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

#define THREADS   256
#define SHORT_ROW 2048 /* the maximum bytes of a row that one warp scans */

/* bytes of shared memory that kernels can use without an attribute */
#define EVERYWHERE_SHARED (48 * 1024)

/* The forms of kernels: SHORT_ROWS, ROWS and COLUMNS for any operands, the others for operands that suit
 * vectors. */
enum
{
  SHORT_ROWS,
  ROWS,
  ROWS_AHEAD,
  ROWS_RING,
  ROWS_BULK,
  COLUMNS,
  COLUMNS_AHEAD,
  COLUMNS_RING,
  N_FORMS
};

static const struct
{
  const gchar *name;
  guint shared; /* bytes of dynamic shared memory */
  guint most;   /* maximum number of blocks for each multiprocessor; 0: one for each line or tile */
  guint threads;
} forms[] = {
  [SHORT_ROWS] = { "short_rows", 0, 0, THREADS },
  [ROWS] = { "rows", 0, 0, THREADS },
  [ROWS_AHEAD] = { "rows_ahead", 16 * 8 * THREADS, 4, THREADS },
  [ROWS_RING] = { "rows_ring", 16 * GT_SCAN_RING *THREADS, 2, THREADS },
  [ROWS_BULK] = { "rows_bulk", 16 * GT_SCAN_BULK_STAGES *GT_SCAN_BULK_UNROLL *THREADS, 1,
                  THREADS + 64 },
  [COLUMNS] = { "columns", 0, 0, THREADS },
  [COLUMNS_AHEAD] = { "columns_ahead", 0, 3, THREADS },
  /* shared memory for the ring, and for two buffers of column totals */
  [COLUMNS_RING] = { "columns_ring", (GT_SCAN_RING * 16 + 64) * GT_SCAN_COLUMN_THREADS, 1,
                     GT_SCAN_COLUMN_THREADS },
};

typedef enum
{
  SUM,
  PRODUCT,
  GREATEST,
  LEAST,
  LOG_SUM,
  LOG_SUM_BACKWARD,
  LOG_SUM_TANGENT,
  N_KINDS
} Kind;

static const gchar *const kinds[] = { "sum",     "product",          "greatest",       "least",
                                      "log_sum", "log_sum_backward", "log_sum_tangent" };

static GTorchCudaKernel kernels[N_KINDS][N_FORMS][GTORCH_N_DTYPES];
/* Bit i: CUDA device i lets the kernel use its dynamic shared memory. */
static guint may_share[N_KINDS][N_FORMS][GTORCH_N_DTYPES];
static GTorchCudaKernel line_kernels[2][GTORCH_N_DTYPES];

static gboolean
launch (Kind kind, guint form, guint dtype, GTorchCudaDevice *device, GTorchCudaLane *lane,
        guint64 blocks, guint threads, const GtScan *p, GError **error)
{
  const GTorchCudaLaunch launch = { .grid = { blocks },
                                    .block = { threads },
                                    .shared = forms[form].shared };
  GTorchCudaKernel *kernel = &kernels[kind][form][dtype];
  guint *shares = &may_share[kind][form][dtype], bit = 1u << device->parent_instance.index;

  if (G_UNLIKELY (g_atomic_pointer_get (&kernel->kernel) == NULL))
    {
      gchar name[64];

      g_snprintf (name, sizeof name, "gt_%s_%s_%s", kinds[kind], forms[form].name,
                  gtorch_cuda_dtype_suffixes[dtype]);
      if (!gtorch_cuda_kernel_get (kernel,
                                   kind > PRODUCT ? &gtorch_cuda_family_running
                                                  : &gtorch_cuda_family_scan,
                                   name, error))
        return FALSE;
    }
  if (G_UNLIKELY (launch.shared > EVERYWHERE_SHARED && (g_atomic_int_get (shares) & bit) == 0))
    {
      if (!gtorch_cuda_check (
              gtorch_cuda.cuKernelSetAttribute (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                launch.shared, kernel->kernel, device->handle),
              "cuKernelSetAttribute", error))
        return FALSE;
      g_atomic_int_or (shares, bit);
    }
  return gtorch_cuda_kernel_launch (kernel, lane, &launch, p, error);
}

/* Returns whether the device has a block's shared memory, with a reserve for static variables. */
static gboolean
fits (guint form, GTorchCudaDevice *device)
{
  return forms[form].shared + 1024 <= device->info.max_shared_memory;
}

/* Chooses the form for vectors of v elements: one that prefetches where `streams` allows it and lines or
 * tiles are long enough. */
static guint
choose (const GtScan *p, gboolean streams, guint v, GTorchCudaDevice *device)
{
  guint64 multis = device->n_multiprocessors, tile, tiles, strips, waves, full;

  if (p->inner == 1)
    {
      if (!streams)
        return ROWS;
      if (p->outer >= 16 * multis)
        return 2 * p->n > THREADS * v * GT_SCAN_UNROLL (v) && fits (ROWS_RING, device) ? ROWS_RING
                                                                                       : ROWS;
      tiles = p->n / (THREADS * v * GT_SCAN_BULK_UNROLL);
      return tiles >= 4 && p->outer * tiles >= 8 * multis && device->info.major >= 9
                     && fits (ROWS_BULK, device)
                 ? ROWS_BULK
                 : ROWS;
    }
  if (!streams || p->width < 32 || !fits (COLUMNS_RING, device))
    return COLUMNS;
  tile = GT_SCAN_COLUMN_THREADS / 32 * GT_SCAN_UNROLL (v);
  tiles = (p->n + tile - 1) / tile;
  strips = p->outer * ((p->inner + 32 * v - 1) / (32 * v));
  waves = (strips + multis - 1) / multis;
  full = waves * multis * 32 * v;
  /* With this form, a few multiprocessors that are always busy are as fast as all of them with COLUMNS. */
  return tiles * waves >= 16 && 4 * p->n >= 3 * tiles * tile
                 && (waves == 1 ? 5 * p->outer * p->inner >= 2 * full
                                : 4 * p->outer * p->inner >= 3 * full)
             ? COLUMNS_RING
             : COLUMNS;
}

static gboolean
scan (GtScan *p, Kind kind, guint dtype, GTorchCudaDevice *device, GTorchCudaLane *lane,
      GError **error)
{
  guint size = gtorch_dtype_size (dtype), v = 16 / size, unroll = GT_SCAN_UNROLL (v), form, threads;
  guint64 tile, lines, slots, multis = device->n_multiprocessors;
  gsize accumulator = MAX (size, 4) * (kind > PRODUCT ? 2 : 1);
  g_autoptr (GTorchImpl) state = NULL;
  gboolean streams;
  gint64 n_bytes;

  p->vectors = (((guintptr) p->src | (guintptr) p->also | (guintptr) p->with | (guintptr) p->dst
                 | (guintptr) p->positions)
                & 15)
                   == 0
               && (p->inner == 1 ? p->n : p->inner) % v == 0;
  p->width = gtorch_cuda_power_of_two (((p->inner == 1 ? p->n : p->inner) + v - 1) / v, 32);
  if (p->inner == 1 && p->n * size <= SHORT_ROW && (p->n * size <= 1024 || p->outer >= 16 * multis))
    return launch (kind, SHORT_ROWS, dtype, device, lane,
                   (p->outer * p->width + THREADS - 1) / THREADS, THREADS, p, error);
  streams = p->vectors && kind <= PRODUCT;
  form = choose (p, streams, v, device);
  threads = forms[form].threads;
  if (p->inner == 1)
    {
      tile = THREADS * v * (form == ROWS_BULK ? GT_SCAN_BULK_UNROLL : unroll);
      lines = p->outer;
    }
  else
    {
      tile = threads / p->width * unroll;
      lines = p->outer * ((p->inner + p->width * v - 1) / (p->width * v));
    }
  p->tiles = (p->n + tile - 1) / tile;
  while (p->group < THREADS && p->group * p->group < p->tiles)
    p->group *= 2;
  p->groups = (p->tiles + p->group - 1) / p->group;
  if (p->tiles > 1 && form != COLUMNS_RING && lines < 16 * multis && lines * p->tiles < G_MAXINT32)
    { /* there are too few lines to give a block to each: assign tiles */
      slots = p->outer * (p->tiles + p->groups) * p->inner;
      n_bytes = slots * accumulator * 2 + 16;
      state = gtorch_impl_new (GTORCH_DEVICE (device), GTORCH_DTYPE_UINT8, &n_bytes, 1, error);
      if (state == NULL)
        return FALSE;
      p->totals = gtorch_impl_data (state);
      p->counter = (uint32_t *) (p->totals + slots * accumulator / 4);
      if (!gtorch_cuda_device_activate (lane->device, error)
          || !gtorch_cuda_check (gtorch_cuda.cuMemsetD8Async ((CUdeviceptr) (guintptr) p->totals, 0,
                                                              n_bytes, lane->handle),
                                 "cuMemsetD8Async", error))
        return FALSE;
      lines *= p->tiles;
      if (streams && form == ROWS)
        form = ROWS_AHEAD;
      else if (streams && form == COLUMNS)
        form = COLUMNS_AHEAD;
    }
  else if (form == ROWS && p->tiles == 1)
    threads = MAX (gtorch_cuda_power_of_two ((p->n * THREADS + tile - 1) / tile, THREADS), 32);
  if (forms[form].most > 0) /* launch as many blocks as can be resident */
    lines = MIN (lines, forms[form].most * multis);
  return launch (kind, form, dtype, device, lane, lines, threads, p, error);
}

/* Returns whether there are kernels that read and write the dtype. */
static gboolean
has_kernel (guint dtype)
{
  switch (dtype)
    {
    case GTORCH_DTYPE_INT8:
    case GTORCH_DTYPE_UINT8:
    case GTORCH_DTYPE_INT16:
    case GTORCH_DTYPE_BOOL:
      return FALSE;
    default:
      return TRUE;
    }
}

/* Scans x, which must be packed, along the call's dimension into the output. p has the other parameters. */
static gboolean
run (GTorchOpCall *call, GTorchCudaLane *lane, Kind kind, GtScan *p, GTorchImpl *x, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  g_autoptr (GTorchImpl) y = NULL;
  GTorchRows rows;
  guint dim;

  if (!gtorch_normalize_dim (call->op->name, call->attrs[0].i, x->n_dims, &dim, error))
    return FALSE;
  rows = gtorch_rows_along (x->shape, x->n_dims, dim);
  p->n = rows.n;
  if (p->positions != NULL && p->n > G_MAXUINT32)
    {
      gtorch_call_error (call, error, GTORCH_ERROR_NOT_SUPPORTED,
                         _ ("dim %u has %" PRIu64 " elements: on a GPU there may be at most %u"),
                         dim, (guint64) p->n, G_MAXUINT32);
      return FALSE;
    }
  y = gtorch_cuda_pack_output (output, x->dtype, error);
  if (y == NULL)
    return FALSE;
  p->src = gtorch_impl_data (x);
  p->dst = gtorch_impl_data (y);
  p->group = 1;
  p->outer = rows.outer;
  p->inner = rows.inner;
  return scan (p, kind, x->dtype, GTORCH_CUDA_DEVICE (output->storage->device), lane, error)
         && gtorch_cuda_unpack (y, output, lane, error);
}

static gboolean
sums (GTorchOpCall *call, GTorchCudaLane *lane, Kind kind, gboolean reverse, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  guint dtype = gtorch_dtype_infos[call->compute].compute;
  GtScan p = { .reverse = reverse };
  g_autoptr (GTorchImpl) x = NULL;

  if (self->numel == 0)
    return TRUE;
  if (self->dtype == call->outputs[0]->dtype && has_kernel (self->dtype))
    dtype = self->dtype;
  x = gtorch_cuda_pack (self, dtype, lane, error);
  return x != NULL && run (call, lane, kind, &p, x, error);
}

gboolean
gtorch_cuda_cumsum (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return sums (call, lane, SUM, FALSE, error);
}

gboolean
gtorch_cuda_cumsum_reverse (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return sums (call, lane, SUM, TRUE, error);
}

gboolean
gtorch_cuda_cumprod (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return sums (call, lane, PRODUCT, FALSE, error);
}

static gboolean
extremes (GTorchOpCall *call, GTorchCudaLane *lane, Kind kind, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  GtScan p = { .positions = gtorch_impl_data (call->outputs[1]) };
  g_autoptr (GTorchImpl) x = NULL;

  if (self->numel == 0)
    return TRUE;
  x = gtorch_cuda_pack (self, has_kernel (self->dtype) ? self->dtype : GTORCH_DTYPE_INT32, lane,
                        error);
  return x != NULL && run (call, lane, kind, &p, x, error);
}

gboolean
gtorch_cuda_cummax (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return extremes (call, lane, GREATEST, error);
}

gboolean
gtorch_cuda_cummin (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return extremes (call, lane, LEAST, error);
}

gboolean
gtorch_cuda_logcumsumexp (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  GtScan p = { 0 };
  g_autoptr (GTorchImpl) x = NULL;

  if (self->numel == 0)
    return TRUE;
  x = gtorch_cuda_pack (self, call->outputs[0]->dtype, lane, error);
  return x != NULL && run (call, lane, LOG_SUM, &p, x, error);
}

/* Scans exponentials with the first input's numbers as factors. Of the other two inputs, one is an operand
 * of the sums, and the other one converts the results. */
static gboolean
log_sums (GTorchOpCall *call, GTorchCudaLane *lane, Kind kind, GError **error)
{
  guint dtype = call->outputs[0]->dtype;
  g_autoptr (GTorchImpl) numbers = NULL;
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) totals = NULL;
  GtScan p = { .reverse = kind == LOG_SUM_BACKWARD };

  if (call->inputs[0]->numel == 0)
    return TRUE;
  numbers = gtorch_cuda_pack (call->inputs[0], dtype, lane, error);
  x = numbers != NULL ? gtorch_cuda_pack (call->inputs[1], dtype, lane, error) : NULL;
  totals = x != NULL ? gtorch_cuda_pack (call->inputs[2], dtype, lane, error) : NULL;
  if (totals == NULL)
    return FALSE;
  p.also = gtorch_impl_data (numbers);
  p.with = gtorch_impl_data (p.reverse ? x : totals);
  return run (call, lane, kind, &p, p.reverse ? totals : x, error);
}

gboolean
gtorch_cuda_logcumsumexp_backward (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return log_sums (call, lane, LOG_SUM_BACKWARD, error);
}

gboolean
gtorch_cuda_logcumsumexp_tangent (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return log_sums (call, lane, LOG_SUM_TANGENT, error);
}

/* --- gradients --- */

/* Runs a kernel over the lines of x, and of g unless it is NULL, along the dimensions in mask, into the
 * output. */
static gboolean
lines (GTorchOpCall *call, GTorchCudaLane *lane, guint64 mask, GTorchImpl *g, GTorchImpl *x,
       GError **error)
{
  GTorchImpl *output = call->outputs[0];
  guint dtype = gtorch_dtype_infos[call->compute].compute;
  g_autoptr (GTorchImpl) near_x = gtorch_cpu_move_last (x, mask);
  g_autoptr (GTorchImpl) near_g = g != NULL ? gtorch_cpu_move_last (g, mask) : NULL;
  g_autoptr (GTorchImpl) target = gtorch_cpu_move_last (output, mask);
  g_autoptr (GTorchImpl) ready_x = gtorch_cuda_pack (near_x, dtype, lane, error);
  g_autoptr (GTorchImpl) ready_g = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  GtLines p = { .n = 1 };
  gchar name[64];
  guint i;

  if (ready_x == NULL
      || (g != NULL && (ready_g = gtorch_cuda_pack (near_g, dtype, lane, error)) == NULL))
    return FALSE;
  for (i = 0; i < x->n_dims; i++)
    if ((mask >> i) & 1)
      p.n *= x->shape[i];
  y = output->storage != x->storage && (g == NULL || output->storage != g->storage)
          ? gtorch_cuda_pack_output (target, dtype, error)
          : gtorch_impl_new (output->storage->device, dtype, target->shape, target->n_dims, error);
  if (y == NULL)
    return FALSE;
  p.x = gtorch_impl_data (ready_x);
  p.g = ready_g != NULL ? gtorch_impl_data (ready_g) : NULL;
  p.y = gtorch_impl_data (y);
  g_snprintf (name, sizeof name, "gt_%s_%s", call->op->name, gtorch_cuda_dtype_suffixes[dtype]);
  return gtorch_cuda_kernel_run (&line_kernels[g != NULL][dtype], &gtorch_cuda_family_scan, name,
                                 lane, x->numel / p.n, THREADS, &p, error)
         && gtorch_cuda_unpack (y, target, lane, error);
}

gboolean
gtorch_cuda_cumprod_backward (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *upper = call->inputs[0], *self = call->inputs[1];
  guint dim;

  if (self->numel == 0)
    return TRUE;
  return gtorch_normalize_dim (call->op->name, call->attrs[0].i, self->n_dims, &dim, error)
         && lines (call, lane, G_GUINT64_CONSTANT (1) << dim, upper, self, error);
}

gboolean
gtorch_cuda_prod_others (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  gboolean keepdim;
  guint64 mask;
  guint ignored;

  if (call->inputs[0]->numel == 0)
    return TRUE;
  return gtorch_reduce_parse (call, &mask, &keepdim, &ignored, error)
         && lines (call, lane, mask, NULL, call->inputs[0], error);
}
