/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-batch-norm2d.h"

#include <glib/gi18n-lib.h>

#include "gtorch-field-private.h"
#include "gtorch-ops-private.h"

/**
 * GTorchBatchNorm2d:
 *
 * Normalises each channel of [N, C, H, W], then multiplies it by a learned weight and adds a learned
 * bias.
 *
 * While the module is being trained, each batch is normalised by its own mean and variance, which are
 * also mixed into the buffers `running_mean` and `running_var`; otherwise those are used. The buffer
 * `num_batches_tracked` counts the batches (Ioffe and Szegedy, Batch normalization, 2015).
 *
 * Since: 0.1
 */

struct _GTorchBatchNorm2d
{
  GTorchModule parent_instance;
  gint64 num_features;
  gdouble eps;
  gdouble momentum;
  gboolean affine;
  gboolean track_running_stats;
};

/* clang-format off */
static const GTorchField fields[] = {
  { "num-features", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchBatchNorm2d, num_features), 0 },
  { "eps", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (GTorchBatchNorm2d, eps), 1e-5, TRUE },
  { "momentum", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (GTorchBatchNorm2d, momentum), 0.1, TRUE },
  { "affine", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchBatchNorm2d, affine), 1 },
  { "track-running-stats", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchBatchNorm2d, track_running_stats), 1 },
  { "weight", GTORCH_FIELD_PARAMETER, 0 },
  { "bias", GTORCH_FIELD_PARAMETER, 1 },
  { "running-mean", GTORCH_FIELD_BUFFER, 0 },
  { "running-var", GTORCH_FIELD_BUFFER, 1 },
};
/* clang-format on */

G_DEFINE_TYPE (GTorchBatchNorm2d, gtorch_batch_norm2d, GTORCH_TYPE_MODULE)

static void
gtorch_batch_norm2d_constructed (GObject *object)
{
  GTorchBatchNorm2d *self = GTORCH_BATCH_NORM2D (object);
  GTorchModule *module = GTORCH_MODULE (object);

  if (gtorch_module_check_size (module, "num_features", self->num_features, 1))
    gtorch_module_add_norm (module, &self->num_features, 1, self->affine, self->affine);
  if (self->num_features >= 1 && self->track_running_stats)
    gtorch_module_add_running_stats (module, self->num_features);
  G_OBJECT_CLASS (gtorch_batch_norm2d_parent_class)->constructed (object);
}

static GTorchTensor *
gtorch_batch_norm2d_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  GTorchBatchNorm2d *self = GTORCH_BATCH_NORM2D (module);
  GTorchImpl *impl = gtorch_tensor_unwrap (input);
  GTorchImpl *mean = gtorch_module_buffer_impl (self, 0);
  GTorchImpl *var = gtorch_module_buffer_impl (self, 1);
  const gboolean training = gtorch_module_get_training (module);
  const guint n_dims = impl->n_dims;
  GTorchImpl *output;

  if (!(n_dims == 4) || impl->shape[1] != self->num_features)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: shape %s is not [N, C, H, W] with %" G_GINT64_FORMAT " channels"),
                   gtorch_module_type_name (self), gtorch_impl_shape_str (impl),
                   self->num_features);
      return NULL;
    }
  output = gtorch_op_batch_norm (impl, mean, var, gtorch_module_parameter_impl (self, 0),
                                 gtorch_module_parameter_impl (self, 1), training || mean == NULL,
                                 self->momentum, self->eps, error);
  /* a batch that failed is none */
  if (output != NULL && training && mean != NULL && !gtorch_module_count_batch (module, error))
    g_clear_pointer (&output, gtorch_impl_unref);
  return gtorch_tensor_wrap (output);
}

static gchar *
gtorch_batch_norm2d_extra_repr (GTorchModule *module)
{
  GTorchBatchNorm2d *self = GTORCH_BATCH_NORM2D (module);
  return g_strdup_printf ("%" G_GINT64_FORMAT
                          ", eps=%s, momentum=%s, affine=%s, track_running_stats=%s",
                          self->num_features, gtorch_double_str (self->eps),
                          gtorch_double_str (self->momentum), GTORCH_BOOL_STR (self->affine),
                          GTORCH_BOOL_STR (self->track_running_stats));
}

static void
gtorch_batch_norm2d_class_init (GTorchBatchNorm2dClass *klass)
{
  G_OBJECT_CLASS (klass)->constructed = gtorch_batch_norm2d_constructed;
  GTORCH_MODULE_CLASS (klass)->forward = gtorch_batch_norm2d_forward;
  GTORCH_MODULE_CLASS (klass)->extra_repr = gtorch_batch_norm2d_extra_repr;

  /**
   * GTorchBatchNorm2d:num-features:
   *
   * How many channels the input has.
   *
   * Since: 0.1
   */

  /**
   * GTorchBatchNorm2d:eps:
   *
   * What is added to the variance.
   *
   * Since: 0.1
   */

  /**
   * GTorchBatchNorm2d:momentum:
   *
   * The share of a batch in the running mean and variance.
   *
   * Since: 0.1
   */

  /**
   * GTorchBatchNorm2d:affine:
   *
   * Whether there are weight and bias.
   *
   * Since: 0.1
   */

  /**
   * GTorchBatchNorm2d:track-running-stats:
   *
   * Whether there are a running mean and variance.
   *
   * Since: 0.1
   */

  /**
   * GTorchBatchNorm2d:weight:
   *
   * A factor for each channel, or %NULL.
   *
   * Since: 0.1
   */

  /**
   * GTorchBatchNorm2d:bias:
   *
   * A number to add for each channel, or %NULL.
   *
   * Since: 0.1
   */

  /**
   * GTorchBatchNorm2d:running-mean:
   *
   * The running mean of each channel, or %NULL.
   *
   * Since: 0.1
   */

  /**
   * GTorchBatchNorm2d:running-var:
   *
   * The running variance of each channel, or %NULL.
   *
   * Since: 0.1
   */
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_batch_norm2d_init (GTorchBatchNorm2d *self)
{
}

/**
 * gtorch_batch_norm2d_new:
 * @num_features: channels of the input
 * @error: return location for an error
 *
 * Makes a batch normalisation.
 *
 * Returns: (transfer full): a new module, or %NULL with %GTORCH_ERROR_INVALID if @num_features is
 *   not positive
 *
 * Since: 0.1
 */
GTorchBatchNorm2d *
gtorch_batch_norm2d_new (gint64 num_features, GError **error)
{
  return gtorch_module_checked (g_object_new (GTORCH_TYPE_BATCH_NORM2D, "num-features",
                                              num_features, NULL),
                                error);
}
