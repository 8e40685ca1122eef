/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <dlfcn.h>
#include <gio/gio.h>
#include <glib/gi18n-lib.h>
#include <string.h>

#include "base/gtorch-environment-private.h"
#include "base/gtorch-error.h"
#include "vision/gtorch-image-private.h"

#define LIBRARY "libgdk_pixbuf-2.0.so.0"
#define STEP    65536

static struct
{
  GObject *(*loader_new) (void);
  gboolean (*loader_write) (GObject *loader, const guint8 *data, gsize n, GError **error);
  gboolean (*loader_close) (GObject *loader, GError **error);
  void (*loader_set_size) (GObject *loader, int width, int height);
  GObject *(*loader_get_pixbuf) (GObject *loader);
  int (*get_width) (const GObject *pixbuf);
  int (*get_height) (const GObject *pixbuf);
  int (*get_rowstride) (const GObject *pixbuf);
  int (*get_n_channels) (const GObject *pixbuf);
  const guint8 *(*read_pixels) (const GObject *pixbuf);
  const char *(*get_option) (GObject *pixbuf, const char *key);
  GObject *(*new_from_bytes) (GBytes *bytes, int space, gboolean has_alpha, int bits, int width,
                              int height, int rowstride);
  gboolean (*save) (GObject *pixbuf, gchar **buffer, gsize *size, const char *type, char **keys,
                    char **values, GError **error);
} pixbuf_functions;

static gboolean
open_library (const gchar *who, GError **error)
{
  static const struct
  {
    const gchar *name;
    gpointer *slot;
  } symbols[] = {
    { "gdk_pixbuf_loader_new", (gpointer *) &pixbuf_functions.loader_new },
    { "gdk_pixbuf_loader_write", (gpointer *) &pixbuf_functions.loader_write },
    { "gdk_pixbuf_loader_close", (gpointer *) &pixbuf_functions.loader_close },
    { "gdk_pixbuf_loader_set_size", (gpointer *) &pixbuf_functions.loader_set_size },
    { "gdk_pixbuf_loader_get_pixbuf", (gpointer *) &pixbuf_functions.loader_get_pixbuf },
    { "gdk_pixbuf_get_width", (gpointer *) &pixbuf_functions.get_width },
    { "gdk_pixbuf_get_height", (gpointer *) &pixbuf_functions.get_height },
    { "gdk_pixbuf_get_rowstride", (gpointer *) &pixbuf_functions.get_rowstride },
    { "gdk_pixbuf_get_n_channels", (gpointer *) &pixbuf_functions.get_n_channels },
    { "gdk_pixbuf_read_pixels", (gpointer *) &pixbuf_functions.read_pixels },
    { "gdk_pixbuf_get_option", (gpointer *) &pixbuf_functions.get_option },
    { "gdk_pixbuf_new_from_bytes", (gpointer *) &pixbuf_functions.new_from_bytes },
    { "gdk_pixbuf_save_to_bufferv", (gpointer *) &pixbuf_functions.save },
  };
  static GMutex lock;
  static gboolean is_open;
  gpointer library;

  g_mutex_lock (&lock);
  if (!is_open && (library = gtorch_library_open (LIBRARY, RTLD_NOW | RTLD_LOCAL)) != NULL)
    {
      is_open = TRUE;
      for (guint i = 0; i < G_N_ELEMENTS (symbols); i++)
        is_open = is_open && (*symbols[i].slot = dlsym (library, symbols[i].name)) != NULL;
    }
  if (!is_open)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                 _ ("%s: GdkPixbuf (%s, Debian's package libgdk-pixbuf-2.0-0) cannot be opened: "
                    "%s"),
                 who, LIBRARY, gtorch_library_error ());
  g_mutex_unlock (&lock);
  return is_open;
}

/* --- decoding --- */

typedef struct
{
  const GTorchImageRequest *request;
  GError *error;
} Sized;

/* A size of 0 ends what the loader does. */
static void
on_size_prepared (GObject *loader, int width, int height, gpointer data)
{
  Sized *sized = data;

  if (sized->error == NULL
      && !gtorch_image_check_size (sized->request, width, height, &sized->error))
    pixbuf_functions.loader_set_size (loader, 0, 0);
}

static void
set_format_error (GError **error, GError *cause)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT, "image_load: %s",
               cause != NULL ? cause->message : _ ("the file has no image"));
  g_clear_error (&cause);
}

static gboolean
is_png (const GTorchImageRequest *request)
{
  static const guint8 png[] = { 0x89, 'P', 'N', 'G' };

  return request->n_bytes > 33 && memcmp (request->data, png, sizeof png) == 0;
}

/* GdkPixbuf takes a PNG file that ends early for whole. */
static gboolean
is_cut_short (const GTorchImageRequest *request)
{
  gsize at = 8;

  while (is_png (request))
    {
      const guint8 *chunk = request->data + at;
      gsize length;

      if (request->n_bytes - at < 12)
        return TRUE;
      length = (gsize) chunk[0] << 24 | chunk[1] << 16 | chunk[2] << 8 | chunk[3];
      if (length > request->n_bytes - at - 12)
        return TRUE;
      if (memcmp (chunk + 4, "IEND", 4) == 0)
        return FALSE;
      at += length + 12;
    }
  return FALSE;
}

/* How many channels the file has. GdkPixbuf makes gray images coloured and those of four inks opaque. */
static guint
native_channels (const GTorchImageRequest *request, guint n_channels)
{
  if (is_png (request) && (request->data[25] == 0 || request->data[25] == 4))
    return n_channels == 4 ? 2 : 1;
  return request->data[0] == 0xff ? 3 : n_channels;
}

static guint
wanted_channels (const GTorchImageRequest *request, guint n_channels)
{
  switch (request->mode)
    {
    case GTORCH_IMAGE_MODE_GRAY:
      return 1;
    case GTORCH_IMAGE_MODE_GRAY_ALPHA:
      return 2;
    case GTORCH_IMAGE_MODE_RGB:
      return 3;
    case GTORCH_IMAGE_MODE_RGB_ALPHA:
      return 4;
    default:
      return native_channels (request, n_channels);
    }
}

static void
convert_row (const guint8 *from, guint n_from, guint8 *to, guint n_to, gint64 width)
{
  if (n_from == n_to)
    {
      memcpy (to, from, width * n_to);
      return;
    }
  for (gint64 x = 0; x < width; x++, from += n_from, to += n_to)
    {
      if (n_to >= 3)
        memcpy (to, from, 3);
      else /* the weights of ITU-R 601, as PIL has them */
        to[0] = (from[0] * 19595u + from[1] * 38470u + from[2] * 7471u + 32768u) >> 16;
      if (n_to == 2 || n_to == 4)
        to[n_to - 1] = n_from == 4 ? from[3] : 255;
    }
}

static GTorchImpl *
convert (const GTorchImageRequest *request, GObject *pixbuf, GError **error)
{
  gint64 width = pixbuf_functions.get_width (pixbuf);
  gint64 height = pixbuf_functions.get_height (pixbuf);
  guint n_from = pixbuf_functions.get_n_channels (pixbuf);
  guint n_to = wanted_channels (request, n_from);
  const guint8 *pixels = pixbuf_functions.read_pixels (pixbuf);
  const char *orientation = pixbuf_functions.get_option (pixbuf, "orientation");
  guint turn = orientation != NULL ? (guint) g_ascii_strtoull (orientation, NULL, 10) : 1;
  GTorchImpl *image = gtorch_image_new (width, height, n_to, error);

  if (image == NULL)
    return NULL;
  for (gint64 y = 0; y < height; y++)
    convert_row (pixels + y * pixbuf_functions.get_rowstride (pixbuf), n_from,
                 (guint8 *) gtorch_impl_data (image) + y * width * n_to, n_to, width);
  return request->apply_orientation ? gtorch_image_turn (image, turn, error) : image;
}

GTorchImpl *
gtorch_pixbuf_decode (const GTorchImageRequest *request, GError **error)
{
  g_autoptr (GObject) loader = NULL;
  Sized sized = { request, NULL };
  GError *local = NULL;
  gboolean is_done = TRUE, is_closed;
  GObject *pixbuf;

  if (!open_library ("image_load", error))
    return NULL;
  if (is_cut_short (request))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("image_load: PNG: the file ends before its last part"));
      return NULL;
    }
  loader = pixbuf_functions.loader_new ();
  g_signal_connect (loader, "size-prepared", G_CALLBACK (on_size_prepared), &sized);
  for (gsize at = 0; at < request->n_bytes && is_done; at += STEP)
    is_done = !g_cancellable_set_error_if_cancelled (request->cancellable, &local)
              && pixbuf_functions.loader_write (loader, request->data + at,
                                                MIN (STEP, request->n_bytes - at), &local)
              && sized.error == NULL;
  /* It must be closed in any case. */
  is_closed = pixbuf_functions.loader_close (loader, is_done ? &local : NULL);
  if (sized.error != NULL)
    {
      g_clear_error (&local);
      g_propagate_error (error, sized.error);
      return NULL;
    }
  if (g_error_matches (local, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    {
      g_propagate_error (error, local);
      return NULL;
    }
  pixbuf = is_done && is_closed ? pixbuf_functions.loader_get_pixbuf (loader) : NULL;
  if (pixbuf == NULL)
    {
      set_format_error (error, local);
      return NULL;
    }
  return convert (request, pixbuf, error);
}

/* --- encoding --- */

GBytes *
gtorch_pixbuf_encode (GBytes *pixels, gint64 width, gint64 height, gboolean has_alpha,
                      const gchar *format, gint quality, GError **error)
{
  gchar number[12];
  gchar *keys[] = { NULL, NULL }, *values[] = { NULL, NULL };
  g_autoptr (GObject) pixbuf = NULL;
  GError *local = NULL;
  gchar *buffer;
  gsize n_bytes;

  if (!open_library ("image_encode", error))
    return NULL;
  g_snprintf (number, sizeof number, "%d", quality);
  if (strcmp (format, "jpeg") == 0)
    {
      keys[0] = (gchar *) "quality";
      values[0] = number;
    }
  pixbuf = pixbuf_functions.new_from_bytes (pixels, 0, has_alpha, 8, width, height,
                                            width * (has_alpha ? 4 : 3));
  if (!pixbuf_functions.save (pixbuf, &buffer, &n_bytes, format, keys, values, &local))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, "image_encode: %s", local->message);
      g_clear_error (&local);
      return NULL;
    }
  return g_bytes_new_take (buffer, n_bytes);
}
