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
/* Returns the attribute i, a number of a progression, without its fraction if the result has integers. */
gdouble gtorch_progression_number (const GTorchOpCall *call, guint i);

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

/* --- ctc-loss.c --- */

/* The sizes of connectionist temporal classification. */
typedef struct
{
  gint64 steps, n, classes; /* the shape of the log-probabilities; n is the number of examples */
  gint64 blank;
  gint64 longest; /* the number of labels that an example has at most */
  gint64 states;  /* 2 longest + 1 */
} GTorchCtc;

/* The call is native_ctc_loss or its gradient. */
void gtorch_ctc_init (GTorchCtc *ctc, const GTorchOpCall *call);

/* --- embedding.c --- */

/* Finds the row that has no gradient, -1 for none. */
gboolean gtorch_embedding_padding (const gchar *op, const GTorchImpl *weight, gint64 padding_idx,
                                   gint64 *index, GError **error);
/* Scales the rows at the indices in place to a norm of at most max_norm, unless that is none. */
gboolean gtorch_embedding_limit (const gchar *op, GTorchImpl *weight, GTorchImpl *indices,
                                 gdouble max_norm, gdouble norm_type, GError **error);

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

/* A convolution of a batch of images or volumes. The lists are in the order depth, height, width; images are
 * volumes of depth 1, which have a filter of depth 1. */
typedef struct
{
  guint dtype;  /* in which the CPU computes: float32, float64, int32 or int64 */
  guint n_dims; /* of the tensors: 4 or 5 */
  gint64 batch, groups;
  gint64 in_channels, out_channels; /* in_channels and out_channels are per group */
  gint64 in[3], out[3], kernel[3];
  gint64 stride[3], padding[3], dilation[3];
} GTorchConv;

/* The last attributes of the call are stride, padding, dilation and groups. The weight has as many dimensions
 * as the input. */
gboolean gtorch_conv_init (GTorchConv *conv, GTorchOpCall *call, const gint64 *input,
                           guint input_dims, const gint64 *weight, guint weight_dims,
                           GError **error);

/* --- recurrent.c --- */

/* The kinds of recurrent networks: values of attributes called mode. */
typedef enum
{
  GTORCH_RECURRENT_TANH,
  GTORCH_RECURRENT_RELU,
  GTORCH_RECURRENT_LSTM,
  GTORCH_RECURRENT_GRU,
} GTorchRecurrentMode;

/* What recurrent_scan and its gradient compute. The element b of the step t is row offset (t) + b of the
 * tensors with all steps, where offset is the sum of the batch sizes before t. */
typedef struct
{
  guint mode;
  guint n_gates; /* parts of a row of gates */
  guint n_saved; /* parts of a row of what is saved: the gates after their functions, and the cell
                          * (LSTM) or what the reset gate multiplies (GRU) */
  gint64 batch;  /* elements of the first step */
  gint64 total;  /* elements of all steps */
  gint64 hidden, states; /* elements of a cell, and of a state, which differ with a projection */
  const gint64 *batch_sizes;
  gsize n_steps;
  gboolean reverse;
} GTorchRecurrence;

/* Reads the attributes from `first` on, and the shapes of the first states and of the weights. */
void gtorch_recurrence_init (GTorchRecurrence *self, const GTorchOpCall *call, guint first,
                             const GTorchImpl *hx, const GTorchImpl *w_hh);

/* Computes one step from what the input gives to the gates, with operations that are recorded. *c, the
 * former cells of an LSTM, is replaced; it is NULL for others. Returns the next states. */
GTorchImpl *gtorch_recurrent_step (guint mode, GTorchImpl *gates, GTorchImpl *h, GTorchImpl **c,
                                   GTorchImpl *w_hh, GTorchImpl *b_hh, GTorchImpl *w_hr,
                                   GError **error);
/* Checks the weights and biases of one cell. `states` is the number of elements of a state; the weights are
 * for `hidden` elements. Sets the error in the name of op. */
gboolean gtorch_recurrent_check_weights (const gchar *op, guint mode, gint64 n_inputs,
                                         gint64 states, GTorchImpl *w_ih, GTorchImpl *w_hh,
                                         GTorchImpl *b_ih, GTorchImpl *b_hh, GTorchImpl *w_hr,
                                         gint64 *hidden, GError **error);
guint gtorch_recurrent_n_gates (guint mode);

/* --- recurrent-network.c --- */

/* What recurrent_network and its gradient compute, which have the same attributes. The numbers of elements
 * are those of GTorchRecurrence. */
typedef struct
{
  guint mode, n_gates;
  gint64 batch, total, inputs, hidden, states;
  guint n_layers, n_directions;
  GTorchImpl *const *params; /* n_params of each layer and direction */
  guint n_params;
  gboolean has_biases, has_projections;
  const gint64 *batch_sizes;
  gsize n_steps;
  gint64 variant;   /* what the device answered; -1: it is to choose */
  gboolean is_kept; /* a gradient is wanted */
} GTorchNetwork;

void gtorch_network_init (GTorchNetwork *self, const GTorchOpCall *call);

/* The answers of a device about a network. */
enum
{
  GTORCH_NETWORK_VARIANT, /* a number of the device's for how it computes it; -1: it does not */
  GTORCH_NETWORK_SAVED,   /* bytes that are kept for the gradient */
  GTORCH_NETWORK_WEIGHTS, /* elements of all weights and biases as the device has them */
  GTORCH_NETWORK_OFFSETS, /* and, from here on, where among them each parameter begins */
};

/* --- einsum-path.c --- */

#define GTORCH_EINSUM_OPERANDS 64 /* at most */

/* Multiplies the operand `second` into `first`, which keeps its number. */
typedef struct
{
  guint8 first, second;
} GTorchEinsumStep;

/* Returns n - 1 steps. The sets have a bit for each label of an operand, and sizes has 64 numbers. */
GTorchEinsumStep *gtorch_einsum_dup_path (const guint64 *sets, guint n, guint64 output,
                                          const gint64 *sizes);

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

/* --- grid-sample.c, grid-sample-formula.c --- */

/* Samples of images: each is a weighted sum of n_taps elements, products of n_line along each dimension. */
typedef struct
{
  guint dims, mode, padding; /* GTorchGridMode, GTorchGridPadding */
  gboolean align_corners;
  guint n_line, n_taps;
  gint64 n_images, n_channels;
  gint64 n_in, n_out; /* the numbers of elements of an image and of samples of it */
  gint64 size[3];     /* depth, height and width; the first is 1 if there are two */
} GTorchGridSampling;

/* attrs are the mode, the padding and align_corners; `images` is their shape. */
void gtorch_grid_sampling_init (GTorchGridSampling *self, const gint64 *images,
                                const GTorchImpl *grid, const GTorchAttr *attrs);
/* Computes native_grid_sample by other operations. */
GTorchImpl *gtorch_grid_sample_composed (GTorchImpl *input, GTorchImpl *grid,
                                         const GTorchAttr *attrs, GError **error);

G_END_DECLS
