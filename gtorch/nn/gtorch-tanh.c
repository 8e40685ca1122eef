/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-tanh.h"

#include "gtorch-field-private.h"
#include "gtorch-ops-private.h"

/**
 * GTorchTanh:
 *
 * The hyperbolic tangent.
 *
 * Since: 0.1
 */

struct _GTorchTanh
{
  GTorchModule parent_instance;
};

G_DEFINE_TYPE (GTorchTanh, gtorch_tanh, GTORCH_TYPE_MODULE)

static GTorchTensor *
gtorch_tanh_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  return gtorch_tensor_wrap (gtorch_op_tanh (gtorch_tensor_unwrap (input), error));
}

static void
gtorch_tanh_class_init (GTorchTanhClass *klass)
{
  GTORCH_MODULE_CLASS (klass)->forward = gtorch_tanh_forward;
}

static void
gtorch_tanh_init (GTorchTanh *self)
{
}

/**
 * gtorch_tanh_new:
 *
 * Makes a Tanh.
 *
 * Returns: (transfer full): a new module
 *
 * Since: 0.1
 */
GTorchTanh *
gtorch_tanh_new (void)
{
  return g_object_new (GTORCH_TYPE_TANH, NULL);
}
