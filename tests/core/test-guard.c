/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Guards of all kinds, which end in any order and in any thread. GTORCH_FUZZ_RUNS and GTORCH_FUZZ_SEED
 * lengthen and change the random programs. With GPUs (the suite of the fake driver has two) the current
 * device is tested, too. */

#include "config.h"

#include <gtorch/memory/gtorch-memory-pool-private.h>
#include <gtorch/stream/gtorch-stream-private.h>
#include <gtorch/gtorch.h>

#include "sanitizer.h"

#define MAX_GPUS  2
#define N_CHOICES 3 /* streams of a device, the default one first; pools, none first */

/* The settings that guards change. Values are small numbers. */
enum
{
  GRAD,     /* whether operations are recorded */
  AUTOCAST, /* AUTOCAST + device type: the dtype */
  CACHES = AUTOCAST + GTORCH_N_DEVICE_TYPES,
  GPU,                          /* the index of the current GPU */
  CHOSEN,                       /* 1 + the device that was set last; 0 if none */
  DEFAULT,                      /* 1 + the default device of the thread; 0 if none */
  STREAM,                       /* STREAM + device: the current stream */
  POOL = STREAM + 1 + MAX_GPUS, /* POOL + device: the pool */
  N_PLACES = POOL + 1 + MAX_GPUS,
};

typedef enum
{
  GRAD_GUARD,
  AUTOCAST_GUARD,
  DEFAULT_GUARD,
  STREAM_GUARD,
  POOL_GUARD,
  DEVICE_GUARD,
  N_KINDS,
} Kind;

typedef struct
{
  Kind kind;
  gpointer guard;
  guint n_places;
  guint places[3];
  guint values[3];
} Entry;

static const struct
{
  void (*end) (gpointer guard);
  void (*unref) (gpointer guard);
} guards[] = {
#define GUARD(kind, name)                               \
  [kind] = { (void (*) (gpointer)) gtorch_##name##_end, \
             (void (*) (gpointer)) gtorch_##name##_unref }
  GUARD (GRAD_GUARD, grad_guard),
  GUARD (AUTOCAST_GUARD, autocast_guard),
  GUARD (DEFAULT_GUARD, default_device_guard),
  GUARD (STREAM_GUARD, stream_guard),
  GUARD (POOL_GUARD, memory_pool_guard),
  GUARD (DEVICE_GUARD, device_guard),
#undef GUARD
};

static GTorchDevice *devices[1 + MAX_GPUS]; /* the CPU is the first */
static guint n_devices;
static GTorchStream *streams[1 + MAX_GPUS][N_CHOICES];
static GTorchMemoryPool *pools[1 + MAX_GPUS][N_CHOICES];

static void
set_up (void)
{
  guint n = gtorch_device_manager_get_device_count (gtorch_device_manager_get_default ());
  guint i, j;

  n_devices = 1 + MIN (n, MAX_GPUS);
  devices[0] = gtorch_device_cpu ();
  for (i = 0; i < n_devices; i++)
    {
      g_autoptr (GError) error = NULL;

      if (i > 0)
        devices[i] = gtorch_device_cuda (i - 1, &error);
      g_assert_no_error (error);
      streams[i][0] = g_object_ref (gtorch_device_get_default_stream (devices[i]));
      for (j = 1; j < N_CHOICES; j++)
        {
          streams[i][j] = gtorch_stream_new (devices[i], 0, &error);
          g_assert_no_error (error);
          pools[i][j] = gtorch_memory_pool_new (devices[i]);
        }
    }
}

static void
tear_down (void)
{
  guint i, j;

  for (i = 0; i < n_devices; i++)
    for (j = 0; j < N_CHOICES; j++)
      {
        g_clear_object (&streams[i][j]);
        g_clear_object (&pools[i][j]);
      }
}

/* --- a program and its expected results --- */

typedef struct
{
  GRand *rand;
  GArray *entries; /* guards that have not ended, the oldest first */
  guint base[N_PLACES];
} Program;

static void
program_init (Program *self, guint32 seed)
{
  guint i;

  self->rand = g_rand_new_with_seed (seed);
  self->entries = g_array_new (FALSE, FALSE, sizeof (Entry));
  for (i = 0; i < N_PLACES; i++)
    self->base[i] = 0;
  self->base[GRAD] = self->base[CACHES] = TRUE;
}

static void
program_clear (Program *self)
{
  g_rand_free (self->rand);
  g_array_unref (self->entries);
}

/* Returns the value of a setting: that of the youngest guard that sets it. */
static guint *
find_value (Program *self, guint place)
{
  guint i, j;

  for (i = self->entries->len; i-- > 0;)
    {
      Entry *entry = &g_array_index (self->entries, Entry, i);

      for (j = 0; j < entry->n_places; j++)
        if (entry->places[j] == place)
          return &entry->values[j];
    }
  return &self->base[place];
}

static void
check_state (Program *self)
{
  guint i, chosen = *find_value (self, CHOSEN), fallback = *find_value (self, DEFAULT);
  GTorchDevice *normal = fallback > 0 ? devices[fallback - 1] : gtorch_device_cpu ();

  g_assert_cmpint (gtorch_is_grad_enabled (), ==, *find_value (self, GRAD));
  for (i = 0; i < GTORCH_N_DEVICE_TYPES; i++)
    {
      guint dtype = *find_value (self, AUTOCAST + i);

      g_assert_cmpint (gtorch_is_autocast_enabled (i), ==, dtype != GTORCH_DTYPE_NONE);
      if (dtype != GTORCH_DTYPE_NONE)
        g_assert_cmpuint (gtorch_get_autocast_dtype (i), ==, dtype);
    }
  g_assert_cmpint (gtorch_is_autocast_cache_enabled (), ==, *find_value (self, CACHES));
  for (i = 0; i < n_devices; i++)
    {
      guint pool = *find_value (self, POOL + i);

      g_assert_true (gtorch_stream_get_current (devices[i])
                     == streams[i][*find_value (self, STREAM + i)]);
      g_assert_true (gtorch_thread.pools[devices[i]->slot]
                     == (pool > 0 ? gtorch_memory_pool_get_pool (pools[i][pool]) : NULL));
    }
  if (n_devices > 1)
    g_assert_true (gtorch_device_get_current (GTORCH_DEVICE_TYPE_CUDA, NULL)
                   == devices[1 + *find_value (self, GPU)]);
  g_assert_true (gtorch_get_default_device () == normal);
  g_assert_true (gtorch_stream_get_device (gtorch_stream_get_current (NULL))
                 == (chosen > 0 ? devices[chosen - 1] : normal));
}

static void
add_place (Entry *entry, guint place, guint value)
{
  entry->places[entry->n_places] = place;
  entry->values[entry->n_places++] = value;
}

static void
add_current (Entry *entry, guint device)
{
  add_place (entry, CHOSEN, 1 + device);
  if (device > 0)
    add_place (entry, GPU, device - 1);
}

static Entry
begin_guard (GRand *rand, Kind kind)
{
  static const GTorchDType dtypes[] = { GTORCH_DTYPE_NONE, GTORCH_DTYPE_FLOAT16,
                                        GTORCH_DTYPE_BFLOAT16 };
  guint device = g_rand_int_range (rand, 0, n_devices), i = g_rand_int_range (rand, 0, N_CHOICES);
  gboolean flag = g_rand_boolean (rand);
  g_autoptr (GError) error = NULL;
  Entry entry = { .kind = kind };

  switch (kind)
    {
    case GRAD_GUARD:
      entry.guard = flag ? gtorch_enable_grad () : gtorch_no_grad ();
      add_place (&entry, GRAD, flag);
      break;
    case AUTOCAST_GUARD:
      device = g_rand_int_range (rand, 0, GTORCH_N_DEVICE_TYPES);
      entry.guard = gtorch_autocast_guard_new (device, dtypes[i], dtypes[i] != GTORCH_DTYPE_NONE,
                                               flag, &error);
      add_place (&entry, AUTOCAST + device, dtypes[i]);
      add_place (&entry, CACHES, flag);
      break;
    case DEFAULT_GUARD:
      entry.guard = gtorch_default_device_guard_new (devices[device]);
      add_place (&entry, DEFAULT, 1 + device);
      add_place (&entry, CHOSEN, 0);
      break;
    case STREAM_GUARD:
      entry.guard = gtorch_stream_guard_new (streams[device][i]);
      add_place (&entry, STREAM + device, i);
      add_current (&entry, device);
      break;
    case POOL_GUARD:
      i = MAX (i, 1);
      entry.guard = gtorch_memory_pool_guard_new (pools[device][i]);
      add_place (&entry, POOL + device, i);
      break;
    case DEVICE_GUARD:
    default:
      entry.guard = gtorch_device_guard_new (devices[device], &error);
      add_current (&entry, device);
      break;
    }
  g_assert_no_error (error);
  return entry;
}

static void
end_guard (Program *self, guint i, gboolean by_unref)
{
  Entry entry = g_array_index (self->entries, Entry, i);

  g_array_remove_index (self->entries, i);
  if (!by_unref)
    {
      guards[entry.kind].end (entry.guard);
      check_state (self);
      guards[entry.kind].end (entry.guard); /* the second call does nothing */
      check_state (self);
    }
  guards[entry.kind].unref (entry.guard);
}

static void
set_something (Program *self)
{
  guint device = g_rand_int_range (self->rand, 0, n_devices);
  guint i = g_rand_int_range (self->rand, 0, N_CHOICES);

  switch (g_rand_int_range (self->rand, 0, 3))
    {
    case 0:
      g_assert_cmpint (gtorch_set_grad_enabled (i > 0), ==, *find_value (self, GRAD));
      *find_value (self, GRAD) = i > 0;
      return;
    case 1:
      gtorch_stream_set_current (streams[device][i]);
      *find_value (self, STREAM + device) = i;
      break;
    default:
      g_assert_true (gtorch_device_set_current (devices[device], NULL));
    }
  *find_value (self, CHOSEN) = 1 + device;
  if (device > 0)
    *find_value (self, GPU) = device - 1;
}

/* Returns to the initial state of a thread, except for the device that was set last, which no function
 * resets. */
static void
end_all (Program *self)
{
  guint i;

  while (self->entries->len > 0)
    end_guard (self, g_rand_int_range (self->rand, 0, self->entries->len),
               g_rand_boolean (self->rand));
  check_state (self);
  gtorch_set_grad_enabled (TRUE);
  for (i = n_devices; i-- > 0;)
    gtorch_stream_set_current (streams[i][0]);
}

static gpointer
run_program (gpointer data)
{
  guint32 seed = GPOINTER_TO_UINT (data);
  Program self;
  guint i;

  program_init (&self, seed);
  check_state (&self);
  for (i = 0; i < 100; i++)
    {
      guint what = g_rand_int_range (self.rand, 0, 10);

      if (what < 5 && self.entries->len < 12)
        {
          Entry entry = begin_guard (self.rand, g_rand_int_range (self.rand, 0, N_KINDS));

          g_array_append_val (self.entries, entry);
        }
      else if (what < 8 && self.entries->len > 0)
        end_guard (&self, g_rand_int_range (self.rand, 0, self.entries->len), what == 7);
      else
        set_something (&self);
      check_state (&self);
    }
  end_all (&self);
  program_clear (&self);
  return NULL;
}

static void
the_youngest_guard_decides_in_whatever_order_they_end (void)
{
  const gchar *runs = g_getenv ("GTORCH_FUZZ_RUNS"), *seed = g_getenv ("GTORCH_FUZZ_SEED");
  guint n = runs != NULL ? g_ascii_strtoull (runs, NULL, 10) : 200;
  guint first = seed != NULL ? g_ascii_strtoull (seed, NULL, 10) : 1;
  guint i;

  for (i = 0; i < n; i++) /* each in a new thread that has set nothing */
    g_thread_join (g_thread_new ("program", run_program, GUINT_TO_POINTER (first + i)));
}

static void
threads_have_guards_of_their_own (void)
{
  GThread *threads[4];
  guint i;

  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("program", run_program, GUINT_TO_POINTER (1000 + i));
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
}

/* --- guards in other threads --- */

static gpointer
end_elsewhere (gpointer data)
{
  Entry *entry = data;

  guards[entry->kind].end (entry->guard);
  guards[entry->kind].end (entry->guard);
  return NULL;
}

static gpointer
unref_elsewhere (gpointer data)
{
  Entry *entry = data;

  guards[entry->kind].unref (entry->guard);
  return NULL;
}

static void
a_guard_ended_by_another_thread_acts_on_its_own (void)
{
  Program self;
  guint kind;

  program_init (&self, 7);
  for (kind = 0; kind < N_KINDS; kind++)
    {
      Entry first = begin_guard (self.rand, kind), second = begin_guard (self.rand, kind);

      g_thread_join (g_thread_new ("end", end_elsewhere, &first));
      g_array_append_val (self.entries, second);
      check_state (&self); /* the ended guard is the older one */
      guards[kind].unref (first.guard);
      g_thread_join (g_thread_new ("unref", unref_elsewhere, &second));
      g_array_set_size (self.entries, 0);
      check_state (&self);
    }
  program_clear (&self);
}

typedef struct
{
  GAsyncQueue *queue;
  GMutex lock;
  GCond cond;
  guint n_ready;
  gboolean go;
} Exchange;

static gpointer
exchange_guards (gpointer data)
{
  Exchange *exchange = data;
  Program self;
  guint i;

  program_init (&self, g_random_int_range (0, 1000));
  for (i = 0; i < 300; i++)
    {
      Entry entry = begin_guard (self.rand, g_rand_int_range (self.rand, 0, N_KINDS));
      Entry *other = NULL;

      if (g_rand_boolean (self.rand))
        g_async_queue_push (exchange->queue, g_memdup2 (&entry, sizeof entry));
      else
        guards[entry.kind].unref (entry.guard);
      if (g_rand_boolean (self.rand))
        other = g_async_queue_try_pop (exchange->queue);
      if (other != NULL)
        {
          if (g_rand_boolean (self.rand))
            guards[other->kind].end (other->guard);
          guards[other->kind].unref (other->guard);
          g_free (other);
        }
    }
  g_mutex_lock (&exchange->lock);
  exchange->n_ready++;
  g_cond_broadcast (&exchange->cond);
  while (!exchange->go)
    g_cond_wait (&exchange->cond, &exchange->lock);
  g_mutex_unlock (&exchange->lock);
  check_state (&self); /* no guard of this thread is left */
  program_clear (&self);
  return NULL;
}

static void
guards_pass_between_threads (void)
{
  Exchange exchange = { g_async_queue_new () };
  GThread *threads[4];
  Entry *entry;
  guint i;

  g_mutex_init (&exchange.lock);
  g_cond_init (&exchange.cond);
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("exchange", exchange_guards, &exchange);
  g_mutex_lock (&exchange.lock);
  while (exchange.n_ready < G_N_ELEMENTS (threads))
    g_cond_wait (&exchange.cond, &exchange.lock);
  while ((entry = g_async_queue_try_pop (exchange.queue)) != NULL)
    {
      guards[entry->kind].unref (entry->guard);
      g_free (entry);
    }
  exchange.go = TRUE;
  g_cond_broadcast (&exchange.cond);
  g_mutex_unlock (&exchange.lock);
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
  g_async_queue_unref (exchange.queue);
  g_mutex_clear (&exchange.lock);
  g_cond_clear (&exchange.cond);
}

static gpointer
leave_guards (gpointer data)
{
  Entry *entries = data;
  GRand *rand = g_rand_new_with_seed (3);
  guint i;

  for (i = 0; i < 2 * N_KINDS; i++)
    entries[i] = begin_guard (rand, i % N_KINDS);
  g_rand_free (rand);
  return NULL;
}

static void
guards_end_with_their_thread (void)
{
  Entry entries[2 * N_KINDS];
  Program self;
  guint i;

  program_init (&self, 1);
  g_thread_join (g_thread_new ("leave", leave_guards, entries));
  for (i = 0; i < G_N_ELEMENTS (entries); i++)
    {
      if (i % 2 == 0)
        guards[entries[i].kind].end (entries[i].guard);
      guards[entries[i].kind].unref (entries[i].guard);
      check_state (&self);
    }
  program_clear (&self);
}

/* --- guards inside the library --- */

static gpointer kept; /* set by a hook */

static gboolean
keep_guard (GTorchStream *stream, gpointer data, GError **error)
{
  kept = gtorch_no_grad ();
  return TRUE;
}

static void
a_guard_may_outlive_the_function_that_made_it (void)
{
  GTorchStream *stream = streams[0][1];
  GTorchStreamGuard *guard;

  g_assert_true (gtorch_stream_run (stream, keep_guard, NULL, NULL));
  g_assert_false (gtorch_is_grad_enabled ());
  g_assert_true (gtorch_stream_get_current (devices[0]) == streams[0][0]);
  guard = gtorch_stream_guard_new (stream);
  gtorch_grad_guard_unref (kept);
  g_assert_true (gtorch_is_grad_enabled ());
  g_assert_true (gtorch_stream_get_current (devices[0]) == stream);
  gtorch_stream_guard_unref (guard);
  g_assert_true (gtorch_stream_get_current (devices[0]) == streams[0][0]);
}

static GTorchTensor *
end_in_hook (GTorchTensor *grad, gpointer data, GError **error)
{
  gtorch_grad_guard_end (data);
  return NULL;
}

static void
a_hook_may_end_a_guard_of_the_program (void)
{
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (2), 0, devices[0], NULL);
  g_autoptr (GTorchTensor) sum = NULL;
  g_autoptr (GTorchTensor) twice = NULL;
  GTorchGradGuard *guard;

  gtorch_tensor_set_requires_grad (x, TRUE, NULL);
  sum = gtorch_tensor_sum (x, NULL, 0, FALSE, GTORCH_DTYPE_NONE, NULL);
  guard = gtorch_no_grad ();
  gtorch_tensor_register_hook (x, end_in_hook, guard, NULL, NULL);
  g_assert_true (gtorch_tensor_backward (sum, NULL, FALSE, FALSE, NULL));
  /* the pass, which had disabled recording, has not restored the mode */
  g_assert_true (gtorch_is_grad_enabled ());
  twice = gtorch_tensor_mul_scalar (x, 2, NULL);
  g_assert_true (gtorch_tensor_get_requires_grad (twice));
  gtorch_grad_guard_unref (guard);
  g_assert_true (gtorch_is_grad_enabled ());
}

/* --- devices --- */

static gpointer
check_new_thread (gpointer data)
{
  g_assert_true (gtorch_device_get_current (GTORCH_DEVICE_TYPE_CUDA, NULL) == devices[1]);
  return NULL;
}

static gpointer
stay_on (gpointer data)
{
  GTorchDevice *own = data;
  GTorchDevice *cuda = gtorch_device_cuda (-1, NULL);
  guint i;

  g_assert_true (gtorch_device_set_current (own, NULL));
  for (i = 0; i < 200; i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (3), 0, cuda, &error);

      g_assert_no_error (error);
      g_assert_true (gtorch_tensor_get_device (x) == own);
      g_assert_true (gtorch_device_get_default_stream (cuda)
                     == gtorch_device_get_default_stream (own));
      g_thread_yield ();
    }
  g_thread_join (g_thread_new ("new", check_new_thread, NULL));
  return NULL;
}

static void
each_thread_has_its_own_current_gpu (void)
{
  GThread *threads[4];
  guint i;

  if (n_devices < 3)
    {
      g_test_skip ("two GPUs are needed");
      return;
    }
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("stay", stay_on, devices[1 + i % 2]);
  for (i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
}

static void
without_a_gpu_there_is_no_current_one (void)
{
  g_autoptr (GError) error = NULL;

  if (n_devices > 1)
    {
      g_test_skip ("there is a GPU");
      return;
    }
  g_assert_null (gtorch_device_get_current (GTORCH_DEVICE_TYPE_CUDA, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE);
  g_assert_true (g_str_has_prefix (error->message, "device: no “cuda”: "));
  g_assert_true (gtorch_device_get_current (GTORCH_DEVICE_TYPE_CPU, NULL) == devices[0]);
}

#define TEST(name) g_test_add_func ("/GTorchGuard/" #name, name)

gint
main (gint argc, gchar **argv)
{
  gint result;

  g_test_init (&argc, &argv, NULL);
  set_up ();
  TEST (the_youngest_guard_decides_in_whatever_order_they_end);
  TEST (threads_have_guards_of_their_own);
  TEST (a_guard_ended_by_another_thread_acts_on_its_own);
  TEST (guards_pass_between_threads);
  TEST (guards_end_with_their_thread);
  TEST (a_guard_may_outlive_the_function_that_made_it);
  TEST (a_hook_may_end_a_guard_of_the_program);
  TEST (each_thread_has_its_own_current_gpu);
  TEST (without_a_gpu_there_is_no_current_one);
  result = g_test_run ();
  tear_down ();
  return result;
}
