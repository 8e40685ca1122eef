/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "train/gtorch-metric-private.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-text-private.h"
#include "base/gtorch-callback-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "elements/gtorch-tensor-bytes.h"
#include "gtorch-ops-private.h"
#include "tensor/gtorch-hold-private.h"
#include "tensor/gtorch-tensor-private.h"

/**
 * GTorchMetric:
 *
 * Measures how well a model does over many batches.
 *
 * [method@Metric.update] takes the outputs and the targets of a batch, and [method@Metric.compute] gives the
 * metric of all batches since the last [method@Metric.reset]. What is counted lies in the states of the
 * metric: tensors on the device of the outputs, so that an update waits for nothing. Only reading the result
 * waits for the device.
 *
 * A subclass, in any language, adds its states in its constructor, with [method@Metric.add_state], and
 * overrides `update` and `compute`. A [class@Trainer] updates its metrics in evaluations.
 *
 * ```c
 * g_autoptr (GTorchMetric) accuracy = gtorch_accuracy_new (1);
 *
 * gtorch_metric_update (accuracy, output, target, &error);
 * g_print ("%g\n", gtorch_metric_compute_value (accuracy, &error));
 * ```
 *
 * Since: 0.1
 */

typedef struct
{
  gchar *name;
  GTorchTensor *initial, *value;
} State;

typedef struct
{
  GPtrArray *states;
} GTorchMetricPrivate;

G_DEFINE_ABSTRACT_TYPE_WITH_PRIVATE (GTorchMetric, gtorch_metric, G_TYPE_OBJECT)

#define STATES(self) (((GTorchMetricPrivate *) gtorch_metric_get_instance_private (self))->states)

static void
state_free (gpointer data)
{
  State *state = data;

  g_free (state->name);
  g_object_unref (state->initial);
  g_object_unref (state->value);
  g_free (state);
}

static State *
find_state (GTorchMetric *self, const gchar *name)
{
  GPtrArray *states = STATES (self);

  for (guint i = 0; i < states->len; i++)
    {
      State *state = states->pdata[i];

      if (g_str_equal (state->name, name))
        return state;
    }
  return NULL;
}

static State *
need_state (GTorchMetric *self, const gchar *op, const gchar *name, GError **error)
{
  State *state = find_state (self, name);

  if (state == NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND, _ ("%s: %s has no state “%s”"), op,
                 G_OBJECT_TYPE_NAME (self), gtorch_name_str (name));
  return state;
}

/* Gives a copy, since states are written in place. */
static GTorchTensor *
copy_tensor (GTorchTensor *tensor, GError **error)
{
  return gtorch_tensor_wrap (gtorch_op_clone (gtorch_tensor_unwrap (tensor), error));
}

static gboolean
gtorch_metric_real_reset (GTorchMetric *self, GError **error)
{
  GPtrArray *states = STATES (self);
  g_autoptr (GPtrArray) values = g_ptr_array_new_with_free_func (g_object_unref);

  for (guint i = 0; i < states->len; i++)
    {
      GTorchTensor *value = copy_tensor (((State *) states->pdata[i])->initial, error);

      if (value == NULL)
        return FALSE;
      g_ptr_array_add (values, value);
    }
  for (guint i = 0; i < states->len; i++)
    g_set_object (&((State *) states->pdata[i])->value, values->pdata[i]);
  return TRUE;
}

static void
gtorch_metric_finalize (GObject *object)
{
  g_ptr_array_unref (STATES (GTORCH_METRIC (object)));
  G_OBJECT_CLASS (gtorch_metric_parent_class)->finalize (object);
}

static void
gtorch_metric_class_init (GTorchMetricClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_metric_finalize;
  klass->reset = gtorch_metric_real_reset;
}

static void
gtorch_metric_init (GTorchMetric *self)
{
  GTorchMetricPrivate *priv = gtorch_metric_get_instance_private (self);

  priv->states = g_ptr_array_new_with_free_func (state_free);
}

static gboolean
refuse_without (GTorchMetric *self, const gchar *op, const gchar *function, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED, _ ("%s: %s does not override %s"),
               op, G_OBJECT_TYPE_NAME (self), function);
  return FALSE;
}

/**
 * gtorch_metric_update:
 * @self: a metric
 * @output: what a model gave for a batch
 * @target: (nullable): what it should have given; some metrics need none
 * @error: return location for an error
 *
 * Adds a batch. Does not wait for the device.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_SHAPE or %GTORCH_ERROR_DTYPE if the metric is not defined for
 *   such tensors, or with the error of a subclass; then nothing was added
 *
 * Since: 0.1
 */
gboolean
gtorch_metric_update (GTorchMetric *self, GTorchTensor *output, GTorchTensor *target,
                      GError **error)
{
  GTORCH_HOLD_TENSOR (output);
  g_autoptr (GTorchGradGuard) guard = NULL;
  GTorchMetricClass *klass;
  GError *local = NULL;
  gboolean done;

  g_return_val_if_fail (GTORCH_IS_METRIC (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (output), FALSE);
  g_return_val_if_fail (target == NULL || GTORCH_IS_TENSOR (target), FALSE);
  klass = GTORCH_METRIC_GET_CLASS (self);
  if (klass->update == NULL)
    return refuse_without (self, "update", "update", error);
  guard = gtorch_no_grad ();
  done = klass->update (self, output, target, &local);
  return gtorch_callback_ended ("update", done, local, error);
}

/**
 * gtorch_metric_compute:
 * @self: a metric
 * @error: return location for an error
 *
 * Computes the metric of all batches since the last reset. The states stay, so that more batches can be
 * added.
 *
 * Returns: (transfer full): the metric, on the device of the states; or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_metric_compute (GTorchMetric *self, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = NULL;
  g_autoptr (GTorchTensor) result = NULL;
  GTorchMetricClass *klass;
  GError *local = NULL;

  g_return_val_if_fail (GTORCH_IS_METRIC (self), NULL);
  klass = GTORCH_METRIC_GET_CLASS (self);
  if (klass->compute == NULL)
    {
      refuse_without (self, "compute", "compute", error);
      return NULL;
    }
  guard = gtorch_no_grad ();
  result = klass->compute (self, &local);
  if (!gtorch_callback_gave ("compute", result, local, error)
      || !gtorch_callback_check ("compute", "compute", &result, GTORCH_TYPE_TENSOR, error))
    return NULL;
  return g_steal_pointer (&result);
}

/**
 * gtorch_metric_compute_value:
 * @self: a metric
 * @error: return location for an error
 *
 * Computes the metric and waits for it. The metric must be one number.
 *
 * Returns: the metric; 0 with @error set, %GTORCH_ERROR_SHAPE if it is several numbers, as a confusion
 *   matrix is
 *
 * Since: 0.1
 */
gdouble
gtorch_metric_compute_value (GTorchMetric *self, GError **error)
{
  g_autoptr (GTorchTensor) result = NULL;

  g_return_val_if_fail (GTORCH_IS_METRIC (self), 0);
  result = gtorch_metric_compute (self, error);
  return result != NULL ? gtorch_tensor_item_double (result, error) : 0;
}

/**
 * gtorch_metric_reset:
 * @self: a metric
 * @error: return location for an error
 *
 * Forgets all batches.
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_metric_reset (GTorchMetric *self, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = NULL;
  GError *local = NULL;
  gboolean done;

  g_return_val_if_fail (GTORCH_IS_METRIC (self), FALSE);
  guard = gtorch_no_grad ();
  done = GTORCH_METRIC_GET_CLASS (self)->reset (self, &local);
  return gtorch_callback_ended ("reset", done, local, error);
}

static void
put_state (GTorchMetric *self, const gchar *name, GTorchTensor *initial, GTorchTensor *value)
{
  State *state = g_new (State, 1);

  *state = (State){ g_strdup (name), initial, value };
  g_ptr_array_add (STATES (self), state);
}

/**
 * gtorch_metric_add_state:
 * @self: a metric
 * @name: the name of the state
 * @initial: its initial value, which is copied
 * @error: return location for an error
 *
 * Adds a state, for constructors of subclasses. [method@Metric.reset] gives it its initial value again.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if the name is empty or taken
 *
 * Since: 0.1
 */
gboolean
gtorch_metric_add_state (GTorchMetric *self, const gchar *name, GTorchTensor *initial,
                         GError **error)
{
  GTORCH_HOLD_TENSOR (initial);
  g_autoptr (GTorchGradGuard) guard = NULL;
  g_autoptr (GTorchTensor) first = NULL;
  GTorchTensor *value;

  g_return_val_if_fail (GTORCH_IS_METRIC (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (initial), FALSE);
  if (*name == '\0' || find_state (self, name) != NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   *name == '\0' ? _ ("add_state: the name “%s” is empty")
                                 : _ ("add_state: there is a state “%s” already"),
                   gtorch_name_str (name));
      return FALSE;
    }
  guard = gtorch_no_grad ();
  first = copy_tensor (initial, error);
  value = first != NULL ? copy_tensor (first, error) : NULL;
  if (value == NULL)
    return FALSE;
  put_state (self, name, g_steal_pointer (&first), value);
  return TRUE;
}

/**
 * gtorch_metric_get_state_names:
 * @self: a metric
 *
 * Gets the names of the states, in the order in which they were added.
 *
 * Returns: (transfer full) (array zero-terminated=1): the names
 *
 * Since: 0.1
 */
gchar **
gtorch_metric_get_state_names (GTorchMetric *self)
{
  GStrvBuilder *builder;
  gchar **names;

  g_return_val_if_fail (GTORCH_IS_METRIC (self), NULL);
  builder = g_strv_builder_new ();
  for (guint i = 0; i < STATES (self)->len; i++)
    g_strv_builder_add (builder, ((State *) STATES (self)->pdata[i])->name);
  names = g_strv_builder_end (builder);
  g_strv_builder_unref (builder);
  return names;
}

/**
 * gtorch_metric_get_state:
 * @self: a metric
 * @name: the name of a state
 * @error: return location for an error
 *
 * Gets a state. An `update` may change it in place, or set another one.
 *
 * Returns: (transfer none): the state, or %NULL with %GTORCH_ERROR_NOT_FOUND
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_metric_get_state (GTorchMetric *self, const gchar *name, GError **error)
{
  State *state;

  g_return_val_if_fail (GTORCH_IS_METRIC (self), NULL);
  g_return_val_if_fail (name != NULL, NULL);
  state = need_state (self, "get_state", name, error);
  return state != NULL ? state->value : NULL;
}

/**
 * gtorch_metric_set_state:
 * @self: a metric
 * @name: the name of a state
 * @value: its new value, which is not copied
 * @error: return location for an error
 *
 * Sets a state.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_NOT_FOUND
 *
 * Since: 0.1
 */
gboolean
gtorch_metric_set_state (GTorchMetric *self, const gchar *name, GTorchTensor *value, GError **error)
{
  State *state;

  g_return_val_if_fail (GTORCH_IS_METRIC (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (value), FALSE);
  state = need_state (self, "set_state", name, error);
  if (state == NULL)
    return FALSE;
  g_set_object (&state->value, value);
  return TRUE;
}

/* --- for the metrics of the library --- */

static GTorchTensor *
new_zero (GTorchDType dtype)
{
  GTorchImpl *zero =
      dtype == GTORCH_DTYPE_INT64 ? gtorch_impl_new_int (0) : gtorch_impl_new_number (0);

  zero->is_number = FALSE;
  return gtorch_tensor_wrap (zero);
}

void
gtorch_metric_add_zero (GTorchMetric *self, const gchar *name, GTorchDType dtype)
{
  put_state (self, name, new_zero (dtype), new_zero (dtype));
}

GTorchImpl *
gtorch_metric_state_on (GTorchMetric *self, const gchar *name, const gint64 *shape, guint n_dims,
                        GTorchDevice *device, GError **error)
{
  State *state = need_state (self, "update", name, error);
  GTorchImpl *impl, *made;

  if (state == NULL)
    return NULL;
  impl = gtorch_tensor_unwrap (state->value);
  if (!gtorch_same_shape (impl->shape, impl->n_dims, shape, n_dims))
    made = gtorch_op_zeros (shape, n_dims, impl->dtype, device, error);
  else if (gtorch_impl_device (impl) != device)
    made = gtorch_op_to_device (impl, device, FALSE, error);
  else
    return impl;
  if (made == NULL)
    return NULL;
  g_object_unref (state->value);
  state->value = gtorch_tensor_wrap (made);
  return made;
}

gboolean
gtorch_metric_accumulate (GTorchMetric *self, const gchar *name, GTorchDevice *device,
                          GTorchImpl *value, GError **error)
{
  GTorchImpl *state =
      value != NULL ? gtorch_metric_state_on (self, name, NULL, 0, device, error) : NULL;

  return state != NULL && gtorch_op_add_inplace (state, value, 1, error);
}

gboolean
gtorch_metric_check_target (const gchar *op, GTorchTensor *target, GError **error)
{
  if (target != NULL)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: there are no targets"), op);
  return FALSE;
}

gboolean
gtorch_metric_check_devices (const gchar *op, const GTorchImpl *output, const GTorchImpl *target,
                             GError **error)
{
  g_autofree gchar *here = NULL;
  g_autofree gchar *there = NULL;

  if (gtorch_impl_device (output) == gtorch_impl_device (target))
    return TRUE;
  here = gtorch_device_to_string (gtorch_impl_device (output));
  there = gtorch_device_to_string (gtorch_impl_device (target));
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH,
               _ ("%s: the outputs are on %s and the targets on %s"), op, here, there);
  return FALSE;
}
