/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Objects of the libraries beside GTorch, to pass to their functions. */

#include "config.h"

#include "refuse.h"

#ifdef REFUSE_GTK
#include <gtorch-gtk/gtorch-gtk.h>
#else
#include <gtorch-plot/gtorch-plot.h>
#endif

static GTorchPlotFigure *figure; /* which the axes are of */

static gpointer
make_axes (void)
{
  g_clear_object (&figure);
  figure = gtorch_plot_figure_new ();
  return g_object_ref (gtorch_plot_figure_get_axes (figure, 0, 0, NULL));
}

static gpointer
make_line (void)
{
  GTorchPlotLine *line = gtorch_plot_line_new ("a line");

  gtorch_plot_line_append (line, 1, 2);
  return line;
}

static gpointer
make_histogram (void)
{
  return gtorch_plot_histogram_new (NULL);
}

static gpointer
make_context (void)
{
  cairo_surface_t *surface = cairo_image_surface_create (CAIRO_FORMAT_ARGB32, 20, 20);
  cairo_t *cr = cairo_create (surface);

  cairo_surface_destroy (surface);
  return cr;
}

#ifdef REFUSE_GTK
static gpointer
make_parameter_list (void)
{
  const Param param = { .kind = PARAM_OBJECT, .name = "module", .type = "GTorchModule" };
  g_autoptr (GTorchModule) module = refuse_make (&param);

  return g_object_ref_sink (gtorch_gtk_parameter_list_new (module));
}

static gpointer
make_parameter_row (void)
{
  g_autoptr (GtkWidget) list = make_parameter_list ();
  GListModel *rows = gtorch_gtk_parameter_list_get_rows (GTORCH_GTK_PARAMETER_LIST (list));

  return g_list_model_get_item (rows, 0);
}

static gpointer
make_panel (void)
{
  return g_object_ref_sink (gtorch_gtk_device_panel_new (gtorch_device_cpu ()));
}

static gpointer
make_plot (void)
{
  return g_object_ref_sink (gtorch_gtk_plot_new (NULL));
}

static gpointer
make_progress (void)
{
  g_autoptr (GTorchTrainer) trainer = refuse_make_trainer ();

  return g_object_ref_sink (gtorch_gtk_trainer_progress_new (trainer));
}
#endif

static const struct
{
  const gchar *type;
  gpointer (*make) (void);
} makers[] = {
  { "GTorchPlotAxes", make_axes },
  { "GTorchPlotFigure", (gpointer (*) (void)) gtorch_plot_figure_new },
  { "GTorchPlotHistogram", make_histogram },
  { "GTorchPlotImage", (gpointer (*) (void)) gtorch_plot_image_new },
  { "GTorchPlotItem", make_line },
  { "GTorchPlotLine", make_line },
  { "cairo_t", make_context },
#ifdef REFUSE_GTK
  { "GTorchGtkDevicePanel", make_panel },
  { "GTorchGtkParameterList", make_parameter_list },
  { "GTorchGtkParameterRow", make_parameter_row },
  { "GTorchGtkPlot", make_plot },
  { "GTorchGtkTensorPaintable", (gpointer (*) (void)) gtorch_gtk_tensor_paintable_new },
  { "GTorchGtkTrainerProgress", make_progress },
#endif
};

static gpointer
make (const gchar *type)
{
  for (guint i = 0; i < G_N_ELEMENTS (makers); i++)
    if (g_str_equal (makers[i].type, type))
      return makers[i].make ();
  return NULL;
}

static void
begin (void)
{
#ifdef REFUSE_GTK
  g_assert_true (gtk_init_check ());
#endif
}

const RefuseLibrary refuse_library = { make, begin, (GDestroyNotify) cairo_destroy };
