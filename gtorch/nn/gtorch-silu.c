/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-silu.h"

#include "gtorch-field-private.h"
#include "gtorch-ops-private.h"

/**
 * GTorchSiLU:
 *
 * The sigmoid-weighted linear unit, x · sigmoid (x).
 *
 * Since: 0.1
 */

struct _GTorchSiLU
{
  GTorchModule parent_instance;
};

G_DEFINE_TYPE (GTorchSiLU, gtorch_silu, GTORCH_TYPE_MODULE)

static GTorchTensor *
gtorch_silu_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  return gtorch_tensor_wrap (gtorch_op_silu (gtorch_tensor_unwrap (input), error));
}

static void
gtorch_silu_class_init (GTorchSiLUClass *klass)
{
  GTORCH_MODULE_CLASS (klass)->forward = gtorch_silu_forward;
}

static void
gtorch_silu_init (GTorchSiLU *self)
{
}

/**
 * gtorch_silu_new:
 *
 * Makes a SiLU.
 *
 * Returns: (transfer full): a new module
 *
 * Since: 0.1
 */
GTorchSiLU *
gtorch_silu_new (void)
{
  return g_object_new (GTORCH_TYPE_SILU, NULL);
}
