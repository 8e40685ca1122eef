/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-softmax.h"

#include "gtorch-field-private.h"
#include "gtorch-ops-private.h"

/**
 * GTorchSoftmax:
 *
 * Makes positive numbers that sum to one along a dimension.
 *
 * Since: 0.1
 */

struct _GTorchSoftmax
{
  GTorchModule parent_instance;
  gint64 dim;
};

/* clang-format off */
static const GTorchField fields[] = {
  { "dim", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchSoftmax, dim), -1, TRUE },
};
/* clang-format on */

G_DEFINE_TYPE (GTorchSoftmax, gtorch_softmax, GTORCH_TYPE_MODULE)

static GTorchTensor *
gtorch_softmax_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  GTorchSoftmax *self = GTORCH_SOFTMAX (module);
  return gtorch_tensor_wrap (
      gtorch_op_softmax (gtorch_tensor_unwrap (input), self->dim, GTORCH_DTYPE_NONE, error));
}

static gchar *
gtorch_softmax_extra_repr (GTorchModule *module)
{
  GTorchSoftmax *self = GTORCH_SOFTMAX (module);
  return g_strdup_printf ("dim=%" G_GINT64_FORMAT, self->dim);
}

static void
gtorch_softmax_class_init (GTorchSoftmaxClass *klass)
{
  GTORCH_MODULE_CLASS (klass)->forward = gtorch_softmax_forward;
  GTORCH_MODULE_CLASS (klass)->extra_repr = gtorch_softmax_extra_repr;

  /**
   * GTorchSoftmax:dim:
   *
   * The dimension along which the numbers sum to one; negative ones count from the end.
   *
   * Since: 0.1
   */
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_softmax_init (GTorchSoftmax *self)
{
}

/**
 * gtorch_softmax_new:
 * @dim: a dimension; negative ones count from the end
 *
 * Makes a Softmax.
 *
 * Returns: (transfer full): a new module
 *
 * Since: 0.1
 */
GTorchSoftmax *
gtorch_softmax_new (gint64 dim)
{
  return g_object_new (GTORCH_TYPE_SOFTMAX, "dim", dim, NULL);
}
