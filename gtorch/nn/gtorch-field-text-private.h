/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-field-private.h>

G_BEGIN_DECLS

/* "3, 4, kernel_size=(3, 3)": what stands between the brackets of a module's text. */
gchar *gtorch_fields_str (gpointer object, const GTorchField *fields, guint n);

/* "(3, 3)", "(3,)": as PyTorch writes tuples. */
gchar *gtorch_tuple_str (const gint64 *values, guint n);
/* PyTorch's way to write a number: 0.1, 1e-05. The buffer is a ring of this thread's. */
const gchar *gtorch_double_str (gdouble value);
#define GTORCH_BOOL_STR(value) ((value) ? "True" : "False")

G_END_DECLS
