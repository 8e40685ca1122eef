/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-parameter-list.h"

#include <glib/gi18n-lib.h>

#include "nn/gtorch-module-private.h"

/**
 * GTorchParameterList:
 *
 * A list of parameters, for a module whose forward uses them as it likes.
 *
 * The parameters are named `0`, `1` and so on: [method@Module.get_parameter] returns the one of a name,
 * [method@Module.register_parameter] replaces it, and [method@Module.get_parameters] lists all.
 *
 * ```c
 * g_autoptr (GTorchParameterList) list = gtorch_parameter_list_new ();
 *
 * gtorch_parameter_list_append (list, weight);
 * ```
 *
 * Since: 0.1
 */

struct _GTorchParameterList
{
  GTorchModule parent_instance;
};

G_DEFINE_TYPE (GTorchParameterList, gtorch_parameter_list, GTORCH_TYPE_MODULE)

static void
gtorch_parameter_list_class_init (GTorchParameterListClass *klass)
{
  GTORCH_MODULE_CLASS (klass)->extra_repr = gtorch_module_describe_parameters;
}

static void
gtorch_parameter_list_init (GTorchParameterList *self)
{
}

/**
 * gtorch_parameter_list_new:
 *
 * Creates an empty list.
 *
 * Returns: (transfer full): a new module
 *
 * Since: 0.1
 */
GTorchParameterList *
gtorch_parameter_list_new (void)
{
  return g_object_new (GTORCH_TYPE_PARAMETER_LIST, NULL);
}

/**
 * gtorch_parameter_list_new_from_parameters:
 * @parameters: (array length=n_parameters): parameters
 * @n_parameters: the length of @parameters
 * @error: return location for an error
 *
 * Creates a list of parameters.
 *
 * Returns: (transfer full): a new module, or %NULL with %GTORCH_ERROR_INVALID if one of @parameters is not a
 *   parameter
 *
 * Since: 0.1
 */
GTorchParameterList *
gtorch_parameter_list_new_from_parameters (GTorchParameter **parameters, gsize n_parameters,
                                           GError **error)
{
  g_autoptr (GTorchParameterList) self = gtorch_parameter_list_new ();
  gsize i;

  g_return_val_if_fail (parameters != NULL || n_parameters == 0, NULL);
  for (i = 0; i < n_parameters; i++)
    {
      if (!GTORCH_IS_PARAMETER (parameters[i]))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: %zu is not a parameter"),
                       "ParameterList", i);
          return NULL;
        }
      gtorch_parameter_list_append (self, parameters[i]);
    }
  return g_steal_pointer (&self);
}

/**
 * gtorch_parameter_list_append:
 * @self: a list of parameters
 * @parameter: a parameter
 *
 * Appends a parameter. Its name is its position, or the next number that is no name yet.
 *
 * Since: 0.1
 */
void
gtorch_parameter_list_append (GTorchParameterList *self, GTorchParameter *parameter)
{
  g_return_if_fail (GTORCH_IS_PARAMETER_LIST (self));
  g_return_if_fail (GTORCH_IS_PARAMETER (parameter));
  gtorch_module_append_parameter (GTORCH_MODULE (self), parameter);
}
