/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-sigmoid.h"

#include "gtorch-field-private.h"
#include "gtorch-ops-private.h"

/**
 * GTorchSigmoid:
 *
 * The logistic function, 1 / (1 + exp (-x)).
 *
 * Since: 0.1
 */

struct _GTorchSigmoid
{
  GTorchModule parent_instance;
};

G_DEFINE_TYPE (GTorchSigmoid, gtorch_sigmoid, GTORCH_TYPE_MODULE)

static GTorchTensor *
gtorch_sigmoid_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  return gtorch_tensor_wrap (gtorch_op_sigmoid (gtorch_tensor_unwrap (input), error));
}

static void
gtorch_sigmoid_class_init (GTorchSigmoidClass *klass)
{
  GTORCH_MODULE_CLASS (klass)->forward = gtorch_sigmoid_forward;
}

static void
gtorch_sigmoid_init (GTorchSigmoid *self)
{
}

/**
 * gtorch_sigmoid_new:
 *
 * Makes a Sigmoid.
 *
 * Returns: (transfer full): a new module
 *
 * Since: 0.1
 */
GTorchSigmoid *
gtorch_sigmoid_new (void)
{
  return g_object_new (GTORCH_TYPE_SIGMOID, NULL);
}
