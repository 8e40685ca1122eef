/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Trees of columns whose numbers come from the input. What cannot be checked is right: memory is there for
 * what a column claims, unless that is much; then there is none. */

#include "config.h"

#include <gtorch/gtorch.h>
#include <string.h>

#include "fuzz.h"
#include "io/gtorch-arrow-private.h"

#define MAX_ROWS  64
#define MAX_NODES 16

const gchar fuzz_name[] = "arrow";
const guint fuzz_weight = 1;
const FuzzSeed fuzz_seeds[] = {
  /* the root: 0, children, length, offset, changes; a column: format, length, offset, changes */
  FUZZ_SEED ("\0\2\3\0\0\1\3\0\0\4\3\0\0"),
  FUZZ_SEED ("\0\1\3\1\0\2\5\0\0\4\14\0\0"),
  FUZZ_SEED ("\0\3\10\2\0\6\20\1\4\3\20\0\1\0\2\20\0\0\10\37\0\0"),
  { NULL, 0 },
};

typedef struct
{
  const guint8 *data;
  gsize n, at;
  guint n_nodes;
  guint n_released;
} Input;

typedef struct
{
  GTorchArrowSchema schema;
  GTorchArrowArray array;
  GTorchArrowSchema *schemas[4];
  GTorchArrowArray *arrays[4];
  const void *buffers[2];
  guint8 *memory, *bits;
} Node;

static guint
next (Input *input)
{
  return input->at < input->n ? input->data[input->at++] : 0;
}

static gint64
number (Input *input)
{
  guint byte = next (input);
  static const gint64 extremes[] = { -1,         G_MAXINT64,       G_MININT64,
                                     G_MAXINT32, (gint64) 1 << 61, MAX_ROWS + 1 };

  return byte < 240 ? byte % (MAX_ROWS / 2) : extremes[byte % G_N_ELEMENTS (extremes)];
}

static void
release_array (GTorchArrowArray *array)
{
  Input *input = array->private_data;

  input->n_released++;
  array->release = NULL;
}

static void
release_schema (GTorchArrowSchema *schema)
{
  schema->release = NULL;
}

static void
node_free (Node *node)
{
  for (guint i = 0; i < 4; i++)
    if (node->schemas[i] != NULL)
      node_free ((Node *) node->schemas[i]); /* the schema is first */
  g_free (node->memory);
  g_free (node->bits);
  g_free (node);
}

static Node *
make (Input *input, guint depth)
{
  static const gchar *const formats[] = {
    "+s", "i",    "+w:2", "l",   "f", "d",  "b", "C",
    "g",  "+w:0", "e",    "+w:", "u", "+l", "c", "+w:4294967295"
  };
  Node *node = g_new0 (Node, 1);
  guint format = next (input), n = 0, changes;
  gint64 reach;

  input->n_nodes++;
  node->schema.format = formats[depth == 0 ? 0 : format % G_N_ELEMENTS (formats)];
  node->schema.name = format % 7 == 6 ? NULL : formats[format % 5];
  node->schema.release = release_schema;
  if (node->schema.format[0] == '+' && depth < 4)
    n = depth == 0 ? next (input) % 5 : 1;
  node->array.length = number (input);
  node->array.offset = number (input);
  changes = next (input);
  node->array.null_count = (changes & 1) != 0 ? number (input) : 0;
  node->array.n_buffers = node->schema.format[0] == '+' ? 1 : 2;
  node->array.buffers = node->buffers;
  node->array.private_data = input;
  for (guint i = 0; i < n && i < 4 && input->n_nodes < MAX_NODES; i++)
    {
      Node *child = make (input, depth + 1);

      node->schemas[i] = &child->schema;
      node->arrays[i] = &child->array;
      node->schema.n_children = node->array.n_children = i + 1;
    }
  node->schema.children = node->schemas;
  node->array.children = node->arrays;
  if (!__builtin_add_overflow (node->array.length, node->array.offset, &reach) && reach >= 0
      && reach <= 2 * MAX_ROWS)
    {
      node->memory = g_malloc0 (reach * 8 + 1);
      node->bits = g_malloc (reach / 8 + 1);
      memset (node->bits, (changes & 2) != 0 ? 0xfb : 0xff, reach / 8 + 1);
    }
  node->buffers[0] = (changes & 4) != 0 ? node->bits : NULL;
  node->buffers[1] = (changes & 8) != 0 ? NULL : node->memory;
  if ((changes & 16) != 0)
    node->array.n_buffers = number (input);
  if ((changes & 32) != 0)
    node->array.n_children = node->array.n_children > 0 ? 0 : -1;
  if ((changes & 64) != 0)
    node->schema.format = NULL;
  return node;
}

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  Input input = { data, size };
  Node *root = make (&input, 0);
  g_autoptr (GError) error = NULL;
  GTorchTable *table;

  root->array.release = release_array;
  table = gtorch_arrow_import_table ((gsize) &root->schema, (gsize) &root->array, &error);
  g_assert_true ((table == NULL) == (error != NULL));
  g_assert_true ((root->array.release == NULL) == (table != NULL));
  if (table != NULL)
    {
      GTorchArrowSchema schema = { NULL };
      GTorchArrowArray array = { 0 };

      for (guint i = 0; i < gtorch_table_get_length (table); i++)
        g_free (gtorch_tensor_to_string (gtorch_table_get_tensor (table, i)));
      if (gtorch_arrow_export_table (table, (gsize) &schema, (gsize) &array, NULL))
        gtorch_arrow_release ((gsize) &schema, (gsize) &array, 0);
      g_object_unref (table);
      g_assert_cmpuint (input.n_released, ==, 1);
    }
  else
    {
      g_assert_true (error->domain == GTORCH_ERROR);
      g_assert_true (g_utf8_validate (error->message, -1, NULL));
    }
  node_free (root);
  return 0;
}
