/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-layer-norm.h"

#include <glib/gi18n-lib.h>
#include <math.h>
#include <string.h>

#include "gtorch-field-private.h"
#include "gtorch-ops-private.h"

/**
 * GTorchLayerNorm:
 *
 * Normalises over the last dimensions of its input, then multiplies by a learned weight and adds a
 * learned bias (Ba et al., Layer normalization, 2016).
 *
 * The sizes of these dimensions are given to [ctor@LayerNorm.new]; made by its properties, a layer has
 * one: `normalized-size`.
 *
 * Since: 0.1
 */

/* The value of normalized-size while gtorch_layer_norm_new () has yet to give the shape. */
#define SEVERAL G_MININT64

struct _GTorchLayerNorm
{
  GTorchModule parent_instance;
  gint64 normalized_size;
  gdouble eps;
  gboolean elementwise_affine;
  gboolean has_bias;
  gint64 shape[GTORCH_MAX_DIMS];
  guint n_dims; /* 0 while it is normalized_size that counts */
};

/* clang-format off */
static const GTorchField fields[] = {
  { "normalized-size", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchLayerNorm, normalized_size), 0 },
  { "eps", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (GTorchLayerNorm, eps), 1e-5, NULL, TRUE },
  { "elementwise-affine", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchLayerNorm, elementwise_affine), 1 },
  { "has-bias", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchLayerNorm, has_bias), 1 },
  { "weight", GTORCH_FIELD_PARAMETER, 0 },
  { "bias", GTORCH_FIELD_PARAMETER, 1 },
};
/* clang-format on */

G_DEFINE_TYPE (GTorchLayerNorm, gtorch_layer_norm, GTORCH_TYPE_MODULE)

static void
gtorch_layer_norm_build (GTorchLayerNorm *self)
{
  GTorchModule *module = GTORCH_MODULE (self);
  guint i;

  for (i = 0; i < self->n_dims; i++)
    if (!gtorch_module_check_size (module, "normalized_size", self->shape[i], 1))
      return;
  gtorch_module_add_norm (module, self->shape, self->n_dims, self->elementwise_affine,
                          self->elementwise_affine && self->has_bias);
}

static void
gtorch_layer_norm_constructed (GObject *object)
{
  GTorchLayerNorm *self = GTORCH_LAYER_NORM (object);

  if (self->normalized_size != SEVERAL)
    {
      self->shape[0] = self->normalized_size;
      self->n_dims = 1;
      gtorch_layer_norm_build (self);
    }
  G_OBJECT_CLASS (gtorch_layer_norm_parent_class)->constructed (object);
}

static GTorchTensor *
gtorch_layer_norm_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  GTorchLayerNorm *self = GTORCH_LAYER_NORM (module);
  return gtorch_tensor_wrap (
      gtorch_op_layer_norm (gtorch_tensor_unwrap (input), self->shape, self->n_dims,
                            gtorch_module_parameter_impl (self, 0),
                            gtorch_module_parameter_impl (self, 1), self->eps, error));
}

static gchar *
gtorch_layer_norm_extra_repr (GTorchModule *module)
{
  GTorchLayerNorm *self = GTORCH_LAYER_NORM (module);
  g_autofree gchar *shape = gtorch_tuple_str (self->shape, self->n_dims);

  return g_strdup_printf ("%s, eps=%s, elementwise_affine=%s", shape, gtorch_double_str (self->eps),
                          GTORCH_BOOL_STR (self->elementwise_affine));
}

static void
gtorch_layer_norm_class_init (GTorchLayerNormClass *klass)
{
  G_OBJECT_CLASS (klass)->constructed = gtorch_layer_norm_constructed;
  GTORCH_MODULE_CLASS (klass)->forward = gtorch_layer_norm_forward;
  GTORCH_MODULE_CLASS (klass)->extra_repr = gtorch_layer_norm_extra_repr;

  /**
   * GTorchLayerNorm:normalized-size:
   *
   * The size of the last dimension.
   *
   * Since: 0.1
   */

  /**
   * GTorchLayerNorm:eps:
   *
   * What is added to the variance.
   *
   * Since: 0.1
   */

  /**
   * GTorchLayerNorm:elementwise-affine:
   *
   * Whether there is a weight.
   *
   * Since: 0.1
   */

  /**
   * GTorchLayerNorm:has-bias:
   *
   * Whether there is a bias, too.
   *
   * Since: 0.1
   */

  /**
   * GTorchLayerNorm:weight:
   *
   * A factor for each element, or %NULL.
   *
   * Since: 0.1
   */

  /**
   * GTorchLayerNorm:bias:
   *
   * A number to add for each element, or %NULL.
   *
   * Since: 0.1
   */
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_layer_norm_init (GTorchLayerNorm *self)
{
}

/**
 * gtorch_layer_norm_new:
 * @normalized_shape: (array length=n_dims): sizes of the last dimensions
 * @n_dims: how many
 * @eps: what is added to the variance, usually 1e-5
 * @elementwise_affine: whether to multiply by a learned weight
 * @bias: whether to add a learned bias then
 * @error: return location for an error
 *
 * Makes a layer normalisation.
 *
 * Returns: (transfer full): a new module, or %NULL with %GTORCH_ERROR_INVALID if a size is not positive
 *   or there is none, or too many
 *
 * Since: 0.1
 */
GTorchLayerNorm *
gtorch_layer_norm_new (const gint64 *normalized_shape, gsize n_dims, gdouble eps,
                       gboolean elementwise_affine, gboolean bias, GError **error)
{
  GTorchLayerNorm *self;

  g_return_val_if_fail (normalized_shape != NULL || n_dims == 0, NULL);
  if (n_dims == 0 || n_dims > GTORCH_MAX_DIMS)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: normalized_shape must have 1 to %d dimensions, it has "
                      "%" G_GSIZE_FORMAT),
                   "LayerNorm", GTORCH_MAX_DIMS, n_dims);
      return NULL;
    }
  if (!isfinite (eps))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: eps %g must be finite"),
                   "LayerNorm", eps);
      return NULL;
    }
  self = g_object_new (GTORCH_TYPE_LAYER_NORM, "normalized-size", SEVERAL, "eps", eps,
                       "elementwise-affine", elementwise_affine != FALSE, "has-bias", bias != FALSE,
                       NULL);
  memcpy (self->shape, normalized_shape, n_dims * sizeof (gint64));
  self->n_dims = (guint) n_dims;
  self->normalized_size = normalized_shape[n_dims - 1];
  gtorch_layer_norm_build (self);
  return gtorch_module_checked (self, error);
}

/**
 * gtorch_layer_norm_get_normalized_shape:
 * @self: a layer normalisation
 * @n_dims: (out): the length of the result
 *
 * Gets the sizes of the dimensions that it normalises.
 *
 * Returns: (array length=n_dims) (transfer none): the sizes of the last dimensions
 *
 * Since: 0.1
 */
const gint64 *
gtorch_layer_norm_get_normalized_shape (GTorchLayerNorm *self, gsize *n_dims)
{
  g_return_val_if_fail (GTORCH_IS_LAYER_NORM (self), NULL);
  g_return_val_if_fail (n_dims != NULL, NULL);
  *n_dims = self->n_dims;
  return self->shape;
}
