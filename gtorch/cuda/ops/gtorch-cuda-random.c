/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Random numbers on GPUs. For a given seed, they are the same as on the CPU. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "dispatch/gtorch-run-private.h"
#include "cpu/gtorch-cpu-philox.h"
#include "cuda/graph/gtorch-cuda-capture-private.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "device/gtorch-device-private.h"
#include "gtorch-ops-private.h"
#include "kernels/gtorch-kernel-params.h"

#define THREADS 256
#define UNROLL  4 /* number of blocks of Philox that a thread computes, except for dropout */
/* The dimensions of the kernels that look up normal numbers in a table, whose halves are 65536 bytes
 * apart. */
#define NORMAL_THREADS 512
#define NORMAL_ROW     (4 * NORMAL_THREADS) /* number of elements */
#define TABLE_BYTES    (65536 + 8192)
/* the maximum number of threads of a draw; each draws several elements if necessary */
#define MAX_THREADS (1 << 19)

typedef enum
{
  UNIFORM,
  NORMAL,
  NORMAL_AFFINE, /* with any mean and deviation, for the kernels with a table */
  EXPONENTIAL,
  INTEGERS,
  BERNOULLI,
  BELOW,
  DROPOUT,
  DROPOUT_BACKWARD,
  N_FORMS
} Form;

static GTorchCudaKernel kernels[N_FORMS][GTORCH_N_DTYPES];

/* Computes what the seed and the call's number contribute to the rounds of Philox: the first round is
 * complete except for the block number. */
void
gtorch_cuda_random_keys (GtRandom *p, guint64 seed, guint64 counter)
{
  const guint64 low = G_GUINT64_CONSTANT (0xD2511F53) * (guint32) counter;
  const guint64 high = G_GUINT64_CONSTANT (0xCD9E8D57) * (guint32) (counter >> 32);
  guint32 k0 = (guint32) seed, k1 = (guint32) (seed >> 32);
  guint i;

  p->start[0] = (guint32) (high >> 32) ^ k0;
  p->start[1] = (guint32) (low >> 32) ^ k1;
  for (i = 0; i < G_N_ELEMENTS (p->keys); i++)
    {
      p->keys[i][0] = k0 += 0x9E3779B9u;
      p->keys[i][1] = k1 += 0xBB67AE85u;
    }
  p->keys[0][0] ^= (guint32) high;
  p->keys[0][1] ^= (guint32) low;
}

/* Launches a kernel with a table, with more blocks than are resident at once: multiprocessors that finish
 * early take another block. */
static gboolean
run_normal (GTorchDevice *device, GTorchCudaLane *lane, Form form, guint dtype, const gchar *name,
            GtRandom *p, GError **error)
{
  /* Bit i: CUDA device i lets the kernel use shared memory for the table; atomic. */
  static guint ready[2][GTORCH_N_DTYPES];
  GTorchCudaKernel *kernel = &kernels[form][dtype];
  guint *is_ready = &ready[form - NORMAL][dtype];
  const guint bit = 1u << device->index;
  const guint blocks = 3 * GTORCH_CUDA_DEVICE (device)->n_multiprocessors;
  GTorchCudaLaunch launch = { .block = { NORMAL_THREADS }, .shared = TABLE_BYTES };

  if (G_UNLIKELY (g_atomic_pointer_get (&kernel->kernel) == NULL)
      && !gtorch_cuda_kernel_get (kernel, &gtorch_cuda_family_random, name, error))
    return FALSE;
  if (G_UNLIKELY ((g_atomic_int_get (is_ready) & bit) == 0))
    {
      if (!gtorch_cuda_check (gtorch_cuda.cuKernelSetAttribute (
                                  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, TABLE_BYTES,
                                  kernel->kernel, GTORCH_CUDA_DEVICE (device)->handle),
                              "cuKernelSetAttribute", error))
        return FALSE;
      g_atomic_int_or (is_ready, bit);
    }
  p->all_rows = (p->n + NORMAL_ROW - 1) / NORMAL_ROW;
  p->rows = (p->all_rows + blocks - 1) / blocks;
  if (p->rows > 3)
    p->rows = (p->rows + 3) / 4 * 4;
  launch.grid[0] = (p->all_rows + p->rows - 1) / p->rows;
  return gtorch_cuda_kernel_launch (kernel, lane, &launch, p, error);
}

static gboolean
run (GTorchOpCall *call, GTorchCudaLane *lane, Form form, GtRandom *p, GTorchImpl *input,
     GError **error)
{
  static const gchar *const forms[] = { "uniform",     "normal",   "normal_affine",
                                        "exponential", "integers", "bernoulli",
                                        "below",       "dropout",  "dropout_backward" };
  GTorchImpl *output = call->outputs[0];
  guint dtype = output->dtype, size = gtorch_dtype_size (dtype);
  guint per_block = form < DROPOUT && (form == INTEGERS || dtype == GTORCH_DTYPE_FLOAT64) ? 2 : 4;
  gint64 per_thread_block = THREADS * (form < DROPOUT ? UNROLL : 1) * per_block;
  const gboolean by_table = form == NORMAL && dtype != GTORCH_DTYPE_FLOAT64;
  g_autoptr (GTorchImpl) plain = NULL;
  g_autoptr (GTorchImpl) packed = NULL;
  gboolean done;
  gchar name[64];

  if (output->numel == 0)
    return TRUE;
  plain = gtorch_cuda_pack_output (output, dtype, error);
  if (plain == NULL
      || (input != NULL && (packed = gtorch_cuda_pack (input, dtype, lane, error)) == NULL))
    return FALSE;
  gtorch_cuda_random_keys (p, call->seed, call->counter);
  p->n = output->numel;
  p->op = gtorch_cuda_report_op (call, -1);
  p->out = gtorch_impl_data (plain);
  if (packed != NULL)
    p->in = gtorch_impl_data (packed);
  p->vectors = (((guintptr) p->out | (guintptr) p->in) & (per_block * size - 1)) == 0;
  if (by_table && p->affine)
    form = NORMAL_AFFINE;
  g_snprintf (name, sizeof name, "gt_random_%s_%s", gtorch_cuda_dtype_suffixes[dtype], forms[form]);
  if (by_table)
    done = run_normal (call->device, lane, form, dtype, name, p, error);
  else
    done = gtorch_cuda_kernel_run (&kernels[form][dtype], &gtorch_cuda_family_random, name, lane,
                                   (output->numel + per_thread_block - 1) / per_thread_block,
                                   THREADS, p, error);
  return done
         && (form == DROPOUT_BACKWARD
             || gtorch_cuda_note_random (lane, call->counter, sizeof *p, 0, error))
         && gtorch_cuda_unpack (plain, output, lane, error);
}

static gboolean
fill (GTorchOpCall *call, GTorchCudaLane *lane, Form form, gdouble scale, gdouble shift,
      gdouble end, GError **error)
{
  GtRandom p = { .wide_scale = scale,
                 .wide_shift = shift,
                 .scale = scale,
                 .shift = shift,
                 .wide_end = end,
                 .end = gtorch_random_end (call->outputs[0]->dtype, end),
                 .affine = scale != 1 || shift != 0 };

  return run (call, lane, form, &p, NULL, error);
}

/* Returns the limit for p in units of uniform float32 numbers: k / 2^24 is below p if k is below the
 * limit. */
static guint
limit_of (gdouble p)
{
  return p > 0 ? (guint) ceil (MIN (p, 1) * (1u << 24)) : 0;
}

gboolean
gtorch_cuda_rand (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return fill (call, lane, UNIFORM, 1, 0, INFINITY, error);
}

gboolean
gtorch_cuda_randn (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return fill (call, lane, NORMAL, 1, 0, INFINITY, error);
}

gboolean
gtorch_cuda_uniform (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  const gdouble low = call->attrs[0].d, high = call->attrs[1].d;

  return fill (call, lane, UNIFORM, high - low, low, low < high ? high : INFINITY, error);
}

gboolean
gtorch_cuda_normal (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  return fill (call, lane, NORMAL, call->attrs[1].d, call->attrs[0].d, INFINITY, error);
}

gboolean
gtorch_cuda_exponential (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  const guint dtype = call->outputs[0]->dtype;
  const gdouble scale = 1 / call->attrs[0].d, least = gtorch_random_least (dtype);
  const gdouble most = gtorch_dtype_infos[dtype].max;
  GtRandom p = { .wide_scale = scale,
                 .wide_least = least,
                 .wide_end = most,
                 .scale = scale,
                 .least = least,
                 .end = most,
                 .affine = scale != 1 };

  return run (call, lane, EXPONENTIAL, &p, NULL, error);
}

gboolean
gtorch_cuda_randint (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  gint64 low = call->attrs[0].i;
  GtRandom p = { .low = low, .range = (guint64) call->attrs[1].i - (guint64) low };

  return run (call, lane, INTEGERS, &p, NULL, error);
}

gboolean
gtorch_cuda_bernoulli (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GtRandom p = { .report = gtorch_cuda_report (lane, error) };

  return p.report != NULL && run (call, lane, BERNOULLI, &p, call->inputs[0], error);
}

gboolean
gtorch_cuda_bernoulli_p (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  gdouble chance = call->attrs[0].d;
  GtRandom p = { .p = chance, .limit = limit_of (chance) };

  return run (call, lane, BELOW, &p, NULL, error);
}

gboolean
gtorch_cuda_native_dropout (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  gdouble chance = call->attrs[0].d, factor = call->attrs[1].d;
  GtRandom p = { .p = chance,
                 .limit = limit_of (chance),
                 .wide_scale = factor,
                 .scale = factor,
                 .mask = gtorch_impl_data (call->outputs[1]) };

  return run (call, lane, DROPOUT, &p, call->inputs[0], error);
}

gboolean
gtorch_cuda_dropout_backward (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  gdouble factor = call->attrs[0].d;
  GtRandom p = { .wide_scale = factor, .scale = factor };
  g_autoptr (GTorchImpl) mask = gtorch_cuda_pack (call->inputs[1], GTORCH_DTYPE_INT32, lane, error);

  if (mask == NULL)
    return FALSE;
  p.mask = gtorch_impl_data (mask);
  return run (call, lane, DROPOUT_BACKWARD, &p, call->inputs[0], error);
}

/* --- indices, by sorting random keys --- */

/* Launches a kernel whose parameters contain a GtRandom, which replays of a graph change. */
#define run_draw(call, lane, kernels, dtype, threads, p, error)    \
  (gtorch_cuda_run (kernels, dtype, lane, threads, p, error)       \
   && gtorch_cuda_note_random (lane, (call)->counter, sizeof *(p), \
                               offsetof (__typeof__ (*(p)), random), error))

gboolean
gtorch_cuda_randperm (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  GTorchImpl *output = call->outputs[0];
  gint64 n = output->numel;
  GtRandomKeys p = { .n = n };
  g_autoptr (GTorchImpl) keys = NULL;
  g_autoptr (GTorchImpl) at = NULL;

  if (n == 0)
    return TRUE;
  keys = gtorch_impl_new (call->device, GTORCH_DTYPE_INT64, &n, 1, error);
  if (keys == NULL)
    return FALSE;
  gtorch_cuda_random_keys (&p.random, call->seed, call->counter);
  p.keys = gtorch_impl_data (keys);
  return run_draw (call, lane, &gtorch_kernels_random_keys, GTORCH_DTYPE_INT64,
                   MIN ((n + 1) / 2, MAX_THREADS), &p, error)
         && gtorch_cuda_sort_line (call, lane, keys, NULL, &at, error)
         && gtorch_cuda_copy_here (output, at, lane, error);
}

/* Draws with replacement: finds where the running sums of the weights first exceed a random number. */
static gboolean
draw_again (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *weights, const GtRandom *random,
            GError **error)
{
  const GTorchAttr attrs[] = { { .i = -1 }, { .i = GTORCH_DTYPE_NONE } };
  g_autoptr (GTorchImpl) sums =
      gtorch_impl_new (call->device, GTORCH_DTYPE_FLOAT64, weights->shape, weights->n_dims, error);
  GTorchOpCall cumsum = {
    .op = &gtorch_ops[GTORCH_OP_CUMSUM],
    .inputs = &weights,
    .n_inputs = 1,
    .attrs = attrs,
    .outputs = { sums },
    .n_outputs = 1,
    .device = call->device,
    .compute = GTORCH_DTYPE_FLOAT64,
  };
  GtMultinomialFind p = {
    .random = *random,
    .weights = gtorch_impl_data (weights),
    .y = gtorch_impl_data (call->outputs[0]),
    .n = call->outputs[0]->numel,
    .n_weights = weights->shape[weights->n_dims - 1],
    .n_samples = call->attrs[0].i,
  };

  if (sums == NULL || !gtorch_call_run (&cumsum, lane, error))
    return FALSE;
  p.sums = gtorch_impl_data (sums);
  return run_draw (call, lane, &gtorch_kernels_multinomial_find, GTORCH_DTYPE_FLOAT64,
                   (p.n + 1) / 2, &p, error);
}

/* Draws without replacement: takes the indices with the earliest events of exponential processes with these
 * rates (Efraimidis and Spirakis, 2006). */
static gboolean
draw_once (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *weights, const GtRandom *random,
           GError **error)
{
  const GTorchAttr attrs[] = { call->attrs[0], { .i = -1 }, { .i = FALSE }, { .i = TRUE } };
  GTorchImpl *output = call->outputs[0];
  g_autoptr (GTorchImpl) keys =
      gtorch_impl_new (call->device, GTORCH_DTYPE_FLOAT64, weights->shape, weights->n_dims, error);
  g_autoptr (GTorchImpl) first = keys != NULL
                                     ? gtorch_impl_new (call->device, GTORCH_DTYPE_FLOAT64,
                                                        output->shape, output->n_dims, error)
                                     : NULL;
  GTorchOpCall topk = {
    .op = &gtorch_ops[GTORCH_OP_TOPK],
    .inputs = &keys,
    .n_inputs = 1,
    .attrs = attrs,
    .outputs = { first, output },
    .n_outputs = 2,
    .device = call->device,
    .compute = GTORCH_DTYPE_FLOAT64,
  };
  GtMultinomialKeys p = {
    .random = *random,
    .rates = gtorch_impl_data (weights),
    .n = weights->numel,
  };

  if (first == NULL)
    return FALSE;
  p.keys = gtorch_impl_data (keys);
  return run_draw (call, lane, &gtorch_kernels_multinomial_keys, GTORCH_DTYPE_FLOAT64,
                   (p.n + 1) / 2, &p, error)
         && gtorch_call_run (&topk, lane, error);
}

gboolean
gtorch_cuda_multinomial (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  gint64 n_samples = call->attrs[0].i;
  gboolean again = call->attrs[1].i != 0;
  g_autoptr (GTorchImpl) weights =
      gtorch_cuda_pack (call->inputs[0], GTORCH_DTYPE_FLOAT64, lane, error);
  GtMultinomialCheck p = { .report = weights != NULL ? gtorch_cuda_report (lane, error) : NULL };
  GtRandom random = { NULL };

  if (p.report == NULL)
    return FALSE;
  if (call->outputs[0]->numel == 0)
    return TRUE;
  p.weights = gtorch_impl_data (weights);
  p.n_weights = weights->shape[weights->n_dims - 1];
  p.rows = weights->numel / p.n_weights;
  p.least = again ? 1 : n_samples;
  p.op = gtorch_cuda_report_op (call, -1);
  if (!gtorch_cuda_run_blocks (&gtorch_kernels_multinomial_check, GTORCH_DTYPE_FLOAT64, lane,
                               p.rows, &p, error))
    return FALSE;
  gtorch_cuda_random_keys (&random, call->seed, call->counter);
  return again ? draw_again (call, lane, weights, &random, error)
               : draw_once (call, lane, weights, &random, error);
}
