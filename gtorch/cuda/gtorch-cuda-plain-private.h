/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/gtorch-op-private.h>

#include "kernels/gtorch-kernel-params.h"

G_BEGIN_DECLS

/* What the CUDA form of a structured operation is made of. It stands beside the CPU form in ops/. Operands
 * are packed (contiguous, of the dtype that the kernel has), then a kernel of kernels/<family>.cu runs. */

enum
{
  GTORCH_CUDA_FAMILY_SOFTMAX,
  GTORCH_CUDA_FAMILY_NORM,
  GTORCH_CUDA_FAMILY_NN,
  GTORCH_CUDA_FAMILY_OPTIM,
  GTORCH_CUDA_FAMILY_INDEX,
  GTORCH_CUDA_FAMILY_ORDER,
  GTORCH_CUDA_FAMILY_RANDOM,
  GTORCH_CUDA_FAMILY_CONVOLVE,
  GTORCH_CUDA_FAMILY_PICK,
  GTORCH_CUDA_FAMILY_SEGMENTS,
};

/* gt_<name>_<dtype> over n elements. */
gboolean gtorch_cuda_plain_run (guint family, const gchar *name, guint dtype, GTorchCudaLane *lane,
                                gint64 n, GtPlain *p, GError **error);
/* gt_<name>_<dtype>_<form> over n elements. */
gboolean gtorch_cuda_plain_run_form (guint family, const gchar *name, guint dtype,
                                     const gchar *form, GTorchCudaLane *lane, gint64 n, GtPlain *p,
                                     GError **error);
/* gt_<name>_<dtype> in n blocks, each of which does more than one element. */
gboolean gtorch_cuda_plain_run_blocks (guint family, const gchar *name, guint dtype,
                                       GTorchCudaLane *lane, gint64 n, GtPlain *p, GError **error);
/* gt_<name>_<size of the dtype>. */
gboolean gtorch_cuda_plain_run_sized (guint family, const gchar *name, guint dtype,
                                      GTorchCudaLane *lane, gint64 n, GtPlain *p, GError **error);
/* Whole rows of n elements, by the kernels of gtorch-rows.cuh. aligned: all rows' addresses, or'ed. */
gboolean gtorch_cuda_rows_run (guint family, const gchar *name, guint dtype, GTorchCudaLane *lane,
                               gint64 rows, gint64 n, gconstpointer aligned, GtPlain *p,
                               GError **error);

/* The same for kernels with a struct of their own. */
gboolean gtorch_cuda_run_struct (guint family, const gchar *name, guint dtype, GTorchCudaLane *lane,
                                 gint64 n, gconstpointer p, GError **error);
gboolean gtorch_cuda_run_struct_sized (guint family, const gchar *name, guint size,
                                       GTorchCudaLane *lane, gint64 n, gconstpointer p,
                                       GError **error);
/* In so many blocks of 256 threads, each of which does what is its. */
gboolean gtorch_cuda_run_struct_blocks (guint family, const gchar *name, guint size,
                                        GTorchCudaLane *lane, guint64 blocks, gconstpointer p,
                                        GError **error);

/* gtorch-cuda-multiply.c: fills in what the kernel needs beside operands, sizes and strides. *done is FALSE,
 * without an error, if a library does it sooner; is_exact: may float32 not be rounded before? */
gboolean gtorch_cuda_multiply_by_kernel (GTorchCudaLane *lane, guint dtype, GtMultiply *m,
                                         gdouble alpha, gdouble beta, gboolean is_exact,
                                         gboolean *done, GError **error);

struct _GTorchIter;

/* Does the merged layout fit kernels over rows, whose vectors have so many elements? Fills in what they want
 * to know, but for the operands that are numbers in p. sizes: of an element of each operand, in bytes. */
gboolean gtorch_cuda_as_rows (const struct _GTorchIter *iter, const guint *sizes, guint vector,
                              GtRows *p);

/* As in cpu/gtorch-cpu-pack.h; numbers of the host come along. */
GTorchImpl *gtorch_cuda_pack (GTorchImpl *impl, guint dtype, GTorchCudaLane *lane, GError **error);
GTorchImpl *gtorch_cuda_pack_output (GTorchImpl *output, guint dtype, GError **error);
gboolean gtorch_cuda_unpack (GTorchImpl *packed, GTorchImpl *output, GTorchCudaLane *lane,
                             GError **error);
GTorchImpl *gtorch_cuda_scratch (GTorchCudaLane *lane, gint64 n_bytes, GError **error);
gboolean gtorch_cuda_clear (GTorchImpl *impl, GTorchCudaLane *lane, GError **error);
gboolean gtorch_cuda_scale (GTorchImpl *impl, gdouble factor, GTorchCudaLane *lane, GError **error);
GTorchDevice *gtorch_cuda_lane_device (GTorchCudaLane *lane);
gboolean gtorch_cuda_copy_here (GTorchImpl *dst, GTorchImpl *src, GTorchCudaLane *lane,
                                GError **error);
gboolean gtorch_cuda_fill_with (GTorchImpl *dst, guint dtype, gconstpointer value,
                                GTorchCudaLane *lane, GError **error);
/* Where kernels of the lane's device report indices that are out of range; NULL with an error. */
gpointer gtorch_cuda_report (GTorchCudaLane *lane, GError **error);
/* GtReport.op: the operation that the program called, and the dimension of the index or -1. */
static inline guint32
gtorch_cuda_report_op (const GTorchOpCall *call, gint dim)
{
  return gtorch_call_named_op (call)->id | (guint32) (dim + 1) << 16;
}

typedef enum
{
  GTORCH_CUDA_FOLD_SUM, /* of floats */
  GTORCH_CUDA_FOLD_PROD,
  GTORCH_CUDA_FOLD_AMAX,
  GTORCH_CUDA_FOLD_AMIN,
} GTorchCudaFold;

/* Adds, multiplies … the dense blocks in the order of their indices. slots: int64 numbers of the n_slots
 * blocks, negative ones are left out. */
gboolean gtorch_cuda_segments_fold (GTorchOpCall *call, GTorchCudaLane *lane,
                                    const GtBlocks *blocks, GTorchCudaFold fold, guint dtype,
                                    GTorchImpl *slots, gint64 n_slots, GError **error);
/* One line of keys in ascending order, equal ones as they were; *at, int64, is where they were. sorted: NULL
 * or the keys. */
gboolean gtorch_cuda_sort_line (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *keys,
                                GTorchImpl **sorted, GTorchImpl **at, GError **error);
/* Numbers of blocks in order, with where they were; keys are int32 or, if *wide, int64. */
gboolean gtorch_cuda_sort_slots (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *slots,
                                 gint64 n_slots, GTorchImpl **keys, GTorchImpl **at, gboolean *wide,
                                 GError **error);
/* What a shape depends on. Called by shape functions, each is noted, and its errors are named, as the
 * operation itself. */

/* For bincount: the largest value plus 1, how far the smallest is below 0. */
gboolean gtorch_cuda_bounds (GTorchOpCall *call, GTorchImpl *self, gint64 bounds[2],
                             GError **error);
/* How many elements are not zero. */
gboolean gtorch_cuda_count_true (GTorchOpCall *call, GTorchImpl *self, gint64 *count,
                                 GError **error);
/* The outputs of unique, with what is in them. */
gboolean gtorch_cuda_unique_outputs (GTorchOpCall *call, GError **error);

typedef gboolean (*GTorchCudaEarlyFunc) (GTorchOpCall *call, GTorchCudaLane *lane, gpointer data,
                                         GError **error);

/* Calls func for a shape function, around which it does all that. */
gboolean gtorch_cuda_run_early (GTorchOpCall *call, GTorchCudaEarlyFunc func, gpointer data,
                                GError **error);

/* Of the calling thread's current stream. */
GTorchCudaLane *gtorch_cuda_current_lane (GTorchDevice *device, GError **error);

G_END_DECLS
