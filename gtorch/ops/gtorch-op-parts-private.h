/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* What the forms of an operation, on whatever device, find in a call as its shape function does. Each part is
 * defined beside the shape function. */

#include <gtorch/base/gtorch-enums.h>
#include <gtorch/dispatch/gtorch-op-private.h>

G_BEGIN_DECLS

/* --- reduce.c --- */

/* Parses those of the attributes dims, keepdim and dtype that a reduction call has. */
gboolean gtorch_reduce_parse (GTorchOpCall *call, guint64 *mask, gboolean *keepdim, guint *dtype,
                              GError **error);

/* --- index.c --- */

gboolean gtorch_index_check_dtype (GTorchOpCall *call, guint i, GError **error);
/* Tells whether n indexed dimensions, in ascending order, have no others between them. */
gboolean gtorch_index_is_adjacent (const gint64 *dims, guint n);
/* Computes the shape of the dense operand of an indexed one. dims are distinct and ascending. */
gboolean gtorch_blocks_shape (GTorchOpCall *call, const GTorchImpl *indexed,
                              GTorchImpl *const *indices, guint n_indices, const gint64 *dims,
                              gint64 *shape, guint *n_dims, GError **error);

/* Returns the source of an index_add, times its alpha. */
GTorchImpl *gtorch_index_scale_source (GTorchOpCall *call, GTorchQueue *queue, GError **error);

/* --- quantile.c --- */

/* A q out of its range, which only the device knows, is an index that is this times as great; NaN is
 * another. */
#define GTORCH_QUANTILE_SCALE 0x1p40
#define GTORCH_QUANTILE_NAN   0x1p62

/* --- cat.c --- */

/* Returns the view that a flip copies. */
GTorchImpl *gtorch_flip_view (const GTorchOpCall *call);

/* --- view-backward.c --- */

/* Adds the gradient to the windows of the output, the view, which may overlap: one position of all windows
 * after the other. */
gboolean gtorch_unfold_add_windows (GTorchOpCall *call, GTorchQueue *queue, GTorchImpl *view,
                                    GError **error);

/* --- factory.c --- */

/* Finds the columns [begin, end) of a row that belong to the triangle. */
void gtorch_triangle_row (const GTorchOpCall *call, gint64 row, gint64 *begin, gint64 *end);

/* --- lists.c --- */

/* Returns another reference for a composite that has nothing to do; an error if the tensor was released. */
GTorchImpl *gtorch_impl_itself (GTorchImpl *self, GError **error);

/* --- complex.c --- */

/* Returns a view of the real (0) or imaginary (1) parts of a complex tensor. */
GTorchImpl *gtorch_complex_part (GTorchImpl *impl, guint part);

/* --- loss.c --- */

/* Reduces a loss. Takes the reference on loss, which may be NULL after an error. */
GTorchImpl *gtorch_loss_reduce (GTorchImpl *loss, GTorchReduction reduction, GError **error);
gboolean gtorch_loss_check_reduction (const gchar *op, GTorchReduction reduction, GError **error);

/* --- matmul.c --- */

gboolean gtorch_matmul_check_dims (GTorchOpCall *call, guint i, guint n_dims, GError **error);
/* Checks that the operands have one dtype, since products do not promote, as in PyTorch. Sets
 * call->compute. */
gboolean gtorch_matmul_check_dtypes (GTorchOpCall *call, GError **error);

/* A product c = alpha a b + beta c of batches of matrices. */
typedef struct
{
  GTorchImpl *a, *b, *c; /* views of the operands and of the output */
  gdouble alpha,
      beta; /* with a beta other than 0 the first input is to be copied to the output first */
} GTorchProduct;

void gtorch_product_init (GTorchProduct *self, const GTorchOpCall *call);
void gtorch_product_clear (GTorchProduct *self);

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (GTorchProduct, gtorch_product_clear)

/* --- linear.c --- */

/* Computes the second output of linear_grads, the gradient of the bias, by another operation. */
gboolean gtorch_linear_sum_rows (GTorchOpCall *call, GTorchQueue *queue, GError **error);

/* --- conv.c --- */

/* A convolution of a batch. */
typedef struct
{
  guint dtype; /* in which the CPU computes: float32 or float64 */
  gint64 batch, groups;
  gint64 in_channels, out_channels; /* in_channels and out_channels are per group */
  gint64 in[2], out[2], kernel[2];
  gint64 stride[2], padding[2], dilation[2];
} GTorchConv;

/* The last attributes of the call are stride, padding, dilation and groups. */
gboolean gtorch_conv_init (GTorchConv *conv, GTorchOpCall *call, const gint64 *input,
                           guint input_dims, const gint64 *weight, guint weight_dims,
                           GError **error);

/* --- pool.c --- */

/* Windows over the last n dimensions of images. Of the arrays the last n items describe these; the others
 * are those of a dimension of size 1 that has one window. */
typedef struct
{
  guint n; /* 1 to 3 */
  gboolean adaptive, include_pad;
  gint64 kernel[3], stride[3], padding[3], dilation[3];
  gint64 in[3], out[3];
  gint64 n_in, n_out; /* the numbers of elements of an image and of its result */
  gint64 divisor;     /* 0: the number of elements */
} GTorchWindows;

/* The call is one of pooling, or one of a gradient of it. */
gboolean gtorch_windows_init (GTorchWindows *windows, GTorchOpCall *call, GError **error);

/* --- resample.c --- */

/* How elements along a dimension are weighted. */
typedef enum
{
  GTORCH_RESAMPLER_NEAREST,
  GTORCH_RESAMPLER_NEAREST_EXACT,
  GTORCH_RESAMPLER_LINEAR,
  GTORCH_RESAMPLER_CUBIC,
  GTORCH_RESAMPLER_LINEAR_SMOOTH, /* over all elements that one of a smaller result covers */
  GTORCH_RESAMPLER_CUBIC_SMOOTH,
} GTorchResampler;

/* Images whose last n dimensions change their size from `in` to `out`. The first items of the arrays are 1
 * if there are fewer than three. */
typedef struct
{
  guint n, method; /* GTorchResampler */
  gboolean align_corners;
  gint64 in[3], out[3];
  gint64 n_in, n_out; /* the numbers of elements of an image and of its result */
  gdouble scale[3];   /* the distance of results in units of that of elements */
} GTorchResample;

/* The call is resample or its gradient. */
gboolean gtorch_resample_init (GTorchResample *self, GTorchOpCall *call, GError **error);
/* Returns how many elements along a dimension a result may be made of. */
guint gtorch_resample_max_taps (const GTorchResample *self, guint d);
/* Finds the elements that result o along a dimension is made of, and their weights, and returns how many
 * there are. Positions are computed in float32 or in float64. */
guint gtorch_resample_taps (const GTorchResample *self, guint d, gboolean is_single, gint64 o,
                            gint64 *first, gdouble *weights);

G_END_DECLS
