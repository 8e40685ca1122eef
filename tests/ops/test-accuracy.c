/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Operations that sum many numbers. All numbers are equal, or of two kinds: then each addition to one
 * accumulator is rounded in the same direction, and the exact result is known. No result may have more
 * than CHAIN consecutive roundings, and one for each 256 elements, whose errors add up: millions of
 * additions to one float32 would be wrong by some per cent. The number of elements is
 * GTORCH_TEST_ELEMENTS, or a million. */

#include "config.h"

#include <math.h>

#include "gtorch-ops-private.h"
#include "op-values.h"

#define CHAIN 1024

typedef struct
{
  guint dtype;
  gint64 n;
  gdouble c;         /* rounded to the dtype */
  gdouble chain;     /* number of roundings, if not the default above */
  GTorchImpl *x;     /* n elements c */
  GTorchImpl *mixed; /* alternating c and 2 c */
  GTorchImpl *ones;
} Data;

static gint64 n_elements = 1000000; /* fewer where each access is checked */

static GTorchImpl *
filled (const gint64 *shape, guint n_dims, gdouble value, guint dtype)
{
  GError *error = NULL;
  GTorchImpl *impl = gtorch_op_full (shape, n_dims, value, dtype, test_device (), &error);

  g_assert_no_error (error);
  return impl;
}

static GTorchImpl *
shaped (GTorchImpl *impl, const gint64 *shape, guint n_dims)
{
  return gtorch_impl_new_view (impl, impl->offset, shape, NULL, n_dims);
}

static void
data_init (Data *data, guint dtype)
{
  const gint64 n = n_elements;
  const gint64 half[] = { n / 2, 1 };
  g_autoptr (GTorchImpl) low = NULL;
  g_autoptr (GTorchImpl) high = NULL;
  g_autoptr (GTorchImpl) pairs = NULL;
  GError *error = NULL;

  data->dtype = dtype;
  data->n = n;
  /* keeps sums in the range of float16 */
  data->x = filled (&n, 1, dtype == GTORCH_DTYPE_FLOAT16 ? 0.0011 : 0.1, dtype);
  data->c = creal (element_get (data->x, 0));
  data->ones = filled (&n, 1, 1, dtype);
  low = filled (half, 2, data->c, dtype);
  high = filled (half, 2, 2 * data->c, dtype);
  pairs = gtorch_op_cat ((GTorchImpl *[]){ low, high }, 2, 1, &error);
  g_assert_no_error (error);
  data->mixed = shaped (pairs, &n, 1);
}

static void
data_clear (Data *data)
{
  g_clear_pointer (&data->x, gtorch_impl_unref);
  g_clear_pointer (&data->mixed, gtorch_impl_unref);
  g_clear_pointer (&data->ones, gtorch_impl_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Data, data_clear)

/* Checks element i of the result; consumes the result. */
static void
check_at (const Data *data, const gchar *what, GTorchImpl *result, gint64 i, gdouble expected)
{
  const guint dtype = result->dtype;
  /* Products add those of blocks of at least 256 to the result, and scans on GPUs pass on the sums of
   * blocks. */
  const gdouble chain = data->chain > 0 ? data->chain : CHAIN + (gdouble) data->n / 256;
  const gdouble tolerance = gtorch_dtype_infos[dtype].eps
                            + chain * gtorch_dtype_infos[gtorch_dtype_infos[dtype].compute].eps / 2;
  const gdouble value = creal (element_get (result, i));

  /* float16 has no normal numbers below 2^-14 */
  if (fabs (value - expected)
      <= tolerance * MAX (fabs (expected), dtype == GTORCH_DTYPE_FLOAT16 ? 0x1p-14 : 0))
    return;
  g_test_message ("%s, %s, element %" G_GINT64_FORMAT ": %.9g, expected %.9g (off by %.2g)", what,
                  gtorch_dtype_get_name (data->dtype), i, value, expected,
                  fabs (value / expected - 1));
  g_test_fail ();
}

static void
check (const Data *data, const gchar *what, GTorchImpl *result, GError *error, gdouble expected)
{
  g_autoptr (GTorchImpl) host = NULL;

  if (error != NULL && is_lacking (error))
    return;
  g_assert_no_error (error);
  host = impl_to_host (result);
  check_at (data, what, host, host->numel - 1, expected);
  gtorch_impl_unref (result);
}

#define CHECK(what, call, expected)                  \
  G_STMT_START                                       \
  {                                                  \
    GError *error = NULL;                            \
    GTorchImpl *result_ = call;                      \
    check (&data, what, result_, error, (expected)); \
  }                                                  \
  G_STMT_END

static void
reductions (gconstpointer dtype)
{
  g_auto (Data) data = { 0 };
  gdouble n, c;
  gint64 rows[2];
  g_autoptr (GTorchImpl) columns = NULL;
  const gint64 first = 0;

  data_init (&data, GPOINTER_TO_UINT (dtype));
  n = data.n;
  c = data.c;
  rows[0] = data.n / 4;
  rows[1] = 4;
  columns = shaped (data.x, rows, 2);
  CHECK ("sum", gtorch_op_sum (data.x, NULL, 0, FALSE, 0, &error), n * c);
  CHECK ("sum of columns", gtorch_op_sum (columns, &first, 1, FALSE, 0, &error), n / 4 * c);
  CHECK ("nansum", gtorch_op_nansum (data.x, NULL, 0, FALSE, 0, &error), n * c);
  CHECK ("mean", gtorch_op_mean (data.x, NULL, 0, FALSE, 0, &error), c);
  CHECK ("nanmean", gtorch_op_nanmean (data.x, NULL, 0, FALSE, &error), c);
  CHECK ("norm", gtorch_op_norm (data.x, 2, NULL, 0, FALSE, &error), sqrt (n) * c);
  CHECK ("norm 1", gtorch_op_norm (data.x, 1, NULL, 0, FALSE, &error), n * c);
  CHECK ("var", gtorch_op_var (data.mixed, NULL, 0, 1, FALSE, &error), c * c / 4 * n / (n - 1));
  CHECK ("std", gtorch_op_std (data.mixed, NULL, 0, 1, FALSE, &error), c / 2 * sqrt (n / (n - 1)));
  CHECK ("logsumexp", gtorch_op_logsumexp (data.x, &first, 1, FALSE, &error), c + log (n));
  CHECK ("softmax", gtorch_op_softmax (data.ones, 0, GTORCH_DTYPE_FLOAT32, &error), 1 / n);
  CHECK ("log_softmax", gtorch_op_log_softmax (data.ones, 0, GTORCH_DTYPE_FLOAT32, &error),
         -log (n));
}

static void
running_sums (gconstpointer dtype)
{
  g_auto (Data) data = { 0 };
  g_autoptr (GTorchImpl) backwards = NULL;
  g_autoptr (GTorchImpl) columns = NULL;
  g_autoptr (GTorchImpl) near = NULL;
  g_autoptr (GTorchImpl) near_columns = NULL;
  gint64 rows[2];
  gdouble n, c;

  data_init (&data, GPOINTER_TO_UINT (dtype));
  n = data.n;
  c = data.c;
  rows[0] = data.n / 4;
  rows[1] = 4;
  columns = shaped (data.x, rows, 2);
  CHECK ("cumsum", gtorch_op_cumsum (data.x, 0, 0, &error), n * c);
  CHECK ("cumsum of columns", gtorch_op_cumsum (columns, 0, 0, &error), n / 4 * c);
  backwards = gtorch_op_cumsum_reverse (data.x, 0, NULL);
  CHECK ("cumsum_reverse", gtorch_op_flip (backwards, (gint64[]){ 0 }, 1, &error), n * c);
  CHECK ("logcumsumexp", gtorch_op_logcumsumexp (data.x, 0, &error), c + log (n));
  if (data.dtype == GTORCH_DTYPE_FLOAT32)
    {
      near = filled (&data.n, 1, 1 + 0x1p-22, data.dtype);
      /* the rounding of each factor would count */
      if (test_device ()->type == GTORCH_DEVICE_TYPE_CPU)
        data.chain = 3;
      near_columns = shaped (near, rows, 2);
      CHECK ("prod", gtorch_op_prod (near, NULL, 0, FALSE, 0, &error), exp (n * log1p (0x1p-22)));
      CHECK ("prod of columns", gtorch_op_prod (near_columns, (gint64[]){ 0 }, 1, FALSE, 0, &error),
             exp (n / 4 * log1p (0x1p-22)));
      CHECK ("prod_others", gtorch_op_prod_others (near, NULL, 0, &error),
             exp (n * log1p (0x1p-22)));
      CHECK ("cumprod", gtorch_op_cumprod (near, 0, 0, &error), exp (n * log1p (0x1p-22)));
    }
}

static void
products (gconstpointer dtype)
{
  g_auto (Data) data = { 0 };
  g_autoptr (GTorchImpl) one = NULL;
  g_autoptr (GTorchImpl) expanded = NULL;
  g_autoptr (GTorchImpl) apart = NULL;
  g_autoptr (GTorchImpl) matrix = NULL;
  g_autoptr (GTorchImpl) turned = NULL;
  g_autoptr (GTorchImpl) ones_expanded = NULL;
  g_autoptr (GTorchImpl) ones_short = NULL;
  g_autoptr (GTorchImpl) turned_back = NULL;
  g_autoptr (GTorchImpl) scattered_turned = NULL;
  g_autoptr (GTorchImpl) scattered = NULL;
  gint64 half, shape[2];
  gdouble n, c;

  data_init (&data, GPOINTER_TO_UINT (dtype));
  n = data.n;
  c = data.c;
  half = data.n / 2;
  shape[0] = 2;
  shape[1] = half;
  expanded = gtorch_impl_new_view (data.x, 0, &data.n, (gint64[]){ 0 }, 1);
  apart = gtorch_impl_new_view (data.x, 0, &half, (gint64[]){ 2 }, 1);
  one = gtorch_impl_new_view (data.ones, 0, &half, (gint64[]){ 1 }, 1);
  matrix = shaped (data.x, shape, 2);
  turned = gtorch_impl_new_view (data.x, 0, (gint64[]){ half, 2 }, (gint64[]){ 1, half }, 2);
  scattered = gtorch_impl_new_view (data.x, 0, (gint64[]){ 2, half / 2 },
                                    (gint64[]){ 2 * (half / 2), 2 }, 2);
  ones_expanded = gtorch_impl_new_view (data.ones, 0, &half, (gint64[]){ 0 }, 1);
  ones_short = gtorch_impl_new_view (data.ones, 0, (gint64[]){ half / 2 }, (gint64[]){ 1 }, 1);
  turned_back = gtorch_op_transpose (turned, 0, 1, NULL);
  scattered_turned = gtorch_op_transpose (scattered, 0, 1, NULL);
  CHECK ("dot", gtorch_op_dot (data.x, data.ones, &error), n * c);
  CHECK ("dot, expanded", gtorch_op_dot (expanded, data.ones, &error), n * c);
  CHECK ("dot, expanded on the right", gtorch_op_dot (data.ones, expanded, &error), n * c);
  CHECK ("dot, apart", gtorch_op_dot (apart, one, &error), (gdouble) half * c);
  CHECK ("mv", gtorch_op_mv (matrix, one, &error), (gdouble) half * c);
  CHECK ("mv, expanded", gtorch_op_mv (matrix, ones_expanded, &error), (gdouble) half * c);
  CHECK ("mv, apart", gtorch_op_mv (scattered, ones_short, &error), (gdouble) (half / 2) * c);
  CHECK ("mm", gtorch_op_mm (matrix, turned, &error), (gdouble) half * c * c);
  CHECK ("mm of columns", gtorch_op_mm (turned_back, turned, &error), (gdouble) half * c * c);
  CHECK ("mm, apart", gtorch_op_mm (scattered, scattered_turned, &error),
         (gdouble) (half / 2) * c * c);
}

static void
losses (gconstpointer dtype)
{
  g_auto (Data) data = { 0 };
  g_autoptr (GTorchImpl) zeros = NULL;
  g_autoptr (GTorchImpl) classes = NULL;
  g_autoptr (GTorchImpl) scores = NULL;
  g_autoptr (GTorchImpl) weight = NULL;
  const GTorchReduction mean = GTORCH_REDUCTION_MEAN, sum = GTORCH_REDUCTION_SUM;
  gdouble c, n;
  gint64 half;

  data_init (&data, GPOINTER_TO_UINT (dtype));
  n = data.n;
  c = data.c;
  half = data.n / 2;
  zeros = filled (&data.n, 1, 0, data.dtype);
  classes = filled (&half, 1, 1, GTORCH_DTYPE_INT64);
  scores = shaped (data.x, (gint64[]){ half, 2 }, 2);
  weight = filled ((gint64[]){ 2 }, 1, c, data.dtype);
  CHECK ("mse_loss", gtorch_op_mse_loss (data.x, zeros, mean, &error), c * c);
  CHECK ("l1_loss", gtorch_op_l1_loss (data.x, zeros, sum, &error), n * c);
  CHECK ("huber_loss", gtorch_op_huber_loss (data.x, zeros, mean, 1, &error), c * c / 2);
  CHECK ("smooth_l1_loss", gtorch_op_smooth_l1_loss (data.x, zeros, mean, 1, &error), c * c / 2);
  CHECK ("binary_cross_entropy_with_logits",
         gtorch_op_binary_cross_entropy_with_logits (zeros, zeros, NULL, NULL, mean, &error),
         log (2));
  CHECK ("cross_entropy", gtorch_op_cross_entropy (scores, classes, NULL, mean, -100, 0, &error),
         log (2));
  CHECK ("cross_entropy with weights",
         gtorch_op_cross_entropy (scores, classes, weight, mean, -100, 0, &error), log (2));
  CHECK ("cross_entropy, smooth",
         gtorch_op_cross_entropy (scores, classes, NULL, mean, -100, 0.1, &error), log (2));
  CHECK ("nll_loss", gtorch_op_nll_loss (scores, classes, NULL, mean, -100, &error), -c);
}

/* The mean of c and 2 c is 1.5 c, their variance c c / 4. */
static void
statistics (gconstpointer dtype)
{
  g_auto (Data) data = { 0 };
  g_autoptr (GTorchImpl) output = NULL;
  g_autoptr (GTorchImpl) mean = NULL;
  g_autoptr (GTorchImpl) spread = NULL;
  g_autoptr (GTorchImpl) image = NULL;
  g_autoptr (GTorchImpl) turned = NULL;
  GError *failed = NULL;
  gint64 side = 2000, high;
  gdouble c;

  data_init (&data, GPOINTER_TO_UINT (dtype));
  c = data.c;
  high = data.n / side;
  g_assert_true (
      gtorch_op_native_layer_norm (data.mixed, NULL, NULL, 1, 0, &output, &mean, &spread, &failed));
  check (&data, "mean of layer_norm", g_steal_pointer (&mean), NULL, 1.5 * c);
  check (&data, "deviation of layer_norm", g_steal_pointer (&spread), NULL, 2 / c);
  g_clear_pointer (&output, gtorch_impl_unref);
  turned = gtorch_impl_new_view (data.mixed, 0, (gint64[]){ data.n, 1 }, (gint64[]){ 1, 1 }, 2);
  g_assert_true (
      gtorch_op_native_batch_norm (turned, NULL, NULL, 0, &output, &mean, &spread, &failed));
  check (&data, "mean of batch_norm", g_steal_pointer (&mean), NULL, 1.5 * c);
  check (&data, "variance of batch_norm", g_steal_pointer (&spread), NULL, c * c / 4);
  image = shaped (data.x, (gint64[]){ 1, 1, high, side }, 4);
  CHECK ("adaptive_avg_pool2d",
         gtorch_op_adaptive_avg_pool2d (image, (gint64[]){ 1, 1 }, 2, &error), c);
  CHECK ("avg_pool2d",
         gtorch_op_avg_pool2d (image, (gint64[]){ high, side }, 2, (gint64[]){ 1, 1 }, 2,
                               (gint64[]){ 0, 0 }, 2, FALSE, TRUE, GTORCH_NONE, &error),
         c);
}

static void
gradients (gconstpointer dtype)
{
  g_auto (Data) data = { 0 };
  g_autoptr (GTorchImpl) a = NULL;
  g_autoptr (GTorchImpl) b = NULL;
  g_autoptr (GTorchImpl) first = NULL;
  g_autoptr (GTorchImpl) second = NULL;
  g_autoptr (GTorchImpl) third = NULL;
  GError *failed = NULL;
  gint64 shape[2], bins[1] = { 0 };
  gdouble n, c;
  g_autoptr (GTorchImpl) zeros = NULL;

  data_init (&data, GPOINTER_TO_UINT (dtype));
  n = data.n;
  c = data.c;
  shape[0] = data.n;
  shape[1] = 1;
  a = shaped (data.x, shape, 2);
  b = shaped (data.ones, shape, 2);
  g_assert_true (gtorch_op_linear_grads (a, b, &first, &second, &failed));
  check (&data, "weights of linear", g_steal_pointer (&first), NULL, n * c);
  check (&data, "bias of linear", g_steal_pointer (&second), NULL, n * c);
  {
    g_autoptr (GTorchImpl) zero = filled (&data.n, 1, 0, data.dtype);
    g_autoptr (GTorchImpl) one = filled (&data.n, 1, 1, data.dtype);

    g_assert_true (
        gtorch_op_layer_norm_backward (a, b, NULL, zero, one, &first, &second, &third, &failed));
    check (&data, "weights of layer_norm", g_steal_pointer (&second), NULL, n * c);
    check (&data, "bias of layer_norm", g_steal_pointer (&third), NULL, n * c);
  }
  bins[0] = data.n;
  zeros = filled (bins, 1, 0, GTORCH_DTYPE_INT64);
  CHECK ("bincount", gtorch_op_bincount (zeros, data.x, 0, &error), n * c);
}

static GTorchImpl *
indices (gint64 n, gint64 (*place) (gint64 i, gint64 n))
{
  GTorchImpl *index = filled (&n, 1, 0, GTORCH_DTYPE_INT64);
  g_autoptr (GTorchImpl) host = impl_to_host (index);
  gint64 *places = gtorch_impl_data (host);
  gint64 i;

  for (i = 0; i < n; i++)
    places[i] = place (i, n);
  g_assert_true (gtorch_op_copy_inplace (index, host, FALSE, NULL));
  return index;
}

static gint64
last (gint64 i, gint64 n)
{
  return n - 1;
}

/* Every second element goes to the last index, the others to as many other indices. */
static gint64
half_last (gint64 i, gint64 n)
{
  return i % 2 == 0 ? n - 1 : i / 2;
}

/* Every `period`-th element goes to the last index; if negative, about as many at random. */
static gint64 period;

static gint64
sometimes_last (gint64 i, gint64 n)
{
  const guint64 noise = ((guint64) i * G_GUINT64_CONSTANT (0xd1342543de82ef95)) >> 32;

  return (period > 0 ? i : (gint64) (noise ^ noise >> 15)) % ABS (period) == ABS (period) - 1
             ? n - 1
             : i / 2;
}

/* Each sum of a crowd is rounded once, however small its share is, and wherever its elements are. */
static void
crowds_of_all_periods (void)
{
  static const gint64 periods[] = { 2, 3, 5, 8, 13, 16, 21, 32, 89 };
  g_auto (Data) data = { 0 };
  gint64 i;
  guint k;

  data_init (&data, GTORCH_DTYPE_FLOAT32);
  if (gtorch_device_get_device_type (test_device ()) == GTORCH_DEVICE_TYPE_CPU)
    data.chain = 2;
  for (k = 0; k < 2 * G_N_ELEMENTS (periods); k++)
    {
      const gint64 pair[] = { data.n / 2, 2 };
      g_autoptr (GTorchImpl) index = NULL;
      g_autoptr (GTorchImpl) index_pair = NULL;
      g_autoptr (GTorchImpl) target = filled (&data.n, 1, 0, data.dtype);
      g_autoptr (GTorchImpl) target_pair = filled (pair, 2, 0, data.dtype);
      g_autoptr (GTorchImpl) x_pair = shaped (data.x, pair, 2);
      g_autoptr (GTorchImpl) limit = filled (NULL, 0, data.n / 2 - 1, GTORCH_DTYPE_INT64);
      g_autoptr (GTorchImpl) column = NULL;
      gint64 n = 0, n_column = 0;

      period = periods[k / 2] * (k % 2 == 0 ? 1 : -1);
      for (i = 0; i < data.n; i++)
        {
          const gboolean is_last = sometimes_last (i, data.n) >= data.n / 2 - 1;

          n += sometimes_last (i, data.n) == data.n - 1;
          n_column += is_last && i % 2 == 1;
        }
      index = indices (data.n, sometimes_last);
      column = gtorch_op_minimum (index, limit, NULL);
      index_pair = shaped (column, pair, 2);
      g_test_message ("period %" G_GINT64_FORMAT, period);
      CHECK ("scatter_add", gtorch_op_scatter_add (target, 0, index, data.x, &error), n * data.c);
      CHECK ("index_add", gtorch_op_index_add (target, 0, index, data.x, 1, &error), n * data.c);
      if (n_column > 1000)
        CHECK ("scatter_add of columns",
               gtorch_op_scatter_add (target_pair, 0, index_pair, x_pair, &error),
               n_column * data.c);
    }
}

/* The indices of the elements, and the number of indices. */
static void
crowds_of (Data data, const gchar *what, gint64 (*place) (gint64 i, gint64 n), gint64 n_places,
           gdouble part)
{
  const gint64 n = data.n, one = 1;
  const gdouble expected = n * part * data.c;
  g_autoptr (GTorchImpl) found = indices (n, place);
  g_autoptr (GTorchImpl) limit = filled (&one, 1, n_places - 1, GTORCH_DTYPE_INT64);
  g_autoptr (GTorchImpl) index = gtorch_op_minimum (found, limit, NULL);
  g_autoptr (GTorchImpl) target = filled (&n_places, 1, 0, data.dtype);
  g_autoptr (GTorchImpl) column = shaped (data.x, (gint64[]){ n, 1 }, 2);
  g_autoptr (GTorchImpl) row = shaped (data.x, (gint64[]){ 1, n }, 2);
  g_autoptr (GTorchImpl) pair = gtorch_op_expand (column, (gint64[]){ n, 2 }, 2, NULL);
  g_autoptr (GTorchImpl) index_row = shaped (index, (gint64[]){ 1, n }, 2);
  g_autoptr (GTorchImpl) index_column = shaped (index, (gint64[]){ n, 1 }, 2);
  g_autoptr (GTorchImpl) index_pair = gtorch_op_expand (index_column, (gint64[]){ n, 2 }, 2, NULL);
  g_autoptr (GTorchImpl) target_row = shaped (target, (gint64[]){ 1, n_places }, 2);
  g_autoptr (GTorchImpl) target_pair = filled ((gint64[]){ n_places, 2 }, 2, 0, data.dtype);
  g_autoptr (GTorchImpl) turned = gtorch_op_transpose (target_pair, 0, 1, NULL);
  g_autoptr (GTorchImpl) pair_turned = gtorch_op_transpose (pair, 0, 1, NULL);
  const gint64 sizes[] = { n_places, 2 };
  const gint64 dim0 = 0;

  g_test_message ("%s", what);
  CHECK ("scatter_add", gtorch_op_scatter_add (target, 0, index, data.x, &error), expected);
  CHECK ("scatter_add of a row", gtorch_op_scatter_add (target_row, 1, index_row, row, &error),
         expected);
  CHECK ("scatter_add of columns", gtorch_op_scatter_add (target_pair, 0, index_pair, pair, &error),
         expected);
  CHECK ("index_add", gtorch_op_index_add (target, 0, index, data.x, 1, &error), expected);
  CHECK ("index_add of rows", gtorch_op_index_add (target_pair, 0, index, pair, 1, &error),
         expected);
  CHECK ("index_add of columns", gtorch_op_index_add (turned, 1, index, pair_turned, 1, &error),
         expected);
  CHECK ("index_put", gtorch_op_index_put (target_pair, pair, &index, 1, &dim0, 1, TRUE, &error),
         expected);
  CHECK ("put", gtorch_op_put (target, index, data.x, TRUE, &error), expected);
  CHECK ("embedding_backward", gtorch_op_embedding_backward (pair, index, sizes, 2, -1, &error),
         expected);
  if (expected < gtorch_dtype_infos[data.dtype].max)
    CHECK ("scatter_reduce to a mean",
           gtorch_op_scatter_reduce (target, 0, index, data.x, GTORCH_INDEX_REDUCTION_MEAN, FALSE,
                                     &error),
           data.c);
  CHECK ("index_reduce to a mean",
         gtorch_op_index_reduce (target_pair, 0, index, pair, GTORCH_INDEX_REDUCTION_MEAN, FALSE,
                                 &error),
         data.c);
  if (data.dtype == GTORCH_DTYPE_FLOAT32)
    {
      g_autoptr (GTorchImpl) near = filled (&n, 1, 1 + 0x1p-22, data.dtype);

      data.chain = data.chain > 0 ? 3 : 0;
      CHECK ("scatter_reduce to a product",
             gtorch_op_scatter_reduce (target, 0, index, near, GTORCH_INDEX_REDUCTION_PROD, FALSE,
                                       &error),
             exp (n * part * log1p (0x1p-22)));
    }
}

static void
crowds (gconstpointer dtype)
{
  g_auto (Data) data = { 0 };

  data_init (&data, GPOINTER_TO_UINT (dtype));
  crowds_of (data, "one of one place", last, 1, 1);
  crowds_of (data, "one of few places", last, 3000, 1);
  crowds_of (data, "one of as many places", last, data.n, 1);
  crowds_of (data, "one beside others", half_last, data.n, 0.5);
}

int
main (int argc, char *argv[])
{
  static const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT16,
                                        GTORCH_DTYPE_BFLOAT16 };
  static const struct
  {
    const gchar *name;
    GTestDataFunc func;
  } tests[] = {
    { "reductions", reductions }, { "running_sums", running_sums }, { "products", products },
    { "losses", losses },         { "statistics", statistics },     { "gradients", gradients },
    { "crowds", crowds },
  };
  const gchar *elements = g_getenv ("GTORCH_TEST_ELEMENTS");
  guint i, k;

  g_test_init (&argc, &argv, NULL);
  if (is_instrumented ())
    n_elements = 200000;
  if (elements != NULL)
    n_elements = MAX (g_ascii_strtoll (elements, NULL, 10), 4000) / 4000 * 4000;
  for (i = 0; i < G_N_ELEMENTS (tests); i++)
    for (k = 0; k < G_N_ELEMENTS (dtypes); k++)
      {
        g_autofree gchar *path = g_strdup_printf ("/GTorch/accuracy/%s/%s", tests[i].name,
                                                  gtorch_dtype_get_name (dtypes[k]));

        g_test_add_data_func (path, GUINT_TO_POINTER (dtypes[k]), tests[i].func);
      }
  g_test_add_func ("/GTorch/accuracy/crowds_of_all_periods/float32", crowds_of_all_periods);
  return g_test_run ();
}
