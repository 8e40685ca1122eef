/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The steps of optimizers, with the loops of the CPU: a kernel for the elements of all parameters, and one
 * for their counts, each for few parameters and for many. */

#include "config.h"

#include <string.h>

#include "cpu/ops/gtorch-cpu-optim.h"
#include "fake-cuda-private.h"
#include "kernels/gtorch-kernel-params.h"
#include "optim/gtorch-step-call-private.h"

/* The numbers of a launch, from its memory. */
typedef struct
{
  gdouble d[GT_STEP_NUMBERS];
  gboolean is_skipped;
} Numbers;

static CUresult
read_numbers (const GtSteps *p, const FakeDevice *device, Numbers *numbers)
{
  const gfloat *found =
      p->found != NULL ? fake_memory_at ((guintptr) p->found, sizeof *found, device) : NULL;
  const gdouble *cell =
      p->cell != NULL ? fake_memory_at ((guintptr) p->cell, sizeof *cell, device) : NULL;

  if ((p->found != NULL && found == NULL) || (p->cell != NULL && cell == NULL))
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  memcpy (numbers->d, p->d, sizeof numbers->d);
  if (cell != NULL)
    numbers->d[0] = *cell;
  numbers->is_skipped = found != NULL && *found != 0;
  return CUDA_SUCCESS;
}

/* Finds what the row keeps for a parameter behind its gradient. */
static gboolean
find_kept (const GTorchStep *row, const GtStep *s, guint place, const FakeDevice *device,
           gdouble **kept)
{
  guint state, n = 0;

  for (state = 0; state < row->n_states; state++)
    if (row->states[state].is_number && !row->states[state].is_count)
      {
        kept[n] = fake_memory_at ((guintptr) s->data[place + n], sizeof (gdouble), device);
        if (kept[n++] == NULL)
          return FALSE;
      }
  return TRUE;
}

static guint
count_like (const GTorchStep *row)
{
  guint n = 0, state;

  for (state = 0; state < row->n_states; state++)
    n += !row->states[state].is_number;
  return n;
}

static CUresult
run_one (const FakeKernel *kernel, const GtSteps *p, const GtStep *s, const Numbers *numbers,
         const FakeDevice *device)
{
  const GTorchStepLoop *loop = &GTORCH_ISA_CALL (gtorch_step_loops)[kernel->from];
  const GTorchStep *row = &gtorch_steps[kernel->from];
  const guint like = count_like (row), size = gtorch_dtype_size (kernel->dtype);
  GTorchStepRun run = { .dtype = kernel->dtype };
  gdouble *kept[GTORCH_STEP_MAX_STATES], former[GTORCH_STEP_MAX_STATES] = { 0 }, t = 0;
  char *data[2 + GTORCH_STEP_MAX_STATES];
  gint64 strides[2 + GTORCH_STEP_MAX_STATES];
  guint k;

  if (s->n == 0)
    return CUDA_SUCCESS;
  for (k = 0; k < like + 2; k++)
    {
      /* the parameter, its states, the gradient: the loops have the gradient second */
      const guint to = k == 0 ? 0 : k == like + 1 ? 1 : k + 1;

      strides[to] = size;
      data[to] =
          s->data[k] != NULL ? fake_memory_at ((guintptr) s->data[k], s->n * size, device) : NULL;
      if (s->data[k] != NULL && data[to] == NULL)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
      if (s->is_aligned && ((guintptr) s->data[k] & 15) != 0)
        return CUDA_ERROR_LAUNCH_FAILED;
      if (to >= 2 && data[to] != NULL)
        run.states |= 1u << (to - 2);
    }
  for (k = 2; k < like + 2; k++)
    if (data[k] == NULL)
      data[k] = data[1]; /* which the loop does not access */
  if (!find_kept (row, s, like + 2, device, kept))
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  for (k = 0; loop->keep != NULL && k < row->n_states - like - 1; k++) /* but the count */
    former[k] = *kept[k];
  if (s->count != NULL)
    {
      const gdouble *count = fake_memory_at ((guintptr) s->count, sizeof *count, device);

      if (count == NULL)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
      t = *count + 1;
    }
  loop->prepare (numbers->d, t, s->count != NULL ? t == 1 : p->first != 0, former, run.once);
  loop->run (data, strides, s->n, &run);
  return CUDA_SUCCESS;
}

static CUresult
run_steps (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
           const FakeDevice *device)
{
  const GtSteps *p = parameter;
  Numbers numbers;
  CUresult result = read_numbers (p, device, &numbers);
  guint i;

  if (grid->block[0] != GT_STEP_THREADS || p->row != kernel->from)
    return CUDA_ERROR_LAUNCH_FAILED;
  for (i = 0; result == CUDA_SUCCESS && !numbers.is_skipped && i < p->n; i++)
    result = run_one (kernel, p, &p->steps[i], &numbers, device);
  return result;
}

static CUresult
run_counts (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
            const FakeDevice *device)
{
  const GtSteps *p = parameter;
  const GTorchStepLoop *loop = &GTORCH_ISA_CALL (gtorch_step_loops)[p->row];
  const GTorchStep *row = &gtorch_steps[p->row];
  Numbers numbers;
  CUresult result = read_numbers (p, device, &numbers);
  guint i, k;

  if (grid->block[0] != GT_STEP_THREADS || (guint64) grid->grid[0] * GT_STEP_THREADS < p->n)
    return CUDA_ERROR_LAUNCH_FAILED;
  for (i = 0; result == CUDA_SUCCESS && !numbers.is_skipped && i < p->n; i++)
    {
      const GtStep *s = &p->steps[i];
      gdouble *count = fake_memory_at ((guintptr) s->count, sizeof *count, device);
      gdouble *places[GTORCH_STEP_MAX_STATES], kept[GTORCH_STEP_MAX_STATES];

      if (count == NULL || !find_kept (row, s, count_like (row) + 2, device, places))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
      if (loop->keep != NULL)
        {
          const guint n = row->n_states - count_like (row) - 1; /* but the count */

          for (k = 0; k < n; k++)
            kept[k] = *places[k];
          loop->keep (numbers.d, *count + 1, *count == 0, kept);
          for (k = 0; k < n; k++)
            *places[k] = kept[k];
        }
      *count += 1;
    }
  return result;
}

/* Parses step_<dtype>_<row> and step_counts_f64, with “many_” behind “step_”. */
gboolean
fake_step_parse (FakeKernel *kernel, const gchar *text)
{
  g_auto (GStrv) parts = NULL;
  guint i;

  if (!g_str_has_prefix (text, "step_"))
    return FALSE;
  text += strlen ("step_");
  kernel->n_bytes = sizeof (GtSteps);
  if (g_str_has_prefix (text, "many_"))
    {
      text += strlen ("many_");
      kernel->n_bytes = sizeof (GtManySteps);
    }
  kernel->run = run_counts;
  if (strcmp (text, "counts_f64") == 0)
    return TRUE;
  kernel->run = run_steps;
  parts = g_strsplit (text, "_", 2);
  kernel->dtype = fake_kernel_find_dtype (parts[0]);
  if (kernel->dtype == GTORCH_DTYPE_NONE || parts[1] == NULL)
    return FALSE;
  for (i = 0; i < gtorch_n_steps; i++)
    if (strcmp (gtorch_steps[i].name, parts[1]) == 0)
      {
        kernel->from = i;
        return TRUE;
      }
  return FALSE;
}
