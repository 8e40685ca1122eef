/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Invalid numbers as arguments: each argument of kind double or number of each row gets NaN, infinite,
 * negative and too large values. Such a call is refused with a message that names the argument or the
 * number, or NaN gives NaN. */

#include "config.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "op-calls.h"

static const gdouble values[] = { NAN, INFINITY, -INFINITY, -1, 0, 2, 1e300 };

/* NaN in these has no effect, as in PyTorch: no element is above it, or the sample does not use it. */
static const struct
{
  const gchar *op, *arg;
} ignored[] = {
  { "softplus", "threshold" },
  { "linspace", "end" }, /* a single step */
  { "logspace", "end" },
  { "logspace", "base" },
  { "cosine_embedding_loss", "margin" }, /* no target is -1 */
  { "embedding", "norm_type" },          /* without max_norm */
  { "embedding_bag", "norm_type" },
  { "poisson_nll_loss", "eps" }, /* with log_input */
  { "nan_to_num", "nan" },       /* for elements that the sample lacks */
  { "nan_to_num", "neginf" },
  { "nan_to_num", "posinf" },
  /* internal rows */
  { "is_close", "atol" },
  { "is_close", "rtol" },
  { "native_dropout", "p" },
  { "embedding_margin", "margin" },
  { "recurrence", "start" },
  { "resample_backward", "scale_depth" }, /* the forward pass has checked them */
  { "resample_backward", "scale_height" },
  { "resample_backward", "scale_width" },
  { "replace_nonfinite", "for_nan" }, /* for elements that a sample lacks */
  { "replace_nonfinite", "for_neginf" },
  { "replace_nonfinite", "for_posinf" },
};

static guint n_calls, n_refused;

/* Sums of empty inputs multiply nothing with the number. */
static gboolean
has_empty (const Inputs *inputs)
{
  guint i;

  for (i = 0; i < inputs->n; i++)
    if (inputs->tensors[i] != NULL && inputs->tensors[i]->numel == 0)
      return TRUE;
  return FALSE;
}

static gboolean
has_nan (GTorchImpl *result)
{
  g_autoptr (GTorchImpl) impl = impl_to_host (result);
  gint64 i;

  for (i = 0; i < impl->numel; i++)
    {
      const Number value = element_get (impl, i);

      if (isnan (creal (value)) || isnan (cimag (value)))
        return TRUE;
    }
  return FALSE;
}

static gboolean
is_ignored (const gchar *op, const GTorchArgSpec *arg)
{
  guint i;

  for (i = 0; i < G_N_ELEMENTS (ignored); i++)
    if (g_str_equal (ignored[i].op, op) && g_str_equal (ignored[i].arg, arg->name))
      return TRUE;
  return FALSE;
}

static void
try_value (const GTorchOpSample *sample, const Inputs *inputs, guint attr, const GTorchArgSpec *arg,
           guint dtype, gdouble value)
{
  const GTorchOpClass *op = &gtorch_ops[sample->op];
  GTorchOpSample changed = *sample;
  GTorchAttr attrs[MAX_ATTRS];
  g_autoptr (GPtrArray) results = NULL;
  g_autoptr (GError) error = NULL;
  gboolean found = FALSE;
  gchar shown[32];
  guint i;

  for (i = 0, memset (attrs, 0, sizeof attrs); i < op->n_attrs; i++)
    attrs[i] = sample->attrs[i];
  if (arg->kind == GTORCH_ARG_NUMBER)
    attrs[attr] = gtorch_attr_number (value);
  else
    attrs[attr].d = value;
  changed.attrs = attrs;
  results = invoke (&changed, inputs, &error);
  if (error != NULL && is_lacking (error))
    return;
  n_calls++;
  n_refused += error != NULL;
  if (error != NULL)
    {
      g_assert_true (error->domain == GTORCH_ERROR);
      g_snprintf (shown, sizeof shown, "%g", value);
      if (strstr (error->message, arg->name) == NULL && strstr (error->message, shown) == NULL)
        {
          g_test_message ("%s, %s %g: %s", op->name, arg->name, value, error->message);
          g_test_fail ();
        }
      return;
    }
  for (i = 0; i < results->len; i++)
    found |= has_nan (results->pdata[i]);
  if (isnan (value) && !found && !has_empty (inputs) && !is_ignored (op->name, arg))
    {
      g_test_message ("%s, %s: NaN is taken for %s and lost", op->name,
                      gtorch_dtype_get_name (dtype), arg->name);
      g_test_fail ();
    }
}

static void
invalid_numbers_are_refused_or_give_nan (gconstpointer data)
{
  const GTorchOpSample *sample = data;
  const GTorchOpClass *op = &gtorch_ops[sample->op];
  static const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64,
                                        GTORCH_DTYPE_FLOAT16, GTORCH_DTYPE_INT32 };
  guint d, i, v;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    {
      g_auto (Inputs) inputs = { { NULL } };
      guint attr = 0;

      if (!is_for (sample, dtypes[d]))
        continue;
      inputs_make (&inputs, sample, dtypes[d], LAYOUT_CONTIGUOUS);
      inputs_move (&inputs);
      for (i = 0; i < op->n_args; i++)
        if (op->args[i].kind > GTORCH_ARG_TENSORS)
          {
            const guint place = attr++;

            if (op->args[i].kind == GTORCH_ARG_DOUBLE || op->args[i].kind == GTORCH_ARG_NUMBER)
              for (v = 0; v < G_N_ELEMENTS (values); v++)
                try_value (sample, &inputs, place, &op->args[i], dtypes[d], values[v]);
          }
    }
}

static void
enough_calls_ran (void)
{
  g_test_message ("%u calls, %u refused", n_calls, n_refused);
  g_assert_cmpuint (n_calls, >, 1000);
  g_assert_cmpuint (n_refused, >, 300);
}

/* --- what may be left out --- */

static GTorchTensor *
ramp (gint64 rows, gint64 columns)
{
  g_autoptr (GTorchTensor) row =
      gtorch_arange (1, rows * columns + 1, 1, GTORCH_DTYPE_FLOAT64, NULL, NULL);

  return gtorch_tensor_reshape (row, GTORCH_SHAPE (rows, columns), NULL);
}

typedef GTorchTensor *(*WithInt) (gint64 value, GError **error);

#define FFT(name)                                                         \
  static GTorchTensor *call_##name (gint64 value, GError **error)         \
  {                                                                       \
    g_autoptr (GTorchTensor) x = ramp (2, 3);                             \
                                                                          \
    return gtorch_##name (x, value, -1, GTORCH_FFT_NORM_BACKWARD, error); \
  }

FFT (fft_fft)
FFT (fft_ifft)
FFT (fft_rfft)
FFT (fft_irfft)
FFT (fft_hfft)
FFT (fft_ihfft)

static GTorchTensor *
call_eye (gint64 value, GError **error)
{
  return gtorch_eye (3, value, GTORCH_DTYPE_FLOAT64, NULL, error);
}

static GTorchTensor *
call_as_strided (gint64 value, GError **error)
{
  g_autoptr (GTorchTensor) x = ramp (2, 3);

  return gtorch_tensor_as_strided (x, GTORCH_SHAPE (2), GTORCH_SHAPE (1), value, error);
}

static GTorchTensor *
call_avg_pool2d (gint64 value, GError **error)
{
  g_autoptr (GTorchTensor) x = ramp (4, 4);
  g_autoptr (GTorchTensor) image = gtorch_tensor_unsqueeze (x, 0, NULL);

  return gtorch_tensor_avg_pool2d (image, GTORCH_SHAPE (2), NULL, 0, GTORCH_SHAPE (0), FALSE, TRUE,
                                   value, error);
}

/* The gradient of a table, where each row is looked up once. */
static GTorchTensor *
call_embedding (gint64 value, GError **error)
{
  g_autoptr (GTorchTensor) table = ramp (3, 2);
  g_autoptr (GTorchTensor) index = gtorch_arange (0, 3, 1, GTORCH_DTYPE_INT64, NULL, NULL);
  g_autoptr (GTorchTensor) rows = NULL;
  g_autoptr (GTorchTensor) ones = gtorch_tensor_ones_like (table, GTORCH_DTYPE_NONE, NULL);

  gtorch_tensor_set_requires_grad (table, TRUE, NULL);
  rows = gtorch_embedding (table, index, value, FALSE, GTORCH_NONE_DOUBLE, 2, error);
  if (rows == NULL || !gtorch_tensor_backward (rows, ones, FALSE, FALSE, error))
    return NULL;
  return gtorch_tensor_get_grad (table);
}

/* NONE stands for `same`; what is refused is a mistake and no way to leave the argument out. */
static const struct
{
  const gchar *op;
  WithInt call;
  gint64 same, refused[4];
} left_out[] = {
  { "fft_fft", call_fft_fft, 3, { -1, -2, 0, G_MININT64 } },
  { "fft_ifft", call_fft_ifft, 3, { -1, -2, 0, G_MININT64 } },
  { "fft_rfft", call_fft_rfft, 3, { -1, -2, 0, G_MININT64 } },
  { "fft_irfft", call_fft_irfft, 4, { -1, -2, 0, G_MININT64 } },
  { "fft_hfft", call_fft_hfft, 4, { -1, -2, 0, G_MININT64 } },
  { "fft_ihfft", call_fft_ihfft, 3, { -1, -2, 0, G_MININT64 } },
  { "eye", call_eye, 3, { -1, -2, -3, G_MININT64 } },
  { "as_strided", call_as_strided, 0, { -1, -2, 5, G_MININT64 } },
  { "avg_pool2d", call_avg_pool2d, 4, { 0, 0, 0, 0 } },
  { "embedding", call_embedding, GTORCH_NONE, { -4, 3, G_MAXINT64, G_MININT64 } },
};

static void
assert_same (GTorchTensor *a, GTorchTensor *b)
{
  g_autoptr (GTorchTensor) same = gtorch_tensor_eq (a, b, NULL);
  g_autoptr (GTorchTensor) all = gtorch_tensor_all (same, NULL, 0, FALSE, NULL);

  g_assert_cmpint (gtorch_tensor_item_int (all, NULL), ==, 1);
}

static void
integers_that_are_left_out_have_a_value_of_their_own (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (left_out); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) none = left_out[i].call (GTORCH_NONE, &error);
      g_autoptr (GTorchTensor) same =
          none != NULL ? left_out[i].call (left_out[i].same, &error) : NULL;

      g_test_message ("%s", left_out[i].op);
      g_assert_no_error (error);
      assert_same (none, same);
      for (guint k = 0; k < G_N_ELEMENTS (left_out[i].refused); k++)
        {
          g_autofree gchar *lead = g_strconcat (left_out[i].op, ": ", NULL);

          g_assert_null (left_out[i].call (left_out[i].refused[k], &error));
          g_assert_nonnull (error);
          g_assert_true (g_str_has_prefix (error->message, lead));
          g_clear_error (&error);
        }
    }
}

/* No row says “not given” by a number that people write: each default is one that PyTorch has, too. */
static void
defaults_are_numbers_or_none (void)
{
  static const gchar *const known[] = { "one_hot.num_classes", "nonzero_static.fill_value", NULL };
  guint n = 0;

  for (guint i = 0; i < gtorch_n_ops; i++)
    for (guint k = 0; k < gtorch_ops[i].n_args; k++)
      {
        const GTorchArgSpec *arg = &gtorch_ops[i].args[k];
        g_autofree gchar *name = g_strconcat (gtorch_ops[i].name, ".", arg->name, NULL);

        if (arg->kind != GTORCH_ARG_INT || arg->default_value == NULL)
          continue;
        n++;
        if (arg->default_value[0] != '-' || strstr (arg->name, "dim") != NULL
            || g_str_equal (arg->name, "ignore_index") || g_strv_contains (known, name))
          continue;
        g_error ("%s has the default %s", name, arg->default_value);
      }
  g_assert_cmpuint (n, >, 20);
}

static void
negative_rows_count_from_the_end (void)
{
  for (gint64 row = 0; row < 3; row++)
    {
      g_autoptr (GTorchTensor) a = call_embedding (row, NULL);
      g_autoptr (GTorchTensor) b = call_embedding (row - 3, NULL);

      assert_same (a, b);
      for (gint64 i = 0; i < 3; i++)
        g_assert_cmpfloat (test_element (b, 2 * i), ==, i != row);
    }
}

/* A tensor with NaN and both infinities. */
static GTorchTensor *
call_nan_to_num (guint which, gdouble value, GError **error)
{
  static const gdouble numbers[] = { NAN, INFINITY, -INFINITY, 1 };
  const gdouble none = GTORCH_NONE_DOUBLE;
  g_autoptr (GTorchTensor) x = gtorch_tensor_new_from_doubles (numbers, 4, GTORCH_SHAPE (4),
                                                               GTORCH_DTYPE_FLOAT64, NULL, NULL);

  return gtorch_tensor_nan_to_num (x, which == 0 ? value : none, which == 1 ? value : none,
                                   which == 2 ? value : none, error);
}

static GTorchTensor *
call_nan (gdouble value, GError **error)
{
  return call_nan_to_num (0, value, error);
}

static GTorchTensor *
call_posinf (gdouble value, GError **error)
{
  return call_nan_to_num (1, value, error);
}

static GTorchTensor *
call_neginf (gdouble value, GError **error)
{
  return call_nan_to_num (2, value, error);
}

static GTorchTensor *
call_logit (gdouble value, GError **error)
{
  g_autoptr (GTorchTensor) x = ramp (1, 3);
  g_autoptr (GTorchTensor) part = gtorch_tensor_div_scalar (x, 4, NULL);

  return gtorch_tensor_logit (part, value, error);
}

static GTorchTensor *
call_logit_inplace (gdouble value, GError **error)
{
  g_autoptr (GTorchTensor) x = ramp (1, 3);
  g_autoptr (GTorchTensor) part = gtorch_tensor_div_scalar (x, 4, NULL);

  return gtorch_tensor_logit_inplace (part, value, error) ? g_steal_pointer (&part) : NULL;
}

static GTorchTensor *
call_rms_norm (gdouble value, GError **error)
{
  g_autoptr (GTorchTensor) x = ramp (2, 3);

  return gtorch_rms_norm (x, GTORCH_SHAPE (3), NULL, value, error);
}

static GTorchTensor *
call_trapezoid (gdouble value, GError **error)
{
  g_autoptr (GTorchTensor) y = ramp (2, 3);

  return gtorch_trapezoid (y, NULL, value, -1, error);
}

static GTorchTensor *
call_trapz (gdouble value, GError **error)
{
  g_autoptr (GTorchTensor) y = ramp (2, 3);

  return gtorch_trapz (y, NULL, value, -1, error);
}

static GTorchTensor *
call_cumulative_trapezoid (gdouble value, GError **error)
{
  g_autoptr (GTorchTensor) y = ramp (2, 3);

  return gtorch_cumulative_trapezoid (y, NULL, value, -1, error);
}

static GTorchTensor *
call_low (gdouble value, GError **error)
{
  const gdouble high = value == GTORCH_NONE_DOUBLE ? value : 6;
  g_autoptr (GTorchTensor) x = ramp (2, 3);
  g_autoptr (GTorchTensor) edges = NULL;

  return gtorch_tensor_histogram (x, 4, value, high, NULL, FALSE, NULL, &edges, error)
             ? g_steal_pointer (&edges)
             : NULL;
}

static GTorchTensor *
call_high (gdouble value, GError **error)
{
  const gdouble low = value == GTORCH_NONE_DOUBLE ? value : 1;
  g_autoptr (GTorchTensor) x = ramp (2, 3);
  g_autoptr (GTorchTensor) edges = NULL;

  return gtorch_tensor_histogram (x, 4, low, value, NULL, FALSE, NULL, &edges, error)
             ? g_steal_pointer (&edges)
             : NULL;
}

static GTorchTensor *
call_matrix_norm (gdouble value, GError **error)
{
  g_autoptr (GTorchTensor) x = ramp (1, 6);

  return gtorch_linalg_matrix_norm (x, value, (const gint64[]){ -2, -1 }, 2, FALSE,
                                    GTORCH_DTYPE_NONE, error);
}

static GTorchTensor *
call_norm (gdouble value, GError **error)
{
  g_autoptr (GTorchTensor) x = ramp (2, 3);

  return gtorch_linalg_norm (x, value, (const gint64[]){ 1 }, 1, FALSE, GTORCH_DTYPE_NONE, error);
}

static GTorchTensor *
call_attention (gdouble value, GError **error)
{
  g_autoptr (GTorchTensor) x = ramp (3, 4);
  g_autoptr (GTorchTensor) v = ramp (3, 2);

  return gtorch_scaled_dot_product_attention (x, x, v, NULL, 0, FALSE, value, FALSE, error);
}

/* Returns [[2, 1], [1, 3], [0, 1]]. */
static GTorchTensor *
regular (void)
{
  static const gdouble elements[6] = { 2, 1, 1, 3, 0, 1 };

  return gtorch_tensor_new_from_doubles (elements, 6, (const gint64[]){ 3, 2 }, 2,
                                         GTORCH_DTYPE_FLOAT64, NULL, NULL);
}

static GTorchTensor *
call_pinv_atol (gdouble value, GError **error)
{
  g_autoptr (GTorchTensor) x = regular ();

  return gtorch_linalg_pinv (x, value, GTORCH_NONE_DOUBLE, FALSE, error);
}

static GTorchTensor *
call_pinv_rtol (gdouble value, GError **error)
{
  g_autoptr (GTorchTensor) x = regular ();

  return gtorch_linalg_pinv (x, GTORCH_NONE_DOUBLE, value, FALSE, error);
}

static GTorchTensor *
call_rank_atol (gdouble value, GError **error)
{
  g_autoptr (GTorchTensor) x = regular ();

  return gtorch_linalg_matrix_rank (x, value, GTORCH_NONE_DOUBLE, FALSE, error);
}

static GTorchTensor *
call_rank_rtol (gdouble value, GError **error)
{
  g_autoptr (GTorchTensor) x = regular ();

  return gtorch_linalg_matrix_rank (x, GTORCH_NONE_DOUBLE, value, FALSE, error);
}

static GTorchTensor *
call_cond (gdouble value, GError **error)
{
  g_autoptr (GTorchTensor) x = regular ();

  return gtorch_linalg_cond (x, value, error);
}

static GTorchTensor *
call_lstsq (gdouble value, GError **error)
{
  g_autoptr (GTorchTensor) x = regular ();
  g_autoptr (GTorchTensor) solution = NULL;

  return gtorch_linalg_lstsq (x, x, value, GTORCH_LSTSQ_DRIVER_GELSD, &solution, NULL, NULL, NULL,
                              error)
             ? g_steal_pointer (&solution)
             : NULL;
}

/* Of two factors, the one that is left out is the other one. */
static GTorchTensor *
interpolate (gdouble factor, gdouble height, gdouble width, GError **error)
{
  g_autoptr (GTorchTensor) rows = ramp (2, 3);
  g_autoptr (GTorchTensor) x = gtorch_tensor_reshape (rows, GTORCH_SHAPE (1, 1, 2, 3), NULL);

  return gtorch_interpolate (x, NULL, 0, factor, GTORCH_RESAMPLING_NEAREST, FALSE, FALSE, FALSE,
                             height, width, error);
}

static GTorchTensor *
call_scale_factor (gdouble value, GError **error)
{
  return interpolate (value, 2, 2, error);
}

static GTorchTensor *
call_scale_height (gdouble value, GError **error)
{
  return interpolate (2, value, 2, error);
}

static GTorchTensor *
call_scale_width (gdouble value, GError **error)
{
  return interpolate (2, 2, value, error);
}

/* A factor that is left out is that of a size. */
static GTorchTensor *
upsample (GTorchTensor *(*function) (GTorchTensor *, const gint64 *, gsize, gdouble, GError **),
          gdouble value, GError **error)
{
  const gint64 size[] = { 4, 6 };
  g_autoptr (GTorchTensor) rows = ramp (2, 3);
  g_autoptr (GTorchTensor) x = gtorch_tensor_reshape (rows, GTORCH_SHAPE (1, 1, 2, 3), NULL);

  return function (x, size, value == GTORCH_NONE_DOUBLE ? 2 : 0, value, error);
}

static GTorchTensor *
call_upsample_nearest (gdouble value, GError **error)
{
  return upsample (gtorch_upsample_nearest, value, error);
}

static GTorchTensor *
call_upsample_bilinear (gdouble value, GError **error)
{
  return upsample (gtorch_upsample_bilinear, value, error);
}

/* GTORCH_NONE_DOUBLE stands for `same`, or for something that no number stands for where it is NaN. A NaN
 * that is given is refused, or gives NaN. */
static const struct
{
  const gchar *op, *arg;
  GTorchTensor *(*call) (gdouble value, GError **error);
  gdouble same;
  gboolean is_refused;
} numbers_left_out[] = {
  { "nan_to_num", "nan", call_nan, 0, FALSE },
  { "nan_to_num", "posinf", call_posinf, G_MAXDOUBLE, FALSE },
  { "nan_to_num", "neginf", call_neginf, -G_MAXDOUBLE, FALSE },
  { "logit", "eps", call_logit, 0, TRUE },
  { "logit", "eps", call_logit_inplace, 0, TRUE },
  { "rms_norm", "eps", call_rms_norm, DBL_EPSILON, TRUE },
  { "trapezoid", "dx", call_trapezoid, 1, FALSE },
  { "trapz", "dx", call_trapz, 1, FALSE },
  { "cumulative_trapezoid", "dx", call_cumulative_trapezoid, 1, FALSE },
  { "histogram", "low", call_low, 1, TRUE },
  { "histogram", "high", call_high, 6, TRUE },
  { "linalg_matrix_norm", "ord", call_matrix_norm, NAN, TRUE },
  { "linalg_norm", "ord", call_norm, 2, FALSE },
  { "scaled_dot_product_attention", "scale", call_attention, 0.5, FALSE },
  { "linalg_pinv", "atol", call_pinv_atol, 0, TRUE },
  { "linalg_pinv", "rtol", call_pinv_rtol, 3 * DBL_EPSILON, TRUE },
  { "linalg_matrix_rank", "atol", call_rank_atol, 0, TRUE },
  { "linalg_matrix_rank", "rtol", call_rank_rtol, 3 * DBL_EPSILON, TRUE },
  { "linalg_cond", "p", call_cond, 2, TRUE },
  { "linalg_lstsq", "rcond", call_lstsq, 3 * DBL_EPSILON, TRUE },
  { "interpolate", "scale_factor", call_scale_factor, 2, TRUE },
  { "interpolate", "scale_height", call_scale_height, 2, TRUE },
  { "interpolate", "scale_width", call_scale_width, 2, TRUE },
  { "upsample_nearest", "scale_factor", call_upsample_nearest, 2, TRUE },
  { "upsample_bilinear", "scale_factor", call_upsample_bilinear, 2, TRUE },
};

static void
numbers_that_are_left_out_have_a_value_of_their_own (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (numbers_left_out); i++)
    {
      const gdouble same = numbers_left_out[i].same;
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) none = numbers_left_out[i].call (GTORCH_NONE_DOUBLE, &error);
      g_autoptr (GTorchTensor) given = NULL;
      g_autoptr (GTorchTensor) is_nan = NULL;
      g_autoptr (GTorchTensor) any = NULL;

      g_test_message ("%s, %s", numbers_left_out[i].op, numbers_left_out[i].arg);
      g_assert_no_error (error);
      given = numbers_left_out[i].call (isnan (same) ? INFINITY : same, &error);
      g_assert_no_error (error);
      if (isnan (same)) /* the norm of Frobenius is not that of the sums of rows */
        g_assert_cmpfloat (gtorch_tensor_item_double (none, NULL), <,
                           gtorch_tensor_item_double (given, NULL));
      else if (!g_str_equal (numbers_left_out[i].op, "nan_to_num"))
        assert_same (none, given);
      else /* the element of which the argument speaks */
        g_assert_cmpfloat (test_element (none, i), ==, same);
      g_clear_pointer (&given, gtorch_tensor_unref);
      given = numbers_left_out[i].call (NAN, &error);
      if (numbers_left_out[i].is_refused)
        {
          g_autofree gchar *lead = g_strconcat (numbers_left_out[i].op, ": ", NULL);

          g_assert_null (given);
          g_assert_nonnull (error);
          g_assert_true (g_str_has_prefix (error->message, lead));
          g_assert_nonnull (strstr (error->message, "nan"));
          continue;
        }
      g_assert_no_error (error);
      is_nan = gtorch_tensor_isnan (given, NULL);
      any = gtorch_tensor_any (is_nan, NULL, 0, FALSE, NULL);
      g_assert_cmpint (gtorch_tensor_item_int (any, NULL), ==, 1);
    }
}

/* The table above has all arguments of rows that may be left out. */
static void
numbers_that_are_left_out_are_all_known (void)
{
  guint n = 0;

  for (guint i = 0; i < gtorch_n_ops; i++)
    for (guint k = 0; k < gtorch_ops[i].n_args; k++)
      {
        const GTorchArgSpec *arg = &gtorch_ops[i].args[k];
        gboolean is_known = FALSE;

        /* see test-embedding.c, test-signal.c, computed_cases.py, and interpolate, which calls resample */
        if (arg->kind != GTORCH_ARG_DOUBLE || g_strcmp0 (arg->default_value, "none") != 0
            || g_regex_match_simple ("^(embedding|signal_|res|frac)", gtorch_ops[i].name, 0, 0))
          continue;
        for (guint j = 0; j < G_N_ELEMENTS (numbers_left_out); j++)
          is_known |= g_str_equal (numbers_left_out[j].op, gtorch_ops[i].name)
                      && g_str_equal (numbers_left_out[j].arg, arg->name);
        if (!is_known)
          g_error ("%s, %s is not tried", gtorch_ops[i].name, arg->name);
        n++;
      }
  g_assert_cmpuint (n, ==, G_N_ELEMENTS (numbers_left_out) - 1); /* one is there twice */
}

static void
a_scale_of_0_is_given (void)
{
  g_autoptr (GTorchTensor) even = call_attention (0, NULL);
  g_autoptr (GTorchTensor) v = ramp (3, 2);
  g_autoptr (GTorchTensor) mean =
      gtorch_tensor_mean (v, (const gint64[]){ 0 }, 1, TRUE, GTORCH_DTYPE_NONE, NULL);
  g_autoptr (GTorchTensor) difference = gtorch_tensor_sub (even, mean, 1, NULL);
  g_autoptr (GTorchTensor) size = gtorch_tensor_norm (difference, 2, NULL, 0, FALSE, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_cmpfloat (gtorch_tensor_item_double (size, NULL), <, 1e-14);
  g_assert_null (gtorch_cdist (size, size, -1, GTORCH_CDIST_MODE_USE_MM_FOR_EUCLID_DIST, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
}

/* pad has no number for “not given”: it is 0 then. */
static void
pad_fills_nan (void)
{
  g_autoptr (GTorchTensor) x = ramp (1, 2);
  g_autoptr (GTorchTensor) filled =
      gtorch_pad (x, GTORCH_SHAPE (1, 0), GTORCH_PAD_MODE_CONSTANT, NAN, NULL);
  g_autoptr (GError) error = NULL;

  g_assert_true (isnan (test_element (filled, 0)));
  g_assert_cmpfloat (test_element (filled, 1), ==, 1);
  g_assert_null (gtorch_pad (x, GTORCH_SHAPE (1, 0), GTORCH_PAD_MODE_REPLICATE, NAN, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "pad: a value of nan is given: only the constant mode has one");
}

static void
a_range_of_one_point_is_given (void)
{
  g_autoptr (GTorchTensor) x = ramp (1, 4);
  g_autoptr (GTorchTensor) edges = NULL;
  g_autoptr (GTorchTensor) none = NULL;
  g_autoptr (GError) error = NULL;

  gtorch_tensor_histogram (x, 2, 0, 0, NULL, FALSE, NULL, &edges, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (test_element (edges, 0), ==, -0.5);
  g_assert_cmpfloat (test_element (edges, 2), ==, 0.5);
  g_assert_false (
      gtorch_tensor_histogram (x, 2, 0, GTORCH_NONE_DOUBLE, NULL, FALSE, NULL, &none, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "histogram: low is 0 and high is not given: there must be both or none");
}

/* What is out of a range is told both of its ends. */
static void
ranges_are_told_whole (void)
{
  const gint64 huge = G_GINT64_CONSTANT (1) << 62;
  g_autoptr (GTorchTensor) square = ramp (4, 4);
  g_autoptr (GTorchTensor) x = gtorch_tensor_reshape (square, GTORCH_SHAPE (1, 1, 4, 4), NULL);
  g_autoptr (GTorchTensor) w =
      gtorch_ones (GTORCH_SHAPE (1, 1, 2, 2), GTORCH_DTYPE_FLOAT64, NULL, NULL);

  for (guint i = 0; i < 6; i++)
    {
      const gint64 numbers[] = { i == 0 ? huge : 1, i == 1 ? huge : 0, i == 2 ? huge : 1 };
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) y = NULL;

      if (i < 3)
        y = gtorch_conv2d (x, w, NULL, &numbers[0], 1, &numbers[1], 1, &numbers[2], 1, 1, &error);
      else if (i == 3)
        y = gtorch_tensor_adaptive_avg_pool2d (x, &huge, 1, &error);
      else if (i == 4)
        y = gtorch_tensor_avg_pool2d (x, &huge, 1, NULL, 0, GTORCH_SHAPE (0), FALSE, TRUE,
                                      GTORCH_NONE, &error);
      else
        y = gtorch_tensor_avg_pool2d (x, GTORCH_SHAPE (2), &huge, 1, GTORCH_SHAPE (0), FALSE, TRUE,
                                      GTORCH_NONE, &error);
      g_assert_null (y);
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      g_assert_nonnull (strstr (error->message, " to 2147483647, it is "));
    }
}

static void
assert_refused (GTorchTensor *result, GError **error, const gchar *message)
{
  g_assert_null (result);
  g_assert_error (*error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr ((*error)->message, ==, message);
  g_clear_error (error);
}

static GTorchTensor *
numbers (const gdouble *elements, gsize n, guint dtype)
{
  const gint64 shape = n;

  return gtorch_tensor_new_from_doubles (elements, n, &shape, 1, dtype, test_device (), NULL);
}

/* The host reads these values, wherever they are. */
static void
negative_weights_and_variances_are_refused (void)
{
  static const gdouble good[] = { 0, 2, 1 }, bad[] = { 1, -1, 2 }, lost[] = { 1, NAN, 2 };
  g_autoptr (GTorchTensor) x = numbers (good, 3, GTORCH_DTYPE_FLOAT32);
  g_autoptr (GTorchTensor) negative = numbers (bad, 3, GTORCH_DTYPE_FLOAT32);
  g_autoptr (GTorchTensor) nan = numbers (lost, 3, GTORCH_DTYPE_FLOAT32);
  g_autoptr (GTorchTensor) counts = numbers (good, 3, GTORCH_DTYPE_INT64);
  g_autoptr (GTorchTensor) no_counts = numbers (bad, 3, GTORCH_DTYPE_INT64);
  g_autoptr (GTorchTensor) right = NULL;
  g_autoptr (GTorchTensor) loss = NULL;
  g_autoptr (GTorchTensor) unknown = NULL;
  g_autoptr (GError) error = NULL;

  right = gtorch_tensor_cov (x, 1, counts, x, &error);
  g_assert_no_error (error);
  g_assert_nonnull (right);
  assert_refused (gtorch_tensor_cov (x, 1, no_counts, NULL, &error), &error,
                  "cov: fweights of shape [3]: none may be negative or NaN");
  assert_refused (gtorch_tensor_cov (x, 1, counts, negative, &error), &error,
                  "cov: aweights of shape [3]: none may be negative or NaN");
  assert_refused (gtorch_tensor_cov (x, 1, NULL, nan, &error), &error,
                  "cov: aweights of shape [3]: none may be negative or NaN");
  loss = gtorch_gaussian_nll_loss (x, x, x, FALSE, 1e-6, GTORCH_REDUCTION_MEAN, &error);
  g_assert_no_error (error);
  g_assert_nonnull (loss);
  assert_refused (gtorch_gaussian_nll_loss (x, x, negative, FALSE, 1e-6, GTORCH_REDUCTION_MEAN,
                                            &error),
                  &error, "gaussian_nll_loss: variances of shape [3]: none may be negative");
  unknown = gtorch_gaussian_nll_loss (x, x, nan, FALSE, 1e-6, GTORCH_REDUCTION_SUM, &error);
  g_assert_no_error (error);
  g_assert_true (isnan (gtorch_tensor_item_double (unknown, NULL)));
}

/* A norm that compares, or has a negative order, is undefined without elements; others are 0. */
static void
norms_of_nothing_are_refused (void)
{
  static const gdouble undefined[] = { INFINITY, -INFINITY, -1, -2.5 },
                       zero[] = { 0, 0.5, 1, 2, 3 };
  g_autoptr (GTorchTensor) x =
      gtorch_zeros (GTORCH_SHAPE (0, 3), GTORCH_DTYPE_FLOAT32, test_device (), NULL);
  g_autoptr (GTorchTensor) distances = NULL;
  g_autoptr (GTorchTensor) points =
      gtorch_zeros (GTORCH_SHAPE (2, 0), GTORCH_DTYPE_FLOAT32, test_device (), NULL);
  const gint64 first = 0, last = 1;

  for (guint i = 0; i < G_N_ELEMENTS (undefined); i++)
    {
      g_autoptr (GTorchTensor) rows = NULL;
      g_autoptr (GError) error = NULL;

      g_assert_null (gtorch_tensor_norm (x, undefined[i], NULL, 0, FALSE, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
      g_assert_nonnull (strstr (error->message, "norm: dim 0 of shape [0, 3] has no elements"));
      g_clear_error (&error);
      g_assert_null (
          gtorch_linalg_vector_norm (x, undefined[i], &first, 1, FALSE, GTORCH_DTYPE_NONE, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
      g_assert_true (g_str_has_prefix (error->message, "linalg_vector_norm: dim 0"));
      g_clear_error (&error);
      rows =
          gtorch_linalg_vector_norm (x, undefined[i], &last, 1, FALSE, GTORCH_DTYPE_NONE, &error);
      g_assert_no_error (error);
      g_assert_cmpint (gtorch_tensor_get_numel (rows), ==, 0);
    }
  for (guint i = 0; i < G_N_ELEMENTS (zero); i++)
    {
      g_autoptr (GTorchTensor) norm = gtorch_tensor_norm (x, zero[i], NULL, 0, FALSE, NULL);

      g_assert_cmpfloat (gtorch_tensor_item_double (norm, NULL), ==, 0);
    }
  distances = gtorch_cdist (points, points, INFINITY, 0, NULL);
  for (gsize i = 0; i < 4; i++)
    g_assert_cmpfloat (test_element (distances, i), ==, 0);
}

/* Where the host does not read them, the device reports them, with the value. */
static void
quantiles_out_of_range_are_named (void)
{
  static const gdouble wrong[] = { 1.25, 1.0625, -0.5, -2, NAN };
  static const gdouble elements[] = { 3, 1, 2, 5, 4 };

  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++)
    for (guint k = 0; k < 8; k++)
      {
        const gdouble numbers_of[] = { 0.5, wrong[i] };
        const GTorchInterpolation how =
            k & 1 ? GTORCH_INTERPOLATION_LOWER : GTORCH_INTERPOLATION_LINEAR;
        g_autoptr (GTorchTensor) x = numbers (elements, k & 2 ? 1 : 5, GTORCH_DTYPE_FLOAT32);
        g_autoptr (GTorchTensor) q = numbers (numbers_of, 2, GTORCH_DTYPE_FLOAT32);
        g_autoptr (GTorchTensor) found = NULL;
        g_autoptr (GError) error = NULL;
        g_autofree gchar *text =
            g_strdup_printf ("%squantile: q contains %g: each number must be between 0 and 1",
                             k & 4 ? "nan" : "", wrong[i]);

        found = k & 4 ? gtorch_tensor_nanquantile (x, q, GTORCH_NONE, FALSE, how, &error)
                      : gtorch_tensor_quantile (x, q, GTORCH_NONE, FALSE, how, &error);
        if (found != NULL)
          g_assert_false (gtorch_device_synchronize (test_device (), NULL, &error));
        g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
        if (!isnan (wrong[i]) && !g_str_has_prefix (error->message, text))
          g_error ("the message is “%s”, expected “%s”", error->message, text);
      }
}

/* Every row with a generator refuses one that was created for another device. */
static void
generators_of_other_devices_are_refused (void)
{
  g_autoptr (GTorchGenerator) generator = NULL;
  guint n = 0;

  if (test_device () == gtorch_device_cpu ())
    {
      g_test_skip ("there is no other device");
      return;
    }
  generator = gtorch_generator_new_for_device (gtorch_device_cpu ());
  g_assert_true (gtorch_generator_get_device (generator) == gtorch_device_cpu ());
  for (guint i = 0; i < gtorch_n_op_samples; i++)
    {
      GTorchOpSample sample = gtorch_op_samples[i];
      const GTorchOpClass *op = &gtorch_ops[sample.op];
      GTorchAttr attrs[MAX_ATTRS];
      g_auto (Inputs) inputs = { .n = 0 };
      g_autoptr (GPtrArray) results = NULL;
      g_autoptr (GError) error = NULL;
      gboolean has_generator = FALSE;
      guint attr = 0;

      for (guint k = 0; k < op->n_args; k++)
        {
          if (op->args[k].kind <= GTORCH_ARG_TENSORS)
            continue;
          attrs[attr] = sample.attrs[attr];
          if (op->args[k].kind == GTORCH_ARG_GENERATOR)
            {
              attrs[attr].p = generator;
              has_generator = TRUE;
            }
          else if (op->args[k].kind == GTORCH_ARG_DEVICE)
            attrs[attr].p = test_device ();
          else if (g_str_equal (op->args[k].name, "training"))
            attrs[attr].i = TRUE;
          attr++;
        }
      if (!has_generator)
        continue;
      sample.attrs = attrs;
      inputs_make (&inputs, &sample, GTORCH_DTYPE_FLOAT32, LAYOUT_CONTIGUOUS);
      inputs_move (&inputs);
      results = invoke (&sample, &inputs, &error);
      g_assert_null (results);
      g_assert_nonnull (error);
      if (error->code == GTORCH_ERROR_NOT_SUPPORTED || strstr (error->message, "nothing is drawn"))
        continue;
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH);
      g_assert_nonnull (strstr (error->message, "the generator is one of cpu"));
      n++;
    }
  g_assert_cmpuint (n, >, 10);
}

int
main (int argc, char *argv[])
{
  guint i, k;

  g_test_init (&argc, &argv, NULL);
  for (i = 0; i < gtorch_n_op_samples; i++)
    {
      const GTorchOpClass *op = &gtorch_ops[gtorch_op_samples[i].op];
      gboolean wanted = FALSE;

      for (k = 0; k < op->n_args; k++)
        wanted |= op->args[k].kind == GTORCH_ARG_DOUBLE || op->args[k].kind == GTORCH_ARG_NUMBER;
      if (wanted)
        {
          g_autofree gchar *path =
              g_strdup_printf ("/GTorch/settings/%s_%u", op->name, gtorch_op_samples[i].index);

          g_test_add_data_func (path, &gtorch_op_samples[i],
                                invalid_numbers_are_refused_or_give_nan);
        }
    }
  g_test_add_func ("/GTorch/settings/enough_calls_ran", enough_calls_ran);
#define ADD(name) g_test_add_func ("/GTorch/settings/" #name, name)
  ADD (integers_that_are_left_out_have_a_value_of_their_own);
  ADD (defaults_are_numbers_or_none);
  ADD (negative_rows_count_from_the_end);
  ADD (numbers_that_are_left_out_have_a_value_of_their_own);
  ADD (numbers_that_are_left_out_are_all_known);
  ADD (a_scale_of_0_is_given);
  ADD (pad_fills_nan);
  ADD (a_range_of_one_point_is_given);
  ADD (ranges_are_told_whole);
  ADD (negative_weights_and_variances_are_refused);
  ADD (norms_of_nothing_are_refused);
  ADD (quantiles_out_of_range_are_named);
  ADD (generators_of_other_devices_are_refused);
  return g_test_run ();
}
