/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_STORE (gtorch_store_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_DERIVABLE_TYPE (GTorchStore, gtorch_store, GTORCH, STORE, GObject)

/**
 * GTorchStoreClass:
 * @parent_class: the parent class
 *
 * The virtual functions of a store are the library's own.
 *
 * Since: 0.1
 */
struct _GTorchStoreClass
{
  GObjectClass parent_class;

  /*< private >*/
  gpointer run;
  gpointer padding[4];
};

GTORCH_AVAILABLE_IN_0_1
gdouble gtorch_store_get_timeout (GTorchStore *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_store_set_timeout (GTorchStore *self, gdouble timeout, GError **error);

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_store_set (GTorchStore *self, const gchar *key, GBytes *value,
                           GCancellable *cancellable, GError **error);
GTORCH_AVAILABLE_IN_0_1
GBytes *gtorch_store_get (GTorchStore *self, const gchar *key, GCancellable *cancellable,
                          GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_store_append (GTorchStore *self, const gchar *key, GBytes *value,
                              GCancellable *cancellable, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_store_add (GTorchStore *self, const gchar *key, gint64 amount, gint64 *sum,
                           GCancellable *cancellable, GError **error);
GTORCH_AVAILABLE_IN_0_1
GBytes *gtorch_store_compare_set (GTorchStore *self, const gchar *key, GBytes *expected,
                                  GBytes *desired, GCancellable *cancellable,
                                  GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_store_wait (GTorchStore *self, const gchar *const *keys, gdouble timeout,
                            GCancellable *cancellable, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_store_check (GTorchStore *self, const gchar *const *keys, gboolean *are_there,
                             GCancellable *cancellable, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_store_delete_key (GTorchStore *self, const gchar *key, gboolean *was_there,
                                  GCancellable *cancellable, GError **error);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_store_count_keys (GTorchStore *self, gint64 *n_keys, GCancellable *cancellable,
                                  GError **error);

G_END_DECLS
