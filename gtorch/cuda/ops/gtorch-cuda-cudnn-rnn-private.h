/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cuda/ops/gtorch-cuda-cudnn-private.h>

G_BEGIN_DECLS

/* cuDNN's cudnnRNNAlgo_t, without the one that compiles kernels for each network. */
typedef enum
{
  GTORCH_CUDNN_RNN_STANDARD = 0, /* an operation for each step and layer */
  GTORCH_CUDNN_RNN_PERSIST = 1,  /* a kernel that stays for all steps of a layer */
  GTORCH_CUDNN_RNN_SMALL = 3,    /* the same for few hidden units */
} GTorchCudnnRNNAlgorithm;

/* A form of network. The numbers fit into 31 bits. */
typedef struct
{
  guint device, dtype;
  guint mode; /* GTorchRecurrentMode */
  gint inputs, hidden, states, n_layers, n_directions;
  gint batch, steps;
  const gint64 *batch_sizes; /* of the steps */
  gboolean is_uniform;       /* all sequences have the same length */
  gboolean has_biases, has_projections;
  gboolean tf32;   /* float32 may be rounded to TF32 */
  gboolean trains; /* a backward pass follows */
  GTorchCudnnRNNAlgorithm algorithm;
} GTorchCudnnRNNForm;

/* The descriptors of a form, and what cuDNN needs for it, in bytes. */
typedef struct
{
  gpointer rnn, dropout, x, y, h, c;
  gsize weights, workspace, reserve;
} GTorchCudnnRNN;

/* Returns NULL if cuDNN does not support the form or lacks its functions; it must be locked. */
GTorchCudnnRNN *gtorch_cudnn_rnn_new (const GTorchCudnnRNNForm *form, gpointer handle);
/* cuDNN need not be locked. */
void gtorch_cudnn_rnn_free (gpointer self);

/* Finds where the parameters of each layer and direction begin among the weights, in elements. Returns FALSE
 * if cuDNN has their rows in another order or at other distances than they have. */
gboolean gtorch_cudnn_rnn_find_offsets (const GTorchCudnnRNN *self, const GTorchCudnnRNNForm *form,
                                        gpointer handle, gint64 *offsets);

/* The addresses of operands on the device. NULL: none, or zeros. */
typedef struct
{
  gconstpointer x, hx, cx, weights;
  gpointer y, hy, cy;
  gconstpointer dy, dhy, dcy; /* for gradients; dy is needed */
  gpointer dx, dhx, dcx, dweights;
  gpointer workspace, reserve; /* the reserve is changed by gradients */
} GTorchCudnnRNNData;

/* These functions enqueue work on the handle's stream; cuDNN must be locked. They return its status. The
 * gradients of the weights are added to dweights, and follow the others. */
gint gtorch_cudnn_rnn_forward (const GTorchCudnnRNN *self, gpointer handle, gboolean trains,
                               const GTorchCudnnRNNData *data);
gint gtorch_cudnn_rnn_backward (const GTorchCudnnRNN *self, gpointer handle,
                                const GTorchCudnnRNNData *data);
gint gtorch_cudnn_rnn_backward_weights (const GTorchCudnnRNN *self, gpointer handle,
                                        const GTorchCudnnRNNData *data);

G_END_DECLS
