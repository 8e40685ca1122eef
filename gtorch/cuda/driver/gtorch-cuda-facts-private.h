/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/device/gtorch-backend-private.h>
#include <gtorch/device/gtorch-build-info.h>

G_BEGIN_DECLS

/* What gtorch_get_build_info () tells of the backend. */
extern const GTorchFact gtorch_cuda_facts[];

/* Do the kernels of a build for these architectures (see gtorch_get_arch_list()) run on a GPU of this compute
 * capability? */
gboolean gtorch_archs_cover (const gchar *const *archs, gint major, gint minor);

/* The folders that the build names for NVIDIA's libraries, separated by colons. */
const gchar *gtorch_build_cuda_library_path (void);

/* --- of cuda/gtorch-cuda-library.c --- */
/* The names, ended by NULL. */
gchar **gtorch_cuda_library_list (void);
gchar *gtorch_cuda_library_version (const gchar *name, GError **error);
/* "13.0", NULL without a driver. Does not initialise it. */
gchar *gtorch_cuda_driver_dup_version (void);

G_END_DECLS
