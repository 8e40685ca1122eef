/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib-object.h>

G_BEGIN_DECLS

/* For set_property(), which has no place for an error: says in a warning, as GObject does of a value that is
 * out of range, that the property stays as it was, and why. Takes the error. */
void gtorch_property_refuse (GObject *object, GParamSpec *pspec, GError *error);

G_END_DECLS
