/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The loop over the steps of a recurrent network, and its gradient: one product and one pass over the gates
 * each. See ops/recurrent.c for the order of rows.
 *
 * Where products read packed panels, the weights are packed once for all steps. Elements of the batch do not
 * depend on each other, so blocks of them go through all steps by themselves, each in one thread, which need
 * not wait for another one. If weights are larger than a cache and the blocks are few, all elements make a
 * step before the next one, and threads have different panels, so that each has its own weights in its
 * cache. Both give the same bits. */

#include "config.h"

#include <string.h>

#include "cpu/gtorch-cpu-iter.h"
#include "cpu/gtorch-cpu-pack.h"
#include "cpu/ops/gtorch-cpu-gemm.h"
#include "cpu/ops/gtorch-cpu-recurrent.h"
#include "device/gtorch-device-manager.h"
#include "device/gtorch-scratch-private.h"
#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

#define BLOCK      16           /* elements of the batch */
#define MAX_CACHED (256 * 1024) /* bytes of weights that blocks always share */

typedef struct
{
  GTorchRecurrence shape;
  guint dtype;
  gsize size;
  gboolean backward;
  GTorchRecurrentRows rows; /* of the step */
  gboolean has_panels;
  GTorchPanels w_hh, w_hr;
  gint64 first; /* the first element of the batch that is computed; shape.batch is their number */
  gboolean is_block; /* others are computed by other threads */
} Scan;

static gpointer
at (const Scan *scan, gconstpointer base, gint64 n)
{
  return base != NULL ? (char *) base + n * (gint64) scan->size : NULL;
}

/* --- the gates of one step --- */

#define CALL(name)                                               \
  do                                                             \
    {                                                            \
      if (scan->dtype == GTORCH_DTYPE_FLOAT32)                   \
        GTORCH_ISA_CALL (gtorch_recurrent_##name##_f32) (&rows); \
      else                                                       \
        GTORCH_ISA_CALL (gtorch_recurrent_##name##_f64) (&rows); \
    }                                                            \
  while (0)

static void
gate_rows (gint64 begin, gint64 end, gpointer user_data)
{
  const Scan *scan = user_data;
  const GTorchRecurrence *s = &scan->shape;
  GTorchRecurrentRows rows = scan->rows;
  const gint64 n = begin * rows.hidden;

  rows.rows = end - begin;
  rows.gates = at (scan, rows.gates, begin * rows.gates_stride);
  rows.products = at (scan, rows.products, n * s->n_gates);
  rows.h = at (scan, rows.h, n);
  rows.c = at (scan, rows.c, n);
  rows.y = at (scan, rows.y, n);
  rows.former = at (scan, rows.former, begin * rows.former_stride);
  rows.upper = at (scan, rows.upper, n);
  rows.grad_gates = at (scan, rows.grad_gates, n * s->n_gates);
  rows.grad_products = at (scan, rows.grad_products, n * s->n_gates);
  switch (s->mode)
    {
    case GTORCH_RECURRENT_TANH:
      if (scan->backward)
        CALL (tanh_grad);
      else
        CALL (tanh);
      break;
    case GTORCH_RECURRENT_RELU:
      if (scan->backward)
        CALL (relu_grad);
      else
        CALL (relu);
      break;
    case GTORCH_RECURRENT_LSTM:
      if (scan->backward)
        CALL (lstm_grad);
      else
        CALL (lstm);
      break;
    default:
      if (scan->backward)
        CALL (gru_grad);
      else
        CALL (gru);
    }
}

static void
gate_all (Scan *scan)
{
  gint64 work = MAX (scan->shape.hidden * scan->shape.n_gates * 4, 1); /* functions take longer */

  scan->rows.hidden = scan->shape.hidden;
  if (scan->rows.rows == 0 || scan->shape.hidden == 0)
    return;
  if (scan->is_block)
    gate_rows (0, scan->rows.rows, scan);
  else
    gtorch_parallel_for (scan->rows.rows, 1 + GTORCH_CPU_GRAIN / work, gate_rows, scan);
}

/* --- products --- */

/* Computes c = a w^T + beta c, or a w + beta c. */
static void
multiply (const Scan *scan, gconstpointer a, gint64 rows, const GTorchPanels *panels,
          gconstpointer w, gint64 n, gint64 k, gboolean transposed, gdouble beta, gpointer c,
          gint64 ldc)
{
  const GTorchGemm g = {
    .m = rows,
    .n = n,
    .k = k,
    .a = a,
    .a_row = k,
    .a_col = 1,
    .b = w,
    .b_row = transposed ? 1 : n,
    .b_col = transposed ? k : 1,
    .c = c,
    .ldc = ldc,
    .alpha = 1,
    .beta = beta,
  };

  if (scan->has_panels)
    gtorch_cpu_panels_multiply (panels, a, rows, beta, c, ldc, !scan->is_block);
  else if (rows > 0 && n > 0)
    gtorch_cpu_gemm (scan->dtype, &g);
}

/* Packs a matrix of `rows` by `columns` elements, or its transpose, if there are panels. `room` holds
 * them. */
static gboolean
pack (Scan *scan, GTorchPanels *panels, gconstpointer w, gint64 rows, gint64 columns,
      gboolean transposed, gpointer *room, GError **error)
{
  if (!scan->has_panels || w == NULL)
    return TRUE;
  *room = gtorch_scratch_new (MAX (rows * columns, 1), scan->size, error);
  if (*room == NULL)
    return FALSE;
  *panels = (GTorchPanels){ scan->dtype, transposed ? columns : rows, transposed ? rows : columns,
                            *room };
  gtorch_cpu_panels_pack (panels, w, transposed ? 1 : columns, transposed ? columns : 1);
  return TRUE;
}

static void
copy_rows (const Scan *scan, gpointer to, gint64 to_stride, gconstpointer from, gint64 from_stride,
           gint64 rows, gint64 n)
{
  for (gint64 r = 0; r < rows && n > 0; r++)
    memcpy (at (scan, to, r * to_stride), at (scan, from, r * from_stride), n * scan->size);
}

/* --- forward --- */

typedef struct
{
  gconstpointer gates, w_hh, b_hh, w_hr;
  gpointer h, c, y, saved;
  gpointer
      room; /* the gates of a step that keeps none, the products (GRU) or the states before w_hr */
} Forward;

static gint64
room_of (const GTorchRecurrence *s, gboolean keeps, gboolean projects)
{
  gint64 n = keeps || s->mode < GTORCH_RECURRENT_LSTM ? 0 : s->n_saved;

  if (s->mode == GTORCH_RECURRENT_GRU)
    n += s->n_gates;
  return (n + (projects ? 1 : 0)) * s->hidden;
}

static void
forward_step (Scan *scan, const Forward *f, gint64 row, gint64 rows)
{
  const GTorchRecurrence *s = &scan->shape;
  const gint64 width = s->n_gates * s->hidden, stride = s->n_saved * s->hidden;
  gconstpointer gates = at (scan, f->gates, row * width);
  gpointer y = at (scan, f->y, row * s->states), mine, products = NULL, cells = y;
  gpointer room = f->room;

  if (s->mode < GTORCH_RECURRENT_LSTM)
    {
      copy_rows (scan, y, s->hidden, gates, width, rows, s->hidden);
      multiply (scan, f->h, rows, &scan->w_hh, f->w_hh, width, s->states, TRUE, 1, y, s->hidden);
      scan->rows = (GTorchRecurrentRows){ .rows = rows, .h = f->h, .y = y };
      gate_all (scan);
      return;
    }
  if (f->saved != NULL)
    mine = at (scan, f->saved, row * stride);
  else
    {
      mine = room;
      room = at (scan, room, s->batch * stride);
    }
  copy_rows (scan, mine, stride, gates, width, rows, width);
  if (s->mode == GTORCH_RECURRENT_GRU)
    {
      products = room;
      if (f->b_hh != NULL)
        copy_rows (scan, products, width, f->b_hh, 0, rows, width);
      multiply (scan, f->h, rows, &scan->w_hh, f->w_hh, width, s->states, TRUE, f->b_hh != NULL,
                products, width);
    }
  else
    {
      multiply (scan, f->h, rows, &scan->w_hh, f->w_hh, width, s->states, TRUE, 1, mine, stride);
      cells = f->w_hr != NULL ? room : y;
    }
  scan->rows = (GTorchRecurrentRows){ .rows = rows,
                                      .gates = mine,
                                      .gates_stride = stride,
                                      .products = products,
                                      .h = f->h,
                                      .c = f->c,
                                      .y = cells };
  gate_all (scan);
  if (f->w_hr != NULL)
    multiply (scan, cells, rows, &scan->w_hr, f->w_hr, s->states, s->hidden, TRUE, 0, y, s->states);
  if (s->mode == GTORCH_RECURRENT_LSTM)
    copy_rows (scan, f->h, s->states, y, s->states, rows, s->states);
}

/* Calls the function for each step, in the order of time, or against it. */
static void
each_step (Scan *scan, gboolean against,
           void (*func) (Scan *scan, gconstpointer data, gsize t, gint64 row), gconstpointer data)
{
  const GTorchRecurrence *s = &scan->shape;
  gint64 row = against ? s->total : 0;

  for (gsize i = 0; i < s->n_steps; i++)
    {
      const gsize t = against ? s->n_steps - 1 - i : i;

      row -= against ? s->batch_sizes[t] : 0;
      func (scan, data, t, row);
      row += against ? 0 : s->batch_sizes[t];
    }
}

/* Returns how many of the scan's elements of the batch have the step. */
static gint64
count_rows (const Scan *scan, gsize t)
{
  return CLAMP (scan->shape.batch_sizes[t] - scan->first, 0, scan->shape.batch);
}

/* --- blocks of the batch --- */

/* Calls the function for each step of the elements from `first` on. The data is what elements have, moved to
 * the first of them. */
typedef void (*BlockFunc) (Scan *scan, gconstpointer data);

typedef struct
{
  const Scan *scan;
  gconstpointer data;
  BlockFunc func;
} Blocks;

static void
run_blocks (gint64 begin, gint64 end, gpointer user_data)
{
  const Blocks *blocks = user_data;
  const gint64 batch = blocks->scan->shape.batch;

  for (; begin < end; begin++)
    {
      Scan scan = *blocks->scan;

      scan.is_block = TRUE;
      scan.first = begin * BLOCK;
      scan.shape.batch = MIN (BLOCK, batch - scan.first);
      blocks->func (&scan, blocks->data);
    }
}

static void
run_all (Scan *scan, gconstpointer data, BlockFunc func)
{
  const GTorchRecurrence *s = &scan->shape;
  const gint64 weights = s->n_gates * s->hidden * s->states;
  const gint64 n = (s->batch + BLOCK - 1) / BLOCK;
  Blocks blocks = { scan, data, func };

  if (scan->has_panels && n > 0
      && (weights * (gint64) scan->size <= MAX_CACHED || n >= gtorch_get_num_threads ()))
    gtorch_parallel_for (n, 1 + GTORCH_CPU_GRAIN / MAX (s->total / n * weights / 8, 1), run_blocks,
                         &blocks);
  else
    func (scan, data);
}

/* --- forward, of a block --- */

static void
forward_at (Scan *scan, gconstpointer data, gsize t, gint64 row)
{
  const gint64 rows = count_rows (scan, t);

  if (rows > 0)
    forward_step (scan, data, row + scan->first, rows);
}

static void
forward_block (Scan *scan, gconstpointer data)
{
  const GTorchRecurrence *s = &scan->shape;
  Forward f = *(const Forward *) data;
  const gboolean keeps = f.saved != NULL;

  f.h = at (scan, f.h, scan->first * s->states);
  f.c = at (scan, f.c, scan->first * s->hidden);
  f.room = at (scan, f.room, scan->first * room_of (s, keeps, f.w_hr != NULL));
  each_step (scan, s->reverse, forward_at, &f);
}

gboolean
gtorch_cpu_recurrent_scan (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *packed[6] = { NULL }, *out[4] = { NULL };
  const gboolean keeps = call->attrs[3].i != 0;
  Scan scan = { .dtype = gtorch_dtype_infos[call->compute].compute };
  g_autofree gpointer room = NULL;
  g_autofree gpointer panels = NULL;
  g_autofree gpointer projection = NULL;
  Forward f = { NULL };
  gboolean ok = FALSE;

  scan.size = gtorch_dtype_size (scan.dtype);
  scan.has_panels = gtorch_cpu_panels_exist (scan.dtype);
  gtorch_recurrence_init (&scan.shape, call, 0, call->inputs[1], call->inputs[3]);
  for (guint i = 0; i < 6; i++)
    if (call->inputs[i] != NULL
        && (packed[i] = gtorch_cpu_pack (call->inputs[i], scan.dtype, error)) == NULL)
      goto done;
  for (guint i = 0; i < 4; i++)
    if ((out[i] = gtorch_cpu_pack_output (call->outputs[i], scan.dtype, error)) == NULL)
      goto done;
  room =
      gtorch_scratch_new (MAX (scan.shape.batch * room_of (&scan.shape, keeps, packed[5] != NULL),
                               1),
                          scan.size, error);
  if (room == NULL)
    goto done;
  f.gates = gtorch_impl_data (packed[0]);
  f.w_hh = gtorch_impl_data (packed[3]);
  f.b_hh = packed[4] != NULL ? gtorch_impl_data (packed[4]) : NULL;
  f.w_hr = packed[5] != NULL ? gtorch_impl_data (packed[5]) : NULL;
  f.y = gtorch_impl_data (out[0]);
  f.h = gtorch_impl_data (out[1]);
  f.c = packed[2] != NULL ? gtorch_impl_data (out[2]) : NULL;
  f.saved = keeps ? gtorch_impl_data (out[3]) : NULL;
  f.room = room;
  memcpy (f.h, gtorch_impl_data (packed[1]), gtorch_impl_n_bytes (out[1]));
  if (f.c != NULL)
    memcpy (f.c, gtorch_impl_data (packed[2]), gtorch_impl_n_bytes (out[2]));
  if (!pack (&scan, &scan.w_hh, f.w_hh, scan.shape.n_gates * scan.shape.hidden, scan.shape.states,
             TRUE, &panels, error)
      || !pack (&scan, &scan.w_hr, f.w_hr, scan.shape.states, scan.shape.hidden, TRUE, &projection,
                error))
    goto done;
  run_all (&scan, &f, forward_block);
  for (guint i = 0; i < 4; i++)
    gtorch_cpu_unpack (out[i], call->outputs[i]);
  ok = TRUE;
done:
  gtorch_impl_clear (packed, 6);
  gtorch_impl_clear (out, 4);
  return ok;
}

/* Answers whether the loop over the steps exists. */
gboolean
gtorch_cpu_query_recurrent_scan (GTorchOpCall *call, gint64 *answers, GError **error)
{
  answers[0] = TRUE;
  return TRUE;
}

/* --- backward --- */

typedef struct
{
  gconstpointer y, upper, hx, cx, w_hh, w_hr, saved;
  gpointer grad_gates, grad_hidden;
  gpointer h, c; /* the gradients of the states and cells after the step, and then before it */
  gpointer room; /* the gradients of the states before w_hr */
} Backward;

/* Runs the gates for rows whose former states or cells are in one place. */
static void
backward_gates (Scan *scan, const Backward *b, gpointer upper, gint64 row, gint64 first,
                gint64 rows, gconstpointer former, gint64 former_stride)
{
  const GTorchRecurrence *s = &scan->shape;
  const gint64 width = s->n_gates * s->hidden, stride = s->n_saved * s->hidden;
  const gboolean is_gru = s->mode == GTORCH_RECURRENT_GRU;

  scan->rows = (GTorchRecurrentRows){
    .rows = rows,
    .gates = at (scan, b->saved, (row + first) * stride),
    .gates_stride = stride,
    .y = at (scan, b->y, (row + first) * s->states),
    .c = at (scan, b->c, first * s->hidden),
    .former = former,
    .former_stride = former_stride,
    .upper = at (scan, upper, first * s->hidden),
    .grad_gates = at (scan, b->grad_gates, (row + first) * width),
    .grad_products = is_gru ? at (scan, b->grad_hidden, (row + first) * width) : NULL,
  };
  gate_all (scan);
}

#define ADD(T)                                  \
  for (gint64 i = 0; i < rows * s->states; i++) \
    ((T *) b->h)[i] += ((const T *) more)[i];

static void
backward_at (Scan *scan, gconstpointer data, gsize t, gint64 row)
{
  const Backward *b = data;
  const GTorchRecurrence *s = &scan->shape;
  const gboolean is_lstm = s->mode == GTORCH_RECURRENT_LSTM,
                 is_gru = s->mode == GTORCH_RECURRENT_GRU;
  const gint64 rows = count_rows (scan, t), width = s->n_gates * s->hidden;
  const gint64 stride = is_lstm ? s->n_saved * s->hidden : s->states;
  gconstpointer first = is_lstm ? b->cx : b->hx, known;
  gpointer upper = b->h;
  gint64 n_known, from;

  if (rows == 0)
    return;
  /* the step before: of the first n_known elements, row `from` on has what the others have at first */
  if (s->reverse)
    {
      n_known = t + 1 < s->n_steps ? count_rows (scan, t + 1) : 0;
      from = row + s->batch_sizes[t] + scan->first;
    }
  else
    {
      n_known = t > 0 ? rows : 0;
      from = t > 0 ? row - s->batch_sizes[t - 1] + scan->first : 0;
    }
  row += scan->first;
  if (b->upper != NULL)
    {
      gconstpointer more = at (scan, b->upper, row * s->states);

      if (scan->dtype == GTORCH_DTYPE_FLOAT32)
        ADD (float)
      else
        ADD (double)
    }
  if (b->w_hr != NULL)
    {
      copy_rows (scan, at (scan, b->grad_hidden, row * s->states), s->states, b->h, s->states, rows,
                 s->states);
      multiply (scan, b->h, rows, &scan->w_hr, b->w_hr, s->hidden, s->states, FALSE, 0, b->room,
                s->hidden);
      upper = b->room;
    }
  known =
      is_lstm ? at (scan, b->saved, from * stride + 4 * s->hidden) : at (scan, b->y, from * stride);
  backward_gates (scan, b, upper, row, 0, n_known, known, stride);
  backward_gates (scan, b, upper, row, n_known, rows - n_known,
                  at (scan, first, n_known * (is_lstm ? s->hidden : s->states)),
                  is_lstm ? s->hidden : s->states);
  multiply (scan, at (scan, is_gru ? b->grad_hidden : b->grad_gates, row * width), rows,
            &scan->w_hh, b->w_hh, s->states, width, FALSE, is_gru, b->h, s->states);
}

static void
backward_block (Scan *scan, gconstpointer data)
{
  const GTorchRecurrence *s = &scan->shape;
  Backward b = *(const Backward *) data;

  b.h = at (scan, b.h, scan->first * s->states);
  b.c = at (scan, b.c, scan->first * s->hidden);
  b.hx = at (scan, b.hx, scan->first * s->states);
  b.cx = at (scan, b.cx, scan->first * s->hidden);
  b.room = at (scan, b.room, scan->first * s->hidden);
  each_step (scan, !s->reverse, backward_at, &b);
}

/* Starts with the gradient of the last states or cells. */
static void
start (const Scan *scan, GTorchImpl *grad, GTorchImpl *upper)
{
  if (upper != NULL)
    memcpy (gtorch_impl_data (grad), gtorch_impl_data (upper), gtorch_impl_n_bytes (grad));
  else
    memset (gtorch_impl_data (grad), 0, gtorch_impl_n_bytes (grad));
}

gboolean
gtorch_cpu_recurrent_scan_backward (GTorchOpCall *call, GTorchQueue *queue, GError **error)
{
  GTorchImpl *packed[9] = { NULL }, *out[4] = { NULL };
  gconstpointer data[9];
  Scan scan = { .dtype = gtorch_dtype_infos[call->compute].compute, .backward = TRUE };
  g_autofree gpointer room = NULL;
  g_autofree gpointer panels = NULL;
  g_autofree gpointer projection = NULL;
  Backward b = { NULL };
  gboolean ok = FALSE;

  scan.size = gtorch_dtype_size (scan.dtype);
  scan.has_panels = gtorch_cpu_panels_exist (scan.dtype);
  gtorch_recurrence_init (&scan.shape, call, 0, call->inputs[4], call->inputs[6]);
  for (guint i = 0; i < 9; i++)
    {
      if (call->inputs[i] != NULL
          && (packed[i] = gtorch_cpu_pack (call->inputs[i], scan.dtype, error)) == NULL)
        goto done;
      data[i] = packed[i] != NULL ? gtorch_impl_data (packed[i]) : NULL;
    }
  for (guint i = 0; i < 4; i++)
    if ((out[i] = gtorch_cpu_pack_output (call->outputs[i], scan.dtype, error)) == NULL)
      goto done;
  room = gtorch_scratch_new (packed[7] != NULL ? MAX (scan.shape.batch * scan.shape.hidden, 1) : 1,
                             scan.size, error);
  if (room == NULL)
    goto done;
  b = (Backward){ .y = data[0],
                  .upper = data[1],
                  .hx = data[4],
                  .cx = data[5],
                  .w_hh = data[6],
                  .w_hr = data[7],
                  .saved = data[8],
                  .grad_gates = gtorch_impl_data (out[0]),
                  .grad_hidden = gtorch_impl_data (out[1]),
                  .h = gtorch_impl_data (out[2]),
                  .c = packed[5] != NULL ? gtorch_impl_data (out[3]) : NULL,
                  .room = room };
  start (&scan, out[2], packed[2]);
  if (b.c != NULL)
    start (&scan, out[3], packed[3]);
  if (!pack (&scan, &scan.w_hh, b.w_hh, scan.shape.n_gates * scan.shape.hidden, scan.shape.states,
             FALSE, &panels, error)
      || !pack (&scan, &scan.w_hr, b.w_hr, scan.shape.states, scan.shape.hidden, FALSE, &projection,
                error))
    goto done;
  run_all (&scan, &b, backward_block);
  for (guint i = 0; i < 4; i++)
    gtorch_cpu_unpack (out[i], call->outputs[i]);
  ok = TRUE;
done:
  gtorch_impl_clear (packed, 9);
  gtorch_impl_clear (out, 4);
  return ok;
}
