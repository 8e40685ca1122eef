/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "distributed/gtorch-prefix-store.h"

#include "base/gtorch-field-private.h"
#include "distributed/gtorch-store-private.h"

/**
 * GTorchPrefixStore:
 *
 * The keys of another store that begin with a prefix and a slash.
 *
 * Two groups of processes, or the parts of a program, may so have the same keys in one store.
 *
 * ```c
 * g_autoptr (GTorchPrefixStore) part = gtorch_prefix_store_new ("losses", store);
 *
 * gtorch_store_set (GTORCH_STORE (part), "first", value, NULL, &error); // the key “losses/first”
 * ```
 *
 * Since: 0.1
 */

struct _GTorchPrefixStore
{
  GTorchStore parent_instance;
  gchar *prefix;
  GTorchStore *store;
};

G_DEFINE_TYPE (GTorchPrefixStore, gtorch_prefix_store, GTORCH_TYPE_STORE)

typedef GTorchPrefixStore Self;

static const GTorchField fields[] = {
  /**
   * GTorchPrefixStore:prefix:
   *
   * What the keys begin with.
   *
   * Since: 0.1
   */
  { "prefix", GTORCH_FIELD_STRING, GTORCH_FIELD (Self, prefix), .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchPrefixStore:store:
   *
   * The store that has the keys.
   *
   * Since: 0.1
   */
  { "store", GTORCH_FIELD_OBJECT, GTORCH_FIELD (Self, store), .type = gtorch_store_get_type,
    .flags = GTORCH_FIELD_FIXED },
};

static gboolean
gtorch_prefix_store_run (GTorchStore *store, const GTorchStoreRequest *request, gint64 deadline,
                         GTorchStoreReply *reply, GCancellable *cancellable, GError **error)
{
  GTorchPrefixStore *self = GTORCH_PREFIX_STORE (store);
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();
  g_auto (GStrv) keys = NULL;
  GTorchStoreRequest inner = *request;
  guint i;

  /* made by g_object_new () without properties */
  if (self->store == NULL)
    return gtorch_store_refuse_incomplete (store, request, error);
  for (i = 0; request->keys[i] != NULL; i++)
    {
      g_autofree gchar *key =
          g_strconcat (self->prefix != NULL ? self->prefix : "", "/", request->keys[i], NULL);

      g_strv_builder_add (builder, key);
    }
  keys = g_strv_builder_end (builder);
  inner.keys = (const gchar *const *) keys;
  return gtorch_store_run (self->store, &inner, deadline, reply, cancellable, error);
}

static void
gtorch_prefix_store_finalize (GObject *object)
{
  gtorch_fields_clear (object, fields, G_N_ELEMENTS (fields));
  G_OBJECT_CLASS (gtorch_prefix_store_parent_class)->finalize (object);
}

static void
gtorch_prefix_store_class_init (GTorchPrefixStoreClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_prefix_store_finalize;
  GTORCH_STORE_CLASS (klass)->run = gtorch_prefix_store_run;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_prefix_store_init (GTorchPrefixStore *self)
{
}

/**
 * gtorch_prefix_store_new:
 * @prefix: what the keys begin with
 * @store: the store that has the keys
 *
 * Creates a store that has a part of another's keys. It waits for as long as @store does unless its
 * [property@Store:timeout] is set.
 *
 * Returns: (transfer full): a new store
 *
 * Since: 0.1
 */
GTorchPrefixStore *
gtorch_prefix_store_new (const gchar *prefix, GTorchStore *store)
{
  g_return_val_if_fail (prefix != NULL && GTORCH_IS_STORE (store), NULL);
  return g_object_new (GTORCH_TYPE_PREFIX_STORE, "prefix", prefix, "store", store, "timeout",
                       gtorch_store_get_timeout (store), NULL);
}

/**
 * gtorch_prefix_store_get_prefix:
 * @self: a store
 *
 * Gets what the keys begin with.
 *
 * Returns: (nullable): the prefix
 *
 * Since: 0.1
 */
const gchar *
gtorch_prefix_store_get_prefix (GTorchPrefixStore *self)
{
  g_return_val_if_fail (GTORCH_IS_PREFIX_STORE (self), NULL);
  return self->prefix;
}

/**
 * gtorch_prefix_store_get_store:
 * @self: a store
 *
 * Gets the store that has the keys.
 *
 * Returns: (transfer none) (nullable): the store
 *
 * Since: 0.1
 */
GTorchStore *
gtorch_prefix_store_get_store (GTorchPrefixStore *self)
{
  g_return_val_if_fail (GTORCH_IS_PREFIX_STORE (self), NULL);
  return self->store;
}
