/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtk/gtk.h>

#include <gtorch-plot/gtorch-plot.h>

#include <gtorch-gtk/gtorch-gtk-parameter-row.h>

G_BEGIN_DECLS

#define GTORCH_GTK_TYPE_PARAMETER_LIST (gtorch_gtk_parameter_list_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchGtkParameterList, gtorch_gtk_parameter_list, GTORCH_GTK, PARAMETER_LIST,
                      GtkWidget)

GTORCH_AVAILABLE_IN_0_1
GtkWidget *gtorch_gtk_parameter_list_new (GTorchModule *module) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchModule *gtorch_gtk_parameter_list_get_module (GTorchGtkParameterList *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_gtk_parameter_list_set_module (GTorchGtkParameterList *self, GTorchModule *module);
GTORCH_AVAILABLE_IN_0_1
guint gtorch_gtk_parameter_list_get_interval (GTorchGtkParameterList *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_gtk_parameter_list_set_interval (GTorchGtkParameterList *self, guint interval);
GTORCH_AVAILABLE_IN_0_1
GListModel *gtorch_gtk_parameter_list_get_rows (GTorchGtkParameterList *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_gtk_parameter_list_update (GTorchGtkParameterList *self);

G_END_DECLS
