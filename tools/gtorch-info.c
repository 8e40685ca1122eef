/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Says what this installation of GTorch is made of and what it finds on this machine: the first thing to look
 * at, and to put into a report of a problem. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <gtorch/gtorch.h>
#include <locale.h>

static gboolean show_version, need_cuda;

static const GOptionEntry entries[] = {
  { "version", 0, 0, G_OPTION_ARG_NONE, &show_version, N_ ("Print the version and end"), NULL },
  { "need-cuda", 0, 0, G_OPTION_ARG_NONE, &need_cuda,
    N_ ("Fail unless there is a GPU that can be computed on"), NULL },
  { NULL },
};

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

static void
print_device (GTorchDevice *device, gboolean is_default)
{
  g_autofree gchar *name = gtorch_device_to_string (device);
  g_autofree gchar *memory =
      g_format_size_full (gtorch_device_get_total_memory (device), G_FORMAT_SIZE_IEC_UNITS);
  g_autofree gchar *l2 =
      g_format_size_full (gtorch_device_get_l2_size (device), G_FORMAT_SIZE_IEC_UNITS);

  g_print ("  %-7s %s, %s%s\n", name, gtorch_device_get_name (device), memory,
           is_default ? _ (" (the default)") : "");
  if (gtorch_device_get_device_type (device) == GTORCH_DEVICE_TYPE_CPU)
    {
      g_print (_ ("          %u processors, %u threads\n"),
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
        print_device (device, device == best);
    }
  if (reason != NULL)
    g_print ("  %s\n", reason);
}

static void
print_libraries (void)
{
  g_auto (GStrv) names = gtorch_get_cuda_libraries ();
  guint i;

  g_print ("\n%s\n", _ ("Libraries for GPUs, each opened when it is first needed"));
  for (i = 0; names[i] != NULL; i++)
    {
      g_autoptr (GError) error = NULL;
      g_autofree gchar *version = gtorch_get_cuda_library_version (names[i], &error);

      g_print ("  %-20s %s\n", names[i], version != NULL ? version : error->message);
    }
}

int
main (int argc, char *argv[])
{
  g_autoptr (GOptionContext) context = NULL;
  g_autoptr (GError) error = NULL;
  GTorchDevice *best;

  setlocale (LC_ALL, "");
  g_set_prgname ("gtorch-info");
  context = g_option_context_new (NULL);
  g_option_context_set_summary (context, _ ("Says how GTorch was built and what it finds here."));
  g_option_context_set_translation_domain (context, GETTEXT_PACKAGE);
  g_option_context_add_main_entries (context, entries, GETTEXT_PACKAGE);
  if (!g_option_context_parse (context, &argc, &argv, &error))
    {
      g_printerr ("gtorch-info: %s\n", error->message);
      return 2;
    }
  if (show_version)
    {
      g_print ("gtorch-info %s\n", GTORCH_VERSION);
      return 0;
    }
  best = gtorch_device_get_default ();
  print_build ();
  print_devices (best);
  print_libraries ();
  return need_cuda && best == gtorch_device_cpu () ? 1 : 0;
}
