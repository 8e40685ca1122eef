/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Norms are computed by one thread at a time, one parameter after the other: what is shown must not take the
 * processors from what is computed. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>

#include "gtorch-gtk-private.h"

#define TURN         (50 * G_TIME_SPAN_MILLISECOND)
#define MOST_AT_ONCE 1000

/**
 * GTorchGtkParameterList:
 *
 * A table of the parameters of a module, also those of modules inside: full name, shape, dtype, device
 * and norm.
 *
 * It follows the module ([class@GTorch.MemberModel]). Norms are computed in a thread, and appear when
 * they are known; with [property@ParameterList:interval] they are computed again and again while the
 * table is seen.
 *
 * ```c
 * list = gtorch_gtk_parameter_list_new (model);
 * gtorch_gtk_parameter_list_set_interval (GTORCH_GTK_PARAMETER_LIST (list), 1000);
 * ```
 *
 * Since: 0.1
 */

struct _GTorchGtkParameterList
{
  GtkWidget parent_instance;
  GTorchModule *module;
  GtkWidget *window, *view;
  GListModel *rows; /* a GListStore; NULL: no module */
  GTorchMemberModel *members;
  guint interval, timeout;
  GCancellable *cancellable; /* of the norms that are computed; NULL: none are */
};

enum
{
  PROP_MODULE = 1,
  PROP_INTERVAL,
  PROP_ROWS,
  N_PROPS
};

static GParamSpec *props[N_PROPS];

G_DEFINE_TYPE (GTorchGtkParameterList, gtorch_gtk_parameter_list, GTK_TYPE_WIDGET)

/* --- norms --- */

/* Some of the parameters, from a position on. */
typedef struct
{
  GPtrArray *rows;    /* touched in the main thread only */
  GPtrArray *tensors; /* of the rows */
  GArray *norms;      /* of the first of them */
  guint position;
} Work;

static void
work_free (gpointer data)
{
  Work *work = data;

  g_ptr_array_unref (work->rows);
  g_ptr_array_unref (work->tensors);
  g_array_unref (work->norms);
  g_free (work);
}

static gdouble
norm_of (GTorchTensor *tensor)
{
  g_autoptr (GError) error =
      NULL; /* a tensor that was released, or is not there yet: no norm is shown */
  g_autoptr (GTorchTensor) plain = gtorch_tensor_detach (tensor, &error);
  g_autoptr (GTorchTensor) norm = NULL;

  if (plain != NULL)
    norm = gtorch_linalg_vector_norm (plain, 2, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  return norm != NULL ? gtorch_tensor_item_double (norm, &error) : NAN;
}

/* Computes for a while: a thread that ends a task for each parameter would disturb the main loop more
 * often than there is something to see. */
static void
compute_norms (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  const gint64 end = g_get_monotonic_time () + TURN;
  Work *work = data;

  do
    {
      const gdouble norm = norm_of (work->tensors->pdata[work->norms->len]);

      g_array_append_val (work->norms, norm);
    }
  while (work->norms->len < work->tensors->len && g_get_monotonic_time () < end
         && !g_cancellable_is_cancelled (cancellable));
  g_task_return_boolean (task, TRUE);
}

static void begin_norms (GTorchGtkParameterList *self, guint position);

static void
found_norms (GObject *object, GAsyncResult *result, gpointer data)
{
  GTorchGtkParameterList *self = GTORCH_GTK_PARAMETER_LIST (object);
  Work *work = g_task_get_task_data (G_TASK (result));

  if (g_task_get_cancellable (G_TASK (result)) != self->cancellable)
    return;
  for (guint i = 0; i < work->norms->len; i++)
    gtorch_gtk_parameter_row_set_norm (work->rows->pdata[i],
                                       g_array_index (work->norms, gdouble, i));
  begin_norms (self, work->position + work->norms->len);
}

static void
begin_norms (GTorchGtkParameterList *self, guint position)
{
  const guint n = self->rows != NULL ? g_list_model_get_n_items (self->rows) : 0;
  g_autoptr (GTask) task = NULL;
  Work *work;

  if (position >= n)
    {
      g_clear_object (&self->cancellable);
      return;
    }
  task = g_task_new (self, self->cancellable, found_norms, NULL);
  work = g_new (Work, 1);
  *work = (Work){ g_ptr_array_new_with_free_func (g_object_unref),
                  g_ptr_array_new_with_free_func (g_object_unref),
                  g_array_new (FALSE, FALSE, sizeof (gdouble)), position };
  for (guint i = position; i < n && i - position < MOST_AT_ONCE; i++)
    {
      GTorchGtkParameterRow *row = g_list_model_get_item (self->rows, i);

      g_ptr_array_add (work->rows, row);
      g_ptr_array_add (work->tensors, g_object_ref (gtorch_gtk_parameter_row_get_parameter (row)));
    }
  g_task_set_task_data (task, work, work_free);
  g_task_run_in_thread (task, compute_norms);
}

static void
stop_norms (GTorchGtkParameterList *self)
{
  if (self->cancellable != NULL)
    g_cancellable_cancel (self->cancellable);
  g_clear_object (&self->cancellable);
}

/* --- rows --- */

/* Replaces the rows that show what was: another name after a change before them, another shape or device. */
static void
refresh_rows (GTorchGtkParameterList *self)
{
  for (guint i = 0; self->rows != NULL && i < g_list_model_get_n_items (self->rows); i++)
    {
      g_autoptr (GTorchGtkParameterRow) row = g_list_model_get_item (self->rows, i);
      g_autoptr (GTorchGtkParameterRow) fresh =
          gtorch_gtk_parameter_row_new (gtorch_gtk_parameter_row_get_parameter (row));

      if (gtorch_gtk_parameter_row_equals (row, fresh))
        continue;
      stop_norms (self);
      g_list_store_splice (G_LIST_STORE (self->rows), i, 1, (gpointer *) &fresh, 1);
    }
}

/* A GtkMapListModel of GTK 4.8 puts rows that are added before others behind them. */
static void
members_changed (GTorchGtkParameterList *self, guint position, guint n_removed, guint n_added,
                 GListModel *members)
{
  g_autoptr (GPtrArray) added = g_ptr_array_new_with_free_func (g_object_unref);

  for (guint i = 0; i < n_added; i++)
    {
      g_autoptr (GTorchParameter) parameter = g_list_model_get_item (members, position + i);

      g_ptr_array_add (added, gtorch_gtk_parameter_row_new (parameter));
    }
  stop_norms (self);
  g_list_store_splice (G_LIST_STORE (self->rows), position, n_removed, added->pdata, n_added);
  gtorch_gtk_parameter_list_update (self);
}

static void
drop_rows (GTorchGtkParameterList *self)
{
  if (self->members != NULL)
    g_signal_handlers_disconnect_by_data (self->members, self);
  g_clear_object (&self->members);
  g_clear_object (&self->rows);
}

static gboolean
on_timeout (gpointer data)
{
  gtorch_gtk_parameter_list_update (data);
  return G_SOURCE_CONTINUE;
}

static void
set_timeout (GTorchGtkParameterList *self)
{
  const gboolean is_wanted = self->interval > 0 && gtk_widget_get_mapped (GTK_WIDGET (self));

  g_clear_handle_id (&self->timeout, g_source_remove);
  if (is_wanted)
    self->timeout = g_timeout_add (self->interval, on_timeout, self);
}

static void
gtorch_gtk_parameter_list_map (GtkWidget *widget)
{
  GTK_WIDGET_CLASS (gtorch_gtk_parameter_list_parent_class)->map (widget);
  set_timeout (GTORCH_GTK_PARAMETER_LIST (widget));
}

static void
gtorch_gtk_parameter_list_unmap (GtkWidget *widget)
{
  GTK_WIDGET_CLASS (gtorch_gtk_parameter_list_parent_class)->unmap (widget);
  set_timeout (GTORCH_GTK_PARAMETER_LIST (widget));
}

/* --- columns --- */

typedef struct
{
  const gchar *title, *property;
  gboolean is_number, is_wide;
} Column;

static const Column columns[] = {
  { N_ ("Name"), "name", FALSE, TRUE },    { N_ ("Shape"), "shape", TRUE, FALSE },
  { N_ ("Dtype"), "dtype", FALSE, FALSE }, { N_ ("Device"), "device", FALSE, FALSE },
  { N_ ("Norm"), "norm", TRUE, FALSE },
};

static void
set_up (GtkSignalListItemFactory *factory, GtkListItem *item, gpointer data)
{
  const Column *column = data;
  GtkWidget *label = gtorch_gtk_label_new (NULL, column->is_number ? "numeric" : NULL);

  gtk_label_set_xalign (GTK_LABEL (label), column->is_number ? 1 : 0);
  if (column->is_wide)
    gtk_label_set_ellipsize (GTK_LABEL (label), PANGO_ELLIPSIZE_MIDDLE);
  gtk_list_item_set_child (item, label);
}

static void
show_norm (GTorchGtkParameterRow *row, GParamSpec *pspec, GtkLabel *label)
{
  const gdouble norm = gtorch_gtk_parameter_row_get_norm (row);
  g_autofree gchar *text = isnan (norm) ? g_strdup ("…") : g_strdup_printf ("%.4g", norm);

  gtk_label_set_text (label, text);
}

static void
bind (GtkSignalListItemFactory *factory, GtkListItem *item, gpointer data)
{
  const Column *column = data;
  GTorchGtkParameterRow *row = gtk_list_item_get_item (item);
  GtkLabel *label = GTK_LABEL (gtk_list_item_get_child (item));
  g_autofree gchar *text = NULL;

  if (g_str_equal (column->property, "norm"))
    {
      g_signal_connect_object (row, "notify::norm", G_CALLBACK (show_norm), label, 0);
      show_norm (row, NULL, label);
      return;
    }
  g_object_get (row, column->property, &text, NULL);
  gtk_label_set_text (label, text);
  if (column->is_wide)
    gtk_widget_set_tooltip_text (GTK_WIDGET (label), text);
}

static void
unbind (GtkSignalListItemFactory *factory, GtkListItem *item, gpointer data)
{
  g_signal_handlers_disconnect_by_func (gtk_list_item_get_item (item), show_norm,
                                        gtk_list_item_get_child (item));
}

static void
add_columns (GTorchGtkParameterList *self)
{
  for (guint i = 0; i < G_N_ELEMENTS (columns); i++)
    {
      GtkListItemFactory *factory = gtk_signal_list_item_factory_new ();
      g_autoptr (GtkColumnViewColumn) column = NULL;

      g_signal_connect (factory, "setup", G_CALLBACK (set_up), (gpointer) &columns[i]);
      g_signal_connect (factory, "bind", G_CALLBACK (bind), (gpointer) &columns[i]);
      g_signal_connect (factory, "unbind", G_CALLBACK (unbind), (gpointer) &columns[i]);
      column = gtk_column_view_column_new (_ (columns[i].title), factory);
      gtk_column_view_column_set_expand (column, columns[i].is_wide);
      gtk_column_view_column_set_resizable (column, TRUE);
      gtk_column_view_append_column (GTK_COLUMN_VIEW (self->view), column);
    }
}

/* --- class --- */

static void
gtorch_gtk_parameter_list_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GTorchGtkParameterList *self = GTORCH_GTK_PARAMETER_LIST (object);

  if (id == PROP_MODULE)
    g_value_set_object (value, self->module);
  else if (id == PROP_INTERVAL)
    g_value_set_uint (value, self->interval);
  else if (id == PROP_ROWS)
    g_value_set_object (value, self->rows);
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

static void
gtorch_gtk_parameter_list_set_property (GObject *object, guint id, const GValue *value,
                                        GParamSpec *pspec)
{
  GTorchGtkParameterList *self = GTORCH_GTK_PARAMETER_LIST (object);

  if (id == PROP_MODULE)
    gtorch_gtk_parameter_list_set_module (self, g_value_get_object (value));
  else if (id == PROP_INTERVAL)
    gtorch_gtk_parameter_list_set_interval (self, g_value_get_uint (value));
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

static void
gtorch_gtk_parameter_list_dispose (GObject *object)
{
  GTorchGtkParameterList *self = GTORCH_GTK_PARAMETER_LIST (object);

  stop_norms (self);
  g_clear_handle_id (&self->timeout, g_source_remove);
  g_clear_pointer (&self->window, gtk_widget_unparent);
  self->view = NULL;
  drop_rows (self);
  g_clear_object (&self->module);
  G_OBJECT_CLASS (gtorch_gtk_parameter_list_parent_class)->dispose (object);
}

static void
gtorch_gtk_parameter_list_class_init (GTorchGtkParameterListClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  object_class->get_property = gtorch_gtk_parameter_list_get_property;
  object_class->set_property = gtorch_gtk_parameter_list_set_property;
  object_class->dispose = gtorch_gtk_parameter_list_dispose;
  widget_class->map = gtorch_gtk_parameter_list_map;
  widget_class->unmap = gtorch_gtk_parameter_list_unmap;
  /**
   * GTorchGtkParameterList:module:
   *
   * The module whose parameters are listed.
   *
   * Since: 0.1
   */
  props[PROP_MODULE] =
      g_param_spec_object ("module", NULL, NULL, GTORCH_TYPE_MODULE, GTORCH_GTK_PARAM_FLAGS);
  /**
   * GTorchGtkParameterList:interval:
   *
   * The milliseconds after which norms are computed again while the table is seen; 0: they are not.
   *
   * Since: 0.1
   */
  props[PROP_INTERVAL] =
      g_param_spec_uint ("interval", NULL, NULL, 0, G_MAXINT, 0, GTORCH_GTK_PARAM_FLAGS);
  /**
   * GTorchGtkParameterList:rows:
   *
   * A list of [class@ParameterRow].
   *
   * Since: 0.1
   */
  props[PROP_ROWS] =
      g_param_spec_object ("rows", NULL, NULL, G_TYPE_LIST_MODEL, GTORCH_GTK_PARAM_READ);
  g_object_class_install_properties (object_class, N_PROPS, props);
  gtk_widget_class_set_css_name (widget_class, "parameters");
  gtk_widget_class_set_layout_manager_type (widget_class, GTK_TYPE_BIN_LAYOUT);
  gtk_widget_class_set_accessible_role (widget_class, GTK_ACCESSIBLE_ROLE_GROUP);
}

static void
gtorch_gtk_parameter_list_init (GTorchGtkParameterList *self)
{
  self->window = gtk_scrolled_window_new ();
  self->view = gtk_column_view_new (NULL);
  gtk_column_view_set_show_row_separators (GTK_COLUMN_VIEW (self->view), TRUE);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->view), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Parameters"), -1);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (self->window), self->view);
  gtk_widget_set_hexpand (self->window, TRUE);
  gtk_widget_set_vexpand (self->window, TRUE);
  gtk_widget_set_parent (self->window, GTK_WIDGET (self));
  add_columns (self);
}

/**
 * gtorch_gtk_parameter_list_new:
 * @module: (nullable): the module, or %NULL
 *
 * Creates a table of parameters.
 *
 * Returns: (transfer floating): a new widget
 *
 * Since: 0.1
 */
GtkWidget *
gtorch_gtk_parameter_list_new (GTorchModule *module)
{
  g_return_val_if_fail (module == NULL || GTORCH_IS_MODULE (module), NULL);
  return g_object_new (GTORCH_GTK_TYPE_PARAMETER_LIST, "module", module, NULL);
}

/**
 * gtorch_gtk_parameter_list_get_module: (get-property module)
 * @self: a table of parameters
 *
 * Gets the module whose parameters are listed.
 *
 * Returns: (transfer none) (nullable): the module, or %NULL
 *
 * Since: 0.1
 */
GTorchModule *
gtorch_gtk_parameter_list_get_module (GTorchGtkParameterList *self)
{
  g_return_val_if_fail (GTORCH_GTK_IS_PARAMETER_LIST (self), NULL);
  return self->module;
}

/**
 * gtorch_gtk_parameter_list_set_module: (set-property module)
 * @self: a table of parameters
 * @module: (nullable): the module, or %NULL
 *
 * Lists the parameters of a module.
 *
 * Since: 0.1
 */
void
gtorch_gtk_parameter_list_set_module (GTorchGtkParameterList *self, GTorchModule *module)
{
  g_return_if_fail (GTORCH_GTK_IS_PARAMETER_LIST (self));
  g_return_if_fail (module == NULL || GTORCH_IS_MODULE (module));
  if (self->module == module)
    return;
  stop_norms (self);
  drop_rows (self);
  g_set_object (&self->module, module);
  if (module != NULL)
    {
      g_autoptr (GtkSelectionModel) selection = NULL;

      self->members = gtorch_member_model_new (module, GTORCH_MEMBER_KIND_PARAMETER, TRUE);
      self->rows = G_LIST_MODEL (g_list_store_new (GTORCH_GTK_TYPE_PARAMETER_ROW));
      g_signal_connect_swapped (self->members, "items-changed", G_CALLBACK (members_changed), self);
      members_changed (self, 0, 0, g_list_model_get_n_items (G_LIST_MODEL (self->members)),
                       G_LIST_MODEL (self->members));
      selection = GTK_SELECTION_MODEL (gtk_no_selection_new (g_object_ref (self->rows)));
      if (self->view != NULL) /* it is not disposed */
        gtk_column_view_set_model (GTK_COLUMN_VIEW (self->view), selection);
    }
  else if (self->view != NULL)
    gtk_column_view_set_model (GTK_COLUMN_VIEW (self->view), NULL);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_MODULE]);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_ROWS]);
}

/**
 * gtorch_gtk_parameter_list_get_interval: (get-property interval)
 * @self: a table of parameters
 *
 * Gets the time after which norms are computed again.
 *
 * Returns: the time in milliseconds; 0: they are not
 *
 * Since: 0.1
 */
guint
gtorch_gtk_parameter_list_get_interval (GTorchGtkParameterList *self)
{
  g_return_val_if_fail (GTORCH_GTK_IS_PARAMETER_LIST (self), 0);
  return self->interval;
}

/**
 * gtorch_gtk_parameter_list_set_interval: (set-property interval)
 * @self: a table of parameters
 * @interval: the time in milliseconds; 0: norms are not computed again
 *
 * Sets the time after which norms are computed again while the table is seen.
 *
 * Since: 0.1
 */
void
gtorch_gtk_parameter_list_set_interval (GTorchGtkParameterList *self, guint interval)
{
  g_return_if_fail (GTORCH_GTK_IS_PARAMETER_LIST (self));
  if (self->interval == interval)
    return;
  self->interval = interval;
  set_timeout (self);
  g_object_notify_by_pspec (G_OBJECT (self), props[PROP_INTERVAL]);
}

/**
 * gtorch_gtk_parameter_list_get_rows: (get-property rows)
 * @self: a table of parameters
 *
 * Gets the rows.
 *
 * Returns: (transfer none) (nullable): a list of [class@ParameterRow], or %NULL without a module
 *
 * Since: 0.1
 */
GListModel *
gtorch_gtk_parameter_list_get_rows (GTorchGtkParameterList *self)
{
  g_return_val_if_fail (GTORCH_GTK_IS_PARAMETER_LIST (self), NULL);
  return self->rows;
}

/**
 * gtorch_gtk_parameter_list_update:
 * @self: a table of parameters
 *
 * Compares the rows with the parameters, and begins to compute all norms again, unless that goes on.
 *
 * Since: 0.1
 */
void
gtorch_gtk_parameter_list_update (GTorchGtkParameterList *self)
{
  g_return_if_fail (GTORCH_GTK_IS_PARAMETER_LIST (self));
  if (self->members != NULL)
    gtorch_member_model_update (self->members);
  refresh_rows (self);
  if (self->cancellable != NULL)
    return;
  self->cancellable = g_cancellable_new ();
  begin_norms (self, 0);
}
