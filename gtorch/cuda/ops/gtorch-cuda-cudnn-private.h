/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/dispatch/gtorch-op-private.h>

G_BEGIN_DECLS

/* --- the interface, for code that builds operation graphs --- */

/* Locks cuDNN until gtorch_cudnn_end () and returns the device's handle; returns NULL, without locking, if
 * there is none. The device's context must be current. */
gpointer gtorch_cudnn_begin (guint device);
void gtorch_cudnn_end (void);
gsize gtorch_cudnn_version (void);
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

/* Finds up to n plans for the operations, cuDNN's first choice first, whose engines are accepted (NULL: all
 * are) and need at most that much workspace. Returns their number. */
guint gtorch_cudnn_find (gpointer handle, gpointer *operations, guint n_operations,
                         GTorchCudnnAccept accept, gconstpointer data, gint64 most,
                         GTorchCudnnPlan *found, guint n);
/* The cache of plans, by form: a struct of 64-bit words without padding. NULL means that the form is not
 * cached; an entry without a plan, that cuDNN has none. The result is valid until the next plan is cached
 * or gtorch_cudnn_end (). */
const GTorchCudnnPlan *gtorch_cudnn_lookup (guint device, gconstpointer form, gsize n_bytes);
const GTorchCudnnPlan *gtorch_cudnn_keep (guint device, gconstpointer form, gsize n_bytes,
                                          const GTorchCudnnPlan *found);
/* Keeps a plan from the cache alive for work that executed it. Must be called before gtorch_cudnn_end (). */
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

/* A form of convolution of dense tensors, contiguous or with channels last; the struct has no padding, as
 * it is compared as bytes. */
typedef struct
{
  gint64 kind, dtype, device;
  gint64 x[4], w[4], y[4];
  gint64 stride[2], padding[2], dilation[2];
  gint64 channels_last;
  gint64 accumulate; /* adds to the output's elements */
  gint64 frugal;     /* uses no workspace */
  gint64 tf32;       /* float32 may be rounded to TF32 */
  gint64 timed;      /* uses the fastest engine measured, else cuDNN's first choice */
  gint64 unordered;  /* if timed: sums may be added in no fixed order */
} GTorchCudnnConv;

/* Whether cuDNN has an engine; FALSE also where cuDNN is missing. */
gboolean gtorch_cuda_cudnn_has (const GTorchCudnnConv *conv, GTorchCudaLane *lane);

/* Computes x, w or y, as kind says, from the other two. *done is FALSE where cuDNN is missing or has no
 * engine. */
gboolean gtorch_cuda_cudnn_convolve (const GTorchCudnnConv *conv, GTorchCudaLane *lane, gpointer x,
                                     gpointer w, gpointer y, gboolean *done, GError **error);

G_END_DECLS
