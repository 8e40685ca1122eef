/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/dispatch/gtorch-op-private.h>
#include <gtorch/tensor/gtorch-rows-private.h>

#include "gtorch-cuda-kernels.h"

G_BEGIN_DECLS

/* Helpers for the CUDA implementations of structured operations. Operands are packed (made contiguous, in
 * the kernel's dtype), then kernels of kernels/<file>.cu are launched. The generated header has a
 * gtorch_kernels_<name> for each GT_KERNEL (gt_<name>_…), and launches check at compile time that the
 * parameters have the struct that the kernels take. */
#define GTORCH_CUDA_SET(kernels, p)                                                    \
  ({                                                                                   \
    _Static_assert(__builtin_types_compatible_p (__typeof__ (*(p)),                    \
                                                 __typeof__ (*(kernels)->parameters)), \
                   "the kernels take another struct");                                 \
    &(kernels)->set;                                                                   \
  })

/* Launches gt_<name>_<dtype> over n elements. */
#define gtorch_cuda_run(kernels, dtype, lane, n, p, error) \
  gtorch_cuda_run_form (kernels, dtype, NULL, lane, n, p, error)
/* Launches gt_<name>_<dtype>_<form> over n elements. */
#define gtorch_cuda_run_form(kernels, dtype, form, lane, n, p, error)                             \
  gtorch_cuda_launch_over (GTORCH_CUDA_SET (kernels, p), gtorch_cuda_dtype_suffixes[dtype], form, \
                           lane, n, p, error)
/* Launches gt_<name>_<size> over n elements of `size` bytes. */
#define gtorch_cuda_run_sized(kernels, size, lane, n, p, error)                                \
  gtorch_cuda_launch_over (GTORCH_CUDA_SET (kernels, p), gtorch_cuda_size_suffix (size), NULL, \
                           lane, n, p, error)
/* Launches gt_<name>_<size> with `blocks` blocks of 256 threads. */
#define gtorch_cuda_run_sized_blocks(kernels, size, lane, blocks, p, error)                      \
  gtorch_cuda_launch_blocks (GTORCH_CUDA_SET (kernels, p), gtorch_cuda_size_suffix (size), lane, \
                             blocks, p, error)
/* Launches gt_<name>_<dtype> with a block for each of n elements, or with fewer blocks that have several
 * each. */
#define gtorch_cuda_run_blocks(kernels, dtype, lane, n, p, error)                                 \
  gtorch_cuda_launch_each (GTORCH_CUDA_SET (kernels, p), gtorch_cuda_dtype_suffixes[dtype], lane, \
                           n, p, error)
/* Launches gt_<name>_<dtype> with blocks of this many threads. */
#define gtorch_cuda_run_wide(kernels, dtype, lane, blocks, threads, p, error)                     \
  gtorch_cuda_launch_wide (GTORCH_CUDA_SET (kernels, p), gtorch_cuda_dtype_suffixes[dtype], lane, \
                           blocks, threads, p, error)
/* Processes whole rows of n elements with the kernels of gtorch-rows.cuh. `aligned` is the bitwise or of
 * the addresses of all operands. */
#define gtorch_cuda_run_rows(kernels, dtype, lane, rows, n, aligned, p, error) \
  gtorch_cuda_launch_rows (GTORCH_CUDA_SET (kernels, p), dtype, lane, rows, n, aligned, p, error)
/* Processes whole rows of n elements with kernels that pass over them (gt_pass ()). */
#define gtorch_cuda_run_passes(kernels, dtype, lane, rows, n, p, error) \
  gtorch_cuda_launch_passes (GTORCH_CUDA_SET (kernels, p), dtype, lane, rows, n, p, error)

/* These functions implement the macros. */
const gchar *gtorch_cuda_size_suffix (gsize size);
gboolean gtorch_cuda_launch_over (const GTorchCudaKernelSet *set, const gchar *suffix,
                                  const gchar *form, GTorchCudaLane *lane, gint64 n,
                                  gconstpointer p, GError **error);
gboolean gtorch_cuda_launch_blocks (const GTorchCudaKernelSet *set, const gchar *suffix,
                                    GTorchCudaLane *lane, guint64 blocks, gconstpointer p,
                                    GError **error);
gboolean gtorch_cuda_launch_each (const GTorchCudaKernelSet *set, const gchar *suffix,
                                  GTorchCudaLane *lane, gint64 n, gconstpointer p, GError **error);
gboolean gtorch_cuda_launch_wide (const GTorchCudaKernelSet *set, const gchar *suffix,
                                  GTorchCudaLane *lane, guint64 blocks, guint threads,
                                  gconstpointer p, GError **error);
gboolean gtorch_cuda_launch_rows (const GTorchCudaKernelSet *set, guint dtype, GTorchCudaLane *lane,
                                  gint64 rows, gint64 n, guintptr aligned, gconstpointer p,
                                  GError **error);
gboolean gtorch_cuda_launch_passes (const GTorchCudaKernelSet *set, guint dtype,
                                    GTorchCudaLane *lane, gint64 rows, gint64 n, gconstpointer p,
                                    GError **error);

/* Multiplies by a kernel of GTorch (gtorch-cuda-multiply.c); fills in the parameters other than operands,
 * sizes and strides. *done becomes FALSE, without an error, if a library is faster. With is_exact, float32
 * operands must not be rounded first. */
gboolean gtorch_cuda_multiply_by_kernel (GTorchCudaLane *lane, guint dtype, GtMultiply *m,
                                         gdouble alpha, gdouble beta, gboolean is_exact,
                                         gboolean *done, GError **error);

struct _GTorchIter;

/* Returns whether the iterator's layout suits kernels over rows with vectors of this many elements. If so,
 * fills in their parameters, except those of operands that are numbers in p. `sizes` are the operands'
 * element sizes in bytes. */
gboolean gtorch_cuda_as_rows (const struct _GTorchIter *iter, const guint *sizes, guint vector,
                              GtRows *p);

/* Runs a kernel that takes a GtStrided over the whole iterator, of whose operands it fills in the addresses
 * and strides in p. */
gboolean gtorch_cuda_run_strided (GTorchCudaFamily *family, GTorchCudaKernel *kernel,
                                  const gchar *name, const struct _GTorchIter *iter, GtStrided *p,
                                  GTorchCudaLane *lane, GError **error);

/* These functions pack and unpack tensors like those of cpu/gtorch-cpu-pack.h. Numbers on the host are
 * copied to the device. */
GTorchImpl *gtorch_cuda_pack (GTorchImpl *impl, guint dtype, GTorchCudaLane *lane, GError **error);
GTorchImpl *gtorch_cuda_pack_output (GTorchImpl *output, guint dtype, GError **error);
gboolean gtorch_cuda_unpack (GTorchImpl *packed, GTorchImpl *output, GTorchCudaLane *lane,
                             GError **error);
/* Returns the operand, or a view of images [N, C, …] with the channels last. */
GTorchImpl *gtorch_cuda_turn (GTorchImpl *impl, gboolean channels_last);
/* Packs the input of a reduction, with the reduced dimensions moved to the end, and its output: each row of
 * n elements is reduced to one. */
gboolean gtorch_cuda_pack_reduction (GTorchOpCall *call, guint dtype, GTorchCudaLane *lane,
                                     GTorchImpl **x, GTorchImpl **y, GTorchRows *rows,
                                     GError **error);
GTorchImpl *gtorch_cuda_scratch (GTorchCudaLane *lane, gint64 n_bytes, GError **error);
gboolean gtorch_cuda_clear (GTorchImpl *impl, GTorchCudaLane *lane, GError **error);
gboolean gtorch_cuda_scale (GTorchImpl *impl, gdouble factor, GTorchCudaLane *lane, GError **error);
GTorchDevice *gtorch_cuda_lane_device (GTorchCudaLane *lane);
/* Returns the GtReport where kernels of the lane's device report indices that are out of range; NULL with
 * an error. */
gpointer gtorch_cuda_report (GTorchCudaLane *lane, GError **error);
/* Returns GtReport.op for the operation that the program called, and the dimension of the index or -1. */
static inline guint32
gtorch_cuda_report_op (const GTorchOpCall *call, gint dim)
{
  return gtorch_call_named_op (call)->id | (guint32) (dim + 1) << 16;
}

typedef enum
{
  GTORCH_CUDA_FOLD_SUM, /* has kernels for floats only */
  GTORCH_CUDA_FOLD_PROD,
  GTORCH_CUDA_FOLD_AMAX,
  GTORCH_CUDA_FOLD_AMIN,
} GTorchCudaFold;

/* Folds the dense blocks into the indexed ones (by addition, multiplication, …) in the order of their
 * indices. `slots` has the numbers (int64) of the n_slots indexed blocks; negative ones are skipped. */
gboolean gtorch_cuda_segments_fold (GTorchOpCall *call, GTorchCudaLane *lane,
                                    const GtBlocks *blocks, GTorchCudaFold fold, guint dtype,
                                    GTorchImpl *slots, gint64 n_slots, GError **error);
/* Sorts one line of keys in ascending order, stably. *at becomes their positions before sorting (int64),
 * and *sorted, unless `sorted` is NULL, the sorted keys. */
gboolean gtorch_cuda_sort_line (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *keys,
                                GTorchImpl **sorted, GTorchImpl **at, GError **error);
/* Sorts the numbers of blocks. *at becomes their positions before sorting; the sorted *keys are int32 or,
 * if *wide, int64. */
gboolean gtorch_cuda_sort_slots (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *slots,
                                 gint64 n_slots, GTorchImpl **keys, GTorchImpl **at, gboolean *wide,
                                 GError **error);

typedef gboolean (*GTorchCudaEarlyFunc) (GTorchOpCall *call, GTorchCudaLane *lane, gpointer data,
                                         GError **error);

/* Calls func on behalf of a query. Notes its work and names its errors as those of the
 * operation. */
gboolean gtorch_cuda_run_early (GTorchOpCall *call, GTorchCudaEarlyFunc func, gpointer data,
                                GError **error);

/* Returns the lane of the calling thread's current stream. */
GTorchCudaLane *gtorch_cuda_current_lane (GTorchDevice *device, GError **error);

G_END_DECLS
