/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

typedef struct
{
  const char *name; /* NULL ends the array */
  long long value;
} AbiValue;

/* The values of NVIDIA's headers. */
extern const AbiValue abi_toolkit_values[];
