/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Samplers in order and by chance. A pass by chance draws its indices in pieces, from the generator of
 * the sampler, or from one of its own, which is seeded from the CPU's default one. Its state is that of
 * the generator before the first piece. */

#include "config.h"

#include "data/gtorch-random-sampler.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <math.h>

#include "base/gtorch-error.h"
#include "base/gtorch-field-private.h"
#include "data/gtorch-sampler-private.h"
#include "device/gtorch-device.h"
#include "device/gtorch-generator-private.h"
#include "elements/gtorch-tensor-bytes.h"
#include "elements/gtorch-tensor-create.h"
#include "gtorch-tensor-ops.h"

/* The most indices that are drawn at a time with replacement. */
#define PIECE (1 << 16)

/* --- drawing --- */

static guint64
scramble (guint64 x)
{
  x += G_GUINT64_CONSTANT (0x9e3779b97f4a7c15);
  x = (x ^ (x >> 30)) * G_GUINT64_CONSTANT (0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * G_GUINT64_CONSTANT (0x94d049bb133111eb);
  return x ^ (x >> 31);
}

guint64
gtorch_draw_seed (GTorchGenerator *generator)
{
  guint64 seed, counter;

  if (generator == NULL)
    generator = gtorch_device_get_default_generator (gtorch_device_cpu ());
  gtorch_generator_reserve (generator, &seed, &counter);
  return scramble (seed ^ scramble (counter));
}

guint64
gtorch_derive_seed (guint64 seed, guint64 n)
{
  return scramble (seed ^ scramble (n));
}

/* Takes the tensor and returns its integers. */
static gint64 *
take_ints (const gchar *op, GTorchTensor *tensor, GError **error)
{
  gint64 *ints = NULL;
  gsize n;

  if (tensor != NULL)
    {
      ints = gtorch_tensor_to_ints (tensor, &n, error);
      g_object_unref (tensor);
      if (ints != NULL)
        return ints;
    }
  g_prefix_error (error, "%s: ", op);
  return NULL;
}

gint64 *
gtorch_draw_permutation (const gchar *op, gint64 n, GTorchGenerator *generator, GError **error)
{
  if (n == 0)
    return g_new0 (gint64, 1);
  return take_ints (op,
                    gtorch_randperm (n, GTORCH_DTYPE_INT64, gtorch_device_cpu (), generator, error),
                    error);
}

/* --- passes --- */

/* Returns the next indices of a pass, of which at least 1 and at most *n are wanted; sets *n to how many
 * they are. */
typedef gint64 *(*DrawFunc) (GTorchSampler *sampler, GTorchGenerator *generator, gint64 *n,
                             GError **error);

#define GTORCH_TYPE_DRAWN_SOURCE (gtorch_drawn_source_get_type ())
G_DECLARE_FINAL_TYPE (GTorchDrawnSource, gtorch_drawn_source, GTORCH, DRAWN_SOURCE,
                      GTorchIndexSource)

struct _GTorchDrawnSource
{
  GTorchIndexSource parent_instance;
  GTorchSampler *sampler;
  GTorchGenerator *generator;
  GBytes *begin; /* the state of the generator before the pass; NULL without chance */
  DrawFunc draw;
  gint64 left; /* indices that are still to be drawn */
  gint64 *piece;
  gint64 n_piece, at;
};

G_DEFINE_TYPE (GTorchDrawnSource, gtorch_drawn_source, GTORCH_TYPE_INDEX_SOURCE)

static GTorchSize *
gtorch_drawn_source_next (GTorchIndexSource *source, gint64 n, GError **error)
{
  GTorchDrawnSource *self = GTORCH_DRAWN_SOURCE (source);
  g_autoptr (GArray) indices = g_array_new (FALSE, FALSE, sizeof (gint64));

  while ((gint64) indices->len < n)
    {
      gint64 count;

      if (self->at == self->n_piece)
        {
          if (self->left == 0)
            break;
          g_clear_pointer (&self->piece, g_free);
          self->at = self->n_piece = 0;
          count = self->left;
          self->piece = self->draw (self->sampler, self->generator, &count, error);
          if (self->piece == NULL)
            return NULL;
          self->n_piece = count;
          self->left -= count;
        }
      count = MIN (n - (gint64) indices->len, self->n_piece - self->at);
      g_array_append_vals (indices, self->piece + self->at, count);
      self->at += count;
    }
  return indices->len > 0 ? gtorch_size_new ((gint64 *) indices->data, indices->len) : NULL;
}

static GVariant *
gtorch_drawn_source_get_state (GTorchIndexSource *source)
{
  GBytes *state = GTORCH_DRAWN_SOURCE (source)->begin;

  return state != NULL ? g_variant_new_from_bytes (G_VARIANT_TYPE_BYTESTRING, state, TRUE) : NULL;
}

static void
gtorch_drawn_source_finalize (GObject *object)
{
  GTorchDrawnSource *self = GTORCH_DRAWN_SOURCE (object);

  g_clear_object (&self->sampler);
  g_clear_object (&self->generator);
  g_clear_pointer (&self->begin, g_bytes_unref);
  g_free (self->piece);
  G_OBJECT_CLASS (gtorch_drawn_source_parent_class)->finalize (object);
}

static void
gtorch_drawn_source_class_init (GTorchDrawnSourceClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_drawn_source_finalize;
  GTORCH_INDEX_SOURCE_CLASS (klass)->next = gtorch_drawn_source_next;
  GTORCH_INDEX_SOURCE_CLASS (klass)->get_state = gtorch_drawn_source_get_state;
}

static void
gtorch_drawn_source_init (GTorchDrawnSource *self)
{
}

/* Begins a pass of n indices. pending: a state that was set, which is taken. */
static GTorchIndexSource *
begin (GTorchSampler *sampler, GTorchGenerator *given, GBytes **pending, gint64 n, DrawFunc draw,
       GError **error)
{
  g_autoptr (GTorchGenerator) generator =
      given != NULL ? g_object_ref (given) : gtorch_generator_new ();
  GTorchDrawnSource *self;

  if (*pending != NULL)
    {
      g_autoptr (GBytes) state = g_steal_pointer (pending);

      if (!gtorch_generator_set_state (generator, state, error))
        return NULL;
    }
  else if (given == NULL)
    gtorch_generator_set_seed (generator, gtorch_draw_seed (NULL));
  self = g_object_new (GTORCH_TYPE_DRAWN_SOURCE, NULL);
  self->sampler = g_object_ref (sampler);
  self->begin = gtorch_generator_get_state (generator);
  self->generator = g_steal_pointer (&generator);
  self->draw = draw;
  self->left = n;
  return GTORCH_INDEX_SOURCE (self);
}

static gboolean
set_pending (GBytes **pending, GVariant *state, GError **error)
{
  g_autoptr (GTorchGenerator) probe = gtorch_generator_new ();
  g_autoptr (GBytes) bytes = NULL;

  if (!g_variant_is_of_type (state, G_VARIANT_TYPE_BYTESTRING))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
                   _ ("sampler: a state of type %s is not the bytes of a generator's state"),
                   g_variant_get_type_string (state));
      return FALSE;
    }
  bytes = g_variant_get_data_as_bytes (state);
  if (!gtorch_generator_set_state (probe, bytes, error))
    return FALSE;
  g_clear_pointer (pending, g_bytes_unref);
  *pending = g_steal_pointer (&bytes);
  return TRUE;
}

static gboolean
check_count (const gchar *op, const gchar *what, gint64 n, gint64 least, GError **error)
{
  if (n >= least)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: %s is %" PRId64 ", and must be at least %" PRId64), op, what, n, least);
  return FALSE;
}

/* --- SequentialSampler --- */

/**
 * GTorchSequentialSampler:
 *
 * All indices, from 0.
 *
 * Since: 0.1
 */
struct _GTorchSequentialSampler
{
  GTorchSampler parent_instance;
  gint64 length;
};

G_DEFINE_TYPE (GTorchSequentialSampler, gtorch_sequential_sampler, GTORCH_TYPE_SAMPLER)

static const GTorchField sequential_fields[] = {
  /**
   * GTorchSequentialSampler:length:
   *
   * How many indices there are.
   *
   * Since: 0.1
   */
  { "length", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchSequentialSampler, length),
    .flags = GTORCH_FIELD_FIXED },
};

static gint64
gtorch_sequential_sampler_get_length (GTorchSampler *sampler, GError **error)
{
  const gint64 length = GTORCH_SEQUENTIAL_SAMPLER (sampler)->length;

  return check_count ("sequential_sampler", "length", length, 0, error) ? length : -1;
}

static gint64 *
draw_in_order (GTorchSampler *sampler, GTorchGenerator *generator, gint64 *n, GError **error)
{
  const gint64 first = GTORCH_SEQUENTIAL_SAMPLER (sampler)->length - *n;
  gint64 *indices, i;

  *n = MIN (*n, PIECE);
  indices = g_new (gint64, *n);
  for (i = 0; i < *n; i++)
    indices[i] = first + i;
  return indices;
}

static GTorchIndexSource *
gtorch_sequential_sampler_iterate (GTorchSampler *sampler, guint64 epoch, GError **error)
{
  const gint64 length = gtorch_sequential_sampler_get_length (sampler, error);
  GTorchDrawnSource *source;

  if (length < 0)
    return NULL;
  source = g_object_new (GTORCH_TYPE_DRAWN_SOURCE, NULL);
  source->sampler = g_object_ref (sampler);
  source->draw = draw_in_order;
  source->left = length;
  return GTORCH_INDEX_SOURCE (source);
}

static void
gtorch_sequential_sampler_class_init (GTorchSequentialSamplerClass *klass)
{
  GTORCH_SAMPLER_CLASS (klass)->get_length = gtorch_sequential_sampler_get_length;
  GTORCH_SAMPLER_CLASS (klass)->iterate = gtorch_sequential_sampler_iterate;
  GTORCH_FIELDS (klass, sequential_fields);
}

static void
gtorch_sequential_sampler_init (GTorchSequentialSampler *self)
{
}

/**
 * gtorch_sequential_sampler_new: (constructor)
 * @length: how many samples there are
 *
 * Creates a sampler of all indices in order.
 *
 * Returns: (transfer full) (type GTorchSequentialSampler): the sampler
 *
 * Since: 0.1
 */
GTorchSampler *
gtorch_sequential_sampler_new (gint64 length)
{
  return g_object_new (GTORCH_TYPE_SEQUENTIAL_SAMPLER, "length", length, NULL);
}

/* --- RandomSampler --- */

/**
 * GTorchRandomSampler:
 *
 * Indices in an order by chance: each once, or with replacement.
 *
 * Since: 0.1
 */
struct _GTorchRandomSampler
{
  GTorchSampler parent_instance;
  gint64 length, num_samples;
  gboolean replacement;
  GTorchGenerator *generator;
  GBytes *pending;
};

G_DEFINE_TYPE (GTorchRandomSampler, gtorch_random_sampler, GTORCH_TYPE_SAMPLER)

static const GTorchField random_fields[] = {
  /**
   * GTorchRandomSampler:length:
   *
   * How many samples there are.
   *
   * Since: 0.1
   */
  { "length", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchRandomSampler, length),
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchRandomSampler:replacement:
   *
   * Whether an index may come several times.
   *
   * Since: 0.1
   */
  { "replacement", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchRandomSampler, replacement),
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchRandomSampler:num-samples:
   *
   * How many indices a pass has; -1 for as many as there are samples. Without replacement, more indices
   * than samples are several orders one after another.
   *
   * Since: 0.1
   */
  { "num-samples", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchRandomSampler, num_samples), -1,
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchRandomSampler:generator:
   *
   * Where the numbers come from. %NULL: each pass has a generator of its own, seeded from the CPU's
   * default one.
   *
   * Since: 0.1
   */
  { "generator", GTORCH_FIELD_OBJECT, GTORCH_FIELD (GTorchRandomSampler, generator),
    .type = gtorch_generator_get_type, .flags = GTORCH_FIELD_FIXED },
};

static gint64
gtorch_random_sampler_get_length (GTorchSampler *sampler, GError **error)
{
  GTorchRandomSampler *self = GTORCH_RANDOM_SAMPLER (sampler);

  if (!check_count ("random_sampler", "length", self->length, 0, error))
    return -1;
  if (self->num_samples == -1)
    return self->length;
  if (!check_count ("random_sampler", "num_samples", self->num_samples, 1, error)
      || !check_count ("random_sampler", "length", self->length, 1, error))
    return -1;
  return self->num_samples;
}

static gint64 *
draw_random (GTorchSampler *sampler, GTorchGenerator *generator, gint64 *n, GError **error)
{
  GTorchRandomSampler *self = GTORCH_RANDOM_SAMPLER (sampler);

  if (!self->replacement)
    {
      *n = MIN (*n, self->length);
      return gtorch_draw_permutation ("random_sampler", self->length, generator, error);
    }
  *n = MIN (*n, PIECE);
  return take_ints ("random_sampler",
                    gtorch_randint (0, self->length, n, 1, GTORCH_DTYPE_INT64, gtorch_device_cpu (),
                                    generator, error),
                    error);
}

static GTorchIndexSource *
gtorch_random_sampler_iterate (GTorchSampler *sampler, guint64 epoch, GError **error)
{
  GTorchRandomSampler *self = GTORCH_RANDOM_SAMPLER (sampler);
  const gint64 n = gtorch_random_sampler_get_length (sampler, error);

  return n >= 0 ? begin (sampler, self->generator, &self->pending, n, draw_random, error) : NULL;
}

static gboolean
gtorch_random_sampler_set_state (GTorchSampler *sampler, GVariant *state, GError **error)
{
  return set_pending (&GTORCH_RANDOM_SAMPLER (sampler)->pending, state, error);
}

static void
gtorch_random_sampler_finalize (GObject *object)
{
  GTorchRandomSampler *self = GTORCH_RANDOM_SAMPLER (object);

  g_clear_object (&self->generator);
  g_clear_pointer (&self->pending, g_bytes_unref);
  G_OBJECT_CLASS (gtorch_random_sampler_parent_class)->finalize (object);
}

static void
gtorch_random_sampler_class_init (GTorchRandomSamplerClass *klass)
{
  GTorchSamplerClass *sampler_class = GTORCH_SAMPLER_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = gtorch_random_sampler_finalize;
  sampler_class->get_length = gtorch_random_sampler_get_length;
  sampler_class->iterate = gtorch_random_sampler_iterate;
  sampler_class->set_state = gtorch_random_sampler_set_state;
  GTORCH_FIELDS (klass, random_fields);
}

static void
gtorch_random_sampler_init (GTorchRandomSampler *self)
{
  self->num_samples = -1;
}

/**
 * gtorch_random_sampler_new: (constructor)
 * @length: how many samples there are
 * @replacement: whether an index may come several times
 * @num_samples: how many indices a pass has; -1 for as many as there are samples
 * @generator: (nullable): where the numbers come from; %NULL for one that is seeded from the CPU's
 *   default one
 *
 * Creates a sampler of indices by chance.
 *
 * Returns: (transfer full) (type GTorchRandomSampler): the sampler
 *
 * Since: 0.1
 */
GTorchSampler *
gtorch_random_sampler_new (gint64 length, gboolean replacement, gint64 num_samples,
                           GTorchGenerator *generator)
{
  g_return_val_if_fail (generator == NULL || GTORCH_IS_GENERATOR (generator), NULL);
  return g_object_new (GTORCH_TYPE_RANDOM_SAMPLER, "length", length, "replacement", replacement,
                       "num-samples", num_samples, "generator", generator, NULL);
}

/* --- SubsetRandomSampler --- */

/**
 * GTorchSubsetRandomSampler:
 *
 * Some indices, each once, in an order by chance.
 *
 * Since: 0.1
 */
struct _GTorchSubsetRandomSampler
{
  GTorchSampler parent_instance;
  GTorchSize *indices;
  GTorchGenerator *generator;
  GBytes *pending;
};

G_DEFINE_TYPE (GTorchSubsetRandomSampler, gtorch_subset_random_sampler, GTORCH_TYPE_SAMPLER)

static const GTorchField subset_fields[] = {
  /**
   * GTorchSubsetRandomSampler:indices: (getter get_indices)
   *
   * The indices.
   *
   * Since: 0.1
   */
  { "indices", GTORCH_FIELD_BOXED, GTORCH_FIELD (GTorchSubsetRandomSampler, indices),
    .type = gtorch_size_get_type, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchSubsetRandomSampler:generator:
   *
   * Where the numbers come from. %NULL: each pass has a generator of its own, seeded from the CPU's
   * default one.
   *
   * Since: 0.1
   */
  { "generator", GTORCH_FIELD_OBJECT, GTORCH_FIELD (GTorchSubsetRandomSampler, generator),
    .type = gtorch_generator_get_type, .flags = GTORCH_FIELD_FIXED },
};

static gint64
gtorch_subset_random_sampler_get_length (GTorchSampler *sampler, GError **error)
{
  GTorchSize *indices = GTORCH_SUBSET_RANDOM_SAMPLER (sampler)->indices;

  return indices != NULL ? (gint64) gtorch_size_get_length (indices) : 0;
}

static gint64 *
draw_of_subset (GTorchSampler *sampler, GTorchGenerator *generator, gint64 *n, GError **error)
{
  gsize n_indices;
  const gint64 *indices =
      gtorch_size_get_values (GTORCH_SUBSET_RANDOM_SAMPLER (sampler)->indices, &n_indices);
  gint64 *order = gtorch_draw_permutation ("subset_random_sampler", *n, generator, error);
  gint64 i;

  for (i = 0; order != NULL && i < *n; i++)
    order[i] = indices[order[i]];
  return order;
}

static GTorchIndexSource *
gtorch_subset_random_sampler_iterate (GTorchSampler *sampler, guint64 epoch, GError **error)
{
  GTorchSubsetRandomSampler *self = GTORCH_SUBSET_RANDOM_SAMPLER (sampler);

  return begin (sampler, self->generator, &self->pending,
                gtorch_subset_random_sampler_get_length (sampler, NULL), draw_of_subset, error);
}

static gboolean
gtorch_subset_random_sampler_set_state (GTorchSampler *sampler, GVariant *state, GError **error)
{
  return set_pending (&GTORCH_SUBSET_RANDOM_SAMPLER (sampler)->pending, state, error);
}

static void
gtorch_subset_random_sampler_finalize (GObject *object)
{
  GTorchSubsetRandomSampler *self = GTORCH_SUBSET_RANDOM_SAMPLER (object);

  g_clear_pointer (&self->indices, gtorch_size_unref);
  g_clear_object (&self->generator);
  g_clear_pointer (&self->pending, g_bytes_unref);
  G_OBJECT_CLASS (gtorch_subset_random_sampler_parent_class)->finalize (object);
}

static void
gtorch_subset_random_sampler_class_init (GTorchSubsetRandomSamplerClass *klass)
{
  GTorchSamplerClass *sampler_class = GTORCH_SAMPLER_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = gtorch_subset_random_sampler_finalize;
  sampler_class->get_length = gtorch_subset_random_sampler_get_length;
  sampler_class->iterate = gtorch_subset_random_sampler_iterate;
  sampler_class->set_state = gtorch_subset_random_sampler_set_state;
  GTORCH_FIELDS (klass, subset_fields);
}

static void
gtorch_subset_random_sampler_init (GTorchSubsetRandomSampler *self)
{
}

/**
 * gtorch_subset_random_sampler_new: (constructor)
 * @indices: (array length=n_indices): the indices
 * @n_indices: the length of @indices
 * @generator: (nullable): where the numbers come from; %NULL for one that is seeded from the CPU's
 *   default one
 *
 * Creates a sampler of some indices in an order by chance.
 *
 * Returns: (transfer full) (type GTorchSubsetRandomSampler): the sampler
 *
 * Since: 0.1
 */
GTorchSampler *
gtorch_subset_random_sampler_new (const gint64 *indices, gsize n_indices,
                                  GTorchGenerator *generator)
{
  g_autoptr (GTorchSize) size = NULL;

  g_return_val_if_fail (indices != NULL || n_indices == 0, NULL);
  g_return_val_if_fail (generator == NULL || GTORCH_IS_GENERATOR (generator), NULL);
  size = gtorch_size_new (indices, n_indices);
  if (size == NULL)
    return NULL;
  return g_object_new (GTORCH_TYPE_SUBSET_RANDOM_SAMPLER, "indices", size, "generator", generator,
                       NULL);
}

/**
 * gtorch_subset_random_sampler_get_indices: (get-property indices)
 * @self: a sampler
 *
 * Gets the indices.
 *
 * Returns: (transfer none) (nullable): the indices; %NULL if there are none
 *
 * Since: 0.1
 */
GTorchSize *
gtorch_subset_random_sampler_get_indices (GTorchSubsetRandomSampler *self)
{
  g_return_val_if_fail (GTORCH_IS_SUBSET_RANDOM_SAMPLER (self), NULL);
  return self->indices;
}

/* --- WeightedRandomSampler --- */

/**
 * GTorchWeightedRandomSampler:
 *
 * Indices by chance, each as probable as its weight says.
 *
 * Since: 0.1
 */
struct _GTorchWeightedRandomSampler
{
  GTorchSampler parent_instance;
  gdouble *weights;
  gsize n_weights;
  gint64 num_samples;
  gboolean replacement;
  GTorchGenerator *generator;
  GBytes *pending;
};

G_DEFINE_TYPE (GTorchWeightedRandomSampler, gtorch_weighted_random_sampler, GTORCH_TYPE_SAMPLER)

static const GTorchField weighted_fields[] = {
  /**
   * GTorchWeightedRandomSampler:num-samples:
   *
   * How many indices a pass has.
   *
   * Since: 0.1
   */
  { "num-samples", GTORCH_FIELD_INT64, GTORCH_FIELD (GTorchWeightedRandomSampler, num_samples),
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchWeightedRandomSampler:replacement:
   *
   * Whether an index may come several times.
   *
   * Since: 0.1
   */
  { "replacement", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchWeightedRandomSampler, replacement), TRUE,
    .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchWeightedRandomSampler:generator:
   *
   * Where the numbers come from. %NULL: each pass has a generator of its own, seeded from the CPU's
   * default one.
   *
   * Since: 0.1
   */
  { "generator", GTORCH_FIELD_OBJECT, GTORCH_FIELD (GTorchWeightedRandomSampler, generator),
    .type = gtorch_generator_get_type, .flags = GTORCH_FIELD_FIXED },
};

static gint64
gtorch_weighted_random_sampler_get_length (GTorchSampler *sampler, GError **error)
{
  GTorchWeightedRandomSampler *self = GTORCH_WEIGHTED_RANDOM_SAMPLER (sampler);
  gdouble sum = 0;
  gsize i;

  if (!check_count ("weighted_random_sampler", "num_samples", self->num_samples, 1, error))
    return -1;
  for (i = 0; i < self->n_weights; i++)
    {
      if (!(self->weights[i] >= 0) || isinf (self->weights[i]))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("weighted_random_sampler: weight %zu is %g, and must be a number from 0"),
                       i, self->weights[i]);
          return -1;
        }
      sum += self->weights[i];
    }
  if (sum > 0 && (self->replacement || (gsize) self->num_samples <= self->n_weights))
    return self->num_samples;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("weighted_random_sampler: %" PRId64 " indices cannot be drawn from "
                  "%zu weights with the sum %g%s"),
               self->num_samples, self->n_weights, sum,
               self->replacement ? "" : _ (" without replacement"));
  return -1;
}

static gint64 *
draw_weighted (GTorchSampler *sampler, GTorchGenerator *generator, gint64 *n, GError **error)
{
  GTorchWeightedRandomSampler *self = GTORCH_WEIGHTED_RANDOM_SAMPLER (sampler);
  g_autoptr (GTorchTensor) weights =
      gtorch_tensor_new_from_doubles (self->weights, self->n_weights, (gint64[]){ self->n_weights },
                                      1, GTORCH_DTYPE_FLOAT64, gtorch_device_cpu (), error);

  if (self->replacement)
    *n = MIN (*n, PIECE);
  return take_ints ("weighted_random_sampler",
                    weights != NULL ? gtorch_tensor_multinomial (weights, *n, self->replacement,
                                                                 generator, error)
                                    : NULL,
                    error);
}

static GTorchIndexSource *
gtorch_weighted_random_sampler_iterate (GTorchSampler *sampler, guint64 epoch, GError **error)
{
  GTorchWeightedRandomSampler *self = GTORCH_WEIGHTED_RANDOM_SAMPLER (sampler);
  const gint64 n = gtorch_weighted_random_sampler_get_length (sampler, error);

  return n >= 0 ? begin (sampler, self->generator, &self->pending, n, draw_weighted, error) : NULL;
}

static gboolean
gtorch_weighted_random_sampler_set_state (GTorchSampler *sampler, GVariant *state, GError **error)
{
  return set_pending (&GTORCH_WEIGHTED_RANDOM_SAMPLER (sampler)->pending, state, error);
}

static void
gtorch_weighted_random_sampler_finalize (GObject *object)
{
  GTorchWeightedRandomSampler *self = GTORCH_WEIGHTED_RANDOM_SAMPLER (object);

  g_free (self->weights);
  g_clear_object (&self->generator);
  g_clear_pointer (&self->pending, g_bytes_unref);
  G_OBJECT_CLASS (gtorch_weighted_random_sampler_parent_class)->finalize (object);
}

static void
gtorch_weighted_random_sampler_class_init (GTorchWeightedRandomSamplerClass *klass)
{
  GTorchSamplerClass *sampler_class = GTORCH_SAMPLER_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = gtorch_weighted_random_sampler_finalize;
  sampler_class->get_length = gtorch_weighted_random_sampler_get_length;
  sampler_class->iterate = gtorch_weighted_random_sampler_iterate;
  sampler_class->set_state = gtorch_weighted_random_sampler_set_state;
  GTORCH_FIELDS (klass, weighted_fields);
}

static void
gtorch_weighted_random_sampler_init (GTorchWeightedRandomSampler *self)
{
  self->replacement = TRUE;
}

/**
 * gtorch_weighted_random_sampler_new: (constructor)
 * @weights: (array length=n_weights): a weight for each sample, which need not have the sum 1
 * @n_weights: the length of @weights
 * @num_samples: how many indices a pass has
 * @replacement: whether an index may come several times
 * @generator: (nullable): where the numbers come from; %NULL for one that is seeded from the CPU's
 *   default one
 *
 * Creates a sampler of indices by chance that are not equally probable.
 *
 * Returns: (transfer full) (type GTorchWeightedRandomSampler): the sampler
 *
 * Since: 0.1
 */
GTorchSampler *
gtorch_weighted_random_sampler_new (const gdouble *weights, gsize n_weights, gint64 num_samples,
                                    gboolean replacement, GTorchGenerator *generator)
{
  GTorchWeightedRandomSampler *self;

  g_return_val_if_fail (weights != NULL || n_weights == 0, NULL);
  g_return_val_if_fail (generator == NULL || GTORCH_IS_GENERATOR (generator), NULL);
  self = g_object_new (GTORCH_TYPE_WEIGHTED_RANDOM_SAMPLER, "num-samples", num_samples,
                       "replacement", replacement, "generator", generator, NULL);
  self->weights = g_memdup2 (weights, n_weights * sizeof (gdouble));
  self->n_weights = n_weights;
  return GTORCH_SAMPLER (self);
}

/**
 * gtorch_weighted_random_sampler_get_weights:
 * @self: a sampler
 * @n_weights: (out): the length of the result
 *
 * Gets the weights.
 *
 * Returns: (transfer full) (array length=n_weights): the weights
 *
 * Since: 0.1
 */
gdouble *
gtorch_weighted_random_sampler_get_weights (GTorchWeightedRandomSampler *self, gsize *n_weights)
{
  g_return_val_if_fail (GTORCH_IS_WEIGHTED_RANDOM_SAMPLER (self), NULL);
  g_return_val_if_fail (n_weights != NULL, NULL);
  *n_weights = self->n_weights;
  return g_memdup2 (self->weights, self->n_weights * sizeof (gdouble));
}
