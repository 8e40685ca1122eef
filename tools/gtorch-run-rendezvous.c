/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The thread of the rendezvous, and the store by which it meets the other nodes: see
 * gtorch-run-rounds.c. */

#include "config.h"

#include "gtorch-run-rendezvous-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>
#include <unistd.h>

#define STORE_TIMEOUT 30 /* seconds for an answer */

static void
order_free (gpointer data)
{
  GTorchRunOrder *order = data;

  g_free (order->text);
  g_free (order);
}

static void
beat_free (gpointer data)
{
  GTorchRunBeat *beat = data;

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

void
gtorch_run_rendezvous_tell (GTorchRunRendezvous *self, GTorchRunEventKind kind,
                            GTorchRunState *state, guint node, gint status, const gchar *text)
{
  Report *report = g_new (Report, 1);

  *report = (Report){ self, { kind, state, node, status, g_strdup (text) } };
  g_idle_add_full (G_PRIORITY_DEFAULT, deliver, report, report_free);
}

void
gtorch_run_rendezvous_tell_end (GTorchRunRendezvous *self, gint status, const gchar *text)
{
  if (self->phase != GTORCH_RUN_OVER)
    gtorch_run_rendezvous_tell (self, GTORCH_RUN_ENDED, NULL, 0, status, text);
  self->phase = GTORCH_RUN_OVER;
}

/* --- the thread --- */

/* The store goes with its host, which waits for the others to have seen the end. */
static void
part (GTorchRunRendezvous *self)
{
  const gint64 begin = g_get_monotonic_time ();
  g_autofree gchar *key = g_strconcat ("bye/", self->id, NULL);
  g_autoptr (GBytes) yes = g_bytes_new_static ("1", 1), bytes = NULL;
  g_autoptr (GTorchRunState) state = NULL;
  guint i;

  if (self->store == NULL || !gtorch_store_set (self->store, key, yes, NULL, NULL)
      || !self->is_host)
    return;
  g_cancellable_reset (self->cancellable);
  state = gtorch_run_rounds_read (self, &bytes, NULL);
  for (i = 0; state != NULL && i < state->nodes->len; i++)
    {
      g_autofree gchar *other =
          g_strconcat ("bye/", ((GTorchRunNode *) state->nodes->pdata[i])->id, NULL);
      const gchar *const keys[] = { other, NULL };

      /* one that is lost never says so */
      while (!gtorch_run_is_hurried ()
             && gtorch_run_seconds_since (begin) < self->options->close_timeout
             && !gtorch_store_wait (self->store, keys, 0.2, NULL, NULL))
        ;
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
  connection =
      g_socket_client_connect_to_host (client, options->host, (guint16) options->port, NULL, NULL);
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
  const gboolean may_serve =
      options->is_host == 1 || (options->is_host < 0 && is_here (options->host));
  g_autoptr (GError) local = NULL;
  g_autofree gchar *prefix = g_strconcat ("gtorch-run/", options->run_id, NULL);

  self->address = find_address (options);
  self->id = g_strdup_printf ("%s_%s_%d", g_get_host_name (), self->address, getpid ());
  if (options->max_nodes == 1 && !is_here (options->host))
    return gtorch_run_refuse (error,
                              _ ("--rdzv-endpoint is at “%s”, which is no address of this "
                                 "host"),
                              options->host);
  if (may_serve)
    self->tcp_store = gtorch_tcp_store_new (options->host, options->port, 0, TRUE, STORE_TIMEOUT,
                                            FALSE, self->token, self->cancellable, &local);
  self->is_host = self->tcp_store != NULL;
  if (self->is_host && options->node_rank < 0)
    self->order--; /* the first one of those that come */
  /* of several nodes of one host, one serves */
  if (self->tcp_store == NULL
      && (!may_serve
          || (options->is_host < 0
              && g_error_matches (local, G_IO_ERROR, G_IO_ERROR_ADDRESS_IN_USE))))
    {
      g_clear_error (&local);
      self->tcp_store =
          gtorch_tcp_store_new (options->host, options->port, 0, FALSE, options->join_timeout,
                                FALSE, self->token, self->cancellable, &local);
    }
  if (self->tcp_store == NULL)
    {
      if (self->token == NULL && options->max_nodes > 1)
        g_prefix_error (&local,
                        _ ("GTORCH_STORE_TOKEN, a secret that all nodes know, is not set: "));
      g_propagate_error (error, g_steal_pointer (&local));
      return FALSE;
    }
  gtorch_store_set_timeout (GTORCH_STORE (self->tcp_store), STORE_TIMEOUT, NULL);
  g_atomic_pointer_set (&self->store,
                        GTORCH_STORE (
                            gtorch_prefix_store_new (prefix, GTORCH_STORE (self->tcp_store))));
  self->store_address =
      g_strdup_printf (strchr (options->host, ':') != NULL ? "[%s]:%u" : "%s:%u", options->host,
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
      GTorchRunOrder *order =
          g_async_queue_timeout_pop (self->orders,
                                     (guint64) (self->options->monitor_interval * G_USEC_PER_SEC));

      if (order != NULL && order->kind == GTORCH_RUN_STOP)
        {
          order_free (order);
          break;
        }
      if (order != NULL)
        is_well = gtorch_run_rounds_obey (self, order, &error);
      g_clear_pointer (&order, order_free);
      is_well = is_well && gtorch_run_rounds_look (self, &error);
    }
  if (is_well)
    part (self);
  else if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    {
      /* it was told to leave before it had come */
      GTorchRunOrder *order = g_async_queue_pop (self->orders);

      for (; order->kind != GTORCH_RUN_LEAVE && order->kind != GTORCH_RUN_STOP;
           order = g_async_queue_pop (self->orders))
        order_free (order);
      gtorch_run_rendezvous_tell_end (self, order->status, order->text);
      order_free (order);
    }
  else
    gtorch_run_rendezvous_tell_end (self, 1, error->message);
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
give_order (GTorchRunRendezvous *self, GTorchRunOrderKind kind, gint status, const gchar *text)
{
  GTorchRunOrder *order = g_new (GTorchRunOrder, 1);

  *order = (GTorchRunOrder){ kind, status, g_strdup (text), NULL };
  g_async_queue_push (self->orders, order);
}

void
gtorch_run_rendezvous_free (GTorchRunRendezvous *self)
{
  give_order (self, GTORCH_RUN_STOP, 0, NULL);
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
  give_order (self, GTORCH_RUN_JOIN, 0, NULL);
}

void
gtorch_run_rendezvous_fail (GTorchRunRendezvous *self, gint status, const gchar *text)
{
  give_order (self, GTORCH_RUN_FAIL, status, text);
}

void
gtorch_run_rendezvous_done (GTorchRunRendezvous *self)
{
  give_order (self, GTORCH_RUN_FINISH, 0, NULL);
}

void
gtorch_run_rendezvous_leave (GTorchRunRendezvous *self, gint status, const gchar *text)
{
  /* it may be waiting for the store */
  if (g_atomic_pointer_get (&self->store) == NULL)
    g_cancellable_cancel (self->cancellable);
  give_order (self, GTORCH_RUN_LEAVE, status, text);
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
