/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Windows over the last two dimensions of contiguous images. */
typedef struct
{
  gboolean adaptive, include_pad;
  gint64 kernel[2], stride[2], padding[2], dilation[2];
  gint64 in[2], out[2];
  gint64 divisor;
  guint dtype;
  gsize size;
  const char *x;
  char *y;
  gint64 *indices;
  gint failed; /* the allocation of a row of places has failed; atomic */
} GTorchCpuPool;

/* Computes, for float32 or float64 images from begin up to end, the maximum of each window and its place in
 * the image: that of the last NaN, or of the first of the largest elements. */
void gtorch_cpu_max_pool (gint64 begin, gint64 end, gpointer pool);

G_END_DECLS
