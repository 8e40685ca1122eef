/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Compares CUPTI's binary interface as the library declares it with the headers of NVIDIA's toolkit. */

#include <glib.h>
#include <gtorch/cuda/trace/gtorch-cupti-abi-private.h>

#include "abi.h"

static void
values_are_those_of_the_toolkit (void)
{
#ifdef HAVE_CUPTI_H
  static const AbiValue own[] = {
#define V(name)         { #name, (long long) name },
#define M(type, member) { #type "." #member, offsetof (type, member) },
#include "cupti-values.h"
  };
  guint i;

  for (i = 0; i < G_N_ELEMENTS (own); i++)
    {
      g_assert_cmpstr (own[i].name, ==, abi_toolkit_values[i].name);
      if (own[i].value == abi_toolkit_values[i].value)
        continue;
      g_test_message ("%s is %lld here and %lld there", own[i].name, own[i].value,
                      abi_toolkit_values[i].value);
      g_test_fail ();
    }
  g_assert_null (abi_toolkit_values[i].name);
#else
  g_test_skip ("no cupti.h");
#endif
}

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorchCuptiAbi/values_are_those_of_the_toolkit",
                   values_are_those_of_the_toolkit);
  return g_test_run ();
}
