/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Compares the driver's binary interface as the library declares it with the headers of NVIDIA's toolkit. */

#include <gtorch/cuda/driver/gtorch-cuda-abi-private.h>

#include "abi-test.h"

static void
values_are_those_of_the_toolkit (void)
{
#ifdef HAVE_CUDA_H
  static const AbiValue own[] = {
#include "abi-values.h"
  };

  assert_values_of_toolkit (own, G_N_ELEMENTS (own), abi_toolkit_values);
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
