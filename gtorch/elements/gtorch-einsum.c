/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Reads the equations of einsum. The operation itself takes labels as numbers. */

#include "config.h"

#include "elements/gtorch-einsum.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-text-private.h"
#include "gtorch-ops-private.h"
#include "tensor/gtorch-hold-private.h"
#include "tensor/gtorch-tensor-private.h"

#define N_LABELS 52
#define ELLIPSIS -1
#define NEXT     -2

typedef struct
{
  const gchar *equation;
  GArray *terms; /* as the operation takes them */
  guint n_operands;
  guint counts[N_LABELS]; /* how often the operands have each label */
  gboolean has_ellipsis, has_output;
} Equation;

static void
append (Equation *self, gint64 term)
{
  g_array_append_val (self->terms, term);
}

static gboolean
refuse (const Equation *self, const gchar *at, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("einsum: character %u of the equation “%s” is not a letter, “,”, “...” or the "
                  "only “->”"),
               (guint) (at - self->equation), gtorch_name_str (self->equation));
  return FALSE;
}

static gboolean
read_equation (Equation *self, GError **error)
{
  for (const gchar *at = self->equation; *at != '\0'; at++)
    if (g_ascii_isalpha (*at))
      {
        gint64 label = g_ascii_isupper (*at) ? *at - 'A' : *at - 'a' + 26;

        append (self, label);
        if (!self->has_output)
          self->counts[label]++;
      }
    else if (g_str_has_prefix (at, "..."))
      {
        append (self, ELLIPSIS);
        self->has_ellipsis |= !self->has_output;
        at += 2;
      }
    else if (*at == ',' && !self->has_output)
      {
        append (self, NEXT);
        self->n_operands++;
      }
    else if (g_str_has_prefix (at, "->") && !self->has_output)
      {
        append (self, NEXT);
        self->n_operands++;
        self->has_output = TRUE;
        at++;
      }
    else if (*at != ' ')
      return refuse (self, at, error);
  if (self->has_output)
    return TRUE;
  /* without an arrow, the output has what occurs once */
  append (self, NEXT);
  self->n_operands++;
  if (self->has_ellipsis)
    append (self, ELLIPSIS);
  for (gint64 i = 0; i < N_LABELS; i++)
    if (self->counts[i] == 1)
      append (self, i);
  return TRUE;
}

/**
 * gtorch_einsum:
 * @equation: the labels of the dimensions, such as `ij,jk->ik`
 * @operands: (array length=n_operands): tensors of one dtype
 * @n_operands: the length of @operands
 * @error: return location for an error
 *
 * Sums the products of the operands' elements, after Einstein's convention.
 *
 * The equation has a letter for each dimension of each operand, separated by commas, and after an arrow those
 * of the result; sums are taken over all other letters. Without an arrow, the result has the letters that
 * occur once, in the order of the alphabet, capitals first. A letter that an operand has twice stands for the
 * diagonal. An ellipsis, `...`, stands for any number of dimensions, which are broadcast. Dimensions of one
 * letter must be of one size, or of size 1. Blanks do not count.
 *
 * Products are products of matrices where that is possible. With three operands and more, the pair that costs
 * the least is multiplied first; the order that was found is kept for further calls with operands of these
 * sizes.
 *
 * ```c
 * GTorchTensor *operands[] = { queries, keys };
 * g_autoptr (GTorchTensor) scores = gtorch_einsum ("bqd,bkd->bqk", operands, 2, &error);
 * ```
 *
 * Returns: (transfer full): the result, or %NULL with @error set: %GTORCH_ERROR_INVALID if the equation is
 *   wrong, %GTORCH_ERROR_SHAPE if it does not fit the shapes
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_einsum (const gchar *equation, GTorchTensor **operands, gsize n_operands, GError **error)
{
  GTORCH_HOLD_TENSORS (operands, n_operands);
  g_autoptr (GArray) terms = NULL;
  g_autofree GTorchImpl **impls = NULL;
  const GTorchOpClass *former;
  GTorchImpl *made;
  Equation self = { equation };

  g_return_val_if_fail (equation != NULL, NULL);
  g_return_val_if_fail (operands != NULL || n_operands == 0, NULL);

  self.terms = terms = g_array_new (FALSE, FALSE, sizeof (gint64));
  if (!read_equation (&self, error))
    return NULL;
  if (self.n_operands != n_operands)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("einsum: the equation “%s” has labels for %u operands, there are "
                      "%zu"),
                   gtorch_name_str (equation), self.n_operands, n_operands);
      return NULL;
    }
  impls = gtorch_tensors_unwrap (operands, n_operands);
  if (!gtorch_composite_check_list (GTORCH_OP_EINSUM, impls, n_operands, error))
    return NULL;
  former = gtorch_composite_begin (GTORCH_OP_EINSUM, impls, n_operands);
  made = gtorch_op_einsum (impls, n_operands, (const gint64 *) terms->data, terms->len, error);
  gtorch_composite_end (former, made != NULL, error);
  return gtorch_tensor_wrap (made);
}
