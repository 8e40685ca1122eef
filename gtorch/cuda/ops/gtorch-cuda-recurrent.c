/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The loop over the steps of a recurrent network, and its gradient, of networks that cuDNN does not compute:
 * one product and one kernel each. See ops/recurrent.c for the order of rows. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-matmul-private.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "dispatch/gtorch-run-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

gboolean
gtorch_cuda_query_recurrent_scan (GTorchOpCall *call, gint64 *answers, GError **error)
{
  answers[0] = TRUE;
  return TRUE;
}

typedef struct
{
  GTorchOpCall *call;
  GTorchCudaLane *lane;
  GTorchRecurrence shape;
  guint dtype;
  GTorchImpl *packed[9];         /* the inputs */
  GTorchImpl *w_hh_t, *w_hr_t;   /* views: transposed */
  GTorchImpl *products, *before; /* of a step: the products; the states before w_hr */
  GTorchImpl *h, *c;             /* the states and cells, or their gradients; borrowed */
} Scan;

static void
scan_clear (Scan *scan)
{
  gtorch_impl_clear (scan->packed, G_N_ELEMENTS (scan->packed));
  g_clear_pointer (&scan->w_hh_t, gtorch_impl_unref);
  g_clear_pointer (&scan->w_hr_t, gtorch_impl_unref);
  g_clear_pointer (&scan->products, gtorch_impl_unref);
  g_clear_pointer (&scan->before, gtorch_impl_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Scan, scan_clear)

/* --- operands --- */

static GTorchImpl *
transpose (GTorchImpl *impl)
{
  return gtorch_impl_new_view (impl, impl->offset, (gint64[]){ impl->shape[1], impl->shape[0] },
                               (gint64[]){ impl->strides[1], impl->strides[0] }, 2);
}

/* Returns some rows of a contiguous matrix. */
static GTorchImpl *
rows_of (GTorchImpl *impl, gint64 first, gint64 n)
{
  const gint64 width = impl->shape[1];

  return gtorch_impl_new_view (impl, impl->offset + first * width, (gint64[]){ n, width },
                               (gint64[]){ MAX (width, 1), 1 }, 2);
}

static gpointer
at (GTorchImpl *impl, gint64 n)
{
  if (impl == NULL || impl->numel == 0)
    return NULL;
  return (char *) gtorch_impl_data (impl) + n * (gint64) gtorch_dtype_size (impl->dtype);
}

static GTorchImpl *
scratch (Scan *scan, gint64 columns, GError **error)
{
  return gtorch_impl_new (gtorch_cuda_lane_device (scan->lane), scan->dtype,
                          (gint64[]){ scan->shape.batch, columns }, 2, error);
}

static gboolean
begin (Scan *scan, GTorchOpCall *call, GTorchCudaLane *lane, guint n_inputs, GError **error)
{
  scan->call = call;
  scan->lane = lane;
  scan->dtype = call->compute;
  for (guint i = 0; i < n_inputs; i++)
    if (call->inputs[i] != NULL
        && (scan->packed[i] = gtorch_cuda_pack (call->inputs[i], scan->dtype, lane, error)) == NULL)
      return FALSE;
  return TRUE;
}

/* Computes some rows of c = a w + beta c; the rows of c begin at its row `row`. */
static gboolean
multiply (Scan *scan, GTorchImpl *a, GTorchImpl *w, GTorchImpl *bias, gdouble beta, GTorchImpl *c,
          gint64 row, gint64 rows, GError **error)
{
  g_autoptr (GTorchImpl) result = rows_of (c, row, rows);

  return gtorch_cuda_multiply (scan->call, scan->lane, a, w, result, bias, 1, beta, error);
}

/* Copies rows of a matrix to another one. */
static gboolean
copy (Scan *scan, GTorchImpl *to, gint64 to_row, GTorchImpl *from, gint64 from_row, gint64 rows,
      GError **error)
{
  g_autoptr (GTorchImpl) target = rows_of (to, to_row, rows);
  g_autoptr (GTorchImpl) source = rows_of (from, from_row, rows);

  return gtorch_cuda_copy_here (target, source, scan->lane, error);
}

/* Launches the kernels of the mode. */
#define LAUNCH(scan, rest, p, error)                                                      \
  ({                                                                                      \
    const gint64 n_ = (p)->rows * (p)->hidden;                                            \
    gboolean launched_;                                                                   \
                                                                                          \
    switch ((scan)->shape.mode)                                                           \
      {                                                                                   \
      case GTORCH_RECURRENT_TANH:                                                         \
        launched_ = gtorch_cuda_run (&gtorch_kernels_recurrent_tanh##rest, (scan)->dtype, \
                                     (scan)->lane, n_, p, error);                         \
        break;                                                                            \
      case GTORCH_RECURRENT_RELU:                                                         \
        launched_ = gtorch_cuda_run (&gtorch_kernels_recurrent_relu##rest, (scan)->dtype, \
                                     (scan)->lane, n_, p, error);                         \
        break;                                                                            \
      case GTORCH_RECURRENT_LSTM:                                                         \
        launched_ = gtorch_cuda_run (&gtorch_kernels_recurrent_lstm##rest, (scan)->dtype, \
                                     (scan)->lane, n_, p, error);                         \
        break;                                                                            \
      default:                                                                            \
        launched_ = gtorch_cuda_run (&gtorch_kernels_recurrent_gru##rest, (scan)->dtype,  \
                                     (scan)->lane, n_, p, error);                         \
      }                                                                                   \
    launched_;                                                                            \
  })

/* Calls the function for each step, in the order of time, or against it. */
static gboolean
each_step (Scan *scan, gboolean against,
           gboolean (*func) (Scan *scan, gsize t, gint64 row, GError **error), GError **error)
{
  const GTorchRecurrence *s = &scan->shape;
  gint64 row = against ? s->total : 0;

  for (gsize i = 0; i < s->n_steps; i++)
    {
      const gsize t = against ? s->n_steps - 1 - i : i;

      row -= against ? s->batch_sizes[t] : 0;
      if (s->batch_sizes[t] > 0 && !func (scan, t, row, error))
        return FALSE;
      row += against ? 0 : s->batch_sizes[t];
    }
  return TRUE;
}

/* --- forward --- */

static gboolean
forward_step (Scan *scan, gsize t, gint64 row, GError **error)
{
  const GTorchRecurrence *s = &scan->shape;
  GTorchImpl *output = scan->call->outputs[0], *saved = scan->call->outputs[3];
  const gint64 rows = s->batch_sizes[t];
  g_autoptr (GTorchImpl) h = rows_of (scan->h, 0, rows);
  const gboolean projects = scan->w_hr_t != NULL;
  const GtRecurrent p = {
    .gates = at (scan->packed[0], row * s->n_gates * s->hidden),
    .products = gtorch_impl_data (scan->products),
    .h = projects ? NULL : gtorch_impl_data (scan->h),
    .c = scan->c != NULL ? gtorch_impl_data (scan->c) : NULL,
    .y = projects ? gtorch_impl_data (scan->before) : at (output, row * s->states),
    .saved = at (saved, row * s->n_saved * s->hidden),
    .rows = rows,
    .hidden = s->hidden,
  };

  if (!multiply (scan, h, scan->w_hh_t, scan->packed[4], 0, scan->products, 0, rows, error)
      || !LAUNCH (scan, , &p, error))
    return FALSE;
  if (!projects)
    return TRUE;
  else
    {
      g_autoptr (GTorchImpl) before = rows_of (scan->before, 0, rows);

      return multiply (scan, before, scan->w_hr_t, NULL, 0, output, row, rows, error)
             && copy (scan, scan->h, 0, output, row, rows, error);
    }
}

gboolean
gtorch_cuda_recurrent_scan (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  g_auto (Scan) scan = { NULL };
  GTorchRecurrence *s = &scan.shape;

  gtorch_recurrence_init (s, call, 0, call->inputs[1], call->inputs[3]);
  if (!begin (&scan, call, lane, 6, error)
      || (scan.products = scratch (&scan, s->n_gates * s->hidden, error)) == NULL
      || (scan.packed[5] != NULL && (scan.before = scratch (&scan, s->hidden, error)) == NULL)
      || !gtorch_cuda_copy_here (call->outputs[1], scan.packed[1], lane, error)
      || (scan.packed[2] != NULL
          && !gtorch_cuda_copy_here (call->outputs[2], scan.packed[2], lane, error)))
    return FALSE;
  scan.h = call->outputs[1];
  scan.c = scan.packed[2] != NULL ? call->outputs[2] : NULL;
  scan.w_hh_t = transpose (scan.packed[3]);
  scan.w_hr_t = scan.packed[5] != NULL ? transpose (scan.packed[5]) : NULL;
  return each_step (&scan, s->reverse, forward_step, error);
}

/* --- backward --- */

/* With a projection, fills in the gradients of what it was applied to. */
static gboolean
unproject (Scan *scan, gint64 row, gint64 rows, GError **error)
{
  GTorchImpl *hidden = scan->call->outputs[1], *upper = scan->packed[1];
  g_autoptr (GTorchImpl) h = rows_of (scan->h, 0, rows);

  if (upper != NULL)
    {
      g_autoptr (GTorchImpl) more = rows_of (upper, row, rows);
      GTorchImpl *inputs[] = { h, more };
      const GTorchAttr one = gtorch_attr_number (1);
      GTorchOpCall add = {
        .op = &gtorch_ops[GTORCH_OP_ADD],
        .inputs = inputs,
        .n_inputs = 2,
        .attrs = &one,
        .outputs = { h },
        .n_outputs = 1,
        .in_place = TRUE,
        .device = scan->call->device,
        .compute = scan->dtype,
      };

      if (!gtorch_call_run (&add, scan->lane, error))
        return FALSE;
    }
  return copy (scan, hidden, row, scan->h, 0, rows, error)
         && multiply (scan, h, scan->packed[7], NULL, 0, scan->before, 0, rows, error);
}

static gboolean
backward_step (Scan *scan, gsize t, gint64 row, GError **error)
{
  const GTorchRecurrence *s = &scan->shape;
  GTorchImpl *gates = scan->call->outputs[0], *hidden = scan->call->outputs[1];
  const gboolean is_lstm = s->mode == GTORCH_RECURRENT_LSTM,
                 is_gru = s->mode == GTORCH_RECURRENT_GRU, projects = scan->packed[7] != NULL;
  const gint64 rows = s->batch_sizes[t], width = s->n_gates * s->hidden;
  const gint64 stride = is_lstm ? s->n_saved * s->hidden : s->states;
  g_autoptr (GTorchImpl) products = NULL;
  GtRecurrentGrad p = {
    .saved = at (scan->packed[8], row * s->n_saved * s->hidden),
    .y = at (scan->packed[0], row * s->states),
    .first = gtorch_impl_data (scan->packed[is_lstm ? 5 : 4]),
    .more = projects ? NULL : at (scan->packed[1], row * s->states),
    .h = gtorch_impl_data (projects ? scan->before : scan->h),
    .c = scan->c != NULL ? gtorch_impl_data (scan->c) : NULL,
    .grad = at (gates, row * width),
    .inner = is_gru ? at (hidden, row * width) : NULL,
    .rows = rows,
    .hidden = s->hidden,
    .known_stride = stride,
  };
  gint64 from = 0;

  /* the step before: of the first n_known elements, row `from` on has what the others have at first */
  if (s->reverse)
    {
      p.n_known = t + 1 < s->n_steps ? s->batch_sizes[t + 1] : 0;
      from = row + rows;
    }
  else if (t > 0)
    {
      p.n_known = rows;
      from = row - s->batch_sizes[t - 1];
    }
  if (p.n_known > 0)
    p.known = is_lstm ? at (scan->packed[8], from * stride + 4 * s->hidden)
                      : at (scan->packed[0], from * stride);
  if ((projects && !unproject (scan, row, rows, error)) || !LAUNCH (scan, _grad, &p, error))
    return FALSE;
  products = rows_of (is_gru ? hidden : gates, row, rows);
  return multiply (scan, products, scan->packed[6], NULL, is_gru ? 1 : 0, scan->h, 0, rows, error);
}

/* Starts with the gradients of the last states or cells. */
static gboolean
start (Scan *scan, GTorchImpl *grad, GTorchImpl *upper, GError **error)
{
  return upper != NULL ? gtorch_cuda_copy_here (grad, upper, scan->lane, error)
                       : gtorch_cuda_clear (grad, scan->lane, error);
}

gboolean
gtorch_cuda_recurrent_scan_backward (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  g_auto (Scan) scan = { NULL };
  GTorchRecurrence *s = &scan.shape;

  gtorch_recurrence_init (s, call, 0, call->inputs[4], call->inputs[6]);
  if (!begin (&scan, call, lane, 9, error)
      || (scan.packed[7] != NULL && (scan.before = scratch (&scan, s->hidden, error)) == NULL)
      || !start (&scan, call->outputs[2], scan.packed[2], error)
      || (scan.packed[5] != NULL && !start (&scan, call->outputs[3], scan.packed[3], error)))
    return FALSE;
  scan.h = call->outputs[2];
  scan.c = scan.packed[5] != NULL ? call->outputs[3] : NULL;
  return each_step (&scan, !s->reverse, backward_step, error);
}
