/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* How processes find each other by variables of the environment, which gtorch-run sets: PyTorch's, and those
 * of the store that gtorch-run serves. */

#include "config.h"

#include "distributed/gtorch-rendezvous.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-environment-private.h"
#include "base/gtorch-error.h"
#include "distributed/gtorch-prefix-store.h"
#include "distributed/gtorch-tcp-store.h"

/* The number that a variable has; FALSE with an error if it is none from low to high. */
static gboolean
read_number (const gchar *name, gint64 low, gint64 high, gint *number, GError **error)
{
  const gchar *text = gtorch_getenv (name);
  gint64 value;

  if (text == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("store_from_environment: the variable %s is not set; gtorch-run sets it"),
                   name);
      return FALSE;
    }
  if (!g_ascii_string_to_signed (text, 10, low, high, &value, NULL))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("store_from_environment: the variable %s is “%s”; it is a number from "
                      "%" PRId64 " to %" PRId64),
                   name, text, low, high);
      return FALSE;
    }
  *number = (gint) value;
  return TRUE;
}

/* HOST:PORT, where the host may be an address of IPv6 in brackets. */
static GTorchStore *
connect_to_served (const gchar *address, gdouble timeout, GCancellable *cancellable, GError **error)
{
  g_autoptr (GSocketConnectable) place = g_network_address_parse (address, 0, NULL);
  GNetworkAddress *network = (GNetworkAddress *) place;

  if (place == NULL || g_network_address_get_port (network) == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("store_from_environment: the variable %s is “%s”; it is HOST:PORT"),
                   "GTORCH_STORE_ADDRESS", address);
      return NULL;
    }
  return (GTorchStore *) gtorch_tcp_store_new (g_network_address_get_hostname (network),
                                               g_network_address_get_port (network), 0, FALSE,
                                               timeout, FALSE, gtorch_getenv ("GTORCH_STORE_TOKEN"),
                                               cancellable, error);
}

static GTorchStore *
connect_to_first (gint rank, gint world_size, gdouble timeout, GCancellable *cancellable,
                  GError **error)
{
  const gchar *host = gtorch_getenv ("MASTER_ADDR");
  GTorchTcpStore *store;
  gint port;

  if (host == NULL || *host == '\0')
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("store_from_environment: the variable %s is not set; gtorch-run sets it"),
                   "MASTER_ADDR");
      return NULL;
    }
  if (!read_number ("MASTER_PORT", 1, G_MAXUINT16, &port, error))
    return NULL;
  if (g_strcmp0 (gtorch_getenv ("TORCHELASTIC_USE_AGENT_STORE"), "True") == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("store_from_environment: what listens at MASTER_ADDR and MASTER_PORT is "
                      "torchrun's own store; gtorch-run starts the processes, or torchrun with "
                      "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"));
      return NULL;
    }
  store = gtorch_tcp_store_new (host, port, world_size, rank == 0, timeout, FALSE,
                                gtorch_getenv ("GTORCH_STORE_TOKEN"), cancellable, error);
  if (store == NULL && rank == 0)
    g_prefix_error (error, _ ("rank 0 serves the store at MASTER_ADDR and MASTER_PORT: "));
  return (GTorchStore *) store;
}

/**
 * gtorch_store_from_environment:
 * @timeout: for how many seconds functions wait, connecting included; infinite for as long as it takes
 * @rank: (out) (optional): the rank of this process
 * @world_size: (out) (optional): how many processes there are
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Connects to the store that the variables of the environment name.
 *
 * `gtorch-run` sets them. `RANK` and `WORLD_SIZE` say which of how many processes this is. The store is
 * at `GTORCH_STORE_ADDRESS`; where that is not set, rank 0 serves one at `MASTER_ADDR` and `MASTER_PORT`.
 * `GTORCH_STORE_TOKEN` is the secret that all processes know, and keys begin with what
 * `GTORCH_STORE_PREFIX` says.
 *
 * Returns: (transfer full): a store, or %NULL with @error set: %GTORCH_ERROR_INVALID if a variable is not
 *   set, or has another value; %G_IO_ERROR_TIMED_OUT if no server has come;
 *   %GTORCH_ERROR_NOT_SUPPORTED if torchrun serves a store that only PyTorch understands
 *
 * Since: 0.1
 */
GTorchStore *
gtorch_store_from_environment (gdouble timeout, gint *rank, gint *world_size,
                               GCancellable *cancellable, GError **error)
{
  const gchar *served = gtorch_getenv ("GTORCH_STORE_ADDRESS");
  const gchar *prefix = gtorch_getenv ("GTORCH_STORE_PREFIX");
  g_autoptr (GTorchStore) store = NULL;
  gint own_rank, size;

  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  if (g_cancellable_set_error_if_cancelled (cancellable, error)
      || !read_number ("WORLD_SIZE", 1, G_MAXINT, &size, error)
      || !read_number ("RANK", 0, size - 1, &own_rank, error))
    return NULL;
  store = served != NULL ? connect_to_served (served, timeout, cancellable, error)
                         : connect_to_first (own_rank, size, timeout, cancellable, error);
  if (store == NULL)
    return NULL;
  if (rank != NULL)
    *rank = own_rank;
  if (world_size != NULL)
    *world_size = size;
  return prefix == NULL ? g_steal_pointer (&store)
                        : (GTorchStore *) gtorch_prefix_store_new (prefix, store);
}

/**
 * gtorch_process_group_new_from_environment: (constructor)
 * @backend: what carries the data: mpi
 * @timeout: for how many seconds an operation waits for the other ranks, more than 0
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Creates the group of all processes of a job, as [ctor@ProcessGroup.new] does, with the rank, the size
 * and the store of [func@Store.from_environment].
 *
 * Where `RANK` is not set, the mpi backend says all of it: `mpirun` has started the processes, or there is
 * this one only.
 *
 * ```c
 * g_autoptr (GTorchProcessGroup) group = gtorch_process_group_new_from_environment ("mpi", 1800, NULL,
 * &error);
 * ```
 *
 * Returns: (transfer full): a new group, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchProcessGroup *
gtorch_process_group_new_from_environment (const gchar *backend, gdouble timeout,
                                           GCancellable *cancellable, GError **error)
{
  g_autoptr (GTorchStore) store = NULL;
  gint rank = -1, world_size = -1;

  g_return_val_if_fail (backend != NULL, NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  if (gtorch_getenv ("RANK") != NULL || strcmp (backend, "mpi") != 0)
    {
      store = gtorch_store_from_environment (timeout, &rank, &world_size, cancellable, error);
      if (store == NULL)
        return NULL;
    }
  return gtorch_process_group_new (backend, store, rank, world_size, timeout, cancellable, error);
}
