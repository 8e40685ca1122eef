/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch-gtk/gtorch-gtk.h>

#include "base/gtorch-task-private.h"

G_BEGIN_DECLS

#define GTORCH_GTK_PARAM_FLAGS \
  (G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | G_PARAM_EXPLICIT_NOTIFY)
#define GTORCH_GTK_PARAM_READ (G_PARAM_READABLE | G_PARAM_STATIC_STRINGS)

gchar *gtorch_gtk_shape_text (GTorchTensor *tensor, const gchar *separator);
GtkWidget *gtorch_gtk_label_new (const gchar *text, const gchar *css_class);

GTorchGtkParameterRow *gtorch_gtk_parameter_row_new (GTorchParameter *parameter);
/* Whether they show the same, but for the norm. */
gboolean gtorch_gtk_parameter_row_equals (GTorchGtkParameterRow *self,
                                          GTorchGtkParameterRow *other);
void gtorch_gtk_parameter_row_set_norm (GTorchGtkParameterRow *self, gdouble norm);

G_END_DECLS
