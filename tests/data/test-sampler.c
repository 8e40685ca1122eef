/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "data-test.h"

/* The indices of a pass that are asked for some at a time: "0 1|2". */
static gchar *
pass (GTorchSampler *sampler, gint64 n)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchIndexSource) source = gtorch_sampler_iterate (sampler, 0, &error);
  GString *text = g_string_new (NULL);
  GTorchSize *indices;

  g_assert_no_error (error);
  while ((indices = gtorch_index_source_next (source, n, &error)) != NULL)
    {
      gsize length, i;
      const gint64 *values = gtorch_size_get_values (indices, &length);

      if (text->len > 0)
        g_string_append_c (text, '|');
      for (i = 0; i < length; i++)
        g_string_append_printf (text, i > 0 ? " %d" : "%d", (gint) values[i]);
      gtorch_size_unref (indices);
    }
  g_assert_no_error (error);
  return g_string_free (text, FALSE);
}

static gint64
length_of (GTorchSampler *sampler)
{
  return gtorch_sampler_get_length (sampler, NULL);
}

static void
count_indices (const gchar *text, guint *counts, guint n)
{
  g_auto (GStrv) parts = g_strsplit_set (text, " |", -1);
  guint i;

  memset (counts, 0, n * sizeof (guint));
  for (i = 0; parts[i] != NULL; i++)
    if (*parts[i] != '\0')
      {
        g_assert_cmpint (atoi (parts[i]), <, n);
        counts[atoi (parts[i])]++;
      }
}

static void
test_sequential_is_in_order (void)
{
  g_autoptr (GTorchSampler) sampler = gtorch_sequential_sampler_new (5);
  g_autoptr (GTorchSampler) none = gtorch_sequential_sampler_new (0);

  assert_text (pass (sampler, 2), "0 1|2 3|4");
  assert_text (pass (sampler, 99), "0 1 2 3 4");
  assert_text (pass (none, 2), "");
  g_assert_cmpint (length_of (sampler), ==, 5);
}

static void
test_random_has_each_index_once (void)
{
  g_autoptr (GTorchGenerator) generator = gtorch_generator_new_with_seed (1);
  g_autoptr (GTorchSampler) sampler = gtorch_random_sampler_new (20, FALSE, -1, generator);
  g_autoptr (GTorchSampler) more = gtorch_random_sampler_new (4, FALSE, 10, generator);
  g_autofree gchar *first = pass (sampler, 3);
  g_autofree gchar *second = pass (sampler, 20);
  g_autofree gchar *long_one = pass (more, 10);
  guint counts[20], i;

  count_indices (first, counts, 20);
  for (i = 0; i < 20; i++)
    g_assert_cmpint (counts[i], ==, 1);
  count_indices (second, counts, 20);
  for (i = 0; i < 20; i++)
    g_assert_cmpint (counts[i], ==, 1);
  gtorch_generator_set_seed (generator, 1);
  assert_text (pass (sampler, 3), first);
  /* Two whole orders, and a part of a third. */
  count_indices (long_one, counts, 4);
  for (i = 0; i < 4; i++)
    g_assert_true (counts[i] == 2 || counts[i] == 3);
  g_assert_cmpint (length_of (more), ==, 10);
}

static void
test_replacement_repeats_indices (void)
{
  g_autoptr (GTorchGenerator) generator = gtorch_generator_new_with_seed (1);
  g_autoptr (GTorchSampler) sampler = gtorch_random_sampler_new (10, TRUE, 70000, generator);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchIndexSource) source = gtorch_sampler_iterate (sampler, 0, &error);
  g_autoptr (GTorchSize) all = gtorch_index_source_next (source, 100000, &error);
  guint counts[10] = { 0 }, i;
  gsize n;
  const gint64 *values = gtorch_size_get_values (all, &n);

  g_assert_cmpint (n, ==, 70000);
  g_assert_null (gtorch_index_source_next (source, 1, &error));
  g_assert_no_error (error);
  for (i = 0; i < n; i++)
    counts[values[i]]++;
  /* 7000 expected each; six standard deviations of a binomial distribution are 476 */
  for (i = 0; i < 10; i++)
    g_assert_cmpint (ABS ((gint) counts[i] - 7000), <, 476);
}

static void
test_weights_are_probabilities (void)
{
  g_autoptr (GTorchGenerator) generator = gtorch_generator_new_with_seed (1);
  const gdouble weights[] = { 1, 0, 3 };
  g_autoptr (GTorchSampler) sampler =
      gtorch_weighted_random_sampler_new (weights, 3, 4000, TRUE, generator);
  g_autoptr (GTorchSampler) each =
      gtorch_weighted_random_sampler_new (weights, 3, 2, FALSE, generator);
  g_autofree gchar *text = pass (sampler, 4000);
  g_autofree gchar *two = pass (each, 2);
  guint counts[3];

  count_indices (text, counts, 3);
  g_assert_cmpint (counts[1], ==, 0);
  /* 1000 expected; six standard deviations are 164 */
  g_assert_cmpint (ABS ((gint) counts[0] - 1000), <, 164);
  count_indices (two, counts, 3);
  g_assert_true (counts[0] == 1 && counts[2] == 1);
}

static void
test_subset_has_its_indices (void)
{
  const gint64 indices[] = { 9, 5, 7 };
  g_autoptr (GTorchSampler) sampler = gtorch_subset_random_sampler_new (indices, 3, NULL);
  g_autofree gchar *text = pass (sampler, 2);
  guint counts[10];

  count_indices (text, counts, 10);
  g_assert_true (counts[9] == 1 && counts[5] == 1 && counts[7] == 1);
  g_assert_cmpint (length_of (sampler), ==, 3);
}

static void
test_batches_are_groups (void)
{
  g_autoptr (GTorchSampler) inner = gtorch_sequential_sampler_new (7);
  g_autoptr (GTorchSampler) all = gtorch_batch_sampler_new (inner, 3, FALSE);
  g_autoptr (GTorchSampler) whole = gtorch_batch_sampler_new (inner, 3, TRUE);

  assert_text (pass (all, 1), "0 1 2|3 4 5|6");
  assert_text (pass (whole, 1), "0 1 2|3 4 5");
  g_assert_cmpint (length_of (all), ==, 3);
  g_assert_cmpint (length_of (whole), ==, 2);
}

static void
test_distributed_parts_fill_the_whole (void)
{
  const gint64 lengths[] = { 0, 1, 2, 3, 7, 8, 10 };
  guint k, shuffle, drop;

  for (k = 0; k < G_N_ELEMENTS (lengths); k++)
    for (shuffle = 0; shuffle <= 1; shuffle++)
      for (drop = 0; drop <= 1; drop++)
        {
          const gint64 n = lengths[k], each = drop ? n / 3 : (n + 2) / 3;
          guint counts[10] = { 0 }, total = 0, i;
          gint64 rank;

          for (rank = 0; rank < 3; rank++)
            {
              g_autoptr (GTorchSampler) sampler =
                  gtorch_distributed_sampler_new (n, 3, rank, shuffle, 5, drop);
              g_autofree gchar *text = pass (sampler, 100);
              guint part[10];

              g_assert_cmpint (length_of (sampler), ==, each);
              count_indices (text, part, 10);
              for (i = 0; i < 10; i++)
                counts[i] += part[i];
            }
          for (i = 0; i < 10; i++)
            total += counts[i];
          g_assert_cmpint (total, ==, 3 * each);
          for (i = 0; !drop && i < n; i++)
            g_assert_cmpint (counts[i], >=, 1);
        }
}

static void
test_distributed_follows_the_epoch (void)
{
  g_autoptr (GTorchSampler) plain = gtorch_distributed_sampler_new (7, 2, 1, FALSE, 0, FALSE);
  g_autoptr (GTorchSampler) sampler = gtorch_distributed_sampler_new (50, 2, 0, TRUE, 0, FALSE);
  g_autofree gchar *first = pass (sampler, 25);
  g_autofree gchar *second = NULL;

  assert_text (pass (plain, 10), "1 3 5 0");
  assert_text (pass (sampler, 25), first);
  gtorch_distributed_sampler_set_epoch (GTORCH_DISTRIBUTED_SAMPLER (sampler), 1);
  second = pass (sampler, 25);
  g_assert_cmpstr (first, !=, second);
}

static void
test_list_is_a_source (void)
{
  g_autoptr (GTorchSize) size = gtorch_size_new ((gint64[]){ 4, 2, 9 }, 3);
  g_autoptr (GTorchIndexSource) source = gtorch_index_source_new (size);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchSize) first = gtorch_index_source_next (source, 2, &error);
  g_autoptr (GTorchSize) second = gtorch_index_source_next (source, 2, &error);

  g_assert_true (gtorch_size_equal (first, GTORCH_SIZE (4, 2)));
  g_assert_true (gtorch_size_equal (second, GTORCH_SIZE (9)));
  g_assert_null (gtorch_index_source_next (source, 2, &error));
  g_assert_no_error (error);
  g_assert_null (gtorch_index_source_next (source, 0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
}

static void
refused (GTorchSampler *sampler, const gchar *message)
{
  g_autoptr (GTorchSampler) owned = sampler;
  g_autoptr (GError) error = NULL;

  g_assert_null (gtorch_sampler_iterate (sampler, 0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, message);
}

static void
test_wrong_settings_are_refused (void)
{
  const gdouble bad[] = { 1, -2 }, zeros[] = { 0, 0 };
  g_autoptr (GTorchSampler) inner = gtorch_sequential_sampler_new (7);

  refused (gtorch_sequential_sampler_new (-1),
           "sequential_sampler: length is -1, and must be at least 0");
  refused (gtorch_random_sampler_new (3, TRUE, 0, NULL),
           "random_sampler: num_samples is 0, and must be at least 1");
  refused (gtorch_random_sampler_new (0, TRUE, 3, NULL),
           "random_sampler: length is 0, and must be at least 1");
  refused (gtorch_weighted_random_sampler_new (bad, 2, 1, TRUE, NULL),
           "weighted_random_sampler: weight 1 is -2, and must be a number from 0");
  refused (gtorch_weighted_random_sampler_new (zeros, 2, 1, TRUE, NULL),
           "weighted_random_sampler: 1 indices cannot be drawn from 2 weights with the sum 0");
  refused (gtorch_weighted_random_sampler_new ((gdouble[]){ 1, 1 }, 2, 3, FALSE, NULL),
           "weighted_random_sampler: 3 indices cannot be drawn from 2 weights with the sum 2 "
           "without replacement");
  refused (gtorch_batch_sampler_new (inner, 0, FALSE),
           "batch_sampler: batch_size is 0, and must be 1 to 2147483647");
  refused (gtorch_distributed_sampler_new (4, 2, 2, FALSE, 0, FALSE),
           "distributed_sampler: 4 samples, num_replicas 2 and rank 2: there must be at least one "
           "process, and its rank below their number");
}

static void
test_state_begins_the_pass_again (void)
{
  g_autoptr (GTorchSampler) random = gtorch_random_sampler_new (20, FALSE, -1, NULL);
  g_autoptr (GTorchSampler) batches = gtorch_batch_sampler_new (random, 4, FALSE);
  g_autoptr (GTorchSampler) sequential = gtorch_sequential_sampler_new (3);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchIndexSource) source = gtorch_sampler_iterate (batches, 0, &error);
  g_autoptr (GVariant) state = gtorch_index_source_get_state (source);
  g_autoptr (GTorchSize) first = gtorch_index_source_next (source, 1, &error);
  g_autoptr (GTorchIndexSource) again = NULL;
  g_autoptr (GTorchSize) same = NULL;
  g_autofree gchar *other = NULL;

  g_assert_true (gtorch_sampler_set_state (batches, state, &error));
  again = gtorch_sampler_iterate (batches, 0, &error);
  same = gtorch_index_source_next (again, 1, &error);
  g_assert_true (gtorch_size_equal (first, same));
  g_assert_false (gtorch_sampler_set_state (sequential, state, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
  g_clear_error (&error);
  g_assert_false (gtorch_sampler_set_state (random, g_variant_new_string ("x"), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
  g_clear_error (&error);
  g_assert_false (gtorch_sampler_set_state (random, g_variant_new_bytestring ("short"), &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/GTorch/Sampler/" #name, test_##name)
  ADD (sequential_is_in_order);
  ADD (random_has_each_index_once);
  ADD (replacement_repeats_indices);
  ADD (weights_are_probabilities);
  ADD (subset_has_its_indices);
  ADD (batches_are_groups);
  ADD (distributed_parts_fill_the_whole);
  ADD (distributed_follows_the_epoch);
  ADD (list_is_a_source);
  ADD (wrong_settings_are_refused);
  ADD (state_begins_the_pass_again);
  return g_test_run ();
}
