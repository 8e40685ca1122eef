/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The machine of pickles, as far as files of torch.save() need it.
 *
 * A pickle is a program for a machine with a stack, a memo and two instructions that call: REDUCE calls a
 * function that GLOBAL has named, and BUILD sets attributes. In Python both may run anything. Here a name
 * is one of those in the table of gtorch-pickle-call.c, which make tensors and containers, or an error;
 * attributes are those of dictionaries in order. Values are nodes in an array; memory for them is taken out
 * of the limit of the source before they are made, since one byte of a pickle may make one. Nothing
 * recurses, so depth needs no limit.
 *
 * At the end only the nodes that the result consists of are kept. */

#include "config.h"

#include "io/gtorch-pickle-private.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "tensor/gtorch-tensor-private.h"

#define NODE_COST 160 /* bytes that a node is taken to need */

enum
{
  NONE,
  FALSE_NODE,
  TRUE_NODE,
};

static void
node_free (gpointer data)
{
  GTorchPickleNode *node = data;

  if (node == NULL)
    return;
  g_free (node->text);
  g_clear_pointer (&node->children, g_array_unref);
  g_clear_object (&node->tensor);
  g_free (node);
}

static void
storage_free (gpointer data)
{
  GTorchPickleStorage *storage = data;

  g_clear_object (&storage->tensor);
  g_free (storage->location);
  g_free (storage);
}

void
gtorch_pickle_free (GTorchPickle *pickle)
{
  g_clear_pointer (&pickle->nodes, g_ptr_array_unref);
  g_clear_pointer (&pickle->storages, g_ptr_array_unref);
  g_free (pickle);
}

void
gtorch_pickle_set_error (GTorchPickleMachine *self, gint code, const gchar *format, ...)
{
  g_autofree gchar *text = NULL;
  va_list args;

  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (self->error, GTORCH_ERROR, code, _ ("%s: byte %zu of data.pkl: %s"),
               self->source->op, self->begin, text);
}

GTorchPickleNode *
gtorch_pickle_node (GTorchPickleMachine *self, guint32 id)
{
  return self->pickle->nodes->pdata[id];
}

static gboolean
take (GTorchPickleMachine *self, gsize n)
{
  if (n <= self->source->left)
    {
      self->source->left -= n;
      return TRUE;
    }
  return gtorch_pickle_fail (self, GTORCH_ERROR_OUT_OF_MEMORY,
                             _ ("the content takes more than the limit of %" PRIu64 " bytes"),
                             self->source->max_bytes);
}

GTorchPickleNode *
gtorch_pickle_add (GTorchPickleMachine *self, guint kind, guint32 *id)
{
  GTorchPickleNode *node;

  if (!take (self, NODE_COST))
    return NULL;
  node = g_new0 (GTorchPickleNode, 1);
  node->kind = kind;
  *id = self->pickle->nodes->len;
  g_ptr_array_add (self->pickle->nodes, node);
  return node;
}

const gchar *
gtorch_pickle_kind_name (const GTorchPickleNode *node)
{
  static const gchar *const names[] = {
    "None",    "bool",   "int",       "long int", "float", "complex", "str",
    "bytes",   "tensor", "parameter", "list",     "tuple", "dict",    "OrderedDict",
    "Counter", "set",    "frozenset", "Size",     "dtype", "device",
  };

  if (node->kind < G_N_ELEMENTS (names))
    return names[node->kind];
  return node->kind == GTORCH_PICKLE_STORAGE ? "storage" : _ ("function or class");
}

/* --- the stack --- */

static guint
floor_of (GTorchPickleMachine *self)
{
  return self->marks->len > 0 ? g_array_index (self->marks, guint, self->marks->len - 1) : 0;
}

static gboolean
push (GTorchPickleMachine *self, guint32 id)
{
  if (!take (self, sizeof id))
    return FALSE;
  g_array_append_val (self->stack, id);
  return TRUE;
}

static gboolean
pop (GTorchPickleMachine *self, guint32 *id)
{
  if (self->stack->len <= floor_of (self))
    return gtorch_pickle_fail (self, GTORCH_ERROR_FORMAT, _ ("an instruction misses its operand"));
  *id = g_array_index (self->stack, guint32, self->stack->len - 1);
  g_array_set_size (self->stack, self->stack->len - 1);
  self->source->left += sizeof *id;
  return TRUE;
}

static gboolean
top (GTorchPickleMachine *self, guint32 *id)
{
  return pop (self, id) && push (self, *id);
}

/* Where the values above the last mark begin; they stay until the stack is cut there. */
static gboolean
pop_mark (GTorchPickleMachine *self, guint *first)
{
  if (self->marks->len == 0)
    return gtorch_pickle_fail (self, GTORCH_ERROR_FORMAT, _ ("an instruction misses its mark"));
  *first = floor_of (self);
  g_array_set_size (self->marks, self->marks->len - 1);
  return TRUE;
}

static void
cut (GTorchPickleMachine *self, guint length)
{
  self->source->left += (self->stack->len - length) * sizeof (guint32);
  g_array_set_size (self->stack, length);
}

static gboolean
extend (GTorchPickleMachine *self, GTorchPickleNode *node, guint first, guint n)
{
  if (!take (self, n * sizeof (guint32)))
    return FALSE;
  if (node->children == NULL)
    node->children = g_array_new (FALSE, FALSE, sizeof (guint32));
  if (n > 0)
    g_array_append_vals (node->children, &g_array_index (self->stack, guint32, first), n);
  return TRUE;
}

/* --- operands in the pickle --- */

static gboolean
get_bytes (GTorchPickleMachine *self, guint64 n, const guint8 **bytes)
{
  if (n > self->n - self->at)
    return gtorch_pickle_fail (self, GTORCH_ERROR_FORMAT,
                               _ ("%" PRIu64 " bytes are wanted, and %zu are left"), n,
                               self->n - self->at);
  *bytes = self->data + self->at;
  self->at += n;
  return TRUE;
}

static gboolean
get_number (GTorchPickleMachine *self, guint width, guint64 *value)
{
  const guint8 *bytes;

  if (!get_bytes (self, width, &bytes))
    return FALSE;
  for (*value = 0; width > 0; width--)
    *value = *value << 8 | bytes[width - 1];
  return TRUE;
}

/* A line, without its end, in a buffer of 64 bytes or more. */
static gboolean
get_line (GTorchPickleMachine *self, gchar *line, gsize room)
{
  const guint8 *first = self->data + self->at, *end = memchr (first, '\n', self->n - self->at);

  if (end == NULL || (gsize) (end - first) >= room || memchr (first, '\0', end - first) != NULL)
    return gtorch_pickle_fail (self, GTORCH_ERROR_FORMAT, _ ("a line has no end within %zu bytes"),
                               room);
  memcpy (line, first, end - first);
  line[end - first] = '\0';
  self->at += end - first + 1;
  return TRUE;
}

static gboolean
push_new (GTorchPickleMachine *self, guint kind, GTorchPickleNode **node)
{
  guint32 id;

  *node = gtorch_pickle_add (self, kind, &id);
  return *node != NULL && push (self, id);
}

/* Texts of Python may have zero bytes. */
static gboolean
is_utf8 (const gchar *text, gsize n)
{
  const gchar *end = text + n;

  while (!g_utf8_validate_len (text, end - text, &text))
    if (text == end || *text++ != '\0')
      return FALSE;
  return TRUE;
}

static gboolean
push_text (GTorchPickleMachine *self, guint kind, guint width)
{
  GTorchPickleNode *node;
  const guint8 *bytes;
  guint64 n;

  if (!get_number (self, width, &n) || !get_bytes (self, n, &bytes))
    return FALSE;
  if (kind == GTORCH_CHECKPOINT_KIND_STRING && !is_utf8 ((const gchar *) bytes, n))
    return gtorch_pickle_fail (self, GTORCH_ERROR_FORMAT, _ ("a text is not UTF-8"));
  if (!take (self, n) || !push_new (self, kind, &node))
    return FALSE;
  node->text = g_malloc (n + 1);
  memcpy (node->text, bytes, n);
  node->text[n] = '\0';
  node->length = n;
  return TRUE;
}

static gboolean
push_int (GTorchPickleMachine *self, gint64 value)
{
  GTorchPickleNode *node;

  if (!push_new (self, GTORCH_CHECKPOINT_KIND_INT, &node))
    return FALSE;
  node->whole = value;
  return TRUE;
}

/* An integer in two's complement, the lowest byte first. */
static gboolean
push_long (GTorchPickleMachine *self, guint width)
{
  const guint8 *bytes;
  GTorchPickleNode *node;
  guint64 n, value = 0;

  if (!get_number (self, width, &n) || !get_bytes (self, n, &bytes))
    return FALSE;
  if (n <= 8)
    {
      for (guint i = 0; i < n; i++)
        value |= (guint64) bytes[i] << (8 * i);
      if (n > 0 && n < 8 && (bytes[n - 1] & 0x80) != 0)
        value |= G_MAXUINT64 << (8 * n);
      return push_int (self, (gint64) value);
    }
  if (!take (self, n) || !push_new (self, GTORCH_CHECKPOINT_KIND_LONG, &node))
    return FALSE;
  node->text = g_memdup2 (bytes, n);
  node->length = n;
  return TRUE;
}

/* Numbers as texts, of protocol 0. */
static gboolean
push_line (GTorchPickleMachine *self, guint8 code)
{
  GTorchPickleNode *node;
  gchar line[64], *end;
  gint64 whole;

  if (!get_line (self, line, sizeof line))
    return FALSE;
  if (code == 'I' && (strcmp (line, "00") == 0 || strcmp (line, "01") == 0))
    return push (self, line[1] == '1' ? TRUE_NODE : FALSE_NODE);
  if (code == 'F')
    {
      gdouble value = g_ascii_strtod (line, &end);

      if (end == line || *end != '\0')
        return gtorch_pickle_fail (self, GTORCH_ERROR_FORMAT, _ ("“%s” is no number"),
                                   gtorch_name_str (line));
      if (!push_new (self, GTORCH_CHECKPOINT_KIND_DOUBLE, &node))
        return FALSE;
      node->parts[0] = value;
      return TRUE;
    }
  errno = 0;
  whole = g_ascii_strtoll (line, &end, 10);
  if (end == line || errno != 0 || (*end != '\0' && !(*end == 'L' && end[1] == '\0')))
    return gtorch_pickle_fail (self, GTORCH_ERROR_FORMAT, _ ("“%s” is no integer of 64 bits"),
                               gtorch_name_str (line));
  return push_int (self, whole);
}

static gboolean
push_double (GTorchPickleMachine *self)
{
  GTorchPickleNode *node;
  const guint8 *bytes;
  guint64 bits = 0;

  if (!get_bytes (self, 8, &bytes) || !push_new (self, GTORCH_CHECKPOINT_KIND_DOUBLE, &node))
    return FALSE;
  for (guint i = 0; i < 8; i++)
    bits = bits << 8 | bytes[i];
  memcpy (&node->parts[0], &bits, sizeof bits);
  return TRUE;
}

/* --- containers --- */

static gboolean
push_sequence (GTorchPickleMachine *self, guint kind, guint first)
{
  GTorchPickleNode *node;
  guint32 id;

  node = gtorch_pickle_add (self, kind, &id);
  if (node == NULL || !extend (self, node, first, self->stack->len - first))
    return FALSE;
  cut (self, first);
  return push (self, id);
}

static gboolean
push_tuple (GTorchPickleMachine *self, guint n)
{
  if (self->stack->len - floor_of (self) < n)
    return gtorch_pickle_fail (self, GTORCH_ERROR_FORMAT, _ ("an instruction misses its operand"));
  return push_sequence (self, GTORCH_CHECKPOINT_KIND_TUPLE, self->stack->len - n);
}

static gboolean
check_keys (GTorchPickleMachine *self, guint first)
{
  for (guint i = first; i < self->stack->len; i += 2)
    {
      const GTorchPickleNode *key =
          gtorch_pickle_node (self, g_array_index (self->stack, guint32, i));

      switch (key->kind)
        {
        case GTORCH_CHECKPOINT_KIND_LIST:
        case GTORCH_CHECKPOINT_KIND_DICT:
        case GTORCH_CHECKPOINT_KIND_ORDERED_DICT:
        case GTORCH_CHECKPOINT_KIND_COUNTER:
        case GTORCH_CHECKPOINT_KIND_SET:
        case GTORCH_CHECKPOINT_KIND_TENSOR:
        case GTORCH_CHECKPOINT_KIND_PARAMETER:
          return gtorch_pickle_fail (self, GTORCH_ERROR_FORMAT,
                                     _ ("a dictionary has a key of type %s"),
                                     gtorch_pickle_kind_name (key));
        default:;
        }
    }
  return TRUE;
}

/* Adds what is above the place on the stack to the container below it. */
static gboolean
add_items (GTorchPickleMachine *self, guint first, guint8 code)
{
  GTorchPickleNode *to;
  gboolean is_dict = code == 's' || code == 'u', fits;

  if (first == 0 || first <= floor_of (self))
    return gtorch_pickle_fail (self, GTORCH_ERROR_FORMAT, _ ("an instruction misses its operand"));
  to = gtorch_pickle_node (self, g_array_index (self->stack, guint32, first - 1));
  if (is_dict)
    fits = to->kind == GTORCH_CHECKPOINT_KIND_DICT
           || to->kind == GTORCH_CHECKPOINT_KIND_ORDERED_DICT
           || to->kind == GTORCH_CHECKPOINT_KIND_COUNTER;
  else
    fits = to->kind == (code == 0x90 ? GTORCH_CHECKPOINT_KIND_SET : GTORCH_CHECKPOINT_KIND_LIST);
  if (!fits)
    return gtorch_pickle_fail (self, GTORCH_ERROR_FORMAT, _ ("items are added to a %s"),
                               gtorch_pickle_kind_name (to));
  if (is_dict && (self->stack->len - first) % 2 != 0)
    return gtorch_pickle_fail (self, GTORCH_ERROR_FORMAT, _ ("a key of a dictionary has no value"));
  if (is_dict && !check_keys (self, first))
    return FALSE;
  if (!extend (self, to, first, self->stack->len - first))
    return FALSE;
  cut (self, first);
  return TRUE;
}

static gboolean
build (GTorchPickleMachine *self)
{
  GTorchPickleNode *to, *state, *attributes;
  guint32 from, id;

  if (!pop (self, &from) || !top (self, &id))
    return FALSE;
  to = gtorch_pickle_node (self, id);
  state = gtorch_pickle_node (self, from);
  if (to->kind != GTORCH_CHECKPOINT_KIND_ORDERED_DICT
      || (state->kind != GTORCH_CHECKPOINT_KIND_DICT
          && state->kind != GTORCH_CHECKPOINT_KIND_ORDERED_DICT))
    return gtorch_pickle_fail (self, GTORCH_ERROR_FORMAT, _ ("it sets attributes of a %s"),
                               gtorch_pickle_kind_name (to));
  if (to->attributes == 0)
    {
      attributes = gtorch_pickle_add (self, GTORCH_CHECKPOINT_KIND_DICT, &to->attributes);
      if (attributes == NULL)
        {
          to->attributes = 0;
          return FALSE;
        }
      attributes->children = g_array_new (FALSE, FALSE, sizeof (guint32));
    }
  attributes = gtorch_pickle_node (self, to->attributes);
  if (state->children != NULL && state->children->len > 0)
    {
      if (!take (self, state->children->len * sizeof (guint32)))
        return FALSE;
      g_array_append_vals (attributes->children, state->children->data, state->children->len);
    }
  return TRUE;
}

/* --- names and calls --- */

static gboolean
push_global (GTorchPickleMachine *self, gboolean is_on_stack)
{
  gchar module[256], name[256];
  guint32 id, ids[2];

  if (is_on_stack)
    {
      const GTorchPickleNode *nodes[2];

      if (!pop (self, &ids[1]) || !pop (self, &ids[0]))
        return FALSE;
      for (guint i = 0; i < 2; i++)
        {
          nodes[i] = gtorch_pickle_node (self, ids[i]);
          if (nodes[i]->kind != GTORCH_CHECKPOINT_KIND_STRING || nodes[i]->length >= sizeof name)
            return gtorch_pickle_fail (self, GTORCH_ERROR_FORMAT, _ ("a name of a module is a %s"),
                                       gtorch_pickle_kind_name (nodes[i]));
          g_strlcpy (i == 0 ? module : name, nodes[i]->text, sizeof name);
        }
    }
  else if (!get_line (self, module, sizeof module) || !get_line (self, name, sizeof name))
    return FALSE;
  return gtorch_pickle_find (self, module, name, &id) && push (self, id);
}

static gboolean
reduce (GTorchPickleMachine *self)
{
  guint32 func, args, result;

  return pop (self, &args) && pop (self, &func) && gtorch_pickle_call (self, func, args, &result)
         && push (self, result);
}

static gboolean
memoize (GTorchPickleMachine *self, guint64 number)
{
  guint32 id;

  if (number > G_MAXUINT32)
    return gtorch_pickle_fail (self, GTORCH_ERROR_FORMAT,
                               _ ("number %" PRIu64 " of the memo is too large"), number);
  if (!top (self, &id) || !take (self, 48))
    return FALSE;
  g_hash_table_insert (self->memo, GUINT_TO_POINTER ((guint) number), GUINT_TO_POINTER (id + 1));
  return TRUE;
}

static gboolean
recall (GTorchPickleMachine *self, guint64 number)
{
  gpointer id = number <= G_MAXUINT32
                    ? g_hash_table_lookup (self->memo, GUINT_TO_POINTER ((guint) number))
                    : NULL;

  if (id == NULL)
    return gtorch_pickle_fail (self, GTORCH_ERROR_FORMAT, _ ("the memo has no number %" PRIu64),
                               number);
  return push (self, GPOINTER_TO_UINT (id) - 1);
}

static gboolean
memo_line (GTorchPickleMachine *self, guint8 code)
{
  guint64 number;
  gchar line[64];

  if (!get_line (self, line, sizeof line))
    return FALSE;
  if (!g_ascii_string_to_unsigned (line, 10, 0, G_MAXUINT32, &number, NULL))
    return gtorch_pickle_fail (self, GTORCH_ERROR_FORMAT, _ ("“%s” is no number of the memo"),
                               gtorch_name_str (line));
  return code == 'p' ? memoize (self, number) : recall (self, number);
}

static gboolean
refuse_code (GTorchPickleMachine *self, guint8 code)
{
  return gtorch_pickle_fail (self, GTORCH_ERROR_FORMAT,
                             _ ("it has the instruction 0x%02x, which pickles of tensors do not "
                                "need"),
                             code);
}

/* Runs one instruction, of which `width` bytes are a number. */
static gboolean
run_numbered (GTorchPickleMachine *self, guint8 code)
{
  static const guint8 widths[256] = {
    ['K'] = 1, ['M'] = 2, ['J'] = 4,  ['q'] = 1,  ['r'] = 4,
    ['h'] = 1, ['j'] = 4, [0x80] = 1, [0x95] = 8,
  };
  guint64 value;

  if (widths[code] == 0)
    return refuse_code (self, code);
  if (!get_number (self, widths[code], &value))
    return FALSE;
  switch (code)
    {
    case 0x80: /* PROTO */
      return value <= 5
             || gtorch_pickle_fail (self, GTORCH_ERROR_NOT_SUPPORTED,
                                    _ ("protocol %u of pickles: 0 to 5 are known"), (guint) value);
    case 0x95: /* FRAME: tells nothing that is needed */
      return TRUE;
    case 'J':
      return push_int (self, (gint32) value);
    case 'K':
    case 'M':
      return push_int (self, value);
    case 'q':
    case 'r':
      return memoize (self, value);
    default: /* h, j */
      return recall (self, value);
    }
}

static gboolean
run (GTorchPickleMachine *self, guint8 code)
{
  GTorchPickleNode *node;
  guint first;
  guint32 id;

  switch (code)
    {
    case '(': /* MARK */
      if (!take (self, sizeof first))
        return FALSE;
      first = self->stack->len;
      g_array_append_val (self->marks, first);
      return TRUE;
    case '0': /* POP */
      if (self->marks->len > 0 && self->stack->len == floor_of (self))
        return pop_mark (self, &first);
      return pop (self, &id);
    case '1': /* POP_MARK */
      if (!pop_mark (self, &first))
        return FALSE;
      cut (self, first);
      return TRUE;
    case '2': /* DUP */
      return top (self, &id) && push (self, id);
    case 'N':
      return push (self, NONE);
    case 0x88:
      return push (self, TRUE_NODE);
    case 0x89:
      return push (self, FALSE_NODE);
    case 'I':
    case 'L':
    case 'F':
      return push_line (self, code);
    case 0x8a: /* LONG1 */
      return push_long (self, 1);
    case 0x8b: /* LONG4 */
      return push_long (self, 4);
    case 'G':
      return push_double (self);
    case 'X':
      return push_text (self, GTORCH_CHECKPOINT_KIND_STRING, 4);
    case 0x8c:
    case 'U':
      return push_text (self, GTORCH_CHECKPOINT_KIND_STRING, 1);
    case 'T':
      return push_text (self, GTORCH_CHECKPOINT_KIND_STRING, 4);
    case 0x8d:
      return push_text (self, GTORCH_CHECKPOINT_KIND_STRING, 8);
    case 'B':
      return push_text (self, GTORCH_CHECKPOINT_KIND_BYTES, 4);
    case 'C':
      return push_text (self, GTORCH_CHECKPOINT_KIND_BYTES, 1);
    case 0x8e:
      return push_text (self, GTORCH_CHECKPOINT_KIND_BYTES, 8);
    case ']':
      return push_new (self, GTORCH_CHECKPOINT_KIND_LIST, &node);
    case '}':
      return push_new (self, GTORCH_CHECKPOINT_KIND_DICT, &node);
    case ')':
      return push_new (self, GTORCH_CHECKPOINT_KIND_TUPLE, &node);
    case 0x8f:
      return push_new (self, GTORCH_CHECKPOINT_KIND_SET, &node);
    case 'l':
      return pop_mark (self, &first) && push_sequence (self, GTORCH_CHECKPOINT_KIND_LIST, first);
    case 't':
      return pop_mark (self, &first) && push_sequence (self, GTORCH_CHECKPOINT_KIND_TUPLE, first);
    case 0x91:
      return pop_mark (self, &first)
             && push_sequence (self, GTORCH_CHECKPOINT_KIND_FROZENSET, first);
    case 'd':
      if (!pop_mark (self, &first))
        return FALSE;
      if ((self->stack->len - first) % 2 != 0)
        return gtorch_pickle_fail (self, GTORCH_ERROR_FORMAT,
                                   _ ("a key of a dictionary has no value"));
      return check_keys (self, first) && push_sequence (self, GTORCH_CHECKPOINT_KIND_DICT, first);
    case 0x85:
    case 0x86:
    case 0x87:
      return push_tuple (self, code - 0x84);
    case 'a':
    case 's':
      first = code == 'a' ? 1 : 2;
      return add_items (self, self->stack->len - MIN (self->stack->len, first), code);
    case 'e':
    case 'u':
    case 0x90:
      return pop_mark (self, &first) && add_items (self, first, code);
    case 'b':
      return build (self);
    case 'c':
      return push_global (self, FALSE);
    case 0x93:
      return push_global (self, TRUE);
    case 'R':
    case 0x81: /* NEWOBJ: the classes that are known are called in the same way */
      return reduce (self);
    case 'Q':
      return pop (self, &id) && gtorch_pickle_load_storage (self, id, &id) && push (self, id);
    case 'p':
    case 'g':
      return memo_line (self, code);
    case 0x94:
      return memoize (self, g_hash_table_size (self->memo));
    default:
      return run_numbered (self, code);
    }
}

/* --- the result --- */

static gboolean
mark_reachable (GTorchPickleMachine *self, guint32 root, guint8 *is_kept)
{
  g_autoptr (GArray) waiting = g_array_new (FALSE, FALSE, sizeof (guint32));

  g_array_append_val (waiting, root);
  is_kept[root] = TRUE;
  while (waiting->len > 0)
    {
      guint32 id = g_array_index (waiting, guint32, waiting->len - 1);
      const GTorchPickleNode *node = gtorch_pickle_node (self, id);
      guint n = node->children != NULL ? node->children->len : 0;

      g_array_set_size (waiting, waiting->len - 1);
      if (node->kind >= GTORCH_PICKLE_STORAGE)
        return gtorch_pickle_fail (self, GTORCH_ERROR_FORMAT, _ ("it has a %s in place of a value"),
                                   gtorch_pickle_kind_name (node));
      for (guint i = 0; i < n + (node->attributes != 0); i++)
        {
          guint32 child = i < n ? g_array_index (node->children, guint32, i) : node->attributes;

          if (is_kept[child])
            continue;
          is_kept[child] = TRUE;
          g_array_append_val (waiting, child);
        }
    }
  return TRUE;
}

/* Keeps what the result consists of, under new numbers. */
static gboolean
compact (GTorchPickleMachine *self, guint32 root)
{
  GPtrArray *nodes = self->pickle->nodes;
  g_autofree guint8 *is_kept = g_malloc0 (nodes->len);
  g_autofree guint32 *numbers = g_new0 (guint32, nodes->len);
  g_autoptr (GPtrArray) kept = g_ptr_array_new_with_free_func (node_free);

  if (!mark_reachable (self, root, is_kept))
    return FALSE;
  /* number 0 stays None, so that 0 can stand for no attributes */
  is_kept[NONE] = TRUE;
  for (guint i = 0; i < nodes->len; i++)
    if (is_kept[i])
      {
        numbers[i] = kept->len;
        g_ptr_array_add (kept, g_steal_pointer (&nodes->pdata[i]));
      }
  for (guint i = 0; i < kept->len; i++)
    {
      GTorchPickleNode *node = kept->pdata[i];

      for (guint k = 0; node->children != NULL && k < node->children->len; k++)
        {
          guint32 *child = &g_array_index (node->children, guint32, k);

          *child = numbers[*child];
        }
      if (node->attributes != 0)
        node->attributes = numbers[node->attributes];
    }
  self->pickle->root = numbers[root];
  g_ptr_array_unref (nodes);
  self->pickle->nodes = g_steal_pointer (&kept);
  return TRUE;
}

static gboolean
run_all (GTorchPickleMachine *self)
{
  GTorchPickleNode *node;
  guint32 id;

  for (guint i = 0; i < 3; i++)
    {
      node = gtorch_pickle_add (self,
                                i == 0 ? GTORCH_CHECKPOINT_KIND_NONE : GTORCH_CHECKPOINT_KIND_BOOL,
                                &id);
      if (node == NULL)
        return FALSE;
      node->whole = i == TRUE_NODE;
    }
  while (TRUE)
    {
      guint8 code;

      self->begin = self->at;
      if (self->at == self->n)
        return gtorch_pickle_fail (self, GTORCH_ERROR_FORMAT,
                                   _ ("it ends without its last instruction"));
      if ((self->at & 0xfff) == 0
          && g_cancellable_set_error_if_cancelled (self->cancellable, self->error))
        return FALSE;
      code = self->data[self->at++];
      if (code == '.')
        break;
      if (!run (self, code))
        return FALSE;
    }
  if (self->at != self->n)
    return gtorch_pickle_fail (self, GTORCH_ERROR_FORMAT,
                               _ ("%zu bytes follow the last instruction"), self->n - self->at);
  return pop (self, &id) && compact (self, id);
}

/* --- the archive --- */

static void G_GNUC_PRINTF (3, 4)
    set_refusal (GTorchSource *source, GError **error, const gchar *format, ...)
{
  g_autofree gchar *text = NULL;
  va_list args;

  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED, _ ("%s: %s"), source->op, text);
}

#define refuse(...) (set_refusal (__VA_ARGS__), FALSE)

/* The content of a small member, as a text; NULL without an error if there is none. */
static gchar *
read_note (GTorchZip *zip, const gchar *stem, const gchar *name, GCancellable *cancellable,
           GError **error)
{
  g_autofree gchar *path = g_strconcat (stem, name, NULL);
  const GTorchZipMember *member = gtorch_zip_find (zip, path);
  g_autoptr (GBytes) bytes = NULL;
  gboolean is_read_only;

  if (member == NULL)
    return NULL;
  if (member->size > 1000)
    {
      set_refusal (zip->source, error, _ ("“%s” has %" PRIu64 " bytes"), gtorch_name_str (path),
                   member->size);
      return NULL;
    }
  bytes = gtorch_zip_read (zip, member, &is_read_only, cancellable, error);
  if (bytes == NULL)
    return NULL;
  return g_strstrip (g_strndup (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes)));
}

static gboolean
check_notes (GTorchZip *zip, const gchar *stem, GCancellable *cancellable, GError **error)
{
  g_autofree gchar *constants = g_strconcat (stem, "constants.pkl", NULL);
  g_autofree gchar *version = NULL;
  g_autofree gchar *order = NULL;
  g_autoptr (GError) reason = NULL;
  guint64 number;

  if (gtorch_zip_find (zip, constants) != NULL)
    return refuse (zip->source, error, _ ("it is a program of TorchScript"));
  version = read_note (zip, stem, "version", cancellable, &reason);
  if (reason == NULL)
    order = read_note (zip, stem, "byteorder", cancellable, &reason);
  if (reason != NULL)
    {
      g_propagate_error (error, g_steal_pointer (&reason));
      return FALSE;
    }
  if (version != NULL && !g_ascii_string_to_unsigned (version, 10, 1, 10, &number, NULL))
    return refuse (zip->source, error, _ ("its version is %s, not 1 to 10"),
                   gtorch_name_str (version));
  if (order != NULL && strcmp (order, "little") != 0)
    return refuse (zip->source, error, _ ("its numbers are in the order “%s” of bytes"),
                   gtorch_name_str (order));
  return TRUE;
}

static gchar *
find_stem (GTorchZip *zip)
{
  for (guint i = 0; i < zip->members->len; i++)
    {
      const gchar *name = g_array_index (zip->members, GTorchZipMember, i).name;

      if (g_str_has_suffix (name, "/data.pkl") || strcmp (name, "data.pkl") == 0)
        return g_strndup (name, strlen (name) - strlen ("data.pkl"));
    }
  return NULL;
}

GTorchPickle *
gtorch_pickle_read (GTorchSource *source, GCancellable *cancellable, GError **error)
{
  g_autoptr (GTorchZip) zip = gtorch_zip_new (source, cancellable, error);
  g_autoptr (GTorchPickle) pickle = NULL;
  g_autoptr (GBytes) bytes = NULL;
  g_autofree gchar *stem = NULL;
  g_autofree gchar *path = NULL;
  GTorchPickleMachine self = { .source = source, .cancellable = cancellable, .error = error };
  gboolean is_read_only, result;

  if (zip == NULL)
    return NULL;
  stem = find_stem (zip);
  if (stem == NULL)
    {
      set_refusal (source, error, _ ("it has no member data.pkl"));
      return NULL;
    }
  if (!check_notes (zip, stem, cancellable, error))
    return NULL;
  path = g_strconcat (stem, "data.pkl", NULL);
  bytes = gtorch_zip_read (zip, gtorch_zip_find (zip, path), &is_read_only, cancellable, error);
  if (bytes == NULL)
    return NULL;
  pickle = g_new0 (GTorchPickle, 1);
  pickle->nodes = g_ptr_array_new_with_free_func (node_free);
  pickle->storages = g_ptr_array_new_with_free_func (storage_free);
  self.pickle = pickle;
  self.zip = zip;
  self.stem = stem;
  self.data = g_bytes_get_data (bytes, &self.n);
  self.stack = g_array_new (FALSE, FALSE, sizeof (guint32));
  self.marks = g_array_new (FALSE, FALSE, sizeof (guint));
  self.memo = g_hash_table_new (NULL, NULL);
  self.keys = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  result = run_all (&self);
  g_array_unref (self.stack);
  g_array_unref (self.marks);
  g_hash_table_unref (self.memo);
  g_hash_table_unref (self.keys);
  return result ? g_steal_pointer (&pickle) : NULL;
}
