/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-gelu.h"

#include "gtorch-field-private.h"
#include "gtorch-ops-private.h"

/**
 * GTorchGELU:
 *
 * The Gaussian error linear unit, x · Φ (x).
 *
 * Since: 0.1
 */

struct _GTorchGELU
{
  GTorchModule parent_instance;
  gboolean tanh_approximation;
};

/* clang-format off */
static const GTorchField fields[] = {
  { "tanh-approximation", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchGELU, tanh_approximation), 0, TRUE },
};
/* clang-format on */

G_DEFINE_TYPE (GTorchGELU, gtorch_gelu, GTORCH_TYPE_MODULE)

static GTorchTensor *
gtorch_gelu_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  GTorchGELU *self = GTORCH_GELU (module);
  return gtorch_tensor_wrap (
      gtorch_op_gelu (gtorch_tensor_unwrap (input), self->tanh_approximation, error));
}

static gchar *
gtorch_gelu_extra_repr (GTorchModule *module)
{
  GTorchGELU *self = GTORCH_GELU (module);
  return g_strdup_printf ("approximate='%s'", self->tanh_approximation ? "tanh" : "none");
}

static void
gtorch_gelu_class_init (GTorchGELUClass *klass)
{
  GTORCH_MODULE_CLASS (klass)->forward = gtorch_gelu_forward;
  GTORCH_MODULE_CLASS (klass)->extra_repr = gtorch_gelu_extra_repr;

  /**
   * GTorchGELU:tanh-approximation:
   *
   * Whether to compute it by the tanh formula that some networks were trained with.
   *
   * Since: 0.1
   */
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_gelu_init (GTorchGELU *self)
{
}

/**
 * gtorch_gelu_new:
 * @tanh_approximation: whether to compute it by the tanh formula
 *
 * Makes a GELU.
 *
 * Returns: (transfer full): a new module
 *
 * Since: 0.1
 */
GTorchGELU *
gtorch_gelu_new (gboolean tanh_approximation)
{
  return g_object_new (GTORCH_TYPE_GELU, "tanh-approximation", tanh_approximation != FALSE, NULL);
}
