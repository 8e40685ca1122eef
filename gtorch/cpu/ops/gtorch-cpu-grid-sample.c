/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Sampling images at positions, and its gradients. */

#include "config.h"

#include "cpu/gtorch-cpu-pack.h"
#include "cpu/ops/gtorch-cpu-grid-sample-loops.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

typedef GTorchGridSampleJob Job;

GTORCH_GRID_SAMPLE_LOOPS (gfloat, single)
GTORCH_GRID_SAMPLE_LOOPS (gdouble, double)

typedef struct
{
  GTorchRangeFunc single_precision, double_precision;
} Loops;

/* Runs the loops over n items, each of which takes `work` steps for each channel. */
static gboolean
run (GTorchOpCall *call, Job *job, const Loops *loops, gint64 n, gint64 work, GTorchImpl *images,
     GTorchImpl *grid, GTorchImpl *upper, GError **error)
{
  const guint dtype = gtorch_dtype_infos[call->compute].compute;
  GTorchImpl *output = call->outputs[0];
  GTorchImpl *const inputs[] = { images, grid, upper };
  gconstpointer *const places[] = { &job->images, &job->grid, &job->upper };
  GTorchImpl *packed[3] = { NULL };
  g_autoptr (GTorchImpl) made = gtorch_cpu_pack_output (output, dtype, error);
  gboolean done = made != NULL;
  guint i;

  for (i = 0; i < 3 && done; i++)
    if (inputs[i] != NULL)
      {
        packed[i] = gtorch_cpu_pack (inputs[i], dtype, error);
        done = packed[i] != NULL;
        if (done)
          *places[i] = gtorch_impl_data (packed[i]);
      }
  if (done)
    {
      job->output = gtorch_impl_data (made);
      gtorch_parallel_for (n, 1 + GTORCH_CPU_GRAIN / MAX (work, 1),
                           dtype == GTORCH_DTYPE_FLOAT32 ? loops->single_precision
                                                         : loops->double_precision,
                           job);
      gtorch_cpu_unpack (made, output);
    }
  gtorch_impl_clear (packed, G_N_ELEMENTS (packed));
  return done;
}

/* Runs loops over blocks of samples. */
static gboolean
run_blocks (GTorchOpCall *call, const Loops *loops, GTorchImpl *images, GTorchImpl *grid,
            GTorchImpl *upper, GError **error)
{
  Job job = { .n_blocks = 0 };

  gtorch_grid_sampling_init (&job.g, images->shape, grid, call->attrs);
  if (call->outputs[0]->numel == 0)
    return TRUE;
  job.n_blocks = (job.g.n_out + BLOCK - 1) / BLOCK;
  return run (call, &job, loops, job.g.n_images * job.n_blocks,
              BLOCK * job.g.n_taps * (1 + MIN (job.g.n_channels, GTORCH_CPU_GRAIN)), images, grid,
              upper, error);
}

gboolean
gtorch_cpu_native_grid_sample (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  static const Loops loops = { sample_single, sample_double };

  return run_blocks (call, &loops, call->inputs[0], call->inputs[1], NULL, error);
}

gboolean
gtorch_cpu_grid_sample_grid_grad (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  static const Loops loops = { grid_grad_single, grid_grad_double };

  return run_blocks (call, &loops, call->inputs[1], call->inputs[2], call->inputs[0], error);
}

gboolean
gtorch_cpu_grid_sample_input_grad (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  static const Loops loops = { input_grad_single, input_grad_double };
  GTorchImpl *upper = call->inputs[0], *grid = call->inputs[1];
  Job job = { .n_blocks = 0 };

  gtorch_grid_sampling_init (&job.g, call->attrs[3].list.data, grid, call->attrs);
  if (call->outputs[0]->numel == 0)
    return TRUE;
  return run (call, &job, &loops, job.g.n_images * job.g.n_channels,
              job.g.n_in + MIN (job.g.n_out, GTORCH_CPU_GRAIN) * job.g.n_taps, NULL, grid, upper,
              error);
}
