/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Copies of modules, for the layers of a stack. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "autograd/gtorch-tensor-autograd.h"
#include "device/gtorch-device.h"
#include "device/gtorch-generator.h"
#include "gtorch-tensor-ops.h"
#include "nn/gtorch-computed-private.h"
#include "nn/gtorch-module-private.h"
#include "nn/gtorch-stand-ins-private.h"

/* Bindings derive types. */
gboolean
gtorch_module_is_foreign (gpointer self)
{
  const gchar *name = G_OBJECT_TYPE_NAME (self);

  return strchr (name, '+') != NULL || g_str_has_prefix (name, "Gjs_");
}

static gboolean
has_state (GTorchModule *self)
{
  g_autoptr (GListModel) parameters = gtorch_module_get_parameters (self, TRUE);
  g_autoptr (GListModel) buffers = gtorch_module_get_buffers (self, TRUE);

  return g_list_model_get_n_items (parameters) > 0 || g_list_model_get_n_items (buffers) > 0;
}

/* A module among the settings that has no state, such as an activation, stays the same object. */
static gboolean
copy_value (GValue *value, GError **error)
{
  GTorchModule *copy;

  if (!G_VALUE_HOLDS_OBJECT (value) || !GTORCH_IS_MODULE (g_value_get_object (value))
      || !has_state (g_value_get_object (value)))
    return TRUE;
  copy = gtorch_module_copy (g_value_get_object (value), error);
  if (copy == NULL)
    return FALSE;
  g_value_take_object (value, copy);
  return TRUE;
}

/* Creates a module with the same properties. */
static gpointer
new_like (GTorchModule *self, GError **error)
{
  guint n_specs, n = 0;
  g_autofree GParamSpec **specs =
      g_object_class_list_properties (G_OBJECT_GET_CLASS (self), &n_specs);
  g_autofree const gchar **names = g_new0 (const gchar *, n_specs);
  g_autofree GValue *values = g_new0 (GValue, n_specs);
  gpointer copy = NULL;
  gboolean success = TRUE;

  for (guint i = 0; success && i < n_specs; i++)
    {
      const GParamFlags flags = specs[i]->flags;

      if (!(flags & G_PARAM_READABLE) || !(flags & (G_PARAM_WRITABLE | G_PARAM_CONSTRUCT_ONLY)))
        continue;
      names[n] = specs[i]->name;
      g_value_init (&values[n], specs[i]->value_type);
      g_object_get_property (G_OBJECT (self), specs[i]->name, &values[n]);
      success = copy_value (&values[n++], error);
    }
  if (success)
    copy = g_object_new_with_properties (G_OBJECT_TYPE (self), n, names, values);
  for (guint i = 0; i < n; i++)
    g_value_unset (&values[i]);
  return copy != NULL ? gtorch_module_checked (copy, error) : NULL;
}

/* Does the module have a tensor of the name, or a member of another kind? */
static gboolean
has_member (GTorchModule *self, const gchar *name)
{
  GTorchMemberKind kind = gtorch_module_get_member_kind (self, name);
  g_autoptr (GTorchTensor) tensor = NULL;

  if (kind != GTORCH_MEMBER_KIND_PARAMETER && kind != GTORCH_MEMBER_KIND_BUFFER)
    return kind != GTORCH_MEMBER_KIND_NONE;
  tensor = gtorch_module_get_tensor (self, name, NULL);
  return tensor != NULL;
}

/* Copies a tensor that a program has added to a module. */
static gboolean
copy_member (GTorchModule *to, const GTorchMember *member, gboolean is_buffer, GError **error)
{
  g_autoptr (GTorchTensor) value = NULL;
  g_autoptr (GTorchTensor) copy = NULL;
  g_autoptr (GTorchParameter) parameter = NULL;

  if (has_member (to, member->name)
      || (member->tensor == NULL
          && gtorch_module_get_member_kind (to, member->name) != GTORCH_MEMBER_KIND_NONE))
    return TRUE;
  if (member->tensor != NULL)
    {
      value = gtorch_tensor_detach (member->tensor, error);
      copy = value != NULL ? gtorch_tensor_clone (value, error) : NULL;
      if (copy == NULL)
        return FALSE;
    }
  if (is_buffer)
    return gtorch_module_register_buffer (to, member->name, copy, member->persistent, error);
  if (copy != NULL)
    {
      parameter =
          gtorch_parameter_new (copy, gtorch_tensor_get_requires_grad (member->tensor), error);
      if (parameter == NULL)
        return FALSE;
    }
  return gtorch_module_register_parameter (to, member->name, parameter, error);
}

/* Lets members be computed as those of the other module are, now that what they are computed from is there.
 * */
static void
copy_computed (GTorchModule *from, GTorchModule *to)
{
  for (guint k = 0; k < 2; k++)
    {
      g_autoptr (GArray) members = gtorch_module_dup_members (from, k == 1);

      for (guint i = 0; i < members->len; i++)
        {
          const GTorchMember *member = &g_array_index (members, GTorchMember, i);

          if (member->computed != NULL)
            gtorch_module_put_computed (to, member->name, member->computed);
        }
    }
}

/* Adds what the constructor of the copy has not: what a program has put into the module, or into its
 * children. A module that is there under several names is copied once. */
static gboolean
copy_members (GTorchModule *from, GTorchModule *to, GError **error)
{
  g_autoptr (GHashTable) copies = g_hash_table_new_full (NULL, NULL, NULL, g_object_unref);
  g_auto (GStrv) names = gtorch_module_get_child_names (from);

  for (guint k = 0; k < 2; k++)
    {
      g_autoptr (GArray) members = gtorch_module_dup_members (from, k == 1);

      for (guint i = 0; i < members->len; i++)
        if (!copy_member (to, &g_array_index (members, GTorchMember, i), k == 1, error))
          return FALSE;
    }
  for (guint i = 0; names[i] != NULL; i++)
    {
      g_autoptr (GTorchModule) child = NULL;
      GTorchModule *copy;

      child = gtorch_module_get_module (from, names[i], error);
      if (child == NULL)
        return FALSE;
      if (gtorch_module_get_member_kind (to, names[i]) == GTORCH_MEMBER_KIND_MODULE)
        {
          g_autoptr (GTorchModule) made = gtorch_module_get_module (to, names[i], error);

          if (made == NULL || !copy_members (child, made, error))
            return FALSE;
          continue;
        }
      copy = g_hash_table_lookup (copies, child);
      if (copy == NULL)
        {
          copy = gtorch_module_copy (child, error);
          if (copy == NULL)
            return FALSE;
          g_hash_table_insert (copies, child, copy);
        }
      if (!gtorch_module_register_module (to, names[i], copy, error))
        return FALSE;
    }
  copy_computed (from, to);
  return TRUE;
}

/* Sets which parameters are learned. */
static gboolean
copy_requires_grad (GTorchModule *from, GTorchModule *to, GError **error)
{
  g_autoptr (GListModel) these = gtorch_module_get_parameters (from, TRUE);
  g_autoptr (GListModel) those = gtorch_module_get_parameters (to, TRUE);

  for (guint i = 0; i < g_list_model_get_n_items (these); i++)
    {
      g_autoptr (GTorchTensor) one = g_list_model_get_item (these, i);
      g_autoptr (GTorchTensor) other = g_list_model_get_item (those, i);

      if (other != NULL
          && !gtorch_tensor_set_requires_grad (other, gtorch_tensor_get_requires_grad (one), error))
        return FALSE;
    }
  return TRUE;
}

GTorchModule *
gtorch_module_dup_stateless (GTorchModule *self, GError **error)
{
  return has_state (self) ? gtorch_module_copy (self, error) : g_object_ref (self);
}

gpointer
gtorch_module_copy (gpointer self, GError **error)
{
  GTorchGenerator *generator = gtorch_device_get_default_generator (gtorch_device_get_default ());
  g_autoptr (GBytes) drawn = NULL;
  g_autoptr (GTorchModule) copy = NULL;
  g_autoptr (GHashTable) state = NULL;

  if (gtorch_module_is_foreign (self))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("%s: a class that another language defines cannot be copied here"),
                   gtorch_module_type_name (self));
      return NULL;
    }
  if (!gtorch_module_is_usable (self, error))
    return NULL;
  /* the first values of the copy are replaced, so that no numbers are drawn for it */
  drawn = gtorch_generator_get_state (generator);
  copy = new_like (self, error);
  if (copy == NULL || !gtorch_generator_set_state (generator, drawn, error)
      || !copy_members (self, copy, error))
    return NULL;
  state = gtorch_module_state_dict (self);
  if (!gtorch_module_load_state_dict (copy, state, TRUE, error)
      || !copy_requires_grad (self, copy, error))
    return NULL;
  gtorch_module_set_training (copy, gtorch_module_get_training (self));
  return g_steal_pointer (&copy);
}
