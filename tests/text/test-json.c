/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <string.h>

#include "base/gtorch-error.h"
#include "base/gtorch-json-private.h"

static void
test_values (void)
{
  static const gchar text[] =
      " {\"a\": [1, -2.5e1, true, false, null, {}], \"b\\n\": \"\\u00e9\\ud83d\\ude00\\/\", "
      "\"a\" : 9223372036854775807, \"c\": 9223372036854775808} ";
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchJson) json = gtorch_json_parse ("test", text, strlen (text), &error);
  const GTorchJsonNode *root, *node;

  g_assert_no_error (error);
  root = gtorch_json_get_root (json);
  g_assert_cmpuint (root->n_children, ==, 4);
  node = root->first->first;
  g_assert_true (node->is_integer);
  g_assert_cmpint (node->integer, ==, 1);
  node = node->next;
  g_assert_false (node->is_integer);
  g_assert_cmpfloat (node->number, ==, -25);
  g_assert_cmpuint (node->next->kind, ==, GTORCH_JSON_TRUE);
  node = gtorch_json_lookup (root, "b\n");
  g_assert_cmpstr (node->string, ==, "é😀/");
  /* the last one of a name */
  g_assert_cmpint (gtorch_json_lookup (root, "a")->integer, ==, G_MAXINT64);
  g_assert_false (gtorch_json_lookup (root, "c")->is_integer);
  g_assert_null (gtorch_json_lookup (root, "d"));
  g_assert_null (gtorch_json_lookup (root->first, "a"));
}

static void
test_refuses (void)
{
  static const struct
  {
    const gchar *text, *message;
  } cases[] = {
    { "", "test: byte 0 of the JSON text: expected a value" },
    { "{", "test: byte 1 of the JSON text: expected \"" },
    { "[1,]", "test: byte 3 of the JSON text: expected a value" },
    { "[1 2]", "test: byte 3 of the JSON text: expected \",\" or \"]\"" },
    { "{\"a\" 1}", "test: byte 5 of the JSON text: expected \":\"" },
    { "{} x", "test: byte 3 of the JSON text: expected the end of the text" },
    { "01", "test: byte 0 of the JSON text: expected a value" },
    { "1.", "test: byte 0 of the JSON text: expected a number" },
    { "\"a", "test: byte 2 of the JSON text: expected the end of a string" },
    { "\"\\u0000\"",
      "test: byte 7 of the JSON text: expected an escape sequence other than of a zero byte" },
    { "\"\\ud800\"",
      "test: byte 7 of the JSON text: expected an escape sequence other than of a zero byte" },
    { "\"\xff\"", "test: byte 1 of the JSON text: expected UTF-8" },
  };
  g_autoptr (GString) deep = g_string_new (NULL);
  g_autoptr (GError) error = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GError) local = NULL;

      g_assert_null (gtorch_json_parse ("test", cases[i].text, strlen (cases[i].text), &local));
      g_assert_error (local, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
      g_assert_cmpstr (local->message, ==, cases[i].message);
    }
  for (guint i = 0; i < 65; i++)
    g_string_append_c (deep, '[');
  g_assert_null (gtorch_json_parse ("test", deep->str, deep->len, &error));
  g_assert_cmpstr (error->message, ==,
                   "test: byte 64 of the JSON text: expected at most 64 values in one another");
}

static void
test_strings_come_back (void)
{
  static const gchar text[] = "a\"b\\c\n\t\x01\x7f é😀";
  g_autoptr (GString) written = g_string_new (NULL);
  g_autoptr (GTorchJson) json = NULL;

  gtorch_json_write_string (written, text, -1);
  json = gtorch_json_parse ("test", written->str, written->len, NULL);
  g_assert_nonnull (json);
  g_assert_cmpstr (gtorch_json_get_root (json)->string, ==, text);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/json/values", test_values);
  g_test_add_func ("/GTorch/json/refuses", test_refuses);
  g_test_add_func ("/GTorch/json/strings_come_back", test_strings_come_back);
  return g_test_run ();
}
