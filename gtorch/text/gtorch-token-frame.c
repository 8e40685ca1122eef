/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The special tokens around and between sequences: the section post_processor. */

#include "config.h"

#include <gio/gio.h>
#include <glib/gi18n-lib.h>
#include <string.h>

#include "text/gtorch-tokenizer-private.h"

typedef struct
{
  gint sequence; /* 0 or 1, or -1 for tokens */
  gint64 type_id;
  GArray *ids; /* gint64 */
} Item;

struct _GTorchTokenFrame
{
  GArray *items[2]; /* of one sequence and of two; of Item */
};

static void
item_clear (gpointer data)
{
  Item *item = data;

  g_clear_pointer (&item->ids, g_array_unref);
}

static void
add_sequence (GArray *items, gint sequence, gint64 type_id)
{
  Item item = { sequence, type_id, NULL };

  g_array_append_val (items, item);
}

static void
add_token (GArray *items, gint64 id, gint64 type_id)
{
  Item item = { -1, type_id, g_array_new (FALSE, FALSE, sizeof (gint64)) };

  g_array_append_val (item.ids, id);
  g_array_append_val (items, item);
}

static void
clear_items (GTorchTokenFrame *frame)
{
  for (guint i = 0; i < 2; i++)
    g_array_set_size (frame->items[i], 0);
}

static gboolean
fail (GError **error, const gchar *type, const gchar *rule)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT, "tokenizer: post_processor %s: %s", type,
               rule);
  return FALSE;
}

static gboolean
is_id (const GTorchJsonNode *node)
{
  return node != NULL && node->kind == GTORCH_JSON_NUMBER && node->is_integer && node->integer >= 0
         && node->integer < GTORCH_VOCAB_MAX_IDS;
}

/* ["[SEP]", 102] */
static gboolean
get_pair (const GTorchJsonNode *node, const gchar *key, gint64 *id)
{
  const GTorchJsonNode *pair = gtorch_json_lookup (node, key);

  if (pair == NULL || pair->kind != GTORCH_JSON_ARRAY || pair->n_children != 2
      || !is_id (pair->first->next))
    return FALSE;
  *id = pair->first->next->integer;
  return TRUE;
}

static gboolean
read_bert (GTorchTokenFrame *frame, const GTorchJsonNode *node, const gchar *type, GError **error)
{
  gboolean is_roberta = strcmp (type, "RobertaProcessing") == 0;
  gint64 cls, sep;

  if (!get_pair (node, "cls", &cls) || !get_pair (node, "sep", &sep))
    return fail (error, type, _ ("cls and sep must be arrays of a token and its number"));
  clear_items (frame);
  for (guint i = 0; i < 2; i++)
    {
      add_token (frame->items[i], cls, 0);
      add_sequence (frame->items[i], 0, 0);
      add_token (frame->items[i], sep, 0);
    }
  if (is_roberta)
    add_token (frame->items[1], sep, 0);
  add_sequence (frame->items[1], 1, !is_roberta);
  add_token (frame->items[1], sep, !is_roberta);
  return TRUE;
}

static gboolean
read_item (GArray *items, const GTorchJsonNode *node, const GTorchJsonNode *tokens,
           const gchar *type, GError **error)
{
  const GTorchJsonNode *sequence = gtorch_json_lookup (node, "Sequence");
  const GTorchJsonNode *token = gtorch_json_lookup (node, "SpecialToken");
  const GTorchJsonNode *body = sequence != NULL ? sequence : token;
  const GTorchJsonNode *id = gtorch_json_lookup (body, "id");
  const GTorchJsonNode *type_id = gtorch_json_lookup (body, "type_id");
  const GTorchJsonNode *ids;
  Item item;

  if (id == NULL || id->kind != GTORCH_JSON_STRING || !is_id (type_id))
    return fail (error, type, _ ("an item must be a Sequence or SpecialToken with id and type_id"));
  if (sequence != NULL)
    {
      if (strcmp (id->string, "A") != 0 && strcmp (id->string, "B") != 0)
        return fail (error, type, _ ("the id of a sequence must be A or B"));
      add_sequence (items, id->string[0] == 'B', type_id->integer);
      return TRUE;
    }
  ids = gtorch_json_lookup (gtorch_json_lookup (tokens, id->string), "ids");
  if (ids == NULL || ids->kind != GTORCH_JSON_ARRAY)
    return fail (error, type, _ ("special_tokens must have ids for each token of an item"));
  item = (Item){ -1, type_id->integer, g_array_new (FALSE, FALSE, sizeof (gint64)) };
  for (const GTorchJsonNode *number = ids->first; number != NULL; number = number->next)
    {
      if (!is_id (number))
        {
          g_array_unref (item.ids);
          return fail (error, type, _ ("the ids of a token must be integers from 0 to 4194303"));
        }
      g_array_append_val (item.ids, number->integer);
    }
  g_array_append_val (items, item);
  return TRUE;
}

static gboolean
read_template (GTorchTokenFrame *frame, const GTorchJsonNode *node, const gchar *type,
               GError **error)
{
  static const gchar *const keys[] = { "single", "pair" };
  const GTorchJsonNode *tokens = gtorch_json_lookup (node, "special_tokens");

  clear_items (frame);
  for (guint i = 0; i < 2; i++)
    {
      const GTorchJsonNode *list = gtorch_json_lookup (node, keys[i]);
      guint n[2] = { 0, 0 };

      if (list == NULL || list->kind != GTORCH_JSON_ARRAY || list->n_children > 256)
        return fail (error, type, _ ("single and pair must be arrays of at most 256 items"));
      for (const GTorchJsonNode *item = list->first; item != NULL; item = item->next)
        if (!read_item (frame->items[i], item, tokens, type, error))
          return FALSE;
      for (guint j = 0; j < frame->items[i]->len; j++)
        {
          gint sequence = g_array_index (frame->items[i], Item, j).sequence;

          if (sequence >= 0)
            n[sequence]++;
        }
      if (n[0] != 1 || n[1] != i)
        return fail (error, type, _ ("single must have A once, pair A and B once each"));
    }
  return TRUE;
}

static gboolean
read_frame (GTorchTokenFrame *frame, const GTorchJsonNode *node, GError **error)
{
  const GTorchJsonNode *member = gtorch_json_lookup (node, "type");
  const gchar *type = member != NULL && member->kind == GTORCH_JSON_STRING ? member->string : "";

  if (strcmp (type, "ByteLevel") == 0)
    return TRUE; /* it concerns only where tokens stand in the text */
  if (strcmp (type, "TemplateProcessing") == 0)
    return read_template (frame, node, type, error);
  if (strcmp (type, "BertProcessing") == 0 || strcmp (type, "RobertaProcessing") == 0)
    return read_bert (frame, node, type, error);
  if (strcmp (type, "Sequence") == 0)
    {
      const GTorchJsonNode *list = gtorch_json_lookup (node, "processors");
      guint n = 0;

      if (list == NULL || list->kind != GTORCH_JSON_ARRAY)
        return fail (error, type, _ ("processors must be an array"));
      for (const GTorchJsonNode *item = list->first; item != NULL; item = item->next)
        {
          const GTorchJsonNode *kind = gtorch_json_lookup (item, "type");

          if (kind != NULL && kind->kind == GTORCH_JSON_STRING
              && strcmp (kind->string, "ByteLevel") == 0)
            continue;
          if (n++ > 0)
            {
              g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                           _ ("tokenizer: post_processor Sequence: several that add tokens are "
                              "not supported"));
              return FALSE;
            }
          if (!read_frame (frame, item, error))
            return FALSE;
        }
      return TRUE;
    }
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
               _ ("tokenizer: post_processor: “%s” is not supported"), gtorch_name_str (type));
  return FALSE;
}

GTorchTokenFrame *
gtorch_token_frame_parse (const GTorchJsonNode *node, GError **error)
{
  GTorchTokenFrame *frame = g_new0 (GTorchTokenFrame, 1);

  for (guint i = 0; i < 2; i++)
    {
      frame->items[i] = g_array_new (FALSE, FALSE, sizeof (Item));
      g_array_set_clear_func (frame->items[i], item_clear);
      add_sequence (frame->items[i], 0, 0);
    }
  add_sequence (frame->items[1], 1, 1);
  if (node != NULL && !read_frame (frame, node, error))
    {
      gtorch_token_frame_free (frame);
      return NULL;
    }
  return frame;
}

void
gtorch_token_frame_free (GTorchTokenFrame *frame)
{
  g_array_unref (frame->items[0]);
  g_array_unref (frame->items[1]);
  g_free (frame);
}

gint64
gtorch_token_frame_count (const GTorchTokenFrame *frame, gboolean has_pair)
{
  const GArray *items = frame->items[has_pair];
  gint64 n = 0;

  for (guint i = 0; i < items->len; i++)
    if (g_array_index (items, Item, i).ids != NULL)
      n += g_array_index (items, Item, i).ids->len;
  return n;
}

void
gtorch_token_frame_apply (const GTorchTokenFrame *frame, const GArray *a, const GArray *b,
                          gboolean add_special_tokens, GTorchTokenList *list)
{
  const GArray *items = frame->items[b != NULL];

  for (guint i = 0; i < items->len; i++)
    {
      const Item *item = &g_array_index (items, Item, i);
      const GArray *ids = item->sequence < 0 ? item->ids : item->sequence > 0 ? b : a;

      if ((item->sequence < 0 && !add_special_tokens) || ids->len == 0)
        continue;
      g_array_append_vals (list->ids, ids->data, ids->len);
      for (guint j = 0; j < ids->len; j++)
        g_array_append_val (list->type_ids, item->type_id);
    }
}
