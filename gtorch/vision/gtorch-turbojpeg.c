/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <dlfcn.h>
#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-environment-private.h"
#include "base/gtorch-error.h"
#include "vision/gtorch-image-private.h"

/* Of turbojpeg.h, whose functions and numbers have been the same since version 1.4. */
enum
{
  FORMAT_RGB = 0,
  FORMAT_GRAY = 6,
  FORMAT_RGBA = 7,
  SAMPLING_GRAY = 3,
  SPACE_GRAY = 2,
  SPACE_CMYK = 3,
  SPACE_YCCK = 4,
  FLAG_LIMIT_SCANS = 32768,
  CODE_WARNING = 0,
};

static struct
{
  gpointer (*init) (void);
  int (*read_header) (gpointer handle, const guint8 *jpeg, gulong n_bytes, int *width, int *height,
                      int *subsampling, int *space);
  int (*decompress) (gpointer handle, const guint8 *jpeg, gulong n_bytes, guint8 *pixels, int width,
                     int pitch, int height, int format, int flags);
  gpointer (*init_encoder) (void);
  int (*compress) (gpointer handle, const guint8 *pixels, int width, int pitch, int height,
                   int format, guint8 **jpeg, gulong *n_bytes, int subsampling, int quality,
                   int flags);
  void (*free) (guint8 *jpeg);
  const char *(*error) (gpointer handle);
  int (*code) (gpointer handle);
  int (*destroy) (gpointer handle);
} turbo;

static gboolean
open_library (void)
{
  static const struct
  {
    const gchar *name;
    gpointer *slot;
  } symbols[] = {
    { "tjInitDecompress", (gpointer *) &turbo.init },
    { "tjDecompressHeader3", (gpointer *) &turbo.read_header },
    { "tjDecompress2", (gpointer *) &turbo.decompress },
    { "tjInitCompress", (gpointer *) &turbo.init_encoder },
    { "tjCompress2", (gpointer *) &turbo.compress },
    { "tjFree", (gpointer *) &turbo.free },
    { "tjGetErrorStr2", (gpointer *) &turbo.error },
    { "tjGetErrorCode", (gpointer *) &turbo.code },
    { "tjDestroy", (gpointer *) &turbo.destroy },
  };
  static gsize state = 0; /* 1: it is there, 2: it is not */

  if (g_once_init_enter (&state))
    {
      gpointer library = gtorch_library_open ("libturbojpeg.so.0", RTLD_NOW | RTLD_LOCAL);
      gboolean is_open = library != NULL;

      for (guint i = 0; is_open && i < G_N_ELEMENTS (symbols); i++)
        is_open = (*symbols[i].slot = dlsym (library, symbols[i].name)) != NULL;
      g_once_init_leave (&state, is_open ? 1 : 2);
    }
  return state == 1;
}

static void
fail (gpointer handle, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT, _ ("image_load: JPEG: %s"),
               turbo.error (handle));
}

static GTorchImpl *
decode (const GTorchImageRequest *request, gpointer handle, GError **error)
{
  int width = 0, height = 0, subsampling = 0, space = 0, format = FORMAT_RGB;
  guint n_channels = 3;
  GTorchImpl *image;

  if (turbo.read_header (handle, request->data, request->n_bytes, &width, &height, &subsampling,
                         &space)
          != 0
      || width < 1 || height < 1)
    {
      fail (handle, error);
      return NULL;
    }
  if (space == SPACE_CMYK || space == SPACE_YCCK || request->mode == GTORCH_IMAGE_MODE_GRAY_ALPHA)
    return NULL;
  if (!gtorch_image_check_size (request, width, height, error)
      || g_cancellable_set_error_if_cancelled (request->cancellable, error))
    return NULL;
  if (request->mode == GTORCH_IMAGE_MODE_GRAY
      || (request->mode == GTORCH_IMAGE_MODE_UNCHANGED && space == SPACE_GRAY))
    {
      format = FORMAT_GRAY;
      n_channels = 1;
    }
  else if (request->mode == GTORCH_IMAGE_MODE_RGB_ALPHA)
    {
      format = FORMAT_RGBA;
      n_channels = 4;
    }
  image = gtorch_image_new (width, height, n_channels, error);
  if (image == NULL)
    return NULL;
  /* What stands between two parts of a file does no harm; a file that ends early or has wrong data does. */
  if (turbo.decompress (handle, request->data, request->n_bytes, gtorch_impl_data (image), width, 0,
                        height, format, FLAG_LIMIT_SCANS)
          != 0
      && (turbo.code (handle) != CODE_WARNING
          || strstr (turbo.error (handle), "xtraneous") == NULL))
    {
      fail (handle, error);
      gtorch_impl_unref (image);
      return NULL;
    }
  return request->apply_orientation
             ? gtorch_image_turn (image, gtorch_exif_orientation (request->data, request->n_bytes),
                                  error)
             : image;
}

GTorchImpl *
gtorch_turbojpeg_decode (const GTorchImageRequest *request, GError **error)
{
  GTorchImpl *image;
  gpointer handle;

  if (!open_library () || (handle = turbo.init ()) == NULL)
    return NULL;
  image = decode (request, handle, error);
  turbo.destroy (handle);
  return image;
}

GBytes *
gtorch_turbojpeg_encode_gray (const guint8 *pixels, gint64 width, gint64 height, gint quality,
                              GError **error)
{
  guint8 *jpeg = NULL;
  gulong n_bytes = 0;
  GBytes *result = NULL;
  gpointer handle;

  if (!open_library () || width > G_MAXINT || height > G_MAXINT
      || (handle = turbo.init_encoder ()) == NULL)
    return NULL;
  if (turbo.compress (handle, pixels, (int) width, 0, (int) height, FORMAT_GRAY, &jpeg, &n_bytes,
                      SAMPLING_GRAY, quality, 0)
      == 0)
    result = g_bytes_new (jpeg, n_bytes);
  else
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, _ ("image_encode: %s"),
                 turbo.error (handle));
  turbo.free (jpeg);
  turbo.destroy (handle);
  return result;
}
