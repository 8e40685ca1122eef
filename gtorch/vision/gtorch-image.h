/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

/**
 * GTorchImageMode:
 * @GTORCH_IMAGE_MODE_UNCHANGED: the channels that the file has
 * @GTORCH_IMAGE_MODE_GRAY: one channel, the luminance
 * @GTORCH_IMAGE_MODE_GRAY_ALPHA: luminance and opacity
 * @GTORCH_IMAGE_MODE_RGB: red, green and blue; opacity is dropped
 * @GTORCH_IMAGE_MODE_RGB_ALPHA: red, green, blue and opacity, which is 255 if the file has none
 *
 * Which channels an image is given.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_IMAGE_MODE_UNCHANGED,
  GTORCH_IMAGE_MODE_GRAY,
  GTORCH_IMAGE_MODE_GRAY_ALPHA,
  GTORCH_IMAGE_MODE_RGB,
  GTORCH_IMAGE_MODE_RGB_ALPHA,
} GTorchImageMode;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_image_mode_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_IMAGE_MODE (gtorch_image_mode_get_type ())

GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_image_load (GInputStream *stream, GTorchImageMode mode,
                                 gboolean apply_orientation, gint64 max_pixels,
                                 GCancellable *cancellable,
                                 GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_image_load_bytes (GBytes *bytes, GTorchImageMode mode,
                                       gboolean apply_orientation, gint64 max_pixels,
                                       GCancellable *cancellable,
                                       GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_image_load_file (GFile *file, GTorchImageMode mode, gboolean apply_orientation,
                                      gint64 max_pixels, GCancellable *cancellable,
                                      GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_image_load_file_async (GFile *file, GTorchImageMode mode, gboolean apply_orientation,
                                   gint64 max_pixels, int io_priority, GCancellable *cancellable,
                                   GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_image_load_file_finish (GAsyncResult *result,
                                             GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GBytes *gtorch_image_encode (GTorchTensor *image, const gchar *format, gint quality,
                             GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_image_save_file (GTorchTensor *image, GFile *file, const gchar *format,
                                 gint quality, GCancellable *cancellable, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_image_save_file_async (GTorchTensor *image, GFile *file, const gchar *format,
                                   gint quality, int io_priority, GCancellable *cancellable,
                                   GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_image_save_file_finish (GAsyncResult *result, GError **error);

G_END_DECLS
