/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <gio/gio.h>
#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-error.h"
#include "base/gtorch-text-private.h"
#include "cpu/gtorch-cpu-threads.h"
#include "device/gtorch-device-private.h"
#include "tensor/gtorch-impl-private.h"
#include "text/gtorch-tokenizer-private.h"

/* --- one text --- */

static gboolean
encode_stretch (GTorchTokenizer *self, GTorchTokenCoder *coder, const gchar *text, gsize length,
                GArray *ids, GError **error)
{
  GTorchPieces *pieces = &coder->pieces;

  if (!gtorch_pre_tokenize (self->pre_tokenizers, text, length, pieces, error))
    return FALSE;
  for (guint i = 0; i < pieces->pieces->len; i++)
    {
      const GTorchPiece *piece = &g_array_index (pieces->pieces, GTorchPiece, i);

      if (!gtorch_token_model_encode (coder, pieces->text->str + piece->begin,
                                      piece->end - piece->begin, ids, error))
        return FALSE;
    }
  return TRUE;
}

/* Added tokens that are looked for in the raw text, then those of normalized text. */
static gboolean
encode_text (GTorchTokenizer *self, GTorchTokenCoder *coder, const gchar *text, GArray *ids,
             GError **error)
{
  g_autoptr (GArray) raw = g_array_new (FALSE, FALSE, sizeof (GTorchStretch));
  g_autoptr (GArray) stretches = g_array_new (FALSE, FALSE, sizeof (GTorchStretch));
  g_autoptr (GString) normalized = g_string_new (NULL);
  gint64 id;

  gtorch_added_tokens_split (self->added, FALSE, text, strlen (text), raw);
  for (guint i = 0; i < raw->len; i++)
    {
      const GTorchStretch *stretch = &g_array_index (raw, GTorchStretch, i);

      if ((id = stretch->id) >= 0)
        {
          g_array_append_val (ids, id);
          continue;
        }
      g_string_truncate (normalized, 0);
      g_string_append_len (normalized, text + stretch->begin, stretch->end - stretch->begin);
      if (!gtorch_text_normalize (self->normalizers, normalized, error))
        return FALSE;
      g_array_set_size (stretches, 0);
      gtorch_added_tokens_split (self->added, TRUE, normalized->str, normalized->len, stretches);
      for (guint j = 0; j < stretches->len; j++)
        {
          stretch = &g_array_index (stretches, GTorchStretch, j);
          if ((id = stretch->id) >= 0)
            g_array_append_val (ids, id);
          else if (!encode_stretch (self, coder, normalized->str + stretch->begin,
                                    stretch->end - stretch->begin, ids, error))
            return FALSE;
        }
    }
  return TRUE;
}

static void
cut (GArray *ids, guint length, gboolean left)
{
  if (ids->len <= length)
    return;
  if (left)
    g_array_remove_range (ids, 0, ids->len - length);
  else
    g_array_set_size (ids, length);
}

/* The longer one loses tokens, until both have the same number. */
static void
cut_longest (GArray *a, GArray *b, gint64 max_length, gboolean left)
{
  gint64 n_a = a->len, n_b = b->len;
  gint64 shorter = MIN (n_a, n_b);
  gint64 longer = shorter > max_length ? shorter : MAX (shorter, max_length - shorter);

  if (shorter + longer > max_length)
    {
      shorter = max_length / 2;
      longer = shorter + max_length % 2;
    }
  cut (a, n_a > n_b ? longer : shorter, left);
  cut (b, n_a > n_b ? shorter : longer, left);
}

static gboolean
truncate_texts (GTorchTokenizer *self, GArray *a, GArray *b, gboolean add_special_tokens,
                GError **error)
{
  const GTorchTokenTruncation *rule = &self->truncation;
  gint64 n_special = add_special_tokens ? gtorch_token_frame_count (self->frame, b != NULL) : 0;
  gint64 max_length = rule->max_length - n_special, n_surplus;
  GArray *target = rule->strategy == GTORCH_TRUNCATION_ONLY_SECOND ? b : a;

  n_surplus = a->len + (gint64) (b != NULL ? b->len : 0) - max_length;
  if (rule->max_length < 0 || n_surplus <= 0)
    return TRUE;
  if (max_length < 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("encode: at most %" PRId64 " tokens are wanted, but there are "
                      "%" PRId64 " special ones"),
                   rule->max_length, n_special);
      return FALSE;
    }
  if (rule->strategy == GTORCH_TRUNCATION_LONGEST_FIRST && b != NULL)
    {
      cut_longest (a, b, max_length, rule->left);
      return TRUE;
    }
  if (target == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("encode: the second text is to be cut, but there is only one"));
      return FALSE;
    }
  if (b != NULL && target->len <= n_surplus)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("encode: %" PRId64 " tokens are too many, and the text to cut has "
                      "only %u"),
                   n_surplus, target->len);
      return FALSE;
    }
  cut (target, target->len - n_surplus, rule->left);
  return TRUE;
}

static void
token_list_clear (gpointer data)
{
  GTorchTokenList *list = data;

  g_clear_pointer (&list->ids, g_array_unref);
  g_clear_pointer (&list->type_ids, g_array_unref);
}

static gboolean
encode (GTorchTokenizer *self, GTorchTokenCoder *coder, const gchar *text, const gchar *pair,
        gboolean add_special_tokens, GTorchTokenList *list, GError **error)
{
  g_autoptr (GArray) a = g_array_new (FALSE, FALSE, sizeof (gint64));
  g_autoptr (GArray) b = pair != NULL ? g_array_new (FALSE, FALSE, sizeof (gint64)) : NULL;

  if (!gtorch_name_check ("encode", text, error)
      || (pair != NULL && !gtorch_name_check ("encode", pair, error))
      || !encode_text (self, coder, text, a, error)
      || (pair != NULL && !encode_text (self, coder, pair, b, error))
      || !truncate_texts (self, a, b, add_special_tokens, error))
    return FALSE;
  list->ids = g_array_new (FALSE, FALSE, sizeof (gint64));
  list->type_ids = g_array_new (FALSE, FALSE, sizeof (gint64));
  gtorch_token_frame_apply (self->frame, a, b, add_special_tokens, list);
  return TRUE;
}

/* The length of a sequence with its padding. */
static gsize
padded_length (GTorchTokenizer *self, gsize longest)
{
  gsize length = self->padding.length > 0 ? (gsize) self->padding.length : longest;
  gsize multiple = self->padding.multiple;

  if (multiple > 0)
    length = (length + multiple - 1) / multiple * multiple;
  return MAX (length, longest);
}

/**
 * gtorch_tokenizer_encode:
 * @self: a tokenizer
 * @text: a text
 * @pair: (nullable): a second text, for models that compare two
 * @add_special_tokens: whether the special tokens of the model are added, such as `[CLS]`
 * @n_ids: (out): how many numbers there are
 * @error: return location for an error
 *
 * Turns a text into numbers of tokens.
 *
 * If truncation or padding is enabled, the numbers are cut or filled up. Fails with %GTORCH_ERROR_NOT_FOUND
 * if a part of the text has no token and the vocabulary none for what is unknown, with
 * %GTORCH_ERROR_INVALID if the text is not UTF-8 or cannot be cut as the rule says.
 *
 * Returns: (array length=n_ids) (transfer full): the numbers, or %NULL on error
 *
 * Since: 0.1
 */
gint64 *
gtorch_tokenizer_encode (GTorchTokenizer *self, const gchar *text, const gchar *pair,
                         gboolean add_special_tokens, gsize *n_ids, GError **error)
{
  GTorchTokenCoder coder;
  GTorchTokenList list = { 0 };
  gint64 *ids = NULL;
  gboolean is_done;

  g_return_val_if_fail (GTORCH_IS_TOKENIZER (self), NULL);
  g_return_val_if_fail (text != NULL, NULL);
  g_return_val_if_fail (n_ids != NULL, NULL);
  gtorch_token_coder_init (&coder, self->model);
  is_done = encode (self, &coder, text, pair, add_special_tokens, &list, error);
  gtorch_token_coder_clear (&coder);
  if (is_done)
    {
      gsize n = list.ids->len, length = self->padding.length >= 0 ? padded_length (self, n) : n;
      gsize n_before = self->padding.left ? length - n : 0;

      ids = g_try_new (gint64, MAX (length, 1));
      if (ids == NULL)
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY,
                     _ ("encode: %zu numbers could not be allocated"), length);
      for (gsize i = 0; ids != NULL && i < length; i++)
        ids[i] = i >= n_before && i < n_before + n ? g_array_index (list.ids, gint64, i - n_before)
                                                   : self->padding.id;
      *n_ids = length;
    }
  token_list_clear (&list);
  return ids;
}

/* --- many texts --- */

typedef struct
{
  GTorchTokenizer *self;
  const gchar *const *texts, *const *pairs;
  gboolean add_special_tokens;
  GTorchTokenList *lists;
  GMutex lock;
  GError *error;
  gint64 n_failed; /* the first text that failed, so far */
} Batch;

static void
encode_range (gint64 begin, gint64 end, gpointer data)
{
  Batch *batch = data;
  GTorchTokenCoder coder;

  gtorch_token_coder_init (&coder, batch->self->model);
  for (gint64 i = begin; i < end; i++)
    {
      GError *error = NULL;

      if (encode (batch->self, &coder, batch->texts[i],
                  batch->pairs != NULL ? batch->pairs[i] : NULL, batch->add_special_tokens,
                  &batch->lists[i], &error))
        continue;
      g_mutex_lock (&batch->lock);
      if (i < batch->n_failed)
        {
          batch->n_failed = i;
          g_clear_error (&batch->error);
          batch->error = g_steal_pointer (&error);
        }
      g_mutex_unlock (&batch->lock);
      g_clear_error (&error);
      break;
    }
  gtorch_token_coder_clear (&coder);
}

static void
fill (GTorchTokenizer *self, const GTorchTokenList *lists, gsize n, gsize length, gint64 *ids,
      gint64 *mask, gint64 *types)
{
  for (gsize i = 0; i < n; i++)
    {
      gsize n_tokens = lists[i].ids->len;
      gsize n_before = self->padding.left ? length - n_tokens : 0;

      for (gsize j = 0; j < length; j++)
        {
          gboolean is_token = j >= n_before && j - n_before < n_tokens;

          ids[i * length + j] =
              is_token ? g_array_index (lists[i].ids, gint64, j - n_before) : self->padding.id;
          mask[i * length + j] = is_token;
          types[i * length + j] = is_token ? g_array_index (lists[i].type_ids, gint64, j - n_before)
                                           : self->padding.type_id;
        }
    }
}

static gboolean
find_length (GTorchTokenizer *self, const GTorchTokenList *lists, gsize n, gsize *length,
             GError **error)
{
  guint longest = 0;

  for (gsize i = 0; i < n; i++)
    longest = MAX (longest, lists[i].ids->len);
  *length = longest;
  if (self->padding.length >= 0)
    *length = padded_length (self, longest);
  for (gsize i = 0; i < n; i++)
    if (lists[i].ids->len != *length && (self->padding.length < 0 || lists[i].ids->len > *length))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("encode_batch: text %zu has %u tokens and another one has "
                        "%zu, and padding is not enabled"),
                     i, lists[i].ids->len, *length);
        return FALSE;
      }
  return TRUE;
}

static GTorchTensor *
make_tensors (GTorchTokenizer *self, const GTorchTokenList *lists, gsize n,
              GTorchTensor **attention_mask, GTorchTensor **type_ids, GError **error)
{
  GTorchTensor **places[] = { NULL, attention_mask, type_ids };
  GTorchImpl *impls[3] = { NULL, NULL, NULL };
  gint64 shape[2] = { n, 0 };
  gsize length;

  if (!find_length (self, lists, n, &length, error))
    return NULL;
  shape[1] = length;
  for (guint i = 0; i < 3; i++)
    {
      impls[i] = gtorch_impl_new (gtorch_device_cpu (), GTORCH_DTYPE_INT64, shape, 2, error);
      if (impls[i] == NULL)
        {
          g_prefix_error (error, "encode_batch: ");
          while (i > 0)
            gtorch_impl_unref (impls[--i]);
          return NULL;
        }
    }
  if (n > 0 && length > 0)
    fill (self, lists, n, length, gtorch_impl_data (impls[0]), gtorch_impl_data (impls[1]),
          gtorch_impl_data (impls[2]));
  for (guint i = 1; i < 3; i++)
    {
      if (places[i] != NULL)
        *places[i] = gtorch_tensor_wrap (impls[i]);
      else
        gtorch_impl_unref (impls[i]);
    }
  return gtorch_tensor_wrap (impls[0]);
}

/**
 * gtorch_tokenizer_encode_batch:
 * @self: a tokenizer
 * @texts: (array zero-terminated=1): texts
 * @pairs: (nullable) (array zero-terminated=1): as many second texts
 * @add_special_tokens: whether the special tokens of the model are added, such as `[CLS]`
 * @attention_mask: (out) (optional) (transfer full): 1 for each token and 0 for padding, [n_texts, length]
 * of int64
 * @type_ids: (out) (optional) (transfer full): 0 for tokens of the first text and 1 for those of the second
 * one, or what the model's file says; [n_texts, length] of int64
 * @error: return location for an error
 *
 * Turns texts into numbers of tokens, in several threads.
 *
 * The sequences become equally long by the rules of truncation and padding. Fails with
 * %GTORCH_ERROR_INVALID if they are not and padding is not enabled, or if there are not as many @pairs as
 * @texts; and like [method@Tokenizer.encode], with the place of the first text that failed.
 *
 * Returns: (transfer full): the numbers, [n_texts, length] of int64, on the CPU, or %NULL on error
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tokenizer_encode_batch (GTorchTokenizer *self, const gchar *const *texts,
                               const gchar *const *pairs, gboolean add_special_tokens,
                               GTorchTensor **attention_mask, GTorchTensor **type_ids,
                               GError **error)
{
  Batch batch = { self, texts, pairs, add_special_tokens };
  GTorchTensor *ids = NULL;
  gsize n;

  g_return_val_if_fail (GTORCH_IS_TOKENIZER (self), NULL);
  g_return_val_if_fail (texts != NULL, NULL);
  n = g_strv_length ((gchar **) texts);
  if (pairs != NULL && g_strv_length ((gchar **) pairs) != n)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("encode_batch: %zu texts, but %u pairs"), n,
                   g_strv_length ((gchar **) pairs));
      return NULL;
    }
  batch.lists = g_new0 (GTorchTokenList, MAX (n, 1));
  batch.n_failed = n;
  g_mutex_init (&batch.lock);
  if (n > 0)
    gtorch_parallel_for (n, 1, encode_range, &batch);
  g_mutex_clear (&batch.lock);
  if (batch.error != NULL)
    g_propagate_prefixed_error (error, batch.error, _ ("text %" PRId64 ": "), batch.n_failed);
  else
    ids = make_tensors (self, batch.lists, n, attention_mask, type_ids, error);
  for (gsize i = 0; i < n; i++)
    token_list_clear (&batch.lists[i]);
  g_free (batch.lists);
  return ids;
}
