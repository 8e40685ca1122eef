/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-log-softmax.h"

#include "gtorch-field-private.h"
#include "gtorch-ops-private.h"

/**
 * GTorchLogSoftmax:
 *
 * The logarithms of softmax along a dimension.
 *
 * Since: 0.1
 */

struct _GTorchLogSoftmax
{
  GTorchModule parent_instance;
  gint64 dim;
};

/* clang-format off */
static const GTorchField fields[] = {
  { "dim", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchLogSoftmax, dim), -1, TRUE },
};
/* clang-format on */

G_DEFINE_TYPE (GTorchLogSoftmax, gtorch_log_softmax, GTORCH_TYPE_MODULE)

static GTorchTensor *
gtorch_log_softmax_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  GTorchLogSoftmax *self = GTORCH_LOG_SOFTMAX (module);
  return gtorch_tensor_wrap (
      gtorch_op_log_softmax (gtorch_tensor_unwrap (input), self->dim, GTORCH_DTYPE_NONE, error));
}

static gchar *
gtorch_log_softmax_extra_repr (GTorchModule *module)
{
  GTorchLogSoftmax *self = GTORCH_LOG_SOFTMAX (module);
  return g_strdup_printf ("dim=%" G_GINT64_FORMAT, self->dim);
}

static void
gtorch_log_softmax_class_init (GTorchLogSoftmaxClass *klass)
{
  GTORCH_MODULE_CLASS (klass)->forward = gtorch_log_softmax_forward;
  GTORCH_MODULE_CLASS (klass)->extra_repr = gtorch_log_softmax_extra_repr;

  /**
   * GTorchLogSoftmax:dim:
   *
   * The dimension along which the numbers sum to one; negative ones count from the end.
   *
   * Since: 0.1
   */
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_log_softmax_init (GTorchLogSoftmax *self)
{
}

/**
 * gtorch_log_softmax_new:
 * @dim: a dimension; negative ones count from the end
 *
 * Makes a LogSoftmax.
 *
 * Returns: (transfer full): a new module
 *
 * Since: 0.1
 */
GTorchLogSoftmax *
gtorch_log_softmax_new (gint64 dim)
{
  return g_object_new (GTORCH_TYPE_LOG_SOFTMAX, "dim", dim, NULL);
}
