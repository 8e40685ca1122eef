/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The recorded history of the allocator of a GPU, and its pickle; GTORCH_TEST_SNAPSHOT names a file to
 * which one is written for inspection. */

#include "config.h"

#include <glib/gstdio.h>

#include "cuda-test.h"

/* --- a reader of pickles --- */

typedef struct _Value Value;
struct _Value
{
  gchar kind; /* the opcode: {, [, i, s, b, t (a pair), ( (a mark) */
  gint64 number;
  gchar *text;
  GPtrArray *items; /* of a dictionary: key, value, key, … */
};

static void
value_free (gpointer data)
{
  Value *value = data;

  g_free (value->text);
  g_clear_pointer (&value->items, g_ptr_array_unref);
  g_free (value);
}

static Value *
push (GPtrArray *stack, gchar kind)
{
  Value *value = g_new0 (Value, 1);

  value->kind = kind;
  if (kind == '{' || kind == '[' || kind == 't')
    value->items = g_ptr_array_new_with_free_func (value_free);
  g_ptr_array_add (stack, value);
  return value;
}

static Value *
unpickle (GBytes *bytes)
{
  g_autoptr (GPtrArray) stack = g_ptr_array_new ();
  gsize size, at = 2;
  const guint8 *data = g_bytes_get_data (bytes, &size);
  Value *value;
  guint i, mark;

  g_assert_cmpuint (data[0], ==, 0x80);
  g_assert_cmpuint (data[1], ==, 2);
  while (data[at] != '.')
    {
      guint8 code = data[at++];
      gint32 small;

      switch (code)
        {
        case '}':
        case ']':
          push (stack, code == '}' ? '{' : '[');
          break;
        case '(':
          push (stack, '(');
          break;
        case 'J':
          memcpy (&small, data + at, 4);
          push (stack, 'i')->number = small;
          at += 4;
          break;
        case 0x8a:
          g_assert_cmpuint (data[at], ==, 8);
          memcpy (&push (stack, 'i')->number, data + at + 1, 8);
          at += 9;
          break;
        case 'X':
          memcpy (&small, data + at, 4);
          push (stack, 's')->text = g_strndup ((const gchar *) data + at + 4, small);
          at += 4 + small;
          break;
        case 0x88:
        case 0x89:
          push (stack, 'b')->number = code == 0x88;
          break;
        case 0x86:
          value = push (stack, 't');
          g_ptr_array_add (value->items, stack->pdata[stack->len - 3]);
          g_ptr_array_add (value->items, stack->pdata[stack->len - 2]);
          stack->pdata[stack->len - 3] = value;
          g_ptr_array_set_size (stack, stack->len - 2);
          break;
        case 'u':
        case 'e':
          for (mark = stack->len - 1; ((Value *) stack->pdata[mark])->kind != '('; mark--)
            ;
          value = stack->pdata[mark - 1];
          g_assert_cmpint (value->kind, ==, code == 'u' ? '{' : '[');
          for (i = mark + 1; i < stack->len; i++)
            g_ptr_array_add (value->items, stack->pdata[i]);
          value_free (stack->pdata[mark]);
          g_ptr_array_set_size (stack, mark);
          break;
        default:
          g_assert_not_reached ();
        }
      g_assert_cmpuint (at, <, size);
    }
  g_assert_cmpuint (at, ==, size - 1);
  g_assert_cmpuint (stack->len, ==, 1);
  return stack->pdata[0];
}

static Value *
get (Value *dict, const gchar *key)
{
  guint i;

  g_assert_cmpint (dict->kind, ==, '{');
  for (i = 0; i < dict->items->len; i += 2)
    if (strcmp (((Value *) dict->items->pdata[i])->text, key) == 0)
      return dict->items->pdata[i + 1];
  g_error ("no %s", key);
}

static Value *
at (Value *list, guint i)
{
  g_assert_cmpuint (i, <, list->items->len);
  return list->items->pdata[i];
}

static Value *
snapshot (void)
{
  GError *error = NULL;
  GBytes *pickle = gtorch_allocator_snapshot (gpu_allocator (), &error);
  Value *value;

  g_assert_no_error (error);
  value = unpickle (pickle);
  g_bytes_unref (pickle);
  return value;
}

/* --- */

/* Returns the first allocated block of the size. */
static Value *
find_block (Value *all, gint64 size)
{
  Value *segments = get (all, "segments");
  guint i, k;

  for (i = 0; i < segments->items->len; i++)
    {
      Value *blocks = get (at (segments, i), "blocks");

      for (k = 0; k < blocks->items->len; k++)
        if (get (at (blocks, k), "size")->number == size
            && strcmp (get (at (blocks, k), "state")->text, "active_allocated") == 0)
          return at (blocks, k);
    }
  return NULL;
}

static void
a_snapshot_has_every_byte (void)
{
  g_autoptr (GTorchImpl) x = bytes (1000), y = bytes (5000), z = bytes (70 * MIB);
  gint64 total = 0, allocated = 0, sum = 0;
  Value *all, *segments;
  guint i, k;

  gtorch_impl_unref (bytes (3 * MIB));
  all = snapshot ();
  segments = get (all, "segments");
  for (i = 0; i < segments->items->len; i++)
    {
      Value *segment = at (segments, i), *blocks = get (segment, "blocks");
      gint64 next = get (segment, "address")->number, held = 0;

      total += get (segment, "total_size")->number;
      allocated += get (segment, "allocated_size")->number;
      for (k = 0; k < blocks->items->len; k++)
        {
          Value *block = at (blocks, k);

          g_assert_cmpint (get (block, "address")->number, ==, next);
          next += get (block, "size")->number;
          sum += get (block, "size")->number;
          if (strcmp (get (block, "state")->text, "active_allocated") == 0)
            held += get (block, "requested_size")->number;
        }
      g_assert_cmpint (get (segment, "requested_size")->number, ==, held);
      g_assert_cmpint (get (segment, "segment_pool_id")->kind, ==, 't');
      g_assert_true (get (segment, "is_expandable")->number);
    }
  g_assert_cmpint (sum, ==, total);
  g_assert_cmpint (total, ==, gtorch_allocator_get_reserved (gpu_allocator ()));
  g_assert_cmpint (allocated, ==, gtorch_allocator_get_allocated (gpu_allocator ()));
  g_assert_cmpint (get (find_block (all, 5120), "requested_size")->number, ==, 5000);
  g_assert_cmpint (get (find_block (all, 5120), "frames")->items->len, ==, 0);
  value_free (all);
}

static const gchar *
action (Value *trace, guint i)
{
  return get (at (trace, i), "action")->text;
}

static void
a_trace_has_what_happened (void)
{
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) sum = NULL;
  const gchar *file = g_getenv ("GTORCH_TEST_SNAPSHOT");
  g_autoptr (GBytes) pickle = NULL;
  GError *error = NULL;
  gint64 too_much = 300 * MIB;
  Value *all, *trace, *frames;
  guint n;

  gtorch_device_synchronize (gpu (0), NULL, NULL);
  gtorch_allocator_trim (gpu_allocator ());
  x = bytes (600);
  gtorch_allocator_record_history (gpu_allocator (), GTORCH_HISTORY_ALL, 100, &error);
  g_assert_no_error (error);
  gtorch_impl_unref (bytes (40 * MIB));
  gtorch_allocator_trim (gpu_allocator ());
  sum = gtorch_op_add (x, x, 1, &error);
  g_assert_no_error (error);
  g_assert_null (gtorch_impl_new (gpu (0), GTORCH_DTYPE_UINT8, &too_much, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
  g_clear_error (&error);

  all = snapshot ();
  trace = at (get (all, "device_traces"), 0);
  n = 0;
  while (strcmp (action (trace, n), "segment_map") == 0) /* perhaps several pages */
    n++;
  g_assert_cmpuint (n, >=, 1);
  g_assert_cmpstr (action (trace, n), ==, "alloc");
  g_assert_cmpint (get (at (trace, n), "size")->number, ==, 40 * MIB);
  g_assert_cmpstr (action (trace, n + 1), ==, "free_requested");
  g_assert_cmpstr (action (trace, n + 2), ==, "free_completed");
  g_assert_cmpint (get (at (trace, n), "addr")->number, ==,
                   get (at (trace, n + 2), "addr")->number);
  g_assert_cmpstr (action (trace, n + 3), ==, "segment_unmap");
  n = trace->items->len;
  g_assert_cmpstr (action (trace, n - 3), ==, "alloc");
  frames = get (at (trace, n - 3), "frames");
  g_assert_cmpstr (get (at (frames, 0), "name")->text, ==, "add");
  g_assert_cmpuint (frames->items->len, >, 2); /* and the functions */
  g_assert_cmpstr (action (trace, n - 2), ==, "oom");
  g_assert_cmpint (get (at (trace, n - 2), "device_free")->number, >, 0);
  g_assert_cmpstr (action (trace, n - 1), ==, "snapshot");
  frames = get (find_block (all, 1024), "frames");
  g_assert_true (frames->items->len == 0 || frames->items->len > 2);
  value_free (all);
  if (file != NULL)
    {
      pickle = gtorch_allocator_snapshot (gpu_allocator (), NULL);
      g_file_set_contents (file, g_bytes_get_data (pickle, NULL), g_bytes_get_size (pickle), NULL);
    }

  for (n = 0; n < 200; n++) /* the oldest entries are overwritten */
    gtorch_impl_unref (bytes (100));
  all = snapshot ();
  g_assert_cmpuint (at (get (all, "device_traces"), 0)->items->len, ==, 100);
  value_free (all);
  gtorch_allocator_record_history (gpu_allocator (), GTORCH_HISTORY_NEVER, 0, &error);
  g_assert_no_error (error);
  gtorch_impl_unref (bytes (100));
  all = snapshot ();
  g_assert_cmpuint (at (get (all, "device_traces"), 0)->items->len, ==, 0);
  value_free (all);
}

static void
snapshots_contain_the_settings (void)
{
  Value *all, *settings;

  gtorch_allocator_configure (gpu_allocator (), "max_split_size_mb:64", NULL);
  all = snapshot ();
  settings = get (all, "allocator_settings");
  g_assert_cmpint (get (settings, "max_split_size")->number, ==, 64 * MIB);
  g_assert_cmpstr (get (settings, "PYTORCH_CUDA_ALLOC_CONF")->text, ==,
                   "backend:native,max_split_size_mb:64");
  value_free (all);
  gtorch_allocator_set_max_split_size (gpu_allocator (), G_MAXUINT64, NULL);
}

static gpointer
churn (gpointer data)
{
  guint i;

  for (i = 0; i < 500; i++)
    gtorch_impl_unref (bytes (i * 40));
  return NULL;
}

static void
history_and_snapshots_are_thread_safe (void)
{
  GThread *threads[2];
  guint i;

  gtorch_allocator_record_history (gpu_allocator (), GTORCH_HISTORY_ALL, 64, NULL);
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("churn", churn, NULL);
  for (i = 0; i < 20; i++)
    value_free (snapshot ());
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
  gtorch_allocator_record_history (gpu_allocator (), GTORCH_HISTORY_NEVER, 0, NULL);
}

/* Saves through a link: its target is replaced, and no temporary file is left. */
static void
a_snapshot_is_saved_whole (void)
{
  g_autofree gchar *folder = g_dir_make_tmp ("gtorch-snapshot-XXXXXX", NULL);
  g_autofree gchar *path = g_build_filename (folder, "snapshot", NULL);
  g_autofree gchar *link = g_build_filename (folder, "link", NULL);
  g_autoptr (GFile) file = g_file_new_for_path (link);
  g_autoptr (GCancellable) cancelled = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  g_autofree gchar *text = NULL;
  gsize n;
  GBytes *bytes;

  g_cancellable_cancel (cancelled);
  g_assert_true (g_file_set_contents (path, "former", -1, NULL));
  g_assert_cmpint (symlink ("snapshot", link), ==, 0);
  g_assert_false (gtorch_allocator_save_snapshot (gpu_allocator (), file, cancelled, &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_clear_error (&error);
  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  g_assert_cmpstr (text, ==, "former");
  g_clear_pointer (&text, g_free);
  g_assert_true (gtorch_allocator_save_snapshot (gpu_allocator (), file, NULL, &error));
  g_assert_no_error (error);
  g_assert_true (g_file_test (link, G_FILE_TEST_IS_SYMLINK));
  g_assert_true (g_file_get_contents (path, &text, &n, NULL));
  bytes = g_bytes_new (text, n);
  value_free (unpickle (bytes));
  g_bytes_unref (bytes);
  g_assert_cmpint (g_unlink (link), ==, 0);
  g_assert_cmpint (g_unlink (path), ==, 0);
  g_assert_cmpint (g_rmdir (folder), ==, 0);
}

static void
the_cpu_has_no_history (void)
{
  GTorchAllocator *cpu = gtorch_device_get_allocator (gtorch_device_cpu ());
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_allocator_snapshot (cpu, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_clear_error (&error);
  g_assert_false (gtorch_allocator_record_history (cpu, GTORCH_HISTORY_ALL, 10, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_clear_error (&error);
  g_assert_false (
      gtorch_allocator_record_history (gpu_allocator (), GTORCH_HISTORY_ALL, G_MAXSIZE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
}

static G_GNUC_NO_INLINE void
make_many (GPtrArray *live, guint n, gint64 n_bytes)
{
  while (n-- > 0)
    {
      g_autoptr (GError) error = NULL;
      GTorchImpl *x = gtorch_op_zeros (&n_bytes, 1, GTORCH_DTYPE_UINT8, gpu (0), &error);

      g_assert_no_error (error);
      g_ptr_array_add (live, x);
    }
}

static void
out_of_memory_names_the_call_sites_of_the_largest (void)
{
  g_autoptr (GPtrArray) live = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  gint64 n_bytes = 250 * MIB;
  g_autoptr (GError) error = NULL;
  const gchar *at;

  gtorch_allocator_trim (gpu_allocator ());
  g_assert_null (gtorch_impl_new (gpu (0), GTORCH_DTYPE_UINT8, (gint64[]){ 300 * MIB }, 1, &error));
  g_assert_nonnull (
      strstr (error->message, "; if record_history of the allocator was called, this also"));
  g_clear_error (&error);

  gtorch_allocator_record_history (gpu_allocator (), GTORCH_HISTORY_STATE, 0, NULL);
  make_many (live, 3, 4 * MIB);
  make_many (live, 2, 40 * MIB);
  make_many (live, 1, MIB); /* each of these lines is another call site */
  make_many (live, 1, 2 * MIB);
  make_many (live, 5, 3 * MIB);
  make_many (live, 7, 512);
  make_many (live, 1, 64 * MIB);
  g_ptr_array_set_size (live, live->len - 1); /* freed memory is not named */
  g_assert_null (gtorch_impl_new (gpu (0), GTORCH_DTYPE_UINT8, &n_bytes, 1, &error));
  g_test_message ("%s", error->message);
  at = strstr (error->message, "; 2 × zeros, together 80.0");
  g_assert_nonnull (at);
  g_assert_nonnull (strstr (at, "MiB, in "));
  at = strstr (at + 1, "; 5 × zeros, together 15.0");
  g_assert_nonnull (at);
  at = strstr (at + 1, "; 3 × zeros, together 12.0");
  g_assert_nonnull (at);
  at = strstr (at + 1, "; 1 × zeros, together 2.0");
  g_assert_nonnull (at);
  at = strstr (at + 1, "; 1 × zeros, together 1.0");
  g_assert_nonnull (at);
  at = strstr (at + 1, "; to drop what was made in one of these places alone is not enough");
  g_assert_nonnull (at);
  g_assert_null (strstr (at + 1, "; "));
  g_assert_null (strstr (error->message, "record_history"));
  gtorch_allocator_record_history (gpu_allocator (), GTORCH_HISTORY_NEVER, 0, NULL);
}

/* --- places in the words of a language --- */

static gchar *
tell_place (gpointer number, G_GNUC_UNUSED GError **error)
{
  return g_strdup_printf ("app.py:%d, in leak: x = <b>\nmain.py:3, in <module>",
                          GPOINTER_TO_INT (number));
}

/* Of random tensors at six places, some are freed. Whatever place the message names as enough must be, and the
 * others must not if it says so. */
static void
what_is_said_to_be_enough_is_enough (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (11);
  GPtrArray *live[6];
  guint round, n_enough = 0, n_not = 0, i, k;

  for (i = 0; i < G_N_ELEMENTS (live); i++)
    live[i] = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);

  gtorch_allocator_record_history (gpu_allocator (), GTORCH_HISTORY_STATE, 0, NULL);
  for (round = 0; round < 250; round++)
    {
      g_autoptr (GTorchImpl) more = NULL;
      g_autoptr (GError) error = NULL;
      gint64 n_bytes = round % 5 == 0 ? 600 * 1024 : g_rand_int_range (rand, 20, 200) * MIB;
      const gchar *enough, *last = NULL;

      for (i = 0; i < G_N_ELEMENTS (live); i++)
        g_ptr_array_set_size (live[i], 0);
      for (k = 0; k < 40; k++)
        {
          const gint64 size = g_rand_boolean (rand) ? g_rand_int_range (rand, 1, 16) * MIB
                                                    : g_rand_int_range (rand, 1, 2 * MIB);
          GTorchImpl *one;

          i = g_rand_int_range (rand, 0, G_N_ELEMENTS (live));
          gtorch_set_place_func (TRUE, tell_place, GINT_TO_POINTER (i), NULL);
          one = gtorch_impl_new (gpu (0), GTORCH_DTYPE_UINT8, &size, 1, NULL);
          if (one != NULL)
            g_ptr_array_add (live[i], one);
        }
      for (i = 0; i < G_N_ELEMENTS (live); i++)
        for (k = 0; k < live[i]->len;)
          if (g_rand_int_range (rand, 0, 4) == 0)
            g_ptr_array_remove_index_fast (live[i], k);
          else
            k++;
      more = gtorch_impl_new (gpu (0), GTORCH_DTYPE_UINT8, &n_bytes, 1, &error);
      if (more != NULL)
        continue;
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
      g_assert_nonnull (strstr (error->message, " × memory, together "));
      enough = strstr (error->message, "; it is enough to drop what was made in app.py:");
      if (enough != NULL)
        {
          g_assert_null (strstr (enough, "main.py")); /* only the innermost place is named */
          i = g_ascii_strtoull (strstr (enough, ":") + 1, NULL, 10);
          g_ptr_array_set_size (live[i], 0);
          more = gtorch_impl_new (gpu (0), GTORCH_DTYPE_UINT8, &n_bytes, 1, NULL);
          g_assert_nonnull (more);
          n_enough++;
          continue;
        }
      g_assert_nonnull (strstr (error->message, "one of these places alone is not enough"));
      while ((last = strstr (last != NULL ? last + 1 : error->message, ", in app.py:")) != NULL)
        {
          i = g_ascii_strtoull (last + strlen (", in app.py:"), NULL, 10);
          if (last == strstr (error->message, ", in app.py:"))
            g_ptr_array_set_size (live[i], 0);
        }
      more = gtorch_impl_new (gpu (0), GTORCH_DTYPE_UINT8, &n_bytes, 1, NULL);
      g_assert_null (more);
      n_not++;
    }
  for (i = 0; i < G_N_ELEMENTS (live); i++)
    g_ptr_array_unref (live[i]);
  g_test_message ("%u were enough, %u were not", n_enough, n_not);
  g_assert_cmpuint (n_enough, >, 5);
  g_assert_cmpuint (n_not, >, 5);
  gtorch_set_place_func (TRUE, NULL, NULL, NULL);
  gtorch_allocator_record_history (gpu_allocator (), GTORCH_HISTORY_NEVER, 0, NULL);
}

static void
frames_begin_with_the_language (void)
{
  g_autoptr (GTorchImpl) x = NULL;
  Value *all, *frames;

  gtorch_allocator_record_history (gpu_allocator (), GTORCH_HISTORY_STATE, 0, NULL);
  gtorch_set_place_func (FALSE, tell_place, GINT_TO_POINTER (7), NULL);
  x = bytes (12800);
  gtorch_set_place_func (TRUE, NULL, NULL, NULL);
  all = snapshot ();
  frames = get (find_block (all, 12800), "frames");
  g_assert_cmpuint (frames->items->len, >, 3);
  g_assert_cmpstr (get (at (frames, 0), "filename")->text, ==, "app.py");
  g_assert_cmpint (get (at (frames, 0), "line")->number, ==, 7);
  g_assert_cmpstr (get (at (frames, 0), "name")->text, ==, "leak");
  g_assert_cmpstr (get (at (frames, 1), "filename")->text, ==, "main.py");
  g_assert_cmpstr (get (at (frames, 1), "name")->text, ==, "<module>");
  value_free (all);
  gtorch_allocator_record_history (gpu_allocator (), GTORCH_HISTORY_NEVER, 0, NULL);
}

#define TEST(name) g_test_add_func ("/GTorchAllocatorHistory/" #name, name)

gint
main (gint argc, gchar **argv)
{
  gint result;

  g_test_init (&argc, &argv, NULL);
  TEST (a_snapshot_has_every_byte);
  TEST (a_trace_has_what_happened);
  TEST (snapshots_contain_the_settings);
  TEST (history_and_snapshots_are_thread_safe);
  TEST (a_snapshot_is_saved_whole);
  TEST (the_cpu_has_no_history);
  TEST (out_of_memory_names_the_call_sites_of_the_largest);
  TEST (what_is_said_to_be_enough_is_enough);
  TEST (frames_begin_with_the_language);
  result = g_test_run ();
  gtorch_device_empty_cache (gpu (0));
  assert_no_misuse ();
  return result;
}
