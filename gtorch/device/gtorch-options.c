/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The options that a program offers its users on the command line. */

#include "config.h"

#include "device/gtorch-options.h"

#include <glib/gi18n-lib.h>

#include "device/gtorch-device-manager.h"
#include "device/gtorch-device-private.h"

typedef struct
{
  gchar *device;
  gboolean disable_cuda;
} Options;

static void
options_free (gpointer data)
{
  Options *options = data;

  g_free (options->device);
  g_free (options);
}

static gboolean
parse_device (const gchar *name, const gchar *value, gpointer data, GError **error)
{
  Options *options = data;

  g_free (options->device);
  options->device = g_strdup (value);
  return TRUE;
}

static gboolean
parse_threads (const gchar *name, const gchar *value, gpointer data, GError **error)
{
  guint64 n;

  return g_ascii_string_to_unsigned (value, 10, 1, 65536, &n, error)
         && gtorch_set_num_threads (n, error);
}

static gboolean
parse_disable_cuda (const gchar *name, const gchar *value, gpointer data, GError **error)
{
  ((Options *) data)->disable_cuda = TRUE;
  return TRUE;
}

static gboolean
choose_device (GOptionContext *context, GOptionGroup *group, gpointer data, GError **error)
{
  Options *options = data;
  g_autoptr (GTorchDevice) device = NULL;

  if (options->disable_cuda)
    gtorch_set_default_device (gtorch_device_cpu ());
  else if (options->device != NULL)
    {
      device = gtorch_device_new_from_string (options->device, error);
      if (device == NULL)
        return FALSE;
      gtorch_set_default_device (device);
    }
  else if (gtorch_peek_default_device () == NULL)
    gtorch_set_default_device (gtorch_device_get_default ());
  return TRUE;
}

/**
 * gtorch_get_option_group:
 *
 * Creates the option group for a program's command line. [func@parse_options] and [func@add_options] are
 * simpler, and the only way in languages without #GOptionContext.
 *
 * `--device=NAME` sets the default device; `--disable-cuda` sets it to the CPU, whatever `--device` says,
 * and does not initialise CUDA. Without them it is set to [func@Device.get_default], unless the program has
 * set one before. `--threads=N` calls [func@set_num_threads].
 *
 * ```c
 * g_option_context_add_group (context, gtorch_get_option_group ());
 * if (!g_option_context_parse (context, &argc, &argv, &error))
 *   return FALSE;
 * x = gtorch_zeros (GTORCH_SHAPE (2, 3), GTORCH_DTYPE_FLOAT32, NULL, &error); // on that device
 * ```
 *
 * Returns: (transfer full): a new option group
 *
 * Since: 0.1
 */
GOptionGroup *
gtorch_get_option_group (void)
{
  static const GOptionEntry entries[] = { { "device", 0, 0, G_OPTION_ARG_CALLBACK, parse_device,
                                            N_ ("Compute on this device"), N_ ("cpu|cuda|cuda:N") },
                                          { "disable-cuda", 0, G_OPTION_FLAG_NO_ARG,
                                            G_OPTION_ARG_CALLBACK, parse_disable_cuda,
                                            N_ ("Compute on the CPU"), NULL },
                                          { "threads", 0, 0, G_OPTION_ARG_CALLBACK, parse_threads,
                                            N_ ("Use this many CPU threads"), "N" },
                                          { NULL } };
  GOptionGroup *group =
      g_option_group_new ("gtorch", _ ("GTorch Options:"), _ ("Show GTorch options"),
                          g_new0 (Options, 1), options_free);

  g_option_group_set_translation_domain (group, GETTEXT_PACKAGE);
  g_option_group_add_entries (group, entries);
  g_option_group_set_parse_hooks (group, NULL, choose_device);
  return group;
}

/**
 * gtorch_add_options:
 * @application: an application that has not been run yet
 *
 * Adds the options of [func@get_option_group] to those that an application accepts.
 *
 * They are parsed in [method@Gio.Application.run], before the application starts.
 *
 * ```c
 * gtorch_add_options (G_APPLICATION (app));
 * return g_application_run (G_APPLICATION (app), argc, argv); // --disable-cuda
 * ```
 *
 * Since: 0.1
 */
void
gtorch_add_options (GApplication *application)
{
  g_return_if_fail (G_IS_APPLICATION (application));
  g_application_add_option_group (application, gtorch_get_option_group ());
}

/**
 * gtorch_parse_options:
 * @arguments: (array zero-terminated=1) (element-type filename): what follows the name of the program
 *   on the command line
 * @error: return location for an error
 *
 * Applies the options of [func@get_option_group] among the arguments, and returns the other arguments.
 *
 * A program that parses its command line itself, or with a library of its language, calls this first.
 * Unknown arguments are left, `--help` included, and so is everything from `--` on. The default device is
 * set in any case.
 *
 * ```python
 * arguments = parser.parse_args(GTorch.parse_options(sys.argv[1:]))  # argparse
 * ```
 *
 * Returns: (transfer full) (array zero-terminated=1) (element-type filename): the other arguments in their
 *   order; %NULL with %GTORCH_ERROR_DEVICE if there is no such device, or with an error of #GOptionError
 *
 * Since: 0.1
 */
gchar **
gtorch_parse_options (const gchar *const *arguments, GError **error)
{
  g_autoptr (GOptionContext) context = g_option_context_new (NULL);
  g_autoptr (GStrvBuilder) others = g_strv_builder_new ();
  g_auto (GStrv) args = NULL;
  guint n, i;

  g_return_val_if_fail (arguments != NULL, NULL);
  for (n = 0; arguments[n] != NULL && !g_str_equal (arguments[n], "--"); n++)
    continue;
  args = g_new0 (gchar *, n + 2);
  args[0] = g_strdup (""); /* the place of the program's name */
  for (i = 0; i < n; i++)
    args[i + 1] = g_strdup (arguments[i]);
  g_option_context_set_help_enabled (context, FALSE);
  g_option_context_set_ignore_unknown_options (context, TRUE);
  g_option_context_add_group (context, gtorch_get_option_group ());
  if (!g_option_context_parse_strv (context, &args, error))
    return NULL;
  g_strv_builder_addv (others, (const gchar **) args + 1);
  g_strv_builder_addv (others, (const gchar **) arguments + n);
  return g_strv_builder_end (others);
}
