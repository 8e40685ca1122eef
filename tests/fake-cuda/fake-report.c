/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Kernels that check the numbers in their operands. The fake reports invalid ones in the same way, with
 * the arguments of the kernel; then it refuses the launch, so that the program's own code does the rest
 * ("borrow=1"). */

#include "config.h"

#include <math.h>
#include <string.h>

#include "cpu/gtorch-cpu-cast.h"
#include "fake-cuda-private.h"
#include "kernels/gtorch-nll-loss-params.h"
#include "kernels/gtorch-pool-params.h"
#include "kernels/gtorch-random-params.h"

/* Stores only the first report, until the program has read it. */
static void
report (gpointer where, guint32 op, gint64 value, gint64 size)
{
  GtReport *report = where;

  if (report == NULL || report->state != 0)
    return;
  report->op = op;
  report->value = value;
  report->size = size;
  __atomic_store_n (&report->state, 2, __ATOMIC_RELEASE);
}

static CUresult
check_indices (const gint64 *indices, gint64 n, gint64 size, const gint64 *ignored, guint32 op,
               gpointer where, const FakeDevice *device)
{
  gint64 i;

  indices = fake_memory_at ((guintptr) indices, n * sizeof *indices, device);
  if (indices == NULL)
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  for (i = 0; i < n; i++)
    if ((ignored == NULL || indices[i] != *ignored) && (indices[i] < 0 || indices[i] >= size))
      report (where, op, indices[i], size);
  return CUDA_SUCCESS;
}

static CUresult
check_targets (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
               const FakeDevice *device)
{
  const GtNll *p = parameter;

  return check_indices (p->target, p->n, p->classes, &p->ignored, p->op, p->report, device);
}

/* Of the gradient's parameters. Its kernel leaves what is wrong to the one before it. */
static CUresult
check_no_targets (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
                  const FakeDevice *device)
{
  const GtNllGrad *p = parameter;

  return check_indices (p->target, p->n, p->classes, &p->ignored, 0, NULL, device);
}

static CUresult
check_weights (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
               const FakeDevice *device)
{
  const GtMultinomialCheck *p = parameter;
  const gdouble *weights =
      fake_memory_at ((guintptr) p->weights, p->rows * p->n_weights * sizeof *weights, device);
  gint64 row, i;

  if (weights == NULL)
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  for (row = 0; row < p->rows; row++)
    {
      gint64 n_found = 0;
      gdouble sum = 0;

      for (i = 0; i < p->n_weights; i++)
        {
          const gdouble x = weights[row * p->n_weights + i];

          n_found += x > 0;
          sum += x >= 0 ? x : INFINITY;
        }
      if (isinf (sum) || n_found < p->least)
        report (p->report, p->op, row, GT_REPORT_WEIGHTS);
    }
  return CUDA_SUCCESS;
}

static CUresult
check_chances (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
               const FakeDevice *device)
{
  const GtRandom *p = parameter;
  const gint64 size = gtorch_dtype_size (kernel->dtype);
  const char *chances = fake_memory_at ((guintptr) p->in, p->n * size, device);
  gint64 i;

  if (chances == NULL)
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  for (i = 0; i < (gint64) p->n; i++)
    {
      gdouble chance;

      gtorch_cpu_cast (GTORCH_DTYPE_FLOAT64, kernel->dtype) ((char *) &chance, sizeof chance,
                                                             chances + i * size, size, 1);
      if (!(chance >= 0 && chance <= 1))
        report (p->report, p->op, i, GT_REPORT_PROBABILITY);
    }
  return CUDA_SUCCESS;
}

gboolean
fake_report_parse (FakeKernel *kernel, const gchar *text)
{
  static const struct
  {
    const gchar *before, *after; /* the dtype */
    CUresult (*run) (const FakeKernel *, const FakeGrid *, gconstpointer, const FakeDevice *);
    gsize n_bytes;
  } known[] = {
    { "multinomial_check_", "", check_weights, sizeof (GtMultinomialCheck) },
    { "nll_all_", "", check_targets, sizeof (GtNll) },
    { "nll_each_", "", check_targets, sizeof (GtNll) },
    { "nll_grad_", "", check_no_targets, sizeof (GtNllGrad) },
    { "nll_total_", "", check_targets, sizeof (GtNll) },
    { "random_", "_bernoulli", check_chances, sizeof (GtRandom) },
  };
  guint i;

  for (i = 0; fake_borrows && i < G_N_ELEMENTS (known); i++)
    if (g_str_has_prefix (text, known[i].before) && g_str_has_suffix (text, known[i].after))
      {
        const gsize begin = strlen (known[i].before), end = strlen (known[i].after);
        g_autofree gchar *dtype =
            g_strndup (text + begin, MAX (strlen (text), begin + end) - begin - end);

        kernel->dtype = fake_kernel_find_dtype (dtype);
        kernel->run = known[i].run;
        kernel->n_bytes = known[i].n_bytes;
        kernel->only_reports = TRUE;
        return kernel->dtype != GTORCH_DTYPE_NONE;
      }
  return FALSE;
}
