/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/base/gtorch-error.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_LOG (gtorch_log_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_DERIVABLE_TYPE (GTorchLog, gtorch_log, GTORCH, LOG, GObject)

/**
 * GTorchLogClass:
 * @parent_class: the parent class
 *
 * The virtual functions of a log. A [class@Trainer] calls them in its thread.
 *
 * Since: 0.1
 */
struct _GTorchLogClass
{
  GObjectClass parent_class;

  /**
   * GTorchLogClass::write:
   * @self: a log
   * @step: the step that the numbers belong to
   * @names: (array zero-terminated=1): the names of the numbers
   * @values: (array length=n_values): the numbers
   * @n_values: the length of @values, which is that of @names
   * @error: return location for an error
   *
   * Writes numbers.
   *
   * Returns: %TRUE, or %FALSE with @error set
   *
   * Since: 0.1
   */
  gboolean (*write) (GTorchLog *self, gint64 step, const gchar *const *names, const gdouble *values,
                     gsize n_values, GError **error);
  /**
   * GTorchLogClass::flush:
   * @self: a log
   * @error: return location for an error
   *
   * Gives what was written to the system.
   *
   * Returns: %TRUE, or %FALSE with @error set
   *
   * Since: 0.1
   */
  gboolean (*flush) (GTorchLog *self, GError **error);
  /**
   * GTorchLogClass::close:
   * @self: a log
   * @error: return location for an error
   *
   * Ends the log.
   *
   * Returns: %TRUE, or %FALSE with @error set
   *
   * Since: 0.1
   */
  gboolean (*close) (GTorchLog *self, GError **error);

  /*< private >*/
  gpointer padding[5];
};

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_log_write (GTorchLog *self, gint64 step, const gchar *const *names,
                           const gdouble *values, gsize n_values, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_log_flush (GTorchLog *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_log_close (GTorchLog *self, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_log_is_closed (GTorchLog *self);

G_END_DECLS
