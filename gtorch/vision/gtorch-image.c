/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "vision/gtorch-image.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-dtype-private.h"
#include "base/gtorch-error.h"
#include "base/gtorch-file-save-private.h"
#include "base/gtorch-task-private.h"
#include "base/gtorch-text-private.h"
#include "device/gtorch-device-private.h"
#include "gtorch-ops-private.h"
#include "gtorch-tensor-ops.h"
#include "io/gtorch-read-private.h"
#include "ops/gtorch-host-private.h"
#include "tensor/gtorch-tensor-private.h"
#include "vision/gtorch-image-private.h"

/* A file is not larger than this, and an image has by default not more pixels: half a gigabyte in RGB. */
#define MAX_BYTES  ((gsize) 1 << 30)
#define MAX_PIXELS 178956970
#define ENCODE     "image_encode"

GType
gtorch_image_mode_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    { GTORCH_IMAGE_MODE_UNCHANGED, "GTORCH_IMAGE_MODE_UNCHANGED", "unchanged" },
    { GTORCH_IMAGE_MODE_GRAY, "GTORCH_IMAGE_MODE_GRAY", "gray" },
    { GTORCH_IMAGE_MODE_GRAY_ALPHA, "GTORCH_IMAGE_MODE_GRAY_ALPHA", "gray-alpha" },
    { GTORCH_IMAGE_MODE_RGB, "GTORCH_IMAGE_MODE_RGB", "rgb" },
    { GTORCH_IMAGE_MODE_RGB_ALPHA, "GTORCH_IMAGE_MODE_RGB_ALPHA", "rgb-alpha" },
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, g_enum_register_static ("GTorchImageMode", values));
  return type;
}

gboolean
gtorch_image_check_size (const GTorchImageRequest *request, gint64 width, gint64 height,
                         GError **error)
{
  gint64 n;

  if (width >= 1 && height >= 1 && !__builtin_mul_overflow (width, height, &n)
      && n <= request->max_pixels)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("image_load: an image of %" PRId64 " × %" PRId64 " pixels; 1 to %" PRId64
                  " pixels are allowed"),
               width, height, request->max_pixels);
  return FALSE;
}

GTorchImpl *
gtorch_image_new (gint64 width, gint64 height, guint n_channels, GError **error)
{
  gint64 shape[] = { height, width, n_channels };
  GTorchImpl *image = gtorch_impl_new (gtorch_device_cpu (), GTORCH_DTYPE_UINT8, shape, 3, error);

  if (image == NULL)
    g_prefix_error (error, "image_load: ");
  return image;
}

/* A pixel of the result is that of the stored image at (x, y), whose axes are swapped from orientation 5
 * on. */
GTorchImpl *
gtorch_image_turn (GTorchImpl *image, guint orientation, GError **error)
{
  gint64 height = image->shape[0], width = image->shape[1], n = image->shape[2];
  gboolean swaps = orientation >= 5 && orientation <= 8;
  gboolean flips_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  gboolean flips_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const guint8 *from = gtorch_impl_data (image);
  GTorchImpl *result;
  guint8 *to;

  if (orientation < 2 || orientation > 8)
    return image;
  result = gtorch_image_new (swaps ? height : width, swaps ? width : height, n, error);
  if (result != NULL)
    {
      to = gtorch_impl_data (result);
      for (gint64 i = 0; i < result->shape[0]; i++)
        for (gint64 j = 0; j < result->shape[1]; j++, to += n)
          {
            gint64 x = swaps ? i : j, y = swaps ? j : i;

            if (flips_x)
              x = width - 1 - x;
            if (flips_y)
              y = height - 1 - y;
            memcpy (to, from + (y * width + x) * n, n);
          }
    }
  gtorch_impl_unref (image);
  return result;
}

static gboolean
check_request (const gchar *who, GTorchImageMode mode, gint64 max_pixels, GError **error)
{
  if (mode < GTORCH_IMAGE_MODE_UNCHANGED || mode > GTORCH_IMAGE_MODE_RGB_ALPHA)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: there is no mode %d"), who,
                   (gint) mode);
      return FALSE;
    }
  if (max_pixels >= 0)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: max_pixels is %" PRId64 ", but must be 0 or more"), who, max_pixels);
  return FALSE;
}

/**
 * gtorch_image_load_bytes:
 * @bytes: the content of a file
 * @mode: which channels the result has
 * @apply_orientation: whether the image is turned as its EXIF data say
 * @max_pixels: the most pixels that it may have, 0 for 178956970
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Decodes an image: PNG, JPEG, GIF (its first picture) and what else the system's GdkPixbuf reads.
 *
 * The result is [channels, height, width] of uint8. In memory the channels of a pixel lie side by side
 * (channels-last), as decoders write them.
 *
 * GdkPixbuf is opened with the first image, so other programs need it neither installed nor in memory. JPEG
 * is decoded by TurboJPEG instead if that is there (Debian's package libturbojpeg0), in half the time.
 *
 * Fails with %GTORCH_ERROR_FORMAT for what is no image or ends early, with %GTORCH_ERROR_INVALID for an
 * image of more than @max_pixels, before it is decoded, and with %GTORCH_ERROR_NOT_SUPPORTED if GdkPixbuf
 * is not installed.
 *
 * ```c
 * g_autoptr (GTorchTensor) image =
 *     gtorch_image_load_bytes (bytes, GTORCH_IMAGE_MODE_RGB, TRUE, 0, NULL, &error);
 * ```
 *
 * Returns: (transfer full): the image, or %NULL on error
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_image_load_bytes (GBytes *bytes, GTorchImageMode mode, gboolean apply_orientation,
                         gint64 max_pixels, GCancellable *cancellable, GError **error)
{
  static const gint64 order[] = { 2, 0, 1 };
  GTorchImageRequest request = {
    NULL, 0, mode, apply_orientation, max_pixels > 0 ? max_pixels : MAX_PIXELS, cancellable
  };
  g_autoptr (GTorchImpl) image = NULL;
  GError *local = NULL;

  g_return_val_if_fail (bytes != NULL, NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  if (!check_request ("image_load", mode, max_pixels, error))
    return NULL;
  request.data = g_bytes_get_data (bytes, &request.n_bytes);
  if (request.n_bytes >= 4 && memcmp (request.data, "\xff\xd8\xff", 3) == 0)
    image = gtorch_turbojpeg_decode (&request, &local);
  if (image == NULL && local == NULL)
    image = gtorch_pixbuf_decode (&request, &local);
  if (image == NULL)
    {
      g_propagate_error (error, local);
      return NULL;
    }
  return gtorch_tensor_wrap (gtorch_op_permute (image, order, 3, error));
}

/**
 * gtorch_image_load:
 * @stream: a stream of the content of a file, which is read to its end
 * @mode: which channels the result has
 * @apply_orientation: whether the image is turned as its EXIF data say
 * @max_pixels: the most pixels that it may have, 0 for 178956970
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Reads an image of at most 1 GiB from a stream; see [func@image_load_bytes].
 *
 * Returns: (transfer full): the image, or %NULL on error
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_image_load (GInputStream *stream, GTorchImageMode mode, gboolean apply_orientation,
                   gint64 max_pixels, GCancellable *cancellable, GError **error)
{
  g_autoptr (GBytes) bytes = NULL;

  g_return_val_if_fail (G_IS_INPUT_STREAM (stream), NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  if (!check_request ("image_load", mode, max_pixels, error))
    return NULL;
  bytes = gtorch_read_stream ("image_load", stream, MAX_BYTES, cancellable, error);
  return bytes != NULL ? gtorch_image_load_bytes (bytes, mode, apply_orientation, max_pixels,
                                                  cancellable, error)
                       : NULL;
}

/**
 * gtorch_image_load_file:
 * @file: a file
 * @mode: which channels the result has
 * @apply_orientation: whether the image is turned as its EXIF data say
 * @max_pixels: the most pixels that it may have, 0 for 178956970
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Reads an image of at most 1 GiB from a file; see [func@image_load_bytes].
 *
 * Returns: (transfer full): the image, or %NULL on error
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_image_load_file (GFile *file, GTorchImageMode mode, gboolean apply_orientation,
                        gint64 max_pixels, GCancellable *cancellable, GError **error)
{
  g_autoptr (GBytes) bytes = NULL;

  g_return_val_if_fail (G_IS_FILE (file), NULL);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), NULL);
  if (!check_request ("image_load", mode, max_pixels, error))
    return NULL;
  bytes = gtorch_read_file ("image_load", file, MAX_BYTES, cancellable, error);
  return bytes != NULL ? gtorch_image_load_bytes (bytes, mode, apply_orientation, max_pixels,
                                                  cancellable, error)
                       : NULL;
}

/* --- in another thread --- */

typedef struct
{
  GFile *file;
  GTorchImageMode mode;
  gboolean apply_orientation;
  gint64 max_pixels;
} Load;

static void
load_free (gpointer data)
{
  Load *load = data;

  g_object_unref (load->file);
  g_free (load);
}

static void
load_in_thread (GTask *task, gpointer source_object, gpointer data, GCancellable *cancellable)
{
  const Load *load = data;
  GError *error = NULL;
  GTorchTensor *image = gtorch_image_load_file (load->file, load->mode, load->apply_orientation,
                                                load->max_pixels, cancellable, &error);

  if (image != NULL)
    g_task_return_pointer (task, image, g_object_unref);
  else
    g_task_return_error (task, error);
}

/**
 * gtorch_image_load_file_async:
 * @file: a file
 * @mode: which channels the result has
 * @apply_orientation: whether the image is turned as its EXIF data say
 * @max_pixels: the most pixels that it may have, 0 for 178956970
 * @io_priority: the priority, such as %G_PRIORITY_DEFAULT
 * @cancellable: (nullable): a cancellable
 * @callback: (scope async) (closure user_data): called when it is done
 * @user_data: data for @callback
 *
 * Reads an image in another thread; see [func@image_load_bytes]. When @cancellable is cancelled, @callback
 * is called at once.
 *
 * Since: 0.1
 */
void
gtorch_image_load_file_async (GFile *file, GTorchImageMode mode, gboolean apply_orientation,
                              gint64 max_pixels, int io_priority, GCancellable *cancellable,
                              GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = NULL;
  Load *load;

  g_return_if_fail (G_IS_FILE (file));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  load = g_new (Load, 1);
  *load = (Load){ g_object_ref (file), mode, apply_orientation, max_pixels };
  task = gtorch_task_new (NULL, gtorch_image_load_file_async, cancellable, callback, user_data);
  g_task_set_priority (task, io_priority);
  g_task_set_task_data (task, load, load_free);
  gtorch_task_run_in_thread (task, load_in_thread);
}

/**
 * gtorch_image_load_file_finish:
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Gets the result of [func@image_load_file_async].
 *
 * Returns: (transfer full): the image, or %NULL on error
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_image_load_file_finish (GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), NULL);
  if (!gtorch_task_take (result, NULL, gtorch_image_load_file_async, error))
    return NULL;
  return g_task_propagate_pointer (G_TASK (result), error);
}

/* --- writing --- */

static gboolean
check_image (GTorchImpl *image, const gchar *format, gint quality, GError **error)
{
  if (image->dtype != GTORCH_DTYPE_UINT8)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("image_encode: the image is of %s, but must be of uint8"),
                   gtorch_dtype_infos[image->dtype].name);
      return FALSE;
    }
  if (image->n_dims != 3 || (image->shape[0] != 1 && image->shape[0] != 3 && image->shape[0] != 4)
      || image->shape[1] < 1 || image->shape[2] < 1 || image->shape[1] > G_MAXINT32 / 4
      || image->shape[2] > G_MAXINT32 / 4)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("image_encode: the shape is %s, but must be [1, 3 or 4, height, width]"),
                   gtorch_impl_shape_str (image));
      return FALSE;
    }
  if (strcmp (format, "png") != 0 && strcmp (format, "jpeg") != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("image_encode: the format is “%s”, but must be png or jpeg"),
                   gtorch_name_str (format));
      return FALSE;
    }
  if (quality < 1 || quality > 100)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("image_encode: the quality is %d, but must be 1 to 100"), quality);
      return FALSE;
    }
  if (image->shape[0] == 4 && strcmp (format, "jpeg") == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("image_encode: the shape is %s, but JPEG has no opacity"),
                   gtorch_impl_shape_str (image));
      return FALSE;
    }
  return TRUE;
}

/**
 * gtorch_image_encode:
 * @image: an image, [1, 3 or 4, height, width] of uint8
 * @format: `png` or `jpeg`
 * @quality: the quality of JPEG, 1 to 100
 * @error: return location for an error
 *
 * Encodes an image by the system's GdkPixbuf. One channel becomes a gray file without it: PNG by this
 * library, JPEG by TurboJPEG; where that is not installed, JPEG gets three equal channels.
 *
 * Fails with %GTORCH_ERROR_DTYPE, %GTORCH_ERROR_SHAPE, %GTORCH_ERROR_INVALID for the quality, and
 * %GTORCH_ERROR_NOT_SUPPORTED for another format or if GdkPixbuf is not installed.
 *
 * Returns: (transfer full): the content of a file, or %NULL on error
 *
 * Since: 0.1
 */
GBytes *
gtorch_image_encode (GTorchTensor *image, const gchar *format, gint quality, GError **error)
{
  static const gint64 order[] = { 1, 2, 0 };
  g_autoptr (GTorchImpl) host = NULL;
  g_autoptr (GTorchImpl) colored = NULL;
  g_autoptr (GTorchImpl) rows = NULL;
  g_autoptr (GTorchImpl) contiguous = NULL;
  g_autoptr (GBytes) pixels = NULL;
  GTorchImpl *impl;
  gint64 shape[3];

  g_return_val_if_fail (GTORCH_IS_TENSOR (image), NULL);
  g_return_val_if_fail (format != NULL, NULL);
  impl = gtorch_tensor_unwrap (image);
  if (!check_image (impl, format, quality, error))
    return NULL;
  memcpy (shape, impl->shape, sizeof shape);
  if ((host = gtorch_op_to_device (impl, gtorch_device_cpu (), FALSE, error)) == NULL)
    return NULL;
  if (shape[0] == 1)
    {
      GError *local = NULL;

      if ((contiguous = gtorch_op_contiguous (host, error)) == NULL
          || !gtorch_impl_wait (ENCODE, contiguous, error))
        return NULL;
      pixels =
          strcmp (format, "png") == 0
              ? gtorch_png_encode_gray (gtorch_impl_data (contiguous), shape[2], shape[1], &local)
              : gtorch_turbojpeg_encode_gray (gtorch_impl_data (contiguous), shape[2], shape[1],
                                              quality, &local);
      if (local != NULL)
        g_propagate_error (error, local);
      if (pixels != NULL || local != NULL)
        return g_steal_pointer (&pixels);
      g_clear_pointer (&contiguous, gtorch_impl_unref);
    }
  shape[0] = shape[0] == 1 ? 3 : shape[0];
  if ((colored = gtorch_op_expand (host, shape, 3, error)) == NULL
      || (rows = gtorch_op_permute (colored, order, 3, error)) == NULL
      || (contiguous = gtorch_op_contiguous (rows, error)) == NULL
      || !gtorch_impl_wait (ENCODE, contiguous, error))
    return NULL;
  pixels =
      g_bytes_new_with_free_func (gtorch_impl_data (contiguous), shape[0] * shape[1] * shape[2],
                                  (GDestroyNotify) gtorch_impl_unref, gtorch_impl_ref (contiguous));
  return gtorch_pixbuf_encode (pixels, shape[2], shape[1], shape[0] == 4, format, quality, error);
}

/**
 * gtorch_image_save_file:
 * @image: an image, [1, 3 or 4, height, width] of uint8
 * @file: where to
 * @format: `png` or `jpeg`
 * @quality: the quality of JPEG, 1 to 100
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Writes an image; see [func@image_encode]. A file that exists is replaced when the new one is complete,
 * and stays as it is on failure.
 *
 * Returns: %TRUE on success
 *
 * Since: 0.1
 */
gboolean
gtorch_image_save_file (GTorchTensor *image, GFile *file, const gchar *format, gint quality,
                        GCancellable *cancellable, GError **error)
{
  g_autoptr (GBytes) bytes = NULL;

  g_return_val_if_fail (GTORCH_IS_TENSOR (image), FALSE);
  g_return_val_if_fail (G_IS_FILE (file), FALSE);
  g_return_val_if_fail (format != NULL, FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  bytes = gtorch_image_encode (image, format, quality, error);
  return bytes != NULL && gtorch_file_save_bytes (file, bytes, cancellable, error);
}

/* --- writing in another thread --- */

typedef struct
{
  GTorchTensor *image;
  GFile *file;
  gchar *format;
  gint quality;
} Save;

static void
save_free (gpointer data)
{
  Save *save = data;

  g_object_unref (save->image);
  g_object_unref (save->file);
  g_free (save->format);
  g_free (save);
}

static void
save_in_thread (GTask *task, gpointer source_object, gpointer data, GCancellable *cancellable)
{
  const Save *save = data;
  GError *error = NULL;

  if (gtorch_image_save_file (save->image, save->file, save->format, save->quality, cancellable,
                              &error))
    g_task_return_boolean (task, TRUE);
  else
    g_task_return_error (task, error);
}

/**
 * gtorch_image_save_file_async:
 * @image: an image, [1, 3 or 4, height, width] of uint8
 * @file: where to
 * @format: `png` or `jpeg`
 * @quality: the quality of JPEG, 1 to 100
 * @io_priority: the priority, such as %G_PRIORITY_DEFAULT
 * @cancellable: (nullable): a cancellable
 * @callback: (scope async) (closure user_data): called when it is done
 * @user_data: data for @callback
 *
 * Does the same as [func@image_save_file] in another thread. The elements must not be changed until it is
 * done. When @cancellable is cancelled, @callback is called at once; the thread may encode what is there to
 * its end, and leaves the file as it was.
 *
 * Since: 0.1
 */
void
gtorch_image_save_file_async (GTorchTensor *image, GFile *file, const gchar *format, gint quality,
                              int io_priority, GCancellable *cancellable,
                              GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = NULL;
  Save *save;

  g_return_if_fail (GTORCH_IS_TENSOR (image));
  g_return_if_fail (G_IS_FILE (file));
  g_return_if_fail (format != NULL);
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  save = g_new (Save, 1);
  *save = (Save){ g_object_ref (image), g_object_ref (file), g_strdup (format), quality };
  task = gtorch_task_new (NULL, gtorch_image_save_file_async, cancellable, callback, user_data);
  g_task_set_priority (task, io_priority);
  g_task_set_task_data (task, save, save_free);
  gtorch_task_run_in_thread (task, save_in_thread);
}

/**
 * gtorch_image_save_file_finish:
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Gets the result of [func@image_save_file_async].
 *
 * Returns: %TRUE, or %FALSE on error
 *
 * Since: 0.1
 */
gboolean
gtorch_image_save_file_finish (GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  return gtorch_task_take (result, NULL, gtorch_image_save_file_async, error)
         && g_task_propagate_boolean (G_TASK (result), error);
}
