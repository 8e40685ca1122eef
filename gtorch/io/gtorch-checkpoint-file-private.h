/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/io/gtorch-checkpoint-file.h>
#include <gtorch/io/gtorch-pickle-private.h>

G_BEGIN_DECLS

struct _GTorchCheckpointFile
{
  GObject parent_instance;
  GTorchPickle *pickle;
};

GTorchCheckpointNode *gtorch_checkpoint_node_new (GTorchCheckpointFile *checkpoint, guint index);

static inline GTorchPickleNode *
gtorch_checkpoint_file_peek (GTorchCheckpointFile *self, guint index)
{
  return self->pickle->nodes->pdata[index];
}

G_END_DECLS
