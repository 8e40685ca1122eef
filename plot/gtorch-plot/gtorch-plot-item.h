/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch-plot/gtorch-plot-types.h>

G_BEGIN_DECLS

#define GTORCH_PLOT_TYPE_ITEM (gtorch_plot_item_get_type ())

typedef struct _GTorchPlotItemClass GTorchPlotItemClass;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_plot_item_get_type (void) G_GNUC_CONST;
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchPlotItem, g_object_unref)
#define GTORCH_PLOT_ITEM(object) \
  (G_TYPE_CHECK_INSTANCE_CAST ((object), GTORCH_PLOT_TYPE_ITEM, GTorchPlotItem))
#define GTORCH_PLOT_IS_ITEM(object) (G_TYPE_CHECK_INSTANCE_TYPE ((object), GTORCH_PLOT_TYPE_ITEM))

GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_plot_item_get_label (GTorchPlotItem *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_item_set_label (GTorchPlotItem *self, const gchar *label);
GTORCH_AVAILABLE_IN_0_1
const gchar *gtorch_plot_item_get_color (GTorchPlotItem *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_item_set_color (GTorchPlotItem *self, const gchar *color, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_plot_item_get_visible (GTorchPlotItem *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_plot_item_set_visible (GTorchPlotItem *self, gboolean visible);

G_END_DECLS
