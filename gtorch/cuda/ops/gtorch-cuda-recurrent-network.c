/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Recurrent networks by cuDNN, all layers and directions at once.
 *
 * The weights are copied into the one piece of memory that cuDNN wants, in each forward pass: 25 MB take as
 * long as three of its hundreds of kernels, and parameters stay where the program has them. They are kept
 * for the backward pass, before what cuDNN itself keeps (its reserve), of which the backward pass changes a
 * copy, so that it can be repeated.
 *
 * A variant is an algorithm of cuDNN's, and whether float32 may be rounded to TF32: both passes need the
 * same. cuDNN adds up in several streams, whose order may vary, so a deterministic device does without
 * it. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "cuda/graph/gtorch-cuda-capture-private.h"
#include "cuda/ops/gtorch-cuda-network-private.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

#define ALGORITHM 7 /* the bits of a variant */
#define TF32      8
#define ALIGNMENT 256

/* --- forms --- */

/* Returns FALSE if cuDNN could not count the elements, or there are none. */
static gboolean
form_init (GTorchCudnnRNNForm *form, const GTorchNetwork *n, const GTorchOpCall *call)
{
  GTorchDevice *device = call->device;
  const gint64 widest =
      MAX (MAX (n->inputs, n->states * n->n_directions), n->n_gates * n->hidden * n->n_directions);
  gint64 numel;

  if (n->n_steps == 0 || n->n_steps > G_MAXINT32 || n->batch < 1 || n->batch > G_MAXINT32
      || n->inputs < 1 || n->states < 1 || n->hidden < 1 || n->hidden > G_MAXINT32 / 16
      || n->states > G_MAXINT32 / 16 || n->n_layers > G_MAXINT32 / 2
      || __builtin_mul_overflow (n->total, widest, &numel) || numel > G_MAXINT32
      || gtorch_dtype_kind (call->inputs[0]->dtype) != GTORCH_KIND_FLOAT)
    return FALSE;
  *form = (GTorchCudnnRNNForm){
    .device = (guint) device->index,
    .dtype = call->inputs[0]->dtype,
    .mode = n->mode,
    .inputs = (gint) n->inputs,
    .hidden = (gint) n->hidden,
    .states = (gint) n->states,
    .n_layers = (gint) n->n_layers,
    .n_directions = (gint) n->n_directions,
    .batch = (gint) n->batch,
    .steps = (gint) n->n_steps,
    .batch_sizes = n->batch_sizes,
    .is_uniform = n->batch_sizes[n->n_steps - 1] == n->batch,
    .has_biases = n->has_biases,
    .has_projections = n->has_projections,
    .trains = n->is_kept,
  };
  if (n->variant < 0)
    form->tf32 = form->dtype == GTORCH_DTYPE_FLOAT32
                 && g_atomic_int_get (&device->matmul_precision) != GTORCH_PRECISION_IEEE;
  else
    {
      form->algorithm = (GTorchCudnnRNNAlgorithm) (n->variant & ALGORITHM);
      form->tf32 = (n->variant & TF32) != 0;
    }
  return TRUE;
}

/* --- queries --- */

typedef struct
{
  const GTorchCudnnRNNForm *form;
  gint algorithm;
} Chooser;

static gboolean
choose (GTorchOpCall *call, GTorchCudaLane *lane, gpointer data, GError **error)
{
  Chooser *chooser = data;

  chooser->algorithm = gtorch_cuda_network_choose (chooser->form, lane);
  return TRUE;
}

static gsize
round_up (gsize n_bytes)
{
  return (n_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Answers for the form's algorithm. Returns FALSE if cuDNN refuses it. */
static gboolean
answer (const GTorchCudnnRNNForm *form, gint64 *answers)
{
  gpointer handle = gtorch_cudnn_begin (form->device);
  GTorchCudnnRNN *rnn;
  gboolean found;

  if (handle == NULL)
    return FALSE;
  rnn = gtorch_cudnn_rnn_new (form, handle);
  found = rnn != NULL
          && gtorch_cuda_network_find_offsets (form, rnn, handle, answers + GTORCH_NETWORK_OFFSETS);
  gtorch_cudnn_end ();
  if (found)
    {
      answers[GTORCH_NETWORK_VARIANT] = (gint64) form->algorithm | (form->tf32 ? TF32 : 0);
      answers[GTORCH_NETWORK_SAVED] = (gint64) (round_up (rnn->weights) + rnn->reserve);
      answers[GTORCH_NETWORK_WEIGHTS] = (gint64) (rnn->weights / gtorch_dtype_size (form->dtype));
    }
  g_clear_pointer (&rnn, gtorch_cudnn_rnn_free);
  return found;
}

gboolean
gtorch_cuda_query_recurrent_network (GTorchOpCall *call, gint64 *answers, GError **error)
{
  Chooser chooser = { NULL, GTORCH_CUDA_NO_ALGORITHM };
  GTorchCudnnRNNForm form;
  GTorchNetwork n;
  GTORCH_CUDA_APART;

  answers[GTORCH_NETWORK_VARIANT] = -1;
  gtorch_network_init (&n, call);
  if (!form_init (&form, &n, call)
      || (n.variant < 0 && g_atomic_int_get (&call->device->deterministic))
      || !gtorch_cuda_device_activate (GTORCH_CUDA_DEVICE (call->device), NULL))
    return TRUE;
  if (n.variant >= 0)
    {
      if (!gtorch_cuda_network_is_refused (&form) && !answer (&form, answers))
        gtorch_cuda_network_refuse (&form);
      return TRUE;
    }
  chooser.form = &form;
  for (;;)
    {
      if (!g_atomic_int_get (&call->device->benchmark))
        chooser.algorithm = gtorch_cuda_network_choose (&form, NULL);
      else if (!gtorch_cuda_run_early (call, choose, &chooser, NULL))
        return TRUE;
      if (chooser.algorithm == GTORCH_CUDA_NO_ALGORITHM)
        return TRUE;
      form.algorithm = (GTorchCudnnRNNAlgorithm) chooser.algorithm;
      if (answer (&form, answers))
        return TRUE;
      gtorch_cuda_network_refuse (&form);
    }
}

/* --- running --- */

/* A call, and what cuDNN is given for it. */
typedef struct
{
  GTorchOpCall *call;
  GTorchCudaLane *lane;
  GTorchNetwork network;
  GTorchCudnnRNNForm form;
  GTorchCudnnRNN *rnn;
  gint64 *offsets; /* of the parameters */
  GTorchImpl *packed[8];
  GTorchImpl *weights, *workspace, *zeros, *reserve;
  GTorchCudnnRNNData data;
} Run;

static void
run_clear (Run *run)
{
  gtorch_impl_clear (run->packed, G_N_ELEMENTS (run->packed));
  g_clear_pointer (&run->weights, gtorch_impl_unref);
  g_clear_pointer (&run->workspace, gtorch_impl_unref);
  g_clear_pointer (&run->zeros, gtorch_impl_unref);
  g_clear_pointer (&run->reserve, gtorch_impl_unref);
  g_clear_pointer (&run->offsets, g_free);
  /* a graph may refer to what the descriptors have on the host */
  if (run->rnn != NULL)
    gtorch_cuda_lane_keep (run->lane, g_steal_pointer (&run->rnn), gtorch_cudnn_rnn_free);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Run, run_clear)

static gboolean
fail (const Run *run, const gchar *function, gint status, GError **error)
{
  /* 2000 and more: what was given is not allowed; 3000 and more: it is not supported */
  if (status >= 2000 && status < 4000)
    gtorch_cuda_network_refuse (&run->form);
  g_debug ("%s: status %d", function, status);
  gtorch_call_error (run->call, error, GTORCH_ERROR_CUDA, _ ("%s failed with status %d"), function,
                     status);
  return FALSE;
}

static gboolean
run_begin (Run *run, GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  gpointer handle;
  gboolean found = FALSE;

  run->call = call;
  run->lane = lane;
  gtorch_network_init (&run->network, call);
  if (!gtorch_cuda_device_activate (lane->device, error))
    return FALSE;
  run->offsets = g_new0 (gint64, call->n_inputs - call->op->n_inputs);
  if (form_init (&run->form, &run->network, call)
      && (handle = gtorch_cudnn_begin (run->form.device)) != NULL)
    {
      run->rnn = gtorch_cudnn_rnn_new (&run->form, handle);
      found = run->rnn != NULL
              && gtorch_cuda_network_find_offsets (&run->form, run->rnn, handle, run->offsets);
      gtorch_cudnn_end ();
    }
  return found || fail (run, "cudnnSetRNNDescriptor_v8", 3000, error);
}

/* Returns the address of an operand, contiguous; NULL for none. */
static gboolean
pack (Run *run, guint i, gconstpointer *address, GError **error)
{
  GTorchImpl *input = run->call->inputs[i];

  *address = NULL;
  if (input == NULL)
    return TRUE;
  run->packed[i] = gtorch_cuda_pack (input, run->form.dtype, run->lane, error);
  if (run->packed[i] == NULL)
    return FALSE;
  *address = gtorch_impl_data (run->packed[i]);
  return TRUE;
}

static gboolean
make_workspace (Run *run, GError **error)
{
  if (run->rnn->workspace == 0)
    return TRUE;
  run->workspace = gtorch_cuda_scratch (run->lane, (gint64) run->rnn->workspace, error);
  run->data.workspace = run->workspace != NULL ? gtorch_impl_data (run->workspace) : NULL;
  return run->workspace != NULL;
}

/* Copies the parameters to where cuDNN wants them, in the memory of `bytes`. */
static gboolean
pack_weights (Run *run, GTorchImpl *bytes, GError **error)
{
  const guint first = run->call->op->n_inputs, dtype = run->form.dtype;
  const gint64 n_weights = (gint64) (run->rnn->weights / gtorch_dtype_size (dtype));
  g_autoptr (GTorchImpl) all =
      gtorch_impl_new_strided (bytes->storage, dtype, 0, &n_weights, NULL, 1);
  gint64 numel = 0;

  for (guint i = first; i < run->call->n_inputs; i++)
    numel += run->call->inputs[i]->numel;
  if (numel < n_weights && !gtorch_cuda_clear (all, run->lane, error))
    return FALSE;
  for (guint i = first; i < run->call->n_inputs; i++)
    {
      GTorchImpl *param = run->call->inputs[i];
      g_autoptr (GTorchImpl) place =
          gtorch_impl_new_strided (bytes->storage, dtype, run->offsets[i - first], param->shape,
                                   NULL, param->n_dims);

      if (!gtorch_cuda_copy_here (place, param, run->lane, error))
        return FALSE;
    }
  return TRUE;
}

gboolean
gtorch_cuda_recurrent_network (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  g_auto (Run) run = { NULL };
  GTorchImpl *saved = call->outputs[3];
  gpointer handle;
  gint status;

  if (!run_begin (&run, call, lane, error) || !pack (&run, 0, &run.data.x, error)
      || !pack (&run, 1, &run.data.hx, error) || !pack (&run, 2, &run.data.cx, error)
      || !make_workspace (&run, error))
    return FALSE;
  run.weights = run.form.trains ? gtorch_impl_ref (saved)
                                : gtorch_cuda_scratch (lane, (gint64) run.rnn->weights, error);
  if (run.weights == NULL || !pack_weights (&run, run.weights, error))
    return FALSE;
  run.data.weights = gtorch_impl_data (run.weights);
  if (run.form.trains)
    run.data.reserve = (char *) gtorch_impl_data (saved) + round_up (run.rnn->weights);
  run.data.y = gtorch_impl_data (call->outputs[0]);
  run.data.hy = gtorch_impl_data (call->outputs[1]);
  run.data.cy = run.data.cx != NULL ? gtorch_impl_data (call->outputs[2]) : NULL;
  handle = gtorch_cudnn_begin (run.form.device);
  status = gtorch_cudnn_set_stream (handle, lane);
  if (status == 0)
    status = gtorch_cudnn_rnn_forward (run.rnn, handle, run.form.trains, &run.data);
  gtorch_cudnn_end ();
  return status == 0 || fail (&run, "cudnnRNNForward", status, error);
}

/* --- gradients --- */

/* Copies what cuDNN keeps, and finds the weights before it. */
static gboolean
copy_reserve (Run *run, GTorchImpl *saved, GError **error)
{
  const gsize start = round_up (run->rnn->weights);
  const char *bytes = gtorch_impl_data (saved);

  run->data.weights = bytes;
  if (run->rnn->reserve == 0)
    return TRUE;
  if (start + run->rnn->reserve != (gsize) saved->numel)
    return fail (run, "cudnnGetRNNTempSpaceSizes", 2000, error);
  run->reserve = gtorch_cuda_scratch (run->lane, (gint64) run->rnn->reserve, error);
  if (run->reserve == NULL)
    return FALSE;
  run->data.reserve = gtorch_impl_data (run->reserve);
  return gtorch_cuda_check (gtorch_cuda.cuMemcpyDtoDAsync ((CUdeviceptr) (guintptr)
                                                               run->data.reserve,
                                                           (CUdeviceptr) (guintptr) (bytes + start),
                                                           run->rnn->reserve, run->lane->handle),
                            "cuMemcpyDtoDAsync", error);
}

/* cuDNN takes nothing for zeros where it takes gradients of last states, but not for those of the output. */
static gboolean
make_upper (Run *run, GError **error)
{
  GTorchImpl *output = run->packed[3];

  if (run->data.dy != NULL)
    return TRUE;
  run->zeros = gtorch_impl_new (gtorch_cuda_lane_device (run->lane), output->dtype, output->shape,
                                output->n_dims, error);
  if (run->zeros == NULL || !gtorch_cuda_clear (run->zeros, run->lane, error))
    return FALSE;
  run->data.dy = gtorch_impl_data (run->zeros);
  return TRUE;
}

gboolean
gtorch_cuda_recurrent_network_backward (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  const gboolean wants_weights = call->outputs[3]->numel > 0;
  g_auto (Run) run = { NULL };
  gconstpointer y = NULL;
  gpointer handle;
  gint status;

  if (!run_begin (&run, call, lane, error) || !pack (&run, 0, &run.data.x, error)
      || !pack (&run, 1, &run.data.hx, error) || !pack (&run, 2, &run.data.cx, error)
      || !pack (&run, 3, &y, error) || !pack (&run, 5, &run.data.dy, error)
      || !pack (&run, 6, &run.data.dhy, error) || !pack (&run, 7, &run.data.dcy, error)
      || !make_upper (&run, error) || !copy_reserve (&run, call->inputs[4], error)
      || !make_workspace (&run, error)
      || (wants_weights && !gtorch_cuda_clear (call->outputs[3], lane, error)))
    return FALSE;
  run.data.y = (gpointer) y;
  run.data.dx = gtorch_impl_data (call->outputs[0]);
  run.data.dhx = gtorch_impl_data (call->outputs[1]);
  run.data.dcx = run.data.cx != NULL ? gtorch_impl_data (call->outputs[2]) : NULL;
  run.data.dweights = wants_weights ? gtorch_impl_data (call->outputs[3]) : NULL;
  handle = gtorch_cudnn_begin (run.form.device);
  status = gtorch_cudnn_set_stream (handle, lane);
  if (status == 0)
    status = gtorch_cudnn_rnn_backward (run.rnn, handle, &run.data);
  if (status == 0 && wants_weights)
    status = gtorch_cudnn_rnn_backward_weights (run.rnn, handle, &run.data);
  gtorch_cudnn_end ();
  return status == 0 || fail (&run, "cudnnRNNBackwardData_v8", status, error);
}
