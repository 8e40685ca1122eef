/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Sampling images at positions, composed of gathering, for derivatives of higher order. Along each dimension
 * a sample is a weighted sum of the elements at up to four places, its taps; it is the sum over all
 * combinations of these. An element beyond the borders counts as zero; modes of padding other than zeros have
 * such only without a weight. */

#include "config.h"

#include "ops/gtorch-formula-private.h"
#include "ops/gtorch-op-parts-private.h"

#define MAX_TAPS 4

/* The tensors have the shape [N, M] for M samples of each image. */
typedef struct
{
  GTorchImpl *place;  /* int64, within the borders */
  GTorchImpl *inside; /* whether it was */
  GTorchImpl *weight; /* NULL for one */
} Tap;

typedef struct
{
  GTorchImpl *images; /* [N, C, the number of elements of an image] */
  gint64 size[3];     /* depth, height and width */
  guint dims;
  GTorchGridMode mode;
  GTorchGridPadding padding;
  gboolean align_corners;
  Tap taps[3][MAX_TAPS];
  guint n_taps;
} Sampling;

static void
sampling_clear (Sampling *self)
{
  guint d, i;

  g_clear_pointer (&self->images, gtorch_impl_unref);
  for (d = 0; d < 3; d++)
    for (i = 0; i < MAX_TAPS; i++)
      {
        g_clear_pointer (&self->taps[d][i].place, gtorch_impl_unref);
        g_clear_pointer (&self->taps[d][i].inside, gtorch_impl_unref);
        g_clear_pointer (&self->taps[d][i].weight, gtorch_impl_unref);
      }
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Sampling, sampling_clear)

/* Returns self times a plus b. */
static GTorchImpl *
scale_and_shift (GTorchFormula *f, GTorchImpl *self, gdouble a, gdouble b)
{
  GTorchImpl *factor = gtorch_formula_number (f, a), *term = gtorch_formula_number (f, b);
  GTorchImpl *product = GTORCH_FORMULA_OP (f, mul, self, factor);

  return GTORCH_FORMULA_OP (f, add, product, term, 1);
}

/* Limits a position to the borders; the gradient is 0 there and beyond. What is no number becomes 0. */
static GTorchImpl *
clip (GTorchFormula *f, GTorchImpl *at, gint64 size)
{
  GTorchImpl *low = gtorch_formula_number (f, 0);
  GTorchImpl *high = gtorch_formula_number (f, (gdouble) (size - 1));
  GTorchImpl *is_above = GTORCH_FORMULA_OP (f, gt, at, low);
  GTorchImpl *is_high = GTORCH_FORMULA_OP (f, ge, at, high);

  at = GTORCH_FORMULA_OP (f, where, is_above, at, low);
  return GTORCH_FORMULA_OP (f, where, is_high, high, at);
}

/* Mirrors a position at the borders: at the centers of the elements there, or half an element beyond. */
static GTorchImpl *
reflect (GTorchFormula *f, GTorchImpl *at, gint64 size, gboolean align_corners)
{
  const gdouble low = align_corners ? 0 : -0.5;
  const gdouble span = align_corners ? (gdouble) (size - 1) : (gdouble) size;
  GTorchImpl *zero = gtorch_formula_number (f, 0), *two, *length, *flipped, *sign, *rest, *turns;

  if (span == 0)
    return GTORCH_FORMULA_OP (f, zeros_like, at, GTORCH_DTYPE_NONE);
  two = gtorch_formula_number (f, 2);
  length = gtorch_formula_number (f, span);
  at = scale_and_shift (f, at, 1, -low);
  sign = GTORCH_FORMULA_OP (f, lt, at, zero);
  flipped = GTORCH_FORMULA_OP (f, neg, at);
  at = GTORCH_FORMULA_OP (f, where, sign, flipped, at);
  rest = GTORCH_FORMULA_OP (f, fmod, at, length);
  turns = GTORCH_FORMULA_OP (f, div, at, length);
  turns = GTORCH_FORMULA_OP (f, floor, turns);
  turns = GTORCH_FORMULA_OP (f, fmod, turns, two);
  sign = GTORCH_FORMULA_OP (f, eq, turns, zero);
  flipped = scale_and_shift (f, rest, -1, span + low);
  rest = scale_and_shift (f, rest, 1, low);
  return GTORCH_FORMULA_OP (f, where, sign, rest, flipped);
}

static GTorchImpl *
pad_position (GTorchFormula *f, const Sampling *self, GTorchImpl *at, gint64 size)
{
  if (self->padding == GTORCH_GRID_PADDING_ZEROS)
    return at;
  if (self->padding == GTORCH_GRID_PADDING_REFLECTION)
    at = reflect (f, at, size, self->align_corners);
  return clip (f, at, size);
}

/* Computes positions, in elements, from one column of the grid. */
static GTorchImpl *
find_positions (const Sampling *self, GTorchImpl *grid, guint d, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  const gdouble size = (gdouble) self->size[d];
  GTorchImpl *at = GTORCH_FORMULA_OP (&f, select, grid, -1, 2 - (gint64) d);

  at = GTORCH_FORMULA_OP (&f, flatten, at, 1, -1);
  if (self->mode != GTORCH_GRID_MODE_BICUBIC && self->padding == GTORCH_GRID_PADDING_ZEROS)
    { /* infinity times a weight of 0 would be NaN */
      GTorchImpl *none = gtorch_formula_number (&f, -100);
      GTorchImpl *is_finite = GTORCH_FORMULA_OP (&f, isfinite, at);

      at = GTORCH_FORMULA_OP (&f, where, is_finite, at, none);
    }
  if (self->align_corners)
    at = scale_and_shift (&f, at, (size - 1) / 2, (size - 1) / 2);
  else
    at = scale_and_shift (&f, at, size / 2, (size - 1) / 2);
  if (self->mode != GTORCH_GRID_MODE_BICUBIC)
    at = pad_position (&f, self, at, self->size[d]);
  return gtorch_formula_take (&f, at);
}

/* Sets the place of a tap from a whole position. */
static gboolean
tap_set_place (Tap *tap, GTorchImpl *at, gint64 size, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *low = gtorch_formula_number (&f, 0);
  GTorchImpl *high = gtorch_formula_number (&f, (gdouble) size);
  GTorchImpl *is_low = GTORCH_FORMULA_OP (&f, ge, at, low);
  GTorchImpl *is_high = GTORCH_FORMULA_OP (&f, lt, at, high);
  GTorchImpl *inside = GTORCH_FORMULA_OP (&f, logical_and, is_low, is_high);
  GTorchImpl *place = GTORCH_FORMULA_OP (&f, where, inside, at, low);

  place = GTORCH_FORMULA_OP (&f, to_dtype, place, GTORCH_DTYPE_INT64);
  tap->inside = gtorch_formula_take (&f, inside);
  tap->place = gtorch_formula_take (&f, place);
  return !f.failed;
}

/* Returns the weight of cubic convolution at the distances 1 + t, t, 1 - t or 2 - t. */
static GTorchImpl *
cubic_weight (GTorchFormula *f, GTorchImpl *t, guint i)
{
  const gboolean is_near = i == 1 || i == 2;
  const gdouble a = -0.75;
  GTorchImpl *x = i < 2 ? scale_and_shift (f, t, 1, 1 - (gdouble) i)
                        : scale_and_shift (f, t, -1, (gdouble) i - 1);
  GTorchImpl *y = scale_and_shift (f, x, is_near ? a + 2 : a, is_near ? -(a + 3) : -5 * a);

  y = GTORCH_FORMULA_OP (f, mul, y, x);
  if (!is_near)
    y = scale_and_shift (f, y, 1, 8 * a);
  y = GTORCH_FORMULA_OP (f, mul, y, x);
  return scale_and_shift (f, y, 1, is_near ? 1 : -4 * a);
}

/* Returns the weight 1 of the nearest element, which has the gradient 0. */
static GTorchImpl *
one_of (GTorchFormula *f, GTorchImpl *at, gint64 size)
{
  GTorchImpl *finite = GTORCH_FORMULA_OP (f, clamp, at, 0, (gdouble) (size - 1));
  GTorchImpl *zero = GTORCH_FORMULA_OP (f, sub, finite, finite, 1);

  return scale_and_shift (f, zero, 1, 1);
}

/* Makes the taps along one dimension. */
static gboolean
make_taps (Sampling *self, guint d, GTorchImpl *at, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *base, *t;
  guint i;

  base = self->mode == GTORCH_GRID_MODE_NEAREST ? GTORCH_FORMULA_OP (&f, round, at)
                                                : GTORCH_FORMULA_OP (&f, floor, at);
  t = GTORCH_FORMULA_OP (&f, sub, at, base, 1);
  for (i = 0; i < self->n_taps && !f.failed; i++)
    {
      g_auto (GTorchFormula) own = GTORCH_FORMULA_INIT (error);
      const gdouble shift = self->mode == GTORCH_GRID_MODE_BICUBIC ? (gdouble) i - 1 : i;
      GTorchImpl *place = scale_and_shift (&own, base, 1, shift), *weight = NULL;

      if (self->mode == GTORCH_GRID_MODE_BICUBIC)
        {
          place = pad_position (&own, self, place, self->size[d]);
          weight = cubic_weight (&own, t, i);
        }
      else if (self->mode == GTORCH_GRID_MODE_BILINEAR)
        weight = i == 0 ? scale_and_shift (&own, t, -1, 1) : t;
      else if (gtorch_autograd_wanted (&at, 1))
        weight = one_of (&own, place, self->size[d]);
      if (own.failed || !tap_set_place (&self->taps[d][i], place, self->size[d], error))
        return FALSE;
      if (weight != NULL)
        self->taps[d][i].weight = gtorch_impl_ref (weight);
    }
  return !f.failed;
}

/* Computes the part of all samples that one combination of taps has, [N, C, M]. */
static GTorchImpl *
sample_once (const Sampling *self, const Tap *const *taps, GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  GTorchImpl *place = NULL, *inside = NULL, *weight = NULL, *size, *zero, *values;
  gint64 shape[3];
  guint d;

  for (d = 3 - self->dims; d < 3; d++)
    {
      const Tap *tap = taps[d];

      if (place == NULL)
        {
          place = tap->place;
          inside = tap->inside;
          weight = tap->weight;
          continue;
        }
      size = gtorch_formula_keep (&f, gtorch_impl_new_int (self->size[d]));
      place = GTORCH_FORMULA_OP (&f, mul, place, size);
      place = GTORCH_FORMULA_OP (&f, add, place, tap->place, 1);
      inside = GTORCH_FORMULA_OP (&f, logical_and, inside, tap->inside);
      if (weight != NULL)
        weight = GTORCH_FORMULA_OP (&f, mul, weight, tap->weight);
    }
  place = GTORCH_FORMULA_OP (&f, unsqueeze, place, 1);
  inside = GTORCH_FORMULA_OP (&f, unsqueeze, inside, 1);
  if (f.failed)
    return NULL;
  shape[0] = place->shape[0];
  shape[1] = self->images->shape[1];
  shape[2] = place->shape[2];
  place = GTORCH_FORMULA_OP (&f, expand, place, shape, 3);
  values = GTORCH_FORMULA_OP (&f, gather, self->images, 2, place);
  zero = gtorch_formula_number (&f, 0);
  values = GTORCH_FORMULA_OP (&f, where, inside, values, zero);
  if (weight != NULL)
    {
      weight = GTORCH_FORMULA_OP (&f, unsqueeze, weight, 1);
      values = GTORCH_FORMULA_OP (&f, mul, values, weight);
    }
  return gtorch_formula_take (&f, values);
}

/* Adds the parts of all combinations of taps. */
static GTorchImpl *
sample_all (const Sampling *self, GError **error)
{
  const guint n = self->n_taps;
  const guint n_combinations = n * n * (self->dims == 3 ? n : 1);
  g_autoptr (GTorchImpl) sum = NULL;
  guint i;

  for (i = 0; i < n_combinations; i++)
    {
      const Tap *const taps[3] = { &self->taps[0][i / (n * n)], &self->taps[1][i / n % n],
                                   &self->taps[2][i % n] };
      g_autoptr (GTorchImpl) part = sample_once (self, taps, error);
      GTorchImpl *more;

      if (part == NULL)
        return NULL;
      if (sum == NULL)
        {
          sum = g_steal_pointer (&part);
          continue;
        }
      more = gtorch_op_add (sum, part, 1, error);
      if (more == NULL)
        return NULL;
      gtorch_impl_unref (sum);
      sum = more;
    }
  return g_steal_pointer (&sum);
}

GTorchImpl *
gtorch_grid_sample_composed (GTorchImpl *input, GTorchImpl *grid, const GTorchAttr *attrs,
                             GError **error)
{
  g_auto (GTorchFormula) f = GTORCH_FORMULA_INIT (error);
  const GTorchGridMode mode = attrs[0].i;
  g_auto (Sampling) s = { .mode = mode, .padding = attrs[1].i, .align_corners = attrs[2].i };
  GTorchImpl *images, *made;
  gint64 shape[5];
  guint dtype, d;

  /* positions in 16 bits would be too coarse */
  dtype = gtorch_dtype_infos[input->dtype].compute;
  images = GTORCH_FORMULA_OP (&f, to_dtype, input, dtype);
  grid = GTORCH_FORMULA_OP (&f, to_dtype, grid, dtype);
  images = GTORCH_FORMULA_OP (&f, flatten, images, 2, -1);
  if (f.failed)
    return NULL;
  s.images = gtorch_impl_ref (images);
  s.dims = input->n_dims - 2;
  s.n_taps = mode == GTORCH_GRID_MODE_BICUBIC ? 4 : mode == GTORCH_GRID_MODE_BILINEAR ? 2 : 1;
  for (d = 3 - s.dims; d < 3; d++)
    {
      g_autoptr (GTorchImpl) at = NULL;

      s.size[d] = input->shape[d + s.dims - 1];
      at = find_positions (&s, grid, d, error);
      if (at == NULL || !make_taps (&s, d, at, error))
        return NULL;
    }
  made = gtorch_formula_keep (&f, sample_all (&s, error));
  shape[0] = input->shape[0];
  shape[1] = input->shape[1];
  for (d = 2; d < input->n_dims; d++)
    shape[d] = grid->shape[d - 1];
  made = GTORCH_FORMULA_OP (&f, reshape, made, shape, input->n_dims);
  made = GTORCH_FORMULA_OP (&f, to_dtype, made, input->dtype);
  return gtorch_formula_take (&f, made);
}
