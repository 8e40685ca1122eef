/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The values of NVIDIA's headers of CUPTI. Version 13 has made the older forms of records, which it writes more
 * members behind, a part of another header. */

#include <cupti.h>
#include <cupti_activity_deprecated.h>
#include <stddef.h>

#include "abi.h"

const AbiValue abi_toolkit_values[] = {
#define V(name)         { #name, (long long) name },
#define M(type, member) { #type "." #member, offsetof (type, member) },
#include "cupti-values.h"
  { NULL, 0 },
};
