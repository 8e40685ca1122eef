/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* tokenizer.json, and texts that tokenizers which were accepted encode and decode. */

#include "config.h"

#include <gtorch/gtorch.h>
#include <string.h>

#include "fuzz.h"

#define VOCAB   "\"vocab\":{\"[U]\":0,\"a\":1,\"b\":2,\"ab\":3,\"##b\":4,\"c\":5,\"<0x41>\":6}"
#define SPECIAL "\"added_tokens\":[{\"id\":0,\"content\":\"[U]\",\"special\":true,\"lstrip\":true}]"

const gchar fuzz_name[] = "tokenizer";
const guint fuzz_weight = 4;
const FuzzSeed fuzz_seeds[] = {
  FUZZ_SEED ("{\"model\":{\"type\":\"BPE\"," VOCAB ",\"merges\":[\"a b\"],\"unk_token\":\"[U]\"},"
             "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true},"
             "\"decoder\":{\"type\":\"ByteLevel\"}," SPECIAL "}"),
  FUZZ_SEED (
      "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[U]\"," VOCAB "},"
      "\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":true},"
      "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"decoder\":{\"type\":\"WordPiece\"},"
      "\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"c\",5],\"cls\":[\"a\",1]},"
      "\"padding\":{\"strategy\":{\"Fixed\":8},\"pad_id\":5},"
      "\"truncation\":{\"max_length\":6,\"strategy\":\"OnlyFirst\",\"stride\":0}}"),
  FUZZ_SEED (
      "{\"model\":{\"type\":\"BPE\",\"byte_fallback\":true," VOCAB
      ",\"merges\":[[\"a\",\"b\"]],\"continuing_subword_prefix\":\"##\"},"
      "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFKC\"},"
      "{\"type\":\"Replace\",\"pattern\":{\"String\":\"b\"},\"content\":\"ab\"}]},"
      "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","
      "\"pattern\":{\"Regex\":\"a+\"},\"behavior\":\"MergedWithNext\",\"invert\":false},"
      "{\"type\":\"Digits\",\"individual_digits\":true},{\"type\":\"Punctuation\"}]},"
      "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"ByteFallback\"},"
      "{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":1}]}," SPECIAL
      "}"),
  FUZZ_SEED ("{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"[U]\"," VOCAB "},"
             "\"pre_tokenizer\":{\"type\":\"Whitespace\"},\"post_processor\":{\"type\":"
             "\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"c\",\"type_id\":0}},"
             "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"pair\":[{\"Sequence\":{\"id\":\"A\","
             "\"type_id\":0}},{\"Sequence\":{\"id\":\"B\",\"type_id\":1}}],\"special_tokens\":"
             "{\"c\":{\"id\":\"c\",\"ids\":[5],\"tokens\":[\"c\"]}}}}"),
  { NULL, 0 },
};

static void
check_error (const GError *error)
{
  g_assert_nonnull (error);
  g_assert_true (g_utf8_validate (error->message, -1, NULL));
}

static void
check (GTorchTokenizer *tokenizer)
{
  static const gchar *const texts[] = { "ab [U] b,c 12 é\u0301😀 A", "", "aab bba  \n\tabc", NULL };
  g_autoptr (GBytes) bytes = gtorch_tokenizer_to_bytes (tokenizer);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTokenizer) again = gtorch_tokenizer_load_bytes (bytes, &error);

  /* What was accepted can be written and read. */
  g_assert_no_error (error);
  for (guint i = 0; texts[i] != NULL; i++)
    {
      g_autoptr (GError) local = NULL;
      g_autoptr (GError) other = NULL;
      gsize n = 0, m = 0;
      g_autofree gint64 *ids =
          gtorch_tokenizer_encode (tokenizer, texts[i], texts[2 - i], TRUE, &n, &local);
      g_autofree gint64 *same =
          gtorch_tokenizer_encode (again, texts[i], texts[2 - i], TRUE, &m, &other);
      g_autofree gchar *text = NULL;

      g_assert_true ((ids == NULL) == (same == NULL));
      if (ids == NULL)
        {
          check_error (local);
          continue;
        }
      g_assert_cmpmem (ids, n * sizeof *ids, same, m * sizeof *same);
      text = gtorch_tokenizer_decode (tokenizer, ids, n, FALSE, &local);
      if (text == NULL)
        check_error (local);
      else
        g_assert_true (g_utf8_validate (text, -1, NULL));
    }
}

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  g_autoptr (GBytes) bytes = g_bytes_new_static (data, size);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTokenizer) tokenizer = gtorch_tokenizer_load_bytes (bytes, &error);

  g_assert_true ((tokenizer == NULL) == (error != NULL));
  if (error != NULL)
    {
      g_assert_true (error->domain == GTORCH_ERROR);
      g_assert_true (g_utf8_validate (error->message, -1, NULL));
    }
  else
    check (tokenizer);
  return 0;
}
