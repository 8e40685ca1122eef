/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtk/gtk.h>

#include <gtorch-plot/gtorch-plot.h>

G_BEGIN_DECLS

#define GTORCH_GTK_TYPE_PARAMETER_ROW (gtorch_gtk_parameter_row_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchGtkParameterRow, gtorch_gtk_parameter_row, GTORCH_GTK, PARAMETER_ROW,
                      GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchParameter *gtorch_gtk_parameter_row_get_parameter (GTorchGtkParameterRow *self);
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_gtk_parameter_row_get_name (GTorchGtkParameterRow *self);
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_gtk_parameter_row_get_shape (GTorchGtkParameterRow *self);
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_gtk_parameter_row_get_dtype (GTorchGtkParameterRow *self);
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_gtk_parameter_row_get_device (GTorchGtkParameterRow *self);
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_gtk_parameter_row_get_n_elements (GTorchGtkParameterRow *self);
GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_gtk_parameter_row_get_norm (GTorchGtkParameterRow *self);

G_END_DECLS
