/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

typedef struct
{
  const char *name; /* NULL: the last */
  long long value;
} AbiValue;

/* From NVIDIA's headers. */
extern const AbiValue abi_toolkit_values[];
