/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Windows over the last two dimensions of images without gaps. */
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
  gint failed; /* atomically: there is no memory for a row of places */
} GTorchCpuPool;

/* The maximum of each window of float32 or float64 images from begin up to end, and its place in the image:
 * the last NaN's, or the first of the largest. */
void gtorch_cpu_max_pool (gint64 begin, gint64 end, gpointer pool);

G_END_DECLS
