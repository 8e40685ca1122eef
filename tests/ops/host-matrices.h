/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* Matrices on the host, in double precision, for tests of linear algebra. */

#include <math.h>
#include <string.h>

#include <gtorch/tensor/gtorch-tensor-private.h>
#include <gtorch/gtorch.h>

#include "gtorch-ops-private.h"
#include "op-values.h"

static const guint dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64, GTORCH_DTYPE_COMPLEX64,
                                GTORCH_DTYPE_COMPLEX128 };
static const gint64 sizes[] G_GNUC_UNUSED = { 1, 2, 3, 5, 16, 33, 65 };

static inline gdouble
eps_of (guint dtype)
{
  return gtorch_dtype_infos[gtorch_dtype_infos[dtype].real].eps;
}

/* Returns how many layouts are tested; those of large matrices are contiguous and transposed. */
static inline guint
layouts_of (gint64 n)
{
  return n > 16 ? LAYOUT_TRANSPOSED + 1 : N_LAYOUTS;
}

/* --- matrices on the host, in double precision --- */

typedef struct
{
  gint64 batch, rows, columns;
  Number *x;
} Host;

static inline void
host_clear (Host *self)
{
  g_clear_pointer (&self->x, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Host, host_clear)

static inline Host
host_new (gint64 batch, gint64 rows, gint64 columns)
{
  return (Host){ batch, rows, columns, g_new0 (Number, MAX (batch * rows * columns, 1)) };
}

#define AT(m, b, i, j) ((m).x[((b) * (m).rows + (i)) * (m).columns + (j)])

static inline Host
read_host (GTorchImpl *impl)
{
  g_autoptr (GTorchImpl) host = impl_to_host (impl);
  const gint64 rows = impl->shape[impl->n_dims - 2], columns = impl->shape[impl->n_dims - 1];
  Host result = host_new (impl->numel / MAX (rows * columns, 1), rows, columns);
  gint64 i;

  for (i = 0; i < impl->numel; i++)
    result.x[i] = element_get (host, i);
  return result;
}

/* Multiplies; with `adjoint` by the second one's conjugate transpose. A batch of 1 counts for all. */
static inline Host
multiply (const Host *a, const Host *b, gboolean adjoint)
{
  const gint64 n = adjoint ? b->rows : b->columns;
  Host result = host_new (MAX (a->batch, b->batch), a->rows, n);
  gint64 m, i, j, k;

  for (m = 0; m < result.batch; m++)
    for (i = 0; i < a->rows; i++)
      for (j = 0; j < n; j++)
        {
          Number sum = 0;

          for (k = 0; k < a->columns; k++)
            sum += AT (*a, m % a->batch, i, k)
                   * (adjoint ? conj (AT (*b, m % b->batch, j, k)) : AT (*b, m % b->batch, k, j));
          AT (result, m, i, j) = sum;
        }
  return result;
}

static inline gdouble
largest (const Host *a)
{
  gdouble result = 0;
  gint64 i;

  for (i = 0; i < a->batch * a->rows * a->columns; i++)
    result = fmax (result, cabs (a->x[i]));
  return result;
}

static inline void
assert_close (const Host *a, const Host *b, gdouble tolerance, const gchar *what)
{
  gint64 i;

  g_assert_cmpint (a->batch, ==, b->batch);
  g_assert_cmpint (a->rows, ==, b->rows);
  g_assert_cmpint (a->columns, ==, b->columns);
  for (i = 0; i < a->batch * a->rows * a->columns; i++)
    if (!(cabs (a->x[i] - b->x[i]) <= tolerance))
      g_error ("%s: %dx%d, element %d is %g%+gi, expected %g%+gi, tolerance %g", what,
               (gint) a->rows, (gint) a->columns, (gint) i, creal (a->x[i]), cimag (a->x[i]),
               creal (b->x[i]), cimag (b->x[i]), tolerance);
}

/* Returns a random tensor on the test's device. */
static inline GTorchImpl *
random_new (guint dtype, const gint64 *shape, guint n_dims, Layout layout, gboolean is_positive,
            GRand *rand)
{
  GTorchSampleTensor spec = { .name = "a", .n_dims = n_dims, .is_positive = is_positive };
  g_autoptr (GTorchImpl) host = NULL;

  memcpy (spec.shape, shape, n_dims * sizeof (gint64));
  host = input_new (&spec, dtype, layout, -1, 1, rand);
  return impl_to_test_device (host);
}

#define MUST(call)                \
  ({                              \
    GError *error = NULL;         \
    __auto_type result_ = (call); \
                                  \
    g_assert_no_error (error);    \
    g_assert_true (result_);      \
    result_;                      \
  })
