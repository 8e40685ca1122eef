/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Numbers as operands: integers are exact, values that a dtype cannot represent are refused, and so is
 * integer division by zero. */

#include "config.h"

#include <math.h>

#include "gtorch-ops-private.h"
#include "tensor/gtorch-tensor-private.h"
#include "op-values.h"
#include "op-calls.h"

#define WIDE (G_GINT64_CONSTANT (9007199254740993)) /* 2^53 + 1, not a double */

static const gint64 wide[] = {
  WIDE,       -WIDE,      WIDE + 2, G_MAXINT64 - 1, G_MININT64 + 1, 4611686018427387905, 12345,
  G_MAXINT64, G_MININT64, 0
};

static const GTorchDType narrow[] = { GTORCH_DTYPE_INT8, GTORCH_DTYPE_UINT8, GTORCH_DTYPE_INT16,
                                      GTORCH_DTYPE_INT32 };

static GTorchTensor *
whole (gint64 value, GTorchDType dtype)
{
  g_autoptr (GError) error = NULL;
  GTorchTensor *made =
      gtorch_full_int ((const gint64[]){ 3 }, 1, value, dtype, test_device (), &error);

  g_assert_no_error (error);
  return made;
}

static gint64
element (GTorchTensor *tensor, gint64 i)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) one = gtorch_tensor_get_impl (tensor)->n_dims > 0
                                     ? gtorch_tensor_select (tensor, 0, i, &error)
                                     : g_object_ref (tensor);
  gint64 value;

  g_assert_no_error (error);
  value = gtorch_tensor_item_int (one, &error);
  g_assert_no_error (error);
  return value;
}

static gint n_exact;

/* Consumes the result. */
static void
is (const gchar *what, GTorchTensor *made, GError *error, gint64 expected)
{
  gint64 value;

  if (error != NULL && is_lacking (error))
    return;
  g_assert_no_error (error);
  g_assert_cmpint (gtorch_tensor_get_dtype (made), ==, GTORCH_DTYPE_INT64);
  value = element (made, 0);
  n_exact++;
  if (value != expected)
    {
      g_test_message ("%s: %" G_GINT64_FORMAT ", expected %" G_GINT64_FORMAT, what, value,
                      expected);
      g_test_fail ();
    }
  g_object_unref (made);
}

#define IS(what, call, expected)       \
  G_STMT_START                         \
  {                                    \
    GError *error = NULL;              \
    GTorchTensor *made_ = call;        \
    is (what, made_, error, expected); \
  }                                    \
  G_STMT_END

static void
integers_are_exact (void)
{
  const gint64 one = 1;
  guint i;

  for (i = 0; i < G_N_ELEMENTS (wide); i++)
    {
      const gint64 v = wide[i];
      g_autoptr (GTorchTensor) zero = whole (0, GTORCH_DTYPE_INT64);
      g_autoptr (GTorchTensor) least = whole (G_MININT64, GTORCH_DTYPE_INT64);
      g_autoptr (GTorchTensor) most = whole (G_MAXINT64, GTORCH_DTYPE_INT64);
      g_autoptr (GTorchTensor) same = whole (v, GTORCH_DTYPE_INT64);
      g_autoptr (GTorchTensor) ones = whole (1, GTORCH_DTYPE_INT64);
      g_autoptr (GTorchTensor) mask =
          gtorch_ones ((const gint64[]){ 3 }, 1, GTORCH_DTYPE_BOOL, test_device (), NULL);

      IS ("full", gtorch_full_int (&one, 1, v, GTORCH_DTYPE_NONE, test_device (), &error), v);
      IS ("full_like", gtorch_tensor_full_like_int (zero, v, GTORCH_DTYPE_NONE, &error), v);
      IS ("new_full", gtorch_tensor_new_full_int (zero, &one, 1, v, GTORCH_DTYPE_NONE, &error), v);
      IS ("scalar_tensor", gtorch_scalar_tensor_int (v, GTORCH_DTYPE_INT64, test_device (), &error),
          v);
      IS ("fill", gtorch_tensor_fill_int (zero, v, &error), v);
      IS ("fill in place", g_object_ref (gtorch_tensor_fill_int_inplace (same, v, &error)), v);
      IS ("clamp from below", gtorch_tensor_clamp_int (least, v, G_MAXINT64, &error), v);
      IS ("clamp from above", gtorch_tensor_clamp_int (most, G_MININT64, v, &error), v);
      IS ("add", gtorch_tensor_add_int (zero, v, 1, &error), v);
      IS ("sub", gtorch_tensor_sub_int (zero, v, 1, &error), (gint64) - (guint64) v);
      IS ("mul", gtorch_tensor_mul_int (ones, v, &error), v);
      IS ("pow", gtorch_tensor_pow_int (same, 1, &error), v);
      IS ("masked_fill", gtorch_tensor_masked_fill_int (zero, mask, v, &error), v);
      IS ("remainder", gtorch_tensor_remainder_int (same, v != 0 ? v : 1, &error), 0);
      IS ("floor_divide", gtorch_tensor_floor_divide_int (same, v != 0 ? v : 1, &error), v != 0);
      {
        g_autoptr (GTorchTensor) equal = gtorch_tensor_eq_int (same, v, NULL);

        g_assert_nonnull (equal);
        g_assert_cmpint (element (equal, 0), ==, 1);
      }
      if (v > G_MININT64 + 100 && v < G_MAXINT64 - 100)
        {
          g_autoptr (GError) failed = NULL;
          g_autoptr (GTorchTensor) up =
              gtorch_arange_int (v, v + 7, 3, GTORCH_DTYPE_NONE, test_device (), &failed);
          g_autoptr (GTorchTensor) down =
              gtorch_arange_int (v, v - 2, -1, GTORCH_DTYPE_NONE, test_device (), &failed);

          g_assert_no_error (failed);
          g_assert_cmpint (gtorch_tensor_get_impl (up)->numel, ==, 3);
          g_assert_cmpint (element (up, 2), ==, v + 6);
          g_assert_cmpint (gtorch_tensor_get_impl (down)->numel, ==, 2);
          g_assert_cmpint (element (down, 1), ==, v - 1);
        }
    }
  g_assert_cmpint (n_exact, ==, 15 * G_N_ELEMENTS (wide));
}

static void
arange_counts_as_python_does (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (3);
  guint i;

  for (i = 0; i < 2000; i++)
    {
      const gint64 start = g_rand_int_range (rand, -50, 50), end = g_rand_int_range (rand, -50, 50);
      const gint64 step = g_rand_int_range (rand, -9, 10);
      const gint64 base = i % 2 == 0 ? 0 : (G_GINT64_CONSTANT (1) << 60) + 1;
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) made =
          gtorch_arange_int (base + start, base + end, step, GTORCH_DTYPE_NONE, NULL, &error);
      gint64 n = 0, at;

      if (step == 0 || (end != start && (end > start) != (step > 0)))
        {
          g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
          continue;
        }
      g_assert_no_error (error);
      for (at = start; step > 0 ? at < end : at > end; at += step)
        n++;
      g_assert_cmpint (gtorch_tensor_get_impl (made)->numel, ==, n);
      if (n > 0)
        g_assert_cmpint (element (made, n - 1), ==, base + start + (n - 1) * step);
    }
}

static gint n_refused;

/* Checks whether the dtype can represent the value. Consumes the result. */
static void
fits (const gchar *what, GTorchDType dtype, gint64 value, gboolean expected, GTorchTensor *made,
      GError *error)
{
  n_refused++;
  if (error != NULL && is_lacking (error))
    g_clear_error (&error);
  else if ((error == NULL) != expected
           || (error != NULL && !g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_INVALID)))
    {
      g_test_message ("%s, %s, %" G_GINT64_FORMAT ": %s", what, gtorch_dtype_get_name (dtype),
                      value, error != NULL ? error->message : "no error");
      g_test_fail ();
    }
  g_clear_error (&error);
  g_clear_object (&made);
}

#define FITS(what, call)                               \
  G_STMT_START                                         \
  {                                                    \
    GError *error = NULL;                              \
    GTorchTensor *made_ = call;                        \
    fits (what, dtype, value, expected, made_, error); \
  }                                                    \
  G_STMT_END

static void
integers_that_do_not_fit_are_refused (void)
{
  const gint64 one = 1;
  guint i, k;

  for (i = 0; i < G_N_ELEMENTS (narrow); i++)
    {
      const GTorchDType dtype = narrow[i];
      const gint64 max = gtorch_dtype_infos[dtype].max;
      /* unsigned dtypes accept negative integers and wrap them, as in PyTorch */
      const gint64 min = gtorch_dtype_infos[dtype].is_signed ? gtorch_dtype_infos[dtype].min : -max;
      const gint64 values[] = { max, max + 1, min, min - 1, 2 * max + 45, WIDE, G_MININT64 + 1, 0 };
      g_autoptr (GTorchTensor) x = whole (1, dtype);
      g_autoptr (GTorchTensor) index = whole (0, GTORCH_DTYPE_INT64);
      g_autoptr (GTorchTensor) mask =
          gtorch_ones ((const gint64[]){ 3 }, 1, GTORCH_DTYPE_BOOL, test_device (), NULL);

      for (k = 0; k < G_N_ELEMENTS (values); k++)
        {
          const gint64 value = values[k];
          const gboolean expected = value >= min && value <= max;

          FITS ("full", gtorch_full_int (&one, 1, value, dtype, test_device (), &error));
          FITS ("full of a double", gtorch_full (&one, 1, value, dtype, test_device (), &error));
          FITS ("full_like", gtorch_tensor_full_like_int (x, value, GTORCH_DTYPE_NONE, &error));
          FITS ("new_full",
                gtorch_tensor_new_full_int (x, &one, 1, value, GTORCH_DTYPE_NONE, &error));
          FITS ("scalar_tensor", gtorch_scalar_tensor_int (value, dtype, test_device (), &error));
          FITS ("fill", gtorch_tensor_fill_int (x, value, &error));
          FITS ("clamp to a minimum", gtorch_tensor_clamp_int (x, value, G_MAXINT64, &error));
          FITS ("clamp to a maximum", gtorch_tensor_clamp (x, -INFINITY, value, &error));
          FITS ("masked_fill", gtorch_tensor_masked_fill_int (x, mask, value, &error));
          FITS ("index_fill", gtorch_tensor_index_fill_int (x, 0, index, value, &error));
          FITS ("scatter", gtorch_tensor_scatter_int (x, 0, index, value, &error));
          FITS ("eq", gtorch_tensor_eq_int (x, value, &error));
          FITS ("ne", gtorch_tensor_ne_int (x, value, &error));
          FITS ("lt", gtorch_tensor_lt_int (x, value, &error));
          FITS ("le", gtorch_tensor_le_int (x, value, &error));
          FITS ("gt", gtorch_tensor_gt_int (x, value, &error));
          FITS ("ge", gtorch_tensor_ge_int (x, value, &error));
        }
    }
  g_assert_cmpint (n_refused, ==, 17 * 8 * 4);
}

static void
floats_that_do_not_fit_are_refused (void)
{
  static const struct
  {
    GTorchDType dtype;
    gdouble value;
    gboolean fits;
  } cases[] = {
    { GTORCH_DTYPE_FLOAT16, 65504, TRUE },     { GTORCH_DTYPE_FLOAT16, 1e5, FALSE },
    { GTORCH_DTYPE_FLOAT16, INFINITY, TRUE },  { GTORCH_DTYPE_FLOAT32, 1e39, FALSE },
    { GTORCH_DTYPE_FLOAT32, -INFINITY, TRUE }, { GTORCH_DTYPE_FLOAT32, NAN, TRUE },
    { GTORCH_DTYPE_FLOAT64, 1e300, TRUE },     { GTORCH_DTYPE_COMPLEX64, -1e39, FALSE },
    { GTORCH_DTYPE_INT64, 0x1p63, FALSE },     { GTORCH_DTYPE_INT64, -0x1p63, TRUE },
    { GTORCH_DTYPE_INT64, NAN, FALSE },        { GTORCH_DTYPE_INT64, INFINITY, FALSE },
    { GTORCH_DTYPE_INT8, 127.9, TRUE },        { GTORCH_DTYPE_INT8, 128, FALSE },
    { GTORCH_DTYPE_BOOL, 300, TRUE },          { GTORCH_DTYPE_UINT8, -255, TRUE },
    { GTORCH_DTYPE_UINT8, -256, FALSE },
  };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      const gint64 one = 1;
      GError *error = NULL;
      GTorchTensor *made =
          gtorch_full (&one, 1, cases[i].value, cases[i].dtype, test_device (), &error);

      fits ("full", cases[i].dtype, i, cases[i].fits, made, error);
    }
}

typedef GTorchTensor *(*Divide) (GTorchTensor *self, GTorchTensor *other, GError **error);
typedef GTorchTensor *(*DivideInt) (GTorchTensor *self, gint64 other, GError **error);

static void
integers_are_not_divided_by_zero (void)
{
  static const struct
  {
    const gchar *name;
    Divide divide, in_place;
    DivideInt by_number;
  } ops[] = {
    { "floor_divide", gtorch_tensor_floor_divide, gtorch_tensor_floor_divide_inplace,
      gtorch_tensor_floor_divide_int },
    { "remainder", gtorch_tensor_remainder, gtorch_tensor_remainder_inplace,
      gtorch_tensor_remainder_int },
    { "fmod", gtorch_tensor_fmod, gtorch_tensor_fmod_inplace, gtorch_tensor_fmod_int },
  };
  guint i, k, j;

  if (test_device ()->type != GTORCH_DEVICE_TYPE_CPU)
    {
      g_test_skip ("a GPU's kernels cannot fail");
      return;
    }
  for (i = 0; i < G_N_ELEMENTS (ops); i++)
    for (k = 0; k <= G_N_ELEMENTS (narrow); k++)
      for (j = 0; j < 3; j++)
        {
          const GTorchDType dtype = k < G_N_ELEMENTS (narrow) ? narrow[k] : GTORCH_DTYPE_INT64;
          g_autofree gchar *text =
              g_strdup_printf ("%s: integers cannot be divided by zero", ops[i].name);
          g_autoptr (GTorchTensor) x = whole (7, dtype);
          g_autoptr (GTorchTensor) divisor = whole (3, dtype);
          g_autoptr (GTorchTensor) part = gtorch_tensor_select (divisor, 0, j, NULL);
          g_autoptr (GTorchTensor) good = NULL;
          g_autoptr (GTorchTensor) bad = NULL;
          g_autoptr (GError) error = NULL;

          good = ops[i].divide (x, divisor, &error);
          g_assert_no_error (error);
          gtorch_tensor_fill_int_inplace (part, 0, &error);
          g_assert_no_error (error);
          bad = ops[i].divide (x, divisor, &error);
          g_assert_null (bad);
          g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
          g_assert_cmpstr (error->message, ==, text);
          g_clear_error (&error);
          g_assert_null (ops[i].divide (x, part, &error));
          g_assert_cmpstr (error->message, ==, text);
          g_clear_error (&error);
          g_assert_null (ops[i].by_number (x, 0, &error));
          g_assert_cmpstr (error->message, ==, text);
          g_clear_error (&error);
          g_assert_null (ops[i].in_place (x, divisor, &error));
          g_assert_cmpstr (error->message, ==, text);
          g_assert_cmpint (element (x, 0), ==, 7);
          g_assert_cmpint (element (x, 2), ==, 7);
        }
}

static void
integers_have_no_negative_powers (void)
{
  g_autoptr (GTorchTensor) x = whole (2, GTORCH_DTYPE_INT32);
  g_autoptr (GTorchTensor) exponents = whole (-1, GTORCH_DTYPE_INT32);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) powers = gtorch_tensor_pow (x, exponents, &error);
  g_autoptr (GTorchTensor) real = NULL;

  g_assert_no_error (error);
  g_assert_cmpint (element (powers, 0), ==, 0);
  real = gtorch_tensor_pow_scalar (x, -1, &error);
  g_assert_no_error (error);
  g_assert_null (gtorch_tensor_pow_int (x, -1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "pow: integers have no integer powers of -1: the exponent must not be negative");
}

static void
clamp_follows_its_bounds (void)
{
  static const gdouble bounds[][2] = { { 2, 1 },
                                       { -1, 1 },
                                       { 1, 1 },
                                       { NAN, 1 },
                                       { 0, NAN },
                                       { NAN, NAN },
                                       { -INFINITY, 0 },
                                       { 0, INFINITY },
                                       { 5, -INFINITY },
                                       { GTORCH_NONE_DOUBLE, 0.5 },
                                       { 0.5, GTORCH_NONE_DOUBLE } };
  static const gdouble values[] = { -3, -1, -0.5, 0, 0.5, 1, 1.5, 2, 7, NAN, INFINITY, -INFINITY };
  static const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64,
                                        GTORCH_DTYPE_FLOAT16 };
  guint i, k, d;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    for (i = 0; i < G_N_ELEMENTS (bounds); i++)
      for (k = 0; k < G_N_ELEMENTS (values); k++)
        {
          const gdouble min = bounds[i][0], max = bounds[i][1], x = values[k];
          const gint64 n = 40;
          g_autoptr (GError) error = NULL;
          g_autoptr (GTorchTensor) in = gtorch_full (&n, 1, x, dtypes[d], test_device (), &error);
          g_autoptr (GTorchTensor) out = gtorch_tensor_clamp (in, min, max, &error);
          g_autoptr (GTorchTensor) last = gtorch_tensor_select (out, 0, n - 1, &error);
          const gdouble value = gtorch_tensor_item_double (last, &error);

          g_assert_no_error (error);
          if (isnan (x) || isnan (min) || isnan (max))
            g_assert_true (isnan (value));
          else
            g_assert_cmpfloat (value, ==,
                               MIN (min == GTORCH_NONE_DOUBLE ? x : MAX (x, min),
                                    max == GTORCH_NONE_DOUBLE ? INFINITY : max));
        }
  for (i = 0; i < 3; i++)
    {
      g_autoptr (GTorchTensor) x = whole (i * 4, GTORCH_DTYPE_INT16);
      g_autoptr (GTorchTensor) out = gtorch_tensor_clamp_int (x, 6, 3, NULL);

      g_assert_cmpint (element (out, 1), ==, 3);
    }
}

static void
probabilities_are_checked (void)
{
  static const gdouble values[] = { 0, 1, 0.5, -0.1, 1.001, NAN, INFINITY };
  guint i, n = 0;

  if (test_device ()->type != GTORCH_DEVICE_TYPE_CPU)
    {
      g_test_skip ("a GPU's kernels cannot fail");
      return;
    }
  for (i = 0; i < G_N_ELEMENTS (values); i++)
    {
      const gint64 shape[] = { 700 };
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) x = gtorch_full (shape, 1, 0.25, GTORCH_DTYPE_FLOAT32, NULL, NULL);
      g_autoptr (GTorchTensor) target = gtorch_ones (shape, 1, GTORCH_DTYPE_FLOAT32, NULL, NULL);
      g_autoptr (GTorchTensor) part = gtorch_tensor_select (x, 0, i * 100, NULL);
      g_autoptr (GTorchTensor) loss = NULL;

      gtorch_tensor_fill_inplace (part, values[i], &error);
      g_assert_no_error (error);
      loss = gtorch_tensor_binary_cross_entropy (x, target, NULL, GTORCH_REDUCTION_MEAN, &error);
      n += loss != NULL;
      if (i < 3)
        g_assert_no_error (error);
      else
        g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
    }
  g_assert_cmpuint (n, ==, 3);
}

/* Returns the first sample of the row, or NULL. */
static const GTorchOpSample *
first_sample (const GTorchOpClass *op)
{
  guint i;

  for (i = 0; i < gtorch_n_op_samples; i++)
    if (gtorch_op_samples[i].op == op->id)
      return &gtorch_op_samples[i];
  return NULL;
}

/* Calls a row with tensors of ones, except for one factor, which is the value. Composites get the shapes of
 * their first sample. */
static gboolean
takes_factor (const GTorchOpClass *op, guint attr, gdouble value, guint dtype)
{
  const gint64 shape[] = { 2, 2, 2 };
  const guint n_dims = g_str_equal (op->name, "baddbmm") ? 3 : 2;
  const GTorchOpSample *sample = op->shape == NULL ? first_sample (op) : NULL;
  GTorchOpSample called;
  g_auto (Inputs) inputs = { { NULL } };
  g_autoptr (GPtrArray) results = NULL;
  GTorchImpl *output = NULL;
  GTorchAttr attrs[8] = { { 0 } };
  GError *error = NULL;
  gboolean taken;
  guint i, n_attrs = 0;

  for (i = 0; i < op->n_args; i++)
    {
      const GTorchArgSpec *arg = &op->args[i];
      const gboolean is_index = g_str_equal (arg->name, "index");
      const GTorchSampleTensor *spec = sample != NULL ? &sample->tensors[inputs.n] : NULL;

      if (arg->kind == GTORCH_ARG_TENSOR)
        inputs.tensors[inputs.n++] =
            gtorch_op_full (spec != NULL ? spec->shape : shape,
                            spec != NULL ? (guint) spec->n_dims
                            : is_index   ? 1
                                         : n_dims,
                            1, is_index ? GTORCH_DTYPE_INT64 : dtype, test_device (), &error);
      else if (arg->kind == GTORCH_ARG_DOUBLE)
        attrs[n_attrs++].d = 1;
      else
        attrs[n_attrs++].i = 0;
      g_assert_no_error (error);
    }
  attrs[attr].d = value;
  if (sample != NULL)
    {
      called = *sample;
      called.attrs = attrs;
      results = invoke (&called, &inputs, &error);
      taken = results != NULL;
    }
  else
    taken = gtorch_op_run (op, inputs.tensors, inputs.n, attrs, &output, &error);
  if (!taken && is_lacking (error))
    taken = 2;
  else if (!taken)
    {
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      g_assert_true (g_str_has_prefix (error->message, op->name));
    }
  g_clear_error (&error);
  g_clear_pointer (&output, gtorch_impl_unref);
  return taken;
}

static void
factors_must_fit_the_compute_dtype (void)
{
  static const gdouble values[] = { 0,    1,     -3,       0.5,       300,    65504,      1e5,
                                    -1e5, 3e9,   0x1p53,   -0x1p53,   0x1p62, 0x1.8p63,   3e38,
                                    1e39, 1e300, INFINITY, -INFINITY, NAN,    0x1p53 - 1, -0.25 };
  guint i, k, d, v, n = 0;

  for (i = 0; i < gtorch_n_ops; i++)
    {
      const GTorchOpClass *op = &gtorch_ops[i];
      guint attr = 0;

      for (k = 0; k < op->n_args && (op->flags & GTORCH_OP_FLAG_FACTORS); k++)
        {
          const GTorchArgSpec *arg = &op->args[k];

          if (arg->kind == GTORCH_ARG_TENSOR)
            continue;
          attr++;
          if (arg->kind != GTORCH_ARG_DOUBLE)
            continue;
          for (d = GTORCH_DTYPE_NONE + 1; d < GTORCH_N_DTYPES; d++)
            for (v = 0; v < G_N_ELEMENTS (values) && (op->dtypes & (1u << d)); v++)
              {
                const GTorchDTypeInfo *info = &gtorch_dtype_infos[d];
                const gdouble value = values[v];
                const gdouble max = gtorch_dtype_infos[info->compute].max;
                gboolean expected = isinf (value) || isnan (value) || fabs (value) <= max, taken;

                if (info->kind == GTORCH_KIND_BOOL)
                  expected = TRUE;
                if (g_str_equal (op->name, "celu") && value == 0)
                  expected = FALSE; /* a divisor */
                if (info->kind == GTORCH_KIND_INT)
                  expected = value == trunc (value) && fabs (value) < 0x1p53
                             && value >= (info->is_signed ? info->min : -info->max)
                             && value <= info->max;
                taken = takes_factor (op, attr - 1, value, d);
                if (taken == 2 || taken == expected)
                  {
                    n += taken != 2;
                    continue;
                  }
                g_test_message ("%s, %s, %s %g: %s", op->name, info->name, arg->name, value,
                                taken ? "taken" : "refused");
                g_test_fail ();
              }
        }
    }
  g_test_message ("%u calls", n);
  g_assert_cmpuint (n, >, 500);
}

/* In each function that stores a number as an element, the dtype can represent it, or it is refused. */
static void
elements_must_fit_their_dtype (void)
{
  static const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT16, GTORCH_DTYPE_BFLOAT16,
                                        GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64,
                                        GTORCH_DTYPE_COMPLEX64 };
  static const gdouble values[] = { 1,      65504, 65505, 1e5,      -1e5,      3.3e38,
                                    3.4e38, -1e39, 1e300, INFINITY, -INFINITY, NAN };
  const gint64 one = 1, big = 100000;
  guint i, k;

  n_refused = 0;
  for (i = 0; i < G_N_ELEMENTS (dtypes); i++)
    for (k = 0; k < G_N_ELEMENTS (values); k++)
      {
        const GTorchDType dtype = dtypes[i];
        const gdouble value = values[k];
        const gboolean expected = isinf (value) || !(fabs (value) > gtorch_dtype_infos[dtype].max);
        const gboolean is_real = dtype != GTORCH_DTYPE_COMPLEX64;
        g_autoptr (GTorchTensor) x = whole (1, dtype);
        g_autoptr (GTorchTensor) index = whole (0, GTORCH_DTYPE_INT64);
        g_autoptr (GTorchTensor) mask =
            gtorch_ones ((const gint64[]){ 3 }, 1, GTORCH_DTYPE_BOOL, test_device (), NULL);

        FITS ("full", gtorch_full (&one, 1, value, dtype, test_device (), &error));
        FITS ("full_like", gtorch_tensor_full_like (x, value, GTORCH_DTYPE_NONE, &error));
        FITS ("new_full", gtorch_tensor_new_full (x, &one, 1, value, GTORCH_DTYPE_NONE, &error));
        FITS ("scalar_tensor", gtorch_scalar_tensor (value, dtype, test_device (), &error));
        FITS ("fill", gtorch_tensor_fill (x, value, &error));
        FITS ("masked_fill", gtorch_tensor_masked_fill_scalar (x, mask, value, &error));
        FITS ("index_fill", gtorch_tensor_index_fill_scalar (x, 0, index, value, &error));
        FITS ("scatter", gtorch_tensor_scatter_scalar (x, 0, index, value, &error));
        if (is_real)
          {
            FITS ("clamp to a minimum", gtorch_tensor_clamp (x, value, INFINITY, &error));
            FITS ("clamp to a maximum", gtorch_tensor_clamp (x, -INFINITY, value, &error));
            FITS ("linspace", gtorch_linspace (0, value, 5, dtype, test_device (), &error));
          }
      }
  {
    const GTorchDType dtype = GTORCH_DTYPE_FLOAT16;
    const gint64 value = big;
    const gboolean expected = FALSE;
    g_autoptr (GTorchTensor) x = whole (1, dtype);
    g_autoptr (GTorchTensor) mask =
        gtorch_ones ((const gint64[]){ 3 }, 1, GTORCH_DTYPE_BOOL, test_device (), NULL);

    FITS ("masked_fill by an integer", gtorch_tensor_masked_fill_int (x, mask, value, &error));
    FITS ("clamp to an integer", gtorch_tensor_clamp_int (x, value, G_MAXINT64, &error));
  }
  g_assert_cmpint (n_refused, ==, 12 * (5 * 8 + 4 * 3) + 2);
}

/* Calls that numbers_are_not_wrapped cannot check: their wrong results are right ones of other numbers. */
static void
numbers_beyond_the_result_are_refused (void)
{
  const gint64 two = 2;
  g_autoptr (GTorchTensor) x = gtorch_ones (&two, 1, GTORCH_DTYPE_FLOAT32, test_device (), NULL);
  g_autoptr (GTorchTensor) condition =
      gtorch_ones (&two, 1, GTORCH_DTYPE_BOOL, test_device (), NULL);
  g_autoptr (GTorchTensor) index = gtorch_zeros (&two, 1, GTORCH_DTYPE_INT64, test_device (), NULL);
  g_autoptr (GTorchTensor) imaginary =
      gtorch_full (NULL, 0, 1, GTORCH_DTYPE_COMPLEX64, test_device (), NULL);
  g_autoptr (GTorchImpl) large = gtorch_impl_new_number (1e300);
  GTorchImpl *impl = gtorch_tensor_unwrap (x);
  GError *errors[6] = { NULL };
  static const gchar *const messages[] = {
    "where: self is 1.0000000000000001e+300, which is no float32",
    "maximum: other is 1.0000000000000001e+300, which is no float32",
    "index_fill: value is of complex64, which is no float32",
    "arange: the numbers include 200, which is no int8",
    "arange: the numbers include 65600, which is no float16",
    "scatter: src is of complex64, which is no float32",
  };
  guint i;

  g_assert_null (gtorch_op_where (gtorch_tensor_unwrap (condition), large, impl, &errors[0]));
  g_assert_null (gtorch_op_maximum (impl, large, &errors[1]));
  g_assert_null (gtorch_tensor_index_fill (x, 0, index, imaginary, &errors[2]));
  g_assert_null (gtorch_arange_int (0, 300, 100, GTORCH_DTYPE_INT8, test_device (), &errors[3]));
  g_assert_null (gtorch_arange (0, 66000, 1600, GTORCH_DTYPE_FLOAT16, test_device (), &errors[4]));
  {
    g_autoptr (GTorchImpl) number = gtorch_impl_alias (gtorch_tensor_unwrap (imaginary));

    number->is_number = TRUE;
    g_assert_null (gtorch_op_scatter (impl, 0, gtorch_tensor_unwrap (index), number, &errors[5]));
  }
  for (i = 0; i < G_N_ELEMENTS (errors); i++)
    {
      if (!is_lacking (errors[i]))
        g_assert_cmpstr (errors[i]->message, ==, messages[i]);
      g_clear_error (&errors[i]);
    }
}

/* Passes numbers that narrow integers cannot represent as each tensor of each row that may be a number:
 * the result is that of 64 bits, within the dtype, or the number is refused. */
static void
numbers_are_not_wrapped (void)
{
  static const GTorchDType dtypes[] = { GTORCH_DTYPE_INT8, GTORCH_DTYPE_UINT8, GTORCH_DTYPE_INT16 };
  static const gint64 numbers[] = { 300, -1, -300, 70000, 3 };
  guint s, d, k, j, n_right = 0, n_not = 0;

  for (s = 0; s < gtorch_n_op_samples; s++)
    for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
      {
        const GTorchOpSample *sample = &gtorch_op_samples[s];
        const GTorchOpClass *op = &gtorch_ops[sample->op];

        if (!is_for (sample, dtypes[d]) || !has_values (op))
          continue;
        for (k = 1; k < sample->n_tensors; k++) /* the first is the tensor */
          for (j = 0; j < G_N_ELEMENTS (numbers); j++)
            {
              g_auto (Inputs) inputs = { { NULL } };
              g_auto (Inputs) broad = { { NULL } };
              g_autoptr (GPtrArray) results = NULL;
              g_autoptr (GPtrArray) expected = NULL;
              g_autoptr (GError) error = NULL;
              guint i;
              gint64 e;

              if (sample->tensors[k].dtype != GTORCH_DTYPE_NONE || sample->tensors[k].n_dims < 0)
                continue;
              /* a negative source counts as the value to which it wraps */
              if (numbers[j] < 0 && dtypes[d] == GTORCH_DTYPE_UINT8
                  && g_str_has_prefix (op->name, "scatter_"))
                continue;
              inputs_make (&inputs, sample, dtypes[d], LAYOUT_CONTIGUOUS);
              inputs_widen (&broad, &inputs, sample, LAYOUT_CONTIGUOUS);
              gtorch_impl_unref (inputs.tensors[k]);
              gtorch_impl_unref (broad.tensors[k]);
              inputs.tensors[k] = gtorch_impl_new_int (numbers[j]);
              broad.tensors[k] = gtorch_impl_new_int (numbers[j]);
              results = invoke (sample, &inputs, &error);
              if (results == NULL)
                {
                  n_not++;
                  continue;
                }
              expected = invoke (sample, &broad, NULL);
              for (i = 0; expected != NULL && i < results->len; i++)
                {
                  const GTorchImpl *result = results->pdata[i], *right = expected->pdata[i];
                  g_autoptr (GTorchImpl) wrapped =
                      gtorch_op_to_dtype ((GTorchImpl *) right, result->dtype, NULL);

                  g_assert_true (gtorch_impl_same_shape (result, right));
                  for (e = 0; e < result->numel; e++)
                    if (gtorch_dtype_kind (result->dtype) < GTORCH_KIND_FLOAT
                        && element_get (result, e) != element_get (wrapped, e))
                      {
                        g_test_message ("%s of %s with the number %" G_GINT64_FORMAT
                                        " as tensor %u: %g instead of %g",
                                        op->name, gtorch_dtype_get_name (dtypes[d]), numbers[j], k,
                                        creal (element_get (result, e)),
                                        creal (element_get (right, e)));
                        g_test_fail ();
                        break;
                      }
                  n_right++;
                }
            }
      }
  g_test_message ("%u right, %u refused", n_right, n_not);
  g_assert_cmpuint (n_right, >, 500);
  g_assert_cmpuint (n_not, >, 200);
}

/* As in PyTorch: full () and arange () look at the number, scalar_tensor () does not. */
static void
scalar_tensors_are_of_the_default_dtype (void)
{
  g_autoptr (GTorchTensor) one =
      gtorch_scalar_tensor_int (1, GTORCH_DTYPE_NONE, test_device (), NULL);
  g_autoptr (GTorchTensor) half =
      gtorch_scalar_tensor (0.5, GTORCH_DTYPE_NONE, test_device (), NULL);

  g_assert_cmpint (gtorch_tensor_get_dtype (one), ==, gtorch_get_default_dtype ());
  g_assert_cmpfloat (gtorch_tensor_item_double (one, NULL), ==, 1);
  g_assert_cmpint (gtorch_tensor_get_dtype (half), ==, gtorch_get_default_dtype ());
}

/* An argument of kind double never becomes an element of a tensor of integers, or must be a double. */
static void
doubles_do_not_become_integer_elements (void)
{
  static const gchar *const known[] = {
    "allclose.atol",
    "allclose.rtol",
    "bernoulli_p.p",
    "constant_pad_nd.value",
    "dropout.p",
    "embedding.max_norm",
    "embedding.norm_type",
    "fft_fftfreq.d",
    "fft_rfftfreq.d",
    "geometric.p",
    "hamming_window.alpha",
    "hamming_window.beta",
    "isclose.atol",
    "isclose.rtol",
    "kaiser_window.beta",
    "linspace.end",
    "linspace.start",
    "logit.eps",
    "logspace.base",
    "logspace.end",
    "logspace.start",
    "masked_std.correction",
    "masked_var.correction",
    "nan_to_num.nan",
    "nan_to_num.neginf",
    "nan_to_num.posinf",
    "pad.value",
    "resample.scale_depth",
    "resample.scale_height",
    "resample.scale_width",
    "signal_windows_exponential.center",
    "signal_windows_exponential.tau",
    "signal_windows_gaussian.std",
    "signal_windows_general_hamming.alpha",
    "signal_windows_kaiser.beta",
  };
  guint i, k, n = 0;

  for (i = 0; i < gtorch_n_ops; i++)
    for (k = 0; k < gtorch_ops[i].n_args; k++)
      {
        const GTorchOpClass *op = &gtorch_ops[i];
        g_autofree gchar *name = g_strdup_printf ("%s.%s", op->name, op->args[k].name);
        gboolean listed = FALSE;
        guint j;

        n += op->args[k].kind == GTORCH_ARG_NUMBER; /* including those of clamp's backward row */
        if (op->args[k].kind != GTORCH_ARG_DOUBLE || !(op->dtypes & (1u << GTORCH_DTYPE_INT64))
            || (op->flags & GTORCH_OP_FLAG_FACTORS))
          continue;
        for (j = 0; j < G_N_ELEMENTS (known); j++)
          listed |= g_str_equal (known[j], name);
        if (!listed)
          {
            g_test_message ("%s is a double: should it be a number?", name);
            g_test_fail ();
          }
      }
  g_assert_cmpuint (n, ==, 12);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
#define TEST(name) g_test_add_func ("/GTorch/numbers/" #name, name)
  TEST (integers_are_exact);
  TEST (arange_counts_as_python_does);
  TEST (integers_that_do_not_fit_are_refused);
  TEST (floats_that_do_not_fit_are_refused);
  TEST (integers_are_not_divided_by_zero);
  TEST (integers_have_no_negative_powers);
  TEST (clamp_follows_its_bounds);
  TEST (probabilities_are_checked);
  TEST (factors_must_fit_the_compute_dtype);
  TEST (elements_must_fit_their_dtype);
  TEST (numbers_beyond_the_result_are_refused);
  TEST (numbers_are_not_wrapped);
  TEST (scalar_tensors_are_of_the_default_dtype);
  TEST (doubles_do_not_become_integer_elements);
  return g_test_run ();
}
