/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Checks of what a graph may contain, and of when it may be replayed. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "base/gtorch-check-private.h"
#include "graph/gtorch-graph-exec-private.h"
#include "tensor/gtorch-tensor-private.h"

/* --- work that the library did not launch --- */

typedef struct
{
  GTorchGraphExec *exec;
  GHashTable *inputs;
} Kept;

static gboolean
has_address (const GTorchImpl *impl, guint64 address)
{
  return impl != NULL && impl->storage != NULL
         && address - (guint64) (guintptr) impl->storage->data < impl->storage->n_bytes;
}

static gboolean
exec_keeps (const GTorchGraphExec *exec, guint64 address)
{
  guint i, j;

  for (i = 0; i < exec->nodes->len; i++)
    {
      const GTorchGraphNode *node = exec->nodes->pdata[i];

      if (node->child != NULL)
        {
          if (has_address (node->predicate, address) || exec_keeps (node->child, address))
            return TRUE;
          continue;
        }
      for (j = 0; j < node->call->call.n_inputs; j++)
        if (has_address (node->call->inputs[j], address))
          return TRUE;
      for (j = 0; j < node->call->call.n_outputs; j++)
        if (has_address (node->call->call.outputs[j], address))
          return TRUE;
    }
  return FALSE;
}

static gboolean
is_kept (guint64 address, gpointer data)
{
  Kept *kept = data;
  GHashTableIter iter;
  gpointer tensor;

  g_hash_table_iter_init (&iter, kept->inputs);
  while (g_hash_table_iter_next (&iter, NULL, &tensor))
    if (has_address (gtorch_tensor_unwrap (tensor), address))
      return TRUE;
  return exec_keeps (kept->exec, address);
}

gboolean
gtorch_graph_exec_audit (GTorchGraphExec *exec, GHashTable *inputs, gboolean is_relaxed,
                         gchar **notes, GError **error)
{
  Kept kept = { exec, inputs };
  GTorchForeignNodes found = { 0 };
  gboolean result;

  if (exec->native == NULL)
    return TRUE;
  found.names = g_string_new (NULL);
  result = exec->backend->audit (exec->native, exec->pool, is_kept, &kept, &found, error);
  exec->n_foreign += found.n;
  if (result && found.is_lost && !is_relaxed)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                   _ ("graph: %s, which the library did not launch, uses memory at "
                      "0x%" PRIx64
                      " that belongs to no tensor, and every replay would: keep the tensor, and "
                      "make it an input of the graph"),
                   found.user, found.address);
      result = FALSE;
    }
  else if (result && found.user != NULL)
    {
      g_autofree gchar *where = NULL;
      GTorchSite site;

      gtorch_site_take (&site);
      where = gtorch_site_to_string (&site);
      *notes =
          g_strdup_printf ("graph: %s, which the library did not launch, uses memory at "
                           "0x%" G_GINT64_MODIFIER "x %s, "
                           "which the graph does not keep: make the tensor an input of the graph; "
                           "called from %s",
                           found.user, found.address,
                           found.is_lost ? "that belongs to no tensor" : "that belongs to a tensor",
                           where);
    }
  else if (result && found.n > 0 && gtorch_is_checking (GTORCH_CHECK_GRAPH))
    *notes = g_strdup_printf ("graph: %u of its nodes were captured without the library: %s",
                              found.n, found.names->str);
  g_string_free (found.names, TRUE);
  g_free (found.user);
  return result;
}

/* --- order of graphs that share a pool --- */

static void
find_first (GTorchPool *pool)
{
  if (pool->graphs->len > 0)
    __atomic_store_n (&pool->first, g_array_index (pool->graphs, guint, 0), __ATOMIC_RELAXED);
}

void
gtorch_graph_exec_take_number (GTorchGraphExec *exec)
{
  GTorchPool *pool = exec->pool;

  g_mutex_lock (&pool->lock);
  if (pool->graphs == NULL)
    pool->graphs = g_array_new (FALSE, FALSE, sizeof (guint));
  exec->number = ++pool->last_number;
  g_array_append_val (pool->graphs, exec->number);
  find_first (pool);
  g_mutex_unlock (&pool->lock);
}

void
gtorch_graph_exec_drop_number (GTorchGraphExec *exec)
{
  GTorchPool *pool = exec->pool;
  guint i;

  g_mutex_lock (&pool->lock);
  for (i = 0; i < pool->graphs->len; i++)
    if (g_array_index (pool->graphs, guint, i) == exec->number)
      {
        g_array_remove_index (pool->graphs, i);
        break;
      }
  find_first (pool);
  g_mutex_unlock (&pool->lock);
}

gboolean
gtorch_graph_exec_check_order (GTorchGraphExec *exec, GError **error)
{
  GTorchPool *pool = exec->pool;
  const guint number = exec->number;
  const guint first = __atomic_load_n (&pool->first, __ATOMIC_RELAXED);
  const guint before = __atomic_load_n (&pool->last_replayed, __ATOMIC_RELAXED);

  if (!g_atomic_int_get (&pool->check_order))
    return TRUE;
  if (number == first || (before != 0 && number >= before))
    {
      /* Concurrent replays have no order, so none can be out of order. */
      __atomic_store_n (&pool->last_replayed, number, __ATOMIC_RELAXED);
      return TRUE;
    }
  if (before == 0)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("graph: graph %u of pool %" PRIu64 " is replayed before graph %u was: "
                    "graphs that share memory run in the order of their captures, from the first "
                    "on"),
                 number, pool->id, first);
  else
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("graph: graph %u of pool %" PRIu64 " is replayed after graph %u, whose "
                    "results it overwrites: graphs that share memory run in the order of their "
                    "captures, and then from graph %u on again"),
                 number, pool->id, before, first);
  return FALSE;
}
