/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Executable graphs: the results of captures, and their replay. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "device/gtorch-generator-private.h"
#include "graph/gtorch-graph-exec-private.h"
#include "dispatch/gtorch-saved-call-private.h"

GTorchGraphNode *
gtorch_graph_node_new (void)
{
  GTorchGraphNode *node = g_new0 (GTorchGraphNode, 1);

  node->ref_count = 1;
  return node;
}

void
gtorch_graph_node_unref (gpointer data)
{
  GTorchGraphNode *node = data;

  if (!g_atomic_int_dec_and_test (&node->ref_count))
    return;
  g_clear_pointer (&node->call, gtorch_saved_call_free);
  g_clear_pointer (&node->child, gtorch_graph_exec_unref);
  g_clear_pointer (&node->predicate, gtorch_impl_unref);
  g_free (node);
}

GTorchGraphExec *
gtorch_graph_exec_new (GTorchDevice *device, GTorchPool *pool)
{
  GTorchGraphExec *exec = g_new0 (GTorchGraphExec, 1);

  exec->ref_count = 1;
  exec->device = device;
  exec->pool = gtorch_pool_ref (pool);
  gtorch_pool_set_graph (pool, TRUE);
  exec->nodes = g_ptr_array_new_with_free_func (gtorch_graph_node_unref);
  exec->written = g_ptr_array_new ();
  exec->read = g_ptr_array_new ();
  exec->peers = g_ptr_array_new ();
  exec->needed = g_ptr_array_new ();
  return exec;
}

static void
part_clear (gpointer data)
{
  GTorchGraphPart *part = data;

  gtorch_pool_set_graph (part->pool, FALSE);
  gtorch_pool_unref (part->pool);
}

void
gtorch_graph_exec_add_part (GTorchGraphExec *exec, GTorchPool *pool, guint capture)
{
  const GTorchGraphPart part = { gtorch_pool_ref (pool), capture };

  gtorch_pool_set_graph (pool, TRUE);
  if (exec->parts == NULL)
    {
      exec->parts = g_array_new (FALSE, FALSE, sizeof (GTorchGraphPart));
      g_array_set_clear_func (exec->parts, part_clear);
    }
  g_array_append_val (exec->parts, part);
}

gboolean
gtorch_graph_exec_check_whole (GTorchGraphExec *exec, const gchar *what, GError **error)
{
  const GTorchGraphPart *part = gtorch_graph_exec_nth_part (exec, 0);

  if (part == NULL)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
               _ ("graph: streams of %s and %s took part in its capture: %s"),
               gtorch_device_name (exec->device), gtorch_device_name (part->pool->device), what);
  return FALSE;
}

GTorchGraphExec *
gtorch_graph_exec_ref (GTorchGraphExec *exec)
{
  g_atomic_int_inc (&exec->ref_count);
  return exec;
}

/* Frees the graph; called when no replay uses it any more. */
static void
graph_exec_free (gpointer data)
{
  GTorchGraphExec *exec = data;

  gtorch_notes_free (&exec->notes);
  g_clear_pointer (&exec->parties, g_ptr_array_unref);
  g_ptr_array_unref (exec->nodes);
  g_ptr_array_unref (exec->written);
  g_ptr_array_unref (exec->read);
  g_ptr_array_unref (exec->peers);
  g_ptr_array_unref (exec->needed);
  g_clear_pointer (&exec->pools, g_ptr_array_unref);
  g_clear_pointer (&exec->parts, g_array_unref);
  gtorch_pool_set_graph (exec->pool, FALSE);
  gtorch_pool_unref (exec->pool);
  if (exec->scratch != NULL)
    gtorch_pool_set_graph (exec->scratch, FALSE);
  g_clear_pointer (&exec->scratch, gtorch_pool_unref);
  g_free (exec);
}

void
gtorch_graph_exec_unref (GTorchGraphExec *exec)
{
  if (!g_atomic_int_dec_and_test (&exec->ref_count))
    return;
  if (exec->native != NULL)
    exec->backend->free (exec->native, graph_exec_free, exec);
  else
    graph_exec_free (exec);
}

guint
gtorch_graph_exec_get_n_nodes (GTorchGraphExec *exec)
{
  return exec->nodes->len;
}

guint
gtorch_graph_exec_get_n_foreign (GTorchGraphExec *exec)
{
  return exec->n_foreign;
}

static void
add_once (GPtrArray *array, GHashTable *known, GTorchImpl *impl)
{
  /* Memory of a pool has no writer of its own; the pool has one. */
  if (impl != NULL && !impl->is_number && !gtorch_pool_is_memory (impl->storage)
      && g_hash_table_add (known, impl->storage))
    g_ptr_array_add (array, impl->storage);
}

static void
find_operands (GTorchGraphExec *exec)
{
  g_autoptr (GHashTable) written = g_hash_table_new (NULL, NULL);
  g_autoptr (GHashTable) read = g_hash_table_new (NULL, NULL);
  guint i, j;

  if (exec->has_operands)
    return;
  exec->has_operands = TRUE;
  for (i = 0; i < exec->nodes->len; i++)
    {
      GTorchGraphNode *node = exec->nodes->pdata[i];

      if (node->child != NULL)
        {
          find_operands (node->child);
          add_once (exec->read, read, node->predicate);
          for (j = 0; j < node->child->written->len; j++)
            if (g_hash_table_add (written, node->child->written->pdata[j]))
              g_ptr_array_add (exec->written, node->child->written->pdata[j]);
          for (j = 0; j < node->child->read->len; j++)
            if (g_hash_table_add (read, node->child->read->pdata[j]))
              g_ptr_array_add (exec->read, node->child->read->pdata[j]);
          continue;
        }
      for (j = 0; j < node->call->call.n_outputs; j++)
        add_once (exec->written, written, node->call->call.outputs[j]);
      for (j = 0; gtorch_call_takes_values (&node->call->call) && j < node->call->call.n_inputs;
           j++)
        {
          if (gtorch_call_writes (&node->call->call, j))
            add_once (exec->written, written, node->call->inputs[j]);
          add_once (exec->read, read, node->call->inputs[j]);
        }
    }
}

/* What a graph has computed so far when its nodes run in their order. */
typedef struct
{
  GPtrArray *graphs; /* of GTorchGraphExec: it and the graphs that were replayed in its capture */
  GHashTable *overwritten; /* addresses of memory, all of which it has written */
} Computed;

/* Returns whether the capture with this number in the pool was that of the graph. */
static gboolean
is_of_graph (const GTorchGraphExec *exec, const GTorchPool *pool, guint capture)
{
  const GTorchGraphPart *part;
  guint i;

  if (exec->pool == pool && exec->capture == capture)
    return TRUE;
  for (i = 0; (part = gtorch_graph_exec_nth_part (exec, i)) != NULL; i++)
    if (part->pool == pool && part->capture == capture)
      return TRUE;
  return FALSE;
}

static gboolean
is_computed (const Computed *computed, const GTorchImpl *impl)
{
  guint capture, i;
  GTorchPool *pool = gtorch_pool_get_capture (impl->storage, &capture);

  if (pool == NULL || g_hash_table_contains (computed->overwritten, impl->storage->data))
    return TRUE;
  for (i = 0; i < computed->graphs->len; i++)
    if (is_of_graph (computed->graphs->pdata[i], pool, capture))
      return TRUE;
  return FALSE;
}

static void
find_needed_by (GTorchGraphExec *exec, const GTorchImpl *impl, const Computed *computed)
{
  if (impl != NULL && !impl->is_number && !is_computed (computed, impl))
    g_ptr_array_add (exec->needed, (gpointer) impl);
}

/* A node of a branch may not run, so what it overwrites does not count. */
static void
find_needed (GTorchGraphExec *exec, const GTorchGraphExec *part, gboolean is_sure,
             Computed *computed)
{
  guint i, j;

  for (i = 0; i < part->nodes->len; i++)
    {
      const GTorchGraphNode *node = part->nodes->pdata[i];
      const GTorchOpCall *call;

      if (node->child != NULL)
        {
          find_needed_by (exec, node->predicate, computed);
          g_ptr_array_add (computed->graphs, node->child);
          find_needed (exec, node->child, is_sure && node->predicate == NULL, computed);
          continue;
        }
      call = &node->call->call;
      for (j = 0; j < call->n_inputs; j++)
        if (gtorch_call_overwrites (call, j))
          {
            if (is_sure)
              g_hash_table_add (computed->overwritten, call->inputs[j]->storage->data);
          }
        else if (gtorch_call_takes_values (call))
          find_needed_by (exec, call->inputs[j], computed);
    }
}

static void
find_all_needed (GTorchGraphExec *exec)
{
  g_autoptr (GPtrArray) graphs = g_ptr_array_new ();
  g_autoptr (GHashTable) overwritten = g_hash_table_new (NULL, NULL);
  Computed computed = { graphs, overwritten };

  g_ptr_array_add (graphs, exec);
  find_needed (exec, exec, TRUE, &computed);
}

/* Fails if the graph reads results of another graph that was never replayed. */
static G_GNUC_NO_INLINE gboolean
check_needed (GTorchGraphExec *exec, GError **error)
{
  guint i;

  for (i = 0; i < exec->needed->len; i++)
    {
      const GTorchImpl *impl = exec->needed->pdata[i];

      if (!gtorch_pool_is_promised (impl->storage))
        continue;
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                   _ ("graph: it reads a tensor of shape %s that was not computed: the graph that "
                      "computes it was never replayed"),
                   gtorch_impl_shape_str (impl));
      return FALSE;
    }
  return TRUE;
}

static void
add_pool (GPtrArray *pools, GTorchPool *pool)
{
  if (!g_ptr_array_find (pools, pool, NULL))
    g_ptr_array_add (pools, pool);
}

static void
add_pools (GTorchGraphExec *exec, GPtrArray *pools)
{
  const GTorchGraphPart *part;
  guint i;

  add_pool (pools, exec->pool);
  for (i = 0; (part = gtorch_graph_exec_nth_part (exec, i)) != NULL; i++)
    add_pool (pools, part->pool);
  for (i = 0; exec->has_children && i < exec->nodes->len; i++)
    {
      GTorchGraphNode *node = exec->nodes->pdata[i];

      if (node->child != NULL)
        add_pools (node->child, pools);
    }
}

static gint
compare_pools (gconstpointer a, gconstpointer b)
{
  const GTorchPool *first = *(GTorchPool *const *) a, *second = *(GTorchPool *const *) b;

  return first->id < second->id ? -1 : first->id > second->id;
}

static void
find_pools (GTorchGraphExec *exec)
{
  GPtrArray *pools = g_ptr_array_new ();

  add_pools (exec, pools);
  if (pools->len == 1)
    {
      g_ptr_array_unref (pools);
      return;
    }
  g_ptr_array_sort (pools, compare_pools);
  exec->pools = pools;
}

/* Locks the pools of the graph, since only one replay at a time may use a pool. */
static void
lock_pools (GTorchGraphExec *exec)
{
  guint i;

  for (i = 0; i < gtorch_graph_exec_n_pools (exec); i++)
    g_mutex_lock (&gtorch_graph_exec_nth_pool (exec, i)->run_lock);
}

static void
unlock_pools (GTorchGraphExec *exec)
{
  guint i;

  for (i = gtorch_graph_exec_n_pools (exec); i > 0; i--)
    g_mutex_unlock (&gtorch_graph_exec_nth_pool (exec, i - 1)->run_lock);
}

static void
add_peer (GTorchGraphExec *exec, GTorchDevice *device)
{
  if (device != exec->device && !gtorch_device_is_host (device)
      && !g_ptr_array_find (exec->peers, device, NULL))
    g_ptr_array_add (exec->peers, device);
}

static void
find_peers (GTorchGraphExec *exec)
{
  guint i;

  for (i = 0; i < exec->read->len; i++)
    add_peer (exec, ((GTorchStorage *) exec->read->pdata[i])->device);
  for (i = 0; i < exec->written->len; i++)
    add_peer (exec, ((GTorchStorage *) exec->written->pdata[i])->device);
  for (i = 0; i < gtorch_graph_exec_n_pools (exec); i++)
    add_peer (exec, gtorch_graph_exec_nth_pool (exec, i)->device);
}

static G_GNUC_NO_INLINE gboolean
meet_each_peer (GTorchGraphExec *exec, GTorchStream *stream, gboolean is_after, GError **error)
{
  guint i;

  for (i = 0; i < exec->peers->len; i++)
    {
      GTorchStream *other = gtorch_stream_get_current (exec->peers->pdata[i]);

      if (gtorch_stream_is_capturing (other))
        { /* waiting for it, the replay would become part of that capture */
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                       _ ("graph: a replay works on %s, too, and the current stream there, %p, "
                          "captures another graph"),
                       gtorch_device_name (other->device), other);
          return FALSE;
        }
      if (!(is_after ? gtorch_stream_wait_stream (other, stream, error)
                     : gtorch_stream_wait_stream (stream, other, error)))
        return FALSE;
    }
  return TRUE;
}

/* Orders a replay after the current streams of other devices that it works on, or copies from or to, or,
 * afterwards, these after the replay, as such a copy outside of graphs would. */
static inline gboolean
meet_peers (GTorchGraphExec *exec, GTorchStream *stream, gboolean is_after, GError **error)
{
  return G_LIKELY (exec->peers->len == 0) || meet_each_peer (exec, stream, is_after, error);
}

gboolean
gtorch_graph_exec_prepare (GTorchGraphExec *exec, GError **error)
{
  if (exec->is_prepared)
    return TRUE;
  if (exec->native != NULL && !exec->backend->prepare (exec->native, error))
    return FALSE;
  find_operands (exec);
  find_all_needed (exec);
  find_pools (exec);
  find_peers (exec);
  exec->is_prepared = TRUE;
  return TRUE;
}

/* Reserves random numbers in the order of the nodes, as the calls themselves would have drawn them. */
static void
reserve (GTorchGraphExec *exec, guint64 *numbers)
{
  guint i;

  for (i = 0; i < exec->nodes->len; i++)
    {
      GTorchGraphNode *node = exec->nodes->pdata[i];

      if (node->child != NULL)
        reserve (node->child, numbers + 2 * node->random);
      else if (gtorch_graph_node_is_random (node))
        {
          GTorchOpCall call = node->call->call;

          gtorch_random_reserve (&call);
          numbers[2 * node->random] = call.seed;
          numbers[2 * node->random + 1] = call.counter;
        }
    }
}

/* Reads the predicate of a branch, which the node before it has computed. */
static gboolean
read_predicate (GTorchImpl *predicate, gboolean *is_true, GError **error)
{
  GTorchDevice *device = gtorch_impl_device (predicate);
  g_autoptr (GTorchImpl) host = NULL;
  gboolean was_apart, result;

  if (gtorch_device_is_host (device))
    {
      *is_true = *(const guint8 *) gtorch_impl_data (predicate) != 0;
      return TRUE;
    }
  host = gtorch_impl_new (gtorch_device_cpu (), predicate->dtype, predicate->shape,
                          predicate->n_dims, error);
  if (host == NULL)
    return FALSE;
  was_apart = gtorch_thread.is_apart;
  gtorch_thread.is_apart = TRUE; /* in a first replay nobody else may read the predicate yet */
  result = GTORCH_DEVICE_GET_CLASS (device)->copy (device, host, predicate, FALSE, error);
  gtorch_thread.is_apart = was_apart;
  if (!result)
    return FALSE;
  *is_true = *(const guint8 *) gtorch_impl_data (host) != 0;
  return TRUE;
}

static gboolean
run_nodes (GTorchGraphExec *exec, const guint64 *numbers, GError **error)
{
  gboolean is_true = TRUE;
  guint i;

  for (i = 0; i < exec->nodes->len; i++)
    {
      GTorchGraphNode *node = exec->nodes->pdata[i];

      if (node->predicate != NULL && !read_predicate (node->predicate, &is_true, error))
        return FALSE;
      if (node->predicate != NULL && !is_true)
        continue;
      if (node->child != NULL)
        {
          if (!run_nodes (node->child, numbers + 2 * node->random, error))
            return FALSE;
          continue;
        }
      if (gtorch_graph_node_is_random (node))
        {
          node->call->call.seed = numbers[2 * node->random];
          node->call->call.counter = numbers[2 * node->random + 1];
        }
      if (!gtorch_saved_call_run (node->call, error))
        {
          g_prefix_error (error, "graph: node %u: ", i);
          return FALSE;
        }
    }
  return TRUE;
}

/* The last work that used a pool before a replay. */
typedef struct
{
  GTorchTimeline *writer; /* NULL: already done */
  guint64 seq;
} Former;

typedef struct
{
  GTorchGraphExec *exec;
  Former *formers;   /* one per pool */
  guint64 numbers[]; /* seed and counter of each random call */
} Replay;

/* Prepares a replay on the stream, which waits for the work that uses the pools now. */
static Replay *
replay_new (GTorchGraphExec *exec, GTorchStream *stream)
{
  const gsize size = sizeof (Replay) + 2 * exec->n_random * sizeof (guint64);
  Replay *replay = g_malloc0 (size + gtorch_graph_exec_n_pools (exec) * sizeof (Former));
  guint i;

  replay->exec = gtorch_graph_exec_ref (exec);
  replay->formers = (Former *) ((gchar *) replay + size);
  for (i = 0; i < gtorch_graph_exec_n_pools (exec); i++)
    {
      Former *former = &replay->formers[i];

      former->writer = gtorch_pool_get_writer (gtorch_graph_exec_nth_pool (exec, i), &former->seq);
      if (former->writer == stream->timeline)
        former->writer = NULL;
    }
  return replay;
}

static gboolean
replay_run (gpointer data, GError **error)
{
  Replay *replay = data;
  gboolean result;
  guint i;

  for (i = 0; i < gtorch_graph_exec_n_pools (replay->exec); i++)
    if (replay->formers[i].writer != NULL)
      gtorch_timeline_wait (replay->formers[i].writer, replay->formers[i].seq, NULL, NULL);
  lock_pools (replay->exec);
  result = run_nodes (replay->exec, replay->numbers, error);
  unlock_pools (replay->exec);
  return result;
}

static void
replay_free (gpointer data)
{
  Replay *replay = data;

  gtorch_graph_exec_unref (replay->exec);
  g_free (replay);
}

static gboolean
wait_for_operands (GTorchGraphExec *exec, GError **error)
{
  guint i;

  for (i = 0; i < exec->read->len; i++)
    if (!gtorch_storage_wait (exec->read->pdata[i], error))
      return FALSE;
  for (i = 0; i < exec->written->len; i++)
    if (!gtorch_storage_wait (exec->written->pdata[i], error))
      return FALSE;
  return TRUE;
}

/* Checks operands from outside before the stream reads and writes them. */
static gboolean
check_operands (GTorchGraphExec *exec, GTorchStream *stream, GError **error)
{
  guint i;

  for (i = 0; i < exec->read->len; i++)
    if (!gtorch_stream_check_operand (stream, exec->read->pdata[i], error))
      return FALSE;
  for (i = 0; i < exec->written->len; i++)
    if (!gtorch_stream_check_operand (stream, exec->written->pdata[i], error))
      return FALSE;
  return TRUE;
}

/* Marks the results of the graph as computed: any later reader waits for the replay. */
static void
keep_promises (GTorchGraphExec *exec)
{
  const GTorchGraphPart *part;
  guint i;

  gtorch_pool_keep_promise (exec->pool, exec->capture);
  for (i = 0; (part = gtorch_graph_exec_nth_part (exec, i)) != NULL; i++)
    gtorch_pool_keep_promise (part->pool, part->capture);
  for (i = 0; exec->has_children && i < exec->nodes->len; i++)
    {
      GTorchGraphNode *node = exec->nodes->pdata[i];

      if (node->child != NULL)
        keep_promises (node->child);
    }
}

/* The maximum number of random calls whose numbers are kept on the stack. */
#define FEW 16

static gboolean
replay_native (GTorchGraphExec *exec, GTorchStream *stream, GError **error)
{
  guint64 few[2 * FEW];
  g_autofree guint64 *many = exec->n_random > FEW ? g_new0 (guint64, 2 * exec->n_random) : NULL;
  guint64 *numbers = many != NULL ? many : few;
  gboolean result = TRUE;
  guint i;

  lock_pools (exec);
  if (exec->n_random > 0)
    reserve (exec, numbers);
  for (i = 0; result && i < gtorch_graph_exec_n_pools (exec); i++)
    result = exec->backend->follow (gtorch_graph_exec_nth_pool (exec, i), stream, error);
  result = result && exec->backend->replay (exec->native, stream, numbers, error);
  unlock_pools (exec);
  if (result && gtorch_promises_exist ())
    keep_promises (exec);
  for (i = 0; result && i < exec->written->len; i++)
    {
      g_atomic_int_inc (&((GTorchStorage *) exec->written->pdata[i])->version);
      exec->backend->note_write (exec->written->pdata[i], stream);
    }
  return result;
}

static gboolean
replay_calls (GTorchGraphExec *exec, GTorchStream *stream, GError **error)
{
  Replay *replay = replay_new (exec, stream);
  gboolean result = TRUE;
  guint64 seq;
  guint i;

  reserve (exec, replay->numbers);
  for (i = 0; i < exec->written->len; i++)
    g_atomic_int_inc (&((GTorchStorage *) exec->written->pdata[i])->version);

  if (stream->timeline == NULL)
    {
      result = replay_run (replay, error);
      for (i = 0; result && i < gtorch_graph_exec_n_pools (exec); i++)
        gtorch_pool_set_writer (gtorch_graph_exec_nth_pool (exec, i), NULL, 0);
      replay_free (replay);
      if (result && gtorch_promises_exist ())
        keep_promises (exec);
      return result;
    }
  for (i = 0; i < exec->read->len; i++)
    gtorch_stream_enqueue_copies (stream, exec->read->pdata[i]);
  for (i = 0; i < exec->written->len; i++)
    gtorch_stream_enqueue_copies (stream, exec->written->pdata[i]);
  seq = GTORCH_STREAM_GET_CLASS (stream)->enqueue (stream, replay_run, replay, replay_free);
  for (i = 0; i < gtorch_graph_exec_n_pools (exec); i++)
    gtorch_pool_set_writer (gtorch_graph_exec_nth_pool (exec, i), stream->timeline, seq);
  if (gtorch_promises_exist ())
    keep_promises (exec);
  for (i = 0; i < exec->written->len; i++)
    gtorch_storage_set_writer (exec->written->pdata[i], stream->timeline, seq);
  if (gtorch_get_launch_blocking ())
    {
      gtorch_timeline_wait (stream->timeline, G_MAXUINT64, NULL, NULL);
      result = gtorch_timeline_report (stream->timeline, error);
    }
  return result;
}

static gboolean
replay_with_others (GTorchGraphExec *exec, GTorchStream *stream, GError **error)
{
  gboolean result;

  if (exec->parties == NULL)
    return replay_native (exec, stream, error);
  if (!exec->party_class->begin (exec->parties, error))
    return FALSE;
  result = replay_native (exec, stream, error);
  exec->party_class->end (exec->parties);
  return result;
}

gboolean
gtorch_graph_exec_replay (GTorchGraphExec *exec, GTorchStream *stream, GError **error)
{
  const gboolean is_native = exec->native != NULL;

  if (!gtorch_stream_check_cancellable (stream, "replay", error))
    return FALSE;
  if (gtorch_promises_exist () && !check_needed (exec, error))
    return FALSE;
  return (is_native                  ? meet_peers (exec, stream, FALSE, error)
          : stream->timeline == NULL ? wait_for_operands (exec, error)
                                     : check_operands (exec, stream, error))
         && gtorch_observe_replay (exec, stream, is_native ? replay_with_others : replay_calls,
                                   error)
         && (!is_native || meet_peers (exec, stream, TRUE, error));
}

/* writers: the name of the node that last wrote to a storage, by the storage's address. */
static void
write_edge (const GTorchImpl *operand, const gchar *name, GHashTable *writers, GString *text)
{
  const gchar *from =
      operand != NULL ? g_hash_table_lookup (writers, operand->storage->data) : NULL;

  if (from != NULL)
    g_string_append_printf (text, "  %s -> %s;\n", from, name);
}

static void
write_call (const GTorchOpCall *call, guint index, const gchar *name, gboolean names_devices,
            GHashTable *writers, GString *text)
{
  guint i;

  g_string_append_printf (text, "  %s [label=\"%u: %s%s", name, index, call->op->name,
                          call->in_place ? "_" : "");
  if (names_devices)
    g_string_append_printf (text, " on %s", gtorch_device_name (call->device));
  for (i = 0; i < call->n_outputs; i++)
    if (call->outputs[i] != NULL)
      g_string_append_printf (text, "\\n%s %s", gtorch_dtype_get_name (call->outputs[i]->dtype),
                              gtorch_impl_shape_str (call->outputs[i]));
  g_string_append (text, "\"];\n");
  for (i = 0; i < call->n_inputs; i++)
    write_edge (call->inputs[i], name, writers, text);
  for (i = 0; i < call->n_outputs; i++)
    if (call->outputs[i] != NULL)
      g_hash_table_insert (writers, call->outputs[i]->storage->data, g_strdup (name));
  for (i = 0; i < call->n_inputs; i++)
    if (gtorch_call_writes (call, i))
      g_hash_table_insert (writers, call->inputs[i]->storage->data, g_strdup (name));
}

static void
write_nodes (GTorchGraphExec *exec, const gchar *prefix, GHashTable *writers, GString *text)
{
  guint i;

  for (i = 0; i < exec->nodes->len; i++)
    {
      GTorchGraphNode *node = exec->nodes->pdata[i];
      g_autofree gchar *name = g_strdup_printf ("%s%u", prefix, i);
      g_autofree gchar *inner = g_strdup_printf ("%s_", name);

      if (node->child == NULL)
        {
          write_call (&node->call->call, i, name, exec->parts != NULL, writers, text);
          continue;
        }
      g_string_append_printf (text, "  %s [label=\"%u: %s of %u nodes\"];\n", name, i,
                              node->predicate != NULL ? "branch" : "graph",
                              node->child->nodes->len);
      if (node->predicate == NULL)
        continue;
      write_edge (node->predicate, name, writers, text);
      g_string_append_printf (text, "  subgraph cluster_%s {\n", name);
      write_nodes (node->child, inner, writers, text);
      g_string_append (text, "  }\n");
    }
}

void
gtorch_graph_exec_write_dot (GTorchGraphExec *exec, GString *text)
{
  g_autoptr (GHashTable) writers = g_hash_table_new_full (NULL, NULL, NULL, g_free);

  g_string_append (text, "digraph gtorch {\n  node [shape=box, fontname=\"monospace\"];\n");
  write_nodes (exec, "n", writers, text);
  g_string_append (text, "}\n");
}

/* --- replay in the capture of another graph --- */

gboolean
gtorch_graph_launch_call (GTorchStream *stream, const GTorchOpCall *call, guint random,
                          GError **error)
{
  GTorchOpCall own = *call;

  own.seed = 0;
  own.counter = random;
  return GTORCH_DEVICE_GET_CLASS (call->device)->launch (call->device, stream, &own, error);
}

gboolean
gtorch_graph_exec_launch (GTorchGraphExec *exec, gpointer capture, GTorchStream *stream,
                          guint random, GError **error)
{
  guint i;

  for (i = 0; i < exec->nodes->len; i++)
    {
      const GTorchGraphNode *node = exec->nodes->pdata[i];
      gboolean result = node->predicate == NULL
                        || exec->backend->begin_branch (capture, stream, node->predicate, error);

      if (!result)
        return FALSE;
      result = node->child != NULL ? gtorch_graph_exec_launch (node->child, capture, stream,
                                                               random + node->random, error)
                                   : gtorch_graph_launch_call (stream, &node->call->call,
                                                               random + node->random, error);
      if (node->predicate != NULL)
        result = exec->backend->end_branch (capture, stream, result ? error : NULL) && result;
      if (!result)
        return FALSE;
    }
  return TRUE;
}

gboolean
gtorch_graph_exec_uses_pool (GTorchGraphExec *exec, GTorchPool *pool)
{
  gboolean result = exec->pool == pool;
  const GTorchGraphPart *part;
  guint i;

  for (i = 0; !result && (part = gtorch_graph_exec_nth_part (exec, i)) != NULL; i++)
    result = part->pool == pool;
  for (i = 0; exec->has_children && i < exec->nodes->len && !result; i++)
    {
      const GTorchGraphNode *node = exec->nodes->pdata[i];

      result = node->child != NULL && gtorch_graph_exec_uses_pool (node->child, pool);
    }
  return result;
}
