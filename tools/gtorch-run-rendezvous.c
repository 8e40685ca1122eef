/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* How nodes agree on who takes part. Each runs this in a thread, which looks at the state that all share in the
 * store, changes it, and tells the agent of what has become of it.
 *
 * A round begins with no nodes. Each adds itself. When the greatest number has come, or all that are known to
 * come, or enough have come and no further one within the time of the last call, a node marks the round as
 * complete; ranks follow from the order of the nodes. The round ends when a worker fails (the number of restarts
 * grows with it), when a node no longer shows that it is alive, or when another one wants to join and there
 * is room: whoever notices replaces the state by that of the next round, without nodes, and all of them join
 * again. When each node has marked itself as done, the job is over; when it cannot go on, the state is closed
 * with a status and a reason, which are those of all nodes.
 *
 * Clocks of different hosts are not compared: a node is alive as long as its counter changes. */

#include "config.h"

#include "gtorch-run-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>
#include <unistd.h>

#define STORE_TIMEOUT 30 /* seconds for an answer */

typedef enum
{
  IDLE,
  JOINING,
  MEMBER,
  DONE,  /* the workers of this node have ended */
  ENDED, /* the agent knows the end */
} Phase;

typedef struct
{
  gchar *id;
  gint64 count, time; /* the last value of its counter, and when it was seen first */
} Beat;

struct _GTorchRunRendezvous
{
  const GTorchRunOptions *options;
  GTorchRunEventFunc func;
  gpointer user_data;
  GThread *thread;
  GAsyncQueue *orders;
  GCancellable *cancellable;
  gchar *id, *address, *store_address, *token;
  GTorchTcpStore *tcp_store;
  GTorchStore *store; /* its part for this job */
  gboolean is_host;
  Phase phase;
  guint round, order;
  guint n_seen;         /* nodes that have come */
  gint64 since;         /* when the last one came */
  gint64 begin;         /* of joining */
  gint64 last_beat;
  gint64 n_beats;
  GPtrArray *beats; /* Beat, of the others */
};

typedef enum
{
  JOIN,
  FAIL,
  FINISH,
  LEAVE,
  STOP,
} OrderKind;

typedef struct
{
  OrderKind kind;
  gint status;
  gchar *text;
  const gchar *lost; /* the node that is, if another one says so */
} Order;

static void
order_free (gpointer data)
{
  Order *order = data;

  g_free (order->text);
  g_free (order);
}

static void
beat_free (gpointer data)
{
  Beat *beat = data;

  g_free (beat->id);
  g_free (beat);
}

/* --- events --- */

typedef struct
{
  GTorchRunRendezvous *self;
  GTorchRunEvent event;
} Report;

static void
report_free (gpointer data)
{
  Report *report = data;

  g_clear_pointer (&report->event.state, gtorch_run_state_free);
  g_free (report->event.text);
  g_free (report);
}

static gboolean
deliver (gpointer data)
{
  const Report *report = data;

  report->self->func (&report->event, report->self->user_data);
  return G_SOURCE_REMOVE;
}

/* Takes the state. */
static void
tell (GTorchRunRendezvous *self, GTorchRunEventKind kind, GTorchRunState *state, guint node,
      gint status, const gchar *text)
{
  Report *report = g_new (Report, 1);

  *report = (Report){ self, { kind, state, node, status, g_strdup (text) } };
  g_idle_add_full (G_PRIORITY_DEFAULT, deliver, report, report_free);
}

static void
tell_end (GTorchRunRendezvous *self, gint status, const gchar *text)
{
  if (self->phase != ENDED)
    tell (self, GTORCH_RUN_ENDED, NULL, 0, status, text);
  self->phase = ENDED;
}

/* --- the state --- */

static GTorchRunState *
read_state (GTorchRunRendezvous *self, GBytes **bytes, GError **error)
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
  g_autoptr (GTorchRunState) state = read_state (self, &current, error);

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

static gdouble
seconds_since (gint64 time)
{
  return (gdouble) (g_get_monotonic_time () - time) / G_USEC_PER_SEC;
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
          && seconds_since (self->since) < options->last_call_timeout))
    return FALSE;
  gtorch_run_state_complete (state);
  return TRUE;
}

static gboolean
leave_early (GTorchRunRendezvous *self, GTorchRunState *state, gconstpointer data)
{
  if (state->is_complete)
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

/* Ends the round without a node that is lost, or goes: an Order. Nobody goes on without the store. */
static gboolean
go_on_without (GTorchRunRendezvous *self, GTorchRunState *state, gconstpointer data)
{
  const Order *order = data;

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
  const Order *order = data;

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
  gtorch_run_state_remove (state, ((const Order *) data)->lost);
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

static Beat *
find_beat (GTorchRunRendezvous *self, const gchar *id)
{
  Beat *beat;
  guint i;

  for (i = 0; i < self->beats->len; i++)
    if (strcmp (((Beat *) self->beats->pdata[i])->id, id) == 0)
      return self->beats->pdata[i];
  beat = g_new (Beat, 1);
  *beat = (Beat){ g_strdup (id), -1, g_get_monotonic_time () };
  g_ptr_array_add (self->beats, beat);
  return beat;
}

static gboolean
is_lost (GTorchRunRendezvous *self, const GTorchRunNode *node, GError **error)
{
  const GTorchRunOptions *options = self->options;
  g_autofree gchar *key = beat_key (node->id);
  Beat *beat = find_beat (self, node->id);
  gint64 count;

  /* reads it as a number, by adding none */
  if (!gtorch_store_add (self->store, key, 0, &count, self->cancellable, error))
    return FALSE;
  if (count != beat->count)
    {
      beat->count = count;
      beat->time = g_get_monotonic_time ();
    }
  return seconds_since (beat->time)
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
      Order order = { LEAVE, 1, NULL, node->id };

      if (strcmp (node->id, self->id) == 0 || gtorch_run_state_has (state->done, node->id))
        continue;
      if (!is_lost (self, node, error))
        {
          if (*error != NULL)
            return FALSE;
          continue;
        }
      order.text = g_strdup_printf (_ ("node %s is lost"), node->id);
      now = update (self, self->phase == JOINING ? join_without : go_on_without, &order, error);
      g_free (order.text);
      return now != NULL;
    }
  return TRUE;
}

/* A static rendezvous has one node for each place. */
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
    tell_end (self, state->status, state->reason);
  else if (is_taken (self, state))
    {
      text = g_strdup_printf (_ ("another node has --node-rank=%u"), self->order);
      tell_end (self, 1, text);
    }
  else if (state->is_complete && place >= 0)
    {
      self->phase = MEMBER;
      self->round = state->round;
      self->order = (guint) place;
      g_ptr_array_set_size (self->beats, 0);
      tell (self, GTORCH_RUN_JOINED, g_steal_pointer (&state), (guint) place, 0, NULL);
    }
  else if (seconds_since (self->begin) > self->options->join_timeout)
    {
      g_autoptr (GTorchRunState) left = update (self, leave_early, NULL, NULL);

      text = g_strdup_printf (_ ("%u of at least %u nodes have come in %g seconds"), self->n_seen,
                              self->options->min_nodes, self->options->join_timeout);
      tell_end (self, 1, text);
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
    tell_end (self, state->status, state->reason);
  else if (state->round != self->round)
    {
      self->phase = IDLE;
      tell (self, GTORCH_RUN_CHANGED, g_steal_pointer (&state), 0, 0, NULL);
    }
  else if (state->done->len == state->nodes->len)
    tell_end (self, 0, "");
  else if (looks_for_lost)
    return look_for_lost (self, state, error);
  return TRUE;
}

/* --- the thread --- */

static gboolean
obey (GTorchRunRendezvous *self, const Order *order, GError **error)
{
  static const Edit edits[] = { [FAIL] = fail, [FINISH] = finish, [LEAVE] = go_on_without };
  g_autoptr (GTorchRunState) state = NULL;

  if (order->kind == JOIN)
    {
      self->phase = JOINING;
      self->begin = self->since = g_get_monotonic_time ();
      self->n_seen = 0;
      return TRUE;
    }
  if (order->kind == LEAVE && self->phase == JOINING)
    state = update (self, leave_early, NULL, error);
  else if (self->phase == MEMBER || self->phase == DONE)
    {
      state = update (self, edits[order->kind], order, error);
      if (order->kind == FINISH)
        self->phase = DONE;
    }
  if (order->kind == LEAVE)
    {
      self->phase = ENDED;
      tell (self, GTORCH_RUN_ENDED, NULL, 0, order->status, order->text);
      return TRUE;
    }
  return state != NULL || *error == NULL;
}

static gboolean
look (GTorchRunRendezvous *self, GError **error)
{
  const gboolean is_time
      = seconds_since (self->last_beat) >= self->options->keep_alive_interval || self->n_beats == 0;

  if (self->phase == ENDED || self->phase == IDLE)
    return TRUE;
  if (is_time)
    {
      if (!show_alive (self, error))
        return FALSE;
      self->last_beat = g_get_monotonic_time ();
    }
  return self->phase == JOINING ? try_to_join (self, is_time, error)
                                : watch (self, is_time, error);
}

/* The store goes with its host, which waits for the others to have seen the end. */
static void
part (GTorchRunRendezvous *self)
{
  const gint64 begin = g_get_monotonic_time ();
  g_autofree gchar *key = g_strconcat ("bye/", self->id, NULL);
  g_autoptr (GBytes) yes = g_bytes_new_static ("1", 1), bytes = NULL;
  g_autoptr (GTorchRunState) state = NULL;
  guint i;

  if (self->store == NULL || !gtorch_store_set (self->store, key, yes, NULL, NULL) || !self->is_host)
    return;
  g_cancellable_reset (self->cancellable);
  state = read_state (self, &bytes, NULL);
  for (i = 0; state != NULL && i < state->nodes->len; i++)
    {
      g_autofree gchar *other
          = g_strconcat ("bye/", ((GTorchRunNode *) state->nodes->pdata[i])->id, NULL);
      const gchar *const keys[] = { other, NULL };
      const gdouble rest = self->options->close_timeout - seconds_since (begin);

      /* one that is lost never says so */
      gtorch_store_wait (self->store, keys, MAX (rest, 0.01), NULL, NULL);
    }
}

/* Whether an address is one of this host. */
static gboolean
is_here (const gchar *host)
{
  g_autoptr (GResolver) resolver = g_resolver_get_default ();
  GList *addresses = g_resolver_lookup_by_name (resolver, host, NULL, NULL);
  gboolean result = FALSE;
  const GList *item;

  for (item = addresses; item != NULL && !result; item = item->next)
    {
      g_autoptr (GSocket) socket = g_socket_new (g_inet_address_get_family (item->data),
                                                 G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, NULL);
      g_autoptr (GSocketAddress) address = g_inet_socket_address_new (item->data, 0);

      result = socket != NULL && g_socket_bind (socket, address, FALSE, NULL);
    }
  g_resolver_free_addresses (addresses);
  return result;
}

/* By which others reach this host: that which it has on the way to the store. */
static gchar *
find_address (const GTorchRunOptions *options)
{
  g_autoptr (GSocketClient) client = g_socket_client_new ();
  g_autoptr (GSocketConnection) connection = NULL;
  g_autoptr (GSocketAddress) local = NULL;

  if (options->local_addr != NULL)
    return g_strdup (options->local_addr);
  if (options->max_nodes == 1)
    return g_strdup (options->master_addr != NULL ? options->master_addr : "127.0.0.1");
  g_socket_client_set_socket_type (client, G_SOCKET_TYPE_DATAGRAM);
  g_socket_client_set_protocol (client, G_SOCKET_PROTOCOL_UDP);
  g_socket_client_set_enable_proxy (client, FALSE);
  g_socket_client_set_family (client, G_SOCKET_FAMILY_IPV4); /* as the store is served */
  connection = g_socket_client_connect_to_host (client, options->host, (guint16) options->port, NULL,
                                                NULL);
  if (connection != NULL)
    local = g_socket_connection_get_local_address (connection, NULL);
  if (local != NULL)
    return g_inet_address_to_string (
        g_inet_socket_address_get_address (G_INET_SOCKET_ADDRESS (local)));
  return g_strdup (g_get_host_name ());
}

static gchar *
make_token (void)
{
  g_autofree gchar *a = g_uuid_string_random (), *b = g_uuid_string_random ();

  return g_strconcat (a, b, NULL);
}

static gboolean
open_store (GTorchRunRendezvous *self, GError **error)
{
  const GTorchRunOptions *options = self->options;
  const gboolean may_serve
      = options->is_host == 1 || (options->is_host < 0 && is_here (options->host));
  g_autoptr (GError) local = NULL;
  g_autofree gchar *prefix = g_strconcat ("gtorch-run/", options->run_id, NULL);

  self->address = find_address (options);
  self->id = g_strdup_printf ("%s_%s_%d", g_get_host_name (), self->address, getpid ());
  if (may_serve)
    self->tcp_store = gtorch_tcp_store_new (options->host, options->port, 0, TRUE, STORE_TIMEOUT,
                                            FALSE, self->token, self->cancellable, &local);
  self->is_host = self->tcp_store != NULL;
  if (self->is_host && options->node_rank < 0)
    self->order--; /* the first one of those that come */
  /* of several nodes of one host, one serves */
  if (self->tcp_store == NULL
      && (!may_serve
          || (options->is_host < 0 && g_error_matches (local, G_IO_ERROR, G_IO_ERROR_ADDRESS_IN_USE))))
    {
      g_clear_error (&local);
      self->tcp_store = gtorch_tcp_store_new (options->host, options->port, 0, FALSE,
                                              options->join_timeout, FALSE, self->token,
                                              self->cancellable, &local);
    }
  if (self->tcp_store == NULL)
    {
      if (self->token == NULL && options->max_nodes > 1)
        g_prefix_error (&local, _ ("GTORCH_STORE_TOKEN, a secret that all nodes know, is not set: "));
      g_propagate_error (error, g_steal_pointer (&local));
      return FALSE;
    }
  gtorch_store_set_timeout (GTORCH_STORE (self->tcp_store), STORE_TIMEOUT, NULL);
  g_atomic_pointer_set (
      &self->store, GTORCH_STORE (gtorch_prefix_store_new (prefix, GTORCH_STORE (self->tcp_store))));
  self->store_address
      = g_strdup_printf (strchr (options->host, ':') != NULL ? "[%s]:%u" : "%s:%u", options->host,
                         gtorch_tcp_store_get_port (self->tcp_store));
  return TRUE;
}

static gpointer
run (gpointer data)
{
  GTorchRunRendezvous *self = data;
  g_autoptr (GError) error = NULL;
  gboolean is_well = open_store (self, &error);

  while (is_well)
    {
      Order *order = g_async_queue_timeout_pop (
          self->orders, (guint64) (self->options->monitor_interval * G_USEC_PER_SEC));

      if (order != NULL && order->kind == STOP)
        {
          order_free (order);
          break;
        }
      if (order != NULL)
        is_well = obey (self, order, &error);
      g_clear_pointer (&order, order_free);
      is_well = is_well && look (self, &error);
    }
  if (is_well)
    part (self);
  else if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    {
      Order *order = g_async_queue_pop (self->orders);

      tell_end (self, order->status, order->text);
      order_free (order);
    }
  else
    tell_end (self, 1, error->message);
  return NULL;
}

GTorchRunRendezvous *
gtorch_run_rendezvous_new (const GTorchRunOptions *options, GTorchRunEventFunc func,
                           gpointer user_data)
{
  GTorchRunRendezvous *self = g_new0 (GTorchRunRendezvous, 1);
  const gchar *token = g_getenv ("GTORCH_STORE_TOKEN");

  self->options = options;
  self->func = func;
  self->user_data = user_data;
  self->orders = g_async_queue_new_full (order_free);
  self->cancellable = g_cancellable_new ();
  self->beats = g_ptr_array_new_with_free_func (beat_free);
  self->order = options->node_rank >= 0 ? (guint) options->node_rank : G_MAXUINT32;
  self->token = token != NULL && *token != '\0' ? g_strdup (token)
                : options->max_nodes == 1       ? make_token ()
                                                : NULL;
  self->thread = g_thread_new ("rendezvous", run, self);
  return self;
}

static void
give_order (GTorchRunRendezvous *self, OrderKind kind, gint status, const gchar *text)
{
  Order *order = g_new (Order, 1);

  *order = (Order){ kind, status, g_strdup (text), NULL };
  g_async_queue_push (self->orders, order);
}

void
gtorch_run_rendezvous_free (GTorchRunRendezvous *self)
{
  give_order (self, STOP, 0, NULL);
  g_thread_join (self->thread);
  g_async_queue_unref (self->orders);
  g_object_unref (self->cancellable);
  g_ptr_array_unref (self->beats);
  g_clear_object (&self->store);
  g_clear_object (&self->tcp_store);
  g_free (self->id);
  g_free (self->address);
  g_free (self->store_address);
  g_free (self->token);
  g_free (self);
}

void
gtorch_run_rendezvous_join (GTorchRunRendezvous *self)
{
  give_order (self, JOIN, 0, NULL);
}

void
gtorch_run_rendezvous_fail (GTorchRunRendezvous *self, gint status, const gchar *text)
{
  give_order (self, FAIL, status, text);
}

void
gtorch_run_rendezvous_done (GTorchRunRendezvous *self)
{
  give_order (self, FINISH, 0, NULL);
}

void
gtorch_run_rendezvous_leave (GTorchRunRendezvous *self, gint status, const gchar *text)
{
  /* it may be waiting for the store */
  if (g_atomic_pointer_get (&self->store) == NULL)
    g_cancellable_cancel (self->cancellable);
  give_order (self, LEAVE, status, text);
}

GTorchStore *
gtorch_run_rendezvous_get_store (GTorchRunRendezvous *self)
{
  return self->store;
}

const gchar *
gtorch_run_rendezvous_get_address (GTorchRunRendezvous *self)
{
  return self->store_address;
}

const gchar *
gtorch_run_rendezvous_get_token (GTorchRunRendezvous *self)
{
  return self->token;
}
