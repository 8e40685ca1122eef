/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The allocator of the CPU as an object. */

#include "config.h"

#include <gtorch/gtorch.h>
#include <string.h>

#include <gtorch/memory/gtorch-allocator-private.h>

#define MIB ((gint64) 1 << 20)

static GTorchAllocator *
allocator (void)
{
  return gtorch_device_get_allocator (gtorch_device_cpu ());
}

static GTorchTensor *
bytes (gint64 n)
{
  GError *error = NULL;
  GTorchTensor *x = gtorch_empty (&n, 1, GTORCH_DTYPE_UINT8, NULL, &error);

  g_assert_no_error (error);
  return x;
}

static gint64
stat (const gchar *key)
{
  GError *error = NULL;
  guint64 value = gtorch_allocator_get_stat (allocator (), key, &error);

  g_assert_no_error (error);
  return value;
}

static void
the_cpu_has_an_allocator (void)
{
  g_autoptr (GTorchAllocator) same = g_object_new (GTORCH_TYPE_ALLOCATOR, NULL);

  g_assert_true (same == allocator ());
  g_assert_true (gtorch_allocator_get_device (same) == gtorch_device_cpu ());
}

static void
tensors_are_counted (void)
{
  gint64 n = stat ("allocation.small_pool.current"), large = stat ("allocation.large_pool.current");
  gint64 requested = stat ("requested_bytes.all.current");
  gint64 added = stat ("allocation.all.allocated"), freed = stat ("allocation.all.freed");
  GTorchTensor *x = bytes (1000), *y = bytes (3 * MIB);
  gint64 peak;

  g_assert_cmpint (stat ("allocation.small_pool.current"), ==, n + 1);
  g_assert_cmpint (stat ("allocation.large_pool.current"), ==, large + 1);
  g_assert_cmpint (stat ("requested_bytes.all.current"), ==, requested + 1000 + 3 * MIB);
  g_assert_cmpint (stat ("allocated_bytes.all.current"), ==,
                   gtorch_device_get_memory_allocated (gtorch_device_cpu ()));
  g_assert_cmpint (stat ("reserved_bytes.all.current"), >=, 3 * MIB + 1000);
  g_assert_cmpint (stat ("segment.large_pool.current"), >=, 1);
  g_object_unref (y);
  g_object_unref (x);
  g_assert_cmpint (stat ("allocation.all.allocated"), ==, added + 2);
  g_assert_cmpint (stat ("allocation.all.freed"), ==, freed + 2);
  g_assert_cmpint (stat ("requested_bytes.all.current"), ==, requested);
  peak = stat ("allocated_bytes.all.peak");
  g_assert_cmpint (peak, >=, 3 * MIB);
  gtorch_allocator_reset_peak (allocator ());
  g_assert_cmpint (stat ("allocated_bytes.all.peak"), <=, peak - 3 * MIB + 65536);
  gtorch_allocator_reset_accumulated (allocator ());
  g_assert_cmpint (stat ("allocation.all.allocated"), ==, 0);
  g_assert_cmpint (stat ("allocation.all.freed"), ==, 0);
}

/* All counters have a peak; it is exact up to the bytes that a thread has not added to the totals yet. */
static void
peaks_keep_the_maximum (void)
{
  static const gchar *const bytes_of[] = { "allocated_bytes", "active_bytes", "requested_bytes" };
  static const gchar *const counts_of[] = { "allocation", "active" };
  GTorchTensor *small[400], *large;
  gint64 before[G_N_ELEMENTS (bytes_of)], n[G_N_ELEMENTS (counts_of)];
  gchar key[64];
  guint i, k;

  gtorch_allocator_reset_peak (allocator ());
  for (k = 0; k < G_N_ELEMENTS (bytes_of); k++)
    {
      g_snprintf (key, sizeof key, "%s.small_pool.current", bytes_of[k]);
      before[k] = stat (key);
    }
  for (k = 0; k < G_N_ELEMENTS (counts_of); k++)
    {
      g_snprintf (key, sizeof key, "%s.small_pool.current", counts_of[k]);
      n[k] = stat (key);
    }
  for (i = 0; i < G_N_ELEMENTS (small); i++)
    small[i] = bytes (4000);
  large = bytes (3 * MIB);
  g_object_unref (large);
  for (i = 0; i < G_N_ELEMENTS (small); i++)
    g_object_unref (small[i]);
  for (k = 0; k < G_N_ELEMENTS (bytes_of); k++)
    {
      g_snprintf (key, sizeof key, "%s.small_pool.peak", bytes_of[k]);
      g_assert_cmpint (stat (key), >=, before[k] + 400 * 4000 - 65536);
      g_snprintf (key, sizeof key, "%s.large_pool.peak", bytes_of[k]);
      g_assert_cmpint (stat (key), >=, 3 * MIB);
      g_snprintf (key, sizeof key, "%s.all.peak", bytes_of[k]);
      g_assert_cmpint (stat (key), >=, 3 * MIB + 400 * 4000 - 65536);
    }
  for (k = 0; k < G_N_ELEMENTS (counts_of); k++)
    {
      g_snprintf (key, sizeof key, "%s.small_pool.peak", counts_of[k]);
      g_assert_cmpint (stat (key), >=, n[k] + 400 - 65536 / 4000 - 1);
      g_snprintf (key, sizeof key, "%s.large_pool.peak", counts_of[k]);
      g_assert_cmpint (stat (key), >=, 1);
    }
  gtorch_allocator_reset_peak (allocator ());
  g_assert_cmpint (stat ("allocation.small_pool.peak"), <=, n[0] + 65536 / 4000 + 1);
}

/* Bytes that a thread has not added to the totals yet count as well: here, more was freed than allocated. */
static void
reset_sets_peaks_to_the_current_values (void)
{
  g_auto (GStrv) keys = gtorch_allocator_dup_stat_keys (allocator ());
  GTorchTensor *some[10];
  guint i, n = 0;

  for (i = 0; i < G_N_ELEMENTS (some); i++)
    some[i] = bytes (4000);
  g_object_unref (bytes (MIB)); /* more than a thread caches */
  for (i = 0; i < G_N_ELEMENTS (some); i++)
    g_object_unref (some[i]);
  gtorch_allocator_reset_peak (allocator ());
  for (i = 0; keys[i] != NULL; i++)
    if (g_str_has_suffix (keys[i], ".peak"))
      {
        g_autofree gchar *current =
            g_strdup_printf ("%.*scurrent", (gint) strlen (keys[i]) - 4, keys[i]);

        g_test_message ("%s", keys[i]);
        g_assert_cmpint (stat (keys[i]), ==, stat (current));
        n++;
      }
  g_assert_cmpuint (n, >, 20);
}

static void
cached_memory_can_be_trimmed (void)
{
  guint64 reserved;

  g_object_unref (bytes (5 * MIB));
  gtorch_allocator_trim (allocator ());
  reserved = gtorch_allocator_get_reserved (allocator ());
  g_object_unref (bytes (5 * MIB));
  g_assert_cmpuint (gtorch_allocator_get_peak_reserved (allocator ()), >=, reserved + 5 * MIB);
  gtorch_allocator_trim (allocator ());
  g_assert_cmpuint (gtorch_allocator_get_reserved (allocator ()), ==, reserved);
}

static gpointer
make_some (gpointer data)
{
  GTorchTensor *kept = bytes (100);
  guint i;

  for (i = 0; i < 1000; i++)
    g_object_unref (bytes (i));
  return kept;
}

static void
ended_threads_stay_counted (void)
{
  gint64 n = stat ("allocation.all.current"), added = stat ("allocation.all.allocated");
  GThread *thread = g_thread_new ("some", make_some, NULL);
  GTorchTensor *kept = g_thread_join (thread);

  g_assert_cmpint (stat ("allocation.all.current"), ==, n + 1);
  g_assert_cmpint (stat ("allocation.all.allocated"), ==, added + 1001);
  g_object_unref (kept);
  g_assert_cmpint (stat ("allocation.all.current"), ==, n);
}

static void
the_table_names_the_device (void)
{
  g_autofree gchar *text = gtorch_allocator_to_summary (allocator (), TRUE);
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  guint i;

  g_assert_nonnull (strstr (text, "GTorch memory summary, device cpu "));
  for (i = 0; lines[i + 1] != NULL; i++)
    g_assert_cmpuint (strlen (lines[i]), ==, 77);
}

/* The text is that of a GPU, with the numbers of the CPU and without those that the CPU does not have. */
static void
out_of_memory_messages_show_the_usage (void)
{
  const gint64 n = (gint64) 1 << 50;
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = gtorch_empty (&n, 1, GTORCH_DTYPE_UINT8, NULL, &error);
  g_autoptr (GTorchTensor) held = bytes (3 * MIB);

  g_assert_null (x);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
  g_test_message ("%s", error->message);
  g_assert_true (
      g_pattern_match_simple ("empty: 1.0*PiB cannot be allocated on cpu, out of memory: of its * "
                              "are free; "
                              "tensors of this process hold *, and "
                              "* are reserved but unallocated, the largest piece of them being *",
                              error->message));
  g_assert_null (strstr (error->message, "GTORCH_ALLOC_CONF"));
  g_assert_null (strstr (error->message, "streams"));
  g_assert_null (strstr (error->message, "memory-fraction"));
  g_clear_error (&error);
  x = gtorch_tensor_repeat (held, (const gint64[]){ (gint64) 1 << 30 }, 1, &error);
  g_assert_null (x);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
  g_assert_true (g_str_has_prefix (error->message, "repeat: 3.0"));
  g_assert_nonnull (strstr (error->message, "tensors of this process hold"));
}

static gboolean
count_signal (gpointer object, guint64 n_bytes, gpointer n)
{
  g_assert_cmpuint (n_bytes, >=, 64 * MIB);
  (*(guint *) n)++;
  return FALSE; /* nothing was freed, which is asked by out-of-memory */
}

/* Frees the tensor, once. */
static gboolean
drop (GTorchAllocator *self, guint64 n_bytes, gpointer tensor)
{
  GTorchTensor **held = tensor;
  const gboolean has_one = *held != NULL;

  g_clear_object (held);
  return has_one;
}

/* The limit is what is reserved and 96 MiB more, so that a second tensor of 64 MiB is too much. */
static void
the_program_is_asked_before_memory_runs_out (void)
{
  const gint64 n = 64 * MIB;
  const gdouble total = gtorch_device_get_total_memory (gtorch_device_cpu ());
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) held = NULL;
  g_autoptr (GTorchTensor) second = NULL;
  g_autoptr (GTorchTensor) small = NULL;
  guint n_pressure = 0, n_device = 0, n_out = 0;

  gtorch_device_empty_cache (gtorch_device_cpu ());
  g_assert_true (
      gtorch_allocator_set_memory_fraction (allocator (),
                                            (stat ("reserved_bytes.all.current") + 96 * MIB)
                                                / total,
                                            &error));
  g_assert_no_error (error);
  held = bytes (n);
  g_signal_connect (gtorch_device_cpu (), "memory-pressure", G_CALLBACK (count_signal), &n_device);
  g_signal_connect (allocator (), "memory-pressure", G_CALLBACK (count_signal), &n_pressure);
  g_signal_connect (allocator (), "out-of-memory", G_CALLBACK (count_signal), &n_out);

  second = gtorch_empty (&n, 1, GTORCH_DTYPE_UINT8, NULL, &error);
  g_assert_null (second);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
  g_assert_nonnull (strstr (error->message, "; this process may reserve "));
  g_assert_nonnull (strstr (error->message, "(memory-fraction)"));
  g_clear_error (&error);
  g_assert_cmpuint (n_device, ==, 1);
  g_assert_cmpuint (n_pressure, ==, 1);
  g_assert_cmpuint (n_out, ==, 1);

  g_signal_connect (allocator (), "out-of-memory", G_CALLBACK (drop), &held);
  second = gtorch_empty (&n, 1, GTORCH_DTYPE_UINT8, NULL, &error);
  g_assert_no_error (error);
  g_assert_null (held);
  g_clear_object (&second);

  g_assert_true (gtorch_allocator_set_memory_fraction (allocator (), 1e-9, &error));
  gtorch_device_empty_cache (gtorch_device_cpu ());
  g_signal_handlers_disconnect_matched (gtorch_device_cpu (), G_SIGNAL_MATCH_FUNC, 0, 0, NULL,
                                        count_signal, NULL);
  g_signal_handlers_disconnect_matched (allocator (), G_SIGNAL_MATCH_FUNC, 0, 0, NULL, count_signal,
                                        NULL);
  g_signal_handlers_disconnect_matched (allocator (), G_SIGNAL_MATCH_FUNC, 0, 0, NULL, drop, NULL);
  small = gtorch_empty ((const gint64[]){ 10 }, 1, GTORCH_DTYPE_UINT8, NULL, &error);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
  g_clear_error (&error);
  g_assert_true (gtorch_allocator_set_memory_fraction (allocator (), 1, &error));
  small = bytes (10);
}

/* The settings of the environment are those of GPUs. */
static void
the_environment_does_not_limit_the_cpu (void)
{
  g_setenv ("GTORCH_ALLOC_CONF", "per_process_memory_fraction:0.25", TRUE);
  gtorch_allocator_config_read (allocator ());
  g_unsetenv ("GTORCH_ALLOC_CONF");
  g_assert_cmpfloat (gtorch_allocator_get_memory_fraction (allocator ()), ==, 1);
}

static void
an_unknown_key_is_an_error (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_cmpuint (gtorch_allocator_get_stat (allocator (), "", &error), ==, 0);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
  g_assert_cmpstr (error->message, ==,
                   "allocator: “” is not a statistic; “allocated_bytes.all.peak” and “num_ooms” "
                   "are, for example");
}

/* --- configuration --- */

static void
omitted_settings_are_unchanged (void)
{
  GTorchAllocatorConfig config;
  g_autofree gchar *text = NULL;
  GError *error = NULL;

  gtorch_allocator_config_init (&config);
  g_assert_true (gtorch_allocator_config_parse (&config, "max_split_size_mb:128", &error));
  g_assert_no_error (error);
  g_assert_true (gtorch_allocator_config_parse (&config,
                                                " garbage_collection_threshold : 0.75 ,"
                                                "expandable_segments:False,",
                                                &error));
  g_assert_no_error (error);
  g_assert_true (
      gtorch_allocator_config_parse (&config, "roundup_power2_divisions:[2:1, 4:8, >:4]", &error));
  g_assert_no_error (error);
  g_assert_cmpint (config.max_split_size, ==, 128 * MIB);
  g_assert_cmpfloat (config.gc_threshold, ==, 0.75);
  g_assert_cmpint (config.backend, ==, GTORCH_BACKEND_SEGMENTS);
  text = gtorch_allocator_config_print (&config);
  g_assert_cmpstr (text, ==,
                   "backend:segments,max_split_size_mb:128,garbage_collection_threshold:0.75,"
                   "roundup_power2_divisions:[1:1,2:1,4:8,8:4,16:4,32:4,64:4,128:4,256:4,512:4,"
                   "1024:4,2048:4,4096:4,8192:4,16384:4,32768:4]");
}

static void
invalid_settings_are_named (void)
{
  static const struct
  {
    const gchar *text, *message;
  } cases[] = {
    { "max_split:1", "allocator: “max_split” is not a key; *" },
    { "max_split_size_mb", "allocator: “max_split_size_mb” lacks a colon and a value" },
    { "max_split_size_mb:20", "*“20” is not a value of “max_split_size_mb”: * above 20" },
    { "max_split_size_mb:1e3", "*“1e3” is not a value*" },
    { "max_split_size_mb:99999999999999999999", "*is not a value*" },
    { "garbage_collection_threshold:1.5", "*“1.5” is not a value*" },
    { "garbage_collection_threshold:nan", "*“nan” is not a value*" },
    { "expandable_segments:maybe", "*“maybe” is not a value*True or False" },
    { "backend:mine", "*“mine” is not a value of “backend”*" },
    { "roundup_power2_divisions:3", "*“3” is not a value*" },
    { "roundup_power2_divisions:[3:2]", "*“[3:2]” is not a value*" },
    { "roundup_power2_divisions:[]", "*is not a value*" },
    { "roundup_power2_divisions:[256:2", "*is not a value*" },
    { "pinned_num_register_threads:200", "*“200” is not a value*" },
    { "max_split_size_mb:64,wrong:1", "*“wrong” is not a key*" },
  };
  GTorchAllocatorConfig config, before;
  guint i;

  gtorch_allocator_config_init (&config);
  before = config;
  for (i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GError) error = NULL;

      g_assert_false (gtorch_allocator_config_parse (&config, cases[i].text, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      if (!g_pattern_match_simple (cases[i].message, error->message))
        g_error ("%s", error->message);
      g_assert_cmpmem (&config, sizeof config, &before, sizeof before);
    }
}

/* Combines valid and invalid pieces: nothing crashes, a failure changes nothing, a success can be written
 * and read again. */
static void
any_text_is_parsed_or_refused (void)
{
  static const gchar *const pieces[] = {
    "max_split_size_mb",
    "backend",
    "roundup_power2_divisions",
    "garbage_collection_threshold",
    "expandable_segments",
    "pinned_num_register_threads",
    "per_process_memory_fraction",
    ":",
    ":",
    ":",
    ":",
    ",",
    ",",
    "[",
    "]",
    ">",
    "0.5",
    "128",
    "21",
    "4",
    "1:2",
    "256:4",
    "True",
    "false",
    "native",
    "segments",
    " ",
    "-1",
    "\xff",
    "[1:2,4:8,>:1]",
    ":[512:2,1024:4]",
    "9223372036854775807",
  };
  g_autoptr (GRand) rand = g_rand_new_with_seed (7);
  guint i, k, n_good = 0;

  for (i = 0; i < 200000; i++)
    {
      g_autoptr (GString) text = g_string_new (NULL);
      g_autoptr (GError) error = NULL;
      GTorchAllocatorConfig config, before;
      guint n = g_rand_int_range (rand, 0, 8);

      for (k = 0; k < n; k++)
        g_string_append (text, pieces[g_rand_int_range (rand, 0, G_N_ELEMENTS (pieces))]);
      gtorch_allocator_config_init (&config);
      before = config;
      if (gtorch_allocator_config_parse (&config, text->str, &error))
        {
          g_autofree gchar *written = gtorch_allocator_config_print (&config);

          g_assert_no_error (error);
          g_assert_true (gtorch_allocator_config_parse (&before, written, &error));
          n_good += memchr (text->str, ':', text->len) != NULL;
        }
      else
        g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      g_assert_cmpmem (&config, sizeof config, &before, sizeof before);
    }
  g_assert_cmpuint (n_good, >, 20);
}

static void
requests_are_rounded_by_divisions (void)
{
  GTorchAllocatorConfig config;

  gtorch_allocator_config_init (&config);
  g_assert_cmpuint (gtorch_allocator_config_round (&config, 0), ==, 512);
  g_assert_cmpuint (gtorch_allocator_config_round (&config, 1200), ==, 1536);
  gtorch_allocator_config_parse (&config, "roundup_power2_divisions:4", NULL);
  /* small sizes are rounded to 512 */
  g_assert_cmpuint (gtorch_allocator_config_round (&config, 1200), ==, 1536);
  g_assert_cmpuint (gtorch_allocator_config_round (&config, 1200 << 10), ==, 1280 << 10);
  g_assert_cmpuint (gtorch_allocator_config_round (&config, 1280 << 10), ==, 1280 << 10);
  g_assert_cmpuint (gtorch_allocator_config_round (&config, 2 << 20), ==, 2 << 20);
  gtorch_allocator_config_parse (&config, "roundup_power2_divisions:[1:1,2:2,>:1]", NULL);
  g_assert_cmpuint (gtorch_allocator_config_round (&config, 1200 << 10), ==, 1200 << 10);
  g_assert_cmpuint (gtorch_allocator_config_round (&config, 2100 << 10), ==, 3 << 20);
}

static void
settings_are_properties_too (void)
{
  g_autoptr (GError) error = NULL;
  guint64 size;

  g_assert_false (gtorch_allocator_set_memory_fraction (allocator (), 0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_false (gtorch_allocator_set_max_split_size (allocator (), 20 << 20, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_false (gtorch_allocator_set_gc_threshold (allocator (), -1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_true (gtorch_allocator_configure (allocator (), "max_split_size_mb:64", &error));
  g_assert_no_error (error);
  g_object_get (allocator (), "max-split-size", &size, NULL);
  g_assert_cmpuint (size, ==, 64 * MIB);
  g_object_set (allocator (), "max-split-size", G_MAXUINT64, "gc-threshold", 0.5, NULL);
  g_assert_cmpuint (gtorch_allocator_get_max_split_size (allocator ()), ==, G_MAXUINT64);
  g_assert_cmpfloat (gtorch_allocator_get_gc_threshold (allocator ()), ==, 0.5);
  g_object_set (allocator (), "gc-threshold", 0.0, NULL);
  g_test_expect_message ("GTorch", G_LOG_LEVEL_WARNING,
                         "GTorchAllocator:memory-fraction stays as it was: allocator: the memory "
                         "fraction 0 "
                         "is not above 0 and up to 1");
  g_object_set (allocator (), "memory-fraction", 0.0, NULL);
  g_test_assert_expected_messages ();
  g_assert_true (gtorch_allocator_set_caching (allocator (),
                                               gtorch_allocator_get_caching (allocator ()),
                                               &error));
  g_assert_no_error (error);
  g_assert_false (gtorch_allocator_set_caching (allocator (),
                                                !gtorch_allocator_get_caching (allocator ()),
                                                &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_assert_cmpstr (error->message, ==,
                   "allocator: on the cpu only the environment can turn caching on or off");
}

/* Each device reads them: what is wrong is told once, with the name of the variable. */
static void
settings_of_the_environment_are_warned_of_once (void)
{
  g_setenv ("GTORCH_ALLOC_CONF", "what:1,max_split_size_mb:64,backend:nothing", TRUE);
  g_setenv ("GTORCH_ALLOC", "nonsense", TRUE);
  g_test_expect_message ("GTorch", G_LOG_LEVEL_WARNING, "GTORCH_ALLOC_CONF: *“what”*ignored");
  g_test_expect_message ("GTorch", G_LOG_LEVEL_WARNING,
                         "GTORCH_ALLOC_CONF: *“nothing”*: it must be native, arenas, segments or "
                         "cudaMallocAsync; "
                         "this setting is ignored");
  g_test_expect_message ("GTorch", G_LOG_LEVEL_WARNING, "GTORCH_ALLOC: *“nonsense”*ignored");
  gtorch_allocator_config_read (allocator ());
  gtorch_allocator_config_read (allocator ());
  g_test_assert_expected_messages ();
  g_assert_cmpint (allocator ()->config.max_split_size, ==, 64 * MIB);
  g_setenv ("GTORCH_ALLOC_CONF", "", TRUE);
  g_setenv ("GTORCH_ALLOC", "", TRUE);
  gtorch_allocator_config_read (allocator ());
  g_unsetenv ("GTORCH_ALLOC_CONF");
  g_unsetenv ("GTORCH_ALLOC");
}

#define TEST(name) g_test_add_func ("/GTorch/Allocator/" #name, name)

gint
main (gint argc, gchar **argv)
{
  g_test_init (&argc, &argv, NULL);
  TEST (the_cpu_has_an_allocator);
  TEST (tensors_are_counted);
  TEST (peaks_keep_the_maximum);
  TEST (reset_sets_peaks_to_the_current_values);
  TEST (cached_memory_can_be_trimmed);
  TEST (ended_threads_stay_counted);
  TEST (the_table_names_the_device);
  TEST (out_of_memory_messages_show_the_usage);
  TEST (the_program_is_asked_before_memory_runs_out);
  TEST (the_environment_does_not_limit_the_cpu);
  TEST (an_unknown_key_is_an_error);
  TEST (omitted_settings_are_unchanged);
  TEST (invalid_settings_are_named);
  TEST (any_text_is_parsed_or_refused);
  TEST (requests_are_rounded_by_divisions);
  TEST (settings_are_properties_too);
  TEST (settings_of_the_environment_are_warned_of_once);
  return g_test_run ();
}
