/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The parts of a tokenizer, in the order in which a text passes through them: added tokens, normalizers,
 * pre-tokenizers, the model, the template, truncation and padding; and decoders for the way back. Each part
 * is what the section of the same name in tokenizer.json says. All strings are UTF-8 without zero bytes. */

#pragma once

#include "base/gtorch-error.h"
#include "base/gtorch-json-private.h"
#include "base/gtorch-text-private.h"
#include "text/gtorch-tokenizer.h"

G_BEGIN_DECLS

/* --- tokens by name and by number (gtorch-vocab.c) --- */

typedef struct _GTorchVocab GTorchVocab;

/* A vocabulary has numbers below this, so that a file of few bytes cannot ask for much memory. */
#define GTORCH_VOCAB_MAX_IDS (1 << 22)

GTorchVocab *gtorch_vocab_new (void);
void gtorch_vocab_free (GTorchVocab *vocab);
/* -1 if there is none. */
gint32 gtorch_vocab_lookup (const GTorchVocab *vocab, const gchar *text, gsize length);
/* FALSE if the token or the number is in use. 0 <= id < GTORCH_VOCAB_MAX_IDS. */
gboolean gtorch_vocab_insert (GTorchVocab *vocab, const gchar *text, gsize length, gint32 id);
/* Ends with a zero byte; NULL if no token has the number. Valid until the next insertion. */
const gchar *gtorch_vocab_get (const GTorchVocab *vocab, gint64 id, gsize *length);
gint32 gtorch_vocab_get_end (const GTorchVocab *vocab); /* the highest number, and one */
gint32 gtorch_vocab_get_n_tokens (const GTorchVocab *vocab);
gsize gtorch_vocab_get_longest (const GTorchVocab *vocab); /* in bytes */

/* --- normalizers (gtorch-normalizer.c), pre-tokenizers (gtorch-pre-tokenizer.c), decoders
 * (gtorch-decode.c) --- */

typedef enum
{
  GTORCH_STEP_NONE,
  /* normalizers */
  GTORCH_STEP_BERT,
  GTORCH_STEP_NFD,
  GTORCH_STEP_NFC,
  GTORCH_STEP_NFKD,
  GTORCH_STEP_NFKC,
  GTORCH_STEP_LOWERCASE,
  GTORCH_STEP_STRIP_ACCENTS,
  GTORCH_STEP_TRIM,
  GTORCH_STEP_PREPEND,
  /* normalizers and decoders */
  GTORCH_STEP_REPLACE,
  /* pre-tokenizers */
  GTORCH_STEP_BERT_WORDS,
  GTORCH_STEP_WHITESPACE,
  GTORCH_STEP_WHITESPACE_SPLIT,
  GTORCH_STEP_PUNCTUATION,
  GTORCH_STEP_DIGITS,
  GTORCH_STEP_SPLIT,
  /* pre-tokenizers and decoders */
  GTORCH_STEP_BYTE_LEVEL,
  /* decoders */
  GTORCH_STEP_WORDPIECE,
  GTORCH_STEP_BPE_DECODER,
  GTORCH_STEP_BYTE_FALLBACK,
  GTORCH_STEP_FUSE,
  GTORCH_STEP_STRIP,
} GTorchStepKind;

typedef enum
{
  GTORCH_SPLIT_REMOVED,
  GTORCH_SPLIT_ISOLATED,
  GTORCH_SPLIT_MERGED_WITH_PREVIOUS,
  GTORCH_SPLIT_MERGED_WITH_NEXT,
  GTORCH_SPLIT_CONTIGUOUS,
} GTorchSplitBehavior;

typedef struct
{
  GTorchStepKind kind;
  gboolean clean_text, chinese, strip_accents, lowercase; /* of BERT */
  gboolean left, right;                                   /* of TRIM */
  gboolean add_prefix_space, use_regex;                   /* of BYTE_LEVEL */
  gboolean individual;                                    /* of DIGITS */
  gboolean invert;                                        /* of SPLIT */
  gboolean cleanup;                                       /* of WORDPIECE */
  GTorchSplitBehavior behavior;
  gint64 start, stop; /* of STRIP */
  gchar *pattern;     /* NULL if there is a regex */
  GRegex *regex;
  gchar *content; /* what replaces, a prefix or a suffix */
} GTorchStep;

void gtorch_step_clear (gpointer step);
/* Reads a section, which may be NULL, into an array of GTorchStep; a Sequence becomes several. `section` is
 * "normalizer", "pre_tokenizer" or "decoder". */
GArray *gtorch_steps_parse (const gchar *section, const GTorchJsonNode *node, GError **error);

/* Every occurrence of what the step REPLACE has. */
gboolean gtorch_step_replace (const GTorchStep *step, GString *text, GError **error);
void gtorch_text_replace (GString *text, const gchar *pattern, const gchar *content);
/* Replaces the text. */
gboolean gtorch_text_normalize (const GArray *steps, GString *text, GError **error);

typedef struct
{
  gsize begin, end;
} GTorchPiece;

typedef struct
{
  GString *text;
  GArray *pieces; /* of GTorchPiece */
  /* in between */
  GString *text_before;
  GArray *pieces_before, *parts;
} GTorchPieces;

void gtorch_pieces_init (GTorchPieces *pieces);
void gtorch_pieces_clear (GTorchPieces *pieces);
/* Splits one text; empty pieces are left out. */
gboolean gtorch_pre_tokenize (const GArray *steps, const gchar *text, gsize length,
                              GTorchPieces *pieces, GError **error);

/* Appends the bytes that the tokens stand for; with zero bytes where tokens of bytes say so. */
gboolean gtorch_decode_tokens (const GArray *steps, const gchar *const *tokens, gsize n_tokens,
                               GString *bytes, GError **error);
/* The character that stands for a byte in byte-level vocabularies; and the byte, or -1. */
gunichar gtorch_byte_char (guint8 byte);
gint gtorch_char_byte (gunichar c);

/* Classes of characters as Unicode's regular expressions have them. */
gboolean gtorch_char_is_space (gunichar c);
gboolean gtorch_char_is_word (gunichar c);
gboolean gtorch_char_is_number (gunichar c);
gboolean gtorch_char_is_punctuation (gunichar c);

/* --- models (gtorch-token-model.c) --- */

typedef enum
{
  GTORCH_TOKEN_MODEL_BPE,
  GTORCH_TOKEN_MODEL_WORDPIECE,
  GTORCH_TOKEN_MODEL_WORDLEVEL,
} GTorchTokenModelKind;

typedef struct _GTorchTokenModel GTorchTokenModel;

GTorchTokenModel *gtorch_token_model_parse (const GTorchJsonNode *node, GError **error);
GTorchVocab *gtorch_token_model_get_vocab (GTorchTokenModel *model);
/* Appends the section of the file. */
void gtorch_token_model_write (GTorchTokenModel *model, GString *text);
void gtorch_token_model_free (GTorchTokenModel *model);

/* What one thread needs while it encodes. */
typedef struct
{
  GTorchTokenModel *model;
  GTorchPieces pieces;
  GArray *symbols, *heap;
  GString *scratch;
  /* Words that were encoded before, and where the numbers of their tokens are. */
  GTorchVocab *words;
  GArray *ranges, *known;
} GTorchTokenCoder;

void gtorch_token_coder_init (GTorchTokenCoder *coder, GTorchTokenModel *model);
void gtorch_token_coder_clear (GTorchTokenCoder *coder);
/* Appends the numbers (gint64) of a piece's tokens. */
gboolean gtorch_token_model_encode (GTorchTokenCoder *coder, const gchar *text, gsize length,
                                    GArray *ids, GError **error);

/* --- added tokens (gtorch-added-tokens.c) --- */

typedef struct
{
  gchar *content;
  gint32 id;
  gboolean single_word, lstrip, rstrip, normalized, special;
  gchar *sought; /* what is looked for in the text: the content, normalized if the text is */
  gsize length;
} GTorchAddedToken;

typedef struct _GTorchAddedTokens GTorchAddedTokens;

/* Tokens of the vocabulary must have the numbers that they have there. */
GTorchAddedTokens *gtorch_added_tokens_parse (const GTorchJsonNode *node, const GTorchVocab *vocab,
                                              const GArray *normalizers, GError **error);
void gtorch_added_tokens_free (GTorchAddedTokens *tokens);
guint gtorch_added_tokens_get_n (const GTorchAddedTokens *tokens);
const GTorchAddedToken *gtorch_added_tokens_get (const GTorchAddedTokens *tokens, guint i);
const GTorchAddedToken *gtorch_added_tokens_lookup (const GTorchAddedTokens *tokens,
                                                    const gchar *content);
const GTorchAddedToken *gtorch_added_tokens_by_id (const GTorchAddedTokens *tokens, gint64 id);

typedef struct
{
  gsize begin, end;
  gint32 id; /* of the added token, or -1 */
} GTorchStretch;

/* Appends stretches that cover the text. */
void gtorch_added_tokens_split (const GTorchAddedTokens *tokens, gboolean normalized,
                                const gchar *text, gsize length, GArray *stretches);

/* --- what is done to whole sequences (gtorch-token-frame.c) --- */

typedef struct
{
  GArray *ids;      /* gint64 */
  GArray *type_ids; /* gint64 */
} GTorchTokenList;

typedef struct _GTorchTokenFrame GTorchTokenFrame;

GTorchTokenFrame *gtorch_token_frame_parse (const GTorchJsonNode *node, GError **error);
void gtorch_token_frame_free (GTorchTokenFrame *frame);
/* How many tokens are added. */
gint64 gtorch_token_frame_count (const GTorchTokenFrame *frame, gboolean has_pair);
/* b may be NULL. */
void gtorch_token_frame_apply (const GTorchTokenFrame *frame, const GArray *a, const GArray *b,
                               gboolean add_special_tokens, GTorchTokenList *list);

/* --- the object --- */

/* The longest sequence that padding and truncation may ask for. */
#define GTORCH_TOKENS_MAX (1 << 24)

typedef struct
{
  gint64 max_length; /* -1: none */
  GTorchTruncation strategy;
  gboolean left;
  gint64 stride; /* kept for the file */
} GTorchTokenTruncation;

typedef struct
{
  gint64 length; /* -1: none, 0: the longest of the batch */
  gint64 multiple;
  gboolean left;
  gint64 id, type_id;
  gchar *token;
} GTorchTokenPadding;

struct _GTorchTokenizer
{
  GObject parent_instance;
  GTorchTokenModel *model;
  GTorchAddedTokens *added;
  GTorchTokenFrame *frame;
  GArray *normalizers, *pre_tokenizers, *decoders; /* of GTorchStep */
  gchar *sections
      [4]; /* what the file says of these: normalizer, pre_tokenizer, post_processor, decoder */
  GTorchTokenTruncation truncation;
  GTorchTokenPadding padding;
};

/* From the text of a tokenizer.json. */
GTorchTokenizer *gtorch_tokenizer_parse (const gchar *text, gsize length, GError **error);

G_END_DECLS
