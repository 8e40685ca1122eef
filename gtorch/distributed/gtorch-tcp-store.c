/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "distributed/gtorch-tcp-store.h"

#include <glib/gi18n-lib.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "base/gtorch-error.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-task-private.h"
#include "base/gtorch-text-private.h"
#include "distributed/gtorch-store-private.h"

/**
 * GTorchTcpStore:
 *
 * A store that one process serves to the others over TCP.
 *
 * One process, usually that of rank 0, creates the store with is_server, the others without; these try
 * again until the server is there. Whoever connects has to know the token: both sides prove that they do,
 * and it is not sent. What is stored is not encrypted. A server without a token listens only where no
 * other host can reach it.
 *
 * ```c
 * g_autoptr (GTorchTcpStore) store
 *     = gtorch_tcp_store_new ("node-1", 29500, 4, rank == 0, 30, TRUE, token, NULL, &error);
 * ```
 *
 * Each call takes a connection of its own if the others are busy, so that a thread that waits for a key
 * does not hold up another one. The keys go with the server: it should be the last process to drop the
 * store.
 *
 * Since: 0.1
 */

#define RETRY_PAUSE 50 /* milliseconds between attempts to connect */

struct _GTorchTcpStore
{
  GTorchStore parent_instance;
  gchar *host;
  guint port;
  gchar *token;
  GTorchStoreServer *server; /* NULL elsewhere */
  GMutex lock;
  GQueue idle; /* GSocketConnection */
};

G_DEFINE_TYPE (GTorchTcpStore, gtorch_tcp_store, GTORCH_TYPE_STORE)

typedef GTorchTcpStore Self;

static const GTorchField fields[] = {
  /**
   * GTorchTcpStore:host:
   *
   * The name or the address of the server's host.
   *
   * Since: 0.1
   */
  { "host", GTORCH_PROPERTY_STRING (gtorch_tcp_store_get_host, NULL) },
  /**
   * GTorchTcpStore:port:
   *
   * The port at which the server listens.
   *
   * Since: 0.1
   */
  { "port", GTORCH_PROPERTY_UINT (gtorch_tcp_store_get_port, NULL) },
  /**
   * GTorchTcpStore:is-server:
   *
   * Whether this process serves the store.
   *
   * Since: 0.1
   */
  { "is-server", GTORCH_PROPERTY_BOOL (gtorch_tcp_store_get_is_server, NULL) },
};

/* Waits until the socket can be read or written. */
static gboolean
wait_for (GSocket *socket, GIOCondition condition, gint64 deadline, GCancellable *cancellable,
          GError **error)
{
  const gint64 rest = deadline == G_MAXINT64 ? -1 : MAX (0, deadline - g_get_monotonic_time ());

  return g_socket_condition_timed_wait (socket, condition, rest, cancellable, error);
}

static gboolean
send_all (GSocket *socket, gconstpointer data, gsize size, gint64 deadline,
          GCancellable *cancellable, GError **error)
{
  gsize done = 0;

  while (done < size)
    {
      gssize n;

      if (!wait_for (socket, G_IO_OUT, deadline, cancellable, error))
        return FALSE;
      n = g_socket_send_with_blocking (socket, (const gchar *) data + done, size - done, FALSE,
                                       cancellable, error);
      if (n > 0)
        done += n;
      else if (!g_error_matches (*error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK))
        return FALSE;
      else
        g_clear_error (error);
    }
  return TRUE;
}

static gboolean
receive_all (GSocket *socket, gpointer data, gsize size, gint64 deadline, GCancellable *cancellable,
             GError **error)
{
  gsize done = 0;

  while (done < size)
    {
      gssize n;

      if (!wait_for (socket, G_IO_IN, deadline, cancellable, error))
        return FALSE;
      n = g_socket_receive_with_blocking (socket, (gchar *) data + done, size - done, FALSE,
                                          cancellable, error);
      if (n > 0)
        done += n;
      else if (n == 0)
        {
          g_set_error (error, G_IO_ERROR, G_IO_ERROR_CONNECTION_CLOSED,
                       _ ("tcp_store: the server has closed the connection"));
          return FALSE;
        }
      else if (!g_error_matches (*error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK))
        return FALSE;
      else
        g_clear_error (error);
    }
  return TRUE;
}

/* A server that does not know the token closes the connection, or proves the wrong thing. */
static gboolean
greet (GTorchTcpStore *self, GSocket *socket, gint64 deadline, GCancellable *cancellable,
       GError **error)
{
  guint8 ours[GTORCH_STORE_GREETING], theirs[GTORCH_STORE_GREETING];
  guint8 proof[GTORCH_STORE_PROOF], expected[GTORCH_STORE_PROOF];
  g_autoptr (GError) local = NULL;

  gtorch_store_greeting (ours);
  if (!send_all (socket, ours, sizeof ours, deadline, cancellable, error)
      || !receive_all (socket, theirs, sizeof theirs, deadline, cancellable, error))
    return FALSE;
  if (!gtorch_store_is_greeting (theirs))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("tcp_store: what listens at %s:%u is no store"), gtorch_name_str (self->host),
                   self->port);
      return FALSE;
    }
  gtorch_store_proof (self->token, "client", theirs, ours, proof);
  gtorch_store_proof (self->token, "server", theirs, ours, expected);
  if (!send_all (socket, proof, sizeof proof, deadline, cancellable, error))
    return FALSE;
  if (!receive_all (socket, proof, sizeof proof, deadline, cancellable, &local)
      && !g_error_matches (local, G_IO_ERROR, G_IO_ERROR_CONNECTION_CLOSED))
    {
      g_propagate_error (error, g_steal_pointer (&local));
      return FALSE;
    }
  if (local == NULL && gtorch_store_proofs_equal (proof, expected))
    return TRUE;
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED,
               _ ("tcp_store: the token is not that of the store at %s:%u"),
               gtorch_name_str (self->host), self->port);
  return FALSE;
}

static GSocketConnection *
connect_once (GTorchTcpStore *self, gint64 deadline, GCancellable *cancellable, GError **error)
{
  g_autoptr (GSocketClient) client = g_socket_client_new ();
  g_autoptr (GSocketConnection) connection = NULL;
  GSocket *socket;

  if (deadline != G_MAXINT64)
    g_socket_client_set_timeout (client, (guint) CLAMP ((deadline - g_get_monotonic_time ())
                                                                / G_USEC_PER_SEC
                                                            + 1,
                                                        1, 3600));
  /* never by a proxy, which the host of the server is not behind */
  g_socket_client_set_enable_proxy (client, FALSE);
  connection = g_socket_client_connect_to_host (client, self->host, (guint16) self->port,
                                                cancellable, error);
  if (connection == NULL)
    return NULL;
  socket = g_socket_connection_get_socket (connection);
  g_socket_set_timeout (socket, 0);
  g_socket_set_option (socket, IPPROTO_TCP, TCP_NODELAY, 1, NULL);
  return greet (self, socket, deadline, cancellable, error) ? g_steal_pointer (&connection) : NULL;
}

/* What may be otherwise a moment later: the server is not there yet, or its name. */
static gboolean
is_passing (const GError *error)
{
  return g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CONNECTION_REFUSED)
         || g_error_matches (error, G_IO_ERROR, G_IO_ERROR_HOST_UNREACHABLE)
         || g_error_matches (error, G_IO_ERROR, G_IO_ERROR_NETWORK_UNREACHABLE)
         || g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CONNECTION_CLOSED)
         || g_error_matches (error, G_RESOLVER_ERROR, G_RESOLVER_ERROR_TEMPORARY_FAILURE);
}

static GSocketConnection *
connect_to_server (GTorchTcpStore *self, gint64 deadline, GCancellable *cancellable, GError **error)
{
  for (;;)
    {
      g_autoptr (GError) local = NULL;
      GSocketConnection *connection = connect_once (self, deadline, cancellable, &local);
      const gboolean is_late = g_get_monotonic_time () >= deadline;
      GPollFD fd;

      if (connection != NULL)
        return connection;
      if (is_passing (local) && !is_late)
        {
          if (g_cancellable_make_pollfd (cancellable, &fd))
            {
              g_poll (&fd, 1, RETRY_PAUSE);
              g_cancellable_release_fd (cancellable);
            }
          else
            g_usleep (RETRY_PAUSE * 1000);
          continue;
        }
      if (is_passing (local))
        g_set_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                     _ ("tcp_store: no server is at %s:%u, and the time is over (%s)"),
                     gtorch_name_str (self->host), self->port, local->message);
      else if (local->domain == G_RESOLVER_ERROR)
        g_set_error (error, G_IO_ERROR, G_IO_ERROR_HOST_NOT_FOUND, _ ("tcp_store: %s"),
                     local->message);
      else if (g_error_matches (local, G_IO_ERROR, G_IO_ERROR_TIMED_OUT))
        g_set_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                     _ ("tcp_store: what is at %s:%u has not answered as a store does, and the "
                        "time "
                        "is over (%s)"),
                     gtorch_name_str (self->host), self->port, local->message);
      else
        g_propagate_error (error, g_steal_pointer (&local));
      return NULL;
    }
}

static gboolean
converse (GSocketConnection *connection, GBytes *request, gint64 deadline, GTorchStoreReply *reply,
          GCancellable *cancellable, gboolean *is_clean, GError **error)
{
  GSocket *socket = g_socket_connection_get_socket (connection);
  guint8 header[GTORCH_STORE_HEADER];
  g_autofree guint8 *data = NULL;
  g_autoptr (GBytes) body = NULL;
  gssize length;

  if (!send_all (socket, g_bytes_get_data (request, NULL), g_bytes_get_size (request), deadline,
                 cancellable, error)
      || !receive_all (socket, header, sizeof header, deadline, cancellable, error)
      || (length = gtorch_store_frame_length (header, error)) < 0)
    return FALSE;
  data = g_try_malloc (MAX (length, 1));
  if (data == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY,
                   _ ("tcp_store: %zd bytes could not be allocated"), length);
      return FALSE;
    }
  if (!receive_all (socket, data, length, deadline, cancellable, error))
    return FALSE;
  body = g_bytes_new_take (g_steal_pointer (&data), length);
  *is_clean = TRUE;
  return gtorch_store_parse_reply (body, reply, error);
}

static gboolean
gtorch_tcp_store_run (GTorchStore *store, const GTorchStoreRequest *request, gint64 deadline,
                      GTorchStoreReply *reply, GCancellable *cancellable, GError **error)
{
  GTorchTcpStore *self = GTORCH_TCP_STORE (store);
  g_autoptr (GSocketConnection) connection = NULL;
  g_autoptr (GBytes) frame = NULL;
  g_autoptr (GError) local = NULL;
  gboolean is_clean = FALSE, result;

  if (self->host == NULL)
    return gtorch_store_refuse_incomplete (store, request, error);
  g_mutex_lock (&self->lock);
  connection = g_queue_pop_head (&self->idle);
  g_mutex_unlock (&self->lock);
  if (connection == NULL)
    connection = connect_to_server (self, deadline, cancellable, error);
  if (connection == NULL)
    return FALSE;
  frame = gtorch_store_frame_request (request);
  result = converse (connection, frame, deadline, reply, cancellable, &is_clean, &local);
  if (is_clean)
    {
      g_mutex_lock (&self->lock);
      g_queue_push_head (&self->idle, g_steal_pointer (&connection));
      g_mutex_unlock (&self->lock);
    }
  if (g_error_matches (local, G_IO_ERROR, G_IO_ERROR_TIMED_OUT) && !is_clean)
    gtorch_store_timed_out (request, error);
  else if (local != NULL)
    g_propagate_error (error, g_steal_pointer (&local));
  return result;
}

static void
gtorch_tcp_store_finalize (GObject *object)
{
  GTorchTcpStore *self = GTORCH_TCP_STORE (object);

  g_queue_clear_full (&self->idle, g_object_unref);
  g_clear_pointer (&self->server, gtorch_store_server_free);
  g_mutex_clear (&self->lock);
  g_free (self->host);
  g_free (self->token);
  G_OBJECT_CLASS (gtorch_tcp_store_parent_class)->finalize (object);
}

static void
gtorch_tcp_store_class_init (GTorchTcpStoreClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_tcp_store_finalize;
  GTORCH_STORE_CLASS (klass)->run = gtorch_tcp_store_run;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_tcp_store_init (GTorchTcpStore *self)
{
  g_mutex_init (&self->lock);
  g_queue_init (&self->idle);
}

/* Where each process says that it has come, and waits for the last one. */
static gboolean
gather_workers (GTorchStore *store, gint world_size, gint64 deadline, GCancellable *cancellable,
                GError **error)
{
  static const gchar *const count[] = { "gtorch/n-workers", NULL };
  static const gchar *const all[] = { "gtorch/all-workers", NULL };
  g_auto (GTorchStoreReply) reply = { 0 };
  g_autoptr (GBytes) yes = g_bytes_new_static ("1", 1);

  if (!gtorch_store_run (store, &(GTorchStoreRequest){ GTORCH_STORE_ADD, count, .number = 1 },
                         deadline, &reply, cancellable, error))
    return FALSE;
  if (reply.number >= world_size
      && !gtorch_store_run (store, &(GTorchStoreRequest){ GTORCH_STORE_SET, all, yes }, deadline,
                            &reply, cancellable, error))
    return FALSE;
  return gtorch_store_run (store, &(GTorchStoreRequest){ GTORCH_STORE_WAIT, all }, deadline, &reply,
                           cancellable, error);
}

/**
 * gtorch_tcp_store_new: (constructor)
 * @host: the name or the address of the server's host
 * @port: the port at which the server listens; 0 for the server to take a free one
 * @world_size: how many processes there are, the server included; 0 if that is not known
 * @is_server: whether this process serves the store
 * @timeout: for how many seconds functions wait, connecting included; infinite for as long as it takes
 * @wait_for_workers: whether to wait until @world_size processes have come, if that is known
 * @token: (nullable): a secret that all processes know
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Creates a store, and connects to its server.
 *
 * Returns: (transfer full): a new store, or %NULL with @error set: %G_IO_ERROR_TIMED_OUT if no server, or
 *   not every process, has come; %G_IO_ERROR_PERMISSION_DENIED for another token
 *
 * Since: 0.1
 */
GTorchTcpStore *
gtorch_tcp_store_new (const gchar *host, guint port, gint world_size, gboolean is_server,
                      gdouble timeout, gboolean wait_for_workers, const gchar *token,
                      GCancellable *cancellable, GError **error)
{
  g_autoptr (GTorchTcpStore) self = NULL;
  const gint64 deadline = gtorch_store_deadline (timeout);
  gint64 n_keys;

  g_return_val_if_fail (host != NULL, NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return NULL;
  if (port > G_MAXUINT16 || (port == 0 && !is_server))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("tcp_store: the port is %u; it is from 1 to 65535, and only a server may "
                      "have 0"),
                   port);
      return NULL;
    }
  if (!(timeout >= 0))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("tcp_store: the timeout is %g seconds; it is 0 or more"), timeout);
      return NULL;
    }
  if (world_size < 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("tcp_store: the world size is %d; it is 1 or more, or 0 if it is not known"),
                   world_size);
      return NULL;
    }
  self = g_object_new (GTORCH_TYPE_TCP_STORE, "timeout", timeout, NULL);
  self->host = g_strdup (host);
  self->token = g_strdup (token != NULL ? token : "");
  self->port = port;
  if (is_server)
    {
      self->server = gtorch_store_server_new (host, (guint16) port, token, error);
      if (self->server == NULL)
        return NULL;
      self->port = gtorch_store_server_get_port (self->server);
    }
  if (wait_for_workers && world_size > 0
          ? !gather_workers (GTORCH_STORE (self), world_size, deadline, cancellable, error)
          : !is_server
                && !gtorch_store_count_keys (GTORCH_STORE (self), &n_keys, cancellable, error))
    return NULL;
  return g_steal_pointer (&self);
}

typedef struct
{
  gchar *host, *token;
  guint port;
  gint world_size;
  gboolean is_server, wait_for_workers;
  gdouble timeout;
} Wish;

static void
wish_free (gpointer data)
{
  Wish *wish = data;

  g_free (wish->host);
  g_free (wish->token);
  g_free (wish);
}

static void
make (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  const Wish *wish = data;
  GError *error = NULL;
  GTorchTcpStore *store =
      gtorch_tcp_store_new (wish->host, wish->port, wish->world_size, wish->is_server,
                            wish->timeout, wish->wait_for_workers, wish->token, cancellable,
                            &error);

  if (store != NULL)
    g_task_return_pointer (task, store, g_object_unref);
  else
    g_task_return_error (task, error);
}

/**
 * gtorch_tcp_store_create_async:
 * @host: the name or the address of the server's host
 * @port: the port at which the server listens; 0 for the server to take a free one
 * @world_size: how many processes there are, the server included; 0 if that is not known
 * @is_server: whether this process serves the store
 * @timeout: for how many seconds functions wait, connecting included; infinite for as long as it takes
 * @wait_for_workers: whether to wait until @world_size processes have come, if that is known
 * @token: (nullable): a secret that all processes know
 * @cancellable: (nullable): a cancellable
 * @callback: (nullable): called when the store is there
 * @user_data: data for @callback
 *
 * Creates a store as [ctor@TcpStore.new] does, without blocking.
 *
 * Since: 0.1
 */
void
gtorch_tcp_store_create_async (const gchar *host, guint port, gint world_size, gboolean is_server,
                               gdouble timeout, gboolean wait_for_workers, const gchar *token,
                               GCancellable *cancellable, GAsyncReadyCallback callback,
                               gpointer user_data)
{
  GTask *task;
  Wish *wish;

  g_return_if_fail (host != NULL);
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (NULL, gtorch_tcp_store_create_async, cancellable, callback, user_data);
  wish = g_new (Wish, 1);
  *wish = (Wish){ g_strdup (host), g_strdup (token), port,   world_size,
                  is_server,       wait_for_workers, timeout };
  g_task_set_task_data (task, wish, wish_free);
  g_task_run_in_thread (task, make);
  g_object_unref (task);
}

/**
 * gtorch_tcp_store_create_finish:
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Ends a call of [func@TcpStore.create_async].
 *
 * Returns: (transfer full): a new store, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchTcpStore *
gtorch_tcp_store_create_finish (GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, NULL, gtorch_tcp_store_create_async, error))
    return NULL;
  return g_task_propagate_pointer (G_TASK (result), error);
}

/**
 * gtorch_tcp_store_get_host:
 * @self: a store
 *
 * Gets the name or the address of the server's host.
 *
 * Returns: (nullable): the host
 *
 * Since: 0.1
 */
const gchar *
gtorch_tcp_store_get_host (GTorchTcpStore *self)
{
  g_return_val_if_fail (GTORCH_IS_TCP_STORE (self), NULL);
  return self->host;
}

/**
 * gtorch_tcp_store_get_port:
 * @self: a store
 *
 * Gets the port at which the server listens.
 *
 * Returns: the port
 *
 * Since: 0.1
 */
guint
gtorch_tcp_store_get_port (GTorchTcpStore *self)
{
  g_return_val_if_fail (GTORCH_IS_TCP_STORE (self), 0);
  return self->port;
}

/**
 * gtorch_tcp_store_get_is_server:
 * @self: a store
 *
 * Tells whether this process serves the store.
 *
 * Returns: %TRUE if it does
 *
 * Since: 0.1
 */
gboolean
gtorch_tcp_store_get_is_server (GTorchTcpStore *self)
{
  g_return_val_if_fail (GTORCH_IS_TCP_STORE (self), FALSE);
  return self->server != NULL;
}
