/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "gtorch-gtk-private.h"

/**
 * GTorchGtkDevicePanel:
 *
 * Shows a device: the memory of its tensors and, of a GPU with a [class@GTorch.DeviceMonitor], its use
 * of memory, load, temperature, power and clocks.
 *
 * Numbers are brought up to date every second ([property@DevicePanel:interval]) while the panel is seen.
 * What is not known is not shown. The monitor is opened without blocking.
 *
 * ```c
 * panel = gtorch_gtk_device_panel_new (gtorch_device_get_default ());
 * ```
 *
 * Since: 0.1
 */

typedef enum
{
  ROW_TENSORS,
  ROW_MEMORY,
  ROW_LOAD,
  ROW_TEMPERATURE,
  ROW_POWER,
  ROW_CLOCKS,
  N_ROWS
} Row;

static const struct
{
  const gchar *name;
  gboolean has_bar;
} rows[] = {
  [ROW_TENSORS] = { N_ ("Memory of tensors"), TRUE },
  [ROW_MEMORY] = { N_ ("Memory in use"), TRUE },
  [ROW_LOAD] = { N_ ("Load"), TRUE },
  [ROW_TEMPERATURE] = { N_ ("Temperature"), FALSE },
  [ROW_POWER] = { N_ ("Power"), FALSE },
  [ROW_CLOCKS] = { N_ ("Clocks"), FALSE },
};

struct _GTorchGtkDevicePanel
{
  GtkWidget parent_instance;
  GTorchDevice *device;
  GTorchDeviceMonitor *monitor; /* NULL: there is none, or not yet */
  GCancellable *cancellable;    /* of opening it */
  GtkWidget *title, *grid;
  struct
  {
    GtkWidget *name, *bar, *text;
  } cells[N_ROWS];
  guint interval, timeout;
};

enum
{
  PROP_DEVICE = 1,
  PROP_MONITOR,
  PROP_INTERVAL,
  N_PROPS
};

static GParamSpec *props[N_PROPS];

G_DEFINE_TYPE (GTorchGtkDevicePanel, gtorch_gtk_device_panel, GTK_TYPE_WIDGET)

/* --- rows --- */

/* Takes text; NULL: the row is hidden. */
static void
show (GTorchGtkDevicePanel *self, Row row, gchar *text, gdouble part)
{
  g_autofree gchar *owned = text;

  gtk_widget_set_visible (self->cells[row].name, text != NULL);
  gtk_widget_set_visible (self->cells[row].text, text != NULL);
  if (self->cells[row].bar != NULL)
    gtk_widget_set_visible (self->cells[row].bar, text != NULL);
  if (text == NULL)
    return;
  if (g_strcmp0 (gtk_label_get_text (GTK_LABEL (self->cells[row].text)), text) != 0)
    gtk_label_set_text (GTK_LABEL (self->cells[row].text), text);
  if (self->cells[row].bar != NULL)
    gtk_level_bar_set_value (GTK_LEVEL_BAR (self->cells[row].bar), CLAMP (part, 0, 1));
}

static void
show_memory (GTorchGtkDevicePanel *self, Row row, guint64 used, guint64 total)
{
  g_autofree gchar *used_text = g_format_size_full (used, G_FORMAT_SIZE_IEC_UNITS);
  g_autofree gchar *total_text = g_format_size_full (total, G_FORMAT_SIZE_IEC_UNITS);

  /* Translators: of memory, “3.4 GiB of 79.6 GiB” */
  show (self, row,
        total > 0 ? g_strdup_printf (_ ("%s of %s"), used_text, total_text) : g_strdup (used_text),
        total > 0 ? (gdouble) used / total : 0);
}

static void
show_monitor (GTorchGtkDevicePanel *self)
{
  GTorchDeviceMonitor *m = self->monitor;
  const gint load = m != NULL ? gtorch_device_monitor_get_utilization (m) : -1;
  const gint temperature = m != NULL ? gtorch_device_monitor_get_temperature (m) : -1;
  const gdouble power = m != NULL ? gtorch_device_monitor_get_power (m) : -1;
  const gint clock = m != NULL ? gtorch_device_monitor_get_sm_clock (m) : -1;
  const gint memory_clock = m != NULL ? gtorch_device_monitor_get_memory_clock (m) : -1;

  if (m != NULL)
    show_memory (self, ROW_MEMORY, gtorch_device_monitor_get_memory_used (m),
                 gtorch_device_get_total_memory (self->device));
  else
    show (self, ROW_MEMORY, NULL, 0);
  show (self, ROW_LOAD, load >= 0 ? g_strdup_printf ("%d %%", load) : NULL, load / 100.0);
  show (self, ROW_TEMPERATURE, temperature >= 0 ? g_strdup_printf ("%d °C", temperature) : NULL, 0);
  show (self, ROW_POWER, power >= 0 ? g_strdup_printf ("%.0f W", power) : NULL, 0);
  show (self, ROW_CLOCKS,
        clock < 0          ? NULL
        : memory_clock < 0 ? g_strdup_printf ("%d MHz", clock)
                           : g_strdup_printf (_ ("%d MHz, memory %d MHz"), clock, memory_clock),
        0);
}

static void
update (GTorchGtkDevicePanel *self)
{
  g_autofree gchar *short_name = NULL;
  g_autofree gchar *text = NULL;

  if (self->title == NULL)
    return; /* it is disposed */
  if (self->device == NULL)
    {
      gtk_label_set_text (GTK_LABEL (self->title), _ ("No device"));
      show (self, ROW_TENSORS, NULL, 0);
      show_monitor (self);
      return;
    }
  short_name = gtorch_device_to_string (self->device);
  text = g_strdup_printf ("%s  ·  %s", gtorch_device_get_name (self->device), short_name);
  gtk_label_set_text (GTK_LABEL (self->title), text);
  show_memory (self, ROW_TENSORS, gtorch_device_get_memory_allocated (self->device),
               gtorch_device_get_total_memory (self->device));
  show_monitor (self);
}

static void
set_monitor (GTorchGtkDevicePanel *self, GTorchDeviceMonitor *monitor)
{
  if (self->monitor == monitor)
    return;
  if (self->monitor != NULL)
    g_signal_handlers_disconnect_by_data (self->monitor, self);
  g_set_object (&self->monitor, monitor);
  if (monitor != NULL)
    {
      gtorch_device_monitor_set_interval (monitor, CLAMP (self->interval, 100, 3600000), NULL);
      gtorch_device_monitor_set_active (monitor, gtk_widget_get_mapped (GTK_WIDGET (self)));
    }
  update (self);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_MONITOR]);
}

/* Of a device without a monitor, such as the CPU, the panel shows what it knows itself. */
static void
opened (GObject *object, GAsyncResult *result, gpointer data)
{
  g_autoptr (GTorchGtkDevicePanel) self = data;
  g_autoptr (GTorchDeviceMonitor) monitor =
      gtorch_device_open_monitor_finish (GTORCH_DEVICE (object), result, NULL);

  if (monitor != NULL && self->device != NULL
      && gtorch_device_equal (self->device, GTORCH_DEVICE (object)))
    set_monitor (self, monitor);
}

static gboolean
on_timeout (gpointer data)
{
  update (data);
  return G_SOURCE_CONTINUE;
}

static void
set_timeout (GTorchGtkDevicePanel *self)
{
  const gboolean is_seen = gtk_widget_get_mapped (GTK_WIDGET (self));

  g_clear_handle_id (&self->timeout, g_source_remove);
  if (is_seen)
    self->timeout = g_timeout_add (self->interval, on_timeout, self);
  if (self->monitor != NULL)
    gtorch_device_monitor_set_active (self->monitor, is_seen);
}

static void
gtorch_gtk_device_panel_map (GtkWidget *widget)
{
  GTorchGtkDevicePanel *self = GTORCH_GTK_DEVICE_PANEL (widget);

  GTK_WIDGET_CLASS (gtorch_gtk_device_panel_parent_class)->map (widget);
  set_timeout (self);
  update (self);
}

static void
gtorch_gtk_device_panel_unmap (GtkWidget *widget)
{
  GTK_WIDGET_CLASS (gtorch_gtk_device_panel_parent_class)->unmap (widget);
  set_timeout (GTORCH_GTK_DEVICE_PANEL (widget));
}

/* --- class --- */

static void
gtorch_gtk_device_panel_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GTorchGtkDevicePanel *self = GTORCH_GTK_DEVICE_PANEL (object);

  if (id == PROP_DEVICE)
    g_value_set_object (value, self->device);
  else if (id == PROP_MONITOR)
    g_value_set_object (value, self->monitor);
  else if (id == PROP_INTERVAL)
    g_value_set_uint (value, self->interval);
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

static void
gtorch_gtk_device_panel_set_property (GObject *object, guint id, const GValue *value,
                                      GParamSpec *pspec)
{
  GTorchGtkDevicePanel *self = GTORCH_GTK_DEVICE_PANEL (object);
  g_autoptr (GError) error = NULL;

  if (id == PROP_DEVICE)
    gtorch_gtk_device_panel_set_device (self, g_value_get_object (value));
  else if (id == PROP_INTERVAL)
    gtorch_gtk_device_panel_set_interval (self, g_value_get_uint (value), &error);
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  if (error != NULL)
    g_warning ("%s", error->message);
}

static void
gtorch_gtk_device_panel_dispose (GObject *object)
{
  GTorchGtkDevicePanel *self = GTORCH_GTK_DEVICE_PANEL (object);

  if (self->cancellable != NULL)
    g_cancellable_cancel (self->cancellable);
  g_clear_object (&self->cancellable);
  g_clear_handle_id (&self->timeout, g_source_remove);
  g_clear_object (&self->monitor);
  g_clear_object (&self->device);
  g_clear_pointer (&self->title, gtk_widget_unparent);
  g_clear_pointer (&self->grid, gtk_widget_unparent);
  G_OBJECT_CLASS (gtorch_gtk_device_panel_parent_class)->dispose (object);
}

static void
gtorch_gtk_device_panel_class_init (GTorchGtkDevicePanelClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  object_class->get_property = gtorch_gtk_device_panel_get_property;
  object_class->set_property = gtorch_gtk_device_panel_set_property;
  object_class->dispose = gtorch_gtk_device_panel_dispose;
  widget_class->map = gtorch_gtk_device_panel_map;
  widget_class->unmap = gtorch_gtk_device_panel_unmap;
  /**
   * GTorchGtkDevicePanel:device:
   *
   * The device.
   *
   * Since: 0.1
   */
  props[PROP_DEVICE] =
      g_param_spec_object ("device", NULL, NULL, GTORCH_TYPE_DEVICE, GTORCH_GTK_PARAM_FLAGS);
  /**
   * GTorchGtkDevicePanel:monitor:
   *
   * The monitor of the device, if it has one and it has been opened.
   *
   * Since: 0.1
   */
  props[PROP_MONITOR] = g_param_spec_object ("monitor", NULL, NULL, GTORCH_TYPE_DEVICE_MONITOR,
                                             GTORCH_GTK_PARAM_READ);
  /**
   * GTorchGtkDevicePanel:interval:
   *
   * The time between two looks at the device in milliseconds, from 100 to an hour.
   *
   * Since: 0.1
   */
  props[PROP_INTERVAL] =
      g_param_spec_uint ("interval", NULL, NULL, 100, 3600000, 1000, GTORCH_GTK_PARAM_FLAGS);
  g_object_class_install_properties (object_class, N_PROPS, props);
  gtk_widget_class_set_css_name (widget_class, "device");
  gtk_widget_class_set_layout_manager_type (widget_class, GTK_TYPE_BOX_LAYOUT);
  gtk_widget_class_set_accessible_role (widget_class, GTK_ACCESSIBLE_ROLE_GROUP);
}

static void
add_row (GTorchGtkDevicePanel *self, Row row)
{
  GtkWidget *name = gtorch_gtk_label_new (_ (rows[row].name), "dim-label");
  GtkWidget *text = gtorch_gtk_label_new (NULL, "numeric");
  GtkWidget *bar = rows[row].has_bar ? gtk_level_bar_new () : NULL;

  gtk_grid_attach (GTK_GRID (self->grid), name, 0, row, 1, 1);
  gtk_grid_attach (GTK_GRID (self->grid), text, 1, row, bar != NULL ? 1 : 2, 1);
  if (bar != NULL)
    {
      gtk_widget_set_hexpand (bar, TRUE);
      gtk_widget_set_valign (bar, GTK_ALIGN_CENTER);
      gtk_widget_set_size_request (bar, 80, -1);
      /* without the colours of a battery */
      gtk_level_bar_remove_offset_value (GTK_LEVEL_BAR (bar), GTK_LEVEL_BAR_OFFSET_LOW);
      gtk_level_bar_remove_offset_value (GTK_LEVEL_BAR (bar), GTK_LEVEL_BAR_OFFSET_HIGH);
      gtk_level_bar_remove_offset_value (GTK_LEVEL_BAR (bar), GTK_LEVEL_BAR_OFFSET_FULL);
      gtk_accessible_update_property (GTK_ACCESSIBLE (bar), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                      _ (rows[row].name), -1);
      gtk_grid_attach (GTK_GRID (self->grid), bar, 2, row, 1, 1);
    }
  self->cells[row].name = name;
  self->cells[row].text = text;
  self->cells[row].bar = bar;
}

static void
gtorch_gtk_device_panel_init (GTorchGtkDevicePanel *self)
{
  GtkLayoutManager *layout = gtk_widget_get_layout_manager (GTK_WIDGET (self));

  self->interval = 1000;
  gtk_orientable_set_orientation (GTK_ORIENTABLE (layout), GTK_ORIENTATION_VERTICAL);
  gtk_box_layout_set_spacing (GTK_BOX_LAYOUT (layout), 6);
  self->title = gtorch_gtk_label_new (NULL, "heading");
  gtk_label_set_ellipsize (GTK_LABEL (self->title), PANGO_ELLIPSIZE_END);
  gtk_widget_set_parent (self->title, GTK_WIDGET (self));
  self->grid = gtk_grid_new ();
  gtk_grid_set_row_spacing (GTK_GRID (self->grid), 4);
  gtk_grid_set_column_spacing (GTK_GRID (self->grid), 12);
  gtk_widget_set_parent (self->grid, GTK_WIDGET (self));
  for (Row row = 0; row < N_ROWS; row++)
    add_row (self, row);
  update (self);
}

/**
 * gtorch_gtk_device_panel_new:
 * @device: (nullable): the device, or %NULL
 *
 * Creates a panel that shows a device.
 *
 * Returns: (transfer floating): a new widget
 *
 * Since: 0.1
 */
GtkWidget *
gtorch_gtk_device_panel_new (GTorchDevice *device)
{
  g_return_val_if_fail (device == NULL || GTORCH_IS_DEVICE (device), NULL);
  return g_object_new (GTORCH_GTK_TYPE_DEVICE_PANEL, "device", device, NULL);
}

/**
 * gtorch_gtk_device_panel_get_device: (get-property device)
 * @self: a panel
 *
 * Gets the device.
 *
 * Returns: (transfer none) (nullable): the device, or %NULL
 *
 * Since: 0.1
 */
GTorchDevice *
gtorch_gtk_device_panel_get_device (GTorchGtkDevicePanel *self)
{
  g_return_val_if_fail (GTORCH_GTK_IS_DEVICE_PANEL (self), NULL);
  return self->device;
}

/**
 * gtorch_gtk_device_panel_set_device: (set-property device)
 * @self: a panel
 * @device: (nullable): the device, or %NULL
 *
 * Sets the device, and begins to open its monitor.
 *
 * Since: 0.1
 */
void
gtorch_gtk_device_panel_set_device (GTorchGtkDevicePanel *self, GTorchDevice *device)
{
  g_return_if_fail (GTORCH_GTK_IS_DEVICE_PANEL (self));
  g_return_if_fail (device == NULL || GTORCH_IS_DEVICE (device));
  if (!g_set_object (&self->device, device))
    return;
  if (self->cancellable != NULL)
    g_cancellable_cancel (self->cancellable);
  g_clear_object (&self->cancellable);
  set_monitor (self, NULL);
  if (device != NULL)
    {
      self->cancellable = g_cancellable_new ();
      gtorch_device_open_monitor_async (device, self->cancellable, opened, g_object_ref (self));
    }
  update (self);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_DEVICE]);
}

/**
 * gtorch_gtk_device_panel_get_monitor: (get-property monitor)
 * @self: a panel
 *
 * Gets the monitor of the device.
 *
 * Returns: (transfer none) (nullable): the monitor, or %NULL if the device has none, or it was not
 *   opened yet
 *
 * Since: 0.1
 */
GTorchDeviceMonitor *
gtorch_gtk_device_panel_get_monitor (GTorchGtkDevicePanel *self)
{
  g_return_val_if_fail (GTORCH_GTK_IS_DEVICE_PANEL (self), NULL);
  return self->monitor;
}

/**
 * gtorch_gtk_device_panel_get_interval: (get-property interval)
 * @self: a panel
 *
 * Gets the time between two looks at the device.
 *
 * Returns: the time in milliseconds
 *
 * Since: 0.1
 */
guint
gtorch_gtk_device_panel_get_interval (GTorchGtkDevicePanel *self)
{
  g_return_val_if_fail (GTORCH_GTK_IS_DEVICE_PANEL (self), 0);
  return self->interval;
}

/**
 * gtorch_gtk_device_panel_set_interval: (set-property interval)
 * @self: a panel
 * @interval: the time in milliseconds, from 100 to an hour
 * @error: return location for an error
 *
 * Sets the time between two looks at the device.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID if the time is too short or too long
 *
 * Since: 0.1
 */
gboolean
gtorch_gtk_device_panel_set_interval (GTorchGtkDevicePanel *self, guint interval, GError **error)
{
  g_return_val_if_fail (GTORCH_GTK_IS_DEVICE_PANEL (self), FALSE);
  if (interval < 100 || interval > 3600000)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("gtk_device_panel_set_interval: %u is not from 100 to 3600000 milliseconds"),
                   interval);
      return FALSE;
    }
  if (self->interval == interval)
    return TRUE;
  self->interval = interval;
  if (self->monitor != NULL)
    gtorch_device_monitor_set_interval (self->monitor, interval, NULL);
  set_timeout (self);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_INTERVAL]);
  return TRUE;
}
