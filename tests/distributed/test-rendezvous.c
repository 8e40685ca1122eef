/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What the environment says of the other processes. */

#include "config.h"

#include <gtorch/gtorch.h>
#include <string.h>

static void
set (const gchar *name, const gchar *value)
{
  if (value != NULL)
    g_setenv (name, value, TRUE);
  else
    g_unsetenv (name);
}

static void
set_all (const gchar *rank, const gchar *size, const gchar *host, const gchar *port,
         const gchar *served)
{
  set ("RANK", rank);
  set ("WORLD_SIZE", size);
  set ("MASTER_ADDR", host);
  set ("MASTER_PORT", port);
  set ("GTORCH_STORE_ADDRESS", served);
  set ("GTORCH_STORE_PREFIX", NULL);
  set ("GTORCH_STORE_TOKEN", NULL);
}

static gchar *
free_port (void)
{
  g_autoptr (GSocketListener) listener = g_socket_listener_new ();

  return g_strdup_printf ("%u", g_socket_listener_add_any_inet_port (listener, NULL, NULL));
}

static void
missing_and_wrong_variables_are_refused (void)
{
  static const struct
  {
    const gchar *rank, *size, *host, *port, *served, *message;
  } cases[] = {
    { NULL, NULL, NULL, NULL, NULL,
      "store_from_environment: the variable WORLD_SIZE is not set; gtorch-run sets it" },
    { NULL, "2", NULL, NULL, NULL,
      "store_from_environment: the variable RANK is not set; gtorch-run sets it" },
    { "2", "2", NULL, NULL, NULL,
      "store_from_environment: the variable RANK is “2”; it is a number from 0 to 1" },
    { "0", "none", NULL, NULL, NULL,
      "store_from_environment: the variable WORLD_SIZE is “none”; it is a number from 1 to "
      "2147483647" },
    { "0", "2", NULL, "1", NULL,
      "store_from_environment: the variable MASTER_ADDR is not set; gtorch-run sets it" },
    { "0", "2", "localhost", NULL, NULL,
      "store_from_environment: the variable MASTER_PORT is not set; gtorch-run sets it" },
    { "0", "2", "localhost", "70000", NULL,
      "store_from_environment: the variable MASTER_PORT is “70000”; it is a number from 1 to "
      "65535" },
    { "0", "2", NULL, NULL, "localhost",
      "store_from_environment: the variable GTORCH_STORE_ADDRESS is “localhost”; it is "
      "HOST:PORT" },
  };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GError) error = NULL;
      gint rank = 7, size = 7;

      set_all (cases[i].rank, cases[i].size, cases[i].host, cases[i].port, cases[i].served);
      g_assert_null (gtorch_store_from_environment (5, &rank, &size, NULL, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      g_assert_cmpstr (error->message, ==, cases[i].message);
      g_assert_true (rank == 7 && size == 7);
    }
}

static void
rank_0_serves_the_store (void)
{
  g_autofree gchar *port = free_port ();
  g_autoptr (GTorchStore) first = NULL, second = NULL;
  g_autoptr (GBytes) value = g_bytes_new_static ("v", 1), found = NULL;
  g_autoptr (GError) error = NULL;
  gint rank, size;

  set_all ("0", "2", "127.0.0.1", port, NULL);
  first = gtorch_store_from_environment (5, &rank, &size, NULL, &error);
  g_assert_no_error (error);
  g_assert_true (rank == 0 && size == 2);
  set_all ("1", "2", "127.0.0.1", port, NULL);
  second = gtorch_store_from_environment (5, &rank, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpint (rank, ==, 1);
  g_assert_true (gtorch_store_set (first, "k", value, NULL, &error));
  found = gtorch_store_get (second, "k", NULL, &error);
  g_assert_true (found != NULL && g_bytes_equal (found, value));
  g_clear_object (&second);
  set_all ("0", "2", "127.0.0.1", port, NULL);
  g_assert_null (gtorch_store_from_environment (5, NULL, NULL, NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_ADDRESS_IN_USE);
  g_assert_true (g_str_has_prefix (error->message, "rank 0 serves the store at MASTER_ADDR and "
                                                   "MASTER_PORT: "));
}

static void
the_store_of_torchrun_is_refused (void)
{
  g_autoptr (GError) error = NULL;

  set_all ("0", "2", "127.0.0.1", "1", NULL);
  set ("TORCHELASTIC_USE_AGENT_STORE", "True");
  g_assert_null (gtorch_store_from_environment (5, NULL, NULL, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  set ("TORCHELASTIC_USE_AGENT_STORE", NULL);
}

static void
a_store_that_is_served_is_found (void)
{
  g_autoptr (GTorchTcpStore) server = NULL;
  g_autoptr (GTorchStore) store = NULL;
  g_autoptr (GBytes) value = g_bytes_new_static ("v", 1), found = NULL;
  g_autofree gchar *address = NULL;
  g_autoptr (GError) error = NULL;

  server = gtorch_tcp_store_new ("localhost", 0, 0, TRUE, 5, FALSE, "secret", NULL, &error);
  g_assert_no_error (error);
  address = g_strdup_printf ("127.0.0.1:%u", gtorch_tcp_store_get_port (server));
  set_all ("0", "1", NULL, NULL, address);
  g_assert_null (gtorch_store_from_environment (5, NULL, NULL, NULL, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED);
  g_clear_error (&error);
  set ("GTORCH_STORE_TOKEN", "secret");
  set ("GTORCH_STORE_PREFIX", "round/1");
  store = gtorch_store_from_environment (5, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_store_set (store, "k", value, NULL, &error));
  found = gtorch_store_get (GTORCH_STORE (server), "round/1/k", NULL, &error);
  g_assert_true (found != NULL && g_bytes_equal (found, value));
}

static void
groups_need_what_the_environment_says (void)
{
  g_autoptr (GError) error = NULL;

  set_all (NULL, NULL, NULL, NULL, NULL);
  g_assert_null (gtorch_process_group_new_from_environment ("gloo", 5, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  set_all ("3", "2", "localhost", "1", NULL);
  g_assert_null (gtorch_process_group_new_from_environment ("mpi", 5, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "RANK is “3”"));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/Rendezvous/missing_and_wrong_variables_are_refused",
                   missing_and_wrong_variables_are_refused);
  g_test_add_func ("/GTorch/Rendezvous/rank_0_serves_the_store", rank_0_serves_the_store);
  g_test_add_func ("/GTorch/Rendezvous/a_store_that_is_served_is_found",
                   a_store_that_is_served_is_found);
  g_test_add_func ("/GTorch/Rendezvous/the_store_of_torchrun_is_refused",
                   the_store_of_torchrun_is_refused);
  g_test_add_func ("/GTorch/Rendezvous/groups_need_what_the_environment_says",
                   groups_need_what_the_environment_says);
  return g_test_run ();
}
