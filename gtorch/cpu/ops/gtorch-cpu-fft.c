/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Fourier transforms on the CPU. If there are enough lines, they go through the kernel in groups. A line
 * that is long, or one of few, is treated as a matrix a x b: its b columns are transformed and multiplied
 * by roots of unity, then its a rows are transformed; both are groups of lines again. A length with a large
 * prime factor becomes a convolution. A real line of even length is transformed as half as many complex
 * numbers. The algorithm depends on the lengths and on the number of lines, never on the number of threads.
 */

#include "config.h"

#include <string.h>

#include "cpu/ops/gtorch-cpu-fft-private.h"
#include "cpu/ops/gtorch-cpu-gemm.h"
#include "cpu/gtorch-cpu-iter.h"

#include "device/gtorch-device-manager.h"
#include "device/gtorch-scratch-private.h"
#include "cpu/ops/gtorch-cpu-fft.h"
#include "gtorch-ops-private.h"

#define GRAIN 16384 /* complex numbers that are worth a thread */

G_STATIC_ASSERT (2 * (GTORCH_FFT_MAX_ROWS + 1) * GTORCH_FFT_ROW <= GTORCH_GEMM_WORKSPACE);

/* --- groups of lines --- */

typedef struct
{
  const GTorchFFTJob *job;
  guint dtype;
  const char *in;
  char *out;
  gint64 n_lines;
  guint n_dims;
  const gint64 *shape, *in_strides, *out_strides;
  gint failed;
} Lines;

static void
run_groups (gint64 begin, gint64 end, gpointer user_data)
{
  Lines *lines = user_data;
  const gint64 lanes = GTORCH_FFT_LANES (gtorch_dtype_size (lines->dtype));
  gpointer workspace = gtorch_cpu_gemm_workspace ();
  gint64 group, i, d;

  if (workspace == NULL)
    {
      g_atomic_int_set (&lines->failed, TRUE);
      return;
    }
  for (group = begin; group < end; group++)
    {
      const gint64 first = group * lanes, n = MIN (lanes, lines->n_lines - first);
      gint64 in_offsets[GTORCH_FFT_MAX_LANES], out_offsets[GTORCH_FFT_MAX_LANES];

      for (i = 0; i < n; i++)
        {
          gint64 rest = first + i;

          in_offsets[i] = out_offsets[i] = 0;
          for (d = (gint64) lines->n_dims - 1; d >= 0; d--)
            {
              in_offsets[i] += rest % lines->shape[d] * lines->in_strides[d];
              out_offsets[i] += rest % lines->shape[d] * lines->out_strides[d];
              rest /= lines->shape[d];
            }
        }
      if (lines->dtype == GTORCH_DTYPE_FLOAT32)
        GTORCH_ISA_CALL (gtorch_fft_lines_f32)
      (lines->job, group, n, lines->in, in_offsets, lines->out, out_offsets, workspace);
      else GTORCH_ISA_CALL (gtorch_fft_lines_f64) (lines->job, group, n, lines->in, in_offsets,
                                                   lines->out, out_offsets, workspace);
    }
}

static gboolean
run_lines (Lines *lines)
{
  const gint64 lanes = GTORCH_FFT_LANES (gtorch_dtype_size (lines->dtype));

  gtorch_parallel_for ((lines->n_lines + lanes - 1) / lanes,
                       MAX (GRAIN / (lanes * lines->job->rows->n), 1), run_groups, lines);
  return !lines->failed;
}

/* --- one long line --- */

static void
run_pass (gint64 begin, gint64 end, gpointer user_data)
{
  const GTorchFFTPass *pass = ((gpointer *) user_data)[0];

  if (GPOINTER_TO_UINT (((gpointer *) user_data)[1]) == GTORCH_DTYPE_FLOAT32)
    GTORCH_ISA_CALL (gtorch_fft_pass_f32) (pass, begin, end);
  else
    GTORCH_ISA_CALL (gtorch_fft_pass_f64) (pass, begin, end);
}

static void
pass (GTorchFFTPass *self, guint dtype, gint64 n)
{
  gpointer data[] = { self, GUINT_TO_POINTER (dtype) };

  gtorch_parallel_for (n, GRAIN, run_pass, data);
}

gint64
gtorch_fft_plan_scratch (const GTorchFFTPlan *plan)
{
  if (plan->kind == GTORCH_FFT_PLAN_SPLIT)
    return plan->n + gtorch_fft_plan_scratch (plan->second);
  if (plan->kind == GTORCH_FFT_PLAN_CHIRP)
    return plan->first->n + gtorch_fft_plan_scratch (plan->first);
  return 0;
}

/* Transforms the line as a matrix of a rows of b elements. */
static gboolean
run_split (const GTorchFFTPlan *plan, gboolean inverse, gdouble scale, const char *in,
           gint64 in_step, gint64 in_delta, char *out, gint64 out_step, gint64 out_delta,
           char *scratch)
{
  const gint64 a = plan->first->n, b = plan->second->n, two = 2, row = 2 * b;
  const gint64 size = (gint64) gtorch_dtype_size (plan->dtype);
  GTorchFFTJob columns = {
    .rows = &plan->first->rows,
    .n = a,
    .n_out = a,
    .inverse = inverse,
    .scale = 1,
    .in_step = b * in_step,
    .in_delta = in_delta,
    .out_step = row,
    .out_delta = 1,
    .lane_factors = plan->lane_factors,
    .group_factors = plan->group_factors,
    .n_groups = plan->n_groups,
  };
  GTorchFFTJob rows = {
    .rows = &plan->second->rows,
    .n = b,
    .n_out = b,
    .inverse = inverse,
    .scale = scale,
    .in_step = 2,
    .in_delta = 1,
    .out_step = a * out_step,
    .out_delta = out_delta,
  };
  Lines first = { .job = &columns,
                  .dtype = plan->dtype,
                  .in = in,
                  .out = scratch,
                  .n_lines = b,
                  .n_dims = 1,
                  .shape = &b,
                  .in_strides = &in_step,
                  .out_strides = &two };
  Lines second = { .job = &rows,
                   .dtype = plan->dtype,
                   .in = scratch,
                   .out = out,
                   .n_lines = a,
                   .n_dims = 1,
                   .shape = &a,
                   .in_strides = &row,
                   .out_strides = &out_step };
  gint64 i;

  if (!run_lines (&first))
    return FALSE;
  if (plan->second->kind == GTORCH_FFT_PLAN_ROWS)
    return run_lines (&second);
  for (i = 0; i < a; i++)
    if (!gtorch_fft_run_line (plan->second, inverse, scale, scratch + i * row * size, 2, 1,
                              out + i * out_step * size, a * out_step, out_delta,
                              scratch + 2 * plan->n * size))
      return FALSE;
  return TRUE;
}

static gboolean
run_chirp (const GTorchFFTPlan *plan, gboolean inverse, gdouble scale, gconstpointer in,
           gint64 in_step, gint64 in_delta, gpointer out, gint64 out_step, gint64 out_delta,
           char *scratch)
{
  const gint64 size = (gint64) gtorch_dtype_size (plan->dtype), m = plan->first->n;
  char *rest = scratch + 2 * m * size;
  GTorchFFTPass chirp = { .kind = GTORCH_FFT_PASS_CHIRP,
                          .inverse = inverse,
                          .n = plan->n,
                          .in = in,
                          .in_step = in_step,
                          .in_delta = in_delta,
                          .out = scratch,
                          .out_step = 2,
                          .out_delta = 1,
                          .factors = plan->chirp };
  GTorchFFTPass response = { .kind = GTORCH_FFT_PASS_RESULT,
                             .scale = 1,
                             .n = m,
                             .in = scratch,
                             .in_step = 2,
                             .in_delta = 1,
                             .out = scratch,
                             .out_step = 2,
                             .out_delta = 1,
                             .factors = plan->response };
  GTorchFFTPass result = { .kind = GTORCH_FFT_PASS_RESULT,
                           .inverse = inverse,
                           .scale = scale,
                           .n = plan->n,
                           .in = scratch,
                           .in_step = 2,
                           .in_delta = 1,
                           .out = out,
                           .out_step = out_step,
                           .out_delta = out_delta,
                           .factors = plan->chirp };

  pass (&chirp, plan->dtype, plan->n);
  memset (scratch + 2 * plan->n * size, 0, 2 * (m - plan->n) * size);
  if (!gtorch_fft_run_line (plan->first, FALSE, 1, scratch, 2, 1, scratch, 2, 1, rest))
    return FALSE;
  pass (&response, plan->dtype, m);
  if (!gtorch_fft_run_line (plan->first, TRUE, 1, scratch, 2, 1, scratch, 2, 1, rest))
    return FALSE;
  pass (&result, plan->dtype, plan->n);
  return TRUE;
}

gboolean
gtorch_fft_run_line (const GTorchFFTPlan *plan, gboolean inverse, gdouble scale, gconstpointer in,
                     gint64 in_step, gint64 in_delta, gpointer out, gint64 out_step,
                     gint64 out_delta, gpointer scratch)
{
  const gint64 one = 1;
  GTorchFFTJob job = {
    .rows = &plan->rows,
    .n = plan->n,
    .n_out = plan->n,
    .inverse = inverse,
    .scale = scale,
    .in_step = in_step,
    .in_delta = in_delta,
    .out_step = out_step,
    .out_delta = out_delta,
  };
  Lines lines = { .job = &job,
                  .dtype = plan->dtype,
                  .in = in,
                  .out = out,
                  .n_lines = 1,
                  .n_dims = 1,
                  .shape = &one,
                  .in_strides = &one,
                  .out_strides = &one };

  switch (plan->kind)
    {
    case GTORCH_FFT_PLAN_SPLIT:
      return run_split (plan, inverse, scale, in, in_step, in_delta, out, out_step, out_delta,
                        scratch);
    case GTORCH_FFT_PLAN_CHIRP:
      return run_chirp (plan, inverse, scale, in, in_step, in_delta, out, out_step, out_delta,
                        scratch);
    default:
      return run_lines (&lines);
    }
}

/* --- all lines --- */

typedef struct
{
  const GTorchFFT *fft;
  const GTorchFFTPlan *plan, *half;
  gint64 n_lines, n_parts;
  char *scratch;
  gint64 scratch_size; /* bytes per part */
  gint failed;
} Long;

static gboolean
run_long_line (const Long *self, const char *in, char *out, char *scratch)
{
  const GTorchFFT *fft = self->fft;
  const GTorchFFTPlan *plan = self->plan;
  const gint64 n = plan->n, in_step = fft->in_step, out_step = fft->out_step;
  const gint64 size = (gint64) gtorch_dtype_size (plan->dtype);
  char *rest = scratch + 2 * n * size;
  GTorchFFTPass p = { .scale = fft->scale,
                      .n = n,
                      .in = in,
                      .in_step = in_step,
                      .in_delta = 1,
                      .out = out,
                      .out_step = out_step,
                      .out_delta = 1 };

  if (fft->form == GTORCH_FFT_C2C)
    return gtorch_fft_run_line (plan, fft->inverse, fft->scale, in, in_step, 1, out, out_step, 1,
                                scratch);
  if (fft->form == GTORCH_FFT_R2C)
    {
      const gboolean pairs = self->half != NULL;

      if (!gtorch_fft_run_line (plan, FALSE, pairs ? 1 : fft->scale, in,
                                pairs ? 2 * in_step : in_step, pairs ? in_step : GTORCH_FFT_REAL,
                                scratch, 2, 1, rest))
        return FALSE;
      p.kind = pairs ? GTORCH_FFT_PASS_UNFOLD : GTORCH_FFT_PASS_COPY;
      p.factors = pairs ? self->half->half : NULL;
      p.in = scratch;
      p.in_step = 2;
      pass (&p, plan->dtype, pairs ? n + 1 : n / 2 + 1);
      return TRUE;
    }
  p.kind = self->half != NULL ? GTORCH_FFT_PASS_FOLD : GTORCH_FFT_PASS_MIRROR;
  p.factors = self->half != NULL ? self->half->half : NULL;
  p.out = scratch;
  p.out_step = 2;
  pass (&p, plan->dtype, n);
  return gtorch_fft_run_line (plan, TRUE, fft->scale, scratch, 2, 1, out,
                              self->half != NULL ? 2 * out_step : out_step,
                              self->half != NULL ? out_step : GTORCH_FFT_REAL, rest);
}

static void
run_part (gint64 begin, gint64 end, gpointer user_data)
{
  Long *self = user_data;
  const GTorchFFT *fft = self->fft;
  const gint64 size = (gint64) gtorch_dtype_size (fft->dtype);
  gint64 part, i, d;

  for (part = begin; part < end; part++)
    for (i = part * self->n_lines / self->n_parts; i < (part + 1) * self->n_lines / self->n_parts;
         i++)
      {
        gint64 rest = i, in_offset = 0, out_offset = 0;

        for (d = (gint64) fft->n_dims - 1; d >= 0; d--)
          {
            in_offset += rest % fft->shape[d] * fft->in_strides[d];
            out_offset += rest % fft->shape[d] * fft->out_strides[d];
            rest /= fft->shape[d];
          }
        if (!run_long_line (self, (const char *) fft->in + in_offset * size,
                            (char *) fft->out + out_offset * size,
                            self->scratch + part * self->scratch_size))
          g_atomic_int_set (&self->failed, TRUE);
      }
}

/* Splits the lines over the threads or, if there are too few, splits each line over the threads. */
static gboolean
run_long (Long *self, GError **error)
{
  const gint64 n_threads = gtorch_get_num_threads ();
  gint64 n_numbers = gtorch_fft_plan_scratch (self->plan);
  gboolean result;

  if (self->fft->form != GTORCH_FFT_C2C)
    n_numbers += self->plan->n;
  self->n_parts = self->n_lines >= n_threads ? MIN (self->n_lines, n_threads) : 1;
  self->scratch_size = 2 * n_numbers * (gint64) gtorch_dtype_size (self->fft->dtype);
  self->scratch = gtorch_scratch_new (self->n_parts, self->scratch_size, error);
  if (self->scratch == NULL)
    return FALSE;
  if (self->n_parts > 1)
    gtorch_parallel_for (self->n_parts, 1, run_part, self);
  else
    run_part (0, 1, self);
  result = !self->failed;
  g_free (self->scratch);
  if (!result)
    gtorch_scratch_set_error (GTORCH_GEMM_WORKSPACE, 1, error);
  return result;
}

static gboolean
run_short (const GTorchFFT *fft, const GTorchFFTPlan *plan, const GTorchFFTPlan *half,
           gint64 n_lines, GError **error)
{
  const GTorchFFTPlan *inner = plan->kind == GTORCH_FFT_PLAN_CHIRP ? plan->first : plan;
  GTorchFFTJob job = {
    .rows = &inner->rows,
    .n = plan->n,
    .n_out = plan->n,
    .chirp = plan->chirp,
    .response = plan->response,
    .half = half != NULL ? half->half : NULL,
    .inverse = fft->inverse,
    .scale = fft->scale,
    .in_step = fft->in_step,
    .in_delta = 1,
    .out_step = fft->out_step,
    .out_delta = 1,
  };
  Lines lines = { .job = &job,
                  .dtype = fft->dtype,
                  .in = fft->in,
                  .out = fft->out,
                  .n_lines = n_lines,
                  .n_dims = fft->n_dims,
                  .shape = fft->shape,
                  .in_strides = fft->in_strides,
                  .out_strides = fft->out_strides };

  if (fft->form == GTORCH_FFT_R2C)
    {
      job.in_step = half != NULL ? 2 * fft->in_step : fft->in_step;
      job.in_delta = half != NULL ? fft->in_step : GTORCH_FFT_REAL;
      job.out_layout = half != NULL ? GTORCH_FFT_HALF_EVEN : GTORCH_FFT_PARTS;
      job.n_out = half != NULL ? plan->n + 1 : plan->n / 2 + 1;
    }
  else if (fft->form == GTORCH_FFT_C2R)
    {
      job.in_layout = half != NULL ? GTORCH_FFT_HALF_EVEN : GTORCH_FFT_HALF_ODD;
      job.out_step = half != NULL ? 2 * fft->out_step : fft->out_step;
      job.out_delta = half != NULL ? fft->out_step : GTORCH_FFT_REAL;
    }
  if (run_lines (&lines))
    return TRUE;
  gtorch_scratch_set_error (GTORCH_GEMM_WORKSPACE, 1, error);
  return FALSE;
}

gboolean
gtorch_cpu_fft (const GTorchFFT *fft, GError **error)
{
  const gint64 lanes = GTORCH_FFT_LANES (gtorch_dtype_size (fft->dtype));
  const gboolean pairs = fft->form != GTORCH_FFT_C2C && fft->n % 2 == 0;
  const gint64 n = pairs ? fft->n / 2 : fft->n;
  g_autoptr (GTorchFFTPlan) plan = NULL;
  g_autoptr (GTorchFFTPlan) half = NULL;
  gint64 n_lines = 1;
  guint i;

  for (i = 0; i < fft->n_dims; i++)
    n_lines *= fft->shape[i];
  if (n_lines == 0)
    return TRUE;
  plan = gtorch_fft_plan_get (n, fft->dtype, n_lines < lanes / 2, error);
  if (plan == NULL)
    return FALSE;
  half = pairs ? gtorch_fft_plan_get_half (n, fft->dtype, error) : NULL;
  if (pairs && half == NULL)
    return FALSE;
  if (plan->kind == GTORCH_FFT_PLAN_ROWS
      || (plan->kind == GTORCH_FFT_PLAN_CHIRP && plan->first->kind == GTORCH_FFT_PLAN_ROWS))
    return run_short (fft, plan, half, n_lines, error);
  else
    {
      Long lines = { .fft = fft, .plan = plan, .half = half, .n_lines = n_lines };

      return run_long (&lines, error);
    }
}

/* --- the three transforms --- */

/* Transforms along one dimension. */
static gboolean
transform (GTorchImpl *in, GTorchImpl *out, guint dim, GTorchFFTForm form, gboolean inverse,
           gdouble scale, GError **error)
{
  const gint64 in_unit = form == GTORCH_FFT_R2C ? 1 : 2, out_unit = form == GTORCH_FFT_C2R ? 1 : 2;
  GTorchFFT fft = {
    .form = form,
    .dtype = gtorch_dtype_infos[in->dtype].real,
    .inverse = inverse,
    .scale = scale,
    .n = form == GTORCH_FFT_C2R ? out->shape[dim] : in->shape[dim],
    .in = gtorch_impl_data (in),
    .out = gtorch_impl_data (out),
    .in_step = in_unit * in->strides[dim],
    .out_step = out_unit * out->strides[dim],
  };
  guint i;

  for (i = 0; i < in->n_dims; i++)
    if (i != dim)
      {
        fft.shape[fft.n_dims] = in->shape[i];
        fft.in_strides[fft.n_dims] = in_unit * in->strides[i];
        fft.out_strides[fft.n_dims++] = out_unit * out->strides[i];
      }
  return gtorch_cpu_fft (&fft, error);
}

gboolean
gtorch_cpu_fft_c2c (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *in = call->inputs[0], *out = call->outputs[0];
  gsize n = call->attrs[0].list.n, i;
  guint dim;

  if (out->numel == 0)
    return TRUE;
  for (i = n; i-- > 0;)
    {
      gtorch_normalize_dim (call->op->name, call->attrs[0].list.data[i], out->n_dims, &dim, NULL);
      if (!transform (i + 1 == n ? in : out, out, dim, GTORCH_FFT_C2C, call->attrs[2].i != 0,
                      i == 0 ? call->attrs[1].d : 1, error))
        return FALSE;
    }
  return TRUE;
}

gboolean
gtorch_cpu_fft_r2c (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  guint dim;

  gtorch_normalize_dim (call->op->name, call->attrs[0].i, call->inputs[0]->n_dims, &dim, NULL);
  return call->outputs[0]->numel == 0
         || transform (call->inputs[0], call->outputs[0], dim, GTORCH_FFT_R2C, FALSE,
                       call->attrs[1].d, error);
}

gboolean
gtorch_cpu_fft_c2r (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  guint dim;

  gtorch_normalize_dim (call->op->name, call->attrs[0].i, call->inputs[0]->n_dims, &dim, NULL);
  return call->outputs[0]->numel == 0
         || transform (call->inputs[0], call->outputs[0], dim, GTORCH_FFT_C2R, TRUE,
                       call->attrs[2].d, error);
}
