/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Reading JSON (RFC 8259). A document is one block of nodes, which are numbered in the order of the text,
 * and the text itself, in which strings are unescaped in place; a value of 100,000 members costs no call of
 * the allocator for each. Nothing recurses: depth and size are bounded by what the caller allows. Numbers
 * are kept as double, and as integers if they are. */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef enum
{
  GTORCH_JSON_NULL,
  GTORCH_JSON_FALSE,
  GTORCH_JSON_TRUE,
  GTORCH_JSON_NUMBER,
  GTORCH_JSON_STRING,
  GTORCH_JSON_ARRAY,
  GTORCH_JSON_OBJECT,
} GTorchJsonKind;

typedef struct _GTorchJsonNode GTorchJsonNode;

struct _GTorchJsonNode
{
  guint8 kind;
  guint8 is_integer;  /* a number without fraction and exponent, in 63 bits and a sign */
  guint32 n_children; /* of an array or object */
  const gchar *key; /* of a member of an object; like all strings, valid UTF-8 without zero bytes */
  GTorchJsonNode *first, *next;
  gsize begin, end; /* where the value stands in the text */
  union
  {
    const gchar *string;
    gdouble number;
  };
  gint64 integer;
};

typedef struct _GTorchJson GTorchJson;

/* Parses all of a text, which is copied. FORMAT, beginning with `who` and naming the byte, if it is not
 * JSON, is deeper than 64 values or has a string with a zero byte in it. */
GTorchJson *gtorch_json_parse (const gchar *who, const gchar *text, gsize length, GError **error);
const GTorchJsonNode *gtorch_json_get_root (GTorchJson *json);
void gtorch_json_free (GTorchJson *json);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchJson, gtorch_json_free)

/* A member of an object; NULL if there is none, if it is null, or if `object` is no object. Of several of one
 * name the last one. */
const GTorchJsonNode *gtorch_json_lookup (const GTorchJsonNode *object, const gchar *key);
/* "null", "a string", … */
const gchar *gtorch_json_kind_name (const GTorchJsonNode *node);
/* Appends a string with its quotes. */
void gtorch_json_write_string (GString *text, const gchar *string, gssize length);

G_END_DECLS
