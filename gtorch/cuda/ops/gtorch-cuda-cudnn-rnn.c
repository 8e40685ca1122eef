/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* cuDNN's functions for recurrent networks.
 *
 * Descriptors describe forms only, and take no time beside the hundreds of kernels of a network, so they are
 * made for each call. Lengths of sequences are the host's: cuDNN has ignored those on the device since 8.9.1.
 * Sequences of one length have cuDNN's padded layout, which all algorithms take; others are packed.
 *
 * cuDNN has the weights of all layers in one piece of memory, matrices first, and gives the place of each
 * gate; the gates follow one another in the order of PyTorch's parameters: i, f, g, o of an LSTM, and r, z,
 * n of a GRU, whose second bias is inside of the product with the reset gate. There always are both biases;
 * those of a network without are zeros. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-cudnn-rnn-private.h"
#include "ops/gtorch-op-parts-private.h"

/* --- the part of cuDNN's binary interface that is used --- */
enum
{
  INFERENCE = 0,
  TRAINING = 1,
};

enum
{
  RELU = 0,
  TANH = 1,
  LSTM = 2,
  GRU = 3,
};

enum
{
  DEFAULT_MATH = 0,
  TENSOR_OP_MATH = 1,
  FMA_MATH = 3,
};

#define DOUBLE_BIAS      2
#define LINEAR_INPUT     0
#define UNPACKED         0 /* the layouts have the steps as the first dimension */
#define PACKED           1
#define PADDED_IO        1u
#define ADD_TO_GRADIENTS 0
#define FLOAT            0
#define DOUBLE           1
#define PROJECTION       8 /* the number of an LSTM's projection among its matrices */
#define MAX_DIMS         8

static struct
{
  gint (*dropout_create) (gpointer *descriptor);
  gint (*dropout_destroy) (gpointer descriptor);
  gint (*dropout_set) (gpointer descriptor, gpointer handle, gfloat dropout, gpointer states,
                       gsize n_bytes, guint64 seed);
  gint (*tensor_create) (gpointer *descriptor);
  gint (*tensor_destroy) (gpointer descriptor);
  gint (*tensor_set) (gpointer descriptor, gint type, gint n_dims, const gint *shape,
                      const gint *strides);
  gint (*tensor_get) (gpointer descriptor, gint n_wanted, gint *type, gint *n_dims, gint *shape,
                      gint *strides);
  gint (*data_create) (gpointer *descriptor);
  gint (*data_destroy) (gpointer descriptor);
  gint (*data_set) (gpointer descriptor, gint type, gint layout, gint steps, gint batch, gint width,
                    const gint *lengths, gpointer fill);
  gint (*rnn_create) (gpointer *descriptor);
  gint (*rnn_destroy) (gpointer descriptor);
  gint (*rnn_set) (gpointer descriptor, gint algorithm, gint mode, gint bias, gint directions,
                   gint input_mode, gint type, gint compute, gint math, gint32 inputs,
                   gint32 hidden, gint32 states, gint32 n_layers, gpointer dropout, guint32 flags);
  gint (*get_temp) (gpointer handle, gpointer rnn, gint forward_mode, gpointer x, gsize *workspace,
                    gsize *reserve);
  gint (*get_weights) (gpointer handle, gpointer rnn, gsize *n_bytes);
  gint (*get_params) (gpointer handle, gpointer rnn, gint32 part, gsize n_bytes,
                      gconstpointer weights, gint32 matrix, gpointer m, gpointer *m_at, gpointer b,
                      gpointer *b_at);
  gint (*forward) (gpointer handle, gpointer rnn, gint forward_mode, const gint32 *lengths,
                   gpointer x_form, gconstpointer x, gpointer y_form, gpointer y, gpointer h_form,
                   gconstpointer hx, gpointer hy, gpointer c_form, gconstpointer cx, gpointer cy,
                   gsize n_weights, gconstpointer weights, gsize n_workspace, gpointer workspace,
                   gsize n_reserve, gpointer reserve);
  gint (*backward) (gpointer handle, gpointer rnn, const gint32 *lengths, gpointer y_form,
                    gconstpointer y, gconstpointer dy, gpointer x_form, gpointer dx,
                    gpointer h_form, gconstpointer hx, gconstpointer dhy, gpointer dhx,
                    gpointer c_form, gconstpointer cx, gconstpointer dcy, gpointer dcx,
                    gsize n_weights, gconstpointer weights, gsize n_workspace, gpointer workspace,
                    gsize n_reserve, gpointer reserve);
  gint (*backward_weights) (gpointer handle, gpointer rnn, gint add, const gint32 *lengths,
                            gpointer x_form, gconstpointer x, gpointer h_form, gconstpointer hx,
                            gpointer y_form, gconstpointer y, gsize n_weights, gpointer dweights,
                            gsize n_workspace, gpointer workspace, gsize n_reserve,
                            gpointer reserve);
} rnn;

static const GTorchCudnnSymbol symbols[] = {
  { "cudnnCreateDropoutDescriptor", (gpointer *) &rnn.dropout_create },
  { "cudnnDestroyDropoutDescriptor", (gpointer *) &rnn.dropout_destroy },
  { "cudnnSetDropoutDescriptor", (gpointer *) &rnn.dropout_set },
  { "cudnnCreateTensorDescriptor", (gpointer *) &rnn.tensor_create },
  { "cudnnDestroyTensorDescriptor", (gpointer *) &rnn.tensor_destroy },
  { "cudnnSetTensorNdDescriptor", (gpointer *) &rnn.tensor_set },
  { "cudnnGetTensorNdDescriptor", (gpointer *) &rnn.tensor_get },
  { "cudnnCreateRNNDataDescriptor", (gpointer *) &rnn.data_create },
  { "cudnnDestroyRNNDataDescriptor", (gpointer *) &rnn.data_destroy },
  { "cudnnSetRNNDataDescriptor", (gpointer *) &rnn.data_set },
  { "cudnnCreateRNNDescriptor", (gpointer *) &rnn.rnn_create },
  { "cudnnDestroyRNNDescriptor", (gpointer *) &rnn.rnn_destroy },
  { "cudnnSetRNNDescriptor_v8", (gpointer *) &rnn.rnn_set },
  { "cudnnGetRNNTempSpaceSizes", (gpointer *) &rnn.get_temp },
  { "cudnnGetRNNWeightSpaceSize", (gpointer *) &rnn.get_weights },
  { "cudnnGetRNNWeightParams", (gpointer *) &rnn.get_params },
  { "cudnnRNNForward", (gpointer *) &rnn.forward },
  { "cudnnRNNBackwardData_v8", (gpointer *) &rnn.backward },
  { "cudnnRNNBackwardWeights_v8", (gpointer *) &rnn.backward_weights },
};

/* cuDNN is locked. */
static gboolean
have_functions (void)
{
  static gint state; /* 0: not looked for yet; 1: found; -1: missing */
  g_autoptr (GError) error = NULL;

  if (state == 0)
    {
      state = gtorch_cudnn_load (symbols, G_N_ELEMENTS (symbols), &error) ? 1 : -1;
      if (state < 0)
        g_info ("Recurrent networks on GPUs are composed: %s", error->message);
    }
  return state > 0;
}

/* --- descriptors --- */

static gint
math_of (const GTorchCudnnRNNForm *form)
{
  switch (form->dtype)
    {
    case GTORCH_DTYPE_FLOAT16:
      return TENSOR_OP_MATH;
    case GTORCH_DTYPE_FLOAT32:
      return form->tf32 ? DEFAULT_MATH : FMA_MATH;
    default:
      return DEFAULT_MATH;
    }
}

static gboolean
set_network (GTorchCudnnRNN *self, const GTorchCudnnRNNForm *form, gpointer handle)
{
  static const gint modes[] = {
    [GTORCH_RECURRENT_TANH] = TANH,
    [GTORCH_RECURRENT_RELU] = RELU,
    [GTORCH_RECURRENT_LSTM] = LSTM,
    [GTORCH_RECURRENT_GRU] = GRU,
  };
  const gint compute = form->dtype == GTORCH_DTYPE_FLOAT64 ? DOUBLE : FLOAT;

  return rnn.dropout_create (&self->dropout) == 0
         && rnn.dropout_set (self->dropout, handle, 0, NULL, 0, 0) == 0
         && rnn.rnn_create (&self->rnn) == 0
         && rnn.rnn_set (self->rnn, form->algorithm, modes[form->mode], DOUBLE_BIAS,
                         form->n_directions == 2, LINEAR_INPUT,
                         gtorch_cudnn_data_type (form->dtype), compute, math_of (form),
                         form->inputs, form->hidden, form->states, form->n_layers, self->dropout,
                         form->is_uniform ? PADDED_IO : 0)
                == 0;
}

static gboolean
set_data (gpointer *descriptor, const GTorchCudnnRNNForm *form, gint width, const gint *lengths)
{
  return rnn.data_create (descriptor) == 0
         && rnn.data_set (*descriptor, gtorch_cudnn_data_type (form->dtype),
                          form->is_uniform ? UNPACKED : PACKED, form->steps, form->batch, width,
                          lengths, NULL)
                == 0;
}

static gboolean
set_states (gpointer *descriptor, const GTorchCudnnRNNForm *form, gint width)
{
  const gint shape[] = { form->n_layers * form->n_directions, form->batch, width };
  const gint strides[] = { form->batch * width, width, 1 };

  return rnn.tensor_create (descriptor) == 0
         && rnn.tensor_set (*descriptor, gtorch_cudnn_data_type (form->dtype), 3, shape, strides)
                == 0;
}

/* Returns the length of each sequence, of which the longest comes first. */
static gint *
lengths_of (const GTorchCudnnRNNForm *form)
{
  gint *lengths = g_new0 (gint, form->batch);
  gint n = form->batch;

  for (gint t = 0; t < form->steps; t++)
    for (; n > form->batch_sizes[t]; n--)
      lengths[n - 1] = t;
  for (; n > 0; n--)
    lengths[n - 1] = form->steps;
  return lengths;
}

GTorchCudnnRNN *
gtorch_cudnn_rnn_new (const GTorchCudnnRNNForm *form, gpointer handle)
{
  GTorchCudnnRNN *self;
  g_autofree gint *lengths = NULL;

  if (!have_functions ())
    return NULL;
  self = g_new0 (GTorchCudnnRNN, 1);
  lengths = lengths_of (form);
  if (set_network (self, form, handle) && set_data (&self->x, form, form->inputs, lengths)
      && set_data (&self->y, form, form->states * form->n_directions, lengths)
      && set_states (&self->h, form, form->states) && set_states (&self->c, form, form->hidden)
      && rnn.get_weights (handle, self->rnn, &self->weights) == 0
      && rnn.get_temp (handle, self->rnn, form->trains ? TRAINING : INFERENCE, self->x,
                       &self->workspace, form->trains ? &self->reserve : NULL)
             == 0)
    return self;
  gtorch_cudnn_rnn_free (self);
  return NULL;
}

void
gtorch_cudnn_rnn_free (gpointer data)
{
  GTorchCudnnRNN *self = data;

  if (self->c != NULL)
    rnn.tensor_destroy (self->c);
  if (self->h != NULL)
    rnn.tensor_destroy (self->h);
  if (self->y != NULL)
    rnn.data_destroy (self->y);
  if (self->x != NULL)
    rnn.data_destroy (self->x);
  if (self->rnn != NULL)
    rnn.rnn_destroy (self->rnn);
  if (self->dropout != NULL)
    rnn.dropout_destroy (self->dropout);
  g_free (self);
}

/* --- where the weights are --- */

typedef struct
{
  const GTorchCudnnRNN *self;
  gpointer handle, matrix, bias; /* the last two are tensor descriptors */
  gsize size;                    /* of an element */
} Finder;

/* Returns the place of a matrix, or of its bias, in elements; -1 if it has not this number of them. */
static gint64
find_one (const Finder *f, gint part, gint number, gboolean is_bias, gint64 numel)
{
  /* cuDNN calculates with the address but reads nothing there */
  char *const base = (char *) ((gsize) 1 << 20);
  gpointer m = NULL, b = NULL;
  gint shape[MAX_DIMS], strides[MAX_DIMS], type, n_dims = 0;
  gint64 n = 1, at;

  if (rnn.get_params (f->handle, f->self->rnn, part, f->self->weights, base, number, f->matrix, &m,
                      f->bias, &b)
          != 0
      || rnn.tensor_get (is_bias ? f->bias : f->matrix, MAX_DIMS, &type, &n_dims, shape, strides)
             != 0)
    return -1;
  for (gint i = 0; i < MIN (n_dims, MAX_DIMS); i++)
    n *= shape[i];
  at = (is_bias ? (char *) b : (char *) m) - base;
  if (n != numel || at < 0 || at % (gint64) f->size != 0
      || at + n * (gint64) f->size > (gint64) f->self->weights)
    return -1;
  return at / (gint64) f->size;
}

/* Returns the place of a parameter, which has several gates. */
static gint64
find_gates (const Finder *f, gint part, gint first, gint n_gates, gboolean is_bias, gint64 numel)
{
  const gint64 begin = find_one (f, part, first, is_bias, numel);

  for (gint i = 1; i < n_gates; i++)
    if (find_one (f, part, first + i, is_bias, numel) != begin + i * numel)
      return -1;
  return begin;
}

static gboolean
find_all (const Finder *f, const GTorchCudnnRNNForm *form, gint64 *offsets)
{
  const gint n = gtorch_recurrent_n_gates (form->mode);
  const gint64 hidden = form->hidden;

  for (gint part = 0; part < form->n_layers * form->n_directions; part++)
    {
      const gint64 inputs =
          part < form->n_directions ? form->inputs : (gint64) form->states * form->n_directions;
      gint64 *const first = offsets;

      *offsets++ = find_gates (f, part, 0, n, FALSE, hidden * inputs);
      *offsets++ = find_gates (f, part, n, n, FALSE, hidden * form->states);
      if (form->has_biases)
        {
          *offsets++ = find_gates (f, part, 0, n, TRUE, hidden);
          *offsets++ = find_gates (f, part, n, n, TRUE, hidden);
        }
      if (form->has_projections)
        *offsets++ = find_one (f, part, PROJECTION, FALSE, hidden * form->states);
      for (const gint64 *at = first; at < offsets; at++)
        if (*at < 0)
          return FALSE;
    }
  return TRUE;
}

gboolean
gtorch_cudnn_rnn_find_offsets (const GTorchCudnnRNN *self, const GTorchCudnnRNNForm *form,
                               gpointer handle, gint64 *offsets)
{
  Finder f = { .self = self, .handle = handle, .size = gtorch_dtype_size (form->dtype) };
  const gboolean found = rnn.tensor_create (&f.matrix) == 0 && rnn.tensor_create (&f.bias) == 0
                         && find_all (&f, form, offsets);

  if (f.matrix != NULL)
    rnn.tensor_destroy (f.matrix);
  if (f.bias != NULL)
    rnn.tensor_destroy (f.bias);
  return found;
}

/* --- calls --- */

gint
gtorch_cudnn_rnn_forward (const GTorchCudnnRNN *self, gpointer handle, gboolean trains,
                          const GTorchCudnnRNNData *d)
{
  return rnn.forward (handle, self->rnn, trains ? TRAINING : INFERENCE, NULL, self->x, d->x,
                      self->y, d->y, self->h, d->hx, d->hy, self->c, d->cx, d->cy, self->weights,
                      d->weights, self->workspace, d->workspace, self->reserve, d->reserve);
}

gint
gtorch_cudnn_rnn_backward (const GTorchCudnnRNN *self, gpointer handle, const GTorchCudnnRNNData *d)
{
  return rnn.backward (handle, self->rnn, NULL, self->y, d->y, d->dy, self->x, d->dx, self->h,
                       d->hx, d->dhy, d->dhx, self->c, d->cx, d->dcy, d->dcx, self->weights,
                       d->weights, self->workspace, d->workspace, self->reserve, d->reserve);
}

gint
gtorch_cudnn_rnn_backward_weights (const GTorchCudnnRNN *self, gpointer handle,
                                   const GTorchCudnnRNNData *d)
{
  return rnn.backward_weights (handle, self->rnn, ADD_TO_GRADIENTS, NULL, self->x, d->x, self->h,
                               d->hx, self->y, d->y, self->weights, d->dweights, self->workspace,
                               d->workspace, self->reserve, d->reserve);
}
