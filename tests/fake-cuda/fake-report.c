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
#include "kernels/gtorch-kernel-params.h"

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
check_indices (const GtPlain *p, gint64 ignored, guint32 op, const FakeDevice *device)
{
  const gint64 *indices = fake_memory_at ((guintptr) p->in[1], p->n[0] * sizeof *indices, device);
  gint64 i;

  if (indices == NULL)
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  for (i = 0; i < p->n[0]; i++)
    if (indices[i] != ignored && (indices[i] < 0 || indices[i] >= p->n[1]))
      report (p->report, op, indices[i], p->n[1]);
  return CUDA_SUCCESS;
}

static CUresult
check_targets (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
               const FakeDevice *device)
{
  const GtPlain *p = parameter;

  return check_indices (p, p->n[3], p->n[4], device);
}

static CUresult
check_places (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
              const FakeDevice *device)
{
  const GtPlain *p = parameter;

  return check_indices (p, 0, p->n[3], device);
}

static CUresult
check_weights (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
               const FakeDevice *device)
{
  const GtPlain *p = parameter;
  const gdouble *weights =
      fake_memory_at ((guintptr) p->in[0], p->n[0] * p->n[1] * sizeof *weights, device);
  gint64 row, i;

  if (weights == NULL)
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  for (row = 0; row < p->n[0]; row++)
    {
      gint64 n_found = 0;
      gdouble sum = 0;

      for (i = 0; i < p->n[1]; i++)
        {
          const gdouble x = weights[row * p->n[1] + i];

          n_found += x > 0;
          sum += x >= 0 ? x : INFINITY;
        }
      if (isinf (sum) || n_found < p->n[2])
        report (p->report, p->n[3], row, GT_REPORT_WEIGHTS);
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
    { "multinomial_check_", "", check_weights, sizeof (GtPlain) },
    { "nll_all_", "", check_targets, sizeof (GtPlain) },
    { "nll_each_", "", check_targets, sizeof (GtPlain) },
    { "nll_grad_", "", check_targets, sizeof (GtPlain) },
    { "nll_total_", "", check_targets, sizeof (GtPlain) },
    { "pool_take_", "", check_places, sizeof (GtPlain) },
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
