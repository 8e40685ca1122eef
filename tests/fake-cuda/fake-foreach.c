/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Operations of many tensors, with the loops of the CPU: changes in place, and the two kernels of norms, each
 * for few tensors and for many. */

#include "config.h"

#include <math.h>
#include <string.h>

#include "cpu/ops/gtorch-cpu-optim.h"
#include "fake-cuda-private.h"
#include "kernels/gtorch-kernel-params.h"

enum
{
  UNSCALE,
  MUL,
  CLAMP_EACH,
  NORM_PARTS,
  NORM_JOIN,
};

static const gchar *const names[] = { "amp_unscale_", "foreach_mul_", "foreach_clamp_",
                                      "norm_parts_", "norm_join_" };

/* Returns where the host finds the elements of a tensor, whose blocks must follow those of the one before. */
static char *
find_elements (const GtSteps *p, guint i, guint size, const FakeDevice *device)
{
  const GtStep *s = &p->steps[i];
  const guint64 n_blocks = (s->n * size + GT_STEP_BYTES - 1) / GT_STEP_BYTES;
  const guint64 end = i + 1 < p->n ? p->steps[i + 1].block : p->blocks;

  if (s->block + n_blocks != end || (s->is_aligned && ((guintptr) s->data[0] & 15) != 0))
    return NULL;
  return fake_memory_at ((guintptr) s->data[0], s->n * size, device);
}

static void
change (guint kind, guint dtype, char *data, guint64 n, const GtSteps *p, gconstpointer cell,
        gfloat *found)
{
  const gint64 stride = gtorch_dtype_size (dtype);
  GTorchForeachStep step = { .dtype = dtype, .number = p->d[0] };
  GTorchUnscaleStep unscale = { .dtype = dtype };

  switch (kind)
    {
    case UNSCALE:
      unscale.factor = 1 / (gdouble) * (const gfloat *) cell;
      GTORCH_ISA_CALL (gtorch_unscale_loop) (&data, &stride, n, &unscale);
      if (unscale.found)
        *found = 1;
      break;
    case MUL:
      step.number = p->first ? *(const gdouble *) cell : *(const gfloat *) cell;
      GTORCH_ISA_CALL (gtorch_foreach_mul_loop) (&data, &stride, n, &step);
      break;
    default:
      GTORCH_ISA_CALL (gtorch_foreach_clamp_loop) (&data, &stride, n, &step);
    }
}

static void
find_parts (guint dtype, const char *data, const GtStep *s, gdouble ord, gdouble *parts)
{
  const guint64 size = gtorch_dtype_size (dtype), most = GT_STEP_BYTES / size;

  for (guint64 at = 0, i = s->block; at < s->n; at += most, i++)
    parts[i] =
        GTORCH_ISA_CALL (gtorch_norm_loop) (data + at * size, MIN (most, s->n - at), dtype, ord);
}

static CUresult
run_each (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
          const FakeDevice *device)
{
  const GtSteps *p = parameter;
  const guint size = gtorch_dtype_size (kernel->dtype);
  const gsize cell_size = kernel->from == NORM_PARTS        ? p->blocks * sizeof (gdouble)
                          : kernel->from == MUL && p->first ? sizeof (gdouble)
                                                            : sizeof (gfloat);
  gpointer cell = p->cell != NULL ? fake_memory_at ((guintptr) p->cell, cell_size, device) : NULL;
  gfloat *found =
      p->found != NULL ? fake_memory_at ((guintptr) p->found, sizeof (gfloat), device) : NULL;

  if (grid->block[0] != GT_STEP_THREADS)
    return CUDA_ERROR_LAUNCH_FAILED;
  if ((cell == NULL && kernel->from != CLAMP_EACH) || (found == NULL && kernel->from == UNSCALE))
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  for (guint i = 0; i < p->n; i++)
    {
      const GtStep *s = &p->steps[i];
      char *data;

      if (s->n == 0)
        continue;
      data = find_elements (p, i, size, device);
      if (data == NULL)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
      if (kernel->from == NORM_PARTS)
        find_parts (kernel->dtype, data, s, p->d[0], cell);
      else
        change (kernel->from, kernel->dtype, data, s->n, p, cell, found);
    }
  return CUDA_SUCCESS;
}

static CUresult
run_join (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
          const FakeDevice *device)
{
  const GtSteps *p = parameter;
  const gdouble *parts =
      fake_memory_at ((guintptr) p->cell, MAX (p->blocks, 1) * sizeof (gdouble), device);
  const gdouble ord = p->d[0];

  if (grid->block[0] != GT_STEP_THREADS)
    return CUDA_ERROR_LAUNCH_FAILED;
  for (guint i = 0; i < p->n; i++)
    {
      gdouble *norm = fake_memory_at ((guintptr) p->steps[i].count, sizeof *norm, device), all;
      const guint begin = p->steps[i].block, end = i + 1 < p->n ? p->steps[i + 1].block : p->blocks;

      if (parts == NULL || norm == NULL)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
      all = begin < end ? parts[begin] : 0;
      for (guint k = begin + 1; k < end; k++)
        if (!isinf (ord))
          all += parts[k];
        else if (isnan (parts[k]) || (ord > 0 ? parts[k] > all : parts[k] < all))
          all = parts[k];
      *norm = ord == 0 || ord == 1 || isinf (ord) ? all : pow (all, 1 / ord);
    }
  return CUDA_SUCCESS;
}

/* Parses the names with a dtype, which “many_” may be before. */
gboolean
fake_foreach_parse (FakeKernel *kernel, const gchar *text)
{
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    {
      const gchar *rest = text + strlen (names[i]);
      gboolean is_many;

      if (!g_str_has_prefix (text, names[i]))
        continue;
      is_many = g_str_has_prefix (rest, "many_");
      kernel->n_bytes = is_many ? sizeof (GtManySteps) : sizeof (GtSteps);
      kernel->run = i == NORM_JOIN ? run_join : run_each;
      kernel->from = i;
      kernel->dtype = fake_kernel_find_dtype (rest + (is_many ? strlen ("many_") : 0));
      return kernel->dtype != GTORCH_DTYPE_NONE;
    }
  return FALSE;
}
