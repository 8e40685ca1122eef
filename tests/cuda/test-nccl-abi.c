/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Compares NCCL's binary interface as the library declares it with its own header. */

#include <gtorch/distributed/nccl/gtorch-nccl-abi-private.h>

#include "abi-test.h"

unsigned int nccl_toolkit_magic (void);

static void
values_are_those_of_the_header (void)
{
#ifdef HAVE_NCCL_H
  static const AbiValue own[] = {
#include "nccl-values.h"
  };

  assert_values_of_toolkit (own, G_N_ELEMENTS (own), abi_toolkit_values);
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
