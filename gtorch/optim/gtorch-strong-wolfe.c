/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A line search for the strong Wolfe conditions: the loss has decreased by a share of what the slope at the
 * start promises, and the slope has become flat. First the steps get longer until two of them bracket such a
 * point, then the bracket is narrowed. The next step is always where the cubic polynomial through two points
 * with their slopes has its minimum.
 *
 * Source: Nocedal and Wright, Numerical Optimization, 2006, algorithms 3.5 and 3.6, equation 3.59 */

#include "config.h"

#include "optim/gtorch-lbfgs-private.h"

#define DECREASE 1e-4 /* c1 of the first condition */
#define FLATNESS 0.9  /* c2 of the second one */
#define SHORTEST 1e-9 /* the bracket is not narrowed any further */
#define MARGIN   0.1  /* steps as close as this to an end of the bracket make little progress */

typedef struct
{
  const GTorchLinePoint *start;
  GTorchLinePoint ends[2]; /* of the bracket; `low` is the one of the lower loss */
  guint low;
  gboolean is_done;
} Search;

static void
search_clear (Search *self)
{
  gtorch_line_point_clear (&self->ends[0]);
  gtorch_line_point_clear (&self->ends[1]);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Search, search_clear)

static void
copy_point (GTorchLinePoint *to, const GTorchLinePoint *from)
{
  GTorchImpl *grad = from->grad != NULL ? gtorch_impl_ref (from->grad) : NULL;

  gtorch_line_point_clear (to);
  *to = *from;
  to->grad = grad;
}

/* The minimum of the cubic polynomial, within the bounds. */
static gdouble
interpolate (const GTorchLinePoint *a, const GTorchLinePoint *b, gdouble low, gdouble high)
{
  const GTorchLinePoint *left = a->t <= b->t ? a : b, *right = a->t <= b->t ? b : a;
  const gdouble width = right->t - left->t,
                d1 = left->slope + right->slope - 3 * (left->loss - right->loss) / -width,
                square = d1 * d1 - left->slope * right->slope;
  gdouble d2, t;

  if (!(square >= 0))
    return (low + high) / 2;
  d2 = sqrt (square);
  t = right->t - width * ((right->slope + d2 - d1) / (right->slope - left->slope + 2 * d2));
  t = low > t ? low : t; /* NaN remains */
  return high < t ? high : t;
}

static gboolean
is_too_high (const Search *self, const GTorchLinePoint *point)
{
  return point->loss > self->start->loss + DECREASE * point->t * self->start->slope;
}

static gboolean
is_flat (const Search *self, const GTorchLinePoint *point)
{
  return fabs (point->slope) <= -FLATNESS * self->start->slope;
}

static void
find_low (Search *self)
{
  self->low = self->ends[0].loss <= self->ends[1].loss ? 0 : 1;
}

static gboolean
evaluate (GTorchLineFunc func, gpointer data, gdouble t, GTorchLinePoint *point, gint64 *n_evals,
          GError **error)
{
  gtorch_line_point_clear (point);
  point->t = t;
  ++*n_evals;
  return func (data, point, error);
}

/* Returns the number of iterations, or -1 with an error. */
static gint64
bracket (Search *self, GTorchLineFunc func, gpointer data, gint64 max_iter, GTorchLinePoint *point,
         gint64 *n_evals, GError **error)
{
  g_auto (GTorchLinePoint) former = { 0 };
  gint64 i;

  copy_point (&former, self->start);
  if (!evaluate (func, data, point->t, point, n_evals, error))
    return -1;
  for (i = 0; i < max_iter; i++)
    {
      const gboolean is_higher = is_too_high (self, point) || (i > 1 && point->loss >= former.loss);
      gdouble t;

      if (!is_higher && is_flat (self, point))
        {
          copy_point (&self->ends[0], point);
          self->is_done = TRUE;
          return i;
        }
      if (is_higher || point->slope >= 0)
        {
          copy_point (&self->ends[0], &former);
          copy_point (&self->ends[1], point);
          find_low (self);
          return i;
        }
      t = interpolate (&former, point, point->t + 0.01 * (point->t - former.t), point->t * 10);
      copy_point (&former, point);
      if (!evaluate (func, data, t, point, n_evals, error))
        return -1;
    }
  copy_point (&self->ends[0], self->start);
  copy_point (&self->ends[1], point);
  find_low (self);
  return i;
}

/* Keeps a step from approaching the same end of the bracket again and again. */
static gdouble
keep_off_ends (gdouble t, gdouble low, gdouble high, gboolean *is_slow)
{
  const gdouble margin = MARGIN * (high - low);
  const gboolean is_close = MIN (high - t, t - low) < margin;
  const gboolean moves = is_close && (*is_slow || t >= high || t <= low);

  *is_slow = is_close && !moves;
  if (!moves)
    return t;
  return fabs (t - high) < fabs (t - low) ? high - margin : low + margin;
}

static gboolean
narrow (Search *self, GTorchLineFunc func, gpointer data, gdouble longest, gint64 n_left,
        GTorchLinePoint *point, gint64 *n_evals, GError **error)
{
  GTorchLinePoint *ends = self->ends;
  gboolean is_slow = FALSE;

  for (; !self->is_done && n_left > 0; n_left--)
    {
      const gdouble left = MIN (ends[0].t, ends[1].t), right = MAX (ends[0].t, ends[1].t);
      GTorchLinePoint *low = &ends[self->low], *high = &ends[1 - self->low];
      gdouble t;

      if ((right - left) * longest < SHORTEST)
        break;
      t = keep_off_ends (interpolate (&ends[0], &ends[1], left, right), left, right, &is_slow);
      if (!evaluate (func, data, t, point, n_evals, error))
        return FALSE;
      if (is_too_high (self, point) || point->loss >= low->loss)
        {
          copy_point (high, point);
          find_low (self);
          continue;
        }
      if (is_flat (self, point))
        self->is_done = TRUE;
      else if (point->slope * (high->t - low->t) >= 0)
        copy_point (high, low);
      copy_point (low, point);
    }
  return TRUE;
}

gboolean
gtorch_strong_wolfe (GTorchLineFunc func, gpointer data, const GTorchLinePoint *start,
                     gdouble longest, gint64 max_iter, GTorchLinePoint *found, gint64 *n_evals,
                     GError **error)
{
  g_auto (Search) self = { .start = start };
  g_auto (GTorchLinePoint) point = { .t = found->t };
  gint64 n;

  max_iter = MAX (max_iter, 0);
  n = bracket (&self, func, data, max_iter, &point, n_evals, error);
  if (n < 0 || !narrow (&self, func, data, longest, max_iter - n, &point, n_evals, error))
    return FALSE;
  copy_point (found, &self.ends[self.low]);
  return TRUE;
}
