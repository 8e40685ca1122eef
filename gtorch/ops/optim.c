/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-optim.h"
#include "cuda/gtorch-cuda-plain-private.h"
#include "gtorch-ops-private.h"

/* The parameter, its gradient and its state must be alike. */
gboolean
gtorch_shape_optim_step (GTorchOpCall *call, GError **error)
{
  GTorchImpl *self = call->inputs[0];
  guint i, n = call->op->id == GTORCH_OP_ADAM_STEP ? 5 : 3;

  for (i = 1; i < n; i++)
    {
      const GTorchImpl *input = call->inputs[i];

      if (input == NULL)
        continue;
      if (!gtorch_impl_same_shape (self, input))
        {
          gtorch_call_error (call, error, GTORCH_ERROR_SHAPE,
                             _ ("tensor %u has shape %s, the parameter %s"), i,
                             gtorch_impl_shape_str (input), gtorch_impl_shape_str (self));
          return FALSE;
        }
      if (self->dtype != input->dtype)
        {
          gtorch_call_error (call, error, GTORCH_ERROR_DTYPE,
                             _ ("tensor %u has dtype %s, the parameter %s"), i,
                             gtorch_dtype_get_name (input->dtype),
                             gtorch_dtype_get_name (self->dtype));
          return FALSE;
        }
    }
  for (i = n; i < call->n_inputs; i++)
    if (call->inputs[i] != NULL
        && (call->inputs[i]->dtype != GTORCH_DTYPE_FLOAT64 || call->inputs[i]->numel != 1))
      {
        gtorch_call_error (call, error, GTORCH_ERROR_INVALID,
                           _ ("the step count and the learning rate must be one float64"));
        return FALSE;
      }
  call->compute = self->dtype;
  return gtorch_call_check_dtype (call, self->dtype, error)
         && gtorch_call_set_output (call, 0, self->dtype, self->shape, self->n_dims, error);
}

static void
run (GTorchOpCall *call, guint n, GTorchIterFunc func, gpointer step)
{
  GTorchImpl *operands[GTORCH_ITER_MAX_OPERANDS] = { call->outputs[0] };
  GTorchIter iter;
  guint i;

  for (i = 1; i < n; i++)
    operands[i] = call->inputs[i] != NULL ? call->inputs[i] : call->inputs[1];
  if (operands[0]->numel == 0)
    return;
  gtorch_iter_init (&iter, operands, n, operands[0]->shape, operands[0]->n_dims);
  gtorch_iter_run (&iter, GTORCH_CPU_GRAIN, func, step);
}

static gdouble
learning_rate (GTorchImpl *cell, const GTorchAttr *attrs)
{
  return cell != NULL ? *(const gdouble *) gtorch_impl_data (cell) : attrs[0].d;
}

gboolean
gtorch_cpu_sgd_step (GTorchOpCall *call, GError **error)
{
  const GTorchAttr *attrs = call->attrs;
  gdouble *count = call->inputs[4] != NULL ? gtorch_impl_data (call->inputs[4]) : NULL;
  GTorchSGDStep step = {
    .dtype = call->outputs[0]->dtype,
    .has_buffer = call->inputs[2] != NULL,
    .lr = learning_rate (call->inputs[3], attrs),
    .momentum = attrs[1].d,
    .dampening = attrs[2].d,
    .weight_decay = attrs[3].d,
    .nesterov = attrs[4].i,
    .maximize = attrs[5].i,
    .first = count != NULL ? *count == 0 : attrs[6].i,
  };

  run (call, 3, GTORCH_ISA_CALL (gtorch_sgd_loop), &step);
  if (count != NULL)
    *count += 1;
  return TRUE;
}

gboolean
gtorch_cpu_adam_step (GTorchOpCall *call, GError **error)
{
  const GTorchAttr *attrs = call->attrs;
  gdouble *count = gtorch_impl_data (call->inputs[5]);
  GTorchAdamStep step = {
    .dtype = call->outputs[0]->dtype,
    .amsgrad = call->inputs[4] != NULL,
    .lr = learning_rate (call->inputs[6], attrs),
    .beta1 = attrs[1].d,
    .beta2 = attrs[2].d,
    .eps = attrs[3].d,
    .weight_decay = attrs[4].d,
    .decoupled = attrs[5].i,
    .maximize = attrs[6].i,
  };

  *count += 1;
  step.correction1 = 1 - pow (step.beta1, *count);
  step.correction2_sqrt = sqrt (1 - pow (step.beta2, *count));
  run (call, 5, GTORCH_ISA_CALL (gtorch_adam_loop), &step);
  return TRUE;
}

/* --- on GPUs --- */

/* Packs what the step reads and writes; [0] is the parameter, [1] the gradient. */
static gboolean
cuda_run (GTorchOpCall *call, GTorchCudaLane *lane, guint n, const gchar *name, GtPlain *p,
          GError **error)
{
  GTorchImpl *packed[5] = { NULL };
  gboolean ok = FALSE, vector;
  guint i, dtype = call->compute;
  guintptr address = 0;

  for (i = 0; i < n; i++)
    {
      GTorchImpl *impl = i == 0 ? call->outputs[0] : call->inputs[i];

      if (impl != NULL && (packed[i] = gtorch_cuda_pack (impl, dtype, lane, error)) == NULL)
        goto done;
      if (impl != NULL)
        address |= (guintptr) gtorch_impl_data (packed[i]);
    }
  p->out[0] = gtorch_impl_data (packed[0]);
  p->in[0] = gtorch_impl_data (packed[1]);
  p->out[1] = packed[2] != NULL ? gtorch_impl_data (packed[2]) : NULL;
  p->out[2] = n > 3 ? gtorch_impl_data (packed[3]) : NULL;
  if (n > 4)
    p->in[2] = packed[4] != NULL ? gtorch_impl_data (packed[4]) : NULL;
  p->n[0] = packed[0]->numel;
  vector = n > 3 && (address & 15) == 0 && p->n[0] % (16 / (gint64) gtorch_dtype_size (dtype)) == 0;
  ok = gtorch_cuda_plain_run (GTORCH_CUDA_FAMILY_NN, vector ? "adam_vector" : name, dtype, lane,
                              vector ? p->n[0] * (gint64) gtorch_dtype_size (dtype) / 16 : p->n[0],
                              p, error);
  for (i = 0; ok && i < n; i++)
    if (packed[i] != NULL && i != 1)
      ok = gtorch_cuda_unpack (packed[i], i == 0 ? call->outputs[0] : call->inputs[i], lane, error);
done:
  gtorch_impl_clear (packed, 5);
  return ok;
}

/* Where a kernel finds a number; NULL if there is none. */
static gboolean
cuda_cell (GTorchImpl *cell, GTorchCudaLane *lane, GTorchImpl **moved, gconstpointer *address,
           GError **error)
{
  *address = NULL;
  if (cell == NULL)
    return TRUE;
  *moved = gtorch_cuda_pack (cell, GTORCH_DTYPE_FLOAT64, lane, error);
  if (*moved == NULL)
    return FALSE;
  *address = gtorch_impl_data (*moved);
  return TRUE;
}

/* One step more, after or before the kernel that looks at it. */
static gboolean
cuda_count (GTorchImpl *count, GTorchCudaLane *lane, GError **error)
{
  GtPlain p = { .out = { gtorch_impl_data (count) } };

  if (count->storage->device != gtorch_cuda_lane_device (lane))
    {
      *(gdouble *) p.out[0] += 1;
      return TRUE;
    }
  return gtorch_cuda_plain_run_blocks (GTORCH_CUDA_FAMILY_NN, "adam_count", GTORCH_DTYPE_FLOAT64,
                                       lane, 1, &p, error);
}

gboolean
gtorch_cuda_sgd_step (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  const GTorchAttr *a = call->attrs;
  gboolean first = a[6].i;
  GTorchImpl *count = call->inputs[4];
  GtPlain p = {
    .n = { 0, call->inputs[2] != NULL, a[4].i, a[5].i },
    .d = { a[0].d, a[1].d, first ? 1 : 1 - a[2].d, a[3].d, first ? 0 : a[1].d },
  };
  g_autoptr (GTorchImpl) lr = NULL;
  g_autoptr (GTorchImpl) before = NULL;

  if (count != NULL) /* the kernel says which is the first */
    {
      p.d[2] = 1 - a[2].d;
      p.d[4] = a[1].d;
    }
  return cuda_cell (call->inputs[3], lane, &lr, &p.in[1], error)
         && cuda_cell (count, lane, &before, &p.in[2], error)
         && cuda_run (call, lane, 3, "sgd", &p, error)
         && (count == NULL || cuda_count (count, lane, error));
}

gboolean
gtorch_cuda_adam_step (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  const GTorchAttr *a = call->attrs;
  GtPlain p = { .n = { 0, a[5].i, a[6].i }, .d = { a[0].d, a[1].d, a[2].d, a[3].d, a[4].d } };
  g_autoptr (GTorchImpl) count = NULL;
  g_autoptr (GTorchImpl) lr = NULL;

  return cuda_count (call->inputs[5], lane, error)
         && cuda_cell (call->inputs[5], lane, &count, &p.in[1], error)
         && cuda_cell (call->inputs[6], lane, &lr, &p.in[3], error)
         && cuda_run (call, lane, 5, "adam", &p, error);
}
