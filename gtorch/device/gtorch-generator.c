/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "device/gtorch-device-manager.h"
#include "device/gtorch-device-private.h"
#include "base/gtorch-field-private.h"
#include "base/gtorch-fork-private.h"
#include "device/gtorch-generator-private.h"
#include "base/gtorch-observer-private.h"

/**
 * GTorchGenerator:
 *
 * A source of random numbers: Philox4x32-10, keyed by element.
 *
 * An element of a random tensor depends on the seed, on the number of random operations since the seed was
 * set, and on its index; not on the number of threads, the layout of the tensor or the device. A generator
 * can be used on every device, unless it was created for one, as PyTorch's generators are:
 * [ctor@Generator.new_for_device]. Each device has one that operations use when none is given;
 * [func@manual_seed] seeds them all.
 *
 * After a fork, the child draws the same numbers as its parent, unless one of them sets a seed.
 *
 * A graph reserves new numbers for each replay, exactly those that the same operations would have drawn if
 * they had been called.
 *
 * ```c
 * g_autoptr (GTorchGenerator) generator = gtorch_generator_new_with_seed (42);
 * g_autoptr (GTorchTensor) x =
 *     gtorch_randn (GTORCH_SHAPE (2, 3), GTORCH_DTYPE_FLOAT32, NULL, generator, &error);
 * ```
 *
 * Since: 0.1
 */

#define DEFAULT_SEED G_GUINT64_CONSTANT (67280421310721)
#define STATE_SIZE   24

static const guint8 state_magic[8] = { 'G', 'T', 'p', 'h', 'i', 'l', 'o', 1 };

struct _GTorchGenerator
{
  GObject parent_instance;
  GMutex lock;
  guint64 seed;
  guint64 counter;
  GTorchDevice *device; /* NULL: any */
};

G_DEFINE_TYPE (GTorchGenerator, gtorch_generator, G_TYPE_OBJECT)

static void
gtorch_generator_finalize (GObject *object)
{
  g_clear_object (&GTORCH_GENERATOR (object)->device);
  gtorch_fork_remove_lock (&GTORCH_GENERATOR (object)->lock);
  g_mutex_clear (&GTORCH_GENERATOR (object)->lock);
  G_OBJECT_CLASS (gtorch_generator_parent_class)->finalize (object);
}

typedef GTorchGenerator Self;

static const GTorchField fields[] = {
  /**
   * GTorchGenerator:device: (getter get_device)
   *
   * The device whose numbers it draws; %NULL if that may be any.
   *
   * Since: 0.1
   */
  { "device", GTORCH_PROPERTY_OBJECT (GTorchDevice, gtorch_device_get_type,
                                      gtorch_generator_get_device, NULL) },
  /**
   * GTorchGenerator:seed:
   *
   * The seed of the sequence. Setting it restarts the sequence.
   *
   * Since: 0.1
   */
  { "seed", GTORCH_PROPERTY_UINT64 (gtorch_generator_get_seed, gtorch_generator_set_seed),
    .value = DEFAULT_SEED },
};

static void
gtorch_generator_class_init (GTorchGeneratorClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->finalize = gtorch_generator_finalize;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_generator_init (GTorchGenerator *self)
{
  g_mutex_init (&self->lock);
  gtorch_fork_add_lock (&self->lock);
  self->seed = DEFAULT_SEED;
}

/**
 * gtorch_generator_new:
 *
 * Creates a generator with the default seed, which is always the same.
 *
 * Returns: (transfer full): a new generator
 *
 * Since: 0.1
 */
GTorchGenerator *
gtorch_generator_new (void)
{
  return g_object_new (GTORCH_TYPE_GENERATOR, NULL);
}

/**
 * gtorch_generator_new_with_seed:
 * @seed: any number
 *
 * Creates a generator with a seed.
 *
 * Returns: (transfer full): a new generator
 *
 * Since: 0.1
 */
GTorchGenerator *
gtorch_generator_new_with_seed (guint64 seed)
{
  GTorchGenerator *self = gtorch_generator_new ();

  self->seed = seed;
  return self;
}

/**
 * gtorch_generator_new_for_device:
 * @device: the device
 *
 * Creates a generator with the default seed that draws numbers on one device alone: random operations on
 * another one fail with %GTORCH_ERROR_DEVICE_MISMATCH.
 *
 * Returns: (transfer full): a new generator
 *
 * Since: 0.1
 */
GTorchGenerator *
gtorch_generator_new_for_device (GTorchDevice *device)
{
  GTorchGenerator *self;

  g_return_val_if_fail (GTORCH_IS_DEVICE (device), NULL);
  self = gtorch_generator_new ();
  self->device = g_object_ref (gtorch_device_resolved (device));
  return self;
}

/**
 * gtorch_generator_get_device: (get-property device)
 * @self: a generator
 *
 * Gets the device for which the generator was created.
 *
 * Returns: (transfer none) (nullable): the device, or %NULL if it draws numbers on any
 *
 * Since: 0.1
 */
GTorchDevice *
gtorch_generator_get_device (GTorchGenerator *self)
{
  g_return_val_if_fail (GTORCH_IS_GENERATOR (self), NULL);
  return self->device;
}

/**
 * gtorch_generator_get_seed: (get-property seed)
 * @self: a generator
 *
 * Gets the seed that was last set.
 *
 * Returns: the seed
 *
 * Since: 0.1
 */
guint64
gtorch_generator_get_seed (GTorchGenerator *self)
{
  guint64 seed;

  g_return_val_if_fail (GTORCH_IS_GENERATOR (self), 0);
  g_mutex_lock (&self->lock);
  seed = self->seed;
  g_mutex_unlock (&self->lock);
  return seed;
}

static void
set_state (GTorchGenerator *self, guint64 seed, guint64 counter)
{
  gboolean changed;

  g_mutex_lock (&self->lock);
  changed = self->seed != seed;
  self->seed = seed;
  self->counter = counter;
  g_mutex_unlock (&self->lock);
  if (changed)
    g_object_notify (G_OBJECT (self), "seed");
}

/* self: NULL stands for the default generators of all devices. */
static void
change_state (GTorchGenerator *self, guint64 seed, guint64 counter, const gchar *what)
{
  GListModel *devices;
  guint i;

  gtorch_observe_host_work (what);
  if (self != NULL)
    {
      set_state (self, seed, counter);
      return;
    }
  devices = G_LIST_MODEL (gtorch_device_manager_get_default ());
  for (i = 0; i < g_list_model_get_n_items (devices); i++)
    {
      g_autoptr (GTorchDevice) device = g_list_model_get_item (devices, i);

      if (device != NULL) /* a child of fork () has none of the GPUs */
        set_state (gtorch_device_get_default_generator (device), seed, counter);
    }
}

/**
 * gtorch_generator_set_seed: (set-property seed)
 * @self: a generator
 * @seed: any number
 *
 * Restarts the sequence with @seed.
 *
 * Since: 0.1
 */
void
gtorch_generator_set_seed (GTorchGenerator *self, guint64 seed)
{
  g_return_if_fail (GTORCH_IS_GENERATOR (self));
  change_state (self, seed, 0, "seeding a generator");
}

/**
 * gtorch_generator_seed_from_entropy:
 * @self: a generator
 *
 * Sets a seed from the system's source of entropy.
 *
 * Returns: the seed
 *
 * Since: 0.1
 */
guint64
gtorch_generator_seed_from_entropy (GTorchGenerator *self)
{
  guint64 seed = (guint64) g_random_int () << 32 | g_random_int ();

  g_return_val_if_fail (GTORCH_IS_GENERATOR (self), 0);
  gtorch_generator_set_seed (self, seed);
  return seed;
}

/**
 * gtorch_generator_get_state:
 * @self: a generator
 *
 * Gets the complete state, from which [method@Generator.set_state] can continue later, in this process or
 * in another.
 *
 * Returns: (transfer full): 24 bytes
 *
 * Since: 0.1
 */
GBytes *
gtorch_generator_get_state (GTorchGenerator *self)
{
  guint8 *data;
  guint64 numbers[2];

  g_return_val_if_fail (GTORCH_IS_GENERATOR (self), NULL);
  g_mutex_lock (&self->lock);
  numbers[0] = GUINT64_TO_LE (self->seed);
  numbers[1] = GUINT64_TO_LE (self->counter);
  g_mutex_unlock (&self->lock);
  data = g_malloc (STATE_SIZE);
  memcpy (data, state_magic, sizeof (state_magic));
  memcpy (data + sizeof (state_magic), numbers, sizeof (numbers));
  return g_bytes_new_take (data, STATE_SIZE);
}

/**
 * gtorch_generator_set_state:
 * @self: a generator
 * @state: a state from [method@Generator.get_state]
 * @error: return location for an error
 *
 * Continues the sequence from @state.
 *
 * Returns: %TRUE; %FALSE with %GTORCH_ERROR_FORMAT if @state is not a valid state
 *
 * Since: 0.1
 */
gboolean
gtorch_generator_set_state (GTorchGenerator *self, GBytes *state, GError **error)
{
  const guint8 *data;
  guint64 numbers[2];
  gsize size;

  g_return_val_if_fail (GTORCH_IS_GENERATOR (self), FALSE);
  g_return_val_if_fail (state != NULL, FALSE);
  data = g_bytes_get_data (state, &size);
  if (size != STATE_SIZE || memcmp (data, state_magic, sizeof (state_magic)) != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("generator: %zu bytes are not a generator's state, which has %d"), size,
                   STATE_SIZE);
      return FALSE;
    }
  memcpy (numbers, data + sizeof (state_magic), sizeof (numbers));
  change_state (self, GUINT64_FROM_LE (numbers[0]), GUINT64_FROM_LE (numbers[1]),
                "setting the state of a generator");
  return TRUE;
}

/**
 * gtorch_manual_seed:
 * @seed: any number
 *
 * Seeds the default generators of all devices.
 *
 * Since: 0.1
 */
void
gtorch_manual_seed (guint64 seed)
{
  change_state (NULL, seed, 0, "seeding the generators");
}

void
gtorch_generator_reserve (GTorchGenerator *self, guint64 *seed, guint64 *counter)
{
  g_mutex_lock (&self->lock);
  *seed = self->seed;
  *counter = self->counter++;
  g_mutex_unlock (&self->lock);
}

/* --- the states of all default generators --- */

typedef struct
{
  GTorchGenerator *generator;
  guint64 seed, counter;
} State;

struct _GTorchRandomStates
{
  guint n;
  State states[];
};

GTorchRandomStates *
gtorch_random_states_new (void)
{
  GListModel *devices = G_LIST_MODEL (gtorch_device_manager_get_default ());
  const guint n = g_list_model_get_n_items (devices);
  GTorchRandomStates *self = g_malloc0 (sizeof (GTorchRandomStates) + n * sizeof (State));
  guint i;

  for (i = 0; i < n; i++)
    {
      g_autoptr (GTorchDevice) device = g_list_model_get_item (devices, i);
      State *state;

      if (device == NULL)
        continue;
      state = &self->states[self->n++];
      state->generator = g_object_ref (gtorch_device_get_default_generator (device));
      g_mutex_lock (&state->generator->lock);
      state->seed = state->generator->seed;
      state->counter = state->generator->counter;
      g_mutex_unlock (&state->generator->lock);
    }
  return self;
}

void
gtorch_random_states_free (GTorchRandomStates *self)
{
  guint i;

  for (i = 0; i < self->n; i++)
    g_object_unref (self->states[i].generator);
  g_free (self);
}

GTorchRandomStates *
gtorch_random_states_exchange (const GTorchRandomStates *self)
{
  GTorchRandomStates *former = gtorch_random_states_new ();
  guint i;

  for (i = 0; i < self->n; i++)
    set_state (self->states[i].generator, self->states[i].seed, self->states[i].counter);
  return former;
}

void
gtorch_random_states_restore (GTorchRandomStates *self)
{
  guint i;

  for (i = 0; i < self->n; i++)
    set_state (self->states[i].generator, self->states[i].seed, self->states[i].counter);
  gtorch_random_states_free (self);
}
