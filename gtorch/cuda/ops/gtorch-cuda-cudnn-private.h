/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cuda/driver/gtorch-cuda-private.h>
#include <gtorch/dispatch/gtorch-op-private.h>

G_BEGIN_DECLS

/* --- the interface, for code that builds operation graphs --- */

/* Locks cuDNN until gtorch_cudnn_end () and returns the device's handle; returns NULL, without locking, if
 * cuDNN is missing. The device's context must be current. */
gpointer gtorch_cudnn_begin (guint device);
void gtorch_cudnn_end (void);
gsize gtorch_cudnn_version (void);
/* Lets the handle's next calls enqueue on the lane. Returns cuDNN's status. */
gint gtorch_cudnn_set_stream (gpointer handle, GTorchCudaLane *lane);

/* A function of cuDNN, and where its address is put. */
typedef struct
{
  const gchar *name;
  gpointer *slot;
} GTorchCudnnSymbol;

/* Finds functions; cuDNN must be locked. */
gboolean gtorch_cudnn_load (const GTorchCudnnSymbol *wanted, guint n, GError **error);
gint gtorch_cudnn_data_type (guint dtype);
/* These functions return NULL or FALSE if cuDNN refuses. */
gpointer gtorch_cudnn_descriptor_new (gint type);
void gtorch_cudnn_descriptor_free (gpointer descriptor);
gboolean gtorch_cudnn_set (gpointer descriptor, gint attribute, gint type, gint64 n,
                           const void *elements);
gboolean gtorch_cudnn_get (gpointer descriptor, gint attribute, gint type, gint64 n, gint64 *n_got,
                           void *elements);
gboolean gtorch_cudnn_finalize (gpointer descriptor);

typedef gboolean (*GTorchCudnnAccept) (gpointer config, gconstpointer data);

typedef struct
{
  gpointer plan;
  gint64 workspace;
} GTorchCudnnPlan;

/* Finds up to n plans for the operations, in the order of cuDNN's preference, whose engines are accepted by
 * `accept` (NULL: all are) and need at most `most` bytes of workspace. Returns their number. */
guint gtorch_cudnn_find (gpointer handle, gpointer *operations, guint n_operations,
                         GTorchCudnnAccept accept, gconstpointer data, gint64 most,
                         GTorchCudnnPlan *found, guint n);
/* These functions look up and cache a plan by its form, a struct of 64-bit words without padding. The
 * lookup returns NULL if the form is not cached, and an entry whose plan is NULL if cuDNN has no plan for
 * it. The result is valid until the next plan is cached or until gtorch_cudnn_end (). */
const GTorchCudnnPlan *gtorch_cudnn_lookup (guint device, gconstpointer form, gsize n_bytes);
const GTorchCudnnPlan *gtorch_cudnn_keep (guint device, gconstpointer form, gsize n_bytes,
                                          const GTorchCudnnPlan *found);
/* Keeps a cached plan alive for a graph that captured its execution. cuDNN must be locked. */
void gtorch_cudnn_use (const GTorchCudnnPlan *plan, GTorchCudaLane *lane);
gboolean gtorch_cudnn_execute (gpointer handle, gpointer plan, GTorchCudaLane *lane, guint n,
                               const gint64 *ids, const gpointer *pointers, gpointer workspace,
                               GError **error);

/* --- convolutions --- */

typedef enum
{
  GTORCH_CUDNN_FORWARD,
  GTORCH_CUDNN_INPUT,
  GTORCH_CUDNN_WEIGHT,
} GTorchCudnnKind;

/* A form of convolution of dense tensors, contiguous or channels last. The struct has no padding, as it is
 * compared byte by byte. */
typedef struct
{
  gint64 kind, dtype, device;
  gint64 n_dims; /* of the tensors: 4 or 5 */
  gint64 x[5], w[5], y[5];
  gint64 stride[3], padding[3], dilation[3]; /* n_dims - 2 of each */
  gint64 channels_last;
  gint64 accumulate; /* whether to add to the output's elements */
  gint64 frugal;     /* whether to use no workspace */
  gint64 tf32;       /* whether float32 may be rounded to TF32 */
  gint64 timed;      /* whether to use the fastest engine measured, else cuDNN's first choice */
  gint64 unordered;  /* if timed: whether sums may be added in no fixed order */
} GTorchCudnnConv;

/* Computes the strides of a contiguous image or volume, or of one whose channels are innermost. */
void gtorch_cuda_image_strides (const gint64 *shape, guint n_dims, gboolean channels_last,
                                gint64 *strides);

/* Returns whether cuDNN has an engine for the convolution; FALSE also if cuDNN is missing. */
gboolean gtorch_cuda_cudnn_has (const GTorchCudnnConv *conv, GTorchCudaLane *lane);

/* Computes x, w or y, according to kind, from the other two. *done becomes FALSE if cuDNN is missing or has
 * no engine. */
gboolean gtorch_cuda_cudnn_convolve (const GTorchCudnnConv *conv, GTorchCudaLane *lane, gpointer x,
                                     gpointer w, gpointer y, gboolean *done, GError **error);

G_END_DECLS
