/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* How nodes agree on who takes part. Each runs this in a thread, which looks at the state that all
 * share in the store, changes it, and tells the agent of what has become of it.
 *
 * A round begins with no nodes. Each adds itself. When the greatest number has come, or all that are
 * known to come, or enough have come and no further one within the time of the last call, a node marks
 * the round as complete; ranks follow from the order of the nodes. The round ends when a worker fails
 * (the number of restarts grows with it), when a node no longer shows that it is alive, or when another
 * one wants to join and there is room: whoever notices replaces the state by that of the next round,
 * without nodes, and all of them join again. When each node has marked itself as done, the job is over;
 * when it cannot go on, the state is closed with a status and a reason, which are those of all nodes.
 *
 * Clocks of different hosts are not compared: a node is alive as long as its counter changes. */

#include "config.h"

#include "gtorch-run-rendezvous-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

/* --- the state --- */

GTorchRunState *
gtorch_run_rounds_read (GTorchRunRendezvous *self, GBytes **bytes, GError **error)
{
  g_autoptr (GTorchRunState) first = gtorch_run_state_new (self->options->max_nodes);
  g_autoptr (GBytes) begin = gtorch_run_state_to_bytes (first);

  /* sets it where nothing is there */
  *bytes = gtorch_store_compare_set (self->store, "state", NULL, begin, self->cancellable, error);
  return *bytes == NULL ? NULL : gtorch_run_state_from_bytes (*bytes, error);
}

/* Whether it changes the state. */
typedef gboolean (*Edit) (GTorchRunRendezvous *self, GTorchRunState *state, gconstpointer data);

/* Reads, edits and replaces it, again if another node has been faster. */
static GTorchRunState *
update (GTorchRunRendezvous *self, Edit edit, gconstpointer data, GError **error)
{
  g_autoptr (GBytes) current = NULL;
  g_autoptr (GTorchRunState) state = gtorch_run_rounds_read (self, &current, error);

  while (state != NULL && edit (self, state, data))
    {
      g_autoptr (GBytes) wanted = gtorch_run_state_to_bytes (state);
      g_autoptr (GBytes) now = gtorch_store_compare_set (self->store, "state", current, wanted,
                                                         self->cancellable, error);

      if (now == NULL)
        return NULL;
      if (g_bytes_equal (now, wanted))
        break;
      g_bytes_unref (current);
      current = g_bytes_ref (now);
      gtorch_run_state_free (state);
      state = gtorch_run_state_from_bytes (now, error);
    }
  return g_steal_pointer (&state);
}

/* --- joining --- */

/* A port that nobody uses now, for the group of the workers. */
static guint
find_port (const GTorchRunOptions *options)
{
  g_autoptr (GSocketListener) listener = g_socket_listener_new ();

  if (options->max_nodes == 1 && options->master_port != 0)
    return options->master_port;
  return g_socket_listener_add_any_inet_port (listener, NULL, NULL);
}

gdouble
gtorch_run_seconds_since (gint64 time)
{
  return (gdouble) (g_get_monotonic_time () - time) / G_USEC_PER_SEC;
}

/* Whether another node has the place that a static rendezvous gives to this one. */
static gboolean
is_taken (GTorchRunRendezvous *self, const GTorchRunState *state)
{
  gboolean result = FALSE;
  guint i;

  for (i = 0; self->options->is_static && i < state->nodes->len; i++)
    {
      const GTorchRunNode *node = state->nodes->pdata[i];

      result |= node->order == self->order && strcmp (node->id, self->id) != 0;
    }
  return result;
}

static gboolean
join (GTorchRunRendezvous *self, GTorchRunState *state, gconstpointer data)
{
  const GTorchRunOptions *options = self->options;
  const guint n = state->nodes->len;

  if (state->is_closed)
    return FALSE;
  if (gtorch_run_state_find (state, self->id) < 0)
    {
      if (is_taken (self, state))
        return FALSE;
      if (state->is_complete || n >= options->max_nodes)
        {
          if (gtorch_run_state_has (state->waiting, self->id))
            return FALSE;
          g_ptr_array_add (state->waiting, g_strdup (self->id));
          return TRUE;
        }
      gtorch_run_state_add (state, self->id, self->address, options->n_workers, find_port (options),
                            self->order);
      return TRUE;
    }
  if (state->is_complete || n < options->min_nodes
      || (n < MIN (state->expected, options->max_nodes)
          && gtorch_run_seconds_since (self->since) < options->last_call_timeout))
    return FALSE;
  gtorch_run_state_complete (state);
  return TRUE;
}

static gboolean
leave_early (GTorchRunRendezvous *self, GTorchRunState *state, gconstpointer data)
{
  if (state->is_complete && gtorch_run_state_find (state, self->id) >= 0)
    return FALSE;
  gtorch_run_state_remove (state, self->id);
  return TRUE;
}

/* --- being a member --- */

/* How many nodes come to the next round, one of them less. */
static guint
count_expected (const GTorchRunState *state, guint n_lost)
{
  const guint n = state->nodes->len + state->waiting->len;

  return n > n_lost ? n - n_lost : 1;
}

static gboolean
let_in (GTorchRunRendezvous *self, GTorchRunState *state, gconstpointer data)
{
  if (state->round != self->round || state->is_closed || state->waiting->len == 0
      || state->nodes->len >= self->options->max_nodes || state->done->len > 0)
    return FALSE;
  gtorch_run_state_next_round (state, count_expected (state, 0), _ ("a node has come"));
  return TRUE;
}

/* Ends the round without a node that is lost, or goes: a GTorchRunOrder. Nobody goes on without the
 * store. */
static gboolean
go_on_without (GTorchRunRendezvous *self, GTorchRunState *state, gconstpointer data)
{
  const GTorchRunOrder *order = data;

  if (state->round != self->round || state->is_closed)
    return FALSE;
  if (order->lost != NULL)
    gtorch_run_state_remove (state, order->lost);
  if (self->options->min_nodes == self->options->max_nodes
      || (order->lost == NULL && self->is_host))
    gtorch_run_state_close (state, order->status, order->text);
  else
    gtorch_run_state_next_round (state, count_expected (state, order->lost == NULL), order->text);
  return TRUE;
}

static gboolean
fail (GTorchRunRendezvous *self, GTorchRunState *state, gconstpointer data)
{
  const GTorchRunOrder *order = data;

  if (state->round != self->round || state->is_closed)
    return FALSE;
  if (state->restarts < self->options->max_restarts)
    {
      state->restarts++;
      gtorch_run_state_next_round (state, count_expected (state, 0), order->text);
    }
  else
    gtorch_run_state_close (state, order->status, order->text);
  return TRUE;
}

static gboolean
finish (GTorchRunRendezvous *self, GTorchRunState *state, gconstpointer data)
{
  if (state->round != self->round || state->is_closed
      || gtorch_run_state_has (state->done, self->id))
    return FALSE;
  g_ptr_array_add (state->done, g_strdup (self->id));
  return TRUE;
}

static gboolean
join_without (GTorchRunRendezvous *self, GTorchRunState *state, gconstpointer data)
{
  if (state->is_complete)
    return FALSE;
  gtorch_run_state_remove (state, ((const GTorchRunOrder *) data)->lost);
  return TRUE;
}

static gchar *
beat_key (const gchar *id)
{
  return g_strconcat ("beat/", id, NULL);
}

static gboolean
show_alive (GTorchRunRendezvous *self, GError **error)
{
  g_autofree gchar *key = beat_key (self->id);
  g_autofree gchar *text = g_strdup_printf ("%" G_GINT64_FORMAT, ++self->n_beats);
  g_autoptr (GBytes) value = g_bytes_new (text, strlen (text));

  return gtorch_store_set (self->store, key, value, self->cancellable, error);
}

static GTorchRunBeat *
find_beat (GTorchRunRendezvous *self, const gchar *id)
{
  GTorchRunBeat *beat;
  guint i;

  for (i = 0; i < self->beats->len; i++)
    if (strcmp (((GTorchRunBeat *) self->beats->pdata[i])->id, id) == 0)
      return self->beats->pdata[i];
  beat = g_new (GTorchRunBeat, 1);
  *beat = (GTorchRunBeat){ g_strdup (id), -1, g_get_monotonic_time () };
  g_ptr_array_add (self->beats, beat);
  return beat;
}

static gboolean
is_lost (GTorchRunRendezvous *self, const GTorchRunNode *node, GError **error)
{
  const GTorchRunOptions *options = self->options;
  g_autofree gchar *key = beat_key (node->id);
  GTorchRunBeat *beat = find_beat (self, node->id);
  gint64 count;

  /* reads it as a number, by adding none */
  if (!gtorch_store_add (self->store, key, 0, &count, self->cancellable, error))
    return FALSE;
  if (count != beat->count)
    {
      beat->count = count;
      beat->time = g_get_monotonic_time ();
    }
  return gtorch_run_seconds_since (beat->time)
         > options->keep_alive_interval * options->keep_alive_max_attempt;
}

/* Also while nodes join: one that dies then would hold up those that are there. */
static gboolean
look_for_lost (GTorchRunRendezvous *self, const GTorchRunState *state, GError **error)
{
  guint i;

  for (i = 0; i < state->nodes->len; i++)
    {
      const GTorchRunNode *node = state->nodes->pdata[i];
      g_autoptr (GTorchRunState) now = NULL;
      GTorchRunOrder order = { GTORCH_RUN_LEAVE, 1, NULL, node->id };

      if (strcmp (node->id, self->id) == 0 || gtorch_run_state_has (state->done, node->id))
        continue;
      if (!is_lost (self, node, error))
        {
          if (*error != NULL)
            return FALSE;
          continue;
        }
      order.text = g_strdup_printf (_ ("node %s is lost"), node->id);
      now = update (self, self->phase == GTORCH_RUN_JOINING ? join_without : go_on_without, &order,
                    error);
      g_free (order.text);
      return now != NULL;
    }
  return TRUE;
}

static gboolean
try_to_join (GTorchRunRendezvous *self, gboolean looks_for_lost, GError **error)
{
  g_autoptr (GTorchRunState) state = update (self, join, NULL, error);
  g_autofree gchar *text = NULL;
  gint place;

  if (state == NULL)
    return FALSE;
  if (state->nodes->len != self->n_seen)
    self->since = g_get_monotonic_time ();
  self->n_seen = state->nodes->len;
  place = gtorch_run_state_find (state, self->id);
  if (state->is_closed)
    gtorch_run_rendezvous_tell_end (self, state->status, state->reason);
  else if (place < 0 && is_taken (self, state))
    {
      text = g_strdup_printf (_ ("another node has --node-rank=%u"), self->order);
      gtorch_run_rendezvous_tell_end (self, 1, text);
    }
  else if (state->is_complete && place >= 0)
    {
      self->phase = GTORCH_RUN_MEMBER;
      self->round = state->round;
      self->order = (guint) place;
      g_ptr_array_set_size (self->beats, 0);
      gtorch_run_rendezvous_tell (self, GTORCH_RUN_JOINED, g_steal_pointer (&state), (guint) place,
                                  0, NULL);
    }
  else if (gtorch_run_seconds_since (self->begin) > self->options->join_timeout)
    {
      g_autoptr (GTorchRunState) left = update (self, leave_early, NULL, NULL);

      text = g_strdup_printf (_ ("%u of at least %u nodes have come in %g seconds"), self->n_seen,
                              self->options->min_nodes, self->options->join_timeout);
      gtorch_run_rendezvous_tell_end (self, 1, text);
    }
  else if (looks_for_lost)
    return look_for_lost (self, state, error);
  return TRUE;
}

static gboolean
watch (GTorchRunRendezvous *self, gboolean looks_for_lost, GError **error)
{
  g_autoptr (GTorchRunState) state = update (self, let_in, NULL, error);

  if (state == NULL)
    return FALSE;
  if (state->is_closed)
    gtorch_run_rendezvous_tell_end (self, state->status, state->reason);
  else if (state->round != self->round)
    {
      self->phase = GTORCH_RUN_IDLE;
      gtorch_run_rendezvous_tell (self, GTORCH_RUN_CHANGED, g_steal_pointer (&state), 0, 0, NULL);
    }
  else if (state->done->len == state->nodes->len)
    gtorch_run_rendezvous_tell_end (self, 0, "");
  else if (looks_for_lost)
    return look_for_lost (self, state, error);
  return TRUE;
}

/* --- what the thread does --- */

gboolean
gtorch_run_rounds_obey (GTorchRunRendezvous *self, const GTorchRunOrder *order, GError **error)
{
  static const Edit edits[] = {
    [GTORCH_RUN_FAIL] = fail, [GTORCH_RUN_FINISH] = finish, [GTORCH_RUN_LEAVE] = go_on_without
  };
  g_autoptr (GTorchRunState) state = NULL;

  if (order->kind == GTORCH_RUN_JOIN)
    {
      self->phase = GTORCH_RUN_JOINING;
      self->begin = self->since = g_get_monotonic_time ();
      self->n_seen = 0;
      return TRUE;
    }
  if (order->kind == GTORCH_RUN_LEAVE && self->phase == GTORCH_RUN_JOINING)
    state = update (self, leave_early, NULL, error);
  else if (self->phase == GTORCH_RUN_MEMBER || self->phase == GTORCH_RUN_DONE)
    {
      state = update (self, edits[order->kind], order, error);
      if (order->kind == GTORCH_RUN_FINISH)
        self->phase = GTORCH_RUN_DONE;
    }
  if (order->kind == GTORCH_RUN_LEAVE)
    {
      self->phase = GTORCH_RUN_OVER;
      gtorch_run_rendezvous_tell (self, GTORCH_RUN_ENDED, NULL, 0, order->status, order->text);
      return TRUE;
    }
  return state != NULL || *error == NULL;
}

gboolean
gtorch_run_rounds_look (GTorchRunRendezvous *self, GError **error)
{
  const gboolean is_time =
      gtorch_run_seconds_since (self->last_beat) >= self->options->keep_alive_interval
      || self->n_beats == 0;

  if (self->phase == GTORCH_RUN_OVER || self->phase == GTORCH_RUN_IDLE)
    return TRUE;
  if (is_time)
    {
      if (!show_alive (self, error))
        return FALSE;
      self->last_beat = g_get_monotonic_time ();
    }
  return self->phase == GTORCH_RUN_JOINING ? try_to_join (self, is_time, error)
                                           : watch (self, is_time, error);
}
