/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Random numbers on GPUs: the same as on the CPU for one seed. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "cuda/gtorch-cuda-plain-private.h"
#include "gtorch-device-private.h"
#include "gtorch-ops-private.h"

#define FAMILY      GTORCH_CUDA_FAMILY_RANDOM
#define MAX_THREADS (1 << 19) /* each goes on to further elements: short ones do little but begin */

static gboolean
run (GTorchOpCall *call, GTorchCudaLane *lane, const gchar *form, GtPlain *p, GTorchImpl *input,
     GError **error)
{
  GTorchImpl *output = call->outputs[0];
  g_autoptr (GTorchImpl) plain = gtorch_cuda_pack_output (output, output->dtype, error);
  g_autoptr (GTorchImpl) mask = NULL;
  g_autoptr (GTorchImpl) packed = NULL;

  if (plain == NULL
      || (input != NULL && (packed = gtorch_cuda_pack (input, output->dtype, lane, error)) == NULL)
      || (call->n_outputs > 1
          && (mask = gtorch_cuda_pack_output (call->outputs[1], GTORCH_DTYPE_BOOL, error)) == NULL))
    return FALSE;
  p->n[0] = output->numel;
  p->n[2] = (gint64) call->seed;
  p->n[3] = (gint64) call->counter;
  p->n[7] = call->op->id;
  p->out[0] = gtorch_impl_data (plain);
  if (mask != NULL)
    p->out[1] = gtorch_impl_data (mask);
  if (packed != NULL)
    p->in[0] = gtorch_impl_data (packed);
  return gtorch_cuda_plain_run_form (FAMILY, "random", output->dtype, form, lane,
                                     MIN ((output->numel + 1) / 2, MAX_THREADS), p, error)
         && gtorch_cuda_unpack (plain, output, lane, error)
         && (mask == NULL || gtorch_cuda_unpack (mask, call->outputs[1], lane, error));
}

static gboolean
fill (GTorchOpCall *call, GTorchCudaLane *lane, const gchar *form, gdouble scale, gdouble shift,
      GError **error)
{
  GtPlain p = { .d = { scale, shift } };

  return run (call, lane, form, &p, NULL, error);
}

gboolean
gtorch_cuda_rand (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return fill (call, lane, "uniform", 1, 0, error);
}

gboolean
gtorch_cuda_randn (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return fill (call, lane, "normal", 1, 0, error);
}

gboolean
gtorch_cuda_uniform (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return fill (call, lane, "uniform", call->attrs[1].d - call->attrs[0].d, call->attrs[0].d, error);
}

gboolean
gtorch_cuda_normal (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return fill (call, lane, "normal", call->attrs[1].d, call->attrs[0].d, error);
}

gboolean
gtorch_cuda_exponential (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return fill (call, lane, "exponential", 1 / call->attrs[0].d, 0, error);
}

gboolean
gtorch_cuda_randint (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  gint64 low = call->attrs[0].i;
  GtPlain p = { .n = { 0, 0, 0, 0, low, (gint64) ((guint64) call->attrs[1].i - (guint64) low) } };

  return run (call, lane, "integers", &p, NULL, error);
}

gboolean
gtorch_cuda_bernoulli (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GtPlain p = { .d = { 1 } };

  p.report = gtorch_cuda_report (lane, error);
  return p.report != NULL && run (call, lane, "bernoulli", &p, call->inputs[0], error);
}

gboolean
gtorch_cuda_bernoulli_p (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GtPlain p = { .d = { 1, 0, call->attrs[0].d } };

  return run (call, lane, "below", &p, NULL, error);
}

gboolean
gtorch_cuda_native_dropout (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GtPlain p = { .d = { 1, 0, call->attrs[0].d, call->attrs[1].d } };

  return run (call, lane, "dropout", &p, call->inputs[0], error);
}

/* --- chosen on the host: these need the values there, or are few --- */

static gboolean
on_host (GTorchOpCall *call, gboolean (*func) (GTorchOpCall *call, GError **error), GError **error)
{
  GTorchImpl *inputs[2] = { NULL }, *output = call->outputs[0];
  GTorchOpCall host = *call;
  g_autoptr (GTorchImpl) made = NULL;
  g_autoptr (GTorchImpl) moved = NULL;
  gboolean ok = TRUE;
  guint i;

  g_assert (call->n_inputs <= G_N_ELEMENTS (inputs));
  for (i = 0; ok && i < call->n_inputs; i++)
    ok = (inputs[i] = gtorch_op_to_device (call->inputs[i], gtorch_device_cpu (), error)) != NULL;
  if (ok)
    made =
        gtorch_impl_new (gtorch_device_cpu (), output->dtype, output->shape, output->n_dims, error);
  host.inputs = inputs;
  host.device = gtorch_device_cpu ();
  host.outputs[0] = made;
  ok = made != NULL && func (&host, error)
       && (moved = gtorch_copy_to_device (made, call->device, FALSE,
                                          output->is_contiguous ? output : NULL, error))
              != NULL
       && (moved == output
           || gtorch_cuda_copy_here (output, moved, gtorch_cuda_current_lane (call->device, error),
                                     error));
  gtorch_impl_clear (inputs, G_N_ELEMENTS (inputs));
  return ok;
}

gboolean
gtorch_cuda_randperm (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return call->outputs[0]->numel == 0 || on_host (call, gtorch_cpu_randperm, error);
}

gboolean
gtorch_cuda_multinomial (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return on_host (call, gtorch_cpu_multinomial, error);
}

gboolean
gtorch_cuda_triangle_indices (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return call->outputs[0]->numel == 0 || on_host (call, gtorch_cpu_triangle_indices, error);
}
