/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Giving the tensors of layers their first values again. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>
#include <string.h>

#include "nn/gtorch-init.h"
#include "nn/gtorch-layer-private.h"

typedef gboolean (*Reset) (GTorchModule *self, GError **error);

/* Returns the member of a row, or NULL if the program has replaced it by none. */
static GTorchTensor *
member_of (GTorchModule *self, const GTorchLayerTensor *row)
{
  g_autoptr (GArray) members = gtorch_module_dup_members (self, row->is_buffer);

  for (guint i = 0; i < members->len; i++)
    {
      GTorchMember *member = &g_array_index (members, GTorchMember, i);

      if (strcmp (member->name, row->name) == 0)
        return g_steal_pointer (&member->tensor);
    }
  return NULL;
}

static gboolean
check_plain (GTorchModule *self, const gchar *name, GError **error)
{
  if (!gtorch_module_is_computed (self, name))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
               _ ("%s: reset_parameters: '%s' is computed from other tensors"),
               gtorch_module_type_name (self), name);
  return FALSE;
}

gboolean
gtorch_layer_reset_tensors (GTorchModule *self, const GTorchLayerTensor *tensors, guint n,
                            GError **error)
{
  g_autoptr (GTorchTensor) first = NULL;

  if (gtorch_lazy_is_waiting (self))
    return TRUE;
  for (guint i = 0; i < n; i++)
    if (!check_plain (self, tensors[i].name, error))
      return FALSE;
  for (guint i = 0; i < n; i++)
    {
      g_autoptr (GTorchTensor) tensor = tensors[i].is_wanted ? member_of (self, &tensors[i]) : NULL;

      if (tensor == NULL)
        continue;
      if (tensors[i].is_buffer)
        {
          if (!gtorch_init_constant (tensor, tensors[i].init == GTORCH_LAYER_ONES ? 1 : 0, error))
            return FALSE;
          continue;
        }
      if (first == NULL)
        first = g_object_ref (tensor);
      if (!gtorch_layer_set_values (self, tensor, first, &tensors[i], error))
        return FALSE;
    }
  return TRUE;
}

gboolean
gtorch_layer_reset_uniform (GTorchModule *self, gint64 hidden_size, GError **error)
{
  g_autoptr (GArray) members = gtorch_module_dup_members (self, FALSE);
  const gdouble bound = hidden_size > 0 ? 1 / sqrt ((gdouble) hidden_size) : 0;

  for (guint i = 0; i < members->len; i++)
    if (!check_plain (self, g_array_index (members, GTorchMember, i).name, error))
      return FALSE;
  for (guint i = 0; i < members->len; i++)
    {
      GTorchTensor *tensor = g_array_index (members, GTorchMember, i).tensor;

      if (tensor != NULL && !gtorch_init_uniform (tensor, -bound, bound, NULL, error))
        return FALSE;
    }
  return TRUE;
}

/**
 * gtorch_module_can_reset_parameters:
 * @self: a module
 *
 * Tells whether [method@Module.reset_parameters] does something: it does for the library's layers with
 * parameters or buffers.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_module_can_reset_parameters (GTorchModule *self)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  return GTORCH_MODULE_GET_CLASS (self)->reset != NULL;
}

/**
 * gtorch_module_reset_parameters:
 * @self: a layer
 * @error: return location for an error
 *
 * Gives the parameters of a layer the values that it begins with, which are drawn again, and its running
 * statistics theirs. Those of child modules stay as they are. A lazy layer that was not used yet has none.
 *
 * ```c
 * gtorch_module_reset_parameters (GTORCH_MODULE (linear), &error);
 * ```
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_NOT_SUPPORTED if it is no layer of the library with parameters or
 *   buffers, or if one is computed
 *
 * Since: 0.1
 */
gboolean
gtorch_module_reset_parameters (GTorchModule *self, GError **error)
{
  Reset reset;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), FALSE);
  reset = (Reset) GTORCH_MODULE_GET_CLASS (self)->reset;
  if (!gtorch_module_is_usable (self, error))
    return FALSE;
  if (reset != NULL)
    return reset (self, error);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
               _ ("%s: reset_parameters: it has no parameters of which it knows the first values"),
               gtorch_module_type_name (self));
  return FALSE;
}
