/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Reductions by index, compared with a simple loop in float64, and cases that the loop does not cover:
 * neutral elements, NaN, equal elements, zeros, errors. */

#include "config.h"

#include <math.h>
#include <string.h>

#include <gtorch/tensor/gtorch-tensor-private.h>
#include <gtorch/gtorch.h>

#include "op-values.h"

#define N_REDUCTIONS (GTORCH_INDEX_REDUCTION_AMIN + 1)

static GTorchTensor *
doubles (const gdouble *values, gsize n)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *tensor = gtorch_tensor_new_from_doubles (values, n, GTORCH_SHAPE ((gint64) n),
                                                         GTORCH_DTYPE_FLOAT64, NULL, &error);

  g_assert_no_error (error);
  return tensor;
}

static GTorchTensor *
ints (const gint64 *values, gsize n)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *tensor = gtorch_tensor_new_from_ints (values, n, GTORCH_SHAPE ((gint64) n),
                                                      GTORCH_DTYPE_INT64, NULL, &error);

  g_assert_no_error (error);
  return tensor;
}

static void
assert_values (GTorchTensor *tensor, const gdouble *values, gsize n)
{
  gsize i;

  g_assert_cmpint (tensor->impl->numel, ==, n);
  for (i = 0; i < n; i++)
    {
      gdouble value = creal (element_get (tensor->impl, i));

      if (isnan (values[i]))
        g_assert_true (isnan (value));
      else if (isinf (values[i]))
        g_assert_cmpfloat (value, ==, values[i]);
      else
        g_assert_cmpfloat_with_epsilon (value, values[i], 1e-12);
    }
}

/* Computes the 2-D case in the simplest way. */
static GTorchImpl *
plain (GTorchImpl *self, guint dim, GTorchImpl *index, GTorchImpl *src, guint reduce,
       gboolean include_self)
{
  const gboolean whole = gtorch_dtype_kind (self->dtype) == GTORCH_KIND_INT;
  GTorchImpl *result = input_copy (self, whole ? GTORCH_DTYPE_INT64 : GTORCH_DTYPE_FLOAT64);
  gint64 row, column, i, k, n;

  for (row = 0; row < self->shape[0]; row++)
    for (column = 0; column < self->shape[1]; column++)
      {
        gdouble value = creal (element_get (self, row * self->shape[1] + column));

        n = include_self;
        for (i = 0; i < index->shape[0]; i++)
          for (k = 0; k < index->shape[1]; k++)
            {
              gdouble other = creal (element_get (src, i * src->shape[1] + k));
              gint64 at = (gint64) creal (element_get (index, i * index->shape[1] + k));

              if (dim == 0 ? at != row || k != column : at != column || i != row)
                continue;
              if (n++ == 0)
                value = other;
              else if (reduce == GTORCH_INDEX_REDUCTION_PROD)
                value *= other;
              else if (reduce == GTORCH_INDEX_REDUCTION_AMAX)
                value = MAX (value, other);
              else if (reduce == GTORCH_INDEX_REDUCTION_AMIN)
                value = MIN (value, other);
              else
                value += other;
            }
        if (reduce == GTORCH_INDEX_REDUCTION_MEAN && n > 0)
          value = whole ? floor (value / n) : value / n;
        element_set (result, row * self->shape[1] + column, value);
      }
  return result;
}

static void
values_are_those_of_a_plain_loop (void)
{
  const GTorchSampleTensor shapes[2][3] = {
    { { .n_dims = 2, .shape = { 5, 6 } },
      { .n_dims = 2, .shape = { 13, 4 } },
      { .n_dims = 2, .shape = { 15, 6 } } },
    { { .n_dims = 2, .shape = { 6, 5 } },
      { .n_dims = 2, .shape = { 6, 11 } },
      { .n_dims = 2, .shape = { 6, 11 } } },
  };
  g_autoptr (GRand) rand = g_rand_new_with_seed (4);
  guint dtype, reduce, include_self, dim, layout, n_checked = 0;
  gint64 i;

  for (dtype = 1; dtype < GTORCH_N_DTYPES; dtype++)
    for (reduce = 0; reduce < N_REDUCTIONS; reduce++)
      for (include_self = 0; include_self < 2; include_self++)
        for (dim = 0; dim < 2; dim++)
          for (layout = 0; layout < LAYOUT_EXPANDED; layout++)
            {
              const gboolean is_int = gtorch_dtype_kind (dtype) == GTORCH_KIND_INT;
              g_autoptr (GError) error = NULL;
              g_autoptr (GTorchImpl) self = NULL;
              g_autoptr (GTorchImpl) index = NULL;
              g_autoptr (GTorchImpl) src = NULL;
              g_autoptr (GTorchImpl) expected = NULL;
              g_autoptr (GTorchImpl) before = NULL;
              g_autoptr (GTorchTensor) x = NULL;
              g_autoptr (GTorchTensor) result = NULL;
              g_autofree gchar *text = NULL;

              if (!is_int && gtorch_dtype_kind (dtype) != GTORCH_KIND_FLOAT)
                continue;
              self = input_new (&shapes[dim][0], dtype, layout, -2, 2, rand);
              src = input_new (&shapes[dim][2], dtype, layout, -2, 2, rand);
              index = input_new (&shapes[dim][1], GTORCH_DTYPE_INT64, layout, 0, 4, rand);
              for (i = 0; i < index->numel; i++)
                /* the index 4 does not occur */
                element_set (index, i, g_rand_int_range (rand, 0, 4));
              before = input_copy (self, dtype);
              expected = plain (self, dim, index, src, reduce, include_self);
              x = gtorch_tensor_wrap (gtorch_impl_ref (self));
              {
                g_autoptr (GTorchTensor) places = gtorch_tensor_wrap (gtorch_impl_ref (index));
                g_autoptr (GTorchTensor) y = gtorch_tensor_wrap (gtorch_impl_ref (src));

                result = gtorch_tensor_scatter_reduce (x, (gint64) dim - (layout == 1 ? 2 : 0),
                                                       places, y, reduce, include_self, &error);
                g_assert_no_error (error);
                g_assert_cmpint (result->impl->dtype, ==, dtype);
                text = difference (result->impl, expected, 4 * dtype_tolerance (dtype));
                if (text == NULL)
                  text = difference (self, before, 0);
                if (text == NULL)
                  {
                    g_assert_true (gtorch_tensor_scatter_reduce_inplace (x, dim, places, y, reduce,
                                                                         include_self, &error)
                                   == x);
                    text = difference (self, expected, 4 * dtype_tolerance (dtype));
                  }
              }
              if (text != NULL)
                g_error ("%s, reduction %u, include_self %u, dim %u, %s: %s",
                         gtorch_dtype_get_name (dtype), reduce, include_self, dim,
                         layout_names[layout], text);
              n_checked++;
            }
  g_assert_cmpuint (n_checked, ==, 9 * N_REDUCTIONS * 2 * 2 * LAYOUT_EXPANDED);
}

static void
parts_are_reduced_as_elements_are (void)
{
  const GTorchSampleTensor shapes[] = { { .n_dims = 3, .shape = { 3, 5, 2 } },
                                        { .n_dims = 3, .shape = { 3, 9, 2 } } };
  const gint64 places[] = { 4, 0, 0, 2, 4, 4, 0, 2, 0 };
  g_autoptr (GRand) rand = g_rand_new_with_seed (5);
  g_autoptr (GTorchTensor) self = gtorch_tensor_wrap (
      input_new (&shapes[0], GTORCH_DTYPE_FLOAT64, LAYOUT_TRANSPOSED, -2, 2, rand));
  g_autoptr (GTorchTensor) source = gtorch_tensor_wrap (
      input_new (&shapes[1], GTORCH_DTYPE_FLOAT64, LAYOUT_CONTIGUOUS, -2, 2, rand));
  g_autoptr (GTorchTensor) index = ints (places, G_N_ELEMENTS (places));
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) line = gtorch_tensor_view (index, GTORCH_SHAPE (1, 9, 1), &error);
  g_autoptr (GTorchTensor) each = gtorch_tensor_expand (line, GTORCH_SHAPE (3, 9, 2), &error);
  guint reduce, include_self;

  for (reduce = 0; reduce < N_REDUCTIONS; reduce++)
    for (include_self = 0; include_self < 2; include_self++)
      {
        g_autoptr (GTorchTensor) a =
            gtorch_tensor_index_reduce (self, -2, index, source, reduce, include_self, &error);
        g_autoptr (GTorchTensor) b =
            gtorch_tensor_scatter_reduce (self, 1, each, source, reduce, include_self, &error);
        g_autoptr (GTorchTensor) c = gtorch_tensor_clone (self, &error);
        g_autofree gchar *text = NULL;

        g_assert_true (
            gtorch_tensor_index_reduce_inplace (c, 1, index, source, reduce, include_self, &error)
            == c);
        g_assert_no_error (error);
        g_assert_null (text = difference (a->impl, b->impl, 0));
        g_assert_null (text = difference (c->impl, b->impl, 0));
      }
}

static void
maxima_start_below_all_values (void)
{
  const gdouble x[] = { 1, 2, NAN, 4, 5 }, y[] = { -INFINITY, NAN, -7, -9, 3 };
  const gint64 at[] = { 0, 1, 2, 4, 4 };
  const gdouble with[] = { 1, NAN, NAN, 4, 5 }, without[] = { -INFINITY, NAN, -7, 4, 3 };
  g_autoptr (GTorchTensor) self = doubles (x, 5);
  g_autoptr (GTorchTensor) src = doubles (y, 5);
  g_autoptr (GTorchTensor) index = ints (at, 5);
  g_autoptr (GError) error = NULL;
  guint dtype, include_self;

  for (include_self = 0; include_self < 2; include_self++)
    {
      g_autoptr (GTorchTensor) greatest =
          gtorch_tensor_scatter_reduce (self, 0, index, src, GTORCH_INDEX_REDUCTION_AMAX,
                                        include_self, &error);

      g_assert_no_error (error);
      assert_values (greatest, include_self ? with : without, 5);
    }

  for (dtype = GTORCH_DTYPE_NONE + 1; dtype < GTORCH_N_DTYPES; dtype++)
    {
      const GTorchDTypeInfo *info = &gtorch_dtype_infos[dtype];
      const gint64 one = 0;
      guint reduce;

      if (info->kind != GTORCH_KIND_INT || info->size == 8) /* doubles cannot distinguish these */
        continue;
      for (reduce = GTORCH_INDEX_REDUCTION_AMAX; reduce <= GTORCH_INDEX_REDUCTION_AMIN; reduce++)
        {
          const gdouble end = reduce == GTORCH_INDEX_REDUCTION_AMAX ? info->min : info->max;
          g_autoptr (GTorchTensor) zero = gtorch_zeros (GTORCH_SHAPE (1), dtype, NULL, &error);
          g_autoptr (GTorchTensor) last = gtorch_full (GTORCH_SHAPE (1), end, dtype, NULL, &error);
          g_autoptr (GTorchTensor) place = ints (&one, 1);
          g_autoptr (GTorchTensor) result =
              gtorch_tensor_scatter_reduce (zero, 0, place, last, reduce, FALSE, &error);

          g_assert_no_error (error);
          assert_values (result, &end, 1);
        }
    }
  {
    const gint64 ends[] = { G_MININT64, G_MAXINT64 }, each[] = { 0, 1 };
    g_autoptr (GTorchTensor) zeros =
        gtorch_zeros (GTORCH_SHAPE (2), GTORCH_DTYPE_INT64, NULL, &error);
    g_autoptr (GTorchTensor) values = ints (ends, 2);
    g_autoptr (GTorchTensor) places = ints (each, 2);
    g_autoptr (GTorchTensor) a =
        gtorch_tensor_scatter_reduce (zeros, 0, places, values, GTORCH_INDEX_REDUCTION_AMAX, FALSE,
                                      &error);
    g_autoptr (GTorchTensor) b =
        gtorch_tensor_scatter_reduce (zeros, 0, places, values, GTORCH_INDEX_REDUCTION_AMIN, FALSE,
                                      &error);

    g_assert_no_error (error);
    g_assert_true (memcmp (gtorch_impl_data (a->impl), ends, sizeof ends) == 0);
    g_assert_true (memcmp (gtorch_impl_data (b->impl), ends, sizeof ends) == 0);
  }
}

/* Checks the gradients of the weighted sum of the results. */
static void
assert_gradients (GTorchIndexReduction reduce, gboolean include_self, gboolean in_place,
                  const gdouble *x, gsize n, const gint64 *at, const gdouble *y, gsize m,
                  const gdouble *weights, const gdouble *of_x, const gdouble *of_y)
{
  g_autoptr (GTorchTensor) self = doubles (x, n);
  g_autoptr (GTorchTensor) src = doubles (y, m);
  g_autoptr (GTorchTensor) index = ints (at, m);
  g_autoptr (GTorchTensor) weight = doubles (weights, n);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) changed = NULL;
  g_autoptr (GTorchTensor) result = NULL;
  g_autoptr (GTorchTensor) product = NULL;
  g_autoptr (GTorchTensor) sum = NULL;
  g_autoptr (GTorchTensor) a = NULL;
  g_autoptr (GTorchTensor) b = NULL;

  g_assert_true (gtorch_tensor_set_requires_grad (self, TRUE, &error));
  g_assert_true (gtorch_tensor_set_requires_grad (src, TRUE, &error));
  changed = gtorch_tensor_mul_scalar (self, 1, &error);
  if (in_place)
    {
      g_assert_nonnull (gtorch_tensor_scatter_reduce_inplace (changed, 0, index, src, reduce,
                                                              include_self, &error));
      result = g_object_ref (changed);
    }
  else
    result = gtorch_tensor_scatter_reduce (changed, 0, index, src, reduce, include_self, &error);
  g_assert_no_error (error);
  product = gtorch_tensor_mul (result, weight, &error);
  sum = gtorch_tensor_sum (product, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_tensor_backward (sum, NULL, FALSE, FALSE, &error));
  a = gtorch_tensor_get_grad (self);
  b = gtorch_tensor_get_grad (src);
  assert_values (a, of_x, n);
  assert_values (b, of_y, m);
}

static void
gradients_of_products_with_zeros (void)
{
  const gdouble x[] = { 2, 0, 5, 0, 7 }, y[] = { 3, 0, 4, 5, 0, 0, 6 };
  const gint64 at[] = { 0, 0, 1, 1, 2, 2, 3 };
  const gdouble weights[] = { 1, 10, 100, 1000, 10000 };
  const gdouble of_x[] = { 0, 200, 0, 6000, 10000 }, of_y[] = { 0, 6, 0, 0, 0, 0, 0 };
  const gdouble alone_x[] = { 0, 0, 0, 0, 10000 }, alone_y[] = { 0, 3, 50, 40, 0, 0, 1000 };
  guint in_place;

  for (in_place = 0; in_place < 2; in_place++)
    {
      assert_gradients (GTORCH_INDEX_REDUCTION_PROD, TRUE, in_place, x, 5, at, y, 7, weights, of_x,
                        of_y);
      assert_gradients (GTORCH_INDEX_REDUCTION_PROD, FALSE, in_place, x, 5, at, y, 7, weights,
                        alone_x, alone_y);
    }
}

static void
equal_extremes_share_the_gradient (void)
{
  const gdouble x[] = { 3, 9, 4 }, y[] = { 3, 1, 3, 9, 9, 8 };
  const gint64 at[] = { 0, 0, 0, 1, 1, 1 };
  const gdouble weights[] = { 6, 60, 600 };
  const gdouble of_x[] = { 2, 20, 600 }, of_y[] = { 2, 0, 2, 20, 20, 0 };
  const gdouble alone_x[] = { 0, 0, 600 }, alone_y[] = { 3, 0, 3, 30, 30, 0 };
  guint in_place;

  for (in_place = 0; in_place < 2; in_place++)
    {
      assert_gradients (GTORCH_INDEX_REDUCTION_AMAX, TRUE, in_place, x, 3, at, y, 6, weights, of_x,
                        of_y);
      assert_gradients (GTORCH_INDEX_REDUCTION_AMAX, FALSE, in_place, x, 3, at, y, 6, weights,
                        alone_x, alone_y);
    }
}

/* A sum, as the greatest, tells whether any is true, and a product, as the least, whether all are. */
static void
bools_are_reduced_to_bools (void)
{
  static const GTorchIndexReduction any_all[2][2] = {
    { GTORCH_INDEX_REDUCTION_SUM, GTORCH_INDEX_REDUCTION_AMAX },
    { GTORCH_INDEX_REDUCTION_PROD, GTORCH_INDEX_REDUCTION_AMIN },
  };
  const gboolean values[] = { FALSE, TRUE, TRUE }, more[] = { TRUE, FALSE, TRUE, TRUE };
  const gint64 at[] = { 0, 1, 1, 2 };
  const gboolean with_self[2][3] = { { TRUE, TRUE, TRUE }, { FALSE, FALSE, TRUE } };
  const gboolean alone[2][3] = { { TRUE, TRUE, TRUE }, { TRUE, FALSE, TRUE } };
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) self =
      gtorch_tensor_new_from_bools (values, 3, GTORCH_SHAPE (3), NULL, &error);
  g_autoptr (GTorchTensor) src =
      gtorch_tensor_new_from_bools (more, 4, GTORCH_SHAPE (4), NULL, &error);
  g_autoptr (GTorchTensor) index = ints (at, 4);
  guint form, i;

  g_assert_no_error (error);
  for (form = 0; form < 8; form++)
    {
      const guint which = form & 1, include_self = form >> 1 & 1;
      g_autoptr (GTorchTensor) made =
          gtorch_tensor_scatter_reduce (self, 0, index, src, any_all[which][form >> 2],
                                        include_self, &error);
      g_autofree gint64 *found = NULL;
      gsize n = 0;

      g_assert_no_error (error);
      g_assert_cmpint (gtorch_tensor_get_dtype (made), ==, GTORCH_DTYPE_BOOL);
      found = gtorch_tensor_to_ints (made, &n, &error);
      g_assert_no_error (error);
      for (i = 0; i < 3; i++)
        g_assert_cmpint (found[i], ==, include_self ? with_self[which][i] : alone[which][i]);
    }
}

static void
refuse (GTorchTensor *result, GError **error, GTorchError code, const gchar *message)
{
  g_assert_null (result);
  g_assert_error (*error, GTORCH_ERROR, code);
  g_assert_cmpstr ((*error)->message, ==, message);
  g_clear_error (error);
}

static void
errors_leave_the_tensor_alone (void)
{
  const gdouble x[] = { 1, 2, 3 };
  const gint64 good[] = { 0, 2 }, far[] = { 0, 3 };
  g_autoptr (GTorchTensor) self = doubles (x, 3);
  g_autoptr (GTorchTensor) src = doubles (x, 2);
  g_autoptr (GTorchTensor) index = ints (good, 2);
  g_autoptr (GTorchTensor) outside = ints (far, 2);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) whole =
      gtorch_zeros (GTORCH_SHAPE (3), GTORCH_DTYPE_INT32, NULL, &error);
  g_autoptr (GTorchTensor) truth = gtorch_zeros (GTORCH_SHAPE (3), GTORCH_DTYPE_BOOL, NULL, &error);
  g_autoptr (GTorchTensor) table = gtorch_zeros (GTORCH_SHAPE (2, 2), 0, NULL, &error);
  guint reduce;

  refuse (gtorch_tensor_scatter_reduce_inplace (self, 0, index, src, 5, TRUE, &error), &error,
          GTORCH_ERROR_INVALID, "scatter_reduce: 5 is not a reduction");
  refuse (gtorch_tensor_index_reduce (self, 0, index, src, -1, TRUE, &error), &error,
          GTORCH_ERROR_INVALID, "index_reduce: -1 is not a reduction");
  refuse (gtorch_tensor_index_reduce (self, 0, table, src, 0, TRUE, &error), &error,
          GTORCH_ERROR_SHAPE, "index_reduce: the index of shape [2, 2] must have one dimension");
  refuse (gtorch_tensor_index_reduce (self, 0, index, self, 0, TRUE, &error), &error,
          GTORCH_ERROR_SHAPE,
          "index_reduce: source of shape [3] does not fit: for 2 indices of dimension 0 of shape "
          "[3] it must be of shape [2]");
  for (reduce = 0; reduce < N_REDUCTIONS; reduce++)
    {
      if (reduce == GTORCH_INDEX_REDUCTION_MEAN)
        refuse (gtorch_tensor_scatter_reduce (truth, 0, index, truth, reduce, TRUE, &error), &error,
                GTORCH_ERROR_DTYPE, "scatter_reduce: not defined for dtype bool");
      refuse (gtorch_tensor_scatter_reduce_inplace (whole, 0, index, src, reduce, FALSE, &error),
              &error, GTORCH_ERROR_DTYPE,
              "scatter_reduce: self has dtype int32 and src has float64: they must be the same");
      refuse (gtorch_tensor_scatter_reduce_inplace (self, 1, index, src, reduce, TRUE, &error),
              &error, GTORCH_ERROR_INDEX,
              "scatter_reduce: dim 1 is out of the range [-1, 0] of a tensor with 1 dimensions");
      refuse (gtorch_tensor_scatter_reduce_inplace (self, 0, outside, src, reduce, FALSE, &error),
              &error, GTORCH_ERROR_INDEX,
              "scatter_reduce: index 3 is out of range for dimension 0 of size 3");
      refuse (gtorch_tensor_index_reduce_inplace (self, 0, outside, src, reduce, TRUE, &error),
              &error, GTORCH_ERROR_INDEX,
              "index_reduce: index 3 is out of range for dimension 0 of size 3");
    }
  assert_values (self, x, 3);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
#define TEST(name) g_test_add_func ("/GTorch/scatter-reduce/" #name, name)
  TEST (values_are_those_of_a_plain_loop);
  TEST (parts_are_reduced_as_elements_are);
  TEST (maxima_start_below_all_values);
  TEST (gradients_of_products_with_zeros);
  TEST (equal_extremes_share_the_gradient);
  TEST (bools_are_reduced_to_bools);
  TEST (errors_leave_the_tensor_alone);
  return g_test_run ();
}
