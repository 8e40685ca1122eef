/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The table of a TcpStore, in a thread with a main context of its own, which serves all connections. A
 * connection first proves that it knows the token, then sends one request after the other. A request that
 * has to wait is tried again after each change. */

#include "config.h"

#include <gio/gio.h>
#include <glib/gi18n-lib.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "base/gtorch-error.h"
#include "base/gtorch-text-private.h"
#include "distributed/gtorch-store-private.h"

#define GREETING_TIME 10  /* seconds that a connection has for its proof */
#define ACCEPT_PAUSE  100 /* milliseconds after a connection that could not be taken */

typedef struct
{
  gint ref_count;
  GTorchStoreServer *server;
  GSocketConnection *connection;
  GCancellable *cancellable; /* of its reads and writes */
  GSource *timeout;          /* until it has proved itself */
  guint8 ours[GTORCH_STORE_GREETING], theirs[GTORCH_STORE_GREETING];
  guint8 proof[GTORCH_STORE_PROOF];
  guint8 header[GTORCH_STORE_HEADER];
  guint8 *body;
  gsize length;
  GTorchStoreParsed pending; /* variant is NULL if none is */
  GQueue output;             /* GBytes; the first is being written */
} Peer;

struct _GTorchStoreServer
{
  GThread *thread;
  GMainContext *context;
  GMainLoop *loop;
  GSocketListener *listener;
  GCancellable *cancellable; /* of accepting */
  GTorchStoreTable *table;
  GPtrArray *peers;
  gchar *token;
  guint16 port;
};

static void
peer_unref (Peer *peer)
{
  if (--peer->ref_count > 0)
    return;
  g_object_unref (peer->connection);
  g_object_unref (peer->cancellable);
  g_free (peer->body);
  gtorch_store_parsed_clear (&peer->pending);
  g_queue_clear_full (&peer->output, (GDestroyNotify) g_bytes_unref);
  g_free (peer);
}

static void
stop_timeout (Peer *peer)
{
  if (peer->timeout == NULL)
    return;
  g_source_destroy (peer->timeout);
  g_clear_pointer (&peer->timeout, g_source_unref);
}

/* Its reads and writes end with an error and drop their references. */
static void
close_peer (Peer *peer)
{
  GTorchStoreServer *server = g_steal_pointer (&peer->server);

  stop_timeout (peer);
  g_cancellable_cancel (peer->cancellable);
  if (server != NULL)
    g_ptr_array_remove_fast (server->peers, peer);
}

static void write_next (Peer *peer);

static void
on_written (GObject *stream, GAsyncResult *result, gpointer data)
{
  Peer *peer = data;

  if (!g_output_stream_write_all_finish (G_OUTPUT_STREAM (stream), result, NULL, NULL))
    close_peer (peer);
  else
    {
      g_bytes_unref (g_queue_pop_head (&peer->output));
      write_next (peer);
    }
  peer_unref (peer);
}

static void
write_next (Peer *peer)
{
  GBytes *bytes = g_queue_peek_head (&peer->output);
  gconstpointer data;
  gsize size;

  if (bytes == NULL)
    return;
  data = g_bytes_get_data (bytes, &size);
  peer->ref_count++;
  g_output_stream_write_all_async (g_io_stream_get_output_stream (G_IO_STREAM (peer->connection)),
                                   data, size, G_PRIORITY_DEFAULT, peer->cancellable, on_written,
                                   peer);
}

/* Takes the bytes. */
static void
send_bytes (Peer *peer, GBytes *bytes)
{
  g_queue_push_tail (&peer->output, bytes);
  if (g_queue_get_length (&peer->output) == 1)
    write_next (peer);
}

/* Returns whether the request has been answered, with an error or without. */
static gboolean
answer (Peer *peer, const GTorchStoreRequest *request)
{
  g_auto (GTorchStoreReply) reply = { 0 };
  g_autoptr (GError) error = NULL;

  if (gtorch_store_table_apply (peer->server->table, request, &reply, &error)
      == GTORCH_STORE_PENDING)
    return FALSE;
  send_bytes (peer, gtorch_store_frame_reply (&reply, error));
  return TRUE;
}

static void
retry_pending (GTorchStoreServer *self)
{
  guint i;

  for (i = 0; i < self->peers->len; i++)
    {
      Peer *peer = self->peers->pdata[i];

      if (peer->pending.variant != NULL && answer (peer, &peer->pending.request))
        gtorch_store_parsed_clear (&peer->pending);
    }
}

static void
handle (Peer *peer, GBytes *body)
{
  g_auto (GTorchStoreParsed) parsed = { 0 };
  GTorchStoreServer *server = peer->server;

  if (peer->pending.variant != NULL || !gtorch_store_parse_request (body, &parsed, NULL))
    {
      close_peer (peer);
      return;
    }
  if (!answer (peer, &parsed.request))
    {
      peer->pending = parsed;
      parsed = (GTorchStoreParsed){ 0 };
    }
  else if (gtorch_store_command_changes (parsed.request.command))
    retry_pending (server);
}

static void read_header (Peer *peer);

typedef void (*ReadFunc) (Peer *peer);

/* What a read brought, and whether the connection goes on. Takes the reference of the read. */
static void
end_read (GObject *stream, GAsyncResult *result, Peer *peer, gsize size, ReadFunc then)
{
  gsize n = 0;

  if (!g_input_stream_read_all_finish (G_INPUT_STREAM (stream), result, &n, NULL) || n < size
      || peer->server == NULL)
    close_peer (peer);
  else
    then (peer);
  peer_unref (peer);
}

static void
read_part (Peer *peer, gpointer data, gsize size, GAsyncReadyCallback callback)
{
  peer->ref_count++;
  g_input_stream_read_all_async (g_io_stream_get_input_stream (G_IO_STREAM (peer->connection)),
                                 data, size, G_PRIORITY_DEFAULT, peer->cancellable, callback, peer);
}

static void
use_body (Peer *peer)
{
  g_autoptr (GBytes) body = g_bytes_new_take (g_steal_pointer (&peer->body), peer->length);

  handle (peer, body);
  if (peer->server != NULL)
    read_header (peer);
}

static void
on_body (GObject *stream, GAsyncResult *result, gpointer data)
{
  end_read (stream, result, data, ((Peer *) data)->length, use_body);
}

static void
use_header (Peer *peer)
{
  const gssize length = gtorch_store_frame_length (peer->header, NULL);

  peer->length = length;
  peer->body = length <= 0 ? NULL : g_try_malloc (length);
  if (peer->body == NULL)
    close_peer (peer);
  else
    read_part (peer, peer->body, length, on_body);
}

static void
on_header (GObject *stream, GAsyncResult *result, gpointer data)
{
  end_read (stream, result, data, GTORCH_STORE_HEADER, use_header);
}

static void
read_header (Peer *peer)
{
  read_part (peer, peer->header, GTORCH_STORE_HEADER, on_header);
}

static void
use_proof (Peer *peer)
{
  guint8 expected[GTORCH_STORE_PROOF];

  gtorch_store_proof (peer->server->token, "client", peer->ours, peer->theirs, expected);
  if (!gtorch_store_proofs_equal (peer->proof, expected))
    {
      close_peer (peer);
      return;
    }
  stop_timeout (peer);
  gtorch_store_proof (peer->server->token, "server", peer->ours, peer->theirs, expected);
  send_bytes (peer, g_bytes_new (expected, sizeof expected));
  read_header (peer);
}

static void
on_proof (GObject *stream, GAsyncResult *result, gpointer data)
{
  end_read (stream, result, data, GTORCH_STORE_PROOF, use_proof);
}

static void
use_greeting (Peer *peer)
{
  if (gtorch_store_is_greeting (peer->theirs))
    read_part (peer, peer->proof, sizeof peer->proof, on_proof);
  else
    close_peer (peer);
}

static void
on_greeting (GObject *stream, GAsyncResult *result, gpointer data)
{
  end_read (stream, result, data, GTORCH_STORE_GREETING, use_greeting);
}

static gboolean
on_timeout (gpointer data)
{
  close_peer (data);
  return G_SOURCE_REMOVE;
}

static void
add_peer (GTorchStoreServer *self, GSocketConnection *connection)
{
  Peer *peer = g_new0 (Peer, 1);

  peer->ref_count = 1;
  peer->server = self;
  peer->connection = connection;
  peer->cancellable = g_cancellable_new ();
  g_queue_init (&peer->output);
  g_tcp_connection_set_graceful_disconnect (G_TCP_CONNECTION (connection), FALSE);
  g_socket_set_option (g_socket_connection_get_socket (connection), IPPROTO_TCP, TCP_NODELAY, 1,
                       NULL);
  peer->timeout = g_timeout_source_new_seconds (GREETING_TIME);
  g_source_set_callback (peer->timeout, on_timeout, peer, NULL);
  g_source_attach (peer->timeout, self->context);
  g_ptr_array_add (self->peers, peer);
  gtorch_store_greeting (peer->ours);
  send_bytes (peer, g_bytes_new (peer->ours, sizeof peer->ours));
  read_part (peer, peer->theirs, sizeof peer->theirs, on_greeting);
}

static void on_accepted (GObject *listener, GAsyncResult *result, gpointer data);

static gboolean
accept_next (gpointer data)
{
  GTorchStoreServer *self = data;

  g_socket_listener_accept_async (self->listener, self->cancellable, on_accepted, self);
  return G_SOURCE_REMOVE;
}

static void
accept_later (GTorchStoreServer *self)
{
  g_autoptr (GSource) source = g_timeout_source_new (ACCEPT_PAUSE);

  g_source_set_callback (source, accept_next, self, NULL);
  g_source_attach (source, self->context);
}

static void
on_accepted (GObject *listener, GAsyncResult *result, gpointer data)
{
  GTorchStoreServer *self = data;
  g_autoptr (GError) error = NULL;
  GSocketConnection *connection =
      g_socket_listener_accept_finish (G_SOCKET_LISTENER (listener), result, NULL, &error);

  if (connection != NULL)
    {
      add_peer (self, connection);
      accept_next (self);
    }
  else if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    g_main_loop_quit (self->loop);
  else
    accept_later (self); /* too many files are open, say */
}

static gpointer
serve (gpointer data)
{
  GTorchStoreServer *self = data;

  g_main_context_push_thread_default (self->context);
  accept_next (self);
  g_main_loop_run (self->loop);
  while (self->peers->len > 0)
    close_peer (self->peers->pdata[0]);
  /* their reads and writes end */
  while (g_main_context_iteration (self->context, FALSE))
    ;
  g_main_context_pop_thread_default (self->context);
  return NULL;
}

/* Only of this host's if the name is one of loopback's. */
static gboolean
listen_to (GTorchStoreServer *self, const gchar *host, guint16 port, GError **error)
{
  g_autoptr (GInetAddress) address = g_inet_address_new_from_string (host);
  const gboolean is_loopback = g_ascii_strcasecmp (host, "localhost") == 0
                               || (address != NULL && g_inet_address_get_is_loopback (address));
  g_autoptr (GSocketAddress) wanted = NULL, effective = NULL;

  if (!is_loopback && *self->token == '\0')
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("tcp_store: the host is “%s”, which others can reach; such a store needs a "
                      "token"),
                   host);
      return FALSE;
    }
  if (!is_loopback)
    g_clear_object (&address);
  if (address == NULL)
    address = is_loopback ? g_inet_address_new_loopback (G_SOCKET_FAMILY_IPV4)
                          : g_inet_address_new_any (G_SOCKET_FAMILY_IPV4);
  wanted = g_inet_socket_address_new (address, port);
  if (!g_socket_listener_add_address (self->listener, wanted, G_SOCKET_TYPE_STREAM,
                                      G_SOCKET_PROTOCOL_TCP, NULL, &effective, error))
    {
      g_prefix_error (error, _ ("tcp_store: port %u: "), port);
      return FALSE;
    }
  self->port = g_inet_socket_address_get_port (G_INET_SOCKET_ADDRESS (effective));
  return TRUE;
}

GTorchStoreServer *
gtorch_store_server_new (const gchar *host, guint16 port, const gchar *token, GError **error)
{
  GTorchStoreServer *self = g_new0 (GTorchStoreServer, 1);

  self->token = g_strdup (token != NULL ? token : "");
  self->context = g_main_context_new ();
  self->loop = g_main_loop_new (self->context, FALSE);
  self->listener = g_socket_listener_new ();
  self->cancellable = g_cancellable_new ();
  self->table = gtorch_store_table_new ();
  self->peers = g_ptr_array_new_with_free_func ((GDestroyNotify) peer_unref);
  g_socket_listener_set_backlog (self->listener, 1024);
  if (listen_to (self, host, port, error))
    self->thread = g_thread_try_new ("gtorch-store", serve, self, error);
  if (self->thread == NULL)
    g_clear_pointer (&self, gtorch_store_server_free);
  return self;
}

guint16
gtorch_store_server_get_port (GTorchStoreServer *self)
{
  return self->port;
}

static gboolean
stop (gpointer data)
{
  GTorchStoreServer *self = data;

  g_cancellable_cancel (self->cancellable);
  return G_SOURCE_REMOVE;
}

void
gtorch_store_server_free (GTorchStoreServer *self)
{
  if (self->thread != NULL)
    {
      /* Cancelled from another thread, the source of the listener may be destroyed here while its
       * handler of `cancelled` is running there: GLib 2.74 then keeps the source for ever. */
      g_autoptr (GSource) source = g_idle_source_new ();

      g_source_set_priority (source, G_PRIORITY_DEFAULT);
      g_source_set_callback (source, stop, self, NULL);
      g_source_attach (source, self->context);
      g_thread_join (self->thread);
    }
  g_socket_listener_close (self->listener);
  g_object_unref (self->listener);
  g_object_unref (self->cancellable);
  g_ptr_array_unref (self->peers);
  gtorch_store_table_free (self->table);
  g_main_loop_unref (self->loop);
  g_main_context_unref (self->context);
  g_free (self->token);
  g_free (self);
}
