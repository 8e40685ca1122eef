/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-parametrization-list.h"

#include <glib/gi18n-lib.h>

#include "autograd/gtorch-tensor-autograd.h"
#include "dispatch/gtorch-grad-mode.h"
#include "gtorch-ops-private.h"
#include "nn/gtorch-children-private.h"
#include "nn/gtorch-module-private.h"
#include "nn/gtorch-parametrize-private.h"
#include "nn/gtorch-state-private.h"
#include "tensor/gtorch-hold-private.h"

/**
 * GTorchParametrizationList:
 *
 * What a parametrized tensor of a module is computed from, and the modules that compute it: the child of that
 * name in the child `parametrizations`. [method@Module.register_parametrization] creates it.
 *
 * The parameter `original`, or `original0`, `original1` and so on if the first parametrization takes several
 * tensors, are passed to the first module of the list, its result to the second one, and so on. It is a
 * [iface@Gio.ListModel] of these modules.
 *
 * ```c
 * g_autoptr (GTorchModule) list =
 *     gtorch_module_get_module (layer, "parametrizations.weight", &error);
 * g_autoptr (GTorchParameter) original = gtorch_module_get_parameter (list, "original", &error);
 * ```
 *
 * Since: 0.1
 */

struct _GTorchParametrizationList
{
  GTorchModule parent_instance;
};

G_DEFINE_TYPE_WITH_CODE (GTorchParametrizationList, gtorch_parametrization_list, GTORCH_TYPE_MODULE,
                         G_IMPLEMENT_INTERFACE (G_TYPE_LIST_MODEL, gtorch_children_list_model_init))

static void
gtorch_parametrization_list_class_init (GTorchParametrizationListClass *klass)
{
}

static void
gtorch_parametrization_list_init (GTorchParametrizationList *self)
{
  gtorch_children_init (GTORCH_MODULE (self), TRUE);
}

/* Returns the tensors that the list computes from, in their order: the member "original", or those that
 * follow. Parameters come before buffers, and no list has both. */
static GPtrArray *
dup_originals (GTorchParametrizationList *self)
{
  GPtrArray *originals = g_ptr_array_new_with_free_func (g_object_unref);

  for (guint k = 0; k < 2; k++)
    {
      g_autoptr (GArray) members = gtorch_module_dup_members (GTORCH_MODULE (self), k == 1);

      for (guint i = 0; i < members->len; i++)
        {
          GTorchMember *member = &g_array_index (members, GTorchMember, i);

          if (member->tensor != NULL && g_str_has_prefix (member->name, "original"))
            g_ptr_array_add (originals, g_steal_pointer (&member->tensor));
        }
    }
  return originals;
}

/**
 * gtorch_parametrization_list_has_one:
 * @self: a list
 *
 * Tells whether the tensor is computed from one other tensor, `original`, and not from `original0` and so on.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_parametrization_list_has_one (GTorchParametrizationList *self)
{
  g_return_val_if_fail (GTORCH_IS_PARAMETRIZATION_LIST (self), FALSE);
  return gtorch_module_get_member_kind (GTORCH_MODULE (self), "original")
         != GTORCH_MEMBER_KIND_NONE;
}

GTorchTensor *
gtorch_parametrization_list_dup_original (GTorchParametrizationList *self)
{
  return gtorch_parametrization_list_has_one (self)
             ? gtorch_module_get_tensor (GTORCH_MODULE (self), "original", NULL)
             : NULL;
}

/* Computes with the first n of the modules. */
static GTorchTensor *
compute (GTorchParametrizationList *self, GPtrArray *modules, GPtrArray *originals, GError **error)
{
  GTorchTensor *value;

  if (modules->len == 0 || originals->len == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: there is no parametrization, or nothing to compute from"),
                   gtorch_module_type_name (self));
      return NULL;
    }
  value = gtorch_module_call (modules->pdata[0], (GTorchTensor **) originals->pdata, originals->len,
                              error);
  for (guint i = 1; i < modules->len && value != NULL; i++)
    {
      GTorchTensor *next = gtorch_module_call (modules->pdata[i], &value, 1, error);

      g_object_unref (value);
      value = next;
    }
  return value;
}

/**
 * gtorch_parametrization_list_compute:
 * @self: a list
 * @error: return location for an error
 *
 * Computes the parametrized tensor, as the module that has it does whenever it uses it.
 *
 * Returns: (transfer full): the tensor; %NULL with the errors of the parametrizations, or with
 *   %GTORCH_ERROR_INVALID if there are none
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_parametrization_list_compute (GTorchParametrizationList *self, GError **error)
{
  g_autoptr (GPtrArray) modules = NULL;
  g_autoptr (GPtrArray) originals = NULL;

  g_return_val_if_fail (GTORCH_IS_PARAMETRIZATION_LIST (self), NULL);
  modules = gtorch_module_dup_children (GTORCH_MODULE (self), NULL);
  originals = dup_originals (self);
  return compute (self, modules, originals, error);
}

/* Calls a right inverse, which a binding may have written. */
static GPtrArray *
invert (GTorchModule *module, GTorchTensor *value, GError **error)
{
  GTorchModuleClass *klass = GTORCH_MODULE_GET_CLASS (module);
  GError *local = NULL;
  GPtrArray *found;

  found = klass->right_inverse (module, value, &local);
  if (local == NULL && (found == NULL || found->len == 0))
    g_set_error (&local, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                 _ ("%s: right_inverse returned no tensor and no error"),
                 gtorch_module_type_name (module));
  for (guint i = 0; local == NULL && i < found->len; i++)
    if (!GTORCH_IS_TENSOR (found->pdata[i]))
      g_set_error (&local, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                   _ ("%s: right_inverse returned something that is no tensor"),
                   gtorch_module_type_name (module));
  if (local == NULL)
    return found;
  g_clear_pointer (&found, g_ptr_array_unref);
  g_propagate_error (error, local);
  return NULL;
}

/* Goes back through the modules. With `lenient`, one without a right inverse, or with one that is not
 * supported, changes nothing. Only the first one
 * may give several tensors. */
static GPtrArray *
invert_all (GPtrArray *modules, GTorchTensor *value, gboolean lenient, GError **error)
{
  GPtrArray *values = g_ptr_array_new_with_free_func (g_object_unref);

  g_ptr_array_add (values, g_object_ref (value));
  for (guint i = modules->len; i-- > 0;)
    {
      GTorchModule *module = modules->pdata[i];
      GError *local = NULL;
      GPtrArray *before;

      if (GTORCH_MODULE_GET_CLASS (module)->right_inverse == NULL)
        {
          if (lenient)
            continue;
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                       _ ("%s: it has no right inverse, by which a value could be assigned"),
                       gtorch_module_type_name (module));
          g_ptr_array_unref (values);
          return NULL;
        }
      before = invert (module, values->pdata[0], &local);
      if (lenient && g_error_matches (local, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED))
        {
          g_clear_error (&local);
          continue;
        }
      if (local != NULL)
        g_propagate_error (error, local);
      g_ptr_array_unref (values);
      values = before;
      if (values != NULL && i > 0 && values->len > 1)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("%s: right_inverse gave %u tensors to the parametrization before it, "
                          "which "
                          "gives one"),
                       gtorch_module_type_name (module), values->len);
          g_clear_pointer (&values, g_ptr_array_unref);
        }
      if (values == NULL)
        return NULL;
    }
  return values;
}

gboolean
gtorch_tensor_put_value (const gchar *who, GTorchTensor *tensor, GTorchTensor *value,
                         GError **error)
{
  GTorchImpl *target = gtorch_tensor_unwrap (tensor), *given = gtorch_tensor_unwrap (value);
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  g_autoptr (GTorchImpl) detached = gtorch_impl_alias (given);
  g_autoptr (GTorchImpl) copy = NULL;

  if (target == given)
    return TRUE;
  if (gtorch_impl_same_shape (target, given))
    return gtorch_op_copy_inplace (target, given, FALSE, error);
  copy = gtorch_op_clone (detached, error);
  if (copy == NULL)
    return FALSE;
  if (gtorch_impls_set_data (&target, &copy, 1))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: another call uses or released the tensor"), who);
  return FALSE;
}

static gboolean
check_same (gpointer who, const gchar *what, GTorchTensor *value, GTorchTensor *original,
            gboolean shapes, GError **error)
{
  const GTorchImpl *one = gtorch_tensor_unwrap (value), *other = gtorch_tensor_unwrap (original);

  if (one->dtype != other->dtype)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE, _ ("%s: %s is %s, and the tensor is %s"),
                 gtorch_module_type_name (who), what, gtorch_dtype_get_name (one->dtype),
                 gtorch_dtype_get_name (other->dtype));
  else if (shapes && !gtorch_impl_same_shape (one, other))
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("%s: %s has shape %s, and the tensor %s"), gtorch_module_type_name (who), what,
                 gtorch_impl_shape_str (one), gtorch_impl_shape_str (other));
  else
    return TRUE;
  return FALSE;
}

/**
 * gtorch_parametrization_list_right_inverse:
 * @self: a list
 * @value: the value that the parametrized tensor shall have
 * @error: return location for an error
 *
 * Gives what the tensor is computed from the values that the right inverses of the parametrizations return,
 * the last one first.
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_NOT_SUPPORTED if one has none, with %GTORCH_ERROR_DTYPE or
 *   %GTORCH_ERROR_INVALID if the values do not fit, and with the errors of the right inverses
 *
 * Since: 0.1
 */
gboolean
gtorch_parametrization_list_right_inverse (GTorchParametrizationList *self, GTorchTensor *value,
                                           GError **error)
{
  g_autoptr (GTorchGradGuard) guard = NULL;
  g_autoptr (GPtrArray) modules = NULL;
  g_autoptr (GPtrArray) originals = NULL;
  g_autoptr (GPtrArray) values = NULL;

  g_return_val_if_fail (GTORCH_IS_PARAMETRIZATION_LIST (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (value), FALSE);
  guard = gtorch_no_grad ();
  modules = gtorch_module_dup_children (GTORCH_MODULE (self), NULL);
  originals = dup_originals (self);
  values = invert_all (modules, value, FALSE, error);
  if (values == NULL)
    return FALSE;
  if (values->len != originals->len)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: right_inverse gave %u tensors, and the tensor is computed from %u"),
                   gtorch_module_type_name (self), values->len, originals->len);
      return FALSE;
    }
  for (guint i = 0; i < values->len; i++)
    if (!check_same (self, _ ("what right_inverse gave"), values->pdata[i], originals->pdata[i],
                     TRUE, error))
      return FALSE;
  for (guint i = 0; i < values->len; i++)
    {
      const gchar *obstacle =
          gtorch_impl_write_obstacle (gtorch_tensor_unwrap (originals->pdata[i]));

      if (obstacle != NULL)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: original %s"),
                       gtorch_module_type_name (self), obstacle);
          return FALSE;
        }
    }
  for (guint i = 0; i < values->len; i++)
    if (!gtorch_tensor_put_value (gtorch_module_type_name (self), originals->pdata[i],
                                  values->pdata[i], error))
      return FALSE;
  return TRUE;
}

/* --- making one --- */

static gboolean
add_original (GTorchParametrizationList *self, const gchar *name, GTorchTensor *value,
              GTorchTensor *like, GError **error)
{
  g_autoptr (GTorchImpl) detached = gtorch_impl_alias (gtorch_tensor_unwrap (value));
  g_autoptr (GTorchTensor) copy = NULL;
  g_autoptr (GTorchParameter) parameter = NULL;

  copy = gtorch_tensor_wrap (gtorch_op_clone (detached, error));
  if (copy == NULL)
    return FALSE;
  if (!GTORCH_IS_PARAMETER (like))
    return gtorch_tensor_set_requires_grad (copy, gtorch_tensor_get_requires_grad (like), error)
           && gtorch_module_register_buffer (GTORCH_MODULE (self), name, copy, TRUE, error);
  parameter = gtorch_parameter_new (copy, gtorch_tensor_get_requires_grad (like), error);
  return parameter != NULL
         && gtorch_module_register_parameter (GTORCH_MODULE (self), name, parameter, error);
}

static gboolean
add_originals (GTorchParametrizationList *self, GPtrArray *values, GTorchTensor *original,
               gboolean is_list, GError **error)
{
  for (guint i = 0; i < values->len; i++)
    {
      g_autofree gchar *name = is_list ? g_strdup_printf ("original%u", i) : g_strdup ("original");

      if (!add_original (self, name, values->pdata[i], original, error))
        return FALSE;
    }
  return TRUE;
}

GTorchParametrizationList *
gtorch_parametrization_list_make (GTorchTensor *original, GTorchModule *parametrization,
                                  gboolean unsafe, GError **error)
{
  g_autoptr (GTorchParametrizationList) self =
      g_object_new (GTORCH_TYPE_PARAMETRIZATION_LIST, NULL);
  g_autoptr (GPtrArray) modules = g_ptr_array_new ();
  g_autoptr (GPtrArray) values = NULL;
  g_autoptr (GTorchTensor) value = NULL;

  g_ptr_array_add (modules, parametrization);
  {
    g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();

    values = invert_all (modules, original, TRUE, error);
    if (values == NULL
        || (values->len == 1
            && !check_same (parametrization, _ ("what right_inverse gave"), values->pdata[0],
                            original, FALSE, error)))
      return NULL;
  }
  if (!gtorch_module_insert_child (GTORCH_MODULE (self), NULL, parametrization, error)
      || !add_originals (self, values, original, values->len > 1, error))
    return NULL;
  if (unsafe)
    return g_steal_pointer (&self);
  value = gtorch_parametrization_list_compute (self, error);
  if (value == NULL
      || !check_same (parametrization, _ ("what forward gave"), value, original, TRUE, error))
    return NULL;
  return g_steal_pointer (&self);
}

gboolean
gtorch_parametrization_list_adopt (GTorchParametrizationList *self, GTorchTensor *original,
                                   GError **error)
{
  g_autoptr (GTorchTensor) made = gtorch_parametrization_list_dup_original (self);

  if (made == NULL)
    return TRUE;
  if (!gtorch_tensor_put_value (gtorch_module_type_name (self), original, made, error))
    return FALSE;
  if (GTORCH_IS_PARAMETER (original))
    return gtorch_module_register_parameter (GTORCH_MODULE (self), "original",
                                             GTORCH_PARAMETER (original), error);
  return gtorch_module_register_buffer (GTORCH_MODULE (self), "original", original, TRUE, error);
}

gboolean
gtorch_parametrization_list_add (GTorchParametrizationList *self, GTorchModule *parametrization,
                                 GTorchTensor *value, gboolean unsafe, GError **error)
{
  if (!unsafe)
    {
      g_autoptr (GTorchTensor) next = gtorch_module_call (parametrization, &value, 1, error);
      g_autoptr (GPtrArray) back = NULL;

      if (next == NULL
          || !check_same (parametrization, _ ("what forward gave"), next, value, TRUE, error))
        return FALSE;
      if (GTORCH_MODULE_GET_CLASS (parametrization)->right_inverse != NULL)
        {
          g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
          GError *local = NULL;

          back = invert (parametrization, next, &local);
          if (g_error_matches (local, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED))
            g_clear_error (&local);
          else if (back == NULL)
            {
              g_propagate_error (error, local);
              return FALSE;
            }
          if (back != NULL
              && !check_same (parametrization, _ ("what right_inverse gave"), back->pdata[0], next,
                              TRUE, error))
            return FALSE;
        }
    }
  return gtorch_module_insert_child (GTORCH_MODULE (self), NULL, parametrization, error);
}
