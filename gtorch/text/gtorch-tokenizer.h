/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gio/gio.h>

#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

/**
 * GTorchTruncation:
 * @GTORCH_TRUNCATION_LONGEST_FIRST: the longer of two texts, until both are equally long
 * @GTORCH_TRUNCATION_ONLY_FIRST: the first text
 * @GTORCH_TRUNCATION_ONLY_SECOND: the second text
 *
 * Which text loses tokens if there are too many.
 *
 * Since: 0.1
 */
typedef enum
{
  GTORCH_TRUNCATION_LONGEST_FIRST,
  GTORCH_TRUNCATION_ONLY_FIRST,
  GTORCH_TRUNCATION_ONLY_SECOND,
} GTorchTruncation;

GTORCH_AVAILABLE_IN_0_1
GType gtorch_truncation_get_type (void) G_GNUC_CONST;
#define GTORCH_TYPE_TRUNCATION (gtorch_truncation_get_type ())

#define GTORCH_TYPE_TOKENIZER (gtorch_tokenizer_get_type ())

GTORCH_AVAILABLE_IN_0_1
G_DECLARE_FINAL_TYPE (GTorchTokenizer, gtorch_tokenizer, GTORCH, TOKENIZER, GObject)

GTORCH_AVAILABLE_IN_0_1
GTorchTokenizer *gtorch_tokenizer_load (GInputStream *stream, GCancellable *cancellable,
                                        GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTokenizer *gtorch_tokenizer_load_bytes (GBytes *bytes,
                                              GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTokenizer *gtorch_tokenizer_load_file (GFile *file, GCancellable *cancellable,
                                             GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_tokenizer_load_file_async (GFile *file, int io_priority, GCancellable *cancellable,
                                       GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GTorchTokenizer *gtorch_tokenizer_load_file_finish (GAsyncResult *result,
                                                    GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTokenizer *gtorch_tokenizer_train_bpe (const gchar *const *texts, gint64 vocab_size,
                                             gint64 min_frequency,
                                             const gchar *const *special_tokens,
                                             gboolean add_prefix_space, GCancellable *cancellable,
                                             GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_tokenizer_train_bpe_async (const gchar *const *texts, gint64 vocab_size,
                                       gint64 min_frequency, const gchar *const *special_tokens,
                                       gboolean add_prefix_space, GCancellable *cancellable,
                                       GAsyncReadyCallback callback, gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
GTorchTokenizer *gtorch_tokenizer_train_bpe_finish (GAsyncResult *result,
                                                    GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GBytes *gtorch_tokenizer_to_bytes (GTorchTokenizer *self) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_tokenizer_save (GTorchTokenizer *self, GFile *file, GCancellable *cancellable,
                                GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_tokenizer_save_async (GTorchTokenizer *self, GFile *file, int io_priority,
                                  GCancellable *cancellable, GAsyncReadyCallback callback,
                                  gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_tokenizer_save_finish (GTorchTokenizer *self, GAsyncResult *result, GError **error);

GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_tokenizer_get_vocab_size (GTorchTokenizer *self);
GTORCH_AVAILABLE_IN_0_1
gint64 gtorch_tokenizer_token_to_id (GTorchTokenizer *self, const gchar *token);
GTORCH_AVAILABLE_IN_0_1
gchar *gtorch_tokenizer_id_to_token (GTorchTokenizer *self, gint64 id) G_GNUC_WARN_UNUSED_RESULT;

GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_tokenizer_enable_padding (GTorchTokenizer *self, gint64 length, gint64 multiple,
                                          gboolean left, gint64 pad_id, gint64 pad_type_id,
                                          const gchar *pad_token, GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_tokenizer_disable_padding (GTorchTokenizer *self);
GTORCH_AVAILABLE_IN_0_1
gboolean gtorch_tokenizer_enable_truncation (GTorchTokenizer *self, gint64 max_length,
                                             GTorchTruncation strategy, gboolean left,
                                             GError **error);
GTORCH_AVAILABLE_IN_0_1
void gtorch_tokenizer_disable_truncation (GTorchTokenizer *self);

GTORCH_AVAILABLE_IN_0_1
gint64 *gtorch_tokenizer_encode (GTorchTokenizer *self, const gchar *text, const gchar *pair,
                                 gboolean add_special_tokens, gsize *n_ids,
                                 GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchTensor *gtorch_tokenizer_encode_batch (GTorchTokenizer *self, const gchar *const *texts,
                                             const gchar *const *pairs, gboolean add_special_tokens,
                                             GTorchTensor **attention_mask, GTorchTensor **type_ids,
                                             GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
gchar *gtorch_tokenizer_decode (GTorchTokenizer *self, const gint64 *ids, gsize n_ids,
                                gboolean skip_special_tokens,
                                GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GBytes *gtorch_tokenizer_decode_bytes (GTorchTokenizer *self, const gint64 *ids, gsize n_ids,
                                       gboolean skip_special_tokens,
                                       GError **error) G_GNUC_WARN_UNUSED_RESULT;

G_END_DECLS
