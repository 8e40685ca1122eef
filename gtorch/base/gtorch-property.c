/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Properties that cannot have every value of their type. */

#include "config.h"

#include "base/gtorch-property-private.h"

void
gtorch_property_refuse (GObject *object, const gchar *name, GError *error)
{
  g_warning ("%s:%s stays as it was: %s", G_OBJECT_TYPE_NAME (object), name, error->message);
  g_error_free (error);
}
