/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <math.h>

#include "bench-cuda.h"

GTorchDevice *bench_device;
GTorchStream *bench_stream;

#define N    268435456.0 /* elements of the large tensors: 1 GiB of float32 */
#define NONE GTORCH_DTYPE_NONE
#define F32  GTORCH_DTYPE_FLOAT32
#define BF16 GTORCH_DTYPE_BFLOAT16
/* floating-point operations of the convolution */
#define IMAGE (2.0 * 64 * 56 * 56 * 256 * 256 * 9)
#define HEADS (4.0 * 8 * 32 * 4096 * 4096 * 128) /* floating-point operations of attention */
#define QUEUE 100                                /* small products in sequence */
#define FEW   20                                 /* large ones */

/* The operands of the rows; each is created on first use and kept. */
enum
{
  TINY,
  TINY_2,
  TINY_SQUARE, /* 16 x 16 */
  TINY_WEIGHT,
  X,
  Y,
  X16,
  Y16,
  SQUARE, /* 2^14 x 2^14 */
  TURNED,
  ROW,
  COLUMN,
  FLAGS,
  NARROW, /* 2^17 x 2^11 */
  NARROW_16,
  WEIGHT,
  WEIGHT_16,
  INDEX,
  SCORES_16, /* 2^13 x 2^15 */
  LABELS,
  KEYS,
  MATRIX_8192,
  MATRIX_8192_16,
  MATRIX_10240,
  MATRIX_64,
  MATRIX_256,
  MATRIX_1024_16,
  MATRIX_16384_16,
  VECTOR_16384_16,
  BATCH_16,
  IMAGES_LAST,
  FILTERS_LAST,
  IMAGES_16,
  FILTERS_16,
  ROWS_16, /* [8, 32, 4096, 128] */
  FEW_ROWS_16,
  PADDING,
  WAVES,
  N_TENSORS
};

static GTorchTensor *tensors[N_TENSORS];

static GTorchTensor *get (guint which);

static GTorchTensor *
randn (const gint64 *shape, gsize n_dims, GTorchDType dtype, GError **error)
{
  return gtorch_randn (shape, n_dims, dtype, bench_device, NULL, error);
}

static GTorchTensor *
turn (const gint64 *shape, gsize n_dims, GError **error)
{
  g_autoptr (GTorchTensor) tensor = randn (shape, n_dims, BF16, error);

  return gtorch_tensor_permute (tensor, GTORCH_SHAPE (0, 3, 1, 2), error);
}

static GTorchTensor *
make (guint which, GError **error)
{
  switch (which)
    {
    case TINY:
    case TINY_2:
      return randn (GTORCH_SHAPE (16), F32, error);
    case TINY_SQUARE:
      return randn (GTORCH_SHAPE (16, 16), F32, error);
    case TINY_WEIGHT:
      {
        GTorchTensor *weight = randn (GTORCH_SHAPE (16), F32, error);

        gtorch_tensor_set_requires_grad (weight, TRUE, error);
        return weight;
      }
    case X:
    case Y:
      return randn (GTORCH_SHAPE (1 << 28), F32, error);
    case X16:
      return gtorch_tensor_to_dtype (get (X), BF16, error);
    case Y16:
      return gtorch_tensor_to_dtype (get (Y), BF16, error);
    case SQUARE:
      return gtorch_tensor_view (get (X), GTORCH_SHAPE (1 << 14, 1 << 14), error);
    case TURNED:
      return gtorch_tensor_transpose (get (SQUARE), 0, 1, error);
    case ROW:
      return randn (GTORCH_SHAPE (1 << 14), F32, error);
    case COLUMN:
      return gtorch_tensor_unsqueeze (get (ROW), 1, error);
    case FLAGS:
      return gtorch_tensor_gt (get (X), get (Y), error);
    case NARROW:
      return gtorch_tensor_view (get (X), GTORCH_SHAPE (1 << 17, 1 << 11), error);
    case NARROW_16:
      return gtorch_tensor_view (get (X16), GTORCH_SHAPE (1 << 17, 1 << 11), error);
    case WEIGHT:
      return randn (GTORCH_SHAPE (1 << 11), F32, error);
    case WEIGHT_16:
      return randn (GTORCH_SHAPE (1 << 11), BF16, error);
    case INDEX:
      return gtorch_randint (0, 1 << 17, GTORCH_SHAPE (1 << 17), GTORCH_DTYPE_INT64, bench_device,
                             NULL, error);
    case SCORES_16:
      return gtorch_tensor_view (get (X16), GTORCH_SHAPE (1 << 13, 1 << 15), error);
    case LABELS:
      return gtorch_randint (0, 1 << 15, GTORCH_SHAPE (1 << 13), GTORCH_DTYPE_INT64, bench_device,
                             NULL, error);
    case KEYS:
      return gtorch_tensor_slice (get (X), 0, 0, 1 << 26, 1, error);
    case MATRIX_8192:
      return randn (GTORCH_SHAPE (8192, 8192), F32, error);
    case MATRIX_8192_16:
      return randn (GTORCH_SHAPE (8192, 8192), BF16, error);
    case MATRIX_10240:
      return randn (GTORCH_SHAPE (10240, 10240), F32, error);
    case MATRIX_64:
      return randn (GTORCH_SHAPE (64, 64), F32, error);
    case MATRIX_256:
      return randn (GTORCH_SHAPE (256, 256), F32, error);
    case MATRIX_1024_16:
      return randn (GTORCH_SHAPE (1024, 1024), BF16, error);
    case MATRIX_16384_16:
      return randn (GTORCH_SHAPE (16384, 16384), BF16, error);
    case VECTOR_16384_16:
      return randn (GTORCH_SHAPE (16384), BF16, error);
    case BATCH_16:
      return randn (GTORCH_SHAPE (256, 512, 512), BF16, error);
    case IMAGES_LAST:
      return turn (GTORCH_SHAPE (64, 56, 56, 256), error);
    case FILTERS_LAST:
      return turn (GTORCH_SHAPE (256, 3, 3, 256), error);
    case WAVES:
      {
        g_autoptr (GTorchTensor) real = randn (GTORCH_SHAPE (1 << 24), F32, error);

        return gtorch_tensor_to_dtype (real, GTORCH_DTYPE_COMPLEX64, error);
      }
    case IMAGES_16:
      return randn (GTORCH_SHAPE (64, 256, 56, 56), BF16, error);
    case ROWS_16:
      return randn (GTORCH_SHAPE (8, 32, 4096, 128), BF16, error);
    case FEW_ROWS_16:
      return randn (GTORCH_SHAPE (8, 8, 4096, 128), BF16, error);
    case PADDING:
      return gtorch_ones (GTORCH_SHAPE (8, 1, 1, 4096), GTORCH_DTYPE_BOOL, bench_device, error);
    default:
      return randn (GTORCH_SHAPE (256, 256, 3, 3), BF16, error);
    }
}

static GTorchTensor *
get (guint which)
{
  GError *error = NULL;

  if (G_UNLIKELY (tensors[which] == NULL))
    {
      tensors[which] = make (which, &error);
      if (tensors[which] == NULL)
        g_error ("%s", error->message);
    }
  return tensors[which];
}

#define CASE(function, expression) \
  static GTorchTensor *function (gconstpointer data, GError **error) { return expression; }
/* Defines the function of an operation that returns values and indices. */
#define TWO(function, expression)                                    \
  static GTorchTensor *function (gconstpointer data, GError **error) \
  {                                                                  \
    GTorchTensor *values = NULL, *indices = NULL;                    \
                                                                     \
    if (expression)                                                  \
      g_object_unref (indices);                                      \
    return values;                                                   \
  }

CASE (host_add, gtorch_tensor_add (get (TINY), get (TINY_2), 1, error))
CASE (host_empty, gtorch_empty (GTORCH_SHAPE (16), F32, bench_device, error))
CASE (host_matmul, gtorch_tensor_mm (get (TINY_SQUARE), get (TINY_SQUARE), error))
CASE (host_view, gtorch_tensor_view (get (TINY_SQUARE), GTORCH_SHAPE (256), error))
CASE (host_slice, gtorch_tensor_slice (get (TINY_SQUARE), 0, 2, 8, 1, error))
CASE (host_sum, gtorch_tensor_sum (get (TINY_SQUARE), NULL, 0, FALSE, NONE, error))
CASE (host_alloc, gtorch_empty (GTORCH_SHAPE (1 << 20), GTORCH_DTYPE_UINT8, bench_device, error))

/* The result is the input, and no references are counted. */
static gboolean
host_add_ (gconstpointer data, guint n, GError **error)
{
  for (; n > 0; n--)
    if (gtorch_tensor_add_inplace (get (TINY), get (TINY_2), 1e-30, error) == NULL)
      return FALSE;
  return TRUE;
}

static GTorchTensor *
host_item (gconstpointer data, GError **error)
{
  static GTorchTensor *one;

  if (one == NULL)
    one = gtorch_tensor_select (get (TINY), 0, 0, error);
  gtorch_tensor_item_double (one, error);
  return g_object_ref (one);
}

static GTorchTensor *
host_add_grad (gconstpointer data, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_enable_grad ();

  return gtorch_tensor_add (get (TINY_WEIGHT), get (TINY_2), 1, error);
}

static GTorchTensor *
host_backward (gconstpointer data, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_enable_grad ();
  g_autoptr (GTorchTensor) product = gtorch_tensor_mul (get (TINY_WEIGHT), get (TINY_2), error);
  GTorchTensor *sum = gtorch_tensor_sum (product, NULL, 0, FALSE, NONE, error);

  gtorch_tensor_backward (sum, NULL, FALSE, FALSE, error);
  gtorch_tensor_set_grad (get (TINY_WEIGHT), NULL, error);
  return sum;
}

CASE (bw_copy, gtorch_tensor_clone (get (X), error))
CASE (bw_add, gtorch_tensor_add (get (X), get (Y), 1, error))
CASE (bw_relu, gtorch_tensor_relu (get (X), error))
CASE (bw_exp, gtorch_tensor_exp (get (X), error))
CASE (bw_gelu, gtorch_tensor_gelu (get (X), FALSE, error))
CASE (bw_add_bf16, gtorch_tensor_add (get (X16), get (Y16), 1, error))
CASE (bw_cast, gtorch_tensor_to_dtype (get (X), BF16, error))
CASE (bw_transpose, gtorch_tensor_clone (get (TURNED), error))
CASE (bw_row, gtorch_tensor_add (get (SQUARE), get (ROW), 1, error))
CASE (bw_column, gtorch_tensor_add (get (SQUARE), get (COLUMN), 1, error))
CASE (bw_sum_all, gtorch_tensor_sum (get (X), NULL, 0, FALSE, NONE, error))
CASE (bw_sum_0, gtorch_tensor_sum (get (SQUARE), GTORCH_SHAPE (0), FALSE, NONE, error))
CASE (bw_sum_1, gtorch_tensor_sum (get (SQUARE), GTORCH_SHAPE (1), FALSE, NONE, error))
TWO (bw_max, gtorch_tensor_max_dim (get (SQUARE), 1, FALSE, &values, &indices, error))
CASE (bw_argmax, gtorch_tensor_argmax (get (X), NULL, 0, FALSE, error))
CASE (bw_argmax_0, gtorch_tensor_argmax (get (SQUARE), GTORCH_SHAPE (0), FALSE, error))
CASE (bw_argmax_1, gtorch_tensor_argmax (get (SQUARE), GTORCH_SHAPE (1), FALSE, error))
CASE (bw_cumsum_0, gtorch_tensor_cumsum (get (SQUARE), 0, NONE, error))
CASE (bw_cumsum_1, gtorch_tensor_cumsum (get (SQUARE), 1, NONE, error))
CASE (bw_cumsum_all, gtorch_tensor_cumsum (get (X), 0, NONE, error))
CASE (bw_softmax, gtorch_tensor_softmax (get (NARROW), -1, NONE, error))
CASE (bw_softmax_bf16, gtorch_tensor_softmax (get (NARROW_16), -1, NONE, error))
CASE (bw_layer_norm, gtorch_layer_norm (get (NARROW), GTORCH_SHAPE (1 << 11), get (WEIGHT),
                                        get (WEIGHT), 1e-5, error))
CASE (bw_layer_norm_bf16, gtorch_layer_norm (get (NARROW_16), GTORCH_SHAPE (1 << 11),
                                             get (WEIGHT_16), get (WEIGHT_16), 1e-5, error))
CASE (bw_dropout, gtorch_tensor_dropout (get (X), 0.2, TRUE, NULL, error))
CASE (bw_normal, g_object_ref (gtorch_tensor_normal_inplace (get (Y), 0, 1, NULL, error)))
CASE (bw_uniform, g_object_ref (gtorch_tensor_uniform_inplace (get (Y), 0, 1, NULL, error)))
CASE (bw_index_select, gtorch_tensor_index_select (get (NARROW), 0, get (INDEX), error))
CASE (bw_embedding, gtorch_embedding (get (NARROW_16), get (INDEX), GTORCH_NONE, FALSE,
                                      GTORCH_NONE_DOUBLE, 2, error))
CASE (bw_where, gtorch_where (get (FLAGS), get (X), get (Y), error))

static GTorchTensor *
bw_cat (gconstpointer data, GError **error)
{
  GTorchTensor *both[] = { get (X), get (Y) };

  return gtorch_cat (both, 2, 0, error);
}

TWO (rate_sort, gtorch_tensor_sort (get (KEYS), 0, FALSE, FALSE, &values, &indices, error))
TWO (rate_topk, gtorch_tensor_topk (get (KEYS), 100, 0, TRUE, TRUE, &values, &indices, error))
CASE (mm_f32, gtorch_tensor_mm (get (MATRIX_8192), get (MATRIX_8192), error))

static GTorchTensor *
tf32 (guint matrix, GError **error)
{
  GTorchTensor *result;

  gtorch_device_set_matmul_precision (bench_device, GTORCH_PRECISION_TF32);
  result = gtorch_tensor_mm (get (matrix), get (matrix), error);
  gtorch_device_set_matmul_precision (bench_device, GTORCH_PRECISION_IEEE);
  return result;
}

CASE (mm_tf32, tf32 (MATRIX_8192, error))
CASE (mm_f32_10240, gtorch_tensor_mm (get (MATRIX_10240), get (MATRIX_10240), error))
CASE (mm_tf32_10240, tf32 (MATRIX_10240, error))
CASE (mm_bf16, gtorch_tensor_mm (get (MATRIX_8192_16), get (MATRIX_8192_16), error))
CASE (mm_bf16_1024, gtorch_tensor_mm (get (MATRIX_1024_16), get (MATRIX_1024_16), error))

CASE (mm_f32_64, gtorch_tensor_mm (get (MATRIX_64), get (MATRIX_64), error))
CASE (mm_f32_256, gtorch_tensor_mm (get (MATRIX_256), get (MATRIX_256), error))

/* Makes enough calls that the GPU always has the next one. */
static GTorchTensor *
queue (GTorchTensor *(*run) (gconstpointer data, GError **error), guint n, GError **error)
{
  GTorchTensor *result = run (NULL, error);
  guint i;

  for (i = 1; i < n && result != NULL; i++)
    {
      gtorch_tensor_unref (result);
      result = run (NULL, error);
    }
  return result;
}

CASE (mm_f32_64_queued, queue (mm_f32_64, QUEUE, error))
CASE (mm_f32_256_queued, queue (mm_f32_256, QUEUE, error))
CASE (mm_bf16_1024_queued, queue (mm_bf16_1024, QUEUE, error))
CASE (mm_batch, gtorch_tensor_bmm (get (BATCH_16), get (BATCH_16), error))
CASE (mm_vector, gtorch_tensor_mv (get (MATRIX_16384_16), get (VECTOR_16384_16), error))

static GTorchTensor *
convolve (guint images, guint filters, GError **error)
{
  return gtorch_conv2d (get (images), get (filters), NULL, GTORCH_SHAPE (1, 1), GTORCH_SHAPE (1, 1),
                        GTORCH_SHAPE (1, 1), 1, error);
}

CASE (conv_last, convolve (IMAGES_LAST, FILTERS_LAST, error))
CASE (conv_first, convolve (IMAGES_16, FILTERS_16, error))
CASE (conv_last_queued, queue (conv_last, FEW, error))

static GTorchTensor *
attend (GTorchTensor *q, GTorchTensor *k, GTorchTensor *mask, gboolean is_causal, GError **error)
{
  return gtorch_scaled_dot_product_attention (q, k, k, mask, 0, is_causal, GTORCH_NONE_DOUBLE,
                                              q != k, error);
}

CASE (attn, attend (get (ROWS_16), get (ROWS_16), NULL, FALSE, error))
CASE (attn_causal, attend (get (ROWS_16), get (ROWS_16), NULL, TRUE, error))
CASE (attn_padding, attend (get (ROWS_16), get (ROWS_16), get (PADDING), FALSE, error))
CASE (attn_grouped, attend (get (ROWS_16), get (FEW_ROWS_16), NULL, FALSE, error))

/* Keeps the device busy for about as long as the row's name says. */
static const gint64 n_negated[] = { 10000000, 75000000, 250000000 };

static gboolean
negate (gconstpointer data, guint n, GError **error)
{
  for (; n > 0; n--)
    {
      g_autoptr (GTorchTensor) part =
          gtorch_tensor_narrow (get (Y), 0, 0, *(const gint64 *) data, error);

      if (part == NULL || !gtorch_tensor_neg_inplace (part, error))
        return FALSE;
    }
  return TRUE;
}

CASE (bw_fft, gtorch_fft_fft (get (WAVES), -1, -1, GTORCH_FFT_NORM_BACKWARD, error))

/* Runs backward with the result as its own gradient. */
static gboolean
go_back (GTorchTensor **result, GError **error)
{
  g_autoptr (GTorchTensor) upper = *result != NULL ? gtorch_tensor_detach (*result, error) : NULL;

  if (upper != NULL && gtorch_tensor_backward (*result, upper, FALSE, FALSE, error))
    return TRUE;
  g_clear_object (result);
  return FALSE;
}

static GTorchTensor *
attn_both (gconstpointer data, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_enable_grad ();
  g_autoptr (GTorchTensor) x = gtorch_tensor_detach (get (ROWS_16), error);
  GTorchTensor *result;

  if (!gtorch_tensor_set_requires_grad (x, TRUE, error))
    return NULL;
  result = attend (x, x, NULL, FALSE, error);
  go_back (&result, error);
  return result;
}

/* A loss in mixed precision and its backward pass. */
static GTorchTensor *
bw_entropy (gconstpointer data, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_enable_grad ();
  g_autoptr (GTorchAutocastGuard) region =
      gtorch_autocast_guard_new (GTORCH_DEVICE_TYPE_CUDA, BF16, TRUE, TRUE, error);
  g_autoptr (GTorchTensor) x = gtorch_tensor_detach (get (SCORES_16), error);
  GTorchTensor *result;

  if (region == NULL || !gtorch_tensor_set_requires_grad (x, TRUE, error))
    return NULL;
  result =
      gtorch_tensor_cross_entropy (x, get (LABELS), NULL, GTORCH_REDUCTION_MEAN, -100, 0, error);
  go_back (&result, error);
  return result;
}

static GTorchTensor *
bw_norm_both (gconstpointer data, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_enable_grad ();
  g_autoptr (GTorchTensor) x = gtorch_tensor_detach (get (NARROW), error);
  g_autoptr (GTorchTensor) w = gtorch_tensor_detach (get (WEIGHT), error);
  GTorchTensor *result;

  if (!gtorch_tensor_set_requires_grad (x, TRUE, error)
      || !gtorch_tensor_set_requires_grad (w, TRUE, error))
    return NULL;
  result = gtorch_layer_norm (x, GTORCH_SHAPE (1 << 11), w, w, 1e-5, error);
  go_back (&result, error);
  return result;
}

static GTorchTensor *
with_gradients (guint images, guint filters, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_enable_grad ();
  g_autoptr (GTorchTensor) x = gtorch_tensor_detach (get (images), error);
  g_autoptr (GTorchTensor) w = gtorch_tensor_detach (get (filters), error);
  GTorchTensor *result;

  if (!gtorch_tensor_set_requires_grad (x, TRUE, error)
      || !gtorch_tensor_set_requires_grad (w, TRUE, error))
    return NULL;
  result = gtorch_conv2d (x, w, NULL, GTORCH_SHAPE (1, 1), GTORCH_SHAPE (1, 1), GTORCH_SHAPE (1, 1),
                          1, error);
  go_back (&result, error);
  return result;
}

CASE (conv_last_both, with_gradients (IMAGES_LAST, FILTERS_LAST, error))
CASE (conv_first_both, with_gradients (IMAGES_16, FILTERS_16, error))
CASE (conv_last_both_queued, queue (conv_last_both, FEW, error))

const BenchCase bench_cases[] = {
  { "host.add", host_add, 0, NULL, .floor = bench_launch },
  { "host.add_", NULL, 0, NULL, .repeat = host_add_, .floor = bench_launch },
  { "host.empty", host_empty, 0, NULL },
  { "host.view", host_view, 0, NULL },
  { "host.slice", host_slice, 0, NULL },
  { "host.sum", host_sum, 0, NULL, .floor = bench_launch },
  { "host.matmul", host_matmul, 0, NULL, .floor = bench_launch },
  { "host.add_grad", host_add_grad, 0, NULL, .floor = bench_launch },
  { "host.mul_sum_backward", host_backward, 0, NULL },
  { "host.alloc_free_1MiB", host_alloc, 0, NULL },
  { "host.item", host_item, 0, NULL, .floor = bench_item },
  { "wait.device_20us", NULL, 0, "wait", &n_negated[0], negate },
  { "wait.device_150us", NULL, 0, "wait", &n_negated[1], negate },
  { "wait.device_500us", NULL, 0, "wait", &n_negated[2], negate },
  { "wait.stream_150us", NULL, 0, "wait", &n_negated[1], negate },
  { "wait.event_150us", NULL, 0, "wait", &n_negated[1], negate },
  { "bw.copy_f32", bw_copy, 8 * N, "B" },
  { "bw.add_f32", bw_add, 12 * N, "B" },
  { "bw.relu_f32", bw_relu, 8 * N, "B" },
  { "bw.exp_f32", bw_exp, 8 * N, "B" },
  { "bw.gelu_f32", bw_gelu, 8 * N, "B" },
  { "bw.add_bf16", bw_add_bf16, 6 * N, "B" },
  { "bw.cast_f32_bf16", bw_cast, 6 * N, "B" },
  { "bw.transpose_copy_f32", bw_transpose, 8 * N, "B" },
  { "bw.add_row_broadcast_f32", bw_row, 8 * N, "B" },
  { "bw.add_col_broadcast_f32", bw_column, 8 * N, "B" },
  { "bw.where_f32", bw_where, 13 * N, "B" },
  { "bw.cat_f32", bw_cat, 16 * N, "B" },
  { "bw.sum_all_f32", bw_sum_all, 4 * N, "B" },
  { "bw.sum_dim1_f32", bw_sum_1, 4 * N, "B" },
  { "bw.sum_dim0_f32", bw_sum_0, 4 * N, "B" },
  { "bw.max_dim1_f32", bw_max, 4 * N, "B" },
  { "bw.argmax_all_f32", bw_argmax, 4 * N, "B" },
  { "bw.argmax_dim1_f32", bw_argmax_1, 4 * N, "B" },
  { "bw.argmax_dim0_f32", bw_argmax_0, 4 * N, "B" },
  { "bw.cumsum_dim1_f32", bw_cumsum_1, 8 * N, "B" },
  { "bw.cumsum_dim0_f32", bw_cumsum_0, 8 * N, "B" },
  { "bw.cumsum_all_f32", bw_cumsum_all, 8 * N, "B" },
  { "bw.softmax_2048_f32", bw_softmax, 8 * N, "B" },
  { "bw.softmax_2048_bf16", bw_softmax_bf16, 4 * N, "B" },
  { "bw.layernorm_2048_f32", bw_layer_norm, 8 * N, "B" },
  { "bw.layernorm_2048_bf16", bw_layer_norm_bf16, 4 * N, "B" },
  { "bw.layernorm_2048_f32_gradients", bw_norm_both, 20 * N, "B" },
  { "bw.cross_entropy_32768_bf16_gradients", bw_entropy, 6 * N, "B" },
  { "bw.dropout_f32", bw_dropout, 8 * N, "B" },
  { "bw.randn_f32", bw_normal, 4 * N, "B" },
  { "bw.uniform_f32", bw_uniform, 4 * N, "B" },
  { "bw.index_select_rows_f32", bw_index_select, 8 * N, "B" },
  { "bw.embedding_bf16", bw_embedding, 4 * N, "B" },
  { "bw.fft_c64_16M", bw_fft, 16 * 16777216.0, "B" },
  { "rate.sort_f32_64M", rate_sort, 1 << 26, "key" },
  { "rate.topk_100_f32_64M", rate_topk, 1 << 26, "key" },
  { "mm.fp32_8192", mm_f32, 2 * 8192.0 * 8192 * 8192, "FLOP" },
  { "mm.tf32_8192", mm_tf32, 2 * 8192.0 * 8192 * 8192, "FLOP" },
  { "mm.fp32_10240", mm_f32_10240, 2 * 10240.0 * 10240 * 10240, "FLOP" },
  { "mm.tf32_10240", mm_tf32_10240, 2 * 10240.0 * 10240 * 10240, "FLOP" },
  { "mm.bf16_8192", mm_bf16, 2 * 8192.0 * 8192 * 8192, "FLOP" },
  { "mm.f32_64.queued", mm_f32_64_queued, QUEUE * 2 * 64.0 * 64 * 64, "FLOP" },
  { "mm.f32_256.queued", mm_f32_256_queued, QUEUE * 2 * 256.0 * 256 * 256, "FLOP" },
  { "mm.bf16_1024", mm_bf16_1024, 2 * 1024.0 * 1024 * 1024, "FLOP" },
  { "mm.bf16_1024.queued", mm_bf16_1024_queued, QUEUE * 2 * 1024.0 * 1024 * 1024, "FLOP" },
  { "mm.bmm_bf16_256x512", mm_batch, 2 * 256 * 512.0 * 512 * 512, "FLOP" },
  { "mm.gemv_bf16_16384", mm_vector, 2 * 16384.0 * 16384, "B" },
  { "conv.3x3_256_bf16_nhwc", conv_last, IMAGE, "FLOP" },
  { "conv.3x3_256_bf16_nhwc.queued", conv_last_queued, FEW *IMAGE, "FLOP" },
  { "conv.3x3_256_bf16_nhwc.fwd_bwd", conv_last_both, 3 * IMAGE, "FLOP" },
  { "conv.3x3_256_bf16_nhwc.fwd_bwd.queued", conv_last_both_queued, FEW * 3 * IMAGE, "FLOP" },
  { "conv.3x3_256_bf16_nchw", conv_first, IMAGE, "FLOP" },
  { "conv.3x3_256_bf16_nchw.fwd_bwd", conv_first_both, 3 * IMAGE, "FLOP" },
  { "attn.sdpa_bf16_4096", attn, HEADS, "FLOP" },
  { "attn.sdpa_causal_bf16_4096", attn_causal, HEADS / 2, "FLOP" },
  { "attn.sdpa_padding_bf16_4096", attn_padding, HEADS, "FLOP" },
  { "attn.sdpa_grouped_bf16_4096", attn_grouped, HEADS, "FLOP" },
  { "attn.sdpa_bf16_4096.fwd_bwd", attn_both, 3.5 * HEADS, "FLOP" },
  { NULL },
};
