/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The kernels of recurrent networks, for programs that have those of matrix products ("multiply=1"). */

#include "config.h"

#include <math.h>
#include <string.h>

#include "cpu/gtorch-cpu-half.h"
#include "fake-cuda-private.h"
#include "kernels/gtorch-recurrent-params.h"

enum
{
  F32,
  F64,
  F16,
  BF16,
};

enum
{
  IS_TANH,
  IS_RELU,
  IS_LSTM,
  IS_GRU,
};

static const gchar *const dtypes[] = { "f32", "f64", "f16", "bf16" };
static const gsize sizes[] = { 4, 8, 2, 2 };
static const gchar *const modes[] = { "tanh", "relu", "lstm", "gru" };
static const guint n_gates[] = { 1, 1, 4, 3 };

static gdouble
get (guint dtype, gconstpointer data, gint64 i)
{
  switch (dtype)
    {
    case F32:
      return ((const gfloat *) data)[i];
    case F64:
      return ((const gdouble *) data)[i];
    case F16:
      return (gdouble) gt_half_to_float (((const guint16 *) data)[i]);
    default:
      return (gdouble) gt_bfloat16_to_float (((const guint16 *) data)[i]);
    }
}

static void
put (guint dtype, gpointer data, gint64 i, gdouble value)
{
  switch (dtype)
    {
    case F32:
      ((gfloat *) data)[i] = (gfloat) value;
      break;
    case F64:
      ((gdouble *) data)[i] = value;
      break;
    case F16:
      ((guint16 *) data)[i] = gt_half_from_float ((gfloat) value);
      break;
    default:
      ((guint16 *) data)[i] = gt_bfloat16_from_float ((gfloat) value);
    }
}

static gdouble
gate (gdouble x)
{
  return 1 / (1 + exp (-x));
}

/* Replaces an address of the device by that of its memory. */
static gboolean
reach (gpointer place, gint64 n, gsize size, const FakeDevice *device)
{
  gpointer address;

  memcpy (&address, place, sizeof address);
  if (address == NULL || n == 0)
    return TRUE;
  address = fake_memory_at ((guintptr) address, (gsize) n * size, device);
  memcpy (place, &address, sizeof address);
  return address != NULL;
}

static gboolean
is_covered (const FakeGrid *grid, gint64 n)
{
  return grid->block[0] == 256 && (gint64) grid->grid[0] * 256 >= MIN (n, 1 << 20);
}

/* --- forward --- */

static CUresult
run_forward (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
             const FakeDevice *device)
{
  const guint mode = kernel->from, d = kernel->dtype, g = n_gates[mode];
  const gsize size = sizes[d];
  GtRecurrent p = *(const GtRecurrent *) parameter;
  const gint64 n = p.hidden, all = p.rows * n, kept = mode >= IS_LSTM ? g + 1 : 0;

  if (!reach (&p.gates, g * all, size, device) || !reach (&p.products, g * all, size, device)
      || !reach (&p.h, all, size, device) || !reach (&p.c, all, size, device)
      || !reach (&p.y, all, size, device) || !reach (&p.saved, kept * all, size, device))
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  if (!is_covered (grid, all) || p.y == NULL || (mode == IS_LSTM) != (p.c != NULL))
    return CUDA_ERROR_LAUNCH_FAILED;
  for (gint64 at = 0; at < all; at++)
    {
      const gint64 row = at / n, i = at % n;
      gdouble x[4], q[4], keeps[5], y;

      for (guint j = 0; j < g; j++)
        {
          x[j] = get (d, p.gates, (row * g + j) * n + i);
          q[j] = get (d, p.products, (row * g + j) * n + i);
        }
      switch (mode)
        {
        case IS_TANH:
          y = tanh (x[0] + q[0]);
          break;
        case IS_RELU:
          y = x[0] + q[0] < 0 ? 0 : x[0] + q[0];
          break;
        case IS_LSTM:
          for (guint j = 0; j < 4; j++)
            keeps[j] = j == 2 ? tanh (x[j] + q[j]) : gate (x[j] + q[j]);
          keeps[4] = keeps[1] * get (d, p.c, at) + keeps[0] * keeps[2];
          put (d, p.c, at, keeps[4]);
          y = keeps[3] * tanh (keeps[4]);
          break;
        default:
          keeps[0] = gate (x[0] + q[0]);
          keeps[1] = gate (x[1] + q[1]);
          keeps[3] = q[2];
          keeps[2] = tanh (x[2] + keeps[0] * q[2]);
          y = keeps[2] + keeps[1] * (get (d, p.h, at) - keeps[2]);
        }
      put (d, p.y, at, y);
      if (p.h != NULL)
        put (d, p.h, at, y);
      for (gint64 j = 0; p.saved != NULL && j < kept; j++)
        put (d, p.saved, (row * kept + j) * n + i, keeps[j]);
    }
  return CUDA_SUCCESS;
}

/* --- gradients --- */

static CUresult
run_backward (const FakeKernel *kernel, const FakeGrid *grid, gconstpointer parameter,
              const FakeDevice *device)
{
  const guint mode = kernel->from, d = kernel->dtype, g = n_gates[mode];
  const gsize size = sizes[d];
  GtRecurrentGrad p = *(const GtRecurrentGrad *) parameter;
  const gint64 n = p.hidden, all = p.rows * n, kept = g + 1;
  const gboolean has_former = mode >= IS_LSTM;

  if (!reach (&p.saved, mode >= IS_LSTM ? kept * all : 0, size, device)
      || !reach (&p.y, mode < IS_LSTM ? all : 0, size, device)
      || !reach (&p.known, p.n_known > 0 && has_former ? (p.n_known - 1) * p.known_stride + n : 0,
                 size, device)
      || !reach (&p.first, has_former && p.n_known < p.rows ? all : 0, size, device)
      || !reach (&p.more, all, size, device) || !reach (&p.h, all, size, device)
      || !reach (&p.c, all, size, device) || !reach (&p.grad, g * all, size, device)
      || !reach (&p.inner, g * all, size, device))
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  if (!is_covered (grid, all) || (mode == IS_LSTM) != (p.c != NULL)
      || (mode == IS_GRU) != (p.inner != NULL))
    return CUDA_ERROR_LAUNCH_FAILED;
  for (gint64 at = 0; at < all; at++)
    {
      const gint64 row = at / n, i = at % n;
      const gdouble u = get (d, p.h, at) + (p.more != NULL ? get (d, p.more, at) : 0);
      gdouble keeps[5] = { 0 }, grads[4], former = 0;

      for (gint64 j = 0; has_former && j < kept; j++)
        keeps[j] = get (d, p.saved, (row * kept + j) * n + i);
      if (has_former)
        former =
            row < p.n_known ? get (d, p.known, row * p.known_stride + i) : get (d, p.first, at);
      switch (mode)
        {
        case IS_TANH:
          grads[0] = u * (1 - get (d, p.y, at) * get (d, p.y, at));
          break;
        case IS_RELU:
          grads[0] = get (d, p.y, at) <= 0 ? 0 : u;
          break;
        case IS_LSTM:
          {
            const gdouble t = tanh (keeps[4]);
            const gdouble of_cell = get (d, p.c, at) + u * keeps[3] * (1 - t * t);

            grads[0] = of_cell * keeps[2] * keeps[0] * (1 - keeps[0]);
            grads[1] = of_cell * former * keeps[1] * (1 - keeps[1]);
            grads[2] = of_cell * keeps[0] * (1 - keeps[2] * keeps[2]);
            grads[3] = u * t * keeps[3] * (1 - keeps[3]);
            put (d, p.c, at, of_cell * keeps[1]);
            break;
          }
        default:
          grads[2] = u * (1 - keeps[1]) * (1 - keeps[2] * keeps[2]);
          grads[1] = u * (former - keeps[2]) * keeps[1] * (1 - keeps[1]);
          grads[0] = grads[2] * keeps[3] * keeps[0] * (1 - keeps[0]);
          put (d, p.h, at, u * keeps[1]);
        }
      for (guint j = 0; j < g; j++)
        {
          put (d, p.grad, (row * g + j) * n + i, grads[j]);
          if (p.inner != NULL)
            put (d, p.inner, (row * g + j) * n + i, j == 2 ? grads[j] * keeps[0] : grads[j]);
        }
    }
  return CUDA_SUCCESS;
}

gboolean
fake_recurrent_parse (FakeKernel *kernel, const gchar *text)
{
  if (!fake_multiplies || !g_str_has_prefix (text, "recurrent_"))
    return FALSE;
  for (guint mode = 0; mode < G_N_ELEMENTS (modes); mode++)
    for (guint dtype = 0; dtype < G_N_ELEMENTS (dtypes); dtype++)
      {
        g_autofree gchar *forward = g_strdup_printf ("recurrent_%s_%s", modes[mode], dtypes[dtype]);
        g_autofree gchar *backward =
            g_strdup_printf ("recurrent_%s_grad_%s", modes[mode], dtypes[dtype]);
        const gboolean is_forward = strcmp (text, forward) == 0;

        if (!is_forward && strcmp (text, backward) != 0)
          continue;
        kernel->run = is_forward ? run_forward : run_backward;
        kernel->n_bytes = is_forward ? sizeof (GtRecurrent) : sizeof (GtRecurrentGrad);
        kernel->from = mode;
        kernel->dtype = dtype;
        return TRUE;
      }
  g_error ("fake-cuda: there is no kernel gt_%s", text);
}
