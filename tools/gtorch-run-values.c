/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The values that options of gtorch-run have. */

#include "config.h"

#include "gtorch-run-private.h"

#include <glib/gi18n-lib.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

gboolean
gtorch_run_refuse (GError **error, const gchar *format, ...)
{
  va_list arguments;

  va_start (arguments, format);
  if (error != NULL && *error == NULL)
    *error = g_error_new_valist (G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, format, arguments);
  va_end (arguments);
  return FALSE;
}

#define MAX_NODES   100000
#define MAX_WORKERS 65536

static gboolean
parse_number (const gchar *text, guint64 low, guint64 high, guint *number)
{
  guint64 value;

  if (!g_ascii_string_to_unsigned (text, 10, low, high, &value, NULL))
    return FALSE;
  *number = (guint) value;
  return TRUE;
}

gboolean
gtorch_run_parse_nodes (const gchar *text, guint *min, guint *max, GError **error)
{
  g_auto (GStrv) parts = g_strsplit (text, ":", -1);
  const guint n = g_strv_length (parts);
  const gboolean is_right = (n == 1 || n == 2) && parse_number (parts[0], 1, MAX_NODES, min)
                            && parse_number (parts[n - 1], *min, MAX_NODES, max);

  return is_right
         || gtorch_run_refuse (error,
                               _ ("--nnodes is “%s”; it is a number from 1 to %d, or MIN:MAX, of "
                                  "which the first is not the greater one"),
                               text, MAX_NODES);
}

static guint
count_gpus_here (void)
{
  GListModel *devices = G_LIST_MODEL (gtorch_device_manager_get_default ());
  guint n = 0, i;

  for (i = 0; i < g_list_model_get_n_items (devices); i++)
    {
      g_autoptr (GTorchDevice) device = g_list_model_get_item (devices, i);

      n += device != NULL && gtorch_device_get_device_type (device) != GTORCH_DEVICE_TYPE_CPU;
    }
  return n;
}

/* In a process of its own: gtorch-run itself divides later, which a process that uses the driver must
 * not. */
static guint
count_gpus (void)
{
  const pid_t pid = fork ();
  int status = 0;

  if (pid == 0)
    _exit ((int) MIN (count_gpus_here (), 255));
  return pid > 0 && waitpid (pid, &status, 0) == pid && WIFEXITED (status)
             ? (guint) WEXITSTATUS (status)
             : 0;
}

gboolean
gtorch_run_parse_workers (const gchar *text, const gchar *device, guint *n, GError **error)
{
  const gboolean needs_gpus = g_strcmp0 (device, "cuda") == 0;
  const gboolean is_auto = strcmp (text, "auto") == 0;
  guint n_gpus = 0;

  if (device != NULL && !needs_gpus && strcmp (device, "cpu") != 0)
    return gtorch_run_refuse (error, _ ("--device is “%s”; it is cpu or cuda"), device);
  if (strcmp (text, "gpu") == 0 && device != NULL && !needs_gpus)
    return gtorch_run_refuse (error, _ ("--nproc-per-node is gpu, but --device is cpu"));
  if (needs_gpus || strcmp (text, "gpu") == 0 || (is_auto && device == NULL))
    n_gpus = count_gpus ();
  if (strcmp (text, "gpu") == 0 || (is_auto && needs_gpus))
    *n = n_gpus;
  else if (is_auto || strcmp (text, "cpu") == 0)
    *n = n_gpus > 0 && is_auto ? n_gpus : g_get_num_processors ();
  else if (!parse_number (text, 1, MAX_WORKERS, n))
    return gtorch_run_refuse (error,
                              _ ("--nproc-per-node is “%s”; it is a number from 1 to %d, auto, "
                                 "cpu or gpu"),
                              text, MAX_WORKERS);
  if (*n == 0)
    return gtorch_run_refuse (error, _ ("there is no GPU that can be used; gtorch-info says why"));
  if (needs_gpus && *n > n_gpus)
    return gtorch_run_refuse (error, _ ("%u workers need a GPU each, and there are %u"), *n,
                              n_gpus);
  return TRUE;
}

static gboolean
parse_bits (const gchar *text, guint *bits)
{
  return parse_number (text, 0, GTORCH_RUN_OUT | GTORCH_RUN_ERR, bits);
}

gboolean
gtorch_run_parse_streams (const gchar *option, const gchar *text, GTorchRunStreams *streams,
                          GError **error)
{
  g_auto (GStrv) parts = g_strsplit (text, ",", -1);
  gboolean is_right = TRUE;
  guint i;

  if (parse_bits (text, &streams->all))
    return TRUE;
  streams->ranks = g_hash_table_new (NULL, NULL);
  for (i = 0; is_right && parts[i] != NULL; i++)
    {
      g_auto (GStrv) pair = g_strsplit (parts[i], ":", -1);
      guint rank, bits;

      is_right = g_strv_length (pair) == 2 && parse_number (pair[0], 0, 65535, &rank)
                 && parse_bits (pair[1], &bits);
      if (is_right)
        g_hash_table_insert (streams->ranks, GUINT_TO_POINTER (rank), GUINT_TO_POINTER (bits));
    }
  return (is_right && i > 0)
         || gtorch_run_refuse (error,
                               _ ("%s is “%s”; it is 0 (none), 1 (stdout), 2 (stderr) or 3 (both), "
                                  "or RANK:WHICH of some local ranks, with commas between"),
                               option, text);
}

guint
gtorch_run_streams_of (const GTorchRunStreams *streams, guint local_rank)
{
  if (streams->ranks == NULL)
    return streams->all;
  return GPOINTER_TO_UINT (g_hash_table_lookup (streams->ranks, GUINT_TO_POINTER (local_rank)));
}

gboolean
gtorch_run_parse_ranks (const gchar *text, GHashTable **ranks, GError **error)
{
  g_auto (GStrv) parts = g_strsplit (text, ",", -1);
  guint i, rank;

  *ranks = g_hash_table_new (NULL, NULL);
  for (i = 0; parts[i] != NULL; i++)
    {
      if (!parse_number (parts[i], 0, 65535, &rank))
        return gtorch_run_refuse (error,
                                  _ ("--local-ranks-filter is “%s”; it is a list of local ranks, "
                                     "with commas between"),
                                  text);
      g_hash_table_add (*ranks, GUINT_TO_POINTER (rank));
    }
  return TRUE;
}

/* A host alone leaves the port as it is. */
gboolean
gtorch_run_parse_endpoint (const gchar *option, const gchar *text, gchar **host, guint *port,
                           GError **error)
{
  g_autoptr (GSocketConnectable) place = g_network_address_parse (text, (guint16) *port, NULL);

  if (place == NULL || *text == '\0')
    return gtorch_run_refuse (error, _ ("%s is “%s”; it is HOST:PORT"), option, text);
  g_free (*host);
  *host = g_strdup (g_network_address_get_hostname ((GNetworkAddress *) place));
  *port = g_network_address_get_port ((GNetworkAddress *) place);
  return TRUE;
}

/* clang-format off */
static const struct
{
  const gchar *name;
  gint number;
} signals[] = {
  { "SIGHUP",  SIGHUP },
  { "SIGINT",  SIGINT },
  { "SIGQUIT", SIGQUIT },
  { "SIGTERM", SIGTERM },
  { "SIGUSR1", SIGUSR1 },
  { "SIGUSR2", SIGUSR2 },
  { "SIGABRT", SIGABRT },
  { "SIGBUS",  SIGBUS },
  { "SIGFPE",  SIGFPE },
  { "SIGILL",  SIGILL },
  { "SIGKILL", SIGKILL },
  { "SIGPIPE", SIGPIPE },
  { "SIGSEGV", SIGSEGV },
  { "SIGTRAP", SIGTRAP },
  { "SIGXCPU", SIGXCPU },
};
/* clang-format on */

#define N_HANDLED 6 /* the first ones */

const gchar *
gtorch_run_signal_name (gint number)
{
  gsize i;

  for (i = 0; i < G_N_ELEMENTS (signals); i++)
    if (signals[i].number == number)
      return signals[i].name;
  return strsignal (number);
}

gboolean
gtorch_run_parse_signals (const gchar *text, gint **numbers, GError **error)
{
  g_auto (GStrv) parts = g_strsplit (text, ",", -1);
  guint i, k;

  *numbers = g_new0 (gint, g_strv_length (parts) + 1);
  for (i = 0; parts[i] != NULL; i++)
    {
      for (k = 0; k < N_HANDLED && strcmp (signals[k].name, parts[i]) != 0; k++)
        ;
      if (k == N_HANDLED)
        return gtorch_run_refuse (error,
                                  _ ("--signals-to-handle has “%s”; it is a list of SIGTERM, "
                                     "SIGINT, "
                                     "SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2, with commas between"),
                                  parts[i]);
      (*numbers)[i] = signals[k].number;
    }
  return TRUE;
}

/* --- --rdzv-conf --- */

static gboolean
parse_seconds (const gchar *text, gdouble *seconds)
{
  gchar *end;
  const gdouble value = g_ascii_strtod (text, &end);

  if (end == text || *end != '\0' || !(value > 0) || value > 1e9)
    return FALSE;
  *seconds = value;
  return TRUE;
}

static gboolean
parse_pair (GTorchRunOptions *options, const gchar *key, const gchar *value, gboolean *is_known)
{
  *is_known = TRUE;
  if (strcmp (key, "join_timeout") == 0 || strcmp (key, "timeout") == 0)
    return parse_seconds (value, &options->join_timeout);
  if (strcmp (key, "last_call_timeout") == 0)
    return parse_seconds (value, &options->last_call_timeout);
  if (strcmp (key, "close_timeout") == 0)
    return parse_seconds (value, &options->close_timeout);
  if (strcmp (key, "keep_alive_interval") == 0)
    return parse_seconds (value, &options->keep_alive_interval);
  if (strcmp (key, "keep_alive_max_attempt") == 0)
    return parse_number (value, 1, 1000, &options->keep_alive_max_attempt);
  if (strcmp (key, "is_host") == 0)
    {
      options->is_host = strcmp (value, "1") == 0 || g_ascii_strcasecmp (value, "true") == 0;
      return options->is_host || strcmp (value, "0") == 0
             || g_ascii_strcasecmp (value, "false") == 0;
    }
  *is_known = FALSE;
  return FALSE;
}

gboolean
gtorch_run_parse_conf (GTorchRunOptions *options, const gchar *text, GError **error)
{
  g_auto (GStrv) parts = g_strsplit (text, ",", -1);
  guint i;

  for (i = 0; parts[i] != NULL; i++)
    {
      g_auto (GStrv) pair = g_strsplit (parts[i], "=", 2);
      gboolean is_known = FALSE;

      if (g_strv_length (pair) == 2 && parse_pair (options, pair[0], pair[1], &is_known))
        continue;
      if (g_strv_length (pair) == 2 && is_known)
        return gtorch_run_refuse (error, _ ("--rdzv-conf has “%s”, which %s cannot be"), parts[i],
                                  pair[0]);
      return gtorch_run_refuse (error,
                                _ ("--rdzv-conf has “%s”; it is KEY=VALUE, with commas between, of "
                                   "join_timeout, last_call_timeout, close_timeout, "
                                   "keep_alive_interval, keep_alive_max_attempt and is_host"),
                                parts[i]);
    }
  return TRUE;
}
