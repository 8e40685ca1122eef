/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-relu.h"

#include "gtorch-field-private.h"
#include "gtorch-ops-private.h"

/**
 * GTorchReLU:
 *
 * The rectifier: max (x, 0).
 *
 * Since: 0.1
 */

struct _GTorchReLU
{
  GTorchModule parent_instance;
};

G_DEFINE_TYPE (GTorchReLU, gtorch_relu, GTORCH_TYPE_MODULE)

static GTorchTensor *
gtorch_relu_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  return gtorch_tensor_wrap (gtorch_op_relu (gtorch_tensor_unwrap (input), error));
}

static void
gtorch_relu_class_init (GTorchReLUClass *klass)
{
  GTORCH_MODULE_CLASS (klass)->forward = gtorch_relu_forward;
}

static void
gtorch_relu_init (GTorchReLU *self)
{
}

/**
 * gtorch_relu_new:
 *
 * Makes a ReLU.
 *
 * Returns: (transfer full): a new module
 *
 * Since: 0.1
 */
GTorchReLU *
gtorch_relu_new (void)
{
  return g_object_new (GTORCH_TYPE_RELU, NULL);
}
