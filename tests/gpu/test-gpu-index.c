/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Elements that are selected by index, drawn, or computed from their position, with sizes and repeated
 * indices that samples do not have. Sums over repeated indices are bitwise reproducible. */

#include "config.h"

#include "gpu-test.h"

typedef GTorchTensor *(*Change) (GTorchTensor *self, gint64 dim, GTorchTensor *index,
                                 GTorchTensor *source);

static GTorchTensor *
index_add (GTorchTensor *self, gint64 dim, GTorchTensor *index, GTorchTensor *source)
{
  return TRY (gtorch_tensor_index_add (self, dim, index, source, 1, &error));
}

static GTorchTensor *
index_copy (GTorchTensor *self, gint64 dim, GTorchTensor *index, GTorchTensor *source)
{
  return TRY (gtorch_tensor_index_copy (self, dim, index, source, &error));
}

static GTorchTensor *
scatter_add (GTorchTensor *self, gint64 dim, GTorchTensor *index, GTorchTensor *source)
{
  return TRY (gtorch_tensor_scatter_add (self, dim, index, source, &error));
}

static GTorchTensor *
scatter (GTorchTensor *self, gint64 dim, GTorchTensor *index, GTorchTensor *source)
{
  return TRY (gtorch_tensor_scatter (self, dim, index, source, &error));
}

#define REDUCTION(name, KIND, include_self)                                                        \
  static GTorchTensor *name (GTorchTensor *self, gint64 dim, GTorchTensor *index,                  \
                             GTorchTensor *source)                                                 \
  {                                                                                                \
    return TRY (gtorch_tensor_scatter_reduce (self, dim, index, source,                            \
                                              GTORCH_INDEX_REDUCTION_##KIND, include_self,         \
                                              &error));                                            \
  }                                                                                                \
  static GTorchTensor *name##_of_parts (GTorchTensor *self, gint64 dim, GTorchTensor *index,       \
                                        GTorchTensor *source)                                      \
  {                                                                                                \
    return TRY (gtorch_tensor_index_reduce (self, dim, index, source,                              \
                                            GTORCH_INDEX_REDUCTION_##KIND, include_self, &error)); \
  }
REDUCTION (prod, PROD, TRUE)
REDUCTION (mean, MEAN, FALSE)
REDUCTION (amax, AMAX, TRUE)
REDUCTION (amin, AMIN, FALSE)

static GTorchTensor *
put (GTorchTensor *self, gint64 dim, GTorchTensor *index, GTorchTensor *source)
{
  return TRY (gtorch_tensor_put (self, index, source, FALSE, &error));
}

static GTorchTensor *
put_add (GTorchTensor *self, gint64 dim, GTorchTensor *index, GTorchTensor *source)
{
  return TRY (gtorch_tensor_put (self, index, source, TRUE, &error));
}

static GTorchTensor *
random_of (const gint64 *shape, gsize n_dims, GTorchDType dtype)
{
  g_autoptr (GTorchTensor) x =
      TRY (gtorch_rand (shape, n_dims, GTORCH_DTYPE_FLOAT32, NULL, NULL, &error));
  g_autoptr (GTorchTensor) scaled = TRY (gtorch_tensor_mul_scalar (x, 100, &error));

  return as (dtype == GTORCH_DTYPE_FLOAT32 || dtype == GTORCH_DTYPE_FLOAT64
                     || dtype == GTORCH_DTYPE_FLOAT16 || dtype == GTORCH_DTYPE_BFLOAT16
                 ? x
                 : scaled,
             dtype);
}

static GTorchTensor *
indices_below (gint64 size, const gint64 *shape, gsize n_dims)
{
  return TRY (gtorch_randint (0, size, shape, n_dims, GTORCH_DTYPE_INT64, NULL, NULL, &error));
}

static void
same (const gchar *what, GTorchTensor *got, GTorchTensor *expected)
{
  g_autoptr (GTorchTensor) host = on (got, gtorch_device_cpu ());
  g_autoptr (GTorchTensor) other = on (expected, gtorch_device_cpu ());
  g_autoptr (GBytes) x = gtorch_tensor_get_bytes (host, NULL);
  g_autoptr (GBytes) y = gtorch_tensor_get_bytes (other, NULL);

  g_assert_cmpint (gtorch_tensor_get_dtype (host), ==, gtorch_tensor_get_dtype (other));
  if (!g_bytes_equal (x, y))
    g_error ("%s: not the same bytes", what);
}

/* Compares with the CPU's float64, and with a second run. */
static void
check_change (const gchar *what, Change change, GTorchTensor *self, gint64 dim, GTorchTensor *index,
              GTorchTensor *source, gdouble tolerance)
{
  g_autoptr (GTorchTensor) wide = as (self, GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchTensor) wide_source = as (source, GTORCH_DTYPE_FLOAT64);
  g_autoptr (GTorchTensor) expected = change (wide, dim, index, wide_source);
  g_autoptr (GTorchTensor) x = on (self, gpu);
  g_autoptr (GTorchTensor) i = on (index, gpu);
  g_autoptr (GTorchTensor) y = on (source, gpu);
  g_autoptr (GTorchTensor) got = change (x, dim, i, y);
  guint k;

  agree (what, got, expected, tolerance);
  for (k = 0; k < test_often (3); k++)
    {
      g_autoptr (GTorchTensor) again = change (x, dim, i, y);

      same (what, again, got);
    }
}

static const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64,
                                      GTORCH_DTYPE_FLOAT16, GTORCH_DTYPE_BFLOAT16 };

/* numbers of indices, blocks, elements of a block */
static const gint64 sizes[][3] = {
  { 1, 5, 3 },       { 7, 1, 1 },        { 9, 2, 1 },       { 1000, 3, 1 },
  { 5000, 40, 64 },  { 20000, 1, 1 },    { 300, 7, 257 },   { 20000, 50000, 2 },
  { 300000, 11, 3 }, { 50, 3000000, 1 }, { 100000, 9, 33 }, { 1000003, 2, 1 },
};

static void
repeated_indices_are_summed (void)
{
  static const Change adds[] = { index_add, put_add }, puts[] = { index_copy, put };
  guint t, k, turned;

  for (t = 0; t < G_N_ELEMENTS (dtypes); t++)
    for (k = 0; k < G_N_ELEMENTS (sizes); k++)
      for (turned = 0; turned < 2; turned++)
        {
          const gint64 *s = sizes[k];
          const gint64 shape[] = { turned ? s[2] : s[1], turned ? s[1] : s[2] };
          const gint64 part[] = { turned ? s[2] : s[0], turned ? s[0] : s[2] };
          g_autoptr (GTorchTensor) x = NULL;
          g_autoptr (GTorchTensor) y = NULL;
          g_autoptr (GTorchTensor) index = NULL;
          g_autoptr (GTorchTensor) places = NULL;
          g_autofree gchar *what =
              g_strdup_printf ("%s, size %u%s", gtorch_dtype_get_name (dtypes[t]), k,
                               turned ? ", turned" : "");

          if ((t >= 2 && s[0] / s[1] > 50000) /* more than 16 bits can hold */
              || is_one_too_many (t, G_N_ELEMENTS (dtypes), k))
            continue;
          x = random_of (shape, 2, dtypes[t]);
          y = random_of (part, 2, dtypes[t]);
          index = indices_below (s[1], s, 1);
          check_change (what, adds[0], x, turned, index, y, tolerance_of (dtypes[t]));
          check_change (what, puts[0], x, turned, index, y, 0);
          places = indices_below (s[1] * s[2], part, 2);
          check_change (what, adds[1], x, 0, places, y, tolerance_of (dtypes[t]));
          check_change (what, puts[1], x, 0, places, y, 0);
        }
}

static void
repeated_indices_of_rows_are_summed (void)
{
  guint t, k, turned, shared;

  for (t = 0; t < G_N_ELEMENTS (dtypes); t++)
    for (k = 0; k < G_N_ELEMENTS (sizes); k++)
      for (turned = 0; turned < 2; turned++)
        for (shared = 0; shared < 2; shared++)
          {
            const gint64 *s = sizes[k];
            const gint64 shape[] = { turned ? s[2] + 1 : s[1], turned ? s[1] : s[2] + 1 };
            const gint64 part[] = { turned ? s[2] : s[0], turned ? s[0] : s[2] };
            const gint64 line[] = { turned ? 1 : s[0], turned ? s[0] : 1 };
            g_autoptr (GTorchTensor) x = NULL;
            g_autoptr (GTorchTensor) y = NULL;
            g_autoptr (GTorchTensor) own = NULL;
            g_autoptr (GTorchTensor) index = NULL;
            g_autofree gchar *what =
                g_strdup_printf ("%s, size %u%s%s", gtorch_dtype_get_name (dtypes[t]), k,
                                 turned ? ", turned" : "", shared ? ", shared" : "");

            if ((t >= 2 && s[0] / s[1] > 50000) || is_one_too_many (t, G_N_ELEMENTS (dtypes), k))
              continue;
            x = random_of (shape, 2, dtypes[t]);
            y = random_of (part, 2, dtypes[t]);
            own = indices_below (s[1], shared ? line : part, 2);
            index = shared ? TRY (gtorch_tensor_expand (own, part, 2, &error)) : g_object_ref (own);
            check_change (what, scatter_add, x, turned, index, y, tolerance_of (dtypes[t]));
            check_change (what, scatter, x, turned, index, y, 0);
          }
}

/* Products of factors near 1: they neither overflow nor underflow. */
static void
repeated_indices_are_reduced (void)
{
  static const struct
  {
    const gchar *name;
    Change elements, parts;
    gboolean exact;
  } changes[] = {
    { "prod", prod, prod_of_parts, FALSE },
    { "mean", mean, mean_of_parts, FALSE },
    { "amax", amax, amax_of_parts, TRUE },
    { "amin", amin, amin_of_parts, TRUE },
  };
  guint t, k, turned, c;

  for (t = 0; t < G_N_ELEMENTS (dtypes); t++)
    for (k = 0; k < G_N_ELEMENTS (sizes); k++)
      for (turned = 0; turned < 2; turned++)
        for (c = 0; c < G_N_ELEMENTS (changes); c++)
          {
            const gint64 *s = sizes[k];
            const gint64 shape[] = { turned ? s[2] : s[1], turned ? s[1] : s[2] };
            const gint64 part[] = { turned ? s[2] : s[0], turned ? s[0] : s[2] };
            const gdouble width = 1 / sqrt (s[0]);
            gdouble tolerance = changes[c].exact ? 0 : 16 * tolerance_of (dtypes[t]);
            g_autofree gchar *what =
                g_strdup_printf ("%s, %s, size %u%s", changes[c].name,
                                 gtorch_dtype_get_name (dtypes[t]), k, turned ? ", turned" : "");
            g_autoptr (GTorchTensor) x = NULL;
            g_autoptr (GTorchTensor) y = NULL;
            g_autoptr (GTorchTensor) index = NULL;
            g_autoptr (GTorchTensor) lines = NULL;

            if ((s[0] > 20000 && (t >= 2 || c > 1))
                || is_one_too_many (t, G_N_ELEMENTS (dtypes), k))
              continue;
            if (t >= 2 && c == 1 && s[0] / s[1] > 100)
              continue; /* sums that 16 bits cannot represent */
            x = random_of (shape, 2, dtypes[t]);
            y = random_of (part, 2, dtypes[t]);
            TRY (gtorch_tensor_uniform_inplace (x, 1 - width, 1 + width, NULL, &error));
            TRY (gtorch_tensor_uniform_inplace (y, 1 - width, 1 + width, NULL, &error));
            index = indices_below (s[1], GTORCH_SHAPE (s[0]));
            lines = indices_below (s[1], part, 2);
            check_change (what, changes[c].parts, x, turned, index, y, tolerance);
            check_change (what, changes[c].elements, x, turned, lines, y, tolerance);
          }
}

static void
extremes_know_nan_and_the_ends (void)
{
  const gdouble values[] = { 1, NAN, -INFINITY, INFINITY, 2, -0.5 };
  const gint64 places[] = { 0, 1, 2, 3, 0, 4 };
  static const Change extremes[] = { amax, amin };
  g_autoptr (GTorchTensor) source =
      TRY (gtorch_tensor_new_from_doubles (values, 6, GTORCH_SHAPE (6), GTORCH_DTYPE_FLOAT32, NULL,
                                           &error));
  g_autoptr (GTorchTensor) index = TRY (
      gtorch_tensor_new_from_ints (places, 6, GTORCH_SHAPE (6), GTORCH_DTYPE_INT64, NULL, &error));
  g_autoptr (GTorchTensor) self =
      TRY (gtorch_full (GTORCH_SHAPE (6), NAN, GTORCH_DTYPE_FLOAT32, NULL, &error));
  guint c;

  for (c = 0; c < 2; c++)
    check_change ("extremes", extremes[c], self, 0, index, source, 0);
}

/* Integers may be added in any order. */
static void
repeated_integers_are_summed (void)
{
  static const GTorchDType whole[] = { GTORCH_DTYPE_INT8,  GTORCH_DTYPE_UINT8, GTORCH_DTYPE_INT16,
                                       GTORCH_DTYPE_INT32, GTORCH_DTYPE_INT64, GTORCH_DTYPE_BOOL };
  guint t;

  for (t = 0; t < G_N_ELEMENTS (whole); t++)
    {
      g_autoptr (GTorchTensor) x = random_of (GTORCH_SHAPE (13, 5), whole[t]);
      g_autoptr (GTorchTensor) y = random_of (GTORCH_SHAPE (4099, 5), whole[t]);
      g_autoptr (GTorchTensor) index = indices_below (13, GTORCH_SHAPE (4099));
      g_autoptr (GTorchTensor) lines = indices_below (13, GTORCH_SHAPE (4099, 5));
      g_autoptr (GTorchTensor) gx = on (x, gpu);
      g_autoptr (GTorchTensor) gy = on (y, gpu);
      g_autoptr (GTorchTensor) gindex = on (index, gpu);
      g_autoptr (GTorchTensor) glines = on (lines, gpu);
      g_autoptr (GTorchTensor) a = index_add (x, 0, index, y);
      g_autoptr (GTorchTensor) b = index_add (gx, 0, gindex, gy);
      g_autoptr (GTorchTensor) c = scatter_add (x, 0, lines, y);
      g_autoptr (GTorchTensor) d = scatter_add (gx, 0, glines, gy);
      static const Change reductions[] = { prod, mean, amax, amin };
      guint k;

      same (gtorch_dtype_get_name (whole[t]), b, a);
      same (gtorch_dtype_get_name (whole[t]), d, c);
      for (k = 0; k < G_N_ELEMENTS (reductions) && whole[t] != GTORCH_DTYPE_BOOL; k++)
        {
          g_autoptr (GTorchTensor) e = reductions[k](x, 0, lines, y);
          g_autoptr (GTorchTensor) f = reductions[k](gx, 0, glines, gy);

          same (gtorch_dtype_get_name (whole[t]), f, e);
        }
    }
}

static void
views_are_changed_in_place (void)
{
  g_autoptr (GTorchTensor) x = random_of (GTORCH_SHAPE (70, 50, 3), GTORCH_DTYPE_FLOAT32);
  g_autoptr (GTorchTensor) y = random_of (GTORCH_SHAPE (50, 2000), GTORCH_DTYPE_FLOAT32);
  g_autoptr (GTorchTensor) index = indices_below (70, GTORCH_SHAPE (2000));
  g_autoptr (GTorchTensor) lines = indices_below (70, GTORCH_SHAPE (50, 2000));
  GTorchTensor *wholes[2], *device_index, *device_lines, *device_y;
  GTorchDevice *devices[] = { gtorch_device_cpu (), gpu };
  guint d;

  for (d = 0; d < 2; d++)
    {
      g_autoptr (GTorchTensor) here = on (x, devices[d]);
      g_autoptr (GTorchTensor) part = NULL;
      g_autoptr (GTorchTensor) view = NULL;

      wholes[d] = TRY (gtorch_tensor_clone (here, &error));
      part = TRY (gtorch_tensor_select (wholes[d], 2, 1, &error));
      view = TRY (gtorch_tensor_t (part, &error));
      device_index = on (index, devices[d]);
      device_lines = on (lines, devices[d]);
      device_y = on (y, devices[d]);
      TRY (gtorch_tensor_index_add_inplace (view, 1, device_index, device_y, 0.5, &error));
      TRY (gtorch_tensor_scatter_add_inplace (view, 1, device_lines, device_y, &error));
      g_object_unref (device_index);
      g_object_unref (device_lines);
      g_object_unref (device_y);
    }
  {
    g_autoptr (GTorchTensor) wide = as (wholes[0], GTORCH_DTYPE_FLOAT64);

    agree ("views", wholes[1], wide, 1e-5);
  }
  for (d = 0; d < 2; d++)
    g_object_unref (wholes[d]);
}

static void
elements_are_taken (void)
{
  static const GTorchDType all[] = { GTORCH_DTYPE_BOOL, GTORCH_DTYPE_FLOAT16, GTORCH_DTYPE_FLOAT32,
                                     GTORCH_DTYPE_INT64, GTORCH_DTYPE_COMPLEX128 };
  static const gint64 shapes[][3] = { { 3, 5, 1 },   { 1, 1000, 16 }, { 7, 31, 33 },
                                      { 2, 9, 512 }, { 100, 7, 12 },  { 1, 70001, 3 } };
  guint t, k, layout;

  for (t = 0; t < G_N_ELEMENTS (all); t++)
    for (k = 0; k < G_N_ELEMENTS (shapes); k++)
      for (layout = 0; layout < 2; layout++)
        {
          const gint64 *s = shapes[k];
          const gint64 lines[] = { s[0], 300, s[2] };
          g_autofree gchar *what = g_strdup_printf ("%s, shape %u, layout %u",
                                                    gtorch_dtype_get_name (all[t]), k, layout);
          g_autoptr (GTorchTensor) base = random_of (s, 3, all[t]);
          g_autoptr (GTorchTensor) index = indices_below (s[1], GTORCH_SHAPE (300));
          g_autoptr (GTorchTensor) each = indices_below (s[1], lines, 3);
          g_autoptr (GTorchTensor) gbase = on (base, gpu);
          g_autoptr (GTorchTensor) gindex = on (index, gpu);
          g_autoptr (GTorchTensor) geach = on (each, gpu);
          g_autoptr (GTorchTensor) x =
              layout ? TRY (gtorch_tensor_flip (base, GTORCH_SHAPE (0), &error))
                     : g_object_ref (base);
          g_autoptr (GTorchTensor) y =
              layout ? TRY (gtorch_tensor_flip (gbase, GTORCH_SHAPE (0), &error))
                     : g_object_ref (gbase);
          g_autoptr (GTorchTensor) a = TRY (gtorch_tensor_index_select (x, 1, index, &error));
          g_autoptr (GTorchTensor) b = TRY (gtorch_tensor_index_select (y, 1, gindex, &error));
          g_autoptr (GTorchTensor) c = TRY (gtorch_tensor_gather (x, 1, each, &error));
          g_autoptr (GTorchTensor) d = TRY (gtorch_tensor_gather (y, 1, geach, &error));
          g_autoptr (GTorchTensor) from_end = TRY (gtorch_tensor_neg (index, &error));
          g_autoptr (GTorchTensor) back = on (from_end, gpu);
          g_autoptr (GTorchTensor) e = TRY (gtorch_tensor_take (x, from_end, &error));
          g_autoptr (GTorchTensor) f = TRY (gtorch_tensor_take (y, back, &error));

          same (what, b, a);
          same (what, d, c);
          same (what, f, e);
        }
}

static void
expect_report (const gchar *start)
{
  g_autoptr (GError) problem = NULL;

  g_assert_false (gtorch_device_synchronize (gpu, NULL, &problem));
  g_assert_error (problem, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  if (!g_str_has_prefix (problem->message, start))
    g_error ("“%s” does not begin with “%s”", problem->message, start);
  g_clear_error (&problem);
  g_assert_true (gtorch_device_synchronize (gpu, NULL, &problem));
}

/* The other elements are written as if the invalid index did not exist. */
static void
indices_out_of_range_are_skipped (void)
{
  static const struct
  {
    const gchar *name;
    Change change;
    gdouble expected[5];
  } changes[] = {
    { "index_add", index_add, { 15, 1, 42, 3, 4 } },
    { "index_copy", index_copy, { 5, 1, 30, 3, 4 } },
    { "scatter_add", scatter_add, { 15, 1, 42, 3, 4 } },
    { "scatter", scatter, { 5, 1, 30, 3, 4 } },
    { "put", put_add, { 15, 1, 42, 3, 4 } },
    { "put", put, { 5, 1, 30, 3, 4 } },
  };
  const gint64 far[] = { 0, 2, 9, 0, 2 };
  const gdouble values[] = { 10, 10, 1000, 5, 30 };
  g_autoptr (GTorchTensor) host_index = TRY (
      gtorch_tensor_new_from_ints (far, 5, GTORCH_SHAPE (5), GTORCH_DTYPE_INT64, NULL, &error));
  g_autoptr (GTorchTensor) host_source =
      TRY (gtorch_tensor_new_from_doubles (values, 5, GTORCH_SHAPE (5), GTORCH_DTYPE_FLOAT32, NULL,
                                           &error));
  g_autoptr (GTorchTensor) index = on (host_index, gpu);
  g_autoptr (GTorchTensor) source = on (host_source, gpu);
  g_autoptr (GTorchTensor) x = TRY (gtorch_arange (0, 5, 1, GTORCH_DTYPE_FLOAT32, gpu, &error));
  guint k;

  for (k = 0; k < G_N_ELEMENTS (changes); k++)
    {
      g_autoptr (GTorchTensor) got = changes[k].change (x, 0, index, source);
      g_autoptr (GTorchTensor) expected =
          TRY (gtorch_tensor_new_from_doubles (changes[k].expected, 5, GTORCH_SHAPE (5),
                                               GTORCH_DTYPE_FLOAT64, NULL, &error));
      g_autofree gchar *start =
          g_strdup_printf ("%s: index 9 is out of range for dimension 0 of size 5",
                           changes[k].name);

      expect_report (start);
      agree (changes[k].name, got, expected, 0);
    }
  {
    g_autoptr (GTorchTensor) taken = TRY (gtorch_tensor_index_select (x, 0, index, &error));
    g_autoptr (GTorchTensor) hot = NULL;

    expect_report ("index_select: index 9 is out of range for dimension 0 of size 5");
    hot = TRY (gtorch_tensor_one_hot (index, 4, &error));
    expect_report ("one_hot: index 9 is out of range for dimension 1 of size 4");
  }
}

static void
empty_tensors_need_no_work (void)
{
  static const Change changes[] = { index_add, index_copy };
  g_autoptr (GTorchTensor) x =
      TRY (gtorch_ones (GTORCH_SHAPE (3, 2), GTORCH_DTYPE_FLOAT32, gpu, &error));
  g_autoptr (GTorchTensor) index =
      TRY (gtorch_zeros (GTORCH_SHAPE (0), GTORCH_DTYPE_INT64, gpu, &error));
  g_autoptr (GTorchTensor) lines =
      TRY (gtorch_zeros (GTORCH_SHAPE (0, 2), GTORCH_DTYPE_INT64, gpu, &error));
  g_autoptr (GTorchTensor) y =
      TRY (gtorch_zeros (GTORCH_SHAPE (0, 2), GTORCH_DTYPE_FLOAT32, gpu, &error));
  g_autoptr (GTorchTensor) a = NULL;
  g_autoptr (GTorchTensor) b = NULL;
  g_autoptr (GTorchTensor) c = NULL;
  g_autoptr (GTorchTensor) d = NULL;
  guint k;

  for (k = 0; k < G_N_ELEMENTS (changes); k++)
    {
      g_autoptr (GTorchTensor) got = changes[k](x, 0, index, y);

      same ("empty", got, x);
    }
  a = scatter_add (x, 0, lines, y);
  same ("empty", a, x);
  b = put_add (x, 0, lines, y);
  same ("empty", b, x);
  c = TRY (gtorch_tensor_index_select (x, 0, index, &error));
  g_assert_cmpint (gtorch_tensor_get_numel (c), ==, 0);
  d = TRY (gtorch_tensor_bincount (index, NULL, 0, &error));
  g_assert_cmpint (gtorch_tensor_get_numel (d), ==, 0);
  g_clear_object (&d);
  d = TRY (gtorch_randperm (0, GTORCH_DTYPE_NONE, gpu, NULL, &error));
  g_assert_cmpint (gtorch_tensor_get_numel (d), ==, 0);
  g_clear_object (&d);
  d = TRY (gtorch_tril_indices (4, 0, 0, gpu, &error));
  g_assert_cmpint (gtorch_tensor_get_numel (d), ==, 0);
}

/* --- counts --- */

static void
values_are_counted (void)
{
  static const gint64 bins[] = { 1, 100, 8192, 8193, 1000000 };
  guint k;

  for (k = 0; k < G_N_ELEMENTS (bins); k++)
    {
      g_autoptr (GTorchTensor) x = indices_below (bins[k], GTORCH_SHAPE (200001));
      g_autoptr (GTorchTensor) w = random_of (GTORCH_SHAPE (200001), GTORCH_DTYPE_FLOAT32);
      g_autoptr (GTorchTensor) wide = as (w, GTORCH_DTYPE_FLOAT64);
      g_autoptr (GTorchTensor) gx = on (x, gpu);
      g_autoptr (GTorchTensor) gw = on (w, gpu);
      g_autoptr (GTorchTensor) a = TRY (gtorch_tensor_bincount (x, NULL, 200, &error));
      g_autoptr (GTorchTensor) b = TRY (gtorch_tensor_bincount (gx, NULL, 200, &error));
      g_autoptr (GTorchTensor) c = TRY (gtorch_tensor_bincount (x, wide, 0, &error));
      g_autoptr (GTorchTensor) d = TRY (gtorch_tensor_bincount (gx, gw, 0, &error));
      g_autoptr (GTorchTensor) e = TRY (gtorch_tensor_bincount (gx, gw, 0, &error));

      same ("bincount", b, a);
      agree ("bincount with weights", d, c, 1e-5);
      same ("bincount with weights, again", e, d);
    }
}

static void
negative_values_are_not_counted (void)
{
  const gint64 values[] = { 3, -7, 2 };
  g_autoptr (GTorchTensor) x = TRY (
      gtorch_tensor_new_from_ints (values, 3, GTORCH_SHAPE (3), GTORCH_DTYPE_INT32, NULL, &error));
  g_autoptr (GTorchTensor) gx = on (x, gpu);
  g_autoptr (GError) problem = NULL;

  g_assert_null (gtorch_tensor_bincount (gx, NULL, 0, &problem));
  g_assert_error (problem, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  g_assert_cmpstr (problem->message, ==, "bincount: the value -7 is negative");
}

static void
classes_are_counted (void)
{
  g_autoptr (GTorchTensor) x = indices_below (77, GTORCH_SHAPE (500));
  g_autoptr (GTorchTensor) gx = on (x, gpu);
  g_autoptr (GTorchTensor) a = TRY (gtorch_tensor_one_hot (x, -1, &error));
  g_autoptr (GTorchTensor) b = TRY (gtorch_tensor_one_hot (gx, -1, &error));

  same ("one_hot", b, a);
}

/* --- random selections --- */

static void
permutations_are_the_cpus (void)
{
  static const gint64 lengths[] = { 1, 2, 31, 1000, 1025, 5000, 9001, 300007 };
  static const GTorchDType kinds[] = { GTORCH_DTYPE_INT64, GTORCH_DTYPE_INT32,
                                       GTORCH_DTYPE_FLOAT32 };
  guint k;

  for (k = 0; k < G_N_ELEMENTS (lengths); k++)
    {
      g_autoptr (GTorchGenerator) first = gtorch_generator_new_with_seed (5);
      g_autoptr (GTorchGenerator) second = gtorch_generator_new_with_seed (5);
      GTorchDType dtype = kinds[k % G_N_ELEMENTS (kinds)];
      g_autoptr (GTorchTensor) a = TRY (gtorch_randperm (lengths[k], dtype, NULL, first, &error));
      g_autoptr (GTorchTensor) b = TRY (gtorch_randperm (lengths[k], dtype, gpu, second, &error));

      same ("randperm", b, a);
    }
}

static void
draws_are_the_cpus (void)
{
  static const gint64 shapes[][3] = { /* rows, weights, samples */
                                      { 1, 1, 1 },
                                      { 3, 10, 10 },
                                      { 5, 1000, 100 },
                                      { 2, 20000, 50 }
  };
  guint k, again;

  for (k = 0; k < G_N_ELEMENTS (shapes); k++)
    for (again = 0; again < 2; again++)
      {
        g_autoptr (GTorchGenerator) first = gtorch_generator_new_with_seed (6);
        g_autoptr (GTorchGenerator) second = gtorch_generator_new_with_seed (6);
        g_autoptr (GTorchTensor) weights = random_of (shapes[k], 2, GTORCH_DTYPE_FLOAT32);
        g_autoptr (GTorchTensor) gweights = on (weights, gpu);
        g_autoptr (GTorchTensor) a =
            TRY (gtorch_tensor_multinomial (weights, shapes[k][2], again, first, &error));
        g_autoptr (GTorchTensor) b =
            TRY (gtorch_tensor_multinomial (gweights, shapes[k][2], again, second, &error));

        same ("multinomial", b, a);
      }
}

static void
elements_of_zero_weight_are_not_drawn (void)
{
  g_autoptr (GTorchTensor) x =
      TRY (gtorch_rand (GTORCH_SHAPE (50000), GTORCH_DTYPE_FLOAT32, gpu, NULL, &error));
  g_autoptr (GTorchTensor) none = TRY (gtorch_tensor_lt_scalar (x, 0.9, &error));
  g_autoptr (GTorchTensor) weights = TRY (gtorch_tensor_masked_fill_scalar (x, none, 0, &error));
  guint again;

  for (again = 0; again < 2; again++)
    {
      g_autoptr (GTorchTensor) drawn =
          TRY (gtorch_tensor_multinomial (weights, 4000, again, NULL, &error));
      g_autoptr (GTorchTensor) found = TRY (gtorch_tensor_index_select (weights, 0, drawn, &error));
      g_autoptr (GTorchTensor) least = TRY (gtorch_tensor_amin (found, NULL, 0, FALSE, &error));

      g_assert_cmpfloat (gtorch_tensor_item_double (least, NULL), >, 0.8);
    }
}

static void
weights_are_checked (void)
{
  static const gdouble rows[][4] = { { 1, -1, 1, 1 }, { 0, 0, 0, 0 }, { 1, 0, 0, 0 } };
  guint k;

  for (k = 0; k < G_N_ELEMENTS (rows); k++)
    {
      g_autoptr (GTorchTensor) host =
          TRY (gtorch_tensor_new_from_doubles (rows[k], 4, GTORCH_SHAPE (4), GTORCH_DTYPE_FLOAT32,
                                               NULL, &error));
      g_autoptr (GTorchTensor) weights = on (host, gpu);
      g_autoptr (GTorchTensor) drawn =
          TRY (gtorch_tensor_multinomial (weights, 2, FALSE, NULL, &error));
      g_autoptr (GError) problem = NULL;

      g_assert_false (gtorch_device_synchronize (gpu, NULL, &problem));
      g_assert_error (problem, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      g_assert_true (g_str_has_prefix (problem->message, "multinomial: row 0 has an element"));
    }
}

/* --- triangles and joins --- */

static void
triangles_are_the_cpus (void)
{
  static const gint64 shapes[][2] = { { 1, 1 },  { 4, 3 },  { 3, 7 },
                                      { 1, 50 }, { 50, 1 }, { 129, 300 } };
  static const gint64 offsets[] = { -1000, -4, -1, 0, 1, 2, 60, 1000, G_MAXINT64, G_MININT64 };
  guint k, i;

  for (k = 0; k < G_N_ELEMENTS (shapes); k++)
    for (i = 0; i < G_N_ELEMENTS (offsets); i++)
      {
        const gint64 rows = shapes[k][0], columns = shapes[k][1], offset = offsets[i];
        g_autofree gchar *what = g_strdup_printf ("%d by %d, offset %" G_GINT64_FORMAT, (int) rows,
                                                  (int) columns, offset);
        g_autoptr (GTorchTensor) a =
            TRY (gtorch_tril_indices (rows, columns, offset, NULL, &error));
        g_autoptr (GTorchTensor) b = TRY (gtorch_tril_indices (rows, columns, offset, gpu, &error));
        g_autoptr (GTorchTensor) c =
            TRY (gtorch_triu_indices (rows, columns, offset, NULL, &error));
        g_autoptr (GTorchTensor) d = TRY (gtorch_triu_indices (rows, columns, offset, gpu, &error));

        same (what, b, a);
        same (what, d, c);
      }
}

static void
many_tensors_are_joined (void)
{
  static const GTorchDType all[] = { GTORCH_DTYPE_UINT8, GTORCH_DTYPE_FLOAT16, GTORCH_DTYPE_FLOAT32,
                                     GTORCH_DTYPE_FLOAT64 };
  GTorchTensor *parts[150], *device_parts[150];
  guint t, k;
  gint dim;

  for (t = 0; t < G_N_ELEMENTS (all); t++)
    for (dim = 0; dim < 3; dim++)
      {
        g_autoptr (GTorchTensor) a = NULL;
        g_autoptr (GTorchTensor) b = NULL;

        for (k = 0; k < G_N_ELEMENTS (parts); k++)
          {
            gint64 shape[] = { 6, 8, 4 };

            shape[dim] = k == 7 ? 300000 / 48 : k % 5 * (t == 1 ? 3 : 4);
            parts[k] = random_of (shape, 3, k % 50 == 3 ? GTORCH_DTYPE_UINT8 : all[t]);
            device_parts[k] = on (parts[k], gpu);
          }
        a = TRY (gtorch_cat (parts, G_N_ELEMENTS (parts), dim, &error));
        b = TRY (gtorch_cat (device_parts, G_N_ELEMENTS (parts), dim, &error));
        same ("cat", b, a);
        for (k = 0; k < G_N_ELEMENTS (parts); k++)
          {
            g_object_unref (parts[k]);
            g_object_unref (device_parts[k]);
          }
      }
}

static void
long_tensors_are_joined (void)
{
  g_autoptr (GTorchTensor) x = random_of (GTORCH_SHAPE (700001), GTORCH_DTYPE_FLOAT32);
  g_autoptr (GTorchTensor) y = random_of (GTORCH_SHAPE (11), GTORCH_DTYPE_FLOAT32);
  g_autoptr (GTorchTensor) gx = on (x, gpu);
  g_autoptr (GTorchTensor) gy = on (y, gpu);
  GTorchTensor *host[] = { y, x, y, x }, *device[] = { gy, gx, gy, gx };
  g_autoptr (GTorchTensor) a = TRY (gtorch_cat (host, 4, 0, &error));
  g_autoptr (GTorchTensor) b = TRY (gtorch_cat (device, 4, 0, &error));

  same ("cat", b, a);
}

/* --- gradients --- */

static GTorchTensor *
windows (GTorchTensor *x, GTorchTensor *index)
{
  return TRY (gtorch_tensor_as_strided (x, GTORCH_SHAPE (900, 50), GTORCH_SHAPE (3, 2), 7, &error));
}

static GTorchTensor *
selected (GTorchTensor *x, GTorchTensor *index)
{
  return TRY (gtorch_tensor_index_select (x, 0, index, &error));
}

static GTorchTensor *
gathered (GTorchTensor *x, GTorchTensor *index)
{
  return TRY (gtorch_tensor_gather (x, 0, index, &error));
}

static GTorchTensor *
taken (GTorchTensor *x, GTorchTensor *index)
{
  return TRY (gtorch_tensor_take (x, index, &error));
}

static GTorchTensor *
gradient (GTorchTensor *(*func) (GTorchTensor *x, GTorchTensor *index), GTorchTensor *x,
          GTorchTensor *index, GTorchTensor *seed)
{
  g_autoptr (GTorchTensor) leaf = TRY (gtorch_tensor_detach (x, &error));
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) upper = NULL;
  GError *problem = NULL;

  gtorch_tensor_set_requires_grad (leaf, TRUE, NULL);
  y = func (leaf, index);
  upper = TRY (gtorch_tensor_view_as (seed, y, &error));
  gtorch_tensor_backward (y, upper, FALSE, FALSE, &problem);
  g_assert_no_error (problem);
  return gtorch_tensor_get_grad (leaf);
}

static void
gradients_of_selections_are_reproducible (void)
{
  static GTorchTensor *(*const funcs[]) (GTorchTensor *, GTorchTensor *) = { windows, selected,
                                                                             gathered, taken };
  guint k, i;

  for (k = 0; k < G_N_ELEMENTS (funcs); k++)
    {
      g_autoptr (GTorchTensor) x = random_of (GTORCH_SHAPE (4000), GTORCH_DTYPE_FLOAT32);
      g_autoptr (GTorchTensor) index = indices_below (40, GTORCH_SHAPE (45000));
      g_autoptr (GTorchTensor) seed = random_of (GTORCH_SHAPE (45000), GTORCH_DTYPE_FLOAT32);
      g_autoptr (GTorchTensor) wide = as (x, GTORCH_DTYPE_FLOAT64);
      g_autoptr (GTorchTensor) wide_seed = as (seed, GTORCH_DTYPE_FLOAT64);
      g_autoptr (GTorchTensor) gx = on (x, gpu);
      g_autoptr (GTorchTensor) gindex = on (index, gpu);
      g_autoptr (GTorchTensor) gseed = on (seed, gpu);
      g_autoptr (GTorchTensor) expected = gradient (funcs[k], wide, index, wide_seed);
      g_autoptr (GTorchTensor) got = gradient (funcs[k], gx, gindex, gseed);

      agree ("gradient", got, expected, 1e-5);
      for (i = 0; i < 3; i++)
        {
          g_autoptr (GTorchTensor) again = gradient (funcs[k], gx, gindex, gseed);

          same ("gradient, again", again, got);
        }
    }
}

int
main (int argc, char *argv[])
{
  if (!find_gpu ())
    return 0;
  g_test_init (&argc, &argv, NULL);
  gtorch_manual_seed (2);
#define ADD(name) g_test_add_func ("/GTorch/gpu/" #name, name)
  ADD (repeated_indices_are_summed);
  ADD (repeated_indices_are_reduced);
  ADD (extremes_know_nan_and_the_ends);
  ADD (repeated_indices_of_rows_are_summed);
  ADD (repeated_integers_are_summed);
  ADD (views_are_changed_in_place);
  ADD (elements_are_taken);
  ADD (indices_out_of_range_are_skipped);
  ADD (empty_tensors_need_no_work);
  ADD (values_are_counted);
  ADD (negative_values_are_not_counted);
  ADD (classes_are_counted);
  ADD (permutations_are_the_cpus);
  ADD (draws_are_the_cpus);
  ADD (elements_of_zero_weight_are_not_drawn);
  ADD (weights_are_checked);
  ADD (triangles_are_the_cpus);
  ADD (many_tensors_are_joined);
  ADD (long_tensors_are_joined);
  ADD (gradients_of_selections_are_reproducible);
  return g_test_run ();
}
