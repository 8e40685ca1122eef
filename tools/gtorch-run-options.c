/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The options of gtorch-run, which are torchrun's. As there, an underscore is as good as a hyphen, and an
 * option that is not given may be in a variable of the environment: PET_NNODES for --nnodes. */

#include "config.h"

#include "gtorch-run-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#define DEFAULT_PORT 29500
#define TEMPLATE     "[${role_name}${local_rank}]:"

/* What was written; NULL if nothing was. */
typedef struct
{
  gchar *nnodes, *nproc, *device;
  gchar *backend, *endpoint, *id, *conf;
  gchar *restarts, *interval, *shutdown;
  gchar *role, *log_dir, *redirects, *tee, *prefix, *filter;
  gchar *node_rank, *master_addr, *master_port, *local_addr;
  gchar *signals, *handler;
  gchar *start_method, *numa, *logs_specs, *out_filters, *err_filters;
  gboolean standalone, module, no_python, run_path, version;
} Given;

static Given given;

/* clang-format off */
static const GOptionEntry entries[] = {
  { "nnodes", 0, 0, G_OPTION_ARG_STRING, &given.nnodes, N_ ("Number of nodes, or a range"), N_ ("N|MIN:MAX") },
  { "nproc-per-node", 'n', 0, G_OPTION_ARG_STRING, &given.nproc, N_ ("Workers on each node: a number, auto, cpu or gpu"), "N" },
  { "device", 0, 0, G_OPTION_ARG_STRING, &given.device, N_ ("cpu hides the GPUs from workers; cuda wants one for each"), N_ ("DEVICE") },
  { "node-rank", 0, 0, G_OPTION_ARG_STRING, &given.node_rank, N_ ("Which node this is, if the rendezvous is static"), "N" },
  { "rdzv-backend", 0, 0, G_OPTION_ARG_STRING, &given.backend, N_ ("How nodes find each other: static or c10d"), N_ ("NAME") },
  { "rdzv-endpoint", 0, 0, G_OPTION_ARG_STRING, &given.endpoint, N_ ("Where nodes find each other"), N_ ("HOST:PORT") },
  { "rdzv-id", 0, 0, G_OPTION_ARG_STRING, &given.id, N_ ("Name of the job"), N_ ("NAME") },
  { "rdzv-conf", 0, 0, G_OPTION_ARG_STRING, &given.conf, N_ ("Times of the rendezvous"), N_ ("KEY=VALUE,…") },
  { "standalone", 0, 0, G_OPTION_ARG_NONE, &given.standalone, N_ ("One node, with a store at a free port"), NULL },
  { "max-restarts", 0, 0, G_OPTION_ARG_STRING, &given.restarts, N_ ("How often workers are started again"), "N" },
  { "monitor-interval", 0, 0, G_OPTION_ARG_STRING, &given.interval, N_ ("How often other nodes are looked at"), N_ ("SECONDS") },
  { "shutdown-timeout", 0, 0, G_OPTION_ARG_STRING, &given.shutdown, N_ ("From SIGTERM to SIGKILL, 30 by default"), N_ ("SECONDS") },
  { "role", 0, 0, G_OPTION_ARG_STRING, &given.role, N_ ("Role of the workers"), N_ ("NAME") },
  { "module", 'm', 0, G_OPTION_ARG_NONE, &given.module, N_ ("The program is a Python module, or a JavaScript one"), NULL },
  { "no-python", 0, 0, G_OPTION_ARG_NONE, &given.no_python, N_ ("Run the program itself"), NULL },
  { "run-path", 0, 0, G_OPTION_ARG_NONE, &given.run_path, N_ ("Not supported"), NULL },
  { "log-dir", 0, 0, G_OPTION_ARG_FILENAME, &given.log_dir, N_ ("Folder for output of workers"), N_ ("FOLDER") },
  { "redirects", 'r', 0, G_OPTION_ARG_STRING, &given.redirects, N_ ("Output that goes to files: 0, 1, 2, 3, or RANK:WHICH,…"), N_ ("WHICH") },
  { "tee", 't', 0, G_OPTION_ARG_STRING, &given.tee, N_ ("Output that goes to files and the console"), N_ ("WHICH") },
  { "log-line-prefix-template", 0, 0, G_OPTION_ARG_STRING, &given.prefix, N_ ("What lines of --tee begin with"), N_ ("TEXT") },
  { "local-ranks-filter", 0, 0, G_OPTION_ARG_STRING, &given.filter, N_ ("Local ranks whose output is shown"), N_ ("RANK,…") },
  { "master-addr", 0, 0, G_OPTION_ARG_STRING, &given.master_addr, N_ ("Host of node 0, if the rendezvous is static"), N_ ("HOST") },
  { "master-port", 0, 0, G_OPTION_ARG_STRING, &given.master_port, N_ ("Port of node 0, if the rendezvous is static"), N_ ("PORT") },
  { "local-addr", 0, 0, G_OPTION_ARG_STRING, &given.local_addr, N_ ("Address of this node"), N_ ("HOST") },
  { "signals-to-handle", 0, 0, G_OPTION_ARG_STRING, &given.signals, N_ ("Signals that are handed on to workers"), N_ ("SIGNAL,…") },
  { "event-log-handler", 0, 0, G_OPTION_ARG_STRING, &given.handler, N_ ("Only null"), N_ ("NAME") },
  { "start-method", 0, 0, G_OPTION_ARG_STRING, &given.start_method, N_ ("Not supported"), N_ ("NAME") },
  { "numa-binding", 0, 0, G_OPTION_ARG_STRING, &given.numa, N_ ("Not supported"), N_ ("NAME") },
  { "logs-specs", 0, 0, G_OPTION_ARG_STRING, &given.logs_specs, N_ ("Not supported"), N_ ("NAME") },
  { "duplicate-stdout-filters", 0, 0, G_OPTION_ARG_STRING, &given.out_filters, N_ ("Not supported"), N_ ("TEXT") },
  { "duplicate-stderr-filters", 0, 0, G_OPTION_ARG_STRING, &given.err_filters, N_ ("Not supported"), N_ ("TEXT") },
  { "version", 0, 0, G_OPTION_ARG_NONE, &given.version, N_ ("Print the version and exit"), NULL },
  { NULL },
};
/* clang-format on */

static const GOptionEntry *
find_entry (const gchar *argument)
{
  const GOptionEntry *entry;

  for (entry = entries; entry->long_name != NULL; entry++)
    if (g_str_has_prefix (argument, "--") ? strcmp (entry->long_name, argument + 2) == 0
                                          : argument[1] != '\0' && argument[1] == entry->short_name)
      return entry;
  return NULL;
}

/* As torchrun takes them: --nproc_per_node is --nproc-per-node, and -n4 is -n 4. Not behind the
 * program's name, the first word that is neither an option nor the value of one. */
static gchar **
normalize (gchar **argv)
{
  g_autoptr (GStrvBuilder) result = g_strv_builder_new ();
  const GOptionEntry *entry;

  g_strv_builder_add (result, *argv++);
  for (; *argv != NULL && argv[0][0] == '-' && strcmp (*argv, "--") != 0; argv++)
    {
      const gboolean is_long = g_str_has_prefix (*argv, "--");
      gchar *end = strchrnul (*argv, '='), *c;

      for (c = *argv; is_long && c < end; c++)
        if (*c == '_')
          *c = '-';
      entry = find_entry (*argv);
      if (entry != NULL && entry->arg != G_OPTION_ARG_NONE && !is_long && argv[0][2] != '\0')
        {
          g_autofree gchar *whole = g_strdup_printf ("--%s=%s", entry->long_name, *argv + 2);

          g_strv_builder_add (result, whole);
          continue;
        }
      g_strv_builder_add (result, *argv);
      if (entry != NULL && entry->arg != G_OPTION_ARG_NONE && argv[1] != NULL)
        g_strv_builder_add (result, *++argv);
    }
  g_strv_builder_addv (result, (const gchar **) argv);
  return g_strv_builder_end (result);
}

/* PET_NNODES and its like, for what was not given. */
static gboolean
read_environment (GError **error)
{
  const GOptionEntry *entry;

  for (entry = entries; entry->long_name != NULL; entry++)
    {
      g_autofree gchar *upper = g_ascii_strup (entry->long_name, -1);
      g_autofree gchar *name = g_strconcat ("PET_", g_strdelimit (upper, "-", '_'), NULL);
      const gchar *text = g_getenv (name);

      if (text == NULL)
        continue;
      if (entry->arg != G_OPTION_ARG_NONE)
        {
          gchar **value = entry->arg_data;

          if (*value == NULL)
            *value = g_strdup (text);
        }
      else if (strcmp (text, "0") == 0 || strcmp (text, "1") == 0)
        *(gboolean *) entry->arg_data |= text[0] == '1';
      else
        return gtorch_run_refuse (error, _ ("the variable %s is “%s”; it is 0 or 1"), name, text);
    }
  return TRUE;
}

/* --- what they mean --- */

static gboolean
check_supported (GError **error)
{
  if (given.start_method != NULL)
    return gtorch_run_refuse (error,
                              _ ("--start-method is not supported: a worker is a program that "
                                 "is started, not a function"));
  if (given.run_path)
    return gtorch_run_refuse (error,
                              _ ("--run-path is not supported: gtorch-run is no Python program "
                                 "that could run the script itself"));
  if (given.numa != NULL)
    return gtorch_run_refuse (error,
                              _ ("--numa-binding is not supported; with --no-python a program "
                                 "such as numactl can be run"));
  if (given.logs_specs != NULL || given.out_filters != NULL || given.err_filters != NULL)
    return gtorch_run_refuse (error, _ ("--logs-specs, --duplicate-stdout-filters and "
                                        "--duplicate-stderr-filters are not supported"));
  if (given.handler != NULL && strcmp (given.handler, "null") != 0)
    return gtorch_run_refuse (error,
                              _ ("--event-log-handler is “%s”; there is null only: events are "
                                 "not logged"),
                              given.handler);
  return TRUE;
}

static gboolean
read_number (const gchar *option, const gchar *text, guint high, guint *number, GError **error)
{
  guint64 value;

  if (text == NULL)
    return TRUE;
  if (!g_ascii_string_to_unsigned (text, 10, 0, high, &value, NULL))
    return gtorch_run_refuse (error, _ ("%s is “%s”; it is a number from 0 to %u"), option, text,
                              high);
  *number = (guint) value;
  return TRUE;
}

static gboolean
read_seconds (const gchar *option, const gchar *text, gdouble *seconds, GError **error)
{
  gchar *end;

  if (text == NULL)
    return TRUE;
  *seconds = g_ascii_strtod (text, &end);
  return (end != text && *end == '\0' && *seconds > 0 && *seconds <= 1e6)
         || gtorch_run_refuse (error, _ ("%s is “%s”; it is a number of seconds, more than 0"),
                               option, text);
}

/* What would have no effect is refused. */
static gboolean
check_rendezvous (const GTorchRunOptions *options, const gchar *backend, GError **error)
{
  if (given.standalone && options->max_nodes > 1)
    return gtorch_run_refuse (error, _ ("--standalone is for one node, and --nnodes is “%s”"),
                              given.nnodes);
  if (given.standalone && (given.backend != NULL || given.endpoint != NULL || given.id != NULL))
    return gtorch_run_refuse (error, _ ("--standalone excludes --rdzv-backend, --rdzv-endpoint and "
                                        "--rdzv-id, which it sets itself"));
  if (strcmp (backend, "static") != 0 && strcmp (backend, "c10d") != 0)
    return gtorch_run_refuse (error,
                              _ ("--rdzv-backend is “%s”; there are static and c10d, a store "
                                 "that is reached by TCP"),
                              backend);
  if (options->max_nodes == 1)
    return TRUE;
  if (strcmp (backend, "c10d") == 0)
    {
      if (given.node_rank != NULL || given.master_addr != NULL || given.master_port != NULL)
        return gtorch_run_refuse (error,
                                  _ ("--node-rank, --master-addr and --master-port are for a "
                                     "static rendezvous, and --rdzv-backend is c10d"));
      return given.endpoint != NULL
             || gtorch_run_refuse (error,
                                   _ ("a rendezvous of several nodes needs --rdzv-endpoint"));
    }
  if (options->min_nodes != options->max_nodes)
    return gtorch_run_refuse (error,
                              _ ("--nnodes is “%s”; a static rendezvous has a fixed number of "
                                 "nodes (--rdzv-backend=c10d has a range)"),
                              given.nnodes);
  if (given.node_rank == NULL)
    return gtorch_run_refuse (error, _ ("a static rendezvous of %u nodes needs --node-rank"),
                              options->max_nodes);
  if (given.endpoint != NULL && (given.master_addr != NULL || given.master_port != NULL))
    return gtorch_run_refuse (error,
                              _ ("--rdzv-endpoint excludes --master-addr and --master-port"));
  return given.endpoint != NULL || given.master_addr != NULL
         || gtorch_run_refuse (error,
                               _ ("a static rendezvous of several nodes needs --master-addr, "
                                  "or --rdzv-endpoint"));
}

static gboolean
read_rendezvous (GTorchRunOptions *options, GError **error)
{
  const gchar *backend = given.backend != NULL ? given.backend : "static";
  guint node_rank = 0;

  if (!check_rendezvous (options, backend, error)
      || !read_number ("--node-rank", given.node_rank, options->max_nodes - 1, &node_rank, error)
      || !read_number ("--master-port", given.master_port, G_MAXUINT16, &options->master_port,
                       error))
    return FALSE;
  options->is_static = strcmp (backend, "static") == 0;
  options->is_host = -1;
  options->node_rank = options->is_static ? (gint) node_rank : -1;
  options->run_id =
      given.standalone ? g_uuid_string_random () : g_strdup (given.id != NULL ? given.id : "none");
  options->master_addr = g_strdup (given.master_addr);
  if (options->max_nodes == 1)
    {
      /* nobody else has to find the store */
      options->host = g_strdup ("127.0.0.1");
      options->is_host = 1;
    }
  else
    {
      options->host = g_strdup (given.master_addr);
      options->port = options->master_port != 0 ? options->master_port : DEFAULT_PORT;
      if (options->is_static)
        options->is_host = node_rank == 0;
    }
  return (given.endpoint == NULL
          || gtorch_run_parse_endpoint ("--rdzv-endpoint", given.endpoint, &options->host,
                                        &options->port, error))
         && (given.conf == NULL || gtorch_run_parse_conf (options, given.conf, error));
}

static gboolean
read_output (GTorchRunOptions *options, GError **error)
{
  const gchar *template = g_getenv ("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE");

  if ((given.redirects != NULL
       && !gtorch_run_parse_streams ("--redirects", given.redirects, &options->redirects, error))
      || (given.tee != NULL
          && !gtorch_run_parse_streams ("--tee", given.tee, &options->tees, error))
      || (given.filter != NULL && *given.filter != '\0'
          && !gtorch_run_parse_ranks (given.filter, &options->shown, error)))
    return FALSE;
  options->role = g_strdup (given.role != NULL ? given.role : "default");
  options->log_dir = g_strdup (given.log_dir);
  if (given.prefix != NULL && *given.prefix != '\0')
    template = given.prefix;
  options->prefix = g_strdup (template != NULL ? template : TEMPLATE);
  return TRUE;
}

/* Whether a program of gjs begins lines with import or export, which only modules can. A file that cannot be
 * read is refused by gjs. */
static gboolean
is_module (const gchar *path)
{
  static const gchar *const words[] = { "import", "export" };
  g_autofree gchar *text = NULL;
  const gchar *line;

  if (g_str_has_suffix (path, ".mjs"))
    return TRUE;
  if (!g_file_get_contents (path, &text, NULL, NULL))
    return FALSE;
  for (line = text; line != NULL; line = strchr (line, '\n'))
    {
      line += *line == '\n';
      for (guint i = 0; i < G_N_ELEMENTS (words); i++)
        {
          const gsize length = strlen (words[i]);

          if (strncmp (line, words[i], length) == 0 && line[length] != '\0'
              && strchr (" \t{*'\"", line[length]) != NULL)
            return TRUE;
        }
    }
  return FALSE;
}

/* A script of Python, or of gjs by its name, or any program. */
static gboolean
read_command (GTorchRunOptions *options, gint argc, gchar **argv, GError **error)
{
  g_autoptr (GStrvBuilder) command = g_strv_builder_new ();
  const gchar *python = g_getenv ("PYTHON_EXEC");
  gint i = 1;

  if (argc > 1 && strcmp (argv[1], "--") == 0)
    i++;
  if (i >= argc)
    return gtorch_run_refuse (error, _ ("there is no program to run"));
  if (given.module && given.no_python)
    return gtorch_run_refuse (error, _ ("--module and --no-python exclude each other"));
  options->name = g_strdup (argv[i]);
  if (given.no_python)
    ;
  else if (g_str_has_suffix (argv[i], ".js") || g_str_has_suffix (argv[i], ".mjs"))
    {
      g_strv_builder_add (command, "gjs");
      if (given.module || is_module (argv[i]))
        g_strv_builder_add (command, "-m");
    }
  else
    {
      g_strv_builder_add (command, python != NULL ? python : "python3");
      g_strv_builder_add (command, "-u");
      if (given.module)
        g_strv_builder_add (command, "-m");
    }
  for (; i < argc; i++)
    g_strv_builder_add (command, argv[i]);
  options->command = g_strv_builder_end (command);
  return TRUE;
}

static gboolean
read_all (GTorchRunOptions *options, gint argc, gchar **argv, GError **error)
{
  options->join_timeout = 600;
  options->last_call_timeout = 30;
  options->close_timeout = 30;
  options->keep_alive_interval = 5;
  options->keep_alive_max_attempt = 3;
  options->monitor_interval = 0.1;
  options->shutdown_timeout = 30;
  options->min_nodes = options->max_nodes = 1;
  options->hides_gpus = g_strcmp0 (given.device, "cpu") == 0;
  options->local_addr = g_strdup (given.local_addr);
  return check_supported (error)
         && (given.nnodes == NULL
             || gtorch_run_parse_nodes (given.nnodes, &options->min_nodes, &options->max_nodes,
                                        error))
         && gtorch_run_parse_workers (given.nproc != NULL ? given.nproc : "1", given.device,
                                      &options->n_workers, error)
         && read_rendezvous (options, error)
         && read_number ("--max-restarts", given.restarts, 1000000, &options->max_restarts, error)
         && read_seconds ("--monitor-interval", given.interval, &options->monitor_interval, error)
         && read_seconds ("--shutdown-timeout", given.shutdown, &options->shutdown_timeout, error)
         && gtorch_run_parse_signals (given.signals != NULL ? given.signals
                                                            : "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
                                      &options->signals, error)
         && read_output (options, error) && read_command (options, argc, argv, error);
}

GTorchRunOptions *
gtorch_run_options_parse (gchar **argv, GError **error)
{
  g_autoptr (GOptionContext) context = g_option_context_new (_ ("PROGRAM [ARGUMENT…]"));
  g_autoptr (GTorchRunOptions) options = g_new0 (GTorchRunOptions, 1);
  g_auto (GStrv) arguments = normalize (argv);
  gint n;

  g_option_context_set_summary (context, _ ("Starts several processes of a program, which compute "
                                            "together: a Python script, a script of gjs (.js), or "
                                            "with --no-python any program."));
  g_option_context_set_translation_domain (context, GETTEXT_PACKAGE);
  g_option_context_set_strict_posix (context, TRUE);
  g_option_context_add_main_entries (context, entries, GETTEXT_PACKAGE);
  /* removes what it has read */
  if (!g_option_context_parse_strv (context, &arguments, error))
    return NULL;
  n = (gint) g_strv_length (arguments);
  if (given.version)
    {
      g_print ("gtorch-run %s\n", GTORCH_VERSION);
      return NULL;
    }
  return read_environment (error) && read_all (options, n, arguments, error)
             ? g_steal_pointer (&options)
             : NULL;
}

void
gtorch_run_options_free (GTorchRunOptions *options)
{
  g_clear_pointer (&options->redirects.ranks, g_hash_table_unref);
  g_clear_pointer (&options->tees.ranks, g_hash_table_unref);
  g_clear_pointer (&options->shown, g_hash_table_unref);
  g_free (options->host);
  g_free (options->run_id);
  g_free (options->role);
  g_free (options->log_dir);
  g_free (options->prefix);
  g_free (options->local_addr);
  g_free (options->master_addr);
  g_free (options->signals);
  g_strfreev (options->command);
  g_free (options->name);
  g_free (options);
}
