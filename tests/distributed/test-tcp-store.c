/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What is of a store behind a socket alone: connecting, tokens, peers that lie. */

#include "config.h"

#include <gtorch/gtorch.h>
#include <math.h>
#include <string.h>

static GTorchTcpStore *
serve (const gchar *token)
{
  g_autoptr (GError) error = NULL;
  GTorchTcpStore *store =
      gtorch_tcp_store_new ("localhost", 0, 0, TRUE, 30, FALSE, token, NULL, &error);

  g_assert_no_error (error);
  g_assert_true (gtorch_tcp_store_get_is_server (store));
  return store;
}

static void
a_wrong_token_is_refused (void)
{
  g_autoptr (GTorchTcpStore) server = serve ("right");
  const gchar *const tokens[] = { "wrong", "", NULL, "righ", "right " };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (tokens); i++)
    {
      g_autoptr (GError) error = NULL;

      g_assert_null (gtorch_tcp_store_new ("localhost", gtorch_tcp_store_get_port (server), 0,
                                           FALSE, 30, FALSE, tokens[i], NULL, &error));
      g_assert_error (error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED);
    }
}

static void
a_server_for_other_hosts_needs_a_token (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTcpStore) store = NULL;

  g_assert_null (gtorch_tcp_store_new ("0.0.0.0", 0, 0, TRUE, 30, FALSE, NULL, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  store = gtorch_tcp_store_new ("0.0.0.0", 0, 0, TRUE, 30, FALSE, "secret", NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (gtorch_tcp_store_get_port (store), >, 0);
}

static void
bad_arguments_are_refused (void)
{
  static const struct
  {
    guint port;
    gint world_size;
    gboolean is_server;
    gdouble timeout;
    gboolean wait;
  } cases[] = {
    { 65536, 1, TRUE, 1, FALSE }, { 0, 1, FALSE, 1, FALSE }, { 0, 1, TRUE, -1, FALSE },
    { 0, -1, TRUE, 1, FALSE },    { 0, -1, TRUE, 1, TRUE },  { 0, 1, TRUE, (gdouble) NAN, FALSE },
  };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GError) error = NULL;

      g_assert_null (gtorch_tcp_store_new ("localhost", cases[i].port, cases[i].world_size,
                                           cases[i].is_server, cases[i].timeout, cases[i].wait,
                                           NULL, NULL, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
    }
}

/* As the defaults of other languages are. */
static void
an_unknown_number_of_workers_is_not_waited_for (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTcpStore) server =
      gtorch_tcp_store_new ("localhost", 0, 0, TRUE, 30, TRUE, NULL, NULL, &error);
  g_autoptr (GTorchTcpStore) client = NULL;

  g_assert_no_error (error);
  client = gtorch_tcp_store_new ("localhost", gtorch_tcp_store_get_port (server), 0, FALSE, 30,
                                 TRUE, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_null (gtorch_tcp_store_new ("localhost", gtorch_tcp_store_get_port (server), 0, FALSE,
                                       30, TRUE, "another", NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED);
}

static void
a_port_is_taken_once (void)
{
  g_autoptr (GTorchTcpStore) server = serve (NULL);
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_tcp_store_new ("localhost", gtorch_tcp_store_get_port (server), 0, TRUE, 1,
                                       FALSE, NULL, NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_ADDRESS_IN_USE);
}

static guint
free_port (void)
{
  g_autoptr (GTorchTcpStore) server = serve (NULL);

  return gtorch_tcp_store_get_port (server);
}

static gpointer
serve_later (gpointer data)
{
  g_usleep (150000);
  return gtorch_tcp_store_new ("localhost", GPOINTER_TO_UINT (data), 0, TRUE, 30, FALSE, NULL, NULL,
                               NULL);
}

static void
a_client_waits_for_its_server (void)
{
  const guint port = free_port ();
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTcpStore) client = NULL, server = NULL;
  GThread *thread;

  g_assert_null (
      gtorch_tcp_store_new ("localhost", port, 0, FALSE, 0.12, FALSE, NULL, NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT);
  g_clear_error (&error);
  thread = g_thread_new ("server", serve_later, GUINT_TO_POINTER (port));
  client = gtorch_tcp_store_new ("localhost", port, 0, FALSE, 30, FALSE, NULL, NULL, &error);
  g_assert_no_error (error);
  server = g_thread_join (thread);
  g_assert_nonnull (server);
}

static gpointer
come (gpointer data)
{
  return gtorch_tcp_store_new ("localhost", GPOINTER_TO_UINT (data), 3, FALSE, 30, TRUE, "t", NULL,
                               NULL);
}

static void
workers_wait_for_each_other (void)
{
  const guint port = free_port ();
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTcpStore) server = NULL, a = NULL, b = NULL;
  GThread *threads[2];

  g_assert_null (gtorch_tcp_store_new ("localhost", 0, 2, TRUE, 0.1, TRUE, "t", NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT);
  g_clear_error (&error);
  threads[0] = g_thread_new ("a", come, GUINT_TO_POINTER (port));
  threads[1] = g_thread_new ("b", come, GUINT_TO_POINTER (port));
  server = gtorch_tcp_store_new ("localhost", port, 3, TRUE, 30, TRUE, "t", NULL, &error);
  g_assert_no_error (error);
  a = g_thread_join (threads[0]);
  b = g_thread_join (threads[1]);
  g_assert_true (a != NULL && b != NULL);
}

static void
a_server_that_goes_is_an_error (void)
{
  g_autoptr (GTorchTcpStore) server = serve (NULL), client = NULL;
  g_autoptr (GError) error = NULL;

  client = gtorch_tcp_store_new ("localhost", gtorch_tcp_store_get_port (server), 0, FALSE, 0.2,
                                 FALSE, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_finalize_object (g_steal_pointer (&server));
  g_assert_false (gtorch_store_add (GTORCH_STORE (client), "k", 1, NULL, NULL, &error));
  g_assert_true (error->domain == G_IO_ERROR);
}

/* Bytes of a stranger neither end the server nor what it does for others. */
static void
strangers_are_dropped (void)
{
  g_autoptr (GTorchTcpStore) server = serve ("t");
  g_autoptr (GRand) rand = g_rand_new_with_seed (7);
  const guint n = 200;
  guint i;

  for (i = 0; i < n; i++)
    {
      g_autoptr (GSocketClient) client = g_socket_client_new ();
      g_autoptr (GSocketConnection) connection =
          g_socket_client_connect_to_host (client, "127.0.0.1", gtorch_tcp_store_get_port (server),
                                           NULL, NULL);
      guint8 bytes[200];
      const gsize size = g_rand_int_range (rand, 0, sizeof bytes);
      guint k;

      g_assert_nonnull (connection);
      for (k = 0; k < size; k++)
        bytes[k] = g_rand_int (rand);
      if (g_rand_boolean (rand))
        memcpy (bytes, "gtorch\0\1", 8);
      g_output_stream_write_all (g_io_stream_get_output_stream (G_IO_STREAM (connection)), bytes,
                                 size, NULL, NULL, NULL);
      if (i % 10 == 0)
        g_assert_true (gtorch_store_add (GTORCH_STORE (server), "k", 1, NULL, NULL, NULL));
    }
}

/* What says something else, and waits. */
static void
a_port_of_something_else_is_named (void)
{
  g_autoptr (GSocketListener) listener = g_socket_listener_new ();
  g_autoptr (GError) error = NULL;
  const guint port = g_socket_listener_add_any_inet_port (listener, NULL, &error);
  g_autofree gchar *text =
      g_strdup_printf ("tcp_store: what is at localhost:%u has not answered", port);

  g_assert_no_error (error);
  g_assert_null (
      gtorch_tcp_store_new ("localhost", port, 0, FALSE, 0.3, FALSE, NULL, NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT);
  g_assert_true (g_str_has_prefix (error->message, text));
}

static void
on_made (GObject *object, GAsyncResult *result, gpointer data)
{
  *(GAsyncResult **) data = g_object_ref (result);
}

static void
a_store_is_made_without_blocking (void)
{
  g_autoptr (GAsyncResult) result = NULL;
  g_autoptr (GTorchTcpStore) store = NULL;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;

  gtorch_tcp_store_create_async ("localhost", 0, 0, TRUE, 30, FALSE, NULL, NULL, on_made, &result);
  while (result == NULL)
    g_main_context_iteration (NULL, TRUE);
  store = gtorch_tcp_store_create_finish (result, &error);
  g_assert_no_error (error);
  g_assert_nonnull (store);
  g_clear_object (&result);
  gtorch_tcp_store_create_async ("localhost", free_port (), 0, FALSE, (gdouble) INFINITY, FALSE,
                                 NULL, cancellable, on_made, &result);
  while (g_main_context_iteration (NULL, FALSE))
    ;
  g_cancellable_cancel (cancellable);
  while (result == NULL)
    g_main_context_iteration (NULL, TRUE);
  g_assert_null (gtorch_tcp_store_create_finish (result, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(test) g_test_add_func ("/GTorch/tcp-store/" #test, test)
  ADD (a_wrong_token_is_refused);
  ADD (a_server_for_other_hosts_needs_a_token);
  ADD (bad_arguments_are_refused);
  ADD (an_unknown_number_of_workers_is_not_waited_for);
  ADD (a_port_is_taken_once);
  ADD (a_client_waits_for_its_server);
  ADD (workers_wait_for_each_other);
  ADD (a_server_that_goes_is_an_error);
  ADD (strangers_are_dropped);
  ADD (a_port_of_something_else_is_named);
  ADD (a_store_is_made_without_blocking);
  return g_test_run ();
}
