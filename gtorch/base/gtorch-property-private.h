/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib-object.h>

G_BEGIN_DECLS

/* For setters that have no place for an error: says in a warning, as GObject does of a value that is out of
 * range, that the property stays as it was, and why. Takes the error. */
void gtorch_property_refuse (GObject *object, const gchar *name, GError *error);

/* Whether a notification is due: NaN is the same as NaN. */
static inline gboolean
gtorch_property_set_double (gdouble *place, gdouble value)
{
  const gboolean changed = *place != value && (*place == *place || value == value);

  *place = value;
  return changed;
}

G_END_DECLS
