/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-parameter-dict.h"

#include "nn/gtorch-module-private.h"

/**
 * GTorchParameterDict:
 *
 * Parameters by name, for a module whose forward uses them as it likes.
 *
 * [method@Module.register_parameter] adds a parameter or replaces the one of a name,
 * [method@Module.get_parameter] returns it, [method@Module.unregister] removes it, and
 * [method@Module.get_parameter_names] lists the names in the order in which they were added.
 *
 * Since: 0.1
 */

struct _GTorchParameterDict
{
  GTorchModule parent_instance;
};

G_DEFINE_TYPE (GTorchParameterDict, gtorch_parameter_dict, GTORCH_TYPE_MODULE)

static void
gtorch_parameter_dict_class_init (GTorchParameterDictClass *klass)
{
  GTORCH_MODULE_CLASS (klass)->extra_repr = gtorch_module_describe_parameters;
}

static void
gtorch_parameter_dict_init (GTorchParameterDict *self)
{
}

/**
 * gtorch_parameter_dict_new:
 *
 * Creates a module without parameters.
 *
 * Returns: (transfer full): a new module
 *
 * Since: 0.1
 */
GTorchParameterDict *
gtorch_parameter_dict_new (void)
{
  return g_object_new (GTORCH_TYPE_PARAMETER_DICT, NULL);
}
