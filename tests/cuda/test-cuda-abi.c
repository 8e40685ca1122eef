/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Compares the driver's binary interface as the library declares it with the headers of NVIDIA's toolkit. */

#include <glib.h>
#include <gtorch/cuda/driver/gtorch-cuda-abi-private.h>

#include "abi.h"

static void
values_are_those_of_the_toolkit (void)
{
#ifdef HAVE_CUDA_H
  static const AbiValue own[] = {
#define V(name)         { #name, (long long) name },
#define S(type)         { "sizeof " #type, sizeof (type) },
#define M(type, member) { #type "." #member, offsetof (type, member) },
#include "abi-values.h"
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
  g_test_skip ("no cuda.h");
#endif
}

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorchCudaAbi/values_are_those_of_the_toolkit",
                   values_are_those_of_the_toolkit);
  return g_test_run ();
}
