/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-flatten.h"

#include "gtorch-field-private.h"
#include "gtorch-ops-private.h"

/**
 * GTorchFlatten:
 *
 * Merges dimensions into one, by default all but the first, which counts the examples.
 *
 * Since: 0.1
 */

struct _GTorchFlatten
{
  GTorchModule parent_instance;
  gint64 start_dim;
  gint64 end_dim;
};

/* clang-format off */
static const GTorchField fields[] = {
  { "start-dim", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchFlatten, start_dim), 1, TRUE },
  { "end-dim", GTORCH_FIELD_INT, GTORCH_FIELD (GTorchFlatten, end_dim), -1, TRUE },
};
/* clang-format on */

G_DEFINE_TYPE (GTorchFlatten, gtorch_flatten, GTORCH_TYPE_MODULE)

static GTorchTensor *
gtorch_flatten_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  GTorchFlatten *self = GTORCH_FLATTEN (module);
  return gtorch_tensor_wrap (
      gtorch_op_flatten (gtorch_tensor_unwrap (input), self->start_dim, self->end_dim, error));
}

static gchar *
gtorch_flatten_extra_repr (GTorchModule *module)
{
  GTorchFlatten *self = GTORCH_FLATTEN (module);
  return g_strdup_printf ("start_dim=%" G_GINT64_FORMAT ", end_dim=%" G_GINT64_FORMAT,
                          self->start_dim, self->end_dim);
}

static void
gtorch_flatten_class_init (GTorchFlattenClass *klass)
{
  GTORCH_MODULE_CLASS (klass)->forward = gtorch_flatten_forward;
  GTORCH_MODULE_CLASS (klass)->extra_repr = gtorch_flatten_extra_repr;

  /**
   * GTorchFlatten:start-dim:
   *
   * The first dimension to merge.
   *
   * Since: 0.1
   */

  /**
   * GTorchFlatten:end-dim:
   *
   * The last dimension to merge.
   *
   * Since: 0.1
   */
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_flatten_init (GTorchFlatten *self)
{
}

/**
 * gtorch_flatten_new:
 * @start_dim: the first dimension to merge, usually 1
 * @end_dim: the last dimension to merge, usually -1
 *
 * Makes a module that merges dimensions.
 *
 * Returns: (transfer full): a new module
 *
 * Since: 0.1
 */
GTorchFlatten *
gtorch_flatten_new (gint64 start_dim, gint64 end_dim)
{
  return g_object_new (GTORCH_TYPE_FLATTEN, "start-dim", start_dim, "end-dim", end_dim, NULL);
}
