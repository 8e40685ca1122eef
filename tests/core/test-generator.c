/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <string.h>

#include "test-device.h"

static gfloat
draw (GTorchGenerator *generator)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x =
      gtorch_rand (GTORCH_SHAPE (1), GTORCH_DTYPE_FLOAT32, NULL, generator, &error);

  g_assert_no_error (error);
  return (gfloat) test_element (x, 0);
}

static void
seed_decides_everything (void)
{
  g_autoptr (GTorchGenerator) a = gtorch_generator_new_with_seed (5);
  g_autoptr (GTorchGenerator) b = gtorch_generator_new ();
  gfloat first = draw (a), second = draw (a);

  g_assert_cmpfloat (first, !=, second);
  gtorch_generator_set_seed (b, 5);
  g_assert_cmpuint (gtorch_generator_get_seed (b), ==, 5);
  g_assert_cmpfloat (draw (b), ==, first);
  g_assert_cmpfloat (draw (b), ==, second);
  gtorch_generator_set_seed (b, 6);
  g_assert_cmpfloat (draw (b), !=, first);
  g_assert_cmpuint (gtorch_generator_seed_from_entropy (a), !=,
                    gtorch_generator_seed_from_entropy (b));
}

static void
restored_state_continues (void)
{
  g_autoptr (GTorchGenerator) a = gtorch_generator_new_with_seed (9);
  g_autoptr (GTorchGenerator) b = gtorch_generator_new ();
  g_autoptr (GBytes) state = NULL;
  g_autoptr (GError) error = NULL;
  gfloat next;

  draw (a);
  state = gtorch_generator_get_state (a);
  next = draw (a);
  g_assert_true (gtorch_generator_set_state (b, state, &error));
  g_assert_cmpuint (gtorch_generator_get_seed (b), ==, 9);
  g_assert_cmpfloat (draw (b), ==, next);
}

static void
wrong_states_are_errors (void)
{
  g_autoptr (GTorchGenerator) a = gtorch_generator_new_with_seed (9);
  g_autoptr (GBytes) good = gtorch_generator_get_state (a);
  GBytes *bytes[3] = { g_bytes_new (NULL, 0), g_bytes_new_from_bytes (good, 0, 23),
                       g_bytes_new ("a state of 24 bytes, not", 24) };
  gfloat next;
  guint i;

  for (i = 0; i < 3; i++)
    {
      g_autoptr (GError) error = NULL;

      g_assert_false (gtorch_generator_set_state (a, bytes[i], &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
      g_bytes_unref (bytes[i]);
    }
  next = draw (a);
  g_assert_true (gtorch_generator_set_state (a, good, NULL)); /* the failures have not changed it */
  g_assert_cmpfloat (draw (a), ==, next);
}

static void
manual_seed_seeds_the_default_ones (void)
{
  GTorchGenerator *own = gtorch_device_get_default_generator (test_device ());
  gfloat first;

  gtorch_manual_seed (77);
  g_assert_cmpuint (gtorch_generator_get_seed (own), ==, 77);
  first = draw (NULL);
  g_assert_cmpfloat (draw (NULL), !=, first);
  gtorch_manual_seed (77);
  g_assert_cmpfloat (draw (own), ==, first);
}

static void
on_notify (GObject *object, GParamSpec *pspec, gpointer data)
{
  (*(guint *) data)++;
}

static void
seed_is_a_property (void)
{
  g_autoptr (GTorchGenerator) a = gtorch_generator_new ();
  guint64 seed = 0;
  guint n = 0;

  g_signal_connect (a, "notify::seed", G_CALLBACK (on_notify), &n);
  g_object_set (a, "seed", (guint64) 12, NULL);
  g_object_get (a, "seed", &seed, NULL);
  g_assert_cmpuint (seed, ==, 12);
  g_assert_cmpuint (n, ==, 1);
  gtorch_generator_set_seed (a, 12);
  g_assert_cmpuint (n, ==, 1);
}

static gpointer
draw_many (gpointer data)
{
  guint i;

  for (i = 0; i < 500; i++)
    draw (data);
  return NULL;
}

static void
threads_share_one (void)
{
  g_autoptr (GTorchGenerator) a = gtorch_generator_new_with_seed (3);
  g_autoptr (GTorchGenerator) b = gtorch_generator_new_with_seed (3);
  GThread *threads[4];
  guint i;

  if (is_under_sanitizer ())
    {
      g_test_skip ("compute-sanitizer loses track of launches from several threads");
      return;
    }
  for (i = 0; i < 4; i++)
    threads[i] = g_thread_new ("draw", draw_many, a);
  for (i = 0; i < 4; i++)
    g_thread_join (threads[i]);
  for (i = 0; i < 4 * 500; i++)
    draw (b);
  g_assert_cmpfloat (draw (a), ==, draw (b)); /* no number was drawn twice or skipped */
}

#define TEST(name) g_test_add_func ("/GTorch/generator/" #name, name)

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  TEST (seed_decides_everything);
  TEST (restored_state_continues);
  TEST (wrong_states_are_errors);
  TEST (manual_seed_seeds_the_default_ones);
  TEST (seed_is_a_property);
  TEST (threads_share_one);
  return g_test_run ();
}
