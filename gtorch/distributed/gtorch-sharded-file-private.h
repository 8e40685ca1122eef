/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "base/gtorch-json-private.h"
#include "distributed/gtorch-module-shards-private.h"
#include "distributed/gtorch-sharded-file.h"

G_BEGIN_DECLS

/* Which file has which tensor. */
typedef struct
{
  GPtrArray *names;    /* of tensors */
  GPtrArray *files;    /* as many: names without a path */
  GPtrArray *metadata; /* alternating keys and values */
} GTorchShardedIndex;

GTorchShardedIndex *gtorch_sharded_index_new (void);
void gtorch_sharded_index_free (GTorchShardedIndex *index);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchShardedIndex, gtorch_sharded_index_free)
GTorchShardedIndex *gtorch_sharded_index_parse (const gchar *text, gsize length, GError **error);
GTorchShardedIndex *gtorch_sharded_index_read (GFile *file, GCancellable *cancellable,
                                               GError **error);

/* --- gtorch-sharded-put.c --- */

/* Makes a file of a size that begins with a text. */
gboolean gtorch_sharded_make_file (const gchar *path, const GString *text, guint64 size,
                                   GError **error);
/* Writes the elements of a part of a tensor, which begins at a place of the file. */
gboolean gtorch_sharded_put_part (const gchar *path, GBytes *bytes, const GTorchImpl *impl,
                                  const GTorchPart *part, guint64 at, GError **error);

G_END_DECLS
