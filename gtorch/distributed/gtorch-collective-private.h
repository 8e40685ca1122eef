/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* How an operation of a group is put together from its arguments, and begins. Each function checks what it
 * is given, and fails with the name of the operation. */

#include <gtorch/distributed/gtorch-engine-private.h>

G_BEGIN_DECLS

/* Adds a tensor to the inputs or outputs. */
gboolean gtorch_collective_add_tensor (GTorchProcessGroup *group, GTorchCollective *self,
                                       GPtrArray *impls, GTorchTensor *tensor, GError **error);
gboolean gtorch_collective_check_rank (GTorchProcessGroup *group, GTorchCollective *self, gint rank,
                                       GError **error);
gboolean gtorch_collective_check_op (GTorchCollective *self, GTorchReduceOp op, GError **error);
/* An output that shares memory with another tensor would change it while it is sent. */
gboolean gtorch_collective_check_overlap (GTorchCollective *self, GError **error);
GTorchCollective *gtorch_collective_new_all_gather (GTorchProcessGroup *self, const gchar *name,
                                                    GTorchTensor **outputs, gsize n_outputs,
                                                    gboolean is_list, GTorchTensor *input,
                                                    GError **error);
GTorchCollective *gtorch_collective_new_reduce_scatter (GTorchProcessGroup *self, const gchar *name,
                                                        GTorchTensor *output, GTorchTensor **inputs,
                                                        gsize n_inputs, gboolean is_list,
                                                        GTorchReduceOp op, GError **error);
/* Takes the collective. */
GTorchWork *gtorch_collective_begin (GTorchProcessGroup *group, GTorchCollective *collective,
                                     GError **error);
/* The same for one of several that observers are told of as one. */
GTorchWork *gtorch_collective_begin_part (GTorchProcessGroup *group, GTorchCollective *collective,
                                          GError **error);

G_END_DECLS
