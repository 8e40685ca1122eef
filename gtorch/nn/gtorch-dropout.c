/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-dropout.h"

#include <glib/gi18n-lib.h>

#include "gtorch-field-private.h"
#include "gtorch-ops-private.h"

/**
 * GTorchDropout:
 *
 * Sets elements to zero at random while the module is being trained, and multiplies the others by 1 /
 * (1 - p). Otherwise the output is the input.
 *
 * Since: 0.1
 */

struct _GTorchDropout
{
  GTorchModule parent_instance;
  gdouble p;
};

/* clang-format off */
static const GTorchField fields[] = {
  { "p", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (GTorchDropout, p), 0.5, TRUE },
};
/* clang-format on */

G_DEFINE_TYPE (GTorchDropout, gtorch_dropout, GTORCH_TYPE_MODULE)

static gboolean
gtorch_dropout_check (gdouble p, GError **error)
{
  if (p >= 0 && p <= 1) /* not so for NaN */
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("dropout: p must be between 0 and 1, it is %g"), p);
  return FALSE;
}

static void
gtorch_dropout_constructed (GObject *object)
{
  GError *error = NULL;

  if (!gtorch_dropout_check (GTORCH_DROPOUT (object)->p, &error))
    gtorch_module_set_error (GTORCH_MODULE (object), error);
  G_OBJECT_CLASS (gtorch_dropout_parent_class)->constructed (object);
}

static GTorchTensor *
gtorch_dropout_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  GTorchDropout *self = GTORCH_DROPOUT (module);
  return gtorch_tensor_wrap (gtorch_op_dropout (gtorch_tensor_unwrap (input), self->p,
                                                gtorch_module_get_training (module), NULL, error));
}

static gchar *
gtorch_dropout_extra_repr (GTorchModule *module)
{
  GTorchDropout *self = GTORCH_DROPOUT (module);
  return g_strdup_printf ("p=%s", gtorch_double_str (self->p));
}

static void
gtorch_dropout_class_init (GTorchDropoutClass *klass)
{
  G_OBJECT_CLASS (klass)->constructed = gtorch_dropout_constructed;
  GTORCH_MODULE_CLASS (klass)->forward = gtorch_dropout_forward;
  GTORCH_MODULE_CLASS (klass)->extra_repr = gtorch_dropout_extra_repr;

  /**
   * GTorchDropout:p:
   *
   * The probability of an element to become zero.
   *
   * Since: 0.1
   */
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_dropout_init (GTorchDropout *self)
{
}

/**
 * gtorch_dropout_new:
 * @p: the probability of an element to become zero, usually 0.5
 * @error: return location for an error
 *
 * Makes a dropout layer.
 *
 * Returns: (transfer full): a new module, or %NULL with %GTORCH_ERROR_INVALID if @p is no
 *   probability
 *
 * Since: 0.1
 */
GTorchDropout *
gtorch_dropout_new (gdouble p, GError **error)
{
  if (!gtorch_dropout_check (p, error))
    return NULL;
  return g_object_new (GTORCH_TYPE_DROPOUT, "p", p, NULL);
}
