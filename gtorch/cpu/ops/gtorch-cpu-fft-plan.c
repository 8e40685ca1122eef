/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Plans of the CPU's Fourier transforms: factorisations of lengths, and tables of roots of unity. */

#include "config.h"

#include <math.h>
#include <string.h>

#include "cpu/ops/gtorch-cpu-fft-private.h"

#include "cpu/ops/gtorch-cpu-gemm.h"
#include "device/gtorch-device.h"
#include "device/gtorch-scratch-private.h"

#define FEW_LENGTH   64 /* shorter lines are not worth splitting */
#define LEAST_FACTOR 4

void
gtorch_fft_plan_unref (GTorchFFTPlan *plan)
{
  gtorch_fft_cached_unref (plan);
}

static void
plan_free (gpointer data)
{
  GTorchFFTPlan *plan = data;
  guint s;

  for (s = 0; s < plan->rows.n_stages; s++)
    {
      g_free (plan->rows.twiddles[s]);
      g_free (plan->rows.roots[s]);
    }
  g_free (plan->rows.place);
  g_free (plan->lane_factors);
  g_free (plan->group_factors);
  g_free (plan->chirp);
  g_free (plan->response);
  g_free (plan->half);
  g_clear_pointer (&plan->first, gtorch_fft_plan_unref);
  g_clear_pointer (&plan->second, gtorch_fft_plan_unref);
  g_free (plan);
}

static gpointer
table_new (GTorchFFTPlan *plan, gint64 n, gsize size, GError **error)
{
  gpointer table = gtorch_scratch_new (n, size, error);

  if (table != NULL)
    plan->cached.n_bytes += (n * size + 63) & ~(gsize) 63;
  return table;
}

static gpointer
roots_new (GTorchFFTPlan *plan, gint64 n, GError **error)
{
  return table_new (plan, n, 2 * gtorch_dtype_size (plan->dtype), error);
}

static void
set_number (guint dtype, gpointer table, gint64 i, gdouble value)
{
  if (dtype == GTORCH_DTYPE_FLOAT32)
    ((gfloat *) table)[i] = (gfloat) value;
  else
    ((gdouble *) table)[i] = value;
}

/* Sets table[i] to exp (-2 pi i p / n), exactly where the parts are 0, 1 or -1. The argument of sin and cos
 * is at most an eighth of a turn. */
static void
set_root (guint dtype, gpointer table, gint64 i, gint64 p, gint64 n)
{
  gint64 quarter, rest;
  gdouble c, s, swap;

  p %= n;
  quarter = 4 * p / n;
  rest = 4 * p - quarter * n;
  if (2 * rest <= n)
    {
      c = cos (G_PI_2 * ((gdouble) rest / (gdouble) n));
      s = sin (G_PI_2 * ((gdouble) rest / (gdouble) n));
    }
  else
    {
      c = sin (G_PI_2 * ((gdouble) (n - rest) / (gdouble) n));
      s = cos (G_PI_2 * ((gdouble) (n - rest) / (gdouble) n));
    }
  for (; quarter > 0; quarter--)
    {
      swap = c;
      c = -s;
      s = swap;
    }
  set_number (dtype, table, 2 * i, c);
  set_number (dtype, table, 2 * i + 1, -s);
}

/* --- kinds of plans --- */

/* Factorises n into radices that have butterflies. */
static guint
factorize (gint64 n, guint8 *radix)
{
  static const guint8 radices[] = { 131, 127, 113, 109, 107, 103, 101, 97, 89, 83, 79,
                                    73,  71,  67,  61,  59,  53,  47,  43, 41, 37, 31,
                                    29,  23,  19,  17,  13,  11,  7,   5,  3,  4,  2 };
  guint n_stages = 0, i;

  for (i = 0; i < G_N_ELEMENTS (radices); i++)
    for (; n % radices[i] == 0; n /= radices[i])
      radix[n_stages++] = radices[i];
  return n_stages;
}

static gboolean
has_small_factors (gint64 n)
{
  gint64 p;

  for (p = 2; p <= GTORCH_FFT_MAX_RADIX; p++)
    while (n % p == 0)
      n /= p;
  return n == 1;
}

static gboolean
rows_init (GTorchFFTPlan *plan, GError **error)
{
  GTorchFFTRows *rows = &plan->rows;
  gint64 i, j, k, m = 1;
  guint s;

  rows->n = plan->n;
  rows->n_stages = factorize (plan->n, rows->radix);
  rows->place = table_new (plan, plan->n, sizeof (gint32), error);
  if (rows->place == NULL)
    return FALSE;
  for (s = 0; s < rows->n_stages; m *= rows->radix[s++])
    {
      gint64 p = rows->radix[s];

      rows->twiddles[s] = roots_new (plan, (p - 1) * m, error);
      if (rows->twiddles[s] == NULL)
        return FALSE;
      rows->roots[s] = roots_new (plan, p, error);
      if (rows->roots[s] == NULL)
        return FALSE;
      for (k = 0; k < m; k++)
        for (j = 1; j < p; j++)
          set_root (plan->dtype, rows->twiddles[s], k * (p - 1) + j - 1, j * k, p * m);
      for (k = 0; k < p; k++)
        set_root (plan->dtype, rows->roots[s], k, k, p);
    }
  for (i = 0; i < plan->n; i++)
    {
      gint64 rest = i, size = plan->n, to = 0;

      for (s = rows->n_stages; s-- > 0;)
        {
          size /= rows->radix[s];
          to += rest % rows->radix[s] * size;
          rest /= rows->radix[s];
        }
      rows->place[i] = (gint32) to;
    }
  return TRUE;
}

/* Returns the number of elements of a column: the largest divisor up to the square root, or 1 if there is
 * none. */
static gint64
split (gint64 n)
{
  gint64 a = MIN ((gint64) sqrt ((gdouble) n), GTORCH_FFT_MAX_ROWS);

  while (n % a != 0)
    a--;
  return a;
}

static gboolean
split_init (GTorchFFTPlan *plan, GError **error)
{
  const gint64 lanes = GTORCH_FFT_LANES (gtorch_dtype_size (plan->dtype));
  gint64 a = split (plan->n), b = plan->n / a, k, l, g;

  plan->first = gtorch_fft_plan_get (a, plan->dtype, FALSE, error);
  plan->second = plan->first != NULL
                     ? gtorch_fft_plan_get (b, plan->dtype, b > GTORCH_FFT_MAX_ROWS, error)
                     : NULL;
  if (plan->second == NULL)
    return FALSE;
  plan->n_groups = (b + lanes - 1) / lanes;
  plan->lane_factors = roots_new (plan, a * lanes, error);
  if (plan->lane_factors == NULL)
    return FALSE;
  plan->group_factors = roots_new (plan, a * plan->n_groups, error);
  if (plan->group_factors == NULL)
    return FALSE;
  for (k = 0; k < a; k++)
    {
      for (l = 0; l < lanes; l++)
        {
          gdouble root[2];

          set_root (GTORCH_DTYPE_FLOAT64, root, 0, k * l, plan->n);
          set_number (plan->dtype, plan->lane_factors, k * 2 * lanes + l, root[0]);
          set_number (plan->dtype, plan->lane_factors, k * 2 * lanes + lanes + l, root[1]);
        }
      for (g = 0; g < plan->n_groups; g++)
        set_root (plan->dtype, plan->group_factors, k * plan->n_groups + g, k * g * lanes, plan->n);
    }
  return TRUE;
}

/* Returns the least number not below n whose prime factors are 2, 3 and 5, most of them 2. */
static gint64
good_length (gint64 n)
{
  static const gint factors[] = { 1, 3, 5, 9, 15 };
  gint64 best = G_MAXINT64, m;
  guint i;

  for (i = 0; i < G_N_ELEMENTS (factors); i++)
    {
      for (m = factors[i]; m < n; m *= 2)
        ;
      best = MIN (best, m);
    }
  return best;
}

static gboolean
chirp_init (GTorchFFTPlan *plan, GError **error)
{
  const gint64 m = good_length (2 * plan->n - 1);
  g_autoptr (GTorchFFTPlan) wide = NULL;
  g_autofree gdouble *response = NULL;
  g_autofree gdouble *scratch = NULL;
  gint64 k, square = 0;

  plan->first = gtorch_fft_plan_get (m, plan->dtype, plan->few || m > GTORCH_FFT_MAX_ROWS, error);
  wide = plan->first != NULL ? gtorch_fft_plan_get (m, GTORCH_DTYPE_FLOAT64, TRUE, error) : NULL;
  if (wide == NULL)
    return FALSE;
  plan->chirp = roots_new (plan, plan->n, error);
  if (plan->chirp == NULL)
    return FALSE;
  plan->response = roots_new (plan, m, error);
  if (plan->response == NULL)
    return FALSE;
  response = gtorch_scratch_new0 (m, 2 * sizeof (gdouble), error);
  if (response == NULL)
    return FALSE;
  scratch = gtorch_scratch_new (gtorch_fft_plan_scratch (wide), 2 * sizeof (gdouble), error);
  if (scratch == NULL)
    return FALSE;
  /* squares modulo 2 n, each from the previous one */
  for (k = 0; k < plan->n; k++)
    {
      gdouble root[2];

      set_root (plan->dtype, plan->chirp, k, square, 2 * plan->n);
      set_root (GTORCH_DTYPE_FLOAT64, root, 0, square, 2 * plan->n);
      response[2 * k] = root[0];
      response[2 * k + 1] = -root[1];
      if (k > 0)
        {
          response[2 * (m - k)] = root[0];
          response[2 * (m - k) + 1] = -root[1];
        }
      square = (square + 2 * k + 1) % (2 * plan->n);
    }
  if (!gtorch_fft_run_line (wide, FALSE, 1.0 / (gdouble) m, response, 2, 1, response, 2, 1,
                            scratch))
    {
      gtorch_scratch_set_error (GTORCH_GEMM_WORKSPACE, 1, error);
      return FALSE;
    }
  for (k = 0; k < 2 * m; k++)
    set_number (plan->dtype, plan->response, k, response[k]);
  return TRUE;
}

static gboolean
half_init (GTorchFFTPlan *plan, GError **error)
{
  gint64 k;

  plan->half = roots_new (plan, plan->n + 1, error);
  for (k = 0; plan->half != NULL && k <= plan->n; k++)
    set_root (plan->dtype, plan->half, k, k, 2 * plan->n);
  return plan->half != NULL;
}

static GTorchFFTPlan *
get (GTorchFFTPlanKind kind, gint64 n, guint dtype, gboolean few, GError **error)
{
  GTorchFFTPlanCache *cache = gtorch_device_get_fft_plan_cache (gtorch_device_cpu ());
  const GTorchFFTKey key = { { kind, n, dtype, few } };
  GTorchFFTPlan *plan = gtorch_fft_plan_cache_find (cache, &key);
  gboolean done;

  if (plan != NULL)
    return plan;
  plan = g_new0 (GTorchFFTPlan, 1);
  plan->cached.ref_count = 1;
  plan->cached.free = plan_free;
  plan->kind = kind;
  plan->n = n;
  plan->dtype = dtype;
  plan->few = few;
  switch (kind)
    {
    case GTORCH_FFT_PLAN_ROWS:
      done = rows_init (plan, error);
      break;
    case GTORCH_FFT_PLAN_SPLIT:
      done = split_init (plan, error);
      break;
    case GTORCH_FFT_PLAN_CHIRP:
      done = chirp_init (plan, error);
      break;
    default:
      done = half_init (plan, error);
    }
  if (done)
    return gtorch_fft_plan_cache_add (cache, &key, plan);
  gtorch_fft_plan_unref (plan);
  return NULL;
}

GTorchFFTPlan *
gtorch_fft_plan_get (gint64 n, guint dtype, gboolean few, GError **error)
{
  GTorchFFTPlanKind kind = GTORCH_FFT_PLAN_CHIRP;

  if (has_small_factors (n))
    kind = n > GTORCH_FFT_MAX_ROWS || (few && n >= FEW_LENGTH && split (n) >= LEAST_FACTOR)
               ? GTORCH_FFT_PLAN_SPLIT
               : GTORCH_FFT_PLAN_ROWS;
  else if (good_length (2 * n - 1) > GTORCH_FFT_MAX_ROWS)
    few = TRUE;
  if (kind != GTORCH_FFT_PLAN_CHIRP)
    few = kind == GTORCH_FFT_PLAN_SPLIT;
  return get (kind, n, dtype, few, error);
}

GTorchFFTPlan *
gtorch_fft_plan_get_half (gint64 n, guint dtype, GError **error)
{
  return get (GTORCH_FFT_PLAN_HALF, n, dtype, FALSE, error);
}
