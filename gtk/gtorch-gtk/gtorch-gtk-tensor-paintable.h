/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtk/gtk.h>

#include <gtorch-plot/gtorch-plot.h>

G_BEGIN_DECLS

#define GTORCH_GTK_TYPE_TENSOR_PAINTABLE (gtorch_gtk_tensor_paintable_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchGtkTensorPaintable, gtorch_gtk_tensor_paintable, GTORCH_GTK,
                      TENSOR_PAINTABLE, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchGtkTensorPaintable *gtorch_gtk_tensor_paintable_new (void) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_gtk_tensor_paintable_get_tensor (GTorchGtkTensorPaintable *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_gtk_tensor_paintable_set_tensor (GTorchGtkTensorPaintable *self,
                                                 GTorchTensor *tensor, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_gtk_tensor_paintable_update (GTorchGtkTensorPaintable *self);
GTORCH_AVAILABLE_IN_0_1
GdkTexture *gtorch_gtk_tensor_paintable_get_texture (GTorchGtkTensorPaintable *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_gtk_tensor_paintable_is_loading (GTorchGtkTensorPaintable *self);
GTORCH_AVAILABLE_IN_0_1
const GError *gtorch_gtk_tensor_paintable_get_error (GTorchGtkTensorPaintable *self);
GTORCH_AVAILABLE_IN_0_1
GTorchPlotColormap gtorch_gtk_tensor_paintable_get_colormap (GTorchGtkTensorPaintable *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_gtk_tensor_paintable_set_colormap (GTorchGtkTensorPaintable *self,
                                               GTorchPlotColormap colormap);
GTORCH_AVAILABLE_IN_0_1
void gtorch_gtk_tensor_paintable_get_range (GTorchGtkTensorPaintable *self, gdouble *minimum,
                                            gdouble *maximum);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_gtk_tensor_paintable_set_range (GTorchGtkTensorPaintable *self, gdouble minimum,
                                                gdouble maximum, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_gtk_tensor_paintable_get_fit_range (GTorchGtkTensorPaintable *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_gtk_tensor_paintable_set_fit_range (GTorchGtkTensorPaintable *self, gboolean fit_range);

G_END_DECLS
