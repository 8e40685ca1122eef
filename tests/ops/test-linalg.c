/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Factorizations, solutions and determinants, by the identities that define them: for all dtypes, sizes
 * that are multiples of the blocks of BLAS and not, batches and layouts; the errors of singular and of
 * undefined matrices. */

#include "config.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "host-matrices.h"

/* --- identities --- */

/* A product of three triangles of n elements a row has an error of at most 3 n eps times the sizes of the
 * factors; the factors of a Hermitian matrix are bounded by the root of its diagonal. */
static void
test_cholesky (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  guint d, s, l, upper;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    for (s = 0; s < G_N_ELEMENTS (sizes); s++)
      for (l = 0; l < layouts_of (sizes[s]); l++)
        for (upper = 0; upper < 2; upper++)
          {
            const gint64 n = sizes[s], shape[3] = { 2, n, n };
            g_autoptr (GTorchImpl) a = random_new (dtypes[d], shape, 3, l, TRUE, rand);
            g_autoptr (GTorchImpl) factor = MUST (gtorch_op_linalg_cholesky (a, upper, &error));
            g_auto (Host) whole = read_host (a);
            g_auto (Host) f = read_host (factor);
            g_auto (Host) other = host_new (2, n, n);
            g_auto (Host) product = { 0 };
            gint64 b, i, j;

            for (b = 0; b < 2; b++)
              for (i = 0; i < n; i++)
                for (j = 0; j < n; j++)
                  {
                    AT (other, b, j, i) = conj (AT (f, b, i, j));
                    if (upper ? i > j : i < j)
                      g_assert_true (AT (f, b, i, j) == 0);
                  }
            product = upper ? multiply (&other, &f, FALSE) : multiply (&f, &other, FALSE);
            assert_close (&product, &whole, 4 * (n + 1) * eps_of (dtypes[d]) * largest (&whole),
                          "cholesky");
          }
}

/* The residual is bounded by 3 n eps times the product of the sizes of L and U, and those of L are at most
 * 1. */
static void
test_lu (void)
{
  static const gint64 pairs[][2] = { { 1, 1 }, { 1, 4 },   { 4, 1 },   { 3, 3 },
                                     { 5, 8 }, { 33, 17 }, { 65, 65 }, { 17, 64 } };
  g_autoptr (GRand) rand = g_rand_new_with_seed (2);
  guint d, s, l;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    for (s = 0; s < G_N_ELEMENTS (pairs); s++)
      for (l = 0; l < layouts_of (pairs[s][0]); l++)
        {
          const gint64 m = pairs[s][0], n = pairs[s][1], shape[3] = { 2, m, n };
          g_autoptr (GTorchImpl) a = random_new (dtypes[d], shape, 3, l, FALSE, rand);
          g_autoptr (GTorchImpl) lu = NULL;
          g_autoptr (GTorchImpl) pivots = NULL;
          g_autoptr (GTorchImpl) other = NULL;
          g_autofree gchar *problem = NULL;
          g_autoptr (GTorchImpl) p = NULL;
          g_autoptr (GTorchImpl) lower = NULL;
          g_autoptr (GTorchImpl) upper = NULL;
          g_auto (Host) whole = read_host (a);
          g_auto (Host) hp = { 0 };
          g_auto (Host) hl = { 0 };
          g_auto (Host) hu = { 0 };
          g_auto (Host) permuted = { 0 };
          g_auto (Host) product = { 0 };
          gint64 b, i, j;

          MUST (gtorch_op_linalg_lu_factor_ex (a, TRUE, FALSE, &lu, &pivots, NULL, &error));
          MUST (gtorch_op_lu_unpack (lu, pivots, TRUE, TRUE, &p, &lower, &upper, &error));
          MUST (gtorch_op_linalg_lu (a, TRUE, NULL, &other, NULL, &error));
          problem = difference (other, lower, 0);
          g_assert_cmpstr (problem, ==, NULL);
          hp = read_host (p);
          hl = read_host (lower);
          hu = read_host (upper);
          for (b = 0; b < 2; b++)
            for (i = 0; i < m; i++)
              for (j = 0; j < MIN (m, n); j++)
                {
                  g_assert_true (i > j || AT (hl, b, i, j) == (i == j));
                  g_assert_cmpfloat (cabs (AT (hl, b, i, j)), <=, M_SQRT2 * (1 + 1e-5));
                }
          permuted = multiply (&hp, &hl, FALSE);
          product = multiply (&permuted, &hu, FALSE);
          assert_close (&product, &whole,
                        8 * (MIN (m, n) + 1) * eps_of (dtypes[d]) * fmax (1, largest (&hu)), "lu");
        }
}

/* Checks that A X = B, or X A = B. */
static void
check_solution (GTorchImpl *a, GTorchImpl *x, GTorchImpl *b, gboolean left, const gchar *what)
{
  g_auto (Host) ha = read_host (a);
  g_auto (Host) hx = read_host (x);
  g_auto (Host) hb = read_host (b);
  g_auto (Host) product = left ? multiply (&ha, &hx, FALSE) : multiply (&hx, &ha, FALSE);
  const gdouble n = ha.rows;

  assert_close (&product, &hb,
                8 * (n + 1) * n * eps_of (a->dtype) * fmax (1, largest (&ha) * largest (&hx)),
                what);
}

static void
test_solve (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (3);
  guint d, s, l, left;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    for (s = 0; s < G_N_ELEMENTS (sizes); s++)
      for (l = 0; l < layouts_of (sizes[s]); l++)
        for (left = 0; left < 2; left++)
          {
            const gint64 n = sizes[s], shape[3] = { 2, n, n };
            const gint64 right[3] = { 2, left ? n : 3, left ? 3 : n };
            g_autoptr (GTorchImpl) a = random_new (dtypes[d], shape, 3, l, TRUE, rand);
            g_autoptr (GTorchImpl) b = random_new (dtypes[d], right, 3, l, FALSE, rand);
            g_autoptr (GTorchImpl) x = MUST (gtorch_op_linalg_solve (a, b, left, &error));
            g_autoptr (GTorchImpl) lu = NULL;
            g_autoptr (GTorchImpl) pivots = NULL;
            g_autoptr (GTorchImpl) y = NULL;
            g_autoptr (GTorchImpl) z = NULL;
            g_autoptr (GTorchImpl) swapped = MUST (gtorch_op_swap_matrix (a, &error));
            g_autoptr (GTorchImpl) adjoint = MUST (gtorch_op_conj (swapped, &error));

            check_solution (a, x, b, left, "solve");
            MUST (gtorch_op_linalg_lu_factor (a, TRUE, &lu, &pivots, &error));
            y = MUST (gtorch_op_linalg_lu_solve (lu, pivots, b, left, FALSE, &error));
            check_solution (a, y, b, left, "lu_solve");
            z = MUST (gtorch_op_linalg_lu_solve (lu, pivots, b, left, TRUE, &error));
            check_solution (adjoint, z, b, left, "lu_solve of the adjoint");
          }
}

static void
test_triangles (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (4);
  guint d, s, l, form;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    for (s = 0; s < G_N_ELEMENTS (sizes); s++)
      for (l = 0; l < layouts_of (sizes[s]); l++)
        for (form = 0; form < 8; form++)
          {
            const gboolean upper = form & 1, left = (form & 2) != 0, unit = (form & 4) != 0;
            const gint64 n = sizes[s], shape[3] = { 2, n, n };
            const gint64 right[3] = { 2, left ? n : 3, left ? 3 : n };
            g_autoptr (GTorchImpl) a = random_new (dtypes[d], shape, 3, l, TRUE, rand);
            g_autoptr (GTorchImpl) b = random_new (dtypes[d], right, 3, l, FALSE, rand);
            g_autoptr (GTorchImpl) x =
                MUST (gtorch_op_linalg_solve_triangular (a, b, upper, left, unit, &error));
            g_auto (Host) ha = read_host (a);
            g_auto (Host) hx = read_host (x);
            g_auto (Host) hb = read_host (b);
            g_auto (Host) product = { 0 };
            gint64 m, i, j;

            for (m = 0; m < 2; m++)
              for (i = 0; i < n; i++)
                for (j = 0; j < n; j++)
                  if (unit && i == j)
                    AT (ha, m, i, j) = 1;
                  else if (upper ? i > j : i < j)
                    AT (ha, m, i, j) = 0;
            product = left ? multiply (&ha, &hx, FALSE) : multiply (&hx, &ha, FALSE);
            assert_close (&product, &hb,
                          8 * (n + 1) * n * eps_of (dtypes[d])
                              * fmax (1, largest (&ha) * largest (&hx)),
                          "solve_triangular");
          }
}

static void
test_inverse (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (5);
  guint d, s;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    for (s = 0; s < G_N_ELEMENTS (sizes); s++)
      {
        const gint64 n = sizes[s], shape[4] = { 2, 3, n, n };
        g_autoptr (GTorchImpl) a = random_new (dtypes[d], shape, 4, LAYOUT_CONTIGUOUS, TRUE, rand);
        g_autoptr (GTorchImpl) one = MUST (gtorch_op_eye (n, n, dtypes[d], test_device (), &error));
        g_autoptr (GTorchImpl) all = MUST (gtorch_op_expand (one, shape, 4, &error));
        g_autoptr (GTorchImpl) x = MUST (gtorch_op_linalg_inv (a, &error));
        g_autoptr (GTorchImpl) factor = MUST (gtorch_op_cholesky (a, s & 1, &error));
        g_autoptr (GTorchImpl) y = MUST (gtorch_op_cholesky_inverse (factor, s & 1, &error));

        check_solution (a, x, all, TRUE, "inv");
        check_solution (a, x, all, FALSE, "inv");
        check_solution (a, y, all, TRUE, "cholesky_inverse");
      }
}

/* Returns the determinant by cofactors. */
static Number
determinant (const Number *a, gint n)
{
  Number result = 0, *minor;
  gint i, j, k;

  if (n == 0)
    return 1;
  minor = g_new (Number, n * n);
  for (k = 0; k < n; k++)
    {
      for (i = 1; i < n; i++)
        for (j = 0; j < n - 1; j++)
          minor[(i - 1) * (n - 1) + j] = a[i * n + j + (j >= k)];
      result += (k % 2 == 0 ? 1 : -1) * a[k] * determinant (minor, n - 1);
    }
  g_free (minor);
  return result;
}

static void
test_determinants (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (6);
  guint d;
  gint64 n;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    for (n = 0; n <= 6; n++)
      {
        const gint64 shape[3] = { 5, n, n };
        g_autoptr (GTorchImpl) a = random_new (dtypes[d], shape, 3, LAYOUT_CONTIGUOUS, FALSE, rand);
        g_autoptr (GTorchImpl) det = MUST (gtorch_op_linalg_det (a, &error));
        g_autoptr (GTorchImpl) sign = NULL;
        g_autoptr (GTorchImpl) logarithm = NULL;
        g_auto (Host) whole = read_host (a);
        gint64 b;

        MUST (gtorch_op_linalg_slogdet (a, &sign, &logarithm, &error));
        g_assert_cmpuint (logarithm->dtype, ==, gtorch_dtype_infos[dtypes[d]].real);
        for (b = 0; b < 5; b++)
          {
            const Number expected = determinant (whole.x + b * n * n, n);
            const Number found = element_get (det, b);
            /* a sum of n! products of n factors of at most sqrt (2) */
            const gdouble tolerance =
                8 * (n + 1) * eps_of (dtypes[d]) * tgamma (n + 1) * pow (M_SQRT2, n);

            g_assert_cmpfloat (cabs (found - expected), <=, tolerance);
            g_assert_cmpfloat (cabs (element_get (sign, b)
                                         * exp (creal (element_get (logarithm, b)))
                                     - expected),
                               <=, tolerance);
          }
      }
}

/* The exponential of A has the inverse exp (-A). */
static void
test_exponential (void)
{
  static const gdouble scales[] = { 1e-3, 0.5, 3, 12 };
  g_autoptr (GRand) rand = g_rand_new_with_seed (7);
  guint d, s;
  gint64 n;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    for (s = 0; s < G_N_ELEMENTS (scales); s++)
      for (n = 1; n <= 5; n += 2)
        {
          const gint64 shape[3] = { 3, n, n };
          g_autoptr (GTorchImpl) base =
              random_new (dtypes[d], shape, 3, LAYOUT_CONTIGUOUS, FALSE, rand);
          g_autoptr (GTorchImpl) scale = gtorch_impl_new_number (scales[s] / n);
          g_autoptr (GTorchImpl) a = MUST (gtorch_op_mul (base, scale, &error));
          g_autoptr (GTorchImpl) minus = MUST (gtorch_op_neg (a, &error));
          g_autoptr (GTorchImpl) there = MUST (gtorch_op_linalg_matrix_exp (a, &error));
          g_autoptr (GTorchImpl) back = MUST (gtorch_op_linalg_matrix_exp (minus, &error));
          g_auto (Host) x = read_host (there);
          g_auto (Host) y = read_host (back);
          g_auto (Host) one = host_new (3, n, n);
          g_auto (Host) product = multiply (&x, &y, FALSE);
          gint64 b, i;

          for (b = 0; b < 3; b++)
            for (i = 0; i < n; i++)
              AT (one, b, i, i) = 1;
          assert_close (&product, &one,
                        64 * (n + 1) * eps_of (dtypes[d]) * largest (&x) * largest (&y),
                        "matrix_exp");
        }
}

/* The exponential of a multiple of [[0, -1], [1, 0]] is a rotation, that of a diagonal matrix is known,
 * too; the matrices of a batch are halved as often as each needs it. */
static void
test_known_exponentials (void)
{
  const gint64 shape[3] = { 4, 2, 2 };
  g_autoptr (GTorchImpl) host =
      gtorch_impl_new (gtorch_device_cpu (), GTORCH_DTYPE_FLOAT64, shape, 3, NULL);
  g_autoptr (GTorchImpl) a = NULL;
  g_autoptr (GTorchImpl) x = NULL;
  const gdouble angles[] = { 0, 1e-8, 1, 40 };
  g_auto (Host) found = { 0 };
  gint b;

  for (b = 0; b < 4; b++)
    {
      element_set (host, 4 * b, 0.5);
      element_set (host, 4 * b + 1, -angles[b]);
      element_set (host, 4 * b + 2, angles[b]);
      element_set (host, 4 * b + 3, 0.5);
    }
  a = impl_to_test_device (host);
  x = MUST (gtorch_op_linalg_matrix_exp (a, &error));
  found = read_host (x);
  for (b = 0; b < 4; b++)
    {
      const gdouble tolerance = 256 * DBL_EPSILON * (1 + angles[b]), e = exp (0.5);

      g_assert_cmpfloat (fabs (creal (AT (found, b, 0, 0)) - e * cos (angles[b])), <=, tolerance);
      g_assert_cmpfloat (fabs (creal (AT (found, b, 0, 1)) + e * sin (angles[b])), <=, tolerance);
      g_assert_cmpfloat (fabs (creal (AT (found, b, 1, 0)) - e * sin (angles[b])), <=, tolerance);
    }
}

static void
test_tensors_as_maps (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (8);
  const gint64 shape[4] = { 2, 3, 1, 6 }, other[3] = { 2, 3, 1 };
  static const gint64 one_to_three[] = { 0, 1, 2 }, last[] = { 3 };
  g_autoptr (GTorchImpl) a =
      random_new (GTORCH_DTYPE_FLOAT64, shape, 4, LAYOUT_CONTIGUOUS, FALSE, rand);
  g_autoptr (GTorchImpl) b =
      random_new (GTORCH_DTYPE_FLOAT64, other, 3, LAYOUT_CONTIGUOUS, FALSE, rand);
  g_autoptr (GTorchImpl) x = MUST (gtorch_op_linalg_tensorsolve (a, b, NULL, 0, &error));
  g_autoptr (GTorchImpl) inverse = MUST (gtorch_op_linalg_tensorinv (a, 3, &error));
  g_autoptr (GTorchImpl) product =
      MUST (gtorch_op_tensordot (a, x, last, 1, (const gint64[]){ 0 }, 1, &error));
  g_autoptr (GTorchImpl) again = MUST (
      gtorch_op_tensordot (inverse, b, (const gint64[]){ 1, 2, 3 }, 3, one_to_three, 3, &error));
  g_autofree gchar *problem = difference (product, b, 1e-12);
  g_autofree gchar *other_problem = difference (again, x, 1e-10);

  g_assert_cmpstr (problem, ==, NULL);
  g_assert_cmpstr (other_problem, ==, NULL);
}

/* --- empty matrices and errors --- */

static void
test_empty (void)
{
  static const gint64 none[3] = { 2, 0, 0 }, no_batch[3] = { 0, 3, 3 }, no_columns[3] = { 2, 3, 0 };
  static const gint64 three[3] = { 2, 3, 3 };
  g_autoptr (GRand) rand = g_rand_new_with_seed (9);
  g_autoptr (GTorchImpl) a = random_new (GTORCH_DTYPE_FLOAT32, none, 3, 0, FALSE, rand);
  g_autoptr (GTorchImpl) b = random_new (GTORCH_DTYPE_FLOAT32, no_batch, 3, 0, FALSE, rand);
  g_autoptr (GTorchImpl) c = random_new (GTORCH_DTYPE_FLOAT32, no_columns, 3, 0, FALSE, rand);
  g_autoptr (GTorchImpl) d = random_new (GTORCH_DTYPE_FLOAT32, three, 3, 0, TRUE, rand);
  GTorchImpl *inputs[] = { a, b };
  guint i;

  for (i = 0; i < 2; i++)
    {
      g_autoptr (GTorchImpl) det = MUST (gtorch_op_linalg_det (inputs[i], &error));
      g_autoptr (GTorchImpl) inverse = MUST (gtorch_op_linalg_inv (inputs[i], &error));
      g_autoptr (GTorchImpl) factor = MUST (gtorch_op_linalg_cholesky (inputs[i], FALSE, &error));
      g_autoptr (GTorchImpl) power = MUST (gtorch_op_linalg_matrix_exp (inputs[i], &error));

      g_assert_cmpint (det->numel, ==, i == 0 ? 2 : 0);
      g_assert_true (i != 0 || element_get (det, 1) == 1);
      g_assert_true (gtorch_impl_same_shape (inverse, inputs[i]));
      g_assert_true (gtorch_impl_same_shape (factor, inputs[i]));
      g_assert_true (gtorch_impl_same_shape (power, inputs[i]));
    }
  g_clear_pointer (&a, gtorch_impl_unref);
  a = MUST (gtorch_op_linalg_solve (d, c, TRUE, &error));
  g_assert_true (gtorch_impl_same_shape (a, c));
}

#define ASSERT_FAILS(call, text)                                            \
  G_STMT_START                                                              \
  {                                                                         \
    g_autoptr (GError) error = NULL;                                        \
                                                                            \
    g_assert_false (call);                                                  \
    g_assert_nonnull (error);                                               \
    if (!g_str_has_prefix (error->message, text))                           \
      g_error ("the message is “%s”, expected “%s”", error->message, text); \
  }                                                                         \
  G_STMT_END

static void
test_errors (void)
{
  static const gint64 shape[4] = { 2, 3, 3, 3 }, flat[2] = { 2, 3 }, row[1] = { 3 };
  g_autoptr (GRand) rand = g_rand_new_with_seed (10);
  guint d;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    {
      g_autoptr (GTorchImpl) there = random_new (dtypes[d], shape, 4, 0, TRUE, rand);
      g_autoptr (GTorchImpl) host = impl_to_host (there);
      g_autoptr (GTorchImpl) a = NULL;
      g_autoptr (GTorchImpl) b = random_new (dtypes[d], row, 1, 0, FALSE, rand);
      g_autoptr (GTorchImpl) wide = random_new (dtypes[d], flat, 2, 0, FALSE, rand);
      g_autoptr (GTorchImpl) factor = NULL;
      g_autoptr (GTorchImpl) info = NULL;
      gint64 i;

      /* the last row and column of matrix (1, 0) become 0 */
      for (i = 0; i < 3; i++)
        {
          element_set (host, 3 * 9 + 6 + i, 0);
          element_set (host, 3 * 9 + 3 * i + 2, 0);
        }
      a = impl_to_test_device (host);
      ASSERT_FAILS (gtorch_op_linalg_cholesky (a, FALSE, &error),
                    "linalg_cholesky: the matrix at [1, 0] of the batch is not positive-definite: "
                    "the leading minor of order 3 is not positive");
      ASSERT_FAILS (gtorch_op_linalg_inv (a, &error),
                    "linalg_inv: the matrix at [1, 0] of the batch is singular: diagonal element 3 "
                    "of its factor U is 0");
      ASSERT_FAILS (gtorch_op_linalg_solve (a, b, TRUE, &error),
                    "linalg_solve: the matrix at [1, 0] of the batch is singular");
      MUST (gtorch_op_linalg_cholesky_ex (a, FALSE, FALSE, &factor, &info, &error));
      for (i = 0; i < 6; i++)
        g_assert_true (element_get (info, i) == (i == 3 ? 3 : 0));
      ASSERT_FAILS (gtorch_op_linalg_cholesky_ex (a, FALSE, TRUE, NULL, NULL, &error),
                    "linalg_cholesky_ex: the matrix at [1, 0] of the batch is not "
                    "positive-definite");
      ASSERT_FAILS (gtorch_op_linalg_cholesky (wide, FALSE, &error),
                    "linalg_cholesky: shape [2, 3] must be that of square matrices");
      ASSERT_FAILS (gtorch_op_linalg_det (b, &error),
                    "linalg_det: shape [3] must be that of square matrices");
      ASSERT_FAILS (gtorch_op_linalg_solve (a, wide, TRUE, &error), "linalg_solve: ");
      /* a matrix of NaN has no Cholesky factor */
      for (i = 0; i < 9; i++)
        element_set (host, 2 * 9 + i, NAN);
      g_clear_pointer (&a, gtorch_impl_unref);
      a = impl_to_test_device (host);
      if (gtorch_device_get_device_type (test_device ()) == GTORCH_DEVICE_TYPE_CUDA)
        {
          g_clear_pointer (&factor, gtorch_impl_unref);
          g_clear_pointer (&info, gtorch_impl_unref);
          MUST (gtorch_op_linalg_cholesky_ex (a, FALSE, FALSE, &factor, &info, &error));
          g_assert_true (element_get (info, 2) == 1 || isnan (creal (element_get (factor, 18))));
          continue;
        }
      ASSERT_FAILS (gtorch_op_linalg_cholesky (a, FALSE, &error),
                    "linalg_cholesky: the matrix at [0, 2] of the batch is not positive-definite: "
                    "the leading minor of order 1 is not positive");
    }
}

static void
test_without_pivots (void)
{
  static const gint64 shape[3] = { 2, 5, 5 };
  g_autoptr (GRand) rand = g_rand_new_with_seed (13);
  guint d;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    {
      g_autoptr (GTorchImpl) a = random_new (dtypes[d], shape, 3, 0, TRUE, rand);
      g_autoptr (GTorchImpl) lu = NULL;
      g_autoptr (GTorchImpl) pivots = NULL;
      g_autoptr (GTorchImpl) host = NULL;
      g_autoptr (GTorchImpl) lower = NULL;
      g_autoptr (GTorchImpl) upper = NULL;
      g_auto (Host) whole = read_host (a);
      g_auto (Host) hl = { 0 };
      g_auto (Host) hu = { 0 };
      g_auto (Host) product = { 0 };
      gint64 i;

      MUST (gtorch_op_linalg_lu_factor_ex (a, FALSE, FALSE, &lu, &pivots, NULL, &error));
      MUST (gtorch_op_lu_unpack (lu, pivots, TRUE, FALSE, NULL, &lower, &upper, &error));
      host = impl_to_host (pivots);
      for (i = 0; i < 10; i++)
        g_assert_cmpfloat (creal (element_get (host, i)), ==, i % 5 + 1);
      hl = read_host (lower);
      hu = read_host (upper);
      product = multiply (&hl, &hu, FALSE);
      assert_close (&product, &whole, 25 * eps_of (dtypes[d]) * largest (&hl) * largest (&hu),
                    "without pivots");
    }
}

/* There is a pivot for each element of the diagonal, in each matrix. */
static void
test_number_of_pivots (void)
{
  static const gint64 shape[3] = { 2, 3, 3 }, tall[3] = { 2, 4, 3 };
  static const gint64 wrong[][2] = { { 2, 2 }, { 2, 4 }, { 1, 3 }, { 2, 0 } };
  g_autoptr (GRand) rand = g_rand_new_with_seed (14);
  g_autoptr (GTorchImpl) a = random_new (GTORCH_DTYPE_FLOAT32, shape, 3, 0, TRUE, rand);
  g_autoptr (GTorchImpl) high = random_new (GTORCH_DTYPE_FLOAT32, tall, 3, 0, FALSE, rand);
  guint i;

  for (i = 0; i < G_N_ELEMENTS (wrong); i++)
    {
      g_autofree gchar *text =
          g_strdup_printf ("pivots of shape [%d, %d] do not fit matrices of shape [2, ",
                           (gint) wrong[i][0], (gint) wrong[i][1]);
      g_autoptr (GTorchImpl) pivots =
          MUST (gtorch_op_ones (wrong[i], 2, GTORCH_DTYPE_INT32, test_device (), &error));
      g_autoptr (GTorchImpl) single = NULL;
      g_autofree gchar *by_solve = g_strconcat ("linalg_lu_solve: ", text, NULL);
      g_autofree gchar *by_unpack = g_strconcat ("lu_unpack: ", text, NULL);

      ASSERT_FAILS (gtorch_op_linalg_lu_solve (a, pivots, a, TRUE, FALSE, &error), by_solve);
      ASSERT_FAILS (gtorch_op_lu_unpack (a, pivots, TRUE, TRUE, NULL, NULL, NULL, &error),
                    by_unpack);
      ASSERT_FAILS (gtorch_op_lu_unpack (high, pivots, TRUE, FALSE, NULL, NULL, NULL, &error),
                    by_unpack);
      ASSERT_FAILS (gtorch_op_lu_solve (a, a, pivots, &error), "linalg_lu_solve: pivots of shape ");
      single = MUST (gtorch_op_select (pivots, 0, 0, &error));
      ASSERT_FAILS (gtorch_op_linalg_lu_solve (a, single, a, TRUE, FALSE, &error),
                    "linalg_lu_solve: pivots of shape ");
    }
}

/* A GPU detects it asynchronously. */
static void
test_wrong_pivots (void)
{
  static const gint64 shape[3] = { 2, 3, 3 }, row[2] = { 2, 3 };
  g_autoptr (GRand) rand = g_rand_new_with_seed (12);
  g_autoptr (GTorchImpl) a = random_new (GTORCH_DTYPE_FLOAT32, shape, 3, 0, TRUE, rand);
  g_autoptr (GTorchImpl) pivots =
      MUST (gtorch_op_zeros (row, 2, GTORCH_DTYPE_INT32, test_device (), &error));
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GError) error = NULL;

  x = gtorch_op_linalg_lu_solve (a, pivots, a, TRUE, FALSE, &error);
  if (x != NULL)
    g_assert_false (gtorch_device_synchronize (test_device (), NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  g_assert_nonnull (strstr (error->message, "index -1 is out of range"));
}

/* --- the gradient of Hermitian matrices --- */

/* The factor reads one triangle, while the gradient is that for a matrix which stays Hermitian:
 * differences are taken along random Hermitian directions. */
static void
test_cholesky_gradient (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (11);
  guint d, upper;

  for (d = 1; d < G_N_ELEMENTS (dtypes); d += 2)
    for (upper = 0; upper < 2; upper++)
      {
        static const gint64 shape[3] = { 2, 4, 4 };
        const gdouble h = 1e-5;
        g_autoptr (GTorchImpl) a = random_new (dtypes[d], shape, 3, 0, TRUE, rand);
        g_autoptr (GTorchImpl) direction = random_new (dtypes[d], shape, 3, 0, TRUE, rand);
        g_autoptr (GTorchImpl) weight = random_new (dtypes[d], shape, 3, 0, FALSE, rand);
        g_autoptr (GTorchImpl) plus = MUST (gtorch_op_add (a, direction, h, &error));
        g_autoptr (GTorchImpl) minus = MUST (gtorch_op_add (a, direction, -h, &error));
        g_autoptr (GTorchImpl) at_plus = MUST (gtorch_op_cholesky (plus, upper, &error));
        g_autoptr (GTorchImpl) at_minus = MUST (gtorch_op_cholesky (minus, upper, &error));
        g_autoptr (GTorchTensor) x = gtorch_tensor_wrap (gtorch_impl_ref (a));
        g_autoptr (GTorchTensor) factor = NULL;
        g_autoptr (GTorchTensor) upper_grad = gtorch_tensor_wrap (gtorch_impl_ref (weight));
        g_autoptr (GTorchTensor) grad = NULL;
        GTorchImpl *found;
        gdouble expected = 0, sum = 0;
        gint64 i;

        MUST (gtorch_tensor_set_requires_grad (x, TRUE, &error));
        factor = MUST (gtorch_linalg_cholesky (x, upper, &error));
        MUST (gtorch_tensor_backward (factor, upper_grad, FALSE, FALSE, &error));
        grad = gtorch_tensor_get_grad (x);
        found = gtorch_tensor_unwrap (grad);
        for (i = 0; i < 32; i++)
          {
            expected += creal (conj (element_get (weight, i))
                               * (element_get (at_plus, i) - element_get (at_minus, i)))
                        / (2 * h);
            sum += creal (conj (element_get (found, i)) * element_get (direction, i));
          }
        /* the error of the differences is of the order h^2, and eps / h by rounding */
        g_assert_cmpfloat (fabs (sum - expected), <=, 1e-7 * (1 + fabs (expected)));
      }
}

/* --- the gradient of determinants --- */

/* Sets element i of the matrix to the product [u v]_i of random n x rank and rank x n matrices. */
static void
set_to_rank (GTorchImpl *host, gint64 matrix, gint64 n, gint64 rank, GRand *rand)
{
  g_autofree Number *u = g_new (Number, n * n);
  g_autofree Number *v = g_new (Number, n * n);
  const gboolean is_complex = gtorch_dtype_is_complex (host->dtype);
  gint64 i, j, k;

  for (i = 0; i < n * n; i++)
    {
      u[i] = g_rand_double_range (rand, -1, 1) + (is_complex ? I * g_rand_double (rand) : 0);
      v[i] = g_rand_double_range (rand, -1, 1) + (is_complex ? I * g_rand_double (rand) : 0);
    }
  for (i = 0; i < n; i++)
    for (j = 0; j < n; j++)
      {
        Number sum = 0;

        for (k = 0; k < rank; k++)
          sum += u[i * n + k] * v[k * n + j];
        element_set (host, (matrix * n + i) * n + j, sum);
      }
}

/* Returns the cofactor of an element: the derivative of the determinant, which is linear in it. */
static Number
cofactor (const Number *x, gint64 n, gint64 row, gint64 column)
{
  g_autofree Number *changed = g_memdup2 (x, n * n * sizeof (Number));
  gint64 i;

  for (i = 0; i < n; i++)
    changed[row * n + i] = changed[i * n + column] = 0;
  changed[row * n + column] = 1;
  return determinant (changed, n);
}

/* A batch has matrices of the ranks n, n - 1, n - 2 and 0, and one with zeros on the diagonal of U,
 * whose rank is n - 1 nevertheless. */
static void
test_determinant_gradient (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (15);
  guint d;
  gint64 n;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    for (n = 1; n <= 7; n++)
      {
        const gint64 shape[3] = { 5, n, n };
        g_autoptr (GTorchImpl) host =
            MUST (gtorch_op_zeros (shape, 3, dtypes[d], gtorch_device_cpu (), &error));
        g_autoptr (GTorchTensor) x = NULL;
        g_autoptr (GTorchTensor) det = NULL;
        g_autoptr (GTorchTensor) upper = NULL;
        g_autoptr (GTorchTensor) grad = NULL;
        g_auto (Host) whole = { 0 };
        g_autoptr (GTorchImpl) weight =
            MUST (gtorch_op_zeros (shape, 1, dtypes[d], gtorch_device_cpu (), &error));
        gint64 b, i, j;

        set_to_rank (host, 0, n, n, rand);
        set_to_rank (host, 1, n, n - 1, rand);
        set_to_rank (host, 2, n, MAX (n - 2, 0), rand);
        for (i = 0; i + 1 < n; i++)
          element_set (host, (4 * n + i) * n + i + 1, 1.5);
        whole = read_host (host);
        for (b = 0; b < 5; b++)
          element_set (weight, b, b - 2.5);
        x = gtorch_tensor_wrap (impl_to_test_device (host));
        upper = gtorch_tensor_wrap (impl_to_test_device (weight));
        MUST (gtorch_tensor_set_requires_grad (x, TRUE, &error));
        det = MUST (gtorch_linalg_det (x, &error));
        MUST (gtorch_tensor_backward (det, upper, FALSE, FALSE, &error));
        grad = gtorch_tensor_get_grad (x);
        for (b = 0; b < 5; b++)
          for (i = 0; i < n; i++)
            for (j = 0; j < n; j++)
              {
                const Number expected = (b - 2.5) * conj (cofactor (whole.x + b * n * n, n, i, j));
                const Number found = element_get (gtorch_tensor_unwrap (grad), (b * n + i) * n + j);

                /* sums of n! products of n factors, the greatest of which is at most n */
                g_assert_cmpfloat (cabs (found - expected), <=,
                                   64 * (n + 1) * eps_of (dtypes[d]) * tgamma (n + 1)
                                       * pow (M_SQRT2, n));
              }
      }
}

/* The gradient of the gradient, for matrices with an inverse beside a singular one. */
static void
test_determinant_second_gradient (void)
{
  static const gint64 shape[3] = { 2, 3, 3 };
  g_autoptr (GRand) rand = g_rand_new_with_seed (16);
  g_autoptr (GTorchImpl) host = random_new (GTORCH_DTYPE_FLOAT64, shape, 3, 0, FALSE, rand);
  g_autoptr (GTorchImpl) own = impl_to_host (host);
  g_autoptr (GTorchTensor) x = NULL;
  g_autoptr (GTorchTensor) det = NULL;
  g_autoptr (GTorchTensor) first = NULL;
  g_autoptr (GTorchTensor) second = NULL;
  g_autoptr (GTorchTensor) sum = NULL;
  g_autoptr (GPtrArray) grads = NULL;
  g_auto (Host) whole = { 0 };
  gint64 i, j, r, c;

  for (i = 0; i < 9; i++)
    element_set (own, 9 + i, 0);
  whole = read_host (own);
  x = gtorch_tensor_wrap (impl_to_test_device (own));
  MUST (gtorch_tensor_set_requires_grad (x, TRUE, &error));
  det = MUST (gtorch_linalg_det (x, &error));
  sum = MUST (gtorch_tensor_sum (det, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error));
  MUST (gtorch_tensor_backward (sum, NULL, TRUE, TRUE, &error));
  first = gtorch_tensor_get_grad (x);
  g_clear_object (&sum);
  sum = MUST (gtorch_tensor_sum (first, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error));
  MUST (gtorch_tensor_set_grad (x, NULL, &error));
  MUST (gtorch_tensor_backward (sum, NULL, FALSE, FALSE, &error));
  second = gtorch_tensor_get_grad (x);
  for (i = 0; i < 3; i++)
    for (j = 0; j < 3; j++)
      {
        Number up = 0, down = 0;
        gdouble h = 1e-5;

        for (r = 0; r < 3; r++)
          for (c = 0; c < 3; c++)
            {
              whole.x[i * 3 + j] += h;
              up += cofactor (whole.x, 3, r, c);
              whole.x[i * 3 + j] -= 2 * h;
              down += cofactor (whole.x, 3, r, c);
              whole.x[i * 3 + j] += h;
            }
        g_assert_cmpfloat (cabs (element_get (gtorch_tensor_unwrap (second), i * 3 + j)
                                 - (up - down) / (2 * h)),
                           <=, 1e-8);
      }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/linalg/cholesky", test_cholesky);
  g_test_add_func ("/linalg/cholesky-gradient", test_cholesky_gradient);
  g_test_add_func ("/linalg/lu", test_lu);
  g_test_add_func ("/linalg/solve", test_solve);
  g_test_add_func ("/linalg/triangles", test_triangles);
  g_test_add_func ("/linalg/inverse", test_inverse);
  g_test_add_func ("/linalg/determinants", test_determinants);
  g_test_add_func ("/linalg/exponential", test_exponential);
  g_test_add_func ("/linalg/known-exponentials", test_known_exponentials);
  g_test_add_func ("/linalg/tensors-as-maps", test_tensors_as_maps);
  g_test_add_func ("/linalg/empty", test_empty);
  g_test_add_func ("/linalg/errors", test_errors);
  g_test_add_func ("/linalg/without-pivots", test_without_pivots);
  g_test_add_func ("/linalg/wrong-pivots", test_wrong_pivots);
  g_test_add_func ("/linalg/number-of-pivots", test_number_of_pivots);
  g_test_add_func ("/linalg/determinant-gradient", test_determinant_gradient);
  g_test_add_func ("/linalg/determinant-second-gradient", test_determinant_second_gradient);
  return g_test_run ();
}
