/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The functions that the generated code of layers calls. */

#pragma once

#include <gtorch/base/gtorch-none-private.h>
#include <gtorch/base/gtorch-factors.h>
#include <gtorch/base/gtorch-size.h>
#include <gtorch/device/gtorch-device.h>
#include <gtorch/nn/gtorch-conv-transpose.h>
#include <gtorch/nn/gtorch-field-text-private.h>
#include <gtorch/nn/gtorch-layer-enums.h>
#include <gtorch/nn/gtorch-module-private.h>

G_BEGIN_DECLS

/* The virtual function of GTorchConvTranspose. output_size, a tensor of integers, may be NULL. */
typedef GTorchTensor *(*GTorchTransposeFunc) (GTorchConvTranspose *self, GTorchTensor *input,
                                              GTorchTensor *output_size, GError **error);

/* The initial value of a parameter or buffer. */
typedef enum
{
  GTORCH_LAYER_KAIMING, /* uniform over ± 1 / √fan-in */
  GTORCH_LAYER_FAN_IN,  /* uniform over the same range as the first parameter */
  GTORCH_LAYER_NORMAL,  /* the standard normal distribution */
  GTORCH_LAYER_ONES,
  GTORCH_LAYER_ZEROS,
  GTORCH_LAYER_VALUE,   /* for parameters: that of a property */
  GTORCH_LAYER_UNIFORM, /* for parameters: uniform over ± 1 / √value */
  GTORCH_LAYER_COUNT,   /* for buffers: an integer that is never negative, initially 0 */
} GTorchLayerInit;

typedef struct
{
  const gchar *name;
  GTorchLayerInit init;
  gboolean is_buffer;
  gboolean is_wanted; /* otherwise the name is registered without a tensor */
  const gint64 *shape;
  gsize n_dims;
  gdouble value; /* for GTORCH_LAYER_VALUE and GTORCH_LAYER_UNIFORM */
} GTorchLayerTensor;

/* Gets the tensors of a row. */
typedef void (*GTorchLayerMake) (GTorchModule *self, const GTorchLayerTensor *tensors, guint n,
                                 gpointer data);

/* A tensor of a state whose dimension `dim` tells the size of a lazy layer: multiplied, unless `factor` is 0,
 * by the member of the instance at that offset. */
typedef struct
{
  const gchar *name;
  guint dim;
  glong factor;
} GTorchLazySource;

/* The lazy form of a layer, for GTorchModuleClass.lazy. */
typedef struct
{
  const gchar *property; /* the one that is not given */
  glong size;            /* the offset of its member */
  gint dim; /* the dimension of the input that tells it; negative ones count from the end */
  guint least_dims, most_dims;
  /* checks the conditions on the property */
  gboolean (*check) (GTorchModule *self, GError **error);
  void (*make) (GTorchModule *self, GTorchLayerMake make, gpointer data);
  GTorchLazySource sources[4]; /* ends with a NULL name, if there are fewer */
} GTorchLazy;

/* For init () of a lazy class: the tensors wait for a size. */
void gtorch_lazy_wait (GTorchModule *self);
/* For constructed (): a size that was given makes an ordinary layer. */
void gtorch_lazy_begin (GTorchModule *self, gint64 size);
gboolean gtorch_lazy_is_waiting (GTorchModule *self);
/* Gives the layer the tensors for its first input. */
gboolean gtorch_lazy_infer (GTorchModule *self, GTorchTensor *input, GError **error);

/* Rows of properties (gtorch-field-private.h) that a module has in its lists of tensors, by their numbers
 * there. A parameter may be a tensor that is computed. A buffer that can be set is registered by init () as
 * NULL. */
#define GTORCH_LAYER_PARAMETER(name_, n)                                                     \
  {                                                                                          \
    .name = name_, .kind = GTORCH_FIELD_OBJECT, .offset = n, .type = gtorch_tensor_get_type, \
    .get_value = gtorch_layer_get_parameter_value                                            \
  }
#define GTORCH_LAYER_BUFFER(name_, n)                                                        \
  {                                                                                          \
    .name = name_, .kind = GTORCH_FIELD_OBJECT, .offset = n, .type = gtorch_tensor_get_type, \
    .get_value = gtorch_layer_get_buffer_value                                               \
  }
#define GTORCH_LAYER_SET_BUFFER(name_, n)                                                    \
  {                                                                                          \
    .name = name_, .kind = GTORCH_FIELD_OBJECT, .offset = n, .type = gtorch_tensor_get_type, \
    .get_value = gtorch_layer_get_buffer_value, .set_value = gtorch_layer_set_buffer_value,  \
    .flags = GTORCH_FIELD_SETTING                                                            \
  }
/* Members that say where the tensors are made, and of what dtype; read from the tensors later. */
#define GTORCH_LAYER_DEVICE(Type)                                                         \
  {                                                                                       \
    .name = "device", .kind = GTORCH_FIELD_OBJECT, .offset = GTORCH_FIELD (Type, device), \
    .type = gtorch_device_get_type, .get_value = gtorch_layer_get_device_value,           \
    .flags = GTORCH_FIELD_FIXED                                                           \
  }
#define GTORCH_LAYER_DTYPE(Type)                                                      \
  {                                                                                   \
    .name = "dtype", .kind = GTORCH_FIELD_ENUM, .offset = GTORCH_FIELD (Type, dtype), \
    .value = GTORCH_DTYPE_NONE, .type = gtorch_dtype_get_type,                        \
    .get_value = gtorch_layer_get_dtype_value, .flags = GTORCH_FIELD_FIXED            \
  }
void gtorch_layer_get_parameter_value (gpointer object, const GTorchField *field, GValue *value);
void gtorch_layer_get_buffer_value (gpointer object, const GTorchField *field, GValue *value);
gboolean gtorch_layer_set_buffer_value (gpointer object, const GTorchField *field,
                                        const GValue *value);
void gtorch_layer_get_device_value (gpointer object, const GTorchField *field, GValue *value);
void gtorch_layer_get_dtype_value (gpointer object, const GTorchField *field, GValue *value);

/* For constructed () and check (). */
gboolean gtorch_layer_check_least (GTorchModule *self, const gchar *name, gint64 value,
                                   gint64 least, GError **error);
gboolean gtorch_layer_check_between (GTorchModule *self, const gchar *name, gint64 value,
                                     gint64 low, gint64 high, GError **error);
gboolean gtorch_layer_check_greater (GTorchModule *self, const gchar *name, gdouble value,
                                     const gchar *other_name, gdouble other, GError **error);
/* Checks each number of the size; a size of length > 0 has one number or `length`, another 1 to
 * GTORCH_MAX_DIMS. */
gboolean gtorch_layer_check_size (GTorchModule *self, const gchar *name, GTorchSize *size,
                                  guint length, gint64 least, GError **error);
/* Does so for a size whose numbers may be GTORCH_NONE. */
gboolean gtorch_layer_check_some_sizes (GTorchModule *self, const gchar *name, GTorchSize *size,
                                        guint length, gint64 least, GError **error);
gboolean gtorch_layer_check_multiple (GTorchModule *self, const gchar *name, gint64 value,
                                      const gchar *other_name, gint64 other, GError **error);
gboolean gtorch_layer_check_range (GTorchModule *self, const gchar *name, gdouble value,
                                   gdouble low, gdouble high, gboolean is_open, GError **error);
/* Checks each of the factors; there must be one or `length`, or if that is 0, one for each of 1 to 3
 * dimensions. */
gboolean gtorch_layer_check_factors (GTorchModule *self, const gchar *name, GTorchFactors *factors,
                                     guint length, gdouble low, gdouble high, gboolean is_open,
                                     GError **error);
gboolean gtorch_layer_check_nonzero (GTorchModule *self, const gchar *name, gint64 value,
                                     GError **error);
/* A negative index counts from the end, and is normalised; GTORCH_NONE is kept. */
gboolean gtorch_layer_check_index (GTorchModule *self, const gchar *name, gint64 *value, gint64 n,
                                   GError **error);

/* Checks the number of tensors that forward_many () got; names lists those that the layer takes, of which
 * the first `least` are needed. */
gboolean gtorch_layer_takes (GTorchModule *self, gsize n_inputs, guint least, guint n,
                             const gchar *names, GError **error);
/* Returns an input that may be left out, or NULL: a tensor of bool without elements stands for one that is
 * left out before one that is not. */
GTorchImpl *gtorch_layer_input (GTorchTensor **inputs, gsize n_inputs, gsize i);
/* Calls the module with tensors of which those from number `least` on may be NULL. */
GTorchTensor *gtorch_layer_call_some (GTorchModule *self, GTorchTensor **inputs, gsize least,
                                      gsize n_inputs, GError **error);

gboolean gtorch_layer_check_type (gpointer self, GType type, GError **error);

/* Sets a size that was not given. */
void gtorch_layer_default_size (GTorchSize **size, gint64 value);
/* Expands a single number to `length` numbers. */
void gtorch_layer_expand_size (GTorchSize **size, guint length);
static inline const gint64 *
gtorch_layer_numbers (GTorchSize *size)
{
  gsize n;

  return gtorch_size_get_values (size, &n);
}

/* Other languages may pass an object of any class to a virtual function. */
static inline gboolean
gtorch_layer_is (gpointer self, GType type, GError **error)
{
  return G_TYPE_FROM_INSTANCE (self) == type || gtorch_layer_check_type (self, type, error);
}

/* Creates the tensors in their order, then their values; stores an error in the module. Those of a lazy layer
 * are not initialized, unless they have no dimensions. */
void gtorch_layer_make_tensors (GTorchModule *self, const GTorchLayerTensor *tensors, guint n,
                                gpointer data);
/* Sets the initial values of a parameter; first is the layer's first one. */
gboolean gtorch_layer_set_values (GTorchModule *self, GTorchTensor *parameter, GTorchTensor *first,
                                  const GTorchLayerTensor *tensor, GError **error);
/* Moves the new module to the requested device and dtype. */
void gtorch_layer_move (GTorchModule *self, GTorchDevice *device, gint dtype);

/* The functions that rows name. */
GTorchTensor *gtorch_layer_identity (GTorchModule *self, GTorchTensor *input, GError **error);
typedef GTorchImpl *(*GTorchLayerDropout) (GTorchImpl *self, gdouble p, gboolean training,
                                           GTorchGenerator *generator, GError **error);
GTorchTensor *gtorch_layer_dropout (GTorchModule *self, GTorchTensor *input, guint op,
                                    GTorchLayerDropout dropout, gdouble p, gboolean inplace,
                                    GError **error);
GTorchTensor *gtorch_layer_alpha_dropout (GTorchModule *self, GTorchTensor *input, guint op,
                                          GTorchLayerDropout dropout, gdouble p, gboolean inplace,
                                          GError **error);
GTorchTensor *gtorch_layer_rrelu (GTorchModule *self, GTorchTensor *input, gdouble lower,
                                  gdouble upper, gboolean inplace, GError **error);
GTorchTensor *gtorch_layer_batch_norm (GTorchModule *self, GTorchTensor *input, gint64 num_features,
                                       gdouble momentum, gdouble eps, guint least_dims,
                                       guint most_dims, const gchar *layout, GError **error);
GTorchTensor *gtorch_layer_sync_batch_norm (GTorchModule *self, GTorchTensor *input,
                                            gint64 num_features, gdouble momentum, gdouble eps,
                                            GError **error);
/* Adds 1 to the number of batches of a batch norm, and finds the weight of one in the average. */
gboolean gtorch_layer_count_batch (GTorchModule *self, GError **error);
gboolean gtorch_layer_share_of_batch (GTorchModule *self, gdouble *momentum, GError **error);
GTorchTensor *gtorch_layer_instance_norm (GTorchModule *self, GTorchTensor *input,
                                          gint64 num_features, gdouble momentum, gdouble eps,
                                          gboolean track_running_stats, guint example_dims,
                                          const gchar *layout, GError **error);
GTorchTensor *gtorch_layer_softmax2d (GTorchModule *self, GTorchTensor *input, GError **error);
GTorchTensor *gtorch_layer_interpolate (GTorchModule *self, GTorchTensor *input, GTorchSize *size,
                                        GTorchFactors *factors, gint mode, gboolean align_corners,
                                        gboolean recompute_scale_factor, GError **error);
/* of images: gtorch-transform.c, gtorch-transform-color.c */
GTorchTensor *gtorch_layer_resize (GTorchModule *self, GTorchTensor *input, GTorchSize *size,
                                   gint mode, gint64 max_size, gboolean antialias, GError **error);
GTorchTensor *gtorch_layer_center_crop (GTorchModule *self, GTorchTensor *input, GTorchSize *size,
                                        GError **error);
GTorchTensor *gtorch_layer_pad_image (GTorchModule *self, GTorchTensor *input, GTorchSize *padding,
                                      gdouble fill, gint mode, GError **error);
GTorchTensor *gtorch_layer_random_crop (GTorchModule *self, GTorchTensor *input, GTorchSize *size,
                                        GTorchSize *padding, gboolean pad_if_needed, gdouble fill,
                                        gint mode, GError **error);
GTorchTensor *gtorch_layer_random_resized_crop (GTorchModule *self, GTorchTensor *input,
                                                GTorchSize *size, GTorchFactors *scale,
                                                GTorchFactors *ratio, gint mode, gboolean antialias,
                                                GError **error);
GTorchTensor *gtorch_layer_random_erasing (GTorchModule *self, GTorchTensor *input, gdouble p,
                                           GTorchFactors *scale, GTorchFactors *ratio,
                                           gdouble value, gboolean inplace, GError **error);
GTorchTensor *gtorch_layer_random_flip (GTorchModule *self, GTorchTensor *input, gdouble p,
                                        gint64 dim, GError **error);
GTorchTensor *gtorch_layer_convert_image (GTorchModule *self, GTorchTensor *input, gint dtype,
                                          GError **error);
GTorchTensor *gtorch_layer_normalize_image (GTorchModule *self, GTorchTensor *input,
                                            GTorchFactors *mean, GTorchFactors *std,
                                            gboolean inplace, GError **error);
GTorchTensor *gtorch_layer_grayscale (GTorchModule *self, GTorchTensor *input, gint64 n_channels,
                                      GError **error);
GTorchTensor *gtorch_layer_color_jitter (GTorchModule *self, GTorchTensor *input,
                                         GTorchFactors *brightness, GTorchFactors *contrast,
                                         GTorchFactors *saturation, GTorchFactors *hue,
                                         GError **error);
typedef GTorchImpl *(*GTorchLayerMaxUnpool) (GTorchImpl *input, GTorchImpl *indices,
                                             const gint64 *kernel_size, gsize n_kernel_size,
                                             const gint64 *stride, gsize n_stride,
                                             const gint64 *padding, gsize n_padding,
                                             const gint64 *output_size, gsize n_output_size,
                                             GError **error);
/* output_size, a tensor of integers, may be NULL. */
GTorchTensor *gtorch_layer_max_unpool (GTorchModule *self, GTorchTensor *input,
                                       GTorchTensor *indices, GTorchImpl *output_size,
                                       GTorchLayerMaxUnpool max_unpool, GTorchSize *kernel_size,
                                       GTorchSize *stride, GTorchSize *padding, GError **error);
GTorchTensor *gtorch_layer_conv (GTorchModule *self, GTorchTensor *input, GTorchSize *stride,
                                 GTorchSize *padding, gint padding_rule, GTorchSize *dilation,
                                 gint64 groups, gint padding_mode, GError **error);
GTorchTensor *gtorch_layer_cross_map (GTorchModule *self, GTorchTensor *input, gint64 size,
                                      gdouble alpha, gdouble beta, gdouble k, GError **error);
/* Reads the last n numbers of an output size, a tensor of integers, which may have those of the batch and the
 * channels, too. */
gboolean gtorch_layer_read_size (gpointer self, GTorchImpl *output_size, guint input_dims, guint n,
                                 gint64 *size, GError **error);
/* Sets the error of a layer that would have two outputs. Returns NULL. */
GTorchTensor *gtorch_layer_refuse_indices (GTorchModule *self, GError **error);
void gtorch_layer_check_same_padding (GTorchModule *self, GTorchSize **padding, gint padding_rule,
                                      GTorchSize *stride);
/* Stores an error in the module if the mode is not zeros. */
void gtorch_layer_check_padding_mode (GTorchModule *self, gint padding_mode);
/* output_size, a tensor of integers, may be NULL. */
GTorchTensor *gtorch_layer_conv_transpose (GTorchConvTranspose *self, GTorchTensor *input,
                                           GTorchTensor *output_size, GTorchSize *stride,
                                           GTorchSize *padding, GTorchSize *output_padding,
                                           gint64 groups, GTorchSize *dilation, gint padding_mode,
                                           GError **error);
gboolean gtorch_layer_clear_row (GTorchModule *self, gint64 row);
/* Give the tensors of a layer, or all parameters of a recurrent network, their first values again. */
gboolean gtorch_layer_reset_tensors (GTorchModule *self, const GTorchLayerTensor *tensors, guint n,
                                     GError **error);
gboolean gtorch_layer_reset_uniform (GTorchModule *self, gint64 hidden_size, GError **error);
/* Returns PyTorch's default dimension of softmax: the second, for 0, 1 or 3 dimensions the first. */
gint64 gtorch_layer_implicit_dim (gint64 dim, GTorchTensor *input);

G_END_DECLS
