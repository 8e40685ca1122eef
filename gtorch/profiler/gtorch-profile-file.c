/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "profiler/gtorch-profile-file-private.h"

#include "base/gtorch-file-save-private.h"

#define LONG (256 * 1024)

typedef struct
{
  GTorchProfileFileFunc func;
  gpointer data;
  gboolean is_compressed;
} Save;

gboolean
gtorch_profile_file_flush (GTorchProfileFile *file, gboolean is_end, GError **error)
{
  if (file->text->len < LONG && !is_end)
    return TRUE;
  if (!g_output_stream_write_all (file->stream, file->text->str, file->text->len, NULL,
                                  file->cancellable, error))
    return FALSE;
  g_string_truncate (file->text, 0);
  return TRUE;
}

static gboolean
save (GOutputStream *stream, GCancellable *cancellable, gpointer data, GError **error)
{
  const Save *save = data;
  g_autoptr (GString) text = g_string_new (NULL);
  g_autoptr (GOutputStream) compressed = NULL;
  GTorchProfileFile file = { text, stream, cancellable };

  if (save->is_compressed)
    {
      g_autoptr (GZlibCompressor) compressor =
          g_zlib_compressor_new (G_ZLIB_COMPRESSOR_FORMAT_GZIP, -1);

      file.stream = compressed = g_converter_output_stream_new (stream, G_CONVERTER (compressor));
      g_filter_output_stream_set_close_base_stream (G_FILTER_OUTPUT_STREAM (compressed), FALSE);
    }
  return save->func (&file, save->data, error) && gtorch_profile_file_flush (&file, TRUE, error)
         && (compressed == NULL || g_output_stream_close (compressed, cancellable, error));
}

gboolean
gtorch_profile_file_write (GOutputStream *stream, GTorchProfileFileFunc func, gpointer data,
                           GCancellable *cancellable, GError **error)
{
  Save saved = { func, data, FALSE };

  return save (stream, cancellable, &saved, error);
}

gboolean
gtorch_profile_file_save (GFile *file, GTorchProfileFileFunc func, gpointer data,
                          GCancellable *cancellable, GError **error)
{
  g_autofree gchar *name = g_file_get_basename (file);
  Save saved = { func, data, name != NULL && g_str_has_suffix (name, ".gz") };

  return gtorch_file_save (file, save, &saved, cancellable, error);
}
