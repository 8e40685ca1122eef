/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* QR, eigenvalues, singular values, and what is computed of them, by the identities that define them;
 * gradients against differences, of results that do not depend on the factors of absolute value 1 that
 * vectors are unique up to. */

#include "config.h"

#include "host-matrices.h"
#include "sanitizer.h"

static const gint64 pairs[][2] = { { 1, 1 }, { 1, 4 }, { 4, 1 },   { 3, 3 },
                                   { 5, 8 }, { 9, 4 }, { 33, 17 }, { 17, 40 } };

static Host
adjoint_of (const Host *a)
{
  Host result = host_new (a->batch, a->columns, a->rows);
  gint64 b, i, j;

  for (b = 0; b < a->batch; b++)
    for (i = 0; i < a->rows; i++)
      for (j = 0; j < a->columns; j++)
        AT (result, b, j, i) = conj (AT (*a, b, i, j));
  return result;
}

static void
assert_orthonormal (const Host *columns, gdouble tolerance, const gchar *what)
{
  g_auto (Host) adjoint = adjoint_of (columns);
  g_auto (Host) product = multiply (&adjoint, columns, FALSE);
  g_auto (Host) one = host_new (product.batch, product.rows, product.rows);
  gint64 b, i;

  for (b = 0; b < one.batch; b++)
    for (i = 0; i < one.rows; i++)
      AT (one, b, i, i) = 1;
  assert_close (&product, &one, tolerance, what);
}

/* Multiplies column j by row j of the values, [batch, columns]. */
static void
scale_columns (Host *a, GTorchImpl *values)
{
  g_autoptr (GTorchImpl) host = impl_to_host (values);
  const gint64 n = host->shape[host->n_dims - 1];
  gint64 b, i, j;

  for (b = 0; b < a->batch; b++)
    for (i = 0; i < a->rows; i++)
      for (j = 0; j < a->columns; j++)
        AT (*a, b, i, j) *= j < n ? element_get (host, b * n + j) : 0;
}

/* Checks that values do not grow (or shrink) along the last dimension. */
static void
assert_ordered (GTorchImpl *values, gboolean descending)
{
  g_autoptr (GTorchImpl) host = impl_to_host (values);
  const gint64 n = host->shape[host->n_dims - 1];
  gint64 i;

  for (i = 1; i < host->numel; i++)
    if (i % n != 0)
      {
        const gdouble step = creal (element_get (host, i)) - creal (element_get (host, i - 1));

        g_assert_true (descending ? step <= 0 : step >= 0);
      }
}

/* The errors of Householder's method are a small multiple of the number of elements of a column. */
static gdouble
tolerance_of (guint dtype, gint64 m, gint64 n, const Host *a)
{
  return 20 * (gdouble) MAX (m, n) * eps_of (dtype) * fmax (1, largest (a));
}

static void
test_qr (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  guint d, s, l, complete;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    for (s = 0; s < G_N_ELEMENTS (pairs); s++)
      for (l = 0; l < layouts_of (pairs[s][0]); l++)
        for (complete = 0; complete < 2; complete++)
          {
            const gint64 m = pairs[s][0], n = pairs[s][1], shape[3] = { 2, m, n };
            g_autoptr (GTorchImpl) a = random_new (dtypes[d], shape, 3, l, FALSE, rand);
            g_autoptr (GTorchImpl) q = NULL;
            g_autoptr (GTorchImpl) r = NULL;
            g_autoptr (GTorchImpl) nothing = NULL;
            g_autoptr (GTorchImpl) other = NULL;
            g_autofree gchar *problem = NULL;
            g_auto (Host) whole = read_host (a);
            g_auto (Host) hq = { 0 };
            g_auto (Host) hr = { 0 };
            g_auto (Host) product = { 0 };
            const gdouble tolerance = tolerance_of (dtypes[d], m, n, &whole);
            gint64 b, i, j;

            MUST (gtorch_op_linalg_qr (a,
                                       complete ? GTORCH_QR_MODE_COMPLETE : GTORCH_QR_MODE_REDUCED,
                                       &q, &r, &error));
            hq = read_host (q);
            hr = read_host (r);
            g_assert_cmpint (hq.columns, ==, complete ? m : MIN (m, n));
            g_assert_cmpint (hr.rows, ==, complete ? m : MIN (m, n));
            product = multiply (&hq, &hr, FALSE);
            assert_close (&product, &whole, tolerance, "qr");
            assert_orthonormal (&hq, tolerance, "q");
            for (b = 0; b < 2; b++)
              for (i = 0; i < hr.rows; i++)
                for (j = 0; j < MIN (i, n); j++)
                  g_assert_true (AT (hr, b, i, j) == 0);
            if (complete)
              continue;
            MUST (gtorch_op_linalg_qr (a, GTORCH_QR_MODE_R, &nothing, &other, &error));
            g_assert_cmpint (nothing->numel, ==, 0);
            problem = difference (other, r, 0);
            g_assert_cmpstr (problem, ==, NULL);
          }
}

/* The reflectors of a matrix give the same Q; ormqr() multiplies by it. */
static void
test_reflectors (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (2);
  guint d, s, form;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    for (s = 0; s < G_N_ELEMENTS (pairs); s++)
      for (form = 0; form < 4; form++)
        {
          const gboolean left = form & 1, transpose = (form & 2) != 0;
          const gint64 m = pairs[s][0], n = pairs[s][1], shape[3] = { 2, m, n };
          const gint64 right[3] = { 2, left ? m : 3, left ? 3 : m };
          g_autoptr (GTorchImpl) a = random_new (dtypes[d], shape, 3, 0, FALSE, rand);
          g_autoptr (GTorchImpl) c = random_new (dtypes[d], right, 3, 1, FALSE, rand);
          g_autoptr (GTorchImpl) reflectors = NULL;
          g_autoptr (GTorchImpl) tau = NULL;
          g_autoptr (GTorchImpl) multiplied = NULL;
          g_autoptr (GTorchImpl) complete = NULL;
          g_autoptr (GTorchImpl) q = NULL;
          g_auto (Host) whole = read_host (a);
          g_auto (Host) hc = read_host (c);
          g_auto (Host) hq = { 0 };
          g_auto (Host) adjoint = { 0 };
          g_auto (Host) expected = { 0 };
          g_auto (Host) found = { 0 };
          const gdouble tolerance = tolerance_of (dtypes[d], m, n, &whole);

          MUST (gtorch_op_geqrf (a, &reflectors, &tau, &error));
          MUST (gtorch_op_linalg_qr (a, GTORCH_QR_MODE_COMPLETE, &complete, NULL, &error));
          multiplied = MUST (gtorch_op_ormqr (reflectors, tau, c, left, transpose, &error));
          hq = read_host (complete);
          adjoint = adjoint_of (&hq);
          expected = left ? multiply (transpose ? &adjoint : &hq, &hc, FALSE)
                          : multiply (&hc, transpose ? &adjoint : &hq, FALSE);
          found = read_host (multiplied);
          assert_close (&found, &expected, 4 * tolerance, "ormqr");
          if (m < n)
            continue;
          q = MUST (gtorch_op_linalg_householder_product (reflectors, tau, &error));
          host_clear (&found);
          host_clear (&expected);
          found = read_host (q);
          expected = host_new (2, m, n);
          {
            gint64 b, i, j;

            for (b = 0; b < 2; b++)
              for (i = 0; i < m; i++)
                for (j = 0; j < n; j++)
                  AT (expected, b, i, j) = AT (hq, b, i, j);
          }
          assert_close (&found, &expected, tolerance, "householder_product");
        }
}

/* The other triangle than the one that is read has NaN. */
static void
test_eigh (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (3);
  guint d, s, l, upper;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    for (s = 0; s < G_N_ELEMENTS (sizes); s++)
      for (l = 0; l < layouts_of (sizes[s]); l++)
        for (upper = 0; upper < 2; upper++)
          {
            const gint64 n = sizes[s], shape[3] = { 2, n, n };
            g_autoptr (GTorchImpl) a = random_new (dtypes[d], shape, 3, l, TRUE, rand);
            g_autoptr (GTorchImpl) host = impl_to_host (a);
            g_autoptr (GTorchImpl) half = NULL;
            g_autoptr (GTorchImpl) values = NULL;
            g_autoptr (GTorchImpl) vectors = NULL;
            g_autoptr (GTorchImpl) alone = NULL;
            g_auto (Host) whole = read_host (a);
            g_auto (Host) v = { 0 };
            g_auto (Host) left = { 0 };
            const gdouble tolerance = tolerance_of (dtypes[d], n, n, &whole) * n;
            gint64 b, i, j;

            for (b = 0; b < 2; b++)
              for (i = 0; i < n; i++)
                for (j = 0; j < n; j++)
                  if (upper ? i > j : i < j)
                    element_set (host, (b * n + i) * n + j, NAN);
            half = impl_to_test_device (host);
            MUST (gtorch_op_linalg_eigh (half, upper ? GTORCH_UPLO_U : GTORCH_UPLO_L, &values,
                                         &vectors, &error));
            alone = MUST (
                gtorch_op_linalg_eigvalsh (half, upper ? GTORCH_UPLO_U : GTORCH_UPLO_L, &error));
            assert_ordered (values, FALSE);
            assert_ordered (alone, FALSE);
            for (i = 0; i < 2 * n; i++)
              {
                g_autoptr (GTorchImpl) x = impl_to_host (values);
                g_autoptr (GTorchImpl) y = impl_to_host (alone);

                g_assert_cmpfloat (cabs (element_get (x, i) - element_get (y, i)), <=, tolerance);
              }
            v = read_host (vectors);
            assert_orthonormal (&v, tolerance, "eigenvectors");
            left = multiply (&whole, &v, FALSE);
            scale_columns (&v, values);
            assert_close (&left, &v, tolerance, "eigh");
          }
}

static void
test_eig (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (4);
  guint d, s, l;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    for (s = 0; s < G_N_ELEMENTS (sizes); s++)
      for (l = 0; l < layouts_of (sizes[s]); l++)
        {
          const gint64 n = sizes[s], shape[3] = { 2, n, n };
          g_autoptr (GTorchImpl) a = random_new (dtypes[d], shape, 3, l, FALSE, rand);
          g_autoptr (GTorchImpl) values = NULL;
          g_autoptr (GTorchImpl) vectors = NULL;
          g_autoptr (GTorchImpl) alone = NULL;
          g_autoptr (GTorchImpl) sum = NULL;
          g_autoptr (GTorchImpl) other = NULL;
          g_auto (Host) whole = read_host (a);
          g_auto (Host) v = { 0 };
          g_auto (Host) left = { 0 };
          const gdouble tolerance = tolerance_of (dtypes[d], n, n, &whole) * n;
          static const gint64 last = -1;
          gint64 i;

          MUST (gtorch_op_linalg_eig (a, &values, &vectors, &error));
          g_assert_true (gtorch_impl_device (values) == test_device ());
          alone = MUST (gtorch_op_linalg_eigvals (a, &error));
          v = read_host (vectors);
          left = multiply (&whole, &v, FALSE);
          scale_columns (&v, values);
          assert_close (&left, &v, tolerance, "eig");
          sum = MUST (gtorch_op_sum (values, &last, 1, FALSE, GTORCH_DTYPE_NONE, &error));
          other = MUST (gtorch_op_sum (alone, &last, 1, FALSE, GTORCH_DTYPE_NONE, &error));
          for (i = 0; i < 2; i++)
            {
              g_autoptr (GTorchImpl) x = impl_to_host (sum);
              g_autoptr (GTorchImpl) y = impl_to_host (other);
              Number trace = 0;
              gint64 j;

              for (j = 0; j < n; j++)
                trace += AT (whole, i, j, j);
              g_assert_cmpfloat (cabs (element_get (x, i) - trace), <=, tolerance * n);
              g_assert_cmpfloat (cabs (element_get (y, i) - trace), <=, tolerance * n);
            }
        }
}

static void
test_svd (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (5);
  guint d, s, l, full;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    for (s = 0; s < G_N_ELEMENTS (pairs); s++)
      for (l = 0; l < layouts_of (pairs[s][0]); l++)
        for (full = 0; full < 2; full++)
          {
            const gint64 m = pairs[s][0], n = pairs[s][1], shape[3] = { 2, m, n };
            const gint64 k = MIN (m, n);
            g_autoptr (GTorchImpl) a = random_new (dtypes[d], shape, 3, l, FALSE, rand);
            g_autoptr (GTorchImpl) u = NULL;
            g_autoptr (GTorchImpl) values = NULL;
            g_autoptr (GTorchImpl) vh = NULL;
            g_autoptr (GTorchImpl) alone = NULL;
            g_autoptr (GTorchImpl) one = NULL;
            g_autoptr (GTorchImpl) two = NULL;
            g_auto (Host) whole = read_host (a);
            g_auto (Host) hu = { 0 };
            g_auto (Host) hvh = { 0 };
            g_auto (Host) v = { 0 };
            g_auto (Host) narrow = { 0 };
            g_auto (Host) rows = { 0 };
            g_auto (Host) product = { 0 };
            const gdouble tolerance = tolerance_of (dtypes[d], m, n, &whole);
            gint64 b, i, j;

            MUST (gtorch_op_linalg_svd (a, full, GTORCH_SVD_DRIVER_AUTOMATIC, &u, &values, &vh,
                                        &error));
            alone = MUST (gtorch_op_linalg_svdvals (a, GTORCH_SVD_DRIVER_AUTOMATIC, &error));
            assert_ordered (values, TRUE);
            one = impl_to_host (values);
            two = impl_to_host (alone);
            for (i = 0; i < 2 * k; i++)
              {
                g_assert_cmpfloat (creal (element_get (one, i)), >=, 0);
                g_assert_cmpfloat (cabs (element_get (one, i) - element_get (two, i)), <=,
                                   tolerance);
              }
            hu = read_host (u);
            hvh = read_host (vh);
            g_assert_cmpint (hu.columns, ==, full ? m : k);
            g_assert_cmpint (hvh.rows, ==, full ? n : k);
            assert_orthonormal (&hu, tolerance, "u");
            v = adjoint_of (&hvh);
            assert_orthonormal (&v, tolerance, "v");
            narrow = host_new (2, m, k);
            rows = host_new (2, k, n);
            for (b = 0; b < 2; b++)
              for (j = 0; j < k; j++)
                {
                  for (i = 0; i < m; i++)
                    AT (narrow, b, i, j) = AT (hu, b, i, j);
                  for (i = 0; i < n; i++)
                    AT (rows, b, j, i) = AT (hvh, b, j, i);
                }
            scale_columns (&narrow, values);
            product = multiply (&narrow, &rows, FALSE);
            assert_close (&product, &whole, tolerance, "svd");
          }
}

/* A matrix of rank 2 with 3 rows or columns: P A P = P, A P A = A, and both products are Hermitian. */
static void
test_pinv (void)
{
  static const gint64 thin[][2] = { { 5, 3 }, { 3, 5 }, { 4, 4 } };
  g_autoptr (GRand) rand = g_rand_new_with_seed (6);
  guint d, s, hermitian;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    for (s = 0; s < G_N_ELEMENTS (thin); s++)
      for (hermitian = 0; hermitian < (thin[s][0] == thin[s][1] ? 2 : 1); hermitian++)
        {
          const gint64 m = thin[s][0], n = thin[s][1];
          const gint64 left_shape[3] = { 2, m, 2 }, right_shape[3] = { 2, 2, n };
          g_autoptr (GTorchImpl) left = random_new (dtypes[d], left_shape, 3, 0, FALSE, rand);
          g_autoptr (GTorchImpl) swapped = MUST (gtorch_op_swap_matrix (left, &error));
          g_autoptr (GTorchImpl) right =
              hermitian ? MUST (gtorch_op_conj (swapped, &error))
                        : random_new (dtypes[d], right_shape, 3, 0, FALSE, rand);
          g_autoptr (GTorchImpl) a = MUST (gtorch_op_matmul (left, right, &error));
          g_autoptr (GTorchImpl) p = NULL;
          g_autoptr (GTorchImpl) rank = NULL;
          g_autoptr (GTorchImpl) ranks = NULL;
          g_auto (Host) ha = read_host (a);
          g_auto (Host) hp = { 0 };
          g_auto (Host) ap = { 0 };
          g_auto (Host) pa = { 0 };
          g_auto (Host) apa = { 0 };
          g_auto (Host) pap = { 0 };
          g_auto (Host) ap_adjoint = { 0 };
          g_auto (Host) pa_adjoint = { 0 };
          const gdouble rtol = 100 * eps_of (dtypes[d]);
          gdouble tolerance;

          p = MUST (gtorch_op_linalg_pinv (a, GTORCH_NONE_DOUBLE, rtol, hermitian, &error));
          rank =
              MUST (gtorch_op_linalg_matrix_rank (a, GTORCH_NONE_DOUBLE, rtol, hermitian, &error));
          ranks = impl_to_host (rank);
          g_assert_true (element_get (ranks, 0) == 2 && element_get (ranks, 1) == 2);
          hp = read_host (p);
          tolerance = 100 * eps_of (dtypes[d]) * fmax (1, largest (&ha)) * fmax (1, largest (&hp))
                      * fmax (1, largest (&hp));
          ap = multiply (&ha, &hp, FALSE);
          pa = multiply (&hp, &ha, FALSE);
          apa = multiply (&ap, &ha, FALSE);
          pap = multiply (&pa, &hp, FALSE);
          assert_close (&apa, &ha, tolerance, "A P A");
          assert_close (&pap, &hp, tolerance * fmax (1, largest (&hp)), "P A P");
          ap_adjoint = adjoint_of (&ap);
          pa_adjoint = adjoint_of (&pa);
          assert_close (&ap, &ap_adjoint, tolerance, "A P");
          assert_close (&pa, &pa_adjoint, tolerance, "P A");
        }
}

static void
test_lstsq (void)
{
  static const gint64 forms[][2] = { { 6, 3 }, { 3, 6 }, { 4, 4 } };
  g_autoptr (GRand) rand = g_rand_new_with_seed (7);
  guint d, s, driver;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    for (s = 0; s < G_N_ELEMENTS (forms); s++)
      for (driver = GTORCH_LSTSQ_DRIVER_AUTOMATIC; driver <= GTORCH_LSTSQ_DRIVER_GELSS; driver++)
        {
          const gint64 m = forms[s][0], n = forms[s][1];
          const gint64 shape[3] = { 2, m, n }, right[3] = { 2, m, 2 };
          g_autoptr (GTorchImpl) a = random_new (dtypes[d], shape, 3, 0, FALSE, rand);
          g_autoptr (GTorchImpl) b = random_new (dtypes[d], right, 3, 0, FALSE, rand);
          g_autoptr (GTorchImpl) p = MUST (
              gtorch_op_linalg_pinv (a, GTORCH_NONE_DOUBLE, GTORCH_NONE_DOUBLE, FALSE, &error));
          g_autoptr (GTorchImpl) expected = MUST (gtorch_op_matmul (p, b, &error));
          g_autoptr (GTorchImpl) x = NULL;
          g_autoptr (GTorchImpl) residuals = NULL;
          g_autoptr (GTorchImpl) rank = NULL;
          g_autoptr (GTorchImpl) values = NULL;
          g_auto (Host) he = read_host (expected);
          g_auto (Host) hp = read_host (p);
          g_auto (Host) hx = { 0 };
          const gboolean has_values = driver >= GTORCH_LSTSQ_DRIVER_GELSD;
          const gboolean has_residuals =
              m > n && (has_values || driver == GTORCH_LSTSQ_DRIVER_GELS);

          MUST (gtorch_op_linalg_lstsq (a, b, GTORCH_NONE_DOUBLE, driver, &x, &residuals, &rank,
                                        &values, &error));
          hx = read_host (x);
          assert_close (&hx, &he,
                        200 * eps_of (dtypes[d]) * fmax (1, largest (&hp))
                            * fmax (1, largest (&hp)),
                        "lstsq");
          g_assert_cmpint (residuals->numel, ==, has_residuals ? 4 : 0);
          g_assert_cmpint (values->numel, ==, has_values ? 2 * MIN (m, n) : 0);
          g_assert_cmpint (rank->numel, ==, driver == GTORCH_LSTSQ_DRIVER_GELS ? 0 : 2);
          if (has_residuals)
            {
              g_auto (Host) ha = read_host (a);
              g_auto (Host) hb = read_host (b);
              g_auto (Host) product = multiply (&ha, &hx, FALSE);
              g_autoptr (GTorchImpl) r = impl_to_host (residuals);
              gint64 i, j, q;

              for (q = 0; q < 2; q++)
                for (j = 0; j < 2; j++)
                  {
                    gdouble sum = 0;

                    for (i = 0; i < m; i++)
                      sum += pow (cabs (AT (product, q, i, j) - AT (hb, q, i, j)), 2);
                    g_assert_cmpfloat (fabs (creal (element_get (r, 2 * q + j)) - sum), <=,
                                       1000 * eps_of (dtypes[d]) * (1 + sum));
                  }
            }
        }
}

static gdouble
number_of (GTorchImpl *x)
{
  g_autoptr (GTorchImpl) host = impl_to_host (x);
  const gdouble number = creal (element_get (host, 0));

  gtorch_impl_unref (x);
  return number;
}

static gdouble
condition (GTorchImpl *a, gdouble p)
{
  return number_of (MUST (gtorch_op_linalg_cond (a, p, &error)));
}

static gdouble
norm (GTorchImpl *a, gdouble p)
{
  static const gint64 dims[2] = { -2, -1 };

  return number_of (
      MUST (gtorch_op_linalg_matrix_norm (a, p, dims, 2, FALSE, GTORCH_DTYPE_NONE, &error)));
}

/* The matrix [[3, 0], [0, 4]] turned by 90 degrees: its singular values are 4 and 3. */
static void
test_conditions (void)
{
  static const gint64 shape[2] = { 2, 2 };
  static const gdouble elements[4] = { 0, -4, 3, 0 };
  g_autoptr (GTorchImpl) host =
      MUST (gtorch_op_zeros (shape, 2, GTORCH_DTYPE_FLOAT64, NULL, &error));
  g_autoptr (GTorchImpl) a = NULL;
  g_autoptr (GTorchImpl) zero = NULL;
  guint i;

  zero = MUST (gtorch_op_zeros (shape, 2, GTORCH_DTYPE_FLOAT64, test_device (), &error));
  for (i = 0; i < 4; i++)
    element_set (host, i, elements[i]);
  a = impl_to_test_device (host);
  g_assert_cmpfloat_with_epsilon (condition (a, GTORCH_NONE_DOUBLE), 4.0 / 3, 1e-12);
  g_assert_cmpfloat_with_epsilon (condition (a, 2), 4.0 / 3, 1e-12);
  g_assert_cmpfloat_with_epsilon (condition (a, -2), 0.75, 1e-12);
  g_assert_cmpfloat_with_epsilon (condition (a, 1), 4.0 / 3, 1e-12);
  g_assert_cmpfloat_with_epsilon (condition (a, -INFINITY), 0.75, 1e-12);
  g_assert_cmpfloat (condition (zero, 1), ==, INFINITY);
  g_assert_true (isnan (condition (zero, 2)));
  g_assert_cmpfloat_with_epsilon (norm (a, 2), 4, 1e-12);
  g_assert_cmpfloat_with_epsilon (norm (a, -2), 3, 1e-12);
}

/* A matrix of rank 3 is found but for rounding. */
static void
test_low_rank (void)
{
  static const gint64 left_shape[3] = { 2, 9, 3 }, right_shape[3] = { 2, 3, 12 };
  g_autoptr (GRand) rand = g_rand_new_with_seed (8);
  guint wide;

  for (wide = 0; wide < 2; wide++)
    {
      g_autoptr (GTorchImpl) left =
          random_new (GTORCH_DTYPE_FLOAT64, left_shape, 3, 0, FALSE, rand);
      g_autoptr (GTorchImpl) right =
          random_new (GTORCH_DTYPE_FLOAT64, right_shape, 3, 0, FALSE, rand);
      g_autoptr (GTorchImpl) product = MUST (gtorch_op_matmul (left, right, &error));
      g_autoptr (GTorchImpl) swapped = MUST (gtorch_op_swap_matrix (product, &error));
      GTorchImpl *a = wide ? product : swapped;
      g_autoptr (GTorchImpl) u = NULL;
      g_autoptr (GTorchImpl) s = NULL;
      g_autoptr (GTorchImpl) v = NULL;
      g_auto (Host) ha = read_host (a);
      g_auto (Host) hu = { 0 };
      g_auto (Host) hv = { 0 };
      g_auto (Host) found = { 0 };

      MUST (gtorch_op_svd_lowrank (a, 5, 2, NULL, &u, &s, &v, &error));
      hu = read_host (u);
      hv = read_host (v);
      assert_orthonormal (&hu, 1e-12, "u");
      scale_columns (&hu, s);
      found = multiply (&hu, &hv, TRUE);
      assert_close (&found, &ha, 1e-11, "svd_lowrank");
    }
}

/* --- gradients --- */

typedef GTorchTensor *(*Compose) (GTorchTensor *x, GError **error);

static GTorchTensor *
call (GTorchTensor **inputs, gsize n_inputs, gpointer user_data, GError **error)
{
  return ((Compose) user_data) (inputs[0], error);
}

/* Returns U diag (1, 2, …) W. */
static GTorchTensor *
weigh (GTorchTensor *u, GTorchTensor *w, GError **error)
{
  const gint64 k = gtorch_tensor_get_size (u, -1, NULL);
  g_autoptr (GTorchTensor) weights =
      gtorch_arange (1, k + 1, 1, GTORCH_DTYPE_FLOAT64, gtorch_tensor_get_device (u), error);
  g_autoptr (GTorchTensor) scaled = gtorch_tensor_mul (u, weights, error);

  return gtorch_tensor_matmul (scaled, w, error);
}

static GTorchTensor *
adjoint (GTorchTensor *x, GError **error)
{
  g_autoptr (GTorchTensor) swapped = gtorch_tensor_transpose (x, -2, -1, error);

  return gtorch_tensor_conj (swapped, error);
}

static GTorchTensor *
q_and_r (GTorchTensor *x, GError **error)
{
  g_autoptr (GTorchTensor) q = NULL;
  g_autoptr (GTorchTensor) r = NULL;
  g_autoptr (GTorchTensor) doubled = NULL;

  if (!gtorch_linalg_qr (x, GTORCH_QR_MODE_REDUCED, &q, &r, error))
    return NULL;
  doubled = gtorch_tensor_mul_scalar (q, 2, error);
  return weigh (doubled, r, error);
}

static GTorchTensor *
eigh (GTorchTensor *x, GError **error)
{
  g_autoptr (GTorchTensor) other = adjoint (x, error);
  g_autoptr (GTorchTensor) sum = gtorch_tensor_add (x, other, 1, error);
  g_autoptr (GTorchTensor) l = NULL;
  g_autoptr (GTorchTensor) v = NULL;
  g_autoptr (GTorchTensor) vh = NULL;
  g_autoptr (GTorchTensor) row = NULL;
  g_autoptr (GTorchTensor) product = NULL;

  if (!gtorch_linalg_eigh (sum, GTORCH_UPLO_L, &l, &v, error))
    return NULL;
  vh = adjoint (v, error);
  product = weigh (v, vh, error);
  row = gtorch_tensor_unsqueeze (l, -2, error);
  return gtorch_tensor_add (product, row, 1, error);
}

static GTorchTensor *
eigvalsh (GTorchTensor *x, GError **error)
{
  g_autoptr (GTorchTensor) other = adjoint (x, error);
  g_autoptr (GTorchTensor) sum = gtorch_tensor_add (x, other, 1, error);

  return gtorch_linalg_eigvalsh (sum, GTORCH_UPLO_U, error);
}

static GTorchTensor *
svd (GTorchTensor *x, GError **error)
{
  g_autoptr (GTorchTensor) u = NULL;
  g_autoptr (GTorchTensor) s = NULL;
  g_autoptr (GTorchTensor) vh = NULL;
  g_autoptr (GTorchTensor) product = NULL;
  g_autoptr (GTorchTensor) sum = NULL;

  if (!gtorch_linalg_svd (x, FALSE, GTORCH_SVD_DRIVER_AUTOMATIC, &u, &s, &vh, error))
    return NULL;
  product = weigh (u, vh, error);
  sum = gtorch_tensor_sum (s, NULL, 0, FALSE, GTORCH_DTYPE_NONE, error);
  return gtorch_tensor_add (product, sum, 1, error);
}

static GTorchTensor *
svdvals (GTorchTensor *x, GError **error)
{
  return gtorch_linalg_svdvals (x, GTORCH_SVD_DRIVER_AUTOMATIC, error);
}

static GTorchTensor *
full_singular_values (GTorchTensor *x, GError **error)
{
  g_autoptr (GTorchTensor) s = NULL;

  return gtorch_linalg_svd (x, TRUE, GTORCH_SVD_DRIVER_AUTOMATIC, NULL, &s, NULL, error)
             ? g_steal_pointer (&s)
             : NULL;
}

static GTorchTensor *
eig (GTorchTensor *x, GError **error)
{
  g_autoptr (GTorchTensor) l = NULL;
  g_autoptr (GTorchTensor) v = NULL;
  g_autoptr (GTorchTensor) inverse = NULL;
  g_autoptr (GTorchTensor) scaled = NULL;
  g_autoptr (GTorchTensor) squares = NULL;
  g_autoptr (GTorchTensor) rows = NULL;

  if (!gtorch_linalg_eig (x, &l, &v, error))
    return NULL;
  inverse = gtorch_linalg_inv (v, error);
  squares = gtorch_tensor_mul (l, l, error);
  rows = gtorch_tensor_unsqueeze (squares, -2, error);
  scaled = gtorch_tensor_mul (v, rows, error);
  return gtorch_tensor_matmul (scaled, inverse, error);
}

static GTorchTensor *
pinv (GTorchTensor *x, GError **error)
{
  return gtorch_linalg_pinv (x, GTORCH_NONE_DOUBLE, GTORCH_NONE_DOUBLE, FALSE, error);
}

static GTorchTensor *
solution_by (GTorchTensor *x, GTorchLstsqDriver driver, GError **error)
{
  g_autoptr (GTorchTensor) b = gtorch_tensor_cos (x, error);
  g_autoptr (GTorchTensor) solution = NULL;

  return gtorch_linalg_lstsq (x, b, GTORCH_NONE_DOUBLE, driver, &solution, NULL, NULL, NULL, error)
             ? g_steal_pointer (&solution)
             : NULL;
}

static GTorchTensor *
least_squares (GTorchTensor *x, GError **error)
{
  return solution_by (x, GTORCH_LSTSQ_DRIVER_GELSD, error);
}

static GTorchTensor *
least_squares_by_qr (GTorchTensor *x, GError **error)
{
  return solution_by (x, GTORCH_LSTSQ_DRIVER_GELS, error);
}

static void
test_gradients (void)
{
  static const struct
  {
    const gchar *name;
    Compose function;
    gboolean square, twice;
  } cases[] = {
    { "qr", q_and_r, FALSE, TRUE },
    { "eigh", eigh, TRUE, TRUE },
    { "eigvalsh", eigvalsh, TRUE, TRUE },
    { "svd", svd, FALSE, TRUE },
    { "svdvals", svdvals, FALSE, TRUE },
    { "svd, full", full_singular_values, FALSE, FALSE },
    { "eig", eig, TRUE, FALSE },
    { "pinv", pinv, FALSE, TRUE },
    { "lstsq", least_squares, FALSE, FALSE },
    { "lstsq by QR", least_squares_by_qr, FALSE, FALSE },
  };
  static const gint64 shapes[][2] = { { 3, 3 }, { 4, 3 }, { 3, 4 } };
  g_autoptr (GRand) rand = g_rand_new_with_seed (9);
  guint i, s, d;

  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    for (s = 0; s < (cases[i].square || is_under_sanitizer () ? 1 : G_N_ELEMENTS (shapes)); s++)
      for (d = 1; d < G_N_ELEMENTS (dtypes); d += 2)
        {
          const gint64 shape[3] = { 2, shapes[s][0], shapes[s][1] };
          g_autoptr (GTorchTensor) x =
              gtorch_tensor_wrap (random_new (dtypes[d], shape, 3, 0, FALSE, rand));
          g_autoptr (GError) error = NULL;

          gtorch_tensor_set_requires_grad (x, TRUE, NULL);
          if (!gtorch_gradcheck (call, cases[i].function, &x, 1, 1e-6, 1e-5, 1e-3, &error)
              || (cases[i].twice && !is_under_sanitizer ()
                  && !gtorch_gradgradcheck (call, cases[i].function, &x, 1, 1e-6, 1e-4, 1e-3,
                                            &error)))
            {
              g_test_message ("%s of %s, %dx%d: %s", cases[i].name,
                              gtorch_dtype_get_name (dtypes[d]), (gint) shape[1], (gint) shape[2],
                              error->message);
              g_test_fail ();
            }
        }
}

/* --- bounds and errors --- */

static void
assert_shape (GTorchImpl *x, const gchar *shape)
{
  g_assert_cmpstr (gtorch_impl_shape_str (x), ==, shape);
  gtorch_impl_unref (x);
}

static void
test_empty (void)
{
  static const gint64 shape[3] = { 2, 3, 0 }, none[3] = { 0, 3, 3 };
  g_autoptr (GTorchImpl) a =
      MUST (gtorch_op_zeros (shape, 3, GTORCH_DTYPE_FLOAT32, test_device (), &error));
  g_autoptr (GTorchImpl) b =
      MUST (gtorch_op_zeros (none, 3, GTORCH_DTYPE_FLOAT32, test_device (), &error));
  GTorchImpl *q, *r, *u, *s, *vh;

  MUST (gtorch_op_linalg_qr (a, GTORCH_QR_MODE_REDUCED, &q, &r, &error));
  assert_shape (q, "[2, 3, 0]");
  assert_shape (r, "[2, 0, 0]");
  MUST (gtorch_op_linalg_qr (a, GTORCH_QR_MODE_COMPLETE, &q, &r, &error));
  {
    g_auto (Host) hq = read_host (q);

    assert_orthonormal (&hq, 0, "Q without columns of A");
  }
  assert_shape (q, "[2, 3, 3]");
  assert_shape (r, "[2, 3, 0]");
  MUST (gtorch_op_linalg_svd (a, TRUE, 0, &u, &s, &vh, &error));
  {
    g_auto (Host) hu = read_host (u);

    assert_orthonormal (&hu, 0, "U without columns of A");
  }
  assert_shape (u, "[2, 3, 3]");
  assert_shape (s, "[2, 0]");
  assert_shape (vh, "[2, 0, 0]");
  MUST (gtorch_op_linalg_eigh (b, GTORCH_UPLO_L, &s, &u, &error));
  assert_shape (s, "[0, 3]");
  assert_shape (u, "[0, 3, 3]");
  MUST (gtorch_op_linalg_eig (b, &s, &u, &error));
  assert_shape (s, "[0, 3]");
  assert_shape (u, "[0, 3, 3]");
  assert_shape (MUST (gtorch_op_linalg_pinv (a, GTORCH_NONE_DOUBLE, GTORCH_NONE_DOUBLE, FALSE,
                                             &error)),
                "[2, 0, 3]");
  assert_shape (MUST (gtorch_op_linalg_matrix_rank (a, GTORCH_NONE_DOUBLE, GTORCH_NONE_DOUBLE,
                                                    FALSE, &error)),
                "[2]");
  assert_shape (MUST (gtorch_op_linalg_cond (a, GTORCH_NONE_DOUBLE, &error)), "[2]");
}

#define ASSERT_FAILS(call, text)                    \
  G_STMT_START                                      \
  {                                                 \
    g_autoptr (GError) error = NULL;                \
                                                    \
    g_assert_true (!(call));                        \
    g_assert_nonnull (error);                       \
    if (strstr (error->message, text) == NULL)      \
      g_error ("%s, not %s", error->message, text); \
  }                                                 \
  G_STMT_END

static void
test_errors (void)
{
  static const gint64 shape[3] = { 2, 3, 2 }, square[3] = { 2, 3, 3 }, row[1] = { 3 };
  g_autoptr (GRand) rand = g_rand_new_with_seed (10);
  g_autoptr (GTorchImpl) a = random_new (GTORCH_DTYPE_FLOAT32, shape, 3, 0, FALSE, rand);
  g_autoptr (GTorchImpl) b = random_new (GTORCH_DTYPE_FLOAT64, square, 3, 0, TRUE, rand);
  g_autoptr (GTorchImpl) vector = random_new (GTORCH_DTYPE_FLOAT32, row, 1, 0, FALSE, rand);
  g_autoptr (GTorchImpl) host = impl_to_host (b);
  g_autoptr (GTorchImpl) broken = NULL;

  ASSERT_FAILS (gtorch_op_linalg_eigh (a, GTORCH_UPLO_L, NULL, NULL, &error),
                "linalg_eigh: shape [2, 3, 2] must be that of square matrices");
  ASSERT_FAILS (gtorch_op_linalg_eigvals (a, &error),
                "linalg_eigvals: shape [2, 3, 2] must be that of square matrices");
  ASSERT_FAILS (gtorch_op_linalg_qr (vector, GTORCH_QR_MODE_REDUCED, NULL, NULL, &error),
                "linalg_qr: shape [3] must be that of matrices");
  ASSERT_FAILS (gtorch_op_linalg_qr (a, 9, NULL, NULL, &error), "linalg_qr: 9 is no GTorchQrMode");
  ASSERT_FAILS (gtorch_op_linalg_svdvals (vector, 0, &error),
                "linalg_svdvals: shape [3] must be that of matrices");
  ASSERT_FAILS (gtorch_op_linalg_svd (a, TRUE, GTORCH_SVD_DRIVER_GESVDJ, NULL, NULL, NULL, &error),
                "linalg_svd: each device has one algorithm");
  ASSERT_FAILS (gtorch_op_linalg_lstsq (a, b, GTORCH_NONE_DOUBLE, 0, NULL, NULL, NULL, NULL,
                                        &error),
                "linalg_lstsq: shapes [2, 3, 2] and [2, 3, 3] of float32 and float64");
  ASSERT_FAILS (gtorch_op_linalg_cond (b, 3, &error), "linalg_cond: p is 3");
  ASSERT_FAILS (gtorch_op_ormqr (a, vector, a, TRUE, FALSE, &error),
                "ormqr: tau of shape [3] does not fit reflectors of shape [2, 3, 2]");
  ASSERT_FAILS (gtorch_op_svd_lowrank (a, 3, 2, NULL, NULL, NULL, NULL, &error),
                "svd_lowrank: q is 3");
  element_set (host, 9 + 4, NAN);
  broken = impl_to_test_device (host);
  ASSERT_FAILS (gtorch_op_linalg_eigvals (broken, &error),
                "linalg_eigvals: the matrix at [1] of the batch is not decomposed");
}

static GTorchTensor *
full_vectors (GTorchTensor *x, GError **error)
{
  g_autoptr (GTorchTensor) u = NULL;

  return gtorch_linalg_svd (x, TRUE, GTORCH_SVD_DRIVER_AUTOMATIC, &u, NULL, NULL, error)
             ? g_steal_pointer (&u)
             : NULL;
}

static GTorchTensor *
complete_q (GTorchTensor *x, GError **error)
{
  g_autoptr (GTorchTensor) q = NULL;

  return gtorch_linalg_qr (x, GTORCH_QR_MODE_COMPLETE, &q, NULL, error) ? g_steal_pointer (&q)
                                                                        : NULL;
}

static void
test_undefined_gradients (void)
{
  static const gint64 shape[2] = { 3, 2 };
  static const Compose functions[] = { full_vectors, complete_q };
  static const gchar *const texts[] = { "full_matrices must be false", "has no gradient" };
  g_autoptr (GRand) rand = g_rand_new_with_seed (11);
  guint i;

  for (i = 0; i < G_N_ELEMENTS (functions); i++)
    {
      g_autoptr (GTorchTensor) x =
          gtorch_tensor_wrap (random_new (GTORCH_DTYPE_FLOAT64, shape, 2, 0, FALSE, rand));
      g_autoptr (GTorchTensor) result = NULL;
      g_autoptr (GTorchTensor) sum = NULL;

      gtorch_tensor_set_requires_grad (x, TRUE, NULL);
      result = MUST (functions[i](x, &error));
      sum = MUST (gtorch_tensor_sum (result, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error));
      ASSERT_FAILS (gtorch_tensor_backward (sum, NULL, FALSE, FALSE, &error), texts[i]);
    }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/decompositions/qr", test_qr);
  g_test_add_func ("/decompositions/reflectors", test_reflectors);
  g_test_add_func ("/decompositions/eigh", test_eigh);
  g_test_add_func ("/decompositions/eig", test_eig);
  g_test_add_func ("/decompositions/svd", test_svd);
  g_test_add_func ("/decompositions/pinv", test_pinv);
  g_test_add_func ("/decompositions/lstsq", test_lstsq);
  g_test_add_func ("/decompositions/conditions", test_conditions);
  g_test_add_func ("/decompositions/low-rank", test_low_rank);
  g_test_add_func ("/decompositions/gradients", test_gradients);
  g_test_add_func ("/decompositions/undefined-gradients", test_undefined_gradients);
  g_test_add_func ("/decompositions/empty", test_empty);
  g_test_add_func ("/decompositions/errors", test_errors);
  return g_test_run ();
}
