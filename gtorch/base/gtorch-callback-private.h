/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib-object.h>

G_BEGIN_DECLS

/* What a program's function gave back: takes local, its error, which is one whatever else there is, and makes
 * one up if it failed without. */
gboolean gtorch_callback_ended (const gchar *op, gboolean success, GError *local, GError **error);

/* The same for a function that gives an object, or NULL with an error. */
gboolean gtorch_callback_gave (const gchar *op, gpointer result, GError *local, GError **error);

/* Fails if what a program's function gave back is not of the type, which C does not see to: drops the object
 * that `place` refers to then. The function is the name of a method, or words that are marked by N_ (). */
gboolean gtorch_callback_check (const gchar *op, const gchar *function, gpointer place, GType type,
                                GError **error);

/* The name that a class has in its language: “Square” of the types “module+Square” of Python,
 * “Gjs_file_Square” of JavaScript and “GTorchSquare”. A part of the name that it is given. */
const gchar *gtorch_type_own_name (const gchar *type_name);

G_END_DECLS
