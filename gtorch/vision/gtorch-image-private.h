/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Decoders of images. Both are libraries that are opened when the first image comes: TurboJPEG, if it is
 * there, for JPEG, and GdkPixbuf for everything else and for what TurboJPEG does not do. */

#pragma once

#include "tensor/gtorch-impl-private.h"
#include "vision/gtorch-image.h"

G_BEGIN_DECLS

typedef struct
{
  const guint8 *data;
  gsize n_bytes;
  GTorchImageMode mode;
  gboolean apply_orientation;
  gint64 max_pixels;
  GCancellable *cancellable;
} GTorchImageRequest;

/* INVALID unless the image may be so large. */
gboolean gtorch_image_check_size (const GTorchImageRequest *request, gint64 width, gint64 height,
                                  GError **error);
/* An uninitialised image, [height, width, channels] of uint8. */
GTorchImpl *gtorch_image_new (gint64 width, gint64 height, guint n_channels, GError **error);
/* Takes the image; turned as EXIF's orientation 1 to 8 says. */
GTorchImpl *gtorch_image_turn (GTorchImpl *image, guint orientation, GError **error);

/* What EXIF says, or 1. */
guint gtorch_exif_orientation (const guint8 *jpeg, gsize n_bytes);

/* NULL without an error: the library is missing, or leaves the file to GdkPixbuf, also below. The result is
 * [height, width, channels]. */
GTorchImpl *gtorch_turbojpeg_decode (const GTorchImageRequest *request, GError **error);
GTorchImpl *gtorch_pixbuf_decode (const GTorchImageRequest *request, GError **error);
/* pixels: rows of 3 or 4 bytes for each pixel, without gaps. */
GBytes *gtorch_pixbuf_encode (GBytes *pixels, gint64 width, gint64 height, gboolean has_alpha,
                              const gchar *format, gint quality, GError **error);
/* pixels: rows of one byte for each pixel, without gaps. */
GBytes *gtorch_turbojpeg_encode_gray (const guint8 *pixels, gint64 width, gint64 height,
                                      gint quality, GError **error);
GBytes *gtorch_png_encode_gray (const guint8 *pixels, gint64 width, gint64 height, GError **error);

G_END_DECLS
