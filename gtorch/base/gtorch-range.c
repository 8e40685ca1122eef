/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Ranges that settings must be in, and what is said of a number that is not. */

#include "config.h"

#include "base/gtorch-range-private.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-dtype-private.h"
#include "base/gtorch-error.h"

gboolean
gtorch_dtype_has (guint dtype, gdouble value)
{
  const GTorchDTypeInfo *info = &gtorch_dtype_infos[dtype];

  if (info->kind == GTORCH_KIND_BOOL || (isinf (value) && info->kind != GTORCH_KIND_INT))
    return TRUE;
  if (info->kind != GTORCH_KIND_INT)
    return !(fabs (value) > info->max);
  value = trunc (value);
  return value >= (info->is_signed ? info->min : -info->max) && value <= info->max
         && value < 0x1p63;
}

gchar *
gtorch_range_describe (gdouble low, gdouble high, gboolean is_open)
{
  if (high < G_MAXDOUBLE)
    return g_strdup_printf (is_open ? _ ("within (%g, %g]") : _ ("within [%g, %g]"), low, high);
  if (low <= -G_MAXDOUBLE)
    return g_strdup (_ ("finite"));
  if (high == G_MAXDOUBLE)
    return g_strdup_printf (is_open ? _ ("finite and greater than %g")
                                    : _ ("finite and at least %g"),
                            low);
  return g_strdup_printf (is_open ? _ ("greater than %g") : _ ("at least %g"), low);
}

gboolean
gtorch_check_range (const gchar *who, const gchar *name, gdouble value, gdouble low, gdouble high,
                    gboolean is_open, GError **error)
{
  g_autofree gchar *rule = NULL;

  if (gtorch_is_in_range (value, low, high, is_open))
    return TRUE;
  if (gtorch_is_none_double (value))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: %s is %g, which is NONE_DOUBLE, and it has no default"), who, _ (name),
                   value);
      return FALSE;
    }
  rule = gtorch_range_describe (low, high, is_open);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: %s is %g, it must be %s"), who,
               _ (name), value, rule);
  return FALSE;
}
