/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A stand-in for NCCL, which is only asked for its version: the number in GTORCH_FAKE_NCCL. */

#include <stdlib.h>

/* The function is declared in NVIDIA's header. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define EXPORT           __attribute__ ((visibility ("default")))
#define INTERNAL_ERROR   3
#define INVALID_ARGUMENT 4

EXPORT int
ncclGetVersion (int *version)
{
  const char *number = getenv ("GTORCH_FAKE_NCCL");

  if (version == NULL)
    return INVALID_ARGUMENT;
  *version = number != NULL ? atoi (number) : 22809;
  return *version > 0 ? 0 : INTERNAL_ERROR;
}
