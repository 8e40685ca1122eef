/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A graph records what is launched on its streams and nothing else: neither the host's work in between nor
 * launches on other streams. What the launcher can see of either is reported here: as an error where the
 * program is certainly wrong, as a warning where it probably is. */

#include "config.h"

#include "base/gtorch-fork-private.h"
#include "check/gtorch-graph-audit-private.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-check-private.h"
#include "check/gtorch-graph-compare-private.h"
#include "graph/gtorch-graph-exec-private.h"
#include "tensor/gtorch-tensor-private.h"
#include "dispatch/gtorch-saved-call-private.h"

typedef struct
{
  GTorchCapture *capture;
  GTorchStream *stream; /* first stream of the capture */
  GThread *thread;
  GTorchCaptureMode mode;
  GHashTable *written;     /* storages written by calls of the capture; borrowed, only compared */
  GPtrArray *calls;        /* GTorchSavedCall, with GTORCH_CHECK=replay; otherwise NULL */
  GArray *branches;        /* guint: index in `calls` of each open branch */
  GTorchDevice *elsewhere; /* another device on which this thread has called operations */
  gboolean has_warned_of_grad;
  gboolean has_warned_of_others;
} Audit;

static GMutex lock;
GTORCH_FORK_LOCK (lock);
static GSList *audits; /* captures under way */

static Audit *
find_audit (GTorchCapture *capture)
{
  GSList *l;

  for (l = audits; l != NULL; l = l->next)
    if (((Audit *) l->data)->capture == capture)
      return l->data;
  return NULL;
}

void
gtorch_audit_begin (GTorchCapture *capture, GTorchCaptureMode mode)
{
  Audit *audit = g_new0 (Audit, 1);

  audit->capture = capture;
  audit->stream = gtorch_capture_get_stream (capture);
  audit->thread = gtorch_capture_get_thread (capture);
  audit->mode = mode;
  audit->written = g_hash_table_new (NULL, NULL);
  audit->branches = g_array_new (FALSE, FALSE, sizeof (guint));
  if (gtorch_is_checking (GTORCH_CHECK_REPLAY))
    audit->calls = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_saved_call_free);
  g_mutex_lock (&lock);
  audits = g_slist_prepend (audits, audit);
  g_mutex_unlock (&lock);
}

void
gtorch_audit_end (GTorchCapture *capture)
{
  Audit *audit;

  g_mutex_lock (&lock);
  audit = find_audit (capture);
  audits = g_slist_remove (audits, audit);
  g_mutex_unlock (&lock);
  if (audit == NULL)
    return;
  g_hash_table_unref (audit->written);
  g_array_unref (audit->branches);
  g_clear_pointer (&audit->calls, g_ptr_array_unref);
  g_free (audit);
}

void
gtorch_audit_captured (GTorchCapture *capture, const GTorchOpCall *call)
{
  Audit *audit;
  guint i;

  g_mutex_lock (&lock);
  audit = find_audit (capture);
  for (i = 0; audit != NULL && i < call->n_outputs; i++)
    if (call->outputs[i] != NULL)
      g_hash_table_add (audit->written, call->outputs[i]->storage);
  for (i = 0; audit != NULL && i < call->n_inputs; i++)
    if (gtorch_call_writes (call, i))
      g_hash_table_add (audit->written, call->inputs[i]->storage);
  if (audit != NULL && audit->calls != NULL)
    g_ptr_array_add (audit->calls,
                     gtorch_saved_call_new (call, gtorch_capture_alias_operand, capture));
  g_mutex_unlock (&lock);
}

void
gtorch_audit_branch (GTorchCapture *capture, GTorchImpl *predicate)
{
  const GTorchAttr attrs[] = { { .i = 0 } };
  const GTorchOpCall call = {
    .op = &gtorch_graph_branch,
    .inputs = &predicate,
    .n_inputs = 1,
    .attrs = attrs,
    .device = gtorch_impl_device (predicate),
  };
  Audit *audit;

  g_mutex_lock (&lock);
  audit = find_audit (capture);
  if (audit != NULL && audit->calls != NULL)
    {
      g_array_append_val (audit->branches, audit->calls->len);
      g_ptr_array_add (audit->calls,
                       gtorch_saved_call_new (&call, gtorch_capture_alias_operand, capture));
    }
  g_mutex_unlock (&lock);
}

void
gtorch_audit_branch_end (GTorchCapture *capture)
{
  Audit *audit;

  g_mutex_lock (&lock);
  audit = find_audit (capture);
  if (audit != NULL && audit->calls != NULL && audit->branches->len > 0)
    {
      const guint begin = g_array_index (audit->branches, guint, audit->branches->len - 1);
      GTorchSavedCall *branch = audit->calls->pdata[begin];

      branch->attrs[0].i = audit->calls->len - begin - 1;
      g_array_set_size (audit->branches, audit->branches->len - 1);
    }
  g_mutex_unlock (&lock);
}

void
gtorch_audit_child (GTorchCapture *capture)
{
  Audit *audit;

  g_mutex_lock (&lock);
  audit = find_audit (capture);
  if (audit != NULL)
    g_clear_pointer (&audit->calls, g_ptr_array_unref);
  g_mutex_unlock (&lock);
}

GPtrArray *
gtorch_audit_take_calls (GTorchCapture *capture)
{
  GPtrArray *calls = NULL;
  Audit *audit;

  g_mutex_lock (&lock);
  audit = find_audit (capture);
  if (audit != NULL)
    calls = g_steal_pointer (&audit->calls);
  g_mutex_unlock (&lock);
  return calls;
}

GTorchDevice *
gtorch_audit_get_elsewhere (GTorchCapture *capture)
{
  GTorchDevice *device = NULL;
  Audit *audit;

  g_mutex_lock (&lock);
  audit = find_audit (capture);
  if (audit != NULL)
    device = audit->elsewhere;
  g_mutex_unlock (&lock);
  return device;
}

static gchar *
dup_site (void)
{
  GTorchSite site;

  gtorch_site_take (&site);
  return gtorch_site_to_string (&site);
}

gboolean
gtorch_audit_launch (GTorchStream *stream, const GTorchOpCall *call, GError **error)
{
  GTorchStream *own = NULL, *other = NULL;
  GSList *l;

  /* the host calls that a replay computes with also pass through here */
  if (gtorch_thread.must_finish || gtorch_thread.worker != NULL || gtorch_thread.is_apart
      || call->of_numbers)
    return TRUE;
  g_mutex_lock (&lock);
  for (l = audits; l != NULL; l = l->next)
    {
      Audit *audit = l->data;

      if (audit->stream->device != call->device && audit->thread == g_thread_self ())
        audit->elsewhere = call->device;
      if (audit->stream->device != call->device || audit->mode == GTORCH_CAPTURE_MODE_RELAXED)
        continue;
      if (audit->thread == g_thread_self ())
        own = audit->stream;
      else if (gtorch_is_checking (GTORCH_CHECK_GRAPH) && !audit->has_warned_of_others)
        {
          audit->has_warned_of_others = TRUE;
          other = audit->stream;
        }
    }
  g_mutex_unlock (&lock);
  if (other != NULL)
    {
      g_autofree gchar *site = dup_site ();

      g_warning ("graph: %s is not captured: another thread captures stream %p, this one calls it "
                 "on "
                 "stream %p at once; called from %s",
                 gtorch_call_named_op (call)->name, other, stream, site);
    }
  if (own == NULL)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
               _ ("%s: the current stream, %p, takes no part in the capture of stream %p by this "
                  "thread, and no replay would do it: let it wait for that stream first, and that "
                  "one "
                  "for it at the end"),
               gtorch_call_named_op (call)->name,
               stream != NULL ? stream : gtorch_device_get_default_stream (call->device), own);
  return FALSE;
}

void
gtorch_audit_grad (GTorchImpl *grad)
{
  g_autoptr (GTorchCapture) capture =
      gtorch_stream_dup_capture (gtorch_current_stream (gtorch_impl_device (grad)));
  gboolean is_old = FALSE;
  Audit *audit;

  if (capture == NULL || gtorch_pool_of (grad->storage) == GTORCH_CAPTURE_BASE (capture)->pool)
    return;
  g_mutex_lock (&lock);
  audit = find_audit (capture);
  if (audit != NULL && !audit->has_warned_of_grad
      && !g_hash_table_contains (audit->written, grad->storage))
    is_old = audit->has_warned_of_grad = TRUE;
  g_mutex_unlock (&lock);
  if (is_old)
    {
      g_autofree gchar *site = dup_site ();

      g_warning ("graph: backward adds to a gradient of shape %s that was there before the "
                 "capture, and "
                 "every replay will: set it to NULL before; called from %s",
                 gtorch_impl_shape_str (grad), site);
    }
}

void
gtorch_audit_host_work (const gchar *what)
{
  gboolean captures = FALSE;
  GSList *l;

  g_mutex_lock (&lock);
  for (l = audits; l != NULL; l = l->next)
    captures |= ((Audit *) l->data)->thread == g_thread_self ();
  g_mutex_unlock (&lock);
  if (captures)
    {
      g_autofree gchar *site = dup_site ();

      g_warning ("graph: %s happens now, while the graph is captured, and in no replay; called "
                 "from %s",
                 what, site);
    }
}

void
gtorch_audit_empty (void)
{
  g_autofree gchar *site = dup_site ();

  g_warning ("graph: nothing was captured: no operation was called on the stream between begin and "
             "end; "
             "called from %s",
             site);
}

/* --- checks that need the device --- */

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
  exec->n_foreign = found.n;
  if (result && found.is_lost && !is_relaxed)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                   _ ("graph: %s, which the library did not launch, uses memory at "
                      "0x%" G_GINT64_MODIFIER
                      "x that belongs to no tensor, and every replay would: keep the tensor, and "
                      "make it an input of the graph"),
                   found.user, found.address);
      result = FALSE;
    }
  else if (result && found.user != NULL)
    {
      g_autofree gchar *site = dup_site ();

      *notes =
          g_strdup_printf ("graph: %s, which the library did not launch, uses memory at "
                           "0x%" G_GINT64_MODIFIER "x %s, "
                           "which the graph does not keep: make the tensor an input of the graph; "
                           "called from %s",
                           found.user, found.address,
                           found.is_lost ? "that belongs to no tensor" : "that belongs to a tensor",
                           site);
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
      /* Concurrent replays have no order, so none can be wrong. */
      __atomic_store_n (&pool->last_replayed, number, __ATOMIC_RELAXED);
      return TRUE;
    }
  if (before == 0)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("graph: graph %u of pool %" G_GUINT64_FORMAT
                    " is replayed before graph %u was: "
                    "graphs that share memory run in the order of their captures, from the first "
                    "on"),
                 number, pool->id, first);
  else
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("graph: graph %u of pool %" G_GUINT64_FORMAT
                    " is replayed after graph %u, whose "
                    "results it overwrites: graphs that share memory run in the order of their "
                    "captures, and then from graph %u on again"),
                 number, pool->id, before, first);
  return FALSE;
}
