/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "optim/gtorch-averaged-model.h"

#include <glib/gi18n-lib.h>

#include "autograd/gtorch-tensor-autograd.h"
#include "base/gtorch-callback-private.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-none-private.h"
#include "base/gtorch-range-private.h"
#include "base/gtorch-references-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "gtorch-ops-private.h"
#include "nn/gtorch-module-private.h"
#include "ops/gtorch-host-private.h"
#include "tensor/gtorch-tensor-private.h"

/**
 * GTorchAveragedModel:
 *
 * A copy of a model whose parameters are averages of those that the model has had.
 *
 * Without further settings all have the same weight: stochastic weight averaging. With
 * #GTorchAveragedModel:ema-decay the averages are exponential ones, and functions may compute any others. The
 * copy is the child `module`, and the number of models in the averages the buffer `n_averaged`; both are part
 * of the state dict. The first update copies the parameters. The statistics of batch normalizations, which
 * belong to no average, are computed by [func@update_bn] in the end.
 *
 * ```c
 * average = gtorch_averaged_model_new (model, NULL, FALSE, &error);
 * for (epoch = 0; epoch < n_epochs; epoch++)
 *   if (!train (model, &error) || !gtorch_averaged_model_update_parameters (average, model, &error))
 *     return FALSE;
 * gtorch_update_bn (GTORCH_MODULE (average), NULL, next_batch, data, &error);
 * ```
 *
 * Source: Izmailov et al., Averaging weights leads to wider optima and better generalization,
 * arXiv:1803.05407
 *
 * Since: 0.1
 */
struct _GTorchAveragedModel
{
  GTorchModule parent_instance;
  gboolean use_buffers;
  gdouble ema_decay;
  GTorchAverageFunc avg_fn;            /* or */
  GTorchMultiAverageFunc multi_avg_fn; /* or none */
  gpointer user_data;
  GDestroyNotify destroy;
};

G_DEFINE_TYPE (GTorchAveragedModel, gtorch_averaged_model, GTORCH_TYPE_MODULE)

static const GTorchField fields[] = {
  /**
   * GTorchAveragedModel:use-buffers:
   *
   * Whether buffers are averaged, too. Otherwise they are copied from the model.
   *
   * Since: 0.1
   */
  { "use-buffers", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchAveragedModel, use_buffers), 0, NULL,
    GTORCH_FIELD_SETTING },
  /**
   * GTorchAveragedModel:ema-decay:
   *
   * The weight of the average so far in an exponential moving average, from 0 to 1, or %GTORCH_NONE_DOUBLE
   * if all models have the same weight. A function has precedence.
   *
   * Since: 0.1
   */
  { "ema-decay", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (GTorchAveragedModel, ema_decay),
    GTORCH_NONE_DOUBLE, NULL, GTORCH_FIELD_SETTING, .is_optional = TRUE },
};

/* --- the module --- */

static GTorchTensor *
gtorch_averaged_model_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  g_autoptr (GTorchModule) averages = gtorch_module_get_module (module, "module", error);

  return averages != NULL ? gtorch_module_forward (averages, input, error) : NULL;
}

static GTorchTensor *
gtorch_averaged_model_forward_many (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs,
                                    GError **error)
{
  g_autoptr (GTorchModule) averages = gtorch_module_get_module (module, "module", error);

  return averages != NULL ? gtorch_module_forward_many (averages, inputs, n_inputs, error) : NULL;
}

static void
gtorch_averaged_model_set_function (GTorchAveragedModel *self, GTorchAverageFunc avg_fn,
                                    GTorchMultiAverageFunc multi_avg_fn, gpointer user_data,
                                    GDestroyNotify destroy)
{
  const gpointer former = self->user_data;
  const GDestroyNotify free_former = self->destroy;

  self->avg_fn = avg_fn;
  self->multi_avg_fn = multi_avg_fn;
  self->user_data = user_data;
  self->destroy = destroy;
  if (free_former != NULL)
    free_former (former);
}

static void
gtorch_averaged_model_finalize (GObject *object)
{
  gtorch_averaged_model_set_function (GTORCH_AVERAGED_MODEL (object), NULL, NULL, NULL, NULL);
  G_OBJECT_CLASS (gtorch_averaged_model_parent_class)->finalize (object);
}

static void
gtorch_averaged_model_add_references (gpointer model, GTorchReferences *references)
{
  GTorchAveragedModel *self = model;

  if (self->avg_fn != NULL || self->multi_avg_fn != NULL)
    gtorch_references_add_data (references, self->user_data, self->destroy);
}

static GTorchReferencesType references_type = { .look = gtorch_averaged_model_add_references };

static void
gtorch_averaged_model_class_init (GTorchAveragedModelClass *klass)
{
  GTorchModuleClass *module_class = GTORCH_MODULE_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = gtorch_averaged_model_finalize;
  module_class->forward = gtorch_averaged_model_forward;
  module_class->forward_many = gtorch_averaged_model_forward_many;
  GTORCH_FIELDS (klass, fields);
  references_type.type = GTORCH_TYPE_AVERAGED_MODEL;
  gtorch_references_add_type (&references_type);
}

static void
gtorch_averaged_model_init (GTorchAveragedModel *self)
{
  GError *error = NULL;
  GTorchImpl *count = gtorch_op_zeros (NULL, 0, GTORCH_DTYPE_INT64, NULL, &error);

  if (count != NULL)
    gtorch_module_add_buffer (GTORCH_MODULE (self), "n_averaged", count, TRUE);
  else
    gtorch_module_set_error (GTORCH_MODULE (self), error);
}

/**
 * gtorch_averaged_model_new:
 * @model: a model
 * @device: (nullable): the device of the averages; %NULL for those of @model
 * @use_buffers: whether buffers are averaged, too
 * @error: return location for an error
 *
 * Copies a model. The copy has the parameters that @model has now until the first update.
 *
 * Returns: (transfer full): the module, or %NULL with @error set: %GTORCH_ERROR_NOT_SUPPORTED if the class of
 *   @model is defined in another language, which then has to copy it itself, and to use
 *   [ctor@AveragedModel.new_from_copy]
 *
 * Since: 0.1
 */
GTorchAveragedModel *
gtorch_averaged_model_new (GTorchModule *model, GTorchDevice *device, gboolean use_buffers,
                           GError **error)
{
  g_autoptr (GTorchModule) copy = NULL;

  g_return_val_if_fail (GTORCH_IS_MODULE (model), NULL);
  g_return_val_if_fail (device == NULL || GTORCH_IS_DEVICE (device), NULL);
  copy = gtorch_module_copy (model, error);
  return copy != NULL ? gtorch_averaged_model_new_from_copy (copy, device, use_buffers, error)
                      : NULL;
}

/**
 * gtorch_averaged_model_new_from_copy:
 * @copy: a module that nothing else uses
 * @device: (nullable): the device of the averages; %NULL for those of @copy
 * @use_buffers: whether buffers are averaged, too
 * @error: return location for an error
 *
 * Makes a copy of a model the place of the averages.
 *
 * Returns: (transfer full): the module, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchAveragedModel *
gtorch_averaged_model_new_from_copy (GTorchModule *copy, GTorchDevice *device, gboolean use_buffers,
                                     GError **error)
{
  g_autoptr (GTorchAveragedModel) self = NULL;

  g_return_val_if_fail (GTORCH_IS_MODULE (copy), NULL);
  g_return_val_if_fail (device == NULL || GTORCH_IS_DEVICE (device), NULL);
  self = g_object_new (GTORCH_TYPE_AVERAGED_MODEL, "use-buffers", use_buffers, NULL);
  if (!gtorch_module_is_usable (GTORCH_MODULE (self), error)
      || !gtorch_module_register_module (GTORCH_MODULE (self), "module", copy, error)
      || (device != NULL
          && !gtorch_module_to (GTORCH_MODULE (self), device, GTORCH_DTYPE_NONE, error)))
    return NULL;
  return g_steal_pointer (&self);
}

/**
 * gtorch_averaged_model_set_avg_fn:
 * @self: an averaged model
 * @avg_fn: (nullable) (scope notified) (closure user_data) (destroy destroy): computes the average of one
 *   tensor; %NULL for none
 * @user_data: data for @avg_fn
 * @destroy: (nullable): frees @user_data
 *
 * Sets the function that computes the averages one by one, in place of any other. It is no part of the state
 * dict.
 *
 * Since: 0.1
 */
void
gtorch_averaged_model_set_avg_fn (GTorchAveragedModel *self, GTorchAverageFunc avg_fn,
                                  gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (GTORCH_IS_AVERAGED_MODEL (self));
  gtorch_averaged_model_set_function (self, avg_fn, NULL, user_data, destroy);
}

/**
 * gtorch_averaged_model_set_multi_avg_fn:
 * @self: an averaged model
 * @multi_avg_fn: (nullable) (scope notified) (closure user_data) (destroy destroy): changes the averages of
 *   all tensors of a device and dtype; %NULL for none
 * @user_data: data for @multi_avg_fn
 * @destroy: (nullable): frees @user_data
 *
 * Sets the function that computes the averages, many in a call, in place of any other. It is no part of the
 * state dict.
 *
 * Since: 0.1
 */
void
gtorch_averaged_model_set_multi_avg_fn (GTorchAveragedModel *self,
                                        GTorchMultiAverageFunc multi_avg_fn, gpointer user_data,
                                        GDestroyNotify destroy)
{
  g_return_if_fail (GTORCH_IS_AVERAGED_MODEL (self));
  gtorch_averaged_model_set_function (self, NULL, multi_avg_fn, user_data, destroy);
}

/* --- updates --- */

static gboolean
add_detached (GPtrArray *found, GListModel *tensors, GError **error)
{
  guint i;

  for (i = 0; i < g_list_model_get_n_items (tensors); i++)
    {
      g_autoptr (GTorchTensor) tensor = g_list_model_get_item (tensors, i);
      GTorchTensor *detached = gtorch_tensor_detach (tensor, error);

      if (detached == NULL)
        return FALSE;
      g_ptr_array_add (found, detached);
    }
  return TRUE;
}

static gboolean
add_members (GPtrArray *found, GTorchModule *module, gboolean are_buffers, GError **error)
{
  g_autoptr (GListModel) members = are_buffers ? gtorch_module_get_buffers (module, TRUE)
                                               : gtorch_module_get_parameters (module, TRUE);

  return add_detached (found, members, error);
}

/* Checks that the tensors match, and moves those of the model to the devices of the averages. */
static gboolean
match (GPtrArray *averages, GPtrArray *current, const gchar *what, GError **error)
{
  guint i;

  if (averages->len != current->len)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("update_parameters: the model has %u %s, its averages have %u"), current->len,
                   _ (what), averages->len);
      return FALSE;
    }
  for (i = 0; i < averages->len; i++)
    {
      GTorchImpl *average = gtorch_tensor_unwrap (averages->pdata[i]);
      GTorchImpl *impl = gtorch_tensor_unwrap (current->pdata[i]);
      GTorchImpl *near;

      if (!gtorch_impl_same_shape (average, impl))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("update_parameters: number %u of the %s has shape %s, its average %s"), i,
                       _ (what), gtorch_impl_shape_str (impl), gtorch_impl_shape_str (average));
          return FALSE;
        }
      if (gtorch_impl_device (average) == gtorch_impl_device (impl))
        continue;
      near = gtorch_op_to_device (impl, gtorch_impl_device (average), FALSE, error);
      if (near == NULL)
        return FALSE;
      g_object_unref (current->pdata[i]);
      current->pdata[i] = gtorch_tensor_wrap (near);
    }
  return TRUE;
}

static gboolean
copy_all (GPtrArray *averages, GPtrArray *current, GError **error)
{
  guint i;

  for (i = 0; i < averages->len; i++)
    if (!gtorch_op_copy_inplace (gtorch_tensor_unwrap (averages->pdata[i]),
                                 gtorch_tensor_unwrap (current->pdata[i]), FALSE, error))
      return FALSE;
  return TRUE;
}

/* What a function gave, or what it did not. */
static gboolean
check_function (GTorchAveragedModel *self, gboolean success, GError *failure, GError **error)
{
  if (success && failure == NULL)
    return TRUE;
  if (failure != NULL)
    g_propagate_error (error, failure);
  else
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                 _ ("update_parameters: the function of %s failed without saying why"),
                 G_OBJECT_TYPE_NAME (self));
  return FALSE;
}

/* average + (current - average) weight. Integers are rounded towards zero in the end. */
static gboolean
mix (GTorchImpl *average, GTorchImpl *current, gdouble weight, GError **error)
{
  g_autoptr (GTorchImpl) change = NULL;
  g_autoptr (GTorchImpl) factor = NULL;
  g_autoptr (GTorchImpl) share = NULL;
  g_autoptr (GTorchImpl) mixed = NULL;

  if (gtorch_dtype_kind (average->dtype) >= GTORCH_KIND_FLOAT && average->dtype == current->dtype)
    return gtorch_op_lerp_inplace (average, current, weight, error);
  factor = gtorch_impl_new_number (weight);
  change = gtorch_op_sub (current, average, 1, error);
  share = change != NULL ? gtorch_op_mul (change, factor, error) : NULL;
  mixed = share != NULL ? gtorch_op_add (average, share, 1, error) : NULL;
  return mixed != NULL && gtorch_op_copy_inplace (average, mixed, FALSE, error);
}

static gboolean
update_one (GTorchAveragedModel *self, GTorchTensor *average, GTorchTensor *current, gint64 n,
            GTorchTensor *count, GError **error)
{
  g_autoptr (GTorchTensor) result = NULL;
  GError *failure = NULL;

  if (self->avg_fn == NULL)
    return mix (gtorch_tensor_unwrap (average), gtorch_tensor_unwrap (current),
                gtorch_is_none_double (self->ema_decay) ? 1 / ((gdouble) n + 1)
                                                        : 1 - self->ema_decay,
                error);
  result = self->avg_fn (self, average, current, count, self->user_data, &failure);
  return check_function (self, result != NULL, failure, error)
         && gtorch_callback_check ("update_parameters", N_ ("the function"), &result,
                                   GTORCH_TYPE_TENSOR, error)
         && gtorch_op_copy_inplace (gtorch_tensor_unwrap (average), gtorch_tensor_unwrap (result),
                                    FALSE, error);
}

/* Calls the function for the tensors of each device and dtype. */
static gboolean
update_together (GTorchAveragedModel *self, GPtrArray *averages, GPtrArray *current,
                 GTorchTensor *count, GError **error)
{
  g_autofree gboolean *is_done = g_new0 (gboolean, MAX (averages->len, 1));
  guint i, j;

  for (i = 0; i < averages->len; i++)
    {
      const GTorchImpl *first = gtorch_tensor_unwrap (averages->pdata[i]);
      g_autoptr (GPtrArray) these = g_ptr_array_new ();
      g_autoptr (GPtrArray) those = g_ptr_array_new ();
      GError *failure = NULL;
      gboolean success;

      for (j = i; j < averages->len && !is_done[i]; j++)
        {
          const GTorchImpl *impl = gtorch_tensor_unwrap (averages->pdata[j]);

          if (is_done[j] || impl->dtype != first->dtype
              || gtorch_impl_device (impl) != gtorch_impl_device (first))
            continue;
          g_ptr_array_add (these, averages->pdata[j]);
          g_ptr_array_add (those, current->pdata[j]);
          is_done[j] = j > i;
        }
      if (these->len == 0)
        continue;
      success = self->multi_avg_fn (self, (GTorchTensor **) these->pdata, these->len,
                                    (GTorchTensor **) those->pdata, those->len, count,
                                    self->user_data, &failure);
      if (!check_function (self, success, failure, error))
        return FALSE;
    }
  return TRUE;
}

static gboolean
update_all (GTorchAveragedModel *self, GPtrArray *averages, GPtrArray *current, gint64 n,
            GTorchTensor *count, GError **error)
{
  guint i;

  if (n == 0)
    return copy_all (averages, current, error);
  if (self->multi_avg_fn != NULL)
    return update_together (self, averages, current, count, error);
  for (i = 0; i < averages->len; i++)
    if (!update_one (self, averages->pdata[i], current->pdata[i], n, count, error))
      return FALSE;
  return TRUE;
}

static gboolean
read_count (GTorchTensor *count, gint64 *n, GError **error)
{
  g_autoptr (GTorchImpl) host =
      gtorch_impl_to_host ("update_parameters", gtorch_tensor_unwrap (count), error);

  if (host == NULL)
    return FALSE;
  gtorch_impl_read (host, GTORCH_DTYPE_INT64, n);
  return TRUE;
}

/**
 * gtorch_averaged_model_update_parameters:
 * @self: an averaged model
 * @model: the model, or another one with the same parameters
 * @error: return location for an error
 *
 * Takes the present parameters of the model into the averages, and copies its buffers, unless
 * [property@AveragedModel:use-buffers] is set.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if the models have different numbers of parameters or
 *   buffers, or the decay is not from 0 to 1, %GTORCH_ERROR_SHAPE if shapes differ, or the error of the
 *   function
 *
 * Since: 0.1
 */
gboolean
gtorch_averaged_model_update_parameters (GTorchAveragedModel *self, GTorchModule *model,
                                         GError **error)
{
  g_autoptr (GTorchGradGuard) guard = NULL;
  g_autoptr (GTorchModule) module = NULL;
  g_autoptr (GTorchTensor) count = NULL;
  g_autoptr (GTorchImpl) one = NULL;
  g_autoptr (GPtrArray) averages = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GPtrArray) current = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GPtrArray) to = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GPtrArray) from = g_ptr_array_new_with_free_func (g_object_unref);
  gint64 n;

  g_return_val_if_fail (GTORCH_IS_AVERAGED_MODEL (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_MODULE (model), FALSE);
  if (!gtorch_is_none_double (self->ema_decay)
      && !gtorch_check_range ("update_parameters", "ema_decay", self->ema_decay, 0, 1, FALSE,
                              error))
    return FALSE;
  guard = gtorch_no_grad ();
  module = gtorch_module_get_module (GTORCH_MODULE (self), "module", error);
  count =
      gtorch_module_get_buffer (GTORCH_MODULE (self), "n_averaged", module != NULL ? error : NULL);
  if (module == NULL || count == NULL || !read_count (count, &n, error)
      || !add_members (averages, module, FALSE, error)
      || !add_members (current, model, FALSE, error) || !add_members (to, module, TRUE, error)
      || !add_members (from, model, TRUE, error)
      || !match (averages, current, N_ ("parameters"), error)
      || !match (to, from, N_ ("buffers"), error))
    return FALSE;
  one = gtorch_impl_new_int (1);
  return update_all (self, averages, current, n, count, error)
         && (self->use_buffers ? update_all (self, to, from, n, count, error)
                               : copy_all (to, from, error))
         && gtorch_op_add_inplace (gtorch_tensor_unwrap (count), one, 1, error);
}
