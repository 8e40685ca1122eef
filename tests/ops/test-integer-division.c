/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Quotients and remainders, mostly of integers: all pairs of 8 bits, and the limits of the wider dtypes, with
 * two tensors and with a number on either side. The expected values are computed here from the definitions,
 * in 128 bits: no pair may trap, the quotient of the smallest number by -1 wraps, and a GPU, which cannot
 * fail, gives 0 for the quotient by zero and the dividend for the remainder. */

#include "config.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "gtorch-ops-private.h"
#include "op-values.h"

static const GTorchDType dtypes[] = { GTORCH_DTYPE_INT8, GTORCH_DTYPE_UINT8, GTORCH_DTYPE_INT16,
                                      GTORCH_DTYPE_INT32, GTORCH_DTYPE_INT64 };

typedef enum
{
  FLOOR_DIVIDE,
  REMAINDER,
  FMOD,
  N_OPERATIONS
} Operation;

static const gchar *const names[] = { "floor_divide", "remainder", "fmod" };
static guint n_pairs;

static GTorchImpl *
call (Operation operation, GTorchImpl *a, GTorchImpl *b, GError **error)
{
  switch (operation)
    {
    case FLOOR_DIVIDE:
      return gtorch_op_floor_divide (a, b, error);
    case REMAINDER:
      return gtorch_op_remainder (a, b, error);
    default:
      return gtorch_op_fmod (a, b, error);
    }
}

/* Wraps the value to the dtype. */
static gint64
wrap (__int128 value, guint dtype)
{
  switch (dtype)
    {
    case GTORCH_DTYPE_INT8:
      return (gint8) value;
    case GTORCH_DTYPE_UINT8:
      return (guint8) value;
    case GTORCH_DTYPE_INT16:
      return (gint16) value;
    case GTORCH_DTYPE_INT32:
      return (gint32) value;
    default:
      return (gint64) value;
    }
}

static gint64
expected (Operation operation, gint64 a, gint64 b, guint dtype)
{
  __int128 quotient, rest;

  if (b == 0)
    return operation == FLOOR_DIVIDE ? 0 : a;
  quotient = (__int128) a / b;
  rest = (__int128) a - quotient * b;
  if (operation != FMOD && rest != 0 && (rest < 0) != (b < 0))
    {
      quotient--;
      rest += b;
    }
  return wrap (operation == FLOOR_DIVIDE ? quotient : rest, dtype);
}

static gint64
get (const GTorchImpl *host, gint64 i)
{
  const gchar *at = (const gchar *) gtorch_impl_data (host) + i * gtorch_dtype_size (host->dtype);

  switch (host->dtype)
    {
    case GTORCH_DTYPE_INT8:
      return *(const gint8 *) at;
    case GTORCH_DTYPE_UINT8:
      return *(const guint8 *) at;
    case GTORCH_DTYPE_INT16:
      return *(const gint16 *) (gconstpointer) at;
    case GTORCH_DTYPE_INT32:
      return *(const gint32 *) (gconstpointer) at;
    default:
      return *(const gint64 *) (gconstpointer) at;
    }
}

/* Returns all 8-bit integers, or the limits of wider dtypes. */
static GArray *
numbers_of (guint dtype)
{
  const GTorchDTypeInfo *info = &gtorch_dtype_infos[dtype];
  const gint64 min = dtype == GTORCH_DTYPE_INT64 ? G_MININT64 : (gint64) info->min;
  const gint64 max = dtype == GTORCH_DTYPE_INT64 ? G_MAXINT64 : (gint64) info->max;
  GArray *numbers = g_array_new (FALSE, FALSE, sizeof (gint64));
  gint64 i;
  guint k;

  if (info->size == 1)
    for (i = min; i <= max; i++)
      g_array_append_val (numbers, i);
  else
    for (i = -9; i <= 9; i++)
      {
        const gint64 more[] = { i,           min / 2 + i, max / 2 + i,
                                min + 9 + i, max - 9 + i, (gint64) (sqrt ((gdouble) max)) + i };

        for (k = 0; k < G_N_ELEMENTS (more); k++)
          g_array_append_val (numbers, more[k]);
      }
  return numbers;
}

static GTorchImpl *
tensor_of (const GArray *numbers, guint dtype, const gint64 *shape, guint n_dims)
{
  const gint64 n = numbers->len;
  g_autoptr (GTorchImpl) host =
      gtorch_op_empty (&n, 1, GTORCH_DTYPE_INT64, gtorch_device_cpu (), NULL);
  g_autoptr (GTorchImpl) cast = NULL;
  g_autoptr (GTorchImpl) there = NULL;

  memcpy (gtorch_impl_data (host), numbers->data, n * sizeof (gint64));
  cast = gtorch_op_to_dtype (host, dtype, NULL);
  there = gtorch_op_to_device (cast, test_device (), FALSE, NULL);
  return gtorch_op_reshape (there, shape, n_dims, NULL);
}

/* Consumes the result, of n_a times n_b elements; one of them is 1 if a number was passed. */
static void
compare (Operation operation, guint dtype, GTorchImpl *result, GError *error, const gint64 *a,
         gint64 n_a, const gint64 *b, gint64 n_b)
{
  g_autoptr (GTorchImpl) host = NULL;
  gint64 i, k;

  if (error != NULL && is_lacking (error))
    {
      g_error_free (error);
      return;
    }
  g_assert_no_error (error);
  g_assert_cmpint (result->dtype, ==, dtype);
  g_assert_cmpint (result->numel, ==, n_a * n_b);
  host = impl_to_host (result);
  for (i = 0; i < n_a; i++)
    for (k = 0; k < n_b; k++)
      {
        const gint64 value = get (host, i * n_b + k),
                     right = expected (operation, a[i], b[k], dtype);

        n_pairs++;
        if (value == right)
          continue;
        g_test_message ("%s, %s: %" G_GINT64_FORMAT " by %" G_GINT64_FORMAT
                        " gives %" G_GINT64_FORMAT ", not %" G_GINT64_FORMAT,
                        names[operation], gtorch_dtype_get_name (dtype), a[i], b[k], value, right);
        g_test_fail ();
      }
  gtorch_impl_unref (result);
}

static void
all_pairs (gconstpointer data)
{
  const guint dtype = GPOINTER_TO_UINT (data);
  const gboolean is_cpu = test_computes_on_host ();
  g_autoptr (GArray) dividends = numbers_of (dtype);
  g_autoptr (GArray) divisors = numbers_of (dtype);
  const gint64 *a = (const gint64 *) (gconstpointer) dividends->data;
  const gint64 *b = (const gint64 *) (gconstpointer) divisors->data;
  g_autoptr (GTorchImpl) column = NULL;
  g_autoptr (GTorchImpl) row = NULL;
  gint64 n_a = dividends->len, n_b, i;
  guint operation;

  n_pairs = 0;
  /* the CPU reports an error instead */
  for (i = divisors->len; i-- > 0 && is_cpu;)
    if (b[i] == 0)
      g_array_remove_index (divisors, i);
  n_b = divisors->len;
  column = tensor_of (dividends, dtype, (const gint64[]){ n_a, 1 }, 2);
  row = tensor_of (divisors, dtype, &n_b, 1);
  for (operation = 0; operation < N_OPERATIONS; operation++)
    {
      GError *error = NULL;
      GTorchImpl *result = call (operation, column, row, &error);

      compare (operation, dtype, result, error, a, n_a, b, n_b);
      for (i = 0; i < n_b; i++)
        {
          g_autoptr (GTorchImpl) number = gtorch_impl_new_int (b[i]);

          error = NULL;
          result = call (operation, column, number, &error);
          compare (operation, dtype, result, error, a, n_a, &b[i], 1);
        }
      for (i = 0; i < n_a; i++)
        {
          g_autoptr (GTorchImpl) number = gtorch_impl_new_int (a[i]);

          error = NULL;
          result = call (operation, number, row, &error);
          compare (operation, dtype, result, error, &a[i], 1, b, n_b);
        }
    }
  g_test_message ("%u pairs", n_pairs);
  if (is_cpu)
    g_assert_cmpuint (n_pairs, ==, N_OPERATIONS * 3 * n_a * n_b);
}

/* If the number wrapped, the quotient would be that of another number. */
static void
numbers_must_be_of_the_dtype (void)
{
  const gint64 n = 3;
  guint d, k, side, operation;

  for (d = 0; d + 1 < G_N_ELEMENTS (dtypes); d++)
    {
      const GTorchDTypeInfo *info = &gtorch_dtype_infos[dtypes[d]];
      const gint64 max = info->max, min = info->min;
      const gint64 values[] = { max,
                                max + 1,
                                min,
                                min - 1,
                                2 * max + 2,
                                3 * max,
                                1 - min - max - 9,
                                (gint64) 1 << 32,
                                G_MAXINT64,
                                G_MININT64 };
      g_autoptr (GTorchImpl) x = gtorch_op_full (&n, 1, 7, dtypes[d], test_device (), NULL);

      for (k = 0; k < G_N_ELEMENTS (values); k++)
        for (side = 0; side < 2; side++)
          for (operation = 0; operation <= N_OPERATIONS; operation++)
            {
              const gint64 value = values[k];
              g_autoptr (GTorchImpl) number = gtorch_impl_new_int (value);
              GTorchImpl *left = side == 0 ? x : number, *right = side == 0 ? number : x;
              g_autoptr (GError) error = NULL;
              g_autoptr (GTorchImpl) result = NULL;

              if (value == 0 || (operation == N_OPERATIONS && side == 0 && value < 0))
                continue;
              result = operation < N_OPERATIONS ? call (operation, left, right, &error)
                                                : gtorch_op_pow (left, right, &error);
              if (error != NULL && is_lacking (error))
                continue;
              if (value >= min && value <= max)
                g_assert_no_error (error);
              else
                {
                  g_autofree gchar *text =
                      g_strdup_printf (" is %" G_GINT64_FORMAT ", which is no %s", value,
                                       info->name);

                  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
                  g_assert_nonnull (strstr (error->message, text));
                }
            }
    }
}

/* Numbers of float32 have shorter ways to their quotients and remainders than those of float64, with the
 * same results: the edges with each other, then random ones of all magnitudes. */
static void
float32_is_divided_as_float64 (void)
{
  enum
  {
    N = 20000
  };
  static const gfloat edges[] = { 0, -0.0f, 1, -1, INFINITY, -INFINITY, NAN, FLT_MAX, FLT_MIN, 3 };
  const guint n_edges = G_N_ELEMENTS (edges);
  g_autoptr (GRand) rand = g_rand_new_with_seed (7);
  GTorchImpl *narrow[2], *wide[2];
  guint operation, i, k;

  for (k = 0; k < 2; k++)
    {
      g_autoptr (GTorchImpl) numbers =
          gtorch_impl_new (gtorch_device_cpu (), GTORCH_DTYPE_FLOAT32, (gint64[]){ N }, 1, NULL);
      gfloat *data = gtorch_impl_data (numbers);

      for (i = 0; i < N; i++)
        {
          const gint range = i % 4 == 0 ? 60 : 4;
          const gfloat value = ldexpf ((gfloat) g_rand_double_range (rand, -2, 2),
                                       g_rand_int_range (rand, -range, range));

          data[i] = i % 4 == 1 ? roundf (value * 16) : value;
          if (i < n_edges * n_edges)
            data[i] = edges[k == 0 ? i / n_edges : i % n_edges];
        }
      narrow[k] = impl_to_test_device (numbers);
      wide[k] = input_copy (narrow[k], GTORCH_DTYPE_FLOAT64);
    }
  for (operation = 0; operation < N_OPERATIONS; operation++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchImpl) found = call (operation, narrow[0], narrow[1], &error);
      g_autoptr (GTorchImpl) expected = call (operation, wide[0], wide[1], &error);

      g_assert_no_error (error);
      for (i = 0; i < N; i++)
        {
          const gfloat a = (gfloat) creal (element_get (found, i));
          const gfloat b = (gfloat) creal (element_get (expected, i));

          if (isnan (a) ? isnan (b) : (a == b && signbit (a) == signbit (b)))
            continue;
          g_test_message ("%s (%g, %g) is %g, not %g", names[operation],
                          creal (element_get (narrow[0], i)), creal (element_get (narrow[1], i)), a,
                          b);
          g_test_fail ();
          break;
        }
    }
  for (k = 0; k < 2; k++)
    {
      gtorch_impl_unref (narrow[k]);
      gtorch_impl_unref (wide[k]);
    }
}

int
main (int argc, char *argv[])
{
  guint i;

  g_test_init (&argc, &argv, NULL);
  for (i = 0; i < G_N_ELEMENTS (dtypes); i++)
    {
      g_autofree gchar *path = g_strdup_printf ("/GTorch/integer-division/all_pairs/%s",
                                                gtorch_dtype_get_name (dtypes[i]));

      g_test_add_data_func (path, GUINT_TO_POINTER (dtypes[i]), all_pairs);
    }
  g_test_add_func ("/GTorch/integer-division/numbers_must_be_of_the_dtype",
                   numbers_must_be_of_the_dtype);
  g_test_add_func ("/GTorch/integer-division/float32_is_divided_as_float64",
                   float32_is_divided_as_float64);
  return g_test_run ();
}
