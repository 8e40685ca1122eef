/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-gtk-private.h"

#include <inttypes.h>

/**
 * gtorch_gtk_init:
 *
 * Makes all types of this library known to [class@Gtk.Builder], so that files of user interfaces can
 * name them.
 *
 * A program that makes such an object by a call, or uses introspection, does not need this.
 *
 * Since: 0.1
 */
void
gtorch_gtk_init (void)
{
  g_type_ensure (GTORCH_GTK_TYPE_DEVICE_PANEL);
  g_type_ensure (GTORCH_GTK_TYPE_PARAMETER_LIST);
  g_type_ensure (GTORCH_GTK_TYPE_PARAMETER_ROW);
  g_type_ensure (GTORCH_GTK_TYPE_PLOT);
  g_type_ensure (GTORCH_GTK_TYPE_TENSOR_PAINTABLE);
  g_type_ensure (GTORCH_GTK_TYPE_TRAINER_PROGRESS);
}

gchar *
gtorch_gtk_shape_text (GTorchTensor *tensor, const gchar *separator)
{
  gsize n_dims;
  const gint64 *shape = gtorch_tensor_get_shape (tensor, &n_dims);
  GString *text = g_string_new (NULL);

  for (gsize i = 0; i < n_dims; i++)
    g_string_append_printf (text, "%s%" PRId64, i > 0 ? separator : "", shape[i]);
  return g_string_free (text, FALSE);
}

GtkWidget *
gtorch_gtk_label_new (const gchar *text, const gchar *css_class)
{
  GtkWidget *label = gtk_label_new (text);

  gtk_label_set_xalign (GTK_LABEL (label), 0);
  if (css_class != NULL)
    gtk_widget_add_css_class (label, css_class);
  return label;
}
