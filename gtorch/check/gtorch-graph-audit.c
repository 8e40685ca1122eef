/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A graph records what is launched on its streams and nothing else: neither the host's work in between nor
 * launches on other streams. What the launcher can see of either is reported here: as an error where the
 * program is certainly wrong, as a warning where it probably is. */

#include "config.h"

#include "base/gtorch-fork-private.h"
#include "check/gtorch-checks-private.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-check-private.h"
#include "graph/gtorch-graph-exec-private.h"

typedef struct
{
  GTorchCapture *capture;
  GTorchStream *stream; /* first stream of the capture */
  GThread *thread;
  gboolean is_relaxed;
  GHashTable *written;     /* storages written by calls of the capture; borrowed, only compared */
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

static void
audit_begin (GTorchCapture *capture)
{
  Audit *audit = g_new0 (Audit, 1);

  audit->capture = capture;
  audit->stream = gtorch_capture_get_stream (capture);
  audit->thread = gtorch_capture_get_thread (capture);
  audit->is_relaxed = gtorch_capture_is_relaxed (capture);
  audit->written = g_hash_table_new (NULL, NULL);
  g_mutex_lock (&lock);
  audits = g_slist_prepend (audits, audit);
  g_mutex_unlock (&lock);
}

/* Removes the audit of the capture. Returns a device other than the captured one on which the capturing
 * thread has called operations, or NULL. */
static GTorchDevice *
drop_audit (GTorchCapture *capture)
{
  GTorchDevice *elsewhere;
  Audit *audit;

  g_mutex_lock (&lock);
  audit = find_audit (capture);
  audits = g_slist_remove (audits, audit);
  g_mutex_unlock (&lock);
  if (audit == NULL)
    return NULL;
  elsewhere = audit->elsewhere;
  g_hash_table_unref (audit->written);
  g_free (audit);
  return elsewhere;
}

/* Records that the call becomes part of the graph. */
static void
note_captured (GTorchCapture *capture, const GTorchOpCall *call)
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
  g_mutex_unlock (&lock);
}

static gchar *
dup_site (void)
{
  GTorchSite site;

  gtorch_site_take (&site);
  return gtorch_site_to_string (&site);
}

/* A capture is audited until its end is reported, which is a little later than the end itself. */
static gboolean
is_under_way (const Audit *audit)
{
  return __atomic_load_n (&audit->stream->capture, __ATOMIC_ACQUIRE) == audit->capture;
}

/* Checks a call that is about to run on a stream (may be NULL) that does not capture. Returns FALSE if other
 * streams of the device take part in a capture of this thread. */
static gboolean
check_call (GTorchStream *stream, const GTorchOpCall *call, GError **error)
{
  GTorchStream *own = NULL, *other = NULL;
  gboolean takes_part; /* whether streams of the device take part in a capture */
  GSList *l;

  /* the host calls that a replay computes with also pass through here */
  if (gtorch_thread.must_finish || gtorch_thread.worker != NULL || gtorch_thread.is_apart
      || call->of_numbers)
    return TRUE;
  g_mutex_lock (&lock);
  for (l = audits; l != NULL; l = l->next)
    {
      Audit *audit = l->data;

      if (!is_under_way (audit))
        continue;
      takes_part = gtorch_capture_get_pool (audit->capture, call->device) != NULL;
      if (!takes_part && audit->thread == g_thread_self ())
        audit->elsewhere = call->device;
      if (!takes_part || audit->is_relaxed)
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

      g_warning ("graph: %s is not captured: another thread captures stream %p, this one "
                 "runs it on stream %p immediately; called from %s",
                 gtorch_call_named_op (call)->name, other, stream, site);
    }
  if (own == NULL)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
               _ ("%s: the current stream, %p, takes no part in the capture of stream %p "
                  "by this thread, and no replay would run the operation: let it wait for "
                  "that stream first, and that one for it at the end"),
               gtorch_call_named_op (call)->name,
               stream != NULL ? stream : gtorch_device_get_default_stream (call->device), own);
  return FALSE;
}

static gboolean
audit_call (GTorchStream *stream, GTorchOpCall *call, GError **error)
{
  g_autoptr (GTorchCapture) capture = gtorch_stream_dup_capture (stream);

  if (capture == NULL)
    return check_call (stream, call, error);
  note_captured (capture, call);
  return TRUE;
}

/* Warns if `grad`, which is about to be accumulated into, is older than the capture. */
static void
audit_grad (GTorchImpl *grad)
{
  g_autoptr (GTorchCapture) capture =
      gtorch_stream_dup_capture (gtorch_current_stream (gtorch_impl_device (grad)));
  gboolean is_old = FALSE;
  Audit *audit;

  if (capture == NULL
      || gtorch_pool_of (grad->storage)
             == gtorch_capture_get_pool (capture, gtorch_impl_device (grad)))
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

      g_warning ("graph: backward adds to a gradient of shape %s that existed before the "
                 "capture, and so will every replay: set it to NULL before the capture; "
                 "called from %s",
                 gtorch_impl_shape_str (grad), site);
    }
}

/* If this thread captures, warns that the host work done by a function happens now and in no replay. */
static void
audit_host_work (const gchar *what)
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

      g_warning ("graph: %s happens now, while the graph is captured, and not in "
                 "replays; called from %s",
                 what, site);
    }
}

/* Checks that the graph is what the program meant to capture. */
static gboolean
audit_end (GTorchCapture *capture, GTorchGraphExec *exec, gchar **warning, GError **error)
{
  GTorchDevice *elsewhere = drop_audit (capture);
  g_autofree gchar *own_name = NULL;
  g_autofree gchar *name = NULL;
  g_autofree gchar *site = NULL;

  if (exec == NULL || gtorch_graph_exec_get_n_nodes (exec) > 0
      || gtorch_graph_exec_get_n_foreign (exec) > 0)
    return TRUE;
  if (elsewhere == NULL)
    {
      site = dup_site ();
      *warning = g_strdup_printf ("graph: nothing was captured: no operation was called on the "
                                  "stream between begin and end; called from %s",
                                  site);
      return TRUE;
    }
  own_name = gtorch_device_to_string (gtorch_capture_get_stream (capture)->device);
  name = gtorch_device_to_string (elsewhere);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
               _ ("graph: nothing was captured on %s: the operations between begin and end were on "
                  "%s; capture a stream of that device"),
               own_name, name);
  return FALSE;
}

const GTorchObserver gtorch_audit_observer = {
  .rank = GTORCH_RANK_AUDIT,
  .in_captures = TRUE,
  .call_begin = audit_call,
  .capture_begin = audit_begin,
  .capture_end = audit_end,
  .host_work = audit_host_work,
  .grad = audit_grad,
};
