/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The values of NCCL's header. Types of functions are compared at compile time; that of the configuration
 * has got members since, which NCCL knows by its size, so that it must begin alike. */

#include <nccl.h>
#include <stddef.h>

#include "abi.h"

#define F(name, type, arguments)                                                        \
  _Static_assert(__builtin_types_compatible_p (__typeof__ (&name), type (*) arguments), \
                 #name " has another form");
#include <gtorch/distributed/nccl/gtorch-nccl-functions.inc>
#undef F

unsigned int nccl_toolkit_magic (void);

static const ncclConfig_t initial = NCCL_CONFIG_INITIALIZER;

const AbiValue abi_toolkit_values[] = {
#define V(name)         { #name, (long long) name },
#define S(type)         { "sizeof " #type, sizeof (type) },
#define M(type, member) { #type "." #member, offsetof (type, member) },
#include "nccl-values.h"
  { NULL, 0 },
};

unsigned int
nccl_toolkit_magic (void)
{
  return initial.magic;
}
