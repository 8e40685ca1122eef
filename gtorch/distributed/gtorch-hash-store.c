/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "distributed/gtorch-hash-store.h"

#include "base/gtorch-wake-private.h"
#include "distributed/gtorch-store-private.h"

/**
 * GTorchHashStore:
 *
 * A store in the memory of the process, for its threads.
 *
 * Since: 0.1
 */

struct _GTorchHashStore
{
  GTorchStore parent_instance;
  GMutex lock;
  GCond changed;
  GTorchStoreTable *table;
};

G_DEFINE_TYPE (GTorchHashStore, gtorch_hash_store, GTORCH_TYPE_STORE)

static gboolean
gtorch_hash_store_run (GTorchStore *store, const GTorchStoreRequest *request, gint64 deadline,
                       GTorchStoreReply *reply, GCancellable *cancellable, GError **error)
{
  GTorchHashStore *self = GTORCH_HASH_STORE (store);
  GTorchStoreAnswer answer;
  GTorchWake wake;

  gtorch_wake_begin (&wake, cancellable, &self->lock, &self->changed);
  g_mutex_lock (&self->lock);
  for (;;)
    {
      answer = gtorch_store_table_apply (self->table, request, reply, error);
      if (answer != GTORCH_STORE_PENDING
          || g_cancellable_set_error_if_cancelled (cancellable, error))
        break;
      if (deadline == G_MAXINT64)
        g_cond_wait (&self->changed, &self->lock);
      else if (!g_cond_wait_until (&self->changed, &self->lock, deadline))
        {
          answer = gtorch_store_table_apply (self->table, request, reply, error);
          if (answer == GTORCH_STORE_PENDING)
            gtorch_store_timed_out (request, error);
          break;
        }
    }
  if (answer == GTORCH_STORE_ANSWERED && gtorch_store_command_changes (request->command))
    g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  gtorch_wake_end (&wake);
  return answer == GTORCH_STORE_ANSWERED;
}

static void
gtorch_hash_store_finalize (GObject *object)
{
  GTorchHashStore *self = GTORCH_HASH_STORE (object);

  gtorch_store_table_free (self->table);
  g_cond_clear (&self->changed);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (gtorch_hash_store_parent_class)->finalize (object);
}

static void
gtorch_hash_store_class_init (GTorchHashStoreClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_hash_store_finalize;
  GTORCH_STORE_CLASS (klass)->run = gtorch_hash_store_run;
}

static void
gtorch_hash_store_init (GTorchHashStore *self)
{
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
  self->table = gtorch_store_table_new ();
}

/**
 * gtorch_hash_store_new:
 *
 * Creates a store without keys.
 *
 * Returns: (transfer full): a new store
 *
 * Since: 0.1
 */
GTorchHashStore *
gtorch_hash_store_new (void)
{
  return g_object_new (GTORCH_TYPE_HASH_STORE, NULL);
}
