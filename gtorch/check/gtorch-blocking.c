/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* GTORCH_CHECK=blocking: warns of waits for a device in threads that serve a main context, whose sources, such
 * as those of a user interface, wait meanwhile. Each place is told once. */

#include "config.h"

#include "base/gtorch-check-private.h"
#include "base/gtorch-fork-private.h"
#include "base/gtorch-place-private.h"
#include "check/gtorch-checks-private.h"
#include "device/gtorch-device-private.h"
#include "dispatch/gtorch-op-private.h"

#define MAX_PLACES 1000

gint64 gtorch_blocking_limit = 8000; /* half of a frame, in microseconds */

typedef struct
{
  guint depth; /* of waits within one another */
  gint64 start;
  const gchar *op; /* that this thread has launched last */
} Waiting;

static __thread Waiting waiting;
static GMutex lock;
GTORCH_FORK_LOCK (lock);
static GHashTable *told; /* places; under the lock */

/* Whether sources wait for this thread: it runs one of them, or it is the one of the default context. */
static gboolean
serves_a_context (void)
{
  return g_main_depth () > 0 || g_main_context_is_owner (g_main_context_default ());
}

/* Takes ownership of the text. */
static gboolean
is_news (gchar *where)
{
  gboolean result;

  g_mutex_lock (&lock);
  if (told == NULL)
    told = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  result =
      g_hash_table_size (told) < MAX_PLACES && g_hash_table_add (told, g_steal_pointer (&where));
  g_free (where);
  g_mutex_unlock (&lock);
  return result;
}

static G_GNUC_NO_INLINE void
report (GTorchDevice *device, gint64 time)
{
  g_autofree gchar *place = gtorch_place_take ();
  g_autofree gchar *where = NULL;
  g_autofree gchar *function = NULL;
  g_autofree gchar *last = NULL;
  GTorchSite site;

  gtorch_site_take (&site);
  where = place != NULL ? gtorch_place_dup_first (place) : gtorch_site_to_string (&site);
  if (!is_news (g_strdup (where)))
    return;
  function = gtorch_site_dup_function (&site);
  last = waiting.op != NULL ? g_strdup_printf (", after its operation %s", waiting.op) : NULL;
  g_warning ("blocking: a main context waited %.1f ms for %s in %s%s: let a callback or another "
             "thread "
             "wait (called by %s)",
             time / 1e3, gtorch_device_name (device), function != NULL ? function : "the library",
             last != NULL ? last : "", where);
}

static gboolean
note_call (GTorchStream *stream, GTorchOpCall *call, GError **error)
{
  waiting.op = call->op->name;
  return TRUE;
}

static void
note_begin (GTorchDevice *device)
{
  if (waiting.depth++ == 0)
    waiting.start = g_get_monotonic_time ();
}

static void
note_end (GTorchDevice *device)
{
  gint64 time;

  if (waiting.depth == 0 || --waiting.depth > 0) /* 0: the check was turned on during the wait */
    return;
  time = g_get_monotonic_time () - waiting.start;
  if (time > gtorch_blocking_limit && serves_a_context ())
    report (device, time);
}

const GTorchObserver gtorch_blocking_observer = {
  .rank = GTORCH_RANK_BLOCKING,
  .call_begin = note_call,
  .host_block_begin = note_begin,
  .host_block_end = note_end,
};
