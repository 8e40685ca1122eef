/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A file of a file system that only GVfs knows: it has no path, and keeps its content in memory. Written
 * content takes effect when the stream is closed without having been cancelled. */

#pragma once

#include <gio/gio.h>

typedef struct
{
  GObject parent_instance;
  GString *content;
} TestForeignFile;

typedef struct
{
  GFileOutputStream parent_instance;
  TestForeignFile *file;
  GString *content;
} TestForeignStream;

typedef GObjectClass TestForeignFileClass;
typedef GFileOutputStreamClass TestForeignStreamClass;

static void test_foreign_file_iface_init (GFileIface *iface);

static GType test_foreign_file_get_type (void);
static GType test_foreign_stream_get_type (void);

G_DEFINE_TYPE_WITH_CODE (TestForeignFile, test_foreign_file, G_TYPE_OBJECT,
                         G_IMPLEMENT_INTERFACE (G_TYPE_FILE, test_foreign_file_iface_init))
G_DEFINE_TYPE (TestForeignStream, test_foreign_stream, G_TYPE_FILE_OUTPUT_STREAM)

static gssize
test_foreign_stream_write (GOutputStream *stream, const void *data, gsize n_bytes,
                           GCancellable *cancellable, GError **error)
{
  g_string_append_len (((TestForeignStream *) stream)->content, data, n_bytes);
  return n_bytes;
}

static gboolean
test_foreign_stream_close (GOutputStream *stream, GCancellable *cancellable, GError **error)
{
  TestForeignStream *self = (TestForeignStream *) stream;

  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  g_string_assign (self->file->content, self->content->str);
  return TRUE;
}

static void
test_foreign_stream_finalize (GObject *object)
{
  TestForeignStream *self = (TestForeignStream *) object;

  g_object_unref (self->file);
  g_string_free (self->content, TRUE);
  G_OBJECT_CLASS (test_foreign_stream_parent_class)->finalize (object);
}

static void
test_foreign_stream_class_init (TestForeignStreamClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = test_foreign_stream_finalize;
  G_OUTPUT_STREAM_CLASS (klass)->write_fn = test_foreign_stream_write;
  G_OUTPUT_STREAM_CLASS (klass)->close_fn = test_foreign_stream_close;
}

static void
test_foreign_stream_init (TestForeignStream *self)
{
  self->content = g_string_new (NULL);
}

static void
test_foreign_file_finalize (GObject *object)
{
  g_string_free (((TestForeignFile *) object)->content, TRUE);
  G_OBJECT_CLASS (test_foreign_file_parent_class)->finalize (object);
}

static void
test_foreign_file_class_init (TestForeignFileClass *klass)
{
  klass->finalize = test_foreign_file_finalize;
}

static void
test_foreign_file_init (TestForeignFile *self)
{
  self->content = g_string_new (NULL);
}

static char *
test_foreign_file_no_path (GFile *file)
{
  return NULL;
}

static GFileOutputStream *
test_foreign_file_replace (GFile *file, const char *etag, gboolean make_backup,
                           GFileCreateFlags flags, GCancellable *cancellable, GError **error)
{
  TestForeignStream *stream = g_object_new (test_foreign_stream_get_type (), NULL);

  stream->file = (TestForeignFile *) g_object_ref (file);
  return G_FILE_OUTPUT_STREAM (stream);
}

static void
test_foreign_file_iface_init (GFileIface *iface)
{
  iface->get_path = test_foreign_file_no_path;
  iface->replace = test_foreign_file_replace;
}

static inline GFile *
test_foreign_file_new (const gchar *content)
{
  TestForeignFile *self = g_object_new (test_foreign_file_get_type (), NULL);

  g_string_assign (self->content, content);
  return G_FILE (self);
}

static inline const gchar *
test_foreign_file_get_content (GFile *file)
{
  return ((TestForeignFile *) file)->content->str;
}
