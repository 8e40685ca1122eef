/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Compares CUPTI's binary interface as the library declares it with the headers of NVIDIA's toolkit. */

#include <gtorch/cuda/trace/gtorch-cupti-abi-private.h>

#include "abi-test.h"

static void
values_are_those_of_the_toolkit (void)
{
#ifdef HAVE_CUPTI_H
  static const AbiValue own[] = {
#include "cupti-values.h"
  };

  assert_values_of_toolkit (own, G_N_ELEMENTS (own), abi_toolkit_values);
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
