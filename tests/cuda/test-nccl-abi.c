/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Compares NCCL's binary interface as the library declares it with its own header. */

#include <glib.h>
#include <gtorch/distributed/nccl/gtorch-nccl-abi-private.h>

#include "abi.h"

unsigned int nccl_toolkit_magic (void);

static void
values_are_those_of_the_header (void)
{
#ifdef HAVE_NCCL_H
  static const AbiValue own[] = {
#define V(name)         { #name, (long long) name },
#define S(type)         { "sizeof " #type, sizeof (type) },
#define M(type, member) { #type "." #member, offsetof (type, member) },
#include "nccl-values.h"
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
  g_assert_cmphex (nccl_toolkit_magic (), ==, NCCL_CONFIG_MAGIC);
#else
  g_test_skip ("no nccl.h of 2.27 or newer");
#endif
}

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorchNcclAbi/values_are_those_of_the_header", values_are_those_of_the_header);
  return g_test_run ();
}
