/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A soft-max over many classes, of which few are frequent: the layer and its parts.
 * gtorch-adaptive-log-softmax-scores.c computes. */

#include "config.h"

#include "nn/gtorch-adaptive-log-softmax.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>

#include "dispatch/gtorch-grad-mode.h"
#include "gtorch-ops-private.h"
#include "nn/gtorch-adaptive-log-softmax-private.h"
#include "nn/gtorch-init.h"
#include "nn/gtorch-layer-private.h"
#include "nn/gtorch-layers.h"
#include "nn/gtorch-module-list.h"
#include "nn/gtorch-sequential.h"
#include "tensor/gtorch-tensor-private.h"

/**
 * GTorchAdaptiveLogSoftmaxWithLoss:
 *
 * A soft-max over many classes that takes less time for frequent ones, with the loss (Grave et al., Efficient
 * softmax approximation for GPUs, 2017).
 *
 * Classes are numbered by how frequent they are, the most frequent one first. The children are `head`, a
 * [class@Linear], and `tail`, a [class@ModuleList] of two [class@Linear] in a [class@Sequential] for each
 * cluster of rarer classes. [method@Module.forward_many] takes the input and the target, and gives the
 * log-probabilities of the targets, as hooks get them.
 *
 * ```c
 * const gint64 cutoffs[] = { 100, 1000 };
 * g_autoptr (GTorchSize) size = gtorch_size_new (cutoffs, 2);
 * g_autoptr (GTorchAdaptiveLogSoftmaxWithLoss) layer =
 *     gtorch_adaptive_log_softmax_with_loss_new (64, 10000, size, &error);
 * ```
 *
 * Since: 0.1
 */

typedef GTorchAdaptiveLogSoftmaxWithLoss Self;

/* clang-format off */
static const GTorchField fields[] = {
  /**
   * GTorchAdaptiveLogSoftmaxWithLoss:in-features:
   *
   * The size of the last dimension of the input.
   *
   * Since: 0.1
   */
  { "in-features", GTORCH_FIELD_INT64, GTORCH_FIELD (Self, in_features), .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchAdaptiveLogSoftmaxWithLoss:n-classes:
   *
   * The number of classes.
   *
   * Since: 0.1
   */
  { "n-classes", GTORCH_FIELD_INT64, GTORCH_FIELD (Self, n_classes), .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchAdaptiveLogSoftmaxWithLoss:cutoffs:
   *
   * The classes at which clusters begin, in ascending order: those before the first one are in the head. The
   * last cluster ends at [property@AdaptiveLogSoftmaxWithLoss:n-classes], which Python and JavaScript show as a
   * further number.
   *
   * Since: 0.1
   */
  { "cutoffs", GTORCH_FIELD_SIZE, GTORCH_FIELD (Self, cutoffs), .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchAdaptiveLogSoftmaxWithLoss:div-value:
   *
   * By what the size of the hidden layer of each cluster is less than that of the one before.
   *
   * Since: 0.1
   */
  { "div-value", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (Self, div_value), .value = 4.0, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchAdaptiveLogSoftmaxWithLoss:head-bias:
   *
   * Whether the head has a bias.
   *
   * Since: 0.1
   */
  { "head-bias", GTORCH_FIELD_BOOL, GTORCH_FIELD (Self, head_bias), .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchAdaptiveLogSoftmaxWithLoss:device:
   *
   * The device on which the parameters are created; %NULL means the default.
   *
   * Since: 0.1
   */
  GTORCH_LAYER_DEVICE (Self),
  /**
   * GTorchAdaptiveLogSoftmaxWithLoss:dtype:
   *
   * The dtype of the parameters; none means the default.
   *
   * Since: 0.1
   */
  GTORCH_LAYER_DTYPE (Self),
};
/* clang-format on */

G_DEFINE_TYPE (GTorchAdaptiveLogSoftmaxWithLoss, gtorch_adaptive_log_softmax_with_loss,
               GTORCH_TYPE_MODULE)

/* --- construction --- */

static gboolean
check_cutoffs (Self *self, GError **error)
{
  const gchar *name = gtorch_module_type_name (GTORCH_MODULE (self));
  gint64 before = 0;

  if (self->cutoffs == NULL || gtorch_adaptive_count_clusters (self) == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: cutoffs is empty, it must have at least one number"), name);
      return FALSE;
    }
  for (guint i = 0; i < gtorch_adaptive_count_clusters (self); i++)
    {
      const gint64 cutoff = gtorch_adaptive_begin_of (self, i);

      if (cutoff <= before || cutoff >= self->n_classes)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("%s: number %u of cutoffs is %" PRId64
                          ", they must ascend from 1 to n_classes - 1, which is %" PRId64),
                       name, i, cutoff, self->n_classes - 1);
          return FALSE;
        }
      before = cutoff;
    }
  return TRUE;
}

static GTorchModule *
make_linear (gint64 from, gint64 to, gboolean bias, GError **error)
{
  return gtorch_module_new (GTORCH_TYPE_LINEAR, error, "in-features", from, "out-features", to,
                            "has-bias", bias, NULL);
}

/* The size of the hidden layer of a cluster; 0 if it is none. */
static gint64
hidden_size (Self *self, guint i)
{
  const gdouble size = floor ((gdouble) self->in_features / pow (self->div_value, i + 1));

  return size >= 1 && size <= (gdouble) (G_MAXINT64 / 2) ? (gint64) size : 0;
}

static GTorchModule *
make_cluster (Self *self, guint i, GError **error)
{
  const gint64 hidden = hidden_size (self, i);
  g_autoptr (GTorchModule) first = NULL;
  g_autoptr (GTorchModule) second = NULL;

  if (hidden == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: in_features is %" PRId64
                      " and div_value %g: the hidden layer of cluster %u must have a size of at "
                      "least 1"),
                   gtorch_module_type_name (GTORCH_MODULE (self)), self->in_features,
                   self->div_value, i);
      return NULL;
    }
  first = make_linear (self->in_features, hidden, FALSE, error);
  second = first != NULL ? make_linear (hidden,
                                        gtorch_adaptive_begin_of (self, i + 1)
                                            - gtorch_adaptive_begin_of (self, i),
                                        FALSE, error)
                         : NULL;
  if (second == NULL)
    return NULL;
  return (GTorchModule *) gtorch_sequential_new_from_modules ((GTorchModule *[]){ first, second },
                                                              2, error);
}

static gboolean
make (Self *self, GError **error)
{
  GTorchModule *module = GTORCH_MODULE (self);
  g_autoptr (GTorchModule) head = NULL;
  g_autoptr (GTorchModuleList) tail = gtorch_module_list_new ();

  if (!gtorch_layer_check_least (module, "in_features", self->in_features, 1, error)
      || !gtorch_layer_check_least (module, "n_classes", self->n_classes, 2, error)
      || !check_cutoffs (self, error)
      || !gtorch_layer_check_range (module, "div_value", self->div_value, 0, G_MAXDOUBLE, TRUE,
                                    error))
    return FALSE;
  head = make_linear (self->in_features,
                      gtorch_adaptive_begin_of (self, 0) + gtorch_adaptive_count_clusters (self),
                      self->head_bias, error);
  if (head == NULL || !gtorch_module_register_module (module, "head", head, error))
    return FALSE;
  for (guint i = 0; i < gtorch_adaptive_count_clusters (self); i++)
    {
      g_autoptr (GTorchModule) cluster = make_cluster (self, i, error);

      if (cluster == NULL || !gtorch_module_list_append (tail, cluster, error))
        return FALSE;
    }
  return gtorch_module_register_module (module, "tail", GTORCH_MODULE (tail), error);
}

static void
gtorch_adaptive_log_softmax_with_loss_constructed (GObject *object)
{
  Self *self = GTORCH_ADAPTIVE_LOG_SOFTMAX_WITH_LOSS (object);
  GError *error = NULL;

  G_OBJECT_CLASS (gtorch_adaptive_log_softmax_with_loss_parent_class)->constructed (object);
  if (!make (self, &error))
    gtorch_module_set_error (GTORCH_MODULE (self), error);
  gtorch_layer_move (GTORCH_MODULE (self), self->device, self->dtype);
  g_clear_object (&self->device);
}

static void
gtorch_adaptive_log_softmax_with_loss_finalize (GObject *object)
{
  gtorch_fields_clear (object, fields, G_N_ELEMENTS (fields));
  G_OBJECT_CLASS (gtorch_adaptive_log_softmax_with_loss_parent_class)->finalize (object);
}

/* Gives the head and the tails their first values again. */
static gboolean
reset (GTorchModule *module, GError **error)
{
  Self *self = (Self *) module;
  g_autoptr (GTorchModule) head = gtorch_module_get_module (module, "head", error);

  if (head == NULL || !gtorch_module_reset_parameters (head, error))
    return FALSE;
  for (guint i = 0; i < 2 * gtorch_adaptive_count_clusters (self); i++)
    {
      g_autofree gchar *name = g_strdup_printf ("tail.%u.%u", i / 2, i % 2);
      g_autoptr (GTorchModule) linear = gtorch_module_get_module (module, name, error);

      if (linear == NULL || !gtorch_module_reset_parameters (linear, error))
        return FALSE;
    }
  return TRUE;
}

/* --- the loss --- */

static gboolean
check_inputs (Self *self, GTorchImpl *x, GTorchImpl *target, GError **error)
{
  const gchar *name = gtorch_module_type_name (GTORCH_MODULE (self));

  if (target->n_dims > 1 || x->n_dims != target->n_dims + 1
      || (target->n_dims == 1 && x->shape[0] != target->shape[0]))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: an input of shape %s with a target %s: they must be [N, in_features] "
                      "and [N], or [in_features] and a target without dimensions"),
                   name, gtorch_impl_shape_str (x), gtorch_impl_shape_str (target));
      return FALSE;
    }
  if (gtorch_dtype_kind (target->dtype) != GTORCH_KIND_INT)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("%s: targets must be integers, they are %s"), name,
                   gtorch_dtype_get_name (target->dtype));
      return FALSE;
    }
  return TRUE;
}

static GTorchTensor *
gtorch_adaptive_log_softmax_with_loss_forward_many (GTorchModule *module, GTorchTensor **inputs,
                                                    gsize n_inputs, GError **error)
{
  Self *self = (Self *) module;
  GTorchImpl *x, *target, *output;

  if (n_inputs != 2)
    return gtorch_module_refuse_inputs (module, n_inputs, error);
  if (!gtorch_layer_is (module, GTORCH_TYPE_ADAPTIVE_LOG_SOFTMAX_WITH_LOSS, error)
      || !gtorch_module_is_usable (module, error))
    return NULL;
  x = gtorch_tensor_unwrap (inputs[0]);
  target = gtorch_tensor_unwrap (inputs[1]);
  if (!check_inputs (self, x, target, error))
    return NULL;
  if (target->n_dims == 1)
    output = gtorch_adaptive_target_log_probs (self, x, target, error);
  else
    {
      g_autoptr (GTorchImpl) row = gtorch_op_unsqueeze (x, 0, error);
      g_autoptr (GTorchImpl) made =
          row != NULL ? gtorch_adaptive_target_log_probs (self, row, target, error) : NULL;

      output = made != NULL ? gtorch_op_select (made, 0, 0, error) : NULL;
    }
  return output != NULL ? gtorch_tensor_wrap (output) : NULL;
}

static void
gtorch_adaptive_log_softmax_with_loss_class_init (GTorchAdaptiveLogSoftmaxWithLossClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->constructed = gtorch_adaptive_log_softmax_with_loss_constructed;
  object_class->finalize = gtorch_adaptive_log_softmax_with_loss_finalize;
  GTORCH_MODULE_CLASS (klass)->forward_many = gtorch_adaptive_log_softmax_with_loss_forward_many;
  GTORCH_MODULE_CLASS (klass)->reset = (gpointer) reset;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_adaptive_log_softmax_with_loss_init (GTorchAdaptiveLogSoftmaxWithLoss *self)
{
}

/**
 * gtorch_adaptive_log_softmax_with_loss_new:
 * @in_features: the size of the last dimension of the input
 * @n_classes: the number of classes
 * @cutoffs: the classes at which clusters of rarer classes begin, in ascending order
 * @error: return location for an error
 *
 * Creates a [class@AdaptiveLogSoftmaxWithLoss]. Other settings are properties: see `gtorch_module_new ()`.
 *
 * Returns: (transfer full): a new module, or %NULL with %GTORCH_ERROR_INVALID
 *
 * Since: 0.1
 */
GTorchAdaptiveLogSoftmaxWithLoss *
gtorch_adaptive_log_softmax_with_loss_new (gint64 in_features, gint64 n_classes,
                                           GTorchSize *cutoffs, GError **error)
{
  g_return_val_if_fail (cutoffs != NULL, NULL);

  return gtorch_module_checked (g_object_new (GTORCH_TYPE_ADAPTIVE_LOG_SOFTMAX_WITH_LOSS,
                                              "in-features", in_features, "n-classes", n_classes,
                                              "cutoffs", cutoffs, NULL),
                                error);
}

/**
 * gtorch_adaptive_log_softmax_with_loss_forward:
 * @self: the module
 * @input: what is known of examples, [N, in_features] or [in_features]
 * @target: their classes, [N], or without dimensions
 * @output: (out) (transfer full): the log-probabilities of the targets, of the shape of @target
 * @loss: (out) (transfer full): the negative mean of @output
 * @error: return location for an error
 *
 * Computes the log-probabilities of the targets, and the loss. The host reads the targets.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_SHAPE, %GTORCH_ERROR_DTYPE, or %GTORCH_ERROR_INDEX if a target
 *   is no class
 *
 * Since: 0.1
 */
gboolean
gtorch_adaptive_log_softmax_with_loss_forward (GTorchAdaptiveLogSoftmaxWithLoss *self,
                                               GTorchTensor *input, GTorchTensor *target,
                                               GTorchTensor **output, GTorchTensor **loss,
                                               GError **error)
{
  GTorchTensor *inputs[] = { input, target };
  g_autoptr (GTorchTensor) found = NULL;
  g_autoptr (GTorchImpl) mean = NULL;
  GTorchImpl *negative;

  g_return_val_if_fail (GTORCH_IS_ADAPTIVE_LOG_SOFTMAX_WITH_LOSS (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (input), FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (target), FALSE);
  g_return_val_if_fail (output != NULL, FALSE);
  g_return_val_if_fail (loss != NULL, FALSE);

  found = gtorch_module_call (GTORCH_MODULE (self), inputs, 2, error);
  if (found == NULL)
    return FALSE;
  mean = gtorch_op_mean (gtorch_tensor_unwrap (found), NULL, 0, FALSE, GTORCH_DTYPE_NONE, error);
  negative = mean != NULL ? gtorch_op_neg (mean, error) : NULL;
  if (negative == NULL)
    return FALSE;
  *output = g_steal_pointer (&found);
  *loss = gtorch_tensor_wrap (negative);
  return TRUE;
}

static gboolean
check_matrix (Self *self, GTorchTensor *input, GError **error)
{
  GTorchImpl *x = gtorch_tensor_unwrap (input);

  if (!gtorch_module_is_usable (GTORCH_MODULE (self), error))
    return FALSE;
  if (x->n_dims == 2)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("%s: an input of shape %s: it must be [N, in_features]"),
               gtorch_module_type_name (GTORCH_MODULE (self)), gtorch_impl_shape_str (x));
  return FALSE;
}

/**
 * gtorch_adaptive_log_softmax_with_loss_log_prob:
 * @self: the module
 * @input: what is known of examples, [N, in_features]
 * @error: return location for an error
 *
 * Computes the log-probabilities of all classes. No hooks of the module are called.
 *
 * Returns: (transfer full): [N, n_classes], or %NULL with %GTORCH_ERROR_SHAPE
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_adaptive_log_softmax_with_loss_log_prob (GTorchAdaptiveLogSoftmaxWithLoss *self,
                                                GTorchTensor *input, GError **error)
{
  GTorchImpl *made;

  g_return_val_if_fail (GTORCH_IS_ADAPTIVE_LOG_SOFTMAX_WITH_LOSS (self), NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (input), NULL);

  if (!check_matrix (self, input, error))
    return NULL;
  made = gtorch_adaptive_all_log_probs (self, gtorch_tensor_unwrap (input), error);
  return made != NULL ? gtorch_tensor_wrap (made) : NULL;
}

/**
 * gtorch_adaptive_log_softmax_with_loss_predict:
 * @self: the module
 * @input: what is known of examples, [N, in_features]
 * @error: return location for an error
 *
 * Finds the most probable class of each example. The host waits to know which of them the clusters are asked
 * for; no hooks of the module are called.
 *
 * Returns: (transfer full): [N], integers, or %NULL with %GTORCH_ERROR_SHAPE
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_adaptive_log_softmax_with_loss_predict (GTorchAdaptiveLogSoftmaxWithLoss *self,
                                               GTorchTensor *input, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = NULL;
  GTorchImpl *made;

  g_return_val_if_fail (GTORCH_IS_ADAPTIVE_LOG_SOFTMAX_WITH_LOSS (self), NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (input), NULL);

  if (!check_matrix (self, input, error))
    return NULL;
  guard = gtorch_no_grad ();
  made = gtorch_adaptive_predict (self, gtorch_tensor_unwrap (input), error);
  return made != NULL ? gtorch_tensor_wrap (made) : NULL;
}
