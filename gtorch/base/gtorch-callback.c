/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Functions of the program that the library calls. */

#include "config.h"

#include "base/gtorch-callback-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-error.h"

gboolean
gtorch_callback_ended (const gchar *op, gboolean success, GError *local, GError **error)
{
  if (success && local == NULL)
    return TRUE;
  if (local == NULL)
    g_set_error (&local, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                 _ ("%s: the function failed without an error"), op);
  g_propagate_error (error, local);
  return FALSE;
}

gboolean
gtorch_callback_gave (const gchar *op, gpointer result, GError *local, GError **error)
{
  if (result == NULL && local == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                   _ ("%s: the function gave nothing, without an error"), op);
      return FALSE;
    }
  return gtorch_callback_ended (op, TRUE, local, error);
}

gboolean
gtorch_callback_check (const gchar *op, const gchar *function, gpointer place, GType type,
                       GError **error)
{
  GObject **object = place;

  if (G_LIKELY (G_TYPE_CHECK_INSTANCE_TYPE (*object, type)))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, _ ("%s: %s gave a %s, which is no %s"), op,
               _ (function), G_OBJECT_TYPE_NAME (*object), g_type_name (type));
  g_clear_object (object);
  return FALSE;
}

const gchar *
gtorch_type_own_name (const gchar *type_name)
{
  const gchar *separator = strrchr (type_name, '+');

  if (separator != NULL)
    return separator + 1;
  if (g_str_has_prefix (type_name, "Gjs_"))
    return strrchr (type_name, '_') + 1;
  return g_str_has_prefix (type_name, "GTorch") && type_name[6] != '\0' ? type_name + 6 : type_name;
}
