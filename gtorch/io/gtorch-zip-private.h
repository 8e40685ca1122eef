/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/io/gtorch-source-private.h>

G_BEGIN_DECLS

typedef struct
{
  gchar *name;
  guint64 size, packed; /* in bytes, as it is and in the archive */
  guint64 header;       /* where its local header is */
  guint64 limit;        /* where the next member, or the directory, begins */
  guint32 crc;
  guint16 method;
} GTorchZipMember;

/* An archive of which the directory was read and checked: names are unique, and no two members share bytes.
 * */
typedef struct
{
  GTorchSource *source; /* borrowed */
  GArray *members;      /* of GTorchZipMember, in the order of the archive */
  GHashTable *by_name;
} GTorchZip;

GTorchZip *gtorch_zip_new (GTorchSource *source, GCancellable *cancellable, GError **error);
void gtorch_zip_free (GTorchZip *zip);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchZip, gtorch_zip_free)
/* NULL if there is none. */
const GTorchZipMember *gtorch_zip_find (const GTorchZip *zip, const gchar *name);
/* The content. The sum of a stored member of a mapped file is not checked: that would read all of it. */
GBytes *gtorch_zip_read (GTorchZip *zip, const GTorchZipMember *member, gboolean *is_read_only,
                         GCancellable *cancellable, GError **error);

guint32 gtorch_zip_crc (guint32 crc, gconstpointer data, gsize n);

/* Writes members one after the other to a stream that need not seek. */
typedef struct
{
  const gchar *op;
  GOutputStream *stream; /* borrowed */
  guint64 position;
  guint64 n_members;
  GByteArray *directory;
} GTorchZipWriter;

GTorchZipWriter *gtorch_zip_writer_new (const gchar *op, GOutputStream *stream);
void gtorch_zip_writer_free (GTorchZipWriter *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchZipWriter, gtorch_zip_writer_free)
/* A member whose content is head and then data; stored, its data begin at a multiple of 64. */
gboolean gtorch_zip_writer_add (GTorchZipWriter *self, const gchar *name, GBytes *head,
                                GBytes *data, gboolean compress, GCancellable *cancellable,
                                GError **error);
gboolean gtorch_zip_writer_close (GTorchZipWriter *self, GCancellable *cancellable, GError **error);

G_END_DECLS
