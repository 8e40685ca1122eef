/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/io/gtorch-source-private.h>

G_BEGIN_DECLS

/* What the header of an .npy file says. */
typedef struct
{
  guint dtype;
  gboolean swap;    /* the bytes of an element are in the other order */
  gboolean fortran; /* the first dimension is the fastest */
  guint n_dims;
  gint64 shape[GTORCH_MAX_DIMS];
  guint64 n_bytes; /* of the elements */
} GTorchNpyHeader;

/* Parses the dictionary; text need not end with a zero. */
gboolean gtorch_npy_header_parse (const gchar *op, const gchar *text, gsize length,
                                  GTorchNpyHeader *header, GError **error);
/* Magic, version, length and dictionary of a tensor in C order. */
GBytes *gtorch_npy_header_write (const gchar *op, GTorchImpl *impl, GError **error);
/* The array of a whole file in memory; without a copy unless bytes must be swapped. */
GTorchImpl *gtorch_npy_read (const gchar *op, GTorchSource *source, GBytes *bytes,
                             gboolean is_read_only, GError **error);

G_END_DECLS
