/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Prints how this installation of GTorch was built and what it finds on this machine: for a first
 * diagnosis, and for bug reports. */

#include "config.h"

#include <errno.h>
#include <glib/gi18n-lib.h>
#include <gtorch/gtorch.h>
#include <locale.h>
#include <stdio.h>

#include "gtorch-tool-json-private.h"

static gboolean show_version, need_cuda, as_json;

static const GOptionEntry entries[] = {
  { "version", 0, 0, G_OPTION_ARG_NONE, &show_version, N_ ("Print the version and exit"), NULL },
  { "need-cuda", 0, 0, G_OPTION_ARG_NONE, &need_cuda, N_ ("Fail unless there is a usable GPU"),
    NULL },
  { "json", 0, 0, G_OPTION_ARG_NONE, &as_json, N_ ("Print a JSON object, for programs"), NULL },
  { NULL },
};

/* --- for people --- */

static void
print_build (void)
{
  g_auto (GStrv) keys = gtorch_get_build_keys ();
  guint i;

  g_print ("%s\n", _ ("Build"));
  for (i = 0; keys[i] != NULL; i++)
    {
      g_autofree gchar *value = gtorch_get_build_info (keys[i]);

      g_print ("  %-20s %s\n", keys[i], value[0] != '\0' ? value : _ ("none"));
    }
}

/* Tensors are created on the default device; a program that wants a GPU asks for the preferred one. */
static const gchar *
device_note (GTorchDevice *device, GTorchDevice *best)
{
  if (device == gtorch_get_default_device ())
    return device == best ? _ (" (the default, and preferred)") : _ (" (the default)");
  return device == best ? _ (" (preferred)") : "";
}

static void
print_device (GTorchDevice *device, GTorchDevice *best)
{
  g_autofree gchar *name = gtorch_device_to_string (device);
  g_autofree gchar *memory =
      g_format_size_full (gtorch_device_get_total_memory (device), G_FORMAT_SIZE_IEC_UNITS);
  g_autofree gchar *l2 =
      g_format_size_full (gtorch_device_get_l2_size (device), G_FORMAT_SIZE_IEC_UNITS);

  g_print ("  %-7s %s, %s%s\n", name, gtorch_device_get_name (device), memory,
           device_note (device, best));
  if (gtorch_device_get_device_type (device) == GTORCH_DEVICE_TYPE_CPU)
    {
      g_print (_ ("          processors: %u, threads: %u\n"),
               gtorch_device_get_n_multiprocessors (device), gtorch_get_num_threads ());
      return;
    }
  g_print (_ ("          capability %d.%d, %u multiprocessors of %u threads, L2 cache %s\n"),
           gtorch_device_get_compute_major (device), gtorch_device_get_compute_minor (device),
           gtorch_device_get_n_multiprocessors (device),
           gtorch_device_get_threads_per_multiprocessor (device), l2);
  g_print (_ ("          PCI %s, %s\n"), gtorch_device_get_pci_id (device),
           gtorch_device_get_uuid (device));
}

static void
print_devices (GTorchDevice *best)
{
  GListModel *devices = G_LIST_MODEL (gtorch_device_manager_get_default ());
  g_autofree gchar *reason =
      gtorch_device_manager_dup_reason (gtorch_device_manager_get_default ());
  guint i;

  g_print ("\n%s\n", _ ("Devices"));
  for (i = 0; i < g_list_model_get_n_items (devices); i++)
    {
      g_autoptr (GTorchDevice) device = g_list_model_get_item (devices, i);

      if (device != NULL)
        print_device (device, best);
    }
  if (reason != NULL)
    g_print ("  %s\n", reason);
}

static void
print_libraries (void)
{
  g_auto (GStrv) names = gtorch_get_cuda_libraries ();
  guint i;

  g_print ("\n%s\n", _ ("Libraries for GPUs, each loaded when it is first needed"));
  for (i = 0; names[i] != NULL; i++)
    {
      g_autoptr (GError) error = NULL;
      g_autofree gchar *version = gtorch_get_cuda_library_version (names[i], &error);

      g_print ("  %-20s %s\n", names[i], version != NULL ? version : error->message);
    }
}

static void
print_text (GTorchDevice *best)
{
  print_build ();
  print_devices (best);
  print_libraries ();
}

/* --- for programs --- */

static void
json_build (GString *json)
{
  g_auto (GStrv) keys = gtorch_get_build_keys ();
  guint i;

  tool_json_begin (json, 1, "build");
  g_string_append_c (json, '{');
  for (i = 0; keys[i] != NULL; i++)
    {
      g_autofree gchar *value = gtorch_get_build_info (keys[i]);

      tool_json_string (json, 2, keys[i], value[0] != '\0' ? value : NULL);
    }
  tool_json_end (json, 1, "}");
}

static void
json_device (GString *json, GTorchDevice *device, GTorchDevice *best)
{
  g_autofree gchar *device_id = gtorch_device_to_string (device);
  g_autofree gchar *capability = g_strdup_printf ("%d.%d", gtorch_device_get_compute_major (device),
                                                  gtorch_device_get_compute_minor (device));

  tool_json_begin (json, 2, NULL);
  g_string_append_c (json, '{');
  tool_json_string (json, 3, "device", device_id);
  tool_json_string (json, 3, "name", gtorch_device_get_name (device));
  tool_json_begin (json, 3, "is-default");
  g_string_append (json, device == gtorch_get_default_device () ? "true" : "false");
  tool_json_begin (json, 3, "is-preferred");
  g_string_append (json, device == best ? "true" : "false");
  tool_json_number (json, 3, "total-memory", gtorch_device_get_total_memory (device));
  tool_json_number (json, 3, "n-multiprocessors", gtorch_device_get_n_multiprocessors (device));
  if (gtorch_device_get_device_type (device) == GTORCH_DEVICE_TYPE_CPU)
    tool_json_number (json, 3, "n-threads", gtorch_get_num_threads ());
  else
    {
      tool_json_string (json, 3, "capability", capability);
      tool_json_number (json, 3, "threads-per-multiprocessor",
                        gtorch_device_get_threads_per_multiprocessor (device));
      tool_json_number (json, 3, "l2-size", gtorch_device_get_l2_size (device));
      tool_json_string (json, 3, "pci-id", gtorch_device_get_pci_id (device));
      tool_json_string (json, 3, "uuid", gtorch_device_get_uuid (device));
    }
  tool_json_end (json, 2, "}");
}

static void
json_devices (GString *json, GTorchDevice *best)
{
  GListModel *devices = G_LIST_MODEL (gtorch_device_manager_get_default ());
  g_autofree gchar *reason =
      gtorch_device_manager_dup_reason (gtorch_device_manager_get_default ());
  guint i;

  tool_json_begin (json, 1, "devices");
  g_string_append_c (json, '[');
  for (i = 0; i < g_list_model_get_n_items (devices); i++)
    {
      g_autoptr (GTorchDevice) device = g_list_model_get_item (devices, i);

      if (device != NULL)
        json_device (json, device, best);
    }
  tool_json_end (json, 1, "]");
  tool_json_string (json, 1, "reason", reason);
}

static void
json_libraries (GString *json)
{
  g_auto (GStrv) names = gtorch_get_cuda_libraries ();
  guint i;

  tool_json_begin (json, 1, "libraries");
  g_string_append_c (json, '{');
  for (i = 0; names[i] != NULL; i++)
    {
      g_autoptr (GError) error = NULL;
      g_autofree gchar *version = gtorch_get_cuda_library_version (names[i], &error);

      tool_json_begin (json, 2, names[i]);
      g_string_append_c (json, '{');
      tool_json_string (json, 3, "version", version);
      tool_json_string (json, 3, "error", error != NULL ? error->message : NULL);
      tool_json_end (json, 2, "}");
    }
  tool_json_end (json, 1, "}");
}

static void
print_json (GTorchDevice *best)
{
  g_autoptr (GString) json = g_string_new ("{");

  json_build (json);
  json_devices (json, best);
  json_libraries (json);
  tool_json_end (json, 0, "}\n");
  fputs (json->str, stdout); /* JSON is UTF-8, whatever the encoding of the locale */
}

static gboolean
parse_options (int argc, char *argv[], GError **error)
{
  g_autoptr (GOptionContext) context = g_option_context_new (NULL);

  g_option_context_set_summary (context, _ ("Shows how GTorch was built, and the devices and "
                                            "libraries that it finds."));
  g_option_context_set_translation_domain (context, GETTEXT_PACKAGE);
  g_option_context_add_main_entries (context, entries, GETTEXT_PACKAGE);
  if (!g_option_context_parse (context, &argc, &argv, error))
    return FALSE;
  if (argc > 1)
    {
      g_set_error (error, G_OPTION_ERROR, G_OPTION_ERROR_FAILED, _ ("unexpected argument “%s”"),
                   argv[1]);
      return FALSE;
    }
  return TRUE;
}

/* What was printed may still be on its way: a full disk shows only here. */
static int
finish (int status)
{
  if (!ferror (stdout) && fclose (stdout) == 0)
    return status;
  g_printerr ("gtorch-info: %s: %s\n", _ ("the output cannot be written"), g_strerror (errno));
  return 2;
}

int
main (int argc, char *argv[])
{
  g_autoptr (GError) error = NULL;
  GTorchDevice *best;

  setlocale (LC_ALL, "");
  g_set_prgname ("gtorch-info");
  if (!parse_options (argc, argv, &error))
    {
      g_printerr ("gtorch-info: %s\n", error->message);
      return 2;
    }
  if (show_version)
    {
      g_print ("gtorch-info %s\n", GTORCH_VERSION);
      return finish (0);
    }
  best = gtorch_device_get_default ();
  if (as_json)
    print_json (best);
  else
    print_text (best);
  return finish (need_cuda && best == gtorch_device_cpu () ? 1 : 0);
}
