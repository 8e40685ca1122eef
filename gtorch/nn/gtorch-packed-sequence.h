/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-rnn-base.h>
#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

#define GTORCH_TYPE_PACKED_SEQUENCE (gtorch_packed_sequence_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchPackedSequence, gtorch_packed_sequence, GTORCH, PACKED_SEQUENCE,
                      GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchPackedSequence *gtorch_packed_sequence_new (GTorchTensor *data, GTorchTensor *batch_sizes,
                                                  GTorchTensor *sorted_indices,
                                                  GTorchTensor *unsorted_indices,
                                                  GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_packed_sequence_get_data (GTorchPackedSequence *self);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_packed_sequence_get_batch_sizes (GTorchPackedSequence *self);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_packed_sequence_get_sorted_indices (GTorchPackedSequence *self);
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_packed_sequence_get_unsorted_indices (GTorchPackedSequence *self);
GTORCH_AVAILABLE_IN_0_1
GTorchPackedSequence *gtorch_packed_sequence_to (GTorchPackedSequence *self, GTorchDevice *device,
                                                 GTorchDType dtype,
                                                 GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchPackedSequence *gtorch_packed_sequence_run (GTorchPackedSequence *self,
                                                  GTorchRNNBase *network, GTorchTensor **states,
                                                  gsize n_states, GPtrArray **last_states,
                                                  GError **error) G_GNUC_WARN_UNUSED_RESULT;

GTORCH_AVAILABLE_IN_0_1
GTorchPackedSequence *gtorch_pack_padded_sequence (GTorchTensor *input, const gint64 *lengths,
                                                   gsize n_lengths, gboolean batch_first,
                                                   gboolean enforce_sorted,
                                                   GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_pad_packed_sequence (GTorchPackedSequence *sequence, gboolean batch_first,
                                          gdouble padding_value, gint64 total_length,
                                          GTorchTensor **lengths,
                                          GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchPackedSequence *gtorch_pack_sequence (GTorchTensor **sequences, gsize n_sequences,
                                            gboolean enforce_sorted,
                                            GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_unpack_sequence (GTorchPackedSequence *sequence,
                                   GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_pad_sequence (GTorchTensor **sequences, gsize n_sequences,
                                   gboolean batch_first, gdouble padding_value, gboolean pad_left,
                                   GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GPtrArray *gtorch_unpad_sequence (GTorchTensor *padded, const gint64 *lengths, gsize n_lengths,
                                  gboolean batch_first, GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
