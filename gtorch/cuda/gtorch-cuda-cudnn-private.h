/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/gtorch-op-private.h>

G_BEGIN_DECLS

/* --- the interface, for what is made of it --- */

/* The device's handle, with cuDNN locked until gtorch_cudnn_end (); NULL, not locked, where there is none.
 * The device's context must be current. */
gpointer gtorch_cudnn_begin (guint device);
void gtorch_cudnn_end (void);
gsize gtorch_cudnn_version (void);
gint gtorch_cudnn_data_type (guint dtype);
/* NULL and FALSE say that cuDNN refuses. */
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

/* Up to n plans for the operations, the one that cuDNN would choose first, of engines that are accepted
 * (NULL: all are) and want at most that much workspace. Returns how many. */
guint gtorch_cudnn_find (gpointer handle, gpointer *operations, guint n_operations,
                         GTorchCudnnAccept accept, gconstpointer data, gint64 most,
                         GTorchCudnnPlan *found, guint n);
/* Plans by what they are for: structs of 64-bit words without gaps. NULL: none is known; one without a plan:
 * cuDNN has none. What is returned is good until the next is kept or gtorch_cudnn_end (). */
const GTorchCudnnPlan *gtorch_cudnn_lookup (guint device, gconstpointer form, gsize n_bytes);
const GTorchCudnnPlan *gtorch_cudnn_keep (guint device, gconstpointer form, gsize n_bytes,
                                          const GTorchCudnnPlan *found);
/* Before gtorch_cudnn_end () for a plan that one of these gave and that was executed. */
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

/* A form of convolution of tensors without gaps, in the order of their dimensions or with the channels last;
 * the struct has no gaps either, as it is compared as bytes. */
typedef struct
{
  gint64 kind, dtype, device;
  gint64 x[4], w[4], y[4];
  gint64 stride[2], padding[2], dilation[2];
  gint64 channels_last;
  gint64 accumulate; /* adds to what is there */
  gint64 frugal;     /* without workspace */
  gint64 tf32;       /* float32 may be rounded to that */
  gint64 timed;      /* by the quickest engine, else by the one that cuDNN thinks is that */
  gint64 unordered;  /* if timed: it may add in no fixed order */
} GTorchCudnnConv;

/* FALSE where cuDNN is missing or has no engine. */
gboolean gtorch_cuda_cudnn_has (const GTorchCudnnConv *conv, GTorchCudaLane *lane);

/* Writes to the one of x, w and y that kind says. *done is FALSE where cuDNN is missing or has no engine. */
gboolean gtorch_cuda_cudnn_convolve (const GTorchCudnnConv *conv, GTorchCudaLane *lane, gpointer x,
                                     gpointer w, gpointer y, gboolean *done, GError **error);

G_END_DECLS
