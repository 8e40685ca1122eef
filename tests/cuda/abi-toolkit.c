/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The values of NVIDIA's headers. Function types are compared at compile time: for each, cudaTypedefs.h
 * has a typedef whose name ends in the version that the loader asks for. */

#include <cuda.h>
#include <cudaTypedefs.h>
#include <stddef.h>

#include "abi.h"

#define F(name, version, arguments)                                                              \
  _Static_assert(__builtin_types_compatible_p (PFN_##name##_v##version, CUresult (*) arguments), \
                 #name " has another form");
#include <gtorch/cuda/driver/gtorch-cuda-functions.inc>
#undef F

const AbiValue abi_toolkit_values[] = {
#define V(name)         { #name, (long long) name },
#define S(type)         { "sizeof " #type, sizeof (type) },
#define M(type, member) { #type "." #member, offsetof (type, member) },
#include "abi-values.h"
  { NULL, 0 },
};
