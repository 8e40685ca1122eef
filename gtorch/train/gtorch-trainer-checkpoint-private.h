/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "train/gtorch-trainer-private.h"

G_BEGIN_DECLS

/* Names and tensors of a file, in order. */
typedef struct
{
  GPtrArray *names, *tensors;
} GTorchTrainerLists;

void gtorch_trainer_lists_clear (GTorchTrainerLists *lists);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (GTorchTrainerLists, gtorch_trainer_lists_clear)

/* What a file has beside the tensors. */
extern const gchar *const gtorch_trainer_metadata[];

/* Whether a checkpoint may be written or read now. */
gboolean gtorch_trainer_check_checkpoint (GTorchTrainer *self, const gchar *op, GError **error);
/* Where the next run would go on. */
GVariant *gtorch_trainer_get_loader_state (GTorchTrainerPrivate *priv, GError **error);
/* The content of a file; the names end with NULL. */
gboolean gtorch_trainer_collect (GTorchTrainer *self, GTorchGradScaler *scaler, GVariant *loader,
                                 GTorchTrainerLists *lists, GError **error);
gboolean gtorch_trainer_read_checkpoint (GFile *file, GCancellable *cancellable,
                                         GTorchTrainerLists *lists, GError **error);
/* Takes what a file has, all of it or nothing. */
gboolean gtorch_trainer_apply (GTorchTrainer *self, GFile *file, const GTorchTrainerLists *lists,
                               GError **error);
/* The folder of the checkpoints, and the names in it, the oldest first. */
GFile *gtorch_trainer_find_folder (GTorchTrainer *self, GError **error);
GPtrArray *gtorch_trainer_list_checkpoints (GFile *folder, GCancellable *cancellable,
                                            GError **error);

G_END_DECLS
