/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/data/gtorch-iterable-dataset.h>

G_BEGIN_DECLS

/* Calls get_item and checks what it gave. The index is not negative. */
GTorchSample *gtorch_dataset_get_raw (GTorchDataset *self, gint64 index, GCancellable *cancellable,
                                      GError **error);
/* Whether get_batch does more than to collate what get_item gives. */
gboolean gtorch_dataset_has_batch (GTorchDataset *self);
/* Whether one of those that it is made of has batches. */
gboolean gtorch_concat_dataset_has_batch (GTorchDataset *self);
/* Makes a negative index one from 0, and fails if it is not below the length. */
gboolean gtorch_dataset_find_index (GTorchDataset *self, gint64 *index, GError **error);
gboolean gtorch_index_check (const gchar *op, gint64 index, gint64 length, GError **error);
/* Whether those that an array has may all be used by several threads. */
gboolean gtorch_datasets_are_thread_safe (GPtrArray *datasets);
/* Returns an array of references; NULL with an error if it would be empty or one has another type. */
GPtrArray *gtorch_datasets_take (const gchar *op, GTorchDataset **datasets, gsize n, GType type,
                                 GError **error);
GPtrArray *gtorch_datasets_copy (GPtrArray *datasets);
/* For the references of an object that owns an array of others, which does not change; NULL is none. */
void gtorch_datasets_add_references (GPtrArray *datasets, GTorchReferences *references);

G_END_DECLS
