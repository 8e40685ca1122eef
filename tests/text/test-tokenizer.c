/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* data/ has what the package `tokenizers` makes of the same texts; reference.py writes it. */

#include "config.h"

#include <gtorch/gtorch.h>
#include <string.h>

#include "base/gtorch-json-private.h"

static GTorchTokenizer *
load (const gchar *text, GError **error)
{
  g_autoptr (GBytes) bytes = g_bytes_new (text, strlen (text));

  return gtorch_tokenizer_load_bytes (bytes, error);
}

static void
assert_ids (const GTorchJsonNode *expected, const gint64 *ids, gsize n)
{
  gsize i = 0;

  g_assert_cmpuint (n, ==, expected->n_children);
  for (const GTorchJsonNode *node = expected->first; node != NULL; node = node->next)
    g_assert_cmpint (ids[i++], ==, node->integer);
}

/* rows is an array of arrays, or, for one row, an array */
static void
assert_tensor (const GTorchJsonNode *rows, GTorchTensor *tensor)
{
  gsize n_dims, n;
  g_autofree gint64 *all = gtorch_tensor_to_ints (tensor, &n, NULL);
  const gint64 *values = all, *shape;

  g_assert_cmpint (gtorch_tensor_get_dtype (tensor), ==, GTORCH_DTYPE_INT64);
  shape = gtorch_tensor_get_shape (tensor, &n_dims);
  g_assert_cmpuint (n_dims, ==, 2);
  if (rows->first == NULL || rows->first->kind != GTORCH_JSON_ARRAY)
    {
      g_assert_cmpint (shape[0], ==, 1);
      assert_ids (rows, values, shape[1]);
      return;
    }
  for (const GTorchJsonNode *row = rows->first; row != NULL; row = row->next, values += shape[1])
    assert_ids (row, values, shape[1]);
}

static void
check_case (GTorchTokenizer *tokenizer, const GTorchJsonNode *node)
{
  const GTorchJsonNode *pair = gtorch_json_lookup (node, "pair");
  const gchar *texts[] = { gtorch_json_lookup (node, "text")->string, NULL };
  const gchar *pairs[] = { pair != NULL ? pair->string : NULL, NULL };
  gboolean special = gtorch_json_lookup (node, "special")->kind == GTORCH_JSON_TRUE;
  g_autoptr (GTorchTensor) types = NULL;
  g_autoptr (GTorchTensor) batch = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree gint64 *ids = NULL;
  g_autofree gchar *decoded = NULL;
  gsize n;

  ids = gtorch_tokenizer_encode (tokenizer, texts[0], pairs[0], special, &n, &error);
  g_assert_no_error (error);
  assert_ids (gtorch_json_lookup (node, "ids"), ids, n);
  batch = gtorch_tokenizer_encode_batch (tokenizer, texts, pair != NULL ? pairs : NULL, special,
                                         NULL, &types, &error);
  g_assert_no_error (error);
  assert_tensor (gtorch_json_lookup (node, "ids"), batch);
  assert_tensor (gtorch_json_lookup (node, "types"), types);
  decoded = gtorch_tokenizer_decode (tokenizer, ids, n, TRUE, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (decoded, ==, gtorch_json_lookup (node, "decoded")->string);
}

static gboolean
is_true (const GTorchJsonNode *node, const gchar *key)
{
  return gtorch_json_lookup (node, key)->kind == GTORCH_JSON_TRUE;
}

static void
check_cut (GTorchTokenizer *tokenizer, const GTorchJsonNode *node)
{
  static const gchar *const names[] = { "longest_first", "only_first", "only_second" };
  const GTorchJsonNode *result = gtorch_json_lookup (node, "result");
  const GTorchJsonNode *a = gtorch_json_lookup (node, "texts")->first;
  const GTorchJsonNode *b = gtorch_json_lookup (node, "pairs")->first;
  const gchar *texts[] = { a->string, a->next->string, NULL };
  const gchar *pairs[] = { b->string, b->next->string, NULL };
  g_autoptr (GTorchTensor) mask = NULL;
  g_autoptr (GTorchTensor) types = NULL;
  g_autoptr (GTorchTensor) ids = NULL;
  g_autoptr (GError) error = NULL;
  guint strategy = 0;

  while (strcmp (names[strategy], gtorch_json_lookup (node, "strategy")->string) != 0)
    strategy++;
  gtorch_tokenizer_enable_truncation (tokenizer, gtorch_json_lookup (node, "length")->integer,
                                      strategy, is_true (node, "left"), &error);
  g_assert_no_error (error);
  gtorch_tokenizer_enable_padding (tokenizer, 0, gtorch_json_lookup (node, "multiple")->integer,
                                   is_true (node, "pad_left"), 1, 3, "[PAD]", &error);
  g_assert_no_error (error);
  ids = gtorch_tokenizer_encode_batch (tokenizer, texts, pairs, TRUE, &mask, &types, &error);
  if (result == NULL)
    {
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      return;
    }
  g_assert_no_error (error);
  assert_tensor (gtorch_json_lookup (result, "ids"), ids);
  assert_tensor (gtorch_json_lookup (result, "types"), types);
  assert_tensor (gtorch_json_lookup (result, "mask"), mask);
}

static void
test_equals_tokenizers (gconstpointer name)
{
  g_autofree gchar *path = g_test_build_filename (G_TEST_DIST, "text", "data", name, NULL);
  g_autoptr (GTorchTokenizer) tokenizer = NULL;
  g_autoptr (GTorchTokenizer) again = NULL;
  g_autoptr (GTorchJson) json = NULL;
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree gchar *text = NULL;
  const GTorchJsonNode *root, *section;
  gsize length;

  g_file_get_contents (path, &text, &length, &error);
  g_assert_no_error (error);
  json = gtorch_json_parse ("test", text, length, &error);
  g_assert_no_error (error);
  root = gtorch_json_get_root (json);
  section = gtorch_json_lookup (root, "tokenizer");
  bytes = g_bytes_new_static (text + section->begin, section->end - section->begin);
  tokenizer = gtorch_tokenizer_load_bytes (bytes, &error);
  g_assert_no_error (error);
  g_clear_pointer (&bytes, g_bytes_unref);
  bytes = gtorch_tokenizer_to_bytes (tokenizer);
  again = gtorch_tokenizer_load_bytes (bytes, &error);
  g_assert_no_error (error);
  for (const GTorchJsonNode *node = gtorch_json_lookup (root, "cases")->first; node != NULL;
       node = node->next)
    {
      check_case (tokenizer, node);
      check_case (again, node);
    }
  for (const GTorchJsonNode *node = gtorch_json_lookup (root, "cuts")->first; node != NULL;
       node = node->next)
    check_cut (tokenizer, node);
}

#define MODEL(text)   "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2}," text "}}"
#define SECTION(text) "{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0}}," text "}"

static void
test_refuses_files (void)
{
  static const struct
  {
    const gchar *text;
    gint code;
    const gchar *message;
  } cases[] = {
    { "[]", GTORCH_ERROR_FORMAT, "tokenizer: the file is an array, but must be an object" },
    { "{}", GTORCH_ERROR_FORMAT, "tokenizer: model is nothing, but must be an object" },
    { "{\"model\":{\"type\":\"Unigram\"}}", GTORCH_ERROR_NOT_SUPPORTED,
      "tokenizer: model: “Unigram” is not supported; BPE, WordPiece and WordLevel are" },
    { "{\"model\":{\"type\":\"BPE\"}}", GTORCH_ERROR_FORMAT,
      "tokenizer: model: vocab is nothing, but must be an object" },
    { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":4194304}}}", GTORCH_ERROR_FORMAT,
      "tokenizer: model: “a”: the number of a token must be an integer from 0 to 4194303" },
    { "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":1,\"b\":1}}}", GTORCH_ERROR_FORMAT,
      "tokenizer: model: “b”: the token, or its number, is there twice" },
    { MODEL ("\"merges\":[\"a  b\"]"), GTORCH_ERROR_FORMAT,
      "tokenizer: model: merge 0 is not two tokens with one blank between" },
    { MODEL ("\"merges\":[\"a b\",\"ab c\"]"), GTORCH_ERROR_FORMAT,
      "tokenizer: model: merge 1: the token “abc” is not in the vocabulary" },
    { MODEL ("\"merges\":[[\"\",\"ab\"]]"), GTORCH_ERROR_FORMAT,
      "tokenizer: model: merge 0: the token “” is not in the vocabulary" },
    { MODEL ("\"merges\":[],\"dropout\":0.5"), GTORCH_ERROR_NOT_SUPPORTED,
      "tokenizer: model: dropout is not supported" },
    { SECTION ("\"normalizer\":{\"type\":\"Precompiled\"}"), GTORCH_ERROR_NOT_SUPPORTED,
      "tokenizer: normalizer: “Precompiled” is not supported" },
    { SECTION ("\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\"}}"),
      GTORCH_ERROR_FORMAT, "tokenizer: pre_tokenizer Split: “behavior” must be a string" },
    { SECTION ("\"decoder\":{\"type\":\"Strip\",\"content\":\"ab\",\"start\":1,\"stop\":0}"),
      GTORCH_ERROR_FORMAT, "tokenizer: decoder Strip: “content” must be a character" },
    { SECTION ("\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[],\"pair\":[]}"),
      GTORCH_ERROR_FORMAT,
      "tokenizer: post_processor TemplateProcessing: single must have A once, pair A and B "
      "once "
      "each" },
    { SECTION ("\"added_tokens\":[{\"id\":0,\"content\":\"b\"}]"), GTORCH_ERROR_FORMAT,
      "tokenizer: added_tokens[0]: the vocabulary has this token, or its number, for another" },
    { SECTION ("\"padding\":{\"strategy\":{\"Fixed\":99999999}}"), GTORCH_ERROR_FORMAT,
      "tokenizer: padding: “Fixed” must be an integer from 0 to 16777216" },
    { SECTION ("\"truncation\":{\"strategy\":\"Middle\"}"), GTORCH_ERROR_FORMAT,
      "tokenizer: truncation: strategy must be LongestFirst, OnlyFirst or OnlySecond" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GError) error = NULL;

      g_assert_null (load (cases[i].text, &error));
      g_assert_error (error, GTORCH_ERROR, cases[i].code);
      g_assert_cmpstr (error->message, ==, cases[i].message);
    }
}

static void
test_refuses_texts (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTokenizer) tokenizer =
      load ("{\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"},"
            "\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0}}}",
            &error);
  const gchar *unequal[] = { "a", "a a", NULL }, *two[] = { "a", "c", NULL };
  const gint64 ids[] = { 0, 7 };
  gsize n;

  g_assert_no_error (error);
  g_assert_null (gtorch_tokenizer_encode (tokenizer, "a b", NULL, TRUE, &n, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
  g_assert_cmpstr (error->message, ==,
                   "encode: “b” has no token, and the token for what is unknown, “”, is not in the "
                   "vocabulary");
  g_clear_error (&error);
  g_assert_null (gtorch_tokenizer_encode (tokenizer, "\xff", NULL, TRUE, &n, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_null (
      gtorch_tokenizer_encode_batch (tokenizer, unequal, NULL, TRUE, NULL, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "encode_batch: text 0 has 1 tokens and another one has 2, and padding is not "
                   "enabled");
  g_clear_error (&error);
  g_assert_null (gtorch_tokenizer_encode_batch (tokenizer, two, NULL, TRUE, NULL, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
  g_assert_true (g_str_has_prefix (error->message, "text 1: encode: “c” has no token"));
  g_clear_error (&error);
  g_assert_null (gtorch_tokenizer_decode (tokenizer, ids, 2, TRUE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  g_assert_cmpstr (error->message, ==, "decode: ids[1]: no token has the number 7");
  g_clear_error (&error);
  g_assert_false (gtorch_tokenizer_enable_truncation (tokenizer, -1, 0, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_false (gtorch_tokenizer_enable_padding (tokenizer, 0, 0, FALSE, -1, 0, "[PAD]", &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpint (gtorch_tokenizer_token_to_id (tokenizer, "b"), ==, -1);
  g_assert_null (gtorch_tokenizer_id_to_token (tokenizer, 1));
}

int
main (int argc, char **argv)
{
  static const gchar *const names[] = { "gpt.json", "roberta.json", "split.json", "bert.json",
                                        "suffix.json" };

  g_test_init (&argc, &argv, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    {
      g_autofree gchar *path = g_strdup_printf ("/GTorch/Tokenizer/equals_tokenizers/%s", names[i]);

      g_test_add_data_func (path, names[i], test_equals_tokenizers);
    }
  g_test_add_func ("/GTorch/Tokenizer/refuses_files", test_refuses_files);
  g_test_add_func ("/GTorch/Tokenizer/refuses_texts", test_refuses_texts);
  return g_test_run ();
}
